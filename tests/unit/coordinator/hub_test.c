/*
 * hub_test.c - sessions and requests over a bus that the test plays: repeats, late copies, parked
 * polls, roles, and ends.
 */
#include "coordinator/hub.h"
#include "proto/codec.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

enum { TOKENS_MAX = 4096, REQS_MAX = 256, STEP_MS = 500 };

/* What became of a token. */
struct answer {
    struct xf_buf bytes;
    int replies;
    int drops;
};

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_hub *hub;
    struct answer answers[TOKENS_MAX];
    uint64_t n_tokens;
    bool hold; /* requests wait in reqs until the test answers */
    bool refuse_hello;
    struct xf_hub_req *reqs[REQS_MAX];
    size_t n_reqs;
    uint64_t handed; /* requests that reached the coordinator's side */

    int hellos, gones, byes;
    enum xf_hub_gone why;
};

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

static struct fx *fx_open(const struct xf_hub_opts *more)
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
static void fx_close(struct fx *f)
{
    xf_hub_free(f->hub);
    xf_loop_free(f->loop);
    for (uint64_t i = 0; i < f->n_tokens; i++) {
        assert_int_equal(f->answers[i].replies + f->answers[i].drops, 1);
        xf_buf_fini(&f->answers[i].bytes);
    }
    xf_xfree(f);
}

static void pass_ms(struct fx *f, int64_t ms)
{
    for (int64_t at = 0; at < ms; at += STEP_MS) {
        xf_fakeclock_advance(&f->clock, STEP_MS);
        xf_loop_turn(f->loop, 0);
    }
}

/* ---- sending ---- */

struct agent {
    unsigned char instance[XF_INSTANCE_LEN];
    const char *id;
    uint64_t session;
    uint64_t seq[XF_CHANNEL_N];
};

static uint64_t post(struct fx *f, struct xf_str bytes)
{
    uint64_t token = f->n_tokens++;

    assert_true(token < TOKENS_MAX);
    xf_buf_init(&f->answers[token].bytes, 0);
    xf_hub_on_request(f->hub, token, bytes);
    return token;
}

static void request_bytes(const struct agent *a,
                          enum xf_kind kind,
                          uint64_t seq,
                          const char *token,
                          const void *m,
                          struct xf_buf *out)
{
    const struct xf_kind_info *info = xf_kind_find(kind);
    XF_AUTO_BUF body;
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

static uint64_t send_as(struct fx *f,
                        const struct agent *a,
                        enum xf_kind kind,
                        uint64_t seq,
                        const char *token,
                        const void *m)
{
    XF_AUTO_BUF bytes;

    request_bytes(a, kind, seq, token, m, &bytes);
    return post(f, xf_buf_view(&bytes));
}

static const struct xf_msg_lease any_lease = {.free_tasks = 1, .free_objects = 1000};
static const struct xf_msg_poll any_poll = {.wait_ms = 0};

static uint64_t send_next(struct fx *f, struct agent *a, enum xf_kind kind, const void *m)
{
    return send_as(f, a, kind, ++a->seq[xf_kind_find(kind)->channel], NULL, m);
}

static enum xf_code code_of(struct fx *f, uint64_t token)
{
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_reply reply;
    struct xf_err err = {0};

    assert_int_equal(f->answers[token].replies, 1);
    assert_int_equal(
        xf_msg_reply_decode(xf_buf_view(&f->answers[token].bytes), &arena, &reply, &err), XF_OK);
    return (enum xf_code)reply.code;
}

static void
body_of(struct fx *f, uint64_t token, enum xf_kind kind, struct xf_arena *arena, void *m)
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

static uint64_t try_hello(struct fx *f, struct agent *a, uint64_t nonce, const char *token)
{
    const struct xf_msg_hello m = {.agent_id = xf_str_c(a->id), .version = XF_STR_LIT("0.1")};

    return send_as(f, a, XF_KIND_HELLO, nonce, token, &m);
}

static void hello(struct fx *f, struct agent *a, uint64_t nonce)
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

static bool same_bytes(struct fx *f, uint64_t a, uint64_t b)
{
    return xf_str_eq(xf_buf_view(&f->answers[a].bytes), xf_buf_view(&f->answers[b].bytes));
}

static struct xf_hub_stats stats(struct fx *f)
{
    struct xf_hub_stats s;

