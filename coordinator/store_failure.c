/*
 * store_failure.c - objects that failed, a row each, and the retry passes made from them.
 *
 * Invariants:
 * 1. An object whose outcome is failed has exactly one row; job.failed counts the rows that are
 *    open. A requeued row's object is in a task or upload of a later pass, and counts there.
 * 2. `attempts` of a row are all that were spent on the object, over all passes.
 * 3. An upload whose abort is not done is not tried again yet: an abort that does not know the
 *    upload id looks for uploads of the key, and would take the new one for the old.
 */
#include "coordinator/store_work.h"

enum { RETRY_LIMIT_MAX = 10000 };

enum xf_code xf_failure_add(struct xf_work *w,
                            const struct xf_failure_row *row,
                            int64_t task,
                            uint32_t idx,
                            int64_t upload,
                            struct xf_err *err)
{
    const struct xf_object *o = &row->object;
    const struct xf_result *r = &row->result;

    return xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO failure(job, pass, task, idx, upload, source_no, key, size,"
                      " etag, mtime_ms, storage_class, version_id, attempts, code, flags,"
                      " http_status, s3_code, message, retryable, first_ms, last_ms, state)"
                      " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?,"
                      " " S_FAIL_OPEN ")",
                      "iiiiiibibibbiiiibbiii",
                      row->job,
                      row->pass,
                      task,
                      (int64_t)idx,
                      upload,
                      (int64_t)row->source_no,
                      o->key,
                      (int64_t)o->size,
                      o->etag,
                      o->mtime_ms,
                      o->storage_class,
                      o->version_id,
                      (int64_t)o->attempts,
                      (int64_t)r->code,
                      (int64_t)r->flags,
                      (int64_t)r->http_status,
                      r->s3_code,
                      r->message,
                      (int64_t)((r->flags & XF_RESULT_RETRYABLE) != 0),
                      w->now_ms,
                      w->now_ms);
}

enum xf_code xf_failure_add_new(struct xf_work *w,
                                const struct xf_task *t,
                                const struct xf_result_set *set,
                                const bool *is_new,
                                struct xf_err *err)
{
    struct xf_manifest m;

    XF_TRY(xf_manifest_load(w, t, &m, err));
    XF_AUTO_MANIFEST guard = m;
    for (uint32_t i = 0; i < set->n && i < guard.n; i++) {
        if (!is_new[i] || set->at[i].outcome != XF_OUTCOME_FAILED) {
            continue;
        }
        struct xf_failure_row row = {.job = t->job,
                                     .pass = t->pass,
                                     .source_no = t->source_no,
                                     .object = guard.objects[i],
                                     .result = set->at[i]};
        row.object.attempts += set->at[i].attempts;
        XF_TRY(xf_failure_add(w, &row, t->id, i, 0, err));
    }
    return XF_OK;
}

/* ---- retry ---- */

struct picked {
    int64_t id;
    bool is_upload; /* it was one, or it needs parts now */
    uint32_t source_no;
    struct xf_object object;
};

struct retry {
    struct xf_work *w;
    const struct xf_in_retry *in;
    int64_t pass;
    struct picked *rows;
    size_t n;
    bool more;
};

static struct xf_object read_object(sqlite3_stmt *st, int col, struct xf_arena *a)
{
    return (struct xf_object){.key = xf_sql_dup(st, col, a),
                              .size = xf_sql_u64(st, col + 1),
                              .etag = xf_sql_dup(st, col + 2, a),
                              .mtime_ms = xf_sql_i64(st, col + 3),
                              .storage_class = xf_sql_dup(st, col + 4, a),
                              .version_id = xf_sql_dup(st, col + 5, a),
                              .attempts = xf_sql_u32(st, col + 6),
                              .is_left = (xf_sql_u32(st, col + 7) & XF_RESULT_LEFT) != 0};
}

static bool is_wanted(const struct xf_in_retry *in, enum xf_code code)
{
    return in->only == XF_CLASS_NONE || xf_code_class(code) == in->only;
}

static enum xf_code pick(struct retry *r, struct xf_arena *a, struct xf_err *err)
{
    struct xf_work *w = r->w;
    int64_t max = r->in->is_forced ? INT64_MAX : (int64_t)r->in->max_attempts;
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id, upload, source_no, code, key, size, etag, mtime_ms,"
                        " storage_class, version_id, attempts, flags FROM failure"
                        " WHERE job = ? AND state = " S_FAIL_OPEN
                        " AND retryable >= ? AND attempts < ? AND NOT EXISTS(SELECT 1 FROM upload u"
                        " WHERE u.id = failure.upload AND u.state = " S_UP_ABORTING ")"
                        " ORDER BY source_no, key",
                        "iii",
                        r->in->job,
                        (int64_t)(r->in->is_forced ? 0 : 1),
                        max));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &found, err));
        if (!found) {
            return XF_OK;
        }
        enum xf_code code = (enum xf_code)xf_sql_i64(st, 3);
        if (!is_wanted(r->in, code)) {
            continue;
        }
        if (r->n == r->in->limit) {
            r->more = true;
            return XF_OK;
        }
        struct picked *p = &r->rows[r->n++];
        *p = (struct picked){xf_sql_i64(st, 0),
                             xf_sql_i64(st, 1) != 0 || code == XF_E_TOO_LARGE,
                             xf_sql_u32(st, 2),
                             read_object(st, 4, a)};
        if (code == XF_E_CHANGED) {
            p->object.etag = XF_STR_EMPTY; /* the listed form is gone: look at the source anew */
        }
    }
}

