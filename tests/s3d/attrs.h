/*
 * attrs.h - what an object carries beside its bytes: headers, tags, class, redirect, checksum.
 *
 * Immutable and reference counted, so copies share it. NULL stands for an object with nothing but
 * the defaults.
 */
#ifndef XF_TESTS_S3D_ATTRS_H
#define XF_TESTS_S3D_ATTRS_H

#include "tests/s3d/digest.h"
#include "tests/s3d/http.h"

enum { S3D_META_MAX = 2048, S3D_TAGS_MAX = 10 };

struct s3d_attrs {
    _Atomic uint32_t refs;
    struct xf_str headers;       /* "Content-Type: x\r\nx-amz-meta-a: b\r\n", sorted by arrival */
    struct xf_str storage_class; /* empty: STANDARD */
    struct xf_str redirect;
    struct xf_str tags; /* "a=b&c=d", percent-encoded, in order of arrival */
    size_t n_tags;
    enum s3d_sum_alg sum_alg;
    bool composite;
    struct xf_str acl;          /* canned; empty: private */
    struct xf_str sse;          /* header lines of guards.h */
    struct xf_str lock;         /* likewise */
    struct xf_str customer_md5; /* base64; empty: no customer's key */
    bool kms;
    bool restored;     /* from an archive class: a readable copy is there for a while */
    struct xf_str sum; /* base64, with "-N" when composite */
};

/* The parts of a struct s3d_attrs under construction; views borrowed. */
struct s3d_attrs_src {
    struct xf_str headers;
    struct xf_str storage_class;
    struct xf_str redirect;
    struct xf_str tags;
    size_t n_tags;
    enum s3d_sum_alg sum_alg;
    bool composite;
    struct xf_str acl;          /* canned; empty: private */
    struct xf_str sse;          /* header lines of guards.h */
    struct xf_str lock;         /* likewise */
    struct xf_str customer_md5; /* base64; empty: no customer's key */
    bool kms;
    bool restored;
    struct xf_str sum;
};

/** Copies the views. NULL when all is at its default. */
struct s3d_attrs *s3d_attrs_new(const struct s3d_attrs_src *src);
struct s3d_attrs *s3d_attrs_ref(struct s3d_attrs *a);
void s3d_attrs_unref(struct s3d_attrs *a);
/** The parts of a (NULL: the defaults), to change some and make a new one. */
void s3d_attrs_get(const struct s3d_attrs *a, struct s3d_attrs_src *out);

/* An S3 error: a code of the table in xml.c and a text; code NULL when there is none. */
struct s3d_fail {
    const char *code;
    const char *message;
};

/** Of a class that is not read without a restore, and not restored. */
bool s3d_attrs_is_archived(const struct s3d_attrs *a);

/** Stored headers of a request as lines into `out`. */
bool s3d_attrs_headers(const struct s3d_http *h, struct xf_buf *out, struct s3d_fail *fail);
/** x-amz-storage-class, x-amz-website-redirect-location. */
bool s3d_attrs_class(const struct s3d_http *h, struct s3d_attrs_src *src, struct s3d_fail *fail);
/** x-amz-tagging: checked and normalised into `out`. */
bool s3d_attrs_tags(struct xf_str header, struct xf_buf *out, size_t *n, struct s3d_fail *fail);
/** Add one tag (decoded) to the normal form, with S3's limits. */
bool s3d_attrs_tag_add(
    struct xf_buf *out, size_t *n, struct xf_str key, struct xf_str value, struct s3d_fail *fail);
/** SHA-256 of the normal form: headers sorted, tags sorted, class, redirect. */
void s3d_attrs_digest(const struct s3d_attrs *a, uint8_t out[S3D_SHA256_LEN]);

#endif
