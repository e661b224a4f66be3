/*
 * runner.c - sessions, leases, beats, orders, and the end.
 *
 * Stop order: drain (nothing new; what has begun ends, then is cancelled) -> last reports
 * acknowledged, or the time is up -> bye -> on_drained. xf_runner_free(): link first, so nothing is
 * said any more; then the lanes, whose works come back through the queue; then tasks and jobs.
 */
#include "agent/runner.h"

#include "agent/runner_int.h"
#include "common/base/log.h"

enum {
    TASKS_MAX = 64,
    LANE_OBJECTS = 2000, /* held a lane at least: one batch being done, one ready */
    AHEAD_MS = 1000,     /* held at least: what is done meanwhile; a lease takes a commit */
    PACE_MS = 1000,      /* the pace forgets what is older than some of these */
    LEASE_AGAIN_MS = 1000,
    MSGS_MAX = 65536,
    BEAT_BYTES_MAX = 8 * 1024 * 1024,
    CLOSE_SLACK_MS = 5000,
    BYE_MS = 2000
};

/* ---- leases ---- */

static void stop_all(struct xf_runner *r, enum xf_engine_stop stop);
static void on_leased(void *arg, const struct xf_msg_lease_reply *m, const struct xf_err *err);

static bool takes_work(const struct xf_runner *r)
{
    return r->is_up && !r->is_drained && !r->is_closing;
}

/* How many objects to hold. Few when they are slow, so that other agents get theirs. */
static uint64_t wanted_objects(const struct xf_runner *r)
{
    uint64_t least = (uint64_t)LANE_OBJECTS * r->n_lanes;
    uint64_t ahead = (uint64_t)(r->pace * AHEAD_MS / 1000.0);

    return ahead > least ? ahead : least;
}

void xf_runner_want(struct xf_runner *r)
{
    uint64_t held = 0;

    if (!takes_work(r) || r->lease_open || xf_timer_is_started(&r->lease_timer) ||
        r->n_tasks >= r->o.max_tasks) {
        return;
    }
    XF_LIST_FOREACH (node, &r->tasks) {
        const struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        held += t->state == XF_RTASK_ENDED ? 0 : t->n_left;
    }
    uint64_t most = wanted_objects(r);
    if (held >= most) {
        return;
    }
    size_t room = r->o.max_tasks - r->n_tasks;
    const struct xf_msg_lease m = {
        .free_tasks = room < XF_TASKS_MAX ? (uint32_t)room : XF_TASKS_MAX,
        .free_objects = (uint32_t)(most - held),
        .free_bytes = UINT64_MAX >> 1,
        .kinds = XF_TASK_ALL,
    };
    r->lease_open = true;
    xf_link_lease(r->link, &m, on_leased, r);
}

static void on_lease_timer(struct xf_timer *t)
{
    xf_runner_want(t->arg);
}

static void on_leased(void *arg, const struct xf_msg_lease_reply *m, const struct xf_err *err)
{
    struct xf_runner *r = arg;

    r->lease_open = false;
    if (err->code != XF_OK) {
        xf_timer_in(r->o.loop, &r->lease_timer, LEASE_AGAIN_MS);
        return;
    }
    for (uint32_t i = 0; i < m->n_tasks; i++) {
        xf_rtask_accept(r, &m->tasks[i]);
    }
    if (r->is_drained || r->is_closing) {
        stop_all(r,
                 XF_STOP_SOFT); /* it was on its way when the drain began: it goes back unbegun */
    }
    XF_LIST_FOREACH (node, &r->jobs) {
        struct xf_rjob *j = XF_CONTAINER_OF(node, struct xf_rjob, node);
        xf_rtask_start_all(r, j);
    }
    if (m->n_tasks == 0) {
        xf_timer_in(
            r->o.loop, &r->lease_timer, m->wait_ms > 0 ? (int64_t)m->wait_ms : LEASE_AGAIN_MS);
    }
    xf_runner_want(r);
}

/* ---- fence ---- */

void xf_runner_set_fence(struct xf_runner *r, int64_t sent_ms)
{
    r->fence_ms = sent_ms + r->ttl_ms - r->margin_ms;
    for (unsigned i = 0; i < r->n_lanes; i++) {
        xf_lane_set_fence(r->lanes[i], r->fence_ms);
    }
}

static void start_all(struct xf_runner *r)
{
    XF_LIST_FOREACH (node, &r->jobs) {
        xf_rtask_start_all(r, XF_CONTAINER_OF(node, struct xf_rjob, node));
    }
}

