/*
 * xml_test.c - every document, in every dialect, in pieces of every size; keys as bytes; caps.
 */
#include "common/s3/xml.h"
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

#define NS " xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\""

static int setup(void **state)
{
    *state = xf_xml_new();
    return 0;
}

static int teardown(void **state)
{
    xf_xml_free(*state);
    return 0;
}

/* Parse in pieces of `piece` bytes. */
static enum xf_code parse_in(struct xf_xml *x, struct xf_str text, size_t piece)
{
    struct xf_err err = {0};

    xf_xml_reset(x);
    for (size_t at = 0; at < text.len; at += piece) {
        size_t len = text.len - at < piece ? text.len - at : piece;

        if (xf_xml_feed(x, text.ptr + at, len, &err) != XF_OK) {
            assert_int_equal(err.code, XF_E_XML);
            assert_int_equal(xf_xml_finish(x, &err), XF_E_XML);
            return XF_E_XML;
        }
    }
    return xf_xml_finish(x, &err);
}

/* Whole and byte by byte must agree. */
static enum xf_code parse(struct xf_xml *x, const char *text)
{
    enum xf_code slow = parse_in(x, xf_str_c(text), 1);

    assert_int_equal(parse_in(x, xf_str_c(text), 7), slow);
    assert_int_equal(parse_in(x, xf_str_c(text), strlen(text) + 1), slow);
    return slow;
}

#define ASSERT_STR(s, text) assert_true(xf_str_eq((s), xf_str_n((text), sizeof(text) - 1)))

static void listings(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);

    assert_int_equal(
        parse(x,
              "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ListBucketResult" NS
              "><Name>b</Name><Prefix>p/</Prefix><KeyCount>2</KeyCount><MaxKeys>1000</MaxKeys>"
              "<IsTruncated>true</IsTruncated><NextContinuationToken>t+/=</NextContinuationToken>"
              "<Contents><Key>p/a</Key><LastModified>2013-05-24T00:00:01.000Z</LastModified>"
              "<ETag>&quot;e-2&quot;</ETag><Size>12345678901</Size><Owner><ID>x</ID></Owner>"
              "<StorageClass>GLACIER</StorageClass><RestoreStatus><IsRestoreInProgress>false"
              "</IsRestoreInProgress><RestoreExpiryDate>2030-01-01T00:00:00Z"
              "</RestoreExpiryDate></RestoreStatus></Contents>"
              "<Contents><Key>p/b</Key><Size>0</Size></Contents>"
              "<CommonPrefixes><Prefix>p/d/</Prefix></CommonPrefixes></ListBucketResult>\n"),
        XF_OK);
    assert_int_equal(doc->root, XF_XML_LIST);
    assert_true(doc->is_truncated);
    assert_false(doc->is_v1);
    ASSERT_STR(doc->next_token, "t+/=");
    ASSERT_STR(doc->prefix, "p/");
    assert_int_equal(doc->n_objects, 2);
    ASSERT_STR(doc->objects[0].key, "p/a");
    ASSERT_STR(doc->objects[0].etag, "e-2");
    ASSERT_STR(doc->objects[0].storage_class, "GLACIER");
    assert_true(doc->objects[0].size == 12345678901);
    assert_true(doc->objects[0].modified_ms == 1369353601000);
    assert_true(doc->objects[0].is_restored);
    assert_false(doc->objects[1].is_restored);
    assert_int_equal(doc->objects[1].etag.len, 0);
    assert_int_equal(doc->n_prefixes, 1);
    ASSERT_STR(doc->prefixes[0], "p/d/");
}

static void old_listings_go_on_from_the_last_key(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);

    assert_int_equal(parse(x,
                           "<ListBucketResult><Marker/><IsTruncated>true</IsTruncated>"
                           "<Contents><Key>a</Key></Contents><Contents><Key>b%20c</Key>"
                           "</Contents><EncodingType>url</EncodingType></ListBucketResult>"),
                     XF_OK);
    assert_true(doc->is_v1);
    ASSERT_STR(doc->next_token, "b c");
    assert_int_equal(parse(x,
                           "<ListBucketResult><Marker/><IsTruncated>true</IsTruncated>"
                           "<NextMarker>m</NextMarker><Contents><Key>a</Key></Contents>"
                           "</ListBucketResult>"),
                     XF_OK);
    ASSERT_STR(doc->next_token, "m");
}

