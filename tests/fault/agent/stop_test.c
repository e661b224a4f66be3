/* stop_test.c - works that are stopped, held, fenced, or find the destination taken. */
#include "common/base/clock.h"
#include "tests/fault/agent/rig.h"
#include "tests/lib/test.h"

#include <stdio.h>

#define OVERWRITE "[copy]\nif_exists = \"overwrite\"\npart_size = \"5MiB\"\n"
#define RELAY     OVERWRITE "mode = \"relay\"\n"
#define STREAM    "[copy]\nif_exists = \"overwrite\"\npart_size = \"20MiB\"\nmode = \"relay\"\n"

static const char *const modes[] = {OVERWRITE, RELAY, STREAM};

static void put_many(struct rig *rig, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        char json[160];
        (void)snprintf(json,
                       sizeof(json),
                       "{\"bucket\":\"src\",\"key\":\"k%03u\",\"size\":3000,\"seed\":%u}",
                       i,
                       i);
        rig_put(rig, 0, json);
    }
}

static uint32_t in_flight(struct rig *rig)
{
    struct xf_engine_stats s;

    xf_engine_stats(rig->engine, &s);
    return s.in_flight;
}

static bool some_are_asked(struct rig *rig)
{
    return in_flight(rig) >= 4;
}

static bool has_ended(struct rig *rig)
{
    return rig->has_ended;
}

/* Start without waiting for the end. */
static void begin(struct rig *rig, struct xf_work *w)
{
    rig->has_ended = false;
    for (size_t i = 0; i < RIG_OBJECTS_MAX; i++) {
        rig->told[i] = (struct rig_told){0};
    }
    xf_engine_start(rig->engine, w);
}

static const char *const slow =
    "[{\"op\":[\"CopyObject\",\"GetObject\",\"PutObject\",\"UploadPart\","
    "\"UploadPartCopy\"],\"action\":{\"delay_ms\":300}}]";

static void a_hard_stop_ends_a_batch_at_any_moment(void **state)
{
    (void)state;
    static const enum xf_engine_stop hows[] = {XF_STOP_HARD, XF_STOP_FIRM, XF_STOP_SOFT};

    for (size_t i = 0; i < 6; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i % 2], NULL);
        put_many(&rig, 60);
        rig_faults(&rig, slow);
        begin(&rig, rig_batch(&rig, XF_TASK_BATCH, 1));
        rig_turn_until(&rig, some_are_asked);
        xf_engine_stop(rig.engine, 1, 1, hows[i / 2]);
        rig_turn_until(&rig, has_ended);
        unsigned n = rig_outcomes(&rig, 60, XF_OUTCOME_COPIED);
        if (hows[i / 2] == XF_STOP_HARD) {
            assert_int_equal(rig.end.how, XF_WORK_STOPPED);
            assert_int_equal(n, 0);
        } else if (hows[i / 2] == XF_STOP_SOFT) {
            assert_int_equal(rig.end.how, XF_WORK_STOPPED);
            assert_in_range(n, 1, 59); /* what had been asked for ended, the rest never began */
        }
        assert_int_equal(in_flight(&rig), 0);
        rig_close(&rig);
    }
}

static void a_hard_stop_ends_parts_at_any_moment(void **state)
{
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"big\",\"size\":90000000,\"seed\":4}");
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_OPEN, "big", 1)), XF_WORK_DONE);
        rig_faults(&rig, slow);
        begin(&rig, rig_step(&rig, XF_TASK_PARTS, "big", 1));
        rig_turn_until(&rig, some_are_asked);
        xf_engine_stop_all(rig.engine, XF_STOP_HARD);
        rig_turn_until(&rig, has_ended);
        assert_int_equal(rig.end.how, XF_WORK_STOPPED);
        rig_no_faults(&rig);
        assert_int_equal(rig_run(&rig, rig_step(&rig, XF_TASK_ABORT, "big", 1)), XF_WORK_DONE);
        assert_int_equal(rig_open_uploads(&rig), 0);
        rig_close(&rig);
    }
}

static void nothing_is_written_after_the_fence(void **state)
{
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, modes[i], NULL);
        put_many(&rig, 40);
        rig_faults(&rig, slow);
        begin(&rig, rig_batch(&rig, XF_TASK_BATCH, 1));
        rig_turn_until(&rig, some_are_asked);
        xf_engine_set_fence(rig.engine, xf_clock_mono_ms(xf_clock_real()));
        rig_turn_until(&rig, has_ended);
        assert_int_equal(rig.end.how, XF_WORK_STOPPED);
        assert_int_equal(rig_outcomes(&rig, 40, XF_OUTCOME_COPIED), 0);
        /* and nothing begins while it stands */
        uint64_t before = rig_count(&rig, 0, "CopyObject") + rig_count(&rig, 0, "PutObject");
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 2)), XF_WORK_STOPPED);
        assert_int_equal(rig_count(&rig, 0, "CopyObject") + rig_count(&rig, 0, "PutObject"),
                         before);
        /* renewed: all of it is done */
        xf_engine_set_fence(rig.engine, INT64_MAX);
        rig_no_faults(&rig);
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 3)), XF_WORK_DONE);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static bool is_quiet(struct rig *rig)
{
    return in_flight(rig) == 0;
}

