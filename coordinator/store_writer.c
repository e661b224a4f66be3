/*
 * store_writer.c - the writer thread: groups of operations, each group one transaction.
 *
 * A group is what waits in the queue, up to GROUP_OPS operations or GROUP_MS of work: nobody waits
 * for a group to fill. Each operation runs in a savepoint; one that fails is rolled back alone.
 *
 * When the transaction as a whole is lost (disk full or failing, at any statement or at the
 * COMMIT), none of the group happened: its operations run again, each in a transaction of its own,
 * so that a small one gets through where a large one does not fit, and the others fail with
 * XF_E_DISK. Nothing is remembered: the next group tries the disk again.
 *
 * Invariant: xf_store_ended() is called for an operation only when its transaction is over.
 */
#include "common/base/log.h"
#include "coordinator/store_int.h"

#include <sys/stat.h>

enum {
    GROUP_OPS = 256,
    GROUP_MS = 50,
    BUSY_TRIES = 12,    /* each waits XF_SQL_BUSY_MS */
    FOLD_FRAMES = 2000, /* fold the log in when it has grown by that much: 8 MB */
    LONG_LOG_RETRY_MS = 1000
};

struct group {
    struct xf_store_op *ops[GROUP_OPS];
    size_t n;
};

static void undo(struct xf_store *s)
{
    if (sqlite3_get_autocommit(s->write_work.sql.db) == 0) {
        /* A ROLLBACK that fails leaves the transaction to the next one; SQLite retries it. */
        (void)sqlite3_exec(s->write_work.sql.db, "ROLLBACK", NULL, NULL, NULL);
    }
}

/* Another process may hold the write lock for a while: that is waited for. */
static enum xf_code begin(struct xf_store *s, struct xf_err *err)
{
    enum xf_code rc = XF_OK;

    for (int i = 0; i < BUSY_TRIES; i++) {
        rc = xf_sql_exec(&s->write_work.sql, "BEGIN IMMEDIATE", err);
        if (rc != XF_E_BUSY) {
            return rc;
        }
        XF_WARN("store.waited", xf_f_c("path", s->db_path), xf_f_err(err));
    }
    return rc;
}

/* False: the transaction is lost. */
static bool run_one(struct xf_store *s, struct xf_store_op *op)
{
    struct xf_work *w = &s->write_work;
    struct xf_err ignored;

    op->rc = xf_sql_run(&w->sql, &op->err, "SAVEPOINT op", "");
    if (op->rc != XF_OK) {
        return false;
    }
    w->wal_bytes = atomic_load(&s->wal_bytes);
    if (op->kind == XF_OP_PAGE_COMMIT) {
        xf_store_measure_limit(s);
    }
    w->max_bytes = atomic_load(&s->max_bytes);
    xf_store_run(w, op);
    if (op->rc == XF_E_DISK || op->rc == XF_E_CORRUPT || op->rc == XF_E_IO ||
        sqlite3_get_autocommit(w->sql.db) != 0) {
        return false;
    }
    if (op->rc != XF_OK && !w->keep &&
        xf_sql_run(&w->sql, &ignored, "ROLLBACK TO op", "") != XF_OK) {
        return false;
    }
    return xf_sql_run(&w->sql, &ignored, "RELEASE op", "") == XF_OK;
}

static bool commit(struct xf_store *s, struct group *g, struct xf_err *err)
{
    int64_t start_ns;

    if (s->before_commit != NULL) {
        s->before_commit(s->arg, g->n);
    }
    start_ns = xf_clock_mono_ns();
    if (xf_sql_exec(&s->write_work.sql, "COMMIT", err) != XF_OK) {
        return false;
    }
    atomic_fetch_add(&s->commits, 1);
    atomic_fetch_add(&s->ops, g->n);
    if (s->after_commit != NULL) {
        s->after_commit(s->arg, g->n, xf_clock_mono_ns() - start_ns);
    }
    return true;
}

static void end_group(struct xf_store *s, struct group *g)
{
    for (size_t i = 0; i < g->n; i++) {
        xf_store_ended(s, g->ops[i]);
    }
    g->n = 0;
}

/* Fill a group from the queue and run it; false: the transaction is lost. */
static bool run_group(struct xf_store *s, struct group *g, struct xf_err *err)
{
    int64_t until_ns = xf_clock_mono_ns() + (int64_t)GROUP_MS * 1000000;
    struct xf_store_op *op = g->ops[0];

    if (begin(s, err) != XF_OK) {
        return false;
    }
    for (;;) {
        if (!run_one(s, op)) {
            *err = op->err;
            return false;
        }
        if (g->n == GROUP_OPS || xf_clock_mono_ns() > until_ns) {
            break;
        }
        op = xf_queue_pop(s->writes);
        if (op == NULL) {
            break;
        }
        g->ops[g->n++] = op;
    }
    return commit(s, g, err);
}

