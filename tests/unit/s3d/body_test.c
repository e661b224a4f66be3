/* body_test.c - shared bytes, recognition of made-up ones, key patterns. */
#include "common/base/mem.h"
#include "tests/lib/test.h"
#include "tests/s3d/gen.h"
#include "tests/s3d/intake.h"

#include <string.h>

static struct s3d_body *
take(const char *p, size_t len, size_t step, bool drop, uint8_t md5[S3D_MD5_LEN])
{
    struct s3d_intake in;
    struct s3d_intake_opts o = {.size_hint = len, .drop = drop};

    s3d_intake_init(&in, &o);
    for (size_t at = 0; at < len; at += step) {
        s3d_intake_feed(&in, p + at, len - at < step ? len - at : step);
    }
    return s3d_intake_finish(&in, md5);
}

static void same_bytes(const struct s3d_body *b, const char *p, size_t len)
{
    char scratch[100];
    size_t at = 0;

    assert_int_equal(s3d_body_size(b), len);
    while (at < len) {
        const char *q;
        size_t n = s3d_body_peek(b, at, scratch, sizeof(scratch), &q);
        assert_true(n > 0 && n <= len - at);
        assert_memory_equal(q, p + at, n);
        at += n;
    }
}

static void made_up_bytes_that_come_back_are_recognised(void **state)
{
    static const uint64_t offs[] = {0, 64, 1, 63, 5242880, 5242881, 12345};
    uint8_t md5[S3D_MD5_LEN];
    uint8_t want[S3D_MD5_LEN];
    size_t len = 100000;
    char *p = xf_xmalloc(len);

    (void)state;
    for (size_t i = 0; i < sizeof(offs) / sizeof(offs[0]); i++) {
        uint64_t seed = 0;
        uint64_t off = 0;
        s3d_gen_fill(77, offs[i], p, len);
        assert_true(s3d_gen_probe(p, 256, &seed, &off));
        assert_int_equal(seed, 77);
        assert_int_equal(off, offs[i]);
        struct s3d_body *b = take(p, len, 1000, false, md5);
        s3d_md5(p, len, want);
        assert_memory_equal(md5, want, sizeof(want));
        same_bytes(b, p, len);
        struct s3d_body *g = s3d_body_new_gen(77, offs[i], len, false);
        assert_true(s3d_body_equal(b, g));
        s3d_body_unref(g);
        s3d_body_unref(b);
    }
    xf_xfree(p);
}

/* A stream that turns into something else must be kept exactly, wherever it breaks off. */
static void almost_made_up_bytes_are_kept_as_they_are(void **state)
{
    static const size_t breaks[] = {0, 10, 159, 160, 255, 256, 257, 4096, 99999};
    uint8_t md5[S3D_MD5_LEN];
    size_t len = 100000;
    char *p = xf_xmalloc(len);

    (void)state;
    for (size_t i = 0; i < sizeof(breaks) / sizeof(breaks[0]); i++) {
        for (size_t step = 100; step <= len; step *= 10) {
            s3d_gen_fill(5, 640, p, len);
            p[breaks[i]] = (char)(p[breaks[i]] ^ 4);
            struct s3d_body *b = take(p, len, step, false, md5);
            same_bytes(b, p, len);
            s3d_body_unref(b);
        }
    }
    xf_xfree(p);
}

static void bodies_of_all_sizes_are_kept(void **state)
{
    static const size_t sizes[] = {0,
                                   1,
                                   255,
                                   256,
                                   257,
                                   5000,
                                   S3D_BODY_CHUNK - 1,
                                   S3D_BODY_CHUNK,
                                   S3D_BODY_CHUNK + 1,
                                   3 * S3D_BODY_CHUNK + 5};
    uint8_t md5[S3D_MD5_LEN];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        char *p = xf_xmalloc(sizes[i] + 1);
        for (size_t k = 0; k < sizes[i]; k++) {
            p[k] = (char)(k * 31 + k / 251);
        }
        struct s3d_body *b = take(p, sizes[i], 65536, false, md5);
        same_bytes(b, p, sizes[i]);
        struct s3d_body *d = take(p, sizes[i], 65536, true, md5);
        assert_int_equal(s3d_body_size(d), sizes[i]);
        assert_true(s3d_body_equal(b, d)); /* by CRC */
        s3d_body_unref(b);
        s3d_body_unref(d);
        xf_xfree(p);
    }
}

