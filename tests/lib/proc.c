/*
 * proc.c - fork and exec; between them the child makes async-signal-safe calls only, since the test
 * may have threads.
 */
#include "tests/lib/proc.h"

#include "common/base/clock.h"
#include "common/base/err.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/wait.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CHILD_READY_FD = 3, READY_LINE_MAX = 4096, TAIL_BYTES = 4000, EXIT_NO_EXEC = 127 };

struct xf_proc {
    pid_t pid;
    bool ended;
    int status; /* exit status or 128 + signal, once ended */
    int ready_fd;
    struct xf_buf ready; /* what came through ready_fd */
    char *word;          /* xf_proc_ready_word's last answer */
    char *err_path;
    char *name;
};

/* What the child needs, made before the fork. */
struct launch {
    const char **argv;
    const char **env;
    int out_fd;
    int err_fd;
    int ready_fd; /* -1: none */
    pid_t parent;
};

const char *xf_proc_program(const char *name)
{
    static char path[PATH_MAX];
    const char *dir = getenv("XF_BIN_DIR");
    if (dir == NULL) {
        fail_msg("XF_BIN_DIR is not set: run the test through ctest");
    }
    int n = snprintf(path, sizeof(path), "%s/%s", dir, name);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    return path;
}

static size_t count(const char *const *list)
{
    size_t n = 0;
    while (list != NULL && list[n] != NULL) {
        n++;
    }
    return n;
}

static bool is_same_variable(const char *a, const char *b)
{
    size_t len = strcspn(a, "=");
    return strncmp(a, b, len + 1) == 0;
}

/* Our environment, with the additions in place of variables of the same name. */
static const char **merge_env(const char *const *added)
{
    size_t n_own = count((const char *const *)environ);
    size_t n_added = count(added);
    const char **env = xf_xcalloc(n_own + n_added + 1, sizeof(*env));
    size_t n = 0;
    for (size_t i = 0; i < n_own; i++) {
        bool replaced = false;
        for (size_t k = 0; k < n_added; k++) {
            replaced = replaced || is_same_variable(added[k], environ[i]);
        }
        if (!replaced) {
            env[n++] = environ[i];
        }
    }
    for (size_t k = 0; k < n_added; k++) {
        env[n++] = added[k];
    }
    return env;
}

static const char **make_argv(const struct xf_proc_opts *o)
{
    size_t n = count(o->argv);
    assert_true(n > 0);
    const char **argv = xf_xcalloc(n + 3, sizeof(*argv));
    for (size_t i = 0; i < n; i++) {
        argv[i] = o->argv[i];
    }
    if (o->ready_fd) {
        argv[n] = "--ready-fd";
        argv[n + 1] = "3";
    }
    return argv;
}

static int open_output(const char *path)
{
    int fd = path == NULL ? open("/dev/null", O_WRONLY | O_CLOEXEC)
                          : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (fd < 0) {
        fail_msg("cannot open '%s': %s", path != NULL ? path : "/dev/null", xf_errno_text(errno));
    }
    return fd;
}

__attribute__((noreturn)) static void child(const struct launch *l)
{
    sigset_t none;
    bool good = sigemptyset(&none) == 0 && sigprocmask(SIG_SETMASK, &none, NULL) == 0 &&
                prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && getppid() == l->parent;
    int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    good = good && null_fd >= 0 && dup2(null_fd, STDIN_FILENO) >= 0;
    good = good && dup2(l->out_fd, STDOUT_FILENO) >= 0 && dup2(l->err_fd, STDERR_FILENO) >= 0;
    if (good && l->ready_fd == CHILD_READY_FD) {
        good = fcntl(CHILD_READY_FD, F_SETFD, 0) == 0;
    } else if (good && l->ready_fd >= 0) {
        good = dup2(l->ready_fd, CHILD_READY_FD) >= 0;
    }
    if (good) {
        (void)execve(
            l->argv[0], (char *const *)(uintptr_t)l->argv, (char *const *)(uintptr_t)l->env);
    }
    _exit(EXIT_NO_EXEC);
}

