/* store_read_rows.c - pages of failures, uploads, notices, attempts and agents, by id ascending. */
#include "coordinator/store_work.h"

/* clang-format off */
#define UPLOAD_COLUMNS                                                                         \
    "SELECT id, job, pass, source_no, key, size, etag, mtime_ms, storage_class, version_id,"   \
    " attempts, state, outcome, upload_id, digest, part_size, n_parts, intent_ms,"             \
    " (SELECT coalesce(sum(parts_done), 0) FROM task WHERE upload = u.id AND upload > 0), sum," \
    " is_left"                                                                                 \
    " FROM upload u"
/* clang-format on */

static struct xf_object read_object(sqlite3_stmt *st, int col, struct xf_arena *a)
{
    return (struct xf_object){.key = xf_sql_dup(st, col, a),
                              .size = xf_sql_u64(st, col + 1),
                              .etag = xf_sql_dup(st, col + 2, a),
                              .mtime_ms = xf_sql_i64(st, col + 3),
                              .storage_class = xf_sql_dup(st, col + 4, a),
                              .version_id = xf_sql_dup(st, col + 5, a),
                              .attempts = xf_sql_u32(st, col + 6)};
}

static void read_upload(sqlite3_stmt *st, struct xf_arena *a, struct xf_upload_row *r)
{
    *r = (struct xf_upload_row){.id = xf_sql_i64(st, 0),
                                .job = xf_sql_i64(st, 1),
                                .pass = xf_sql_i64(st, 2),
                                .source_no = xf_sql_u32(st, 3),
                                .object = read_object(st, 4, a),
                                .state = (enum xf_upload_state)xf_sql_i64(st, 11),
                                .outcome = (enum xf_outcome)xf_sql_i64(st, 12),
                                .upload_id = xf_sql_dup(st, 13, a),
                                .digest = xf_sql_dup(st, 14, a),
                                .part_size = xf_sql_u64(st, 15),
                                .n_parts = xf_sql_u32(st, 16),
                                .intent_ms = xf_sql_i64(st, 17),
                                .parts_done = xf_sql_u32(st, 18),
                                .sum = xf_sql_u32(st, 19)};
    r->object.is_left = xf_sql_i64(st, 20) != 0;
}

enum xf_code xf_upload_row_load(struct xf_sql *c,
                                int64_t id,
                                struct xf_arena *arena,
                                struct xf_upload_row *out,
                                struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(c, &st, err, UPLOAD_COLUMNS " WHERE id = ?", "i", id));
    XF_TRY(xf_sql_next(c, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_CORRUPT, "no upload %lld", (long long)id);
    }
    read_upload(st, arena, out);
    return XF_OK;
}

static uint32_t page_limit(const struct xf_in_read_page *in)
{
    if (in->limit == 0) {
        return XF_STORE_PAGE_DEFAULT;
    }
    return in->limit < XF_STORE_PAGE_MAX ? in->limit : XF_STORE_PAGE_MAX;
}

/* A page as it is being filled: one row more is asked for, to know whether there is more. */
struct page {
    struct xf_work *w;
    sqlite3_stmt *st;
    uint32_t limit;
    size_t n;
    bool more;
};

/* True when there is a row to be put at index p->n - 1. */
static enum xf_code next_row(struct page *p, bool *got, struct xf_err *err)
{
    XF_TRY(xf_sql_next(&p->w->sql, p->st, got, err));
    if (*got && p->n == p->limit) {
        p->more = true;
        *got = false;
    }
    p->n += *got ? 1 : 0;
    return XF_OK;
}

static enum xf_code start_page(struct page *p,
                               struct xf_work *w,
                               const struct xf_in_read_page *in,
                               const char *sql,
                               struct xf_err *err)
{
    *p = (struct page){.w = w, .limit = page_limit(in)};
    return xf_sql_start(
        &w->sql, &p->st, err, sql, "iii", in->job, in->after, (int64_t)p->limit + 1);
}

static void end_page(struct page *p)
{
    xf_sql_reset(&p->st);
}
#define AUTO_PAGE __attribute__((cleanup(end_page))) struct page

