/*
 * queue.h - bounded queue from many threads to one, with an eventfd to wait on.
 *
 * Items are pointers; ownership goes from pusher to popper. Full is told to the pusher, who either
 * waits (xf_queue_push_wait, for threads that may block) or counts a drop. The lock is private and
 * held for a few instructions.
 */
#ifndef XF_RT_QUEUE_H
#define XF_RT_QUEUE_H

#include "common/base/mem.h"
#include "common/rt/loop.h"

struct xf_queue; /* opaque */

/** cap: most items at a time, at least 1. */
XF_MUST_CHECK enum xf_code xf_queue_new(size_t cap, struct xf_queue **out, struct xf_err *err);
/** Items still inside are the caller's to pop first. */
void xf_queue_free(struct xf_queue *q);
XF_AUTO_DEFINE(xf_queue, xf_queue_free)

/** False when full or closed: the item stays the caller's. Any thread. */
XF_MUST_CHECK bool xf_queue_push(struct xf_queue *q, void *item);
/** Waits for room; false only when closed. Any thread but the consumer. */
XF_MUST_CHECK bool xf_queue_push_wait(struct xf_queue *q, void *item);
/** Push past the bound: for completions whose number is bounded by requests already admitted. */
void xf_queue_push_reserved(struct xf_queue *q, void *item);
/** NULL when empty. Consumer only. */
void *xf_queue_pop(struct xf_queue *q);
/** Waits at most ms (-1: for ever); NULL on timeout, or when closed and empty. Consumer only. */
void *xf_queue_pop_wait(struct xf_queue *q, int64_t ms);
/** No more pushes are taken; waiters wake up. */
void xf_queue_close(struct xf_queue *q);
size_t xf_queue_len(struct xf_queue *q);

/** Call cb(arg) on the loop whenever items are there; cb pops until NULL. */
XF_MUST_CHECK enum xf_code xf_queue_attach(
    struct xf_queue *q, struct xf_loop *l, void (*cb)(void *arg), void *arg, struct xf_err *err);
void xf_queue_detach(struct xf_queue *q);

#endif
