/*
 * store_check.c - every invariant of the store, from its rows alone.
 *
 * Most are queries that must find nothing: what they find is printed with their name. The deep part
 * decodes every manifest and result and compares them with the rows that count them.
 */
#include "common/base/file.h"
#include "coordinator/store_int.h"

#include <stdio.h>
#include <sys/stat.h>

enum { SHOWN_MAX = 20 /* findings of one rule */ };

struct rule {
    const char *name;
    const char *sql; /* columns: an id, and a text */
};

#define TASKS_OF_JOBS " FROM task t LEFT JOIN job j ON j.id = t.job WHERE "

/* A job's counter of an outcome against the rows; n: enum xf_outcome. */
#define OUTCOME_RULE(name, n)                                                                     \
    {                                                                                             \
        name " is the sum over tasks and uploads",                                                \
            "SELECT id, counted || ' counted, ' || have || ' in rows' FROM (SELECT j.id, j." name \
            " AS counted, (SELECT coalesce(sum(n_" name "), 0) FROM task WHERE job = j.id"        \
            " AND kind = " S_KIND_BATCH ") + (SELECT count(*) FROM upload WHERE job = j.id AND"   \
            " outcome = " #n ") AS have FROM job j) WHERE counted <> have"                        \
    }

static const struct rule rules[] = {
    {"listed is the sum of outcomes, pending and in flight",
     "SELECT id, listed || ' listed, ' || have || ' accounted for' FROM (SELECT j.id, j.listed,"
     " j.copied + j.skipped + j.failed + j.vanished + j.archived"
     " + (SELECT coalesce(sum(n_objects - n_reported), 0) FROM task WHERE job = j.id AND kind "
     "= " S_KIND_BATCH " AND state IN (" S_TASK_READY "," S_TASK_LEASED "," S_TASK_WITHDRAWN "))"
     " + (SELECT count(*) FROM upload WHERE job = j.id AND outcome = 0 AND orphan = 0) AS have"
     " FROM job j) WHERE listed <> have"},
    OUTCOME_RULE("copied", 1),
    OUTCOME_RULE("skipped", 2),
    OUTCOME_RULE("vanished", 4),
    OUTCOME_RULE("archived", 5),
    {"failed counts the open failures",
     "SELECT id, failed || ' counted, ' || have || ' open' FROM (SELECT j.id, j.failed, (SELECT"
     " count(*) FROM failure WHERE job = j.id AND state = " S_FAIL_OPEN ") AS have FROM job j)"
     " WHERE failed <> have"},
    {"every failed object has one failure row",
     "SELECT id, have || ' rows, ' || objects || ' objects' FROM (SELECT j.id, (SELECT count(*)"
     " FROM failure WHERE job = j.id) AS have, (SELECT coalesce(sum(n_failed), 0) FROM task WHERE"
     " job = j.id AND kind = " S_KIND_BATCH ") + (SELECT count(*) FROM upload WHERE job = j.id AND"
     " outcome = 3) AS objects FROM job j) WHERE have <> objects"},
    {"no counter is negative",
     "SELECT id, 'copied ' || copied || ' failed ' || failed FROM job WHERE min(listed, copied,"
     " skipped, failed, vanished, archived, bytes_listed, bytes_copied, bytes_through) < 0"},
    {"nothing more is reported of a task than is in it",
     "SELECT id, n_reported || ' of ' || n_objects FROM task WHERE n_reported > n_objects OR"
     " (state = " S_TASK_DONE " AND n_reported <> n_objects)"},
    {"a leased task has an owner",
     "SELECT id, agent FROM task WHERE state = " S_TASK_LEASED
     " AND (agent = '' OR length(instance) <> 16 OR attempt < 1)"},
    {"a leased task has one running attempt, any other none",
     "SELECT t.id, t.state || ' with ' || count(a.task) FROM task t LEFT JOIN attempt a ON"
     " a.task = t.id AND a.ended_ms = 0 GROUP BY t.id HAVING count(a.task) <>"
     " (t.state = " S_TASK_LEASED ") OR coalesce(max(a.attempt), t.attempt) <> t.attempt"},
    {"attempts are numbered without a gap",
     "SELECT t.id, t.attempt || ' against ' || count(a.task) FROM task t LEFT JOIN attempt a ON"
     " a.task = t.id GROUP BY t.id HAVING count(a.task) <> t.attempt"},
    {"an ended job has no task ready or leased",
     "SELECT t.id, 'job ' || t.job" TASKS_OF_JOBS "t.state IN (" S_TASK_READY "," S_TASK_LEASED
     ") AND coalesce(j.state, 99) NOT IN " S_JOB_LIVE},
    {"a stopped job has only abort tasks ready",
     "SELECT t.id, 'job ' || t.job" TASKS_OF_JOBS "t.state = " S_TASK_READY " AND j.stop <> 0 AND"
     " t.kind <> " S_KIND_ABORT},
    {"an ended job has no upload open",
     "SELECT u.id, 'job ' || u.job FROM upload u LEFT JOIN job j ON j.id = u.job WHERE u.state "
     "< " S_UP_DONE " AND coalesce(j.state, 99) NOT IN " S_JOB_LIVE},
    {"a completed job listed everything and failed nothing",
     "SELECT j.id, j.failed || ' failed' FROM job j WHERE j.state = 4 AND (j.failed + j.archived > "
     "0"
     " OR EXISTS(SELECT 1 FROM shard WHERE job = j.id AND state = " S_SHARD_OPEN "))"},
    {"an upload's state has its task",
     "SELECT u.id, 'state ' || u.state FROM upload u WHERE u.state < " S_UP_DONE " AND NOT EXISTS("
     "SELECT 1 FROM task t WHERE t.upload = u.id AND t.upload > 0 AND t.state IN (" S_TASK_READY
     "," S_TASK_LEASED ") AND (u.state = " S_UP_ABORTING
     " OR t.kind = CASE u.state WHEN " S_UP_PLANNED " THEN " S_KIND_OPEN " WHEN " S_UP_CREATING
     " THEN " S_KIND_OPEN " WHEN " S_UP_OPEN " THEN " S_KIND_PARTS " ELSE " S_KIND_CLOSE " END))"},
    {"an ended upload has no task ready",
     "SELECT t.id, 'upload ' || u.id FROM task t JOIN upload u ON u.id = t.upload WHERE t.upload > "
     "0"
     " AND t.state = " S_TASK_READY " AND u.state >= " S_UP_DONE},
    {"an upload is aborted alone",
     "SELECT t.id, 'upload ' || t.upload FROM task t WHERE t.upload > 0 AND t.kind = " S_KIND_ABORT
     " AND t.state IN (" S_TASK_READY "," S_TASK_LEASED ") AND EXISTS(SELECT 1 FROM task o WHERE"
     " o.upload = t.upload AND o.upload > 0 AND o.id <> t.id AND o.state IN (" S_TASK_READY
     "," S_TASK_LEASED "))"},
    {"an upload has an outcome when it is done, and an id when it is open",
     "SELECT id, 'state ' || state || ' outcome ' || outcome FROM upload WHERE"
     " (state = " S_UP_DONE ") <> (state >= " S_UP_DONE " AND outcome IN (1,2,4,5))"
     " OR (state < " S_UP_ABORTING " AND outcome <> 0)"
     " OR (state IN (" S_UP_OPEN "," S_UP_CLOSING ") AND (length(upload_id) = 0 OR n_parts = 0))"
     " OR (state <> " S_UP_PLANNED " AND state <> " S_UP_GONE " AND intent_ms = 0 AND orphan = 0)"},
    {"the part tasks of an upload cover its parts once",
     "SELECT u.id, u.n_parts || ' parts' FROM upload u WHERE u.state IN (" S_UP_OPEN
     "," S_UP_CLOSING ") AND u.n_parts <> (SELECT coalesce(sum(last_part - first_part + 1), 0) FROM"
     " task WHERE upload = u.id AND upload > 0 AND kind = " S_KIND_PARTS ")"},
    {"a shard has its job, and one cursor for its state",
     "SELECT s.id, 'job ' || s.job FROM shard s LEFT JOIN job j ON j.id = s.job WHERE j.id IS NULL"
     " OR s.state NOT IN (1,2) OR s.generation < 0"},
    {"shards of one listing share no key",
     "SELECT a.id, 'shard ' || b.id FROM shard a JOIN shard b ON b.job = a.job AND b.pass = a.pass"
     " AND b.source_no = a.source_no AND b.side = a.side AND b.id > a.id WHERE"
     " (length(b.hi) = 0 OR a.lo < b.hi) AND (length(a.hi) = 0 OR b.lo < a.hi)"},
    {"where a shard ends another begins",
     "SELECT a.id, 'hi' FROM shard a WHERE length(a.hi) > 0 AND NOT EXISTS(SELECT 1 FROM shard b"
     " WHERE b.job = a.job AND b.pass = a.pass AND b.source_no = a.source_no AND b.side = a.side"
     " AND b.lo = a.hi)"},
    {"a task is of no later generation than its shard",
     "SELECT t.id, 'shard ' || t.shard FROM task t JOIN shard s ON s.id = t.shard WHERE t.shard > 0"
     " AND t.generation > s.generation"},
    {"a batch has a manifest",
     "SELECT t.id, '' FROM task t LEFT JOIN manifest m ON m.task = t.id WHERE t.kind "
     "= " S_KIND_BATCH " AND m.task IS NULL"},
    {"a manifest or result has its task",
     "SELECT m.task, 'manifest' FROM manifest m LEFT JOIN task t ON t.id = m.task WHERE t.id IS "
     "NULL"
     " UNION ALL SELECT r.task, 'result' FROM result r LEFT JOIN task t ON t.id = r.task"
     " WHERE t.id IS NULL"},
};

