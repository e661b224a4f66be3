/*
 * coordinator.c - builds the modules, routes between them, and takes them down.
 *
 * Start: store -> its port -> lister -> HTTP -> recover (jobs, shards, leases) -> bus -> hub.
 * Stop:  the loop ends (nothing new is taken) -> the store's port (what is under way is committed,
 *        its callbacks answer) -> HTTP -> hub -> bus -> lister -> store (folds the log).
 *        What agents have in hand is not lost: their leases are in the store, and they ask again.
 */
#include "coordinator/coordinator.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/net/bus.h"
#include "coordinator/agents.h"
#include "coordinator/core.h"
#include "coordinator/items.h"
#include "coordinator/jobs.h"
#include "coordinator/jobtab.h"
#include "coordinator/metrics.h"
#include "coordinator/operators.h"
#include "coordinator/prune.h"
#include "coordinator/roster.h"
#include "coordinator/submit.h"
#include "coordinator/tuning.h"
#include "coordinator/web.h"

#include <stdlib.h>

enum {
    PORT_CAP = 8192,
    TOKEN_FILE_MAX = 1024 * 1024,
    TOKENS_MAX = 1000,
    PROBE_MS = 8000, /* xferctl waits for about ten seconds */
    CONTEXTS_SPARE = 200,
    RECOVER_TURN_MS = 1000
};

/* ---- events -------------------------------------------------------------------------------------
 */

static const struct xf_hub_events hub_events = {
    .on_hello = xf_agents_on_hello,
    .on_lease = xf_agents_on_lease,
    .on_job = xf_agents_on_job,
    .on_beat = xf_items_on_beat,
    .on_fit = xf_agents_on_fit,
    .on_bye = xf_agents_on_bye,
    .on_operator = xf_operators_on_request,
    .on_gone = xf_agents_on_gone,
};

static void on_probe(void *arg, void *cookie, const struct xf_probe_result *res)
{
    struct xf_cprobe *p = cookie;

    (void)arg; /* its owner knows the coordinator */
    p->done(p, res);
}

static const struct xf_lister_events lister_events = {
    .on_page = xf_jobs_on_page,
    .on_done = xf_jobs_on_listed,
    .on_failed = xf_jobs_on_listing_failed,
    .on_wait = xf_jobs_on_listing_wait,
    .on_probe = on_probe,
};

/* ---- start --------------------------------------------------------------------------------------
 */

/* One token a line; blank lines and those that begin with '#' are passed over. */
static enum xf_code read_tokens(
    struct xf_str path, struct xf_buf *text, struct xf_str **out, size_t *n, struct xf_err *err)
{
    XF_AUTO_FREE char *name = xf_str_dup(path);
    struct xf_str rest;
    struct xf_str line;

    if (path.len == 0) {
        return XF_OK;
    }
    if (xf_file_read(name, TOKEN_FILE_MAX, text, err) != XF_OK) {
        err->code = XF_E_CONFIG;
        return XF_WRAP(err, "token file");
    }
    *out = xf_xcalloc(TOKENS_MAX, sizeof(**out));
    rest = xf_buf_view(text);
    while (xf_str_cut(&rest, '\n', &line)) {
        line = xf_str_trim(line);
        if (line.len == 0 || line.ptr[0] == '#') {
            continue;
        }
        if (*n == TOKENS_MAX || line.len > XF_TOKEN_MAX) {
            return XF_FAIL(err,
                           XF_E_CONFIG,
                           "token file '%s': at most %d tokens of at most %d bytes",
                           name,
                           TOKENS_MAX,
                           XF_TOKEN_MAX);
        }
        (*out)[(*n)++] = line;
    }
    return XF_OK;
}

static enum xf_code open_store(struct xf_coordinator *c, struct xf_err *err)
{
    XF_AUTO_FREE char *dir = xf_str_dup(c->conf->data_dir);
    const struct xf_store_opts so = {.dir = dir,
                                     .clock = c->clock,
                                     .max_bytes = c->conf->store_max_bytes,
                                     .wal_warn_bytes = c->conf->store_wal_warn_bytes,
                                     .after_commit = xf_cmetrics_on_commit,
                                     .arg = c->metrics};

    XF_TRY(xf_store_open(&so, &c->store, err));
    return xf_store_port_open(c->store, c->loop, PORT_CAP, &c->port, err);
}

