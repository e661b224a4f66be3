/* tune.c - find the job, check, keep, obey, answer. */
#include "coordinator/tune.h"

#include "common/base/json.h"
#include "common/base/log.h"
#include "coordinator/jobtab.h"
#include "coordinator/roster.h"
#include "coordinator/tuning.h"

struct tune {
    struct xf_coordinator *c;
    struct xf_hub_req *req;
    int64_t job; /* 0: the fleet */
    char *key;   /* "": nothing is set */
    char *value;
};

static void tune_free(struct tune *t)
{
    xf_xfree(t->key);
    xf_xfree(t->value);
    xf_xfree(t);
}

static void tune_fail(struct tune *t, enum xf_code code, const char *text)
{
    xf_hub_fail(t->req, code, xf_str_c(text));
    tune_free(t);
}

static void put_now(struct xf_json *j, const struct xf_coordinator *c, const struct xf_cjob *job)
{
    struct xf_json *now = xf_json_object();
    const struct xf_tuning_now n = xf_tuning_now(c, job);

    xf_json_set_u64(now, "bandwidth_bytes_s", n.bytes_s);
    xf_json_set_u64(now, "requests_s", n.requests_s);
    xf_json_set_u64(now, "in_flight", n.in_flight);
    xf_json_put(j, "now", now);
}

static void answer(struct tune *t)
{
    struct xf_coordinator *c = t->c;
    const struct xf_cjob *job = t->job != 0 ? xf_jobtab_get(c, t->job) : NULL;
    XF_AUTO(xf_json) j = xf_json_object();

    if (job != NULL) {
        xf_json_set_c(j, "id", job->public_id);
        xf_json_put(j, "tuned", xf_tuning_json(&job->tuning));
        put_now(j, c, job);
    } else {
        xf_json_set_null(j, "id");
        xf_json_put(j, "tuned", xf_tuning_json(&c->tuning));
    }
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    const struct xf_msg_json m = {.json = xf_str_c(text)};
    xf_hub_reply(t->req, &m);
    tune_free(t);
}

static void obey(struct tune *t)
{
    struct xf_coordinator *c = t->c;
    struct xf_cjob *job = t->job != 0 ? xf_jobtab_get(c, t->job) : NULL;

    if (t->job == 0) {
        xf_tuning_set(&c->tuning, xf_str_c(t->key), xf_str_c(t->value));
    } else if (job != NULL) {
        xf_tuning_set(&job->tuning, xf_str_c(t->key), xf_str_c(t->value));
    }
    XF_INFO("limit.tuned",
            xf_f_c("job", job != NULL ? job->public_id : ""),
            xf_f_c("key", t->key),
            xf_f_c("value", t->value));
    XF_LIST_FOREACH (node, &c->jobs) {
        const struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        if (j->spec != NULL && (t->job == 0 || j == job)) {
            xf_roster_order_job(c, j);
        }
    }
}

static void on_kept(struct xf_store_op *op)
{
    struct tune *t = op->arg;

    if (op->rc != XF_OK) {
        tune_fail(t, op->rc, op->err.msg);
        return;
    }
    obey(t);
    answer(t);
}

static void submit(struct tune *t, struct xf_store_op *op)
{
    if (!xf_core_submit(t->c, op)) {
        tune_fail(t, XF_E_BUSY, "the coordinator is busy: try again");
    }
}

static void keep(struct tune *t)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_TUNE, on_kept, t);
    bool is_default = strcmp(t->value, "default") == 0;

    op->in.tune = (struct xf_in_tune){
        .job = t->job,
        .name = xf_str_c(t->key),
        .value = is_default ? XF_STR_EMPTY : xf_str_c(t->value),
    };
    submit(t, op);
}

static void go_on(struct tune *t)
{
    if (t->key[0] == '\0') {
        answer(t);
    } else {
        keep(t);
    }
}

static void on_found(struct xf_store_op *op)
{
    struct tune *t = op->arg;
    const struct xf_job_row *row = &op->out.read_job.row;

    if (op->rc != XF_OK) {
        tune_fail(t, op->rc, op->err.msg);
        return;
    }
    const struct xf_cjob *j = xf_jobtab_get(t->c, row->id);
    if (xf_job_state_is_end(row->state) || j == NULL || j->spec == NULL) {
        tune_fail(t, XF_E_INVAL, "the job has ended, or is not loaded yet: nothing to tune");
        return;
    }
    t->job = row->id;
    go_on(t);
}

void xf_tune(struct xf_coordinator *c, const struct xf_msg_tune *m, struct xf_hub_req *r)
{
    struct xf_err err;

    if (m->key.len > 0 && xf_tuning_check(m->key, m->value, &err) != XF_OK) {
        xf_hub_fail(r, err.code, xf_str_c(err.msg));
        return;
    }
    struct tune *t = xf_xcalloc(1, sizeof(*t));
    *t = (struct tune){.c = c, .req = r, .key = xf_str_dup(m->key), .value = xf_str_dup(m->value)};
    if (m->job.len == 0) {
        go_on(t);
        return;
    }
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_found, t);
    op->in.read_job = (struct xf_in_read_job){.public_id = xf_store_op_dup(op, m->job)};
    submit(t, op);
}
