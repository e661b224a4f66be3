/*
 * items.c - reports to operations, leased rows to messages.
 *
 *   batch, recheck   checkpoint, done -> CHECKPOINT          give_back -> CHECKPOINT, GIVE_BACK
 *   parts            checkpoint, done -> CHECKPOINT          failed    -> UPLOAD_END
 *   open             opened -> UPLOAD_OPENED                 done, failed -> UPLOAD_END
 *   close            done, failed -> UPLOAD_END
 *   abort            done -> ABORT_DONE                      failed -> ABORT_DONE (gave up)
 *
 * Invariants:
 * 1. An item is acknowledged with XF_OK only after its commit.
 * 2. A heartbeat is answered once; operations that outlive the answer still take effect here.
 */
#include "coordinator/items.h"

#include "common/base/log.h"
#include "coordinator/jobtab.h"
#include "coordinator/metrics.h"
#include "coordinator/part_sums.h"
#include "coordinator/roster.h"

enum {
    ANSWER_MS = 1000,  /* a heartbeat's answer waits for commits at most so long */
    ENDED_MAX = 20000, /* tasks that ended and are remembered */
    UNFIT_DELAY_MS = 1000,
    FAILED_DELAY_MS = 2000,
    STEP_ATTEMPTS_MAX = 10 /* leases of one step of an upload */
};
static const double wide_s = 0.25; /* a fast agent reports what it does in this time at once */

struct beat {
    struct xf_coordinator *c;
    struct xf_cagent *agent;
    struct xf_hub_req *req; /* NULL: answered */
    struct xf_msg_ack *acks;
    uint32_t n_acks;
    uint32_t n_pending;
    bool is_submitting;
    struct xf_timer timer;
};

struct item {
    struct beat *beat;
    uint32_t ack_idx;
    uint32_t kind; /* enum xf_task_kind */
    uint64_t task;
    uint32_t attempt;
    enum xf_how then; /* after the checkpoint the task is given back so; RUNNING: not */
    bool is_refused;  /* given back since a report of it could not be taken */
};

/* ---- ended tasks --------------------------------------------------------------------------------
 */

static void remember_ended(struct xf_coordinator *c, uint64_t task, uint32_t attempt, uint32_t kind)
{
    struct xf_cended *e = xf_map_get(&c->ended_by_task, xf_map_key_u64(&task));

    if (e != NULL) {
        xf_list_remove(&e->link);
    } else {
        e = xf_xcalloc(1, sizeof(*e));
        e->task = task;
        (void)xf_map_put(&c->ended_by_task, xf_map_key_u64(&e->task), e); /* was not there */
        c->n_ended++;
    }
    e->attempt = attempt;
    e->kind = kind;
    xf_list_push_back(&c->ended, &e->link);
    if (c->n_ended > ENDED_MAX) {
        struct xf_cended *old =
            XF_CONTAINER_OF(xf_list_pop_front(&c->ended), struct xf_cended, link);
        (void)xf_map_take(&c->ended_by_task, xf_map_key_u64(&old->task)); /* gives old */
        xf_xfree(old);
        c->n_ended--;
    }
}

void xf_items_fini(struct xf_coordinator *c)
{
    XF_LIST_FOREACH (node, &c->ended) {
        struct xf_cended *e = XF_CONTAINER_OF(node, struct xf_cended, link);
        (void)xf_map_take(&c->ended_by_task, xf_map_key_u64(&e->task)); /* gives e */
        xf_list_remove(&e->link);
        xf_xfree(e);
    }
}

/* Kind of a task that is, or was a while ago, leased with this attempt; 0: not known. */
static uint32_t kind_of(struct xf_coordinator *c, uint64_t task, uint32_t attempt)
{
    const struct xf_lease *lease = xf_leases_get(&c->leases, (int64_t)task);
    const struct xf_cended *e = xf_map_get(&c->ended_by_task, xf_map_key_u64(&task));

    if (lease != NULL && lease->attempt == attempt) {
        return lease->kind;
    }
    return e != NULL ? e->kind : 0;
}

