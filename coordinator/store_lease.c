/*
 * store_lease.c - ready tasks become an agent's.
 *
 * The candidates are read first, by the partial index of ready tasks, then moved one by one with
 * compare-and-set. The lease of an open task is the upload's intent: it is committed before any
 * agent can ask the destination to create an upload.
 */
#include "coordinator/store_work.h"

enum {
    TASKS_MAX = 256,
    BYTES_MAX = 8 * 1024 * 1024, /* of manifests and finished parts in one answer */
    PART_BYTES = 320             /* one finished part at its largest */
};

struct grant {
    struct xf_work *w;
    struct xf_store_op *op;
    size_t room;      /* of op->out.lease.tasks */
    size_t raw_bytes; /* given so far */
};

static uint64_t objects_of(const struct xf_task *t)
{
    return t->upload != 0 ? 1 : t->n_objects - t->n_reported;
}

static int64_t max_rank(uint32_t kinds)
{
    if ((kinds & (XF_TASK_BIT(XF_TASK_BATCH) | XF_TASK_BIT(XF_TASK_OPEN))) != 0) {
        return 3;
    }
    if ((kinds & XF_TASK_BIT(XF_TASK_RECHECK)) != 0) {
        return 2;
    }
    return (kinds & XF_TASK_BIT(XF_TASK_PARTS)) != 0 ? 1 : 0;
}

static enum xf_code
give_upload(struct grant *g, const struct xf_task *t, struct xf_lease_task *out, struct xf_err *err)
{
    struct xf_work *w = g->w;
    struct xf_upload_row *u = xf_arena_calloc(&g->op->out_arena, 1, sizeof(*u));

    if (t->kind == XF_TASK_OPEN) {
        XF_TRY(xf_sql_run(&w->sql,
                          err,
                          "UPDATE upload SET state = " S_UP_CREATING ", intent_ms = ?"
                          " WHERE id = ? AND state = " S_UP_PLANNED,
                          "ii",
                          w->now_ms,
                          t->upload));
    }
    XF_TRY(xf_upload_row_load(&w->sql, t->upload, &g->op->out_arena, u, err));
    out->upload = u;
    return XF_OK;
}

static enum xf_code
give_parts(struct grant *g, const struct xf_task *t, struct xf_part_list *list, struct xf_err *err)
{
    struct xf_work *w = g->w;
    XF_AUTO_STMT *st = NULL;
    bool more;

    if (t->kind == XF_TASK_PARTS) {
        return xf_task_parts(w, t->id, list, err);
    }
    XF_TRY(
        xf_sql_start(&w->sql,
                     &st,
                     err,
                     "SELECT id FROM task WHERE upload = ? AND upload > 0 AND kind = " S_KIND_PARTS
                     " ORDER BY first_part",
                     "i",
                     t->upload));
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            break;
        }
        XF_TRY(xf_task_parts(w, xf_sql_i64(st, 0), list, err));
    }
    if (list->n != list->max) {
        return XF_FAIL(err,
                       XF_E_CORRUPT,
                       "upload %lld has %zu of its %zu parts",
                       (long long)t->upload,
                       list->n,
                       list->max);
    }
    return XF_OK;
}

static enum xf_code
fill(struct grant *g, const struct xf_task *t, struct xf_lease_task *out, struct xf_err *err)
{
    struct xf_work *w = g->w;

    *out = (struct xf_lease_task){.task = t->id,
                                  .job = t->job,
                                  .pass = t->pass,
                                  .kind = t->kind,
                                  .attempt = t->attempt,
                                  .source_no = t->source_no,
                                  .n_objects = t->n_objects,
                                  .bytes = t->bytes,
                                  .first_part = t->first_part,
                                  .last_part = t->last_part};
    if (t->upload == 0) {
        XF_TRY(xf_manifest_raw(w, t, err));
        XF_TRY(xf_result_raw(w, t->id, err));
        out->manifest = xf_arena_dup(&g->op->out_arena, xf_buf_view(&w->raw));
        out->result = xf_arena_dup(&g->op->out_arena, xf_buf_view(&w->raw2));
        g->raw_bytes += out->manifest.len + out->result.len;
        return XF_OK;
    }
    XF_TRY(give_upload(g, t, out, err));
    if (t->kind == XF_TASK_PARTS || t->kind == XF_TASK_CLOSE) {
        struct xf_part_list list;
        xf_part_list_init(&list,
                          &g->op->out_arena,
                          t->kind == XF_TASK_PARTS ? t->last_part - t->first_part + 1
                                                   : out->upload->n_parts);
        XF_TRY(give_parts(g, t, &list, err));
        out->parts = list.at;
        out->n_parts = list.n;
        g->raw_bytes += list.n * PART_BYTES;
    }
    return XF_OK;
}

