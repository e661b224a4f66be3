/* store_kit.c - see the header. */
#include "tests/unit/coordinator/store_kit.h"

#include "tests/lib/test.h"

#include <stdio.h>

enum { OP_DEADLINE_MS = 60000, PART_SIZE = 10 };

void kit_init(struct kit *k, const char *dir)
{
    memset(k, 0, sizeof(*k));
    if (dir == NULL) {
        k->tmp = xf_tmpdir_new();
        dir = xf_tmpdir_file(k->tmp, "data");
    }
    k->dir = xf_xstrdup(dir);
    xf_fakeclock_init(&k->clock);
    k->opts.dir = k->dir;
    k->opts.clock = &k->clock.clock;
    k->opts.max_bytes = UINT64_MAX;
}

enum xf_code kit_try_open(struct kit *k, struct xf_err *err)
{
    struct xf_err other;

    XF_TRY(xf_store_open(&k->opts, &k->store, err));
    assert_int_equal(xf_loop_new(NULL, &k->loop, &other), XF_OK);
    assert_int_equal(xf_store_port_open(k->store, k->loop, 0, &k->port, &other), XF_OK);
    return XF_OK;
}

void kit_open(struct kit *k)
{
    struct xf_err err;

    if (kit_try_open(k, &err) != XF_OK) {
        fail_msg("cannot open the store: %s", err.msg);
    }
}

void kit_forget(struct kit *k)
{
    xf_arena_fini(&k->last.in_arena);
    xf_arena_fini(&k->last.out_arena);
}

void kit_close(struct kit *k)
{
    kit_forget(k);
    xf_store_port_close(k->port);
    xf_store_close(k->store);
    xf_loop_free(k->loop);
    k->port = NULL;
    k->store = NULL;
    k->loop = NULL;
}

void kit_reopen(struct kit *k)
{
    kit_close(k);
    kit_open(k);
}

void kit_fini(struct kit *k)
{
    kit_close(k);
    xf_xfree(k->dir);
    xf_tmpdir_free(k->tmp);
}

/* Keeps what came out: the operation itself is freed after this. */
static void on_done(struct xf_store_op *op)
{
    struct kit *k = op->arg;

    assert_false(k->is_done);
    kit_forget(k);
    k->last = *op;
    memset(&op->in_arena, 0, sizeof(op->in_arena));
    memset(&op->out_arena, 0, sizeof(op->out_arena));
    k->is_done = true;
}

struct xf_store_op *kit_op(enum xf_op_kind kind)
{
    return xf_store_op_new(kind, on_done, NULL);
}

enum xf_code kit_do(struct kit *k, struct xf_store_op *op)
{
    const struct xf_clock *real = xf_clock_real();
    int64_t until = xf_clock_mono_ms(real) + OP_DEADLINE_MS;

    op->arg = k;
    k->is_done = false;
    if (!xf_store_submit(k->port, op)) {
        fail_msg("the store takes no operation");
    }
    assert_false(k->is_done); /* never inside the submit */
    while (!k->is_done && xf_clock_mono_ms(real) < until) {
        xf_loop_turn(k->loop, 100);
    }
    if (!k->is_done) {
        fail_msg("an operation did not end");
    }
    return k->last.rc;
}

void kit_must(struct kit *k, struct xf_store_op *op)
{
    if (kit_do(k, op) != XF_OK) {
        fail_msg("%s: %s", xf_op_name(k->last.kind), k->last.err.msg);
    }
}

int64_t kit_job(struct kit *k, const char *key, uint32_t n_sources)
{
    struct xf_store_op *op = kit_op(XF_OP_JOB_CREATE);
    struct xf_buf id;
    struct xf_str *lo = xf_store_op_calloc(op, n_sources, sizeof(*lo));

    xf_buf_init(&id, 0);
    xf_buf_putf(&id, "j-%s", key);
    op->in.job_create = (struct xf_in_job_create){.submit_key = xf_str_c(key),
                                                  .name = XF_STR_LIT("a job"),
                                                  .spec = XF_STR_LIT("format = 1\n"),
                                                  .priority = 5,
                                                  .n_sources = n_sources,
                                                  .shard_lo = lo};
    op->in.job_create.public_id = xf_store_op_dup(op, xf_buf_view(&id));
    xf_buf_fini(&id);
    kit_must(k, op);
    int64_t job = k->last.out.job_create.job;
    op = kit_op(XF_OP_JOB_STATE);
    op->in.job_state =
        (struct xf_in_job_state){.job = job,
                                 .from = XF_TO(XF_JOB_QUEUED) | XF_TO(XF_JOB_RUNNING),
                                 .to = XF_JOB_RUNNING,
                                 .set_phase = true,
                                 .phase = XF_STR_LIT("copy")};
    kit_must(k, op);
    return job;
}

