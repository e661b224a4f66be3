/*
 * roster.c - the table of agents: find, judge, take back, tell, show.
 */
#include "coordinator/roster.h"

#include "common/base/log.h"
#include "coordinator/jobtab.h"
#include "coordinator/status.h"

/* ---- table --------------------------------------------------------------------------------------
 */

struct xf_cagent *xf_roster_find(struct xf_coordinator *c, struct xf_str id)
{
    return xf_map_get(&c->agents_by_id, id);
}

struct xf_cagent *xf_roster_get(struct xf_coordinator *c, struct xf_str id)
{
    struct xf_cagent *a = xf_roster_find(c, id);

    if (a != NULL) {
        return a;
    }
    a = xf_xcalloc(1, sizeof(*a));
    a->number = ++c->last_agent_number;
    a->id = xf_str_dup(id);
    a->version = xf_xstrdup("");
    a->host = xf_xstrdup("");
    a->seen_ms = xf_loop_mono_ms(c->loop);
    xf_list_init(&a->fits);
    xf_list_push_back(&c->agents, &a->link);
    (void)xf_map_put(&c->agents_by_id, xf_str_c(a->id), a); /* was not there */
    return a;
}

struct xf_cagent *xf_roster_by_number(struct xf_coordinator *c, uint64_t number)
{
    XF_LIST_FOREACH (node, &c->agents) {
        struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        if (a->number == number) {
            return a;
        }
    }
    return NULL;
}

static void fit_free(struct xf_cfit *f)
{
    xf_list_remove(&f->link);
    xf_xfree(f->text);
    xf_xfree(f);
}

static void drop_fits(struct xf_cagent *a)
{
    struct xf_list *node = NULL;

    while ((node = xf_list_pop_front(&a->fits)) != NULL) {
        fit_free(XF_CONTAINER_OF(node, struct xf_cfit, link));
    }
}

void xf_roster_fini(struct xf_coordinator *c)
{
    XF_LIST_FOREACH (node, &c->agents) {
        struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        drop_fits(a);
        (void)xf_map_take(&c->agents_by_id, xf_str_c(a->id)); /* gives a */
        xf_list_remove(&a->link);
        xf_xfree(a->id);
        xf_xfree(a->version);
        xf_xfree(a->host);
        xf_xfree(a->unwell);
        xf_xfree(a);
    }
}

/* ---- fitness ------------------------------------------------------------------------------------
 */

struct xf_cfit *xf_roster_fit(const struct xf_cagent *a, int64_t job)
{
    XF_LIST_FOREACH (node, &a->fits) {
        struct xf_cfit *f = XF_CONTAINER_OF(node, struct xf_cfit, link);
        if (f->job == job) {
            return f;
        }
    }
    return NULL;
}

bool xf_roster_is_fit(struct xf_coordinator *c, const struct xf_cagent *a, int64_t job)
{
    const struct xf_cfit *f = xf_roster_fit(a, job);

    return f == NULL || f->ok || f->until_ms <= xf_loop_mono_ms(c->loop);
}

/* Why it takes no work of the job; NULL: it may. */
static const char *why_unfit(const struct xf_cagent *a, int64_t job)
{
    const struct xf_cfit *f = xf_roster_fit(a, job);

    if (a->unwell != NULL) {
        return a->unwell;
    }
    return f != NULL && !f->ok ? f->text : NULL;
}

struct xf_roster_count
xf_roster_count(const struct xf_coordinator *c, int64_t job, struct xf_buf *why)
{
    struct xf_roster_count n = {0};

    xf_buf_reset(why);
    XF_LIST_FOREACH (node, &c->agents) {
        const struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        const char *text = why_unfit(a, job);
        if (a->session == NULL) {
            continue;
        }
        n.up++;
        n.draining += a->is_draining ? 1 : 0;
        n.fit += text == NULL && !a->is_draining ? 1 : 0;
        if (text != NULL && why->len == 0) {
            xf_buf_putf(why, "agent '%s': ", a->id);
            xf_buf_put_escaped(why, xf_str_c(text));
        }
    }
    return n;
}

void xf_roster_forget_job(struct xf_coordinator *c, int64_t job)
{
    XF_LIST_FOREACH (node, &c->agents) {
        struct xf_cfit *f = xf_roster_fit(XF_CONTAINER_OF(node, struct xf_cagent, link), job);
        if (f != NULL) {
            fit_free(f);
        }
    }
}

/* ---- taking back --------------------------------------------------------------------------------
 */

