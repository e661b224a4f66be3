/* put.c - object data coming in: digests, conditions, PutObject. */
#include "tests/s3d/context.h"
#include "tests/s3d/guards.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <stdio.h>

/* The one checksum header of a request; false when it is wrong. */
static bool announced_sum(struct s3d_req *r, enum s3d_sum_alg *alg, struct xf_str *value)
{
    struct xf_str trailer = s3d_http_value(&r->http, "x-amz-trailer");
    size_t found = 0;
    char name[48];

    *alg = S3D_SUM_NONE;
    *value = XF_STR_EMPTY;
    for (int i = S3D_SUM_NONE + 1; i < S3D_SUM_N; i++) {
        (void)snprintf(name, sizeof(name), "x-amz-checksum-%s", s3d_sum_name((enum s3d_sum_alg)i));
        struct xf_str v;
        if (s3d_http_get(&r->http, name, &v)) {
            *alg = (enum s3d_sum_alg)i;
            *value = v;
            found++;
        }
        if (xf_str_eq_nocase(trailer, xf_str_c(name))) {
            *alg = (enum s3d_sum_alg)i;
            found++;
        }
    }
    if (found > 1) {
        s3d_fail(
            r,
            "InvalidRequest",
            "Expecting a single x-amz-checksum- header. Multiple checksum Types are not allowed.");
        return false;
    }
    return true;
}

static bool declared_size(struct s3d_req *r, uint64_t *size)
{
    struct xf_str v;

    r->has_decoded_length = false;
    if (r->aws_on) {
        if (!s3d_http_get(&r->http, "x-amz-decoded-content-length", &v) || !xf_str_u64(v, size)) {
            s3d_fail(r,
                     "MissingContentLength",
                     "You must provide the x-amz-decoded-content-length HTTP header.");
            return false;
        }
        r->has_decoded_length = true;
        r->decoded_length = *size;
        return true;
    }
    if (!r->http.has_length) {
        s3d_fail(r, "MissingContentLength", "You must provide the Content-Length HTTP header.");
        return false;
    }
    *size = r->http.content_length;
    return true;
}

/* The algorithm of the upload that a part belongs to. */
static enum s3d_sum_alg upload_alg(struct s3d_req *r)
{
    struct xf_str id = XF_STR_EMPTY;
    enum s3d_sum_alg alg = S3D_SUM_NONE;

    if (!s3d_req_query(r, "uploadId", &id)) {
        return alg;
    }
    XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
    const struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, id, false);
    if (u != NULL) {
        alg = u->sum_alg;
    }
    XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
    return alg;
}

bool s3d_data_begin(struct s3d_req *r)
{
    struct s3d_intake_opts o = {.drop = r->server->opts.discard};
    struct xf_str value;
    enum s3d_payload p = r->auth.payload;

    r->aws_on = p == S3D_PAYLOAD_CHUNKS || p == S3D_PAYLOAD_CHUNKS_TRAILER ||
                p == S3D_PAYLOAD_UNSIGNED_TRAILER;
    if (!announced_sum(r, &o.sum, &value) || !declared_size(r, &o.size_hint)) {
        return false;
    }
    if (o.size_hint > S3D_SINGLE_MAX || o.size_hint > r->server->opts.max_object) {
        s3d_fail(r, "EntityTooLarge", "Your proposed upload exceeds the maximum allowed size");
        return false;
    }
    if (r->op == S3D_OP_UPLOAD_PART && o.sum == S3D_SUM_NONE) {
        o.sum = upload_alg(r);
    }
    o.want_sha256 = p == S3D_PAYLOAD_HASH;
    s3d_intake_init(&r->intake, &o);
    r->intake_on = true;
    if (r->aws_on) {
        const struct s3d_auth *auth =
            r->auth.checked && p != S3D_PAYLOAD_UNSIGNED_TRAILER ? &r->auth : NULL;
        s3d_chunked_init(&r->aws, auth, p == S3D_PAYLOAD_CHUNKS_TRAILER);
    }
    return true;
}

static bool content_md5(struct s3d_req *r, const uint8_t md5[S3D_MD5_LEN])
{
    struct xf_str v;
    XF_AUTO_BUF b = {0};

    if (!s3d_http_get(&r->http, "Content-MD5", &v)) {
        return true;
    }
    xf_buf_init(&b, 0);
    if (!xf_buf_put_unbase64(&b, v) || b.len != S3D_MD5_LEN) {
        s3d_fail(r, "InvalidDigest", "The Content-MD5 you specified was invalid.");
        return false;
    }
    if (memcmp(b.ptr, md5, S3D_MD5_LEN) != 0) {
        s3d_fail(r, "BadDigest", "The Content-MD5 you specified did not match what we received.");
        return false;
    }
    return true;
}

