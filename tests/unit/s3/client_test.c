/*
 * client_test.c - what the operations send, and what they make of good and of broken answers.
 */
#include "tests/lib/test.h"
#include "tests/unit/s3/rig.h"

#define OK0     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define XML     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define S3_NS   " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

static int setup(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));

    rig_open(r, NULL);
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    rig_close(*state);
    xf_xfree(*state);
    return 0;
}

static int setup_impatient(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));
    struct rig_opts o = {.http = {.first_byte_ms = 150, .stall_window_ms = 150}};

    rig_open(r, &o);
    *state = r;
    return 0;
}

static int setup_token(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));
    struct rig_opts o = {.with_token = true};

    rig_open(r, &o);
    *state = r;
    return 0;
}

/* A reply with a body and its length. */
static const char *
with_length(struct xf_buf *out, const char *status, const char *headers, const char *body)
{
    xf_buf_reset(out);
    xf_buf_putf(
        out, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers, strlen(body), body);
    return out->ptr;
}

#define KEY(name) .bucket = XF_STR_LIT("bkt"), .key = XF_STR_LIT(name)

static void head(struct rig *r, const char *key)
{
    struct xf_s3_head_opts o = {.bucket = XF_STR_LIT("bkt"), .key = xf_str_c(key)};

    assert_non_null(xf_s3_head(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void get(struct rig *r, uint64_t size, uint64_t offset, uint64_t len)
{
    struct xf_s3_get_opts o = {KEY("k"),
                               .object_size = size,
                               .offset = offset,
                               .len = len,
                               .if_match = XF_STR_LIT("\"abc\""),
                               .sink = rig_sink(r)};

    xf_buf_reset(&r->sunk);
    assert_non_null(xf_s3_get(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void copy(struct rig *r)
{
    struct xf_s3_copy_opts o = {
        KEY("dst"),
        .source = {.bucket = XF_STR_LIT("src"),
                   .key = XF_STR_LIT("a b+c"),
                   .if_match = XF_STR_LIT("abc")},
        .size = 3,
        .storage_class = XF_STR_LIT("STANDARD_IA"),
    };

    assert_non_null(xf_s3_copy(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void put(struct rig *r, const char *body)
{
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = xf_str_c(body)}};

    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
}

static void list(struct rig *r)
{
    struct xf_s3_list_opts o = {.bucket = XF_STR_LIT("bkt"), .prefix = XF_STR_LIT("p/")};

    assert_non_null(xf_s3_list(r->s3, &o, rig_done, r));
    rig_wait(r);
}

#define ASSERT_SENT(r, n, text)     assert_non_null(strstr(script_head((r)->script, (n)), (text)))
#define ASSERT_NOT_SENT(r, n, text) assert_null(strcasestr(script_head((r)->script, (n)), (text)))

/* ---- on the wire ---- */

static void requests_are_signed_and_name_the_host(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e1\"\r\nContent-Length: 0\r\n\r\n");
    put(r, "hello");
    assert_int_equal(r->code, XF_OK);
    assert_string_equal(r->etag.ptr, "e1");
    ASSERT_SENT(r, 0, "PUT /bkt/k HTTP/1.1\r\n");
    ASSERT_SENT(r, 0, "\r\nHost: 127.0.0.1:");
    ASSERT_SENT(r, 0, "authorization: AWS4-HMAC-SHA256 Credential=AKIAKEYNUMBER0/");
    ASSERT_SENT(r, 0, "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature=");
    ASSERT_SENT(r,
                0, /* sha256 of hello: plain HTTP signs the bytes */
                "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824");
    ASSERT_NOT_SENT(r, 0, "\r\nexpect");
    ASSERT_NOT_SENT(r, 0, RIG_SECRET);
    assert_int_equal(script_body(r->script, 0).len, 5);
}

static void c032_c033_odd_keys_go_out_byte_for_byte(void **state)
{
    static const struct {
        const char *key;
        const char *line;
    } rows[] = {
        {"/1.txt", "HEAD /bkt//1.txt HTTP"},
        {"//x", "HEAD /bkt///x HTTP"},
        {"a//b", "HEAD /bkt/a//b HTTP"},
        {"a//", "HEAD /bkt/a// HTTP"},
        {".", "HEAD /bkt/. HTTP"},
        {"..", "HEAD /bkt/.. HTTP"},
        {"d/./e", "HEAD /bkt/d/./e HTTP"},
        {"d/../e", "HEAD /bkt/d/../e HTTP"},
        {"c++ %41", "HEAD /bkt/c%2B%2B%20%2541 HTTP"},
        {"x?v=1#y", "HEAD /bkt/x%3Fv%3D1%23y HTTP"},
    };
    struct rig *r = *state;

    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\nETag: \"e\"\r\n\r\n");
        head(r, rows[i].key);
        assert_int_equal(r->code, XF_OK);
        assert_int_equal(r->size, 7);
        ASSERT_SENT(r, i, rows[i].line);
    }
    assert_int_equal(script_connections(r->script), 1); /* and one connection serves them all */
}

static void c035_copy_source_is_encoded_once(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               CHUNKED
               "58\r\n<CopyObjectResult><LastModified>2013-05-24T00:00:00.000Z</LastModified>"
               "<ETag>\"e\"</ETag>\r\n13\r\n</CopyObjectResult>\r\n0\r\n\r\n");
    copy(r);
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "x-amz-copy-source: /src/a%20b%2Bc\r\n");
    ASSERT_SENT(r, 0, "x-amz-copy-source-if-match: \"abc\"\r\n");
    ASSERT_SENT(r, 0, "x-amz-storage-class: STANDARD_IA\r\n");
    ASSERT_SENT(r, 0, "Content-Length: 0\r\n");
    ASSERT_NOT_SENT(r, 0, "metadata-directive");
    assert_string_equal(r->etag.ptr, "e");
}

static void c045_bodies_are_never_decoded(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Encoding: gzip\r\n"
               "Content-Length: 5\r\n\r\n\x1f\x8bzzz");
    get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(r->sunk.len, 5);
    assert_memory_equal(r->sunk.ptr, "\x1f\x8bzzz", 5);
    assert_string_equal(r->content_encoding.ptr, "gzip");
    ASSERT_SENT(r, 0, "accept-encoding: identity\r\n");
    ASSERT_SENT(r, 0, "if-match: \"abc\"\r\n");
    ASSERT_NOT_SENT(r, 0, "signedheaders=accept");

    /* A provider that packs on the way: the length is not the object's. */
    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Encoding: gzip\r\n"
               "Transfer-Encoding: chunked\r\n\r\n3\r\n\x1f\x8bz\r\n0\r\n\r\n");
    get(r, 3893, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_non_null(strstr(r->msg.ptr, "got 3 of 3893 bytes"));
    assert_non_null(strstr(r->msg.ptr, "Content-Encoding: gzip"));
}

static void c046_aws_chunked_is_taken_off(void **state)
{
    static const char *const rows[][2] = {{"aws-chunked", ""},
                                          {"aws-chunked,gzip", "gzip"},
                                          {"gzip, aws-chunked", "gzip"},
                                          {"", ""},
                                          {"gzip", "gzip"}};
    struct rig *r = *state;

    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        XF_AUTO_BUF text = {0};

        xf_buf_putf(&text,
                    "HTTP/1.1 200 OK\r\nContent-Encoding: %s\r\nContent-Length: 1\r\n\r\n",
                    rows[i][0]);
        script_say(r->script, text.ptr);
        head(r, "k");
        assert_int_equal(r->code, XF_OK);
        assert_string_equal(r->content_encoding.ptr, rows[i][1]);
    }
}

