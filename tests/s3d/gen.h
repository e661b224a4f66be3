/*
 * gen.h - made-up bytes, keys and sizes: pure functions of a seed.
 *
 * A byte stream is a sequence of 64-byte lines. A line carries its seed and its number in the
 * clear, so that bytes that come back from a client can be recognised (see intake.h) and need not
 * be stored.
 */
#ifndef XF_TESTS_S3D_GEN_H
#define XF_TESTS_S3D_GEN_H

#include "common/base/err.h"
#include "common/base/str.h"

enum {
    S3D_GEN_LINE = 64,
    S3D_GEN_PROBE_MIN = 160 /* bytes with which any offset can be recognised */
};

/** Bytes off..off+len of the stream of `seed`. */
void s3d_gen_fill(uint64_t seed, uint64_t off, void *out, size_t len);
/** Do `len` bytes equal the stream at `off`? Gives how many do. */
size_t s3d_gen_match(uint64_t seed, uint64_t off, const void *data, size_t len);
/** Which stream and offset begins with these bytes (at least S3D_GEN_PROBE_MIN)? */
bool s3d_gen_probe(const void *data, size_t len, uint64_t *seed, uint64_t *off);
uint64_t s3d_mix(uint64_t a, uint64_t b);

enum s3d_pattern {
    S3D_PATTERN_FLAT,
    S3D_PATTERN_HEX,
    S3D_PATTERN_DIRS,
    S3D_PATTERN_DATES,
    S3D_PATTERN_SKEW,
    S3D_PATTERN_LONG,
    S3D_PATTERN_UTF8,
    S3D_PATTERN_N
};

struct s3d_sizes {
    uint64_t min;
    uint64_t max;
};

/** A set of made-up objects. */
struct s3d_synth {
    struct xf_str bucket; /* borrowed from the parsed text */
    struct xf_str prefix;
    uint64_t count;
    struct s3d_sizes sizes;
    enum s3d_pattern pattern;
    uint64_t seed;
    uint64_t part_size; /* 0: ETags as of a single Put */
};

const char *s3d_pattern_name(enum s3d_pattern p);
bool s3d_pattern_parse(struct xf_str s, enum s3d_pattern *out);
/** "1KiB", "100", "5GiB", "1.5MiB" is refused. */
bool s3d_size_parse(struct xf_str s, uint64_t *out);
bool s3d_sizes_parse(struct xf_str s, struct s3d_sizes *out);
/** BUCKET:COUNT:SIZE:PATTERN[:seed=N][:part=SIZE][:prefix=P] */
enum xf_code s3d_synth_parse(struct xf_str text, struct s3d_synth *out, struct xf_err *err);

/** Append the key of object n. */
void s3d_synth_key(const struct s3d_synth *s, uint64_t n, struct xf_buf *out);
uint64_t s3d_synth_size(const struct s3d_synth *s, uint64_t n);
uint64_t s3d_synth_seed(const struct s3d_synth *s, uint64_t n);

#endif
