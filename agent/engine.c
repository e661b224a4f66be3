/*
 * engine.c - runs and ops: permits, retries, stops, ends.
 *
 *   begin -> [parked] -> permit(s) -> launch -> reply -> done -> next step, or end
 *                ^                                 |
 *                +---- wait (retry, throttled) <---+
 *
 * Invariants:
 * 1. An op has at most one of: a request, a timer, a place in a line. With none it is inside a
 *    function of the engine.
 * 2. An op is freed only by xf_op_end(), with no request in flight; nobody touches it after a call
 *    that may end it (xf_op_go, xf_op_go_with_buf, a step's done).
 * 3. A run is freed only by the pump, when its last op has ended; so no event is told inside
 *    xf_engine_start() or xf_engine_stop().
 * 4. A write starts only before the fence, by the clock read at that moment.
 */
#include "agent/engine.h"

#include "agent/engine_int.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/retry.h"
#include "common/job/spec.h"

/* An endpoint that this host has not reached for so long may be reached by another. */
enum { DOWN_UNFIT_MS = 60 * 1000 };
enum { MAX_OBJECTS = 1024, MAX_IN_FLIGHT = 512 };

static void begin(struct xf_op *op);

/* ---- what a run allows ---- */

static bool run_is_stopped(const struct xf_run *run)
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

/* ---- ops ---- */

void xf_op_on_timer(struct xf_timer *t)
{
    begin(t->arg);
}

static void on_permit(struct xf_limit_want *want);
static void on_rate(struct xf_rate_want *want);
static void on_buf(struct xf_pool_want *want, struct xf_pool_buf buf);

struct xf_op *xf_op_new(struct xf_run *run, const struct xf_step *steps, unsigned n_steps)
{
    struct xf_op *op = xf_xcalloc(1, sizeof(*op));

    op->run = run;
    op->steps = steps;
    op->n_steps = n_steps;
    op->state = n_steps;
    op->timer = (struct xf_timer){.cb = xf_op_on_timer, .arg = op};
    op->want = (struct xf_limit_want){.go = on_permit, .arg = op};
    op->rate_want = (struct xf_rate_want){.go = on_rate, .arg = op};
    op->pool_want = (struct xf_pool_want){.ready = on_buf, .arg = op};
    xf_buf_init(&op->dst_key, 0);
    xf_list_push_back(&run->ops, &op->node);
    run->n_ops++;
    run->e->n_ops++;
    return op;
}

void xf_op_give(struct xf_op *op, enum xf_side side, enum xf_limit_how how, int64_t retry_after_ms)
{
    if (op->has_permit[side]) {
        op->has_permit[side] = false;
        xf_limit_give(op->run->ej->limit[side], how, op->asked_ms, retry_after_ms);
    }
}

void xf_op_end(struct xf_op *op)
{
    struct xf_run *run = op->run;
    struct xf_engine *e = run->e;

    XF_ASSERT(op->req == NULL);
    xf_timer_stop(e->loop, &op->timer);
    xf_limit_forget(run->ej->limit[op->want_side], &op->want);
    xf_rate_forget(run->ej->rate, &op->rate_want);
    for (int side = 0; side < XF_SIDE_N; side++) {
        xf_op_give(op, (enum xf_side)side, XF_LIMIT_NEUTRAL, -1);
    }
    xf_pool_forget(e->pool, &op->pool_want);
    xf_pool_put(e->pool, &op->buf);
    xf_stream_free(op->stream);
    xf_list_remove(&op->parked);
    xf_list_remove(&op->node);
    xf_s3_attrs_free(op->attrs);
    xf_hash_free(op->hash);
    xf_buf_fini(&op->dst_key);
    xf_buf_fini(&op->tags);
    xf_buf_fini(&op->upload_id);
    xf_buf_fini(&op->marker);
    xf_buf_fini(&op->marker_id);
    run->n_ops--;
    e->n_ops--;
    xf_xfree(op);
    xf_engine_pump(e);
}

static void cancel_op(struct xf_op *op)
{
    if (op->is_cancelled) {
        return;
    }
    op->is_cancelled = true;
    if (op->stream != NULL && op->req != NULL) {
        xf_stream_cancel(op->stream);
    } else if (op->req != NULL) {
        xf_s3_cancel(op->req);
    } else {
        xf_op_end(op);
    }
}

static bool is_to_end(const struct xf_run *run, const struct xf_op *op)
{
    if (run->is_failed || run->stop == XF_STOP_HARD) {
        return true;
    }
    /* Softly: what only waits for its first request has not begun. */
    return op->req == NULL && (run->stop == XF_STOP_FIRM || !op->want.has_begun);
}

