/* attrs.c - what an object carries beside its bytes. */
#include "tests/s3d/attrs.h"

#include "common/base/err.h"
#include "common/base/mem.h"

#include <stdatomic.h>
#include <stdlib.h>

#define DEFAULT_TYPE "Content-Type: binary/octet-stream\r\n"

static struct xf_str put_view(char **at, struct xf_str s)
{
    char *start = *at;

    if (s.len > 0) {
        memcpy(start, s.ptr, s.len);
    }
    *at += s.len;
    return (struct xf_str){start, s.len};
}

struct s3d_attrs *s3d_attrs_new(const struct s3d_attrs_src *src)
{
    bool plain_headers = src->headers.len == 0 || xf_str_eq_c(src->headers, DEFAULT_TYPE);

    if (plain_headers && src->storage_class.len == 0 && src->redirect.len == 0 &&
        src->tags.len == 0 && src->sum.len == 0 && src->sum_alg == S3D_SUM_NONE && !src->kms &&
        src->acl.len == 0 && src->sse.len == 0 && src->lock.len == 0) {
        return NULL;
    }
    size_t bytes = src->headers.len + src->storage_class.len + src->redirect.len + src->tags.len +
                   src->sum.len + src->acl.len + src->sse.len + src->lock.len +
                   src->customer_md5.len;
    struct s3d_attrs *a = xf_xmalloc(sizeof(*a) + bytes);
    char *at = (char *)(a + 1);
    atomic_init(&a->refs, 1);
    a->headers = put_view(&at, src->headers);
    a->storage_class = put_view(&at, src->storage_class);
    a->redirect = put_view(&at, src->redirect);
    a->tags = put_view(&at, src->tags);
    a->sum = put_view(&at, src->sum);
    a->acl = put_view(&at, src->acl);
    a->sse = put_view(&at, src->sse);
    a->lock = put_view(&at, src->lock);
    a->customer_md5 = put_view(&at, src->customer_md5);
    a->n_tags = src->n_tags;
    a->sum_alg = src->sum_alg;
    a->composite = src->composite;
    a->kms = src->kms;
    a->restored = src->restored;
    return a;
}

struct s3d_attrs *s3d_attrs_ref(struct s3d_attrs *a)
{
    if (a != NULL) {
        atomic_fetch_add_explicit(&a->refs, 1, memory_order_relaxed);
    }
    return a;
}

void s3d_attrs_unref(struct s3d_attrs *a)
{
    if (a != NULL && atomic_fetch_sub_explicit(&a->refs, 1, memory_order_acq_rel) == 1) {
        xf_xfree(a);
    }
}

void s3d_attrs_get(const struct s3d_attrs *a, struct s3d_attrs_src *out)
{
    memset(out, 0, sizeof(*out));
    if (a == NULL) {
        out->headers = XF_STR_LIT(DEFAULT_TYPE);
        return;
    }
    out->headers = a->headers;
    out->storage_class = a->storage_class;
    out->redirect = a->redirect;
    out->tags = a->tags;
    out->n_tags = a->n_tags;
    out->sum_alg = a->sum_alg;
    out->composite = a->composite;
    out->kms = a->kms;
    out->restored = a->restored;
    out->sum = a->sum;
    out->acl = a->acl;
    out->sse = a->sse;
    out->lock = a->lock;
    out->customer_md5 = a->customer_md5;
}

bool s3d_attrs_is_archived(const struct s3d_attrs *a)
{
    return a != NULL && !a->restored &&
           (xf_str_eq_c(a->storage_class, "GLACIER") ||
            xf_str_eq_c(a->storage_class, "DEEP_ARCHIVE"));
}

/* Content-Encoding without the token aws-chunked; true when something is left. */
static bool without_chunked(struct xf_str v, struct xf_buf *out)
{
    struct xf_str token;
    size_t start = out->len;

    while (xf_str_cut(&v, ',', &token)) {
        token = xf_str_trim(token);
        if (token.len == 0 || xf_str_eq_nocase(token, XF_STR_LIT("aws-chunked"))) {
            continue;
        }
        if (out->len > start) {
            xf_buf_put_c(out, ",");
        }
        xf_buf_put(out, token);
    }
    return out->len > start;
}

