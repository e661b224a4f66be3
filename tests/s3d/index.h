/*
 * index.h - the ordered keys of one bucket.
 *
 * A sorted array of leaves, each a sorted array of records: two binary searches find any key, a
 * page is a walk. About 72 bytes a key beside the key itself. Not locked: the bucket's mutex guards
 * it.
 */
#ifndef XF_TESTS_S3D_INDEX_H
#define XF_TESTS_S3D_INDEX_H

#include "tests/s3d/object.h"

struct s3d_rec {
    struct s3d_obj obj;
    uint16_t writes; /* how often this key was stored; stops at 65535 */
    uint16_t key_len;
    char key[];
};

struct s3d_leaf;

struct s3d_index {
    struct s3d_leaf **leaves;
    size_t n_leaves;
    size_t cap_leaves;
    uint64_t n_keys;
};

/* A place between keys. Any change of the index ends it. */
struct s3d_cursor {
    const struct s3d_index *index;
    size_t leaf;
    size_t at;
};

void s3d_index_init(struct s3d_index *x);
void s3d_index_fini(struct s3d_index *x); /* drops all objects */
struct s3d_rec *s3d_index_get(const struct s3d_index *x, struct xf_str key);
/** The record of key, made when it is missing (*made), its object all zero. */
struct s3d_rec *s3d_index_put(struct s3d_index *x, struct xf_str key, bool *made);
/** Takes the record out; the caller frees it with s3d_rec_free. NULL when there is none. */
struct s3d_rec *s3d_index_take(struct s3d_index *x, struct xf_str key);
void s3d_rec_free(struct s3d_rec *r);

/** First key >= key (or > key when `after`). */
void s3d_index_seek(const struct s3d_index *x, struct xf_str key, bool after, struct s3d_cursor *c);
/** Record at the cursor, which moves on; NULL at the end. */
struct s3d_rec *s3d_cursor_next(struct s3d_cursor *c);
/** Record at the cursor, which stays. */
struct s3d_rec *s3d_cursor_peek(const struct s3d_cursor *c);

static inline struct xf_str s3d_rec_key(const struct s3d_rec *r)
{
    return (struct xf_str){r->key, r->key_len};
}

#endif
