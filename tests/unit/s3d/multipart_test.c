/* multipart_test.c - the multipart family with S3's rules and ETags. */
#include "tests/lib/test.h"
#include "tests/unit/s3d/client.h"

#include <stdio.h>
#include <string.h>

#define MIB5 ((size_t)5 << 20)

static struct s3d_server *server;

static int setup(void **state)
{
    struct s3d_opts o;

    (void)state;
    server_opts(&o);
    o.objects[o.n_objects++] = "bkt/12m:12MiB";
    o.objects[o.n_objects++] = "bkt/5t:5TiB";
    server = server_start(&o);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    s3d_server_free(server);
    return 0;
}

static char *create(const char *key, const char *headers)
{
    char target[128];

    (void)snprintf(target, sizeof(target), "/dst/%s?uploads", key);
    XF_AUTO_FREE char *xml = must(server, "POST", target, headers, "", 200);
    char *id = tag(xml, "UploadId");
    assert_true(id[0] != '\0');
    return id;
}

/* Upload a part; its ETag without quotes. */
static char *
put(const char *key, const char *id, int n, const char *headers, struct xf_str body, int status)
{
    char target[256];
    struct reply r;

    (void)snprintf(target, sizeof(target), "/dst/%s?partNumber=%d&uploadId=%s", key, n, id);
    ask(server, "PUT", target, headers, body, &r);
    assert_int_equal(r.status, status);
    XF_AUTO_FREE char *etag = header(&r, "etag");
    reply_fini(&r);
    return strlen(etag) < 2 ? xf_xstrdup("") : xf_xmemdup0(etag + 1, strlen(etag) - 2);
}

static char *
complete(const char *key, const char *id, const char *headers, const char *parts, int status)
{
    char target[256];
    struct xf_buf b = {0};

    (void)snprintf(target, sizeof(target), "/dst/%s?uploadId=%s", key, id);
    xf_buf_putf(&b, "<CompleteMultipartUpload>%s</CompleteMultipartUpload>", parts);
    char *xml = must(server, "POST", target, headers, b.ptr, status);
    xf_buf_fini(&b);
    return xml;
}

/* complete() and put() for their status alone. */
static void
completes(const char *key, const char *id, const char *headers, const char *parts, int status)
{
    xf_xfree(complete(key, id, headers, parts, status));
}

static void puts_part(const char *key, const char *id, int n, struct xf_str body, int status)
{
    xf_xfree(put(key, id, n, "", body, status));
}

static void code_is(const char *xml, const char *want)
{
    XF_AUTO_FREE char *code = tag(xml, "Code");

    assert_string_equal(code, want);
}

static void head_is(const char *target, const char *name, const char *want)
{
    struct reply r;

    ask(server, "HEAD", target, "x-amz-checksum-mode: ENABLED\r\n", XF_STR_EMPTY, &r);
    assert_int_equal(r.status, 200);
    XF_AUTO_FREE char *v = header(&r, name);
    assert_string_equal(v, want);
    reply_fini(&r);
}

