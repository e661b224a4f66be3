/*
 * store_job.c - the life of a job in the store: create, move, stop, finish; notices and agents.
 *
 * Invariants:
 * 1. A job ends only when no task is ready or leased and no upload is live (store_states.c).
 * 2. `completed` means: nothing failed, archived or pending, every shard done.
 * 3. Counters change in the transaction that changes the rows they count.
 */
#include "coordinator/store_work.h"

enum {
    NAME_MAX_BYTES = 1024,
    SPEC_MAX = 1024 * 1024,
    WORD_MAX = 64,
    TEXT_MAX = 2048,
    NOTICES_MAX = 1000
};

static enum xf_code
check_len(struct xf_str s, size_t min, size_t max, const char *what, struct xf_err *err)
{
    if (s.len < min || s.len > max) {
        return XF_FAIL(
            err, XF_E_INVAL, "%s of %zu bytes: %zu to %zu are taken", what, s.len, min, max);
    }
    return XF_OK;
}

enum xf_code
xf_job_brief(struct xf_work *w, int64_t job, struct xf_job_brief *out, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id, state, stop FROM job WHERE id = ? AND pruned = 0",
                        "i",
                        job));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_NOT_FOUND, "no job %lld", (long long)job);
    }
    out->id = xf_sql_i64(st, 0);
    out->state = (enum xf_job_state)xf_sql_i64(st, 1);
    out->stop = (enum xf_job_state)xf_sql_i64(st, 2);
    return XF_OK;
}

enum xf_code
xf_job_add(struct xf_work *w, int64_t job, const struct xf_job_delta *d, struct xf_err *err)
{
    static const struct xf_job_delta none;

    if (memcmp(d, &none, sizeof(none)) == 0) {
        return XF_OK;
    }
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE job SET listed = listed + ?, copied = copied + ?,"
                      " skipped = skipped + ?, failed = failed + ?, vanished = vanished + ?,"
                      " archived = archived + ?, bytes_listed = bytes_listed + ?,"
                      " bytes_copied = bytes_copied + ?, bytes_through = bytes_through + ?,"
                      " retries = retries + ?, throttled = throttled + ?, dropped = dropped + ?,"
                      " keys_returned = keys_returned + ?, list_requests = list_requests + ?"
                      " WHERE id = ?",
                      "iiiiiiiiiiiiiii",
                      d->listed,
                      d->copied,
                      d->skipped,
                      d->failed,
                      d->vanished,
                      d->archived,
                      d->bytes_listed,
                      d->bytes_copied,
                      d->bytes_through,
                      d->retries,
                      d->throttled,
                      d->dropped,
                      d->keys_returned,
                      d->list_requests,
                      job);
}

void xf_job_delta_outcome(struct xf_job_delta *d, enum xf_outcome outcome, int sign)
{
    switch (outcome) {
    case XF_OUTCOME_COPIED: d->copied += sign; break;
    case XF_OUTCOME_SKIPPED: d->skipped += sign; break;
    case XF_OUTCOME_FAILED: d->failed += sign; break;
    case XF_OUTCOME_VANISHED: d->vanished += sign; break;
    case XF_OUTCOME_ARCHIVED: d->archived += sign; break;
    case XF_OUTCOME_PENDING: /* what is left over is pending */
    case XF_OUTCOME_N: break;
    }
}

/* Only the newest of a job are kept: whoever talks too much must not fill the disk. */
static enum xf_code put_notice(
    struct xf_work *w, int64_t job, struct xf_str code, struct xf_str text, struct xf_err *err)
{
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO notice(job, at_ms, code, text) VALUES(?, ?, ?, ?)",
                      "iisb",
                      job,
                      w->now_ms,
                      code,
                      text));
    return xf_sql_run(&w->sql,
                      err,
                      "DELETE FROM notice WHERE job = ?1 AND id <= (SELECT id FROM notice"
                      " WHERE job = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                      "ii",
                      job,
                      (int64_t)NOTICES_MAX);
}

enum xf_code xf_notice_add(
    struct xf_work *w, int64_t job, const char *code, struct xf_str text, struct xf_err *err)
{
    return put_notice(w, job, xf_str_c(code), text, err);
}