static void c020_a_page_with_keys_but_no_token_is_whole(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);

    assert_int_equal(parse(x,
                           "<ListBucketResult><KeyCount>1</KeyCount><IsTruncated>true</IsTruncated>"
                           "<NextContinuationToken/><Contents><Key>a</Key></Contents>"
                           "</ListBucketResult>"),
                     XF_OK);
    assert_true(doc->is_truncated);
    assert_int_equal(doc->next_token.len, 0);
}

static void c019_incomplete_pages_are_errors(void **state)
{
    static const char *const bad[] = {
        "",
        "   \r\n ",
        "<",
        "<ListBucketResult>",
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResul",
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult",
        "<ListBucketResult></ListBucketResult>",
        "<ListBucketResult><IsTruncated>true</IsTruncated></ListBucketResult>",
        ("<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>"
         "</NextContinuationToken></ListBucketResult>"),
        "<ListBucketResult><IsTruncated>maybe</IsTruncated></ListBucketResult>",
        ("<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Size>1</Size></Contents>"
         "</ListBucketResult>"),
        ("<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>k</Key><Size>x</Size>"
         "</Contents></ListBucketResult>"),
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult>x",
        "<ListBucketResult><IsTruncated>false</IsTruncated></ListBucketResult><a/>",
        "<ListBucketResult><IsTruncated>false</Other></ListBucketResult>",
        "upstream connect error",
        "<!DOCTYPE html><html></html>",
        ("<!DOCTYPE a [<!ENTITY x \"y\">]><ListBucketResult><IsTruncated>false</IsTruncated>"
         "</ListBucketResult>"),
        "<Error><Code>&x;</Code></Error>",
        "<Error><Code>&#xFFFFFFFF;</Code></Error>",
        "<Error><Code>&#;</Code></Error>",
        "<Error><Code>&#xD800;</Code></Error>",
        "<Error><Code>&aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa;</Code></Error>",
        "</Error>",
        "<Error a=\"b\" a=\"b\"></Error>",
    };

    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        if (parse(*state, bad[i]) != XF_E_XML) {
            fail_msg("taken: %s", bad[i]);
        }
    }
}

static void c022_control_characters_in_every_form(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);
    static const char raw[] =
        "<ListBucketResult>\r\n<IsTruncated>false</IsTruncated>"
        "<Contents><Key>c\x01"
        "a</Key></Contents><Contents><Key>c\x08"
        "b</Key></Contents><Contents><Key>c\x1f"
        "c</Key></Contents><Contents><Key>c\x0b"
        "d</Key></Contents><Contents><Key>c\tT</Key></Contents><Contents><Key>c\rR\n</Key>"
        "</Contents><Contents><Key>normal</Key></Contents>\r\n</ListBucketResult>\r\n";
    static const char refs[] =
        "<ListBucketResult>\r\n<IsTruncated>false</IsTruncated>"
        "<Contents><Key>c&#x1;a</Key></Contents><Contents><Key>c&#8;b</Key></Contents>"
        "<Contents><Key>c&#x1F;c</Key></Contents><Contents><Key>c&#xb;d</Key></Contents>"
        "<Contents><Key>c&#9;T</Key></Contents><Contents><Key>c&#13;R&#10;</Key></Contents>"
        "<Contents><Key>normal</Key></Contents></ListBucketResult>";
    static const char encoded[] =
        "<ListBucketResult><EncodingType>url</EncodingType><IsTruncated>false</IsTruncated>"
        "<Contents><Key>c%01a</Key></Contents><Contents><Key>c%08b</Key></Contents>"
        "<Contents><Key>c%1fc</Key></Contents><Contents><Key>c%0Bd</Key></Contents>"
        "<Contents><Key>c%09T</Key></Contents><Contents><Key>c%0dR%0a</Key></Contents>"
        "<Contents><Key>normal</Key></Contents></ListBucketResult>";
    static const char *const forms[] = {raw, refs, encoded};

    for (size_t i = 0; i < XF_ARRAY_LEN(forms); i++) {
        assert_int_equal(parse(x, forms[i]), XF_OK);
        assert_int_equal(doc->n_objects, 7);
        ASSERT_STR(doc->objects[0].key,
                   "c\x01"
                   "a");
        ASSERT_STR(doc->objects[1].key,
                   "c\x08"
                   "b");
        ASSERT_STR(doc->objects[2].key,
                   "c\x1f"
                   "c");
        ASSERT_STR(doc->objects[3].key,
                   "c\x0b"
                   "d");
        ASSERT_STR(doc->objects[4].key, "c\tT");
        ASSERT_STR(doc->objects[5].key, "c\rR\n");
        ASSERT_STR(doc->objects[6].key, "normal");
    }
}

