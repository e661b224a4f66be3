/* store_late_test.c - what is told of an attempt that is over, beyond CASE C092 of store_test.c. */
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

/* A job whose listing brought a batch of n objects. */
static int64_t listed_job(struct kit *k, uint32_t n)
{
    int64_t job = kit_job(k, "key", 1);

    assert_int_equal(kit_page(k, kit_shard(k, job), "", "p", n, 0), XF_OK);
    kit_last_page(k, kit_shard(k, job), "p");
    return job;
}

/* It holds the very attempt at whose end the batch was split. */
static void the_attempt_that_split_a_batch_is_late_as_well(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 4);
    struct held h = {0};
    struct held half[2];

    for (int i = 0; i < 5; i++) {
        h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
        assert_int_equal(kit_give_back(k, &h, XF_HOW_EXPIRED), XF_OK);
    }
    assert_true(k->last.out.give_back.split);
    assert_int_equal(kit_checkpoint(k, &h, 0, 4, XF_OUTCOME_COPIED, true), XF_E_STALE);
    assert_int_equal(kit_row(k, job).n.copied, 0);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_BIT(XF_TASK_BATCH), 2, half), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_checkpoint(k, &half[i], 0, half[i].n_objects, XF_OUTCOME_COPIED, true),
                         XF_OK);
        assert_true(k->last.out.checkpoint.rechecked);
    }
}

/* What it has looked at may have been written over since. */
static void a_recheck_that_was_begun_is_followed_by_another(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 3);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_give_back(k, &a, XF_HOW_LOST), XF_OK);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &b, 0, 3, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_checkpoint(k, &a, 0, 1, XF_OUTCOME_COPIED, false), XF_E_STALE);
    struct held r = kit_lease_one(k, job, 'b', XF_TASK_RECHECK);
    assert_int_equal(kit_checkpoint(k, &r, 0, 2, XF_OUTCOME_SKIPPED, false), XF_OK);
    assert_int_equal(kit_give_back(k, &r, XF_HOW_DRAINED), XF_OK);
    assert_int_equal(kit_checkpoint(k, &a, 1, 2, XF_OUTCOME_COPIED, false), XF_E_STALE);
    r = kit_lease_one(k, job, 'b', XF_TASK_RECHECK);
    assert_int_equal(kit_checkpoint(k, &r, 2, 3, XF_OUTCOME_SKIPPED, true), XF_OK);
    assert_true(k->last.out.checkpoint.rechecked);
    r = kit_lease_one(k, job, 'b', XF_TASK_RECHECK);
    assert_int_equal(kit_checkpoint(k, &r, 0, 3, XF_OUTCOME_SKIPPED, true), XF_OK);
    assert_false(k->last.out.checkpoint.rechecked);
}

/* The late write may have landed on what a retry pass copied since. */
static void objects_that_failed_and_were_tried_again_are_checked_as_well(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 2);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    struct held r[4];

    assert_int_equal(kit_give_back(k, &a, XF_HOW_LOST), XF_OK);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &b, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &b, 1, 2, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_retry(k, job, 8), 1);
    struct held again = kit_lease_one(k, job, 'b', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &again, 0, 1, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_checkpoint(k, &a, 1, 2, XF_OUTCOME_COPIED, false), XF_E_STALE);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_BIT(XF_TASK_RECHECK), 4, r), 2);
    assert_int_equal(r[1].n_objects, 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_checkpoint(k, &r[i], 0, 1, XF_OUTCOME_SKIPPED, true), XF_OK);
    }
    assert_int_equal(kit_row(k, job).n.copied, 2);
}

#define T(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(the_attempt_that_split_a_batch_is_late_as_well),
        T(a_recheck_that_was_begun_is_followed_by_another),
        T(objects_that_failed_and_were_tried_again_are_checked_as_well),
    };

    return xf_test_run("store_late", tests, NULL, NULL);
}
