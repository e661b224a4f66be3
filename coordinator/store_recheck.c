/*
 * store_recheck.c - looking again at what a late report may have touched.
 *
 * An S3 write cannot be fenced: an agent that lost its lease may have written after the new owner.
 * So once a batch that got a late report has ended, a recheck task with the same manifest compares
 * every object with the source and repairs it. Its results are folded into the batch's own.
 *
 * Invariants:
 * 1. A recheck never counts an object twice: job counters move only from one outcome to another.
 * 2. Objects that the batch did not end as copied or skipped are not looked at: they are reported
 *    as they stand in the recheck's result from its start.
 */
#include "coordinator/store_work.h"

static bool is_there(const struct xf_result *r)
{
    return r->outcome == XF_OUTCOME_COPIED || r->outcome == XF_OUTCOME_SKIPPED;
}

/* What a recheck starts with: everything it need not look at. */
static enum xf_code
seed(struct xf_work *w, struct xf_task *recheck, const struct xf_result_set *of, struct xf_err *err)
{
    const struct xf_result moved = {.outcome = XF_OUTCOME_SKIPPED}; /* into another batch */
    struct xf_result_counts counts;
    XF_AUTO_RESULT_SET set = {0};

    xf_result_set_init(&set, of->n);
    for (uint32_t i = 0; i < of->n; i++) {
        const struct xf_result *r = &of->at[i];
        if (!is_there(r)) {
            (void)xf_result_set_put(
                &set, i, r->outcome == XF_OUTCOME_PENDING ? &moved : r); /* true: it is empty */
        }
    }
    xf_result_set_count(&set, &counts);
    XF_TRY(xf_result_put(w, recheck->id, &set, err));
    XF_TRY(xf_task_count(w, recheck, &counts, err));
    recheck->progress = 0;
    return XF_OK;
}

static enum xf_code make(struct xf_work *w, int64_t batch, bool *made, struct xf_err *err)
{
    struct xf_task t = {.id = 0};
    struct xf_manifest loaded;
    struct xf_result_set of;
    uint32_t n = 0;

    XF_TRY(xf_task_load(w, batch, &t, err));
    XF_TRY(xf_manifest_load(w, &t, &loaded, err));
    XF_AUTO_MANIFEST m = loaded;
    XF_TRY(xf_result_load(w, t.id, m.n, &of, err));
    XF_AUTO_RESULT_SET guard = of;
    struct xf_task recheck = {.job = t.job,
                              .pass = t.pass,
                              .shard = t.shard,
                              .generation = t.generation,
                              .kind = XF_TASK_RECHECK,
                              .source_no = t.source_no,
                              .n_objects = m.n,
                              .bytes = t.bytes,
                              .origin = t.id};
    for (uint32_t i = 0; i < m.n; i++) {
        n += is_there(&guard.at[i]) ? 1 : 0;
    }
    if (n == 0) {
        return XF_OK;
    }
    XF_TRY(xf_task_insert(w, &recheck, err));
    XF_TRY(seed(w, &recheck, &guard, err));
    *made = true;
    return XF_OK;
}

static enum xf_code set_mark(struct xf_work *w, int64_t task, int64_t value, struct xf_err *err)
{
    return xf_sql_run(&w->sql, err, "UPDATE task SET recheck = ? WHERE id = ?", "ii", value, task);
}

/* The batch has ended: a recheck that nobody had yet will do; one that was begun has perhaps looked
 * at what is late already, and is followed by another. */
static enum xf_code mark_ended(struct xf_work *w, int64_t batch, bool *made, struct xf_err *err)
{
    int64_t waiting;
    int64_t begun;