int64_t kit_shard(struct kit *k, int64_t job)
{
    kit_must(k, kit_op(XF_OP_READ_RECOVER));
    const struct xf_out_read_recover *r = &k->last.out.read_recover;
    for (size_t i = 0; i < r->n_shards; i++) {
        if (r->shards[i].job == job) {
            return r->shards[i].id;
        }
    }
    fail_msg("job %lld has no open shard", (long long)job);
    return 0;
}

static void add_object(struct xf_manifest_enc *e, const char *stem, uint32_t i)
{
    struct xf_err err;
    char key[64];

    (void)snprintf(key, sizeof(key), "%s-%05u", stem, i); /* short */
    const struct xf_object o = {.key = xf_str_c(key),
                                .size = 10,
                                .etag = XF_STR_LIT("d41d8cd98f00b204e9800998ecf8427e"),
                                .mtime_ms = 1000 + i,
                                .storage_class = XF_STR_LIT("STANDARD")};
    assert_int_equal(xf_manifest_add(e, &o, &err), XF_OK);
}

struct xf_store_op *kit_page_op(int64_t shard,
                                const char *cursor_old,
                                const char *cursor_new,
                                uint32_t n_small,
                                uint32_t n_large)
{
    struct xf_store_op *op = kit_op(XF_OP_PAGE_COMMIT);
    struct xf_store_batch *batch = xf_store_op_calloc(op, 1, sizeof(*batch));
    struct xf_object *large = xf_store_op_calloc(op, n_large, sizeof(*large));
    struct xf_manifest_enc e;
    struct xf_buf raw;

    xf_manifest_enc_init(&e, 0);
    xf_buf_init(&raw, 0);
    for (uint32_t i = 0; i < n_small; i++) {
        add_object(&e, cursor_new, i);
    }
    xf_manifest_finish(&e, &raw);
    batch->manifest = xf_store_op_dup(op, xf_buf_view(&raw));
    xf_manifest_enc_fini(&e);
    for (uint32_t i = 0; i < n_large; i++) {
        xf_buf_reset(&raw);
        xf_buf_putf(&raw, "%s-large-%05u", cursor_new, i);
        large[i] = (struct xf_object){.key = xf_store_op_dup(op, xf_buf_view(&raw)),
                                      .size = 100,
                                      .etag = XF_STR_LIT("d41d8cd98f00b204e9800998ecf8427e-7"),
                                      .storage_class = XF_STR_LIT("STANDARD")};
    }
    xf_buf_fini(&raw);
    op->in.page_commit =
        (struct xf_in_page_commit){.shard = shard,
                                   .cursor_old = xf_store_op_dup(op, xf_str_c(cursor_old)),
                                   .cursor_new = xf_store_op_dup(op, xf_str_c(cursor_new)),
                                   .keys_returned = n_small + n_large,
                                   .list_requests = 1,
                                   .batches = batch,
                                   .n_batches = n_small > 0 ? 1 : 0,
                                   .uploads = large,
                                   .n_uploads = n_large};
    return op;
}

enum xf_code kit_page(struct kit *k,
                      int64_t shard,
                      const char *cursor_old,
                      const char *cursor_new,
                      uint32_t n_small,
                      uint32_t n_large)
{
    return kit_do(k, kit_page_op(shard, cursor_old, cursor_new, n_small, n_large));
}

void kit_last_page(struct kit *k, int64_t shard, const char *cursor)
{
    struct xf_store_op *op = kit_page_op(shard, cursor, cursor, 0, 0);

    op->in.page_commit.is_last = true;
    kit_must(k, op);
}

struct xf_store_op *kit_lease_op(int64_t job, char instance, uint32_t kinds, uint32_t max)
{
    struct xf_store_op *op = kit_op(XF_OP_LEASE);
    char agent[] = {'a', '-', instance, '\0'};
    struct xf_lease_ask *ask = xf_store_op_calloc(op, 1, sizeof(*ask));
    unsigned char *who = xf_store_op_calloc(op, XF_STORE_INSTANCE_LEN, 1);

    memset(who, instance, XF_STORE_INSTANCE_LEN);
    *ask = (struct xf_lease_ask){.job = job,
                                 .kinds = kinds,
                                 .max_tasks = max,
                                 .max_objects = UINT64_MAX,
                                 .max_bytes = UINT64_MAX};
    op->in.lease = (struct xf_in_lease){
        .agent = xf_store_op_dup(op, xf_str_c(agent)), .instance = who, .asks = ask, .n_asks = 1};
    return op;
}

