/*
 * msg.h - the messages between agents, operators and the coordinator, as structs.
 *
 * Every table of schema.h gives a struct xf_msg_<name> and its functions:
 *
 *   xf_msg_<name>_encode(&m, &buf, &err)            append its bytes
 *   xf_msg_<name>_decode(bytes, &arena, &m, &err)   strings and lists live in the arena
 *   xf_msg_<name>_eq(&a, &b)
 *   xf_msg_<name>_text(&m, &buf)                    for logs: no secret, lists as their length
 *
 * A list `parts` of a table is a pointer `parts` and a length `n_parts`. An all-zero struct is a
 * valid start; there is nothing to free but the arena. Strings that are encoded are borrowed.
 *
 * Errors of encode: XF_E_LIMIT  a field is above its cap: split the message. Nothing was appended.
 * Errors of decode: XF_E_PROTO  truncated, trailing bytes, a required field is missing, a field
 *                               twice, of another type or above its cap. *m is all zero.
 */
#ifndef XF_PROTO_MSG_H
#define XF_PROTO_MSG_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/hash.h"
#include "common/base/str.h"
#include "proto/limits.h"
#include "proto/schema.h"

struct xf_msg_desc; /* a table at run time, see codec.h */

/* The C types of the tables. */
#define XF_MSG_C_u32    uint32_t
#define XF_MSG_C_u64    uint64_t
#define XF_MSG_C_i64    int64_t
#define XF_MSG_C_f64    double
#define XF_MSG_C_flag   bool
#define XF_MSG_C_str    struct xf_str
#define XF_MSG_C_bin    struct xf_str
#define XF_MSG_C_secret struct xf_str

/* clang-format off */
#define XF_MSG_MEMBER(type, name, key, presence, cap, text) XF_MSG_C_##type name;
#define XF_MSG_LIST(msg, name, key, presence, cap, text) \
    struct xf_msg_##msg *name;                           \
    uint32_t n_##name;
#define XF_MSG_STRUCT(name, table)             \
    struct xf_msg_##name {                     \
        table(XF_MSG_MEMBER, XF_MSG_LIST)      \
    };                                         \
    const struct xf_msg_desc *xf_msg_##name##_desc(void);
XF_MSG_ALL(XF_MSG_STRUCT)
#undef XF_MSG_STRUCT
#undef XF_MSG_MEMBER
#undef XF_MSG_LIST

#define XF_MSG_FUNCTIONS(name, table)                                                              \
    XF_MUST_CHECK enum xf_code xf_msg_##name##_encode(                                             \
        const struct xf_msg_##name *m, struct xf_buf *out, struct xf_err *err);                    \
    XF_MUST_CHECK enum xf_code xf_msg_##name##_decode(                                             \
        struct xf_str bytes, struct xf_arena *a, struct xf_msg_##name *m, struct xf_err *err);     \
    bool xf_msg_##name##_eq(const struct xf_msg_##name *a, const struct xf_msg_##name *b);         \
    void xf_msg_##name##_text(const struct xf_msg_##name *m, struct xf_buf *out);
XF_MSG_ALL(XF_MSG_FUNCTIONS)
#undef XF_MSG_FUNCTIONS

enum xf_kind {
#define XF_KIND_ENUM(NAME, no, role, channel, request, reply) XF_KIND_##NAME = (no),
    XF_KINDS(XF_KIND_ENUM)
#undef XF_KIND_ENUM
};
/* clang-format on */

struct xf_kind_info {
    uint32_t kind;
    const char *name; /* "HELLO" */
    enum xf_role role;
    enum xf_channel channel;
    const struct xf_msg_desc *(*request)(void);
    const struct xf_msg_desc *(*reply)(void);
};

/**
 * May an agent be called this: 1 to XF_AGENT_ID_MAX letters, digits and `. _ : @ -`, so that its
 * name stands unquoted in logs, labels, tables and commands.
 */
bool xf_msg_is_agent_id(struct xf_str id);

/** NULL when there is no such kind. */
const struct xf_kind_info *xf_kind_find(uint32_t kind);
/** The at-th kind, from 0; NULL at the end. */
const struct xf_kind_info *xf_kind_at(size_t at);

#endif
