/*
 * store_upload_test.c - the life of an upload in the store: intent, id, parts, close, abort; and
 * that nothing is left open, whoever dies or comes late.
 */
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

static int64_t job_with_uploads(struct kit *k, uint32_t n)
{
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);

    assert_int_equal(kit_page(k, shard, "", "c1", 0, n), XF_OK);
    kit_last_page(k, shard, "c1");
    return job;
}

/* The live uploads: at most one here. NULL when there is none. */
static const struct xf_upload_row *live(struct kit *k, int64_t job)
{
    struct xf_store_op *op = kit_op(XF_OP_READ_UPLOADS);

    op->in.read_page.job = job;
    kit_must(k, op);
    const struct xf_out_read_uploads *out = &k->last.out.read_uploads;
    assert_true(out->n <= 1);
    return out->n == 1 ? &out->rows[0] : NULL;
}

static void finish_parts(struct kit *k, int64_t job, uint32_t n_parts)
{
    for (uint32_t done = 0; done < n_parts;) {
        struct held p = kit_lease_one(k, job, 'p', XF_TASK_PARTS);
        assert_int_equal(kit_parts(k, &p, p.first_part, p.last_part + 1, true), XF_OK);
        done += p.last_part - p.first_part + 1;
        assert_int_equal(k->last.out.checkpoint.all_parts_in, done == n_parts);
    }
}

/* CASE C055: a killed or failed upload stays open and is billed. The intent is committed first. */
static void c055_the_intent_is_committed_with_the_lease_of_the_open(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);

    assert_int_equal(live(k, job)->state, XF_UPLOAD_PLANNED);
    assert_int_equal(live(k, job)->intent_ms, 0);
    kit_must(k, kit_lease_op(job, 'a', XF_TASK_ALL, 1));
    const struct xf_upload_row *u = k->last.out.lease.tasks[0].upload;
    assert_int_equal(u->state, XF_UPLOAD_CREATING);
    assert_int_equal(u->intent_ms, xf_clock_wall_ms(&k->clock.clock));
    assert_true(xf_str_eq_c(u->object.key, "c1-large-00000"));
    int64_t intent = u->intent_ms;
    xf_fakeclock_advance(&k->clock, 60000);
    kit_reopen(k); /* the coordinator died; the agent as well */
    u = live(k, job);
    assert_int_equal(u->state, XF_UPLOAD_CREATING);
    assert_int_equal(u->intent_ms, intent);
}

static void an_upload_goes_from_open_over_parts_to_close(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_row(k, job).n.in_flight, 1);
    assert_int_equal(kit_opened(k, &o, "id-1", 20), XF_OK);
    assert_int_equal(k->last.out.upload_opened.n_tasks, 3); /* 8, 8, 4 */
    assert_int_equal(kit_opened(k, &o, "id-1", 20), XF_OK); /* sent twice */
    assert_int_equal(kit_row(k, job).n.pending, 1);
    assert_int_equal(kit_row(k, job).tasks_ready, 3);
    struct held p[3];
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 3, p), 3);
    assert_int_equal(kit_row(k, job).n.in_flight, 1); /* one object, three tasks */
    assert_int_equal(p[2].first_part, 17);
    assert_int_equal(p[2].last_part, 20);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(kit_parts(k, &p[i], p[i].first_part, p[i].last_part + 1, true), XF_OK);
        assert_int_equal(kit_parts(k, &p[i], p[i].first_part, p[i].last_part + 1, true), XF_OK);
    }
    assert_int_equal(kit_row(k, job).n.bytes_through, 60);
    kit_must(k, kit_lease_op(job, 'b', XF_TASK_ALL, 1));
    const struct xf_lease_task *t = &k->last.out.lease.tasks[0];
    assert_int_equal(t->kind, XF_TASK_CLOSE);
    assert_int_equal(t->n_parts, 20);
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(t->parts[i].part_no, i + 1);
    }
    assert_true(xf_str_eq_c(t->upload->upload_id, "id-1"));
    struct held c = {.task = t->task, .attempt = t->attempt};
    memset(c.instance, 'b', sizeof(c.instance));
    assert_int_equal(kit_end(k, &c, XF_OUTCOME_COPIED, false), XF_OK);
    assert_false(k->last.out.upload_end.to_abort);
    assert_int_equal(kit_end(k, &c, XF_OUTCOME_COPIED, false), XF_OK); /* sent twice */
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.copied, 1);
    assert_int_equal(row.uploads_live, 0);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
}

