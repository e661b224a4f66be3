/*
 * toml_test.c - TOML 1.0 by own cases: what is read, what is refused and where errors point.
 */
#include "common/base/mem.h"
#include "common/base/toml.h"
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static struct xf_err err;

static struct xf_toml *parse_n(struct xf_str text)
{
    struct xf_toml *doc = NULL;
    enum xf_code code = xf_toml_parse(text, XF_STR_LIT("t.toml"), &doc, &err);
    assert_true((code == XF_OK) == (doc != NULL));
    if (code != XF_OK) {
        assert_int_equal(code, XF_E_CONFIG);
        assert_int_equal(err.code, XF_E_CONFIG);
    }
    return doc;
}

static struct xf_toml *parse(const char *text)
{
    return parse_n(xf_str_c(text));
}

/* The value at a path like "a/b/0/c". */
static const struct xf_toml_value *at(const struct xf_toml *doc, const char *path)
{
    const struct xf_toml_value *v = xf_toml_root(doc);
    struct xf_str rest = xf_str_c(path);
    struct xf_str part;
    while (xf_str_cut(&rest, '/', &part)) {
        if (v->type == XF_TOML_ARRAY) {
            uint64_t i = 0;
            assert_true(xf_str_u64(part, &i));
            assert_true(i < v->array.len);
            v = v->array.items[i];
        } else {
            assert_int_equal(v->type, XF_TOML_TABLE);
            const struct xf_toml_entry *e = xf_toml_get(v, part);
            assert_non_null(e);
            v = e->value;
        }
    }
    return v;
}

struct value_case {
    const char *text; /* of the value */
    enum xf_toml_type type;
    int64_t i;
    double f;
};

/* ---- scalars ------------------------------------------------------------------------------------
 */

static void integers_are_read_in_all_their_forms(void **state)
{
    (void)state;
    static const struct value_case cases[] = {
        {"0", XF_TOML_INT, 0, 0},
        {"+0", XF_TOML_INT, 0, 0},
        {"-0", XF_TOML_INT, 0, 0},
        {"+99", XF_TOML_INT, 99, 0},
        {"-17", XF_TOML_INT, -17, 0},
        {"1_000_000", XF_TOML_INT, 1000000, 0},
        {"5_3_4", XF_TOML_INT, 534, 0},
        {"0xDEADbeef", XF_TOML_INT, 0xDEADBEEF, 0},
        {"0x00ff", XF_TOML_INT, 255, 0},
        {"0xdead_beef", XF_TOML_INT, 0xDEADBEEF, 0},
        {"0o755", XF_TOML_INT, 493, 0},
        {"0b1101_0110", XF_TOML_INT, 214, 0},
        {"9223372036854775807", XF_TOML_INT, INT64_MAX, 0},
        {"-9223372036854775808", XF_TOML_INT, INT64_MIN, 0},
        {"0x7fffffffffffffff", XF_TOML_INT, INT64_MAX, 0},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "v = %s", cases[i].text);
        struct xf_toml *doc = parse(text);
        assert_non_null(doc);
        assert_int_equal(at(doc, "v")->type, XF_TOML_INT);
        assert_true(at(doc, "v")->i == cases[i].i);
        xf_toml_free(doc);
    }
}