static struct xf_proc *launch(const struct xf_proc_opts *o, int out_fd, int err_fd)
{
    struct launch l = {.argv = make_argv(o),
                       .env = merge_env(o->env),
                       .out_fd = out_fd,
                       .err_fd = err_fd,
                       .ready_fd = -1,
                       .parent = getpid()};
    struct xf_proc *p = xf_xcalloc(1, sizeof(*p));
    p->ready_fd = -1;
    p->name = xf_xstrdup(o->argv[0]);
    p->err_path = o->err_path != NULL ? xf_xstrdup(o->err_path) : NULL;
    xf_buf_init(&p->ready, READY_LINE_MAX);
    int fds[2] = {-1, -1};
    if (o->ready_fd) {
        if (pipe2(fds, O_CLOEXEC) != 0 || fcntl(fds[0], F_SETFL, O_NONBLOCK) != 0) {
            fail_msg("cannot make a pipe: %s", xf_errno_text(errno));
        }
        p->ready_fd = fds[0];
        l.ready_fd = fds[1];
    }
    p->pid = fork();
    if (p->pid < 0) {
        fail_msg("cannot fork: %s", xf_errno_text(errno));
    }
    if (p->pid == 0) {
        child(&l);
    }
    xf_auto_close(&fds[1]);
    xf_xfree(l.argv);
    xf_xfree(l.env);
    return p;
}

struct xf_proc *xf_proc_spawn(const struct xf_proc_opts *opts)
{
    XF_AUTO_FD int out_fd = open_output(opts->out_path);
    XF_AUTO_FD int err_fd = open_output(opts->err_path);
    return launch(opts, out_fd, err_fd);
}

/* Collects the exit status if it is there. */
static bool reap(struct xf_proc *p)
{
    if (p->ended) {
        return true;
    }
    int st = 0;
    pid_t got = waitpid(p->pid, &st, WNOHANG);
    if (got < 0 && errno != EINTR) {
        fail_msg("cannot wait for '%s': %s", p->name, xf_errno_text(errno));
    }
    if (got == p->pid) {
        p->ended = true;
        p->status = WIFEXITED(st) ? WEXITSTATUS(st) : 128 + WTERMSIG(st);
    }
    return p->ended;
}

static bool has_ended(void *arg)
{
    return reap(arg);
}

void xf_proc_free(struct xf_proc *p)
{
    if (p == NULL) {
        return;
    }
    if (!reap(p)) {
        (void)kill(p->pid, SIGKILL); /* our child, not reaped: the pid is still its own */
        (void)waitpid(p->pid, NULL, 0);
    }
    xf_auto_close(&p->ready_fd);
    xf_buf_fini(&p->ready);
    xf_xfree(p->word);
    xf_xfree(p->err_path);
    xf_xfree(p->name);
    xf_xfree(p);
}

static bool has_ready_line(const struct xf_proc *p)
{
    struct xf_str s = xf_buf_view(&p->ready);
    return xf_str_starts(s, XF_STR_LIT("ready")) && xf_str_find(s, '\n', 0) != SIZE_MAX;
}

bool xf_proc_try_ready(struct xf_proc *p, int64_t timeout_ms)
{
    int64_t deadline_ms = xf_clock_mono_ms(xf_clock_real()) + timeout_ms;
    while (!has_ready_line(p)) {
        int64_t left_ms = deadline_ms - xf_clock_mono_ms(xf_clock_real());
        struct pollfd pfd = {.fd = p->ready_fd, .events = POLLIN};
        if (left_ms <= 0 || poll(&pfd, 1, (int)(left_ms < 60000 ? left_ms : 60000)) < 0) {
            return false;
        }
        char chunk[512];
        ssize_t n = read(p->ready_fd, chunk, sizeof(chunk));
        if (n == 0) {
            return false; /* closed without the line: it ended */
        }
        if (n > 0) {
            xf_buf_put_mem(&p->ready, chunk, (size_t)n);
        }
    }
    return true;
}