enum xf_code xf_do_read_failures(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_failures *out = &op->out.read_failures;
    struct xf_arena *a = &op->out_arena;
    AUTO_PAGE p = {.st = NULL};
    bool got;

    XF_TRY(
        start_page(&p,
                   w,
                   &op->in.read_page,
                   "SELECT id, job, pass, source_no, key, size, etag, mtime_ms, storage_class,"
                   " version_id, attempts, code, flags, http_status, s3_code, message, first_ms,"
                   " last_ms, state FROM failure WHERE job = ? AND id > ? AND state = " S_FAIL_OPEN
                   " ORDER BY id LIMIT ?",
                   err));
    out->rows = xf_arena_calloc(a, p.limit, sizeof(*out->rows));
    for (;;) {
        XF_TRY(next_row(&p, &got, err));
        if (!got) {
            break;
        }
        struct xf_failure_row *r = &out->rows[p.n - 1];
        *r = (struct xf_failure_row){.id = xf_sql_i64(p.st, 0),
                                     .job = xf_sql_i64(p.st, 1),
                                     .pass = xf_sql_i64(p.st, 2),
                                     .source_no = xf_sql_u32(p.st, 3),
                                     .object = read_object(p.st, 4, a),
                                     .result = {.outcome = XF_OUTCOME_FAILED,
                                                .code = (enum xf_code)xf_sql_i64(p.st, 11),
                                                .flags = xf_sql_u32(p.st, 12),
                                                .http_status = xf_sql_u32(p.st, 13),
                                                .s3_code = xf_sql_dup(p.st, 14, a),
                                                .message = xf_sql_dup(p.st, 15, a)},
                                     .first_ms = xf_sql_i64(p.st, 16),
                                     .last_ms = xf_sql_i64(p.st, 17),
                                     .state = (enum xf_failure_state)xf_sql_i64(p.st, 18)};
        r->result.attempts = r->object.attempts;
        out->next = r->id;
    }
    out->n = p.n;
    out->more = p.more;
    return XF_OK;
}

enum xf_code xf_do_read_uploads(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_uploads *out = &op->out.read_uploads;
    AUTO_PAGE p = {.st = NULL};
    bool got;

    XF_TRY(start_page(&p,
                      w,
                      &op->in.read_page,
                      UPLOAD_COLUMNS " WHERE job = ? AND state < " S_UP_DONE
                                     " AND id > ? ORDER BY id LIMIT ?",
                      err));
    out->rows = xf_arena_calloc(&op->out_arena, p.limit, sizeof(*out->rows));
    for (;;) {
        XF_TRY(next_row(&p, &got, err));
        if (!got) {
            break;
        }
        read_upload(p.st, &op->out_arena, &out->rows[p.n - 1]);
        out->next = out->rows[p.n - 1].id;
    }
    out->n = p.n;
    out->more = p.more;
    return XF_OK;
}

enum xf_code xf_do_read_notices(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_notices *out = &op->out.read_notices;
    AUTO_PAGE p = {.st = NULL};
    bool got;

    XF_TRY(start_page(&p,
                      w,
                      &op->in.read_page,
                      "SELECT id, job, at_ms, code, text FROM notice WHERE job = ? AND id > ?"
                      " ORDER BY id LIMIT ?",
                      err));
    out->rows = xf_arena_calloc(&op->out_arena, p.limit, sizeof(*out->rows));
    for (;;) {
        XF_TRY(next_row(&p, &got, err));
        if (!got) {
            break;
        }
        out->rows[p.n - 1] = (struct xf_notice_row){.id = xf_sql_i64(p.st, 0),
                                                    .job = xf_sql_i64(p.st, 1),
                                                    .at_ms = xf_sql_i64(p.st, 2),
                                                    .code = xf_sql_dup(p.st, 3, &op->out_arena),
                                                    .text = xf_sql_dup(p.st, 4, &op->out_arena)};
        out->next = out->rows[p.n - 1].id;
    }
    out->n = p.n;
    out->more = p.more;
    return XF_OK;
}

