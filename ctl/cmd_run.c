/*
 * cmd_run.c - xferctl run FILE: coordinator and agent as threads of this process, joined by
 * inproc://, the queue in a state directory.
 *
 * The state directory holds `queue` (the coordinator's data), `agent` (the agent's state), and
 * `run.json` ({"hash", "run"}): the job's hash and how often it was begun. Hash and count make the
 * submit key, so a run that was killed finds its own job again, and one that ended begins a new
 * job. Both directories are locked by their owners, so a second run of the same job is refused.
 */
#include "agent/agent.h"
#include "common/base/file.h"
#include "common/job/spec.h"
#include "common/rt/loop.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "coordinator/coordinator.h"
#include "ctl/ctl.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { RUN_FILE_MAX = 4096, KEY_HASH_LEN = 40 };

/* Coordinator or agent: made, run and freed by a thread of its own. */
struct half {
    struct xf_thread thread;
    struct xf_queue *made;  /* one struct xf_err: how its making went */
    struct xf_queue *leave; /* one token: it may be freed, nobody stops it any more */
};

struct run {
    char *dir;
    char *url;
    char hash[65];
    uint64_t count;
    struct xf_coord_conf coord_values;
    struct xf_conf *coord_conf;
    struct xf_agent_conf agent_values;
    struct xf_conf *agent_conf;
    struct xf_coordinator *coordinator;
    struct xf_agent *agent;
    int lock_fd; /* -1: none */
    struct half coordinator_half;
    struct half agent_half;
};

static char *below(const char *dir, const char *name)
{
    struct xf_buf b;

    xf_buf_init(&b, 0);
    xf_buf_putf(&b, "%s/%s", dir, name);
    return xf_buf_take(&b);
}

/* --state, or one directory a job below the user's state. */
static enum xf_code state_dir(const struct xf_ctl *c, struct run *r, struct xf_err *err)
{
    const char *base = getenv("XDG_STATE_HOME"); /* NOLINT(concurrency-mt-unsafe): at start */
    const char *home = getenv("HOME");           /* NOLINT(concurrency-mt-unsafe): at start */
    struct xf_buf b;

    if (c->o.state != NULL) {
        r->dir = xf_xstrdup(c->o.state);
        return XF_OK;
    }
    if ((base == NULL || base[0] == '\0') && (home == NULL || home[0] == '\0')) {
        return XF_FAIL(
            err, XF_E_CONFIG, "neither XDG_STATE_HOME nor HOME is set: give --state DIR");
    }
    xf_buf_init(&b, 0);
    if (base != NULL && base[0] != '\0') {
        xf_buf_putf(&b, "%s/xfer/run/%s", base, r->hash);
    } else {
        xf_buf_putf(&b, "%s/.local/state/xfer/run/%s", home, r->hash);
    }
    r->dir = xf_buf_take(&b);
    return XF_OK;
}

/* Before anything in it is read or written: two of the same command may start at once. */
static enum xf_code lock_dir(struct run *r, struct xf_err *err)
{
    XF_AUTO_FREE char *path = below(r->dir, "lock");
    enum xf_code rc = xf_file_lock(path, &r->lock_fd, err);

    if (rc == XF_E_LOCKED) {
        return XF_FAIL(err,
                       XF_E_LOCKED,
                       "this job runs already in '%s': wait for that xferctl, or stop it",
                       r->dir);
    }
    return rc;
}

static enum xf_code write_run_file(const struct run *r, struct xf_err *err)
{
    XF_AUTO(xf_json) j = xf_json_object();
    XF_AUTO_FREE char *path = below(r->dir, "run.json");

    xf_json_set_c(j, "hash", r->hash);
    xf_json_set_u64(j, "run", r->count);
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    return xf_file_replace(path, xf_str_c(text), 0640, err);
}

/* Which run of which job this directory is at; a directory of another job is refused. */
static enum xf_code read_run_file(struct run *r, struct xf_err *err)
{
    XF_AUTO_FREE char *path = below(r->dir, "run.json");
    XF_AUTO_BUF text;
    XF_AUTO(xf_json) j = NULL;

