/*
 * engine_object.c - the life of one small object.
 *
 *   [recheck] -> [look] -> [ask] -> copy -> [copy dst -> copy src] -> copied
 *                            |        +-> (no server copy) --+
 *                            +-> get -> [tags] -> put -> [put dst] -> [put src] -> copied
 *                            +-> [tags] -> stream -> [put dst] -> [put src] -> copied  > 16 MiB
 *   any 404 -> gone (one more HEAD) -> vanished;  any 412 -> renew -> again, at most 3 times
 *
 * A step in brackets happens only when needed. Answers that prove nothing are never success: a copy
 * counts when its etag equals the source's, or when HEADs of both sides say so afterwards.
 */
#include "agent/engine_int.h"
#include "agent/engine_read.h"
#include "agent/engine_scan.h"
#include "agent/engine_sum.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

enum { UNCLEAR_TRIES = 3 };

/* ---- outcomes ---- */

static uint32_t spent(const struct xf_op *op)
{
    const struct xf_result_set *done = &op->run->w->done;

    return (op->idx < done->n ? done->at[op->idx].attempts : 0) + op->tries + op->replans;
}

void xf_small_outcome(struct xf_op *op, struct xf_result *r)
{
    struct xf_run *run = op->run;
    struct xf_engine *e = run->e;

    r->flags |= op->flags;
    r->through_bytes = op->through;
    if (op->is_changed) {
        r->source_etag = xf_str_c(op->etag);
    }
    if (r->attempts == 0) {
        r->attempts = spent(op) + (r->outcome == XF_OUTCOME_SKIPPED ? 0 : 1);
    }
    run->n_open--;
    (void)atomic_fetch_add(&e->n_objects, 1); /* counts */
    (void)atomic_fetch_add(&e->n_bytes, r->outcome == XF_OUTCOME_COPIED ? op->size : 0);
    (void)atomic_fetch_add(&e->n_through, op->through);
    e->ev.object(e->ev.arg, run->w, op->idx, r);
    xf_op_end(op);
}

void xf_small_copied(struct xf_op *op, enum xf_level level)
{
    struct xf_result r = {
        .outcome = XF_OUTCOME_COPIED,
        .level = level,
        .mode = op->mode,
        .size_bytes = op->size,
        .etag = xf_str_c(op->dst_etag),
    };
    bool is_resent = op->mode == XF_MODE_RELAY || xf_op_spec(op)->source_mtime;

    if (is_resent && xf_op_attrs(op) != NULL && op->attrs->missing_meta > 0) {
        op->flags |= XF_RESULT_META_DROPPED; /* names that the source's service cannot tell */
    }
    xf_op_note_class(op);
    if (op->mode == XF_MODE_SERVER) {
        (void)xf_work_job_learn(op->run->ej->job, XF_FACT_COPY_WORKED); /* known is fine */
    }
    xf_small_outcome(op, &r);
}

static void skipped(struct xf_op *op, enum xf_skip why, enum xf_level level)
{
    struct xf_result r = {
        .outcome = XF_OUTCOME_SKIPPED,
        .skip = why,
        .level = level,
        .size_bytes = op->size,
        .etag = xf_str_c(op->dst_etag),
    };
    xf_small_outcome(op, &r);
}

static void ended_as(struct xf_op *op, enum xf_outcome outcome)
{
    struct xf_result r = {.outcome = outcome};

    xf_small_outcome(op, &r);
}

static bool is_retryable(enum xf_code code)
{
    enum xf_class cls = xf_code_class(code);

    return cls == XF_CLASS_RETRY || cls == XF_CLASS_SLOW_DOWN || cls == XF_CLASS_REPLAN;
}

/*
 * A HEAD's 403 has no body to say whether this object is refused or our keys no longer hold: it is
 * tried again some passes, by when other requests have told.
 */
bool xf_op_is_unclear(const struct xf_op *op, const struct xf_s3_result *res)
{
    return res->status == 403 && res->s3_code.len == 0 && op->obj != NULL &&
           op->obj->attempts < UNCLEAR_TRIES;
}

