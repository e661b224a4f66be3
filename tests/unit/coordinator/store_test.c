/*
 * store_test.c - what the store promises to its callers: pages, leases, reports, uploads, retries,
 * stops and ends. Every test ends with a check of all invariants.
 */
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

enum { ODD_KEYS = 40 };
#include "tests/unit/coordinator/store_kit.h"

/* A job with one page of n_small objects and n_large uploads, its listing complete. */
static int64_t listed_job(struct kit *k, uint32_t n_small, uint32_t n_large)
{
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);

    assert_int_equal(kit_page(k, shard, "", "c1", n_small, n_large), XF_OK);
    kit_last_page(k, shard, "c1");
    return job;
}

static void the_same_submit_key_is_one_job(void **state)
{
    struct kit *k = *state;
    int64_t a = kit_job(k, "one", 2);
    int64_t b = kit_job(k, "one", 2);
    int64_t c = kit_job(k, "two", 1);

    assert_int_equal(a, b);
    assert_int_not_equal(a, c);
    kit_must(k, kit_op(XF_OP_READ_RECOVER));
    assert_int_equal(k->last.out.read_recover.n_jobs, 2);
    assert_int_equal(k->last.out.read_recover.n_shards, 3);
}

static void a_job_is_found_by_the_beginning_of_its_id(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "abc", 1);
    struct xf_store_op *op;

    (void)kit_job(k, "abd", 1); /* beside it */
    op = kit_op(XF_OP_READ_JOB);
    op->in.read_job.public_id = XF_STR_LIT("j-abc");
    op->in.read_job.with_spec = true;
    kit_must(k, op);
    assert_int_equal(k->last.out.read_job.row.id, job);
    assert_true(xf_str_eq_c(k->last.out.read_job.row.spec, "format = 1\n"));
    op = kit_op(XF_OP_READ_JOB);
    op->in.read_job.public_id = XF_STR_LIT("j-ab");
    assert_int_equal(kit_do(k, op), XF_E_NOT_FOUND);
    op = kit_op(XF_OP_READ_JOBS);
    kit_must(k, op);
    assert_int_equal(k->last.out.read_jobs.n, 2);
    assert_int_not_equal(k->last.out.read_jobs.rows[0].id, job); /* the newest first */
}

static void check_jobs(struct kit *k, enum xf_jobs_which which, int64_t after, const int64_t *want)
{
    struct xf_store_op *op = kit_op(XF_OP_READ_JOBS);

    op->in.read_jobs = (struct xf_in_read_jobs){.after = after, .limit = 2, .which = which};
    kit_must(k, op);
    for (size_t i = 0; i < 2; i++) {
        const struct xf_out_read_jobs *out = &k->last.out.read_jobs;
        assert_int_equal(i < out->n ? out->rows[i].id : 0, want[i]);
    }
    assert_int_equal(k->last.out.read_jobs.more, want[2]);
}

static void live_and_ended_jobs_are_read_a_page_at_a_time(void **state)
{
    struct kit *k = *state;
    int64_t jobs[5];

    for (size_t i = 0; i < 5; i++) {
        const char name[] = {(char)('a' + i), '\0'};
        jobs[i] = kit_job(k, name, 1);
        if (i != 0 && i != 3) {
            assert_int_equal(kit_stop(k, jobs[i]), XF_OK);
            assert_int_equal(kit_finish(k, jobs[i], XF_JOB_CANCELLED), XF_OK);
        }
    }
    check_jobs(k, XF_JOBS_ALL, 0, (const int64_t[]){jobs[4], jobs[3], 1});
    check_jobs(k, XF_JOBS_ALL, jobs[3], (const int64_t[]){jobs[2], jobs[1], 1});
    check_jobs(k, XF_JOBS_ALL, jobs[1], (const int64_t[]){jobs[0], 0, 0});
    check_jobs(k, XF_JOBS_LIVE, 0, (const int64_t[]){jobs[3], jobs[0], 0});
    check_jobs(k, XF_JOBS_ENDED, 0, (const int64_t[]){jobs[4], jobs[2], 1});
    xf_fakeclock_advance(&k->clock, 1000);
    assert_int_equal(kit_stop(k, jobs[0]), XF_OK);
    assert_int_equal(kit_finish(k, jobs[0], XF_JOB_CANCELLED), XF_OK);
    check_jobs(k, XF_JOBS_ENDED, 0, (const int64_t[]){jobs[0], jobs[4], 1}); /* by their end */
}

