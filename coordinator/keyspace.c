/* keyspace.c - keys as numbers whose digits are ranks of characters. */
#include "coordinator/keyspace.h"

#include "common/base/mem.h"

enum {
    CHARS_MAX = 1024, /* of one place */
    GUESS_KEYS = 400  /* seen at a place before its guesses count for less */
};
static const double guess_weight = 1.0 / 32; /* of a character that has come */
static const double least = 1e-13;           /* of the whole: below it doubles tell nothing apart */

/* The last code point that is a character: no key is expected behind it. */
static const char last_char[] = "\xF4\x8F\xBF\xBD";

void xf_keyspace_init(struct xf_keyspace *k, size_t fixed)
{
    *k = (struct xf_keyspace){.fixed = fixed};
}

void xf_keyspace_fini(struct xf_keyspace *k)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(k->at); i++) {
        xf_xfree(k->at[i].chars);
    }
    *k = (struct xf_keyspace){0};
}

static size_t place_no(const struct xf_keyspace *k, size_t at)
{
    size_t no = at > k->fixed ? at - k->fixed : 0;

    return no < XF_KEYSPACE_PLACES ? no : XF_KEYSPACE_PLACES;
}

size_t xf_keyspace_border(struct xf_str key, size_t at)
{
    at = at < key.len ? at : key.len;
    while (at > 0 && at < key.len && ((unsigned char)key.ptr[at] & 0xC0U) == 0x80U) {
        at--;
    }
    return at;
}

size_t xf_keyspace_common(struct xf_str a, struct xf_str b)
{
    size_t n = 0;

    while (n < a.len && n < b.len && a.ptr[n] == b.ptr[n]) {
        n++;
    }
    return xf_keyspace_border(a.len > n ? a : b, n);
}

/* The code point at *at, which moves behind it; the string is UTF-8. */
static uint32_t next_char(struct xf_str s, size_t *at)
{
    unsigned char c = (unsigned char)s.ptr[*at];
    size_t len = c < 0x80U ? 1 : c < 0xE0U ? 2 : c < 0xF0U ? 3 : 4;
    uint32_t cp = c & (len == 1 ? 0x7FU : 0xFFU >> (len + 1));

    for (size_t i = 1; i < len && *at + i < s.len; i++) {
        cp = cp << 6 | ((unsigned char)s.ptr[*at + i] & 0x3FU);
    }
    *at += len;
    return cp;
}

static void put_char(struct xf_buf *out, uint32_t cp)
{
    if (cp < 0x80U) {
        xf_buf_put_byte(out, (char)cp);
    } else if (cp < 0x800U) {
        xf_buf_put_byte(out, (char)(0xC0U | cp >> 6));
        xf_buf_put_byte(out, (char)(0x80U | (cp & 0x3FU)));
    } else if (cp < 0x10000U) {
        xf_buf_put_byte(out, (char)(0xE0U | cp >> 12));
        xf_buf_put_byte(out, (char)(0x80U | (cp >> 6 & 0x3FU)));
        xf_buf_put_byte(out, (char)(0x80U | (cp & 0x3FU)));
    } else {
        xf_buf_put_byte(out, (char)(0xF0U | cp >> 18));
        xf_buf_put_byte(out, (char)(0x80U | (cp >> 12 & 0x3FU)));
        xf_buf_put_byte(out, (char)(0x80U | (cp >> 6 & 0x3FU)));
        xf_buf_put_byte(out, (char)(0x80U | (cp & 0x3FU)));
    }
}

