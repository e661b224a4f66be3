/* cmd_submit.c - xferctl submit FILE: send a job, and wait for its end when asked. */
#include "common/base/rng.h"
#include "common/job/spec.h"
#include "ctl/ctl.h"

#include <stdio.h>

enum { KEY_LEN = 24 };

static enum xf_code
send(struct xf_ctl *c, struct xf_str toml, struct xf_msg_submit_reply *reply, struct xf_err *err)
{
    struct xf_rng rng;
    char key[KEY_LEN + 1];

    xf_rng_init_os(&rng);
    xf_rng_id(&rng, key, KEY_LEN);
    /* A quick question first: nobody waits for the probes of a coordinator that is not there. */
    struct xf_msg_query q = {0};
    struct xf_msg_json version;
    XF_TRY(xf_ctl_call(c, XF_KIND_VERSION, &q, XF_CLIENT_DEADLINE_MS, &version, err));
    struct xf_msg_submit m = {.key = xf_str_n(key, KEY_LEN), .toml = toml, .dry_run = c->o.dry_run};
    return xf_ctl_call(c, XF_KIND_SUBMIT, &m, XF_CLIENT_SUBMIT_DEADLINE_MS, reply, err);
}

static void show_plan(const struct xf_job_spec *spec)
{
    XF_AUTO_BUF notes = {0};

    xf_buf_init(&notes, 0);
    xf_job_spec_put_notes(spec, &notes);
    (void)fprintf(
        stderr, "%.*s", XF_STR_ARG(xf_buf_view(&notes))); /* for people; stdout is for the id */
}

static int
print_submitted(struct xf_ctl *c, const struct xf_msg_submit_reply *reply, const char *job)
{
    struct xf_err err;

    if (c->o.json) {
        XF_AUTO(xf_json) j = NULL;
        if (reply->json.len == 0 || xf_json_parse(reply->json, &j, &err) != XF_OK) {
            j = xf_json_object();
        }
        xf_json_set_c(j, "id", job[0] != '\0' ? job : NULL);
        xf_ctl_out_json(j);
    } else if (c->o.dry_run) {
        xf_ctl_out(XF_STR_LIT("the job can start: nothing was made (--dry-run)\n"));
    } else {
        xf_ctl_out(xf_str_c(job));
        xf_ctl_out(XF_STR_LIT("\n"));
    }
    return XF_EXIT_OK;
}

int xf_cmd_submit(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    XF_AUTO_BUF text = {0};
    XF_AUTO(xf_job_spec) spec = NULL;
    struct xf_msg_submit_reply reply;

    xf_buf_init(&text, 0);
    if (xf_ctl_read_spec(p->args[0], &text, &spec, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (!c->o.json) {
        show_plan(spec);
    }
    if (send(c, xf_buf_view(&text), &reply, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    XF_AUTO_FREE char *job = xf_str_dup(reply.job);
    int rc = print_submitted(c, &reply, job);
    if (!c->o.wait || c->o.dry_run) {
        return rc;
    }
    rc = xf_ctl_follow(c, job, NULL, NULL, NULL);
    if (rc != XF_EXIT_INTERRUPTED) {
        xf_ctl_reports_of(c, job, spec);
    }
    return rc;
}
