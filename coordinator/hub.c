/*
 * hub.c - from bytes to a request, once; from its answer to bytes, for every copy that arrived.
 *
 * A channel of a session knows the number of its last request, and that request itself while it is
 * open, or its answer. What arrives is one of:
 *   a lower number    a late copy: refused, nobody waits for it
 *   the same number   the request again: gets the kept bytes, or waits with the first
 *   a higher number   the next request. One still open lost its caller; its answer goes nowhere
 *
 * Invariants: 1. A request is handed to the coordinator at most once.
 *             2. All copies of a request get the same bytes.
 *             3. Every token is answered or dropped exactly once.
 */
#include "coordinator/hub.h"

#include "common/base/log.h"
#include "coordinator/hub_int.h"
#include "proto/codec.h"

/* ---- answers ---- */

void xf_hub_encode(
    uint32_t kind, enum xf_code code, struct xf_str text, struct xf_str body, struct xf_buf *out)
{
    struct xf_msg_reply reply = {.ver = XF_PROTO_VERSION,
                                 .kind = kind,
                                 .code = (uint32_t)code,
                                 .text = xf_str_sub(text, 0, XF_TEXT_MAX),
                                 .body = body};
    struct xf_err err;

    xf_buf_reset(out);
    if (xf_msg_reply_encode(&reply, out, &err) != XF_OK) {
        reply.code = XF_E_LIMIT;
        reply.text = XF_STR_LIT("the answer is larger than a message may be");
        reply.body = XF_STR_EMPTY;
        XF_ASSERT(xf_msg_reply_encode(&reply, out, &err) == XF_OK);
    }
}

void xf_hub_refuse(
    struct xf_hub *h, uint64_t token, uint32_t kind, enum xf_code code, const char *text)
{
    XF_AUTO_BUF out = {0};

    xf_buf_init(&out, 0);
    xf_hub_encode(kind, code, xf_str_c(text), XF_STR_EMPTY, &out);
    h->o.bus.reply(h->o.bus.bus, token, xf_buf_view(&out));
}

static void req_free(struct xf_hub_req *r)
{
    xf_list_remove(&r->link);
    r->hub->n_open--;
    xf_arena_fini(&r->arena);
    xf_xfree(r);
}

/* Send the bytes to every copy, keep them for later ones, and be done with the request. */
static void finish(struct xf_hub_req *r, enum xf_code code, struct xf_str bytes)
{
    struct xf_hub *h = r->hub;
    struct session *s = r->session;
    bool ends = s != NULL && ((r->kind->kind == XF_KIND_BYE && code == XF_OK) ||
                              (r->kind->kind == XF_KIND_HELLO && code != XF_OK));
    bool is_bye = r->kind->kind == XF_KIND_BYE;

    for (size_t i = 0; i < r->n_tokens; i++) {
        h->o.bus.reply(h->o.bus.bus, r->tokens[i], bytes);
    }
    if (s != NULL) {
        r->chan->open = NULL;
        xf_buf_reset(&r->chan->kept);
        xf_buf_put(&r->chan->kept, bytes);
        r->chan->has_kept = true;
    }
    req_free(r);
    if (ends) {
        xf_session_end(s, is_bye ? XF_HUB_BYE : XF_HUB_CLOSED);
    }
}

void xf_hub_fail(struct xf_hub_req *r, enum xf_code code, struct xf_str text)
{
    XF_AUTO_BUF out = {0};

    XF_ASSERT_OWNER(r->hub);
    XF_ASSERT(code != XF_OK);
    xf_buf_init(&out, XF_MSG_MAX);
    xf_hub_encode(r->kind->kind, code, text, XF_STR_EMPTY, &out);
    finish(r, code, xf_buf_view(&out));
}

