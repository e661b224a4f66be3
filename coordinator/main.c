/*
 * main.c - xfer-coordinator: command line, config file, signals, readiness, exit status.
 *
 * Anything wrong before ready is exit 2 with the place and the remedy; after SIGTERM or SIGINT the
 * exit status is 0.
 */
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/opt.h"
#include "common/base/process.h"
#include "common/rt/loop.h"
#include "coordinator/coordinator.h"
#include "coordinator/store.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#ifndef XF_VERSION
#define XF_VERSION "0"
#endif

enum { EXIT_REFUSED = 2 };

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

static int fail(const struct xf_err *err, int status)
{
    (void)fprintf(stderr, "xfer-coordinator: %s\n", err->msg); /* nowhere else to tell it */
    return status;
}

static void print(const struct xf_buf *text)
{
    (void)fwrite(text->ptr, 1, text->len, stdout); /* a closed pipe ends the program anyway */
    (void)fflush(stdout);
}

static int check_store(const char *dir)
{
    struct xf_err err;
    uint64_t n_wrong = 0;
    XF_AUTO_BUF report;

    xf_buf_init(&report, 0);
    if (xf_store_check(dir, true, &report, &n_wrong, &err) != XF_OK) {
        return fail(&err, EXIT_REFUSED);
    }
    print(&report);
    if (n_wrong == 0) {
        (void)puts("ok"); /* likewise */
    }
    return n_wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

static enum xf_code
set_option(struct xf_conf *conf, const char *name, const char *text, struct xf_err *err)
{
    return text != NULL ? xf_conf_set(conf, name, xf_str_c(text), err) : XF_OK;
}

static enum xf_code
load(const struct values *v, struct xf_coord_conf *out, struct xf_conf **conf, struct xf_err *err)
{
    if (v->config != NULL) {
        XF_TRY(xf_conf_load_file(&xf_coord_conf_table, v->config, out, conf, err));
    } else {
        XF_TRY(xf_coord_conf_defaults(out, conf, err));
    }
    XF_TRY(set_option(*conf, "data_dir", v->data_dir, err));
    XF_TRY(set_option(*conf, "listen", v->listen, err));
    XF_TRY(set_option(*conf, "http", v->http, err));
    XF_TRY(set_option(*conf, "tls.ca", v->tls_ca, err));
    XF_TRY(set_option(*conf, "tls.cert", v->tls_cert, err));
    XF_TRY(set_option(*conf, "tls.key", v->tls_key, err));
    return v->require_token ? xf_conf_set(*conf, "require_token", XF_STR_LIT("true"), err) : XF_OK;
}

/* ---- serving ------------------------------------------------------------------------------------
 */

struct serving {
    struct xf_coordinator *c;
    int ready_fd; /* -1: none */
};

static void on_signal(void *arg, int signo)
{
    struct serving *s = arg;

    XF_INFO("coordinator.signalled", xf_f_i64("signal", signo));
    (void)sd_notify(0, "STOPPING=1"); /* without systemd there is nobody to tell */
    xf_coordinator_stop(s->c);
}

static void on_ready(void *arg)
{
    struct serving *s = arg;
    struct xf_err err;
    XF_AUTO_BUF line = {0};

    (void)sd_notify(0, "READY=1"); /* likewise */
    if (s->ready_fd < 0) {
        return;
    }
    xf_buf_init(&line, 0);
    xf_buf_putf(&line, "ready listen=%s", xf_coordinator_url(s->c));
    if (xf_coordinator_http(s->c) != NULL) {
        xf_buf_putf(&line, " http=%s", xf_coordinator_http(s->c));
    }
    xf_buf_put_byte(&line, '\n');
    if (xf_file_write_all(s->ready_fd, xf_buf_view(&line), "--ready-fd", &err) != XF_OK) {
        XF_WARN("coordinator.ready_not_told", xf_f_code(err.code), xf_f_err(&err));
    }
    if (close(s->ready_fd) != 0) {
        XF_WARN("coordinator.ready_fd_not_closed", xf_f_i64("fd", s->ready_fd));
    }
    s->ready_fd = -1;
}

static enum xf_code parse_ready_fd(const char *text, int *out, struct xf_err *err)
{
    uint64_t fd = 0;

    *out = -1;
    if (text == NULL) {
        return XF_OK;
    }
    if (!xf_str_u64(xf_str_c(text), &fd) || fd < 3 || fd > 1000000) {
        return XF_FAIL(err, XF_E_INVAL, "--ready-fd '%s' is no descriptor from 3 on", text);
    }
    *out = (int)fd;
    return XF_OK;
}

/* Before any thread is started, nng's included. */
static enum xf_code block_signals(struct xf_err *err)
{
    sigset_t set;

    if (sigemptyset(&set) != 0 || sigaddset(&set, SIGTERM) != 0 || sigaddset(&set, SIGINT) != 0 ||
        pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return XF_FAIL(err, XF_E_IO, "cannot block signals");
    }
    return XF_OK;
}

static int serve(const struct values *v, struct xf_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, 0};
    struct xf_coord_conf values;
    struct xf_conf *conf = NULL;
    struct serving s = {.ready_fd = -1};
    int status = EXIT_REFUSED;
    const struct xf_coordinator_opts co = {
        .conf = &values, .version = XF_VERSION, .on_ready = on_ready, .arg = &s};

    enum xf_code rc = parse_ready_fd(v->ready_fd, &s.ready_fd, err);
    rc = rc == XF_OK ? block_signals(err) : rc;
    rc = rc == XF_OK ? load(v, &values, &conf, err) : rc;
    rc = rc == XF_OK ? xf_coordinator_new(&co, &s.c, err) : rc;
    rc = rc == XF_OK ? xf_loop_signals(xf_coordinator_loop(s.c), signals, on_signal, &s, err) : rc;
    if (rc == XF_OK) {
        rc = xf_coordinator_run(s.c, err);
        status = rc == XF_OK ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    xf_coordinator_free(s.c);
    xf_conf_free(conf);
    return rc == XF_OK ? status : fail(err, status);
}

int main(int argc, char **argv)
{
    struct values v;
    struct xf_opt_parsed parsed;
    struct xf_err err;
    XF_AUTO_BUF text;

    xf_buf_init(&text, 0);
    xf_process_hold_std();
    xf_process_no_core();
    if (xf_log_init_env(&err) != XF_OK ||
        xf_opt_parse(&prog, argc, argv, &v, &parsed, &err) != XF_OK) {
        return fail(&err, EXIT_REFUSED);
    }
    if (parsed.is_help) {
        xf_opt_put_help(&prog, NULL, &text);
        print(&text);
        return EXIT_SUCCESS;
    }
    if (parsed.is_version) {
        (void)printf("xfer-coordinator %s\n", XF_VERSION); /* a closed pipe ends it anyway */
        return EXIT_SUCCESS;
    }
    if (v.help_config) {
        xf_conf_put_help(&xf_coord_conf_table, &text);
        print(&text);
        return EXIT_SUCCESS;
    }
    return v.check_store != NULL ? check_store(v.check_store) : serve(&v, &err);
}
