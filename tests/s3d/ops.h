/*
 * ops.h - the operations of S3 that are served, in one table, and which one a request means.
 */
#ifndef XF_TESTS_S3D_OPS_H
#define XF_TESTS_S3D_OPS_H

#include "tests/s3d/http.h"

/* X(name, spelled, latency group, writes, body: N none, S small (XML), D data) */
/* clang-format off */
#define S3D_OPS(X)                                                             \
    X(LIST_BUCKETS,      "ListBuckets",             LIST,      false, N)       \
    X(CREATE_BUCKET,     "CreateBucket",            OTHER,     true,  S)       \
    X(HEAD_BUCKET,       "HeadBucket",              HEAD,      false, N)       \
    X(DELETE_BUCKET,     "DeleteBucket",            DELETE,    true,  N)       \
    X(BUCKET_LOCATION,   "GetBucketLocation",       OTHER,     false, N)       \
    X(BUCKET_VERSIONING, "GetBucketVersioning",     OTHER,     false, N)       \
    X(LIST_V2,           "ListObjectsV2",           LIST,      false, N)       \
    X(LIST_V1,           "ListObjects",             LIST,      false, N)       \
    X(LIST_UPLOADS,      "ListMultipartUploads",    LIST,      false, N)       \
    X(DELETE_MANY,       "DeleteObjects",           DELETE,    true,  S)       \
    X(PUT,               "PutObject",               PUT,       true,  D)       \
    X(GET,               "GetObject",               GET,       false, N)       \
    X(HEAD,              "HeadObject",              HEAD,      false, N)       \
    X(COPY,              "CopyObject",              COPY,      true,  N)       \
    X(DELETE,            "DeleteObject",            DELETE,    true,  N)       \
    X(GET_TAGS,          "GetObjectTagging",        TAG,       false, N)       \
    X(PUT_TAGS,          "PutObjectTagging",        TAG,       true,  S)       \
    X(DELETE_TAGS,       "DeleteObjectTagging",     TAG,       true,  N)       \
    X(OWNERSHIP,         "GetBucketOwnershipControls", OTHER,  false, N)       \
    X(LOCK_CONF,         "GetObjectLockConfiguration", OTHER,  false, N)       \
    X(PUT_LOCK,          "PutObjectLock",           OTHER,     true,  S)       \
    X(GET_ACL,           "GetObjectAcl",            OTHER,     false, N)       \
    X(CREATE_UPLOAD,     "CreateMultipartUpload",   MULTIPART, true,  S)       \
    X(UPLOAD_PART,       "UploadPart",              PUT,       true,  D)       \
    X(COPY_PART,         "UploadPartCopy",          COPY,      true,  N)       \
    X(COMPLETE,          "CompleteMultipartUpload", MULTIPART, true,  S)       \
    X(ABORT,             "AbortMultipartUpload",    MULTIPART, true,  N)       \
    X(LIST_PARTS,        "ListParts",               MULTIPART, false, N)       \
    X(OTHER,             "Other",                   OTHER,     false, S)
/* clang-format on */

enum s3d_op {
#define S3D_OP_ENUM(name, text, group, writes, body) S3D_OP_##name,
    S3D_OPS(S3D_OP_ENUM)
#undef S3D_OP_ENUM
        S3D_OP_N
};

enum s3d_group {
    S3D_GROUP_GET,
    S3D_GROUP_HEAD,
    S3D_GROUP_PUT,
    S3D_GROUP_COPY,
    S3D_GROUP_LIST,
    S3D_GROUP_DELETE,
    S3D_GROUP_TAG,
    S3D_GROUP_MULTIPART,
    S3D_GROUP_OTHER,
    S3D_GROUP_N
};

enum s3d_body_kind {
    S3D_BODY_N, /* none is expected; any is read and dropped */
    S3D_BODY_S, /* kept whole, at most S3D_SMALL_MAX */
    S3D_BODY_D  /* object data */
};

struct s3d_op_info {
    const char *name;
    enum s3d_group group;
    bool writes;
    enum s3d_body_kind body;
};

const struct s3d_op_info *s3d_op_info(enum s3d_op op);
bool s3d_op_parse(struct xf_str name, enum s3d_op *out);
bool s3d_group_parse(struct xf_str name, enum s3d_group *out);
/** Which operation: from the method, what the path names and the query. */
enum s3d_op s3d_op_route(const struct s3d_http *h,
                         bool has_bucket,
                         bool has_key,
                         const struct s3d_param *params,
                         size_t n_params);

#endif