static bool check_sum(struct s3d_req *r, const uint8_t *sum, size_t len)
{
    enum s3d_sum_alg alg;
    struct xf_str v;
    XF_AUTO_BUF b = {0};

    if (!announced_sum(r, &alg, &v)) {
        return false;
    }
    struct xf_str trailer = s3d_http_value(&r->http, "x-amz-trailer");
    if (trailer.len > 0) {
        v = s3d_chunked_trailer(&r->aws, trailer);
        if (v.len == 0) {
            s3d_fail(r,
                     "IncompleteBody",
                     "The request body terminated unexpectedly: a trailer is missing");
            return false;
        }
    }
    if (alg == S3D_SUM_NONE || v.len == 0) {
        return true;
    }
    xf_buf_init(&b, 0);
    if (!xf_buf_put_unbase64(&b, v) || b.len != s3d_sum_len(alg)) {
        s3d_fail(r, "InvalidRequest", "Value for x-amz-checksum- header is invalid.");
        return false;
    }
    if (b.len != len || memcmp(b.ptr, sum, len) != 0) {
        s3d_fail(
            r, "BadDigest", "The checksum you specified did not match the calculated checksum.");
        return false;
    }
    return true;
}

bool s3d_data_end(struct s3d_req *r,
                  struct s3d_body **body,
                  uint8_t md5[S3D_MD5_LEN],
                  uint8_t sum[S3D_SUM_MAX])
{
    uint8_t sha[S3D_SHA256_LEN];

    if (r->intake.want_sha256) {
        (void)SHA256_Final(sha, &r->intake.sha256);
        if (memcmp(sha, r->auth.sha256, sizeof(sha)) != 0) {
            s3d_fail(
                r,
                "XAmzContentSHA256Mismatch",
                "The provided 'x-amz-content-sha256' header does not match what was computed.");
            return false;
        }
    }
    if (r->has_decoded_length && r->intake.size != r->decoded_length) {
        s3d_fail(
            r, "IncompleteBody", "The body has not the length of x-amz-decoded-content-length");
        return false;
    }
    size_t sum_len = r->intake.sum.alg == S3D_SUM_NONE ? 0 : s3d_sum_final(&r->intake.sum, sum);
    if (!check_sum(r, sum, sum_len)) {
        return false;
    }
    *body = s3d_intake_finish(&r->intake, md5);
    r->intake_on = false;
    if (!content_md5(r, md5)) {
        s3d_body_unref(*body);
        *body = NULL;
        return false;
    }
    return true;
}

bool s3d_write_cond(struct s3d_req *r, struct s3d_put_cond *cond)
{
    struct xf_str v;

    memset(cond, 0, sizeof(*cond));
    if (s3d_req_cond(r, "If-None-Match", &v)) {
        if (!xf_str_eq_c(v, "*")) {
            s3d_fail(r,
                     "NotImplemented",
                     "A header you provided implies functionality that is not supported: "
                     "If-None-Match");
            return false;
        }
        cond->if_absent = true;
    }
    if (s3d_req_cond(r, "If-Match", &v)) {
        if (cond->if_absent || xf_str_eq_c(v, "*")) {
            s3d_fail(r,
                     "NotImplemented",
                     "A header you provided implies functionality that is not supported: If-Match");
            return false;
        }
        cond->if_match = v;
    }
    return true;
}

bool s3d_store_object(struct s3d_req *r, const struct s3d_put_cond *cond)
{
    struct s3d_obj o = r->obj;

    r->obj_on = false;            /* the references go in, or are dropped there */
    (void)s3d_attrs_ref(o.attrs); /* r->obj stays good for the answer */
    if ((o.flags & S3D_OBJ_GEN) == 0) {
        (void)s3d_body_ref(o.u.body);
    }
    enum s3d_put rc = s3d_bucket_put(r->b, r->key, &o, cond, true);
    r->obj_on = true;
    if (rc == S3D_PUT_MISSING) {
        s3d_fail(r, "NoSuchKey", "The specified key does not exist.");
        return false;
    }
    if (rc == S3D_PUT_FAILED) {
        s3d_fail_extra(r,
                       "PreconditionFailed",
                       "At least one of the pre-conditions you specified did not hold",
                       cond->if_absent ? XF_STR_LIT("<Condition>If-None-Match</Condition>")
                                       : XF_STR_LIT("<Condition>If-Match</Condition>"));
        return false;
    }
    return true;
}