/* ---- orders ---- */

static void stop_all(struct xf_runner *r, enum xf_engine_stop stop)
{
    XF_LIST_FOREACH (node, &r->tasks) {
        xf_rtask_stop(XF_CONTAINER_OF(node, struct xf_rtask, node), stop, XF_HOW_DRAINED, NULL);
    }
}

static void obey(struct xf_runner *r, const struct xf_msg_order *o)
{
    struct xf_rtask *t = NULL;
    struct xf_rjob *j = NULL;

    switch ((enum xf_order_kind)o->kind) {
    case XF_ORDER_RUN:
    case XF_ORDER_PAUSE:
    case XF_ORDER_CANCEL:
        j = xf_rjob_find(r, o->job);
        if (j != NULL) {
            xf_rjob_order(j, o);
        }
        break;
    case XF_ORDER_DRAIN:
        if (!r->is_drained) {
            r->is_drained = true;
            XF_INFO("agent.drained", xf_f_u64("tasks", r->n_tasks));
            stop_all(r, XF_STOP_SOFT);
        }
        break;
    case XF_ORDER_UNDRAIN: r->is_drained = false; break;
    case XF_ORDER_DROP_TASK:
        t = xf_rtask_find(r, o->task, o->attempt);
        if (t != NULL) {
            xf_rtask_drop(t);
        }
        break;
    case XF_ORDER_N: break;
    }
}

static void on_orders(void *arg, const struct xf_msg_order *orders, size_t n)
{
    struct xf_runner *r = arg;

    for (size_t i = 0; i < n; i++) {
        obey(r, &orders[i]);
    }
    xf_runner_want(r);
}

/* ---- session ---- */

static size_t get_held(void *arg, struct xf_msg_held *out, size_t max)
{
    struct xf_runner *r = arg;
    size_t n = 0;

    XF_LIST_FOREACH (node, &r->tasks) {
        const struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        if (n < max) {
            out[n++] = (struct xf_msg_held){.task = t->id, .attempt = t->attempt};
        }
    }
    return n;
}

static bool is_kept(const struct xf_msg_hello_reply *m, const struct xf_rtask *t)
{
    for (uint32_t i = 0; i < m->n_kept; i++) {
        if (m->kept[i].task == t->id && m->kept[i].attempt == t->attempt) {
            return true;
        }
    }
    return false;
}

static void on_up(void *arg, const struct xf_msg_hello_reply *m)
{
    struct xf_runner *r = arg;

    r->is_up = true;
    r->ttl_ms = m->lease_ttl_ms;
    r->margin_ms = m->margin_ms;
    r->checkpoint_ms = m->checkpoint_ms;
    r->checkpoint_max = m->checkpoint_max > 0 ? m->checkpoint_max : 1;
    XF_LIST_FOREACH (node, &r->tasks) {
        struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        if (!is_kept(m, t)) {
            xf_rtask_drop(t);
        }
    }
    xf_runner_set_fence(r, xf_link_renewed_ms(r->link));
    XF_INFO("session.began", xf_f_u64("kept", r->n_tasks));
    on_orders(r, m->orders, m->n_orders);
    XF_LIST_FOREACH (node, &r->jobs) {
        xf_rjob_on_up(XF_CONTAINER_OF(node, struct xf_rjob, node));
    }
    xf_runner_want(r);
}

static void on_down(void *arg)
{
    struct xf_runner *r = arg;

    r->is_up = false;
    XF_WARN("session.ended", xf_f_u64("held", r->n_tasks));
}

static void on_refused(void *arg, const struct xf_err *err)
{
    struct xf_runner *r = arg;

    XF_ERROR("session.refused", xf_f_code(err->code), xf_f_err(err));
    r->o.on_refused(r->o.arg, err);
}

/* ---- beats ---- */

static double rate(uint64_t now, uint64_t before, int64_t ms)
{
    return ms > 0 ? (double)(now - before) * 1000.0 / (double)ms : 0.0;
}

static void fill_numbers(struct xf_runner *r, struct xf_msg_beat *m)
{
    struct xf_runner_stats s;
    int64_t now = xf_loop_mono_ms(r->o.loop);

    xf_runner_stats(r, &s);
    m->in_flight = s.sum.in_flight;
    m->objects_s = rate(s.sum.objects, r->last.objects, now - r->last_ms);
    m->bytes_s = rate(s.sum.bytes, r->last.bytes, now - r->last_ms);
    m->throttled = s.sum.throttled - r->last.throttled;
    m->retries = s.sum.retries - r->last.retries;
    double weight = (double)(now - r->last_ms) / PACE_MS;
    r->pace += (m->objects_s - r->pace) * (weight < 1.0 ? weight : 1.0);
    r->last = s.sum;
    r->last_ms = now;
}

