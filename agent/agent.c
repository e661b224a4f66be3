/*
 * agent.c - builds the modules, owns the core loop, stops in order.
 *
 * Stop order: drain the runner (its stop order is in runner.c) -> HTTP -> bus -> lock.
 */
#include "agent/agent.h"

#include "agent/metrics.h"
#include "agent/runner.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/net/httpd.h"
#include "common/s3/http.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LANES_AUTO_MAX = 4, INSTANCE_FILE_MAX = 256, TOKEN_FILE_MAX = 4096 };

struct xf_agent {
    struct xf_agent_opts o;
    struct xf_loop *loop;
    struct xf_queue *stops;
    struct xf_bus_client *bus;
    struct xf_runner *runner;
    struct xf_httpd *httpd;
    struct xf_metrics *metrics;
    struct xf_timer ready;
    char *id;
    char *token;
    char host[XF_HOST_MAX + 1];
    unsigned char instance[XF_INSTANCE_LEN];
    int lock_fd; /* -1: none */
    bool is_stopping;
    struct xf_err refused;
};

/* ---- state directory ---- */

/*
 * The lock file's place: a copy of the directory (another host's image, a restored backup) has its
 * own, and must not take the leases of the process that runs in the first.
 */
static enum xf_code put_place(const struct xf_agent *a, struct xf_buf *out, struct xf_err *err)
{
    struct stat st;

    if (fstat(a->lock_fd, &st) != 0) {
        return XF_FAIL_SUB(err, XF_E_IO, errno, "cannot look at the lock of the state directory");
    }
    xf_buf_putf(out, "%ju:%ju", (uintmax_t)st.st_dev, (uintmax_t)st.st_ino);
    return XF_OK;
}

static enum xf_code take_instance(struct xf_agent *a, const char *path, struct xf_err *err)
{
    XF_AUTO_BUF text = {0};
    XF_AUTO_BUF place = {0};
    struct xf_rng rng;

    XF_TRY(put_place(a, &place, err));
    enum xf_code rc = xf_file_read(path, INSTANCE_FILE_MAX, &text, err);
    struct xf_str line = xf_str_trim(xf_buf_view(&text));
    struct xf_str hex = xf_str_sub(line, 0, sizeof(a->instance) * 2);

    if (rc == XF_OK && line.len > hex.len && line.ptr[hex.len] == ' ' &&
        xf_str_eq(xf_str_sub(line, hex.len + 1, line.len), xf_buf_view(&place)) &&
        xf_hex_decode(hex, a->instance)) {
        return XF_OK;
    }
    if (rc != XF_OK && rc != XF_E_NOT_FOUND) {
        return rc;
    }
    xf_rng_init_os(&rng);
    for (size_t i = 0; i < sizeof(a->instance); i++) {
        a->instance[i] = (unsigned char)xf_rng_u64(&rng);
    }
    xf_buf_reset(&text);
    xf_buf_put_hex(&text, a->instance, sizeof(a->instance));
    xf_buf_putf(&text, " %.*s\n", XF_STR_ARG(xf_buf_view(&place)));
    return xf_file_replace(path, xf_buf_view(&text), 0600, err);
}

static enum xf_code lock_state(struct xf_agent *a, struct xf_err *err)
{
    struct xf_str dir = a->o.conf->state_dir;
    XF_AUTO_BUF path = {0};

    if (dir.len == 0) {
        return XF_FAIL(err, XF_E_CONFIG, "state_dir is empty: give --state-dir");
    }
    if (xf_file_mkdirs(dir.ptr, 0700, err) != XF_OK) {
        err->code = XF_E_CONFIG;
        return XF_WRAP(err,
                       "state directory '%.*s' cannot be made (give another --state-dir)",
                       XF_STR_ARG(dir));
    }
    xf_buf_putf(&path, "%.*s/lock", XF_STR_ARG(dir));
    enum xf_code rc = xf_file_lock(path.ptr, &a->lock_fd, err);
    if (rc == XF_E_LOCKED) {
        return XF_FAIL(err,
                       XF_E_LOCKED,
                       "another xfer-agent uses the state directory '%.*s': stop it, or give this "
                       "one its own by --state-dir",
                       XF_STR_ARG(dir));
    }
    XF_TRY(rc);
    xf_buf_reset(&path);
    xf_buf_putf(&path, "%.*s/instance", XF_STR_ARG(dir));
    return take_instance(a, path.ptr, err);
}

static enum xf_code read_token(struct xf_agent *a, struct xf_err *err)
{
    XF_AUTO_BUF text = {0};

