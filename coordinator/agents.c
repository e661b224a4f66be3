/*
 * agents.c - sessions of agents, what they are given, and what is taken back.
 *
 * A lease request is served from ready work, or parked until there is some. What is leased is
 * committed before it is sent; when the session went away meanwhile it is given back at once.
 *
 * Invariants:
 * 1. A parked request belongs to the agent's present session.
 * 2. A lease leaves the table only when its end, or its give-back, is committed.
 */
#include "coordinator/agents.h"

#include "common/base/log.h"
#include "coordinator/items.h"
#include "coordinator/jobtab.h"
#include "coordinator/metrics.h"
#include "coordinator/roster.h"
#include "coordinator/sched.h"

/* The store's fence and the sessions name a process by the same bytes. */
_Static_assert(sizeof(((struct xf_lease *)0)->instance) == XF_INSTANCE_LEN, "instance");

enum {
    PARK_MS = 3000,     /* a lease request waits for work at most so long */
    IDLE_WAIT_MS = 200, /* then the agent asks again after this */
    UNWELL_WAIT_MS = 1000,
    CLOCK_SLACK_MS = 2000,  /* between our clock and the service's */
    PREFER_OTHER_MS = 3000, /* a retry pass is kept for others so long */
    UNFIT_MS = 30000        /* a refused agent is offered the job again after */
};

/* ---- fitness ----------------------------------------------------------------------------------
 */

void xf_agents_on_fit(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_fit *m,
                      struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;
    struct xf_cagent *a = s->user;
    const struct xf_cjob *j = xf_jobtab_find(c, m->job);
    const struct xf_msg_empty done = {0};

    if (j != NULL) {
        struct xf_cfit *f = xf_roster_fit(a, (int64_t)j->id);
        if (f == NULL) {
            f = xf_xcalloc(1, sizeof(*f));
            f->job = (int64_t)j->id;
            xf_list_push_back(&a->fits, &f->link);
        }
        f->ok = m->ok;
        f->until_ms = xf_loop_mono_ms(c->loop) + UNFIT_MS;
        xf_xfree(f->text);
        f->text = xf_str_dup(m->text);
        XF_INFO("agent.fitness",
                xf_f_c("agent", a->id),
                xf_f_c("job", j->public_id),
                xf_f_bool("fit", m->ok),
                xf_f_str("text", m->text));
    }
    xf_hub_reply(r, &done);
    xf_agents_kick(c);
}

/* ---- expiry ------------------------------------------------------------------------------------
 */

static void expire_leases(struct xf_coordinator *c)
{
    struct xf_lease *lease = NULL;

    while ((lease = xf_leases_expired(&c->leases, xf_loop_mono_ms(c->loop))) != NULL) {
        const struct xf_cagent *a = xf_roster_by_number(c, lease->holder);
        XF_WARN("lease.expired",
                xf_f_c("agent", a != NULL ? a->id : ""),
                xf_f_u64("task", lease->task),
                xf_f_u64("attempt", lease->attempt));
        xf_cmetrics_add(c->metrics, XF_CM_LEASE_EXPIRED, NULL, 1);
        if (a != NULL && a->session != NULL) {
            const struct xf_msg_order o = {
                .kind = XF_ORDER_DROP_TASK, .task = lease->task, .attempt = lease->attempt};
            xf_hub_order(c->hub, a->session, &o);
        }
        xf_roster_give_back(c, lease, XF_HOW_EXPIRED);
        if (!lease->is_ending) {
            return; /* the store is busy: at the next tick */
        }
    }
}

/* ---- sessions -----------------------------------------------------------------------------------
 */

struct held_search {
    struct xf_coordinator *c;
    const struct xf_msg_hello *m;
    enum xf_how how;
};

static bool is_held(const struct xf_msg_hello *m, const struct xf_lease *lease)
{
    for (uint32_t i = 0; i < m->n_held; i++) {
        if (m->held[i].task == lease->task && m->held[i].attempt == lease->attempt) {
            return true;
        }
    }
    return false;
}

