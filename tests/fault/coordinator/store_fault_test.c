/*
 * store_fault_test.c - every durable operation with the n-th write, sync or open of the disk
 * failing.
 *
 * The loop of each: make a store and what the operation needs; let the n-th call fail; submit.
 * Then the disk works again: submitting the same operation must end well, in the same process and
 * without a restart; the store must hold every invariant, also after a reopen, with the operation's
 * effect there once. n grows until the operation needs fewer calls than that.
 */
#include "tests/fault/coordinator/store_vfs.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

#include <stdio.h>

enum { NTH_MAX = 400 };

/* What the operations under test work on. */
struct scene {
    struct kit k;
    int64_t job;
    int64_t shard;
    struct held batch;  /* leased, two of its six objects copied */
    struct held failed; /* ended, all of it failed */
    struct held open;   /* leased */
    struct held parts;  /* leased, of another upload */
    struct held close;  /* leased, of a third */
    struct held abort;  /* leased, of a fourth */
    int64_t ended;      /* a job that was cancelled */
    int64_t marked;     /* another, which is being forgotten */
};

static void leave_open(struct scene *s, struct held *h, const char *id)
{
    *h = kit_lease_one(&s->k, s->job, 'a', XF_TASK_OPEN);
    assert_int_equal(kit_opened(&s->k, h, id, 8), XF_OK);
}

static int64_t leave_ended(struct kit *k, const char *key)
{
    int64_t job = kit_job(k, key, 1);

    assert_int_equal(kit_page(k, kit_shard(k, job), "", "c1", 3, 1), XF_OK);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &h, 0, 3, XF_OUTCOME_FAILED, true), XF_OK);
    assert_int_equal(kit_stop(k, job), XF_OK);
    assert_int_equal(kit_finish(k, job, XF_JOB_CANCELLED), XF_OK);
    return job;
}

static struct xf_store_op *prune_op(int64_t job)
{
    struct xf_store_op *op = kit_op(XF_OP_PRUNE);

    op->in.prune = (struct xf_in_prune){.job = job, .before_ms = INT64_MAX, .limit = 10};
    return op;
}

static void scene_init(struct scene *s)
{
    struct kit *k = &s->k;
    struct held h;

    memset(s, 0, sizeof(*s));
    kit_init(k, NULL);
    k->opts.vfs = STORE_VFS_NAME;
    kit_open(k);
    s->job = kit_job(k, "one", 1);
    s->shard = kit_shard(k, s->job);
    assert_int_equal(kit_page(k, s->shard, "", "c1", 6, 0), XF_OK);
    s->batch = kit_lease_one(k, s->job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &s->batch, 0, 2, XF_OUTCOME_COPIED, false), XF_OK);
    assert_int_equal(kit_page(k, s->shard, "c1", "c2", 5, 4), XF_OK);
    s->failed = kit_lease_one(k, s->job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &s->failed, 0, 5, XF_OUTCOME_FAILED, true), XF_OK);
    leave_open(s, &h, "id-close");
    h = kit_lease_one(k, s->job, 'a', XF_TASK_PARTS);
    assert_int_equal(kit_parts(k, &h, 1, 9, true), XF_OK);
    s->close = kit_lease_one(k, s->job, 'a', XF_TASK_CLOSE);
    leave_open(s, &h, "id-abort");
    h = kit_lease_one(k, s->job, 'a', XF_TASK_PARTS);
    assert_int_equal(kit_end(k, &h, XF_OUTCOME_FAILED, true), XF_OK);
    s->abort = kit_lease_one(k, s->job, 'a', XF_TASK_ABORT);
    leave_open(s, &h, "id-parts");
    s->parts = kit_lease_one(k, s->job, 'a', XF_TASK_PARTS);
    s->open = kit_lease_one(k, s->job, 'a', XF_TASK_OPEN);
    assert_int_equal(kit_page(k, s->shard, "c2", "c3", 4, 0), XF_OK);
    s->ended = leave_ended(k, "ended");
    s->marked = leave_ended(k, "marked");
    kit_must(k, prune_op(s->marked));
    kit_check(k);
}

