/*
 * client.c - the client's life; signing and sending.
 *
 *   client_ops.c -> launch -> send -> (client_reply.c reads) -> end --> done
 *              |         ^                         |
 *              |         +---- client_again.c -----+
 *              +-- options refused: done from the timer
 */
#include "common/s3/client.h"

#include "common/s3/client_int.h"

#define IDLE_MAX        512U
#define SLOW_DEFAULT_MS 600000
#define COPY_BASE_MS    60000
#define COPY_SLOW_BYTES ((uint64_t)2 << 20)

static void send_req(struct xf_s3_req *req);

const char *xf_s3_op_name(enum xf_s3_op op)
{
    static const char *const names[] = {
#define OP_NAME(name, label) label,
        XF_S3_OPS(OP_NAME)
#undef OP_NAME
    };

    return op < XF_S3_OP_N ? names[op] : "unknown";
}

/* ---- requests ---- */

static void req_free(struct xf_s3_req *req)
{
    xf_arena_fini(&req->arena);
    xf_xfree(req->headers);
    xf_xfree(req->lines);
    xf_buf_fini(&req->name);
    xf_buf_fini(&req->path);
    xf_buf_fini(&req->host);
    xf_buf_fini(&req->body_text);
    xf_buf_fini(&req->url);
    xf_buf_fini(&req->lines_text);
    xf_buf_fini(&req->auth);
    xf_buf_fini(&req->chunk);
    xf_buf_fini(&req->framed);
    xf_xml_free(req->xml);
    xf_creds_unref(req->creds);
    xf_xfree(req);
}

/* Nothing of the old operation stays but its memory. */
static void req_clear(struct xf_s3_req *req)
{
    xf_client_reply_drop(req);
    xf_arena_fini(&req->arena);
    xf_creds_unref(req->creds);
    req->creds = NULL;
    xf_sigv4_chunks_fini(&req->chunks);
    if (req->lines_text.ptr != NULL) {
        xf_wipe(req->lines_text.ptr, req->lines_text.len); /* a session token */
    }
    xf_buf_reset(&req->name);
    xf_buf_reset(&req->path);
    xf_buf_reset(&req->host);
    xf_buf_reset(&req->body_text);
    xf_buf_fini(&req->chunk); /* 64 KiB each: few requests need them */
    xf_buf_fini(&req->framed);
    req->http = NULL;
    req->n_query = 0;
    req->n_headers = 0;
    req->body = (struct xf_s3_body){0};
    req->own_body = false;
    req->sink = (struct xf_s3_sink){0};
    req->want = (struct xf_client_want){.object_size = XF_HTTP_SIZE_UNKNOWN,
                                        .copy_bytes = XF_HTTP_SIZE_UNKNOWN};
    req->is_chunked = false;
    req->pulled = 0;
    xf_err_clear(&req->refused);
    req->clock_fixed = false;
    req->creds_renewed = false;
    req->place = NULL;
    req->n_moves = 0;
    req->has_looked = false;
    req->is_lookup = false;
    req->cancelled = false;
}

static struct xf_s3_req *req_new(struct xf_s3 *s3)
{
    struct xf_s3_req *req;

    if (!xf_list_is_empty(&s3->idle)) {
        s3->n_idle--;
        return XF_CONTAINER_OF(xf_list_pop_front(&s3->idle), struct xf_s3_req, node);
    }
    req = xf_xcalloc(1, sizeof(*req));
    req->s3 = s3;
    xf_list_init(&req->node);
    req_clear(req);
    return req;
}

struct xf_s3_req *xf_client_req(struct xf_s3 *s3,
                                enum xf_s3_op op,
                                const char *method,
                                enum xf_s3err_kind kind,
                                xf_s3_done_fn *done,
                                void *arg)
{
    struct xf_s3_req *req = req_new(s3);

    req->op = op;
    req->method = method;
    req->kind = kind;
    req->done = done;
    req->arg = arg;
    xf_list_push_back(&s3->active, &req->node);
    s3->n_active++;
    return req;
}

void xf_client_refuse(struct xf_s3_req *req, const char *what)
{
    if (req->refused.code == XF_OK) {
        (void)XF_FAIL(&req->refused, XF_E_INVAL, "%s", what);
    }
}

