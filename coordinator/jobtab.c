/*
 * jobtab.c - the table of live jobs: find, count, tell.
 */
#include "coordinator/jobtab.h"

#include "common/base/log.h"
#include "common/job/spec.h"
#include "coordinator/tuning.h"

enum {
    HOLD_MS = 3000, /* endpoint down: agents try again after */
    RATE_WINDOW_MS = 10000,
    NOTICED_MAX = 4096
};

/* ---- table --------------------------------------------------------------------------------------
 */

struct xf_cjob *xf_jobtab_get(struct xf_coordinator *c, int64_t id)
{
    uint64_t key = (uint64_t)id;

    return xf_map_get(&c->jobs_by_id, xf_map_key_u64(&key));
}

struct xf_cjob *xf_jobtab_find(struct xf_coordinator *c, struct xf_str public_id)
{
    XF_LIST_FOREACH (node, &c->jobs) {
        struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        if (xf_str_eq_c(public_id, j->public_id)) {
            return j;
        }
    }
    return NULL;
}

void xf_jobtab_keep_row(struct xf_cjob *j, const struct xf_job_row *row)
{
    j->row = *row;
    j->row.public_id = xf_str_c(j->public_id);
    j->row.name = xf_str_c(j->name);
    j->row.spec = XF_STR_EMPTY;
    j->row.phase = XF_STR_EMPTY;
    j->row.reason = XF_STR_EMPTY;
}

struct xf_cjob *xf_jobtab_add(struct xf_coordinator *c, const struct xf_job_row *row)
{
    struct xf_cjob *j = xf_xcalloc(1, sizeof(*j));

    j->id = (uint64_t)row->id;
    j->public_id = xf_str_dup(row->public_id);
    j->name = xf_str_dup(row->name);
    xf_buf_init(&j->toml, 0);
    xf_buf_init(&j->wait_reason, XF_ERR_MSG_MAX);
    xf_buf_init(&j->unfit_why, 2 * XF_ERR_MSG_MAX);
    xf_buf_init(&j->noticed, NOTICED_MAX);
    xf_list_init(&j->shards);
    xf_jobtab_keep_row(j, row);
    xf_list_push_back(&c->jobs, &j->link);
    (void)xf_map_put(&c->jobs_by_id, xf_map_key_u64(&j->id), j); /* was not there */
    return j;
}

void xf_jobtab_add_shard(struct xf_cjob *j, const struct xf_shard_row *row)
{
    struct xf_cshard *s = xf_xcalloc(1, sizeof(*s));

    s->row = *row;
    s->lo = xf_str_dup(row->lo);
    s->hi = xf_str_dup(row->hi);
    s->cursor = xf_str_dup(row->cursor);
    s->row.lo.ptr = s->lo;
    s->row.hi.ptr = s->hi;
    s->row.cursor.ptr = s->cursor;
    xf_list_push_back(&j->shards, &s->link);
}

void xf_jobtab_drop_shards(struct xf_cjob *j)
{
    XF_LIST_FOREACH (node, &j->shards) {
        struct xf_cshard *s = XF_CONTAINER_OF(node, struct xf_cshard, link);
        xf_list_remove(&s->link);
        xf_xfree(s->lo);
        xf_xfree(s->hi);
        xf_xfree(s->cursor);
        xf_xfree(s);
    }
}

void xf_jobtab_drop(struct xf_coordinator *c, struct xf_cjob *j)
{
    (void)xf_map_take(&c->jobs_by_id, xf_map_key_u64(&j->id)); /* gives j */
    xf_list_remove(&j->link);
    xf_jobtab_drop_shards(j);
    xf_job_spec_free(j->spec);
    xf_buf_fini(&j->toml);
    xf_buf_fini(&j->wait_reason);
    xf_buf_fini(&j->unfit_why);
    xf_tuning_fini(&j->tuning);
    xf_buf_fini(&j->noticed);
    xf_xfree(j->public_id);
    xf_xfree(j->name);
    xf_xfree(j);
}

void xf_jobtab_fini(struct xf_coordinator *c)
{
    XF_LIST_FOREACH (node, &c->jobs) {
        xf_jobtab_drop(c, XF_CONTAINER_OF(node, struct xf_cjob, link));
    }
}

/* ---- rates, notes, orders -----------------------------------------------------------------------
 */

void xf_jobtab_sample(struct xf_coordinator *c, struct xf_cjob *j)
{
    const struct xf_job_counters *n = &j->row.n;
    struct xf_cjob_sample *s = &j->samples[j->n_samples++ % XF_CORE_RATE_SAMPLES];

    *s = (struct xf_cjob_sample){.at_ms = xf_loop_mono_ms(c->loop),
                                 .objects =
                                     n->copied + n->skipped + n->failed + n->vanished + n->archived,
                                 .bytes = n->bytes_copied};
}

