/*
 * status_test.c - the forms that people and scripts rely on: status, show, report.
 */
#include "common/job/spec.h"
#include "coordinator/report.h"
#include "coordinator/status.h"
#include "tests/lib/test.h"

static struct xf_job_row example(void)
{
    return (struct xf_job_row){
        .id = 7,
        .public_id = XF_STR_LIT("j-abc"),
        .name = XF_STR_LIT("logs"),
        .priority = 5,
        .state = XF_JOB_RUNNING,
        .phase = XF_STR_LIT("copy"),
        .reason = XF_STR_EMPTY,
        .exit_code = -1,
        .pass_no = 1,
        .n = {.keys_returned = 100,
              .list_requests = 2,
              .listed = 90,
              .copied = 50,
              .skipped = 0,
              .in_flight = 30,
              .pending = 10,
              .bytes_listed = 9000,
              .bytes_copied = 5000,
              .bytes_through = 1,
              .dropped = 2},
        .created_ms = INT64_C(1767225600000),
    };
}

static void text_is(struct xf_json *j, const char *want)
{
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    assert_string_equal(text, want);
    xf_json_free(j);
}

static void the_status_object_has_the_design_s_form(void **state)
{
    struct xf_job_row r = example();
    const struct xf_status_live live = {.objects_s = 8,
                                        .bytes_s = 400,
                                        .agents_up = 3,
                                        .agents_fit = 2,
                                        .unfit = XF_STR_LIT("agent 'a': no")};
    (void)state;
    text_is(xf_status_job(&r, &live),
            "{\"id\":\"j-abc\",\"name\":\"logs\",\"state\":\"running\",\"phase\":\"copy\","
            "\"reason\":null,\"exit_code\":null,\"priority\":5,\"pass\":1,"
            "\"listing\":{\"complete\":true,\"keys\":100,\"requests\":2,\"shards_open\":0,"
            "\"failed\":false},"
            "\"objects\":{\"listed\":90,\"copied\":50,\"skipped\":0,\"failed\":0,\"vanished\":0,"
            "\"archived\":0,\"in_flight\":30,\"pending\":10},"
            "\"bytes\":{\"listed\":9000,\"copied\":5000,\"through_agents\":1},"
            "\"rate\":{\"objects_s\":8.0,\"bytes_s\":400.0},\"eta_s\":10.0,\"retries\":0,"
            "\"throttled\":0,\"attributes_dropped\":2,\"uploads_open\":0,"
            "\"created_at\":\"2026-01-01T00:00:00Z\","
            "\"started_at\":null,\"finished_at\":null,"
            "\"agents\":{\"up\":3,\"fit\":2,\"unfit\":\"agent 'a': no\"},\"detail\":null}");
}

static void an_ended_job_tells_its_exit_code_and_no_rate(void **state)
{
    struct xf_job_row r = example();
    const struct xf_status_live live = {.objects_s = 8, .bytes_s = 400};
    (void)state;
    r.state = XF_JOB_COMPLETED_WITH_FAILURES;
    r.exit_code = 3;
    r.reason = XF_STR_LIT("objects_failed");
    XF_AUTO(xf_json) j = xf_status_job(&r, &live);
    assert_string_equal(xf_json_get_c(j, "state", ""), "completed_with_failures");
    assert_int_equal(xf_json_get_i64(j, "exit_code", -1), 3);
    assert_string_equal(xf_json_get_c(j, "reason", ""), "objects_failed");
    assert_true(xf_json_get_f64(xf_json_get(j, "rate"), "objects_s", 1) == 0.0);
    assert_true(xf_json_is_null(j, "eta_s"));
}

static void why_a_job_waits_is_its_reason_while_the_store_has_none(void **state)
{
    struct xf_job_row r = example();
    const struct xf_status_live live = {.reason = XF_STR_LIT("no_fit_agent"),
                                        .detail = XF_STR_LIT("agent 'a': access denied")};
    (void)state;
    XF_AUTO(xf_json) j = xf_status_job(&r, &live);
    assert_string_equal(xf_json_get_c(j, "reason", ""), "no_fit_agent");
    assert_string_equal(xf_json_get_c(j, "detail", ""), "agent 'a': access denied");
    r.state = XF_JOB_COMPLETED;
    XF_AUTO(xf_json) ended = xf_status_job(&r, &live);
    assert_true(xf_json_is_null(ended, "detail"));
}

