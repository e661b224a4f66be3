/*
 * store_task_op.h - operations on tasks: lease, report, give back, and the steps of an upload.
 *
 * Every report carries a fence (task, attempt, instance) and is XF_E_STALE when another attempt or
 * process has the task. Codes and lifetimes as in store_op.h.
 */
#ifndef XF_COORDINATOR_STORE_TASK_OP_H
#define XF_COORDINATOR_STORE_TASK_OP_H

#include "coordinator/store_rows.h"

/* Leases ready tasks: uploads' ends first (close, abort), then parts, rechecks, then open and
 * batch by age. Each `ask` is served in turn. Only running jobs; abort tasks in any state. */
struct xf_lease_ask {
    int64_t job;
    uint32_t kinds;       /* XF_TASK_BIT() of each wanted */
    uint32_t max_tasks;   /* 1 or more */
    uint64_t max_objects; /* an upload's task counts as 1; one task is always given */
    uint64_t max_bytes;   /* likewise */
};
struct xf_in_lease {
    struct xf_str agent;
    const unsigned char *instance; /* XF_STORE_INSTANCE_LEN bytes */
    const struct xf_lease_ask *asks;
    size_t n_asks;
};
struct xf_lease_task {
    int64_t task;
    int64_t job;
    int64_t pass;
    enum xf_task_kind kind;
    uint32_t attempt;
    uint32_t source_no;
    uint32_t n_objects;
    uint64_t bytes;
    struct xf_str manifest; /* encoded; batch, recheck */
    struct xf_str result;   /* encoded; what is reported already: not to be done again */
    const struct xf_upload_row *upload; /* the others */
    uint32_t first_part;                /* parts: the range, both included */
    uint32_t last_part;
    const struct xf_store_part *parts; /* finished ones: of the range; close: all of them */
    size_t n_parts;
};
struct xf_out_lease {
    struct xf_lease_task *tasks;
    size_t n_tasks;
};

/* The fence of every report on a leased task. */
struct xf_store_fence {
    int64_t task;
    uint32_t attempt;
    const unsigned char *instance; /* XF_STORE_INSTANCE_LEN bytes */
};

/* What an agent reports as done; merging is safe to repeat. XF_E_STALE: nothing was merged, and a
 * batch that the report says anything about is marked for a recheck (out.rechecked). */
struct xf_in_checkpoint {
    struct xf_store_fence fence;
    struct xf_str delta;               /* batch, recheck: encoded result */
    const struct xf_store_part *parts; /* parts */
    size_t n_parts;
    uint64_t throttled;
    uint64_t retries;
    bool is_done; /* nothing is left of it, else XF_E_INVAL and nothing is merged */
};
struct xf_out_checkpoint {
    int64_t job;
    bool ended;        /* the task is done now, or was already by this attempt */
    bool all_parts_in; /* its upload's close task is ready now */
    bool rechecked;
    struct xf_result_counts added; /* what was new */
};

/* Ends an attempt without an end of the task: ready again after delay_ms (or withdrawn, when the
 * job is stopped or the upload given up). LOST and EXPIRED without progress count as deaths: at the
 * fifth a batch is split in two; a single object or an upload fails (XF_E_LIMIT) at the fifth of
 * those that it is to blame for, or at the 25th weak one. */
struct xf_in_give_back {
    struct xf_store_fence fence;
    enum xf_how how;    /* DRAINED, LOST, EXPIRED, UNFIT, FAILED or STOPPED */
    int64_t delay_ms;   /* 0 to XF_STORE_DELAY_MAX_MS */
    bool is_weak_death; /* the agent may well have died of something else */
    bool is_refused;    /* what the agent told cannot be taken: as bad as a death */
};
struct xf_out_give_back {
    int64_t job;
    bool split;
    bool failed; /* after too many deaths */
};

/* The open task's end: the upload id is committed, part tasks are made. After it, part 1 may go. */
struct xf_in_upload_opened {
    struct xf_store_fence fence;
    struct xf_str upload_id;
    struct xf_str digest;
    struct xf_str etag; /* of the source as the open saw it; empty: as listed */
    uint64_t size;      /* likewise; the layout covers it */
    uint64_t part_size;
    uint32_t n_parts; /* 1 to XF_STORE_PARTS_MAX */
    uint32_t sum;     /* the algorithm of its checksum, the engine's number; 0: none */
};
struct xf_out_upload_opened {
    int64_t job;
    int64_t upload;
    uint32_t n_tasks;
};

/* Ends an upload from its open, parts or close task: copied (close only), or any other outcome.
 * When something is left open at the destination, an abort task follows as soon as no other task
 * of it is leased; the caller tells those agents to stop (tasks with this upload). */
struct xf_in_upload_end {
    struct xf_store_fence fence;
    struct xf_result result; /* not pending */
    bool left_open;          /* false: this agent knows that no upload of this key is open */
    uint64_t throttled;
};
struct xf_out_upload_end {
    int64_t job;
    int64_t upload;
    bool to_abort;
};

/* The abort task's end: ListParts said 404, or (gave_up) the service refuses to abort; then a
 * notice names what is left. */
struct xf_in_abort_done {
    struct xf_store_fence fence;
    bool gave_up;
    struct xf_str why;
};
struct xf_out_abort_done {
    int64_t job;
};

/* A late report touched this batch: once it has ended, a recheck task with its manifest is made. */
struct xf_in_recheck {
    int64_t task;
};
struct xf_out_recheck {
    int64_t job;
    bool made; /* false: when it ends */
};

#endif
