/*
 * hash.h - SHA-256 and MD5, streaming and at once.
 *
 * The digest methods are fetched once a process (an implicit fetch in each call is slow in
 * OpenSSL 3). MD5 is used only to compare with S3's ETags, never for trust.
 */
#ifndef XF_BASE_HASH_H
#define XF_BASE_HASH_H

#include "common/base/mem.h"
#include "common/base/str.h"

enum { XF_SHA256_LEN = 32, XF_MD5_LEN = 16 };

enum xf_hash_kind { XF_HASH_SHA256, XF_HASH_MD5 };

struct xf_hash; /* opaque; one stream of bytes */

struct xf_hash *xf_hash_new(enum xf_hash_kind kind);
void xf_hash_free(struct xf_hash *h);
void xf_hash_reset(struct xf_hash *h);
void xf_hash_update(struct xf_hash *h, const void *p, size_t len);
/** Digest into out (XF_SHA256_LEN or XF_MD5_LEN bytes); reset before further use. */
void xf_hash_final(struct xf_hash *h, unsigned char *out);
XF_AUTO_DEFINE(xf_hash, xf_hash_free)

void xf_sha256(const void *p, size_t len, unsigned char out[XF_SHA256_LEN]);
void xf_md5(const void *p, size_t len, unsigned char out[XF_MD5_LEN]);
void xf_hmac_sha256(struct xf_str key, struct xf_str data, unsigned char out[XF_SHA256_LEN]);

#endif
