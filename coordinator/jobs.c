/*
 * jobs.c - what moves the live jobs.
 *
 * Each tick reads a live job's row and asks life.c for the next step, so a lost event costs a tick
 * and a restart needs no memory of before.
 *
 * Invariants:
 * 1. At most one read and one step of a job are on the way to the store.
 * 2. A job leaves the table only after its end is committed.
 */
#include "coordinator/jobs.h"

#include "common/base/log.h"
#include "common/job/spec.h"
#include "coordinator/jobtab.h"
#include "coordinator/life.h"
#include "coordinator/metrics.h"
#include "coordinator/roster.h"
#include "coordinator/tuning.h"

enum {
    RETRY_LIMIT = 10000, /* failures moved into a retry pass in one transaction */
    READS_MAX = 128,     /* of jobs in the store's queue, which others need too */
    STILL_MS = 5000,     /* without progress the endpoints are asked, and again after */
    NO_FIT_MS = 60000    /* before a job says that nobody can work on it */
};

/* ---- loading ------------------------------------------------------------------------------------
 */

static void start_shards(struct xf_coordinator *c, struct xf_cjob *j)
{
    XF_LIST_FOREACH (node, &j->shards) {
        struct xf_cshard *s = XF_CONTAINER_OF(node, struct xf_cshard, link);
        const struct xf_listing_start start = {
            .shard = &s->row, .spec = xf_buf_view(&j->toml), .start_ms = j->row.created_ms};
        if (j->row.stop == 0) {
            xf_lister_start(c->lister, &start);
        }
    }
    xf_jobtab_drop_shards(j);
    if (j->row.state == XF_JOB_PAUSED) {
        xf_lister_pause(c->lister, j->row.id, true);
    }
}

static void load_some(struct xf_coordinator *c);

static void take_loaded(struct xf_coordinator *c, struct xf_cjob *j, const struct xf_store_op *op)
{
    const struct xf_job_row *row = &op->out.read_job.row;
    struct xf_err err = op->err;
    enum xf_code rc = op->rc;

    j->is_loading = false;
    if (rc == XF_OK) {
        xf_buf_put(&j->toml, row->spec);
        xf_jobtab_keep_row(j, row);
        rc = xf_job_spec_parse(xf_buf_view(&j->toml), row->public_id, &j->spec, &err);
    }
    if (rc != XF_OK) {
        XF_ERROR("job.not_loaded", xf_f_c("job", j->public_id), xf_f_code(rc), xf_f_err(&err));
        xf_jobtab_note(c, (int64_t)j->id, "spec", xf_str_c(err.msg));
        j->is_unusable = true;
        return;
    }
    XF_INFO("job.loaded", xf_f_c("job", j->public_id), xf_f_c("name", j->name));
    j->ready = row->tasks_ready;
    start_shards(c, j);
    xf_core_kick(c);
}

static void on_loaded(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    struct xf_cjob *j = xf_jobtab_get(c, op->in.read_job.job);

    c->n_loading--;
    if (j != NULL) {
        take_loaded(c, j, op);
    }
    if (c->n_loading == 0) {
        load_some(c);
    }
}

/* As many as there is room for; the rest when these are here, or at the next tick. */
static void load_some(struct xf_coordinator *c)
{
    XF_LIST_FOREACH (node, &c->jobs) {
        struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        if (j->spec != NULL || j->is_loading || j->is_unusable) {
            continue;
        }
        if (c->n_loading == READS_MAX) {
            return;
        }
        struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_loaded, c);
        op->in.read_job = (struct xf_in_read_job){.job = (int64_t)j->id, .with_spec = true};
        if (!xf_core_submit(c, op)) {
            return;
        }
        j->is_loading = true;
        c->n_loading++;
    }
}

static void keep_setting(struct xf_coordinator *c, const struct xf_setting_row *row)
{
    struct xf_cjob *j = row->job != 0 ? xf_jobtab_get(c, row->job) : NULL;

    if (row->job == 0) {
        xf_tuning_set(&c->tuning, row->name, row->value);
    } else if (j != NULL) {
        xf_tuning_set(&j->tuning, row->name, row->value);
    }
}

