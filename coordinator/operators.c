/*
 * operators.c - what each request of xferctl does.
 *
 * Questions go to views.c. Commands find their job first, then move it by compare-and-set, then
 * tell agents and lister; a repeated command finds the job moved already and succeeds.
 */
#include "coordinator/operators.h"

#include "common/base/log.h"
#include "common/job/spec.h"
#include "coordinator/jobs.h"
#include "coordinator/jobtab.h"
#include "coordinator/prune.h"
#include "coordinator/report.h"
#include "coordinator/roster.h"
#include "coordinator/submit.h"
#include "coordinator/tune.h"
#include "coordinator/views.h"

enum { EMPTY_PAGES_MAX = 64, RETRY_LIMIT = 10000 };

/* ---- questions ----------------------------------------------------------------------------------
 */

static void reply_json(struct xf_hub_req *r, struct xf_json *j)
{
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    const struct xf_msg_json m = {.json = xf_str_c(text)};

    xf_hub_reply(r, &m);
    xf_json_free(j);
}

static void on_view(void *arg, struct xf_json *j, const struct xf_err *err)
{
    struct xf_hub_req *r = arg;

    if (j == NULL) {
        xf_hub_fail(r, err->code, xf_str_c(err->msg));
    } else {
        reply_json(r, j);
    }
}

static void on_status(struct xf_coordinator *c, const struct xf_msg_query *m, struct xf_hub_req *r)
{
    if (m->job.len == 0) {
        xf_views_all(c, on_view, r);
    } else {
        xf_views_job(c, m->job, on_view, r);
    }
}

static void reply_version(struct xf_coordinator *c, struct xf_hub_req *r)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_c(j, "version", c->version);
    xf_json_set_u64(j, "protocol", XF_PROTO_VERSION);
    reply_json(r, j);
}

/* ---- commands on a job --------------------------------------------------------------------------
 */

struct command {
    struct xf_coordinator *c;
    struct xf_hub_req *req;
    enum xf_control_verb verb;
    enum xf_class only; /* retry */
    int64_t job;
    char *public_id;
    uint64_t n_retried;
};

static void command_end(struct command *m, const char *text)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_c(j, "id", m->public_id);
    xf_json_set_c(j, "text", text);
    if (m->verb == XF_CONTROL_RETRY) {
        xf_json_set_u64(j, "objects", m->n_retried);
    }
    reply_json(m->req, j);
    xf_xfree(m->public_id);
    xf_xfree(m);
}

static void command_fail(struct command *m, enum xf_code code, const char *text)
{
    xf_hub_fail(m->req, code, xf_str_c(text));
    xf_xfree(m->public_id);
    xf_xfree(m);
}

static void command_submit(struct command *m, struct xf_store_op *op)
{
    if (!xf_core_submit(m->c, op)) {
        command_fail(m, XF_E_BUSY, "the coordinator is busy: try again");
    }
}

static void on_moved(struct xf_store_op *op)
{
    struct command *m = op->arg;
    struct xf_cjob *j = xf_jobtab_get(m->c, m->job);

    if (op->rc != XF_OK) {
        command_fail(m, op->rc, op->err.msg);
        return;
    }
    XF_INFO("job.commanded", xf_f_c("job", m->public_id), xf_f_u64("verb", (uint64_t)m->verb));
    if (j != NULL) {
        if (m->verb == XF_CONTROL_CANCEL) {
            j->row.stop = XF_JOB_CANCELLED;
        } else {
            j->row.state = op->in.job_state.to;
        }
        xf_jobs_changed(m->c, j);
    }
    command_end(m,
                m->verb == XF_CONTROL_PAUSE    ? "paused"
                : m->verb == XF_CONTROL_RESUME ? "resumed"
                                               : "being cancelled");
}

static void move(struct command *m, uint32_t from, enum xf_job_state to)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_JOB_STATE, on_moved, m);

    op->in.job_state = (struct xf_in_job_state){.job = m->job, .from = from, .to = to};
    command_submit(m, op);
}

