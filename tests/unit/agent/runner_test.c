/* runner_test.c - what a runner asks for and says of its jobs, to a coordinator that the test
 * plays. */
#include "agent/runner.h"
#include "proto/codec.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"

enum { CALLS_MAX = 64, AGAIN_MS = 10000, DEADLINE_MS = 20000 };

/* Keys that nobody has: a probe of it fails at once. */
#define SPEC                                                                \
    "[source]\nurl = \"s3://a/\"\nendpoint = \"http://127.0.0.1:9\"\n"      \
    "access_key_env = \"XF_NO_SUCH\"\nsecret_key_env = \"XF_NO_SUCH\"\n"    \
    "[destination]\nurl = \"s3://b/\"\nendpoint = \"http://127.0.0.1:9\"\n" \
    "access_key_env = \"XF_NO_SUCH\"\nsecret_key_env = \"XF_NO_SUCH\"\n"

struct call {
    struct xf_buf bytes;
    xf_bus_done_fn *done;
    void *arg;
    bool open;
};

struct fx {
    struct xf_fakeclock clock;
    struct xf_loop *loop;
    struct xf_runner *runner;
    struct call calls[CALLS_MAX]; /* by id - 1, in order */
    size_t n_calls;
    struct xf_arena arena; /* of decoded requests */
};

static uint64_t
fake_call(void *bus, struct xf_str bytes, int64_t deadline_ms, xf_bus_done_fn *done, void *arg)
{
    struct fx *f = bus;

    (void)deadline_ms; /* the clock moves only when the test says so */
    assert_true(f->n_calls < CALLS_MAX);
    struct call *c = &f->calls[f->n_calls++];
    xf_buf_init(&c->bytes, 0);
    xf_buf_put(&c->bytes, bytes);
    c->done = done;
    c->arg = arg;
    c->open = true;
    return f->n_calls;
}

static void fake_cancel(void *bus, uint64_t id)
{
    struct fx *f = bus;

    f->calls[id - 1].open = false;
}

static void fake_hang_up(void *bus)
{
    (void)bus; /* nothing to hang up */
}

static void on_refused(void *arg, const struct xf_err *err)
{
    (void)arg;
    fail_msg("refused: %s", err->msg);
}

static void on_drained(void *arg)
{
    (void)arg; /* no test drains */
}

/* The open request of that kind, its body in *m (of the kind's struct); NULL: none. */
static struct call *find_call(struct fx *f, enum xf_kind kind, void *m)
{
    struct xf_err err;

    for (size_t i = f->n_calls; i > 0; i--) {
        struct call *c = &f->calls[i - 1];
        struct xf_msg_request r;
        assert_int_equal(xf_msg_request_decode(xf_buf_view(&c->bytes), &f->arena, &r, &err), XF_OK);
        if (c->open && r.kind == (uint32_t)kind) {
            const struct xf_msg_desc *d = xf_kind_find(kind)->request();
            assert_int_equal(xf_codec_decode(d, r.body, &f->arena, m, &err), XF_OK);
            return c;
        }
    }
    return NULL;
}

/* Turn the loop until it is asked. */
static struct call *wait_call(struct fx *f, enum xf_kind kind, void *m)
{
    int64_t by = xf_clock_mono_ms(xf_clock_real()) + DEADLINE_MS;
    struct call *c = NULL;

    while ((c = find_call(f, kind, m)) == NULL) {
        assert_true(xf_clock_mono_ms(xf_clock_real()) < by);
        xf_loop_turn(f->loop, 20);
    }
    return c;
}

static void answer(struct call *c, enum xf_kind kind, enum xf_code code, const void *m)
{
    XF_AUTO_BUF body = {0};
    XF_AUTO_BUF bytes = {0};
    struct xf_err err;

    xf_buf_init(&body, 0);
    xf_buf_init(&bytes, 0);
    if (code == XF_OK) {
        assert_int_equal(xf_codec_encode(xf_kind_find(kind)->reply(), m, &body, &err), XF_OK);
    }
    struct xf_msg_reply r = {.ver = XF_PROTO_VERSION,
                             .kind = kind,
                             .code = code,
                             .text = code == XF_OK ? XF_STR_EMPTY : XF_STR_LIT("no"),
                             .body = xf_buf_view(&body)};
    assert_int_equal(xf_msg_reply_encode(&r, &bytes, &err), XF_OK);
    c->open = false;
    c->done(c->arg, XF_OK, xf_buf_view(&bytes));
}

/* A runner with a session. */
static void open_fx(struct fx *f, unsigned max_tasks)
{
    struct xf_err err;
    struct xf_msg_hello hello;
    const struct xf_msg_hello_reply reply = {
        .session = 42, .lease_ttl_ms = 15000, .margin_ms = 3000, .beat_ms = 2000, .poll_ms = 20000};

    memset(f, 0, sizeof(*f));
    xf_fakeclock_init(&f->clock);
    assert_int_equal(xf_loop_new(&f->clock.clock, &f->loop, &err), XF_OK);
    const struct xf_runner_opts o = {.loop = f->loop,
                                     .bus = {fake_call, fake_cancel, fake_hang_up, f},
                                     .agent_id = XF_STR_LIT("a1"),
                                     .instance = XF_STR_LIT("0123456789abcdef"),
                                     .version = XF_STR_LIT("1"),
                                     .lanes = 1,
                                     .pool_bytes = (size_t)16 << 20,
                                     .max_tasks = max_tasks,
                                     .seed = 1,
                                     .on_refused = on_refused,
                                     .on_drained = on_drained,
                                     .arg = f};
    assert_int_equal(xf_runner_new(&o, &f->runner, &err), XF_OK);
    answer(wait_call(f, XF_KIND_HELLO, &hello), XF_KIND_HELLO, XF_OK, &reply);
}

