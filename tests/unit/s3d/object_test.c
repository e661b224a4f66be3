/* object_test.c - Put, Get, Head, Copy, Delete and tags as S3 has them. */
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
    o.objects[o.n_objects++] = "bkt/5g:5368709120";
    o.objects[o.n_objects++] = "bkt/5g1:5368709121";
    o.objects[o.n_objects++] = "bkt/12m:12MiB:part=5MiB";
    server = server_start(&o);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    s3d_server_free(server);
    return 0;
}

static void header_is(const char *method,
                      const char *target,
                      const char *headers,
                      int status,
                      const char *name,
                      const char *want)
{
    struct reply r;

    ask(server, method, target, headers, XF_STR_EMPTY, &r);
    assert_int_equal(r.status, status);
    assert_true(r.complete);
    XF_AUTO_FREE char *value = header(&r, name);
    assert_string_equal(value, want);
    reply_fini(&r);
}

static void body_is(const char *target, const char *headers, int status, const char *want)
{
    XF_AUTO_FREE char *got = must(server, "GET", target, headers, "", status);

    assert_string_equal(got, want);
}

static void a_put_comes_back_with_all_it_carried(void **state)
{
    static const char headers[] =
        "Content-Type: text/x\r\nCache-Control: max-age=3\r\nContent-Encoding: aws-chunked,gzip\r\n"
        "Expires: Thu, 01 Dec 2033 16:00:00 GMT\r\nContent-Language: de\r\nX-Amz-Meta-Kay: v w\r\n"
        "x-amz-tagging: a=b&c=\r\nx-amz-storage-class: STANDARD_IA\r\n"
        "x-amz-website-redirect-location: /z\r\n";

    (void)state;
    does(server, "PUT", "/bkt/full", headers, "hello", 200);
    body_is("/bkt/full", "", 200, "hello");
    header_is("HEAD", "/bkt/full", "", 200, "content-type", "text/x");
    header_is("HEAD", "/bkt/full", "", 200, "cache-control", "max-age=3");
    header_is("HEAD", "/bkt/full", "", 200, "content-encoding", "gzip");
    header_is("HEAD", "/bkt/full", "", 200, "expires", "Thu, 01 Dec 2033 16:00:00 GMT");
    header_is("HEAD", "/bkt/full", "", 200, "x-amz-meta-kay", "v w");
    header_is("HEAD", "/bkt/full", "", 200, "x-amz-tagging-count", "2");
    header_is("HEAD", "/bkt/full", "", 200, "x-amz-storage-class", "STANDARD_IA");
    header_is("HEAD", "/bkt/full", "", 200, "x-amz-website-redirect-location", "/z");
    header_is("HEAD", "/bkt/full", "", 200, "content-length", "5");
    header_is("GET", "/bkt/full", "", 200, "etag", "\"5d41402abc4b2a76b9719d911017c592\"");
    does(server, "PUT", "/bkt/plain", "", "", 200);
    header_is("HEAD", "/bkt/plain", "", 200, "content-type", "binary/octet-stream");
    header_is("HEAD", "/bkt/plain", "", 200, "x-amz-storage-class", "");
    does(server, "PUT", "/bkt/ch", "Content-Encoding: aws-chunked\r\n", "x", 200);
    header_is("HEAD", "/bkt/ch", "", 200, "content-encoding", "");
}

static void ranges_are_those_of_s3(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/r", "", "0123456789", 200);
    body_is("/bkt/r", "Range: bytes=2-4\r\n", 206, "234");
    body_is("/bkt/r", "Range: bytes=7-\r\n", 206, "789");
    body_is("/bkt/r", "Range: bytes=-2\r\n", 206, "89");
    body_is("/bkt/r", "Range: bytes=5-100\r\n", 206, "56789");
    header_is("GET", "/bkt/r", "Range: bytes=5-100\r\n", 206, "content-range", "bytes 5-9/10");
    body_is("/bkt/r", "Range: bytes=4-2\r\n", 200, "0123456789");
    body_is("/bkt/r", "Range: bytes=0-1,3-4\r\n", 200, "0123456789");
    body_is("/bkt/r", "Range: lines=1-2\r\n", 200, "0123456789");
    does(server, "GET", "/bkt/r", "Range: bytes=10-\r\n", "", 416);
    does(server, "PUT", "/bkt/empty", "", "", 200);
    does(server, "GET", "/bkt/empty", "Range: bytes=0-0\r\n", "", 416);
    header_is("HEAD", "/bkt/12m?partNumber=1", "", 206, "content-length", "5242880");
    header_is("HEAD", "/bkt/12m?partNumber=3", "", 206, "content-length", "2097152");
    header_is("HEAD", "/bkt/12m?partNumber=3", "", 206, "x-amz-mp-parts-count", "3");
    does(server, "GET", "/bkt/12m?partNumber=4", "", "", 416);
    header_is("HEAD", "/bkt/r?partNumber=1", "", 206, "content-range", "bytes 0-9/10");
}