void s3d_obj_spoil(struct s3d_req *r, struct s3d_obj *o)
{
    struct s3d_body *b = s3d_obj_body(o);
    struct s3d_body *spoiled = NULL;

    if (r->act.store_size != S3D_UNSET && (uint64_t)r->act.store_size < o->size) {
        spoiled = s3d_body_slice(b, 0, (uint64_t)r->act.store_size);
    } else if (r->act.corrupt) {
        spoiled = s3d_body_corrupt(b);
    }
    if (spoiled != NULL) {
        if ((o->flags & S3D_OBJ_GEN) == 0) {
            s3d_body_unref(o->u.body);
        }
        o->flags = (uint16_t)(o->flags & ~S3D_OBJ_GEN);
        o->u.body = spoiled;
        o->size = s3d_body_size(spoiled);
    }
    if (r->act.kms) {
        s3d_md5(o->md5, sizeof(o->md5), o->md5);
        o->n_parts = 0;
        o->flags |= S3D_OBJ_KMS;
    }
    s3d_body_unref(b);
}

void s3d_etag_shown(struct s3d_req *r, const struct s3d_obj *o, char out[S3D_ETAG_MAX * 2])
{
    if (r->act.etag != NULL) {
        (void)snprintf(out, (size_t)S3D_ETAG_MAX * 2, "%s", r->act.etag);
    } else {
        s3d_obj_etag(o, out);
    }
}

void s3d_etag_header(struct s3d_req *r, const struct s3d_obj *o)
{
    char etag[S3D_ETAG_MAX * 2];

    s3d_etag_shown(r, o, etag);
    xf_buf_put_c(&r->resp.headers, "ETag: ");
    xf_buf_put_c(&r->resp.headers, etag);
    xf_buf_put_c(&r->resp.headers, "\r\n");
    if (o->attrs != NULL && o->attrs->sse.len > 0) {
        xf_buf_put(&r->resp.headers, o->attrs->sse);
    } else if ((o->flags & S3D_OBJ_KMS) != 0) {
        xf_buf_put_c(&r->resp.headers,
                     "x-amz-server-side-encryption: aws:kms\r\n"
                     "x-amz-server-side-encryption-aws-kms-key-id: "
                     "arn:aws:kms:us-east-1:123456789012:key/s3d\r\n");
    }
}

void s3d_put_object(struct s3d_req *r)
{
    struct s3d_put_cond cond;
    struct s3d_attrs_src src = {0};
    struct s3d_fail fail;
    struct s3d_body *body;
    uint8_t md5[S3D_MD5_LEN];
    uint8_t sum[S3D_SUM_MAX];
    enum s3d_sum_alg alg = r->intake.sum.alg;
    XF_AUTO_BUF headers = {0};
    XF_AUTO_BUF tags = {0};
    XF_AUTO_BUF b64 = {0};
    S3D_AUTO_GUARDS guards = {0};

    xf_buf_init(&headers, 0);
    xf_buf_init(&tags, 0);
    xf_buf_init(&b64, 0);
    if (!s3d_guards_take(r, &guards, &src) || !s3d_write_cond(r, &cond) ||
        !s3d_data_end(r, &body, md5, sum)) {
        return;
    }
    memset(&r->obj, 0, sizeof(r->obj));
    memcpy(r->obj.md5, md5, sizeof(md5));
    r->obj.u.body = body;
    r->obj.size = s3d_body_size(body);
    r->obj.mtime_s = (uint32_t)(r->wall_ms / 1000);
    r->obj_on = true;
    if (!s3d_attrs_headers(&r->http, &headers, &fail) || !s3d_attrs_class(&r->http, &src, &fail) ||
        !s3d_attrs_tags(s3d_http_value(&r->http, "x-amz-tagging"), &tags, &src.n_tags, &fail)) {
        s3d_fail(r, fail.code, fail.message);
        return;
    }
    src.headers = xf_buf_view(&headers);
    src.tags = xf_buf_view(&tags);
    src.sum_alg = alg;
    if (alg != S3D_SUM_NONE) {
        xf_buf_put_base64(&b64, sum, s3d_sum_len(alg));
        src.sum = xf_buf_view(&b64);
    }
    r->obj.attrs = s3d_attrs_new(&src);
    s3d_obj_spoil(r, &r->obj);
    if (!s3d_store_object(r, &cond)) {
        return;
    }
    s3d_ok(r, 200, false);
    s3d_etag_header(r, &r->obj);
    if (alg != S3D_SUM_NONE) {
        xf_buf_putf(&r->resp.headers, "x-amz-checksum-%s: %s\r\n", s3d_sum_name(alg), b64.ptr);
        xf_buf_put_c(&r->resp.headers, "x-amz-checksum-type: FULL_OBJECT\r\n");
    }
}
