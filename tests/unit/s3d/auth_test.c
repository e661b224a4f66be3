/* auth_test.c - AWS's published signatures and what a strict check refuses. */
#include "tests/lib/test.h"
#include "tests/s3d/auth.h"
#include "tests/s3d/chunked.h"

#include <string.h>

#define EMPTY "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define HOST  "examplebucket.s3.amazonaws.com"
#define KEY   "AKIAIOSFODNN7EXAMPLE:wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
#define AUTH                           \
    "Authorization: AWS4-HMAC-SHA256 " \
    "Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request,"
#define DATE "x-amz-date: 20130524T000000Z\r\n"

static const int64_t may_24_2013_ms = INT64_C(1369353600000);

struct checked {
    bool ok;
    struct s3d_fail fail;
    struct s3d_auth auth;
    char extra[4096];
};

/* Check a request given as text. */
static struct checked check(const char *head, int64_t skew_ms, const char *key)
{
    struct checked c = {0};
    struct s3d_http h = {0};
    struct xf_buf extra = {0};
    struct xf_buf scratch = {0};
    struct xf_err err;
    size_t len;
    const char *why = NULL;

    assert_int_equal(s3d_http_parse(&h, head, strlen(head), &len, &why), S3D_HTTP_OK);
    XF_AUTO(s3d_keys) keys = s3d_keys_new();
    assert_int_equal(s3d_keys_add(keys, xf_str_c(key), &err), XF_OK);
    struct s3d_auth_opts o = {.wall_ms = may_24_2013_ms + skew_ms, .scratch = &scratch};
    c.ok = s3d_auth_check(keys, &o, &h, &c.auth, &extra, &c.fail);
    if (extra.len > 0 && extra.len < sizeof(c.extra)) {
        memcpy(c.extra, extra.ptr, extra.len);
    }
    xf_buf_fini(&extra);
    xf_buf_fini(&scratch);
    return c;
}

static struct checked
check_parts(const char *line, const char *headers, const char *names, const char *signature)
{
    struct xf_buf b = {0};

    xf_buf_putf(&b, "%s HTTP/1.1\r\nHost: " HOST "\r\n" DATE "%s", line, headers);
    xf_buf_putf(&b, AUTH "SignedHeaders=%s,Signature=%s\r\n\r\n", names, signature);
    struct checked c = check(b.ptr, 0, KEY);
    xf_buf_fini(&b);
    return c;
}

#define PLAIN_HEADERS "x-amz-content-sha256: " EMPTY "\r\n"
#define PLAIN_NAMES   "host;x-amz-content-sha256;x-amz-date"

static void good(const char *line, const char *headers, const char *names, const char *signature)
{
    struct checked c = check_parts(line, headers, names, signature);

    if (!c.ok) {
        fail_msg("%s: %s: %s", line, c.fail.code, c.extra);
    }
}

