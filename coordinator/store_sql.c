/* store_sql.c - the statement cache, binding by format, and SQLite's codes as ours. */
#include "coordinator/store_sql.h"

#include "common/base/mem.h"

#include <stdarg.h>

enum xf_code xf_sql_fail(struct xf_sql *c, int rc, const char *doing, struct xf_err *err)
{
    enum xf_code code = XF_E_IO;
    const char *text = c->db != NULL ? sqlite3_errmsg(c->db) : sqlite3_errstr(rc);
    int sub = c->db != NULL ? sqlite3_extended_errcode(c->db) : rc;

    switch (rc & 0xff) {
    case SQLITE_FULL:
        return XF_FAIL_SUB(err,
                           XF_E_DISK,
                           sub,
                           "cannot %s '%s': the disk is full: make room there, nothing is lost",
                           doing,
                           c->path);
    case SQLITE_IOERR: code = XF_E_DISK; break;
    case SQLITE_CONSTRAINT: /* a row that the tables refuse: only its operation fails */
        code = XF_E_INVAL;
        break;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: code = XF_E_BUSY; break;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return XF_FAIL_SUB(err,
                           XF_E_CORRUPT,
                           sub,
                           "'%s' is damaged (%s): keep a copy of the directory, then restore it "
                           "from a backup or give an empty --data-dir and submit again",
                           c->path,
                           text);
    default: break;
    }
    return XF_FAIL_SUB(err, code, sub, "cannot %s '%s': %s", doing, c->path, text);
}

enum xf_code
xf_sql_open(struct xf_sql *c, const char *path, const char *vfs, int flags, struct xf_err *err)
{
    memset(c, 0, sizeof(*c));
    c->path = xf_xstrdup(path);
    int rc = sqlite3_open_v2(path, &c->db, flags | SQLITE_OPEN_NOMUTEX, vfs);
    if (rc == SQLITE_OK) {
        rc = sqlite3_extended_result_codes(c->db, 1);
    }
    if (rc == SQLITE_OK) {
        rc = sqlite3_busy_timeout(c->db, XF_SQL_BUSY_MS);
    }
    if (rc != SQLITE_OK) {
        enum xf_code code = xf_sql_fail(c, rc, "open", err);
        xf_sql_close(c);
        return code;
    }
    return XF_OK;
}

void xf_sql_close(struct xf_sql *c)
{
    for (size_t i = 0; i < XF_SQL_CACHE; i++) {
        (void)sqlite3_finalize(c->cache[i].st); /* repeats the error of the last step */
    }
    if (c->db != NULL) {
        XF_ASSERT(sqlite3_close(c->db) == SQLITE_OK);
    }
    xf_xfree(c->path);
    memset(c, 0, sizeof(*c));
}

static enum xf_code
prepare(struct xf_sql *c, const char *sql, sqlite3_stmt **st, struct xf_err *err)
{
    size_t i = ((uintptr_t)sql >> 3) % XF_SQL_CACHE;

    while (c->cache[i].sql != NULL && c->cache[i].sql != sql) {
        i = (i + 1) % XF_SQL_CACHE;
    }
    if (c->cache[i].sql == NULL) {
        XF_ASSERT(c->n_cached < XF_SQL_CACHE / 2);
        int rc = sqlite3_prepare_v3(c->db, sql, -1, SQLITE_PREPARE_PERSISTENT, st, NULL);
        if (rc != SQLITE_OK) {
            *st = NULL;
            return xf_sql_fail(c, rc, "use", err);
        }
        c->cache[i].sql = sql;
        c->cache[i].st = *st;
        c->n_cached++;
    }
    XF_ASSERT(sqlite3_stmt_busy(c->cache[i].st) == 0); /* not used twice at a time */
    *st = c->cache[i].st;
    return XF_OK;
}