/* The same instance is back: what it does not hold any more, nobody works on. */
static void take_if_not_held(void *arg, struct xf_lease *lease)
{
    struct held_search *h = arg;

    if (!lease->is_ending && !is_held(h->m, lease)) {
        xf_roster_give_back(h->c, lease, h->how);
    }
}

static void fill_kept(struct xf_coordinator *c,
                      const struct xf_cagent *a,
                      const struct xf_msg_hello *m,
                      struct xf_msg_hello_reply *out,
                      struct xf_arena *arena)
{
    out->kept = xf_arena_calloc(arena, m->n_held + 1, sizeof(*out->kept));
    for (uint32_t i = 0; i < m->n_held; i++) {
        if (xf_leases_renew(&c->leases,
                            (int64_t)m->held[i].task,
                            m->held[i].attempt,
                            a->number,
                            xf_loop_mono_ms(c->loop))) {
            out->kept[out->n_kept++] = m->held[i];
        }
    }
}

static void fill_orders(struct xf_coordinator *c,
                        const struct xf_cagent *a,
                        struct xf_msg_order **orders,
                        uint32_t *n,
                        struct xf_arena *arena)
{
    size_t n_jobs = 0;

    XF_LIST_FOREACH (node, &c->jobs) {
        n_jobs++;
    }
    *orders = xf_arena_calloc(arena, n_jobs + 1, sizeof(**orders));
    XF_LIST_FOREACH (node, &c->jobs) {
        if (*n < XF_ORDERS_MAX - 1) {
            (*orders)[(*n)++] = xf_jobtab_order(c, XF_CONTAINER_OF(node, struct xf_cjob, link));
        }
    }
    (*orders)[(*n)++] =
        (struct xf_msg_order){.kind = a->is_draining ? XF_ORDER_DRAIN : XF_ORDER_UNDRAIN};
}

static void set_agent(struct xf_coordinator *c, struct xf_cagent *a, struct xf_hub_session *s)
{
    c->n_agents_up += a->session == NULL;
    memcpy(a->instance, s->instance, sizeof(a->instance));
    xf_xfree(a->version);
    xf_xfree(a->host);
    a->version = xf_str_dup(s->version);
    a->host = xf_str_dup(s->host);
    a->session = s;
    s->user = a;
}

/* What an operator wished before a restart holds. */
static void on_seen(struct xf_store_op *op)
{
    struct xf_coordinator *c = op->arg;
    struct xf_cagent *a = xf_roster_find(c, op->in.agent_seen.id);

    if (op->rc == XF_OK && op->out.agent_seen.is_draining && a != NULL && !a->is_draining) {
        xf_roster_drain(c, a, true);
    }
    xf_core_on_done(op);
}

static void tell_store(struct xf_coordinator *c, const struct xf_cagent *a)
{
    struct xf_store_op *op = xf_store_op_new(XF_OP_AGENT_SEEN, on_seen, c);
    struct xf_str instance = xf_store_op_dup(op, xf_str_n(a->instance, sizeof(a->instance)));

    op->in.agent_seen = (struct xf_in_agent_seen){
        .id = xf_store_op_dup(op, xf_str_c(a->id)),
        .instance = (const unsigned char *)instance.ptr,
        .version = xf_store_op_dup(op, xf_str_c(a->version)),
        .host = xf_store_op_dup(op, xf_str_c(a->host)),
        .reason = xf_store_op_dup(op, xf_str_c(a->unwell != NULL ? a->unwell : "")),
    };
    if (!xf_core_submit(c, op)) {
        XF_DEBUG("agent.not_kept", xf_f_c("agent", a->id)); /* only for people; next hello */
    }
}

