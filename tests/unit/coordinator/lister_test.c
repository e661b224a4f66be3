/*
 * lister_test.c - listings of tests/s3d into a real store: complete, cut, repeating, misbehaving.
 */
#include "coordinator/lister.h"
#include "tests/lib/httpget.h"
#include "tests/lib/proc.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEADLINE_MS = 60000 };

struct fx {
    struct kit kit;
    struct xf_proc *s3d;
    char url[64];
    char *spec;
    struct xf_lister *lister;
    int64_t job;
    bool is_done;
    bool is_failed;
    bool is_probed;
    struct xf_err err;
    struct xf_err wait;
    size_t n_tasks;
    uint32_t requests;
};

/* ---- events ---- */

static void on_page(void *arg, int64_t job, size_t n_tasks)
{
    struct fx *fx = arg;
    assert_int_equal(job, fx->job);
    fx->n_tasks += n_tasks;
}

static void on_done(void *arg, int64_t job, int64_t shard)
{
    (void)job;
    (void)shard;
    ((struct fx *)arg)->is_done = true;
}

static void on_failed(void *arg, int64_t job, int64_t shard, const struct xf_err *err)
{
    struct fx *fx = arg;
    (void)job;
    (void)shard;
    fx->is_failed = true;
    fx->err = *err;
}

static void on_wait(void *arg, int64_t job, const struct xf_err *err)
{
    (void)job;
    ((struct fx *)arg)->wait = *err;
}

static void on_probe(void *arg, void *cookie, const struct xf_probe_result *res)
{
    struct fx *fx = arg;
    assert_ptr_equal(cookie, fx);
    fx->err = res->err;
    fx->is_probed = true;
}

static const struct xf_lister_events events = {.on_page = on_page,
                                               .on_done = on_done,
                                               .on_failed = on_failed,
                                               .on_wait = on_wait,
                                               .on_probe = on_probe};

/* ---- fixture ---- */

static void make_spec(struct fx *fx, const char *url, const char *source, const char *destination)
{
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_buf_putf(&b,
                "[source]\nurl = \"%s\"\nendpoint = \"%s\"\naccess_key_env = \"LISTER_TEST_ID\"\n"
                "secret_key_env = \"LISTER_TEST_SECRET\"\n"
                "[destination]\nurl = \"%s\"\nendpoint = \"%s\"\naccess_key_env = "
                "\"LISTER_TEST_ID\"\nsecret_key_env = \"LISTER_TEST_SECRET\"\n",
                source,
                url,
                destination,
                url);
    xf_xfree(fx->spec);
    fx->spec = xf_buf_take(&b);
}

static void open_lister(struct fx *fx)
{
    struct xf_err err;
    const struct xf_lister_opts o = {.loop = fx->kit.loop,
                                     .store = fx->kit.store,
                                     .events = &events,
                                     .arg = fx,
                                     .limits = {.batch_objects = 1000,
                                                .batch_bytes = 1 << 30,
                                                .tries = 5,
                                                .requests = fx->requests},
                                     .probe_timeout_ms = 8000};
    assert_int_equal(xf_lister_new(&o, &fx->lister, &err), XF_OK);
}

/* synth: of bucket src; NULL: it is empty. */
static void open_many(struct fx *fx, const char *synth, uint32_t requests)
{
    const char *argv[] = {NULL,
                          "--key",
                          "AK:SK",
                          "--quiet",
                          "--bucket",
                          "dst",
                          synth != NULL ? "--synth" : "--bucket",
                          synth != NULL ? synth : "src",
                          NULL};
    memset(fx, 0, sizeof(*fx));
    fx->requests = requests;
    assert_int_equal(setenv("LISTER_TEST_ID", "AK", 1), 0);
    assert_int_equal(setenv("LISTER_TEST_SECRET", "SK", 1), 0);
    argv[0] = xf_proc_program("s3d");
    const struct xf_proc_opts o = {.argv = argv, .ready_fd = true};
    fx->s3d = xf_proc_spawn(&o);
    xf_proc_wait_ready(fx->s3d, 20000);
    (void)snprintf(
        fx->url, sizeof(fx->url), "http://127.0.0.1:%s", xf_proc_ready_word(fx->s3d, "port"));
    make_spec(fx, fx->url, "s3://src/", "s3://dst/");
    kit_init(&fx->kit, NULL);
    kit_open(&fx->kit);
    open_lister(fx);
    fx->job = kit_job(&fx->kit, "key", 1);
}

