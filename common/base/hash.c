/* hash.c - the only file of common/base that knows OpenSSL. */
#include "common/base/hash.h"

#include "common/base/err.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <pthread.h>

struct xf_hash {
    EVP_MD_CTX *ctx;
    const EVP_MD *md;
};

static EVP_MD *sha256_md;
static EVP_MD *md5_md;
static uint32_t crc_table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init_crc(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (int k = 0; k < 8; k++) {
            c = (c & 1U) != 0 ? (c >> 1) ^ 0x82f63b78U : c >> 1;
        }
        crc_table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (int t = 1; t < 8; t++) {
            uint32_t prev = crc_table[t - 1][i];
            crc_table[t][i] = (prev >> 8) ^ crc_table[0][prev & 255U];
        }
    }
}

static void init(void)
{
    /* Kept for the life of the process: every thread uses them. */
    sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    md5_md = EVP_MD_fetch(NULL, "MD5", NULL);
    XF_ASSERT(sha256_md != NULL && md5_md != NULL);
    init_crc();
}

static const EVP_MD *method(enum xf_hash_kind kind)
{
    XF_ASSERT(pthread_once(&once, init) == 0);
    return kind == XF_HASH_SHA256 ? sha256_md : md5_md;
}

struct xf_hash *xf_hash_new(enum xf_hash_kind kind)
{
    struct xf_hash *h = xf_xcalloc(1, sizeof(*h));

    h->md = method(kind);
    h->ctx = EVP_MD_CTX_new();
    XF_ASSERT(h->ctx != NULL);
    xf_hash_reset(h);
    return h;
}

void xf_hash_free(struct xf_hash *h)
{
    if (h != NULL) {
        EVP_MD_CTX_free(h->ctx);
        xf_xfree(h);
    }
}

void xf_hash_reset(struct xf_hash *h)
{
    XF_ASSERT(EVP_DigestInit_ex2(h->ctx, h->md, NULL) == 1);
}

void xf_hash_update(struct xf_hash *h, const void *p, size_t len)
{
    XF_ASSERT(EVP_DigestUpdate(h->ctx, p, len) == 1);
}

void xf_hash_final(struct xf_hash *h, unsigned char *out)
{
    XF_ASSERT(EVP_DigestFinal_ex(h->ctx, out, NULL) == 1);
}

static void digest(enum xf_hash_kind kind, const void *p, size_t len, unsigned char *out)
{
    XF_ASSERT(EVP_Digest(p, len, out, NULL, method(kind), NULL) == 1);
}

void xf_sha256(const void *p, size_t len, unsigned char out[XF_SHA256_LEN])
{
    digest(XF_HASH_SHA256, p, len, out);
}

void xf_md5(const void *p, size_t len, unsigned char out[XF_MD5_LEN])
{
    digest(XF_HASH_MD5, p, len, out);
}

void xf_hmac_sha256(struct xf_str key, struct xf_str data, unsigned char out[XF_SHA256_LEN])
{
    unsigned len = XF_SHA256_LEN;
    const unsigned char *p = HMAC(method(XF_HASH_SHA256),
                                  key.ptr,
                                  (int)key.len,
                                  (const unsigned char *)data.ptr,
                                  data.len,
                                  out,
                                  &len);

    XF_ASSERT(p != NULL && len == XF_SHA256_LEN);
}

static uint32_t crc_tables(uint32_t crc, const unsigned char *p, size_t len)
{
    while (len >= 8) {
        uint64_t w;
        memcpy(&w, p, 8);
        w ^= crc;
        crc = crc_table[7][w & 255U] ^ crc_table[6][(w >> 8) & 255U] ^
              crc_table[5][(w >> 16) & 255U] ^ crc_table[4][(w >> 24) & 255U] ^
              crc_table[3][(w >> 32) & 255U] ^ crc_table[2][(w >> 40) & 255U] ^
              crc_table[1][(w >> 48) & 255U] ^ crc_table[0][(w >> 56) & 255U];
        p += 8;
        len -= 8;
    }
    while (len-- > 0) {
        crc = (crc >> 8) ^ crc_table[0][(crc ^ *p++) & 255U];
    }
    return crc;
}

uint32_t xf_crc32c(uint32_t crc, const void *p, size_t len)
{
    XF_ASSERT(pthread_once(&once, init) == 0);
    return ~crc_tables(~crc, p, len);
}
