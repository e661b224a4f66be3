/* link_test.c - a session over a bus that the test plays: repeats, losses, endings. */
#include "agent/link.h"
#include "proto/codec.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"

enum { CALLS_MAX = 16 };

struct call {
    struct xf_buf bytes;
    xf_bus_done_fn *done;
    void *arg;
    int64_t deadline_ms;
    bool open;
};

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_link *link;
    struct call calls[CALLS_MAX]; /* by id - 1, in order */
    size_t n_calls;
    int hang_ups;
    int ups, downs, beats, lost, orders, refused;
    int64_t beat_sent_ms;
    enum xf_code lease_code, job_code, bye_code;
    int leases, jobs, byes;
};

static uint64_t
fake_call(void *bus, struct xf_str bytes, int64_t deadline_ms, xf_bus_done_fn *done, void *arg)
{
    struct fx *f = bus;

    assert_true(f->n_calls < CALLS_MAX);
    struct call *c = &f->calls[f->n_calls++];
    xf_buf_init(&c->bytes, 0);
    xf_buf_put(&c->bytes, bytes);
    c->done = done;
    c->arg = arg;
    c->deadline_ms = deadline_ms;
    c->open = true;
    return f->n_calls;
}

static void fake_cancel(void *bus, uint64_t id)
{
    struct fx *f = bus;

    f->calls[id - 1].open = false;
}

static void fake_hang_up(void *bus)
{
    struct fx *f = bus;

    f->hang_ups++;
}

static size_t get_held(void *arg, struct xf_msg_held *out, size_t max)
{
    (void)arg; /* always one */
    assert_true(max > 0);
    out[0] = (struct xf_msg_held){.task = 7, .attempt = 3};
    return 1;
}

static void on_up(void *arg, const struct xf_msg_hello_reply *r)
{
    struct fx *f = arg;

    assert_int_equal(r->session, 42);
    f->ups++;
}

static void on_down(void *arg)
{
    struct fx *f = arg;

    f->downs++;
}

static void on_refused(void *arg, const struct xf_err *err)
{
    struct fx *f = arg;

    assert_int_not_equal(err->code, XF_OK);
    f->refused++;
}

static void fill_beat(void *arg, struct xf_msg_beat *m, struct xf_arena *a)
{
    (void)arg; /* nothing to say */
    (void)a;   /* no lists */
    m->in_flight = 5;
}

static void on_beat(void *arg, const struct xf_msg_beat_reply *r, int64_t sent_ms)
{
    struct fx *f = arg;

    (void)r; /* empty */
    f->beats++;
    f->beat_sent_ms = sent_ms;
}

static void on_beat_lost(void *arg)
{
    struct fx *f = arg;

    assert_int_equal(f->downs, 0); /* told before on_down */
    f->lost++;
}

static void on_orders(void *arg, const struct xf_msg_order *orders, size_t n)
{
    struct fx *f = arg;

    (void)orders; /* counted only */
    f->orders += (int)n;
}

static const struct xf_link_events events = {
    get_held, on_up, on_down, on_refused, fill_beat, on_beat, on_beat_lost, on_orders};

static void open_fx(struct fx *f)
{
    struct xf_err err;

    memset(f, 0, sizeof(*f));
    xf_fakeclock_init(&f->clock);
    assert_int_equal(xf_loop_new(&f->clock.clock, &f->loop, &err), XF_OK);
    struct xf_link_opts opts = {.loop = f->loop,
                                .bus = {fake_call, fake_cancel, fake_hang_up, f},
                                .events = &events,
                                .arg = f,
                                .agent_id = XF_STR_LIT("a1"),
                                .instance = XF_STR_LIT("0123456789abcdef"),
                                .version = XF_STR_LIT("1"),
                                .token = XF_STR_LIT("secret"),
                                .try_ms = 1000,
                                .seed = 1};
    f->link = xf_link_new(&opts);
    xf_loop_turn(f->loop, 0);
}

static void close_fx(struct fx *f)
{
    xf_link_free(f->link);
    xf_loop_free(f->loop);
    for (size_t i = 0; i < f->n_calls; i++) {
        xf_buf_fini(&f->calls[i].bytes);
    }
}

static void pass(struct fx *f, int64_t ms)
{
    xf_fakeclock_advance(&f->clock, ms);
    xf_loop_turn(f->loop, 0);
}

/* The open call of that kind, newest first; NULL when there is none. */
static struct call *
open_call(struct fx *f, enum xf_kind kind, struct xf_msg_request *out, struct xf_arena *a)
{
    struct xf_err err;

    for (size_t i = f->n_calls; i > 0; i--) {
        struct xf_msg_request r;
        assert_int_equal(xf_msg_request_decode(xf_buf_view(&f->calls[i - 1].bytes), a, &r, &err),
                         XF_OK);
        if (f->calls[i - 1].open && r.kind == (uint32_t)kind) {
            *out = r;
            return &f->calls[i - 1];
        }
    }
    return NULL;
}