void xf_agents_on_hello(void *arg,
                        struct xf_hub_session *s,
                        const struct xf_msg_hello *m,
                        struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;
    struct xf_cagent *a = xf_roster_get(c, s->agent_id);
    int64_t third_ms = c->conf->lease_ttl_ms / 3; /* two beats may be lost */
    int64_t beat_ms = c->conf->beat_ms < third_ms ? c->conf->beat_ms : third_ms;
    struct xf_msg_hello_reply reply = {
        .lease_ttl_ms = (uint32_t)c->conf->lease_ttl_ms,
        .beat_ms = (uint32_t)beat_ms,
        .margin_ms = (uint32_t)c->conf->lease_margin_ms,
        .checkpoint_ms = (uint32_t)c->conf->checkpoint_ms,
        .checkpoint_max = (uint32_t)c->conf->checkpoint_outcomes,
    };

    if (a->session != NULL && a->session != s) {
        xf_core_refuse(r,
                       XF_E_LOCKED,
                       "agent '%s' is connected from another state directory (host '%s'); give "
                       "this one another --id, or stop the other",
                       a->id,
                       a->host);
        return;
    }
    if (memcmp(a->instance, s->instance, sizeof(a->instance)) != 0) {
        a->number = ++c->last_agent_number; /* the leases of the other one run out */
    } else {
        struct held_search h = {
            .c = c, .m = m, .how = m->n_held > 0 ? XF_HOW_DRAINED : XF_HOW_LOST};
        xf_leases_each(&c->leases, a->number, take_if_not_held, &h);
    }
    set_agent(c, a, s);
    a->seen_ms = xf_loop_mono_ms(c->loop);
    tell_store(c, a);
    fill_kept(c, a, m, &reply, xf_hub_req_arena(r));
    fill_orders(c, a, &reply.orders, &reply.n_orders, xf_hub_req_arena(r));
    XF_INFO("agent.connected",
            xf_f_c("agent", a->id),
            xf_f_str("version", s->version),
            xf_f_str("host", s->host),
            xf_f_u64("held", m->n_held),
            xf_f_u64("kept", reply.n_kept));
    xf_hub_reply(r, &reply);
}

void xf_agents_on_bye(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_bye *m,
                      struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;
    const struct xf_cagent *a = s->user;
    const struct xf_msg_hello nothing = {.n_held = 0};
    struct held_search h = {.c = c, .m = &nothing, .how = XF_HOW_DRAINED};
    const struct xf_msg_empty done = {0};

    if (a != NULL) {
        XF_INFO("agent.left", xf_f_c("agent", a->id), xf_f_str("reason", m->reason));
        xf_leases_each(&c->leases, a->number, take_if_not_held, &h);
    }
    xf_hub_reply(r, &done);
}

static void unpark(struct xf_cagent *a, uint32_t wait_ms)
{
    const struct xf_msg_lease_reply nothing = {.wait_ms = wait_ms};
    struct xf_hub_req *r = a->parked;

    a->parked = NULL;
    if (r != NULL) {
        xf_hub_reply(r, &nothing);
    }
}

void xf_agents_on_gone(void *arg, struct xf_hub_session *s, enum xf_hub_gone why)
{
    struct xf_coordinator *c = arg;
    struct xf_cagent *a = s->user;

    if (a == NULL || a->session != s) {
        return;
    }
    unpark(a, IDLE_WAIT_MS);
    a->session = NULL; /* its leases run out by themselves */
    c->n_agents_up--;
    a->in_flight = 0;
    a->objects_s = 0;
    a->bytes_s = 0;
    if (why == XF_HUB_TIMED_OUT) {
        XF_WARN("agent.lost", xf_f_c("agent", a->id));
    }
}

/* No object that this job wrote is older. Last-Modified counts in seconds, and by another clock. */
static int64_t began_ms(const struct xf_cjob *j)
{
    return j->row.created_ms / 1000 * 1000 - CLOCK_SLACK_MS;
}

void xf_agents_on_job(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_job *m,
                      struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;
    const struct xf_cjob *j = xf_jobtab_find(c, m->job);

    (void)s; /* every agent may read every job */
    if (j == NULL || j->spec == NULL) {
        xf_core_refuse(r, XF_E_NOT_FOUND, "no such job, or it has ended");
        return;
    }
    struct xf_msg_order order = xf_jobtab_order(c, j);
    const struct xf_msg_job_reply reply = {.job = xf_str_c(j->public_id),
                                           .spec = xf_buf_view(&j->toml),
                                           .orders = &order,
                                           .n_orders = 1,
                                           .started_ms = began_ms(j)};
    xf_hub_reply(r, &reply);
}

