/*
 * store.h - the durable queue: jobs, listing shards, tasks, uploads, results and failures.
 *
 * A writer thread owns the database; operations (store_op.h) wait in a bounded queue and go many to
 * a transaction. An operation's callback runs on its port's loop after the COMMIT, exactly once;
 * one that fails is rolled back alone. A reader thread with its own connection serves the reads
 * (store_read.h).
 *
 * Crash: an operation that was called back with XF_OK is on the disk. One that was not may be there
 *        or not; submitting it again is safe. At every commit, for every job:
 *        listed = copied + skipped + failed + vanished + archived + pending + in flight.
 * Full:  when the disk is full or failing, writes fail with XF_E_DISK and change nothing, reads go
 *        on, and every later write is tried again.
 * Threads: any may open ports; a port belongs to its loop's thread.
 */
#ifndef XF_COORDINATOR_STORE_H
#define XF_COORDINATOR_STORE_H

#include "common/base/arena.h"
#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/rt/loop.h"
#include "coordinator/store_op.h"

struct xf_store;      /* opaque */
struct xf_store_port; /* opaque: a loop's end of the store */
struct xf_store_op;

enum xf_op_kind {
#define XF_OP_ENUM(name, member) XF_OP_##name,
    XF_STORE_WRITES(XF_OP_ENUM) XF_OP_READS,
    XF_OP_READS_ = XF_OP_READS - 1, /* the first read has the number XF_OP_READS */
    XF_STORE_READS(XF_OP_ENUM) XF_OP_N
#undef XF_OP_ENUM
};

typedef void(xf_store_done_fn)(struct xf_store_op *op);

struct xf_store_op {
    enum xf_op_kind kind;
    xf_store_done_fn *cb;
    void *arg;
    int64_t now_ms; /* wall clock, set at the submit */
    enum xf_code rc;
    struct xf_err err; /* when rc is not XF_OK */
    union {
        struct xf_in_job_create job_create;
        struct xf_in_job_state job_state;
        struct xf_in_job_stop job_stop;
        struct xf_in_job_finish job_finish;
        struct xf_in_page_commit page_commit;
        struct xf_in_shard_split shard_split;
        struct xf_in_tune tune;
        struct xf_in_prune prune;
        struct xf_in_prune_step prune_step;
        struct xf_in_lease lease;
        struct xf_in_checkpoint checkpoint;
        struct xf_in_give_back give_back;
        struct xf_in_upload_opened upload_opened;
        struct xf_in_upload_end upload_end;
        struct xf_in_abort_done abort_done;
        struct xf_in_recheck recheck;
        struct xf_in_retry retry;
        struct xf_in_note note;
        struct xf_in_agent_seen agent_seen;
        struct xf_in_agent_drain agent_drain;
        struct xf_in_read_jobs read_jobs;
        struct xf_in_read_job read_job;
        struct xf_in_read_page read_page; /* failures, uploads, notices, attempts */
        struct xf_in_read_results read_results;
    } in;
    union {
        struct xf_out_job_create job_create;
        struct xf_out_job_stop job_stop;
        struct xf_out_page_commit page_commit;
        struct xf_out_shard_split shard_split;
        struct xf_out_lease lease;
        struct xf_out_checkpoint checkpoint;
        struct xf_out_give_back give_back;
        struct xf_out_upload_opened upload_opened;
        struct xf_out_upload_end upload_end;
        struct xf_out_abort_done abort_done;
        struct xf_out_recheck recheck;
        struct xf_out_retry retry;
        struct xf_out_prune prune;
        struct xf_out_prune_step prune_step;
        struct xf_out_agent_seen agent_seen;
        struct xf_out_read_jobs read_jobs;
        struct xf_out_read_job read_job;
        struct xf_out_read_failures read_failures;
        struct xf_out_read_uploads read_uploads;
        struct xf_out_read_notices read_notices;
        struct xf_out_read_attempts read_attempts;
        struct xf_out_read_results read_results;
        struct xf_out_read_agents read_agents;
        struct xf_out_read_recover read_recover;
    } out;
    struct xf_arena in_arena;  /* xf_store_op_dup() */
    struct xf_arena out_arena; /* the store's */
    struct xf_store_port *port;
};