static int bind_str(sqlite3_stmt *st, int at, struct xf_str s, bool is_text)
{
    const char *p = s.ptr != NULL ? s.ptr : "";

    return is_text ? sqlite3_bind_text64(st, at, p, s.len, SQLITE_STATIC, SQLITE_UTF8)
                   : sqlite3_bind_blob64(st, at, p, s.len, SQLITE_STATIC);
}

static enum xf_code
bind_all(struct xf_sql *c, sqlite3_stmt *st, const char *fmt, va_list ap, struct xf_err *err)
{
    int at = 0;
    int rc = SQLITE_OK;

    for (const char *f = fmt; *f != '\0' && rc == SQLITE_OK; f++) {
        at++;
        if (*f == 'i') {
            rc = sqlite3_bind_int64(st, at, va_arg(ap, int64_t));
        } else {
            XF_ASSERT(*f == 's' || *f == 'b');
            rc = bind_str(st, at, va_arg(ap, struct xf_str), *f == 's');
        }
    }
    XF_ASSERT(rc != SQLITE_OK || at == sqlite3_bind_parameter_count(st));
    return rc == SQLITE_OK ? XF_OK : xf_sql_fail(c, rc, "use", err);
}

enum xf_code xf_sql_exec(struct xf_sql *c, const char *sql, struct xf_err *err)
{
    int rc = sqlite3_exec(c->db, sql, NULL, NULL, NULL);

    return rc == SQLITE_OK ? XF_OK : xf_sql_fail(c, rc, "write", err);
}

enum xf_code xf_sql_next(struct xf_sql *c, sqlite3_stmt *st, bool *more, struct xf_err *err)
{
    int rc = sqlite3_step(st);

    *more = rc == SQLITE_ROW;
    if (rc == SQLITE_ROW || rc == SQLITE_DONE) {
        return XF_OK;
    }
    return xf_sql_fail(c, rc, sqlite3_stmt_readonly(st) != 0 ? "read" : "write", err);
}

enum xf_code xf_sql_run(struct xf_sql *c, struct xf_err *err, const char *sql, const char *fmt, ...)
{
    XF_AUTO_STMT *st = NULL;
    bool more;
    va_list ap;

    XF_TRY(prepare(c, sql, &st, err));
    va_start(ap, fmt);
    enum xf_code rc = bind_all(c, st, fmt, ap, err);
    va_end(ap);
    XF_TRY(rc);
    XF_TRY(xf_sql_next(c, st, &more, err));
    XF_ASSERT(!more);
    return XF_OK;
}

int64_t xf_sql_changed(const struct xf_sql *c)
{
    return sqlite3_changes64(c->db);
}

enum xf_code xf_sql_start(
    struct xf_sql *c, sqlite3_stmt **st, struct xf_err *err, const char *sql, const char *fmt, ...)
{
    va_list ap;

    XF_TRY(prepare(c, sql, st, err));
    va_start(ap, fmt);
    enum xf_code rc = bind_all(c, *st, fmt, ap, err);
    va_end(ap);
    return rc;
}

enum xf_code xf_sql_number(
    struct xf_sql *c, int64_t *out, struct xf_err *err, const char *sql, const char *fmt, ...)
{
    XF_AUTO_STMT *st = NULL;
    bool more;
    va_list ap;

    XF_TRY(prepare(c, sql, &st, err));
    va_start(ap, fmt);
    enum xf_code rc = bind_all(c, st, fmt, ap, err);
    va_end(ap);
    XF_TRY(rc);
    XF_TRY(xf_sql_next(c, st, &more, err));
    *out = more ? xf_sql_i64(st, 0) : 0;
    return XF_OK;
}

struct xf_str xf_sql_str(sqlite3_stmt *st, int col)
{
    const void *p = sqlite3_column_blob(st, col); /* text as well: the same bytes */

    return p == NULL ? XF_STR_EMPTY : xf_str_n(p, (size_t)sqlite3_column_bytes(st, col));
}
