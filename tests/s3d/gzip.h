/*
 * gzip.h - answers that a provider compresses on the way, as a rule may ask for.
 */
#ifndef XF_TESTS_S3D_GZIP_H
#define XF_TESTS_S3D_GZIP_H

#include "tests/s3d/req.h"

/** Compress the answer's body, with Content-Encoding: gzip. */
void s3d_gzip_answer(struct s3d_resp *p);

#endif