void xf_client_target(struct xf_s3_req *req, struct xf_str bucket, struct xf_str key)
{
    const struct xf_s3_opts *o = &req->s3->opts;
    bool path_style = xf_uri_is_path_style(&o->endpoint, o->style, bucket);

    if (bucket.len == 0 || bucket.len > XF_URI_BUCKET_MAX) {
        xf_client_refuse(req, "bucket name is empty or too long");
    }
    if (key.len > XF_URI_KEY_MAX) {
        xf_client_refuse(req, "key is too long");
    }
    xf_buf_put_c(&req->name, "s3://");
    xf_buf_put_escaped(&req->name, bucket);
    xf_buf_put_byte(&req->name, '/');
    xf_buf_put_escaped(&req->name, key);
    xf_uri_path(&req->path, &o->endpoint, path_style, bucket, key);
    req->bucket = xf_arena_dup(&req->arena, bucket);
    xf_client_aim(req);
}

void xf_client_query(struct xf_s3_req *req, const char *name, struct xf_str value)
{
    XF_ASSERT(req->n_query < XF_CLIENT_QUERY_MAX);
    req->query[req->n_query++] = (struct xf_sigv4_pair){
        .name = xf_str_c(name),
        .value = value.len > 0 ? xf_arena_dup(&req->arena, value) : XF_STR_EMPTY,
    };
}

static struct xf_str number(struct xf_s3_req *req, uint64_t value)
{
    XF_AUTO_BUF text = {0};

    xf_buf_put_u64(&text, value);
    return xf_arena_dup(&req->arena, xf_buf_view(&text));
}

void xf_client_query_u64(struct xf_s3_req *req, const char *name, uint64_t value)
{
    XF_ASSERT(req->n_query < XF_CLIENT_QUERY_MAX);
    req->query[req->n_query++] =
        (struct xf_sigv4_pair){.name = xf_str_c(name), .value = number(req, value)};
}

void xf_client_header(struct xf_s3_req *req, const char *name, struct xf_str value)
{
    for (size_t i = 0; i < value.len; i++) {
        unsigned char c = (unsigned char)value.ptr[i];

        if ((c < ' ' && c != '\t') || c == 0x7f) {
            xf_client_refuse(req, "a header's value holds a control character");
            return;
        }
    }
    if (req->n_headers >= XF_CLIENT_HEADERS_MAX - 8) { /* signing adds a few */
        xf_client_refuse(req, "too many headers");
        return;
    }
    if (req->n_headers == req->cap_headers) {
        req->cap_headers = req->cap_headers == 0 ? 8 : req->cap_headers * 2;
        req->headers = xf_xrealloc(req->headers, req->cap_headers, sizeof(req->headers[0]));
    }
    req->headers[req->n_headers++] = (struct xf_sigv4_pair){
        .name = xf_str_c(name),
        .value = value.len > 0 ? xf_arena_dup(&req->arena, value) : XF_STR_EMPTY,
    };
}

int64_t xf_client_wall_ms(const struct xf_s3 *s3)
{
    return xf_clock_wall_ms(s3->opts.clock) + s3->clock_offset_ms;
}

/* ---- where to ---- */

static const struct xf_uri_endpoint *endpoint_of(const struct xf_s3_req *req)
{
    return req->place != NULL ? &req->place->endpoint : &req->s3->opts.endpoint;
}

const char *xf_client_region(const struct xf_s3_req *req)
{
    return req->place != NULL ? req->place->region : req->s3->region;
}

void xf_client_aim(struct xf_s3_req *req)
{
    const struct xf_uri_endpoint *ep;

    req->place = xf_client_place_of(req->s3, req->bucket);
    ep = endpoint_of(req);
    req->is_https = ep->https;
    xf_buf_reset(&req->host);
    xf_uri_host(
        &req->host, ep, xf_uri_is_path_style(ep, req->s3->opts.style, req->bucket), req->bucket);
}

/* ---- sending ---- */

/* The payload's hash or literal, into `hex` when it is a hash. */
static enum xf_code payload_of(struct xf_s3_req *req,
                               char hex[XF_SIGV4_HEX_LEN + 1],
                               struct xf_str *out,
                               struct xf_err *err)
{
    const struct xf_s3_body *b = &req->body;
    bool is_empty = b->pull == NULL && b->bytes.len == 0;

