/*
 * conf_test.c - option tables: values, ranges, refusals with their place, help, template, TOML,
 * JSON.
 */
#include "common/base/conf.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/toml.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct fields {
    int64_t format;
    bool is_on;
    int64_t count;
    uint64_t max_bytes;
    uint64_t rate;
    int64_t timeout_ms;
    struct xf_str dir;
    struct xf_str secret;
    int colour;
    struct xf_conf_list names;
    struct xf_conf_when since;
    int style;
};

static const char *const colours[] = {"red", "green", "blue", NULL};

#define AT(m) offsetof(struct fields, m)

static const struct xf_conf_opt rows[] = {
    {.name = "format",
     .type = XF_CONF_INT,
     .offset = AT(format),
     .min = 1,
     .max = 1,
     .def = "1",
     .help = "Form."},
    {.name = "store", .type = XF_CONF_SECTION, .help = "The store."},
    {.name = "store.on",
     .type = XF_CONF_BOOL,
     .offset = AT(is_on),
     .def = "true",
     .help = "Use it."},
    {.name = "store.count",
     .type = XF_CONF_INT,
     .offset = AT(count),
     .min = -5,
     .max = 10,
     .unit = "rows",
     .def = "3",
     .flags = XF_CONF_RELOAD,
     .help = "How many."},
    {.name = "store.max_bytes",
     .type = XF_CONF_SIZE,
     .offset = AT(max_bytes),
     .min = 1024,
     .max = 1048576,
     .def = "64KiB",
     .help = "How much."},
    {.name = "store.dir",
     .type = XF_CONF_STRING,
     .offset = AT(dir),
     .min = 1,
     .max = 5,
     .def = "d",
     .help = "Where."},
    {.name = "store.secret",
     .type = XF_CONF_STRING,
     .offset = AT(secret),
     .max = 100,
     .flags = XF_CONF_SECRET,
     .help = "Token."},
    {.name = "net", .type = XF_CONF_SECTION, .help = "The net."},
    {.name = "net.rate",
     .type = XF_CONF_RATE,
     .offset = AT(rate),
     .min = 1000,
     .def_note = "no limit",
     .help = "Speed."},
    {.name = "net.timeout",
     .type = XF_CONF_DURATION,
     .offset = AT(timeout_ms),
     .min = 1,
     .max = 60000,
     .def = "30s",
     .help = "Patience."},
    {.name = "net.colour",
     .type = XF_CONF_ENUM,
     .offset = AT(colour),
     .names = colours,
     .def = "green",
     .help = "Hue."},
    {.name = "net.names", .type = XF_CONF_LIST, .offset = AT(names), .max = 3, .help = "Who."},
    {.name = "net.since", .type = XF_CONF_WHEN, .offset = AT(since), .help = "When."},
    {.name = "net.style", .type = XF_CONF_SWITCH, .offset = AT(style), .help = "How."},
    {.name = "sync", .type = XF_CONF_SECTION, .flags = XF_CONF_LATER},
    {.name = "net.proxy", .type = XF_CONF_STRING, .flags = XF_CONF_LATER, .help = "use none"},
    {.name = "*.password", .type = XF_CONF_STRING, .flags = XF_CONF_REFUSED, .help = "use a file"},
};
static const struct xf_conf_table table = {
    rows, XF_ARRAY_LEN(rows), sizeof(struct fields), "A test."};

static struct fields f;
static struct xf_err err;

