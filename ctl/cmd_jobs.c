/* cmd_jobs.c - xferctl list, show, pause, resume, cancel, retry, agents. */
#include "ctl/ctl.h"
#include "ctl/tui.h"

#include <stdio.h>
#include <unistd.h>

static void out_job_lines(const struct xf_json *jobs)
{
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    for (size_t i = 0; i < xf_json_len(jobs); i++) {
        const struct xf_json *job = xf_json_at(jobs, i);
        xf_tui_put_job_line(&b, job);
        xf_buf_put_c(&b, "  ");
        xf_buf_put_escaped(&b, xf_str_c(xf_json_get_c(job, "name", "")));
        xf_buf_put_byte(&b, '\n');
    }
    xf_ctl_out(xf_buf_view(&b));
}

/* A page of jobs after `*after`, which becomes where the next one begins; 0: there is none. */
static enum xf_code
read_list(struct xf_ctl *c, int64_t *after, struct xf_json **page, struct xf_err *err)
{
    const struct xf_msg_query q = {.after = *after};
    struct xf_msg_json reply;

    XF_TRY(xf_ctl_call(c, XF_KIND_LIST, &q, XF_CLIENT_DEADLINE_MS, &reply, err));
    XF_TRY(xf_json_parse(reply.json, page, err));
    *after = xf_json_get_i64(*page, "next", 0);
    return XF_OK;
}

int xf_cmd_list(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    XF_AUTO(xf_json) all = xf_json_object();
    struct xf_json *array = xf_json_array();
    int64_t after = 0;
    size_t n = 0;

    (void)p; /* no arguments */
    xf_json_put(all, "jobs", array);
    do {
        XF_AUTO(xf_json) page = NULL;
        if (read_list(c, &after, &page, &err) != XF_OK) {
            return xf_ctl_fail(&err);
        }
        const struct xf_json *jobs = xf_json_get(page, "jobs");
        n += xf_json_len(jobs);
        if (c->o.json) {
            xf_json_append_all(array, jobs);
        } else {
            out_job_lines(jobs);
        }
    } while (after > 0);
    if (c->o.json) {
        xf_ctl_out_json(all);
    } else if (n == 0) {
        xf_ctl_out(XF_STR_LIT("no jobs\n"));
    }
    return XF_EXIT_OK;
}

void xf_ctl_put_errors(struct xf_buf *b, const struct xf_json *job)
{
    const struct xf_json *errors = xf_json_get(job, "errors");
    const char *heading = xf_json_get_bool(job, "errors_complete", true)
                              ? "errors\n"
                              : "errors (the first; `xferctl report --only failed` has all)\n";

    for (size_t i = 0; i < xf_json_len(errors); i++) {
        const struct xf_json *e = xf_json_at(errors, i);
        xf_buf_put_c(b, i == 0 ? heading : "");
        xf_buf_putf(b,
                    "  %8llu  %s  ",
                    (unsigned long long)xf_json_get_u64(e, "count", 0),
                    xf_json_get_c(e, "code", "?"));
        xf_buf_put_escaped(b, xf_str_c(xf_json_get_c(e, "message", "")));
        xf_buf_put_byte(b, '\n');
        const struct xf_json *examples = xf_json_get(e, "examples");
        for (size_t k = 0; k < xf_json_len(examples); k++) {
            const struct xf_json *x = xf_json_at(examples, k);
            const char *key =
                xf_json_text(x) != NULL ? xf_json_text(x) : xf_json_get_c(x, "key", "?");
            xf_buf_put_c(b, "            ");
            xf_buf_put_escaped(b, xf_str_c(key));
            xf_buf_put_byte(b, '\n');
        }
    }
}

static void put_notices(struct xf_buf *b, const struct xf_json *notices)
{
    for (size_t i = 0; i < xf_json_len(notices); i++) {
        const struct xf_json *n = xf_json_at(notices, i);
        xf_buf_put_c(b, i == 0 ? "notices\n" : "");
        xf_buf_putf(b, "  %s  ", xf_json_get_c(n, "at", ""));
        xf_buf_put_escaped(b, xf_str_c(xf_json_get_c(n, "text", "")));
        xf_buf_put_byte(b, '\n');
    }
}