static void
put_system(const struct s3d_http *h, const char *name, const char *fallback, struct xf_buf *out)
{
    struct xf_str v;

    if (!s3d_http_get(h, name, &v) || v.len == 0) {
        if (fallback == NULL) {
            return;
        }
        v = xf_str_c(fallback);
    }
    size_t start = out->len;
    xf_buf_putf(out, "%s: ", name);
    if (strcmp(name, "Content-Encoding") != 0) {
        xf_buf_put(out, v);
    } else if (!without_chunked(v, out)) {
        out->len = start;
        return;
    }
    xf_buf_put_c(out, "\r\n");
}

bool s3d_attrs_headers(const struct s3d_http *h, struct xf_buf *out, struct s3d_fail *fail)
{
    size_t user = 0;

    put_system(h, "Content-Type", "binary/octet-stream", out);
    put_system(h, "Cache-Control", NULL, out);
    put_system(h, "Content-Disposition", NULL, out);
    put_system(h, "Content-Encoding", NULL, out);
    put_system(h, "Content-Language", NULL, out);
    put_system(h, "Expires", NULL, out);
    for (size_t i = 0; i < h->n_headers; i++) {
        struct xf_str name = h->headers[i].name;
        if (name.len <= 11 ||
            !xf_str_eq_nocase(xf_str_sub(name, 0, 11), XF_STR_LIT("x-amz-meta-"))) {
            continue;
        }
        for (size_t k = 0; k < name.len; k++) {
            char c = name.ptr[k];
            xf_buf_put_byte(out, c >= 'A' && c <= 'Z' ? (char)(c + 32) : c);
        }
        xf_buf_put_c(out, ": ");
        xf_buf_put(out, h->headers[i].value);
        xf_buf_put_c(out, "\r\n");
        user += name.len - 11 + h->headers[i].value.len;
    }
    if (user > S3D_META_MAX) {
        *fail = (struct s3d_fail){"MetadataTooLarge",
                                  "Your metadata headers exceed the maximum allowed metadata size"};
        return false;
    }
    return true;
}

bool s3d_attrs_class(const struct s3d_http *h, struct s3d_attrs_src *src, struct s3d_fail *fail)
{
    static const char *const known[] = {"STANDARD",
                                        "REDUCED_REDUNDANCY",
                                        "STANDARD_IA",
                                        "ONEZONE_IA",
                                        "INTELLIGENT_TIERING",
                                        "GLACIER",
                                        "DEEP_ARCHIVE",
                                        "GLACIER_IR"};
    struct xf_str v;

    src->storage_class = XF_STR_EMPTY;
    src->redirect = s3d_http_value(h, "x-amz-website-redirect-location");
    if (!s3d_http_get(h, "x-amz-storage-class", &v)) {
        return true;
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(known); i++) {
        if (xf_str_eq_c(v, known[i])) {
            src->storage_class = i == 0 ? XF_STR_EMPTY : v;
            return true;
        }
    }
    *fail =
        (struct s3d_fail){"InvalidStorageClass", "The storage class you specified is not valid"};
    return false;
}

static size_t chars(struct xf_str s)
{
    size_t n = 0;

    for (size_t i = 0; i < s.len; i++) {
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    }
    return n;
}