struct check {
    struct xf_work *w;
    struct xf_buf *report;
    uint64_t n_wrong;
};

static void wrong(struct check *c, const char *rule, int64_t id, struct xf_str what)
{
    c->n_wrong++;
    xf_buf_putf(c->report, "wrong: %s: id %lld: %.*s\n", rule, (long long)id, XF_STR_ARG(what));
}

static enum xf_code run_rule(struct check *c, const struct rule *r, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool more;

    XF_TRY(xf_sql_start(&c->w->sql, &st, err, r->sql, ""));
    for (int i = 0; i < SHOWN_MAX; i++) {
        XF_TRY(xf_sql_next(&c->w->sql, st, &more, err));
        if (!more) {
            break;
        }
        wrong(c, r->name, xf_sql_i64(st, 0), xf_sql_str(st, 1));
    }
    return XF_OK;
}

/* ---- deep ---- */

static void compare_counts(struct check *c, sqlite3_stmt *st, const struct xf_result_set *set)
{
    static const enum xf_outcome order[] = {XF_OUTCOME_COPIED,
                                            XF_OUTCOME_SKIPPED,
                                            XF_OUTCOME_FAILED,
                                            XF_OUTCOME_VANISHED,
                                            XF_OUTCOME_ARCHIVED};
    struct xf_result_counts counts;

    xf_result_set_count(set, &counts);
    for (size_t i = 0; i < XF_ARRAY_LEN(order); i++) {
        if (counts.by_outcome[order[i]] != xf_sql_u32(st, 4 + (int)i)) {
            wrong(c,
                  "a result holds what its task counts",
                  xf_sql_i64(st, 0),
                  xf_str_c(xf_outcome_name(order[i])));
        }
    }
}

