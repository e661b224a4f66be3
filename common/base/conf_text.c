/*
 * conf_text.c - sizes, rates and durations as people write them, and the nearest known word.
 *
 * Numbers with units are exact or refused: "1.5KiB" is 1536 bytes, "0.1B" is nothing.
 */
#include "common/base/conf.h"
#include "common/base/mem.h"

#include <stdint.h>

struct unit {
    const char *name;
    uint64_t times;
    uint64_t per; /* divides after the multiplication */
};

#define KIB 1024ULL

/* Printing takes the first unit that divides the value, so order matters. */
static const struct unit size_units[] = {
    {"PiB", KIB *KIB *KIB *KIB *KIB, 1},
    {"TiB", KIB *KIB *KIB *KIB, 1},
    {"GiB", KIB *KIB *KIB, 1},
    {"MiB", KIB *KIB, 1},
    {"KiB", KIB, 1},
    {"PB", 1000000000000000ULL, 1},
    {"TB", 1000000000000ULL, 1},
    {"GB", 1000000000ULL, 1},
    {"MB", 1000000ULL, 1},
    {"kB", 1000ULL, 1},
    {"B", 1, 1},
};

static const struct unit bit_units[] = {
    {"Tbit/s", 125000000000ULL, 1},
    {"Gbit/s", 125000000ULL, 1},
    {"Mbit/s", 125000ULL, 1},
    {"kbit/s", 125ULL, 1},
    {"bit/s", 1, 8},
};

/* Weeks are read, not printed. */
static const struct unit time_units[] = {
    {"d", 86400000ULL, 1},
    {"h", 3600000ULL, 1},
    {"m", 60000ULL, 1},
    {"s", 1000ULL, 1},
    {"ms", 1, 1},
    {"w", 7 * 86400000ULL, 1},
};

/* A decimal number at the start of a text. */
struct number {
    uint64_t whole;
    uint64_t frac;  /* the decimals as an integer */
    uint64_t scale; /* 10 to the power of their count */
};

/* Cut a number off the front of *s: digits and at most three decimals. */
static bool cut_number(struct xf_str *s, struct number *n)
{
    size_t i = 0;
    *n = (struct number){0, 0, 1};
    for (; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++) {
        uint64_t d = (uint64_t)(s->ptr[i] - '0');
        if (n->whole > (uint64_t)INT64_MAX / 10) {
            return false;
        }
        n->whole = n->whole * 10 + d;
    }
    if (i == 0 || (i > 1 && s->ptr[0] == '0')) {
        return false;
    }
    if (i < s->len && s->ptr[i] == '.') {
        for (i++; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++) {
            n->frac = n->frac * 10 + (uint64_t)(s->ptr[i] - '0');
            n->scale *= 10;
            if (n->scale > 1000) {
                return false;
            }
        }
        if (n->scale == 1) {
            return false;
        }
    }
    *s = xf_str_sub(*s, i, s->len);
    return true;
}

static bool scale(const struct number *n, const struct unit *u, uint64_t *out)
{
    uint64_t whole = 0;
    uint64_t frac = n->frac * u->times; /* below 1000 * 2^50 */
    if (__builtin_mul_overflow(n->whole, u->times, &whole) || frac % n->scale != 0) {
        return false;
    }
    if (__builtin_add_overflow(whole, frac / n->scale, &whole) || whole % u->per != 0) {
        return false;
    }
    *out = whole / u->per;
    return *out <= (uint64_t)INT64_MAX;
}

/* `tail` follows the unit's name ("/s"). */
static bool parse_unit(
    struct xf_str s, const struct unit *units, size_t n_units, const char *tail, uint64_t *out)
{
    struct number n;
    if (!cut_number(&s, &n) || !xf_str_ends(s, xf_str_c(tail))) {
        return false;
    }
    s.len -= strlen(tail);
    for (size_t i = 0; i < n_units; i++) {
        if (xf_str_eq_c(s, units[i].name)) {
            return scale(&n, &units[i], out);
        }
    }
    return false;
}

bool xf_conf_parse_size(struct xf_str s, uint64_t *bytes)
{
    return parse_unit(s, size_units, XF_ARRAY_LEN(size_units), "", bytes);
}