void xf_hub_reply(struct xf_hub_req *r, const void *m)
{
    XF_AUTO_BUF body = {0};
    XF_AUTO_BUF out = {0};
    struct xf_msg_hello_reply hello;
    struct xf_err err = {0};

    XF_ASSERT_OWNER(r->hub);
    xf_buf_init(&body, XF_MSG_MAX);
    xf_buf_init(&out, XF_MSG_MAX);
    if (r->kind->kind == XF_KIND_HELLO) {
        memcpy(&hello, m, sizeof(hello));
        hello.session = r->session != NULL ? r->session->pub.id : 1; /* 1: nobody reads it */
        hello.poll_ms = (uint32_t)r->hub->o.poll_ms;
        hello.version = xf_str_c(r->hub->o.version);
        m = &hello;
    }
    if (xf_codec_encode(r->kind->reply(), m, &body, &err) != XF_OK) {
        XF_WARN("reply.refused", xf_f_c("kind", r->kind->name), xf_f_err(&err));
        xf_hub_fail(r, err.code, xf_str_c(err.msg));
        return;
    }
    xf_hub_encode(r->kind->kind, XF_OK, XF_STR_EMPTY, xf_buf_view(&body), &out);
    finish(r, XF_OK, xf_buf_view(&out));
}

void xf_hub_orphan(struct xf_hub_req *r, enum xf_code code)
{
    struct xf_hub *h = r->hub;

    for (size_t i = 0; i < r->n_tokens; i++) {
        if (code == XF_OK) {
            h->o.bus.drop(h->o.bus.bus, r->tokens[i]);
        } else {
            xf_hub_refuse(h, r->tokens[i], r->kind->kind, code, "the session has ended");
        }
    }
    r->n_tokens = 0;
    r->chan->open = NULL;
    r->chan = NULL;
    r->session = NULL;
}

struct xf_hub_session *xf_hub_req_session(const struct xf_hub_req *r)
{
    return r->session != NULL ? &r->session->pub : NULL;
}

struct xf_arena *xf_hub_req_arena(struct xf_hub_req *r)
{
    return &r->arena;
}

/* ---- requests ---- */

static struct xf_hub_req *req_new(struct xf_hub *h,
                                  const struct xf_kind_info *kind,
                                  uint64_t token,
                                  struct session *s,
                                  struct chan *chan)
{
    struct xf_hub_req *r = xf_xcalloc(1, sizeof(*r));

    r->hub = h;
    r->kind = kind;
    r->tokens[0] = token;
    r->n_tokens = 1;
    r->session = s;
    r->chan = chan;
    if (chan != NULL) {
        chan->open = r;
    }
    xf_list_push_back(&h->open, &r->link);
    h->n_open++;
    return r;
}

/* The body of a request, or NULL after it was answered as malformed. */
static void *decode_body(struct xf_hub_req *r, struct xf_str body)
{
    const struct xf_msg_desc *d = r->kind->request();
    void *m = xf_arena_calloc(&r->arena, 1, d->size);
    struct xf_err err = {0};

    if (xf_codec_decode(d, body, &r->arena, m, &err) == XF_OK) {
        return m;
    }
    r->hub->stats.malformed++;
    xf_hub_fail(r, err.code, xf_str_c(err.msg));
    return NULL;
}

static void add_token(struct xf_hub_req *r, uint64_t token)
{
    struct xf_hub *h = r->hub;

    if (r->n_tokens == XF_HUB_TOKENS_MAX) {
        h->o.bus.drop(h->o.bus.bus, r->tokens[0]);
        memmove(&r->tokens[0], &r->tokens[1], (XF_HUB_TOKENS_MAX - 1) * sizeof(r->tokens[0]));
        r->n_tokens--;
    }
    r->tokens[r->n_tokens++] = token;
}

/* The last request of the channel has come again. */
static void replay(struct xf_hub *h, struct chan *c, uint64_t token)
{
    h->stats.replayed++;
    if (c->open != NULL) {
        add_token(c->open, token);
    } else {
        XF_ASSERT(c->has_kept);
        h->o.bus.reply(h->o.bus.bus, token, xf_buf_view(&c->kept));
    }
}

