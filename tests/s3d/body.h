/*
 * body.h - immutable, shared bytes of objects and parts.
 *
 * A body is kept bytes, made-up bytes (a seed and an offset), dropped bytes (only a length and a
 * CRC), or a chain of ranges of other bodies, so copies and multipart objects share what they are
 * made of. Reference counted, any thread; the content never changes after the body was made.
 */
#ifndef XF_TESTS_S3D_BODY_H
#define XF_TESTS_S3D_BODY_H

#include "tests/s3d/digest.h"

enum {
    S3D_BODY_CHUNK = 1 << 20 /* kept bodies are chunks of this size */
};

struct s3d_body;

/** Kept bytes, copied from p. */
struct s3d_body *s3d_body_new_mem(const void *p, size_t len);
/** Takes the chunks: all of S3D_BODY_CHUNK bytes but the last. */
struct s3d_body *s3d_body_take_chunks(char **chunks, size_t n, uint64_t size);
/** Made-up bytes off..off+size of a stream. `pseudo`: MD5s are digests of (seed, offset, length).
 */
struct s3d_body *s3d_body_new_gen(uint64_t seed, uint64_t off, uint64_t size, bool pseudo);
struct s3d_body *s3d_body_new_dropped(uint64_t size, uint32_t crc32c);
/** Bytes off..off+len of b as a body of its own. */
struct s3d_body *s3d_body_slice(struct s3d_body *b, uint64_t off, uint64_t len);
/** The n bodies one after the other; keeps their sizes as the part layout. */
struct s3d_body *s3d_body_join(struct s3d_body *const *parts, size_t n);
/** As b, with one bit of the last byte flipped. */
struct s3d_body *s3d_body_corrupt(struct s3d_body *b);
/** Parts of equal size (but the last) as the layout of a made-up body; before it is shared. */
void s3d_body_set_part_size(struct s3d_body *b, uint64_t part_size);

struct s3d_body *s3d_body_ref(struct s3d_body *b); /* NULL gives NULL */
void s3d_body_unref(struct s3d_body *b);

uint64_t s3d_body_size(const struct s3d_body *b);
bool s3d_body_is_dropped(const struct s3d_body *b); /* or any part of it */
bool s3d_body_is_pseudo(const struct s3d_body *b);
/** Number of parts of a multipart layout; 0 when there is none. */
size_t s3d_body_parts(const struct s3d_body *b);
/** Range of part number n (from 1). */
bool s3d_body_part(const struct s3d_body *b, size_t part_no, uint64_t *off, uint64_t *len);

/**
 * Some bytes at `off` (below the size): *out points into the body, or into scratch. At least one
 * byte, at most scratch_len when they were made there.
 */
size_t s3d_body_peek(
    const struct s3d_body *b, uint64_t off, char *scratch, size_t scratch_len, const char **out);
/** Do both hold the same bytes? Looks at references first. */
bool s3d_body_equal(const struct s3d_body *a, const struct s3d_body *b);
/** CRC32C of all bytes, also of dropped ones. */
uint32_t s3d_body_crc32c(const struct s3d_body *b);
/** MD5 of all bytes at once (slow for large bodies); see struct s3d_hash for steps. */
void s3d_body_md5(struct s3d_body *b, uint8_t out[S3D_MD5_LEN]);
/** True when the MD5 is known without reading. */
bool s3d_body_md5_known(struct s3d_body *b, uint8_t out[S3D_MD5_LEN]);
void s3d_body_md5_set(struct s3d_body *b, const uint8_t md5[S3D_MD5_LEN]);

/* Hashing in steps, so that a large copy does not hold up the loop. */
struct s3d_hash {
    struct s3d_body *body; /* holds a reference */
    uint64_t pos;
    MD5_CTX md5;
    struct s3d_sum sum;
    bool md5_known;
    uint8_t out[S3D_MD5_LEN];
};
void s3d_hash_init(struct s3d_hash *h, struct s3d_body *b, enum s3d_sum_alg sum);
/** Hash up to n bytes more; true when all is done: `out` and (for a sum) s3d_sum_final(&h->sum) are
 * ready. */
bool s3d_hash_step(struct s3d_hash *h, uint64_t n);
void s3d_hash_fini(struct s3d_hash *h);

#endif