/** All inputs zero. */
struct xf_store_op *xf_store_op_new(enum xf_op_kind kind, xf_store_done_fn *cb, void *arg);
/** Only for one that was not submitted. */
void xf_store_op_free(struct xf_store_op *op);
XF_AUTO_DEFINE(xf_store_op, xf_store_op_free)
/** A copy that lives as long as the operation. */
struct xf_str xf_store_op_dup(struct xf_store_op *op, struct xf_str s);
/** n * size zeroed bytes that live as long as the operation. */
void *xf_store_op_calloc(struct xf_store_op *op, size_t n, size_t size);
const char *xf_op_name(enum xf_op_kind kind); /* "page_commit" */

struct xf_store_opts {
    const char *dir;              /* made when absent; holds xfer.db, its log, and the lock */
    const struct xf_clock *clock; /* NULL: the real one; borrowed */
    uint64_t max_bytes;           /* 0: what it held at the start and half of the room beyond */
    uint64_t wal_warn_bytes;      /* 0: 100 MiB */
    size_t queue_cap;             /* operations waiting for the writer; 0: 1024 */
    /* The rest is for tests and metrics; NULL: none. Called on the writer thread. */
    const char *vfs; /* SQLite's name of a file system layer */
    bool (*is_network_fs)(const char *dir);
    void (*before_commit)(void *arg, size_t n_ops);
    void (*after_commit)(void *arg, size_t n_ops, int64_t took_ns); /* before any callback */
    void *arg;
};

/**
 * Open or make the store, migrate it, and start its threads.
 *
 * Errors, each with path and remedy: XF_E_LOCKED  another process has the directory.
 *         XF_E_UNSUPPORTED  a network file system.   XF_E_VERSION  made by a newer xfer.
 *         XF_E_CORRUPT      damaged; nothing was changed, never started empty.
 *         XF_E_IO, XF_E_DISK  cannot be written.
 */
XF_MUST_CHECK enum xf_code
xf_store_open(const struct xf_store_opts *opts, struct xf_store **out, struct xf_err *err);
/** Every port is closed before. Commits what is queued, folds the log into the file, unlocks. */
void xf_store_close(struct xf_store *s);
XF_AUTO_DEFINE(xf_store, xf_store_close)

/** cap: most operations of this port under way; 0: 1024. Called on the loop's thread. */
XF_MUST_CHECK enum xf_code xf_store_port_open(struct xf_store *s,
                                              struct xf_loop *loop,
                                              size_t cap,
                                              struct xf_store_port **out,
                                              struct xf_err *err);
/** Waits for what is under way and runs its callbacks, which submit nothing. */
void xf_store_port_close(struct xf_store_port *p);

/** False when the queue or the port is full: the operation stays the caller's (back-pressure). */
XF_MUST_CHECK bool xf_store_submit(struct xf_store_port *p, struct xf_store_op *op);

struct xf_store_stats {
    uint64_t commits;
    uint64_t ops;
    uint64_t stale;       /* operations that were fenced off */
    uint64_t bytes;       /* of the file and its log */
    uint64_t max_bytes;   /* listing is refused above */
    uint64_t wal_bytes;   /* of the log */
    bool wal_is_long;     /* above wal_warn_bytes: a reader holds an old view, see the log */
    bool is_disk_failing; /* the last write failed with XF_E_DISK */
    size_t queued;
};
/** Any thread. */
void xf_store_stats(struct xf_store *s, struct xf_store_stats *out);

/**
 * Check every invariant of the store in `dir` from its rows alone, in one read transaction; another
 * process may be using it. Findings are lines in `report`; *n_wrong counts them (0: sound).
 * deep: also decode every manifest and result.
 * Errors: XF_E_NOT_FOUND, XF_E_IO, XF_E_VERSION, XF_E_CORRUPT: it could not be checked.
 */
XF_MUST_CHECK enum xf_code xf_store_check(
    const char *dir, bool deep, struct xf_buf *report, uint64_t *n_wrong, struct xf_err *err);

#endif
