/*
 * client_body.c - request bodies: plain pulls, and pulls framed as signed chunks (aws-chunked)
 * where plain HTTP asks for signed bytes and the length is too great to hash first.
 */
#include "common/s3/client_int.h"

bool xf_client_body_is_chunked(const struct xf_s3_req *req)
{
    const struct xf_s3_opts *o = &req->s3->opts;

    return req->body.pull != NULL && req->body.sha256 == NULL && !o->endpoint.https &&
           !o->unsigned_payload_http && req->s3->creds != NULL;
}

uint64_t xf_client_body_size(const struct xf_s3_req *req)
{
    uint64_t size = req->body.pull != NULL ? req->body.size : req->body.bytes.len;

    return req->is_chunked ? xf_sigv4_chunked_size(size, XF_CLIENT_CHUNK) : size;
}

bool xf_client_body_rewind(struct xf_s3_req *req)
{
    if (req->body.pull == NULL || req->pulled == 0) {
        return true;
    }
    req->pulled = 0;
    return req->body.rewind != NULL && req->body.rewind(req->body.arg);
}

/* The chunk is full, or the body has ended: frame it, and add the closing frame at the end. */
static enum xf_http_flow frame(struct xf_s3_req *req)
{
    struct xf_sigv4 *signer = req->s3->signer;
    bool ended = req->pulled == req->body.size;
    struct xf_err err;

    xf_buf_reset(&req->framed);
    req->framed_at = 0;
    if (req->chunk.len > 0) {
        if (xf_sigv4_chunk(&req->chunks, signer, xf_buf_view(&req->chunk), &req->framed, &err) !=
            XF_OK) {
            req->own = err;
            return XF_HTTP_STOP;
        }
        xf_buf_put(&req->framed, xf_buf_view(&req->chunk));
        xf_buf_put_c(&req->framed, "\r\n");
        xf_buf_reset(&req->chunk);
    }
    if (ended) {
        if (xf_sigv4_chunk(&req->chunks, signer, XF_STR_EMPTY, &req->framed, &err) != XF_OK) {
            req->own = err;
            return XF_HTTP_STOP;
        }
        xf_buf_put_c(&req->framed, "\r\n");
    }
    return XF_HTTP_GO;
}

static enum xf_http_flow pull_caller(struct xf_s3_req *req, char *buf, size_t cap, size_t *n)
{
    uint64_t left = req->body.size - req->pulled;
    enum xf_http_flow flow;

    cap = left < cap ? (size_t)left : cap;
    flow = req->body.pull(req->body.arg, buf, cap, n);
    if (flow == XF_HTTP_GO) {
        if (*n == 0 || *n > cap) {
            (void)XF_FAIL(&req->own,
                          XF_E_TRUNCATED,
                          "the body's source ended after %llu of %llu bytes",
                          (unsigned long long)req->pulled,
                          (unsigned long long)req->body.size);
            return XF_HTTP_STOP;
        }
        req->pulled += *n;
    }
    return flow;
}

/* Fill the present chunk; GO when it is full or the body has ended. */
static enum xf_http_flow fill_chunk(struct xf_s3_req *req)
{
    while (req->chunk.len < XF_CLIENT_CHUNK && req->pulled < req->body.size) {
        size_t room = XF_CLIENT_CHUNK - req->chunk.len;
        size_t n = 0;
        char *at = xf_buf_reserve(&req->chunk, room);
        enum xf_http_flow flow = pull_caller(req, at, room, &n);

        if (flow != XF_HTTP_GO) {
            return flow;
        }
        req->chunk.len += n;
    }
    return XF_HTTP_GO;
}

enum xf_http_flow xf_client_body_pull(void *arg, char *buf, size_t cap, size_t *n)
{
    struct xf_s3_req *req = arg;
    size_t left;

    if (!req->is_chunked) {
        return pull_caller(req, buf, cap, n);
    }
    if (req->framed_at == req->framed.len) {
        enum xf_http_flow flow = fill_chunk(req);

        flow = flow == XF_HTTP_GO ? frame(req) : flow;
        if (flow != XF_HTTP_GO) {
            return flow;
        }
    }
    left = req->framed.len - req->framed_at;
    *n = left < cap ? left : cap;
    memcpy(buf, req->framed.ptr + req->framed_at, *n);
    req->framed_at += *n;
    return XF_HTTP_GO;
}