static void a_page_moves_the_cursor_with_its_rows(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);

    assert_int_equal(kit_page(k, shard, "", "c1", 7, 2), XF_OK);
    assert_int_equal(k->last.out.page_commit.listed, 9);
    assert_int_equal(kit_page(k, shard, "", "c1", 7, 2), XF_OK); /* sent twice */
    assert_true(k->last.out.page_commit.repeated);
    assert_int_equal(kit_page(k, shard, "", "c2", 7, 0), XF_E_STALE);
    assert_int_equal(kit_page(k, shard, "c1", "c2", 3, 0), XF_OK);
    kit_last_page(k, shard, "c2");
    kit_last_page(k, shard, "c2"); /* sent twice */
    assert_int_equal(kit_page(k, shard, "c2", "c3", 1, 0), XF_E_STALE);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.listed, 12);
    assert_int_equal(row.n.pending, 12);
    assert_int_equal(row.n.bytes_listed, 300);
    assert_int_equal(row.n.keys_returned, 12);
    assert_int_equal(row.shards_open, 0);
}

static void a_page_with_a_damaged_manifest_changes_nothing(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    struct xf_store_op *op = kit_page_op(shard, "", "c1", 5, 0);
    struct xf_store_batch batches[2] = {op->in.page_commit.batches[0], {XF_STR_LIT("junk")}};

    op->in.page_commit.batches = batches;
    op->in.page_commit.n_batches = 2;
    assert_int_equal(kit_do(k, op), XF_E_INVAL);
    assert_int_equal(kit_row(k, job).n.listed, 0);
    assert_int_equal(kit_page(k, shard, "", "c1", 5, 0), XF_OK);
}

static void a_lease_gives_each_task_once(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    struct held a[4];
    struct held b[4];

    assert_int_equal(kit_page(k, shard, "", "c1", 5, 0), XF_OK);
    assert_int_equal(kit_page(k, shard, "c1", "c2", 5, 0), XF_OK);
    assert_int_equal(kit_page(k, shard, "c2", "c3", 5, 0), XF_OK);
    assert_int_equal(kit_lease(k, job, 'a', XF_TASK_ALL, 2, a), 2);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 4, b), 1);
    assert_int_not_equal(a[0].task, b[0].task);
    assert_int_not_equal(a[1].task, b[0].task);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 4, b), 0);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.in_flight, 15);
    assert_int_equal(row.n.pending, 0);
    assert_int_equal(row.tasks_leased, 3);
}

static void a_lease_stops_at_its_limits_but_gives_one(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    struct xf_store_op *op;

    assert_int_equal(kit_page(k, shard, "", "c1", 5, 0), XF_OK);
    assert_int_equal(kit_page(k, shard, "c1", "c2", 5, 0), XF_OK);
    assert_int_equal(kit_page(k, shard, "c2", "c3", 5, 0), XF_OK);
    op = kit_lease_op(job, 'a', XF_TASK_ALL, 10);
    struct xf_lease_ask small = op->in.lease.asks[0];
    small.max_objects = 9;
    op->in.lease.asks = &small;
    kit_must(k, op);
    assert_int_equal(k->last.out.lease.n_tasks, 1);
    op = kit_lease_op(job, 'a', XF_TASK_ALL, 10);
    small.max_objects = 1;
    op->in.lease.asks = &small;
    kit_must(k, op);
    assert_int_equal(k->last.out.lease.n_tasks, 1);
}

static void a_paused_job_gives_no_task(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 5, 0);
    struct xf_store_op *op = kit_op(XF_OP_JOB_STATE);
    struct held h;

    op->in.job_state =
        (struct xf_in_job_state){.job = job, .from = XF_TO(XF_JOB_RUNNING), .to = XF_JOB_PAUSED};
    kit_must(k, op);
    assert_int_equal(kit_lease(k, job, 'a', XF_TASK_ALL, 4, &h), 0);
    op = kit_op(XF_OP_JOB_STATE);
    op->in.job_state =
        (struct xf_in_job_state){.job = job, .from = XF_TO(XF_JOB_RUNNING), .to = XF_JOB_PAUSED};
    assert_int_equal(kit_do(k, op), XF_E_STALE);
}

