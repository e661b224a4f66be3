/* engine_read.c - see engine_read.h. */
#include "agent/engine_read.h"

#include "common/base/hash.h"
#include "common/job/spec.h"

/* ---- what is wanted ---- */

/* The source's MD5, from its etag or from the bytes that went through. */
static bool know_source(struct xf_op *op)
{
    if (!op->has_source_md5 && !op->src_is_opaque &&
        xf_verify_plain_md5(xf_str_c(op->etag), op->source_md5)) {
        op->has_source_md5 = true;
    }
    return op->has_source_md5;
}

static bool dest_etag_is(const struct xf_op *op, const unsigned char *md5)
{
    const struct xf_verify_etag dst = {xf_str_c(op->dst_etag), op->dst_is_opaque};

    return xf_verify_md5(md5, dst) == XF_VERIFY_SAME;
}

enum xf_proof xf_read_want(struct xf_op *op, enum xf_level *level)
{
    enum xf_job_verify mode = (enum xf_job_verify)xf_op_spec(op)->verify;

    switch (mode) {
    case XF_JOB_VERIFY_NONE:
    case XF_JOB_VERIFY_ETAG: return XF_PROOF_DONE;
    case XF_JOB_VERIFY_SIZE: return op->has_looked ? XF_PROOF_DONE : XF_PROOF_HEAD_DST;
    case XF_JOB_VERIFY_CHECKSUM:
        if (know_source(op) && dest_etag_is(op, op->source_md5)) {
            *level = XF_LEVEL_CHECKSUM;
            return XF_PROOF_DONE;
        }
        break;
    case XF_JOB_VERIFY_FULL: break;
    }
    return know_source(op) ? XF_PROOF_READ_DST : XF_PROOF_READ_SRC;
}

/* ---- reading ---- */

static enum xf_http_flow on_data(void *arg, const char *data, size_t len)
{
    struct xf_op *op = arg;

    xf_hash_update(op->hash, data, len);
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
    if (op->hash == NULL) {
        op->hash = xf_hash_new(XF_HASH_MD5);
    } else {
        xf_hash_reset(op->hash);
    }
    op->got = 0;
    return xf_s3_get(xf_op_s3(op, side), &o, xf_op_reply, op);
}

enum xf_code xf_read_end(struct xf_op *op, unsigned char md5[16], struct xf_err *err)
{
    xf_hash_final(op->hash, md5);
    if (op->got != op->size) {
        return XF_FAIL(
            err, XF_E_TRUNCATED, "read %ju of %ju bytes", (uintmax_t)op->got, (uintmax_t)op->size);
    }
    return XF_OK;
}

/* ---- small objects ---- */

void xf_small_proved(struct xf_op *op, enum xf_level level)
{
    if (op->mode == XF_MODE_RELAY && !op->is_comparing) {
        memcpy(op->source_md5, op->md5, sizeof(op->source_md5)); /* of the bytes that came */
        op->has_source_md5 = true;
    }
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
    op->is_comparing = true;
    xf_op_go(op, know_source(op) ? XF_SMALL_READ_DST : XF_SMALL_READ_SRC);
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
    } else if (xf_read_end(op, op->source_md5, &err) != XF_OK) {
        xf_small_retry(op, XF_SMALL_READ_SRC, &err);
    } else {
        op->has_source_md5 = true;
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
    unsigned char md5[XF_MD5_LEN];
    struct xf_err err;
    bool is_moved = res->err.code == XF_E_CHANGED || res->err.code == XF_E_NOT_FOUND;

    if (is_moved && op->is_comparing) {
        compared(op, false);
    } else if (is_moved) {
        (void)XF_FAIL(&err, XF_E_CHECKSUM, "the destination changed before it was read back");
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    } else if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
    } else if (xf_read_end(op, md5, &err) != XF_OK) {
        xf_small_retry(op, XF_SMALL_READ_DST, &err);
    } else if (op->is_comparing) {
        compared(op, memcmp(md5, op->source_md5, sizeof(md5)) == 0);
    } else if (memcmp(md5, op->source_md5, sizeof(md5)) == 0) {
        xf_small_copied(op, XF_LEVEL_FULL);
    } else {
        (void)XF_FAIL(
            &err, XF_E_CHECKSUM, "read back, the destination's bytes are not the source's");
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    }
}