static void c005_attributes_read_by_head_are_written_to_create(void **state)
{
    struct rig *r = *state;
    static const struct xf_s3_meta meta[] = {{{"k", 1}, {"v", 1}}, {{"empty", 5}, {"", 0}}};
    static const struct xf_s3_attrs attrs = {
        .content_type = {"video/mp4", 9},
        .cache_control = {"max-age=123456", 14},
        .content_disposition = {"attachment; filename=\"a b.mp4\"", 30},
        .website_redirect = {"/z", 2},
        .meta = meta,
        .n_meta = 2,
    };
    struct xf_s3_create_opts o = {KEY("k"), .attrs = &attrs, .tags = XF_STR_LIT("team=x%20y")};
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               with_length(&text,
                           "200 OK",
                           "",
                           "<InitiateMultipartUploadResult><UploadId>U+/=1</UploadId>"
                           "</InitiateMultipartUploadResult>"));
    assert_non_null(xf_s3_create(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    assert_string_equal(r->upload_id.ptr, "U+/=1");
    ASSERT_SENT(r, 0, "POST /bkt/k?uploads= HTTP/1.1\r\n");
    ASSERT_SENT(r, 0, "content-type: video/mp4\r\n");
    ASSERT_SENT(r, 0, "cache-control: max-age=123456\r\n");
    ASSERT_SENT(r, 0, "content-disposition: attachment; filename=\"a b.mp4\"\r\n");
    ASSERT_SENT(r, 0, "x-amz-website-redirect-location: /z\r\n");
    ASSERT_SENT(r, 0, "x-amz-meta-k: v\r\n");
    ASSERT_SENT(r, 0, "x-amz-meta-empty:\r\n");
    ASSERT_SENT(r, 0, "x-amz-tagging: team=x%20y\r\n");
}

static void a_header_value_cannot_smuggle_another(void **state)
{
    struct rig *r = *state;
    static const struct xf_s3_attrs attrs = {.content_type = {"a\r\nx-amz-acl: public-read", 25}};
    struct xf_s3_create_opts o = {KEY("k"), .attrs = &attrs};

    assert_non_null(xf_s3_create(r->s3, &o, rig_done, r));
    assert_int_equal(r->n_done, 0); /* never before the call returned */
    rig_wait(r);
    assert_int_equal(r->code, XF_E_INVAL);
    assert_int_equal(script_requests(r->script), 0);
}

/* ---- copies ---- */

static void c001_a_200_without_a_result_is_no_copy(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"d41d8cd98f00b204e9800998ecf8427e\"\r\n"
               "Content-Length: 0\r\n\r\n");
    copy(r);
    assert_int_equal(r->code, XF_E_NO_COPY);
    assert_true(r->copy_ignored);
    assert_true(r->maybe_done);
}

