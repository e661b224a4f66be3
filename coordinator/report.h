/*
 * report.h - lines of a job's report, as CSV in the layout of S3 Batch's completion reports or as
 * JSON lines. Pure.
 *
 * CSV: Bucket,Key,VersionId,TaskStatus,ErrorCode,HTTPStatusCode,ResultMessage, no heading, the key
 * percent-encoded, so that the first two fields can be fed back as a list of keys. A listing that
 * is incomplete has a line of its own, with ErrorCode `listing`.
 */
#ifndef XF_COORDINATOR_REPORT_H
#define XF_COORDINATOR_REPORT_H

#include "common/base/str.h"
#include "coordinator/store_read.h"

struct xf_job_spec;

struct xf_report_opts {
    const struct xf_job_spec *spec;
    bool is_json;
    bool only_failed; /* what keeps the job from `completed`: failed, archived, pending ones */
};

void xf_report_results(const struct xf_report_opts *o,
                       const struct xf_result_row *rows,
                       size_t n,
                       struct xf_buf *out);
/** Lines for the notices of code "listing". */
void xf_report_notices(const struct xf_report_opts *o,
                       const struct xf_notice_row *rows,
                       size_t n,
                       struct xf_buf *out);

/* Where a report goes on: a small text, opaque to the client. */
struct xf_report_cursor {
    bool is_past_notices;
    bool uploads;
    int64_t after;
};
void xf_report_cursor_put(const struct xf_report_cursor *c, struct xf_buf *out);
/** An empty text is the start. False: not one of ours. */
bool xf_report_cursor_parse(struct xf_str text, struct xf_report_cursor *c);

#endif
