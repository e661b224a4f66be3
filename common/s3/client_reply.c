/*
 * client_reply.c - an answer's head, body and end: what came, and what it means for the operation.
 *
 * A 2xx is a success only when the body is what the operation's success looks like: copies,
 * Complete, Create and listings need their own root element, whole; a GET needs exactly the bytes
 * that were asked for.
 */
#include "common/s3/client_int.h"
#include "common/s3/plan.h"

void xf_client_reply_drop(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;

    if (req->xml == NULL) {
        return;
    }
    xf_xml_reset(req->xml);
    if (s3->n_xml < XF_CLIENT_XML_MAX) {
        s3->xml[s3->n_xml++] = req->xml;
    } else {
        xf_xml_free(req->xml);
    }
    req->xml = NULL;
}

void xf_client_reply_reset(struct xf_s3_req *req)
{
    xf_client_reply_drop(req);
    req->xml_bad = false;
    req->is_error = false;
    req->body_bytes = 0;
    req->expect_bytes = XF_HTTP_SIZE_UNKNOWN;
    req->header_code = XF_STR_EMPTY;
    req->location = XF_STR_EMPTY;
    req->is_composite = false;
    xf_err_clear(&req->own);
    req->res = (struct xf_s3_result){
        .op = req->op,
        .retry_after_ms = -1,
        .size = XF_HTTP_SIZE_UNKNOWN,
    };
}

/* ---- head ---- */

/* Seconds or an HTTP date; milliseconds in Amazon's own header. */
static int64_t retry_after(struct xf_str text, bool is_ms, int64_t server_date_ms)
{
    uint64_t n = 0;
    int64_t at_ms = 0;

    if (xf_str_u64(text, &n)) {
        n = is_ms ? n : n > UINT32_MAX ? UINT32_MAX : n * 1000;
        return n > UINT32_MAX ? (int64_t)UINT32_MAX : (int64_t)n;
    }
    if (!is_ms && server_date_ms != 0 && xf_time_parse_http(text, &at_ms)) {
        return at_ms > server_date_ms ? at_ms - server_date_ms : 0;
    }
    return -1;
}

/* x-amz-checksum-*: a value, the algorithm of an upload, or what kind of sum it is. */
static void read_sum(struct xf_s3_req *req, const struct xf_http_header *h)
{
    static const struct xf_str prefix = {"x-amz-checksum-", 15};
    struct xf_str rest = xf_str_sub(h->name, prefix.len, h->name.len);
    struct xf_sum sum;

    if (xf_str_eq_c(rest, "type")) {
        req->is_composite = xf_str_eq_nocase(h->value, XF_STR_LIT("COMPOSITE"));
    } else if (xf_str_eq_c(rest, "algorithm")) {
        req->res.sum.alg = xf_sum_by_name(h->value);
    } else if (xf_sum_parse(xf_sum_by_name(rest), h->value, &sum)) {
        req->res.sum = sum;
    }
}

static void read_header(struct xf_s3_req *req, const struct xf_http_header *h)
{
    struct xf_s3_result *res = &req->res;

    if (xf_str_eq_c(h->name, "etag")) {
        res->etag_raw = h->value;
        res->etag = xf_plan_etag_bare(h->value);
    } else if (xf_str_starts(h->name, XF_STR_LIT("x-amz-checksum-"))) {
        read_sum(req, h);
    } else if (xf_str_eq_c(h->name, "x-amz-request-id")) {
        res->request_id = h->value;
    } else if (xf_str_eq_c(h->name, "date")) {
        (void)xf_time_parse_http(h->value, &res->server_date_ms); /* stays 0 */
    } else if (xf_str_eq_c(h->name, "last-modified")) {
        (void)xf_time_parse_http(h->value, &res->modified_ms); /* stays 0 */
    } else if (xf_str_eq_c(h->name, "x-amz-version-id")) {
        res->version_id = h->value;
    } else if (xf_str_eq_c(h->name, "x-amz-bucket-region")) {
        res->region = h->value;
    } else if (xf_str_eq_c(h->name, "location")) {
        req->location = h->value;
    } else if (xf_str_eq_c(h->name, "x-amz-delete-marker")) {
        res->is_delete_marker = xf_str_eq_nocase(h->value, XF_STR_LIT("true"));
    } else if (xf_str_eq_c(h->name, "x-amz-server-side-encryption")) {
        res->is_encrypted = h->value.len > 0;
        res->etag_is_opaque = res->etag_is_opaque || xf_str_starts(h->value, XF_STR_LIT("aws:kms"));
    } else if (xf_str_eq_c(h->name, "x-amz-server-side-encryption-customer-algorithm")) {
        res->etag_is_opaque = true;
    } else if (xf_str_eq_c(h->name, "x-amz-error-code") ||
               xf_str_eq_c(h->name, "x-rgw-error-code") ||
               xf_str_eq_c(h->name, "x-minio-error-code")) {
        req->header_code = h->value;
    }
}