static void etag_and_checksums_of_two_parts_are_those_of_s3(void **state)
{
    static const struct {
        const char *create;
        const char *name;
        const char *want;
        const char *part[2]; /* checksums the Complete lists; NULL: none */
        const char *element;
    } cases[] = {
        {"", "etag", "\"1a1761a0c87a46829d8a65122ae36c1a-2\"", {NULL, NULL}, ""},
        {"x-amz-checksum-algorithm: CRC32\r\n",
         "x-amz-checksum-crc32",
         "MiNFzg==-2",
         {"yTuzdQ==", "NhCmhg=="},
         "ChecksumCRC32"},
        {"x-amz-checksum-algorithm: SHA256\r\n",
         "x-amz-checksum-sha256",
         "BvAbbg5MurpCMrVFaBO55WUNjpKOV++D3zl8x/rcQxE=-2",
         {"wDbLt1U6kJ+LiHfURhkkMH8n7LZs/5KO7q/VacOIfik=",
          "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="},
         "ChecksumSHA256"},
        {"x-amz-checksum-algorithm: CRC32\r\nx-amz-checksum-type: FULL_OBJECT\r\n",
         "x-amz-checksum-crc32",
         "OuNOOw==",
         {NULL, NULL},
         ""},
        {"x-amz-checksum-algorithm: CRC32C\r\nx-amz-checksum-type: FULL_OBJECT\r\n",
         "x-amz-checksum-crc32c",
         "M3ZJZw==",
         {NULL, NULL},
         ""},
        {"x-amz-checksum-algorithm: CRC64NVME\r\n",
         "x-amz-checksum-crc64nvme",
         "o665DA2GSdk=",
         {NULL, NULL},
         ""},
    };
    char *zeros = fill('0', MIB5);

    (void)state;
    memset(zeros, 0, MIB5);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char parts[1024];
        XF_AUTO_FREE char *id = create("two", cases[i].create);
        XF_AUTO_FREE char *e1 = put("two", id, 1, "", xf_str_n(zeros, MIB5), 200);
        XF_AUTO_FREE char *e2 = put("two", id, 2, "", XF_STR_LIT("hello"), 200);
        char sums[2][256] = {"", ""};
        for (int k = 0; k < 2 && cases[i].part[0] != NULL; k++) {
            (void)snprintf(sums[k],
                           sizeof(sums[k]),
                           "<%s>%s</%s>",
                           cases[i].element,
                           cases[i].part[k],
                           cases[i].element);
        }
        (void)snprintf(parts,
                       sizeof(parts),
                       "<Part><PartNumber>1</PartNumber><ETag>\"%s\"</ETag>%s</"
                       "Part><Part><PartNumber>2</PartNumber><ETag>%s</ETag>%s</Part>",
                       e1,
                       sums[0],
                       e2,
                       sums[1]);
        if (cases[i].part[0] != NULL) { /* a composite upload needs them */
            completes("two", id, "", "<Part><PartNumber>1</PartNumber><ETag>x</ETag></Part>", 400);
        }
        completes("two", id, "x-amz-mp-object-size: 5242885\r\n", parts, 200);
        head_is("/dst/two", cases[i].name, cases[i].want);
        head_is("/dst/two", "etag", "\"1a1761a0c87a46829d8a65122ae36c1a-2\"");
    }
    /* a copy is a single part again */
    XF_AUTO_FREE char *xml =
        must(server, "PUT", "/dst/copied", "x-amz-copy-source: /dst/two\r\n", "", 200);
    XF_AUTO_FREE char *etag = tag(xml, "ETag");
    assert_int_equal(strlen(etag), 32 + 12);
    head_is("/dst/copied", "x-amz-checksum-crc64nvme", "o665DA2GSdk=");
    xf_xfree(zeros);
}

static void complete_refuses_what_s3_refuses(void **state)
{
    char *data = fill('d', MIB5);
    char parts[512];
    XF_AUTO_FREE char *id = create("rules", "");
    XF_AUTO_FREE char *small = put("rules", id, 1, "", XF_STR_LIT("tiny"), 200);
    XF_AUTO_FREE char *large = put("rules", id, 2, "", xf_str_n(data, MIB5), 200);

    (void)state;
    xf_xfree(data);
    (void)snprintf(parts,
                   sizeof(parts),
                   "<Part><PartNumber>2</PartNumber><ETag>%s</ETag></Part><Part><PartNumber>1</"
                   "PartNumber><ETag>%s</ETag></Part>",
                   large,
                   small);
    XF_AUTO_FREE char *order = complete("rules", id, "", parts, 400);
    code_is(order, "InvalidPartOrder");
    (void)snprintf(parts,
                   sizeof(parts),
                   "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part><Part><PartNumber>2</"
                   "PartNumber><ETag>%s</ETag></Part>",
                   small,
                   large);
    XF_AUTO_FREE char *too_small = complete("rules", id, "", parts, 400);
    code_is(too_small, "EntityTooSmall");
    (void)snprintf(
        parts, sizeof(parts), "<Part><PartNumber>3</PartNumber><ETag>%s</ETag></Part>", small);
    XF_AUTO_FREE char *missing = complete("rules", id, "", parts, 400);
    code_is(missing, "InvalidPart");
    (void)snprintf(
        parts, sizeof(parts), "<Part><PartNumber>2</PartNumber><ETag>%s</ETag></Part>", small);
    XF_AUTO_FREE char *etag = complete("rules", id, "", parts, 400);
    code_is(etag, "InvalidPart");
    XF_AUTO_FREE char *none = complete("rules", id, "", "", 400);
    code_is(none, "InvalidRequest");
    XF_AUTO_FREE char *xml = complete("rules", id, "", "<Part>", 400);
    code_is(xml, "MalformedXML");
    (void)snprintf(
        parts, sizeof(parts), "<Part><PartNumber>2</PartNumber><ETag>%s</ETag></Part>", large);
    XF_AUTO_FREE char *size = complete("rules", id, "x-amz-mp-object-size: 5\r\n", parts, 400);
    code_is(size, "InvalidRequest");
    does(server, "HEAD", "/dst/rules", "", "", 404);
    /* parts that are not listed are dropped: S3 asks nothing (C003) */
    completes("rules", id, "", parts, 200);
    head_is("/dst/rules", "content-length", "5242880");
    XF_AUTO_FREE char *again = complete("rules", id, "", parts, 404);
    code_is(again, "NoSuchUpload");
}

