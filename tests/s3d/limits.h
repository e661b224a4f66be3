/*
 * limits.h - modelled speed: latency by operation, requests a second by prefix, throughput of
 * copies. Any thread.
 */
#ifndef XF_TESTS_S3D_LIMITS_H
#define XF_TESTS_S3D_LIMITS_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "tests/s3d/ops.h"

struct s3d_limits; /* opaque */

struct s3d_limits *s3d_limits_new(void);
void s3d_limits_free(struct s3d_limits *l);
XF_AUTO_DEFINE(s3d_limits, s3d_limits_free)

/** "get=20,CopyObject=40,default=0"; empty: no latency. */
enum xf_code s3d_limits_latency(struct s3d_limits *l, struct xf_str text, struct xf_err *err);
/** "N[:read=N][:write=N][:segments=K][:burst=N]"; empty or 0: no limit. */
enum xf_code s3d_limits_rps(struct s3d_limits *l, struct xf_str text, struct xf_err *err);
/** Bytes a second of one copy ("100MiB"); empty or 0: no limit. */
enum xf_code s3d_limits_copy_rate(struct s3d_limits *l, struct xf_str text, struct xf_err *err);

int64_t s3d_limits_delay_ms(struct s3d_limits *l, enum s3d_op op);
/** Modelled time of copying that many bytes; 0 when not modelled. */
int64_t s3d_limits_copy_ms(struct s3d_limits *l, uint64_t bytes);
bool s3d_limits_has_copy_rate(struct s3d_limits *l);
/** May this request run now? */
bool s3d_limits_admit(
    struct s3d_limits *l, enum s3d_op op, struct xf_str bucket, struct xf_str key, int64_t mono_ms);

#endif
