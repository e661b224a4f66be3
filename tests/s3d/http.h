/*
 * http.h - the head of an HTTP/1.1 request, as views into the bytes received.
 *
 * Nothing is normalised: the target stays as it came, since it is what was signed.
 */
#ifndef XF_TESTS_S3D_HTTP_H
#define XF_TESTS_S3D_HTTP_H

#include "common/base/str.h"

enum { S3D_HTTP_HEAD_MAX = 64 * 1024, S3D_HTTP_HEADERS_MAX = 128, S3D_QUERY_MAX = 32 };

enum s3d_method { S3D_GET, S3D_HEAD, S3D_PUT, S3D_POST, S3D_DELETE, S3D_OTHER };

struct s3d_header {
    struct xf_str name;
    struct xf_str value; /* trimmed */
};

struct s3d_param {
    struct xf_str name; /* decoded */
    struct xf_str value;
};

struct s3d_http {
    enum s3d_method method;
    struct xf_str method_text;
    struct xf_str target;
    struct xf_str path;  /* raw, up to '?' */
    struct xf_str query; /* raw, after '?' */
    struct s3d_header headers[S3D_HTTP_HEADERS_MAX];
    size_t n_headers;
    bool keep_alive;
    bool has_length;
    bool chunked;
    bool expect_continue;
    uint64_t content_length;
};

enum s3d_http_result {
    S3D_HTTP_MORE, /* the head is not complete */
    S3D_HTTP_OK,
    S3D_HTTP_BAD
};

/** Parse the head at the start of buf; *head_len is its length with the empty line, *why what was
 * wrong. */
enum s3d_http_result
s3d_http_parse(struct s3d_http *h, const char *buf, size_t len, size_t *head_len, const char **why);
/** First header of that name (any case); false when there is none. */
bool s3d_http_get(const struct s3d_http *h, const char *name, struct xf_str *value);
/** The value, or empty. */
struct xf_str s3d_http_value(const struct s3d_http *h, const char *name);
bool s3d_http_has(const struct s3d_http *h, const char *name);

/**
 * Decode s by percent rules into `dec`, which must have the room already (s.len bytes), so that
 * earlier views stay valid. A bad escape is taken literally.
 */
struct xf_str s3d_decode(struct xf_buf *dec, struct xf_str s, bool plus_is_space);
/** Split a raw query; false when there are more than S3D_QUERY_MAX. */
bool s3d_query_parse(struct xf_str query, struct xf_buf *dec, struct s3d_param *params, size_t *n);
bool s3d_query_get(const struct s3d_param *params,
                   size_t n,
                   const char *name,
                   struct xf_str *value);

#endif
