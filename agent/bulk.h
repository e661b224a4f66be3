/*
 * bulk.h - how many large bodies of a job a lane relays at a time, found by the bytes that come.
 *
 * Requests are counted by limit.h, but a body of many MiB takes seconds, and all of them at once
 * only share one network: none would end soon, a stop would lose them all, and small objects would
 * wait behind them. So a large body has a turn first. The width begins small and grows by a half
 * while more bodies bring more bytes; when they do not, it goes back, and looks again later. What
 * the bodies hold of the lane's pool is bounded too, so that small ones always find room. One a
 * lane and job. Threads: one owner, the loop's thread.
 */
#ifndef XF_AGENT_BULK_H
#define XF_AGENT_BULK_H

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/rt/loop.h"

#include <stdint.h>

/* Bodies of at least this many bytes need a turn. */
#define XF_BULK_MIN ((uint64_t)4 << 20)

struct xf_bulk;

/* Somebody who waits; the caller's storage. */
struct xf_bulk_want {
    struct xf_list node;
    size_t mem;                            /* bytes of the pool it will hold */
    void (*go)(struct xf_bulk_want *want); /* has its turn now */
    void *arg;
};

/** mem: bytes of the pool that all bodies may hold; one alone may hold more. */
struct xf_bulk *xf_bulk_new(struct xf_loop *loop, size_t mem);
/** No turn may be out, nobody may wait. */
void xf_bulk_free(struct xf_bulk *b);
XF_AUTO_DEFINE(xf_bulk, xf_bulk_free)

/** A turn now; false when there is none or others wait: then xf_bulk_wait(). */
bool xf_bulk_take(struct xf_bulk *b, size_t mem);
/** Wait in line; go() runs from a later xf_bulk_give() or xf_bulk_moved(). */
void xf_bulk_wait(struct xf_bulk *b, struct xf_bulk_want *want);
/** Wait no longer. Harmless when not waiting. */
void xf_bulk_forget(struct xf_bulk *b, struct xf_bulk_want *want);
/** Give a turn back; mem: as it was taken. */
void xf_bulk_give(struct xf_bulk *b, size_t mem);
/** Bytes of bodies came. */
void xf_bulk_moved(struct xf_bulk *b, uint64_t bytes);

unsigned xf_bulk_width(const struct xf_bulk *b); /* turns at a time, at present */

#endif
