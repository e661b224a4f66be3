/*
 * toml_scan.c - single TOML values: strings, numbers, booleans, dates and times.
 *
 * A plain value is first cut out as a word (every character that any of them may hold), then the
 * whole word must fit one grammar. So nothing is read past, and "1.2.3" or "truee" is one wrong
 * word, not a value with something behind it.
 */
#include "common/base/toml_int.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORD_MAX = 512, SHOWN_MAX = 24 };

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(int c)
{
    if (is_digit(c)) {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* ---- strings ------------------------------------------------------------------------------------
 */

struct text_out {
    char *p;
    size_t n;
};

static void put_byte(struct text_out *o, int c)
{
    o->p[o->n++] = (char)c;
}

static void put_code_point(struct text_out *o, uint32_t cp)
{
    if (cp < 0x80) {
        put_byte(o, (int)cp);
        return;
    }
    if (cp < 0x800) {
        put_byte(o, (int)(0xC0 | (cp >> 6)));
    } else {
        if (cp < 0x10000) {
            put_byte(o, (int)(0xE0 | (cp >> 12)));
        } else {
            put_byte(o, (int)(0xF0 | (cp >> 18)));
            put_byte(o, (int)(0x80 | ((cp >> 12) & 0x3F)));
        }
        put_byte(o, (int)(0x80 | ((cp >> 6) & 0x3F)));
    }
    put_byte(o, (int)(0x80 | (cp & 0x3F)));
}

/* The reader is at the first hexadecimal digit of \u or \U. */
static enum xf_code scan_code_point(struct xf_toml_reader *r, size_t digits, struct text_out *o)
{
    uint32_t cp = 0;
    for (size_t i = 0; i < digits; i++) {
        int v = hex_value(xf_toml_peek(r, i));
        if (v < 0) {
            return xf_toml_fail(
                r, "a \\%c escape needs %zu hexadecimal digits", digits == 4 ? 'u' : 'U', digits);
        }
        cp = (cp << 4) | (uint32_t)v;
    }
    if (cp > 0x10FFFF || (cp >= 0xD800 && cp <= 0xDFFF)) {
        return xf_toml_fail(r, "U+%04X is not a Unicode character", (unsigned)cp);
    }
    r->off += digits;
    put_code_point(o, cp);
    return XF_OK;
}

/* The reader is at a backslash. */
static enum xf_code scan_escape(struct xf_toml_reader *r, struct text_out *o)
{
    static const char from[] = "btnfr\"\\";
    static const char to[] = "\b\t\n\f\r\"\\";
    int c = xf_toml_peek(r, 1);
    if (c == 'u' || c == 'U') {
        r->off += 2;
        return scan_code_point(r, c == 'u' ? 4 : 8, o);
    }
    const char *at = c > 0 ? strchr(from, c) : NULL;
    if (at == NULL) {
        return xf_toml_fail(r,
                            "unknown escape in a string; known are "
                            "\\b \\t \\n \\f \\r \\\" \\\\ \\uXXXX \\UXXXXXXXX");
    }
    put_byte(o, to[at - from]);
    r->off += 2;
    return XF_OK;
}

/* A backslash at a line's end swallows the line end and all blanks after it; false if it is none.
 */
static bool skip_line_join(struct xf_toml_reader *r)
{
    size_t ahead = 1;
    while (xf_toml_peek(r, ahead) == ' ' || xf_toml_peek(r, ahead) == '\t') {
        ahead++;
    }
    bool lf = xf_toml_peek(r, ahead) == '\n';
    if (!lf && !(xf_toml_peek(r, ahead) == '\r' && xf_toml_peek(r, ahead + 1) == '\n')) {
        return false;
    }
    r->off += ahead;
    for (;;) {
        int c = xf_toml_peek(r, 0);
        if (c == ' ' || c == '\t') {
            r->off++;
        } else if (!xf_toml_newline(r)) {
            return true;
        }
    }
}

/* One character that stands for itself. */
static enum xf_code scan_literal_byte(struct xf_toml_reader *r, struct text_out *o)
{
    int c = xf_toml_peek(r, 0);
    if ((c < 0x20 && c != '\t') || c == 0x7F) {
        return xf_toml_fail(
            r, "control character 0x%02X in a string; write it as an escape", (unsigned)c);
    }
    put_byte(o, c);
    r->off++;
    return XF_OK;
}

static enum xf_code scan_single_line(struct xf_toml_reader *r, int quote, struct text_out *o)
{
    for (;;) {
        int c = xf_toml_peek(r, 0);
        if (c == quote) {
            r->off++;
            return XF_OK;
        }
        if (c < 0 || c == '\n' || (c == '\r' && xf_toml_peek(r, 1) == '\n')) {
            return xf_toml_fail(r, "the string is not closed on its line");
        }
        if (c == '\\' && quote == '"') {
            XF_TRY(scan_escape(r, o));
        } else {
            XF_TRY(scan_literal_byte(r, o));
        }
    }
}

/*
 * A run of quotes in a triple-quoted string: 3 close it, and up to 2 before those belong to the
 * text. True when it closed.
 */
static bool scan_quote_run(struct xf_toml_reader *r, int quote, struct text_out *o)
{
    size_t run = 1;
    while (run < 5 && xf_toml_peek(r, run) == quote) {
        run++;
    }
    size_t text = run >= 3 ? run - 3 : run;
    for (size_t i = 0; i < text; i++) {
        put_byte(o, quote);
    }
    r->off += run;
    return run >= 3;
}

static enum xf_code scan_multi_line(struct xf_toml_reader *r, int quote, struct text_out *o)
{
    (void)xf_toml_newline(r); /* a line end right after the opening quotes is not text */
    for (;;) {
        int c = xf_toml_peek(r, 0);
        if (c < 0) {
            return xf_toml_fail(r, "the text ends inside a triple-quoted string");
        }
        if (c == quote) {
            if (scan_quote_run(r, quote, o)) {
                return XF_OK;
            }
        } else if (xf_toml_newline(r)) {
            put_byte(o, '\n');
        } else if (c == '\\' && quote == '"') {
            if (!skip_line_join(r)) {
                XF_TRY(scan_escape(r, o));
            }
        } else {
            XF_TRY(scan_literal_byte(r, o));
        }
    }
}

/* How many bytes the string can decode to at most: no escape grows. */
static size_t string_bound(const struct xf_toml_reader *r, int quote, bool triple)
{
    size_t n = 0;
    for (;; n++) {
        int c = xf_toml_peek(r, n);
        if (c < 0 || (!triple && c == '\n')) {
            return n;
        }
        if (c == '\\' && quote == '"' && xf_toml_peek(r, n + 1) >= 0) {
            n++;
        } else if (c == quote) {
            if (!triple) {
                return n;
            }
            if (xf_toml_peek(r, n + 1) == quote && xf_toml_peek(r, n + 2) == quote) {
                return n + 2; /* up to two quotes of the closing run are text */
            }
        }
    }
}

enum xf_code xf_toml_scan_string(struct xf_toml_reader *r, bool multiline, struct xf_str *out)
{
    int quote = xf_toml_peek(r, 0);
    bool triple = xf_toml_peek(r, 1) == quote && xf_toml_peek(r, 2) == quote;
    if (triple && !multiline) {
        return xf_toml_fail(r, "a key cannot be a triple-quoted string");
    }
    r->off += triple ? 3 : 1;
    struct text_out o = {
        .p = xf_arena_calloc(&r->doc->arena, string_bound(r, quote, triple) + 1, 1), .n = 0};
    if (triple) {
        XF_TRY(scan_multi_line(r, quote, &o));
    } else {
        XF_TRY(scan_single_line(r, quote, &o));
    }
    out->ptr = o.p;
    out->len = o.n;
    return XF_OK;
}

/* ---- words --------------------------------------------------------------------------------------
 */

/* A plain value's characters, ended by NUL; the underscores of numbers are still in it. */
struct word {
    char text[WORD_MAX];
    size_t len;
    struct xf_toml_pos pos;
};

static bool is_word_byte(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '+' ||
           c == '-' || c == '_' || c == '.' || c == ':';
}

static enum xf_code append_word(struct xf_toml_reader *r, struct word *w)
{
    while (is_word_byte(xf_toml_peek(r, 0))) {
        if (w->len == WORD_MAX - 1) {
            return xf_toml_fail_at(
                r, w->pos, "the value is longer than %d characters", WORD_MAX - 1);
        }
        w->text[w->len++] = (char)xf_toml_peek(r, 0);
        r->off++;
    }
    w->text[w->len] = '\0';
    return XF_OK;
}

/* Cut out one word; "2001-02-03 04:05:06" is one, joined by its space. */
static enum xf_code take_word(struct xf_toml_reader *r, struct word *w)
{
    w->len = 0;
    w->pos = xf_toml_pos_here(r);
    XF_TRY(append_word(r, w));
    if (w->len == 10 && w->text[4] == '-' && w->text[7] == '-' && xf_toml_peek(r, 0) == ' ' &&
        is_digit(xf_toml_peek(r, 1))) {
        w->text[w->len++] = 'T';
        r->off++;
        XF_TRY(append_word(r, w));
    }
    return XF_OK;
}

/* Only what can be a number or date is shown: a word may be a secret that lost its quotes. */
static enum xf_code bad_word(struct xf_toml_reader *r, const struct word *w, const char *why)
{
    if (w->len > SHOWN_MAX || strspn(w->text, "0123456789+-_.:eETZ") != w->len) {
        return xf_toml_fail_at(r, w->pos, "this %s", why);
    }
    return xf_toml_fail_at(r, w->pos, "'%s' %s", w->text, why);
}

/* ---- numbers ------------------------------------------------------------------------------------
 */

static bool is_digit_of(int c, int base)
{
    int v = hex_value(c);
    return v >= 0 && v < base;
}

/* Length of digits with single underscores between them; 0 when it is no such run. */
static size_t digit_run(const char *p, int base)
{
    size_t n = 0;
    while (is_digit_of(p[n], base) || (n > 0 && p[n] == '_' && is_digit_of(p[n - 1], base))) {
        n++;
    }
    return n > 0 && p[n - 1] == '_' ? 0 : n;
}

static enum xf_code scan_int(
    struct xf_toml_reader *r, const struct word *w, int base, size_t from, struct xf_toml_value *v)
{
    bool negative = w->text[0] == '-';
    uint64_t limit = (uint64_t)INT64_MAX + (negative ? 1U : 0U);
    uint64_t n = 0;
    for (const char *p = w->text + from; *p != '\0'; p++) {
        if (*p == '_') {
            continue;
        }
        uint64_t d = (uint64_t)hex_value(*p);
        if (n > (limit - d) / (uint64_t)base) {
            return bad_word(r, w, "does not fit a signed 64-bit integer");
        }
        n = n * (uint64_t)base + d;
    }
    v->type = XF_TOML_INT;
    v->i = negative ? (int64_t)(0 - n) : (int64_t)n;
    return XF_OK;
}

static enum xf_code
scan_radix(struct xf_toml_reader *r, const struct word *w, struct xf_toml_value *v)
{
    int base = 2;
    if (w->text[1] == 'x') {
        base = 16;
    } else if (w->text[1] == 'o') {
        base = 8;
    }
    if (digit_run(w->text + 2, base) != w->len - 2 || w->len == 2) {
        return bad_word(r, w, "is not a hexadecimal, octal or binary integer");
    }
    return scan_int(r, w, base, 2, v);
}

static enum xf_code
scan_float(struct xf_toml_reader *r, const struct word *w, struct xf_toml_value *v)
{
    char digits[WORD_MAX];
    size_t n = 0;
    for (size_t i = 0; i < w->len; i++) {
        if (w->text[i] != '_') {
            digits[n++] = w->text[i];
        }
    }
    digits[n] = '\0';
    v->type = XF_TOML_FLOAT;
    v->f = strtod_l(digits, NULL, r->c_locale);
    return isinf(v->f) ? bad_word(r, w, "does not fit a 64-bit float") : XF_OK;
}

static bool scan_special_float(const struct word *w, struct xf_toml_value *v)
{
    const char *p = w->text + (w->text[0] == '+' || w->text[0] == '-' ? 1 : 0);
    double f = 0;
    if (strcmp(p, "inf") == 0) {
        f = HUGE_VAL;
    } else if (strcmp(p, "nan") == 0) {
        f = (double)NAN;
    } else {
        return false;
    }
    v->type = XF_TOML_FLOAT;
    v->f = w->text[0] == '-' ? -f : f;
    return true;
}

static enum xf_code
scan_number(struct xf_toml_reader *r, const struct word *w, struct xf_toml_value *v)
{
    const char *p = w->text;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'o' || p[1] == 'b')) {
        return scan_radix(r, w, v);
    }
    size_t at = p[0] == '+' || p[0] == '-' ? 1 : 0;
    size_t whole = digit_run(p + at, 10);
    if (whole == 0) {
        return bad_word(r, w, "is not a value (strings stand in quotes)");
    }
    if (whole > 1 && p[at] == '0') {
        return bad_word(r, w, "has a leading zero");
    }
    size_t from = at;
    at += whole;
    if (at == w->len) {
        return scan_int(r, w, 10, from, v);
    }
    if (p[at] == '.') {
        size_t frac = digit_run(p + at + 1, 10);
        if (frac == 0) {
            return bad_word(r, w, "needs digits after its point");
        }
        at += 1 + frac;
    }
    if (p[at] == 'e' || p[at] == 'E') {
        at += p[at + 1] == '+' || p[at + 1] == '-' ? 2 : 1;
        size_t exp = digit_run(p + at, 10);
        if (exp == 0) {
            return bad_word(r, w, "needs digits in its exponent");
        }
        at += exp;
    }
    return at == w->len ? scan_float(r, w, v)
                        : bad_word(r, w, "is not a value (strings stand in quotes)");
}

