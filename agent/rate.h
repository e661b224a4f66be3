/*
 * rate.h - how many bytes a second may go through a lane for a job: a token bucket with a line.
 *
 * Who takes more than is there leaves a debt that the next one waits for, so the average holds
 * whatever the size of a part. Nobody who waits is passed by another. Threads: one owner, the
 * loop's thread.
 */
#ifndef XF_AGENT_RATE_H
#define XF_AGENT_RATE_H

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/rt/loop.h"

#include <stdint.h>

struct xf_rate;

/* Somebody who waits; the caller's storage. */
struct xf_rate_want {
    struct xf_list node;
    uint64_t bytes;
    void (*go)(struct xf_rate_want *want); /* the bytes are taken */
    void *arg;
};

struct xf_rate *xf_rate_new(struct xf_loop *loop);
/** Nobody may wait. */
void xf_rate_free(struct xf_rate *r);
XF_AUTO_DEFINE(xf_rate, xf_rate_free)

/** Bytes a second from now on; 0: no limit (who waits goes at the next turn). */
void xf_rate_set(struct xf_rate *r, uint64_t bytes_s);
/** Take bytes now; false when there is a debt or others wait: then xf_rate_wait(). */
bool xf_rate_take(struct xf_rate *r, uint64_t bytes);
/** Wait in line; go() runs from the loop. */
void xf_rate_wait(struct xf_rate *r, struct xf_rate_want *want);
/** Wait no longer. Harmless when not waiting. */
void xf_rate_forget(struct xf_rate *r, struct xf_rate_want *want);

#endif