    XF_TRY(xf_sql_number(&w->sql,
                         &waiting,
                         err,
                         "SELECT count(*) FROM task WHERE origin = ? AND origin > 0"
                         " AND kind = " S_KIND_RECHECK " AND state = " S_TASK_READY
                         " AND attempt = 0",
                         "i",
                         batch));
    XF_TRY(xf_sql_number(&w->sql,
                         &begun,
                         err,
                         "SELECT coalesce(max(id), 0) FROM task WHERE origin = ? AND origin > 0"
                         " AND kind = " S_KIND_RECHECK " AND (state = " S_TASK_LEASED
                         " OR (state = " S_TASK_READY " AND attempt > 0))",
                         "i",
                         batch));
    if (waiting > 0) {
        return XF_OK;
    }
    if (begun > 0) {
        return set_mark(w, begun, 1, err);
    }
    return make(w, batch, made, err);
}

/* A batch that was split: the late report may have touched what its halves hold now. */
static enum xf_code mark_halves(struct xf_work *w, int64_t batch, bool *made, struct xf_err *err)
{
    int64_t ids[2];
    size_t n = 0;
    bool more = true;

    {
        XF_AUTO_STMT *st = NULL;
        XF_TRY(xf_sql_start(
            &w->sql,
            &st,
            err,
            "SELECT id FROM task WHERE origin = ? AND origin > 0 AND kind = " S_KIND_BATCH,
            "i",
            batch));
        while (more && n < XF_ARRAY_LEN(ids)) {
            XF_TRY(xf_sql_next(&w->sql, st, &more, err));
            if (more) {
                ids[n++] = xf_sql_i64(st, 0);
            }
        }
    }
    for (size_t i = 0; i < n; i++) {
        struct xf_task half;
        XF_TRY(xf_task_load(w, ids[i], &half, err));
        XF_TRY(xf_recheck_mark(w, &half, made, err));
    }
    return XF_OK;
}

static enum xf_code
mark_one(struct xf_work *w, const struct xf_task *t, bool *made, struct xf_err *err)
{
    return t->state == XF_TASK_DONE ? mark_ended(w, t->id, made, err) : set_mark(w, t->id, 1, err);
}

/* Objects that failed in the batch are in batches of later passes, of which no row says which: all
 * of them are looked at. */
static enum xf_code mark_later(
    struct xf_work *w, const struct xf_task *t, int64_t batch, bool *made, struct xf_err *err)
{
    int64_t any;
    int64_t id = 0;

    XF_TRY(xf_sql_number(&w->sql,
                         &any,
                         err,
                         "SELECT EXISTS(SELECT 1 FROM failure WHERE task = ? AND upload = 0"
                         " AND state = " S_FAIL_REQUEUED ")",
                         "i",
                         batch));
    while (any != 0) {
        struct xf_task later;
        XF_TRY(xf_sql_number(&w->sql,
                             &id,
                             err,
                             "SELECT id FROM task WHERE job = ? AND id > ? AND kind = " S_KIND_BATCH
                             " AND pass > ? AND state <> " S_TASK_WITHDRAWN " ORDER BY id LIMIT 1",
                             "iii",
                             t->job,
                             id,
                             t->pass));
        if (id == 0) {
            break;
        }
        XF_TRY(xf_task_load(w, id, &later, err));
        XF_TRY(mark_one(w, &later, made, err));
    }
    return XF_OK;
}

enum xf_code
xf_recheck_mark(struct xf_work *w, const struct xf_task *t, bool *made, struct xf_err *err)
{
    struct xf_job_brief job = {.id = 0};

    XF_TRY(xf_job_brief(w, t->job, &job, err));
    if (xf_job_state_is_end(job.state)) {
        return xf_notice_add(w,
                             t->job,
                             "late_report",
                             XF_STR_LIT("an agent that had lost its lease reported after the job's "
                                        "end: its objects were not checked again"),
                             err);
    }
    if (job.stop != 0) {
        return XF_OK;
    }
    if (t->kind == XF_TASK_RECHECK) {
        XF_TRY(mark_ended(w, t->origin, made, err));
        return mark_later(w, t, t->origin, made, err);
    }
    XF_TRY(mark_one(w, t, made, err));
    XF_TRY(mark_later(w, t, t->id, made, err));
    return t->state == XF_TASK_DONE ? mark_halves(w, t->id, made, err) : XF_OK;
}

