/*
 * side.h - objects that the test, not a client, puts into the store: POST /-/put, and rules that
 * fire.
 */
#ifndef XF_TESTS_S3D_SIDE_H
#define XF_TESTS_S3D_SIDE_H

#include "common/base/json.h"
#include "tests/s3d/store.h"

#define S3D_UNSET INT64_MIN

/* Views belong to `text`. */
struct s3d_side_put {
    struct xf_buf text;
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str body;
    bool made_up; /* size and seed instead of body */
    uint64_t size;
    uint64_t seed;
    struct xf_str headers; /* "Name: value\r\n" lines; empty: defaults */
    struct xf_str storage_class;
    bool restored;
    struct xf_str redirect;
    struct xf_str tags;
    struct xf_str etag; /* without quotes; empty: the true one */
    enum s3d_sum_alg sum_alg;
    struct xf_str sum;       /* base64; empty: the true one */
    int64_t last_modified_s; /* S3D_UNSET: now */
};

/** key_only: only bucket and key are taken. XF_E_INVAL says what is wrong. */
XF_MUST_CHECK enum xf_code s3d_side_put_parse(const struct xf_json *j,
                                              bool key_only,
                                              struct s3d_side_put **out,
                                              struct xf_err *err);
void s3d_side_put_free(struct s3d_side_put *p);
XF_AUTO_DEFINE(s3d_side_put, s3d_side_put_free)
void s3d_side_put_store(struct s3d_bucket *b, const struct s3d_side_put *p, int64_t now_ms);

#endif