static void c002_an_error_in_a_200_is_an_error(void **state)
{
    static const char *const bodies[] = {
        XML "<Error><Code>SlowDown</Code><Message>m</Message></Error>",
        "  \n\n " XML "<Error><Code>InternalError</Code><Message>m</Message></Error>",
    };
    static const enum xf_code codes[] = {XF_E_THROTTLED, XF_E_SERVER};
    struct rig *r = *state;

    for (size_t i = 0; i < XF_ARRAY_LEN(bodies); i++) {
        XF_AUTO_BUF text = {0};

        script_say(r->script, with_length(&text, "200 OK", "", bodies[i]));
        copy(r);
        assert_int_equal(r->code, codes[i]);
        assert_true(r->maybe_done);
        assert_false(r->copy_ignored);
        assert_non_null(strstr(r->msg.ptr, i == 0 ? "SlowDown: m" : "InternalError: m"));
    }
}

static void c002_a_cut_result_is_an_unknown_outcome(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               with_length(&text, "200 OK", "", XML "<CopyObjectResult><ETag>\"e\"</ET"));
    copy(r);
    assert_int_equal(r->code, XF_E_XML);
    assert_true(r->maybe_done);
    assert_false(r->copy_ignored);
}

static void a_result_without_an_etag_is_no_success(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(
        r->script,
        with_length(
            &text, "200 OK", "", "<CopyObjectResult><Progress>1</Progress></CopyObjectResult>"));
    copy(r);
    assert_int_equal(r->code, XF_E_XML);
    assert_true(r->maybe_done);
}

static void c008_not_implemented_means_no_server_copy(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               with_length(
                   &text, "501 Not Implemented", "", "<Error><Code>NotImplemented</Code></Error>"));
    copy(r);
    assert_int_equal(r->code, XF_E_NO_COPY);
    assert_false(r->copy_ignored);
}

/* ---- bodies of answers ---- */

static void c044_short_body_is_never_a_success(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: "
                                             "1048576\r\n\r\n",
                                     .fill = 1000000,
                                     .after = SCRIPT_CLOSE});
    get(r, 1048576, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_int_equal(r->sunk.len, 1000000);
    assert_non_null(strstr(r->msg.ptr, "got 1000000 of 1048576"));
}

static void c044_reset_in_the_body_is_an_error(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: "
                                             "100000\r\n\r\n",
                                     .fill = 5000,
                                     .after = SCRIPT_RESET});
    get(r, 100000, 0, 0);
    assert_true(r->code == XF_E_NET || r->code == XF_E_TRUNCATED);
}

static void c044_clean_chunked_end_before_the_size_is_an_error(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nTransfer-Encoding: "
               "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    get(r, 9, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_non_null(strstr(r->msg.ptr, "got 5 of 9"));
}

static void c044_longer_bodies_are_errors(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nTransfer-Encoding: "
               "chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n");
    get(r, 4, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_true(r->sunk.len <= 4);
    script_say(r->script,
               "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello and more");
    get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_non_null(strstr(r->msg.ptr, "more than the announced 5"));
}

static void c044_an_answer_for_another_object_size_is_a_change(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello");
    get(r, 7, 0, 0);
    assert_int_equal(r->code, XF_E_CHANGED);
    assert_int_equal(r->sunk.len, 0);
    script_say(r->script,
               "HTTP/1.1 206 Partial Content\r\nETag: \"abc\"\r\nContent-Length: 2\r\n"
               "Content-Range: bytes 1-2/9\r\n\r\nel");
    get(r, 5, 1, 2);
    assert_int_equal(r->code, XF_E_CHANGED);
    assert_int_equal(r->sunk.len, 0);
}

static void c004_another_etag_is_a_change(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"other\"\r\nContent-Length: 5\r\n\r\nhello");
    get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_CHANGED);
    assert_int_equal(r->sunk.len, 0);
    script_say(r->script, "HTTP/1.1 412 Precondition Failed\r\nContent-Length: 0\r\n\r\n");
    get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_CHANGED);
}

