/*
 * main.c - xfer-coordinator: command line, config file, signals, readiness, exit status.
 *
 * Anything wrong before ready is exit 2 with the place and the remedy; after SIGTERM or SIGINT the
 * exit status is 0.
 */
#include "common/base/log.h"
#include "common/base/opt.h"
#include "common/base/process.h"
#include "common/rt/daemon.h"
#include "common/rt/loop.h"
#include "coordinator/coordinator.h"
#include "coordinator/store.h"

#include <signal.h>
#include <stdlib.h>

#ifndef XF_VERSION
#define XF_VERSION "0"
#endif

struct values {
    const char *config;
    const char *data_dir;
    const char *listen;
    const char *http;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    const char *ready_fd;
    const char *check_store;
    bool require_token;
    bool help_config;
};

#define AT(member) offsetof(struct values, member)

static const struct xf_opt opts[] = {
    {.name = "config",
     .value = "FILE",
     .offset = AT(config),
     .help = "TOML file with any of the options of --help-config; the command line wins.",
     .hint = XF_OPT_FILE},
    {.name = "data-dir",
     .value = "DIR",
     .offset = AT(data_dir),
     .help = "Where the queue is kept; one coordinator at a time.",
     .hint = XF_OPT_DIR},
    {.name = "listen",
     .value = "URL",
     .offset = AT(listen),
     .help =
         "Where agents and xferctl connect (tcp://127.0.0.1:7600); tls+tcp:// for other hosts."},
    {.name = "http",
     .value = "ADDR:PORT",
     .offset = AT(http),
     .help = "Page, /metrics, /api/v1, /healthz and /readyz (127.0.0.1:7680); off for none."},
    {.name = "tls-ca",
     .value = "FILE",
     .offset = AT(tls_ca),
     .help = "CA that signs the peers' certificates.",
     .hint = XF_OPT_FILE},
    {.name = "tls-cert",
     .value = "FILE",
     .offset = AT(tls_cert),
     .help = "Certificate of this coordinator.",
     .hint = XF_OPT_FILE},
    {.name = "tls-key",
     .value = "FILE",
     .offset = AT(tls_key),
     .help = "Key of the certificate.",
     .hint = XF_OPT_FILE},
    {.name = "require-token",
     .offset = AT(require_token),
     .help = "Refuse agents and operators that prove no role by a token."},
    {.name = "ready-fd",
     .value = "N",
     .offset = AT(ready_fd),
     .help = "Write a line to descriptor N when ready, then close it."},
    {.name = "check-store",
     .value = "DIR",
     .offset = AT(check_store),
     .help = "Check the queue in DIR, say what is wrong, and exit: 0 sound, 1 not."},
    {.name = "help-config",
     .offset = AT(help_config),
     .help = "Every option of the config file with range, unit and default."},
};

static const struct xf_opt_prog prog = {
    .name = "xfer-coordinator",
    .summary = "lists sources, keeps the queue, and leases work to agents",
    .text =
        "Keeps the jobs that xferctl submits, lists their sources, and hands batches of objects "
        "to xfer-agent processes, which copy them. Logs go to stderr: "
        "XFER_LOG=debug|info|warn|error (default info), XFER_LOG_FORMAT=logfmt|json.",
    .exit_codes = "0  stopped by SIGTERM or SIGINT, everything committed\n"
                  "1  stopped by an error, or --check-store found something wrong\n"
                  "2  could not start: the message says why and what to do\n",
    .version = XF_VERSION,
    .opts = opts,
    .n_opts = XF_ARRAY_LEN(opts),
};

static int check_store(const char *dir)
{
    struct xf_err err;
    uint64_t n_wrong = 0;
    XF_AUTO_BUF report = {0};

    xf_buf_init(&report, 0);
    if (xf_store_check(dir, true, &report, &n_wrong, &err) != XF_OK) {
        return xf_daemon_fail(&prog, &err, XF_DAEMON_REFUSED);
    }
    if (n_wrong == 0) {
        xf_buf_put_c(&report, "ok\n");
    }
    xf_daemon_print(&report);
    return n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static enum xf_code
load(const struct values *v, struct xf_coord_conf *out, struct xf_conf **conf, struct xf_err *err)
{
    if (v->config != NULL) {
        XF_TRY(xf_conf_load_file(&xf_coord_conf_table, v->config, out, conf, err));
    } else {
        XF_TRY(xf_coord_conf_defaults(out, conf, err));
    }
    XF_TRY(xf_daemon_set(*conf, "data_dir", v->data_dir, err));
    XF_TRY(xf_daemon_set(*conf, "listen", v->listen, err));
    XF_TRY(xf_daemon_set(*conf, "http", v->http, err));
    XF_TRY(xf_daemon_set(*conf, "tls.ca", v->tls_ca, err));
    XF_TRY(xf_daemon_set(*conf, "tls.cert", v->tls_cert, err));
    XF_TRY(xf_daemon_set(*conf, "tls.key", v->tls_key, err));
    return v->require_token ? xf_conf_set(*conf, "require_token", XF_STR_LIT("true"), err) : XF_OK;
}

/* ---- serving ------------------------------------------------------------------------------------
 */

struct serving {
    struct xf_coordinator *c;
    struct xf_daemon d;
};

static void on_signal(void *arg, int signo)
{
    struct serving *s = arg;

    xf_daemon_stopping(&s->d, signo);
    xf_coordinator_stop(s->c);
}

static void on_ready(void *arg)
{
    struct serving *s = arg;
    XF_AUTO_BUF line = {0};

    xf_buf_putf(&line, "ready listen=%s", xf_coordinator_url(s->c));
    if (xf_coordinator_http(s->c) != NULL) {
        xf_buf_putf(&line, " http=%s", xf_coordinator_http(s->c));
    }
    xf_daemon_ready(&s->d, xf_buf_view(&line));
}

static int serve(const struct values *v, struct xf_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, 0};
    struct xf_coord_conf values;
    struct xf_conf *conf = NULL;
    struct serving s = {.d = {.ready_fd = -1}};
    int status = XF_DAEMON_REFUSED;
    const struct xf_coordinator_opts co = {
        .conf = &values, .version = XF_VERSION, .on_ready = on_ready, .arg = &s};

    enum xf_code rc = xf_daemon_init(&s.d, &prog, v->ready_fd, err);
    rc = rc == XF_OK ? load(v, &values, &conf, err) : rc;
    rc = rc == XF_OK ? xf_route_apply(&values.route, err) : rc;
    rc = rc == XF_OK ? xf_coordinator_new(&co, &s.c, err) : rc;
    rc = rc == XF_OK ? xf_loop_signals(xf_coordinator_loop(s.c), signals, on_signal, &s, err) : rc;
    if (rc == XF_OK) {
        rc = xf_coordinator_run(s.c, err);
        status = rc == XF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    xf_coordinator_free(s.c);
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
    if (xf_daemon_answers(&prog, &parsed, &xf_coord_conf_table, v.help_config)) {
        return EXIT_SUCCESS;
    }
    return v.check_store != NULL ? check_store(v.check_store) : serve(&v, &err);
}
