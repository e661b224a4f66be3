/* store.c - buckets and objects in memory. */
#include "tests/s3d/store.h"

#include "common/base/rng.h"

#include <stdatomic.h>
#include <stdlib.h>

struct s3d_store {
    pthread_rwlock_t lock; /* of the map */
    struct xf_map buckets;
    pthread_mutex_t id_lock;
    struct xf_rng rng;
    uint64_t orders;
};

struct s3d_store *s3d_store_new(uint64_t seed)
{
    struct s3d_store *s = xf_xcalloc(1, sizeof(*s));

    XF_ASSERT(pthread_rwlock_init(&s->lock, NULL) == 0);
    XF_ASSERT(pthread_mutex_init(&s->id_lock, NULL) == 0);
    xf_map_init(&s->buckets);
    xf_rng_init(&s->rng, seed);
    return s;
}

static void lock(pthread_mutex_t *m)
{
    XF_ASSERT(pthread_mutex_lock(m) == 0);
}

static void unlock(pthread_mutex_t *m)
{
    XF_ASSERT(pthread_mutex_unlock(m) == 0);
}

void s3d_bucket_unref(struct s3d_bucket *b)
{
    if (b == NULL || atomic_fetch_sub_explicit(&b->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    while (!xf_list_is_empty(&b->uploads)) {
        s3d_upload_free_locked(XF_CONTAINER_OF(b->uploads.next, struct s3d_upload, in_bucket));
    }
    xf_map_fini(&b->uploads_by_id);
    s3d_index_fini(&b->index);
    (void)pthread_mutex_destroy(&b->lock); /* nobody else has it */
    xf_xfree(b->name);
    xf_xfree(b);
}

void s3d_store_free(struct s3d_store *s)
{
    size_t at = 0;

    if (s == NULL) {
        return;
    }
    for (struct s3d_bucket *b = xf_map_next(&s->buckets, &at); b != NULL;
         b = xf_map_next(&s->buckets, &at)) {
        s3d_bucket_unref(b);
    }
    xf_map_fini(&s->buckets);
    (void)pthread_rwlock_destroy(&s->lock); /* nobody else has it */
    (void)pthread_mutex_destroy(&s->id_lock);
    xf_xfree(s);
}

struct s3d_bucket *s3d_store_bucket(struct s3d_store *s, struct xf_str name)
{
    XF_ASSERT(pthread_rwlock_rdlock(&s->lock) == 0);
    struct s3d_bucket *b = xf_map_get(&s->buckets, name);
    if (b != NULL) {
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
    }
    XF_ASSERT(pthread_rwlock_unlock(&s->lock) == 0);
    return b;
}

bool s3d_store_make_bucket(struct s3d_store *s, struct xf_str name, int64_t now_ms)
{
    XF_ASSERT(pthread_rwlock_wrlock(&s->lock) == 0);
    bool there = xf_map_get(&s->buckets, name) != NULL;
    if (!there) {
        struct s3d_bucket *b = xf_xcalloc(1, sizeof(*b));
        atomic_init(&b->refs, 1);
        XF_ASSERT(pthread_mutex_init(&b->lock, NULL) == 0);
        s3d_index_init(&b->index);
        xf_list_init(&b->uploads);
        xf_map_init(&b->uploads_by_id);
        b->created_ms = now_ms;
        b->name = xf_str_dup(name);
        (void)xf_map_put(&s->buckets, xf_str_c(b->name), b); /* not there, as looked up above */
    }
    XF_ASSERT(pthread_rwlock_unlock(&s->lock) == 0);
    return !there;
}

enum s3d_drop s3d_store_drop_bucket(struct s3d_store *s, struct xf_str name)
{
    enum s3d_drop rc = S3D_DROP_MISSING;

    XF_ASSERT(pthread_rwlock_wrlock(&s->lock) == 0);
    struct s3d_bucket *b = xf_map_get(&s->buckets, name);
    if (b != NULL) {
        lock(&b->lock);
        rc = b->index.n_keys == 0 ? S3D_DROP_OK : S3D_DROP_NOT_EMPTY;
        b->deleted = rc == S3D_DROP_OK;
        unlock(&b->lock);
    }
    if (rc == S3D_DROP_OK) {
        (void)xf_map_take(&s->buckets, name); /* it is b */
    }
    XF_ASSERT(pthread_rwlock_unlock(&s->lock) == 0);
    if (rc == S3D_DROP_OK) {
        s3d_bucket_unref(b);
    }
    return rc;
}

static int cmp_bucket(const void *a, const void *b)
{
    const struct s3d_bucket *const *x = a;
    const struct s3d_bucket *const *y = b;

    return strcmp((*x)->name, (*y)->name);
}

void s3d_store_each(struct s3d_store *s, void (*fn)(struct s3d_bucket *b, void *arg), void *arg)
{
    size_t n = 0;
    size_t at = 0;

    XF_ASSERT(pthread_rwlock_rdlock(&s->lock) == 0);
    struct s3d_bucket **all = xf_xcalloc(s->buckets.len + 1, sizeof(struct s3d_bucket *));
    for (struct s3d_bucket *b = xf_map_next(&s->buckets, &at); b != NULL;
         b = xf_map_next(&s->buckets, &at)) {
        atomic_fetch_add_explicit(&b->refs, 1, memory_order_relaxed);
        all[n++] = b;
    }
    XF_ASSERT(pthread_rwlock_unlock(&s->lock) == 0);
    qsort(all, n, sizeof(struct s3d_bucket *), cmp_bucket);
    for (size_t i = 0; i < n; i++) {
        fn(all[i], arg);
        s3d_bucket_unref(all[i]);
    }
    xf_xfree(all);
}

static bool name_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool s3d_bucket_name_is_valid(struct xf_str name)
{
    if (name.len < 3 || name.len > 63 || !name_byte(name.ptr[0]) ||
        !name_byte(name.ptr[name.len - 1])) {
        return false;
    }
    for (size_t i = 0; i < name.len; i++) {
        char c = name.ptr[i];
        if (!name_byte(c) && c != '-' && c != '.') {
            return false;
        }
    }
    return true;
}

bool s3d_bucket_get(struct s3d_bucket *b, struct xf_str key, struct s3d_obj *out)
{
    lock(&b->lock);
    struct s3d_rec *r = s3d_index_get(&b->index, key);
    if (r != NULL) {
        s3d_obj_fix_md5(&r->obj);
        s3d_obj_copy(&r->obj, out);
    }
    unlock(&b->lock);
    return r != NULL;
}

enum s3d_put s3d_bucket_put(struct s3d_bucket *b,
                            struct xf_str key,
                            struct s3d_obj *o,
                            const struct s3d_put_cond *cond,
                            bool counts)
{
    enum s3d_put rc = S3D_PUT_OK;
    struct s3d_obj old = {0};
    bool made;

    lock(&b->lock);
    if (cond != NULL && (cond->if_absent || cond->if_match.len > 0)) {
        struct s3d_rec *there = s3d_index_get(&b->index, key);
        if (there != NULL) {
            s3d_obj_fix_md5(&there->obj);
        }
        if (cond->if_absent && there != NULL) {
            rc = S3D_PUT_FAILED;
        } else if (cond->if_match.len > 0 && there == NULL) {
            rc = S3D_PUT_MISSING;
        } else if (cond->if_match.len > 0 && !s3d_etag_matches(&there->obj, cond->if_match)) {
            rc = S3D_PUT_FAILED;
        }
    }
    if (rc == S3D_PUT_OK) {
        struct s3d_rec *r = s3d_index_put(&b->index, key, &made);
        old = r->obj;
        r->obj = *o;
        if (counts && r->writes < UINT16_MAX) {
            r->writes++;
        }
    }
    unlock(&b->lock);
    if (rc != S3D_PUT_OK) {
        old = *o;
    }
    s3d_obj_fini(&old); /* outside the lock: it may be large */
    return rc;
}

bool s3d_bucket_delete(struct s3d_bucket *b, struct xf_str key)
{
    lock(&b->lock);
    struct s3d_rec *r = s3d_index_take(&b->index, key);
    unlock(&b->lock);
    s3d_rec_free(r);
    return r != NULL;
}

bool s3d_bucket_set_attrs(struct s3d_bucket *b, struct xf_str key, struct s3d_attrs *a)
{
    struct s3d_attrs *old = a;

    lock(&b->lock);
    struct s3d_rec *r = s3d_index_get(&b->index, key);
    if (r != NULL) {
        old = r->obj.attrs;
        r->obj.attrs = a;
    }
    unlock(&b->lock);
    s3d_attrs_unref(old);
    return r != NULL;
}

/* The layout that a multipart upload of so large an object would have. */
static uint64_t part_size_for(uint64_t size, uint64_t asked)
{
    uint64_t p = asked != 0 ? asked : (uint64_t)64 << 20;

    while ((size + p - 1) / p > S3D_PARTS_MAX) {
        p *= 2;
    }
    return p;
}

static void part_md5s(struct s3d_obj *o, struct s3d_body *body)
{
    MD5_CTX c;
    uint64_t off;
    uint64_t len;

    (void)MD5_Init(&c);
    for (size_t i = 1; s3d_body_part(body, i, &off, &len); i++) {
        uint8_t md5[S3D_MD5_LEN];
        struct s3d_body *part = s3d_body_slice(body, off, len);
        s3d_body_md5(part, md5);
        s3d_body_unref(part);
        (void)MD5_Update(&c, md5, sizeof(md5));
    }
    (void)MD5_Final(o->md5, &c);
    o->n_parts = (uint16_t)s3d_body_parts(body);
}

void s3d_bucket_load_one(struct s3d_bucket *b,
                         struct xf_str key,
                         uint64_t seed,
                         const struct s3d_synth *shape,
                         uint64_t true_etag_max,
                         int64_t now_ms)
{
    uint64_t size = shape->sizes.min;
    struct s3d_obj o = {.size = size, .mtime_s = (uint32_t)(now_ms / 1000)};
    bool pseudo = size > true_etag_max;

    if (pseudo || shape->part_size != 0) {
        struct s3d_body *body = s3d_body_new_gen(seed, 0, size, pseudo);
        s3d_body_set_part_size(body, part_size_for(size, shape->part_size));
        part_md5s(&o, body);
        o.u.body = body;
    } else {
        o.u.seed = seed;
        o.flags = S3D_OBJ_GEN | S3D_OBJ_MD5_LAZY;
        if (size > 65536) {
            s3d_obj_fix_md5(&o);
        }
    }
    (void)s3d_bucket_put(b, key, &o, NULL, false); /* no condition that could fail */
}

void s3d_bucket_load(struct s3d_bucket *b,
                     const struct s3d_synth *synth,
                     uint64_t true_etag_max,
                     int64_t now_ms)
{
    XF_AUTO_BUF key = {0};

    xf_buf_init(&key, 0);
    for (uint64_t n = 0; n < synth->count; n++) {
        struct s3d_synth one = *synth;
        one.sizes.min = s3d_synth_size(synth, n);
        xf_buf_reset(&key);
        s3d_synth_key(synth, n, &key);
        s3d_bucket_load_one(
            b, xf_buf_view(&key), s3d_synth_seed(synth, n), &one, true_etag_max, now_ms);
    }
}

void s3d_upload_new(struct s3d_store *s,
                    struct s3d_bucket *b,
                    struct xf_str key,
                    const struct s3d_upload_spec *spec,
                    char id[S3D_UPLOAD_ID_LEN + 1])
{
    struct s3d_upload *u = xf_xcalloc(1, sizeof(*u));

    lock(&s->id_lock);
    xf_rng_id(&s->rng, u->id, S3D_UPLOAD_ID_LEN);
    u->order = ++s->orders;
    unlock(&s->id_lock);
    u->key = xf_str_dup(key);
    u->key_len = key.len;
    u->attrs = spec->attrs;
    u->sum_alg = spec->sum_alg;
    u->composite = spec->composite;
    u->kms = spec->kms;
    u->initiated_ms = spec->now_ms;
    memcpy(id, u->id, sizeof(u->id));
    lock(&b->lock);
    u->bucket = b;
    xf_list_push_back(&b->uploads, &u->in_bucket);
    (void)xf_map_put(&b->uploads_by_id, xf_str_c(u->id), u); /* ids do not repeat */
    unlock(&b->lock);
}

struct s3d_upload *
s3d_upload_find_locked(struct s3d_bucket *b, struct xf_str key, struct xf_str id, bool done_too)
{
    struct s3d_upload *u = xf_map_get(&b->uploads_by_id, id);

    if (u == NULL || !xf_str_eq(key, xf_str_n(u->key, u->key_len)) || (u->done && !done_too)) {
        return NULL;
    }
    return u;
}

void s3d_upload_free_locked(struct s3d_upload *u)
{
    xf_list_remove(&u->in_bucket);
    (void)xf_map_take(&u->bucket->uploads_by_id, xf_str_c(u->id)); /* it is u */
    for (size_t i = 0; i < u->cap_parts; i++) {
        s3d_body_unref(u->parts[i].body);
    }
    xf_xfree(u->parts);
    s3d_attrs_unref(u->attrs);
    xf_xfree(u->key);
    xf_xfree(u);
}

void s3d_upload_put_part_locked(struct s3d_upload *u, size_t part_no, const struct s3d_part *p)
{
    XF_ASSERT(part_no >= 1 && part_no <= S3D_PARTS_MAX);
    if (part_no > u->cap_parts) {
        size_t cap = u->cap_parts == 0 ? 8 : u->cap_parts * 2;
        if (cap < part_no) {
            cap = part_no;
        }
        u->parts = xf_xrealloc(u->parts, cap, sizeof(struct s3d_part));
        memset(u->parts + u->cap_parts, 0, (cap - u->cap_parts) * sizeof(struct s3d_part));
        u->cap_parts = cap;
    }
    s3d_body_unref(u->parts[part_no - 1].body);
    u->parts[part_no - 1] = *p;
}