static void reports_are_counted_once(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 10, 0);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    for (int i = 0; i < 3; i++) { /* the network repeats itself */
        assert_int_equal(kit_checkpoint(k, &h, 0, 6, XF_OUTCOME_COPIED, false), XF_OK);
    }
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.copied, 6);
    assert_int_equal(row.n.in_flight, 4);
    assert_int_equal(row.n.bytes_copied, 60);
    assert_int_equal(kit_checkpoint(k, &h, 0, 0, XF_OUTCOME_PENDING, true), XF_E_INVAL);
    assert_int_equal(kit_checkpoint(k, &h, 6, 8, XF_OUTCOME_SKIPPED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &h, 8, 9, XF_OUTCOME_VANISHED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &h, 9, 10, XF_OUTCOME_ARCHIVED, true), XF_OK);
    assert_true(k->last.out.checkpoint.ended);
    assert_int_equal(kit_checkpoint(k, &h, 9, 10, XF_OUTCOME_ARCHIVED, true), XF_OK);
    assert_true(k->last.out.checkpoint.ended);
    row = kit_row(k, job);
    assert_int_equal(row.n.copied, 6);
    assert_int_equal(row.n.skipped, 2);
    assert_int_equal(row.n.vanished, 1);
    assert_int_equal(row.n.archived, 1);
    assert_int_equal(row.n.pending + row.n.in_flight, 0);
}

static void a_first_outcome_stays(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 2, 0);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_checkpoint(k, &h, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &h, 0, 2, XF_OUTCOME_FAILED, true), XF_OK);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.copied, 1);
    assert_int_equal(row.n.failed, 1);
}

/* CASE C089: the network repeats and reorders requests; the second time changes nothing. */
static void c089_what_is_sent_twice_or_late_changes_nothing(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    struct xf_job_row before;
    struct xf_job_row after;

    assert_int_equal(kit_page(k, shard, "", "c1", 6, 1), XF_OK);
    struct held b = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
    assert_int_equal(kit_checkpoint(k, &b, 0, 3, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &b, 3, 6, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_opened(k, &o, "id", 8), XF_OK);
    struct held p = kit_lease_one(k, job, 'a', XF_TASK_PARTS);
    assert_int_equal(kit_parts(k, &p, 1, 9, true), XF_OK);
    struct held c = kit_lease_one(k, job, 'a', XF_TASK_CLOSE);
    assert_int_equal(kit_end(k, &c, XF_OUTCOME_COPIED, false), XF_OK);
    before = kit_row(k, job);
    assert_int_equal(kit_job(k, "one", 1), job);
    assert_int_equal(kit_end(k, &c, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_page(k, shard, "", "c1", 6, 1), XF_OK);
    assert_int_equal(kit_checkpoint(k, &b, 0, 3, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_parts(k, &p, 1, 5, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &b, 0, 6, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_opened(k, &o, "id", 8), XF_OK);
    assert_int_equal(kit_give_back(k, &b, XF_HOW_EXPIRED), XF_OK);
    after = kit_row(k, job);
    assert_memory_equal(&before.n, &after.n, sizeof(before.n));
    assert_int_equal(after.tasks_ready + after.tasks_leased, 0);
}

/* CASE C092: the lease is lost while the worker is alive; its late word changes nothing. */
static void c092_a_late_report_changes_no_outcome_and_is_checked_again(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 4, 0);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_checkpoint(k, &a, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_give_back(k, &a, XF_HOW_EXPIRED), XF_OK);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_BATCH);
    assert_int_equal(b.task, a.task);
    assert_int_equal(b.attempt, a.attempt + 1);
    assert_int_equal(kit_checkpoint(k, &a, 1, 4, XF_OUTCOME_FAILED, true), XF_E_STALE);
    assert_int_equal(kit_row(k, job).n.failed, 0);
    assert_int_equal(kit_give_back(k, &a, XF_HOW_DRAINED), XF_E_STALE);
    assert_int_equal(kit_checkpoint(k, &b, 1, 4, XF_OUTCOME_COPIED, true), XF_OK);
    assert_true(k->last.out.checkpoint.rechecked);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_BUSY); /* not before the recheck */
    struct held r = kit_lease_one(k, job, 'b', XF_TASK_RECHECK);
    assert_int_equal(r.n_objects, 4);
    assert_int_equal(kit_checkpoint(k, &r, 0, 3, XF_OUTCOME_SKIPPED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &r, 3, 4, XF_OUTCOME_COPIED, true), XF_OK); /* repaired */
    assert_int_equal(kit_row(k, job).n.copied, 4);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
    struct xf_store_op *op = kit_op(XF_OP_READ_ATTEMPTS);
    op->in.read_page.job = job;
    kit_must(k, op);
    const struct xf_out_read_attempts *out = &k->last.out.read_attempts;
    assert_int_equal(out->n, 2);
    assert_true(xf_str_eq_c(out->rows[0].agent, "a-a"));
    assert_int_equal(out->rows[0].how, XF_HOW_EXPIRED);
    assert_int_equal(out->rows[1].how, XF_HOW_DONE);
}

/* CASE C092: the same agent has the task again: what it still says of its first attempt is late. */
static void c092_an_older_attempt_of_the_same_agent_is_late(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 4, 0);
    struct held first = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_give_back(k, &first, XF_HOW_EXPIRED), XF_OK);
    struct held second = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(second.task, first.task);
    assert_memory_equal(second.instance, first.instance, sizeof(first.instance));
    assert_int_equal(kit_checkpoint(k, &first, 0, 4, XF_OUTCOME_FAILED, true), XF_E_STALE);
    assert_int_equal(kit_give_back(k, &first, XF_HOW_DRAINED), XF_E_STALE);
    struct held stranger = second; /* the right number, but not the owner */
    stranger.instance[0] ^= 1;
    assert_int_equal(kit_checkpoint(k, &stranger, 0, 4, XF_OUTCOME_FAILED, true), XF_E_STALE);
    assert_int_equal(kit_row(k, job).n.failed, 0);
    assert_int_equal(kit_checkpoint(k, &second, 0, 4, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_row(k, job).n.copied, 4);
}