static void put_page(struct xf_buf *out, struct xf_str key)
{
    xf_buf_reset(out);
    xf_buf_put_c(out, "<ListBucketResult><IsTruncated>false</IsTruncated><Contents><Key>");
    xf_buf_put(out, key);
    xf_buf_put_c(out, "</Key></Contents></ListBucketResult>");
}

/* One byte of a key: 0 raw, 1 numeric reference, 2 inside CDATA (as it is). */
static void put_key_byte(struct xf_buf *out, unsigned char c, unsigned form)
{
    if (form == 2) {
        xf_buf_put_byte(out, (char)c);
    } else if (c == '<') {
        xf_buf_put_c(out, "&lt;");
    } else if (c == '&') {
        xf_buf_put_c(out, "&amp;");
    } else if (form == 1 && c < 0x80) {
        xf_buf_putf(out, "&#x%x;", c);
    } else {
        xf_buf_put_byte(out, (char)c);
    }
}

static void any_bytes_of_a_key_survive(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);
    struct xf_rng rng;

    xf_rng_init(&rng, xf_test_seed());
    for (int i = 0; i < 3000; i++) {
        XF_AUTO_BUF key = {0};
        XF_AUTO_BUF text = {0};
        XF_AUTO_BUF page = {0};
        unsigned form = (unsigned)i % 3;

        if (i % 2 == 0) {
            xf_gen_key(&rng, &key, 60);
        } else {
            xf_gen_bytes(&rng, &key, (size_t)xf_gen_between(&rng, 1, 60));
        }
        if (form == 2) {
            xf_buf_put_c(&text, "<![CDATA[");
        }
        for (size_t k = 0; k < key.len; k++) {
            if (form == 2 && k >= 2 && memcmp(key.ptr + k - 2, "]]>", 3) == 0) {
                key.ptr[k] = '_'; /* would end the section */
            }
            put_key_byte(&text, (unsigned char)key.ptr[k], form);
        }
        if (form == 2) {
            xf_buf_put_c(&text, "]]>");
        }
        put_page(&page, xf_buf_view(&text));
        assert_int_equal(parse_in(x, xf_buf_view(&page), (size_t)xf_gen_between(&rng, 1, 200)),
                         XF_OK);
        assert_int_equal(doc->n_objects, 1);
        if (!xf_str_eq(doc->objects[0].key, xf_buf_view(&key))) {
            XF_AUTO_BUF want = {0};

            xf_buf_put_escaped(&want, xf_buf_view(&key));
            fail_msg("form %u: key '%s' came out differently", form, want.ptr);
        }
    }
}

static void characters_by_reference_become_utf8(void **state)
{
    struct xf_xml *x = *state;
    XF_AUTO_BUF page = {0};

    put_page(&page, XF_STR_LIT("&#233;&#x20AC;&#x1F600;\xc3\xa9&#xE001;"));
    assert_int_equal(parse_in(x, xf_buf_view(&page), 3), XF_OK);
    ASSERT_STR(xf_xml_doc(x)->objects[0].key,
               "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xc3\xa9\xee\x80\x81");
}

static void c024_decoding_only_when_announced(void **state)
{
    static const char *const keys[][3] = {/* sent, with EncodingType, without */
                                          {"a+b", "a b", "a+b"},
                                          {"a%20b", "a b", "a%20b"},
                                          {"a%2Bb", "a+b", "a%2Bb"},
                                          {"a%2520b", "a%20b", "a%2520b"},
                                          {"100%.csv", "100%.csv", "100%.csv"},
                                          {"%ED%95%9C/x", "\xed\x95\x9c/x", "%ED%95%9C/x"}};
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);

    for (size_t i = 0; i < XF_ARRAY_LEN(keys); i++) {
        XF_AUTO_BUF page = {0};

        xf_buf_putf(&page,
                    "<ListBucketResult><Contents><Key>%s</Key></Contents><IsTruncated>false"
                    "</IsTruncated><EncodingType>url</EncodingType></ListBucketResult>",
                    keys[i][0]);
        assert_int_equal(parse(x, page.ptr), XF_OK);
        assert_true(doc->is_url_encoded);
        assert_true(xf_str_eq_c(doc->objects[0].key, keys[i][1]));
        put_page(&page, xf_str_c(keys[i][0]));
        assert_int_equal(parse(x, page.ptr), XF_OK);
        assert_false(doc->is_url_encoded);
        assert_true(xf_str_eq_c(doc->objects[0].key, keys[i][2]));
    }
}