/* ---- leasing ------------------------------------------------------------------------------------
 */

struct leasing {
    struct xf_coordinator *c;
    struct xf_cagent *agent;
    uint64_t number; /* of the agent when it asked */
    struct xf_hub_req *req;
    struct xf_msg_lease ask;
    int64_t until_ms;
};

static void on_leased(struct xf_store_op *op)
{
    struct leasing *l = op->arg;
    struct xf_coordinator *c = l->c;
    struct xf_cagent *a = l->agent;
    struct xf_out_lease *out = &op->out.lease;
    bool is_there =
        a->number == l->number && a->session != NULL && xf_hub_req_session(l->req) == a->session;

    if (op->rc != XF_OK) {
        xf_hub_fail(l->req, op->rc, xf_str_c(op->err.msg));
        xf_xfree(l);
        return;
    }
    xf_items_take_leased(c, l->number, op);
    for (size_t i = 0; i < op->in.lease.n_asks && out->n_tasks == 0; i++) {
        struct xf_cjob *j = xf_jobtab_get(c, op->in.lease.asks[i].job);
        if (j != NULL) {
            j->ready = 0; /* until the next event or tick says otherwise */
        }
    }
    if (out->n_tasks == 0 && is_there && a->parked == NULL &&
        xf_loop_mono_ms(c->loop) < l->until_ms) {
        a->parked = l->req;
        a->ask = l->ask;
        a->parked_until_ms = l->until_ms;
    } else {
        xf_items_reply_leased(c, l->req, op);
        for (size_t i = 0; i < out->n_tasks && !is_there; i++) {
            struct xf_lease *lease = xf_leases_get(&c->leases, out->tasks[i].task);
            if (lease != NULL && lease->attempt == out->tasks[i].attempt) {
                xf_roster_give_back(c, lease, XF_HOW_DRAINED); /* it was never sent */
            }
        }
    }
    xf_xfree(l);
}

/* What is ready is shared by the agents that are up, so that the first to ask does not take all. */
static uint32_t share(const struct xf_coordinator *c, const struct xf_cjob *j)
{
    uint32_t n_up = c->n_agents_up > 0 ? (uint32_t)c->n_agents_up : 1;

    return (j->ready + n_up - 1) / n_up;
}

/* A fresh retry pass is left to other agents for a while, when there are any. */
static bool
prefers_other(struct xf_coordinator *c, const struct xf_cagent *a, const struct xf_cjob *j)
{
    if (j->retry_began_ms == 0 || j->failed_by != a->number ||
        xf_loop_mono_ms(c->loop) - j->retry_began_ms > PREFER_OTHER_MS) {
        return false;
    }
    XF_LIST_FOREACH (node, &c->agents) {
        const struct xf_cagent *other = XF_CONTAINER_OF(node, struct xf_cagent, link);
        if (other != a && other->session != NULL && !other->is_draining && other->unwell == NULL &&
            xf_roster_is_fit(c, other, (int64_t)j->id)) {
            return true;
        }
    }
    return false;
}

static size_t fill_sched(struct xf_coordinator *c,
                         const struct xf_cagent *a,
                         struct xf_sched_job *jobs,
                         size_t cap)
{
    size_t n = 0;

    XF_LIST_FOREACH (node, &c->jobs) {
        const struct xf_cjob *j = XF_CONTAINER_OF(node, struct xf_cjob, link);
        uint32_t kinds = xf_jobtab_kinds(c, j);
        if (kinds == 0 || j->ready == 0 || n == cap) {
            continue;
        }
        jobs[n++] = (struct xf_sched_job){.id = (int64_t)j->id,
                                          .priority = j->row.priority,
                                          .kinds = kinds,
                                          .tasks_ready = share(c, j),
                                          .tasks_leased = j->row.tasks_leased,
                                          .is_fit = xf_roster_is_fit(c, a, (int64_t)j->id),
                                          .prefers_other = prefers_other(c, a, j)};
    }
    return n;
}

