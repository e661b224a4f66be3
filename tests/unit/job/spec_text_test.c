/*
 * spec_text_test.c - the texts of a spec: canonical form and hash, JSON, template, help, notes.
 *
 * Template and help are golden files; `spec_text_test --bless` writes them again.
 */
#include "common/base/file.h"
#include "common/base/json.h"
#include "tests/unit/job/spec_fx.h"

#include <dirent.h>
#include <stdlib.h>

enum { GOLDEN_MAX = 256 * 1024 };

static bool bless;

static void canonical(const char *text, struct xf_buf *out)
{
    XF_AUTO(xf_job_spec) s = parse_ok(text);
    xf_buf_reset(out);
    xf_job_spec_put_canonical(s, out);
}

static void check_same_job(const char *a, const char *b, bool same)
{
    XF_AUTO(xf_job_spec) x = parse_ok(a);
    XF_AUTO(xf_job_spec) y = parse_ok(b);
    char hash_x[65];
    char hash_y[65];
    xf_job_spec_hash(x, hash_x);
    xf_job_spec_hash(y, hash_y);
    assert_int_equal(strlen(hash_x), 64);
    if ((strcmp(hash_x, hash_y) == 0) != same) {
        fail_msg("%s\nand\n%s", a, b);
    }
}

static void equal_jobs_have_one_hash_however_they_are_written(void **state)
{
    (void)state;
    check_same_job(
        BOTH, "# comment\n" DESTINATION SOURCE "path_style = false\n[copy]\nmode = 'auto'\n", true);
    check_same_job(
        BOTH, BOTH "[copy]\npart_size = 67108864\nmultipart_threshold = \"64MiB\"\n", true);
    check_same_job(BOTH, "[source]\nurls = ['s3://a/x/']\n" DESTINATION, true);
    check_same_job(BOTH "endpoint = 'http://H:80/'\n",
                   BOTH "endpoint = 'http://h'\npath_style = true\n",
                   true);
    check_same_job(BOTH "storage_class = 'keep'\n", BOTH, true);
    check_same_job(BOTH "[retry]\nattempts = 8\n", BOTH, true);
    check_same_job(BOTH "[retry]\nattempts = 9\n", BOTH, false);
    check_same_job(
        BOTH "endpoint = 'http://h'\npath_style = false\n", BOTH "endpoint = 'http://h'\n", false);
    check_same_job(BOTH "[select]\nmax_size = \"0B\"\n", BOTH, false);
    check_same_job(
        BOTH "[select]\ninclude = ['a', 'b']\n", BOTH "[select]\ninclude = ['b', 'a']\n", false);
    check_same_job(BOTH, "[source]\nurl = \"s3://a/x\"\n" DESTINATION, false);
}

static void the_canonical_text_reads_back_to_itself(void **state)
{
    (void)state;
    XF_AUTO_BUF once = {0};
    XF_AUTO_BUF twice = {0};
    xf_buf_init(&once, 0);
    xf_buf_init(&twice, 0);
    canonical("[job]\nname = \"q \\\" \\\\ \xC3\xA9\"\nvanished = 'fail'\n"
              "[source]\nurls = ['s3://a//x', 's3://a/\"y\\']\nendpoint = "
              "'https://[::1]:8443/b'\npath_style = false\n"
              "[destination]\nurls = ['s3://b/1', 's3://b/2']\naccess_key_env = "
              "'A'\nsecret_key_env = 'B'\n"
              "[select]\nexclude = ['[a-z]*']\nnewer_than = '12h'\nmax_size = '0B'\n"
              "[copy]\npart_size = '100MB'\nmultipart_threshold = '5GiB'\nmetadata = false\n"
              "[limits]\nbandwidth = '1Gbit/s'\nin_flight = 1\n",
              &once);
    canonical(once.ptr, &twice);
    assert_string_equal(once.ptr, twice.ptr);
    assert_non_null(strstr(once.ptr, "urls = [\"s3://a//x\", \"s3://a/\\\"y\\\\\"]\n"));
    assert_non_null(strstr(once.ptr, "path_style = false\n"));
    assert_non_null(strstr(once.ptr, "max_size = \"0B\"\n"));
}

static void json_shows_what_is_in_force(void **state)
{
    (void)state;
    XF_AUTO(xf_job_spec) s =
        parse_ok(SOURCE "endpoint = 'http://h'\n" DESTINATION "[copy]\npart_size = '5MiB'\n");
    XF_AUTO(xf_json) j = xf_job_spec_to_json(s);
    const struct xf_json *source = xf_json_get(j, "source");
    assert_string_equal(xf_json_get_c(source, "url", ""), "s3://a/x/");
    assert_string_equal(xf_json_text(xf_json_at(xf_json_get(source, "urls"), 0)), "s3://a/x/");
    assert_true(xf_json_get_bool(source, "path_style", false));
    const struct xf_json *copy = xf_json_get(j, "copy");
    assert_string_equal(xf_json_get_c(copy, "mode", ""), "auto");
    assert_true(xf_json_get_u64(copy, "multipart_threshold", 0) == 5242880);
    assert_string_equal(xf_json_get_c(xf_json_get(j, "job"), "name", ""), "a to b");
}

