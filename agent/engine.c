/*
 * engine.c - runs: what begins next, stops, ends; the engine's life. Ops are in engine_op.c.
 *
 * Invariants:
 * 1. A run is freed only by the pump, when its last op has ended; so no event is told inside
 *    xf_engine_start() or xf_engine_stop().
 * 2. Stops are applied only from the loop itself, where no op is inside a function.
 */
#include "agent/engine.h"

#include "agent/engine_int.h"
#include "agent/engine_scan.h"
#include "common/base/log.h"
#include "common/job/spec.h"

enum { MAX_OBJECTS = 1024, MAX_IN_FLIGHT = 512 };

/* ---- what a run allows ---- */

bool xf_run_is_stopped(const struct xf_run *run)
{
    return run->is_failed || (run->is_stopping && run->stop != XF_STOP_SOFT);
}

static bool may_begin(const struct xf_run *run)
{
    return run->has_more && !run->is_stopping && !run->is_failed && !run->ej->is_held;
}

void xf_engine_pump(struct xf_engine *e)
{
    if (!xf_timer_is_started(&e->pump)) {
        xf_timer_in(e->loop, &e->pump, 0);
    }
}

/* ---- runs ---- */

void xf_run_fail(struct xf_run *run, enum xf_work_how how, const struct xf_err *err)
{
    if (run->is_failed) {
        return;
    }
    run->is_failed = true;
    run->end.how = how;
    run->end.err = *err;
    xf_engine_pump(run->e);
}

void xf_run_set_result(struct xf_run *run, const struct xf_result *r)
{
    struct xf_arena *a = &run->w->arena;

    run->result = *r;
    run->result.etag = xf_arena_dup(a, r->etag);
    run->result.version_id = xf_arena_dup(a, r->version_id);
    run->result.source_etag = xf_arena_dup(a, r->source_etag);
    run->result.s3_code = xf_arena_dup(a, r->s3_code);
    run->result.message = xf_arena_dup(a, r->message);
    run->end.has_result = true;
}

void xf_engine_note(struct xf_run *run, enum xf_work_fact fact, const char *code, const char *text)
{
    struct xf_engine *e = run->e;

    if (!xf_work_job_learn(run->ej->job, fact)) {
        return;
    }
    XF_WARN(
        "job.noted", xf_f_c("job", run->ej->job->id), xf_f_c("notice", code), xf_f_c("text", text));
    if (e->ev.notice != NULL) {
        e->ev.notice(e->ev.arg, run->ej->job, code, text);
    }
}

static bool is_batch(const struct xf_run *run)
{
    return run->w != NULL && (run->w->kind == XF_TASK_BATCH || run->w->kind == XF_TASK_RECHECK);
}

static bool has_outcome(const struct xf_work *w, uint32_t idx)
{
    return idx < w->done.n && w->done.at[idx].outcome != XF_OUTCOME_PENDING;
}

/* Begin the next object; false when none can begin now. */
static bool begin_object(struct xf_run *run)
{
    struct xf_work *w = run->w;

    while (run->next < w->manifest.n && has_outcome(w, run->next)) {
        run->next++;
    }
    if (run->next >= w->manifest.n) {
        run->has_more = false;
        return false;
    }
    if (run->scan != NULL && !xf_scan_is_ready(run->scan, run->next)) {
        return false;
    }
    xf_small_begin(run, run->next++);
    return true;
}

static bool part_is_done(const struct xf_work *w, uint32_t part_no)
{
    for (uint32_t i = 0; i < w->n_done_parts; i++) {
        if (w->parts[i].part_no == part_no) {
            return true;
        }
    }
    return false;
}

static bool begin_part(struct xf_run *run)
{
    struct xf_work *w = run->w;

    while (w->first_part + run->next <= w->last_part &&
           part_is_done(w, w->first_part + run->next)) {
        run->next++;
    }
    if (w->first_part + run->next > w->last_part) {
        run->has_more = false;
        return false;
    }
    xf_parts_begin(run, w->first_part + run->next++);
    return true;
}

