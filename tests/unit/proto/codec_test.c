/*
 * codec_test.c - what the reader of messages takes and what it refuses, byte by byte; caps at their
 * edge; what a log may show.
 */
#include "proto/codec.h"
#include "proto/msg.h"
#include "tests/lib/test.h"

#define BYTES(lit) xf_str_n("" lit, sizeof(lit) - 1)

static enum xf_code try_held(struct xf_str bytes, struct xf_msg_held *m)
{
    XF_AUTO_ARENA a = {0};
    struct xf_err err = {0};
    enum xf_code rc = xf_msg_held_decode(bytes, &a, m, &err);

    if (rc != XF_OK) {
        assert_int_equal(m->task, 0); /* all zero after a refusal */
        assert_int_equal(m->attempt, 0);
    }
    return rc;
}

static void assert_held(struct xf_str bytes, uint64_t task, uint32_t attempt)
{
    struct xf_msg_held m;

    assert_int_equal(try_held(bytes, &m), XF_OK);
    assert_true(m.task == task);
    assert_int_equal(m.attempt, attempt);
}

static void assert_refused(struct xf_str bytes)
{
    struct xf_msg_held m;

    assert_int_equal(try_held(bytes, &m), XF_E_PROTO);
}

static void numbers_of_every_width_are_taken(void **state)
{
    (void)state;
    assert_held(BYTES("\x82\x01\x07\x02\x7f"), 7, 127);
    assert_held(BYTES("\x82\x01\xcc\xff\x02\xcd\x01\x00"), 255, 256);
    assert_held(BYTES("\x82\x01\xcf\xff\xff\xff\xff\xff\xff\xff\xff\x02\xce\xff\xff\xff\xff"),
                UINT64_MAX,
                UINT32_MAX);
    assert_held(BYTES("\x82\x01\xd0\x05\x02\xd3\x00\x00\x00\x00\x00\x00\x00\x06"), 5, 6);
    assert_held(BYTES("\xde\x00\x02\x02\x01\x01\x03"), 3, 1); /* any order, a wide map */
    assert_held(BYTES("\xdf\x00\x00\x00\x02\x01\x03\xcc\x02\x01"), 3, 1); /* and wide keys */
}

static void numbers_that_do_not_fit_are_refused(void **state)
{
    (void)state;
    assert_refused(BYTES("\x82\x01\xff\x02\x01"));                                 /* -1 */
    assert_refused(BYTES("\x82\x01\xd1\xff\xfe\x02\x01"));                         /* -2 */
    assert_refused(BYTES("\x82\x01\x01\x02\xcf\x00\x00\x00\x01\x00\x00\x00\x00")); /* above u32 */
    assert_refused(BYTES("\x82\x01\x01\x02\xc3"));                                 /* a boolean */
    assert_refused(BYTES("\x82\x01\x01\x02\xcb\x3f\xf0\x00\x00\x00\x00\x00\x00")); /* 1.0 */
    assert_refused(BYTES("\x82\x01\x01\x02\xc0"));                                 /* nil */
    assert_refused(BYTES("\x82\x01\x01\x02\xa1"
                         "1"));
}

static void maps_that_are_not_whole_are_refused(void **state)
{
    (void)state;
    assert_refused(BYTES(""));
    assert_refused(BYTES("\x92\x01\x02"));                         /* an array */
    assert_refused(BYTES("\x81\x01\x07"));                         /* attempt is missing */
    assert_refused(BYTES("\x83\x01\x07\x02\x01\x02\x01"));         /* attempt twice */
    assert_refused(BYTES("\x82\x01\x07\x02\x01\x00"));             /* a byte too many */
    assert_refused(BYTES("\x83\x01\x07\x02\x01"));                 /* an entry too few */
    assert_refused(BYTES("\xdf\xff\xff\xff\xff\x01\x07\x02\x01")); /* four billion entries */
    assert_refused(BYTES("\x82\xa1"
                         "1\x07\x02\x01"));        /* a key that is text */
    assert_refused(BYTES("\x82\xff\x07\x02\x01")); /* a key below zero */
    assert_refused(BYTES("\xc1"));
}

