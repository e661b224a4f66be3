/*
 * link.c - one session at a time, four channels with at most one request open on each.
 *
 *   DOWN --hello sent--> HELLO --answered--> UP --stale--> DOWN      any --refused--> ENDED
 *     ^--wait, jitter------'  (no answer: the same bytes again)       UP --bye--> ENDED
 *
 * Invariants:
 * 1. A channel's request keeps its bytes until it is answered or the session ends, and every
 *    repeat sends exactly them: the coordinator answers a repeat from memory.
 * 2. seq counts up on each channel of a session, one request at a time, so a late copy is old.
 * 3. User callbacks run from bus callbacks and timers only, never inside a call of this module.
 */
#include "agent/link.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/retry.h"
#include "proto/codec.h"

enum {
    TRY_MS = 10 * 1000,
    HELLO_WAIT_CAP = 5 /* doublings of the wait between hellos: 50 ms to about 1.6 s */
};

enum link_state { LINK_DOWN, LINK_HELLO, LINK_UP, LINK_ENDED };

struct chan {
    struct xf_link *link;
    enum xf_channel no;
    bool busy;
    enum xf_kind kind;
    struct xf_buf bytes;
    uint64_t call;
    uint64_t seq;
    int64_t sent_ms; /* of the first try */
};

/* What waits for the control channel, or for its answer. */
struct ask {
    struct xf_list link;
    enum xf_kind kind;
    struct xf_buf body;
    xf_link_job_fn *job_done;
    xf_link_done_fn *done;
    void *arg;
};

struct xf_link {
    struct xf_link_opts o;
    struct xf_buf strings; /* backs the strings of o */
    struct xf_rng rng;
    enum link_state state;
    uint64_t session;
    int64_t try_ms;
    int64_t beat_ms;
    int64_t poll_ms;
    int64_t renewed_ms;
    int64_t heard_ms;
    uint32_t hello_tries;
    struct chan chans[XF_CHANNEL_N];
    struct xf_timer hello_timer;
    struct xf_timer beat_timer;
    struct xf_timer fail_timer; /* tells asks made without a session */
    struct xf_timer bye_timer;
    bool beat_soon;
    struct xf_list asks; /* of the control channel, the first one is open */
    xf_link_lease_fn *lease_done;
    void *lease_arg;
    bool lease_refused; /* lease_done waits for fail_timer */
    xf_link_done_fn *bye_done;
    void *bye_arg;
    struct xf_msg_held held[XF_HELD_MAX];
};

static void start_hello(struct xf_link *l);
static void pump(struct xf_link *l);
static void session_lost(struct xf_link *l);

static struct xf_err error(enum xf_code code, struct xf_str text)
{
    struct xf_err err;

    if (code == XF_OK) {
        xf_err_clear(&err);
    } else {
        (void)XF_FAIL(&err, code, "%.*s", XF_STR_ARG(text)); /* the value is what is wanted */
    }
    return err;
}

/* ---- sending ---- */

static void on_reply(void *arg, enum xf_code code, struct xf_str bytes);

static void try_chan(struct chan *c)
{
    struct xf_link *l = c->link;
    int64_t wait = c->no == XF_CHANNEL_POLL ? l->poll_ms + l->try_ms : l->try_ms;

    c->call = l->o.bus.call(
        l->o.bus.bus, xf_buf_view(&c->bytes), xf_loop_mono_ms(l->o.loop) + wait, on_reply, c);
}

static void send(struct chan *c, enum xf_kind kind, uint64_t seq, struct xf_str body)
{
    struct xf_link *l = c->link;
    struct xf_err err;
    struct xf_msg_request r = {.ver = XF_PROTO_VERSION,
                               .kind = kind,
                               .instance = l->o.instance,
                               .session = l->session,
                               .channel = c->no,
                               .seq = seq,
                               .body = body};

    XF_ASSERT(!c->busy);
    if (kind == XF_KIND_HELLO) {
        r.token = l->o.token;
    }
    xf_buf_reset(&c->bytes);
    /* Each body was encoded below its cap, and the envelope adds little. */
    XF_ASSERT(xf_msg_request_encode(&r, &c->bytes, &err) == XF_OK);
    c->busy = true;
    c->kind = kind;
    c->sent_ms = xf_loop_mono_ms(l->o.loop);
    try_chan(c);
}