    xf_hub_stats(f->hub, &s);
    return s;
}

/* ---- repeats ---- */

static void c089_repeated_request_is_done_once_and_gets_the_same_bytes(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    uint64_t first;
    uint64_t again;

    (void)state;
    hello(f, &a, 7);
    first = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    again = send_as(f, &a, XF_KIND_LEASE, 1, NULL, &any_lease);
    assert_int_equal(f->handed, 1);
    assert_true(same_bytes(f, first, again));
    assert_int_equal(stats(f).replayed, 1);
    first = send_next(f, &a, XF_KIND_FIT, &(struct xf_msg_fit){.job = XF_STR_LIT("j-1")});
    again = send_as(f, &a, XF_KIND_FIT, 1, NULL, &(struct xf_msg_fit){.job = XF_STR_LIT("j-1")});
    assert_int_equal(f->handed, 2); /* errors are kept as well */
    assert_int_equal(code_of(f, first), XF_E_NOT_FOUND);
    assert_true(same_bytes(f, first, again));
    fx_close(f);
}

static void c089_copy_that_comes_while_the_first_is_worked_on_waits_with_it(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_lease_reply reply = {.wait_ms = 77};
    uint64_t tokens[12];
    int replies = 0;

    (void)state;
    hello(f, &a, 7);
    f->hold = true;
    tokens[0] = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    for (size_t i = 1; i < XF_ARRAY_LEN(tokens); i++) {
        tokens[i] = send_as(f, &a, XF_KIND_LEASE, 1, NULL, &any_lease);
    }
    assert_int_equal(f->n_reqs, 1);
    assert_int_equal(stats(f).open_requests, 1);
    xf_hub_reply(f->reqs[0], &reply);
    for (size_t i = 0; i < XF_ARRAY_LEN(tokens); i++) {
        replies += f->answers[tokens[i]].replies;
        assert_int_equal(f->answers[tokens[i]].replies + f->answers[tokens[i]].drops, 1);
    }
    assert_int_equal(replies, 8); /* more copies than that: the oldest were dropped */
    assert_true(same_bytes(f, tokens[10], tokens[11]));
    assert_int_equal(f->answers[tokens[11]].replies, 1);
    f->hold = false;
    fx_close(f);
}

static void c089_old_request_that_comes_late_is_refused(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};

    (void)state;
    hello(f, &a, 7);
    for (int i = 0; i < 3; i++) {
        (void)send_next(f, &a, XF_KIND_LEASE, &any_lease);
    }
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 2, NULL, &any_lease)), XF_E_INVAL);
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 1, NULL, &any_lease)), XF_E_INVAL);
    assert_int_equal(f->handed, 3);
    assert_int_equal(stats(f).old_refused, 2);
    /* Channels have numbers of their own. */
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_BEAT, 1, NULL, &(struct xf_msg_beat){0})),
                     XF_OK);
    fx_close(f);
}

/* Recorded requests are injected twice and out of order, against a model of what may happen. */
static void c089_replayed_recordings_change_nothing(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_buf recorded[60];
    uint64_t first[60];
    struct xf_rng rng;
    size_t sent = 0;

    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    hello(f, &a, 7);
    for (size_t i = 0; i < XF_ARRAY_LEN(recorded); i++) {
        request_bytes(&a, XF_KIND_LEASE, i + 1, NULL, &any_lease, &recorded[i]);
    }
    while (sent < XF_ARRAY_LEN(recorded)) {
        size_t pick = (size_t)xf_rng_below(&rng, sent + 1);
        uint64_t token = post(f, xf_buf_view(&recorded[pick]));

        if (pick == sent) {
            first[sent++] = token;
        } else if (pick + 1 == sent) {
            assert_true(same_bytes(f, token, first[pick]));
        } else {
            assert_int_equal(code_of(f, token), XF_E_INVAL);
        }
        assert_int_equal(f->handed, sent);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(recorded); i++) {
        xf_buf_fini(&recorded[i]);
    }
    fx_close(f);
}