static void check_golden(const char *name, struct xf_str got)
{
    char path[4096];
    const char *root = getenv("XF_SOURCE_DIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    assert_non_null(root);
    (void)snprintf(path, sizeof(path), "%s/tests/golden/job/%s", root, name);
    if (bless) {
        assert_int_equal(xf_file_replace(path, got, 0644, &err), XF_OK);
    }
    XF_AUTO_BUF want = {0};
    xf_buf_init(&want, GOLDEN_MAX);
    if (xf_file_read(path, GOLDEN_MAX, &want, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    assert_string_equal(got.ptr, want.ptr);
}

static void the_template_is_the_golden_one_and_parses(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_job_spec_put_template(&b);
    check_golden("template.toml", xf_buf_view(&b));
    XF_AUTO(xf_job_spec) s = parse_ok(b.ptr);
    assert_true(xf_str_eq_c(s->name, "logs-to-oregon"));
}

/* Each line that is a setting behind a '#', tried alone: the examples are right too. */
static void every_example_of_the_template_is_accepted_or_needs_another(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_job_spec_put_template(&b);
    size_t tried = 0;
    for (size_t i = 0; i + 1 < b.len; i++) {
        if (b.ptr[i] == '#' && b.ptr[i + 1] != ' ') {
            b.ptr[i] = ' ';
            struct xf_job_spec *s = parse(b.ptr);
            if (s == NULL && strstr(err.msg, "not both") == NULL &&
                strstr(err.msg, "together") == NULL && strstr(err.msg, "beside it") == NULL) {
                fail_msg("%s", err.msg);
            }
            xf_job_spec_free(s);
            b.ptr[i] = '#';
            tried++;
        }
    }
    assert_true(tried > 30);
}

static void the_help_is_the_golden_one(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_job_spec_put_help(&b);
    check_golden("help.txt", xf_buf_view(&b));
}

/* What README and examples/ tell people to write must be a job. */
static void every_example_file_is_a_job(void **state)
{
    (void)state;
    char path[4096];
    char name[8192];
    size_t n = 0;
    const char *root = getenv("XF_SOURCE_DIR"); /* NOLINT(concurrency-mt-unsafe): one thread */
    assert_non_null(root);
    (void)snprintf(path, sizeof(path), "%s/examples", root);
    DIR *d = opendir(path);
    assert_non_null(d);
    const struct dirent *e = NULL;
    while ((e = readdir(d)) != NULL) { /* NOLINT(concurrency-mt-unsafe): one thread */
        XF_AUTO_BUF text = {0};
        xf_buf_init(&text, GOLDEN_MAX);
        (void)snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
        if (!xf_str_ends(xf_str_c(name), XF_STR_LIT(".toml"))) {
            continue;
        }
        assert_int_equal(xf_file_read(name, GOLDEN_MAX, &text, &err), XF_OK);
        if (strstr(text.ptr, "[source]") == NULL) { /* a daemon's configuration */
            continue;
        }
        xf_job_spec_free(parse_ok(text.ptr));
        n++;
    }
    assert_int_equal(closedir(d), 0);
    assert_true(n > 0);
}

static void c038_notes_say_what_a_prefix_takes_and_how_keys_map(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    XF_AUTO(xf_job_spec) open =
        parse_ok("[source]\nurl = 's3://a/path'\n[destination]\nurl = 's3://b/out'\n");
    xf_job_spec_put_notes(open, &b);
    assert_string_equal(
        b.ptr,
        "takes every key of bucket 'a' that begins with 'path'\n"
        "  warning: the prefix does not end with '/', so it takes longer names too\n"
        "  for example s3://a/path/dir/file -> s3://b/out/dir/file\n"
        "  for example s3://a/path2/file -> s3://b/out2/file\n");
    xf_buf_reset(&b);
    XF_AUTO(xf_job_spec) closed =
        parse_ok("[source]\nurl = 's3://a'\n[destination]\nurl = 's3://b/out/'\n");
    xf_job_spec_put_notes(closed, &b);
    assert_string_equal(b.ptr,
                        "takes every key of bucket 'a'\n"
                        "  for example s3://a/dir/file -> s3://b/out/dir/file\n"
                        "  for example s3://a/file -> s3://b/out/file\n");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(equal_jobs_have_one_hash_however_they_are_written),
        cmocka_unit_test(the_canonical_text_reads_back_to_itself),
        cmocka_unit_test(json_shows_what_is_in_force),
        cmocka_unit_test(the_template_is_the_golden_one_and_parses),
        cmocka_unit_test(every_example_of_the_template_is_accepted_or_needs_another),
        cmocka_unit_test(the_help_is_the_golden_one),
        cmocka_unit_test(every_example_file_is_a_job),
        cmocka_unit_test(c038_notes_say_what_a_prefix_takes_and_how_keys_map),
    };
    bless = argc == 2 && strcmp(argv[1], "--bless") == 0;
    return xf_test_run("spec_text", tests, NULL, NULL);
}