static void encode(enum xf_kind kind, const void *m, struct xf_buf *out)
{
    struct xf_err err;

    xf_buf_init(out, XF_MSG_MAX);
    /* What the runner fills in is bounded by the caps of the tables. */
    XF_ASSERT(xf_codec_encode(xf_kind_find(kind)->request(), m, out, &err) == XF_OK);
}

static void send_message(struct chan *c, enum xf_kind kind, const void *m)
{
    struct xf_buf body;

    encode(kind, m, &body);
    send(c, kind, ++c->seq, xf_buf_view(&body));
    xf_buf_fini(&body);
}

static void quiet_chan(struct chan *c)
{
    if (c->busy) {
        c->link->o.bus.cancel(c->link->o.bus.bus, c->call);
        c->busy = false;
    }
}

/* ---- hello ---- */

static void send_hello(struct xf_link *l)
{
    struct chan *c = &l->chans[XF_CHANNEL_CTL];
    struct xf_msg_hello m = {.agent_id = l->o.agent_id,
                             .version = l->o.version,
                             .host = l->o.host,
                             .lanes = l->o.lanes,
                             .memory_bytes = l->o.memory_bytes,
                             .held = l->held};
    struct xf_buf body;

    m.n_held = (uint32_t)l->o.events->get_held(l->o.arg, l->held, XF_HELD_MAX);
    l->state = LINK_HELLO;
    l->session = 0;
    encode(XF_KIND_HELLO, &m, &body);
    /* A number of its own for each hello, so that a repeat of one is known as that. */
    send(c, XF_KIND_HELLO, xf_rng_u64(&l->rng) | 1U, xf_buf_view(&body));
    xf_buf_fini(&body);
}

static void on_hello_time(struct xf_timer *t)
{
    send_hello(t->arg);
}

static void start_hello(struct xf_link *l)
{
    uint32_t tries = l->hello_tries < HELLO_WAIT_CAP ? l->hello_tries : HELLO_WAIT_CAP;

    l->state = LINK_DOWN;
    l->hello_tries++;
    xf_timer_in(l->o.loop, &l->hello_timer, xf_retry_wait_ms(XF_CLASS_RETRY, tries, 0, &l->rng));
}

static void refuse(struct xf_link *l, const struct xf_err *err)
{
    l->state = LINK_ENDED;
    xf_timer_stop(l->o.loop, &l->beat_timer);
    for (int i = 0; i < XF_CHANNEL_N; i++) {
        quiet_chan(&l->chans[i]);
    }
    l->o.events->on_refused(l->o.arg, err);
}

static void begin_session(struct xf_link *l, const struct xf_msg_hello_reply *r, int64_t sent_ms)
{
    l->state = LINK_UP;
    l->session = r->session;
    l->hello_tries = 0;
    l->beat_ms = r->beat_ms > 0 ? r->beat_ms : 1;
    l->poll_ms = r->poll_ms;
    l->renewed_ms = sent_ms;
    for (int i = 0; i < XF_CHANNEL_N; i++) {
        l->chans[i].seq = 0;
    }
    xf_timer_in(l->o.loop, &l->beat_timer, l->beat_ms);
    l->o.events->on_up(l->o.arg, r);
    pump(l);
}

static void on_hello_reply(struct xf_link *l,
                           const struct xf_err *err,
                           const struct xf_msg_hello_reply *r,
                           int64_t sent_ms)
{
    if (err->code == XF_OK) {
        begin_session(l, r, sent_ms);
        return;
    }
    if (err->code == XF_E_BUSY || err->code == XF_E_STALE) {
        XF_WARN("hello.refused", xf_f_code(err->code), xf_f_err(err));
        start_hello(l);
        return;
    }
    refuse(l, err);
}

/* ---- beats and polls ---- */