static struct xf_conf *load(const char *text)
{
    struct xf_toml *doc = NULL;
    struct xf_conf *c = NULL;
    if (xf_toml_parse(xf_str_c(text), XF_STR_LIT("c.toml"), &doc, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    enum xf_code code = xf_conf_load(&table, doc, &f, &c, &err);
    xf_toml_free(doc);
    assert_true((code == XF_OK) == (c != NULL));
    return c;
}

static void check_refused(const char *text, enum xf_code code, const char *message)
{
    struct xf_conf *c = load(text);
    if (c != NULL) {
        fail_msg("accepted: %s", text);
    }
    assert_int_equal(err.code, code);
    assert_string_equal(err.msg, message);
}

static void defaults_fill_every_field(void **state)
{
    (void)state;
    struct xf_conf *c = NULL;
    memset(&f, 0xAA, sizeof(f));
    assert_int_equal(xf_conf_load(&table, NULL, &f, &c, &err), XF_OK);
    assert_true(f.format == 1 && f.is_on && f.count == 3 && f.max_bytes == 65536 && f.rate == 0);
    assert_true(f.timeout_ms == 30000 && f.colour == 1 && f.names.len == 0 && !f.since.is_set);
    assert_true(xf_str_eq_c(f.dir, "d") && f.secret.len == 0 && f.secret.ptr != NULL);
    assert_int_equal(f.style, XF_CONF_UNSET);
    assert_false(xf_conf_is_set(c, "store.count"));
    xf_conf_free(c);
}

static void a_document_sets_values(void **state)
{
    (void)state;
    struct xf_conf *c =
        load("format = 1\n[store]\non = false\ncount = -5\nmax_bytes = \"1MiB\"\ndir = 'x'\n"
             "[net]\nrate = \"10Gbit/s\"\ntimeout = \"1m\"\ncolour = \"blue\"\n"
             "names = [\"a\", \"b\"]\nsince = 2024-01-01T00:00:00Z\nstyle = false\n");
    if (c == NULL) {
        fail_msg("%s", err.msg);
    }
    assert_true(!f.is_on && f.count == -5 && f.max_bytes == 1048576 && f.rate == 1250000000);
    assert_true(f.timeout_ms == 60000 && f.colour == 2 && f.names.len == 2);
    assert_true(xf_str_eq_c(f.names.items[1], "b") && xf_str_eq_c(f.dir, "x"));
    assert_true(f.since.is_set && !f.since.is_age && f.since.ms == 1704067200000);
    assert_int_equal(f.style, XF_CONF_OFF);
    assert_true(xf_conf_is_set(c, "store.count"));
    assert_false(xf_conf_is_set(c, "store.secret"));
    assert_int_equal(xf_conf_fail(c, &err, "store.dir", "no '%s'", "x"), XF_E_CONFIG);
    assert_string_equal(err.msg, "c.toml:6:7: no 'x'");
    (void)xf_conf_fail(c, &err, "store.secret", "needed");
    assert_string_equal(err.msg, "c.toml: needed");
    xf_conf_free(c);
    c = load("[store]\nmax_bytes = 2048\n[net]\nsince = \"30d\"\n");
    assert_non_null(c);
    assert_true(f.max_bytes == 2048 && f.since.is_age && f.since.ms == 30 * 86400000LL);
    xf_conf_free(c);
}

static void unknown_keys_name_the_nearest(void **state)
{
    (void)state;
    check_refused("[store]\ncuont = 1",
                  XF_E_CONFIG,
                  "c.toml:2:1: unknown key 'store.cuont'; did you mean 'count'?");
    check_refused("[store]\nzzzzzz = 1", XF_E_CONFIG, "c.toml:2:1: unknown key 'store.zzzzzz'");
    check_refused("[store]\ncolour = 'red'",
                  XF_E_CONFIG,
                  "c.toml:2:1: unknown key 'store.colour'; it belongs in [net]");
    check_refused(
        "count = 1", XF_E_CONFIG, "c.toml:1:1: unknown key 'count'; it belongs in [store]");
    check_refused(
        "[stor]\n", XF_E_CONFIG, "c.toml:1:2: unknown section 'stor'; did you mean 'store'?");
    check_refused("[nothing]\n", XF_E_CONFIG, "c.toml:1:2: unknown section 'nothing'");
    check_refused(
        "[[store]]\n", XF_E_CONFIG, "c.toml:1:3: 'store' is a section, written once as [store]");
    check_refused(
        "store = 1\n", XF_E_CONFIG, "c.toml:1:1: 'store' is a section, written once as [store]");
    check_refused("[store.count]\n",
                  XF_E_CONFIG,
                  "c.toml:1:8: 'store.count' must be an integer, not a table");
    check_refused(
        "[store]\n\"\\u001b[31m\" = 1", XF_E_CONFIG, "c.toml:2:1: unknown key 'store.\\x1b[31m'");
}

static void values_out_of_range_name_the_range(void **state)
{
    (void)state;
    check_refused("[store]\ncount = 11",
                  XF_E_CONFIG,
                  "c.toml:2:9: 'store.count' is 11, outside its range: -5 to 10 rows");
    check_refused("[store]\ncount = -6",
                  XF_E_CONFIG,
                  "c.toml:2:9: 'store.count' is -6, outside its range: -5 to 10 rows");
    check_refused("[store]\nmax_bytes = \"1023B\"",
                  XF_E_CONFIG,
                  "c.toml:2:13: 'store.max_bytes' is 1023B, outside its range: 1KiB to 1MiB");
    check_refused("[store]\nmax_bytes = -1",
                  XF_E_CONFIG,
                  "c.toml:2:13: 'store.max_bytes' is -1, outside its range: 1KiB to 1MiB");
    check_refused("[net]\nrate = \"1B/s\"",
                  XF_E_CONFIG,
                  "c.toml:2:8: 'net.rate' is 1B/s, outside its range: at least 8kbit/s");
    check_refused("[net]\ntimeout = \"61s\"",
                  XF_E_CONFIG,
                  "c.toml:2:11: 'net.timeout' is 61s, outside its range: 1ms to 1m");
    check_refused(
        "[net]\ncolour = \"gren\"",
        XF_E_CONFIG,
        "c.toml:2:10: 'net.colour' is \"gren\"; it must be \"red\", \"green\" or \"blue\"; did you "
        "mean \"green\"?");
    check_refused("[store]\ndir = ''", XF_E_CONFIG, "c.toml:2:7: 'store.dir' is empty");
    check_refused(
        "[store]\ndir = 'abcdef'", XF_E_CONFIG, "c.toml:2:7: 'store.dir' is longer than 5 bytes");
    check_refused("[store]\ndir = \"a\\u0000\"",
                  XF_E_CONFIG,
                  "c.toml:2:7: 'store.dir' holds a NUL character");
    check_refused("[net]\nnames = ['a','b','c','d']",
                  XF_E_CONFIG,
                  "c.toml:2:22: 'net.names' has more than 3 items");
    check_refused(
        "format = 2", XF_E_CONFIG, "c.toml:1:10: 'format' is 2, outside its range: 1 to 1");
}

static void wrong_types_are_refused(void **state)
{
    (void)state;
    check_refused("[store]\non = 1",
                  XF_E_CONFIG,
                  "c.toml:2:6: 'store.on' must be true or false, not an integer");
    check_refused("[store]\non = 'true'",
                  XF_E_CONFIG,
                  "c.toml:2:6: 'store.on' must be true or false, not a string");
    check_refused("[store]\ncount = '3'",
                  XF_E_CONFIG,
                  "c.toml:2:9: 'store.count' must be an integer, not a string");
    check_refused("[store]\ncount = 3.0",
                  XF_E_CONFIG,
                  "c.toml:2:9: 'store.count' must be an integer, not a float");
    check_refused(
        "[store]\nmax_bytes = '64 MiB'",
        XF_E_CONFIG,
        "c.toml:2:13: 'store.max_bytes' must be a size such as \"64MiB\", not \"64 MiB\"");
    check_refused(
        "[net]\ntimeout = 30",
        XF_E_CONFIG,
        "c.toml:2:11: 'net.timeout' must be a duration such as \"30s\", \"5m\" or \"12h\", not an "
        "integer");
    check_refused("[net]\nnames = 'a'",
                  XF_E_CONFIG,
                  "c.toml:2:9: 'net.names' must be a list of strings, not a string");
    check_refused("[net]\nnames = ['a', 1]",
                  XF_E_CONFIG,
                  "c.toml:2:15: 'net.names' must be a list of strings, not an integer");
    check_refused(
        "[store]\ndir = []", XF_E_CONFIG, "c.toml:2:7: 'store.dir' must be a string, not an array");
    check_refused("[net]\nsince = 2024-01-01T00:00:00",
                  XF_E_CONFIG,
                  "c.toml:2:9: 'net.since' must be an age such as \"30d\" or a date-time such as "
                  "2024-01-31T00:00:00Z, not a local date-time");
}

static void later_and_refused_keys_say_why(void **state)
{
    (void)state;
    check_refused("[sync]\nx = 1", XF_E_UNSUPPORTED, "c.toml:1:2: 'sync' is not supported yet");
    check_refused("[net]\nproxy = 1",
                  XF_E_UNSUPPORTED,
                  "c.toml:2:1: 'net.proxy' is not supported yet: use none");
    check_refused("[store]\npassword = 'SECRETSECRET'",
                  XF_E_CONFIG,
                  "c.toml:2:1: 'store.password' is not accepted: use a file");
    check_refused("password = 'SECRETSECRET'",
                  XF_E_CONFIG,
                  "c.toml:1:1: 'password' is not accepted: use a file");
}

static void a_text_sets_one_option(void **state)
{
    (void)state;
    struct xf_conf *c = NULL;
    assert_int_equal(xf_conf_load(&table, NULL, &f, &c, &err), XF_OK);
    assert_int_equal(xf_conf_set(c, "store.count", XF_STR_LIT("7"), &err), XF_OK);
    assert_int_equal(xf_conf_set(c, "store.on", XF_STR_LIT("false"), &err), XF_OK);
    assert_int_equal(xf_conf_set(c, "net.names", XF_STR_LIT("x"), &err), XF_OK);
    assert_int_equal(xf_conf_set(c, "net.names", XF_STR_LIT("y"), &err), XF_OK);
    assert_int_equal(xf_conf_set(c, "net.style", XF_STR_LIT("true"), &err), XF_OK);
    assert_true(f.count == 7 && !f.is_on && f.names.len == 2 && f.style == XF_CONF_ON);
    assert_true(xf_str_eq_c(f.names.items[0], "x") && xf_str_eq_c(f.names.items[1], "y"));
    assert_true(xf_conf_is_set(c, "store.count"));
    assert_int_equal(xf_conf_set(c, "store.count", XF_STR_LIT("70"), &err), XF_E_CONFIG);
    assert_string_equal(err.msg, "'store.count' is 70, outside its range: -5 to 10 rows");
    assert_int_equal(xf_conf_set(c, "store.count", XF_STR_LIT("7x"), &err), XF_E_CONFIG);
    assert_int_equal(f.count, 7);
    xf_conf_free(c);
}

static void a_missing_file_is_a_config_error(void **state)
{
    (void)state;
    struct xf_conf *c = NULL;
    assert_int_equal(xf_conf_load_file(&table, "/nonexistent/c.toml", &f, &c, &err), XF_E_CONFIG);
    assert_non_null(strstr(err.msg, "/nonexistent/c.toml"));
    assert_null(c);
}

/* ---- numbers with units
 * -------------------------------------------------------------------------- */

struct number_case {
    const char *text;
    int64_t value; /* -1: refused */
    const char *printed;
};

static void sizes_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"0B", 0, "0B"},
        {"1B", 1, "1B"},
        {"1kB", 1000, "1kB"},
        {"1KiB", 1024, "1KiB"},
        {"1.5KiB", 1536, "1536B"},
        {"0.5KiB", 512, "512B"},
        {"64MiB", 67108864, "64MiB"},
        {"5TiB", 5497558138880, "5TiB"},
        {"1000KiB", 1024000, "1000KiB"},
        {"2000000B", 2000000, "2MB"},
        {"9223372036854775807B", INT64_MAX, "9223372036854775807B"},
        {"9223372036854775808B", -1, NULL},
        {"8192PiB", -1, NULL},
        {"99999999999PiB", -1, NULL},
        {"0.1B", -1, NULL},
        {"1.0001KiB", -1, NULL},
        {"1.KiB", -1, NULL},
        {".5KiB", -1, NULL},
        {"64", -1, NULL},
        {"64 MiB", -1, NULL},
        {"64mib", -1, NULL},
        {"64M", -1, NULL},
        {"64KB", -1, NULL},
        {"-1B", -1, NULL},
        {"+1B", -1, NULL},
        {"01B", -1, NULL},
        {"0x1B", -1, NULL},
        {"MiB", -1, NULL},
        {"", -1, NULL},
        {"1B ", -1, NULL},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        uint64_t v = 0;
        bool ok = xf_conf_parse_size(xf_str_c(cases[i].text), &v);
        if (ok != (cases[i].value >= 0) || (ok && v != (uint64_t)cases[i].value)) {
            fail_msg("'%s' gave %d %llu", cases[i].text, ok, (unsigned long long)v);
        }
        if (ok) {
            XF_AUTO_BUF b = {0};
            xf_buf_init(&b, 0);
            xf_conf_put_size(&b, v);
            assert_string_equal(b.ptr, cases[i].printed);
        }
    }
}

