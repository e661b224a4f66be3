/* guards.c - ACL, encryption, object lock and requester pays, as far as headers go. */
#include "tests/s3d/guards.h"

#include "common/base/clock.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <stdatomic.h>
#include <stdio.h>

#define SSE    "x-amz-server-side-encryption"
#define LOCK   "x-amz-object-lock-"
#define SOURCE "x-amz-copy-source-server-side-encryption-customer-"

void s3d_guards_fini(struct s3d_guards *g)
{
    xf_buf_fini(&g->sse);
    xf_buf_fini(&g->lock);
}

bool s3d_guards_asked(const struct s3d_http *h)
{
    static const char *const prefixes[] = {SSE, LOCK, "x-amz-acl", "x-amz-grant-"};

    for (size_t i = 0; i < h->n_headers; i++) {
        struct xf_str name = h->headers[i].name;
        for (size_t k = 0; k < XF_ARRAY_LEN(prefixes); k++) {
            if (xf_str_eq_nocase(xf_str_sub(name, 0, strlen(prefixes[k])), xf_str_c(prefixes[k]))) {
                return true;
            }
        }
    }
    return false;
}

static bool refuse(struct s3d_req *r, const char *code, const char *message)
{
    s3d_fail(r, code, message);
    return false;
}

static void line(struct xf_buf *out, const char *name, struct xf_str value)
{
    xf_buf_putf(out, "%s: %.*s\r\n", name, XF_STR_ARG(value));
}

static bool is_one_of(struct xf_str v, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (xf_str_eq_c(v, names[i])) {
            return true;
        }
    }
    return false;
}

/* ---- encryption ---- */

struct customer {
    struct xf_str algorithm;
    struct xf_str key;
    struct xf_str md5;
};

static bool read_customer(const struct s3d_http *h, const char *prefix, struct customer *c)
{
    char name[96];

    (void)snprintf(name, sizeof(name), "%salgorithm", prefix);
    c->algorithm = s3d_http_value(h, name);
    (void)snprintf(name, sizeof(name), "%skey", prefix);
    c->key = s3d_http_value(h, name);
    (void)snprintf(name, sizeof(name), "%skey-md5", prefix);
    c->md5 = s3d_http_value(h, name);
    return c->algorithm.len + c->key.len + c->md5.len > 0;
}

static bool check_customer(struct s3d_req *r, const struct customer *c)
{
    uint8_t md5[S3D_MD5_LEN];
    XF_AUTO_BUF key = {0};
    XF_AUTO_BUF text = {0};

    if (!xf_str_eq_c(c->algorithm, "AES256")) {
        return refuse(r, "InvalidArgument", "The customer encryption algorithm is not valid");
    }
    if (!xf_buf_put_unbase64(&key, c->key) || key.len != 32) {
        return refuse(r, "InvalidArgument", "The secret key was invalid for the algorithm");
    }
    s3d_md5(key.ptr, key.len, md5);
    xf_buf_put_base64(&text, md5, sizeof(md5));
    return xf_str_eq(c->md5, xf_buf_view(&text)) ||
           refuse(r,
                  "InvalidArgument",
                  "The calculated MD5 hash of the key did not match the hash that was provided.");
}

static bool take_customer(struct s3d_req *r, struct s3d_guards *g, struct s3d_attrs_src *src)
{
    struct customer c;

    if (!read_customer(&r->http, SSE "-customer-", &c)) {
        return true;
    }
    if (s3d_http_has(&r->http, SSE)) {
        return refuse(r, "InvalidArgument", "Server Side Encryption with Customer key is mixed");
    }
    if (!check_customer(r, &c)) {
        return false;
    }
    line(&g->sse, SSE "-customer-algorithm", c.algorithm);
    line(&g->sse, SSE "-customer-key-MD5", c.md5);
    src->customer_md5 = c.md5;
    src->kms = true; /* the ETag is no MD5 either */
    return true;
}

