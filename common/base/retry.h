/*
 * retry.h - how long to wait before the next try: full jitter, a pure function.
 *
 * Transient: rand(0,1) * min(50 ms * 2^n, 20 s). Throttled: base 500 ms, cap 60 s. A server's
 * Retry-After is a floor (as botocore's standard mode does, with wider caps for bulk work).
 */
#ifndef XF_BASE_RETRY_H
#define XF_BASE_RETRY_H

#include "common/base/err.h"
#include "common/base/rng.h"

/** tries: 0 for the first wait. retry_after_ms: what the server asked for, 0 if nothing. In ms. */
int64_t
xf_retry_wait_ms(enum xf_class cls, uint32_t tries, int64_t retry_after_ms, struct xf_rng *rng);

#endif
