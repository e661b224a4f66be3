/* multipart.c - multipart uploads but for part copies. */
#include "tests/s3d/context.h"
#include "tests/s3d/guards.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <stdio.h>

static void lock(struct s3d_req *r)
{
    XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
}

static void unlock(struct s3d_req *r)
{
    XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
}

static void no_upload(struct s3d_req *r)
{
    s3d_fail(r,
             "NoSuchUpload",
             "The specified upload does not exist. The upload ID may be invalid, or the upload may "
             "have been "
             "aborted or completed.");
}

bool s3d_part_params(struct s3d_req *r, size_t *part_no, struct xf_str *upload_id)
{
    struct xf_str v = XF_STR_EMPTY;
    uint64_t n;

    if (!s3d_req_query(r, "partNumber", &v) || !xf_str_u64(v, &n) || n < 1 || n > S3D_PARTS_MAX) {
        s3d_fail(
            r, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive");
        return false;
    }
    if (!s3d_req_query(r, "uploadId", upload_id)) {
        s3d_fail(
            r, "InvalidArgument", "This operation does not accept a query-string without uploadId");
        return false;
    }
    *part_no = (size_t)n;
    return true;
}

/* ---- create ---- */

/* x-amz-checksum-algorithm and -type, with S3's table of what goes together. */
static bool upload_checksum(struct s3d_req *r, enum s3d_sum_alg *alg, bool *composite)
{
    struct xf_str v;
    struct xf_str type = s3d_http_value(&r->http, "x-amz-checksum-type");

    *alg = S3D_SUM_NONE;
    *composite = false;
    if (!s3d_http_get(&r->http, "x-amz-checksum-algorithm", &v)) {
        if (type.len > 0) {
            s3d_fail(r,
                     "InvalidRequest",
                     "The x-amz-checksum-type header can only be used with the "
                     "x-amz-checksum-algorithm header.");
            return false;
        }
        return true;
    }
    *alg = s3d_sum_by_name(v);
    if (*alg == S3D_SUM_NONE) {
        s3d_fail(r, "InvalidRequest", "Checksum algorithm provided is unsupported.");
        return false;
    }
    bool full = xf_str_eq_c(type, "FULL_OBJECT");
    *composite = type.len == 0 ? *alg != S3D_SUM_CRC64NVME : !full;
    if ((*composite && *alg == S3D_SUM_CRC64NVME) || (full && !s3d_sum_is_crc(*alg)) ||
        (type.len > 0 && !full && !xf_str_eq_c(type, "COMPOSITE"))) {
        s3d_fail(
            r, "InvalidRequest", "The checksum type cannot be used with this checksum algorithm.");
        return false;
    }
    return true;
}

void s3d_create_upload(struct s3d_req *r)
{
    struct s3d_attrs_src src = {0};
    struct s3d_fail fail;
    enum s3d_sum_alg alg;
    bool composite;
    char id[S3D_UPLOAD_ID_LEN + 1];
    struct xf_buf *out = &r->resp.body;
    XF_AUTO_BUF headers = {0};
    XF_AUTO_BUF tags = {0};
    S3D_AUTO_GUARDS guards = {0};

    xf_buf_init(&headers, 0);
    xf_buf_init(&tags, 0);
    if (!s3d_guards_take(r, &guards, &src) || !upload_checksum(r, &alg, &composite)) {
        return;
    }
    if (!s3d_attrs_headers(&r->http, &headers, &fail) || !s3d_attrs_class(&r->http, &src, &fail) ||
        !s3d_attrs_tags(s3d_http_value(&r->http, "x-amz-tagging"), &tags, &src.n_tags, &fail)) {
        s3d_fail(r, fail.code, fail.message);
        return;
    }
    src.headers = xf_buf_view(&headers);
    src.tags = xf_buf_view(&tags);
    struct s3d_upload_spec spec = {s3d_attrs_new(&src), alg, composite, r->act.kms, r->wall_ms};
    s3d_upload_new(r->server->store, r->b, r->key, &spec, id);
    s3d_ok(r, 200, true);
    if (alg != S3D_SUM_NONE) {
        xf_buf_putf(&r->resp.headers,
                    "x-amz-checksum-algorithm: %s\r\nx-amz-checksum-type: %s\r\n",
                    s3d_sum_upper(alg),
                    composite ? "COMPOSITE" : "FULL_OBJECT");
    }
    xf_buf_put(&r->resp.headers, xf_buf_view(&guards.sse));
    xf_buf_put_c(out, "<InitiateMultipartUploadResult" S3D_XML_NS ">");
    s3d_xml_tag(out, "Bucket", r->bucket);
    s3d_xml_tag(out, "Key", r->key);
    s3d_xml_tag(out, "UploadId", xf_str_c(id));
    xf_buf_put_c(out, "</InitiateMultipartUploadResult>");
}

/* ---- parts ---- */

static void spoil_part(struct s3d_req *r)
{
    struct s3d_body *b = r->part.body;

    if (r->act.store_size != S3D_UNSET && (uint64_t)r->act.store_size < r->part.size) {
        r->part.body = s3d_body_slice(b, 0, (uint64_t)r->act.store_size);
        r->part.size = (uint64_t)r->act.store_size;
        s3d_body_unref(b);
    } else if (r->act.corrupt) {
        r->part.body = s3d_body_corrupt(b);
        s3d_body_unref(b);
    }
}

bool s3d_store_part(struct s3d_req *r, size_t part_no, struct xf_str upload_id)
{
    spoil_part(r);
    lock(r);
    struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, false);
    if (u != NULL) {
        if (u->kms) {
            s3d_md5(r->part.md5, S3D_MD5_LEN, r->part.md5);
        }
        s3d_upload_put_part_locked(u, part_no, &r->part);
        r->part_on = false;
    }
    unlock(r);
    if (u == NULL) {
        no_upload(r);
    }
    return u != NULL;
}