static void errors_and_results(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);

    assert_int_equal(parse(x,
                           "<?xml version='1.0'?><!-- c --><Error><Code>SlowDown</Code>"
                           "<Message>a &amp; b</Message><RequestId>r</RequestId><Region>eu"
                           "</Region><ServerTime>2013-05-24T00:00:00Z</ServerTime>"
                           "<Condition>If-None-Match</Condition></Error>"),
                     XF_OK);
    assert_int_equal(doc->root, XF_XML_ERROR);
    ASSERT_STR(doc->error.code, "SlowDown");
    ASSERT_STR(doc->error.message, "a & b");
    ASSERT_STR(doc->error.region, "eu");
    ASSERT_STR(doc->error.condition, "If-None-Match");
    assert_int_equal(parse(x,
                           "<s3:CopyObjectResult xmlns:s3=\"u\"><s3:ETag>\"e\"</s3:ETag>"
                           "</s3:CopyObjectResult>"),
                     XF_OK);
    assert_int_equal(doc->root, XF_XML_COPY);
    ASSERT_STR(doc->etag, "e");
    assert_int_equal(parse(x,
                           "<CopyPartResult><LastModified>2013-05-24T00:00:00Z</LastModified>"
                           "<ETag>e</ETag></CopyPartResult>"),
                     XF_OK);
    assert_true(doc->modified_ms == 1369353600000);
    assert_int_equal(parse(x,
                           "<InitiateMultipartUploadResult><Bucket>b</Bucket><UploadId>U"
                           "</UploadId></InitiateMultipartUploadResult>"),
                     XF_OK);
    ASSERT_STR(doc->upload_id, "U");
    assert_int_equal(parse(x,
                           "  \n<CompleteMultipartUploadResult><ETag>&#34;e-2&#34;</ETag>"
                           "</CompleteMultipartUploadResult>"),
                     XF_OK);
    assert_int_equal(doc->root, XF_XML_COMPLETE);
    ASSERT_STR(doc->etag, "e-2");
    assert_int_equal(parse(x, "<LocationConstraint>eu-west-1</LocationConstraint>"), XF_OK);
    ASSERT_STR(doc->text, "eu-west-1");
    assert_int_equal(parse(x,
                           "<Tagging><TagSet><Tag><Key>a b</Key><Value>c&amp;</Value></Tag>"
                           "<Tag><Key>e</Key><Value/></Tag></TagSet></Tagging>"),
                     XF_OK);
    assert_int_equal(doc->n_tags, 2);
    ASSERT_STR(doc->tags[0].value, "c&");
    assert_int_equal(doc->tags[1].value.len, 0);
    assert_int_equal(parse(x,
                           "<DeleteResult><Deleted><Key>a</Key></Deleted><Error><Key>b</Key>"
                           "<Code>AccessDenied</Code></Error></DeleteResult>"),
                     XF_OK);
    assert_int_equal(doc->n_errors, 1);
    ASSERT_STR(doc->errors[0].key, "b");
    ASSERT_STR(doc->errors[0].value, "AccessDenied");
    assert_int_equal(parse(x, "<html><body>x</body></html>"), XF_OK);
    assert_int_equal(doc->root, XF_XML_OTHER);
}

static void parts_and_uploads(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);

    assert_int_equal(parse(x,
                           "<ListPartsResult><UploadId>u</UploadId><NextPartNumberMarker>2"
                           "</NextPartNumberMarker><IsTruncated>true</IsTruncated><Part>"
                           "<PartNumber>2</PartNumber><ETag>\"e\"</ETag><Size>5</Size></Part>"
                           "</ListPartsResult>"),
                     XF_OK);
    assert_int_equal(doc->n_parts, 1);
    assert_int_equal(doc->parts[0].part_no, 2);
    ASSERT_STR(doc->parts[0].etag, "e");
    assert_int_equal(doc->next_part_marker, 2);
    assert_int_equal(parse(x,
                           "<ListMultipartUploadsResult><EncodingType>url</EncodingType>"
                           "<NextKeyMarker>a%2B</NextKeyMarker><NextUploadIdMarker>u+%20"
                           "</NextUploadIdMarker><IsTruncated>true</IsTruncated><Upload>"
                           "<Key>k+1</Key><UploadId>u+1</UploadId><Initiated>"
                           "2013-05-24T00:00:00.000Z</Initiated></Upload>"
                           "</ListMultipartUploadsResult>"),
                     XF_OK);
    assert_int_equal(doc->n_uploads, 1);
    ASSERT_STR(doc->uploads[0].key, "k 1");
    ASSERT_STR(doc->uploads[0].upload_id, "u+1"); /* ids are never encoded */
    ASSERT_STR(doc->next_key_marker, "a+");
    ASSERT_STR(doc->next_upload_id_marker, "u+%20");
    assert_true(doc->uploads[0].initiated_ms == 1369353600000);
}

