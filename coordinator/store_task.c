/*
 * store_task.c - rows of tasks, their manifests and results, and the fence of reports.
 *
 * Invariants:
 * 1. A leased task has an agent, an instance, and exactly one attempt that has not ended, the one
 *    with its number; no other task has one.
 * 2. A task leaves `leased` only by xf_task_end(), whose UPDATE names state and attempt.
 */
#include "coordinator/store_work.h"

#define TASK_COLUMNS                                                                   \
    "SELECT id, job, pass, shard, upload, origin, kind, state, generation, source_no," \
    " attempt, deaths, progress, n_objects, n_reported, bytes, first_part, last_part," \
    " parts_done, recheck, instance FROM task"

/* Order of leasing: what ends uploads first, so that few are open at a time. */
static int64_t rank_of(enum xf_task_kind kind)
{
    switch (kind) {
    case XF_TASK_CLOSE:
    case XF_TASK_ABORT: return 0;
    case XF_TASK_PARTS: return 1;
    case XF_TASK_RECHECK: return 2;
    case XF_TASK_BATCH:
    case XF_TASK_OPEN:
    case XF_TASK_KIND_N: break;
    }
    return 3;
}

static void read_task(sqlite3_stmt *st, struct xf_task *t)
{
    memset(t, 0, sizeof(*t));
    t->id = xf_sql_i64(st, 0);
    t->job = xf_sql_i64(st, 1);
    t->pass = xf_sql_i64(st, 2);
    t->shard = xf_sql_i64(st, 3);
    t->upload = xf_sql_i64(st, 4);
    t->origin = xf_sql_i64(st, 5);
    t->kind = (enum xf_task_kind)xf_sql_i64(st, 6);
    t->state = (enum xf_task_state)xf_sql_i64(st, 7);
    t->generation = xf_sql_u32(st, 8);
    t->source_no = xf_sql_u32(st, 9);
    t->attempt = xf_sql_u32(st, 10);
    t->deaths = xf_sql_u32(st, 11);
    t->progress = xf_sql_u32(st, 12);
    t->n_objects = xf_sql_u32(st, 13);
    t->n_reported = xf_sql_u32(st, 14);
    t->bytes = xf_sql_u64(st, 15);
    t->first_part = xf_sql_u32(st, 16);
    t->last_part = xf_sql_u32(st, 17);
    t->parts_done = xf_sql_u32(st, 18);
    t->recheck = xf_sql_i64(st, 19) != 0;
}

static enum xf_code load(struct xf_work *w,
                         int64_t id,
                         const struct xf_store_fence *f,
                         struct xf_task *t,
                         struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql, &st, err, TASK_COLUMNS " WHERE id = ?", "i", id));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_NOT_FOUND, "no task %lld", (long long)id);
    }
    read_task(st, t);
    t->is_owner = f != NULL && t->attempt == f->attempt &&
                  xf_str_eq(xf_sql_str(st, 20), xf_str_n(f->instance, XF_STORE_INSTANCE_LEN));
    return XF_OK;
}

enum xf_code xf_task_load(struct xf_work *w, int64_t id, struct xf_task *t, struct xf_err *err)
{
    return load(w, id, NULL, t, err);
}

enum xf_code xf_task_fence(struct xf_work *w,
                           const struct xf_store_fence *f,
                           struct xf_task *t,
                           struct xf_err *err)
{
    XF_ASSERT(f->instance != NULL);
    return load(w, f->task, f, t, err);
}

enum xf_code xf_task_stale(const struct xf_store_fence *f, struct xf_err *err)
{
    return XF_FAIL(
        err, XF_E_STALE, "attempt %u of task %lld is over", f->attempt, (long long)f->task);
}

enum xf_code xf_task_insert(struct xf_work *w, struct xf_task *t, struct xf_err *err)
{
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO task(job, pass, shard, generation, kind, rank, source_no, state,"
                      " n_objects, bytes, upload, first_part, last_part, origin)"
                      " VALUES(?, ?, ?, ?, ?, ?, ?, " S_TASK_READY ", ?, ?, ?, ?, ?, ?)",
                      "iiiiiiiiiiiii",
                      t->job,
                      t->pass,
                      t->shard,
                      (int64_t)t->generation,
                      (int64_t)t->kind,
                      rank_of(t->kind),
                      (int64_t)t->source_no,
                      (int64_t)t->n_objects,
                      (int64_t)t->bytes,
                      t->upload,
                      (int64_t)t->first_part,
                      (int64_t)t->last_part,
                      t->origin));
    t->id = sqlite3_last_insert_rowid(w->sql.db);
    t->state = XF_TASK_READY;
    return XF_OK;
}

enum xf_code xf_task_end(struct xf_work *w,
                         struct xf_task *t,
                         enum xf_task_state to,
                         enum xf_how how,
                         int64_t not_before_ms,
                         struct xf_err *err)
{
    XF_ASSERT(t->state == XF_TASK_LEASED && xf_fsm_may(xf_task_fsm, XF_TASK_STATE_N, t->state, to));
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET state = ?, not_before = ?, deaths = ?"
                      " WHERE id = ? AND state = " S_TASK_LEASED " AND attempt = ?",
                      "iiiii",
                      (int64_t)to,
                      not_before_ms,
                      (int64_t)t->deaths,
                      t->id,
                      (int64_t)t->attempt));
    XF_ASSERT(xf_sql_changed(&w->sql) ==
              1); /* one writer, and the row was read in this savepoint */
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE attempt SET ended_ms = ?, how = ? WHERE task = ? AND attempt = ?",
                      "iiii",
                      w->now_ms,
                      (int64_t)how,
                      t->id,
                      (int64_t)t->attempt));
    t->state = to;
    return XF_OK;
}

