/*
 * clock.h - the seam for time.
 *
 * Monotonic time is for deadlines and durations, wall time for people and for S3's dates. A test
 * passes its own struct xf_clock; production code passes xf_clock_real(). Milliseconds everywhere.
 */
#ifndef XF_BASE_CLOCK_H
#define XF_BASE_CLOCK_H

#include "common/base/str.h"

#include <stdint.h>

struct xf_clock {
    int64_t (*mono_ms)(void *arg); /* since an arbitrary start; never goes back */
    int64_t (*wall_ms)(void *arg); /* Unix epoch, UTC */
    void *arg;
};

const struct xf_clock *xf_clock_real(void);
int64_t xf_clock_mono_ms(const struct xf_clock *c);
int64_t xf_clock_wall_ms(const struct xf_clock *c);
/** Monotonic nanoseconds of the real clock, for measuring short spans. */
int64_t xf_clock_mono_ns(void);

enum { XF_TIME_TEXT_MAX = 40 };
/** RFC 3339 UTC with milliseconds ("2026-03-01T10:15:04.118Z"), or without when ms is false. */
void xf_time_rfc3339(int64_t wall_ms, bool with_ms, char out[XF_TIME_TEXT_MAX]);
/** "20130524T000000Z", as SigV4 wants it. */
void xf_time_amz(int64_t wall_ms, char out[XF_TIME_TEXT_MAX]);
/** "Fri, 24 May 2013 00:00:00 GMT". */
void xf_time_http(int64_t wall_ms, char out[XF_TIME_TEXT_MAX]);
/** RFC 3339 or S3's "2013-05-24T00:00:00.000Z" (fraction optional; Z or +hh:mm). */
bool xf_time_parse_rfc3339(struct xf_str s, int64_t *wall_ms);
/** An HTTP date (IMF-fixdate only, RFC 9110 section 5.6.7). */
bool xf_time_parse_http(struct xf_str s, int64_t *wall_ms);
/** Days since 1970-01-01 of a proleptic Gregorian date; month 1..12. */
int64_t xf_time_days(int64_t year, int month, int day);

#endif