void s3d_upload_part(struct s3d_req *r)
{
    struct s3d_body *body;
    struct s3d_part part = {.mtime_ms = r->wall_ms};
    struct s3d_obj shown = {0};
    struct xf_str upload_id;
    size_t part_no;
    enum s3d_sum_alg alg = r->intake.sum.alg;
    enum s3d_sum_alg theirs = S3D_SUM_NONE;

    if (!s3d_part_params(r, &part_no, &upload_id) || !s3d_data_end(r, &body, part.md5, part.sum)) {
        return;
    }
    part.body = body;
    part.size = s3d_body_size(body);
    r->part = part;
    r->part_on = true;
    lock(r);
    const struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, false);
    theirs = u == NULL ? S3D_SUM_NONE : u->sum_alg;
    if (u != NULL && u->kms) {
        shown.flags |= S3D_OBJ_KMS;
    }
    shown.attrs = u != NULL ? s3d_attrs_ref(u->attrs) : NULL;
    bool is_known = u != NULL;
    unlock(r);
    bool is_open = !is_known || s3d_guards_open(r, shown.attrs, false);
    r->part_attrs = shown.attrs;
    if (!is_open) {
        return;
    }
    if (theirs != S3D_SUM_NONE && alg != theirs) {
        s3d_fail(r,
                 "InvalidRequest",
                 "Checksum Type mismatch occurred, the part's type is not the upload's");
        return;
    }
    memcpy(shown.md5, r->part.md5, S3D_MD5_LEN);
    if (!s3d_store_part(r, part_no, upload_id)) {
        return;
    }
    memcpy(shown.md5, r->part.md5, S3D_MD5_LEN); /* another one when encrypted */
    s3d_ok(r, 200, false);
    s3d_etag_header(r, &shown);
    if (alg != S3D_SUM_NONE) {
        XF_AUTO_BUF b64 = {0};
        xf_buf_init(&b64, 0);
        xf_buf_put_base64(&b64, part.sum, s3d_sum_len(alg));
        xf_buf_putf(&r->resp.headers, "x-amz-checksum-%s: %s\r\n", s3d_sum_name(alg), b64.ptr);
    }
}

