/* admin_test.c - the interface under /-/: comparison, dumps, counts, limits, keys. */
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
    o.log_requests = 50;
    o.synths[o.n_synths++] = "many:1500:0-300:hex";
    server = server_start(&o);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    s3d_server_free(server);
    return 0;
}

static void has(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("no %s in %s", part, text);
    }
}

static void diff_finds_every_kind_of_difference(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/d/same", "", "x", 200);
    does(server, "PUT", "/bkt/d/missing%20one", "", "x", 200);
    does(server, "PUT", "/bkt/d/size", "", "x", 200);
    does(server, "PUT", "/bkt/d/content", "", "x", 200);
    does(server, "PUT", "/bkt/d/attr", "x-amz-meta-a: 1\r\n", "x", 200);
    does(server, "PUT", "/dst/e/same", "", "x", 200);
    does(server, "PUT", "/dst/e/extra", "", "x", 200);
    does(server, "PUT", "/dst/e/size", "", "xx", 200);
    does(server, "PUT", "/dst/e/content", "", "y", 200);
    does(server, "PUT", "/dst/e/attr", "x-amz-meta-a: 2\r\n", "x", 200);
    static const char want[] = "{\"equal\":false,\"a_count\":5,\"b_count\":5,\"missing\":{"
                               "\"count\":1,\"keys\":[\"missing%20one\"]},"
                               "\"extra\":{\"count\":1,\"keys\":[\"extra\"]},\"different\":{"
                               "\"count\":2,\"keys\":[\"content\",\"size\"]},"
                               "\"attributes\":{\"count\":1,\"keys\":[\"attr\"]}}\n";
    XF_AUTO_FREE char *here = must(server, "GET", "/-/diff?a=bkt/d/&b=dst/e/", "", "", 200);
    assert_string_equal(here, want);
    char target[128];
    (void)snprintf(
        target, sizeof(target), "/-/diff?a=bkt/d/&b=dst/e/&other=http://%s", server->address);
    XF_AUTO_FREE char *other = must(server, "GET", target, "", "", 200);
    assert_string_equal(other, want);
}

static void diff_of_equal_buckets_is_equal_here_and_elsewhere(void **state)
{
    struct s3d_opts o;
    char target[160];

    (void)state;
    server_opts(&o);
    o.synths[o.n_synths++] = "many:1500:0-300:hex";
    struct s3d_server *second = server_start(&o);
    (void)snprintf(
        target, sizeof(target), "/-/diff?a=many&b=many&other=http://%s", second->address);
    XF_AUTO_FREE char *same = must(server, "GET", target, "", "", 200);
    has(same, "\"equal\":true,\"a_count\":1500,\"b_count\":1500");
    does(second, "POST", "/-/put", "", "{\"bucket\":\"many\",\"key\":\"0\",\"body\":\"x\"}", 200);
    XF_AUTO_FREE char *more = must(server, "GET", target, "", "", 200);
    has(more, "\"extra\":{\"count\":1,\"keys\":[\"0\"]}");
    s3d_server_free(second);
    XF_AUTO_FREE char *gone = must(server, "GET", target, "", "", 400);
    has(gone, "cannot connect");
    does(server, "GET", "/-/diff?a=nope&b=many", "", "", 400);
}

static void a_dump_has_a_line_an_object(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/dump/a%20b", "", "hello", 200);
    does(server, "PUT", "/bkt/dump/c", "x-amz-tagging: a=b\r\n", "hello", 200);
    XF_AUTO_FREE char *text = must(server, "GET", "/-/dump?bucket=bkt&prefix=dump/", "", "", 200);
    has(text, "dump/a%20b 5 5d41402abc4b2a76b9719d911017c592 ");
    has(text, " \"5d41402abc4b2a76b9719d911017c592\"\ndump/c 5 ");
    XF_AUTO_FREE char *crc =
        must(server, "GET", "/-/dump?bucket=bkt&prefix=dump/&sum=crc32c", "", "", 200);
    has(crc, "dump/c 5 crc32c:9a71bb4c ");
}

