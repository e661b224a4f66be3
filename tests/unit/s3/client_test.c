/*
 * client_test.c - what the operations send, and what they make of good and of bad answers.
 */
#include "tests/lib/test.h"
#include "tests/unit/s3/rig.h"

#include <sys/resource.h>
#include <unistd.h>

#define OK0     "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
#define XML     "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
#define S3_NS   " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""
#define CHUNKED "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"

/* ---- on the wire ---- */

static void requests_are_signed_and_name_the_host(void **state)
{
    struct rig *r = *state;

    script_say(r->script, "HTTP/1.1 200 OK\r\nETag: \"e1\"\r\nContent-Length: 0\r\n\r\n");
    rig_put(r, "hello");
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
        rig_head(r, rows[i].key);
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
    rig_copy(r);
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
    rig_get(r, 5, 0, 0);
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
    rig_get(r, 3893, 0, 0);
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
        rig_head(r, "k");
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
               rig_reply(&text,
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
    rig_copy(r);
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

        script_say(r->script, rig_reply(&text, "200 OK", "", bodies[i]));
        rig_copy(r);
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

    script_say(r->script, rig_reply(&text, "200 OK", "", XML "<CopyObjectResult><ETag>\"e\"</ET"));
    rig_copy(r);
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
        rig_reply(
            &text, "200 OK", "", "<CopyObjectResult><Progress>1</Progress></CopyObjectResult>"));
    rig_copy(r);
    assert_int_equal(r->code, XF_E_XML);
    assert_true(r->maybe_done);
}

static void c008_not_implemented_means_no_server_copy(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(
        r->script,
        rig_reply(&text, "501 Not Implemented", "", "<Error><Code>NotImplemented</Code></Error>"));
    rig_copy(r);
    assert_int_equal(r->code, XF_E_NO_COPY);
    assert_false(r->copy_ignored);
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

        script_say(r->script, rig_reply(&text, "200 OK", "", bodies[i]));
        rig_list(r);
        assert_int_not_equal(r->code, XF_OK);
        assert_int_equal(xf_code_class(r->code), XF_CLASS_RETRY);
        assert_int_equal(r->n_objects, 0);
    }
    script_add(r->script,
               (struct script_reply){.text = "HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"
                                             "<ListBucketResult><IsTruncated>false</IsTruncated>",
                                     .after = SCRIPT_RESET});
    rig_list(r);
    assert_int_equal(xf_code_class(r->code), XF_CLASS_RETRY);
}

static void a_page_is_listed(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script,
               rig_reply(&text,
                         "200 OK",
                         "",
                         XML "<ListBucketResult" S3_NS "><Name>bkt</Name><KeyCount>2</KeyCount>"
                             "<EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
                             "<Contents><Key>p/a+b%2Bc</Key><Size>5</Size><ETag>&quot;e&quot;"
                             "</ETag></Contents><Contents><Key>p/z</Key><Size>0</Size></Contents>"
                             "</ListBucketResult>"));
    rig_list(r);
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
    rig_list(r);
    assert_int_equal(r->code, XF_E_XML);
    script_add(r->script,
               (struct script_reply){
                   .text = "HTTP/1.1 200 OK\r\nX-Junk: ", .fill = 1U << 20, .after = SCRIPT_CLOSE});
    rig_head(r, "k");
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
        rig_put(r, "x");
        assert_int_equal(r->code, XF_E_THROTTLED);
        assert_int_equal(r->retry_after_ms, after_ms[i]);
    }
}

static void c017_missing_objects_and_buckets_differ(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
    rig_head(r, "k");
    assert_int_equal(r->code, XF_E_NOT_FOUND);
    script_say(r->script,
               rig_reply(&text, "404 Not Found", "", "<Error><Code>NoSuchBucket</Code></Error>"));
    rig_copy(r);
    assert_int_equal(r->code, XF_E_NO_BUCKET);
    script_say(r->script,
               "HTTP/1.1 405 No\r\nx-amz-delete-marker: true\r\nContent-Length: 0\r\n\r\n");
    rig_head(r, "k");
    assert_int_equal(r->code, XF_E_NOT_FOUND);
}

static void c012_archived_objects_are_told(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(
        r->script,
        rig_reply(&text, "403 Forbidden", "", "<Error><Code>InvalidObjectState</Code></Error>"));
    rig_get(r, 5, 0, 0);
    assert_int_equal(r->code, XF_E_ARCHIVED);
}

static void a_lost_reply_leaves_a_write_open(void **state)
{
    struct rig *r = *state;

    script_add(r->script, (struct script_reply){.after = SCRIPT_CLOSE});
    rig_put(r, "x");
    assert_int_equal(r->code, XF_E_NET);
    assert_true(r->maybe_done);
    script_add(r->script, (struct script_reply){.after = SCRIPT_CLOSE});
    rig_head(r, "k");
    assert_int_equal(r->code, XF_E_NET);
    assert_false(r->maybe_done);
}

