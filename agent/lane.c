/*
 * lane.c - the thread, its orders in and its messages out.
 *
 * Stop order: the core pushes QUIT; the lane cancels all works, and when the last has ended stops
 * its loop; the core joins the thread, then frees engine, connections and loop.
 */
#include "agent/lane.h"

#include "common/base/log.h"
#include "common/rt/thread.h"
#include "common/s3/http.h"

#include <stdio.h>

/* Outcomes travel together: waking the core for each one cost as much as a tenth of a copy. */
enum { ORDERS_MAX = 65536, OBJECTS_MAX = 64, HOLD_MS = 5 };

enum order_kind {
    ORDER_START,
    ORDER_PROBE,
    ORDER_STOP,
    ORDER_STOP_ALL,
    ORDER_HOLD,
    ORDER_IN_FLIGHT,
    ORDER_DROP_JOB,
    ORDER_QUIT
};

struct order {
    enum order_kind kind;
    struct xf_work *work;
    struct xf_work_job *job; /* a reference */
    uint64_t task;
    uint32_t attempt;
    enum xf_engine_stop how;
    bool on;
    unsigned max;
};

struct xf_lane {
    struct xf_loop *loop;
    struct xf_http *http;
    struct xf_engine *engine;
    struct xf_queue *in;
    struct xf_queue *out;
    struct xf_thread thread;
    struct xf_lane_msg *held; /* outcomes that are not sent yet; NULL: none */
    struct xf_timer hold;     /* runs while there are some */
    bool is_quitting;
};

/* ---- messages out ---- */

void xf_lane_msg_free(struct xf_lane_msg *m)
{
    if (m != NULL) {
        xf_work_job_unref(m->job);
        xf_arena_fini(&m->arena);
        xf_xfree(m);
    }
}

static struct xf_lane_msg *
msg_new(struct xf_lane *lane, enum xf_lane_msg_kind kind, struct xf_work *w)
{
    struct xf_lane_msg *m = xf_xcalloc(1, sizeof(*m));

    m->kind = kind;
    m->lane = lane;
    m->work = w;
    return m;
}

static struct xf_str keep(struct xf_lane_msg *m, struct xf_str s)
{
    return s.len == 0 ? XF_STR_EMPTY : xf_arena_dup(&m->arena, s);
}

static void keep_result(struct xf_lane_msg *m, struct xf_result *to, const struct xf_result *r)
{
    *to = *r;
    to->etag = keep(m, r->etag);
    to->version_id = keep(m, r->version_id);
    to->source_etag = keep(m, r->source_etag);
    to->s3_code = keep(m, r->s3_code);
    to->message = keep(m, r->message);
}

static void send_held(struct xf_lane *lane)
{
    xf_timer_stop(lane->loop, &lane->hold);
    if (lane->held != NULL) {
        xf_queue_push_reserved(lane->out, XF_STEAL(lane->held));
    }
}

static void on_hold_over(struct xf_timer *t)
{
    send_held(t->arg);
}

/* What a work tells keeps its order: its end comes after its objects. */
static void send(struct xf_lane_msg *m)
{
    send_held(m->lane);
    xf_queue_push_reserved(m->lane->out, m);
}

static void on_object(void *arg, struct xf_work *w, uint32_t idx, const struct xf_result *r)
{
    struct xf_lane *lane = arg;
    struct xf_lane_msg *m = lane->held;

    if (m == NULL) {
        m = msg_new(lane, XF_LANE_OBJECTS, NULL);
        m->objects = xf_arena_calloc(&m->arena, OBJECTS_MAX, sizeof(*m->objects));
        lane->held = m;
        xf_timer_in(lane->loop, &lane->hold, HOLD_MS);
    }
    struct xf_lane_object *o = &m->objects[m->n_objects++];
    o->work = w;
    o->idx = idx;
    keep_result(m, &o->result, r);
    if (m->n_objects == OBJECTS_MAX) {
        send_held(lane);
    }
}

static void on_opened(void *arg, struct xf_work *w, const struct xf_work_opened *o)
{
    struct xf_lane_msg *m = msg_new(arg, XF_LANE_OPENED, w);

    m->opened = *o;
    m->opened.upload_id = keep(m, o->upload_id);
    m->opened.etag = keep(m, o->etag);
    send(m);
}