static struct xf_failure_row failure(const char *key, const char *s3_code, enum xf_code code)
{
    return (struct xf_failure_row){
        .object = {.key = xf_str_c(key)},
        .result = {.outcome = XF_OUTCOME_FAILED,
                   .code = code,
                   .http_status = 403,
                   .s3_code = xf_str_c(s3_code),
                   .message = XF_STR_LIT("no")},
    };
}

static void errors_are_grouped_by_code_with_examples(void **state)
{
    const struct xf_failure_row rows[] = {
        failure("a", "AccessDenied", XF_E_DENIED),
        failure("b", "AccessDenied", XF_E_DENIED),
        failure("c", "AccessDenied", XF_E_DENIED),
        failure("d", "AccessDenied", XF_E_DENIED),
        failure("\xff", "", XF_E_CHECKSUM),
    };
    (void)state;
    XF_AUTO(xf_json) j = xf_status_errors(rows, XF_ARRAY_LEN(rows));
    assert_int_equal(xf_json_len(j), 2);
    const struct xf_json *g = xf_json_at(j, 0);
    assert_string_equal(xf_json_get_c(g, "code", ""), "AccessDenied");
    assert_int_equal(xf_json_get_u64(g, "count", 0), 4);
    assert_int_equal(xf_json_len(xf_json_get(g, "examples")), XF_STATUS_KEYS_MAX);
    g = xf_json_at(j, 1);
    assert_string_equal(xf_json_get_c(g, "code", ""), "checksum");
    const struct xf_json *key = xf_json_at(xf_json_get(g, "examples"), 0);
    assert_string_equal(xf_json_get_c(key, "key", ""), "%FF");
    assert_string_equal(xf_json_get_c(key, "key_encoding", ""), "percent");
}

/* ---- report ---- */

static struct xf_job_spec *make_spec(void)
{
    struct xf_job_spec *spec = NULL;
    struct xf_err err;
    assert_int_equal(xf_job_spec_parse(XF_STR_LIT("[source]\nurl = \"s3://src/\"\n"
                                                  "[destination]\nurl = \"s3://dst/\"\n"),
                                       XF_STR_LIT("t.toml"),
                                       &spec,
                                       &err),
                     XF_OK);
    return spec;
}

static void c080_the_report_is_a_list_of_keys_that_can_be_fed_back(void **state)
{
    const struct xf_result_row rows[] = {
        {.object = {.key = XF_STR_LIT("good")},
         .result = {.outcome = XF_OUTCOME_COPIED, .mode = XF_MODE_SERVER, .level = XF_LEVEL_ETAG}},
        {.object = {.key = XF_STR_LIT("a,b\"c d/\nx\xff")},
         .result = {.outcome = XF_OUTCOME_FAILED,
                    .code = XF_E_DENIED,
                    .http_status = 403,
                    .s3_code = XF_STR_LIT("AccessDenied"),
                    .message = XF_STR_LIT("say \"no\", twice\n")}},
        {.object = {.key = XF_STR_LIT("cold")}, .result = {.outcome = XF_OUTCOME_ARCHIVED}},
    };
    XF_AUTO(xf_job_spec) spec = make_spec();
    struct xf_report_opts o = {.spec = spec, .only_failed = true};
    XF_AUTO_BUF out = {0};
    (void)state;
    xf_buf_init(&out, 0);
    xf_report_results(&o, rows, XF_ARRAY_LEN(rows), &out);
    assert_string_equal(out.ptr,
                        "src,a%2Cb%22c%20d/%0Ax%FF,,failed,AccessDenied,403,"
                        "\"say \"\"no\"\", twice\\n\"\n"
                        "src,cold,,failed,archived,,archived: cannot be read without a restore\n");
    xf_buf_reset(&out);
    o.only_failed = false;
    xf_report_results(&o, rows, 1, &out);
    assert_string_equal(out.ptr, "src,good,,succeeded,,200,\"copied (server, etag)\"\n");
}

static void c005_the_report_tells_what_a_copy_lacks(void **state)
{
    static const struct xf_result_row row = {
        .object = {.key = {"k", 1}},
        .result = {.outcome = XF_OUTCOME_COPIED,
                   .mode = XF_MODE_RELAY,
                   .level = XF_LEVEL_ETAG,
                   .flags = XF_RESULT_TAGS_DROPPED | XF_RESULT_CLASS_DROPPED}};
    XF_AUTO(xf_job_spec) spec = make_spec();
    struct xf_report_opts o = {.spec = spec};
    XF_AUTO_BUF out = {0};
    (void)state;
    xf_buf_init(&out, 0);
    xf_report_results(&o, &row, 1, &out);
    assert_string_equal(out.ptr,
                        "src,k,,succeeded,,200,"
                        "\"copied (relay, etag), tags dropped, storage_class dropped\"\n");
    xf_buf_reset(&out);
    o.is_json = true;
    xf_report_results(&o, &row, 1, &out);
    assert_non_null(strstr(out.ptr, "\"dropped\":[\"tags\",\"storage_class\"]"));
}

