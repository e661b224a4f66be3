/*
 * sigv4.h - AWS Signature Version 4, S3 flavour and the plain one.
 *
 * A signer holds the OpenSSL objects (fetched once) and a small cache of signing keys by (secret,
 * date, region, service). Signing is a pure function of its inputs; the caller gives the time. The
 * path is signed as given: encode it with uri.h first and send the same bytes. Threads: one owner
 * per signer.
 */
#ifndef XF_S3_SIGV4_H
#define XF_S3_SIGV4_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stddef.h>
#include <stdint.h>

struct xf_creds;
struct xf_sigv4;

#define XF_SIGV4_HEX_LEN        64
#define XF_SIGV4_DATE_LEN       16                 /* YYYYMMDDTHHMMSSZ, from xf_time_amz() */
#define XF_SIGV4_CHUNK_OVERHEAD (16 + 17 + 64 + 4) /* at most, of one signed chunk */

/* Literals for x-amz-content-sha256; otherwise it is the hex SHA-256 of the body. */
#define XF_SIGV4_EMPTY_SHA256 "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
#define XF_SIGV4_UNSIGNED     "UNSIGNED-PAYLOAD"
#define XF_SIGV4_STREAMING    "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"

struct xf_sigv4_pair {
    struct xf_str name;  /* headers: lower case. Queries: raw bytes, not encoded */
    struct xf_str value; /* as sent. Queries: raw bytes, not encoded */
};

struct xf_sigv4_req {
    struct xf_str method;
    struct xf_str path; /* encoded, as sent; empty is "/" */
    const struct xf_sigv4_pair *query;
    size_t n_query;
    const struct xf_sigv4_pair
        *headers; /* all that are to be signed, host and x-amz-date among them; any order */
    size_t n_headers;
    struct xf_str payload; /* hex hash or one of the literals above */
    struct xf_str region;
    struct xf_str service; /* "s3", "sts", ... */
    char date[XF_SIGV4_DATE_LEN + 1];
};

struct xf_sigv4 *xf_sigv4_new(void);
void xf_sigv4_free(struct xf_sigv4 *signer);
XF_AUTO_DEFINE(xf_sigv4, xf_sigv4_free)

/* Append `a=b&c=` encoded and sorted as the signature wants it; send exactly this. */
void xf_sigv4_query(struct xf_buf *out, const struct xf_sigv4_pair *query, size_t n);

/* More than the header's value. */
struct xf_sigv4_extra {
    char signature[XF_SIGV4_HEX_LEN + 1]; /* set: the seed of signed chunks */
    struct xf_buf *canonical; /* not NULL: replaced by the canonical request, to compare */
};

/* Sign. Replaces `authorization` by the header's value; extra may be NULL. */
enum xf_code xf_sigv4_sign(struct xf_sigv4 *signer,
                           const struct xf_creds *creds,
                           const struct xf_sigv4_req *req,
                           struct xf_buf *authorization,
                           struct xf_sigv4_extra *extra,
                           struct xf_err *err);

/**
 * Sign a URL: appends the whole query (X-Amz-* and the request's own, X-Amz-Signature last) to
 * `query`. The headers of `req` are those that the client will have to send; usually host only.
 */
enum xf_code xf_sigv4_presign(struct xf_sigv4 *signer,
                              const struct xf_creds *creds,
                              const struct xf_sigv4_req *req,
                              unsigned expires_s,
                              struct xf_buf *query,
                              struct xf_err *err);

/* Hex SHA-256 of bytes. */
enum xf_code xf_sigv4_sha256(struct xf_sigv4 *signer,
                             struct xf_str bytes,
                             char out[XF_SIGV4_HEX_LEN + 1],
                             struct xf_err *err);

/* ---- signed chunks (aws-chunked) ---- */

struct xf_sigv4_chunks {
    char prev[XF_SIGV4_HEX_LEN + 1]; /* the signature before; starts as the request's */
    char date[XF_SIGV4_DATE_LEN + 1];
    unsigned char key[32]; /* the signing key; wiped by fini */
    char scope[128];       /* date/region/service/aws4_request */
};

enum xf_code xf_sigv4_chunks_init(struct xf_sigv4_chunks *chunks,
                                  struct xf_sigv4 *signer,
                                  const struct xf_creds *creds,
                                  const struct xf_sigv4_req *req,
                                  const char *seed,
                                  struct xf_err *err);
void xf_sigv4_chunks_fini(struct xf_sigv4_chunks *chunks);

/* Append the head of a chunk, `<hex>;chunk-signature=<64 hex>\r\n`; the data and \r\n follow. Empty
 * data ends. */
enum xf_code xf_sigv4_chunk(struct xf_sigv4_chunks *chunks,
                            struct xf_sigv4 *signer,
                            struct xf_str data,
                            struct xf_buf *out,
                            struct xf_err *err);

/* The signature of a trailer, `name:value` lines each ended by LF; for the -TRAILER payload mode.
 */
enum xf_code xf_sigv4_trailer(struct xf_sigv4_chunks *chunks,
                              struct xf_sigv4 *signer,
                              struct xf_str lines,
                              char out[XF_SIGV4_HEX_LEN + 1],
                              struct xf_err *err);

/* Bytes on the wire of `size` bytes in signed chunks of `chunk` bytes, the last frame included. */
uint64_t xf_sigv4_chunked_size(uint64_t size, uint64_t chunk);

#endif
