/*
 * auth.h - access keys and the check of AWS Signature Version 4.
 *
 * Strict: the path must be in canonical form as it was sent, every x-amz-* header must be signed,
 * the clock may be 15 minutes off, and the body must have the hash that was signed. The key table
 * may change while the server runs.
 */
#ifndef XF_TESTS_S3D_AUTH_H
#define XF_TESTS_S3D_AUTH_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "tests/s3d/attrs.h"
#include "tests/s3d/digest.h"
#include "tests/s3d/http.h"

enum { S3D_SIG_LEN = 64, S3D_SKEW_MAX_MS = 15 * 60 * 1000 };

struct s3d_keys; /* opaque */

struct s3d_keys *s3d_keys_new(void);
void s3d_keys_free(struct s3d_keys *k);
XF_AUTO_DEFINE(s3d_keys, s3d_keys_free)
/** AKID:SECRET[:TOKEN][:ro]; replaces a key of the same id. */
enum xf_code s3d_keys_add(struct s3d_keys *k, struct xf_str text, struct xf_err *err);
bool s3d_keys_remove(struct s3d_keys *k, struct xf_str akid);

enum s3d_payload {
    S3D_PAYLOAD_UNSIGNED,
    S3D_PAYLOAD_HASH,            /* sha256 is what the body must have */
    S3D_PAYLOAD_CHUNKS,          /* STREAMING-AWS4-HMAC-SHA256-PAYLOAD */
    S3D_PAYLOAD_CHUNKS_TRAILER,  /* ... -TRAILER */
    S3D_PAYLOAD_UNSIGNED_TRAILER /* STREAMING-UNSIGNED-PAYLOAD-TRAILER */
};

/* What a signature said, for the checks that need the body. */
struct s3d_auth {
    bool checked; /* false with --no-auth or a refused request */
    bool read_only;
    enum s3d_payload payload;
    uint8_t sha256[S3D_SHA256_LEN];
    uint8_t signing_key[S3D_SHA256_LEN];
    char signature[S3D_SIG_LEN + 1]; /* the seed of chunk signatures */
    char date[20];                   /* x-amz-date */
    char scope[128];
};

struct s3d_auth_opts {
    const char *region; /* NULL: any */
    int64_t wall_ms;
    bool off; /* only look at x-amz-content-sha256 */
    struct xf_buf *scratch;
};

/**
 * Check the head of a request. False: *fail says why, `extra` has further elements of the Error
 * document. params: the decoded query (for presigned URLs).
 */
bool s3d_auth_check(struct s3d_keys *keys,
                    const struct s3d_auth_opts *opts,
                    const struct s3d_http *h,
                    struct s3d_auth *out,
                    struct xf_buf *extra,
                    struct s3d_fail *fail);
/** The signature of one chunk (or of trailers, by their text); out has S3D_SIG_LEN + 1 bytes. */
void s3d_auth_chunk(const struct s3d_auth *a,
                    const char *previous,
                    const char *label,
                    const uint8_t sha256[S3D_SHA256_LEN],
                    char *out);
/** Canonical request of h for these signed headers. Also for tests. */
void s3d_auth_canonical(const struct s3d_http *h,
                        struct xf_str signed_headers,
                        struct xf_str payload,
                        bool presigned,
                        struct xf_buf *out);

#endif