enum xf_code
xf_recheck_after(struct xf_work *w, const struct xf_task *t, bool *made, struct xf_err *err)
{
    struct xf_job_brief job = {.id = 0};

    *made = false;
    if (!t->recheck) {
        return XF_OK;
    }
    XF_TRY(set_mark(w, t->id, 0, err));
    XF_TRY(xf_job_brief(w, t->job, &job, err));
    if (job.stop != 0) {
        return XF_OK;
    }
    return make(w, t->kind == XF_TASK_RECHECK ? t->origin : t->id, made, err);
}

/* ---- folding ---- */

struct fold {
    struct xf_job_delta add;
    bool failed[XF_MANIFEST_MAX];
    bool changed;
    bool any_failed;
};

static void
fold_one(struct fold *f, struct xf_result_set *of, uint32_t i, const struct xf_result *r)
{
    struct xf_result *o = &of->at[i];
    struct xf_result fresh = *r;

    if (!is_there(o) || r->outcome == XF_OUTCOME_SKIPPED) {
        return;
    }
    xf_job_delta_outcome(&f->add, o->outcome, -1);
    xf_job_delta_outcome(&f->add, r->outcome, 1);
    f->add.bytes_copied -= o->outcome == XF_OUTCOME_COPIED ? (int64_t)o->size_bytes : 0;
    f->add.bytes_copied += r->outcome == XF_OUTCOME_COPIED ? (int64_t)r->size_bytes : 0;
    if ((r->flags & (uint32_t)XF_RESULT_OWN) != 0) { /* what was found is as it was written */
        fresh.flags |= o->flags & (uint32_t)XF_RESULT_DROPPED;
    }
    f->add.dropped += xf_result_is_dropped(&fresh) - xf_result_is_dropped(o);
    f->failed[i] = r->outcome == XF_OUTCOME_FAILED;
    f->any_failed = f->any_failed || f->failed[i];
    f->changed = true;
    memset(o, 0, sizeof(*o));
    (void)xf_result_set_put(of, i, &fresh); /* true: it is empty now */
}

enum xf_code xf_recheck_fold(struct xf_work *w,
                             const struct xf_task *t,
                             const struct xf_result_set *set,
                             const bool *is_new,
                             struct xf_err *err)
{
    struct xf_task batch;
    struct xf_result_set loaded;
    struct fold f = {.changed = false};

    XF_TRY(xf_task_load(w, t->origin, &batch, err));
    XF_TRY(xf_result_load(w, batch.id, set->n, &loaded, err));
    XF_AUTO_RESULT_SET of = loaded;
    for (uint32_t i = 0; i < set->n; i++) {
        if (is_new[i]) {
            fold_one(&f, &of, i, &set->at[i]);
        }
    }
    if (!f.changed) {
        return XF_OK;
    }
    XF_TRY(xf_result_put(w, batch.id, &of, err));
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET n_copied = n_copied + ?, n_skipped = n_skipped + ?,"
                      " n_failed = n_failed + ?, n_vanished = n_vanished + ?,"
                      " n_archived = n_archived + ? WHERE id = ?",
                      "iiiiii",
                      f.add.copied,
                      f.add.skipped,
                      f.add.failed,
                      f.add.vanished,
                      f.add.archived,
                      batch.id));
    if (f.any_failed) {
        XF_TRY(xf_failure_add_new(w, &batch, &of, f.failed, err));
    }
    return xf_job_add(w, t->job, &f.add, err);
}

enum xf_code xf_do_recheck(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_task t = {.id = 0};

    XF_TRY(xf_task_load(w, op->in.recheck.task, &t, err));
    if (t.upload != 0) {
        return XF_FAIL(err, XF_E_INVAL, "only a batch is checked again");
    }
    op->out.recheck.job = t.job;
    return xf_recheck_mark(w, &t, &op->out.recheck.made, err);
}
