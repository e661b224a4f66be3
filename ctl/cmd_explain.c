/*
 * cmd_explain.c - xferctl explain JOB: what the job is bound by, and the figures that show it.
 *
 * Two looks, LOOK_MS apart, since counts say what was and their growth says what is. The first rule
 * that holds tells; the rules go from what stops a job to what slows it.
 */
#include "common/base/clock.h"
#include "ctl/ctl.h"

#include <poll.h>
#include <stdio.h>

/* Agents report each 2 s. */
enum { LOOK_MS = 4500, SILENT_S = 4 };

struct look {
    int64_t at_ms;
    const char *state;
    const char *reason; /* a word; NULL: none */
    const char *detail; /* NULL: none */
    bool is_listed;
    uint64_t keys;
    uint64_t pending;
    uint64_t in_flight; /* objects leased and not reported */
    uint64_t ended;     /* objects with an outcome */
    uint64_t throttled;
    uint64_t retries;
    uint64_t uploads;
    uint64_t limit_in_flight; /* an agent; 0: none */
    uint64_t limit_bytes_s;
    uint64_t limit_requests_s;
    double bytes_s;
    uint64_t agents_up;
    uint64_t agents_fit;       /* for this job */
    const char *unfit;         /* what one that is not says; NULL: none */
    uint64_t agents_in_flight; /* requests, of all jobs */
    uint64_t agents_silent;    /* have leases, and said nothing for SILENT_S */
};

struct figures {
    double seconds;
    double objects_s;
    double keys_s;
    double throttled_s;
    double retries_s;
};

struct finding {
    const char *by;   /* a word for scripts */
    const char *text; /* what it means */
    const char *advice;
};

static uint64_t of(const struct xf_json *j, const char *group, const char *name)
{
    return xf_json_get_u64(xf_json_get(j, group), name, 0);
}

/* What a retry pass makes pending again had ended before: counts may fall. */
static uint64_t less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

static void take_job(const struct xf_json *j, struct look *l)
{
    l->at_ms = xf_clock_mono_ms(xf_clock_real());
    l->state = xf_json_get_c(j, "state", "");
    l->reason = xf_json_get_c(j, "reason", NULL);
    l->detail = xf_json_get_c(j, "detail", NULL);
    l->agents_up = of(j, "agents", "up");
    l->agents_fit = of(j, "agents", "fit");
    l->unfit = xf_json_get_c(xf_json_get(j, "agents"), "unfit", NULL);
    l->is_listed = xf_json_get_bool(xf_json_get(j, "listing"), "complete", false);
    l->keys = of(j, "listing", "keys");
    l->pending = of(j, "objects", "pending");
    l->in_flight = of(j, "objects", "in_flight");
    l->ended = less(of(j, "objects", "listed"), l->pending + l->in_flight);
    l->throttled = xf_json_get_u64(j, "throttled", 0);
    l->retries = xf_json_get_u64(j, "retries", 0);
    l->uploads = xf_json_get_u64(j, "uploads_open", 0);
    l->limit_in_flight = of(j, "limits", "in_flight");
    l->limit_bytes_s = of(j, "limits", "bandwidth_bytes_s");
    l->limit_requests_s = of(j, "limits", "requests_s");
    l->bytes_s = xf_json_get_f64(xf_json_get(j, "rate"), "bytes_s", 0);
}

static void take_agents(const struct xf_json *j, struct look *l)
{
    const struct xf_json *agents = xf_json_get(j, "agents");

    l->agents_in_flight = 0;
    l->agents_silent = 0;
    for (size_t i = 0; i < xf_json_len(agents); i++) {
        const struct xf_json *a = xf_json_at(agents, i);
        if (strcmp(xf_json_get_c(a, "state", ""), "lost") != 0) {
            l->agents_in_flight += xf_json_get_u64(a, "in_flight", 0);
            l->agents_silent += xf_json_get_u64(a, "leases", 0) > 0 &&
                                xf_json_get_f64(a, "last_seen_s", 0) > (double)SILENT_S;
        }
    }
}

static bool is_state(const struct look *l, const char *state)
{
    return strcmp(l->state, state) == 0;
}

