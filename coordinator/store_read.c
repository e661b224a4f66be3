/*
 * store_read.c - reads of jobs, of what a start needs, and of results; on the reader's connection.
 *
 * in_flight is counted from the leased tasks, pending is what is left over: so the two and the
 * outcomes add up to `listed` by construction, and xf_store_check() proves it from the tasks.
 */
#include "coordinator/store_read.h"

#include "coordinator/store_work.h"

/* clang-format off */
#define JOB_COLUMNS                                                                              \
    "SELECT j.id, j.public_id, j.name, j.priority, j.state, j.stop, j.phase, j.reason,"          \
    " j.exit_code, j.keys_returned, j.list_requests, j.listed, j.copied, j.skipped, j.failed,"   \
    " j.vanished, j.archived, j.bytes_listed, j.bytes_copied, j.bytes_through, j.retries,"       \
    " j.throttled, j.dropped, j.created_ms, j.started_ms, j.finished_ms,"                        \
    " (SELECT coalesce(max(no), 0) FROM pass WHERE job = j.id),"                                 \
    " (SELECT count(*) FROM shard WHERE job = j.id AND state = " S_SHARD_OPEN "),"               \
    " (SELECT count(*) FROM task WHERE job = j.id AND state = " S_TASK_LEASED "),"               \
    " (SELECT count(*) FROM task WHERE job = j.id AND state = " S_TASK_READY "),"                \
    " (SELECT count(*) FROM upload WHERE job = j.id AND state < " S_UP_DONE "),"                 \
    " (SELECT count(*) FROM failure WHERE job = j.id AND state = " S_FAIL_OPEN                   \
    "  AND retryable = 1),"                                                                      \
    " (SELECT coalesce(sum(n_objects - n_reported), 0) FROM task WHERE job = j.id"               \
    "  AND state = " S_TASK_LEASED " AND kind = " S_KIND_BATCH "),"                              \
    " (SELECT count(DISTINCT t.upload) FROM task t JOIN upload u ON u.id = t.upload"             \
    "  WHERE t.job = j.id AND t.state = " S_TASK_LEASED " AND u.outcome = 0 AND u.orphan = 0)"   \
    " FROM job j"
/* clang-format on */

static void read_job(sqlite3_stmt *st, struct xf_arena *a, struct xf_job_row *r)
{
    struct xf_job_counters *n = &r->n;

    r->id = xf_sql_i64(st, 0);
    r->public_id = xf_sql_dup(st, 1, a);
    r->name = xf_sql_dup(st, 2, a);
    r->priority = (int)xf_sql_i64(st, 3);
    r->state = (enum xf_job_state)xf_sql_i64(st, 4);
    r->stop = (enum xf_job_state)xf_sql_i64(st, 5);
    r->phase = xf_sql_dup(st, 6, a);
    r->reason = xf_sql_dup(st, 7, a);
    r->exit_code = (int)xf_sql_i64(st, 8);
    uint64_t *const counters[] = {&n->keys_returned,
                                  &n->list_requests,
                                  &n->listed,
                                  &n->copied,
                                  &n->skipped,
                                  &n->failed,
                                  &n->vanished,
                                  &n->archived,
                                  &n->bytes_listed,
                                  &n->bytes_copied,
                                  &n->bytes_through,
                                  &n->retries,
                                  &n->throttled,
                                  &n->dropped};
    for (size_t i = 0; i < XF_ARRAY_LEN(counters); i++) {
        *counters[i] = xf_sql_u64(st, 9 + (int)i);
    }
    r->created_ms = xf_sql_i64(st, 23);
    r->started_ms = xf_sql_i64(st, 24);
    r->finished_ms = xf_sql_i64(st, 25);
    r->pass_no = (int)xf_sql_i64(st, 26);
    r->shards_open = xf_sql_u32(st, 27);
    r->tasks_leased = xf_sql_u32(st, 28);
    r->tasks_ready = xf_sql_u32(st, 29);
    r->uploads_live = xf_sql_u32(st, 30);
    r->retryable = xf_sql_u64(st, 31);
    n->in_flight = xf_sql_u64(st, 32) + xf_sql_u64(st, 33);
    uint64_t settled = n->copied + n->skipped + n->failed + n->vanished + n->archived;
    n->pending = n->listed - settled - n->in_flight;
}

static uint32_t page_limit(uint32_t asked)
{
    if (asked == 0) {
        return XF_STORE_PAGE_DEFAULT;
    }
    return asked < XF_STORE_PAGE_MAX ? asked : XF_STORE_PAGE_MAX;
}