static void send_beat(struct xf_link *l)
{
    XF_AUTO_ARENA a = {0};
    struct xf_msg_beat m = {0};

    xf_arena_init(&a);
    l->beat_soon = false;
    l->o.events->fill_beat(l->o.arg, &m, &a);
    send_message(&l->chans[XF_CHANNEL_BEAT], XF_KIND_BEAT, &m);
    xf_timer_in(l->o.loop, &l->beat_timer, l->beat_ms);
}

static void on_beat_time(struct xf_timer *t)
{
    struct xf_link *l = t->arg;

    l->beat_soon = true;
    pump(l);
}

void xf_link_beat_soon(struct xf_link *l)
{
    l->beat_soon = true;
    if (l->state == LINK_UP && !l->chans[XF_CHANNEL_BEAT].busy) {
        xf_timer_in(l->o.loop, &l->beat_timer, 0);
    }
}

void xf_link_beat_within(struct xf_link *l, int64_t wait_ms)
{
    if (l->state != LINK_UP) {
        xf_link_beat_soon(l);
    } else if (!xf_timer_is_started(&l->beat_timer) ||
               l->beat_timer.at_ms > xf_loop_mono_ms(l->o.loop) + wait_ms) {
        xf_timer_in(l->o.loop, &l->beat_timer, wait_ms);
    }
}

static void on_beat_reply(struct xf_link *l,
                          const struct xf_err *err,
                          const struct xf_msg_beat_reply *r,
                          int64_t sent_ms)
{
    if (err->code == XF_OK) {
        l->renewed_ms = sent_ms;
        l->o.events->on_beat(l->o.arg, r, sent_ms);
        return;
    }
    XF_WARN("beat.refused", xf_f_code(err->code), xf_f_err(err));
    l->o.events->on_beat_lost(l->o.arg);
}

/* ---- asks on the control channel ---- */

static void ask_free(struct ask *a)
{
    xf_buf_fini(&a->body);
    xf_xfree(a);
}

static void tell_ask(struct ask *a, const struct xf_msg_job_reply *r, const struct xf_err *err)
{
    if (a->job_done != NULL) {
        a->job_done(a->arg, r, err);
    } else {
        a->done(a->arg, err);
    }
    ask_free(a);
}

static void fail_asks(struct xf_link *l)
{
    struct xf_err err = error(XF_E_STALE, XF_STR_LIT("the session ended"));
    struct xf_list gone;

    xf_list_init(&gone);
    for (struct xf_list *n = xf_list_pop_front(&l->asks); n != NULL;
         n = xf_list_pop_front(&l->asks)) {
        xf_list_push_back(&gone, n);
    }
    for (struct xf_list *n = xf_list_pop_front(&gone); n != NULL; n = xf_list_pop_front(&gone)) {
        tell_ask(XF_CONTAINER_OF(n, struct ask, link), NULL, &err);
    }
}

static void fail_lease(struct xf_link *l)
{
    struct xf_err err = error(XF_E_STALE, XF_STR_LIT("the session ended"));
    xf_link_lease_fn *done = l->lease_done;

    l->lease_refused = false;
    l->lease_done = NULL;
    if (done != NULL) {
        done(l->lease_arg, NULL, &err);
    }
}

static void on_fail_time(struct xf_timer *t)
{
    struct xf_link *l = t->arg;

    if (l->lease_refused) {
        fail_lease(l);
    }
    if (l->state != LINK_UP) {
        fail_asks(l);
    }
}

static void add_ask(struct xf_link *l,
                    enum xf_kind kind,
                    const void *m,
                    xf_link_job_fn *job_done,
                    xf_link_done_fn *done,
                    void *arg)
{
    struct ask *a = xf_xcalloc(1, sizeof(*a));

    a->kind = kind;
    a->job_done = job_done;
    a->done = done;
    a->arg = arg;
    encode(kind, m, &a->body);
    xf_list_push_back(&l->asks, &a->link);
    if (l->state == LINK_UP) {
        pump(l);
    } else {
        xf_timer_in(l->o.loop, &l->fail_timer, 0);
    }
}

