/* engine_upload.c - what the steps of an upload share: ends, retries, finding lost uploads. */
#include "agent/engine_upload.h"

#include "agent/engine_sum.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

/* Dates in headers and listings have whole seconds. */
enum { CLOCK_SLACK_MS = 2000 };

void xf_upload_outcome(struct xf_op *op, struct xf_result *r)
{
    struct xf_run *run = op->run;

    r->flags |= op->flags;
    r->attempts = run->tries + 1;
    if (op->is_changed) {
        r->source_etag = xf_str_c(op->etag);
    }
    xf_run_set_result(run, r);
    run->n_open = 0;
    xf_op_end(op);
}

void xf_upload_ended(struct xf_op *op, enum xf_outcome outcome)
{
    struct xf_result r = {.outcome = outcome};
    struct xf_err err;

    (void)XF_FAIL(&err, XF_E_NOT_FOUND, "the object is %s", xf_outcome_name(outcome));
    xf_run_fail(op->run, XF_WORK_FAILED, &err);
    xf_upload_outcome(op, &r);
}

void xf_upload_fail(struct xf_op *op,
                    const struct xf_err *err,
                    const struct xf_s3_result *res,
                    bool retryable)
{
    struct xf_result r = {
        .outcome = XF_OUTCOME_FAILED,
        .code = err->code,
        .http_status = res != NULL && res->status > 0 ? (uint32_t)res->status : 0,
        .s3_code = res != NULL ? res->s3_code : XF_STR_EMPTY,
        .message = xf_str_c(err->msg),
        .flags = (retryable ? XF_RESULT_RETRYABLE : 0U) | xf_op_left(op),
    };
    if (op->run->is_failed) { /* another part was first */
        xf_op_end(op);
        return;
    }
    if (r.message.len > XF_RESULT_MSG_MAX) {
        r.message.len = XF_RESULT_MSG_MAX;
    }
    xf_run_fail(op->run, XF_WORK_FAILED, err);
    xf_upload_outcome(op, &r);
}

void xf_upload_fail_res(struct xf_op *op, const struct xf_s3_result *res)
{
    enum xf_class cls = xf_code_class(res->err.code);

    if (res->err.code == XF_E_ARCHIVED) {
        xf_upload_ended(op, XF_OUTCOME_ARCHIVED);
        return;
    }
    xf_upload_fail(op,
                   &res->err,
                   res,
                   cls == XF_CLASS_RETRY || cls == XF_CLASS_SLOW_DOWN || cls == XF_CLASS_REPLAN ||
                       xf_op_is_unclear(op, res));
}

void xf_upload_changed(struct xf_op *op)
{
    struct xf_err err;

    (void)XF_FAIL(&err, XF_E_CHANGED, "source changed during copy, etag was '%s'", op->etag);
    xf_upload_fail(op, &err, NULL, true);
}

void xf_upload_retry(struct xf_op *op, unsigned state, const struct xf_err *err)
{
    if (!xf_op_retry(op, state, -1)) {
        xf_upload_fail(op, err, NULL, true);
    }
}

struct xf_op *xf_upload_op(struct xf_run *run, const struct xf_step *steps, unsigned n_steps)
{
    struct xf_op *op = xf_op_new(run, steps, n_steps);
    struct xf_err err;

    if (xf_op_set_object(op, &run->w->manifest.objects[0], &err) != XF_OK) {
        xf_upload_fail(op, &err, NULL, false);
        return NULL;
    }
    return op;
}

struct xf_s3_req *xf_upload_head_source(struct xf_op *op)
{
    const struct xf_s3_head_opts o = {
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
        .want_sum = xf_sums_ask(op, XF_SUMS_READ_SRC),
    };
    return xf_s3_head(xf_op_s3(op, XF_SRC), &o, xf_op_reply, op);
}