static struct finding find_stop(const struct look *l)
{
    if (is_state(l, "paused")) {
        return (struct finding){"paused", "the job is paused", "xferctl resume goes on"};
    }
    if (!is_state(l, "running") && !is_state(l, "queued")) {
        return (struct finding){"ended", "the job has ended", "xferctl show tells how"};
    }
    if (l->agents_up == 0) {
        return (struct finding){
            "no_agent", "no agent is connected", "start an xfer-agent; xferctl agents shows them"};
    }
    if (l->detail != NULL) {
        return (struct finding){"no_fit_agent",
                                l->detail,
                                "xferctl agents shows what each says; mended there, it is tried "
                                "again by itself"};
    }
    if (l->reason != NULL) {
        return (struct finding){"reason", l->reason, "it goes on by itself when that is over"};
    }
    return (struct finding){NULL, NULL, NULL};
}

static struct finding find_slow(const struct look *l, const struct figures *f)
{
    uint64_t most = l->limit_in_flight * l->agents_fit;

    if (f->throttled_s > 0.0 && f->throttled_s * 1000.0 >= f->objects_s) {
        return (struct finding){
            "throttled",
            "the service asks for less (503 SlowDown, 429)",
            "agents slow down by themselves; more agents do not help. A service "
            "counts by prefix: ask its operator for more, or wait until it "
            "splits the prefix"};
    }
    if (l->agents_silent > 0 && f->objects_s <= 0.0) {
        return (struct finding){"silent_agent",
                                "an agent that has work is not heard of",
                                "xferctl agents shows which; others get its work when its lease "
                                "has run out, unless it comes back"};
    }
    if (l->limit_bytes_s > 0 && l->bytes_s >= 0.85 * (double)l->limit_bytes_s) {
        return (struct finding){"limit_bandwidth",
                                "the limit of bandwidth, its own or the fleet's",
                                "xferctl tune changes it while the job runs"};
    }
    /* A copy is a request or two. */
    if (l->limit_requests_s > 0 && f->objects_s >= 0.4 * (double)l->limit_requests_s) {
        return (struct finding){"limit_request_rate",
                                "the limit of requests a second, its own or the fleet's",
                                "xferctl tune changes it while the job runs"};
    }
    if (most > 0 && l->agents_in_flight * 10 >= most * 9) {
        return (struct finding){"limit_in_flight",
                                "the limit of requests in flight, its own or the fleet's",
                                "xferctl tune changes it while the job runs"};
    }
    if (!l->is_listed && l->pending == 0) {
        return (struct finding){"listing",
                                "agents wait for the listing of the source",
                                "a service answers a page of 1,000 keys at a time; more agents do "
                                "not help"};
    }
    if (l->is_listed && l->pending == 0 && l->uploads > 0 && l->in_flight <= l->uploads) {
        return (struct finding){"last_large",
                                "only large objects are left, in parts",
                                "xferctl show has their parts; idle agents take some"};
    }
    if (l->pending == 0) {
        return (struct finding){"tail", "the last objects are under way", "it ends soon"};
    }
    return (struct finding){"agents",
                            "work is waiting: the agents' processors or network",
                            "look at their load (top, sar -n DEV); another agent on another host "
                            "helps if they are busy"};
}

static enum xf_code
look(struct xf_ctl *c, const char *job, struct xf_json **j, struct look *l, struct xf_err *err)
{
    XF_AUTO(xf_json) agents = NULL;

    XF_TRY(xf_ctl_query(c, XF_KIND_SHOW, job, j, err));
    XF_TRY(xf_ctl_query(c, XF_KIND_AGENTS, NULL, &agents, err));
    take_job(*j, l);
    take_agents(agents, l);
    return XF_OK;
}

static struct figures compare(const struct look *a, const struct look *b)
{
    double s = (double)(b->at_ms - a->at_ms) / 1000.0;

    s = s > 0.0 ? s : 1.0;
    return (struct figures){
        .seconds = s,
        .objects_s = (double)less(b->ended, a->ended) / s,
        .keys_s = (double)less(b->keys, a->keys) / s,
        .throttled_s = (double)less(b->throttled, a->throttled) / s,
        .retries_s = (double)less(b->retries, a->retries) / s,
    };
}

