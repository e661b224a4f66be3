/* tuning.c - limits as they are now. */
#include "coordinator/tuning.h"

#include "common/base/json.h"
#include "common/job/spec.h"

enum { IN_FLIGHT_MAX = 100000 };

static const char *const names[XF_TUNE_N] = {
    [XF_TUNE_BANDWIDTH] = "bandwidth",
    [XF_TUNE_REQUEST_RATE] = "request_rate",
    [XF_TUNE_IN_FLIGHT] = "in_flight",
};

static enum xf_tune find_key(struct xf_str key)
{
    for (int k = 0; k < XF_TUNE_N; k++) {
        if (xf_str_eq_c(key, names[k])) {
            return (enum xf_tune)k;
        }
    }
    return XF_TUNE_N;
}

static enum xf_code
parse(enum xf_tune key, struct xf_str value, struct xf_schedule *out, struct xf_err *err)
{
    uint64_t n;

    switch (key) {
    case XF_TUNE_BANDWIDTH: return xf_schedule_parse(value, XF_SCHEDULE_BYTES_S, out, err);
    case XF_TUNE_REQUEST_RATE: return xf_schedule_parse(value, XF_SCHEDULE_REQUESTS_S, out, err);
    case XF_TUNE_IN_FLIGHT:
        if (xf_str_eq_c(value, "off")) {
            *out = (struct xf_schedule){.n = 0};
            return XF_OK;
        }
        if (!xf_str_u64(value, &n) || n < 1 || n > IN_FLIGHT_MAX) {
            return XF_FAIL(
                err, XF_E_INVAL, "in_flight is 1 to %d requests, or \"off\"", IN_FLIGHT_MAX);
        }
        *out = (struct xf_schedule){.at = {{.limit = n}}, .n = 1};
        return XF_OK;
    case XF_TUNE_N: break;
    }
    return XF_FAIL(err, XF_E_INVAL, "no such setting: bandwidth, request_rate and in_flight are");
}

enum xf_code xf_tuning_check(struct xf_str key, struct xf_str value, struct xf_err *err)
{
    struct xf_schedule ignored;

    if (xf_str_eq_c(value, "default") && find_key(key) != XF_TUNE_N) {
        return XF_OK;
    }
    if (parse(find_key(key), value, &ignored, err) != XF_OK) {
        return XF_WRAP(err, "%.*s", XF_STR_ARG(xf_str_sub(key, 0, 64)));
    }
    return XF_OK;
}

void xf_tuning_set(struct xf_tuning *t, struct xf_str key, struct xf_str value)
{
    enum xf_tune k = find_key(key);
    struct xf_err err;

    if (k == XF_TUNE_N) {
        return; /* a newer xfer's */
    }
    xf_xfree(t->text[k]);
    t->text[k] = NULL;
    if (!xf_str_eq_c(value, "default") && parse(k, value, &t->limit[k], &err) == XF_OK) {
        t->text[k] = xf_str_dup(value);
    }
}

void xf_tuning_fini(struct xf_tuning *t)
{
    for (int k = 0; k < XF_TUNE_N; k++) {
        xf_xfree(t->text[k]);
        t->text[k] = NULL;
    }
}

struct xf_json *xf_tuning_json(const struct xf_tuning *t)
{
    struct xf_json *j = xf_json_object();

    for (int k = 0; k < XF_TUNE_N; k++) {
        if (t->text[k] != NULL) {
            xf_json_set_c(j, names[k], t->text[k]);
        } else {
            xf_json_set_null(j, names[k]);
        }
    }
    return j;
}

/* ---- now ----------------------------------------------------------------------------------------
 */

static bool has_work(const struct xf_cjob *j)
{
    return j->row.state == XF_JOB_RUNNING && j->row.stop == 0 &&
           (j->ready > 0 || j->row.tasks_ready > 0 || j->row.tasks_leased > 0);
}

/* Jobs that share what the fleet may use; the one in question is one of them. */
static uint64_t n_sharing(const struct xf_coordinator *c, const struct xf_cjob *one)
{
    uint64_t n = 1;

    XF_LIST_FOREACH (node, &c->jobs) {
        const struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        n += j != one && has_work(j) ? 1 : 0;
    }
    return n;
}

static uint64_t part(uint64_t whole, uint64_t n)
{
    return whole == 0 ? 0 : whole / n > 0 ? whole / n : 1;
}

static uint64_t lower(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}

/* The job's own: as tuned, else as in its file. */
static uint64_t own(const struct xf_cjob *j, enum xf_tune key, unsigned minute)
{
    const struct xf_job_spec *spec = j->spec;

    if (j->tuning.text[key] != NULL) {
        return xf_schedule_at(&j->tuning.limit[key], minute);
    }
    switch (key) {
    case XF_TUNE_BANDWIDTH: return xf_schedule_at(&spec->bandwidth, minute);
    case XF_TUNE_REQUEST_RATE: return xf_schedule_at(&spec->request_rate, minute);
    case XF_TUNE_IN_FLIGHT: return (uint64_t)spec->in_flight;
    case XF_TUNE_N: break;
    }
    return 0;
}

static uint64_t
limit_of(const struct xf_coordinator *c, const struct xf_cjob *j, enum xf_tune key, uint64_t n)
{
    unsigned minute = xf_schedule_minute(xf_clock_wall_ms(c->clock));
    uint64_t fleet =
        c->tuning.text[key] != NULL ? xf_schedule_at(&c->tuning.limit[key], minute) : 0;

    return lower(own(j, key, minute), part(fleet, n));
}

struct xf_tuning_now xf_tuning_now(const struct xf_coordinator *c, const struct xf_cjob *j)
{
    uint64_t n = n_sharing(c, j);

    return (struct xf_tuning_now){
        .bytes_s = limit_of(c, j, XF_TUNE_BANDWIDTH, n),
        .requests_s = limit_of(c, j, XF_TUNE_REQUEST_RATE, n),
        .in_flight = (uint32_t)limit_of(c, j, XF_TUNE_IN_FLIGHT, n),
    };
}

void xf_tuning_share(const struct xf_coordinator *c,
                     const struct xf_cjob *j,
                     struct xf_msg_order *o)
{
    const struct xf_tuning_now now = xf_tuning_now(c, j);
    uint64_t n_agents = c->n_agents_up > 0 ? c->n_agents_up : 1;

    o->in_flight = now.in_flight;
    o->bandwidth = part(now.bytes_s, n_agents);
    o->request_rate = part(now.requests_s * 1000, n_agents);
}
