/* daemon.c - see daemon.h. */
#include "common/rt/daemon.h"

#include "common/base/file.h"
#include "common/base/log.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

int xf_daemon_fail(const struct xf_opt_prog *prog, const struct xf_err *err, int status)
{
    (void)fprintf(stderr, "%s: %s\n", prog->name, err->msg); /* nowhere else to tell it */
    return status;
}

void xf_daemon_print(const struct xf_buf *text)
{
    (void)fwrite(text->ptr, 1, text->len, stdout);
    (void)fflush(stdout);
}

bool xf_daemon_answers(const struct xf_opt_prog *prog,
                       const struct xf_opt_parsed *parsed,
                       const struct xf_conf_table *conf,
                       bool help_config)
{
    XF_AUTO_BUF text = {0};

    if (parsed->is_help) {
        xf_opt_put_help(prog, NULL, &text);
    } else if (parsed->is_version) {
        xf_buf_putf(&text, "%s %s\n", prog->name, prog->version);
    } else if (help_config) {
        xf_conf_put_help(conf, &text);
    } else {
        return false;
    }
    xf_daemon_print(&text);
    return true;
}

enum xf_code
xf_daemon_set(struct xf_conf *conf, const char *name, const char *text, struct xf_err *err)
{
    return text != NULL ? xf_conf_set(conf, name, xf_str_c(text), err) : XF_OK;
}

static enum xf_code take_ready_fd(const char *text, int *out, struct xf_err *err)
{
    uint64_t fd = 0;

    *out = -1;
    if (text == NULL) {
        return XF_OK;
    }
    if (!xf_str_u64(xf_str_c(text), &fd) || fd < 3 || fd > 1000000) {
        return XF_FAIL(err, XF_E_INVAL, "--ready-fd '%s' is no descriptor from 3 on", text);
    }
    int mode = fcntl((int)fd, F_GETFL);
    if (mode < 0 || (mode & O_ACCMODE) == O_RDONLY) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "--ready-fd %s is not open for writing: whoever starts the program opens it "
                       "(3>file)",
                       text);
    }
    *out = (int)fd;
    return XF_OK;
}

enum xf_code xf_daemon_init(struct xf_daemon *d,
                            const struct xf_opt_prog *prog,
                            const char *ready_fd,
                            struct xf_err *err)
{
    sigset_t set;

    d->prog = prog;
    XF_TRY(take_ready_fd(ready_fd, &d->ready_fd, err));
    if (sigemptyset(&set) != 0 || sigaddset(&set, SIGTERM) != 0 || sigaddset(&set, SIGINT) != 0 ||
        pthread_sigmask(SIG_BLOCK, &set, NULL) != 0 || signal(SIGPIPE, SIG_IGN) == SIG_ERR) {
        return XF_FAIL(err, XF_E_IO, "cannot block signals");
    }
    return XF_OK;
}

void xf_daemon_ready(struct xf_daemon *d, struct xf_str line)
{
    struct xf_err err;
    XF_AUTO_BUF text = {0};

    (void)sd_notify(0, "READY=1"); /* without systemd there is nobody to tell */
    if (d->ready_fd < 0) {
        return;
    }
    xf_buf_put(&text, line);
    xf_buf_put_byte(&text, '\n');
    if (xf_file_write_all(d->ready_fd, xf_buf_view(&text), "--ready-fd", &err) != XF_OK) {
        XF_WARN("daemon.ready_not_told", xf_f_code(err.code), xf_f_err(&err));
    }
    if (close(d->ready_fd) != 0) {
        XF_WARN("daemon.ready_fd_not_closed", xf_f_i64("fd", d->ready_fd));
    }
    d->ready_fd = -1;
}

void xf_daemon_stopping(const struct xf_daemon *d, int signo)
{
    XF_INFO("daemon.signalled", xf_f_c("program", d->prog->name), xf_f_i64("signal", signo));
    (void)sd_notify(0, "STOPPING=1"); /* likewise */
}