    if (a->o.conf->token_file.len == 0) {
        a->token = xf_xstrdup("");
        return XF_OK;
    }
    XF_TRY(xf_file_read(a->o.conf->token_file.ptr, TOKEN_FILE_MAX, &text, err));
    struct xf_str token = xf_str_trim(xf_buf_view(&text));
    a->token = xf_str_dup(token);
    if (text.ptr != NULL) {
        xf_wipe(text.ptr, text.len);
    }
    if (token.len == 0 || token.len > XF_TOKEN_MAX) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "token file '%s' must hold one token of 1 to %d bytes",
                       a->o.conf->token_file.ptr,
                       XF_TOKEN_MAX);
    }
    return XF_OK;
}

/* ---- stops ---- */

static void on_drained(void *arg)
{
    struct xf_agent *a = arg;

    xf_loop_stop(a->loop);
}

static void on_refused(void *arg, const struct xf_err *err)
{
    struct xf_agent *a = arg;

    a->refused = *err;
    xf_loop_stop(a->loop);
}

static void on_stops(void *arg)
{
    struct xf_agent *a = arg;

    while (xf_queue_pop(a->stops) != NULL) {
        if (a->is_stopping) {
            XF_WARN("agent.cut_short", xf_f_c("id", a->id));
            xf_loop_stop(a->loop);
            continue;
        }
        a->is_stopping = true;
        xf_runner_drain(a->runner, a->o.conf->drain_ms);
    }
}

void xf_agent_stop(struct xf_agent *a)
{
    if (!xf_queue_push(a->stops, a)) {
        return; /* full: enough stops are on their way */
    }
}

/* ---- HTTP ---- */

static void refresh_metrics(struct xf_metrics *m, const struct xf_runner_stats *s)
{
    xf_agent_metrics_set(m, XF_AM_OBJECTS, (double)s->sum.objects);
    xf_agent_metrics_set(m, XF_AM_BYTES, (double)s->sum.bytes);
    xf_agent_metrics_set(m, XF_AM_THROUGH, (double)s->sum.through);
    xf_agent_metrics_set(m, XF_AM_THROTTLED, (double)s->sum.throttled);
    xf_agent_metrics_set(m, XF_AM_RETRIES, (double)s->sum.retries);
    xf_agent_metrics_set(m, XF_AM_IN_FLIGHT, (double)s->sum.in_flight);
    xf_agent_metrics_set(m, XF_AM_TASKS, (double)s->tasks);
    xf_agent_metrics_set(m, XF_AM_UP, s->is_up ? 1.0 : 0.0);
}

static void serve_metrics(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    struct xf_agent *a = arg;
    struct xf_runner_stats s;
    XF_AUTO_BUF text = {0};

    (void)rest; /* the path has none */
    xf_runner_stats(a->runner, &s);
    refresh_metrics(a->metrics, &s);
    xf_metrics_write(a->metrics, &text);
    xf_httpd_reply(req, 200, "text/plain; version=0.0.4", xf_buf_view(&text));
}

static void serve_healthz(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    (void)arg;
    (void)rest; /* the path has none */
    xf_httpd_reply(req, 200, "text/plain", XF_STR_LIT("ok\n"));
}

static void serve_readyz(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    struct xf_agent *a = arg;
    struct xf_runner_stats s;

    (void)rest; /* the path has none */
    xf_runner_stats(a->runner, &s);
    if (s.is_up && !s.is_draining) {
        xf_httpd_reply(req, 200, "text/plain", XF_STR_LIT("ok\n"));
    } else {
        xf_httpd_reply(req, 503, "text/plain", XF_STR_LIT("no session with the coordinator\n"));
    }
}

static const struct xf_httpd_route routes[] = {
    {"/metrics", serve_metrics},
    {"/healthz", serve_healthz},
    {"/readyz", serve_readyz},
};

static enum xf_code open_http(struct xf_agent *a, struct xf_err *err)
{
    struct xf_str listen = a->o.conf->http;

    if (listen.len == 0 || xf_str_eq_c(listen, "off")) {
        return XF_OK;
    }
    return xf_httpd_new(&(struct xf_httpd_opts){.loop = a->loop,
                                                .listen = listen.ptr,
                                                .routes = routes,
                                                .n_routes = XF_ARRAY_LEN(routes),
                                                .arg = a},
                        &a->httpd,
                        err);
}

/* ---- life ---- */

static const char *path_or_null(struct xf_str s)
{
    return s.len > 0 ? s.ptr : NULL;
}

static enum xf_code open_bus(struct xf_agent *a, struct xf_err *err)
{
    const struct xf_agent_conf *c = a->o.conf;

    return xf_bus_dial(&(struct xf_bus_client_opts){.loop = a->loop,
                                                    .url = c->coordinator.ptr,
                                                    .tls = {.ca_file = path_or_null(c->tls_ca),
                                                            .cert_file = path_or_null(c->tls_cert),
                                                            .key_file = path_or_null(c->tls_key)}},
                       &a->bus,
                       err);
}

