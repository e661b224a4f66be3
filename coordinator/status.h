/*
 * status.h - what xferctl, the page and scripts see of jobs and agents, as JSON. Pure.
 *
 * The form is the design's (section 7) and is kept: fields may be added, none changes. The same
 * text goes to xferctl and over HTTP.
 */
#ifndef XF_COORDINATOR_STATUS_H
#define XF_COORDINATOR_STATUS_H

#include "common/base/json.h"
#include "coordinator/store_read.h"

/* What memory adds to a stored job. */
struct xf_status_live {
    struct xf_str reason; /* shown when the row has none; empty: none */
    struct xf_str detail; /* why nobody works for it; empty: somebody does, or it wants none */
    uint32_t agents_up;   /* connected */
    uint32_t agents_fit;  /* of them, who can work for it */
    struct xf_str unfit;  /* what one that cannot says; empty: none */
    double objects_s;
    double bytes_s;
    bool listing_failed;
};

struct xf_status_agent {
    struct xf_str id;
    const char *state; /* "up", "draining", "unfit", "lost" */
    struct xf_str reason;
    struct xf_str version;
    struct xf_str host;
    uint64_t in_flight;
    uint64_t leases;
    double objects_s;
    double bytes_s;
    double last_seen_s;
};

enum { XF_STATUS_KEYS_MAX = 3, XF_STATUS_GROUPS_MAX = 50 };

/** live may be NULL. Every function gives a new value, the caller's. */
struct xf_json *xf_status_job(const struct xf_job_row *row, const struct xf_status_live *live);
struct xf_json *xf_status_agent(const struct xf_status_agent *a);
/** {"jobs":[...],"agents":[...]}; takes both over. */
struct xf_json *xf_status_all(struct xf_json *jobs, struct xf_json *agents);

/** Failures grouped by code: count, one message, up to XF_STATUS_KEYS_MAX keys each. */
struct xf_json *xf_status_errors(const struct xf_failure_row *rows, size_t n);
struct xf_json *xf_status_uploads(const struct xf_upload_row *rows, size_t n);
struct xf_json *xf_status_notices(const struct xf_notice_row *rows, size_t n);
struct xf_json *xf_status_attempts(const struct xf_attempt_row *rows, size_t n);

#endif