/* One page after the other, so that the n-th request is known. */
static void open_fx(struct fx *fx, const char *synth)
{
    open_many(fx, synth, 1);
}

static void close_fx(struct fx *fx)
{
    xf_lister_free(fx->lister);
    kit_check(&fx->kit);
    kit_fini(&fx->kit);
    xf_proc_free(fx->s3d);
    xf_xfree(fx->spec);
}

static void post(const struct fx *fx, const char *path, const char *json)
{
    char url[160];
    XF_AUTO_BUF answer = {0};
    xf_buf_init(&answer, 0);
    (void)snprintf(url, sizeof(url), "%s/-/%s", fx->url, path);
    int status = xf_httpget_send("POST", url, xf_str_c(json), &answer);
    if (status != 200) {
        fail_msg("s3d: %s: %d %s", path, status, answer.ptr);
    }
}

static void put(const struct fx *fx, const char *key_json)
{
    char json[300];
    (void)snprintf(json, sizeof(json), "{\"bucket\":\"src\",\"key\":%s,\"body\":\"x\"}", key_json);
    post(fx, "put", json);
}

static void list_on(struct fx *fx)
{
    struct xf_store_op *op = kit_op(XF_OP_READ_RECOVER);
    kit_must(&fx->kit, op);
    const struct xf_out_read_recover *out = &fx->kit.last.out.read_recover;
    assert_int_equal(out->n_shards, 1);
    const struct xf_listing_start s = {
        .shard = &out->shards[0], .spec = xf_str_c(fx->spec), .start_ms = 1};
    xf_lister_start(fx->lister, &s);
}

static void wait_end(struct fx *fx)
{
    const struct xf_clock *real = xf_clock_real();
    int64_t until = xf_clock_mono_ms(real) + DEADLINE_MS;
    while (!fx->is_done && !fx->is_failed && xf_clock_mono_ms(real) < until) {
        xf_loop_turn(fx->kit.loop, 100);
    }
    assert_true(fx->is_done || fx->is_failed);
}

static uint64_t listed(struct fx *fx)
{
    return kit_row(&fx->kit, fx->job).n.listed;
}

/* ---- tests ---- */

static void every_key_is_queued_once(void **state)
{
    struct fx fx;
    (void)state;
    open_fx(&fx, "src:2500:1KiB:flat");
    list_on(&fx);
    wait_end(&fx);
    assert_true(fx.is_done);
    struct xf_job_row row = kit_row(&fx.kit, fx.job);
    assert_int_equal(row.n.listed, 2500);
    assert_int_equal(row.n.keys_returned, 2500);
    assert_int_equal(row.n.list_requests, 3);
    assert_int_equal(row.shards_open, 0);
    assert_int_equal(fx.n_tasks, 3);
    close_fx(&fx);
}

/* Page 2 fails in one of the ways of C019: with few failures the listing is complete. */
static void cut_then_well(const char *rule)
{
    struct fx fx;
    open_fx(&fx, "src:2500:1KiB:flat");
    post(&fx, "faults", rule);
    list_on(&fx);
    wait_end(&fx);
    assert_true(fx.is_done);
    assert_int_equal(listed(&fx), 2500);
    close_fx(&fx);
}

/* Shards come and go: the end is when none is open. */
static void list_by_many(const char *synth, const char *rule, bool stop)
{
    struct fx fx;
    const struct xf_clock *real = xf_clock_real();
    int64_t until = xf_clock_mono_ms(real) + DEADLINE_MS;

    open_many(&fx, synth, 16);
    if (rule != NULL) {
        post(&fx, "faults", rule);
    }
    list_on(&fx);
    while (kit_row(&fx.kit, fx.job).shards_open > 0 && xf_clock_mono_ms(real) < until) {
        xf_loop_turn(fx.kit.loop, 5);
        if (stop && listed(&fx) > 3000) {
            close_fx(&fx); /* with looks, splits and commits on their way */
            return;
        }
    }
    assert_false(stop);
    assert_false(fx.is_failed);
    assert_int_equal(kit_row(&fx.kit, fx.job).shards_open, 0);
    assert_int_equal(listed(&fx), 12000);
    close_fx(&fx);
}

