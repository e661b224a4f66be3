/*
 * runner_task.c - one lease: accepted, on a lane, its outcomes told and acknowledged.
 *
 * Invariants:
 * 1. A record is ACKED only by an acknowledgement of a beat that carried it; a lost beat makes what
 *    it carried FRESH again. The coordinator merges repeats without harm.
 * 2. The last item of a task (done, opened, give back, failed) is sent only when its lane has given
 *    the work back, so nothing of it is written afterwards.
 * 3. A dropped task reports no outcome; a batch that had begun is told as late, once it stopped.
 */
#include "agent/runner_int.h"
#include "common/base/log.h"

#include <stdlib.h>

enum { END_WAIT_MS = 200 };

struct xf_rtask *xf_rtask_find(struct xf_runner *r, uint64_t id, uint32_t attempt)
{
    XF_LIST_FOREACH (node, &r->tasks) {
        struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        if (t->id == id && t->attempt == attempt) {
            return t;
        }
    }
    return NULL;
}

static void unlink_task(struct xf_rtask *t)
{
    if (xf_list_is_linked(&t->node)) {
        xf_list_remove(&t->node);
        t->r->n_tasks--;
        t->r->n_fresh -= t->n_fresh;
        t->n_fresh = 0;
    }
}

void xf_rtask_free(struct xf_rtask *t)
{
    struct xf_rjob *job = t->job;

    XF_ASSERT(t->lane == NULL);
    unlink_task(t);
    xf_work_free(t->work);
    xf_result_set_fini(&t->results);
    xf_xfree(t->told);
    xf_xfree(t->parts);
    xf_xfree(t->part_told);
    xf_arena_fini(&t->arena);
    xf_xfree(t);
    if (job != NULL) {
        xf_rjob_task_gone(job);
    }
}

/* Each report costs the coordinator a merge of what it holds of every batch in it. With other
 * batches at work and room for more nobody waits for the end of this one. */
static bool may_wait(const struct xf_rtask *t)
{
    const struct xf_runner *r = t->r;

    if (t->kind != XF_TASK_BATCH || t->last != XF_ITEM_DONE || r->is_closing || r->is_drained ||
        r->n_tasks > r->o.max_tasks / 2) {
        return false;
    }
    XF_LIST_FOREACH (node, &r->tasks) {
        if (XF_CONTAINER_OF(node, struct xf_rtask, node)->state == XF_RTASK_RUNNING) {
            return true;
        }
    }
    return false;
}

static void end_task(struct xf_rtask *t, enum xf_item_kind last)
{
    t->state = XF_RTASK_ENDED;
    t->last = last;
    t->last_sent = false;
    if (may_wait(t)) {
        xf_link_beat_within(t->r->link, END_WAIT_MS);
    } else {
        xf_link_beat_soon(t->r->link);
    }
    xf_runner_want(t->r);
}

static void give_back(struct xf_rtask *t, enum xf_how how, const struct xf_err *err)
{
    t->how = how;
    if (err != NULL) {
        t->err = *err;
    }
    end_task(t, XF_ITEM_GIVE_BACK);
}

static void give_back_refused(struct xf_rtask *t)
{
    struct xf_err err;

    t->r->n_fresh -= t->n_fresh;
    t->n_fresh = 0;
    if (t->told != NULL) {
        memset(t->told, XF_TOLD_NOTHING, t->results.n);
    }
    if (t->part_told != NULL) {
        memset(t->part_told, XF_TOLD_NOTHING, t->n_parts);
    }
    (void)XF_FAIL(
        &err, XF_E_PROTO, "the coordinator refused a report: %s", xf_code_text(t->refused));
    xf_runner_note(t->r, t->job->id, "report_refused", xf_str_c(err.msg));
    give_back(t, XF_HOW_FAILED, &err);
}

/* ---- accept ---- */

static void take_parts(struct xf_work *w, const struct xf_msg_task *m)
{
    struct xf_work_part *parts = xf_arena_calloc(&w->arena, m->n_parts + 1U, sizeof(*parts));

    for (uint32_t i = 0; i < m->n_parts; i++) {
        const struct xf_msg_part *from = &m->parts[i];
        parts[i].part_no = from->part_no;
        parts[i].etag = xf_arena_dup(&w->arena, from->etag);
        parts[i].size = from->size;
        parts[i].through = from->through;
        (void)xf_sum_load(w->sum, from->sum, &parts[i].sum); /* else the close sees that it lacks */
        parts[i].has_md5 = from->md5.len == sizeof(parts[i].md5);
        if (parts[i].has_md5) {
            memcpy(parts[i].md5, from->md5.ptr, sizeof(parts[i].md5));
        }
    }
    w->parts = parts;
    w->n_done_parts = m->n_parts;
}

