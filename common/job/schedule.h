/*
 * schedule.h - a limit that may change by the time of day: "2Gbit/s", or "08:00,2Gbit/s 20:00,off".
 *
 * Each entry holds from its time until the next one's, the last one until the first of the next
 * day. Times are those of the host that applies it, as `date` shows them there.
 */
#ifndef XF_JOB_SCHEDULE_H
#define XF_JOB_SCHEDULE_H

#include "common/base/err.h"
#include "common/base/str.h"

#include <stdint.h>

#define XF_SCHEDULE_MAX      24  /* entries */
#define XF_SCHEDULE_TEXT_MAX 512 /* bytes of one as text */

enum xf_schedule_unit {
    XF_SCHEDULE_BYTES_S,   /* a rate, as "10Gbit/s" or "100MiB/s"; at least 1,000 bytes a second */
    XF_SCHEDULE_REQUESTS_S /* "500/s" or "500" */
};

struct xf_schedule_entry {
    uint16_t minute; /* of the day, rising */
    uint64_t limit;  /* a second; 0: none */
};

struct xf_schedule {
    struct xf_schedule_entry at[XF_SCHEDULE_MAX];
    size_t n; /* 0: no limit at any time */
};

/** Errors: XF_E_INVAL, which says what is expected; *out is untouched. "off" and "" are no limit.
 */
XF_MUST_CHECK enum xf_code xf_schedule_parse(struct xf_str text,
                                             enum xf_schedule_unit unit,
                                             struct xf_schedule *out,
                                             struct xf_err *err);
/** The limit at a minute of the day (0 to 1,439); 0: none. */
uint64_t xf_schedule_at(const struct xf_schedule *s, unsigned minute);
/** The minute of this host's day at a wall clock time. */
unsigned xf_schedule_minute(int64_t wall_ms);

#endif