/* ---- the answer ---------------------------------------------------------------------------------
 */

/* Reports that come all the time cost a merge each: a fast agent's are wider. */
static uint32_t checkpoint_max(const struct xf_coordinator *c, const struct xf_cagent *a)
{
    double wide = a->objects_s * wide_s;
    double least = (double)c->conf->checkpoint_outcomes;

    wide = wide < least ? least : wide;
    return (uint32_t)(wide < XF_CHECKPOINT_MAX ? wide : XF_CHECKPOINT_MAX);
}

static void beat_answer(struct beat *b)
{
    struct xf_coordinator *c = b->c;
    struct xf_arena *arena = xf_hub_req_arena(b->req);
    struct xf_msg_beat_reply reply = {.acks = b->acks, .n_acks = b->n_acks};
    const struct xf_cagent *a = b->agent;

    xf_timer_stop(c->loop, &b->timer);
    reply.acks = xf_arena_calloc(arena, b->n_acks + 1, sizeof(*reply.acks));
    memcpy(reply.acks, b->acks, b->n_acks * sizeof(*b->acks));
    reply.orders = xf_arena_calloc(arena, XF_ORDERS_MAX, sizeof(*reply.orders));
    XF_LIST_FOREACH (node, &c->jobs) {
        if (reply.n_orders < XF_ORDERS_MAX - 1) {
            reply.orders[reply.n_orders++] =
                xf_jobtab_order(c, XF_CONTAINER_OF(node, struct xf_cjob, link));
        }
    }
    reply.orders[reply.n_orders++] =
        (struct xf_msg_order){.kind = a->is_draining ? XF_ORDER_DRAIN : XF_ORDER_UNDRAIN};
    reply.checkpoint_max = checkpoint_max(c, a);
    xf_hub_reply(b->req, &reply);
    b->req = NULL;
}

static void beat_settle(struct beat *b)
{
    if (b->n_pending > 0 || b->is_submitting) {
        return;
    }
    if (b->req != NULL) {
        beat_answer(b);
    }
    xf_xfree(b->acks);
    xf_xfree(b);
}

/* Slow commits: what is not there yet is told as busy, and will be sent again. */
static void on_late(struct xf_timer *t)
{
    beat_answer(t->arg);
}

/* ---- ends of operations -------------------------------------------------------------------------
 */

static void on_progress(struct xf_coordinator *c, struct item *it, const struct xf_store_op *op)
{
    const struct xf_out_checkpoint *out = &op->out.checkpoint;
    struct xf_lease *lease = xf_leases_get(&c->leases, (int64_t)it->task);
    uint32_t n = 0;

    for (int o = XF_OUTCOME_PENDING + 1; o < XF_OUTCOME_N; o++) {
        n += out->added.by_outcome[o];
    }
    if (lease != NULL && lease->attempt == it->attempt) {
        lease->objects -= n < lease->objects ? n : lease->objects;
    }
    if (out->added.by_outcome[XF_OUTCOME_COPIED] > 0 || op->in.checkpoint.n_parts > 0) {
        xf_jobtab_went_on(c, out->job);
    }
    if (out->added.by_outcome[XF_OUTCOME_FAILED] > 0) {
        xf_jobtab_failed_by(c, out->job, it->beat->agent->number);
    }
    if (out->ended) {
        remember_ended(c, it->task, it->attempt, it->kind);
        (void)xf_leases_end(&c->leases, (int64_t)it->task, it->attempt); /* may be gone already */
    }
    if (out->all_parts_in) {
        xf_jobtab_add_ready(c, out->job, 1);
    }
}

struct stop_search {
    struct xf_coordinator *c;
    int64_t upload;
};