static enum xf_code take_work(struct xf_work *w, const struct xf_msg_task *m, struct xf_err *err)
{
    w->task = m->task;
    w->attempt = m->attempt;
    w->kind = (enum xf_task_kind)m->kind;
    XF_TRY(xf_manifest_decode(m->manifest, &w->manifest, err));
    XF_TRY(xf_result_set_decode(m->done, w->manifest.n, &w->done, err));
    w->upload_id = xf_arena_dup(&w->arena, m->upload_id);
    w->part_size = m->part_size;
    w->n_parts = m->total_parts;
    w->first_part = m->first_part;
    w->last_part = m->last_part;
    w->sum = m->sum < XF_SUM_ALG_N && xf_sum_is_crc((enum xf_sum_alg)m->sum)
                 ? (enum xf_sum_alg)m->sum
                 : XF_SUM_NONE; /* one that only a newer xfer knows */
    w->intent_mono_ms = xf_clock_mono_ms(xf_clock_real()) - m->intent_age_ms;
    take_parts(w, m);
    return XF_OK;
}

static void set_room(struct xf_rtask *t)
{
    const struct xf_work *w = t->work;
    bool is_parts = t->kind == XF_TASK_PARTS;

    xf_result_set_init(&t->results, w->manifest.n);
    t->told = xf_xcalloc(w->manifest.n + 1U, 1);
    t->cap_parts = is_parts && w->last_part >= w->first_part ? w->last_part - w->first_part + 1 : 0;
    t->parts = xf_xcalloc(t->cap_parts + 1U, sizeof(*t->parts));
    t->part_told = xf_xcalloc(t->cap_parts + 1U, 1);
    t->n_left = is_parts ? t->cap_parts : w->manifest.n;
}

void xf_rtask_accept(struct xf_runner *r, const struct xf_msg_task *m)
{
    struct xf_rtask *t = xf_xcalloc(1, sizeof(*t));
    struct xf_err err = {0};

    XF_LIST_FOREACH (node, &r->tasks) { /* an older attempt of ours has ended without our knowing */
        struct xf_rtask *old = XF_CONTAINER_OF(node, struct xf_rtask, node);
        if (old->id == m->task) {
            xf_rtask_drop(old);
            break;
        }
    }
    t->r = r;
    t->id = m->task;
    t->attempt = m->attempt;
    t->kind = (enum xf_task_kind)m->kind;
    t->job = xf_rjob_get(r, m->job);
    t->job->n_tasks++;
    xf_list_push_back(&r->tasks, &t->node);
    r->n_tasks++;
    /* A work needs its job; until the spec is here it holds an empty one of its own. */
    t->work = xf_xcalloc(1, sizeof(*t->work));
    t->work->owner = t;
    if (take_work(t->work, m, &err) != XF_OK) {
        XF_ERROR("task.refused", xf_f_u64("task", t->id), xf_f_err(&err));
        give_back(t, XF_HOW_FAILED, &err);
        return;
    }
    set_room(t);
    XF_DEBUG("task.accepted",
             xf_f_u64("task", t->id),
             xf_f_u64("attempt", t->attempt),
             xf_f_u64("kind", (uint64_t)t->kind),
             xf_f_u64("objects", t->n_left));
}

/* ---- on a lane ---- */

static struct xf_lane *idlest_lane(const struct xf_runner *r)
{
    struct xf_lane *best = NULL;
    uint64_t best_load = UINT64_MAX;

    for (unsigned i = 0; i < r->n_lanes; i++) {
        uint64_t load = 0;
        XF_LIST_FOREACH (node, &r->tasks) {
            const struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
            load += t->lane == r->lanes[i] ? t->n_left + 1U : 0;
        }
        if (load < best_load) {
            best_load = load;
            best = r->lanes[i];
        }
    }
    return best;
}

static void start(struct xf_rtask *t)
{
    if (t->work->job == NULL) {
        t->work->job = xf_work_job_ref(t->job->job);
    }
    t->state = XF_RTASK_RUNNING;
    t->has_begun = true;
    t->lane = idlest_lane(t->r);
    xf_lane_start(t->lane, t->work);
}

