/*
 * client_ops.c - each operation's path, query, headers and body, and what its answer must be.
 */
#include "common/s3/client_ops.h"

#include "common/base/hash.h"
#include "common/s3/client_int.h"
#include "common/s3/plan.h"

#define PAGE_DEFAULT 1000U

static void header_if(struct xf_s3_req *req, const char *name, struct xf_str value)
{
    if (value.len > 0) {
        xf_client_header(req, name, value);
    }
}

static void query_if(struct xf_s3_req *req, const char *name, struct xf_str value)
{
    if (value.len > 0) {
        xf_client_query(req, name, value);
    }
}

/* Etags go between quotes whatever way they came. */
static void etag_header(struct xf_s3_req *req, const char *name, struct xf_str etag)
{
    XF_AUTO_BUF text = {0};

    if (etag.len == 0) {
        return;
    }
    xf_buf_put_byte(&text, '"');
    xf_buf_put(&text, xf_plan_etag_bare(etag));
    xf_buf_put_byte(&text, '"');
    xf_client_header(req, name, xf_buf_view(&text));
}

static void sum_header(struct xf_s3_req *req, const struct xf_sum *sum)
{
    XF_AUTO_BUF text = {0};

    xf_sum_text(sum, &text);
    xf_client_header(req, xf_sum_header(sum->alg), xf_buf_view(&text));
    xf_client_header(req, "x-amz-checksum-type", XF_STR_LIT("FULL_OBJECT"));
}

static void want_sum_header(struct xf_s3_req *req, bool want_sum)
{
    if (want_sum) {
        xf_client_header(req, "x-amz-checksum-mode", XF_STR_LIT("ENABLED"));
    }
}

static void object_target(struct xf_s3_req *req, struct xf_str bucket, struct xf_str key)
{
    if (key.len == 0) {
        xf_client_refuse(req, "key is empty");
    }
    xf_client_target(req, bucket, key);
}

static bool is_ascii(struct xf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        if ((unsigned char)text.ptr[i] >= 0x80) {
            return false;
        }
    }
    return true;
}

/* AWS mangles raw UTF-8 in a header, but decodes RFC 2047 words; other services keep raw bytes. */
static void meta_header(struct xf_s3_req *req, const struct xf_s3_meta *meta)
{
    XF_AUTO_BUF name = {0};
    XF_AUTO_BUF word = {0};
    struct xf_str value = meta->value;

    if (req->s3->opts.endpoint.is_aws && !is_ascii(value)) {
        xf_buf_put_c(&word, "=?UTF-8?B?");
        xf_buf_put_base64(&word, value.ptr, value.len);
        xf_buf_put_c(&word, "?=");
        value = xf_buf_view(&word);
    }
    xf_buf_put_c(&name, "x-amz-meta-");
    xf_buf_put(&name, meta->name);
    xf_client_header(req, xf_arena_dup(&req->arena, xf_buf_view(&name)).ptr, value);
}

static void attrs_headers(struct xf_s3_req *req, const struct xf_s3_attrs *a)
{
    if (a == NULL) {
        return;
    }
    header_if(req, "content-type", a->content_type);
    header_if(req, "cache-control", a->cache_control);
    header_if(req, "content-disposition", a->content_disposition);
    header_if(req, "content-encoding", a->content_encoding);
    header_if(req, "content-language", a->content_language);
    header_if(req, "expires", a->expires);
    header_if(req, "x-amz-website-redirect-location", a->website_redirect);
    for (size_t i = 0; i < a->n_meta; i++) {
        meta_header(req, &a->meta[i]);
    }
}

static void guard_headers(struct xf_s3_req *req, const struct xf_s3_guards *g)
{
    header_if(req, "x-amz-acl", g->acl);
    header_if(req, "x-amz-server-side-encryption", g->sse);
    header_if(req, "x-amz-server-side-encryption-aws-kms-key-id", g->kms_key);
    header_if(req, "x-amz-object-lock-mode", g->lock_mode);
    header_if(req, "x-amz-object-lock-retain-until-date", g->lock_until);
    header_if(req, "x-amz-object-lock-legal-hold", g->legal_hold);
}

/* SSE-C: every request for the bytes or attributes of such an object repeats its key. */
static void customer_headers(struct xf_s3_req *req)
{
    const struct xf_customer_key *c = &req->s3->customer_key;

    if (c->key.len > 0) {
        xf_client_header(
            req, "x-amz-server-side-encryption-customer-algorithm", XF_STR_LIT("AES256"));
        xf_client_header(req, "x-amz-server-side-encryption-customer-key", xf_buf_view(&c->key));
        xf_client_header(
            req, "x-amz-server-side-encryption-customer-key-md5", xf_buf_view(&c->md5));
    }
}