enum xf_code xf_pass_add(
    struct xf_work *w, int64_t job, enum xf_pass_kind kind, int64_t *pass, struct xf_err *err)
{
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO pass(job, no, kind, created_ms) VALUES(?1,"
                      " (SELECT coalesce(max(no), 0) + 1 FROM pass WHERE job = ?1), ?, ?)",
                      "iii",
                      job,
                      (int64_t)kind,
                      w->now_ms));
    *pass = sqlite3_last_insert_rowid(w->sql.db);
    return XF_OK;
}

/* ---- create ---- */

static enum xf_code find_submitted(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id, public_id FROM job WHERE submit_key = ?",
                        "b",
                        op->in.job_create.submit_key));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (found) {
        op->out.job_create.job = xf_sql_i64(st, 0);
        op->out.job_create.public_id = xf_sql_dup(st, 1, &op->out_arena);
    }
    return XF_OK;
}

static enum xf_code
add_shards(struct xf_work *w, const struct xf_in_job_create *in, int64_t job, struct xf_err *err)
{
    int64_t pass;

    XF_TRY(xf_pass_add(w, job, XF_PASS_COPY, &pass, err));
    for (uint32_t i = 0; i < in->n_sources; i++) {
        XF_TRY(xf_sql_run(&w->sql,
                          err,
                          "INSERT INTO shard(job, pass, source_no, lo, hi, cursor, state)"
                          " VALUES(?, ?, ?, ?, x'', x'', " S_SHARD_OPEN ")",
                          "iiib",
                          job,
                          pass,
                          (int64_t)i,
                          in->shard_lo[i]));
    }
    return XF_OK;
}

enum xf_code xf_do_job_create(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_job_create *in = &op->in.job_create;
    struct xf_out_job_create *out = &op->out.job_create;
    int64_t same;

    XF_TRY(check_len(in->submit_key, 1, WORD_MAX * 2, "submit key", err));
    XF_TRY(check_len(in->public_id, 3, WORD_MAX, "job id", err));
    XF_TRY(check_len(in->name, 0, NAME_MAX_BYTES, "job name", err));
    XF_TRY(check_len(in->spec, 1, SPEC_MAX, "job text", err));
    if (in->n_sources < 1 || in->n_sources > XF_SOURCE_NO_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "a job of %u sources", in->n_sources);
    }
    XF_TRY(find_submitted(w, op, err));
    if (out->job != 0) {
        return XF_OK;
    }
    XF_TRY(xf_sql_number(
        &w->sql, &same, err, "SELECT count(*) FROM job WHERE public_id = ?", "s", in->public_id));
    if (same != 0) {
        return XF_FAIL(err, XF_E_EXISTS, "job id '%.*s' is taken", XF_STR_ARG(in->public_id));
    }
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO job(public_id, submit_key, name, priority, state, created_ms)"
                      " VALUES(?, ?, ?, ?, ?, ?)",
                      "sbsiii",
                      in->public_id,
                      in->submit_key,
                      in->name,
                      (int64_t)in->priority,
                      (int64_t)XF_JOB_QUEUED,
                      w->now_ms));
    out->job = sqlite3_last_insert_rowid(w->sql.db);
    out->public_id = xf_arena_dup(&op->out_arena, in->public_id);
    out->is_new = true;
    XF_TRY(xf_sql_run(
        &w->sql, err, "INSERT INTO job_spec(job, spec) VALUES(?, ?)", "ib", out->job, in->spec));
    return add_shards(w, in, out->job, err);
}

/* ---- state ---- */

enum xf_code xf_do_job_state(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_job_state *in = &op->in.job_state;
    struct xf_job_brief job = {.id = 0};
    enum xf_job_state to;

    XF_TRY(xf_job_brief(w, in->job, &job, err));
    to = in->to == 0 ? job.state : in->to;
    if ((in->from & XF_TO(job.state)) == 0) {
        return XF_FAIL(
            err, XF_E_STALE, "job is %s", xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, job.state));
    }
    if (to != job.state && (!xf_fsm_may(xf_job_fsm, XF_JOB_STATE_N, job.state, to) ||
                            xf_job_state_is_end(job.state) || xf_job_state_is_end(to))) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "a job that is %s cannot become %s",
                       xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, job.state),
                       xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, to));
    }
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE job SET state = ?2, started_ms = CASE WHEN ?2 = " S_JOB_RUNNING
                      " AND started_ms = 0 THEN ?3 ELSE started_ms END WHERE id = ?1",
                      "iii",
                      in->job,
                      (int64_t)to,
                      w->now_ms));
    if (!in->set_phase) {
        return XF_OK;
    }
    XF_TRY(check_len(in->phase, 0, WORD_MAX, "phase", err));
    XF_TRY(check_len(in->reason, 0, TEXT_MAX, "reason", err));
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE job SET phase = ?, reason = ? WHERE id = ?",
                      "ssi",
                      in->phase,
                      in->reason,
                      in->job);
}

