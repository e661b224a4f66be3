/* err_test.c - codes, classes and error texts. */
#include "common/base/err.h"
#include "tests/lib/test.h"

#include <string.h>

static void every_code_has_a_unique_name_class_and_exit(void **state)
{
    (void)state; /* no fixture */
    for (int i = 1; i < (int)XF_CODE_N; i++) {
        enum xf_code code = (enum xf_code)i;
        assert_int_not_equal(xf_code_class(code), XF_CLASS_NONE);
        assert_int_not_equal(xf_code_exit(code), 0);
        assert_int_equal(xf_code_parse(xf_code_name(code)), code);
    }
    assert_int_equal(xf_code_class(XF_OK), XF_CLASS_NONE);
    assert_int_equal(xf_code_parse("no such code"), XF_CODE_N);
}

static void code_numbers_never_change(void **state)
{
    (void)state; /* no fixture */
    /* They are in stores and on the wire. Append below, change nothing. */
    assert_int_equal(XF_E_INVAL, 1);
    assert_int_equal(XF_E_STALE, 7);
    assert_int_equal(XF_E_NET, 13);
    assert_int_equal(XF_E_THROTTLED, 21);
    assert_int_equal(XF_E_NOT_FOUND, 27);
    assert_int_equal(XF_E_NO_COPY, 36);
    assert_int_equal(XF_E_LISTING, 39);
}

static enum xf_code inner(struct xf_err *err)
{
    return XF_FAIL_SUB(err, XF_E_DENIED, 403, "cannot read '%s'", "k");
}

static enum xf_code outer(struct xf_err *err)
{
    XF_TRY(inner(err));
    return XF_OK;
}

static void an_error_keeps_its_origin_and_takes_a_wrap(void **state)
{
    struct xf_err err;

    (void)state; /* no fixture */
    assert_int_equal(outer(&err), XF_E_DENIED);
    assert_int_equal(err.sub, 403);
    assert_non_null(strstr(err.where, "err_test.c:"));
    assert_int_equal(XF_WRAP(&err, "copying '%s'", "a"), XF_E_DENIED);
    assert_string_equal(err.msg, "copying 'a': cannot read 'k'");
}

static void a_long_text_is_cut_and_terminated(void **state)
{
    struct xf_err err;
    char text[2 * XF_ERR_MSG_MAX];

    (void)state; /* no fixture */
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    assert_int_equal(XF_FAIL(&err, XF_E_IO, "%s", text), XF_E_IO);
    assert_int_equal(strlen(err.msg), XF_ERR_MSG_MAX - 1);
    assert_int_equal(XF_WRAP(&err, "%s", text), XF_E_IO);
    assert_int_equal(strlen(err.msg), XF_ERR_MSG_MAX - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_code_has_a_unique_name_class_and_exit),
        cmocka_unit_test(code_numbers_never_change),
        cmocka_unit_test(an_error_keeps_its_origin_and_takes_a_wrap),
        cmocka_unit_test(a_long_text_is_cut_and_terminated),
    };

    return xf_test_run("err", tests, NULL, NULL);
}