static void on_poll(struct session *s, const struct xf_msg_poll *m)
{
    struct xf_hub *h = s->hub;
    int64_t wait = h->o.poll_ms;

    if (m->wait_ms != 0 && m->wait_ms < wait) {
        wait = m->wait_ms;
    }
    h->stats.parked_polls++;
    xf_timer_in(h->o.loop, &s->poll_timer, wait);
    xf_session_answer_poll(s, false);
}

static void dispatch(struct session *s, struct xf_hub_req *r, const void *m)
{
    const struct xf_hub_events *e = s->hub->o.events;
    void *arg = s->hub->o.arg;

    switch ((enum xf_kind)r->kind->kind) {
    case XF_KIND_HELLO: e->on_hello(arg, &s->pub, m, r); break;
    case XF_KIND_LEASE: e->on_lease(arg, &s->pub, m, r); break;
    case XF_KIND_JOB: e->on_job(arg, &s->pub, m, r); break;
    case XF_KIND_BEAT: e->on_beat(arg, &s->pub, m, r); break;
    case XF_KIND_POLL: on_poll(s, m); break;
    case XF_KIND_FIT: e->on_fit(arg, &s->pub, m, r); break;
    case XF_KIND_BYE: e->on_bye(arg, &s->pub, m, r); break;
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
    case XF_KIND_PRUNE: XF_ASSERT(!"operators have no session"); break;
    }
}

/* A new request on a channel: whatever the channel had before is over. */
static void begin(struct session *s,
                  struct chan *c,
                  const struct xf_kind_info *kind,
                  uint64_t token,
                  const struct xf_msg_request *q)
{
    struct xf_hub *h = s->hub;
    struct xf_hub_req *r;
    const void *m;

    if (c->open != NULL && c->open->kind->kind == XF_KIND_POLL) {
        xf_session_answer_poll(s, true);
    } else if (c->open != NULL) {
        xf_hub_orphan(c->open, XF_OK);
    }
    c->last_seq = q->seq;
    c->has_kept = false;
    xf_buf_reset(&c->kept);
    r = req_new(h, kind, token, s, c);
    m = decode_body(r, q->body);
    if (m != NULL) {
        dispatch(s, r, m);
    }
}

static void on_session_request(struct xf_hub *h,
                               const struct xf_kind_info *kind,
                               uint64_t token,
                               const struct xf_msg_request *q)
{
    struct session *s = xf_map_get(&h->by_id, xf_map_key_u64(&q->session));
    struct chan *c;

    if (s == NULL || !xf_str_eq(xf_str_n(s->pub.instance, XF_INSTANCE_LEN), q->instance)) {
        h->stats.stale_refused++;
        xf_hub_refuse(h, token, kind->kind, XF_E_STALE, "no such session: say hello");
        return;
    }
    s->pub.last_seen_ms = xf_loop_mono_ms(h->o.loop);
    c = &s->chans[kind->channel];
    if (q->channel != (uint32_t)kind->channel || q->seq == 0) {
        h->stats.malformed++;
        xf_hub_refuse(h, token, kind->kind, XF_E_PROTO, "wrong channel, or no sequence number");
    } else if (q->seq < c->last_seq) {
        h->stats.old_refused++;
        xf_hub_refuse(h, token, kind->kind, XF_E_INVAL, "an older request of this channel");
    } else if (q->seq == c->last_seq) {
        replay(h, c, token);
    } else {
        begin(s, c, kind, token, q);
    }
}

/* ---- roles ---- */

/* Takes the same time whatever differs. */
static bool is_same_secret(struct xf_str a, struct xf_str b)
{
    unsigned differs = a.len == b.len ? 0 : 1;

    for (size_t i = 0; i < a.len && b.len != 0; i++) {
        differs |= (unsigned char)a.ptr[i] ^ (unsigned char)b.ptr[i % b.len];
    }
    return differs == 0;
}