static void set_failing(struct xf_store *s, const struct xf_err *err)
{
    bool failing = err != NULL;

    atomic_store(&s->is_disk_failing, failing);
    if (failing == s->was_failing) {
        return;
    }
    s->was_failing = failing;
    if (failing) {
        XF_ERROR("store.disk_failed", xf_f_code(err->code), xf_f_err(err));
    } else {
        XF_INFO("store.disk_recovered", xf_f_c("path", s->db_path));
    }
}

/* One operation in a transaction of its own. */
static void run_alone(struct xf_store *s, struct xf_store_op *op)
{
    struct group g = {.ops = {op}, .n = 1};
    struct xf_err err;

    xf_err_clear(&err);
    bool ok = begin(s, &err) == XF_OK;
    if (ok && !run_one(s, op)) {
        err = op->err;
        ok = false;
    }
    if (!ok || !commit(s, &g, &err)) {
        undo(s);
        op->rc = err.code != XF_OK ? err.code : XF_E_DISK;
        op->err = err;
        if (op->rc == XF_E_IO) {
            op->rc = XF_E_DISK; /* whatever SQLite could not do with its file */
            op->err.code = XF_E_DISK;
        }
        if (op->rc == XF_E_CORRUPT) {
            XF_ERROR("store.damage_found", xf_f_c("op", xf_op_name(op->kind)), xf_f_err(&op->err));
        }
    }
    set_failing(s, op->rc == XF_E_DISK ? &op->err : NULL);
    xf_store_ended(s, op);
}

/* ---- the log ---- */

static void stat_sizes(struct xf_store *s)
{
    struct stat st;

    atomic_store(&s->db_bytes, stat(s->db_path, &st) == 0 ? (uint64_t)st.st_size : 0);
    atomic_store(&s->wal_bytes, stat(s->wal_path, &st) == 0 ? (uint64_t)st.st_size : 0);
}

/* Fold in what no reader needs. PASSIVE waits for nobody; TRUNCATE would, so not a moment. */
static void fold(struct xf_store *s, int mode)
{
    sqlite3 *db = s->write_work.sql.db;

    (void)sqlite3_busy_timeout(db, 0); /* SQLITE_OK by its documentation */
    /* What cannot be folded now is tried again later; the size of the log tells. */
    (void)sqlite3_wal_checkpoint_v2(db, NULL, mode, NULL, NULL);
    (void)sqlite3_busy_timeout(db, XF_SQL_BUSY_MS);
}

static void watch_log(struct xf_store *s)
{
    int64_t now_ms = xf_clock_mono_ns() / 1000000;

    if (s->wal_frames < s->wal_tried_frames) {
        s->wal_tried_frames = 0; /* it began anew */
    }
    if (s->wal_frames - s->wal_tried_frames >= FOLD_FRAMES) {
        fold(s, SQLITE_CHECKPOINT_PASSIVE);
        s->wal_tried_frames = s->wal_frames;
    }
    stat_sizes(s);
    if (atomic_load(&s->wal_bytes) > s->wal_warn_bytes &&
        now_ms - s->wal_tried_ms >= LONG_LOG_RETRY_MS) {
        s->wal_tried_ms = now_ms;
        fold(s, SQLITE_CHECKPOINT_TRUNCATE);
        stat_sizes(s);
    }
    bool is_long = atomic_load(&s->wal_bytes) > s->wal_warn_bytes;
    if (is_long != atomic_load(&s->wal_is_long)) {
        atomic_store(&s->wal_is_long, is_long);
        if (is_long) {
            XF_WARN("store.log_grown",
                    xf_f_c("path", s->wal_path),
                    xf_f_u64("size_bytes", atomic_load(&s->wal_bytes)),
                    xf_f_c("cause",
                           "another process holds an old view of the database open, such "
                           "as a sqlite3 shell or a backup: end it"));
        } else {
            XF_INFO("store.log_shrunk",
                    xf_f_c("path", s->wal_path),
                    xf_f_u64("size_bytes", atomic_load(&s->wal_bytes)));
        }
    }
}

void xf_store_writer_run(void *arg)
{
    struct xf_store *s = arg;
    struct group g = {.n = 0};
    struct xf_store_op *op;

    for (;;) {
        struct xf_err err;
        bool is_long = atomic_load(&s->wal_is_long);
        op = xf_queue_pop_wait(s->writes, is_long ? LONG_LOG_RETRY_MS : -1);
        if (op == NULL) {
            if (!is_long || atomic_load(&s->closing)) {
                return; /* closed and empty */
            }
            watch_log(s);
            continue;
        }
        xf_err_clear(&err);
        g.ops[0] = op;
        g.n = 1;
        if (run_group(s, &g, &err)) {
            set_failing(s, NULL);
            end_group(s, &g);
        } else {
            undo(s);
            for (size_t i = 0; i < g.n; i++) {
                run_alone(s, g.ops[i]);
            }
            g.n = 0;
        }
        watch_log(s);
    }
}
