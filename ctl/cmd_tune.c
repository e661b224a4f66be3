/* cmd_tune.c - xferctl tune [JOB] [KEY=VALUE ...]: limits that change while work goes on. */
#include "ctl/ctl.h"

static void put_limit(struct xf_buf *b, const struct xf_json *reply, const char *key)
{
    const char *text = xf_json_get_c(xf_json_get(reply, "tuned"), key, NULL);

    xf_buf_putf(b, "  %-14s", key);
    if (text != NULL) {
        xf_buf_put_escaped(b, xf_str_c(text));
    } else {
        xf_buf_put_c(b, xf_json_is_null(reply, "id") ? "no limit" : "as in its file");
    }
    xf_buf_put_byte(b, '\n');
}

static void put_now(struct xf_buf *b, const struct xf_json *reply)
{
    const struct xf_json *now = xf_json_get(reply, "now");
    uint64_t bytes = xf_json_get_u64(now, "bandwidth_bytes_s", 0);
    uint64_t requests = xf_json_get_u64(now, "requests_s", 0);
    uint64_t in_flight = xf_json_get_u64(now, "in_flight", 0);

    if (bytes + requests + in_flight == 0) {
        xf_buf_put_c(b, "  now           no limit\n");
        return;
    }
    xf_buf_put_c(b, "  now          ");
    if (bytes > 0) {
        xf_buf_putf(b, " %ju bytes/s", (uintmax_t)bytes);
    }
    if (requests > 0) {
        xf_buf_putf(b, " %ju requests/s", (uintmax_t)requests);
    }
    if (in_flight > 0) {
        xf_buf_putf(b, " %ju requests at a time on each agent", (uintmax_t)in_flight);
    }
    xf_buf_put_byte(b, '\n');
}

static void show(const struct xf_ctl *c, const struct xf_json *reply)
{
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    if (c->o.json) {
        xf_ctl_out_json(reply);
        return;
    }
    xf_buf_put_c(&b, xf_json_get_c(reply, "id", "the fleet"));
    xf_buf_put_byte(&b, '\n');
    put_limit(&b, reply, "bandwidth");
    put_limit(&b, reply, "request_rate");
    put_limit(&b, reply, "in_flight");
    if (!xf_json_is_null(reply, "id")) {
        put_now(&b, reply);
    }
    xf_ctl_out(xf_buf_view(&b));
}

/* One setting, or none; *out: what holds then. */
static enum xf_code tune(struct xf_ctl *c,
                         struct xf_str job,
                         struct xf_str setting,
                         struct xf_json **out,
                         struct xf_err *err)
{
    size_t at = xf_str_find(setting, '=', 0);
    struct xf_msg_tune m = {.job = job};
    struct xf_msg_json reply;

    if (setting.len > 0) {
        m.key = xf_str_sub(setting, 0, at);
        m.value = xf_str_sub(setting, at + 1, setting.len);
    }
    XF_TRY(xf_ctl_call(c, XF_KIND_TUNE, &m, XF_CLIENT_DEADLINE_MS, &reply, err));
    xf_json_free(*out);
    *out = NULL;
    return xf_json_parse(reply.json, out, err);
}

static bool is_setting(const char *arg)
{
    return strchr(arg, '=') != NULL;
}

/* Every word but the first must be KEY=VALUE, the first may be: nothing is set when one is wrong.
 */
static enum xf_code check(const struct xf_opt_parsed *p, struct xf_err *err)
{
    for (size_t i = 0; i < p->n_args; i++) {
        const char *eq = strchr(p->args[i], '=');
        if (eq == NULL && i == 0) {
            continue;
        }
        if (eq == NULL || eq == p->args[i] || eq[1] == '\0') {
            return XF_FAIL(err,
                           XF_E_INVAL,
                           "'%s' is not KEY=VALUE, such as bandwidth=2Gbit/s (\"off\": no limit, "
                           "\"default\": as the job's file says)",
                           p->args[i]);
        }
    }
    return XF_OK;
}

int xf_cmd_tune(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    XF_AUTO(xf_json) reply = NULL;
    size_t first = p->n_args > 0 && !is_setting(p->args[0]) ? 1 : 0;
    struct xf_str job = first > 0 ? xf_str_c(p->args[0]) : XF_STR_EMPTY;

    enum xf_code rc = check(p, &err);
    if (rc == XF_OK && first == p->n_args) {
        rc = tune(c, job, XF_STR_EMPTY, &reply, &err);
    }
    for (size_t i = first; rc == XF_OK && i < p->n_args; i++) {
        rc = tune(c, job, xf_str_c(p->args[i]), &reply, &err);
    }
    if (rc != XF_OK) {
        return xf_ctl_fail(&err);
    }
    show(c, reply);
    return XF_EXIT_OK;
}
