/*
 * chunked.h - decoder of chunked bodies: HTTP's own transfer coding and S3's aws-chunked, signed or
 * not.
 *
 * Both are lines "<hex>[;extension]", data, and trailers up to an empty line; aws-chunked signs
 * chunks.
 */
#ifndef XF_TESTS_S3D_CHUNKED_H
#define XF_TESTS_S3D_CHUNKED_H

#include "tests/s3d/auth.h"

enum { S3D_CHUNK_LINE_MAX = 1024, S3D_TRAILERS_MAX = 2048 };

struct s3d_chunked {
    const struct s3d_auth *auth; /* NULL: chunks are not signed */
    enum {
        S3D_CHUNK_SIZE,
        S3D_CHUNK_DATA,
        S3D_CHUNK_DATA_END,
        S3D_CHUNK_TRAILER,
        S3D_CHUNK_DONE
    } state;
    uint64_t left; /* of the chunk */
    size_t line_len;
    char line[S3D_CHUNK_LINE_MAX];
    char previous[S3D_SIG_LEN + 1];
    char stated[S3D_SIG_LEN + 1];
    SHA256_CTX sha256;   /* of the chunk */
    bool trailer_signed; /* a trailer signature is due */
    char trailer_signature[S3D_SIG_LEN + 1];
    size_t trailers_len;
    char trailers[S3D_TRAILERS_MAX]; /* "name:value\n", without the signature */
};

typedef void(s3d_chunk_sink)(void *arg, const char *p, size_t len);

void s3d_chunked_init(struct s3d_chunked *c, const struct s3d_auth *auth, bool trailer_signed);
/** Take bytes in; gives how many were used (all, unless done). False: malformed, or a wrong
 * signature. */
bool s3d_chunked_feed(struct s3d_chunked *c,
                      struct xf_str in,
                      size_t *used,
                      s3d_chunk_sink *sink,
                      void *arg,
                      struct s3d_fail *fail);
/** Value of a trailer, empty when there is none. */
struct xf_str s3d_chunked_trailer(const struct s3d_chunked *c, struct xf_str name);

#endif