static void fill_notices(struct xf_runner *r, struct xf_msg_beat *m, struct xf_arena *a)
{
    struct xf_msg_notice *out = xf_arena_calloc(a, r->n_notices + 1, sizeof(*out));

    m->notices = out;
    for (size_t i = 0; i < r->n_notices; i++) {
        r->notices[i].sent = true;
        out[m->n_notices++] = (struct xf_msg_notice){
            .job = xf_str_c(r->notices[i].job),
            .code = xf_str_c(r->notices[i].code),
            .text = xf_str_c(r->notices[i].text),
        };
    }
}

void xf_runner_add_late(struct xf_runner *r, uint64_t task, uint32_t attempt)
{
    if (r->n_late < XF_HELD_MAX) {
        r->late = xf_xrealloc(r->late, r->n_late + 1, sizeof(*r->late));
        r->late[r->n_late++] = (struct xf_late){.task = task, .attempt = attempt};
        xf_link_beat_soon(r->link);
    }
}

static void fill_late(struct xf_runner *r, struct xf_msg_beat *m, struct xf_msg_item *items)
{
    for (size_t i = 0; i < r->n_late && m->n_items < XF_ITEMS_MAX; i++) {
        r->late[i].sent = true;
        items[m->n_items++] = (struct xf_msg_item){.task = r->late[i].task,
                                                   .attempt = r->late[i].attempt,
                                                   .kind = (uint32_t)XF_ITEM_GIVE_BACK,
                                                   .how = (uint32_t)XF_HOW_EXPIRED};
    }
}

/* The coordinator has taken it, or has nothing to do about it. */
static void forget_late(struct xf_runner *r, const struct xf_msg_ack *ack)
{
    for (size_t i = 0; i < r->n_late; i++) {
        struct xf_late *late = &r->late[i];
        if (late->task == ack->task && late->attempt == ack->attempt && late->sent &&
            (ack->code == XF_OK || ack->code == (uint32_t)XF_E_STALE)) {
            *late = r->late[--r->n_late];
            return;
        }
    }
}

static void fill_beat(void *arg, struct xf_msg_beat *m, struct xf_arena *a)
{
    struct xf_runner *r = arg;
    size_t bytes = 0;
    struct xf_msg_item *items = xf_arena_calloc(a, r->n_tasks + r->n_late + 1, sizeof(*items));
    struct xf_msg_held *held = xf_arena_calloc(a, r->n_tasks + 1, sizeof(*held));

    m->items = items;
    m->held = held;
    XF_LIST_FOREACH (node, &r->tasks) {
        struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        held[m->n_held++] = (struct xf_msg_held){.task = t->id, .attempt = t->attempt};
        if (bytes < BEAT_BYTES_MAX && m->n_items < XF_ITEMS_MAX && xf_rtask_is_fresh(t)) {
            bytes += xf_rtask_fill(t, &items[m->n_items++], a);
        }
    }
    fill_late(r, m, items);
    fill_numbers(r, m);
    fill_notices(r, m, a);
}

static void drop_notices(struct xf_runner *r, bool sent_only)
{
    size_t kept = 0;

    for (size_t i = 0; i < r->n_notices; i++) {
        struct xf_notice *n = &r->notices[i];
        if (sent_only && !n->sent) {
            r->notices[kept++] = *n;
            continue;
        }
        xf_xfree(n->job);
        xf_xfree(n->code);
        xf_xfree(n->text);
    }
    r->n_notices = kept;
}

static void on_beat(void *arg, const struct xf_msg_beat_reply *m, int64_t sent_ms)
{
    struct xf_runner *r = arg;

    xf_runner_set_fence(r, sent_ms);
    for (uint32_t i = 0; i < m->n_acks; i++) {
        struct xf_rtask *t = xf_rtask_find(r, m->acks[i].task, m->acks[i].attempt);
        forget_late(r, &m->acks[i]);
        if (t != NULL) {
            xf_rtask_acked(t, (enum xf_code)m->acks[i].code);
        }
    }
    if (m->checkpoint_max > 0) {
        r->checkpoint_max = m->checkpoint_max;
    }
    drop_notices(r, true);
    on_orders(r, m->orders, m->n_orders);
    start_all(r);
    xf_runner_check_drain(r);
}

