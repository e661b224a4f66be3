/*
 * store_giveback.c - attempts that end without an end of their task, and tasks whose agents die.
 *
 * Invariants:
 * 1. A task given back is ready again and keeps what was reported, or it is withdrawn because its
 *    job is stopped or its upload given up.
 * 2. A death is a lease that was lost without progress; what an agent told and could not be taken
 *    counts as one. At the fifth a batch is split into two of
 *    what is left of it, down to the single object: to split costs nothing, so every death counts.
 * 3. What cannot be split fails (what a recheck has left is tried again by a retry pass; an abort
 *    goes on for ever) after five deaths with suspicion: the agent held this alone for a TTL. A
 *    death among other tasks, or sooner, is an agent that was killed or crashed of something else;
 *    it weighs a fifth, so that what kills each agent at once ends as failed, too. task.deaths
 *    counts these fifths, and whole deaths while it can be split.
 */
#include "coordinator/store_work.h"

static const char died[] = "too many agents in a row died or went silent while they had this";
static const char refused[] = "what agents reported of this could not be taken, again and again";

static enum xf_code insert_half(struct xf_work *w,
                                const struct xf_task *t,
                                const struct xf_manifest *m,
                                const uint32_t *idx,
                                uint32_t n,
                                struct xf_err *err)
{
    struct xf_manifest_enc e;
    struct xf_task half = {.job = t->job,
                           .pass = t->pass,
                           .shard = t->shard,
                           .generation = t->generation,
                           .kind = XF_TASK_BATCH,
                           .source_no = t->source_no,
                           .n_objects = n,
                           .origin = t->id};
    enum xf_code rc = XF_OK;

    xf_manifest_enc_init(&e, t->source_no);
    for (uint32_t i = 0; i < n && rc == XF_OK; i++) {
        rc = xf_manifest_add(&e, &m->objects[idx[i]], err);
    }
    half.bytes = e.size_bytes < INT64_MAX ? e.size_bytes : INT64_MAX;
    xf_buf_reset(&w->raw);
    xf_manifest_finish(&e, &w->raw);
    xf_manifest_enc_fini(&e);
    XF_TRY(rc);
    XF_TRY(xf_task_insert(w, &half, err));
    XF_TRY(xf_manifest_put(w, half.id, xf_buf_view(&w->raw), err));
    if (t->recheck) {
        return xf_sql_run(&w->sql, err, "UPDATE task SET recheck = 1 WHERE id = ?", "i", half.id);
    }
    return XF_OK;
}

/* The original keeps what was reported and is done with it; the rest goes in two. */
static enum xf_code split(struct xf_work *w, struct xf_task *t, enum xf_how how, struct xf_err *err)
{
    uint32_t idx[XF_MANIFEST_MAX];
    struct xf_manifest loaded;
    struct xf_result_set set;
    uint32_t n = 0;
    bool made;

    XF_TRY(xf_manifest_load(w, t, &loaded, err));
    XF_AUTO_MANIFEST m = loaded;
    XF_TRY(xf_result_load(w, t->id, m.n, &set, err));
    XF_AUTO_RESULT_SET guard = set;
    for (uint32_t i = 0; i < m.n; i++) {
        if (guard.at[i].outcome == XF_OUTCOME_PENDING) {
            m.objects[i].attempts += guard.at[i].attempts;
            if (m.objects[i].attempts == 0) {
                m.objects[i].attempts = 1; /* those that died may have written it: it is ours */
            }
            idx[n++] = i;
        }
    }
    if (n != t->n_objects - t->n_reported || n < 2) {
        return XF_FAIL(err, XF_E_CORRUPT, "task %lld has a wrong count", (long long)t->id);
    }
    XF_TRY(insert_half(w, t, &m, idx, n / 2, err));
    XF_TRY(insert_half(w, t, &m, idx + n / 2, n - n / 2, err));
    XF_TRY(xf_sql_run(
        &w->sql, err, "UPDATE task SET n_objects = n_reported WHERE id = ?", "i", t->id));
    t->n_objects = t->n_reported;
    XF_TRY(xf_task_end(w, t, XF_TASK_DONE, how, 0, err));
    return xf_recheck_after(w, t, &made, err);
}

/* Everything that is pending in it fails. */
static enum xf_code fail_rest(struct xf_work *w,
                              struct xf_task *t,
                              const struct xf_in_give_back *in,
                              struct xf_err *err)
{
    struct xf_result r = {.outcome = XF_OUTCOME_FAILED,
                          .code = XF_E_LIMIT,
                          .flags = t->kind == XF_TASK_RECHECK ? XF_RESULT_RETRYABLE : 0,
                          .message = xf_str_c(in->is_refused ? refused : died)};
    struct xf_result_counts added;
    struct xf_result_set set;
    bool made;

