/*
 * bus_client.c - a REQ socket with one dialer, and a context for each open call.
 *
 * A slot is one context and one aio, made when it is first needed and used again. A call goes
 * sending -> receiving -> idle. nng's callback only posts the slot; the rest happens on the loop's
 * thread. A call that is cancelled or timed out is abandoned: its slot is aborted and comes back
 * through the queue like any other, which also keeps the request from being sent again.
 *
 * nng sends a request again when its connection breaks, and after resend_ms. That time is long and
 * never "infinite": then nng would give the request up when the connection breaks.
 *
 * Invariants: 1. A slot is posted once for each operation begun on its aio, so the queue is bounded
 *                by the slots (and one for the connection's news).
 *             2. done runs at most once a call, and not after cancel or close.
 */
#include "common/base/log.h"
#include "common/net/bus_int.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"

#include <nng/protocol/reqrep0/req.h>

#include <stdatomic.h>

enum {
    RESEND_MS = 600000,
    RECONNECT_MIN_MS = 50,
    RECONNECT_MS = 2000,
    REDIAL_MS = 120000,
    HANG_UP_MS = 2000
};

enum slot_state { SLOT_IDLE, SLOT_SENDING, SLOT_RECEIVING, SLOT_FAILED };

struct slot {
    struct xf_bus_client *client;
    struct slot *next_idle;
    nng_ctx ctx;
    nng_aio *aio;
    enum slot_state state;
    bool is_abandoned;
    bool is_closed;      /* has no context: not made yet, or its socket was dropped */
    enum xf_code failed; /* SLOT_FAILED: why */
    uint32_t round;
    uint32_t idx;
    xf_bus_done_fn *done;
    void *arg;
    struct xf_timer deadline;
};

struct xf_bus_client {
    struct xf_owner owner;
    struct xf_loop *loop;
    nng_socket sock;
    bool is_open;
    char *url;
    struct xf_bus_url parsed; /* of url */
    nng_tls_config *tls;      /* NULL: none */
    nng_duration reconnect_ms;
    struct slot **slots;
    size_t n_slots;
    struct slot *idle;
    size_t bytes_max;
    nng_duration resend_ms;
    struct xf_queue *posted;  /* slots whose aio has completed, and &pipe_id for news of it */
    _Atomic uint32_t pipe_id; /* 0: not connected */
    _Atomic bool has_news;
    uint32_t known_pipe; /* what on_link was told last */
    struct xf_timer hang_up;
    int64_t redial_ms;
    struct xf_timer redial; /* runs while there is no connection, and after a hang-up */
    uint32_t closing_pipe;  /* was hung up */
    void (*on_link)(void *arg, bool up);
    void *arg;
};

/* ---- on threads of nng ---- */

static void aio_done(void *arg)
{
    struct slot *s = arg;

    xf_queue_push_reserved(s->client->posted, s);
}

static void post_news(struct xf_bus_client *c)
{
    if (!atomic_exchange(&c->has_news, true)) {
        xf_queue_push_reserved(c->posted, c);
    }
}

static void pipe_came(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct xf_bus_client *c = arg;

    (void)ev; /* registered for one only */
    atomic_store(&c->pipe_id, (uint32_t)nng_pipe_id(pipe));
    post_news(c);
}

static void pipe_went(nng_pipe pipe, nng_pipe_ev ev, void *arg)
{
    struct xf_bus_client *c = arg;
    uint32_t mine = (uint32_t)nng_pipe_id(pipe);

    (void)ev; /* registered for one only */
    if (atomic_compare_exchange_strong(&c->pipe_id, &mine, 0)) {
        post_news(c);
    }
}

/* ---- on the loop ---- */

static void recycle(struct slot *s)
{
    xf_timer_stop(s->client->loop, &s->deadline);
    s->state = SLOT_IDLE;
    s->round++;
    s->next_idle = s->client->idle;
    s->client->idle = s;
}

