/*
 * limit.h - how many requests one side of a job may have in flight, found by itself.
 *
 * AIMD with a slow start: the limit grows while it is used and nothing is refused, halves when the
 * service asks for less, and stops growing when more requests bring no more throughput. A throttle
 * also closes the gate until Retry-After (or a jittered wait) is over; an endpoint that cannot be
 * reached closes it with growing pauses. Neither spends anybody's tries: callers ask again. One
 * limit a lane, side and job; lanes find their share each by itself. Threads: one owner, the
 * loop's thread.
 */
#ifndef XF_RT_LIMIT_H
#define XF_RT_LIMIT_H

#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "common/rt/loop.h"

#include <stdint.h>

struct xf_limit;

struct xf_limit_opts {
    struct xf_loop *loop;
    struct xf_rng *rng; /* borrowed */
    const char *name;   /* static; for the log: "source" */
    unsigned start;     /* first limit; 0: 16 */
    unsigned max;       /* at least 1 */
};

enum xf_limit_how {
    XF_LIMIT_OK,        /* an answer came */
    XF_LIMIT_THROTTLED, /* the service asks for less */
    XF_LIMIT_DOWN,      /* no connection */
    XF_LIMIT_NEUTRAL    /* cancelled, or failed in a way that says nothing about load */
};

/* Somebody who waits for a permit; the caller's storage. */
struct xf_limit_want {
    struct xf_list node;
    void (*go)(struct xf_limit_want *want); /* holds a permit now */
    void *arg;
    bool has_begun; /* it had permits before: goes before those who did not */
};

struct xf_limit *xf_limit_new(const struct xf_limit_opts *o);
/** No permit may be out, nobody may wait. */
void xf_limit_free(struct xf_limit *l);
XF_AUTO_DEFINE(xf_limit, xf_limit_free)

/** A permit now; false when the limit is reached, the gate is closed or others wait. */
bool xf_limit_take(struct xf_limit *l);
/** Wait in line; go() runs from a later xf_limit_give(), from the loop, or after set_max. */
void xf_limit_wait(struct xf_limit *l, struct xf_limit_want *want);
/** Wait no longer. Harmless when not waiting, but only of the limit that was last waited for. */
void xf_limit_forget(struct xf_limit *l, struct xf_limit_want *want);

/**
 * Give a permit back.
 *
 * started_ms      monotonic, when its request began: a throttle of a request that began before the
 *                 last cut does not cut again.
 * retry_after_ms  what the server asked for; -1 when nothing.
 */
void xf_limit_give(struct xf_limit *l,
                   enum xf_limit_how how,
                   int64_t started_ms,
                   int64_t retry_after_ms);

void xf_limit_set_max(struct xf_limit *l, unsigned max); /* at least 1 */
unsigned xf_limit_now(const struct xf_limit *l);
unsigned xf_limit_in_flight(const struct xf_limit *l);
/** The gate is closed: throttled or unreachable. */
bool xf_limit_is_closed(const struct xf_limit *l);
uint64_t xf_limit_throttled(const struct xf_limit *l); /* answers so far that asked for less */

#endif
