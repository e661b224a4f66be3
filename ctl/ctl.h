/*
 * ctl.h - what the commands of xferctl share: options, the connection, and how results are shown.
 *
 * A command is one function in a cmd_*.c file and one row of the table in main.c. Data goes to
 * stdout, everything else to stderr. A command's result is its exit status.
 */
#ifndef XF_CTL_CTL_H
#define XF_CTL_CTL_H

#include "common/base/json.h"
#include "common/base/opt.h"
#include "ctl/client.h"

struct xf_job_spec;

/* Exit statuses; scripts rely on them. */
enum xf_exit {
    XF_EXIT_OK = 0,
    XF_EXIT_ERROR = 1,
    XF_EXIT_USAGE = 2,
    XF_EXIT_FAILURES = 3,
    XF_EXIT_DIFFERENCE = 4,
    XF_EXIT_UNREACHABLE = 5,
    XF_EXIT_LIMIT = 8,
    XF_EXIT_INTERRUPTED = 130
};

/* Every option of every command; the tables in main.c fill it. */
struct xf_ctl_opts {
    const char *coordinator;
    const char *token_file;
    const char *tls_ca;
    const char *tls_cert;
    const char *tls_key;
    bool json;
    bool dry_run;
    bool wait;
    bool watch;
    const char *state;
    const char *cls;
    const char *format;
    const char *only;
    const char *older_than;
};

struct xf_ctl {
    struct xf_ctl_opts o;
    const struct xf_opt_parsed *parsed;
    const struct xf_opt_prog *prog;
    struct xf_client *client; /* opened by the first call */
    struct xf_arena arena;    /* of the last reply */
};

/** The at-th argument of the command, NULL when there is none. */
const char *xf_ctl_arg(const struct xf_ctl *c, size_t at);
/** Print "xferctl: <message>" and give the exit status that belongs to the error. */
int xf_ctl_fail(const struct xf_err *err);

/** Connect (once) and send; the reply lives until the next call. */
XF_MUST_CHECK enum xf_code xf_ctl_call(struct xf_ctl *c,
                                       enum xf_kind kind,
                                       const void *request,
                                       int64_t deadline_ms,
                                       void *reply,
                                       struct xf_err *err);
/** A query by job id (NULL: none) whose reply is JSON text, parsed. */
XF_MUST_CHECK enum xf_code xf_ctl_query(
    struct xf_ctl *c, enum xf_kind kind, const char *job, struct xf_json **out, struct xf_err *err);
void xf_ctl_close(struct xf_ctl *c);
/** Operator's token from --token-file into `out` (NULL file: empty), without the line's end. */
XF_MUST_CHECK enum xf_code
xf_ctl_read_token(const char *file, struct xf_buf *out, struct xf_err *err);

/** Write the text to stdout; a closed pipe ends the program with status 1 and without a word. */
void xf_ctl_out(struct xf_str text);
/** One JSON value on stdout with a line's end. */
void xf_ctl_out_json(const struct xf_json *j);

/**
 * Follow a job until it ends, with progress on stderr: bars on a terminal, a dated line each 10 s
 * elsewhere. Ctrl-C gives 130 and leaves the job running (`detach`), or calls on_interrupt once.
 * *final, when not NULL, gets the last status (or NULL).
 */
int xf_ctl_follow(struct xf_ctl *c,
                  const char *job,
                  void (*on_interrupt)(void *arg),
                  void *arg,
                  struct xf_json **final);
/** Objects of a status that make an end `completed_with_failures`. */
uint64_t xf_ctl_n_failed(const struct xf_json *st);
/** The errors of a job, as `show` gave it, by kind, with examples; nothing when there are none. */
void xf_ctl_put_errors(struct xf_buf *b, const struct xf_json *job);
/** The job's objects, or those that failed, as CSV into the file `path`. */
XF_MUST_CHECK enum xf_code xf_ctl_write_report(struct xf_ctl *c,
                                               const char *job,
                                               const char *path,
                                               enum xf_report_only only,
                                               struct xf_err *err);
/** Write the job's reports below `dir`: JOB.csv, JOB-failed.csv, JOB.json. */
XF_MUST_CHECK enum xf_code
xf_ctl_write_reports(struct xf_ctl *c, const char *job, const char *dir, struct xf_err *err);

/** The same into the job's own [report] path, if it has one; a failure is told, not fatal. */
void xf_ctl_reports_of(struct xf_ctl *c, const char *job, const struct xf_job_spec *spec);
/** Read and check migrate.toml here, so that errors name the file as it was typed. */
XF_MUST_CHECK enum xf_code xf_ctl_read_spec(const char *path,
                                            struct xf_buf *text,
                                            struct xf_job_spec **spec,
                                            struct xf_err *err);

/* Commands. */
int xf_cmd_submit(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_run(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_status(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_list(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_show(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_explain(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_control(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_report(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_prune(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_tune(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_agents(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_generate(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_version(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_completion(void *ctx, const struct xf_opt_parsed *p);
int xf_cmd_man(void *ctx, const struct xf_opt_parsed *p);

#endif