/* ---- complete ---- */

static bool etag_is(struct xf_str sent, const uint8_t md5[S3D_MD5_LEN])
{
    struct s3d_obj o = {0};

    memcpy(o.md5, md5, S3D_MD5_LEN);
    return s3d_etag_matches(&o, sent) && !xf_str_eq_c(sent, "*");
}

static bool
part_fail(struct s3d_req *r, const char *code, const char *message, const struct s3d_xml_part *p)
{
    XF_AUTO_BUF extra = {0};

    xf_buf_init(&extra, 0);
    s3d_xml_tag_u64(&extra, "PartNumber", p->part_no);
    s3d_xml_tag(&extra, "ETag", p->etag);
    if (strcmp(code, "EntityTooSmall") == 0) {
        s3d_xml_tag_u64(&extra, "MinSizeAllowed", S3D_PART_MIN);
    }
    s3d_fail_extra(r, code, message, xf_buf_view(&extra));
    return false;
}

/* One part's checksum as the client states it, against what was stored. */
static bool part_sum_ok(struct s3d_req *r, const struct s3d_upload *u, const struct s3d_xml_part *p)
{
    XF_AUTO_BUF b = {0};

    for (int i = S3D_SUM_NONE + 1; i < S3D_SUM_N; i++) {
        if (p->sum[i].len > 0 && (enum s3d_sum_alg)i != u->sum_alg) {
            return part_fail(r,
                             "InvalidPart",
                             "One or more of the specified parts could not be found: checksum type",
                             p);
        }
    }
    if (u->sum_alg == S3D_SUM_NONE) {
        return true;
    }
    if (p->sum[u->sum_alg].len == 0) {
        if (!u->composite) {
            return true;
        }
        s3d_fail(r,
                 "InvalidRequest",
                 "The upload was created using a checksum. The complete request must include the "
                 "checksum for "
                 "each part.");
        return false;
    }
    xf_buf_init(&b, 0);
    if (!xf_buf_put_unbase64(&b, p->sum[u->sum_alg]) || b.len != s3d_sum_len(u->sum_alg) ||
        memcmp(b.ptr, u->parts[p->part_no - 1].sum, b.len) != 0) {
        return part_fail(
            r, "InvalidPart", "One or more of the specified parts could not be found: checksum", p);
    }
    return true;
}

/* All rules on the list of parts. */
static bool parts_ok(struct s3d_req *r, const struct s3d_upload *u, const struct s3d_xml_doc *doc)
{
    for (size_t i = 0; i < doc->n_parts; i++) {
        const struct s3d_xml_part *p = &doc->parts[i];
        if (i > 0 && p->part_no <= doc->parts[i - 1].part_no) {
            s3d_fail(r,
                     "InvalidPartOrder",
                     "The list of parts was not in ascending order. Parts must be ordered by part "
                     "number.");
            return false;
        }
        if (p->part_no < 1 || p->part_no > u->cap_parts || u->parts[p->part_no - 1].body == NULL ||
            !etag_is(p->etag, u->parts[p->part_no - 1].md5)) {
            return part_fail(
                r,
                "InvalidPart",
                "One or more of the specified parts could not be found. The part may not have "
                "been uploaded, or the specified entity tag may not match the part's entity tag.",
                p);
        }
        if (!part_sum_ok(r, u, p)) {
            return false;
        }
        if (i + 1 < doc->n_parts && u->parts[p->part_no - 1].size < S3D_PART_MIN) {
            return part_fail(r,
                             "EntityTooSmall",
                             "Your proposed upload is smaller than the minimum allowed size",
                             p);
        }
    }
    return true;
}

