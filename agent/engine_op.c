/*
 * engine_op.c - one op: permits, bytes, buffers, tries, its end.
 *
 *   [turn] -> [buffer] -> begin -> [parked] -> [bytes, requests] -> permit(s) -> launch -> reply ->
 * done -> next step, or end ^                                          |
 *                +-------- wait (retry, throttled) <--------+
 *
 * Invariants:
 * 1. An op has at most one of: a request, a timer, a place in a line. With none it is inside a
 *    function of the engine.
 * 2. An op is freed only by xf_op_end(), with no request in flight; nobody touches it after a call
 *    that may end it (xf_op_go, xf_op_go_with_buf, a step's done).
 * 3. A write starts only before the fence, by the clock read at that moment.
 */
#include "agent/engine_op.h"

#include "agent/engine_int.h"
#include "agent/engine_sum.h"
#include "common/base/log.h"
#include "common/base/retry.h"

void xf_op_on_timer(struct xf_timer *t)
{
    xf_op_begin(t->arg);
}

static void on_permit(struct xf_limit_want *want);
static void on_rate(struct xf_rate_want *want);
static void on_request(struct xf_rate_want *want);
static void on_turn(struct xf_bulk_want *want);
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
    op->request_want = (struct xf_rate_want){.go = on_request, .arg = op};
    op->bulk_want = (struct xf_bulk_want){.go = on_turn, .arg = op};
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
    xf_rate_forget(run->ej->requests, &op->request_want);
    for (int side = 0; side < XF_SIDE_N; side++) {
        xf_op_give(op, (enum xf_side)side, XF_LIMIT_NEUTRAL, -1);
    }
    xf_pool_forget(e->pool, &op->pool_want);
    xf_pool_put(e->pool, &op->buf);
    xf_bulk_forget(run->ej->bulk, &op->bulk_want);
    if (op->has_turn) {
        op->has_turn = false;
        xf_bulk_give(run->ej->bulk, op->bulk_want.mem);
    }
    xf_stream_free(op->stream);
    xf_list_remove(&op->parked);
    xf_list_remove(&op->node);
    xf_s3_attrs_free(op->attrs);
    xf_summing_fini(&op->summing);
    xf_buf_fini(&op->dst_key);
    xf_buf_fini(&op->tags);
    xf_buf_fini(&op->upload_id);
    xf_buf_fini(&op->empty_id);
    xf_buf_fini(&op->spared);
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
void xf_run_cancel_ops(struct xf_run *run)
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

