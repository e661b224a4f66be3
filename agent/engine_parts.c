/*
 * engine_parts.c - one part of an upload, by server copy or relay.
 *
 *   copy -> told;   get -> put -> told   (up to 16 MiB);   stream -> told   (above)
 *
 * Every part names the source's etag as its condition. The bytes of a relayed part are summed on
 * the way as the service sums the upload, and it must answer with the same; where it does not say,
 * the etag that comes back must be their MD5.
 */
#include "agent/engine_int.h"
#include "agent/engine_sum.h"
#include "agent/engine_upload.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

enum part_state { PART_COPY, PART_GET, PART_PUT, PART_STREAM, PART_GONE, PART_N };

static void transfer(struct xf_op *op)
{
    struct xf_err err;

    if (xf_op_may_copy(op, true)) {
        op->mode = XF_MODE_SERVER;
        xf_op_go(op, PART_COPY);
    } else if (!xf_op_may_relay(op)) {
        (void)XF_FAIL(&err,
                      XF_E_NO_COPY,
                      "mode is \"server\", but the sides are not one service or it cannot copy");
        xf_upload_fail(op, &err, NULL, false);
    } else if (op->len <= XF_POOL_BUF_MAX) {
        op->mode = XF_MODE_RELAY;
        xf_op_go_with_buf(op, (size_t)op->len, PART_GET);
    } else {
        op->mode = XF_MODE_RELAY;
        xf_op_go_with_buf(op, XF_STREAM_RING, PART_STREAM);
    }
}

/* The store keeps it until Complete repeats it. */
static void refuse_etag(struct xf_op *op, struct xf_str etag)
{
    struct xf_err err;

    (void)XF_FAIL(&err,
                  XF_E_UNSUPPORTED,
                  "part %u: the service gave it an etag of %zu bytes, at most %d can be kept",
                  op->part_no,
                  etag.len,
                  (int)XF_ETAG_MAX);
    xf_upload_fail(op, &err, NULL, false);
}

static void told(struct xf_op *op, struct xf_str etag)
{
    struct xf_run *run = op->run;
    struct xf_engine *e = run->e;

    if (etag.len > XF_ETAG_MAX) {
        refuse_etag(op, etag);
        return;
    }
    struct xf_work_part part = {
        .part_no = op->part_no,
        .etag = etag,
        .size = op->len,
        .has_md5 = op->mode == XF_MODE_RELAY && op->has_md5,
        .through = op->through,
    };
    memcpy(part.md5, op->md5, sizeof(part.md5));
    if (xf_sum_eq(&op->sum, &op->dst_sum) && op->sum.alg == run->w->sum) {
        part.sum = op->sum;
    }
    run->n_open--;
    (void)atomic_fetch_add(&e->n_bytes, op->len); /* counts */
    (void)atomic_fetch_add(&e->n_through, op->through);
    e->ev.part(e->ev.arg, run->w, &part);
    xf_op_end(op);
}

/* What every transfer of a part may meet. */
static void failed(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_CHANGED) {
        xf_upload_changed(op);
    } else if (res->err.code == XF_E_NOT_FOUND) {
        xf_op_go(op, PART_GONE);
    } else {
        struct xf_s3_result of_part = *res;
        (void)XF_WRAP(&of_part.err,
                      "part %u (bytes %ju-%ju)",
                      op->part_no,
                      (uintmax_t)op->offset,
                      (uintmax_t)(op->offset + op->len - 1));
        xf_upload_fail_res(op, &of_part);
    }
}

/* ---- server copy ---- */

static struct xf_s3_req *copy_start(struct xf_op *op)
{
    const struct xf_s3_part_copy_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .upload_id = op->run->w->upload_id,
        .part_no = op->part_no,
        .source = xf_op_source(op),
        .offset = op->offset,
        .len = op->len,
    };
    return xf_s3_part_copy(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static void copy_done(struct xf_op *op, const struct xf_s3_result *res)
{
    enum xf_code code = res->err.code;
    bool is_refused = code == XF_E_NO_COPY || code == XF_E_BAD_REQUEST || code == XF_E_DENIED ||
                      code == XF_E_TOO_LARGE || code == XF_E_UNSUPPORTED;

    if (code == XF_OK && res->etag.len > 0) {
        told(op, res->etag);
    } else if (is_refused && xf_op_may_relay(op)) {
        if (code == XF_E_NO_COPY) {
            xf_engine_note(op->run,
                           XF_FACT_NO_PART_COPY,
                           "no_server_part_copy",
                           "the service does not copy parts by itself: the bytes of large objects "
                           "go through the agents from now on");
        }
        op->no_copy = true;
        transfer(op);
    } else {
        failed(op, res);
    }
}

/* ---- relay ---- */

static struct xf_s3_req *get_start(struct xf_op *op)
{
    return xf_relay_get_range(op, op->offset, op->len);
}

static void get_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code != XF_OK) {
        failed(op, res);
        return;
    }
    op->src_is_opaque = xf_verify_is_opaque(res->attrs);
    if (xf_relay_check(op, op->len, op->len == op->size, &err) != XF_OK) {
        xf_upload_retry(op, PART_GET, &err);
        return;
    }
    xf_op_go(op, PART_PUT);
}