/* Send whatever may go now. */
static void pump(struct xf_link *l)
{
    if (l->state != LINK_UP) {
        return;
    }
    struct chan *ctl = &l->chans[XF_CHANNEL_CTL];
    if (!ctl->busy && !xf_list_is_empty(&l->asks)) {
        struct ask *a = XF_CONTAINER_OF(l->asks.next, struct ask, link);
        send(ctl, a->kind, ++ctl->seq, xf_buf_view(&a->body));
    }
    if (!l->chans[XF_CHANNEL_POLL].busy && l->bye_done == NULL) {
        struct xf_msg_poll m = {0};
        send_message(&l->chans[XF_CHANNEL_POLL], XF_KIND_POLL, &m);
    }
    if (!l->chans[XF_CHANNEL_BEAT].busy && l->beat_soon) {
        send_beat(l);
    }
}

/* ---- replies ---- */

static void session_lost(struct xf_link *l)
{
    bool beat_open = l->chans[XF_CHANNEL_BEAT].busy;

    for (int i = 0; i < XF_CHANNEL_N; i++) {
        quiet_chan(&l->chans[i]);
    }
    xf_timer_stop(l->o.loop, &l->beat_timer);
    l->state = LINK_DOWN;
    if (beat_open) {
        l->o.events->on_beat_lost(l->o.arg);
    }
    l->o.events->on_down(l->o.arg);
    fail_lease(l);
    fail_asks(l);
    if (l->bye_done == NULL) {
        start_hello(l);
    }
}

static void give_ask(struct xf_link *l, const struct xf_msg_job_reply *r, const struct xf_err *err)
{
    struct xf_list *n = xf_list_pop_front(&l->asks);

    XF_ASSERT(n != NULL);
    tell_ask(XF_CONTAINER_OF(n, struct ask, link), r, err);
}

static void
give_lease(struct xf_link *l, const struct xf_msg_lease_reply *r, const struct xf_err *err)
{
    xf_link_lease_fn *done = l->lease_done;

    l->lease_done = NULL;
    XF_ASSERT(done != NULL);
    done(l->lease_arg, r, err);
}

union reply {
    struct xf_msg_hello_reply hello;
    struct xf_msg_lease_reply lease;
    struct xf_msg_job_reply job;
    struct xf_msg_beat_reply beat;
    struct xf_msg_poll_reply poll;
    struct xf_msg_empty empty;
};

static void dispatch(struct chan *c, const union reply *r, const struct xf_err *err)
{
    struct xf_link *l = c->link;
    bool ok = err->code == XF_OK;

    switch (c->kind) {
    case XF_KIND_HELLO: on_hello_reply(l, err, &r->hello, c->sent_ms); break;
    case XF_KIND_LEASE: give_lease(l, ok ? &r->lease : NULL, err); break;
    case XF_KIND_JOB: give_ask(l, ok ? &r->job : NULL, err); break;
    case XF_KIND_BEAT: on_beat_reply(l, err, &r->beat, c->sent_ms); break;
    case XF_KIND_POLL:
        if (ok && r->poll.n_orders > 0) {
            l->o.events->on_orders(l->o.arg, r->poll.orders, r->poll.n_orders);
        }
        break;
    case XF_KIND_FIT:
    case XF_KIND_BYE: give_ask(l, NULL, err); break;
    case XF_KIND_SUBMIT:
    case XF_KIND_STATUS:
    case XF_KIND_LIST:
    case XF_KIND_SHOW:
    case XF_KIND_AGENTS:
    case XF_KIND_CONTROL:
    case XF_KIND_REPORT:
    case XF_KIND_DRAIN:
    case XF_KIND_VERSION:
    case XF_KIND_EXPLAIN:
    case XF_KIND_TUNE:
    case XF_KIND_PRUNE: XF_ASSERT(!"an agent sends none of these"); break;
    }
}

/* The envelope and the body of a reply. What is not understood is an error like any other. */
static void decode(const struct chan *c,
                   struct xf_str bytes,
                   struct xf_arena *a,
                   union reply *r,
                   struct xf_err *err)
{
    struct xf_msg_reply e;