static void next_request_lets_go_of_one_whose_caller_gave_up(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_lease_reply reply = {.wait_ms = 1};
    uint64_t given_up;
    uint64_t next;

    (void)state;
    hello(f, &a, 7);
    f->hold = true;
    given_up = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    next = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    assert_int_equal(f->answers[given_up].drops, 1);
    assert_null(xf_hub_req_session(f->reqs[0]));
    assert_non_null(xf_hub_req_session(f->reqs[1]));
    xf_hub_reply(f->reqs[0], &reply); /* goes nowhere */
    assert_int_equal(f->answers[next].replies, 0);
    reply.wait_ms = 2;
    xf_hub_reply(f->reqs[1], &reply);
    assert_int_equal(code_of(f, next), XF_OK);
    fx_close(f);
}

/* ---- sessions ---- */

static void repeated_hello_is_one_session(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_hello_reply reply = {.beat_ms = 1};
    uint64_t first;
    uint64_t again;

    (void)state;
    f->hold = true;
    first = try_hello(f, &a, 7, NULL);
    again = try_hello(f, &a, 7, NULL);
    assert_int_equal(f->hellos, 1);
    xf_hub_reply(f->reqs[0], &reply);
    assert_true(same_bytes(f, first, again));
    assert_true(same_bytes(f, first, try_hello(f, &a, 7, NULL)));
    assert_int_equal(f->hellos, 1);
    assert_int_equal(f->gones, 0);
    assert_int_equal(stats(f).sessions, 1);
    f->hold = false;
    fx_close(f);
}

static void same_instance_supersedes_at_once(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent before;
    uint64_t held;

    (void)state;
    hello(f, &a, 7);
    before = a;
    f->hold = true;
    held = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    f->hold = false;
    hello(f, &a, 8);
    assert_int_equal(f->gones, 1);
    assert_int_equal(f->why, XF_HUB_SUPERSEDED);
    assert_int_equal(code_of(f, held), XF_E_STALE);
    assert_null(xf_hub_req_session(f->reqs[0]));
    xf_hub_fail(f->reqs[0], XF_E_BUSY, XF_STR_LIT("to nobody"));
    assert_true(before.session != a.session);
    assert_int_equal(code_of(f, send_next(f, &before, XF_KIND_LEASE, &any_lease)), XF_E_STALE);
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_LEASE, &any_lease)), XF_OK);
    /* The same state directory under another name is the same instance. */
    a.id = "renamed";
    hello(f, &a, 9);
    assert_int_equal(stats(f).sessions, 1);
    assert_non_null(xf_hub_find_agent(f->hub, XF_STR_LIT("renamed")));
    assert_null(xf_hub_find_agent(f->hub, XF_STR_LIT("a")));
    fx_close(f);
}

static void id_of_another_live_instance_is_refused_until_that_one_is_gone(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent b = {.id = "a", .instance = {2}};

    (void)state;
    hello(f, &a, 7);
    assert_int_equal(code_of(f, try_hello(f, &b, 8, NULL)), XF_E_LOCKED);
    assert_int_equal(f->gones, 0);
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_LEASE, &any_lease)), XF_OK);
    pass_ms(f, 25000);
    assert_int_equal(f->gones, 1);
    assert_int_equal(f->why, XF_HUB_TIMED_OUT);
    hello(f, &b, 9);
    fx_close(f);
}

static void silent_session_ends_and_a_heard_one_stays(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent b = {.id = "b", .instance = {2}};

    (void)state;
    hello(f, &a, 7);
    hello(f, &b, 7);
    for (int i = 0; i < 30; i++) {
        pass_ms(f, 2000);
        (void)send_next(f, &b, XF_KIND_BEAT, &(struct xf_msg_beat){0});
    }
    assert_int_equal(f->gones, 1);
    assert_null(xf_hub_find(f->hub, a.session));
    assert_non_null(xf_hub_find(f->hub, b.session));
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_BEAT, &(struct xf_msg_beat){0})),
                     XF_E_STALE);
    assert_int_equal(stats(f).stale_refused, 1);
    fx_close(f);
}

static void time_in_which_the_coordinator_stood_still_is_nobodys_silence(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};

    (void)state;
    hello(f, &a, 7);
    xf_fakeclock_advance(&f->clock, 90000); /* stopped by a debugger, or the disk */
    xf_loop_turn(f->loop, 0);
    assert_int_equal(f->gones, 0);
    pass_ms(f, 25000);
    assert_int_equal(f->gones, 1);
    fx_close(f);
}