/* ---- the operations: one that is made anew each time, and what must be there after it ---- */

struct act {
    const char *name;
    struct xf_store_op *(*make)(struct scene *s);
    void (*verify)(struct scene *s, const struct xf_job_row *row);
};

static struct xf_store_op *make_job(struct scene *s)
{
    struct xf_store_op *op = kit_op(XF_OP_JOB_CREATE);
    struct xf_str *lo = xf_store_op_calloc(op, 2, sizeof(*lo));

    (void)s; /* beside it */
    op->in.job_create = (struct xf_in_job_create){.submit_key = XF_STR_LIT("two"),
                                                  .public_id = XF_STR_LIT("j-two"),
                                                  .spec = XF_STR_LIT("format = 1\n"),
                                                  .n_sources = 2,
                                                  .shard_lo = lo};
    return op;
}

static void verify_job(struct scene *s, const struct xf_job_row *row)
{
    (void)row; /* of the other job */
    kit_must(&s->k, kit_op(XF_OP_READ_RECOVER));
    assert_int_equal(s->k.last.out.read_recover.n_jobs, 2);
    assert_int_equal(s->k.last.out.read_recover.n_shards, 3);
}

static struct xf_store_op *make_page(struct scene *s)
{
    return kit_page_op(s->shard, "c3", "c4", 20, 2);
}

static void verify_page(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->n.listed, 6 + 9 + 4 + 22);
}

static struct xf_store_op *make_lease(struct scene *s)
{
    return kit_lease_op(s->job, 'b', XF_TASK_BIT(XF_TASK_BATCH), 1);
}

static void verify_lease(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->tasks_leased, 6);
    assert_int_equal(row->n.in_flight, 4 + 4 + 3);
}

static struct xf_store_op *make_checkpoint(struct scene *s)
{
    return kit_checkpoint_op(&s->batch, 2, 6, XF_OUTCOME_FAILED, true);
}

static void verify_checkpoint(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->n.copied, 2);
    assert_int_equal(row->n.failed, 5 + 1 + 4);
}

static struct xf_store_op *make_give_back(struct scene *s)
{
    return kit_give_back_op(&s->batch, XF_HOW_EXPIRED);
}

static void verify_give_back(struct scene *s, const struct xf_job_row *row)
{
    struct held h = kit_lease_one(&s->k, s->job, 'b', XF_TASK_BATCH);

    assert_int_equal(row->tasks_leased, 4);
    assert_int_equal(h.task, s->batch.task);
    assert_int_equal(h.attempt, 2);
}

static struct xf_store_op *make_opened(struct scene *s)
{
    return kit_opened_op(&s->open, "id-open", 30);
}

static void verify_opened(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->tasks_ready, 1 + 4);
}

static struct xf_store_op *make_parts(struct scene *s)
{
    return kit_parts_op(&s->parts, 1, 9, true);
}

static void verify_parts(struct scene *s, const struct xf_job_row *row)
{
    assert_int_equal(row->n.bytes_through, 2 * 8 * 3);
    (void)kit_lease_one(&s->k, s->job, 'b', XF_TASK_CLOSE); /* it is there */
}

static struct xf_store_op *make_close(struct scene *s)
{
    return kit_end_op(&s->close, XF_OUTCOME_COPIED, false);
}

static void verify_close(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->n.copied, 2 + 1);
    assert_int_equal(row->uploads_live, 3);
}

static struct xf_store_op *make_upload_failed(struct scene *s)
{
    return kit_end_op(&s->parts, XF_OUTCOME_FAILED, true);
}

static void verify_upload_failed(struct scene *s, const struct xf_job_row *row)
{
    assert_int_equal(row->n.failed, 5 + 1 + 1);
    (void)kit_lease_one(&s->k, s->job, 'b', XF_TASK_ABORT); /* it is there */
}

static struct xf_store_op *make_abort_done(struct scene *s)
{
    struct xf_store_op *op = kit_op(XF_OP_ABORT_DONE);

    op->in.abort_done.fence = kit_fence(&s->abort);
    return op;
}

static void verify_abort_done(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->uploads_live, 3);
}

