/*
 * views.c - reads, one after the other, each in its own short transaction.
 */
#include "coordinator/views.h"

#include "common/job/spec.h"
#include "coordinator/jobtab.h"
#include "coordinator/roster.h"
#include "coordinator/status.h"
#include "coordinator/tuning.h"

enum { LIVE_MAX = XF_STORE_PAGE_MAX, ENDED_MAX = 200, LIST_PAGE = 200, ROWS_MAX = 1000 };

struct view {
    struct xf_coordinator *c;
    xf_view_fn *done;
    void *arg;
    bool has_all_live;
    bool with_details;
    int64_t job;
    struct xf_json *j;
};

static struct view *view_new(struct xf_coordinator *c, xf_view_fn *done, void *arg)
{
    struct view *v = xf_xcalloc(1, sizeof(*v));

    v->c = c;
    v->done = done;
    v->arg = arg;
    return v;
}

static void view_end(struct view *v, const struct xf_err *err)
{
    struct xf_json *j = XF_STEAL(v->j);

    if (err->code != XF_OK) {
        xf_json_free(j);
        j = NULL;
    }
    v->done(v->arg, j, err);
    xf_xfree(v);
}

static void view_ok(struct view *v)
{
    const struct xf_err ok = {.code = XF_OK};

    view_end(v, &ok);
}

/* True when the read failed: the view has ended. */
static bool view_failed(struct view *v, const struct xf_store_op *op)
{
    if (op->rc == XF_OK) {
        return false;
    }
    view_end(v, &op->err);
    return true;
}

static void view_read(struct view *v, struct xf_store_op *op)
{
    struct xf_err err;

    if (!xf_core_submit(v->c, op)) {
        (void)XF_FAIL(&err, XF_E_BUSY, "the coordinator is busy: try again");
        view_end(v, &err);
    }
}

static struct xf_json *job_json(struct xf_coordinator *c, const struct xf_job_row *row)
{
    const struct xf_cjob *j = xf_jobtab_get(c, row->id);
    XF_AUTO_BUF unfit = {0};

    xf_buf_init(&unfit, 2 * XF_ERR_MSG_MAX);
    if (j == NULL) {
        return xf_status_job(row, NULL);
    }
    const struct xf_roster_count n = xf_roster_count(c, row->id, &unfit);
    struct xf_status_live live = xf_jobtab_live(c, j);
    live.agents_up = n.up;
    live.agents_fit = n.fit;
    live.unfit = xf_buf_view(&unfit);
    return xf_status_job(row, &live);
}

/* ---- lists --------------------------------------------------------------------------------------
 */

/* What is wrong with the coordinator itself, for people. */
static struct xf_json *warnings_json(struct xf_coordinator *c)
{
    struct xf_json *out = xf_json_array();
    struct xf_store_stats s;

    xf_store_stats(c->store, &s);
    if (s.is_disk_failing) {
        xf_json_append_c(out, "the disk under the queue is full or failing: see the log");
    }
    if (s.wal_is_long) {
        xf_json_append_c(out, "the queue's log is long: another program reads an old view of it");
    }
    return out;
}

static void read_jobs(struct view *v, const struct xf_in_read_jobs *in, xf_store_done_fn *cb)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOBS, cb, v);

    op->in.read_jobs = *in;
    view_read(v, op);
}

static void append_jobs(struct view *v, struct xf_json *jobs, const struct xf_out_read_jobs *out)
{
    for (size_t i = 0; i < out->n; i++) {
        xf_json_append(jobs, job_json(v->c, &out->rows[i]));
    }
}

static void on_ended(struct xf_store_op *op)
{
    struct view *v = op->arg;

    if (view_failed(v, op)) {
        return;
    }
    struct xf_json *jobs = XF_STEAL(v->j);
    append_jobs(v, jobs, &op->out.read_jobs);
    v->j = xf_status_all(jobs, xf_roster_json(v->c));
    xf_json_set_bool(v->j, "jobs_complete", v->has_all_live && !op->out.read_jobs.more);
    xf_json_put(v->j, "warnings", warnings_json(v->c));
    view_ok(v);
}

static void on_live(struct xf_store_op *op)
{
    const struct xf_in_read_jobs ended = {.limit = ENDED_MAX, .which = XF_JOBS_ENDED};
    struct view *v = op->arg;

    if (view_failed(v, op)) {
        return;
    }
    v->has_all_live = !op->out.read_jobs.more;
    v->j = xf_json_array();
    append_jobs(v, v->j, &op->out.read_jobs);
    read_jobs(v, &ended, on_ended);
}

/* What matters most stands first, however many have ended since. */
void xf_views_all(struct xf_coordinator *c, xf_view_fn *done, void *arg)
{
    const struct xf_in_read_jobs live = {.limit = LIVE_MAX, .which = XF_JOBS_LIVE};

    read_jobs(view_new(c, done, arg), &live, on_live);
}