static void cancel(struct command *m)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_JOB_STOP, on_moved, m);

    op->in.job_stop = (struct xf_in_job_stop){
        .job = m->job, .end = XF_JOB_CANCELLED, .reason = XF_STR_LIT("cancelled")};
    command_submit(m, op);
}

static void retry(struct command *m, int64_t pass);

static void on_retried(struct xf_store_op *op)
{
    struct command *m = op->arg;
    struct xf_coordinator *c = m->c;

    if (op->rc != XF_OK) {
        command_fail(m, op->rc, op->err.msg);
        return;
    }
    m->n_retried += op->out.retry.n_objects;
    if (op->out.retry.more) {
        retry(m, op->out.retry.pass);
        return;
    }
    struct xf_cjob *j = xf_jobtab_get(c, m->job);
    if (j != NULL) {
        j->is_retry_exhausted = false;
        xf_jobtab_add_ready(c, m->job, 1);
    } else {
        xf_jobs_sync(c); /* it had ended: it is live again */
    }
    command_end(m, m->n_retried > 0 ? "retrying" : "nothing to retry");
}

static void retry(struct command *m, int64_t pass)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_RETRY, on_retried, m);

    op->in.retry = (struct xf_in_retry){
        .job = m->job, .pass = pass, .only = m->only, .is_forced = true, .limit = RETRY_LIMIT};
    command_submit(m, op);
}

static void say_ended(struct command *m, const struct xf_job_row *row)
{
    struct xf_err err;

    (void)XF_FAIL(&err,
                  XF_E_INVAL,
                  "job '%s' has ended (%s)",
                  m->public_id,
                  xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, row->state));
    command_fail(m, err.code, err.msg);
}

static void do_command(struct command *m, const struct xf_job_row *row)
{
    bool has_ended = xf_job_state_is_end(row->state);

    switch (m->verb) {
    case XF_CONTROL_PAUSE:
        if (row->state == XF_JOB_PAUSED && row->stop == 0) {
            command_end(m, "paused already");
        } else if (has_ended || row->stop != 0) {
            say_ended(m, row);
        } else {
            move(m, XF_TO(XF_JOB_QUEUED) | XF_TO(XF_JOB_RUNNING), XF_JOB_PAUSED);
        }
        break;
    case XF_CONTROL_RESUME:
        if (has_ended || row->stop != 0) {
            say_ended(m, row);
        } else if (row->state != XF_JOB_PAUSED) {
            command_end(m, "running already");
        } else {
            move(m, XF_TO(XF_JOB_PAUSED), XF_JOB_RUNNING);
        }
        break;
    case XF_CONTROL_CANCEL:
        if (row->state == XF_JOB_CANCELLED) {
            command_end(m, "cancelled already");
        } else if (has_ended) {
            say_ended(m, row);
        } else {
            cancel(m);
        }
        break;
    case XF_CONTROL_RETRY:
        if (has_ended && row->state != XF_JOB_COMPLETED_WITH_FAILURES) {
            say_ended(m, row);
        } else {
            retry(m, 0);
        }
        break;
    case XF_CONTROL_N: command_fail(m, XF_E_UNSUPPORTED, "no such command"); break;
    }
}

static void on_job_found(struct xf_store_op *op)
{
    struct command *m = op->arg;

    if (op->rc != XF_OK) {
        command_fail(m, op->rc, op->err.msg);
        return;
    }
    m->job = op->out.read_job.row.id;
    m->public_id = xf_str_dup(op->out.read_job.row.public_id);
    do_command(m, &op->out.read_job.row);
}

static bool parse_class(struct xf_str s, enum xf_class *out)
{
    *out = XF_CLASS_NONE;
    for (int cls = XF_CLASS_FATAL; cls < XF_CLASS_N && s.len > 0; cls++) {
        if (xf_str_eq_c(s, xf_class_name((enum xf_class)cls))) {
            *out = (enum xf_class)cls;
        }
    }
    return s.len == 0 || *out != XF_CLASS_NONE;
}

