/* index_test.c - the ordered index against a plain sorted array. */
#include "common/base/mem.h"
#include "common/base/rng.h"
#include "tests/lib/test.h"
#include "tests/s3d/index.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SPACE = 3000, STEPS = 60000 };

static struct xf_str key_of(unsigned n, char buf[32])
{
    int len = snprintf(buf, 32, "k%u/%x", n % 7, n * 2654435761U);

    return xf_str_n(buf, (size_t)len);
}

static unsigned order[SPACE];

static int cmp(const void *a, const void *b)
{
    char x[32];
    char y[32];

    return xf_str_cmp(key_of(*(const unsigned *)a, x), key_of(*(const unsigned *)b, y));
}

static void check_all(const struct s3d_index *x, const bool *there)
{
    struct s3d_cursor c;
    char buf[32];
    size_t count = 0;

    s3d_index_seek(x, XF_STR_EMPTY, false, &c);
    for (unsigned i = 0; i < SPACE; i++) {
        if (there[order[i]]) {
            const struct s3d_rec *r = s3d_cursor_next(&c);
            assert_non_null(r);
            assert_true(xf_str_eq(s3d_rec_key(r), key_of(order[i], buf)));
            count++;
        }
    }
    assert_null(s3d_cursor_next(&c));
    assert_int_equal(x->n_keys, count);
}

static void random_changes_agree_with_a_model(void **state)
{
    struct s3d_index x;
    struct xf_rng rng;
    bool there[SPACE] = {false};
    char buf[32];

    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    s3d_index_init(&x);
    for (unsigned i = 0; i < SPACE; i++) {
        order[i] = i;
    }
    qsort(order, SPACE, sizeof(order[0]), cmp);
    for (int step = 0; step < STEPS; step++) {
        unsigned n = (unsigned)xf_rng_below(&rng, SPACE);
        struct xf_str key = key_of(n, buf);
        bool grow = xf_rng_below(&rng, 100) < (step < STEPS / 2 ? 70U : 30U);
        if (grow) {
            bool made;
            assert_non_null(s3d_index_put(&x, key, &made));
            assert_true(made != there[n]);
            there[n] = true;
        } else {
            struct s3d_rec *r = s3d_index_take(&x, key);
            assert_true((r != NULL) == there[n]);
            s3d_rec_free(r);
            there[n] = false;
        }
        assert_true((s3d_index_get(&x, key) != NULL) == there[n]);
        if (step % 5000 == 0) {
            check_all(&x, there);
        }
    }
    check_all(&x, there);
    s3d_index_fini(&x);
}

static void a_walk_starts_at_or_behind_any_key(void **state)
{
    struct s3d_index x;
    char buf[32];
    bool made;

    (void)state;
    s3d_index_init(&x);
    for (unsigned i = 0; i < 2000; i++) { /* even numbers only */
        (void)snprintf(buf, sizeof(buf), "%06u", i * 2);
        (void)s3d_index_put(&x, xf_str_c(buf), &made);
    }
    for (unsigned i = 0; i < 4000; i++) {
        struct s3d_cursor c;
        char want[32];
        (void)snprintf(buf, sizeof(buf), "%06u", i);
        for (int after = 0; after < 2; after++) {
            unsigned next = after == 1 && i % 2 == 0 ? i + 2 : i + i % 2;
            s3d_index_seek(&x, xf_str_c(buf), after == 1, &c);
            const struct s3d_rec *r = s3d_cursor_peek(&c);
            if (next >= 4000) {
                assert_null(r);
                continue;
            }
            (void)snprintf(want, sizeof(want), "%06u", next);
            assert_non_null(r);
            assert_true(xf_str_eq_c(s3d_rec_key(r), want));
        }
    }
    s3d_index_fini(&x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes_agree_with_a_model),
        cmocka_unit_test(a_walk_starts_at_or_behind_any_key),
    };

    return xf_test_run("s3d_index", tests, NULL, NULL);
}