static void fail_with(
    struct xf_op *op, const struct xf_err *err, int status, struct xf_str s3_code, bool retryable)
{
    struct xf_result r = {
        .outcome = XF_OUTCOME_FAILED,
        .code = err->code,
        .http_status = status > 0 ? (uint32_t)status : 0,
        .s3_code = s3_code,
        .message = xf_str_c(err->msg),
        .flags = (retryable ? XF_RESULT_RETRYABLE : 0U) | xf_op_left(op),
    };
    if (r.message.len > XF_RESULT_MSG_MAX) {
        r.message.len = XF_RESULT_MSG_MAX;
    }
    xf_small_outcome(op, &r);
}

void xf_small_fail_err(struct xf_op *op, const struct xf_err *err, bool retryable)
{
    fail_with(op, err, 0, XF_STR_EMPTY, retryable);
}

void xf_small_fail(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_ARCHIVED) {
        ended_as(op, XF_OUTCOME_ARCHIVED);
        return;
    }
    fail_with(op,
              &res->err,
              res->status,
              res->s3_code,
              is_retryable(res->err.code) || xf_op_is_unclear(op, res));
}

void xf_small_retry(struct xf_op *op, unsigned state, const struct xf_err *err)
{
    if (!xf_op_retry(op, state, -1)) {
        xf_small_fail_err(op, err, is_retryable(err->code));
    }
}

/* ---- what to do with an object ---- */

/* What a failed result says of the destination, for the tries of later passes. */
unsigned xf_op_left(const struct xf_op *op)
{
    return op->has_stored || op->obj->is_left ? XF_RESULT_LEFT : 0U;
}

/* What the job does with an object that is there. What a failed try of its own left, unproved, is
 * neither to be kept nor to be spared. */
int xf_op_if_exists(const struct xf_op *op)
{
    return op->obj->is_left ? XF_JOB_EXISTS_OVERWRITE : xf_op_spec(op)->if_exists;
}

bool xf_op_is_if_absent(const struct xf_op *op)
{
    int exists = xf_op_spec(op)->if_exists;

    return xf_op_left(op) == 0 && (exists == XF_JOB_EXISTS_SKIP || exists == XF_JOB_EXISTS_FAIL);
}

/* The source is another than planned: look again, a bounded number of times. */
void xf_small_replan(struct xf_op *op)
{
    struct xf_err err;

    op->replans++;
    if (op->replans > XF_ENGINE_REPLANS) {
        (void)XF_FAIL(
            &err, XF_E_CHANGED, "the source changed during each of %u copies", op->replans);
        xf_small_fail_err(op, &err, true);
        return;
    }
    xf_op_go(op, XF_SMALL_RENEW);
}

/* Outgrown since it was listed: it has to become an upload of its own. */
static bool is_too_large(struct xf_op *op)
{
    struct xf_err err;
    uint64_t threshold = xf_op_spec(op)->multipart_threshold;

    if (op->size <= op->obj->size || op->size < threshold) {
        return false;
    }
    (void)XF_FAIL(&err,
                  XF_E_TOO_LARGE,
                  "grew from %ju to %ju bytes since listed: it needs parts",
                  (uintmax_t)op->obj->size,
                  (uintmax_t)op->size);
    xf_small_fail_err(op, &err, true);
    return true;
}

void xf_small_transfer(struct xf_op *op)
{
    struct xf_err err;

    op->has_looked = false;
    bool asks =
        op->etag[0] == '\0' || xf_s3_class_may_be_archived(op->obj->storage_class) ||
        (xf_op_may_copy(op, false) && xf_op_needs_attrs(op)); /* a relay reads them anyway */

    if (op->attrs == NULL && asks) {
        xf_op_go(op, XF_SMALL_ASK);
    } else if (is_too_large(op)) {
        return; /* told */
    } else if (xf_op_may_copy(op, false)) {
        op->mode = XF_MODE_SERVER;
        xf_op_go(op, XF_SMALL_COPY);
    } else if (xf_op_may_relay(op)) {
        op->mode = XF_MODE_RELAY;
        xf_relay_begin(op);
    } else {
        (void)XF_FAIL(&err,
                      XF_E_NO_COPY,
                      "mode is \"server\", but the sides are not one service or it cannot copy");
        xf_small_fail_err(op, &err, false);
    }
}

