/* metrics.c - the table. */
#include "agent/metrics.h"

static const double request_bounds[] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60};

static const struct xf_metric_desc table[XF_AM_N] = {
    [XF_AM_S3_REQUESTS] = {.name = "xfer_s3_requests_total",
                           .type = XF_METRIC_COUNTER,
                           .help = "S3 requests, by operation and outcome.",
                           .labels = {"op", "code"}},
    [XF_AM_S3_SECONDS] = {.name = "xfer_s3_request_seconds",
                          .type = XF_METRIC_HISTOGRAM,
                          .help = "Time of S3 requests, by operation.",
                          .labels = {"op"},
                          .buckets = request_bounds,
                          .n_buckets = XF_ARRAY_LEN(request_bounds)},
    [XF_AM_OBJECTS] = {.name = "xfer_agent_objects_total",
                       .type = XF_METRIC_COUNTER,
                       .help = "Objects that got an outcome here."},
    [XF_AM_BYTES] = {.name = "xfer_agent_copied_bytes_total",
                     .type = XF_METRIC_COUNTER,
                     .help = "Bytes of objects and parts copied, server copies included."},
    [XF_AM_THROUGH] = {.name = "xfer_agent_through_bytes_total",
                       .type = XF_METRIC_COUNTER,
                       .help = "Bytes that went through this agent."},
    [XF_AM_THROTTLED] = {.name = "xfer_throttled_total",
                         .type = XF_METRIC_COUNTER,
                         .help = "Answers that asked for less."},
    [XF_AM_RETRIES] = {.name = "xfer_agent_retries_total",
                       .type = XF_METRIC_COUNTER,
                       .help = "Requests tried again."},
    [XF_AM_IN_FLIGHT] = {.name = "xfer_in_flight",
                         .type = XF_METRIC_GAUGE,
                         .help = "S3 requests in flight."},
    [XF_AM_TASKS] = {.name = "xfer_agent_leases", .type = XF_METRIC_GAUGE, .help = "Leases held."},
    [XF_AM_UP] = {.name = "xfer_agent_session_up",
                  .type = XF_METRIC_GAUGE,
                  .help = "1 while the coordinator answers, else 0."},
};

struct xf_metrics *xf_agent_metrics_new(void)
{
    return xf_metrics_new(table, XF_ARRAY_LEN(table));
}

void xf_agent_metrics_request(struct xf_metrics *m,
                              enum xf_s3_op op,
                              enum xf_code code,
                              int64_t took_us)
{
    if (m == NULL) {
        return;
    }
    const char *name = xf_s3_op_name(op);
    const char *label = code == XF_OK ? "ok" : xf_code_name(code);

    xf_series_add(xf_metrics_series(m, XF_AM_S3_REQUESTS, name, label, NULL), 1.0);
    xf_series_observe(xf_metrics_series(m, XF_AM_S3_SECONDS, name, NULL, NULL),
                      (double)took_us / 1e6);
}

void xf_agent_metrics_set(struct xf_metrics *m, enum xf_am row, double v)
{
    xf_series_set(xf_metrics_series(m, row, NULL, NULL, NULL), v);
}
