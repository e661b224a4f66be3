/*
 * store_open.c - from a directory to two open connections: every refusal names path and remedy.
 *
 * Order: directory, kind of file system, lock, is it ours and whole, migrate. Nothing is written
 * to a database that is damaged, foreign or newer, and none is begun anew where one was.
 */
#include "common/base/file.h"
#include "common/base/log.h"
#include "coordinator/store_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define QUICK_CHECK_ALL_BYTES (UINT64_C(2) * 1024 * 1024 * 1024)
#define WAL_WARN_BYTES        (UINT64_C(100) * 1024 * 1024)

/* File systems that other hosts write to as well: SQLite's log and locks do not hold there. */
static bool is_network_fs(const char *dir)
{
    static const long magics[] = {0x6969 /* NFS */,
                                  0x517b /* SMB */,
                                  0xff534d42L /* CIFS */,
                                  0xfe534d42L /* SMB2 */,
                                  0x01021997 /* 9P */,
                                  0x00c36400 /* Ceph */,
                                  0x5346414f /* AFS */,
                                  0x7461636f /* OCFS2 */,
                                  0x0bd00bd0 /* Lustre */,
                                  0x47504653 /* GPFS */,
                                  0x01161970 /* GFS2 */,
                                  0x19830326 /* BeeGFS */};
    struct statfs fs;

    if (statfs(dir, &fs) != 0) {
        return false; /* the open will tell */
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(magics); i++) {
        if ((uint32_t)fs.f_type == (uint32_t)magics[i]) {
            return true;
        }
    }
    return false;
}

static char *join(const char *dir, const char *name)
{
    struct xf_buf b;

    xf_buf_init(&b, 0);
    xf_buf_putf(&b, "%s/%s", dir, name);
    return xf_buf_take(&b);
}

static enum xf_code
prepare_dir(struct xf_store *s, const struct xf_store_opts *opts, struct xf_err *err)
{
    if (xf_file_mkdirs(s->dir, 0700, err) != XF_OK) {
        return XF_WRAP(err, "data directory '%s' cannot be made (give another --data-dir)", s->dir);
    }
    if (access(s->dir, W_OK | X_OK) != 0) {
        return XF_FAIL_SUB(err,
                           XF_E_IO,
                           errno,
                           "data directory '%s' cannot be written: %s: give it to this user "
                           "(chown) or give another --data-dir",
                           s->dir,
                           xf_errno_text(errno));
    }
    if ((opts->is_network_fs != NULL ? opts->is_network_fs : is_network_fs)(s->dir)) {
        return XF_FAIL(err,
                       XF_E_UNSUPPORTED,
                       "data directory '%s' is on a network file system, where a database breaks: "
                       "give a --data-dir on a local disk",
                       s->dir);
    }
    XF_AUTO_FREE char *lock = join(s->dir, "lock");
    enum xf_code rc = xf_file_lock(lock, &s->lock_fd, err);
    if (rc == XF_E_LOCKED) {
        return XF_FAIL(err,
                       XF_E_LOCKED,
                       "data directory '%s' is in use by another xfer process: stop that one or "
                       "give another --data-dir",
                       s->dir);
    }
    return rc;
}

/* A log without its database means that the database was lost: never start empty beside it. */
static enum xf_code check_lost(struct xf_store *s, struct xf_err *err)
{
    struct stat db;
    struct stat wal;

    if (stat(s->db_path, &db) != 0 && stat(s->wal_path, &wal) == 0 && wal.st_size > 0) {
        return XF_FAIL(err,
                       XF_E_CORRUPT,
                       "'%s' is missing though its log '%s' is there: restore it, or give an empty "
                       "--data-dir",
                       s->db_path,
                       s->wal_path);
    }
    if (stat(s->db_path, &db) == 0 && db.st_size > 0 && access(s->db_path, R_OK | W_OK) != 0) {
        return XF_FAIL_SUB(err,
                           XF_E_IO,
                           errno,
                           "'%s' cannot be written: %s: give it to this user (chown)",
                           s->db_path,
                           xf_errno_text(errno));
    }
    return XF_OK;
}

/* Whole? A very large file is checked without its blobs, which carry checksums of their own. */
static enum xf_code check_whole(struct xf_store *s, struct xf_err *err)
{
    static const char *const all[] = {"PRAGMA quick_check(1)"};
    static const char *const rows[] = {"PRAGMA quick_check('job')",
                                       "PRAGMA quick_check('shard')",
                                       "PRAGMA quick_check('task')",
                                       "PRAGMA quick_check('upload')",
                                       "PRAGMA quick_check('failure')"};
    struct xf_sql *c = &s->write_work.sql;
    struct stat st;
    bool large = stat(s->db_path, &st) == 0 && (uint64_t)st.st_size > QUICK_CHECK_ALL_BYTES;
    const char *const *checks = large ? rows : all;

    for (size_t i = 0; i < (large ? XF_ARRAY_LEN(rows) : 1); i++) {
        XF_AUTO_STMT *q = NULL;
        bool found;
        XF_TRY(xf_sql_start(c, &q, err, checks[i], ""));
        XF_TRY(xf_sql_next(c, q, &found, err));
        if (!found || !xf_str_eq_c(xf_sql_str(q, 0), "ok")) {
            return XF_FAIL(err,
                           XF_E_CORRUPT,
                           "'%s' is damaged (%.*s): keep a copy of '%s', then restore it from a "
                           "backup or give an empty --data-dir and submit again",
                           s->db_path,
                           XF_STR_ARG(found ? xf_str_sub(xf_sql_str(q, 0), 0, 120) : XF_STR_EMPTY),
                           s->dir);
        }
    }
    return XF_OK;
}

