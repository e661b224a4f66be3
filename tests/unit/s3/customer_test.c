/*
 * customer_test.c - a customer's key: its form, and what is said of a wrong one.
 */
#include "common/base/mem.h"
#include "common/s3/customer.h"
#include "tests/lib/test.h"

static void a_key_and_its_md5_are_in_base64(void **state)
{
    struct xf_customer_key key = {0};
    struct xf_customer_key copy = {0};
    struct xf_err err;

    (void)state;
    assert_int_equal(
        xf_customer_key_parse(XF_STR_LIT("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="),
                              XF_STR_LIT("OWN"),
                              &key,
                              &err),
        XF_OK);
    assert_string_equal(key.key.ptr, "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=");
    assert_string_equal(key.md5.ptr, "tP/LI3N87DFaSk0aoqYgzg==");
    xf_customer_key_copy(&key, &copy);
    xf_customer_key_fini(&key);
    assert_string_equal(copy.md5.ptr, "tP/LI3N87DFaSk0aoqYgzg==");
    xf_customer_key_fini(&copy);
}

static void c070_a_wrong_key_is_told_by_its_variable_alone(void **state)
{
    static const char *const wrong[] = {"",
                                        "c2hvcnQtc2VjcmV0",
                                        "not base64 at all!!",
                                        "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g"};
    struct xf_err err;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(wrong); i++) {
        struct xf_customer_key key = {0};
        assert_int_equal(
            xf_customer_key_parse(xf_str_c(wrong[i]), XF_STR_LIT("OWN_KEY"), &key, &err),
            XF_E_CREDS);
        assert_non_null(strstr(err.msg, "OWN_KEY"));
        assert_true(i == 0 || strstr(err.msg, wrong[i]) == NULL);
        assert_int_equal(key.key.len, 0);
        xf_customer_key_fini(&key);
    }
}

static void no_name_means_no_key(void **state)
{
    struct xf_customer_key key = {0};
    struct xf_err err;

    (void)state;
    assert_int_equal(xf_customer_key_read(XF_STR_EMPTY, &key, &err), XF_OK);
    assert_int_equal(key.key.len, 0);
    assert_int_equal(xf_customer_key_read(XF_STR_LIT("XF_TEST_NO_SUCH_KEY"), &key, &err),
                     XF_E_CREDS);
    assert_non_null(strstr(err.msg, "XF_TEST_NO_SUCH_KEY is not set"));
    xf_customer_key_fini(&key);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_and_its_md5_are_in_base64),
        cmocka_unit_test(c070_a_wrong_key_is_told_by_its_variable_alone),
        cmocka_unit_test(no_name_means_no_key),
    };

    return xf_test_run("s3/customer", tests, NULL, NULL);
}
