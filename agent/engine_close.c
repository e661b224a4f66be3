/*
 * engine_close.c - complete an upload and prove the result; abort one until it is gone.
 *
 *   source -> complete -> dest -> [lock] -> [hold] -> [tags -> put tags] -> [source again]
 *     -> [read source] -> [read dest] -> told
 *   abort -> parts -> (still there) abort ...
 *   find -> found -> [abort] -> find ...      without an upload id
 *
 * Complete is sent only with parts 1 to N whose layout covers the object, and only while the
 * source is what was copied. A Complete whose answer was lost is judged by the destination: its
 * etag must be the one that follows from the parts, an object of the same size is not enough.
 *
 * Where the service sums the upload as its parts were summed here, theirs combine to that of the
 * whole object: Complete is held to it, the destination has to tell it afterwards, and where the
 * source tells one by the same algorithm that has to be it, too.
 */
#include "agent/engine_int.h"
#include "agent/engine_read.h"
#include "agent/engine_sum.h"
#include "agent/engine_upload.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

enum close_state {
    CLOSE_SRC,
    CLOSE_COMPLETE,
    CLOSE_DST,
    CLOSE_LOCK, /* some services (Ceph 16) forget retention and hold in an upload */
    CLOSE_HOLD,
    CLOSE_TAGS,     /* source: the destination shows none, though some were given at the open */
    CLOSE_PUT_TAGS, /* some services (Ceph 16) forget them in an upload */
    CLOSE_AGAIN,    /* source: did it change while Complete was under way? */
    CLOSE_READ_SRC,
    CLOSE_READ_DST,
    CLOSE_N
};

/* ---- the parts ---- */

static enum xf_code check_parts(const struct xf_op *op, struct xf_err *err)
{
    const struct xf_work *w = op->run->w;
    const struct xf_plan plan = {
        .size = op->size, .part_size = w->part_size, .n_parts = w->n_parts};
    uint64_t offset = 0;
    uint64_t len = 0;

    if (w->part_size == 0 || w->n_done_parts != w->n_parts) {
        return XF_FAIL(err, XF_E_PROTO, "%u of %u parts are named", w->n_done_parts, w->n_parts);
    }
    for (uint32_t i = 0; i < w->n_parts; i++) {
        const struct xf_work_part *part = &w->parts[i];
        if (part->part_no != i + 1 || part->etag.len == 0) {
            return XF_FAIL(err, XF_E_PROTO, "part %u is missing", i + 1);
        }
        if (offset + len >= op->size) {
            return XF_FAIL(err, XF_E_PROTO, "part %u is beyond the object's end", i + 1);
        }
        xf_plan_range(&plan, i + 1, &offset, &len);
        if (part->size != 0 && part->size != len) { /* 0: not kept; the layout says it */
            return XF_FAIL(err,
                           XF_E_TRUNCATED,
                           "part %u has %ju of %ju bytes",
                           i + 1,
                           (uintmax_t)part->size,
                           (uintmax_t)len);
        }
    }
    if (offset + len != op->size) {
        return XF_FAIL(err,
                       XF_E_TRUNCATED,
                       "the parts have %ju of %ju bytes",
                       (uintmax_t)(offset + len),
                       (uintmax_t)op->size);
    }
    return XF_OK;
}

/* What the etag has to be; false when the parts' etags are no MD5s. */
static bool expected_etag(const struct xf_work *w, char out[64])
{
    struct xf_verify_parts *v = xf_verify_parts_new();

    for (uint32_t i = 0; i < w->n_done_parts; i++) {
        xf_verify_parts_add(v, w->parts[i].etag);
    }
    bool known = xf_verify_parts_etag(v, out);
    xf_verify_parts_free(v);
    return known;
}

/* Of the form that S3 gives to an upload? Others say nothing about the bytes. */
static bool is_of_parts(struct xf_str etag)
{
    return xf_plan_etag_is_md5(etag) && xf_plan_etag_parts(etag) > 0;
}

static bool all_seen(const struct xf_work *w)
{
    for (uint32_t i = 0; i < w->n_done_parts; i++) {
        if (!w->parts[i].has_md5 && w->parts[i].sum.alg == XF_SUM_NONE) {
            return false;
        }
    }
    return true;
}

