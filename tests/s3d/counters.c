/* counters.c - counts of requests, and the log of the last ones. */
#include "tests/s3d/counters.h"

#include "common/base/err.h"
#include "common/base/json.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

static const int statuses[] = {
    0,   100, 200, 204, 206, 301, 304, 307, 400, 403, 404, 405,
    409, 411, 412, 416, 429, 500, 501, 502, 503, 504, -1 /* all others */};
enum { STATUS_N = sizeof(statuses) / sizeof(statuses[0]) };

struct per_op {
    _Atomic uint64_t count;
    _Atomic uint64_t bytes_in;
    _Atomic uint64_t bytes_out;
    _Atomic uint64_t status[STATUS_N];
};

struct s3d_counters {
    _Atomic uint64_t in_flight;
    _Atomic uint64_t max_in_flight;
    _Atomic uint64_t connections;
    _Atomic uint64_t connections_open;
    _Atomic uint64_t auth_failures;
    _Atomic uint64_t slowdowns;
    struct per_op ops[S3D_OP_N];
};

static void add(_Atomic uint64_t *n, uint64_t v)
{
    atomic_fetch_add_explicit(n, v, memory_order_relaxed);
}

static uint64_t get(_Atomic uint64_t *n)
{
    return atomic_load_explicit(n, memory_order_relaxed);
}

struct s3d_counters *s3d_counters_new(void)
{
    return xf_xcalloc(1, sizeof(struct s3d_counters));
}

void s3d_counters_free(struct s3d_counters *c)
{
    xf_xfree(c);
}

void s3d_counters_reset(struct s3d_counters *c)
{
    atomic_store(&c->max_in_flight, get(&c->in_flight));
    atomic_store(&c->connections, 0);
    atomic_store(&c->auth_failures, 0);
    atomic_store(&c->slowdowns, 0);
    for (int i = 0; i < S3D_OP_N; i++) {
        struct per_op *o = &c->ops[i];
        atomic_store(&o->count, 0);
        atomic_store(&o->bytes_in, 0);
        atomic_store(&o->bytes_out, 0);
        for (int k = 0; k < STATUS_N; k++) {
            atomic_store(&o->status[k], 0);
        }
    }
}

void s3d_count_connection(struct s3d_counters *c, bool opened)
{
    if (opened) {
        add(&c->connections, 1);
        add(&c->connections_open, 1);
    } else {
        atomic_fetch_sub_explicit(&c->connections_open, 1, memory_order_relaxed);
    }
}

void s3d_count_begin(struct s3d_counters *c)
{
    uint64_t now = atomic_fetch_add_explicit(&c->in_flight, 1, memory_order_relaxed) + 1;
    uint64_t max = get(&c->max_in_flight);

    while (now > max && !atomic_compare_exchange_weak(&c->max_in_flight, &max, now)) {
    }
}

void s3d_count_end(struct s3d_counters *c, enum s3d_op op, int status, uint64_t in, uint64_t out)
{
    struct per_op *o = &c->ops[op];
    size_t i = 0;

    atomic_fetch_sub_explicit(&c->in_flight, 1, memory_order_relaxed);
    while (i + 1 < STATUS_N && statuses[i] != status) {
        i++;
    }
    add(&o->count, 1);
    add(&o->bytes_in, in);
    add(&o->bytes_out, out);
    add(&o->status[i], 1);
}

void s3d_count_auth_failure(struct s3d_counters *c)
{
    add(&c->auth_failures, 1);
}

void s3d_count_slowdown(struct s3d_counters *c)
{
    add(&c->slowdowns, 1);
}

static struct xf_json *report_op(struct per_op *o)
{
    struct xf_json *j = xf_json_object();
    struct xf_json *by_status = xf_json_object();
    char name[16];

    xf_json_set_u64(j, "count", get(&o->count));
    xf_json_set_u64(j, "bytes_in", get(&o->bytes_in));
    xf_json_set_u64(j, "bytes_out", get(&o->bytes_out));
    for (size_t i = 0; i < STATUS_N; i++) {
        if (get(&o->status[i]) > 0) {
            (void)snprintf(name, sizeof(name), "%d", statuses[i]);
            xf_json_set_u64(by_status, statuses[i] < 0 ? "other" : name, get(&o->status[i]));
        }
    }
    xf_json_put(j, "status", by_status);
    return j;
}