static void stop_if_of_upload(void *arg, struct xf_lease *lease)
{
    struct stop_search *s = arg;
    const struct xf_cagent *a = xf_roster_by_number(s->c, lease->holder);
    const struct xf_msg_order o = {
        .kind = XF_ORDER_DROP_TASK, .task = lease->task, .attempt = lease->attempt};

    if (lease->upload != s->upload || lease->is_ending) {
        return;
    }
    if (a != NULL && a->session != NULL) {
        xf_hub_order(s->c->hub, a->session, &o);
    }
    xf_roster_give_back(s->c, lease, XF_HOW_STOPPED);
}

static void end_lease(struct xf_coordinator *c, const struct item *it)
{
    remember_ended(c, it->task, it->attempt, it->kind);
    (void)xf_leases_end(&c->leases, (int64_t)it->task, it->attempt); /* may be gone already */
}

static void on_upload_ended(struct xf_coordinator *c, struct item *it, const struct xf_store_op *op)
{
    const struct xf_out_upload_end *out = &op->out.upload_end;
    struct stop_search s = {.c = c, .upload = out->upload};

    end_lease(c, it);
    if (out->to_abort) {
        xf_leases_each(&c->leases, 0, stop_if_of_upload, &s);
        xf_jobtab_add_ready(c, out->job, 1);
    } else if (op->in.upload_end.result.outcome == XF_OUTCOME_COPIED) {
        xf_jobtab_went_on(c, out->job);
    }
}

static void on_item_ok(struct xf_coordinator *c, struct item *it, const struct xf_store_op *op)
{
    switch ((int)op->kind) {
    case XF_OP_CHECKPOINT: on_progress(c, it, op); break;
    case XF_OP_GIVE_BACK:
        end_lease(c, it);
        xf_jobtab_add_ready(c, op->out.give_back.job, 1);
        break;
    case XF_OP_UPLOAD_OPENED:
        end_lease(c, it);
        xf_jobtab_add_ready(c, op->out.upload_opened.job, op->out.upload_opened.n_tasks);
        break;
    case XF_OP_UPLOAD_END: on_upload_ended(c, it, op); break;
    case XF_OP_ABORT_DONE: end_lease(c, it); break;
    default: break; /* no other kind is made here */
    }
}

static struct xf_store_op *make_give_back(struct item *it, enum xf_how how);

/* What came with a give-back is in: now the give-back itself. */
static bool go_on_to_give_back(struct xf_coordinator *c, struct item *it)
{
    enum xf_how how = it->then;

    it->then = XF_HOW_RUNNING;
    return how != XF_HOW_RUNNING && xf_core_submit(c, make_give_back(it, how));
}

/* A late report is stale by its nature; only what the store could not take is told again. */
static enum xf_code
on_rechecked(struct xf_coordinator *c, const struct item *it, const struct xf_store_op *op)
{
    if (op->rc == XF_E_DISK || op->rc == XF_E_BUSY) {
        return op->rc;
    }
    XF_INFO("report.late",
            xf_f_c("agent", it->beat->agent->id),
            xf_f_u64("task", it->task),
            xf_f_u64("attempt", it->attempt),
            xf_f_bool("recheck", op->rc == XF_OK));
    xf_cmetrics_add(c->metrics, XF_CM_STALE_REPORTS, NULL, 1);
    if (op->rc == XF_OK && op->out.recheck.made) {
        xf_jobtab_add_ready(c, op->out.recheck.job, 1);
    }
    return XF_E_STALE;
}

