/*
 * store_bench.c - rows a second through the store: pages in, leases out, checkpoints back.
 *
 * XF_BENCH_BATCHES: batches of 1,000 objects (default 300). Printed, compared by hand.
 */
#include "common/base/rng.h"
#include "coordinator/store.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { BATCHES_DEFAULT = 300, UNDER_WAY = 64, LEASE_TASKS = 8, HALVES = 2 };

struct lease {
    int64_t task;
    uint32_t attempt;
};

struct bench {
    struct xf_tmpdir *tmp;
    struct xf_loop *loop;
    struct xf_store *store;
    struct xf_store_port *port;
    struct xf_rng rng;
    int64_t job;
    int64_t shard;
    unsigned batches;
    unsigned under_way;
    struct lease *leases;
    unsigned n_leases;
};

static const unsigned char instance[XF_STORE_INSTANCE_LEN] = {1};

static void on_done(struct xf_store_op *op)
{
    struct bench *b = op->arg;

    if (op->rc != XF_OK) {
        fail_msg("%s: %s", xf_op_name(op->kind), op->err.msg);
    }
    b->under_way--;
    if (op->kind == XF_OP_JOB_CREATE) {
        b->job = op->out.job_create.job;
    } else if (op->kind == XF_OP_READ_RECOVER) {
        b->shard = op->out.read_recover.shards[0].id;
    } else if (op->kind == XF_OP_LEASE) {
        for (size_t i = 0; i < op->out.lease.n_tasks; i++) {
            const struct xf_lease_task *t = &op->out.lease.tasks[i];
            b->leases[b->n_leases++] = (struct lease){t->task, t->attempt};
        }
    }
}

static void wait_below(struct bench *b, unsigned n)
{
    while (b->under_way >= n) {
        xf_loop_turn(b->loop, 1000);
    }
}

static void submit(struct bench *b, struct xf_store_op *op)
{
    wait_below(b, UNDER_WAY);
    b->under_way++;
    if (!xf_store_submit(b->port, op)) {
        fail_msg("the queue is full");
    }
}

static void put_page(struct bench *b, unsigned no)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_PAGE_COMMIT, on_done, b);
    struct xf_store_batch *batch = xf_store_op_calloc(op, 1, sizeof(*batch));
    struct xf_manifest_enc e;
    struct xf_err err;
    struct xf_buf raw;
    char cursor[2][32];

    xf_manifest_enc_init(&e, 0);
    for (unsigned i = 0; i < XF_MANIFEST_MAX; i++) {
        char key[80];
        char etag[33];
        (void)snprintf(etag, /* fits */
                       sizeof(etag),
                       "%016llx%016llx",
                       (unsigned long long)xf_rng_u64(&b->rng),
                       (unsigned long long)xf_rng_u64(&b->rng));
        (void)snprintf(key, /* fits */
                       sizeof(key),
                       "logs/2024/%02u/%02u/host-%03u/part-%08u.gz",
                       no % 12 + 1,
                       no % 28 + 1,
                       i % 500,
                       no * XF_MANIFEST_MAX + i);
        const struct xf_object o = {.key = xf_str_c(key),
                                    .size = xf_rng_below(&b->rng, 1000000),
                                    .etag = xf_str_c(etag),
                                    .mtime_ms = 1700000000000 + (int64_t)i * 1000,
                                    .storage_class = XF_STR_LIT("STANDARD")};
        assert_int_equal(xf_manifest_add(&e, &o, &err), XF_OK);
    }
    xf_buf_init(&raw, 0);
    xf_manifest_finish(&e, &raw);
    batch->manifest = xf_store_op_dup(op, xf_buf_view(&raw));
    xf_buf_fini(&raw);
    xf_manifest_enc_fini(&e);
    for (unsigned i = 0; i < 2; i++) {
        cursor[i][0] = '\0';
        if (no + i > 0) {
            (void)snprintf(cursor[i], sizeof(cursor[i]), "c%08u", no + i); /* fits */
        }
    }
    op->in.page_commit =
        (struct xf_in_page_commit){.shard = b->shard,
                                   .cursor_old = xf_store_op_dup(op, xf_str_c(cursor[0])),
                                   .cursor_new = xf_store_op_dup(op, xf_str_c(cursor[1])),
                                   .keys_returned = XF_MANIFEST_MAX,
                                   .list_requests = 1,
                                   .batches = batch,
                                   .n_batches = 1};
    submit(b, op);
}

static void lease(struct bench *b)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_LEASE, on_done, b);
    struct xf_lease_ask *ask = xf_store_op_calloc(op, 1, sizeof(*ask));

    *ask = (struct xf_lease_ask){b->job, XF_TASK_ALL, LEASE_TASKS, UINT64_MAX, UINT64_MAX};
    op->in.lease = (struct xf_in_lease){
        .agent = XF_STR_LIT("agent"), .instance = instance, .asks = ask, .n_asks = 1};
    submit(b, op);
}

