/*
 * plan.c - part arithmetic and etag forms.
 */
#include "common/s3/plan.h"

#include "common/base/hash.h"

#define MIB          ((uint64_t)1 << 20)
#define PART_DEFAULT (64 * MIB)
#define OBJECT_MAX   (XF_PLAN_PARTS_MAX * XF_PLAN_PART_MAX)

const struct xf_plan_limits xf_plan_limits_s3 = {
    .max_parts = XF_PLAN_PARTS_MAX,
    .min_part = XF_PLAN_PART_MIN,
    .max_part = XF_PLAN_PART_MAX,
    .max_copy = XF_PLAN_COPY_MAX,
    .max_put = XF_PLAN_COPY_MAX,
    .max_object = OBJECT_MAX,
};

/* Part sizes that uploaders commonly use, for sources whose first part cannot be asked for. */
static const uint64_t usual_sizes[] = {
    8 * MIB,    16 * MIB,   5 * MIB,  64 * MIB,  15 * MIB,  10 * MIB,  20 * MIB,
    25 * MIB,   32 * MIB,   50 * MIB, 100 * MIB, 128 * MIB, 256 * MIB, 512 * MIB,
    1024 * MIB, 5120 * MIB, 8000000,  10000000,  16000000,  50000000,  100000000,
};

static uint64_t parts_of(uint64_t size, uint64_t part)
{
    return size / part + (size % part != 0 ? 1 : 0);
}

/* Would cutting by `part` give n parts that the limits allow? */
static bool is_layout(uint64_t size, uint64_t part, uint32_t n, const struct xf_plan_limits *lim)
{
    if (part == 0 || part > lim->max_part || n > lim->max_parts || parts_of(size, part) != n) {
        return false;
    }
    return n == 1 || part >= lim->min_part;
}

/* The source's part size when its etag tells of parts; 0 when it cannot be kept. */
static uint64_t
source_part(const struct xf_plan_opts *o, const struct xf_plan_limits *lim, bool *guessed)
{
    uint32_t n = xf_plan_etag_parts(o->etag);

    *guessed = false;
    if (n == 0) {
        return 0;
    }
    if (n == 1) {
        return is_layout(o->size, o->size, 1, lim) ? o->size : 0;
    }
    if (o->first_part_size != 0) {
        return is_layout(o->size, o->first_part_size, n, lim) ? o->first_part_size : 0;
    }
    *guessed = true;
    if (is_layout(o->size, o->part_size, n, lim)) {
        return o->part_size;
    }
    for (size_t i = 0; i < sizeof(usual_sizes) / sizeof(usual_sizes[0]); i++) {
        if (is_layout(o->size, usual_sizes[i], n, lim)) {
            return usual_sizes[i];
        }
    }
    return 0;
}

enum xf_code xf_plan_parts(const struct xf_plan_opts *o, struct xf_plan *out, struct xf_err *err)
{
    const struct xf_plan_limits *lim = o->limits != NULL ? o->limits : &xf_plan_limits_s3;
    bool guessed = false;
    uint64_t part;

    if (o->size == 0) {
        return XF_FAIL(err, XF_E_INVAL, "an empty object has no parts");
    }
    if (o->size > lim->max_object) {
        return XF_FAIL(err,
                       XF_E_TOO_LARGE,
                       "object of %llu bytes is larger than the service's limit of %llu",
                       (unsigned long long)o->size,
                       (unsigned long long)lim->max_object);
    }
    part = source_part(o, lim, &guessed);
    *out = (struct xf_plan){.size = o->size, .keeps_layout = part != 0, .layout_guessed = guessed};
    if (part == 0) {
        out->layout_guessed = false;
        part = o->part_size != 0 ? o->part_size : PART_DEFAULT;
        part = part < lim->min_part ? lim->min_part : part;
        while (part < lim->max_part && parts_of(o->size, part) > lim->max_parts) {
            part *= 2;
        }
        part = part > lim->max_part ? lim->max_part : part;
    }
    if (parts_of(o->size, part) > lim->max_parts) {
        return XF_FAIL(err,
                       XF_E_TOO_LARGE,
                       "object of %llu bytes needs more than %u parts of at most %llu bytes",
                       (unsigned long long)o->size,
                       lim->max_parts,
                       (unsigned long long)lim->max_part);
    }
    out->part_size = part;
    out->n_parts = (uint32_t)parts_of(o->size, part);
    return XF_OK;
}

void xf_plan_range(const struct xf_plan *plan, uint32_t part_no, uint64_t *offset, uint64_t *len)
{
    XF_ASSERT(part_no >= 1 && part_no <= plan->n_parts);
    *offset = (uint64_t)(part_no - 1) * plan->part_size;
    *len = part_no < plan->n_parts ? plan->part_size : plan->size - *offset;
}

bool xf_plan_is_single(uint64_t size, uint64_t threshold, uint64_t max_single)
{
    return size == 0 || (size < threshold && size <= max_single);
}

struct xf_str xf_plan_etag_bare(struct xf_str etag)
{
    static const struct xf_str entity = {"&quot;", 6};

    etag = xf_str_trim(etag);
    if (etag.len >= 2 && (etag.ptr[0] == 'W' || etag.ptr[0] == 'w') && etag.ptr[1] == '/') {
        etag = xf_str_sub(etag, 2, etag.len);
    }
    if (etag.len >= 2 * entity.len && xf_str_starts(etag, entity) && xf_str_ends(etag, entity)) {
        return xf_str_sub(etag, entity.len, etag.len - entity.len);
    }
    if (etag.len >= 2 && etag.ptr[0] == '"' && etag.ptr[etag.len - 1] == '"') {
        return xf_str_sub(etag, 1, etag.len - 1);
    }
    return etag;
}

bool xf_plan_etag_eq(struct xf_str a, struct xf_str b)
{
    struct xf_str bare_a = xf_plan_etag_bare(a);

    return bare_a.len > 0 && xf_str_eq_nocase(bare_a, xf_plan_etag_bare(b));
}

static bool is_hex(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool xf_plan_etag_is_md5(struct xf_str etag)
{
    struct xf_str bare = xf_plan_etag_bare(etag);

    if (bare.len < 32) {
        return false;
    }
    for (size_t i = 0; i < 32; i++) {
        if (!is_hex(bare.ptr[i])) {
            return false;
        }
    }
    return bare.len == 32 || xf_plan_etag_parts(bare) > 0;
}

uint32_t xf_plan_etag_parts(struct xf_str etag)
{
    struct xf_str bare = xf_plan_etag_bare(etag);
    size_t dash = bare.len;
    uint64_t n = 0;

    while (dash > 0 && bare.ptr[dash - 1] != '-') {
        dash--;
    }
    if (dash == 0 || !xf_str_u64(xf_str_sub(bare, dash, bare.len), &n) || n > UINT32_MAX) {
        return 0;
    }
    return (uint32_t)n;
}

enum xf_code xf_plan_etag_of_parts(const unsigned char *md5,
                                   uint32_t n,
                                   char out[XF_PLAN_ETAG_LEN],
                                   struct xf_err *err)
{
    unsigned char sum[XF_MD5_LEN];
    XF_AUTO_BUF text = {0};

    if (n == 0 || n > XF_PLAN_PARTS_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "an etag of %u parts cannot be", n);
    }
    xf_md5(md5, (size_t)n * XF_MD5_LEN, sum);
    xf_buf_put_hex(&text, sum, sizeof(sum));
    xf_buf_put_byte(&text, '-');
    xf_buf_put_u64(&text, n);
    memcpy(out, text.ptr, text.len + 1);
    return XF_OK;
}