static void writes_are_counted_by_key(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        does(server, "PUT", "/bkt/w/often", "", "x", 200);
    }
    does(server, "PUT", "/bkt/w/once", "x-amz-copy-source: /bkt/w/often\r\n", "", 200);
    XF_AUTO_FREE char *json = must(server, "GET", "/-/writes?bucket=bkt&prefix=w/", "", "", 200);
    assert_string_equal(json,
                        "{\"keys\":2,\"writes\":4,\"rewritten\":1,\"extra_writes\":2,\"worst\":[{"
                        "\"key\":\"w/often\",\"writes\":3}]}\n");
    XF_AUTO_FREE char *none = must(server, "GET", "/-/writes?bucket=many", "", "", 200);
    has(none, "{\"keys\":1500,\"writes\":0,");
}

static void counters_count_by_operation_and_status(void **state)
{
    (void)state;
    does(server, "POST", "/-/counters/reset", "", "", 200);
    does(server, "GET", "/bkt/no-such", "", "", 404);
    does(server, "GET", "/bkt/no-such", "", "", 404);
    does(server, "PUT", "/bkt/cnt", "", "12345", 200);
    XF_AUTO_FREE char *json = must(server, "GET", "/-/counters", "", "", 200);
    has(json, "\"GetObject\":{\"count\":2,");
    has(json, "\"status\":{\"404\":2}");
    has(json, "\"PutObject\":{\"count\":1,\"bytes_in\":5,");
}

static void uploads_are_shown_while_open(void **state)
{
    XF_AUTO_FREE char *xml = must(server, "POST", "/bkt/up?uploads", "", "", 200);
    XF_AUTO_FREE char *id = tag(xml, "UploadId");
    char target[128];

    (void)state;
    (void)snprintf(target, sizeof(target), "/bkt/up?uploadId=%s&partNumber=1", id);
    does(server, "PUT", target, "", "123", 200);
    XF_AUTO_FREE char *open = must(server, "GET", "/-/uploads", "", "", 200);
    has(open, "{\"count\":1,\"uploads\":[{\"bucket\":\"bkt\",\"key\":\"up\",");
    has(open, "\"parts\":1,\"bytes\":3}");
    (void)snprintf(target, sizeof(target), "/bkt/up?uploadId=%s", id);
    does(server, "DELETE", target, "", "", 204);
    XF_AUTO_FREE char *none = must(server, "GET", "/-/uploads", "", "", 200);
    has(none, "{\"count\":0,");
}

static void loads_and_puts_make_objects(void **state)
{
    struct reply r;

    (void)state;
    does(server,
         "POST",
         "/-/load",
         "",
         "{\"bucket\":\"loaded\",\"count\":50,\"size\":\"10\",\"pattern\":\"flat\",\"prefix\":\"p/"
         "\"}",
         200);
    XF_AUTO_FREE char *xml = must(server, "GET", "/loaded?list-type=2", "", "", 200);
    has(xml, "<KeyCount>50</KeyCount>");
    has(xml, "<Key>p/obj-000000000049</Key>");
    does(server,
         "POST",
         "/-/load",
         "",
         "{\"bucket\":\"loaded\",\"count\":50,\"size\":\"big\"}",
         400);
    does(server, "POST", "/-/load", "", "{\"bucket\":\"loaded\",\"colour\":1}", 400);
    does(server,
         "POST",
         "/-/put",
         "",
         "{\"bucket\":\"loaded\",\"key\":\"k\",\"body\":\"text\",\"headers\":{\"Content-Encoding\":"
         "\"aws-chunked\"},\"tags\":\"a=b\","
         "\"etag\":\"00112233445566778899aabbccddeeff\",\"last_modified\":1369353600}",
         200);
    ask(server, "HEAD", "/loaded/k", "", XF_STR_EMPTY, &r);
    XF_AUTO_FREE char *encoding = header(&r, "content-encoding");
    XF_AUTO_FREE char *etag = header(&r, "etag");
    XF_AUTO_FREE char *date = header(&r, "last-modified");
    assert_string_equal(encoding, "aws-chunked");
    assert_string_equal(etag, "\"00112233445566778899aabbccddeeff\"");
    assert_string_equal(date, "Fri, 24 May 2013 00:00:00 GMT");
    reply_fini(&r);
    does(server, "POST", "/-/put", "", "{\"bucket\":\"loaded\",\"key\":\"k\"}", 400);
    does(server, "POST", "/-/put", "", "{\"bucket\":\"nope\",\"key\":\"k\",\"size\":5}", 400);
}

