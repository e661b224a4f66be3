/*
 * engine_relay.c - GET on one side, PUT on the other, for one small object.
 *
 * Up to 16 MiB the bytes wait in a buffer of the pool: their number, and their checksum where the
 * source tells one, are checked before anything is sent. Larger ones stream (engine_stream.c).
 *
 * What is stored is proved by the checksum that the destination repeats (engine_sum.h), or by an
 * etag that is their MD5. That is computed here only when nothing else proves anything: what a
 * plain etag of the source promises is sent as Content-MD5, and the destination holds the bytes to
 * it; one that takes no checksums may not know that header either, so there it is checked first.
 */
#include "agent/engine_int.h"
#include "agent/engine_read.h"
#include "agent/engine_sum.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

void xf_relay_begin(struct xf_op *op)
{
    op->mode = XF_MODE_RELAY;
    if (op->size <= XF_POOL_BUF_MAX) {
        xf_op_go_with_buf(op, (size_t)op->size, XF_SMALL_GET);
    } else if (op->attrs == NULL) {
        xf_op_go(op, XF_SMALL_ASK);
    } else {
        xf_relay_after_attrs(op, XF_SMALL_STREAM);
    }
}

/* ---- GET ---- */

static enum xf_http_flow on_data(void *arg, const char *data, size_t len)
{
    struct xf_op *op = arg;

    if (op->got <= op->buf.size && len <= op->buf.size - op->got) {
        memcpy(op->buf.ptr + op->got, data, len);
        xf_summing_add(&op->summing, data, len);
    }
    if (op->has_turn) {
        xf_bulk_moved(op->run->ej->bulk, len);
    }
    op->got += len; /* more than there is room for: the check sees it */
    return XF_HTTP_GO;
}

/* A whole object's answer says by what its checksum is. */
static enum xf_http_flow on_head(void *arg, const struct xf_s3_result *head)
{
    struct xf_op *op = arg;

    op->src_sum = head->sum;
    xf_summing_begin(&op->summing, xf_sums_alg(op));
    return XF_HTTP_GO;
}

struct xf_s3_req *xf_relay_get_range(struct xf_op *op, uint64_t offset, uint64_t len)
{
    bool is_whole = len == 0;
    const struct xf_s3_get_opts o = {
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
        .if_match = xf_str_c(op->etag),
        .object_size = op->size,
        .offset = offset,
        .len = len,
        .want_sum = is_whole && xf_sums_ask(op, XF_SUMS_READ_SRC),
        .sink = {.on_head = is_whole ? on_head : NULL, .on_data = on_data, .arg = op},
    };
    if (!is_whole) {
        xf_summing_begin(&op->summing, op->run->w->sum);
    }
    op->got = 0;
    return xf_s3_get(xf_op_s3(op, XF_SRC), &o, xf_op_reply, op);
}

struct xf_s3_req *xf_relay_get(struct xf_op *op)
{
    return xf_relay_get_range(op, 0, 0);
}

/* The MD5 of the bytes, from them or from the etag, as far as the proof needs it. */
static enum xf_code find_md5(struct xf_op *op, uint64_t size, bool whole, struct xf_err *err)
{
    const struct xf_verify_etag source = {xf_str_c(op->etag), op->src_is_opaque};
    const char *bytes = op->buf.ptr != NULL ? op->buf.ptr : "";
    bool is_promised =
        whole && !op->src_is_opaque && xf_verify_plain_md5(xf_str_c(op->etag), op->md5);

    op->has_md5 = is_promised;
    if (xf_verify_sums(&op->src_sum, &op->sum) == XF_VERIFY_SAME ||
        (op->sum.alg != XF_SUM_NONE && xf_sums_may(op, XF_SUMS_WRITE))) {
        return XF_OK;
    }
    xf_md5(bytes, (size_t)size, op->md5);
    op->has_md5 = true;
    if (whole && xf_verify_md5(op->md5, source) == XF_VERIFY_DIFFERENT) {
        return XF_FAIL(
            err, XF_E_CHECKSUM, "the bytes that came do not match the etag '%s'", op->etag);
    }
    return XF_OK;
}