static enum xf_code open_lister(struct xf_coordinator *c, struct xf_err *err)
{
    const struct xf_lister_opts lo = {
        .loop = c->loop,
        .store = c->store,
        .clock = c->clock,
        .events = &lister_events,
        .arg = c,
        .limits = {.batch_objects = (uint32_t)c->conf->batch_objects,
                   .batch_bytes = c->conf->batch_bytes,
                   .tries = (uint32_t)c->conf->list_tries,
                   .requests = (uint32_t)c->conf->list_requests},
        .probe_timeout_ms = PROBE_MS,
        .on_request = xf_cmetrics_on_request,
        .on_request_arg = c->metrics,
    };

    return xf_lister_new(&lo, &c->lister, err);
}

/* The bus is there before the hub that answers on it. */
static void on_request(void *arg, uint64_t token, struct xf_str bytes)
{
    struct xf_coordinator *c = arg;

    xf_hub_on_request(c->hub, token, bytes);
}

static const char *path_or_null(const char *path)
{
    return path[0] != '\0' ? path : NULL;
}

static enum xf_code open_bus(struct xf_coordinator *c, struct xf_err *err)
{
    XF_AUTO_FREE char *url = xf_str_dup(c->conf->listen);
    XF_AUTO_FREE char *ca = xf_str_dup(c->conf->tls_ca);
    XF_AUTO_FREE char *cert = xf_str_dup(c->conf->tls_cert);
    XF_AUTO_FREE char *key = xf_str_dup(c->conf->tls_key);
    const struct xf_bus_server_opts bo = {
        .loop = c->loop,
        .url = url,
        .tls = {.ca_file = path_or_null(ca),
                .cert_file = path_or_null(cert),
                .key_file = path_or_null(key)},
        /* Of each session a poll and a lease request may wait, beside what is answered at once. */
        .contexts = (size_t)c->conf->sessions_max * 2 + CONTEXTS_SPARE,
        .on_request = on_request,
        .arg = c,
    };

    XF_TRY(xf_bus_listen(&bo, &c->bus, err));
    const struct xf_hub_opts ho = {
        .loop = c->loop,
        .bus = xf_bus_server_answerer(c->bus),
        .events = &hub_events,
        .arg = c,
        .version = c->version,
        .sessions_max = (size_t)c->conf->sessions_max,
        .session_ms = c->conf->session_ms,
        .agent_tokens = c->agent_tokens,
        .n_agent_tokens = c->n_agent_tokens,
        .operator_tokens = c->operator_tokens,
        .n_operator_tokens = c->n_operator_tokens,
        .require_token = c->conf->require_token,
    };
    c->hub = xf_hub_new(&ho);
    return XF_OK;
}

static void on_tick(struct xf_timer *t)
{
    struct xf_coordinator *c = t->arg;

    xf_timer_in(c->loop, &c->tick, XF_CORE_TICK_MS);
    xf_jobs_tick(c);
    xf_agents_tick(c);
    xf_prune_tick(c);
}

static void on_kick(struct xf_timer *t)
{
    xf_agents_kick(t->arg);
}

/* Jobs, shards and leases as the last coordinator left them; nobody is connected yet. */
static enum xf_code recover(struct xf_coordinator *c, struct xf_err *err)
{
    xf_jobs_sync(c);
    while (c->failed.code == XF_OK && (!c->is_recovered || c->n_loading > 0)) {
        xf_loop_turn(c->loop, RECOVER_TURN_MS);
    }
    *err = c->failed;
    return err->code;
}

static enum xf_code check_conf(const struct xf_coord_conf *conf, struct xf_err *err)
{
    if (conf->data_dir.len == 0) {
        return XF_FAIL(err, XF_E_CONFIG, "no data directory: give --data-dir DIR");
    }
    if (conf->lease_margin_ms * 3 > conf->lease_ttl_ms) {
        return XF_FAIL(err, XF_E_CONFIG, "lease.margin must be at most a third of lease.ttl");
    }
    return XF_OK;
}

static enum xf_code open_all(struct xf_coordinator *c, struct xf_err *err)
{
    const struct xf_coord_conf *conf = c->conf;

    XF_TRY(check_conf(conf, err));
    XF_TRY(read_tokens(
        conf->agent_token_file, &c->token_text[0], &c->agent_tokens, &c->n_agent_tokens, err));
    XF_TRY(read_tokens(conf->operator_token_file,
                       &c->token_text[1],
                       &c->operator_tokens,
                       &c->n_operator_tokens,
                       err));
    XF_TRY(xf_loop_new(c->clock, &c->loop, err));
    XF_TRY(open_store(c, err));
    XF_TRY(open_lister(c, err));
    if (conf->http.len > 0 && !xf_str_eq_c(conf->http, "off")) {
        XF_TRY(xf_web_open(c, err));
    }
    XF_TRY(recover(c, err));
    return open_bus(c, err);
}

