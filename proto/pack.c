/*
 * pack.c - varints, strings and etags.
 *
 * An etag's first byte says its form: none, MD5, MD5 with a number of parts, or text.
 */
#include "proto/pack.h"

enum { ETAG_NONE, ETAG_MD5, ETAG_MD5_PARTS, ETAG_TEXT };
enum { MD5_LEN = 16, MD5_HEX = 32, VARINT_MAX = 10 };

void xf_pack_u64(struct xf_buf *b, uint64_t v)
{
    char bytes[VARINT_MAX];
    size_t n = 0;

    if (v < 0x80) {
        xf_buf_put_byte(b, (char)v);
        return;
    }
    while (v >= 0x80) {
        bytes[n++] = (char)(unsigned char)(v | 0x80);
        v >>= 7;
    }
    bytes[n++] = (char)v;
    xf_buf_put_mem(b, bytes, n);
}

void xf_pack_i64(struct xf_buf *b, int64_t v)
{
    uint64_t u = (uint64_t)v << 1;

    xf_pack_u64(b, v < 0 ? ~u : u);
}

void xf_pack_str(struct xf_buf *b, struct xf_str s)
{
    xf_pack_u64(b, s.len);
    xf_buf_put(b, s);
}

/* Of a lower-case digit; others 0xff. */
static unsigned char hex_value(char c)
{
    return c >= '0' && c <= '9'   ? (unsigned char)(c - '0')
           : c >= 'a' && c <= 'f' ? (unsigned char)(c - 'a' + 10)
                                  : 0xff;
}

/* The first 32 bytes of `text`; false when one is no lower-case digit. */
static bool get_md5(const char *text, unsigned char md5[MD5_LEN])
{
    unsigned bad = 0;

    for (size_t i = 0; i < MD5_LEN; i++) {
        unsigned high = hex_value(text[2 * i]);
        unsigned low = hex_value(text[2 * i + 1]);
        bad |= high | low;
        md5[i] = (unsigned char)(high << 4 | (low & 15));
    }
    return bad < 16;
}

/* "<32 hex digits>" or "<32 hex digits>-<decimal without leading zero>". */
static int etag_form(struct xf_str etag, unsigned char md5[MD5_LEN], uint64_t *parts)
{
    if (etag.len == 0) {
        return ETAG_NONE;
    }
    if (etag.len < MD5_HEX || !get_md5(etag.ptr, md5)) {
        return ETAG_TEXT;
    }
    if (etag.len == MD5_HEX) {
        return ETAG_MD5;
    }
    struct xf_str tail = xf_str_sub(etag, MD5_HEX + 1, etag.len);
    if (etag.ptr[MD5_HEX] != '-' || tail.len == 0 || tail.len > 9 || tail.ptr[0] == '0' ||
        !xf_str_u64(tail, parts)) {
        return ETAG_TEXT;
    }
    return ETAG_MD5_PARTS;
}

void xf_pack_etag(struct xf_buf *b, struct xf_str etag)
{
    unsigned char md5[MD5_LEN];
    uint64_t parts = 0;
    int form = etag_form(etag, md5, &parts);

    xf_buf_put_byte(b, (char)form);
    if (form == ETAG_MD5 || form == ETAG_MD5_PARTS) {
        xf_buf_put_mem(b, md5, sizeof(md5));
    }
    if (form == ETAG_MD5_PARTS) {
        xf_pack_u64(b, parts);
    }
    if (form == ETAG_TEXT) {
        xf_pack_str(b, etag);
    }
}

void xf_unpack_init(struct xf_unpack *u, struct xf_str bytes)
{
    static const unsigned char none[1] = {0};

    u->at = bytes.len != 0 ? (const unsigned char *)bytes.ptr : none;
    u->end = u->at + bytes.len;
    u->bad = false;
}

uint8_t xf_unpack_byte(struct xf_unpack *u)
{
    if (u->bad || u->at == u->end) {
        u->bad = true;
        return 0;
    }
    return *u->at++;
}

static uint64_t unpack_varint(struct xf_unpack *u)
{
    uint64_t v = 0;

    if (!u->bad && u->at != u->end && *u->at < 0x80) {
        return *u->at++;
    }
    for (unsigned shift = 0; shift < 64; shift += 7) {
        uint8_t byte = xf_unpack_byte(u);
        uint64_t bits = byte & 0x7fU;

        if (shift == 63 && byte > 1) {
            break; /* more than 64 bits */
        }
        v |= bits << shift;
        if ((byte & 0x80) == 0) {
            u->bad = u->bad || (byte == 0 && shift != 0); /* not the shortest form */
            return u->bad ? 0 : v;
        }
    }
    u->bad = true;
    return 0;
}

uint64_t xf_unpack_u64(struct xf_unpack *u, uint64_t max)
{
    uint64_t v = unpack_varint(u);

    if (v > max) {
        u->bad = true;
        return 0;
    }
    return v;
}

int64_t xf_unpack_i64(struct xf_unpack *u)
{
    uint64_t v = unpack_varint(u);
    uint64_t half = v >> 1;

    return (v & 1) != 0 ? -(int64_t)half - 1 : (int64_t)half;
}

static const unsigned char *take(struct xf_unpack *u, size_t len)
{
    const unsigned char *p = u->at;

    if (u->bad || (size_t)(u->end - u->at) < len) {
        u->bad = true;
        return NULL;
    }
    u->at += len;
    return p;
}

struct xf_str xf_unpack_str(struct xf_unpack *u, size_t max)
{
    size_t len = (size_t)xf_unpack_u64(u, max);
    const unsigned char *p = take(u, len);

    return p != NULL ? xf_str_n(p, len) : XF_STR_EMPTY;
}

static struct xf_str md5_text(const unsigned char *md5, uint64_t parts, struct xf_arena *a)
{
    static const char digits[] = "0123456789abcdef";
    char text[MD5_HEX + 1 + 20];
    size_t n = 0;

    for (size_t i = 0; i < MD5_LEN; i++) {
        text[n++] = digits[md5[i] >> 4];
        text[n++] = digits[md5[i] & 15];
    }
    if (parts != 0) {
        char rev[20];
        size_t k = 0;

        for (uint64_t v = parts; v != 0; v /= 10) {
            rev[k++] = (char)('0' + (int)(v % 10));
        }
        text[n++] = '-';
        while (k > 0) {
            text[n++] = rev[--k];
        }
    }
    return xf_arena_dup(a, xf_str_n(text, n));
}

struct xf_str xf_unpack_etag(struct xf_unpack *u, struct xf_arena *a)
{
    uint8_t form = xf_unpack_byte(u);
    const unsigned char *md5;
    uint64_t parts = 0;

    if (form == ETAG_TEXT) {
        struct xf_str text = xf_unpack_str(u, XF_ETAG_MAX);

        return u->bad ? XF_STR_EMPTY : xf_arena_dup(a, text);
    }
    if (form != ETAG_MD5 && form != ETAG_MD5_PARTS) {
        u->bad = u->bad || form != ETAG_NONE;
        return XF_STR_EMPTY;
    }
    md5 = take(u, MD5_LEN);
    if (form == ETAG_MD5_PARTS) {
        parts = xf_unpack_u64(u, 999999999);
        u->bad = u->bad || parts == 0;
    }
    return md5 == NULL || u->bad ? XF_STR_EMPTY : md5_text(md5, parts, a);
}

bool xf_unpack_is_done(const struct xf_unpack *u)
{
    return !u->bad && u->at == u->end;
}