    *out = (struct xf_str){hex, XF_SIGV4_HEX_LEN};
    if (is_empty) {
        *out = XF_STR_LIT(XF_SIGV4_EMPTY_SHA256);
    } else if (b->sha256 != NULL) {
        XF_AUTO_BUF text = {0};

        xf_buf_put_hex(&text, b->sha256, 32);
        memcpy(hex, text.ptr, XF_SIGV4_HEX_LEN + 1);
    } else if (req->is_chunked) {
        *out = XF_STR_LIT(XF_SIGV4_STREAMING);
    } else if (b->pull != NULL || (!req->own_body && (req->s3->opts.endpoint.https ||
                                                      req->s3->opts.unsigned_payload_http))) {
        *out = XF_STR_LIT(XF_SIGV4_UNSIGNED);
    } else {
        XF_TRY(xf_sigv4_sha256(req->s3->signer, b->bytes, hex, err));
    }
    return XF_OK;
}

struct signing {
    struct xf_sigv4_pair headers[XF_CLIENT_HEADERS_MAX];
    size_t n;
    char date[XF_TIME_TEXT_MAX];
    char hex[XF_SIGV4_HEX_LEN + 1];
    struct xf_str payload;
};

static void sign_header(struct signing *s, const char *name, struct xf_str value)
{
    s->headers[s->n++] = (struct xf_sigv4_pair){.name = xf_str_c(name), .value = value};
}

/* Headers of the signature itself; Authorization into req->auth. */
static enum xf_code sign_req(struct xf_s3_req *req, struct signing *s, struct xf_err *err)
{
    struct xf_s3 *s3 = req->s3;
    struct xf_sigv4_req sig;
    struct xf_sigv4_extra extra = {0};

    xf_buf_reset(&req->auth);
    s->n = req->n_headers;
    if (req->n_headers > 0) {
        memcpy(s->headers, req->headers, req->n_headers * sizeof(s->headers[0]));
    }
    if (req->creds == NULL) {
        return XF_OK;
    }
    XF_TRY(payload_of(req, s->hex, &s->payload, err));
    req->signed_wall_ms = xf_client_wall_ms(s3);
    xf_time_amz(req->signed_wall_ms, s->date);
    sign_header(s, "x-amz-date", xf_str_c(s->date));
    sign_header(s, "x-amz-content-sha256", s->payload);
    if (xf_creds_session_token(req->creds).len > 0) {
        sign_header(s, "x-amz-security-token", xf_creds_session_token(req->creds));
    }
    sign_header(s, "host", xf_buf_view(&req->host)); /* last: libcurl sends it by itself */
    sig = (struct xf_sigv4_req){
        .method = xf_str_c(req->method),
        .path = xf_buf_view(&req->path),
        .query = req->query,
        .n_query = req->n_query,
        .headers = s->headers,
        .n_headers = s->n,
        .payload = s->payload,
        .region = xf_str_c(xf_client_region(req)),
        .service = XF_STR_LIT("s3"),
    };
    memcpy(sig.date, s->date, sizeof(sig.date));
    XF_TRY(xf_sigv4_sign(s3->signer, req->creds, &sig, &req->auth, &extra, err));
    s->n--;
    if (req->is_chunked) {
        XF_TRY(
            xf_sigv4_chunks_init(&req->chunks, s3->signer, req->creds, &sig, extra.signature, err));
    }
    return XF_OK;
}

static void put_line(struct xf_buf *out, struct xf_str name, struct xf_str value)
{
    xf_buf_put(out, name);
    if (value.len == 0) {
        xf_buf_put_byte(out, ';'); /* libcurl's way to an empty value */
    } else {
        xf_buf_put_c(out, ": ");
        xf_buf_put(out, value);
    }
    xf_buf_put_byte(out, '\0');
}