/* The checksum of the whole from those of the parts. */
static void whole_sum(const struct s3d_upload *u, const struct s3d_xml_doc *doc, struct xf_buf *b64)
{
    uint8_t out[S3D_SUM_MAX];
    size_t len = s3d_sum_len(u->sum_alg);
    struct s3d_sum sum;
    uint64_t crc = 0;

    s3d_sum_init(&sum, u->sum_alg);
    for (size_t i = 0; i < doc->n_parts; i++) {
        const struct s3d_part *p = &u->parts[doc->parts[i].part_no - 1];
        if (u->composite) {
            s3d_sum_update(&sum, p->sum, len);
        } else {
            crc = s3d_crc_combine(u->sum_alg, crc, s3d_crc_load(p->sum, len), p->size);
        }
    }
    if (u->composite) {
        (void)s3d_sum_final(&sum, out);
    } else {
        s3d_crc_store(out, len, crc);
    }
    xf_buf_put_base64(b64, out, len);
    if (u->composite) {
        xf_buf_putf(b64, "-%zu", doc->n_parts);
    }
}

static bool announced_whole(struct s3d_req *r, const struct s3d_upload *u, struct xf_str b64)
{
    char name[48];
    struct xf_str v;

    if (u->sum_alg == S3D_SUM_NONE) {
        return true;
    }
    (void)snprintf(name, sizeof(name), "x-amz-checksum-%s", s3d_sum_name(u->sum_alg));
    if (s3d_http_get(&r->http, name, &v) && !xf_str_eq(v, b64)) {
        s3d_fail(
            r, "BadDigest", "The checksum you specified did not match the calculated checksum.");
        return false;
    }
    return true;
}

static bool size_ok(struct s3d_req *r, uint64_t size)
{
    struct xf_str v;
    uint64_t n;

    if (size > r->server->opts.max_object) {
        s3d_fail(
            r, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed object size");
        return false;
    }
    if (s3d_http_get(&r->http, "x-amz-mp-object-size", &v) && (!xf_str_u64(v, &n) || n != size)) {
        s3d_fail(r,
                 "InvalidRequest",
                 "The provided 'x-amz-mp-object-size' header does not match what was computed.");
        return false;
    }
    return true;
}

/* Make r->obj of the upload's parts. The bucket's lock is held. */
static bool
assemble_locked(struct s3d_req *r, const struct s3d_upload *u, const struct s3d_xml_doc *doc)
{
    struct s3d_body **bodies = xf_xcalloc(doc->n_parts, sizeof(struct s3d_body *));
    struct s3d_attrs_src src;
    MD5_CTX md5;
    XF_AUTO_BUF b64 = {0};

    xf_buf_init(&b64, 0);
    (void)MD5_Init(&md5);
    for (size_t i = 0; i < doc->n_parts; i++) {
        const struct s3d_part *p = &u->parts[doc->parts[i].part_no - 1];
        bodies[i] = p->body;
        (void)MD5_Update(&md5, p->md5, S3D_MD5_LEN);
    }
    memset(&r->obj, 0, sizeof(r->obj));
    (void)MD5_Final(r->obj.md5, &md5);
    r->obj.u.body = s3d_body_join(bodies, doc->n_parts);
    xf_xfree(bodies);
    r->obj.size = s3d_body_size(r->obj.u.body);
    r->obj.n_parts = (uint16_t)doc->n_parts;
    r->obj.mtime_s = (uint32_t)(r->wall_ms / 1000);
    r->obj_on = true;
    s3d_attrs_get(u->attrs, &src);
    if (u->sum_alg != S3D_SUM_NONE) {
        whole_sum(u, doc, &b64);
        src.sum_alg = u->sum_alg;
        src.composite = u->composite;
        src.sum = xf_buf_view(&b64);
    }
    src.kms = u->kms;
    if (u->kms) {
        r->obj.flags |= S3D_OBJ_KMS;
    }
    r->obj.attrs = s3d_attrs_new(&src);
    return size_ok(r, r->obj.size) && announced_whole(r, u, xf_buf_view(&b64));
}

static void complete_answer(struct s3d_req *r, const struct s3d_obj *o)
{
    struct xf_buf *out = &r->resp.body;
    char etag[S3D_ETAG_MAX * 2];

    s3d_etag_shown(r, o, etag);
    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<CompleteMultipartUploadResult" S3D_XML_NS "><Location>");
    xf_buf_putf(out, "http://%s/", r->server->address);
    xf_buf_put_percent(out, r->bucket, false);
    xf_buf_put_byte(out, '/');
    xf_buf_put_percent(out, r->key, true);
    xf_buf_put_c(out, "</Location>");
    s3d_xml_tag(out, "Bucket", r->bucket);
    s3d_xml_tag(out, "Key", r->key);
    s3d_xml_tag(out, "ETag", xf_str_c(etag));
    if (o->attrs != NULL && o->attrs->sum.len > 0) {
        char name[32];
        (void)snprintf(name, sizeof(name), "Checksum%s", s3d_sum_upper(o->attrs->sum_alg));
        s3d_xml_tag(out, name, o->attrs->sum);
        s3d_xml_tag(out,
                    "ChecksumType",
                    o->attrs->composite ? XF_STR_LIT("COMPOSITE") : XF_STR_LIT("FULL_OBJECT"));
    }
    xf_buf_put_c(out, "</CompleteMultipartUploadResult>");
}

/* The upload is finished: forget it, or keep it for a repeated Complete. */
static void finish_upload(struct s3d_req *r, struct xf_str upload_id)
{
    lock(r);
    struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, false);
    if (u != NULL && r->server->opts.complete_idempotent) {
        u->done = true;
        memcpy(u->done_md5, r->obj.md5, S3D_MD5_LEN);
        u->done_parts = r->obj.n_parts;
        for (size_t i = 0; i < u->cap_parts; i++) {
            s3d_body_unref(u->parts[i].body);
            u->parts[i].body = NULL;
        }
    } else if (u != NULL) {
        s3d_upload_free_locked(u);
    }
    unlock(r);
}

