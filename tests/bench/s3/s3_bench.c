/*
 * s3_bench.c - time of a signature, of a listing page, and of CopyObject and HEAD requests against
 * s3d.
 *
 * Prints; fails only when something does not work. Run it on the release build.
 */
#include "common/rt/loop.h"
#include "common/s3/client.h"
#include "common/s3/creds.h"
#include "common/s3/sigv4.h"
#include "tests/lib/proc.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <sys/resource.h>

#define SIGNATURES 100000
#define PAGES      200
#define REQUESTS   20000
#define IN_FLIGHT  64

static struct xf_creds *make_creds(void)
{
    struct xf_creds *creds = NULL;
    struct xf_err err;

    assert_int_equal(xf_creds_new(XF_STR_LIT("AKIAIOSFODNN7EXAMPLE"),
                                  XF_STR_LIT("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
                                  XF_STR_EMPTY,
                                  0,
                                  &creds,
                                  &err),
                     XF_OK);
    return creds;
}

static void signatures(void **state)
{
    XF_AUTO(xf_sigv4) signer = xf_sigv4_new();
    XF_AUTO(xf_creds) creds = make_creds();
    const struct xf_sigv4_pair headers[] = {
        {XF_STR_LIT("x-amz-copy-source"), XF_STR_LIT("/source-bucket/some/dir/file-000000042.dat")},
        {XF_STR_LIT("x-amz-copy-source-if-match"),
         XF_STR_LIT("\"0123456789abcdef0123456789abcdef\"")},
        {XF_STR_LIT("x-amz-date"), XF_STR_LIT("20130524T000000Z")},
        {XF_STR_LIT("x-amz-content-sha256"), XF_STR_LIT(XF_SIGV4_EMPTY_SHA256)},
        {XF_STR_LIT("host"), XF_STR_LIT("destination.s3.us-west-2.amazonaws.com")},
    };
    const struct xf_sigv4_req req = {
        .method = XF_STR_LIT("PUT"),
        .path = XF_STR_LIT("/some/dir/file-000000042.dat"),
        .headers = headers,
        .n_headers = XF_ARRAY_LEN(headers),
        .payload = XF_STR_LIT(XF_SIGV4_EMPTY_SHA256),
        .region = XF_STR_LIT("us-west-2"),
        .service = XF_STR_LIT("s3"),
        .date = "20130524T000000Z",
    };
    struct xf_err err;
    XF_AUTO_BUF auth = {0};
    int64_t start_ns = xf_clock_mono_ns();

    (void)state;
    for (int i = 0; i < SIGNATURES; i++) {
        assert_int_equal(xf_sigv4_sign(signer, creds, &req, &auth, NULL, &err), XF_OK);
    }
    printf("signature: %.2f us\n", (double)(xf_clock_mono_ns() - start_ns) / 1e3 / SIGNATURES);
}

static void pages(void **state)
{
    XF_AUTO(xf_xml) xml = xf_xml_new();
    XF_AUTO_BUF page = {0};
    struct xf_err err;
    int64_t start_ns;

    (void)state;
    xf_buf_put_c(&page,
                 "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ListBucketResult xmlns="
                 "\"http://s3.amazonaws.com/doc/2006-03-01/\"><Name>b</Name><KeyCount>1000"
                 "</KeyCount><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>");
    for (int i = 0; i < 1000; i++) {
        xf_buf_putf(&page,
                    "<Contents><Key>some/dir%%20%d/file-%012d.dat</Key><LastModified>"
                    "2024-05-24T00:00:00.000Z</LastModified><ETag>&quot;0123456789abcdef0123456789"
                    "abcdef&quot;</ETag><Size>%d</Size><StorageClass>STANDARD</StorageClass>"
                    "</Contents>",
                    i / 100,
                    i,
                    i);
    }
    xf_buf_put_c(&page, "</ListBucketResult>");
    start_ns = xf_clock_mono_ns();
    for (int i = 0; i < PAGES; i++) {
        xf_xml_reset(xml);
        for (size_t at = 0; at < page.len; at += 16384) {
            size_t len = page.len - at < 16384 ? page.len - at : 16384;

            assert_int_equal(xf_xml_feed(xml, page.ptr + at, len, &err), XF_OK);
        }
        assert_int_equal(xf_xml_finish(xml, &err), XF_OK);
        assert_int_equal(xf_xml_doc(xml)->n_objects, 1000);
    }
    printf("listing page of 1000 keys (%zu bytes): %.0f us\n",
           page.len,
           (double)(xf_clock_mono_ns() - start_ns) / 1e3 / PAGES);
}

/* ---- against the server ---- */

struct load {
    struct xf_s3 *s3;
    unsigned started;
    unsigned ended;
    bool is_copy;
};

static void start_one(struct load *l);

static void on_done(void *arg, const struct xf_s3_result *res)
{
    struct load *l = arg;

    if (res->err.code != XF_OK) {
        fail_msg("%s", res->err.msg);
    }
    l->ended++;
    if (l->started < REQUESTS) {
        start_one(l);
    }
}

static void start_one(struct load *l)
{
    char name[32];
    XF_AUTO_BUF key = {.max = sizeof(name) - 1};
    struct xf_str source = XF_STR_LIT("src");

    xf_buf_putf(&key, "obj-%012u", l->started % 1000);
    l->started++;
    if (l->is_copy) {
        struct xf_s3_copy_opts o = {.bucket = XF_STR_LIT("dst"),
                                    .key = xf_buf_view(&key),
                                    .source = {.bucket = source, .key = xf_buf_view(&key)},
                                    .size = 1024};

        assert_non_null(xf_s3_copy(l->s3, &o, on_done, l));
    } else {
        struct xf_s3_head_opts o = {.bucket = source, .key = xf_buf_view(&key)};

        assert_non_null(xf_s3_head(l->s3, &o, on_done, l));
    }
}

static double cpu_s(void)
{
    struct rusage u;

    assert_int_equal(getrusage(RUSAGE_SELF, &u), 0);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static void run_load(struct xf_loop *loop, struct xf_s3 *s3, bool is_copy)
{
    struct load l = {.s3 = s3, .is_copy = is_copy};
    int64_t start_ns = xf_clock_mono_ns();
    double start_cpu = cpu_s();
    double took_s;

    while (l.started < IN_FLIGHT) {
        start_one(&l);
    }
    while (l.ended < REQUESTS) {
        xf_loop_turn(loop, 1000);
    }
    took_s = (double)(xf_clock_mono_ns() - start_ns) / 1e9;
    printf("%s, %d in flight: %.0f a second, %.1f us of client CPU each\n",
           is_copy ? "CopyObject" : "HeadObject",
           IN_FLIGHT,
           REQUESTS / took_s,
           (cpu_s() - start_cpu) * 1e6 / REQUESTS);
}

static enum xf_code give(void *self, struct xf_creds **out, struct xf_err *err)
{
    (void)self; /* the same keys always */
    return xf_creds_new(XF_STR_LIT("AK"), XF_STR_LIT("SK"), XF_STR_EMPTY, 0, out, err);
}

static void keep(void *self)
{
    (void)self; /* there is none */
}

static void requests(void **state)
{
    static const struct xf_creds_source_ops ops = {.resolve = give, .free = keep};
    const char *argv[] = {xf_proc_program("s3d"),
                          "--quiet",
                          "--key",
                          "AK:SK",
                          "--bucket",
                          "dst",
                          "--synth",
                          "src:1000:1KiB:flat",
                          NULL};
    struct xf_proc_opts po = {.argv = argv, .ready_fd = true};
    XF_AUTO(xf_proc) server = xf_proc_spawn(&po);
    XF_AUTO_BUF url = {0};
    struct xf_s3_opts so = {.region = XF_STR_LIT("us-east-1")};
    struct xf_loop *loop = NULL;
    struct xf_http *http = NULL;
    struct xf_s3 *s3 = NULL;
    struct xf_err err;

    (void)state;
    xf_proc_wait_ready(server, 10000);
    xf_buf_putf(&url, "http://127.0.0.1:%s", xf_proc_ready_word(server, "port"));
    assert_int_equal(xf_uri_endpoint_parse(xf_buf_view(&url), &so.endpoint, &err), XF_OK);
    assert_int_equal(xf_loop_new(NULL, &loop, &err), XF_OK);
    assert_int_equal(xf_http_curl_new(loop, NULL, &http, &err), XF_OK);
    so.loop = loop;
    so.http = http;
    so.creds = xf_creds_source_of(&ops, NULL, "bench");
    assert_int_equal(xf_s3_new(&so, &s3, &err), XF_OK);
    run_load(loop, s3, false);
    run_load(loop, s3, true);
    xf_s3_free(s3);
    xf_http_free(http);
    xf_loop_free(loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(signatures),
        cmocka_unit_test(pages),
        cmocka_unit_test(requests),
    };

    return xf_test_run("s3/bench", tests, NULL, NULL);
}