static void slices_and_joins_give_the_same_bytes(void **state)
{
    char p[3000];
    uint64_t off;
    uint64_t len;

    (void)state;
    for (size_t i = 0; i < sizeof(p); i++) {
        p[i] = (char)(i * 13);
    }
    struct s3d_body *whole = s3d_body_new_mem(p, sizeof(p));
    struct s3d_body *part[3] = {s3d_body_slice(whole, 0, 1000),
                                s3d_body_slice(whole, 1000, 1),
                                s3d_body_slice(whole, 1001, 1999)};
    struct s3d_body *joined = s3d_body_join(part, 3);
    same_bytes(joined, p, sizeof(p));
    assert_true(s3d_body_equal(joined, whole));
    assert_int_equal(s3d_body_parts(joined), 3);
    assert_true(s3d_body_part(joined, 2, &off, &len) && off == 1000 && len == 1);
    assert_false(s3d_body_part(joined, 4, &off, &len));
    struct s3d_body *inner = s3d_body_slice(joined, 999, 3);
    same_bytes(inner, p + 999, 3);
    struct s3d_body *bad = s3d_body_corrupt(whole);
    assert_false(s3d_body_equal(bad, whole));
    assert_int_equal(s3d_body_size(bad), sizeof(p));
    for (int i = 0; i < 3; i++) {
        s3d_body_unref(part[i]);
    }
    s3d_body_unref(bad);
    s3d_body_unref(inner);
    s3d_body_unref(joined);
    same_bytes(whole, p, sizeof(p));
    s3d_body_unref(whole);
}

static void keys_of_a_pattern_do_not_repeat(void **state)
{
    (void)state;
    for (int i = 0; i < S3D_PATTERN_N; i++) {
        struct s3d_synth s = {.pattern = (enum s3d_pattern)i, .count = 1000};
        struct xf_buf a = {0};
        struct xf_buf b = {0};
        for (uint64_t n = 0; n + 1 < s.count; n++) {
            xf_buf_reset(&a);
            xf_buf_reset(&b);
            s3d_synth_key(&s, n, &a);
            s3d_synth_key(&s, n + 1, &b);
            assert_false(xf_str_eq(xf_buf_view(&a), xf_buf_view(&b)));
            assert_true(a.len > 0 && a.len <= 1024 && xf_str_is_utf8(xf_buf_view(&a)));
        }
        xf_buf_fini(&a);
        xf_buf_fini(&b);
    }
}

static void synth_texts_are_read_or_refused(void **state)
{
    struct s3d_synth s;
    struct xf_err err;

    (void)state;
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:10:1KiB:flat"), &s, &err), XF_OK);
    assert_int_equal(s.sizes.max, 1024);
    assert_int_equal(
        s3d_synth_parse(XF_STR_LIT("b:10:0-4KiB:utf-8:seed=4:part=5MiB:prefix=x/"), &s, &err),
        XF_OK);
    assert_true(s.seed == 4 && s.part_size == 5 << 20 && s.sizes.min == 0);
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:10:1KiB"), &s, &err), XF_E_INVAL);
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:x:1KiB:flat"), &s, &err), XF_E_INVAL);
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:1:1KB:flat"), &s, &err), XF_E_INVAL);
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:1:4-1:flat"), &s, &err), XF_E_INVAL);
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:1:1:round"), &s, &err), XF_E_INVAL);
    assert_int_equal(s3d_synth_parse(XF_STR_LIT("b:1:1:flat:x=1"), &s, &err), XF_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_up_bytes_that_come_back_are_recognised),
        cmocka_unit_test(almost_made_up_bytes_are_kept_as_they_are),
        cmocka_unit_test(bodies_of_all_sizes_are_kept),
        cmocka_unit_test(slices_and_joins_give_the_same_bytes),
        cmocka_unit_test(keys_of_a_pattern_do_not_repeat),
        cmocka_unit_test(synth_texts_are_read_or_refused),
    };

    return xf_test_run("s3d_body", tests, NULL, NULL);
}
