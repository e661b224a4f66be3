/*
 * attrs_test.c - attributes from headers, their copies, archive states, tag sets.
 */
#include "common/s3/attrs.h"
#include "common/s3/http.h"
#include "tests/lib/test.h"

#define H(n, v)              \
    {                        \
        {n, sizeof(n) - 1},  \
        {                    \
            v, sizeof(v) - 1 \
        }                    \
    }
#define READ(attrs, meta, ...)                                                        \
    do {                                                                              \
        static const struct xf_http_header headers_[] = {__VA_ARGS__};                \
        struct xf_http_head head_ = {                                                 \
            .status = 200, .headers = headers_, .n_headers = XF_ARRAY_LEN(headers_)}; \
        xf_s3_attrs_read((attrs), &head_, (meta));                                    \
    } while (0)

static void all_of_them_are_read_and_duplicated(void **state)
{
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs a;
    struct xf_s3_attrs *copy;

    (void)state;
    READ(&a,
         meta,
         H("content-type", "video/mp4"),
         H("cache-control", "max-age=1"),
         H("content-language", "de"),
         H("expires", "Fri, 24 May 2013 00:00:00 GMT"),
         H("x-amz-meta-k", "v"),
         H("x-amz-meta-", "nameless"),
         H("x-amz-meta-e", ""),
         H("x-amz-website-redirect-location", "/z"),
         H("x-amz-storage-class", "GLACIER_IR"),
         H("x-amz-tagging-count", "3"),
         H("x-amz-missing-meta", "2"),
         H("server", "x"));
    copy = xf_s3_attrs_dup(&a);
    memset(meta, 0, sizeof(meta));
    assert_true(xf_str_eq_c(copy->content_type, "video/mp4"));
    assert_true(xf_str_eq_c(copy->expires, "Fri, 24 May 2013 00:00:00 GMT"));
    assert_true(xf_str_eq_c(copy->website_redirect, "/z"));
    assert_int_equal(copy->n_meta, 2);
    assert_true(xf_str_eq_c(copy->meta[0].name, "k"));
    assert_true(xf_str_eq_c(copy->meta[0].value, "v"));
    assert_int_equal(copy->meta[1].value.len, 0);
    assert_true(copy->has_tag_count);
    assert_int_equal(copy->tag_count, 3);
    assert_int_equal(copy->missing_meta, 2);
    assert_false(copy->was_aws_chunked);
    xf_s3_attrs_free(copy);
}

static void more_metadata_than_the_cap_is_cut(void **state)
{
    struct xf_http_header headers[XF_S3_META_MAX + 10];
    struct xf_http_head head = {.headers = headers, .n_headers = XF_ARRAY_LEN(headers)};
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs a;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(headers); i++) {
        headers[i] = (struct xf_http_header){XF_STR_LIT("x-amz-meta-a"), XF_STR_LIT("b")};
    }
    xf_s3_attrs_read(&a, &head, meta);
    assert_int_equal(a.n_meta, XF_S3_META_MAX);
}

static void c046_only_the_framing_token_goes(void **state)
{
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs a;

    (void)state;
    READ(&a, meta, H("content-encoding", "aws-chunked, gzip , br"));
    assert_true(xf_str_eq_c(a.content_encoding, "gzip , br"));
    assert_true(a.was_aws_chunked);
    READ(&a, meta, H("content-encoding", "gzip,aws-chunked,AWS-CHUNKED"));
    assert_true(xf_str_eq_c(a.content_encoding, "gzip"));
    READ(&a, meta, H("content-encoding", "aws-chunkedx"));
    assert_true(xf_str_eq_c(a.content_encoding, "aws-chunkedx"));
    assert_false(a.was_aws_chunked);
}

static void c012_archived_and_restored(void **state)
{
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs a;

    (void)state;
    READ(&a, meta, H("x-amz-storage-class", "GLACIER"));
    assert_true(xf_s3_attrs_is_archived(&a));
    READ(&a,
         meta,
         H("x-amz-storage-class", "DEEP_ARCHIVE"),
         H("x-amz-restore", "ongoing-request=\"true\""));
    assert_true(xf_s3_attrs_is_archived(&a));
    READ(&a,
         meta,
         H("x-amz-storage-class", "GLACIER"),
         H("x-amz-restore",
           "ongoing-request=\"false\", expiry-date=\"Fri, 21 Dec 2012 00:00:00 GMT\""));
    assert_false(xf_s3_attrs_is_archived(&a));
    READ(&a, meta, H("x-amz-storage-class", "GLACIER_IR"));
    assert_false(xf_s3_attrs_is_archived(&a));
    READ(&a,
         meta,
         H("x-amz-storage-class", "INTELLIGENT_TIERING"),
         H("x-amz-archive-status", "ARCHIVE_ACCESS"));
    assert_true(xf_s3_attrs_is_archived(&a));
    assert_true(xf_s3_class_may_be_archived(XF_STR_LIT("DEEP_ARCHIVE")));
    assert_false(xf_s3_class_may_be_archived(XF_STR_LIT("GLACIER_IR")));
    assert_false(xf_s3_class_may_be_archived(XF_STR_EMPTY));
}

