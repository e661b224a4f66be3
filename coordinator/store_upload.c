/*
 * store_upload.c - the life of an upload (drawn in store_states.c): insert, open, end, abort.
 *
 * Invariants:
 * 1. The intent is committed before an agent may create an upload at the destination (the lease of
 *    the open task), the upload id before part 1 (XF_OP_UPLOAD_OPENED).
 * 2. An upload ends with something maybe left open only through `aborting` and an abort task; that
 *    task is made when no other task of the upload is leased, so nobody else works on it.
 * 3. An upload id that a fenced-off attempt created gets an abort of its own, as an orphan: a row
 *    that is no object of the job.
 */
#include "coordinator/store_work.h"

enum { UPLOAD_ID_MAX = 2048, DIGEST_MAX = 256, WHY_MAX = 1024 };

enum xf_code
xf_upload_load(struct xf_work *w, int64_t id, struct xf_upload *out, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id, job, pass, state, outcome, length(upload_id), size, n_parts"
                        " FROM upload WHERE id = ?",
                        "i",
                        id));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_CORRUPT, "no upload %lld", (long long)id);
    }
    *out = (struct xf_upload){.id = xf_sql_i64(st, 0),
                              .job = xf_sql_i64(st, 1),
                              .pass = xf_sql_i64(st, 2),
                              .state = (enum xf_upload_state)xf_sql_i64(st, 3),
                              .outcome = (enum xf_outcome)xf_sql_i64(st, 4),
                              .has_upload_id = xf_sql_i64(st, 5) > 0,
                              .size = xf_sql_u64(st, 6),
                              .n_parts = xf_sql_u32(st, 7)};
    return XF_OK;
}

enum xf_code xf_upload_insert(struct xf_work *w,
                              const struct xf_task *like,
                              const struct xf_object *o,
                              struct xf_err *err)
{
    if (o->key.len < 1 || o->key.len > XF_OBJECT_KEY_MAX || o->size > INT64_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "an upload's key or size is out of range");
    }
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO upload(job, pass, source_no, key, size, etag, mtime_ms,"
                      " storage_class, version_id, attempts, is_left, state)"
                      " VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, " S_UP_PLANNED ")",
                      "iiibibibbii",
                      like->job,
                      like->pass,
                      (int64_t)like->source_no,
                      o->key,
                      (int64_t)o->size,
                      o->etag,
                      o->mtime_ms,
                      o->storage_class,
                      o->version_id,
                      (int64_t)o->attempts,
                      (int64_t)o->is_left));
    struct xf_task t = {.job = like->job,
                        .pass = like->pass,
                        .shard = like->shard,
                        .generation = like->generation,
                        .source_no = like->source_no,
                        .kind = XF_TASK_OPEN,
                        .upload = sqlite3_last_insert_rowid(w->sql.db)};
    return xf_task_insert(w, &t, err);
}

enum xf_code
xf_upload_move(struct xf_work *w, struct xf_upload *u, enum xf_upload_state to, struct xf_err *err)
{
    XF_ASSERT(xf_fsm_may(xf_upload_fsm, XF_UPLOAD_STATE_N, u->state, to));
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE upload SET state = ? WHERE id = ? AND state = ?",
                      "iii",
                      (int64_t)to,
                      u->id,
                      (int64_t)u->state));
    XF_ASSERT(xf_sql_changed(&w->sql) == 1); /* read in this savepoint */
    u->state = to;
    return XF_OK;
}

enum xf_code xf_upload_settle(struct xf_work *w, int64_t upload, struct xf_err *err)
{
    return xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO task(job, pass, kind, rank, source_no, state, upload)"
                      " SELECT job, pass, " S_KIND_ABORT ", 0, source_no, " S_TASK_READY
                      ", id FROM upload u"
                      " WHERE id = ? AND state = " S_UP_ABORTING
                      " AND NOT EXISTS(SELECT 1 FROM task WHERE upload = u.id AND upload > 0"
                      " AND (state = " S_TASK_LEASED " OR (kind = " S_KIND_ABORT
                      " AND state = " S_TASK_READY ")))",
                      "i",
                      upload);
}

/* Its tasks that wait are not wanted any more. */
static enum xf_code withdraw(struct xf_work *w, int64_t upload, struct xf_err *err)
{
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET state = " S_TASK_WITHDRAWN
                      " WHERE upload = ? AND upload > 0 AND state = " S_TASK_READY
                      " AND kind <> " S_KIND_ABORT,
                      "i",
                      upload);
}