static void close_fx(struct fx *f)
{
    xf_runner_free(f->runner);
    xf_loop_free(f->loop);
    for (size_t i = 0; i < f->n_calls; i++) {
        xf_buf_fini(&f->calls[i].bytes);
    }
    xf_arena_fini(&f->arena);
}

static void pass(struct fx *f, int64_t ms)
{
    xf_fakeclock_advance(&f->clock, ms);
    xf_loop_turn(f->loop, 0);
}

/* Answer the lease with a batch of one object of job j-1. */
static void give_batch(struct fx *f)
{
    struct xf_manifest_enc enc;
    struct xf_msg_lease lease;
    const struct xf_object o = {.key = XF_STR_LIT("k"), .size = 1};
    XF_AUTO_BUF bytes = {0};
    struct xf_err err;

    xf_buf_init(&bytes, XF_MANIFEST_BYTES_MAX);
    xf_manifest_enc_init(&enc, 0);
    assert_int_equal(xf_manifest_add(&enc, &o, &err), XF_OK);
    xf_manifest_finish(&enc, &bytes);
    xf_manifest_enc_fini(&enc);
    struct xf_msg_task task = {.task = 7,
                               .attempt = 1,
                               .job = XF_STR_LIT("j-1"),
                               .kind = XF_TASK_BATCH,
                               .manifest = xf_buf_view(&bytes)};
    const struct xf_msg_lease_reply reply = {.tasks = &task, .n_tasks = 1};
    answer(wait_call(f, XF_KIND_LEASE, &lease), XF_KIND_LEASE, XF_OK, &reply);
}

/* The job is asked for; answered with this text. */
static void give_spec(struct fx *f, const char *spec)
{
    struct xf_msg_job m;
    const struct xf_msg_job_reply reply = {.job = XF_STR_LIT("j-1"), .spec = xf_str_c(spec)};

    answer(wait_call(f, XF_KIND_JOB, &m), XF_KIND_JOB, XF_OK, &reply);
}

/* The runner says that it cannot work for the job, and gives its batch back. */
static void must_be_unfit(struct fx *f, enum xf_code code)
{
    const struct xf_msg_empty empty = {0};
    struct xf_msg_fit fit;
    struct xf_msg_beat beat;

    answer(wait_call(f, XF_KIND_FIT, &fit), XF_KIND_FIT, XF_OK, &empty);
    assert_false(fit.ok);
    assert_int_equal(fit.code, code);
    pass(f, 2000);
    struct call *c = wait_call(f, XF_KIND_BEAT, &beat);
    assert_int_equal(beat.n_items, 1);
    assert_int_equal(beat.items[0].kind, XF_ITEM_GIVE_BACK);
    assert_int_equal(beat.items[0].how, XF_HOW_UNFIT);
    struct xf_msg_ack ack = {.task = 7, .attempt = 1, .code = XF_OK};
    const struct xf_msg_beat_reply reply = {.acks = &ack, .n_acks = 1};
    answer(c, XF_KIND_BEAT, XF_OK, &reply);
}

static size_t n_jobs(const struct fx *f)
{
    struct xf_runner_stats s;

    xf_runner_stats(f->runner, &s);
    return s.jobs;
}

static void no_more_tasks_are_asked_for_than_a_reply_holds(void **state)
{
    (void)state;
    struct fx f;
    struct xf_msg_lease lease;

    open_fx(&f, 1000);
    (void)wait_call(&f, XF_KIND_LEASE, &lease);
    assert_int_equal(lease.free_tasks, XF_TASKS_MAX);
    close_fx(&f);
}

static void a_job_whose_text_is_not_understood_is_asked_for_again(void **state)
{
    (void)state;
    struct fx f;
    struct xf_msg_job m;

    open_fx(&f, 0);
    give_batch(&f);
    give_spec(&f, "[source]\nnewer = true\n");
    must_be_unfit(&f, XF_E_CONFIG);
    assert_null(find_call(&f, XF_KIND_JOB, &m));
    pass(&f, AGAIN_MS);
    assert_non_null(wait_call(&f, XF_KIND_JOB, &m));
    close_fx(&f);
}

static void a_job_that_has_ended_is_not_probed_for_ever(void **state)
{
    (void)state;
    struct fx f;
    struct xf_msg_job m;

    open_fx(&f, 0);
    give_batch(&f);
    give_spec(&f, SPEC);
    must_be_unfit(&f, XF_E_CREDS);
    pass(&f, AGAIN_MS);
    answer(wait_call(&f, XF_KIND_JOB, &m), XF_KIND_JOB, XF_E_NOT_FOUND, NULL);
    assert_int_equal(n_jobs(&f), 0);
    close_fx(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_more_tasks_are_asked_for_than_a_reply_holds),
        cmocka_unit_test(a_job_whose_text_is_not_understood_is_asked_for_again),
        cmocka_unit_test(a_job_that_has_ended_is_not_probed_for_ever),
    };

    return xf_test_run("runner", tests, NULL, NULL);
}
