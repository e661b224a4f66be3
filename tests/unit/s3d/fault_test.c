/* fault_test.c - rules: when they fire, and each thing that they do. */
#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "tests/unit/s3d/client.h"

#include <stdio.h>
#include <string.h>

static struct s3d_server *server;

static int setup(void **state)
{
    struct s3d_opts o;

    (void)state;
    server_opts(&o);
    o.log_requests = 100;
    server = server_start(&o);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    s3d_server_free(server);
    return 0;
}

/* One rule, alone. */
static void rule(const char *json)
{
    char all[1024];

    does(server, "DELETE", "/-/faults", "", "", 200);
    (void)snprintf(all, sizeof(all), "[%s]", json);
    does(server, "POST", "/-/faults", "", all, 200);
}

static void no_rule(void)
{
    does(server, "DELETE", "/-/faults", "", "", 200);
}

static void rules_fire_when_they_say(void **state)
{
    static const int want[] = {200, 503, 200, 503, 200, 200};

    (void)state;
    does(server, "PUT", "/bkt/k", "", "hello", 200);
    rule("{\"id\":\"a\",\"op\":\"GetObject\",\"bucket\":\"bkt\",\"key\":\"k\",\"nth\":2,\"every\":"
         "2,\"count\":2,\"action\":{\"status\":503}}");
    for (size_t i = 0; i < sizeof(want) / sizeof(want[0]); i++) {
        does(server, "GET", "/bkt/k", "", "", want[i]);
        does(server, "HEAD", "/bkt/k", "", "", 200);
    }
    XF_AUTO_FREE char *report = must(server, "GET", "/-/faults", "", "", 200);
    assert_string_equal(report, "[{\"id\":\"a\",\"matched\":6,\"fired\":2}]");
    no_rule();
}

static void
matches(const char *match, const char *method, const char *target, const char *headers, bool yes)
{
    char json[512];

    (void)snprintf(json, sizeof(json), "{%s,\"action\":{\"status\":418,\"body\":\"tea\"}}", match);
    rule(json);
    struct reply r;
    ask(server, method, target, headers, XF_STR_EMPTY, &r);
    assert_int_equal(r.status == 418, yes);
    reply_fini(&r);
}

static void rules_match_what_they_name(void **state)
{
    (void)state;
    matches("\"method\":\"PUT\"", "PUT", "/bkt/a", "", true);
    matches("\"method\":\"PUT\"", "GET", "/bkt/a", "", false);
    matches("\"bucket\":\"dst\"", "GET", "/bkt/a", "", false);
    matches("\"key\":\"a/b\"", "GET", "/bkt/a%2Fb", "", true);
    matches("\"key\":\"a/b\"", "GET", "/bkt/a/bc", "", false);
    matches("\"key_prefix\":\"a/\"", "GET", "/bkt/a/bc", "", true);
    matches("\"key_glob\":\"*/b?\"", "GET", "/bkt/x/y/bc", "", true);
    matches("\"key_glob\":\"*/b?\"", "GET", "/bkt/x/y/b", "", false);
    matches("\"query\":\"prefix=z\"", "GET", "/bkt?list-type=2&prefix=zz", "", true);
    matches("\"query\":\"prefix=z\"", "GET", "/bkt?list-type=2&prefix=y", "", false);
    matches("\"header\":\"x-amz-acl\"", "PUT", "/bkt/a", "x-amz-acl: private\r\n", true);
    matches("\"header\":\"x-amz-acl: public\"", "PUT", "/bkt/a", "x-amz-acl: private\r\n", false);
    matches("\"op\":[\"CopyObject\",\"HeadObject\"]", "HEAD", "/bkt/a", "", true);
    matches("\"op\":[\"CopyObject\",\"HeadObject\"]",
            "PUT",
            "/bkt/a",
            "x-amz-copy-source: x/y\r\n",
            true);
    matches("\"op\":[\"CopyObject\",\"HeadObject\"]", "GET", "/bkt/a", "", false);
    matches("\"percent\":0", "GET", "/bkt/a", "", false);
    matches("\"percent\":100", "GET", "/bkt/a", "", true);
    no_rule();
}

