/* json_test.c - keys that are bytes, and strict reading. */
#include "common/base/json.h"
#include "tests/lib/test.h"

static void a_key_that_is_not_utf8_is_percent_encoded_and_marked(void **state)
{
    XF_AUTO(xf_json) o = xf_json_object();

    (void)state; /* no fixture */
    xf_json_set_bytes(o, "key", XF_STR_LIT("a/\xff"));
    xf_json_set_bytes(o, "plain", XF_STR_LIT("\xc3\xa9"));
    XF_AUTO_FREE char *text = xf_json_dump(o, false);
    assert_string_equal(text,
                        "{\"key\":\"a/%FF\",\"key_encoding\":\"percent\",\"plain\":\"\xc3\xa9\"}");
}

static void numbers_are_told_as_people_write_them(void **state)
{
    XF_AUTO(xf_json) o = xf_json_object();

    (void)state; /* no fixture */
    xf_json_set_f64(o, "s", 0.148);
    XF_AUTO_FREE char *text = xf_json_dump(o, false);
    assert_string_equal(text, "{\"s\":0.148}");
}

static void values_come_back_and_wrong_types_give_the_default(void **state)
{
    struct xf_err err;
    XF_AUTO(xf_json) j = NULL;
    const struct xf_json *v;

    (void)state; /* no fixture */
    assert_int_equal(
        xf_json_parse(
            XF_STR_LIT("{\"a\":1,\"b\":[true,null],\"c\":\"x\",\"d\":1.5,\"e\":null}"), &j, &err),
        XF_OK);
    assert_int_equal(xf_json_get_u64(j, "a", 9), 1);
    assert_int_equal(xf_json_get_u64(j, "c", 9), 9);
    assert_string_equal(xf_json_get_c(j, "c", ""), "x");
    assert_true(xf_json_is_null(j, "e"));
    assert_true(xf_json_is_null(j, "absent"));
    assert_int_equal(xf_json_len(xf_json_get(j, "b")), 2);
    assert_true(xf_json_get_f64(j, "d", 0) > 1.4);
    const char *name = xf_json_next(j, NULL, &v);
    int n = 0;
    for (; name != NULL; name = xf_json_next(j, name, &v)) {
        n++;
    }
    assert_int_equal(n, 5);
}

static void bad_text_names_its_place(void **state)
{
    struct xf_err err;
    struct xf_json *j = NULL;

    (void)state; /* no fixture */
    assert_int_equal(xf_json_parse(XF_STR_LIT("{\"a\":1,\n\"a\":2}"), &j, &err), XF_E_INVAL);
    assert_non_null(strstr(err.msg, "line 2"));
    assert_int_equal(xf_json_parse(XF_STR_LIT("{} x"), &j, &err), XF_E_INVAL);
}

static void times_are_utc_text_or_null(void **state)
{
    XF_AUTO(xf_json) o = xf_json_object();

    (void)state; /* no fixture */
    xf_json_set_time(o, "at", 1369353600000);
    xf_json_set_time(o, "never", 0);
    XF_AUTO_FREE char *text = xf_json_dump(o, false);
    assert_string_equal(text, "{\"at\":\"2013-05-24T00:00:00Z\",\"never\":null}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_key_that_is_not_utf8_is_percent_encoded_and_marked),
        cmocka_unit_test(numbers_are_told_as_people_write_them),
        cmocka_unit_test(values_come_back_and_wrong_types_give_the_default),
        cmocka_unit_test(bad_text_names_its_place),
        cmocka_unit_test(times_are_utc_text_or_null),
    };

    return xf_test_run("json", tests, NULL, NULL);
}
