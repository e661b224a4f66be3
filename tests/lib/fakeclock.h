/*
 * fakeclock.h - a clock that stands still until the test moves it.
 *
 * The times are atomic: one thread may move them while others read.
 */
#ifndef XF_TESTS_LIB_FAKECLOCK_H
#define XF_TESTS_LIB_FAKECLOCK_H

#include "common/base/clock.h"

#include <stdatomic.h>
#include <stdint.h>

struct xf_fakeclock {
    struct xf_clock clock; /* pass &f->clock */
    _Atomic int64_t mono_ms;
    _Atomic int64_t wall_ms;
};

/* Starts at monotonic 1,000,000 ms and at 2026-03-01T10:15:00Z. The struct must not move
 * afterwards. */
void xf_fakeclock_init(struct xf_fakeclock *f);

/* Moves both times on by ms (not negative). */
void xf_fakeclock_advance(struct xf_fakeclock *f, int64_t ms);

/* Sets the wall clock alone, as an operator or NTP does; it may go back. */
void xf_fakeclock_set_wall(struct xf_fakeclock *f, int64_t wall_ms);

#endif