static enum xf_code take(struct grant *g, struct xf_task *t, struct xf_err *err)
{
    const struct xf_in_lease *in = &g->op->in.lease;
    struct xf_str instance = xf_str_n(in->instance, XF_STORE_INSTANCE_LEN);
    struct xf_work *w = g->w;

    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE task SET state = " S_TASK_LEASED ", attempt = attempt + 1,"
                      " progress = 0, agent = ?, instance = ?"
                      " WHERE id = ? AND state = " S_TASK_READY " AND attempt = ?",
                      "sbii",
                      in->agent,
                      instance,
                      t->id,
                      (int64_t)t->attempt));
    XF_ASSERT(xf_sql_changed(&w->sql) == 1); /* read in this savepoint */
    t->attempt++;
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO attempt(task, attempt, agent, instance, leased_ms)"
                      " VALUES(?, ?, ?, ?, ?)",
                      "iisbi",
                      t->id,
                      (int64_t)t->attempt,
                      in->agent,
                      instance,
                      w->now_ms));
    struct xf_out_lease *out = &g->op->out.lease;
    XF_TRY(fill(g, t, &out->tasks[out->n_tasks], err));
    out->n_tasks++;
    return XF_OK;
}

static enum xf_code candidates(
    struct xf_work *w, const struct xf_lease_ask *ask, int64_t *ids, size_t *n, struct xf_err *err)
{
    int64_t limit = ask->max_tasks < TASKS_MAX ? (int64_t)ask->max_tasks : TASKS_MAX;
    XF_AUTO_STMT *st = NULL;
    bool more;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT id FROM task WHERE job = ? AND state = " S_TASK_READY
                        " AND rank <= ? AND (1 << kind) & ? AND (not_before <= ?4"
                        " OR not_before > ?4 + ?5)"
                        " ORDER BY rank, id LIMIT ?",
                        "iiiiii",
                        ask->job,
                        max_rank(ask->kinds),
                        (int64_t)ask->kinds,
                        w->now_ms,
                        (int64_t)XF_STORE_DELAY_MAX_MS, /* more: the clock was set back */
                        limit));
    *n = 0;
    for (;;) {
        XF_TRY(xf_sql_next(&w->sql, st, &more, err));
        if (!more) {
            return XF_OK;
        }
        ids[(*n)++] = xf_sql_i64(st, 0);
    }
}

static enum xf_code serve(struct grant *g, const struct xf_lease_ask *given, struct xf_err *err)
{
    struct xf_lease_ask ask = *given;
    struct xf_job_brief job = {.id = 0};
    int64_t ids[TASKS_MAX];
    uint64_t objects = 0;
    uint64_t bytes = 0;
    size_t n = 0;

    XF_TRY(xf_job_brief(g->w, ask.job, &job, err));
    if (job.state != XF_JOB_RUNNING || job.stop != 0) {
        ask.kinds &= XF_TASK_BIT(XF_TASK_ABORT);
    }
    if (ask.kinds == 0 || ask.max_tasks == 0) {
        return XF_OK;
    }
    XF_TRY(candidates(g->w, &ask, ids, &n, err));
    for (size_t i = 0; i < n && g->op->out.lease.n_tasks < g->room; i++) {
        struct xf_task t = {.id = 0};
        XF_TRY(xf_task_load(g->w, ids[i], &t, err));
        objects += objects_of(&t);
        bytes += t.bytes;
        if (i > 0 &&
            (objects > ask.max_objects || bytes > ask.max_bytes || g->raw_bytes > BYTES_MAX)) {
            break;
        }
        XF_TRY(take(g, &t, err));
    }
    return XF_OK;
}

enum xf_code xf_do_lease(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_lease *in = &op->in.lease;
    struct grant g = {.w = w, .op = op};

    if (in->agent.len < 1 || in->agent.len > XF_STORE_AGENT_MAX || in->instance == NULL) {
        return XF_FAIL(err, XF_E_INVAL, "a lease needs an agent and its instance");
    }
    for (size_t i = 0; i < in->n_asks; i++) {
        g.room += in->asks[i].max_tasks < TASKS_MAX ? in->asks[i].max_tasks : TASKS_MAX;
    }
    g.room = g.room < TASKS_MAX ? g.room : TASKS_MAX;
    op->out.lease.tasks = xf_arena_calloc(&op->out_arena, g.room, sizeof(struct xf_lease_task));
    for (size_t i = 0; i < in->n_asks && g.raw_bytes < BYTES_MAX; i++) {
        XF_TRY(serve(&g, &in->asks[i], err));
    }
    return XF_OK;
}
