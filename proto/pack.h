/*
 * pack.h - bytes of manifests and results: varints, strings and etags under caps.
 *
 * A varint is LEB128, at most 10 bytes, in its shortest form. An etag that looks like S3's own
 * (32 lower-case hex digits, with or without "-parts") takes 16 bytes; any other is kept as it is.
 * A reader never reads past its end; the first fault sets `bad` and everything after gives zero, so
 * that a caller reads a record and checks once.
 */
#ifndef XF_PROTO_PACK_H
#define XF_PROTO_PACK_H

#include "common/base/arena.h"
#include "common/base/str.h"

enum { XF_ETAG_MAX = 256 };

void xf_pack_u64(struct xf_buf *b, uint64_t v);
void xf_pack_i64(struct xf_buf *b, int64_t v); /* zigzag */
void xf_pack_str(struct xf_buf *b, struct xf_str s);
void xf_pack_etag(struct xf_buf *b, struct xf_str etag);

struct xf_unpack {
    const unsigned char *at;
    const unsigned char *end;
    bool bad;
};

void xf_unpack_init(struct xf_unpack *u, struct xf_str bytes);
uint8_t xf_unpack_byte(struct xf_unpack *u);
/** At most max, else bad. */
uint64_t xf_unpack_u64(struct xf_unpack *u, uint64_t max);
int64_t xf_unpack_i64(struct xf_unpack *u);
/** Borrowed from the input; at most max bytes, else bad. */
struct xf_str xf_unpack_str(struct xf_unpack *u, size_t max);
/** Copied into the arena. */
struct xf_str xf_unpack_etag(struct xf_unpack *u, struct xf_arena *a);
/** Was all of it read, without a fault? */
bool xf_unpack_is_done(const struct xf_unpack *u);

#endif
