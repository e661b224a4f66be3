/*
 * cmd_run.c - xferctl run FILE: coordinator and agent as threads of this process, joined by
 * inproc://, the queue in a state directory (run_state.h).
 */
#include "agent/agent.h"
#include "common/job/spec.h"
#include "common/rt/loop.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "coordinator/coordinator.h"
#include "ctl/ctl.h"
#include "ctl/run_state.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEY_HASH_LEN = 40 };

/* Coordinator or agent: made, run and freed by a thread of its own. */
struct half {
    struct xf_thread thread;
    struct xf_queue *made;  /* one struct xf_err: how its making went */
    struct xf_queue *leave; /* one token: it may be freed, nobody stops it any more */
};

struct run {
    struct xf_run_state state;
    char *url;
    struct xf_coord_conf coord_values;
    struct xf_conf *coord_conf;
    struct xf_agent_conf agent_values;
    struct xf_conf *agent_conf;
    struct xf_coordinator *coordinator;
    struct xf_agent *agent;
    struct half coordinator_half;
    struct half agent_half;
};

/* ---- the engine ---- */

/* Told to whoever started the half; then a half that was made runs until it is stopped. */
static bool tell_made(struct half *h, struct xf_err *outcome)
{
    bool ok = outcome->code == XF_OK;

    xf_queue_push_reserved(h->made, outcome);
    return ok;
}

static void run_coordinator(void *arg)
{
    struct run *r = arg;
    struct xf_err err;
    struct xf_err *outcome = xf_xcalloc(1, sizeof(*outcome));
    const struct xf_coordinator_opts o = {.conf = &r->coord_values, .version = XF_VERSION};

    outcome->code = xf_coordinator_new(&o, &r->coordinator, outcome);
    if (!tell_made(&r->coordinator_half, outcome)) {
        return;
    }
    if (xf_coordinator_run(r->coordinator, &err) != XF_OK) {
        (void)fprintf(
            stderr, "xferctl: the queue stopped: %s\n", err.msg); /* the follower sees the rest */
    }
    (void)xf_queue_pop_wait(r->coordinator_half.leave, -1); /* a token that means nothing */
    xf_coordinator_free(r->coordinator);
}

static void run_agent(void *arg)
{
    struct run *r = arg;
    struct xf_err err;
    struct xf_err *outcome = xf_xcalloc(1, sizeof(*outcome));
    const struct xf_agent_opts o = {.conf = &r->agent_values, .version = XF_VERSION};

    outcome->code = xf_agent_new(&o, &r->agent, outcome);
    if (!tell_made(&r->agent_half, outcome)) {
        return;
    }
    if (xf_agent_run(r->agent, &err) != XF_OK) {
        (void)fprintf(
            stderr, "xferctl: copying stopped: %s\n", err.msg); /* the follower sees the rest */
    }
    (void)xf_queue_pop_wait(r->agent_half.leave, -1); /* likewise */
    xf_agent_free(r->agent);
}

static enum xf_code half_start(
    struct half *h, const char *name, void (*run)(void *arg), struct run *r, struct xf_err *err)
{
    XF_TRY(xf_queue_new(1, &h->made, err));
    XF_TRY(xf_queue_new(1, &h->leave, err));
    XF_TRY(xf_thread_start(&h->thread, name, run, r, err));
    XF_AUTO_FREE struct xf_err *outcome = xf_queue_pop_wait(h->made, -1);
    if (outcome->code != XF_OK) {
        xf_thread_join(&h->thread);
        *err = *outcome;
    }
    return outcome->code;
}

/* After its stop was asked for. */
static void half_join(struct half *h)
{
    if (h->thread.started) {
        xf_queue_push_reserved(h->leave, h);
        xf_thread_join(&h->thread);
    }
}

static void half_fini(struct half *h)
{
    if (h->leave != NULL) {
        (void)xf_queue_pop(h->leave); /* the token, when its thread never took it */
    }
    xf_queue_free(h->made);
    xf_queue_free(h->leave);
}

static enum xf_code
set(struct xf_conf *conf, const char *name, const char *value, struct xf_err *err)
{
    return xf_conf_set(conf, name, xf_str_c(value), err);
}

static enum xf_code start_coordinator(struct run *r, struct xf_err *err)
{
    XF_AUTO_FREE char *data = xf_run_state_path(&r->state, "queue");

    XF_TRY(xf_coord_conf_defaults(&r->coord_values, &r->coord_conf, err));
    XF_TRY(set(r->coord_conf, "data_dir", data, err));
    XF_TRY(set(r->coord_conf, "listen", r->url, err));
    XF_TRY(set(r->coord_conf, "http", "off", err));
    return half_start(&r->coordinator_half, "coordinator", run_coordinator, r, err);
}

static enum xf_code start_agent(struct run *r, struct xf_err *err)
{
    XF_AUTO_FREE char *state = xf_run_state_path(&r->state, "agent");

    XF_TRY(xf_agent_conf_defaults(&r->agent_values, &r->agent_conf, err));
    XF_TRY(set(r->agent_conf, "coordinator", r->url, err));
    XF_TRY(set(r->agent_conf, "id", "run", err));
    XF_TRY(set(r->agent_conf, "state_dir", state, err));
    return half_start(&r->agent_half, "agent", run_agent, r, err);
}

