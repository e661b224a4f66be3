/*
 * store_schema.c - the migrations.
 *
 * Never change one that was released: add the next. Blobs lie in tables of their own, so that a
 * change of state writes a small row. Rows carry pass, side and source number; shards and tasks
 * carry owner and epoch (a task's attempt), though one coordinator works alone today.
 */
#include "coordinator/store_schema.h"

#include "common/base/mem.h"
#include "coordinator/store_types.h"

#define SAME(number, value) \
    _Static_assert((number) == (int)(value), "a number in SQL is its enum's")
SAME(N_TASK_READY, XF_TASK_READY);
SAME(N_TASK_LEASED, XF_TASK_LEASED);
SAME(N_TASK_DONE, XF_TASK_DONE);
SAME(N_TASK_FAILED, XF_TASK_FAILED);
SAME(N_TASK_WITHDRAWN, XF_TASK_WITHDRAWN);
SAME(N_KIND_BATCH, XF_TASK_BATCH);
SAME(N_KIND_RECHECK, XF_TASK_RECHECK);
SAME(N_KIND_OPEN, XF_TASK_OPEN);
SAME(N_KIND_PARTS, XF_TASK_PARTS);
SAME(N_KIND_CLOSE, XF_TASK_CLOSE);
SAME(N_KIND_ABORT, XF_TASK_ABORT);
SAME(N_UP_PLANNED, XF_UPLOAD_PLANNED);
SAME(N_UP_CREATING, XF_UPLOAD_CREATING);
SAME(N_UP_OPEN, XF_UPLOAD_OPEN);
SAME(N_UP_CLOSING, XF_UPLOAD_CLOSING);
SAME(N_UP_ABORTING, XF_UPLOAD_ABORTING);
SAME(N_UP_DONE, XF_UPLOAD_DONE);
SAME(N_UP_GONE, XF_UPLOAD_GONE);
SAME(N_SHARD_OPEN, XF_SHARD_OPEN);
SAME(N_SHARD_DONE, XF_SHARD_DONE);
SAME(N_FAIL_OPEN, XF_FAILURE_OPEN);
SAME(N_FAIL_REQUEUED, XF_FAILURE_REQUEUED);
SAME(N_JOB_RUNNING, XF_JOB_RUNNING);