static void unknown_keys_are_skipped_whatever_they_hold(void **state)
{
    (void)state;
    assert_held(BYTES("\x83\x3f\xc0\x01\x07\x02\x01"), 7, 1);
    assert_held(BYTES("\x83\x01\x07\xcd\xff\xff\x93\x01\xa2xy\x81\x01\xc2\x02\x01"), 7, 1);
    assert_held(BYTES("\x83\x3f\xc4\x03\x01\x02\x03\x01\x07\x02\x01"), 7, 1);
    assert_held(BYTES("\x83\x3f\xd4\x05\x01\x01\x07\x02\x01"), 7, 1);
    assert_held(BYTES("\x83\x3f\xc7\x02\x05\x01\x02\x01\x07\x02\x01"), 7, 1);
    assert_held(BYTES("\x83\x3f\xca\x3f\x80\x00\x00\x01\x07\x02\x01"), 7, 1);
    assert_refused(BYTES("\x83\x01\x07\x02\x01\x3f\xdd\xff\xff\xff\xff\x01"));
    assert_refused(BYTES("\x83\x01\x07\x02\x01\x3f\xdb\xff\xff\xff\xff\x01"));
    assert_refused(BYTES("\x83\x01\x07\x02\x01\x3f\xc1"));
}

static void nesting_without_end_is_skipped_without_recursion(void **state)
{
    XF_AUTO_BUF b = {0};
    struct xf_msg_held m;

    (void)state;
    xf_buf_init(&b, 0);
    xf_buf_put(&b, BYTES("\x83\x3f"));
    for (int i = 0; i < 1000000; i++) {
        xf_buf_put_byte(&b, (char)0x91);
    }
    xf_buf_put(&b, BYTES("\xc0\x01\x07\x02\x01"));
    assert_int_equal(try_held(xf_buf_view(&b), &m), XF_OK);
    assert_int_equal(m.task, 7);
}

/* ---- caps ---- */

static void text_at_its_cap_is_taken_and_one_byte_more_is_not(void **state)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF b = {0};
    char text[XF_JOB_ID_MAX + 1];
    struct xf_msg_job m = {.job = {text, XF_JOB_ID_MAX}};
    struct xf_msg_job back;
    struct xf_err err = {0};
    size_t before;

    (void)state;
    memset(text, 'j', sizeof(text));
    xf_buf_init(&b, 0);
    assert_int_equal(xf_msg_job_encode(&m, &b, &err), XF_OK);
    assert_int_equal(xf_msg_job_decode(xf_buf_view(&b), &a, &back, &err), XF_OK);
    before = b.len;
    m.job.len++;
    assert_int_equal(xf_msg_job_encode(&m, &b, &err), XF_E_LIMIT);
    assert_int_equal(b.len, before); /* nothing was appended */
    assert_non_null(strstr(err.msg, "job.job"));
    xf_buf_reset(&b);
    xf_buf_put(&b, BYTES("\x81\x01\xd9\x41"));
    xf_buf_put_mem(&b, text, sizeof(text));
    assert_int_equal(xf_msg_job_decode(xf_buf_view(&b), &a, &back, &err), XF_E_PROTO);
    xf_buf_reset(&b);
    xf_buf_put(&b, BYTES("\x81\x01\xc4\x01j")); /* bytes where text belongs */
    assert_int_equal(xf_msg_job_decode(xf_buf_view(&b), &a, &back, &err), XF_E_PROTO);
}

static void list_at_its_cap_is_taken_and_one_more_is_not(void **state)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF b = {0};
    struct xf_msg_order *orders = xf_arena_calloc(&a, XF_ORDERS_MAX + 1, sizeof(*orders));
    struct xf_msg_poll_reply m = {.orders = orders, .n_orders = XF_ORDERS_MAX};
    struct xf_msg_poll_reply back;
    struct xf_err err = {0};

    (void)state;
    xf_buf_init(&b, 0);
    assert_int_equal(xf_msg_poll_reply_encode(&m, &b, &err), XF_OK);
    assert_int_equal(xf_msg_poll_reply_decode(xf_buf_view(&b), &a, &back, &err), XF_OK);
    assert_int_equal(back.n_orders, XF_ORDERS_MAX);
    m.n_orders++;
    assert_int_equal(xf_msg_poll_reply_encode(&m, &b, &err), XF_E_LIMIT);
    xf_buf_reset(&b);
    xf_buf_put(&b, BYTES("\x81\x01\xdc\x04\x01"));
    for (int i = 0; i <= XF_ORDERS_MAX; i++) {
        xf_buf_put(&b, BYTES("\x81\x01\x00"));
    }
    assert_int_equal(xf_msg_poll_reply_decode(xf_buf_view(&b), &a, &back, &err), XF_E_PROTO);
}