static void ranges_are_checked(void **state)
{
    struct rig *r = *state;

    script_say(r->script,
               "HTTP/1.1 206 Partial Content\r\nETag: \"abc\"\r\nContent-Length: 3\r\n"
               "Content-Range: bytes 1-3/5\r\n\r\nell");
    get(r, 5, 1, 3);
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(r->size, 5);
    assert_string_equal(r->sunk.ptr, "ell");
    ASSERT_SENT(r, 0, "range: bytes=1-3\r\n");

    script_say(r->script,
               "HTTP/1.1 206 Partial Content\r\nETag: \"abc\"\r\nContent-Length: 3\r\n"
               "Content-Range: bytes 0-2/5\r\n\r\nhel");
    get(r, 5, 1, 3);
    assert_int_equal(r->code, XF_E_XML); /* another range */
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello");
    get(r, 5, 1, 3);
    assert_int_equal(r->code, XF_E_XML); /* range ignored */
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 5\r\n\r\nhello");
    get(r, 5, 0, 5);
    assert_int_equal(r->code, XF_OK); /* ignored, but it was the whole object */
    assert_string_equal(r->sunk.ptr, "hello");
}

static void a_paused_sink_gets_the_same_bytes_after_resume(void **state)
{
    struct rig *r = *state;
    struct xf_s3_get_opts o = {KEY("k"), .object_size = 300000, .sink = rig_sink(r)};
    struct xf_s3_req *req;
    int64_t until_ms = xf_clock_mono_ms(xf_clock_real()) + 10000;

    r->pause_sink = true;
    script_add(r->script,
               (struct script_reply){
                   .text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 300000\r\n\r\n",
                   .fill = 300000});
    req = xf_s3_get(r->s3, &o, rig_done, r);
    while (r->n_done == 0 && xf_clock_mono_ms(xf_clock_real()) < until_ms) {
        unsigned before = r->pauses;

        r->pause_sink = true;
        while (r->pauses == before && r->n_done == 0) {
            xf_loop_turn(r->loop, 20);
        }
        r->pause_sink = false;
        if (r->n_done == 0) {
            xf_s3_resume(req);
        }
        xf_loop_turn(r->loop, 20);
    }
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(r->sunk.len, 300000);
    assert_true(r->pauses >= 1);
}

/* ---- listings ---- */

static void c019_a_broken_page_is_never_the_end(void **state)
{
    static const char *const bodies[] = {
        "",
        "<ListBucketResult><IsTruncated>false</IsTrunc",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        "<ListBucketResult><Contents><Key>a</Key></Contents></ListBucketResult>",
        "<Error><Code>InternalError</Code></Error>",
        "<html><body>gateway</body></html>",
    };
    struct rig *r = *state;

    for (size_t i = 0; i < XF_ARRAY_LEN(bodies); i++) {
        XF_AUTO_BUF text = {0};

        script_say(r->script, with_length(&text, "200 OK", "", bodies[i]));
        list(r);
        assert_int_not_equal(r->code, XF_OK);
        assert_int_equal(xf_code_class(r->code), XF_CLASS_RETRY);
        assert_int_equal(r->n_objects, 0);
    }
    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
                                             "<ListBucketResult><IsTruncated>false</IsTruncated>",
                                     .after = SCRIPT_RESET});
    list(r);
    assert_int_equal(xf_code_class(r->code), XF_CLASS_RETRY);
}

static void a_page_is_listed(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               with_length(&text,
                           "200 OK",
                           "",
                           XML "<ListBucketResult" S3_NS "><Name>bkt</Name><KeyCount>2</KeyCount>"
                               "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
                               "<Contents><Key>p/a+b%2Bc</Key><Size>5</Size><ETag>&quot;e&quot;"
                               "</ETag></Contents><Contents><Key>p/z</Key><Size>0</Size></Contents>"
                               "</ListBucketResult>"));
    list(r);
    assert_int_equal(r->code, XF_OK);
    assert_string_equal(r->keys.ptr, "p/a b+c|p/z|");
    ASSERT_SENT(
        r, 0, "GET /bkt?encoding-type=url&list-type=2&max-keys=1000&prefix=p%2F HTTP/1.1\r\n");
}

static void an_answer_without_end_is_cut_off(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nConnection: "
                                             "close\r\n\r\n<ListBucketResult>",
                                     .fill = 1U << 30,
                                     .after = SCRIPT_CLOSE});
    list(r);
    assert_int_equal(r->code, XF_E_XML);
    script_add(r->script,
               (struct script_reply){
                   .text = "HTTP/1.1 200 OK\r\nX-Junk: ", .fill = 1U << 20, .after = SCRIPT_CLOSE});
    head(r, "k");
    assert_int_not_equal(r->code, XF_OK);
}

/* ---- errors ---- */

static void c060_slow_down_in_all_its_forms(void **state)
{
    static const char *const replies[] = {
        "HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\nRetry-After: 5\r\n\r\n",
        "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\nx-amz-retry-after: 250\r\n\r\n",
        "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 17\r\n\r\n<html>busy</html>",
    };
    static const int64_t after_ms[] = {5000, 250, -1};
    struct rig *r = *state;

    for (size_t i = 0; i < XF_ARRAY_LEN(replies); i++) {
        script_say(r->script, replies[i]);
        put(r, "x");
        assert_int_equal(r->code, XF_E_THROTTLED);
        assert_int_equal(r->retry_after_ms, after_ms[i]);
    }
}

