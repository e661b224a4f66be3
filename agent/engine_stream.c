/*
 * engine_stream.c - a ranged GET into a PUT or UploadPart, through a ring of 1 MiB.
 *
 *   GET -> on_data -> ring -> pull -> PUT;  a full ring pauses the GET, an empty one the PUT
 *
 * Invariants:
 * 1. The last byte is handed to the PUT only after the GET ended well with the right number of
 *    bytes (and the right checksum or MD5, where one was promised and is computed here): a short or
 *    damaged source never becomes an object.
 * 2. The op's reply comes once, when both requests have ended: with the first failure, else with
 *    the PUT's answer.
 *
 * A whole object has promises: its etag's MD5 is sent as Content-MD5, its checksum as
 * x-amz-checksum-*. A part has none; it is summed as its upload is. An MD5 is computed only where
 * nothing else can prove what is stored.
 */
#include "agent/engine_int.h"
#include "agent/engine_sum.h"

struct xf_stream {
    struct xf_op *op;
    char *ring;
    size_t cap;
    size_t head; /* where the next byte is read */
    size_t len;  /* bytes in the ring */
    uint64_t want;
    uint64_t came;
    uint64_t went;
    struct xf_summing sum;
    struct xf_summing md5;
    struct xf_sum promised; /* by the source; sent as the bytes' own */
    struct xf_s3_req *get;
    struct xf_s3_req *put;
    bool get_ok;
    bool get_paused;
    bool put_paused;
    bool put_ended;
    bool is_cancelled;
    bool has_failed;
    bool source_failed;
    struct xf_s3_result failure; /* strings: only err, status and numbers are kept */
    char s3_code[XF_S3_CODE_MAX + 1];
};

void xf_stream_free(struct xf_stream *s)
{
    if (s == NULL) {
        return;
    }
    XF_ASSERT(s->get == NULL && s->put == NULL);
    xf_summing_fini(&s->sum);
    xf_summing_fini(&s->md5);
    xf_xfree(s);
}

static void fail(struct xf_stream *s, const struct xf_s3_result *res)
{
    if (s->has_failed) {
        return;
    }
    s->has_failed = true;
    s->failure = (struct xf_s3_result){
        .op = res->op,
        .err = res->err,
        .status = res->status,
        .maybe_done = res->maybe_done,
        .retry_after_ms = res->retry_after_ms,
    };
    size_t n = res->s3_code.len < XF_S3_CODE_MAX ? res->s3_code.len : XF_S3_CODE_MAX;
    memcpy(s->s3_code, res->s3_code.ptr != NULL ? res->s3_code.ptr : "", n);
    s->failure.s3_code = xf_str_n(s->s3_code, n);
}

static void fail_err(struct xf_stream *s, const struct xf_err *err)
{
    struct xf_s3_result res = {.err = *err, .retry_after_ms = -1};

    fail(s, &res);
}

/* Both have ended: answer, and forget the stream. */
static void answer(struct xf_stream *s, const struct xf_s3_result *put)
{
    struct xf_op *op = s->op;

    op->stream = NULL;
    if (s->has_failed) {
        if (s->source_failed) {
            xf_op_give(op, XF_DST, XF_LIMIT_NEUTRAL, -1); /* it says nothing of that side */
        }
        xf_op_reply(op, &s->failure);
    } else {
        op->through += s->want;
        xf_op_reply(op, put);
    }
    xf_stream_free(s);
}

static enum xf_http_flow on_data(void *arg, const char *data, size_t len)
{
    struct xf_stream *s = arg;
    size_t tail = (s->head + s->len) % s->cap;
    size_t first = s->cap - tail < len ? s->cap - tail : len;

    if (len > s->cap - s->len) {
        s->get_paused = true;
        return XF_HTTP_PAUSE;
    }
    memcpy(s->ring + tail, data, first);
    memcpy(s->ring, data + first, len - first);
    s->len += len;
    s->came += len;
    xf_bulk_moved(s->op->run->ej->bulk, len);
    xf_summing_add(&s->sum, data, len);
    xf_summing_add(&s->md5, data, len);
    if (s->put_paused && s->put != NULL) {
        s->put_paused = false;
        xf_s3_resume(s->put);
    }
    return XF_HTTP_GO;
}

static enum xf_http_flow on_pull(void *arg, char *buf, size_t cap, size_t *n)
{
    struct xf_stream *s = arg;
    size_t take = s->len < cap ? s->len : cap;

    if (take > s->want - s->went) {
        take = (size_t)(s->want - s->went);
    }
    if (!s->get_ok && s->went + take >= s->want && take > 0) {
        take = (size_t)(s->want - s->went - 1); /* invariant 1 */
    }
    *n = take;
    if (take == 0) {
        s->put_paused = true;
        return XF_HTTP_PAUSE;
    }
    size_t first = s->cap - s->head < take ? s->cap - s->head : take;
    memcpy(buf, s->ring + s->head, first);
    memcpy(buf + first, s->ring, take - first);
    s->head = (s->head + take) % s->cap;
    s->len -= take;
    s->went += take;
    if (s->get_paused && s->get != NULL && s->cap - s->len >= s->cap / 2) {
        s->get_paused = false;
        xf_s3_resume(s->get);
    }
    return XF_HTTP_GO;
}

/* All bytes came: what they sum to, beside what was promised. */
static enum xf_code end_sums(struct xf_stream *s, struct xf_err *err)
{
    struct xf_op *op = s->op;
    struct xf_sum md5;

