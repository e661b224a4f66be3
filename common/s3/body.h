/* body.h - where a request's bytes come from, and where those of a GET go. See client.h. */
#ifndef XF_S3_BODY_H
#define XF_S3_BODY_H

#include "common/s3/http.h"
#include "common/s3/result.h"
#include "common/s3/sum.h"

/* Either bytes (borrowed until done), or pull, which streams exactly `size` bytes. */
struct xf_s3_body {
    struct xf_str bytes;
    uint64_t size; /* of pull's stream */
    enum xf_http_flow (*pull)(void *arg, char *buf, size_t cap, size_t *n);
    bool (*rewind)(void *arg); /* NULL or false: the client cannot repeat a failed request */
    void *arg;
    const unsigned char *md5;    /* 16 bytes: Content-MD5 is sent; NULL: not */
    const struct xf_sum *sum;    /* its x-amz-checksum-* is sent; NULL or not known: none */
    const unsigned char *sha256; /* 32 bytes; NULL: computed when signing needs it */
};

/* Where a GET's bytes go, only for a 2xx with the right status, range, size and etag. */
struct xf_s3_sink {
    /* Optional, before the first byte: etag, size and attrs of the result are set. */
    enum xf_http_flow (*on_head)(void *arg, const struct xf_s3_result *head);
    enum xf_http_flow (*on_data)(void *arg, const char *data, size_t len);
    void *arg;
};

#endif
