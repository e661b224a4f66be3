/*
 * status.c - rows to JSON.
 */
#include "coordinator/status.h"

#include <math.h>

static void set_text(struct xf_json *j, const char *name, struct xf_str s)
{
    if (s.len == 0) {
        xf_json_set_null(j, name);
    } else {
        xf_json_set_bytes(j, name, s);
    }
}

static struct xf_json *listing_json(const struct xf_job_row *r, const struct xf_status_live *live)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_bool(j, "complete", r->shards_open == 0);
    xf_json_set_u64(j, "keys", r->n.keys_returned);
    xf_json_set_u64(j, "requests", r->n.list_requests);
    xf_json_set_u64(j, "shards_open", r->shards_open);
    xf_json_set_bool(j,
                     "failed",
                     (live != NULL && live->listing_failed) ||
                         (r->state == XF_JOB_FAILED && r->shards_open > 0));
    return j;
}

static struct xf_json *objects_json(const struct xf_job_counters *n)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_u64(j, "listed", n->listed);
    xf_json_set_u64(j, "copied", n->copied);
    xf_json_set_u64(j, "skipped", n->skipped);
    xf_json_set_u64(j, "failed", n->failed);
    xf_json_set_u64(j, "vanished", n->vanished);
    xf_json_set_u64(j, "archived", n->archived);
    xf_json_set_u64(j, "in_flight", n->in_flight);
    xf_json_set_u64(j, "pending", n->pending);
    return j;
}

static struct xf_json *bytes_json(const struct xf_job_counters *n)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_u64(j, "listed", n->bytes_listed);
    xf_json_set_u64(j, "copied", n->bytes_copied);
    xf_json_set_u64(j, "through_agents", n->bytes_through);
    return j;
}

/* Seconds to the end by objects, or by bytes when those take longer; negative: unknown. */
static double eta_s(const struct xf_job_row *r, const struct xf_status_live *live)
{
    uint64_t left = r->n.pending + r->n.in_flight;

    if (live == NULL || r->state != XF_JOB_RUNNING || r->shards_open > 0 || left == 0) {
        return -1;
    }
    double by_objects = live->objects_s > 0 ? (double)left / live->objects_s : -1;
    double by_bytes = -1;
    if (live->bytes_s > 0 && r->n.skipped == 0 && r->n.bytes_listed > r->n.bytes_copied) {
        by_bytes = (double)(r->n.bytes_listed - r->n.bytes_copied) / live->bytes_s;
    }
    return by_bytes > by_objects ? by_bytes : by_objects;
}

static void
set_rate(struct xf_json *j, const struct xf_job_row *r, const struct xf_status_live *live)
{
    struct xf_json *rate = xf_json_object();
    bool is_running = live != NULL && r->state == XF_JOB_RUNNING;
    double eta = eta_s(r, live);

    xf_json_set_f64(rate, "objects_s", is_running ? live->objects_s : 0.0);
    xf_json_set_f64(rate, "bytes_s", is_running ? live->bytes_s : 0.0);
    xf_json_put(j, "rate", rate);
    if (eta < 0) {
        xf_json_set_null(j, "eta_s");
    } else {
        xf_json_set_f64(j, "eta_s", ceil(eta));
    }
}

static struct xf_str phase_of(const struct xf_job_row *r)
{
    if (r->stop != 0 && !xf_job_state_is_end(r->state)) {
        return XF_STR_LIT("stopping");
    }
    return r->phase.len > 0 ? r->phase : XF_STR_LIT("copy");
}

/* Who can work for it now; nobody for a job that has ended. */
static struct xf_json *agents_json(const struct xf_job_row *r, const struct xf_status_live *live)
{
    struct xf_json *j = xf_json_object();
    bool is_live = live != NULL && !xf_job_state_is_end(r->state);

    xf_json_set_u64(j, "up", is_live ? live->agents_up : 0);
    xf_json_set_u64(j, "fit", is_live ? live->agents_fit : 0);
    set_text(j, "unfit", is_live ? live->unfit : XF_STR_EMPTY);
    return j;
}

struct xf_json *xf_status_job(const struct xf_job_row *r, const struct xf_status_live *live)
{
    struct xf_json *j = xf_json_object();
    struct xf_str reason = r->reason;

    if (reason.len == 0 && live != NULL) {
        reason = live->reason;
    }
    xf_json_set_bytes(j, "id", r->public_id);
    xf_json_set_bytes(j, "name", r->name);
    xf_json_set_c(j, "state", xf_fsm_name(xf_job_fsm, XF_JOB_STATE_N, r->state));
    xf_json_set_bytes(j, "phase", phase_of(r));
    set_text(j, "reason", reason);
    if (r->exit_code >= 0 && xf_job_state_is_end(r->state)) {
        xf_json_set_i64(j, "exit_code", r->exit_code);
    } else {
        xf_json_set_null(j, "exit_code");
    }
    xf_json_set_i64(j, "priority", r->priority);
    xf_json_set_i64(j, "pass", r->pass_no);
    xf_json_put(j, "listing", listing_json(r, live));
    xf_json_put(j, "objects", objects_json(&r->n));
    xf_json_put(j, "bytes", bytes_json(&r->n));
    set_rate(j, r, live);
    xf_json_set_u64(j, "retries", r->n.retries);
    xf_json_set_u64(j, "throttled", r->n.throttled);
    xf_json_set_u64(j, "attributes_dropped", r->n.dropped);
    xf_json_set_u64(j, "uploads_open", r->uploads_live);
    xf_json_set_time(j, "created_at", r->created_ms);
    xf_json_set_time(j, "started_at", r->started_ms);
    xf_json_set_time(j, "finished_at", r->finished_ms);
    xf_json_put(j, "agents", agents_json(r, live));
    set_text(
        j, "detail", live != NULL && !xf_job_state_is_end(r->state) ? live->detail : XF_STR_EMPTY);
    return j;
}