static bool take_sse(struct s3d_req *r, struct s3d_guards *g, struct s3d_attrs_src *src)
{
    static const char *const known[] = {"AES256", "aws:kms", "aws:kms:dsse"};
    static const char own_key[] = "arn:aws:kms:us-east-1:123456789012:key/aws-s3";
    struct xf_str key = s3d_http_value(&r->http, SSE "-aws-kms-key-id");
    struct xf_str v;

    if (!s3d_http_get(&r->http, SSE, &v)) {
        return key.len == 0 || refuse(r, "InvalidArgument", "A KMS key needs aws:kms");
    }
    if (!is_one_of(v, known, XF_ARRAY_LEN(known))) {
        return refuse(r, "InvalidArgument", "The encryption method specified is not supported");
    }
    bool is_kms = !xf_str_eq_c(v, "AES256");
    if (key.len > 0 && !is_kms) {
        return refuse(r, "InvalidArgument", "A KMS key needs aws:kms");
    }
    line(&g->sse, SSE, v);
    if (is_kms) {
        line(&g->sse, SSE "-aws-kms-key-id", key.len > 0 ? key : xf_str_c(own_key));
    }
    src->kms = is_kms;
    return true;
}

bool s3d_guards_open(struct s3d_req *r, const struct s3d_attrs *a, bool as_copy_source)
{
    struct customer c;
    bool is_given = read_customer(&r->http, as_copy_source ? SOURCE : SSE "-customer-", &c);
    struct xf_str want = a != NULL ? a->customer_md5 : XF_STR_EMPTY;

    if ((r->op == S3D_OP_GET || r->op == S3D_OP_HEAD) && s3d_http_has(&r->http, SSE)) {
        return refuse(r, "InvalidArgument", "x-amz-server-side-encryption header is not supported");
    }
    if (want.len > 0 && !is_given) {
        return refuse(r,
                      "InvalidRequest",
                      "The object was stored using a form of Server Side Encryption. The correct "
                      "parameters must be provided to retrieve the object.");
    }
    if (want.len == 0 && is_given) {
        return refuse(
            r, "InvalidRequest", "The encryption parameters are not applicable to this object.");
    }
    if (!is_given) {
        return true;
    }
    return check_customer(r, &c) &&
           (xf_str_eq(c.md5, want) || refuse(r, "AccessDenied", "Access Denied: another key"));
}

/* ---- ACL ---- */

static bool take_acl(struct s3d_req *r, struct s3d_attrs_src *src)
{
    static const char *const known[] = {"private",
                                        "public-read",
                                        "public-read-write",
                                        "authenticated-read",
                                        "aws-exec-read",
                                        "bucket-owner-read",
                                        "bucket-owner-full-control"};
    struct xf_str v;

    if (!s3d_http_get(&r->http, "x-amz-acl", &v)) {
        return true;
    }
    if (!is_one_of(v, known, XF_ARRAY_LEN(known))) {
        return refuse(r, "InvalidArgument", "The canned ACL is not valid");
    }
    if (atomic_load(&r->b->no_acls) && !xf_str_eq_c(v, "bucket-owner-full-control")) {
        return refuse(r, "AccessControlListNotSupported", "The bucket does not allow ACLs");
    }
    src->acl = v;
    return true;
}

static void put_grant(struct xf_buf *out, const char *permission, const char *who)
{
    bool is_group = strncmp(who, "http", 4) == 0;

    xf_buf_putf(out,
                "<Grant><Grantee xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
                "xsi:type=\"%s\"><%s>%s</%s></Grantee><Permission>%s</Permission></Grant>",
                is_group ? "Group" : "CanonicalUser",
                is_group ? "URI" : "ID",
                who,
                is_group ? "URI" : "ID",
                permission);
}