static void read_retry_after(struct xf_s3_req *req, const struct xf_http_head *head)
{
    struct xf_str value;

    if (xf_http_head_get(head, "x-amz-retry-after", &value)) {
        req->res.retry_after_ms = retry_after(value, true, 0);
    } else if (xf_http_head_get(head, "retry-after", &value)) {
        req->res.retry_after_ms = retry_after(value, false, req->res.server_date_ms);
    }
}

/* "bytes a-b/total" */
static bool
parse_content_range(struct xf_str text, uint64_t *first, uint64_t *last, uint64_t *total)
{
    struct xf_str rest;
    struct xf_str head;

    if (!xf_str_starts(text, XF_STR_LIT("bytes "))) {
        return false;
    }
    rest = xf_str_sub(text, 6, text.len);
    return xf_str_cut(&rest, '-', &head) && xf_str_u64(head, first) &&
           xf_str_cut(&rest, '/', &head) && xf_str_u64(head, last) && xf_str_u64(rest, total);
}

#define REJECT(req, code, ...) ((void)XF_FAIL(&(req)->own, (code), __VA_ARGS__), false)

static bool check_range(struct xf_s3_req *req, const struct xf_http_head *head)
{
    const struct xf_client_want *w = &req->want;
    struct xf_str value;
    uint64_t first = 0;
    uint64_t last = 0;
    uint64_t total = 0;

    if (head->status == 200) {
        /* Range ignored: right only when the range was the whole object. */
        if (w->offset != 0 || w->object_size != w->len) {
            return REJECT(req, XF_E_XML, "service ignored the range");
        }
        return true;
    }
    if (!xf_http_head_get(head, "content-range", &value) ||
        !parse_content_range(value, &first, &last, &total)) {
        return REJECT(req, XF_E_XML, "answer to a range has no usable Content-Range");
    }
    if (w->object_size != XF_HTTP_SIZE_UNKNOWN && total != w->object_size) {
        return REJECT(req,
                      XF_E_CHANGED,
                      "object has %llu bytes now, not %llu",
                      (unsigned long long)total,
                      (unsigned long long)w->object_size);
    }
    if (first != w->offset || last < first || last - first + 1 != w->len) {
        return REJECT(req,
                      XF_E_XML,
                      "asked for bytes %llu-%llu, got %llu-%llu",
                      (unsigned long long)w->offset,
                      (unsigned long long)(w->offset + w->len - 1),
                      (unsigned long long)first,
                      (unsigned long long)last);
    }
    req->res.size = total;
    return true;
}