static unsigned count_lanes(const struct xf_agent_conf *c)
{
    long n = c->lanes > 0 ? (long)c->lanes : sysconf(_SC_NPROCESSORS_ONLN);

    if (c->lanes == 0 && n > LANES_AUTO_MAX) {
        n = LANES_AUTO_MAX;
    }
    return n > 0 ? (unsigned)n : 1;
}

static enum xf_code open_runner(struct xf_agent *a, struct xf_err *err)
{
    const struct xf_agent_conf *c = a->o.conf;
    const struct xf_http_opts http = {
        .connect_ms = c->connect_ms,
        .first_byte_ms = c->first_byte_ms,
        .stall_window_ms = c->stall_ms,
    };
    const struct xf_runner_opts o = {
        .loop = a->loop,
        .bus = xf_bus_client_caller(a->bus),
        .agent_id = xf_str_c(a->id),
        .instance = xf_str_n(a->instance, sizeof(a->instance)),
        .version = xf_str_c(a->o.version),
        .host = xf_str_c(a->host),
        .token = xf_str_c(a->token),
        .lanes = count_lanes(c),
        .pool_bytes = (size_t)c->pool_bytes,
        .max_objects = (unsigned)c->objects,
        .max_in_flight = (unsigned)c->in_flight,
        .max_tasks = (unsigned)c->tasks,
        .http = &http,
        .metrics = a->metrics,
        .on_refused = on_refused,
        .on_drained = on_drained,
        .arg = a,
    };
    return xf_runner_new(&o, &a->runner, err);
}

static void on_ready_timer(struct xf_timer *t)
{
    struct xf_agent *a = t->arg;

    XF_INFO("agent.ready",
            xf_f_c("id", a->id),
            xf_f_str("coordinator", a->o.conf->coordinator),
            xf_f_u64("lanes", count_lanes(a->o.conf)));
    if (a->o.on_ready != NULL) {
        a->o.on_ready(a->o.arg);
    }
}

enum xf_code
xf_agent_new(const struct xf_agent_opts *opts, struct xf_agent **out, struct xf_err *err)
{
    XF_AUTO(xf_agent) a = xf_xcalloc(1, sizeof(*a));

    xf_file_raise_descriptors(); /* a connection a request */
    a->o = *opts;
    a->lock_fd = -1;
    a->ready = (struct xf_timer){.cb = on_ready_timer, .arg = a};
    if (gethostname(a->host, sizeof(a->host) - 1) != 0 || a->host[0] == '\0') {
        (void)snprintf(a->host, sizeof(a->host), "unknown"); /* fits */
    }
    a->id = a->o.conf->id.len > 0 ? xf_str_dup(a->o.conf->id) : xf_xstrdup(a->host);
    if (!xf_msg_is_agent_id(xf_str_c(a->id))) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "the agent's name '%s' must be 1 to %d letters, digits and . _ : @ -: give "
                       "another --id",
                       a->id,
                       XF_AGENT_ID_MAX);
    }
    XF_TRY(read_token(a, err));
    XF_TRY(lock_state(a, err));
    XF_TRY(xf_loop_new(NULL, &a->loop, err));
    XF_TRY(xf_queue_new(4, &a->stops, err));
    XF_TRY(xf_queue_attach(a->stops, a->loop, on_stops, a, err));
    a->metrics = xf_agent_metrics_new();
    XF_TRY(open_http(a, err));
    XF_TRY(open_bus(a, err));
    XF_TRY(open_runner(a, err));
    xf_timer_in(a->loop, &a->ready, 0);
    *out = XF_STEAL(a);
    return XF_OK;
}

enum xf_code xf_agent_run(struct xf_agent *a, struct xf_err *err)
{
    xf_loop_run(a->loop);
    if (a->refused.code != XF_OK) {
        *err = a->refused;
    }
    return a->refused.code;
}

void xf_agent_free(struct xf_agent *a)
{
    if (a == NULL) {
        return;
    }
    xf_runner_free(a->runner);
    xf_httpd_free(a->httpd);
    xf_bus_client_close(a->bus);
    if (a->stops != NULL) {
        xf_queue_detach(a->stops);
        while (xf_queue_pop(a->stops) != NULL) {
        }
    }
    xf_queue_free(a->stops);
    xf_metrics_free(a->metrics);
    if (a->loop != NULL) {
        xf_timer_stop(a->loop, &a->ready);
    }
    xf_loop_free(a->loop);
    xf_auto_close(&a->lock_fd);
    if (a->token != NULL) {
        xf_wipe(a->token, strlen(a->token));
    }
    xf_xfree(a->token);
    xf_xfree(a->id);
    xf_xfree(a);
}

const char *xf_agent_http(const struct xf_agent *a)
{
    return a->httpd != NULL ? xf_httpd_address(a->httpd) : NULL;
}

const char *xf_agent_id(const struct xf_agent *a)
{
    return a->id;
}

struct xf_loop *xf_agent_loop(struct xf_agent *a)
{
    return a->loop;
}