static void on_item_done(struct xf_store_op *op)
{
    struct item *it = op->arg;
    struct beat *b = it->beat;
    struct xf_coordinator *c = b->c;
    enum xf_code rc = op->rc;

    if (op->kind == XF_OP_RECHECK) {
        rc = on_rechecked(c, it, op);
    } else if (rc == XF_OK) {
        bool wants_more = it->then != XF_HOW_RUNNING;
        on_item_ok(c, it, op);
        if (go_on_to_give_back(c, it)) {
            return; /* the same item's second step */
        }
        rc = wants_more ? XF_E_BUSY : XF_OK;
    } else if (rc == XF_E_STALE || rc == XF_E_CANCELLED || rc == XF_E_NOT_FOUND) {
        XF_INFO("report.stale",
                xf_f_c("agent", b->agent->id),
                xf_f_u64("task", it->task),
                xf_f_u64("attempt", it->attempt));
        xf_cmetrics_add(c->metrics, XF_CM_STALE_REPORTS, NULL, 1);
        rc = XF_E_STALE;
        if (op->kind == XF_OP_CHECKPOINT && op->out.checkpoint.rechecked) {
            xf_jobtab_add_ready(c, op->out.checkpoint.job, 1);
        }
    } else {
        XF_WARN("report.not_taken",
                xf_f_c("agent", b->agent->id),
                xf_f_u64("task", it->task),
                xf_f_c("op", xf_op_name(op->kind)),
                xf_f_code(rc),
                xf_f_err(&op->err));
    }
    b->acks[it->ack_idx].code = (uint32_t)rc;
    b->n_pending--;
    xf_xfree(it);
    beat_settle(b);
}

/* ---- operations of items ------------------------------------------------------------------------
 */

static struct xf_store_fence fence_of(struct xf_store_op *op, const struct item *it)
{
    const struct xf_cagent *a = it->beat->agent;
    struct xf_str instance = xf_store_op_dup(op, xf_str_n(a->instance, sizeof(a->instance)));

    return (struct xf_store_fence){.task = (int64_t)it->task,
                                   .attempt = it->attempt,
                                   .instance = (const unsigned char *)instance.ptr};
}

static struct xf_store_op *
make_checkpoint(struct beat *b, const struct xf_msg_item *m, struct item *it)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_CHECKPOINT, on_item_done, it);
    struct xf_store_part *parts = xf_store_op_calloc(op, m->n_parts + 1, sizeof(*parts));

    for (uint32_t i = 0; i < m->n_parts; i++) {
        parts[i] = (struct xf_store_part){.part_no = m->parts[i].part_no,
                                          .etag = xf_store_op_dup(op, m->parts[i].etag),
                                          .checksum = xf_part_sums_pack(op, &m->parts[i]),
                                          .through_bytes = m->parts[i].through};
    }
    op->in.checkpoint = (struct xf_in_checkpoint){
        .fence = fence_of(op, it),
        .delta = xf_store_op_dup(op, m->result),
        .parts = parts,
        .n_parts = m->n_parts,
        .throttled = b->agent->throttled,
        .retries = b->agent->retries,
        .is_done = m->kind == XF_ITEM_DONE,
    };
    b->agent->throttled = 0;
    b->agent->retries = 0;
    return op;
}

static struct xf_store_op *make_give_back(struct item *it, enum xf_how how)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_GIVE_BACK, on_item_done, it);

    op->in.give_back = (struct xf_in_give_back){
        .fence = fence_of(op, it),
        .how = how,
        .is_refused = it->is_refused,
        .delay_ms = how == XF_HOW_UNFIT    ? UNFIT_DELAY_MS
                    : how == XF_HOW_FAILED ? FAILED_DELAY_MS
                                           : 0,
    };
    return op;
}

static struct xf_store_op *make_opened(struct beat *b, const struct xf_msg_item *m, struct item *it)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_UPLOAD_OPENED, on_item_done, it);
    const struct xf_lease *lease = xf_leases_get(&b->c->leases, (int64_t)m->task);
    uint64_t size = m->size > 0 || lease == NULL ? m->size : lease->bytes;

    op->in.upload_opened = (struct xf_in_upload_opened){
        .fence = fence_of(op, it),
        .upload_id = xf_store_op_dup(op, m->upload_id),
        .digest = xf_store_op_dup(op, m->attrs),
        .etag = xf_store_op_dup(op, m->etag),
        .size = size,
        .part_size = m->part_size,
        .n_parts = m->part_size > 0 ? (uint32_t)((size + m->part_size - 1) / m->part_size) : 0,
        .sum = m->sum,
    };
    return op;
}