static void floats_are_read_in_all_their_forms(void **state)
{
    (void)state;
    static const struct value_case cases[] = {
        {"1.0", XF_TOML_FLOAT, 0, 1.0},
        {"+1.5", XF_TOML_FLOAT, 0, 1.5},
        {"-0.01", XF_TOML_FLOAT, 0, -0.01},
        {"5e+22", XF_TOML_FLOAT, 0, 5e22},
        {"1e06", XF_TOML_FLOAT, 0, 1e6},
        {"-2E-2", XF_TOML_FLOAT, 0, -0.02},
        {"6.626e-34", XF_TOML_FLOAT, 0, 6.626e-34},
        {"224_617.445_991_228", XF_TOML_FLOAT, 0, 224617.445991228},
        {"0.0", XF_TOML_FLOAT, 0, 0.0},
        {"0e0", XF_TOML_FLOAT, 0, 0.0},
        {"1_0e1_0", XF_TOML_FLOAT, 0, 1e11},
        {"inf", XF_TOML_FLOAT, 0, HUGE_VAL},
        {"+inf", XF_TOML_FLOAT, 0, HUGE_VAL},
        {"-inf", XF_TOML_FLOAT, 0, -HUGE_VAL},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        char text[128];
        (void)snprintf(text, sizeof(text), "v = %s", cases[i].text);
        struct xf_toml *doc = parse(text);
        assert_non_null(doc);
        assert_int_equal(at(doc, "v")->type, XF_TOML_FLOAT);
        assert_true(at(doc, "v")->f == cases[i].f);
        xf_toml_free(doc);
    }
    struct xf_toml *doc = parse("a = nan\nb = -nan\nc = +nan");
    assert_non_null(doc);
    assert_true(isnan(at(doc, "a")->f) && isnan(at(doc, "b")->f) && isnan(at(doc, "c")->f));
    xf_toml_free(doc);
}

static void dates_and_times_keep_their_fields(void **state)
{
    (void)state;
    struct xf_toml *doc = parse("a = 1979-05-27T07:32:01Z\n"
                                "b = 1979-05-27T00:32:00.999999-07:00\n"
                                "c = 1979-05-27 07:32:00.5z\n"
                                "d = 1979-05-27t07:32:00\n"
                                "e = 2024-02-29\n"
                                "f = 23:59:60.123456789999\n"
                                "g = 2000-02-29T00:00:00+23:59\n"
                                "h = 1970-01-01T00:00:00Z # epoch\n");
    assert_non_null(doc);
    const struct xf_toml_value *v = at(doc, "a");
    assert_int_equal(v->type, XF_TOML_DATETIME);
    assert_int_equal(v->time.year, 1979);
    assert_int_equal(v->time.month, 5);
    assert_int_equal(v->time.day, 27);
    assert_int_equal(v->time.hour, 7);
    assert_int_equal(v->time.minute, 32);
    assert_int_equal(v->time.second, 1);
    assert_int_equal(v->time.offset_min, 0);
    assert_true(xf_toml_time_ms(&v->time) == 296638321000);
    v = at(doc, "b");
    assert_int_equal(v->type, XF_TOML_DATETIME);
    assert_int_equal(v->time.nanosecond, 999999000);
    assert_int_equal(v->time.offset_min, -420);
    assert_true(xf_toml_time_ms(&v->time) == 296638320999);
    assert_int_equal(at(doc, "c")->type, XF_TOML_DATETIME);
    assert_int_equal(at(doc, "c")->time.nanosecond, 500000000);
    assert_int_equal(at(doc, "d")->type, XF_TOML_LOCAL_DATETIME);
    assert_int_equal(at(doc, "e")->type, XF_TOML_LOCAL_DATE);
    assert_int_equal(at(doc, "e")->time.day, 29);
    v = at(doc, "f");
    assert_int_equal(v->type, XF_TOML_LOCAL_TIME);
    assert_int_equal(v->time.second, 60);
    assert_int_equal(v->time.nanosecond, 123456789);
    assert_int_equal(at(doc, "g")->time.offset_min, 23 * 60 + 59);
    assert_true(xf_toml_time_ms(&at(doc, "h")->time) == 0);
    xf_toml_free(doc);
}

static void check_string(const char *text, struct xf_str want)
{
    struct xf_toml *doc = parse(text);
    if (doc == NULL) {
        fail_msg("%s: %s", text, err.msg);
    }
    const struct xf_toml_value *v = at(doc, "s");
    assert_int_equal(v->type, XF_TOML_STRING);
    assert_int_equal(v->str.len, want.len);
    assert_memory_equal(v->str.ptr, want.ptr, want.len);
    xf_toml_free(doc);
}

