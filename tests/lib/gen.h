/*
 * gen.h - random input for property tests, from a seeded generator only.
 */
#ifndef XF_TESTS_LIB_GEN_H
#define XF_TESTS_LIB_GEN_H

#include "common/base/rng.h"
#include "common/base/str.h"

#include <stddef.h>
#include <stdint.h>

/* Append n random bytes. */
void xf_gen_bytes(struct xf_rng *r, struct xf_buf *out, size_t n);

/*
 * Append an object key of 1..max_len bytes (max_len at least 1): valid UTF-8, biased to what has
 * broken clients: slashes at the ends and doubled, dots, spaces, plus, percent, control characters,
 * quotes, XML's own characters, composed and decomposed accents, 4-byte characters.
 */
void xf_gen_key(struct xf_rng *r, struct xf_buf *out, size_t max_len);

/* lo..hi, both included; half of the time at or next to one of the ends or a power of two. */
uint64_t xf_gen_between(struct xf_rng *r, uint64_t lo, uint64_t hi);

#endif
