/*
 * main.c - xfer-agent: command line, config file, signals, readiness, exit status.
 *
 * Anything wrong before ready is exit 2 with the place and the remedy. SIGTERM and SIGINT drain
 * within a bounded time and end with 0; a second one ends at once.
 */
#include "agent/agent.h"
#include "common/base/log.h"
#include "common/base/opt.h"
#include "common/base/process.h"
#include "common/rt/daemon.h"
#include "common/rt/loop.h"

#include <signal.h>
#include <stdlib.h>

#ifndef XF_VERSION
#define XF_VERSION "0"
#endif

struct values {
    const char *config;
    const char *coordinator;
    const char *id;
    const char *state_dir;
    const char *http;
    const char *token_file;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *ready_fd;
    bool help_config;
};

#define AT(member) offsetof(struct values, member)

static const struct xf_opt opts[] = {
    {.name = "config",
     .value = "FILE",
     .offset = AT(config),
     .help = "TOML file with any of the options of --help-config; the command line wins.",
     .hint = XF_OPT_FILE},
    {.name = "coordinator",
     .value = "URL",
     .offset = AT(coordinator),
     .env = "XFER_COORDINATOR",
     .help = "Where the coordinator listens (tcp://127.0.0.1:7600); tls+tcp:// for other hosts."},
    {.name = "id",
     .value = "NAME",
     .offset = AT(id),
     .help = "Name of this agent, unique at its coordinator; the host name when not given."},
    {.name = "state-dir",
     .value = "DIR",
     .offset = AT(state_dir),
     .help = "Where instance id and lock are kept (/var/lib/xfer-agent); one agent at a time.",
     .hint = XF_OPT_DIR},
    {.name = "http",
     .value = "ADDR:PORT",
     .offset = AT(http),
     .help = "Serve /metrics, /healthz and /readyz; off when not given."},
    {.name = "token-file",
     .value = "FILE",
     .offset = AT(token_file),
     .help = "File with the token that proves the role of an agent.",
     .hint = XF_OPT_FILE},
    {.name = "tls-ca",
     .value = "FILE",
     .offset = AT(tls_ca),
     .help = "CA that signs the coordinator's certificate.",
     .hint = XF_OPT_FILE},
    {.name = "tls-cert",
     .value = "FILE",
     .offset = AT(tls_cert),
     .help = "Certificate of this agent.",
     .hint = XF_OPT_FILE},
    {.name = "tls-key",
     .value = "FILE",
     .offset = AT(tls_key),
     .help = "Key of the certificate.",
     .hint = XF_OPT_FILE},
    {.name = "ready-fd",
     .value = "N",
     .offset = AT(ready_fd),
     .help = "Write a line to descriptor N when ready, then close it."},
    {.name = "help-config",
     .offset = AT(help_config),
     .help = "Every option of the config file with range, unit and default."},
};

static const struct xf_opt_prog prog = {
    .name = "xfer-agent",
    .summary = "copies what a coordinator hands out",
    .text =
        "Takes batches of objects from xfer-coordinator, copies them from the source to the "
        "destination, and reports what became of each. Any number of agents may work on a job. "
        "Credentials are this host's own: a job names profiles or environment variables. Logs go "
        "to stderr: XFER_LOG=debug|info|warn|error (default info), XFER_LOG_FORMAT=logfmt|json.",
    .exit_codes = "0  stopped by SIGTERM or SIGINT\n"
                  "1  stopped by an error\n"
                  "2  could not start, or the coordinator refused it: the message says why\n",
    .version = XF_VERSION,
    .opts = opts,
    .n_opts = XF_ARRAY_LEN(opts),
};

static enum xf_code
load(const struct values *v, struct xf_agent_conf *out, struct xf_conf **conf, struct xf_err *err)
{
    if (v->config != NULL) {
        XF_TRY(xf_conf_load_file(&xf_agent_conf_table, v->config, out, conf, err));
    } else {
        XF_TRY(xf_agent_conf_defaults(out, conf, err));
    }
    XF_TRY(xf_daemon_set(*conf, "coordinator", v->coordinator, err));
    XF_TRY(xf_daemon_set(*conf, "id", v->id, err));
    XF_TRY(xf_daemon_set(*conf, "state_dir", v->state_dir, err));
    XF_TRY(xf_daemon_set(*conf, "http", v->http, err));
    XF_TRY(xf_daemon_set(*conf, "token_file", v->token_file, err));
    XF_TRY(xf_daemon_set(*conf, "tls.ca", v->tls_ca, err));
    XF_TRY(xf_daemon_set(*conf, "tls.cert", v->tls_cert, err));
    return xf_daemon_set(*conf, "tls.key", v->tls_key, err);
}

/* ---- working ---- */

struct working {
    struct xf_agent *a;
    struct xf_daemon d;
};

static void on_signal(void *arg, int signo)
{
    struct working *w = arg;

    xf_daemon_stopping(&w->d, signo);
    xf_agent_stop(w->a);
}

static void on_ready(void *arg)
{
    struct working *w = arg;
    XF_AUTO_BUF line = {0};

    xf_buf_putf(&line, "ready id=%s", xf_agent_id(w->a));
    if (xf_agent_http(w->a) != NULL) {
        xf_buf_putf(&line, " http=%s", xf_agent_http(w->a));
    }
    xf_daemon_ready(&w->d, xf_buf_view(&line));
}

static int work(const struct values *v, struct xf_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, 0};
    struct xf_agent_conf values;
    struct xf_conf *conf = NULL;
    struct working w = {.d = {.ready_fd = -1}};
    int status = XF_DAEMON_REFUSED;
    const struct xf_agent_opts ao = {
        .conf = &values, .version = XF_VERSION, .on_ready = on_ready, .arg = &w};
    enum xf_code rc = xf_daemon_init(&w.d, &prog, v->ready_fd, err);
    rc = rc == XF_OK ? load(v, &values, &conf, err) : rc;
    rc = rc == XF_OK ? xf_route_apply(&values.route, err) : rc;
    rc = rc == XF_OK ? xf_agent_new(&ao, &w.a, err) : rc;
    rc = rc == XF_OK ? xf_loop_signals(xf_agent_loop(w.a), signals, on_signal, &w, err) : rc;
    if (rc == XF_OK) {
        rc = xf_agent_run(w.a, err);
        status = rc == XF_OK ? EXIT_SUCCESS : XF_DAEMON_REFUSED;
    }
    xf_agent_free(w.a);
    xf_conf_free(conf);
    return rc == XF_OK ? status : xf_daemon_fail(&prog, err, status);
}

int main(int argc, char **argv)
{
    struct values v;
    struct xf_opt_parsed parsed;
    struct xf_err err;

    xf_process_hold_std();
    xf_process_no_core();
    if (xf_log_init_env(&err) != XF_OK ||
        xf_opt_parse(&prog, argc, argv, &v, &parsed, &err) != XF_OK) {
        return xf_daemon_fail(&prog, &err, XF_DAEMON_REFUSED);
    }
    if (xf_daemon_answers(&prog, &parsed, &xf_agent_conf_table, v.help_config)) {
        return EXIT_SUCCESS;
    }
    return work(&v, &err);
}
