/* req.c - what handlers share: parameters, errors, long hashes. */
#include "tests/s3d/req.h"

#include "tests/s3d/xml.h"

enum { HASH_AT_ONCE = 256 * 1024 };

bool s3d_req_query(const struct s3d_req *r, const char *name, struct xf_str *value)
{
    return s3d_query_get(r->params, r->n_params, name, value);
}

bool s3d_req_cond(const struct s3d_req *r, const char *name, struct xf_str *value)
{
    return !r->act.ignore_conditions && s3d_http_get(&r->http, name, value);
}

void s3d_req_hash(struct s3d_req *r,
                  struct s3d_body *b,
                  enum s3d_sum_alg sum,
                  void (*done)(struct s3d_req *r))
{
    s3d_hash_init(&r->hash, b, sum);
    r->hashing = true;
    r->resume = done;
    if (s3d_hash_step(&r->hash, HASH_AT_ONCE)) {
        r->resume = NULL;
        done(r);
    }
}

void s3d_req_release(struct s3d_req *r)
{
    if (r->hashing) {
        s3d_hash_fini(&r->hash);
        r->hashing = false;
    }
    r->resume = NULL;
    if (r->obj_on) {
        s3d_obj_fini(&r->obj);
        r->obj_on = false;
    }
    if (r->part_on) {
        s3d_body_unref(r->part.body);
        r->part_on = false;
    }
    s3d_attrs_unref(r->part_attrs);
    r->part_attrs = NULL;
    if (r->intake_on) {
        s3d_intake_fini(&r->intake);
        r->intake_on = false;
    }
    s3d_bucket_unref(r->b);
    r->b = NULL;
    s3d_body_unref(r->resp.data);
    r->resp.data = NULL;
    if (r->resp.more_free != NULL) {
        r->resp.more_free(r->resp.more_arg);
    }
    r->resp.more = NULL;
    r->resp.more_free = NULL;
    s3d_rule_unref(r->rule);
    r->rule = NULL;
}

void s3d_ok(struct s3d_req *r, int status, bool xml)
{
    r->resp.status = status;
    r->resp.content_type = xml ? "application/xml" : NULL;
    xf_buf_reset(&r->resp.body);
    if (xml) {
        xf_buf_put_c(&r->resp.body, S3D_XML_HEAD);
    }
}

void s3d_fail_status(
    struct s3d_req *r, int status, const char *code, const char *message, struct xf_str extra)
{
    struct xf_buf *out = &r->resp.body;

    s3d_body_unref(r->resp.data);
    r->resp.data = NULL;
    r->resp.has_length = false;
    xf_buf_reset(&r->resp.headers);
    s3d_ok(r, status, true);
    if (r->http.method == S3D_HEAD) {
        xf_buf_reset(out);
        return;
    }
    xf_buf_put_c(out, "<Error>");
    s3d_xml_tag(out, "Code", xf_str_c(code));
    s3d_xml_tag(out, "Message", xf_str_c(message));
    if (r->key.len > 0) {
        s3d_xml_tag(out, "Key", r->key);
    }
    if (r->bucket.len > 0) {
        s3d_xml_tag(out, "BucketName", r->bucket);
    }
    xf_buf_put(out, extra);
    xf_buf_putf(out,
                "<RequestId>%016llX</RequestId><HostId>s3d</HostId></Error>",
                (unsigned long long)r->id);
}

void s3d_fail_extra(struct s3d_req *r, const char *code, const char *message, struct xf_str extra)
{
    s3d_fail_status(r, s3d_error_status(code), code, message, extra);
}

void s3d_fail(struct s3d_req *r, const char *code, const char *message)
{
    s3d_fail_extra(r, code, message, XF_STR_EMPTY);
}
