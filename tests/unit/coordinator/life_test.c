/*
 * life_test.c - how a job ends, for every way in which it may not be whole.
 */
#include "coordinator/life.h"
#include "tests/lib/test.h"

static struct xf_job_row running(void)
{
    return (struct xf_job_row){.state = XF_JOB_RUNNING, .pass_no = 1, .exit_code = -1};
}

static struct xf_life decide(const struct xf_job_row *row)
{
    const struct xf_life_in in = {.row = row};
    return xf_life_decide(&in);
}

static void a_queued_job_starts_and_a_paused_one_waits(void **state)
{
    struct xf_job_row r = running();
    (void)state;
    r.state = XF_JOB_QUEUED;
    assert_int_equal(decide(&r).step, XF_LIFE_START);
    r.state = XF_JOB_PAUSED;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
}

static void an_ended_job_stays_as_it_is(void **state)
{
    struct xf_job_row r = running();
    (void)state;
    for (int s = XF_JOB_COMPLETED; s < XF_JOB_STATE_N; s++) {
        r.state = (enum xf_job_state)s;
        r.n.failed = 1;
        r.retryable = 1;
        assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    }
}

static void nothing_ends_while_work_is_left(void **state)
{
    struct xf_job_row r = running();
    (void)state;
    r.shards_open = 1;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    r = running();
    r.tasks_ready = 1;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    r = running();
    r.tasks_leased = 1;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    r = running();
    r.uploads_live = 1;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    r = running();
    r.n.pending = 1;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
}

static void c079_only_a_whole_job_is_completed_with_exit_0(void **state)
{
    struct xf_job_row r = running();
    (void)state;
    r.n.copied = 10;
    r.n.vanished = 1;
    r.n.skipped = 1;
    struct xf_life l = decide(&r);
    assert_int_equal(l.step, XF_LIFE_FINISH);
    assert_int_equal(l.end, XF_JOB_COMPLETED);
    assert_int_equal(l.exit_code, 0);
    r.n.archived = 1;
    l = decide(&r);
    assert_int_equal(l.end, XF_JOB_COMPLETED_WITH_FAILURES);
    assert_int_equal(l.exit_code, 3);
}

static void c080_failed_objects_end_in_a_state_and_exit_of_their_own(void **state)
{
    struct xf_job_row r = running();
    (void)state;
    r.n.copied = 97;
    r.n.failed = 3;
    struct xf_life l = decide(&r);
    assert_int_equal(l.step, XF_LIFE_FINISH);
    assert_int_equal(l.end, XF_JOB_COMPLETED_WITH_FAILURES);
    assert_int_equal(l.exit_code, 3);
}

static void vanished_objects_count_when_the_job_says_so(void **state)
{
    struct xf_job_row r = running();
    const struct xf_life_in in = {.row = &r, .vanished_fails = true};
    (void)state;
    r.n.vanished = 1;
    assert_int_equal(decide(&r).end, XF_JOB_COMPLETED);
    assert_int_equal(xf_life_decide(&in).end, XF_JOB_COMPLETED_WITH_FAILURES);
}

static void retryable_failures_get_a_pass_until_attempts_run_out(void **state)
{
    struct xf_job_row r = running();
    struct xf_life_in in = {.row = &r};
    (void)state;
    r.n.failed = 2;
    r.retryable = 1;
    assert_int_equal(xf_life_decide(&in).step, XF_LIFE_RETRY);
    in.is_retry_exhausted = true;
    assert_int_equal(xf_life_decide(&in).step, XF_LIFE_FINISH);
    assert_int_equal(xf_life_decide(&in).end, XF_JOB_COMPLETED_WITH_FAILURES);
}

static void c019_an_incomplete_listing_never_ends_in_completed(void **state)
{
    struct xf_job_row r = running();
    struct xf_life_in in = {.row = &r, .listings_failed = 1};
    (void)state;
    r.shards_open = 2; /* one failed, one is still being listed */
    assert_int_equal(xf_life_decide(&in).step, XF_LIFE_WAIT);
    r.shards_open = 1;
    r.tasks_ready = 1; /* what was found is copied first */
    assert_int_equal(xf_life_decide(&in).step, XF_LIFE_WAIT);
    r.tasks_ready = 0;
    r.n.copied = 1000;
    struct xf_life l = xf_life_decide(&in);
    assert_int_equal(l.step, XF_LIFE_STOP);
    assert_int_equal(l.end, XF_JOB_FAILED);
    assert_string_equal(l.reason, "listing_incomplete");
    r.stop = XF_JOB_FAILED;
    l = xf_life_decide(&in);
    assert_int_equal(l.step, XF_LIFE_FINISH);
    assert_int_equal(l.end, XF_JOB_FAILED);
    assert_int_equal(l.exit_code, 1);
}

static void a_stopped_job_ends_when_nothing_is_open_any_more(void **state)
{
    struct xf_job_row r = running();
    (void)state;
    r.stop = XF_JOB_CANCELLED;
    r.n.pending = 100;
    r.shards_open = 1;
    r.tasks_ready = 1; /* an abort task */
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    r.tasks_ready = 0;
    r.uploads_live = 1;
    assert_int_equal(decide(&r).step, XF_LIFE_WAIT);
    r.uploads_live = 0;
    struct xf_life l = decide(&r);
    assert_int_equal(l.step, XF_LIFE_FINISH);
    assert_int_equal(l.end, XF_JOB_CANCELLED);
    assert_int_equal(l.exit_code, 1);
}

static void waits_between_retry_passes_grow_to_a_minute(void **state)
{
    (void)state;
    assert_int_equal(xf_life_retry_wait_ms(2), 1000);
    assert_int_equal(xf_life_retry_wait_ms(3), 2000);
    assert_int_equal(xf_life_retry_wait_ms(1000), 60000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queued_job_starts_and_a_paused_one_waits),
        cmocka_unit_test(an_ended_job_stays_as_it_is),
        cmocka_unit_test(nothing_ends_while_work_is_left),
        cmocka_unit_test(c079_only_a_whole_job_is_completed_with_exit_0),
        cmocka_unit_test(c080_failed_objects_end_in_a_state_and_exit_of_their_own),
        cmocka_unit_test(vanished_objects_count_when_the_job_says_so),
        cmocka_unit_test(retryable_failures_get_a_pass_until_attempts_run_out),
        cmocka_unit_test(c019_an_incomplete_listing_never_ends_in_completed),
        cmocka_unit_test(a_stopped_job_ends_when_nothing_is_open_any_more),
        cmocka_unit_test(waits_between_retry_passes_grow_to_a_minute),
    };
    return xf_test_run("life", tests, NULL, NULL);
}