static void a_late_report_after_the_end_makes_a_recheck_at_once(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 3, 0);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_give_back(k, &a, XF_HOW_LOST), XF_OK);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &b, 0, 3, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_checkpoint(k, &a, 0, 0, XF_OUTCOME_PENDING, false), XF_E_STALE);
    assert_false(k->last.out.checkpoint.rechecked); /* it said nothing */
    assert_int_equal(kit_checkpoint(k, &a, 0, 1, XF_OUTCOME_COPIED, false), XF_E_STALE);
    assert_true(k->last.out.checkpoint.rechecked);
    assert_int_equal(kit_checkpoint(k, &a, 0, 1, XF_OUTCOME_COPIED, false), XF_E_STALE);
    assert_false(k->last.out.checkpoint.rechecked); /* one waits already */
    struct held r = kit_lease_one(k, job, 'b', XF_TASK_RECHECK);
    assert_int_equal(kit_checkpoint(k, &r, 0, 1, XF_OUTCOME_FAILED, false), XF_OK);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.copied, 2);
    assert_int_equal(row.n.failed, 1);
    assert_int_equal(row.n.bytes_copied, 20);
    kit_check(k);
    assert_int_equal(kit_checkpoint(k, &a, 2, 3, XF_OUTCOME_COPIED, false), XF_E_STALE);
    assert_int_equal(kit_checkpoint(k, &r, 1, 3, XF_OUTCOME_SKIPPED, true), XF_OK);
    assert_true(k->last.out.checkpoint.rechecked); /* told while it ran: once more */
    r = kit_lease_one(k, job, 'b', XF_TASK_RECHECK);
    assert_int_equal(kit_checkpoint(k, &r, 1, 3, XF_OUTCOME_SKIPPED, true), XF_OK);
}

static void a_lease_given_again_carries_what_was_reported(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 5, 0);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    struct xf_result_set set;
    struct xf_err err;

    assert_int_equal(kit_checkpoint(k, &a, 1, 3, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_give_back(k, &a, XF_HOW_DRAINED), XF_OK);
    assert_int_equal(kit_give_back(k, &a, XF_HOW_DRAINED), XF_OK); /* sent twice */
    kit_must(k, kit_lease_op(job, 'b', XF_TASK_ALL, 1));
    const struct xf_lease_task *t = &k->last.out.lease.tasks[0];
    assert_int_equal(xf_result_set_decode(t->result, 5, &set, &err), XF_OK);
    for (uint32_t i = 0; i < 5; i++) {
        assert_int_equal(set.at[i].outcome,
                         i == 1 || i == 2 ? XF_OUTCOME_COPIED : XF_OUTCOME_PENDING);
    }
    xf_result_set_fini(&set);
    struct xf_manifest m;
    assert_int_equal(xf_manifest_decode(t->manifest, &m, &err), XF_OK);
    assert_int_equal(m.n, 5);
    assert_true(xf_str_eq_c(m.objects[4].key, "c1-00004"));
    xf_manifest_fini(&m);
}

