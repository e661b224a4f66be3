/*
 * side.h - an S3 client for one side of a job, as the coordinator's host reaches it.
 *
 * Credentials are this host's own: the job names a profile or variables, or nothing (the usual
 * chain). Threads: the loop's.
 */
#ifndef XF_COORDINATOR_SIDE_H
#define XF_COORDINATOR_SIDE_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/s3/client.h"

struct xf_job_side;

struct xf_side_env {
    struct xf_loop *loop;
    struct xf_http *http;
    const struct xf_clock *clock; /* NULL: the real one */
    void (*on_done)(void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us);
    void *on_done_arg;
};

/**
 * Errors: XF_E_CREDS   no credentials, or no region, are to be found on this host; says where it
 *                      looked.
 *         XF_E_CONFIG  the endpoint is malformed.
 */
XF_MUST_CHECK enum xf_code xf_side_client(const struct xf_side_env *env,
                                          const struct xf_job_side *side,
                                          struct xf_s3 **out,
                                          struct xf_err *err);

#endif