static void published_signatures_pass(void **state)
{
    (void)state;
    good("GET /test.txt",
         "range: bytes=0-9\r\n" PLAIN_HEADERS,
         "host;range;x-amz-content-sha256;x-amz-date",
         "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41");
    good("PUT /test%24file.text",
         "date: Fri, 24 May 2013 00:00:00 GMT\r\nx-amz-storage-class: REDUCED_REDUNDANCY\r\n"
         "x-amz-content-sha256: "
         "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072\r\n",
         "date;host;x-amz-content-sha256;x-amz-date;x-amz-storage-class",
         "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd");
    good("GET /?lifecycle",
         PLAIN_HEADERS,
         PLAIN_NAMES,
         "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543");
    good("GET /?prefix=J&max-keys=2",
         PLAIN_HEADERS,
         PLAIN_NAMES,
         "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
}

static void odd_keys_pass(void **state)
{
    static const char *const vectors[][2] = {
        {"/a%20b", "148958ace6e83bc7d9893e7fb92c63d466140bd5acf2a0722d6fea26964f5651"},
        {"/a%2Bb", "7523a42446ee9a64714e5f5dd7b1170963c0ad092ceaf8e589232dbc7873cc91"},
        {"/100%25", "1f0e407b0e0dbb1c03529a298ba038b5929c764bee828f8e7b2e6221e66cc78f"},
        {"/%2541", "b69b15f86d556ece73a8e10186a52e2a28bcdfcbd9259d277cdcd99b6a6f4642"},
        {"/a//b", "d3b7d8e709518ef28050efa35968623c064ee44d1a12877eab753fd6548bb875"},
        {"//lead", "cc0b7d34d74c62c25b3a582ab0f329741975208904f7277d855f50bd93e10494"},
        {"/~tilde", "78cd99ae3a0fd280e2b4f20d6384ccdd29640849148729e8c7e6792d4cee44ba"},
        {"/star%2A", "b013dac06a9542bc024ba6f0eb5c961d84e8887dbcdff910af9491800bf35c23"},
        {"/it%27s%281%29%21", "843f6202bbfd741a1238b77fedbdf2d4f70fdaccd0e02f092ddef89b5e5a92d5"},
        {"/a%26b%3Dc%3Fd%23e", "d3ec6620a504d857cb8ad2da23945c4529dfbd87feafbe024fb0f4bab437fef2"},
        {"/a/./b/../c", "ca6210a274567b48609aa00700dd648c0e28239d97f6942750ac1be09d05c70a"},
        {"/tab%09nl%0A", "95654c11c9e2aa6a3a422fe3aac780f42e41fa5f7e6e701cd1cb1883c457b6c5"},
        {"/emoji%F0%9F%98%80", "e63d60d744d4b6d06adc9c3a1a9060b524b36ffdbdab3da0323cd44c69f7a147"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
        struct xf_buf line = {0};
        xf_buf_putf(&line, "GET %s", vectors[i][0]);
        good(line.ptr, PLAIN_HEADERS, PLAIN_NAMES, vectors[i][1]);
        xf_buf_fini(&line);
    }
}

static void whole_requests_pass(void **state)
{
    (void)state;
    good("PUT /dst?uploadId=VXBsb2FkIElE%2B%2F%3D&partNumber=1",
         "x-amz-copy-source: src/a%20b?versionId=abc\r\nx-amz-copy-source-range: "
         "bytes=0-5242879\r\n" PLAIN_HEADERS,
         "host;x-amz-content-sha256;x-amz-copy-source;x-amz-copy-source-range;x-amz-date",
         "1d22054399f90d7419ddb641a15846e533320ad3ebf86ca34b7826510565d8dd");
    good("PUT /k",
         "content-type: text/plain\r\nx-amz-meta-name: v1  two\r\nx-amz-tagging: a=b%20c&d=\r\n"
         "x-amz-content-sha256: "
         "185f8db32271fe25f561a6fc938b2e264306ec304eda518007d1764826381969\r\n",
         "content-type;host;x-amz-content-sha256;x-amz-date;x-amz-meta-name;x-amz-tagging",
         "70e1180c3f8082f0652c64d0ef9d2827512c88273770613f9378e8897b90fb9c");
    good("PUT /big.bin?partNumber=2&uploadId=VXBsb2FkIElE%2B%2F%3D",
         "x-amz-content-sha256: UNSIGNED-PAYLOAD\r\n",
         PLAIN_NAMES,
         "a354155e90f4d5a3e04c58371b2d6d5a3f6607944dd12b0df24c670a339392f3");
}

static void presigned_urls_pass_until_they_expire(void **state)
{
    static const char head[] =
        "GET /test.txt?X-Amz-Algorithm=AWS4-HMAC-SHA256"
        "&X-Amz-Credential=AKIAIOSFODNN7EXAMPLE%2F20130524%2Fus-east-1%2Fs3%2Faws4_request"
        "&X-Amz-Date=20130524T000000Z&X-Amz-Expires=86400&X-Amz-SignedHeaders=host"
        "&X-Amz-Signature=aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404 "
        "HTTP/1.1\r\n"
        "Host: " HOST "\r\n\r\n";

    (void)state;
    assert_true(check(head, 0, KEY).ok);
    assert_true(check(head, INT64_C(86399000), KEY).ok);
    struct checked late = check(head, INT64_C(86401000), KEY);
    assert_false(late.ok);
    assert_string_equal(late.fail.code, "AccessDenied");
}

static void refused(struct checked c, const char *code)
{
    assert_false(c.ok);
    assert_string_equal(c.fail.code, code);
}

static void what_is_not_right_is_refused(void **state)
{
    static const char signature[] =
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543";
    static const char head[] =
        "GET /?lifecycle HTTP/1.1\r\nHost: " HOST "\r\n" DATE PLAIN_HEADERS AUTH
        "SignedHeaders=" PLAIN_NAMES ",Signature="
        "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543\r\n\r\n";

    (void)state;
    assert_true(check(head, 0, KEY).ok);
    assert_true(check(head, S3D_SKEW_MAX_MS, KEY).ok);
    refused(check(head, S3D_SKEW_MAX_MS + 1000, KEY), "RequestTimeTooSkewed");
    refused(check(head, -S3D_SKEW_MAX_MS - 1000, KEY), "RequestTimeTooSkewed");
    refused(check(head, 0, "AKIAIOSFODNN7EXAMPLE:other"), "SignatureDoesNotMatch");
    refused(check(head, 0, "OTHER:secret"), "InvalidAccessKeyId");
    refused(check(head, 0, KEY ":TOKEN"), "InvalidToken");
    refused(check_parts("GET /?lifecycl", PLAIN_HEADERS, PLAIN_NAMES, signature),
            "SignatureDoesNotMatch");
    refused(check_parts("PUT /?lifecycle", PLAIN_HEADERS, PLAIN_NAMES, signature),
            "SignatureDoesNotMatch");
    refused(check_parts(
                "GET /?lifecycle", PLAIN_HEADERS "x-amz-acl: private\r\n", PLAIN_NAMES, signature),
            "AccessDenied");
    refused(check_parts("GET /?lifecycle", "", "host;x-amz-date", signature), "InvalidRequest");
    refused(
        check_parts("GET /?lifecycle", PLAIN_HEADERS, "x-amz-content-sha256;x-amz-date", signature),
        "AccessDenied");
    refused(check("GET / HTTP/1.1\r\nHost: x\r\n\r\n", 0, KEY), "AccessDenied");
    refused(check("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: Basic eA==\r\n\r\n", 0, KEY),
            "InvalidRequest");
    refused(
        check("GET / HTTP/1.1\r\nHost: x\r\nAuthorization: AWS4-HMAC-SHA256 Credential=a/b\r\n\r\n",
              0,
              KEY),
        "AuthorizationHeaderMalformed");
}

/* The right signature over a path that no canonical encoder makes: real S3 signs the encoded form.
 */
static void unencoded_paths_never_match(void **state)
{
    struct checked c =
        check_parts("GET /it's(1)!",
                    PLAIN_HEADERS,
                    PLAIN_NAMES,
                    "843f6202bbfd741a1238b77fedbdf2d4f70fdaccd0e02f092ddef89b5e5a92d5");

    (void)state;
    refused(c, "SignatureDoesNotMatch");
    refused(check_parts("GET /a+b",
                        PLAIN_HEADERS,
                        PLAIN_NAMES,
                        "7523a42446ee9a64714e5f5dd7b1170963c0ad092ceaf8e589232dbc7873cc91"),
            "SignatureDoesNotMatch");
}

static void a_key_of_another_region_is_told_the_right_one(void **state)
{
    static const char head[] = "GET / HTTP/1.1\r\nHost: x\r\n" DATE PLAIN_HEADERS AUTH
                               "SignedHeaders=" PLAIN_NAMES ",Signature=" EMPTY "\r\n\r\n";
    struct s3d_http h = {0};
    struct xf_buf extra = {0};
    struct s3d_fail fail;
    struct s3d_auth auth;
    size_t len;
    const char *why;

    (void)state;
    assert_int_equal(s3d_http_parse(&h, head, strlen(head), &len, &why), S3D_HTTP_OK);
    XF_AUTO(s3d_keys) keys = s3d_keys_new();
    struct s3d_auth_opts o = {.region = "eu-west-1", .wall_ms = may_24_2013_ms, .scratch = &extra};
    assert_false(s3d_auth_check(keys, &o, &h, &auth, &extra, &fail));
    assert_string_equal(fail.code, "AuthorizationHeaderMalformed");
    assert_non_null(strstr(extra.ptr, "<Region>eu-west-1</Region>"));
    xf_buf_fini(&extra);
}

struct sum {
    size_t n;
};

static void count(void *arg, const char *p, size_t len)
{
    struct sum *s = arg;

    for (size_t i = 0; i < len; i++) {
        assert_int_equal(p[i], 'a');
    }
    s->n += len;
}

static void seed(struct s3d_auth *a, const char *signature)
{
    struct checked c =
        check("GET /?lifecycle HTTP/1.1\r\nHost: " HOST "\r\n" DATE PLAIN_HEADERS AUTH
              "SignedHeaders=" PLAIN_NAMES ",Signature="
              "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543\r\n\r\n",
              0,
              KEY);

    assert_true(c.ok); /* for its signing key */
    *a = c.auth;
    memcpy(a->signature, signature, strlen(signature) + 1);
}

static void put_chunk(struct xf_buf *b, size_t n, const char *signature)
{
    xf_buf_putf(b, "%zx;chunk-signature=%s\r\n", n, signature);
    for (size_t i = 0; i < n; i++) {
        xf_buf_put_byte(b, 'a');
    }
    if (n > 0) {
        xf_buf_put_c(b, "\r\n");
    }
}

/* Feeds the body in pieces; the sum of data bytes, or -1 when it was refused. */
static long decode(const struct s3d_auth *a, bool trailer, const struct xf_buf *body, size_t step)
{
    struct s3d_chunked c;
    struct s3d_fail fail;
    struct sum s = {0};
    size_t used;

    s3d_chunked_init(&c, a, trailer);
    for (size_t at = 0; at < body->len; at += step) {
        size_t n = body->len - at < step ? body->len - at : step;
        if (!s3d_chunked_feed(&c, xf_str_n(body->ptr + at, n), &used, count, &s, &fail)) {
            return -1;
        }
    }
    return c.state == S3D_CHUNK_DONE ? (long)s.n : -1;
}

static void published_chunk_signatures_pass(void **state)
{
    struct s3d_auth a;
    struct xf_buf b = {0};

    (void)state;
    seed(&a, "4f232c4386841ef735655705268965c44a0e4690baa4adea153f7db9fa80a0a9");
    put_chunk(&b, 65536, "ad80c730a21e5b8d04586a2213dd63b9a0e99e0e2307b0ade35a65485a288648");
    put_chunk(&b, 1024, "0055627c9e194cb4542bae2aa5492e3c1575bbb81b612b7d234b86a503ef5497");
    put_chunk(&b, 0, "b6c6ea8a5354eaf15b3cb7646744f4275b71ea724fed81ceb9323e279d449df9");
    xf_buf_put_c(&b, "\r\n");
    assert_int_equal(b.len, 66824);
    assert_int_equal(decode(&a, false, &b, 66824), 66560);
    assert_int_equal(decode(&a, false, &b, 1), 66560);
    assert_int_equal(decode(&a, false, &b, 1000), 66560);
    b.ptr[20] = b.ptr[20] == '0' ? '1' : '0'; /* a digit of the first signature */
    assert_int_equal(decode(&a, false, &b, 1000), -1);
    xf_buf_fini(&b);
}

static void published_trailer_signature_passes(void **state)
{
    struct s3d_auth a;
    struct xf_buf b = {0};

    (void)state;
    seed(&a, "106e2a8a18243abcf37539882f36619c00e2dfc72633413f02d3b74544bfeb8e");
    put_chunk(&b, 65536, "b474d8862b1487a5145d686f57f013e54db672cee1c953b3010fb58501ef5aa2");
    put_chunk(&b, 1024, "1c1344b170168f8e65b41376b44b20fe354e373826ccbbe2c1d40a8cae51e5c7");
    put_chunk(&b, 0, "2ca2aba2005185cf7159c6277faf83795951dd77a3a99e6e65d5c9f85863f992");
    xf_buf_put_c(&b, "x-amz-checksum-crc32c:sOO8/Q==\r\n");
    xf_buf_put_c(&b,
                 "x-amz-trailer-signature:"
                 "d81f82fc3505edab99d459891051a732e8730629a2e4a59689829ca17fe2e435\r\n\r\n");
    assert_int_equal(b.len, 66946);
    assert_int_equal(decode(&a, true, &b, 4096), 66560);
    char *crc = strstr(b.ptr + 66560, "sOO8");
    assert_non_null(crc);
    *crc = 't';
    assert_int_equal(decode(&a, true, &b, 4096), -1);
    xf_buf_fini(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(published_signatures_pass),
        cmocka_unit_test(odd_keys_pass),
        cmocka_unit_test(whole_requests_pass),
        cmocka_unit_test(presigned_urls_pass_until_they_expire),
        cmocka_unit_test(what_is_not_right_is_refused),
        cmocka_unit_test(unencoded_paths_never_match),
        cmocka_unit_test(a_key_of_another_region_is_told_the_right_one),
        cmocka_unit_test(published_chunk_signatures_pass),
        cmocka_unit_test(published_trailer_signature_passes),
    };

    return xf_test_run("s3d_auth", tests, NULL, NULL);
}
