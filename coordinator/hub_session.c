/*
 * hub_session.c - sessions: their beginning and end, time, and the orders that wait for a poll.
 */
#include "common/base/log.h"
#include "coordinator/hub_int.h"

/* ---- life ---- */

static void on_poll_timer(struct xf_timer *t)
{
    xf_session_answer_poll(t->arg, true);
}

static uint64_t new_id(struct xf_hub *h)
{
    uint64_t id = xf_rng_u64(&h->rng);

    while (id == 0 || xf_hub_find(h, id) != NULL) {
        id = xf_rng_u64(&h->rng);
    }
    return id;
}

struct session *
xf_session_new(struct xf_hub *h, const struct xf_msg_hello *m, struct xf_str instance)
{
    struct session *s = xf_xcalloc(1, sizeof(*s));

    s->hub = h;
    s->pub.id = new_id(h);
    s->pub.agent_id = xf_arena_dup(&s->arena, m->agent_id);
    s->pub.version = xf_arena_dup(&s->arena, m->version);
    s->pub.host = xf_arena_dup(&s->arena, m->host);
    s->pub.lanes = m->lanes;
    s->pub.memory_bytes = m->memory_bytes;
    s->pub.began_ms = xf_loop_mono_ms(h->o.loop);
    s->pub.last_seen_ms = s->pub.began_ms;
    memcpy(s->pub.instance, instance.ptr, XF_INSTANCE_LEN);
    for (size_t i = 0; i < CHAN_N; i++) {
        xf_buf_init(&s->chans[i].kept, XF_MSG_MAX);
    }
    s->poll_timer = (struct xf_timer){.cb = on_poll_timer, .arg = s};
    s->at = h->n_sessions;
    h->sessions = xf_xrealloc(h->sessions, h->n_sessions + 1, sizeof(struct session *));
    h->sessions[h->n_sessions++] = s;
    (void)xf_map_put(&h->by_id, xf_map_key_u64(&s->pub.id), s); /* new: nothing was there */
    (void)xf_map_put(&h->by_agent, s->pub.agent_id, s);         /* as above */
    return s;
}

static void clear_orders(struct session *s)
{
    for (size_t i = 0; i < s->n_orders; i++) {
        xf_hub_order_fini(&s->orders[i]);
    }
    s->n_orders = 0;
}

void xf_session_end(struct session *s, enum xf_hub_gone why)
{
    struct xf_hub *h = s->hub;

    xf_session_answer_poll(s, true);
    for (size_t i = 0; i < CHAN_N; i++) {
        if (s->chans[i].open != NULL) {
            xf_hub_orphan(s->chans[i].open, XF_E_STALE);
        }
    }
    (void)xf_map_take(&h->by_id, xf_map_key_u64(&s->pub.id)); /* it is s */
    (void)xf_map_take(&h->by_agent, s->pub.agent_id);         /* as above */
    h->sessions[s->at] = h->sessions[--h->n_sessions];
    h->sessions[s->at]->at = s->at;
    XF_INFO(
        "session.ended", xf_f_str("agent", s->pub.agent_id), xf_f_c("why", xf_hub_gone_name(why)));
    h->o.events->on_gone(h->o.arg, &s->pub, why);
    xf_timer_stop(h->o.loop, &s->poll_timer);
    clear_orders(s);
    xf_xfree(s->orders);
    for (size_t i = 0; i < CHAN_N; i++) {
        xf_buf_fini(&s->chans[i].kept);
    }
    xf_arena_fini(&s->arena);
    xf_xfree(s);
}

struct session *xf_session_of_instance(struct xf_hub *h, struct xf_str instance)
{
    for (size_t i = 0; i < h->n_sessions; i++) {
        struct session *s = h->sessions[i];

        if (xf_str_eq(xf_str_n(s->pub.instance, XF_INSTANCE_LEN), instance)) {
            return s;
        }
    }
    return NULL;
}

const char *xf_hub_gone_name(enum xf_hub_gone why)
{
    static const char *const names[] = {"timed_out", "superseded", "bye", "closed"};

    return names[why];
}

/* Nothing was heard while this process itself stood still: that is nobody's silence. */
static int64_t own_delay_ms(const struct xf_hub *h, int64_t now)
{
    int64_t late = now - h->sweep_at_ms;

    return late > XF_HUB_SWEEP_MS ? late : 0;
}