static void caps_hold(void **state)
{
    struct xf_xml *x = *state;
    XF_AUTO_BUF text = {0};

    for (int i = 0; i < 20; i++) {
        xf_buf_put_c(&text, "<a>");
    }
    assert_int_equal(parse(x, text.ptr), XF_E_XML);
    put_page(&text, XF_STR_EMPTY);
    xf_buf_reset(&text);
    xf_buf_put_c(&text, "<Error><Message>");
    for (size_t i = 0; i <= XF_XML_TEXT_MAX; i++) {
        xf_buf_put_byte(&text, 'x');
    }
    xf_buf_put_c(&text, "</Message></Error>");
    assert_int_equal(parse_in(x, xf_buf_view(&text), 4096), XF_E_XML);
    xf_buf_reset(&text);
    xf_buf_put_c(&text, "<ListBucketResult>");
    for (size_t i = 0; i <= XF_XML_ROWS_MAX; i++) {
        xf_buf_put_c(&text, "<Contents><Key>k</Key></Contents>");
    }
    xf_buf_put_c(&text, "<IsTruncated>false</IsTruncated></ListBucketResult>");
    assert_int_equal(parse_in(x, xf_buf_view(&text), 4096), XF_E_XML);
    xf_buf_reset(&text);
    xf_buf_put_c(&text, "<Error>");
    for (size_t i = 0; i <= XF_XML_BODY_MAX / 16; i++) {
        xf_buf_put_c(&text, "<a>1234567890</a>");
    }
    xf_buf_put_c(&text, "</Error>");
    assert_int_equal(parse_in(x, xf_buf_view(&text), 65536), XF_E_XML);
    assert_int_equal(parse(x, "<Error><Code>c</Code></Error>"), XF_OK); /* and it goes on */
}

static void a_page_of_a_thousand_keys(void **state)
{
    struct xf_xml *x = *state;
    const struct xf_xml_doc *doc = xf_xml_doc(x);
    XF_AUTO_BUF text = {0};

    xf_buf_put_c(&text, "<ListBucketResult><IsTruncated>false</IsTruncated>");
    for (int i = 0; i < 1000; i++) {
        xf_buf_putf(&text, "<Contents><Key>key/%04d</Key><Size>%d</Size></Contents>", i, i);
    }
    xf_buf_put_c(&text, "</ListBucketResult>");
    for (int round = 0; round < 3; round++) {
        assert_int_equal(parse_in(x, xf_buf_view(&text), 16384), XF_OK);
        assert_int_equal(doc->n_objects, 1000);
        for (int i = 0; i < 1000; i++) {
            char want[16];
            XF_AUTO_BUF key = {0};

            xf_buf_putf(&key, "key/%04d", i);
            memcpy(want, key.ptr, key.len + 1);
            assert_true(xf_str_eq_c(doc->objects[i].key, want));
            assert_int_equal(doc->objects[i].size, i);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(listings, setup, teardown),
        cmocka_unit_test_setup_teardown(old_listings_go_on_from_the_last_key, setup, teardown),
        cmocka_unit_test_setup_teardown(c019_incomplete_pages_are_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(
            c020_a_page_with_keys_but_no_token_is_whole, setup, teardown),
        cmocka_unit_test_setup_teardown(c022_control_characters_in_every_form, setup, teardown),
        cmocka_unit_test_setup_teardown(any_bytes_of_a_key_survive, setup, teardown),
        cmocka_unit_test_setup_teardown(characters_by_reference_become_utf8, setup, teardown),
        cmocka_unit_test_setup_teardown(c024_decoding_only_when_announced, setup, teardown),
        cmocka_unit_test_setup_teardown(errors_and_results, setup, teardown),
        cmocka_unit_test_setup_teardown(parts_and_uploads, setup, teardown),
        cmocka_unit_test_setup_teardown(caps_hold, setup, teardown),
        cmocka_unit_test_setup_teardown(a_page_of_a_thousand_keys, setup, teardown),
    };

    return xf_test_run("s3/xml", tests, NULL, NULL);
}
