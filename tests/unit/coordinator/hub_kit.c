/*
 * hub_kit.c - a bus and a coordinator that remember, for tests of the hub.
 */
#include "tests/unit/coordinator/hub_kit.h"

#include "tests/lib/test.h"

static void fake_reply(void *bus, uint64_t token, struct xf_str bytes)
{
    struct fx *f = bus;

    assert_true(token < f->n_tokens);
    f->answers[token].replies++;
    xf_buf_reset(&f->answers[token].bytes);
    xf_buf_put(&f->answers[token].bytes, bytes);
}

static void fake_drop(void *bus, uint64_t token)
{
    struct fx *f = bus;

    assert_true(token < f->n_tokens);
    f->answers[token].drops++;
}

static void
on_hello(void *arg, struct xf_hub_session *s, const struct xf_msg_hello *m, struct xf_hub_req *r)
{
    struct fx *f = arg;
    const struct xf_msg_hello_reply reply = {.lease_ttl_ms = 15000, .beat_ms = 2000};

    assert_true(xf_str_eq(s->agent_id, m->agent_id));
    f->hellos++;
    if (f->refuse_hello) {
        xf_hub_fail(r, XF_E_BUSY, XF_STR_LIT("not now"));
    } else if (f->hold) {
        f->reqs[f->n_reqs++] = r;
    } else {
        xf_hub_reply(r, &reply);
    }
}

static void take(struct fx *f, struct xf_hub_req *r)
{
    struct xf_msg_lease_reply reply = {.wait_ms = (uint32_t)(++f->handed)};

    if (f->hold) {
        assert_true(f->n_reqs < REQS_MAX);
        f->reqs[f->n_reqs++] = r;
    } else {
        xf_hub_reply(r, &reply);
    }
}

static void
on_lease(void *arg, struct xf_hub_session *s, const struct xf_msg_lease *m, struct xf_hub_req *r)
{
    (void)s;
    (void)m;
    take(arg, r);
}

static void
on_job(void *arg, struct xf_hub_session *s, const struct xf_msg_job *m, struct xf_hub_req *r)
{
    struct fx *f = arg;
    const struct xf_msg_job_reply reply = {.job = m->job, .spec = XF_STR_LIT("format = 1")};

    (void)s;
    f->handed++;
    xf_hub_reply(r, &reply);
}

static void
on_beat(void *arg, struct xf_hub_session *s, const struct xf_msg_beat *m, struct xf_hub_req *r)
{
    struct fx *f = arg;
    const struct xf_msg_beat_reply reply = {.checkpoint_ms = m->in_flight};

    (void)s;
    f->handed++;
    xf_hub_reply(r, &reply);
}

static void
on_fit(void *arg, struct xf_hub_session *s, const struct xf_msg_fit *m, struct xf_hub_req *r)
{
    struct fx *f = arg;

    (void)s;
    (void)m;
    f->handed++;
    xf_hub_fail(r, XF_E_NOT_FOUND, XF_STR_LIT("no such job"));
}

static void
on_bye(void *arg, struct xf_hub_session *s, const struct xf_msg_bye *m, struct xf_hub_req *r)
{
    struct fx *f = arg;
    const struct xf_msg_empty reply = {0};

    (void)s;
    (void)m;
    f->byes++;
    xf_hub_reply(r, &reply);
}

static void on_operator(void *arg, enum xf_kind kind, const void *m, struct xf_hub_req *r)
{
    struct fx *f = arg;
    const struct xf_msg_json reply = {.json = XF_STR_LIT("{}")};

    (void)kind;
    (void)m;
    assert_null(xf_hub_req_session(r));
    f->handed++;
    if (f->hold) {
        f->reqs[f->n_reqs++] = r;
    } else {
        xf_hub_reply(r, &reply);
    }
}

static void on_gone(void *arg, struct xf_hub_session *s, enum xf_hub_gone why)
{
    struct fx *f = arg;

    assert_true(s->id != 0);
    f->gones++;
    f->why = why;
}

static const struct xf_hub_events events = {
    on_hello, on_lease, on_job, on_beat, on_fit, on_bye, on_operator, on_gone};

struct fx *fx_open(const struct xf_hub_opts *more)
{
    struct fx *f = xf_xcalloc(1, sizeof(*f));
    struct xf_hub_opts o = more != NULL ? *more : (struct xf_hub_opts){0};
    struct xf_err err = {0};

    xf_fakeclock_init(&f->clock);
    assert_int_equal(xf_loop_new(&f->clock.clock, &f->loop, &err), XF_OK);
    o.loop = f->loop;
    o.bus = (struct xf_bus_answerer){fake_reply, fake_drop, f};
    o.events = &events;
    o.arg = f;
    o.version = "0.1";
    o.seed = xf_test_seed();
    f->hub = xf_hub_new(&o);
    return f;
}

