/* object_test.c - small objects by copy and relay, against a server that misbehaves. */
#include "common/base/hash.h"
#include "tests/fault/agent/rig.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define OVERWRITE "[copy]\nif_exists = \"overwrite\"\n"
#define RELAY     "[copy]\nmode = \"relay\"\nif_exists = \"overwrite\"\n"

static void put_many(struct rig *rig, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char json[160];
        (void)snprintf(json,
                       sizeof(json),
                       "{\"bucket\":\"src\",\"key\":\"k%03u\",\"body\":\"body of object %u\"}",
                       i,
                       i);
        rig_put(rig, 0, json);
    }
}

static void small_objects_are_copied_by_the_server(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 50);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 50, XF_OUTCOME_COPIED), 50);
    for (int i = 0; i < 50; i++) {
        assert_int_equal(rig.told[i].r.level, XF_LEVEL_ETAG);
        assert_int_equal(rig.told[i].r.mode, XF_MODE_SERVER);
        assert_int_equal(rig.told[i].r.attempts, 1);
    }
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 50);
    assert_int_equal(rig_count(&rig, 0, "GetObject"), 0);
    assert_int_equal(rig_count(&rig, 0, "HeadObject"), 0);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void small_objects_are_relayed_between_servers(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, OVERWRITE, NULL);
    put_many(&rig, 50);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"empty\",\"body\":\"\"}");
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":20971520,\"seed\":3}");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 52, XF_OUTCOME_COPIED), 52);
    assert_int_equal(rig.told[0].r.mode, XF_MODE_RELAY);
    assert_int_equal(rig.told[0].r.level, XF_LEVEL_ETAG);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c001_copy_that_is_ignored_goes_by_relay(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 10);
    rig_faults(&rig, "[{\"op\":\"CopyObject\",\"action\":{\"ignore_copy_source\":true}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 10, XF_OUTCOME_COPIED), 10);
    assert_true(rig_has_notice(&rig, "no_server_copy"));
    assert_int_equal(rig.n_notices, 1);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c002_a_200_with_an_error_is_no_success(void **state)
{
    (void)state;
    static const char *const faults[] = {
        "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"status\":200,\"code\":\"InternalError\"}"
        "}]",
        "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"status\":200,\"code\":\"SlowDown\","
        "\"pad\":5}}]",
        "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"work\":false,\"body\":"
        "\"<?xml version=\\\"1.0\\\"?><CopyObjectResult><ETag>\"}}]",
        "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"work\":false,\"status\":200,\"body\":"
        "\"\"}}]",
        "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"work\":true,\"status\":200,\"body\":"
        "\"\"}}]",
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(faults); i++) {
        struct rig rig;
        rig_open(&rig, false, OVERWRITE, NULL);
        put_many(&rig, 1);
        rig_faults(&rig, faults[i]);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c002_the_inner_error_is_reported_when_tries_run_out(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 1);
    rig_faults(&rig,
               "[{\"op\":\"CopyObject\",\"action\":{\"status\":200,\"code\":\"InternalError\"}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_FAILED);
    assert_int_equal(rig.told[0].r.code, XF_E_SERVER);
    assert_int_equal(rig.told[0].r.attempts, XF_ENGINE_TRIES);
    assert_true((rig.told[0].r.flags & XF_RESULT_RETRYABLE) != 0);
    assert_non_null(strstr(rig.told[0].message, "InternalError"));
    assert_int_equal(rig_dst_size(&rig, "k000"), UINT64_MAX);
    rig_close(&rig);
}

static void c008_no_copy_at_all_goes_by_relay_and_is_told_once(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 30);
    rig_faults(&rig,
               "[{\"op\":\"CopyObject\",\"action\":{\"status\":501,\"code\":\"NotImplemented\"}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 30, XF_OUTCOME_COPIED), 30);
    assert_int_equal(rig.n_notices, 1);
    assert_true(rig_has_notice(&rig, "no_server_copy"));
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c004_an_ignored_condition_does_not_pass_for_the_old_version(void **state)
{
    (void)state;
    struct rig rig;

    /* the multipart etag of the source is not comparable, so only HEADs can tell */
    static const char *const args[] = {"--object", "src/k:6MiB:part=5MiB", NULL};
    rig_open(&rig, false, OVERWRITE, args);
    struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
    rig_faults(&rig,
               "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"ignore_conditions\":true,\"put\":"
               "{\"bucket\":\"src\",\"key\":\"k\",\"size\":6291456,\"seed\":77}}}]");
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
    assert_true((rig.told[0].r.flags & XF_RESULT_CHANGED) != 0);
    assert_true(strlen(rig.told[0].source_etag) == 32);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void a_source_that_is_gone_proves_no_copy_of_another_version(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"size\":4000,\"seed\":1}");
    struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
    rig_faults(&rig,
               "[{\"op\":\"CopyObject\",\"count\":1,\"action\":{\"ignore_conditions\":true,\"put\":"
               "{\"bucket\":\"src\",\"key\":\"k\",\"size\":4000,\"seed\":77}}},"
               "{\"op\":\"HeadObject\",\"bucket\":\"src\",\"count\":1,\"action\":{\"delete\":"
               "{\"bucket\":\"src\",\"key\":\"k\"}}}]");
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_VANISHED);
    rig_close(&rig);
}

static void bytes_that_do_not_match_the_etag_are_never_stored(void **state)
{
    (void)state;
    static const char *const sizes[] = {"4000", "20000000"}; /* buffered, streamed */

    for (size_t i = 0; i < 2; i++) {
        char json[200];
        struct rig rig;
        rig_open(&rig, false, RELAY, NULL);
        (void)snprintf(json,
                       sizeof(json),
                       "{\"bucket\":\"src\",\"key\":\"k\",\"size\":%s,\"etag\":"
                       "\"0123456789abcdef0123456789abcdef\"}",
                       sizes[i]);
        rig_put(&rig, 0, json);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_FAILED);
        assert_int_equal(rig.told[0].r.code, XF_E_CHECKSUM);
        assert_int_equal(rig_count(&rig, 0, "GetObject"), XF_ENGINE_TRIES); /* read anew */
        assert_int_equal(rig_dst_size(&rig, "k"), UINT64_MAX);
        rig_close(&rig);
    }
}

static void source_that_changed_since_listed_is_copied_as_it_is(void **state)
{
    (void)state;
    static const char *const modes[] = {OVERWRITE, RELAY};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        put_many(&rig, 3);
        struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
        rig_put(
            &rig, 0, "{\"bucket\":\"src\",\"key\":\"k001\",\"body\":\"longer than before it\"}");
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig_outcomes(&rig, 3, XF_OUTCOME_COPIED), 3);
        assert_true((rig.told[1].r.flags & XF_RESULT_CHANGED) != 0);
        assert_int_equal(rig.told[1].r.size_bytes, 21);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c017_vanished_objects_are_told_after_one_look(void **state)
{
    (void)state;
    static const char *const modes[] = {OVERWRITE, RELAY};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        put_many(&rig, 5);
        struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
        rig_faults(&rig,
                   "[{\"op\":[\"CopyObject\",\"GetObject\"],\"key\":\"k003\",\"action\":"
                   "{\"delete\":{\"bucket\":\"src\",\"key\":\"k003\"}}}]");
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig_outcomes(&rig, 5, XF_OUTCOME_COPIED), 4);
        assert_int_equal(rig.told[3].r.outcome, XF_OUTCOME_VANISHED);
        assert_int_equal(rig_dst_size(&rig, "k003"), UINT64_MAX);
        assert_int_equal(rig_count(&rig, 0, "HeadObject"), 1);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c035_keys_the_server_cannot_resolve_go_by_relay(void **state)
{
    (void)state;
    struct rig rig;
    static const char *const keys[] = {"c++",
                                       "100%",
                                       "a b",
                                       "a%2Fb",
                                       "x?v=1",
                                       "x#y",
                                       "Pose®.jpg",
                                       "22:24:03+0000.jpg",
                                       "a&b=c",
                                       "k?versionId=abc",
                                       "a//b",
                                       "/lead",
                                       "d/./e",
                                       "d/../e",
                                       "plain"};

    rig_open(&rig, false, OVERWRITE, NULL);
    for (size_t i = 0; i < XF_ARRAY_LEN(keys); i++) {
        char json[160];
        (void)snprintf(json,
                       sizeof(json),
                       "{\"bucket\":\"src\",\"key\":\"%s\",\"body\":\"b%zu\"}",
                       keys[i],
                       i);
        rig_put(&rig, 0, json);
    }
    rig_faults(&rig, "[{\"op\":\"CopyObject\",\"action\":{\"literal_copy_source\":true}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, XF_ARRAY_LEN(keys), XF_OUTCOME_COPIED), XF_ARRAY_LEN(keys));
    assert_true(rig_has_notice(&rig, "copy_source_not_found"));
    assert_true(rig_count_status(&rig, 0, "CopyObject", "200") >= 1); /* "plain" needs none */
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c044_short_body_is_never_stored(void **state)
{
    (void)state;
    static const char *const actions[] = {
        "{\"cut_after\":1000000}",
        "{\"cut_after\":1000000,\"end\":\"rst\"}",
        "{\"cut_after\":1000000,\"chunked\":true}",
        "{\"content_length\":1000000,\"cut_after\":1000000}",
        "{\"extra\":10}",
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(actions); i++) {
        struct rig rig;
        char json[200];
        rig_open(&rig, false, RELAY, NULL);
        rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"size\":1048576,\"seed\":5}");
        struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
        (void)snprintf(
            json, sizeof(json), "[{\"op\":\"GetObject\",\"id\":\"x\",\"action\":%s}]", actions[i]);
        rig_faults(&rig, json);
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        if (rig.told[0].r.outcome == XF_OUTCOME_FAILED) {
            assert_int_equal(rig_dst_size(&rig, "k"), UINT64_MAX);
            assert_true((rig.told[0].r.flags & XF_RESULT_RETRYABLE) != 0);
        } else { /* surplus bytes after the announced ones are not the object's */
            rig_must_be_equal(&rig, true);
        }
        rig_no_faults(&rig);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c044_short_stream_is_never_stored(void **state)
{
    (void)state;
    static const char *const actions[] = {"{\"cut_after\":18000000}",
                                          "{\"cut_after\":18000000,\"end\":\"rst\"}",
                                          "{\"cut_after\":18000000,\"chunked\":true}"};
    for (size_t i = 0; i < XF_ARRAY_LEN(actions); i++) {
        struct rig rig;
        char json[200];
        rig_open(&rig, false, RELAY, NULL);
        rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"size\":20971520,\"seed\":5}");
        struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
        (void)snprintf(json, sizeof(json), "[{\"op\":\"GetObject\",\"action\":%s}]", actions[i]);
        rig_faults(&rig, json);
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_FAILED);
        assert_int_equal(rig_dst_size(&rig, "k"), UINT64_MAX);
        rig_close(&rig);
    }
}

static void c048_a_half_sent_body_is_sent_again_whole(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, RELAY, NULL);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"size\":600000,\"seed\":5}");
    rig_faults(&rig, "[{\"op\":\"PutObject\",\"count\":1,\"action\":{\"read_cut\":100000}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c011_kms_etags_are_not_compared(void **state)
{
    (void)state;
    static const char *const modes[] = {OVERWRITE, RELAY};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        put_many(&rig, 3);
        rig_faults(&rig, "[{\"op\":[\"PutObject\",\"CopyObject\"],\"action\":{\"kms\":true}}]");
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig_outcomes(&rig, 3, XF_OUTCOME_COPIED), 3);
        assert_true(rig.told[0].r.level == (i == 0 ? XF_LEVEL_SIZE : XF_LEVEL_CHECKSUM));
        rig_must_be_equal(&rig, false);
        rig_close(&rig);
    }
}

static void c060_throttling_spends_no_tries(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 20);
    rig_faults(
        &rig,
        "[{\"op\":\"CopyObject\",\"nth\":2,\"every\":2,\"count\":12,\"action\":{\"status\":503,"
        "\"code\":\"SlowDown\"}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 20, XF_OUTCOME_COPIED), 20);
    struct xf_engine_stats s;
    xf_engine_stats(rig.engine, &s);
    assert_int_equal(s.throttled, 12);
    for (int i = 0; i < 20; i++) {
        assert_int_equal(rig.told[i].r.attempts, 1);
    }
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c061_a_stalled_answer_is_given_up_and_tried_again(void **state)
{
    (void)state;
    static const char *const modes[] = {RELAY, RELAY};
    static const char *const faults[] = {
        "[{\"op\":\"GetObject\",\"count\":1,\"action\":{\"stall_after\":100000}}]",
        "[{\"op\":\"PutObject\",\"count\":1,\"action\":{\"stall_after\":-1}}]",
    };
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"size\":600000,\"seed\":5}");
        rig_faults(&rig, faults[i]);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void attributes_and_tags_survive_a_relay(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, RELAY, NULL);
    for (int i = 0; i < 2; i++) {
        char json[640];
        (void)snprintf(json,
                       sizeof(json),
                       "{\"bucket\":\"src\",\"key\":\"k%d\",\"size\":%d,\"seed\":2,\"headers\":{"
                       "\"Content-Type\":\"video/mp4\",\"Cache-Control\":\"max-age=123456\","
                       "\"Content-Disposition\":\"attachment; filename=\\\"a b.mp4\\\"\","
                       "\"Content-Language\":\"de\",\"Content-Encoding\":\"gzip\","
                       "\"Expires\":\"Thu, 01 Dec 2044 16:00:00 GMT\",\"x-amz-meta-k\":\"v\","
                       "\"x-amz-meta-q\":\"a\"},\"redirect\":\"/z\",\"storage_class\":"
                       "\"STANDARD_IA\",\"tags\":\"team=x&b=%%26\"}",
                       i,
                       i == 0 ? 1024 : 18000000);
        rig_put(&rig, 0, json);
    }
    struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
    w->manifest.objects[0].storage_class = XF_STR_LIT("STANDARD_IA");
    w->manifest.objects[1].storage_class = XF_STR_LIT("STANDARD_IA");
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 2, XF_OUTCOME_COPIED), 2);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void c006_tags_that_are_denied_are_dropped_or_fail_as_asked(void **state)
{
    (void)state;
    static const char *const jobs[] = {
        RELAY, RELAY "tags = \"required\"\n", OVERWRITE "tags = \"required\"\n", OVERWRITE};
    static const char *const denied =
        "[{\"op\":\"GetObjectTagging\",\"action\":{\"status\":403,\"code\":\"AccessDenied\"}},"
        "{\"op\":\"CopyObject\",\"header\":\"x-amz-tagging-directive: REPLACE\",\"action\":{}},"
        "{\"op\":\"CopyObject\",\"action\":{\"status\":403,\"code\":\"AccessDenied\"}}]";

    for (size_t i = 0; i < XF_ARRAY_LEN(jobs); i++) {
        struct rig rig;
        bool fails = i == 1;
        rig_open(&rig, false, jobs[i], NULL);
        rig_put(
            &rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"body\":\"hello\",\"tags\":\"team=x\"}");
        rig_faults(&rig, denied);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        if (i == 2) {
            fails = true; /* denied to copy with tags, then denied to read them */
        }
        assert_int_equal(rig.told[0].r.outcome, fails ? XF_OUTCOME_FAILED : XF_OUTCOME_COPIED);
        if (fails) {
            assert_int_equal(rig.told[0].r.code, XF_E_DENIED);
            assert_int_equal(rig_dst_size(&rig, "k"), UINT64_MAX);
        } else {
            assert_true((rig.told[0].r.flags & XF_RESULT_TAGS_DROPPED) != 0);
            assert_true(rig_has_notice(&rig, "tags_denied"));
            rig_must_be_equal(&rig, false);
        }
        rig_close(&rig);
    }
}