/* Header lines as libcurl wants them; gives their number. */
static size_t make_lines(struct xf_s3_req *req, const struct signing *s)
{
    struct xf_buf *text = &req->lines_text;
    size_t n = 0;
    size_t at = 0;

    xf_buf_reset(text);
    for (size_t i = 0; i < s->n; i++) {
        put_line(text, s->headers[i].name, s->headers[i].value);
    }
    if (req->auth.len > 0) {
        put_line(text, XF_STR_LIT("authorization"), xf_buf_view(&req->auth));
    }
    if (req->op == XF_S3_GET) {
        put_line(text, XF_STR_LIT("accept-encoding"), XF_STR_LIT("identity"));
    }
    if (req->s3->opts.expect_bytes > 0 && xf_client_body_size(req) >= req->s3->opts.expect_bytes) {
        put_line(text, XF_STR_LIT("expect"), XF_STR_LIT("100-continue"));
    }
    while (at < text->len) {
        if (n == req->cap_lines) {
            req->cap_lines = req->cap_lines == 0 ? 16 : req->cap_lines * 2;
            req->lines = xf_xrealloc(req->lines, req->cap_lines, sizeof(req->lines[0]));
        }
        req->lines[n++] = text->ptr + at;
        at += strlen(text->ptr + at) + 1;
    }
    return n;
}

static void make_url(struct xf_s3_req *req)
{
    xf_buf_reset(&req->url);
    xf_buf_put_c(&req->url, req->is_https ? "https://" : "http://");
    xf_buf_put(&req->url, xf_buf_view(&req->host));
    xf_buf_put(&req->url, xf_buf_view(&req->path));
    if (req->n_query > 0) {
        xf_buf_put_byte(&req->url, '?');
        xf_sigv4_query(&req->url, req->query, req->n_query);
    }
}

static void end_req(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;
    const struct xf_s3_result *res = &req->res;

    xf_list_remove(&req->node);
    s3->n_active--;
    if (s3->opts.on_done != NULL) {
        s3->opts.on_done(
            s3->opts.on_done_arg, req->op, res->err.code, res->status, res->timing.total_us);
    }
    req->done(req->arg, res);
    req_clear(req);
    if (s3->n_idle < IDLE_MAX) {
        xf_list_push_front(&s3->idle, &req->node);
        s3->n_idle++;
    } else {
        req_free(req);
    }
}

/* The body was sent from a source that cannot begin anew; its owner can. */
static void tell_to_repeat(struct xf_s3_req *req)
{
    struct xf_err *err = &req->res.err;
    struct xf_err was = *err;

    if (was.code != XF_E_CANCELLED) {
        (void)XF_FAIL_SUB(err, XF_E_BUSY, was.sub, "%s; it can be sent again now", was.msg);
    }
}

void xf_client_go_on(struct xf_s3_req *req, bool again)
{
    if (req->cancelled) {
        (void)XF_FAIL(&req->res.err, XF_E_CANCELLED, "request cancelled");
    } else if (again && xf_client_body_rewind(req)) {
        send_req(req);
        return;
    } else if (again) {
        tell_to_repeat(req);
    }
    end_req(req);
}

static void on_http_done(void *arg, const struct xf_http_done *done)
{
    struct xf_s3_req *req = arg;
    enum xf_client_again again;

    req->http = NULL;
    xf_client_reply_end(req, done);
    again = xf_client_again(req);
    if (again != XF_CLIENT_WAIT) {
        xf_client_go_on(req, again == XF_CLIENT_AGAIN);
    }
}

static void on_failed(struct xf_timer *t)
{
    struct xf_s3 *s3 = t->arg;
    struct xf_list todo;
    struct xf_list *node;

    xf_list_init(&todo);
    while ((node = xf_list_pop_front(&s3->failed)) != NULL) {
        xf_list_push_back(&todo, node);
    }
    while ((node = xf_list_pop_front(&todo)) != NULL) {
        end_req(XF_CONTAINER_OF(node, struct xf_s3_req, node));
    }
}

/* Not sent: its done comes from the timer. */
static void fail_req(struct xf_s3_req *req, const struct xf_err *err)
{
    xf_client_reply_reset(req);
    req->res.err = *err;
    (void)XF_WRAP(&req->res.err,
                  "cannot %s '%s'",
                  xf_s3_op_name(req->op),
                  req->name.ptr != NULL ? req->name.ptr : "");
    xf_list_remove(&req->node);
    xf_list_push_back(&req->s3->failed, &req->node);
    xf_timer_in(req->s3->opts.loop, &req->s3->timer, 0);
}