static void strings_are_decoded(void **state)
{
    (void)state;
    check_string("s = \"\"", XF_STR_LIT(""));
    check_string("s = ''", XF_STR_LIT(""));
    check_string("s = \"\\b\\t\\n\\f\\r\\\"\\\\\"", XF_STR_LIT("\b\t\n\f\r\"\\"));
    check_string("s = \"a\\u0000b\"", XF_STR_LIT("a\0b"));
    check_string("s = \"\\u00e9\\u20AC\\U0001F600\"",
                 XF_STR_LIT("\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80"));
    check_string("s = \"\\uFFFF\\U0010FFFF\"", XF_STR_LIT("\xEF\xBF\xBF\xF4\x8F\xBF\xBF"));
    check_string("s = '\\n \"x\" \\'", XF_STR_LIT("\\n \"x\" \\"));
    check_string("s = \"tab\there\"", XF_STR_LIT("tab\there"));
    check_string("s = \"\"\"\"\"\"", XF_STR_LIT(""));
    check_string("s = \"\"\"\none\r\ntwo\n\"\"\"", XF_STR_LIT("one\ntwo\n"));
    check_string("s = \"\"\"a \\  \n\n   \t b\"\"\"", XF_STR_LIT("a b"));
    check_string("s = \"\"\"a\\\r\n  b\"\"\"", XF_STR_LIT("ab"));
    check_string("s = \"\"\"\"a\"\"\"\"", XF_STR_LIT("\"a\""));
    check_string("s = \"\"\"\"\"a\"\"\"\"\"", XF_STR_LIT("\"\"a\"\""));
    check_string("s = \"\"\"a\\\"\"\"b\"\"\"", XF_STR_LIT("a\"\"\"b"));
}

static void literal_multi_line_strings_keep_everything(void **state)
{
    (void)state;
    check_string("s = '''\nI'm \\raw''''", XF_STR_LIT("I'm \\raw'"));
    check_string("s = ''''x'''''", XF_STR_LIT("'x''"));
    check_string("s = '''a\\\n b'''", XF_STR_LIT("a\\\n b"));
}

/* ---- documents ----------------------------------------------------------------------------------
 */

static void keys_are_bare_quoted_or_dotted(void **state)
{
    (void)state;
    struct xf_toml *doc = parse("1234 = 1\n-_- = 2\n\"a.b\" = 3\n'' = 4\na.\"b\".'c' = 5\n"
                                "a . d = 6\n\"\\u00e9\" = 7\n3.14 = 8\n");
    assert_non_null(doc);
    assert_true(at(doc, "1234")->i == 1);
    assert_true(at(doc, "-_-")->i == 2);
    assert_true(at(doc, "a.b")->i == 3);
    assert_true(xf_toml_get(xf_toml_root(doc), XF_STR_EMPTY)->value->i == 4);
    assert_true(at(doc, "a/b/c")->i == 5);
    assert_true(at(doc, "a/d")->i == 6);
    assert_true(at(doc, "\xC3\xA9")->i == 7);
    assert_true(at(doc, "3/14")->i == 8);
    xf_toml_free(doc);
}

