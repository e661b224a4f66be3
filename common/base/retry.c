/* retry.c - exponential backoff with full jitter. */
#include "common/base/retry.h"

enum {
    BASE_TRANSIENT_MS = 50,
    CAP_TRANSIENT_MS = 20 * 1000,
    BASE_THROTTLED_MS = 500,
    CAP_THROTTLED_MS = 60 * 1000,
    RETRY_AFTER_MAX_MS = 120 * 1000
};

int64_t
xf_retry_wait_ms(enum xf_class cls, uint32_t tries, int64_t retry_after_ms, struct xf_rng *rng)
{
    bool throttled = cls == XF_CLASS_SLOW_DOWN;
    int64_t base = throttled ? BASE_THROTTLED_MS : BASE_TRANSIENT_MS;
    int64_t cap = throttled ? CAP_THROTTLED_MS : CAP_TRANSIENT_MS;
    int64_t top = tries >= 20 ? cap : base << tries;

    if (top > cap) {
        top = cap;
    }
    int64_t wait = (int64_t)(xf_rng_unit(rng) * (double)top);
    if (retry_after_ms > RETRY_AFTER_MAX_MS) {
        retry_after_ms = RETRY_AFTER_MAX_MS;
    }
    return wait > retry_after_ms ? wait : retry_after_ms;
}