static bool has_role(const struct xf_hub *h, enum xf_role role, struct xf_str token)
{
    const struct xf_str *list = h->o.agent_tokens;
    size_t n = h->o.n_agent_tokens;
    bool found = false;

    if (n + h->o.n_operator_tokens == 0) {
        return !h->o.require_token;
    }
    if (role == XF_ROLE_OPERATOR) {
        list = h->o.operator_tokens;
        n = h->o.n_operator_tokens;
    }
    for (size_t i = 0; i < n; i++) {
        found = is_same_secret(token, list[i]) || found;
    }
    return found && token.len != 0;
}

static bool check_role(struct xf_hub *h,
                       const struct xf_kind_info *kind,
                       uint64_t token,
                       const struct xf_msg_request *q)
{
    if (has_role(h, kind->role, q->token)) {
        return true;
    }
    h->stats.denied++;
    XF_DEBUG("request.denied", xf_f_c("kind", kind->name), xf_f_bool("token", q->token.len != 0));
    xf_hub_refuse(h,
                  token,
                  kind->kind,
                  XF_E_DENIED,
                  kind->role == XF_ROLE_AGENT
                      ? "no token of an agent: give one with --token-file"
                      : "no token of an operator: give one with --token-file");
    return false;
}

/* ---- hello and operators ---- */

/* Why this hello cannot have a session; NULL when it can. */
static const char *refuse_hello(struct xf_hub *h,
                                const struct xf_msg_hello *m,
                                struct xf_str instance,
                                enum xf_code *code)
{
    struct session *other = xf_map_get(&h->by_agent, m->agent_id);

    if (other != NULL && !xf_str_eq(xf_str_n(other->pub.instance, XF_INSTANCE_LEN), instance)) {
        *code = XF_E_LOCKED;
        return "this agent id is in use by another live instance: give this one another --id, or "
               "stop the other";
    }
    if (h->n_sessions >= h->o.sessions_max) {
        *code = XF_E_BUSY;
        return "the coordinator has as many sessions as it takes";
    }
    return NULL;
}

static void on_hello(struct xf_hub *h,
                     const struct xf_kind_info *kind,
                     uint64_t token,
                     const struct xf_msg_request *q)
{
    struct session *old = xf_session_of_instance(h, q->instance);
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_hello m;
    struct xf_err err = {0};
    const char *why;
    struct session *s;

    if (!check_role(h, kind, token, q)) {
        return;
    }
    if (old != NULL && old->chans[CHAN_HELLO].last_seq == q->seq) {
        old->pub.last_seen_ms = xf_loop_mono_ms(h->o.loop);
        replay(h, &old->chans[CHAN_HELLO], token);
        return;
    }
    if (q->instance.len != XF_INSTANCE_LEN || q->seq == 0 ||
        xf_msg_hello_decode(q->body, &arena, &m, &err) != XF_OK ||
        !xf_msg_is_agent_id(m.agent_id)) {
        h->stats.malformed++;
        xf_hub_refuse(h, token, kind->kind, XF_E_PROTO, "hello is not understood");
        return;
    }
    if (old != NULL) {
        xf_session_end(old, XF_HUB_SUPERSEDED); /* the lock of its state: that process is dead */
    }
    why = refuse_hello(h, &m, q->instance, &err.code);
    if (why != NULL) {
        xf_hub_refuse(h, token, kind->kind, err.code, why);
        return;
    }
    s = xf_session_new(h, &m, q->instance);
    begin(s, &s->chans[CHAN_HELLO], kind, token, q);
}

static void on_operator(struct xf_hub *h,
                        const struct xf_kind_info *kind,
                        uint64_t token,
                        const struct xf_msg_request *q)
{
    struct xf_hub_req *r;
    const void *m;

    if (!check_role(h, kind, token, q)) {
        return;
    }
    r = req_new(h, kind, token, NULL, NULL);
    m = decode_body(r, q->body);
    if (m != NULL) {
        h->o.events->on_operator(h->o.arg, (enum xf_kind)kind->kind, m, r);
    }
}

