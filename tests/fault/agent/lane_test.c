/* lane_test.c - works through real lanes: threads, queues, stops, and the end with works inside. */
#include "agent/lane.h"
#include "tests/fault/agent/rig.h"
#include "tests/lib/test.h"
#include "tests/lib/wait.h"

#include <stdio.h>

enum { LANES = 2, WORKS = 4, OBJECTS = 40, WAIT_MS = 30000 };

struct fx {
    struct rig rig; /* its servers and its job; its own engine idles */
    struct xf_queue *out;
    struct xf_lane *lanes[LANES];
    unsigned copied;
    unsigned ended;
    unsigned stopped;
    unsigned probed;
};

static void open_fx(struct fx *fx, const char *copy)
{
    struct xf_err err;

    *fx = (struct fx){0};
    rig_open(&fx->rig, false, copy, NULL);
    for (int i = 0; i < OBJECTS; i++) {
        char json[120];
        (void)snprintf(
            json, sizeof(json), "{\"bucket\":\"src\",\"key\":\"k%02d\",\"size\":5000}", i);
        rig_put(&fx->rig, 0, json);
    }
    assert_int_equal(xf_queue_new(64, &fx->out, &err), XF_OK);
    for (unsigned i = 0; i < LANES; i++) {
        const struct xf_lane_opts o = {
            .no = i, .out = fx->out, .pool_bytes = (size_t)16 << 20, .seed = i + 1};
        assert_int_equal(xf_lane_new(&o, &fx->lanes[i], &err), XF_OK);
    }
}

static void take(struct fx *fx, struct xf_lane_msg *m)
{
    switch (m->kind) {
    case XF_LANE_OBJECTS:
        for (size_t i = 0; i < m->n_objects; i++) {
            fx->copied += m->objects[i].result.outcome == XF_OUTCOME_COPIED ? 1 : 0;
        }
        break;
    case XF_LANE_ENDED:
        fx->ended++;
        fx->stopped += m->end.how == XF_WORK_STOPPED ? 1 : 0;
        xf_work_free(m->work);
        break;
    case XF_LANE_PROBED:
        assert_int_equal(m->err.code, XF_OK);
        fx->probed++;
        break;
    case XF_LANE_OPENED:
    case XF_LANE_PART:
    case XF_LANE_NOTICE:
    case XF_LANE_MSG_N: break;
    }
    xf_lane_msg_free(m);
}

static void take_until(struct fx *fx, const unsigned *count, unsigned n)
{
    while (*count < n) {
        struct xf_lane_msg *m = xf_queue_pop_wait(fx->out, WAIT_MS);
        assert_non_null(m);
        take(fx, m);
    }
}

static void close_fx(struct fx *fx)
{
    struct xf_lane_msg *m = NULL;

    for (unsigned i = 0; i < LANES; i++) {
        xf_lane_free(fx->lanes[i]);
    }
    while ((m = xf_queue_pop(fx->out)) != NULL) {
        take(fx, m);
    }
    xf_queue_free(fx->out);
    rig_close(&fx->rig);
}

static void start_works(struct fx *fx)
{
    for (unsigned i = 0; i < WORKS; i++) {
        struct xf_work *w = rig_batch(&fx->rig, XF_TASK_BATCH, 1);
        w->task = i + 1;
        xf_lane_start(fx->lanes[i % LANES], w);
    }
}

static void works_go_through_lanes(void **state)
{
    (void)state;
    struct fx fx;
    struct xf_engine_stats s;

    open_fx(&fx, "[copy]\nif_exists = \"overwrite\"\n");
    for (unsigned i = 0; i < LANES; i++) {
        xf_lane_probe(fx.lanes[i], fx.rig.job);
    }
    take_until(&fx, &fx.probed, LANES);
    start_works(&fx);
    take_until(&fx, &fx.ended, WORKS);
    assert_int_equal(fx.copied, WORKS * OBJECTS);
    xf_lane_stats(fx.lanes[0], &s);
    assert_int_equal(s.objects, WORKS / LANES * OBJECTS);
    rig_must_be_equal(&fx.rig, true);
    close_fx(&fx);
}

static void a_lane_that_goes_gives_every_work_back(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, "[copy]\nif_exists = \"overwrite\"\nmode = \"relay\"\n");
    rig_faults(&fx.rig, "[{\"op\":[\"GetObject\",\"PutObject\"],\"action\":{\"delay_ms\":100}}]");
    start_works(&fx);
    take_until(&fx, &fx.copied, 1);
    close_fx(&fx);
    assert_int_equal(fx.ended, WORKS);
}

static void orders_reach_a_lane_amid_its_work(void **state)
{
    (void)state;
    struct fx fx;

    open_fx(&fx, "[copy]\nif_exists = \"overwrite\"\n");
    rig_faults(&fx.rig, "[{\"op\":\"CopyObject\",\"action\":{\"delay_ms\":50}}]");
    start_works(&fx);
    for (unsigned i = 0; i < LANES; i++) {
        xf_lane_hold(fx.lanes[i], fx.rig.job, true);
        xf_lane_set_in_flight(fx.lanes[i], fx.rig.job, 4);
        xf_lane_hold(fx.lanes[i], fx.rig.job, false);
    }
    xf_lane_stop(fx.lanes[0], 1, 1, XF_STOP_HARD);
    xf_lane_set_fence(fx.lanes[1], 0); /* the lease of everything there ran out */
    take_until(&fx, &fx.ended, WORKS);
    assert_true(fx.stopped >= 2);
    xf_lane_drop_job(fx.lanes[0], fx.rig.job);
    close_fx(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(works_go_through_lanes),
        cmocka_unit_test(a_lane_that_goes_gives_every_work_back),
        cmocka_unit_test(orders_reach_a_lane_amid_its_work),
    };
    return xf_test_run("agent_lane", tests, NULL, NULL);
}