/* A copy may take as long as its bytes need at COPY_SLOW_BYTES a second, a Complete the longest. */
static int64_t patience_ms(const struct xf_s3_req *req)
{
    int64_t longest = req->s3->opts.slow_first_byte_ms;

    if (req->op == XF_S3_COMPLETE) {
        return longest;
    }
    if (req->op != XF_S3_COPY && req->op != XF_S3_PART_COPY) {
        return 0;
    }
    uint64_t ms = req->want.copy_bytes / COPY_SLOW_BYTES * 1000 + COPY_BASE_MS;
    return ms < (uint64_t)longest ? (int64_t)ms : longest;
}

static void send_req(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;
    const struct xf_s3_opts *o = &s3->opts;
    struct signing s;
    struct xf_http_call call;
    size_t n_lines;
    struct xf_err err;

    xf_client_renew_ahead(s3);
    xf_creds_unref(req->creds);
    req->creds = s3->creds != NULL ? xf_creds_ref(s3->creds) : NULL;
    xf_client_reply_reset(req);
    xf_buf_reset(&req->chunk);
    xf_buf_reset(&req->framed);
    req->framed_at = 0;
    if (sign_req(req, &s, &err) != XF_OK) {
        fail_req(req, &err);
        return;
    }
    make_url(req);
    n_lines = make_lines(req, &s);
    call = (struct xf_http_call){
        .method = req->method,
        .url = req->url.ptr,
        .lines = req->lines,
        .n_lines = n_lines,
        .body_size = xf_client_body_size(req),
        .body = req->body.bytes.ptr,
        .pull = req->body.pull != NULL ? xf_client_body_pull : NULL,
        .on_head = xf_client_reply_head,
        .on_data = xf_client_reply_data,
        .on_done = on_http_done,
        .arg = req,
        .ca_file = s3->ca_file,
        .patience_ms = patience_ms(req),
        .is_once = req->op == XF_S3_CREATE,
        .is_bulk = xf_client_body_size(req) >= (1U << 20) ||
                   (req->op == XF_S3_GET && (req->want.len == 0 || req->want.len >= (1U << 20))),
    };
    xf_wipe(&s, sizeof(s));
    req->http = xf_http_start(o->http, &call);
}

/*
 * The framing is told in front of the object's own encoding, and taken off again by AWS. Others
 * know it from x-amz-content-sha256, and some (Ceph 16) would keep this as the object's encoding.
 */
static void add_chunked_encoding(struct xf_s3_req *req)
{
    for (size_t i = 0; i < req->n_headers; i++) {
        if (xf_str_eq_c(req->headers[i].name, "content-encoding")) {
            XF_AUTO_BUF text = {0};

            xf_buf_put_c(&text, "aws-chunked,");
            xf_buf_put(&text, req->headers[i].value);
            req->headers[i].value = xf_arena_dup(&req->arena, xf_buf_view(&text));
            return;
        }
    }
    xf_client_header(req, "content-encoding", XF_STR_LIT("aws-chunked"));
}

struct xf_s3_req *xf_client_launch(struct xf_s3_req *req)
{
    const struct xf_s3_opts *o = &req->s3->opts;

    if (o->requester_pays) {
        xf_client_header(req, "x-amz-request-payer", XF_STR_LIT("requester"));
    }
    req->is_chunked = xf_client_body_is_chunked(req);
    if (req->is_chunked) {
        if (o->endpoint.is_aws) {
            add_chunked_encoding(req);
        }
        xf_client_header(req, "x-amz-decoded-content-length", number(req, req->body.size));
    }
    if (req->body.md5 != NULL) {
        XF_AUTO_BUF text = {0};

        xf_buf_put_base64(&text, req->body.md5, 16);
        xf_client_header(req, "content-md5", xf_buf_view(&text));
    }
    if (req->body.sum != NULL && xf_sum_header(req->body.sum->alg) != NULL) {
        XF_AUTO_BUF text = {0};

        xf_sum_text(req->body.sum, &text);
        xf_client_header(req, xf_sum_header(req->body.sum->alg), xf_buf_view(&text));
    }
    if (req->refused.code != XF_OK) {
        fail_req(req, &req->refused);
    } else {
        send_req(req);
    }
    return req;
}