struct xf_s3_req *xf_upload_head_dest(struct xf_op *op)
{
    const struct xf_s3_head_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .want_sum = xf_sums_ask(op, XF_SUMS_READ_DST),
    };
    return xf_s3_head(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

/*
 * ---- uploads that nobody knows ----
 *
 * A listing tells who began an upload only by account, so what is taken for ours must have this
 * very key, have begun since the intent was stored, and hold no part: the id is stored before part
 * 1 is sent, so an upload with parts that the store does not know is somebody else's.
 */

struct xf_s3_req *xf_upload_find(struct xf_op *op)
{
    const struct xf_s3_list_uploads_opts o = {
        .bucket = xf_op_bucket(op, XF_DST),
        .prefix = xf_op_dst_key(op),
        .key_marker = xf_buf_view(&op->marker),
        .upload_id_marker = xf_buf_view(&op->marker_id),
    };
    return xf_s3_list_uploads(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

/* When the intent was stored, by the server's clock; how long ago that is does not hang on this
 * host's wall clock, which may be set meanwhile. */
static int64_t intent_there(const struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_clock *clock = op->run->e->clock;
    int64_t age_ms = xf_clock_mono_ms(clock) - op->run->w->intent_mono_ms;
    int64_t now_ms = res->server_date_ms > 0 ? res->server_date_ms : xf_clock_wall_ms(clock);

    return now_ms - age_ms - CLOCK_SLACK_MS;
}

static bool is_spared(const struct xf_op *op, struct xf_str upload_id)
{
    struct xf_str rest = xf_buf_view(&op->spared);
    struct xf_str id;

    while (xf_str_cut(&rest, '\n', &id)) {
        if (xf_str_eq(id, upload_id)) {
            return true;
        }
    }
    return false;
}

bool xf_upload_take_found(struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_xml_doc *doc = res->doc;
    int64_t since = intent_there(op, res);

    for (size_t i = 0; i < doc->n_uploads; i++) {
        const struct xf_xml_upload *u = &doc->uploads[i];
        if (xf_str_eq(u->key, xf_op_dst_key(op)) && u->initiated_ms >= since &&
            !xf_str_eq(u->upload_id, op->run->w->upload_id) && !is_spared(op, u->upload_id)) {
            xf_buf_reset(&op->upload_id);
            xf_buf_put(&op->upload_id, u->upload_id);
            xf_buf_reset(&op->marker); /* what is listed shrinks: from the start again */
            xf_buf_reset(&op->marker_id);
            return true;
        }
    }
    xf_buf_reset(&op->marker);
    xf_buf_reset(&op->marker_id);
    /* The key itself sorts first below its prefix, so later pages matter only while they have it */
    if (doc->is_truncated && xf_str_eq(doc->next_key_marker, xf_op_dst_key(op))) {
        xf_buf_put(&op->marker, doc->next_key_marker);
        xf_buf_put(&op->marker_id, doc->next_upload_id_marker);
    }
    return false;
}

bool xf_upload_has_more_found(const struct xf_op *op)
{
    return op->marker.len > 0;
}

static struct xf_s3_upload_opts found_upload(const struct xf_op *op)
{
    return (struct xf_s3_upload_opts){
        .bucket = xf_op_bucket(op, XF_DST),
        .key = xf_op_dst_key(op),
        .upload_id = xf_buf_view(&op->upload_id),
    };
}

struct xf_s3_req *xf_upload_found_parts(struct xf_op *op)
{
    const struct xf_s3_upload_opts o = found_upload(op);

    return xf_s3_list_parts(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}

bool xf_upload_judge_found(struct xf_op *op, const struct xf_s3_result *res)
{
    if (res->err.code == XF_OK && res->doc->n_parts == 0) {
        return true;
    }
    if (res->err.code != XF_E_NO_UPLOAD) { /* else it is gone meanwhile */
        const char *why = res->err.code == XF_OK ? "it holds parts: somebody else's" : res->err.msg;
        XF_WARN("upload.spared",
                xf_f_u64("task", op->run->w->task),
                xf_f_str("key", op->obj->key),
                xf_f_str("upload_id", xf_buf_view(&op->upload_id)),
                xf_f_c("why", why));
    }
    if (res->err.code != XF_OK && res->err.code != XF_E_NO_UPLOAD) {
        xf_engine_note(
            op->run,
            XF_FACT_UPLOAD_UNSURE,
            "upload_left",
            "an open upload that may be this job's could not be looked into and was left "
            "(its key and id: the agents' log, upload.spared)");
    }
    xf_buf_put(&op->spared, xf_buf_view(&op->upload_id));
    xf_buf_put_c(&op->spared, "\n");
    return false;
}

struct xf_s3_req *xf_upload_abort_found(struct xf_op *op)
{
    const struct xf_s3_upload_opts o = found_upload(op);

    return xf_s3_abort(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}
