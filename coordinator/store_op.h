/*
 * store_op.h - the operations of the store: what goes in, what comes out. Those on leased tasks are
 * in store_task_op.h, reads in store_read.h.
 *
 * One operation is a struct xf_store_op: make it, fill op->in.<kind>, submit it (store.h), read
 * op->rc, op->err and op->out.<kind> in the callback. Strings put in live until the callback: take
 * copies with xf_store_op_dup() when in doubt. What comes out lives in the operation, until the
 * callback returns. Every write is idempotent or fenced, so after XF_E_DISK or a crash the same
 * operation may be submitted again.
 *
 * Codes of every write: XF_E_DISK (full or failing, nothing changed, retry later), XF_E_INVAL (a
 * field out of range), XF_E_NOT_FOUND (no such row), XF_E_STALE (fenced: another attempt, owner,
 * cursor or state), XF_E_CANCELLED (the job is being stopped). Others are named at the operation.
 */
#ifndef XF_COORDINATOR_STORE_OP_H
#define XF_COORDINATOR_STORE_OP_H

#include "coordinator/store_prune_op.h"
#include "coordinator/store_read.h"
#include "coordinator/store_rows.h"
#include "coordinator/store_task_op.h"

/* X(name, member of in and out); reads are below XF_OP_READS. */
#define XF_STORE_WRITES(X)          \
    X(JOB_CREATE, job_create)       \
    X(JOB_STATE, job_state)         \
    X(JOB_STOP, job_stop)           \
    X(JOB_FINISH, job_finish)       \
    X(PAGE_COMMIT, page_commit)     \
    X(SHARD_SPLIT, shard_split)     \
    X(LEASE, lease)                 \
    X(CHECKPOINT, checkpoint)       \
    X(GIVE_BACK, give_back)         \
    X(UPLOAD_OPENED, upload_opened) \
    X(UPLOAD_END, upload_end)       \
    X(ABORT_DONE, abort_done)       \
    X(RECHECK, recheck)             \
    X(RETRY, retry)                 \
    X(NOTE, note)                   \
    X(AGENT_SEEN, agent_seen)       \
    X(AGENT_DRAIN, agent_drain)     \
    X(TUNE, tune)                   \
    X(PRUNE, prune)                 \
    X(PRUNE_STEP, prune_step)

/* Creates the job (queued), its copy pass and one open shard a source. The same submit_key again:
 * the first one's ids, is_new false. */
struct xf_in_job_create {
    struct xf_str submit_key;
    struct xf_str public_id; /* "j-...", made by the caller; used when new */
    struct xf_str name;
    struct xf_str spec; /* migrate.toml */
    int priority;
    const struct xf_str *shard_lo; /* n_sources of them: where each listing begins; may be empty */
    uint32_t n_sources;
};
struct xf_out_job_create {
    int64_t job;
    struct xf_str public_id;
    bool is_new;
};

/* Moves by compare-and-set: XF_E_STALE when the state is none of `from`. Ends are JOB_FINISH's. */
struct xf_in_job_state {
    int64_t job;
    uint32_t from;        /* XF_TO(state) of each that it may be in */
    enum xf_job_state to; /* 0: stays; only phase and reason are set */
    bool set_phase;       /* phase and reason as below; empty reason: none */
    struct xf_str phase;
    struct xf_str reason;
};

/* Stops a job: ready tasks are withdrawn, uploads that may be open get abort tasks, no page is
 * taken any more. Leased tasks stay: the caller tells their agents to stop and give back. Their
 * objects stay pending. Then JOB_FINISH with the same end. Again: harmless. */
struct xf_in_job_stop {
    int64_t job;
    enum xf_job_state end; /* CANCELLED or FAILED */
    struct xf_str reason;
};
struct xf_out_job_stop {
    uint64_t withdrawn; /* tasks */
};

/* Ends a job. XF_E_BUSY while a task is ready or leased, an upload not ended, or a shard open
 * (unless stopped). `completed` with a failed or archived object is XF_E_INVAL. */
struct xf_in_job_finish {
    int64_t job;
    enum xf_job_state end;
    struct xf_str reason; /* empty: keep */
    int exit_code;
};

struct xf_store_batch {
    struct xf_str manifest; /* encoded; its source_no is the shard's */
};

/* One listing page: batches, uploads, cursor and counters in one transaction, when the shard still
 * has that generation and cursor; else XF_E_STALE, and XF_OK with `repeated` when exactly this page
 * is in already. Keys at or beyond the shard's end are dropped: another shard has them. XF_E_LIMIT:
 * the store is above max_bytes; try again later. */
struct xf_in_page_commit {
    int64_t shard;
    uint32_t generation;
    struct xf_str cursor_old;
    struct xf_str cursor_new; /* differs from cursor_old unless is_last */
    bool is_last;             /* closes the shard */
    uint64_t keys_returned;
    uint64_t list_requests;
    const struct xf_store_batch *batches;
    size_t n_batches;
    const struct xf_object *uploads; /* objects that go in parts, one upload each */
    size_t n_uploads;
};
struct xf_out_page_commit {
    bool repeated;
    bool is_done; /* the shard is: it was the last page, or went to the shard's end */
    uint64_t listed;
};

/* The open shard that `point` lies in, its cursor below, keeps the keys up to and with the point; a
 * new shard, whose cursor it is, gets the rest. XF_E_STALE when there is none (any more). The same
 * split again: the shard that it made. */
struct xf_in_shard_split {
    int64_t like; /* a shard of the same listing */
    uint32_t generation;
    struct xf_str point; /* 1 to 1,024 bytes */
};
struct xf_out_shard_split {
    int64_t shard;    /* the new one */
    int64_t whole;    /* which was split */
    struct xf_str hi; /* the new one's end; empty: none */
};

/* Open failures become batches and uploads of a retry pass, at most `limit` objects at a call;
 * call again with the same pass while `more`. Failures go back to pending in the counters. Those
 * whose upload is being aborted still are left for a later call. */
struct xf_in_retry {
    int64_t job;
    int64_t pass;          /* 0: a new pass, when there is anything to do */
    uint32_t max_attempts; /* retryable ones with fewer; ignored when is_forced */
    enum xf_class only;    /* XF_CLASS_NONE: every class */
    bool is_forced;        /* an operator's: also what is not retryable; reopens
                              completed_with_failures as running */
    uint32_t limit;        /* 1 to 10,000 */
};
struct xf_out_retry {
    int64_t pass;
    uint64_t n_objects;
    bool more;
};

/* Keeps a setting of a job that has not ended (XF_E_INVAL: it has), or of the fleet. */
struct xf_in_tune {
    int64_t job; /* 0: the fleet's */
    struct xf_str name;
    struct xf_str value; /* empty: it is taken away */
};

struct xf_in_note {
    int64_t job; /* 0: of no job */
    struct xf_str code;
    struct xf_str text;
};
struct xf_in_agent_seen {
    struct xf_str id;
    const unsigned char *instance;
    struct xf_str version;
    struct xf_str host;
    struct xf_str reason; /* why it is unfit; empty */
};
struct xf_out_agent_seen {
    bool is_draining; /* by the last AGENT_DRAIN of it */
};

/* An operator's wish outlives a restart. XF_E_NOT_FOUND: no agent of that id was ever seen. */
struct xf_in_agent_drain {
    struct xf_str id;
    bool on;
};

#endif
