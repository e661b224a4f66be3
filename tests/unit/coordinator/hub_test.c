/*
 * hub_test.c - repeats, late copies, and the life of sessions, over a bus that the test plays.
 */
#include "tests/lib/gen.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator/hub_kit.h"

/* ---- repeats ---- */

static void c089_repeated_request_is_done_once_and_gets_the_same_bytes(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    uint64_t first;
    uint64_t again;

    (void)state;
    hello(f, &a, 7);
    first = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    again = send_as(f, &a, XF_KIND_LEASE, 1, NULL, &any_lease);
    assert_int_equal(f->handed, 1);
    assert_true(same_bytes(f, first, again));
    assert_int_equal(stats(f).replayed, 1);
    first = send_next(f, &a, XF_KIND_FIT, &(struct xf_msg_fit){.job = XF_STR_LIT("j-1")});
    again = send_as(f, &a, XF_KIND_FIT, 1, NULL, &(struct xf_msg_fit){.job = XF_STR_LIT("j-1")});
    assert_int_equal(f->handed, 2); /* errors are kept as well */
    assert_int_equal(code_of(f, first), XF_E_NOT_FOUND);
    assert_true(same_bytes(f, first, again));
    fx_close(f);
}

static void c089_copy_that_comes_while_the_first_is_worked_on_waits_with_it(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_lease_reply reply = {.wait_ms = 77};
    uint64_t tokens[12];
    int replies = 0;

    (void)state;
    hello(f, &a, 7);
    f->hold = true;
    tokens[0] = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    for (size_t i = 1; i < XF_ARRAY_LEN(tokens); i++) {
        tokens[i] = send_as(f, &a, XF_KIND_LEASE, 1, NULL, &any_lease);
    }
    assert_int_equal(f->n_reqs, 1);
    assert_int_equal(stats(f).open_requests, 1);
    xf_hub_reply(f->reqs[0], &reply);
    for (size_t i = 0; i < XF_ARRAY_LEN(tokens); i++) {
        replies += f->answers[tokens[i]].replies;
        assert_int_equal(f->answers[tokens[i]].replies + f->answers[tokens[i]].drops, 1);
    }
    assert_int_equal(replies, 8); /* more copies than that: the oldest were dropped */
    assert_true(same_bytes(f, tokens[10], tokens[11]));
    assert_int_equal(f->answers[tokens[11]].replies, 1);
    f->hold = false;
    fx_close(f);
}

static void c089_old_request_that_comes_late_is_refused(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};

    (void)state;
    hello(f, &a, 7);
    for (int i = 0; i < 3; i++) {
        (void)send_next(f, &a, XF_KIND_LEASE, &any_lease);
    }
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 2, NULL, &any_lease)), XF_E_INVAL);
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 1, NULL, &any_lease)), XF_E_INVAL);
    assert_int_equal(f->handed, 3);
    assert_int_equal(stats(f).old_refused, 2);
    /* Channels have numbers of their own. */
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_BEAT, 1, NULL, &(struct xf_msg_beat){0})),
                     XF_OK);
    fx_close(f);
}

/* Recorded requests are injected twice and out of order, against a model of what may happen. */
static void c089_replayed_recordings_change_nothing(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_buf recorded[60];
    uint64_t first[60];
    struct xf_rng rng;
    size_t sent = 0;

    (void)state;
    xf_rng_init(&rng, xf_test_seed());
    hello(f, &a, 7);
    for (size_t i = 0; i < XF_ARRAY_LEN(recorded); i++) {
        request_bytes(&a, XF_KIND_LEASE, i + 1, NULL, &any_lease, &recorded[i]);
    }
    while (sent < XF_ARRAY_LEN(recorded)) {
        size_t pick = (size_t)xf_rng_below(&rng, sent + 1);
        uint64_t token = post(f, xf_buf_view(&recorded[pick]));

        if (pick == sent) {
            first[sent++] = token;
        } else if (pick + 1 == sent) {
            assert_true(same_bytes(f, token, first[pick]));
        } else {
            assert_int_equal(code_of(f, token), XF_E_INVAL);
        }
        assert_int_equal(f->handed, sent);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(recorded); i++) {
        xf_buf_fini(&recorded[i]);
    }
    fx_close(f);
}

