/* ops.c - the operations of S3 that are served. */
#include "tests/s3d/ops.h"

static const struct s3d_op_info infos[S3D_OP_N] = {
#define S3D_OP_ROW(name, text, group, writes, body) \
    [S3D_OP_##name] = {text, S3D_GROUP_##group, writes, S3D_BODY_##body},
    S3D_OPS(S3D_OP_ROW)
#undef S3D_OP_ROW
};

static const char *const group_names[S3D_GROUP_N] = {
    "get", "head", "put", "copy", "list", "delete", "tag", "multipart", "other"};

const struct s3d_op_info *s3d_op_info(enum s3d_op op)
{
    return &infos[op];
}

bool s3d_op_parse(struct xf_str name, enum s3d_op *out)
{
    for (int i = 0; i < S3D_OP_N; i++) {
        if (xf_str_eq_c(name, infos[i].name)) {
            *out = (enum s3d_op)i;
            return true;
        }
    }
    return false;
}

bool s3d_group_parse(struct xf_str name, enum s3d_group *out)
{
    for (int i = 0; i < S3D_GROUP_N; i++) {
        if (xf_str_eq_c(name, group_names[i])) {
            *out = (enum s3d_group)i;
            return true;
        }
    }
    return false;
}

/* What a request can be told by, beside its method. */
enum {
    Q_UPLOADS = 1 << 0,
    Q_UPLOAD_ID = 1 << 1,
    Q_PART_NO = 1 << 2,
    Q_TAGGING = 1 << 3,
    Q_DELETE = 1 << 4,
    Q_LOCATION = 1 << 5,
    Q_VERSIONING = 1 << 6,
    Q_V2 = 1 << 7,
    Q_ACL = 1 << 8,
    Q_OWNERSHIP = 1 << 9,
    Q_LOCK_CONF = 1 << 10,
    Q_LOCK = 1 << 11, /* an object's retention or legal hold */
    Q_OTHER = 1 << 12 /* a subresource that is not modelled */
};

static unsigned query_flags(const struct s3d_param *params, size_t n)
{
    static const struct {
        const char *name;
        unsigned flag;
    } known[] = {{"uploads", Q_UPLOADS},
                 {"uploadId", Q_UPLOAD_ID},
                 {"partNumber", Q_PART_NO},
                 {"tagging", Q_TAGGING},
                 {"delete", Q_DELETE},
                 {"location", Q_LOCATION},
                 {"versioning", Q_VERSIONING},
                 {"acl", Q_ACL},
                 {"attributes", Q_OTHER},
                 {"versions", Q_OTHER},
                 {"policy", Q_OTHER},
                 {"lifecycle", Q_OTHER},
                 {"encryption", Q_OTHER},
                 {"cors", Q_OTHER},
                 {"object-lock", Q_LOCK_CONF},
                 {"retention", Q_LOCK},
                 {"legal-hold", Q_LOCK},
                 {"restore", Q_OTHER},
                 {"replication", Q_OTHER},
                 {"website", Q_OTHER},
                 {"ownershipControls", Q_OWNERSHIP},
                 {"torrent", Q_OTHER},
                 {"select", Q_OTHER},
                 {"versionId", Q_OTHER}};
    unsigned flags = 0;

    for (size_t i = 0; i < n; i++) {
        if (xf_str_eq_c(params[i].name, "list-type")) {
            flags |= xf_str_eq_c(params[i].value, "2") ? Q_V2 : 0U;
            continue;
        }
        if (xf_str_eq_c(params[i].name, "versionId") && xf_str_eq_c(params[i].value, "null")) {
            continue; /* the one version an unversioned object has */
        }
        for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
            if (xf_str_eq_c(params[i].name, known[k].name)) {
                flags |= known[k].flag;
            }
        }
    }
    return flags;
}

