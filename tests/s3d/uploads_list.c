/* uploads_list.c - ListParts and ListMultipartUploads. */
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <stdio.h>
#include <stdlib.h>

static bool limit_param(struct s3d_req *r, const char *name, uint64_t dflt, uint64_t *out)
{
    struct xf_str v;

    *out = dflt;
    if (!s3d_req_query(r, name, &v) || v.len == 0) {
        return true;
    }
    if (!xf_str_u64(v, out) || *out > INT32_MAX) {
        s3d_fail(r,
                 "InvalidArgument",
                 "Provided limit or marker is not an integer or within integer range");
        return false;
    }
    return true;
}

static void put_part(struct xf_buf *out, const struct s3d_upload *u, size_t i)
{
    const struct s3d_part *p = &u->parts[i];
    struct s3d_obj o = {0};
    char etag[S3D_ETAG_MAX];

    memcpy(o.md5, p->md5, S3D_MD5_LEN);
    s3d_obj_etag(&o, etag);
    xf_buf_put_c(out, "<Part>");
    s3d_xml_tag_u64(out, "PartNumber", i + 1);
    s3d_xml_tag_time(out, "LastModified", p->mtime_ms);
    s3d_xml_tag(out, "ETag", xf_str_c(etag));
    s3d_xml_tag_u64(out, "Size", p->size);
    if (u->sum_alg != S3D_SUM_NONE) {
        char name[32];
        XF_AUTO_BUF b64 = {0};
        xf_buf_init(&b64, 0);
        xf_buf_put_base64(&b64, p->sum, s3d_sum_len(u->sum_alg));
        (void)snprintf(name, sizeof(name), "Checksum%s", s3d_sum_upper(u->sum_alg));
        s3d_xml_tag(out, name, xf_buf_view(&b64));
    }
    xf_buf_put_c(out, "</Part>");
}

static void parts_page(struct s3d_req *r, const struct s3d_upload *u, uint64_t marker, uint64_t max)
{
    struct xf_buf *out = &r->resp.body;
    uint64_t n = 0;
    uint64_t last = marker;
    bool truncated = false;
    XF_AUTO_BUF parts = {0};

    xf_buf_init(&parts, 0);
    for (size_t i = (size_t)marker; i < u->cap_parts; i++) {
        if (u->parts[i].body == NULL) {
            continue;
        }
        if (n == max) {
            truncated = true;
            break;
        }
        put_part(&parts, u, i);
        last = i + 1;
        n++;
    }
    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<ListPartsResult" S3D_XML_NS ">");
    s3d_xml_tag(out, "Bucket", r->bucket);
    s3d_xml_tag(out, "Key", r->key);
    s3d_xml_tag(out, "UploadId", xf_str_c(u->id));
    s3d_xml_tag_u64(out, "PartNumberMarker", marker);
    s3d_xml_tag_u64(out, "NextPartNumberMarker", n == 0 ? 0 : last);
    s3d_xml_tag_u64(out, "MaxParts", max);
    s3d_xml_tag(out, "IsTruncated", truncated ? XF_STR_LIT("true") : XF_STR_LIT("false"));
    xf_buf_put(out, xf_buf_view(&parts));
    if (u->sum_alg != S3D_SUM_NONE) {
        s3d_xml_tag(out, "ChecksumAlgorithm", xf_str_c(s3d_sum_upper(u->sum_alg)));
        s3d_xml_tag(out,
                    "ChecksumType",
                    u->composite ? XF_STR_LIT("COMPOSITE") : XF_STR_LIT("FULL_OBJECT"));
    }
    struct s3d_attrs_src a;
    s3d_attrs_get(u->attrs, &a);
    s3d_xml_tag(
        out, "StorageClass", a.storage_class.len > 0 ? a.storage_class : XF_STR_LIT("STANDARD"));
    xf_buf_put_c(
        out, "<Initiator><ID>s3d</ID></Initiator><Owner><ID>s3d</ID></Owner></ListPartsResult>");
}

void s3d_list_parts(struct s3d_req *r)
{
    struct xf_str upload_id = XF_STR_EMPTY;
    uint64_t marker;
    uint64_t max;

    (void)s3d_req_query(r, "uploadId", &upload_id); /* it made this operation */
    if (!limit_param(r, "part-number-marker", 0, &marker) ||
        !limit_param(r, "max-parts", 1000, &max)) {
        return;
    }
    if (max > 1000) {
        max = 1000;
    }
    XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
    const struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, false);
    if (u != NULL) {
        parts_page(r, u, marker, max);
    }
    XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
    if (u == NULL) {
        s3d_fail(r, "NoSuchUpload", "The specified upload does not exist.");
    }
}

/* ---- ListMultipartUploads ---- */

static int cmp_upload(const void *a, const void *b)
{
    const struct s3d_upload *x = *(const struct s3d_upload *const *)a;
    const struct s3d_upload *y = *(const struct s3d_upload *const *)b;
    int d = xf_str_cmp(xf_str_n(x->key, x->key_len), xf_str_n(y->key, y->key_len));

    if (d != 0) {
        return d;
    }
    return x->order < y->order ? -1 : x->order > y->order;
}

struct uploads_query {
    struct xf_str prefix;
    struct xf_str delimiter;
    struct xf_str key_marker;
    struct xf_str id_marker;
    uint64_t max;
    bool encode;
};

static void
put_text(const struct uploads_query *q, struct xf_buf *out, const char *name, struct xf_str s)
{
    XF_AUTO_BUF enc = {0};

    xf_buf_init(&enc, 0);
    if (q->encode) {
        s3d_list_encode(&enc, s, true);
        s = xf_buf_view(&enc);
    }
    s3d_xml_tag(out, name, s);
}

