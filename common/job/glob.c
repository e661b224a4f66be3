/*
 * glob.c - matching with one place to come back to: the last '*' seen.
 *
 * A later '*' makes the earlier ones settled (what stood between them matched at its first place),
 * so coming back to the last one is enough, and no pattern costs more than pattern x text.
 */
#include "common/job/glob.h"

#include <stdint.h>

/* One character at the front: its value and length. Bytes that are no UTF-8 stand for themselves.
 */
struct character {
    uint32_t value;
    size_t len;
};

static struct character first(struct xf_str s)
{
    unsigned char c = (unsigned char)s.ptr[0];
    size_t n = 1;
    if (c >= 0xF0) {
        n = 4;
    } else if (c >= 0xE0) {
        n = 3;
    } else if (c >= 0xC0) {
        n = 2;
    }
    if (n == 1 || n > s.len || !xf_str_is_utf8(xf_str_n(s.ptr, n))) {
        return (struct character){.value = c < 0x80 ? c : 0x110000U + c, .len = 1};
    }
    uint32_t v = c & (0xFFU >> (n + 1));
    for (size_t i = 1; i < n; i++) {
        v = (v << 6) | ((unsigned char)s.ptr[i] & 0x3FU);
    }
    return (struct character){.value = v, .len = n};
}

static struct xf_str after(struct xf_str s, size_t n)
{
    return xf_str_sub(s, n, s.len);
}

/* One character of a set, a backslash taken off; length 0 when the pattern ends in the middle. */
static struct character set_member(struct xf_str p)
{
    size_t skip = p.len > 0 && p.ptr[0] == '\\' ? 1 : 0;
    if (p.len <= skip) {
        return (struct character){0, 0};
    }
    struct character c = first(after(p, skip));
    c.len += skip;
    return c;
}

/* Reads the set at p ("[...]"): its length, 0 when it is not closed or a range runs backwards. */
static size_t read_set(struct xf_str p, uint32_t value, bool *matches)
{
    size_t at = 1;
    bool negated = p.len > 1 && p.ptr[1] == '!';
    bool found = false;
    at += negated ? 1U : 0U;
    for (bool is_first = true; at < p.len && (is_first || p.ptr[at] != ']'); is_first = false) {
        struct character lo = set_member(after(p, at));
        if (lo.len == 0) {
            return 0;
        }
        at += lo.len;
        struct character hi = lo;
        if (at + 1 < p.len && p.ptr[at] == '-' && p.ptr[at + 1] != ']') {
            hi = set_member(after(p, at + 1));
            if (hi.len == 0 || hi.value < lo.value) {
                return 0;
            }
            at += 1 + hi.len;
        }
        found = found || (value >= lo.value && value <= hi.value);
    }
    if (at >= p.len) {
        return 0;
    }
    *matches = found != negated;
    return at + 1;
}

const char *xf_glob_check(struct xf_str pattern)
{
    if (pattern.len == 0) {
        return "a pattern is not empty";
    }
    if (pattern.len > XF_GLOB_MAX) {
        return "a pattern has at most 1024 bytes";
    }
    while (pattern.len > 0) {
        size_t n = 1;
        bool ignored = false;
        if (pattern.ptr[0] == '\\') {
            n = 2;
            if (pattern.len == 1) {
                return "a pattern cannot end with '\\'";
            }
        } else if (pattern.ptr[0] == '[') {
            n = read_set(pattern, 0, &ignored);
            if (n == 0) {
                return "'[' needs its ']' and ranges that run upwards; write '\\[' for the "
                       "character";
            }
        }
        pattern = after(pattern, n);
    }
    return NULL;
}

/* Does the first element of *p (not '*') match the front of *t? Moves both on when it does. */
static bool step(struct xf_str *p, struct xf_str *t)
{
    struct character c = first(*t);
    size_t used = 1;
    bool ok = false;
    if (p->ptr[0] == '?') {
        ok = true;
    } else if (p->ptr[0] == '[') {
        used = read_set(*p, c.value, &ok);
    } else {
        size_t skip = p->ptr[0] == '\\' ? 1 : 0;
        struct character want = first(after(*p, skip));
        used = skip + want.len;
        ok = want.value == c.value;
    }
    if (ok) {
        *p = after(*p, used);
        *t = after(*t, c.len);
    }
    return ok;
}

bool xf_glob_match(struct xf_str pattern, struct xf_str text)
{
    struct xf_str back_p = XF_STR_EMPTY; /* after the last '*' */
    struct xf_str back_t = XF_STR_EMPTY; /* where its rest was tried last */
    bool can_back = false;
    if (xf_glob_check(pattern) != NULL) {
        return false;
    }
    for (;;) {
        if (pattern.len > 0 && pattern.ptr[0] == '*') {
            pattern = after(pattern, 1);
            back_p = pattern;
            back_t = text;
            can_back = true;
            continue;
        }
        if (pattern.len == 0 && text.len == 0) {
            return true;
        }
        if (pattern.len > 0 && text.len > 0 && step(&pattern, &text)) {
            continue;
        }
        if (!can_back || back_t.len == 0) {
            return false;
        }
        back_t = after(back_t, first(back_t).len);
        pattern = back_p;
        text = back_t;
    }
}