/* The slot is idle again before `done` runs, which may call. */
static void finish(struct slot *s, enum xf_code code, struct xf_str bytes)
{
    xf_bus_done_fn *done = s->is_abandoned ? NULL : s->done;
    void *arg = s->arg;

    recycle(s);
    if (done != NULL) {
        done(arg, code, bytes);
    }
}

static void take_reply(struct slot *s)
{
    nng_msg *msg = nng_aio_get_msg(s->aio);

    nng_aio_set_msg(s->aio, NULL);
    finish(s, XF_OK, xf_str_n(nng_msg_body(msg), nng_msg_len(msg)));
    nng_msg_free(msg);
}

static void was_sent(struct slot *s, int rv)
{
    if (rv != 0) {
        nng_msg *msg = nng_aio_get_msg(s->aio);

        nng_aio_set_msg(s->aio, NULL);
        if (msg != NULL) {
            nng_msg_free(msg);
        }
        finish(s, XF_E_NET, XF_STR_EMPTY);
        return;
    }
    s->state = SLOT_RECEIVING;
    nng_ctx_recv(s->ctx, s->aio);
    if (s->is_abandoned) {
        nng_aio_abort(s->aio, NNG_ECANCELED);
    }
}

static void on_slot(struct slot *s)
{
    int rv;

    if (s->state == SLOT_FAILED) {
        finish(s, s->failed, XF_STR_EMPTY);
        return;
    }
    rv = nng_aio_result(s->aio);
    if (s->state == SLOT_SENDING) {
        was_sent(s, rv);
    } else if (rv == 0) {
        take_reply(s);
    } else {
        finish(s, XF_E_NET, XF_STR_EMPTY);
    }
}

static void tell_link(const struct xf_bus_client *c, bool up)
{
    if (c->on_link != NULL) {
        c->on_link(c->arg, up);
    }
}

/* A connection that was lost and made again since the last look is told as both. */
static void on_news(struct xf_bus_client *c)
{
    uint32_t before = c->known_pipe;

    atomic_store(&c->has_news, false);
    c->known_pipe = atomic_load(&c->pipe_id);
    if (c->known_pipe == before) {
        return;
    }
    if (c->known_pipe != 0) {
        xf_timer_stop(c->loop, &c->redial);
    } else {
        xf_timer_in(c->loop, &c->redial, c->redial_ms);
    }
    if (before != 0) {
        tell_link(c, false);
    }
    if (c->known_pipe != 0) {
        tell_link(c, true);
    }
}

static void on_posted(void *arg)
{
    struct xf_bus_client *c = arg;
    void *item;

    while ((item = xf_queue_pop(c->posted)) != NULL) {
        if (item == c) {
            on_news(c);
        } else {
            on_slot(item);
        }
    }
}

static void on_redial(struct xf_timer *t);

static void abandon(struct slot *s)
{
    s->is_abandoned = true;
    xf_timer_stop(s->client->loop, &s->deadline);
    if (s->state != SLOT_FAILED) {
        nng_aio_abort(s->aio, NNG_ECANCELED);
    }
}

static void on_deadline(struct xf_timer *t)
{
    struct slot *s = t->arg;
    xf_bus_done_fn *done = s->done;
    void *arg = s->arg;

    abandon(s);
    done(arg, XF_E_TIMEOUT, XF_STR_EMPTY);
}

/* ---- calls ---- */

static void slot_open(struct slot *s)
{
    struct xf_bus_client *c = s->client;
    int rv = nng_aio_alloc(&s->aio, aio_done, s);

    if (rv != 0) {
        s->aio = NULL;
        return;
    }
    rv = nng_ctx_open(&s->ctx, c->sock);
    rv = rv == 0 ? nng_ctx_set_ms(s->ctx, NNG_OPT_REQ_RESENDTIME, c->resend_ms) : rv;
    if (rv != 0) {
        nng_aio_free(s->aio);
        s->aio = NULL;
        return;
    }
    s->is_closed = false;
}

