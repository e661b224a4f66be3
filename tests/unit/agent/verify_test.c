/* verify_test.c - what etags prove and what they do not. */
#include "agent/verify.h"
#include "common/base/hash.h"
#include "tests/lib/test.h"

#define A "5d41402abc4b2a76b9719d911017c592"
#define B "7d793037a0760186574b0282f2f435e7"

static enum xf_verify cmp(const char *a, const char *b, bool opaque)
{
    return xf_verify_etags((struct xf_verify_etag){xf_str_c(a), opaque},
                           (struct xf_verify_etag){xf_str_c(b), false});
}

static void c049_etags_are_compared_by_their_rules(void **state)
{
    (void)state;
    assert_int_equal(cmp(A, "\"" A "\"", false), XF_VERIFY_SAME);
    assert_int_equal(cmp("W/\"" A "\"", A, false), XF_VERIFY_SAME);
    assert_int_equal(cmp("5D41402ABC4B2A76B9719D911017C592", A, false), XF_VERIFY_SAME);
    assert_int_equal(cmp("&quot;" A "&quot;", A, false), XF_VERIFY_SAME);
    assert_int_equal(cmp(A, B, false), XF_VERIFY_DIFFERENT);
    assert_int_equal(cmp(A "-3", B "-2", false), XF_VERIFY_UNKNOWN); /* other layouts */
    assert_int_equal(cmp(A "-3", B "-3", false), XF_VERIFY_UNKNOWN); /* 5+5+2 and 4+4+4 */
    assert_int_equal(cmp(A "-3", A, false), XF_VERIFY_UNKNOWN);
    assert_int_equal(cmp(A "-3", A "-3", false), XF_VERIFY_SAME);
    assert_int_equal(cmp("", "", false), XF_VERIFY_UNKNOWN);
    assert_int_equal(cmp("abc", "abd", false), XF_VERIFY_UNKNOWN);
}

static void c011_opaque_etags_are_never_taken_for_a_difference(void **state)
{
    (void)state;
    unsigned char md5[XF_MD5_LEN];

    assert_int_equal(cmp(A, B, true), XF_VERIFY_UNKNOWN);
    xf_md5("hello", 5, md5);
    assert_int_equal(xf_verify_md5(md5, (struct xf_verify_etag){xf_str_c(A), false}),
                     XF_VERIFY_SAME);
    assert_int_equal(xf_verify_md5(md5, (struct xf_verify_etag){xf_str_c(B), false}),
                     XF_VERIFY_DIFFERENT);
    assert_int_equal(xf_verify_md5(md5, (struct xf_verify_etag){xf_str_c(B), true}),
                     XF_VERIFY_UNKNOWN);
    assert_int_equal(xf_verify_md5(md5, (struct xf_verify_etag){xf_str_c(B "-1"), false}),
                     XF_VERIFY_UNKNOWN);
}

static void upload_etag_follows_from_its_parts(void **state)
{
    (void)state;
    char etag[64];
    struct xf_verify_parts *v = xf_verify_parts_new();

    xf_verify_parts_add(v, xf_str_c("\"c4c753e69bb853187f5854c46cf801c6\""));
    xf_verify_parts_add(v, xf_str_c("C4C753E69BB853187F5854C46CF801C6"));
    xf_verify_parts_add(v, xf_str_c("e09c80c42fda55f9d992e59ca6b3307d"));
    assert_true(xf_verify_parts_etag(v, etag));
    assert_string_equal(etag, "4d45984fc3feb2ac9b22683c49674b56-3");
    xf_verify_parts_free(v);

    v = xf_verify_parts_new();
    assert_false(xf_verify_parts_etag(v, etag));
    xf_verify_parts_add(v, xf_str_c("opaque"));
    assert_false(xf_verify_parts_etag(v, etag));
    xf_verify_parts_free(v);
}

static bool
is_copy(const char *se, uint64_t ss, int64_t sm, const char *de, uint64_t ds, int64_t dm)
{
    bool by_size = false;
    struct xf_verify_side s = {{xf_str_c(se), false}, ss, sm};
    struct xf_verify_side d = {{xf_str_c(de), false}, ds, dm};

    return xf_verify_is_copy(&s, &d, &by_size);
}

static void c050_equal_size_alone_is_not_the_same(void **state)
{
    (void)state;
    assert_true(is_copy(A, 5, 100, A, 5, 50));
    assert_false(is_copy(A, 5, 100, B, 5, 200)); /* changed content, newer destination */
    assert_false(is_copy(A, 5, 100, A, 6, 200));
    assert_true(is_copy(A "-3", 5, 100, B "-2", 5, 200)); /* not comparable, written later */
    assert_false(is_copy(A "-3", 5, 100, B "-2", 5, 100));
    assert_false(is_copy(A "-3", 5, 0, B "-2", 5, 100));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c049_etags_are_compared_by_their_rules),
        cmocka_unit_test(c011_opaque_etags_are_never_taken_for_a_difference),
        cmocka_unit_test(upload_etag_follows_from_its_parts),
        cmocka_unit_test(c050_equal_size_alone_is_not_the_same),
    };
    return xf_test_run("agent_verify", tests, NULL, NULL);
}