static enum s3d_op route_bucket(enum s3d_method m, unsigned q)
{
    if (m == S3D_GET && (q & (Q_OWNERSHIP | Q_LOCK_CONF)) != 0) {
        return (q & Q_OWNERSHIP) != 0 ? S3D_OP_OWNERSHIP : S3D_OP_LOCK_CONF;
    }
    if ((q & (Q_OTHER | Q_ACL | Q_OWNERSHIP | Q_LOCK_CONF | Q_LOCK)) != 0) {
        return S3D_OP_OTHER;
    }
    switch (m) {
    case S3D_GET:
        if ((q & Q_UPLOADS) != 0) {
            return S3D_OP_LIST_UPLOADS;
        }
        if ((q & Q_LOCATION) != 0) {
            return S3D_OP_BUCKET_LOCATION;
        }
        if ((q & Q_VERSIONING) != 0) {
            return S3D_OP_BUCKET_VERSIONING;
        }
        return (q & Q_TAGGING) != 0 ? S3D_OP_OTHER
               : (q & Q_V2) != 0    ? S3D_OP_LIST_V2
                                    : S3D_OP_LIST_V1;
    case S3D_HEAD: return S3D_OP_HEAD_BUCKET;
    case S3D_PUT: return q == 0 ? S3D_OP_CREATE_BUCKET : S3D_OP_OTHER;
    case S3D_DELETE: return q == 0 ? S3D_OP_DELETE_BUCKET : S3D_OP_OTHER;
    case S3D_POST: return (q & Q_DELETE) != 0 ? S3D_OP_DELETE_MANY : S3D_OP_OTHER;
    case S3D_OTHER: break;
    }
    return S3D_OP_OTHER;
}

static enum s3d_op route_put(const struct s3d_http *h, unsigned q)
{
    bool copy = s3d_http_has(h, "x-amz-copy-source");

    if ((q & (Q_UPLOAD_ID | Q_PART_NO)) != 0) {
        return copy ? S3D_OP_COPY_PART : S3D_OP_UPLOAD_PART;
    }
    return (q & Q_TAGGING) != 0 ? S3D_OP_PUT_TAGS : copy ? S3D_OP_COPY : S3D_OP_PUT;
}

static enum s3d_op route_object(const struct s3d_http *h, unsigned q)
{
    bool upload = (q & Q_UPLOAD_ID) != 0;
    bool tags = (q & Q_TAGGING) != 0;

    if ((q & Q_ACL) != 0 && h->method == S3D_GET) {
        return S3D_OP_GET_ACL;
    }
    if ((q & Q_LOCK) != 0 && h->method == S3D_PUT) {
        return S3D_OP_PUT_LOCK;
    }
    if ((q & (Q_OTHER | Q_ACL | Q_OWNERSHIP | Q_LOCK_CONF | Q_LOCK)) != 0) {
        return S3D_OP_OTHER;
    }
    switch (h->method) {
    case S3D_GET: return upload ? S3D_OP_LIST_PARTS : tags ? S3D_OP_GET_TAGS : S3D_OP_GET;
    case S3D_HEAD: return S3D_OP_HEAD;
    case S3D_PUT: return route_put(h, q);
    case S3D_DELETE: return upload ? S3D_OP_ABORT : tags ? S3D_OP_DELETE_TAGS : S3D_OP_DELETE;
    case S3D_POST:
        if ((q & Q_UPLOADS) != 0) {
            return S3D_OP_CREATE_UPLOAD;
        }
        return upload ? S3D_OP_COMPLETE : S3D_OP_OTHER;
    case S3D_OTHER: break;
    }
    return S3D_OP_OTHER;
}

enum s3d_op s3d_op_route(const struct s3d_http *h,
                         bool has_bucket,
                         bool has_key,
                         const struct s3d_param *params,
                         size_t n_params)
{
    unsigned q = query_flags(params, n_params);

    if (!has_bucket) {
        return h->method == S3D_GET && q == 0 ? S3D_OP_LIST_BUCKETS : S3D_OP_OTHER;
    }
    return has_key ? route_object(h, q) : route_bucket(h->method, q);
}