/* ---- stop ---- */

/* An abort task for every upload that is being aborted and has no task leased or waiting for it. */
static enum xf_code settle_job(struct xf_work *w, int64_t job, struct xf_err *err)
{
    XF_AUTO_ARENA arena = {NULL, 0};
    struct one {
        int64_t upload;
        struct one *next;
    } *first = NULL;
    bool more = true;
    XF_AUTO_STMT *st = NULL;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id FROM upload WHERE job = ? AND state < " S_UP_DONE
                        " AND state = " S_UP_ABORTING,
                        "i",
                        job));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            break;
        }
        struct one *o = xf_arena_calloc(&arena, 1, sizeof(*o));
        *o = (struct one){xf_sql_i64(st, 0), first};
        first = o;
    }
    for (const struct one *o = first; o != NULL; o = o->next) {
        XF_TRY(xf_upload_settle(w, o->upload, err));
    }
    return XF_OK;
}

enum xf_code xf_do_job_stop(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_job_stop *in = &op->in.job_stop;
    struct xf_job_brief job = {.id = 0};

    if (in->end != XF_JOB_CANCELLED && in->end != XF_JOB_FAILED) {
        return XF_FAIL(err, XF_E_INVAL, "a job is stopped to be cancelled or failed");
    }
    XF_TRY(check_len(in->reason, 0, TEXT_MAX, "reason", err));
    XF_TRY(xf_job_brief(w, in->job, &job, err));
    if (job.state == in->end || job.stop == in->end) {
        return XF_OK;
    }
    if (xf_job_state_is_end(job.state)) {
        return XF_FAIL(err,
                       XF_E_STALE,
                       "job is %s already",
                       xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, job.state));
    }
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE job SET stop = ?, phase = 'stopping', reason = ? WHERE id = ?",
                      "isi",
                      (int64_t)in->end,
                      in->reason,
                      in->job));
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET state = " S_TASK_WITHDRAWN
                      " WHERE job = ? AND state = " S_TASK_READY " AND kind <> " S_KIND_ABORT,
                      "i",
                      in->job));
    op->out.job_stop.withdrawn = (uint64_t)xf_sql_changed(&w->sql);
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE upload SET state = CASE state WHEN " S_UP_PLANNED " THEN " S_UP_GONE
                      " ELSE " S_UP_ABORTING " END WHERE job = ? AND state < " S_UP_ABORTING,
                      "i",
                      in->job));
    return settle_job(w, in->job, err);
}

/* ---- finish ---- */

static enum xf_code check_idle(struct xf_work *w, int64_t job, bool stopped, struct xf_err *err)
{
    static const char *const live[] = {
        "SELECT EXISTS(SELECT 1 FROM task WHERE job = ? AND state = " S_TASK_READY ")",
        "SELECT EXISTS(SELECT 1 FROM task WHERE job = ? AND state = " S_TASK_LEASED ")",
        "SELECT EXISTS(SELECT 1 FROM upload WHERE job = ? AND state < " S_UP_DONE ")",
        "SELECT EXISTS(SELECT 1 FROM shard WHERE job = ? AND state = " S_SHARD_OPEN ")"};
    static const char *const what[] = {
        "tasks are ready", "tasks are leased", "uploads are open", "the listing is not complete"};

    for (size_t i = 0; i < XF_ARRAY_LEN(live); i++) {
        int64_t n;
        XF_TRY(xf_sql_number(&w->sql, &n, err, live[i], "i", job));
        if (n != 0 && !(stopped && i == 3)) {
            return XF_FAIL(err, XF_E_BUSY, "the job cannot end: %s", what[i]);
        }
    }
    return XF_OK;
}