enum xf_code xf_coordinator_new(const struct xf_coordinator_opts *opts,
                                struct xf_coordinator **out,
                                struct xf_err *err)
{
    XF_AUTO(xf_coordinator) c = xf_xcalloc(1, sizeof(*c));

    xf_file_raise_descriptors(); /* a connection an agent */
    c->conf = opts->conf;
    c->clock = opts->clock != NULL ? opts->clock : xf_clock_real();
    c->version = opts->version;
    c->on_ready = opts->on_ready;
    c->arg = opts->arg;
    xf_list_init(&c->jobs);
    xf_list_init(&c->agents);
    xf_list_init(&c->ended);
    xf_list_init(&c->submits);
    xf_list_init(&c->watches);
    xf_map_init(&c->jobs_by_id);
    xf_map_init(&c->agents_by_id);
    xf_map_init(&c->ended_by_task);
    xf_leases_init(&c->leases, c->conf->lease_ttl_ms, c->conf->lease_margin_ms);
    xf_buf_init(&c->token_text[0], 0);
    xf_buf_init(&c->token_text[1], 0);
    xf_rng_init_os(&c->rng);
    c->metrics = xf_cmetrics_new();
    c->prune_wanted = true; /* the last coordinator may have been killed at it */
    c->tick = (struct xf_timer){.cb = on_tick, .arg = c};
    c->kick = (struct xf_timer){.cb = on_kick, .arg = c};
    XF_TRY(open_all(c, err));
    *out = XF_STEAL(c);
    return XF_OK;
}

/* ---- run and stop -------------------------------------------------------------------------------
 */

enum xf_code xf_coordinator_run(struct xf_coordinator *c, struct xf_err *err)
{
    c->state = XF_CORE_READY;
    XF_INFO("coordinator.ready",
            xf_f_c("url", xf_coordinator_url(c)),
            xf_f_c("http", c->httpd != NULL ? xf_httpd_address(c->httpd) : "off"),
            xf_f_str("data_dir", c->conf->data_dir));
    xf_timer_in(c->loop, &c->tick, 0);
    if (c->on_ready != NULL) {
        c->on_ready(c->arg);
    }
    xf_loop_run(c->loop);
    c->state = XF_CORE_STOPPING;
    XF_INFO("coordinator.stopping", xf_f_str("data_dir", c->conf->data_dir));
    *err = c->failed;
    return err->code;
}

void xf_coordinator_stop(struct xf_coordinator *c)
{
    xf_loop_stop(c->loop);
}

void xf_coordinator_free(struct xf_coordinator *c)
{
    if (c == NULL) {
        return;
    }
    c->state = XF_CORE_STOPPING;
    if (c->loop != NULL) {
        xf_timer_stop(c->loop, &c->tick);
        xf_timer_stop(c->loop, &c->kick);
    }
    if (c->port != NULL) {
        xf_store_port_close(c->port); /* every callback has run, and answered, after this */
    }
    xf_submit_fini(c);
    xf_web_close(c);
    xf_hub_free(c->hub);
    xf_bus_server_close(c->bus);
    xf_lister_free(c->lister);
    xf_store_close(c->store);
    xf_items_fini(c);
    xf_jobs_fini(c);
    xf_jobtab_fini(c);
    xf_roster_fini(c);
    xf_tuning_fini(&c->tuning);
    xf_leases_fini(&c->leases);
    xf_map_fini(&c->jobs_by_id);
    xf_map_fini(&c->agents_by_id);
    xf_map_fini(&c->ended_by_task);
    for (size_t i = 0; i < XF_ARRAY_LEN(c->token_text); i++) {
        struct xf_buf *text = &c->token_text[i];
        if (text->ptr != NULL) {
            xf_wipe(text->ptr, text->cap);
        }
        xf_buf_fini(text);
    }
    xf_xfree(c->agent_tokens);
    xf_xfree(c->operator_tokens);
    xf_metrics_free(c->metrics);
    xf_loop_free(c->loop);
    xf_xfree(c);
}

const char *xf_coordinator_url(const struct xf_coordinator *c)
{
    return xf_bus_server_url(c->bus);
}

const char *xf_coordinator_http(const struct xf_coordinator *c)
{
    return c->httpd != NULL ? xf_httpd_address(c->httpd) : NULL;
}

struct xf_loop *xf_coordinator_loop(struct xf_coordinator *c)
{
    return c->loop;
}