static void rates_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"10Gbit/s", 1250000000, "10Gbit/s"},
        {"2.5Gbit/s", 312500000, "2500Mbit/s"},
        {"8bit/s", 1, "1B/s"},
        {"1bit/s", -1, NULL},
        {"1kbit/s", 125, "1kbit/s"},
        {"100MiB/s", 104857600, "100MiB/s"},
        {"1MB/s", 1000000, "8Mbit/s"},
        {"1B/s", 1, "1B/s"},
        {"10Gbit", -1, NULL},
        {"10Gb/s", -1, NULL},
        {"10Gbps", -1, NULL},
        {"1MiB", -1, NULL},
        {"/s", -1, NULL},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        uint64_t v = 0;
        bool ok = xf_conf_parse_rate(xf_str_c(cases[i].text), &v);
        if (ok != (cases[i].value >= 0) || (ok && v != (uint64_t)cases[i].value)) {
            fail_msg("'%s' gave %d %llu", cases[i].text, ok, (unsigned long long)v);
        }
        if (ok) {
            XF_AUTO_BUF b = {0};
            xf_buf_init(&b, 0);
            xf_conf_put_rate(&b, v);
            assert_string_equal(b.ptr, cases[i].printed);
        }
    }
}

static void durations_are_exact_or_refused(void **state)
{
    (void)state;
    static const struct number_case cases[] = {
        {"30s", 30000, "30s"},
        {"1.5s", 1500, "1500ms"},
        {"250ms", 250, "250ms"},
        {"5m", 300000, "5m"},
        {"12h", 43200000, "12h"},
        {"1w", 604800000, "7d"},
        {"0s", 0, "0s"},
        {"0.5ms", -1, NULL},
        {"30", -1, NULL},
        {"30sec", -1, NULL},
        {"1h30m", -1, NULL},
        {"-1s", -1, NULL},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        int64_t v = 0;
        bool ok = xf_conf_parse_duration(xf_str_c(cases[i].text), &v);
        if (ok != (cases[i].value >= 0) || (ok && v != cases[i].value)) {
            fail_msg("'%s' gave %d %lld", cases[i].text, ok, (long long)v);
        }
        if (ok) {
            XF_AUTO_BUF b = {0};
            xf_buf_init(&b, 0);
            xf_conf_put_duration(&b, v);
            assert_string_equal(b.ptr, cases[i].printed);
        }
    }
}

