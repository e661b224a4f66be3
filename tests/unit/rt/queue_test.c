/* queue_test.c - many threads to one loop: nothing lost, order kept, bound held. */
#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "tests/lib/test.h"

enum { PRODUCERS = 4, EACH = 5000 };

static struct xf_err err;

struct run {
    struct xf_queue *q;
    struct xf_loop *loop;
    uint32_t next[PRODUCERS];
    int left;
};

struct producer {
    struct run *run;
    uint32_t no;
};

static void produce(void *arg)
{
    const struct producer *p = arg;

    for (uint32_t i = 0; i < EACH; i++) {
        void *item = (void *)(uintptr_t)(((uintptr_t)p->no << 24) | (i + 1));
        assert_true(xf_queue_push_wait(p->run->q, item));
    }
}

static void consume(void *arg)
{
    struct run *r = arg;

    /* A few at a time, so that the loop must be woken again for the rest. */
    for (int i = 0; i < 7; i++) {
        uintptr_t item = (uintptr_t)xf_queue_pop(r->q);
        if (item == 0) {
            return;
        }
        uint32_t no = (uint32_t)(item >> 24);
        assert_int_equal((item & 0xffffff) - 1, r->next[no]);
        r->next[no]++;
        r->left--;
    }
    if (r->left == 0) {
        xf_loop_stop(r->loop);
    }
}

static void nothing_is_lost_between_threads_and_each_keeps_its_order(void **state)
{
    struct run r = {.left = PRODUCERS * EACH};
    struct xf_thread threads[PRODUCERS] = {0};
    struct producer producers[PRODUCERS];

    (void)state; /* no fixture */
    assert_int_equal(xf_queue_new(16, &r.q, &err), XF_OK);
    assert_int_equal(xf_loop_new(NULL, &r.loop, &err), XF_OK);
    assert_int_equal(xf_queue_attach(r.q, r.loop, consume, &r, &err), XF_OK);
    for (uint32_t i = 0; i < PRODUCERS; i++) {
        producers[i] = (struct producer){&r, i};
        assert_int_equal(xf_thread_start(&threads[i], "producer", produce, &producers[i], &err),
                         XF_OK);
    }
    while (r.left > 0) {
        xf_loop_turn(r.loop, 1000);
    }
    for (int i = 0; i < PRODUCERS; i++) {
        xf_thread_join(&threads[i]);
    }
    xf_queue_free(r.q);
    xf_loop_free(r.loop);
}

static void a_full_queue_refuses_and_a_closed_one_lets_waiters_go(void **state)
{
    struct xf_queue *q;
    int item;

    (void)state; /* no fixture */
    assert_int_equal(xf_queue_new(2, &q, &err), XF_OK);
    assert_true(xf_queue_push(q, &item));
    assert_true(xf_queue_push(q, &item));
    assert_false(xf_queue_push(q, &item));
    assert_ptr_equal(xf_queue_pop(q), &item);
    assert_true(xf_queue_push(q, &item));
    xf_queue_close(q);
    assert_false(xf_queue_push(q, &item));
    assert_false(xf_queue_push_wait(q, &item));
    assert_ptr_equal(xf_queue_pop_wait(q, -1), &item);
    assert_ptr_equal(xf_queue_pop_wait(q, -1), &item);
    assert_null(xf_queue_pop_wait(q, -1));
    xf_queue_free(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_lost_between_threads_and_each_keeps_its_order),
        cmocka_unit_test(a_full_queue_refuses_and_a_closed_one_lets_waiters_go),
    };

    return xf_test_run("queue", tests, NULL, NULL);
}
