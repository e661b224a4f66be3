/* engine_upload.c - what the steps of an upload share: ends, retries, finding lost uploads. */
#include "agent/engine_upload.h"

#include "agent/engine_sum.h"
#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

/* Dates in headers and listings have whole seconds. */
enum { CLOCK_SLACK_MS = 2000, FIND_ROUNDS = 1000 };

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

    op->lost_mono_ms = xf_clock_mono_ms(run->e->clock);
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
 * very key, have begun between the intent and the moment the answer was lost, and hold no part: the
 * id is stored before part 1 is sent, so an upload with parts that the store does not know is
 * somebody else's. We look before each Create, so one at most is ours: of two, none is touched.
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

struct window {
    int64_t since_ms; /* by the server's clock */
    int64_t until_ms;
};

/* From the intent to the loss of an answer; how long ago they were does not hang on this host's
 * wall clock, which may be set meanwhile. */
static struct window find_window(const struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_clock *clock = op->run->e->clock;
    int64_t mono_ms = xf_clock_mono_ms(clock);
    int64_t there_ms = res->server_date_ms > 0 ? res->server_date_ms : xf_clock_wall_ms(clock);

    return (struct window){
        .since_ms = there_ms - (mono_ms - op->run->w->intent_mono_ms) - CLOCK_SLACK_MS,
        .until_ms = there_ms - (mono_ms - op->lost_mono_ms) + CLOCK_SLACK_MS,
    };
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

static bool
is_candidate(const struct xf_op *op, const struct xf_xml_upload *u, const struct window *window)
{
    return xf_str_eq(u->key, xf_op_dst_key(op)) && u->initiated_ms >= window->since_ms &&
           u->initiated_ms <= window->until_ms && !xf_str_eq(u->upload_id, op->run->w->upload_id) &&
           !xf_str_eq(u->upload_id, xf_buf_view(&op->empty_id)) && !is_spared(op, u->upload_id);
}

static void keep(struct xf_buf *to, struct xf_str text)
{
    xf_buf_reset(to);
    xf_buf_put(to, text);
}

static void spare(struct xf_op *op, struct xf_str upload_id, const char *why)
{
    XF_WARN("upload.spared",
            xf_f_u64("task", op->run->w->task),
            xf_f_str("key", op->obj->key),
            xf_f_str("upload_id", upload_id),
            xf_f_c("why", why));
    xf_buf_put(&op->spared, upload_id);
    xf_buf_put_c(&op->spared, "\n");
}

static void tell_left(struct xf_op *op)
{
    xf_engine_note(op->run,
                   XF_FACT_UPLOAD_UNSURE,
                   "upload_left",
                   "an open upload that may be this job's could not be told from other people's "
                   "and was left (its key and id: the agents' log, upload.spared)");
}

/* All pages were seen. */
static enum xf_found judge_empty(struct xf_op *op)
{
    if (op->n_empty == 1) {
        keep(&op->upload_id, xf_buf_view(&op->empty_id));
        xf_buf_reset(&op->empty_id);
        op->n_empty = 0;
        return XF_FOUND_OURS;
    }
    if (op->n_empty > 1) {
        spare(op, xf_buf_view(&op->empty_id), "one of several that may be ours");
        xf_buf_reset(&op->empty_id);
        op->n_empty = 0;
        tell_left(op);
    }
    return XF_FOUND_NONE;
}

enum xf_found xf_upload_found(struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_xml_doc *doc = res->doc;
    const struct window window = find_window(op, res);

    xf_buf_reset(&op->marker); /* what is listed shrinks: a find is looked for from the start */
    xf_buf_reset(&op->marker_id);
    for (size_t i = 0; i < doc->n_uploads && op->rounds < FIND_ROUNDS; i++) {
        if (is_candidate(op, &doc->uploads[i], &window)) {
            keep(&op->upload_id, doc->uploads[i].upload_id);
            op->rounds++;
            return XF_FOUND_ONE;
        }
    }
    /* The key itself sorts first below its prefix, so later pages matter only while they have it */
    if (doc->is_truncated && xf_str_eq(doc->next_key_marker, xf_op_dst_key(op))) {
        xf_buf_put(&op->marker, doc->next_key_marker);
        xf_buf_put(&op->marker_id, doc->next_upload_id_marker);
        return XF_FOUND_MORE;
    }
    return judge_empty(op);
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

void xf_upload_judge_found(struct xf_op *op, const struct xf_s3_result *res)
{
    struct xf_str id = xf_buf_view(&op->upload_id);

    if (res->err.code == XF_E_NO_UPLOAD) { /* gone meanwhile */
        xf_buf_put(&op->spared, id);
        xf_buf_put_c(&op->spared, "\n");
    } else if (res->err.code != XF_OK) {
        spare(op, id, res->err.msg);
        tell_left(op);
    } else if (res->doc->n_parts > 0) {
        spare(op, id, "it holds parts: somebody else's");
    } else if (++op->n_empty == 1) {
        keep(&op->empty_id, id);
    } else {
        spare(op, id, "one of several that may be ours");
    }
}

struct xf_s3_req *xf_upload_abort_found(struct xf_op *op)
{
    const struct xf_s3_upload_opts o = found_upload(op);

    return xf_s3_abort(xf_op_s3(op, XF_DST), &o, xf_op_reply, op);
}
