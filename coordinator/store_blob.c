/*
 * store_blob.c - zstd frames with size and checksum, and the bytes of a list of parts:
 *
 *   n  then n times:  part_no  etag  checksum (string)  through_bytes      (numbers: proto/pack.h)
 */
#include "coordinator/store_blob.h"

#include "common/base/mem.h"
#include "proto/pack.h"

#include <zstd.h>

enum { LEVEL = 3, CHECKSUM_MAX = 256 };

struct xf_zip {
    ZSTD_CCtx *c;
    ZSTD_DCtx *d;
    struct xf_buf out;
};

struct xf_zip *xf_zip_new(void)
{
    struct xf_zip *z = xf_xcalloc(1, sizeof(*z));

    z->c = ZSTD_createCCtx();
    z->d = ZSTD_createDCtx();
    XF_ASSERT(z->c != NULL && z->d != NULL);
    XF_ASSERT(ZSTD_isError(ZSTD_CCtx_setParameter(z->c, ZSTD_c_compressionLevel, LEVEL)) == 0);
    XF_ASSERT(ZSTD_isError(ZSTD_CCtx_setParameter(z->c, ZSTD_c_checksumFlag, 1)) == 0);
    xf_buf_init(&z->out, ZSTD_COMPRESSBOUND(XF_BLOB_BYTES_MAX));
    return z;
}

void xf_zip_free(struct xf_zip *z)
{
    if (z == NULL) {
        return;
    }
    (void)ZSTD_freeCCtx(z->c); /* always 0 */
    (void)ZSTD_freeDCtx(z->d); /* always 0 */
    xf_buf_fini(&z->out);
    xf_xfree(z);
}

struct xf_str xf_zip_pack(struct xf_zip *z, struct xf_str raw)
{
    size_t room = ZSTD_compressBound(raw.len);
    char *to;

    XF_ASSERT(raw.len <= XF_BLOB_BYTES_MAX);
    xf_buf_reset(&z->out);
    to = xf_buf_reserve(&z->out, room);
    XF_ASSERT(to != NULL);
    size_t n = ZSTD_compress2(z->c, to, room, raw.ptr, raw.len);
    XF_ASSERT(ZSTD_isError(n) == 0); /* the room is what zstd asked for */
    return xf_str_n(to, n);
}

enum xf_code
xf_zip_unpack(struct xf_zip *z, struct xf_str packed, struct xf_buf *out, struct xf_err *err)
{
    unsigned long long size = ZSTD_getFrameContentSize(packed.ptr, packed.len);

    xf_buf_reset(out);
    if (size == ZSTD_CONTENTSIZE_UNKNOWN || size == ZSTD_CONTENTSIZE_ERROR ||
        size > XF_BLOB_BYTES_MAX) {
        return XF_FAIL(err, XF_E_CORRUPT, "a stored blob is damaged in its header");
    }
    char *to = xf_buf_reserve(out, (size_t)size + 1);
    if (to == NULL) {
        return XF_FAIL(err, XF_E_LIMIT, "no room for a blob of %llu bytes", size);
    }
    size_t n = ZSTD_decompressDCtx(z->d, to, (size_t)size, packed.ptr, packed.len);
    if (ZSTD_isError(n) != 0 || n != size) {
        return XF_FAIL(err, XF_E_CORRUPT, "a stored blob is damaged");
    }
    out->len = n;
    return XF_OK;
}

void xf_parts_encode(const struct xf_store_part *parts, size_t n, struct xf_buf *out)
{
    xf_pack_u64(out, n);
    for (size_t i = 0; i < n; i++) {
        xf_pack_u64(out, parts[i].part_no);
        xf_pack_etag(out, parts[i].etag);
        xf_pack_str(out, parts[i].checksum);
        xf_pack_u64(out, parts[i].through_bytes);
    }
}

void xf_part_list_init(struct xf_part_list *l, struct xf_arena *arena, size_t max)
{
    *l = (struct xf_part_list){.max = max, .arena = arena};
    l->at = xf_arena_calloc(arena, max, sizeof(*l->at));
}

enum xf_code xf_parts_decode(struct xf_str bytes, struct xf_part_list *out, struct xf_err *err)
{
    struct xf_unpack u;

    if (bytes.len == 0) {
        return XF_OK;
    }
    xf_unpack_init(&u, bytes);
    size_t count = (size_t)xf_unpack_u64(&u, out->max - out->n);
    for (size_t i = 0; i < count && !u.bad; i++) {
        struct xf_store_part *p = &out->at[out->n + i];
        p->part_no = (uint32_t)xf_unpack_u64(&u, XF_STORE_PARTS_MAX);
        p->etag = xf_unpack_etag(&u, out->arena);
        p->checksum = xf_arena_dup(out->arena, xf_unpack_str(&u, CHECKSUM_MAX));
        p->through_bytes = xf_unpack_u64(&u, UINT64_MAX);
    }
    if (!xf_unpack_is_done(&u)) {
        return XF_FAIL(err, XF_E_CORRUPT, "a stored list of parts is damaged");
    }
    out->n += count;
    return XF_OK;
}
