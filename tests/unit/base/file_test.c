/* file_test.c - caps, atomic replace and locks of local files. */
#include "common/base/file.h"
#include "common/base/mem.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"

#include <unistd.h>

static void a_file_is_replaced_whole_and_read_under_its_cap(void **state)
{
    XF_AUTO(xf_tmpdir) dir = xf_tmpdir_new();
    XF_AUTO_BUF got = {0};
    struct xf_err err;

    (void)state; /* no fixture */
    xf_buf_init(&got, 0);
    const char *path = xf_tmpdir_file(dir, "f");
    assert_int_equal(xf_file_read(path, 100, &got, &err), XF_E_NOT_FOUND);
    assert_int_equal(xf_file_replace(path, XF_STR_LIT("old"), 0600, &err), XF_OK);
    assert_int_equal(xf_file_replace(path, XF_STR_LIT("newer"), 0600, &err), XF_OK);
    assert_int_equal(xf_file_read(path, 5, &got, &err), XF_OK);
    assert_string_equal(got.ptr, "newer");
    xf_buf_reset(&got);
    assert_int_equal(xf_file_read(path, 4, &got, &err), XF_E_LIMIT);
}

static void a_lock_is_exclusive_until_it_is_closed(void **state)
{
    XF_AUTO(xf_tmpdir) dir = xf_tmpdir_new();
    struct xf_err err;
    int first = -1;
    int second = -1;

    (void)state; /* no fixture */
    const char *path = xf_tmpdir_file(dir, "lock");
    assert_int_equal(xf_file_lock(path, &first, &err), XF_OK);
    assert_int_equal(xf_file_lock(path, &second, &err), XF_E_LOCKED);
    assert_non_null(strstr(err.msg, path));
    (void)close(first); /* unlocks */
    assert_int_equal(xf_file_lock(path, &second, &err), XF_OK);
    (void)close(second); /* unlocks */
}

static void directories_are_made_and_a_file_in_the_way_is_told(void **state)
{
    XF_AUTO(xf_tmpdir) dir = xf_tmpdir_new();
    struct xf_err err;

    (void)state; /* no fixture */
    assert_int_equal(xf_file_mkdirs(xf_tmpdir_file(dir, "a/b/c"), 0700, &err), XF_OK);
    assert_int_equal(xf_file_mkdirs(xf_tmpdir_file(dir, "a/b/c"), 0700, &err), XF_OK);
    const char *f = xf_tmpdir_write(dir, "file", XF_STR_LIT("x"));
    assert_int_equal(xf_file_mkdirs(f, 0700, &err), XF_E_IO);
    assert_int_equal(xf_file_mkdirs(xf_tmpdir_file(dir, "file/below"), 0700, &err), XF_E_IO);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_is_replaced_whole_and_read_under_its_cap),
        cmocka_unit_test(a_lock_is_exclusive_until_it_is_closed),
        cmocka_unit_test(directories_are_made_and_a_file_in_the_way_is_told),
    };

    return xf_test_run("file", tests, NULL, NULL);
}
