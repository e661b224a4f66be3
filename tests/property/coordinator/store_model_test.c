/*
 * store_model_test.c - the store agrees with a small model under random operations.
 *
 * The model knows, for every task it was given, the present attempt and each object's outcome, and
 * what the job's counters must be. Agents lease, report (also twice, also late), give back, die;
 * the listing goes on meanwhile, failures are requeued, the store is reopened. In the end all work
 * is done and the job must end.
 */
#include "tests/lib/gen.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

#include <stdio.h>

enum { TASKS_MAX = 8192, HELD_MAX = 4096, STEPS = 700, ROUNDS = 4, AGENTS = 3 };

struct model_task {
    int64_t id;
    enum xf_task_kind kind;
    uint32_t attempt;           /* the latest that was given out */
    bool is_live;               /* leased now, as far as we know */
    unsigned char outcome[128]; /* of each object; a retry makes batches of up to 100 */
};

struct model {
    struct kit k;
    struct xf_rng rng;
    int64_t job;
    int64_t shard;
    unsigned page;
    bool listing_done;
    uint64_t count[XF_OUTCOME_N];   /* by outcome; [0]: all that were listed */
    uint64_t dead;                  /* failed for good: five deaths */
    unsigned char upload[HELD_MAX]; /* outcome of each upload, by id */
    struct model_task tasks[TASKS_MAX];
    size_t n_tasks;
    struct held held[HELD_MAX]; /* every lease ever given: old ones report late */
    size_t n_held;
};

static uint32_t below(struct model *m, uint32_t n)
{
    return (uint32_t)xf_rng_below(&m->rng, n);
}

static struct model_task *find(struct model *m, int64_t id)
{
    for (size_t i = 0; i < m->n_tasks; i++) {
        if (m->tasks[i].id == id) {
            return &m->tasks[i];
        }
    }
    assert_true(m->n_tasks < TASKS_MAX);
    struct model_task *t = &m->tasks[m->n_tasks++];
    memset(t, 0, sizeof(*t));
    t->id = id;
    return t;
}

/* The cursor after that many pages. */
static void cursor_of(unsigned pages, char *out, size_t size)
{
    out[0] = '\0';
    if (pages > 0) {
        (void)snprintf(out, size, "p%06u", pages); /* fits */
    }
}

static void list_page(struct model *m)
{
    char old[16];
    char next[16];
    uint32_t small = 1 + below(m, 30);
    uint32_t large = below(m, 3);

    if (m->listing_done) {
        return;
    }
    cursor_of(m->page, old, sizeof(old));
    cursor_of(m->page + 1, next, sizeof(next));
    assert_int_equal(kit_page(&m->k, m->shard, old, next, small, large), XF_OK);
    if (below(m, 4) == 0) {
        assert_int_equal(kit_page(&m->k, m->shard, old, next, small, large), XF_OK);
        assert_true(m->k.last.out.page_commit.repeated);
    }
    m->page++;
    m->count[0] += small + large;
}

static void lease(struct model *m, uint32_t kinds)
{
    struct held got[4];
    char instance = (char)('a' + below(m, AGENTS));

    if (m->n_held + 4 > HELD_MAX) {
        return;
    }
    size_t n = kit_lease(&m->k, m->job, instance, kinds, 1 + below(m, 4), got);
    for (size_t i = 0; i < n; i++) {
        struct model_task *t = find(m, got[i].task);
        assert_false(t->is_live); /* no task has two live leases */
        assert_true(got[i].attempt == t->attempt + 1);
        t->kind = got[i].kind;
        t->attempt = got[i].attempt;
        t->is_live = true;
        assert_true(got[i].n_objects <= sizeof(t->outcome));
        m->held[m->n_held++] = got[i];
    }
}

static const enum xf_outcome some_outcome[] = {XF_OUTCOME_COPIED,
                                               XF_OUTCOME_COPIED,
                                               XF_OUTCOME_SKIPPED,
                                               XF_OUTCOME_FAILED,
                                               XF_OUTCOME_VANISHED,
                                               XF_OUTCOME_ARCHIVED};

static bool is_present(struct model *m, const struct held *h)
{
    const struct model_task *t = find(m, h->task);

    return t->is_live && t->attempt == h->attempt;
}

