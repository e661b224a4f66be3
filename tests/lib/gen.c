/*
 * gen.c - generators; the same rng state gives the same input.
 */
#include "tests/lib/gen.h"

#include "common/base/err.h"
#include "common/base/mem.h"

static const char *const odd_pieces[] = {
    "/",  "//", ".",  "..",   "../", "./",   " ",  "+",        "%",           "%2F",
    "%a", "&",  "<",  ">",    "\"",  "'",    "\t", "\n",       "\r",          "\x01",
    "\\", "?",  "#",  "=",    "~",   "*",    ":",  "\xc3\xa9", "e\xcc\x81",   "\xf0\x9f\x98\x80",
    "|",  "[",  "]]", "\x7f", "{",   "\x1f", ";",  "$",        "\xef\xbf\xbd"};

void xf_gen_bytes(struct xf_rng *r, struct xf_buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        xf_buf_put_byte(out, (char)(unsigned char)xf_rng_below(r, 256));
    }
}

void xf_gen_key(struct xf_rng *r, struct xf_buf *out, size_t max_len)
{
    XF_ASSERT(max_len > 0);
    size_t want = (size_t)xf_gen_between(r, 1, max_len);
    size_t start = out->len;
    while (out->len - start < want) {
        size_t room = want - (out->len - start);
        struct xf_str piece = xf_str_c(odd_pieces[xf_rng_below(r, XF_ARRAY_LEN(odd_pieces))]);
        if (piece.len <= room && xf_rng_below(r, 4) == 0) {
            xf_buf_put(out, piece);
        } else {
            xf_buf_put_byte(out, (char)('a' + (int)xf_rng_below(r, 26)));
        }
    }
}

uint64_t xf_gen_between(struct xf_rng *r, uint64_t lo, uint64_t hi)
{
    XF_ASSERT(lo <= hi);
    uint64_t span = hi - lo;
    uint64_t near = xf_rng_below(r, 2);
    uint64_t v = 0;
    switch (xf_rng_below(r, 6)) {
    case 0: v = near; break;
    case 1: v = span - (near < span ? near : span); break;
    case 2: v = (UINT64_C(1) << xf_rng_below(r, 63)) - near; break;
    default: v = span == UINT64_MAX ? xf_rng_u64(r) : xf_rng_below(r, span + 1); break;
    }
    return v <= span ? lo + v : lo + v % (span + 1);
}
