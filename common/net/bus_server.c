/*
 * bus_server.c - a REP socket with many contexts.
 *
 * Each slot is one context and one aio, and goes round: receiving -> with the owner -> sending ->
 * receiving. nng's callback only posts the slot to the loop's queue; everything else happens on the
 * loop's thread. A slot is in the queue at most once, so the queue is bounded by the contexts.
 *
 * Invariants: 1. While a slot is with the owner its aio is idle.
 *             2. A token names a slot and its round; it is answered or dropped once in that round.
 */
#include "common/net/bus_int.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"

#include <nng/protocol/reqrep0/rep.h>

#include <arpa/inet.h>

enum { SEND_MS = 30000 }; /* a peer that does not read its answer loses it */

enum slot_state { SLOT_RECEIVING, SLOT_WITH_OWNER, SLOT_SENDING };

struct slot {
    struct xf_bus_server *server;
    nng_ctx ctx;
    nng_aio *aio;
    enum slot_state state;
    uint32_t round;
    uint32_t idx;
};

struct xf_bus_server {
    struct xf_owner owner;
    nng_socket sock;
    bool is_open;
    struct slot *slots;
    size_t n_slots;
    size_t bytes_max;
    struct xf_queue *done; /* slots whose aio has completed */
    xf_bus_request_fn *on_request;
    void *arg;
    char *url;
};

/* On a thread of nng. */
static void aio_done(void *arg)
{
    struct slot *s = arg;

    xf_queue_push_reserved(s->server->done, s);
}

static void receive(struct slot *s)
{
    s->state = SLOT_RECEIVING;
    s->round++;
    nng_aio_set_timeout(s->aio, NNG_DURATION_INFINITE);
    nng_ctx_recv(s->ctx, s->aio);
}

static uint64_t token_of(const struct slot *s)
{
    return (uint64_t)s->round << 32 | s->idx;
}

static struct slot *slot_of(struct xf_bus_server *b, uint64_t token)
{
    size_t idx = (size_t)(token & UINT32_MAX);
    struct slot *s;

    XF_ASSERT(idx < b->n_slots);
    s = &b->slots[idx];
    XF_ASSERT(s->round == token >> 32 && s->state == SLOT_WITH_OWNER);
    return s;
}

static void received(struct slot *s)
{
    nng_msg *msg = nng_aio_get_msg(s->aio);

    if (nng_aio_result(s->aio) != 0) {
        receive(s); /* nothing came; a closed socket never gets here */
        return;
    }
    nng_aio_set_msg(s->aio, NULL);
    s->state = SLOT_WITH_OWNER;
    s->server->on_request(
        s->server->arg, token_of(s), xf_str_n(nng_msg_body(msg), nng_msg_len(msg)));
    nng_msg_free(msg);
}

static void sent(struct slot *s)
{
    if (nng_aio_result(s->aio) != 0) {
        nng_msg *msg = nng_aio_get_msg(s->aio);

        nng_aio_set_msg(s->aio, NULL);
        nng_msg_free(msg); /* the peer went away; it asks again */
    }
    receive(s);
}

/* On the loop. */
static void on_done(void *arg)
{
    struct xf_bus_server *b = arg;
    struct slot *s;

    while ((s = xf_queue_pop(b->done)) != NULL) {
        if (s->state == SLOT_RECEIVING) {
            received(s);
        } else {
            sent(s);
        }
    }
}

void xf_bus_reply(struct xf_bus_server *b, uint64_t token, struct xf_str bytes)
{
    struct slot *s = slot_of(b, token);
    nng_msg *msg;

    XF_ASSERT_OWNER(b);
    msg = bytes.len <= b->bytes_max ? xf_bus_msg(bytes) : NULL;
    if (msg == NULL) {
        receive(s);
        return;
    }
    s->state = SLOT_SENDING;
    nng_aio_set_msg(s->aio, msg);
    nng_aio_set_timeout(s->aio, SEND_MS);
    nng_ctx_send(s->ctx, s->aio);
}

void xf_bus_drop(struct xf_bus_server *b, uint64_t token)
{
    XF_ASSERT_OWNER(b);
    receive(slot_of(b, token));
}

/* ---- life ---- */

static enum xf_code
set_options(struct xf_bus_server *b, const struct xf_bus_url *url, struct xf_err *err)
{
    int rv = nng_socket_set_size(b->sock, NNG_OPT_RECVMAXSZ, b->bytes_max);

    if (rv == 0 && url->is_tcp) {
        rv = nng_socket_set_bool(b->sock, NNG_OPT_TCP_KEEPALIVE, true);
    }
    if (rv == 0 && url->is_tcp) {
        rv = nng_socket_set_bool(b->sock, NNG_OPT_TCP_NODELAY, true);
    }
    return rv == 0 ? XF_OK : xf_bus_fail(err, XF_E_IO, rv, "cannot set up the bus for", b->url);
}

/* The URL with the port that the system chose. */
static void learn_url(struct xf_bus_server *b, const struct xf_bus_url *url, nng_listener listener)
{
    nng_sockaddr sa;
    XF_AUTO_BUF text = {0};
    uint16_t port;

    xf_buf_init(&text, 0);
    if (!url->is_tcp || nng_listener_get_addr(listener, NNG_OPT_LOCADDR, &sa) != 0) {
        return;
    }
    port = sa.s_family == NNG_AF_INET ? sa.s_in.sa_port : sa.s_in6.sa_port;
    xf_buf_putf(&text,
                "%s%.*s:%u",
                url->is_tls ? "tls+tcp://" : "tcp://",
                XF_STR_ARG(url->host),
                (unsigned)ntohs(port));
    xf_xfree(b->url);
    b->url = xf_buf_take(&text);
}