static void checkpoint(struct bench *b, const struct lease *l, uint32_t from, uint32_t to)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_CHECKPOINT, on_done, b);
    struct xf_result_set set;
    struct xf_buf raw;

    xf_result_set_init(&set, XF_MANIFEST_MAX);
    for (uint32_t i = from; i < to; i++) {
        char etag[33];
        (void)snprintf(etag, /* fits */
                       sizeof(etag),
                       "%016llx%016llx",
                       (unsigned long long)xf_rng_u64(&b->rng),
                       (unsigned long long)xf_rng_u64(&b->rng));
        const struct xf_result r = {.outcome = XF_OUTCOME_COPIED,
                                    .level = XF_LEVEL_ETAG,
                                    .mode = XF_MODE_SERVER,
                                    .attempts = 1,
                                    .size_bytes = 1000,
                                    .etag = xf_str_c(etag)};
        (void)xf_result_set_put(&set, i, &r); /* true: it is empty */
    }
    xf_buf_init(&raw, 0);
    xf_result_set_encode(&set, &raw);
    op->in.checkpoint = (struct xf_in_checkpoint){.fence = {l->task, l->attempt, instance},
                                                  .delta = xf_store_op_dup(op, xf_buf_view(&raw)),
                                                  .is_done = to == XF_MANIFEST_MAX};
    xf_buf_fini(&raw);
    xf_result_set_fini(&set);
    submit(b, op);
}

static void tell(const struct bench *b, const char *what, uint64_t n, int64_t from_ns)
{
    double s = (double)(xf_clock_mono_ns() - from_ns) / 1e9;
    struct rusage use;
    struct xf_store_stats stats;

    assert_int_equal(getrusage(RUSAGE_SELF, &use), 0);
    xf_store_stats(b->store, &stats);
    printf(
        "%-24s %8.0f a second (%llu in %.2f s, %llu commits so far, file %llu MiB, log %llu MiB, "
        "peak memory %ld MiB)\n",
        what,
        (double)n / s,
        (unsigned long long)n,
        s,
        (unsigned long long)stats.commits,
        (unsigned long long)(stats.bytes >> 20),
        (unsigned long long)(stats.wal_bytes >> 20),
        use.ru_maxrss / 1024);
}

static void open_all(struct bench *b)
{
    const char *n = getenv("XF_BENCH_BATCHES");
    struct xf_err err;

    b->batches = n != NULL ? (unsigned)strtoul(n, NULL, 10) : BATCHES_DEFAULT;
    b->leases = xf_xcalloc(b->batches + LEASE_TASKS, sizeof(*b->leases));
    b->tmp = xf_tmpdir_new();
    xf_rng_init(&b->rng, xf_test_seed());
    const struct xf_store_opts opts = {.dir = xf_tmpdir_file(b->tmp, "data")};
    assert_int_equal(xf_loop_new(NULL, &b->loop, &err), XF_OK);
    assert_int_equal(xf_store_open(&opts, &b->store, &err), XF_OK);
    assert_int_equal(xf_store_port_open(b->store, b->loop, 0, &b->port, &err), XF_OK);
    struct xf_store_op *op = xf_store_op_new(XF_OP_JOB_CREATE, on_done, b);
    op->in.job_create =
        (struct xf_in_job_create){.submit_key = XF_STR_LIT("bench"),
                                  .public_id = XF_STR_LIT("j-bench"),
                                  .spec = XF_STR_LIT("format = 1\n"),
                                  .n_sources = 1,
                                  .shard_lo = xf_store_op_calloc(op, 1, sizeof(struct xf_str))};
    submit(b, op);
    wait_below(b, 1);
    op = xf_store_op_new(XF_OP_JOB_STATE, on_done, b);
    op->in.job_state =
        (struct xf_in_job_state){.job = b->job, .from = XF_TO(XF_JOB_QUEUED), .to = XF_JOB_RUNNING};
    submit(b, op);
    submit(b, xf_store_op_new(XF_OP_READ_RECOVER, on_done, b));
    wait_below(b, 1);
}

static void rates(void **state)
{
    struct bench *b = xf_xcalloc(1, sizeof(*b));
    int64_t from;

    (void)state; /* it makes its own */
    open_all(b);
    from = xf_clock_mono_ns();
    for (unsigned i = 0; i < b->batches; i++) {
        put_page(b, i);
    }
    wait_below(b, 1);
    tell(b, "pages of 1,000 objects", b->batches, from);
    from = xf_clock_mono_ns();
    for (unsigned i = 0; i < b->batches / LEASE_TASKS + 1; i++) {
        lease(b);
    }
    wait_below(b, 1);
    assert_int_equal(b->n_leases, b->batches);
    tell(b, "batches leased", b->batches, from);
    from = xf_clock_mono_ns();
    for (uint32_t half = 0; half < HALVES; half++) {
        for (unsigned i = 0; i < b->n_leases; i++) {
            checkpoint(b, &b->leases[i], half * 500, half * 500 + 500);
        }
    }
    wait_below(b, 1);
    tell(b, "checkpoints of 500", (uint64_t)b->batches * HALVES, from);
    from = xf_clock_mono_ns();
    for (unsigned i = 0; i < 1000; i++) {
        struct xf_store_op *op = xf_store_op_new(XF_OP_READ_JOB, on_done, b);
        op->in.read_job.job = b->job;
        submit(b, op);
    }
    wait_below(b, 1);
    tell(b, "status reads", 1000, from);
    xf_store_port_close(b->port);
    xf_store_close(b->store);
    xf_loop_free(b->loop);
    xf_tmpdir_free(b->tmp);
    xf_xfree(b->leases);
    xf_xfree(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(rates)};
    return xf_test_run("store_bench", tests, NULL, NULL);
}