static enum xf_code flush(struct retry *r, struct xf_manifest_enc *e, struct xf_err *err)
{
    struct xf_task t = {.job = r->in->job,
                        .pass = r->pass,
                        .kind = XF_TASK_BATCH,
                        .source_no = e->source_no,
                        .n_objects = e->n_objects,
                        .bytes = e->size_bytes < INT64_MAX ? e->size_bytes : INT64_MAX};

    if (e->n_objects == 0) {
        return XF_OK;
    }
    XF_TRY(xf_task_insert(r->w, &t, err));
    xf_buf_reset(&r->w->raw);
    xf_manifest_finish(e, &r->w->raw);
    return xf_manifest_put(r->w, t.id, xf_buf_view(&r->w->raw), err);
}

static enum xf_code requeue_small(struct retry *r, struct xf_manifest_enc *e, struct xf_err *err)
{
    for (size_t i = 0; i < r->n; i++) {
        const struct picked *p = &r->rows[i];
        if (p->is_upload) {
            continue;
        }
        enum xf_code rc =
            p->source_no == e->source_no ? xf_manifest_add(e, &p->object, err) : XF_E_LIMIT;
        if (rc == XF_E_LIMIT) { /* full, or another source: the next batch begins */
            XF_TRY(flush(r, e, err));
            xf_manifest_enc_reset(e, p->source_no);
            rc = xf_manifest_add(e, &p->object, err);
        }
        XF_TRY(rc);
    }
    return flush(r, e, err);
}

static enum xf_code requeue(struct retry *r, struct xf_err *err)
{
    struct xf_manifest_enc e;

    xf_manifest_enc_init(&e, 0);
    enum xf_code rc = requeue_small(r, &e, err);
    xf_manifest_enc_fini(&e);
    XF_TRY(rc);
    for (size_t i = 0; i < r->n; i++) {
        const struct picked *p = &r->rows[i];
        if (p->is_upload) {
            struct xf_task like = {.job = r->in->job, .pass = r->pass, .source_no = p->source_no};
            XF_TRY(xf_upload_insert(r->w, &like, &p->object, err));
        }
        XF_TRY(xf_sql_run(&r->w->sql,
                          err,
                          "UPDATE failure SET state = " S_FAIL_REQUEUED ", last_ms = ?"
                          " WHERE id = ? AND state = " S_FAIL_OPEN,
                          "ii",
                          r->w->now_ms,
                          p->id));
        XF_ASSERT(xf_sql_changed(&r->w->sql) == 1); /* read in this savepoint */
    }
    return XF_OK;
}

static enum xf_code check_job(struct xf_work *w, const struct xf_in_retry *in, struct xf_err *err)
{
    struct xf_job_brief job = {.id = 0};

    XF_TRY(xf_job_brief(w, in->job, &job, err));
    if (job.stop != 0) {
        return XF_FAIL(err, XF_E_CANCELLED, "the job is being stopped");
    }
    if (xf_job_state_is_end(job.state) &&
        !(in->is_forced && job.state == XF_JOB_COMPLETED_WITH_FAILURES)) {
        return XF_FAIL(err,
                       XF_E_STALE,
                       "job is %s: nothing can be tried again",
                       xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, job.state));
    }
    return XF_OK;
}

/* The job runs again when it had ended; its failures become pending. */
static enum xf_code reopen(struct retry *r, struct xf_err *err)
{
    struct xf_job_delta add = {.failed = -(int64_t)r->n};

    XF_TRY(xf_job_add(r->w, r->in->job, &add, err));
    return xf_sql_run(&r->w->sql,
                      err,
                      "UPDATE job SET state = " S_JOB_RUNNING ", finished_ms = 0, exit_code = -1,"
                      " phase = 'retry', reason = '' WHERE id = ? AND state NOT IN " S_JOB_LIVE,
                      "i",
                      r->in->job);
}

enum xf_code xf_do_retry(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_retry *in = &op->in.retry;
    struct retry r = {.w = w, .in = in, .pass = in->pass};
    int64_t known;

    if (in->limit < 1 || in->limit > RETRY_LIMIT_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "retry limit %u: 1 to %d", in->limit, RETRY_LIMIT_MAX);
    }
    XF_TRY(check_job(w, in, err));
    r.rows = xf_arena_calloc(&op->out_arena, in->limit, sizeof(*r.rows));
    XF_TRY(pick(&r, &op->out_arena, err));
    op->out.retry.pass = r.pass;
    if (r.n == 0) {
        return XF_OK;
    }
    if (r.pass == 0) {
        XF_TRY(xf_pass_add(w, in->job, XF_PASS_RETRY, &r.pass, err));
    } else {
        XF_TRY(xf_sql_number(&w->sql,
                             &known,
                             err,
                             "SELECT count(*) FROM pass WHERE id = ? AND job = ?",
                             "ii",
                             r.pass,
                             in->job));
        if (known != 1) {
            return XF_FAIL(err, XF_E_NOT_FOUND, "no pass %lld", (long long)r.pass);
        }
    }
    XF_TRY(requeue(&r, err));
    XF_TRY(reopen(&r, err));
    op->out.retry = (struct xf_out_retry){r.pass, r.n, r.more};
    return XF_OK;
}