/* ---- opened ---- */

static enum xf_code check_layout(const struct xf_in_upload_opened *in, struct xf_err *err)
{
    if (in->upload_id.len < 1 || in->upload_id.len > UPLOAD_ID_MAX || in->digest.len > DIGEST_MAX ||
        in->etag.len > UPLOAD_ID_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "upload id, digest or etag out of range");
    }
    if (in->n_parts < 1 || in->n_parts > XF_STORE_PARTS_MAX || in->part_size == 0 ||
        in->size > INT64_MAX || in->part_size > INT64_MAX ||
        (in->size == 0 ? 1 : (in->size - 1) / in->part_size + 1) != in->n_parts) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "%u parts of %llu bytes do not make %llu",
                       in->n_parts,
                       (unsigned long long)in->part_size,
                       (unsigned long long)in->size);
    }
    return XF_OK;
}

static enum xf_code add_part_tasks(struct xf_work *w,
                                   const struct xf_task *open,
                                   const struct xf_in_upload_opened *in,
                                   struct xf_err *err)
{
    for (uint32_t first = 1; first <= in->n_parts; first += XF_PARTS_A_TASK) {
        uint32_t last = first + XF_PARTS_A_TASK - 1;
        last = last < in->n_parts ? last : in->n_parts;
        uint64_t from = (first - 1) * in->part_size;
        uint64_t to = last == in->n_parts ? in->size : last * in->part_size;
        struct xf_task t = {.job = open->job,
                            .pass = open->pass,
                            .source_no = open->source_no,
                            .kind = XF_TASK_PARTS,
                            .upload = open->upload,
                            .bytes = to - from,
                            .first_part = first,
                            .last_part = last};
        XF_TRY(xf_task_insert(w, &t, err));
    }
    return XF_OK;
}

static enum xf_code keep_upload_id(struct xf_work *w,
                                   int64_t upload,
                                   const struct xf_in_upload_opened *in,
                                   struct xf_err *err)
{
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE upload SET upload_id = ?1, digest = ?2, part_size = ?3, n_parts = ?4,"
                      " size = ?5, etag = CASE WHEN length(?6) > 0 THEN ?6 ELSE etag END,"
                      " sum = ?8 WHERE id = ?7",
                      "bbiiibii",
                      in->upload_id,
                      in->digest,
                      (int64_t)in->part_size,
                      (int64_t)in->n_parts,
                      (int64_t)in->size,
                      in->etag,
                      upload,
                      (int64_t)in->sum);
}

/* The id is not the upload's: somebody has to abort it. */
static enum xf_code adopt_orphan(struct xf_work *w,
                                 const struct xf_task *t,
                                 const struct xf_in_upload_opened *in,
                                 struct xf_err *err)
{
    struct xf_job_brief job = {.id = 0};
    int64_t known;

    XF_TRY(xf_sql_number(&w->sql,
                         &known,
                         err,
                         "SELECT count(*) FROM upload WHERE job = ? AND upload_id = ?"
                         " AND key = (SELECT key FROM upload WHERE id = ?)",
                         "ibi",
                         t->job,
                         in->upload_id,
                         t->upload));
    if (known != 0 || t->upload == 0) {
        return XF_OK;
    }
    XF_TRY(xf_job_brief(w, t->job, &job, err));
    if (xf_job_state_is_end(job.state)) {
        return xf_notice_add(w,
                             t->job,
                             "upload_left",
                             XF_STR_LIT("an upload was reported after the job's end: its agent "
                                        "aborts it"),
                             err);
    }
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO upload(job, pass, source_no, key, size, etag, mtime_ms,"
                      " storage_class, version_id, attempts, state, upload_id, orphan)"
                      " SELECT job, pass, source_no, key, size, etag, mtime_ms, storage_class,"
                      " version_id, attempts, " S_UP_ABORTING ", ?, 1 FROM upload WHERE id = ?",
                      "bi",
                      in->upload_id,
                      t->upload));
    return xf_upload_settle(w, sqlite3_last_insert_rowid(w->sql.db), err);
}