/* A page of the longest lines: nothing of a report is cut off. */
static void the_longest_page_of_a_report_fits_a_chunk(void **state)
{
    char key[XF_OBJECT_KEY_MAX];
    char text[XF_RESULT_MSG_MAX];
    struct xf_result_row *rows = xf_xcalloc(XF_MANIFEST_MAX, sizeof(*rows));
    XF_AUTO(xf_job_spec) spec = make_spec();
    XF_AUTO_BUF out = {0};

    (void)state;
    memset(key, 1, sizeof(key));
    memset(text, 1, sizeof(text));
    for (size_t i = 0; i < XF_MANIFEST_MAX; i++) {
        rows[i].object.key = xf_str_n(key, sizeof(key));
        rows[i].result = (struct xf_result){.outcome = XF_OUTCOME_FAILED,
                                            .code = XF_E_DENIED,
                                            .s3_code = xf_str_n(text, XF_S3_CODE_MAX),
                                            .message = xf_str_n(text, sizeof(text))};
    }
    xf_buf_init(&out, XF_CHUNK_MAX);
    for (int is_json = 0; is_json < 2; is_json++) {
        struct xf_report_opts o = {.spec = spec, .is_json = is_json != 0};
        xf_buf_reset(&out);
        xf_report_results(&o, rows, XF_MANIFEST_MAX, &out);
        assert_false(out.full);
    }
    xf_xfree(rows);
}

static void c019_an_incomplete_listing_has_a_line_in_the_report(void **state)
{
    const struct xf_notice_row rows[] = {
        {.code = XF_STR_LIT("listing"), .text = XF_STR_LIT("cannot list 's3://src/' to its end")},
        {.code = XF_STR_LIT("mode"), .text = XF_STR_LIT("relay")},
    };
    XF_AUTO(xf_job_spec) spec = make_spec();
    struct xf_report_opts o = {.spec = spec, .only_failed = true};
    XF_AUTO_BUF out = {0};
    (void)state;
    xf_buf_init(&out, 0);
    xf_report_notices(&o, rows, XF_ARRAY_LEN(rows), &out);
    assert_string_equal(out.ptr, "src,,,failed,listing,,cannot list 's3://src/' to its end\n");
    xf_buf_reset(&out);
    o.is_json = true;
    xf_report_notices(&o, rows, XF_ARRAY_LEN(rows), &out);
    assert_non_null(strstr(out.ptr, "\"type\":\"listing\""));
}

static void a_report_s_cursor_comes_back_as_it_was(void **state)
{
    const struct xf_report_cursor c = {.is_past_notices = true, .uploads = true, .after = 123456};
    struct xf_report_cursor back;
    XF_AUTO_BUF text = {0};
    (void)state;
    xf_buf_init(&text, 0);
    xf_report_cursor_put(&c, &text);
    assert_true(xf_report_cursor_parse(xf_buf_view(&text), &back));
    assert_true(back.is_past_notices && back.uploads);
    assert_int_equal(back.after, 123456);
    assert_true(xf_report_cursor_parse(XF_STR_EMPTY, &back));
    assert_false(back.is_past_notices);
    assert_false(xf_report_cursor_parse(XF_STR_LIT("x:1"), &back));
    assert_false(xf_report_cursor_parse(XF_STR_LIT("b:"), &back));
    assert_false(xf_report_cursor_parse(XF_STR_LIT("b:-1"), &back));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_status_object_has_the_design_s_form),
        cmocka_unit_test(an_ended_job_tells_its_exit_code_and_no_rate),
        cmocka_unit_test(why_a_job_waits_is_its_reason_while_the_store_has_none),
        cmocka_unit_test(errors_are_grouped_by_code_with_examples),
        cmocka_unit_test(c080_the_report_is_a_list_of_keys_that_can_be_fed_back),
        cmocka_unit_test(c005_the_report_tells_what_a_copy_lacks),
        cmocka_unit_test(the_longest_page_of_a_report_fits_a_chunk),
        cmocka_unit_test(c019_an_incomplete_listing_has_a_line_in_the_report),
        cmocka_unit_test(a_report_s_cursor_comes_back_as_it_was),
    };
    return xf_test_run("status", tests, NULL, NULL);
}