static void read_conditions_hold(void **state)
{
    static const char etag[] = "\"5d41402abc4b2a76b9719d911017c592\"";
    char line[128];

    (void)state;
    does(server, "PUT", "/bkt/c", "", "hello", 200);
    (void)snprintf(line, sizeof(line), "If-Match: %s\r\n", etag);
    does(server, "GET", "/bkt/c", line, "", 200);
    (void)snprintf(line, sizeof(line), "If-None-Match: %s\r\n", etag);
    does(server, "GET", "/bkt/c", line, "", 304);
    does(server, "GET", "/bkt/c", "If-Match: \"0\"\r\n", "", 412);
    does(server, "HEAD", "/bkt/c", "If-Match: \"0\"\r\n", "", 412);
    does(
        server, "GET", "/bkt/c", "If-Unmodified-Since: Fri, 24 May 2013 00:00:00 GMT\r\n", "", 412);
    does(server, "GET", "/bkt/c", "If-Modified-Since: Fri, 24 May 2013 00:00:00 GMT\r\n", "", 200);
}

static void write_conditions_hold(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/w", "If-None-Match: *\r\n", "1", 200);
    does(server, "PUT", "/bkt/w", "If-None-Match: *\r\n", "2", 412);
    does(server, "PUT", "/bkt/w", "If-None-Match: \"x\"\r\n", "2", 501);
    does(server, "PUT", "/bkt/w", "If-Match: \"00\"\r\n", "2", 412);
    does(server, "PUT", "/bkt/none", "If-Match: \"00\"\r\n", "2", 404);
    body_is("/bkt/w", "", 200, "1");
    does(server, "PUT", "/bkt/w", "If-Match: \"c4ca4238a0b923820dcc509a6f75849b\"\r\n", "2", 200);
    body_is("/bkt/w", "", 200, "2");
}

static void wrong_digests_store_nothing(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/d", "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\n", "hello", 200);
    does(server, "PUT", "/bkt/d2", "Content-MD5: XUFAKrxLKna5cZ2REBfFkg==\r\n", "hellO", 400);
    does(server, "PUT", "/bkt/d2", "Content-MD5: abc\r\n", "hello", 400);
    does(server, "PUT", "/bkt/d", "x-amz-checksum-crc32c: mnG7TA==\r\n", "hello", 200);
    does(server, "PUT", "/bkt/d2", "x-amz-checksum-crc32c: mnG7UA==\r\n", "hello", 400);
    does(server, "PUT", "/bkt/d2", "x-amz-checksum-crc32c: mnG7TA==\r\n", "hellO", 400);
    does(server,
         "PUT",
         "/bkt/d2",
         "x-amz-checksum-crc32c: mnG7TA==\r\nx-amz-checksum-crc32: NhCmhg==\r\n",
         "hello",
         400);
    does(server, "HEAD", "/bkt/d2", "", "", 404);
    header_is("HEAD",
              "/bkt/d",
              "x-amz-checksum-mode: ENABLED\r\n",
              200,
              "x-amz-checksum-crc32c",
              "mnG7TA==");
    header_is("HEAD", "/bkt/d", "", 200, "x-amz-checksum-crc32c", "");
}

static void unsigned_trailers_are_decoded_and_checked(void **state)
{
    static const char headers[] =
        "x-amz-content-sha256: STREAMING-UNSIGNED-PAYLOAD-TRAILER\r\nContent-Encoding: "
        "aws-chunked\r\n"
        "x-amz-decoded-content-length: 5\r\nx-amz-trailer: x-amz-checksum-crc32\r\n";

    (void)state;
    does(server,
         "PUT",
         "/bkt/t",
         headers,
         "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n",
         200);
    body_is("/bkt/t", "", 200, "hello");
    does(server,
         "PUT",
         "/bkt/t2",
         headers,
         "5\r\nhello\r\n0\r\nx-amz-checksum-crc32:NhCmiA==\r\n\r\n",
         400);
    does(server, "PUT", "/bkt/t2", headers, "5\r\nhello\r\n0\r\n\r\n", 400);
    does(server,
         "PUT",
         "/bkt/t2",
         headers,
         "4\r\nhell\r\n0\r\nx-amz-checksum-crc32:NhCmhg==\r\n\r\n",
         400);
    does(server, "HEAD", "/bkt/t2", "", "", 404);
}

