/*
 * store_types.h - the states of what the store keeps, and what may follow what. No SQLite here.
 *
 * The numbers of every enum are stored: append only. The tables are drawn in store_states.c.
 */
#ifndef XF_COORDINATOR_STORE_TYPES_H
#define XF_COORDINATOR_STORE_TYPES_H

#include "common/base/fsm.h"
#include "proto/limits.h"

enum {
    XF_STORE_INSTANCE_LEN = 16,
    XF_STORE_AGENT_MAX = 128,
    XF_STORE_PARTS_MAX = 10000,
    XF_STORE_DELAY_MAX_MS = 600000
};

/* The last four are ends for ever (but for an operator's retry of completed_with_failures). */
enum xf_job_state {
    XF_JOB_QUEUED = 1,
    XF_JOB_RUNNING,
    XF_JOB_PAUSED,
    XF_JOB_COMPLETED,
    XF_JOB_COMPLETED_WITH_FAILURES,
    XF_JOB_FAILED,
    XF_JOB_CANCELLED,
    XF_JOB_STATE_N
};

enum xf_pass_kind { XF_PASS_COPY = 1, XF_PASS_RETRY, XF_PASS_KIND_N };

enum xf_shard_state { XF_SHARD_OPEN = 1, XF_SHARD_DONE, XF_SHARD_STATE_N };

enum xf_task_state {
    XF_TASK_READY = 1,
    XF_TASK_LEASED,
    XF_TASK_DONE,
    XF_TASK_FAILED,    /* its upload failed in it */
    XF_TASK_WITHDRAWN, /* not wanted any more: job stopped, upload failed elsewhere */
    XF_TASK_STATE_N
};

enum xf_upload_state {
    XF_UPLOAD_PLANNED = 1, /* nothing asked of the destination yet */
    XF_UPLOAD_CREATING,    /* intent committed: an upload may be open without our knowing its id */
    XF_UPLOAD_OPEN,        /* upload id committed; parts are going over */
    XF_UPLOAD_CLOSING,     /* all parts are in */
    XF_UPLOAD_ABORTING,    /* given up; something may still be open */
    XF_UPLOAD_DONE,        /* ended, nothing open; `outcome` says how */
    XF_UPLOAD_GONE, /* given up, nothing open; `outcome` is failed, or pending: job stopped */
    XF_UPLOAD_STATE_N
};

enum xf_failure_state {
    XF_FAILURE_OPEN = 1,
    XF_FAILURE_REQUEUED, /* its object is in a later pass */
    XF_FAILURE_STATE_N
};

/* Tables of names and of what may follow what; drawn in store_states.c. */
extern const struct xf_fsm_state xf_job_fsm[XF_JOB_STATE_N];
extern const struct xf_fsm_state xf_task_fsm[XF_TASK_STATE_N];
extern const struct xf_fsm_state xf_upload_fsm[XF_UPLOAD_STATE_N];
extern const struct xf_fsm_state xf_shard_fsm[XF_SHARD_STATE_N];
const char *xf_task_kind_name(enum xf_task_kind kind); /* "batch" */
const char *xf_how_name(enum xf_how how);              /* "expired" */
bool xf_job_state_is_end(enum xf_job_state s);

#endif
