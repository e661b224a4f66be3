/*
 * attrs.c - headers to attributes, copies, tag sets.
 */
#include "common/s3/attrs.h"

#include "common/s3/http.h"

#define META_PREFIX "x-amz-meta-"

struct row {
    const char *name;
    size_t offset; /* of the xf_str in struct xf_s3_attrs */
};

/* The first of them are written, too. */
enum { WRITTEN_ROWS = 7 };
static const struct row rows[] = {
    {"content-type", offsetof(struct xf_s3_attrs, content_type)},
    {"cache-control", offsetof(struct xf_s3_attrs, cache_control)},
    {"content-disposition", offsetof(struct xf_s3_attrs, content_disposition)},
    {"content-encoding", offsetof(struct xf_s3_attrs, content_encoding)},
    {"content-language", offsetof(struct xf_s3_attrs, content_language)},
    {"expires", offsetof(struct xf_s3_attrs, expires)},
    {"x-amz-website-redirect-location", offsetof(struct xf_s3_attrs, website_redirect)},
    {"x-amz-storage-class", offsetof(struct xf_s3_attrs, storage_class)},
    {"x-amz-archive-status", offsetof(struct xf_s3_attrs, archive_status)},
    {"x-amz-restore", offsetof(struct xf_s3_attrs, restore)},
    {"x-amz-server-side-encryption", offsetof(struct xf_s3_attrs, sse)},
    {"x-amz-server-side-encryption-customer-algorithm", offsetof(struct xf_s3_attrs, sse_customer)},
    {"x-amz-replication-status", offsetof(struct xf_s3_attrs, replication)},
    {"x-amz-object-lock-mode", offsetof(struct xf_s3_attrs, lock_mode)},
    {"x-amz-object-lock-retain-until-date", offsetof(struct xf_s3_attrs, lock_until)},
    {"x-amz-object-lock-legal-hold", offsetof(struct xf_s3_attrs, legal_hold)},
};

static struct xf_str *field(struct xf_s3_attrs *a, const struct row *row)
{
    return (struct xf_str *)(void *)((char *)a + row->offset);
}

/* Take `aws-chunked` out of a Content-Encoding: it tells of an upload's framing, not of the object.
 * What stays must be one piece of the text; the token stands at an end whoever wrote it. */
static void strip_chunked(struct xf_s3_attrs *a)
{
    static const struct xf_str token = {"aws-chunked", 11};
    struct xf_str rest = xf_str_trim(a->content_encoding);
    bool changed = true;

    while (changed) {
        size_t comma = xf_str_find(rest, ',', 0);
        struct xf_str first = xf_str_trim(xf_str_sub(rest, 0, comma));
        size_t last_comma = rest.len;

        changed = false;
        if (xf_str_eq_nocase(first, token)) {
            rest = xf_str_trim(comma == SIZE_MAX ? XF_STR_EMPTY
                                                 : xf_str_sub(rest, comma + 1, rest.len));
            changed = true;
            a->was_aws_chunked = true;
            continue;
        }
        while (last_comma > 0 && rest.ptr[last_comma - 1] != ',') {
            last_comma--;
        }
        if (last_comma > 0 &&
            xf_str_eq_nocase(xf_str_trim(xf_str_sub(rest, last_comma, rest.len)), token)) {
            rest = xf_str_trim(xf_str_sub(rest, 0, last_comma - 1));
            changed = true;
            a->was_aws_chunked = true;
        }
    }
    a->content_encoding = rest;
}

static uint32_t small_number(struct xf_str text)
{
    uint64_t n = 0;

    return xf_str_u64(text, &n) && n <= UINT32_MAX ? (uint32_t)n : 0;
}

static void read_one(struct xf_s3_attrs *a, const struct xf_http_header *h)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        if (xf_str_eq_c(h->name, rows[i].name)) {
            *field(a, &rows[i]) = h->value;
            return;
        }
    }
    if (xf_str_eq_c(h->name, "x-amz-tagging-count")) {
        a->tag_count = small_number(h->value);
        a->has_tag_count = true;
    } else if (xf_str_eq_c(h->name, "x-amz-missing-meta")) {
        a->missing_meta = small_number(h->value);
    }
}

void xf_s3_attrs_read(struct xf_s3_attrs *out,
                      const struct xf_http_head *head,
                      struct xf_s3_meta meta[XF_S3_META_MAX])
{
    static const struct xf_str prefix = {META_PREFIX, sizeof(META_PREFIX) - 1};

