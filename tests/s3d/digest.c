/* digest.c - MD5, SHA, CRCs and their combination. */
#include "tests/s3d/digest.h"

#include "common/base/crc.h"
#include "common/base/err.h"
#include "common/base/mem.h"

#include <zlib.h>

#define POLY_CRC32  UINT64_C(0xEDB88320)
#define POLY_CRC32C UINT64_C(0x82F63B78)
#define POLY_CRC64  UINT64_C(0x9A6C9329AC4BC9B5)

static const struct {
    const char *lower;
    const char *upper;
    size_t len;
    uint64_t poly; /* reflected; 0 for the hashes */
} algs[S3D_SUM_N] = {
    [S3D_SUM_NONE] = {"none", "NONE", 0, 0},
    [S3D_SUM_CRC32] = {"crc32", "CRC32", 4, POLY_CRC32},
    [S3D_SUM_CRC32C] = {"crc32c", "CRC32C", 4, POLY_CRC32C},
    [S3D_SUM_CRC64NVME] = {"crc64nvme", "CRC64NVME", 8, POLY_CRC64},
    [S3D_SUM_SHA1] = {"sha1", "SHA1", 20, 0},
    [S3D_SUM_SHA256] = {"sha256", "SHA256", 32, 0},
};

uint32_t s3d_crc32c(uint32_t crc, const void *p, size_t len)
{
    return (uint32_t)xf_crc(XF_CRC32C, crc, p, len);
}

uint64_t s3d_crc64nvme(uint64_t crc, const void *data, size_t len)
{
    return xf_crc(XF_CRC64NVME, crc, data, len);
}

/* a * b modulo the polynomial, all reflected: bit `top` is x^0. */
static uint64_t mul_mod(uint64_t a, uint64_t b, uint64_t poly, uint64_t top)
{
    uint64_t r = 0;

    for (uint64_t m = top; m != 0; m >>= 1) {
        if ((a & m) != 0) {
            r ^= b;
        }
        b = (b & 1) != 0 ? (b >> 1) ^ poly : b >> 1;
    }
    return r;
}

uint64_t s3d_crc_combine(enum s3d_sum_alg alg, uint64_t a, uint64_t b, uint64_t b_len)
{
    XF_ASSERT(s3d_sum_is_crc(alg));
    uint64_t poly = algs[alg].poly;
    uint64_t top = UINT64_C(1) << (algs[alg].len * 8 - 1);
    uint64_t shift = top;     /* x^0 */
    uint64_t base = top >> 8; /* x^8: one byte */

    for (; b_len != 0; b_len >>= 1) {
        if ((b_len & 1) != 0) {
            shift = mul_mod(shift, base, poly, top);
        }
        base = mul_mod(base, base, poly, top);
    }
    return mul_mod(shift, a, poly, top) ^ b;
}

uint64_t s3d_crc_load(const uint8_t *digest, size_t len)
{
    uint64_t v = 0;

    for (size_t i = 0; i < len; i++) {
        v = (v << 8) | digest[i];
    }
    return v;
}

void s3d_crc_store(uint8_t *digest, size_t len, uint64_t crc)
{
    for (size_t i = len; i > 0; i--) {
        digest[i - 1] = (uint8_t)crc;
        crc >>= 8;
    }
}

const char *s3d_sum_name(enum s3d_sum_alg alg)
{
    return algs[alg].lower;
}

const char *s3d_sum_upper(enum s3d_sum_alg alg)
{
    return algs[alg].upper;
}

size_t s3d_sum_len(enum s3d_sum_alg alg)
{
    return algs[alg].len;
}

enum s3d_sum_alg s3d_sum_by_name(struct xf_str name)
{
    for (int i = S3D_SUM_NONE + 1; i < S3D_SUM_N; i++) {
        if (xf_str_eq_nocase(name, xf_str_c(algs[i].lower))) {
            return (enum s3d_sum_alg)i;
        }
    }
    return S3D_SUM_NONE;
}

void s3d_sum_init(struct s3d_sum *s, enum s3d_sum_alg alg)
{
    s->alg = alg;
    s->u.crc = 0;
    if (alg == S3D_SUM_SHA1) {
        (void)SHA1_Init(&s->u.sha1); /* always 1, as all of these without FIPS */
    } else if (alg == S3D_SUM_SHA256) {
        (void)SHA256_Init(&s->u.sha256);
    }
}

void s3d_sum_update(struct s3d_sum *s, const void *p, size_t len)
{
    switch (s->alg) {
    case S3D_SUM_CRC32: s->u.crc = crc32_z(s->u.crc, p, len); break;
    case S3D_SUM_CRC32C: s->u.crc = s3d_crc32c((uint32_t)s->u.crc, p, len); break;
    case S3D_SUM_CRC64NVME: s->u.crc = s3d_crc64nvme(s->u.crc, p, len); break;
    case S3D_SUM_SHA1: (void)SHA1_Update(&s->u.sha1, p, len); break;
    case S3D_SUM_SHA256: (void)SHA256_Update(&s->u.sha256, p, len); break;
    case S3D_SUM_NONE:
    case S3D_SUM_N: break;
    }
}

size_t s3d_sum_final(struct s3d_sum *s, uint8_t out[S3D_SUM_MAX])
{
    if (s->alg == S3D_SUM_SHA1) {
        (void)SHA1_Final(out, &s->u.sha1);
    } else if (s->alg == S3D_SUM_SHA256) {
        (void)SHA256_Final(out, &s->u.sha256);
    } else {
        s3d_crc_store(out, algs[s->alg].len, s->u.crc);
    }
    return algs[s->alg].len;
}

void s3d_md5(const void *p, size_t len, uint8_t out[S3D_MD5_LEN])
{
    MD5_CTX c;

    (void)MD5_Init(&c);
    (void)MD5_Update(&c, p, len);
    (void)MD5_Final(out, &c);
}

void s3d_sha256(const void *p, size_t len, uint8_t out[S3D_SHA256_LEN])
{
    SHA256_CTX c;

    (void)SHA256_Init(&c);
    (void)SHA256_Update(&c, p, len);
    (void)SHA256_Final(out, &c);
}

void s3d_hmac_sha256(struct xf_str key, struct xf_str data, uint8_t out[S3D_SHA256_LEN])
{
    uint8_t block[SHA256_CBLOCK] = {0};
    SHA256_CTX c;

    if (key.len > sizeof(block)) {
        s3d_sha256(key.ptr, key.len, block);
    } else if (key.len > 0) {
        memcpy(block, key.ptr, key.len);
    }
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36;
    }
    (void)SHA256_Init(&c);
    (void)SHA256_Update(&c, block, sizeof(block));
    (void)SHA256_Update(&c, data.ptr, data.len);
    (void)SHA256_Final(out, &c);
    for (size_t i = 0; i < sizeof(block); i++) {
        block[i] ^= 0x36 ^ 0x5c;
    }
    (void)SHA256_Init(&c);
    (void)SHA256_Update(&c, block, sizeof(block));
    (void)SHA256_Update(&c, out, S3D_SHA256_LEN);
    (void)SHA256_Final(out, &c);
}