static void next_request_lets_go_of_one_whose_caller_gave_up(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_lease_reply reply = {.wait_ms = 1};
    uint64_t given_up;
    uint64_t next;

    (void)state;
    hello(f, &a, 7);
    f->hold = true;
    given_up = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    next = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    assert_int_equal(f->answers[given_up].drops, 1);
    assert_null(xf_hub_req_session(f->reqs[0]));
    assert_non_null(xf_hub_req_session(f->reqs[1]));
    xf_hub_reply(f->reqs[0], &reply); /* goes nowhere */
    assert_int_equal(f->answers[next].replies, 0);
    reply.wait_ms = 2;
    xf_hub_reply(f->reqs[1], &reply);
    assert_int_equal(code_of(f, next), XF_OK);
    fx_close(f);
}

/* ---- sessions ---- */

static void repeated_hello_is_one_session(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_hello_reply reply = {.beat_ms = 1};
    uint64_t first;
    uint64_t again;

    (void)state;
    f->hold = true;
    first = try_hello(f, &a, 7, NULL);
    again = try_hello(f, &a, 7, NULL);
    assert_int_equal(f->hellos, 1);
    xf_hub_reply(f->reqs[0], &reply);
    assert_true(same_bytes(f, first, again));
    assert_true(same_bytes(f, first, try_hello(f, &a, 7, NULL)));
    assert_int_equal(f->hellos, 1);
    assert_int_equal(f->gones, 0);
    assert_int_equal(stats(f).sessions, 1);
    f->hold = false;
    fx_close(f);
}

static void same_instance_supersedes_at_once(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent before;
    uint64_t held;

    (void)state;
    hello(f, &a, 7);
    before = a;
    f->hold = true;
    held = send_next(f, &a, XF_KIND_LEASE, &any_lease);
    f->hold = false;
    hello(f, &a, 8);
    assert_int_equal(f->gones, 1);
    assert_int_equal(f->why, XF_HUB_SUPERSEDED);
    assert_int_equal(code_of(f, held), XF_E_STALE);
    assert_null(xf_hub_req_session(f->reqs[0]));
    xf_hub_fail(f->reqs[0], XF_E_BUSY, XF_STR_LIT("to nobody"));
    assert_true(before.session != a.session);
    assert_int_equal(code_of(f, send_next(f, &before, XF_KIND_LEASE, &any_lease)), XF_E_STALE);
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_LEASE, &any_lease)), XF_OK);
    /* The same state directory under another name is the same instance. */
    a.id = "renamed";
    hello(f, &a, 9);
    assert_int_equal(stats(f).sessions, 1);
    assert_non_null(xf_hub_find_agent(f->hub, XF_STR_LIT("renamed")));
    assert_null(xf_hub_find_agent(f->hub, XF_STR_LIT("a")));
    fx_close(f);
}

static void id_of_another_live_instance_is_refused_until_that_one_is_gone(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent b = {.id = "a", .instance = {2}};

    (void)state;
    hello(f, &a, 7);
    assert_int_equal(code_of(f, try_hello(f, &b, 8, NULL)), XF_E_LOCKED);
    assert_int_equal(f->gones, 0);
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_LEASE, &any_lease)), XF_OK);
    pass_ms(f, 25000);
    assert_int_equal(f->gones, 1);
    assert_int_equal(f->why, XF_HUB_TIMED_OUT);
    hello(f, &b, 9);
    fx_close(f);
}

