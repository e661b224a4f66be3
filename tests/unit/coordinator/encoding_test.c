/* encoding_test.c - keys of a listing that may be encoded without a word. */
#include "coordinator/encoding.h"
#include "tests/lib/test.h"

static struct xf_xml_object object(const char *key)
{
    return (struct xf_xml_object){.key = xf_str_c(key), .etag = XF_STR_LIT("e1"), .size = 7};
}

static struct xf_xml_doc page(const struct xf_xml_object *objects, size_t n)
{
    return (struct xf_xml_doc){.root = XF_XML_LIST, .objects = objects, .n_objects = n};
}

static bool answer(struct xf_encoding *e, enum xf_code code, const char *etag)
{
    const struct xf_s3_result res = {
        .err = {.code = code}, .etag = xf_str_c(etag), .size = code == XF_OK ? 7 : 0};
    return xf_encoding_answer(e, &res);
}

static void c024_plain_keys_and_announced_ones_are_not_asked_for(void **state)
{
    const struct xf_xml_object plain[] = {object("a"), object("100%"), object("b%zz")};
    const struct xf_xml_object odd[] = {object("a+b")};
    struct xf_xml_doc doc = page(plain, 3);
    struct xf_encoding e;

    (void)state;
    xf_encoding_init(&e);
    assert_false(xf_encoding_must_ask(&e, &doc));
    doc = page(odd, 1);
    doc.is_url_encoded = true;
    assert_false(xf_encoding_must_ask(&e, &doc));
    xf_encoding_fini(&e);
}

static void c024_the_form_with_the_listed_etag_is_right(void **state)
{
    const struct xf_xml_object odd[] = {object("a"), object("a+b%2B")};
    const struct xf_xml_doc doc = page(odd, 2);
    struct xf_xml_doc out;
    struct xf_encoding e;
    XF_AUTO_ARENA a = {0};

    (void)state;
    xf_encoding_init(&e);
    assert_true(xf_encoding_must_ask(&e, &doc));
    assert_true(answer(&e, XF_OK, "e1"));
    assert_int_equal(e.state, XF_ENCODING_RAW);
    assert_ptr_equal(xf_encoding_page(&e, &doc, &a, &out), &doc);
    xf_encoding_fini(&e);

    xf_encoding_init(&e);
    assert_true(xf_encoding_must_ask(&e, &doc));
    assert_false(answer(&e, XF_OK, "another object's"));
    assert_true(answer(&e, XF_OK, "e1"));
    assert_int_equal(e.state, XF_ENCODING_HIDDEN);
    assert_false(xf_encoding_must_ask(&e, &doc));
    assert_ptr_equal(xf_encoding_page(&e, &doc, &a, &out), &out);
    assert_true(xf_str_eq_c(out.objects[0].key, "a"));
    assert_true(xf_str_eq_c(out.objects[1].key, "a b+"));
    xf_encoding_fini(&e);
}

static void c024_keys_that_are_gone_settle_nothing_and_end(void **state)
{
    const struct xf_xml_object odd[] = {object("a+b"), object("c+d")};
    const struct xf_xml_doc doc = page(odd, 2);
    struct xf_encoding e;

    (void)state;
    xf_encoding_init(&e);
    for (int i = 0; i < 2; i++) {
        assert_true(xf_encoding_must_ask(&e, &doc));
        assert_false(answer(&e, XF_E_NOT_FOUND, ""));
        assert_true(answer(&e, XF_E_NOT_FOUND, ""));
    }
    assert_false(xf_encoding_must_ask(&e, &doc));
    assert_int_equal(e.state, XF_ENCODING_UNKNOWN);
    xf_encoding_fini(&e);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c024_plain_keys_and_announced_ones_are_not_asked_for),
        cmocka_unit_test(c024_the_form_with_the_listed_etag_is_right),
        cmocka_unit_test(c024_keys_that_are_gone_settle_nothing_and_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