static void fill_failed(struct xf_store_op *op, const struct xf_msg_item *m, struct xf_result *r)
{
    *r = (struct xf_result){
        .outcome = XF_OUTCOME_FAILED,
        .code = m->code > XF_OK && m->code < XF_CODE_N ? (enum xf_code)m->code : XF_E_PROTO,
        .flags = m->retryable ? (uint32_t)XF_RESULT_RETRYABLE : 0,
        .http_status = m->http_status,
        .attempts = m->attempts,
        .s3_code = xf_store_op_dup(op, m->s3_code),
        .message = xf_store_op_dup(op, xf_str_sub(m->text, 0, XF_RESULT_MSG_MAX)),
        .etag = XF_STR_EMPTY,
        .version_id = XF_STR_EMPTY,
        .source_etag = XF_STR_EMPTY,
    };
}

/* The one record of an upload's object. */
static bool fill_from_result(struct xf_store_op *op, struct xf_str bytes, struct xf_result *r)
{
    struct xf_err err;
    XF_AUTO_RESULT_SET set = {0};

    xf_result_set_init(&set, 0);
    xf_result_set_fini(&set);
    if (xf_result_set_decode(bytes, 1, &set, &err) != XF_OK ||
        set.at[0].outcome == XF_OUTCOME_PENDING) {
        return false;
    }
    *r = set.at[0];
    r->etag = xf_store_op_dup(op, r->etag);
    r->version_id = xf_store_op_dup(op, r->version_id);
    r->source_etag = xf_store_op_dup(op, r->source_etag);
    r->s3_code = xf_store_op_dup(op, r->s3_code);
    r->message = xf_store_op_dup(op, r->message);
    return true;
}

static struct xf_store_op *make_upload_end(const struct xf_msg_item *m, struct item *it)
{
    XF_AUTO(xf_store_op) op = xf_store_op_new(XF_OP_UPLOAD_END, on_item_done, it);
    struct xf_in_upload_end *in = &op->in.upload_end;

    in->fence = fence_of(op, it);
    if (!fill_from_result(op, m->result, &in->result)) {
        if (m->kind == XF_ITEM_DONE) {
            return NULL; /* done, but it does not say how */
        }
        fill_failed(op, m, &in->result);
    }
    if (in->result.attempts < m->attempts) {
        in->result.attempts = m->attempts;
    }
    /* A first open that ended before Create left nothing; otherwise the abort task looks. */
    in->left_open = !(it->kind == XF_TASK_OPEN && m->attempt == 1 && m->kind == XF_ITEM_DONE) &&
                    (it->kind == XF_TASK_OPEN || in->result.outcome != XF_OUTCOME_COPIED);
    return XF_STEAL(op);
}

static struct xf_store_op *make_aborted(const struct xf_msg_item *m, struct item *it)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_ABORT_DONE, on_item_done, it);

    op->in.abort_done = (struct xf_in_abort_done){
        .fence = fence_of(op, it),
        .gave_up = m->kind == XF_ITEM_FAILED,
        .why = xf_store_op_dup(op, m->text),
    };
    return op;
}

static bool is_upload_step(uint32_t kind)
{
    return kind == XF_TASK_OPEN || kind == XF_TASK_PARTS || kind == XF_TASK_CLOSE;
}

/* A step of an upload that gave up again and again ends its object; a retry pass may do better. */
static struct xf_store_op *make_given_up(const struct xf_msg_item *m, struct item *it)
{
    struct xf_msg_item failed = *m;

    failed.kind = XF_ITEM_FAILED;
    failed.result = XF_STR_EMPTY;
    failed.retryable = true;
    return make_upload_end(&failed, it);
}

