/*
 * store_sql.h - a connection to SQLite with its prepared statements; inside the store only.
 *
 * SQL texts are string literals: the address of one is its key in the cache, so each is prepared
 * once a connection. Arguments are bound by a format, one letter each:
 *     i  int64_t      s  struct xf_str as text      b  struct xf_str as bytes
 * They are borrowed until the statement is reset, at the end of the XF_AUTO_STMT's scope.
 * Threads: one owner.
 */
#ifndef XF_COORDINATOR_STORE_SQL_H
#define XF_COORDINATOR_STORE_SQL_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/str.h"

#include <sqlite3.h>

enum {
    XF_SQL_CACHE = 512,   /* more than twice the statements there are */
    XF_SQL_BUSY_MS = 5000 /* how long a statement waits for another process's lock */
};

struct xf_sql {
    sqlite3 *db;
    char *path;
    struct {
        const char *sql;
        sqlite3_stmt *st;
    } cache[XF_SQL_CACHE];
    size_t n_cached;
};

/** vfs: NULL for the default. On an error nothing is open. */
XF_MUST_CHECK enum xf_code
xf_sql_open(struct xf_sql *c, const char *path, const char *vfs, int flags, struct xf_err *err);
void xf_sql_close(struct xf_sql *c);

/** Fill err from the connection's last error: full and failing disks are XF_E_DISK. */
enum xf_code xf_sql_fail(struct xf_sql *c, int rc, const char *doing, struct xf_err *err);

/** Run constant statements that give no rows. */
XF_MUST_CHECK enum xf_code xf_sql_exec(struct xf_sql *c, const char *sql, struct xf_err *err);

/** Run one statement that gives no rows. */
XF_MUST_CHECK enum xf_code
xf_sql_run(struct xf_sql *c, struct xf_err *err, const char *sql, const char *fmt, ...);
/** Rows that the last xf_sql_run() changed. */
int64_t xf_sql_changed(const struct xf_sql *c);

/** Bind and make ready; then xf_sql_next() for each row. */
XF_MUST_CHECK enum xf_code xf_sql_start(
    struct xf_sql *c, sqlite3_stmt **st, struct xf_err *err, const char *sql, const char *fmt, ...);
/** Step: *more is false at the end. */
XF_MUST_CHECK enum xf_code
xf_sql_next(struct xf_sql *c, sqlite3_stmt *st, bool *more, struct xf_err *err);
/** The first row's first column as a number; 0 when there is no row. */
XF_MUST_CHECK enum xf_code xf_sql_number(
    struct xf_sql *c, int64_t *out, struct xf_err *err, const char *sql, const char *fmt, ...);

static inline void xf_sql_reset(sqlite3_stmt **st)
{
    if (*st != NULL) {
        (void)sqlite3_reset(*st);          /* repeats the error of the step, which was told */
        (void)sqlite3_clear_bindings(*st); /* always SQLITE_OK */
        *st = NULL;
    }
}
#define XF_AUTO_STMT __attribute__((cleanup(xf_sql_reset))) sqlite3_stmt

static inline int64_t xf_sql_i64(sqlite3_stmt *st, int col)
{
    return sqlite3_column_int64(st, col);
}
static inline uint64_t xf_sql_u64(sqlite3_stmt *st, int col)
{
    return (uint64_t)sqlite3_column_int64(st, col);
}
static inline uint32_t xf_sql_u32(sqlite3_stmt *st, int col)
{
    return (uint32_t)sqlite3_column_int64(st, col);
}
/** Text or bytes; borrowed until the next step. */
struct xf_str xf_sql_str(sqlite3_stmt *st, int col);
static inline struct xf_str xf_sql_dup(sqlite3_stmt *st, int col, struct xf_arena *a)
{
    return xf_arena_dup(a, xf_sql_str(st, col));
}

#endif