static void c064_wrong_region_is_told_with_its_name(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               "HTTP/1.1 301 Moved\r\nx-amz-bucket-region: eu-central-1\r\n"
               "Content-Length: 0\r\n\r\n");
    head(r, "k");
    assert_int_equal(r->code, XF_E_REDIRECT);
    assert_string_equal(r->region.ptr, "eu-central-1");
    script_say(r->script,
               "HTTP/1.1 400 Bad Request\r\nx-amz-bucket-region: eu-central-1\r\n"
               "Content-Length: 0\r\n\r\n");
    head(r, "k");
    assert_int_equal(r->code, XF_E_REDIRECT);
    script_say(r->script,
               with_length(&text,
                           "400 Bad Request",
                           "",
                           "<Error><Code>AuthorizationHeaderMalformed</Code><Region>ap-northeast-1"
                           "</Region></Error>"));
    put(r, "x");
    assert_int_equal(r->code, XF_E_REDIRECT);
    assert_string_equal(r->region.ptr, "ap-northeast-1");
    assert_non_null(strstr(r->msg.ptr, "ap-northeast-1"));
    script_say(r->script,
               "HTTP/1.1 307 Temporary Redirect\r\nLocation: http://evil.example/\r\n"
               "Content-Length: 0\r\n\r\n");
    head(r, "k"); /* not followed */
    assert_int_equal(r->code, XF_E_REDIRECT);
}

static void c017_missing_objects_and_buckets_differ(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    head(r, "k");
    assert_int_equal(r->code, XF_E_NOT_FOUND);
    script_say(r->script,
               with_length(&text, "404 Not Found", "", "<Error><Code>NoSuchBucket</Code></Error>"));
    copy(r);
    assert_int_equal(r->code, XF_E_NO_BUCKET);
    script_say(r->script,
               "HTTP/1.1 405 No\r\nx-amz-delete-marker: true\r\nContent-Length: 0\r\n\r\n");
    head(r, "k");
    assert_int_equal(r->code, XF_E_NOT_FOUND);
}

static void c012_archived_objects_are_told(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(
        r->script,
        with_length(&text, "403 Forbidden", "", "<Error><Code>InvalidObjectState</Code></Error>"));
    get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_ARCHIVED);
}

static void a_lost_reply_leaves_a_write_open(void **state)
{
    struct rig *r = *state;

    script_add(r->script, (struct script_reply){.after = SCRIPT_CLOSE});
    put(r, "x");
    assert_int_equal(r->code, XF_E_NET);
    assert_true(r->maybe_done);
    script_add(r->script, (struct script_reply){.after = SCRIPT_CLOSE});
    head(r, "k");
    assert_int_equal(r->code, XF_E_NET);
    assert_false(r->maybe_done);
}

static void nobody_there_is_unreachable_and_names_the_address(void **state)
{
    struct rig *r = *state;
    struct rig gone;
    struct rig_opts o = {.port = 1}; /* tcpmux: nobody listens on loopback */

    rig_open(&gone, &o);
    head(&gone, "k");
    assert_int_equal(gone.code, XF_E_UNREACHABLE);
    assert_false(gone.maybe_done);
    assert_non_null(strstr(gone.msg.ptr, "127.0.0.1"));
    rig_close(&gone);
    assert_int_equal(script_requests(r->script), 0);
}

/* ---- repeats ---- */

static void a_clock_that_is_off_is_corrected_once_and_remembered(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};
    XF_AUTO_BUF body = {0};
    char date[XF_TIME_TEXT_MAX];
    int64_t server_ms = xf_clock_wall_ms(xf_clock_real()) + 3600000;

    xf_time_rfc3339(server_ms, false, date);
    xf_buf_putf(
        &body, "<Error><Code>RequestTimeTooSkewed</Code><ServerTime>%s</ServerTime></Error>", date);
    script_say(r->script, with_length(&text, "403 Forbidden", "", body.ptr));
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
    put(r, "x");
    assert_int_equal(r->code, XF_OK);
    assert_int_equal(script_requests(r->script), 2);
    assert_true(xf_s3_clock_offset_ms(r->s3) > 3590000);
    assert_true(xf_s3_clock_offset_ms(r->s3) < 3610000);
    xf_time_amz(server_ms, date);
    date[11] = '\0'; /* to the hour; the test may run across one, hence the day at least */
    date[8] = '\0';
    ASSERT_SENT(r, 1, date);

    script_say(r->script, text.ptr);
    script_say(r->script, text.ptr);
    put(r, "x");
    assert_int_equal(r->code, XF_E_CLOCK); /* once only */
    assert_int_equal(script_requests(r->script), 4);
}

