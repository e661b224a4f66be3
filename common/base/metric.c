/*
 * metric.c - series in one list a metric; values are atomics, so a bump takes no lock.
 *
 * The mutex guards the lists only: it is held while a series is looked up, dropped or printed,
 * never across a callback. A caller on a hot path keeps the series' pointer.
 */
#include "common/base/metric.h"

#include "common/base/err.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct xf_series {
    struct xf_series *next;
    char *labels[XF_METRIC_LABELS_MAX];
    _Atomic double value; /* counter and gauge; a histogram's sum */
    _Atomic uint64_t count;
    size_t n_buckets;
    const double *bounds;
    _Atomic uint64_t buckets[];
};

struct xf_metrics {
    const struct xf_metric_desc *table;
    size_t n;
    pthread_mutex_t lock;
    struct xf_series **heads;
};

struct xf_metrics *xf_metrics_new(const struct xf_metric_desc *table, size_t n)
{
    struct xf_metrics *m = xf_xcalloc(1, sizeof(*m));

    m->table = table;
    m->n = n;
    m->heads = xf_xcalloc(n, sizeof(struct xf_series *));
    XF_ASSERT(pthread_mutex_init(&m->lock, NULL) == 0);
    return m;
}

static void series_free(struct xf_series *s)
{
    for (int i = 0; i < XF_METRIC_LABELS_MAX; i++) {
        xf_xfree(s->labels[i]);
    }
    xf_xfree(s);
}

void xf_metrics_free(struct xf_metrics *m)
{
    if (m == NULL) {
        return;
    }
    for (size_t i = 0; i < m->n; i++) {
        while (m->heads[i] != NULL) {
            struct xf_series *s = m->heads[i];
            m->heads[i] = s->next;
            series_free(s);
        }
    }
    xf_xfree(m->heads);
    (void)pthread_mutex_destroy(&m->lock); /* nobody holds it any more */
    xf_xfree(m);
}

static void lock(struct xf_metrics *m)
{
    XF_ASSERT(pthread_mutex_lock(&m->lock) == 0);
}

static void unlock(struct xf_metrics *m)
{
    XF_ASSERT(pthread_mutex_unlock(&m->lock) == 0);
}

static bool same_labels(const struct xf_series *s, const char *const *want)
{
    for (int i = 0; i < XF_METRIC_LABELS_MAX; i++) {
        if ((s->labels[i] == NULL) != (want[i] == NULL)) {
            return false;
        }
        if (want[i] != NULL && strcmp(s->labels[i], want[i]) != 0) {
            return false;
        }
    }
    return true;
}

struct xf_series *
xf_metrics_series(struct xf_metrics *m, size_t idx, const char *l0, const char *l1, const char *l2)
{
    const char *want[XF_METRIC_LABELS_MAX] = {l0, l1, l2};

    XF_ASSERT(idx < m->n);
    lock(m);
    struct xf_series **at = &m->heads[idx];
    while (*at != NULL && !same_labels(*at, want)) {
        at = &(*at)->next;
    }
    if (*at == NULL) {
        size_t nb = m->table[idx].n_buckets;
        struct xf_series *s = xf_xcalloc(1, sizeof(*s) + nb * sizeof(s->buckets[0]));
        for (int i = 0; i < XF_METRIC_LABELS_MAX; i++) {
            s->labels[i] = want[i] == NULL ? NULL : xf_xstrdup(want[i]);
        }
        s->n_buckets = nb;
        s->bounds = m->table[idx].buckets;
        *at = s;
    }
    struct xf_series *found = *at;
    unlock(m);
    return found;
}

void xf_series_add(struct xf_series *s, double v)
{
    double old = atomic_load_explicit(&s->value, memory_order_relaxed);

    while (!atomic_compare_exchange_weak(&s->value, &old, old + v)) {
    }
}

void xf_series_set(struct xf_series *s, double v)
{
    atomic_store(&s->value, v);
}

void xf_series_observe(struct xf_series *s, double v)
{
    for (size_t i = 0; i < s->n_buckets; i++) {
        if (v <= s->bounds[i]) {
            atomic_fetch_add(&s->buckets[i], 1);
            break;
        }
    }
    atomic_fetch_add(&s->count, 1);
    xf_series_add(s, v);
}

double xf_series_value(const struct xf_series *s)
{
    return atomic_load(&s->value);
}