enum xf_code xf_do_read_jobs(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_read_jobs *in = &op->in.read_jobs;
    struct xf_out_read_jobs *out = &op->out.read_jobs;
    uint32_t limit = page_limit(in->limit);
    XF_AUTO_STMT *st = NULL;
#define FROM_NEWEST      " WHERE (?1 = 0 OR j.id < ?1) AND j.pruned = 0"
#define JOBS_PAGE(which) JOB_COLUMNS FROM_NEWEST which " ORDER BY j.id DESC LIMIT ?2"
    static const char *const sql[] = {
        [XF_JOBS_ALL] = JOBS_PAGE(""),
        [XF_JOBS_LIVE] = JOBS_PAGE(" AND j.state IN " S_JOB_LIVE), /* index job_live */
        [XF_JOBS_ENDED] = JOB_COLUMNS /* found first: what a row costs is in its columns */
        " WHERE j.id IN (SELECT id FROM job WHERE pruned = 0 AND state NOT IN " S_JOB_LIVE
        " ORDER BY finished_ms DESC, id DESC LIMIT ?2) ORDER BY j.finished_ms DESC, j.id DESC",
    };
#undef JOBS_PAGE
#undef FROM_NEWEST

    out->rows = xf_arena_calloc(&op->out_arena, limit, sizeof(*out->rows));
    XF_TRY(xf_sql_start(&w->sql, &st, err, sql[in->which], "ii", in->after, (int64_t)limit + 1));
    for (;;) {
        bool more;
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        if (out->n == limit) {
            out->more = true;
            return XF_OK;
        }
        read_job(st, &op->out_arena, &out->rows[out->n++]);
    }
}

static enum xf_code read_spec(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_job_row *row = &op->out.read_job.row;
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(
        xf_sql_start(&w->sql, &st, err, "SELECT spec FROM job_spec WHERE job = ?", "i", row->id));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_CORRUPT, "job %lld has no text", (long long)row->id);
    }
    row->spec = xf_sql_dup(st, 0, &op->out_arena);
    return XF_OK;
}

enum xf_code xf_do_read_job(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_read_job *in = &op->in.read_job;
    bool found;
    bool another = false;
    {
        XF_AUTO_STMT *st = NULL;
        XF_TRY(xf_sql_start(&w->sql,
                            &st,
                            err,
                            JOB_COLUMNS
                            " WHERE j.pruned = 0 AND ((?1 > 0 AND j.id = ?1) OR (?1 = 0"
                            " AND substr(j.public_id, 1, length(?2)) = ?2 AND ?2 <> ''))"
                            " ORDER BY length(j.public_id) LIMIT 2",
                            "is",
                            in->job,
                            in->public_id));
        XF_TRY(xf_sql_next(&w->sql, st, &found, err));
        if (found) {
            read_job(st, &op->out_arena, &op->out.read_job.row);
            XF_TRY(xf_sql_next(&w->sql, st, &another, err));
        }
    }
    if (!found) {
        return XF_FAIL(err, XF_E_NOT_FOUND, "no job '%.*s'", XF_STR_ARG(in->public_id));
    }
    if (another && !xf_str_eq(op->out.read_job.row.public_id, in->public_id)) {
        return XF_FAIL(
            err, XF_E_NOT_FOUND, "more than one job begins with '%.*s'", XF_STR_ARG(in->public_id));
    }
    return in->with_spec ? read_spec(w, op, err) : XF_OK;
}

/* ---- recover ---- */

static enum xf_code count(struct xf_work *w, const char *sql, size_t *n, struct xf_err *err)
{
    int64_t v;

    XF_TRY(xf_sql_number(&w->sql, &v, err, sql, ""));
    *n = (size_t)v;
    return XF_OK;
}

static enum xf_code recover_jobs(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_recover *out = &op->out.read_recover;
    XF_AUTO_STMT *st = NULL;
    size_t n;
    bool more;

    XF_TRY(count(w, "SELECT count(*) FROM job WHERE state IN " S_JOB_LIVE, &n, err));
    out->jobs = xf_arena_calloc(&op->out_arena, n, sizeof(*out->jobs));
    XF_TRY(xf_sql_start(
        &w->sql, &st, err, JOB_COLUMNS " WHERE j.state IN " S_JOB_LIVE " ORDER BY j.id", ""));
    while (out->n_jobs < n) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        XF_ASSERT(more); /* one transaction: counted a moment ago */
        read_job(st, &op->out_arena, &out->jobs[out->n_jobs++]);
    }
    return XF_OK;
}

#define OPEN_SHARDS                                                                            \
    " FROM shard s JOIN job j ON j.id = s.job WHERE s.state = " S_SHARD_OPEN " AND j.stop = 0" \
    " AND j.state IN " S_JOB_LIVE

