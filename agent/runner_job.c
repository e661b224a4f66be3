/*
 * runner_job.c - a job as the agent knows it: its spec, and whether this host is fit for it.
 *
 *   fetching -> probing -> fit -> unfit -> fetching ...
 *      +---> unfit (a spec that this program does not take)
 *
 * An unfit job is asked for again before it is probed again: so one that has ended is forgotten.
 */
#include "agent/runner_int.h"
#include "common/base/log.h"

enum { PROBE_AGAIN_MS = 10 * 1000, FORGET_MS = 10 * 60 * 1000 };

static void fetch(struct xf_rjob *j);

static void on_again(struct xf_timer *t)
{
    struct xf_rjob *j = t->arg;

    if (j->state == XF_RJOB_UNFIT) {
        j->state = XF_RJOB_FETCHING;
        fetch(j);
    } else if (j->state == XF_RJOB_FIT && j->n_tasks == 0) {
        xf_rjob_free(j);
    }
}

struct xf_rjob *xf_rjob_find(struct xf_runner *r, struct xf_str id)
{
    XF_LIST_FOREACH (node, &r->jobs) {
        struct xf_rjob *j = XF_CONTAINER_OF(node, struct xf_rjob, node);
        if (xf_str_eq_c(id, j->id)) {
            return j;
        }
    }
    return NULL;
}

void xf_rjob_free(struct xf_rjob *j)
{
    struct xf_runner *r = j->r;

    for (unsigned i = 0; j->job != NULL && i < r->n_lanes; i++) {
        xf_lane_drop_job(r->lanes[i], j->job);
    }
    xf_timer_stop(r->o.loop, &j->again);
    xf_list_remove(&j->node);
    xf_work_job_unref(j->job);
    xf_xfree(j->id);
    xf_xfree(j);
}

void xf_rjob_task_gone(struct xf_rjob *j)
{
    j->n_tasks--;
    if (j->n_tasks == 0 && j->state == XF_RJOB_FIT) {
        xf_timer_in(j->r->o.loop, &j->again, FORGET_MS);
    }
}

static void on_fit_told(void *arg, const struct xf_err *err)
{
    (void)arg;
    (void)err; /* STALE: told again by xf_rjob_on_up() */
}

static void tell_fit(struct xf_rjob *j)
{
    struct xf_msg_fit m = {
        .job = xf_str_c(j->id),
        .ok = j->state == XF_RJOB_FIT,
        .code = (uint32_t)j->probe_err.code,
        .text = xf_str_sub(xf_str_c(j->probe_err.msg), 0, XF_TEXT_MAX),
    };
    if (j->r->is_up) {
        xf_link_fit(j->r->link, &m, on_fit_told, NULL);
    }
}

static void
stop_tasks(struct xf_rjob *j, enum xf_engine_stop stop, enum xf_how how, const struct xf_err *err)
{
    XF_LIST_FOREACH (node, &j->r->tasks) {
        struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        if (t->job == j && (how != XF_HOW_STOPPED || t->kind != XF_TASK_ABORT)) {
            xf_rtask_stop(t, stop, how, err);
        }
    }
}

static void set_unfit(struct xf_rjob *j, const struct xf_err *err)
{
    j->state = XF_RJOB_UNFIT;
    j->probe_err = *err;
    XF_ERROR("agent.unfit", xf_f_c("job", j->id), xf_f_code(err->code), xf_f_err(err));
    tell_fit(j);
    stop_tasks(j, XF_STOP_FIRM, XF_HOW_UNFIT, err);
    xf_timer_in(j->r->o.loop, &j->again, PROBE_AGAIN_MS);
}

void xf_rjob_unfit(struct xf_rjob *j, const struct xf_err *err)
{
    if (j->state != XF_RJOB_UNFIT && j->state != XF_RJOB_FETCHING) {
        set_unfit(j, err);
    }
}

/* ---- the probe ---- */

static void probe(struct xf_rjob *j)
{
    struct xf_runner *r = j->r;

    j->state = XF_RJOB_PROBING;
    j->probes_open = r->n_lanes;
    j->probe_err = (struct xf_err){0};
    for (unsigned i = 0; i < r->n_lanes; i++) {
        xf_lane_probe(r->lanes[i], j->job);
    }
}

void xf_rjob_probed(struct xf_runner *r, struct xf_work_job *job, const struct xf_err *err)
{
    struct xf_rjob *j = xf_rjob_find(r, xf_str_c(job->id));

    if (j == NULL || j->job != job || j->state != XF_RJOB_PROBING || j->probes_open == 0) {
        return;
    }
    j->probes_open--;
    if (err->code != XF_OK && j->probe_err.code == XF_OK) {
        j->probe_err = *err;
    }
    if (j->probes_open > 0) {
        return;
    }
    if (j->probe_err.code != XF_OK) {
        const struct xf_err why = j->probe_err;
        xf_rjob_unfit(j, &why);
        return;
    }
    j->state = XF_RJOB_FIT;
    XF_INFO("agent.fit", xf_f_c("job", j->id));
    tell_fit(j);
    xf_rtask_start_all(r, j);
    if (j->n_tasks == 0) {
        xf_timer_in(r->o.loop, &j->again, FORGET_MS);
    }
}

