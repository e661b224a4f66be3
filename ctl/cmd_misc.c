/* cmd_misc.c - xferctl generate, version, completion, man: what needs no coordinator. */
#include "common/base/clock.h"
#include "common/job/spec.h"
#include "ctl/ctl.h"

int xf_cmd_generate(void *ctx, const struct xf_opt_parsed *p)
{
    XF_AUTO_BUF b = {0};

    (void)ctx; /* nothing is asked */
    (void)p;   /* no arguments */
    xf_buf_init(&b, 0);
    xf_job_spec_put_template(&b);
    xf_ctl_out(xf_buf_view(&b));
    return XF_EXIT_OK;
}

int xf_cmd_version(void *ctx, const struct xf_opt_parsed *p)
{
    const struct xf_ctl *c = ctx;
    XF_AUTO_BUF b = {0};

    (void)p; /* no arguments */
    xf_buf_init(&b, 0);
    if (c->o.json) {
        XF_AUTO(xf_json) j = xf_json_object();
        xf_json_set_c(j, "version", c->prog->version);
        xf_json_set_u64(j, "protocol", XF_PROTO_VERSION);
        xf_ctl_out_json(j);
        return XF_EXIT_OK;
    }
    xf_buf_putf(&b, "xferctl %s (protocol %d)\n", c->prog->version, (int)XF_PROTO_VERSION);
    xf_ctl_out(xf_buf_view(&b));
    return XF_EXIT_OK;
}

int xf_cmd_completion(void *ctx, const struct xf_opt_parsed *p)
{
    static const char *const shells[] = {
        [XF_OPT_BASH] = "bash", [XF_OPT_ZSH] = "zsh", [XF_OPT_FISH] = "fish"};
    const struct xf_ctl *c = ctx;
    struct xf_err err;
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    for (size_t i = 0; i < XF_ARRAY_LEN(shells); i++) {
        if (strcmp(shells[i], p->args[0]) == 0) {
            xf_opt_put_completion(c->prog, (enum xf_opt_shell)i, &b);
            xf_ctl_out(xf_buf_view(&b));
            return XF_EXIT_OK;
        }
    }
    (void)XF_FAIL(
        &err, XF_E_INVAL, "completion: '%s' is not known; use bash, zsh or fish", p->args[0]);
    return xf_ctl_fail(&err);
}

int xf_cmd_man(void *ctx, const struct xf_opt_parsed *p)
{
    const struct xf_ctl *c = ctx;
    XF_AUTO_BUF b = {0};
    char today[XF_TIME_TEXT_MAX];

    (void)p; /* no arguments */
    xf_buf_init(&b, 0);
    xf_time_rfc3339(xf_clock_wall_ms(xf_clock_real()), false, today);
    today[10] = '\0'; /* the date alone */
    xf_opt_put_man(c->prog, 1, today, &b);
    xf_ctl_out(xf_buf_view(&b));
    return XF_EXIT_OK;
}