static bool begin_next(struct xf_run *run)
{
    if (is_batch(run)) {
        return begin_object(run);
    }
    if (run->w != NULL && run->w->kind == XF_TASK_PARTS) {
        return begin_part(run);
    }
    run->has_more = false;
    if (run->w == NULL) {
        xf_probe_begin(run);
        return true;
    }
    switch (run->w->kind) {
    case XF_TASK_OPEN: xf_open_begin(run); break;
    case XF_TASK_CLOSE: xf_close_begin(run); break;
    case XF_TASK_ABORT: xf_abort_begin(run); break;
    case XF_TASK_BATCH:
    case XF_TASK_RECHECK:
    case XF_TASK_PARTS:
    case XF_TASK_KIND_N: XF_ASSERT(false); break;
    }
    return true;
}

static void free_run(struct xf_run *run)
{
    xf_list_remove(&run->node);
    xf_scan_free(run->scan);
    run->ej->n_runs--;
    xf_xfree(run);
}

static void finish(struct xf_run *run)
{
    struct xf_engine *e = run->e;
    struct xf_work *w = run->w;
    struct xf_work_end end = run->end;
    struct xf_result result = run->result;

    if (w == NULL) { /* a probe: its op told the answer */
        free_run(run);
        return;
    }
    if (!run->is_failed) {
        end.how = run->n_open == 0 ? XF_WORK_DONE : XF_WORK_STOPPED;
    }
    end.tries = run->tries + 1;
    end.result = &result;
    free_run(run);
    e->ev.ended(e->ev.arg, w, &end);
}

/* The fence is for works. A probe writes nothing, and its job waits for its answer. */
static bool is_fenced(const struct xf_run *run)
{
    return run->w != NULL && xf_engine_is_past_fence(run->e);
}

/* Only from the loop itself: here no op is inside a function. */
static void apply_stops(struct xf_engine *e)
{
    XF_LIST_FOREACH (node, &e->runs) {
        struct xf_run *run = XF_CONTAINER_OF(node, struct xf_run, node);
        if (is_fenced(run)) {
            run->is_stopping = true;
            run->stop = XF_STOP_HARD;
        }
        if (run->is_failed || run->is_stopping) {
            xf_run_cancel_ops(run);
        }
    }
}

static void on_pump(struct xf_timer *t)
{
    struct xf_engine *e = t->arg;
    bool any = true;

    apply_stops(e);
    while (any && e->n_ops < e->max_objects) {
        any = false;
        XF_LIST_FOREACH (node, &e->runs) {
            struct xf_run *run = XF_CONTAINER_OF(node, struct xf_run, node);
            if (e->n_ops < e->max_objects && may_begin(run)) {
                any = begin_next(run) || any;
            }
        }
    }
    XF_LIST_FOREACH (node, &e->runs) {
        struct xf_run *run = XF_CONTAINER_OF(node, struct xf_run, node);
        if (run->n_ops == 0 && (!run->has_more || run->is_stopping || run->is_failed)) {
            finish(run);
            xf_engine_pump(e); /* another turn, in which the owner may see that we are idle */
        }
    }
}

static uint32_t count_open(const struct xf_work *w)
{
    uint32_t n = 0;

    if (w->kind == XF_TASK_BATCH || w->kind == XF_TASK_RECHECK) {
        for (uint32_t i = 0; i < w->manifest.n; i++) {
            n += has_outcome(w, i) ? 0 : 1;
        }
        return n;
    }
    if (w->kind == XF_TASK_PARTS) {
        for (uint32_t no = w->first_part; no <= w->last_part; no++) {
            n += part_is_done(w, no) ? 0 : 1;
        }
        return n;
    }
    return 1;
}

