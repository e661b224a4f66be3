/* store_prune_test.c - ended jobs are forgotten in small steps, whatever ends the process between.
 */
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

static struct xf_store_op *prune_op(int64_t job, bool is_dry_run)
{
    struct xf_store_op *op = kit_op(XF_OP_PRUNE);

    op->in.prune = (struct xf_in_prune){
        .job = job, .before_ms = INT64_MAX, .limit = 10, .is_dry_run = is_dry_run};
    return op;
}

static bool step(struct kit *k, uint32_t limit)
{
    struct xf_store_op *op = kit_op(XF_OP_PRUNE_STEP);

    op->in.prune_step.limit = limit;
    kit_must(k, op);
    return k->last.out.prune_step.more;
}

static enum xf_code find(struct kit *k, int64_t job)
{
    struct xf_store_op *op = kit_op(XF_OP_READ_JOB);

    op->in.read_job.job = job;
    return kit_do(k, op);
}

/* Three batches of five objects, the last failed, and two uploads that never began; cancelled. */
static int64_t ended_job(struct kit *k, const char *key)
{
    int64_t job = kit_job(k, key, 1);
    int64_t shard = kit_shard(k, job);
    struct held h;

    assert_int_equal(kit_page(k, shard, "", "c1", 5, 2), XF_OK);
    assert_int_equal(kit_page(k, shard, "c1", "c2", 5, 0), XF_OK);
    assert_int_equal(kit_page(k, shard, "c2", "c3", 5, 0), XF_OK);
    for (int i = 0; i < 3; i++) {
        h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
        assert_int_equal(
            kit_checkpoint(k, &h, 0, 5, i == 2 ? XF_OUTCOME_FAILED : XF_OUTCOME_COPIED, true),
            XF_OK);
    }
    assert_int_equal(kit_stop(k, job), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_OK);
    return job;
}

static void rows_go_step_by_step_and_a_restart_goes_on(void **state)
{
    struct kit *k = *state;
    int64_t gone = ended_job(k, "gone");
    int64_t kept = ended_job(k, "kept");
    int steps = 1;

    kit_must(k, prune_op(gone, false));
    assert_int_equal(k->last.out.prune.n, 1);
    assert_true(xf_str_eq_c(k->last.out.prune.jobs[0].public_id, "j-gone"));
    assert_int_equal(find(k, gone), XF_E_NOT_FOUND);
    while (step(k, 1)) {
        kit_check(k); /* also when half of its rows are gone */
        kit_reopen(k);
        assert_int_equal(find(k, gone), XF_E_NOT_FOUND);
        assert_true(++steps < 100);
    }
    /* 5 tasks, 2 uploads, 5 failures, a shard, a pass and the job at least, one a step. */
    assert_true(steps >= 15);
    assert_int_equal(find(k, kept), XF_OK);
    assert_int_equal(k->last.out.read_job.row.n.copied, 10);
    assert_int_equal(k->last.out.read_job.row.n.failed, 5);
    kit_must(k, kit_op(XF_OP_READ_JOBS));
    assert_int_equal(k->last.out.read_jobs.n, 1);
}

static void only_what_has_ended_is_forgotten(void **state)
{
    struct kit *k = *state;
    int64_t live = kit_job(k, "live", 1);
    int64_t ended = ended_job(k, "ended");

    assert_int_equal(kit_do(k, prune_op(live, false)), XF_E_INVAL);
    kit_must(k, prune_op(0, true));
    assert_int_equal(k->last.out.prune.n, 1);
    assert_int_equal(k->last.out.prune.jobs[0].id, ended);
    assert_int_equal(find(k, ended), XF_OK); /* it was a dry run */
    assert_false(step(k, 100));
    struct xf_store_op *op = prune_op(0, false);
    op->in.prune.before_ms = 1; /* it ended later */
    kit_must(k, op);
    assert_int_equal(k->last.out.prune.n, 0);
    kit_must(k, prune_op(0, false));
    assert_int_equal(k->last.out.prune.n, 1);
    kit_must(k, prune_op(0, false)); /* sent twice */
    assert_int_equal(k->last.out.prune.n, 0);
    assert_int_equal(find(k, live), XF_OK);
}

static void a_job_that_is_being_forgotten_is_not_retried(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    struct xf_store_op *op = kit_op(XF_OP_RETRY);

    assert_int_equal(kit_page(k, shard, "", "c1", 5, 0), XF_OK);
    kit_last_page(k, shard, "c1");
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &h, 0, 5, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED_WITH_FAILURES), XF_OK);
    kit_must(k, prune_op(job, false));
    op->in.retry = (struct xf_in_retry){.job = job, .is_forced = true, .limit = 100};
    assert_int_equal(kit_do(k, op), XF_E_NOT_FOUND);
}

static void jobs_are_marked_a_page_at_a_time(void **state)
{
    struct kit *k = *state;
    const int64_t first = ended_job(k, "a");
    const int64_t second = ended_job(k, "b");
    struct xf_store_op *op = prune_op(0, true);

    op->in.prune.limit = 1;
    kit_must(k, op);
    assert_true(k->last.out.prune.more);
    assert_int_equal(k->last.out.prune.next, first);
    op = prune_op(0, true);
    op->in.prune.after = first;
    kit_must(k, op);
    assert_false(k->last.out.prune.more);
    assert_int_equal(k->last.out.prune.jobs[0].id, second);
}

static int setup(void **state)
{
    static struct kit k;

    kit_init(&k, NULL);
    kit_open(&k);
    *state = &k;
    return 0;
}

static int teardown(void **state)
{
    kit_check(*state);
    kit_fini(*state);
    return 0;
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(rows_go_step_by_step_and_a_restart_goes_on),
        T(only_what_has_ended_is_forgotten),
        T(a_job_that_is_being_forgotten_is_not_retried),
        T(jobs_are_marked_a_page_at_a_time),
    };
    return xf_test_run("store_prune", tests, NULL, NULL);
}