static void every_shape_is_queued_once_by_many_requests(void **state)
{
    (void)state;
    list_by_many("src:12000:1KiB:flat", NULL, false);
    list_by_many("src:12000:1KiB:skew", NULL, false);
    list_by_many("src:12000:1KiB:utf-8", NULL, false);
}

static void throttled_and_cut_pages_lose_nothing_of_many_shards(void **state)
{
    (void)state;
    list_by_many("src:12000:1KiB:dates",
                 "[{\"op\":\"ListObjectsV2\",\"every\":3,\"count\":12,\"action\":{\"status\":503,"
                 "\"code\":\"SlowDown\"}},{\"op\":\"ListObjectsV2\",\"every\":4,\"count\":6,"
                 "\"action\":{\"cut_after\":5000}}]",
                 false);
}

static void a_lister_ends_amid_looks_and_splits(void **state)
{
    (void)state;
    list_by_many("src:12000:1KiB:hex", NULL, true);
    list_by_many("src:12000:1KiB:dirs", NULL, true);
}

static void c019_a_cut_listing_goes_on_from_the_last_good_key(void **state)
{
    (void)state;
    cut_then_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"count\":3,\"action\":{\"status\":500}}]");
    cut_then_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"count\":3,"
                  "\"action\":{\"cut_after\":40000,\"end\":\"rst\"}}]");
    cut_then_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"count\":3,"
                  "\"action\":{\"cut_after\":40000,\"chunked\":true}}]");
    cut_then_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"count\":3,"
                  "\"action\":{\"status\":200,\"code\":\"InternalError\"}}]");
    cut_then_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"count\":3,\"action\":{\"body\":\"\"}}]");
}

static void never_well(const char *rule)
{
    struct fx fx;
    open_fx(&fx, "src:2500:1KiB:flat");
    post(&fx, "faults", rule);
    list_on(&fx);
    wait_end(&fx);
    assert_false(fx.is_done);
    assert_true(fx.is_failed);
    assert_non_null(strstr(fx.err.msg, "s3://src/"));
    struct xf_job_row row = kit_row(&fx.kit, fx.job);
    assert_int_equal(row.n.listed, 1000); /* what was found may be copied */
    assert_int_equal(row.shards_open, 1); /* but the listing is not complete */
    assert_int_equal(kit_finish(&fx.kit, fx.job, XF_JOB_COMPLETED), XF_E_BUSY);
    close_fx(&fx);
}

static void c019_a_listing_that_stays_cut_is_never_complete(void **state)
{
    (void)state;
    never_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"action\":{\"status\":500}}]");
    never_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,"
               "\"action\":{\"cut_after\":40000,\"chunked\":true}}]");
    never_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"action\":{\"body\":\"\"}}]");
    never_well("[{\"op\":\"ListObjectsV2\",\"nth\":2,\"action\":{\"status\":403}}]");
}

/* Every dialect of tokens either ends complete, each key once, or fails; never in between. */
static void token_dialect(const char *list, bool must_complete)
{
    struct fx fx;
    char rule[200];
    open_fx(&fx, "src:2500:1KiB:flat");
    (void)snprintf(
        rule, sizeof(rule), "[{\"op\":\"ListObjectsV2\",\"action\":{\"list\":%s}}]", list);
    post(&fx, "faults", rule);
    list_on(&fx);
    wait_end(&fx);
    uint64_t n = listed(&fx);
    assert_true(n <= 2500);
    if (must_complete) {
        assert_true(fx.is_done);
    } else {
        assert_true(fx.is_failed);
        assert_true(strstr(fx.err.msg, "no progress after key") != NULL ||
                    strstr(fx.err.msg, "byte order") != NULL);
    }
    assert_int_equal(fx.is_done ? 2500 : n, n);
    close_fx(&fx);
}

static void c020_tokens_that_lead_nowhere_are_left_for_start_after(void **state)
{
    (void)state;
    token_dialect("{\"token\":\"same\"}", true);
    token_dialect("{\"token\":\"constant\"}", true);
    token_dialect("{\"token\":\"empty\"}", true);
    token_dialect("{\"token\":\"none\"}", true);
    token_dialect("{\"repeat_page\":true}", true);
}

