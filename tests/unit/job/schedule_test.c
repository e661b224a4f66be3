/* schedule_test.c - limits by the time of day. */
#include "common/job/schedule.h"
#include "tests/lib/test.h"

static struct xf_schedule parse(const char *text, enum xf_schedule_unit unit)
{
    struct xf_schedule s;
    struct xf_err err;

    if (xf_schedule_parse(xf_str_c(text), unit, &s, &err) != XF_OK) {
        fail_msg("'%s': %s", text, err.msg);
    }
    return s;
}

static void one_limit_holds_all_day(void **state)
{
    (void)state;
    struct xf_schedule s = parse("8Mbit/s", XF_SCHEDULE_BYTES_S);

    assert_int_equal(xf_schedule_at(&s, 0), 1000000);
    assert_int_equal(xf_schedule_at(&s, 1439), 1000000);
    s = parse("500/s", XF_SCHEDULE_REQUESTS_S);
    assert_int_equal(xf_schedule_at(&s, 700), 500);
    s = parse("500", XF_SCHEDULE_REQUESTS_S);
    assert_int_equal(xf_schedule_at(&s, 700), 500);
    s = parse("off", XF_SCHEDULE_BYTES_S);
    assert_int_equal(xf_schedule_at(&s, 700), 0);
    s = parse("", XF_SCHEDULE_BYTES_S);
    assert_int_equal(xf_schedule_at(&s, 700), 0);
}

static void each_entry_holds_until_the_next_and_over_midnight(void **state)
{
    (void)state;
    struct xf_schedule s = parse("08:00,8Mbit/s  12:30,off 20:00,80Mbit/s", XF_SCHEDULE_BYTES_S);

    assert_int_equal(xf_schedule_at(&s, 8 * 60), 1000000);
    assert_int_equal(xf_schedule_at(&s, 12 * 60 + 29), 1000000);
    assert_int_equal(xf_schedule_at(&s, 12 * 60 + 30), 0);
    assert_int_equal(xf_schedule_at(&s, 20 * 60), 10000000);
    assert_int_equal(xf_schedule_at(&s, 0), 10000000);
    assert_int_equal(xf_schedule_at(&s, 8 * 60 - 1), 10000000);
}

static void what_is_no_limit_is_refused(void **state)
{
    (void)state;
    static const char *const bad[] = {"x",
                                      "10",
                                      "1bit/s",
                                      "8Mbit/s off",
                                      "08:00",
                                      "08:00,",
                                      "8:00,8Mbit/s",
                                      "24:00,off",
                                      "08:60,off",
                                      "08:00,off 08:00,8Mbit/s",
                                      "09:00,off 08:00,8Mbit/s",
                                      "08:00,off,off",
                                      "-1:00,off"};
    struct xf_schedule s = {.n = 7};
    struct xf_err err;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_int_equal(xf_schedule_parse(xf_str_c(bad[i]), XF_SCHEDULE_BYTES_S, &s, &err),
                         XF_E_INVAL);
        assert_int_equal(s.n, 7);
    }
    assert_int_equal(xf_schedule_parse(XF_STR_LIT("0/s"), XF_SCHEDULE_REQUESTS_S, &s, &err),
                     XF_E_INVAL);
    assert_int_equal(xf_schedule_parse(XF_STR_LIT("1.5/s"), XF_SCHEDULE_REQUESTS_S, &s, &err),
                     XF_E_INVAL);
}

static void there_are_not_more_entries_than_hold(void **state)
{
    (void)state;
    struct xf_schedule s;
    struct xf_err err;
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    for (int i = 0; i < XF_SCHEDULE_MAX; i++) {
        xf_buf_putf(&text, "%02d:30,off ", i);
    }
    assert_int_equal(xf_schedule_parse(xf_buf_view(&text), XF_SCHEDULE_BYTES_S, &s, &err), XF_OK);
    xf_buf_put_c(&text, "23:59,off");
    assert_int_equal(xf_schedule_parse(xf_buf_view(&text), XF_SCHEDULE_BYTES_S, &s, &err),
                     XF_E_INVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_limit_holds_all_day),
        cmocka_unit_test(each_entry_holds_until_the_next_and_over_midnight),
        cmocka_unit_test(what_is_no_limit_is_refused),
        cmocka_unit_test(there_are_not_more_entries_than_hold),
    };
    return xf_test_run("schedule", tests, NULL, NULL);
}
