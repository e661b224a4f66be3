/*
 * result_test.c - the first final outcome stays, repeats change nothing, texts are cut, damage is
 * refused.
 */
#include "proto/pack.h"
#include "proto/result.h"
#include "tests/lib/test.h"

static const struct xf_result copied = {
    .outcome = XF_OUTCOME_COPIED, .attempts = 3, .size_bytes = 100, .through_bytes = 250};

static void first_outcome_stays(void **state)
{
    const struct xf_result failed = {
        .outcome = XF_OUTCOME_FAILED, .code = XF_E_DENIED, .attempts = 9};
    XF_AUTO_RESULT_SET s = {0};
    struct xf_result_counts c;

    (void)state;
    xf_result_set_init(&s, 2);
    assert_true(xf_result_set_put(&s, 1, &copied));
    assert_false(xf_result_set_put(&s, 1, &failed));
    assert_int_equal(s.at[1].outcome, XF_OUTCOME_COPIED);
    assert_int_equal(s.at[1].attempts, 3);
    xf_result_set_count(&s, &c);
    assert_int_equal(c.by_outcome[XF_OUTCOME_PENDING], 1);
    assert_int_equal(c.by_outcome[XF_OUTCOME_COPIED], 1);
    assert_int_equal(c.copied_bytes, 100);
    assert_int_equal(c.through_bytes, 250);
    assert_int_equal(c.retries, 2);
}

static void delta_merged_twice_adds_once(void **state)
{
    XF_AUTO_RESULT_SET s = {0};
    XF_AUTO_RESULT_SET d = {0};
    struct xf_result_counts added;

    (void)state;
    xf_result_set_init(&s, 3);
    xf_result_set_init(&d, 3);
    assert_true(xf_result_set_put(&d, 2, &copied));
    assert_true(xf_result_set_put(&d, 0, &(struct xf_result){.attempts = 2}));
    xf_result_set_merge(&s, &d, &added);
    assert_int_equal(added.by_outcome[XF_OUTCOME_COPIED], 1);
    assert_int_equal(added.attempts, 5);
    assert_int_equal(added.retries, 3);
    xf_result_set_merge(&s, &d, &added);
    assert_int_equal(added.by_outcome[XF_OUTCOME_COPIED], 0);
    assert_int_equal(added.copied_bytes, 0);
    assert_int_equal(added.attempts, 0);
    assert_int_equal(added.through_bytes, 0);
}

static void attempts_of_a_pending_object_only_grow(void **state)
{
    XF_AUTO_RESULT_SET s = {0};
    XF_AUTO_RESULT_SET d = {0};
    struct xf_result_counts added;

    (void)state;
    xf_result_set_init(&s, 1);
    assert_true(xf_result_set_put(&s, 0, &(struct xf_result){.attempts = 5, .through_bytes = 10}));
    xf_result_set_init(&d, 1);
    assert_true(xf_result_set_put(&d, 0, &copied));
    xf_result_set_merge(&s, &d, &added);
    assert_int_equal(s.at[0].attempts, 5);
    assert_int_equal(added.attempts, 0);
    assert_int_equal(added.through_bytes, 240);
    assert_int_equal(added.by_outcome[XF_OUTCOME_COPIED], 1);
}

static void texts_are_cut_at_their_caps(void **state)
{
    static char text[2000];
    XF_AUTO_RESULT_SET s = {0};
    XF_AUTO_RESULT_SET back = {0};
    XF_AUTO_BUF b = {0};
    struct xf_err err = {0};
    struct xf_result r = {.outcome = XF_OUTCOME_FAILED, .code = XF_E_SERVER};

    (void)state;
    memset(text, 'm', sizeof(text));
    r.message = xf_str_n(text, sizeof(text));
    r.s3_code = xf_str_n(text, sizeof(text));
    xf_buf_init(&b, 0);
    xf_result_set_init(&s, 1);
    xf_result_set_init(&back, 0);
    assert_true(xf_result_set_put(&s, 0, &r));
    assert_int_equal(s.at[0].message.len, XF_RESULT_MSG_MAX);
    assert_int_equal(s.at[0].s3_code.len, XF_S3_CODE_MAX);
    xf_result_set_encode(&s, &b);
    xf_result_set_fini(&back);
    assert_int_equal(xf_result_set_decode(xf_buf_view(&b), 1, &back, &err), XF_OK);
}