bool xf_engine_is_past_fence(const struct xf_engine *e)
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
    if ((step->flags & XF_STEP_WRITE) != 0 && xf_engine_is_past_fence(e)) {
        XF_WARN("lease.expired", xf_f_c("step", step->name));
        xf_op_end(op); /* the next turn stops the rest */
        return;
    }
    op->asked_ms = xf_loop_mono_ms(e->loop);
    op->want.has_begun = true;
    op->asked_sums = 0;
    op->has_request = false; /* the next try is another one */
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
    if (op->run->ej->is_held || xf_run_is_stopped(op->run)) {
        for (int side = 0; side < XF_SIDE_N; side++) {
            xf_op_give(op, (enum xf_side)side, XF_LIMIT_NEUTRAL, -1);
        }
        xf_op_begin(op);
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

/* Likewise its requests, of which a streamed pair is two. */
static bool take_request(struct xf_op *op)
{
    struct xf_ejob *ej = op->run->ej;

    if (op->has_request) {
        return true;
    }
    xf_rate_set(ej->requests, atomic_load(&ej->job->lane_requests));
    op->request_want.bytes = (op->steps[op->state].flags & XF_STEP_BOTH) != 0 ? 2000 : 1000;
    op->has_request = xf_rate_take(ej->requests, op->request_want.bytes);
    if (!op->has_request) {
        xf_rate_wait(ej->requests, &op->request_want);
    }
    return op->has_request;
}

static void on_request(struct xf_rate_want *want)
{
    struct xf_op *op = want->arg;

    op->has_request = true;
    xf_op_begin(op);
}

static void on_rate(struct xf_rate_want *want)
{
    struct xf_op *op = want->arg;

    op->has_rate = true;
    xf_op_begin(op);
}

void xf_op_begin(struct xf_op *op)
{
    if (xf_run_is_stopped(op->run) || op->is_cancelled) {
        xf_op_end(op);
    } else if (op->run->ej->is_held) {
        xf_list_push_back(&op->run->ej->parked, &op->parked);
    } else if (take_rate(op) && take_request(op)) {
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
    xf_op_begin(op);
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
    if (xf_run_is_stopped(op->run) || op->is_cancelled) {
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
    xf_op_begin(op);
}

/* Into op->buf; op->pool_want has the size. */
static void get_buf(struct xf_op *op)
{
    struct xf_pool *pool = op->run->e->pool;
    size_t size = op->pool_want.size;

    if (op->buf.ptr == NULL && size > 0 && !xf_pool_get(pool, size, &op->buf)) {
        xf_pool_wait(pool, &op->pool_want);
        return;
    }
    xf_op_begin(op);
}

static void on_turn(struct xf_bulk_want *want)
{
    struct xf_op *op = want->arg;

    op->has_turn = true;
    get_buf(op);
}

/* A large body waits for its turn before it takes memory; it has it until the op ends. */
static bool take_turn(struct xf_op *op, size_t size)
{
    struct xf_bulk *bulk = op->run->ej->bulk;

    if (op->has_turn || (op->len != 0 ? op->len : op->size) < XF_BULK_MIN) {
        return true;
    }
    op->bulk_want.mem = size;
    op->has_turn = xf_bulk_take(bulk, size);
    if (!op->has_turn) {
        xf_bulk_wait(bulk, &op->bulk_want);
    }
    return op->has_turn;
}

void xf_op_go_with_buf(struct xf_op *op, size_t size, unsigned state)
{
    move(op, state);
    if (op->buf.ptr != NULL && op->buf.size < size) {
        xf_pool_put(op->run->e->pool, &op->buf);
    }
    op->pool_want.size = size;
    if (take_turn(op, size)) {
        get_buf(op);
    }
}

/* The coordinator holds the job for an endpoint, and tells of a host's credentials. */
static void give_back_as(struct xf_op *op, enum xf_code code, const struct xf_err *why)
{
    struct xf_err err;

    (void)XF_FAIL(&err, code, "%s", why->msg);
    xf_run_fail(op->run, XF_WORK_UNFIT, &err);
    xf_op_end(op);
}

/* Does the step's `done` see to this error's repeats? */
static bool is_own(const struct xf_step *step, const struct xf_s3_result *res)
{
    return (step->flags & XF_STEP_OWN_RETRY) != 0 ||
           ((step->flags & XF_STEP_BUFFERED) != 0 && res->err.code == XF_E_CHECKSUM);
}

void xf_op_reply(void *arg, const struct xf_s3_result *res)
{
    struct xf_op *op = arg;
    struct xf_engine *e = op->run->e;
    const struct xf_step *step = &op->steps[op->state];
    enum xf_class cls = xf_code_class(res->err.code);
    enum xf_downness downness = xf_op_downness(op, res);
    bool is_down = downness == XF_DOWN || downness == XF_DOWN_LONG;

    op->req = NULL;
    (void)atomic_fetch_sub(&e->n_in_flight, 1); /* a count */
    if (cls == XF_CLASS_SLOW_DOWN) {
        (void)atomic_fetch_add(&e->n_throttled, 1);
        op->want.has_begun = false; /* the others first: perhaps only this one is refused */
    }
    op->has_rate = op->has_rate && (cls == XF_CLASS_SLOW_DOWN || is_down); /* nothing came */
    op->maybe_done = op->maybe_done || res->maybe_done;
    xf_op_give(op, step->side, is_down ? XF_LIMIT_DOWN : xf_op_how(res), res->retry_after_ms);
    for (int side = 0; side < XF_SIDE_N; side++) { /* the other one of a pair */
        xf_op_give(
            op, (enum xf_side)side, cls == XF_CLASS_NONE ? XF_LIMIT_OK : XF_LIMIT_NEUTRAL, -1);
    }
    if (cls == XF_CLASS_NONE) {
        xf_sums_accepted(op);
    }
    if (op->is_cancelled || res->err.code == XF_E_CANCELLED) {
        xf_op_end(op);
    } else if (xf_sums_refused(op, res)) {
        xf_op_begin(op);
    } else if (cls == XF_CLASS_LOCAL && op->run->w != NULL) {
        xf_run_fail(op->run, XF_WORK_UNFIT, &res->err);
        xf_op_end(op);
    } else if (downness == XF_DOWN_LONG && op->run->w != NULL) {
        give_back_as(op, XF_E_UNREACHABLE, &res->err);
    } else if (downness == XF_KEYS_BAD) {
        give_back_as(op, XF_E_CREDS, &res->err);
    } else if (cls == XF_CLASS_SLOW_DOWN || (is_down && op->run->w != NULL)) {
        xf_op_begin(op);                   /* the limit says when; no try is spent */
    } else if ((downness == XF_DOUBTFUL || /* refused: nothing was done */
                (cls == XF_CLASS_RETRY && !is_own(step, res))) &&
               xf_op_retry(op, op->state, res->retry_after_ms)) {
        XF_DEBUG("request.retried",
                 xf_f_c("step", step->name),
                 xf_f_code(res->err.code),
                 xf_f_err(&res->err));
    } else {
        step->done(op, res);
    }
}