struct xf_status_live xf_jobtab_live(struct xf_coordinator *c, const struct xf_cjob *j)
{
    struct xf_status_live live = {.reason = xf_buf_view(&j->wait_reason),
                                  .detail = xf_buf_view(&j->unfit_why),
                                  .listing_failed = j->listings_failed > 0};
    int64_t now = xf_loop_mono_ms(c->loop);
    size_t n = j->n_samples < XF_CORE_RATE_SAMPLES ? j->n_samples : XF_CORE_RATE_SAMPLES;

    if (n < 2) {
        return live;
    }
    const struct xf_cjob_sample *last = &j->samples[(j->n_samples - 1) % XF_CORE_RATE_SAMPLES];
    const struct xf_cjob_sample *first = last;
    for (size_t i = 2; i <= n; i++) {
        const struct xf_cjob_sample *s = &j->samples[(j->n_samples - i) % XF_CORE_RATE_SAMPLES];
        if (now - s->at_ms > RATE_WINDOW_MS) {
            break;
        }
        first = s;
    }
    double seconds = (double)(last->at_ms - first->at_ms) / 1000.0;
    if (seconds > 0) {
        uint64_t objects = last->objects > first->objects ? last->objects - first->objects : 0;
        live.objects_s = (double)objects / seconds;
        live.bytes_s = (double)(last->bytes - first->bytes) / seconds;
    }
    return live;
}

/* One notice a job and word is kept. */
void xf_jobtab_note(struct xf_coordinator *c, int64_t job, const char *code, struct xf_str text)
{
    struct xf_cjob *j = xf_jobtab_get(c, job);
    struct xf_str word = xf_str_n(code, strlen(code) + 1);

    if (j != NULL) {
        if (j->noticed.len > 0 &&
            memmem(j->noticed.ptr, j->noticed.len, word.ptr, word.len) != NULL) {
            return;
        }
        xf_buf_put(&j->noticed, word);
    }
    struct xf_store_op *op = xf_store_op_new(XF_OP_NOTE, xf_core_on_done, c);
    op->in.note = (struct xf_in_note){
        .job = job, .code = xf_store_op_dup(op, xf_str_c(code)), .text = xf_store_op_dup(op, text)};
    if (!xf_core_submit(c, op)) {
        XF_WARN("notice.dropped", xf_f_i64("job", job), xf_f_c("notice", code));
    }
}

struct xf_msg_order xf_jobtab_order(struct xf_coordinator *c, const struct xf_cjob *j)
{
    struct xf_msg_order o = {.kind = XF_ORDER_RUN, .job = xf_str_c(j->public_id)};

    if (j->row.stop != 0) {
        o.kind = XF_ORDER_CANCEL;
    } else if (j->row.state == XF_JOB_PAUSED) {
        o.kind = XF_ORDER_PAUSE;
    } else if (j->spec != NULL) {
        xf_tuning_share(c, j, &o);
    }
    return o;
}

uint32_t xf_jobtab_kinds(struct xf_coordinator *c, const struct xf_cjob *j)
{
    if (j->spec == NULL || xf_job_state_is_end(j->row.state)) {
        return 0;
    }
    if (j->row.stop != 0) {
        return XF_TASK_BIT(XF_TASK_ABORT);
    }
    if (j->row.state != XF_JOB_RUNNING || j->hold_until_ms > xf_loop_mono_ms(c->loop)) {
        return 0;
    }
    return XF_TASK_ALL;
}

void xf_jobtab_add_ready(struct xf_coordinator *c, int64_t job, uint32_t n)
{
    struct xf_cjob *j = xf_jobtab_get(c, job);

    if (j != NULL && n > 0) {
        j->ready += n;
        xf_core_kick(c);
    }
}

void xf_jobtab_failed_by(struct xf_coordinator *c, int64_t job, uint64_t agent_number)
{
    struct xf_cjob *j = xf_jobtab_get(c, job);

    if (j != NULL) {
        j->failed_by = agent_number;
    }
}

void xf_jobtab_set_reason(struct xf_cjob *j, const char *word, struct xf_str text)
{
    xf_buf_reset(&j->wait_reason);
    xf_buf_put_c(&j->wait_reason, word);
    if (text.len > 0) {
        xf_buf_put_c(&j->wait_reason, ": ");
        xf_buf_put_escaped(&j->wait_reason, text);
    }
}

void xf_jobtab_hold(struct xf_coordinator *c, int64_t job, enum xf_code code, struct xf_str text)
{
    struct xf_cjob *j = xf_jobtab_get(c, job);

    if (j != NULL) {
        XF_WARN("job.held", xf_f_c("job", j->public_id), xf_f_code(code), xf_f_str("text", text));
        j->hold_until_ms = xf_loop_mono_ms(c->loop) + HOLD_MS;
        xf_jobtab_set_reason(j, "endpoint_unreachable", text);
    }
}

void xf_jobtab_went_on(struct xf_coordinator *c, int64_t job)
{
    struct xf_cjob *j = xf_jobtab_get(c, job);

    if (j != NULL && j->hold_until_ms != 0) {
        j->hold_until_ms = 0;
        xf_buf_reset(&j->wait_reason);
    }
}
