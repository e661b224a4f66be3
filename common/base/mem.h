/*
 * mem.h - allocators that abort, overflow-checked sizes, and the cleanup attribute's helpers.
 *
 * Small control allocations never return NULL: at exhaustion the process aborts and the queue in
 * the store makes that an ordinary crash. Sizes that a peer, a file or S3 chose are capped by the
 * caller first. Only mem.c calls malloc.
 */
#ifndef XF_BASE_MEM_H
#define XF_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *xf_xmalloc(size_t size) __attribute__((malloc, returns_nonnull));
void *xf_xcalloc(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
/** Grow or shrink to n * size bytes; old may be NULL. */
void *xf_xrealloc(void *old, size_t n, size_t size) __attribute__((returns_nonnull));
char *xf_xstrdup(const char *s) __attribute__((malloc, returns_nonnull));
/** Copy of `len` bytes with a NUL behind them. */
char *xf_xmemdup0(const void *p, size_t len) __attribute__((malloc, returns_nonnull));
/** Like free(); NULL is fine. */
void xf_xfree(void *p);
/** Overwrite with zeros in a way the compiler keeps (secrets). */
void xf_wipe(void *p, size_t len);

/** a * b; aborts on overflow. */
size_t xf_mul_size(size_t a, size_t b);
/** a + b; aborts on overflow. */
size_t xf_add_size(size_t a, size_t b);

/*
 * XF_AUTO(xf_plan) p = ...;  declares `struct xf_plan *p` that xf_plan_free() frees at the end of
 * the scope. The module's header enables it with XF_AUTO_DEFINE(xf_plan, xf_plan_free).
 * XF_STEAL(p) hands the pointer off and leaves NULL.
 */
#define XF_AUTO_DEFINE(type, free_fn)               \
    static inline void type##_auto(struct type **p) \
    {                                               \
        free_fn(*p);                                \
    }
#define XF_AUTO(type) __attribute__((cleanup(type##_auto), unused)) struct type *
#define XF_STEAL(p)                     \
    __extension__({                     \
        __typeof__(p) xf_stolen_ = (p); \
        (p) = NULL;                     \
        xf_stolen_;                     \
    })
/* XF_AUTO_FREE char *text = xf_xstrdup(...); */
static inline void xf_auto_free(void *p)
{
    xf_xfree(*(void **)p);
}
#define XF_AUTO_FREE __attribute__((cleanup(xf_auto_free)))
/* XF_AUTO_FD int fd = open(...); closed at the end of the scope when not negative. */
void xf_auto_close(const int *fd);
#define XF_AUTO_FD __attribute__((cleanup(xf_auto_close)))

#define XF_ARRAY_LEN(a)                    (sizeof(a) / sizeof((a)[0]))
#define XF_CONTAINER_OF(ptr, type, member) ((type *)(void *)((char *)(ptr)-offsetof(type, member)))

#endif
