/*
 * arena.c - chunks in a list, each at least CHUNK_SIZE; the first one is being filled.
 */
#include "common/base/arena.h"

enum { CHUNK_SIZE = 4096 - 64, ALIGN = 16 };

struct xf_arena_chunk {
    struct xf_arena_chunk *next;
    size_t cap;
    _Alignas(ALIGN) char bytes[];
};

void xf_arena_init(struct xf_arena *a)
{
    a->chunks = NULL;
    a->used = 0;
}

void xf_arena_fini(struct xf_arena *a)
{
    while (a->chunks != NULL) {
        struct xf_arena_chunk *next = a->chunks->next;

        xf_xfree(a->chunks);
        a->chunks = next;
    }
    a->used = 0;
}

void xf_arena_reset(struct xf_arena *a)
{
    while (a->chunks != NULL && a->chunks->next != NULL) { /* the first that was made is smallest */
        struct xf_arena_chunk *next = a->chunks->next;

        xf_xfree(a->chunks);
        a->chunks = next;
    }
    if (a->chunks != NULL && a->chunks->cap > CHUNK_SIZE) {
        xf_arena_fini(a); /* made for one large piece */
    }
    a->used = 0;
}

/* Chunks double, so that a large message costs few of them. */
static void grow(struct xf_arena *a, size_t need)
{
    size_t cap = a->chunks != NULL ? xf_mul_size(a->chunks->cap, 2) : (size_t)CHUNK_SIZE;
    struct xf_arena_chunk *c;

    cap = cap < 1024U * 1024U ? cap : 1024U * 1024U;
    cap = cap < need ? need : cap;
    c = xf_xmalloc(xf_add_size(sizeof(*c), cap));
    c->next = a->chunks;
    c->cap = cap;
    a->chunks = c;
    a->used = 0;
}

void *xf_arena_calloc(struct xf_arena *a, size_t n, size_t size)
{
    size_t need = xf_mul_size(n, size);
    char *p;

    need = xf_add_size(need, ALIGN - 1) & ~((size_t)ALIGN - 1);
    if (a->chunks == NULL || a->chunks->cap - a->used < need) {
        grow(a, need);
    }
    p = a->chunks->bytes + a->used;
    a->used += need;
    memset(p, 0, need);
    return p;
}

struct xf_str xf_arena_dup(struct xf_arena *a, struct xf_str s)
{
    char *p = xf_arena_calloc(a, xf_add_size(s.len, 1), 1);

    if (s.len != 0) {
        memcpy(p, s.ptr, s.len);
    }
    return (struct xf_str){p, s.len};
}