void s3d_counters_report(struct s3d_counters *c, struct xf_buf *out)
{
    XF_AUTO(xf_json) j = xf_json_object();
    struct xf_json *ops = xf_json_object();
    uint64_t requests = 0;
    uint64_t in = 0;
    uint64_t bytes_out = 0;

    for (int i = 0; i < S3D_OP_N; i++) {
        struct per_op *o = &c->ops[i];
        if (get(&o->count) == 0) {
            continue;
        }
        requests += get(&o->count);
        in += get(&o->bytes_in);
        bytes_out += get(&o->bytes_out);
        xf_json_put(ops, s3d_op_info((enum s3d_op)i)->name, report_op(o));
    }
    xf_json_set_u64(j, "requests", requests);
    xf_json_set_u64(j, "bytes_in", in);
    xf_json_set_u64(j, "bytes_out", bytes_out);
    xf_json_set_u64(j, "connections", get(&c->connections));
    xf_json_set_u64(j, "connections_open", get(&c->connections_open));
    xf_json_set_u64(j, "in_flight", get(&c->in_flight));
    xf_json_set_u64(j, "max_in_flight", get(&c->max_in_flight));
    xf_json_set_u64(j, "auth_failures", get(&c->auth_failures));
    xf_json_set_u64(j, "slowdowns", get(&c->slowdowns));
    xf_json_put(j, "ops", ops);
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    xf_buf_put_c(out, text);
}

/* ---- the log of requests ---- */

struct entry {
    uint64_t n;
    enum s3d_op op;
    char *json; /* the object, without its number */
};

struct s3d_reqlog {
    pthread_mutex_t lock;
    uint64_t cap;
    uint64_t next;
    struct entry *ring;
};

struct s3d_reqlog *s3d_reqlog_new(uint64_t cap)
{
    struct s3d_reqlog *l = xf_xcalloc(1, sizeof(*l));

    XF_ASSERT(pthread_mutex_init(&l->lock, NULL) == 0);
    l->cap = cap;
    l->ring = xf_xcalloc((size_t)cap, sizeof(struct entry));
    return l;
}

void s3d_reqlog_free(struct s3d_reqlog *l)
{
    if (l == NULL) {
        return;
    }
    for (uint64_t i = 0; i < l->cap; i++) {
        xf_xfree(l->ring[i].json);
    }
    xf_xfree(l->ring);
    (void)pthread_mutex_destroy(&l->lock); /* nobody else has it */
    xf_xfree(l);
}

void s3d_reqlog_add(struct s3d_reqlog *l, const struct s3d_logged *e)
{
    static const struct {
        const char *header;
        const char *name;
    } shown[] = {{"range", "range"},
                 {"x-amz-copy-source", "copy_source"},
                 {"x-amz-copy-source-range", "copy_source_range"},
                 {"x-amz-copy-source-if-match", "copy_source_if_match"},
                 {"if-match", "if_match"},
                 {"if-none-match", "if_none_match"},
                 {"x-amz-content-sha256", "content_sha256"}};
    XF_AUTO(xf_json) j = xf_json_object();
    struct xf_str v;

    xf_json_set_c(j, "op", s3d_op_info(e->op)->name);
    xf_json_set_bytes(j, "method", e->http->method_text);
    xf_json_set_bytes(j, "bucket", e->bucket);
    xf_json_set_bytes(j, "key", e->key);
    xf_json_set_bytes(j, "query", e->http->query);
    xf_json_set_i64(j, "status", e->status);
    xf_json_set_i64(j, "ms", e->ms);
    for (size_t i = 0; i < XF_ARRAY_LEN(shown); i++) {
        if (s3d_http_get(e->http, shown[i].header, &v)) {
            xf_json_set_bytes(j, shown[i].name, v);
        }
    }
    char *text = xf_json_dump(j, false);
    XF_ASSERT(pthread_mutex_lock(&l->lock) == 0);
    struct entry *slot = &l->ring[l->next % l->cap];
    xf_xfree(slot->json);
    *slot = (struct entry){l->next, e->op, text};
    l->next++;
    XF_ASSERT(pthread_mutex_unlock(&l->lock) == 0);
}

void s3d_reqlog_report(struct s3d_reqlog *l, uint64_t since, enum s3d_op op, struct xf_buf *out)
{
    bool first = true;

    XF_ASSERT(pthread_mutex_lock(&l->lock) == 0);
    uint64_t from = l->next > l->cap ? l->next - l->cap : 0;
    if (from < since) {
        from = since;
    }
    xf_buf_putf(out, "{\"next\":%llu,\"requests\":[", (unsigned long long)l->next);
    for (uint64_t n = from; n < l->next; n++) {
        const struct entry *e = &l->ring[n % l->cap];
        if (op != S3D_OP_N && e->op != op) {
            continue;
        }
        xf_buf_putf(out, "%s{\"n\":%llu,", first ? "" : ",", (unsigned long long)n);
        xf_buf_put_c(out, e->json + 1); /* without its brace */
        first = false;
    }
    xf_buf_put_c(out, "]}");
    XF_ASSERT(pthread_mutex_unlock(&l->lock) == 0);
}