static struct xf_store_op *
make_returned(struct beat *b, const struct xf_msg_item *m, struct item *it)
{
    enum xf_how how = XF_HOW_FAILED;
    bool has_delta =
        (it->kind == XF_TASK_BATCH || it->kind == XF_TASK_RECHECK) && m->result.len > 0;
    bool has_parts = it->kind == XF_TASK_PARTS && m->n_parts > 0;

    if (m->how == XF_HOW_DRAINED || m->how == XF_HOW_UNFIT || m->how == XF_HOW_STOPPED) {
        how = (enum xf_how)m->how;
    }
    it->is_refused = how == XF_HOW_FAILED && m->code == XF_E_PROTO;
    if (how == XF_HOW_FAILED && is_upload_step(it->kind) && m->code != XF_E_UNREACHABLE &&
        m->attempt >= STEP_ATTEMPTS_MAX) {
        return make_given_up(m, it);
    }
    if (has_delta || has_parts) {
        it->then = how; /* first what was done, then the rest goes back */
        return make_checkpoint(b, m, it);
    }
    return make_give_back(it, how);
}

static struct xf_store_op *make_done(struct beat *b, const struct xf_msg_item *m, struct item *it)
{
    if (it->kind == XF_TASK_ABORT) {
        return make_aborted(m, it);
    }
    return it->kind == XF_TASK_OPEN || it->kind == XF_TASK_CLOSE ? make_upload_end(m, it)
                                                                 : make_checkpoint(b, m, it);
}

static struct xf_store_op *make_failed(const struct xf_msg_item *m, struct item *it)
{
    if (it->kind == XF_TASK_ABORT) {
        return make_aborted(m, it);
    }
    return is_upload_step(it->kind) ? make_upload_end(m, it) : NULL;
}

/* What an agent did in a lease that it had lost may have landed late: the batch is looked at again
 * after its present attempt. */
static struct xf_store_op *make_recheck(struct item *it)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_RECHECK, on_item_done, it);

    op->in.recheck.task = (int64_t)it->task;
    return op;
}

/* NULL: the item makes no sense for its task. */
static struct xf_store_op *make_op(struct beat *b, const struct xf_msg_item *m, struct item *it)
{
    if (m->kind == XF_ITEM_GIVE_BACK && m->how == (uint32_t)XF_HOW_EXPIRED) {
        return make_recheck(it);
    }
    switch ((enum xf_item_kind)m->kind) {
    case XF_ITEM_GIVE_BACK: return make_returned(b, m, it);
    case XF_ITEM_OPENED: return make_opened(b, m, it);
    case XF_ITEM_CHECKPOINT: return make_checkpoint(b, m, it);
    case XF_ITEM_FAILED: return make_failed(m, it);
    case XF_ITEM_DONE: return make_done(b, m, it);
    case XF_ITEM_N: break;
    }
    return NULL;
}

/* An endpoint that is down is nobody's fault: the job waits. */
static void look_at_give_back(struct xf_coordinator *c, const struct xf_msg_item *m)
{
    const struct xf_lease *lease = xf_leases_get(&c->leases, (int64_t)m->task);

    if (m->kind == XF_ITEM_GIVE_BACK && m->code == XF_E_UNREACHABLE && lease != NULL &&
        lease->attempt == m->attempt) {
        xf_jobtab_hold(c, lease->job, XF_E_UNREACHABLE, m->text);
    }
}

static void add_ack(struct beat *b, uint64_t task, uint32_t attempt, enum xf_code code)
{
    b->acks[b->n_acks++] =
        (struct xf_msg_ack){.task = task, .attempt = attempt, .code = (uint32_t)code};
}