static enum xf_code check_blobs(struct check *c, sqlite3_stmt *st, struct xf_err *err)
{
    struct xf_task t = {.id = xf_sql_i64(st, 0),
                        .kind = (enum xf_task_kind)xf_sql_i64(st, 1),
                        .origin = xf_sql_i64(st, 2),
                        .n_objects = xf_sql_u32(st, 3)};
    struct xf_manifest loaded;
    struct xf_result_set set;

    enum xf_code rc = xf_manifest_load(c->w, &t, &loaded, err);
    if (rc != XF_OK) {
        wrong(c, "a manifest can be read", t.id, xf_str_c(err->msg));
        return rc == XF_E_CORRUPT ? XF_OK : rc;
    }
    XF_AUTO_MANIFEST m = loaded;
    rc = xf_result_load(c->w, t.id, m.n, &set, err);
    if (rc != XF_OK) {
        wrong(c, "a result can be read", t.id, xf_str_c(err->msg));
        return rc == XF_E_CORRUPT ? XF_OK : rc;
    }
    XF_AUTO_RESULT_SET results = set;
    compare_counts(c, st, &results);
    if (m.n != t.n_objects && xf_sql_i64(st, 9) != XF_TASK_DONE) { /* less when it was split */
        wrong(c, "a manifest holds the objects its task counts", t.id, XF_STR_EMPTY);
    }
    return XF_OK;
}