static void c004_a_changed_source_s_attributes_are_read_anew(void **state)
{
    (void)state;
    static const char *const jobs[] = {OVERWRITE "source_mtime = true\n",
                                       RELAY "source_mtime = true\n"};
    static const char *const changes =
        "[{\"op\":[\"CopyObject\",\"GetObject\"],\"count\":1,\"action\":{\"put\":{"
        "\"bucket\":\"src\",\"key\":\"k\",\"size\":%s,\"seed\":2,\"headers\":{"
        "\"x-amz-meta-mtime\":\"5\",\"Content-Type\":\"b/b\"}}}}]";

    for (size_t i = 0; i < XF_ARRAY_LEN(jobs); i++) {
        struct rig rig;
        char text[512];
        const char *size = i == 0 ? "100" : "18000000"; /* that is streamed: asked before */

        rig_open(&rig, false, jobs[i], NULL);
        (void)snprintf(text,
                       sizeof(text),
                       "{\"bucket\":\"src\",\"key\":\"k\",\"size\":%s,\"seed\":1,\"headers\":{"
                       "\"Content-Type\":\"a/a\",\"Cache-Control\":\"no-store\"}}",
                       size);
        rig_put(&rig, 0, text);
        (void)snprintf(text, sizeof(text), changes, size);
        rig_faults(&rig, text);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void c045_encoded_bodies_are_never_unpacked(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, RELAY, NULL);
    rig_put(&rig,
            0,
            "{\"bucket\":\"src\",\"key\":\"k\",\"size\":200,\"seed\":9,\"headers\":{"
            "\"Content-Encoding\":\"gzip\"}}");
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"plain\",\"size\":3893,\"seed\":9}");
    rig_faults(
        &rig,
        "[{\"op\":\"GetObject\",\"key\":\"plain\",\"action\":{\"chunked\":true,\"cut_after\":"
        "700,\"headers\":{\"Content-Encoding\":\"gzip\"}}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
    assert_int_equal(rig.told[1].r.outcome, XF_OUTCOME_FAILED);
    assert_int_equal(rig_dst_size(&rig, "k"), 200);
    assert_int_equal(rig_dst_size(&rig, "plain"), UINT64_MAX);
    rig_close(&rig);
}

static void c012_archived_objects_are_told_and_restored_ones_copied(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, RELAY, NULL);
    put_many(&rig, 2);
    rig_faults(
        &rig,
        "[{\"op\":[\"GetObject\",\"CopyObject\"],\"key\":\"k000\",\"action\":{\"status\":403,"
        "\"code\":\"InvalidObjectState\"}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_ARCHIVED);
    assert_int_equal(rig.told[1].r.outcome, XF_OUTCOME_COPIED);
    assert_int_equal(rig_count(&rig, 0, "GetObject"), 2);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_objects_are_copied_by_the_server),
        cmocka_unit_test(small_objects_are_relayed_between_servers),
        cmocka_unit_test(c001_copy_that_is_ignored_goes_by_relay),
        cmocka_unit_test(c002_a_200_with_an_error_is_no_success),
        cmocka_unit_test(c002_the_inner_error_is_reported_when_tries_run_out),
        cmocka_unit_test(c004_an_ignored_condition_does_not_pass_for_the_old_version),
        cmocka_unit_test(a_source_that_is_gone_proves_no_copy_of_another_version),
        cmocka_unit_test(c006_tags_that_are_denied_are_dropped_or_fail_as_asked),
        cmocka_unit_test(c008_no_copy_at_all_goes_by_relay_and_is_told_once),
        cmocka_unit_test(c011_kms_etags_are_not_compared),
        cmocka_unit_test(c012_archived_objects_are_told_and_restored_ones_copied),
        cmocka_unit_test(c017_vanished_objects_are_told_after_one_look),
        cmocka_unit_test(c035_keys_the_server_cannot_resolve_go_by_relay),
        cmocka_unit_test(c044_short_body_is_never_stored),
        cmocka_unit_test(c044_short_stream_is_never_stored),
        cmocka_unit_test(bytes_that_do_not_match_the_etag_are_never_stored),
        cmocka_unit_test(c004_a_changed_source_s_attributes_are_read_anew),
        cmocka_unit_test(c045_encoded_bodies_are_never_unpacked),
        cmocka_unit_test(c048_a_half_sent_body_is_sent_again_whole),
        cmocka_unit_test(c060_throttling_spends_no_tries),
        cmocka_unit_test(c061_a_stalled_answer_is_given_up_and_tried_again),
        cmocka_unit_test(source_that_changed_since_listed_is_copied_as_it_is),
        cmocka_unit_test(attributes_and_tags_survive_a_relay),
    };
    return xf_test_run("agent_object", tests, NULL, NULL);
}
