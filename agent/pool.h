/*
 * pool.h - bulk memory of one lane: buffers under a cap, reserved before the work starts.
 *
 * Buffers come in sizes of a power of two from 4 KiB to XF_POOL_BUF_MAX. What is out plus what is
 * kept for reuse never exceeds the cap. Who gets nothing waits in order, so a large want is not
 * starved by small ones; that is the back-pressure which bounds a lane's memory. Threads: one
 * owner.
 */
#ifndef XF_AGENT_POOL_H
#define XF_AGENT_POOL_H

#include "common/base/list.h"
#include "common/base/mem.h"

#include <stdint.h>

#define XF_POOL_BUF_MIN ((size_t)4 << 10)
#define XF_POOL_BUF_MAX ((size_t)16 << 20) /* a part up to this size is buffered whole */

struct xf_pool;

struct xf_pool_buf {
    char *ptr;   /* NULL: none */
    size_t size; /* usable bytes, at least what was asked */
};

/* Somebody who waits; the caller's storage. */
struct xf_pool_want {
    struct xf_list node;
    size_t size;
    void (*ready)(struct xf_pool_want *want, struct xf_pool_buf buf); /* takes the buffer */
    void *arg;
};

/** cap: bytes, at least XF_POOL_BUF_MAX. */
struct xf_pool *xf_pool_new(size_t cap);
/** Every buffer must be back, nobody may wait. */
void xf_pool_free(struct xf_pool *p);
XF_AUTO_DEFINE(xf_pool, xf_pool_free)

/**
 * A buffer of at least `size` bytes (1 to XF_POOL_BUF_MAX) now; false when others wait or there is
 * no room: then xf_pool_wait().
 */
bool xf_pool_get(struct xf_pool *p, size_t size, struct xf_pool_buf *out);
/** Wait in line; ready() runs from a later xf_pool_put() or xf_pool_forget(). */
void xf_pool_wait(struct xf_pool *p, struct xf_pool_want *want);
/** Wait no longer. Harmless when not waiting. */
void xf_pool_forget(struct xf_pool *p, struct xf_pool_want *want);
/** Give a buffer back and serve who waits; clears *buf. Nothing when it is empty. */
void xf_pool_put(struct xf_pool *p, struct xf_pool_buf *buf);

size_t xf_pool_out_bytes(const struct xf_pool *p);  /* handed out now */
size_t xf_pool_held_bytes(const struct xf_pool *p); /* out and kept for reuse: at most the cap */
size_t xf_pool_waiting(const struct xf_pool *p);

#endif
