/*
 * store_report.c - what agents report as done: merged into results, failures and counters.
 *
 * Invariants:
 * 1. A report counts only what is new, so sending it again changes nothing.
 * 2. A report of another attempt or process changes no outcome; its batch is checked again.
 * 3. A task is done only when nothing of it is pending.
 */
#include "coordinator/store_work.h"

static bool is_any(const struct xf_result_counts *c)
{
    uint64_t n = c->through_bytes + c->attempts;

    for (int o = XF_OUTCOME_COPIED; o < XF_OUTCOME_N; o++) {
        n += c->by_outcome[o];
    }
    return n != 0;
}

/* A batch's outcomes are objects of the job; a recheck's are folded into its origin's. */
static enum xf_code count_job(struct xf_work *w,
                              const struct xf_task *t,
                              const struct xf_result_counts *added,
                              struct xf_err *err)
{
    struct xf_job_delta d = {.bytes_through = (int64_t)added->through_bytes,
                             .retries = (int64_t)(int32_t)added->retries};

    if (t->kind == XF_TASK_BATCH) {
        d.copied = added->by_outcome[XF_OUTCOME_COPIED];
        d.skipped = added->by_outcome[XF_OUTCOME_SKIPPED];
        d.failed = added->by_outcome[XF_OUTCOME_FAILED];
        d.vanished = added->by_outcome[XF_OUTCOME_VANISHED];
        d.archived = added->by_outcome[XF_OUTCOME_ARCHIVED];
        d.bytes_copied = (int64_t)added->copied_bytes;
        d.dropped = added->dropped;
    }
    return xf_job_add(w, t->job, &d, err);
}

enum xf_code xf_report_merge(struct xf_work *w,
                             struct xf_task *t,
                             const struct xf_result_set *delta,
                             struct xf_result_counts *added,
                             struct xf_err *err)
{
    bool is_new[XF_MANIFEST_MAX];
    struct xf_result_set loaded;

    XF_TRY(xf_result_load(w, t->id, t->n_objects, &loaded, err));
    XF_AUTO_RESULT_SET set = loaded;
    for (uint32_t i = 0; i < set.n; i++) {
        is_new[i] =
            set.at[i].outcome == XF_OUTCOME_PENDING && delta->at[i].outcome != XF_OUTCOME_PENDING;
    }
    xf_result_set_merge(&set, delta, added);
    if (!is_any(added)) {
        return XF_OK;
    }
    XF_TRY(xf_result_put(w, t->id, &set, err));
    XF_TRY(xf_task_count(w, t, added, err));
    XF_TRY(count_job(w, t, added, err));
    if (t->kind == XF_TASK_RECHECK) {
        return xf_recheck_fold(w, t, &set, is_new, err);
    }
    if (added->by_outcome[XF_OUTCOME_FAILED] > 0) {
        XF_TRY(xf_failure_add_new(w, t, &set, is_new, err));
    }
    return XF_OK;
}

static enum xf_code
checkpoint_objects(struct xf_work *w, struct xf_task *t, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_checkpoint *in = &op->in.checkpoint;
    struct xf_result_set decoded;

    if (xf_result_set_decode(in->delta, t->n_objects, &decoded, err) != XF_OK) {
        xf_result_set_fini(&decoded);
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "the report on task %lld is damaged or not on its objects",
                       (long long)t->id);
    }
    XF_AUTO_RESULT_SET delta = decoded;
    XF_TRY(xf_report_merge(w, t, &delta, &op->out.checkpoint.added, err));
    if (!in->is_done) {
        return XF_OK;
    }
    if (t->n_reported != t->n_objects) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "task %lld is not done: %u of %u objects are reported",
                       (long long)t->id,
                       t->n_reported,
                       t->n_objects);
    }
    XF_TRY(xf_task_end(w, t, XF_TASK_DONE, XF_HOW_DONE, 0, err));
    op->out.checkpoint.ended = true;
    return xf_recheck_after(w, t, &op->out.checkpoint.rechecked, err);
}

/* ---- parts ---- */

static enum xf_code merge_parts(struct xf_work *w,
                                struct xf_task *t,
                                const struct xf_in_checkpoint *in,
                                struct xf_job_delta *add,
                                struct xf_err *err)
{
    XF_AUTO_ARENA arena = {NULL, 0};
    size_t max = t->last_part - t->first_part + 1;
    const struct xf_store_part **slots =
        xf_arena_calloc(&arena, max, sizeof(struct xf_store_part *));
    struct xf_part_list old;
    struct xf_store_part *all = xf_arena_calloc(&arena, max, sizeof(*all));
    size_t n = 0;

    xf_part_list_init(&old, &arena, max);
    XF_TRY(xf_task_parts(w, t->id, &old, err));
    for (size_t i = 0; i < old.n; i++) {
        if (old.at[i].part_no < t->first_part || old.at[i].part_no > t->last_part) {
            return XF_FAIL(err, XF_E_CORRUPT, "task %lld has a foreign part", (long long)t->id);
        }
        slots[old.at[i].part_no - t->first_part] = &old.at[i];
    }
    for (size_t i = 0; i < in->n_parts; i++) {
        const struct xf_store_part *p = &in->parts[i];
        if (p->part_no < t->first_part || p->part_no > t->last_part || p->etag.len == 0 ||
            p->etag.len > XF_S3_CODE_MAX * 4 || p->checksum.len > XF_S3_CODE_MAX * 4) {
            return XF_FAIL(err, XF_E_INVAL, "part %u is not of this task", p->part_no);
        }
        if (slots[p->part_no - t->first_part] == NULL) {
            slots[p->part_no - t->first_part] = p;
            add->bytes_through += (int64_t)p->through_bytes;
        }
    }
    for (size_t i = 0; i < max; i++) {
        if (slots[i] != NULL) {
            all[n++] = *slots[i];
        }
    }
    if (n == old.n) {
        return XF_OK;
    }
    xf_buf_reset(&w->raw2);
    xf_parts_encode(all, n, &w->raw2);
    XF_TRY(xf_result_put_raw(w, t->id, xf_buf_view(&w->raw2), err));
    t->progress += (uint32_t)(n - old.n);
    t->parts_done = (uint32_t)n;
    t->deaths = 0;
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET parts_done = ?, progress = ?, deaths = 0 WHERE id = ?",
                      "iii",
                      (int64_t)n,
                      (int64_t)t->progress,
                      t->id);
}

