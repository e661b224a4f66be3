/*
 * map.h - seeded hash map from a byte string to a pointer.
 *
 * Open addressing with linear probing. Keys are borrowed: they live inside the caller's value, as
 * long as the entry does. Not for two threads at once.
 */
#ifndef XF_BASE_MAP_H
#define XF_BASE_MAP_H

#include "common/base/str.h"

struct xf_map_entry {
    struct xf_str key;
    void *value; /* NULL: free slot */
};

struct xf_map {
    struct xf_map_entry *slots;
    size_t cap; /* 0 or a power of two */
    size_t len;
    uint64_t seed;
};

void xf_map_init(struct xf_map *m);
void xf_map_fini(struct xf_map *m); /* values are the caller's */
void *xf_map_get(const struct xf_map *m, struct xf_str key);
/** Insert or replace; gives the old value or NULL. value is not NULL. */
void *xf_map_put(struct xf_map *m, struct xf_str key, void *value);
/** Remove; gives the value or NULL. */
void *xf_map_take(struct xf_map *m, struct xf_str key);
/** Walk: *at starts at 0; NULL at the end. The map must not change meanwhile. */
void *xf_map_next(const struct xf_map *m, size_t *at);

/* Integer keys: the key lives in the value as a uint64_t. */
static inline struct xf_str xf_map_key_u64(const uint64_t *id)
{
    return (struct xf_str){(const char *)id, sizeof(*id)};
}

#endif