static void on_beat_lost(void *arg)
{
    struct xf_runner *r = arg;

    XF_LIST_FOREACH (node, &r->tasks) {
        xf_rtask_lost(XF_CONTAINER_OF(node, struct xf_rtask, node));
    }
    for (size_t i = 0; i < r->n_notices; i++) {
        r->notices[i].sent = false;
    }
    for (size_t i = 0; i < r->n_late; i++) {
        r->late[i].sent = false;
    }
}

void xf_runner_note(struct xf_runner *r, const char *job, const char *code, struct xf_str text)
{
    if (r->n_notices < XF_NOTICES_MAX) {
        r->notices[r->n_notices++] = (struct xf_notice){
            xf_xstrdup(job), xf_xstrdup(code), xf_str_dup(xf_str_sub(text, 0, XF_TEXT_MAX)), false};
    }
}

/* ---- what the lanes say ---- */

static void on_msgs(void *arg)
{
    struct xf_runner *r = arg;

    for (;;) {
        XF_AUTO(xf_lane_msg) m = xf_queue_pop(r->msgs);
        if (m == NULL) {
            break;
        }
        if (m->kind == XF_LANE_OBJECTS) {
            for (size_t i = 0; i < m->n_objects; i++) {
                xf_rtask_on_object(m->objects[i].work->owner, &m->objects[i]);
            }
        } else if (m->kind == XF_LANE_NOTICE) {
            xf_runner_note(r, m->job->id, m->code.ptr, m->text);
        } else if (m->kind == XF_LANE_PROBED) {
            xf_rjob_probed(r, m->job, &m->err);
        } else {
            xf_rtask_on_msg(m->work->owner, m);
        }
    }
    xf_runner_want(r);
    xf_runner_check_drain(r);
}

/* ---- drain ---- */

static void on_bye(void *arg, const struct xf_err *err)
{
    struct xf_runner *r = arg;

    (void)err; /* it was the last word; nothing depends on it */
    r->o.on_drained(r->o.arg);
}

static void close_now(struct xf_runner *r)
{
    if (r->is_closed) {
        return;
    }
    r->is_closed = true;
    xf_timer_stop(r->o.loop, &r->drain_timer);
    XF_INFO("agent.closing", xf_f_u64("unreported", r->n_tasks));
    xf_link_bye(r->link, XF_STR_LIT("drained"), BYE_MS, on_bye, r);
}

void xf_runner_check_drain(struct xf_runner *r)
{
    if (r->is_closing && r->n_tasks == 0) {
        close_now(r);
    }
}

static void on_drain_timer(struct xf_timer *t)
{
    struct xf_runner *r = t->arg;

    if (r->hard) {
        close_now(r);
        return;
    }
    r->hard = true;
    stop_all(r, XF_STOP_HARD);
    xf_timer_at(r->o.loop, &r->drain_timer, r->close_by_ms);
}

void xf_runner_drain(struct xf_runner *r, int64_t grace_ms)
{
    if (r->is_closing) {
        return;
    }
    r->is_closing = true;
    r->close_by_ms = xf_loop_mono_ms(r->o.loop) + grace_ms + CLOSE_SLACK_MS;
    XF_INFO("agent.draining", xf_f_u64("tasks", r->n_tasks), xf_f_ms("grace_ms", grace_ms));
    stop_all(r, XF_STOP_SOFT);
    xf_timer_in(r->o.loop, &r->drain_timer, grace_ms);
    xf_runner_check_drain(r);
}

/* ---- life ---- */

static const struct xf_link_events link_events = {
    .get_held = get_held,
    .on_up = on_up,
    .on_down = on_down,
    .on_refused = on_refused,
    .fill_beat = fill_beat,
    .on_beat = on_beat,
    .on_beat_lost = on_beat_lost,
    .on_orders = on_orders,
};

static enum xf_code open_lanes(struct xf_runner *r, struct xf_err *err)
{
    const struct xf_runner_opts *o = &r->o;

    r->lanes = xf_xcalloc(o->lanes, sizeof(struct xf_lane *));
    for (unsigned i = 0; i < o->lanes; i++) {
        const struct xf_lane_opts lane = {
            .no = i,
            .out = r->msgs,
            .pool_bytes = o->pool_bytes / o->lanes,
            .max_objects = o->max_objects / o->lanes,
            .max_in_flight = o->max_in_flight / o->lanes,
            .seed = xf_rng_u64(&r->rng),
            .http = o->http,
            .creds = o->creds,
            .creds_arg = o->creds_arg,
            .metrics = o->metrics,
        };
        XF_TRY(xf_lane_new(&lane, &r->lanes[i], err));
        r->n_lanes++;
    }
    return XF_OK;
}

