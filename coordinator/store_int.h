/*
 * store_int.h - the store's own structure, shared by its threads; inside the store only.
 *
 * Each field says whose it is. What several threads read is atomic.
 */
#ifndef XF_COORDINATOR_STORE_INT_H
#define XF_COORDINATOR_STORE_INT_H

#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "coordinator/store.h"
#include "coordinator/store_work.h"

#include <stdatomic.h>

struct xf_store_port {
    struct xf_store *store;
    struct xf_queue *done; /* ended operations, for the loop */
    size_t under_way;      /* submitted and not called back; the loop's thread */
    size_t cap;
    struct xf_owner owner;
};

struct xf_store {
    /* set by the open, then read only */
    const struct xf_clock *clock;
    char *dir;
    char *db_path;
    char *wal_path;
    char *vfs; /* NULL: the default */
    _Atomic uint64_t max_bytes;
    bool is_auto_limit;  /* max_bytes follows the room on the disk */
    uint64_t base_bytes; /* what the store held when it was opened */
    uint64_t wal_warn_bytes;
    void (*before_commit)(void *arg, size_t n_ops);
    void (*after_commit)(void *arg, size_t n_ops, int64_t took_ns);
    void *arg;
    int lock_fd;
    struct xf_queue *writes;
    struct xf_queue *reads;
    struct xf_thread writer;
    struct xf_thread reader;

    struct xf_work write_work; /* the writer's */
    bool in_txn;
    int64_t wal_frames;
    int64_t wal_tried_frames; /* when the log was last folded in */
    int64_t wal_tried_ms;
    bool was_failing;
    struct xf_work read_work; /* the reader's */

    _Atomic uint64_t commits;
    _Atomic uint64_t ops;
    _Atomic uint64_t stale;
    _Atomic uint64_t db_bytes;
    _Atomic uint64_t wal_bytes;
    _Atomic bool wal_is_long;
    _Atomic bool is_disk_failing;
    _Atomic bool closing;
    _Atomic size_t n_ports;
};

/* Run op's function; rc and err are set, outputs emptied first. */
void xf_store_run(struct xf_work *w, struct xf_store_op *op);
/* Hand an ended operation to its port. */
void xf_store_ended(struct xf_store *s, struct xf_store_op *op);

/* ---- store_writer.c ---- */
void xf_store_writer_run(void *arg); /* struct xf_store */
/* ---- store_open.c ---- */
/** Directory, lock, checks, migration and both connections. */
XF_MUST_CHECK enum xf_code
xf_store_open_files(struct xf_store *s, const struct xf_store_opts *opts, struct xf_err *err);
void xf_store_close_files(struct xf_store *s);
/** Pragmas of every connection that writes or reads beside a writer. */
XF_MUST_CHECK enum xf_code xf_store_set_up(struct xf_sql *c, bool is_writer, struct xf_err *err);

/** What the store may hold now; above it listing is refused. Writer thread. */
void xf_store_measure_limit(struct xf_store *s);

#endif
