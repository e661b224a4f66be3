/* limits.c - modelled speed. */
#include "tests/s3d/limits.h"

#include "common/base/map.h"
#include "tests/s3d/gen.h"

#include <pthread.h>
#include <stdatomic.h>

struct bucket_state {
    double tokens[2]; /* read, write */
    int64_t at_ms[2];
    size_t key_len;
    char key[];
};

struct s3d_limits {
    _Atomic int64_t latency_ms[S3D_OP_N];
    _Atomic uint64_t copy_rate;
    _Atomic bool limited;
    pthread_mutex_t lock; /* of what follows */
    double rate[2];
    double burst;
    uint64_t segments;
    struct xf_map states;
};

struct s3d_limits *s3d_limits_new(void)
{
    struct s3d_limits *l = xf_xcalloc(1, sizeof(*l));

    XF_ASSERT(pthread_mutex_init(&l->lock, NULL) == 0);
    xf_map_init(&l->states);
    return l;
}

static void forget_states(struct s3d_limits *l)
{
    size_t at = 0;

    for (void *s = xf_map_next(&l->states, &at); s != NULL; s = xf_map_next(&l->states, &at)) {
        xf_xfree(s);
    }
    xf_map_fini(&l->states);
    xf_map_init(&l->states);
}

void s3d_limits_free(struct s3d_limits *l)
{
    if (l != NULL) {
        forget_states(l);
        xf_map_fini(&l->states);
        (void)pthread_mutex_destroy(&l->lock); /* nobody else has it */
        xf_xfree(l);
    }
}

/* One "name=ms"; groups and operations go to different tables, so that the narrower name wins. */
struct latencies {
    int64_t dflt;
    int64_t group[S3D_GROUP_N];
    int64_t op[S3D_OP_N];
};

static enum xf_code latency_field(struct latencies *t, struct xf_str f, struct xf_err *err)
{
    struct xf_str rest = f;
    struct xf_str name = XF_STR_EMPTY;
    enum s3d_group group;
    enum s3d_op op;
    uint64_t ms;

    if (!xf_str_cut(&rest, '=', &name) || !xf_str_u64(rest, &ms) || ms > 3600000) {
        return XF_FAIL(err, XF_E_INVAL, "latency '%.*s' is not NAME=MILLISECONDS", XF_STR_ARG(f));
    }
    if (xf_str_eq_c(name, "default")) {
        t->dflt = (int64_t)ms;
    } else if (s3d_group_parse(name, &group)) {
        t->group[group] = (int64_t)ms;
    } else if (s3d_op_parse(name, &op)) {
        t->op[op] = (int64_t)ms;
    } else {
        return XF_FAIL(err, XF_E_INVAL, "latency of an unknown operation '%.*s'", XF_STR_ARG(name));
    }
    return XF_OK;
}

enum xf_code s3d_limits_latency(struct s3d_limits *l, struct xf_str text, struct xf_err *err)
{
    struct latencies t;
    struct xf_str f;

    memset(&t, 0xff, sizeof(t)); /* -1: not given */
    t.dflt = 0;
    while (xf_str_cut(&text, ',', &f)) {
        XF_TRY(latency_field(&t, f, err));
    }
    for (int i = 0; i < S3D_OP_N; i++) {
        enum s3d_group g = s3d_op_info((enum s3d_op)i)->group;
        int64_t ms = t.op[i] >= 0 ? t.op[i] : t.group[g];
        if (ms < 0 && i == S3D_OP_HEAD) {
            ms = t.group[S3D_GROUP_GET]; /* "get" covers HeadObject */
        }
        atomic_store(&l->latency_ms[i], ms >= 0 ? ms : t.dflt);
    }
    return XF_OK;
}

static enum xf_code
rps_field(struct xf_str f, double rate[2], double *burst, uint64_t *segments, struct xf_err *err)
{
    struct xf_str rest = f;
    struct xf_str name = XF_STR_EMPTY;
    uint64_t v;

    if (!xf_str_cut(&rest, '=', &name) || !xf_str_u64(rest, &v)) {
        return XF_FAIL(
            err, XF_E_INVAL, "prefix limit field '%.*s' is not NAME=NUMBER", XF_STR_ARG(f));
    }
    if (xf_str_eq_c(name, "read")) {
        rate[0] = (double)v;
    } else if (xf_str_eq_c(name, "write")) {
        rate[1] = (double)v;
    } else if (xf_str_eq_c(name, "burst")) {
        *burst = (double)v;
    } else if (xf_str_eq_c(name, "segments")) {
        *segments = v;
    } else {
        return XF_FAIL(err, XF_E_INVAL, "unknown prefix limit field '%.*s'", XF_STR_ARG(name));
    }
    return XF_OK;
}

enum xf_code s3d_limits_rps(struct s3d_limits *l, struct xf_str text, struct xf_err *err)
{
    double rate[2] = {0, 0};
    double burst = 0;
    uint64_t segments = 1;
    uint64_t v = 0;
    struct xf_str f;