static void
on_control(struct xf_coordinator *c, const struct xf_msg_control *msg, struct xf_hub_req *r)
{
    enum xf_class only = XF_CLASS_NONE;

    if (!parse_class(msg->cls, &only)) {
        xf_core_refuse(
            r,
            XF_E_INVAL,
            "'%.*s' is no class of errors; permanent, transient, throttled, changed and local are",
            XF_STR_ARG(msg->cls));
        return;
    }
    struct command *m = xf_xcalloc(1, sizeof(*m));
    *m = (struct command){.c = c, .req = r, .verb = (enum xf_control_verb)msg->verb, .only = only};
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_job_found, m);
    op->in.read_job = (struct xf_in_read_job){.public_id = xf_store_op_dup(op, msg->job)};
    command_submit(m, op);
}

/* ---- report -------------------------------------------------------------------------------------
 */

struct reporting {
    struct xf_coordinator *c;
    struct xf_hub_req *req;
    struct xf_job_spec *spec;
    struct xf_report_opts opts;
    struct xf_report_cursor cursor;
    int64_t job;
    uint32_t n_pages;
    struct xf_buf chunk;
};

static void reporting_free(struct reporting *p)
{
    xf_job_spec_free(p->spec);
    xf_buf_fini(&p->chunk);
    xf_xfree(p);
}

static void reporting_fail(struct reporting *p, const struct xf_err *err)
{
    xf_hub_fail(p->req, err->code, xf_str_c(err->msg));
    reporting_free(p);
}

static void reporting_answer(struct reporting *p, bool end)
{
    XF_AUTO_BUF cursor = {0};
    struct xf_msg_report_reply m = {.chunk = xf_buf_view(&p->chunk), .end = end};

    xf_buf_init(&cursor, XF_CURSOR_MAX);
    xf_report_cursor_put(&p->cursor, &cursor);
    m.cursor = xf_buf_view(&cursor);
    xf_hub_reply(p->req, &m);
    reporting_free(p);
}

static void reporting_read(struct reporting *p, struct xf_store_op *op)
{
    struct xf_err err;

    if (!xf_core_submit(p->c, op)) {
        (void)XF_FAIL(&err, XF_E_BUSY, "the coordinator is busy: try again");
        reporting_fail(p, &err);
    }
}

static void read_results(struct reporting *p);

static void on_results(struct xf_store_op *op)
{
    struct reporting *p = op->arg;
    const struct xf_out_read_results *out = &op->out.read_results;

    if (op->rc != XF_OK) {
        reporting_fail(p, &op->err);
        return;
    }
    xf_report_results(&p->opts, out->rows, out->n, &p->chunk);
    if (p->chunk.full) {
        struct xf_err err;
        (void)XF_FAIL(&err, XF_E_LIMIT, "a page of the report is longer than a message may be");
        reporting_fail(p, &err);
        return;
    }
    p->cursor = (struct xf_report_cursor){
        .is_past_notices = true, .uploads = out->next_uploads, .after = out->next};
    /* Pages without a line of interest are passed over here, some at a time. */
    if (out->more && p->chunk.len == 0 && ++p->n_pages < EMPTY_PAGES_MAX) {
        read_results(p);
    } else {
        reporting_answer(p, !out->more);
    }
}

static void read_results(struct reporting *p)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_RESULTS, on_results, p);

    op->in.read_results = (struct xf_in_read_results){
        .job = p->job, .uploads = p->cursor.uploads, .after = p->cursor.after};
    reporting_read(p, op);
}

static void on_report_notices(struct xf_store_op *op)
{
    struct reporting *p = op->arg;

    if (op->rc != XF_OK) {
        reporting_fail(p, &op->err);
        return;
    }
    xf_report_notices(&p->opts, op->out.read_notices.rows, op->out.read_notices.n, &p->chunk);
    read_results(p);
}

static void on_report_job(struct xf_store_op *op)
{
    struct reporting *p = op->arg;
    const struct xf_job_row *row = &op->out.read_job.row;
    struct xf_err err = op->err;

    if (op->rc != XF_OK || xf_job_spec_parse(row->spec, row->public_id, &p->spec, &err) != XF_OK) {
        reporting_fail(p, &err);
        return;
    }
    p->opts.spec = p->spec;
    p->job = row->id;
    if (p->cursor.is_past_notices) {
        read_results(p);
        return;
    }
    struct xf_store_op *next = xf_store_op_new(XF_OP_READ_NOTICES, on_report_notices, p);
    next->in.read_page = (struct xf_in_read_page){.job = row->id, .limit = XF_STORE_PAGE_MAX};
    reporting_read(p, next);
}