/* The sum of the bytes that went through, from those of the parts; not known when one has none. */
static struct xf_sum sum_of_parts(const struct xf_op *op)
{
    const struct xf_work *w = op->run->w;
    const struct xf_plan plan = {
        .size = op->size, .part_size = w->part_size, .n_parts = w->n_parts};
    struct xf_sum sum = {0};
    uint64_t offset;
    uint64_t len;

    for (uint32_t i = 0; i < w->n_done_parts; i++) {
        if (w->sum == XF_SUM_NONE || w->parts[i].sum.alg != w->sum) {
            return (struct xf_sum){0};
        }
        xf_plan_range(&plan, i + 1, &offset, &len);
        if (i == 0) {
            sum = w->parts[i].sum;
        } else {
            xf_sum_append(&sum, &w->parts[i].sum, len);
        }
    }
    return sum;
}

/* The source has the parts' bytes, as far as it says. */
static enum xf_code check_source(struct xf_op *op, const struct xf_sum *source, struct xf_err *err)
{
    op->src_sum = *source;
    op->sum = sum_of_parts(op);
    if (xf_verify_sums(&op->src_sum, &op->sum) == XF_VERIFY_DIFFERENT) {
        return XF_FAIL(err,
                       XF_E_CHECKSUM,
                       "the bytes that came do not match the source's %s",
                       xf_sum_name(op->sum.alg));
    }
    return XF_OK;
}

/* ---- complete ---- */

static void source_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code == XF_E_NOT_FOUND) {
        xf_upload_ended(op, XF_OUTCOME_VANISHED);
    } else if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
    } else if (xf_op_is_changed(op, res)) {
        xf_upload_changed(op);
    } else if (check_parts(op, &err) != XF_OK) {
        xf_upload_fail(op, &err, NULL, true);
    } else if (check_source(op, &res->sum, &err) != XF_OK) {
        xf_upload_fail(op, &err, NULL, true);
    } else {
        op->src_is_opaque = xf_verify_is_opaque(res->attrs);
        xf_op_keep_attrs(op, res);
        op->wants_tags = xf_op_wants_tags(op, res->attrs);
        xf_op_go(op, CLOSE_COMPLETE);
    }
}

static struct xf_s3_req *complete_start(struct xf_op *op)
{
    const struct xf_work *w = op->run->w;
    XF_AUTO_ARENA a = {0};
    struct xf_xml_part *parts = xf_arena_calloc(&a, w->n_parts, sizeof(*parts));

