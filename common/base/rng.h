/*
 * rng.h - the seam for randomness: xoshiro256**, seeded by the caller.
 *
 * Not for secrets. Production code seeds from getrandom(2) by xf_rng_init_os(); tests pass XF_SEED.
 */
#ifndef XF_BASE_RNG_H
#define XF_BASE_RNG_H

#include <stddef.h>
#include <stdint.h>

struct xf_rng {
    uint64_t s[4];
};

void xf_rng_init(struct xf_rng *r, uint64_t seed);
void xf_rng_init_os(struct xf_rng *r);
uint64_t xf_rng_u64(struct xf_rng *r);
/** 0 .. n-1 without bias; n at least 1. */
uint64_t xf_rng_below(struct xf_rng *r, uint64_t n);
/** 0 <= x < 1. */
double xf_rng_unit(struct xf_rng *r);
/** n characters of 0-9a-z and a NUL; out has n + 1 bytes. */
void xf_rng_id(struct xf_rng *r, char *out, size_t n);

#endif