/* The ops of a run that end now; restarts at the front, since ending one may end others. */
static void cancel_ops(struct xf_run *run)
{
    bool found = true;

    while (found) {
        found = false;
        XF_LIST_FOREACH (node, &run->ops) {
            struct xf_op *op = XF_CONTAINER_OF(node, struct xf_op, node);
            if (!op->is_cancelled && is_to_end(run, op)) {
                found = true;
                cancel_op(op);
                break;
            }
        }
    }
}

static bool is_past_fence(const struct xf_engine *e)
{
    return xf_clock_mono_ms(e->clock) >= atomic_load(&e->fence_ms);
}

static void launch(struct xf_op *op)
{
    struct xf_engine *e = op->run->e;
    const struct xf_step *step = &op->steps[op->state];
    unsigned copies = step->flags & (XF_STEP_COPY | XF_STEP_PART_COPY);

    if (copies != 0 && !xf_op_may_copy(op, copies == XF_STEP_PART_COPY)) {
        for (int side = 0; side < XF_SIDE_N; side++) {
            xf_op_give(op, (enum xf_side)side, XF_LIMIT_NEUTRAL, -1);
        }
        op->choose(op);
        return;
    }
    if ((step->flags & XF_STEP_WRITE) != 0 && is_past_fence(e)) {
        XF_WARN("lease.expired", xf_f_c("step", step->name));
        xf_op_end(op); /* the next turn stops the rest */
        return;
    }
    op->asked_ms = xf_loop_mono_ms(e->loop);
    op->want.has_begun = true;
    if ((step->flags & XF_STEP_WRITE) != 0 && op->first_write_ms == 0) {
        op->first_write_ms = op->asked_ms;
    }
    (void)atomic_fetch_add(&e->n_in_flight, 1); /* the old count tells nothing */
    op->req = step->start(op);
    XF_ASSERT(op->req != NULL);
}

/* Destination first, so that ops which need both never wait for each other in a circle. */
static void acquire(struct xf_op *op)
{
    const struct xf_step *step = &op->steps[op->state];
    static const enum xf_side order[XF_SIDE_N] = {XF_DST, XF_SRC};

    for (int i = 0; i < XF_SIDE_N; i++) {
        enum xf_side side = order[i];
        struct xf_limit *limit = op->run->ej->limit[side];
        if (((step->flags & XF_STEP_BOTH) == 0 && side != step->side) || op->has_permit[side]) {
            continue;
        }
        if (!xf_limit_take(limit)) {
            op->want_side = side;
            xf_limit_wait(limit, &op->want);
            return;
        }
        op->has_permit[side] = true;
    }
    launch(op);
}

static void on_permit(struct xf_limit_want *want)
{
    struct xf_op *op = want->arg;

    op->has_permit[op->want_side] = true;
    op->asked_ms = xf_loop_mono_ms(op->run->e->loop);
    if (op->run->ej->is_held || run_is_stopped(op->run)) {
        for (int side = 0; side < XF_SIDE_N; side++) {
            xf_op_give(op, (enum xf_side)side, XF_LIMIT_NEUTRAL, -1);
        }
        begin(op);
        return;
    }
    acquire(op);
}

/* The bytes that the step lets through are taken from the job's share; false: it waits for them. */
static bool take_rate(struct xf_op *op)
{
    struct xf_ejob *ej = op->run->ej;

    if (op->has_rate || (op->steps[op->state].flags & XF_STEP_BULK) == 0) {
        return true;
    }
    xf_rate_set(ej->rate, atomic_load(&ej->job->lane_bandwidth));
    op->rate_want.bytes = op->len != 0 ? op->len : op->size;
    op->has_rate = xf_rate_take(ej->rate, op->rate_want.bytes);
    if (!op->has_rate) {
        xf_rate_wait(ej->rate, &op->rate_want);
    }
    return op->has_rate;
}

static void on_rate(struct xf_rate_want *want)
{
    struct xf_op *op = want->arg;

    op->has_rate = true;
    begin(op);
}

static void begin(struct xf_op *op)
{
    if (run_is_stopped(op->run) || op->is_cancelled) {
        xf_op_end(op);
    } else if (op->run->ej->is_held) {
        xf_list_push_back(&op->run->ej->parked, &op->parked);
    } else if (take_rate(op)) {
        acquire(op);
    }
}

static void move(struct xf_op *op, unsigned state)
{
    XF_ASSERT(state < op->n_steps);
    XF_ASSERT(op->state == op->n_steps || op->state == state ||
              (op->steps[op->state].to & XF_TO(state)) != 0);
    XF_ASSERT(op->req == NULL);
    op->state = state;
}

void xf_op_go(struct xf_op *op, unsigned state)
{
    move(op, state);
    begin(op);
}

