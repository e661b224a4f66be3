/* metric_test.c - the text form and dropped labels. */
#include "common/base/metric.h"
#include "tests/lib/test.h"

static const double bounds[] = {0.1, 1};
static const struct xf_metric_desc table[] = {
    {"xfer_things_total", XF_METRIC_COUNTER, "Things.", {"job", "kind"}, NULL, 0},
    {"xfer_wait_seconds", XF_METRIC_HISTOGRAM, "Waits.", {NULL}, bounds, 2},
};

static void text_is_prometheus_exposition(void **state)
{
    XF_AUTO(xf_metrics) m = xf_metrics_new(table, 2);
    XF_AUTO_BUF out = {0};

    (void)state; /* no fixture */
    xf_buf_init(&out, 0);
    xf_series_add(xf_metrics_series(m, 0, "j\"1\\\n", "a", NULL), 2);
    xf_series_add(xf_metrics_series(m, 0, "j\"1\\\n", "a", NULL), 1);
    struct xf_series *h = xf_metrics_series(m, 1, NULL, NULL, NULL);
    xf_series_observe(h, 0.05);
    xf_series_observe(h, 0.5);
    xf_series_observe(h, 5);
    xf_metrics_write(m, &out);
    assert_non_null(strstr(out.ptr,
                           "# TYPE xfer_things_total "
                           "counter\nxfer_things_total{job=\"j\\\"1\\\\\\n\",kind=\"a\"} 3\n"));
    assert_non_null(strstr(out.ptr, "xfer_wait_seconds_bucket{le=\"0.1\"} 1\n"));
    assert_non_null(strstr(out.ptr, "xfer_wait_seconds_bucket{le=\"1\"} 2\n"));
    assert_non_null(strstr(out.ptr, "xfer_wait_seconds_bucket{le=\"+Inf\"} 3\n"));
    assert_non_null(strstr(out.ptr, "xfer_wait_seconds_count 3\n"));
}

static void numbers_are_the_shortest_that_read_back(void **state)
{
    static const struct {
        double v;
        const char *text;
    } rows[] = {{0, "0"},
                {0.1, "0.1"},
                {0.1 + 0.2, "0.30000000000000004"},
                {2.0 / 3, "0.6666666666666666"},
                {12345678901234, "12345678901234"},
                {9007199254740991, "9007199254740991"},
                {1e300, "1e+300"}};

    (void)state; /* no fixture */
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        XF_AUTO(xf_metrics) m = xf_metrics_new(table, 2);
        XF_AUTO_BUF out = {0};
        XF_AUTO_BUF want = {0};
        xf_buf_init(&out, 0);
        xf_buf_init(&want, 0);
        xf_series_set(xf_metrics_series(m, 0, "j-1", "a", NULL), rows[i].v);
        xf_metrics_write(m, &out);
        xf_buf_putf(&want, "{job=\"j-1\",kind=\"a\"} %s\n", rows[i].text);
        assert_non_null(strstr(out.ptr, want.ptr));
    }
}

static void a_pruned_job_takes_its_series_along(void **state)
{
    XF_AUTO(xf_metrics) m = xf_metrics_new(table, 2);
    XF_AUTO_BUF out = {0};

    (void)state; /* no fixture */
    xf_buf_init(&out, 0);
    xf_series_add(xf_metrics_series(m, 0, "j-1", "a", NULL), 1);
    xf_series_add(xf_metrics_series(m, 0, "j-2", "a", NULL), 1);
    xf_metrics_drop(m, "job", "j-1");
    xf_metrics_write(m, &out);
    assert_null(strstr(out.ptr, "j-1"));
    assert_non_null(strstr(out.ptr, "j-2"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_prometheus_exposition),
        cmocka_unit_test(numbers_are_the_shortest_that_read_back),
        cmocka_unit_test(a_pruned_job_takes_its_series_along),
    };

    return xf_test_run("metric", tests, NULL, NULL);
}