static struct xf_s3_req *put_start(struct xf_op *op)
{
    const struct xf_s3_part_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .upload_id = op->run->w->upload_id,
        .part_no = op->part_no,
        .body = xf_relay_body(op, op->len),
    };
    return xf_s3_part(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static struct xf_s3_req *stream_start(struct xf_op *op)
{
    return xf_stream_start(
        &(struct xf_stream_opts){.op = op, .offset = op->offset, .len = op->len, .is_part = true});
}

/* Does the answer to a part prove its bytes? An encrypted part's etag says nothing: its upload's
 * does not either, and is not taken for a proof. */
static enum xf_code check_put(struct xf_op *op, const struct xf_s3_result *res, struct xf_err *err)
{
    const struct xf_verify_etag got = {res->etag, res->etag_is_opaque};
    enum xf_verify by_sum = xf_sums_echo(op, res);

    if (by_sum == XF_VERIFY_UNKNOWN) {
        xf_relay_need_md5(op, op->len);
    }
    if (by_sum == XF_VERIFY_DIFFERENT) {
        return XF_FAIL(err,
                       XF_E_CHECKSUM,
                       "part %u: the service has another %s of the %ju bytes sent",
                       op->part_no,
                       xf_sum_name(op->sum.alg),
                       (uintmax_t)op->len);
    }
    if (by_sum == XF_VERIFY_UNKNOWN && !op->has_md5) {
        return xf_sums_unsaid(op, op->len, err);
    }
    if (op->has_md5 && xf_verify_md5(op->md5, got) == XF_VERIFY_DIFFERENT) {
        return XF_FAIL(err,
                       XF_E_CHECKSUM,
                       "part %u: etag '%.*s' is not the MD5 of the %ju bytes sent",
                       op->part_no,
                       XF_STR_ARG(res->etag),
                       (uintmax_t)op->len);
    }
    return XF_OK;
}

/* Of a PUT, or of a streamed pair. */
static void put_done(struct xf_op *op, const struct xf_s3_result *res)
{
    unsigned again = op->state == PART_STREAM ? PART_STREAM : PART_GET;
    struct xf_err err;

    if (res->err.code == XF_E_CHECKSUM) {
        xf_upload_retry(op, again, &res->err); /* the read may have been the bad one */
    } else if (res->err.code != XF_OK) {
        failed(op, res);
    } else if (check_put(op, res, &err) != XF_OK) {
        xf_upload_retry(op, again, &err);
    } else {
        told(op, res->etag);
    }
}

/* ---- 404 ---- */

static void gone_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code == XF_E_NOT_FOUND) {
        xf_upload_ended(op, XF_OUTCOME_VANISHED);
    } else if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
    } else if (xf_op_is_changed(op, res)) {
        xf_upload_changed(op);
    } else if (op->mode == XF_MODE_SERVER && xf_op_may_relay(op)) {
        op->no_copy = true; /* the server does not find an encoded copy source */
        transfer(op);
    } else {
        (void)XF_FAIL(&err, XF_E_SERVER, "a read says the object is not there, a HEAD that it is");
        xf_upload_retry(op, op->len <= XF_POOL_BUF_MAX ? PART_GET : PART_STREAM, &err);
    }
}

#define ON(state) XF_TO(PART_##state)
/* clang-format off */
static const struct xf_step part_steps[PART_N] = {
    [PART_COPY]   = {"part_copy",   XF_DST, XF_STEP_WRITE | XF_STEP_PART_COPY, ON(GET) | ON(STREAM) | ON(GONE), copy_start, copy_done},
    [PART_GET]    = {"part_get",    XF_SRC, XF_STEP_BULK, ON(PUT) | ON(GONE), get_start, get_done},
    [PART_PUT]    = {"part_put",    XF_DST, XF_STEP_WRITE | XF_STEP_BUFFERED, ON(GET) | ON(GONE), put_start, put_done},
    [PART_STREAM] = {"part_stream", XF_DST, XF_STEP_WRITE | XF_STEP_BOTH | XF_STEP_BULK, ON(GONE), stream_start, put_done},
    [PART_GONE]   = {"part_gone",   XF_SRC, 0, ON(GET) | ON(STREAM), xf_upload_head_source, gone_done},
};
/* clang-format on */

void xf_parts_begin(struct xf_run *run, uint32_t part_no)
{
    const struct xf_work *w = run->w;
    struct xf_op *op = xf_upload_op(run, part_steps, PART_N);
    const struct xf_plan plan = {
        .size = w->manifest.objects[0].size, .part_size = w->part_size, .n_parts = w->n_parts};
    struct xf_err err;

    if (op == NULL) {
        return; /* told */
    }
    op->part_no = part_no;
    op->choose = transfer;
    if ((uint64_t)(part_no - 1) > (op->size - 1) / w->part_size || op->size == 0) {
        (void)XF_FAIL(&err, XF_E_PROTO, "part %u is beyond the object's end", part_no);
        xf_upload_fail(op, &err, NULL, true);
        return;
    }
    xf_plan_range(&plan, part_no, &op->offset, &op->len);
    transfer(op);
}