static void
complete_parsed(struct s3d_req *r, const struct s3d_xml_doc *doc, struct xf_str upload_id)
{
    struct s3d_put_cond cond;
    bool ok = false;

    if (!s3d_write_cond(r, &cond)) {
        return;
    }
    lock(r);
    const struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, true);
    if (u == NULL) {
        no_upload(r);
    } else if (u->done) {
        struct s3d_obj o = {.n_parts = u->done_parts};
        memcpy(o.md5, u->done_md5, S3D_MD5_LEN);
        complete_answer(r, &o);
    } else {
        ok = parts_ok(r, u, doc) && assemble_locked(r, u, doc);
    }
    unlock(r);
    if (!ok) {
        return;
    }
    s3d_obj_spoil(r, &r->obj);
    if (s3d_store_object(r, &cond)) {
        finish_upload(r, upload_id);
        complete_answer(r, &r->obj);
    }
}

void s3d_complete_upload(struct s3d_req *r)
{
    struct s3d_xml_doc doc;
    struct xf_str upload_id = XF_STR_EMPTY;

    (void)s3d_req_query(r, "uploadId", &upload_id); /* it made this operation */
    if (!s3d_xml_parse(S3D_XML_COMPLETE, xf_buf_view(&r->small), &doc)) {
        s3d_fail(r,
                 "MalformedXML",
                 "The XML you provided was not well-formed or did not validate against our "
                 "published schema");
    } else if (doc.n_parts == 0) {
        s3d_fail(r, "InvalidRequest", "You must specify at least one part");
    } else if (doc.n_parts > S3D_PARTS_MAX) {
        s3d_fail(
            r, "InvalidArgument", "Part number must be an integer between 1 and 10000, inclusive");
    } else {
        complete_parsed(r, &doc, upload_id);
    }
    s3d_xml_doc_fini(&doc);
}

void s3d_abort_upload(struct s3d_req *r)
{
    struct xf_str upload_id = XF_STR_EMPTY;

    (void)s3d_req_query(r, "uploadId", &upload_id); /* it made this operation */
    lock(r);
    struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, upload_id, false);
    if (u != NULL) {
        s3d_upload_free_locked(u);
    }
    unlock(r);
    if (u == NULL) {
        no_upload(r);
        return;
    }
    s3d_ok(r, 204, false);
}