static void silent_session_ends_and_a_heard_one_stays(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent b = {.id = "b", .instance = {2}};

    (void)state;
    hello(f, &a, 7);
    hello(f, &b, 7);
    for (int i = 0; i < 30; i++) {
        pass_ms(f, 2000);
        (void)send_next(f, &b, XF_KIND_BEAT, &(struct xf_msg_beat){0});
    }
    assert_int_equal(f->gones, 1);
    assert_null(xf_hub_find(f->hub, a.session));
    assert_non_null(xf_hub_find(f->hub, b.session));
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_BEAT, &(struct xf_msg_beat){0})),
                     XF_E_STALE);
    assert_int_equal(stats(f).stale_refused, 1);
    fx_close(f);
}

static void time_in_which_the_coordinator_stood_still_is_nobodys_silence(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};

    (void)state;
    hello(f, &a, 7);
    xf_fakeclock_advance(&f->clock, 90000); /* stopped by a debugger, or the disk */
    xf_loop_turn(f->loop, 0);
    assert_int_equal(f->gones, 0);
    pass_ms(f, 25000);
    assert_int_equal(f->gones, 1);
    fx_close(f);
}

static void session_of_another_instance_is_stale(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct agent thief;

    (void)state;
    hello(f, &a, 7);
    thief = a;
    thief.instance[0] = 9;
    assert_int_equal(code_of(f, send_next(f, &thief, XF_KIND_LEASE, &any_lease)), XF_E_STALE);
    assert_int_equal(f->handed, 0);
    fx_close(f);
}

static void one_session_too_many_is_refused_as_busy(void **state)
{
    struct fx *f = fx_open(&(struct xf_hub_opts){.sessions_max = 2});
    struct agent a = {.id = "a", .instance = {1}};
    struct agent b = {.id = "b", .instance = {2}};
    struct agent c = {.id = "c", .instance = {3}};

    (void)state;
    hello(f, &a, 1);
    hello(f, &b, 1);
    assert_int_equal(code_of(f, try_hello(f, &c, 1, NULL)), XF_E_BUSY);
    hello(f, &a, 2); /* its own place is free again */
    fx_close(f);
}

static void bye_ends_the_session_after_its_answer(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    uint64_t poll;
    uint64_t bye;

    (void)state;
    hello(f, &a, 7);
    poll = send_next(f, &a, XF_KIND_POLL, &any_poll);
    bye = send_next(f, &a, XF_KIND_BYE, &(struct xf_msg_bye){0});
    assert_int_equal(code_of(f, bye), XF_OK);
    assert_int_equal(code_of(f, poll), XF_OK);
    assert_int_equal(f->gones, 1);
    assert_int_equal(f->why, XF_HUB_BYE);
    assert_int_equal(stats(f).parked_polls, 0);
    fx_close(f);
}

static void hello_that_the_coordinator_refuses_leaves_no_session(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};

    (void)state;
    f->refuse_hello = true;
    assert_int_equal(code_of(f, try_hello(f, &a, 7, NULL)), XF_E_BUSY);
    assert_int_equal(stats(f).sessions, 0);
    f->refuse_hello = false;
    hello(f, &a, 8);
    fx_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c089_repeated_request_is_done_once_and_gets_the_same_bytes),
        cmocka_unit_test(c089_copy_that_comes_while_the_first_is_worked_on_waits_with_it),
        cmocka_unit_test(c089_old_request_that_comes_late_is_refused),
        cmocka_unit_test(c089_replayed_recordings_change_nothing),
        cmocka_unit_test(next_request_lets_go_of_one_whose_caller_gave_up),
        cmocka_unit_test(repeated_hello_is_one_session),
        cmocka_unit_test(same_instance_supersedes_at_once),
        cmocka_unit_test(id_of_another_live_instance_is_refused_until_that_one_is_gone),
        cmocka_unit_test(silent_session_ends_and_a_heard_one_stays),
        cmocka_unit_test(time_in_which_the_coordinator_stood_still_is_nobodys_silence),
        cmocka_unit_test(session_of_another_instance_is_stale),
        cmocka_unit_test(one_session_too_many_is_refused_as_busy),
        cmocka_unit_test(bye_ends_the_session_after_its_answer),
        cmocka_unit_test(hello_that_the_coordinator_refuses_leaves_no_session),
    };

    return xf_test_run("hub", tests, NULL, NULL);
}