/* Is this 2xx of a GET what was asked for? */
static bool check_get(struct xf_s3_req *req, const struct xf_http_head *head)
{
    const struct xf_client_want *w = &req->want;
    uint64_t expect = w->is_ranged ? w->len : w->object_size;

    if (head->status != 200 && (head->status != 206 || !w->is_ranged)) {
        return REJECT(req, XF_E_XML, "status %d is no answer to a GET", head->status);
    }
    if (w->if_match.len > 0 && req->res.etag.len > 0 &&
        !xf_plan_etag_eq(w->if_match, req->res.etag)) {
        return REJECT(req,
                      XF_E_CHANGED,
                      "etag is '%.*s', not '%.*s'",
                      XF_STR_ARG(req->res.etag),
                      XF_STR_ARG(w->if_match));
    }
    if (w->is_ranged && !check_range(req, head)) {
        return false;
    }
    if (!w->is_ranged) {
        req->res.size = head->content_length;
    }
    if (expect == XF_HTTP_SIZE_UNKNOWN) {
        expect = head->content_length;
    } else if (head->content_length != XF_HTTP_SIZE_UNKNOWN && head->content_length != expect) {
        return REJECT(req,
                      w->is_ranged ? XF_E_TRUNCATED : XF_E_CHANGED,
                      "answer announces %llu bytes, not %llu",
                      (unsigned long long)head->content_length,
                      (unsigned long long)expect);
    }
    if (req->res.size == XF_HTTP_SIZE_UNKNOWN) {
        req->res.size = w->object_size;
    }
    req->expect_bytes = expect;
    return true;
}

static void read_head_size(struct xf_s3_req *req, const struct xf_http_head *head)
{
    if (req->op == XF_S3_HEAD && head->status / 100 == 2) {
        req->res.size = head->content_length;
    }
}

enum xf_http_flow xf_client_reply_head(void *arg, const struct xf_http_head *head)
{
    struct xf_s3_req *req = arg;
    struct xf_s3_result *res = &req->res;

    res->status = head->status;
    for (size_t i = 0; i < head->n_headers; i++) {
        read_header(req, &head->headers[i]);
    }
    res->sum.is_composite = res->sum.is_composite || req->is_composite;
    req->is_error = head->status / 100 != 2;
    if (req->is_error) {
        read_retry_after(req, head);
        return XF_HTTP_GO;
    }
    if (req->op == XF_S3_HEAD || req->op == XF_S3_GET) {
        xf_s3_attrs_read(&req->attrs,
                         head,
                         xf_arena_calloc(&req->arena, XF_S3_META_MAX, sizeof(struct xf_s3_meta)));
        res->attrs = &req->attrs;
        read_head_size(req, head);
    }
    if (req->op != XF_S3_GET) {
        return XF_HTTP_GO;
    }
    if (!check_get(req, head)) {
        return XF_HTTP_STOP;
    }
    return req->sink.on_head != NULL ? req->sink.on_head(req->sink.arg, res) : XF_HTTP_GO;
}

/* ---- body ---- */

static enum xf_http_flow to_sink(struct xf_s3_req *req, const char *data, size_t len)
{
    enum xf_http_flow flow = XF_HTTP_GO;

    if (req->expect_bytes != XF_HTTP_SIZE_UNKNOWN && len > req->expect_bytes - req->body_bytes) {
        (void)XF_FAIL(&req->own,
                      XF_E_TRUNCATED,
                      "got more than the expected %llu bytes",
                      (unsigned long long)req->expect_bytes);
        return XF_HTTP_STOP;
    }
    if (req->sink.on_data != NULL) {
        flow = req->sink.on_data(req->sink.arg, data, len);
    }
    req->body_bytes += flow == XF_HTTP_GO ? len : 0;
    return flow;
}

enum xf_http_flow xf_client_reply_data(void *arg, const char *data, size_t len)
{
    struct xf_s3_req *req = arg;
    struct xf_s3 *s3 = req->s3;
    struct xf_err err;

    if (req->op == XF_S3_GET && !req->is_error) {
        return to_sink(req, data, len);
    }
    req->body_bytes += len;
    if (req->body_bytes > XF_XML_BODY_MAX) {
        (void)XF_FAIL(&req->own, XF_E_XML, "answer is larger than %u bytes", XF_XML_BODY_MAX);
        return XF_HTTP_STOP;
    }
    if (req->xml == NULL) {
        req->xml = s3->n_xml > 0 ? s3->xml[--s3->n_xml] : xf_xml_new();
    }
    /* A body that is no XML is not an error yet: the status decides what it was worth. */
    if (!req->xml_bad) {
        req->xml_bad = xf_xml_feed(req->xml, data, len, &err) != XF_OK;
    }
    return XF_HTTP_GO;
}