static void refuse_version(struct xf_hub *h, uint64_t token, const struct xf_msg_request *q)
{
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    xf_buf_putf(&text,
                "protocol version %u here, %u there: install the same release on both sides",
                (unsigned)XF_PROTO_VERSION,
                q->ver);
    xf_hub_refuse(h, token, q->kind, XF_E_VERSION, text.ptr);
}

void xf_hub_on_request(void *hub, uint64_t token, struct xf_str bytes)
{
    struct xf_hub *h = hub;
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_request q;
    const struct xf_kind_info *kind;
    struct xf_err err = {0};

    XF_ASSERT_OWNER(h);
    h->stats.requests++;
    if (xf_msg_request_decode(bytes, &arena, &q, &err) != XF_OK) {
        h->stats.malformed++;
        xf_hub_refuse(h, token, 0, err.code, err.msg);
        return;
    }
    kind = xf_kind_find(q.kind);
    if (q.ver != XF_PROTO_VERSION) {
        refuse_version(h, token, &q);
    } else if (kind == NULL) {
        h->stats.malformed++;
        xf_hub_refuse(h, token, q.kind, XF_E_UNSUPPORTED, "unknown kind of request");
    } else if (kind->role == XF_ROLE_OPERATOR) {
        on_operator(h, kind, token, &q);
    } else if (kind->kind == XF_KIND_HELLO) {
        on_hello(h, kind, token, &q);
    } else {
        on_session_request(h, kind, token, &q);
    }
}

/* ---- life ---- */

struct xf_hub *xf_hub_new(const struct xf_hub_opts *opts)
{
    struct xf_hub *h = xf_xcalloc(1, sizeof(*h));

    xf_owner_take(&h->owner);
    h->o = *opts;
    h->o.sessions_max = opts->sessions_max != 0 ? opts->sessions_max : XF_HUB_SESSIONS;
    h->o.session_ms = opts->session_ms != 0 ? opts->session_ms : XF_HUB_SESSION_MS;
    h->o.poll_ms = opts->poll_ms != 0 ? opts->poll_ms : XF_HUB_POLL_MS;
    if (opts->seed != 0) {
        xf_rng_init(&h->rng, opts->seed);
    } else {
        xf_rng_init_os(&h->rng);
    }
    xf_map_init(&h->by_id);
    xf_map_init(&h->by_agent);
    xf_list_init(&h->open);
    h->sweep = (struct xf_timer){.cb = xf_hub_sweep, .arg = h};
    h->sweep_at_ms = xf_loop_mono_ms(opts->loop) + XF_HUB_SWEEP_MS;
    xf_timer_at(opts->loop, &h->sweep, h->sweep_at_ms);
    return h;
}

void xf_hub_free(struct xf_hub *h)
{
    if (h == NULL) {
        return;
    }
    XF_ASSERT_OWNER(h);
    while (h->n_sessions > 0) {
        xf_session_end(h->sessions[h->n_sessions - 1], XF_HUB_CLOSED);
    }
    XF_LIST_FOREACH (node, &h->open) {
        struct xf_hub_req *r = XF_CONTAINER_OF(node, struct xf_hub_req, link);

        for (size_t i = 0; i < r->n_tokens; i++) {
            h->o.bus.drop(h->o.bus.bus, r->tokens[i]);
        }
        req_free(r);
    }
    xf_timer_stop(h->o.loop, &h->sweep);
    xf_map_fini(&h->by_id);
    xf_map_fini(&h->by_agent);
    xf_xfree(h->sessions);
    xf_xfree(h);
}

void xf_hub_stats(const struct xf_hub *h, struct xf_hub_stats *out)
{
    *out = h->stats;
    out->sessions = h->n_sessions;
    out->open_requests = h->n_open - h->stats.parked_polls;
}