    xf_summing_end(&s->sum, &op->sum);
    if (xf_verify_sums(&s->promised, &op->sum) == XF_VERIFY_DIFFERENT) {
        return XF_FAIL(err,
                       XF_E_CHECKSUM,
                       "the bytes that came do not match the source's %s",
                       xf_sum_name(op->sum.alg));
    }
    if (s->md5.alg == XF_SUM_NONE) {
        return XF_OK;
    }
    xf_summing_end(&s->md5, &md5);
    if (op->has_md5 && memcmp(md5.raw, op->md5, sizeof(op->md5)) != 0) {
        return XF_FAIL(err, XF_E_CHECKSUM, "the bytes that came do not match the source's etag");
    }
    memcpy(op->md5, md5.raw, sizeof(op->md5));
    op->has_md5 = true;
    return XF_OK;
}

static void on_get(void *arg, const struct xf_s3_result *res)
{
    struct xf_stream *s = arg;
    struct xf_err err;

    s->get = NULL;
    s->source_failed = !s->has_failed && !s->put_ended;
    xf_op_give(s->op, XF_SRC, xf_op_how(res), res->retry_after_ms);
    if (res->err.code != XF_OK) {
        if (res->err.code != XF_E_CANCELLED || s->is_cancelled) {
            fail(s, res);
        }
    } else if (s->came != s->want) {
        (void)XF_FAIL(
            &err, XF_E_TRUNCATED, "got %ju of %ju bytes", (uintmax_t)s->came, (uintmax_t)s->want);
        fail_err(s, &err);
    } else if (end_sums(s, &err) != XF_OK) {
        fail_err(s, &err);
    } else {
        s->get_ok = true;
    }
    s->source_failed = s->source_failed && s->has_failed;
    if (s->put_ended) {
        answer(s, &s->failure);
    } else if (s->has_failed && !s->is_cancelled) {
        xf_s3_cancel(s->put);
    } else if (s->put_paused) {
        s->put_paused = false;
        xf_s3_resume(s->put);
    }
}

static void on_put(void *arg, const struct xf_s3_result *res)
{
    struct xf_stream *s = arg;
    struct xf_err err;

    s->put = NULL;
    s->put_ended = true;
    if (res->err.code != XF_OK) {
        fail(s, res);
    } else if (!s->get_ok) {
        (void)XF_FAIL(&err, XF_E_SERVER, "the server took a body that was not sent to its end");
        fail_err(s, &err);
    }
    if (s->get == NULL) {
        answer(s, res);
    } else if (!s->is_cancelled) {
        xf_s3_cancel(s->get);
    }
}

void xf_stream_cancel(struct xf_stream *s)
{
    s->is_cancelled = true;
    if (s->get != NULL) {
        xf_s3_cancel(s->get);
    }
    if (s->put != NULL) {
        xf_s3_cancel(s->put);
    }
}

static struct xf_s3_req *start_put(struct xf_stream *s, const struct xf_stream_opts *o)
{
    struct xf_op *op = o->op;
    const struct xf_s3_body body = {
        .size = o->len,
        .pull = on_pull,
        .arg = s,
        .md5 = op->has_md5 ? op->md5 : NULL,
        .sum = xf_sums_send(op, &s->promised),
    };
    if (o->is_part) {
        const struct xf_s3_part_opts part = {
            .bucket = xf_op_bucket(op, XF_DST),
            .key = xf_op_dst_key(op),
            .upload_id = op->run->w->upload_id,
            .part_no = op->part_no,
            .body = body,
        };
        return xf_s3_part(xf_op_s3(op, XF_DST), &part, on_put, s);
    }
    struct xf_s3_put_opts put;
    xf_relay_put_opts(op, &put);
    put.body = body;
    return xf_s3_put(xf_op_s3(op, XF_DST), &put, on_put, s);
}

/* What is promised, and what has to be computed on the way. */
static void begin_sums(struct xf_stream *s, bool is_part)
{
    struct xf_op *op = s->op;
    bool may_send = xf_sums_may(op, XF_SUMS_WRITE);
    bool is_unsaid = xf_work_job_knows(op->run->ej->job, XF_FACT_SUM_UNSAID);
    enum xf_sum_alg alg = is_part ? op->run->w->sum : xf_sums_alg(op);
    bool is_told = alg != XF_SUM_NONE && !is_unsaid; /* will the answer prove it? */

    op->has_md5 =
        !is_part && !op->src_is_opaque && xf_verify_plain_md5(xf_str_c(op->etag), op->md5);
    if (!is_part) {
        if (op->src_sum.alg == alg && !op->src_sum.is_composite) {
            s->promised = op->src_sum;
        }
        is_told = may_send && !is_unsaid && (op->has_md5 || s->promised.alg != XF_SUM_NONE);
    }
    xf_summing_begin(&s->sum, alg);
    xf_summing_begin(&s->md5, is_told ? XF_SUM_NONE : XF_SUM_MD5);
}

struct xf_s3_req *xf_stream_start(const struct xf_stream_opts *o)
{
    struct xf_op *op = o->op;
    struct xf_stream *s = xf_xcalloc(1, sizeof(*s));
    const struct xf_s3_get_opts get = {
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
        .if_match = xf_str_c(op->etag),
        .object_size = op->size,
        .offset = o->offset,
        .len = o->is_part ? o->len : 0,
        .sink = {.on_data = on_data, .arg = s},
    };
    s->op = op;
    s->ring = op->buf.ptr;
    s->cap = XF_STREAM_RING;
    s->want = o->len;
    op->stream = s;
    begin_sums(s, o->is_part);
    s->put = start_put(s, o);
    s->get = xf_s3_get(xf_op_s3(op, XF_SRC), &get, on_get, s);
    return s->put;
}
