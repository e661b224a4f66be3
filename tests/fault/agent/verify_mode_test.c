/* verify_mode_test.c - what each [verify] mode finds, and what it costs. */
#include "tests/fault/agent/rig.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define JOB(mode, verify)                                                     \
    "[copy]\nif_exists = \"overwrite\"\npart_size = \"5MiB\"\nmode = \"" mode \
    "\"\n[verify]\nmode = \"" verify "\"\n"

static void put_one(struct rig *rig)
{
    rig_put(rig, 0, "{\"bucket\":\"src\",\"key\":\"k\",\"size\":4000,\"seed\":1}");
}

static void c052_size_finds_what_a_store_kept_only_half(void **state)
{
    (void)state;
    static const char *const jobs[] = {JOB("server", "size"), JOB("relay", "size")};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, jobs[i], NULL);
        put_one(&rig);
        rig_faults(&rig,
                   "[{\"op\":[\"CopyObject\",\"PutObject\"],\"count\":1,\"action\":{\"store_size\":"
                   "2000}}]");
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
        assert_int_equal(rig.told[0].r.attempts, 2);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void full_finds_a_flipped_bit_behind_a_good_etag(void **state)
{
    (void)state;
    static const char *const jobs[] = {JOB("server", "full"), JOB("relay", "full")};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, jobs[i], NULL);
        put_one(&rig);
        rig_faults(&rig,
                   "[{\"op\":[\"CopyObject\",\"PutObject\"],\"count\":1,\"action\":{\"corrupt\":"
                   "true}}]");
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
        assert_int_equal(rig.told[0].r.level, XF_LEVEL_FULL);
        assert_int_equal(rig.told[0].r.attempts, 2);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void full_reads_large_objects_back(void **state)
{
    (void)state;
    static const char *const jobs[] = {JOB("server", "full"), JOB("relay", "full")};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, jobs[i], NULL);
        rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":15728650,\"seed\":4}");
        assert_int_equal(rig_upload(&rig, "big"), XF_WORK_DONE);
        assert_int_equal(rig.upload.r.level, XF_LEVEL_FULL);
        rig_close(&rig);
    }
}

static void checksum_reads_back_only_what_no_etag_proves(void **state)
{
    (void)state;
    static const char *const args[] = {"--object", "src/parts:6MiB:part=5MiB", NULL};
    struct rig rig;

    rig_open(
        &rig, false, "[copy]\nif_exists = \"overwrite\"\n[verify]\nmode = \"checksum\"\n", args);
    put_one(&rig);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.level, XF_LEVEL_CHECKSUM); /* k */
    assert_int_equal(rig.told[1].r.level, XF_LEVEL_FULL);     /* parts: both sides were read */
    assert_int_equal(rig_count(&rig, 0, "GetObject"), 2);
    rig_close(&rig);
}

static void none_asks_nothing_more(void **state)
{
    (void)state;
    static const char *const args[] = {"--object", "src/parts:6MiB:part=5MiB", NULL};
    struct rig rig;

    rig_open(&rig, false, "[copy]\nif_exists = \"overwrite\"\n[verify]\nmode = \"none\"\n", args);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
    assert_int_equal(rig.told[0].r.level, XF_LEVEL_NONE);
    assert_int_equal(rig_count(&rig, 0, "HeadObject"), 0);
    rig_close(&rig);
}

static void c049_what_nothing_tells_apart_is_compared_byte_by_byte(void **state)
{
    (void)state;
    static const char *const args[] = {"--object", "src/parts:6MiB:part=5MiB", NULL};

    for (int i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, "", args);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        if (i == 1) { /* the same size at the same second, other bytes */
            rig_put(&rig,
                    1,
                    "{\"bucket\":\"dst\",\"key\":\"parts\",\"size\":6291456,\"seed\":99,"
                    "\"last_modified\":1790000000}");
        } else {
            rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"other\",\"body\":\"x\"}");
        }
        struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 1);
        XF_AUTO(xf_json) j = rig_get(&rig, 0, "/-/healthz");
        assert_non_null(j);
        w->manifest.objects[0].mtime_ms = i == 1 ? INT64_C(1790000000) * 1000 : 1000;
        assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
        assert_int_equal(rig.told[0].r.outcome, i == 1 ? XF_OUTCOME_COPIED : XF_OUTCOME_SKIPPED);
        assert_int_equal(rig_count(&rig, 0, "GetObject"), i == 1 ? 2 : 0);
        rig_close(&rig);
    }
}

static void a_recheck_takes_no_time_for_a_proof(void **state)
{
    (void)state;
    static const char *const args[] = {"--object", "src/parts:6MiB:part=5MiB", NULL};
    struct rig rig;

    rig_open(&rig, false, "[copy]\nif_exists = \"overwrite\"\n", args);
    /* an older version of the same size that came late: newer than the source by its time */
    rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"parts\",\"size\":6291456,\"seed\":99}");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_RECHECK, 1)), XF_WORK_DONE);
    assert_int_equal(rig.told[0].r.outcome, XF_OUTCOME_COPIED);
    rig_must_be_equal(&rig, false);
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 1);
    /* and when the bytes are right, nothing is copied again */
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_RECHECK, 1)), XF_WORK_DONE);
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 1);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c052_size_finds_what_a_store_kept_only_half),
        cmocka_unit_test(full_finds_a_flipped_bit_behind_a_good_etag),
        cmocka_unit_test(full_reads_large_objects_back),
        cmocka_unit_test(checksum_reads_back_only_what_no_etag_proves),
        cmocka_unit_test(none_asks_nothing_more),
        cmocka_unit_test(c049_what_nothing_tells_apart_is_compared_byte_by_byte),
        cmocka_unit_test(a_recheck_takes_no_time_for_a_proof),
    };
    return xf_test_run("agent_verify_mode", tests, NULL, NULL);
}
