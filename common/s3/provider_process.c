/*
 * provider_process.c - credentials that a program prints: a profile's credential_process.
 *
 * No shell: the command is split as a shell would, and nothing in it is expanded. The program gets
 * no input, its errors are dropped (they may tell secrets), and it has PROCESS_MS; then it and all
 * that it started are killed.
 */
#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/s3/provider_int.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PROCESS_MS = 60 * 1000, TURN_MS = 100, REPLY_MAX = 64 * 1024, ARGS_MAX = 64 };

enum xf_code xf_creds_from_json(struct xf_str text,
                                const char *token,
                                const char *where,
                                struct xf_creds **out,
                                struct xf_err *err)
{
    XF_AUTO(xf_json) j = NULL;
    struct xf_err quiet;

    if (xf_json_parse(text, &j, &quiet) != XF_OK || !xf_json_is_object(j)) {
        return XF_FAIL(err, XF_E_CREDS, "%s: the answer is not a JSON object", where);
    }
    const char *code = xf_json_get_c(j, "Code", "Success");
    if (strcmp(code, "Success") != 0) {
        return XF_FAIL(err, XF_E_CREDS, "%s: refused (%.64s)", where, code);
    }
    const struct xf_creds_found f = {
        .access = xf_str_c(xf_json_get_c(j, "AccessKeyId", "")),
        .secret = xf_str_c(xf_json_get_c(j, "SecretAccessKey", "")),
        .token = xf_str_c(xf_json_get_c(j, token, "")),
        .expires = xf_str_c(xf_json_get_c(j, "Expiration", "")),
    };
    return xf_creds_make(&f, where, out, err);
}

/* Words as a shell splits them, quotes and backslashes taken off; nothing is expanded. */
static enum xf_code
split(struct xf_str command, struct xf_buf *bytes, char **argv, struct xf_err *err)
{
    size_t starts[ARGS_MAX] = {0};
    size_t n = 0;
    char quote = '\0';
    bool in_word = false;

    for (size_t i = 0; i < command.len; i++) {
        char c = command.ptr[i];
        bool is_blank = quote == '\0' && (c == ' ' || c == '\t');

        if (is_blank) {
            if (in_word) {
                xf_buf_put_byte(bytes, '\0');
            }
            in_word = false;
            continue;
        }
        if (!in_word) {
            if (n + 1 >= ARGS_MAX) {
                return XF_FAIL(err, XF_E_CREDS, "more than %d words", ARGS_MAX - 1);
            }
            starts[n++] = bytes->len;
            in_word = true;
        }
        if (quote == '\0' && (c == '"' || c == '\'')) {
            quote = c;
        } else if (c == quote) {
            quote = '\0';
        } else if (c == '\\' && quote != '\'' && i + 1 < command.len) {
            xf_buf_put_byte(bytes, command.ptr[++i]);
        } else {
            xf_buf_put_byte(bytes, c);
        }
    }
    if (quote != '\0' || n == 0) {
        return XF_FAIL(err, XF_E_CREDS, n == 0 ? "it is empty" : "a quote is not closed");
    }
    xf_buf_put_byte(bytes, '\0');
    for (size_t i = 0; i < n; i++) {
        argv[i] = bytes->ptr + starts[i];
    }
    argv[n] = NULL;
    return XF_OK;
}

/* A program that runs. */
struct running {
    pid_t pid;
    int fd;           /* its output; -1: it closed it */
    int64_t until_ms; /* monotonic */
    xf_creds_stop stop;
    bool has_ended;
    int status; /* of waitpid(), when it has ended */
};

static bool is_over(const struct running *r)
{
    return xf_clock_mono_ms(xf_clock_real()) >= r->until_ms ||
           (r->stop != NULL && atomic_load(r->stop));
}

static void look_for_end(struct running *r, int flags)
{
    pid_t got;

    do {
        got = waitpid(r->pid, &r->status, flags);
    } while (got < 0 && errno == EINTR);
    r->has_ended = r->has_ended || got == r->pid;
}

/* What is there to read now. False: it wrote too much, or its output cannot be read. */
static bool read_some(struct running *r, struct xf_buf *out)
{
    char chunk[4096];
    ssize_t n = read(r->fd, chunk, sizeof(chunk));

    if (n > 0) {
        xf_buf_put_mem(out, chunk, (size_t)n);
        xf_wipe(chunk, (size_t)n);
        return !out->full;
    }
    if (n == 0) {
        xf_auto_close(&r->fd);
        r->fd = -1;
    }
    return n == 0 || errno == EINTR || errno == EAGAIN;
}

