/*
 * spec_int.h - what the files of the job spec share; private to them.
 */
#ifndef XF_JOB_SPEC_INT_H
#define XF_JOB_SPEC_INT_H

#include "common/job/spec.h"

/* What the text says, before it is complete. */
struct xf_job_raw_side {
    struct xf_str url;
    struct xf_conf_list urls;
    int path_style; /* enum xf_conf_switch; unset when it says the default */
};

/* The spec is the first member, so that a struct xf_job_spec of ours is one of these. */
struct xf_job_raw {
    struct xf_job_spec spec;
    struct xf_job_raw_side source;
    struct xf_job_raw_side destination;
    uint64_t multipart_threshold; /* 0: as part_size */
    struct xf_str bandwidth;      /* schedule.h */
    struct xf_str request_rate;
    struct xf_conf *conf;    /* owns the strings */
    struct xf_job_url *urls; /* of both sides, the source's first; owned */
};

extern const struct xf_conf_table xf_job_spec_table;

/* Check what the table cannot, and complete the spec. */
enum xf_code xf_job_spec_complete(struct xf_job_raw *raw, struct xf_err *err);

#endif