void xf_rtask_start_all(struct xf_runner *r, struct xf_rjob *j)
{
    int64_t now = xf_clock_mono_ms(xf_clock_real());

    if (j->state != XF_RJOB_FIT || now >= r->fence_ms) {
        return;
    }
    XF_LIST_FOREACH (node, &r->tasks) {
        struct xf_rtask *t = XF_CONTAINER_OF(node, struct xf_rtask, node);
        if (t->job == j && (t->state == XF_RTASK_WAITING || t->state == XF_RTASK_PARKED)) {
            start(t);
        }
    }
}

void xf_rtask_stop(struct xf_rtask *t,
                   enum xf_engine_stop stop,
                   enum xf_how how,
                   const struct xf_err *err)
{
    switch (t->state) {
    case XF_RTASK_WAITING:
    case XF_RTASK_PARKED: give_back(t, how, err); break;
    case XF_RTASK_RUNNING:
        if (!t->is_stopping) {
            t->is_stopping = true;
            t->how = how;
            if (err != NULL) {
                t->err = *err;
            }
        }
        xf_lane_stop(t->lane, t->id, t->attempt, stop);
        break;
    case XF_RTASK_ENDED:
    case XF_RTASK_STATE_N: break;
    }
}

/* A write of ours may land after those of the next attempt: that is for the coordinator to know. */
static void tell_late(const struct xf_rtask *t)
{
    if (t->has_begun && (t->kind == XF_TASK_BATCH || t->kind == XF_TASK_RECHECK)) {
        xf_runner_add_late(t->r, t->id, t->attempt);
    }
}

void xf_rtask_drop(struct xf_rtask *t)
{
    if (t->state != XF_RTASK_RUNNING) {
        tell_late(t);
        xf_rtask_free(t);
        return;
    }
    XF_WARN("task.dropped", xf_f_u64("task", t->id), xf_f_u64("attempt", t->attempt));
    t->is_dropped = true;
    unlink_task(t);
    xf_lane_stop(t->lane, t->id, t->attempt, XF_STOP_HARD);
}

/* ---- what the lane says ---- */

static void fresh(struct xf_rtask *t, uint8_t *told)
{
    struct xf_runner *r = t->r;

    *told = XF_TOLD_FRESH;
    t->n_left -= t->n_left > 0 ? 1 : 0;
    if (t->is_dropped) {
        return;
    }
    t->n_fresh++;
    r->n_fresh++;
    if (r->n_fresh >= r->checkpoint_max) {
        xf_link_beat_soon(r->link);
    }
}

void xf_rtask_on_object(struct xf_rtask *t, const struct xf_lane_object *o)
{
    if (o->idx < t->results.n && xf_result_set_put(&t->results, o->idx, &o->result)) {
        fresh(t, &t->told[o->idx]);
    }
}

static void on_part(struct xf_rtask *t, const struct xf_lane_msg *m)
{
    if (t->n_parts >= t->cap_parts) {
        return; /* cannot be: the engine tells each part of the range once */
    }
    struct xf_work_part *part = &t->parts[t->n_parts];

    *part = m->part;
    part->etag = xf_arena_dup(&t->arena, m->part.etag);
    fresh(t, &t->part_told[t->n_parts]);
    t->n_parts++;
}

/* Off its lane with work left: what has ended is not done again when it goes on. */
static void park(struct xf_rtask *t)
{
    struct xf_work *w = t->work;

    for (uint32_t i = 0; i < t->results.n; i++) {
        if (t->results.at[i].outcome != XF_OUTCOME_PENDING) {
            (void)xf_result_set_put(&w->done, i, &t->results.at[i]); /* known is fine */
        }
    }
    if (t->n_parts > 0) {
        uint32_t n = w->n_done_parts + t->n_parts;
        struct xf_work_part *all = xf_arena_calloc(&w->arena, n, sizeof(*all));
        memcpy(all, w->parts, w->n_done_parts * sizeof(*all));
        for (uint32_t i = 0; i < t->n_parts; i++) {
            all[w->n_done_parts + i] = t->parts[i];
            all[w->n_done_parts + i].etag = xf_arena_dup(&w->arena, t->parts[i].etag);
        }
        w->parts = all;
        w->n_done_parts = n;
    }
    t->state = XF_RTASK_PARKED;
    XF_INFO("task.parked", xf_f_u64("task", t->id), xf_f_u64("attempt", t->attempt));
}