    for (uint32_t i = 0; i < w->n_parts; i++) {
        parts[i].part_no = w->parts[i].part_no;
        parts[i].etag = w->parts[i].etag;
    }
    const struct xf_s3_complete_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .upload_id = w->upload_id,
        .parts = parts,
        .n_parts = w->n_parts,
        .object_size = op->size,
        .if_absent = xf_op_is_if_absent(op),
        .sum = xf_sums_send(op, &op->sum),
    };
    return xf_s3_complete(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static void complete_done(struct xf_op *op, const struct xf_s3_result *res)
{
    enum xf_code code = res->err.code;

    if (code == XF_OK) {
        op->has_stored = true;
        xf_op_keep_etag(op->dst_etag, res->etag);
        xf_op_go(op, CLOSE_DST);
    } else if (code == XF_E_NO_UPLOAD || code == XF_E_EXISTS || code == XF_E_NOT_FOUND) {
        op->copy_unknown = true; /* an earlier Complete may have done it */
        op->lost_code = code;
        xf_op_go(op, CLOSE_DST);
    } else {
        xf_upload_fail_res(op, res);
    }
}

/* ---- the destination ---- */

static void copied(struct xf_op *op, enum xf_level level)
{
    const struct xf_work *w = op->run->w;
    struct xf_result r = {
        .outcome = XF_OUTCOME_COPIED,
        .level = level,
        .mode = XF_MODE_SERVER,
        .size_bytes = op->size,
        .etag = xf_str_c(op->dst_etag),
        .flags = op->copy_unknown ? XF_RESULT_OWN : 0,
    };
    for (uint32_t i = 0; i < w->n_done_parts; i++) {
        if (w->parts[i].has_md5 || w->parts[i].through > 0) {
            r.mode = XF_MODE_RELAY;
        }
    }
    (void)atomic_fetch_add(&op->run->e->n_objects, 1); /* a count */
    xf_upload_outcome(op, &r);
}

/* It is there, with the right size and etag: end it, or go on with what the job's mode wants. */
static void proved(struct xf_op *op)
{
    const struct xf_verify_etag src = {xf_str_c(op->etag), op->src_is_opaque};
    const struct xf_verify_etag dst = {xf_str_c(op->dst_etag), op->dst_is_opaque};
    bool is_same = xf_verify_etags(src, dst) == XF_VERIFY_SAME;
    bool is_seen = op->as_expected && all_seen(op->run->w);
    bool is_summed = xf_sum_eq(&op->src_sum, &op->dst_sum) || xf_sum_eq(&op->sum, &op->dst_sum);
    enum xf_level level = is_same || is_seen ? XF_LEVEL_ETAG
                          : is_summed        ? XF_LEVEL_CHECKSUM
                                             : XF_LEVEL_SIZE;

    if (!is_same && !op->has_asked_again && !xf_op_is_if_absent(op)) {
        op->has_asked_again = true;
        xf_op_go(op, CLOSE_AGAIN);
        return;
    }
    if ((is_seen || is_summed) && xf_op_spec(op)->verify == XF_JOB_VERIFY_CHECKSUM) {
        copied(op, XF_LEVEL_CHECKSUM); /* the whole, or every part on the way */
        return;
    }
    op->has_looked = true;
    switch (xf_read_want(op, &level)) {
    case XF_PROOF_DONE:
    case XF_PROOF_HEAD_DST: copied(op, level); break;
    case XF_PROOF_READ_SRC: xf_op_go(op, CLOSE_READ_SRC); break;
    case XF_PROOF_READ_DST: xf_op_go(op, CLOSE_READ_DST); break;
    }
}

/* What was given at the open and is not there. */
static uint32_t lost(const struct xf_op *op, const struct xf_s3_attrs *there)
{
    const struct xf_s3_attrs *given = xf_op_attrs(op);
    struct xf_str want = xf_op_class(op);
    struct xf_str got =
        there->storage_class.len > 0 ? there->storage_class : XF_STR_LIT("STANDARD");
    uint32_t flags = 0;

    if (given != NULL && (given->missing_meta > 0 || xf_s3_attrs_lack(there, given))) {
        flags |= XF_RESULT_META_DROPPED;
    }
    if (want.len > 0 && !xf_str_eq(want, got)) {
        flags |= XF_RESULT_CLASS_DROPPED;
    }
    return flags;
}

/* What else has to be given to what is there. */
static void go_on(struct xf_op *op)
{
    if (op->wants_lock) {
        xf_op_go(op, CLOSE_LOCK);
    } else if (op->wants_hold) {
        xf_op_go(op, CLOSE_HOLD);
    } else if (op->wants_tags) {
        xf_op_go(op, CLOSE_TAGS);
    } else {
        proved(op);
    }
}

/* The bytes are there; is the rest? Only a service that shows none is asked further. */
static void arrived(struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_s3_guards given = xf_op_guards(op);
    const struct xf_s3_attrs *there = res->attrs;
    struct xf_err err;

    if (xf_op_is_plain(op, res->is_encrypted)) {
        xf_op_say_plain(&err);
        xf_upload_fail(op, &err, NULL, false);
        return;
    }
    op->flags |= lost(op, there);
    op->wants_lock = given.lock_mode.len > 0 && there->lock_mode.len == 0;
    op->wants_hold = xf_str_eq_c(given.legal_hold, "ON") && !xf_str_eq_c(there->legal_hold, "ON");
    op->wants_tags = op->wants_tags && there->tag_count == 0;
    go_on(op);
}

static struct xf_s3_req *put_lock(struct xf_op *op)
{
    const struct xf_s3_guards given = xf_op_guards(op);
    struct xf_s3_lock_opts o = {.bucket = xf_op_bucket(op, XF_DST), .key = xf_op_dst_key(op)};

    if (op->state == CLOSE_HOLD) {
        o.legal_hold = given.legal_hold;
    } else {
        o.mode = given.lock_mode;
        o.until = given.lock_until;
    }
    return xf_s3_put_lock(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static void lock_put(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
        return;
    }
    if (op->state == CLOSE_HOLD) {
        op->wants_hold = false;
    } else {
        op->wants_lock = false;
    }
    go_on(op);
}

static void tags_read(struct xf_op *op, const struct xf_s3_result *res)
{
    if (!xf_op_take_tags(op, res)) {
        xf_upload_fail_res(op, res);
    } else if (op->tags.len == 0) {
        proved(op);
    } else {
        xf_op_go(op, CLOSE_PUT_TAGS);
    }
}

static struct xf_s3_req *put_tags(struct xf_op *op)
{
    const struct xf_s3_tags_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .tags = xf_buf_view(&op->tags),
    };
    return xf_s3_put_tags(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static void tags_put(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK) {
        proved(op);
    } else if (xf_op_may_drop_tags(op, res->err.code)) {
        xf_op_drop_tags(op);
        proved(op);
    } else {
        xf_upload_fail_res(op, res);
    }
}

/*
 * What is there is newer than the source now. Where the etags cannot be compared the next run would
 * take that for a proof, so a change before Complete was done has to be found here.
 */
static void again_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK && xf_op_is_changed(op, res)) {
        xf_upload_changed(op);
    } else if (res->err.code == XF_OK || res->err.code == XF_E_NOT_FOUND) {
        proved(op);
    } else {
        xf_upload_fail_res(op, res);
    }
}