static void c059_expired_token_is_renewed_once(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    with_length(&text, "400 Bad Request", "", "<Error><Code>ExpiredToken</Code></Error>");
    r->generation = 1; /* the source has newer keys */
    script_say(r->script, text.ptr);
    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
    put(r, "x");
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "AKIAKEYNUMBER0/");
    ASSERT_SENT(r, 1, "AKIAKEYNUMBER1/");
    ASSERT_SENT(r, 1, "x-amz-security-token: " RIG_TOKEN);

    script_say(r->script, text.ptr); /* the same old keys again: no loop */
    put(r, "x");
    assert_int_equal(r->code, XF_E_CREDS);
    assert_int_equal(script_requests(r->script), 3);
}

static void c059_expired_token_on_head_is_seen_in_a_header(void **state)
{
    struct rig *r = *state;

    r->generation = 1;
    script_say(r->script,
               "HTTP/1.1 400 Bad Request\r\nx-amz-error-code: ExpiredToken\r\n"
               "Content-Length: 0\r\n\r\n");
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    head(r, "k");
    assert_int_equal(r->code, XF_OK);
    r->generation = 2; /* and where even the header is missing */
    script_say(r->script, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    head(r, "k");
    assert_int_equal(r->code, XF_OK);
}

/* ---- stalls ---- */

static void c061_no_answer_ends_in_time(void **state)
{
    struct rig *r = *state;

    script_add(r->script, (struct script_reply){.after = SCRIPT_STALL});
    put(r, "x");
    assert_int_equal(r->code, XF_E_TIMEOUT);
    assert_true(r->maybe_done);
}

static void c061_silence_in_the_body_is_a_stall(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: "
                                             "100000\r\n\r\n",
                                     .fill = 5000,
                                     .after = SCRIPT_STALL});
    get(r, 100000, 0, 0);
    assert_int_equal(r->code, XF_E_STALLED);
    assert_non_null(strstr(r->msg.ptr, "stalled at byte 5000"));
}

static void c061_a_drip_of_bytes_is_a_stall(void **state)
{
    struct rig *r = *state;

    script_add(r->script,
               (struct script_reply){
                   .text =
                       "HTTP/1.1 200 OK\r\nETag: \"abc\"\r\nContent-Length: 100000\r\n\r\n"
                       "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
                   .drip_ms = 10,
                   .after = SCRIPT_STALL});
    get(r, 100000, 0, 0);
    assert_int_equal(r->code, XF_E_STALLED);
}

static void c061_a_body_that_nobody_reads_is_a_stall(void **state)
{
    struct rig *r = *state;
    size_t len = 32U << 20;
    XF_AUTO_FREE char *body = xf_xcalloc(1, len);
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = {body, len}}};

    script_add(r->script, (struct script_reply){.before_body = true, .after = SCRIPT_STALL});
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_STALLED);
}

static void c061_a_slow_server_copy_is_no_stall(void **state)
{
    struct rig *r = *state;

    /* Padding trickles for longer than the stall window; the copy is patient. */
    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n"
                                             "                                        "
                                             "<CopyObjectResult><ETag>e</ETag></CopyObjectResult>",
                                     .drip_ms = 5,
                                     .after = SCRIPT_CLOSE});
    copy(r);
    assert_int_equal(r->code, XF_OK);
}

/* ---- streams ---- */

struct stream {
    uint64_t at;
    uint64_t size;
    bool pause; /* the next pull pauses */
    unsigned pauses;
    unsigned rewinds;
};

static enum xf_http_flow stream_pull(void *arg, char *buf, size_t cap, size_t *n)
{
    struct stream *s = arg;

    if (s->pause) {
        s->pause = false;
        s->pauses++;
        return XF_HTTP_PAUSE;
    }
    *n = cap > 10000 ? 10000 : cap;
    *n = s->size - s->at < *n ? (size_t)(s->size - s->at) : *n;
    memset(buf, 'a', *n);
    s->at += *n;
    s->pause = s->at == 20000;
    return XF_HTTP_GO;
}

static bool stream_rewind(void *arg)
{
    struct stream *s = arg;

    s->at = 0;
    s->rewinds++;
    return true;
}

