/*
 * digest.h - the digests S3 uses, as plain structs that need no allocation.
 *
 * MD5 and SHA come from libcrypto's low-level functions (their state is a plain struct, which
 * matters with thousands of bodies in flight; CMakeLists.txt silences their deprecation), CRC32
 * from zlib, the other CRCs from common/base/crc. Threads: no state.
 */
#ifndef XF_TESTS_S3D_DIGEST_H
#define XF_TESTS_S3D_DIGEST_H

#include "common/base/str.h"

#include <openssl/md5.h>
#include <openssl/sha.h>

enum { S3D_MD5_LEN = 16, S3D_SHA256_LEN = 32, S3D_SUM_MAX = 32 };

/* Checksum algorithms of x-amz-checksum-*; the order of the names in digest.c. */
enum s3d_sum_alg {
    S3D_SUM_NONE,
    S3D_SUM_CRC32,
    S3D_SUM_CRC32C,
    S3D_SUM_CRC64NVME,
    S3D_SUM_SHA1,
    S3D_SUM_SHA256,
    S3D_SUM_N
};

struct s3d_sum {
    enum s3d_sum_alg alg;
    union {
        uint64_t crc;
        SHA_CTX sha1;
        SHA256_CTX sha256;
    } u;
};

void s3d_sum_init(struct s3d_sum *s, enum s3d_sum_alg alg);
void s3d_sum_update(struct s3d_sum *s, const void *p, size_t len);
/** Big-endian digest; gives its length. */
size_t s3d_sum_final(struct s3d_sum *s, uint8_t out[S3D_SUM_MAX]);
/** Lower-case name ("crc32c"), as in x-amz-checksum-crc32c. */
const char *s3d_sum_name(enum s3d_sum_alg alg);
/** "CRC32C" as in XML and x-amz-checksum-algorithm. */
const char *s3d_sum_upper(enum s3d_sum_alg alg);
/** By either spelling; S3D_SUM_NONE when unknown. */
enum s3d_sum_alg s3d_sum_by_name(struct xf_str name);
size_t s3d_sum_len(enum s3d_sum_alg alg);
static inline bool s3d_sum_is_crc(enum s3d_sum_alg alg)
{
    return alg == S3D_SUM_CRC32 || alg == S3D_SUM_CRC32C || alg == S3D_SUM_CRC64NVME;
}

/** CRC of bytes after `crc` (0 at the start). */
uint32_t s3d_crc32c(uint32_t crc, const void *p, size_t len);
uint64_t s3d_crc64nvme(uint64_t crc, const void *data, size_t len);
/** CRC of A followed by B, from the CRCs of both and the length of B. Only for the CRC algorithms.
 */
uint64_t s3d_crc_combine(enum s3d_sum_alg alg, uint64_t a, uint64_t b, uint64_t b_len);
/** The CRC inside a big-endian digest, and back. */
uint64_t s3d_crc_load(const uint8_t *digest, size_t len);
void s3d_crc_store(uint8_t *digest, size_t len, uint64_t crc);

void s3d_md5(const void *p, size_t len, uint8_t out[S3D_MD5_LEN]);
void s3d_sha256(const void *p, size_t len, uint8_t out[S3D_SHA256_LEN]);
void s3d_hmac_sha256(struct xf_str key, struct xf_str data, uint8_t out[S3D_SHA256_LEN]);

#endif
