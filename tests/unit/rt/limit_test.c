/* limit_test.c - growth, halving, the gate, and the line, on a clock that the test moves. */
#include "common/rt/limit.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_rng rng;
    struct xf_limit *limit;
};

static int64_t now(const struct fx *fx)
{
    return xf_loop_mono_ms(fx->loop);
}

static void move(struct fx *fx, int64_t ms)
{
    xf_fakeclock_advance(&fx->clock, ms);
    xf_loop_turn(fx->loop, 0);
}

static void open_fx(struct fx *fx, unsigned start, unsigned max)
{
    struct xf_err err;

    xf_fakeclock_init(&fx->clock);
    assert_int_equal(xf_loop_new(&fx->clock.clock, &fx->loop, &err), XF_OK);
    xf_loop_turn(fx->loop, 0);
    xf_rng_init(&fx->rng, 7);
    fx->limit = xf_limit_new(&(struct xf_limit_opts){
        .loop = fx->loop, .rng = &fx->rng, .name = "test", .start = start, .max = max});
}

static void close_fx(struct fx *fx)
{
    xf_limit_free(fx->limit);
    xf_loop_free(fx->loop);
}

static unsigned take_all(struct fx *fx)
{
    unsigned n = 0;

    while (xf_limit_take(fx->limit)) {
        n++;
    }
    return n;
}

static void give_all(struct fx *fx, unsigned n, enum xf_limit_how how)
{
    int64_t started = now(fx);

    for (unsigned i = 0; i < n; i++) {
        xf_limit_give(fx->limit, how, started, -1);
    }
}

static void grows_while_used_and_stops_at_max(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, 4, 64);
    unsigned last = 0;
    for (int i = 0; i < 24; i++) {
        unsigned n = take_all(&fx);
        assert_true(n >= last);
        last = n;
        give_all(&fx, n, XF_LIMIT_OK);
        move(&fx, 100);
    }
    assert_int_equal(last, 64);
    assert_int_equal(xf_limit_now(fx.limit), 64);
    close_fx(&fx);
}

static void idle_limit_does_not_grow(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, 8, 64);
    for (int i = 0; i < 100; i++) {
        assert_true(xf_limit_take(fx.limit));
        give_all(&fx, 1, XF_LIMIT_OK);
    }
    assert_int_equal(xf_limit_now(fx.limit), 8);
    close_fx(&fx);
}

static void one_wave_of_503_halves_once_and_floor_is_one(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, 16, 64);
    assert_int_equal(take_all(&fx), 16);
    give_all(&fx, 16, XF_LIMIT_THROTTLED);
    assert_int_equal(xf_limit_now(fx.limit), 8);
    assert_int_equal(xf_limit_throttled(fx.limit), 16);
    for (int i = 0; i < 10; i++) {
        move(&fx, 120000); /* past any gate */
        unsigned n = take_all(&fx);
        assert_true(n >= 1);
        give_all(&fx, n, XF_LIMIT_THROTTLED);
    }
    assert_int_equal(xf_limit_now(fx.limit), 1);
    close_fx(&fx);
}

static void c060_retry_after_closes_the_gate(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, 16, 64);
    assert_true(xf_limit_take(fx.limit));
    xf_limit_give(fx.limit, XF_LIMIT_THROTTLED, now(&fx), 5000);
    assert_true(xf_limit_is_closed(fx.limit));
    move(&fx, 4999);
    assert_false(xf_limit_take(fx.limit));
    move(&fx, 2);
    assert_true(xf_limit_take(fx.limit));
    give_all(&fx, 1, XF_LIMIT_OK);
    close_fx(&fx);
}

static void unreachable_pauses_grow_and_end_with_an_answer(void **state)
{
    (void)state;
    struct fx fx;
    int64_t last = 0;

    open_fx(&fx, 16, 64);
    for (int i = 0; i < 6; i++) {
        assert_true(xf_limit_take(fx.limit));
        give_all(&fx, 1, XF_LIMIT_DOWN);
        assert_int_equal(xf_limit_now(fx.limit), 1);
        int64_t waited = 0;
        while (xf_limit_is_closed(fx.limit)) {
            move(&fx, 100);
            waited += 100;
        }
        assert_true(waited * 2 + 200 >= last); /* jitter is at most a half */
        assert_true(waited <= 33000);
        last = waited;
    }
    for (int i = 0; i < 20; i++) {
        unsigned n = take_all(&fx);
        give_all(&fx, n, XF_LIMIT_OK);
        move(&fx, 50);
    }
    assert_true(xf_limit_now(fx.limit) >= 8);
    close_fx(&fx);
}

enum { QUEUE_MAX = 4096 };

/* Requests under way, by the time they began; first in, first out. */
struct queue {
    int64_t began[QUEUE_MAX];
    unsigned head;
    unsigned len;
};