/* Characters that are lower. */
static size_t rank_of(const struct xf_keyspace_set *set, uint32_t cp)
{
    size_t lo = 0;
    size_t hi = set->n;

    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        if (set->chars[mid].cp < cp) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

static bool has(const struct xf_keyspace_set *set, size_t rank, uint32_t cp)
{
    return rank < set->n && set->chars[rank].cp == cp;
}

static void add(struct xf_keyspace_set *set, uint32_t cp, bool is_guess)
{
    size_t rank = rank_of(set, cp);

    if (has(set, rank, cp)) {
        set->chars[rank].is_guess = set->chars[rank].is_guess && is_guess;
        return;
    }
    if (set->n == CHARS_MAX) {
        return;
    }
    if (set->n == set->cap) {
        set->cap = set->cap == 0 ? 16 : set->cap * 2;
        set->chars = xf_xrealloc(set->chars, set->cap, sizeof(*set->chars));
    }
    memmove(&set->chars[rank + 1], &set->chars[rank], (set->n - rank) * sizeof(*set->chars));
    set->chars[rank] = (struct xf_keyspace_char){cp, is_guess};
    set->n++;
}

static void guess_all(struct xf_keyspace_set *set, char from, char to)
{
    for (char c = from; c <= to; c++) {
        add(set, (uint32_t)c, true);
    }
}

static double weight(const struct xf_keyspace_set *set, size_t rank)
{
    bool is_light = set->chars[rank].is_guess && set->n_keys >= GUESS_KEYS;

    return is_light ? guess_weight : 1.0;
}

/* Weight of the first `n` characters. */
static double sum_of(const struct xf_keyspace_set *set, size_t n)
{
    double sum = 0.0;

    for (size_t i = 0; i < n; i++) {
        sum += weight(set, i);
    }
    return sum;
}

/* Characters of the set between two. */
static size_t count(const struct xf_keyspace_set *set, char from, char to)
{
    return rank_of(set, (uint32_t)to + 1) - rank_of(set, (uint32_t)from);
}

/* With a digit any digit may come, with two letters any letter (of a to f where digits are). */
static void learn_char(struct xf_keyspace_set *set, uint32_t cp)
{
    add(set, cp, false);
    if (cp >= '0' && cp <= '9') {
        guess_all(set, '0', '9');
    } else if (cp >= 'a' && cp <= 'f' && count(set, '0', '9') > 0) {
        guess_all(set, 'a', 'f');
    } else if (cp >= 'a' && cp <= 'z' && count(set, 'a', 'z') > 1) {
        guess_all(set, 'a', 'z');
    } else if (cp >= 'A' && cp <= 'Z' && count(set, 'A', 'Z') > 1) {
        guess_all(set, 'A', 'Z');
    }
}

void xf_keyspace_learn(struct xf_keyspace *k, struct xf_str key)
{
    if (!xf_str_is_utf8(key)) {
        return;
    }
    for (size_t at = xf_keyspace_border(key, k->fixed); at < key.len;) {
        struct xf_keyspace_set *set = &k->at[place_no(k, at)];
        uint32_t cp = next_char(key, &at);
        size_t rank = rank_of(set, cp);
        if (!has(set, rank, cp) || set->chars[rank].is_guess) {
            learn_char(set, cp);
        }
        set->n_keys++;
    }
}

double xf_keyspace_place(const struct xf_keyspace *k, struct xf_str key, size_t from)
{
    double unit = 1.0;
    double sum = 0.0;

    for (size_t at = from; at < key.len && unit > least;) {
        const struct xf_keyspace_set *set = &k->at[place_no(k, at)];
        uint32_t cp = next_char(key, &at);
        size_t rank = rank_of(set, cp);
        if (set->n == 0) {
            break;
        }
        double all = sum_of(set, set->n);
        sum += unit * sum_of(set, rank) / all;
        if (!has(set, rank, cp)) {
            break; /* between two that are known, or behind all */
        }
        unit *= weight(set, rank) / all;
    }
    return sum;
}

size_t xf_keyspace_choice(const struct xf_keyspace *k, struct xf_str key, size_t at)
{
    while (at < key.len && k->at[place_no(k, at)].n < 2) {
        (void)next_char(key, &at); /* no other character was seen here */
    }
    return at < key.len ? at : key.len;
}

void xf_keyspace_behind(struct xf_str key, size_t len, struct xf_buf *out)
{
    xf_buf_reset(out);
    xf_buf_put(out, xf_str_sub(key, 0, len));
    xf_buf_put_c(out, last_char);
}

static bool is_between(struct xf_str p, struct xf_str lo, struct xf_str hi)
{
    return xf_str_cmp(p, lo) > 0 && (hi.len == 0 || xf_str_cmp(p, hi) < 0);
}

/* The character whose share of 0 to 1 *x lies in; *x becomes the place within that share. */
static size_t choose(const struct xf_keyspace_set *set, double *x)
{
    double left = *x * sum_of(set, set->n);
    size_t rank = 0;

    while (rank + 1 < set->n && left >= weight(set, rank)) {
        left -= weight(set, rank);
        rank++;
    }
    *x = left > 0.0 ? left / weight(set, rank) : 0.0;
    *x = *x < 1.0 ? *x : 1.0;
    return rank;
}

bool xf_keyspace_between(const struct xf_keyspace *k,
                         struct xf_str lo,
                         struct xf_str hi,
                         double share,
                         struct xf_buf *out)
{
    size_t common = hi.len > 0 ? xf_keyspace_common(lo, hi) : k->fixed;
    bool is_found = false;

    if (!xf_str_is_utf8(lo) || !xf_str_is_utf8(hi) || lo.len < k->fixed) {
        return false;
    }
    double from = xf_keyspace_place(k, lo, common);
    double to = hi.len > 0 ? xf_keyspace_place(k, hi, common) : 1.0;
    double x = from + (to - from) * share;

    xf_buf_reset(out);
    xf_buf_put(out, xf_str_sub(lo, 0, common));
    while (out->len < XF_KEYSPACE_POINT_MAX) {
        const struct xf_keyspace_set *set = &k->at[place_no(k, out->len)];
        if (set->n == 0) {
            break;
        }
        put_char(out, set->chars[choose(set, &x)].cp);
        if (is_found && set->n > 1) {
            break; /* one choice more than it takes, so that it lies about where it should */
        }
        is_found = is_between(xf_buf_view(out), lo, hi);
    }
    return is_between(xf_buf_view(out), lo, hi);
}