static void keys_are_bytes(void **state)
{
    static const char *const targets[] = {"/bkt//lead",
                                          "/bkt/a//b",
                                          "/bkt/a/b",
                                          "/bkt/d/./e",
                                          "/bkt/d/../e",
                                          "/bkt/.",
                                          "/bkt/..",
                                          "/bkt/a%20b",
                                          "/bkt/a%2Bb",
                                          "/bkt/100%25",
                                          "/bkt/%2541",
                                          "/bkt/c%08b",
                                          "/bkt/nl%0Ax"};

    (void)state;
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        does(server, "PUT", targets[i], "", targets[i], 200);
    }
    for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
        body_is(targets[i], "", 200, targets[i]);
    }
    XF_AUTO_FREE char *longest = fill('k', 1024);
    char target[1100];
    (void)snprintf(target, sizeof(target), "/bkt/%s", longest);
    does(server, "PUT", target, "", "x", 200);
    (void)snprintf(target, sizeof(target), "/bkt/%sk", longest);
    does(server, "PUT", target, "", "x", 400);
}

static void copies_keep_replace_and_drop_what_s3_does(void **state)
{
    (void)state;
    does(server,
         "PUT",
         "/bkt/src%20a",
         "Content-Type: text/x\r\nx-amz-meta-k: v\r\nx-amz-tagging: a=b\r\nx-amz-storage-class: "
         "STANDARD_IA\r\n"
         "x-amz-website-redirect-location: /z\r\n",
         "hello",
         200);
    XF_AUTO_FREE char *xml =
        must(server, "PUT", "/dst/c1", "x-amz-copy-source: /bkt/src%20a\r\n", "", 200);
    XF_AUTO_FREE char *etag = tag(xml, "ETag");
    assert_string_equal(etag, "&quot;5d41402abc4b2a76b9719d911017c592&quot;");
    assert_non_null(strstr(xml, "<CopyObjectResult"));
    body_is("/dst/c1", "", 200, "hello");
    header_is("HEAD", "/dst/c1", "", 200, "content-type", "text/x");
    header_is("HEAD", "/dst/c1", "", 200, "x-amz-meta-k", "v");
    header_is("HEAD", "/dst/c1", "", 200, "x-amz-tagging-count", "1");
    header_is("HEAD", "/dst/c1", "", 200, "x-amz-storage-class", "");
    header_is("HEAD", "/dst/c1", "", 200, "x-amz-website-redirect-location", "");
    does(server,
         "PUT",
         "/dst/c2",
         "x-amz-copy-source: bkt/src%20a\r\nx-amz-metadata-directive: REPLACE\r\nContent-Type: "
         "text/y\r\n"
         "x-amz-tagging-directive: REPLACE\r\nx-amz-tagging: p=q&r=s\r\n",
         "",
         200);
    header_is("HEAD", "/dst/c2", "", 200, "content-type", "text/y");
    header_is("HEAD", "/dst/c2", "", 200, "x-amz-meta-k", "");
    header_is("HEAD", "/dst/c2", "", 200, "x-amz-tagging-count", "2");
}

static void copies_that_cannot_be_are_refused(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/one", "", "1", 200);
    does(server, "PUT", "/dst/x", "x-amz-copy-source: /bkt/nope\r\n", "", 404);
    does(server, "PUT", "/dst/x", "x-amz-copy-source: /nope/one\r\n", "", 404);
    does(server, "PUT", "/dst/x", "x-amz-copy-source: one\r\n", "", 400);
    does(server, "PUT", "/bkt/one", "x-amz-copy-source: /bkt/one\r\n", "", 400);
    does(server,
         "PUT",
         "/bkt/one",
         "x-amz-copy-source: /bkt/one\r\nx-amz-metadata-directive: REPLACE\r\n",
         "",
         200);
    does(server,
         "PUT",
         "/dst/x",
         "x-amz-copy-source: /bkt/one\r\nx-amz-copy-source-if-match: \"0\"\r\n",
         "",
         412);
    does(server,
         "PUT",
         "/dst/x",
         "x-amz-copy-source: /bkt/one\r\nx-amz-copy-source-if-none-match: *\r\n",
         "",
         412);
    does(server, "HEAD", "/dst/x", "", "", 404);
    does(server,
         "PUT",
         "/dst/x",
         "x-amz-copy-source: /bkt/one\r\nx-amz-copy-source-if-match: "
         "\"c4ca4238a0b923820dcc509a6f75849b\"\r\n",
         "",
         200);
    does(server, "PUT", "/bkt/ice", "x-amz-storage-class: GLACIER\r\n", "x", 200);
    does(server, "GET", "/bkt/ice", "", "", 403);
    XF_AUTO_FREE char *xml =
        must(server, "PUT", "/dst/ice", "x-amz-copy-source: /bkt/ice\r\n", "", 403);
    assert_non_null(strstr(xml, "ObjectNotInActiveTierError"));
}

