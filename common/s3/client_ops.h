/*
 * client_ops.h - the operations of client.h and their options.
 *
 * Strings are bytes, not encoded; fields that may be left out are empty or zero. Every function
 * gives the operation in flight (never NULL) and promises what client.h says of `done`.
 */
#ifndef XF_S3_CLIENT_OPS_H
#define XF_S3_CLIENT_OPS_H

#include "common/s3/attrs.h"
#include "common/s3/body.h"
#include "common/s3/http.h"
#include "common/s3/result.h"
#include "common/s3/sum.h"

struct xf_s3_source { /* of a copy */
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str version_id;
    struct xf_str if_match; /* x-amz-copy-source-if-match; some servers ignore it: check after */
    bool requester_pays;    /* of the source's bucket; the copy's request agrees for both */
};

struct xf_s3_list_opts {
    struct xf_str bucket;
    struct xf_str prefix;
    struct xf_str delimiter;
    struct xf_str start_after; /* exclusive */
    struct xf_str token;       /* overrides start_after */
    uint32_t max_keys;         /* 0: 1,000 */
    bool restore_status;       /* ask for RestoreStatus */
    bool is_v1; /* a server without list-type=2; token and start_after go as marker */
};
struct xf_s3_req *
xf_s3_list(struct xf_s3 *s3, const struct xf_s3_list_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_head_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str version_id;
    struct xf_str if_match;
    uint32_t part_no; /* 0: the object; else that part: size is the part's */
    bool want_sum;    /* ask for the checksum that the service keeps: result.sum */
};
struct xf_s3_req *
xf_s3_head(struct xf_s3 *s3, const struct xf_s3_head_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_get_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str version_id;
    struct xf_str if_match;
    uint64_t object_size; /* as planned, or XF_HTTP_SIZE_UNKNOWN; another is XF_E_CHANGED */
    uint64_t offset;
    uint64_t len;  /* 0: the whole object, without Range */
    bool want_sum; /* as in a head; ranges have none */
    struct xf_s3_sink sink;
};
struct xf_s3_req *
xf_s3_get(struct xf_s3 *s3, const struct xf_s3_get_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_put_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_s3_body body;
    const struct xf_s3_attrs *attrs; /* NULL: none */
    struct xf_str tags;              /* x-amz-tagging form, see xf_s3_tags_encode() */
    struct xf_str storage_class;     /* empty: not sent */
    struct xf_s3_guards guards;
    bool if_absent; /* If-None-Match: *; XF_E_EXISTS */
};
struct xf_s3_req *
xf_s3_put(struct xf_s3 *s3, const struct xf_s3_put_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_copy_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_s3_source source;
    uint64_t size; /* bounds the wait for the answer; XF_HTTP_SIZE_UNKNOWN: the longest */
    const struct xf_s3_attrs *attrs; /* NULL: the source's are copied; else they replace them */
    bool replace_tags; /* false: the source's are copied; true: `tags` (empty: none) */
    struct xf_str tags;
    struct xf_str storage_class;    /* empty: not sent, which means STANDARD, not the source's */
    struct xf_str website_redirect; /* never copied by S3; with attrs it is taken from there */
    struct xf_s3_guards guards;
    bool if_absent;
};
struct xf_s3_req *
xf_s3_copy(struct xf_s3 *s3, const struct xf_s3_copy_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_create_opts {
    struct xf_str bucket;
    struct xf_str key;
    const struct xf_s3_attrs *attrs;
    struct xf_str tags;
    struct xf_str storage_class;
    struct xf_s3_guards guards;
    enum xf_sum_alg sum; /* a full-object checksum by it is kept; result.sum.alg says so. CRCs */
};
struct xf_s3_req *
xf_s3_create(struct xf_s3 *s3, const struct xf_s3_create_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_part_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str upload_id;
    uint32_t part_no; /* 1 to 10,000 */
    struct xf_s3_body body;
};
struct xf_s3_req *
xf_s3_part(struct xf_s3 *s3, const struct xf_s3_part_opts *o, xf_s3_done_fn *done, void *arg);

struct xf_s3_part_copy_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str upload_id;
    uint32_t part_no;
    struct xf_s3_source source;
    uint64_t offset;
    uint64_t len; /* 0: the whole source */
};
struct xf_s3_req *xf_s3_part_copy(struct xf_s3 *s3,
                                  const struct xf_s3_part_copy_opts *o,
                                  xf_s3_done_fn *done,
                                  void *arg);

struct xf_s3_complete_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str upload_id;
    const struct xf_xml_part *parts; /* ascending; part_no and etag are used */
    size_t n_parts;
    uint64_t object_size;     /* sent as x-amz-mp-object-size to AWS; XF_HTTP_SIZE_UNKNOWN: not */
    const struct xf_sum *sum; /* full-object: it is completed only when that is right; NULL: any */
    bool if_absent;
};
struct xf_s3_req *xf_s3_complete(struct xf_s3 *s3,
                                 const struct xf_s3_complete_opts *o,
                                 xf_s3_done_fn *done,
                                 void *arg);

struct xf_s3_upload_opts { /* abort; list_parts */
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str upload_id;
    uint32_t part_marker; /* list_parts: those after this one */
};
struct xf_s3_req *
xf_s3_abort(struct xf_s3 *s3, const struct xf_s3_upload_opts *o, xf_s3_done_fn *done, void *arg);
struct xf_s3_req *xf_s3_list_parts(struct xf_s3 *s3,
                                   const struct xf_s3_upload_opts *o,
                                   xf_s3_done_fn *done,
                                   void *arg);

struct xf_s3_list_uploads_opts {
    struct xf_str bucket;
    struct xf_str prefix;
    struct xf_str key_marker;
    struct xf_str upload_id_marker;
    uint32_t max_uploads; /* 0: 1,000 */
};
struct xf_s3_req *xf_s3_list_uploads(struct xf_s3 *s3,
                                     const struct xf_s3_list_uploads_opts *o,
                                     xf_s3_done_fn *done,
                                     void *arg);

struct xf_s3_object_opts { /* get_tags, delete; head_bucket uses only the bucket */
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str version_id;
};
struct xf_s3_req *
xf_s3_get_tags(struct xf_s3 *s3, const struct xf_s3_object_opts *o, xf_s3_done_fn *done, void *arg);
struct xf_s3_tags_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str tags; /* x-amz-tagging form; replaces the whole set */
};
struct xf_s3_req *
xf_s3_put_tags(struct xf_s3 *s3, const struct xf_s3_tags_opts *o, xf_s3_done_fn *done, void *arg);
struct xf_s3_lock_opts {
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str mode; /* retention: GOVERNANCE or COMPLIANCE, with `until` */
    struct xf_str until;
    struct xf_str legal_hold; /* instead of the two: ON or OFF */
};
struct xf_s3_req *
xf_s3_put_lock(struct xf_s3 *s3, const struct xf_s3_lock_opts *o, xf_s3_done_fn *done, void *arg);
struct xf_s3_req *xf_s3_head_bucket(struct xf_s3 *s3,
                                    const struct xf_s3_object_opts *o,
                                    xf_s3_done_fn *done,
                                    void *arg);
/* How is the bucket set? XF_OK only for one that has such a configuration. */
struct xf_s3_req *xf_s3_bucket_conf(
    struct xf_s3 *s3, struct xf_str bucket, enum xf_s3_conf what, xf_s3_done_fn *done, void *arg);
struct xf_s3_req *
xf_s3_delete(struct xf_s3 *s3, const struct xf_s3_object_opts *o, xf_s3_done_fn *done, void *arg);

#endif
