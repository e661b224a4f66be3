/*
 * store_blob.h - blobs as they lie in the database: compressed, with a checksum; and lists of
 * parts.
 *
 * Threads: a zip belongs to one thread.
 */
#ifndef XF_COORDINATOR_STORE_BLOB_H
#define XF_COORDINATOR_STORE_BLOB_H

#include "coordinator/store_rows.h"

enum { XF_BLOB_BYTES_MAX = 4 * 1024 * 1024 }; /* decompressed */

struct xf_zip; /* opaque */

struct xf_zip *xf_zip_new(void);
void xf_zip_free(struct xf_zip *z);
XF_AUTO_DEFINE(xf_zip, xf_zip_free)

/** Compress; the view is good until the next call with this zip. raw: up to XF_BLOB_BYTES_MAX. */
struct xf_str xf_zip_pack(struct xf_zip *z, struct xf_str raw);
/** Decompress into `out`, emptied first. XF_E_CORRUPT: not what xf_zip_pack() gave. */
XF_MUST_CHECK enum xf_code
xf_zip_unpack(struct xf_zip *z, struct xf_str packed, struct xf_buf *out, struct xf_err *err);

/** Parts by ascending number, as bytes (not compressed: etags do not shrink). */
void xf_parts_encode(const struct xf_store_part *parts, size_t n, struct xf_buf *out);
/* Room for `max` parts, of which n are there; their strings live in the arena. */
struct xf_part_list {
    struct xf_store_part *at;
    size_t n;
    size_t max;
    struct xf_arena *arena;
};
void xf_part_list_init(struct xf_part_list *l, struct xf_arena *arena, size_t max);
/** Append. XF_E_CORRUPT: damaged, or more than there is room for. */
XF_MUST_CHECK enum xf_code
xf_parts_decode(struct xf_str bytes, struct xf_part_list *out, struct xf_err *err);

#endif