    if (xf_msg_reply_decode(bytes, a, &e, err) != XF_OK) {
        return;
    }
    if (e.ver != XF_PROTO_VERSION) {
        (void)XF_FAIL(err,
                      XF_E_VERSION,
                      "the coordinator speaks protocol version %u, this agent %d: use programs of "
                      "one release",
                      e.ver,
                      (int)XF_PROTO_VERSION); /* the caller looks at err */
        return;
    }
    if (e.code != 0) {
        *err = error(e.code < XF_CODE_N ? (enum xf_code)e.code : XF_E_PROTO, e.text);
        return;
    }
    if (e.kind != (uint32_t)c->kind) {
        *err = error(XF_E_PROTO, XF_STR_LIT("the reply is of another kind than the request"));
        return;
    }
    xf_err_clear(err);
    (void)!xf_codec_decode(
        xf_kind_find(c->kind)->reply(), e.body, a, r, err); /* the caller looks at err */
}

static void on_reply(void *arg, enum xf_code code, struct xf_str bytes)
{
    struct chan *c = arg;
    struct xf_link *l = c->link;
    int64_t now = xf_loop_mono_ms(l->o.loop);

    if (code != XF_OK) {
        XF_ASSERT(code != XF_E_LIMIT);
        if (now - l->heard_ms >= l->try_ms) {
            l->heard_ms = now; /* once a silence */
            l->o.bus.hang_up(l->o.bus.bus);
        }
        try_chan(c);
        return;
    }
    XF_AUTO_ARENA a = {0};
    union reply r = {0};
    struct xf_err err;
    xf_arena_init(&a);
    l->heard_ms = now;
    c->busy = false;
    decode(c, bytes, &a, &r, &err);
    if (err.code == XF_E_STALE && c->kind != XF_KIND_HELLO) {
        c->busy = true; /* still unanswered: a lost beat is told as that */
        session_lost(l);
        return;
    }
    if (err.code == XF_E_VERSION) {
        refuse(l, &err);
        return;
    }
    dispatch(c, &r, &err);
    pump(l);
}

/* ---- public ---- */

static void copy_strings(struct xf_link *l)
{
    struct xf_str *all[] = {&l->o.agent_id, &l->o.instance, &l->o.version, &l->o.host, &l->o.token};
    size_t at = 0;

    xf_buf_init(&l->strings, 0);
    for (size_t i = 0; i < XF_ARRAY_LEN(all); i++) {
        xf_buf_put(&l->strings, *all[i]);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(all); i++) {
        size_t len = all[i]->len;
        *all[i] = xf_str_sub(xf_buf_view(&l->strings), at, at + len);
        at += len;
    }
}

static void on_bye_late(struct xf_timer *t);

struct xf_link *xf_link_new(const struct xf_link_opts *opts)
{
    struct xf_link *l = xf_xcalloc(1, sizeof(*l));

    l->o = *opts;
    copy_strings(l);
    if (opts->seed != 0) {
        xf_rng_init(&l->rng, opts->seed);
    } else {
        xf_rng_init_os(&l->rng);
    }
    l->try_ms = opts->try_ms > 0 ? opts->try_ms : TRY_MS;
    l->heard_ms = xf_loop_mono_ms(opts->loop);
    xf_list_init(&l->asks);
    for (int i = 0; i < XF_CHANNEL_N; i++) {
        l->chans[i].link = l;
        l->chans[i].no = (enum xf_channel)i;
        xf_buf_init(&l->chans[i].bytes, XF_MSG_MAX + 4096);
    }
    l->hello_timer = (struct xf_timer){.cb = on_hello_time, .arg = l};
    l->beat_timer = (struct xf_timer){.cb = on_beat_time, .arg = l};
    l->fail_timer = (struct xf_timer){.cb = on_fail_time, .arg = l};
    l->bye_timer = (struct xf_timer){.cb = on_bye_late, .arg = l};
    xf_timer_in(opts->loop, &l->hello_timer, 0);
    return l;
}