static void a_task_given_back_waits_its_delay(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 5, 0);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    struct xf_store_op *op = kit_give_back_op(&a, XF_HOW_UNFIT);
    struct held b;

    op->in.give_back.delay_ms = 5000;
    kit_must(k, op);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 1, &b), 0);
    xf_fakeclock_advance(&k->clock, 5000);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 1, &b), 1);
}

/* CASE C092, the clock: a step of the wall clock holds no task back for longer than a delay. */
static void c092_a_clock_set_back_holds_no_task_back(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 5, 0);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    struct xf_store_op *op = kit_give_back_op(&a, XF_HOW_UNFIT);
    struct held b;

    op->in.give_back.delay_ms = XF_STORE_DELAY_MAX_MS + 1;
    assert_int_equal(kit_do(k, op), XF_E_INVAL);
    op = kit_give_back_op(&a, XF_HOW_UNFIT);
    op->in.give_back.delay_ms = 5000;
    kit_must(k, op);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 1, &b), 0);
    xf_fakeclock_set_wall(&k->clock, xf_clock_wall_ms(&k->clock.clock) - 3600000);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 1, &b), 1);
}

/* Keys are bytes: whatever came in comes out, by every way. */
static void odd_keys_come_back_as_they_were(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    struct xf_store_op *op = kit_op(XF_OP_PAGE_COMMIT);
    struct xf_object *large = xf_store_op_calloc(op, ODD_KEYS, sizeof(*large));
    struct xf_buf keys[ODD_KEYS];
    struct xf_rng rng;

    xf_rng_init(&rng, xf_test_seed());
    for (size_t i = 0; i < ODD_KEYS; i++) {
        xf_buf_init(&keys[i], 0);
        if (i == 0) {
            xf_buf_put(&keys[i], XF_STR_LIT("nul\0 and not utf-8 \xff\xfe'\"\n"));
        } else {
            xf_gen_key(&rng, &keys[i], 1024);
        }
        large[i] = (struct xf_object){.key = xf_buf_view(&keys[i]), .size = 100};
    }
    op->in.page_commit = (struct xf_in_page_commit){.shard = kit_shard(k, job),
                                                    .cursor_new = XF_STR_LIT("\xff\0c"),
                                                    .uploads = large,
                                                    .n_uploads = ODD_KEYS};
    kit_must(k, op);
    for (size_t i = 0; i < ODD_KEYS; i++) {
        kit_must(k, kit_lease_op(job, 'a', XF_TASK_ALL, 1));
        const struct xf_lease_task *t = &k->last.out.lease.tasks[0];
        assert_true(xf_str_eq(t->upload->object.key, xf_buf_view(&keys[i])));
        struct held h = {.task = t->task, .attempt = t->attempt};
        memset(h.instance, 'a', sizeof(h.instance));
        assert_int_equal(kit_end(k, &h, XF_OUTCOME_FAILED, false), XF_OK);
    }
    op = kit_op(XF_OP_READ_FAILURES);
    op->in.read_page.job = job;
    kit_must(k, op);
    assert_int_equal(k->last.out.read_failures.n, ODD_KEYS);
    for (size_t i = 0; i < ODD_KEYS; i++) {
        assert_true(xf_str_eq(k->last.out.read_failures.rows[i].object.key, xf_buf_view(&keys[i])));
        xf_buf_fini(&keys[i]);
    }
    kit_must(k, kit_op(XF_OP_READ_RECOVER));
    assert_true(xf_str_eq(k->last.out.read_recover.shards[0].cursor, XF_STR_LIT("\xff\0c")));
}

static void only_the_newest_notices_are_kept(void **state)
{
    struct kit *k = *state;
    struct xf_in_read_page at = {.limit = XF_STORE_PAGE_MAX};
    size_t n = 0;

    for (int i = 0; i < 1010; i++) {
        struct xf_store_op *op = kit_op(XF_OP_NOTE);
        op->in.note = (struct xf_in_note){0, XF_STR_LIT("test"), XF_STR_LIT("text")};
        kit_must(k, op);
    }
    for (bool more = true; more;) {
        struct xf_store_op *op = kit_op(XF_OP_READ_NOTICES);
        op->in.read_page = at;
        kit_must(k, op);
        n += k->last.out.read_notices.n;
        at.after = k->last.out.read_notices.next;
        more = k->last.out.read_notices.more;
    }
    assert_int_equal(n, 1000);
    assert_int_equal(at.after, 1010);
}

