/* engine_job.c - a job on one engine: its two clients and limits, and what ops ask about it. */
#include "agent/engine_int.h"
#include "agent/engine_sum.h"
#include "agent/metrics.h"
#include "common/base/log.h"
#include "common/job/side.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"

#include <stdio.h>

static const char *const side_names[XF_SIDE_N] = {"source", "destination"};

static void on_request(void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us)
{
    (void)status; /* the code says it */
    xf_agent_metrics_request(arg, op, code, took_us);
}

static enum xf_code open_side(struct xf_engine *e,
                              const struct xf_ejob *ej,
                              enum xf_side no,
                              struct xf_s3 **out,
                              struct xf_err *err)
{
    const struct xf_job_spec *spec = ej->job->spec;
    const struct xf_side_env env = {
        .loop = e->loop,
        .http = e->http,
        .on_done = e->metrics != NULL ? on_request : NULL,
        .on_done_arg = e->metrics,
        .creds = e->creds,
        .creds_arg = e->creds_arg,
        .reads_objects = true,
    };

    return xf_side_client(&env, no == XF_SRC ? &spec->source : &spec->destination, out, err);
}

struct xf_ejob *xf_ejob_find(struct xf_engine *e, const struct xf_work_job *job)
{
    XF_LIST_FOREACH (node, &e->jobs) {
        struct xf_ejob *ej = XF_CONTAINER_OF(node, struct xf_ejob, node);
        if (ej->job == job) {
            return ej;
        }
    }
    return NULL;
}

static struct xf_ejob *ejob_new(struct xf_engine *e, struct xf_work_job *job)
{
    struct xf_ejob *ej = xf_xcalloc(1, sizeof(*ej));
    uint64_t ordered = atomic_load(&job->lane_in_flight);
    uint64_t wanted = ordered > 0                ? ordered
                      : job->spec->in_flight > 0 ? (uint64_t)job->spec->in_flight
                                                 : e->max_in_flight;

    ej->job = xf_work_job_ref(job);
    xf_list_init(&ej->parked);
    for (int side = 0; side < XF_SIDE_N; side++) {
        ej->limit[side] = xf_limit_new(&(struct xf_limit_opts){
            .loop = e->loop,
            .rng = &e->rng,
            .name = side_names[side],
            .max = wanted < e->max_in_flight ? (unsigned)wanted : e->max_in_flight,
        });
    }
    ej->rate = xf_rate_new(e->loop);
    ej->requests = xf_rate_new(e->loop);
    ej->bulk = xf_bulk_new(e->loop, e->pool_bytes / 4 * 3);
    ej->is_held = atomic_load(&job->is_held);
    xf_list_push_back(&e->jobs, &ej->node);
    return ej;
}

enum xf_code
xf_ejob_get(struct xf_engine *e, struct xf_work_job *job, struct xf_ejob **out, struct xf_err *err)
{
    struct xf_ejob *ej = xf_ejob_find(e, job);

    if (ej == NULL) {
        ej = ejob_new(e, job);
    }
    *out = ej;
    for (int side = 0; side < XF_SIDE_N; side++) {
        if (ej->s3[side] == NULL &&
            open_side(e, ej, (enum xf_side)side, &ej->s3[side], err) != XF_OK) {
            return XF_WRAP(err, "%s", side_names[side]);
        }
    }
    return XF_OK;
}

void xf_ejob_free(struct xf_engine *e, struct xf_ejob *ej)
{
    (void)e;
    XF_ASSERT(ej->n_runs == 0);
    xf_list_remove(&ej->node);
    for (int side = 0; side < XF_SIDE_N; side++) {
        xf_s3_free(ej->s3[side]);
        xf_limit_free(ej->limit[side]);
    }
    xf_bulk_free(ej->bulk);
    xf_rate_free(ej->rate);
    xf_rate_free(ej->requests);
    xf_work_job_unref(ej->job);
    xf_xfree(ej);
}

/* ---- what ops ask ---- */

struct xf_s3 *xf_op_s3(const struct xf_op *op, enum xf_side side)
{
    return op->run->ej->s3[side];
}

const struct xf_job_spec *xf_op_spec(const struct xf_op *op)
{
    return op->run->ej->job->spec;
}

struct xf_str xf_op_bucket(const struct xf_op *op, enum xf_side side)
{
    const struct xf_job_spec *spec = xf_op_spec(op);
    const struct xf_job_side *s = side == XF_SRC ? &spec->source : &spec->destination;