/* Its output, until it has ended. Who holds the output open behind it is not waited for. */
static bool read_all(struct running *r, struct xf_buf *out)
{
    while (!is_over(r)) {
        struct pollfd p = {.fd = r->fd, .events = POLLIN};
        bool was_ended = r->has_ended;

        if (poll(&p, 1, was_ended ? 0 : TURN_MS) > 0 && r->fd >= 0) {
            if (!read_some(r, out)) {
                return false;
            }
        } else if (was_ended) {
            return true; /* and nothing of it is left to read */
        }
        if (!r->has_ended) {
            look_for_end(r, WNOHANG);
        }
    }
    return false;
}

static int spawn(char **argv, int out_fd, pid_t *pid)
{
    posix_spawn_file_actions_t fa;
    posix_spawnattr_t attr;
    sigset_t none;

    XF_ASSERT(posix_spawn_file_actions_init(&fa) == 0);
    XF_ASSERT(posix_spawnattr_init(&attr) == 0);
    XF_ASSERT(sigemptyset(&none) == 0);
    int rc = posix_spawn_file_actions_addopen(&fa, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    rc = rc == 0 ? posix_spawn_file_actions_adddup2(&fa, out_fd, STDOUT_FILENO) : rc;
    rc = rc == 0 ? posix_spawn_file_actions_addopen(&fa, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
                 : rc; /* it may tell secrets */
    rc = rc == 0 ? posix_spawnattr_setsigmask(&attr, &none) : rc;
    rc = rc == 0 ? posix_spawnattr_setpgroup(&attr, 0) : rc; /* ended with all that it starts */
    rc = rc == 0 ? posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP)
                 : rc;
    rc = rc == 0 ? posix_spawnp(pid, argv[0], &fa, &attr, argv, environ) : rc;
    XF_ASSERT(posix_spawn_file_actions_destroy(&fa) == 0);
    XF_ASSERT(posix_spawnattr_destroy(&attr) == 0);
    return rc;
}

static enum xf_code
run_process(char **argv, xf_creds_stop stop, struct xf_buf *text, struct xf_err *err)
{
    struct running r = {.until_ms = xf_clock_mono_ms(xf_clock_real()) + PROCESS_MS, .stop = stop};
    int fds[2];

    XF_ASSERT(argv[0] != NULL); /* split() gives a word or an error */
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return XF_FAIL_SUB(err, XF_E_CREDS, errno, "no pipe: %s", xf_errno_text(errno));
    }
    int rc = spawn(argv, fds[1], &r.pid);
    xf_auto_close(&fds[1]);
    r.fd = fds[0];
    if (rc != 0) {
        xf_auto_close(&r.fd);
        return XF_FAIL_SUB(
            err, XF_E_CREDS, rc, "'%s' cannot be started: %s", argv[0], xf_errno_text(rc));
    }
    bool is_whole = read_all(&r, text);
    xf_auto_close(&r.fd);
    (void)kill(-r.pid, SIGKILL); /* what it left behind, or itself; gone already is fine */
    if (!r.has_ended) {
        look_for_end(&r, 0); /* killed: at once */
    }
    if (!is_whole) {
        return XF_FAIL(err,
                       XF_E_CREDS,
                       "'%s' wrote more than %d bytes, or was not done in %d s",
                       argv[0],
                       REPLY_MAX,
                       PROCESS_MS / 1000);
    }
    if (!WIFEXITED(r.status) || WEXITSTATUS(r.status) != 0) {
        return XF_FAIL(err,
                       XF_E_CREDS,
                       "'%s' ended with %s %d: run it by hand to see why",
                       argv[0],
                       WIFEXITED(r.status) ? "exit status" : "signal",
                       WIFEXITED(r.status) ? WEXITSTATUS(r.status) : WTERMSIG(r.status));
    }
    return XF_OK;
}

enum xf_code xf_creds_fetch_process(struct xf_str command,
                                    const char *where,
                                    xf_creds_stop stop,
                                    struct xf_creds **out,
                                    struct xf_err *err)
{
    char *argv[ARGS_MAX] = {NULL};
    XF_AUTO_BUF words = {0};
    XF_AUTO_SECRET text = {.max = REPLY_MAX};
    enum xf_code rc = split(command, &words, argv, err);

    rc = rc == XF_OK ? run_process(argv, stop, &text, err) : rc;
    if (rc != XF_OK) {
        (void)XF_WRAP(err, "%s: credential_process", where);
    } else {
        rc = xf_creds_from_json(xf_buf_view(&text), "SessionToken", where, out, err);
    }
    return rc;
}