/* Die with what there is until nothing is ready any more. */
static unsigned die_with_everything(struct kit *k, int64_t job)
{
    unsigned deaths = 0;
    struct held h;

    while (kit_lease(k, job, 'a', XF_TASK_ALL & ~XF_TASK_BIT(XF_TASK_ABORT), 1, &h) == 1) {
        assert_int_equal(kit_give_back(k, &h, XF_HOW_EXPIRED), XF_OK);
        assert_true(++deaths < 1000);
    }
    return deaths;
}

static void a_batch_that_kills_agents_is_split_down_to_the_object(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 4, 0);

    assert_int_equal(die_with_everything(k, job), 5 * 7); /* 4, 2 + 2, 1 + 1 + 1 + 1 */
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.failed, 4);
    assert_int_equal(row.n.listed, 4);
    assert_int_equal(row.retryable, 0);
    struct xf_store_op *op = kit_op(XF_OP_READ_FAILURES);
    op->in.read_page.job = job;
    kit_must(k, op);
    assert_int_equal(k->last.out.read_failures.n, 4);
    assert_int_equal(k->last.out.read_failures.rows[0].result.code, XF_E_LIMIT);
}

static void progress_forgives_deaths(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 6, 0);

    for (uint32_t i = 0; i < 6; i++) {
        for (int d = 0; d < 4; d++) {
            struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
            assert_int_equal(kit_give_back(k, &h, XF_HOW_LOST), XF_OK);
            assert_false(k->last.out.give_back.split);
        }
        struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
        assert_int_equal(kit_checkpoint(k, &h, i, i + 1, XF_OUTCOME_COPIED, false), XF_OK);
        assert_int_equal(kit_give_back(k, &h, XF_HOW_LOST), XF_OK);
    }
    assert_int_equal(kit_row(k, job).n.copied, 6);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK); /* its last `done` was lost */
}

/* So that what a dead agent wrote is not taken for somebody else's. */
static void objects_of_a_split_batch_count_as_tried(void **state)
{
    struct kit *k = *state;
    struct xf_err err;
    int64_t job = listed_job(k, 4, 0);

    for (int i = 0; i < 5; i++) {
        struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
        assert_int_equal(kit_give_back(k, &h, XF_HOW_LOST), XF_OK);
    }
    assert_true(k->last.out.give_back.split);
    kit_must(k, kit_lease_op(job, 'b', XF_TASK_BIT(XF_TASK_BATCH), 1));
    assert_int_equal(k->last.out.lease.n_tasks, 1);
    XF_AUTO_MANIFEST m = {0};
    assert_int_equal(xf_manifest_decode(k->last.out.lease.tasks[0].manifest, &m, &err), XF_OK);
    assert_int_equal(m.n, 2);
    assert_int_equal(m.objects[0].attempts, 1);
}

static void a_late_report_on_a_split_batch_checks_its_halves(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 4, 0);
    struct held first = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_checkpoint(k, &first, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_give_back(k, &first, XF_HOW_LOST), XF_OK);
    for (int i = 0; i < 5; i++) {
        struct held h = kit_lease_one(k, job, 'b', XF_TASK_BATCH);
        assert_int_equal(kit_give_back(k, &h, XF_HOW_EXPIRED), XF_OK);
    }
    assert_true(k->last.out.give_back.split);
    kit_check(k);
    assert_int_equal(kit_checkpoint(k, &first, 2, 4, XF_OUTCOME_COPIED, false), XF_E_STALE);
    struct held half[2];
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_BIT(XF_TASK_BATCH), 2, half), 2);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(kit_checkpoint(k, &half[i], 0, half[i].n_objects, XF_OUTCOME_COPIED, true),
                         XF_OK);
        assert_true(k->last.out.checkpoint.rechecked);
    }
    struct held r[4];
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_BIT(XF_TASK_RECHECK), 4, r), 3);
    assert_int_equal(r[0].n_objects, 4); /* of the original, of which one object is its own */
    assert_int_equal(kit_checkpoint(k, &r[0], 0, 1, XF_OUTCOME_SKIPPED, true), XF_OK);
    kit_check(k);
}

