/* crc_test.c - CRCs against published values; the two ways of computing them against each other. */
#include "common/base/crc.h"
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/lib/gen.h"
#include "tests/lib/test.h"

#include <string.h>

static const uint64_t polys[XF_CRC_KIND_N] = {
    UINT64_C(0xEDB88320), UINT64_C(0x82F63B78), UINT64_C(0x9A6C9329AC4BC9B5)};

/* A bit at a time, as the definition says. */
static uint64_t by_bits(enum xf_crc_kind kind, const char *p, size_t len)
{
    uint64_t ones = xf_crc_len(kind) == 8 ? UINT64_MAX : UINT32_MAX;
    uint64_t crc = ones;

    for (size_t i = 0; i < len; i++) {
        crc ^= (unsigned char)p[i];
        for (int k = 0; k < 8; k++) {
            crc = (crc & 1) != 0 ? (crc >> 1) ^ polys[kind] : crc >> 1;
        }
    }
    return crc ^ ones;
}

static void crcs_match_the_published_values(void **state)
{
    static const struct {
        const char *text; /* NULL: `n` bytes of `c` */
        size_t n;
        char c;
        uint64_t want[XF_CRC_KIND_N];
    } rows[] = {
        {"", 0, 0, {0, 0, 0}},
        {"123456789", 9, 0, {0xcbf43926, 0xe3069283, UINT64_C(0xae8b14860a799888)}},
        {"hello", 5, 0, {0x3610a686, 0x9a71bb4c, UINT64_C(0x3377857006524257)}},
        {"Hello world!", 12, 0, {0x1b851995, 0x7b98e751, UINT64_C(0x4934f7e2784b0edc)}},
        {NULL, 66560, 'a', {0xb0ae18ec, 0xb0e3bcfd, UINT64_C(0xa517fe7a6ae72fe0)}},
        {NULL, 5 << 20, 0, {0xc93bb375, 0xceab0542, UINT64_C(0xbea7f78512d3949c)}},
    };

    (void)state; /* no fixture */
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        char *p = xf_xmalloc(rows[i].n + 1);
        memset(p, rows[i].c, rows[i].n + 1);
        if (rows[i].text != NULL) {
            memcpy(p, rows[i].text, rows[i].n);
        }
        for (int k = 0; k < XF_CRC_KIND_N; k++) {
            enum xf_crc_kind kind = (enum xf_crc_kind)k;
            assert_true(xf_crc(kind, 0, p, rows[i].n) == rows[i].want[k]);
            assert_true(xf_crc_portable(kind, 0, p, rows[i].n) == rows[i].want[k]);
        }
        xf_xfree(p);
    }
}

/* Random bytes at every alignment and length: both ways, whole and in pieces. */
static void instructions_and_tables_agree(void **state)
{
    XF_AUTO_BUF buf = {0};
    struct xf_rng rng;

    (void)state; /* no fixture */
    xf_rng_init(&rng, xf_test_seed());
    xf_gen_bytes(&rng, &buf, 70000);
    for (int round = 0; round < 2000; round++) {
        enum xf_crc_kind kind = (enum xf_crc_kind)xf_rng_below(&rng, XF_CRC_KIND_N);
        size_t at = (size_t)xf_rng_below(&rng, 64);
        size_t len = (size_t)xf_gen_between(&rng, 0, round % 50 == 0 ? 65536 : 2048);
        size_t cut = (size_t)xf_rng_below(&rng, len + 1);
        const char *p = buf.ptr + at;
        uint64_t whole = xf_crc(kind, 0, p, len);
        assert_true(whole == xf_crc_portable(kind, 0, p, len));
        assert_true(whole == xf_crc(kind, xf_crc(kind, 0, p, cut), p + cut, len - cut));
        assert_true(whole == xf_crc_combine(kind,
                                            xf_crc(kind, 0, p, cut),
                                            xf_crc(kind, 0, p + cut, len - cut),
                                            len - cut));
        if (len <= 2048) {
            assert_true(whole == by_bits(kind, p, len));
        }
    }
}

/* Parts of one object, as S3 combines them. */
static void parts_combine_to_the_published_value(void **state)
{
    size_t n = (size_t)5 << 20;
    char *zeros = xf_xcalloc(n, 1);
    static const uint64_t want[XF_CRC_KIND_N] = {
        0x3ae34e3b, 0x33764967, UINT64_C(0xa3aeb90c0d8649d9)};

    (void)state; /* no fixture */
    for (int k = 0; k < XF_CRC_KIND_N; k++) {
        enum xf_crc_kind kind = (enum xf_crc_kind)k;
        uint64_t a = xf_crc(kind, 0, zeros, n);
        uint64_t b = xf_crc(kind, 0, "hello", 5);
        assert_true(xf_crc_combine(kind, a, b, 5) == want[k]);
    }
    xf_xfree(zeros);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crcs_match_the_published_values),
        cmocka_unit_test(instructions_and_tables_agree),
        cmocka_unit_test(parts_combine_to_the_published_value),
    };

    return xf_test_run("crc", tests, NULL, NULL);
}
