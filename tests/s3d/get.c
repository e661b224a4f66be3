/* get.c - GetObject, HeadObject, DeleteObject and object tags. */
#include "common/base/clock.h"
#include "tests/s3d/guards.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

static void no_such_key(struct s3d_req *r)
{
    s3d_fail(r, "NoSuchKey", "The specified key does not exist.");
}

static void precondition(struct s3d_req *r, const char *name)
{
    XF_AUTO_BUF extra = {0};

    xf_buf_init(&extra, 0);
    s3d_xml_tag(&extra, "Condition", xf_str_c(name));
    s3d_fail_extra(r,
                   "PreconditionFailed",
                   "At least one of the pre-conditions you specified did not hold",
                   xf_buf_view(&extra));
}

static bool time_header(struct s3d_req *r, const char *name, int64_t *ms)
{
    struct xf_str v;

    return s3d_req_cond(r, name, &v) && xf_time_parse_http(v, ms);
}

/* RFC 9110's order of conditions, as S3 has it. False: answered. */
static bool read_conditions(struct s3d_req *r, const struct s3d_obj *o)
{
    struct xf_str v;
    int64_t ms;
    int64_t mtime = (int64_t)o->mtime_s * 1000;
    bool matched = false;

    if (s3d_req_cond(r, "If-Match", &v)) {
        matched = s3d_etag_matches(o, v);
        if (!matched) {
            precondition(r, "If-Match");
            return false;
        }
    }
    if (!matched && time_header(r, "If-Unmodified-Since", &ms) && mtime > ms) {
        precondition(r, "If-Unmodified-Since");
        return false;
    }
    bool none = s3d_req_cond(r, "If-None-Match", &v);
    bool same = none && s3d_etag_matches(o, v);
    if (same || (!none && time_header(r, "If-Modified-Since", &ms) && mtime <= ms)) {
        s3d_ok(r, 304, false);
        s3d_etag_header(r, o);
        return false;
    }
    return true;
}

struct range {
    bool on;
    uint64_t off;
    uint64_t len;
};

/* "bytes=a-b", "a-", "-n"; anything else is ignored, as S3 does. False: it cannot be satisfied. */
static bool parse_range(struct xf_str v, uint64_t size, struct range *out)
{
    uint64_t a = 0;
    uint64_t b = UINT64_MAX;

    out->on = false;
    if (!xf_str_starts(v, XF_STR_LIT("bytes="))) {
        return true;
    }
    v = xf_str_sub(v, 6, v.len);
    size_t dash = xf_str_find(v, '-', 0);
    struct xf_str first = xf_str_sub(v, 0, dash);
    struct xf_str last = dash == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(v, dash + 1, v.len);
    if (dash == SIZE_MAX || (first.len == 0 && last.len == 0) ||
        (first.len > 0 && !xf_str_u64(first, &a)) || (last.len > 0 && !xf_str_u64(last, &b)) ||
        (first.len > 0 && b < a)) {
        return true;
    }
    out->on = true;
    if (first.len == 0) {
        out->len = b < size ? b : size;
        out->off = size - out->len;
        return out->len > 0;
    }
    if (a >= size) {
        return false;
    }
    out->off = a;
    out->len = b >= size ? size - a : b - a + 1;
    return true;
}