static enum xf_code start_listener(struct xf_bus_server *b,
                                   const struct xf_bus_server_opts *o,
                                   const struct xf_bus_url *url,
                                   struct xf_err *err)
{
    nng_listener listener;
    nng_tls_config *tls;
    int rv = nng_listener_create(&listener, b->sock, o->url);

    if (rv != 0) {
        return xf_bus_fail(err, XF_E_CONFIG, rv, "cannot listen on", o->url);
    }
    XF_TRY(xf_bus_tls_new(url, &o->tls, true, &tls, err));
    if (tls != NULL) {
        rv = nng_listener_set_ptr(listener, NNG_OPT_TLS_CONFIG, tls);
        nng_tls_config_free(tls); /* the listener holds it */
    }
    rv = rv == 0 ? nng_listener_start(listener, 0) : rv;
    if (rv != 0) {
        return xf_bus_fail(err, XF_E_CONFIG, rv, "cannot listen on", o->url);
    }
    learn_url(b, url, listener);
    return XF_OK;
}

static enum xf_code open_slots(struct xf_bus_server *b, struct xf_err *err)
{
    for (size_t i = 0; i < b->n_slots; i++) {
        struct slot *s = &b->slots[i];
        int rv = nng_aio_alloc(&s->aio, aio_done, s);

        s->server = b;
        s->idx = (uint32_t)i;
        rv = rv == 0 ? nng_ctx_open(&s->ctx, b->sock) : rv;
        if (rv != 0) {
            return xf_bus_fail(err, XF_E_IO, rv, "cannot make contexts for", b->url);
        }
    }
    return XF_OK;
}

enum xf_code
xf_bus_listen(const struct xf_bus_server_opts *o, struct xf_bus_server **out, struct xf_err *err)
{
    XF_AUTO(xf_bus_server) b = xf_xcalloc(1, sizeof(*b));
    struct xf_bus_url url;
    int rv;

    xf_owner_take(&b->owner);
    b->n_slots = o->contexts != 0 ? o->contexts : XF_BUS_CONTEXTS;
    b->slots = xf_xcalloc(b->n_slots, sizeof(*b->slots));
    b->bytes_max = o->bytes_max != 0 ? o->bytes_max : XF_BUS_BYTES_MAX;
    b->on_request = o->on_request;
    b->arg = o->arg;
    b->url = xf_xstrdup(o->url);
    XF_TRY(xf_bus_url_parse(o->url, &url, err));
    XF_TRY(xf_queue_new(b->n_slots, &b->done, err));
    rv = nng_rep0_open(&b->sock);
    if (rv != 0) {
        return xf_bus_fail(err, XF_E_IO, rv, "cannot open the bus for", o->url);
    }
    b->is_open = true;
    XF_TRY(set_options(b, &url, err));
    XF_TRY(open_slots(b, err));
    XF_TRY(start_listener(b, o, &url, err));
    XF_TRY(xf_queue_attach(b->done, o->loop, on_done, b, err));
    for (size_t i = 0; i < b->n_slots; i++) {
        receive(&b->slots[i]);
    }
    *out = XF_STEAL(b);
    return XF_OK;
}

/* A completed aio may still hold a message: one received and not looked at, or one not sent. */
static void slot_stop(struct slot *s)
{
    nng_msg *msg;

    if (s->aio == NULL) {
        return;
    }
    nng_aio_stop(s->aio); /* waits for its callback */
    msg = nng_aio_get_msg(s->aio);
    if (msg != NULL && (s->state == SLOT_RECEIVING) == (nng_aio_result(s->aio) == 0)) {
        nng_aio_set_msg(s->aio, NULL);
        nng_msg_free(msg);
    }
}

void xf_bus_server_close(struct xf_bus_server *b)
{
    if (b == NULL) {
        return;
    }
    XF_ASSERT_OWNER(b);
    for (size_t i = 0; i < b->n_slots; i++) {
        slot_stop(&b->slots[i]);
    }
    if (b->done != NULL) {
        xf_queue_detach(b->done);
    }
    if (b->is_open && !xf_bus_close_socket(b->sock, true)) {
        return; /* stuck in nng, which still knows our callbacks: left to the end of the process */
    }
    for (size_t i = 0; i < b->n_slots; i++) {
        if (b->slots[i].aio != NULL) {
            nng_aio_free(b->slots[i].aio);
        }
    }
    while (b->done != NULL && xf_queue_pop(b->done) != NULL) {
    }
    xf_queue_free(b->done);
    xf_xfree(b->slots);
    xf_xfree(b->url);
    xf_xfree(b);
}

const char *xf_bus_server_url(const struct xf_bus_server *b)
{
    return b->url;
}

static void answerer_reply(void *bus, uint64_t token, struct xf_str bytes)
{
    xf_bus_reply(bus, token, bytes);
}

static void answerer_drop(void *bus, uint64_t token)
{
    xf_bus_drop(bus, token);
}

struct xf_bus_answerer xf_bus_server_answerer(struct xf_bus_server *b)
{
    return (struct xf_bus_answerer){answerer_reply, answerer_drop, b};
}
