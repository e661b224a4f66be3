/*
 * proc.h - programs under test: start, wait until ready, kill by pid, collect the exit status.
 *
 * A child gets SIGKILL when the test dies, so nothing stays behind. Functions fail the running test
 * when the operating system refuses. One thread.
 *
 * Ready: a daemon with --ready-fd N writes one line when it serves, then closes N:
 *     ready [WORD ...]
 * A word is `name=value`, such as listen=tcp://127.0.0.1:40001, or a port alone, which has the name
 * "port" here. That is how tests learn the ports that the kernel chose.
 */
#ifndef XF_TESTS_LIB_PROC_H
#define XF_TESTS_LIB_PROC_H

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct xf_proc;

struct xf_proc_opts {
    const char *const *argv; /* NULL at the end; argv[0] is a path, see xf_proc_program */
    const char *const *env;  /* "NAME=value" added to ours, NULL at the end; or NULL */
    const char *out_path;    /* file that stdout is appended to; NULL: thrown away */
    const char *err_path;    /* likewise stderr; may be the same file */
    bool ready_fd;           /* append "--ready-fd 3" and listen on it */
};

/* Path of one of our programs ("xferctl") of this build; static storage, until the next call. */
const char *xf_proc_program(const char *name);

struct xf_proc *xf_proc_spawn(const struct xf_proc_opts *opts);

/* SIGKILL when it still runs, and reap. */
void xf_proc_free(struct xf_proc *p);
XF_AUTO_DEFINE(xf_proc, xf_proc_free)

/* Waits for the ready line; fails the test, with the end of err_path, at the deadline or an exit.
 */
void xf_proc_wait_ready(struct xf_proc *p, int64_t timeout_ms);

/* The same without failing: true when ready, false when it ended or the deadline came. */
bool xf_proc_try_ready(struct xf_proc *p, int64_t timeout_ms);

/* Value of a word of the ready line; fails the test when there is none. Valid until free. */
const char *xf_proc_ready_word(const struct xf_proc *p, const char *name);

pid_t xf_proc_pid(const struct xf_proc *p);
bool xf_proc_is_alive(struct xf_proc *p);

/* Sends a signal; nothing when it has ended. */
void xf_proc_signal(struct xf_proc *p, int sig);

/*
 * Waits for the end. Gives the exit status, or 128 + signal. At the deadline: kills it and fails
 * the test.
 */
int xf_proc_wait(struct xf_proc *p, int64_t timeout_ms);

/* Runs to the end, as above, with stdout and stderr appended to buffers (each may be NULL). */
int xf_proc_run(const char *const *argv,
                const char *const *env,
                int64_t timeout_ms,
                struct xf_buf *out,
                struct xf_buf *err);

#endif