void xf_metrics_drop(struct xf_metrics *m, const char *name, const char *value)
{
    lock(m);
    for (size_t i = 0; i < m->n; i++) {
        int label = -1;
        for (int k = 0; k < XF_METRIC_LABELS_MAX && m->table[i].labels[k] != NULL; k++) {
            if (strcmp(m->table[i].labels[k], name) == 0) {
                label = k;
            }
        }
        struct xf_series **at = &m->heads[i];
        while (label >= 0 && *at != NULL) {
            struct xf_series *s = *at;
            if (s->labels[label] != NULL && strcmp(s->labels[label], value) == 0) {
                *at = s->next;
                series_free(s);
            } else {
                at = &s->next;
            }
        }
    }
    unlock(m);
}

/* Label values escape backslash, quote and newline (exposition format). */
static void put_labels(struct xf_buf *out,
                       const struct xf_metric_desc *d,
                       const struct xf_series *s,
                       const char *le)
{
    bool first = true;

    for (int i = 0; i < XF_METRIC_LABELS_MAX && d->labels[i] != NULL; i++) {
        if (s->labels[i] == NULL) {
            continue;
        }
        xf_buf_putf(out, "%s%s=\"", first ? "{" : ",", d->labels[i]);
        first = false;
        for (const char *p = s->labels[i]; *p != '\0'; p++) {
            if (*p == '\\' || *p == '"') {
                xf_buf_put_byte(out, '\\');
            }
            xf_buf_put_c(out, *p == '\n' ? "\\n" : (const char[2]){*p, '\0'});
        }
        xf_buf_put_byte(out, '"');
    }
    if (le != NULL) {
        xf_buf_putf(out, "%sle=\"%s\"", first ? "{" : ",", le);
        first = false;
    }
    if (!first) {
        xf_buf_put_byte(out, '}');
    }
}

/* The shortest text that reads back as the same number; 17 digits always do. */
static void put_number(struct xf_buf *out, double v)
{
    char text[32];
    int digits = 15;

    do {
        (void)snprintf(text, sizeof(text), "%.*g", digits, v); /* it fits */
    } while (digits++ < 17 && strtod(text, NULL) != v);
    xf_buf_put_c(out, text);
}

static void
put_histogram(struct xf_buf *out, const struct xf_metric_desc *d, const struct xf_series *s)
{
    uint64_t below = 0;

    for (size_t i = 0; i < s->n_buckets; i++) {
        struct xf_buf b;
        below += atomic_load(&s->buckets[i]);
        xf_buf_init(&b, 64);
        xf_buf_putf(&b, "%g", s->bounds[i]);
        xf_buf_putf(out, "%s_bucket", d->name);
        put_labels(out, d, s, xf_buf_view(&b).ptr);
        xf_buf_putf(out, " %llu\n", (unsigned long long)below);
        xf_buf_fini(&b);
    }
    unsigned long long count = atomic_load(&s->count);
    xf_buf_putf(out, "%s_bucket", d->name);
    put_labels(out, d, s, "+Inf");
    xf_buf_putf(out, " %llu\n%s_sum", count, d->name);
    put_labels(out, d, s, NULL);
    xf_buf_put_byte(out, ' ');
    put_number(out, xf_series_value(s));
    xf_buf_putf(out, "\n%s_count", d->name);
    put_labels(out, d, s, NULL);
    xf_buf_putf(out, " %llu\n", count);
}

void xf_metrics_write(struct xf_metrics *m, struct xf_buf *out)
{
    static const char *const types[] = {"counter", "gauge", "histogram"};

    lock(m);
    for (size_t i = 0; i < m->n; i++) {
        const struct xf_metric_desc *d = &m->table[i];
        xf_buf_putf(out, "# HELP %s %s\n# TYPE %s %s\n", d->name, d->help, d->name, types[d->type]);
        for (const struct xf_series *s = m->heads[i]; s != NULL; s = s->next) {
            if (d->type == XF_METRIC_HISTOGRAM) {
                put_histogram(out, d, s);
            } else {
                xf_buf_put_c(out, d->name);
                put_labels(out, d, s, NULL);
                xf_buf_put_byte(out, ' ');
                put_number(out, xf_series_value(s));
                xf_buf_put_byte(out, '\n');
            }
        }
    }
    unlock(m);
}