static struct xf_s3_req *read_src(struct xf_op *op)
{
    return xf_read_start(op, XF_SRC);
}

static struct xf_s3_req *read_dst(struct xf_op *op)
{
    return xf_read_start(op, XF_DST);
}

static void read_src_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (res->err.code == XF_E_CHANGED || res->err.code == XF_E_NOT_FOUND) {
        xf_upload_changed(op);
    } else if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
    } else if (xf_read_end(op, &op->sum, &err) != XF_OK) {
        xf_upload_retry(op, CLOSE_READ_SRC, &err);
    } else {
        xf_op_go(op, CLOSE_READ_DST);
    }
}

static void read_dst_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_sum sum;
    struct xf_err err;

    if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
    } else if (xf_read_end(op, &sum, &err) != XF_OK) {
        xf_upload_retry(op, CLOSE_READ_DST, &err);
    } else if (xf_sum_eq(&sum, &op->sum)) {
        copied(op, XF_LEVEL_FULL);
    } else {
        (void)XF_FAIL(
            &err, XF_E_CHECKSUM, "read back, the destination's bytes are not the source's");
        xf_upload_fail(op, &err, NULL, true);
    }
}

/* Nobody knows the upload any more, and what is there is not its result. */
static void not_ours(struct xf_op *op)
{
    struct xf_err err;

    if (op->lost_code == XF_E_EXISTS && xf_op_spec(op)->if_exists == XF_JOB_EXISTS_SKIP) {
        struct xf_result r = {.outcome = XF_OUTCOME_SKIPPED, .skip = XF_SKIP_EXISTS};
        (void)XF_FAIL(&err, XF_E_EXISTS, "the destination object exists");
        xf_run_fail(op->run, XF_WORK_FAILED, &err);
        xf_upload_outcome(op, &r);
    } else if (op->lost_code == XF_E_EXISTS) {
        (void)XF_FAIL(&err, XF_E_EXISTS, "the destination object exists");
        xf_upload_fail(op, &err, NULL, false);
    } else {
        (void)XF_FAIL(&err,
                      XF_E_NO_UPLOAD,
                      "the upload is gone and the destination object is not its result");
        xf_upload_fail(op, &err, NULL, true);
    }
}

/* Does the destination tell a sum that is not the bytes', or not the source's? */
static bool is_other_sum(const struct xf_op *op)
{
    return xf_verify_sums(&op->sum, &op->dst_sum) == XF_VERIFY_DIFFERENT ||
           xf_verify_sums(&op->src_sum, &op->dst_sum) == XF_VERIFY_DIFFERENT;
}

