/*
 * follow.c - wait for a job's end with progress on stderr, and write its reports.
 *
 * A status that cannot be had is told once and asked for again: a coordinator that restarts does
 * not end a wait.
 */
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/job/spec.h"
#include "ctl/ctl.h"
#include "ctl/tui.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { LOOK_MS = 500, LINE_EVERY_MS = 10 * 1000 };

struct follower {
    struct xf_tui tui;
    size_t lines; /* of the last drawing, to be overdrawn */
    int64_t line_at_ms;
    bool away;
};

static void put_stderr(const struct xf_buf *b)
{
    struct xf_err err;

    /* Progress that nobody can read is no reason to end. */
    (void)!xf_file_write_all(STDERR_FILENO, xf_buf_view(b), "stderr", &err);
}

static void draw(struct follower *f, const struct xf_json *st)
{
    XF_AUTO_BUF b = {0};
    int64_t now = xf_clock_mono_ms(xf_clock_real());

    xf_buf_init(&b, 0);
    if (f->tui.terminal) {
        if (f->lines > 0) {
            xf_buf_putf(&b, "\x1b[%zuA\x1b[J", f->lines);
        }
        size_t head = b.len;
        xf_tui_put_job(&b, st, &f->tui);
        f->lines = 0;
        for (size_t i = head; i < b.len; i++) {
            f->lines += b.ptr[i] == '\n' ? 1 : 0;
        }
        put_stderr(&b);
    } else if (now - f->line_at_ms >= LINE_EVERY_MS) {
        char ts[XF_TIME_TEXT_MAX];
        xf_time_rfc3339(xf_clock_wall_ms(xf_clock_real()), false, ts);
        xf_buf_putf(&b, "%s ", ts);
        xf_tui_put_job_line(&b, st);
        xf_buf_put_byte(&b, '\n');
        put_stderr(&b);
        f->line_at_ms = now;
    }
}

static bool is_end(const struct xf_json *st)
{
    static const char *const ends[] = {
        "completed", "completed_with_failures", "failed", "cancelled"};
    const char *state = xf_json_get_c(st, "state", "");

    for (size_t i = 0; i < XF_ARRAY_LEN(ends); i++) {
        if (strcmp(state, ends[i]) == 0) {
            return true;
        }
    }
    return false;
}

/* True when a signal came within ms. */
static bool interrupted(int signal_fd, int ms)
{
    struct pollfd p = {.fd = signal_fd, .events = POLLIN};
    struct signalfd_siginfo info;

    return poll(&p, 1, ms) == 1 && read(signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info);
}

/* How it ended, in figures: the last line says why the exit status is what it is. */
static int last_word(const struct xf_json *st)
{
    static const char *const outcomes[] = {
        "copied", "skipped", "failed", "vanished", "archived", "pending"};
    const struct xf_json *objects = xf_json_get(st, "objects");
    const char *reason = xf_json_get_c(st, "reason", NULL);
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    xf_buf_putf(
        &b, "xferctl: %s %s", xf_json_get_c(st, "id", "?"), xf_json_get_c(st, "state", "?"));
    if (reason != NULL) {
        xf_buf_put_c(&b, " (");
        xf_buf_put_escaped(&b, xf_str_c(reason));
        xf_buf_put_c(&b, ")");
    }
    xf_buf_putf(&b, ": %llu listed", (unsigned long long)xf_json_get_u64(objects, "listed", 0));
    for (size_t i = 0; i < XF_ARRAY_LEN(outcomes); i++) {
        uint64_t n = xf_json_get_u64(objects, outcomes[i], 0);
        if (n > 0 || i == 0) {
            xf_buf_putf(&b, ", %llu %s", (unsigned long long)n, outcomes[i]);
        }
    }
    xf_buf_put_byte(&b, '\n');
    put_stderr(&b);
    return (int)xf_json_get_i64(st, "exit_code", XF_EXIT_ERROR);
}

uint64_t xf_ctl_n_failed(const struct xf_json *st)
{
    const struct xf_json *objects = xf_json_get(st, "objects");

    return xf_json_get_u64(objects, "failed", 0) + xf_json_get_u64(objects, "archived", 0);
}

/* The kinds of errors with some of their keys; the status said already that there are some. */
static void tell_errors(struct xf_ctl *c, const char *job)
{
    struct xf_err err;
    XF_AUTO(xf_json) show = NULL;
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    if (xf_ctl_query(c, XF_KIND_SHOW, job, &show, &err) == XF_OK) {
        xf_ctl_put_errors(&b, show);
        put_stderr(&b);
    }
}