static void keep_end(struct xf_rtask *t, const struct xf_lane_msg *m)
{
    t->err = m->end.how == XF_WORK_STOPPED ? t->err : m->end.err;
    t->tries = m->end.tries;
    if (m->end.has_result && t->results.n > 0) {
        t->has_result = true;
        if (xf_result_set_put(&t->results, 0, &m->result)) {
            fresh(t, &t->told[0]);
        }
    }
}

static void on_ended(struct xf_rtask *t, const struct xf_lane_msg *m)
{
    t->lane = NULL;
    if (t->is_dropped) {
        t->state = XF_RTASK_ENDED;
        tell_late(t);
        xf_rtask_free(t);
        return;
    }
    keep_end(t, m);
    if (t->refused != XF_OK) {
        give_back_refused(t);
        return;
    }
    switch (m->end.how) {
    case XF_WORK_DONE: end_task(t, t->has_opened ? XF_ITEM_OPENED : XF_ITEM_DONE); break;
    case XF_WORK_FAILED: end_task(t, XF_ITEM_FAILED); break;
    case XF_WORK_RETRY: give_back(t, XF_HOW_FAILED, NULL); break;
    case XF_WORK_UNFIT:
        give_back(t, XF_HOW_UNFIT, NULL);
        xf_rjob_unfit(t->job, &m->end.err);
        break;
    case XF_WORK_STOPPED:
        if (t->is_stopping) {
            give_back(t, t->how, NULL);
        } else {
            park(t);
            xf_rtask_start_all(t->r, t->job); /* nothing before the lease is renewed */
        }
        break;
    }
}

void xf_rtask_on_msg(struct xf_rtask *t, struct xf_lane_msg *m)
{
    switch (m->kind) {
    case XF_LANE_PART: on_part(t, m); break;
    case XF_LANE_OPENED:
        t->has_opened = true;
        t->opened = m->opened;
        t->opened.upload_id = xf_arena_dup(&t->arena, m->opened.upload_id);
        t->opened.etag = xf_arena_dup(&t->arena, m->opened.etag);
        break;
    case XF_LANE_ENDED: on_ended(t, m); break;
    case XF_LANE_OBJECTS:
    case XF_LANE_NOTICE:
    case XF_LANE_PROBED:
    case XF_LANE_MSG_N: break;
    }
}

/* ---- reports ---- */

bool xf_rtask_is_fresh(const struct xf_rtask *t)
{
    if (t->refused != XF_OK && t->state != XF_RTASK_ENDED) {
        return false;
    }
    return t->n_fresh > 0 || (t->state == XF_RTASK_ENDED && !t->last_sent);
}

static void fill_result(struct xf_rtask *t, struct xf_msg_item *item, struct xf_arena *a)
{
    XF_AUTO_RESULT_SET delta = {0};
    XF_AUTO_BUF bytes = {0};
    bool any = false;

    xf_result_set_init(&delta, t->results.n);
    for (uint32_t i = 0; i < t->results.n; i++) {
        if (t->told[i] == XF_TOLD_FRESH) {
            (void)xf_result_set_put(&delta, i, &t->results.at[i]); /* empty before */
            t->told[i] = XF_TOLD_SENT;
            any = true;
        }
    }
    if (any) {
        xf_result_set_encode(&delta, &bytes);
        item->result = xf_arena_dup(a, xf_buf_view(&bytes));
    }
}

static void fill_parts(struct xf_rtask *t, struct xf_msg_item *item, struct xf_arena *a)
{
    struct xf_msg_part *parts = xf_arena_calloc(a, t->n_parts + 1U, sizeof(*parts));

    item->parts = parts;
    for (uint32_t i = 0; i < t->n_parts && item->n_parts < XF_TASK_PARTS_MAX; i++) {
        const struct xf_work_part *p = &t->parts[i];
        if (t->part_told[i] != XF_TOLD_FRESH) {
            continue;
        }
        t->part_told[i] = XF_TOLD_SENT;
        parts[item->n_parts++] = (struct xf_msg_part){
            .part_no = p->part_no,
            .etag = p->etag,
            .size = p->size,
            .md5 = p->has_md5 ? xf_str_n(p->md5, sizeof(p->md5)) : XF_STR_EMPTY,
            .through = p->through,
            .sum = xf_str_n((const char *)p->sum.raw, xf_sum_len(p->sum.alg)),
        };
    }
}

