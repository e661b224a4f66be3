/*
 * metrics.c - the table.
 */
#include "coordinator/metrics.h"

static const double request_bounds[] = {
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30};
static const double commit_bounds[] = {0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5};

static const struct xf_metric_desc table[XF_CM_N] = {
    [XF_CM_OBJECTS] = {.name = "xfer_objects_total",
                       .type = XF_METRIC_COUNTER,
                       .help = "Objects by what became of them.",
                       .labels = {"job", "outcome"}},
    [XF_CM_BYTES] = {.name = "xfer_bytes_total",
                     .type = XF_METRIC_COUNTER,
                     .help = "Bytes copied, by way: server or relay.",
                     .labels = {"job", "mode"}},
    [XF_CM_LISTED_KEYS] = {.name = "xfer_listed_keys_total",
                           .type = XF_METRIC_COUNTER,
                           .help = "Keys that the sources' listings returned.",
                           .labels = {"job"}},
    [XF_CM_BATCHES] = {.name = "xfer_batches",
                       .type = XF_METRIC_GAUGE,
                       .help = "Tasks of jobs that run, by state.",
                       .labels = {"state"}},
    [XF_CM_LEASE_EXPIRED] = {.name = "xfer_lease_expired_total",
                             .type = XF_METRIC_COUNTER,
                             .help = "Leases that ran out."},
    [XF_CM_STALE_REPORTS] = {.name = "xfer_stale_reports_total",
                             .type = XF_METRIC_COUNTER,
                             .help = "Reports of an old attempt, dropped and checked again."},
    [XF_CM_RETRIES] = {.name = "xfer_retries_total",
                       .type = XF_METRIC_COUNTER,
                       .help = "Requests tried again by agents.",
                       .labels = {"class"}},
    [XF_CM_S3_REQUESTS] = {.name = "xfer_s3_requests_total",
                           .type = XF_METRIC_COUNTER,
                           .help = "The coordinator's own S3 requests.",
                           .labels = {"op", "code"}},
    [XF_CM_S3_SECONDS] = {.name = "xfer_s3_request_seconds",
                          .type = XF_METRIC_HISTOGRAM,
                          .help = "Time of the coordinator's own S3 requests.",
                          .labels = {"op"},
                          .buckets = request_bounds,
                          .n_buckets = XF_ARRAY_LEN(request_bounds)},
    [XF_CM_THROTTLED] = {.name = "xfer_throttled_total",
                         .type = XF_METRIC_COUNTER,
                         .help = "Answers that asked for less, at agents and in listings."},
    [XF_CM_IN_FLIGHT] = {.name = "xfer_in_flight",
                         .type = XF_METRIC_GAUGE,
                         .help = "Requests in flight at the agents."},
    [XF_CM_AGENTS] = {.name = "xfer_agents",
                      .type = XF_METRIC_GAUGE,
                      .help = "Agents by state.",
                      .labels = {"state"}},
    [XF_CM_COMMIT_SECONDS] = {.name = "xfer_store_commit_seconds",
                              .type = XF_METRIC_HISTOGRAM,
                              .help = "Time of the store's transactions.",
                              .buckets = commit_bounds,
                              .n_buckets = XF_ARRAY_LEN(commit_bounds)},
    [XF_CM_STORE_BYTES] = {.name = "xfer_store_bytes",
                           .type = XF_METRIC_GAUGE,
                           .help = "Size of the queue on disk."},
    [XF_CM_WAL_BYTES] = {.name = "xfer_store_wal_bytes",
                         .type = XF_METRIC_GAUGE,
                         .help = "Size of the queue's log on disk."},
    [XF_CM_REPLAYED] = {.name = "xfer_requests_replayed_total",
                        .type = XF_METRIC_COUNTER,
                        .help = "Requests that arrived again and got the same answer."},
};

struct xf_metrics *xf_cmetrics_new(void)
{
    static const char *const agent_states[] = {"up", "draining", "unfit", "lost"};
    struct xf_metrics *m = xf_metrics_new(table, XF_CM_N);

    /* Every unlabelled series and closed set is there from the start. */
    for (size_t i = 0; i < XF_CM_N; i++) {
        if (table[i].labels[0] == NULL) {
            (void)xf_metrics_series(m, i, NULL, NULL, NULL); /* made on first use */
        }
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(agent_states); i++) {
        xf_cmetrics_set(m, XF_CM_AGENTS, agent_states[i], 0);
    }
    xf_cmetrics_set(m, XF_CM_BATCHES, "ready", 0);
    xf_cmetrics_set(m, XF_CM_BATCHES, "leased", 0);
    xf_cmetrics_add(m, XF_CM_RETRIES, "transient", 0);
    xf_cmetrics_add(m, XF_CM_RETRIES, "throttled", 0);
    return m;
}

void xf_cmetrics_job(struct xf_metrics *m, const struct xf_job_row *row)
{
    XF_AUTO_FREE char *id = xf_str_dup(row->public_id);
    const struct {
        const char *name;
        uint64_t n;
    } outcomes[] = {
        {"copied", row->n.copied},
        {"skipped", row->n.skipped},
        {"failed", row->n.failed},
        {"vanished", row->n.vanished},
        {"archived", row->n.archived},
    };
    uint64_t relay = row->n.bytes_through;
    uint64_t server = row->n.bytes_copied > relay ? row->n.bytes_copied - relay : 0;

    for (size_t i = 0; i < XF_ARRAY_LEN(outcomes); i++) {
        xf_series_set(xf_metrics_series(m, XF_CM_OBJECTS, id, outcomes[i].name, NULL),
                      (double)outcomes[i].n);
    }
    xf_series_set(xf_metrics_series(m, XF_CM_BYTES, id, "server", NULL), (double)server);
    xf_series_set(xf_metrics_series(m, XF_CM_BYTES, id, "relay", NULL), (double)relay);
    xf_series_set(xf_metrics_series(m, XF_CM_LISTED_KEYS, id, NULL, NULL),
                  (double)row->n.keys_returned);
}

void xf_cmetrics_add(struct xf_metrics *m, enum xf_cmetric which, const char *label, double v)
{
    xf_series_add(xf_metrics_series(m, which, label, NULL, NULL), v);
}

void xf_cmetrics_set(struct xf_metrics *m, enum xf_cmetric which, const char *label, double v)
{
    xf_series_set(xf_metrics_series(m, which, label, NULL, NULL), v);
}

void xf_cmetrics_on_request(
    void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us)
{
    struct xf_metrics *m = arg;

    (void)status; /* the code says more */
    xf_series_add(
        xf_metrics_series(m, XF_CM_S3_REQUESTS, xf_s3_op_name(op), xf_code_name(code), NULL), 1);
    xf_series_observe(xf_metrics_series(m, XF_CM_S3_SECONDS, xf_s3_op_name(op), NULL, NULL),
                      (double)took_us / 1e6);
    if (code == XF_E_THROTTLED) {
        xf_cmetrics_add(m, XF_CM_THROTTLED, NULL, 1);
    }
}

void xf_cmetrics_on_commit(void *arg, size_t n_ops, int64_t took_ns)
{
    struct xf_metrics *m = arg;

    (void)n_ops; /* the histogram is of transactions */
    xf_series_observe(xf_metrics_series(m, XF_CM_COMMIT_SECONDS, NULL, NULL, NULL),
                      (double)took_ns / 1e9);
}
