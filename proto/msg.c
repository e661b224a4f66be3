/*
 * msg.c - the tables of schema.h as descriptions, and the typed functions around codec.c.
 */
#include "proto/msg.h"

#include "proto/codec.h"

#include <stddef.h>

/* Presence as the tables write it. */
#define PRESENCE_REQUIRED true
#define PRESENCE_OPTIONAL false
/* A cap is an integer for all types but f64. */
#define CAP_u32(cap)    (uint64_t)(cap), 0
#define CAP_u64(cap)    (uint64_t)(cap), 0
#define CAP_i64(cap)    (uint64_t)(cap), 0
#define CAP_f64(cap)    0, (cap)
#define CAP_flag(cap)   (uint64_t)(cap), 0
#define CAP_str(cap)    (uint64_t)(cap), 0
#define CAP_bin(cap)    (uint64_t)(cap), 0
#define CAP_secret(cap) (uint64_t)(cap), 0

/* clang-format off */
/* Rows do not name their message: inside the function below it is the member of struct self. */
#define FIELD(type, name, key, presence, cap, text)                              \
    {#name, text, XF_MSG_T_##type, key, PRESENCE_##presence,                     \
     offsetof(struct self, m.name), 0, CAP_##type(cap), NULL},
#define LIST(msg, name, key, presence, cap, text)                                \
    {#name, text, XF_MSG_T_LIST, key, PRESENCE_##presence,                       \
     offsetof(struct self, m.name), offsetof(struct self, m.n_##name),           \
     (uint64_t)(cap), 0, xf_msg_##msg##_desc},
#define DESC(msg, table)                                                         \
    const struct xf_msg_desc *xf_msg_##msg##_desc(void)                          \
    {                                                                            \
        struct self {                                                            \
            struct xf_msg_##msg m;                                               \
        };                                                                       \
        static const struct xf_msg_field fields[] = {table(FIELD, LIST)};        \
        static const struct xf_msg_desc desc = {                                 \
            #msg, sizeof(struct xf_msg_##msg), XF_ARRAY_LEN(fields), fields};    \
        return &desc;                                                            \
    }
XF_MSG_ALL(DESC)

#define FUNCTIONS(msg, table)                                                                   \
    enum xf_code xf_msg_##msg##_encode(                                                         \
        const struct xf_msg_##msg *m, struct xf_buf *out, struct xf_err *err)                   \
    {                                                                                           \
        return xf_codec_encode(xf_msg_##msg##_desc(), m, out, err);                             \
    }                                                                                           \
    enum xf_code xf_msg_##msg##_decode(                                                         \
        struct xf_str bytes, struct xf_arena *a, struct xf_msg_##msg *m, struct xf_err *err)    \
    {                                                                                           \
        return xf_codec_decode(xf_msg_##msg##_desc(), bytes, a, m, err);                        \
    }                                                                                           \
    bool xf_msg_##msg##_eq(const struct xf_msg_##msg *a, const struct xf_msg_##msg *b)          \
    {                                                                                           \
        return xf_codec_eq(xf_msg_##msg##_desc(), a, b);                                        \
    }                                                                                           \
    void xf_msg_##msg##_text(const struct xf_msg_##msg *m, struct xf_buf *out)                  \
    {                                                                                           \
        xf_codec_text(xf_msg_##msg##_desc(), m, out);                                           \
    }
XF_MSG_ALL(FUNCTIONS)

#define KIND_ROW(NAME, no, role, channel, request, reply)                        \
    {no, #NAME, XF_ROLE_##role, XF_CHANNEL_##channel, xf_msg_##request##_desc,   \
     xf_msg_##reply##_desc},
static const struct xf_kind_info kinds[] = {XF_KINDS(KIND_ROW)};
/* clang-format on */

const struct xf_kind_info *xf_kind_find(uint32_t kind)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(kinds); i++) {
        if (kinds[i].kind == kind) {
            return &kinds[i];
        }
    }
    return NULL;
}

const struct xf_kind_info *xf_kind_at(size_t at)
{
    return at < XF_ARRAY_LEN(kinds) ? &kinds[at] : NULL;
}

bool xf_msg_is_agent_id(struct xf_str id)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                  "._:@-";

    if (id.len < 1 || id.len > XF_AGENT_ID_MAX) {
        return false;
    }
    for (size_t i = 0; i < id.len; i++) {
        if (id.ptr[i] == '\0' || strchr(allowed, id.ptr[i]) == NULL) {
            return false;
        }
    }
    return true;
}
