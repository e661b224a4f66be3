/* loop_test.c - timers in order, watches that stay stopped, signals, stop from outside. */
#include "common/base/rng.h"
#include "common/rt/loop.h"
#include "common/rt/thread.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"

#include <signal.h>
#include <unistd.h>

static struct xf_err err;

enum { TIMERS = 200 };

struct timers {
    struct xf_timer t[TIMERS];
    int64_t last;
    int fired;
    struct xf_loop *loop;
};

static void on_timer(struct xf_timer *t)
{
    struct timers *all = t->arg;

    assert_true(t->at_ms >= all->last);
    assert_true(t->at_ms <= xf_loop_mono_ms(all->loop));
    all->last = t->at_ms;
    all->fired++;
}

static void timers_fire_in_order_and_only_when_started(void **state)
{
    struct xf_fakeclock clock;
    struct timers all = {0};
    struct xf_rng rng;
    int started = 0;

    (void)state; /* no fixture */
    xf_fakeclock_init(&clock);
    xf_rng_init(&rng, xf_test_seed());
    assert_int_equal(xf_loop_new(&clock.clock, &all.loop, &err), XF_OK);
    int64_t now = xf_loop_mono_ms(all.loop);
    for (int i = 0; i < TIMERS; i++) {
        all.t[i] = (struct xf_timer){.cb = on_timer, .arg = &all};
        xf_timer_at(all.loop, &all.t[i], now + (int64_t)xf_rng_below(&rng, 1000));
    }
    for (int i = 0; i < TIMERS; i++) {
        if (xf_rng_below(&rng, 3) == 0) {
            xf_timer_stop(all.loop, &all.t[i]);
        } else {
            xf_timer_at(all.loop, &all.t[i], now + (int64_t)xf_rng_below(&rng, 1000));
            started++;
        }
    }
    for (int i = 0; i < 110; i++) {
        xf_fakeclock_advance(&clock, 10);
        xf_loop_turn(all.loop, 0);
    }
    assert_int_equal(all.fired, started);
    xf_loop_free(all.loop);
}

struct pair {
    struct xf_watch a;
    struct xf_watch b;
    struct xf_loop *loop;
    int calls;
};

static void stop_the_other(struct xf_watch *w, unsigned events)
{
    struct pair *p = w->arg;

    assert_int_equal(events & (unsigned)XF_LOOP_IN, XF_LOOP_IN);
    p->calls++;
    xf_watch_stop(p->loop, w == &p->a ? &p->b : &p->a);
}

static void a_watch_stopped_in_the_same_turn_gets_no_late_call(void **state)
{
    struct pair p = {0};
    int fds1[2];
    int fds2[2];

    (void)state; /* no fixture */
    assert_int_equal(pipe(fds1), 0);
    assert_int_equal(pipe(fds2), 0);
    assert_int_equal(xf_loop_new(NULL, &p.loop, &err), XF_OK);
    p.a = (struct xf_watch){.fd = fds1[0], .cb = stop_the_other, .arg = &p};
    p.b = (struct xf_watch){.fd = fds2[0], .cb = stop_the_other, .arg = &p};
    assert_int_equal(xf_watch_start(p.loop, &p.a, XF_LOOP_IN, &err), XF_OK);
    assert_int_equal(xf_watch_start(p.loop, &p.b, XF_LOOP_IN, &err), XF_OK);
    assert_int_equal(write(fds1[1], "x", 1), 1);
    assert_int_equal(write(fds2[1], "x", 1), 1);
    xf_loop_turn(p.loop, 1000);
    assert_int_equal(p.calls, 1);
    xf_loop_free(p.loop);
    for (int i = 0; i < 2; i++) {
        (void)close(fds1[i]); /* test pipe */
        (void)close(fds2[i]); /* test pipe */
    }
}

static void on_signal(void *arg, int signo)
{
    struct pair *p = arg;

    assert_int_equal(signo, SIGUSR1);
    p->calls++;
    xf_loop_stop(p->loop);
}

static void a_signal_arrives_through_the_loop(void **state)
{
    struct pair p = {0};
    const int signos[] = {SIGUSR1, 0};

    (void)state; /* no fixture */
    assert_int_equal(xf_loop_new(NULL, &p.loop, &err), XF_OK);
    assert_int_equal(xf_loop_signals(p.loop, signos, on_signal, &p, &err), XF_OK);
    assert_int_equal(kill(getpid(), SIGUSR1), 0);
    xf_loop_run(p.loop);
    assert_int_equal(p.calls, 1);
    xf_loop_free(p.loop);
}

static void stop_it(void *arg)
{
    xf_loop_stop(arg);
}

static void another_thread_may_stop_a_loop(void **state)
{
    struct xf_loop *l;
    struct xf_thread t = {0};

    (void)state; /* no fixture */
    assert_int_equal(xf_loop_new(NULL, &l, &err), XF_OK);
    assert_int_equal(xf_thread_start(&t, "stopper", stop_it, l, &err), XF_OK);
    xf_loop_run(l);
    xf_thread_join(&t);
    xf_loop_free(l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(timers_fire_in_order_and_only_when_started),
        cmocka_unit_test(a_watch_stopped_in_the_same_turn_gets_no_late_call),
        cmocka_unit_test(a_signal_arrives_through_the_loop),
        cmocka_unit_test(another_thread_may_stop_a_loop),
    };

    return xf_test_run("loop", tests, NULL, NULL);
}