/* ---- dates and times ----------------------------------------------------------------------------
 */

/* Read `n` digits at *p; false if they are not there. */
static bool take_digits(const char **p, int n, int *out)
{
    *out = 0;
    for (int i = 0; i < n; i++) {
        if (!is_digit((*p)[0])) {
            return false;
        }
        *out = *out * 10 + (*(*p)++ - '0');
    }
    return true;
}

static bool take_char(const char **p, char c)
{
    if (**p != c) {
        return false;
    }
    (*p)++;
    return true;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29 : days[month - 1];
}

static bool take_date(const char **p, struct xf_toml_time *t)
{
    return take_digits(p, 4, &t->year) && take_char(p, '-') && take_digits(p, 2, &t->month) &&
           take_char(p, '-') && take_digits(p, 2, &t->day) && t->month >= 1 && t->month <= 12 &&
           t->day >= 1 && t->day <= days_in_month(t->year, t->month);
}

static bool take_fraction(const char **p, struct xf_toml_time *t)
{
    if (!take_char(p, '.')) {
        return true;
    }
    if (!is_digit(**p)) {
        return false;
    }
    for (int unit = 100000000; is_digit(**p); unit /= 10) {
        t->nanosecond += (*(*p)++ - '0') * unit;
    }
    return true;
}