static void another_agent_goes_on_after_the_finished_parts(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_opened(k, &o, "id-1", 8), XF_OK);
    struct held p = kit_lease_one(k, job, 'a', XF_TASK_PARTS);
    assert_int_equal(kit_parts(k, &p, 3, 6, false), XF_OK);
    assert_int_equal(kit_parts(k, &p, 1, 1, true), XF_E_INVAL); /* five are missing */
    assert_int_equal(kit_parts(k, &p, 9, 10, false), XF_E_INVAL);
    assert_int_equal(kit_give_back(k, &p, XF_HOW_LOST), XF_OK);
    kit_must(k, kit_lease_op(job, 'b', XF_TASK_ALL, 1));
    const struct xf_lease_task *t = &k->last.out.lease.tasks[0];
    assert_int_equal(t->n_parts, 3);
    assert_int_equal(t->parts[0].part_no, 3);
    assert_true(xf_str_eq_c(t->parts[2].etag, "9e107d9d372bb6826bd81d3542a419d6"));
    struct held b = {.task = t->task, .attempt = t->attempt};
    memset(b.instance, 'b', sizeof(b.instance));
    assert_int_equal(kit_parts(k, &p, 1, 3, false), XF_E_STALE);
    assert_int_equal(kit_parts(k, &b, 1, 9, true), XF_OK); /* three again: kept as they were */
    assert_int_equal(kit_row(k, job).n.bytes_through, 24);
    assert_true(k->last.rc == XF_OK);
}

static void an_upload_of_10000_parts_is_1250_tasks(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_opened(k, &o, "id-1", 10001), XF_E_INVAL); /* CASE C057 */
    assert_int_equal(kit_opened(k, &o, "id-1", 10000), XF_OK);
    assert_int_equal(kit_row(k, job).tasks_ready, 1250);
    finish_parts(k, job, 10000);
    kit_must(k, kit_lease_op(job, 'b', XF_TASK_ALL, 1));
    assert_int_equal(k->last.out.lease.tasks[0].n_parts, 10000);
}

static void a_layout_that_does_not_cover_the_object_is_refused(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
    struct xf_store_op *op = kit_opened_op(&o, "id-1", 4);

    op->in.upload_opened.size = 41;
    assert_int_equal(kit_do(k, op), XF_E_INVAL);
    assert_int_equal(live(k, job)->state, XF_UPLOAD_CREATING);
}

static void an_upload_that_fails_is_aborted_when_its_tasks_have_ended(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
    struct held none;

    assert_int_equal(kit_opened(k, &o, "id-1", 24), XF_OK);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_PARTS);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_PARTS);
    assert_int_equal(kit_end(k, &a, XF_OUTCOME_COPIED, false), XF_E_INVAL);
    assert_int_equal(kit_end(k, &a, XF_OUTCOME_FAILED, true), XF_OK);
    assert_true(k->last.out.upload_end.to_abort);
    assert_int_equal(kit_row(k, job).n.failed, 1);
    assert_int_equal(kit_row(k, job).tasks_ready, 0); /* b still works on it; the third is gone */
    kit_check(k);
    assert_int_equal(kit_parts(k, &b, b.first_part, b.last_part + 1, false), XF_OK);
    assert_int_equal(kit_give_back(k, &b, XF_HOW_STOPPED), XF_OK);
    struct held x = kit_lease_one(k, job, 'b', XF_TASK_ABORT);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED_WITH_FAILURES), XF_E_BUSY);
    assert_int_equal(kit_give_back(k, &x, XF_HOW_FAILED), XF_OK); /* ListParts is not 404 yet */
    x = kit_lease_one(k, job, 'a', XF_TASK_ABORT);
    assert_int_equal(kit_abort_done(k, &x), XF_OK);
    assert_int_equal(kit_abort_done(k, &x), XF_OK); /* sent twice */
    assert_int_equal(kit_lease(k, job, 'a', XF_TASK_ALL, 1, &none), 0);
    assert_null(live(k, job));
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED_WITH_FAILURES), XF_OK);
}