static void the_nearest_word_is_near(void **state)
{
    (void)state;
    static const char *const words[] = {"status", "submit", "run", "report", NULL};
    assert_string_equal(xf_conf_nearest(XF_STR_LIT("statsu"), words), "status");
    assert_string_equal(xf_conf_nearest(XF_STR_LIT("sumbit"), words), "submit");
    assert_string_equal(xf_conf_nearest(XF_STR_LIT("rnu"), words), "run");
    assert_null(xf_conf_nearest(XF_STR_LIT("xyzzy"), words));
    assert_null(xf_conf_nearest(XF_STR_EMPTY, words));
}

/* ---- texts from the table
 * ------------------------------------------------------------------------- */

static void help_names_type_range_default_and_text(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_conf_put_help(&table, &b);
    assert_string_equal(
        b.ptr,
        "A test.\n"
        "  format\n      integer, 1 to 1, default 1\n      Form.\n"
        "\n[store]\nThe store.\n"
        "  store.on\n      true or false, default true\n      Use it.\n"
        "  store.count\n      integer, -5 to 10 rows, default 3, may be reloaded\n      How many.\n"
        "  store.max_bytes\n      size, 1KiB to 1MiB, default 64KiB\n      How much.\n"
        "  store.dir\n      string, default d\n      Where.\n"
        "  store.secret\n      string\n      Token.\n"
        "\n[net]\nThe net.\n"
        "  net.rate\n      rate, at least 8kbit/s, default: no limit\n      Speed.\n"
        "  net.timeout\n      duration, 1ms to 1m, default 30s\n      Patience.\n"
        "  net.colour\n      \"red\", \"green\" or \"blue\", default green\n      Hue.\n"
        "  net.names\n      strings\n      Who.\n"
        "  net.since\n      age or date-time\n      When.\n"
        "  net.style\n      true or false\n      How.\n");
}

