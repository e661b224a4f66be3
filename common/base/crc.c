/*
 * crc.c - tables, and folding by carry-less multiplication.
 *
 * All three are reflected: bit 0 of the first byte has the highest power of x. A 128-bit block X is
 * moved D bits ahead as lo(X) * x^(D+63) + hi(X) * x^(D-1), both modulo the polynomial; the powers
 * are one less than D+64 and D because the product of two reflected 64-bit numbers comes out one
 * bit lower. Four blocks at a time are folded 512 bits ahead, then into one; its 16 bytes and what
 * is left of the input go through the tables, so no other reduction is needed.
 */
#include "common/base/crc.h"

#include "common/base/err.h"

#include <pthread.h>
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

enum { BLOCK = 16, FOLD = 4 * BLOCK, FOLD_MIN = 4 * FOLD };

struct powers { /* of x, for the halves of a block; see above */
    uint64_t lo;
    uint64_t hi;
};

struct rule {
    unsigned bits;
    uint64_t poly; /* reflected */
    uint64_t table[8][256];
    struct powers by_512;
    struct powers by_128;
};

static struct rule rules[XF_CRC_KIND_N] = {
    [XF_CRC32] = {.bits = 32, .poly = UINT64_C(0xEDB88320)},
    [XF_CRC32C] = {.bits = 32, .poly = UINT64_C(0x82F63B78)},
    [XF_CRC64NVME] = {.bits = 64, .poly = UINT64_C(0x9A6C9329AC4BC9B5)},
};
static bool has_clmul;
static bool has_crc32;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint64_t times_x(const struct rule *r, uint64_t v)
{
    return (v & 1) != 0 ? (v >> 1) ^ r->poly : v >> 1;
}

/* x^n modulo the polynomial, at the upper end of 64 bits. */
static uint64_t power(const struct rule *r, unsigned n)
{
    uint64_t v = UINT64_C(1) << (r->bits - 1);

    while (n-- > 0) {
        v = times_x(r, v);
    }
    return v << (64 - r->bits);
}

static void init_rule(struct rule *r)
{
    for (unsigned i = 0; i < 256; i++) {
        uint64_t v = i;
        for (int k = 0; k < 8; k++) {
            v = times_x(r, v);
        }
        r->table[0][i] = v;
    }
    for (unsigned i = 0; i < 256; i++) {
        for (int t = 1; t < 8; t++) {
            uint64_t prev = r->table[t - 1][i];
            r->table[t][i] = (prev >> 8) ^ r->table[0][prev & 255U];
        }
    }
    r->by_512 = (struct powers){power(r, 512 + 63), power(r, 512 - 1)};
    r->by_128 = (struct powers){power(r, 128 + 63), power(r, 128 - 1)};
}

static void init(void)
{
    for (int i = 0; i < XF_CRC_KIND_N; i++) {
        init_rule(&rules[i]);
    }
#if defined(__x86_64__)
    has_clmul = __builtin_cpu_supports("pclmul") != 0 && __builtin_cpu_supports("sse4.1") != 0;
    has_crc32 = __builtin_cpu_supports("sse4.2") != 0;
#endif
}

static const struct rule *rule_of(enum xf_crc_kind kind)
{
    XF_ASSERT(pthread_once(&once, init) == 0);
    return &rules[kind];
}

/* The CRC's register, not its inverse, goes in and comes out of what follows. */

static uint64_t by_tables(const struct rule *r, uint64_t crc, const unsigned char *p, size_t len)
{
    const uint64_t(*t)[256] = r->table;

    while (len >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w ^= crc;
        crc = t[7][w & 255U] ^ t[6][(w >> 8) & 255U] ^ t[5][(w >> 16) & 255U] ^
              t[4][(w >> 24) & 255U] ^ t[3][(w >> 32) & 255U] ^ t[2][(w >> 40) & 255U] ^
              t[1][(w >> 48) & 255U] ^ t[0][w >> 56];
        p += 8;
        len -= 8;
    }
    while (len-- > 0) {
        crc = (crc >> 8) ^ t[0][(crc ^ *p++) & 255U];
    }
    return crc;
}

#if defined(__x86_64__)