static enum xf_code check_deep(struct check *c, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool more;

    XF_TRY(xf_sql_start(&c->w->sql,
                        &st,
                        err,
                        "SELECT id, kind, origin, n_objects, n_copied, n_skipped, n_failed,"
                        " n_vanished, n_archived, state FROM task WHERE kind IN (" S_KIND_BATCH
                        "," S_KIND_RECHECK ")",
                        ""));
    for (;;) {
        XF_TRY(xf_sql_next(&c->w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        XF_TRY(check_blobs(c, st, err));
    }
}

/* Of a job that is being forgotten some rows are gone: the rules see views without it. Only then:
 * through a view they are slower. */
static enum xf_code hide_pruned(struct xf_work *w, struct xf_err *err)
{
#define PRUNED "(SELECT id FROM main.job WHERE pruned = 1)"
#define OF_OTHERS(table) \
    "CREATE TEMP VIEW " table " AS SELECT * FROM main." table " WHERE job NOT IN " PRUNED ";"
#define OF_OTHERS_TASKS(table)                                                             \
    "CREATE TEMP VIEW " table " AS SELECT * FROM main." table " WHERE task NOT IN (SELECT" \
    " id FROM main.task WHERE job IN " PRUNED ");"
    static const char views[] =
        "PRAGMA query_only = 0; " /* which counts what is in memory, too */
        "CREATE TEMP VIEW job AS SELECT * FROM main.job WHERE pruned = 0;" OF_OTHERS("task")
            OF_OTHERS("upload") OF_OTHERS("shard") OF_OTHERS("failure") OF_OTHERS_TASKS("manifest")
                OF_OTHERS_TASKS("result") "PRAGMA query_only = 1";
#undef OF_OTHERS_TASKS
#undef OF_OTHERS
#undef PRUNED
    int64_t n;

    XF_TRY(xf_sql_number(&w->sql, &n, err, "SELECT count(*) FROM job WHERE pruned = 1", ""));
    return n > 0 ? xf_sql_exec(&w->sql, views, err) : XF_OK;
}

static enum xf_code check_all(struct check *c, bool deep, struct xf_err *err)
{
    int version;

    XF_TRY(xf_store_set_up(&c->w->sql, false, err));
    XF_TRY(xf_sql_exec(&c->w->sql, "BEGIN", err));
    XF_TRY(xf_schema_check(&c->w->sql, &version, err));
    if (version != xf_schema_version()) {
        return XF_FAIL(err,
                       XF_E_VERSION,
                       "'%s' has schema %d: start the coordinator once to bring it to %d",
                       c->w->sql.path,
                       version,
                       xf_schema_version());
    }
    XF_TRY(hide_pruned(c->w, err));
    for (size_t i = 0; i < XF_ARRAY_LEN(rules); i++) {
        XF_TRY(run_rule(c, &rules[i], err));
    }
    if (deep) {
        XF_TRY(check_deep(c, err));
    }
    return xf_sql_exec(&c->w->sql, "COMMIT", err);
}

enum xf_code xf_store_check(
    const char *dir, bool deep, struct xf_buf *report, uint64_t *n_wrong, struct xf_err *err)
{
    struct xf_work w = {.zip = xf_zip_new()};
    struct check c = {.w = &w, .report = report};
    struct xf_buf path;
    struct stat st;
    enum xf_code rc;

    xf_buf_init(&path, 0);
    xf_buf_init(&w.raw, XF_BLOB_BYTES_MAX + 1);
    xf_buf_init(&w.raw2, XF_BLOB_BYTES_MAX + 1);
    xf_buf_putf(&path, "%s/xfer.db", dir);
    if (stat(path.ptr, &st) != 0) {
        rc = XF_FAIL(err, XF_E_NOT_FOUND, "no store at '%s'", path.ptr);
    } else {
        rc = xf_sql_open(&w.sql, path.ptr, NULL, SQLITE_OPEN_READWRITE, err);
    }
    if (rc == XF_OK) { /* leave the log as it is: the check is no writer */
        XF_ASSERT(sqlite3_db_config(w.sql.db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL) ==
                  SQLITE_OK);
        rc = check_all(&c, deep, err);
        xf_sql_close(&w.sql);
    }
    *n_wrong = c.n_wrong;
    xf_zip_free(w.zip);
    xf_buf_fini(&w.raw);
    xf_buf_fini(&w.raw2);
    xf_buf_fini(&path);
    return rc;
}