static void answer(struct call *c, enum xf_kind kind, enum xf_code code, const void *m)
{
    XF_AUTO_BUF body = {0};
    XF_AUTO_BUF bytes = {0};
    struct xf_err err;

    assert_non_null(c);
    xf_buf_init(&body, 0);
    xf_buf_init(&bytes, 0);
    if (code == XF_OK) {
        assert_int_equal(xf_codec_encode(xf_kind_find(kind)->reply(), m, &body, &err), XF_OK);
    }
    struct xf_msg_reply r = {
        .ver = XF_PROTO_VERSION, .kind = kind, .code = code, .body = xf_buf_view(&body)};
    assert_int_equal(xf_msg_reply_encode(&r, &bytes, &err), XF_OK);
    c->open = false;
    c->done(c->arg, XF_OK, xf_buf_view(&bytes));
}

static void come_up(struct fx *f)
{
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;
    struct xf_msg_hello_reply hello = {
        .session = 42, .lease_ttl_ms = 15000, .beat_ms = 2000, .poll_ms = 20000};

    xf_arena_init(&a);
    struct call *c = open_call(f, XF_KIND_HELLO, &r, &a);
    assert_non_null(c);
    assert_int_equal(r.session, 0);
    assert_true(xf_str_eq_c(r.token, "secret"));
    answer(c, XF_KIND_HELLO, XF_OK, &hello);
    assert_true(xf_link_is_up(f->link));
}

static void a_session_begins_beats_and_renews_by_the_sending_time(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;
    struct xf_msg_beat_reply reply = {0};

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    come_up(&f);
    pass(&f, 2000);
    int64_t sent = xf_loop_mono_ms(f.loop);
    struct call *c = open_call(&f, XF_KIND_BEAT, &r, &a);
    assert_non_null(c);
    assert_int_equal(r.session, 42);
    assert_int_equal(r.seq, 1);
    pass(&f, 700);
    answer(c, XF_KIND_BEAT, XF_OK, &reply);
    assert_int_equal(f.beats, 1);
    assert_true(f.beat_sent_ms == sent && xf_link_renewed_ms(f.link) == sent);
    close_fx(&f);
}

static void a_beat_within_a_time_comes_then_and_never_later_than_it_would(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;
    struct xf_msg_beat_reply reply = {0};

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    come_up(&f);
    xf_link_beat_within(f.link, 200);
    xf_link_beat_within(f.link, 500); /* the earlier one holds */
    pass(&f, 199);
    assert_null(open_call(&f, XF_KIND_BEAT, &r, &a));
    pass(&f, 1);
    answer(open_call(&f, XF_KIND_BEAT, &r, &a), XF_KIND_BEAT, XF_OK, &reply);
    xf_link_beat_within(f.link, 60000);
    pass(&f, 2000);
    answer(open_call(&f, XF_KIND_BEAT, &r, &a), XF_KIND_BEAT, XF_OK, &reply);
    assert_int_equal(f.beats, 2);
    close_fx(&f);
}

static void c089_a_request_without_answer_is_repeated_byte_for_byte(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    come_up(&f);
    pass(&f, 2000);
    struct call *first = open_call(&f, XF_KIND_BEAT, &r, &a);
    assert_non_null(first);
    pass(&f, 1500);
    first->open = false;
    first->done(first->arg, XF_E_TIMEOUT, XF_STR_EMPTY);
    assert_int_equal(f.hang_ups, 1);
    struct call *second = open_call(&f, XF_KIND_BEAT, &r, &a);
    assert_true(second != NULL && second != first);
    assert_true(xf_str_eq(xf_buf_view(&second->bytes), xf_buf_view(&first->bytes)));
    assert_int_equal(f.lost, 0);
    close_fx(&f);
}

static void on_lease(void *arg, const struct xf_msg_lease_reply *r, const struct xf_err *err)
{
    struct fx *f = arg;

    assert_true((r != NULL) == (err->code == XF_OK));
    f->leases++;
    f->lease_code = err->code;
}

static void on_job(void *arg, const struct xf_msg_job_reply *r, const struct xf_err *err)
{
    struct fx *f = arg;

    assert_true((r != NULL) == (err->code == XF_OK));
    f->jobs++;
    f->job_code = err->code;
}

