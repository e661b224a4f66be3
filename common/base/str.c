/* str.c - views and buffers of bytes. */
#include "common/base/str.h"

#include "common/base/err.h"
#include "common/base/mem.h"

#include <stdarg.h>
#include <stdio.h>

bool xf_str_eq(struct xf_str a, struct xf_str b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

bool xf_str_eq_c(struct xf_str a, const char *b)
{
    return xf_str_eq(a, xf_str_c(b));
}

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

bool xf_str_eq_nocase(struct xf_str a, struct xf_str b)
{
    if (a.len != b.len) {
        return false;
    }
    for (size_t i = 0; i < a.len; i++) {
        if (lower(a.ptr[i]) != lower(b.ptr[i])) {
            return false;
        }
    }
    return true;
}

int xf_str_cmp(struct xf_str a, struct xf_str b)
{
    size_t n = a.len < b.len ? a.len : b.len;
    int d = n == 0 ? 0 : memcmp(a.ptr, b.ptr, n);

    if (d != 0) {
        return d;
    }
    return a.len < b.len ? -1 : a.len > b.len;
}

bool xf_str_starts(struct xf_str s, struct xf_str prefix)
{
    return s.len >= prefix.len && (prefix.len == 0 || memcmp(s.ptr, prefix.ptr, prefix.len) == 0);
}

bool xf_str_ends(struct xf_str s, struct xf_str suffix)
{
    return s.len >= suffix.len &&
           (suffix.len == 0 || memcmp(s.ptr + (s.len - suffix.len), suffix.ptr, suffix.len) == 0);
}

size_t xf_str_find(struct xf_str s, char c, size_t from)
{
    if (from >= s.len) {
        return SIZE_MAX;
    }
    const char *p = memchr(s.ptr + from, c, s.len - from);
    return p == NULL ? SIZE_MAX : (size_t)(p - s.ptr);
}

struct xf_str xf_str_sub(struct xf_str s, size_t from, size_t to)
{
    if (to > s.len) {
        to = s.len;
    }
    if (from >= to) {
        return XF_STR_EMPTY;
    }
    return (struct xf_str){s.ptr + from, to - from};
}

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct xf_str xf_str_trim(struct xf_str s)
{
    while (s.len > 0 && blank(s.ptr[0])) {
        s.ptr++;
        s.len--;
    }
    while (s.len > 0 && blank(s.ptr[s.len - 1])) {
        s.len--;
    }
    return s;
}

bool xf_str_cut(struct xf_str *rest, char sep, struct xf_str *head)
{
    if (rest->len == 0) {
        return false;
    }
    size_t at = xf_str_find(*rest, sep, 0);
    if (at == SIZE_MAX) {
        *head = *rest;
        *rest = XF_STR_EMPTY;
        return true;
    }
    *head = xf_str_sub(*rest, 0, at);
    *rest = xf_str_sub(*rest, at + 1, rest->len);
    return true;
}

char *xf_str_dup(struct xf_str s)
{
    return xf_xmemdup0(s.ptr, s.len);
}

bool xf_str_u64(struct xf_str s, uint64_t *out)
{
    uint64_t v = 0;

    if (s.len == 0) {
        return false;
    }
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9') {
            return false;
        }
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(s.ptr[i] - '0'), &v)) {
            return false;
        }
    }
    *out = v;
    return true;
}

bool xf_str_i64(struct xf_str s, int64_t *out)
{
    bool neg = s.len > 0 && s.ptr[0] == '-';
    uint64_t v;

    if (!xf_str_u64(neg ? xf_str_sub(s, 1, s.len) : s, &v)) {
        return false;
    }
    if (v > (uint64_t)INT64_MAX + (neg ? 1U : 0U)) {
        return false;
    }
    *out = neg ? (int64_t)(0 - v) : (int64_t)v;
    return true;
}