static void the_toml_form_holds_what_differs_and_reads_back(void **state)
{
    (void)state;
    static const char text[] =
        "[store]\non = false\ncount = 0\nmax_bytes = \"2KiB\"\ndir = \"a\\\"\\\\\"\n"
        "[net]\nrate = \"1Gbit/s\"\ntimeout = \"1ms\"\ncolour = \"red\"\n"
        "names = [\"x\", \"y\\u000A\"]\nsince = 2024-02-29T12:00:00.5Z\nstyle = true\n";
    struct xf_conf *c = load(text);
    assert_non_null(c);
    assert_int_equal(xf_conf_set(c, "store.secret", XF_STR_LIT("SECRETSECRET"), &err), XF_OK);
    XF_AUTO_BUF once = {0};
    XF_AUTO_BUF twice = {0};
    xf_buf_init(&once, 0);
    xf_buf_init(&twice, 0);
    xf_conf_put_toml(&table, &f, &once);
    assert_null(strstr(once.ptr, "SECRET"));
    assert_non_null(strstr(once.ptr, "since = 2024-02-29T12:00:00.500Z\n"));
    xf_conf_free(c);
    c = load(once.ptr);
    if (c == NULL) {
        fail_msg("%s\n%s", err.msg, once.ptr);
    }
    xf_conf_put_toml(&table, &f, &twice);
    assert_string_equal(once.ptr, twice.ptr);
    xf_conf_free(c);
    c = load("format = 1\n[store]\ncount = 3\n");
    assert_non_null(c);
    xf_buf_reset(&once);
    xf_conf_put_toml(&table, &f, &once);
    assert_int_equal(once.len, 0);
    xf_conf_free(c);
}

