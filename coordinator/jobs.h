/*
 * jobs.h - the live jobs: loaded from the store, listed, looked at each tick, ended.
 */
#ifndef XF_COORDINATOR_JOBS_H
#define XF_COORDINATOR_JOBS_H

#include "coordinator/core.h"
#include "coordinator/status.h"

/** Read what the store has that is not ended, load what is new, list open shards. The first time
 * the leases that were out when the last coordinator ended are taken over too. */
void xf_jobs_sync(struct xf_coordinator *c);
void xf_jobs_fini(struct xf_coordinator *c);
void xf_jobs_tick(struct xf_coordinator *c);

struct xf_cjob *xf_jobs_get(struct xf_coordinator *c, int64_t id);
struct xf_cjob *xf_jobs_find(struct xf_coordinator *c, struct xf_str public_id);

/** Work became ready in a job: count it and serve who waits. */
void xf_jobs_add_ready(struct xf_coordinator *c, int64_t job, uint32_t n);
/** An agent found an endpoint down: nobody gets work of the job for a while. */
void xf_jobs_hold(struct xf_coordinator *c, int64_t job, enum xf_code code, struct xf_str text);
/** Something was copied: the endpoints answer. */
void xf_jobs_went_on(struct xf_coordinator *c, int64_t job);

/* The order that holds for a job now. */
struct xf_msg_order xf_jobs_order(struct xf_coordinator *c, const struct xf_cjob *j);
/** XF_TASK_BIT()s that agents may take of it now. */
uint32_t xf_jobs_kinds(struct xf_coordinator *c, const struct xf_cjob *j);

struct xf_status_live xf_jobs_live(struct xf_coordinator *c, const struct xf_cjob *j);
void xf_jobs_note(struct xf_coordinator *c, int64_t job, const char *code, struct xf_str text);

/** The row was changed by an operator: use it, tell agents and lister. */
void xf_jobs_changed(struct xf_coordinator *c, struct xf_cjob *j);

extern const struct xf_lister_events xf_jobs_lister_events; /* arg: the coordinator */

#endif