/* The last parts task of an upload makes the close task. */
static enum xf_code
close_when_all(struct xf_work *w, const struct xf_task *t, bool *all_in, struct xf_err *err)
{
    struct xf_task close = {.job = t->job,
                            .pass = t->pass,
                            .source_no = t->source_no,
                            .kind = XF_TASK_CLOSE,
                            .upload = t->upload};
    struct xf_upload u = {.id = 0};
    int64_t parts;

    XF_TRY(xf_upload_load(w, t->upload, &u, err));
    if (u.state != XF_UPLOAD_OPEN) {
        return xf_upload_settle(w, u.id, err); /* given up meanwhile */
    }
    XF_TRY(xf_sql_number(&w->sql,
                         &parts,
                         err,
                         "SELECT sum(parts_done) FROM task WHERE upload = ? AND upload > 0"
                         " AND kind = " S_KIND_PARTS " AND state = " S_TASK_DONE,
                         "i",
                         u.id));
    if (parts != (int64_t)u.n_parts) {
        return XF_OK;
    }
    *all_in = true;
    XF_TRY(xf_upload_move(w, &u, XF_UPLOAD_CLOSING, err));
    return xf_task_insert(w, &close, err);
}

static enum xf_code
checkpoint_parts(struct xf_work *w, struct xf_task *t, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_checkpoint *in = &op->in.checkpoint;
    struct xf_job_delta add = {0};

    XF_TRY(merge_parts(w, t, in, &add, err));
    op->out.checkpoint.added.through_bytes = (uint64_t)add.bytes_through;
    XF_TRY(xf_job_add(w, t->job, &add, err));
    if (!in->is_done) {
        return XF_OK;
    }
    if (t->parts_done != t->last_part - t->first_part + 1) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "task %lld is not done: %u of its parts are reported",
                       (long long)t->id,
                       t->parts_done);
    }
    XF_TRY(xf_task_end(w, t, XF_TASK_DONE, XF_HOW_DONE, 0, err));
    op->out.checkpoint.ended = true;
    return close_when_all(w, t, &op->out.checkpoint.all_parts_in, err);
}

/* ---- late reports ---- */

static bool says_anything(struct xf_str delta)
{
    struct xf_err ignored;
    struct xf_result_counts c;
    XF_AUTO_RESULT_SET set = {0};

    if (xf_result_set_decode(delta, XF_MANIFEST_MAX, &set, &ignored) != XF_OK) {
        return true; /* whatever it was, something was done */
    }
    xf_result_set_count(&set, &c);
    return is_any(&c);
}

static enum xf_code
late_report(struct xf_work *w, const struct xf_task *t, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_checkpoint *in = &op->in.checkpoint;

    if (t->upload == 0 && says_anything(in->delta)) {
        XF_TRY(xf_recheck_mark(w, t, &op->out.checkpoint.rechecked, err));
        w->keep = true;
    }
    return xf_task_stale(&in->fence, err);
}

/* Its own attempt ended the task: a repeat. It was taken from it, and what was left failed or went
 * into halves: as late as any other. */
static enum xf_code
is_repeat(struct xf_work *w, const struct xf_task *t, bool *repeat, struct xf_err *err)
{
    int64_t how = XF_HOW_DONE;

    if (t->is_owner && t->state == XF_TASK_DONE) {
        XF_TRY(xf_sql_number(&w->sql,
                             &how,
                             err,
                             "SELECT how FROM attempt WHERE task = ? AND attempt = ?",
                             "ii",
                             t->id,
                             (int64_t)t->attempt));
    }
    *repeat =
        t->is_owner && t->state == XF_TASK_DONE && how != XF_HOW_LOST && how != XF_HOW_EXPIRED;
    return XF_OK;
}

enum xf_code xf_do_checkpoint(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_checkpoint *in = &op->in.checkpoint;
    struct xf_job_delta add = {.throttled = (int64_t)in->throttled,
                               .retries = (int64_t)in->retries};
    struct xf_task t = {.id = 0};
    bool repeat;

    XF_TRY(xf_task_fence(w, &in->fence, &t, err));
    op->out.checkpoint.job = t.job;
    XF_TRY(is_repeat(w, &t, &repeat, err));
    if (repeat) {
        op->out.checkpoint.ended = true;
        return XF_OK;
    }
    if (!t.is_owner || t.state != XF_TASK_LEASED) {
        return late_report(w, &t, op, err);
    }
    switch (t.kind) {
    case XF_TASK_BATCH:
    case XF_TASK_RECHECK: XF_TRY(checkpoint_objects(w, &t, op, err)); break;
    case XF_TASK_PARTS: XF_TRY(checkpoint_parts(w, &t, op, err)); break;
    case XF_TASK_OPEN:
    case XF_TASK_CLOSE:
    case XF_TASK_ABORT:
    case XF_TASK_KIND_N:
        if (in->is_done) {
            return XF_FAIL(err,
                           XF_E_INVAL,
                           "a task of kind %s ends in another way",
                           xf_task_kind_name(t.kind));
        }
        break;
    }
    return xf_job_add(w, t.job, &add, err);
}
