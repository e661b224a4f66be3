/* log_test.c - a log line stays one line, whatever a value holds, and tells no secret. */
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "tests/lib/test.h"

#include <stdlib.h>
#include <unistd.h>

static int pipe_fds[2];

static int redirect(void **state)
{
    (void)state; /* no fixture */
    assert_int_equal(pipe(pipe_fds), 0);
    xf_log_set_fd(pipe_fds[1]);
    xf_log_set_level(XF_LOG_INFO);
    return 0;
}

static int restore(void **state)
{
    (void)state; /* no fixture */
    xf_log_set_fd(STDERR_FILENO);
    xf_log_set_json(false);
    (void)close(pipe_fds[0]); /* test pipe */
    (void)close(pipe_fds[1]); /* test pipe */
    return 0;
}

static const char *line(void)
{
    static char text[4096];
    ssize_t n = read(pipe_fds[0], text, sizeof(text) - 1);

    assert_true(n > 0);
    text[n] = '\0';
    return text;
}

static void logfmt_is_one_line_with_escaped_values(void **state)
{
    (void)state; /* the pipe is global */
    XF_INFO("part.copied",
            xf_f_str("key", XF_STR_LIT("a \"b\"\n\x1b[31m")),
            xf_f_u64("part_no", 3),
            xf_f_bool("last", true),
            xf_f_secret("token"));
    const char *l = line();
    assert_non_null(strstr(l,
                           " level=info event=part.copied key=\"a \\\"b\\\"\\\\n\\\\x1b[31m\" "
                           "part_no=3 last=true token=***\n"));
    assert_ptr_equal(strchr(l, '\n'), l + strlen(l) - 1);
}

static void json_lines_parse(void **state)
{
    struct xf_err err;
    XF_AUTO(xf_json) j = NULL;

    (void)state; /* the pipe is global */
    xf_log_set_json(true);
    XF_WARN("odd.seen",
            xf_f_str("key", XF_STR_LIT("q\"\\\n\xff")),
            xf_f_f64("rate", 1.5),
            xf_f_secret("token"));
    assert_int_equal(xf_json_parse(xf_str_c(line()), &j, &err), XF_OK);
    assert_string_equal(xf_json_get_c(j, "event", ""), "odd.seen");
    assert_string_equal(xf_json_get_c(j, "token", ""), "***");
    assert_string_equal(xf_json_get_c(j, "key", ""), "q\"\\\\\\n\\xff");
}

static void levels_below_the_set_one_are_silent(void **state)
{
    (void)state; /* the pipe is global */
    XF_DEBUG("not.seen", xf_f_u64("n", 1));
    XF_INFO("was.seen", xf_f_u64("n", 2));
    assert_non_null(strstr(line(), "event=was.seen n=2"));
}

static void a_bad_environment_is_told(void **state)
{
    struct xf_err err;

    (void)state; /* the pipe is global */
    assert_int_equal(setenv("XFER_LOG", "loud", 1), 0);
    assert_int_equal(xf_log_init_env(&err), XF_E_CONFIG);
    assert_non_null(strstr(err.msg, "XFER_LOG is 'loud'"));
    assert_int_equal(setenv("XFER_LOG", "warn", 1), 0);
    assert_int_equal(xf_log_init_env(&err), XF_OK);
    assert_false(xf_log_wants(XF_LOG_INFO));
    assert_int_equal(unsetenv("XFER_LOG"), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(logfmt_is_one_line_with_escaped_values, redirect, restore),
        cmocka_unit_test_setup_teardown(json_lines_parse, redirect, restore),
        cmocka_unit_test_setup_teardown(levels_below_the_set_one_are_silent, redirect, restore),
        cmocka_unit_test_setup_teardown(a_bad_environment_is_told, redirect, restore),
    };

    return xf_test_run("log", tests, NULL, NULL);
}
