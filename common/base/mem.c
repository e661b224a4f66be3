/* mem.c - the only caller of malloc. */
#include "common/base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static __attribute__((noreturn)) void out_of_memory(size_t size)
{
    (void)fprintf(stderr, "xfer: out of memory (%zu bytes asked)\n", size); /* we abort anyway */
    abort();
}

size_t xf_mul_size(size_t a, size_t b)
{
    size_t r;

    if (__builtin_mul_overflow(a, b, &r)) {
        out_of_memory((size_t)-1);
    }
    return r;
}

size_t xf_add_size(size_t a, size_t b)
{
    size_t r;

    if (__builtin_add_overflow(a, b, &r)) {
        out_of_memory((size_t)-1);
    }
    return r;
}

void *xf_xmalloc(size_t size)
{
    void *p = malloc(size == 0 ? 1 : size);

    if (p == NULL) {
        out_of_memory(size);
    }
    return p;
}

void *xf_xcalloc(size_t n, size_t size)
{
    size_t all = xf_mul_size(n, size);
    void *p = calloc(1, all == 0 ? 1 : all);

    if (p == NULL) {
        out_of_memory(all);
    }
    return p;
}

void *xf_xrealloc(void *old, size_t n, size_t size)
{
    size_t all = xf_mul_size(n, size);
    void *p = realloc(old, all == 0 ? 1 : all);

    if (p == NULL) {
        out_of_memory(all);
    }
    return p;
}

char *xf_xstrdup(const char *s)
{
    return xf_xmemdup0(s, strlen(s));
}

char *xf_xmemdup0(const void *p, size_t len)
{
    char *copy = xf_xmalloc(xf_add_size(len, 1));

    if (len > 0) {
        memcpy(copy, p, len);
    }
    copy[len] = '\0';
    return copy;
}

void xf_xfree(void *p)
{
    free(p);
}

void xf_wipe(void *p, size_t len)
{
    explicit_bzero(p, len);
}

void xf_auto_close(const int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd); /* nothing was written through it that a caller has not synced */
    }
}