void s3d_get_acl(struct s3d_req *r)
{
    static const char all[] = "http://acs.amazonaws.com/groups/global/AllUsers";
    static const char users[] = "http://acs.amazonaws.com/groups/global/AuthenticatedUsers";
    struct s3d_obj o;
    struct s3d_attrs_src a;
    struct xf_buf *out = &r->resp.body;

    if (!s3d_bucket_get(r->b, r->key, &o)) {
        s3d_fail(r, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    s3d_attrs_get(o.attrs, &a);
    s3d_ok(r, 200, true);
    xf_buf_put_c(out,
                 "<AccessControlPolicy" S3D_XML_NS "><Owner><ID>s3d</ID></Owner>"
                 "<AccessControlList>");
    put_grant(out, "FULL_CONTROL", "s3d");
    if (xf_str_starts(a.acl, XF_STR_LIT("public-read"))) {
        put_grant(out, "READ", all);
    }
    if (xf_str_eq_c(a.acl, "public-read-write")) {
        put_grant(out, "WRITE", all);
    }
    if (xf_str_eq_c(a.acl, "authenticated-read")) {
        put_grant(out, "READ", users);
    }
    if (xf_str_eq_c(a.acl, "bucket-owner-read") || xf_str_eq_c(a.acl, "aws-exec-read")) {
        put_grant(out, "READ", "bucket-owner");
    }
    if (xf_str_eq_c(a.acl, "bucket-owner-full-control")) {
        put_grant(out, "FULL_CONTROL", "bucket-owner");
    }
    xf_buf_put_c(out, "</AccessControlList></AccessControlPolicy>");
    s3d_obj_fini(&o);
}

/* ---- lock ---- */

static bool has_digest(const struct s3d_http *h)
{
    for (size_t i = 0; i < h->n_headers; i++) {
        struct xf_str name = h->headers[i].name;
        if (xf_str_eq_nocase(name, XF_STR_LIT("content-md5")) ||
            xf_str_eq_nocase(name, XF_STR_LIT("x-amz-trailer")) ||
            xf_str_eq_nocase(xf_str_sub(name, 0, 15), XF_STR_LIT("x-amz-checksum-"))) {
            return true;
        }
    }
    return false;
}

static bool take_retention(struct s3d_req *r, struct s3d_guards *g)
{
    static const char *const modes[] = {"GOVERNANCE", "COMPLIANCE"};
    struct xf_str mode = s3d_http_value(&r->http, LOCK "mode");
    struct xf_str until = s3d_http_value(&r->http, LOCK "retain-until-date");
    int64_t ms;

    if (mode.len == 0 && until.len == 0) {
        return true;
    }
    if (mode.len == 0 || until.len == 0) {
        return refuse(
            r, "InvalidArgument", LOCK "retain-until-date and " LOCK "mode must both be supplied");
    }
    if (!is_one_of(mode, modes, XF_ARRAY_LEN(modes)) || !xf_time_parse_rfc3339(until, &ms)) {
        return refuse(r, "InvalidArgument", "Unknown wormMode directive or date.");
    }
    if (ms <= r->wall_ms) {
        return refuse(r, "InvalidArgument", "The retain until date must be in the future!");
    }
    line(&g->lock, LOCK "mode", mode);
    line(&g->lock, LOCK "retain-until-date", until);
    return true;
}

static bool take_lock(struct s3d_req *r, struct s3d_guards *g)
{
    struct xf_str hold = s3d_http_value(&r->http, LOCK "legal-hold");

    if (hold.len > 0 && !xf_str_eq_c(hold, "ON") && !xf_str_eq_c(hold, "OFF")) {
        return refuse(r, "InvalidArgument", "Legal Hold must be either of 'ON' or 'OFF'");
    }
    if (!take_retention(r, g)) {
        return false;
    }
    if (hold.len > 0) {
        line(&g->lock, LOCK "legal-hold", hold);
    }
    if (g->lock.len == 0) {
        return true;
    }
    if (!atomic_load(&r->b->object_lock)) {
        return refuse(r, "InvalidRequest", "Bucket is missing Object Lock Configuration");
    }
    if (r->op == S3D_OP_PUT && !has_digest(&r->http)) {
        return refuse(r,
                      "InvalidRequest",
                      "Content-MD5 OR x-amz-checksum- HTTP header is required for Put Object "
                      "requests with Object Lock parameters");
    }
    return true;
}

bool s3d_guards_take(struct s3d_req *r, struct s3d_guards *g, struct s3d_attrs_src *src)
{
    src->kms = false;
    src->customer_md5 = XF_STR_EMPTY;
    src->acl = XF_STR_EMPTY;
    if (s3d_guards_asked(&r->http) && (!take_sse(r, g, src) || !take_customer(r, g, src) ||
                                       !take_acl(r, src) || !take_lock(r, g))) {
        return false;
    }
    src->sse = xf_buf_view(&g->sse);
    src->lock = xf_buf_view(&g->lock);
    r->act.kms = r->act.kms || src->kms; /* from here on as where a rule says so */
    src->kms = r->act.kms;
    return true;
}

void s3d_get_ownership(struct s3d_req *r)
{
    s3d_ok(r, 200, true);
    xf_buf_putf(&r->resp.body,
                "<OwnershipControls" S3D_XML_NS
                "><Rule><ObjectOwnership>%s</ObjectOwnership></Rule>"
                "</OwnershipControls>",
                atomic_load(&r->b->no_acls) ? "BucketOwnerEnforced" : "BucketOwnerPreferred");
}

void s3d_get_lock_conf(struct s3d_req *r)
{
    if (!atomic_load(&r->b->object_lock)) {
        s3d_fail(r,
                 "ObjectLockConfigurationNotFoundError",
                 "Object Lock configuration does not exist for this bucket");
        return;
    }
    s3d_ok(r, 200, true);
    xf_buf_put_c(&r->resp.body,
                 "<ObjectLockConfiguration" S3D_XML_NS "><ObjectLockEnabled>Enabled"
                 "</ObjectLockEnabled></ObjectLockConfiguration>");
}

/* The text of the one element of that name; empty: none. */
static struct xf_str element(struct xf_str xml, const char *name)
{
    char open[64];
    const char *at;

    (void)snprintf(open, sizeof(open), "<%s>", name);
    at = xml.len == 0 ? NULL : memmem(xml.ptr, xml.len, open, strlen(open));
    if (at == NULL) {
        return XF_STR_EMPTY;
    }
    struct xf_str rest = xf_str_sub(xml, (size_t)(at - xml.ptr) + strlen(open), xml.len);
    return xf_str_sub(rest, 0, xf_str_find(rest, '<', 0));
}

static bool new_lock(struct s3d_req *r, struct s3d_guards *g)
{
    struct xf_str xml = xf_buf_view(&r->small);
    struct xf_str mode = element(xml, "Mode");
    struct xf_str until = element(xml, "RetainUntilDate");
    struct xf_str hold = element(xml, "Status");
    struct xf_str v;
    bool is_hold = s3d_req_query(r, "legal-hold", &v);
    int64_t ms;

    if (!has_digest(&r->http)) {
        return refuse(r, "InvalidRequest", "Missing required header for this request: Content-MD5");
    }
    if (!atomic_load(&r->b->object_lock)) {
        return refuse(r, "InvalidRequest", "Bucket is missing Object Lock Configuration");
    }
    if (is_hold ? hold.len == 0 : !xf_time_parse_rfc3339(until, &ms) || ms <= r->wall_ms) {
        return refuse(r, "MalformedXML", "The XML you provided was not well-formed");
    }
    if (is_hold) {
        line(&g->lock, LOCK "legal-hold", hold);
    } else {
        line(&g->lock, LOCK "mode", mode);
        line(&g->lock, LOCK "retain-until-date", until);
    }
    return true;
}

/* The lines that a new retention, or a new hold, does not replace. */
static void keep_other_lock(struct s3d_req *r, struct xf_str lines, struct xf_buf *out)
{
    struct xf_str v;
    bool is_hold = s3d_req_query(r, "legal-hold", &v);
    struct xf_str one;

    while (xf_str_cut(&lines, '\n', &one)) {
        if (one.len > 0 && is_hold != xf_str_starts(one, XF_STR_LIT(LOCK "legal-hold"))) {
            xf_buf_put(out, one);
            xf_buf_put_c(out, "\n");
        }
    }
}

void s3d_put_lock(struct s3d_req *r)
{
    struct s3d_obj o;
    struct s3d_attrs_src a;
    S3D_AUTO_GUARDS g = {0};

    if (!s3d_bucket_get(r->b, r->key, &o)) {
        s3d_fail(r, "NoSuchKey", "The specified key does not exist.");
        return;
    }
    s3d_attrs_get(o.attrs, &a);
    keep_other_lock(r, a.lock, &g.lock);
    if (new_lock(r, &g)) {
        a.lock = xf_buf_view(&g.lock);
        (void)s3d_bucket_set_attrs(r->b, r->key, s3d_attrs_new(&a)); /* gone meanwhile is fine */
        s3d_ok(r, 200, false);
    }
    s3d_obj_fini(&o);
}

/* ---- requester pays ---- */

bool s3d_guards_paid(struct s3d_req *r, const struct s3d_bucket *b)
{
    if (!atomic_load(&b->requester_pays) ||
        xf_str_eq_c(s3d_http_value(&r->http, "x-amz-request-payer"), "requester")) {
        return true;
    }
    return refuse(r, "AccessDenied", "Access Denied: the bucket's requester pays");
}
