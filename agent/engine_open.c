/*
 * engine_open.c - begin the upload of a large object.
 *
 *   head -> [look] -> [part] -> [tags] -> [find -> [found] -> [abort] ->]* -> create -> told
 *
 * Nothing is copied by CreateMultipartUpload, so every attribute is read first. An earlier try
 * whose answer was lost may have left an upload open: one of exactly this key that began after the
 * stored intent and before the loss, and holds no part, is aborted before another is made.
 */
#include "agent/engine_int.h"
#include "agent/engine_sum.h"
#include "agent/engine_upload.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

enum open_state {
    OPEN_HEAD, /* source: attributes, and what it is now */
    OPEN_LOOK, /* destination: for if_exists */
    OPEN_PART, /* source, part 1: its layout */
    OPEN_TAGS,
    OPEN_FIND,
    OPEN_FOUND, /* its parts: is it ours? */
    OPEN_ABORT,
    OPEN_CREATE,
    OPEN_N
};

/* The layout, before anything is created: offset is the part size, part_no their number. */
static bool make_plan(struct xf_op *op)
{
    const struct xf_plan_opts o = {
        .size = op->size,
        .part_size = xf_op_spec(op)->part_size,
        .etag = op->src_is_opaque ? XF_STR_EMPTY : xf_str_c(op->etag),
        .first_part_size = op->len,
    };
    struct xf_plan plan;
    struct xf_err err;

    if (xf_plan_parts(&o, &plan, &err) != XF_OK) {
        xf_upload_fail(op, &err, NULL, err.code == XF_E_INVAL); /* empty now: no upload */
        return false;
    }
    op->offset = plan.part_size;
    op->part_no = plan.n_parts;
    return true;
}

static void after_tags(struct xf_op *op)
{
    op->rounds = 0;
    if (!make_plan(op)) {
        return;
    }
    if (op->run->w->attempt > 1 || op->maybe_done) {
        xf_op_go(op, OPEN_FIND);
    } else {
        xf_op_go(op, OPEN_CREATE);
    }
}

static void want_tags(struct xf_op *op)
{
    if (!op->has_tags && xf_op_wants_tags(op, op->attrs)) {
        xf_op_go(op, OPEN_TAGS);
    } else {
        after_tags(op);
    }
}

static void want_layout(struct xf_op *op)
{
    if (xf_plan_etag_parts(xf_str_c(op->etag)) > 0 && op->size > 0) {
        xf_op_go(op, OPEN_PART);
    } else {
        want_tags(op);
    }
}

static void head_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_NOT_FOUND) {
        xf_upload_ended(op, XF_OUTCOME_VANISHED);
        return;
    }
    if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
        return;
    }
    xf_op_renew(op, res);
    xf_op_keep_attrs(op, res);
    if (xf_s3_attrs_is_archived(op->attrs)) {
        xf_upload_ended(op, XF_OUTCOME_ARCHIVED);
    } else if (xf_op_spec(op)->if_exists != XF_JOB_EXISTS_OVERWRITE) {
        xf_op_go(op, OPEN_LOOK);
    } else {
        want_layout(op);
    }
}

static void skip(struct xf_op *op, enum xf_skip why, enum xf_level level)
{
    struct xf_result r = {
        .outcome = XF_OUTCOME_SKIPPED,
        .skip = why,
        .level = level,
        .size_bytes = op->size,
        .etag = xf_str_c(op->dst_etag),
    };
    xf_upload_outcome(op, &r);
}

/*
 * An earlier pass tried and failed, perhaps at the proof of what is there now: size and time say
 * nothing of that, and where the job wants the bytes compared the etag does not either.
 */
static bool is_unproved(const struct xf_op *op, bool by_size)
{
    int mode = xf_op_spec(op)->verify;

    return op->obj->attempts > 0 &&
           (by_size || mode == XF_JOB_VERIFY_FULL || mode == XF_JOB_VERIFY_CHECKSUM);
}

