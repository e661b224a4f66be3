/*
 * attrs.h - an object's attributes: read from a response's headers, written to a request's.
 *
 * The same set is carried whatever the way of the copy: system headers, user metadata, website
 * redirect, storage class. Access, encryption and lock of the new object are what the job says:
 * struct xf_s3_guards.
 */
#ifndef XF_S3_ATTRS_H
#define XF_S3_ATTRS_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/s3/xml.h"

#include <stdint.h>

struct xf_http_head;

struct xf_s3_meta {
    struct xf_str name; /* lower case, without x-amz-meta- */
    struct xf_str value;
};

/* All empty or zero when absent. Values are bytes as they came. */
struct xf_s3_attrs {
    struct xf_str content_type;
    struct xf_str cache_control;
    struct xf_str content_disposition;
    struct xf_str content_encoding; /* without aws-chunked; see was_aws_chunked */
    struct xf_str content_language;
    struct xf_str expires;
    struct xf_str website_redirect;
    const struct xf_s3_meta *meta;
    size_t n_meta;

    /* Read only: never written from here (storage class is an option of the writing request). */
    struct xf_str storage_class;  /* empty: STANDARD */
    struct xf_str archive_status; /* x-amz-archive-status */
    struct xf_str restore;        /* x-amz-restore */
    struct xf_str sse;            /* x-amz-server-side-encryption: AES256, aws:kms, ... */
    struct xf_str sse_customer;   /* algorithm of SSE-C */
    struct xf_str replication;    /* x-amz-replication-status */
    struct xf_str lock_mode;      /* x-amz-object-lock-mode: GOVERNANCE, COMPLIANCE */
    struct xf_str lock_until;     /* x-amz-object-lock-retain-until-date */
    struct xf_str legal_hold;     /* x-amz-object-lock-legal-hold: ON, OFF */
    uint32_t tag_count;           /* x-amz-tagging-count */
    uint32_t missing_meta;        /* x-amz-missing-meta: names S3 could not send */
    bool has_tag_count;
    bool was_aws_chunked; /* the stored Content-Encoding had aws-chunked in it */
};

/*
 * Who may read a new object, how it is encrypted, how long it is kept. None of it comes with a copy
 * by itself, so each writing request (Put, Copy, Create) says it. Empty fields are not sent.
 */
struct xf_s3_guards {
    struct xf_str acl;     /* a canned one: bucket-owner-full-control */
    struct xf_str sse;     /* AES256, aws:kms, aws:kms:dsse; empty: as the bucket is set */
    struct xf_str kms_key; /* of the destination; empty: the account's own */
    struct xf_str lock_mode;
    struct xf_str lock_until; /* as S3 said it; with lock_mode */
    struct xf_str legal_hold;
};

/* Fill from a response. The strings point into the head, the entries lie in `meta`. */
#define XF_S3_META_MAX 128
void xf_s3_attrs_read(struct xf_s3_attrs *out,
                      const struct xf_http_head *head,
                      struct xf_s3_meta meta[XF_S3_META_MAX]);

/* A copy in one piece of memory of its own; free with xf_s3_attrs_free(). */
struct xf_s3_attrs *xf_s3_attrs_dup(const struct xf_s3_attrs *attrs);
/* The same with one more entry of metadata, unless there is one of that name or no room. */
struct xf_s3_attrs *xf_s3_attrs_dup_with(const struct xf_s3_attrs *attrs,
                                         const struct xf_s3_meta *more);
void xf_s3_attrs_free(struct xf_s3_attrs *attrs);
XF_AUTO_DEFINE(xf_s3_attrs, xf_s3_attrs_free)

/* Has `want` a header or a name of metadata that `got` does not have at all? */
bool xf_s3_attrs_lack(const struct xf_s3_attrs *got, const struct xf_s3_attrs *want);

/* Whether an ETag of this object can be an MD5 (not SSE-KMS, not SSE-C). */
bool xf_s3_attrs_etag_is_md5(const struct xf_s3_attrs *attrs);

/* Archived and not (yet) restored: reading it would fail. GLACIER_IR is readable. */
bool xf_s3_attrs_is_archived(const struct xf_s3_attrs *attrs);

/* The same from a listing's storage class alone: true means ask by HEAD. */
bool xf_s3_class_may_be_archived(struct xf_str storage_class);

/* Append the x-amz-tagging form, `a=b%20c&d=`, of a tag set. */
void xf_s3_tags_encode(struct xf_buf *out, const struct xf_xml_pair *tags, size_t n);

#endif
