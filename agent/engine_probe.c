/*
 * engine_probe.c - can this host work for a job? One HEAD of each bucket on either side.
 *
 * A source bucket that serves a website is learnt as well: CopyObject never carries the redirects
 * of such objects, so each has to be looked at (CASES C005). Who may not ask is taken for a no.
 */
#include "agent/engine_int.h"
#include "common/job/spec.h"

enum probe_state { PROBE_SRC, PROBE_WEBSITE, PROBE_DST, PROBE_N };

static void tell(struct xf_op *op, const struct xf_err *err)
{
    struct xf_run *run = op->run;

    run->n_open = 0;
    if (run->e->ev.probed != NULL) {
        run->e->ev.probed(run->e->ev.arg, run->ej->job, err);
    }
    xf_op_end(op);
}

static const struct xf_job_side *side_of(const struct xf_op *op, enum xf_side side)
{
    const struct xf_job_spec *spec = xf_op_spec(op);

    return side == XF_SRC ? &spec->source : &spec->destination;
}

static struct xf_s3_req *head_bucket(struct xf_op *op, enum xf_side side)
{
    const struct xf_s3_object_opts o = {.bucket = side_of(op, side)->urls[op->idx].bucket};

    return xf_s3_head_bucket(xf_op_s3(op, side), &o, xf_op_reply, op);
}

static struct xf_s3_req *source_start(struct xf_op *op)
{
    return head_bucket(op, XF_SRC);
}

static struct xf_s3_req *website_start(struct xf_op *op)
{
    return xf_s3_bucket_conf(xf_op_s3(op, XF_SRC),
                             side_of(op, XF_SRC)->urls[op->idx].bucket,
                             XF_S3_CONF_WEBSITE,
                             xf_op_reply,
                             op);
}

static void website_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK) {
        (void)xf_work_job_learn(op->run->ej->job, XF_FACT_WEBSITE); /* known is fine */
    }
    xf_op_go(op, PROBE_DST);
}

static struct xf_s3_req *dest_start(struct xf_op *op)
{
    return head_bucket(op, XF_DST);
}

static void next(struct xf_op *op)
{
    static const struct xf_err ok = {0};

    if (op->state == PROBE_SRC) {
        bool is_wanted = op->run->ej->job->is_same_service && xf_op_spec(op)->metadata;
        xf_op_go(op, is_wanted ? PROBE_WEBSITE : PROBE_DST);
    } else if (op->idx + 1 < xf_op_spec(op)->source.n_urls) {
        op->idx++;
        xf_op_go(op, PROBE_SRC);
    } else {
        tell(op, &ok);
    }
}

static void probed(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err = res->err;
    enum xf_side side = op->state == PROBE_SRC ? XF_SRC : XF_DST;
    const struct xf_job_side *s = side_of(op, side);

    if (err.code == XF_OK) {
        next(op);
    } else {
        (void)XF_WRAP(&err,
                      "%s bucket '%.*s'",
                      side == XF_SRC ? "source" : "destination",
                      XF_STR_ARG(s->urls[op->idx].bucket)); /* the code stays */
        tell(op, &err);
    }
}

static const struct xf_step probe_steps[PROBE_N] = {
    [PROBE_SRC] =
        {"probe_source", XF_SRC, 0, XF_TO(PROBE_WEBSITE) | XF_TO(PROBE_DST), source_start, probed},
    [PROBE_WEBSITE] = {"probe_website", XF_SRC, 0, XF_TO(PROBE_DST), website_start, website_done},
    [PROBE_DST] = {"probe_dest", XF_DST, 0, XF_TO(PROBE_SRC), dest_start, probed},
};

void xf_probe_begin(struct xf_run *run)
{
    struct xf_op *op = xf_op_new(run, probe_steps, PROBE_N);

    if (run->end.err.code != XF_OK) {
        tell(op, &run->end.err);
    } else {
        xf_op_go(op, PROBE_SRC);
    }
}