static void keep_lease(struct xf_coordinator *c, const struct xf_leased_row *row)
{
    struct xf_cagent *a = xf_roster_get(c, row->agent);
    struct xf_lease lease = {.task = (uint64_t)row->task,
                             .job = row->job,
                             .upload = row->upload,
                             .attempt = row->attempt,
                             .kind = (uint32_t)row->kind,
                             .objects = row->objects,
                             .holder = a->number};

    memcpy(a->instance, row->instance, sizeof(a->instance));
    memcpy(lease.instance, row->instance, sizeof(lease.instance));
    xf_leases_add(&c->leases, &lease, xf_loop_mono_ms(c->loop));
}

/* Once a job: what is known already is being listed, or will be when the job is loaded. */
static void keep_shards(struct xf_coordinator *c, const struct xf_out_read_recover *out)
{
    for (size_t i = 0; i < out->n_shards; i++) {
        struct xf_cjob *j = xf_jobtab_get(c, out->shards[i].job);
        if (j != NULL && !j->has_shards) {
            xf_jobtab_add_shard(j, &out->shards[i]);
        }
    }
    for (size_t i = 0; i < out->n_jobs; i++) {
        xf_jobtab_get(c, out->jobs[i].id)->has_shards = true;
    }
}

static void on_recovered(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    const struct xf_out_read_recover *out = &op->out.read_recover;

    if (op->rc != XF_OK) {
        XF_ERROR("store.not_read", xf_f_code(op->rc), xf_f_err(&op->err));
        if (!c->is_recovered) {
            xf_core_fail(c, &op->err);
        }
        return;
    }
    for (size_t i = 0; i < out->n_jobs; i++) {
        if (xf_jobtab_get(c, out->jobs[i].id) == NULL) {
            (void)xf_jobtab_add(c, &out->jobs[i]); /* in the table now */
        }
    }
    keep_shards(c, out);
    for (size_t i = 0; i < out->n_settings; i++) {
        keep_setting(c, &out->settings[i]);
    }
    for (size_t i = 0; i < out->n_leased && !c->is_recovered; i++) {
        keep_lease(c, &out->leased[i]);
    }
    c->is_recovered = true;
    load_some(c);
}

void xf_jobs_sync(struct xf_coordinator *c)
{
    c->is_sync_due = !xf_core_submit(c, xf_store_op_new(XF_OP_READ_RECOVER, on_recovered, c));
}

void xf_jobs_changed(struct xf_coordinator *c, struct xf_cjob *j)
{
    xf_roster_order_job(c, j);
    if (j->row.stop != 0) {
        xf_lister_stop(c->lister, j->row.id);
    } else {
        xf_lister_pause(c->lister, j->row.id, j->row.state == XF_JOB_PAUSED);
    }
    xf_core_kick(c);
}

/* ---- life ---------------------------------------------------------------------------------------
 */

/* Common end of a step: look at the row again at the next tick. */
static struct xf_cjob *step_done(struct xf_store_op *op, int64_t job)
{
    struct xf_cjob *j = xf_jobtab_get(op->arg, job);

    if (j != NULL) {
        j->is_acting = false;
    }
    if (op->rc != XF_OK && op->rc != XF_E_STALE && op->rc != XF_E_BUSY) {
        XF_WARN("job.step_failed",
                xf_f_i64("job", job),
                xf_f_c("op", xf_op_name(op->kind)),
                xf_f_code(op->rc),
                xf_f_err(&op->err));
    }
    return j;
}

static void submit_step(struct xf_coordinator *c, struct xf_cjob *j, struct xf_store_op *op)
{
    j->is_acting = xf_core_submit(c, op);
}

static void on_state_set(struct xf_store_op *op)
{
    struct xf_cjob *j = step_done(op, op->in.job_state.job);

    if (j != NULL && op->rc == XF_OK && op->in.job_state.to != 0) {
        j->row.state = op->in.job_state.to;
        xf_core_kick(op->arg);
    }
}

static void on_stopped(struct xf_store_op *op)
{
    struct xf_cjob *j = step_done(op, op->in.job_stop.job);

    if (j != NULL && op->rc == XF_OK) {
        j->row.stop = op->in.job_stop.end;
        xf_jobs_changed(op->arg, j);
    }
}