static void bad_rules_say_what_is_wrong(void **state)
{
    static const char *const bad[][2] = {
        {"{", "1"},
        {"{}", "array"},
        {"[{\"op\":\"Nope\",\"action\":{}}]", "Nope"},
        {"[{\"op\":\"GetObject\"}]", "action"},
        {"[{\"action\":{\"colour\":1}}]", "colour"},
        {"[{\"action\":{\"status\":\"503\"}}]", "status"},
        {"[{\"action\":{\"status\":20}}]", "status"},
        {"[{\"keys\":\"x\",\"action\":{}}]", "keys"},
        {"[{\"nth\":0,\"action\":{}}]", "nth"},
        {"[{\"action\":{\"end\":\"bang\"}}]", "end"},
        {"[{\"action\":{\"list\":{\"order\":\"none\"}}}]", "order"},
        {"[{\"action\":{\"put\":{\"bucket\":\"b\"}}}]", "required"},
        {"[{\"action\":{\"headers\":{\"A\":1}}}]", "header"},
        {"[{\"action\":{\"reply_lost\":1}}]", "reply_lost"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        XF_AUTO_FREE char *why = must(server, "POST", "/-/faults", "", bad[i][0], 400);
        if (strstr(why, bad[i][1]) == NULL) {
            fail_msg("%s: %s", bad[i][0], why);
        }
    }
    XF_AUTO_FREE char *left = must(server, "GET", "/-/faults", "", "", 200);
    assert_string_equal(left, "[]");
}

static void answers_are_replaced(void **state)
{
    struct reply r;

    (void)state;
    rule("{\"op\":\"CopyObject\",\"action\":{\"status\":200,\"code\":\"InternalError\",\"message\":"
         "\"m\",\"pad\":3}}");
    does(server, "PUT", "/bkt/k", "", "hello", 200);
    XF_AUTO_FREE char *xml =
        must(server, "PUT", "/dst/copy", "x-amz-copy-source: /bkt/k\r\n", "", 200);
    assert_memory_equal(xml, "   <?xml", 8);
    XF_AUTO_FREE char *code = tag(xml, "Code");
    assert_string_equal(code, "InternalError");
    does(server, "HEAD", "/dst/copy", "", "", 404); /* the work was not done */
    rule("{\"op\":\"CopyObject\",\"action\":{\"code\":\"SlowDown\",\"work\":true,\"headers\":{"
         "\"Retry-After\":\"5\",\"Server\":null}}}");
    ask(server, "PUT", "/dst/copy", "x-amz-copy-source: /bkt/k\r\n", XF_STR_EMPTY, &r);
    assert_int_equal(r.status, 503);
    XF_AUTO_FREE char *retry = header(&r, "retry-after");
    XF_AUTO_FREE char *name = header(&r, "server");
    assert_string_equal(retry, "5");
    assert_string_equal(name, "");
    reply_fini(&r);
    does(server, "HEAD", "/dst/copy", "", "", 200); /* it was done here */
    rule("{\"op\":\"HeadBucket\",\"action\":{\"status\":301,\"headers\":{\"x-amz-bucket-region\":"
         "\"eu-central-1\"},\"body\":\"\"}}");
    ask(server, "HEAD", "/bkt", "", XF_STR_EMPTY, &r);
    assert_int_equal(r.status, 301);
    XF_AUTO_FREE char *region = header(&r, "x-amz-bucket-region");
    assert_string_equal(region, "eu-central-1");
    reply_fini(&r);
    rule("{\"action\":{\"status\":400,\"code\":\"AuthorizationHeaderMalformed\",\"extra_xml\":\"<"
         "Region>ap-1</Region>\"}}");
    XF_AUTO_FREE char *extra = must(server, "GET", "/bkt?list-type=2", "", "", 400);
    assert_non_null(strstr(extra, "<Region>ap-1</Region>"));
    no_rule();
}

static void answers_are_cut_reset_and_lost(void **state)
{
    static const struct {
        const char *action;
        int status;
        size_t body;
        bool complete;
        bool reset;
    } cases[] = {
        {"\"cut_after\":2", 200, 2, false, false},
        {"\"cut_after\":-1", 200, 4, false, false},
        {"\"cut_after\":2,\"end\":\"rst\"", 200, 2, false, true},
        {"\"cut_after\":2,\"chunked\":true", 200, 2, true, false},
        {"\"chunked\":true", 200, 5, true, false},
        {"\"content_length\":3", 200, 5, false, false},
        {"\"extra\":4", 200, 9, false, false},
        {"\"pad\":4", 200, 9, true, false},
        {"\"pad\":4,\"pad_ms\":1", 200, 9, true, false},
        {"\"drip\":2,\"drip_ms\":1", 200, 5, true, false},
        {"\"reply_lost\":true", 0, 0, false, false},
        {"\"reply_lost\":true,\"end\":\"rst\"", 0, 0, false, true},
    };

    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/k", "", "hello", 200);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char json[256];
        struct reply r;
        (void)snprintf(
            json, sizeof(json), "{\"op\":\"GetObject\",\"action\":{%s}}", cases[i].action);
        rule(json);
        ask(server, "GET", "/bkt/k", "", XF_STR_EMPTY, &r);
        if (r.status != cases[i].status || r.body.len != cases[i].body ||
            r.complete != cases[i].complete || r.reset != cases[i].reset) {
            fail_msg("%s: status %d, %zu bytes, complete %d, reset %d",
                     cases[i].action,
                     r.status,
                     r.body.len,
                     r.complete,
                     r.reset);
        }
        reply_fini(&r);
    }
}

