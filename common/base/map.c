/* map.c - open addressing; removal shifts the run back, so there are no tombstones. */
#include "common/base/map.h"

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/rng.h"

void xf_map_init(struct xf_map *m)
{
    struct xf_rng rng;

    memset(m, 0, sizeof(*m));
    xf_rng_init_os(&rng);
    m->seed = xf_rng_u64(&rng);
}

void xf_map_fini(struct xf_map *m)
{
    xf_xfree(m->slots);
    memset(m, 0, sizeof(*m));
}

/* Slot of the key, or the free slot where it would go. Needs at least one free slot. */
static size_t find(const struct xf_map *m, struct xf_str key)
{
    size_t i = (size_t)xf_str_hash(key, m->seed) & (m->cap - 1);

    while (m->slots[i].value != NULL && !xf_str_eq(m->slots[i].key, key)) {
        i = (i + 1) & (m->cap - 1);
    }
    return i;
}

void *xf_map_get(const struct xf_map *m, struct xf_str key)
{
    return m->len == 0 ? NULL : m->slots[find(m, key)].value;
}

static void grow(struct xf_map *m)
{
    struct xf_map_entry *old = m->slots;
    size_t old_cap = m->cap;

    m->cap = old_cap == 0 ? 16 : xf_mul_size(old_cap, 2);
    m->slots = xf_xcalloc(m->cap, sizeof(*m->slots));
    for (size_t i = 0; i < old_cap; i++) {
        if (old[i].value != NULL) {
            m->slots[find(m, old[i].key)] = old[i];
        }
    }
    xf_xfree(old);
}

void *xf_map_put(struct xf_map *m, struct xf_str key, void *value)
{
    XF_ASSERT(value != NULL);
    if ((m->len + 1) * 4 > m->cap * 3) {
        grow(m);
    }
    struct xf_map_entry *e = &m->slots[find(m, key)];
    void *old = e->value;
    if (old == NULL) {
        m->len++;
    }
    e->key = key;
    e->value = value;
    return old;
}

void *xf_map_take(struct xf_map *m, struct xf_str key)
{
    if (m->len == 0) {
        return NULL;
    }
    size_t hole = find(m, key);
    void *value = m->slots[hole].value;
    if (value == NULL) {
        return NULL;
    }
    size_t mask = m->cap - 1;
    for (size_t i = (hole + 1) & mask; m->slots[i].value != NULL; i = (i + 1) & mask) {
        size_t home = (size_t)xf_str_hash(m->slots[i].key, m->seed) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            m->slots[hole] = m->slots[i];
            hole = i;
        }
    }
    m->slots[hole] = (struct xf_map_entry){0};
    m->len--;
    return value;
}

void *xf_map_next(const struct xf_map *m, size_t *at)
{
    while (*at < m->cap) {
        void *v = m->slots[(*at)++].value;
        if (v != NULL) {
            return v;
        }
    }
    return NULL;
}
