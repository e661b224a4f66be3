/*
 * probe.h - can this job be done at all? Both sides are asked before a job is made.
 *
 * Every source url is listed for one or two keys, every destination bucket as well; that finds a
 * missing bucket, wrong keys, another region, an endpoint that is down, an empty source. Where the
 * job gives an ACL or copies locks, the destination's buckets are asked whether they take those
 * (C014). When both
 * sides name the same bucket by different endpoints, one HEAD tells whether it is the same bucket
 * (CASES C016). Bounded in time by `timeout_ms`. Threads: the
 * loop's.
 */
#ifndef XF_COORDINATOR_PROBE_H
#define XF_COORDINATOR_PROBE_H

#include "common/base/arena.h"
#include "common/job/side.h"

struct xf_job_spec;

enum { XF_PROBE_EXAMPLES_MAX = 2 };

struct xf_probe_result {
    struct xf_err err;   /* XF_OK: the job can start. The text is for the one who submits */
    bool is_unreachable; /* of err: a later try may help */
    size_t n_examples;
    struct xf_str example_from[XF_PROBE_EXAMPLES_MAX]; /* source keys */
    struct xf_str example_to[XF_PROBE_EXAMPLES_MAX];   /* the destination keys they map to */
    bool has_keys;
};

/**
 * Do source and destination overlap in one bucket? Refused, since the listing would meet its own
 * copies, or the copies replace what is still to be copied.
 *
 * is_alias  take buckets of one name as the same bucket, though the endpoints differ
 * Errors: XF_E_CONFIG  they do; names both urls.
 */
XF_MUST_CHECK enum xf_code
xf_probe_overlap(const struct xf_job_spec *spec, bool is_alias, struct xf_err *err);

/**
 * Start. `spec` is borrowed until `done`, which is called exactly once, from the loop; strings of
 * the result live until it returns. The probe frees itself.
 */
void xf_probe_start(const struct xf_side_env *env,
                    const struct xf_job_spec *spec,
                    int64_t timeout_ms,
                    void (*done)(void *arg, const struct xf_probe_result *res),
                    void *arg);

#endif
