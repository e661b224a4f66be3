/* engine_read.c - see engine_read.h. */
#include "agent/engine_read.h"

#include "common/base/hash.h"
#include "common/job/spec.h"

/* ---- what is wanted ---- */

/* What the source's bytes sum to, from what is known without reading them (again). */
static bool know_source(struct xf_op *op)
{
    unsigned char md5[XF_MD5_LEN];

    if (op->sum.alg != XF_SUM_NONE) {
        return true;
    }
    if (op->src_sum.alg != XF_SUM_NONE && !op->src_sum.is_composite) {
        op->sum = op->src_sum;
    } else if (!op->src_is_opaque && xf_verify_plain_md5(xf_str_c(op->etag), md5)) {
        (void)xf_sum_load(XF_SUM_MD5, xf_str_n((const char *)md5, sizeof(md5)), &op->sum);
    }
    return op->sum.alg != XF_SUM_NONE;
}

/* Do both services tell the same, by a digest of all bytes? */
static bool is_told(const struct xf_op *op)
{
    const struct xf_verify_etag dst = {xf_str_c(op->dst_etag), op->dst_is_opaque};
    unsigned char md5[XF_MD5_LEN];

    return xf_sum_eq(&op->src_sum, &op->dst_sum) || xf_sum_eq(&op->sum, &op->dst_sum) ||
           (!op->src_is_opaque && xf_verify_plain_md5(xf_str_c(op->etag), md5) &&
            xf_verify_md5(md5, dst) == XF_VERIFY_SAME) ||
           (op->has_md5 && xf_verify_md5(op->md5, dst) == XF_VERIFY_SAME);
}

enum xf_proof xf_read_want(struct xf_op *op, enum xf_level *level)
{
    enum xf_job_verify mode = (enum xf_job_verify)xf_op_spec(op)->verify;

    switch (mode) {
    case XF_JOB_VERIFY_NONE:
    case XF_JOB_VERIFY_ETAG: return XF_PROOF_DONE;
    case XF_JOB_VERIFY_SIZE: return op->has_looked ? XF_PROOF_DONE : XF_PROOF_HEAD_DST;
    case XF_JOB_VERIFY_CHECKSUM:
        if (is_told(op)) {
            *level = XF_LEVEL_CHECKSUM;
            return XF_PROOF_DONE;
        }
        return know_source(op) ? XF_PROOF_READ_DST : XF_PROOF_READ_SRC;
    case XF_JOB_VERIFY_FULL: break;
    }
    return op->sum.alg == XF_SUM_SHA256 ? XF_PROOF_READ_DST : XF_PROOF_READ_SRC;
}

/* ---- reading ---- */

static enum xf_http_flow on_data(void *arg, const char *data, size_t len)
{
    struct xf_op *op = arg;

    xf_summing_add(&op->summing, data, len);
    op->got += len;
    return XF_HTTP_GO;
}

struct xf_s3_req *xf_read_start(struct xf_op *op, enum xf_side side)
{
    bool is_src = side == XF_SRC;
    const struct xf_s3_get_opts o = {
        .bucket = xf_op_bucket(op, side),
        .key = is_src ? op->obj->key : xf_op_dst_key(op),
        .version_id = is_src ? op->obj->version_id : XF_STR_EMPTY,
        .if_match = xf_str_c(is_src ? op->etag : op->dst_etag),
        .object_size = op->size,
        .sink = {.on_data = on_data, .arg = op},
    };
    xf_summing_begin(&op->summing, is_src ? XF_SUM_SHA256 : op->sum.alg);
    op->got = 0;
    return xf_s3_get(xf_op_s3(op, side), &o, xf_op_reply, op);
}

enum xf_code xf_read_end(struct xf_op *op, struct xf_sum *sum, struct xf_err *err)
{
    if (op->got != op->size) {
        return XF_FAIL(
            err, XF_E_TRUNCATED, "read %ju of %ju bytes", (uintmax_t)op->got, (uintmax_t)op->size);
    }
    xf_summing_end(&op->summing, sum);
    return XF_OK;
}

/* ---- small objects ---- */

void xf_small_proved(struct xf_op *op, enum xf_level level)
{
    switch (xf_read_want(op, &level)) {
    case XF_PROOF_DONE: xf_small_copied(op, level); break;
    case XF_PROOF_HEAD_DST:
        xf_op_go(op, op->mode == XF_MODE_RELAY ? XF_SMALL_PUT_DST : XF_SMALL_COPY_DST);
        break;
    case XF_PROOF_READ_SRC: xf_op_go(op, XF_SMALL_READ_SRC); break;
    case XF_PROOF_READ_DST: xf_op_go(op, XF_SMALL_READ_DST); break;
    }
}

void xf_small_compare(struct xf_op *op)
{
    bool is_full = xf_op_spec(op)->verify == XF_JOB_VERIFY_FULL;
    bool is_known = is_full ? op->sum.alg == XF_SUM_SHA256 : know_source(op);

    op->is_comparing = true;
    xf_op_go(op, is_known ? XF_SMALL_READ_DST : XF_SMALL_READ_SRC);
}

struct xf_s3_req *xf_small_read_src(struct xf_op *op)
{
    return xf_read_start(op, XF_SRC);
}

struct xf_s3_req *xf_small_read_dst(struct xf_op *op)
{
    return xf_read_start(op, XF_DST);
}

void xf_small_read_src_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code == XF_E_CHANGED) {
        xf_small_replan(op);
    } else if (res->err.code == XF_E_NOT_FOUND) {
        xf_op_go(op, XF_SMALL_GONE);
    } else if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
    } else if (xf_read_end(op, &op->sum, &err) != XF_OK) {
        xf_small_retry(op, XF_SMALL_READ_SRC, &err);
    } else {
        xf_op_go(op, XF_SMALL_READ_DST);
    }
}

/* The destination was compared before anything was copied. */
static void compared(struct xf_op *op, bool is_same)
{
    op->is_comparing = false;
    if (is_same) {
        xf_small_is_there(op, XF_LEVEL_FULL);
    } else {
        xf_small_transfer(op);
    }
}

void xf_small_read_dst_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_sum sum;
    struct xf_err err;
    bool is_moved = res->err.code == XF_E_CHANGED || res->err.code == XF_E_NOT_FOUND;

    if (is_moved && op->is_comparing) {
        compared(op, false);
    } else if (is_moved) {
        (void)XF_FAIL(&err, XF_E_CHECKSUM, "the destination changed before it was read back");
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    } else if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
    } else if (xf_read_end(op, &sum, &err) != XF_OK) {
        xf_small_retry(op, XF_SMALL_READ_DST, &err);
    } else if (op->is_comparing) {
        compared(op, xf_sum_eq(&sum, &op->sum));
    } else if (xf_sum_eq(&sum, &op->sum)) {
        xf_small_copied(op, XF_LEVEL_FULL);
    } else {
        (void)XF_FAIL(
            &err, XF_E_CHECKSUM, "read back, the destination's bytes are not the source's");
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    }
}
