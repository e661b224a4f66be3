/*
 * store_prune_op.h - the operations that forget ended jobs; the form is told in store_op.h.
 */
#ifndef XF_COORDINATOR_STORE_PRUNE_OP_H
#define XF_COORDINATOR_STORE_PRUNE_OP_H

#include "common/base/str.h"

/* Marks ended jobs to be forgotten; nobody finds them from then on. XF_E_INVAL: `job` has not
 * ended. Again: those that are marked already are not given. */
struct xf_in_prune {
    int64_t job;       /* 0: every one that has ended */
    int64_t before_ms; /* wall clock: those that ended then or earlier */
    int64_t after;     /* 0, or the last call's `next` */
    uint32_t limit;    /* 1 to 1,000 */
    bool is_dry_run;   /* mark nothing */
};
struct xf_pruned {
    int64_t id;
    struct xf_str public_id;
};
struct xf_out_prune {
    struct xf_pruned *jobs;
    size_t n;
    int64_t next;
    bool more;
};

/* Deletes some rows of a marked job, the job's own at last. Call again while `more`. */
struct xf_in_prune_step {
    uint32_t limit; /* tasks with all that belongs to them, or other rows; 1 to 1,000 */
};
struct xf_out_prune_step {
    bool more; /* false: no job is marked */
};

#endif