enum xf_code xf_relay_check(struct xf_op *op, uint64_t want, bool whole, struct xf_err *err)
{
    if (op->got != want) {
        return XF_FAIL(
            err, XF_E_TRUNCATED, "got %ju of %ju bytes", (uintmax_t)op->got, (uintmax_t)want);
    }
    xf_summing_end(&op->summing, &op->sum);
    op->through += want;
    if (whole && xf_verify_sums(&op->src_sum, &op->sum) == XF_VERIFY_DIFFERENT) {
        return XF_FAIL(err,
                       XF_E_CHECKSUM,
                       "the bytes that came do not match the source's %s",
                       xf_sum_name(op->sum.alg));
    }
    return find_md5(op, want, whole, err);
}

void xf_relay_need_md5(struct xf_op *op, uint64_t size)
{
    if (!op->has_md5 && size <= op->buf.size) {
        xf_md5(op->buf.ptr != NULL ? op->buf.ptr : "", (size_t)size, op->md5);
        op->has_md5 = true;
    }
}

/* What both halves of a relay share; for codes that are not a success. */
static void relay_failed(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_CHANGED) {
        xf_small_replan(op);
    } else if (res->err.code == XF_E_NOT_FOUND) {
        xf_op_go(op, XF_SMALL_GONE);
    } else {
        xf_small_fail(op, res);
    }
}

void xf_relay_get_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code != XF_OK) {
        relay_failed(op, res);
        return;
    }
    xf_op_keep_attrs(op, res);
    op->src_is_opaque = xf_verify_is_opaque(res->attrs);
    if (xf_relay_check(op, op->size, true, &err) != XF_OK) {
        xf_small_retry(op, XF_SMALL_GET, &err);
        return;
    }
    if (op->was_denied && !xf_work_job_knows(op->run->ej->job, XF_FACT_COPY_WORKED)) {
        xf_engine_note(op->run,
                       XF_FACT_NO_COPY,
                       "copy_denied",
                       "the destination's credentials may not read the source: every byte goes "
                       "through the agents from now on");
    }
    xf_relay_after_attrs(op, XF_SMALL_PUT);
}

/* ---- tags ---- */

/*
 * No number of tags: none there, or a service that does not tell it, or not to us (AWS tells it
 * only to those who may read the tags). One answer to the question for tags says which.
 */
static bool is_told(const struct xf_op *op)
{
    const struct xf_work_job *job = op->run->ej->job;

    return xf_work_job_knows(job, XF_FACT_TAGS_NONE) &&
           !xf_work_job_knows(job, XF_FACT_TAGS_UNTOLD);
}

bool xf_op_wants_tags(const struct xf_op *op, const struct xf_s3_attrs *attrs)
{
    switch ((enum xf_job_tags)xf_op_spec(op)->tags) {
    case XF_JOB_TAGS_NONE: return false;
    case XF_JOB_TAGS_REQUIRED: return !(attrs->has_tag_count && attrs->tag_count == 0);
    case XF_JOB_TAGS_BEST_EFFORT: return attrs->has_tag_count ? attrs->tag_count > 0 : !is_told(op);
    }
    return false;
}

void xf_relay_after_attrs(struct xf_op *op, unsigned next)
{
    op->after_tags = next;
    if (!op->has_tags && xf_op_wants_tags(op, op->attrs)) {
        xf_op_go(op, XF_SMALL_TAGS);
    } else if (next == XF_SMALL_STREAM) {
        xf_op_go_with_buf(op, XF_STREAM_RING, XF_SMALL_STREAM);
    } else {
        xf_op_go(op, next);
    }
}

struct xf_s3_req *xf_relay_tags(struct xf_op *op)
{
    const struct xf_s3_object_opts o = {
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
    };
    return xf_s3_get_tags(xf_op_s3(op, XF_SRC), &o, xf_op_reply, op);
}

void xf_op_drop_tags(struct xf_op *op)
{
    op->no_tags = true;
    op->flags |= XF_RESULT_TAGS_DROPPED;
    op->no_class = false; /* it was not the class, or not alone */
    op->flags &= ~(uint32_t)XF_RESULT_CLASS_DROPPED;
    xf_buf_reset(&op->tags);
    xf_sums_forgive(op);
    xf_engine_note(op->run,
                   XF_FACT_TAGS_DENIED,
                   "tags_denied",
                   "tags may not be read or written: objects are copied without them; this needs "
                   "s3:GetObjectTagging at the source and s3:PutObjectTagging at the destination");
}

