/* sum_test.c - checksums on what is relayed: sent, told, compared, and done without. */
#include "tests/fault/agent/rig.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define RELAY "[copy]\nif_exists = \"overwrite\"\npart_size = \"5MiB\"\nmode = \"relay\"\n"
#define BIG   "{\"bucket\":\"src\",\"key\":\"big\",\"size\":15728650,\"seed\":4"
/* Does nothing but count the writes that carry this header. */
#define COUNT(header)                                                                           \
    "{\"id\":\"" header "\",\"op\":[\"PutObject\",\"UploadPart\",\"CompleteMultipartUpload\"]," \
    "\"header\":\"" header "\",\"action\":{\"delay_ms\":0}}"
#define CRC64 "x-amz-checksum-crc64nvme"
#define SUM_OF(op)                                                        \
    "{\"op\":" op ",\"header\":\"" CRC64 "\",\"action\":{\"status\":400," \
    "\"code\":\"InvalidArgument\",\"message\":\"Unsupported header\"}}"

/* How often the rule fired at the destination's server. */
static uint64_t fired(struct rig *rig, const char *id)
{
    XF_AUTO(xf_json) rules = rig_get(rig, 1, "/-/faults");

    for (size_t i = 0; i < xf_json_len(rules); i++) {
        const struct xf_json *rule = xf_json_at(rules, i);
        if (strcmp(xf_json_get_c(rule, "id", ""), id) == 0) {
            return xf_json_get_u64(rule, "fired", 0);
        }
    }
    fail_msg("no rule '%s'", id);
    return 0;
}

static void put_small(struct rig *rig, const char *more)
{
    char json[300];

    (void)snprintf(
        json, sizeof(json), "{\"bucket\":\"src\",\"key\":\"k\",\"size\":4000,\"seed\":1%s}", more);
    rig_put(rig, 0, json);
}

static void run_small(struct rig *rig)
{
    assert_int_equal(rig_run(rig, rig_batch(rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig->told[0].r.outcome, XF_OUTCOME_COPIED);
    rig_must_be_equal(rig, true);
}

static void relayed_writes_carry_a_checksum(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    rig_faults(&rig, "[" COUNT(CRC64) "]");
    put_small(&rig, "");
    run_small(&rig);
    assert_int_equal(rig.told[0].r.level, XF_LEVEL_ETAG); /* both sides have the same MD5 */
    assert_int_equal(fired(&rig, CRC64), 1);
    rig_put(&rig, 0, BIG "}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig.opened.sum, XF_SUM_CRC64NVME);
    assert_int_equal(fired(&rig, CRC64), 1 + 4 + 1); /* the parts, and the whole at Complete */
    rig_must_be_equal(&rig, true);
    assert_int_equal(rig.n_notices, 0);
    rig_close(&rig);
}

static void the_sources_own_algorithm_is_kept(void **state)
{
    static const char *const names[] = {"crc32c", "crc32", "sha256", "crc64nvme"};

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(names); i++) {
        struct rig rig;
        char more[64];
        char header[64];
        char rule[300];
        rig_open(&rig, true, RELAY "[verify]\nmode = \"checksum\"\n", NULL);
        (void)snprintf(more, sizeof(more), ",\"checksum\":\"%s\"", names[i]);
        (void)snprintf(header, sizeof(header), "x-amz-checksum-%s", names[i]);
        (void)snprintf(rule,
                       sizeof(rule),
                       "[{\"id\":\"sent\",\"op\":[\"PutObject\",\"UploadPart\"],\"header\":\"%s\","
                       "\"action\":{\"delay_ms\":0}}]",
                       header);
        rig_faults(&rig, rule);
        put_small(&rig, more);
        run_small(&rig);
        assert_int_equal(rig.told[0].r.level, XF_LEVEL_CHECKSUM);
        assert_int_equal(fired(&rig, "sent"), 1);
        if (strcmp(names[i], "sha256") != 0) { /* it has no full-object form for uploads */
            rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"none\",\"body\":\"\"}");
            (void)snprintf(rule, sizeof(rule), BIG "%s}", more);
            rig_put(&rig, 0, rule);
            assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
            assert_int_equal(rig.upload.r.level, XF_LEVEL_CHECKSUM);
            assert_int_equal(fired(&rig, "sent"), 1 + 4);
        }
        assert_int_equal(rig_count(&rig, 1, "GetObject"), 0);
        rig_close(&rig);
    }
}

static void bytes_that_are_not_the_sources_by_its_checksum_are_not_stored(void **state)
{
    static const char wrong[] = ",\"checksum\":\"crc64nvme:AAAAAAAAAAA=\"";

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig;
        char json[300];
        rig_open(&rig, true, RELAY, NULL);
        (void)snprintf(json,
                       sizeof(json),
                       "{\"bucket\":\"src\",\"key\":\"k\",\"size\":%s,\"seed\":1%s}",
                       i == 0 ? "4000" : "20000000", /* buffered, streamed */
                       wrong);
        rig_put(&rig, 0, json);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_FAILED);
        assert_int_equal(rig.told[0].r.code, XF_E_CHECKSUM);
        assert_int_equal(rig_dst_size(&rig, "k"), UINT64_MAX);
        rig_close(&rig);
    }
    struct rig rig;
    rig_open(&rig, true, RELAY, NULL);
    char json[300];
    (void)snprintf(json, sizeof(json), BIG "%s}", wrong);
    rig_put(&rig, 0, json);
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_FAILED);
    assert_int_equal(rig.upload.r.code, XF_E_CHECKSUM);
    assert_int_equal(rig_dst_size(&rig, "big"), UINT64_MAX);
    rig_close(&rig);
}