static void on_finished(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    struct xf_cjob *j = step_done(op, op->in.job_finish.job);

    if (j == NULL || op->rc != XF_OK) {
        return;
    }
    XF_INFO("job.finished",
            xf_f_c("job", j->public_id),
            xf_f_c("state", xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, op->in.job_finish.end)),
            xf_f_i64("exit_code", op->in.job_finish.exit_code),
            xf_f_u64("copied", j->row.n.copied),
            xf_f_u64("failed", j->row.n.failed));
    j->row.state = op->in.job_finish.end;
    xf_lister_stop(c->lister, j->row.id);
    xf_roster_forget_job(c, j->row.id);
    xf_jobtab_drop(c, j);
}

static void begin_retry(struct xf_coordinator *c, struct xf_cjob *j, int64_t pass);

static void on_retried(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    struct xf_cjob *j = step_done(op, op->in.retry.job);
    const struct xf_out_retry *out = &op->out.retry;

    if (j == NULL || op->rc != XF_OK) {
        return;
    }
    XF_INFO("job.retry_pass", xf_f_c("job", j->public_id), xf_f_u64("objects", out->n_objects));
    if (out->n_objects == 0 && op->in.retry.pass == 0) {
        j->is_retry_exhausted = true;
        return;
    }
    j->retry_began_ms = xf_loop_mono_ms(c->loop);
    xf_jobtab_add_ready(c, j->row.id, 1);
    if (out->more) {
        begin_retry(c, j, out->pass);
        return;
    }
    struct xf_store_op *phase = xf_store_op_new(XF_OP_JOB_STATE, on_state_set, c);
    phase->in.job_state = (struct xf_in_job_state){.job = j->row.id,
                                                   .from = XF_TO(XF_JOB_RUNNING),
                                                   .set_phase = true,
                                                   .phase = XF_STR_LIT("retry"),
                                                   .reason = XF_STR_EMPTY};
    submit_step(c, j, phase);
}

static void begin_retry(struct xf_coordinator *c, struct xf_cjob *j, int64_t pass)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_RETRY, on_retried, c);

    op->in.retry = (struct xf_in_retry){.job = j->row.id,
                                        .pass = pass,
                                        .max_attempts = (uint32_t)j->spec->attempts,
                                        .only = XF_CLASS_NONE,
                                        .limit = RETRY_LIMIT};
    submit_step(c, j, op);
}

static void step_retry(struct xf_coordinator *c, struct xf_cjob *j)
{
    int64_t now = xf_loop_mono_ms(c->loop);

    if (j->retry_at_ms == 0) {
        j->retry_at_ms = now + xf_life_retry_wait_ms(j->row.pass_no + 1);
    } else if (now >= j->retry_at_ms) {
        j->retry_at_ms = 0;
        begin_retry(c, j, 0);
    }
}

static void act(struct xf_coordinator *c, struct xf_cjob *j)
{
    const struct xf_life_in in = {.row = &j->row,
                                  .listings_failed = j->listings_failed,
                                  .is_retry_exhausted = j->is_retry_exhausted,
                                  .vanished_fails = j->spec->vanished == XF_JOB_VANISHED_FAIL};
    const struct xf_life life = xf_life_decide(&in);
    struct xf_store_op *op = NULL;

    switch (life.step) {
    case XF_LIFE_WAIT:
    case XF_LIFE_STEP_N: break;
    case XF_LIFE_START:
        op = xf_store_op_new(XF_OP_JOB_STATE, on_state_set, c);
        op->in.job_state = (struct xf_in_job_state){.job = j->row.id,
                                                    .from = XF_TO(XF_JOB_QUEUED),
                                                    .to = XF_JOB_RUNNING,
                                                    .set_phase = true,
                                                    .phase = XF_STR_LIT("copy"),
                                                    .reason = XF_STR_EMPTY};
        submit_step(c, j, op);
        break;
    case XF_LIFE_RETRY: step_retry(c, j); break;
    case XF_LIFE_STOP:
        op = xf_store_op_new(XF_OP_JOB_STOP, on_stopped, c);
        op->in.job_stop = (struct xf_in_job_stop){
            .job = j->row.id, .end = life.end, .reason = xf_str_c(life.reason)};
        submit_step(c, j, op);
        break;
    case XF_LIFE_FINISH:
        op = xf_store_op_new(XF_OP_JOB_FINISH, on_finished, c);
        op->in.job_finish = (struct xf_in_job_finish){.job = j->row.id,
                                                      .end = life.end,
                                                      .reason = xf_str_c(life.reason),
                                                      .exit_code = life.exit_code};
        submit_step(c, j, op);
        break;
    }
}

