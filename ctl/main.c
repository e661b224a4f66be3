/* main.c - xferctl: the tables of its commands and options, and their dispatch. */
#include "common/base/log.h"
#include "common/base/process.h"
#include "ctl/ctl.h"

#include <signal.h>
#include <stdio.h>

#define OPT(name_, value_, field, help_)                                               \
    .name = (name_), .value = (value_), .offset = offsetof(struct xf_ctl_opts, field), \
    .help = (help_)

static const char *const formats[] = {"csv", "json", NULL};
static const char *const onlys[] = {"failed", NULL};
static const char *const classes[] = {
    "transient", "throttled", "changed", "permanent", "local", NULL};

static const struct xf_opt opts[] = {
    {OPT("coordinator", "URL", coordinator, "where the coordinator listens"),
     .def = "tcp://127.0.0.1:7600",
     .env = "XFER_COORDINATOR"},
    {OPT("token-file", "FILE", token_file, "file with the operator's token"), .hint = XF_OPT_FILE},
    {OPT("tls-ca", "FILE", tls_ca, "certificate authority of the coordinator"),
     .hint = XF_OPT_FILE},
    {OPT("tls-cert", "FILE", tls_cert, "this operator's certificate"), .hint = XF_OPT_FILE},
    {OPT("tls-key", "FILE", tls_key, "its private key"), .hint = XF_OPT_FILE},
    {OPT("json", NULL, json, "print JSON, for scripts")},
};

static const struct xf_opt submit_opts[] = {
    {OPT("dry-run", NULL, dry_run, "check the file and probe both sides, make no job")},
    {OPT("wait", NULL, wait, "stay until the job ends; the exit status is the job's")},
};
static const struct xf_opt run_opts[] = {
    {OPT("state", "DIR", state, "keep the queue here; default below $XDG_STATE_HOME/xfer/run"),
     .hint = XF_OPT_DIR},
};
static const struct xf_opt status_opts[] = {
    {OPT("watch",
         NULL,
         watch,
         "again each second, until Ctrl-C; a line each 10 s when stdout is no terminal")},
};
static const struct xf_opt retry_opts[] = {
    {OPT("class", "C", cls, "only failures of this class"), .choices = classes},
};
static const struct xf_opt report_opts[] = {
    {OPT("format",
         "F",
         format,
         "csv: the layout of S3 Batch Operations' reports; json: a line an object"),
     .def = "csv",
     .choices = formats},
    {OPT("only", "WHAT", only, "failed: only the objects that failed"), .choices = onlys},
};

static const struct xf_opt prune_opts[] = {
    {OPT("older-than", "AGE", older_than, "only jobs that ended that long ago: 12h, 30d; 0s: all")},
    {OPT("dry-run", NULL, dry_run, "tell which jobs these are, and forget none")},
};

#define OPTS(table) .opts = (table), .n_opts = XF_ARRAY_LEN(table)
#define JOB_ARG     .args = "JOB", .min_args = 1, .max_args = 1
#define LATER(name_)                                     \
    {                                                    \
        .name = (name_), .summary = "", .is_later = true \
    }