static void json_has_every_value_but_secrets(void **state)
{
    (void)state;
    struct xf_conf *c = load("[net]\nnames = ['a']\nsince = '2d'\n");
    assert_non_null(c);
    assert_int_equal(xf_conf_set(c, "store.secret", XF_STR_LIT("SECRETSECRET"), &err), XF_OK);
    struct xf_json *j = xf_conf_to_json(&table, &f);
    char *text = xf_json_dump(j, false);
    assert_string_equal(
        text,
        "{\"format\":1,\"store\":{\"on\":true,\"count\":3,\"max_bytes\":65536,\"dir\":\"d\"},"
        "\"net\":{\"rate\":0,\"timeout\":30000,\"colour\":\"green\",\"names\":[\"a\"],"
        "\"since\":\"2d\",\"style\":null}}");
    xf_xfree(text);
    xf_json_free(j);
    xf_conf_free(c);
}

static void the_template_is_toml_and_says_the_defaults(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_conf_put_template(&table, &b);
    assert_non_null(strstr(
        b.ptr, "\n# How many. (integer, -5 to 10 rows, default 3, may be reloaded)\n#count = 3\n"));
    assert_null(strstr(b.ptr, "proxy"));
    struct xf_conf *c = load(b.ptr);
    assert_non_null(c);
    xf_conf_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_fill_every_field),
        cmocka_unit_test(a_document_sets_values),
        cmocka_unit_test(unknown_keys_name_the_nearest),
        cmocka_unit_test(values_out_of_range_name_the_range),
        cmocka_unit_test(wrong_types_are_refused),
        cmocka_unit_test(later_and_refused_keys_say_why),
        cmocka_unit_test(a_text_sets_one_option),
        cmocka_unit_test(a_missing_file_is_a_config_error),
        cmocka_unit_test(sizes_are_exact_or_refused),
        cmocka_unit_test(rates_are_exact_or_refused),
        cmocka_unit_test(durations_are_exact_or_refused),
        cmocka_unit_test(the_nearest_word_is_near),
        cmocka_unit_test(help_names_type_range_default_and_text),
        cmocka_unit_test(the_toml_form_holds_what_differs_and_reads_back),
        cmocka_unit_test(json_has_every_value_but_secrets),
        cmocka_unit_test(the_template_is_toml_and_says_the_defaults),
    };
    return xf_test_run("conf", tests, NULL, NULL);
}