static const char *const migration_1[] = {
    "PRAGMA application_id = 0x78666572",
    "CREATE TABLE job("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, public_id TEXT NOT NULL UNIQUE,"
    " submit_key BLOB NOT NULL UNIQUE, name TEXT NOT NULL, priority INTEGER NOT NULL,"
    " state INTEGER NOT NULL, stop INTEGER NOT NULL DEFAULT 0, phase TEXT NOT NULL DEFAULT '',"
    " reason TEXT NOT NULL DEFAULT '', exit_code INTEGER NOT NULL DEFAULT -1,"
    " keys_returned INTEGER NOT NULL DEFAULT 0, list_requests INTEGER NOT NULL DEFAULT 0,"
    " listed INTEGER NOT NULL DEFAULT 0, copied INTEGER NOT NULL DEFAULT 0,"
    " skipped INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,"
    " vanished INTEGER NOT NULL DEFAULT 0, archived INTEGER NOT NULL DEFAULT 0,"
    " bytes_listed INTEGER NOT NULL DEFAULT 0, bytes_copied INTEGER NOT NULL DEFAULT 0,"
    " bytes_through INTEGER NOT NULL DEFAULT 0, retries INTEGER NOT NULL DEFAULT 0,"
    " throttled INTEGER NOT NULL DEFAULT 0, created_ms INTEGER NOT NULL,"
    " started_ms INTEGER NOT NULL DEFAULT 0, finished_ms INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX job_live ON job(id) WHERE state IN (1,2,3)",
    "CREATE TABLE job_spec(job INTEGER PRIMARY KEY, spec BLOB NOT NULL)",
    "CREATE TABLE pass("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, no INTEGER NOT NULL,"
    " kind INTEGER NOT NULL, created_ms INTEGER NOT NULL, UNIQUE(job, no))",
    "CREATE TABLE shard("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, pass INTEGER NOT NULL,"
    " source_no INTEGER NOT NULL, side INTEGER NOT NULL DEFAULT 0, lo BLOB NOT NULL,"
    " hi BLOB NOT NULL, cursor BLOB NOT NULL, generation INTEGER NOT NULL DEFAULT 0,"
    " state INTEGER NOT NULL, epoch INTEGER NOT NULL DEFAULT 0, owner TEXT NOT NULL DEFAULT '')",
    "CREATE INDEX shard_open ON shard(job) WHERE state = 1",
    "CREATE TABLE task("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, pass INTEGER NOT NULL,"
    " shard INTEGER NOT NULL DEFAULT 0, generation INTEGER NOT NULL DEFAULT 0,"
    " kind INTEGER NOT NULL, rank INTEGER NOT NULL, source_no INTEGER NOT NULL,"
    " side INTEGER NOT NULL DEFAULT 0, state INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL DEFAULT 0, deaths INTEGER NOT NULL DEFAULT 0,"
    " progress INTEGER NOT NULL DEFAULT 0, agent TEXT NOT NULL DEFAULT '',"
    " instance BLOB NOT NULL DEFAULT x'', n_objects INTEGER NOT NULL DEFAULT 0,"
    " bytes INTEGER NOT NULL DEFAULT 0, n_copied INTEGER NOT NULL DEFAULT 0,"
    " n_skipped INTEGER NOT NULL DEFAULT 0, n_failed INTEGER NOT NULL DEFAULT 0,"
    " n_vanished INTEGER NOT NULL DEFAULT 0, n_archived INTEGER NOT NULL DEFAULT 0,"
    " n_reported INTEGER GENERATED ALWAYS AS"
    "  (n_copied + n_skipped + n_failed + n_vanished + n_archived) VIRTUAL,"
    " not_before INTEGER NOT NULL DEFAULT 0, upload INTEGER NOT NULL DEFAULT 0,"
    " first_part INTEGER NOT NULL DEFAULT 0, last_part INTEGER NOT NULL DEFAULT 0,"
    " parts_done INTEGER NOT NULL DEFAULT 0, origin INTEGER NOT NULL DEFAULT 0,"
    " recheck INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX task_ready ON task(job, rank, id) WHERE state = 1",
    "CREATE INDEX task_leased ON task(job, id) WHERE state = 2",
    "CREATE INDEX task_job ON task(job, kind, id)",
    "CREATE INDEX task_again ON task(job, id) WHERE attempt > 1",
    "CREATE INDEX task_upload ON task(upload, kind, first_part) WHERE upload > 0",
    "CREATE INDEX task_origin ON task(origin) WHERE origin > 0",
    "CREATE TABLE manifest(task INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE result(task INTEGER PRIMARY KEY, body BLOB NOT NULL)",
    "CREATE TABLE attempt("
    " task INTEGER NOT NULL, attempt INTEGER NOT NULL, agent TEXT NOT NULL,"
    " instance BLOB NOT NULL, leased_ms INTEGER NOT NULL, ended_ms INTEGER NOT NULL DEFAULT 0,"
    " how INTEGER NOT NULL DEFAULT 0, PRIMARY KEY(task, attempt)) WITHOUT ROWID",
    "CREATE TABLE upload("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, pass INTEGER NOT NULL,"
    " source_no INTEGER NOT NULL, side INTEGER NOT NULL DEFAULT 0, key BLOB NOT NULL,"
    " size INTEGER NOT NULL, etag BLOB NOT NULL, mtime_ms INTEGER NOT NULL,"
    " storage_class BLOB NOT NULL, version_id BLOB NOT NULL, attempts INTEGER NOT NULL,"
    " state INTEGER NOT NULL, outcome INTEGER NOT NULL DEFAULT 0,"
    " upload_id BLOB NOT NULL DEFAULT x'', digest BLOB NOT NULL DEFAULT x'',"
    " part_size INTEGER NOT NULL DEFAULT 0, n_parts INTEGER NOT NULL DEFAULT 0,"
    " intent_ms INTEGER NOT NULL DEFAULT 0, result BLOB NOT NULL DEFAULT x'',"
    " orphan INTEGER NOT NULL DEFAULT 0)",
    "CREATE INDEX upload_live ON upload(job, id) WHERE state < 6",
    "CREATE INDEX upload_job ON upload(job, id)",
    "CREATE TABLE failure("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, pass INTEGER NOT NULL,"
    " task INTEGER NOT NULL, idx INTEGER NOT NULL, upload INTEGER NOT NULL,"
    " source_no INTEGER NOT NULL, side INTEGER NOT NULL DEFAULT 0, key BLOB NOT NULL,"
    " size INTEGER NOT NULL, etag BLOB NOT NULL, mtime_ms INTEGER NOT NULL,"
    " storage_class BLOB NOT NULL, version_id BLOB NOT NULL, attempts INTEGER NOT NULL,"
    " code INTEGER NOT NULL, flags INTEGER NOT NULL, http_status INTEGER NOT NULL,"
    " s3_code BLOB NOT NULL, message BLOB NOT NULL, retryable INTEGER NOT NULL,"
    " first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL, state INTEGER NOT NULL)",
    "CREATE UNIQUE INDEX failure_object ON failure(task, idx, upload)",
    "CREATE INDEX failure_open ON failure(job, source_no, key) WHERE state = 1",
    "CREATE INDEX failure_job ON failure(job, id)",
    "CREATE INDEX failure_retry ON failure(job) WHERE state = 1 AND retryable = 1",
    "CREATE TABLE agent("
    " id TEXT PRIMARY KEY, instance BLOB NOT NULL, version TEXT NOT NULL, host TEXT NOT NULL,"
    " reason TEXT NOT NULL, first_ms INTEGER NOT NULL, last_ms INTEGER NOT NULL) WITHOUT ROWID",
    "CREATE TABLE notice("
    " id INTEGER PRIMARY KEY AUTOINCREMENT, job INTEGER NOT NULL, at_ms INTEGER NOT NULL,"
    " code TEXT NOT NULL, text BLOB NOT NULL)",
    "CREATE INDEX notice_job ON notice(job, id)",
    "PRAGMA user_version = 1",
};

