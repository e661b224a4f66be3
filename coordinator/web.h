/*
 * web.h - the coordinator's HTTP routes: page, metrics, API, health. Read-only.
 */
#ifndef XF_COORDINATOR_WEB_H
#define XF_COORDINATOR_WEB_H

#include "coordinator/core.h"

/** Listen on conf->http. */
XF_MUST_CHECK enum xf_code xf_web_open(struct xf_coordinator *c, struct xf_err *err);
/** Before the store's port closes. */
void xf_web_close(struct xf_coordinator *c);

#endif
