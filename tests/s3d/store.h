/*
 * store.h - buckets, their objects and their open multipart uploads, in memory.
 *
 * Any thread. One mutex a bucket guards its index and uploads and is held for single look-ups or
 * one listing page, never across hashing or I/O. A bucket that was deleted lives until its last
 * reference goes.
 */
#ifndef XF_TESTS_S3D_STORE_H
#define XF_TESTS_S3D_STORE_H

#include "common/base/list.h"
#include "common/base/map.h"
#include "tests/s3d/gen.h"
#include "tests/s3d/index.h"

#include <pthread.h>
#include <stdatomic.h>

enum { S3D_PARTS_MAX = 10000, S3D_UPLOAD_ID_LEN = 32 };
#define S3D_PART_MIN   ((uint64_t)5 << 20)
#define S3D_SINGLE_MAX ((uint64_t)5 << 30)

struct s3d_bucket {
    _Atomic uint32_t refs;
    pthread_mutex_t lock;
    struct s3d_index index;
    struct xf_list uploads; /* in order of initiation */
    struct xf_map uploads_by_id;
    bool deleted;
    atomic_bool object_lock;
    atomic_bool requester_pays;
    atomic_bool no_acls; /* the owner has all, ACLs are refused */
    int64_t created_ms;
    char *name;
};

struct s3d_part {
    struct s3d_body *body; /* NULL: not uploaded */
    uint64_t size;
    uint8_t md5[S3D_MD5_LEN];
    uint8_t sum[S3D_SUM_MAX]; /* of the upload's algorithm */
    int64_t mtime_ms;
};

/* Guarded by its bucket's lock. */
struct s3d_upload {
    struct xf_list in_bucket;
    struct s3d_bucket *bucket; /* borrowed: it owns the upload */
    char id[S3D_UPLOAD_ID_LEN + 1];
    char *key;
    size_t key_len;
    int64_t initiated_ms;
    uint64_t order; /* of initiation */
    struct s3d_attrs *attrs;
    enum s3d_sum_alg sum_alg;
    bool composite;
    bool kms;
    bool done; /* completed; kept for an idempotent second Complete */
    uint8_t done_md5[S3D_MD5_LEN];
    uint16_t done_parts;
    struct s3d_part *parts; /* [0..cap_parts), part number - 1 */
    size_t cap_parts;
};

struct s3d_store; /* opaque */

struct s3d_store *s3d_store_new(uint64_t seed);
void s3d_store_free(struct s3d_store *s);
XF_AUTO_DEFINE(s3d_store, s3d_store_free)

/** A reference, or NULL. */
struct s3d_bucket *s3d_store_bucket(struct s3d_store *s, struct xf_str name);
void s3d_bucket_unref(struct s3d_bucket *b);
/** False when it is there already. */
bool s3d_store_make_bucket(struct s3d_store *s, struct xf_str name, int64_t now_ms);
enum s3d_drop { S3D_DROP_OK, S3D_DROP_MISSING, S3D_DROP_NOT_EMPTY };
enum s3d_drop s3d_store_drop_bucket(struct s3d_store *s, struct xf_str name);
/** Calls fn for each bucket in the order of names. */
void s3d_store_each(struct s3d_store *s, void (*fn)(struct s3d_bucket *b, void *arg), void *arg);
bool s3d_bucket_name_is_valid(struct xf_str name);

/** Copy the object out, with references and its MD5. False when there is none. */
bool s3d_bucket_get(struct s3d_bucket *b, struct xf_str key, struct s3d_obj *out);
/** What a conditional write asks. */
struct s3d_put_cond {
    bool if_absent;         /* If-None-Match: * */
    struct xf_str if_match; /* empty: none */
};
enum s3d_put {
    S3D_PUT_OK,
    S3D_PUT_FAILED, /* the condition */
    S3D_PUT_MISSING /* If-Match, and no object */
};
/** Store *o (its references move in, also on failure). `counts` is false for loads that are no
 * client's write. */
enum s3d_put s3d_bucket_put(struct s3d_bucket *b,
                            struct xf_str key,
                            struct s3d_obj *o,
                            const struct s3d_put_cond *cond,
                            bool counts);
/** False when it was not there. */
bool s3d_bucket_delete(struct s3d_bucket *b, struct xf_str key);
/** Replace the attributes (reference moves in); false when the object is gone. */
bool s3d_bucket_set_attrs(struct s3d_bucket *b, struct xf_str key, struct s3d_attrs *a);
/** Load made-up objects; progress on stderr when `name` is not NULL. */
void s3d_bucket_load(struct s3d_bucket *b,
                     const struct s3d_synth *synth,
                     uint64_t true_etag_max,
                     int64_t now_ms);
/** One made-up object of any size. */
void s3d_bucket_load_one(struct s3d_bucket *b,
                         struct xf_str key,
                         uint64_t seed,
                         const struct s3d_synth *shape,
                         uint64_t true_etag_max,
                         int64_t now_ms);

struct s3d_upload_spec {
    struct s3d_attrs *attrs; /* the reference moves in */
    enum s3d_sum_alg sum_alg;
    bool composite;
    bool kms;
    int64_t now_ms;
};
/** New upload in b; the lock must not be held. Its id goes to `id`. */
void s3d_upload_new(struct s3d_store *s,
                    struct s3d_bucket *b,
                    struct xf_str key,
                    const struct s3d_upload_spec *spec,
                    char id[S3D_UPLOAD_ID_LEN + 1]);
/** With the lock held. NULL when unknown, done ones included only when asked. */
struct s3d_upload *
s3d_upload_find_locked(struct s3d_bucket *b, struct xf_str key, struct xf_str id, bool done_too);
void s3d_upload_free_locked(struct s3d_upload *u); /* takes it off its list */
/** Put part number n; the body's reference moves in. */
void s3d_upload_put_part_locked(struct s3d_upload *u, size_t part_no, const struct s3d_part *p);

#endif