bool s3d_attrs_tag_add(
    struct xf_buf *out, size_t *n, struct xf_str key, struct xf_str value, struct s3d_fail *fail)
{
    if (key.len == 0 || chars(key) > 128) {
        *fail = (struct s3d_fail){"InvalidTag", "The TagKey you have provided is invalid"};
        return false;
    }
    if (chars(value) > 256) {
        *fail = (struct s3d_fail){"InvalidTag", "The TagValue you have provided is invalid"};
        return false;
    }
    if (xf_str_starts(key, XF_STR_LIT("aws:"))) {
        *fail = (struct s3d_fail){"InvalidTag", "System tags cannot be added/updated by requester"};
        return false;
    }
    if (*n == S3D_TAGS_MAX) {
        *fail = (struct s3d_fail){"BadRequest", "Object tags cannot be greater than 10"};
        return false;
    }
    if (*n > 0) {
        xf_buf_put_byte(out, '&');
    }
    xf_buf_put_percent(out, key, false);
    xf_buf_put_byte(out, '=');
    xf_buf_put_percent(out, value, false);
    (*n)++;
    return true;
}

/* Is there a tag of this name (encoded) in the normal form? */
static bool tag_known(struct xf_str tags, struct xf_str key)
{
    struct xf_str part;

    while (xf_str_cut(&tags, '&', &part)) {
        if (xf_str_eq(xf_str_sub(part, 0, xf_str_find(part, '=', 0)), key)) {
            return true;
        }
    }
    return false;
}

bool s3d_attrs_tags(struct xf_str header, struct xf_buf *out, size_t *n, struct s3d_fail *fail)
{
    struct xf_str part;

    *n = 0;
    while (xf_str_cut(&header, '&', &part)) {
        size_t eq = xf_str_find(part, '=', 0);
        XF_AUTO_BUF key = {0};
        XF_AUTO_BUF value = {0};
        XF_AUTO_BUF enc = {0};
        xf_buf_init(&key, 0);
        xf_buf_init(&value, 0);
        xf_buf_init(&enc, 0);
        if (eq == SIZE_MAX || !xf_buf_put_unpercent(&key, xf_str_sub(part, 0, eq), true) ||
            !xf_buf_put_unpercent(&value, xf_str_sub(part, eq + 1, part.len), true)) {
            *fail = (struct s3d_fail){"InvalidArgument",
                                      "The header 'x-amz-tagging' shall be encoded as UTF-8 then "
                                      "URLEncoded URL query parameters"};
            return false;
        }
        xf_buf_put_percent(&enc, xf_buf_view(&key), false);
        if (tag_known(xf_buf_view(out), xf_buf_view(&enc))) {
            *fail = (struct s3d_fail){
                "InvalidArgument", "The header 'x-amz-tagging' shall have no duplicate tag names"};
            return false;
        }
        if (!s3d_attrs_tag_add(out, n, xf_buf_view(&key), xf_buf_view(&value), fail)) {
            return false;
        }
    }
    return true;
}

static int cmp_view(const void *a, const void *b)
{
    return xf_str_cmp(*(const struct xf_str *)a, *(const struct xf_str *)b);
}

static void add_sorted(SHA256_CTX *c, struct xf_str text, char sep)
{
    struct xf_str parts[S3D_HTTP_HEADERS_MAX];
    size_t n = 0;

    while (n < XF_ARRAY_LEN(parts) && xf_str_cut(&text, sep, &parts[n])) {
        n++;
    }
    qsort(parts, n, sizeof(parts[0]), cmp_view);
    for (size_t i = 0; i < n; i++) {
        (void)SHA256_Update(c, parts[i].ptr, parts[i].len);
        (void)SHA256_Update(c, "\n", 1);
    }
    (void)SHA256_Update(c, "\n", 1);
}

void s3d_attrs_digest(const struct s3d_attrs *a, uint8_t out[S3D_SHA256_LEN])
{
    struct s3d_attrs_src s;
    SHA256_CTX c;

    s3d_attrs_get(a, &s);
    (void)SHA256_Init(&c);
    add_sorted(&c, s.headers, '\n');
    add_sorted(&c, s.tags, '&');
    (void)SHA256_Update(&c, s.storage_class.ptr, s.storage_class.len);
    (void)SHA256_Update(&c, "\n", 1);
    (void)SHA256_Update(&c, s.redirect.ptr, s.redirect.len);
    (void)SHA256_Final(out, &c);
}
