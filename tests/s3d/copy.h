/*
 * copy.h - what a copy request names, also for the modelled time of copies.
 */
#ifndef XF_TESTS_S3D_COPY_H
#define XF_TESTS_S3D_COPY_H

#include "tests/s3d/req.h"

/** Bucket and key of x-amz-copy-source, decoded into r->dec. False: refused, answered. */
bool s3d_copy_source(struct s3d_req *r, struct xf_str *bucket, struct xf_str *key);
/** x-amz-copy-source-range of a source of that size; the whole when absent. False: refused,
 * answered. */
bool s3d_copy_range(struct s3d_req *r, uint64_t size, uint64_t *off, uint64_t *len);

#endif