static void a_stale_session_tells_everyone_and_says_hello_again(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;
    struct xf_msg_lease lease = {.free_tasks = 1, .kinds = 1};

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    come_up(&f);
    xf_link_lease(f.link, &lease, on_lease, &f);
    xf_link_job(f.link, XF_STR_LIT("j-1"), on_job, &f);
    xf_link_beat_soon(f.link);
    pass(&f, 1);
    assert_non_null(open_call(&f, XF_KIND_LEASE, &r, &a));
    assert_non_null(open_call(&f, XF_KIND_JOB, &r, &a));
    answer(open_call(&f, XF_KIND_BEAT, &r, &a), XF_KIND_BEAT, XF_E_STALE, NULL);
    assert_int_equal(f.lost, 1);
    assert_int_equal(f.downs, 1);
    assert_int_equal(f.leases, 1);
    assert_int_equal(f.lease_code, XF_E_STALE);
    assert_int_equal(f.job_code, XF_E_STALE);
    assert_null(open_call(&f, XF_KIND_POLL, &r, &a));
    pass(&f, 2000);
    struct call *hello = open_call(&f, XF_KIND_HELLO, &r, &a);
    assert_non_null(hello);
    f.downs = 0;
    come_up(&f);
    assert_int_equal(f.ups, 2);
    close_fx(&f);
}

static void without_a_session_requests_fail_later_not_inside_the_call(void **state)
{
    struct fx f;
    struct xf_msg_lease lease = {.free_tasks = 1, .kinds = 1};

    (void)state; /* no fixture */
    open_fx(&f);
    xf_link_lease(f.link, &lease, on_lease, &f);
    xf_link_job(f.link, XF_STR_LIT("j-1"), on_job, &f);
    assert_int_equal(f.leases + f.jobs, 0);
    pass(&f, 1);
    assert_int_equal(f.lease_code, XF_E_STALE);
    assert_int_equal(f.job_code, XF_E_STALE);
    close_fx(&f);
}

static void orders_come_by_the_long_poll_which_is_asked_again(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;
    struct xf_msg_order order = {.kind = XF_ORDER_DRAIN};
    struct xf_msg_poll_reply reply = {.orders = &order, .n_orders = 1};

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    come_up(&f);
    answer(open_call(&f, XF_KIND_POLL, &r, &a), XF_KIND_POLL, XF_OK, &reply);
    assert_int_equal(f.orders, 1);
    assert_non_null(open_call(&f, XF_KIND_POLL, &r, &a));
    assert_int_equal(r.seq, 2);
    close_fx(&f);
}

static void a_refusal_ends_it_for_good(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    answer(open_call(&f, XF_KIND_HELLO, &r, &a), XF_KIND_HELLO, XF_E_LOCKED, NULL);
    assert_int_equal(f.refused, 1);
    size_t n = f.n_calls;
    pass(&f, 60000);
    assert_int_equal(f.n_calls, n);
    close_fx(&f);
}

static void on_bye(void *arg, const struct xf_err *err)
{
    struct fx *f = arg;

    f->byes++;
    f->bye_code = err->code;
}

static void bye_is_the_last_word_and_has_a_deadline(void **state)
{
    struct fx f;
    XF_AUTO_ARENA a = {0};
    struct xf_msg_request r;
    struct xf_msg_empty empty = {0};

    (void)state; /* no fixture */
    xf_arena_init(&a);
    open_fx(&f);
    come_up(&f);
    xf_link_bye(f.link, XF_STR_LIT("drained"), 500, on_bye, &f);
    answer(open_call(&f, XF_KIND_BYE, &r, &a), XF_KIND_BYE, XF_OK, &empty);
    assert_int_equal(f.byes, 1);
    assert_int_equal(f.bye_code, XF_OK);
    close_fx(&f);

    open_fx(&f);
    come_up(&f);
    xf_link_bye(f.link, XF_STR_LIT("drained"), 500, on_bye, &f);
    pass(&f, 501);
    assert_int_equal(f.byes, 1);
    assert_int_equal(f.bye_code, XF_E_TIMEOUT);
    size_t n = f.n_calls;
    pass(&f, 60000);
    assert_int_equal(f.n_calls, n);
    close_fx(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_begins_beats_and_renews_by_the_sending_time),
        cmocka_unit_test(a_beat_within_a_time_comes_then_and_never_later_than_it_would),
        cmocka_unit_test(c089_a_request_without_answer_is_repeated_byte_for_byte),
        cmocka_unit_test(a_stale_session_tells_everyone_and_says_hello_again),
        cmocka_unit_test(without_a_session_requests_fail_later_not_inside_the_call),
        cmocka_unit_test(orders_come_by_the_long_poll_which_is_asked_again),
        cmocka_unit_test(a_refusal_ends_it_for_good),
        cmocka_unit_test(bye_is_the_last_word_and_has_a_deadline),
    };

    return xf_test_run("link", tests, NULL, NULL);
}