static void c020_no_progress_fails_the_listing_and_queues_no_key_twice(void **state)
{
    (void)state;
    token_dialect("{\"token\":\"none\",\"ignore_start_after\":true}", false);
    token_dialect("{\"token\":\"constant\",\"ignore_start_after\":true}", false);
}

static void a_server_that_lists_in_another_order_fails_the_listing(void **state)
{
    (void)state;
    token_dialect("{\"order\":\"reverse\"}", false);
}

/* Each key as it is; the same count for all dialects of C022 and C024. */
static void odd_keys(const char *list)
{
    static const char *const keys[] = {"\"c\\u0001a\"",
                                       "\"c\\u0008b\"",
                                       "\"c\\u001fc\"",
                                       "\"c\\u000bd\"",
                                       "\"c\\tT\"",
                                       "\"c\\rR\"",
                                       "\"a b\"",
                                       "\"a+b\"",
                                       "\"a%20b\"",
                                       "\"a%2Bb\"",
                                       "\"100%.csv\"",
                                       "\"\xed\x95\x9c/x\"",
                                       "\"plain\""};
    static const char *const bytes[] = {"100%.csv",
                                        "a b",
                                        "a%20b",
                                        "a%2Bb",
                                        "a+b",
                                        "c\001a",
                                        "c\010b",
                                        "c\tT",
                                        "c\013d",
                                        "c\rR",
                                        "c\037c",
                                        "plain",
                                        "\xed\x95\x9c/x"};
    struct fx fx;
    char rule[200];
    open_fx(&fx, NULL);
    for (size_t i = 0; i < XF_ARRAY_LEN(keys); i++) {
        put(&fx, keys[i]);
    }
    if (list != NULL) {
        (void)snprintf(
            rule, sizeof(rule), "[{\"op\":\"ListObjectsV2\",\"action\":{\"list\":%s}}]", list);
        post(&fx, "faults", rule);
    }
    list_on(&fx);
    wait_end(&fx);
    assert_true(fx.is_done);
    struct xf_store_op *op = kit_op(XF_OP_READ_RESULTS);
    op->in.read_results = (struct xf_in_read_results){.job = fx.job};
    kit_must(&fx.kit, op);
    const struct xf_out_read_results *out = &fx.kit.last.out.read_results;
    assert_int_equal(out->n, XF_ARRAY_LEN(bytes));
    for (size_t i = 0; i < out->n; i++) {
        if (!xf_str_eq_c(out->rows[i].object.key, bytes[i])) {
            fail_msg("dialect %s: key %zu is not '%s'", list != NULL ? list : "none", i, bytes[i]);
        }
    }
    close_fx(&fx);
}

static void c022_control_characters_in_keys_are_bytes_like_others(void **state)
{
    (void)state;
    odd_keys(NULL);
    odd_keys("{\"encoding\":\"raw\"}");
    odd_keys("{\"encoding\":\"charref\"}");
}

static void c024_each_dialect_of_encoded_keys_gives_the_same_keys(void **state)
{
    (void)state;
    odd_keys("{\"encoding\":\"percent20\"}");
    odd_keys("{\"encoding\":\"raw_fields\"}");
    odd_keys("{\"encoding\":\"unannounced\"}");
}

static void c082_a_new_process_goes_on_from_the_stored_cursor(void **state)
{
    struct fx fx;
    (void)state;
    open_fx(&fx, "src:20000:1KiB:flat");
    post(&fx, "limits", "{\"latency\":\"list=20\"}");
    list_on(&fx);
    while (fx.n_tasks < 5) {
        xf_loop_turn(fx.kit.loop, 100);
    }
    xf_lister_free(fx.lister);
    uint64_t so_far = listed(&fx);
    assert_true(so_far >= 5000 && so_far < 20000);
    kit_reopen(&fx.kit);
    open_lister(&fx);
    list_on(&fx);
    wait_end(&fx);
    assert_true(fx.is_done);
    assert_int_equal(listed(&fx), 20000);
    close_fx(&fx);
}

