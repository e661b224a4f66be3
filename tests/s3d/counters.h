/*
 * counters.h - what was asked how often, and the log of the last requests. Any thread.
 */
#ifndef XF_TESTS_S3D_COUNTERS_H
#define XF_TESTS_S3D_COUNTERS_H

#include "common/base/mem.h"
#include "tests/s3d/ops.h"

struct s3d_counters; /* opaque */

struct s3d_counters *s3d_counters_new(void);
void s3d_counters_free(struct s3d_counters *c);
XF_AUTO_DEFINE(s3d_counters, s3d_counters_free)
void s3d_counters_reset(struct s3d_counters *c);

void s3d_count_connection(struct s3d_counters *c, bool opened);
void s3d_count_begin(struct s3d_counters *c);
/** status 0: no answer was sent. */
void s3d_count_end(struct s3d_counters *c, enum s3d_op op, int status, uint64_t in, uint64_t out);
void s3d_count_auth_failure(struct s3d_counters *c);
void s3d_count_slowdown(struct s3d_counters *c);
void s3d_counters_report(struct s3d_counters *c, struct xf_buf *out);

struct s3d_reqlog; /* opaque */
struct s3d_reqlog *s3d_reqlog_new(uint64_t cap);
void s3d_reqlog_free(struct s3d_reqlog *l);
struct s3d_logged {
    enum s3d_op op;
    const struct s3d_http *http;
    struct xf_str bucket;
    struct xf_str key;
    int status;
    int64_t ms;
};
void s3d_reqlog_add(struct s3d_reqlog *l, const struct s3d_logged *e);
/** The requests from number `since` on, of one op or all (S3D_OP_N), as JSON. */
void s3d_reqlog_report(struct s3d_reqlog *l, uint64_t since, enum s3d_op op, struct xf_buf *out);

#endif