static void session_of_another_instance_is_stale(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent thief;

    (void)state;
    hello(f, &a, 7);
    thief = a;
    thief.instance[0] = 9;
    assert_int_equal(code_of(f, send_next(f, &thief, XF_KIND_LEASE, &any_lease)), XF_E_STALE);
    assert_int_equal(f->handed, 0);
    fx_close(f);
}

static void one_session_too_many_is_refused_as_busy(void **state)
{
    struct fx *f = fx_open(&(struct xf_hub_opts){.sessions_max = 2});
    struct agent a = {.id = "a", .instance = {1}};
    struct agent b = {.id = "b", .instance = {2}};
    struct agent c = {.id = "c", .instance = {3}};

    (void)state;
    hello(f, &a, 1);
    hello(f, &b, 1);
    assert_int_equal(code_of(f, try_hello(f, &c, 1, NULL)), XF_E_BUSY);
    hello(f, &a, 2); /* its own place is free again */
    fx_close(f);
}

static void bye_ends_the_session_after_its_answer(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    uint64_t poll;
    uint64_t bye;

    (void)state;
    hello(f, &a, 7);
    poll = send_next(f, &a, XF_KIND_POLL, &any_poll);
    bye = send_next(f, &a, XF_KIND_BYE, &(struct xf_msg_bye){0});
    assert_int_equal(code_of(f, bye), XF_OK);
    assert_int_equal(code_of(f, poll), XF_OK);
    assert_int_equal(f->gones, 1);
    assert_int_equal(f->why, XF_HUB_BYE);
    assert_int_equal(stats(f).parked_polls, 0);
    fx_close(f);
}

static void hello_that_the_coordinator_refuses_leaves_no_session(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};

    (void)state;
    f->refuse_hello = true;
    assert_int_equal(code_of(f, try_hello(f, &a, 7, NULL)), XF_E_BUSY);
    assert_int_equal(stats(f).sessions, 0);
    f->refuse_hello = false;
    hello(f, &a, 8);
    fx_close(f);
}

/* ---- polls ---- */

static void poll_is_parked_and_answered_empty_after_its_time(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_poll_reply reply;
    uint64_t poll;

    (void)state;
    hello(f, &a, 7);
    poll = send_next(f, &a, XF_KIND_POLL, &any_poll);
    pass_ms(f, 10000);
    (void)send_next(f, &a, XF_KIND_BEAT, &(struct xf_msg_beat){0}); /* stays alive */
    pass_ms(f, 9000);
    assert_int_equal(f->answers[poll].replies, 0);
    assert_int_equal(stats(f).parked_polls, 1);
    pass_ms(f, 1500);
    body_of(f, poll, XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, 0);
    poll = send_next(f, &a, XF_KIND_POLL, &(struct xf_msg_poll){.wait_ms = 1000});
    pass_ms(f, 1500);
    assert_int_equal(f->answers[poll].replies, 1);
    fx_close(f);
}

static void order_answers_the_parked_poll_at_once(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_poll_reply reply;
    struct xf_msg_order pause = {.kind = XF_ORDER_PAUSE, .job = XF_STR_LIT("j-1")};
    uint64_t poll;
    uint64_t again;

    (void)state;
    hello(f, &a, 7);
    poll = send_next(f, &a, XF_KIND_POLL, &any_poll);
    xf_hub_order(f->hub, xf_hub_find(f->hub, a.session), &pause);
    xf_loop_turn(f->loop, 0);
    body_of(f, poll, XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, 1);
    assert_int_equal(reply.orders[0].kind, XF_ORDER_PAUSE);
    assert_true(xf_str_eq_c(reply.orders[0].job, "j-1"));
    again = send_as(f, &a, XF_KIND_POLL, 1, NULL, &any_poll); /* the answer was lost */
    assert_true(same_bytes(f, poll, again));
    assert_int_equal(stats(f).parked_polls, 0);
    fx_close(f);
}