    xf_buf_init(&text, 0);
    r->count = 1;
    enum xf_code rc = xf_file_read(path, RUN_FILE_MAX, &text, err);
    if (rc == XF_E_NOT_FOUND) {
        return write_run_file(r, err);
    }
    XF_TRY(rc);
    if (xf_json_parse(xf_buf_view(&text), &j, err) != XF_OK) {
        err->code = XF_E_CONFIG;
        return XF_WRAP(
            err, "'%s' is damaged: give another --state DIR, or remove it to begin anew", path);
    }
    if (strcmp(xf_json_get_c(j, "hash", ""), r->hash) != 0) {
        return XF_FAIL(
            err,
            XF_E_CONFIG,
            "'%s' holds the queue of another job: finish that one, or give another --state DIR",
            r->dir);
    }
    r->count = xf_json_get_u64(j, "run", 1);
    return XF_OK;
}

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
    XF_AUTO_FREE char *data = below(r->dir, "queue");

    XF_TRY(xf_coord_conf_defaults(&r->coord_values, &r->coord_conf, err));
    XF_TRY(set(r->coord_conf, "data_dir", data, err));
    XF_TRY(set(r->coord_conf, "listen", r->url, err));
    XF_TRY(set(r->coord_conf, "http", "off", err));
    return half_start(&r->coordinator_half, "coordinator", run_coordinator, r, err);
}

static enum xf_code start_agent(struct run *r, struct xf_err *err)
{
    XF_AUTO_FREE char *state = below(r->dir, "agent");

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
    xf_auto_close(&r->lock_fd);
    xf_xfree(r->dir);
    xf_xfree(r->url);
}

/* ---- the job ---- */

static enum xf_code
submit(struct xf_ctl *c, const struct run *r, struct xf_str toml, char **job, struct xf_err *err)
{
    struct xf_msg_submit_reply reply;
    XF_AUTO_BUF key;

    xf_buf_init(&key, 0);
    xf_buf_putf(&key, "%.*s-%llu", (int)KEY_HASH_LEN, r->hash, (unsigned long long)r->count);
    struct xf_msg_submit m = {.key = xf_buf_view(&key), .toml = toml};
    XF_TRY(xf_ctl_call(c, XF_KIND_SUBMIT, &m, XF_CLIENT_SUBMIT_DEADLINE_MS, &reply, err));
    *job = xf_str_dup(reply.job);
    return XF_OK;
}

static int follow(struct xf_ctl *c, struct run *r, const char *job, const struct xf_job_spec *spec)
{
    struct xf_err err;
    XF_AUTO(xf_json) final = NULL;

    (void)fprintf(stderr, "xferctl: job %s, state in %s\n", job, r->dir); /* progress */
    int rc = xf_ctl_follow(c, job, stop_agent, r, &final);
    if (rc == XF_EXIT_INTERRUPTED) {
        (void)fprintf(stderr,
                      "xferctl: stopped; the same command goes on from here\n"); /* progress */
        return rc;
    }
    xf_ctl_reports_of(c, job, spec);
    if (c->o.json && final != NULL) {
        xf_ctl_out_json(final);
    }
    if (final != NULL) {
        r->count++;
        if (write_run_file(r, &err) != XF_OK) {
            return xf_ctl_fail(&err);
        }
    }
    return rc;
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

static enum xf_code
start(struct xf_ctl *c, struct run *r, const struct xf_job_spec *spec, struct xf_err *err)
{
    struct xf_buf url;

    xf_job_spec_hash(spec, r->hash);
    XF_TRY(state_dir(c, r, err));
    XF_TRY(xf_file_mkdirs(r->dir, 0700, err));
    XF_TRY(lock_dir(r, err));
    XF_TRY(read_run_file(r, err));
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
    struct run r = {.lock_fd = -1};
    struct xf_err err;
    XF_AUTO_BUF text;
    XF_AUTO(xf_job_spec) spec = NULL;
    XF_AUTO_FREE char *job = NULL;
    int rc;

    xf_buf_init(&text, 0);
    block_signals();
    if (xf_ctl_read_spec(p->args[0], &text, &spec, &err) != XF_OK ||
        start(c, &r, spec, &err) != XF_OK ||
        submit(c, &r, xf_buf_view(&text), &job, &err) != XF_OK) {
        rc = xf_ctl_fail(&err);
    } else {
        rc = follow(c, &r, job, spec);
    }
    xf_ctl_close(c);
    stop_all(&r);
    return rc;
}