bool xf_op_retry(struct xf_op *op, unsigned state, int64_t retry_after_ms)
{
    struct xf_engine *e = op->run->e;

    if (op->tries + 1 >= XF_ENGINE_TRIES) {
        return false;
    }
    int64_t wait = xf_retry_wait_ms(
        XF_CLASS_RETRY, op->tries, retry_after_ms > 0 ? retry_after_ms : 0, &e->rng);
    op->tries++;
    if (op->tries > op->run->tries) {
        op->run->tries = op->tries;
    }
    (void)atomic_fetch_add(&e->n_retries, 1); /* a count */
    move(op, state);
    if (run_is_stopped(op->run) || op->is_cancelled) {
        xf_op_end(op);
    } else {
        xf_timer_in(e->loop, &op->timer, wait);
    }
    return true;
}

static void on_buf(struct xf_pool_want *want, struct xf_pool_buf buf)
{
    struct xf_op *op = want->arg;

    op->buf = buf;
    begin(op);
}

void xf_op_go_with_buf(struct xf_op *op, size_t size, unsigned state)
{
    struct xf_pool *pool = op->run->e->pool;

    move(op, state);
    if (op->buf.ptr != NULL && op->buf.size < size) {
        xf_pool_put(pool, &op->buf);
    }
    if (op->buf.ptr == NULL && size > 0 && !xf_pool_get(pool, size, &op->buf)) {
        op->pool_want.size = size;
        xf_pool_wait(pool, &op->pool_want);
        return;
    }
    begin(op);
}

/* Has the side been out of reach for so long that the work is better given back? */
static bool is_down_long(struct xf_op *op, const struct xf_s3_result *res)
{
    int64_t *since = &op->run->ej->down_since_ms[op->steps[op->state].side];
    int64_t now = xf_loop_mono_ms(op->run->e->loop);

    if (res->err.code != XF_E_UNREACHABLE) {
        *since = res->status != 0 ? 0 : *since;
        return false;
    }
    *since = *since == 0 ? now : *since;
    return now - *since >= DOWN_UNFIT_MS;
}

void xf_op_reply(void *arg, const struct xf_s3_result *res)
{
    struct xf_op *op = arg;
    struct xf_engine *e = op->run->e;
    const struct xf_step *step = &op->steps[op->state];
    enum xf_class cls = xf_code_class(res->err.code);
    bool is_down = res->err.code == XF_E_UNREACHABLE;
    bool is_unfit = cls == XF_CLASS_LOCAL || is_down_long(op, res);

    op->req = NULL;
    (void)atomic_fetch_sub(&e->n_in_flight, 1); /* a count */
    if (cls == XF_CLASS_SLOW_DOWN) {
        (void)atomic_fetch_add(&e->n_throttled, 1);
        op->want.has_begun = false; /* the others first: perhaps only this one is refused */
    }
    op->has_rate = op->has_rate && (cls == XF_CLASS_SLOW_DOWN || is_down); /* nothing came */
    op->maybe_done = op->maybe_done || res->maybe_done;
    xf_op_give(op, step->side, xf_op_how(res), res->retry_after_ms);
    for (int side = 0; side < XF_SIDE_N; side++) { /* the other one of a pair */
        xf_op_give(
            op, (enum xf_side)side, cls == XF_CLASS_NONE ? XF_LIMIT_OK : XF_LIMIT_NEUTRAL, -1);
    }
    if (op->is_cancelled || res->err.code == XF_E_CANCELLED) {
        xf_op_end(op);
    } else if (is_unfit && op->run->w != NULL) {
        xf_run_fail(op->run, XF_WORK_UNFIT, &res->err);
        xf_op_end(op);
    } else if (cls == XF_CLASS_SLOW_DOWN || (is_down && op->run->w != NULL)) {
        begin(op); /* the limit says when; no try is spent */
    } else if (cls == XF_CLASS_RETRY && (step->flags & XF_STEP_OWN_RETRY) == 0 &&
               xf_op_retry(op, op->state, res->retry_after_ms)) {
        XF_DEBUG("request.retried",
                 xf_f_c("step", step->name),
                 xf_f_code(res->err.code),
                 xf_f_err(&res->err));
    } else {
        step->done(op, res);
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

/* Only from the loop itself: here no op is inside a function. */
static void apply_stops(struct xf_engine *e)
{
    bool is_late = is_past_fence(e);

    XF_LIST_FOREACH (node, &e->runs) {
        struct xf_run *run = XF_CONTAINER_OF(node, struct xf_run, node);
        if (is_late) {
            run->is_stopping = true;
            run->stop = XF_STOP_HARD;
        }
        if (run->is_failed || run->is_stopping) {
            cancel_ops(run);
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
        begin(XF_CONTAINER_OF(xf_list_pop_front(&ej->parked), struct xf_op, parked));
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
    if (!xf_list_is_empty(&e->runs) && is_past_fence(e)) {
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
