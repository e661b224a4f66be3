/*
 * plan_test.c - part layouts: the laws by random input, the limits one by one, etag forms.
 */
#include "common/base/hash.h"
#include "common/base/mem.h"
#include "common/s3/plan.h"
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
#define TIB ((uint64_t)1 << 40)

static enum xf_code
plan(uint64_t size, uint64_t part, const char *etag, uint64_t first, struct xf_plan *out)
{
    struct xf_plan_opts o = {
        .size = size, .part_size = part, .etag = xf_str_c(etag), .first_part_size = first};
    struct xf_err err;

    return xf_plan_parts(&o, out, &err);
}

static void check_laws(const struct xf_plan *p, const struct xf_plan_limits *lim)
{
    uint64_t at = 0;

    assert_true(p->n_parts >= 1 && p->n_parts <= lim->max_parts);
    for (uint32_t no = 1; no <= p->n_parts; no++) {
        uint64_t offset = 0;
        uint64_t len = 0;

        xf_plan_range(p, no, &offset, &len);
        assert_true(offset == at);
        assert_true(len >= 1 && len <= lim->max_part);
        if (no < p->n_parts) {
            assert_true(len == p->part_size && len >= lim->min_part);
        }
        at += len;
    }
    assert_true(at == p->size);
}

static void parts_cover_every_object_once(void **state)
{
    struct xf_rng rng;

    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    for (int i = 0; i < 3000; i++) {
        const struct xf_plan_limits *lim = &xf_plan_limits_s3;
        uint64_t size = xf_gen_between(&rng, 1, lim->max_object);
        uint64_t part = xf_gen_between(&rng, 0, 8 * GIB);
        struct xf_plan p;

        if (i % 3 == 0) {
            size = xf_gen_between(&rng, 1, 200 * MIB);
        }
        assert_int_equal(plan(size, part, "", 0, &p), XF_OK);
        check_laws(&p, lim);
        assert_false(p.keeps_layout);
    }
}

static void sources_layouts_are_kept_when_legal(void **state)
{
    struct xf_rng rng;

    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    for (int i = 0; i < 3000; i++) {
        uint64_t first = xf_gen_between(&rng, 1, 6 * GIB);
        uint64_t n = xf_gen_between(&rng, 1, 10001);
        uint64_t size = first * (n - 1) + xf_gen_between(&rng, 1, first);
        XF_AUTO_BUF etag = {0};
        struct xf_plan p;
        bool legal = n <= 10000 && size <= xf_plan_limits_s3.max_object &&
                     (n == 1 ? size <= 5 * GIB : first >= 5 * MIB && first <= 5 * GIB);

        xf_buf_putf(&etag, "\"c4c753e69bb853187f5854c46cf801c6-%llu\"", (unsigned long long)n);
        if (size > xf_plan_limits_s3.max_object) {
            continue;
        }
        assert_int_equal(plan(size, 64 * MIB, etag.ptr, first, &p), XF_OK);
        check_laws(&p, &xf_plan_limits_s3);
        assert_int_equal(p.keeps_layout, legal);
        assert_false(p.layout_guessed);
        if (legal) {
            assert_int_equal(p.n_parts, n);
        }
    }
}

static void c057_part_sizes_grow_with_the_object(void **state)
{
    static const struct {
        uint64_t size;
        uint64_t part;
        uint64_t expect_part;
        uint32_t expect_n;
    } rows[] = {
        {83886080000, 8 * MIB, 8 * MIB, 10000},
        {83886080001, 8 * MIB, 16 * MIB, 5001},
        {560000000000, 8 * MIB, 64 * MIB, 8345},
        {5 * TIB, 8 * MIB, GIB, 5120},
        {1, 8 * MIB, 8 * MIB, 1},
        {100 * MIB, 1, 5 * MIB, 20},
        {100 * GIB, 50 * GIB, 5 * GIB, 20},
        {10000 * (5 * GIB), 8 * MIB, 5 * GIB, 10000},
    };

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        struct xf_plan p;

        assert_int_equal(plan(rows[i].size, rows[i].part, "", 0, &p), XF_OK);
        assert_true(p.part_size == rows[i].expect_part);
        assert_int_equal(p.n_parts, rows[i].expect_n);
    }
}

static void c057_what_cannot_be_is_refused_with_its_limit(void **state)
{
    struct xf_plan_limits lim = xf_plan_limits_s3;
    struct xf_plan_opts o = {.size = 10000 * (5 * GIB) + 1};
    struct xf_plan p;
    struct xf_err err;

    (void)state;
    assert_int_equal(xf_plan_parts(&o, &p, &err), XF_E_TOO_LARGE);
    assert_non_null(strstr(err.msg, "53687091200000"));
    lim.max_parts = 1000; /* another provider */
    o.limits = &lim;
    o.size = 1000 * (5 * GIB) + 1;
    assert_int_equal(xf_plan_parts(&o, &p, &err), XF_E_TOO_LARGE);
    assert_non_null(strstr(err.msg, "1000 parts"));
    o.size = 1000 * (5 * GIB);
    assert_int_equal(xf_plan_parts(&o, &p, &err), XF_OK);
    o.size = 0;
    assert_int_equal(xf_plan_parts(&o, &p, &err), XF_E_INVAL);
}