static void the_last_parts_of_a_failed_upload_lead_to_the_abort(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_opened(k, &o, "id-1", 16), XF_OK);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_PARTS);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_PARTS);
    assert_int_equal(kit_end(k, &a, XF_OUTCOME_VANISHED, false), XF_OK);
    assert_true(k->last.out.upload_end.to_abort);
    assert_int_equal(kit_parts(k, &b, b.first_part, b.last_part + 1, true), XF_OK);
    struct held x = kit_lease_one(k, job, 'b', XF_TASK_ABORT);
    assert_int_equal(kit_abort_done(k, &x), XF_OK);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.vanished, 1);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
}

static void an_open_may_end_with_nothing_open(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 4);
    static const enum xf_outcome outcomes[] = {
        XF_OUTCOME_SKIPPED, XF_OUTCOME_VANISHED, XF_OUTCOME_ARCHIVED, XF_OUTCOME_FAILED};

    for (size_t i = 0; i < 4; i++) {
        struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
        assert_int_equal(kit_end(k, &o, outcomes[i], false), XF_OK);
        assert_false(k->last.out.upload_end.to_abort);
    }
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.skipped + row.n.vanished + row.n.archived + row.n.failed, 4);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED_WITH_FAILURES), XF_OK);
}

static void an_upload_is_not_tried_again_before_its_abort_is_done(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_end(k, &o, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_retry(k, job, 8), 0);
    struct held x = kit_lease_one(k, job, 'a', XF_TASK_ABORT);
    assert_int_equal(kit_retry(k, job, 8), 0);
    assert_int_equal(kit_abort_done(k, &x), XF_OK);
    assert_int_equal(kit_retry(k, job, 8), 1);
    o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
    assert_int_not_equal(o.upload, x.upload);
}

static void five_deaths_fail_an_upload_and_abort_it(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);

    for (int i = 0; i < 5; i++) {
        struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
        assert_int_equal(kit_give_back(k, &o, XF_HOW_EXPIRED), XF_OK);
    }
    assert_true(k->last.out.give_back.failed);
    assert_int_equal(kit_row(k, job).n.failed, 1);
    for (int i = 0; i < 9; i++) { /* an abort is never given up by itself */
        struct held x = kit_lease_one(k, job, 'a', XF_TASK_ABORT);
        assert_int_equal(kit_give_back(k, &x, XF_HOW_EXPIRED), XF_OK);
    }
    struct held x = kit_lease_one(k, job, 'a', XF_TASK_ABORT);
    struct xf_store_op *op = kit_op(XF_OP_ABORT_DONE);
    op->in.abort_done = (struct xf_in_abort_done){
        .fence = kit_fence(&x), .gave_up = true, .why = XF_STR_LIT("access denied")};
    kit_must(k, op);
    op = kit_op(XF_OP_READ_NOTICES);
    op->in.read_page.job = job;
    kit_must(k, op);
    assert_int_equal(k->last.out.read_notices.n, 1);
    assert_true(xf_str_eq_c(k->last.out.read_notices.rows[0].code, "upload_left"));
}