static void on_part(void *arg, struct xf_work *w, const struct xf_work_part *part)
{
    struct xf_lane_msg *m = msg_new(arg, XF_LANE_PART, w);

    m->part = *part;
    m->part.etag = keep(m, part->etag);
    send(m);
}

static void on_ended(void *arg, struct xf_work *w, const struct xf_work_end *end)
{
    struct xf_lane_msg *m = msg_new(arg, XF_LANE_ENDED, w);

    m->end = *end;
    if (end->has_result) {
        keep_result(m, &m->result, end->result);
    }
    m->end.result = &m->result;
    send(m);
}

static void on_notice(void *arg, struct xf_work_job *job, const char *code, const char *text)
{
    struct xf_lane_msg *m = msg_new(arg, XF_LANE_NOTICE, NULL);

    m->job = xf_work_job_ref(job);
    m->code = keep(m, xf_str_c(code));
    m->text = keep(m, xf_str_c(text));
    send(m);
}

static void on_probed(void *arg, struct xf_work_job *job, const struct xf_err *err)
{
    struct xf_lane_msg *m = msg_new(arg, XF_LANE_PROBED, NULL);

    m->job = xf_work_job_ref(job);
    m->err = *err;
    send(m);
}

/* ---- orders in ---- */

static void stop_when_idle(struct xf_lane *lane)
{
    if (lane->is_quitting && xf_engine_is_idle(lane->engine)) {
        xf_loop_stop(lane->loop);
    }
}

static void obey(struct xf_lane *lane, struct order *o)
{
    struct xf_engine *e = lane->engine;
    const struct xf_work_end stopped = {.how = XF_WORK_STOPPED};

    if (lane->is_quitting) {
        if (o->kind == ORDER_START) {
            on_ended(lane, o->work, &stopped);
        }
        return;
    }
    switch (o->kind) {
    case ORDER_START: xf_engine_start(e, o->work); break;
    case ORDER_PROBE: xf_engine_probe(e, o->job); break;
    case ORDER_STOP: xf_engine_stop(e, o->task, o->attempt, o->how); break;
    case ORDER_STOP_ALL: xf_engine_stop_all(e, o->how); break;
    case ORDER_HOLD: xf_engine_hold(e, o->job, o->on); break;
    case ORDER_IN_FLIGHT: xf_engine_set_in_flight(e, o->job, o->max); break;
    case ORDER_DROP_JOB: xf_engine_drop_job(e, o->job); break;
    case ORDER_QUIT:
        lane->is_quitting = true;
        xf_engine_stop_all(e, XF_STOP_HARD);
        stop_when_idle(lane);
        break;
    }
}

static void on_orders(void *arg)
{
    struct xf_lane *lane = arg;
    struct order *o = NULL;

    while ((o = xf_queue_pop(lane->in)) != NULL) {
        obey(lane, o);
        xf_work_job_unref(o->job);
        xf_xfree(o);
    }
}

static void on_turn(void *arg, int64_t mono_ms)
{
    struct xf_lane *lane = arg;

    (void)mono_ms; /* the engine reads the clock itself */
    xf_engine_on_turn(lane->engine);
    stop_when_idle(lane);
}

static void give(struct xf_lane *lane, struct order o)
{
    struct order *copy = xf_xmalloc(sizeof(*copy));

    *copy = o;
    if (copy->job != NULL) {
        (void)xf_work_job_ref(copy->job); /* the order's own */
    }
    xf_queue_push_reserved(lane->in, copy);
}

void xf_lane_start(struct xf_lane *lane, struct xf_work *w)
{
    give(lane, (struct order){.kind = ORDER_START, .work = w});
}

void xf_lane_probe(struct xf_lane *lane, struct xf_work_job *job)
{
    give(lane, (struct order){.kind = ORDER_PROBE, .job = job});
}

void xf_lane_stop(struct xf_lane *lane, uint64_t task, uint32_t attempt, enum xf_engine_stop how)
{
    give(lane, (struct order){.kind = ORDER_STOP, .task = task, .attempt = attempt, .how = how});
}