static void an_echo_of_other_bytes_is_no_success(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    put_small(&rig, "");
    rig_faults(&rig,
               "[{\"op\":\"PutObject\",\"count\":1,\"action\":{\"headers\":{\"" CRC64
               "\":\"AAAAAAAAAAA=\"},\"corrupt\":true}},"
               "{\"op\":\"HeadObject\",\"count\":1,\"action\":{\"headers\":{\"" CRC64
               "\":\"AAAAAAAAAAA=\"}}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
    assert_int_equal(rig_count(&rig, 1, "PutObject"), 2);
    rig_must_be_equal(&rig, true);
    rig_put(&rig, 0, BIG "}");
    rig_faults(&rig,
               "[{\"op\":\"UploadPart\",\"query\":\"partNumber=2\",\"count\":1,\"action\":{"
               "\"headers\":{\"" CRC64 "\":\"AAAAAAAAAAA=\"},\"corrupt\":true}}]");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig_count(&rig, 1, "UploadPart"), 5);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

/* A store that spoils the object after it answered is found out by what it tells afterwards. */
static void another_checksum_after_complete_is_no_success(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    rig_put(&rig, 0, BIG "}");
    rig_faults(&rig,
               "[{\"op\":\"HeadObject\",\"bucket\":\"dst\",\"action\":{\"headers\":{\"" CRC64
               "\":\"AAAAAAAAAAA=\"}}}]");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_FAILED);
    assert_int_equal(rig.upload.r.code, XF_E_CHECKSUM);
    rig_close(&rig);
}