/* Ask the store for what the scheduler gives this agent. False: there is nothing now. */
static bool lease_some(struct xf_coordinator *c,
                       struct xf_cagent *a,
                       const struct xf_msg_lease *m,
                       struct xf_hub_req *r,
                       int64_t until_ms)
{
    enum { JOBS_MAX = 256 };
    struct xf_sched_job jobs[JOBS_MAX];
    struct xf_sched_grant grants[JOBS_MAX];
    const struct xf_sched_ask ask = {.free_tasks = m->free_tasks,
                                     .free_objects = m->free_objects,
                                     .free_bytes = m->free_bytes,
                                     .kinds = m->kinds};
    size_t n = xf_sched_assign(jobs, fill_sched(c, a, jobs, JOBS_MAX), &ask, grants);

    if (n == 0) {
        return false;
    }
    struct leasing *l = xf_xcalloc(1, sizeof(*l));
    *l = (struct leasing){
        .c = c, .agent = a, .number = a->number, .req = r, .ask = *m, .until_ms = until_ms};
    struct xf_store_op *op = xf_store_op_new(XF_OP_LEASE, on_leased, l);
    struct xf_lease_ask *asks = xf_store_op_calloc(op, n, sizeof(*asks));
    for (size_t i = 0; i < n; i++) {
        struct xf_cjob *j = xf_jobtab_get(c, grants[i].job);
        asks[i] = (struct xf_lease_ask){.job = grants[i].job,
                                        .kinds = grants[i].kinds,
                                        .max_tasks = grants[i].max_tasks,
                                        .max_objects = (m->free_objects + n - 1) / n,
                                        .max_bytes = m->free_bytes / n + 1};
        j->ready -= grants[i].max_tasks < j->ready ? grants[i].max_tasks : j->ready;
    }
    struct xf_str instance = xf_store_op_dup(op, xf_str_n(a->instance, sizeof(a->instance)));
    op->in.lease = (struct xf_in_lease){.agent = xf_store_op_dup(op, xf_str_c(a->id)),
                                        .instance = (const unsigned char *)instance.ptr,
                                        .asks = asks,
                                        .n_asks = n};
    if (!xf_core_submit(c, op)) {
        xf_xfree(l);
        return false;
    }
    return true;
}

void xf_agents_on_lease(void *arg,
                        struct xf_hub_session *s,
                        const struct xf_msg_lease *m,
                        struct xf_hub_req *r)
{
    struct xf_coordinator *c = arg;
    struct xf_cagent *a = s->user;
    const struct xf_msg_lease_reply nothing = {.wait_ms = UNWELL_WAIT_MS};
    int64_t until_ms = xf_loop_mono_ms(c->loop) + PARK_MS;

    if (a->is_draining || a->unwell != NULL || m->free_tasks == 0 || c->state == XF_CORE_STOPPING) {
        xf_hub_reply(r, &nothing);
        return;
    }
    if (!lease_some(c, a, m, r, until_ms)) {
        unpark(a, IDLE_WAIT_MS); /* an older one of this session cannot be there; be safe */
        a->parked = r;
        a->ask = *m;
        a->parked_until_ms = until_ms;
    }
}

void xf_agents_kick(struct xf_coordinator *c)
{
    XF_LIST_FOREACH (node, &c->agents) {
        struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        struct xf_hub_req *r = a->parked;
        if (r == NULL) {
            continue;
        }
        if (a->is_draining || a->unwell != NULL) {
            unpark(a, UNWELL_WAIT_MS);
            continue;
        }
        a->parked = NULL;
        if (!lease_some(c, a, &a->ask, r, a->parked_until_ms)) {
            a->parked = r;
        }
    }
}

void xf_agents_tick(struct xf_coordinator *c)
{
    int64_t now = xf_loop_mono_ms(c->loop);

    expire_leases(c);
    xf_agents_kick(c);
    XF_LIST_FOREACH (node, &c->agents) {
        struct xf_cagent *a = XF_CONTAINER_OF(node, struct xf_cagent, link);
        if (a->parked != NULL && now >= a->parked_until_ms) {
            unpark(a, IDLE_WAIT_MS);
        }
    }
}