/* ---- tick ---------------------------------------------------------------------------------------
 */

static void put_no_fit(struct xf_buf *out, const struct xf_roster_count *n, struct xf_str why)
{
    xf_buf_reset(out);
    if (n->up == 0) {
        xf_buf_put_c(out, "no agent is connected: start an xfer-agent, or look at its log");
        return;
    }
    xf_buf_putf(out, "none of %u agents can work for it", n->up);
    if (n->draining > 0) {
        xf_buf_putf(out, " (%u draining: xferctl agents undrain ID)", n->draining);
    }
    if (why.len > 0) {
        xf_buf_put_c(out, ": ");
        xf_buf_put(out, why);
    }
}

/* While nobody can do its work the job tells why; after a minute that is its reason. */
static void watch_fitness(struct xf_coordinator *c, struct xf_cjob *j)
{
    int64_t now = xf_loop_mono_ms(c->loop);
    bool wants = j->row.state == XF_JOB_RUNNING && j->row.tasks_ready > 0;
    XF_AUTO_BUF why = {0};

    xf_buf_init(&why, 2 * XF_ERR_MSG_MAX);
    const struct xf_roster_count n = xf_roster_count(c, j->row.id, &why);
    if (!wants || n.fit > 0) {
        if (j->no_fit_since_ms != 0 &&
            xf_str_starts(xf_buf_view(&j->wait_reason), XF_STR_LIT("no_fit_agent"))) {
            xf_buf_reset(&j->wait_reason);
        }
        j->no_fit_since_ms = 0;
        xf_buf_reset(&j->unfit_why);
        return;
    }
    put_no_fit(&j->unfit_why, &n, xf_buf_view(&why));
    if (j->no_fit_since_ms == 0) {
        j->no_fit_since_ms = now;
    } else if (now - j->no_fit_since_ms >= NO_FIT_MS && j->wait_reason.len == 0) {
        xf_jobtab_set_reason(j, "no_fit_agent", XF_STR_EMPTY);
        XF_WARN("job.no_fit_agent",
                xf_f_c("job", j->public_id),
                xf_f_str("why", xf_buf_view(&j->unfit_why)));
    }
}

/* A job that stands still: is an endpoint down? Agents wait for it and spend nothing; the reason is
 * for people. */
struct watch {
    struct xf_cprobe probe; /* first */
    struct xf_coordinator *c;
    int64_t job;
};

static bool says_unreachable(const struct xf_cjob *j)
{
    return xf_str_starts(xf_buf_view(&j->wait_reason), XF_STR_LIT("endpoint_unreachable"));
}

static void on_asked(struct xf_cprobe *p, const struct xf_probe_result *res)
{
    struct watch *w = XF_CONTAINER_OF(p, struct watch, probe);
    struct xf_cjob *j = xf_jobtab_get(w->c, w->job);

    if (j != NULL) {
        j->is_asking = false;
        if (res->is_unreachable && !says_unreachable(j)) {
            XF_WARN("job.waits", xf_f_c("job", j->public_id), xf_f_err(&res->err));
            xf_jobtab_set_reason(j, "endpoint_unreachable", xf_str_c(res->err.msg));
        } else if (!res->is_unreachable && says_unreachable(j) && !j->is_listing_waiting) {
            xf_buf_reset(&j->wait_reason);
        }
    }
    xf_list_remove(&w->probe.link);
    xf_xfree(w);
}

void xf_jobs_fini(struct xf_coordinator *c)
{
    struct xf_list *node = NULL;

    while ((node = xf_list_pop_front(&c->watches)) != NULL) {
        xf_xfree(XF_CONTAINER_OF(node, struct watch, probe.link));
    }
}