static void stop_agent(void *arg)
{
    struct run *r = arg;

    if (r->agent_half.thread.started) {
        (void)fprintf(stderr,
                      "xferctl: finishing what is in flight, at most %lld s; Ctrl-C again stops at "
                      "once, and what is unfinished is sent again next time\n",
                      (long long)r->agent_values.drain_ms / 1000); /* progress */
        xf_agent_stop(r->agent);
        half_join(&r->agent_half);
    }
}

static void stop_all(struct run *r)
{
    if (r->agent_half.thread.started) {
        xf_agent_stop(r->agent);
        half_join(&r->agent_half);
    }
    if (r->coordinator_half.thread.started) {
        xf_coordinator_stop(r->coordinator);
        half_join(&r->coordinator_half);
    }
    half_fini(&r->agent_half);
    half_fini(&r->coordinator_half);
    xf_conf_free(r->agent_conf);
    xf_conf_free(r->coord_conf);
    xf_xfree(r->url);
}

/* ---- the job ---- */

static enum xf_code
submit(struct xf_ctl *c, const struct run *r, struct xf_str toml, char **job, struct xf_err *err)
{
    struct xf_msg_submit_reply reply;
    XF_AUTO_BUF key = {0};

    xf_buf_init(&key, 0);
    xf_buf_putf(
        &key, "%.*s-%llu", (int)KEY_HASH_LEN, r->state.hash, (unsigned long long)r->state.count);
    struct xf_msg_submit m = {.key = xf_buf_view(&key), .toml = toml};
    XF_TRY(xf_ctl_call(c, XF_KIND_SUBMIT, &m, XF_CLIENT_SUBMIT_DEADLINE_MS, &reply, err));
    *job = xf_str_dup(reply.job);
    return XF_OK;
}

/* What failed, for good: nobody can ask this queue later. */
static void write_failed(struct xf_ctl *c, const struct run *r, const char *job)
{
    XF_AUTO_FREE char *path = xf_run_state_path(&r->state, "failed.csv");
    struct xf_err err;

    if (xf_ctl_write_report(c, job, path, XF_REPORT_FAILED, &err) != XF_OK) {
        (void)fprintf(stderr, "xferctl: no report: %s\n", err.msg); /* told, not fatal */
    } else {
        (void)fprintf(stderr, "xferctl: every failed object is in %s\n", path); /* for people */
    }
}

static int follow(struct xf_ctl *c, struct run *r, const char *job, const struct xf_job_spec *spec)
{
    struct xf_err err;
    XF_AUTO(xf_json) final = NULL;

    (void)fprintf(stderr, "xferctl: job %s, state in %s\n", job, r->state.dir); /* progress */
    int rc = xf_ctl_follow(c, job, stop_agent, r, &final);
    if (rc == XF_EXIT_INTERRUPTED) {
        (void)fprintf(stderr,
                      "xferctl: stopped; the same command goes on from here\n"); /* progress */
        return rc;
    }
    if (final != NULL && xf_ctl_n_failed(final) > 0) {
        write_failed(c, r, job);
    }
    xf_ctl_reports_of(c, job, spec);
    if (c->o.json && final != NULL) {
        xf_ctl_out_json(final);
    }
    if (final != NULL && xf_run_state_ended(&r->state, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    return rc;
}

/* A changed file is another job; its older self may wait, half done. */
static void tell_older(const struct run *r)
{
    XF_AUTO_FREE char *older = xf_run_state_older(&r->state);

    if (older != NULL) {
        (void)fprintf(stderr,
                      "xferctl: '%s' has changed since it was last run: this is a new job. The old "
                      "one was not finished; its queue stays in '%s' until the file is as it was "
                      "and run again, or that directory is removed\n",
                      r->state.file,
                      older); /* for people */
    }
}

/* Before any thread is started, nng's included: they inherit the mask. */
static void block_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    XF_ASSERT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
}

static enum xf_code start(struct xf_ctl *c,
                          struct run *r,
                          const char *file,
                          const struct xf_job_spec *spec,
                          struct xf_err *err)
{
    struct xf_buf url;

    XF_TRY(xf_run_state_open(&r->state, c->o.state, file, spec, err));
    tell_older(r);
    xf_buf_init(&url, 0);
    xf_buf_putf(&url, "inproc://xferctl-run-%lld", (long long)getpid());
    r->url = xf_buf_take(&url);
    c->o.coordinator = r->url;
    XF_TRY(start_coordinator(r, err));
    return start_agent(r, err);
}

int xf_cmd_run(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct run r = {.state.lock_fd = -1};
    struct xf_err err;
    XF_AUTO_BUF text = {0};
    XF_AUTO(xf_job_spec) spec = NULL;
    XF_AUTO_FREE char *job = NULL;
    bool is_refused = false;
    int rc;

    xf_buf_init(&text, 0);
    block_signals();
    if (xf_ctl_read_spec(p->args[0], &text, &spec, &err) != XF_OK ||
        start(c, &r, p->args[0], spec, &err) != XF_OK ||
        submit(c, &r, xf_buf_view(&text), &job, &err) != XF_OK) {
        rc = xf_ctl_fail(&err);
        is_refused = true; /* no job was made */
    } else {
        rc = follow(c, &r, job, spec);
    }
    xf_ctl_close(c);
    stop_all(&r);
    if (is_refused) {
        xf_run_state_refused(&r.state);
    }
    xf_run_state_close(&r.state);
    return rc;
}
