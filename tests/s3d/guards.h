/*
 * guards.h - who may read an object, how it is encrypted, how long it is kept: as requests ask for
 * it, and what a request must carry to get at such an object.
 *
 * Nothing is encrypted and nothing is locked: headers are checked, kept and told as S3 does it.
 */
#ifndef XF_TESTS_S3D_GUARDS_H
#define XF_TESTS_S3D_GUARDS_H

#include "tests/s3d/attrs.h"
#include "tests/s3d/req.h"

/* Texts of a request's guards; views into it go to a struct s3d_attrs_src. */
struct s3d_guards {
    struct xf_buf sse;  /* header lines: told with every answer */
    struct xf_buf lock; /* header lines: told by GET and HEAD */
};
void s3d_guards_fini(struct s3d_guards *g);
#define S3D_AUTO_GUARDS __attribute__((cleanup(s3d_guards_fini))) struct s3d_guards

/** Has the request a header of these at all? */
bool s3d_guards_asked(const struct s3d_http *h);
/**
 * Check the guards that a Put, Copy or Create asks for, and put them into *src; `g` holds the
 * texts, and must live as long as they are used. False: refused, the answer is there.
 */
bool s3d_guards_take(struct s3d_req *r, struct s3d_guards *g, struct s3d_attrs_src *src);
/** May the request read (or add a part to) an object with these attributes? False: refused. */
bool s3d_guards_open(struct s3d_req *r, const struct s3d_attrs *a, bool as_copy_source);
/** A bucket whose requester pays: has the request agreed? False: refused. */
bool s3d_guards_paid(struct s3d_req *r, const struct s3d_bucket *b);
/* The operations on them alone. */
void s3d_get_acl(struct s3d_req *r);
void s3d_get_ownership(struct s3d_req *r);
void s3d_get_lock_conf(struct s3d_req *r);
void s3d_put_lock(struct s3d_req *r); /* retention or legal hold of an object */

#endif