static void number_above_its_cap_is_refused(void **state)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF b = {0};
    struct xf_msg_control m = {.job = XF_STR_LIT("j-1"), .verb = XF_CONTROL_N};
    struct xf_msg_beat beat = {.objects_s = 1e16};
    struct xf_msg_control back;
    struct xf_msg_beat beat_back;
    struct xf_err err = {0};

    (void)state;
    xf_buf_init(&b, 0);
    assert_int_equal(xf_msg_control_encode(&m, &b, &err), XF_E_LIMIT);
    assert_int_equal(xf_msg_beat_encode(&beat, &b, &err), XF_E_LIMIT);
    assert_int_equal(xf_msg_control_decode(BYTES("\x82\x01\xa3j-1\x02\x04"), &a, &back, &err),
                     XF_E_PROTO);
    assert_int_equal(xf_msg_control_decode(BYTES("\x82\x01\xa3j-1\x02\x03"), &a, &back, &err),
                     XF_OK);
    /* A rate that is not a number. */
    assert_int_equal(
        xf_msg_beat_decode(
            BYTES("\x81\x04\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00"), &a, &beat_back, &err),
        XF_E_PROTO);
}

static void message_that_would_cost_too_much_memory_is_refused(void **state)
{
    XF_AUTO_ARENA a = {0};
    XF_AUTO_BUF b = {0};
    struct xf_msg_beat m;
    struct xf_err err = {0};

    (void)state;
    /* Items of three required bytes each, every one with a thousand parts of almost no bytes. */
    xf_buf_init(&b, 0);
    xf_buf_put(&b, BYTES("\x81\x01\xdc\x04\x00"));
    for (int i = 0; i < XF_ITEMS_MAX; i++) {
        xf_buf_put(&b, BYTES("\x84\x01\x01\x02\x01\x03\x00\x05\xdc\x04\x00"));
        for (int k = 0; k < XF_TASK_PARTS_MAX; k++) {
            xf_buf_put(&b, BYTES("\x82\x01\x01\x02\xa0"));
        }
    }
    assert_true(b.len < XF_MSG_MAX);
    assert_int_equal(xf_msg_beat_decode(xf_buf_view(&b), &a, &m, &err), XF_E_PROTO);
}

/* ---- logs ---- */

static void text_form_escapes_bytes_and_hides_secrets(void **state)
{
    XF_AUTO_BUF b = {0};
    const struct xf_msg_request q = {.ver = 1,
                                     .kind = XF_KIND_SUBMIT,
                                     .token = XF_STR_LIT("TOKENTOKEN"),
                                     .body = XF_STR_LIT("SECRETSECRET")};
    const struct xf_msg_notice n = {
        .job = XF_STR_LIT("j-1"), .code = XF_STR_LIT("x\n"), .text = XF_STR_LIT("a\tb")};
    struct xf_msg_held held[3] = {{0}};
    const struct xf_msg_beat beat = {.held = held, .n_held = 3, .objects_s = 1.5};

    (void)state;
    xf_buf_init(&b, 0);
    xf_msg_request_text(&q, &b);
    assert_string_equal(b.ptr, "ver=1 kind=20 token=*** body=(12 bytes)");
    xf_buf_reset(&b);
    xf_msg_notice_text(&n, &b);
    assert_string_equal(b.ptr, "job=j-1 code=x\\n text=a\\tb");
    xf_buf_reset(&b);
    xf_msg_beat_text(&beat, &b);
    assert_string_equal(b.ptr, "held=[3] objects_s=1.5");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_of_every_width_are_taken),
        cmocka_unit_test(numbers_that_do_not_fit_are_refused),
        cmocka_unit_test(maps_that_are_not_whole_are_refused),
        cmocka_unit_test(unknown_keys_are_skipped_whatever_they_hold),
        cmocka_unit_test(nesting_without_end_is_skipped_without_recursion),
        cmocka_unit_test(text_at_its_cap_is_taken_and_one_byte_more_is_not),
        cmocka_unit_test(list_at_its_cap_is_taken_and_one_more_is_not),
        cmocka_unit_test(number_above_its_cap_is_refused),
        cmocka_unit_test(message_that_would_cost_too_much_memory_is_refused),
        cmocka_unit_test(text_form_escapes_bytes_and_hides_secrets),
    };

    return xf_test_run("codec", tests, NULL, NULL);
}