/* ---- life ---- */

static enum xf_code check_opts(const struct xf_s3_opts *o, struct xf_err *err)
{
    if (o->loop == NULL || o->http == NULL) {
        return XF_FAIL(err, XF_E_INVAL, "S3 client needs a loop and an HTTP back end");
    }
    if (o->endpoint.host[0] == '\0') {
        return XF_FAIL(err, XF_E_INVAL, "S3 client needs an endpoint");
    }
    if (o->region.len == 0 || o->region.len > XF_URI_REGION_MAX) {
        return XF_FAIL(
            err, XF_E_INVAL, "S3 client needs a region of 1 to %d bytes", XF_URI_REGION_MAX);
    }
    return XF_OK;
}

enum xf_code xf_s3_new(const struct xf_s3_opts *o, struct xf_s3 **out, struct xf_err *err)
{
    XF_AUTO(xf_s3) s3 = xf_xcalloc(1, sizeof(*s3));

    s3->opts = *o;
    xf_list_init(&s3->active);
    xf_list_init(&s3->idle);
    xf_list_init(&s3->failed);
    xf_list_init(&s3->waiting);
    xf_list_init(&s3->places);
    s3->look = (struct xf_timer){.cb = xf_client_on_look, .arg = s3};
    s3->timer = (struct xf_timer){.cb = on_failed, .arg = s3};
    if (o->customer_key != NULL) {
        xf_customer_key_copy(o->customer_key, &s3->customer_key);
    }
    s3->opts.customer_key = NULL; /* the caller's own */
    XF_TRY(check_opts(o, err));
    s3->opts.clock = o->clock != NULL ? o->clock : xf_clock_real();
    s3->opts.slow_first_byte_ms =
        o->slow_first_byte_ms > 0 ? o->slow_first_byte_ms : SLOW_DEFAULT_MS;
    s3->region = xf_str_dup(o->region);
    s3->opts.region = xf_str_c(s3->region);
    s3->ca_file = o->ca_file.len > 0 ? xf_str_dup(o->ca_file) : NULL;
    s3->signer = xf_sigv4_new();
    XF_TRY(xf_client_read_creds(s3, err));
    *out = XF_STEAL(s3);
    return XF_OK;
}

void xf_s3_free(struct xf_s3 *s3)
{
    struct xf_list *node;

    if (s3 == NULL) {
        return;
    }
    XF_ASSERT(s3->n_active == 0);
    while ((node = xf_list_pop_front(&s3->idle)) != NULL) {
        req_free(XF_CONTAINER_OF(node, struct xf_s3_req, node));
    }
    while (s3->n_xml > 0) {
        xf_xml_free(s3->xml[--s3->n_xml]);
    }
    if (s3->opts.loop != NULL) {
        xf_timer_stop(s3->opts.loop, &s3->timer);
        xf_timer_stop(s3->opts.loop, &s3->look);
    }
    xf_client_places_free(s3);
    xf_creds_unref(s3->creds);
    xf_creds_source_free(s3->opts.creds);
    xf_sigv4_free(s3->signer);
    xf_customer_key_fini(&s3->customer_key);
    xf_xfree(s3->region);
    xf_xfree(s3->ca_file);
    xf_xfree(s3);
}

void xf_s3_cancel(struct xf_s3_req *req)
{
    req->cancelled = true;
    if (req->http != NULL) {
        xf_http_cancel(req->s3->opts.http, req->http);
    } else if (req->lookup != NULL) {
        xf_s3_cancel(req->lookup);
    } /* else its timer ends it */
}

void xf_s3_resume(struct xf_s3_req *req)
{
    if (req->http != NULL) {
        xf_http_resume(req->s3->opts.http, req->http);
    }
}

size_t xf_s3_in_flight(const struct xf_s3 *s3)
{
    return s3->n_active;
}

int64_t xf_s3_clock_offset_ms(const struct xf_s3 *s3)
{
    return s3->clock_offset_ms;
}

const struct xf_uri_endpoint *xf_s3_endpoint(const struct xf_s3 *s3)
{
    return &s3->opts.endpoint;
}

struct xf_str xf_s3_region(const struct xf_s3 *s3)
{
    return xf_str_c(s3->region);
}