/* The end of the program's own log, for the message of a failed test. */
static void print_tail(const struct xf_proc *p)
{
    XF_AUTO_BUF log = {0};
    xf_buf_init(&log, 0);
    if (p->err_path != NULL && xf_tmpdir_read(p->err_path, &log)) {
        struct xf_str all = xf_buf_view(&log);
        struct xf_str tail =
            xf_str_sub(all, all.len > TAIL_BYTES ? all.len - TAIL_BYTES : 0, all.len);
        fprintf(stderr, "---- end of %s\n%.*s\n----\n", p->err_path, XF_STR_ARG(tail));
    }
}

void xf_proc_wait_ready(struct xf_proc *p, int64_t timeout_ms)
{
    if (!xf_proc_try_ready(p, timeout_ms)) {
        print_tail(p);
        fail_msg("'%s' is not ready within %lld ms", p->name, (long long)timeout_ms);
    }
}

const char *xf_proc_ready_word(const struct xf_proc *p, const char *name)
{
    struct xf_str rest = xf_str_trim(xf_buf_view(&p->ready));
    struct xf_str word;
    while (xf_str_cut(&rest, ' ', &word)) {
        struct xf_str value = word;
        struct xf_str key;
        uint64_t port = 0;
        bool hit = false;
        if (xf_str_u64(word, &port)) {
            hit = strcmp(name, "port") == 0;
        } else if (xf_str_cut(&value, '=', &key)) {
            hit = key.len < word.len && xf_str_eq_c(key, name);
        }
        if (hit) {
            struct xf_proc *own = (struct xf_proc *)(uintptr_t)p; /* a cache of the answer only */
            xf_xfree(own->word);
            own->word = xf_str_dup(value);
            return own->word;
        }
    }
    fail_msg("'%s' told no '%s' in: %.*s", p->name, name, XF_STR_ARG(xf_buf_view(&p->ready)));
    return "";
}

pid_t xf_proc_pid(const struct xf_proc *p)
{
    return p->pid;
}

bool xf_proc_is_alive(struct xf_proc *p)
{
    return !reap(p);
}

void xf_proc_signal(struct xf_proc *p, int sig)
{
    if (!reap(p) && kill(p->pid, sig) != 0 && errno != ESRCH) {
        fail_msg("cannot signal '%s': %s", p->name, xf_errno_text(errno));
    }
}

int xf_proc_wait(struct xf_proc *p, int64_t timeout_ms)
{
    if (!xf_wait_for(has_ended, p, timeout_ms)) {
        (void)kill(p->pid, SIGKILL); /* still our child */
        (void)xf_wait_for(has_ended, p, timeout_ms);
        print_tail(p);
        fail_msg("'%s' did not end within %lld ms", p->name, (long long)timeout_ms);
    }
    return p->status;
}

static void read_back(int fd, struct xf_buf *out)
{
    if (out == NULL) {
        return;
    }
    char chunk[8192];
    off_t at = 0;
    ssize_t n = 0;
    while ((n = pread(fd, chunk, sizeof(chunk), at)) > 0) {
        xf_buf_put_mem(out, chunk, (size_t)n);
        at += n;
    }
    assert_true(n == 0);
}

int xf_proc_run(const char *const *argv,
                const char *const *env,
                int64_t timeout_ms,
                struct xf_buf *out,
                struct xf_buf *err)
{
    XF_AUTO_FD int out_fd = memfd_create("stdout", MFD_CLOEXEC);
    XF_AUTO_FD int err_fd = memfd_create("stderr", MFD_CLOEXEC);
    assert_true(out_fd >= 0 && err_fd >= 0);
    struct xf_proc_opts opts = {.argv = argv, .env = env};
    XF_AUTO(xf_proc) p = launch(&opts, out_fd, err_fd);
    int status = xf_proc_wait(p, timeout_ms);
    read_back(out_fd, out);
    read_back(err_fd, err);
    return status;
}