size_t
kit_lease(struct kit *k, int64_t job, char instance, uint32_t kinds, uint32_t max, struct held *out)
{
    kit_must(k, kit_lease_op(job, instance, kinds, max));
    const struct xf_out_lease *l = &k->last.out.lease;
    assert_true(l->n_tasks <= max);
    for (size_t i = 0; i < l->n_tasks; i++) {
        const struct xf_lease_task *t = &l->tasks[i];
        out[i] = (struct held){.task = t->task,
                               .upload = t->upload != NULL ? t->upload->id : 0,
                               .kind = t->kind,
                               .attempt = t->attempt,
                               .n_objects = t->n_objects,
                               .first_part = t->first_part,
                               .last_part = t->last_part,
                               .n_parts = (uint32_t)t->n_parts};
        memset(out[i].instance, instance, XF_STORE_INSTANCE_LEN);
    }
    return l->n_tasks;
}

struct held kit_lease_one(struct kit *k, int64_t job, char instance, enum xf_task_kind kind)
{
    struct held h = {.task = 0};

    assert_int_equal(kit_lease(k, job, instance, XF_TASK_BIT(kind), 1, &h), 1);
    assert_int_equal(h.kind, kind);
    return h;
}

struct xf_store_fence kit_fence(const struct held *h)
{
    return (struct xf_store_fence){h->task, h->attempt, h->instance};
}

/* The fence with an instance that lives as long as the operation. */
static struct xf_store_fence own_fence(struct xf_store_op *op, const struct held *h)
{
    struct xf_store_fence f = kit_fence(h);

    f.instance =
        (const unsigned char *)xf_store_op_dup(op, xf_str_n(h->instance, XF_STORE_INSTANCE_LEN))
            .ptr;
    return f;
}

static struct xf_result result_of(enum xf_outcome outcome)
{
    struct xf_result r = {.outcome = outcome, .attempts = 1};

    if (outcome == XF_OUTCOME_COPIED) {
        r.level = XF_LEVEL_ETAG;
        r.mode = XF_MODE_SERVER;
        r.size_bytes = 10;
        r.etag = XF_STR_LIT("d41d8cd98f00b204e9800998ecf8427e");
    } else if (outcome == XF_OUTCOME_SKIPPED) {
        r.skip = XF_SKIP_SAME;
    } else if (outcome == XF_OUTCOME_FAILED) {
        r.code = XF_E_SERVER;
        r.flags = XF_RESULT_RETRYABLE;
        r.http_status = 503;
        r.s3_code = XF_STR_LIT("SlowDown");
        r.message = XF_STR_LIT("the service asks for less");
    }
    return r;
}

struct xf_store_op *kit_checkpoint_op(
    const struct held *h, uint32_t from, uint32_t to, enum xf_outcome outcome, bool is_done)
{
    struct xf_store_op *op = kit_op(XF_OP_CHECKPOINT);
    struct xf_result r = result_of(outcome);
    struct xf_result_set set;
    struct xf_buf raw;

    xf_result_set_init(&set, h->n_objects);
    for (uint32_t i = from; i < to; i++) {
        assert_true(xf_result_set_put(&set, i, &r));
    }
    xf_buf_init(&raw, 0);
    xf_result_set_encode(&set, &raw);
    op->in.checkpoint = (struct xf_in_checkpoint){.fence = own_fence(op, h),
                                                  .delta = xf_store_op_dup(op, xf_buf_view(&raw)),
                                                  .is_done = is_done};
    xf_buf_fini(&raw);
    xf_result_set_fini(&set);
    return op;
}

enum xf_code kit_checkpoint(struct kit *k,
                            const struct held *h,
                            uint32_t from,
                            uint32_t to,
                            enum xf_outcome outcome,
                            bool is_done)
{
    return kit_do(k, kit_checkpoint_op(h, from, to, outcome, is_done));
}

struct xf_store_op *kit_parts_op(const struct held *h, uint32_t from, uint32_t to, bool is_done)
{
    struct xf_store_op *op = kit_op(XF_OP_CHECKPOINT);
    struct xf_store_part *parts = xf_store_op_calloc(op, to - from, sizeof(*parts));

    for (uint32_t i = from; i < to; i++) {
        parts[i - from] =
            (struct xf_store_part){.part_no = i,
                                   .etag = XF_STR_LIT("9e107d9d372bb6826bd81d3542a419d6"),
                                   .through_bytes = 3};
    }
    op->in.checkpoint = (struct xf_in_checkpoint){
        .fence = own_fence(op, h), .parts = parts, .n_parts = to - from, .is_done = is_done};
    return op;
}