static void c007_one_byte_above_5_gib_is_refused(void **state)
{
    (void)state;
    does(server, "PUT", "/dst/5g", "x-amz-copy-source: /bkt/5g\r\n", "", 200);
    header_is("HEAD", "/dst/5g", "", 200, "content-length", "5368709120");
    XF_AUTO_FREE char *xml =
        must(server, "PUT", "/dst/5g1", "x-amz-copy-source: /bkt/5g1\r\n", "", 400);
    XF_AUTO_FREE char *code = tag(xml, "Code");
    assert_string_equal(code, "InvalidRequest");
    assert_non_null(strstr(xml, "5368709120"));
}

static void tags_are_read_set_and_removed(void **state)
{
    (void)state;
    does(server, "PUT", "/bkt/tagged", "", "x", 200);
    does(server,
         "PUT",
         "/bkt/tagged?tagging",
         "",
         "<Tagging><TagSet><Tag><Key>a&amp;</Key><Value>b c</Value></Tag></TagSet></Tagging>",
         200);
    XF_AUTO_FREE char *xml = must(server, "GET", "/bkt/tagged?tagging", "", "", 200);
    assert_non_null(strstr(xml, "<Tag><Key>a&amp;</Key><Value>b c</Value></Tag>"));
    does(server, "DELETE", "/bkt/tagged?tagging", "", "", 204);
    XF_AUTO_FREE char *none = must(server, "GET", "/bkt/tagged?tagging", "", "", 200);
    assert_non_null(strstr(none, "<TagSet></TagSet>"));
    does(server, "PUT", "/bkt/tagged?tagging", "", "<Tagging><TagSet>", 400);
    does(server, "PUT", "/bkt/t3", "x-amz-tagging: a=1&a=2\r\n", "x", 400);
    does(server, "PUT", "/bkt/t3", "x-amz-tagging: aws:x=1\r\n", "x", 400);
    does(server, "GET", "/bkt/none?tagging", "", "", 404);
}

static void deletes_and_buckets(void **state)
{
    static const char two[] =
        "<Delete><Object><Key>del1</Key></Object><Object><Key>nope</Key></Object></Delete>";

    (void)state;
    does(server, "PUT", "/bkt/del1", "", "x", 200);
    does(server, "POST", "/bkt?delete", "", two, 400);
    XF_AUTO_FREE char *xml =
        must(server, "POST", "/bkt?delete", "x-amz-checksum-crc32: AAAAAA==\r\n", two, 200);
    assert_non_null(strstr(xml, "<Deleted><Key>nope</Key></Deleted>"));
    does(server, "HEAD", "/bkt/del1", "", "", 404);
    does(server, "DELETE", "/bkt/del1", "", "", 204);
    does(server, "PUT", "/newbucket", "", "", 200);
    does(server, "PUT", "/newbucket", "", "", 409);
    does(server, "PUT", "/New_Bucket", "", "", 400);
    does(server, "PUT", "/newbucket/x", "", "x", 200);
    does(server, "DELETE", "/newbucket", "", "", 409);
    does(server, "DELETE", "/newbucket/x", "", "", 204);
    does(server, "DELETE", "/newbucket", "", "", 204);
    does(server, "HEAD", "/newbucket", "", "", 404);
    does(server, "GET", "/newbucket/x", "", "", 404);
    header_is("HEAD", "/bkt", "", 200, "x-amz-bucket-region", "us-east-1");
    does(server, "GET", "/bkt?acl", "", "", 501);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_put_comes_back_with_all_it_carried),
        cmocka_unit_test(ranges_are_those_of_s3),
        cmocka_unit_test(read_conditions_hold),
        cmocka_unit_test(write_conditions_hold),
        cmocka_unit_test(wrong_digests_store_nothing),
        cmocka_unit_test(unsigned_trailers_are_decoded_and_checked),
        cmocka_unit_test(keys_are_bytes),
        cmocka_unit_test(copies_keep_replace_and_drop_what_s3_does),
        cmocka_unit_test(copies_that_cannot_be_are_refused),
        cmocka_unit_test(c007_one_byte_above_5_gib_is_refused),
        cmocka_unit_test(tags_are_read_set_and_removed),
        cmocka_unit_test(deletes_and_buckets),
    };

    return xf_test_run("s3d_object", tests, setup, teardown);
}