static void a_held_job_asks_nothing_until_it_goes_on(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, RELAY, NULL);
    put_many(&rig, 60);
    rig_faults(&rig, slow);
    begin(&rig, rig_batch(&rig, XF_TASK_BATCH, 1));
    rig_turn_until(&rig, some_are_asked);
    xf_engine_hold(rig.engine, rig.job, true);
    rig_turn_until(&rig, is_quiet);
    assert_false(rig.has_ended);
    xf_engine_hold(rig.engine, rig.job, false);
    rig_no_faults(&rig);
    rig_turn_until(&rig, has_ended);
    assert_int_equal(rig.end.how, XF_WORK_DONE);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static void a_held_job_can_be_stopped(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 60);
    xf_engine_start(rig.engine, rig_batch(&rig, XF_TASK_BATCH, 1));
    xf_engine_hold(rig.engine, rig.job, true);
    xf_engine_stop_all(rig.engine, XF_STOP_FIRM);
    rig_turn_until(&rig, has_ended);
    assert_int_equal(rig.end.how, XF_WORK_STOPPED);
    xf_engine_hold(rig.engine, rig.job, false);
    rig_close(&rig);
}

static void what_an_earlier_lease_did_is_not_done_again(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 10);
    struct xf_work *w = rig_batch(&rig, XF_TASK_BATCH, 2);
    const struct xf_result copied = {.outcome = XF_OUTCOME_COPIED, .attempts = 1};
    for (uint32_t i = 0; i < 7; i++) {
        assert_true(xf_result_set_put(&w->done, i, &copied));
    }
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 3);
    assert_int_equal(rig.told[0].times, 0);
    assert_int_equal(rig.told[7].times, 1);
    rig_close(&rig);
}

/* ---- what is there already ---- */

static void skip_same_lists_once_and_copies_what_differs(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, "", NULL);
    put_many(&rig, 100);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 100, XF_OUTCOME_COPIED), 100);
    assert_int_equal(rig_count(&rig, 0, "ListObjectsV2"), 1);
    assert_int_equal(rig_count(&rig, 0, "HeadObject"), 1);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k042\",\"size\":3000,\"seed\":777}"); /* C050 */
    rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"k0420\",\"body\":\"between\"}");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 100, XF_OUTCOME_SKIPPED), 99);
    assert_int_equal(rig.told[42].r.outcome, XF_OUTCOME_COPIED);
    assert_int_equal(rig.told[0].r.skip, XF_SKIP_SAME);
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 101);
    rig_close(&rig);
}

static void what_this_job_wrote_counts_as_copied(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, "", NULL);
    put_many(&rig, 20);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 2)), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 20, XF_OUTCOME_COPIED), 20);
    assert_true((rig.told[3].r.flags & XF_RESULT_OWN) != 0);
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 20);
    rig_close(&rig);
}

static void skip_and_fail_leave_what_is_there(void **state)
{
    (void)state;
    static const char *const jobs[] = {"[copy]\nif_exists = \"skip\"\n",
                                       "[copy]\nif_exists = \"fail\"\n",
                                       "[copy]\nif_exists = \"skip\"\nmode = \"relay\"\n",
                                       "[copy]\nif_exists = \"fail\"\nmode = \"relay\"\n"};

    for (size_t i = 0; i < 4; i++) {
        struct rig rig;
        bool fails = i % 2 == 1;
        rig_open(&rig, false, jobs[i], NULL);
        put_many(&rig, 10);
        rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"k005\",\"body\":\"mine\"}");
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig_outcomes(&rig, 10, XF_OUTCOME_COPIED), 9);
        assert_int_equal(rig.told[5].r.outcome, fails ? XF_OUTCOME_FAILED : XF_OUTCOME_SKIPPED);
        assert_int_equal(rig.told[5].r.code, fails ? XF_E_EXISTS : XF_OK);
        assert_int_equal(rig_dst_size(&rig, "k005"), 4);
        rig_close(&rig);
    }
}

static void a_write_without_an_answer_is_not_taken_for_somebody_elses(void **state)
{
    (void)state;
    static const char *const jobs[] = {"[copy]\nif_exists = \"fail\"\n",
                                       "[copy]\nif_exists = \"skip\"\nmode = \"relay\"\n"};

    for (size_t i = 0; i < 2; i++) {
        struct rig rig;
        rig_open(&rig, false, jobs[i], NULL);
        put_many(&rig, 10);
        rig_faults(
            &rig,
            "[{\"op\":[\"PutObject\",\"CopyObject\"],\"key\":\"k004\",\"count\":1,\"action\":{"
            "\"reply_lost\":true}}]");
        assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
        assert_int_equal(rig_outcomes(&rig, 10, XF_OUTCOME_COPIED), 10);
        rig_must_be_equal(&rig, true);
        rig_close(&rig);
    }
}

