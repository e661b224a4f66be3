/*
 * test.h - the only file that includes cmocka, which needs four system headers before it.
 *
 * A test program declares `static void name(void **state)` functions and lists them:
 *     int main(void)
 *     {
 *         const struct CMUnitTest tests[] = {cmocka_unit_test(name)};
 *         return xf_test_run("area", tests, NULL, NULL);
 *     }
 * XF_TEST_FILTER in the environment (cmocka pattern) runs a part of them.
 */
#ifndef XF_TESTS_LIB_TEST_H
#define XF_TESTS_LIB_TEST_H

/* cmocka needs this order */
/* clang-format off */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
/* clang-format on */

/* Runs the tests under one group name; setup and teardown are the group's, or NULL. */
#define xf_test_run(group, tests, setup, teardown) \
    (xf_test_start(group), cmocka_run_group_tests_name(group, tests, setup, teardown))

/* Reads XF_TEST_FILTER and XF_SEED, prints the seed; called by xf_test_run. */
void xf_test_start(const char *group);

/*
 * The seed of this run: XF_SEED of the environment when set, else from the clock. Printed once at
 * the start, so that a failure can be replayed with XF_SEED=<value>.
 */
uint64_t xf_test_seed(void);

#endif
