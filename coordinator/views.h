/*
 * views.h - answers about jobs and agents, read from the store and completed from memory.
 *
 * Shared by xferctl's requests and the HTTP routes, so that both say the same.
 */
#ifndef XF_COORDINATOR_VIEWS_H
#define XF_COORDINATOR_VIEWS_H

#include "common/base/json.h"
#include "coordinator/core.h"

/** j is the receiver's; NULL with an error. Called once, perhaps before the request returns. */
typedef void(xf_view_fn)(void *arg, struct xf_json *j, const struct xf_err *err);

/** {"jobs":[...],"agents":[...]}: the live jobs, the newest first, then those that ended last;
 * "jobs_complete" is false when there are more. */
void xf_views_all(struct xf_coordinator *c, xf_view_fn *done, void *arg);
/** {"jobs":[...],"next":N}: a page of all jobs, newest first; after: 0, or the last page's `next`,
 * which is null on the last page. */
void xf_views_list(struct xf_coordinator *c, int64_t after, xf_view_fn *done, void *arg);
/** {"agents":[...]} */
struct xf_json *xf_views_agents(struct xf_coordinator *c);
/** A job's status object. XF_E_NOT_FOUND. */
void xf_views_job(struct xf_coordinator *c, struct xf_str id, xf_view_fn *done, void *arg);
/** The same with errors, open uploads, notices and the history of leases. */
void xf_views_show(struct xf_coordinator *c, struct xf_str id, xf_view_fn *done, void *arg);

#endif
