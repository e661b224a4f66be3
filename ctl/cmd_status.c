/* cmd_status.c - xferctl status [JOB] [--watch]: once, or again and again. */
#include "common/base/clock.h"
#include "ctl/ctl.h"
#include "ctl/tui.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { WATCH_MS = 1000, WATCH_LINE_MS = 10 * 1000, ENDED_SHOWN = 10 };

static bool is_live(const struct xf_json *job)
{
    return xf_json_is_null(job, "finished_at");
}

/* The live jobs, which stand first, and the agents at work on them; below, what has ended. */
static void put_all(struct xf_buf *b, const struct xf_json *j, const struct xf_tui *t)
{
    const struct xf_json *jobs = xf_json_get(j, "jobs");
    size_t n = xf_json_len(jobs);
    size_t at = 0;

    if (jobs == NULL) {
        xf_tui_put_job(b, j, t);
        return;
    }
    while (at < n && is_live(xf_json_at(jobs, at))) {
        xf_tui_put_job(b, xf_json_at(jobs, at++), t);
    }
    if (at == 0) {
        xf_buf_put_c(b, n == 0 ? "no jobs\n" : "no job is under way\n");
    }
    xf_buf_put_byte(b, '\n');
    xf_tui_put_agents(b, xf_json_get(j, "agents"), t);
    size_t end = n - at > ENDED_SHOWN ? at + ENDED_SHOWN : n;
    if (at < end) {
        xf_buf_put_c(b, "\nended\n");
    }
    for (; at < end; at++) {
        xf_tui_put_job(b, xf_json_at(jobs, at), t);
    }
    if (end < n || !xf_json_get_bool(j, "jobs_complete", true)) {
        xf_buf_put_c(b, "older jobs are not shown: `xferctl list` has all\n");
    }
}

static bool was_live(const struct xf_json *last, const char *id)
{
    const struct xf_json *jobs = xf_json_get(last, "jobs");

    for (size_t i = 0; i < xf_json_len(jobs); i++) {
        const struct xf_json *job = xf_json_at(jobs, i);
        if (strcmp(xf_json_get_c(job, "id", ""), id) == 0) {
            return is_live(job);
        }
    }
    return false;
}

/* Of all jobs, those that are live, and once more those that have ended since the last time. */
static void put_lines(struct xf_buf *b, const struct xf_json *j, const struct xf_json *last)
{
    const struct xf_json *jobs = xf_json_get(j, "jobs");
    size_t n = jobs == NULL ? 1 : xf_json_len(jobs);
    char ts[XF_TIME_TEXT_MAX];

    xf_time_rfc3339(xf_clock_wall_ms(xf_clock_real()), false, ts);
    for (size_t i = 0; i < n; i++) {
        const struct xf_json *job = jobs == NULL ? j : xf_json_at(jobs, i);
        if (jobs == NULL || is_live(job) || was_live(last, xf_json_get_c(job, "id", ""))) {
            xf_buf_putf(b, "%s ", ts);
            xf_tui_put_job_line(b, job);
            xf_buf_put_byte(b, '\n');
        }
    }
    if (b->len == 0) {
        xf_buf_putf(b, "%s no job is under way\n", ts);
    }
}

static int once(struct xf_ctl *c, const char *job)
{
    struct xf_err err;
    struct xf_tui tui;
    XF_AUTO(xf_json) j = NULL;
    XF_AUTO_BUF b = {0};

    if (xf_ctl_query(c, XF_KIND_STATUS, job, &j, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (c->o.json) {
        xf_ctl_out_json(j);
        return XF_EXIT_OK;
    }
    xf_tui_init(&tui, STDOUT_FILENO);
    xf_buf_init(&b, 0);
    put_all(&b, j, &tui);
    xf_ctl_out(xf_buf_view(&b));
    return XF_EXIT_OK;
}

/* One picture; with JSON one object a line. *last: what the one before showed. */
static int show(struct xf_ctl *c, const char *job, const struct xf_tui *tui, struct xf_json **last)
{
    struct xf_err err;
    XF_AUTO(xf_json) j = NULL;
    XF_AUTO_BUF b = {0};

    enum xf_code rc = xf_ctl_query(c, XF_KIND_STATUS, job, &j, &err);
    if (rc == XF_E_UNREACHABLE) {
        (void)fprintf(
            stderr, "xferctl: %s; still asking\n", err.msg); /* a restart does not end a watch */
        return XF_EXIT_OK;
    }
    if (rc != XF_OK) {
        return xf_ctl_fail(&err);
    }
    xf_buf_init(&b, 0);
    if (c->o.json) {
        XF_AUTO_FREE char *text = xf_json_dump(j, false);
        xf_buf_put_c(&b, text);
        xf_buf_put_byte(&b, '\n');
    } else if (tui->terminal) {
        XF_AUTO_BUF text = {0};
        xf_buf_init(&text, 0);
        put_all(&text, j, tui);
        xf_buf_put_c(&b, "\x1b[H\x1b[J");
        xf_tui_put_window(&b, xf_buf_view(&text), tui);
    } else {
        put_lines(&b, j, *last);
    }
    xf_ctl_out(xf_buf_view(&b));
    xf_json_free(*last);
    *last = XF_STEAL(j);
    return XF_EXIT_OK;
}

static int watch(struct xf_ctl *c, const char *job)
{
    sigset_t set;
    int rc = XF_EXIT_OK;
    XF_AUTO(xf_json) last = NULL;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    XF_ASSERT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    XF_AUTO_FD int fd = signalfd(-1, &set, SFD_CLOEXEC);
    XF_ASSERT(fd >= 0);
    struct pollfd p = {.fd = fd, .events = POLLIN};
    for (;;) {
        struct xf_tui tui;
        xf_tui_init(&tui, STDOUT_FILENO); /* again each time: the window may have another size */
        rc = show(c, job, &tui, &last);
        if (rc != XF_EXIT_OK ||
            poll(&p, 1, tui.terminal || c->o.json ? WATCH_MS : WATCH_LINE_MS) == 1) {
            return rc;
        }
    }
}

int xf_cmd_status(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    const char *job = p->n_args > 0 ? p->args[0] : NULL;

    return c->o.watch ? watch(c, job) : once(c, job);
}
