/* copy.c - CopyObject and UploadPartCopy. */
#include "tests/s3d/copy.h"

#include "common/base/clock.h"
#include "tests/s3d/context.h"
#include "tests/s3d/guards.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <stdio.h>

static bool bad_source(struct s3d_req *r)
{
    s3d_fail(r,
             "InvalidArgument",
             "Copy Source must mention the source bucket and key: sourcebucket/sourcekey");
    return false;
}

bool s3d_copy_source(struct s3d_req *r, struct xf_str *bucket, struct xf_str *key)
{
    struct xf_str v = s3d_http_value(&r->http, "x-amz-copy-source");
    const char *version = v.len == 0 ? NULL : memmem(v.ptr, v.len, "?versionId=", 11);

    if (version != NULL) {
        struct xf_str id = xf_str_sub(v, (size_t)(version - v.ptr) + 11, v.len);
        v = xf_str_sub(v, 0, (size_t)(version - v.ptr));
        if (!xf_str_eq_c(id, "null")) {
            s3d_fail(r, "InvalidArgument", "Invalid version id specified");
            return false;
        }
    }
    if (v.len > 0 && v.ptr[0] == '/') {
        v = xf_str_sub(v, 1, v.len);
    }
    if (!r->act.literal_copy_source) {
        v = s3d_decode(&r->dec, v, true);
    }
    size_t slash = xf_str_find(v, '/', 0);
    if (slash == SIZE_MAX || slash == 0 || slash + 1 == v.len) {
        return bad_source(r);
    }
    *bucket = xf_str_sub(v, 0, slash);
    *key = xf_str_sub(v, slash + 1, v.len);
    return true;
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

static bool source_conditions(struct s3d_req *r, const struct s3d_obj *o)
{
    static const char prefix[] = "x-amz-copy-source-if-";
    struct xf_str v;
    int64_t ms;
    int64_t mtime = (int64_t)o->mtime_s * 1000;
    char name[64];
    bool matched = false;

    (void)snprintf(name, sizeof(name), "%smatch", prefix);
    if (s3d_req_cond(r, name, &v)) {
        matched = s3d_etag_matches(o, v);
        if (!matched) {
            precondition(r, name);
            return false;
        }
    }
    (void)snprintf(name, sizeof(name), "%snone-match", prefix);
    if (s3d_req_cond(r, name, &v) && s3d_etag_matches(o, v)) {
        precondition(r, name);
        return false;
    }
    (void)snprintf(name, sizeof(name), "%sunmodified-since", prefix);
    if (!matched && s3d_req_cond(r, name, &v) && xf_time_parse_http(v, &ms) && mtime > ms) {
        precondition(r, name);
        return false;
    }
    (void)snprintf(name, sizeof(name), "%smodified-since", prefix);
    if (s3d_req_cond(r, name, &v) && xf_time_parse_http(v, &ms) && mtime <= ms) {
        precondition(r, name);
        return false;
    }
    return true;
}

/* The source object, checked; false: answered. */
static bool
find_source(struct s3d_req *r, struct s3d_obj *o, struct xf_str *bucket, struct xf_str *key)
{
    if (!s3d_copy_source(r, bucket, key)) {
        return false;
    }
    struct s3d_bucket *b = s3d_store_bucket(r->server->store, *bucket);
    if (b == NULL) {
        s3d_fail(r, "NoSuchBucket", "The specified bucket does not exist");
        return false;
    }
    bool is_paid = s3d_guards_paid(r, b);
    bool found = is_paid && s3d_bucket_get(b, *key, o);
    s3d_bucket_unref(b);
    if (!is_paid) {
        return false;
    }
    if (!found) {
        s3d_fail(r, "NoSuchKey", "The specified key does not exist.");
        return false;
    }
    bool ok = s3d_guards_open(r, o->attrs, true) && source_conditions(r, o);
    if (ok && s3d_attrs_is_archived(o->attrs)) {
        s3d_fail(r,
                 "ObjectNotInActiveTierError",
                 "The source object of the COPY operation is not in the active tier.");
        ok = false;
    }
    if (!ok) {
        s3d_obj_fini(o);
    }
    return ok;
}

static bool directive(struct s3d_req *r, const char *name, bool *replace)
{
    struct xf_str v;

    *replace = false;
    if (!s3d_http_get(&r->http, name, &v) || xf_str_eq_c(v, "COPY")) {
        return true;
    }
    if (xf_str_eq_c(v, "REPLACE")) {
        *replace = true;
        return true;
    }
    s3d_fail(r, "InvalidArgument", "Unknown metadata or tagging directive.");
    return false;
}

struct copied {
    bool new_headers;
    bool new_tags;
    enum s3d_sum_alg want;
};

/* Attributes of the copy into r->obj, made from the source's. */
static bool copy_attrs(struct s3d_req *r, const struct s3d_obj *from, const struct copied *c)
{
    struct s3d_attrs_src a;
    struct s3d_attrs_src fresh = {0};
    struct s3d_fail fail;
    XF_AUTO_BUF headers = {0};
    XF_AUTO_BUF tags = {0};
    S3D_AUTO_GUARDS guards = {0};

    xf_buf_init(&headers, 0);
    xf_buf_init(&tags, 0);
    s3d_attrs_get(from->attrs, &a);
    bool is_guarded = a.acl.len + a.sse.len + a.lock.len > 0 || s3d_guards_asked(&r->http);
    bool plain = !is_guarded && !c->new_headers && !c->new_tags && a.storage_class.len == 0 &&
                 a.redirect.len == 0 && a.sum_alg == c->want && !a.composite && !a.kms &&
                 !r->act.kms && !s3d_http_has(&r->http, "x-amz-storage-class") &&
                 !s3d_http_has(&r->http, "x-amz-website-redirect-location");
    if (plain) {
        r->obj.attrs = s3d_attrs_ref(from->attrs); /* the usual copy: nothing to make */
        return true;
    }
    if (!s3d_guards_take(r, &guards, &a)) {
        return false;
    }
    if (!s3d_attrs_class(&r->http, &fresh, &fail) ||
        (c->new_headers && !s3d_attrs_headers(&r->http, &headers, &fail)) ||
        (c->new_tags &&
         !s3d_attrs_tags(s3d_http_value(&r->http, "x-amz-tagging"), &tags, &fresh.n_tags, &fail))) {
        s3d_fail(r, fail.code, fail.message);
        return false;
    }
    a.storage_class = fresh.storage_class;
    a.redirect = fresh.redirect;
    if (c->new_headers) {
        a.headers = xf_buf_view(&headers);
    }
    if (c->new_tags) {
        a.tags = xf_buf_view(&tags);
        a.n_tags = fresh.n_tags;
    }
    if (a.composite || a.sum_alg != c->want) {
        a.sum = XF_STR_EMPTY; /* set when it is computed */
    }
    a.sum_alg = c->want;
    a.composite = false;
    a.restored = false; /* a restored copy is of the source alone */
    r->obj.attrs = s3d_attrs_new(&a);
    return true;
}

static void put_sum(struct s3d_req *r, struct s3d_obj *o)
{
    uint8_t sum[S3D_SUM_MAX];
    struct s3d_attrs_src a;
    XF_AUTO_BUF b64 = {0};

    xf_buf_init(&b64, 0);
    s3d_attrs_get(o->attrs, &a);
    size_t n = s3d_sum_final(&r->hash.sum, sum);
    xf_buf_put_base64(&b64, sum, n);
    a.sum = xf_buf_view(&b64);
    struct s3d_attrs *fresh = s3d_attrs_new(&a);
    s3d_attrs_unref(o->attrs);
    o->attrs = fresh;
}

static void put_result_sum(struct xf_buf *out, const struct s3d_attrs *a)
{
    char name[32];

    if (a == NULL || a->sum.len == 0) {
        return;
    }
    (void)snprintf(name, sizeof(name), "Checksum%s", s3d_sum_upper(a->sum_alg));
    s3d_xml_tag(out, name, a->sum);
    s3d_xml_tag(
        out, "ChecksumType", a->composite ? XF_STR_LIT("COMPOSITE") : XF_STR_LIT("FULL_OBJECT"));
}

static void store_copy(struct s3d_req *r)
{
    struct s3d_put_cond cond;
    char etag[S3D_ETAG_MAX * 2];
    struct xf_buf *out = &r->resp.body;

    if (!s3d_write_cond(r, &cond)) {
        return;
    }
    s3d_obj_spoil(r, &r->obj);
    if (!s3d_store_object(r, &cond)) {
        return;
    }
    s3d_etag_shown(r, &r->obj, etag);
    s3d_ok(r, 200, true);
    if (r->obj.attrs != NULL) {
        xf_buf_put(&r->resp.headers, r->obj.attrs->sse);
    }
    xf_buf_put_c(out, "<CopyObjectResult" S3D_XML_NS ">");
    s3d_xml_tag_time(out, "LastModified", (int64_t)r->obj.mtime_s * 1000);
    s3d_xml_tag(out, "ETag", xf_str_c(etag));
    put_result_sum(out, r->obj.attrs);
    xf_buf_put_c(out, "</CopyObjectResult>");
}

static void copy_hashed(struct s3d_req *r)
{
    memcpy(r->obj.md5, r->hash.out, S3D_MD5_LEN);
    if (r->hash.sum.alg != S3D_SUM_NONE) {
        put_sum(r, &r->obj);
    }
    store_copy(r);
}

/* What an endpoint does that does not know the header: it stores the empty body. */
static void store_nothing(struct s3d_req *r)
{
    struct s3d_put_cond cond = {0};

    memset(&r->obj, 0, sizeof(r->obj));
    r->obj.u.body = s3d_body_new_mem("", 0);
    r->obj.mtime_s = (uint32_t)(r->wall_ms / 1000);
    s3d_md5("", 0, r->obj.md5);
    r->obj_on = true;
    (void)s3d_store_object(r, &cond); /* no condition that could fail */
    s3d_ok(r, 200, false);
    s3d_etag_header(r, &r->obj);
}

static bool copy_is_allowed(struct s3d_req *r,
                            const struct s3d_obj *from,
                            struct xf_str bucket,
                            struct xf_str key)
{
    bool same = xf_str_eq(bucket, r->bucket) && xf_str_eq(key, r->key);
    struct xf_str v;

    if (from->size > S3D_SINGLE_MAX) {
        s3d_fail(r,
                 "InvalidRequest",
                 "The specified copy source is larger than the maximum allowable size for a copy "
                 "source: "
                 "5368709120");
        return false;
    }
    bool changes =
        (s3d_http_get(&r->http, "x-amz-metadata-directive", &v) && xf_str_eq_c(v, "REPLACE")) ||
        s3d_http_has(&r->http, "x-amz-storage-class") ||
        s3d_http_has(&r->http, "x-amz-website-redirect-location") ||
        s3d_http_has(&r->http, "x-amz-server-side-encryption");
    if (same && !changes) {
        s3d_fail(
            r,
            "InvalidRequest",
            "This copy request is illegal because it is trying to copy an object to itself without "
            "changing the object's metadata, storage class, website redirect location or "
            "encryption "
            "attributes.");
        return false;
    }
    return true;
}

static void copy_from(struct s3d_req *r, const struct s3d_obj *from)
{
    struct copied c = {0};
    struct xf_str v;

    c.want = from->attrs == NULL ? S3D_SUM_NONE : from->attrs->sum_alg;
    if (s3d_http_get(&r->http, "x-amz-checksum-algorithm", &v)) {
        c.want = s3d_sum_by_name(v);
        if (c.want == S3D_SUM_NONE) {
            s3d_fail(r, "InvalidRequest", "Checksum algorithm provided is unsupported.");
            return;
        }
    }
    if (!directive(r, "x-amz-metadata-directive", &c.new_headers) ||
        !directive(r, "x-amz-tagging-directive", &c.new_tags)) {
        return;
    }
    memset(&r->obj, 0, sizeof(r->obj));
    r->obj.size = from->size;
    r->obj.flags = from->flags & S3D_OBJ_GEN;
    r->obj.u = from->u;
    if ((from->flags & S3D_OBJ_GEN) == 0) {
        (void)s3d_body_ref(from->u.body); /* the copy's own */
    }
    r->obj.mtime_s = (uint32_t)(r->wall_ms / 1000);
    memcpy(r->obj.md5, from->md5, S3D_MD5_LEN);
    r->obj_on = true;
    if (!copy_attrs(r, from, &c)) {
        return;
    }
    bool md5_good = from->n_parts == 0 && (from->flags & S3D_OBJ_KMS) == 0;
    bool sum_good = c.want == S3D_SUM_NONE || (r->obj.attrs != NULL && r->obj.attrs->sum.len > 0);
    if (md5_good && sum_good) {
        store_copy(r);
        return;
    }
    struct s3d_body *b = s3d_obj_body(&r->obj);
    s3d_req_hash(r, b, sum_good ? S3D_SUM_NONE : c.want, copy_hashed);
    s3d_body_unref(b);
}

void s3d_copy_object(struct s3d_req *r)
{
    struct s3d_obj from;
    struct xf_str bucket;
    struct xf_str key;

    if (r->act.ignore_copy_source) {
        store_nothing(r);
        return;
    }
    if (!find_source(r, &from, &bucket, &key)) {
        return;
    }
    if (copy_is_allowed(r, &from, bucket, key)) {
        copy_from(r, &from);
    }
    s3d_obj_fini(&from);
}

/* ---- part copy ---- */

bool s3d_copy_range(struct s3d_req *r, uint64_t size, uint64_t *off, uint64_t *len)
{
    struct xf_str v;
    uint64_t a;
    uint64_t b;

    *off = 0;
    *len = size;
    if (!s3d_http_get(&r->http, "x-amz-copy-source-range", &v)) {
        if (size > S3D_SINGLE_MAX) {
            s3d_fail(r,
                     "InvalidRequest",
                     "The specified copy source is larger than the maximum allowable size for a "
                     "copy source: "
                     "5368709120");
            return false;
        }
        return true;
    }
    size_t dash = xf_str_find(v, '-', 0);
    if (!xf_str_starts(v, XF_STR_LIT("bytes=")) || dash == SIZE_MAX ||
        !xf_str_u64(xf_str_sub(v, 6, dash), &a) ||
        !xf_str_u64(xf_str_sub(v, dash + 1, v.len), &b) || a > b) {
        s3d_fail(r,
                 "InvalidArgument",
                 "The x-amz-copy-source-range value must be of the form bytes=first-last where "
                 "first and last "
                 "are the zero-based offsets of the first and last bytes to copy");
        return false;
    }
    if (b >= size) {
        s3d_fail(
            r, "InvalidArgument", "Range specified is not valid for source object of this size");
        return false;
    }
    *off = a;
    *len = b - a + 1;
    if (*len > S3D_SINGLE_MAX) {
        s3d_fail(
            r, "InvalidRequest", "The specified copy range is larger than the maximum: 5368709120");
        return false;
    }
    return true;
}

static void part_answer(struct s3d_req *r)
{
    size_t part_no;
    struct xf_str upload_id;
    struct xf_buf *out = &r->resp.body;
    struct s3d_obj shown = {0};
    char etag[S3D_ETAG_MAX * 2];

    memcpy(r->part.md5, r->hash.out, S3D_MD5_LEN);
    if (r->hash.sum.alg != S3D_SUM_NONE) {
        (void)s3d_sum_final(&r->hash.sum, r->part.sum);
    }
    if (!s3d_part_params(r, &part_no, &upload_id) || !s3d_store_part(r, part_no, upload_id)) {
        return;
    }
    memcpy(shown.md5, r->part.md5, S3D_MD5_LEN); /* another one when encrypted */
    s3d_etag_shown(r, &shown, etag);
    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<CopyPartResult" S3D_XML_NS ">");
    s3d_xml_tag_time(out, "LastModified", r->wall_ms);
    s3d_xml_tag(out, "ETag", xf_str_c(etag));
    if (r->hash.sum.alg != S3D_SUM_NONE) {
        char name[32];
        XF_AUTO_BUF b64 = {0};
        xf_buf_init(&b64, 0);
        xf_buf_put_base64(&b64, r->part.sum, s3d_sum_len(r->hash.sum.alg));
        (void)snprintf(name, sizeof(name), "Checksum%s", s3d_sum_upper(r->hash.sum.alg));
        s3d_xml_tag(out, name, xf_buf_view(&b64));
    }
    xf_buf_put_c(out, "</CopyPartResult>");
}

/* UploadPartCopy of an endpoint that does not know the header: a part of no bytes, and no result.
 */
static void empty_part(struct s3d_req *r, size_t part_no, struct xf_str upload_id)
{
    struct s3d_obj shown = {0};

    r->part = (struct s3d_part){.body = s3d_body_new_mem("", 0), .mtime_ms = r->wall_ms};
    r->part_on = true;
    s3d_md5("", 0, r->part.md5);
    if (!s3d_store_part(r, part_no, upload_id)) {
        return;
    }
    memcpy(shown.md5, r->part.md5, S3D_MD5_LEN); /* likewise */
    s3d_ok(r, 200, false);
    s3d_etag_header(r, &shown);
}

static bool upload_exists(struct s3d_req *r, struct xf_str upload_id, enum s3d_sum_alg *alg)
{
    XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
    const struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, false);
    *alg = u == NULL ? S3D_SUM_NONE : u->sum_alg;
    XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
    if (u == NULL) {
        s3d_fail(r, "NoSuchUpload", "The specified upload does not exist.");
    }
    return u != NULL;
}

void s3d_copy_part(struct s3d_req *r)
{
    struct s3d_obj from;
    struct xf_str bucket;
    struct xf_str key;
    struct xf_str upload_id;
    enum s3d_sum_alg alg;
    uint64_t off;
    uint64_t len;
    size_t part_no;

    if (!s3d_part_params(r, &part_no, &upload_id) || !upload_exists(r, upload_id, &alg)) {
        return;
    }
    if (r->act.ignore_copy_source) {
        empty_part(r, part_no, upload_id);
        return;
    }
    if (!find_source(r, &from, &bucket, &key)) {
        return;
    }
    if (s3d_copy_range(r, from.size, &off, &len)) {
        struct s3d_body *whole = s3d_obj_body(&from);
        r->part = (struct s3d_part){
            .body = s3d_body_slice(whole, off, len), .size = len, .mtime_ms = r->wall_ms};
        r->part_on = true;
        s3d_body_unref(whole);
        if (len == from.size && from.n_parts == 0 && (from.flags & S3D_OBJ_KMS) == 0) {
            s3d_body_md5_set(r->part.body, from.md5);
        }
        s3d_req_hash(r, r->part.body, alg, part_answer);
    }
    s3d_obj_fini(&from);
}