/* A person who kills and starts a run again and again; and what kills each agent at once. */
static void weak_deaths_fail_an_upload_only_at_the_25th(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);

    for (int i = 1; i <= 25; i++) {
        struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);
        struct xf_store_op *op = kit_give_back_op(&o, XF_HOW_LOST);
        op->in.give_back.is_weak_death = true;
        kit_must(k, op);
        assert_int_equal(k->last.out.give_back.failed, i == 25);
    }
    assert_int_equal(kit_row(k, job).n.failed, 1);
}

/* CASE C092: the old owner's late CreateMultipartUpload must not stay open, nor become the row's.
 */
static void c092_an_upload_id_of_a_lost_lease_is_aborted(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held a = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_give_back(k, &a, XF_HOW_EXPIRED), XF_OK);
    struct held b = kit_lease_one(k, job, 'b', XF_TASK_OPEN);
    assert_int_equal(kit_opened(k, &a, "late", 8), XF_E_STALE);
    assert_int_equal(kit_opened(k, &a, "late", 8), XF_E_STALE); /* sent twice: one abort */
    kit_check(k);
    assert_int_equal(kit_opened(k, &b, "good", 8), XF_OK);
    assert_int_equal(kit_opened(k, &a, "good", 8), XF_E_STALE); /* the present one is not hurt */
    kit_must(k, kit_lease_op(job, 'a', XF_TASK_BIT(XF_TASK_ABORT), 4));
    assert_int_equal(k->last.out.lease.n_tasks, 1);
    const struct xf_lease_task *t = &k->last.out.lease.tasks[0];
    assert_true(xf_str_eq_c(t->upload->upload_id, "late"));
    struct held x = {.task = t->task, .attempt = t->attempt};
    memset(x.instance, 'a', sizeof(x.instance));
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.listed, 1); /* it is no object of the job */
    assert_int_equal(row.n.pending, 1);
    assert_int_equal(kit_abort_done(k, &x), XF_OK);
    finish_parts(k, job, 8);
    struct held c = kit_lease_one(k, job, 'b', XF_TASK_CLOSE);
    assert_int_equal(kit_end(k, &c, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
}

/* CASE C055, the stop at every step: whatever may be open is aborted before the job ends. */
static void c055_a_stop_aborts_what_may_be_open(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 5);
    struct held o[4];
    struct held none;

    /* planned | creating, leased | creating, given back | open with a leased part task | closing */
    assert_int_equal(kit_lease(k, job, 'a', XF_TASK_BIT(XF_TASK_OPEN), 4, o), 4);
    assert_int_equal(kit_opened(k, &o[2], "id-2", 8), XF_OK);
    assert_int_equal(kit_opened(k, &o[3], "id-3", 8), XF_OK);
    struct held p = kit_lease_one(k, job, 'a', XF_TASK_PARTS);
    assert_int_equal(kit_parts(k, &p, 1, 9, true), XF_OK);
    struct held q = kit_lease_one(k, job, 'a', XF_TASK_PARTS);
    assert_int_equal(kit_give_back(k, &o[1], XF_HOW_DRAINED), XF_OK);
    assert_int_equal(kit_stop(k, job), XF_OK);
    kit_check(k);
    struct held x[5];
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 5, x), 2);
    assert_int_equal(x[0].kind, XF_TASK_ABORT);
    assert_int_equal(kit_opened(k, &o[0], "id-0", 8), XF_OK); /* the reply was on its way */
    assert_int_equal(k->last.out.upload_opened.n_tasks, 0);
    assert_int_equal(kit_give_back(k, &q, XF_HOW_STOPPED), XF_OK);
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 5, x + 2), 2);
    kit_check(k);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_E_BUSY);
        assert_int_equal(kit_abort_done(k, &x[i]), XF_OK);
    }
    assert_int_equal(kit_lease(k, job, 'b', XF_TASK_ALL, 1, &none), 0);
    assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_OK);
    assert_int_equal(kit_row(k, job).n.pending, 5);
}