static struct xf_store_op *make_retry(struct scene *s)
{
    struct xf_store_op *op = kit_op(XF_OP_RETRY);

    op->in.retry = (struct xf_in_retry){.job = s->job, .max_attempts = 8, .limit = 100};
    return op;
}

static void verify_retry(struct scene *s, const struct xf_job_row *row)
{
    (void)s;                            /* the row says it */
    assert_int_equal(row->n.failed, 1); /* it is being aborted */
    assert_int_equal(row->pass_no, 2);
    assert_int_equal(row->tasks_ready, 1 + 1);
}

static struct xf_store_op *make_stop(struct scene *s)
{
    struct xf_store_op *op = kit_op(XF_OP_JOB_STOP);

    op->in.job_stop = (struct xf_in_job_stop){.job = s->job, .end = XF_JOB_CANCELLED};
    return op;
}

static void verify_stop(struct scene *s, const struct xf_job_row *row)
{
    (void)s; /* the row says it */
    assert_int_equal(row->stop, XF_JOB_CANCELLED);
    assert_int_equal(row->tasks_ready, 0);
}

static void check_gone(struct scene *s, int64_t job)
{
    struct xf_store_op *op = kit_op(XF_OP_READ_JOB);

    op->in.read_job.job = job;
    assert_int_equal(kit_do(&s->k, op), XF_E_NOT_FOUND);
}

static struct xf_store_op *make_prune(struct scene *s)
{
    (void)s; /* every job that has ended */
    return prune_op(0);
}

static void verify_prune(struct scene *s, const struct xf_job_row *row)
{
    (void)row; /* of a job that goes on */
    check_gone(s, s->ended);
}

static struct xf_store_op *make_prune_step(struct scene *s)
{
    struct xf_store_op *op = kit_op(XF_OP_PRUNE_STEP);

    (void)s; /* whatever is marked */
    op->in.prune_step.limit = 1;
    return op;
}

static void verify_prune_step(struct scene *s, const struct xf_job_row *row)
{
    (void)row; /* of a job that goes on */
    check_gone(s, s->marked);
    do {
        kit_must(&s->k, make_prune_step(s));
    } while (s->k.last.out.prune_step.more);
}

static const struct act acts[] = {
    {"job_create", make_job, verify_job},
    {"page_commit", make_page, verify_page},
    {"lease", make_lease, verify_lease},
    {"checkpoint", make_checkpoint, verify_checkpoint},
    {"give_back", make_give_back, verify_give_back},
    {"upload_opened", make_opened, verify_opened},
    {"parts", make_parts, verify_parts},
    {"upload_end", make_close, verify_close},
    {"upload_failed", make_upload_failed, verify_upload_failed},
    {"abort_done", make_abort_done, verify_abort_done},
    {"retry", make_retry, verify_retry},
    {"job_stop", make_stop, verify_stop},
    {"prune", make_prune, verify_prune},
    {"prune_step", make_prune_step, verify_prune_step},
};

/* One round; false: the plan's call was not reached. */
static bool one_fault(const struct act *a, const struct vfs_plan *plan)
{
    struct scene s;

    scene_init(&s);
    vfs_set(plan);
    enum xf_code rc = kit_do(&s.k, a->make(&s));
    bool fired = vfs_fired();
    vfs_set(NULL);
    if (!fired && rc != XF_OK) {
        fail_msg("%s fails without a fault: %s", a->name, s.k.last.err.msg);
    }
    if (rc != XF_OK && rc != XF_E_DISK) {
        fail_msg("%s ends with %s: %s", a->name, xf_code_name(rc), s.k.last.err.msg);
    }
    kit_check(&s.k);
    bool again = rc != XF_OK || a->make != make_lease; /* a lease that was given is not repeated */
    if (again && a->make == make_retry && rc == XF_OK) {
        again = false; /* nor is a pass, which was made */
    }
    if (again && kit_do(&s.k, a->make(&s)) != XF_OK) {
        fail_msg("%s again, with a sound disk: %s", a->name, s.k.last.err.msg);
    }
    kit_check(&s.k);
    kit_reopen(&s.k);
    struct xf_job_row row = kit_row(&s.k, s.job);
    a->verify(&s, &row);
    kit_check(&s.k);
    kit_fini(&s.k);
    return fired;
}