static void report(struct model *m, const struct held *h, enum xf_outcome outcome, bool all)
{
    struct model_task *t = find(m, h->task);
    uint32_t from = all ? 0 : below(m, h->n_objects);
    uint32_t to = all ? h->n_objects : from + 1 + below(m, h->n_objects - from);
    bool was_ended = !t->is_live && t->attempt == h->attempt;
    bool present = is_present(m, h);
    enum xf_code rc = kit_checkpoint(&m->k, h, from, to, outcome, all);

    if (!present) {
        assert_true(rc == XF_E_STALE || (was_ended && rc == XF_OK));
        return;
    }
    assert_int_equal(rc, XF_OK);
    for (uint32_t i = from; i < to; i++) {
        if (t->outcome[i] == 0) {
            t->outcome[i] = (unsigned char)outcome;
            m->count[outcome] += t->kind == XF_TASK_BATCH ? 1 : 0;
        }
    }
    t->is_live = !all;
}

static void work_batch(struct model *m, const struct held *h)
{
    report(m, h, some_outcome[below(m, XF_ARRAY_LEN(some_outcome))], below(m, 3) == 0);
}

/* A recheck finds everything as it should be. */
static void work_recheck(struct model *m, const struct held *h)
{
    report(m, h, XF_OUTCOME_SKIPPED, below(m, 2) == 0);
}

/* The first outcome of an upload stays, whichever of its tasks reported it. */
static void settle_upload(struct model *m, const struct held *h, enum xf_outcome outcome)
{
    assert_in_range(h->upload, 1, HELD_MAX - 1);
    if (m->upload[h->upload] == 0) {
        m->upload[h->upload] = (unsigned char)outcome;
        m->count[outcome]++;
    }
}

static void end_upload(struct model *m, const struct held *h, enum xf_outcome outcome)
{
    bool present = is_present(m, h);
    enum xf_code rc = kit_end(&m->k, h, outcome, below(m, 2) == 0);

    if (!present) {
        assert_true(rc == XF_E_STALE || rc == XF_OK || rc == XF_E_INVAL);
        return;
    }
    assert_int_equal(rc, XF_OK);
    find(m, h->task)->is_live = false;
    settle_upload(m, h, outcome);
}

/* Uploads fail at any step. */
static void work_upload(struct model *m, const struct held *h)
{
    struct model_task *t = find(m, h->task);
    bool present = is_present(m, h);
    enum xf_code rc;

    if (h->kind == XF_TASK_ABORT) {
        rc = kit_abort_done(&m->k, h);
    } else if (below(m, 6) == 0) {
        end_upload(m, h, XF_OUTCOME_FAILED);
        return;
    } else if (h->kind == XF_TASK_OPEN) {
        char id[32];
        (void)snprintf(id, sizeof(id), "id-%lld-%u", (long long)h->task, h->attempt); /* fits */
        rc = kit_opened(&m->k, h, id, 1 + below(m, 30));
    } else if (h->kind == XF_TASK_PARTS) {
        bool all = below(m, 2) == 0;
        uint32_t last = all ? h->last_part : h->first_part;
        rc = kit_parts(&m->k, h, h->first_part, last + 1, all);
        if (rc == XF_OK && !all) {
            return;
        }
    } else {
        end_upload(m, h, XF_OUTCOME_COPIED);
        return;
    }
    if (present) {
        assert_int_equal(rc, XF_OK);
        t->is_live = false;
    } else {
        assert_true(rc == XF_E_STALE || rc == XF_OK);
    }
}

static void work(struct model *m, const struct held *h)
{
    if (h->kind == XF_TASK_BATCH) {
        work_batch(m, h);
    } else if (h->kind == XF_TASK_RECHECK) {
        work_recheck(m, h);
    } else {
        work_upload(m, h);
    }
}

