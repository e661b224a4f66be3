/*
 * hub_poll_test.c - parked polls and orders, roles, operators, and requests that make no sense.
 */
#include "tests/lib/test.h"
#include "tests/unit/coordinator/hub_kit.h"

/* ---- polls ---- */

static void poll_is_parked_and_answered_empty_after_its_time(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_poll_reply reply;
    uint64_t poll;

    (void)state;
    hello(f, &a, 7);
    poll = send_next(f, &a, XF_KIND_POLL, &any_poll);
    pass_ms(f, 10000);
    (void)send_next(f, &a, XF_KIND_BEAT, &(struct xf_msg_beat){0}); /* stays alive */
    pass_ms(f, 9000);
    assert_int_equal(f->answers[poll].replies, 0);
    assert_int_equal(stats(f).parked_polls, 1);
    pass_ms(f, 1500);
    body_of(f, poll, XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, 0);
    poll = send_next(f, &a, XF_KIND_POLL, &(struct xf_msg_poll){.wait_ms = 1000});
    pass_ms(f, 1500);
    assert_int_equal(f->answers[poll].replies, 1);
    fx_close(f);
}

static void order_answers_the_parked_poll_at_once(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_poll_reply reply;
    struct xf_msg_order pause = {.kind = XF_ORDER_PAUSE, .job = XF_STR_LIT("j-1")};
    uint64_t poll;
    uint64_t again;

    (void)state;
    hello(f, &a, 7);
    poll = send_next(f, &a, XF_KIND_POLL, &any_poll);
    xf_hub_order(f->hub, xf_hub_find(f->hub, a.session), &pause);
    xf_loop_turn(f->loop, 0);
    body_of(f, poll, XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, 1);
    assert_int_equal(reply.orders[0].kind, XF_ORDER_PAUSE);
    assert_true(xf_str_eq_c(reply.orders[0].job, "j-1"));
    again = send_as(f, &a, XF_KIND_POLL, 1, NULL, &any_poll); /* the answer was lost */
    assert_true(same_bytes(f, poll, again));
    assert_int_equal(stats(f).parked_polls, 0);
    fx_close(f);
}

static void c090_orders_wait_for_the_next_poll_and_the_newest_of_a_job_counts(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_poll_reply reply;
    const struct xf_msg_order orders[] = {
        {.kind = XF_ORDER_PAUSE, .job = XF_STR_LIT("j-1")},
        {.kind = XF_ORDER_DRAIN},
        {.kind = XF_ORDER_RUN, .job = XF_STR_LIT("j-2"), .in_flight = 5},
        {.kind = XF_ORDER_DROP_TASK, .task = 4, .attempt = 1},
        {.kind = XF_ORDER_RUN, .job = XF_STR_LIT("j-1")},
        {.kind = XF_ORDER_UNDRAIN},
    };

    (void)state;
    hello(f, &a, 7);
    for (size_t i = 0; i < XF_ARRAY_LEN(orders); i++) {
        xf_hub_order(f->hub, xf_hub_find(f->hub, a.session), &orders[i]);
    }
    body_of(f, send_next(f, &a, XF_KIND_POLL, &any_poll), XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, 4);
    assert_true(xf_msg_order_eq(&reply.orders[0], &orders[2]));
    assert_true(xf_msg_order_eq(&reply.orders[1], &orders[3]));
    assert_true(xf_msg_order_eq(&reply.orders[2], &orders[4]));
    assert_true(xf_msg_order_eq(&reply.orders[3], &orders[5]));
    for (uint64_t i = 0; i < XF_ORDERS_MAX + 10; i++) { /* nobody polls: bounded */
        const struct xf_msg_order o = {.kind = XF_ORDER_DROP_TASK, .task = i};

        xf_hub_order(f->hub, xf_hub_find(f->hub, a.session), &o);
    }
    body_of(f, send_next(f, &a, XF_KIND_POLL, &any_poll), XF_KIND_POLL, &arena, &reply);
    assert_int_equal(reply.n_orders, XF_ORDERS_MAX);
    assert_int_equal(reply.orders[0].task, 10);
    fx_close(f);
}

/* ---- roles and malformed requests ---- */

