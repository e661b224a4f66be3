/* bucket.c - operations on buckets, DeleteObjects, and the table of handlers. */
#include "tests/s3d/context.h"
#include "tests/s3d/guards.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

static void put_bucket(struct s3d_bucket *b, void *arg)
{
    struct xf_buf *out = arg;

    xf_buf_put_c(out, "<Bucket>");
    s3d_xml_tag(out, "Name", xf_str_c(b->name));
    s3d_xml_tag_time(out, "CreationDate", b->created_ms);
    xf_buf_put_c(out, "</Bucket>");
}

static void list_buckets(struct s3d_req *r)
{
    struct xf_buf *out = &r->resp.body;

    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<ListAllMyBucketsResult" S3D_XML_NS "><Owner><ID>s3d</ID></Owner><Buckets>");
    s3d_store_each(r->server->store, put_bucket, out);
    xf_buf_put_c(out, "</Buckets></ListAllMyBucketsResult>");
}

static void create_bucket(struct s3d_req *r)
{
    struct s3d_xml_doc doc;

    if (!s3d_bucket_name_is_valid(r->bucket)) {
        s3d_fail(r, "InvalidBucketName", "The specified bucket is not valid.");
        return;
    }
    if (r->small.len > 0) {
        bool ok = s3d_xml_parse(S3D_XML_BUCKET, xf_buf_view(&r->small), &doc);
        s3d_xml_doc_fini(&doc);
        if (!ok) {
            s3d_fail(r, "MalformedXML", "The XML you provided was not well-formed");
            return;
        }
    }
    if (!s3d_store_make_bucket(r->server->store, r->bucket, r->wall_ms)) {
        s3d_fail(
            r,
            "BucketAlreadyOwnedByYou",
            "Your previous request to create the named bucket succeeded and you already own it.");
        return;
    }
    s3d_ok(r, 200, false);
    xf_buf_put_c(&r->resp.headers, "Location: /");
    xf_buf_put(&r->resp.headers, r->bucket);
    xf_buf_put_c(&r->resp.headers, "\r\n");
}

static void delete_bucket(struct s3d_req *r)
{
    switch (s3d_store_drop_bucket(r->server->store, r->bucket)) {
    case S3D_DROP_OK: s3d_ok(r, 204, false); break;
    case S3D_DROP_MISSING:
        s3d_fail(r, "NoSuchBucket", "The specified bucket does not exist");
        break;
    case S3D_DROP_NOT_EMPTY:
        s3d_fail(r, "BucketNotEmpty", "The bucket you tried to delete is not empty");
        break;
    }
}

static const char *region(const struct s3d_req *r)
{
    return r->server->opts.region != NULL ? r->server->opts.region : "us-east-1";
}

static void head_bucket(struct s3d_req *r)
{
    s3d_ok(r, 200, true);
    xf_buf_reset(&r->resp.body);
    xf_buf_putf(&r->resp.headers, "x-amz-bucket-region: %s\r\n", region(r));
}

static void bucket_location(struct s3d_req *r)
{
    s3d_ok(r, 200, true);
    xf_buf_putf(&r->resp.body,
                "<LocationConstraint" S3D_XML_NS ">%s</LocationConstraint>",
                strcmp(region(r), "us-east-1") == 0 ? "" : region(r));
}

static void bucket_versioning(struct s3d_req *r)
{
    s3d_ok(r, 200, true);
    xf_buf_put_c(&r->resp.body, "<VersioningConfiguration" S3D_XML_NS "/>");
}

void s3d_bucket_op(struct s3d_req *r)
{
    if (r->op == S3D_OP_LIST_BUCKETS) {
        list_buckets(r);
    } else if (r->op == S3D_OP_CREATE_BUCKET) {
        create_bucket(r);
    } else if (r->op == S3D_OP_DELETE_BUCKET) {
        delete_bucket(r);
    } else if (r->op == S3D_OP_HEAD_BUCKET) {
        head_bucket(r);
    } else if (r->op == S3D_OP_BUCKET_LOCATION) {
        bucket_location(r);
    } else if (r->op == S3D_OP_BUCKET_VERSIONING) {
        bucket_versioning(r);
    } else {
        s3d_fail(r,
                 "NotImplemented",
                 "A parameter or header you provided implies functionality that is not supported");
    }
}