/* ---- end ---- */

/* Close the document; NULL when there is none or it is not whole. */
static const struct xf_xml_doc *finish_xml(struct xf_s3_req *req, struct xf_err *err)
{
    if (req->xml == NULL || req->body_bytes == 0) {
        (void)XF_FAIL(err, XF_E_XML, "answer has no body");
        return NULL;
    }
    return xf_xml_finish(req->xml, err) == XF_OK ? xf_xml_doc(req->xml) : NULL;
}

static bool names_other_region(const struct xf_s3_req *req)
{
    struct xf_str region = req->res.region;

    return region.len > 0 && !xf_str_eq_c(region, xf_client_region(req));
}

/* An error answer: status, code and message into the result. */
static void set_service_error(struct xf_s3_req *req, const struct xf_xml_doc *doc)
{
    struct xf_s3_result *res = &req->res;
    struct xf_s3err_in in = {
        .kind = req->kind,
        .status = res->status,
        .header_code = req->header_code,
        .is_delete_marker = res->is_delete_marker,
    };
    XF_AUTO_BUF text = {.max = XF_ERR_MSG_MAX};

    res->s3_code = req->header_code;
    if (doc != NULL && doc->root == XF_XML_ERROR) {
        in.body = &doc->error;
        res->s3_code = doc->error.code.len > 0 ? doc->error.code : req->header_code;
        res->s3_message = doc->error.message;
        res->request_id = res->request_id.len > 0 ? res->request_id : doc->error.request_id;
        res->region = res->region.len > 0 ? res->region : doc->error.region;
    }
    in.has_bucket_region = names_other_region(req);
    if (req->op == XF_S3_COPY && req->want.if_absent && !req->want.is_pinned) {
        in.kind = XF_S3ERR_WRITE; /* the only condition is on the destination */
    }
    xf_buf_put_escaped(&text, res->s3_code);
    if (res->s3_message.len > 0) {
        xf_buf_put_c(&text, ": ");
        xf_buf_put_escaped(&text, res->s3_message);
    }
    (void)XF_FAIL_SUB(&res->err,
                      xf_s3err_code(&in),
                      res->status,
                      "HTTP %d%s%s",
                      res->status,
                      text.len > 0 ? " " : "",
                      text.ptr != NULL ? text.ptr : "");
    if (req->op == XF_S3_HEAD && res->status == 400 && text.len == 0 &&
        res->err.code == XF_E_BAD_REQUEST) { /* a HEAD's answer has no words of its own */
        bool has_key = req->s3->customer_key.key.len > 0;
        (void)XF_FAIL_SUB(&res->err,
                          XF_E_BAD_REQUEST,
                          res->status,
                          "HTTP 400; perhaps the object is %s (see customer_key_env)",
                          has_key ? "not encrypted with the customer's key that was given"
                                  : "encrypted with a customer's key");
    }
    if (res->err.code == XF_E_REDIRECT && res->region.len > 0) {
        (void)XF_FAIL_SUB(&res->err,
                          XF_E_REDIRECT,
                          res->status,
                          "bucket is in region '%.*s', configured is '%s'",
                          XF_STR_ARG(res->region),
                          xf_client_region(req));
    }
}