static void attributes_are_those_of_the_create(void **state)
{
    XF_AUTO_FREE char *id = create("attr",
                                   "Content-Type: video/mp4\r\nx-amz-meta-k: v\r\nx-amz-tagging: "
                                   "team=x\r\nx-amz-storage-class: STANDARD_IA\r\n");
    XF_AUTO_FREE char *etag = put("attr", id, 1, "", XF_STR_LIT("x"), 200);
    char parts[128];

    (void)state;
    (void)snprintf(
        parts, sizeof(parts), "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>", etag);
    completes("attr", id, "", parts, 200);
    head_is("/dst/attr", "content-type", "video/mp4");
    head_is("/dst/attr", "x-amz-meta-k", "v");
    head_is("/dst/attr", "x-amz-tagging-count", "1");
    head_is("/dst/attr", "x-amz-storage-class", "STANDARD_IA");
}

static void part_copies_keep_to_their_range(void **state)
{
    char target[256];
    char parts[512];
    XF_AUTO_FREE char *id = create("pc", "");
    static const char *const bad[] = {
        "bytes=0-", "bytes=-5", "bytes=5-1", "0-5", "bytes=0-12582912"};

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char headers[256];
        (void)snprintf(target, sizeof(target), "/dst/pc?partNumber=1&uploadId=%s", id);
        (void)snprintf(headers,
                       sizeof(headers),
                       "x-amz-copy-source: /bkt/12m\r\nx-amz-copy-source-range: %s\r\n",
                       bad[i]);
        XF_AUTO_FREE char *xml = must(server, "PUT", target, headers, "", 400);
        code_is(xml, "InvalidArgument");
    }
    XF_AUTO_FREE char *whole =
        must(server, "PUT", target, "x-amz-copy-source: /bkt/5t\r\n", "", 400);
    code_is(whole, "InvalidRequest");
    XF_AUTO_FREE char *p1 =
        must(server,
             "PUT",
             target,
             "x-amz-copy-source: /bkt/12m\r\nx-amz-copy-source-range: bytes=0-8388607\r\n",
             "",
             200);
    (void)snprintf(target, sizeof(target), "/dst/pc?partNumber=2&uploadId=%s", id);
    XF_AUTO_FREE char *p2 =
        must(server,
             "PUT",
             target,
             "x-amz-copy-source: /bkt/12m\r\nx-amz-copy-source-range: bytes=8388608-12582911\r\n",
             "",
             200);
    XF_AUTO_FREE char *e1 = tag(p1, "ETag");
    XF_AUTO_FREE char *e2 = tag(p2, "ETag");
    (void)snprintf(parts,
                   sizeof(parts),
                   "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part><Part><PartNumber>2</"
                   "PartNumber><ETag>%s</ETag></Part>",
                   e1,
                   e2);
    completes("pc", id, "", parts, 200);
    XF_AUTO_FREE char *diff = must(server, "GET", "/-/diff?a=bkt/12m&b=dst/pc", "", "", 200);
    assert_non_null(strstr(diff, "\"equal\":true"));
    head_is("/dst/pc", "content-length", "12582912");
    (void)snprintf(target, sizeof(target), "/dst/pc?partNumber=2&uploadId=none");
    does(server, "PUT", target, "x-amz-copy-source: /bkt/12m\r\n", "", 404);
}

