/* cmd_prune.c - xferctl prune [JOB] [--older-than AGE] [--dry-run]: forget ended jobs. */
#include "common/base/conf.h"
#include "ctl/ctl.h"

#include <stdio.h>

static enum xf_code read_args(const struct xf_ctl *c, struct xf_msg_prune *m, struct xf_err *err)
{
    const char *job = xf_ctl_arg(c, 0);

    m->job = xf_str_c(job);
    m->dry_run = c->o.dry_run;
    if (job == NULL && c->o.older_than == NULL) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "prune: name a job, or --older-than AGE (\"30d\"; \"0s\": every job that "
                       "has ended)");
    }
    if (c->o.older_than != NULL &&
        !xf_conf_parse_duration(xf_str_c(c->o.older_than), &m->older_than_ms)) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "--older-than: '%s' is not a duration such as 12h or 30d",
                       c->o.older_than);
    }
    return XF_OK;
}

/* The ids, a line each, so that they can go on in a pipe; what it means on stderr. */
static void put_jobs(const struct xf_json *reply)
{
    const struct xf_json *jobs = xf_json_get(reply, "jobs");
    size_t n = xf_json_len(jobs);
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    for (size_t i = 0; i < n; i++) {
        xf_buf_put_c(&b, xf_json_text(xf_json_at(jobs, i)));
        xf_buf_put_byte(&b, '\n');
    }
    xf_ctl_out(xf_buf_view(&b));
    (void)fprintf(stderr,
                  "xferctl: %zu job%s %s\n",
                  n,
                  n == 1 ? "" : "s",
                  xf_json_get_bool(reply, "dry_run", false) ? "would be forgotten"
                                                            : "forgotten"); /* for people */
}

int xf_cmd_prune(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    struct xf_msg_prune m = {.older_than_ms = 0};
    struct xf_msg_json reply;
    XF_AUTO(xf_json) j = NULL;

    (void)p; /* read_args has them */
    if (read_args(c, &m, &err) != XF_OK ||
        xf_ctl_call(c, XF_KIND_PRUNE, &m, XF_CLIENT_DEADLINE_MS, &reply, &err) != XF_OK ||
        xf_json_parse(reply.json, &j, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (c->o.json) {
        xf_ctl_out_json(j);
    } else {
        put_jobs(j);
    }
    return XF_EXIT_OK;
}