static struct xf_run *run_new(struct xf_engine *e, struct xf_ejob *ej, struct xf_work *w)
{
    struct xf_run *run = xf_xcalloc(1, sizeof(*run));

    run->e = e;
    run->ej = ej;
    run->w = w;
    run->has_more = true;
    run->n_open = w != NULL ? count_open(w) : 1;
    xf_list_init(&run->ops);
    xf_list_push_back(&e->runs, &run->node);
    ej->n_runs++;
    xf_engine_pump(e);
    return run;
}

static enum xf_code check_work(const struct xf_work *w, struct xf_err *err)
{
    bool is_upload = w->kind != XF_TASK_BATCH && w->kind != XF_TASK_RECHECK;

    if (w->manifest.source_no >= w->job->spec->source.n_urls) {
        return XF_FAIL(err, XF_E_PROTO, "task %ju: no such source", (uintmax_t)w->task);
    }
    if (w->kind >= XF_TASK_KIND_N || (is_upload && w->manifest.n != 1)) {
        return XF_FAIL(err, XF_E_PROTO, "task %ju: not an upload's", (uintmax_t)w->task);
    }
    if (w->kind == XF_TASK_PARTS &&
        (w->first_part == 0 || w->last_part < w->first_part || w->last_part > w->n_parts ||
         w->part_size == 0 || w->upload_id.len == 0)) {
        return XF_FAIL(err, XF_E_PROTO, "task %ju: not a range of parts", (uintmax_t)w->task);
    }
    if (w->kind == XF_TASK_CLOSE && (w->n_parts == 0 || w->upload_id.len == 0)) {
        return XF_FAIL(err, XF_E_PROTO, "task %ju: nothing to complete", (uintmax_t)w->task);
    }
    return XF_OK;
}

void xf_engine_start(struct xf_engine *e, struct xf_work *w)
{
    struct xf_ejob *ej = NULL;
    struct xf_err err = {0};
    enum xf_code rc = xf_ejob_get(e, w->job, &ej, &err);
    struct xf_run *run = run_new(e, ej, w);

    if (rc == XF_OK) {
        rc = check_work(w, &err);
    }
    if (rc != XF_OK) {
        bool is_local = xf_code_class(rc) == XF_CLASS_LOCAL || rc == XF_E_CONFIG;
        xf_run_fail(run, is_local ? XF_WORK_UNFIT : XF_WORK_RETRY, &err);
    } else if (w->kind == XF_TASK_BATCH) {
        xf_scan_begin(run);
    }
}

void xf_engine_probe(struct xf_engine *e, struct xf_work_job *job)
{
    struct xf_ejob *ej = NULL;
    struct xf_err err = {0};

    enum xf_code rc = xf_ejob_get(e, job, &ej, &err);
    struct xf_run *run = run_new(e, ej, NULL);
    if (rc != XF_OK) {
        run->end.err = err; /* the probe tells it */
    }
}

/* ---- stops ---- */

static void stop_run(struct xf_run *run, enum xf_engine_stop how)
{
    if (!run->is_stopping || run->stop < how) {
        run->stop = how;
    }
    run->is_stopping = true;
    xf_engine_pump(run->e);
}

void xf_engine_stop(struct xf_engine *e, uint64_t task, uint32_t attempt, enum xf_engine_stop how)
{
    XF_LIST_FOREACH (node, &e->runs) {
        struct xf_run *run = XF_CONTAINER_OF(node, struct xf_run, node);
        if (run->w != NULL && run->w->task == task && run->w->attempt == attempt) {
            stop_run(run, how);
        }
    }
}

void xf_engine_stop_all(struct xf_engine *e, enum xf_engine_stop how)
{
    XF_LIST_FOREACH (node, &e->runs) {
        stop_run(XF_CONTAINER_OF(node, struct xf_run, node), how);
    }
}