static void latency_and_rates_change_while_it_runs(void **state)
{
    int slow = 0;

    (void)state;
    does(server, "PUT", "/bkt/lim/k", "", "x", 200);
    does(server, "POST", "/-/limits", "", "{\"latency\":\"get=80,HeadObject=0\"}", 200);
    int64_t start = xf_clock_mono_ms(xf_clock_real());
    does(server, "GET", "/bkt/lim/k", "", "", 200);
    assert_true(xf_clock_mono_ms(xf_clock_real()) - start >= 75);
    does(
        server, "POST", "/-/limits", "", "{\"latency\":\"\",\"prefix_rps\":\"2:write=1000\"}", 200);
    for (int i = 0; i < 6; i++) {
        struct reply r;
        ask(server, "GET", "/bkt/lim/k", "", XF_STR_EMPTY, &r);
        slow += r.status == 503;
        reply_fini(&r);
        does(server, "PUT", "/bkt/lim/k", "", "x", 200);
    }
    assert_in_range(slow, 3, 4); /* a burst of 2, and at most one more in that time */
    does(server, "GET", "/bkt/other/k", "", "", 404); /* another prefix has its own */
    does(server, "POST", "/-/limits", "", "{\"prefix_rps\":\"\"}", 200);
    does(server, "POST", "/-/limits", "", "{\"latency\":\"got=1\"}", 400);
    does(server, "POST", "/-/limits", "", "{\"speed\":\"1\"}", 400);
}

static void the_log_shows_the_last_requests(void **state)
{
    (void)state;
    does(server,
         "PUT",
         "/dst/logged",
         "x-amz-copy-source: /bkt/nope\r\nx-amz-copy-source-if-match: \"e\"\r\n",
         "",
         404);
    XF_AUTO_FREE char *json = must(server, "GET", "/-/requests?op=CopyObject", "", "", 200);
    has(json, "\"op\":\"CopyObject\",\"method\":\"PUT\",\"bucket\":\"dst\",\"key\":\"logged\"");
    has(json, "\"copy_source\":\"/bkt/nope\"");
    has(json, "\"status\":404");
    has(json, "\"copy_source_if_match\":\"\\\"e\\\"\"");
    assert_null(strstr(json, "GetObject"));
}

static void bad_requests_say_why(void **state)
{
    (void)state;
    XF_AUTO_FREE char *unknown = must(server, "GET", "/-/nothing", "", "", 400);
    has(unknown, "{\"error\":");
    does(server, "GET", "/-/healthz", "", "", 200);
    does(server, "GET", "/-/dump?bucket=nope", "", "", 400);
    does(server, "POST", "/-/keys", "", "{\"add\":[\"x\"]}", 400);
    does(server, "POST", "/-/keys", "", "{\"remove\":[\"x\"]}", 400);
    does(server, "POST", "/-/keys", "", "{\"add\":[\"AK:SK:TOKEN\"]}", 200);
    does(server, "POST", "/-/keys", "", "{\"remove\":[\"AK\"]}", 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(diff_finds_every_kind_of_difference),
        cmocka_unit_test(diff_of_equal_buckets_is_equal_here_and_elsewhere),
        cmocka_unit_test(a_dump_has_a_line_an_object),
        cmocka_unit_test(writes_are_counted_by_key),
        cmocka_unit_test(counters_count_by_operation_and_status),
        cmocka_unit_test(uploads_are_shown_while_open),
        cmocka_unit_test(loads_and_puts_make_objects),
        cmocka_unit_test(latency_and_rates_change_while_it_runs),
        cmocka_unit_test(the_log_shows_the_last_requests),
        cmocka_unit_test(bad_requests_say_why),
    };

    return xf_test_run("s3d_admin", tests, setup, teardown);
}
