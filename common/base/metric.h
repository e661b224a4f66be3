/*
 * metric.h - counters, gauges and histograms, and their Prometheus text form.
 *
 * A program has one table of metrics (name, type, help, label names). Series are made on first
 * use from closed label sets. Threads: counters and histograms may be bumped from any thread;
 * creating a series and writing the text take a lock inside.
 */
#ifndef XF_BASE_METRIC_H
#define XF_BASE_METRIC_H

#include "common/base/mem.h"
#include "common/base/str.h"

enum xf_metric_type { XF_METRIC_COUNTER, XF_METRIC_GAUGE, XF_METRIC_HISTOGRAM };

enum { XF_METRIC_LABELS_MAX = 3 };

struct xf_metric_desc {
    const char *name;
    enum xf_metric_type type;
    const char *help;
    const char *labels[XF_METRIC_LABELS_MAX]; /* NULL from the first unused on */
    const double *buckets;                    /* histogram: upper bounds, ascending, +Inf implied */
    size_t n_buckets;
};

struct xf_metrics; /* opaque */
struct xf_series;  /* opaque; lives as long as its set, or until its label is dropped */

/** The table is borrowed for the set's life. */
struct xf_metrics *xf_metrics_new(const struct xf_metric_desc *table, size_t n);
void xf_metrics_free(struct xf_metrics *m);
XF_AUTO_DEFINE(xf_metrics, xf_metrics_free)
/** Series of table row `idx` with these label values (NULL for unused). */
struct xf_series *
xf_metrics_series(struct xf_metrics *m, size_t idx, const char *l0, const char *l1, const char *l2);
void xf_series_add(struct xf_series *s, double v);     /* counter, gauge */
void xf_series_set(struct xf_series *s, double v);     /* gauge; counter read from elsewhere */
void xf_series_observe(struct xf_series *s, double v); /* histogram */
double xf_series_value(const struct xf_series *s);
/** Remove every series whose label `name` has this value. */
void xf_metrics_drop(struct xf_metrics *m, const char *name, const char *value);
/** Prometheus text exposition format 0.0.4. */
void xf_metrics_write(struct xf_metrics *m, struct xf_buf *out);

#endif