static void source_headers(struct xf_s3_req *req, const struct xf_s3_source *source)
{
    XF_AUTO_BUF text = {0};

    if (source->bucket.len == 0 || source->key.len == 0) {
        xf_client_refuse(req, "copy has no source");
    }
    xf_uri_copy_source(&text, source->bucket, source->key, source->version_id);
    xf_client_header(req, "x-amz-copy-source", xf_buf_view(&text));
    etag_header(req, "x-amz-copy-source-if-match", source->if_match);
    if (source->requester_pays && !req->s3->opts.requester_pays) {
        xf_client_header(req, "x-amz-request-payer", XF_STR_LIT("requester"));
    }
}

static void if_absent_header(struct xf_s3_req *req, bool if_absent)
{
    if (if_absent) {
        xf_client_header(req, "if-none-match", XF_STR_LIT("*"));
    }
}

/* bytes=a-b; refused when the end is beyond what 64 bits hold. */
static void range_header(struct xf_s3_req *req, const char *name, uint64_t offset, uint64_t len)
{
    XF_AUTO_BUF text = {0};

    if (len == 0 || offset > UINT64_MAX - len) {
        xf_client_refuse(req, "range is empty or too far out");
        return;
    }
    xf_buf_put_c(&text, "bytes=");
    xf_buf_put_u64(&text, offset);
    xf_buf_put_byte(&text, '-');
    xf_buf_put_u64(&text, offset + len - 1);
    xf_client_header(req, name, xf_buf_view(&text));
}

static void part_query(struct xf_s3_req *req, uint32_t part_no, struct xf_str upload_id)
{
    if (part_no < 1 || part_no > XF_PLAN_PARTS_MAX) {
        xf_client_refuse(req, "part number is not in 1..10000");
    }
    if (upload_id.len == 0) {
        xf_client_refuse(req, "upload id is empty");
    }
    xf_client_query_u64(req, "partNumber", part_no);
    xf_client_query(req, "uploadId", upload_id);
}

static void upload_query(struct xf_s3_req *req, struct xf_str upload_id)
{
    if (upload_id.len == 0) {
        xf_client_refuse(req, "upload id is empty");
    }
    xf_client_query(req, "uploadId", upload_id);
}

