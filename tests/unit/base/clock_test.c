/* clock_test.c - the date formats of S3 and of people. */
#include "common/base/clock.h"
#include "common/base/retry.h"
#include "tests/lib/test.h"

static void dates_are_written_and_read_back(void **state)
{
    char text[XF_TIME_TEXT_MAX];
    int64_t ms;

    (void)state;                     /* no fixture */
    const int64_t t = 1369353600000; /* 2013-05-24T00:00:00Z, the day of AWS's signing examples */
    xf_time_amz(t, text);
    assert_string_equal(text, "20130524T000000Z");
    xf_time_http(t, text);
    assert_string_equal(text, "Fri, 24 May 2013 00:00:00 GMT");
    assert_true(xf_time_parse_http(xf_str_c(text), &ms));
    assert_true(ms == t);
    xf_time_rfc3339(t + 118, true, text);
    assert_string_equal(text, "2013-05-24T00:00:00.118Z");
    assert_true(xf_time_parse_rfc3339(xf_str_c(text), &ms));
    assert_true(ms == t + 118);
    xf_time_rfc3339(t, false, text);
    assert_string_equal(text, "2013-05-24T00:00:00Z");
    assert_true(xf_time_parse_rfc3339(XF_STR_LIT("2013-05-24T02:30:00+02:30"), &ms));
    assert_true(ms == t);
}

static void impossible_dates_are_refused(void **state)
{
    static const char *const bad[] = {"2013-02-29T00:00:00Z",
                                      "2013-13-01T00:00:00Z",
                                      "2013-05-24T24:00:00Z",
                                      "2013-05-24T00:00:00",
                                      "2013-05-24 00:00:00Z",
                                      "2013-05-24T00:00:00.Z",
                                      "2013-05-24T00:00:00Zx",
                                      ""};
    int64_t ms;

    (void)state; /* no fixture */
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_false(xf_time_parse_rfc3339(xf_str_c(bad[i]), &ms));
    }
    assert_true(xf_time_parse_rfc3339(XF_STR_LIT("2024-02-29T00:00:00Z"), &ms));
    assert_false(xf_time_parse_http(XF_STR_LIT("Fri, 24 Mai 2013 00:00:00 GMT"), &ms));
    assert_false(xf_time_parse_http(XF_STR_LIT("Fri, 24 May 2013 00:00:00 CET"), &ms));
}

static void waits_grow_to_their_cap_and_obey_retry_after(void **state)
{
    struct xf_rng rng;

    (void)state; /* no fixture */
    xf_rng_init(&rng, xf_test_seed());
    for (uint32_t n = 0; n < 40; n++) {
        int64_t transient = xf_retry_wait_ms(XF_CLASS_RETRY, n, 0, &rng);
        int64_t throttled = xf_retry_wait_ms(XF_CLASS_SLOW_DOWN, n, 0, &rng);
        assert_true(transient >= 0 && transient <= 20000);
        assert_true(throttled >= 0 && throttled <= 60000);
        assert_true(n > 5 || transient <= 50 << n);
        assert_true(xf_retry_wait_ms(XF_CLASS_SLOW_DOWN, n, 5000, &rng) >= 5000);
    }
    assert_true(xf_retry_wait_ms(XF_CLASS_RETRY, 0, INT64_MAX, &rng) <= 120000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dates_are_written_and_read_back),
        cmocka_unit_test(impossible_dates_are_refused),
        cmocka_unit_test(waits_grow_to_their_cap_and_obey_retry_after),
    };

    return xf_test_run("clock", tests, NULL, NULL);
}