static void roles_are_checked_when_tokens_are_set(void **state)
{
    const struct xf_str agents[] = {XF_STR_LIT("agent-secret-1"), XF_STR_LIT("agent-secret-2")};
    const struct xf_str operators[] = {XF_STR_LIT("operator-secret")};
    struct fx *f = fx_open(&(struct xf_hub_opts){.agent_tokens = agents,
                                                 .n_agent_tokens = 2,
                                                 .operator_tokens = operators,
                                                 .n_operator_tokens = 1});
    struct agent a = {.id = "a", .instance = {1}};
    const struct xf_msg_control cancel = {.job = XF_STR_LIT("j-1"), .verb = XF_CONTROL_CANCEL};
    static const char *const wrong[] = {
        NULL, "", "agent-secret-", "agent-secret-11", "operator-secret"};
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_hello_reply reply;

    (void)state;
    for (size_t i = 0; i < XF_ARRAY_LEN(wrong); i++) {
        assert_int_equal(code_of(f, try_hello(f, &a, 7, wrong[i])), XF_E_DENIED);
    }
    body_of(f, try_hello(f, &a, 7, "agent-secret-2"), XF_KIND_HELLO, &arena, &reply);
    a.session = reply.session;
    assert_int_equal(code_of(f, send_next(f, &a, XF_KIND_LEASE, &any_lease)), XF_OK);
    assert_int_equal(f->handed, 1);
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_CONTROL, 1, NULL, &cancel)), XF_E_DENIED);
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_CONTROL, 1, "agent-secret-2", &cancel)),
                     XF_E_DENIED);
    assert_int_equal(f->handed, 1);
    assert_int_equal(code_of(f, send_as(f, NULL, XF_KIND_CONTROL, 0, "operator-secret", &cancel)),
                     XF_OK);
    assert_int_equal(f->handed, 2);
    assert_int_equal(stats(f).denied, 7);
    fx_close(f);
}

static void require_token_without_tokens_lets_nobody_in(void **state)
{
    struct fx *f = fx_open(&(struct xf_hub_opts){.require_token = true});
    struct agent a = {.id = "a", .instance = {1}};
    const struct xf_msg_query q = {.job = XF_STR_EMPTY};

    (void)state;
    assert_int_equal(code_of(f, try_hello(f, &a, 7, "anything")), XF_E_DENIED);
    assert_int_equal(code_of(f, send_as(f, NULL, XF_KIND_STATUS, 0, NULL, &q)), XF_E_DENIED);
    fx_close(f);
}

static void operator_needs_no_session(void **state)
{
    struct fx *f = fx_open(NULL);
    const struct xf_msg_query q = {.job = XF_STR_EMPTY};
    uint64_t held;

    (void)state;
    assert_int_equal(code_of(f, send_as(f, NULL, XF_KIND_STATUS, 0, NULL, &q)), XF_OK);
    f->hold = true;
    held = send_as(f, NULL, XF_KIND_STATUS, 0, NULL, &q);
    fx_close(f); /* dropped, and counted there */
    (void)held;
}

static void malformed_requests_are_told_and_reach_nobody(void **state)
{
    struct fx *f = fx_open(NULL);
    struct agent a = {.id = "a", .instance = {1}};
    struct xf_msg_request q = {.ver = XF_PROTO_VERSION, .kind = 99};
    XF_AUTO_BUF bytes = {0};
    struct xf_err err = {0};
    uint64_t token;

    (void)state;
    xf_buf_init(&bytes, 0);
    hello(f, &a, 7);
    assert_int_equal(code_of(f, post(f, XF_STR_LIT("garbage"))), XF_E_PROTO);
    assert_int_equal(code_of(f, post(f, XF_STR_EMPTY)), XF_E_PROTO);
    assert_int_equal(xf_msg_request_encode(&q, &bytes, &err), XF_OK);
    assert_int_equal(code_of(f, post(f, xf_buf_view(&bytes))), XF_E_UNSUPPORTED);
    q = (struct xf_msg_request){.ver = 9, .kind = XF_KIND_STATUS};
    xf_buf_reset(&bytes);
    assert_int_equal(xf_msg_request_encode(&q, &bytes, &err), XF_OK);
    assert_int_equal(code_of(f, post(f, xf_buf_view(&bytes))), XF_E_VERSION);
    q = (struct xf_msg_request){.ver = XF_PROTO_VERSION,
                                .kind = XF_KIND_LEASE,
                                .instance = xf_str_n(a.instance, XF_INSTANCE_LEN),
                                .session = a.session,
                                .channel = XF_CHANNEL_LEASE,
                                .seq = 1,
                                .body = XF_STR_LIT("not a lease")};
    xf_buf_reset(&bytes);
    assert_int_equal(xf_msg_request_encode(&q, &bytes, &err), XF_OK);
    token = post(f, xf_buf_view(&bytes));
    assert_int_equal(code_of(f, token), XF_E_PROTO);
    assert_true(same_bytes(f, token, post(f, xf_buf_view(&bytes)))); /* kept like any answer */
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 0, NULL, &any_lease)), XF_E_PROTO);
    a.session = 12345;
    assert_int_equal(code_of(f, send_as(f, &a, XF_KIND_LEASE, 2, NULL, &any_lease)), XF_E_STALE);
    assert_int_equal(f->handed, 0);
    fx_close(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(poll_is_parked_and_answered_empty_after_its_time),
        cmocka_unit_test(order_answers_the_parked_poll_at_once),
        cmocka_unit_test(c090_orders_wait_for_the_next_poll_and_the_newest_of_a_job_counts),
        cmocka_unit_test(roles_are_checked_when_tokens_are_set),
        cmocka_unit_test(require_token_without_tokens_lets_nobody_in),
        cmocka_unit_test(operator_needs_no_session),
        cmocka_unit_test(malformed_requests_are_told_and_reach_nobody),
    };

    return xf_test_run("hub polls", tests, NULL, NULL);
}