    *out = (struct xf_s3_attrs){.meta = meta};
    for (size_t i = 0; i < head->n_headers; i++) {
        const struct xf_http_header *h = &head->headers[i];

        if (!xf_str_starts(h->name, prefix)) {
            read_one(out, h);
        } else if (out->n_meta < XF_S3_META_MAX && h->name.len > prefix.len) {
            meta[out->n_meta++] = (struct xf_s3_meta){
                .name = xf_str_sub(h->name, prefix.len, h->name.len),
                .value = h->value,
            };
        }
    }
    strip_chunked(out);
}

static struct xf_str put(char **at, struct xf_str text)
{
    struct xf_str copy = {*at, text.len};

    if (text.len > 0) {
        memcpy(*at, text.ptr, text.len);
    }
    *at += text.len;
    return copy;
}

struct xf_s3_attrs *xf_s3_attrs_dup(const struct xf_s3_attrs *a)
{
    struct xf_s3_attrs from = *a;
    struct xf_s3_attrs *copy;
    struct xf_s3_meta *meta;
    size_t len = 0;
    char *at;

    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        len = xf_add_size(len, field(&from, &rows[i])->len);
    }
    for (size_t i = 0; i < a->n_meta; i++) {
        len = xf_add_size(len, xf_add_size(a->meta[i].name.len, a->meta[i].value.len));
    }
    len = xf_add_size(len, xf_mul_size(a->n_meta, sizeof(*meta)));
    copy = xf_xmalloc(xf_add_size(sizeof(*copy), len));
    *copy = from;
    meta = (struct xf_s3_meta *)(void *)(copy + 1);
    at = (char *)(meta + a->n_meta);
    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        *field(copy, &rows[i]) = put(&at, *field(&from, &rows[i]));
    }
    for (size_t i = 0; i < a->n_meta; i++) {
        meta[i].name = put(&at, a->meta[i].name);
        meta[i].value = put(&at, a->meta[i].value);
    }
    copy->meta = meta;
    return copy;
}

static bool has_meta(const struct xf_s3_attrs *a, struct xf_str name)
{
    for (size_t i = 0; i < a->n_meta; i++) {
        if (xf_str_eq(a->meta[i].name, name)) {
            return true;
        }
    }
    return false;
}

struct xf_s3_attrs *xf_s3_attrs_dup_with(const struct xf_s3_attrs *attrs,
                                         const struct xf_s3_meta *more)
{
    struct xf_s3_meta meta[XF_S3_META_MAX];
    struct xf_s3_attrs wide = *attrs;

    if (has_meta(attrs, more->name) || attrs->n_meta == XF_S3_META_MAX) {
        return xf_s3_attrs_dup(attrs);
    }
    for (size_t i = 0; i < attrs->n_meta; i++) {
        meta[i] = attrs->meta[i];
    }
    meta[wide.n_meta++] = *more;
    wide.meta = meta;
    return xf_s3_attrs_dup(&wide);
}

void xf_s3_attrs_free(struct xf_s3_attrs *attrs)
{
    xf_xfree(attrs);
}

bool xf_s3_attrs_lack(const struct xf_s3_attrs *got, const struct xf_s3_attrs *want)
{
    struct xf_s3_attrs a = *got;
    struct xf_s3_attrs b = *want;

    for (size_t i = 0; i < WRITTEN_ROWS; i++) {
        if (field(&b, &rows[i])->len > 0 && field(&a, &rows[i])->len == 0) {
            return true;
        }
    }
    for (size_t i = 0; i < want->n_meta; i++) {
        if (!has_meta(got, want->meta[i].name)) {
            return true;
        }
    }
    return false;
}

bool xf_s3_attrs_etag_is_md5(const struct xf_s3_attrs *a)
{
    return a->sse_customer.len == 0 && (a->sse.len == 0 || xf_str_eq_c(a->sse, "AES256"));
}

bool xf_s3_class_may_be_archived(struct xf_str storage_class)
{
    return xf_str_eq_c(storage_class, "GLACIER") || xf_str_eq_c(storage_class, "DEEP_ARCHIVE");
}

bool xf_s3_attrs_is_archived(const struct xf_s3_attrs *a)
{
    static const char done[] = "ongoing-request=\"false\"";
    bool is_restored = false;

    for (size_t i = 0; i + sizeof(done) - 1 <= a->restore.len; i++) {
        is_restored = is_restored || memcmp(a->restore.ptr + i, done, sizeof(done) - 1) == 0;
    }
    return (xf_s3_class_may_be_archived(a->storage_class) || a->archive_status.len > 0) &&
           !is_restored;
}

void xf_s3_tags_encode(struct xf_buf *out, const struct xf_xml_pair *tags, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (i > 0) {
            xf_buf_put_byte(out, '&');
        }
        xf_buf_put_percent(out, tags[i].key, false);
        xf_buf_put_byte(out, '=');
        xf_buf_put_percent(out, tags[i].value, false);
    }
}