    return s->urls[op->run->w->manifest.source_no].bucket;
}

struct xf_str xf_op_dst_key(const struct xf_op *op)
{
    return xf_buf_view(&op->dst_key);
}

struct xf_str xf_op_class(const struct xf_op *op)
{
    return op->no_class ? XF_STR_EMPTY : xf_job_spec_class(xf_op_spec(op), op->obj->storage_class);
}

struct xf_s3_guards xf_op_guards(const struct xf_op *op)
{
    const struct xf_job_spec *spec = xf_op_spec(op);
    struct xf_s3_guards g = {
        .acl = xf_job_spec_acl(spec),
        .sse = xf_job_spec_sse(spec),
        .kms_key = spec->destination.kms_key,
    };

    if (spec->object_lock && op->attrs != NULL) {
        g.lock_mode = op->attrs->lock_mode;
        g.lock_until = op->attrs->lock_until;
        g.legal_hold = op->attrs->legal_hold;
    }
    return g;
}

bool xf_op_may_drop_class(struct xf_op *op, const struct xf_s3_result *res)
{
    bool is_refused = res->err.code == XF_E_BAD_REQUEST &&
                      (xf_str_eq_c(res->s3_code, "InvalidStorageClass") ||
                       xf_str_eq_c(res->s3_code, "InvalidArgument")); /* Ceph's word for it */
    bool is_kept = xf_str_eq(xf_op_class(op), op->obj->storage_class);

    if (!is_refused || !is_kept || op->no_class || xf_op_class(op).len == 0) {
        return false;
    }
    op->no_class = true;
    op->flags |= XF_RESULT_CLASS_DROPPED;
    xf_sums_forgive(op);
    return true;
}

bool xf_op_is_plain(const struct xf_op *op, bool is_encrypted)
{
    return xf_op_spec(op)->destination.sse != XF_JOB_SSE_BUCKET && !is_encrypted;
}

void xf_op_say_plain(struct xf_err *err)
{
    (void)XF_FAIL(err,
                  XF_E_UNSUPPORTED,
                  "the destination stored it without the encryption that the job asks for (sse)");
}

void xf_op_note_class(struct xf_op *op)
{
    if (op->no_class) {
        xf_engine_note(op->run,
                       XF_FACT_CLASS_UNKNOWN,
                       "storage_class_unknown",
                       "the destination does not know the storage class of some objects: they get "
                       "its default");
    }
}

static bool has_customer_key(const struct xf_job_spec *spec)
{
    return spec->source.customer_key_env.len > 0 || spec->destination.customer_key_env.len > 0;
}

bool xf_op_writes_opaque(const struct xf_op *op)
{
    const struct xf_job_side *to = &xf_op_spec(op)->destination;

    return to->customer_key_env.len > 0 || to->sse == XF_JOB_SSE_KMS || to->sse == XF_JOB_SSE_DSSE;
}

static enum xf_job_mode mode_of(const struct xf_op *op)
{
    switch (atomic_load(&op->run->ej->job->order_mode)) {
    case XF_MODE_SERVER: return XF_JOB_MODE_SERVER;
    case XF_MODE_RELAY: return XF_JOB_MODE_RELAY;
    default: return (enum xf_job_mode)xf_op_spec(op)->mode;
    }
}

bool xf_op_may_relay(const struct xf_op *op)
{
    return mode_of(op) != XF_JOB_MODE_SERVER;
}

bool xf_op_may_copy(const struct xf_op *op, bool part)
{
    const struct xf_work_job *job = op->run->ej->job;
    enum xf_job_mode mode = mode_of(op);

    if (mode == XF_JOB_MODE_RELAY || !job->is_same_service || has_customer_key(job->spec)) {
        return false;
    }
    if (mode == XF_JOB_MODE_SERVER) {
        return true;
    }
    return !op->no_copy && !xf_work_job_knows(job, part ? XF_FACT_NO_PART_COPY : XF_FACT_NO_COPY);
}

void xf_op_keep_etag(char to[XF_WORK_ETAG_MAX], struct xf_str etag)
{
    struct xf_str bare = xf_plan_etag_bare(etag);

    if (bare.len >= XF_WORK_ETAG_MAX) {
        bare.len = 0; /* not S3's: as good as unknown */
    }
    memcpy(to, bare.ptr != NULL ? bare.ptr : "", bare.len);
    to[bare.len] = '\0';
}

