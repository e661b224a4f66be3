/* http.c - the head of an HTTP/1.1 request. */
#include "tests/s3d/http.h"

#include "common/base/err.h"

static enum s3d_method method_of(struct xf_str m)
{
    static const char *const names[] = {
        [S3D_GET] = "GET",
        [S3D_HEAD] = "HEAD",
        [S3D_PUT] = "PUT",
        [S3D_POST] = "POST",
        [S3D_DELETE] = "DELETE",
    };

    for (int i = S3D_GET; i < S3D_OTHER; i++) {
        if (xf_str_eq_c(m, names[i])) {
            return (enum s3d_method)i;
        }
    }
    return S3D_OTHER;
}

static bool request_line(struct s3d_http *h, struct xf_str line)
{
    struct xf_str version;

    if (!xf_str_cut(&line, ' ', &h->method_text) || !xf_str_cut(&line, ' ', &h->target)) {
        return false;
    }
    version = line;
    bool v11 = xf_str_eq_c(version, "HTTP/1.1");
    if (!v11 && !xf_str_eq_c(version, "HTTP/1.0")) {
        return false;
    }
    h->keep_alive = v11;
    h->method = method_of(h->method_text);
    if (h->target.len == 0 || h->target.ptr[0] != '/') {
        return false;
    }
    size_t q = xf_str_find(h->target, '?', 0);
    h->path = xf_str_sub(h->target, 0, q);
    h->query = q == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(h->target, q + 1, h->target.len);
    return true;
}

static bool
known_header(struct s3d_http *h, struct xf_str name, struct xf_str value, const char **why)
{
    if (name.len == 14 && xf_str_eq_nocase(name, XF_STR_LIT("content-length"))) {
        uint64_t v;
        if (!xf_str_u64(value, &v) || (h->has_length && v != h->content_length)) {
            *why = "bad Content-Length";
            return false;
        }
        h->has_length = true;
        h->content_length = v;
    } else if (name.len == 17 && xf_str_eq_nocase(name, XF_STR_LIT("transfer-encoding"))) {
        if (!xf_str_eq_nocase(value, XF_STR_LIT("chunked"))) {
            *why = "transfer encoding not supported";
            return false;
        }
        h->chunked = true;
    } else if (name.len == 10 && xf_str_eq_nocase(name, XF_STR_LIT("connection"))) {
        if (xf_str_eq_nocase(value, XF_STR_LIT("close"))) {
            h->keep_alive = false;
        } else if (xf_str_eq_nocase(value, XF_STR_LIT("keep-alive"))) {
            h->keep_alive = true;
        }
    } else if (name.len == 6 && xf_str_eq_nocase(name, XF_STR_LIT("expect"))) {
        h->expect_continue = xf_str_eq_nocase(value, XF_STR_LIT("100-continue"));
    }
    return true;
}

static bool header_line(struct s3d_http *h, struct xf_str line, const char **why)
{
    size_t colon = xf_str_find(line, ':', 0);

    if (colon == SIZE_MAX || colon == 0) {
        *why = "header line without a name";
        return false;
    }
    if (h->n_headers == S3D_HTTP_HEADERS_MAX) {
        *why = "too many headers";
        return false;
    }
    struct s3d_header *d = &h->headers[h->n_headers++];
    d->name = xf_str_sub(line, 0, colon);
    d->value = xf_str_trim(xf_str_sub(line, colon + 1, line.len));
    return known_header(h, d->name, d->value, why);
}

enum s3d_http_result
s3d_http_parse(struct s3d_http *h, const char *buf, size_t len, size_t *head_len, const char **why)
{
    const char *end = len < 4 ? NULL : memmem(buf, len, "\r\n\r\n", 4);

    if (end == NULL) {
        *why = "request head too large";
        return len >= S3D_HTTP_HEAD_MAX ? S3D_HTTP_BAD : S3D_HTTP_MORE;
    }
    *head_len = (size_t)(end - buf) + 4;
    h->n_headers = 0;
    h->has_length = false;
    h->chunked = false;
    h->expect_continue = false;
    h->content_length = 0;
    struct xf_str rest = {buf, (size_t)(end - buf) + 2};
    bool first = true;
    while (rest.len > 0) {
        const char *nl = memchr(rest.ptr, '\n', rest.len);
        XF_ASSERT(nl != NULL); /* rest ends with CR LF */
        struct xf_str line = {rest.ptr, (size_t)(nl - rest.ptr)};
        rest = xf_str_sub(rest, line.len + 1, rest.len);
        if (line.len > 0 && line.ptr[line.len - 1] == '\r') {
            line.len--;
        }
        *why = "bad request line";
        if (first ? !request_line(h, line) : !header_line(h, line, why)) {
            return S3D_HTTP_BAD;
        }
        first = false;
    }
    if (h->chunked && h->has_length) {
        *why = "both Content-Length and chunked";
        return S3D_HTTP_BAD;
    }
    return S3D_HTTP_OK;
}

bool s3d_http_get(const struct s3d_http *h, const char *name, struct xf_str *value)
{
    struct xf_str n = xf_str_c(name);

    for (size_t i = 0; i < h->n_headers; i++) {
        if (h->headers[i].name.len == n.len && xf_str_eq_nocase(h->headers[i].name, n)) {
            *value = h->headers[i].value;
            return true;
        }
    }
    return false;
}

struct xf_str s3d_http_value(const struct s3d_http *h, const char *name)
{
    struct xf_str v = XF_STR_EMPTY;

    return s3d_http_get(h, name, &v) ? v : XF_STR_EMPTY;
}

bool s3d_http_has(const struct s3d_http *h, const char *name)
{
    struct xf_str v;

    return s3d_http_get(h, name, &v);
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

struct xf_str s3d_decode(struct xf_buf *dec, struct xf_str s, bool plus_is_space)
{
    if (s.len == 0) {
        return XF_STR_EMPTY;
    }
    XF_ASSERT(dec->cap - dec->len > s.len); /* reserved by the caller */
    char *start = dec->ptr + dec->len;
    char *w = start;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '+' && plus_is_space) {
            c = ' ';
        } else if (c == '%' && i + 2 < s.len && hex_value(s.ptr[i + 1]) >= 0 &&
                   hex_value(s.ptr[i + 2]) >= 0) {
            c = (char)(hex_value(s.ptr[i + 1]) * 16 + hex_value(s.ptr[i + 2]));
            i += 2;
        }
        *w++ = c;
    }
    dec->len += (size_t)(w - start);
    return (struct xf_str){start, (size_t)(w - start)};
}

bool s3d_query_parse(struct xf_str query, struct xf_buf *dec, struct s3d_param *params, size_t *n)
{
    struct xf_str part;

    *n = 0;
    while (xf_str_cut(&query, '&', &part)) {
        if (part.len == 0) {
            continue;
        }
        if (*n == S3D_QUERY_MAX) {
            return false;
        }
        size_t eq = xf_str_find(part, '=', 0);
        struct s3d_param *p = &params[(*n)++];
        p->name = s3d_decode(dec, xf_str_sub(part, 0, eq), true);
        p->value = eq == SIZE_MAX ? XF_STR_EMPTY
                                  : s3d_decode(dec, xf_str_sub(part, eq + 1, part.len), true);
    }
    return true;
}

bool s3d_query_get(const struct s3d_param *params, size_t n, const char *name, struct xf_str *value)
{
    struct xf_str want = xf_str_c(name);

    for (size_t i = 0; i < n; i++) {
        if (xf_str_eq(params[i].name, want)) {
            *value = params[i].value;
            return true;
        }
    }
    return false;
}