static void submit_item(struct beat *b, const struct xf_msg_item *m)
{
    struct xf_coordinator *c = b->c;
    struct item *it = xf_xcalloc(1, sizeof(*it));

    *it = (struct item){.beat = b,
                        .ack_idx = b->n_acks,
                        .kind = kind_of(c, m->task, m->attempt),
                        .task = m->task,
                        .attempt = m->attempt};
    look_at_give_back(c, m);
    struct xf_store_op *op = make_op(b, m, it);
    if (op == NULL) {
        XF_WARN("report.senseless",
                xf_f_c("agent", b->agent->id),
                xf_f_u64("task", m->task),
                xf_f_u64("item", m->kind),
                xf_f_u64("task_kind", it->kind));
        add_ack(b, m->task, m->attempt, it->kind == 0 ? XF_E_STALE : XF_E_PROTO);
        xf_xfree(it);
        return;
    }
    add_ack(b, m->task, m->attempt, XF_E_BUSY); /* until the commit */
    if (xf_core_submit(c, op)) {
        b->n_pending++;
    } else {
        xf_xfree(it);
    }
}

static void renew(struct beat *b, const struct xf_msg_beat *m)
{
    struct xf_coordinator *c = b->c;

    for (uint32_t i = 0; i < m->n_held; i++) {
        const struct xf_msg_held *h = &m->held[i];
        if (!xf_leases_renew(&c->leases,
                             (int64_t)h->task,
                             h->attempt,
                             b->agent->number,
                             xf_loop_mono_ms(c->loop))) {
            add_ack(b, h->task, h->attempt, XF_E_STALE);
        }
    }
}

static void keep_figures(struct xf_coordinator *c, struct xf_cagent *a, const struct xf_msg_beat *m)
{
    a->in_flight = m->in_flight;
    a->objects_s = m->objects_s;
    a->bytes_s = m->bytes_s;
    a->throttled += m->throttled;
    a->retries += m->retries;
    a->seen_ms = xf_loop_mono_ms(c->loop);
    xf_cmetrics_add(c->metrics, XF_CM_THROTTLED, NULL, (double)m->throttled);
    xf_cmetrics_add(c->metrics, XF_CM_RETRIES, "throttled", (double)m->throttled);
    xf_cmetrics_add(c->metrics, XF_CM_RETRIES, "transient", (double)m->retries);
    if (m->unwell.len > 0 && (a->unwell == NULL || !xf_str_eq_c(m->unwell, a->unwell))) {
        XF_WARN("agent.unwell", xf_f_c("agent", a->id), xf_f_str("reason", m->unwell));
    }
    xf_xfree(a->unwell);
    a->unwell = m->unwell.len > 0 ? xf_str_dup(m->unwell) : NULL;
    for (uint32_t i = 0; i < m->n_notices; i++) {
        const struct xf_cjob *j = xf_jobtab_find(c, m->notices[i].job);
        if (j != NULL) {
            XF_AUTO_FREE char *code = xf_str_dup(m->notices[i].code);
            xf_jobtab_note(c, (int64_t)j->id, code, m->notices[i].text);
        }
    }
}

void xf_items_on_beat(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_beat *m,
                      struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;
    struct beat *b = xf_xcalloc(1, sizeof(*b));

    b->c = c;
    b->agent = s->user;
    b->req = r;
    b->timer = (struct xf_timer){.cb = on_late, .arg = b};
    b->acks = xf_xcalloc((size_t)m->n_items + m->n_held + 1, sizeof(*b->acks));
    b->is_submitting = true;
    keep_figures(c, b->agent, m);
    for (uint32_t i = 0; i < m->n_items; i++) {
        submit_item(b, &m->items[i]);
    }
    renew(b, m);
    b->is_submitting = false;
    if (b->n_pending > 0) {
        xf_timer_in(c->loop, &b->timer, ANSWER_MS);
    }
    beat_settle(b);
}

/* ---- leased tasks -------------------------------------------------------------------------------
 */

