/* bulk_test.c - the width climbs while it pays, memory is left for others, the line is fair. */
#include "agent/bulk.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"

enum { MIB = 1 << 20 };

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_bulk *bulk;
    unsigned n_out;
};

struct waiter {
    struct xf_bulk_want want;
    struct fx *fx;
    int order; /* 0: waits */
};

static int went;

static void on_go(struct xf_bulk_want *want)
{
    struct waiter *w = want->arg;

    w->order = ++went;
    w->fx->n_out++;
}

static void open_fx(struct fx *fx, size_t mem)
{
    struct xf_err err;

    went = 0;
    fx->n_out = 0;
    xf_fakeclock_init(&fx->clock);
    assert_int_equal(xf_loop_new(&fx->clock.clock, &fx->loop, &err), XF_OK);
    xf_loop_turn(fx->loop, 0);
    fx->bulk = xf_bulk_new(fx->loop, mem);
}

static void close_fx(struct fx *fx)
{
    while (fx->n_out > 0) {
        fx->n_out--;
        xf_bulk_give(fx->bulk, MIB);
    }
    xf_bulk_free(fx->bulk);
    xf_loop_free(fx->loop);
}

static void wait_for_turn(struct fx *fx, struct waiter *w, size_t mem)
{
    *w = (struct waiter){.want = {.mem = mem, .go = on_go, .arg = w}, .fx = fx};
    xf_bulk_wait(fx->bulk, &w->want);
}

static void take_all(struct fx *fx)
{
    while (xf_bulk_take(fx->bulk, MIB)) {
        fx->n_out++;
    }
}

/* `n` windows in which each body that is out brings `each` bytes a ms, at most `most` together. */
static void run_windows(struct fx *fx, int n, uint64_t each, uint64_t most)
{
    for (int i = 0; i < n * 10; i++) {
        uint64_t rate = each * fx->n_out < most ? each * fx->n_out : most;
        xf_fakeclock_advance(&fx->clock, 50);
        xf_loop_turn(fx->loop, 0);
        xf_bulk_moved(fx->bulk, rate * 50);
        while (fx->n_out > xf_bulk_width(fx->bulk)) { /* bodies end */
            fx->n_out--;
            xf_bulk_give(fx->bulk, MIB);
        }
        take_all(fx);
    }
}

static void the_width_grows_while_more_bodies_bring_more_bytes(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, (size_t)1024 * MIB);
    take_all(&fx);
    assert_int_equal(fx.n_out, 4);
    run_windows(&fx, 30, 50000, UINT64_MAX / 50);
    assert_int_equal(xf_bulk_width(fx.bulk), 64);
    close_fx(&fx);
}

static void a_full_network_is_not_shared_by_more_bodies(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, (size_t)1024 * MIB);
    take_all(&fx);
    run_windows(&fx, 15, 50000, 100000);
    assert_int_equal(xf_bulk_width(fx.bulk), 4);
    close_fx(&fx);
}

static void a_network_that_became_wider_is_found(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, (size_t)1024 * MIB);
    take_all(&fx);
    run_windows(&fx, 15, 50000, 100000);
    run_windows(&fx, 60, 50000, 1600000);
    assert_true(xf_bulk_width(fx.bulk) >= 20);
    close_fx(&fx);
}

static void memory_is_left_for_others_but_one_always_goes(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, (size_t)2 * MIB);
    take_all(&fx);
    assert_int_equal(fx.n_out, 2);
    close_fx(&fx);
    open_fx(&fx, MIB / 2);
    take_all(&fx);
    assert_int_equal(fx.n_out, 1);
    close_fx(&fx);
}

static void who_waits_goes_in_order_and_is_not_passed(void **state)
{
    (void)state;
    struct fx fx;
    struct waiter large;
    struct waiter small;
    struct waiter gone;

    open_fx(&fx, (size_t)4 * MIB);
    take_all(&fx);
    wait_for_turn(&fx, &large, (size_t)3 * MIB);
    wait_for_turn(&fx, &gone, MIB);
    wait_for_turn(&fx, &small, MIB);
    xf_bulk_forget(fx.bulk, &gone.want);
    for (int i = 0; i < 2; i++) {
        fx.n_out--;
        xf_bulk_give(fx.bulk, MIB);
        assert_false(xf_bulk_take(fx.bulk, MIB));
        assert_int_equal(went, 0);
    }
    fx.n_out--;
    xf_bulk_give(fx.bulk, MIB);
    assert_int_equal(large.order, 1);
    assert_int_equal(small.order, 0);
    fx.n_out--;
    xf_bulk_give(fx.bulk, MIB);
    assert_int_equal(small.order, 2);
    assert_int_equal(gone.order, 0);
    fx.n_out--;
    xf_bulk_give(fx.bulk, (size_t)3 * MIB);
    close_fx(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_width_grows_while_more_bodies_bring_more_bytes),
        cmocka_unit_test(a_full_network_is_not_shared_by_more_bodies),
        cmocka_unit_test(a_network_that_became_wider_is_found),
        cmocka_unit_test(memory_is_left_for_others_but_one_always_goes),
        cmocka_unit_test(who_waits_goes_in_order_and_is_not_passed),
    };
    return xf_test_run("agent_bulk", tests, NULL, NULL);
}