static void failures_are_tried_again_in_a_pass_of_their_own(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 300, 1);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_checkpoint(k, &h, 0, 50, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &h, 50, 300, XF_OUTCOME_FAILED, true), XF_OK);
    struct held u = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
    assert_int_equal(kit_end(k, &u, XF_OUTCOME_FAILED, false), XF_OK);
    assert_int_equal(kit_row(k, job).n.failed, 251);
    assert_int_equal(kit_row(k, job).retryable, 251);
    assert_int_equal(kit_retry(k, job, 1), 0); /* one attempt was spent on each */
    assert_int_equal(kit_retry(k, job, 2), 251);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.failed, 0);
    assert_int_equal(row.n.pending, 251);
    assert_int_equal(row.pass_no, 2);
    kit_check(k);
    struct held b[8];
    size_t n = kit_lease(k, job, 'a', XF_TASK_BIT(XF_TASK_BATCH), 8, b);
    for (size_t i = 0; i < n; i++) {
        assert_int_equal(kit_checkpoint(k, &b[i], 0, b[i].n_objects, XF_OUTCOME_FAILED, true),
                         XF_OK);
    }
    assert_int_equal(kit_retry(k, job, 2), 0);
    assert_int_equal(kit_row(k, job).n.failed, 250);
    struct xf_store_op *op = kit_op(XF_OP_READ_FAILURES);
    op->in.read_page = (struct xf_in_read_page){.job = job, .limit = 1};
    kit_must(k, op);
    const struct xf_failure_row *f = &k->last.out.read_failures.rows[0];
    assert_true(k->last.out.read_failures.more);
    assert_int_equal(f->object.attempts, 2);
    assert_int_equal(f->result.http_status, 503);
    assert_true(xf_str_eq_c(f->result.s3_code, "SlowDown"));
}

/* CASE C080: what failed is tried again alone, also after the job ended with failures. */
static void c080_an_operator_reopens_a_job_that_ended_with_failures(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 3, 0);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);

    assert_int_equal(kit_checkpoint(k, &h, 0, 2, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &h, 2, 3, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_INVAL);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED_WITH_FAILURES), XF_OK);
    kit_check(k);
    struct xf_store_op *op = kit_op(XF_OP_RETRY);
    op->in.retry = (struct xf_in_retry){.job = job, .max_attempts = 8, .limit = 10};
    assert_int_equal(kit_do(k, op), XF_E_STALE);
    op = kit_op(XF_OP_RETRY);
    op->in.retry = (struct xf_in_retry){.job = job, .is_forced = true, .limit = 10};
    kit_must(k, op);
    assert_int_equal(k->last.out.retry.n_objects, 1);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.state, XF_JOB_RUNNING);
    assert_int_equal(row.exit_code, -1);
    h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(h.n_objects, 1);
    assert_int_equal(kit_checkpoint(k, &h, 0, 1, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
}

static void every_object_is_in_the_results_once(void **state)
{
    struct kit *k = *state;
    int64_t job = listed_job(k, 5, 1);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    struct xf_in_read_results at = {.job = job};
    unsigned copied = 0;
    unsigned pending = 0;

    assert_int_equal(kit_checkpoint(k, &h, 0, 3, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_checkpoint(k, &h, 3, 5, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_retry(k, job, 8), 2);
    h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &h, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    for (bool more = true; more;) {
        struct xf_store_op *op = kit_op(XF_OP_READ_RESULTS);
        op->in.read_results = at;
        kit_must(k, op);
        const struct xf_out_read_results *out = &k->last.out.read_results;
        for (size_t i = 0; i < out->n; i++) {
            assert_int_not_equal(out->rows[i].result.outcome, XF_OUTCOME_FAILED);
            copied += out->rows[i].result.outcome == XF_OUTCOME_COPIED;
            pending += out->rows[i].result.outcome == XF_OUTCOME_PENDING;
        }
        at.uploads = out->next_uploads;
        at.after = out->next;
        more = out->more;
    }
    assert_int_equal(copied, 4);
    assert_int_equal(pending, 2);
}

static void a_job_does_not_end_while_work_is_left(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);

    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_BUSY); /* the listing */
    assert_int_equal(kit_page(k, shard, "", "c1", 2, 0), XF_OK);
    kit_last_page(k, shard, "c1");
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_BUSY); /* ready */
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_BUSY); /* leased */
    assert_int_equal(kit_finish(k, job, XF_JOB_FAILED), XF_E_BUSY);
    assert_int_equal(kit_checkpoint(k, &h, 0, 2, XF_OUTCOME_COPIED, true), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK); /* sent twice */
    assert_int_equal(kit_finish(k, job, XF_JOB_FAILED), XF_E_STALE);
    assert_int_equal(kit_row(k, job).state, XF_JOB_COMPLETED);
}