enum xf_code
kit_parts(struct kit *k, const struct held *h, uint32_t from, uint32_t to, bool is_done)
{
    return kit_do(k, kit_parts_op(h, from, to, is_done));
}

struct xf_store_op *kit_give_back_op(const struct held *h, enum xf_how how)
{
    struct xf_store_op *op = kit_op(XF_OP_GIVE_BACK);

    op->in.give_back = (struct xf_in_give_back){.fence = own_fence(op, h), .how = how};
    return op;
}

enum xf_code kit_give_back(struct kit *k, const struct held *h, enum xf_how how)
{
    return kit_do(k, kit_give_back_op(h, how));
}

struct xf_store_op *kit_opened_op(const struct held *h, const char *upload_id, uint32_t n_parts)
{
    struct xf_store_op *op = kit_op(XF_OP_UPLOAD_OPENED);

    op->in.upload_opened =
        (struct xf_in_upload_opened){.fence = own_fence(op, h),
                                     .upload_id = xf_store_op_dup(op, xf_str_c(upload_id)),
                                     .size = (uint64_t)n_parts * PART_SIZE,
                                     .part_size = PART_SIZE,
                                     .n_parts = n_parts};
    return op;
}

enum xf_code
kit_opened(struct kit *k, const struct held *h, const char *upload_id, uint32_t n_parts)
{
    return kit_do(k, kit_opened_op(h, upload_id, n_parts));
}

struct xf_store_op *kit_end_op(const struct held *h, enum xf_outcome outcome, bool left_open)
{
    struct xf_store_op *op = kit_op(XF_OP_UPLOAD_END);

    op->in.upload_end = (struct xf_in_upload_end){
        .fence = own_fence(op, h), .result = result_of(outcome), .left_open = left_open};
    return op;
}

enum xf_code kit_end(struct kit *k, const struct held *h, enum xf_outcome outcome, bool left_open)
{
    return kit_do(k, kit_end_op(h, outcome, left_open));
}

enum xf_code kit_abort_done(struct kit *k, const struct held *h)
{
    struct xf_store_op *op = kit_op(XF_OP_ABORT_DONE);

    op->in.abort_done = (struct xf_in_abort_done){.fence = own_fence(op, h)};
    return kit_do(k, op);
}

enum xf_code kit_stop(struct kit *k, int64_t job)
{
    struct xf_store_op *op = kit_op(XF_OP_JOB_STOP);

    op->in.job_stop = (struct xf_in_job_stop){
        .job = job, .end = XF_JOB_CANCELLED, .reason = XF_STR_LIT("cancelled")};
    return kit_do(k, op);
}

enum xf_code kit_finish(struct kit *k, int64_t job, enum xf_job_state end)
{
    struct xf_store_op *op = kit_op(XF_OP_JOB_FINISH);

    op->in.job_finish = (struct xf_in_job_finish){.job = job, .end = end};
    return kit_do(k, op);
}

uint64_t kit_retry(struct kit *k, int64_t job, uint32_t max_attempts)
{
    uint64_t n = 0;
    int64_t pass = 0;

    for (;;) {
        struct xf_store_op *op = kit_op(XF_OP_RETRY);
        op->in.retry = (struct xf_in_retry){
            .job = job, .pass = pass, .max_attempts = max_attempts, .limit = 100};
        kit_must(k, op);
        n += k->last.out.retry.n_objects;
        pass = k->last.out.retry.pass;
        if (!k->last.out.retry.more) {
            return n;
        }
    }
}

struct xf_job_row kit_row(struct kit *k, int64_t job)
{
    struct xf_store_op *op = kit_op(XF_OP_READ_JOB);

    op->in.read_job.job = job;
    kit_must(k, op);
    return k->last.out.read_job.row;
}

void kit_check(struct kit *k)
{
    struct xf_err err;
    struct xf_buf report;
    uint64_t n_wrong = 0;

    xf_buf_init(&report, 0);
    if (xf_store_check(k->dir, true, &report, &n_wrong, &err) != XF_OK) {
        fail_msg("the store cannot be checked: %s", err.msg);
    }
    if (n_wrong != 0) {
        fail_msg("%llu findings:\n%s", (unsigned long long)n_wrong, report.ptr);
    }
    xf_buf_fini(&report);
}

int kit_set_up(void **state)
{
    struct kit *k = xf_xcalloc(1, sizeof(*k));

    kit_init(k, NULL);
    kit_open(k);
    *state = k;
    return 0;
}

int kit_tear_down(void **state)
{
    struct kit *k = *state;

    kit_check(k);
    kit_fini(k);
    xf_xfree(k);
    return 0;
}