static void
put_text(struct xf_buf *b, const struct finding *x, const struct look *l, const struct figures *f)
{
    xf_buf_putf(b, "bound by: ");
    xf_buf_put_escaped(b, xf_str_c(x->text));
    xf_buf_putf(b, "\n          %s\n", x->advice);
    if (strcmp(x->by, "ended") == 0) {
        return; /* figures of now say nothing of it */
    }
    xf_buf_putf(b, "over %.1f s: %.0f objects/s ended, ", f->seconds, f->objects_s);
    xf_buf_putf(b, "%.0f keys/s listed%s, ", f->keys_s, l->is_listed ? " (complete)" : "");
    xf_buf_putf(b, "%.1f throttled/s, %.1f retries/s\n", f->throttled_s, f->retries_s);
    xf_buf_putf(
        b,
        "now: %ju objects wait, %ju with agents, %ju uploads open; %ju of %ju agents can work "
        "for it, %ju requests of all jobs in flight",
        (uintmax_t)l->pending,
        (uintmax_t)l->in_flight,
        (uintmax_t)l->uploads,
        (uintmax_t)l->agents_fit,
        (uintmax_t)l->agents_up,
        (uintmax_t)l->agents_in_flight);
    if (l->limit_in_flight > 0) {
        xf_buf_putf(b, " (limit %ju each)", (uintmax_t)l->limit_in_flight);
    }
    xf_buf_put_byte(b, '\n');
    if (l->unfit != NULL && l->agents_fit > 0) {
        xf_buf_put_c(b, "not all agents work for it: ");
        xf_buf_put_escaped(b, xf_str_c(l->unfit));
        xf_buf_put_byte(b, '\n');
    }
}

static void
put_json(const char *job, const struct finding *x, const struct look *l, const struct figures *f)
{
    XF_AUTO(xf_json) j = xf_json_object();
    struct xf_json *n = xf_json_object();

    xf_json_set_c(j, "id", job);
    xf_json_set_c(j, "bound_by", x->by);
    xf_json_set_c(j, "text", x->text);
    xf_json_set_c(j, "advice", x->advice);
    xf_json_set_f64(n, "seconds", f->seconds);
    xf_json_set_f64(n, "objects_s", f->objects_s);
    xf_json_set_f64(n, "keys_s", f->keys_s);
    xf_json_set_f64(n, "throttled_s", f->throttled_s);
    xf_json_set_f64(n, "retries_s", f->retries_s);
    xf_json_set_f64(n, "bytes_s", l->bytes_s);
    xf_json_set_u64(n, "pending", l->pending);
    xf_json_set_u64(n, "in_flight", l->in_flight);
    xf_json_set_u64(n, "uploads_open", l->uploads);
    xf_json_set_u64(n, "agents_up", l->agents_up);
    xf_json_set_u64(n, "agents_fit", l->agents_fit);
    xf_json_set_u64(n, "agents_silent", l->agents_silent);
    xf_json_set_u64(n, "requests_in_flight", l->agents_in_flight);
    xf_json_set_u64(n, "limit_in_flight", l->limit_in_flight);
    xf_json_set_u64(n, "limit_bandwidth_bytes_s", l->limit_bytes_s);
    xf_json_set_u64(n, "limit_requests_s", l->limit_requests_s);
    xf_json_put(j, "figures", n);
    xf_ctl_out_json(j);
}

int xf_cmd_explain(void *ctx, const struct xf_opt_parsed *p)
{
    struct xf_ctl *c = ctx;
    struct xf_err err;
    struct look first;
    struct look now;
    XF_AUTO(xf_json) one = NULL;
    XF_AUTO(xf_json) two = NULL;
    XF_AUTO_BUF b = {0};

    if (look(c, p->args[0], &one, &first, &err) != XF_OK) {
        return xf_ctl_fail(&err);
    }
    now = first;
    struct finding x = find_stop(&now);
    if (x.by == NULL) {
        (void)poll(NULL, 0, LOOK_MS); /* a shorter wait only makes rougher figures */
        if (look(c, p->args[0], &two, &now, &err) != XF_OK) {
            return xf_ctl_fail(&err);
        }
        x = find_stop(&now);
    }
    const struct figures f = compare(&first, &now);
    x = x.by != NULL ? x : find_slow(&now, &f);
    if (c->o.json) {
        put_json(p->args[0], &x, &now, &f);
    } else {
        put_text(&b, &x, &now, &f);
        xf_ctl_out(xf_buf_view(&b));
    }
    return XF_EXIT_OK;
}
