/*
 * lib_test.c - the test library itself: what it claims about time, folders, programs and input.
 */
#include "tests/lib/fakeclock.h"
#include "tests/lib/gen.h"
#include "tests/lib/httpget.h"
#include "tests/lib/proc.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"
#include "tests/lib/wait.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

enum { SOON_MS = 10000 };

static void fake_clock_moves_only_when_told(void **state)
{
    (void)state;
    struct xf_fakeclock f;
    xf_fakeclock_init(&f);
    int64_t mono = xf_clock_mono_ms(&f.clock);
    assert_true(xf_clock_mono_ms(&f.clock) == mono);
    xf_fakeclock_advance(&f, 1500);
    assert_true(xf_clock_mono_ms(&f.clock) == mono + 1500);
    xf_fakeclock_set_wall(&f, 5);
    assert_true(xf_clock_wall_ms(&f.clock) == 5);
    assert_true(xf_clock_mono_ms(&f.clock) == mono + 1500);
}

static void temporary_folder_is_gone_after_free(void **state)
{
    (void)state;
    struct xf_tmpdir *d = xf_tmpdir_new();
    XF_AUTO_FREE char *path = xf_xstrdup(xf_tmpdir_path(d));
    const char *file = xf_tmpdir_write(d, "a", XF_STR_LIT("content"));
    XF_AUTO_BUF text = {0};
    xf_buf_init(&text, 0);
    assert_true(xf_tmpdir_read(file, &text));
    assert_true(xf_str_eq_c(xf_buf_view(&text), "content"));
    assert_false(xf_tmpdir_read(xf_tmpdir_file(d, "absent"), &text));
    xf_tmpdir_free(d);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void program_output_and_status_are_collected(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/sh", "-c", "echo out $WORD; echo err >&2; exit 7", NULL};
    const char *const env[] = {"WORD=here", NULL};
    XF_AUTO_BUF out = {0};
    XF_AUTO_BUF err = {0};
    xf_buf_init(&out, 0);
    xf_buf_init(&err, 0);
    assert_int_equal(xf_proc_run(argv, env, SOON_MS, &out, &err), 7);
    assert_true(xf_str_eq_c(xf_buf_view(&out), "out here\n"));
    assert_true(xf_str_eq_c(xf_buf_view(&err), "err\n"));
}

static void ready_words_are_read_and_a_kill_is_seen(void **state)
{
    (void)state;
    /* "$1" is 3, the descriptor. It stops itself, so that it cannot end before the kill. */
    const char *const argv[] = {"/bin/bash",
                                "-c",
                                "echo ready 4711 http=127.0.0.1:80 >&$1; exec 3>&-; kill -STOP $$",
                                NULL};
    struct xf_proc_opts opts = {.argv = argv, .ready_fd = true};
    XF_AUTO(xf_proc) p = xf_proc_spawn(&opts);
    xf_proc_wait_ready(p, SOON_MS);
    assert_string_equal(xf_proc_ready_word(p, "port"), "4711");
    assert_string_equal(xf_proc_ready_word(p, "http"), "127.0.0.1:80");
    assert_true(xf_proc_is_alive(p));
    xf_proc_signal(p, SIGKILL);
    assert_int_equal(xf_proc_wait(p, SOON_MS), 128 + SIGKILL);
    assert_false(xf_proc_is_alive(p));
}

static void program_that_ends_early_is_not_ready(void **state)
{
    (void)state;
    const char *const argv[] = {"/bin/sh", "-c", "exit 2", NULL};
    struct xf_proc_opts opts = {.argv = argv, .ready_fd = true};
    XF_AUTO(xf_proc) p = xf_proc_spawn(&opts);
    assert_false(xf_proc_try_ready(p, SOON_MS));
    assert_int_equal(xf_proc_wait(p, SOON_MS), 2);
}

static bool count_to_three(void *arg)
{
    int *n = arg;
    return ++*n == 3;
}

static void wait_ends_with_the_condition_or_at_the_deadline(void **state)
{
    (void)state;
    int n = 0;
    assert_true(xf_wait_for(count_to_three, &n, SOON_MS));
    assert_int_equal(n, 3);
    assert_false(xf_wait_for(count_to_three, &n, 5));
}

static void no_listener_is_no_answer(void **state)
{
    (void)state;
    /* A bound socket that does not listen keeps its port and refuses connections. */
    XF_AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(a);
    assert_int_equal(bind(fd, (const struct sockaddr *)&a, sizeof(a)), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &len), 0);
    XF_AUTO_BUF url = {0};
    xf_buf_init(&url, 0);
    xf_buf_putf(&url, "http://127.0.0.1:%u/", (unsigned)ntohs(a.sin_port));
    assert_int_equal(xf_httpget(url.ptr, NULL), -1);
}

static void generated_keys_are_short_enough_utf8(void **state)
{
    (void)state;
    struct xf_rng r;
    xf_rng_init(&r, xf_test_seed());
    for (int i = 0; i < 2000; i++) {
        XF_AUTO_BUF key = {0};
        xf_buf_init(&key, 0);
        xf_gen_key(&r, &key, 40);
        assert_in_range(key.len, 1, 40);
        assert_true(xf_str_is_utf8(xf_buf_view(&key)));
        uint64_t v = xf_gen_between(&r, 5, 9);
        assert_in_range(v, 5, 9);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fake_clock_moves_only_when_told),
        cmocka_unit_test(temporary_folder_is_gone_after_free),
        cmocka_unit_test(program_output_and_status_are_collected),
        cmocka_unit_test(ready_words_are_read_and_a_kill_is_seen),
        cmocka_unit_test(program_that_ends_early_is_not_ready),
        cmocka_unit_test(wait_ends_with_the_condition_or_at_the_deadline),
        cmocka_unit_test(no_listener_is_no_answer),
        cmocka_unit_test(generated_keys_are_short_enough_utf8),
    };
    return xf_test_run("lib", tests, NULL, NULL);
}
