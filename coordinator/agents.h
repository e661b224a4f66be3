/*
 * agents.h - the agents: sessions, fitness, leases given and taken back, orders.
 */
#ifndef XF_COORDINATOR_AGENTS_H
#define XF_COORDINATOR_AGENTS_H

#include "coordinator/core.h"

extern const struct xf_hub_events xf_agents_hub_events; /* arg: the coordinator */

void xf_agents_fini(struct xf_coordinator *c);
void xf_agents_tick(struct xf_coordinator *c);
/** Work may be ready: serve lease requests that wait. */
void xf_agents_kick(struct xf_coordinator *c);
/** Tell every session what holds for a job now. */
void xf_agents_order_job(struct xf_coordinator *c, const struct xf_cjob *j);
/** Found by its id, or made. */
struct xf_cagent *xf_agents_get(struct xf_coordinator *c, struct xf_str id);
struct xf_cagent *xf_agents_find(struct xf_coordinator *c, struct xf_str id);
struct xf_cagent *xf_agents_by_number(struct xf_coordinator *c, uint64_t number);
/** Is an agent up, not draining, and not known as unfit for the job? */
bool xf_agents_has_fit(struct xf_coordinator *c, int64_t job);
size_t xf_agents_count_up(const struct xf_coordinator *c);
bool xf_agents_is_fit(struct xf_coordinator *c, const struct xf_cagent *a, int64_t job);
void xf_agents_drain(struct xf_coordinator *c, struct xf_cagent *a, bool on);
/** Forget what agents said about a job that ended. */
void xf_agents_forget_job(struct xf_coordinator *c, int64_t job);
struct xf_json *xf_agents_json(struct xf_coordinator *c);

/** End a lease without an end of its task; the task is ready again after the commit. */
void xf_agents_give_back(struct xf_coordinator *c, struct xf_lease *lease, enum xf_how how);

#endif