struct xf_json *xf_status_agent(const struct xf_status_agent *a)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_bytes(j, "id", a->id);
    xf_json_set_c(j, "state", a->state);
    set_text(j, "reason", a->reason);
    xf_json_set_bytes(j, "version", a->version);
    set_text(j, "host", a->host);
    xf_json_set_u64(j, "in_flight", a->in_flight);
    xf_json_set_u64(j, "leases", a->leases);
    xf_json_set_f64(j, "objects_s", a->objects_s);
    xf_json_set_f64(j, "bytes_s", a->bytes_s);
    xf_json_set_f64(j, "last_seen_s", a->last_seen_s);
    return j;
}

struct xf_json *xf_status_all(struct xf_json *jobs, struct xf_json *agents)
{
    struct xf_json *j = xf_json_object();

    xf_json_put(j, "jobs", jobs);
    xf_json_put(j, "agents", agents);
    return j;
}

/* ---- show ---------------------------------------------------------------------------------------
 */

struct group {
    struct xf_str code; /* of the service when there is one, else ours */
    const struct xf_failure_row *first;
    uint64_t count;
    struct xf_json *keys;
};

static struct xf_str code_of(const struct xf_failure_row *f)
{
    return f->result.s3_code.len > 0 ? f->result.s3_code : xf_str_c(xf_code_name(f->result.code));
}

static struct xf_json *key_json(struct xf_str key)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_bytes(j, "key", key);
    return j;
}

static struct xf_json *group_json(struct group *g)
{
    struct xf_json *j = xf_json_object();

    xf_json_set_bytes(j, "code", g->code);
    xf_json_set_c(j, "class", xf_class_name(xf_code_class(g->first->result.code)));
    xf_json_set_u64(j, "count", g->count);
    xf_json_set_u64(j, "http_status", g->first->result.http_status);
    set_text(j, "message", g->first->result.message);
    xf_json_put(j, "examples", g->keys);
    g->keys = NULL;
    return j;
}

static struct group *find_group(struct group *groups, size_t *n, const struct xf_failure_row *f)
{
    struct xf_str code = code_of(f);

    for (size_t i = 0; i < *n; i++) {
        if (xf_str_eq(groups[i].code, code)) {
            return &groups[i];
        }
    }
    if (*n == XF_STATUS_GROUPS_MAX) {
        return &groups[*n - 1]; /* the rest is counted with the last */
    }
    groups[*n] = (struct group){.code = code, .first = f, .keys = xf_json_array()};
    return &groups[(*n)++];
}

struct xf_json *xf_status_errors(const struct xf_failure_row *rows, size_t n)
{
    struct group groups[XF_STATUS_GROUPS_MAX];
    struct xf_json *out = xf_json_array();
    size_t n_groups = 0;

    for (size_t i = 0; i < n; i++) {
        struct group *g = find_group(groups, &n_groups, &rows[i]);
        g->count++;
        if (xf_json_len(g->keys) < XF_STATUS_KEYS_MAX) {
            xf_json_append(g->keys, key_json(rows[i].object.key));
        }
    }
    for (size_t i = 0; i < n_groups; i++) {
        xf_json_append(out, group_json(&groups[i]));
    }
    return out;
}

struct xf_json *xf_status_uploads(const struct xf_upload_row *rows, size_t n)
{
    struct xf_json *out = xf_json_array();

    for (size_t i = 0; i < n; i++) {
        const struct xf_upload_row *u = &rows[i];
        struct xf_json *j = xf_json_object();
        xf_json_set_bytes(j, "key", u->object.key);
        xf_json_set_u64(j, "size", u->object.size);
        xf_json_set_c(j, "state", xf_fsm_name(xf_upload_fsm, XF_UPLOAD_STATE_N, u->state));
        set_text(j, "upload_id", u->upload_id);
        xf_json_set_u64(j, "parts", u->n_parts);
        xf_json_set_u64(j, "parts_done", u->parts_done);
        xf_json_append(out, j);
    }
    return out;
}

struct xf_json *xf_status_notices(const struct xf_notice_row *rows, size_t n)
{
    struct xf_json *out = xf_json_array();

    for (size_t i = 0; i < n; i++) {
        struct xf_json *j = xf_json_object();
        xf_json_set_time(j, "at", rows[i].at_ms);
        xf_json_set_bytes(j, "code", rows[i].code);
        xf_json_set_bytes(j, "text", rows[i].text);
        xf_json_append(out, j);
    }
    return out;
}

struct xf_json *xf_status_attempts(const struct xf_attempt_row *rows, size_t n)
{
    struct xf_json *out = xf_json_array();

    for (size_t i = 0; i < n; i++) {
        struct xf_json *j = xf_json_object();
        xf_json_set_i64(j, "task", rows[i].task);
        xf_json_set_c(j, "kind", xf_task_kind_name(rows[i].kind));
        xf_json_set_u64(j, "attempt", rows[i].attempt);
        xf_json_set_bytes(j, "agent", rows[i].agent);
        xf_json_set_time(j, "leased_at", rows[i].leased_ms);
        xf_json_set_time(j, "ended_at", rows[i].ended_ms);
        xf_json_set_c(j, "how", xf_how_name(rows[i].how));
        xf_json_append(out, j);
    }
    return out;
}