static void an_endpoint_that_is_down_is_waited_for(void **state)
{
    struct fx fx;
    (void)state;
    open_fx(&fx, "src:100:1KiB:flat");
    make_spec(&fx, "http://127.0.0.1:1", "s3://src/", "s3://dst/");
    list_on(&fx);
    while (fx.wait.code == XF_OK && !fx.is_failed) {
        xf_loop_turn(fx.kit.loop, 100);
    }
    assert_int_equal(fx.wait.code, XF_E_UNREACHABLE);
    assert_false(fx.is_failed);
    close_fx(&fx); /* ends it while it waits */
}

/* Until the server has refused so many requests. */
static void until_refused(struct fx *fx, int n)
{
    const struct xf_clock *real = xf_clock_real();
    int64_t until = xf_clock_mono_ms(real) + DEADLINE_MS;
    char url[160];
    int seen = 0;
    (void)snprintf(url, sizeof(url), "%s/-/faults", fx->url);
    while (seen < n) {
        XF_AUTO_BUF answer = {0};
        xf_buf_init(&answer, 0);
        assert_true(xf_clock_mono_ms(real) < until);
        xf_loop_turn(fx->kit.loop, 100);
        assert_int_equal(xf_httpget_send("GET", url, XF_STR_EMPTY, &answer), 200);
        const char *fired = strstr(answer.ptr, "\"fired\":");
        assert_non_null(fired);
        seen = fired[strlen("\"fired\":")] - '0';
    }
}

static void drop_faults(const struct fx *fx)
{
    char url[160];
    XF_AUTO_BUF answer = {0};
    xf_buf_init(&answer, 0);
    (void)snprintf(url, sizeof(url), "%s/-/faults", fx->url);
    assert_int_equal(xf_httpget_send("DELETE", url, XF_STR_EMPTY, &answer), 200);
}

/* Keys that stop working amid a listing, as when they are changed, are waited for, and told. */
static void c059_keys_that_stop_amid_a_listing_are_waited_for(void **state)
{
    static const char *const refusals[] = {"\"status\":403,\"code\":\"SignatureDoesNotMatch\"",
                                           "\"status\":400,\"code\":\"ExpiredToken\""};
    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(refusals); i++) {
        struct fx fx;
        char rule[200];
        open_fx(&fx, "src:2500:1KiB:flat");
        (void)snprintf(rule,
                       sizeof(rule),
                       "[{\"op\":\"ListObjectsV2\",\"nth\":2,\"action\":{%s}}]",
                       refusals[i]);
        post(&fx, "faults", rule);
        list_on(&fx);
        while (fx.wait.code == XF_OK && !fx.is_failed) {
            xf_loop_turn(fx.kit.loop, 100);
        }
        assert_int_equal(fx.wait.code, XF_E_CREDS);
        until_refused(&fx, 4); /* more than FATAL_TRIES of another refusal */
        assert_false(fx.is_failed);
        drop_faults(&fx);
        wait_end(&fx);
        assert_true(fx.is_done);
        assert_int_equal(fx.wait.code, XF_OK);
        assert_int_equal(listed(&fx), 2500);
        close_fx(&fx);
    }
}

/* One request that the service signs otherwise: the keys are good, and the listing ends. */
static void a_signature_that_only_one_request_lacks_fails_the_listing(void **state)
{
    (void)state;
    never_well("[{\"op\":\"ListObjectsV2\",\"query\":\"continuation-token\","
               "\"action\":{\"status\":403,\"code\":\"SignatureDoesNotMatch\"}},"
               "{\"op\":\"ListObjectsV2\",\"query\":\"start-after\","
               "\"action\":{\"status\":403,\"code\":\"SignatureDoesNotMatch\"}}]");
}

static enum xf_code probe(struct fx *fx)
{
    fx->is_probed = false;
    xf_lister_probe(fx->lister, xf_str_c(fx->spec), fx);
    while (!fx->is_probed) {
        xf_loop_turn(fx->kit.loop, 100);
    }
    return fx->err.code;
}