static struct slot *slot_new(struct xf_bus_client *c)
{
    struct slot *s = xf_xcalloc(1, sizeof(*s));

    s->client = c;
    s->is_closed = true;
    s->idx = (uint32_t)c->n_slots;
    s->round = 1;
    s->deadline = (struct xf_timer){.cb = on_deadline, .arg = s};
    c->slots = xf_xrealloc(c->slots, c->n_slots + 1, sizeof(struct slot *));
    c->slots[c->n_slots++] = s;
    return s;
}

static struct slot *slot_take(struct xf_bus_client *c)
{
    struct slot *s = c->idle;

    if (s != NULL) {
        c->idle = s->next_idle;
    } else {
        s = slot_new(c);
    }
    if (s->is_closed) {
        slot_open(s);
    }
    return s;
}

uint64_t xf_bus_call(struct xf_bus_client *c,
                     struct xf_str bytes,
                     int64_t deadline_ms,
                     xf_bus_done_fn *done,
                     void *arg)
{
    struct slot *s = slot_take(c);
    nng_msg *msg = NULL;

    XF_ASSERT_OWNER(c);
    s->done = done;
    s->arg = arg;
    s->is_abandoned = false;
    if (bytes.len <= c->bytes_max && !s->is_closed) {
        msg = xf_bus_msg(bytes);
    }
    if (msg == NULL) {
        s->state = SLOT_FAILED;
        s->failed = s->is_closed ? XF_E_NET : XF_E_LIMIT;
        xf_queue_push_reserved(c->posted, s);
    } else {
        s->state = SLOT_SENDING;
        xf_timer_at(c->loop, &s->deadline, deadline_ms);
        nng_aio_set_timeout(s->aio, NNG_DURATION_INFINITE);
        nng_aio_set_msg(s->aio, msg);
        nng_ctx_send(s->ctx, s->aio);
    }
    return (uint64_t)s->round << 32 | s->idx;
}

void xf_bus_cancel(struct xf_bus_client *c, uint64_t id)
{
    size_t idx = (size_t)(id & UINT32_MAX);
    struct slot *s;

    XF_ASSERT_OWNER(c);
    XF_ASSERT(idx < c->n_slots);
    s = c->slots[idx];
    if (s->round == id >> 32 && s->state != SLOT_IDLE && !s->is_abandoned) {
        abandon(s);
    }
}

static void close_pipe(struct xf_timer *t)
{
    struct xf_bus_client *c = t->arg;
    nng_pipe pipe = NNG_PIPE_INITIALIZER;

    pipe.id = atomic_load(&c->pipe_id);
    if (pipe.id != 0 && pipe.id != c->closing_pipe) {
        (void)nng_pipe_close(pipe); /* fails when it is gone already, which is as good */
        c->closing_pipe = pipe.id;
        xf_timer_in(c->loop, &c->redial, HANG_UP_MS < c->redial_ms ? HANG_UP_MS : c->redial_ms);
    }
}

void xf_bus_hang_up(struct xf_bus_client *c)
{
    XF_ASSERT_OWNER(c);
    if (!xf_timer_is_started(&c->hang_up)) {
        xf_timer_in(c->loop, &c->hang_up, XF_BUS_CALM_MS);
    }
}

bool xf_bus_is_up(const struct xf_bus_client *c)
{
    return c->known_pipe != 0;
}

/* ---- life ---- */

static int set_options(struct xf_bus_client *c, nng_socket sock)
{
    int rv = nng_socket_set_size(sock, NNG_OPT_RECVMAXSZ, c->bytes_max);

    rv = rv == 0 ? nng_socket_set_ms(sock, NNG_OPT_RECONNMINT, RECONNECT_MIN_MS) : rv;
    rv = rv == 0 ? nng_socket_set_ms(sock, NNG_OPT_RECONNMAXT, c->reconnect_ms) : rv;
    if (rv == 0 && c->parsed.is_tcp) {
        rv = nng_socket_set_bool(sock, NNG_OPT_TCP_KEEPALIVE, true);
        rv = rv == 0 ? nng_socket_set_bool(sock, NNG_OPT_TCP_NODELAY, true) : rv;
    }
    rv = rv == 0 ? nng_pipe_notify(sock, NNG_PIPE_EV_ADD_POST, pipe_came, c) : rv;
    rv = rv == 0 ? nng_pipe_notify(sock, NNG_PIPE_EV_REM_POST, pipe_went, c) : rv;
    return rv;
}

