/* fault.c - which rule fires for a request, and random faults. Reading the rules' JSON is in
 * fault_parse.c. */
#include "tests/s3d/fault.h"

#include "common/base/list.h"
#include "common/base/rng.h"
#include "tests/s3d/fault_int.h"

#include <pthread.h>

struct s3d_faults {
    _Atomic uint64_t epoch;
    _Atomic bool active;  /* there is a rule or a rate */
    pthread_mutex_t lock; /* of what follows */
    struct xf_list rules;
    struct xf_rng rng;
    double rate[S3D_RATE_N];
};

struct s3d_faults *s3d_faults_new(uint64_t seed)
{
    struct s3d_faults *f = xf_xcalloc(1, sizeof(*f));

    XF_ASSERT(pthread_mutex_init(&f->lock, NULL) == 0);
    xf_list_init(&f->rules);
    xf_rng_init(&f->rng, seed);
    return f;
}

void s3d_rule_unref(struct s3d_rule *r)
{
    if (r == NULL || atomic_fetch_sub_explicit(&r->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    s3d_side_put_free(r->put);
    s3d_side_put_free(r->del);
    xf_json_free(r->json);
    xf_xfree(r);
}

void s3d_faults_free(struct s3d_faults *f)
{
    if (f == NULL) {
        return;
    }
    (void)s3d_faults_drop(f, XF_STR_EMPTY); /* how many does not matter */
    (void)pthread_mutex_destroy(&f->lock);  /* nobody else has it */
    xf_xfree(f);
}

static void lock(struct s3d_faults *f)
{
    XF_ASSERT(pthread_mutex_lock(&f->lock) == 0);
}

static void unlock(struct s3d_faults *f)
{
    XF_ASSERT(pthread_mutex_unlock(&f->lock) == 0);
}

static void set_active_locked(struct s3d_faults *f)
{
    bool on = !xf_list_is_empty(&f->rules);

    for (int i = 0; i < S3D_RATE_N; i++) {
        on = on || f->rate[i] > 0;
    }
    atomic_store(&f->active, on);
}

enum xf_code s3d_faults_add(struct s3d_faults *f, struct xf_str json, size_t *n, struct xf_err *err)
{
    struct xf_list fresh;

    xf_list_init(&fresh);
    enum xf_code rc = s3d_rules_parse(json, &fresh, err);
    *n = 0;
    lock(f);
    XF_LIST_FOREACH (node, &fresh) {
        struct s3d_rule *r = XF_CONTAINER_OF(node, struct s3d_rule, in_list);
        xf_list_remove(node);
        if (rc != XF_OK) {
            s3d_rule_unref(r);
            continue;
        }
        xf_list_push_back(&f->rules, node);
        (*n)++;
    }
    set_active_locked(f);
    unlock(f);
    return rc;
}

size_t s3d_faults_drop(struct s3d_faults *f, struct xf_str id)
{
    size_t n = 0;

    lock(f);
    XF_LIST_FOREACH (node, &f->rules) {
        struct s3d_rule *r = XF_CONTAINER_OF(node, struct s3d_rule, in_list);
        if (id.len == 0 || xf_str_eq_c(id, r->id)) {
            xf_list_remove(node);
            s3d_rule_unref(r);
            n++;
        }
    }
    set_active_locked(f);
    atomic_fetch_add(&f->epoch, 1);
    unlock(f);
    return n;
}

uint64_t s3d_faults_epoch(const struct s3d_faults *f)
{
    return atomic_load_explicit(&f->epoch, memory_order_relaxed);
}

void s3d_faults_report(struct s3d_faults *f, struct xf_buf *out)
{
    XF_AUTO(xf_json) all = xf_json_array();

    lock(f);
    XF_LIST_FOREACH (node, &f->rules) {
        const struct s3d_rule *r = XF_CONTAINER_OF(node, struct s3d_rule, in_list);
        struct xf_json *j = xf_json_object();
        xf_json_set_c(j, "id", r->id);
        xf_json_set_u64(j, "matched", r->matched);
        xf_json_set_u64(j, "fired", r->fired);
        xf_json_append(all, j);
    }
    unlock(f);
    XF_AUTO_FREE char *text = xf_json_dump(all, false);
    xf_buf_put_c(out, text);
}

enum xf_code s3d_faults_rate(struct s3d_faults *f, struct xf_str text, struct xf_err *err)
{
    double rate[S3D_RATE_N] = {0};

    XF_TRY(s3d_rates_parse(text, rate, err));
    lock(f);
    memcpy(f->rate, rate, sizeof(rate));
    set_active_locked(f);
    unlock(f);
    return XF_OK;
}

/* ---- matching ---- */

bool s3d_glob_matches(struct xf_str glob, struct xf_str text)
{
    size_t g = 0;
    size_t t = 0;
    size_t star = SIZE_MAX;
    size_t star_text = 0;

    while (t < text.len) {
        if (g < glob.len && glob.ptr[g] == '*') {
            star = g++;
            star_text = t;
        } else if (g < glob.len && (glob.ptr[g] == '?' || glob.ptr[g] == text.ptr[t])) {
            g++;
            t++;
        } else if (star != SIZE_MAX) {
            g = star + 1;
            t = ++star_text;
        } else {
            return false;
        }
    }
    while (g < glob.len && glob.ptr[g] == '*') {
        g++;
    }
    return g == glob.len;
}

static bool contains(struct xf_str s, struct xf_str part)
{
    return part.len == 0 || (s.len >= part.len && memmem(s.ptr, s.len, part.ptr, part.len) != NULL);
}

static bool header_matches(const struct s3d_rule *r, const struct s3d_http *h)
{
    struct xf_str v;

    if (r->header == NULL) {
        return true;
    }
    struct xf_str want = xf_str_c(r->header);
    size_t colon = xf_str_find(want, ':', 0);
    XF_AUTO_FREE char *name = xf_str_dup(xf_str_trim(xf_str_sub(want, 0, colon)));
    if (!s3d_http_get(h, name, &v)) {
        return false;
    }
    return colon == SIZE_MAX || contains(v, xf_str_trim(xf_str_sub(want, colon + 1, want.len)));
}

static bool rule_matches(const struct s3d_rule *r, const struct s3d_fault_view *v)
{
    return (!r->has_ops || r->ops[v->op]) &&
           (r->method == NULL || xf_str_eq_c(v->http->method_text, r->method)) &&
           (r->bucket == NULL || xf_str_eq_c(v->bucket, r->bucket)) &&
           (r->key == NULL || xf_str_eq_c(v->key, r->key)) &&
           (r->key_prefix == NULL || xf_str_starts(v->key, xf_str_c(r->key_prefix))) &&
           (r->key_glob == NULL || s3d_glob_matches(xf_str_c(r->key_glob), v->key)) &&
           (r->query == NULL || contains(v->http->query, xf_str_c(r->query))) &&
           header_matches(r, v->http);
}

static bool rule_fires(struct s3d_faults *f, struct s3d_rule *r)
{
    if (r->percent < 100 && xf_rng_unit(&f->rng) * 100 >= r->percent) {
        return false;
    }
    r->matched++;
    if (r->matched < r->nth || (r->matched - r->nth) % r->every != 0 ||
        (r->count > 0 && r->fired >= r->count)) {
        return false;
    }
    r->fired++;
    return true;
}

/* ---- random faults ---- */

static void random_503(struct s3d_faults *f, struct s3d_action *a)
{
    (void)f;
    a->code = "SlowDown";
    a->message = "Please reduce your request rate.";
}

static void random_reset(struct s3d_faults *f, struct s3d_action *a)
{
    switch (xf_rng_below(&f->rng, 3)) {
    case 0: /* before the work */
        a->reply_lost = true;
        a->work = 0;
        break;
    case 1: /* after it */ a->reply_lost = true; break;
    default: /* in the answer */ a->cut_after = (int64_t)xf_rng_below(&f->rng, 2000); break;
    }
    a->rst = true;
}

static void random_truncate(struct s3d_faults *f, struct s3d_action *a)
{
    a->cut_after = -(int64_t)(1 + xf_rng_below(&f->rng, 1000));
}

static void random_copy_error(struct s3d_faults *f, struct s3d_action *a)
{
    a->status = 200;
    a->code = "InternalError";
    a->work = (int)xf_rng_below(&f->rng, 2);
}

static void random_stall(struct s3d_faults *f, struct s3d_action *a)
{
    a->stall_after = xf_rng_below(&f->rng, 2) == 0 ? -1 : (int64_t)xf_rng_below(&f->rng, 500);
    a->stall_ms = -1;
}

static void ask_random(struct s3d_faults *f, enum s3d_op op, struct s3d_action *a)
{
    static void (*const apply[S3D_RATE_N])(struct s3d_faults *, struct s3d_action *) = {
        random_503, random_reset, random_truncate, random_copy_error, random_stall};
    bool copy = op == S3D_OP_COPY || op == S3D_OP_COPY_PART || op == S3D_OP_COMPLETE;

    for (int i = 0; i < S3D_RATE_N; i++) {
        if (f->rate[i] <= 0 || (i == S3D_RATE_COPY200ERR && !copy) ||
            xf_rng_unit(&f->rng) * 100 >= f->rate[i]) {
            continue;
        }
        a->any = true;
        apply[i](f, a);
        return;
    }
}

void s3d_faults_ask(struct s3d_faults *f,
                    const struct s3d_fault_view *v,
                    struct s3d_action *a,
                    struct s3d_rule **rule)
{
    *rule = NULL;
    if (!atomic_load_explicit(&f->active, memory_order_relaxed)) {
        return;
    }
    lock(f);
    XF_LIST_FOREACH (node, &f->rules) {
        struct s3d_rule *r = XF_CONTAINER_OF(node, struct s3d_rule, in_list);
        if (rule_matches(r, v) && rule_fires(f, r)) {
            atomic_fetch_add(&r->refs, 1);
            *rule = r;
            *a = r->action;
            break;
        }
    }
    if (*rule == NULL) {
        ask_random(f, v->op, a);
    }
    unlock(f);
}
