/*
 * engine_copy.c - CopyObject for one small object, and the proof that it worked.
 *
 * A 200 is not proof. An etag in the result that equals the source's is: a condition that the
 * server ignored cannot give it. Anything else is settled by HEADs of the destination (size, etag)
 * and of the source (still what was copied).
 */
#include "agent/engine_int.h"
#include "agent/engine_read.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

static const struct xf_s3_attrs no_attrs;

struct xf_s3_req *xf_copy_start(struct xf_op *op)
{
    const struct xf_job_spec *spec = xf_op_spec(op);
    const struct xf_s3_copy_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .source = xf_op_source(op),
        .size = op->size,
        .attrs = !spec->metadata      ? &no_attrs
                 : spec->source_mtime ? op->attrs
                                      : NULL,
        .replace_tags = spec->tags == XF_JOB_TAGS_NONE || op->no_tags,
        .storage_class = xf_op_class(op),
        .guards = xf_op_guards(op),
        .website_redirect =
            op->attrs != NULL && spec->metadata ? op->attrs->website_redirect : XF_STR_EMPTY,
        .if_absent = xf_op_is_if_absent(op),
    };
    op->copy_unknown = false;
    return xf_s3_copy(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static enum xf_verify compare(const struct xf_op *op)
{
    return xf_verify_etags((struct xf_verify_etag){xf_str_c(op->etag), op->src_is_opaque},
                           (struct xf_verify_etag){xf_str_c(op->dst_etag), op->dst_is_opaque});
}

/* This object, and perhaps all others, cannot be copied by the server. */
static void go_by_relay(struct xf_op *op, const struct xf_err *err)
{
    if (!xf_op_may_relay(op)) {
        xf_small_fail_err(op, err, false);
        return;
    }
    op->no_copy = true;
    xf_small_transfer(op);
}

static void no_server_copy(struct xf_op *op, const struct xf_err *err)
{
    if (xf_op_may_relay(op)) {
        xf_engine_note(op->run,
                       XF_FACT_NO_COPY,
                       "no_server_copy",
                       "the service does not copy objects by itself: every byte goes through the "
                       "agents from now on");
    }
    go_by_relay(op, err);
}

/* Denied: perhaps only the tags are, perhaps these credentials cannot read the source. */
static void copy_denied(struct xf_op *op, const struct xf_s3_result *res)
{
    if (xf_op_spec(op)->tags == XF_JOB_TAGS_BEST_EFFORT && !op->no_tags) {
        op->no_tags = true;
        xf_op_go(op, XF_SMALL_COPY);
    } else if (xf_op_may_relay(op)) {
        op->no_tags = false;
        op->was_denied = true;
        go_by_relay(op, &res->err);
    } else {
        xf_small_fail(op, res);
    }
}

static void copy_worked(struct xf_op *op, const struct xf_s3_result *res)
{
    op->has_stored = true;
    xf_op_keep_etag(op->dst_etag, res->etag);
    if (op->no_tags) {
        xf_op_drop_tags(op);
    }
    if (xf_op_is_plain(op, res->is_encrypted)) {
        xf_op_go(op, XF_SMALL_COPY_DST); /* perhaps it says so there */
    } else if (compare(op) == XF_VERIFY_SAME) {
        xf_small_proved(op, XF_LEVEL_ETAG);
    } else if (xf_op_spec(op)->verify == XF_JOB_VERIFY_NONE) {
        xf_small_copied(op, XF_LEVEL_NONE);
    } else {
        xf_op_go(op, XF_SMALL_COPY_DST);
    }
}

void xf_copy_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;
    enum xf_code code = res->err.code;

    if (code == XF_OK) {
        copy_worked(op, res);
    } else if (code == XF_E_EXISTS) {
        xf_small_exists(op, res);
    } else if (code == XF_E_CHANGED) {
        xf_small_replan(op);
    } else if (code == XF_E_NOT_FOUND) {
        xf_op_go(op, XF_SMALL_GONE);
    } else if (code == XF_E_NO_COPY && res->copy_ignored) {
        op->copy_unknown = true;
        xf_op_go(op, XF_SMALL_COPY_DST);
    } else if (code == XF_E_NO_COPY) {
        no_server_copy(op, &res->err);
    } else if (xf_op_may_drop_class(op, res)) {
        xf_op_go(op, XF_SMALL_COPY);
    } else if (code == XF_E_DENIED) {
        copy_denied(op, res);
    } else if (code == XF_E_TOO_LARGE ||
               (code == XF_E_BAD_REQUEST && op->size > XF_PLAN_COPY_MAX / 8)) {
        (void)XF_FAIL_SUB(&err,
                          XF_E_TOO_LARGE,
                          res->status,
                          "one copy of %ju bytes was refused, it needs parts: %s",
                          (uintmax_t)op->size,
                          res->err.msg);
        xf_small_fail_err(op, &err, true);
    } else {
        xf_small_fail(op, res);
    }
}

