/*
 * index.c - the ordered keys of one bucket.
 *
 * Invariants: leaves are never empty; all keys of leaf i are below all keys of leaf i + 1. A leaf
 * that overflows at its end is left full and a new one begun, so that sorted loads fill leaves;
 * elsewhere it is cut in the middle.
 */
#include "tests/s3d/index.h"

#include "common/base/err.h"
#include "common/base/mem.h"

enum { LEAF_MAX = 256 };

struct s3d_leaf {
    size_t n;
    struct s3d_rec *rec[LEAF_MAX];
};

void s3d_index_init(struct s3d_index *x)
{
    memset(x, 0, sizeof(*x));
}

void s3d_rec_free(struct s3d_rec *r)
{
    if (r != NULL) {
        s3d_obj_fini(&r->obj);
        xf_xfree(r);
    }
}

void s3d_index_fini(struct s3d_index *x)
{
    for (size_t i = 0; i < x->n_leaves; i++) {
        for (size_t k = 0; k < x->leaves[i]->n; k++) {
            s3d_rec_free(x->leaves[i]->rec[k]);
        }
        xf_xfree(x->leaves[i]);
    }
    xf_xfree(x->leaves);
    memset(x, 0, sizeof(*x));
}

static int cmp_rec(struct xf_str key, const struct s3d_rec *r)
{
    size_t n = key.len < r->key_len ? key.len : r->key_len;
    int d = n == 0 ? 0 : memcmp(key.ptr, r->key, n);

    if (d != 0) {
        return d;
    }
    return key.len < r->key_len ? -1 : key.len > r->key_len;
}

/* Last leaf whose first key is <= key; 0 when key is below all. */
static size_t find_leaf(const struct s3d_index *x, struct xf_str key)
{
    size_t lo = 0;
    size_t hi = x->n_leaves;

    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (cmp_rec(key, x->leaves[mid]->rec[0]) >= 0) {
            lo = mid;
        } else {
            hi = mid;
        }
    }
    return lo;
}

/* First place in the leaf whose key is >= key. */
static size_t find_in_leaf(const struct s3d_leaf *l, struct xf_str key, bool *equal)
{
    size_t lo = 0;
    size_t hi = l->n;

    *equal = false;
    while (lo < hi) {
        size_t mid = lo + (hi - lo) / 2;
        int d = cmp_rec(key, l->rec[mid]);
        if (d == 0) {
            *equal = true;
            return mid;
        }
        if (d > 0) {
            lo = mid + 1;
        } else {
            hi = mid;
        }
    }
    return lo;
}

struct s3d_rec *s3d_index_get(const struct s3d_index *x, struct xf_str key)
{
    bool equal;

    if (x->n_leaves == 0) {
        return NULL;
    }
    const struct s3d_leaf *l = x->leaves[find_leaf(x, key)];
    size_t i = find_in_leaf(l, key, &equal);
    return equal ? l->rec[i] : NULL;
}

static struct s3d_leaf *leaf_insert(struct s3d_index *x, size_t at)
{
    if (x->n_leaves == x->cap_leaves) {
        x->cap_leaves = x->cap_leaves == 0 ? 16 : x->cap_leaves * 2;
        x->leaves = xf_xrealloc(x->leaves, x->cap_leaves, sizeof(struct s3d_leaf *));
    }
    memmove(x->leaves + at + 1, x->leaves + at, (x->n_leaves - at) * sizeof(struct s3d_leaf *));
    x->leaves[at] = xf_xmalloc(sizeof(struct s3d_leaf));
    x->leaves[at]->n = 0;
    x->n_leaves++;
    return x->leaves[at];
}

/* Make room at place *at of leaf *i, which is full. */
static void leaf_split(struct s3d_index *x, size_t *i, size_t *at)
{
    struct s3d_leaf *old = x->leaves[*i];
    struct s3d_leaf *fresh = leaf_insert(x, *i + 1);
    bool append = *at == LEAF_MAX && *i + 2 == x->n_leaves;
    size_t keep = append ? LEAF_MAX : LEAF_MAX / 2;

    memcpy(fresh->rec, old->rec + keep, (LEAF_MAX - keep) * sizeof(struct s3d_rec *));
    fresh->n = LEAF_MAX - keep;
    old->n = keep;
    if (*at > keep || append) {
        *at -= keep;
        (*i)++;
    }
}

struct s3d_rec *s3d_index_put(struct s3d_index *x, struct xf_str key, bool *made)
{
    bool equal = false;
    size_t i = 0;
    size_t at = 0;

    XF_ASSERT(key.len <= UINT16_MAX);
    if (x->n_leaves == 0) {
        (void)leaf_insert(x, 0);
    } else {
        i = find_leaf(x, key);
        at = find_in_leaf(x->leaves[i], key, &equal);
    }
    *made = !equal;
    if (equal) {
        return x->leaves[i]->rec[at];
    }
    if (x->leaves[i]->n == LEAF_MAX) {
        leaf_split(x, &i, &at);
    }
    struct s3d_leaf *l = x->leaves[i];
    struct s3d_rec *r = xf_xmalloc(sizeof(*r) + key.len);
    memset(r, 0, sizeof(*r));
    r->key_len = (uint16_t)key.len;
    memcpy(r->key, key.ptr, key.len);
    memmove(l->rec + at + 1, l->rec + at, (l->n - at) * sizeof(struct s3d_rec *));
    l->rec[at] = r;
    l->n++;
    x->n_keys++;
    return r;
}

struct s3d_rec *s3d_index_take(struct s3d_index *x, struct xf_str key)
{
    bool equal;

    if (x->n_leaves == 0) {
        return NULL;
    }
    size_t i = find_leaf(x, key);
    struct s3d_leaf *l = x->leaves[i];
    size_t at = find_in_leaf(l, key, &equal);
    if (!equal) {
        return NULL;
    }
    struct s3d_rec *r = l->rec[at];
    l->n--;
    memmove(l->rec + at, l->rec + at + 1, (l->n - at) * sizeof(struct s3d_rec *));
    if (l->n == 0) {
        xf_xfree(l);
        x->n_leaves--;
        memmove(x->leaves + i, x->leaves + i + 1, (x->n_leaves - i) * sizeof(struct s3d_leaf *));
    }
    x->n_keys--;
    return r;
}

void s3d_index_seek(const struct s3d_index *x, struct xf_str key, bool after, struct s3d_cursor *c)
{
    bool equal;

    c->index = x;
    c->leaf = 0;
    c->at = 0;
    if (x->n_leaves == 0) {
        return;
    }
    c->leaf = find_leaf(x, key);
    c->at = find_in_leaf(x->leaves[c->leaf], key, &equal);
    if (equal && after) {
        c->at++;
    }
    if (c->at == x->leaves[c->leaf]->n) {
        c->leaf++;
        c->at = 0;
    }
}

struct s3d_rec *s3d_cursor_peek(const struct s3d_cursor *c)
{
    return c->leaf >= c->index->n_leaves ? NULL : c->index->leaves[c->leaf]->rec[c->at];
}

struct s3d_rec *s3d_cursor_next(struct s3d_cursor *c)
{
    struct s3d_rec *r = s3d_cursor_peek(c);

    if (r == NULL) {
        return NULL;
    }
    c->at++;
    if (c->at == c->index->leaves[c->leaf]->n) {
        c->leaf++;
        c->at = 0;
    }
    return r;
}
