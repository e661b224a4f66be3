/*
 * arena.h - memory that is freed all at once: decoded messages, manifests and results live in one.
 *
 * Pieces never move. Threads: one owner. Sizes come from callers that have capped them.
 */
#ifndef XF_BASE_ARENA_H
#define XF_BASE_ARENA_H

#include "common/base/mem.h"
#include "common/base/str.h"

struct xf_arena_chunk; /* opaque */

/* All zero is a ready, empty arena. */
struct xf_arena {
    struct xf_arena_chunk *chunks;
    size_t used; /* bytes of the first chunk */
};

void xf_arena_init(struct xf_arena *a);
void xf_arena_fini(struct xf_arena *a); /* everything taken from it is gone; ready again */
/** The same, but a chunk of some kilobytes is kept for what comes next. */
void xf_arena_reset(struct xf_arena *a);
/** n * size zeroed bytes, aligned for any type. Never NULL. */
void *xf_arena_calloc(struct xf_arena *a, size_t n, size_t size) __attribute__((returns_nonnull));
/** A copy of the bytes with a NUL behind them. */
struct xf_str xf_arena_dup(struct xf_arena *a, struct xf_str s);
#define XF_AUTO_ARENA __attribute__((cleanup(xf_arena_fini))) struct xf_arena

#endif
