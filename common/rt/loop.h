/*
 * loop.h - an epoll loop: descriptors, timers, signals, and one "now" a turn.
 *
 * One thread runs a loop and is the only one to call these functions, but for xf_loop_stop(), which
 * any thread may call. Other threads reach a loop through an xf_queue (queue.h). Callbacks run on
 * the loop's thread, never inside the call that registered them.
 */
#ifndef XF_RT_LOOP_H
#define XF_RT_LOOP_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#include <stdint.h>

struct xf_loop; /* opaque */

enum xf_loop_events {
    XF_LOOP_IN = 1,
    XF_LOOP_OUT = 2,
    XF_LOOP_ERR = 4 /* hang-up or error; always delivered */
};

/** clock: NULL for the real one; borrowed. */
XF_MUST_CHECK enum xf_code
xf_loop_new(const struct xf_clock *clock, struct xf_loop **out, struct xf_err *err);
/** Everything registered must be gone or is forgotten; nothing is closed. */
void xf_loop_free(struct xf_loop *l);
XF_AUTO_DEFINE(xf_loop, xf_loop_free)

/** Run until xf_loop_stop(). */
void xf_loop_run(struct xf_loop *l);
/** One turn: wait at most wait_ms (0: do not wait), then timers and events. Tests. */
void xf_loop_turn(struct xf_loop *l, int wait_ms);
/** Make xf_loop_run() return after the present turn. Any thread, also inside a callback. */
void xf_loop_stop(struct xf_loop *l);

/** The turn's time: read once when the turn woke up. */
int64_t xf_loop_mono_ms(const struct xf_loop *l);
int64_t xf_loop_wall_ms(const struct xf_loop *l);
/** Called at the start of every turn, right after the clock was read and before any event. */
void xf_loop_on_turn(struct xf_loop *l, void (*cb)(void *arg, int64_t mono_ms), void *arg);

/* A descriptor being watched. The caller owns the storage and the descriptor. */
struct xf_watch {
    int fd;
    unsigned events;
    void (*cb)(struct xf_watch *w, unsigned events);
    void *arg;
    uint32_t slot; /* the loop's */
};
/** fd, cb and arg are set by the caller; events of enum xf_loop_events. */
XF_MUST_CHECK enum xf_code
xf_watch_start(struct xf_loop *l, struct xf_watch *w, unsigned events, struct xf_err *err);
XF_MUST_CHECK enum xf_code
xf_watch_change(struct xf_loop *l, struct xf_watch *w, unsigned events, struct xf_err *err);
/** Before the descriptor is closed. No callback of it runs after this returns. */
void xf_watch_stop(struct xf_loop *l, struct xf_watch *w);

/* A one-shot timer; the caller owns the storage. Start again from the callback for a period. */
struct xf_timer {
    int64_t at_ms;
    void (*cb)(struct xf_timer *t);
    void *arg;
    size_t heap_idx; /* the loop's; 0: not started */
};
/** (Re)start for an absolute monotonic time. */
void xf_timer_at(struct xf_loop *l, struct xf_timer *t, int64_t mono_ms);
/** (Re)start for `ms` after the turn's now. */
void xf_timer_in(struct xf_loop *l, struct xf_timer *t, int64_t ms);
void xf_timer_stop(struct xf_loop *l, struct xf_timer *t);
static inline bool xf_timer_is_started(const struct xf_timer *t)
{
    return t->heap_idx != 0;
}

/**
 * Deliver these signals (0-terminated) through the loop. Blocks them in the calling thread, which
 * must be the main thread before others are started.
 */
XF_MUST_CHECK enum xf_code xf_loop_signals(struct xf_loop *l,
                                           const int *signos,
                                           void (*cb)(void *arg, int signo),
                                           void *arg,
                                           struct xf_err *err);

#endif
