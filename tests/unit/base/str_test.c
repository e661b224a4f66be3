/* str_test.c - views, buffers, and the encodings of bytes. */
#include "common/base/mem.h"
#include "common/base/str.h"
#include "tests/lib/test.h"

static void keys_compare_as_bytes(void **state)
{
    (void)state; /* no fixture */
    assert_true(xf_str_cmp(XF_STR_LIT("a"), XF_STR_LIT("b")) < 0);
    assert_true(xf_str_cmp(XF_STR_LIT("a"), XF_STR_LIT("ab")) < 0);
    assert_true(xf_str_cmp(XF_STR_LIT("\xff"), XF_STR_LIT("a")) > 0);
    assert_true(xf_str_cmp(XF_STR_LIT("a\0b"), XF_STR_LIT("a\0c")) < 0);
    assert_int_equal(xf_str_cmp(XF_STR_EMPTY, (struct xf_str){NULL, 0}), 0);
    assert_true(xf_str_eq_nocase(XF_STR_LIT("ETag"), XF_STR_LIT("etag")));
}

static void numbers_are_strict(void **state)
{
    uint64_t u;
    int64_t i;

    (void)state; /* no fixture */
    assert_true(xf_str_u64(XF_STR_LIT("18446744073709551615"), &u));
    assert_true(u == UINT64_MAX);
    assert_false(xf_str_u64(XF_STR_LIT("18446744073709551616"), &u));
    assert_false(xf_str_u64(XF_STR_LIT(""), &u));
    assert_false(xf_str_u64(XF_STR_LIT("+1"), &u));
    assert_false(xf_str_u64(XF_STR_LIT("1 "), &u));
    assert_true(xf_str_i64(XF_STR_LIT("-9223372036854775808"), &i));
    assert_true(i == INT64_MIN);
    assert_false(xf_str_i64(XF_STR_LIT("9223372036854775808"), &i));
}

static void utf8_is_checked_to_the_letter(void **state)
{
    (void)state; /* no fixture */
    assert_true(xf_str_is_utf8(XF_STR_LIT("plain \xc3\xa9 \xe6\x97\xa5 \xf0\x9f\x98\x80")));
    assert_false(xf_str_is_utf8(XF_STR_LIT("\xc0\x80")));         /* overlong */
    assert_false(xf_str_is_utf8(XF_STR_LIT("\xed\xa0\x80")));     /* surrogate */
    assert_false(xf_str_is_utf8(XF_STR_LIT("\xf4\x90\x80\x80"))); /* above U+10FFFF */
    assert_false(xf_str_is_utf8(XF_STR_LIT("\xe6\x97")));         /* cut */
    assert_false(xf_str_is_utf8(XF_STR_LIT("\x80")));
}

static void cut_walks_over_the_pieces(void **state)
{
    struct xf_str rest = XF_STR_LIT("a,,b");
    struct xf_str head;

    (void)state; /* no fixture */
    assert_true(xf_str_cut(&rest, ',', &head));
    assert_true(xf_str_eq_c(head, "a"));
    assert_true(xf_str_cut(&rest, ',', &head));
    assert_int_equal(head.len, 0);
    assert_true(xf_str_cut(&rest, ',', &head));
    assert_true(xf_str_eq_c(head, "b"));
    assert_false(xf_str_cut(&rest, ',', &head));
}

static void a_buffer_stops_at_its_cap_and_says_so(void **state)
{
    XF_AUTO_BUF b = {0};

    (void)state; /* no fixture */
    xf_buf_init(&b, 4);
    xf_buf_put_c(&b, "abc");
    assert_false(b.full);
    xf_buf_put_c(&b, "de");
    assert_true(b.full);
    assert_true(xf_str_eq_c(xf_buf_view(&b), "abc"));
    xf_buf_reset(&b);
    xf_buf_put_c(&b, "wxyz");
    assert_false(b.full);
    xf_buf_consume(&b, 3);
    assert_string_equal(b.ptr, "z");
}

static struct xf_str escaped(struct xf_buf *b, struct xf_str s)
{
    xf_buf_reset(b);
    xf_buf_put_escaped(b, s);
    return xf_buf_view(b);
}

static void nothing_that_moves_a_terminal_is_shown_raw(void **state)
{
    XF_AUTO_BUF b = {0};

    (void)state; /* no fixture */
    xf_buf_init(&b, 0);
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("c\x08z")), "c\\x08z"));
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("\x1b[31mred")), "\\x1b[31mred"));
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("a\nb\tc\\")), "a\\nb\\tc\\\\"));
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("\xc3\xa9")), "\xc3\xa9"));
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("\xc2\x9b")), "\\xc2\\x9b")); /* C1 CSI */
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("\xe2\x80\xae")), "\\xe2\\x80\\xae")); /* RLO */
    assert_true(xf_str_eq_c(escaped(&b, XF_STR_LIT("\xff")), "\\xff"));
}

static void percent_and_base64_round_trip(void **state)
{
    XF_AUTO_BUF enc = {0};
    XF_AUTO_BUF dec = {0};

    (void)state; /* no fixture */
    xf_buf_init(&enc, 0);
    xf_buf_init(&dec, 0);
    char all[256];
    for (int i = 0; i < 256; i++) {
        all[i] = (char)i;
    }
    for (size_t n = 0; n <= 256; n++) {
        xf_buf_reset(&enc);
        xf_buf_reset(&dec);
        xf_buf_put_percent(&enc, xf_str_n(all, n), n % 2 == 0);
        assert_true(xf_buf_put_unpercent(&dec, xf_buf_view(&enc), true));
        assert_true(xf_str_eq(xf_buf_view(&dec), xf_str_n(all, n)));
        xf_buf_reset(&enc);
        xf_buf_reset(&dec);
        xf_buf_put_base64(&enc, all, n);
        assert_true(xf_buf_put_unbase64(&dec, xf_buf_view(&enc)));
        assert_true(xf_str_eq(xf_buf_view(&dec), xf_str_n(all, n)));
    }
    xf_buf_reset(&dec);
    assert_false(xf_buf_put_unpercent(&dec, XF_STR_LIT("a%4"), true));
    assert_false(xf_buf_put_unpercent(&dec, XF_STR_LIT("a%zz"), true));
    assert_false(xf_buf_put_unbase64(&dec, XF_STR_LIT("a===")));
    assert_false(xf_buf_put_unbase64(&dec, XF_STR_LIT("abc")));
}

static void hex_is_read_in_both_cases(void **state)
{
    unsigned char out[2];

    (void)state; /* no fixture */
    assert_true(xf_hex_decode(XF_STR_LIT("aBFf"), out));
    assert_int_equal(out[0], 0xab);
    assert_int_equal(out[1], 0xff);
    assert_false(xf_hex_decode(XF_STR_LIT("abc"), out));
    assert_false(xf_hex_decode(XF_STR_LIT("zz"), out));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_compare_as_bytes),
        cmocka_unit_test(numbers_are_strict),
        cmocka_unit_test(utf8_is_checked_to_the_letter),
        cmocka_unit_test(cut_walks_over_the_pieces),
        cmocka_unit_test(a_buffer_stops_at_its_cap_and_says_so),
        cmocka_unit_test(nothing_that_moves_a_terminal_is_shown_raw),
        cmocka_unit_test(percent_and_base64_round_trip),
        cmocka_unit_test(hex_is_read_in_both_cases),
    };

    return xf_test_run("str", tests, NULL, NULL);
}
