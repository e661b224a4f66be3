/* store_split_test.c - a shard in two: no key is lost, none is in both. */
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

static enum xf_code split(struct kit *k, int64_t like, const char *point)
{
    struct xf_store_op *op = kit_op(XF_OP_SHARD_SPLIT);

    op->in.shard_split = (struct xf_in_shard_split){.like = like, .point = xf_str_c(point)};
    return kit_do(k, op);
}

/* Pages of kit_page(): keys "<cursor>-00000" and on, then "<cursor>-large-00000". */
static void a_page_drops_what_is_beyond_the_shards_end(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t whole = kit_shard(k, job);

    assert_int_equal(kit_page(k, whole, "", "c1", 5, 1), XF_OK);
    assert_int_equal(split(k, whole, "c2-00002"), XF_OK);
    int64_t rest = k->last.out.shard_split.shard;
    assert_int_equal(k->last.out.shard_split.whole, whole);
    assert_int_equal(k->last.out.shard_split.hi.len, 0);
    assert_int_equal(kit_page(k, whole, "c1", "c2", 9, 1), XF_OK); /* asked for before the split */
    assert_true(k->last.out.page_commit.is_done);
    assert_int_equal(k->last.out.page_commit.listed, 3);
    assert_int_equal(kit_page(k, whole, "c1", "c2", 9, 1), XF_OK); /* sent twice */
    assert_true(k->last.out.page_commit.repeated);
    assert_true(k->last.out.page_commit.is_done);
    assert_int_equal(kit_page(k, whole, "c2", "c3", 1, 0), XF_E_STALE);
    assert_int_equal(kit_page(k, rest, "c2-00002", "c3", 4, 0), XF_OK);
    assert_false(k->last.out.page_commit.is_done);
    struct xf_job_row row = kit_row(k, job);
    assert_int_equal(row.n.listed, 6 + 3 + 4);
    assert_int_equal(row.shards_open, 1);
    kit_last_page(k, rest, "c3");
    assert_int_equal(kit_row(k, job).shards_open, 0);
}

static void a_split_goes_to_the_shard_that_has_the_point(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t first = kit_shard(k, job);

    assert_int_equal(split(k, first, "m"), XF_OK);
    int64_t second = k->last.out.shard_split.shard;
    assert_int_equal(split(k, first, "t"), XF_OK); /* behind the first one's end by now */
    assert_int_equal(k->last.out.shard_split.whole, second);
    int64_t third = k->last.out.shard_split.shard;
    assert_int_equal(split(k, third, "f"), XF_OK);
    assert_int_equal(k->last.out.shard_split.whole, first);
    assert_true(xf_str_eq(k->last.out.shard_split.hi, xf_str_n("m", 2)));
    assert_int_equal(kit_row(k, job).shards_open, 4);
}

static void the_same_split_again_is_the_same_shard(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t whole = kit_shard(k, job);

    assert_int_equal(split(k, whole, "m"), XF_OK);
    int64_t rest = k->last.out.shard_split.shard;
    assert_int_equal(split(k, whole, "m"), XF_OK);
    assert_int_equal(k->last.out.shard_split.shard, rest);
    assert_int_equal(k->last.out.shard_split.whole, whole);
    assert_int_equal(kit_row(k, job).shards_open, 2);
}

static void what_was_listed_already_is_not_split_off(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t whole = kit_shard(k, job);

    assert_int_equal(kit_page(k, whole, "", "m", 5, 0), XF_OK);
    assert_int_equal(split(k, whole, "m"), XF_E_STALE);
    assert_int_equal(split(k, whole, "c"), XF_E_STALE);
    assert_int_equal(split(k, whole, ""), XF_E_INVAL);
    assert_int_equal(split(k, whole + 99, "x"), XF_E_NOT_FOUND);
    kit_last_page(k, whole, "m");
    assert_int_equal(split(k, whole, "x"), XF_E_STALE);
    assert_int_equal(kit_row(k, job).shards_open, 0);
}

static void a_stopped_job_is_not_split(void **state)
{
    struct kit *k = *state;
    int64_t job = kit_job(k, "one", 1);
    int64_t whole = kit_shard(k, job);
    struct xf_store_op *op = kit_op(XF_OP_JOB_STOP);

    op->in.job_stop = (struct xf_in_job_stop){.job = job, .end = XF_JOB_CANCELLED};
    kit_must(k, op);
    assert_int_equal(split(k, whole, "m"), XF_E_CANCELLED);
}

static int setup(void **state)
{
    static struct kit k;

    kit_init(&k, NULL);
    kit_open(&k);
    *state = &k;
    return 0;
}

static int teardown(void **state)
{
    kit_check(*state);
    kit_fini(*state);
    return 0;
}

#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        T(a_page_drops_what_is_beyond_the_shards_end),
        T(a_split_goes_to_the_shard_that_has_the_point),
        T(the_same_split_again_is_the_same_shard),
        T(what_was_listed_already_is_not_split_off),
        T(a_stopped_job_is_not_split),
    };
    return xf_test_run("store_split", tests, NULL, NULL);
}