void xf_items_take_leased(struct xf_coordinator *c, uint64_t holder, const struct xf_store_op *op)
{
    const struct xf_out_lease *out = &op->out.lease;

    for (size_t i = 0; i < out->n_tasks; i++) {
        const struct xf_lease_task *t = &out->tasks[i];
        struct xf_lease lease = {.task = (uint64_t)t->task,
                                 .job = t->job,
                                 .upload = t->upload != NULL ? t->upload->id : 0,
                                 .bytes = t->upload != NULL ? t->upload->object.size : t->bytes,
                                 .attempt = t->attempt,
                                 .kind = (uint32_t)t->kind,
                                 .objects = t->n_objects,
                                 .holder = holder};
        memcpy(lease.instance, op->in.lease.instance, sizeof(lease.instance));
        xf_leases_add(&c->leases, &lease, xf_loop_mono_ms(c->loop));
    }
}

/* An upload's one object, in the form of a manifest. */
static struct xf_str one_object(struct xf_arena *arena, const struct xf_upload_row *u)
{
    struct xf_manifest_enc enc;
    struct xf_err err;
    XF_AUTO_BUF bytes = {0};

    xf_buf_init(&bytes, XF_MANIFEST_BYTES_MAX);
    xf_manifest_enc_init(&enc, u->source_no);
    if (xf_manifest_add(&enc, &u->object, &err) != XF_OK) {
        XF_ERROR("upload.not_encoded", xf_f_i64("upload", u->id), xf_f_err(&err));
    }
    xf_manifest_finish(&enc, &bytes);
    xf_manifest_enc_fini(&enc);
    return xf_arena_dup(arena, xf_buf_view(&bytes));
}

static void fill_upload(struct xf_arena *arena,
                        const struct xf_lease_task *t,
                        int64_t wall_ms,
                        struct xf_msg_task *m)
{
    const struct xf_upload_row *u = t->upload;
    int64_t age_ms = wall_ms - u->intent_ms;

    m->manifest = one_object(arena, u);
    m->upload_id = u->upload_id;
    m->part_size = u->part_size;
    m->total_parts = u->n_parts;
    m->first_part = t->first_part;
    m->last_part = t->last_part;
    m->intent_age_ms = age_ms > 0 ? age_ms : 0;
    m->attrs = u->digest;
    m->sum = u->sum;
    m->parts = xf_arena_calloc(arena, t->n_parts + 1, sizeof(*m->parts));
    for (size_t i = 0; i < t->n_parts; i++) {
        struct xf_msg_part *p = &m->parts[m->n_parts++];
        p->part_no = t->parts[i].part_no;
        p->etag = t->parts[i].etag;
        p->through = t->parts[i].through_bytes;
        xf_part_sums_unpack(t->parts[i].checksum, p);
    }
}

void xf_items_reply_leased(struct xf_coordinator *c,
                           struct xf_hub_req *r,
                           const struct xf_store_op *op)
{
    const struct xf_out_lease *out = &op->out.lease;
    struct xf_arena *arena = xf_hub_req_arena(r);
    struct xf_msg_lease_reply reply = {0};

    reply.tasks = xf_arena_calloc(arena, out->n_tasks + 1, sizeof(*reply.tasks));
    for (size_t i = 0; i < out->n_tasks; i++) {
        const struct xf_lease_task *t = &out->tasks[i];
        const struct xf_cjob *j = xf_jobtab_get(c, t->job);
        struct xf_msg_task *m = &reply.tasks[reply.n_tasks++];
        m->task = (uint64_t)t->task;
        m->attempt = t->attempt;
        m->job = j != NULL ? xf_str_c(j->public_id) : XF_STR_EMPTY;
        m->kind = (uint32_t)t->kind;
        m->manifest = t->manifest;
        m->done = t->result;
        m->pass = j != NULL ? (uint32_t)j->row.pass_no : 1;
        if (t->upload != NULL) {
            fill_upload(arena, t, xf_loop_wall_ms(c->loop), m);
        }
    }
    xf_hub_reply(r, &reply);
}