enum { ATTEMPT_ROWS_MAX = 100 /* a task */, ATTEMPT_TASKS_MAX = 100 };

/* The newest ATTEMPT_ROWS_MAX attempts of one task, oldest first. */
static enum xf_code read_history(struct xf_work *w,
                                 struct xf_store_op *op,
                                 const int64_t *task_kind,
                                 struct xf_err *err)
{
    struct xf_out_read_attempts *out = &op->out.read_attempts;
    XF_AUTO_STMT *st = NULL;
    bool more;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT attempt, agent, leased_ms, ended_ms, how FROM attempt"
                        " WHERE task = ?1 AND attempt > (SELECT attempt FROM task WHERE id = ?1)"
                        " - ?2 ORDER BY attempt",
                        "ii",
                        task_kind[0],
                        (int64_t)ATTEMPT_ROWS_MAX));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        out->rows[out->n++] = (struct xf_attempt_row){.task = task_kind[0],
                                                      .kind = (enum xf_task_kind)task_kind[1],
                                                      .attempt = xf_sql_u32(st, 0),
                                                      .agent = xf_sql_dup(st, 1, &op->out_arena),
                                                      .leased_ms = xf_sql_i64(st, 2),
                                                      .ended_ms = xf_sql_i64(st, 3),
                                                      .how = (enum xf_how)xf_sql_i64(st, 4)};
    }
}

enum xf_code xf_do_read_attempts(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_attempts *out = &op->out.read_attempts;
    struct xf_in_read_page in = op->in.read_page;
    int64_t tasks[ATTEMPT_TASKS_MAX][2] = {{0}};
    AUTO_PAGE p = {.st = NULL};
    bool got;

    in.limit = in.limit == 0 || in.limit > ATTEMPT_TASKS_MAX ? ATTEMPT_TASKS_MAX : in.limit;
    XF_TRY(start_page(&p,
                      w,
                      &in,
                      "SELECT id, kind FROM task WHERE job = ? AND attempt > 1 AND id > ?"
                      " ORDER BY id LIMIT ?",
                      err));
    for (;;) {
        XF_TRY(next_row(&p, &got, err));
        if (!got) {
            break;
        }
        tasks[p.n - 1][0] = xf_sql_i64(p.st, 0);
        tasks[p.n - 1][1] = xf_sql_i64(p.st, 1);
        out->next = tasks[p.n - 1][0];
    }
    out->rows = xf_arena_calloc(&op->out_arena, p.n * ATTEMPT_ROWS_MAX, sizeof(*out->rows));
    for (size_t i = 0; i < p.n; i++) {
        XF_TRY(read_history(w, op, tasks[i], err));
    }
    out->more = p.more;
    return XF_OK;
}

enum xf_code xf_do_read_agents(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    struct xf_out_read_agents *out = &op->out.read_agents;
    struct xf_arena *a = &op->out_arena;
    XF_AUTO_STMT *st = NULL;
    bool more;

    out->rows = xf_arena_calloc(a, XF_STORE_PAGE_MAX, sizeof(*out->rows));
    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id, instance, version, host, reason, first_ms, last_ms FROM agent"
                        " ORDER BY last_ms DESC LIMIT ?",
                        "i",
                        (int64_t)XF_STORE_PAGE_MAX));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        struct xf_agent_row *r = &out->rows[out->n++];
        *r = (struct xf_agent_row){.id = xf_sql_dup(st, 0, a),
                                   .version = xf_sql_dup(st, 2, a),
                                   .host = xf_sql_dup(st, 3, a),
                                   .reason = xf_sql_dup(st, 4, a),
                                   .first_ms = xf_sql_i64(st, 5),
                                   .last_ms = xf_sql_i64(st, 6)};
        struct xf_str instance = xf_sql_str(st, 1);
        memcpy(r->instance,
               instance.ptr,
               instance.len < XF_STORE_INSTANCE_LEN ? instance.len : XF_STORE_INSTANCE_LEN);
    }
}