enum xf_code xf_op_set_object(struct xf_op *op, const struct xf_object *obj, struct xf_err *err)
{
    const struct xf_job_spec *spec = xf_op_spec(op);
    uint32_t no = op->run->w->manifest.source_no;

    op->obj = obj;
    op->size = obj->size;
    op->mtime_ms = obj->mtime_ms;
    xf_op_keep_etag(op->etag, obj->etag);
    if (!xf_str_starts(obj->key, spec->source.urls[no].prefix)) {
        return XF_FAIL(err, XF_E_PROTO, "the key is not below the job's url");
    }
    return xf_job_spec_map_key(spec, no, obj->key, &op->dst_key, err);
}

bool xf_op_is_changed(const struct xf_op *op, const struct xf_s3_result *head)
{
    return head->size != op->size || !xf_plan_etag_eq(head->etag, xf_str_c(op->etag));
}

/* When the source was written, as rclone and others keep it: seconds, and their fraction. */
static void put_mtime(struct xf_buf *out, int64_t ms)
{
    xf_buf_putf(out, "%jd", (intmax_t)(ms / 1000));
    if (ms % 1000 != 0) {
        xf_buf_putf(out, ".%03d", (int)(ms % 1000));
    }
}

void xf_op_keep_attrs(struct xf_op *op, const struct xf_s3_result *res)
{
    XF_AUTO_BUF text = {0};

    xf_s3_attrs_free(op->attrs);
    if (!xf_op_spec(op)->source_mtime || res->modified_ms <= 0) {
        op->attrs = xf_s3_attrs_dup(res->attrs);
        return;
    }
    put_mtime(&text, res->modified_ms);
    op->attrs = xf_s3_attrs_dup_with(
        res->attrs, &(struct xf_s3_meta){.name = XF_STR_LIT("mtime"), .value = xf_buf_view(&text)});
}

void xf_op_renew(struct xf_op *op, const struct xf_s3_result *head)
{
    bool had_etag = op->etag[0] != '\0';
    bool is_changed = xf_op_is_changed(op, head);

    if (is_changed) {
        op->is_changed = true; /* also when the etag was not known: now it is to be told */
        op->flags |= had_etag || head->size != op->size ? XF_RESULT_CHANGED : 0;
    }
    xf_op_keep_etag(op->etag, head->etag);
    op->size = head->size;
    op->sum = (struct xf_sum){0};
    op->src_sum = head->sum;
    if (head->modified_ms != 0) {
        op->mtime_ms = head->modified_ms;
    }
    op->src_is_opaque = xf_verify_is_opaque(head->attrs);
    if (op->attrs != NULL) {
        xf_op_keep_attrs(op, head); /* those of what it is now */
        op->has_tags = op->has_tags && !is_changed;
    }
}

struct xf_s3_source xf_op_source(const struct xf_op *op)
{
    return (struct xf_s3_source){
        .bucket = xf_op_bucket(op, XF_SRC),
        .key = op->obj->key,
        .version_id = op->obj->version_id,
        .if_match = xf_str_c(op->etag),
        .requester_pays = xf_op_spec(op)->source.requester_pays,
    };
}

bool xf_op_needs_attrs(const struct xf_op *op)
{
    const struct xf_job_spec *spec = xf_op_spec(op);
    bool may_redirect = spec->metadata && xf_work_job_knows(op->run->ej->job, XF_FACT_WEBSITE);

    return may_redirect || spec->object_lock || spec->source_mtime;
}

const struct xf_s3_attrs *xf_op_attrs(const struct xf_op *op)
{
    return xf_op_spec(op)->metadata ? op->attrs : NULL;
}

enum xf_limit_how xf_op_how(const struct xf_s3_result *res)
{
    switch (xf_code_class(res->err.code)) {
    case XF_CLASS_SLOW_DOWN: return XF_LIMIT_THROTTLED;
    case XF_CLASS_NONE:
    case XF_CLASS_FATAL:
    case XF_CLASS_RETRY:
    case XF_CLASS_REPLAN:
    case XF_CLASS_LOCAL:
    case XF_CLASS_N: break;
    }
    if (res->err.code == XF_E_UNREACHABLE) { /* the other half of a pair */
        return XF_LIMIT_DOWN;
    }
    return res->status != 0 ? XF_LIMIT_OK : XF_LIMIT_NEUTRAL;
}
