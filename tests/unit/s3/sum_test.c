/* sum_test.c - checksums of S3: values, texts, combination. */
#include "common/s3/sum.h"
#include "tests/lib/test.h"

static void sums_have_the_published_texts(void **state)
{
    static const struct {
        enum xf_sum_alg alg;
        const char *hello;
        const char *empty;
    } rows[] = {
        {XF_SUM_CRC64NVME, "M3eFcAZSQlc=", "AAAAAAAAAAA="},
        {XF_SUM_CRC32C, "mnG7TA==", "AAAAAA=="},
        {XF_SUM_CRC32, "NhCmhg==", "AAAAAA=="},
        {XF_SUM_SHA256,
         "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=",
         "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
        {XF_SUM_MD5, "XUFAKrxLKna5cZ2REBfFkg==", "1B2M2Y8AsgTpgAmY7PhCfg=="},
    };
    struct xf_summing s = {0};
    struct xf_sum sum;
    struct xf_sum back;
    XF_AUTO_BUF text = {0};

    (void)state; /* no fixture */
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        xf_summing_begin(&s, rows[i].alg);
        xf_summing_add(&s, "he", 2);
        xf_summing_add(&s, "llo", 3);
        xf_summing_end(&s, &sum);
        xf_buf_reset(&text);
        xf_sum_text(&sum, &text);
        assert_string_equal(text.ptr, rows[i].hello);
        assert_true(xf_sum_parse(rows[i].alg, xf_buf_view(&text), &back));
        assert_true(xf_sum_eq(&sum, &back));
        xf_sum_of(rows[i].alg, "", 0, &sum);
        xf_buf_reset(&text);
        xf_sum_text(&sum, &text);
        assert_string_equal(text.ptr, rows[i].empty);
        assert_false(xf_sum_eq(&sum, &back));
    }
    xf_summing_fini(&s);
}

static void broken_and_composite_texts_are_told_apart(void **state)
{
    struct xf_sum sum;
    struct xf_sum other;

    (void)state; /* no fixture */
    assert_false(xf_sum_parse(XF_SUM_CRC32C, XF_STR_LIT("mnG7TA="), &sum));
    assert_false(xf_sum_parse(XF_SUM_CRC32C, XF_STR_LIT("M3eFcAZSQlc="), &sum)); /* 8 bytes */
    assert_false(xf_sum_parse(XF_SUM_CRC32C, XF_STR_LIT("mnG7TA==-x"), &sum));
    assert_false(xf_sum_parse(XF_SUM_NONE, XF_STR_LIT(""), &sum));
    assert_int_equal(sum.alg, XF_SUM_NONE);
    assert_true(xf_sum_parse(XF_SUM_CRC32, XF_STR_LIT("MiNFzg==-2"), &sum));
    assert_true(sum.is_composite);
    assert_true(xf_sum_parse(XF_SUM_CRC32, XF_STR_LIT("MiNFzg=="), &other));
    assert_false(xf_sum_is_comparable(&sum, &other)); /* another thing with the same bytes */
    assert_false(xf_sum_eq(&sum, &sum));
    assert_int_equal(xf_sum_by_name(XF_STR_LIT("crc64nvme")), XF_SUM_CRC64NVME);
    assert_int_equal(xf_sum_by_name(XF_STR_LIT("CRC32C")), XF_SUM_CRC32C);
    assert_int_equal(xf_sum_by_name(XF_STR_LIT("MD5")), XF_SUM_NONE);
    assert_int_equal(xf_sum_by_name(XF_STR_LIT("XXHASH3")), XF_SUM_NONE);
}

static void parts_append_to_the_sum_of_the_whole(void **state)
{
    static const enum xf_sum_alg algs[] = {XF_SUM_CRC64NVME, XF_SUM_CRC32C, XF_SUM_CRC32};

    (void)state; /* no fixture */
    for (size_t i = 0; i < XF_ARRAY_LEN(algs); i++) {
        struct xf_sum whole;
        struct xf_sum sum;
        struct xf_sum next;
        xf_sum_of(algs[i], "Hello world!", 12, &whole);
        xf_sum_of(algs[i], "Hello", 5, &sum);
        xf_sum_of(algs[i], " world!", 7, &next);
        xf_sum_append(&sum, &next, 7);
        assert_true(xf_sum_eq(&sum, &whole));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_have_the_published_texts),
        cmocka_unit_test(broken_and_composite_texts_are_told_apart),
        cmocka_unit_test(parts_append_to_the_sum_of_the_whole),
    };

    return xf_test_run("sum", tests, NULL, NULL);
}
