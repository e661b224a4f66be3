/* containers_test.c - the hash map against a plain array, and the list. */
#include "common/base/arena.h"
#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/rng.h"
#include "tests/lib/test.h"

enum { KEYS = 500 };

struct item {
    uint64_t id;
    bool in;
};

static void the_map_agrees_with_an_array_under_random_work(void **state)
{
    struct item items[KEYS] = {0};
    struct xf_map map;
    struct xf_rng rng;
    size_t live = 0;

    (void)state; /* no fixture */
    xf_map_init(&map);
    xf_rng_init(&rng, xf_test_seed());
    for (int step = 0; step < 20000; step++) {
        struct item *it = &items[xf_rng_below(&rng, KEYS)];
        it->id = (uint64_t)(it - items);
        if (xf_rng_below(&rng, 2) == 0) {
            void *old = xf_map_put(&map, xf_map_key_u64(&it->id), it);
            assert_true((old != NULL) == it->in);
            live += it->in ? 0 : 1;
            it->in = true;
        } else {
            void *old = xf_map_take(&map, xf_map_key_u64(&it->id));
            assert_true((old != NULL) == it->in);
            live -= it->in ? 1 : 0;
            it->in = false;
        }
        assert_int_equal(map.len, live);
    }
    size_t seen = 0;
    for (size_t at = 0; xf_map_next(&map, &at) != NULL;) {
        seen++;
    }
    assert_int_equal(seen, live);
    for (size_t i = 0; i < KEYS; i++) {
        items[i].id = i;
        assert_ptr_equal(xf_map_get(&map, xf_map_key_u64(&items[i].id)),
                         items[i].in ? &items[i] : NULL);
    }
    xf_map_fini(&map);
}

struct node {
    int n;
    struct xf_list link;
};

static void a_list_keeps_order_and_lets_go_twice(void **state)
{
    struct xf_list list;
    struct node nodes[3] = {{.n = 0}, {.n = 1}, {.n = 2}};
    int sum = 0;

    (void)state; /* no fixture */
    xf_list_init(&list);
    assert_true(xf_list_is_empty(&list));
    for (int i = 0; i < 3; i++) {
        xf_list_push_back(&list, &nodes[i].link);
    }
    xf_list_remove(&nodes[1].link);
    xf_list_remove(&nodes[1].link);
    xf_list_push_front(&list, &nodes[1].link);
    int expected[] = {1, 0, 2};
    XF_LIST_FOREACH (at, &list) {
        assert_int_equal(XF_CONTAINER_OF(at, struct node, link)->n, expected[sum]);
        sum++;
        xf_list_remove(at);
    }
    assert_int_equal(sum, 3);
    assert_null(xf_list_pop_front(&list));
}

static void an_arena_is_used_again_after_its_reset(void **state)
{
    (void)state;
    XF_AUTO_ARENA a = {0};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 1000; i++) {
            struct xf_str s = xf_arena_dup(&a, XF_STR_LIT("some text"));
            assert_true(xf_str_eq_c(s, "some text"));
        }
        char *large = xf_arena_calloc(&a, 1, 100000);
        assert_int_equal(large[99999], 0);
        xf_arena_reset(&a);
    }
    (void)xf_arena_calloc(&a, 1, 1 << 20);
    xf_arena_fini(&a);
    (void)xf_arena_calloc(&a, 1, 1 << 20); /* the only chunk is a large one */
    xf_arena_reset(&a);
    assert_null(a.chunks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_is_used_again_after_its_reset),
        cmocka_unit_test(the_map_agrees_with_an_array_under_random_work),
        cmocka_unit_test(a_list_keeps_order_and_lets_go_twice),
    };

    return xf_test_run("containers", tests, NULL, NULL);
}