    if (xf_str_cut(&text, ':', &f)) {
        if (!xf_str_u64(f, &v)) {
            return XF_FAIL(err, XF_E_INVAL, "prefix limit '%.*s' is not a number", XF_STR_ARG(f));
        }
        rate[0] = rate[1] = (double)v;
    }
    while (xf_str_cut(&text, ':', &f)) {
        XF_TRY(rps_field(f, rate, &burst, &segments, err));
    }
    XF_ASSERT(pthread_mutex_lock(&l->lock) == 0);
    l->rate[0] = rate[0];
    l->rate[1] = rate[1];
    l->burst = burst;
    l->segments = segments;
    forget_states(l);
    atomic_store(&l->limited, rate[0] > 0 || rate[1] > 0);
    XF_ASSERT(pthread_mutex_unlock(&l->lock) == 0);
    return XF_OK;
}

enum xf_code s3d_limits_copy_rate(struct s3d_limits *l, struct xf_str text, struct xf_err *err)
{
    uint64_t v = 0;

    if (text.len > 0 && !s3d_size_parse(text, &v)) {
        return XF_FAIL(err, XF_E_INVAL, "copy rate '%.*s' is not a size", XF_STR_ARG(text));
    }
    atomic_store(&l->copy_rate, v);
    return XF_OK;
}

int64_t s3d_limits_delay_ms(struct s3d_limits *l, enum s3d_op op)
{
    return atomic_load_explicit(&l->latency_ms[op], memory_order_relaxed);
}

bool s3d_limits_has_copy_rate(struct s3d_limits *l)
{
    return atomic_load_explicit(&l->copy_rate, memory_order_relaxed) != 0;
}

int64_t s3d_limits_copy_ms(struct s3d_limits *l, uint64_t bytes)
{
    uint64_t rate = atomic_load_explicit(&l->copy_rate, memory_order_relaxed);

    return rate == 0 ? 0 : (int64_t)((double)bytes * 1000.0 / (double)rate);
}

/* The bucket and the first segments of the key. */
static void
state_name(const struct s3d_limits *l, struct xf_str bucket, struct xf_str key, struct xf_buf *out)
{
    size_t end = 0;

    for (uint64_t i = 0; i < l->segments; i++) {
        size_t slash = xf_str_find(key, '/', end);
        if (slash == SIZE_MAX) {
            break;
        }
        end = slash + 1;
    }
    xf_buf_put(out, bucket);
    xf_buf_put_byte(out, '/');
    xf_buf_put(out, xf_str_sub(key, 0, end));
}

static struct bucket_state *
state_of(struct s3d_limits *l, struct xf_str name, int64_t mono_ms, const double full[2])
{
    struct bucket_state *s = xf_map_get(&l->states, name);

    if (s == NULL) {
        s = xf_xcalloc(1, sizeof(*s) + name.len);
        s->key_len = name.len;
        memcpy(s->key, name.ptr, name.len);
        for (int i = 0; i < 2; i++) {
            s->tokens[i] = full[i];
            s->at_ms[i] = mono_ms;
        }
        (void)xf_map_put(&l->states, xf_str_n(s->key, s->key_len), s); /* not there, as looked up */
    }
    return s;
}

static bool take_token(struct s3d_limits *l, int kind, struct xf_str name, int64_t mono_ms)
{
    double full[2];

    for (int i = 0; i < 2; i++) {
        full[i] = l->burst > 0 ? l->burst : l->rate[i] < 1 ? 1 : l->rate[i];
    }
    struct bucket_state *s = state_of(l, name, mono_ms, full);
    if (mono_ms > s->at_ms[kind]) { /* each thread has its own, slightly older now */
        s->tokens[kind] += (double)(mono_ms - s->at_ms[kind]) * l->rate[kind] / 1000.0;
        s->at_ms[kind] = mono_ms;
    }
    if (s->tokens[kind] > full[kind]) {
        s->tokens[kind] = full[kind];
    }
    if (s->tokens[kind] < 1) {
        return false;
    }
    s->tokens[kind] -= 1;
    return true;
}

bool s3d_limits_admit(
    struct s3d_limits *l, enum s3d_op op, struct xf_str bucket, struct xf_str key, int64_t mono_ms)
{
    bool ok = true;
    int kind = s3d_op_info(op)->writes ? 1 : 0;

    if (!atomic_load_explicit(&l->limited, memory_order_relaxed) || bucket.len == 0) {
        return true;
    }
    XF_AUTO_BUF name = {0};
    xf_buf_init(&name, 0);
    XF_ASSERT(pthread_mutex_lock(&l->lock) == 0);
    if (l->rate[kind] > 0) {
        state_name(l, bucket, key, &name);
        ok = take_token(l, kind, xf_buf_view(&name), mono_ms);
    }
    XF_ASSERT(pthread_mutex_unlock(&l->lock) == 0);
    return ok;
}