/* A 2xx of an operation whose success is a document. */
static void
judge_document(struct xf_s3_req *req, const struct xf_xml_doc *doc, const struct xf_err *why)
{
    struct xf_s3_result *res = &req->res;
    bool is_copy = req->op == XF_S3_COPY || req->op == XF_S3_PART_COPY;
    bool is_empty = req->xml == NULL || req->body_bytes == 0 || xf_xml_seen(req->xml) == 0;

    if (is_copy && (is_empty || (doc != NULL && doc->root != XF_XML_COPY))) {
        res->copy_ignored = true;
        (void)XF_FAIL(&res->err,
                      XF_E_NO_COPY,
                      "service said %d to a copy without a result: it may have ignored the source",
                      res->status);
    } else if (doc == NULL) {
        res->err = *why;
    } else if (doc->root != req->want.root) {
        (void)XF_FAIL(&res->err, XF_E_XML, "answer is another document than was asked for");
    } else if (is_copy && doc->etag.len == 0) {
        (void)XF_FAIL(&res->err, XF_E_XML, "result of the copy has no ETag");
    } else if (req->op == XF_S3_CREATE && doc->upload_id.len == 0) {
        (void)XF_FAIL(&res->err, XF_E_XML, "answer has no upload id");
    } else {
        res->upload_id = doc->upload_id;
        res->modified_ms = doc->modified_ms != 0 ? doc->modified_ms : res->modified_ms;
        if (doc->etag.len > 0) {
            res->etag = doc->etag;
            res->etag_raw = doc->etag;
        }
    }
    res->maybe_done = req->want.is_write && res->err.code != XF_OK;
}

static void judge_get(struct xf_s3_req *req)
{
    struct xf_s3_result *res = &req->res;

    if (req->expect_bytes != XF_HTTP_SIZE_UNKNOWN && req->body_bytes != req->expect_bytes) {
        const struct xf_str encoding = req->attrs.content_encoding;

        (void)XF_FAIL(&res->err,
                      XF_E_TRUNCATED,
                      "got %llu of %llu bytes%s%.*s",
                      (unsigned long long)req->body_bytes,
                      (unsigned long long)req->expect_bytes,
                      encoding.len > 0 ? "; does a proxy encode? Content-Encoding: " : "",
                      XF_STR_ARG(encoding));
    } else if (res->size == XF_HTTP_SIZE_UNKNOWN && !req->want.is_ranged) {
        res->size = req->body_bytes;
    }
}

/* A whole answer. */
static void judge(struct xf_s3_req *req)
{
    struct xf_s3_result *res = &req->res;
    const struct xf_xml_doc *doc = NULL;
    struct xf_err why = {0};

    if (req->is_error || req->op != XF_S3_GET) {
        doc = finish_xml(req, &why);
    }
    res->doc = doc;
    if (req->is_error || (doc != NULL && doc->root == XF_XML_ERROR)) {
        set_service_error(req, doc);
        /* The service gave up after it may have done the work. */
        res->maybe_done = req->want.is_write && (res->status / 100 == 5 || res->status / 100 == 2);
        return;
    }
    if (req->op == XF_S3_GET) {
        judge_get(req);
    } else if (req->want.root != XF_XML_NONE) {
        judge_document(req, doc, &why);
    } else if ((req->op == XF_S3_PART || req->op == XF_S3_PUT) && res->etag.len == 0) {
        (void)XF_FAIL(
            &res->err, XF_E_XML, "answer to an upload has no ETag: was it S3 that answered?");
        res->maybe_done = true;
    }
}

static void wrap(struct xf_s3_req *req, const struct xf_http_done *done)
{
    struct xf_s3_result *res = &req->res;
    const char *host = req->host.ptr; /* with its port */

    if (done->err.code != XF_OK && done->peer[0] != '\0') {
        (void)XF_WRAP(&res->err,
                      "cannot %s '%s' at %s (%s)",
                      xf_s3_op_name(req->op),
                      req->name.ptr,
                      host,
                      done->peer);
    } else {
        (void)XF_WRAP(
            &res->err, "cannot %s '%s' at %s", xf_s3_op_name(req->op), req->name.ptr, host);
    }
}

void xf_client_reply_end(struct xf_s3_req *req, const struct xf_http_done *done)
{
    struct xf_s3_result *res = &req->res;

    res->bytes_in = done->bytes_in;
    res->bytes_out = done->bytes_out;
    res->timing = done->timing;
    if (done->err.code == XF_OK) {
        judge(req);
    } else {
        res->err = req->own.code != XF_OK && !req->cancelled ? req->own : done->err;
        res->maybe_done = req->want.is_write && done->sent;
    }
    if (res->err.code != XF_OK) {
        wrap(req, done);
    }
}