void xf_engine_hold(struct xf_engine *e, struct xf_work_job *job, bool on)
{
    struct xf_ejob *ej = xf_ejob_find(e, job);

    if (ej == NULL || ej->is_held == on) {
        return;
    }
    ej->is_held = on;
    while (!on && !xf_list_is_empty(&ej->parked)) {
        xf_op_begin(XF_CONTAINER_OF(xf_list_pop_front(&ej->parked), struct xf_op, parked));
    }
    xf_engine_pump(e);
}

void xf_engine_set_in_flight(struct xf_engine *e, struct xf_work_job *job, unsigned max)
{
    struct xf_ejob *ej = xf_ejob_find(e, job);

    for (int side = 0; ej != NULL && side < XF_SIDE_N; side++) {
        xf_limit_set_max(ej->limit[side],
                         max == 0 || max > e->max_in_flight ? e->max_in_flight : max);
    }
}

void xf_engine_set_fence(struct xf_engine *e, int64_t mono_ms)
{
    atomic_store(&e->fence_ms, mono_ms);
}

void xf_engine_on_turn(struct xf_engine *e)
{
    bool any = false;

    XF_LIST_FOREACH (node, &e->runs) {
        any = any || is_fenced(XF_CONTAINER_OF(node, struct xf_run, node));
    }
    if (any) {
        apply_stops(e);
        xf_engine_pump(e);
    }
}

/* ---- life ---- */

enum xf_code
xf_engine_new(const struct xf_engine_opts *o, struct xf_engine **out, struct xf_err *err)
{
    if (o->loop == NULL || o->http == NULL || o->pool_bytes < XF_POOL_BUF_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "an engine needs a loop, HTTP and a pool of 16 MiB");
    }
    struct xf_engine *e = xf_xcalloc(1, sizeof(*e));
    e->loop = o->loop;
    e->http = o->http;
    e->clock = o->clock != NULL ? o->clock : xf_clock_real();
    e->pool = xf_pool_new(o->pool_bytes);
    e->pool_bytes = o->pool_bytes;
    xf_rng_init(&e->rng, o->seed);
    e->ev = o->events;
    e->creds = o->creds;
    e->creds_arg = o->creds_arg;
    e->metrics = o->metrics;
    e->max_objects = o->max_objects != 0 ? o->max_objects : MAX_OBJECTS;
    e->max_in_flight = o->max_in_flight != 0 ? o->max_in_flight : MAX_IN_FLIGHT;
    xf_list_init(&e->jobs);
    xf_list_init(&e->runs);
    e->pump = (struct xf_timer){.cb = on_pump, .arg = e};
    atomic_init(&e->fence_ms, INT64_MAX);
    *out = e;
    return XF_OK;
}

bool xf_engine_is_idle(const struct xf_engine *e)
{
    return xf_list_is_empty(&e->runs);
}

void xf_engine_free(struct xf_engine *e)
{
    if (e == NULL) {
        return;
    }
    XF_ASSERT(xf_engine_is_idle(e));
    while (!xf_list_is_empty(&e->jobs)) {
        xf_ejob_free(e, XF_CONTAINER_OF(e->jobs.next, struct xf_ejob, node));
    }
    xf_timer_stop(e->loop, &e->pump);
    xf_pool_free(e->pool);
    xf_xfree(e);
}

void xf_engine_drop_job(struct xf_engine *e, struct xf_work_job *job)
{
    struct xf_ejob *ej = xf_ejob_find(e, job);

    if (ej != NULL && ej->n_runs == 0) {
        xf_ejob_free(e, ej);
    }
}

void xf_engine_stats(const struct xf_engine *e, struct xf_engine_stats *out)
{
    out->objects = atomic_load(&e->n_objects);
    out->bytes = atomic_load(&e->n_bytes);
    out->through = atomic_load(&e->n_through);
    out->throttled = atomic_load(&e->n_throttled);
    out->retries = atomic_load(&e->n_retries);
    out->in_flight = atomic_load(&e->n_in_flight);
}