/* One look. False: the wait ends with *result. */
static bool
look(struct xf_ctl *c, struct follower *f, const char *job, struct xf_json **final, int *result)
{
    struct xf_err err;
    XF_AUTO(xf_json) st = NULL;
    enum xf_code rc = xf_ctl_query(c, XF_KIND_STATUS, job, &st, &err);

    if (rc == XF_E_UNREACHABLE || rc == XF_E_BUSY) {
        if (!f->away) {
            (void)fprintf(stderr,
                          "xferctl: %s; the job goes on without us, still asking\n",
                          err.msg); /* progress */
        }
        f->away = true;
        return true;
    }
    if (rc != XF_OK) {
        *result = xf_ctl_fail(&err);
        return false;
    }
    f->away = false;
    draw(f, st);
    if (!is_end(st)) {
        return true;
    }
    if (xf_ctl_n_failed(st) > 0) {
        tell_errors(c, job);
    }
    *result = last_word(st);
    if (final != NULL) {
        *final = XF_STEAL(st);
    }
    return false;
}

int xf_ctl_follow(struct xf_ctl *c,
                  const char *job,
                  void (*on_interrupt)(void *arg),
                  void *arg,
                  struct xf_json **final)
{
    struct follower f = {0};
    sigset_t set;
    int result = XF_EXIT_ERROR;

    if (final != NULL) {
        *final = NULL;
    }
    xf_tui_init(&f.tui, STDERR_FILENO);
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    XF_ASSERT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    XF_AUTO_FD int signal_fd = signalfd(-1, &set, SFD_CLOEXEC);
    XF_ASSERT(signal_fd >= 0);
    while (look(c, &f, job, final, &result)) {
        if (!interrupted(signal_fd, LOOK_MS)) {
            continue;
        }
        /* A second Ctrl-C ends at once: everything that matters is in the store. */
        XF_ASSERT(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
        if (on_interrupt != NULL) {
            on_interrupt(arg);
        } else {
            (void)fprintf(stderr,
                          "xferctl: the job goes on; look with: xferctl status %s\n",
                          job); /* progress */
        }
        result = XF_EXIT_INTERRUPTED;
        break;
    }
    XF_ASSERT(pthread_sigmask(SIG_UNBLOCK, &set, NULL) == 0);
    return result;
}

enum xf_code xf_ctl_write_report(struct xf_ctl *c,
                                 const char *job,
                                 const char *path,
                                 enum xf_report_only only,
                                 struct xf_err *err)
{
    XF_AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);

    if (fd < 0) {
        return XF_FAIL_SUB(
            err, XF_E_IO, errno, "cannot write '%s': %s", path, xf_errno_text(errno));
    }
    XF_AUTO_BUF cursor = {0};
    xf_buf_init(&cursor, 0);
    for (;;) {
        struct xf_msg_report q = {.job = xf_str_c(job),
                                  .format = XF_REPORT_CSV,
                                  .only = only,
                                  .cursor = xf_buf_view(&cursor)};
        struct xf_msg_report_reply r;
        XF_TRY(xf_ctl_call(c, XF_KIND_REPORT, &q, XF_CLIENT_DEADLINE_MS, &r, err));
        XF_TRY(xf_file_write_all(fd, r.chunk, path, err));
        if (r.end) {
            break;
        }
        xf_buf_reset(&cursor);
        xf_buf_put(&cursor, r.cursor);
    }
    if (fsync(fd) != 0) {
        return XF_FAIL_SUB(
            err, XF_E_DISK, errno, "cannot sync '%s': %s", path, xf_errno_text(errno));
    }
    return XF_OK;
}

static char *join(const char *dir, const char *job, const char *tail)
{
    struct xf_buf b;

    xf_buf_init(&b, 0);
    xf_buf_putf(
        &b, "%s%s%s%s", dir, xf_str_ends(xf_str_c(dir), XF_STR_LIT("/")) ? "" : "/", job, tail);
    return xf_buf_take(&b);
}

enum xf_code
xf_ctl_write_reports(struct xf_ctl *c, const char *job, const char *dir, struct xf_err *err)
{
    XF_AUTO_FREE char *all = join(dir, job, ".csv");
    XF_AUTO_FREE char *failed = join(dir, job, "-failed.csv");
    XF_AUTO_FREE char *summary = join(dir, job, ".json");
    XF_AUTO(xf_json) show = NULL;

    XF_TRY(xf_file_mkdirs(dir, 0750, err));
    XF_TRY(xf_ctl_write_report(c, job, all, XF_REPORT_ALL, err));
    XF_TRY(xf_ctl_write_report(c, job, failed, XF_REPORT_FAILED, err));
    XF_TRY(xf_ctl_query(c, XF_KIND_SHOW, job, &show, err));
    XF_AUTO_FREE char *text = xf_json_dump(show, true);
    return xf_file_replace(summary, xf_str_c(text), 0640, err);
}

void xf_ctl_reports_of(struct xf_ctl *c, const char *job, const struct xf_job_spec *spec)
{
    struct xf_err err;

    if (spec->report_path.len == 0) {
        return;
    }
    XF_AUTO_FREE char *dir = xf_str_dup(spec->report_path);
    if (xf_ctl_write_reports(c, job, dir, &err) != XF_OK) {
        (void)fprintf(stderr, "xferctl: no report: %s\n", err.msg); /* told, not fatal */
    } else {
        (void)fprintf(stderr, "xferctl: report in %s\n", dir); /* for people */
    }
}