    XF_TRY(xf_result_load(w, t->id, t->n_objects, &set, err));
    XF_AUTO_RESULT_SET delta = set; /* what is there already merges as nothing */
    for (uint32_t i = 0; i < delta.n; i++) {
        (void)xf_result_set_put(&delta, i, &r); /* false: it has ended before */
    }
    XF_TRY(xf_report_merge(w, t, &delta, &added, err));
    XF_TRY(xf_task_end(w, t, XF_TASK_DONE, in->how, 0, err));
    return xf_recheck_after(w, t, &made, err);
}

static enum xf_code fail_upload(struct xf_work *w,
                                struct xf_task *t,
                                const struct xf_in_give_back *in,
                                struct xf_err *err)
{
    struct xf_result r = {.outcome = XF_OUTCOME_FAILED,
                          .code = XF_E_LIMIT,
                          .message = xf_str_c(in->is_refused ? refused : died)};
    bool to_abort;

    return xf_upload_finish(w, t, &r, true, &to_abort, err);
}

static bool can_split(const struct xf_task *t)
{
    return t->kind == XF_TASK_BATCH && t->upload == 0 && t->n_objects - t->n_reported >= 2;
}

/* Count it; true when it is one too many. What can be split, and what not, never changes into the
 * other without progress. */
static bool count_death(struct xf_task *t, bool is_weak)
{
    if (can_split(t)) {
        return ++t->deaths >= XF_TASK_DEATHS_MAX;
    }
    t->deaths += is_weak ? 1 : XF_TASK_WEAK_DEATHS;
    return t->deaths >= XF_TASK_DEATHS_MAX * XF_TASK_WEAK_DEATHS && t->kind != XF_TASK_ABORT;
}

static enum xf_code died_too_often(struct xf_work *w,
                                   struct xf_task *t,
                                   const struct xf_in_give_back *in,
                                   struct xf_out_give_back *out,
                                   struct xf_err *err)
{
    if (t->upload != 0) {
        out->failed = true;
        return fail_upload(w, t, in, err);
    }
    if (!can_split(t)) {
        out->failed = true;
        return fail_rest(w, t, in, err);
    }
    out->split = true;
    return split(w, t, in->how, err);
}

/* Is there a reason not to give it out again? */
static enum xf_code
is_unwanted(struct xf_work *w, const struct xf_task *t, bool *unwanted, struct xf_err *err)
{
    struct xf_job_brief job = {.id = 0};
    struct xf_upload u = {.id = 0};

    *unwanted = false;
    if (t->kind == XF_TASK_ABORT) {
        return XF_OK;
    }
    XF_TRY(xf_job_brief(w, t->job, &job, err));
    *unwanted = job.stop != 0;
    if (t->upload != 0) {
        XF_TRY(xf_upload_load(w, t->upload, &u, err));
        *unwanted = *unwanted || u.state >= XF_UPLOAD_ABORTING;
    }
    return XF_OK;
}

static enum xf_code end_attempt(struct xf_work *w,
                                struct xf_task *t,
                                const struct xf_in_give_back *in,
                                struct xf_out_give_back *out,
                                struct xf_err *err)
{
    bool unwanted;
    bool made;

    if (t->upload == 0 && t->n_reported == t->n_objects) { /* only the word `done` was missing */
        XF_TRY(xf_task_end(w, t, XF_TASK_DONE, in->how, 0, err));
        return xf_recheck_after(w, t, &made, err);
    }
    XF_TRY(is_unwanted(w, t, &unwanted, err));
    if (unwanted) {
        XF_TRY(xf_task_end(w, t, XF_TASK_WITHDRAWN, in->how, 0, err));
        return t->upload != 0 ? xf_upload_settle(w, t->upload, err) : XF_OK;
    }
    if ((in->how == XF_HOW_LOST || in->how == XF_HOW_EXPIRED || in->is_refused) &&
        t->progress == 0 && count_death(t, in->is_weak_death)) {
        return died_too_often(w, t, in, out, err);
    }
    return xf_task_end(w, t, XF_TASK_READY, in->how, w->now_ms + in->delay_ms, err);
}

enum xf_code xf_do_give_back(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_give_back *in = &op->in.give_back;
    struct xf_task t = {.id = 0};

    if (in->how < XF_HOW_DRAINED || in->how >= XF_HOW_N || in->how == XF_HOW_ENDED ||
        in->delay_ms < 0 || in->delay_ms > XF_STORE_DELAY_MAX_MS) {
        return XF_FAIL(err, XF_E_INVAL, "a task is not given back like that");
    }
    XF_TRY(xf_task_fence(w, &in->fence, &t, err));
    op->out.give_back.job = t.job;
    if (t.is_owner && t.state != XF_TASK_LEASED) {
        return XF_OK; /* a repeat, or it has ended */
    }
    if (!t.is_owner) {
        return xf_task_stale(&in->fence, err);
    }
    return end_attempt(w, &t, in, &op->out.give_back, err);
}