static void a_stream_over_plain_http_is_signed_in_chunks(void **state)
{
    struct rig *r = *state;
    struct stream stream = {.size = 66560};
    struct xf_s3_part_opts o = {
        KEY("k"),
        .upload_id = XF_STR_LIT("u"),
        .part_no = 2,
        .body = {.pull = stream_pull, .rewind = stream_rewind, .arg = &stream, .size = 66560}};
    struct xf_s3_req *req;
    int64_t until_ms = xf_clock_mono_ms(xf_clock_real()) + 10000;
    struct xf_str body;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e\"\r\nContent-Length: 0\r\n\r\n");
    req = xf_s3_part(r->s3, &o, rig_done, r);
    while (stream.pauses == 0 && xf_clock_mono_ms(xf_clock_real()) < until_ms) {
        xf_loop_turn(r->loop, 20);
    }
    assert_int_equal(r->n_done, 0);
    xf_s3_resume(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "PUT /bkt/k?partNumber=2&uploadId=u HTTP/1.1\r\n");
    ASSERT_SENT(r, 0, "x-amz-content-sha256: STREAMING-AWS4-HMAC-SHA256-PAYLOAD\r\n");
    ASSERT_SENT(r, 0, "x-amz-decoded-content-length: 66560\r\n");
    ASSERT_SENT(r, 0, "content-encoding: aws-chunked\r\n");
    ASSERT_SENT(r, 0, "Content-Length: 66824\r\n");
    body = script_body(r->script, 0);
    assert_int_equal(body.len, 66824);
    assert_memory_equal(body.ptr, "10000;chunk-signature=", 22);
    assert_memory_equal(body.ptr + body.len - 4, "\r\n\r\n", 4);
    assert_memory_equal(body.ptr + body.len - 86, "0;chunk-signature=", 18);
}

static void a_stream_that_ends_early_is_an_error(void **state)
{
    struct rig *r = *state;
    struct stream stream = {.size = 30000};
    struct xf_s3_part_opts o = {KEY("k"),
                                .upload_id = XF_STR_LIT("u"),
                                .part_no = 1,
                                .body = {.pull = stream_pull, .arg = &stream, .size = 66560}};
    struct xf_s3_req *req;

    script_say(r->script, OK0);
    req = xf_s3_part(r->s3, &o, rig_done, r);
    while (stream.pauses == 0) {
        xf_loop_turn(r->loop, 20);
    }
    xf_s3_resume(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_TRUNCATED);
    assert_int_equal(script_requests(r->script), 0);
}

static void an_early_refusal_of_a_large_body_is_heard(void **state)
{
    struct rig *r = *state;
    size_t len = 8U << 20;
    XF_AUTO_FREE char *body = xf_xcalloc(1, len);
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = {body, len}}};

    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 403 Forbidden\r\nContent-Length: 42\r\n\r\n"
                                             "<Error><Code>AccessDenied</Code></Error>\r\n",
                                     .before_body = true,
                                     .after = SCRIPT_CLOSE});
    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_DENIED);
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    head(r, "k"); /* on a new connection: the old one has half a body in it */
    assert_int_equal(r->code, XF_OK);
}

/* ---- multipart ---- */