__attribute__((target("pclmul,sse4.1"))) static __m128i load(const unsigned char *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

__attribute__((target("pclmul,sse4.1"))) static __m128i powers_of(const struct powers *k)
{
    return _mm_set_epi64x((int64_t)k->hi, (int64_t)k->lo);
}

/* Move x ahead by what k stands for, and add what is there. */
__attribute__((target("pclmul,sse4.1"))) static __m128i fold(__m128i x, __m128i k, __m128i there)
{
    __m128i lo = _mm_clmulepi64_si128(x, k, 0x00);
    __m128i hi = _mm_clmulepi64_si128(x, k, 0x11);

    return _mm_xor_si128(_mm_xor_si128(lo, hi), there);
}

/* len is a multiple of FOLD, and not 0. */
__attribute__((target("pclmul,sse4.1"))) static uint64_t
by_folding(const struct rule *r, uint64_t crc, const unsigned char *p, size_t len)
{
    const __m128i k512 = powers_of(&r->by_512);
    const __m128i k128 = powers_of(&r->by_128);
    __m128i a = _mm_xor_si128(load(p), _mm_set_epi64x(0, (int64_t)crc));
    __m128i b = load(p + BLOCK);
    __m128i c = load(p + (size_t)2 * BLOCK);
    __m128i d = load(p + (size_t)3 * BLOCK);
    unsigned char last[BLOCK];

    for (p += FOLD, len -= FOLD; len > 0; p += FOLD, len -= FOLD) {
        a = fold(a, k512, load(p));
        b = fold(b, k512, load(p + BLOCK));
        c = fold(c, k512, load(p + (size_t)2 * BLOCK));
        d = fold(d, k512, load(p + (size_t)3 * BLOCK));
    }
    b = fold(a, k128, b);
    c = fold(b, k128, c);
    d = fold(c, k128, d);
    _mm_storeu_si128((__m128i *)(void *)last, d);
    return by_tables(r, 0, last, sizeof(last));
}

__attribute__((target("sse4.2"))) static uint64_t
crc32c_run(uint64_t crc, const unsigned char *p, size_t len)
{
    for (; len >= 8; len -= 8, p += 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        crc = _mm_crc32_u64(crc, w);
    }
    for (; len > 0; len--, p++) {
        crc = _mm_crc32_u8((uint32_t)crc, *p);
    }
    return crc;
}

#endif

static uint64_t inverse(const struct rule *r, uint64_t crc)
{
    return r->bits == 64 ? ~crc : ~crc & UINT32_MAX;
}

uint64_t xf_crc(enum xf_crc_kind kind, uint64_t crc, const void *p, size_t len)
{
    const struct rule *r = rule_of(kind);
    const unsigned char *at = p;

    crc = inverse(r, crc);
#if defined(__x86_64__)
    if (has_clmul && len >= FOLD_MIN) {
        size_t whole = len / FOLD * FOLD;

        crc = by_folding(r, crc, at, whole);
        at += whole;
        len -= whole;
    }
    if (has_crc32 && kind == XF_CRC32C) {
        return inverse(r, crc32c_run(crc, at, len));
    }
#endif
    return inverse(r, by_tables(r, crc, at, len));
}

uint64_t xf_crc_portable(enum xf_crc_kind kind, uint64_t crc, const void *p, size_t len)
{
    const struct rule *r = rule_of(kind);

    return inverse(r, by_tables(r, inverse(r, crc), p, len));
}

bool xf_crc_is_hard(void)
{
    (void)rule_of(XF_CRC32); /* finds out */
    return has_clmul;
}

/* a * b modulo the polynomial. */
static uint64_t product(const struct rule *r, uint64_t a, uint64_t b)
{
    uint64_t sum = 0;

    for (uint64_t bit = UINT64_C(1) << (r->bits - 1); bit != 0; bit >>= 1) {
        sum ^= (a & bit) != 0 ? b : 0;
        b = times_x(r, b);
    }
    return sum;
}

uint64_t xf_crc_combine(enum xf_crc_kind kind, uint64_t a, uint64_t b, uint64_t b_len)
{
    const struct rule *r = rule_of(kind);
    uint64_t step = UINT64_C(1) << (r->bits - 1 - 8); /* x^8: one byte */

    for (; b_len != 0; b_len >>= 1) {
        a = (b_len & 1) != 0 ? product(r, a, step) : a;
        step = product(r, step, step);
    }
    return a ^ b;
}

size_t xf_crc_len(enum xf_crc_kind kind)
{
    return rules[kind].bits / 8;
}
