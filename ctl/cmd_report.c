/* cmd_report.c - xferctl report JOB: every object's outcome, in pages, to stdout. */
#include "ctl/ctl.h"

int xf_cmd_report(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    XF_AUTO_BUF cursor = {0};
    bool json = c->o.json || strcmp(c->o.format, "json") == 0;
    bool failed = c->o.only != NULL;

    xf_buf_init(&cursor, 0);
    for (;;) {
        struct xf_msg_report q = {.job = xf_str_c(p->args[0]),
                                  .format = json ? XF_REPORT_JSON : XF_REPORT_CSV,
                                  .only = failed ? XF_REPORT_FAILED : XF_REPORT_ALL,
                                  .cursor = xf_buf_view(&cursor)};
        struct xf_msg_report_reply r;
        if (xf_ctl_call(c, XF_KIND_REPORT, &q, XF_CLIENT_DEADLINE_MS, &r, &err) != XF_OK) {
            return xf_ctl_fail(&err);
        }
        xf_ctl_out(r.chunk);
        if (r.end) {
            return XF_EXIT_OK;
        }
        xf_buf_reset(&cursor);
        xf_buf_put(&cursor, r.cursor);
    }
}