static void on_list(struct xf_store_op *op)
{
    struct view *v = op->arg;
    const struct xf_out_read_jobs *out = &op->out.read_jobs;

    if (view_failed(v, op)) {
        return;
    }
    struct xf_json *jobs = xf_json_array();
    append_jobs(v, jobs, out);
    v->j = xf_json_object();
    xf_json_put(v->j, "jobs", jobs);
    if (out->more) {
        xf_json_set_i64(v->j, "next", out->rows[out->n - 1].id);
    } else {
        xf_json_set_null(v->j, "next");
    }
    view_ok(v);
}

void xf_views_list(struct xf_coordinator *c, int64_t after, xf_view_fn *done, void *arg)
{
    const struct xf_in_read_jobs page = {.after = after, .limit = LIST_PAGE};

    read_jobs(view_new(c, done, arg), &page, on_list);
}

struct xf_json *xf_views_agents(struct xf_coordinator *c)
{
    struct xf_json *j = xf_json_object();

    xf_json_put(j, "agents", xf_roster_json(c));
    return j;
}

/* ---- one job ------------------------------------------------------------------------------------
 */

static void read_rows(struct view *v, enum xf_op_kind kind, xf_store_done_fn *cb)
{
    struct xf_store_op *op = xf_store_op_new(kind, cb, v);

    op->in.read_page = (struct xf_in_read_page){.job = v->job, .limit = ROWS_MAX};
    view_read(v, op);
}

static void on_attempts(struct xf_store_op *op)
{
    struct view *v = op->arg;

    if (!view_failed(v, op)) {
        xf_json_put(v->j,
                    "attempts",
                    xf_status_attempts(op->out.read_attempts.rows, op->out.read_attempts.n));
        view_ok(v);
    }
}

static void on_notices(struct xf_store_op *op)
{
    struct view *v = op->arg;

    if (!view_failed(v, op)) {
        xf_json_put(
            v->j, "notices", xf_status_notices(op->out.read_notices.rows, op->out.read_notices.n));
        read_rows(v, XF_OP_READ_ATTEMPTS, on_attempts);
    }
}

static void on_uploads(struct xf_store_op *op)
{
    struct view *v = op->arg;

    if (!view_failed(v, op)) {
        xf_json_put(
            v->j, "uploads", xf_status_uploads(op->out.read_uploads.rows, op->out.read_uploads.n));
        read_rows(v, XF_OP_READ_NOTICES, on_notices);
    }
}

static void on_failures(struct xf_store_op *op)
{
    struct view *v = op->arg;
    const struct xf_out_read_failures *out = &op->out.read_failures;

    if (!view_failed(v, op)) {
        xf_json_put(v->j, "errors", xf_status_errors(out->rows, out->n));
        xf_json_set_bool(v->j, "errors_complete", !out->more);
        read_rows(v, XF_OP_READ_UPLOADS, on_uploads);
    }
}

/* What the job may use now; 0: no limit. Of a live job only. */
static void put_limits(struct view *v)
{
    const struct xf_cjob *j = xf_jobtab_get(v->c, v->job);
    struct xf_json *limits = xf_json_object();

    if (j != NULL) {
        const struct xf_tuning_now now = xf_tuning_now(v->c, j);
        xf_json_set_u64(limits, "in_flight", now.in_flight);
        xf_json_set_u64(limits, "bandwidth_bytes_s", now.bytes_s);
        xf_json_set_u64(limits, "requests_s", now.requests_s);
        xf_json_put(limits, "tuned", xf_tuning_json(&j->tuning));
    }
    xf_json_put(v->j, "limits", limits);
}

static void on_job(struct xf_store_op *op)
{
    struct view *v = op->arg;

    if (view_failed(v, op)) {
        return;
    }
    v->job = op->out.read_job.row.id;
    v->j = job_json(v->c, &op->out.read_job.row);
    if (v->with_details) {
        put_limits(v);
        read_rows(v, XF_OP_READ_FAILURES, on_failures);
    } else {
        view_ok(v);
    }
}

static void
read_job(struct xf_coordinator *c, struct xf_str id, bool with_details, xf_view_fn *done, void *arg)
{
    struct view *v = view_new(c, done, arg);
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_job, v);

    v->with_details = with_details;
    op->in.read_job = (struct xf_in_read_job){.public_id = xf_store_op_dup(op, id)};
    view_read(v, op);
}

void xf_views_job(struct xf_coordinator *c, struct xf_str id, xf_view_fn *done, void *arg)
{
    read_job(c, id, false, done, arg);
}

void xf_views_show(struct xf_coordinator *c, struct xf_str id, xf_view_fn *done, void *arg)
{
    read_job(c, id, true, done, arg);
}