static void send_all(struct fx *fx, struct queue *q)
{
    while (xf_limit_take(fx->limit)) {
        assert_true(q->len < QUEUE_MAX);
        q->began[(q->head + q->len++) % QUEUE_MAX] = now(fx);
    }
}

static void answer_one(struct fx *fx, struct queue *q)
{
    int64_t began = q->began[q->head];

    q->head = (q->head + 1) % QUEUE_MAX;
    q->len--;
    xf_limit_give(fx->limit, XF_LIMIT_OK, began, -1);
}

static void growth_without_gain_is_taken_back(void **state)
{
    (void)state;
    struct fx fx;
    struct queue q = {0};
    unsigned highest = 0;

    /* the service does 8 answers a turn of 10 ms, whatever is asked: more only wait longer */
    open_fx(&fx, 8, 1024);
    send_all(&fx, &q);
    for (int i = 0; i < 2000; i++) {
        move(&fx, 10);
        for (int k = 0; k < 8 && q.len > 0; k++) {
            answer_one(&fx, &q);
        }
        send_all(&fx, &q);
        highest = xf_limit_now(fx.limit) > highest ? xf_limit_now(fx.limit) : highest;
    }
    assert_true(highest <= 64);
    give_all(&fx, q.len, XF_LIMIT_NEUTRAL);
    close_fx(&fx);
}

/* A server next door: thousands of answers come before the first window ends. */
static void a_fast_service_does_not_draw_growth_to_the_max(void **state)
{
    (void)state;
    struct fx fx;
    struct queue q = {0};
    unsigned highest = 0;

    open_fx(&fx, 16, 512);
    send_all(&fx, &q);
    for (int i = 0; i < 60000; i++) {
        move(&fx, 1);
        for (int k = 0; k < 4 && q.len > 0; k++) {
            answer_one(&fx, &q);
        }
        send_all(&fx, &q);
        highest = xf_limit_now(fx.limit) > highest ? xf_limit_now(fx.limit) : highest;
    }
    assert_true(highest <= 128);
    give_all(&fx, q.len, XF_LIMIT_NEUTRAL);
    close_fx(&fx);
}

static void answers_that_come_in_waves_do_not_stop_growth(void **state)
{
    (void)state;
    struct fx fx;
    struct queue q = {0};
    unsigned lowest = UINT32_MAX;

    /* every answer takes 300 ms, so windows see many or few of them */
    open_fx(&fx, 16, 1024);
    send_all(&fx, &q);
    for (int i = 0; i < 3000; i++) {
        move(&fx, 10);
        while (q.len > 0 && now(&fx) - q.began[q.head] >= 300) {
            answer_one(&fx, &q);
        }
        send_all(&fx, &q);
        if (i > 1000 && xf_limit_now(fx.limit) < lowest) {
            lowest = xf_limit_now(fx.limit);
        }
    }
    assert_int_equal(lowest, 1024);
    give_all(&fx, q.len, XF_LIMIT_NEUTRAL);
    close_fx(&fx);
}

struct waiter {
    struct xf_limit_want want;
    int order;
};

static int went;

static void on_go(struct xf_limit_want *want)
{
    struct waiter *w = want->arg;

    w->order = ++went;
}

static void waiters_go_in_order_and_after_the_gate(void **state)
{
    (void)state;
    struct fx fx;
    struct waiter a = {.want = {.go = on_go, .arg = &a}};
    struct waiter b = {.want = {.go = on_go, .arg = &b}};

    went = 0;
    open_fx(&fx, 1, 1);
    assert_true(xf_limit_take(fx.limit));
    xf_limit_wait(fx.limit, &a.want);
    xf_limit_wait(fx.limit, &b.want);
    xf_limit_give(fx.limit, XF_LIMIT_OK, now(&fx), -1);
    assert_int_equal(a.order, 1);
    assert_int_equal(b.order, 0);
    xf_limit_give(fx.limit, XF_LIMIT_THROTTLED, now(&fx), 1000);
    assert_int_equal(b.order, 0);
    while (xf_limit_is_closed(fx.limit)) {
        move(&fx, 100);
    }
    assert_int_equal(b.order, 2);
    give_all(&fx, 1, XF_LIMIT_OK);
    close_fx(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_while_used_and_stops_at_max),
        cmocka_unit_test(idle_limit_does_not_grow),
        cmocka_unit_test(one_wave_of_503_halves_once_and_floor_is_one),
        cmocka_unit_test(c060_retry_after_closes_the_gate),
        cmocka_unit_test(unreachable_pauses_grow_and_end_with_an_answer),
        cmocka_unit_test(growth_without_gain_is_taken_back),
        cmocka_unit_test(a_fast_service_does_not_draw_growth_to_the_max),
        cmocka_unit_test(answers_that_come_in_waves_do_not_stop_growth),
        cmocka_unit_test(waiters_go_in_order_and_after_the_gate),
    };
    return xf_test_run("agent_limit", tests, NULL, NULL);
}