/* clang-format off */
static const struct xf_opt_cmd cmds[] = {
    {.name = "submit", .args = "FILE", .min_args = 1, .max_args = 1, .args_hint = XF_OPT_FILE,
     .summary = "send a job to the coordinator; prints its id",
     .text = "Checks FILE (a migrate.toml, see generate), probes both sides, and queues the job. The id is alone on "
             "the last line of stdout. With --wait the exit status is the job's; Ctrl-C then leaves the job running.",
     .examples = "xferctl submit migrate.toml\nxferctl submit migrate.toml --wait\nxferctl submit migrate.toml --dry-run",
     OPTS(submit_opts), .group = "Jobs", .run = xf_cmd_submit},
    {.name = "run", .args = "FILE", .min_args = 1, .max_args = 1, .args_hint = XF_OPT_FILE,
     .summary = "do a job here, with no coordinator or agent",
     .text = "The whole engine in this process, its queue in a file: a run that was killed goes on where it stopped when "
             "the same command is given again. No port is opened. Ctrl-C drains and exits 130.",
     .examples = "xferctl run migrate.toml\nxferctl run migrate.toml --state /var/tmp/migration",
     OPTS(run_opts), .group = "Jobs", .run = xf_cmd_run},
    {.name = "status", .args = "[JOB]", .max_args = 1, .summary = "how far a job is, or all jobs and agents",
     .text = "At any moment listed = copied + skipped + failed + vanished + archived + in flight + pending. Vanished: deleted at "
             "the source since it was listed. Archived: not readable without a restore.",
     .examples = "xferctl status\nxferctl status j-1a2b3c --json\nxferctl status --watch",
     OPTS(status_opts), .group = "Jobs", .run = xf_cmd_status},
    {.name = "list", .summary = "all jobs, a line each", .examples = "xferctl list\nxferctl list --json", .group = "Jobs", .run = xf_cmd_list},
    {.name = "show", JOB_ARG, .summary = "one job in detail: errors by kind, notices, times",
     .text = "Errors are grouped by kind, each with its number and some of its keys; report has them all.",
     .examples = "xferctl show j-1a2b3c", .group = "Jobs", .run = xf_cmd_show},
    {.name = "explain", JOB_ARG, .summary = "why the job is not faster: what it is bound by, with figures",
     .text = "Looks twice, some seconds apart. bound_by (--json) is one of paused, ended, reason, no_agent, no_fit_agent, throttled, "
             "silent_agent, limit_bandwidth, limit_request_rate, limit_in_flight, listing, last_large, tail, agents.",
     .examples = "xferctl explain j-1a2b3c\nxferctl explain j-1a2b3c --json", .group = "Jobs", .run = xf_cmd_explain},
    {.name = "pause", JOB_ARG, .summary = "no new S3 request for the job from now on",
     .text = "Takes effect within 2 seconds and loses nothing; resume goes on from there.", .examples = "xferctl pause j-1a2b3c",
     .group = "Jobs", .run = xf_cmd_control},
    {.name = "resume", JOB_ARG, .summary = "go on with a paused job", .examples = "xferctl resume j-1a2b3c", .group = "Jobs", .run = xf_cmd_control},
    {.name = "cancel", JOB_ARG, .summary = "end the job; its open multipart uploads are aborted",
     .text = "What was copied stays at the destination. It is final: to go on, submit the file again, which skips what is there.",
     .examples = "xferctl cancel j-1a2b3c", .group = "Jobs", .run = xf_cmd_control},
    {.name = "retry", JOB_ARG, .summary = "try the failed objects again, and only those",
     .examples = "xferctl retry j-1a2b3c\nxferctl retry j-1a2b3c --class throttled",
     OPTS(retry_opts), .group = "Jobs", .run = xf_cmd_control},
    {.name = "report", JOB_ARG, .summary = "every object's outcome, as CSV or JSON lines",
     .examples = "xferctl report j-1a2b3c --only failed > failed.csv\nxferctl report j-1a2b3c --format json",
     OPTS(report_opts), .group = "Jobs", .run = xf_cmd_report},
    {.name = "prune", .args = "[JOB]", .max_args = 1, .summary = "forget ended jobs: their reports, errors and rows",
     .text = "A job that has not ended is refused. The ids are printed, and nobody finds the jobs from then on; their rows go in small "
             "steps beside other work, and the room in the store is used again. What was copied stays.",
     .examples = "xferctl prune j-1a2b3c\nxferctl prune --older-than 30d --dry-run\nxferctl prune --older-than 30d",
     OPTS(prune_opts), .group = "Jobs", .run = xf_cmd_prune},
    {.name = "tune", .args = "[JOB] [KEY=VALUE ...]", .max_args = 8, .summary = "change limits while work goes on, or show them",
     .text = "Keys: bandwidth (\"2Gbit/s\"), request_rate (\"500/s\"), both of all agents together, and in_flight (requests at a time on "
             "each agent). Values may go by the time of day at the coordinator's host: \"08:00,2Gbit/s 20:00,off\". off: no limit; default: "
             "as the job's file says. Without JOB the limit is the fleet's, which the jobs that have work share evenly. Kept over restarts.",
     .examples = "xferctl tune j-1a2b3c bandwidth=2Gbit/s\nxferctl tune 'bandwidth=08:00,1Gbit/s 20:00,off'\nxferctl tune j-1a2b3c",
     .group = "Jobs", .run = xf_cmd_tune},
    {.name = "agents", .args = "[drain|undrain ID]", .max_args = 2, .summary = "the agents; drain one before it is stopped",
     .text = "States: up, draining (finishes what it has and gets nothing new), unfit (the line below says why), lost (silent; its "
             "work goes to others).",
     .examples = "xferctl agents\nxferctl agents drain copy-7", .group = "Fleet", .run = xf_cmd_agents},
    {.name = "generate", .summary = "print a commented migrate.toml to fill in", .examples = "xferctl generate > migrate.toml", .group = "Here", .run = xf_cmd_generate},
    {.name = "completion", .args = "bash|zsh|fish", .min_args = 1, .max_args = 1, .summary = "print shell completion",
     .examples = "xferctl completion bash > /etc/bash_completion.d/xferctl", .group = "Here", .run = xf_cmd_completion},
    {.name = "man", .summary = "print the manual page", .examples = "xferctl man | man -l -", .group = "Here", .run = xf_cmd_man},
    {.name = "version", .summary = "print the version", .group = "Here", .run = xf_cmd_version},
    LATER("verify"), LATER("estimate"), LATER("cp"), LATER("sync"), LATER("mv"), LATER("ls"),
    LATER("du"), LATER("cat"), LATER("batch"), LATER("cutover"), LATER("pki"), LATER("doctor"), LATER("backup"),
    LATER("logs"), LATER("bench"), LATER("load"),
};