void xf_link_free(struct xf_link *l)
{
    if (l == NULL) {
        return;
    }
    struct xf_timer *timers[] = {&l->hello_timer, &l->beat_timer, &l->fail_timer, &l->bye_timer};
    for (size_t i = 0; i < XF_ARRAY_LEN(timers); i++) {
        xf_timer_stop(l->o.loop, timers[i]);
    }
    for (int i = 0; i < XF_CHANNEL_N; i++) {
        quiet_chan(&l->chans[i]);
        if (l->chans[i].bytes.ptr != NULL) {
            xf_wipe(l->chans[i].bytes.ptr, l->chans[i].bytes.cap); /* a hello holds the token */
        }
        xf_buf_fini(&l->chans[i].bytes);
    }
    for (struct xf_list *n = xf_list_pop_front(&l->asks); n != NULL;
         n = xf_list_pop_front(&l->asks)) {
        ask_free(XF_CONTAINER_OF(n, struct ask, link));
    }
    if (l->strings.ptr != NULL) {
        xf_wipe(l->strings.ptr, l->strings.cap);
    }
    xf_buf_fini(&l->strings);
    xf_xfree(l);
}

bool xf_link_is_up(const struct xf_link *l)
{
    return l->state == LINK_UP;
}

int64_t xf_link_renewed_ms(const struct xf_link *l)
{
    return l->renewed_ms;
}

void xf_link_lease(struct xf_link *l,
                   const struct xf_msg_lease *m,
                   xf_link_lease_fn *done,
                   void *arg)
{
    XF_ASSERT(l->lease_done == NULL);
    l->lease_done = done;
    l->lease_arg = arg;
    if (l->state == LINK_UP) {
        send_message(&l->chans[XF_CHANNEL_LEASE], XF_KIND_LEASE, m);
    } else {
        l->lease_refused = true;
        xf_timer_in(l->o.loop, &l->fail_timer, 0);
    }
}

void xf_link_job(struct xf_link *l, struct xf_str job, xf_link_job_fn *done, void *arg)
{
    struct xf_msg_job m = {.job = job};

    add_ask(l, XF_KIND_JOB, &m, done, NULL, arg);
}

void xf_link_fit(struct xf_link *l, const struct xf_msg_fit *m, xf_link_done_fn *done, void *arg)
{
    add_ask(l, XF_KIND_FIT, m, NULL, done, arg);
}

static void end_bye(struct xf_link *l, const struct xf_err *err)
{
    xf_link_done_fn *done = l->bye_done;

    if (done == NULL || l->state == LINK_ENDED) {
        return;
    }
    l->state = LINK_ENDED;
    xf_timer_stop(l->o.loop, &l->bye_timer);
    xf_timer_stop(l->o.loop, &l->hello_timer);
    xf_timer_stop(l->o.loop, &l->beat_timer);
    for (int i = 0; i < XF_CHANNEL_N; i++) {
        quiet_chan(&l->chans[i]);
    }
    done(l->bye_arg, err);
}

static void on_bye_late(struct xf_timer *t)
{
    struct xf_err err = error(XF_E_TIMEOUT, XF_STR_LIT("no answer to bye"));

    end_bye(t->arg, &err);
}

static void on_bye_answered(void *arg, const struct xf_err *err)
{
    end_bye(arg, err);
}

void xf_link_bye(
    struct xf_link *l, struct xf_str reason, int64_t deadline_ms, xf_link_done_fn *done, void *arg)
{
    struct xf_msg_bye m = {.reason = reason};

    XF_ASSERT(l->bye_done == NULL);
    l->bye_done = done;
    l->bye_arg = arg;
    xf_timer_stop(l->o.loop, &l->hello_timer);
    if (l->state == LINK_HELLO) {
        quiet_chan(&l->chans[XF_CHANNEL_CTL]);
        l->state = LINK_DOWN;
    }
    quiet_chan(&l->chans[XF_CHANNEL_POLL]);
    xf_timer_in(l->o.loop, &l->bye_timer, deadline_ms);
    add_ask(l, XF_KIND_BYE, &m, NULL, on_bye_answered, l);
}