static void a_lost_reply_has_done_its_work(void **state)
{
    struct reply r;

    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/k", "", "hello", 200);
    rule("{\"op\":\"DeleteObject\",\"action\":{\"reply_lost\":true}}");
    ask(server, "DELETE", "/bkt/k", "", XF_STR_EMPTY, &r);
    assert_int_equal(r.status, 0);
    reply_fini(&r);
    no_rule();
    does(server, "HEAD", "/bkt/k", "", "", 404);
}

static void a_request_body_is_cut_after_n_bytes(void **state)
{
    struct reply r;
    XF_AUTO_FREE char *body = fill('b', 600);

    (void)state;
    rule("{\"op\":\"PutObject\",\"count\":1,\"action\":{\"read_cut\":100,\"end\":\"rst\"}}");
    ask(server, "PUT", "/bkt/cut", "", xf_str_c(body), &r);
    assert_int_equal(r.status, 0);
    reply_fini(&r);
    does(server, "HEAD", "/bkt/cut", "", "", 404);
    does(server, "PUT", "/bkt/cut", "", body, 200);
    no_rule();
}

static void stalls_and_delays_take_their_time(void **state)
{
    static const char *const rules[] = {
        "{\"op\":\"GetObject\",\"action\":{\"delay_ms\":60}}",
        "{\"op\":\"GetObject\",\"action\":{\"stall_after\":-1,\"stall_ms\":60}}",
        "{\"op\":\"GetObject\",\"action\":{\"stall_after\":2,\"stall_ms\":60}}",
    };

    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/s", "", "hello", 200);
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
        rule(rules[i]);
        int64_t start = xf_clock_mono_ms(xf_clock_real());
        XF_AUTO_FREE char *got = must(server, "GET", "/bkt/s", "", "", 200);
        assert_string_equal(got, "hello");
        assert_true(xf_clock_mono_ms(xf_clock_real()) - start >= 55);
    }
    no_rule();
}

