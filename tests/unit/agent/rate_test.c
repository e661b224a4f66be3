/* rate_test.c - the average holds, the line is fair, a limit comes and goes. */
#include "agent/rate.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_rate *rate;
};

struct waiter {
    struct xf_rate_want want;
    int order;
};

static int went;

static void on_go(struct xf_rate_want *want)
{
    struct waiter *w = want->arg;

    w->order = ++went;
}

static void move(struct fx *fx, int64_t ms)
{
    xf_fakeclock_advance(&fx->clock, ms);
    xf_loop_turn(fx->loop, 0);
}

static void open_fx(struct fx *fx, uint64_t bytes_s)
{
    struct xf_err err;

    xf_fakeclock_init(&fx->clock);
    assert_int_equal(xf_loop_new(&fx->clock.clock, &fx->loop, &err), XF_OK);
    xf_loop_turn(fx->loop, 0);
    fx->rate = xf_rate_new(fx->loop);
    xf_rate_set(fx->rate, bytes_s);
}

static void close_fx(struct fx *fx)
{
    xf_rate_free(fx->rate);
    xf_loop_free(fx->loop);
}

static void the_average_holds_for_small_and_large_pieces(void **state)
{
    (void)state;
    static const uint64_t pieces[] = {1000, 50000, 5000000};

    for (size_t i = 0; i < 3; i++) {
        struct fx fx;
        uint64_t taken = 0;
        open_fx(&fx, 1000000);
        for (int ms = 0; ms < 60000; ms += 10) {
            while (xf_rate_take(fx.rate, pieces[i])) {
                taken += pieces[i];
            }
            move(&fx, 10);
        }
        assert_true(taken >= 59000000);
        assert_true(taken <= 61000000 + pieces[i]);
        close_fx(&fx);
    }
}

static void who_waits_goes_in_order_when_the_debt_is_paid(void **state)
{
    (void)state;
    struct fx fx;
    struct waiter a = {.want = {.bytes = 2000, .go = on_go, .arg = &a}};
    struct waiter b = {.want = {.bytes = 10, .go = on_go, .arg = &b}};
    struct waiter c = {.want = {.bytes = 10, .go = on_go, .arg = &c}};

    went = 0;
    open_fx(&fx, 1000);
    assert_true(xf_rate_take(fx.rate, 3000));
    assert_false(xf_rate_take(fx.rate, 1));
    xf_rate_wait(fx.rate, &a.want);
    xf_rate_wait(fx.rate, &b.want);
    xf_rate_wait(fx.rate, &c.want);
    xf_rate_forget(fx.rate, &c.want);
    for (int i = 0; i < 29; i++) {
        move(&fx, 100);
    }
    assert_int_equal(a.order, 0);
    for (int i = 0; i < 3; i++) {
        move(&fx, 100);
    }
    assert_int_equal(a.order, 1);
    assert_int_equal(b.order, 0);
    for (int i = 0; i < 21; i++) {
        move(&fx, 100);
    }
    assert_int_equal(b.order, 2);
    assert_int_equal(c.order, 0);
    close_fx(&fx);
}

static void no_limit_lets_everybody_through(void **state)
{
    (void)state;
    struct fx fx;
    struct waiter a = {.want = {.bytes = 2000, .go = on_go, .arg = &a}};

    went = 0;
    open_fx(&fx, 0);
    assert_true(xf_rate_take(fx.rate, UINT64_MAX));
    assert_true(xf_rate_take(fx.rate, UINT64_MAX));
    xf_rate_set(fx.rate, 1);
    assert_true(xf_rate_take(fx.rate, 1000000));
    assert_false(xf_rate_take(fx.rate, 1));
    xf_rate_wait(fx.rate, &a.want);
    xf_rate_set(fx.rate, 0);
    move(&fx, 10);
    assert_int_equal(a.order, 1);
    close_fx(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_average_holds_for_small_and_large_pieces),
        cmocka_unit_test(who_waits_goes_in_order_when_the_debt_is_paid),
        cmocka_unit_test(no_limit_lets_everybody_through),
    };
    return xf_test_run("agent_rate", tests, NULL, NULL);
}
