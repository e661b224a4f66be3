/* prune.c - mark page after page of jobs, answer, then delete step after step. */
#include "coordinator/prune.h"

#include "common/base/json.h"
#include "common/base/log.h"
#include "coordinator/metrics.h"

enum { MARK_JOBS = 500, STEP_ROWS = 200 /* about 6 MB of manifests */ };

/* ---- steps --------------------------------------------------------------------------------------
 */

static void on_step(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;

    c->is_pruning = false;
    if (op->rc == XF_OK) {
        c->prune_wanted = op->out.prune_step.more;
        xf_prune_tick(c);             /* the next at once; after a failure with the next tick */
    } else if (op->rc != XF_E_DISK) { /* which the store logs */
        xf_core_on_done(op);
    }
}

void xf_prune_tick(struct xf_coordinator *c)
{
    if (!c->prune_wanted || c->is_pruning) {
        return;
    }
    struct xf_store_op *op = xf_store_op_new(XF_OP_PRUNE_STEP, on_step, c);
    op->in.prune_step = (struct xf_in_prune_step){.limit = STEP_ROWS};
    c->is_pruning = xf_core_submit(c, op);
}

/* ---- the request --------------------------------------------------------------------------------
 */

struct prune {
    struct xf_coordinator *c;
    struct xf_hub_req *req;
    struct xf_in_prune in;
    struct xf_json *jobs;
};

static void prune_fail(struct prune *p, enum xf_code code, const char *text)
{
    xf_hub_fail(p->req, code, xf_str_c(text));
    xf_json_free(p->jobs);
    xf_xfree(p);
}

static void prune_submit(struct prune *p, struct xf_store_op *op)
{
    if (!xf_core_submit(p->c, op)) {
        prune_fail(p, XF_E_BUSY, "the coordinator is busy: try again");
    }
}

static void answer(struct prune *p)
{
    XF_AUTO(xf_json) j = xf_json_object();

    xf_json_put(j, "jobs", XF_STEAL(p->jobs));
    xf_json_set_bool(j, "dry_run", p->in.is_dry_run);
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    const struct xf_msg_json m = {.json = xf_str_c(text)};
    xf_hub_reply(p->req, &m);
    xf_xfree(p);
}

static void mark(struct prune *p);

static void on_marked(struct xf_store_op *op)
{
    struct prune *p = op->arg;
    const struct xf_out_prune *out = &op->out.prune;

    if (op->rc != XF_OK) {
        prune_fail(p, op->rc, op->err.msg);
        return;
    }
    for (size_t i = 0; i < out->n; i++) {
        XF_AUTO_FREE char *id = xf_str_dup(out->jobs[i].public_id);
        xf_json_append_c(p->jobs, id);
        if (!p->in.is_dry_run) {
            xf_metrics_drop(p->c->metrics, "job", id);
            XF_INFO("job.pruned", xf_f_c("job", id));
            p->c->prune_wanted = true;
        }
    }
    xf_prune_tick(p->c);
    p->in.after = out->next;
    if (out->more) {
        mark(p);
    } else {
        answer(p);
    }
}

static void mark(struct prune *p)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_PRUNE, on_marked, p);

    op->in.prune = p->in;
    prune_submit(p, op);
}

static void on_found(struct xf_store_op *op)
{
    struct prune *p = op->arg;

    if (op->rc != XF_OK) {
        prune_fail(p, op->rc, op->err.msg);
        return;
    }
    p->in.job = op->out.read_job.row.id;
    mark(p);
}

void xf_prune(struct xf_coordinator *c, const struct xf_msg_prune *m, struct xf_hub_req *r)
{
    struct prune *p = xf_xcalloc(1, sizeof(*p));

    *p = (struct prune){.c = c, .req = r, .jobs = xf_json_array()};
    p->in = (struct xf_in_prune){.before_ms = xf_clock_wall_ms(c->clock) - m->older_than_ms,
                                 .limit = MARK_JOBS,
                                 .is_dry_run = m->dry_run};
    if (m->job.len == 0) {
        mark(p);
        return;
    }
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_found, p);
    op->in.read_job = (struct xf_in_read_job){.public_id = xf_store_op_dup(op, m->job)};
    prune_submit(p, op);
}
