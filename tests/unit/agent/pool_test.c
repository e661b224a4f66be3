/* pool_test.c - the cap holds, the line is fair, memory comes back. */
#include "agent/pool.h"
#include "common/base/rng.h"
#include "tests/lib/test.h"

#define MIB ((size_t)1 << 20)

struct waiter {
    struct xf_pool_want want;
    struct xf_pool_buf got;
    int order;
};

static int served;

static void on_ready(struct xf_pool_want *want, struct xf_pool_buf buf)
{
    struct waiter *w = want->arg;

    w->got = buf;
    w->order = ++served;
}

static void wait_in_line(struct xf_pool *p, struct waiter *w, size_t size)
{
    *w = (struct waiter){.want = {.size = size, .ready = on_ready, .arg = w}};
    xf_pool_wait(p, &w->want);
}

static void cap_is_never_passed(void **state)
{
    (void)state;
    XF_AUTO(xf_pool) p = xf_pool_new(32 * MIB);
    struct xf_pool_buf a = {0};
    struct xf_pool_buf b = {0};
    struct xf_pool_buf c = {0};

    assert_true(xf_pool_get(p, 16 * MIB, &a));
    assert_true(xf_pool_get(p, 9 * MIB, &b)); /* a slot of 16 MiB */
    assert_int_equal(b.size, 16 * MIB);
    assert_false(xf_pool_get(p, 1, &c));
    xf_pool_put(p, &a);
    assert_null(a.ptr);
    assert_true(xf_pool_get(p, 1, &c)); /* room is made out of the kept slot */
    assert_true(xf_pool_held_bytes(p) <= 32 * MIB);
    xf_pool_put(p, &b);
    xf_pool_put(p, &c);
    assert_int_equal(xf_pool_out_bytes(p), 0);
}

static void small_wants_do_not_starve_a_large_one(void **state)
{
    (void)state;
    XF_AUTO(xf_pool) p = xf_pool_new(16 * MIB);
    struct xf_pool_buf a = {0};
    struct xf_pool_buf b = {0};
    struct xf_pool_buf c = {0};
    struct waiter big;
    struct waiter small;

    served = 0;
    assert_true(xf_pool_get(p, 8 * MIB, &a));
    assert_true(xf_pool_get(p, 4 * MIB, &b));
    wait_in_line(p, &big, 16 * MIB);
    wait_in_line(p, &small, 4096);
    assert_false(xf_pool_get(p, 4096, &c)); /* others wait */
    xf_pool_put(p, &b);
    assert_null(big.got.ptr);
    xf_pool_put(p, &a);
    assert_int_equal(big.order, 1);
    assert_null(small.got.ptr);
    xf_pool_put(p, &big.got);
    assert_int_equal(small.order, 2);
    xf_pool_put(p, &small.got);
    assert_int_equal(xf_pool_waiting(p), 0);
}

static void who_gives_up_lets_the_next_one_through(void **state)
{
    (void)state;
    XF_AUTO(xf_pool) p = xf_pool_new(16 * MIB);
    struct xf_pool_buf a = {0};
    struct waiter big;
    struct waiter small;

    served = 0;
    assert_true(xf_pool_get(p, 8 * MIB, &a));
    wait_in_line(p, &big, 16 * MIB);
    wait_in_line(p, &small, 4096);
    xf_pool_forget(p, &big.want);
    assert_int_equal(small.order, 1);
    xf_pool_forget(p, &big.want);
    xf_pool_put(p, &a);
    xf_pool_put(p, &small.got);
}

static void random_use_stays_within_the_cap(void **state)
{
    (void)state;
    struct xf_rng rng;
    struct xf_pool_buf bufs[64] = {{0}};
    XF_AUTO(xf_pool) p = xf_pool_new(24 * MIB);

    xf_rng_init(&rng, xf_test_seed());
    for (int i = 0; i < 5000; i++) {
        struct xf_pool_buf *b = &bufs[xf_rng_below(&rng, 64)];
        if (b->ptr != NULL) {
            xf_pool_put(p, b);
        } else {
            size_t size = (size_t)1 << xf_rng_below(&rng, 25);
            if (xf_pool_get(p, size, b)) {
                assert_true(b->size >= size);
                b->ptr[0] = 1;
                b->ptr[b->size - 1] = 1;
            }
        }
        assert_true(xf_pool_out_bytes(p) <= xf_pool_held_bytes(p));
        assert_true(xf_pool_held_bytes(p) <= 24 * MIB);
    }
    for (size_t i = 0; i < 64; i++) {
        xf_pool_put(p, &bufs[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cap_is_never_passed),
        cmocka_unit_test(small_wants_do_not_starve_a_large_one),
        cmocka_unit_test(who_gives_up_lets_the_next_one_through),
        cmocka_unit_test(random_use_stays_within_the_cap),
    };
    return xf_test_run("agent_pool", tests, NULL, NULL);
}
