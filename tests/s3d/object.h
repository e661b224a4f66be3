/*
 * object.h - one stored object as a value: size, bytes, MD5, attributes, times.
 *
 * Copied out of the index under its lock (with references taken), so that a reader needs no lock
 * afterwards.
 */
#ifndef XF_TESTS_S3D_OBJECT_H
#define XF_TESTS_S3D_OBJECT_H

#include "tests/s3d/attrs.h"
#include "tests/s3d/body.h"

enum s3d_obj_flags {
    S3D_OBJ_GEN = 1,      /* the bytes are stream `seed`, no body is held */
    S3D_OBJ_MD5_LAZY = 2, /* md5 is not computed yet */
    S3D_OBJ_KMS = 4       /* the ETag is no MD5 */
};

enum {
    S3D_ETAG_MAX = 48 /* quotes, 32 hex digits, -10000 */
};

struct s3d_obj {
    uint64_t size;
    union {
        struct s3d_body *body;
        uint64_t seed;
    } u;
    struct s3d_attrs *attrs; /* NULL: defaults */
    uint8_t md5[S3D_MD5_LEN];
    uint32_t mtime_s;
    uint16_t n_parts; /* 0: not multipart */
    uint16_t flags;
};

void s3d_obj_fini(struct s3d_obj *o); /* drops the references */
/** With references of its own. */
void s3d_obj_copy(const struct s3d_obj *o, struct s3d_obj *out);
/** The bytes, a new reference. */
struct s3d_body *s3d_obj_body(const struct s3d_obj *o);
/** Compute the MD5 when it is lazy (the size is small then). */
void s3d_obj_fix_md5(struct s3d_obj *o);
/** ETag with its quotes; the MD5 must be there. */
void s3d_obj_etag(const struct s3d_obj *o, char out[S3D_ETAG_MAX]);
/** Does an If-Match value (list, quotes, *) match? */
bool s3d_etag_matches(const struct s3d_obj *o, struct xf_str header);

#endif