static void dest_done(struct xf_op *op, const struct xf_s3_result *res)
{
    char expected[64];
    struct xf_err err;
    bool known = expected_etag(op->run->w, expected);

    if (res->err.code == XF_E_NOT_FOUND && op->copy_unknown) {
        not_ours(op);
        return;
    }
    if (res->err.code != XF_OK && res->err.code != XF_E_NOT_FOUND) {
        xf_upload_fail_res(op, res);
        return;
    }
    bool is_there = res->err.code == XF_OK;
    bool is_opaque = is_there && xf_verify_is_opaque(res->attrs);
    bool is_equal = is_there && known && xf_plan_etag_eq(res->etag, xf_str_c(expected));

    op->dst_is_opaque = is_opaque;
    op->dst_sum = is_there ? res->sum : (struct xf_sum){0};
    xf_op_keep_etag(op->dst_etag, res->etag);
    if (op->copy_unknown) {
        if (is_equal && res->size == op->size && !is_other_sum(op)) {
            XF_INFO("upload.completed_unheard", xf_f_u64("task", op->run->w->task));
            op->as_expected = true;
            arrived(op, res);
        } else {
            not_ours(op);
        }
    } else if (is_other_sum(op)) {
        (void)XF_FAIL(&err,
                      XF_E_CHECKSUM,
                      "after Complete the destination has another %s than was sent",
                      xf_sum_name(op->dst_sum.alg));
        xf_upload_fail(op, &err, NULL, true);
    } else if (is_there && res->size == op->size &&
               (is_equal || !known || is_opaque || !is_of_parts(res->etag))) {
        op->as_expected = is_equal;
        arrived(op, res);
    } else {
        (void)XF_FAIL(&err,
                      XF_E_CHECKSUM,
                      "after Complete the destination has %ju of %ju bytes, etag '%.*s' for '%s'",
                      (uintmax_t)(is_there ? res->size : 0),
                      (uintmax_t)op->size,
                      XF_STR_ARG(res->etag),
                      known ? expected : "?");
        xf_upload_fail(op, &err, NULL, true);
    }
}

#define ON(state) XF_TO(CLOSE_##state)
#define READS     (ON(READ_SRC) | ON(READ_DST))
/* clang-format off */
static const struct xf_step close_steps[CLOSE_N] = {
    [CLOSE_SRC]      = {"close_source", XF_SRC, 0, ON(COMPLETE), xf_upload_head_source, source_done},
    [CLOSE_COMPLETE] = {"complete",     XF_DST, XF_STEP_WRITE, ON(DST), complete_start, complete_done},
    [CLOSE_DST]      = {"close_dest",   XF_DST, 0, ON(LOCK) | ON(HOLD) | ON(TAGS) | ON(AGAIN) | READS, xf_upload_head_dest, dest_done},
    [CLOSE_LOCK]     = {"close_lock",   XF_DST, XF_STEP_WRITE, ON(HOLD) | ON(TAGS) | ON(AGAIN) | READS, put_lock, lock_put},
    [CLOSE_HOLD]     = {"close_hold",   XF_DST, XF_STEP_WRITE, ON(TAGS) | ON(AGAIN) | READS, put_lock, lock_put},
    [CLOSE_TAGS]     = {"close_tags",   XF_SRC, 0, ON(PUT_TAGS) | ON(AGAIN) | READS, xf_relay_tags, tags_read},
    [CLOSE_PUT_TAGS] = {"close_put_tags", XF_DST, XF_STEP_WRITE, ON(AGAIN) | READS, put_tags, tags_put},
    [CLOSE_AGAIN]    = {"close_again",  XF_SRC, 0, READS, xf_upload_head_source, again_done},
    [CLOSE_READ_SRC] = {"close_read_src", XF_SRC, XF_STEP_BULK, ON(READ_DST), read_src, read_src_done},
    [CLOSE_READ_DST] = {"close_read_dst", XF_DST, XF_STEP_BULK, 0, read_dst, read_dst_done},
};
/* clang-format on */
#undef READS
#undef ON

void xf_close_begin(struct xf_run *run)
{
    struct xf_op *op = xf_upload_op(run, close_steps, CLOSE_N);

    if (op != NULL) {
        xf_op_go(op, CLOSE_SRC);
    }
}

/* ---- abort ---- */