bool xf_op_may_drop_tags(const struct xf_op *op, enum xf_code code)
{
    bool is_refusal = code == XF_E_DENIED || code == XF_E_UNSUPPORTED || code == XF_E_BAD_REQUEST;

    return is_refusal && op->tags.len > 0 && xf_op_spec(op)->tags == XF_JOB_TAGS_BEST_EFFORT;
}

bool xf_op_take_tags(struct xf_op *op, const struct xf_s3_result *res)
{
    bool is_required = xf_op_spec(op)->tags == XF_JOB_TAGS_REQUIRED;

    op->has_tags = true;
    xf_buf_reset(&op->tags);
    if (res->err.code == XF_OK) {
        if (op->attrs != NULL && !op->attrs->has_tag_count) {
            (void)xf_work_job_learn(op->run->ej->job, /* known is fine */
                                    res->doc->n_tags > 0 ? XF_FACT_TAGS_UNTOLD : XF_FACT_TAGS_NONE);
        }
        xf_s3_tags_encode(&op->tags, res->doc->tags, res->doc->n_tags);
        return true;
    }
    if (is_required || (res->err.code != XF_E_DENIED && res->err.code != XF_E_UNSUPPORTED)) {
        return false;
    }
    xf_op_drop_tags(op);
    return true;
}

void xf_relay_tags_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (xf_op_take_tags(op, res)) {
        xf_relay_after_attrs(op, op->after_tags);
    } else {
        op->has_tags = false;
        relay_failed(op, res);
    }
}

/* ---- PUT ---- */

void xf_relay_put_opts(const struct xf_op *op, struct xf_s3_put_opts *o)
{
    *o = (struct xf_s3_put_opts){
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .attrs = xf_op_attrs(op),
        .tags = xf_buf_view(&op->tags),
        .storage_class = xf_op_class(op),
        .guards = xf_op_guards(op),
        .if_absent = xf_op_is_if_absent(op),
    };
}

struct xf_s3_body xf_relay_body(struct xf_op *op, uint64_t size)
{
    struct xf_s3_body body = {.bytes = xf_str_n(op->buf.ptr, (size_t)size)};

    body.sum = xf_sums_send(op, &op->sum);
    if (body.sum == NULL) {
        xf_relay_need_md5(op, size);
    }
    body.md5 = op->has_md5 ? op->md5 : NULL;
    body.sha256 = op->sum.alg == XF_SUM_SHA256 ? op->sum.raw : NULL;
    return body;
}

struct xf_s3_req *xf_relay_put(struct xf_op *op)
{
    struct xf_s3_put_opts o;

    xf_relay_put_opts(op, &o);
    o.body = xf_relay_body(op, op->size);
    return xf_s3_put(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

struct xf_s3_req *xf_relay_stream(struct xf_op *op)
{
    return xf_stream_start(&(struct xf_stream_opts){.op = op, .len = op->size});
}

/*
 * What was sent is stored. Where the sides' etags can never be compared, a later run tells old from
 * new by size and time alone, and a source that changed while it was sent would pass for copied:
 * it is looked at once more.
 */
static void stored(struct xf_op *op, enum xf_level level)
{
    const struct xf_verify_etag source = {xf_str_c(op->etag), op->src_is_opaque};
    const struct xf_verify_etag dest = {xf_str_c(op->dst_etag), op->dst_is_opaque};

    op->level = level;
    if (xf_verify_etags(source, dest) == XF_VERIFY_UNKNOWN) {
        xf_op_go(op, XF_SMALL_PUT_SRC);
    } else {
        xf_small_proved(op, level);
    }
}

void xf_relay_put_src_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_NOT_FOUND) {
        xf_small_proved(op, op->level); /* gone after it was read */
    } else if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
    } else if (xf_op_is_changed(op, res)) {
        xf_small_replan(op);
    } else {
        xf_small_proved(op, op->level);
    }
}

