/*
 * jobtab.h - the table of live jobs: find, count, tell. What moves them is in jobs.h.
 */
#ifndef XF_COORDINATOR_JOBTAB_H
#define XF_COORDINATOR_JOBTAB_H

#include "coordinator/core.h"
#include "coordinator/status.h"

struct xf_cjob *xf_jobtab_get(struct xf_coordinator *c, int64_t id);
struct xf_cjob *xf_jobtab_find(struct xf_coordinator *c, struct xf_str public_id);
/** Not loaded: its spec comes later. */
struct xf_cjob *xf_jobtab_add(struct xf_coordinator *c, const struct xf_job_row *row);
void xf_jobtab_drop(struct xf_coordinator *c, struct xf_cjob *j);
void xf_jobtab_fini(struct xf_coordinator *c);
void xf_jobtab_keep_row(struct xf_cjob *j, const struct xf_job_row *row);
void xf_jobtab_add_shard(struct xf_cjob *j, const struct xf_shard_row *row);
void xf_jobtab_drop_shards(struct xf_cjob *j);

/** Work became ready in a job: count it and serve who waits. */
void xf_jobtab_add_ready(struct xf_coordinator *c, int64_t job, uint32_t n);
/** An agent found an endpoint down: nobody gets work of the job for a while. */
void xf_jobtab_hold(struct xf_coordinator *c, int64_t job, enum xf_code code, struct xf_str text);
/** Something was copied: the endpoints answer. */
void xf_jobtab_went_on(struct xf_coordinator *c, int64_t job);
/** An agent reported failed objects: the next retry pass is for others first. */
void xf_jobtab_failed_by(struct xf_coordinator *c, int64_t job, uint64_t agent_number);
/** Why it waits: a word, and a text that may be empty. */
void xf_jobtab_set_reason(struct xf_cjob *j, const char *word, struct xf_str text);

/** The order that holds for a job now. */
struct xf_msg_order xf_jobtab_order(struct xf_coordinator *c, const struct xf_cjob *j);
/** XF_TASK_BIT()s that agents may take of it now. */
uint32_t xf_jobtab_kinds(struct xf_coordinator *c, const struct xf_cjob *j);

/** Take the present figures into the rate's window. */
void xf_jobtab_sample(struct xf_coordinator *c, struct xf_cjob *j);
struct xf_status_live xf_jobtab_live(struct xf_coordinator *c, const struct xf_cjob *j);
/** Keep a notice; one a job and word. */
void xf_jobtab_note(struct xf_coordinator *c, int64_t job, const char *code, struct xf_str text);

#endif