/* clang-format on */

static const struct xf_opt_prog prog = {
    .name = "xferctl",
    .summary = "move S3 buckets: submit jobs and watch them",
    .text = "Talks to an xfer-coordinator, which shares the work among xfer-agents. `xferctl run` "
            "needs neither. Logs go to stderr: XFER_LOG=debug|info|warn|error (default warn), "
            "XFER_LOG_FORMAT=logfmt|json.",
    .examples =
        "xferctl generate > migrate.toml\nxferctl submit migrate.toml\nxferctl status --watch",
    .exit_codes = "0    completed\n"
                  "1    error, or the job was cancelled or failed\n"
                  "2    wrong usage or configuration, or refused before the start\n"
                  "3    completed with failures: failed or archived objects\n"
                  "4    verification found a difference\n"
                  "5    coordinator or endpoint cannot be reached; a later try may help\n"
                  "8    a limit stopped it\n"
                  "130  interrupted",
    .version = XF_VERSION,
    OPTS(opts),
    .cmds = cmds,
    .n_cmds = XF_ARRAY_LEN(cmds),
};

static int usage_error(const struct xf_err *err)
{
    (void)fprintf(stderr, "xferctl: %s\n", err->msg); /* nowhere else to complain */
    return XF_EXIT_USAGE;
}

int main(int argc, char **argv)
{
    struct xf_ctl c = {.prog = &prog};
    struct xf_opt_parsed parsed;
    struct xf_err err;
    XF_AUTO_BUF text = {0};

    (void)signal(SIGPIPE, SIG_IGN); /* writes report EPIPE instead */
    xf_buf_init(&text, 0);
    xf_process_hold_std();
    xf_process_no_core();
    xf_log_set_level(XF_LOG_WARN); /* `run` shows its progress by itself */
    if (xf_log_init_env(&err) != XF_OK ||
        xf_opt_parse(&prog, argc, argv, &c.o, &parsed, &err) != XF_OK) {
        return usage_error(&err);
    }
    if (parsed.is_help) {
        xf_opt_put_help(&prog, parsed.cmd, &text);
        xf_ctl_out(xf_buf_view(&text));
        return XF_EXIT_OK;
    }
    c.parsed = &parsed;
    if (parsed.is_version) {
        return xf_cmd_version(&c, &parsed);
    }
    if (parsed.cmd == NULL) {
        (void)XF_FAIL(&err, XF_E_INVAL, "a command is missing; see 'xferctl --help'");
        return usage_error(&err);
    }
    int rc = parsed.cmd->run(&c, &parsed);
    xf_ctl_close(&c);
    return rc;
}
