/* keyspace_test.c - points lie between, where they should, and are UTF-8. */
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "coordinator/keyspace.h"
#include "tests/lib/test.h"

static struct xf_str s(const char *text)
{
    return xf_str_c(text);
}

static void learn(struct xf_keyspace *k, const char *const *keys, size_t n)
{
    xf_keyspace_init(k, 0);
    for (size_t i = 0; i < n; i++) {
        xf_keyspace_learn(k, s(keys[i]));
    }
}

static void places_rise_with_the_keys(void **state)
{
    (void)state;
    static const char *const keys[] = {"a",
                                       "a/",
                                       "a/0",
                                       "a/1",
                                       "a/10",
                                       "a/2",
                                       "b",
                                       "c",
                                       "\xC3\xA4",
                                       "\xE6\x97\xA5",
                                       "\xF0\x9F\x98\x80"};
    struct xf_keyspace k;

    learn(&k, keys, XF_ARRAY_LEN(keys));
    for (size_t i = 1; i < XF_ARRAY_LEN(keys); i++) {
        assert_true(xf_keyspace_place(&k, s(keys[i - 1]), 0) <=
                    xf_keyspace_place(&k, s(keys[i]), 0));
    }
    assert_true(xf_keyspace_place(&k, s("a/1"), 0) < xf_keyspace_place(&k, s("a/2"), 0));
    assert_true(xf_keyspace_place(&k, s("a/2"), 0) < xf_keyspace_place(&k, s("b"), 0));
    assert_true(xf_keyspace_place(&k, s("\xF4\x8F\xBF\xBD"), 0) <= 1.0);
    xf_keyspace_fini(&k);
}

static void half_way_between_numbers_is_their_middle(void **state)
{
    (void)state;
    static const char *const keys[] = {"obj-0123456789"};
    struct xf_keyspace k;
    XF_AUTO_BUF p = {0};

    xf_buf_init(&p, 0);
    learn(&k, keys, 1);
    assert_true(xf_keyspace_between(&k, s("obj-000200"), s("obj-000800"), 0.5, &p));
    assert_true(xf_str_cmp(xf_buf_view(&p), s("obj-0004")) > 0);
    assert_true(xf_str_cmp(xf_buf_view(&p), s("obj-0006")) < 0);
    assert_true(xf_keyspace_between(&k, s("obj-0002"), s("obj-0003"), 0.5, &p));
    assert_true(xf_str_starts(xf_buf_view(&p), s("obj-0002")));
    xf_keyspace_fini(&k);
}

static void nothing_lies_between_neighbours(void **state)
{
    (void)state;
    static const char *const keys[] = {"abc"};
    struct xf_keyspace k;
    XF_AUTO_BUF p = {0};

    xf_buf_init(&p, 0);
    learn(&k, keys, 1);
    assert_false(xf_keyspace_between(&k, s("a"), s("a"), 0.5, &p));
    assert_false(xf_keyspace_between(&k, s("b"), s("a"), 0.5, &p));
    assert_false(xf_keyspace_between(&k, s("\xff"), s(""), 0.5, &p));
    xf_keyspace_fini(&k);
    xf_keyspace_init(&k, 0);
    assert_false(xf_keyspace_between(&k, s("a"), s("b"), 0.5, &p));
}

static void a_border_never_cuts_a_character(void **state)
{
    (void)state;
    assert_int_equal(xf_keyspace_common(s("a\xC3\xA4"), s("a\xC3\xB6")), 1);
    assert_int_equal(xf_keyspace_common(s("a\xC3\xA4"),
                                        s("a\xC3\xA4"
                                          "b")),
                     3);
    assert_int_equal(xf_keyspace_common(s(""), s("x")), 0);
    assert_int_equal(xf_keyspace_border(s("a\xF0\x9F\x98\x80"), 3), 1);
    assert_int_equal(xf_keyspace_border(s("ab"), 9), 2);
}

static void what_is_behind_a_prefix_is_behind_all_its_keys(void **state)
{
    (void)state;
    XF_AUTO_BUF p = {0};

    xf_buf_init(&p, 0);
    xf_keyspace_behind(s("year=2024/month=01/x"), 10, &p);
    assert_true(xf_str_cmp(xf_buf_view(&p), s("year=2024/zzz\xF0\x9F\x98\x80")) > 0);
    assert_true(xf_str_cmp(xf_buf_view(&p), s("year=20240")) < 0);
    assert_true(xf_str_is_utf8(xf_buf_view(&p)));
}

/* Random keys of a random alphabet: every point is between its bounds and UTF-8. */
static void points_are_always_between_and_utf_8(void **state)
{
    (void)state;
    static const char *const chars[] = {"0",
                                        "1",
                                        "9",
                                        "a",
                                        "f",
                                        "/",
                                        "-",
                                        " ",
                                        "~",
                                        "\xC3\xA4",
                                        "\xE6\x97\xA5",
                                        "\xF0\x9F\x98\x80"};
    struct xf_rng rng;
    struct xf_keyspace k;
    XF_AUTO_BUF a = {0};
    XF_AUTO_BUF b = {0};
    XF_AUTO_BUF p = {0};
    unsigned n_made = 0;

    xf_rng_init(&rng, xf_test_seed());
    xf_buf_init(&a, 0);
    xf_buf_init(&b, 0);
    xf_buf_init(&p, 0);
    xf_keyspace_init(&k, 0);
    for (int round = 0; round < 20000; round++) {
        struct xf_buf *keys[] = {&a, &b};
        uint64_t same = xf_rng_below(&rng, 20);
        for (size_t i = 0; i < 2; i++) {
            xf_buf_reset(keys[i]);
            for (uint64_t n = 0; n < same; n++) {
                xf_buf_put_byte(keys[i], 'k');
            }
            for (uint64_t n = xf_rng_below(&rng, 12); n > 0; n--) {
                xf_buf_put_c(keys[i], chars[xf_rng_below(&rng, XF_ARRAY_LEN(chars))]);
            }
            xf_keyspace_learn(&k, xf_buf_view(keys[i]));
        }
        bool swap = xf_str_cmp(xf_buf_view(&a), xf_buf_view(&b)) > 0;
        struct xf_str lo = xf_buf_view(swap ? &b : &a);
        struct xf_str hi = xf_buf_view(swap ? &a : &b);
        double share = (double)xf_rng_below(&rng, 100) / 100.0;
        if (xf_keyspace_between(&k, lo, hi, share, &p)) {
            n_made++;
            assert_true(xf_str_cmp(xf_buf_view(&p), lo) > 0);
            assert_true(hi.len == 0 || xf_str_cmp(xf_buf_view(&p), hi) < 0);
            assert_true(xf_str_is_utf8(xf_buf_view(&p)));
        }
    }
    assert_true(n_made > 10000);
    xf_keyspace_fini(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(places_rise_with_the_keys),
        cmocka_unit_test(half_way_between_numbers_is_their_middle),
        cmocka_unit_test(nothing_lies_between_neighbours),
        cmocka_unit_test(a_border_never_cuts_a_character),
        cmocka_unit_test(what_is_behind_a_prefix_is_behind_all_its_keys),
        cmocka_unit_test(points_are_always_between_and_utf_8),
    };
    return xf_test_run("keyspace", tests, NULL, NULL);
}