bool xf_conf_parse_rate(struct xf_str s, uint64_t *bytes_s)
{
    return parse_unit(s, bit_units, XF_ARRAY_LEN(bit_units), "", bytes_s) ||
           parse_unit(s, size_units, XF_ARRAY_LEN(size_units), "/s", bytes_s);
}

bool xf_conf_parse_duration(struct xf_str s, int64_t *ms)
{
    uint64_t n = 0;
    if (!parse_unit(s, time_units, XF_ARRAY_LEN(time_units), "", &n)) {
        return false;
    }
    *ms = (int64_t)n;
    return true;
}

/* False when no unit divides the value. */
static bool put_unit(struct xf_buf *out, uint64_t v, const struct unit *units, size_t n_units)
{
    for (size_t i = 0; i < n_units; i++) {
        if (v > 0 && v % units[i].times == 0 && units[i].per == 1) {
            xf_buf_put_u64(out, v / units[i].times);
            xf_buf_put_c(out, units[i].name);
            return true;
        }
    }
    return false;
}

void xf_conf_put_size(struct xf_buf *out, uint64_t bytes)
{
    if (!put_unit(out, bytes, size_units, XF_ARRAY_LEN(size_units))) {
        xf_buf_put_c(out, "0B");
    }
}

void xf_conf_put_rate(struct xf_buf *out, uint64_t bytes_s)
{
    if (!put_unit(out, bytes_s, bit_units, XF_ARRAY_LEN(bit_units))) {
        xf_conf_put_size(out, bytes_s);
        xf_buf_put_c(out, "/s");
    }
}

void xf_conf_put_duration(struct xf_buf *out, int64_t ms)
{
    if (ms <= 0 || !put_unit(out, (uint64_t)ms, time_units, XF_ARRAY_LEN(time_units))) {
        xf_buf_put_c(out, "0s");
    }
}

void xf_conf_put_quoted(struct xf_buf *out, struct xf_str s)
{
    xf_buf_put_byte(out, '"');
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c == '"' || c == '\\') {
            xf_buf_put_byte(out, '\\');
            xf_buf_put_byte(out, (char)c);
        } else if (c < 0x20 || c == 0x7F) {
            xf_buf_putf(out, "\\u%04X", (unsigned)c);
        } else {
            xf_buf_put_byte(out, (char)c);
        }
    }
    xf_buf_put_byte(out, '"');
}

/* ---- the nearest word ---------------------------------------------------------------------------
 */

enum { WORD_MAX = 40 };

static size_t min3(size_t a, size_t b, size_t c)
{
    size_t m = a < b ? a : b;
    return m < c ? m : c;
}

/* Edits (insert, delete, replace, swap of neighbours) from one word to another; both up to
 * WORD_MAX. */
static size_t distance(struct xf_str a, struct xf_str b)
{
    size_t d[WORD_MAX + 1][WORD_MAX + 1];
    for (size_t i = 0; i <= a.len; i++) {
        d[i][0] = i;
    }
    for (size_t j = 0; j <= b.len; j++) {
        d[0][j] = j;
    }
    for (size_t i = 1; i <= a.len; i++) {
        for (size_t j = 1; j <= b.len; j++) {
            size_t differs = a.ptr[i - 1] == b.ptr[j - 1] ? 0 : 1;
            d[i][j] = min3(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + differs);
            if (i > 1 && j > 1 && a.ptr[i - 1] == b.ptr[j - 2] && a.ptr[i - 2] == b.ptr[j - 1] &&
                d[i - 2][j - 2] + 1 < d[i][j]) {
                d[i][j] = d[i - 2][j - 2] + 1;
            }
        }
    }
    return d[a.len][b.len];
}

const char *xf_conf_nearest(struct xf_str typed, const char *const *words)
{
    const char *best = NULL;
    size_t best_distance = typed.len < 4 ? 2 : typed.len / 3 + 2; /* one past what is near */
    if (typed.len == 0 || typed.len > WORD_MAX) {
        return NULL;
    }
    for (; *words != NULL; words++) {
        struct xf_str word = xf_str_c(*words);
        if (word.len > WORD_MAX) {
            continue;
        }
        size_t n = distance(typed, word);
        if (n < best_distance) {
            best_distance = n;
            best = *words;
        }
    }
    return best;
}
