/*
 * golden_test.c - the bytes of one example of each message, of a manifest and of a result, and the
 * tables of PROTOCOL.md, against files. `proto_golden_test --bless` writes the files again.
 *
 * A change of golden bytes is a change of the wire or of the store: it needs a version.
 */
#include "common/base/file.h"
#include "proto/codec.h"
#include "proto/manifest.h"
#include "proto/msg.h"
#include "proto/result.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_SCALE = 1000, LINE_BYTES = 32, FILE_MAX = 4 * 1024 * 1024 };

static bool bless;

static char *source_path(const char *name)
{
    const char *root = getenv("XF_SOURCE_DIR");
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    xf_buf_putf(&b, "%s/%s", root != NULL ? root : "../../..", name);
    return xf_buf_take(&b);
}

static void compare(const char *name, struct xf_str now)
{
    XF_AUTO_FREE char *path = source_path(name);
    XF_AUTO_BUF kept = {0};
    struct xf_err err = {0};

    xf_buf_init(&kept, FILE_MAX);
    if (bless) {
        assert_int_equal(xf_file_replace(path, now, 0644, &err), XF_OK);
        return;
    }
    assert_true(xf_tmpdir_read(path, &kept));
    if (!xf_str_eq(xf_buf_view(&kept), now)) {
        fail_msg("%s has changed; if that is meant, give it a version and run with --bless", name);
    }
}

/* ---- one example of each message, by its table ---- */

static void example(const struct xf_msg_desc *d, char *m, struct xf_arena *a);

static void example_field(const struct xf_msg_field *f, char *m, struct xf_arena *a)
{
    uint64_t v = (uint64_t)f->key * NUMBER_SCALE;
    uint32_t narrow;
    double x = (double)f->key + 0.5;
    bool flag = true;
    struct xf_str s;
    uint32_t n = 2;
    char *entries;

    v = v > f->cap ? f->cap : v;
    narrow = (uint32_t)v;
    switch (f->type) {
    case XF_MSG_T_u32: memcpy(m + f->at, &narrow, sizeof(narrow)); break;
    case XF_MSG_T_u64:
    case XF_MSG_T_i64: memcpy(m + f->at, &v, sizeof(v)); break;
    case XF_MSG_T_f64: memcpy(m + f->at, &x, sizeof(x)); break;
    case XF_MSG_T_flag: memcpy(m + f->at, &flag, sizeof(flag)); break;
    case XF_MSG_T_str:
    case XF_MSG_T_bin:
    case XF_MSG_T_secret:
        s = xf_str_sub(xf_str_c(f->name), 0, f->cap);
        memcpy(m + f->at, &s, sizeof(s));
        break;
    case XF_MSG_T_LIST:
        entries = xf_arena_calloc(a, n, f->list()->size);
        for (uint32_t i = 0; i < n; i++) {
            example(f->list(), entries + i * f->list()->size, a);
        }
        memcpy(m + f->at, &entries, sizeof(entries));
        memcpy(m + f->n_at, &n, sizeof(n));
        break;
    }
}

static void example(const struct xf_msg_desc *d, char *m, struct xf_arena *a)
{
    for (size_t i = 0; i < d->n; i++) {
        example_field(&d->fields[i], m, a);
    }
}

static void put_hex_lines(struct xf_buf *out, struct xf_str bytes)
{
    for (size_t at = 0; at < bytes.len; at += LINE_BYTES) {
        struct xf_str line = xf_str_sub(bytes, at, at + LINE_BYTES);

        xf_buf_put_c(out, "    ");
        xf_buf_put_hex(out, line.ptr, line.len);
        xf_buf_put_byte(out, '\n');
    }
}

static void put_example(struct xf_buf *out, const struct xf_msg_desc *d, bool full)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF bytes = {0};
    char *m = xf_arena_calloc(&a, 1, d->size);
    struct xf_err err = {0};

    xf_buf_init(&bytes, 0);
    if (full) {
        example(d, m, &a);
    }
    assert_int_equal(xf_codec_encode(d, m, &bytes, &err), XF_OK);
    xf_buf_putf(out, "%s%s\n", d->name, full ? "" : " (all zero)");
    put_hex_lines(out, xf_buf_view(&bytes));
}

