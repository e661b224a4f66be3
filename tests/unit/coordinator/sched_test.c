/*
 * sched_test.c - shares by priority, and who is passed over.
 */
#include "coordinator/sched.h"
#include "coordinator/store_types.h"
#include "tests/lib/test.h"

static struct xf_sched_job job(int64_t id, int priority, uint32_t ready, uint32_t leased)
{
    return (struct xf_sched_job){.id = id,
                                 .priority = priority,
                                 .kinds = XF_TASK_ALL,
                                 .tasks_ready = ready,
                                 .tasks_leased = leased,
                                 .is_fit = true};
}

static struct xf_sched_ask ask(uint32_t tasks)
{
    return (struct xf_sched_ask){
        .free_tasks = tasks, .free_objects = 10000, .free_bytes = 1 << 30, .kinds = XF_TASK_ALL};
}

static void one_job_gets_every_slot_it_can_fill(void **state)
{
    struct xf_sched_job jobs[] = {job(1, 5, 3, 0)};
    struct xf_sched_ask a = ask(8);
    struct xf_sched_grant out[1];
    (void)state;
    assert_int_equal(xf_sched_assign(jobs, 1, &a, out), 1);
    assert_int_equal(out[0].job, 1);
    assert_int_equal(out[0].max_tasks, 3);
    jobs[0].tasks_ready = 100;
    assert_int_equal(xf_sched_assign(jobs, 1, &a, out), 1);
    assert_int_equal(out[0].max_tasks, 8);
}

static void shares_follow_priority(void **state)
{
    struct xf_sched_job jobs[] = {job(1, 5, 1000, 0), job(2, 9, 1000, 0)};
    struct xf_sched_ask a = ask(48);
    struct xf_sched_grant out[2];
    (void)state;
    assert_int_equal(xf_sched_assign(jobs, 2, &a, out), 2);
    assert_int_equal(out[0].job, 2); /* the higher priority is leased first */
    assert_int_equal(out[0].max_tasks, 40);
    assert_int_equal(out[1].max_tasks, 8);
}

static void what_is_leased_already_counts(void **state)
{
    struct xf_sched_job jobs[] = {job(1, 5, 100, 10), job(2, 5, 100, 0)};
    struct xf_sched_ask a = ask(10);
    struct xf_sched_grant out[2];
    (void)state;
    assert_int_equal(xf_sched_assign(jobs, 2, &a, out), 1);
    assert_int_equal(out[0].job, 2);
    assert_int_equal(out[0].max_tasks, 10);
}

static void a_low_priority_is_never_starved(void **state)
{
    struct xf_sched_job jobs[] = {job(1, 1, 1000, 0), job(2, 9, 1000, 0)};
    struct xf_sched_ask a = ask(1);
    struct xf_sched_grant out[2];
    (void)state;
    uint32_t low = 0;
    for (int i = 0; i < 410; i++) {
        assert_int_equal(xf_sched_assign(jobs, 2, &a, out), 1);
        struct xf_sched_job *j = &jobs[out[0].job - 1];
        j->tasks_leased++;
        low += out[0].job == 1;
    }
    assert_int_equal(low, 10);
}

static void the_unfit_the_dry_and_the_retried_are_passed_over(void **state)
{
    struct xf_sched_job jobs[] = {
        job(1, 9, 10, 0), job(2, 9, 0, 0), job(3, 9, 10, 0), job(4, 9, 10, 0), job(5, 1, 10, 0)};
    struct xf_sched_ask a = ask(4);
    struct xf_sched_grant out[5];
    (void)state;
    jobs[0].is_fit = false;
    jobs[2].prefers_other = true;
    jobs[3].kinds = XF_TASK_BIT(XF_TASK_ABORT);
    a.kinds = XF_TASK_BIT(XF_TASK_BATCH) | XF_TASK_BIT(XF_TASK_PARTS);
    assert_int_equal(xf_sched_assign(jobs, 5, &a, out), 1);
    assert_int_equal(out[0].job, 5);
    assert_int_equal(out[0].kinds, a.kinds);
}

static void an_agent_without_room_gets_nothing(void **state)
{
    struct xf_sched_job jobs[] = {job(1, 5, 10, 0)};
    struct xf_sched_ask a = ask(4);
    struct xf_sched_grant out[1];
    (void)state;
    a.free_objects = 0;
    assert_int_equal(xf_sched_assign(jobs, 1, &a, out), 0);
    a = ask(0);
    assert_int_equal(xf_sched_assign(jobs, 1, &a, out), 0);
    a = ask(4);
    a.free_bytes = 0;
    assert_int_equal(xf_sched_assign(jobs, 1, &a, out), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_job_gets_every_slot_it_can_fill),
        cmocka_unit_test(shares_follow_priority),
        cmocka_unit_test(what_is_leased_already_counts),
        cmocka_unit_test(a_low_priority_is_never_starved),
        cmocka_unit_test(the_unfit_the_dry_and_the_retried_are_passed_over),
        cmocka_unit_test(an_agent_without_room_gets_nothing),
    };
    return xf_test_run("sched", tests, NULL, NULL);
}
