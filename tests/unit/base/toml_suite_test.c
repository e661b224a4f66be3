/*
 * toml_suite_test.c - the published TOML 1.0 conformance files, when they are on this machine.
 *
 * XF_TOML_TEST_DIR names the folder (valid/, invalid/ and the list files-toml-1.0.0). Every valid
 * file must decode to its JSON, every invalid one must be refused with a place. Without the folder
 * the test says so on stderr and ends with 77, which ctest shows as skipped; toml_test.c has own
 * cases for that machine.
 */
#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/toml.h"
#include "tests/lib/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>

enum { FILE_MAX = 1024 * 1024, EXIT_SKIPPED = 77, VALID_MIN = 150, INVALID_MIN = 300 };

static const char *suite_dir;

static void read_file(const char *name, struct xf_buf *out)
{
    char path[4096];
    struct xf_err err;
    xf_buf_reset(out);
    int n = snprintf(path, sizeof(path), "%s/%s", suite_dir, name);
    assert_true(n > 0 && (size_t)n < sizeof(path));
    if (xf_file_read(path, FILE_MAX, out, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
}

/* ---- comparing with the tagged JSON -------------------------------------------------------------
 */

/* The JSON reader takes no NUL characters: on both sides U+F8FF stands for them. */
static void mask_json(struct xf_buf *json)
{
    char *at = json->ptr;
    while ((at = strstr(at, "\\u0000")) != NULL) {
        if (at == json->ptr || at[-1] != '\\') {
            memcpy(at, "\\uF8FF", 6);
        }
        at += 6;
    }
}

static bool same_text(struct xf_str toml, const char *want)
{
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, FILE_MAX);
    for (size_t i = 0; i < toml.len; i++) {
        if (toml.ptr[i] == '\0') {
            xf_buf_put_c(&b, "\xEF\xA3\xBF");
        } else {
            xf_buf_put_byte(&b, toml.ptr[i]);
        }
    }
    return xf_str_eq_c(xf_buf_view(&b), want);
}

static const struct xf_toml_entry *find_masked(const struct xf_toml_value *table, const char *name)
{
    for (size_t i = 0; i < table->table.len; i++) {
        if (same_text(table->table.entries[i].key, name)) {
            return &table->table.entries[i];
        }
    }
    return NULL;
}

static bool same(const struct xf_toml_value *v, const struct xf_json *want);

static bool same_fraction(const char *frac, int nanosecond)
{
    int want = 0;
    int unit = 100000000;
    if (*frac == '.') {
        for (frac++; *frac >= '0' && *frac <= '9'; frac++, unit /= 10) {
            want += (*frac - '0') * unit;
        }
    }
    return want == nanosecond;
}

static bool same_date(const char *text, const struct xf_toml_time *t)
{
    char got[64];
    (void)snprintf(got, sizeof(got), "%04d-%02d-%02d", t->year, t->month, t->day);
    return strncmp(got, text, 10) == 0;
}

static bool same_time(const char *text, const struct xf_toml_time *t)
{
    char got[64];
    (void)snprintf(got, sizeof(got), "%02d:%02d:%02d", t->hour, t->minute, t->second);
    return strncmp(got, text, 8) == 0 && same_fraction(text + 8, t->nanosecond);
}

/* Both in Unix seconds, by the C library. */
static bool same_instant(const char *text, const struct xf_toml_time *t)
{
    struct tm tm = {0};
    const char *rest = strptime(text, "%Y-%m-%dT%H:%M:%S", &tm);
    assert_non_null(rest);
    if (!same_fraction(rest, t->nanosecond)) {
        return false;
    }
    const char *sign = strpbrk(rest, "+-");
    int hours = 0;
    int minutes = 0;
    if (sign != NULL) {
        assert_int_equal(sscanf(sign + 1, "%2d:%2d", &hours, &minutes), 2);
    }
    int64_t offset_s = (hours * 60 + minutes) * 60;
    int64_t want = (int64_t)timegm(&tm) - (sign != NULL && *sign == '-' ? -offset_s : offset_s);
    return want * 1000 + t->nanosecond / 1000000 == xf_toml_time_ms(t);
}

static bool same_float(const char *text, double f)
{
    double want = strtod(text, NULL);
    return (isnan(want) && isnan(f)) || want == f;
}

static bool same_scalar(const struct xf_toml_value *v, const char *type, const char *text)
{
    switch (v->type) {
    case XF_TOML_STRING: return strcmp(type, "string") == 0 && same_text(v->str, text);
    case XF_TOML_INT: {
        int64_t want = 0;
        return strcmp(type, "integer") == 0 && xf_str_i64(xf_str_c(text), &want) && want == v->i;
    }
    case XF_TOML_FLOAT: return strcmp(type, "float") == 0 && same_float(text, v->f);
    case XF_TOML_BOOL:
        return strcmp(type, "bool") == 0 && strcmp(text, v->b ? "true" : "false") == 0;
    case XF_TOML_DATETIME: return strcmp(type, "datetime") == 0 && same_instant(text, &v->time);
    case XF_TOML_LOCAL_DATETIME:
        return strcmp(type, "datetime-local") == 0 && same_date(text, &v->time) &&
               same_time(text + 11, &v->time);
    case XF_TOML_LOCAL_DATE: return strcmp(type, "date-local") == 0 && same_date(text, &v->time);
    case XF_TOML_LOCAL_TIME: return strcmp(type, "time-local") == 0 && same_time(text, &v->time);
    case XF_TOML_ARRAY:
    case XF_TOML_TABLE:
    case XF_TOML_TYPE_N: break;
    }
    return false;
}

static bool same_table(const struct xf_toml_value *v, const struct xf_json *want)
{
    const struct xf_json *member = NULL;
    size_t n = 0;
    for (const char *name = xf_json_next(want, NULL, &member); name != NULL;
         name = xf_json_next(want, name, &member)) {
        const struct xf_toml_entry *e = find_masked(v, name);
        if (e == NULL || !same(e->value, member)) {
            return false;
        }
        n++;
    }
    return n == v->table.len;
}

static bool is_tagged(const struct xf_json *want)
{
    const struct xf_json *member = NULL;
    size_t n = 0;
    for (const char *name = xf_json_next(want, NULL, &member); name != NULL;
         name = xf_json_next(want, name, &member)) {
        n++;
    }
    return n == 2 && xf_json_text(xf_json_get(want, "type")) != NULL &&
           xf_json_text(xf_json_get(want, "value")) != NULL;
}

static bool same(const struct xf_toml_value *v, const struct xf_json *want)
{
    if (v->type == XF_TOML_TABLE) {
        return xf_json_is_object(want) && !is_tagged(want) && same_table(v, want);
    }
    if (v->type == XF_TOML_ARRAY) {
        if (!xf_json_is_array(want) || xf_json_len(want) != v->array.len) {
            return false;
        }
        for (size_t i = 0; i < v->array.len; i++) {
            if (!same(v->array.items[i], xf_json_at(want, i))) {
                return false;
            }
        }
        return true;
    }
    return xf_json_is_object(want) && is_tagged(want) &&
           same_scalar(v,
                       xf_json_text(xf_json_get(want, "type")),
                       xf_json_text(xf_json_get(want, "value")));
}

/* ---- the files ----------------------------------------------------------------------------------
 */

static bool check_valid(const char *name)
{
    XF_AUTO_BUF text = {0};
    XF_AUTO_BUF json = {0};
    xf_buf_init(&text, FILE_MAX);
    xf_buf_init(&json, FILE_MAX);
    read_file(name, &text);
    struct xf_err err;
    struct xf_toml *doc = NULL;
    if (xf_toml_parse(xf_buf_view(&text), xf_str_c(name), &doc, &err) != XF_OK) {
        fprintf(stderr, "valid file refused: %s\n", err.msg);
        return false;
    }
    char json_name[512];
    (void)snprintf(json_name, sizeof(json_name), "%.*s.json", (int)(strlen(name) - 5), name);
    read_file(json_name, &json);
    mask_json(&json);
    struct xf_json *want = NULL;
    if (xf_json_parse(xf_buf_view(&json), &want, &err) != XF_OK) {
        fail_msg("%s: %s", json_name, err.msg);
    }
    bool ok = same(xf_toml_root(doc), want);
    if (!ok) {
        fprintf(stderr, "decodes to something else than its JSON: %s\n", name);
    }
    xf_json_free(want);
    xf_toml_free(doc);
    return ok;
}

static bool check_invalid(const char *name)
{
    XF_AUTO_BUF text = {0};
    xf_buf_init(&text, FILE_MAX);
    read_file(name, &text);
    struct xf_err err;
    struct xf_toml *doc = NULL;
    if (xf_toml_parse(xf_buf_view(&text), xf_str_c(name), &doc, &err) == XF_OK) {
        fprintf(stderr, "invalid file accepted: %s\n", name);
        xf_toml_free(doc);
        return false;
    }
    assert_null(doc);
    unsigned line = 0;
    unsigned col = 0;
    if (err.code != XF_E_CONFIG || strncmp(err.msg, name, strlen(name)) != 0 ||
        sscanf(err.msg + strlen(name), ":%u:%u: ", &line, &col) != 2 || line == 0 || col == 0) {
        fprintf(stderr, "error without a place: %s\n", err.msg);
        return false;
    }
    return true;
}

/* Runs the listed files of one folder; gives how many, all of them right. */
static size_t run_folder(const char *folder, bool (*check)(const char *name))
{
    XF_AUTO_BUF list = {0};
    xf_buf_init(&list, FILE_MAX);
    read_file("files-toml-1.0.0", &list);
    struct xf_str rest = xf_buf_view(&list);
    struct xf_str line;
    size_t n = 0;
    size_t bad = 0;
    while (xf_str_cut(&rest, '\n', &line)) {
        if (!xf_str_starts(line, xf_str_c(folder)) || !xf_str_ends(line, XF_STR_LIT(".toml"))) {
            continue;
        }
        char *name = xf_str_dup(line);
        bad += check(name) ? 0U : 1U;
        n++;
        xf_xfree(name);
    }
    printf("%s %zu files, %zu wrong\n", folder, n, bad);
    assert_int_equal(bad, 0);
    return n;
}

static void every_valid_file_decodes_to_its_json(void **state)
{
    (void)state;
    assert_true(run_folder("valid/", check_valid) >= VALID_MIN);
}

static void every_invalid_file_is_refused_with_a_place(void **state)
{
    (void)state;
    assert_true(run_folder("invalid/", check_invalid) >= INVALID_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_valid_file_decodes_to_its_json),
        cmocka_unit_test(every_invalid_file_is_refused_with_a_place),
    };
    suite_dir = getenv("XF_TOML_TEST_DIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    struct stat st;
    if (suite_dir == NULL || stat(suite_dir, &st) != 0) {
        fprintf(
            stderr,
            "SKIPPED: the TOML conformance files are not at XF_TOML_TEST_DIR='%s'; get toml-test "
            "and configure with -DXF_TOML_TEST_DIR=DIR\n",
            suite_dir != NULL ? suite_dir : "");
        return EXIT_SKIPPED;
    }
    return xf_test_run("toml_suite", tests, NULL, NULL);
}
