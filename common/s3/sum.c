/* sum.c - one table of algorithms; CRCs come from common/base/crc, the rest from hash. */
#include "common/s3/sum.h"

#include "common/base/crc.h"
#include "common/base/err.h"

static const struct {
    const char *name;
    const char *header;
    size_t len;
} algs[XF_SUM_ALG_N] = {
    [XF_SUM_NONE] = {"none", NULL, 0},
    [XF_SUM_CRC64NVME] = {"CRC64NVME", "x-amz-checksum-crc64nvme", 8},
    [XF_SUM_CRC32C] = {"CRC32C", "x-amz-checksum-crc32c", 4},
    [XF_SUM_CRC32] = {"CRC32", "x-amz-checksum-crc32", 4},
    [XF_SUM_SHA256] = {"SHA256", "x-amz-checksum-sha256", XF_SHA256_LEN},
    [XF_SUM_MD5] = {"MD5", NULL, XF_MD5_LEN},
};

size_t xf_sum_len(enum xf_sum_alg alg)
{
    return algs[alg].len;
}

const char *xf_sum_name(enum xf_sum_alg alg)
{
    return algs[alg].name;
}

const char *xf_sum_header(enum xf_sum_alg alg)
{
    return algs[alg].header;
}

enum xf_sum_alg xf_sum_by_name(struct xf_str name)
{
    for (int i = XF_SUM_NONE + 1; i < XF_SUM_ALG_N; i++) {
        if (algs[i].header != NULL && xf_str_eq_nocase(name, xf_str_c(algs[i].name))) {
            return (enum xf_sum_alg)i;
        }
    }
    return XF_SUM_NONE;
}

bool xf_sum_is_crc(enum xf_sum_alg alg)
{
    return alg == XF_SUM_CRC64NVME || alg == XF_SUM_CRC32C || alg == XF_SUM_CRC32;
}

static enum xf_crc_kind crc_of(enum xf_sum_alg alg)
{
    XF_ASSERT(xf_sum_is_crc(alg));
    return alg == XF_SUM_CRC64NVME ? XF_CRC64NVME : alg == XF_SUM_CRC32C ? XF_CRC32C : XF_CRC32;
}

/* ---- values ---- */

bool xf_sum_load(enum xf_sum_alg alg, struct xf_str raw, struct xf_sum *out)
{
    *out = (struct xf_sum){0};
    if (alg == XF_SUM_NONE || alg >= XF_SUM_ALG_N || raw.len != algs[alg].len) {
        return false;
    }
    out->alg = alg;
    memcpy(out->raw, raw.ptr, raw.len);
    return true;
}

bool xf_sum_parse(enum xf_sum_alg alg, struct xf_str text, struct xf_sum *out)
{
    XF_AUTO_BUF raw = {0};
    size_t dash = xf_str_find(text, '-', 0); /* not a digit of base64 */
    uint64_t n = 0;

    *out = (struct xf_sum){0};
    if (dash != SIZE_MAX && !xf_str_u64(xf_str_sub(text, dash + 1, text.len), &n)) {
        return false;
    }
    if (!xf_buf_put_unbase64(&raw, xf_str_sub(text, 0, dash)) ||
        !xf_sum_load(alg, xf_buf_view(&raw), out)) {
        return false;
    }
    out->is_composite = dash != SIZE_MAX;
    return true;
}

void xf_sum_text(const struct xf_sum *sum, struct xf_buf *out)
{
    xf_buf_put_base64(out, sum->raw, algs[sum->alg].len);
}

bool xf_sum_is_comparable(const struct xf_sum *a, const struct xf_sum *b)
{
    return a->alg != XF_SUM_NONE && a->alg == b->alg && !a->is_composite && !b->is_composite;
}

bool xf_sum_eq(const struct xf_sum *a, const struct xf_sum *b)
{
    return xf_sum_is_comparable(a, b) && memcmp(a->raw, b->raw, algs[a->alg].len) == 0;
}

static void store_crc(struct xf_sum *out, enum xf_sum_alg alg, uint64_t crc)
{
    *out = (struct xf_sum){.alg = alg};
    for (size_t i = algs[alg].len; i > 0; i--) {
        out->raw[i - 1] = (unsigned char)crc;
        crc >>= 8;
    }
}

static uint64_t load_crc(const struct xf_sum *sum)
{
    uint64_t crc = 0;

    for (size_t i = 0; i < algs[sum->alg].len; i++) {
        crc = crc << 8 | sum->raw[i];
    }
    return crc;
}

void xf_sum_append(struct xf_sum *sum, const struct xf_sum *next, uint64_t next_len)
{
    XF_ASSERT(xf_sum_is_comparable(sum, next));
    store_crc(
        sum, sum->alg, xf_crc_combine(crc_of(sum->alg), load_crc(sum), load_crc(next), next_len));
}

/* ---- in the making ---- */

void xf_summing_begin(struct xf_summing *s, enum xf_sum_alg alg)
{
    enum xf_hash_kind kind = alg == XF_SUM_MD5 ? XF_HASH_MD5 : XF_HASH_SHA256;

    if (s->hash != NULL && s->alg == alg) {
        xf_hash_reset(s->hash);
    } else {
        xf_hash_free(s->hash);
        s->hash = alg == XF_SUM_MD5 || alg == XF_SUM_SHA256 ? xf_hash_new(kind) : NULL;
    }
    s->alg = alg;
    s->crc = 0;
}

void xf_summing_add(struct xf_summing *s, const void *p, size_t len)
{
    if (s->hash != NULL) {
        xf_hash_update(s->hash, p, len);
    } else if (s->alg != XF_SUM_NONE) {
        s->crc = xf_crc(crc_of(s->alg), s->crc, p, len);
    }
}

void xf_summing_end(struct xf_summing *s, struct xf_sum *out)
{
    if (s->hash != NULL) {
        *out = (struct xf_sum){.alg = s->alg};
        xf_hash_final(s->hash, out->raw);
    } else {
        store_crc(out, s->alg, s->crc);
    }
}

void xf_summing_fini(struct xf_summing *s)
{
    xf_hash_free(s->hash);
    *s = (struct xf_summing){0};
}

void xf_sum_of(enum xf_sum_alg alg, const void *p, size_t len, struct xf_sum *out)
{
    struct xf_summing s = {0};

    xf_summing_begin(&s, alg);
    xf_summing_add(&s, p, len);
    xf_summing_end(&s, out);
    xf_summing_fini(&s);
}