/* The destination has something under this key. */
static void decide(struct xf_op *op, const struct xf_verify_side *there)
{
    const struct xf_work *w = op->run->w;
    const struct xf_verify_side source = {
        {xf_str_c(op->etag), op->src_is_opaque}, op->size, op->mtime_ms};
    struct xf_err err;
    bool by_size = false;
    bool same = xf_verify_is_copy(&source, there, &by_size) && !is_unproved(op, by_size);
    enum xf_level level = by_size ? XF_LEVEL_SIZE : XF_LEVEL_ETAG;
    bool ours =
        op->obj->is_left || ((w->attempt > 1 || op->obj->attempts > 0) &&
                             (w->job->started_ms == 0 || there->mtime_ms >= w->job->started_ms));

    xf_op_keep_etag(op->dst_etag, there->etag.etag);
    if (same && ours) {
        struct xf_result r = {
            .outcome = XF_OUTCOME_COPIED,
            .level = level,
            .flags = XF_RESULT_OWN,
            .size_bytes = op->size,
            .etag = xf_str_c(op->dst_etag),
        };
        xf_upload_outcome(op, &r);
        return;
    }
    switch ((enum xf_job_exists)xf_op_if_exists(op)) {
    case XF_JOB_EXISTS_SKIP_SAME:
        if (same) {
            skip(op, XF_SKIP_SAME, level);
            return;
        }
        break;
    case XF_JOB_EXISTS_SKIP: skip(op, XF_SKIP_EXISTS, XF_LEVEL_NONE); return;
    case XF_JOB_EXISTS_FAIL:
        (void)XF_FAIL(&err, XF_E_EXISTS, "the destination object exists");
        xf_upload_fail(op, &err, NULL, false);
        return;
    case XF_JOB_EXISTS_OVERWRITE: break;
    }
    want_layout(op);
}

static void look_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_NOT_FOUND) {
        want_layout(op);
    } else if (res->err.code != XF_OK) {
        xf_upload_fail_res(op, res);
    } else {
        const struct xf_verify_side there = {
            {res->etag, xf_verify_is_opaque(res->attrs)}, res->size, res->modified_ms};
        decide(op, &there);
    }
}

static struct xf_s3_req *head_part(struct xf_op *op)
{
    const struct xf_s3_head_opts o = {
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
        .if_match = xf_str_c(op->etag),
        .part_no = 1,
    };
    return xf_s3_head(xf_op_s3(op, XF_SRC), &o, xf_op_reply, op);
}

static void part_done(struct xf_op *op, const struct xf_s3_result *res)
{
    op->len = 0; /* of the source's first part; a server that cannot tell leaves it to guessing */
    if (res->err.code == XF_OK && res->size != XF_HTTP_SIZE_UNKNOWN && res->size < op->size) {
        op->len = res->size;
    }
    want_tags(op);
}

static struct xf_s3_req *tags_start(struct xf_op *op)
{
    return xf_relay_tags(op);
}

static void tags_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (xf_op_take_tags(op, res)) {
        after_tags(op);
    } else if (res->err.code == XF_E_NOT_FOUND) {
        xf_upload_ended(op, XF_OUTCOME_VANISHED);
    } else {
        xf_upload_fail_res(op, res);
    }
}

/* ---- uploads left by a lost answer ---- */

static void find_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code != XF_OK) {
        /* Not allowed to look, or not known there: the lifecycle rule of the bucket is left. */
        XF_WARN("upload.not_searched", xf_f_u64("task", op->run->w->task), xf_f_err(&res->err));
        xf_op_go(op, OPEN_CREATE);
    } else {
        static const enum open_state next[] = {
            [XF_FOUND_ONE] = OPEN_FOUND,
            [XF_FOUND_MORE] = OPEN_FIND,
            [XF_FOUND_OURS] = OPEN_ABORT,
            [XF_FOUND_NONE] = OPEN_CREATE,
        };
        xf_op_go(op, next[xf_upload_found(op, res)]);
    }
}

static void found_done(struct xf_op *op, const struct xf_s3_result *res)
{
    xf_upload_judge_found(op, res);
    xf_op_go(op, OPEN_FIND);
}

static void abort_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK || res->err.code == XF_E_NO_UPLOAD) {
        xf_op_go(op, OPEN_FIND);
    } else {
        xf_upload_fail_res(op, res);
    }
}

/* ---- create ---- */