enum xf_code xf_do_upload_opened(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_upload_opened *in = &op->in.upload_opened;
    struct xf_task t = {.id = 0};
    struct xf_upload u = {.id = 0};

    XF_TRY(check_layout(in, err));
    XF_TRY(xf_task_fence(w, &in->fence, &t, err));
    op->out.upload_opened =
        (struct xf_out_upload_opened){t.job, t.upload, (in->n_parts - 1) / XF_PARTS_A_TASK + 1};
    if (t.is_owner && t.state == XF_TASK_DONE) {
        return XF_OK; /* a repeat */
    }
    if (!t.is_owner || t.state != XF_TASK_LEASED) {
        XF_TRY(adopt_orphan(w, &t, in, err));
        w->keep = true;
        return xf_task_stale(&in->fence, err);
    }
    if (t.kind != XF_TASK_OPEN) {
        return XF_FAIL(err, XF_E_INVAL, "only an open task opens an upload");
    }
    XF_TRY(xf_upload_load(w, t.upload, &u, err));
    XF_TRY(keep_upload_id(w, u.id, in, err));
    XF_TRY(xf_task_end(w, &t, XF_TASK_DONE, XF_HOW_DONE, 0, err));
    if (u.state == XF_UPLOAD_ABORTING) { /* the job was stopped meanwhile */
        op->out.upload_opened.n_tasks = 0;
        return xf_upload_settle(w, u.id, err);
    }
    XF_TRY(xf_upload_move(w, &u, XF_UPLOAD_OPEN, err));
    return add_part_tasks(w, &t, in, err);
}

/* ---- end ---- */

static enum xf_code add_failure(struct xf_work *w,
                                const struct xf_task *t,
                                const struct xf_result *r,
                                struct xf_err *err)
{
    XF_AUTO_ARENA arena = {NULL, 0};
    struct xf_upload_row row = {.id = 0};

    XF_TRY(xf_upload_row_load(&w->sql, t->upload, &arena, &row, err));
    struct xf_failure_row f = {.job = t->job,
                               .pass = t->pass,
                               .source_no = t->source_no,
                               .object = row.object,
                               .result = *r};
    f.object.attempts += r->attempts;
    return xf_failure_add(w, &f, 0, 0, t->upload, err);
}

/* The object's outcome, once and for ever. */
static enum xf_code settle_outcome(struct xf_work *w,
                                   const struct xf_task *t,
                                   struct xf_upload *u,
                                   const struct xf_result *r,
                                   struct xf_err *err)
{
    struct xf_job_delta add = {.retries = r->attempts > 1 ? (int64_t)r->attempts - 1 : 0};
    XF_AUTO_RESULT_SET set = {0};

    xf_result_set_init(&set, 1);
    (void)xf_result_set_put(&set, 0, r); /* true: it is empty */
    xf_buf_reset(&w->raw2);
    xf_result_set_encode(&set, &w->raw2);
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE upload SET outcome = ?, result = ? WHERE id = ? AND outcome = 0",
                      "ibi",
                      (int64_t)r->outcome,
                      xf_zip_pack(w->zip, xf_buf_view(&w->raw2)),
                      u->id));
    u->outcome = r->outcome;
    xf_job_delta_outcome(&add, r->outcome, 1);
    add.bytes_copied = r->outcome == XF_OUTCOME_COPIED ? (int64_t)r->size_bytes : 0;
    add.bytes_through = (int64_t)r->through_bytes;
    add.dropped = xf_result_is_dropped(r);
    if (r->outcome == XF_OUTCOME_FAILED) {
        XF_TRY(add_failure(w, t, &set.at[0], err));
    }
    return xf_job_add(w, t->job, &add, err);
}

static enum xf_upload_state end_state(const struct xf_upload *u)
{
    return u->outcome == XF_OUTCOME_FAILED || u->outcome == XF_OUTCOME_PENDING ? XF_UPLOAD_GONE
                                                                               : XF_UPLOAD_DONE;
}

enum xf_code xf_upload_finish(struct xf_work *w,
                              struct xf_task *t,
                              const struct xf_result *r,
                              bool left_open,
                              bool *to_abort,
                              struct xf_err *err)
{
    struct xf_upload u = {.id = 0};