/* Every token that was handed in is answered or dropped, once. */
void fx_close(struct fx *f)
{
    xf_hub_free(f->hub);
    xf_loop_free(f->loop);
    for (uint64_t i = 0; i < f->n_tokens; i++) {
        assert_int_equal(f->answers[i].replies + f->answers[i].drops, 1);
        xf_buf_fini(&f->answers[i].bytes);
    }
    xf_xfree(f);
}

void pass_ms(struct fx *f, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += STEP_MS) {
        xf_fakeclock_advance(&f->clock, STEP_MS);
        xf_loop_turn(f->loop, 0);
    }
}

/* ---- sending ---- */

uint64_t post(struct fx *f, struct xf_str bytes)
{
    uint64_t token = f->n_tokens++;

    assert_true(token < TOKENS_MAX);
    xf_buf_init(&f->answers[token].bytes, 0);
    xf_hub_on_request(f->hub, token, bytes);
    return token;
}

void request_bytes(const struct agent *a,
                   enum xf_kind kind,
                   uint64_t seq,
                   const char *token,
                   const void *m,
                   struct xf_buf *out)
{
    const struct xf_kind_info *info = xf_kind_find(kind);
    XF_AUTO_BUF body = {0};
    struct xf_err err = {0};
    struct xf_msg_request q = {.ver = XF_PROTO_VERSION,
                               .kind = kind,
                               .channel = info->role == XF_ROLE_AGENT ? info->channel : 0,
                               .seq = seq,
                               .token = xf_str_c(token)};

    xf_buf_init(&body, 0);
    xf_buf_init(out, 0);
    assert_int_equal(xf_codec_encode(info->request(), m, &body, &err), XF_OK);
    q.body = xf_buf_view(&body);
    if (a != NULL) {
        q.instance = xf_str_n(a->instance, XF_INSTANCE_LEN);
        q.session = kind == XF_KIND_HELLO ? 0 : a->session;
    }
    assert_int_equal(xf_msg_request_encode(&q, out, &err), XF_OK);
}

uint64_t send_as(struct fx *f,
                 const struct agent *a,
                 enum xf_kind kind,
                 uint64_t seq,
                 const char *token,
                 const void *m)
{
    XF_AUTO_BUF bytes = {0};

    request_bytes(a, kind, seq, token, m, &bytes);
    return post(f, xf_buf_view(&bytes));
}

uint64_t send_next(struct fx *f, struct agent *a, enum xf_kind kind, const void *m)
{
    return send_as(f, a, kind, ++a->seq[xf_kind_find(kind)->channel], NULL, m);
}

enum xf_code code_of(struct fx *f, uint64_t token)
{
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_reply reply;
    struct xf_err err = {0};

    assert_int_equal(f->answers[token].replies, 1);
    assert_int_equal(
        xf_msg_reply_decode(xf_buf_view(&f->answers[token].bytes), &arena, &reply, &err), XF_OK);
    return (enum xf_code)reply.code;
}

void body_of(struct fx *f, uint64_t token, enum xf_kind kind, struct xf_arena *arena, void *m)
{
    struct xf_msg_reply reply;
    struct xf_err err = {0};

    assert_int_equal(code_of(f, token), XF_OK);
    assert_int_equal(
        xf_msg_reply_decode(xf_buf_view(&f->answers[token].bytes), arena, &reply, &err), XF_OK);
    assert_int_equal(reply.kind, kind);
    assert_int_equal(xf_codec_decode(xf_kind_find(kind)->reply(), reply.body, arena, m, &err),
                     XF_OK);
}

uint64_t try_hello(struct fx *f, struct agent *a, uint64_t nonce, const char *token)
{
    const struct xf_msg_hello m = {.agent_id = xf_str_c(a->id), .version = XF_STR_LIT("0.1")};

    return send_as(f, a, XF_KIND_HELLO, nonce, token, &m);
}

void hello(struct fx *f, struct agent *a, uint64_t nonce)
{
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_hello_reply reply;

    body_of(f, try_hello(f, a, nonce, NULL), XF_KIND_HELLO, &arena, &reply);
    assert_true(reply.session != 0);
    assert_int_equal(reply.poll_ms, 20000);
    assert_true(xf_str_eq_c(reply.version, "0.1"));
    a->session = reply.session;
    memset(a->seq, 0, sizeof(a->seq));
}

bool same_bytes(struct fx *f, uint64_t a, uint64_t b)
{
    return xf_str_eq(xf_buf_view(&f->answers[a].bytes), xf_buf_view(&f->answers[b].bytes));
}

struct xf_hub_stats stats(struct fx *f)
{
    struct xf_hub_stats s;

    xf_hub_stats(f->hub, &s);
    return s;
}