static void c007_five_gib_is_one_copy_and_one_byte_more_is_not(void **state)
{
    uint64_t never = UINT64_MAX;

    (void)state;
    assert_true(xf_plan_is_single(5368709119, never, XF_PLAN_COPY_MAX));
    assert_true(xf_plan_is_single(5368709120, never, XF_PLAN_COPY_MAX));
    assert_false(xf_plan_is_single(5368709121, never, XF_PLAN_COPY_MAX));
    assert_true(xf_plan_is_single(0, 0, XF_PLAN_COPY_MAX));
    assert_true(xf_plan_is_single(64 * MIB - 1, 64 * MIB, XF_PLAN_COPY_MAX));
    assert_false(xf_plan_is_single(64 * MIB, 64 * MIB, XF_PLAN_COPY_MAX));
}

static void unknown_layouts_are_guessed_and_said_so(void **state)
{
    struct xf_plan p;

    (void)state;
    assert_int_equal(plan(20 * MIB, 64 * MIB, "c4c753e69bb853187f5854c46cf801c6-3", 0, &p), XF_OK);
    assert_true(p.keeps_layout && p.layout_guessed);
    assert_true(p.part_size == 8 * MIB);
    assert_int_equal(p.n_parts, 3);
    assert_int_equal(plan(20 * MIB, 64 * MIB, "c4c753e69bb853187f5854c46cf801c6", 0, &p), XF_OK);
    assert_false(p.keeps_layout);
    assert_int_equal(plan(20 * MIB, 64 * MIB, "c4c753e69bb853187f5854c46cf801c6-1", 0, &p), XF_OK);
    assert_true(p.keeps_layout && !p.layout_guessed);
    assert_int_equal(p.n_parts, 1);
    assert_int_equal(plan(100, 64 * MIB, "c4c753e69bb853187f5854c46cf801c6-7", 0, &p), XF_OK);
    assert_false(p.keeps_layout || p.layout_guessed);
}

static void c049_etags_in_all_their_forms(void **state)
{
    static const char *const same[] = {
        "abc", "\"abc\"", "W/\"abc\"", "&quot;abc&quot;", "\"ABC\"", " \"abc\" "};

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(same); i++) {
        assert_true(xf_plan_etag_eq(XF_STR_LIT("abc"), xf_str_c(same[i])));
    }
    assert_false(xf_plan_etag_eq(XF_STR_LIT(""), XF_STR_LIT("")));
    assert_false(xf_plan_etag_eq(XF_STR_LIT("\"\""), XF_STR_LIT("\"\"")));
    assert_false(xf_plan_etag_eq(XF_STR_LIT("abc"), XF_STR_LIT("abd")));
    assert_int_equal(xf_plan_etag_parts(XF_STR_LIT("\"x-12\"")), 12);
    assert_int_equal(xf_plan_etag_parts(XF_STR_LIT("x")), 0);
    assert_int_equal(xf_plan_etag_parts(XF_STR_LIT("x-")), 0);
    assert_int_equal(xf_plan_etag_parts(XF_STR_LIT("x-1y")), 0);
    assert_int_equal(xf_plan_etag_parts(XF_STR_LIT("x-99999999999999999999")), 0);
    assert_true(xf_plan_etag_is_md5(XF_STR_LIT("\"00112233445566778899AABBCCDDEEFF\"")));
    assert_true(xf_plan_etag_is_md5(XF_STR_LIT("00112233445566778899aabbccddeeff-2")));
    assert_false(xf_plan_etag_is_md5(XF_STR_LIT("00112233445566778899aabbccddeef")));
    assert_false(xf_plan_etag_is_md5(XF_STR_LIT("00112233445566778899aabbccddeeffx")));
    assert_false(xf_plan_etag_is_md5(XF_STR_LIT("\"opaque\"")));
}

static void multipart_etags_are_made_from_the_parts(void **state)
{
    static const char *const hex[] = {"c4c753e69bb853187f5854c46cf801c6",
                                      "c4c753e69bb853187f5854c46cf801c6",
                                      "e09c80c42fda55f9d992e59ca6b3307d"};
    XF_AUTO_FREE char *zeros = xf_xcalloc(1, 5 * MIB);
    unsigned char md5[3][16];
    char etag[XF_PLAN_ETAG_LEN];
    struct xf_err err;

    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_true(xf_hex_decode(xf_str_c(hex[i]), md5[i]));
    }
    assert_int_equal(xf_plan_etag_of_parts(md5[0], 3, etag, &err), XF_OK);
    assert_string_equal(etag, "4d45984fc3feb2ac9b22683c49674b56-3");
    xf_md5(zeros, 5 * MIB, md5[0]);
    xf_md5("hello", 5, md5[1]);
    assert_int_equal(xf_plan_etag_of_parts(md5[0], 2, etag, &err), XF_OK);
    assert_string_equal(etag, "1a1761a0c87a46829d8a65122ae36c1a-2");
    assert_int_equal(xf_plan_etag_of_parts(md5[0], 0, etag, &err), XF_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parts_cover_every_object_once),
        cmocka_unit_test(sources_layouts_are_kept_when_legal),
        cmocka_unit_test(c057_part_sizes_grow_with_the_object),
        cmocka_unit_test(c057_what_cannot_be_is_refused_with_its_limit),
        cmocka_unit_test(c007_five_gib_is_one_copy_and_one_byte_more_is_not),
        cmocka_unit_test(unknown_layouts_are_guessed_and_said_so),
        cmocka_unit_test(c049_etags_in_all_their_forms),
        cmocka_unit_test(multipart_etags_are_made_from_the_parts),
    };

    return xf_test_run("s3/plan", tests, NULL, NULL);
}
