/*
 * roster.h - the table of agents that were heard of: find, judge, take back, tell, show.
 */
#ifndef XF_COORDINATOR_ROSTER_H
#define XF_COORDINATOR_ROSTER_H

#include "common/base/json.h"
#include "coordinator/core.h"

/** Found by its id, or made. */
struct xf_cagent *xf_roster_get(struct xf_coordinator *c, struct xf_str id);
struct xf_cagent *xf_roster_find(struct xf_coordinator *c, struct xf_str id);
/** By the number that holds leases; NULL when another process took the id since. */
struct xf_cagent *xf_roster_by_number(struct xf_coordinator *c, uint64_t number);
void xf_roster_fini(struct xf_coordinator *c);

/** What the agent said of a job; NULL: nothing yet. */
struct xf_cfit *xf_roster_fit(const struct xf_cagent *a, int64_t job);
/** May it be given work of the job? */
bool xf_roster_is_fit(struct xf_coordinator *c, const struct xf_cagent *a, int64_t job);

/* Who can work for a job. */
struct xf_roster_count {
    uint32_t up; /* connected */
    uint32_t draining;
    uint32_t fit; /* up, not draining, and not known as unfit */
};
/** why: gets what the first agent that is up and unfit says; empty when none does. */
struct xf_roster_count
xf_roster_count(const struct xf_coordinator *c, int64_t job, struct xf_buf *why);
/** Forget what agents said about a job that ended. */
void xf_roster_forget_job(struct xf_coordinator *c, int64_t job);

/** Tell every session what holds for a job now. */
void xf_roster_order_job(struct xf_coordinator *c, const struct xf_cjob *j);
void xf_roster_drain(struct xf_coordinator *c, struct xf_cagent *a, bool on);
/** End a lease without an end of its task; the task is ready again after the commit. */
void xf_roster_give_back(struct xf_coordinator *c, struct xf_lease *lease, enum xf_how how);

enum xf_roster_state {
    XF_ROSTER_UP,
    XF_ROSTER_DRAINING,
    XF_ROSTER_UNFIT,
    XF_ROSTER_LOST,
    XF_ROSTER_STATE_N
};
/** What people and metrics are told of it; the last that holds counts. */
enum xf_roster_state xf_roster_state(struct xf_coordinator *c, const struct xf_cagent *a);
const char *xf_roster_state_name(enum xf_roster_state state); /* "up" */
struct xf_json *xf_roster_json(struct xf_coordinator *c);

#endif