static void uploads_and_parts_are_listed_and_aborted(void **state)
{
    char target[256];
    XF_AUTO_FREE char *a = create("l/a", "");
    XF_AUTO_FREE char *b = create("l/b", "");
    XF_AUTO_FREE char *b2 = create("l/b", "");

    (void)state;
    puts_part("l/b", b, 3, XF_STR_LIT("x"), 200);
    puts_part("l/b", b, 7, XF_STR_LIT("yy"), 200);
    XF_AUTO_FREE char *all = must(server, "GET", "/dst?uploads&prefix=l/", "", "", 200);
    const char *at = strstr(all, a);
    assert_non_null(at);
    at = strstr(at, b);
    assert_non_null(at);
    assert_non_null(strstr(at, b2));
    XF_AUTO_FREE char *one =
        must(server, "GET", "/dst?uploads&prefix=l/&max-uploads=1", "", "", 200);
    XF_AUTO_FREE char *next = tag(one, "NextUploadIdMarker");
    assert_string_equal(next, a);
    (void)snprintf(
        target, sizeof(target), "/dst?uploads&prefix=l/&key-marker=l/b&upload-id-marker=%s", b);
    XF_AUTO_FREE char *rest = must(server, "GET", target, "", "", 200);
    assert_null(strstr(rest, a));
    assert_non_null(strstr(rest, b2));
    (void)snprintf(target, sizeof(target), "/dst/l/b?uploadId=%s&max-parts=1", b);
    XF_AUTO_FREE char *parts = must(server, "GET", target, "", "", 200);
    assert_non_null(strstr(parts, "<PartNumber>3</PartNumber>"));
    assert_non_null(strstr(parts, "<IsTruncated>true"));
    (void)snprintf(target, sizeof(target), "/dst/l/b?uploadId=%s&part-number-marker=3", b);
    XF_AUTO_FREE char *more = must(server, "GET", target, "", "", 200);
    assert_non_null(strstr(more, "<PartNumber>7</PartNumber>"));
    assert_null(strstr(more, "<PartNumber>3</PartNumber>"));
    (void)snprintf(target, sizeof(target), "/dst/l/b?uploadId=%s", b);
    does(server, "DELETE", target, "", "", 204);
    does(server, "DELETE", target, "", "", 404);
    does(server, "GET", target, "", "", 404);
    puts_part("l/b", b, 1, XF_STR_LIT("x"), 404);
    (void)snprintf(target, sizeof(target), "/dst/l/b?uploadId=%s", b2);
    does(server, "DELETE", target, "", "", 204);
    (void)snprintf(target, sizeof(target), "/dst/l/a?uploadId=%s", a);
    does(server, "DELETE", target, "", "", 204);
    XF_AUTO_FREE char *none = must(server, "GET", "/dst?uploads&prefix=l/", "", "", 200);
    assert_null(strstr(none, "<Upload>"));
}

static void part_numbers_end_at_10000(void **state)
{
    XF_AUTO_FREE char *id = create("n", "");

    (void)state;
    puts_part("n", id, 10000, XF_STR_LIT("x"), 200);
    puts_part("n", id, 10001, XF_STR_LIT("x"), 400);
    puts_part("n", id, 0, XF_STR_LIT("x"), 400);
}

static void c007_a_provider_may_have_a_smaller_limit(void **state)
{
    struct s3d_opts o;
    struct s3d_server *plain = server;
    char parts[256];
    XF_AUTO_FREE char *data = fill('d', MIB5);

    (void)state;
    server_opts(&o);
    o.max_object = MIB5;
    server = server_start(&o);
    XF_AUTO_FREE char *id = create("x", "");
    XF_AUTO_FREE char *e1 = put("x", id, 1, "", xf_str_n(data, MIB5), 200);
    XF_AUTO_FREE char *e2 = put("x", id, 2, "", XF_STR_LIT("d"), 200);
    (void)snprintf(
        parts,
        sizeof(parts),
        "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part><Part><PartNumber>2</PartNumber>"
        "<ETag>%s</ETag></Part>",
        e1,
        e2);
    XF_AUTO_FREE char *xml = complete("x", id, "", parts, 400);
    code_is(xml, "EntityTooLarge");
    (void)snprintf(
        parts, sizeof(parts), "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>", e1);
    completes("x", id, "", parts, 200);
    s3d_server_free(server);
    server = plain;
}

static void a_repeated_complete_can_be_made_to_succeed(void **state)
{
    struct s3d_opts o;
    struct s3d_server *plain = server;
    char parts[128];

    (void)state;
    server_opts(&o);
    o.complete_idempotent = true;
    server = server_start(&o);
    XF_AUTO_FREE char *id = create("x", "");
    XF_AUTO_FREE char *etag = put("x", id, 1, "", XF_STR_LIT("x"), 200);
    (void)snprintf(
        parts, sizeof(parts), "<Part><PartNumber>1</PartNumber><ETag>%s</ETag></Part>", etag);
    XF_AUTO_FREE char *one = complete("x", id, "", parts, 200);
    XF_AUTO_FREE char *two = complete("x", id, "", parts, 200);
    XF_AUTO_FREE char *e1 = tag(one, "ETag");
    XF_AUTO_FREE char *e2 = tag(two, "ETag");
    assert_string_equal(e1, e2);
    XF_AUTO_FREE char *open = must(server, "GET", "/-/uploads", "", "", 200);
    assert_non_null(strstr(open, "\"count\":0"));
    s3d_server_free(server);
    server = plain;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(etag_and_checksums_of_two_parts_are_those_of_s3),
        cmocka_unit_test(complete_refuses_what_s3_refuses),
        cmocka_unit_test(attributes_are_those_of_the_create),
        cmocka_unit_test(part_copies_keep_to_their_range),
        cmocka_unit_test(uploads_and_parts_are_listed_and_aborted),
        cmocka_unit_test(part_numbers_end_at_10000),
        cmocka_unit_test(c007_a_provider_may_have_a_smaller_limit),
        cmocka_unit_test(a_repeated_complete_can_be_made_to_succeed),
    };

    return xf_test_run("s3d_multipart", tests, setup, teardown);
}
