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
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void init(void)
{
    /* Kept for the life of the process: every thread uses them. */
    sha256_md = EVP_MD_fetch(NULL, "SHA256", NULL);
    md5_md = EVP_MD_fetch(NULL, "MD5", NULL);
    XF_ASSERT(sha256_md != NULL && md5_md != NULL);
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