enum xf_code xf_do_job_finish(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_job_finish *in = &op->in.job_finish;
    struct xf_job_brief job = {.id = 0};
    int64_t bad = 0;

    XF_TRY(check_len(in->reason, 0, TEXT_MAX, "reason", err));
    XF_TRY(xf_job_brief(w, in->job, &job, err));
    if (!xf_job_state_is_end(in->end) || (job.stop != 0 && job.stop != in->end)) {
        return XF_FAIL(err, XF_E_INVAL, "not an end of this job");
    }
    if (job.state == in->end) {
        return XF_OK;
    }
    if (xf_job_state_is_end(job.state)) {
        return XF_FAIL(err,
                       XF_E_STALE,
                       "job is %s already",
                       xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, job.state));
    }
    XF_TRY(check_idle(w, in->job, job.stop != 0, err));
    if (in->end == XF_JOB_COMPLETED) {
        XF_TRY(xf_sql_number(&w->sql,
                             &bad,
                             err,
                             "SELECT failed + archived + abs(listed - copied - skipped - vanished)"
                             " FROM job WHERE id = ?",
                             "i",
                             in->job));
    } else if (in->end == XF_JOB_COMPLETED_WITH_FAILURES) {
        XF_TRY(xf_sql_number(
            &w->sql,
            &bad,
            err,
            "SELECT listed - copied - skipped - vanished - failed - archived FROM job WHERE id = ?",
            "i",
            in->job));
    }
    if (bad != 0) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "the job cannot end as %s: %lld objects failed or are pending",
                       xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, in->end),
                       (long long)bad);
    }
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE job SET state = ?2, stop = 0, phase = 'end', exit_code = ?3,"
                      " finished_ms = ?4, reason = CASE WHEN ?5 = '' THEN reason ELSE ?5 END"
                      " WHERE id = ?1",
                      "iiiis",
                      in->job,
                      (int64_t)in->end,
                      (int64_t)in->exit_code,
                      w->now_ms,
                      in->reason);
}

/* ---- notices and agents ---- */

enum xf_code xf_do_note(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_note *in = &op->in.note;

    XF_TRY(check_len(in->code, 1, WORD_MAX, "notice code", err));
    XF_TRY(check_len(in->text, 0, TEXT_MAX, "notice", err));
    return put_notice(w, in->job, in->code, in->text, err);
}

enum xf_code xf_do_agent_seen(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_agent_seen *in = &op->in.agent_seen;

    XF_TRY(check_len(in->id, 1, XF_STORE_AGENT_MAX, "agent id", err));
    int64_t draining = 0;
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO agent(id, instance, version, host, reason, first_ms, last_ms)"
                      " VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?6) ON CONFLICT(id) DO UPDATE SET"
                      " instance = ?2, version = ?3, host = ?4, reason = ?5, last_ms = ?6",
                      "sbsssi",
                      in->id,
                      xf_str_n(in->instance, XF_STORE_INSTANCE_LEN),
                      in->version,
                      in->host,
                      in->reason,
                      w->now_ms));
    XF_TRY(xf_sql_number(
        &w->sql, &draining, err, "SELECT draining FROM agent WHERE id = ?", "s", in->id));
    op->out.agent_seen.is_draining = draining != 0;
    return XF_OK;
}

enum xf_code xf_do_agent_drain(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_agent_drain *in = &op->in.agent_drain;
    int64_t found = 0;

    XF_TRY(xf_sql_number(
        &w->sql, &found, err, "SELECT count(*) FROM agent WHERE id = ?", "s", in->id));
    if (found == 0) {
        return XF_FAIL(err, XF_E_NOT_FOUND, "no agent '%.*s' was seen", XF_STR_ARG(in->id));
    }
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE agent SET draining = ?2 WHERE id = ?1",
                      "si",
                      in->id,
                      (int64_t)(in->on ? 1 : 0));
}

enum xf_code xf_do_tune(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_tune *in = &op->in.tune;
    struct xf_job_brief job = {.id = 0};

    XF_TRY(check_len(in->name, 1, WORD_MAX, "setting", err));
    XF_TRY(check_len(in->value, 0, NAME_MAX_BYTES, "value of a setting", err));
    if (in->job != 0) {
        XF_TRY(xf_job_brief(w, in->job, &job, err));
        if (xf_job_state_is_end(job.state)) {
            return XF_FAIL(err, XF_E_INVAL, "the job has ended");
        }
    }
    if (in->value.len == 0) {
        return xf_sql_run(&w->sql,
                          err,
                          "DELETE FROM setting WHERE job = ? AND name = ?",
                          "is",
                          in->job,
                          in->name);
    }
    return xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO setting(job, name, value) VALUES(?1, ?2, ?3)"
                      " ON CONFLICT(job, name) DO UPDATE SET value = ?3",
                      "iss",
                      in->job,
                      in->name,
                      in->value);
}