void xf_small_exists(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_engine *e = op->run->e;
    int64_t there = res->server_date_ms > 0 ? res->server_date_ms : xf_clock_wall_ms(e->clock);

    op->ours_since_ms = there - (xf_loop_mono_ms(e->loop) - op->first_write_ms) - 1000;
    xf_op_go(op, XF_SMALL_LOOK);
}

/* Might an earlier lease of this job have written what is there? */
static bool may_be_ours(const struct xf_op *op, const struct xf_verify_side *dest)
{
    const struct xf_work *w = op->run->w;

    if (op->maybe_done || op->obj->is_left ||
        (op->ours_since_ms != 0 && dest->mtime_ms >= op->ours_since_ms)) {
        return true;
    }
    return (w->attempt > 1 || op->obj->attempts > 0) &&
           (w->job->started_ms == 0 || dest->mtime_ms >= w->job->started_ms);
}

void xf_small_is_there(struct xf_op *op, enum xf_level level)
{
    if (op->is_ours || op->run->w->kind == XF_TASK_RECHECK) {
        op->flags |= XF_RESULT_OWN;
        xf_small_copied(op, level);
    } else {
        skipped(op, XF_SKIP_SAME, level);
    }
}

/* Neither etags nor times can tell: the bytes have to. A late write of an old attempt may be newer
 * than the source and yet an older version, so a recheck takes no time for a proof. Nor does an
 * object that failed in an earlier pass, perhaps when what is there now was to be proved. */
static bool has_to_compare(const struct xf_op *op,
                           const struct xf_verify_side *source,
                           const struct xf_verify_side *dest)
{
    bool by_etag = xf_verify_etags(source->etag, dest->etag) != XF_VERIFY_UNKNOWN;
    bool is_wanted = xf_op_spec(op)->if_exists == XF_JOB_EXISTS_SKIP_SAME;
    bool has_failed = op->obj->attempts > 0 && (is_wanted || op->is_ours);

    if (source->size != dest->size) {
        return false;
    }
    if (has_failed && xf_op_spec(op)->verify == XF_JOB_VERIFY_FULL) {
        return true;
    }
    if (by_etag) {
        return false;
    }
    return has_failed || op->run->w->kind == XF_TASK_RECHECK ||
           (is_wanted && dest->mtime_ms > 0 && source->mtime_ms == dest->mtime_ms);
}

void xf_small_decide(struct xf_op *op, const struct xf_verify_side *dest)
{
    struct xf_err err;
    bool by_size = false;

    if (dest == NULL) {
        xf_small_transfer(op);
        return;
    }
    const struct xf_verify_side source = {
        {xf_str_c(op->etag), op->src_is_opaque}, op->size, op->mtime_ms};
    bool same = xf_verify_is_copy(&source, dest, &by_size);
    enum xf_level level = by_size ? XF_LEVEL_SIZE : XF_LEVEL_ETAG;

    xf_op_keep_etag(op->dst_etag, dest->etag.etag);
    op->is_ours = may_be_ours(op, dest);
    if (has_to_compare(op, &source, dest)) {
        xf_small_compare(op);
        return;
    }
    if (same && (op->run->w->kind == XF_TASK_RECHECK || op->is_ours)) {
        xf_small_is_there(op, level);
        return;
    }
    if (op->run->w->kind == XF_TASK_RECHECK) {
        xf_small_transfer(op);
        return;
    }
    switch ((enum xf_job_exists)xf_op_if_exists(op)) {
    case XF_JOB_EXISTS_SKIP_SAME:
        if (same) {
            xf_small_is_there(op, level);
            return;
        }
        break;
    case XF_JOB_EXISTS_SKIP: skipped(op, XF_SKIP_EXISTS, XF_LEVEL_NONE); return;
    case XF_JOB_EXISTS_FAIL:
        (void)XF_FAIL(&err, XF_E_EXISTS, "the destination object exists");
        xf_small_fail_err(op, &err, false);
        return;
    case XF_JOB_EXISTS_OVERWRITE: break;
    }
    xf_small_transfer(op);
}

static bool is_itself(const struct xf_op *op)
{
    return op->run->ej->job->is_same_service &&
           xf_str_eq(xf_op_bucket(op, XF_SRC), xf_op_bucket(op, XF_DST)) &&
           xf_str_eq(op->obj->key, xf_op_dst_key(op));
}