static void c001_a_copy_source_is_ignored(void **state)
{
    struct reply r;

    (void)state;
    does(server, "PUT", "/bkt/five", "", "hello", 200);
    rule("{\"op\":\"CopyObject\",\"action\":{\"ignore_copy_source\":true}}");
    ask(server, "PUT", "/dst/five", "x-amz-copy-source: /bkt/five\r\n", XF_STR_EMPTY, &r);
    assert_int_equal(r.status, 200);
    assert_int_equal(r.body.len, 0);
    XF_AUTO_FREE char *etag = header(&r, "etag");
    assert_string_equal(etag, "\"d41d8cd98f00b204e9800998ecf8427e\"");
    reply_fini(&r);
    XF_AUTO_FREE char *stored = must(server, "GET", "/dst/five", "", "", 200);
    assert_string_equal(stored, "");
    no_rule();
}

static void c045_a_provider_compresses_on_the_way(void **state)
{
    struct reply r;
    XF_AUTO_FREE char *plain = fill('p', 3893);

    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/gz", "", plain, 200);
    rule("{\"op\":\"GetObject\",\"action\":{\"gzip\":true,\"chunked\":true}}");
    ask(server, "GET", "/bkt/gz", "", XF_STR_EMPTY, &r);
    XF_AUTO_FREE char *encoding = header(&r, "content-encoding");
    XF_AUTO_FREE char *length = header(&r, "content-length");
    assert_string_equal(encoding, "gzip");
    assert_string_equal(length, "");
    assert_true(r.complete && r.body.len > 10 && r.body.len < 200);
    assert_memory_equal(r.body.ptr, "\x1f\x8b\x08", 3);
    reply_fini(&r);
    no_rule();
}

static void work_is_spoiled_as_asked(void **state)
{
    struct reply r;

    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/src", "", "hello", 200);
    rule("{\"op\":\"PutObject\",\"action\":{\"store_size\":2}}");
    does(server, "PUT", "/bkt/half", "", "hello", 200);
    rule("{\"op\":\"PutObject\",\"action\":{\"corrupt\":true}}");
    ask(server, "PUT", "/bkt/bad", "", XF_STR_LIT("hello"), &r);
    XF_AUTO_FREE char *etag = header(&r, "etag");
    assert_string_equal(etag, "\"5d41402abc4b2a76b9719d911017c592\"");
    reply_fini(&r);
    rule("{\"op\":\"PutObject\",\"action\":{\"kms\":true}}");
    ask(server, "PUT", "/bkt/kms", "", XF_STR_LIT("hello"), &r);
    XF_AUTO_FREE char *kms = header(&r, "x-amz-server-side-encryption");
    XF_AUTO_FREE char *other = header(&r, "etag");
    assert_string_equal(kms, "aws:kms");
    assert_string_not_equal(other, "\"5d41402abc4b2a76b9719d911017c592\"");
    reply_fini(&r);
    rule("{\"op\":\"HeadObject\",\"action\":{\"head_size\":6291456,\"etag\":\"W/\\\"abc\\\"\"}}");
    ask(server, "HEAD", "/bkt/src", "", XF_STR_EMPTY, &r);
    XF_AUTO_FREE char *size = header(&r, "content-length");
    XF_AUTO_FREE char *weak = header(&r, "etag");
    assert_string_equal(size, "6291456");
    assert_string_equal(weak, "W/\"abc\"");
    reply_fini(&r);
    rule("{\"action\":{\"ignore_conditions\":true}}");
    does(server, "GET", "/bkt/src", "If-Match: \"0\"\r\n", "", 200);
    no_rule();
    XF_AUTO_FREE char *half = must(server, "GET", "/bkt/half", "", "", 200);
    XF_AUTO_FREE char *bad = must(server, "GET", "/bkt/bad", "", "", 200);
    assert_string_equal(half, "he");
    assert_string_equal(bad, "helln");
}

