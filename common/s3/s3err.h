/*
 * s3err.h - what an S3 answer means: status, headers and error body to a code with a class.
 *
 * The only place that knows S3's error texts. Pure; any thread.
 */
#ifndef XF_S3_S3ERR_H
#define XF_S3_S3ERR_H

#include "common/base/err.h"
#include "common/base/str.h"

/* Fields of an <Error> document; all may be empty. */
struct xf_s3err_body {
    struct xf_str code;
    struct xf_str message;
    struct xf_str request_id;
    struct xf_str region;
    struct xf_str server_time;
    struct xf_str condition; /* of a 412: the header that did not hold */
};

/* What kind of request failed; decides what 404, 412 and 501 mean. */
enum xf_s3err_kind {
    XF_S3ERR_READ,  /* of an object */
    XF_S3ERR_WRITE, /* PUT, Create, Complete: 412 is "exists" */
    XF_S3ERR_COPY, /* CopyObject, UploadPartCopy: 412 is "source changed", 501 "no server-side copy"
                    */
    XF_S3ERR_BUCKET, /* listing and bucket probes: 404 is "no bucket" */
    XF_S3ERR_UPLOAD, /* parts, Abort, ListParts: 404 is "no upload" */
    XF_S3ERR_KIND_N
};

struct xf_s3err_in {
    enum xf_s3err_kind kind;
    int status;
    const struct xf_s3err_body *body; /* NULL: none (HEAD), or it was not XML */
    struct xf_str header_code; /* x-amz-error-code and kin of bodyless answers; may be empty */
    bool has_bucket_region; /* x-amz-bucket-region names another region than the one signed for */
    bool is_delete_marker;  /* x-amz-delete-marker: true */
};

/* The code for an answer that is an error (an <Error> root in a 200 included). Never XF_OK. */
enum xf_code xf_s3err_code(const struct xf_s3err_in *in);

/* Whether the S3 code names expired or unknown session credentials, worth one re-read of their
 * source. */
bool xf_s3err_is_expired(struct xf_str s3_code);

/* Whether the S3 code says that the signature is wrong: the secret key is, or this one request. */
bool xf_s3err_is_signature(struct xf_str s3_code);

#endif
