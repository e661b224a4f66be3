/*
 * spec_fuzz.c - any bytes as a migrate.toml: refused with a message, or a spec whose canonical text
 * is a job equal to it. The table-driven loader (common/base/conf) is under the same test.
 */
#include "common/job/spec.h"
#include "tests/lib/fuzz.h"

static void check_canonical(const struct xf_job_spec *s)
{
    XF_AUTO_BUF once = {0};
    XF_AUTO_BUF twice = {0};
    struct xf_err err;
    struct xf_job_spec *parsed = NULL;
    xf_buf_init(&once, 0);
    xf_buf_init(&twice, 0);
    xf_job_spec_put_canonical(s, &once);
    XF_ASSERT(xf_job_spec_parse(xf_buf_view(&once), XF_STR_LIT("again"), &parsed, &err) == XF_OK);
    XF_AUTO(xf_job_spec) again = parsed;
    xf_job_spec_put_canonical(again, &twice);
    XF_ASSERT(xf_str_eq(xf_buf_view(&once), xf_buf_view(&twice)));
    XF_ASSERT(again->source.n_urls == s->source.n_urls);
    XF_ASSERT(xf_str_eq(again->source.urls[0].prefix, s->source.urls[0].prefix));
    XF_ASSERT(again->source.is_path_style == s->source.is_path_style);
    XF_ASSERT(again->multipart_threshold == s->multipart_threshold);
}

static void check_keys(const struct xf_job_spec *s)
{
    XF_AUTO_BUF key = {0};
    XF_AUTO_BUF mapped = {0};
    struct xf_err err;
    xf_buf_init(&key, 0);
    xf_buf_init(&mapped, 0);
    for (size_t i = 0; i < s->source.n_urls; i++) {
        xf_buf_reset(&key);
        xf_buf_put(&key, s->source.urls[i].prefix);
        xf_buf_put_c(&key, "d//e/[f]*\\?");
        enum xf_code code = xf_job_spec_map_key(s, i, xf_buf_view(&key), &mapped, &err);
        XF_ASSERT((code == XF_OK && mapped.len > 0 && mapped.len <= XF_JOB_KEY_MAX) ||
                  code == XF_E_LIMIT);
    }
    (void)xf_job_spec_selects(s, XF_STR_LIT("d//e/[f]*\\?"), 7, 1704067200000, 1704067300000);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xf_err err;
    struct xf_job_spec *s = NULL;
    enum xf_code code = xf_job_spec_parse(xf_str_n(data, size), XF_STR_LIT("fuzz.toml"), &s, &err);
    if (code == XF_OK) {
        check_canonical(s);
        check_keys(s);
    } else {
        XF_ASSERT(s == NULL && (code == XF_E_CONFIG || code == XF_E_UNSUPPORTED));
        XF_ASSERT(strncmp(err.msg, "fuzz.toml:", 10) == 0);
    }
    xf_job_spec_free(s);
    return 0;
}