void xf_hub_sweep(struct xf_timer *t)
{
    struct xf_hub *h = t->arg;
    int64_t now = xf_loop_mono_ms(h->o.loop);
    int64_t delay = own_delay_ms(h, now);

    for (size_t i = h->n_sessions; i-- > 0;) {
        struct session *s = h->sessions[i];

        s->pub.last_seen_ms += delay;
        if (now - s->pub.last_seen_ms > h->o.session_ms) {
            xf_session_end(s, XF_HUB_TIMED_OUT); /* the last one takes its place: seen already */
        }
    }
    h->sweep_at_ms = now + XF_HUB_SWEEP_MS;
    xf_timer_at(h->o.loop, t, h->sweep_at_ms);
}

/* ---- finding ---- */

struct xf_hub_session *xf_hub_find(struct xf_hub *h, uint64_t id)
{
    struct session *s = xf_map_get(&h->by_id, xf_map_key_u64(&id));

    return s != NULL ? &s->pub : NULL;
}

struct xf_hub_session *xf_hub_find_agent(struct xf_hub *h, struct xf_str agent_id)
{
    struct session *s = xf_map_get(&h->by_agent, agent_id);

    return s != NULL ? &s->pub : NULL;
}

struct xf_hub_session *xf_hub_next(struct xf_hub *h, size_t *at)
{
    return *at < h->n_sessions ? &h->sessions[(*at)++]->pub : NULL;
}

/* ---- orders ---- */

void xf_hub_order_fini(struct xf_msg_order *o)
{
    union {
        const char *text;
        void *owned;
    } job = {.text = o->job.ptr};

    xf_xfree(job.owned);
    memset(o, 0, sizeof(*o));
}

static bool is_about_job(uint32_t kind)
{
    return kind == XF_ORDER_RUN || kind == XF_ORDER_PAUSE || kind == XF_ORDER_CANCEL;
}

static bool is_about_drain(uint32_t kind)
{
    return kind == XF_ORDER_DRAIN || kind == XF_ORDER_UNDRAIN;
}

static bool is_same_matter(const struct xf_msg_order *a, const struct xf_msg_order *b)
{
    if (is_about_job(a->kind)) {
        return is_about_job(b->kind) && xf_str_eq(a->job, b->job);
    }
    if (is_about_drain(a->kind)) {
        return is_about_drain(b->kind);
    }
    return a->kind == b->kind && a->task == b->task && xf_str_eq(a->job, b->job);
}

/* The newest stands last; above the cap the oldest goes: beats carry what holds as well. */
static void make_room(struct session *s, const struct xf_msg_order *o)
{
    size_t at = 0;

    while (at < s->n_orders && !is_same_matter(&s->orders[at], o)) {
        at++;
    }
    if (at == s->n_orders) {
        if (s->n_orders < XF_ORDERS_MAX) {
            s->orders = xf_xrealloc(s->orders, s->n_orders + 1, sizeof(*s->orders));
            return;
        }
        at = 0;
    }
    xf_hub_order_fini(&s->orders[at]);
    s->n_orders--;
    memmove(&s->orders[at], &s->orders[at + 1], (s->n_orders - at) * sizeof(*s->orders));
}

void xf_hub_order(struct xf_hub *h, struct xf_hub_session *s, const struct xf_msg_order *o)
{
    struct session *mine = XF_CONTAINER_OF(s, struct session, pub);

    XF_ASSERT_OWNER(h);
    make_room(mine, o);
    mine->orders[mine->n_orders] = *o;
    mine->orders[mine->n_orders].job = xf_str_n(xf_str_dup(o->job), o->job.len);
    mine->n_orders++;
    if (mine->chans[XF_CHANNEL_POLL].open != NULL) {
        /* At the loop's next turn, so that orders given together go together. */
        xf_timer_in(h->o.loop, &mine->poll_timer, 0);
    }
}

void xf_session_answer_poll(struct session *s, bool in_any_case)
{
    struct xf_hub_req *r = s->chans[XF_CHANNEL_POLL].open;
    struct xf_msg_poll_reply reply = {.orders = s->orders, .n_orders = (uint32_t)s->n_orders};

    if (r == NULL || (s->n_orders == 0 && !in_any_case)) {
        return;
    }
    xf_timer_stop(s->hub->o.loop, &s->poll_timer);
    s->hub->stats.parked_polls--;
    xf_hub_reply(r, &reply); /* kept until the next poll, which proves that it arrived */
    clear_orders(s);
}