static void open_link(struct xf_runner *r)
{
    r->link = xf_link_new(&(struct xf_link_opts){
        .loop = r->o.loop,
        .bus = r->o.bus,
        .events = &link_events,
        .arg = r,
        .agent_id = r->o.agent_id,
        .instance = r->o.instance,
        .version = r->o.version,
        .host = r->o.host,
        .token = r->o.token,
        .lanes = r->n_lanes,
        .memory_bytes = r->o.pool_bytes,
        .seed = xf_rng_u64(&r->rng),
    });
}

enum xf_code
xf_runner_new(const struct xf_runner_opts *o, struct xf_runner **out, struct xf_err *err)
{
    XF_AUTO(xf_runner) r = xf_xcalloc(1, sizeof(*r));

    r->o = *o;
    r->o.max_tasks = o->max_tasks != 0 ? o->max_tasks : TASKS_MAX;
    xf_list_init(&r->jobs);
    xf_list_init(&r->tasks);
    r->checkpoint_max = 500;
    r->lease_timer = (struct xf_timer){.cb = on_lease_timer, .arg = r};
    r->drain_timer = (struct xf_timer){.cb = on_drain_timer, .arg = r};
    if (o->seed != 0) {
        xf_rng_init(&r->rng, o->seed);
    } else {
        xf_rng_init_os(&r->rng);
    }
    if (o->lanes == 0 || o->pool_bytes / o->lanes < ((size_t)16 << 20)) {
        return XF_FAIL(err, XF_E_INVAL, "an agent needs a lane, and 16 MiB of pool for each");
    }
    XF_TRY(xf_queue_new(MSGS_MAX, &r->msgs, err));
    XF_TRY(xf_queue_attach(r->msgs, o->loop, on_msgs, r, err));
    XF_TRY(open_lanes(r, err));
    open_link(r);
    *out = XF_STEAL(r);
    return XF_OK;
}

/* The lanes are gone: their last messages give the works back. */
static void take_last(struct xf_runner *r)
{
    for (;;) {
        XF_AUTO(xf_lane_msg) m = xf_queue_pop(r->msgs);
        if (m == NULL) {
            break;
        }
        if (m->kind == XF_LANE_ENDED) {
            struct xf_rtask *t = m->work->owner;
            t->lane = NULL;
            t->state = XF_RTASK_ENDED;
            if (t->is_dropped) {
                xf_rtask_free(t);
            }
        }
    }
}

void xf_runner_free(struct xf_runner *r)
{
    if (r == NULL) {
        return;
    }
    xf_link_free(r->link);
    r->is_up = false;
    for (unsigned i = 0; i < r->n_lanes; i++) {
        xf_lane_free(r->lanes[i]);
    }
    r->n_lanes = 0;
    if (r->msgs != NULL) {
        take_last(r);
        xf_queue_detach(r->msgs);
    }
    XF_LIST_FOREACH (node, &r->tasks) {
        xf_rtask_free(XF_CONTAINER_OF(node, struct xf_rtask, node));
    }
    XF_LIST_FOREACH (node, &r->jobs) {
        xf_rjob_free(XF_CONTAINER_OF(node, struct xf_rjob, node));
    }
    drop_notices(r, false);
    xf_xfree(r->late);
    xf_timer_stop(r->o.loop, &r->lease_timer);
    xf_timer_stop(r->o.loop, &r->drain_timer);
    xf_queue_free(r->msgs);
    xf_xfree(r->lanes);
    xf_xfree(r);
}

void xf_runner_stats(const struct xf_runner *r, struct xf_runner_stats *out)
{
    *out = (struct xf_runner_stats){
        .tasks = r->n_tasks, .is_up = r->is_up, .is_draining = r->is_drained || r->is_closing};
    XF_LIST_FOREACH (node, &r->jobs) {
        out->jobs++;
    }
    for (unsigned i = 0; i < r->n_lanes; i++) {
        struct xf_engine_stats s;
        xf_lane_stats(r->lanes[i], &s);
        out->sum.objects += s.objects;
        out->sum.bytes += s.bytes;
        out->sum.through += s.through;
        out->sum.throttled += s.throttled;
        out->sum.retries += s.retries;
        out->sum.in_flight += s.in_flight;
    }
}
