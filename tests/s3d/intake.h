/*
 * intake.h - takes a body in as it arrives: digests, recognition of made-up bytes, storage.
 *
 * Bytes that equal a stream of gen.h become a reference to it; others are kept, or dropped when so
 * asked. One owner.
 */
#ifndef XF_TESTS_S3D_INTAKE_H
#define XF_TESTS_S3D_INTAKE_H

#include "tests/s3d/body.h"

struct s3d_intake {
    uint64_t size; /* taken so far */
    MD5_CTX md5;
    SHA256_CTX sha256;
    struct s3d_sum sum;
    bool want_sha256;
    bool drop;
    uint32_t crc32c; /* of all bytes, when dropping */
    enum {
        S3D_INTAKE_PROBE, /* the first bytes are in `probe` */
        S3D_INTAKE_GEN,   /* all bytes so far are of stream `seed` from `off` on */
        S3D_INTAKE_MEM
    } mode;
    uint64_t seed;
    uint64_t off;
    size_t probe_len;
    char probe[256];
    size_t first_cap; /* room in chunk 0 */
    char **chunks;
    size_t chunks_len;
    size_t chunks_cap;
};

struct s3d_intake_opts {
    uint64_t size_hint; /* announced size, 0 if unknown */
    bool want_sha256;
    bool drop;
    enum s3d_sum_alg sum;
};

void s3d_intake_init(struct s3d_intake *in, const struct s3d_intake_opts *o);
void s3d_intake_feed(struct s3d_intake *in, const void *data, size_t len);
/** The finished body with its MD5 known; the intake is empty after it. */
struct s3d_body *s3d_intake_finish(struct s3d_intake *in, uint8_t md5[S3D_MD5_LEN]);
void s3d_intake_fini(struct s3d_intake *in);

#endif
