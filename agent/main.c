/*
 * main.c - xfer-agent: command line, config file, signals, readiness, exit status.
 *
 * Anything wrong before ready is exit 2 with the place and the remedy. SIGTERM and SIGINT drain
 * within a bounded time and end with 0; a second one ends at once.
 */
#include "agent/agent.h"
#include "common/base/file.h"
#include "common/base/log.h"
#include "common/base/opt.h"
#include "common/base/process.h"
#include "common/rt/loop.h"

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

static int fail(const struct xf_err *err, int status)
{
    (void)fprintf(stderr, "xfer-agent: %s\n", err->msg); /* nowhere else to tell it */
    return status;
}

static void print(const struct xf_buf *text)
{
    (void)fwrite(text->ptr, 1, text->len, stdout); /* a closed pipe ends the program anyway */
    (void)fflush(stdout);
}

static enum xf_code
set_option(struct xf_conf *conf, const char *name, const char *text, struct xf_err *err)
{
    return text != NULL ? xf_conf_set(conf, name, xf_str_c(text), err) : XF_OK;
}

static enum xf_code
load(const struct values *v, struct xf_agent_conf *out, struct xf_conf **conf, struct xf_err *err)
{
    if (v->config != NULL) {
        XF_TRY(xf_conf_load_file(&xf_agent_conf_table, v->config, out, conf, err));
    } else {
        XF_TRY(xf_agent_conf_defaults(out, conf, err));
    }
    XF_TRY(set_option(*conf, "coordinator", v->coordinator, err));
    XF_TRY(set_option(*conf, "id", v->id, err));
    XF_TRY(set_option(*conf, "state_dir", v->state_dir, err));
    XF_TRY(set_option(*conf, "http", v->http, err));
    XF_TRY(set_option(*conf, "token_file", v->token_file, err));
    XF_TRY(set_option(*conf, "tls.ca", v->tls_ca, err));
    XF_TRY(set_option(*conf, "tls.cert", v->tls_cert, err));
    return set_option(*conf, "tls.key", v->tls_key, err);
}

/* ---- working ---- */

struct working {
    struct xf_agent *a;
    int ready_fd; /* -1: none */
};

static void on_signal(void *arg, int signo)
{
    struct working *w = arg;

    XF_INFO("agent.signalled", xf_f_i64("signal", signo));
    (void)sd_notify(0, "STOPPING=1"); /* without systemd there is nobody to tell */
    xf_agent_stop(w->a);
}

static void on_ready(void *arg)
{
    struct working *w = arg;
    struct xf_err err;
    XF_AUTO_BUF line = {0};

    (void)sd_notify(0, "READY=1"); /* likewise */
    if (w->ready_fd < 0) {
        return;
    }
    xf_buf_putf(&line, "ready id=%s", xf_agent_id(w->a));
    if (xf_agent_http(w->a) != NULL) {
        xf_buf_putf(&line, " http=%s", xf_agent_http(w->a));
    }
    xf_buf_put_byte(&line, '\n');
    if (xf_file_write_all(w->ready_fd, xf_buf_view(&line), "--ready-fd", &err) != XF_OK) {
        XF_WARN("agent.ready_not_told", xf_f_code(err.code), xf_f_err(&err));
    }
    if (close(w->ready_fd) != 0) {
        XF_WARN("agent.ready_fd_not_closed", xf_f_i64("fd", w->ready_fd));
    }
    w->ready_fd = -1;
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

static int work(const struct values *v, struct xf_err *err)
{
    static const int signals[] = {SIGTERM, SIGINT, 0};
    struct xf_agent_conf values;
    struct xf_conf *conf = NULL;
    struct working w = {.ready_fd = -1};
    int status = EXIT_REFUSED;
    const struct xf_agent_opts ao = {
        .conf = &values, .version = XF_VERSION, .on_ready = on_ready, .arg = &w};
    enum xf_code rc = parse_ready_fd(v->ready_fd, &w.ready_fd, err);
    rc = rc == XF_OK ? block_signals(err) : rc;
    rc = rc == XF_OK ? load(v, &values, &conf, err) : rc;
    rc = rc == XF_OK ? xf_agent_new(&ao, &w.a, err) : rc;
    rc = rc == XF_OK ? xf_loop_signals(xf_agent_loop(w.a), signals, on_signal, &w, err) : rc;
    if (rc == XF_OK) {
        rc = xf_agent_run(w.a, err);
        status = rc == XF_OK ? EXIT_SUCCESS : EXIT_REFUSED;
    }
    xf_agent_free(w.a);
    xf_conf_free(conf);
    return rc == XF_OK ? status : fail(err, status);
}

int main(int argc, char **argv)
{
    struct values v;
    struct xf_opt_parsed parsed;
    struct xf_err err;
    XF_AUTO_BUF text = {0};

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
        (void)printf("xfer-agent %s\n", XF_VERSION); /* a closed pipe ends it anyway */
        return EXIT_SUCCESS;
    }
    if (v.help_config) {
        xf_conf_put_help(&xf_agent_conf_table, &text);
        print(&text);
        return EXIT_SUCCESS;
    }
    return work(&v, &err);
}
