/*
 * codec.h - tables at run time: encode, decode, compare and print any message by its description.
 *
 * Most code calls the typed functions of msg.h. A message is a MessagePack map from small integer
 * keys to values, keys ascending when we write them, in any order when we read them. Unknown keys
 * are skipped. The reader has a budget of memory, so that no message costs more than a few times
 * XF_MSG_MAX, whatever it claims.
 */
#ifndef XF_PROTO_CODEC_H
#define XF_PROTO_CODEC_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/str.h"

enum xf_msg_type {
    XF_MSG_T_u32,
    XF_MSG_T_u64,
    XF_MSG_T_i64,
    XF_MSG_T_f64,
    XF_MSG_T_flag,
    XF_MSG_T_str,
    XF_MSG_T_bin,
    XF_MSG_T_secret, /* a string that is never printed */
    XF_MSG_T_LIST
};

struct xf_msg_field {
    const char *name;
    const char *text;
    enum xf_msg_type type;
    uint32_t key; /* 1 to 63 */
    bool required;
    size_t at;    /* offset of the member */
    size_t n_at;  /* lists: offset of its length */
    uint64_t cap; /* largest value, most bytes, most entries; doubles: see fcap */
    double fcap;
    const struct xf_msg_desc *(*list)(void); /* lists: of the entries */
};

struct xf_msg_desc {
    const char *name;
    size_t size; /* of the struct */
    size_t n;
    const struct xf_msg_field *fields; /* by ascending key */
};

XF_MUST_CHECK enum xf_code
xf_codec_encode(const struct xf_msg_desc *d, const void *m, struct xf_buf *out, struct xf_err *err);
/** m has d->size bytes. */
XF_MUST_CHECK enum xf_code xf_codec_decode(const struct xf_msg_desc *d,
                                           struct xf_str bytes,
                                           struct xf_arena *a,
                                           void *m,
                                           struct xf_err *err);
bool xf_codec_eq(const struct xf_msg_desc *d, const void *a, const void *b);
void xf_codec_text(const struct xf_msg_desc *d, const void *m, struct xf_buf *out);

#endif