/* A listing does not say that an etag is no MD5; where the job has objects encrypted, ask. */
static bool may_be_opaque(const struct xf_op *op, const struct xf_verify_side *there)
{
    const struct xf_verify_etag source = {xf_str_c(op->etag), false};

    return xf_op_writes_opaque(op) && there->size == op->size &&
           xf_verify_etags(source, there->etag) == XF_VERIFY_DIFFERENT;
}

void xf_small_begin(struct xf_run *run, uint32_t idx)
{
    struct xf_op *op = xf_op_new(run, xf_small_steps, XF_SMALL_N);
    struct xf_verify_side there = {0};
    struct xf_err err;

    op->idx = idx;
    op->choose = xf_small_transfer;
    if (xf_op_set_object(op, &run->w->manifest.objects[idx], &err) != XF_OK) {
        xf_small_fail_err(op, &err, false);
    } else if (is_itself(op)) {
        skipped(op, XF_SKIP_SELF, XF_LEVEL_NONE);
    } else if (run->w->kind == XF_TASK_RECHECK) {
        xf_op_go(op, XF_SMALL_RECHECK);
    } else if (run->scan == NULL) {
        xf_small_transfer(op);
    } else {
        switch (xf_scan_ask(run->scan, idx, &there)) {
        case XF_SCAN_ABSENT: xf_small_decide(op, NULL); break;
        case XF_SCAN_THERE:
            if (may_be_opaque(op, &there)) {
                xf_op_go(op, XF_SMALL_LOOK);
            } else {
                xf_small_decide(op, &there);
            }
            break;
        case XF_SCAN_ASK: xf_op_go(op, XF_SMALL_LOOK); break;
        }
    }
}

/* ---- HEADs ---- */

static struct xf_s3_req *head_source(struct xf_op *op)
{
    const struct xf_s3_head_opts o = {
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
        .want_sum = xf_sums_ask(op, XF_SUMS_READ_SRC),
    };
    return xf_s3_head(xf_op_s3(op, XF_SRC), &o, xf_op_reply, op);
}

static struct xf_s3_req *head_dest(struct xf_op *op)
{
    const struct xf_s3_head_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .want_sum = xf_sums_ask(op, XF_SUMS_READ_DST),
    };
    return xf_s3_head(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

/* The outcomes that every look at the source shares; true when the op goes on. */
static bool source_is_there(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK) {
        return true;
    }
    if (res->err.code == XF_E_NOT_FOUND) {
        ended_as(op, XF_OUTCOME_VANISHED);
    } else {
        xf_small_fail(op, res);
    }
    return false;
}

static void recheck_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (source_is_there(op, res)) {
        xf_op_renew(op, res);
        xf_op_go(op, XF_SMALL_LOOK);
    }
}

static void look_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_E_NOT_FOUND) {
        xf_small_decide(op, NULL);
    } else if (res->err.code != XF_OK) {
        xf_small_fail(op, res);
    } else {
        op->dst_is_opaque = xf_verify_is_opaque(res->attrs);
        const struct xf_verify_side there = {
            {res->etag, op->dst_is_opaque}, res->size, res->modified_ms};
        xf_small_decide(op, &there);
    }
}

static void ask_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (!source_is_there(op, res)) {
        return;
    }
    xf_op_renew(op, res);
    xf_op_keep_attrs(op, res);
    if (xf_s3_attrs_is_archived(op->attrs)) {
        ended_as(op, XF_OUTCOME_ARCHIVED);
        return;
    }
    xf_small_transfer(op);
}

static void gone_done(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_err err;

    if (!source_is_there(op, res)) {
        return;
    }
    xf_op_renew(op, res);
    if (op->mode == XF_MODE_RELAY) {
        (void)XF_FAIL(&err, XF_E_SERVER, "a read says the object is not there, a HEAD that it is");
        xf_small_retry(op, XF_SMALL_RENEW, &err);
    } else if (xf_op_may_relay(op)) {
        xf_engine_note(op->run,
                       XF_FACT_KEY_FALLBACK,
                       "copy_source_not_found",
                       "the server does not find the copy source of some keys that are there: "
                       "those go through the agents");
        op->no_copy = true;
        xf_small_transfer(op);
    } else {
        (void)XF_FAIL(&err, XF_E_NOT_FOUND, "the server cannot resolve the encoded copy source");
        xf_small_fail_err(op, &err, false);
    }
}