enum xf_code xf_task_count(struct xf_work *w,
                           struct xf_task *t,
                           const struct xf_result_counts *added,
                           struct xf_err *err)
{
    uint32_t n = 0;

    for (int o = XF_OUTCOME_COPIED; o < XF_OUTCOME_N; o++) {
        n += added->by_outcome[o];
    }
    t->n_reported += n;
    t->progress += n;
    t->deaths = n > 0 ? 0 : t->deaths;
    return xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET n_copied = n_copied + ?, n_skipped = n_skipped + ?,"
                      " n_failed = n_failed + ?, n_vanished = n_vanished + ?,"
                      " n_archived = n_archived + ?, progress = ?, deaths = ? WHERE id = ?",
                      "iiiiiiii",
                      (int64_t)added->by_outcome[XF_OUTCOME_COPIED],
                      (int64_t)added->by_outcome[XF_OUTCOME_SKIPPED],
                      (int64_t)added->by_outcome[XF_OUTCOME_FAILED],
                      (int64_t)added->by_outcome[XF_OUTCOME_VANISHED],
                      (int64_t)added->by_outcome[XF_OUTCOME_ARCHIVED],
                      (int64_t)t->progress,
                      (int64_t)t->deaths,
                      t->id);
}

/* ---- blobs ---- */

enum xf_code xf_manifest_put(struct xf_work *w, int64_t task, struct xf_str raw, struct xf_err *err)
{
    return xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO manifest(task, body) VALUES(?, ?)",
                      "ib",
                      task,
                      xf_zip_pack(w->zip, raw));
}

/* Decompress the first column of the row, if there is one. */
static enum xf_code
unpack_row(struct xf_work *w, sqlite3_stmt *st, bool *found, struct xf_buf *out, struct xf_err *err)
{
    xf_buf_reset(out);
    XF_TRY(xf_sql_next(&w->sql, st, found, err));
    return *found ? xf_zip_unpack(w->zip, xf_sql_str(st, 0), out, err) : XF_OK;
}

enum xf_code xf_manifest_raw(struct xf_work *w, const struct xf_task *t, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    int64_t of = t->kind == XF_TASK_RECHECK ? t->origin : t->id;
    bool found;

    XF_TRY(xf_sql_start(&w->sql, &st, err, "SELECT body FROM manifest WHERE task = ?", "i", of));
    XF_TRY(unpack_row(w, st, &found, &w->raw, err));
    if (!found) {
        return XF_FAIL(err, XF_E_CORRUPT, "task %lld has no manifest", (long long)t->id);
    }
    return XF_OK;
}

enum xf_code xf_manifest_load(struct xf_work *w,
                              const struct xf_task *t,
                              struct xf_manifest *out,
                              struct xf_err *err)
{
    XF_TRY(xf_manifest_raw(w, t, err));
    if (xf_manifest_decode(xf_buf_view(&w->raw), out, err) != XF_OK) {
        return XF_FAIL(err, XF_E_CORRUPT, "the manifest of task %lld is damaged", (long long)t->id);
    }
    return XF_OK;
}

enum xf_code xf_result_raw(struct xf_work *w, int64_t task, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql, &st, err, "SELECT body FROM result WHERE task = ?", "i", task));
    return unpack_row(w, st, &found, &w->raw2, err);
}

enum xf_code xf_result_load(
    struct xf_work *w, int64_t task, uint32_t n, struct xf_result_set *out, struct xf_err *err)
{
    XF_TRY(xf_result_raw(w, task, err));
    if (xf_result_set_decode(xf_buf_view(&w->raw2), n, out, err) != XF_OK) {
        xf_result_set_fini(out);
        return XF_FAIL(err, XF_E_CORRUPT, "the result of task %lld is damaged", (long long)task);
    }
    return XF_OK;
}

enum xf_code
xf_result_put_raw(struct xf_work *w, int64_t task, struct xf_str raw, struct xf_err *err)
{
    return xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO result(task, body) VALUES(?1, ?2)"
                      " ON CONFLICT(task) DO UPDATE SET body = ?2",
                      "ib",
                      task,
                      xf_zip_pack(w->zip, raw));
}

enum xf_code
xf_result_put(struct xf_work *w, int64_t task, const struct xf_result_set *set, struct xf_err *err)
{
    xf_buf_reset(&w->raw2);
    xf_result_set_encode(set, &w->raw2);
    if (w->raw2.full) {
        return XF_FAIL(err, XF_E_LIMIT, "the result of task %lld is too long", (long long)task);
    }
    return xf_result_put_raw(w, task, xf_buf_view(&w->raw2), err);
}

enum xf_code
xf_task_parts(struct xf_work *w, int64_t task, struct xf_part_list *out, struct xf_err *err)
{
    XF_TRY(xf_result_raw(w, task, err));
    return xf_parts_decode(xf_buf_view(&w->raw2), out, err);
}
