/*
 * uri.h - where an S3 request goes and how its names are written.
 *
 * An endpoint is scheme, host, port and base path. A target is what one request needs: the URL to
 * hand to the HTTP seam, the Host value and the path, each written exactly once, since the path
 * that is signed must be the path that is sent. Keys are bytes: encoded once, never normalised
 * (`a//b`, `.` and `..` are names like others). Pure; any thread.
 */
#ifndef XF_S3_URI_H
#define XF_S3_URI_H

#include "common/base/err.h"
#include "common/base/str.h"

#include <stdint.h>

#define XF_URI_HOST_MAX   253  /* bytes of a host name or literal */
#define XF_URI_BASE_MAX   512  /* bytes of an endpoint's base path */
#define XF_URI_REGION_MAX 64   /* bytes of a region's name */
#define XF_URI_BUCKET_MAX 255  /* legacy us-east-1 names are longer than 63 */
#define XF_URI_KEY_MAX    8192 /* S3 allows 1,024 bytes; some servers more, some listings say more */

enum xf_uri_style {
    XF_URI_STYLE_AUTO, /* AWS: virtual unless the bucket's name forbids it; any other endpoint: path
                        */
    XF_URI_STYLE_PATH, /* https://host/bucket/key */
    XF_URI_STYLE_VIRTUAL, /* https://bucket.host/key; dots in the bucket over https and IP hosts
                             still go path */
};

struct xf_uri_endpoint {
    bool https;
    bool is_ip; /* host is an IPv4 or (without brackets) IPv6 literal */
    bool is_ip6;
    bool is_aws;                         /* an AWS S3 host in any partition */
    uint16_t port;                       /* always set: 80 or 443 when the text had none */
    char host[XF_URI_HOST_MAX + 1];      /* lower case, without brackets */
    char base_path[XF_URI_BASE_MAX + 1]; /* "" or "/s3/v1": encoded as given, no slash at the end */
};

/**
 * Parse an endpoint such as `http://127.0.0.1:9000` or `https://[2001:db8::1]:8443/s3/v1`.
 *
 * Refused with XF_E_INVAL: no or another scheme, user info, query, fragment, empty host, port 0 or
 * above 65535.
 */
enum xf_code
xf_uri_endpoint_parse(struct xf_str text, struct xf_uri_endpoint *out, struct xf_err *err);

enum xf_uri_aws {
    XF_URI_AWS_FIPS = 1,     /* s3-fips: TLS by FIPS 140 modules; not in aws-cn */
    XF_URI_AWS_DUALSTACK = 2 /* dualstack: IPv6 addresses as well */
};

/**
 * The S3 endpoint of an AWS region, by its partition (aws, aws-cn, aws-us-gov, aws-eusc, iso...).
 * flags: of enum xf_uri_aws.
 *
 * Errors: XF_E_INVAL when `region` does not look like a region label, or has no such endpoint.
 */
enum xf_code xf_uri_endpoint_aws(struct xf_str region,
                                 unsigned flags,
                                 struct xf_uri_endpoint *out,
                                 struct xf_err *err);

/**
 * The same endpoint in another region: only the region's label in an AWS host changes.
 *
 * Errors: XF_E_INVAL  the host is not AWS's, or has no region label; the region is not of its
 *                     partition.
 */
enum xf_code
xf_uri_endpoint_move(struct xf_uri_endpoint *ep, struct xf_str region, struct xf_err *err);

/* Whether both are S3 hosts of one AWS partition, by their suffix. */
bool xf_uri_is_aws_sibling(const struct xf_uri_endpoint *a, const struct xf_uri_endpoint *b);

/* The partition's name of a region ("aws", "aws-cn", ...), static; NULL when it is not an AWS
 * region's name. */
const char *xf_uri_partition(struct xf_str region);

/* The suffix of host names in a region's partition, "amazonaws.com" where the region is not known;
 * static. */
const char *xf_uri_aws_suffix(struct xf_str region);

/**
 * Whether a server-side copy from one to the other can work: the same scheme, host, port and base
 * path, or AWS in one partition on both sides (then the regions may differ).
 */
bool xf_uri_same_service(const struct xf_uri_endpoint *a,
                         struct xf_str a_region,
                         const struct xf_uri_endpoint *b,
                         struct xf_str b_region);

/* Whether this bucket is addressed path style on this endpoint, whatever was asked. */
bool xf_uri_is_path_style(const struct xf_uri_endpoint *ep,
                          enum xf_uri_style style,
                          struct xf_str bucket);

/**
 * Decode %XX (and `+` as space when plus_is_space) of a listing's field, once.
 *
 * A `%` without two hex digits stays as it is: some servers leave fields raw.
 */
void xf_uri_decode(struct xf_buf *out, struct xf_str text, bool plus_is_space);

/* Append the path that is signed and sent: base path, bucket when path style, `/`, encoded key. */
void xf_uri_path(struct xf_buf *out,
                 const struct xf_uri_endpoint *ep,
                 bool path_style,
                 struct xf_str bucket,
                 struct xf_str key);

/* Append the Host value: `bucket.` when virtual, brackets for IPv6, the port only when it is not
 * the scheme's own. */
void xf_uri_host(struct xf_buf *out,
                 const struct xf_uri_endpoint *ep,
                 bool path_style,
                 struct xf_str bucket);

/* Append x-amz-copy-source: `/bucket/key` encoded once, `?versionId=` when version_id is not empty.
 */
void xf_uri_copy_source(struct xf_buf *out,
                        struct xf_str bucket,
                        struct xf_str key,
                        struct xf_str version_id);

#endif