static bool
part_range(struct s3d_req *r, const struct s3d_obj *o, struct xf_str number, struct range *out)
{
    uint64_t n;

    if (!xf_str_u64(number, &n) || n < 1 || n > S3D_PARTS_MAX) {
        s3d_fail(
            r, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive");
        return false;
    }
    if (s3d_http_has(&r->http, "range")) {
        s3d_fail(
            r, "InvalidRequest", "Cannot specify both Range header and partNumber query parameter");
        return false;
    }
    out->on = true;
    out->off = 0;
    out->len = o->size;
    if (o->n_parts == 0 && n == 1) {
        return true;
    }
    struct s3d_body *b = s3d_obj_body(o);
    bool ok = o->n_parts > 0 && s3d_body_part(b, (size_t)n, &out->off, &out->len);
    s3d_body_unref(b);
    if (!ok) {
        XF_AUTO_BUF extra = {0};
        xf_buf_init(&extra, 0);
        s3d_xml_tag_u64(&extra, "ActualPartCount", o->n_parts == 0 ? 1 : o->n_parts);
        s3d_fail_extra(r,
                       "InvalidPartNumber",
                       "The requested partnumber is not satisfiable",
                       xf_buf_view(&extra));
        return false;
    }
    if (o->n_parts > 0) {
        xf_buf_putf(&r->resp.headers, "x-amz-mp-parts-count: %u\r\n", (unsigned)o->n_parts);
    }
    return true;
}

static void put_attrs(struct s3d_req *r, const struct s3d_obj *o, bool with_sum)
{
    struct s3d_attrs_src a;
    struct xf_buf *h = &r->resp.headers;
    char text[XF_TIME_TEXT_MAX];

    s3d_attrs_get(o->attrs, &a);
    xf_time_http((int64_t)o->mtime_s * 1000, text);
    xf_buf_put_c(h, "Last-Modified: ");
    xf_buf_put_c(h, text);
    xf_buf_put_c(h, "\r\nAccept-Ranges: bytes\r\n");
    s3d_etag_header(r, o);
    xf_buf_put(h, a.headers);
    if (a.storage_class.len > 0) {
        xf_buf_putf(h, "x-amz-storage-class: %.*s\r\n", XF_STR_ARG(a.storage_class));
    }
    if (a.restored) {
        xf_buf_put_c(h,
                     "x-amz-restore: ongoing-request=\"false\", "
                     "expiry-date=\"Fri, 21 Dec 2035 00:00:00 GMT\"\r\n");
    }
    if (a.redirect.len > 0) {
        xf_buf_putf(h, "x-amz-website-redirect-location: %.*s\r\n", XF_STR_ARG(a.redirect));
    }
    xf_buf_put(h, a.lock);
    if (a.n_tags > 0) {
        xf_buf_putf(h, "x-amz-tagging-count: %zu\r\n", a.n_tags);
    }
    if (with_sum && a.sum.len > 0) {
        xf_buf_putf(h, "x-amz-checksum-%s: %.*s\r\n", s3d_sum_name(a.sum_alg), XF_STR_ARG(a.sum));
        xf_buf_putf(h, "x-amz-checksum-type: %s\r\n", a.composite ? "COMPOSITE" : "FULL_OBJECT");
    }
}

static bool find_range(struct s3d_req *r, const struct s3d_obj *o, struct range *range)
{
    struct xf_str v;
    XF_AUTO_BUF extra = {0};

    range->on = false;
    if (s3d_req_query(r, "partNumber", &v)) {
        return part_range(r, o, v, range);
    }
    if (!s3d_http_get(&r->http, "range", &v) || parse_range(v, o->size, range)) {
        return true;
    }
    xf_buf_init(&extra, 0);
    s3d_xml_tag(&extra, "RangeRequested", v);
    s3d_xml_tag_u64(&extra, "ActualObjectSize", o->size);
    s3d_fail_extra(
        r, "InvalidRange", "The requested range is not satisfiable", xf_buf_view(&extra));
    return false;
}

static void answer_object(struct s3d_req *r, const struct s3d_obj *o)
{
    struct range range = {.on = false};
    uint64_t size = o->size;

    if (!s3d_guards_open(r, o->attrs, false) || !read_conditions(r, o)) {
        return;
    }
    if (r->op == S3D_OP_GET && s3d_attrs_is_archived(o->attrs)) {
        s3d_fail(
            r, "InvalidObjectState", "The operation is not valid for the object's storage class");
        return;
    }
    if (!find_range(r, o, &range)) {
        return;
    }
    if (!range.on) {
        range.off = 0;
        range.len = o->size;
    }
    s3d_ok(r, range.on ? 206 : 200, false);
    if (r->act.head_size != S3D_UNSET && r->op == S3D_OP_HEAD) {
        size = (uint64_t)r->act.head_size;
        range.len = range.on ? range.len : size;
    }
    if (range.on && range.len > 0) {
        xf_buf_putf(&r->resp.headers,
                    "Content-Range: bytes %llu-%llu/%llu\r\n",
                    (unsigned long long)range.off,
                    (unsigned long long)(range.off + range.len - 1),
                    (unsigned long long)size);
    }
    put_attrs(r,
              o,
              !range.on && xf_str_eq_nocase(s3d_http_value(&r->http, "x-amz-checksum-mode"),
                                            XF_STR_LIT("ENABLED")));
    if (r->op == S3D_OP_HEAD) {
        r->resp.has_length = true;
        r->resp.length = range.len;
        return;
    }
    r->resp.data = s3d_obj_body(o);
    r->resp.data_off = range.off;
    r->resp.data_len = range.len;
}

void s3d_get_object(struct s3d_req *r)
{
    struct s3d_obj o;

    if (!s3d_bucket_get(r->b, r->key, &o)) {
        no_such_key(r);
        return;
    }
    answer_object(r, &o);
    s3d_obj_fini(&o);
}

void s3d_delete_object(struct s3d_req *r)
{
    struct xf_str v;
    struct s3d_obj o;

    if (s3d_req_cond(r, "If-Match", &v) && s3d_bucket_get(r->b, r->key, &o)) {
        bool ok = s3d_etag_matches(&o, v);
        s3d_obj_fini(&o);
        if (!ok) {
            precondition(r, "If-Match");
            return;
        }
    }
    (void)s3d_bucket_delete(r->b, r->key); /* an absent key is fine, too */
    s3d_ok(r, 204, false);
}

/* ---- tags ---- */

void s3d_get_tags(struct s3d_req *r)
{
    struct s3d_obj o;
    struct s3d_attrs_src a;
    struct xf_str part;
    struct xf_buf *out = &r->resp.body;
    XF_AUTO_BUF text = {0};

    if (!s3d_bucket_get(r->b, r->key, &o)) {
        no_such_key(r);
        return;
    }
    xf_buf_init(&text, 0);
    s3d_attrs_get(o.attrs, &a);
    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<Tagging" S3D_XML_NS "><TagSet>");
    while (xf_str_cut(&a.tags, '&', &part)) {
        size_t eq = xf_str_find(part, '=', 0);
        xf_buf_put_c(out, "<Tag>");
        xf_buf_reset(&text);
        (void)xf_buf_put_unpercent(&text, xf_str_sub(part, 0, eq), false); /* our own encoding */
        s3d_xml_tag(out, "Key", xf_buf_view(&text));
        xf_buf_reset(&text);
        (void)xf_buf_put_unpercent(&text, xf_str_sub(part, eq + 1, part.len), false);
        s3d_xml_tag(out, "Value", xf_buf_view(&text));
        xf_buf_put_c(out, "</Tag>");
    }
    xf_buf_put_c(out, "</TagSet></Tagging>");
    s3d_obj_fini(&o);
}

/* Give the object other tags. */
static void set_tags(struct s3d_req *r, struct xf_str tags, size_t n, int status)
{
    struct s3d_obj o;
    struct s3d_attrs_src a;

    if (!s3d_bucket_get(r->b, r->key, &o)) {
        no_such_key(r);
        return;
    }
    s3d_attrs_get(o.attrs, &a);
    a.tags = tags;
    a.n_tags = n;
    bool there = s3d_bucket_set_attrs(r->b, r->key, s3d_attrs_new(&a));
    s3d_obj_fini(&o);
    if (!there) {
        no_such_key(r);
        return;
    }
    s3d_ok(r, status, false);
}

void s3d_put_tags(struct s3d_req *r)
{
    struct s3d_xml_doc doc;
    struct s3d_fail fail = {0};
    size_t n = 0;
    bool ok = true;
    XF_AUTO_BUF tags = {0};

    xf_buf_init(&tags, 0);
    if (!s3d_xml_parse(S3D_XML_TAGGING, xf_buf_view(&r->small), &doc)) {
        s3d_xml_doc_fini(&doc);
        s3d_fail(r, "MalformedXML", "The XML you provided was not well-formed");
        return;
    }
    for (size_t i = 0; ok && i < doc.n_pairs; i++) {
        ok = s3d_attrs_tag_add(&tags, &n, doc.pairs[i].key, doc.pairs[i].value, &fail);
    }
    s3d_xml_doc_fini(&doc);
    if (!ok) {
        s3d_fail(r, fail.code, fail.message);
        return;
    }
    set_tags(r, xf_buf_view(&tags), n, 200);
}

void s3d_delete_tags(struct s3d_req *r)
{
    set_tags(r, XF_STR_EMPTY, 0, 204);
}