/* A later pass finds that an earlier one has copied it; what a lost Create left is looked for. */
static void an_open_may_find_the_object_copied(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 2);
    struct held o[2];

    assert_int_equal(kit_lease(k, job, 'a', XF_TASK_BIT(XF_TASK_OPEN), 2, o), 2);
    assert_int_equal(kit_end(k, &o[0], XF_OUTCOME_COPIED, false), XF_OK);
    assert_false(k->last.out.upload_end.to_abort);
    assert_int_equal(kit_end(k, &o[1], XF_OUTCOME_COPIED, true), XF_OK);
    assert_true(k->last.out.upload_end.to_abort);
    kit_check(k);
    assert_int_equal(kit_row(k, job).n.copied, 2);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_E_BUSY);
    struct held x = kit_lease_one(k, job, 'a', XF_TASK_ABORT);
    assert_int_equal(kit_abort_done(k, &x), XF_OK);
    kit_check(k);
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
}

/* CASE C053: the Complete went through although the job was stopped: the object counts. */
static void c053_a_close_that_won_against_the_stop_counts(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 1);
    struct held o = kit_lease_one(k, job, 'a', XF_TASK_OPEN);

    assert_int_equal(kit_opened(k, &o, "id-1", 8), XF_OK);
    finish_parts(k, job, 8);
    struct held c = kit_lease_one(k, job, 'a', XF_TASK_CLOSE);
    assert_int_equal(kit_stop(k, job), XF_OK);
    assert_int_equal(kit_end(k, &c, XF_OUTCOME_COPIED, false), XF_OK);
    assert_true(k->last.out.upload_end.to_abort); /* to be sure: it answers 404 */
    struct held x = kit_lease_one(k, job, 'a', XF_TASK_ABORT);
    assert_int_equal(kit_abort_done(k, &x), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_OK);
    assert_int_equal(kit_row(k, job).n.copied, 1);
    assert_int_equal(kit_row(k, job).n.pending, 0);
}

static void uploads_end_before_others_begin(void **state)
{
    struct kit *k = *state;
    int64_t job = job_with_uploads(k, 3);
    struct held h;
    static const enum xf_task_kind order[] = {XF_TASK_OPEN, XF_TASK_PARTS, XF_TASK_CLOSE};

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < 3; i++) {
            assert_int_equal(kit_lease(k, job, 'a', XF_TASK_ALL, 1, &h), 1);
            assert_int_equal(h.kind, order[i]);
            if (i == 0) {
                assert_int_equal(kit_opened(k, &h, "id", 8), XF_OK);
            } else if (i == 1) {
                assert_int_equal(kit_parts(k, &h, 1, 9, true), XF_OK);
            } else {
                assert_int_equal(kit_end(k, &h, XF_OUTCOME_COPIED, false), XF_OK);
            }
        }
    }
    assert_int_equal(kit_finish(k, job, XF_JOB_COMPLETED), XF_OK);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, kit_set_up, kit_tear_down)
    const struct CMUnitTest tests[] = {
        T(c055_the_intent_is_committed_with_the_lease_of_the_open),
        T(an_upload_goes_from_open_over_parts_to_close),
        T(another_agent_goes_on_after_the_finished_parts),
        T(an_upload_of_10000_parts_is_1250_tasks),
        T(a_layout_that_does_not_cover_the_object_is_refused),
        T(an_upload_that_fails_is_aborted_when_its_tasks_have_ended),
        T(the_last_parts_of_a_failed_upload_lead_to_the_abort),
        T(an_open_may_end_with_nothing_open),
        T(an_upload_is_not_tried_again_before_its_abort_is_done),
        T(five_deaths_fail_an_upload_and_abort_it),
        T(weak_deaths_fail_an_upload_only_at_the_25th),
        T(c092_an_upload_id_of_a_lost_lease_is_aborted),
        T(c055_a_stop_aborts_what_may_be_open),
        T(an_open_may_find_the_object_copied),
        T(c053_a_close_that_won_against_the_stop_counts),
        T(uploads_end_before_others_begin),
    };
    return xf_test_run("store_upload", tests, NULL, NULL);
}
