/* verify.c - etag rules; the forms of etags are known by common/s3/plan. */
#include "agent/verify.h"

#include "common/base/hash.h"
#include "common/base/mem.h"
#include "common/s3/attrs.h"
#include "common/s3/plan.h"
#include "common/s3/sum.h"

#include <stdio.h>

struct xf_verify_parts {
    struct xf_hash *hash;
    uint32_t n;
    bool is_broken;
};

bool xf_verify_plain_md5(struct xf_str etag, unsigned char *raw)
{
    unsigned char bytes[XF_MD5_LEN];
    struct xf_str bare = xf_plan_etag_bare(etag);

    if (bare.len != (size_t)2 * XF_MD5_LEN || !xf_hex_decode(bare, bytes)) {
        return false;
    }
    if (raw != NULL) {
        memcpy(raw, bytes, sizeof(bytes));
    }
    return true;
}

enum xf_verify xf_verify_etags(struct xf_verify_etag a, struct xf_verify_etag b)
{
    if (xf_plan_etag_eq(a.etag, b.etag)) {
        return XF_VERIFY_SAME; /* an opaque one is random: it is equal only to itself */
    }
    if (a.is_opaque || b.is_opaque || !xf_verify_plain_md5(a.etag, NULL) ||
        !xf_verify_plain_md5(b.etag, NULL)) {
        return XF_VERIFY_UNKNOWN;
    }
    return XF_VERIFY_DIFFERENT;
}

enum xf_verify xf_verify_md5(const unsigned char *md5, struct xf_verify_etag got)
{
    unsigned char raw[XF_MD5_LEN];

    if (!xf_verify_plain_md5(got.etag, raw)) {
        return XF_VERIFY_UNKNOWN;
    }
    if (memcmp(md5, raw, sizeof(raw)) == 0) {
        return XF_VERIFY_SAME;
    }
    return got.is_opaque ? XF_VERIFY_UNKNOWN : XF_VERIFY_DIFFERENT;
}

enum xf_verify xf_verify_sums(const struct xf_sum *a, const struct xf_sum *b)
{
    if (!xf_sum_is_comparable(a, b)) {
        return XF_VERIFY_UNKNOWN;
    }
    return xf_sum_eq(a, b) ? XF_VERIFY_SAME : XF_VERIFY_DIFFERENT;
}

bool xf_verify_is_opaque(const struct xf_s3_attrs *attrs)
{
    return attrs != NULL && !xf_s3_attrs_etag_is_md5(attrs);
}

struct xf_verify_parts *xf_verify_parts_new(void)
{
    struct xf_verify_parts *v = xf_xcalloc(1, sizeof(*v));

    v->hash = xf_hash_new(XF_HASH_MD5);
    return v;
}

void xf_verify_parts_free(struct xf_verify_parts *v)
{
    if (v != NULL) {
        xf_hash_free(v->hash);
        xf_xfree(v);
    }
}

void xf_verify_parts_add(struct xf_verify_parts *v, struct xf_str part_etag)
{
    unsigned char raw[XF_MD5_LEN];

    v->n++;
    if (!xf_verify_plain_md5(part_etag, raw)) {
        v->is_broken = true;
        return;
    }
    xf_hash_update(v->hash, raw, sizeof(raw));
}

bool xf_verify_parts_etag(struct xf_verify_parts *v, char out[64])
{
    unsigned char raw[XF_MD5_LEN];
    XF_AUTO_BUF text = {0};

    out[0] = '\0';
    if (v->is_broken || v->n == 0) {
        return false;
    }
    xf_hash_final(v->hash, raw);
    xf_buf_put_hex(&text, raw, sizeof(raw));
    int n = snprintf(out, 64, "%s-%u", text.ptr, v->n);
    return n > 0 && n < 64;
}

bool xf_verify_is_copy(const struct xf_verify_side *source,
                       const struct xf_verify_side *dest,
                       bool *by_size)
{
    *by_size = false;
    if (source->size != dest->size) {
        return false;
    }
    switch (xf_verify_etags(source->etag, dest->etag)) {
    case XF_VERIFY_SAME: return true;
    case XF_VERIFY_DIFFERENT: return false;
    case XF_VERIFY_UNKNOWN: break;
    }
    *by_size = source->mtime_ms > 0 && dest->mtime_ms > source->mtime_ms;
    return *by_size;
}
