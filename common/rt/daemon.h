/*
 * daemon.h - what the main() of every daemon does alike: refusals, readiness, signals.
 *
 * Readiness is told twice, to systemd (sd_notify) and as a line on --ready-fd, for scripts that
 * start the daemon. Threads: the main thread's, before others are started or from its loop.
 */
#ifndef XF_RT_DAEMON_H
#define XF_RT_DAEMON_H

#include "common/base/conf.h"
#include "common/base/opt.h"

/* Anything wrong before ready; the message tells the place and the remedy. */
enum { XF_DAEMON_REFUSED = 2 };

struct xf_daemon {
    const struct xf_opt_prog *prog;
    int ready_fd; /* -1: nobody waits */
};

/** Say on stderr what is wrong; returns `status`, for main() to return. */
int xf_daemon_fail(const struct xf_opt_prog *prog, const struct xf_err *err, int status);
/** Print on stdout; a closed pipe ends the program anyway. */
void xf_daemon_print(const struct xf_buf *text);

/**
 * What no daemon is started for: --help, --version, --help-config. True when it was one of them,
 * and printed.
 */
bool xf_daemon_answers(const struct xf_opt_prog *prog,
                       const struct xf_opt_parsed *parsed,
                       const struct xf_conf_table *conf,
                       bool help_config);

/** Set a config value from the command line; text NULL: not given. Errors: as xf_conf_set(). */
XF_MUST_CHECK enum xf_code
xf_daemon_set(struct xf_conf *conf, const char *name, const char *text, struct xf_err *err);

/**
 * Before any thread is started, nng's included: take the descriptor of --ready-fd (NULL: none), and
 * block the signals that the loop takes (SIGTERM, SIGINT; SIGPIPE is ignored).
 *
 * ready_fd  a number from 3 to 1,000,000, open for writing; d owns it from here on.
 * Errors: XF_E_INVAL the descriptor; XF_E_IO the signals.
 */
XF_MUST_CHECK enum xf_code xf_daemon_init(struct xf_daemon *d,
                                          const struct xf_opt_prog *prog,
                                          const char *ready_fd,
                                          struct xf_err *err);
/** Tell systemd and whoever waits, who gets `line` (without its end); once: closes ready_fd. */
void xf_daemon_ready(struct xf_daemon *d, struct xf_str line);
/** A signal asked for the end. */
void xf_daemon_stopping(const struct xf_daemon *d, int signo);

#endif
