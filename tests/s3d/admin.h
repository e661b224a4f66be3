/*
 * admin.h - what the files of the interface under /-/ share.
 */
#ifndef XF_TESTS_S3D_ADMIN_H
#define XF_TESTS_S3D_ADMIN_H

#include "tests/s3d/req.h"

struct s3d_conn;

/** 400 with {"error": why}. */
void s3d_admin_bad(struct s3d_req *r, const char *why);
void s3d_admin_json(struct s3d_req *r, const struct xf_json *j);
/** A reference; NULL: answered with 400. */
struct s3d_bucket *s3d_admin_bucket(struct s3d_req *r, struct xf_str name);

/* admin_diff.c */
void s3d_admin_dump(struct s3d_req *r);
/** True: answered. False: a thread of its own compares, and the answer follows. */
bool s3d_admin_diff(struct s3d_req *r, struct s3d_conn *c);
/** Wait for comparisons under way. */
void s3d_admin_join(struct s3d_server *s);

#endif