static struct xf_str cut(struct xf_str s, size_t max)
{
    return xf_str_sub(s, 0, max);
}

static void fill_last(struct xf_rtask *t, struct xf_msg_item *item)
{
    const struct xf_result *res = t->has_result ? &t->results.at[0] : NULL;

    item->kind = (uint32_t)t->last;
    item->attempts = t->tries;
    t->last_sent = true;
    switch (t->last) {
    case XF_ITEM_OPENED:
        item->upload_id = t->opened.upload_id;
        item->part_size = t->opened.part_size;
        item->sum = (uint32_t)t->opened.sum;
        item->size = t->opened.is_changed ? t->opened.size : 0;
        item->etag = t->opened.is_changed ? t->opened.etag : XF_STR_EMPTY;
        break;
    case XF_ITEM_GIVE_BACK:
        item->how = (uint32_t)t->how;
        item->code = (uint32_t)t->err.code;
        item->text = cut(xf_str_c(t->err.msg), XF_TEXT_MAX);
        break;
    case XF_ITEM_FAILED:
        item->code = (uint32_t)t->err.code;
        item->text = cut(xf_str_c(t->err.msg), XF_TEXT_MAX);
        if (res != NULL) {
            item->http_status = res->http_status;
            item->s3_code = res->s3_code;
            item->retryable = (res->flags & XF_RESULT_RETRYABLE) != 0;
        }
        break;
    case XF_ITEM_CHECKPOINT:
    case XF_ITEM_DONE:
    case XF_ITEM_N: break;
    }
}

size_t xf_rtask_fill(struct xf_rtask *t, struct xf_msg_item *item, struct xf_arena *a)
{
    *item = (struct xf_msg_item){
        .task = t->id, .attempt = t->attempt, .kind = (uint32_t)XF_ITEM_CHECKPOINT};
    if (t->work->manifest.n > 0) {
        fill_result(t, item, a);
        fill_parts(t, item, a);
    }
    t->r->n_fresh -= t->n_fresh;
    t->n_fresh = 0;
    if (t->state == XF_RTASK_ENDED) {
        fill_last(t, item);
    }
    return 256 + item->result.len + (size_t)item->n_parts * 96;
}

static void remark(struct xf_rtask *t, uint8_t *told, uint32_t n, enum xf_told to)
{
    for (uint32_t i = 0; told != NULL && i < n; i++) {
        if (told[i] == XF_TOLD_SENT) {
            told[i] = (uint8_t)to;
            if (to == XF_TOLD_FRESH) {
                t->n_fresh++;
                t->r->n_fresh++;
            }
        }
    }
}

void xf_rtask_lost(struct xf_rtask *t)
{
    remark(t, t->told, t->results.n, XF_TOLD_FRESH);
    remark(t, t->part_told, t->n_parts, XF_TOLD_FRESH);
    t->last_sent = false;
}

/* Sent again it would be refused again. What it told is left out, the task goes back and is done
 * anew; when even that is refused the lease is left to run out. */
static void refused(struct xf_rtask *t, enum xf_code code)
{
    XF_ERROR("report.refused",
             xf_f_u64("task", t->id),
             xf_f_u64("attempt", t->attempt),
             xf_f_code(code));
    if (t->refused != XF_OK) {
        xf_rtask_drop(t);
        return;
    }
    t->refused = code;
    if (t->state == XF_RTASK_RUNNING) {
        xf_rtask_stop(t, XF_STOP_HARD, XF_HOW_FAILED, NULL); /* on_ended() gives it back */
    } else {
        give_back_refused(t);
    }
}

/* Will the same report be refused again? */
static bool is_final(enum xf_code code)
{
    return xf_code_class(code) == XF_CLASS_FATAL && code != XF_E_CANCELLED;
}

void xf_rtask_acked(struct xf_rtask *t, enum xf_code code)
{
    if (code == XF_E_STALE) {
        xf_rtask_drop(t);
    } else if (code != XF_OK && is_final(code)) {
        refused(t, code);
    } else if (code != XF_OK) {
        xf_rtask_lost(t);
    } else {
        remark(t, t->told, t->results.n, XF_TOLD_ACKED);
        remark(t, t->part_told, t->n_parts, XF_TOLD_ACKED);
        if (t->state == XF_RTASK_ENDED && t->last_sent) {
            xf_rtask_free(t);
        }
    }
}