static void renew_done(struct xf_op *op, const struct xf_s3_result *res)
{
    if (!source_is_there(op, res)) {
        return;
    }
    bool same = !xf_op_is_changed(op, res);
    enum xf_job_exists exists = (enum xf_job_exists)xf_op_spec(op)->if_exists;

    xf_op_renew(op, res);
    if (same && (exists == XF_JOB_EXISTS_SKIP || exists == XF_JOB_EXISTS_FAIL)) {
        xf_op_go(op, XF_SMALL_LOOK); /* the refused condition was If-None-Match */
    } else {
        xf_small_transfer(op);
    }
}

/* ---- the table ---- */

#define ON(state) XF_TO(XF_SMALL_##state)
#define READ      (ON(READ_SRC) | ON(READ_DST))
#define TRANSFER  (ON(ASK) | ON(COPY) | ON(GET) | ON(TAGS) | ON(STREAM))
#define TROUBLE   (ON(GONE) | ON(RENEW) | ON(LOOK) | READ | TRANSFER)
/* clang-format off */
const struct xf_step xf_small_steps[XF_SMALL_N] = {
    [XF_SMALL_RECHECK]  = {"recheck",    XF_SRC, 0, ON(LOOK), head_source, recheck_done},
    [XF_SMALL_LOOK]     = {"look",       XF_DST, 0, READ | TRANSFER, head_dest, look_done},
    [XF_SMALL_ASK]      = {"ask",        XF_SRC, 0, TRANSFER, head_source, ask_done},
    [XF_SMALL_COPY]     = {"copy",       XF_DST, XF_STEP_WRITE | XF_STEP_COPY, ON(COPY_DST) | TROUBLE, xf_copy_start, xf_copy_done},
    [XF_SMALL_COPY_DST] = {"copy_dst",   XF_DST, 0, ON(COPY_SRC) | TROUBLE, head_dest, xf_copy_dst_done},
    [XF_SMALL_COPY_SRC] = {"copy_src",   XF_SRC, 0, TROUBLE, head_source, xf_copy_src_done},
    [XF_SMALL_GONE]     = {"gone",       XF_SRC, 0, TROUBLE, head_source, gone_done},
    [XF_SMALL_RENEW]    = {"renew",      XF_SRC, 0, ON(LOOK) | TRANSFER, head_source, renew_done},
    [XF_SMALL_GET]      = {"get",        XF_SRC, XF_STEP_BULK, ON(PUT) | TROUBLE, xf_relay_get, xf_relay_get_done},
    [XF_SMALL_TAGS]     = {"tags",       XF_SRC, 0, ON(PUT) | TROUBLE, xf_relay_tags, xf_relay_tags_done},
    [XF_SMALL_PUT]      = {"put",        XF_DST, XF_STEP_WRITE | XF_STEP_BUFFERED, ON(PUT_DST) | ON(PUT_SRC) | TROUBLE, xf_relay_put, xf_relay_put_done},
    [XF_SMALL_STREAM]   = {"stream",     XF_DST, XF_STEP_WRITE | XF_STEP_BOTH | XF_STEP_BULK, ON(PUT_DST) | ON(PUT_SRC) | TROUBLE, xf_relay_stream, xf_relay_put_done},
    [XF_SMALL_PUT_DST]  = {"put_dst",    XF_DST, 0, ON(PUT_SRC) | TROUBLE, head_dest, xf_relay_put_dst_done},
    [XF_SMALL_PUT_SRC]  = {"put_src",    XF_SRC, 0, TROUBLE, head_source, xf_relay_put_src_done},
    [XF_SMALL_READ_SRC] = {"read_src",   XF_SRC, XF_STEP_BULK, TROUBLE, xf_small_read_src, xf_small_read_src_done},
    [XF_SMALL_READ_DST] = {"read_dst",   XF_DST, XF_STEP_BULK, TROUBLE, xf_small_read_dst, xf_small_read_dst_done},
};
/* clang-format on */