static void c003_complete_wants_ascending_parts_with_etags(void **state)
{
    struct rig *r = *state;
    struct xf_xml_part parts[] = {{.part_no = 1, .etag = {"\"e1\"", 4}},
                                  {.part_no = 2, .etag = {"e<2", 3}}};
    struct xf_s3_complete_opts o = {
        KEY("k"), .upload_id = XF_STR_LIT("U+/="), .parts = parts, .n_parts = 2, .object_size = 10};
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               with_length(&text,
                           "200 OK",
                           "",
                           "\n  " XML "<CompleteMultipartUploadResult><ETag>\"x-2\""
                           "</ETag></CompleteMultipartUploadResult>"));
    assert_non_null(xf_s3_complete(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    assert_string_equal(r->etag.ptr, "x-2");
    ASSERT_SENT(r, 0, "POST /bkt/k?uploadId=U%2B%2F%3D HTTP/1.1\r\n");
    ASSERT_NOT_SENT(r, 0, "mp-object-size"); /* AWS only */
    assert_true(xf_str_eq_c(script_body(r->script, 0),
                            "<CompleteMultipartUpload" S3_NS
                            "><Part><PartNumber>1</PartNumber><ETag>\"e1\"</ETag>"
                            "</Part><Part><PartNumber>2</PartNumber><ETag>\"e&lt;2\"</ETag></Part>"
                            "</CompleteMultipartUpload>"));

    parts[1].part_no = 1;
    assert_non_null(xf_s3_complete(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_INVAL);
    assert_int_equal(script_requests(r->script), 1);
}

static void c053_no_such_upload_after_a_lost_reply(void **state)
{
    struct rig *r = *state;
    struct xf_xml_part part = {.part_no = 1, .etag = {"e1", 2}};
    struct xf_s3_complete_opts o = {
        KEY("k"), .upload_id = XF_STR_LIT("u"), .parts = &part, .n_parts = 1};
    XF_AUTO_BUF text = {0};

    script_add(r->script, (struct script_reply){.after = SCRIPT_CLOSE});
    assert_non_null(xf_s3_complete(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_true(r->maybe_done);
    script_say(r->script,
               with_length(&text, "404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>"));
    assert_non_null(xf_s3_complete(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_NO_UPLOAD);
    script_say(r->script, OK0); /* an empty 200 proves nothing */
    assert_non_null(xf_s3_complete(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_XML);
    assert_true(r->maybe_done);
}

static void c057_part_10001_is_refused(void **state)
{
    struct rig *r = *state;
    struct xf_s3_part_opts o = {KEY("k"), .upload_id = XF_STR_LIT("u"), .part_no = 10001};

    assert_non_null(xf_s3_part(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_E_INVAL);
    assert_int_equal(script_requests(r->script), 0);
}

static void an_abort_is_answered_by_204(void **state)
{
    struct rig *r = *state;
    struct xf_s3_upload_opts o = {KEY("k"), .upload_id = XF_STR_LIT("u")};

    script_say(r->script, "HTTP/1.1 204 No Content\r\n\r\n");
    assert_non_null(xf_s3_abort(r->s3, &o, rig_done, r));
    rig_wait(r);
    assert_int_equal(r->code, XF_OK);
    ASSERT_SENT(r, 0, "DELETE /bkt/k?uploadId=u HTTP/1.1\r\n");
}

/* ---- cancel ---- */

static void cancel_calls_done_once(void **state)
{
    struct rig *r = *state;
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = XF_STR_LIT("x")}};
    struct xf_s3_req *req;

    script_add(r->script, (struct script_reply){.after = SCRIPT_STALL});
    req = xf_s3_put(r->s3, &o, rig_done, r);
    while (script_requests(r->script) == 0) {
        xf_loop_turn(r->loop, 20);
    }
    xf_s3_cancel(req);
    assert_int_equal(r->n_done, 0);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CANCELLED);
    assert_true(r->maybe_done);
    xf_loop_turn(r->loop, 10);
    assert_int_equal(r->n_done, 1);
    assert_int_equal(xf_s3_in_flight(r->s3), 0);

    req = xf_s3_put(r->s3, &o, rig_done, r); /* before it was sent at all */
    xf_s3_cancel(req);
    rig_wait(r);
    assert_int_equal(r->code, XF_E_CANCELLED);
}

#define T(fn)          cmocka_unit_test_setup_teardown(fn, setup, teardown)
#define IMPATIENT(fn)  cmocka_unit_test_setup_teardown(fn, setup_impatient, teardown)
#define WITH_TOKEN(fn) cmocka_unit_test_setup_teardown(fn, setup_token, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(requests_are_signed_and_name_the_host),
        T(c032_c033_odd_keys_go_out_byte_for_byte),
        T(c035_copy_source_is_encoded_once),
        T(c045_bodies_are_never_decoded),
        T(c046_aws_chunked_is_taken_off),
        T(c005_attributes_read_by_head_are_written_to_create),
        T(a_header_value_cannot_smuggle_another),
        T(c001_a_200_without_a_result_is_no_copy),
        T(c002_an_error_in_a_200_is_an_error),
        T(c002_a_cut_result_is_an_unknown_outcome),
        T(a_result_without_an_etag_is_no_success),
        T(c008_not_implemented_means_no_server_copy),
        T(c044_short_body_is_never_a_success),
        T(c044_reset_in_the_body_is_an_error),
        T(c044_clean_chunked_end_before_the_size_is_an_error),
        T(c044_longer_bodies_are_errors),
        T(c044_an_answer_for_another_object_size_is_a_change),
        T(c004_another_etag_is_a_change),
        T(ranges_are_checked),
        T(a_paused_sink_gets_the_same_bytes_after_resume),
        T(c019_a_broken_page_is_never_the_end),
        T(a_page_is_listed),
        T(an_answer_without_end_is_cut_off),
        T(c060_slow_down_in_all_its_forms),
        T(c064_wrong_region_is_told_with_its_name),
        T(c017_missing_objects_and_buckets_differ),
        T(c012_archived_objects_are_told),
        T(a_lost_reply_leaves_a_write_open),
        T(nobody_there_is_unreachable_and_names_the_address),
        T(a_clock_that_is_off_is_corrected_once_and_remembered),
        WITH_TOKEN(c059_expired_token_is_renewed_once),
        WITH_TOKEN(c059_expired_token_on_head_is_seen_in_a_header),
        IMPATIENT(c061_no_answer_ends_in_time),
        IMPATIENT(c061_silence_in_the_body_is_a_stall),
        IMPATIENT(c061_a_drip_of_bytes_is_a_stall),
        IMPATIENT(c061_a_body_that_nobody_reads_is_a_stall),
        IMPATIENT(c061_a_slow_server_copy_is_no_stall),
        T(a_stream_over_plain_http_is_signed_in_chunks),
        T(a_stream_that_ends_early_is_an_error),
        T(an_early_refusal_of_a_large_body_is_heard),
        T(c003_complete_wants_ascending_parts_with_etags),
        T(c053_no_such_upload_after_a_lost_reply),
        T(c057_part_10001_is_refused),
        T(an_abort_is_answered_by_204),
        T(cancel_calls_done_once),
    };

    return xf_test_run("s3/client", tests, NULL, NULL);
}