static void loop(const struct vfs_plan *like)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(acts); i++) {
        struct vfs_plan plan = *like;
        for (plan.nth = 1; one_fault(&acts[i], &plan); plan.nth++) {
            assert_true(plan.nth < NTH_MAX);
        }
        assert_true(plan.nth > 1); /* something failed */
    }
}

static void a_failing_write_loses_nothing(void **state)
{
    const struct vfs_plan plan = {.calls = VFS_WRITE | VFS_TRUNCATE, .is_short = true};

    (void)state; /* each round makes its own */
    loop(&plan);
}

static void a_failing_sync_loses_nothing(void **state)
{
    const struct vfs_plan plan = {.calls = VFS_SYNC};

    (void)state; /* each round makes its own */
    loop(&plan);
}

static void a_full_disk_loses_nothing(void **state)
{
    const struct vfs_plan plan = {.calls = VFS_WRITE, .is_full = true, .is_sticky = true};

    (void)state; /* each round makes its own */
    loop(&plan);
}

/* A late report's mark is one more thing that must survive: it is kept although it ends STALE. */
static void a_late_report_marks_or_fails_as_a_whole(void **state)
{
    (void)state; /* each round makes its own */
    for (unsigned nth = 1;; nth++) {
        struct scene s;
        struct vfs_plan plan = {.calls = VFS_WRITE | VFS_SYNC, .nth = nth};
        scene_init(&s);
        assert_int_equal(kit_give_back(&s.k, &s.batch, XF_HOW_EXPIRED), XF_OK);
        struct held b = kit_lease_one(&s.k, s.job, 'b', XF_TASK_BATCH);
        vfs_set(&plan);
        enum xf_code rc = kit_checkpoint(&s.k, &s.batch, 2, 3, XF_OUTCOME_FAILED, false);
        bool fired = vfs_fired();
        vfs_set(NULL);
        assert_true(rc == XF_E_STALE || (fired && rc == XF_E_DISK));
        if (rc == XF_E_DISK) {
            assert_int_equal(
                kit_do(&s.k, kit_checkpoint_op(&s.batch, 2, 3, XF_OUTCOME_FAILED, false)),
                XF_E_STALE);
        }
        assert_int_equal(kit_checkpoint(&s.k, &b, 2, 6, XF_OUTCOME_COPIED, true), XF_OK);
        assert_true(s.k.last.out.checkpoint.rechecked);
        assert_int_equal(kit_row(&s.k, s.job).n.copied, 6);
        kit_check(&s.k);
        kit_fini(&s.k);
        if (!fired) {
            break;
        }
    }
}

/* Opening for the first time (schema) and again (recovery), at every failing call. */
static void an_open_that_fails_can_be_repeated(void **state)
{
    (void)state; /* each round makes its own */
    for (unsigned nth = 1;; nth++) {
        struct kit k;
        struct xf_err err;
        struct vfs_plan plan = {
            .calls = VFS_OPEN | VFS_WRITE | VFS_SYNC | VFS_TRUNCATE, .nth = nth, .is_short = true};
        kit_init(&k, NULL);
        k.opts.vfs = STORE_VFS_NAME;
        vfs_set(&plan);
        enum xf_code rc = kit_try_open(&k, &err);
        bool fired = vfs_fired();
        vfs_set(NULL);
        if (rc != XF_OK) {
            assert_true(fired);
            assert_non_null(strstr(err.msg, k.dir)); /* it names the place */
            kit_open(&k);
        }
        int64_t job = kit_job(&k, "one", 1);
        kit_reopen(&k);
        assert_int_equal(kit_row(&k, job).state, XF_JOB_RUNNING);
        kit_check(&k);
        kit_fini(&k);
        if (!fired) {
            assert_true(nth > 1);
            break;
        }
        assert_true(nth < NTH_MAX);
    }
}