enum abort_state {
    ABORT_ABORT,
    ABORT_PARTS,
    ABORT_FIND,
    ABORT_FOUND, /* its parts: is it ours? */
    ABORT_LOST,
    ABORT_N
};
enum { ABORT_ROUNDS = 20 };

static void abort_over(struct xf_op *op)
{
    op->run->n_open = 0;
    xf_op_end(op);
}

static void abort_failed(struct xf_op *op, const struct xf_err *err)
{
    bool is_final = xf_code_class(err->code) == XF_CLASS_FATAL;

    xf_run_fail(op->run, is_final ? XF_WORK_FAILED : XF_WORK_RETRY, err);
    xf_op_end(op);
}

static struct xf_s3_upload_opts own_upload(const struct xf_op *op)
{
    return (struct xf_s3_upload_opts){
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .upload_id = op->run->w->upload_id,
    };
}

static struct xf_s3_req *abort_start(struct xf_op *op)
{
    const struct xf_s3_upload_opts o = own_upload(op);

    return xf_s3_abort(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static bool is_gone(const struct xf_s3_result *res)
{
    return res->err.code == XF_E_NO_UPLOAD || res->err.code == XF_E_NOT_FOUND;
}

static void abort_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (is_gone(res)) {
        abort_over(op);
    } else if (res->err.code != XF_OK) {
        abort_failed(op, &res->err);
    } else {
        xf_op_go(op, ABORT_PARTS);
    }
}

static struct xf_s3_req *parts_start(struct xf_op *op)
{
    const struct xf_s3_upload_opts o = own_upload(op);

    return xf_s3_list_parts(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static void parts_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (is_gone(res)) {
        abort_over(op);
    } else if (xf_code_class(res->err.code) == XF_CLASS_FATAL) {
        abort_failed(op, &res->err); /* who may not look cannot know: somebody is told */
    } else if (++op->rounds >= ABORT_ROUNDS) {
        (void)XF_FAIL(&err, XF_E_BUSY, "the upload is still there after %u aborts", op->rounds);
        abort_failed(op, &err);
    } else {
        op->tries = op->rounds < 2 ? 0 : 1;     /* waits a little, spends nothing */
        (void)xf_op_retry(op, ABORT_ABORT, -1); /* always has a try left here */
    }
}

static void find_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code != XF_OK) {
        abort_failed(op, &res->err);
        return;
    }
    switch (xf_upload_found(op, res)) {
    case XF_FOUND_ONE: xf_op_go(op, ABORT_FOUND); break;
    case XF_FOUND_MORE: xf_op_go(op, ABORT_FIND); break;
    case XF_FOUND_OURS: xf_op_go(op, ABORT_LOST); break;
    case XF_FOUND_NONE: abort_over(op); break;
    }
}

static void found_done(struct xf_op *op, const struct xf_s3_result *res)
{
    xf_upload_judge_found(op, res);
    xf_op_go(op, ABORT_FIND);
}

static void lost_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK || is_gone(res)) {
        xf_op_go(op, ABORT_FIND);
    } else {
        abort_failed(op, &res->err);
    }
}

#define ON(state) XF_TO(ABORT_##state)
/* clang-format off */
static const struct xf_step abort_steps[ABORT_N] = {
    [ABORT_ABORT] = {"abort",       XF_DST, XF_STEP_WRITE, ON(PARTS), abort_start, abort_done},
    [ABORT_PARTS] = {"abort_parts", XF_DST, 0, ON(ABORT), parts_start, parts_done},
    [ABORT_FIND]  = {"abort_find",  XF_DST, 0, ON(FOUND) | ON(LOST), xf_upload_find, find_done},
    [ABORT_FOUND] = {"abort_found", XF_DST, 0, ON(FIND), xf_upload_found_parts, found_done},
    [ABORT_LOST]  = {"abort_lost",  XF_DST, XF_STEP_WRITE, ON(FIND), xf_upload_abort_found, lost_done},
};
/* clang-format on */

void xf_abort_begin(struct xf_run *run)
{
    struct xf_op *op = xf_upload_op(run, abort_steps, ABORT_N);

    if (op != NULL) {
        xf_op_go(op, run->w->upload_id.len > 0 ? ABORT_ABORT : ABORT_FIND);
    }
}
