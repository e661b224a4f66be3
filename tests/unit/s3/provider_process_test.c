/* provider_process_test.c - programs that print keys, and those that do not end as they should. */
#include "common/base/clock.h"
#include "common/rt/thread.h"
#include "common/s3/provider_int.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/wait.h"

#include <unistd.h>

#define KEYS                                                                               \
    "echo "                                                                                \
    "'{\\\"Version\\\":1,\\\"AccessKeyId\\\":\\\"AKIAPRINTED\\\",\\\"SecretAccessKey\\\":" \
    "\\\"s\\\"}'"

/* A test that hangs would be ended by its limit; these are given up within some seconds. */
enum { SOON_MS = 20 * 1000 };

static enum xf_code fetch(const char *script, xf_creds_stop stop, char *key, struct xf_err *err)
{
    XF_AUTO_BUF command = {0};
    struct xf_creds *creds = NULL;
    int64_t began_ms = xf_clock_mono_ms(xf_clock_real());

    xf_buf_putf(&command, "/bin/sh -c \"%s\"", script);
    enum xf_code rc = xf_creds_fetch_process(xf_buf_view(&command), "config:1", stop, &creds, err);
    assert_true(xf_clock_mono_ms(xf_clock_real()) - began_ms < SOON_MS);
    if (rc == XF_OK) {
        XF_AUTO_FREE char *text = xf_str_dup(xf_creds_access_key(creds));
        assert_true(strlen(text) < 32);
        memcpy(key, text, strlen(text) + 1);
        xf_creds_unref(creds);
    }
    return rc;
}

static void keys_are_taken_from_what_is_printed(void **state)
{
    struct xf_err err;
    char key[32];

    (void)state; /* no fixture */
    assert_int_equal(fetch(KEYS, NULL, key, &err), XF_OK);
    assert_string_equal(key, "AKIAPRINTED");
}

static void who_holds_the_output_behind_it_is_not_waited_for(void **state)
{
    struct xf_err err;
    char key[32];

    (void)state; /* no fixture */
    assert_int_equal(fetch("sleep 50 & " KEYS, NULL, key, &err), XF_OK);
    assert_string_equal(key, "AKIAPRINTED");
}

struct stopping {
    atomic_bool stop;
    const char *mark; /* the program makes this file when its output is closed */
};

static bool is_marked(void *arg)
{
    const struct stopping *s = arg;

    return access(s->mark, F_OK) == 0;
}

static void stop_when_marked(void *arg)
{
    struct stopping *s = arg;

    (void)xf_wait_for(
        is_marked, s, SOON_MS); /* then the fetch has taken too long, and the test fails */
    atomic_store(&s->stop, true);
}

static void one_that_closes_its_output_and_stays_is_ended_by_a_stop(void **state)
{
    XF_AUTO(xf_tmpdir) dir = xf_tmpdir_new();
    XF_AUTO_BUF mark = {0};
    XF_AUTO_BUF script = {0};
    struct xf_thread thread = {.started = false};
    struct stopping s = {.mark = NULL};
    struct xf_err err;
    char key[32];

    (void)state; /* no fixture */
    xf_buf_putf(&mark, "%s/closed", xf_tmpdir_path(dir));
    xf_buf_putf(&script, "exec >&-; touch %s; sleep 50", mark.ptr);
    s.mark = mark.ptr;
    atomic_init(&s.stop, false);
    assert_int_equal(xf_thread_start(&thread, "stop", stop_when_marked, &s, &err), XF_OK);
    assert_int_equal(fetch(script.ptr, &s.stop, key, &err), XF_E_CREDS);
    xf_thread_join(&thread);
}

static void an_endless_one_is_bounded(void **state)
{
    struct xf_err err;
    char key[32];

    (void)state; /* no fixture */
    assert_int_equal(fetch("yes", NULL, key, &err), XF_E_CREDS);
    assert_non_null(strstr(err.msg, "wrote more than"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_are_taken_from_what_is_printed),
        cmocka_unit_test(who_holds_the_output_behind_it_is_not_waited_for),
        cmocka_unit_test(one_that_closes_its_output_and_stays_is_ended_by_a_stop),
        cmocka_unit_test(an_endless_one_is_bounded),
    };

    return xf_test_run("s3/provider_process", tests, NULL, NULL);
}
