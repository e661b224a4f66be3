/*
 * keyspace.h - where between two keys others may lie: split points for a listing. Pure.
 *
 * A key is read as a number whose digits are characters. How many there are at a place of the key,
 * and which, is learnt from the keys that were listed: where only `/` was seen there is nothing to
 * choose; where a digit was seen any digit may come, though what has not come in many keys gets
 * a small share of the numbers. UTF-8's byte order is the order of its code
 * points, so digits are ranked by code point and every point made here is valid UTF-8. An estimate
 * may be as wrong as it likes: ranges are made of bytes, and no key is lost by a bad point.
 */
#ifndef XF_COORDINATOR_KEYSPACE_H
#define XF_COORDINATOR_KEYSPACE_H

#include "common/base/str.h"

#include <stdint.h>

/* Points are at most this long; longer common parts are not split. */
#define XF_KEYSPACE_POINT_MAX 900
/* Places that are told apart; what lies behind is one. */
#define XF_KEYSPACE_PLACES 160

struct xf_keyspace_char {
    uint32_t cp; /* code point */
    bool is_guess;
};

/* The characters of one place. */
struct xf_keyspace_set {
    struct xf_keyspace_char *chars; /* rising */
    size_t n;
    size_t cap;
    size_t n_keys; /* that were seen */
};

struct xf_keyspace {
    size_t fixed; /* bytes that every key has */
    struct xf_keyspace_set at[XF_KEYSPACE_PLACES + 1];
};

/** fixed: bytes that every key begins with; places count from there. */
void xf_keyspace_init(struct xf_keyspace *k, size_t fixed);
void xf_keyspace_fini(struct xf_keyspace *k);

/** Learn the characters of a key; one that is no UTF-8 teaches nothing. */
void xf_keyspace_learn(struct xf_keyspace *k, struct xf_str key);

/** Bytes that both begin with, at a character's border. */
size_t xf_keyspace_common(struct xf_str a, struct xf_str b);
/** The character's border at or before byte `at`. */
size_t xf_keyspace_border(struct xf_str key, size_t at);

/** 0.0 to 1.0, rising with the key: where it lies among all with its first `from` bytes. */
double xf_keyspace_place(const struct xf_keyspace *k, struct xf_str key, size_t from);

/**
 * A point p with lo < p < hi, about `share` (0 to 1) of the way.
 *
 * lo  a key, or a point
 * hi  the same; empty: the end of all keys
 *
 * False: there is none to be made.
 */
bool xf_keyspace_between(const struct xf_keyspace *k,
                         struct xf_str lo,
                         struct xf_str hi,
                         double share,
                         struct xf_buf *out);

/** The first place from byte `at` of the key on where there is a choice, as a byte offset. */
size_t xf_keyspace_choice(const struct xf_keyspace *k, struct xf_str key, size_t at);

/** The point behind all keys with the first `len` bytes of `key`; len at a character's border. */
void xf_keyspace_behind(struct xf_str key, size_t len, struct xf_buf *out);

#endif