static void on_report(struct xf_coordinator *c, const struct xf_msg_report *m, struct xf_hub_req *r)
{
    struct reporting *p = xf_xcalloc(1, sizeof(*p));
    struct xf_err err;

    p->c = c;
    p->req = r;
    p->opts = (struct xf_report_opts){.is_json = m->format == XF_REPORT_JSON,
                                      .only_failed = m->only == XF_REPORT_FAILED};
    xf_buf_init(&p->chunk, XF_CHUNK_MAX);
    if (!xf_report_cursor_parse(m->cursor, &p->cursor)) {
        (void)XF_FAIL(&err, XF_E_INVAL, "the cursor is not one of this coordinator's");
        reporting_fail(p, &err);
        return;
    }
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_report_job, p);
    op->in.read_job =
        (struct xf_in_read_job){.public_id = xf_store_op_dup(op, m->job), .with_spec = true};
    reporting_read(p, op);
}

/* ---- agents -------------------------------------------------------------------------------------
 */

struct draining {
    struct xf_coordinator *c;
    struct xf_hub_req *req;
};

/* Told and obeyed after the commit; completions come in the order of commits, so that what an
 * agent's hello found in the store (on_seen) never overtakes it. */
static void on_drain_kept(struct xf_store_op *op)
{
    struct draining *d = op->arg;
    const struct xf_in_agent_drain *in = &op->in.agent_drain;
    struct xf_cagent *a = xf_roster_find(d->c, in->id);

    if (op->rc != XF_OK) {
        xf_hub_fail(d->req, op->rc, xf_str_c(op->err.msg));
    } else {
        if (a != NULL) {
            xf_roster_drain(d->c, a, in->on);
        }
        reply_json(d->req, xf_views_agents(d->c));
    }
    xf_xfree(d);
}

static void on_drain(struct xf_coordinator *c, const struct xf_msg_drain *m, struct xf_hub_req *r)
{
    struct draining *d = xf_xcalloc(1, sizeof(*d));
    struct xf_store_op *op = xf_store_op_new(XF_OP_AGENT_DRAIN, on_drain_kept, d);

    *d = (struct draining){.c = c, .req = r};
    op->in.agent_drain =
        (struct xf_in_agent_drain){.id = xf_store_op_dup(op, m->agent), .on = m->on};
    if (!xf_core_submit(c, op)) {
        xf_xfree(d);
        xf_core_refuse(r, XF_E_BUSY, "the coordinator is busy: try again");
    }
}

void xf_operators_on_request(void *arg, enum xf_kind kind, const void *m, struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;

    if (c->state == XF_CORE_STOPPING) {
        xf_core_refuse(r, XF_E_BUSY, "the coordinator stops");
        return;
    }
    switch ((int)kind) {
    case XF_KIND_SUBMIT: xf_submit(c, m, r); break;
    case XF_KIND_STATUS: on_status(c, m, r); break;
    case XF_KIND_LIST: xf_views_list(c, ((const struct xf_msg_query *)m)->after, on_view, r); break;
    case XF_KIND_SHOW: xf_views_show(c, ((const struct xf_msg_query *)m)->job, on_view, r); break;
    case XF_KIND_AGENTS: reply_json(r, xf_views_agents(c)); break;
    case XF_KIND_CONTROL: on_control(c, m, r); break;
    case XF_KIND_REPORT: on_report(c, m, r); break;
    case XF_KIND_DRAIN: on_drain(c, m, r); break;
    case XF_KIND_TUNE: xf_tune(c, m, r); break;
    case XF_KIND_PRUNE: xf_prune(c, m, r); break;
    case XF_KIND_VERSION: reply_version(c, r); break;
    default:
        xf_core_refuse(r, XF_E_UNSUPPORTED, "this coordinator does not support the command yet");
        break;
    }
}