static void c090_orders_wait_for_the_next_poll_and_the_newest_of_a_job_counts(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_poll_reply reply;
    const struct xf_msg_order orders[] = {
        {.kind = XF_ORDER_PAUSE, .job = XF_STR_LIT("j-1")},
        {.kind = XF_ORDER_DRAIN},
        {.kind = XF_ORDER_RUN, .job = XF_STR_LIT("j-2"), .in_flight = 5},
        {.kind = XF_ORDER_DROP_TASK, .task = 4, .attempt = 1},
        {.kind = XF_ORDER_RUN, .job = XF_STR_LIT("j-1")},
        {.kind = XF_ORDER_UNDRAIN},
    };

    (void)state;
    hello(f, &a, 7);
    for (size_t i = 0; i < XF_ARRAY_LEN(orders); i++) {
        xf_hub_order(f->hub, xf_hub_find(f->hub, a.session), &orders[i]);
    }
    body_of(f, send_next(f, &a, XF_KIND_POLL, &any_poll), XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, 4);
    assert_true(xf_msg_order_eq(&reply.orders[0], &orders[2]));
    assert_true(xf_msg_order_eq(&reply.orders[1], &orders[3]));
    assert_true(xf_msg_order_eq(&reply.orders[2], &orders[4]));
    assert_true(xf_msg_order_eq(&reply.orders[3], &orders[5]));
    for (uint64_t i = 0; i < XF_ORDERS_MAX + 10; i++) { /* nobody polls: bounded */
        const struct xf_msg_order o = {.kind = XF_ORDER_DROP_TASK, .task = i};

        xf_hub_order(f->hub, xf_hub_find(f->hub, a.session), &o);
    }
    body_of(f, send_next(f, &a, XF_KIND_POLL, &any_poll), XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, XF_ORDERS_MAX);
    assert_int_equal(reply.orders[0].task, 10);
    fx_close(f);
}

/* ---- roles and malformed requests ---- */

static void roles_are_checked_when_tokens_are_set(void **state)
{
    const struct xf_str agents[] = {XF_STR_LIT("agent-secret-1"), XF_STR_LIT("agent-secret-2")};
    const struct xf_str operators[] = {XF_STR_LIT("operator-secret")};
    struct fx *f = fx_open(&(struct xf_hub_opts){.agent_tokens = agents,
                                                 .n_agent_tokens = 2,
                                                 .operator_tokens = operators,
                                                 .n_operator_tokens = 1});
    struct agent a = {.id = "a", .instance = {1}};
    const struct xf_msg_control cancel = {.job = XF_STR_LIT("j-1"), .verb = XF_CONTROL_CANCEL};
    static const char *const wrong[] = {
        NULL, "", "agent-secret-", "agent-secret-11", "operator-secret"};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_hello_reply reply;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(wrong); i++) {
        assert_int_equal(code_of(f, try_hello(f, &a, 7, wrong[i])), XF_E_DENIED);
    }
    body_of(f, try_hello(f, &a, 7, "agent-secret-2"), XF_KIND_HELLO, &arena, &reply);
    a.session = reply.session;
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_LEASE, &any_lease)), XF_OK);
    assert_int_equal(f->handed, 1);
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_CONTROL, 1, NULL, &cancel)), XF_E_DENIED);
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_CONTROL, 1, "agent-secret-2", &cancel)),
                     XF_E_DENIED);
    assert_int_equal(f->handed, 1);
    assert_int_equal(code_of(f, send_as(f, NULL, XF_KIND_CONTROL, 0, "operator-secret", &cancel)),
                     XF_OK);
    assert_int_equal(f->handed, 2);
    assert_int_equal(stats(f).denied, 7);
    fx_close(f);
}

static void require_token_without_tokens_lets_nobody_in(void **state)
{
    struct fx *f = fx_open(&(struct xf_hub_opts){.require_token = true});
    struct agent a = {.id = "a", .instance = {1}};
    const struct xf_msg_query q = {.job = XF_STR_EMPTY};

    (void)state;
    assert_int_equal(code_of(f, try_hello(f, &a, 7, "anything")), XF_E_DENIED);
    assert_int_equal(code_of(f, send_as(f, NULL, XF_KIND_STATUS, 0, NULL, &q)), XF_E_DENIED);
    fx_close(f);
}

