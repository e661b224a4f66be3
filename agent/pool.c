/*
 * pool.c - size classes with free lists, and a line of those who wait.
 *
 * Large buffers are mapped, so that giving one up gives the pages back. A buffer that comes back is
 * kept for its class; when another class needs the room, kept ones are unmapped, largest first.
 *
 * Invariants:
 * 1. out + kept <= cap.
 * 2. Only the first in line is ever served, so no want starves.
 */
#include "agent/pool.h"

#include "common/base/err.h"

#include <sys/mman.h>

enum {
    CLASS_N = 13,      /* 4 KiB << 0 .. 4 KiB << 12 = 16 MiB */
    CLASS_MAPPED = 5,  /* from 128 KiB on buffers are mapped */
    CLASS_KEEP_N = 256 /* kept buffers of a class */
};

struct kept { /* lies in the buffer itself */
    struct kept *next;
};

struct xf_pool {
    size_t cap;
    size_t out;
    size_t kept;
    struct kept *free_of[CLASS_N];
    unsigned n_free_of[CLASS_N];
    struct xf_list line;
    size_t n_line;
    bool serving;
};

static unsigned class_of(size_t size)
{
    unsigned c = 0;

    while ((XF_POOL_BUF_MIN << c) < size) {
        c++;
    }
    return c;
}

static void *map_buf(unsigned c)
{
    size_t size = XF_POOL_BUF_MIN << c;

    if (c < CLASS_MAPPED) {
        return xf_xmalloc(size);
    }
    void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    XF_ASSERT(p != MAP_FAILED); /* as xf_xmalloc: at exhaustion the process ends */
    return p;
}

static void unmap_buf(unsigned c, void *p)
{
    if (c < CLASS_MAPPED) {
        xf_xfree(p);
    } else {
        XF_ASSERT(munmap(p, XF_POOL_BUF_MIN << c) == 0);
    }
}

static void *pop_kept(struct xf_pool *p, unsigned c)
{
    struct kept *k = p->free_of[c];

    p->free_of[c] = k->next;
    p->n_free_of[c]--;
    p->kept -= XF_POOL_BUF_MIN << c;
    return k;
}

static void drop_kept(struct xf_pool *p, size_t need)
{
    for (unsigned c = CLASS_N; c-- > 0;) {
        while (p->free_of[c] != NULL && p->out + p->kept + need > p->cap) {
            unmap_buf(c, pop_kept(p, c));
        }
    }
}

static bool take(struct xf_pool *p, size_t size, struct xf_pool_buf *out)
{
    XF_ASSERT(size > 0 && size <= XF_POOL_BUF_MAX);
    unsigned c = class_of(size);
    size_t real = XF_POOL_BUF_MIN << c;

    if (p->out + real > p->cap) {
        return false;
    }
    if (p->free_of[c] != NULL) {
        out->ptr = pop_kept(p, c);
    } else {
        drop_kept(p, real);
        out->ptr = map_buf(c);
    }
    out->size = real;
    p->out += real;
    return true;
}

static void serve(struct xf_pool *p)
{
    if (p->serving) {
        return; /* a ready() gave something back: the outer loop goes on */
    }
    p->serving = true;
    while (!xf_list_is_empty(&p->line)) {
        struct xf_pool_want *w = XF_CONTAINER_OF(p->line.next, struct xf_pool_want, node);
        struct xf_pool_buf buf = {NULL, 0};
        if (!take(p, w->size, &buf)) {
            break;
        }
        xf_list_remove(&w->node);
        p->n_line--;
        w->ready(w, buf);
    }
    p->serving = false;
}

struct xf_pool *xf_pool_new(size_t cap)
{
    struct xf_pool *p = xf_xcalloc(1, sizeof(*p));

    XF_ASSERT(cap >= XF_POOL_BUF_MAX);
    p->cap = cap;
    xf_list_init(&p->line);
    return p;
}

void xf_pool_free(struct xf_pool *p)
{
    if (p == NULL) {
        return;
    }
    XF_ASSERT(p->out == 0 && p->n_line == 0);
    for (unsigned c = 0; c < CLASS_N; c++) {
        while (p->free_of[c] != NULL) {
            unmap_buf(c, pop_kept(p, c));
        }
    }
    xf_xfree(p);
}

bool xf_pool_get(struct xf_pool *p, size_t size, struct xf_pool_buf *out)
{
    return xf_list_is_empty(&p->line) && take(p, size, out);
}

void xf_pool_wait(struct xf_pool *p, struct xf_pool_want *want)
{
    XF_ASSERT(want->size > 0 && want->size <= XF_POOL_BUF_MAX);
    xf_list_push_back(&p->line, &want->node);
    p->n_line++;
}

void xf_pool_forget(struct xf_pool *p, struct xf_pool_want *want)
{
    if (xf_list_is_linked(&want->node)) {
        xf_list_remove(&want->node);
        p->n_line--;
        serve(p);
    }
}

void xf_pool_put(struct xf_pool *p, struct xf_pool_buf *buf)
{
    if (buf->ptr == NULL) {
        return;
    }
    unsigned c = class_of(buf->size);
    void *mem = buf->ptr;

    p->out -= buf->size;
    *buf = (struct xf_pool_buf){NULL, 0};
    if (p->n_free_of[c] < CLASS_KEEP_N) {
        struct kept *k = mem;
        k->next = p->free_of[c];
        p->free_of[c] = k;
        p->n_free_of[c]++;
        p->kept += XF_POOL_BUF_MIN << c;
    } else {
        unmap_buf(c, mem);
    }
    serve(p);
}

size_t xf_pool_out_bytes(const struct xf_pool *p)
{
    return p->out;
}

size_t xf_pool_held_bytes(const struct xf_pool *p)
{
    return p->out + p->kept;
}

size_t xf_pool_waiting(const struct xf_pool *p)
{
    return p->n_line;
}