static void full_result_of_failures_stays_within_its_bytes(void **state)
{
    static char text[XF_OBJECT_VERSION_MAX];
    XF_AUTO_RESULT_SET s = {0};
    XF_AUTO_BUF b = {0};
    const struct xf_result r = {.outcome = XF_OUTCOME_FAILED,
                                .code = XF_E_SERVER,
                                .etag = {text, XF_ETAG_MAX},
                                .source_etag = {text, XF_ETAG_MAX},
                                .version_id = {text, XF_OBJECT_VERSION_MAX},
                                .message = {text, XF_RESULT_MSG_MAX},
                                .s3_code = {text, XF_S3_CODE_MAX},
                                .size_bytes = UINT64_MAX};

    (void)state;
    memset(text, 'x', sizeof(text));
    xf_buf_init(&b, XF_RESULT_BYTES_MAX);
    xf_result_set_init(&s, XF_MANIFEST_MAX);
    for (uint32_t i = 0; i < XF_MANIFEST_MAX; i++) {
        assert_true(xf_result_set_put(&s, i, &r));
    }
    xf_result_set_encode(&s, &b);
    assert_false(b.full);
}

static void empty_input_is_an_empty_result(void **state)
{
    XF_AUTO_RESULT_SET s = {0};
    struct xf_result_counts c;
    struct xf_err err = {0};

    (void)state;
    xf_result_set_init(&s, 0);
    xf_result_set_fini(&s);
    assert_int_equal(xf_result_set_decode(XF_STR_EMPTY, 5, &s, &err), XF_OK);
    xf_result_set_count(&s, &c);
    assert_int_equal(c.by_outcome[XF_OUTCOME_PENDING], 5);
}

#define ZEROS8 "\0\0\0\0\0\0\0\0"

static void damaged_results_are_refused(void **state)
{
    static const struct {
        const char *bytes;
        size_t len;
    } bad[] = {
        {"R", 1},
        {"R\x02\x00", 3},                                        /* another version */
        {"R\x01\x06", 3},                                        /* more records than objects */
        {"R\x01\x00\x00", 4},                                    /* a byte too many */
        {"R\x01\x01\x05\x01" ZEROS8 ZEROS8, 21},                 /* index 5 of 5 */
        {"R\x01\x01\x00\x06" ZEROS8 ZEROS8, 21},                 /* unknown outcome */
        {"R\x01\x01\x00\x00" ZEROS8 ZEROS8, 21},                 /* a record that says nothing */
        {"R\x01\x01\x00\x01\x00\x00\x00\x7f" ZEROS8 ZEROS8, 25}, /* unknown code */
    };
    struct xf_result_set s;
    struct xf_err err = {0};

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        assert_int_equal(xf_result_set_decode(xf_str_n(bad[i].bytes, bad[i].len), 5, &s, &err),
                         XF_E_PROTO);
        assert_int_equal(s.n, 5);
        assert_int_equal(s.at[0].outcome, XF_OUTCOME_PENDING);
        xf_result_set_fini(&s);
    }
}

static void names_are_those_of_reports(void **state)
{
    (void)state;
    assert_string_equal(xf_outcome_name(XF_OUTCOME_VANISHED), "vanished");
    assert_string_equal(xf_skip_name(XF_SKIP_EXISTS), "exists");
    assert_string_equal(xf_level_name(XF_LEVEL_CHECKSUM), "checksum");
    assert_string_equal(xf_mode_name(XF_MODE_RELAY), "relay");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_outcome_stays),
        cmocka_unit_test(delta_merged_twice_adds_once),
        cmocka_unit_test(attempts_of_a_pending_object_only_grow),
        cmocka_unit_test(texts_are_cut_at_their_caps),
        cmocka_unit_test(full_result_of_failures_stays_within_its_bytes),
        cmocka_unit_test(empty_input_is_an_empty_result),
        cmocka_unit_test(damaged_results_are_refused),
        cmocka_unit_test(names_are_those_of_reports),
    };

    return xf_test_run("result", tests, NULL, NULL);
}