/* How well the answer to a PUT proves the bytes; XF_LEVEL_NONE: not at all yet. */
static enum xf_level put_level(struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_verify_etag got = {res->etag, res->etag_is_opaque};
    enum xf_verify by_sum = xf_sums_echo(op, res);
    enum xf_verify by_md5 = XF_VERIFY_UNKNOWN;

    if (by_sum == XF_VERIFY_DIFFERENT) {
        return XF_LEVEL_NONE;
    }
    if (by_sum == XF_VERIFY_UNKNOWN) {
        xf_relay_need_md5(op, op->size);
    }
    if (op->has_md5) {
        by_md5 = xf_verify_md5(op->md5, got);
    }
    if (by_md5 == XF_VERIFY_SAME) {
        return XF_LEVEL_ETAG;
    }
    return by_sum == XF_VERIFY_SAME && by_md5 == XF_VERIFY_UNKNOWN ? XF_LEVEL_CHECKSUM
                                                                   : XF_LEVEL_NONE;
}

void xf_relay_put_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK) {
        op->has_stored = true;
        xf_op_keep_etag(op->dst_etag, res->etag);
        op->dst_is_opaque = res->etag_is_opaque;
        enum xf_level level = put_level(op, res);
        if (level != XF_LEVEL_NONE && xf_op_is_plain(op, res->is_encrypted)) {
            xf_op_go(op, XF_SMALL_PUT_DST); /* perhaps it says so there */
        } else if (level != XF_LEVEL_NONE) {
            stored(op, level);
        } else if (op->state == XF_SMALL_STREAM && !op->has_md5) {
            struct xf_err err;
            (void)xf_sums_unsaid(op, op->size, &err); /* it is told by its code */
            xf_small_retry(op, XF_SMALL_STREAM, &err);
        } else {
            xf_op_go(op, XF_SMALL_PUT_DST);
        }
    } else if (res->err.code == XF_E_EXISTS) {
        xf_small_exists(op, res);
    } else if (xf_op_may_drop_class(op, res)) {
        xf_op_go(op, op->state);
    } else if (xf_op_may_drop_tags(op, res->err.code)) {
        xf_op_drop_tags(op);
        xf_relay_after_attrs(op, op->after_tags);
    } else if (res->err.code == XF_E_CHECKSUM && op->state == XF_SMALL_PUT) {
        xf_small_retry(op, XF_SMALL_GET, &res->err); /* the read may have been the bad one */
    } else {
        relay_failed(op, res);
    }
}

/* What a HEAD of the destination says of the bytes that were sent. */
static enum xf_level head_level(struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_verify_etag got = {res->etag, xf_verify_is_opaque(res->attrs)};
    enum xf_verify by_sum = xf_verify_sums(&op->sum, &res->sum);
    enum xf_verify by_md5 = op->has_md5 ? xf_verify_md5(op->md5, got) : XF_VERIFY_UNKNOWN;

    if (res->size != op->size || by_sum == XF_VERIFY_DIFFERENT || by_md5 == XF_VERIFY_DIFFERENT) {
        return XF_LEVEL_NONE;
    }
    op->dst_sum = res->sum;
    if (by_md5 == XF_VERIFY_SAME) {
        return XF_LEVEL_ETAG;
    }
    /* An MD5 that was sent was checked when it came. */
    return by_sum == XF_VERIFY_SAME || op->has_md5 ? XF_LEVEL_CHECKSUM : XF_LEVEL_SIZE;
}

void xf_relay_put_dst_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;
    enum xf_level level = XF_LEVEL_NONE;

    if (res->err.code == XF_OK && xf_op_is_plain(op, res->is_encrypted)) {
        xf_op_say_plain(&err);
        xf_small_fail_err(op, &err, false);
        return;
    }
    if (res->err.code == XF_OK) {
        level = head_level(op, res);
    } else if (res->err.code != XF_E_NOT_FOUND) {
        xf_small_fail(op, res);
        return;
    }
    if (level != XF_LEVEL_NONE) {
        xf_op_keep_etag(op->dst_etag, res->etag);
        op->dst_is_opaque = xf_verify_is_opaque(res->attrs);
        op->has_looked = true;
        stored(op, level);
        return;
    }
    (void)XF_FAIL(&err,
                  XF_E_CHECKSUM,
                  "the destination does not have the %ju bytes that were sent",
                  (uintmax_t)op->size);
    xf_small_retry(op, XF_SMALL_RENEW, &err);
}