static void nobody_there_is_unreachable_and_names_the_address(void **state)
{
    struct rig *r = *state;
    struct rig gone;
    struct rig_opts o = {.port = 1}; /* tcpmux: nobody listens on loopback */

    rig_open(&gone, &o);
    rig_head(&gone, "k");
    assert_int_equal(gone.code, XF_E_UNREACHABLE);
    assert_false(gone.maybe_done);
    assert_non_null(strstr(gone.msg.ptr, "127.0.0.1"));
    rig_close(&gone);
    assert_int_equal(script_requests(r->script), 0);
}

static void want_of_descriptors_is_this_hosts_fault(void **state)
{
    struct rig *r = *state;
    struct rlimit old;
    struct rlimit none;
    int next = dup(0);

    assert_true(next > 0);
    assert_int_equal(close(next), 0);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    none = old;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    rig_head(r, "k");
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
    assert_int_equal(r->code, XF_E_IO);
    assert_int_equal(xf_code_class(r->code), XF_CLASS_LOCAL);
    script_say(r->script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    rig_head(r, "k");
    assert_int_equal(r->code, XF_OK);
}

/* ---- keys and answers ---- */

static void without_credentials_nothing_is_signed(void **state)
{
    struct rig *r = *state;
    struct rig anonymous;
    struct rig_opts o = {.no_creds = true};

    rig_open(&anonymous, &o);
    script_say(anonymous.script, "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n");
    rig_head(&anonymous, "k");
    assert_int_equal(anonymous.code, XF_OK);
    ASSERT_NOT_SENT(&anonymous, 0, "authorization");
    ASSERT_NOT_SENT(&anonymous, 0, "x-amz-");
    rig_close(&anonymous);
    assert_int_equal(script_requests(r->script), 0);
}

static void a_put_that_something_else_answered_is_no_success(void **state)
{
    struct rig *r = *state;
    XF_AUTO_BUF text = {0};

    script_say(r->script, rig_reply(&text, "200 OK", "", "<html><body>welcome</body></html>"));
    rig_put(r, "x");
    assert_int_equal(r->code, XF_E_XML);
    assert_true(r->maybe_done);
}

static void aws_gets_its_own_headers(void **state)
{
    static const struct xf_s3_meta meta[] = {{{"a", 1}, {"caf\xc3\xa9", 5}}, {{"b", 1}, {"x", 1}}};
    static const struct xf_s3_attrs attrs = {.meta = meta, .n_meta = 2};
    struct rig *r = *state;
    struct rig aws;
    struct rig_opts ro = {.as_aws = true};
    struct xf_xml_part part = {.part_no = 1, .etag = {"e1", 2}};
    struct xf_s3_put_opts po = {KEY("k"), .attrs = &attrs};
    struct xf_s3_complete_opts co = {
        KEY("k"), .upload_id = XF_STR_LIT("u"), .parts = &part, .n_parts = 1, .object_size = 7};
    XF_AUTO_BUF text = {0};

    rig_open(&aws, &ro);
    rig_reply(&text,
              "200 OK",
              "ETag: \"e\"\r\n",
              "<CompleteMultipartUploadResult><ETag>e</ETag></CompleteMultipartUploadResult>");
    script_say(aws.script, text.ptr);
    script_say(aws.script, text.ptr);
    assert_non_null(xf_s3_put(aws.s3, &po, rig_done, &aws));
    rig_wait(&aws);
    ASSERT_SENT(&aws, 0, "x-amz-meta-a: =?UTF-8?B?Y2Fmw6k=?=\r\n");
    ASSERT_SENT(&aws, 0, "x-amz-meta-b: x\r\n");
    assert_non_null(xf_s3_complete(aws.s3, &co, rig_done, &aws));
    rig_wait(&aws);
    ASSERT_SENT(&aws, 1, "x-amz-mp-object-size: 7\r\n");
    rig_close(&aws);

    script_say(r->script, text.ptr); /* another service: the bytes as they are */
    assert_non_null(xf_s3_put(r->s3, &po, rig_done, r));
    rig_wait(r);
    ASSERT_SENT(r, 0, "x-amz-meta-a: caf\xc3\xa9\r\n");
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
               rig_reply(&text,
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
               rig_reply(&text, "404 Not Found", "", "<Error><Code>NoSuchUpload</Code></Error>"));
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

#define T(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

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
        T(c019_a_broken_page_is_never_the_end),
        T(a_page_is_listed),
        T(an_answer_without_end_is_cut_off),
        T(c060_slow_down_in_all_its_forms),
        T(c017_missing_objects_and_buckets_differ),
        T(c012_archived_objects_are_told),
        T(a_lost_reply_leaves_a_write_open),
        T(nobody_there_is_unreachable_and_names_the_address),
        T(want_of_descriptors_is_this_hosts_fault),
        T(without_credentials_nothing_is_signed),
        T(a_put_that_something_else_answered_is_no_success),
        T(aws_gets_its_own_headers),
        T(c003_complete_wants_ascending_parts_with_etags),
        T(c053_no_such_upload_after_a_lost_reply),
        T(c057_part_10001_is_refused),
        T(an_abort_is_answered_by_204),
    };

    return xf_test_run("s3/client", tests, NULL, NULL);
}