/* Lead bytes of UTF-8 with the length and the bounds of the second byte (Unicode 15, table 3-7). */
static const struct utf8_row {
    unsigned char first;
    unsigned char last;
    unsigned char len;
    unsigned char second_lo;
    unsigned char second_hi;
} utf8_rows[] = {
    {0x00, 0x7f, 1, 0x00, 0x00},
    {0xc2, 0xdf, 2, 0x80, 0xbf},
    {0xe0, 0xe0, 3, 0xa0, 0xbf},
    {0xe1, 0xec, 3, 0x80, 0xbf},
    {0xed, 0xed, 3, 0x80, 0x9f}, /* no surrogates */
    {0xee, 0xef, 3, 0x80, 0xbf},
    {0xf0, 0xf0, 4, 0x90, 0xbf},
    {0xf1, 0xf3, 4, 0x80, 0xbf},
    {0xf4, 0xf4, 4, 0x80, 0x8f}, /* at most U+10FFFF */
};

/* Length of the well-formed sequence at s[i], 0 when ill-formed. */
static size_t utf8_len(struct xf_str s, size_t i)
{
    unsigned char c = (unsigned char)s.ptr[i];
    const struct utf8_row *row = utf8_rows;
    while (row < utf8_rows + XF_ARRAY_LEN(utf8_rows) && c > row->last) {
        row++;
    }
    if (row == utf8_rows + XF_ARRAY_LEN(utf8_rows) || c < row->first || row->len > s.len - i) {
        return 0;
    }
    for (size_t k = 1; k < row->len; k++) {
        unsigned char d = (unsigned char)s.ptr[i + k];
        if (d < (k == 1 ? row->second_lo : 0x80) || d > (k == 1 ? row->second_hi : 0xbf)) {
            return 0;
        }
    }
    return row->len;
}

bool xf_str_is_utf8(struct xf_str s)
{
    for (size_t i = 0; i < s.len;) {
        size_t n = utf8_len(s, i);
        if (n == 0) {
            return false;
        }
        i += n;
    }
    return true;
}

uint64_t xf_str_hash(struct xf_str s, uint64_t seed)
{
    /* A seeded 64-bit multiply-and-fold over 8-byte words; the seed keeps peers from choosing
     * colliding keys. */
    const uint64_t m = 0x9e3779b97f4a7c15ULL;
    uint64_t h = seed ^ (s.len * m);

    while (s.len >= 8) {
        uint64_t w;
        memcpy(&w, s.ptr, 8);
        h = (h ^ w) * m;
        h ^= h >> 29;
        s.ptr += 8;
        s.len -= 8;
    }
    uint64_t w = 0;
    if (s.len > 0) {
        memcpy(&w, s.ptr, s.len);
    }
    h = (h ^ w) * m;
    h ^= h >> 32;
    h *= 0xd6e8feb86659fd93ULL;
    return h ^ (h >> 29);
}

void xf_buf_init(struct xf_buf *b, size_t max)
{
    memset(b, 0, sizeof(*b));
    b->max = max == 0 ? XF_BUF_MAX_DEFAULT : max;
}

void xf_buf_fini(struct xf_buf *b)
{
    xf_xfree(b->ptr);
    size_t max = b->max;
    memset(b, 0, sizeof(*b));
    b->max = max;
}

void xf_buf_reset(struct xf_buf *b)
{
    b->len = 0;
    b->full = false;
    if (b->ptr != NULL) {
        b->ptr[0] = '\0';
    }
}

char *xf_buf_reserve(struct xf_buf *b, size_t n)
{
    size_t max = b->max == 0 ? XF_BUF_MAX_DEFAULT : b->max;

    if (b->full || n > max || b->len > max - n) {
        b->full = true;
        return NULL;
    }
    if (b->len + n + 1 > b->cap || b->ptr == NULL) {
        size_t cap = b->cap < 64 ? 64 : b->cap;
        while (cap < b->len + n + 1) {
            cap = xf_mul_size(cap, 2);
        }
        b->ptr = xf_xrealloc(b->ptr, cap, 1);
        b->cap = cap;
    }
    return b->ptr + b->len;
}

void xf_buf_put_mem(struct xf_buf *b, const void *p, size_t len)
{
    char *to = xf_buf_reserve(b, len);

    if (to == NULL) {
        return;
    }
    if (len > 0) {
        memcpy(to, p, len);
    }
    b->len += len;
    b->ptr[b->len] = '\0';
}

void xf_buf_put(struct xf_buf *b, struct xf_str s)
{
    xf_buf_put_mem(b, s.ptr, s.len);
}

