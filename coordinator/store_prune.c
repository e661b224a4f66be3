/*
 * store_prune.c - forgetting ended jobs.
 *
 * PRUNE marks a job; from that commit on nobody finds it (xf_job_brief and the reads pass it over).
 * PRUNE_STEP deletes rows of the oldest marked job, a bounded number at a call, its own row last:
 * a kill between two steps leaves a marked job, which the next step goes on with. Freed pages stay
 * in the file and are used again; the file does not shrink.
 *
 * Blobs and attempts go in the transaction of their task, so that none is left without it.
 */
#include "coordinator/store_work.h"

enum { ROWS_MAX = 1000 };

/* ---- mark ---- */

/* Ended jobs that are not marked, above `after`; ?2: only this one, 0 for all. */
#define ENDED_JOBS                                                                \
    "SELECT id, public_id FROM job WHERE pruned = 0 AND state NOT IN " S_JOB_LIVE \
    " AND finished_ms <= ?3 AND (?2 = 0 OR id = ?2) AND id > ?1 ORDER BY id LIMIT ?4"

static enum xf_code pick(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_prune *in = &op->in.prune;
    struct xf_out_prune *out = &op->out.prune;
    XF_AUTO_STMT *st = NULL;

    out->jobs = xf_arena_calloc(&op->out_arena, in->limit, sizeof(*out->jobs));
    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        ENDED_JOBS,
                        "iiii",
                        in->after,
                        in->job,
                        in->before_ms,
                        (int64_t)in->limit + 1));
    for (;;) {
        bool more;
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        if (out->n == in->limit) {
            out->more = true;
            return XF_OK;
        }
        out->next = xf_sql_i64(st, 0);
        out->jobs[out->n++] = (struct xf_pruned){out->next, xf_sql_dup(st, 1, &op->out_arena)};
    }
}

enum xf_code xf_do_prune(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_prune *in = &op->in.prune;
    struct xf_job_brief job = {.id = 0};

    if (in->limit < 1 || in->limit > ROWS_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "prune limit %u: 1 to %d", in->limit, ROWS_MAX);
    }
    if (in->job != 0) {
        XF_TRY(xf_job_brief(w, in->job, &job, err));
        if (!xf_job_state_is_end(job.state)) {
            return XF_FAIL(err,
                           XF_E_INVAL,
                           "the job is %s: only one that has ended can be pruned",
                           xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, job.state));
        }
    }
    XF_TRY(pick(w, op, err));
    for (size_t i = 0; i < op->out.prune.n && !in->is_dry_run; i++) {
        XF_TRY(xf_sql_run(
            &w->sql, err, "UPDATE job SET pruned = 1 WHERE id = ?", "i", op->out.prune.jobs[i].id));
    }
    return XF_OK;
}

/* ---- step ---- */

/* The same tasks in each statement of a step: those of the lowest kind and id. */
#define SOME_TASKS "(SELECT id FROM task WHERE job = ?1 ORDER BY kind, id LIMIT ?2)"
#define SOME(table) \
    "DELETE FROM " table " WHERE id IN (SELECT id FROM " table " WHERE job = ?1 LIMIT ?2)"

/* In this order; a step ends with the first that is `last` and deleted something. */
static const struct {
    const char *sql;
    bool is_last;
} deletes[] = {
    {"DELETE FROM manifest WHERE task IN " SOME_TASKS, false},
    {"DELETE FROM result WHERE task IN " SOME_TASKS, false},
    {"DELETE FROM attempt WHERE task IN " SOME_TASKS, false},
    {"DELETE FROM task WHERE id IN " SOME_TASKS, true},
    {SOME("upload"), true},
    {SOME("failure"), true},
    {SOME("notice"), true},
    {SOME("shard"), true},
    {SOME("pass"), true},
};

/* What is bounded by itself, and the job's row. */
static const char *const last_deletes[] = {
    "DELETE FROM setting WHERE job = ?",
    "DELETE FROM job_spec WHERE job = ?",
    "DELETE FROM job WHERE id = ?",
};

static enum xf_code
delete_some(struct xf_work *w, int64_t job, int64_t limit, bool *deleted, struct xf_err *err)
{
    *deleted = false;
    for (size_t i = 0; i < XF_ARRAY_LEN(deletes) && !*deleted; i++) {
        XF_TRY(xf_sql_run(&w->sql, err, deletes[i].sql, "ii", job, limit));
        *deleted = deletes[i].is_last && xf_sql_changed(&w->sql) > 0;
    }
    return XF_OK;
}

enum xf_code xf_do_prune_step(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_prune_step *in = &op->in.prune_step;
    int64_t job;
    bool deleted;

    if (in->limit < 1 || in->limit > ROWS_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "prune limit %u: 1 to %d", in->limit, ROWS_MAX);
    }
    XF_TRY(xf_sql_number(
        &w->sql, &job, err, "SELECT id FROM job WHERE pruned = 1 ORDER BY id LIMIT 1", ""));
    if (job == 0) {
        return XF_OK;
    }
    op->out.prune_step.more = true;
    XF_TRY(delete_some(w, job, in->limit, &deleted, err));
    for (size_t i = 0; i < XF_ARRAY_LEN(last_deletes) && !deleted; i++) {
        XF_TRY(xf_sql_run(&w->sql, err, last_deletes[i], "i", job));
    }
    return XF_OK;
}
