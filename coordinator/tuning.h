/*
 * tuning.h - limits of a job and of the fleet, as they are now: the file's, or what `tune` set, by
 * the time of day.
 *
 * What the fleet may use is shared by the jobs that have work, evenly; what a job may use is shared
 * by the agents that are up. The sums hold at every moment, whoever comes or goes: shares are told
 * with each beat.
 */
#ifndef XF_COORDINATOR_TUNING_H
#define XF_COORDINATOR_TUNING_H

#include "coordinator/core.h"

/** What the job may use now: file, tuned, fleet. */
struct xf_tuning_now {
    uint64_t bytes_s;    /* 0: no limit, as below */
    uint64_t requests_s; /* of all agents together */
    uint32_t in_flight;  /* requests at a time, of each agent */
};
struct xf_tuning_now xf_tuning_now(const struct xf_coordinator *c, const struct xf_cjob *j);
/** Fill the limits of an order that lets the job run: one agent's share. */
void xf_tuning_share(const struct xf_coordinator *c,
                     const struct xf_cjob *j,
                     struct xf_msg_order *o);

/**
 * Check a setting and its value; "default" takes the file's again.
 *
 * Errors: XF_E_INVAL, which says what there is.
 */
XF_MUST_CHECK enum xf_code
xf_tuning_check(struct xf_str key, struct xf_str value, struct xf_err *err);
/** Keep a checked setting in memory; j NULL: the fleet's. An unknown or bad one is passed over. */
void xf_tuning_set(struct xf_tuning *t, struct xf_str key, struct xf_str value);
void xf_tuning_fini(struct xf_tuning *t);

/** {"bandwidth": "...", ...}: texts as set, null where nothing is. */
struct xf_json *xf_tuning_json(const struct xf_tuning *t);

#endif