static const char *const migration_2[] = {
    "ALTER TABLE agent ADD COLUMN draining INTEGER NOT NULL DEFAULT 0",
    "PRAGMA user_version = 2",
};

static const char *const migration_3[] = {
    "ALTER TABLE upload ADD COLUMN sum INTEGER NOT NULL DEFAULT 0",
    "PRAGMA user_version = 3",
};

static const char *const migration_4[] = {
    "ALTER TABLE job ADD COLUMN dropped INTEGER NOT NULL DEFAULT 0",
    "PRAGMA user_version = 4",
};

static const char *const migration_5[] = {
    "CREATE TABLE setting(job INTEGER NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL,"
    " PRIMARY KEY(job, name)) WITHOUT ROWID",
    "PRAGMA user_version = 5",
};

static const char *const migration_6[] = {
    "ALTER TABLE upload ADD COLUMN is_left INTEGER NOT NULL DEFAULT 0",
    "PRAGMA user_version = 6",
};

static const char *const migration_7[] = {
    "ALTER TABLE job ADD COLUMN pruned INTEGER NOT NULL DEFAULT 0",
    "CREATE INDEX job_pruned ON job(id) WHERE pruned = 1",
    "PRAGMA user_version = 7",
};

static const struct {
    const char *const *statements;
    size_t n;
} migrations[] = {{migration_1, XF_ARRAY_LEN(migration_1)},
                  {migration_2, XF_ARRAY_LEN(migration_2)},
                  {migration_3, XF_ARRAY_LEN(migration_3)},
                  {migration_4, XF_ARRAY_LEN(migration_4)},
                  {migration_5, XF_ARRAY_LEN(migration_5)},
                  {migration_6, XF_ARRAY_LEN(migration_6)},
                  {migration_7, XF_ARRAY_LEN(migration_7)}};

int xf_schema_version(void)
{
    return (int)XF_ARRAY_LEN(migrations);
}

enum xf_code xf_schema_check(struct xf_sql *c, int *version, struct xf_err *err)
{
    int64_t user;
    int64_t application;
    int64_t objects;

    XF_TRY(xf_sql_number(c, &user, err, "PRAGMA user_version", ""));
    XF_TRY(xf_sql_number(c, &application, err, "PRAGMA application_id", ""));
    XF_TRY(xf_sql_number(c, &objects, err, "SELECT count(*) FROM sqlite_schema", ""));
    *version = (int)user;
    if (user == 0 && application == 0 && objects == 0) {
        return XF_OK; /* a new file */
    }
    if (application != XF_SCHEMA_APPLICATION_ID || user < 1) {
        return XF_FAIL(
            err, XF_E_CORRUPT, "'%s' is not a store of xfer: give another --data-dir", c->path);
    }
    if (user > xf_schema_version()) {
        return XF_FAIL(err,
                       XF_E_VERSION,
                       "'%s' was made by a newer xfer (schema %d, this one knows %d): "
                       "install that version again",
                       c->path,
                       (int)user,
                       xf_schema_version());
    }
    return XF_OK;
}

enum xf_code xf_schema_migrate(struct xf_sql *c, struct xf_err *err)
{
    int version;

    XF_TRY(xf_schema_check(c, &version, err));
    for (int v = version; v < xf_schema_version(); v++) {
        XF_TRY(xf_sql_exec(c, "BEGIN IMMEDIATE", err));
        enum xf_code rc = XF_OK;
        for (size_t i = 0; i < migrations[v].n && rc == XF_OK; i++) {
            rc = xf_sql_exec(c, migrations[v].statements[i], err);
        }
        if (rc == XF_OK) {
            rc = xf_sql_exec(c, "COMMIT", err);
        }
        if (rc != XF_OK) {
            (void)sqlite3_exec(c->db, "ROLLBACK", NULL, NULL, NULL); /* err says the first fault */
            return rc;
        }
    }
    return XF_OK;
}