/* ---- the spec ---- */

/* Parsed once: a job's spec does not change. */
static enum xf_code
take_spec(struct xf_rjob *j, const struct xf_msg_job_reply *m, struct xf_err *err)
{
    if (j->job == NULL) {
        XF_TRY(xf_work_job_new(xf_str_c(j->id), m->spec, &j->job, err));
    }
    for (uint32_t i = 0; i < m->n_orders; i++) {
        xf_rjob_order(j, &m->orders[i]);
    }
    return XF_OK;
}

static void on_job(void *arg, const struct xf_msg_job_reply *m, const struct xf_err *err)
{
    struct xf_rjob *j = arg;
    struct xf_err why = *err;

    j->is_asked = false;
    if (why.code == XF_E_STALE) {
        if (j->r->is_up) {
            fetch(j);
        } /* else on_up asks again */
    } else if (why.code == XF_E_NOT_FOUND && j->n_tasks == 0) {
        xf_rjob_free(j); /* it has ended */
    } else if (why.code != XF_OK || take_spec(j, m, &why) != XF_OK) {
        set_unfit(j, &why);
    } else {
        probe(j);
    }
}

static void fetch(struct xf_rjob *j)
{
    if (!j->is_asked) {
        j->is_asked = true;
        xf_link_job(j->r->link, xf_str_c(j->id), on_job, j);
    }
}

struct xf_rjob *xf_rjob_get(struct xf_runner *r, struct xf_str id)
{
    struct xf_rjob *j = xf_rjob_find(r, id);

    if (j != NULL) {
        return j;
    }
    j = xf_xcalloc(1, sizeof(*j));
    j->r = r;
    j->id = xf_str_dup(id);
    j->state = XF_RJOB_FETCHING;
    j->again = (struct xf_timer){.cb = on_again, .arg = j};
    xf_list_push_back(&r->jobs, &j->node);
    fetch(j);
    return j;
}

void xf_rjob_on_up(struct xf_rjob *j)
{
    if (j->state == XF_RJOB_FETCHING) {
        fetch(j);
    } else if (j->state != XF_RJOB_PROBING) {
        tell_fit(j);
        xf_rtask_start_all(j->r, j);
    }
}

/* ---- orders ---- */

static void hold(struct xf_rjob *j, bool on)
{
    j->is_paused = on;
    if (j->job != NULL) {
        atomic_store(&j->job->is_held, on);
    }
    for (unsigned i = 0; j->job != NULL && i < j->r->n_lanes; i++) {
        xf_lane_hold(j->r->lanes[i], j->job, on);
    }
}

static void limit(struct xf_rjob *j, uint32_t in_flight)
{
    unsigned n = j->r->n_lanes;
    uint32_t share = in_flight == 0 ? 0 : in_flight < n ? 1 : in_flight / n;

    j->in_flight = in_flight;
    if (j->job != NULL) {
        atomic_store(&j->job->lane_in_flight, share); /* for lanes that have not met the job yet */
    }
    for (unsigned i = 0; j->job != NULL && i < n; i++) {
        xf_lane_set_in_flight(j->r->lanes[i], j->job, share);
    }
}

void xf_rjob_order(struct xf_rjob *j, const struct xf_msg_order *o)
{
    switch ((enum xf_order_kind)o->kind) {
    case XF_ORDER_RUN:
        if (j->job != NULL) {
            atomic_store(&j->job->order_mode, o->mode);
            atomic_store(&j->job->lane_bandwidth,
                         (o->bandwidth + j->r->n_lanes - 1) / j->r->n_lanes);
            atomic_store(&j->job->lane_requests,
                         (o->request_rate + j->r->n_lanes - 1) / j->r->n_lanes);
        }
        if (j->is_paused) {
            hold(j, false);
        }
        if (j->in_flight != o->in_flight) {
            limit(j, o->in_flight);
        }
        break;
    case XF_ORDER_PAUSE:
        if (!j->is_paused) {
            hold(j, true);
        }
        break;
    case XF_ORDER_CANCEL:
        stop_tasks(j, XF_STOP_HARD, XF_HOW_STOPPED, NULL);
        if (j->is_paused) {
            hold(j, false); /* the aborts that follow must go */
        }
        break;
    case XF_ORDER_DRAIN:
    case XF_ORDER_UNDRAIN:
    case XF_ORDER_DROP_TASK:
    case XF_ORDER_N: break;
    }
}