enum xf_code xf_store_set_up(struct xf_sql *c, bool is_writer, struct xf_err *err)
{
    if (is_writer) {
        XF_AUTO_STMT *st = NULL;
        bool found;
        XF_TRY(xf_sql_start(c, &st, err, "PRAGMA journal_mode = WAL", ""));
        XF_TRY(xf_sql_next(c, st, &found, err));
        if (!found || !xf_str_eq_c(xf_sql_str(st, 0), "wal")) {
            return XF_FAIL(err,
                           XF_E_UNSUPPORTED,
                           "'%s' cannot have a write-ahead log: the file system does not take it: "
                           "give a --data-dir on a local disk",
                           c->path);
        }
    }
    XF_TRY(xf_sql_exec(c,
                       "PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;"
                       "PRAGMA journal_size_limit = 16777216; PRAGMA mmap_size = 0;"
                       "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = OFF;"
                       "PRAGMA cell_size_check = ON;",
                       err));
    return xf_sql_exec(c,
                       is_writer ? "PRAGMA cache_size = -16384"
                                 : "PRAGMA cache_size = -4096; PRAGMA query_only = ON",
                       err);
}

static int on_log(void *arg, sqlite3 *db, const char *name, int frames)
{
    struct xf_store *s = arg;

    (void)db;   /* the writer's */
    (void)name; /* there is only one */
    s->wal_frames = frames;
    return SQLITE_OK;
}

static void set_limits(struct xf_store *s, const struct xf_store_opts *opts)
{
    struct stat st;
    uint64_t used = stat(s->db_path, &st) == 0 ? (uint64_t)st.st_size : 0;

    s->wal_warn_bytes = opts->wal_warn_bytes == 0 ? WAL_WARN_BYTES : opts->wal_warn_bytes;
    s->is_auto_limit = opts->max_bytes == 0;
    s->base_bytes = used;
    atomic_store(&s->max_bytes, opts->max_bytes);
    atomic_store(&s->db_bytes, used);
    xf_store_measure_limit(s);
}

/* Half of the room there is for growth: what is free, and what we grew by since the start. Asked
 * again and again, so that room which somebody makes lets the listing go on. */
void xf_store_measure_limit(struct xf_store *s)
{
    struct xf_err ignored;
    uint64_t room = 0;
    uint64_t used = atomic_load(&s->db_bytes) + atomic_load(&s->wal_bytes);
    uint64_t grown = used > s->base_bytes ? used - s->base_bytes : 0;

    if (s->is_auto_limit && xf_file_free_bytes(s->dir, &room, &ignored) == XF_OK) {
        atomic_store(&s->max_bytes, s->base_bytes + (grown + room) / 2);
    }
}

/* The new file's name must survive a power cut as its content does. */
static enum xf_code sync_dir(const char *dir, struct xf_err *err)
{
    XF_AUTO_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0) {
        return XF_FAIL_SUB(
            err, XF_E_DISK, errno, "cannot sync '%s': %s", dir, xf_errno_text(errno));
    }
    return XF_OK;
}

static void work_init(struct xf_work *w)
{
    w->zip = xf_zip_new();
    xf_buf_init(&w->raw, XF_BLOB_BYTES_MAX + 1);
    xf_buf_init(&w->raw2, XF_BLOB_BYTES_MAX + 1);
}

static void work_fini(struct xf_work *w)
{
    xf_sql_close(&w->sql);
    xf_zip_free(w->zip);
    xf_buf_fini(&w->raw);
    xf_buf_fini(&w->raw2);
}

enum xf_code
xf_store_open_files(struct xf_store *s, const struct xf_store_opts *opts, struct xf_err *err)
{
    const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    int version;

    s->dir = xf_xstrdup(opts->dir);
    s->db_path = join(s->dir, "xfer.db");
    s->wal_path = join(s->dir, "xfer.db-wal");
    s->vfs = opts->vfs != NULL ? xf_xstrdup(opts->vfs) : NULL;
    work_init(&s->write_work);
    work_init(&s->read_work);
    XF_TRY(prepare_dir(s, opts, err));
    XF_TRY(check_lost(s, err));
    XF_TRY(xf_sql_open(&s->write_work.sql, s->db_path, s->vfs, flags, err));
    XF_TRY(xf_schema_check(&s->write_work.sql, &version, err));
    if (version > 0) {
        XF_TRY(check_whole(s, err));
    }
    XF_TRY(xf_store_set_up(&s->write_work.sql, true, err));
    XF_TRY(xf_schema_migrate(&s->write_work.sql, err));
    XF_TRY(sync_dir(s->dir, err));
    XF_TRY(xf_sql_open(&s->read_work.sql, s->db_path, s->vfs, SQLITE_OPEN_READWRITE, err));
    XF_TRY(xf_store_set_up(&s->read_work.sql, false, err));
    (void)sqlite3_wal_hook(s->write_work.sql.db, on_log, s); /* gives the former hook: none */
    set_limits(s, opts);
    return XF_OK;
}

void xf_store_close_files(struct xf_store *s)
{
    xf_sql_close(&s->read_work.sql);
    if (s->write_work.sql.db != NULL &&
        sqlite3_wal_checkpoint_v2(
            s->write_work.sql.db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK) {
        XF_WARN("store.log_kept", xf_f_c("path", s->wal_path)); /* the next open reads it */
    }
    work_fini(&s->read_work);
    work_fini(&s->write_work);
    xf_auto_close(&s->lock_fd);
    xf_xfree(s->dir);
    xf_xfree(s->db_path);
    xf_xfree(s->wal_path);
    xf_xfree(s->vfs);
}