void xf_buf_put_c(struct xf_buf *b, const char *c)
{
    xf_buf_put_mem(b, c, strlen(c));
}

void xf_buf_put_byte(struct xf_buf *b, char c)
{
    size_t max = b->max == 0 ? XF_BUF_MAX_DEFAULT : b->max;

    if (!b->full && b->len < max && b->len + 2 <= b->cap) {
        b->ptr[b->len++] = c;
        b->ptr[b->len] = '\0';
        return;
    }
    xf_buf_put_mem(b, &c, 1);
}

void xf_buf_put_u64(struct xf_buf *b, uint64_t v)
{
    char digits[20];
    size_t n = sizeof(digits);

    do {
        digits[--n] = (char)('0' + v % 10);
        v /= 10;
    } while (v != 0);
    xf_buf_put_mem(b, digits + n, sizeof(digits) - n);
}

void xf_buf_put_hex(struct xf_buf *b, const void *p, size_t len)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *in = p;
    char *to = xf_buf_reserve(b, xf_mul_size(len, 2));

    if (to == NULL) {
        return;
    }
    for (size_t i = 0; i < len; i++) {
        *to++ = hex[in[i] >> 4];
        *to++ = hex[in[i] & 15];
    }
    b->len += len * 2;
    b->ptr[b->len] = '\0';
}

void xf_buf_putf(struct xf_buf *b, const char *fmt, ...)
{
    va_list ap;
    va_list again;

    va_start(ap, fmt);
    va_copy(again, ap);
    int n = vsnprintf(NULL, 0, fmt, ap);
    va_end(ap);
    char *to = n < 0 ? NULL : xf_buf_reserve(b, (size_t)n);
    if (to != NULL) {
        (void)vsnprintf(to, (size_t)n + 1, fmt, again); /* the size was just measured */
        b->len += (size_t)n;
    }
    va_end(again);
}

void xf_buf_consume(struct xf_buf *b, size_t n)
{
    XF_ASSERT(n <= b->len);
    if (n == 0) {
        return;
    }
    memmove(b->ptr, b->ptr + n, b->len - n);
    b->len -= n;
    b->ptr[b->len] = '\0';
}

struct xf_str xf_buf_view(const struct xf_buf *b)
{
    return (struct xf_str){b->ptr != NULL ? b->ptr : "", b->len};
}

char *xf_buf_take(struct xf_buf *b)
{
    char *p = b->ptr != NULL ? b->ptr : xf_xstrdup("");

    b->ptr = NULL;
    b->len = 0;
    b->cap = 0;
    b->full = false;
    return p;
}

static void put_escaped_byte(struct xf_buf *b, unsigned char c)
{
    switch (c) {
    case '\n': xf_buf_put_c(b, "\\n"); break;
    case '\r': xf_buf_put_c(b, "\\r"); break;
    case '\t': xf_buf_put_c(b, "\\t"); break;
    case '\\': xf_buf_put_c(b, "\\\\"); break;
    default: xf_buf_putf(b, "\\x%02x", c); break;
    }
}

/* C1 controls, bidirectional overrides, isolates and the BOM may not reach a terminal as they
 * are. */
static bool unsafe_rune(struct xf_str s, size_t i, size_t n)
{
    const unsigned char *p = (const unsigned char *)s.ptr + i;

    if (n == 2) {
        return p[0] == 0xc2 && p[1] < 0xa0;
    }
    if (n == 3) {
        return (p[0] == 0xe2 && p[1] == 0x80 && (p[2] >= 0x8b && p[2] <= 0x8f)) ||
               (p[0] == 0xe2 && p[1] == 0x80 && (p[2] >= 0xa8 && p[2] <= 0xae)) ||
               (p[0] == 0xe2 && p[1] == 0x81 && (p[2] >= 0xa0 && p[2] <= 0xaf)) ||
               (p[0] == 0xef && p[1] == 0xbb && p[2] == 0xbf);
    }
    return false;
}