static void operator_needs_no_session(void **state)
{
    struct fx *f = fx_open(NULL);
    const struct xf_msg_query q = {.job = XF_STR_EMPTY};
    uint64_t held;

    (void)state;
    assert_int_equal(code_of(f, send_as(f, NULL, XF_KIND_STATUS, 0, NULL, &q)), XF_OK);
    f->hold = true;
    held = send_as(f, NULL, XF_KIND_STATUS, 0, NULL, &q);
    fx_close(f); /* dropped, and counted there */
    (void)held;
}

static void malformed_requests_are_told_and_reach_nobody(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_request q = {.ver = XF_PROTO_VERSION, .kind = 99};
    XF_AUTO_BUF bytes;
    struct xf_err err = {0};
    uint64_t token;

    (void)state;
    xf_buf_init(&bytes, 0);
    hello(f, &a, 7);
    assert_int_equal(code_of(f, post(f, XF_STR_LIT("garbage"))), XF_E_PROTO);
    assert_int_equal(code_of(f, post(f, XF_STR_EMPTY)), XF_E_PROTO);
    assert_int_equal(xf_msg_request_encode(&q, &bytes, &err), XF_OK);
    assert_int_equal(code_of(f, post(f, xf_buf_view(&bytes))), XF_E_UNSUPPORTED);
    q = (struct xf_msg_request){.ver = 9, .kind = XF_KIND_STATUS};
    xf_buf_reset(&bytes);
    assert_int_equal(xf_msg_request_encode(&q, &bytes, &err), XF_OK);
    assert_int_equal(code_of(f, post(f, xf_buf_view(&bytes))), XF_E_VERSION);
    q = (struct xf_msg_request){.ver = XF_PROTO_VERSION,
                                .kind = XF_KIND_LEASE,
                                .instance = xf_str_n(a.instance, XF_INSTANCE_LEN),
                                .session = a.session,
                                .channel = XF_CHANNEL_LEASE,
                                .seq = 1,
                                .body = XF_STR_LIT("not a lease")};
    xf_buf_reset(&bytes);
    assert_int_equal(xf_msg_request_encode(&q, &bytes, &err), XF_OK);
    token = post(f, xf_buf_view(&bytes));
    assert_int_equal(code_of(f, token), XF_E_PROTO);
    assert_true(same_bytes(f, token, post(f, xf_buf_view(&bytes)))); /* kept like any answer */
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 0, NULL, &any_lease)), XF_E_PROTO);
    a.session = 12345;
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 2, NULL, &any_lease)), XF_E_STALE);
    assert_int_equal(f->handed, 0);
    fx_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c089_repeated_request_is_done_once_and_gets_the_same_bytes),
        cmocka_unit_test(c089_copy_that_comes_while_the_first_is_worked_on_waits_with_it),
        cmocka_unit_test(c089_old_request_that_comes_late_is_refused),
        cmocka_unit_test(c089_replayed_recordings_change_nothing),
        cmocka_unit_test(next_request_lets_go_of_one_whose_caller_gave_up),
        cmocka_unit_test(repeated_hello_is_one_session),
        cmocka_unit_test(same_instance_supersedes_at_once),
        cmocka_unit_test(id_of_another_live_instance_is_refused_until_that_one_is_gone),
        cmocka_unit_test(silent_session_ends_and_a_heard_one_stays),
        cmocka_unit_test(time_in_which_the_coordinator_stood_still_is_nobodys_silence),
        cmocka_unit_test(session_of_another_instance_is_stale),
        cmocka_unit_test(one_session_too_many_is_refused_as_busy),
        cmocka_unit_test(bye_ends_the_session_after_its_answer),
        cmocka_unit_test(hello_that_the_coordinator_refuses_leaves_no_session),
        cmocka_unit_test(poll_is_parked_and_answered_empty_after_its_time),
        cmocka_unit_test(order_answers_the_parked_poll_at_once),
        cmocka_unit_test(c090_orders_wait_for_the_next_poll_and_the_newest_of_a_job_counts),
        cmocka_unit_test(roles_are_checked_when_tokens_are_set),
        cmocka_unit_test(require_token_without_tokens_lets_nobody_in),
        cmocka_unit_test(operator_needs_no_session),
        cmocka_unit_test(malformed_requests_are_told_and_reach_nobody),
    };

    return xf_test_run("hub", tests, NULL, NULL);
}