static int start_dialer(struct xf_bus_client *c, nng_socket sock)
{
    nng_dialer dialer;
    int rv = nng_dialer_create(&dialer, sock, c->url);

    if (rv == 0 && c->tls != NULL) {
        rv = nng_dialer_set_ptr(dialer, NNG_OPT_TLS_CONFIG, c->tls);
    }
    return rv == 0 ? nng_dialer_start(dialer, NNG_FLAG_NONBLOCK) : rv;
}

/* A socket that has begun to connect; c->sock is as it was on an error. */
static enum xf_code open_socket(struct xf_bus_client *c, struct xf_err *err)
{
    nng_socket sock;
    int rv = nng_req0_open(&sock);

    if (rv != 0) {
        return xf_bus_fail(err, XF_E_IO, rv, "cannot open the bus for", c->url);
    }
    rv = set_options(c, sock);
    rv = rv == 0 ? start_dialer(c, sock) : rv;
    if (rv != 0) {
        (void)nng_close(sock); /* only fails when it was closed before */
        return xf_bus_fail(err, XF_E_CONFIG, rv, "cannot connect to", c->url);
    }
    c->sock = sock;
    c->is_open = true;
    return XF_OK;
}

enum xf_code
xf_bus_dial(const struct xf_bus_client_opts *o, struct xf_bus_client **out, struct xf_err *err)
{
    XF_AUTO(xf_bus_client) c = xf_xcalloc(1, sizeof(*c));

    xf_owner_take(&c->owner);
    c->loop = o->loop;
    c->bytes_max = o->bytes_max != 0 ? o->bytes_max : XF_BUS_BYTES_MAX;
    c->resend_ms = o->resend_ms > 0 ? (nng_duration)o->resend_ms : RESEND_MS;
    c->reconnect_ms = o->reconnect_ms > 0 ? (nng_duration)o->reconnect_ms : RECONNECT_MS;
    c->redial_ms = o->redial_ms > 0 ? o->redial_ms : REDIAL_MS;
    c->on_link = o->on_link;
    c->arg = o->arg;
    c->hang_up = (struct xf_timer){.cb = close_pipe, .arg = c};
    c->redial = (struct xf_timer){.cb = on_redial, .arg = c};
    c->url = xf_xstrdup(o->url);
    XF_TRY(xf_bus_url_parse(c->url, &c->parsed, err));
    XF_TRY(xf_bus_tls_new(&c->parsed, &o->tls, false, &c->tls, err));
    XF_TRY(xf_queue_new(1, &c->posted, err));
    XF_TRY(xf_queue_attach(c->posted, o->loop, on_posted, c, err));
    XF_TRY(open_socket(c, err));
    xf_timer_in(c->loop, &c->redial, c->redial_ms);
    *out = XF_STEAL(c);
    return XF_OK;
}

/* A completed aio may still hold a message: a reply not looked at, or a request not sent. Gives
 * whether the slot's request was under way. */
static bool slot_stop(struct slot *s)
{
    bool was_busy = s->state == SLOT_SENDING || s->state == SLOT_RECEIVING;
    nng_msg *msg;

    xf_timer_stop(s->client->loop, &s->deadline);
    if (s->aio == NULL) {
        return false;
    }
    nng_aio_stop(s->aio); /* waits for its callback */
    msg = nng_aio_get_msg(s->aio);
    if (msg != NULL && ((s->state == SLOT_RECEIVING && nng_aio_result(s->aio) == 0) ||
                        (s->state == SLOT_SENDING && nng_aio_result(s->aio) != 0))) {
        nng_aio_set_msg(s->aio, NULL);
        nng_msg_free(msg);
    }
    return was_busy;
}