static void
put_upload(const struct uploads_query *q, struct xf_buf *out, const struct s3d_upload *u)
{
    struct s3d_attrs_src a;

    s3d_attrs_get(u->attrs, &a);
    xf_buf_put_c(out, "<Upload>");
    put_text(q, out, "Key", xf_str_n(u->key, u->key_len));
    s3d_xml_tag(out, "UploadId", xf_str_c(u->id));
    xf_buf_put_c(out, "<Initiator><ID>s3d</ID></Initiator><Owner><ID>s3d</ID></Owner>");
    s3d_xml_tag(
        out, "StorageClass", a.storage_class.len > 0 ? a.storage_class : XF_STR_LIT("STANDARD"));
    s3d_xml_tag_time(out, "Initiated", u->initiated_ms);
    if (u->sum_alg != S3D_SUM_NONE) {
        s3d_xml_tag(out, "ChecksumAlgorithm", xf_str_c(s3d_sum_upper(u->sum_alg)));
        s3d_xml_tag(out,
                    "ChecksumType",
                    u->composite ? XF_STR_LIT("COMPOSITE") : XF_STR_LIT("FULL_OBJECT"));
    }
    xf_buf_put_c(out, "</Upload>");
}

/* Uploads of the bucket in S3's order; the caller frees the array. The lock is held. */
static struct s3d_upload **sorted_locked(struct s3d_bucket *b, size_t *n)
{
    struct s3d_upload **all = xf_xcalloc(b->uploads_by_id.len + 1, sizeof(struct s3d_upload *));

    *n = 0;
    XF_LIST_FOREACH (node, &b->uploads) {
        struct s3d_upload *u = XF_CONTAINER_OF(node, struct s3d_upload, in_bucket);
        if (!u->done) {
            all[(*n)++] = u;
        }
    }
    qsort(all, *n, sizeof(struct s3d_upload *), cmp_upload);
    return all;
}

/* Is u after the markers? `seen` turns true when the upload of the id marker went by. */
static bool after_marker(const struct uploads_query *q, const struct s3d_upload *u, bool *seen)
{
    int d = xf_str_cmp(xf_str_n(u->key, u->key_len), q->key_marker);

    if (q->key_marker.len == 0 || d > 0) {
        return true;
    }
    if (d < 0 || q->id_marker.len == 0) {
        return false;
    }
    if (*seen) {
        return true;
    }
    *seen = xf_str_eq_c(q->id_marker, u->id);
    return false;
}

static void
uploads_page(struct s3d_req *r, const struct uploads_query *q, struct s3d_upload **all, size_t n)
{
    struct xf_buf *out = &r->resp.body;
    uint64_t count = 0;
    bool truncated = false;
    bool seen = false;
    const struct s3d_upload *last = NULL;
    XF_AUTO_BUF rows = {0};

    xf_buf_init(&rows, 0);
    for (size_t i = 0; i < n; i++) {
        if (!xf_str_starts(xf_str_n(all[i]->key, all[i]->key_len), q->prefix) ||
            !after_marker(q, all[i], &seen)) {
            continue;
        }
        if (count == q->max) {
            truncated = true;
            break;
        }
        put_upload(q, &rows, all[i]);
        last = all[i];
        count++;
    }
    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<ListMultipartUploadsResult" S3D_XML_NS ">");
    s3d_xml_tag(out, "Bucket", r->bucket);
    put_text(q, out, "KeyMarker", q->key_marker);
    s3d_xml_tag(out, "UploadIdMarker", q->id_marker);
    if (truncated && last != NULL) {
        put_text(q, out, "NextKeyMarker", xf_str_n(last->key, last->key_len));
        s3d_xml_tag(out, "NextUploadIdMarker", xf_str_c(last->id));
    }
    if (q->prefix.len > 0) {
        put_text(q, out, "Prefix", q->prefix);
    }
    if (q->encode) {
        s3d_xml_tag(out, "EncodingType", XF_STR_LIT("url"));
    }
    s3d_xml_tag_u64(out, "MaxUploads", q->max);
    s3d_xml_tag(out, "IsTruncated", truncated ? XF_STR_LIT("true") : XF_STR_LIT("false"));
    xf_buf_put(out, xf_buf_view(&rows));
    xf_buf_put_c(out, "</ListMultipartUploadsResult>");
}

void s3d_list_uploads(struct s3d_req *r)
{
    struct uploads_query q = {.prefix = XF_STR_EMPTY,
                              .delimiter = XF_STR_EMPTY,
                              .key_marker = XF_STR_EMPTY,
                              .id_marker = XF_STR_EMPTY};
    struct xf_str v = XF_STR_EMPTY;
    size_t n;

    if (!limit_param(r, "max-uploads", 1000, &q.max)) {
        return;
    }
    if (q.max > 1000) {
        q.max = 1000;
    }
    (void)s3d_req_query(r, "prefix", &q.prefix); /* all of these may be absent */
    (void)s3d_req_query(r, "key-marker", &q.key_marker);
    (void)s3d_req_query(r, "upload-id-marker", &q.id_marker);
    if (s3d_req_query(r, "delimiter", &q.delimiter) && q.delimiter.len > 0) {
        s3d_fail(r, "NotImplemented", "A delimiter in ListMultipartUploads is not modelled");
        return;
    }
    q.encode = s3d_req_query(r, "encoding-type", &v) && xf_str_eq_c(v, "url");
    XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
    struct s3d_upload **all = sorted_locked(r->b, &n);
    uploads_page(r, &q, all, n);
    XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
    xf_xfree(all);
}
