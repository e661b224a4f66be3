/* rng.c - xoshiro256** of Blackman and Vigna, seeded through splitmix64. */
#include "common/base/rng.h"

#include "common/base/err.h"

#include <sys/random.h>

void xf_rng_init(struct xf_rng *r, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += 0x9e3779b97f4a7c15ULL;
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        r->s[i] = z ^ (z >> 31);
    }
}

void xf_rng_init_os(struct xf_rng *r)
{
    uint64_t seed;

    XF_ASSERT(getrandom(&seed, sizeof(seed), 0) == (ssize_t)sizeof(seed));
    xf_rng_init(r, seed);
}

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

uint64_t xf_rng_u64(struct xf_rng *r)
{
    uint64_t *s = r->s;
    uint64_t out = rotl(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return out;
}

uint64_t xf_rng_below(struct xf_rng *r, uint64_t n)
{
    XF_ASSERT(n > 0);
    uint64_t limit = UINT64_MAX - UINT64_MAX % n;
    uint64_t v;
    do {
        v = xf_rng_u64(r);
    } while (v >= limit);
    return v % n;
}

double xf_rng_unit(struct xf_rng *r)
{
    return (double)(xf_rng_u64(r) >> 11) * 0x1.0p-53;
}

void xf_rng_id(struct xf_rng *r, char *out, size_t n)
{
    static const char tab[] = "0123456789abcdefghijklmnopqrstuvwxyz";

    for (size_t i = 0; i < n; i++) {
        out[i] = tab[xf_rng_below(r, 36)];
    }
    out[n] = '\0';
}