static void c011_encrypted_etags_are_no_md5(void **state)
{
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs a;

    (void)state;
    READ(&a, meta, H("x-amz-server-side-encryption", "aws:kms"));
    assert_false(xf_s3_attrs_etag_is_md5(&a));
    READ(&a, meta, H("x-amz-server-side-encryption-customer-algorithm", "AES256"));
    assert_false(xf_s3_attrs_etag_is_md5(&a));
    READ(&a, meta, H("x-amz-server-side-encryption", "AES256"));
    assert_true(xf_s3_attrs_etag_is_md5(&a));
}

static void tag_sets_become_a_header(void **state)
{
    static const struct xf_xml_pair tags[] = {{{"a", 1}, {"b c", 3}}, {{"d&", 2}, {"", 0}}};
    XF_AUTO_BUF out = {0};

    (void)state;
    xf_s3_tags_encode(&out, tags, 2);
    assert_string_equal(out.ptr, "a=b%20c&d%26=");
}

static void an_entry_is_added_unless_its_name_is_there(void **state)
{
    static const struct xf_s3_meta mine = {{"mtime", 5}, {"7", 1}};
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs a;

    (void)state;
    READ(&a, meta, H("x-amz-meta-k", "v"));
    XF_AUTO(xf_s3_attrs) wide = xf_s3_attrs_dup_with(&a, &mine);
    assert_int_equal(wide->n_meta, 2);
    assert_true(xf_str_eq_c(wide->meta[1].name, "mtime") && xf_str_eq_c(wide->meta[1].value, "7"));
    READ(&a, meta, H("x-amz-meta-mtime", "5"));
    XF_AUTO(xf_s3_attrs) same = xf_s3_attrs_dup_with(&a, &mine);
    assert_int_equal(same->n_meta, 1);
    assert_true(xf_str_eq_c(same->meta[0].value, "5"));
    for (size_t i = 0; i < XF_S3_META_MAX; i++) {
        meta[i] = (struct xf_s3_meta){XF_STR_LIT("x"), XF_STR_LIT("y")};
    }
    a.n_meta = XF_S3_META_MAX;
    XF_AUTO(xf_s3_attrs) full = xf_s3_attrs_dup_with(&a, &mine);
    assert_int_equal(full->n_meta, XF_S3_META_MAX);
}

static void c005_what_did_not_arrive_is_seen(void **state)
{
    struct xf_s3_meta m1[XF_S3_META_MAX];
    struct xf_s3_meta m2[XF_S3_META_MAX];
    struct xf_s3_attrs want;
    struct xf_s3_attrs got;

    (void)state;
    READ(&want, m1, H("content-type", "a/b"), H("expires", "x"), H("x-amz-meta-k", "v"));
    READ(&got, m2, H("content-type", "c/d"), H("expires", "y"), H("x-amz-meta-k", "=?UTF-8?="));
    assert_false(xf_s3_attrs_lack(&got, &want)); /* another form of it is not a loss */
    READ(&got, m2, H("content-type", "a/b"), H("x-amz-meta-k", "v"));
    assert_true(xf_s3_attrs_lack(&got, &want));
    READ(&got, m2, H("content-type", "a/b"), H("expires", "x"), H("x-amz-meta-kk", "v"));
    assert_true(xf_s3_attrs_lack(&got, &want));
    READ(&want, m1, H("content-type", "a/b"), H("x-amz-storage-class", "X"), H("etag", "e"));
    assert_false(xf_s3_attrs_lack(&got, &want)); /* those are not written from here */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_of_them_are_read_and_duplicated),
        cmocka_unit_test(more_metadata_than_the_cap_is_cut),
        cmocka_unit_test(c046_only_the_framing_token_goes),
        cmocka_unit_test(c012_archived_and_restored),
        cmocka_unit_test(c011_encrypted_etags_are_no_md5),
        cmocka_unit_test(tag_sets_become_a_header),
        cmocka_unit_test(an_entry_is_added_unless_its_name_is_there),
        cmocka_unit_test(c005_what_did_not_arrive_is_seen),
    };

    return xf_test_run("s3/attrs", tests, NULL, NULL);
}
