/*
 * jobs.h - what moves the live jobs: loading, the steps of their life, what the lister tells.
 */
#ifndef XF_COORDINATOR_JOBS_H
#define XF_COORDINATOR_JOBS_H

#include "coordinator/core.h"

/** Read what the store has that is not ended, load what is new, list open shards. The first time
 * the leases that were out when the last coordinator ended are taken over too. */
void xf_jobs_sync(struct xf_coordinator *c);
void xf_jobs_fini(struct xf_coordinator *c);
void xf_jobs_tick(struct xf_coordinator *c);
/** The row was changed by an operator: tell agents and lister. */
void xf_jobs_changed(struct xf_coordinator *c, struct xf_cjob *j);

/* Of struct xf_lister_events; arg: the coordinator. */
void xf_jobs_on_page(void *arg, int64_t job, size_t n_tasks);
void xf_jobs_on_listed(void *arg, int64_t job, int64_t shard);
void xf_jobs_on_listing_failed(void *arg, int64_t job, int64_t shard, const struct xf_err *err);
void xf_jobs_on_listing_wait(void *arg, int64_t job, const struct xf_err *err);

#endif
