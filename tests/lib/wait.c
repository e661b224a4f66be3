/*
 * wait.c - polls at a fixed small pace on the real monotonic clock.
 */
#include "tests/lib/wait.h"

#include "common/base/clock.h"
#include "tests/lib/test.h"

#include <poll.h>

enum { PACE_MS = 2 };

bool xf_wait_for(xf_wait_fn *cond, void *arg, int64_t timeout_ms)
{
    int64_t deadline_ms = xf_clock_mono_ms(xf_clock_real()) + timeout_ms;
    while (!cond(arg)) {
        if (xf_clock_mono_ms(xf_clock_real()) >= deadline_ms) {
            return cond(arg);
        }
        (void)poll(NULL, 0, PACE_MS); /* a signal only makes the turn shorter */
    }
    return true;
}

void xf_wait_must(xf_wait_fn *cond, void *arg, int64_t timeout_ms, const char *what)
{
    if (!xf_wait_for(cond, arg, timeout_ms)) {
        fail_msg("not within %lld ms: %s", (long long)timeout_ms, what);
    }
}