static void put_times(struct xf_buf *b, const struct xf_json *job)
{
    static const char *const names[] = {"created_at", "started_at", "finished_at"};

    for (size_t i = 0; i < XF_ARRAY_LEN(names); i++) {
        const char *t = xf_json_get_c(job, names[i], NULL);
        if (t != NULL) {
            xf_buf_putf(b, "%-12s %s\n", names[i], t);
        }
    }
}

int xf_cmd_show(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    struct xf_tui tui;
    XF_AUTO(xf_json) j = NULL;
    XF_AUTO_BUF b = {0};

    if (xf_ctl_query(c, XF_KIND_SHOW, p->args[0], &j, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (c->o.json) {
        xf_ctl_out_json(j);
        return XF_EXIT_OK;
    }
    xf_tui_init(&tui, STDOUT_FILENO);
    xf_buf_init(&b, 0);
    xf_tui_put_job(&b, j, &tui);
    put_times(&b, j);
    xf_ctl_put_errors(&b, j);
    put_notices(&b, xf_json_get(j, "notices"));
    xf_ctl_out(xf_buf_view(&b));
    return XF_EXIT_OK;
}

/* The reply of a verb: the job's status, or a text for people under "text". */
static int print_reply(struct xf_ctl *c, struct xf_str json)
{
    struct xf_err err;
    XF_AUTO(xf_json) j = NULL;

    if (xf_json_parse(json, &j, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (c->o.json) {
        xf_ctl_out_json(j);
    } else if (xf_json_get_c(j, "text", NULL) != NULL) {
        (void)fprintf(stderr, "xferctl: %s\n", xf_json_get_c(j, "text", "")); /* for people */
    }
    return XF_EXIT_OK;
}

int xf_cmd_control(void *ctx, const struct xf_opt_parsed *p)
{
    static const char *const verbs[] = {
        [XF_CONTROL_PAUSE] = "pause",
        [XF_CONTROL_RESUME] = "resume",
        [XF_CONTROL_CANCEL] = "cancel",
        [XF_CONTROL_RETRY] = "retry",
    };
    struct xf_ctl *c = ctx;
    struct xf_err err;
    struct xf_msg_json reply;
    struct xf_msg_control m = {.job = xf_str_c(p->args[0]), .cls = xf_str_c(c->o.cls)};

    while (strcmp(verbs[m.verb], p->cmd->name) != 0) {
        m.verb++;
        XF_ASSERT(m.verb < XF_CONTROL_N);
    }
    if (xf_ctl_call(c, XF_KIND_CONTROL, &m, XF_CLIENT_DEADLINE_MS, &reply, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    return print_reply(c, reply.json);
}

static int drain(struct xf_ctl *c, const char *verb, const char *agent)
{
    struct xf_err err;
    struct xf_msg_json reply;
    struct xf_msg_drain m = {.agent = xf_str_c(agent), .on = strcmp(verb, "drain") == 0};

    if (!m.on && strcmp(verb, "undrain") != 0) {
        (void)XF_FAIL(&err, XF_E_INVAL, "agents: '%s' is not known; use drain or undrain", verb);
        return xf_ctl_fail(&err);
    }
    if (xf_ctl_call(c, XF_KIND_DRAIN, &m, XF_CLIENT_DEADLINE_MS, &reply, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (!c->o.json) {
        (void)fprintf(stderr,
                      "xferctl: %s %s\n",
                      agent,
                      m.on ? "finishes what it has and gets nothing new; `xferctl agents` shows it"
                           : "gets work again"); /* for people */
    }
    return print_reply(c, reply.json);
}

int xf_cmd_agents(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    struct xf_tui tui;
    XF_AUTO(xf_json) j = NULL;
    XF_AUTO_BUF b = {0};

    if (p->n_args == 1) {
        (void)XF_FAIL(&err, XF_E_INVAL, "agents %s: the agent's id is missing", p->args[0]);
        return xf_ctl_fail(&err);
    }
    if (p->n_args == 2) {
        return drain(c, p->args[0], p->args[1]);
    }
    if (xf_ctl_query(c, XF_KIND_AGENTS, NULL, &j, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    if (c->o.json) {
        xf_ctl_out_json(j);
        return XF_EXIT_OK;
    }
    xf_tui_init(&tui, STDOUT_FILENO);
    xf_buf_init(&b, 0);
    xf_tui_put_agents(&b, xf_json_get(j, "agents"), &tui);
    xf_ctl_out(xf_buf_view(&b));
    return XF_EXIT_OK;
}