static void a_server_that_refuses_them_is_asked_once(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    rig_faults(
        &rig,
        "[" SUM_OF("[\"PutObject\",\"UploadPart\"]") ","
                                                     "{\"op\":\"CreateMultipartUpload\",\"header\":"
                                                     "\"x-amz-checksum-algorithm\","
                                                     "\"action\":{\"status\":501,\"code\":"
                                                     "\"NotImplemented\"}}]");
    put_small(&rig, "");
    run_small(&rig);
    assert_int_equal(rig.told[0].r.attempts, 1); /* nothing was spent on it */
    assert_int_equal(rig_count_status(&rig, 1, "PutObject", "400"), 1);
    assert_true(rig_has_notice(&rig, "no_checksums"));
    run_small(&rig);
    assert_int_equal(rig_count_status(&rig, 1, "PutObject", "400"), 1);
    rig_put(&rig, 0, BIG "}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig.opened.sum, XF_SUM_NONE);
    assert_int_equal(rig_count_status(&rig, 1, "CreateMultipartUpload", "501"), 0);
    assert_int_equal(rig.upload.r.level, XF_LEVEL_ETAG);
    rig_must_be_equal(&rig, true);
    assert_int_equal(rig.n_notices, 1);
    rig_close(&rig);
}

static void an_upload_whose_algorithm_is_refused_is_made_without(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    rig_faults(&rig,
               "[{\"op\":\"CreateMultipartUpload\",\"header\":\"x-amz-checksum-algorithm\","
               "\"action\":{\"status\":501,\"code\":\"NotImplemented\"}}]");
    rig_put(&rig, 0, BIG "}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig_count_status(&rig, 1, "CreateMultipartUpload", "501"), 1);
    assert_true(rig.parts[0].has_md5);
    assert_true(rig_has_notice(&rig, "no_checksums"));
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

/* Other refusals are not blamed on the checksums. */
static void a_refusal_for_another_reason_is_told_as_it_is(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    rig_faults(&rig,
               "[{\"op\":\"PutObject\",\"action\":{\"status\":400,\"code\":\"InvalidRequest\"}}]");
    put_small(&rig, "");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_FAILED);
    assert_int_equal(rig.told[0].r.code, XF_E_BAD_REQUEST);
    assert_int_equal(rig.n_notices, 0);
    rig_close(&rig);
}

static void a_server_that_ignores_them_is_judged_by_etags(void **state)
{
    static const char ignores[] =
        "[{\"op\":[\"PutObject\",\"UploadPart\",\"HeadObject\"],\"action\":{\"headers\":{\"" CRC64
        "\":null}}},{\"op\":\"CreateMultipartUpload\",\"action\":{\"headers\":{"
        "\"x-amz-checksum-algorithm\":null}}}]";

    (void)state;
    struct rig rig;
    rig_open(&rig, true, RELAY, NULL);
    rig_faults(&rig, ignores);
    put_small(&rig, "");
    run_small(&rig);
    assert_true(rig_has_notice(&rig, "no_checksums"));
    rig_put(&rig, 0, BIG "}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig.opened.sum, XF_SUM_NONE);
    assert_true(rig.parts[0].has_md5);
    assert_int_equal(rig.upload.r.level, XF_LEVEL_ETAG);
    assert_int_equal(rig.n_notices, 1);
    rig_close(&rig);
}

/* Parts that are streamed carry no checksum of their own: who sums them, but does not say so, gets
 * them again, and from then on with an MD5. */
static void a_stream_whose_sum_is_not_told_is_sent_again(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig,
             true,
             "[copy]\nif_exists = \"overwrite\"\nmode = \"relay\"\npart_size = \"20MiB\"\n",
             NULL);
    rig_faults(&rig, "[{\"op\":\"UploadPart\",\"action\":{\"headers\":{\"" CRC64 "\":null}}}]");
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":50000000,\"seed\":4}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_true(rig.parts[0].has_md5);
    assert_int_equal(rig.upload.r.level, XF_LEVEL_ETAG);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void a_source_that_tells_none_when_asked_is_not_asked_again(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, true, RELAY, NULL);
    rig_faults(&rig,
               "[{\"op\":\"GetObject\",\"header\":\"x-amz-checksum-mode\",\"action\":{"
               "\"status\":400,\"code\":\"InvalidArgument\"}},"
               "{\"op\":\"HeadObject\",\"header\":\"x-amz-checksum-mode\",\"action\":{"
               "\"status\":403,\"code\":\"AccessDenied\"}}]");
    put_small(&rig, "");
    run_small(&rig);
    assert_int_equal(rig_count_status(&rig, 0, "GetObject", "400"), 1);
    assert_true(rig_has_notice(&rig, "no_source_checksums"));
    rig_put(&rig, 0, BIG "}");
    assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
    assert_int_equal(rig_count_status(&rig, 0, "HeadObject", "403"), 0);
    assert_int_equal(rig_count_status(&rig, 1, "HeadObject", "403"), 1);
    rig_close(&rig);
}

/* Copies by the service itself: what both sides tell is compared where etags cannot be. */
static void checksums_of_both_sides_prove_a_copy_whose_etags_differ(void **state)
{
    static const char *const verify[] = {"etag", "checksum"};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct rig rig;
        char job[200];
        (void)snprintf(job,
                       sizeof(job),
                       "[copy]\nif_exists = \"overwrite\"\npart_size = \"5MiB\"\n"
                       "[verify]\nmode = \"%s\"\n",
                       verify[i]);
        rig_open(&rig, false, job, NULL);
        rig_put(&rig, 0, BIG ",\"checksum\":\"crc64nvme\"}");
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        assert_int_equal(rig.upload.r.mode, XF_MODE_SERVER);
        assert_int_equal(rig.upload.r.level, XF_LEVEL_CHECKSUM);
        assert_int_equal(rig_count(&rig, 0, "GetObject"), 0);
        rig_close(&rig);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(relayed_writes_carry_a_checksum),
        cmocka_unit_test(the_sources_own_algorithm_is_kept),
        cmocka_unit_test(bytes_that_are_not_the_sources_by_its_checksum_are_not_stored),
        cmocka_unit_test(an_echo_of_other_bytes_is_no_success),
        cmocka_unit_test(another_checksum_after_complete_is_no_success),
        cmocka_unit_test(a_server_that_refuses_them_is_asked_once),
        cmocka_unit_test(an_upload_whose_algorithm_is_refused_is_made_without),
        cmocka_unit_test(a_refusal_for_another_reason_is_told_as_it_is),
        cmocka_unit_test(a_server_that_ignores_them_is_judged_by_etags),
        cmocka_unit_test(a_stream_whose_sum_is_not_told_is_sent_again),
        cmocka_unit_test(a_source_that_tells_none_when_asked_is_not_asked_again),
        cmocka_unit_test(checksums_of_both_sides_prove_a_copy_whose_etags_differ),
    };
    return xf_test_run("agent_sum", tests, NULL, NULL);
}
