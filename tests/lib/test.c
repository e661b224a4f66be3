/*
 * test.c - the seed of a test run, printed and replayable, and the filter.
 */
#include "tests/lib/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static uint64_t seed;
static int seed_known;

uint64_t xf_test_seed(void)
{
    if (!seed_known) {
        const char *text = getenv("XF_SEED");
        if (text != NULL && text[0] != '\0') {
            char *end = NULL;
            errno = 0;
            seed = strtoull(text, &end, 0);
            if (errno != 0 || *end != '\0') {
                fprintf(stderr, "XF_SEED is not a number: '%s'\n", text);
                exit(2);
            }
        } else {
            struct timespec ts;
            (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail with this clock */
            seed = (uint64_t)ts.tv_sec * 1000003U + (uint64_t)ts.tv_nsec;
        }
        seed_known = 1;
    }
    return seed;
}

void xf_test_start(const char *group)
{
    printf("%s: XF_SEED=%llu\n", group, (unsigned long long)xf_test_seed());
    (void)fflush(stdout); /* a child of fork must not print it again */
    const char *filter = getenv("XF_TEST_FILTER");
    if (filter != NULL && filter[0] != '\0') {
        cmocka_set_test_filter(filter);
    }
}