static void c079_a_probe_tells_what_is_wrong_before_a_job_is_made(void **state)
{
    struct fx fx;
    (void)state;
    open_fx(&fx, "src:100:1KiB:flat");
    assert_int_equal(probe(&fx), XF_OK);
    make_spec(&fx, fx.url, "s3://absent/", "s3://dst/");
    assert_int_equal(probe(&fx), XF_E_NO_BUCKET);
    assert_non_null(strstr(fx.err.msg, "absent"));
    make_spec(&fx, fx.url, "s3://src/", "s3://missing/");
    assert_int_equal(probe(&fx), XF_E_NO_BUCKET);
    assert_non_null(strstr(fx.err.msg, "missing"));
    make_spec(&fx, fx.url, "s3://src/none/", "s3://dst/");
    assert_int_equal(probe(&fx), XF_E_EMPTY);
    assert_non_null(strstr(fx.err.msg, "allow_empty"));
    make_spec(&fx, "http://127.0.0.1:1", "s3://src/", "s3://dst/");
    assert_int_equal(probe(&fx), XF_E_UNREACHABLE);
    make_spec(&fx, "http://no-such-host.invalid:9", "s3://src/", "s3://dst/");
    assert_int_equal(probe(&fx), XF_E_DNS);
    make_spec(&fx, fx.url, "s3://src/", "s3://dst/");
    assert_int_equal(probe(&fx), XF_OK);
    assert_int_equal(setenv("LISTER_TEST_SECRET", "WRONG", 1), 0);
    make_spec(&fx, fx.url, "s3://src/", "s3://dst/");
    assert_true(probe(&fx) == XF_E_DENIED || fx.err.code == XF_E_CREDS);
    assert_null(strstr(fx.err.msg, "WRONG"));
    assert_int_equal(unsetenv("LISTER_TEST_SECRET"), 0);
    assert_int_equal(probe(&fx), XF_E_CREDS);
    assert_non_null(strstr(fx.err.msg, "LISTER_TEST_SECRET"));
    close_fx(&fx);
}

static void c016_one_bucket_under_two_names_is_found_out(void **state)
{
    struct fx fx;
    char other[64];
    (void)state;
    open_fx(&fx, "src:100:1KiB:flat");
    (void)snprintf(other, sizeof(other), "http://0.0.0.0:%s", xf_proc_ready_word(fx.s3d, "port"));
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_buf_putf(&b,
                "[source]\nurl = \"s3://src/\"\nendpoint = \"%s\"\naccess_key_env = "
                "\"LISTER_TEST_ID\"\nsecret_key_env = \"LISTER_TEST_SECRET\"\n"
                "[destination]\nurl = \"s3://src/copy/\"\nendpoint = \"%s\"\naccess_key_env = "
                "\"LISTER_TEST_ID\"\nsecret_key_env = \"LISTER_TEST_SECRET\"\n",
                fx.url,
                other);
    xf_xfree(fx.spec);
    fx.spec = xf_buf_take(&b);
    assert_int_equal(probe(&fx), XF_E_CONFIG);
    assert_non_null(strstr(fx.err.msg, "overlap"));
    close_fx(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_queued_once),
        cmocka_unit_test(every_shape_is_queued_once_by_many_requests),
        cmocka_unit_test(throttled_and_cut_pages_lose_nothing_of_many_shards),
        cmocka_unit_test(a_lister_ends_amid_looks_and_splits),
        cmocka_unit_test(c019_a_cut_listing_goes_on_from_the_last_good_key),
        cmocka_unit_test(c019_a_listing_that_stays_cut_is_never_complete),
        cmocka_unit_test(c020_tokens_that_lead_nowhere_are_left_for_start_after),
        cmocka_unit_test(c020_no_progress_fails_the_listing_and_queues_no_key_twice),
        cmocka_unit_test(a_server_that_lists_in_another_order_fails_the_listing),
        cmocka_unit_test(c022_control_characters_in_keys_are_bytes_like_others),
        cmocka_unit_test(c024_each_dialect_of_encoded_keys_gives_the_same_keys),
        cmocka_unit_test(c082_a_new_process_goes_on_from_the_stored_cursor),
        cmocka_unit_test(an_endpoint_that_is_down_is_waited_for),
        cmocka_unit_test(c059_keys_that_stop_amid_a_listing_are_waited_for),
        cmocka_unit_test(a_signature_that_only_one_request_lacks_fails_the_listing),
        cmocka_unit_test(c079_a_probe_tells_what_is_wrong_before_a_job_is_made),
        cmocka_unit_test(c016_one_bucket_under_two_names_is_found_out),
    };
    return xf_test_run("lister", tests, NULL, NULL);
}
