/*
 * spec_fx.h - parsing a job in a test, and how it was refused.
 */
#ifndef XF_TESTS_UNIT_JOB_SPEC_FX_H
#define XF_TESTS_UNIT_JOB_SPEC_FX_H

#include "common/job/spec.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define SOURCE      "[source]\nurl = \"s3://a/x/\"\n"
#define DESTINATION "[destination]\nurl = \"s3://b/y/\"\n"
#define BOTH        SOURCE DESTINATION

static struct xf_err err;

static inline struct xf_job_spec *parse(const char *text)
{
    struct xf_job_spec *s = NULL;
    enum xf_code code = xf_job_spec_parse(xf_str_c(text), XF_STR_LIT("m.toml"), &s, &err);
    assert_true((code == XF_OK) == (s != NULL));
    return s;
}

static inline struct xf_job_spec *parse_ok(const char *text)
{
    struct xf_job_spec *s = parse(text);
    if (s == NULL) {
        fail_msg("%s", err.msg);
    }
    return s;
}

/* Refused with exit status 2, and exactly this message. */
static inline void check_refused(const char *text, const char *message)
{
    struct xf_job_spec *s = parse(text);
    if (s != NULL) {
        fail_msg("accepted: %s", text);
    }
    assert_int_equal(xf_code_exit(err.code), 2);
    assert_string_equal(err.msg, message);
}

#endif