static void on_given_back(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    int64_t task = op->in.give_back.fence.task;
    struct xf_lease *lease = xf_leases_get(&c->leases, task);

    if (op->rc == XF_OK || op->rc == XF_E_STALE || op->rc == XF_E_NOT_FOUND) {
        (void)xf_leases_end(&c->leases, task, op->in.give_back.fence.attempt); /* may be gone */
        if (op->rc == XF_OK) {
            xf_jobtab_add_ready(c, op->out.give_back.job, 1);
        }
        return;
    }
    XF_WARN("task.not_given_back", xf_f_i64("task", task), xf_f_code(op->rc), xf_f_err(&op->err));
    if (lease != NULL && lease->attempt == op->in.give_back.fence.attempt) {
        lease->is_ending = false; /* expires again, and is tried again */
    }
}

void xf_roster_give_back(struct xf_coordinator *c, struct xf_lease *lease, enum xf_how how)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_GIVE_BACK, on_given_back, c);

    op->in.give_back = (struct xf_in_give_back){
        .fence = {.task = (int64_t)lease->task,
                  .attempt = lease->attempt,
                  .instance = (const unsigned char *)xf_store_op_dup(
                                  op, xf_str_n(lease->instance, sizeof(lease->instance)))
                                  .ptr},
        .how = how,
        .is_weak_death = xf_leases_is_weak_death(&c->leases, lease, xf_loop_mono_ms(c->loop)),
    };
    lease->is_ending = xf_core_submit(c, op);
}

/* ---- orders -------------------------------------------------------------------------------------
 */

void xf_roster_order_job(struct xf_coordinator *c, const struct xf_cjob *j)
{
    const struct xf_msg_order o = xf_jobtab_order(c, j);

    XF_LIST_FOREACH (node, &c->agents) {
        struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        if (a->session != NULL) {
            xf_hub_order(c->hub, a->session, &o);
        }
    }
}

void xf_roster_drain(struct xf_coordinator *c, struct xf_cagent *a, bool on)
{
    const struct xf_msg_order o = {.kind = on ? XF_ORDER_DRAIN : XF_ORDER_UNDRAIN};

    a->is_draining = on;
    if (a->session != NULL) {
        xf_hub_order(c->hub, a->session, &o);
    }
    xf_core_kick(c);
}

/* ---- what people see ----------------------------------------------------------------------------
 */

static bool is_unfit_for_any(struct xf_coordinator *c, const struct xf_cagent *a)
{
    XF_LIST_FOREACH (node, &a->fits) {
        const struct xf_cfit *f = XF_CONTAINER_OF(node, struct xf_cfit, link);
        if (!f->ok && xf_jobtab_get(c, f->job) != NULL) {
            return true;
        }
    }
    return false;
}

enum xf_roster_state xf_roster_state(struct xf_coordinator *c, const struct xf_cagent *a)
{
    if (a->session == NULL) {
        return XF_ROSTER_LOST;
    }
    if (a->is_draining) {
        return XF_ROSTER_DRAINING;
    }
    return a->unwell != NULL || is_unfit_for_any(c, a) ? XF_ROSTER_UNFIT : XF_ROSTER_UP;
}

const char *xf_roster_state_name(enum xf_roster_state state)
{
    static const char *const names[XF_ROSTER_STATE_N] = {"up", "draining", "unfit", "lost"};

    return names[state];
}

static void put_agent(struct xf_coordinator *c, struct xf_json *out, const struct xf_cagent *a)
{
    XF_AUTO_BUF reason = {0};
    uint64_t objects = 0;
    int64_t now = xf_loop_mono_ms(c->loop);
    int64_t seen = a->session != NULL ? a->session->last_seen_ms : a->seen_ms;
    struct xf_status_agent s = {
        .id = xf_str_c(a->id),
        .state = xf_roster_state_name(xf_roster_state(c, a)),
        .version = xf_str_c(a->version),
        .host = xf_str_c(a->host),
        .in_flight = a->in_flight,
        .leases = xf_leases_count(&c->leases, a->number, &objects),
        .objects_s = a->objects_s,
        .bytes_s = a->bytes_s,
        .last_seen_s = (double)(now - seen) / 1000.0,
    };

    xf_buf_init(&reason, 0);
    XF_LIST_FOREACH (node, &a->fits) {
        const struct xf_cfit *f = XF_CONTAINER_OF(node, struct xf_cfit, link);
        const struct xf_cjob *j = xf_jobtab_get(c, f->job);
        if (!f->ok && j != NULL) {
            xf_buf_putf(&reason, "%s%s: ", reason.len > 0 ? "; " : "", j->public_id);
            xf_buf_put_escaped(&reason, xf_str_c(f->text));
        }
    }
    if (a->unwell != NULL) {
        xf_buf_put_escaped(&reason, xf_str_c(a->unwell));
    }
    s.reason = xf_buf_view(&reason);
    xf_json_append(out, xf_status_agent(&s));
}

struct xf_json *xf_roster_json(struct xf_coordinator *c)
{
    struct xf_json *out = xf_json_array();

    XF_LIST_FOREACH (node, &c->agents) {
        put_agent(c, out, XF_CONTAINER_OF(node, struct xf_cagent, link));
    }
    return out;
}