void xf_buf_put_escaped(struct xf_buf *b, struct xf_str s)
{
    for (size_t i = 0; i < s.len;) {
        unsigned char c = (unsigned char)s.ptr[i];
        size_t n = utf8_len(s, i);
        if (n == 1 && c >= 0x20 && c != 0x7f && c != '\\') {
            xf_buf_put_byte(b, (char)c);
            i++;
        } else if (n > 1 && !unsafe_rune(s, i, n)) {
            xf_buf_put_mem(b, s.ptr + i, n);
            i += n;
        } else {
            size_t stop = i + (n == 0 ? 1 : n);
            for (; i < stop; i++) {
                put_escaped_byte(b, (unsigned char)s.ptr[i]);
            }
        }
    }
}

static bool unreserved(unsigned char c)
{
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_' || c == '~';
}

void xf_buf_put_percent(struct xf_buf *b, struct xf_str s, bool keep_slash)
{
    static const char hex[] = "0123456789ABCDEF";

    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (unreserved(c) || (keep_slash && c == '/')) {
            xf_buf_put_byte(b, (char)c);
        } else {
            const char esc[3] = {'%', hex[c >> 4], hex[c & 15]};
            xf_buf_put_mem(b, esc, 3);
        }
    }
}

/* Value + 1 of a hex digit; 0: none. A table, since etags of a billion objects come through here.
 */
static const unsigned char hex_digit[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
    ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static int hex_value(char c)
{
    return (int)hex_digit[(unsigned char)c] - 1;
}

bool xf_buf_put_unpercent(struct xf_buf *b, struct xf_str s, bool plus_is_space)
{
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '+' && plus_is_space) {
            xf_buf_put_byte(b, ' ');
        } else if (c == '%') {
            if (i + 2 >= s.len) {
                return false;
            }
            int hi = hex_value(s.ptr[i + 1]);
            int lo = hex_value(s.ptr[i + 2]);
            if (hi < 0 || lo < 0) {
                return false;
            }
            xf_buf_put_byte(b, (char)(hi * 16 + lo));
            i += 2;
        } else {
            xf_buf_put_byte(b, c);
        }
    }
    return true;
}

void xf_buf_put_base64(struct xf_buf *b, const void *p, size_t len)
{
    static const char tab[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const unsigned char *in = p;

    for (size_t i = 0; i < len; i += 3) {
        unsigned v = (unsigned)in[i] << 16;
        v |= i + 1 < len ? (unsigned)in[i + 1] << 8 : 0;
        v |= i + 2 < len ? (unsigned)in[i + 2] : 0;
        const char out[4] = {tab[v >> 18],
                             tab[(v >> 12) & 63],
                             i + 1 < len ? tab[(v >> 6) & 63] : '=',
                             i + 2 < len ? tab[v & 63] : '='};
        xf_buf_put_mem(b, out, 4);
    }
}

static int base64_value(char c)
{
    if (c >= 'A' && c <= 'Z') {
        return c - 'A';
    }
    if (c >= 'a' && c <= 'z') {
        return c - 'a' + 26;
    }
    if (c >= '0' && c <= '9') {
        return c - '0' + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

bool xf_buf_put_unbase64(struct xf_buf *b, struct xf_str s)
{
    if (s.len % 4 != 0) {
        return false;
    }
    for (size_t i = 0; i < s.len; i += 4) {
        bool last = i + 4 == s.len;
        size_t pad = !last ? 0 : (s.ptr[i + 3] == '=') ? ((s.ptr[i + 2] == '=') ? 2U : 1U) : 0;
        unsigned v = 0;
        for (size_t k = 0; k < 4; k++) {
            int d = k >= 4 - pad ? 0 : base64_value(s.ptr[i + k]);
            if (d < 0) {
                return false;
            }
            v = v << 6 | (unsigned)d;
        }
        const char out[3] = {(char)(v >> 16 & 255), (char)(v >> 8 & 255), (char)(v & 255)};
        xf_buf_put_mem(b, out, 3 - pad);
    }
    return true;
}

bool xf_hex_decode(struct xf_str s, void *out)
{
    unsigned char *to = out;

    if (s.len % 2 != 0) {
        return false;
    }
    for (size_t i = 0; i < s.len; i += 2) {
        int hi = hex_value(s.ptr[i]);
        int lo = hex_value(s.ptr[i + 1]);
        if (hi < 0 || lo < 0) {
            return false;
        }
        *to++ = (unsigned char)(hi * 16 + lo);
    }
    return true;
}