static void watch_progress(struct xf_coordinator *c, struct xf_cjob *j)
{
    const struct xf_job_counters *n = &j->row.n;
    int64_t now = xf_loop_mono_ms(c->loop);
    uint64_t progress = n->copied + n->skipped + n->failed + n->vanished + n->archived +
                        n->bytes_copied + n->bytes_through + n->keys_returned;

    if (progress != j->progress || j->row.state != XF_JOB_RUNNING || j->row.tasks_leased == 0) {
        if (progress != j->progress && says_unreachable(j) && !j->is_listing_waiting) {
            xf_buf_reset(&j->wait_reason);
        }
        j->progress = progress;
        j->progress_ms = now;
    } else if (now - j->progress_ms >= STILL_MS && now - j->asked_ms >= STILL_MS && !j->is_asking) {
        struct watch *w = xf_xcalloc(1, sizeof(*w));
        w->c = c;
        w->job = j->row.id;
        w->probe.done = on_asked;
        xf_list_push_back(&c->watches, &w->probe.link);
        j->asked_ms = now;
        j->is_asking = true;
        xf_lister_probe(c->lister, xf_buf_view(&j->toml), &w->probe);
    }
}

static void on_read(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    struct xf_cjob *j = xf_jobtab_get(c, op->in.read_job.job);

    c->n_reading--;
    if (j == NULL) {
        return;
    }
    j->is_reading = false;
    if (op->rc != XF_OK || j->spec == NULL || j->is_acting) {
        return; /* what was read may be older than the step on the way */
    }
    bool had_ready = j->ready > 0;
    xf_jobtab_keep_row(j, &op->out.read_job.row);
    j->ready = j->row.tasks_ready;
    xf_jobtab_sample(c, j);
    xf_cmetrics_job(c->metrics, &j->row);
    watch_fitness(c, j);
    watch_progress(c, j);
    act(c, j);
    if (!had_ready) {
        xf_core_kick(c);
    }
}

static bool read_row(struct xf_coordinator *c, struct xf_cjob *j)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_read, c);

    op->in.read_job = (struct xf_in_read_job){.job = (int64_t)j->id};
    j->is_reading = xf_core_submit(c, op);
    c->n_reading += j->is_reading ? 1 : 0;
    return j->is_reading;
}

void xf_jobs_tick(struct xf_coordinator *c)
{
    if (c->is_sync_due) {
        xf_jobs_sync(c);
    }
    load_some(c);
    XF_LIST_FOREACH (node, &c->jobs) {
        struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        if (j->spec == NULL || j->is_reading || j->is_acting) {
            continue;
        }
        if (c->n_reading == READS_MAX || !read_row(c, j)) {
            /* The ring begins here at the next tick, so that all have their turn. */
            xf_list_remove(&c->jobs);
            xf_list_insert(node, &c->jobs);
            return;
        }
    }
}

/* ---- what the lister tells ----------------------------------------------------------------------
 */

void xf_jobs_on_page(void *arg, int64_t job, size_t n_tasks)
{
    xf_jobtab_add_ready(arg, job, (uint32_t)n_tasks);
}

void xf_jobs_on_listed(void *arg, int64_t job, int64_t shard)
{
    (void)arg; /* the row says it too; only the log is wanted */
    XF_INFO("listing.done", xf_f_i64("job", job), xf_f_i64("shard", shard));
}

void xf_jobs_on_listing_failed(void *arg, int64_t job, int64_t shard, const struct xf_err *err)
{
    struct xf_cjob *j = xf_jobtab_get(arg, job);

    XF_ERROR("listing.failed",
             xf_f_i64("job", job),
             xf_f_i64("shard", shard),
             xf_f_code(err->code),
             xf_f_err(err));
    if (j != NULL) {
        j->listings_failed++;
        xf_jobtab_note(arg, job, "listing", xf_str_c(err->msg));
    }
}

void xf_jobs_on_listing_wait(void *arg, int64_t job, const struct xf_err *err)
{
    struct xf_cjob *j = xf_jobtab_get(arg, job);

    if (j == NULL) {
        return;
    }
    if (err->code == XF_OK) {
        j->is_listing_waiting = false;
        xf_buf_reset(&j->wait_reason);
        return;
    }
    if (!j->is_listing_waiting) {
        XF_WARN("listing.waits", xf_f_c("job", j->public_id), xf_f_code(err->code), xf_f_err(err));
    }
    j->is_listing_waiting = true;
    bool is_store = err->code == XF_E_LIMIT || err->code == XF_E_DISK || err->code == XF_E_BUSY;
    xf_jobtab_set_reason(j,
                         is_store                  ? "store_full"
                         : err->code == XF_E_CREDS ? "credentials"
                                                   : "endpoint_unreachable",
                         xf_str_c(err->msg));
}
