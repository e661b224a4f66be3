/*
 * result.h - the operations' names and what an operation ends with. See client.h.
 */
#ifndef XF_S3_RESULT_H
#define XF_S3_RESULT_H

#include "common/base/err.h"
#include "common/s3/attrs.h"
#include "common/s3/http.h"
#include "common/s3/sum.h"
#include "common/s3/xml.h"

struct xf_s3;
struct xf_s3_req; /* an operation in flight; gone after its done */

/* X(name, metric label) */
/* clang-format off */
#define XF_S3_OPS(X)                                                                           \
    X(LIST, "list") X(HEAD, "head") X(GET, "get") X(PUT, "put") X(COPY, "copy")                \
    X(CREATE, "create") X(PART, "part") X(PART_COPY, "part_copy") X(COMPLETE, "complete")      \
    X(ABORT, "abort") X(LIST_PARTS, "list_parts") X(LIST_UPLOADS, "list_uploads")              \
    X(GET_TAGS, "get_tags") X(HEAD_BUCKET, "head_bucket") X(DELETE, "delete")      \
    X(CONF, "bucket_conf") X(PUT_TAGS, "put_tags") X(PUT_LOCK, "put_lock")
/* clang-format on */
enum xf_s3_op {
#define XF_S3_OP_ENUM(name, label) XF_S3_##name,
    XF_S3_OPS(XF_S3_OP_ENUM)
#undef XF_S3_OP_ENUM
        XF_S3_OP_N
};
const char *xf_s3_op_name(enum xf_s3_op op);

/* Configurations of a bucket, and what tells that it has none such. */
enum xf_s3_conf {
    XF_S3_CONF_WEBSITE,
    XF_S3_CONF_OWNERSHIP, /* doc->text: BucketOwnerEnforced: it has no ACLs */
    XF_S3_CONF_LOCK       /* s3_code ObjectLockConfigurationNotFoundError: it has no object lock */
};

/* Everything in it is valid until `done` returns; copy what is kept. */
struct xf_s3_result {
    enum xf_s3_op op;
    struct xf_err err; /* code XF_OK: it worked */
    int status;        /* HTTP; 0 when no answer came */
    /* A write failed in a way that leaves open whether the server did it: check before redoing. */
    bool maybe_done;
    /* Copies only, with err XF_E_NO_COPY: a 2xx without a result document. HEAD the destination:
     * either the copy was made, or the server took the request for a plain PUT of nothing. */
    bool copy_ignored;
    struct xf_str s3_code; /* of an error */
    struct xf_str s3_message;
    struct xf_str request_id;
    struct xf_str region;   /* x-amz-bucket-region or the error's Region; may be empty */
    int64_t retry_after_ms; /* -1 when the server named none */
    int64_t server_date_ms; /* Date header; 0 when none */

    struct xf_str etag;     /* unquoted; of the object, part or copy */
    struct xf_str etag_raw; /* as it came in the header or body */
    struct xf_str version_id;
    uint64_t
        size; /* of the whole object (Content-Range's total for ranges); XF_HTTP_SIZE_UNKNOWN */
    int64_t modified_ms; /* 0 when none */
    bool is_delete_marker;
    bool is_encrypted;   /* by the service, says this answer: x-amz-server-side-encryption */
    bool etag_is_opaque; /* SSE-KMS or SSE-C by this answer's headers: the etag is no MD5 */
    const struct xf_s3_attrs *attrs; /* head and get; NULL otherwise */
    const struct xf_xml_doc
        *doc; /* list, list_parts, list_uploads, get_tags, ...; NULL when no XML came */
    struct xf_str upload_id; /* create */
    struct xf_sum sum; /* x-amz-checksum-* of the answer; create: only how the upload is summed */

    uint64_t bytes_in; /* body bytes */
    uint64_t bytes_out;
    struct xf_http_timing timing;
};

typedef void(xf_s3_done_fn)(void *arg, const struct xf_s3_result *res);

#endif