/* Part 1 of an upload, which ends with it: as the last part it may have any size. */
static void stored_part(const char *headers, const char *body, const char *want)
{
    char target[128];
    char parts[160];

    XF_AUTO_FREE char *xml = must(server, "POST", "/dst/parts?uploads", "", "", 200);
    XF_AUTO_FREE char *id = tag(xml, "UploadId");
    (void)snprintf(target, sizeof(target), "/dst/parts?partNumber=1&uploadId=%s", id);
    does(server, "PUT", target, headers, body, 200);
    (void)snprintf(target, sizeof(target), "/dst/parts?uploadId=%s", id);
    (void)snprintf(parts,
                   sizeof(parts),
                   "<CompleteMultipartUpload><Part><PartNumber>1</PartNumber><ETag>"
                   "5d41402abc4b2a76b9719d911017c592</ETag></Part></CompleteMultipartUpload>");
    does(server, "POST", target, "", parts, 200);
    XF_AUTO_FREE char *stored = must(server, "GET", "/dst/parts", "", "", 200);
    assert_string_equal(stored, want);
}

static void parts_are_spoiled_as_asked(void **state)
{
    const char *copied = "x-amz-copy-source: /bkt/whole\r\n";

    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/whole", "", "hello", 200);
    rule("{\"op\":[\"UploadPart\",\"UploadPartCopy\"],\"action\":{\"store_size\":2}}");
    stored_part("", "hello", "he");
    stored_part(copied, "", "he");
    rule("{\"op\":[\"UploadPart\",\"UploadPartCopy\"],\"action\":{\"corrupt\":true}}");
    stored_part("", "hello", "helln");
    stored_part(copied, "", "helln");
    no_rule();
}

static void c004_and_c017_a_source_changes_meanwhile(void **state)
{
    (void)state;
    no_rule();
    does(server, "PUT", "/bkt/moving", "", "AAAA", 200);
    rule("{\"op\":\"GetObject\",\"nth\":2,\"count\":1,\"action\":{\"put\":{\"bucket\":\"bkt\","
         "\"key\":\"moving\",\"body\":\"BBBB\"}}}");
    XF_AUTO_FREE char *first = must(server, "GET", "/bkt/moving", "", "", 200);
    XF_AUTO_FREE char *second = must(server, "GET", "/bkt/moving", "", "", 200);
    assert_string_equal(first, "AAAA");
    assert_string_equal(second, "BBBB");
    rule("{\"op\":\"CopyObject\",\"action\":{\"delete\":{\"bucket\":\"bkt\",\"key\":\"moving\"}}}");
    does(server, "PUT", "/dst/moving", "x-amz-copy-source: /bkt/moving\r\n", "", 404);
    no_rule();
}

static void random_faults_come_at_their_rate(void **state)
{
    int failed = 0;

    (void)state;
    does(server, "PUT", "/bkt/rnd", "", "hello", 200);
    does(server, "POST", "/-/limits", "", "{\"fault_rate\":\"503=20\"}", 200);
    for (int i = 0; i < 500; i++) {
        struct reply r;
        ask(server, "GET", "/bkt/rnd", "", XF_STR_EMPTY, &r);
        assert_true(r.status == 200 || r.status == 503);
        failed += r.status == 503;
        reply_fini(&r);
    }
    does(server, "POST", "/-/limits", "", "{\"fault_rate\":\"\"}", 200);
    assert_in_range(failed, 50, 150); /* seeded: the same on each run */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rules_fire_when_they_say),
        cmocka_unit_test(rules_match_what_they_name),
        cmocka_unit_test(bad_rules_say_what_is_wrong),
        cmocka_unit_test(answers_are_replaced),
        cmocka_unit_test(answers_are_cut_reset_and_lost),
        cmocka_unit_test(a_lost_reply_has_done_its_work),
        cmocka_unit_test(a_request_body_is_cut_after_n_bytes),
        cmocka_unit_test(stalls_and_delays_take_their_time),
        cmocka_unit_test(c001_a_copy_source_is_ignored),
        cmocka_unit_test(c045_a_provider_compresses_on_the_way),
        cmocka_unit_test(work_is_spoiled_as_asked),
        cmocka_unit_test(parts_are_spoiled_as_asked),
        cmocka_unit_test(c004_and_c017_a_source_changes_meanwhile),
        cmocka_unit_test(random_faults_come_at_their_rate),
    };

    return xf_test_run("s3d_fault", tests, setup, teardown);
}