    XF_TRY(xf_upload_load(w, t->upload, &u, err));
    if (u.outcome == XF_OUTCOME_PENDING) {
        XF_TRY(settle_outcome(w, t, &u, r, err));
    }
    if (t->state == XF_TASK_LEASED) {
        bool failed = r->outcome == XF_OUTCOME_FAILED;
        XF_TRY(xf_task_end(w,
                           t,
                           failed ? XF_TASK_FAILED : XF_TASK_DONE,
                           failed ? XF_HOW_ENDED : XF_HOW_DONE,
                           0,
                           err));
    }
    XF_TRY(withdraw(w, u.id, err));
    if (u.state < XF_UPLOAD_ABORTING) {
        bool open = left_open || (u.has_upload_id && r->outcome != XF_OUTCOME_COPIED);
        XF_TRY(xf_upload_move(w, &u, open ? XF_UPLOAD_ABORTING : end_state(&u), err));
    }
    *to_abort = u.state == XF_UPLOAD_ABORTING;
    return xf_upload_settle(w, u.id, err);
}

static enum xf_code
check_end(const struct xf_task *t, const struct xf_result *r, struct xf_err *err)
{
    if (r->outcome == XF_OUTCOME_PENDING || r->outcome >= XF_OUTCOME_N) {
        return XF_FAIL(err, XF_E_INVAL, "an upload ends with an outcome");
    }
    /* An open finds what an earlier pass of the job has copied. */
    if (r->outcome == XF_OUTCOME_COPIED && t->kind != XF_TASK_CLOSE && t->kind != XF_TASK_OPEN) {
        return XF_FAIL(err, XF_E_INVAL, "only an open or close says that an upload is copied");
    }
    if (t->kind != XF_TASK_OPEN && t->kind != XF_TASK_PARTS && t->kind != XF_TASK_CLOSE) {
        return XF_FAIL(err, XF_E_INVAL, "task %lld does not end an upload", (long long)t->id);
    }
    return XF_OK;
}

enum xf_code xf_do_upload_end(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_upload_end *in = &op->in.upload_end;
    struct xf_out_upload_end *out = &op->out.upload_end;
    struct xf_job_delta add = {.throttled = (int64_t)in->throttled};
    struct xf_task t = {.id = 0};

    XF_TRY(xf_task_fence(w, &in->fence, &t, err));
    out->job = t.job;
    out->upload = t.upload;
    if (t.is_owner && (t.state == XF_TASK_DONE || t.state == XF_TASK_FAILED)) {
        return XF_OK; /* a repeat */
    }
    if (!t.is_owner || t.state != XF_TASK_LEASED) {
        return xf_task_stale(&in->fence, err);
    }
    XF_TRY(check_end(&t, &in->result, err));
    XF_TRY(xf_upload_finish(w, &t, &in->result, in->left_open, &out->to_abort, err));
    return xf_job_add(w, t.job, &add, err);
}

/* ---- abort ---- */

static enum xf_code
tell_left(struct xf_work *w, const struct xf_task *t, struct xf_str why, struct xf_err *err)
{
    XF_AUTO_ARENA arena = {NULL, 0};
    XF_AUTO_BUF text = {0};
    struct xf_upload_row row = {.id = 0};

    xf_buf_init(&text, 0);
    XF_TRY(xf_upload_row_load(&w->sql, t->upload, &arena, &row, err));
    xf_buf_put_c(&text, "upload '");
    xf_buf_put_escaped(&text, row.upload_id);
    xf_buf_put_c(&text, "' of source key '");
    xf_buf_put_escaped(&text, row.object.key);
    xf_buf_put_c(&text, "' may be open still: ");
    xf_buf_put_escaped(&text, xf_str_sub(why, 0, WHY_MAX));
    return xf_notice_add(w, t->job, "upload_left", xf_buf_view(&text), err);
}

enum xf_code xf_do_abort_done(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_abort_done *in = &op->in.abort_done;
    struct xf_task t = {.id = 0};
    struct xf_upload u = {.id = 0};

    XF_TRY(xf_task_fence(w, &in->fence, &t, err));
    op->out.abort_done.job = t.job;
    if (t.is_owner && t.state == XF_TASK_DONE) {
        return XF_OK; /* a repeat */
    }
    if (!t.is_owner || t.state != XF_TASK_LEASED) {
        return xf_task_stale(&in->fence, err);
    }
    if (t.kind != XF_TASK_ABORT) {
        return XF_FAIL(err, XF_E_INVAL, "task %lld aborts nothing", (long long)t.id);
    }
    XF_TRY(xf_upload_load(w, t.upload, &u, err));
    XF_TRY(xf_task_end(w, &t, XF_TASK_DONE, XF_HOW_DONE, 0, err));
    XF_TRY(xf_upload_move(w, &u, end_state(&u), err));
    return in->gave_up ? tell_left(w, &t, in->why, err) : XF_OK;
}