void xf_lane_stop_all(struct xf_lane *lane, enum xf_engine_stop how)
{
    give(lane, (struct order){.kind = ORDER_STOP_ALL, .how = how});
}

void xf_lane_hold(struct xf_lane *lane, struct xf_work_job *job, bool on)
{
    give(lane, (struct order){.kind = ORDER_HOLD, .job = job, .on = on});
}

void xf_lane_set_in_flight(struct xf_lane *lane, struct xf_work_job *job, unsigned max)
{
    give(lane, (struct order){.kind = ORDER_IN_FLIGHT, .job = job, .max = max});
}

void xf_lane_drop_job(struct xf_lane *lane, struct xf_work_job *job)
{
    give(lane, (struct order){.kind = ORDER_DROP_JOB, .job = job});
}

void xf_lane_set_fence(struct xf_lane *lane, int64_t mono_ms)
{
    xf_engine_set_fence(lane->engine, mono_ms);
}

void xf_lane_stats(const struct xf_lane *lane, struct xf_engine_stats *out)
{
    xf_engine_stats(lane->engine, out);
}

/* ---- life ---- */

static void run(void *arg)
{
    struct xf_lane *lane = arg;

    xf_loop_run(lane->loop);
}

static void free_parts(struct xf_lane *lane)
{
    xf_engine_free(lane->engine);
    if (lane->loop != NULL) {
        send_held(lane);
    }
    xf_http_free(lane->http);
    if (lane->in != NULL) {
        xf_queue_detach(lane->in);
    }
    xf_queue_free(lane->in);
    xf_loop_free(lane->loop);
    xf_xfree(lane);
}

static enum xf_code build(struct xf_lane *lane, const struct xf_lane_opts *o, struct xf_err *err)
{
    struct xf_http_opts http = {0};
    const struct xf_engine_opts engine = {
        .pool_bytes = o->pool_bytes,
        .max_objects = o->max_objects,
        .max_in_flight = o->max_in_flight,
        .seed = o->seed,
        .creds = o->creds,
        .creds_arg = o->creds_arg,
        .metrics = o->metrics,
        .events = {on_object, on_opened, on_part, on_ended, on_notice, on_probed, lane},
    };
    struct xf_engine_opts full = engine;

    if (o->http != NULL) {
        http = *o->http;
    }
    if (o->max_conns != 0) {
        http.max_conns = o->max_conns;
    }
    XF_TRY(xf_loop_new(NULL, &lane->loop, err));
    XF_TRY(xf_queue_new(ORDERS_MAX, &lane->in, err));
    XF_TRY(xf_queue_attach(lane->in, lane->loop, on_orders, lane, err));
    XF_TRY(xf_http_curl_new(lane->loop, &http, &lane->http, err));
    full.loop = lane->loop;
    full.http = lane->http;
    XF_TRY(xf_engine_new(&full, &lane->engine, err));
    xf_loop_on_turn(lane->loop, on_turn, lane);
    return XF_OK;
}

enum xf_code xf_lane_new(const struct xf_lane_opts *o, struct xf_lane **out, struct xf_err *err)
{
    struct xf_lane *lane = xf_xcalloc(1, sizeof(*lane));
    char name[16];
    enum xf_code rc = build(lane, o, err);

    lane->out = o->out;
    lane->hold = (struct xf_timer){.cb = on_hold_over, .arg = lane};
    (void)snprintf(name, sizeof(name), "xf-lane-%u", o->no); /* cut is fine */
    if (rc == XF_OK) {
        rc = xf_thread_start(&lane->thread, name, run, lane, err);
    }
    if (rc != XF_OK) {
        free_parts(lane);
        return rc;
    }
    *out = lane;
    return XF_OK;
}

void xf_lane_free(struct xf_lane *lane)
{
    if (lane == NULL) {
        return;
    }
    give(lane, (struct order){.kind = ORDER_QUIT});
    xf_thread_join(&lane->thread);
    on_orders(lane); /* what was pushed after QUIT: nothing begins any more */
    free_parts(lane);
}