static bool take_time(const char **p, struct xf_toml_time *t)
{
    return take_digits(p, 2, &t->hour) && take_char(p, ':') && take_digits(p, 2, &t->minute) &&
           take_char(p, ':') && take_digits(p, 2, &t->second) && t->hour <= 23 && t->minute <= 59 &&
           t->second <= 60 && take_fraction(p, t);
}

static bool take_offset(const char **p, struct xf_toml_time *t)
{
    if (take_char(p, 'Z') || take_char(p, 'z')) {
        return true;
    }
    int sign = 1;
    if (take_char(p, '-')) {
        sign = -1;
    } else if (!take_char(p, '+')) {
        return false;
    }
    int hours = 0;
    int minutes = 0;
    if (!take_digits(p, 2, &hours) || !take_char(p, ':') || !take_digits(p, 2, &minutes) ||
        hours > 23 || minutes > 59) {
        return false;
    }
    t->offset_min = sign * (hours * 60 + minutes);
    return true;
}

static bool looks_like_date(const struct word *w)
{
    return w->len > 4 && is_digit(w->text[0]) && is_digit(w->text[1]) && is_digit(w->text[2]) &&
           is_digit(w->text[3]) && w->text[4] == '-';
}

static bool looks_like_time(const struct word *w)
{
    return w->len > 2 && is_digit(w->text[0]) && is_digit(w->text[1]) && w->text[2] == ':';
}

