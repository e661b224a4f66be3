/*
 * lease_test.c - deadlines, fencing by attempt, and the margin before a lease is over for others.
 */
#include "coordinator/lease.h"
#include "tests/lib/test.h"

enum { TTL = 15000, MARGIN = 3000 };

static struct xf_lease lease(uint64_t task, uint32_t attempt, uint64_t holder)
{
    return (struct xf_lease){
        .task = task, .job = 1, .attempt = attempt, .objects = 10, .holder = holder};
}

static void add(struct xf_leases *l, uint64_t task, uint32_t attempt, uint64_t holder, int64_t now)
{
    struct xf_lease x = lease(task, attempt, holder);
    xf_leases_add(l, &x, now);
}

static void c092_a_lease_is_over_only_after_ttl_and_margin(void **state)
{
    struct xf_leases l;
    (void)state;
    xf_leases_init(&l, TTL, MARGIN);
    add(&l, 7, 1, 100, 0);
    assert_null(xf_leases_expired(&l, TTL));
    assert_null(xf_leases_expired(&l, TTL + MARGIN - 1));
    assert_int_equal(xf_leases_next_ms(&l), TTL + MARGIN);
    struct xf_lease *x = xf_leases_expired(&l, TTL + MARGIN);
    assert_non_null(x);
    assert_int_equal(x->task, 7);
    x->is_ending = true; /* its give-back is on the way: not found twice */
    assert_null(xf_leases_expired(&l, TTL + MARGIN));
    assert_false(xf_leases_renew(&l, 7, 1, 100, TTL + MARGIN));
    xf_leases_fini(&l);
}

static void c092_a_heartbeat_renews_and_an_old_attempt_does_not(void **state)
{
    struct xf_leases l;
    (void)state;
    xf_leases_init(&l, TTL, MARGIN);
    add(&l, 7, 1, 100, 0);
    assert_true(xf_leases_renew(&l, 7, 1, 100, 10000));
    assert_null(xf_leases_expired(&l, TTL + MARGIN));
    add(&l, 7, 2, 200, 30000); /* leased again to another agent */
    assert_false(xf_leases_renew(&l, 7, 1, 100, 30001));
    assert_false(xf_leases_renew(&l, 7, 2, 100, 30001));
    assert_false(xf_leases_end(&l, 7, 1));
    assert_true(xf_leases_renew(&l, 7, 2, 200, 30001));
    assert_true(xf_leases_end(&l, 7, 2));
    assert_null(xf_leases_get(&l, 7));
    assert_int_equal(xf_leases_next_ms(&l), INT64_MAX);
    add(&l, 8, 1, 100, 30000); /* the same holder had the task before */
    add(&l, 8, 2, 100, 30001);
    assert_false(xf_leases_renew(&l, 8, 1, 100, 30002));
    assert_true(xf_leases_renew(&l, 8, 2, 100, 30002));
    xf_leases_fini(&l);
}

static void end_it(void *arg, struct xf_lease *x)
{
    assert_true(xf_leases_end(arg, (int64_t)x->task, x->attempt));
}

static void a_holder_s_leases_are_counted_and_ended_together(void **state)
{
    struct xf_leases l;
    uint64_t objects = 0;
    (void)state;
    xf_leases_init(&l, TTL, MARGIN);
    for (uint64_t t = 1; t <= 1000; t++) {
        add(&l, t, 1, 100 + t % 2, (int64_t)t);
    }
    assert_int_equal(xf_leases_count(&l, 100, &objects), 500);
    assert_int_equal(objects, 5000);
    xf_leases_each(&l, 100, end_it, &l);
    assert_int_equal(xf_leases_count(&l, 100, &objects), 0);
    assert_int_equal(xf_leases_count(&l, 0, &objects), 500);
    assert_int_equal(xf_leases_next_ms(&l), 1 + TTL + MARGIN);
    xf_leases_fini(&l);
}

static void a_death_is_the_task_s_only_when_it_was_alone_for_a_ttl(void **state)
{
    struct xf_leases l;
    (void)state;
    xf_leases_init(&l, TTL, MARGIN);
    add(&l, 7, 1, 100, 1000);
    add(&l, 8, 1, 200, 1000); /* somebody else's */
    const struct xf_lease *x = xf_leases_get(&l, 7);
    assert_true(xf_leases_renew(&l, 7, 1, 100, 2000)); /* a renewal begins nothing anew */
    assert_true(xf_leases_is_weak_death(&l, x, 1000 + TTL - 1));
    assert_false(xf_leases_is_weak_death(&l, x, 1000 + TTL));
    add(&l, 9, 1, 100, 1000 + TTL);
    assert_true(xf_leases_is_weak_death(&l, x, 1000 + 9 * TTL));
    xf_leases_fini(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c092_a_lease_is_over_only_after_ttl_and_margin),
        cmocka_unit_test(c092_a_heartbeat_renews_and_an_old_attempt_does_not),
        cmocka_unit_test(a_holder_s_leases_are_counted_and_ended_together),
        cmocka_unit_test(a_death_is_the_task_s_only_when_it_was_alone_for_a_ttl),
    };
    return xf_test_run("lease", tests, NULL, NULL);
}