static void message_bytes_are_as_they_were(void **state)
{
    XF_AUTO_BUF out = {0};

    (void)state;
    xf_buf_init(&out, FILE_MAX);
#define EXAMPLE(name, table)                         \
    put_example(&out, xf_msg_##name##_desc(), true); \
    put_example(&out, xf_msg_##name##_desc(), false);
    XF_MSG_ALL(EXAMPLE)
#undef EXAMPLE
    compare("tests/golden/proto/messages.txt", xf_buf_view(&out));
}

/* ---- manifests and results ---- */

static void manifest_bytes_are_as_they_were(void **state)
{
    const struct xf_object objects[] = {
        {XF_STR_LIT("logs/2026/01/a.gz"),
         0,
         XF_STR_LIT("d41d8cd98f00b204e9800998ecf8427e"),
         1767225600000,
         XF_STR_LIT("STANDARD"),
         XF_STR_LIT(""),
         0,
         false},
        {XF_STR_LIT("logs/2026/01/b\xff.gz"),
         5497558138880,
         XF_STR_LIT("9b2cf535f27731c974343645a3985328-313"),
         1767225599000,
         XF_STR_LIT("GLACIER"),
         XF_STR_LIT("3/L4kqtJlcpXroDTDmJ+rmSpXd3dIbrHY"),
         3,
         true},
        {XF_STR_LIT("z"),
         1,
         XF_STR_LIT("odd-Etag"),
         0,
         XF_STR_LIT("STANDARD"),
         XF_STR_LIT(""),
         1,
         false},
    };
    struct xf_manifest_enc enc;
    XF_AUTO_BUF bytes = {0};
    XF_AUTO_BUF out = {0};
    struct xf_err err = {0};

    (void)state;
    xf_buf_init(&bytes, 0);
    xf_buf_init(&out, 0);
    xf_manifest_enc_init(&enc, 2);
    for (size_t i = 0; i < XF_ARRAY_LEN(objects); i++) {
        assert_int_equal(xf_manifest_add(&enc, &objects[i], &err), XF_OK);
    }
    xf_manifest_finish(&enc, &bytes);
    xf_manifest_enc_fini(&enc);
    put_hex_lines(&out, xf_buf_view(&bytes));
    compare("tests/golden/proto/manifest.txt", xf_buf_view(&out));
}

static void result_bytes_are_as_they_were(void **state)
{
    const struct xf_result copied = {.outcome = XF_OUTCOME_COPIED,
                                     .level = XF_LEVEL_ETAG,
                                     .mode = XF_MODE_RELAY,
                                     .flags = XF_RESULT_TAGS_DROPPED,
                                     .attempts = 2,
                                     .size_bytes = 1000,
                                     .through_bytes = 2000,
                                     .etag = XF_STR_LIT("9b2cf535f27731c974343645a3985328"),
                                     .version_id = XF_STR_LIT("v1")};
    const struct xf_result failed = {.outcome = XF_OUTCOME_FAILED,
                                     .code = XF_E_DENIED,
                                     .http_status = 403,
                                     .attempts = 1,
                                     .s3_code = XF_STR_LIT("AccessDenied"),
                                     .message = XF_STR_LIT("cannot read 'x'")};
    const struct xf_result skipped = {
        .outcome = XF_OUTCOME_SKIPPED, .skip = XF_SKIP_SAME, .level = XF_LEVEL_SIZE};
    const struct xf_result tried = {.attempts = 4};
    XF_AUTO_RESULT_SET set = {0};
    XF_AUTO_BUF bytes = {0};
    XF_AUTO_BUF out = {0};

    (void)state;
    xf_buf_init(&bytes, 0);
    xf_buf_init(&out, 0);
    xf_result_set_init(&set, 500);
    assert_true(xf_result_set_put(&set, 0, &copied));
    assert_true(xf_result_set_put(&set, 1, &failed));
    assert_true(xf_result_set_put(&set, 3, &skipped));
    assert_true(xf_result_set_put(&set, 499, &tried));
    xf_result_set_encode(&set, &bytes);
    put_hex_lines(&out, xf_buf_view(&bytes));
    compare("tests/golden/proto/result.txt", xf_buf_view(&out));
}

/* ---- PROTOCOL.md ---- */

static const char *type_name(const struct xf_msg_field *f)
{
    static const char *const names[] = {"u32", "u64", "i64", "f64", "flag", "str", "bin", "str"};

    return f->type == XF_MSG_T_LIST ? f->list()->name : names[f->type];
}

static void put_limit(struct xf_buf *out, const struct xf_msg_field *f)
{
    if (f->type == XF_MSG_T_f64) {
        xf_buf_putf(out, "%g", f->fcap);
    } else if (f->cap == UINT64_MAX || f->cap == UINT32_MAX || f->cap == INT64_MAX) {
        xf_buf_put_c(out, "-");
    } else {
        xf_buf_put_u64(out, f->cap);
    }
}

static void put_table(struct xf_buf *out, const struct xf_msg_desc *d)
{
    xf_buf_putf(
        out, "\n### %s\n| key | field | type | limit | |\n|---|---|---|---|---|\n", d->name);
    for (size_t i = 0; i < d->n; i++) {
        const struct xf_msg_field *f = &d->fields[i];

        xf_buf_putf(out,
                    "| %u | %s%s | %s%s | ",
                    f->key,
                    f->name,
                    f->required ? "" : " (optional)",
                    f->type == XF_MSG_T_LIST ? "list of " : "",
                    type_name(f));
        put_limit(out, f);
        xf_buf_putf(out, " | %s |\n", f->text);
    }
}

static void put_kinds(struct xf_buf *out)
{
    static const char *const channels[] = {"ctl", "beat", "lease", "poll"};
    const struct xf_kind_info *k;

    xf_buf_put_c(
        out, "| kind | number | role | channel | request | reply |\n|---|---|---|---|---|---|\n");
    for (size_t i = 0; (k = xf_kind_at(i)) != NULL; i++) {
        bool is_agent = k->role == XF_ROLE_AGENT;

        xf_buf_putf(out,
                    "| %s | %u | %s | %s | %s | %s |\n",
                    k->name,
                    k->kind,
                    is_agent ? "agent" : "operator",
                    is_agent ? channels[k->channel] : "-",
                    k->request()->name,
                    k->reply()->name);
    }
}

/* Replace what stands between the marker's line and the next "<!-- end -->". */
static void splice(struct xf_buf *doc, const char *marker, struct xf_str inside)
{
    XF_AUTO_BUF out = {0};
    char *start = strstr(doc->ptr, marker);
    char *line;
    char *end;

    assert_non_null(start);
    line = strchr(start, '\n');
    assert_non_null(line);
    end = strstr(line, "<!-- end -->");
    assert_non_null(end);
    xf_buf_init(&out, FILE_MAX);
    xf_buf_put_mem(&out, doc->ptr, (size_t)(line + 1 - doc->ptr));
    xf_buf_put(&out, inside);
    xf_buf_put_c(&out, end);
    xf_buf_reset(doc);
    xf_buf_put(doc, xf_buf_view(&out));
}

static void protocol_document_has_the_tables(void **state)
{
    XF_AUTO_FREE char *path = source_path("proto/PROTOCOL.md");
    XF_AUTO_BUF doc = {0};
    XF_AUTO_BUF part = {0};

    (void)state;
    xf_buf_init(&doc, FILE_MAX);
    xf_buf_init(&part, FILE_MAX);
    assert_true(xf_tmpdir_read(path, &doc));
    put_kinds(&part);
    splice(&doc, "<!-- kinds:", xf_buf_view(&part));
    xf_buf_reset(&part);
#define TABLE(name, table) put_table(&part, xf_msg_##name##_desc());
    XF_MSG_ALL(TABLE)
#undef TABLE
    splice(&doc, "<!-- messages:", xf_buf_view(&part));
    compare("proto/PROTOCOL.md", xf_buf_view(&doc));
}

/* Every key, kind and name once; what a reader of bytes relies on. */
static void keys_ascend_and_fit_the_reader(void **state)
{
    const struct xf_kind_info *k;

    (void)state;
#define CHECK(name, table)                                                 \
    for (size_t i = 0; i < xf_msg_##name##_desc()->n; i++) {               \
        const struct xf_msg_field *f = &xf_msg_##name##_desc()->fields[i]; \
        assert_in_range(f->key, i > 0 ? f[-1].key + 1 : 1, 63);            \
    }
    XF_MSG_ALL(CHECK)
#undef CHECK
    for (size_t i = 0; (k = xf_kind_at(i)) != NULL; i++) {
        assert_ptr_equal(xf_kind_find(k->kind), k);
    }
    assert_null(xf_kind_find(0));
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(message_bytes_are_as_they_were),
        cmocka_unit_test(manifest_bytes_are_as_they_were),
        cmocka_unit_test(result_bytes_are_as_they_were),
        cmocka_unit_test(protocol_document_has_the_tables),
        cmocka_unit_test(keys_ascend_and_fit_the_reader),
    };

    bless = argc == 2 && strcmp(argv[1], "--bless") == 0;
    return xf_test_run("proto golden", tests, NULL, NULL);
}
