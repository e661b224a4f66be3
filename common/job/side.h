/*
 * side.h - an S3 client for one side of a job, as this host reaches it: endpoint, region,
 * addressing, trust and credentials.
 *
 * The region is the job's; else the environment's or the profile's; else us-east-1. One that the
 * job does not give is looked for where it is wrong (see client_again.c); one that it gives is
 * meant: a bucket elsewhere is an error. Credentials are this host's own: the job names a profile
 * or variables, or nothing (the usual chain). Threads: the loop's.
 */
#ifndef XF_JOB_SIDE_H
#define XF_JOB_SIDE_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/s3/client.h"

struct xf_creds_source;
struct xf_job_side;

struct xf_side_env {
    struct xf_loop *loop;
    struct xf_http *http;
    const struct xf_clock *clock; /* NULL: the real one */
    void (*on_done)(void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us);
    void *on_done_arg;
    enum xf_code (*creds)(void *arg, /* NULL: as the side says */
                          const struct xf_job_side *side,
                          struct xf_creds_source **out,
                          struct xf_err *err);
    void *creds_arg;
    bool reads_objects; /* with the side's customer key, which else need not be on this host */
};

/**
 * Errors: XF_E_CREDS   no credentials, or no customer key, are to be found on this host; says where
 *                      it looked.
 *         XF_E_CONFIG  the endpoint is malformed, or AWS has none like it.
 */
XF_MUST_CHECK enum xf_code xf_side_client(const struct xf_side_env *env,
                                          const struct xf_job_side *side,
                                          struct xf_s3 **out,
                                          struct xf_err *err);

#endif