static void a_recheck_repairs_what_differs_from_the_source_now(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 10);
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    /* an older version arrived late, one is missing, one changed at the source */
    rig_put(&rig, 1, "{\"bucket\":\"dst\",\"key\":\"k002\",\"size\":3000,\"seed\":999}");
    rig_faults(
        &rig,
        "[{\"op\":\"HeadObject\",\"bucket\":\"dst\",\"key\":\"k003\",\"count\":1,\"action\":{"
        "\"delete\":{\"bucket\":\"dst\",\"key\":\"k003\"}}}]");
    struct xf_work *w = rig_batch(&rig, XF_TASK_RECHECK, 1);
    rig_put(&rig, 0, "{\"bucket\":\"src\",\"key\":\"k004\",\"size\":3000,\"seed\":888}");
    assert_int_equal(rig_run(&rig, w), XF_WORK_DONE);
    assert_int_equal(rig_outcomes(&rig, 10, XF_OUTCOME_COPIED), 10);
    assert_int_equal(rig_count(&rig, 0, "CopyObject"), 13);
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

static bool has_probed(struct rig *rig)
{
    return rig->has_probed;
}

static void a_probe_tells_whether_this_host_is_fit(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    xf_engine_probe(rig.engine, rig.job);
    rig_turn_until(&rig, has_probed);
    assert_int_equal(rig.probe_err.code, XF_OK);
    rig.has_probed = false;
    rig_faults(&rig,
               "[{\"op\":\"HeadBucket\",\"bucket\":\"dst\",\"action\":{\"status\":403,\"code\":"
               "\"AccessDenied\"}}]");
    xf_engine_probe(rig.engine, rig.job);
    rig_turn_until(&rig, has_probed);
    assert_int_equal(rig.probe_err.code, XF_E_DENIED);
    assert_non_null(strstr(rig.probe_err.msg, "dst"));
    rig_close(&rig);
}

static void a_probe_is_answered_past_the_fence(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    xf_engine_set_fence(rig.engine, xf_clock_mono_ms(xf_clock_real()));
    xf_engine_probe(rig.engine, rig.job);
    rig_turn_until(&rig, has_probed);
    assert_int_equal(rig.probe_err.code, XF_OK);
    rig_close(&rig);
}

static void c059_refused_keys_give_the_work_back_unspent(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, OVERWRITE, NULL);
    put_many(&rig, 30);
    rig_faults(&rig,
               "[{\"op\":\"CopyObject\",\"action\":{\"status\":400,\"code\":\"ExpiredToken\"}}]");
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_UNFIT);
    assert_int_equal(rig.end.err.code, XF_E_CREDS);
    assert_int_equal(rig_outcomes(&rig, 30, XF_OUTCOME_FAILED), 0);
    rig_close(&rig);
}

static void bandwidth_bounds_what_goes_through(void **state)
{
    (void)state;
    struct rig rig;

    rig_open(&rig, false, RELAY, NULL);
    for (int i = 0; i < 12; i++) {
        char json[120];
        (void)snprintf(
            json, sizeof(json), "{\"bucket\":\"src\",\"key\":\"b%d\",\"size\":262144}", i);
        rig_put(&rig, 0, json);
    }
    atomic_store(&rig.job->lane_bandwidth, 2U << 20);
    int64_t began = xf_clock_mono_ms(xf_clock_real());
    assert_int_equal(rig_run(&rig, rig_batch(&rig, XF_TASK_BATCH, 1)), XF_WORK_DONE);
    assert_true(xf_clock_mono_ms(xf_clock_real()) - began >= 1200); /* 3 MiB, less the last one */
    rig_must_be_equal(&rig, true);
    rig_close(&rig);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hard_stop_ends_a_batch_at_any_moment),
        cmocka_unit_test(a_hard_stop_ends_parts_at_any_moment),
        cmocka_unit_test(nothing_is_written_after_the_fence),
        cmocka_unit_test(a_held_job_asks_nothing_until_it_goes_on),
        cmocka_unit_test(a_held_job_can_be_stopped),
        cmocka_unit_test(what_an_earlier_lease_did_is_not_done_again),
        cmocka_unit_test(skip_same_lists_once_and_copies_what_differs),
        cmocka_unit_test(what_this_job_wrote_counts_as_copied),
        cmocka_unit_test(skip_and_fail_leave_what_is_there),
        cmocka_unit_test(a_write_without_an_answer_is_not_taken_for_somebody_elses),
        cmocka_unit_test(a_recheck_repairs_what_differs_from_the_source_now),
        cmocka_unit_test(a_probe_tells_whether_this_host_is_fit),
        cmocka_unit_test(a_probe_is_answered_past_the_fence),
        cmocka_unit_test(bandwidth_bounds_what_goes_through),
        cmocka_unit_test(c059_refused_keys_give_the_work_back_unspent),
    };
    return xf_test_run("agent_stop", tests, NULL, NULL);
}