static enum xf_code recover_shards(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_recover *out = &op->out.read_recover;
    struct xf_arena *a = &op->out_arena;
    XF_AUTO_STMT *st = NULL;
    size_t n;
    bool more;

    XF_TRY(count(w, "SELECT count(*)" OPEN_SHARDS, &n, err));
    out->shards = xf_arena_calloc(a, n, sizeof(*out->shards));
    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT s.id, s.job, s.pass, s.source_no, s.lo, s.hi, s.cursor,"
                        " s.generation" OPEN_SHARDS " ORDER BY s.id",
                        ""));
    while (out->n_shards < n) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        XF_ASSERT(more); /* one transaction: counted a moment ago */
        out->shards[out->n_shards++] = (struct xf_shard_row){.id = xf_sql_i64(st, 0),
                                                             .job = xf_sql_i64(st, 1),
                                                             .pass = xf_sql_i64(st, 2),
                                                             .source_no = xf_sql_u32(st, 3),
                                                             .lo = xf_sql_dup(st, 4, a),
                                                             .hi = xf_sql_dup(st, 5, a),
                                                             .cursor = xf_sql_dup(st, 6, a),
                                                             .generation = xf_sql_u32(st, 7)};
    }
    return XF_OK;
}

static enum xf_code recover_leased(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_recover *out = &op->out.read_recover;
    XF_AUTO_STMT *st = NULL;
    size_t n;
    bool more;

    XF_TRY(count(w, "SELECT count(*) FROM task WHERE state = " S_TASK_LEASED, &n, err));
    out->leased = xf_arena_calloc(&op->out_arena, n, sizeof(*out->leased));
    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id, job, upload, kind, attempt, n_objects - n_reported, agent,"
                        " instance FROM task WHERE state = " S_TASK_LEASED,
                        ""));
    while (out->n_leased < n) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        XF_ASSERT(more); /* one transaction: counted a moment ago */
        struct xf_leased_row *r = &out->leased[out->n_leased++];
        *r = (struct xf_leased_row){.task = xf_sql_i64(st, 0),
                                    .job = xf_sql_i64(st, 1),
                                    .upload = xf_sql_i64(st, 2),
                                    .kind = (enum xf_task_kind)xf_sql_i64(st, 3),
                                    .attempt = xf_sql_u32(st, 4),
                                    .objects = xf_sql_u32(st, 5),
                                    .agent = xf_sql_dup(st, 6, &op->out_arena)};
        struct xf_str instance = xf_sql_str(st, 7);
        if (instance.len != XF_STORE_INSTANCE_LEN) {
            return XF_FAIL(err, XF_E_CORRUPT, "task %lld is leased by nobody", (long long)r->task);
        }
        memcpy(r->instance, instance.ptr, XF_STORE_INSTANCE_LEN);
    }
    return XF_OK;
}

#define LIVE_SETTINGS \
    " FROM setting WHERE job = 0 OR job IN (SELECT id FROM job WHERE state IN (1,2,3))"

static enum xf_code recover_settings(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_recover *out = &op->out.read_recover;
    XF_AUTO_STMT *st = NULL;
    size_t n;
    bool more;

    XF_TRY(count(w, "SELECT count(*)" LIVE_SETTINGS, &n, err));
    out->settings = xf_arena_calloc(&op->out_arena, n, sizeof(*out->settings));
    XF_TRY(xf_sql_start(&w->sql, &st, err, "SELECT job, name, value" LIVE_SETTINGS, ""));
    while (out->n_settings < n) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        XF_ASSERT(more); /* one transaction: counted a moment ago */
        out->settings[out->n_settings++] =
            (struct xf_setting_row){.job = xf_sql_i64(st, 0),
                                    .name = xf_sql_dup(st, 1, &op->out_arena),
                                    .value = xf_sql_dup(st, 2, &op->out_arena)};
    }
    return XF_OK;
}

enum xf_code xf_do_read_recover(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    XF_TRY(recover_jobs(w, op, err));
    XF_TRY(recover_shards(w, op, err));
    XF_TRY(recover_settings(w, op, err));
    return recover_leased(w, op, err);
}

/* ---- results ---- */

/* Marks the objects of a batch that a later pass took over. */
static enum xf_code
mark_requeued(struct xf_work *w, int64_t task, bool *requeued, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool more;

    XF_TRY(xf_sql_start(
        &w->sql,
        &st,
        err,
        "SELECT idx FROM failure WHERE task = ? AND upload = 0 AND state = " S_FAIL_REQUEUED,
        "i",
        task));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        uint32_t idx = xf_sql_u32(st, 0);
        if (idx < XF_MANIFEST_MAX) {
            requeued[idx] = true;
        }
    }
}

static struct xf_str dup(struct xf_arena *a, struct xf_str s)
{
    return s.len == 0 ? XF_STR_EMPTY : xf_arena_dup(a, s);
}