static bool scan_date(const struct word *w, struct xf_toml_value *v)
{
    const char *p = w->text;
    memset(&v->time, 0, sizeof(v->time));
    if (!take_date(&p, &v->time)) {
        return false;
    }
    v->type = XF_TOML_LOCAL_DATE;
    if (*p == '\0') {
        return true;
    }
    if ((!take_char(&p, 'T') && !take_char(&p, 't')) || !take_time(&p, &v->time)) {
        return false;
    }
    v->type = XF_TOML_LOCAL_DATETIME;
    if (*p == '\0') {
        return true;
    }
    v->type = XF_TOML_DATETIME;
    return take_offset(&p, &v->time) && *p == '\0';
}

static bool scan_time(const struct word *w, struct xf_toml_value *v)
{
    const char *p = w->text;
    memset(&v->time, 0, sizeof(v->time));
    v->type = XF_TOML_LOCAL_TIME;
    return take_time(&p, &v->time) && *p == '\0';
}

enum xf_code xf_toml_scan_plain(struct xf_toml_reader *r, struct xf_toml_value *v)
{
    struct word w = {.len = 0};
    XF_TRY(take_word(r, &w));
    if (w.len == 0) {
        return xf_toml_fail(r, "a value is missing here");
    }
    if (strcmp(w.text, "true") == 0 || strcmp(w.text, "false") == 0) {
        v->type = XF_TOML_BOOL;
        v->b = w.text[0] == 't';
        return XF_OK;
    }
    if (looks_like_date(&w)) {
        return scan_date(&w, v) ? XF_OK : bad_word(r, &w, "is not a date or date-time");
    }
    if (looks_like_time(&w)) {
        return scan_time(&w, v) ? XF_OK : bad_word(r, &w, "is not a time");
    }
    return scan_special_float(&w, v) ? XF_OK : scan_number(r, &w, v);
}