static void give_back(struct model *m, const struct held *h)
{
    static const enum xf_how hows[] = {
        XF_HOW_DRAINED, XF_HOW_LOST, XF_HOW_EXPIRED, XF_HOW_EXPIRED, XF_HOW_UNFIT};
    struct model_task *t = find(m, h->task);
    bool present = is_present(m, h);
    enum xf_how how =
        h->kind == XF_TASK_RECHECK ? XF_HOW_DRAINED : hows[below(m, XF_ARRAY_LEN(hows))];
    enum xf_code rc = kit_give_back(&m->k, h, how);

    if (!present) {
        assert_true(rc == XF_E_STALE || rc == XF_OK);
        return;
    }
    assert_int_equal(rc, XF_OK);
    t->is_live = false;
    if (m->k.last.out.give_back.failed) { /* a single object was left, or it is an upload */
        m->dead++;
        if (t->kind == XF_TASK_BATCH) {
            m->count[XF_OUTCOME_FAILED]++;
        } else {
            settle_upload(m, h, XF_OUTCOME_FAILED);
        }
    }
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void requeue(struct model *m)
{
    struct xf_job_row row = kit_row(&m->k, m->job);
    uint64_t n = kit_retry(&m->k, m->job, 1000);

    assert_int_equal(row.retryable, m->count[XF_OUTCOME_FAILED] - m->dead);
    assert_in_range(n, row.retryable - min_u64(row.retryable, row.uploads_live), row.retryable);
    m->count[XF_OUTCOME_FAILED] -= n; /* fewer: some are being aborted still */
}

static void compare(struct model *m)
{
    struct xf_job_row row = kit_row(&m->k, m->job);
    uint64_t settled =
        row.n.copied + row.n.skipped + row.n.failed + row.n.vanished + row.n.archived;

    assert_int_equal(row.n.listed, m->count[0]);
    assert_int_equal(row.n.listed, settled + row.n.pending + row.n.in_flight);
    assert_int_equal(row.n.copied, m->count[XF_OUTCOME_COPIED]);
    assert_int_equal(row.n.failed, m->count[XF_OUTCOME_FAILED]);
    assert_int_equal(row.n.skipped, m->count[XF_OUTCOME_SKIPPED]);
    assert_int_equal(row.n.vanished, m->count[XF_OUTCOME_VANISHED]);
    assert_int_equal(row.n.archived, m->count[XF_OUTCOME_ARCHIVED]);
    kit_check(&m->k);
}

static void step(struct model *m)
{
    const struct held *any = m->n_held > 0 ? &m->held[below(m, (uint32_t)m->n_held)] : NULL;
    const struct held *late = m->n_held > 8 ? &m->held[m->n_held - 1 - below(m, 8)] : any;

    switch (below(m, 12)) {
    case 0: list_page(m); break;
    case 1:
    case 2:
    case 3: lease(m, XF_TASK_ALL); break;
    case 4:
        if (late != NULL) {
            give_back(m, late);
        }
        break;
    case 5:
        if (any != NULL) {
            work(m, any);
        }
        break;
    case 6:
        if (below(m, 10) == 0) {
            requeue(m);
        } else if (below(m, 10) == 0) {
            kit_reopen(&m->k);
        } else {
            xf_fakeclock_advance(&m->k.clock, 1000);
        }
        break;
    default:
        if (late != NULL) {
            work(m, late);
        }
        break;
    }
}

/* All that is leased is given back, all that is ready is done, until nothing is left. */
static void drain(struct model *m)
{
    char old[16];

    for (size_t i = 0; i < m->n_held; i++) {
        if (is_present(m, &m->held[i])) {
            give_back(m, &m->held[i]);
        }
    }
    cursor_of(m->page, old, sizeof(old));
    kit_last_page(&m->k, m->shard, old);
    for (;;) {
        struct held h;
        if (kit_lease(&m->k, m->job, 'z', XF_TASK_ALL, 1, &h) == 0) {
            break;
        }
        struct model_task *t = find(m, h.task);
        t->kind = h.kind;
        t->attempt = h.attempt;
        t->is_live = true;

        if (h.kind == XF_TASK_BATCH) {
            report(m, &h, XF_OUTCOME_COPIED, true);
        } else if (h.kind == XF_TASK_RECHECK) {
            report(m, &h, XF_OUTCOME_SKIPPED, true);
        } else {
            while (find(m, h.task)->is_live) {
                work_upload(m, &h);
            }
        }
    }
}

static void the_store_agrees_with_the_model(void **state)
{
    struct model *m = xf_xcalloc(1, sizeof(*m));

    (void)state; /* each round makes its own */
    for (uint64_t round = 0; round < ROUNDS; round++) {
        memset(m, 0, sizeof(*m));
        xf_rng_init(&m->rng, xf_test_seed() + round);
        kit_init(&m->k, NULL);
        kit_open(&m->k);
        m->job = kit_job(&m->k, "one", 1);
        m->shard = kit_shard(&m->k, m->job);
        for (int i = 0; i < STEPS; i++) {
            step(m);
            if (i % 50 == 0) {
                compare(m);
            }
        }
        drain(m);
        compare(m);
        struct xf_job_row row = kit_row(&m->k, m->job);
        assert_int_equal(row.n.pending + row.n.in_flight, 0);
        bool clean = row.n.failed + row.n.archived == 0;
        assert_int_equal(kit_finish(&m->k, m->job, XF_JOB_COMPLETED), clean ? XF_OK : XF_E_INVAL);
        if (!clean) {
            assert_int_equal(kit_finish(&m->k, m->job, XF_JOB_COMPLETED_WITH_FAILURES), XF_OK);
        }
        kit_check(&m->k);
        kit_fini(&m->k);
    }
    xf_xfree(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_store_agrees_with_the_model)};
    return xf_test_run("store_model", tests, NULL, NULL);
}
