/*
 * items.h - the reports inside a heartbeat, and the tasks inside a lease reply: between messages
 * and the store's operations.
 */
#ifndef XF_COORDINATOR_ITEMS_H
#define XF_COORDINATOR_ITEMS_H

#include "coordinator/core.h"

/**
 * A heartbeat: renews the held leases at once, gives each report to the store, and answers when all
 * are committed or, when the disk is slow, after a moment with `busy` for the rest (those are sent
 * again; the store merges repeats). So no heartbeat waits for a commit for long.
 */
void xf_items_on_beat(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_beat *m,
                      struct xf_hub_req *r);

/** Put what a lease operation gave into the table of deadlines. */
void xf_items_take_leased(struct xf_coordinator *c, uint64_t holder, const struct xf_store_op *op);
/** Answer a lease request with it. */
void xf_items_reply_leased(struct xf_coordinator *c,
                           struct xf_hub_req *r,
                           const struct xf_store_op *op);
void xf_items_fini(struct xf_coordinator *c);

#endif
