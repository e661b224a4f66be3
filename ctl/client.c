/*
 * client.c - a private loop that turns only while a call is open.
 *
 * The bus sends a request again when its connection broke; every request of an operator may arrive
 * twice (PROTOCOL.md).
 */
#include "ctl/client.h"

#include "common/net/bus.h"
#include "proto/codec.h"

#include <signal.h>

struct xf_client {
    struct xf_loop *loop;
    struct xf_bus_client *bus;
    char *url;
    struct xf_buf token; /* wiped at close */
};

struct call {
    bool done;
    enum xf_code code;
    struct xf_buf bytes;
};

/* nng starts threads at the first dial; signals are for our own thread, so they inherit a mask. */
static enum xf_code
dial(struct xf_client *c, const struct xf_bus_client_opts *opts, struct xf_err *err)
{
    sigset_t all;
    sigset_t before;

    (void)sigfillset(&all); /* cannot fail */
    XF_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    enum xf_code rc = xf_bus_dial(opts, &c->bus, err);
    XF_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return rc;
}

enum xf_code
xf_client_open(const struct xf_client_opts *opts, struct xf_client **out, struct xf_err *err)
{
    XF_AUTO(xf_client) c = xf_xcalloc(1, sizeof(*c));

    xf_buf_init(&c->token, 0);
    xf_buf_put(&c->token, xf_str_c(opts->token));
    c->url = xf_xstrdup(opts->url);
    XF_TRY(xf_loop_new(NULL, &c->loop, err));
    struct xf_bus_client_opts bus = {
        .loop = c->loop,
        .url = c->url,
        .tls = {.ca_file = opts->tls_ca, .cert_file = opts->tls_cert, .key_file = opts->tls_key},
    };
    XF_TRY(dial(c, &bus, err));
    *out = XF_STEAL(c);
    return XF_OK;
}

void xf_client_close(struct xf_client *c)
{
    if (c == NULL) {
        return;
    }
    xf_bus_client_close(c->bus);
    xf_loop_free(c->loop);
    if (c->token.ptr != NULL) {
        xf_wipe(c->token.ptr, c->token.cap);
    }
    xf_buf_fini(&c->token);
    xf_xfree(c->url);
    xf_xfree(c);
}

static void on_done(void *arg, enum xf_code code, struct xf_str bytes)
{
    struct call *call = arg;

    call->done = true;
    call->code = code;
    xf_buf_put(&call->bytes, bytes);
}

static enum xf_code exchange(struct xf_client *c,
                             struct xf_str request,
                             int64_t deadline_ms,
                             struct call *call,
                             struct xf_err *err)
{
    int64_t until = xf_clock_mono_ms(xf_clock_real()) + deadline_ms;

    (void)xf_bus_call(
        c->bus, request, until, on_done, call); /* nothing cancels it: it has its deadline */
    while (!call->done) {
        xf_loop_turn(c->loop, -1);
    }
    if (call->code == XF_OK) {
        return XF_OK;
    }
    if (call->code == XF_E_LIMIT) {
        return XF_FAIL(err, XF_E_LIMIT, "the request is too large to be sent");
    }
    return XF_FAIL(err,
                   XF_E_UNREACHABLE,
                   "no answer from the coordinator at %s within %lld s: is it running? "
                   "(--coordinator URL, or XFER_COORDINATOR)",
                   c->url,
                   (long long)(deadline_ms / 1000));
}

static enum xf_code decode(struct xf_str bytes,
                           const struct xf_kind_info *info,
                           struct xf_arena *arena,
                           void *reply,
                           struct xf_err *err)
{
    struct xf_msg_reply r;

    XF_TRY(xf_msg_reply_decode(bytes, arena, &r, err));
    if (r.ver != XF_PROTO_VERSION) {
        return XF_FAIL(err,
                       XF_E_VERSION,
                       "the coordinator speaks protocol version %u, this program %d: use programs "
                       "of one release",
                       r.ver,
                       (int)XF_PROTO_VERSION);
    }
    if (r.code != 0) {
        enum xf_code code = r.code < XF_CODE_N ? (enum xf_code)r.code : XF_E_PROTO;
        return XF_FAIL(err, code, "%.*s", XF_STR_ARG(r.text));
    }
    return xf_codec_decode(info->reply(), r.body, arena, reply, err);
}

enum xf_code xf_client_call(struct xf_client *c,
                            const struct xf_client_ask *ask,
                            struct xf_arena *arena,
                            void *reply,
                            struct xf_err *err)
{
    const struct xf_kind_info *info = xf_kind_find(ask->kind);
    XF_AUTO_BUF body = {0};
    XF_AUTO_BUF bytes = {0};
    struct call call = {0};

    XF_ASSERT(info != NULL && info->role == XF_ROLE_OPERATOR);
    xf_buf_init(&body, XF_MSG_MAX);
    xf_buf_init(&bytes, XF_MSG_MAX);
    XF_TRY(xf_codec_encode(info->request(), ask->msg, &body, err));
    struct xf_msg_request r = {.ver = XF_PROTO_VERSION,
                               .kind = ask->kind,
                               .token = xf_buf_view(&c->token),
                               .body = xf_buf_view(&body)};
    XF_TRY(xf_msg_request_encode(&r, &bytes, err));
    xf_buf_init(&call.bytes, XF_MSG_MAX);
    enum xf_code rc = exchange(c, xf_buf_view(&bytes), ask->deadline_ms, &call, err);
    if (rc == XF_OK) {
        rc = decode(xf_buf_view(&call.bytes), info, arena, reply, err);
    }
    xf_buf_fini(&call.bytes);
    if (bytes.ptr != NULL) {
        xf_wipe(bytes.ptr, bytes.len); /* held the token */
    }
    return rc;
}