/* A 200 without a result: was it done, or taken for a PUT of nothing? */
static void judge_unknown(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->size == op->size && op->size > 0 && compare(op) == XF_VERIFY_SAME) {
        op->has_looked = true;
        xf_small_proved(op, XF_LEVEL_ETAG);
        return;
    }
    (void)XF_FAIL(&err,
                  XF_E_NO_COPY,
                  "server accepted copy but stored %ju of %ju bytes",
                  (uintmax_t)res->size,
                  (uintmax_t)op->size);
    if (res->size == 0 && op->size > 0) {
        no_server_copy(op, &err);
    } else {
        go_by_relay(op, &err);
    }
}

/* Ceph takes the header, and copies without encrypting; of what goes through us it does more. */
static void copied_plain(struct xf_op *op)
{
    struct xf_err err;

    xf_op_say_plain(&err);
    if (xf_op_may_relay(op)) {
        xf_engine_note(op->run,
                       XF_FACT_NO_COPY,
                       "copies_not_encrypted",
                       "the service does not encrypt what it copies by itself: every byte goes "
                       "through the agents from now on");
    }
    go_by_relay(op, &err);
}

void xf_copy_dst_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code == XF_E_NOT_FOUND) {
        (void)XF_FAIL(&err, XF_E_SERVER, "the copy was reported as made, but nothing is there");
        if (op->copy_unknown) {
            go_by_relay(op, &err);
        } else {
            xf_small_retry(op, XF_SMALL_RENEW, &err);
        }
        return;
    }
    if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
        return;
    }
    if (xf_op_is_plain(op, res->is_encrypted)) {
        copied_plain(op);
        return;
    }
    op->dst_size = res->size;
    op->dst_is_opaque = xf_verify_is_opaque(res->attrs);
    op->dst_sum = res->sum;
    if (op->copy_unknown) {
        xf_op_keep_etag(op->dst_etag, res->etag);
        judge_unknown(op, res);
    } else if (!xf_plan_etag_eq(res->etag, xf_str_c(op->dst_etag))) {
        (void)XF_FAIL(&err, XF_E_CHECKSUM, "the destination is not what the copy reported");
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    } else if (res->size == op->size && compare(op) == XF_VERIFY_SAME) {
        op->has_looked = true;
        xf_small_proved(op, XF_LEVEL_ETAG);
    } else {
        xf_op_go(op, XF_SMALL_COPY_SRC);
    }
}

/* The copy is there, the source is unchanged: are they the same? */
static void judge(struct xf_op *op)
{
    struct xf_err err;
    enum xf_verify verdict = compare(op);
    enum xf_verify by_sum = xf_verify_sums(&op->src_sum, &op->dst_sum);

    if (op->dst_size == op->size && verdict != XF_VERIFY_DIFFERENT &&
        by_sum != XF_VERIFY_DIFFERENT) {
        op->has_looked = true;
        xf_small_proved(op,
                        verdict == XF_VERIFY_SAME  ? XF_LEVEL_ETAG
                        : by_sum == XF_VERIFY_SAME ? XF_LEVEL_CHECKSUM
                                                   : XF_LEVEL_SIZE);
    } else if (op->dst_size == 0 && op->size > 0) {
        (void)XF_FAIL(&err,
                      XF_E_NO_COPY,
                      "server accepted copy but stored 0 of %ju bytes",
                      (uintmax_t)op->size);
        no_server_copy(op, &err);
    } else {
        (void)XF_FAIL(&err,
                      XF_E_CHECKSUM,
                      "the destination has %ju of %ju bytes, etag '%s' for '%s'",
                      (uintmax_t)op->dst_size,
                      (uintmax_t)op->size,
                      op->dst_etag,
                      op->etag);
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    }
}

void xf_copy_src_done(struct xf_op *op, const struct xf_s3_result *res)
{
    bool may_be_it = op->dst_size == op->size && compare(op) != XF_VERIFY_DIFFERENT;

    if (res->err.code == XF_E_NOT_FOUND && may_be_it) {
        xf_small_copied(op, XF_LEVEL_SIZE); /* gone after it was copied */
    } else if (res->err.code == XF_E_NOT_FOUND) {
        xf_op_go(op, XF_SMALL_GONE);
    } else if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
    } else if (xf_op_is_changed(op, res)) {
        xf_small_replan(op); /* the condition was ignored: what was copied may be a later version */
    } else {
        op->src_is_opaque = xf_verify_is_opaque(res->attrs);
        op->src_sum = res->sum;
        judge(op);
    }
}