/* Content-MD5 or a checksum header, which DeleteObjects wants. */
static bool body_is_guarded(struct s3d_req *r)
{
    struct xf_str v;
    uint8_t md5[S3D_MD5_LEN];
    XF_AUTO_BUF b = {0};

    if (s3d_http_get(&r->http, "Content-MD5", &v)) {
        xf_buf_init(&b, 0);
        s3d_md5(r->small.ptr == NULL ? "" : r->small.ptr, r->small.len, md5);
        if (!xf_buf_put_unbase64(&b, v) || b.len != sizeof(md5)) {
            s3d_fail(r, "InvalidDigest", "The Content-MD5 you specified was invalid.");
            return false;
        }
        if (memcmp(b.ptr, md5, sizeof(md5)) != 0) {
            s3d_fail(
                r, "BadDigest", "The Content-MD5 you specified did not match what we received.");
            return false;
        }
        return true;
    }
    for (size_t i = 0; i < r->http.n_headers; i++) {
        if (xf_str_eq_nocase(xf_str_sub(r->http.headers[i].name, 0, 15),
                             XF_STR_LIT("x-amz-checksum-"))) {
            return true;
        }
    }
    s3d_fail(r, "InvalidRequest", "Missing required header for this request: Content-MD5");
    return false;
}

void s3d_delete_many(struct s3d_req *r)
{
    struct s3d_xml_doc doc;
    struct xf_buf *out = &r->resp.body;

    if (!body_is_guarded(r)) {
        return;
    }
    bool ok = s3d_xml_parse(S3D_XML_DELETE, xf_buf_view(&r->small), &doc);
    if (!ok || doc.n_pairs == 0 || doc.n_pairs > 1000) {
        s3d_fail(r,
                 "MalformedXML",
                 "The XML you provided was not well-formed or did not validate against our "
                 "published schema");
        s3d_xml_doc_fini(&doc);
        return;
    }
    s3d_ok(r, 200, true);
    xf_buf_put_c(out, "<DeleteResult" S3D_XML_NS ">");
    for (size_t i = 0; i < doc.n_pairs; i++) {
        (void)s3d_bucket_delete(r->b, doc.pairs[i].key); /* an absent key is fine, too */
        if (!doc.quiet) {
            xf_buf_put_c(out, "<Deleted>");
            s3d_xml_tag(out, "Key", doc.pairs[i].key);
            xf_buf_put_c(out, "</Deleted>");
        }
    }
    xf_buf_put_c(out, "</DeleteResult>");
    s3d_xml_doc_fini(&doc);
}

typedef void(handler_fn)(struct s3d_req *r);

static handler_fn *const handlers[S3D_OP_N] = {
    [S3D_OP_LIST_BUCKETS] = s3d_bucket_op,
    [S3D_OP_CREATE_BUCKET] = s3d_bucket_op,
    [S3D_OP_HEAD_BUCKET] = s3d_bucket_op,
    [S3D_OP_DELETE_BUCKET] = s3d_bucket_op,
    [S3D_OP_BUCKET_LOCATION] = s3d_bucket_op,
    [S3D_OP_BUCKET_VERSIONING] = s3d_bucket_op,
    [S3D_OP_LIST_V2] = s3d_list_objects,
    [S3D_OP_LIST_V1] = s3d_list_objects,
    [S3D_OP_LIST_UPLOADS] = s3d_list_uploads,
    [S3D_OP_DELETE_MANY] = s3d_delete_many,
    [S3D_OP_PUT] = s3d_put_object,
    [S3D_OP_GET] = s3d_get_object,
    [S3D_OP_HEAD] = s3d_get_object,
    [S3D_OP_COPY] = s3d_copy_object,
    [S3D_OP_DELETE] = s3d_delete_object,
    [S3D_OP_GET_TAGS] = s3d_get_tags,
    [S3D_OP_PUT_TAGS] = s3d_put_tags,
    [S3D_OP_DELETE_TAGS] = s3d_delete_tags,
    [S3D_OP_GET_ACL] = s3d_get_acl,
    [S3D_OP_OWNERSHIP] = s3d_get_ownership,
    [S3D_OP_LOCK_CONF] = s3d_get_lock_conf,
    [S3D_OP_PUT_LOCK] = s3d_put_lock,
    [S3D_OP_CREATE_UPLOAD] = s3d_create_upload,
    [S3D_OP_UPLOAD_PART] = s3d_upload_part,
    [S3D_OP_COPY_PART] = s3d_copy_part,
    [S3D_OP_COMPLETE] = s3d_complete_upload,
    [S3D_OP_ABORT] = s3d_abort_upload,
    [S3D_OP_LIST_PARTS] = s3d_list_parts,
    [S3D_OP_OTHER] = s3d_bucket_op,
};

void s3d_handle(struct s3d_req *r)
{
    handlers[r->op](r);
}