static enum xf_sum_alg asked_alg(struct xf_op *op)
{
    enum xf_sum_alg alg = xf_sums_upload_alg(op);

    return alg != XF_SUM_NONE && xf_sums_ask(op, XF_SUMS_WRITE) ? alg : XF_SUM_NONE;
}

static struct xf_s3_req *create_start(struct xf_op *op)
{
    const struct xf_s3_create_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .attrs = xf_op_attrs(op),
        .tags = xf_buf_view(&op->tags),
        .storage_class = xf_op_class(op),
        .guards = xf_op_guards(op),
        .sum = asked_alg(op),
    };
    return xf_s3_create(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

static void opened(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_run *run = op->run;
    const struct xf_work_opened o = {
        .upload_id = res->upload_id,
        .part_size = op->offset,
        .n_parts = op->part_no,
        .is_changed = op->is_changed || op->obj->etag.len == 0, /* unlisted: learnt here */
        .etag = xf_str_c(op->etag),
        .size = op->size,
        .flags = op->flags,
        .sum = xf_sums_created(op, res),
    };
    xf_op_note_class(op);
    run->n_open = 0;
    run->e->ev.opened(run->e->ev.arg, run->w, &o);
    xf_op_end(op);
}

/* The abort task that follows finds it, and needs to keep it for nobody. */
static void refuse_id(struct xf_op *op, struct xf_str upload_id)
{
    struct xf_err err;

    (void)XF_FAIL(&err,
                  XF_E_UNSUPPORTED,
                  "the service gave an upload id of %zu bytes, at most %d can be kept",
                  upload_id.len,
                  (int)XF_UPLOAD_ID_MAX);
    xf_upload_fail(op, &err, NULL, false);
}

static void create_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK && res->upload_id.len > XF_UPLOAD_ID_MAX) {
        refuse_id(op, res->upload_id);
    } else if (res->err.code == XF_OK) {
        opened(op, res);
    } else if (xf_code_class(res->err.code) == XF_CLASS_RETRY) {
        op->lost_mono_ms = xf_clock_mono_ms(op->run->e->clock);
        xf_upload_retry(op, OPEN_FIND, &res->err); /* it may be open without our knowing */
    } else if (xf_op_may_drop_class(op, res)) {
        xf_op_go(op, OPEN_CREATE);
    } else if (xf_op_may_drop_tags(op, res->err.code)) {
        xf_op_drop_tags(op);
        xf_op_go(op, OPEN_CREATE);
    } else {
        xf_upload_fail_res(op, res);
    }
}

#define ON(state) XF_TO(OPEN_##state)
#define LAST      (ON(FIND) | ON(CREATE))
/* clang-format off */
static const struct xf_step open_steps[OPEN_N] = {
    [OPEN_HEAD]   = {"open_head",   XF_SRC, 0, ON(LOOK) | ON(PART) | ON(TAGS) | LAST, xf_upload_head_source, head_done},
    [OPEN_LOOK]   = {"open_look",   XF_DST, 0, ON(PART) | ON(TAGS) | LAST, xf_upload_head_dest, look_done},
    [OPEN_PART]   = {"open_part",   XF_SRC, 0, ON(TAGS) | LAST, head_part, part_done},
    [OPEN_TAGS]   = {"open_tags",   XF_SRC, 0, LAST, tags_start, tags_done},
    [OPEN_FIND]   = {"open_find",   XF_DST, 0, ON(FOUND) | ON(ABORT) | ON(CREATE), xf_upload_find, find_done},
    [OPEN_FOUND]  = {"open_found",  XF_DST, 0, ON(FIND), xf_upload_found_parts, found_done},
    [OPEN_ABORT]  = {"open_abort",  XF_DST, XF_STEP_WRITE, ON(FIND), xf_upload_abort_found, abort_done},
    [OPEN_CREATE] = {"open_create", XF_DST, XF_STEP_WRITE | XF_STEP_OWN_RETRY, ON(FIND), create_start, create_done},
};
/* clang-format on */

void xf_open_begin(struct xf_run *run)
{
    struct xf_op *op = xf_upload_op(run, open_steps, OPEN_N);

    if (op != NULL) {
        xf_op_go(op, OPEN_HEAD);
    }
}