struct xf_s3_req *
xf_s3_list(struct xf_s3 *s3, const struct xf_s3_list_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_LIST, "GET", XF_S3ERR_BUCKET, done, arg);

    xf_client_target(req, o->bucket, XF_STR_EMPTY);
    req->want.root = XF_XML_LIST;
    xf_client_query(req, "encoding-type", XF_STR_LIT("url"));
    xf_client_query_u64(req, "max-keys", o->max_keys > 0 ? o->max_keys : PAGE_DEFAULT);
    query_if(req, "prefix", o->prefix);
    query_if(req, "delimiter", o->delimiter);
    if (o->is_v1) {
        query_if(req, "marker", o->token.len > 0 ? o->token : o->start_after);
    } else {
        xf_client_query(req, "list-type", XF_STR_LIT("2"));
        query_if(req, "continuation-token", o->token);
        query_if(req, "start-after", o->token.len > 0 ? XF_STR_EMPTY : o->start_after);
    }
    if (o->restore_status) {
        xf_client_header(req, "x-amz-optional-object-attributes", XF_STR_LIT("RestoreStatus"));
    }
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_head(struct xf_s3 *s3, const struct xf_s3_head_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_HEAD, "HEAD", XF_S3ERR_READ, done, arg);

    object_target(req, o->bucket, o->key);
    query_if(req, "versionId", o->version_id);
    if (o->part_no > 0) {
        xf_client_query_u64(req, "partNumber", o->part_no);
    }
    etag_header(req, "if-match", o->if_match);
    want_sum_header(req, o->want_sum);
    customer_headers(req);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_get(struct xf_s3 *s3, const struct xf_s3_get_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_GET, "GET", XF_S3ERR_READ, done, arg);

    object_target(req, o->bucket, o->key);
    query_if(req, "versionId", o->version_id);
    etag_header(req, "if-match", o->if_match);
    want_sum_header(req, o->want_sum);
    customer_headers(req);
    req->want.is_ranged = o->len > 0;
    req->want.offset = o->offset;
    req->want.len = o->len;
    req->want.object_size = o->object_size;
    req->want.if_match =
        o->if_match.len > 0 ? xf_arena_dup(&req->arena, o->if_match) : XF_STR_EMPTY;
    if (o->len > 0) {
        range_header(req, "range", o->offset, o->len);
    } else if (o->offset > 0) {
        xf_client_refuse(req, "range has a start but no length");
    }
    req->sink = o->sink;
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_put(struct xf_s3 *s3, const struct xf_s3_put_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_PUT, "PUT", XF_S3ERR_WRITE, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    req->body = o->body;
    attrs_headers(req, o->attrs);
    header_if(req, "x-amz-tagging", o->tags);
    header_if(req, "x-amz-storage-class", o->storage_class);
    guard_headers(req, &o->guards);
    customer_headers(req);
    if_absent_header(req, o->if_absent);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_copy(struct xf_s3 *s3, const struct xf_s3_copy_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_COPY, "PUT", XF_S3ERR_COPY, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    req->want.root = XF_XML_COPY;
    req->want.if_absent = o->if_absent;
    req->want.is_pinned = o->source.if_match.len > 0;
    req->want.copy_bytes = o->size;
    source_headers(req, &o->source);
    if (o->attrs != NULL) {
        xf_client_header(req, "x-amz-metadata-directive", XF_STR_LIT("REPLACE"));
        attrs_headers(req, o->attrs);
    } else {
        header_if(req, "x-amz-website-redirect-location", o->website_redirect);
    }
    if (o->replace_tags) {
        xf_client_header(req, "x-amz-tagging-directive", XF_STR_LIT("REPLACE"));
        header_if(req, "x-amz-tagging", o->tags);
    }
    header_if(req, "x-amz-storage-class", o->storage_class);
    guard_headers(req, &o->guards);
    customer_headers(req);
    if_absent_header(req, o->if_absent);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_create(struct xf_s3 *s3, const struct xf_s3_create_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_CREATE, "POST", XF_S3ERR_WRITE, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    req->want.root = XF_XML_INITIATE;
    xf_client_query(req, "uploads", XF_STR_EMPTY);
    if (o->sum != XF_SUM_NONE) {
        xf_client_header(req, "x-amz-checksum-algorithm", xf_str_c(xf_sum_name(o->sum)));
        xf_client_header(req, "x-amz-checksum-type", XF_STR_LIT("FULL_OBJECT"));
    }
    attrs_headers(req, o->attrs);
    header_if(req, "x-amz-tagging", o->tags);
    header_if(req, "x-amz-storage-class", o->storage_class);
    guard_headers(req, &o->guards);
    customer_headers(req);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_part(struct xf_s3 *s3, const struct xf_s3_part_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_PART, "PUT", XF_S3ERR_UPLOAD, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    part_query(req, o->part_no, o->upload_id);
    req->body = o->body;
    customer_headers(req);
    return xf_client_launch(req);
}

struct xf_s3_req *xf_s3_part_copy(struct xf_s3 *s3,
                                  const struct xf_s3_part_copy_opts *o,
                                  xf_s3_done_fn *done,
                                  void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_PART_COPY, "PUT", XF_S3ERR_COPY, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    req->want.root = XF_XML_COPY;
    part_query(req, o->part_no, o->upload_id);
    source_headers(req, &o->source);
    customer_headers(req);
    if (o->len > 0) {
        req->want.copy_bytes = o->len;
        range_header(req, "x-amz-copy-source-range", o->offset, o->len);
    }
    return xf_client_launch(req);
}

static void put_xml(struct xf_buf *out, struct xf_str text)
{
    for (size_t i = 0; i < text.len; i++) {
        switch (text.ptr[i]) {
        case '&': xf_buf_put_c(out, "&amp;"); break;
        case '<': xf_buf_put_c(out, "&lt;"); break;
        case '>': xf_buf_put_c(out, "&gt;"); break;
        default: xf_buf_put_byte(out, text.ptr[i]); break;
        }
    }
}

/* The list of parts; refused unless they ascend. */
static void complete_body(struct xf_s3_req *req, const struct xf_xml_part *parts, size_t n)
{
    struct xf_buf *out = &req->body_text;

    if (n == 0 || n > XF_PLAN_PARTS_MAX) {
        xf_client_refuse(req, "an upload has 1 to 10000 parts");
        return;
    }
    xf_buf_put_c(out,
                 "<CompleteMultipartUpload "
                 "xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">");
    for (size_t i = 0; i < n; i++) {
        if (parts[i].part_no < 1 || (i > 0 && parts[i].part_no <= parts[i - 1].part_no)) {
            xf_client_refuse(req, "parts are not in ascending order");
            return;
        }
        if (parts[i].etag.len == 0) {
            xf_client_refuse(req, "a part has no etag");
            return;
        }
        xf_buf_put_c(out, "<Part><PartNumber>");
        xf_buf_put_u64(out, parts[i].part_no);
        xf_buf_put_c(out, "</PartNumber><ETag>\"");
        put_xml(out, xf_plan_etag_bare(parts[i].etag));
        xf_buf_put_c(out, "\"</ETag></Part>");
    }
    xf_buf_put_c(out, "</CompleteMultipartUpload>");
    req->body.bytes = xf_buf_view(out);
    req->own_body = true;
}

struct xf_s3_req *xf_s3_complete(struct xf_s3 *s3,
                                 const struct xf_s3_complete_opts *o,
                                 xf_s3_done_fn *done,
                                 void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_COMPLETE, "POST", XF_S3ERR_UPLOAD, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    req->want.root = XF_XML_COMPLETE;
    upload_query(req, o->upload_id);
    complete_body(req, o->parts, o->n_parts);
    xf_client_header(req, "content-type", XF_STR_LIT("application/xml"));
    if (s3->opts.endpoint.is_aws && o->object_size != XF_HTTP_SIZE_UNKNOWN) {
        XF_AUTO_BUF text = {0};

        xf_buf_put_u64(&text, o->object_size);
        xf_client_header(req, "x-amz-mp-object-size", xf_buf_view(&text));
    }
    if (o->sum != NULL && o->sum->alg != XF_SUM_NONE) {
        sum_header(req, o->sum);
    }
    if_absent_header(req, o->if_absent);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_abort(struct xf_s3 *s3, const struct xf_s3_upload_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_ABORT, "DELETE", XF_S3ERR_UPLOAD, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    upload_query(req, o->upload_id);
    return xf_client_launch(req);
}

struct xf_s3_req *xf_s3_list_parts(struct xf_s3 *s3,
                                   const struct xf_s3_upload_opts *o,
                                   xf_s3_done_fn *done,
                                   void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_LIST_PARTS, "GET", XF_S3ERR_UPLOAD, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.root = XF_XML_PARTS;
    upload_query(req, o->upload_id);
    xf_client_query_u64(req, "max-parts", PAGE_DEFAULT);
    if (o->part_marker > 0) {
        xf_client_query_u64(req, "part-number-marker", o->part_marker);
    }
    return xf_client_launch(req);
}

struct xf_s3_req *xf_s3_list_uploads(struct xf_s3 *s3,
                                     const struct xf_s3_list_uploads_opts *o,
                                     xf_s3_done_fn *done,
                                     void *arg)
{
    struct xf_s3_req *req =
        xf_client_req(s3, XF_S3_LIST_UPLOADS, "GET", XF_S3ERR_BUCKET, done, arg);

    xf_client_target(req, o->bucket, XF_STR_EMPTY);
    req->want.root = XF_XML_UPLOADS;
    xf_client_query(req, "uploads", XF_STR_EMPTY);
    xf_client_query(req, "encoding-type", XF_STR_LIT("url"));
    xf_client_query_u64(req, "max-uploads", o->max_uploads > 0 ? o->max_uploads : PAGE_DEFAULT);
    query_if(req, "prefix", o->prefix);
    query_if(req, "key-marker", o->key_marker);
    query_if(req, "upload-id-marker", o->upload_id_marker);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_get_tags(struct xf_s3 *s3, const struct xf_s3_object_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_GET_TAGS, "GET", XF_S3ERR_READ, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.root = XF_XML_TAGGING;
    xf_client_query(req, "tagging", XF_STR_EMPTY);
    query_if(req, "versionId", o->version_id);
    return xf_client_launch(req);
}

/* `a=b%20c&d=` as a TagSet; refused when an escape is broken. */
static void tags_body(struct xf_s3_req *req, struct xf_str form)
{
    struct xf_buf *out = &req->body_text;
    struct xf_str pair;

    xf_buf_put_c(out, "<Tagging xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\"><TagSet>");
    while (xf_str_cut(&form, '&', &pair)) {
        XF_AUTO_BUF key = {0};
        XF_AUTO_BUF value = {0};
        struct xf_str name;
        if (!xf_str_cut(&pair, '=', &name) || !xf_buf_put_unpercent(&key, name, true) ||
            !xf_buf_put_unpercent(&value, pair, true)) {
            xf_client_refuse(req, "the tags are not in the form a=b&c=d");
            return;
        }
        xf_buf_put_c(out, "<Tag><Key>");
        put_xml(out, xf_buf_view(&key));
        xf_buf_put_c(out, "</Key><Value>");
        put_xml(out, xf_buf_view(&value));
        xf_buf_put_c(out, "</Value></Tag>");
    }
    xf_buf_put_c(out, "</TagSet></Tagging>");
    req->body.bytes = xf_buf_view(out);
    req->own_body = true;
}

/* PutObjectTagging wants a digest of its body. */
static void md5_header(struct xf_s3_req *req)
{
    unsigned char md5[XF_MD5_LEN];
    XF_AUTO_BUF text = {0};

    xf_md5(req->body.bytes.ptr, req->body.bytes.len, md5);
    xf_buf_put_base64(&text, md5, sizeof(md5));
    xf_client_header(req, "content-md5", xf_buf_view(&text));
}

struct xf_s3_req *
xf_s3_put_tags(struct xf_s3 *s3, const struct xf_s3_tags_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_PUT_TAGS, "PUT", XF_S3ERR_READ, done, arg);

    object_target(req, o->bucket, o->key);
    xf_client_query(req, "tagging", XF_STR_EMPTY);
    tags_body(req, o->tags);
    md5_header(req);
    xf_client_header(req, "content-type", XF_STR_LIT("application/xml"));
    return xf_client_launch(req);
}

static void xml_tag(struct xf_buf *out, const char *name, struct xf_str value)
{
    xf_buf_putf(out, "<%s>", name);
    put_xml(out, value);
    xf_buf_putf(out, "</%s>", name);
}

struct xf_s3_req *
xf_s3_put_lock(struct xf_s3 *s3, const struct xf_s3_lock_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_PUT_LOCK, "PUT", XF_S3ERR_READ, done, arg);
    struct xf_buf *out = &req->body_text;
    bool is_hold = o->legal_hold.len > 0;
    const char *root = is_hold ? "LegalHold" : "Retention";

    object_target(req, o->bucket, o->key);
    xf_client_query(req, is_hold ? "legal-hold" : "retention", XF_STR_EMPTY);
    xf_buf_putf(out, "<%s xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">", root);
    if (is_hold) {
        xml_tag(out, "Status", o->legal_hold);
    } else {
        xml_tag(out, "Mode", o->mode);
        xml_tag(out, "RetainUntilDate", o->until);
    }
    xf_buf_putf(out, "</%s>", root);
    req->body.bytes = xf_buf_view(out);
    req->own_body = true;
    md5_header(req);
    xf_client_header(req, "content-type", XF_STR_LIT("application/xml"));
    return xf_client_launch(req);
}

struct xf_s3_req *xf_s3_bucket_conf(
    struct xf_s3 *s3, struct xf_str bucket, enum xf_s3_conf what, xf_s3_done_fn *done, void *arg)
{
    static const char *const queries[] = {[XF_S3_CONF_WEBSITE] = "website",
                                          [XF_S3_CONF_OWNERSHIP] = "ownershipControls",
                                          [XF_S3_CONF_LOCK] = "object-lock"};
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_CONF, "GET", XF_S3ERR_BUCKET, done, arg);

    xf_client_target(req, bucket, XF_STR_EMPTY);
    req->want.root = XF_XML_OTHER;
    xf_client_query(req, queries[what], XF_STR_EMPTY);
    return xf_client_launch(req);
}

struct xf_s3_req *xf_s3_head_bucket(struct xf_s3 *s3,
                                    const struct xf_s3_object_opts *o,
                                    xf_s3_done_fn *done,
                                    void *arg)
{
    struct xf_s3_req *req =
        xf_client_req(s3, XF_S3_HEAD_BUCKET, "HEAD", XF_S3ERR_BUCKET, done, arg);

    xf_client_target(req, o->bucket, XF_STR_EMPTY);
    return xf_client_launch(req);
}

struct xf_s3_req *
xf_s3_delete(struct xf_s3 *s3, const struct xf_s3_object_opts *o, xf_s3_done_fn *done, void *arg)
{
    struct xf_s3_req *req = xf_client_req(s3, XF_S3_DELETE, "DELETE", XF_S3ERR_WRITE, done, arg);

    object_target(req, o->bucket, o->key);
    req->want.is_write = true;
    query_if(req, "versionId", o->version_id);
    return xf_client_launch(req);
}