/* The disk fills up under a running store: writes fail, reads go on, all goes on with new room. */
static void a_store_serves_reads_while_the_disk_is_full_and_goes_on_after(void **state)
{
    struct scene s;
    struct xf_store_stats stats;
    struct vfs_plan plan = {.room_bytes = 256 * 1024};
    char last[16] = "c3";
    unsigned pages = 0;

    (void)state; /* it makes its own */
    scene_init(&s);
    vfs_set(&plan);
    for (;; pages++) {
        char next[16];
        (void)snprintf(next, sizeof(next), "p%06u", pages); /* fits */
        enum xf_code rc = kit_page(&s.k, s.shard, last, next, 1000, 0);
        if (rc != XF_OK) {
            assert_int_equal(rc, XF_E_DISK);
            assert_non_null(strstr(s.k.last.err.msg, s.k.dir));
            assert_non_null(strstr(s.k.last.err.msg, "full"));
            break;
        }
        memcpy(last, next, sizeof(last));
        assert_true(pages < 1000);
    }
    uint64_t listed = 6 + 9 + 4 + (uint64_t)pages * 1000;
    xf_store_stats(s.k.store, &stats);
    assert_true(stats.is_disk_failing);
    assert_int_equal(kit_row(&s.k, s.job).n.listed, listed);
    kit_check(&s.k);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kit_page(&s.k, s.shard, last, "q", 1000, 0), XF_E_DISK);
    }
    vfs_set(NULL); /* somebody made room */
    assert_int_equal(kit_page(&s.k, s.shard, last, "q", 1000, 0), XF_OK);
    xf_store_stats(s.k.store, &stats);
    assert_false(stats.is_disk_failing);
    kit_reopen(&s.k);
    assert_int_equal(kit_row(&s.k, s.job).n.listed, listed + 1000);
    kit_check(&s.k);
    kit_fini(&s.k);
}

struct counted {
    unsigned ok;
    unsigned disk;
};

static void count_codes(struct xf_store_op *op)
{
    struct counted *c = op->arg;

    c->ok += op->rc == XF_OK;
    c->disk += op->rc == XF_E_DISK;
}

/* One operation that does not fit must not take the small ones of its group with it. */
static void a_large_operation_that_does_not_fit_fails_alone(void **state)
{
    struct scene s;
    struct vfs_plan plan = {.room_bytes = 200 * 1024};
    struct counted c = {0, 0};
    struct xf_store_port *port;
    struct xf_err err;

    (void)state; /* it makes its own */
    scene_init(&s);
    assert_int_equal(xf_store_port_open(s.k.store, s.k.loop, 0, &port, &err), XF_OK);
    vfs_set(&plan);
    for (int i = 0; i < 9; i++) {
        struct xf_store_op *op = xf_store_op_new(XF_OP_NOTE, count_codes, &c);
        op->in.note = (struct xf_in_note){0, XF_STR_LIT("test"), XF_STR_LIT("text")};
        if (i == 4) {
            op->in.note.text = XF_STR_EMPTY;
            struct xf_store_op *page = kit_page_op(s.shard, "c3", "c4", 1000, 1000);
            page->cb = count_codes;
            page->arg = &c;
            assert_true(xf_store_submit(port, page));
        }
        assert_true(xf_store_submit(port, op));
    }
    xf_store_port_close(port);
    vfs_set(NULL);
    assert_int_equal(c.disk, 1);
    assert_int_equal(c.ok, 9);
    kit_check(&s.k);
    kit_fini(&s.k);
}

static int set_up(void **state)
{
    (void)state; /* the layer is the process's */
    vfs_register();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_failing_write_loses_nothing),
        cmocka_unit_test(a_failing_sync_loses_nothing),
        cmocka_unit_test(a_full_disk_loses_nothing),
        cmocka_unit_test(a_late_report_marks_or_fails_as_a_whole),
        cmocka_unit_test(an_open_that_fails_can_be_repeated),
        cmocka_unit_test(a_store_serves_reads_while_the_disk_is_full_and_goes_on_after),
        cmocka_unit_test(a_large_operation_that_does_not_fit_fails_alone),
    };
    return xf_test_run("store_fault", tests, set_up, NULL);
}