static void copy_row(struct xf_arena *a,
                     uint32_t source_no,
                     const struct xf_object *o,
                     const struct xf_result *r,
                     struct xf_result_row *out)
{
    *out = (struct xf_result_row){source_no, *o, *r};
    out->object.key = dup(a, o->key);
    out->object.etag = dup(a, o->etag);
    out->object.storage_class = dup(a, o->storage_class);
    out->object.version_id = dup(a, o->version_id);
    out->result.etag = dup(a, r->etag);
    out->result.version_id = dup(a, r->version_id);
    out->result.source_etag = dup(a, r->source_etag);
    out->result.s3_code = dup(a, r->s3_code);
    out->result.message = dup(a, r->message);
}

static enum xf_code
batch_results(struct xf_work *w, struct xf_store_op *op, struct xf_task *t, struct xf_err *err)
{
    struct xf_out_read_results *out = &op->out.read_results;
    bool requeued[XF_MANIFEST_MAX] = {false};
    struct xf_manifest loaded;
    struct xf_result_set set;

    XF_TRY(xf_manifest_load(w, t, &loaded, err));
    XF_AUTO_MANIFEST m = loaded;
    XF_TRY(xf_result_load(w, t->id, m.n, &set, err));
    XF_AUTO_RESULT_SET results = set;
    XF_TRY(mark_requeued(w, t->id, requeued, err));
    out->rows = xf_arena_calloc(&op->out_arena, m.n, sizeof(*out->rows));
    for (uint32_t i = 0; i < m.n; i++) {
        bool moved = t->state == XF_TASK_DONE && results.at[i].outcome == XF_OUTCOME_PENDING;
        if (!requeued[i] && !moved) { /* moved: the batch was split */
            copy_row(
                &op->out_arena, m.source_no, &m.objects[i], &results.at[i], &out->rows[out->n++]);
        }
    }
    return XF_OK;
}

static enum xf_code
upload_results(struct xf_work *w, struct xf_store_op *op, int64_t after, struct xf_err *err)
{
    struct xf_out_read_results *out = &op->out.read_results;
    XF_AUTO_STMT *st = NULL;
    bool more;

    out->rows = xf_arena_calloc(&op->out_arena, XF_STORE_PAGE_DEFAULT, sizeof(*out->rows));
    out->next = after;
    XF_TRY(xf_sql_start(
        &w->sql,
        &st,
        err,
        "SELECT id, source_no, key, size, etag, mtime_ms, storage_class, version_id, attempts,"
        " result FROM upload u WHERE job = ? AND id > ? AND orphan = 0 AND NOT EXISTS("
        "SELECT 1 FROM failure WHERE task = 0 AND idx = 0 AND upload = u.id AND state "
        "= " S_FAIL_REQUEUED ") ORDER BY id LIMIT ?",
        "iii",
        op->in.read_results.job,
        after,
        (int64_t)XF_STORE_PAGE_DEFAULT));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            out->more = out->n == XF_STORE_PAGE_DEFAULT;
            return XF_OK;
        }
        struct xf_object o = {.key = xf_sql_str(st, 2),
                              .size = xf_sql_u64(st, 3),
                              .etag = xf_sql_str(st, 4),
                              .mtime_ms = xf_sql_i64(st, 5),
                              .storage_class = xf_sql_str(st, 6),
                              .version_id = xf_sql_str(st, 7),
                              .attempts = xf_sql_u32(st, 8)};
        struct xf_result_set set;
        xf_buf_reset(&w->raw2);
        if (xf_sql_str(st, 9).len > 0) {
            XF_TRY(xf_zip_unpack(w->zip, xf_sql_str(st, 9), &w->raw2, err));
        }
        enum xf_code rc = xf_result_set_decode(xf_buf_view(&w->raw2), 1, &set, err);
        XF_AUTO_RESULT_SET guard = set;
        if (rc != XF_OK) {
            return XF_FAIL(err, XF_E_CORRUPT, "the result of an upload is damaged");
        }
        copy_row(&op->out_arena, xf_sql_u32(st, 1), &o, &guard.at[0], &out->rows[out->n++]);
        out->next = xf_sql_i64(st, 0);
    }
}

enum xf_code xf_do_read_results(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_read_results *in = &op->in.read_results;
    struct xf_out_read_results *out = &op->out.read_results;
    struct xf_task t;
    int64_t id;

    out->next_uploads = true;
    if (in->uploads) {
        return upload_results(w, op, in->after, err);
    }
    XF_TRY(xf_sql_number(&w->sql,
                         &id,
                         err,
                         "SELECT id FROM task WHERE job = ? AND kind = " S_KIND_BATCH
                         " AND id > ? ORDER BY id LIMIT 1",
                         "ii",
                         in->job,
                         in->after));
    out->more = true;
    if (id == 0) {
        return XF_OK; /* uploads are next, from 0 */
    }
    out->next_uploads = false;
    out->next = id;
    XF_TRY(xf_task_load(w, id, &t, err));
    return batch_results(w, op, &t, err);
}