static void a_stopped_job_keeps_what_is_done_and_gives_out_nothing(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);

    assert_int_equal(kit_page(k, shard, "", "c1", 4, 0), XF_OK);
    assert_int_equal(kit_page(k, shard, "c1", "c2", 4, 2), XF_OK);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_stop(k, job), XF_OK);
    assert_int_equal(k->last.out.job_stop.withdrawn, 3); /* a batch and two opens */
    assert_int_equal(kit_stop(k, job), XF_OK);           /* sent twice */
    kit_check(k);
    assert_int_equal(kit_page(k, shard, "c2", "c3", 4, 0), XF_E_CANCELLED);
    assert_int_equal(kit_checkpoint(k, &h, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_E_BUSY);
    assert_int_equal(kit_give_back(k, &h, XF_HOW_STOPPED), XF_OK);
    struct held none;
    assert_int_equal(kit_lease(k, job, 'a', XF_TASK_ALL, 1, &none), 0);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_INVAL);
    assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_OK);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.state, XF_JOB_CANCELLED);
    assert_int_equal(row.n.listed, 10);
    assert_int_equal(row.n.copied, 1);
    assert_int_equal(row.n.pending, 9);
}

static void a_restart_finds_leases_and_cursors_again(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 2);
    int64_t shard = kit_shard(k, job);

    assert_int_equal(kit_page(k, shard, "", "c1", 4, 1), XF_OK);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &h, 0, 1, XF_OUTCOME_COPIED, false), XF_OK);
    kit_reopen(k);
    kit_must(k, kit_op(XF_OP_READ_RECOVER));
    const struct xf_out_read_recover *r = &k->last.out.read_recover;
    assert_int_equal(r->n_jobs, 1);
    assert_int_equal(r->jobs[0].n.copied, 1);
    assert_int_equal(r->n_shards, 2);
    assert_true(xf_str_eq_c(r->shards[0].cursor, "c1"));
    assert_int_equal(r->n_leased, 1);
    assert_int_equal(r->leased[0].task, h.task);
    assert_int_equal(r->leased[0].attempt, h.attempt);
    assert_int_equal(r->leased[0].objects, 3);
    assert_memory_equal(r->leased[0].instance, h.instance, XF_STORE_INSTANCE_LEN);
    assert_int_equal(kit_checkpoint(k, &h, 1, 4, XF_OUTCOME_COPIED, true), XF_OK);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)
    const struct CMUnitTest tests[] = {
        T(the_same_submit_key_is_one_job),
        T(a_job_is_found_by_the_beginning_of_its_id),
        T(live_and_ended_jobs_are_read_a_page_at_a_time),
        T(a_page_moves_the_cursor_with_its_rows),
        T(a_page_with_a_damaged_manifest_changes_nothing),
        T(a_lease_gives_each_task_once),
        T(a_lease_stops_at_its_limits_but_gives_one),
        T(a_paused_job_gives_no_task),
        T(reports_are_counted_once),
        T(a_first_outcome_stays),
        T(c089_what_is_sent_twice_or_late_changes_nothing),
        T(c092_a_late_report_changes_no_outcome_and_is_checked_again),
        T(c092_an_older_attempt_of_the_same_agent_is_late),
        T(a_late_report_after_the_end_makes_a_recheck_at_once),
        T(a_lease_given_again_carries_what_was_reported),
        T(a_task_given_back_waits_its_delay),
        T(c092_a_clock_set_back_holds_no_task_back),
        T(odd_keys_come_back_as_they_were),
        T(only_the_newest_notices_are_kept),
        T(a_batch_that_kills_agents_is_split_down_to_the_object),
        T(progress_forgives_deaths),
        T(objects_of_a_split_batch_count_as_tried),
        T(a_late_report_on_a_split_batch_checks_its_halves),
        T(failures_are_tried_again_in_a_pass_of_their_own),
        T(c080_an_operator_reopens_a_job_that_ended_with_failures),
        T(every_object_is_in_the_results_once),
        T(a_job_does_not_end_while_work_is_left),
        T(a_stopped_job_keeps_what_is_done_and_gives_out_nothing),
        T(a_restart_finds_leases_and_cursors_again),
    };
    return xf_test_run("store", tests, NULL, NULL);
}
