/*
 * str.h - byte strings: a borrowed view (struct xf_str) and a growable, capped buffer (xf_buf).
 *
 * A view is any bytes, NUL included, never NUL-terminated by promise. A buffer keeps a NUL behind
 * its bytes, so buf.ptr can be handed to an OS call. Keys of S3 are views: bytes, compared by
 * memcmp, never normalised.
 */
#ifndef XF_BASE_STR_H
#define XF_BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct xf_str {
    const char *ptr; /* borrowed; may be NULL when len is 0 */
    size_t len;
};

#define XF_STR_LIT(lit) ((struct xf_str){(lit), sizeof(lit) - 1})
#define XF_STR_EMPTY    ((struct xf_str){"", 0})
/* For printf: "%.*s", XF_STR_ARG(s). */
#define XF_STR_ARG(s) (int)((s).len), ((s).ptr != NULL ? (s).ptr : "")

static inline struct xf_str xf_str_c(const char *c)
{
    return (struct xf_str){c, c != NULL ? strlen(c) : 0};
}
static inline struct xf_str xf_str_n(const void *p, size_t len)
{
    return (struct xf_str){(const char *)p, len};
}
bool xf_str_eq(struct xf_str a, struct xf_str b);
bool xf_str_eq_c(struct xf_str a, const char *b);
bool xf_str_eq_nocase(struct xf_str a, struct xf_str b); /* ASCII case only */
/** Byte order as S3 lists: memcmp, then the shorter first. <0, 0, >0. */
int xf_str_cmp(struct xf_str a, struct xf_str b);
bool xf_str_starts(struct xf_str s, struct xf_str prefix);
bool xf_str_ends(struct xf_str s, struct xf_str suffix);
/** Index of byte c at or after `from`; SIZE_MAX when there is none. */
size_t xf_str_find(struct xf_str s, char c, size_t from);
/** Bytes from..to (exclusive); both are cut to the length. */
struct xf_str xf_str_sub(struct xf_str s, size_t from, size_t to);
/** Without leading and trailing ASCII blanks (space, tab, CR, LF). */
struct xf_str xf_str_trim(struct xf_str s);
/** Split off what stands before the first `sep`; *rest is what follows. False when s is empty. */
bool xf_str_cut(struct xf_str *rest, char sep, struct xf_str *head);
char *xf_str_dup(struct xf_str s); /* NUL-terminated copy; caller frees with xf_xfree */
/** Decimal, all of it, no sign, no overflow. */
bool xf_str_u64(struct xf_str s, uint64_t *out);
bool xf_str_i64(struct xf_str s, int64_t *out);
/** Is it well-formed UTF-8 (no surrogates, no overlong forms)? */
bool xf_str_is_utf8(struct xf_str s);
uint64_t xf_str_hash(struct xf_str s, uint64_t seed);

/*
 * Growable bytes. `max` caps the length (0: XF_BUF_MAX_DEFAULT); going past it is remembered in
 * `full` and further bytes are dropped, so a caller may append many times and check once.
 */
struct xf_buf {
    char *ptr; /* owned; NUL behind len; NULL while nothing was appended */
    size_t len;
    size_t cap;
    size_t max;
    bool full;
};
#define XF_BUF_MAX_DEFAULT ((size_t)256 * 1024 * 1024)

void xf_buf_init(struct xf_buf *b, size_t max);
void xf_buf_fini(struct xf_buf *b);
void xf_buf_reset(struct xf_buf *b); /* keeps the memory; clears full */
#define XF_AUTO_BUF __attribute__((cleanup(xf_buf_fini))) struct xf_buf
void xf_buf_put(struct xf_buf *b, struct xf_str s);
void xf_buf_put_c(struct xf_buf *b, const char *c);
void xf_buf_put_mem(struct xf_buf *b, const void *p, size_t len);
void xf_buf_put_byte(struct xf_buf *b, char c);
void xf_buf_put_u64(struct xf_buf *b, uint64_t v);                /* decimal */
void xf_buf_put_hex(struct xf_buf *b, const void *p, size_t len); /* lower case */
void xf_buf_putf(struct xf_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/** Make room for n more bytes and give their address, or NULL (and full) above max. */
char *xf_buf_reserve(struct xf_buf *b, size_t n);
/** Drop n bytes from the front. */
void xf_buf_consume(struct xf_buf *b, size_t n);
struct xf_str xf_buf_view(const struct xf_buf *b);
/** Hand the memory to the caller (NUL-terminated, never NULL); the buffer is empty again. */
char *xf_buf_take(struct xf_buf *b);

/** Bytes shown safely to people: printable UTF-8 stays, the rest becomes \xNN, \n, \t, \r, \\. */
void xf_buf_put_escaped(struct xf_buf *b, struct xf_str s);
/** Percent-encode all but A-Z a-z 0-9 - . _ ~ and, when keep_slash, '/'. Upper-case hex. */
void xf_buf_put_percent(struct xf_buf *b, struct xf_str s, bool keep_slash);
/** Decode %XX; plus_is_space as in form encoding. False on a bad escape. */
bool xf_buf_put_unpercent(struct xf_buf *b, struct xf_str s, bool plus_is_space);
void xf_buf_put_base64(struct xf_buf *b, const void *p, size_t len);
/** Strict base64 with padding. False on anything else. */
bool xf_buf_put_unbase64(struct xf_buf *b, struct xf_str s);
/** Two hex digits a byte, either case; false when odd or not hex. `out` has s.len / 2 bytes. */
bool xf_hex_decode(struct xf_str s, void *out);

#endif