/* Take every slot off its socket; calls under way end with XF_E_NET at the next turn. */
static void strip_slots(struct xf_bus_client *c)
{
    for (size_t i = 0; i < c->n_slots; i++) {
        struct slot *s = c->slots[i];

        if (slot_stop(s)) {
            s->state = SLOT_FAILED;
            s->failed = XF_E_NET;
        }
        if (s->aio != NULL) {
            nng_aio_free(s->aio);
            s->aio = NULL;
        }
        s->is_closed = true;
    }
    while (xf_queue_pop(c->posted) != NULL) { /* each is posted again below, once */
    }
    for (size_t i = 0; i < c->n_slots; i++) {
        if (c->slots[i]->state == SLOT_FAILED) {
            xf_queue_push_reserved(c->posted, c->slots[i]);
        }
    }
    atomic_store(&c->has_news, false);
    post_news(c);
}

static void on_redial(struct xf_timer *t)
{
    struct xf_bus_client *c = t->arg;
    nng_socket old = c->sock;
    uint32_t pipe = atomic_load(&c->pipe_id);
    struct xf_err err = {0};

    if (pipe != 0 && pipe != c->closing_pipe) {
        return; /* it came, the news is on its way */
    }
    xf_timer_in(c->loop, &c->redial, c->redial_ms);
    if (open_socket(c, &err) != XF_OK) {
        XF_WARN("bus.redial_failed", xf_f_err(&err));
        return;
    }
    (void)nng_pipe_notify(old, NNG_PIPE_EV_ADD_POST, NULL, NULL); /* fails for a closed socket */
    (void)nng_pipe_notify(old, NNG_PIPE_EV_REM_POST, NULL, NULL); /* as above */
    (void)atomic_compare_exchange_strong(&c->pipe_id, &pipe, 0);  /* one that never went away */
    strip_slots(c);
    xf_bus_discard_socket(old);
    XF_INFO("bus.redialed", xf_f_c("url", c->url));
}

void xf_bus_client_close(struct xf_bus_client *c)
{
    bool was_busy = false;

    if (c == NULL) {
        return;
    }
    XF_ASSERT_OWNER(c);
    xf_timer_stop(c->loop, &c->hang_up);
    xf_timer_stop(c->loop, &c->redial);
    for (size_t i = 0; i < c->n_slots; i++) {
        was_busy = slot_stop(c->slots[i]) || was_busy;
    }
    if (c->posted != NULL) {
        xf_queue_detach(c->posted);
    }
    if (c->is_open && !xf_bus_close_socket(c->sock, was_busy)) {
        return; /* stuck in nng, which still knows our callbacks: left to the end of the process */
    }
    for (size_t i = 0; i < c->n_slots; i++) {
        if (c->slots[i]->aio != NULL) {
            nng_aio_free(c->slots[i]->aio);
        }
        xf_xfree(c->slots[i]);
    }
    while (c->posted != NULL && xf_queue_pop(c->posted) != NULL) {
    }
    xf_queue_free(c->posted);
    if (c->tls != NULL) {
        nng_tls_config_free(c->tls);
    }
    xf_xfree(c->slots);
    xf_xfree(c->url);
    xf_xfree(c);
}

static uint64_t
caller_call(void *bus, struct xf_str bytes, int64_t deadline_ms, xf_bus_done_fn *done, void *arg)
{
    return xf_bus_call(bus, bytes, deadline_ms, done, arg);
}

static void caller_cancel(void *bus, uint64_t id)
{
    xf_bus_cancel(bus, id);
}

static void caller_hang_up(void *bus)
{
    xf_bus_hang_up(bus);
}

struct xf_bus_caller xf_bus_client_caller(struct xf_bus_client *c)
{
    return (struct xf_bus_caller){caller_call, caller_cancel, caller_hang_up, c};
}