static void tables_and_arrays_of_tables_nest(void **state)
{
    (void)state;
    struct xf_toml *doc = parse("[a.b.c]\nx = 1\n[a]\ny = 2\n[[f]]\nn = 'one'\n[f.sub]\nk = 1\n"
                                "[[f.v]]\nn = 'v1'\n[[f.v]]\nn = 'v2'\n[[f]]\nn = 'two'\n[[f.v]]\n"
                                "[g]\nd.e = 1\n[g.d.h]\nz = 3\n");
    assert_non_null(doc);
    assert_true(at(doc, "a/b/c/x")->i == 1);
    assert_true(at(doc, "a/y")->i == 2);
    assert_int_equal(at(doc, "f")->array.len, 2);
    assert_true(at(doc, "f/0/sub/k")->i == 1);
    assert_true(xf_str_eq_c(at(doc, "f/0/v/1/n")->str, "v2"));
    assert_true(xf_str_eq_c(at(doc, "f/1/n")->str, "two"));
    assert_int_equal(at(doc, "f/1/v/0")->table.len, 0);
    assert_true(at(doc, "g/d/h/z")->i == 3);
    xf_toml_free(doc);
}

static void arrays_and_inline_tables_nest(void **state)
{
    (void)state;
    struct xf_toml *doc =
        parse("a = [ 1, [ 'x', {} ], # comment\n\n { b.c = true, b.d = [] , 'e' = {f=1} },\n]\n"
              "t = { }\n");
    assert_non_null(doc);
    assert_int_equal(at(doc, "a")->array.len, 3);
    assert_int_equal(at(doc, "a/1/1")->type, XF_TOML_TABLE);
    assert_true(at(doc, "a/2/b/c")->b);
    assert_int_equal(at(doc, "a/2/b/d")->array.len, 0);
    assert_true(at(doc, "a/2/e/f")->i == 1);
    assert_int_equal(at(doc, "t")->table.len, 0);
    xf_toml_free(doc);
}

static void comments_blank_lines_crlf_and_bom_are_fine(void **state)
{
    (void)state;
    struct xf_toml *doc =
        parse("\xEF\xBB\xBF# first\r\n\r\n \t\r\na = 1 # tab\there\r\n[t]#x\r\nb = 2");
    assert_non_null(doc);
    assert_true(at(doc, "a")->i == 1);
    assert_true(at(doc, "t/b")->i == 2);
    xf_toml_free(doc);
    doc = parse("");
    assert_non_null(doc);
    assert_int_equal(xf_toml_root(doc)->table.len, 0);
    xf_toml_free(doc);
}

static void places_of_keys_and_values_are_known(void **state)
{
    (void)state;
    struct xf_toml *doc = parse("\n  a = \"x\"\n[t]\n'\xC3\xA9' = [1,\n  2]\n");
    assert_non_null(doc);
    const struct xf_toml_entry *a = xf_toml_get(xf_toml_root(doc), XF_STR_LIT("a"));
    assert_int_equal(a->pos.line, 2);
    assert_int_equal(a->pos.col, 3);
    assert_int_equal(a->value->pos.col, 7);
    const struct xf_toml_value *e = at(doc, "t/\xC3\xA9");
    assert_int_equal(e->pos.line, 4);
    assert_int_equal(e->pos.col, 7); /* characters, not bytes */
    assert_int_equal(e->array.items[1]->pos.line, 5);
    assert_int_equal(e->array.items[1]->pos.col, 3);
    xf_toml_free(doc);
}

/* ---- refusals -----------------------------------------------------------------------------------
 */

struct bad_case {
    struct xf_str text;
    unsigned line;
    unsigned col;
    const char *says; /* part of the message */
};

#define BAD(text_, line_, col_, says_)                 \
    {                                                  \
        {text_, sizeof(text_) - 1}, line_, col_, says_ \
    }

static void check_bad(const struct bad_case *c)
{
    struct xf_toml *doc = parse_n(c->text);
    if (doc != NULL) {
        fail_msg("accepted: %.*s", XF_STR_ARG(c->text));
    }
    char place[64];
    (void)snprintf(place, sizeof(place), "t.toml:%u:%u: ", c->line, c->col);
    if (strncmp(err.msg, place, strlen(place)) != 0 || strstr(err.msg, c->says) == NULL) {
        fail_msg("wanted '%s...%s...', got '%s'", place, c->says, err.msg);
    }
}

