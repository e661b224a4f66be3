/*
 * job_property_test.c - laws of job specs: globs agree with a plain recursive matcher, quantities
 * print and read back to themselves, mapping is a cut and a join, and ages split every moment in
 * two.
 */
#include "common/base/conf.h"
#include "common/base/rng.h"
#include "common/job/glob.h"
#include "common/job/spec.h"
#include "tests/lib/test.h"

#include <stdio.h>

enum { ROUNDS = 200000, TEXT_MAX = 10 };

static struct xf_rng rng;
static struct xf_err err;

static int setup(void **state)
{
    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    return 0;
}

/* A pattern of ASCII without sets and escapes, the obvious way. */
static bool slow_match(const char *p, const char *t)
{
    if (*p == '\0') {
        return *t == '\0';
    }
    if (*p == '*') {
        return slow_match(p + 1, t) || (*t != '\0' && slow_match(p, t + 1));
    }
    return *t != '\0' && (*p == '?' || *p == *t) && slow_match(p + 1, t + 1);
}

static void random_word(char *out, const char *alphabet, size_t min)
{
    size_t len = min + (size_t)xf_rng_below(&rng, TEXT_MAX - min);
    for (size_t i = 0; i < len; i++) {
        out[i] = alphabet[xf_rng_below(&rng, strlen(alphabet))];
    }
    out[len] = '\0';
}

static void globs_agree_with_the_plain_matcher(void **state)
{
    (void)state;
    size_t matched = 0;
    for (int i = 0; i < ROUNDS; i++) {
        char pattern[TEXT_MAX + 1];
        char text[TEXT_MAX + 1];
        random_word(pattern, "ab/**?", 1);
        random_word(text, "ab/", 0);
        bool want = slow_match(pattern, text);
        if (xf_glob_match(xf_str_c(pattern), xf_str_c(text)) != want) {
            fail_msg("pattern '%s', text '%s'", pattern, text);
        }
        matched += want ? 1U : 0U;
    }
    assert_true(matched > ROUNDS / 100 && matched < ROUNDS - ROUNDS / 100);
}

/* A random number of random length, as large as a value may be. */
static uint64_t random_amount(void)
{
    return xf_rng_u64(&rng) >> (1 + xf_rng_below(&rng, 63));
}

static void quantities_read_back_to_themselves(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t v = random_amount();
        uint64_t size = 1;
        uint64_t rate = 1;
        int64_t ms = 1;
        xf_buf_reset(&b);
        xf_conf_put_size(&b, v);
        bool ok = xf_conf_parse_size(xf_buf_view(&b), &size) && size == v;
        xf_buf_reset(&b);
        xf_conf_put_rate(&b, v);
        ok = ok && xf_conf_parse_rate(xf_buf_view(&b), &rate) && rate == v;
        xf_buf_reset(&b);
        xf_conf_put_duration(&b, (int64_t)v);
        ok = ok && xf_conf_parse_duration(xf_buf_view(&b), &ms) && ms == (int64_t)v;
        if (!ok) {
            fail_msg("%llu", (unsigned long long)v);
        }
    }
}

static struct xf_job_spec *random_spec(char *from, char *to)
{
    char text[512];
    struct xf_job_spec *s = NULL;
    random_word(from, "ab/.", 0);
    random_word(to, "ab/.", 0);
    (void)snprintf(text,
                   sizeof(text),
                   "[source]\nurl = 's3://src/%s'\n[destination]\nurl = 's3://dst/%s'\n",
                   from,
                   to);
    if (xf_job_spec_parse(xf_str_c(text), XF_STR_LIT("m.toml"), &s, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    return s;
}

static void mapping_is_a_cut_and_a_join(void **state)
{
    (void)state;
    XF_AUTO_BUF out = {0};
    xf_buf_init(&out, 0);
    for (int i = 0; i < ROUNDS / 100; i++) {
        char from[TEXT_MAX + 1];
        char to[TEXT_MAX + 1];
        char rest[TEXT_MAX + 1];
        char key[2 * TEXT_MAX + 1];
        char want[2 * TEXT_MAX + 1];
        XF_AUTO(xf_job_spec) s = random_spec(from, to);
        random_word(rest, "ab/.\n*", 1);
        (void)snprintf(key, sizeof(key), "%s%s", from, rest);
        (void)snprintf(want, sizeof(want), "%s%s", to, rest);
        assert_int_equal(xf_job_spec_map_key(s, 0, xf_str_c(key), &out, &err), XF_OK);
        assert_string_equal(out.ptr, want);
    }
}

static void ages_split_every_moment_in_two(void **state)
{
    (void)state;
    struct xf_job_spec *newer = NULL;
    struct xf_job_spec *older = NULL;
#define SIDES "[source]\nurl = 's3://src'\n[destination]\nurl = 's3://dst'\n[select]\n"
    assert_int_equal(
        xf_job_spec_parse(XF_STR_LIT(SIDES "newer_than = '1h'\n"), XF_STR_LIT("m"), &newer, &err),
        XF_OK);
    assert_int_equal(
        xf_job_spec_parse(XF_STR_LIT(SIDES "older_than = '1h'\n"), XF_STR_LIT("m"), &older, &err),
        XF_OK);
    for (int i = 0; i < ROUNDS; i++) {
        int64_t start = (int64_t)xf_rng_below(&rng, 4000000000000);
        int64_t mtime = start - 3600000 + (int64_t)xf_rng_below(&rng, 5) - 2;
        bool a = xf_job_spec_selects(newer, XF_STR_LIT("k"), 1, mtime, start);
        bool b = xf_job_spec_selects(older, XF_STR_LIT("k"), 1, mtime, start);
        assert_true(a != b);
    }
    xf_job_spec_free(newer);
    xf_job_spec_free(older);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(globs_agree_with_the_plain_matcher),
        cmocka_unit_test(quantities_read_back_to_themselves),
        cmocka_unit_test(mapping_is_a_cut_and_a_join),
        cmocka_unit_test(ages_split_every_moment_in_two),
    };
    return xf_test_run("job_property", tests, setup, NULL);
}