static void check_all_bad(const struct bad_case *cases, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        check_bad(&cases[i]);
    }
}

static void wrong_numbers_are_refused(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("a = 01", 1, 5, "leading zero"),
        BAD("a = -007", 1, 5, "leading zero"),
        BAD("a = 00.5", 1, 5, "leading zero"),
        BAD("a = 1__0", 1, 5, "is not a value"),
        BAD("a = _1", 1, 5, "is not a value"),
        BAD("a = 1_", 1, 5, "is not a value"),
        BAD("a = ++1", 1, 5, "is not a value"),
        BAD("a = 0xG", 1, 5, "hexadecimal"),
        BAD("a = 0x", 1, 5, "hexadecimal"),
        BAD("a = +0x1", 1, 5, "is not a value"),
        BAD("a = 0o8", 1, 5, "octal"),
        BAD("a = 0b2", 1, 5, "binary"),
        BAD("a = 0X1", 1, 5, "is not a value"),
        BAD("a = 9223372036854775808", 1, 5, "64-bit"),
        BAD("a = -9223372036854775809", 1, 5, "64-bit"),
        BAD("a = 0x8000000000000000", 1, 5, "64-bit"),
        BAD("a = .5", 1, 5, "is not a value"),
        BAD("a = 5.", 1, 5, "point"),
        BAD("a = 1.e3", 1, 5, "point"),
        BAD("a = 1e", 1, 5, "exponent"),
        BAD("a = 1e+", 1, 5, "exponent"),
        BAD("a = 1.2.3", 1, 5, "is not a value"),
        BAD("a = 1_.5", 1, 5, "is not a value"),
        BAD("a = 1._5", 1, 5, "point"),
        BAD("a = 1e999", 1, 5, "64-bit float"),
        BAD("a = Inf", 1, 5, "is not a value"),
        BAD("a = NaN", 1, 5, "is not a value"),
        BAD("a = 1 2", 1, 7, "end of the line"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

static void wrong_words_and_dates_are_refused(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("a = True", 1, 5, "quotes"),
        BAD("a = truee", 1, 5, "quotes"),
        BAD("a = hello", 1, 5, "quotes"),
        BAD("a =", 1, 4, "missing"),
        BAD("a = # nothing", 1, 5, "missing"),
        BAD("a = 2023-02-29", 1, 5, "date"),
        BAD("a = 1900-02-29", 1, 5, "date"),
        BAD("a = 2023-13-01", 1, 5, "date"),
        BAD("a = 2023-00-01", 1, 5, "date"),
        BAD("a = 2023-01-32", 1, 5, "date"),
        BAD("a = 2023-1-01", 1, 5, "date"),
        BAD("a = 2023-01-01T", 1, 5, "date"),
        BAD("a = 2023-01-01T24:00:00Z", 1, 5, "date"),
        BAD("a = 2023-01-01T00:60:00Z", 1, 5, "date"),
        BAD("a = 2023-01-01T00:00:61Z", 1, 5, "date"),
        BAD("a = 2023-01-01T00:00Z", 1, 5, "date"),
        BAD("a = 2023-01-01T00:00:00.Z", 1, 5, "date"),
        BAD("a = 2023-01-01T00:00:00+24:00", 1, 5, "date"),
        BAD("a = 2023-01-01T00:00:00+0100", 1, 5, "date"),
        BAD("a = 2023-01-01Z", 1, 5, "date"),
        BAD("a = 2023-01-01  00:00:00", 1, 17, "end of the line"),
        BAD("a = 12:00", 1, 5, "time"),
        BAD("a = 12:00:00Z", 1, 5, "time"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

static void wrong_strings_are_refused(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("a = \"x", 1, 7, "not closed"),
        BAD("a = \"x\n\"", 1, 7, "not closed"),
        BAD("a = 'x\ny'", 1, 7, "not closed"),
        BAD("a = \"\"\"x\ny", 2, 2, "triple-quoted"),
        BAD("a = '''x", 1, 9, "triple-quoted"),
        BAD("a = \"\\x41\"", 1, 6, "escape"),
        BAD("a = \"\\e\"", 1, 6, "escape"),
        BAD("a = \"\\ \"", 1, 6, "escape"),
        BAD("a = \"\\u12\"", 1, 8, "4 hexadecimal"),
        BAD("a = \"\\U0011000\"", 1, 8, "8 hexadecimal"),
        BAD("a = \"\\uD800\"", 1, 8, "U+D800"),
        BAD("a = \"\\U00110000\"", 1, 8, "U+110000"),
        BAD("a = \"\x01\"", 1, 6, "0x01"),
        BAD("a = \"\x7f\"", 1, 6, "0x7F"),
        BAD("a = '\0'", 1, 6, "0x00"),
        BAD("a = \"\"\"\r\"\"\"", 1, 8, "0x0D"),
        BAD("a = '''\x0b'''", 1, 8, "0x0B"),
        BAD("a = \"\"\"x \\ y\"\"\"", 1, 10, "escape"),
        BAD("a = \"\"\"\"\"\"\"\"\"", 1, 13, "end of the line"),
        BAD("\"\"\"a\"\"\" = 1", 1, 1, "triple-quoted"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

static void bytes_that_are_not_utf8_are_refused_with_their_place(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("# ok\na = \"\xFF\"", 2, 6, "0xFF"),
        BAD("a = \"\xC3\"", 1, 6, "0xC3"),
        BAD("# \xC0\x80", 1, 3, "0xC0"),
        BAD("# \xED\xA0\x80", 1, 3, "0xED"),
        BAD("# \xF4\x90\x80\x80", 1, 3, "0xF4"),
        BAD("# \xC3\xA9 \xE2\x82", 1, 5, "0xE2"),
        BAD("\xFE\xFF\0a", 1, 1, "0xFE"),
        BAD("a = 1\n\xEF\xBB\xBF"
            "b = 2",
            2,
            1,
            "a key"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

static void bare_carriage_returns_and_controls_are_refused(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("a = 1\rb = 2", 1, 6, "0x0D"),
        BAD("# c\rx", 1, 4, "0x0D"),
        BAD("\r", 1, 1, "0x0D"),
        BAD("a = 1\r", 1, 6, "0x0D"),
        BAD("# \x7f", 1, 3, "0x7F"),
        BAD("# \0", 1, 3, "0x00"),
        BAD("a = [1,\r2]", 1, 8, ""),
        BAD("a = 1\x0c", 1, 6, "0x0C"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

static void wrong_keys_and_lines_are_refused(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("= 1", 1, 1, "a key"),
        BAD("a", 1, 2, "'='"),
        BAD("a.= 1", 1, 3, "a key"),
        BAD(".a = 1", 1, 1, "a key"),
        BAD("a b = 1", 1, 3, "'='"),
        BAD("a = 1 b = 2", 1, 7, "end of the line"),
        BAD("\xC3\xA9 = 1", 1, 1, "not ASCII"),
        BAD("a\n= 1", 1, 2, "'='"),
        BAD("a = 1,", 1, 6, "end of the line"),
        BAD("[a", 1, 3, "']'"),
        BAD("[]", 1, 2, "a key"),
        BAD("[a]b = 1", 1, 4, "end of the line"),
        BAD("[[a]", 1, 4, "']]'"),
        BAD("[ [a]]", 1, 3, "a key"),
        BAD("[a\n]", 1, 3, "']'"),
        BAD("[a..b]", 1, 4, "a key"),
        BAD("a = [1 2]", 1, 8, "','"),
        BAD("a = [,]", 1, 6, "missing"),
        BAD("a = [1,,2]", 1, 8, "missing"),
        BAD("a = [1", 1, 7, "','"),
        BAD("a = {b = 1,}", 1, 12, "a key"),
        BAD("a = {b = 1\n}", 1, 11, "one line"),
        BAD("a = {,}", 1, 6, "a key"),
        BAD("a = {b = 1 c = 2}", 1, 12, "'}'"),
        BAD("a = {b}", 1, 7, "'='"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

static void nothing_is_defined_twice(void **state)
{
    (void)state;
    static const struct bad_case cases[] = {
        BAD("a = 1\na = 2", 2, 1, "'a' is already defined, at line 1"),
        BAD("a = 1\n\"a\" = 2", 2, 1, "already"),
        BAD("a = 1\na.b = 2", 2, 1, "already"),
        BAD("a.b = 1\na = 2", 2, 1, "already"),
        BAD("[a]\n[a]", 2, 2, "already"),
        BAD("[a]\n[b]\n[a]", 3, 2, "already"),
        BAD("a.b = 1\n[a]", 2, 2, "already"),
        BAD("[a]\nb.c = 1\n[a.b]", 3, 4, "already"),
        BAD("[a.b]\nx = 1\n[a]\nb.y = 2", 4, 1, "already"),
        BAD("[a.b.c]\n[a]\nb.x = 1", 3, 1, "already"),
        BAD("a = 1\n[a]", 2, 2, "already"),
        BAD("a = 1\n[a.b]", 2, 2, "already"),
        BAD("a = {b = 1}\n[a]", 2, 2, "already"),
        BAD("a = {b = 1}\n[a.c]", 2, 2, "already"),
        BAD("a = {b = 1}\na.c = 1", 2, 1, "already"),
        BAD("a = {b = {}, b.c = 1}", 1, 14, "already"),
        BAD("a = {b.c = 1, b = 2}", 1, 15, "already"),
        BAD("a = {b = 1, b = 2}", 1, 13, "already"),
        BAD("a = [1]\n[[a]]", 2, 3, "already"),
        BAD("a = []\n[[a]]", 2, 3, "already"),
        BAD("a = [{}]\n[a.b]", 2, 2, "already"),
        BAD("[a]\n[[a]]", 2, 3, "already"),
        BAD("[a.b]\n[[a]]", 2, 3, "already"),
        BAD("[[a]]\n[a]", 2, 2, "already"),
        BAD("[[a.b]]\n[a]\nb.c = 1", 3, 1, "already"),
        BAD("[[a]]\nx = 1\nx = 2", 3, 1, "already"),
    };
    check_all_bad(cases, XF_ARRAY_LEN(cases));
}

/* ---- limits -------------------------------------------------------------------------------------
 */

static struct xf_toml *
parse_repeated(const char *head, const char *unit, size_t n, const char *tail)
{
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_buf_put_c(&b, head);
    for (size_t i = 0; i < n; i++) {
        xf_buf_put_c(&b, unit);
    }
    xf_buf_put_c(&b, tail);
    return parse_n(xf_buf_view(&b));
}

static void limits_hold_and_one_past_is_refused(void **state)
{
    (void)state;
    struct xf_toml *doc = parse_repeated("a = ", "[", XF_TOML_DEPTH_MAX, "");
    assert_null(doc);
    assert_non_null(strstr(err.msg, "the text ends") != NULL ? err.msg
                                                             : strstr(err.msg, "missing"));
    assert_null(parse_repeated("a = ", "[", XF_TOML_DEPTH_MAX + 1, ""));
    assert_non_null(strstr(err.msg, "inside each other"));
    assert_null(parse_repeated("a = ", "[", 100000, ""));
    assert_null(parse_repeated("a = ", "{a=", 100000, ""));
    assert_non_null(strstr(err.msg, "inside each other"));
    doc = parse_repeated("", "a.", XF_TOML_DEPTH_MAX - 1, "a = 1");
    assert_non_null(doc);
    xf_toml_free(doc);
    assert_null(parse_repeated("", "a.", XF_TOML_DEPTH_MAX, "a = 1"));
    assert_non_null(strstr(err.msg, "parts in one key"));
    doc = parse_repeated("#", "x", XF_TOML_INPUT_MAX - 1, "");
    assert_non_null(doc);
    xf_toml_free(doc);
    assert_null(parse_repeated("#", "x", XF_TOML_INPUT_MAX, ""));
    assert_non_null(strstr(err.msg, "at most"));
}

static struct xf_toml *parse_keys(size_t n)
{
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    for (size_t i = 0; i < n; i++) {
        xf_buf_putf(&b, "k%zu=1\n", i);
    }
    return parse_n(xf_buf_view(&b));
}

static void a_table_takes_a_bounded_number_of_keys(void **state)
{
    (void)state;
    struct xf_toml *doc = parse_keys(XF_TOML_KEYS_MAX);
    assert_non_null(doc);
    xf_toml_free(doc);
    assert_null(parse_keys(XF_TOML_KEYS_MAX + 1));
    assert_non_null(strstr(err.msg, "t.toml:4097:1: more than 4096 keys"));
}

static void every_prefix_of_a_document_is_read_or_refused(void **state)
{
    (void)state;
    static const char text[] = "# c\n[a.'b']\nk = \"\\u00e9\\n\" # x\nm = '''\nq''''\n[[l]]\nd = "
                               "1979-05-27 07:32:00.5+01:00\nt = {a.b = [1, 0x2_f, -1e3]}\n";
    for (size_t n = 0; n <= sizeof(text) - 1; n++) {
        char *copy = xf_xmemdup0(text, n);
        struct xf_toml *doc = parse_n(xf_str_n(copy, n));
        xf_toml_free(doc);
        xf_xfree(copy);
    }
    assert_true(true);
}

static void a_long_file_name_keeps_its_end(void **state)
{
    (void)state;
    char name[400];
    memset(name, 'd', sizeof(name));
    memcpy(name + sizeof(name) - 8, "/my.toml", 8);
    struct xf_toml *doc = NULL;
    assert_int_equal(xf_toml_parse(XF_STR_LIT("x"), xf_str_n(name, sizeof(name)), &doc, &err),
                     XF_E_CONFIG);
    assert_non_null(strstr(err.msg, "/my.toml:1:2: "));
    assert_true(strncmp(err.msg, "...ddd", 6) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(integers_are_read_in_all_their_forms),
        cmocka_unit_test(floats_are_read_in_all_their_forms),
        cmocka_unit_test(dates_and_times_keep_their_fields),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(literal_multi_line_strings_keep_everything),
        cmocka_unit_test(keys_are_bare_quoted_or_dotted),
        cmocka_unit_test(tables_and_arrays_of_tables_nest),
        cmocka_unit_test(arrays_and_inline_tables_nest),
        cmocka_unit_test(comments_blank_lines_crlf_and_bom_are_fine),
        cmocka_unit_test(places_of_keys_and_values_are_known),
        cmocka_unit_test(wrong_numbers_are_refused),
        cmocka_unit_test(wrong_words_and_dates_are_refused),
        cmocka_unit_test(wrong_strings_are_refused),
        cmocka_unit_test(bytes_that_are_not_utf8_are_refused_with_their_place),
        cmocka_unit_test(bare_carriage_returns_and_controls_are_refused),
        cmocka_unit_test(wrong_keys_and_lines_are_refused),
        cmocka_unit_test(nothing_is_defined_twice),
        cmocka_unit_test(limits_hold_and_one_past_is_refused),
        cmocka_unit_test(a_table_takes_a_bounded_number_of_keys),
        cmocka_unit_test(every_prefix_of_a_document_is_read_or_refused),
        cmocka_unit_test(a_long_file_name_keeps_its_end),
    };
    return xf_test_run("toml", tests, NULL, NULL);
}
