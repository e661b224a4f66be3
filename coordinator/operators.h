/*
 * operators.h - requests of xferctl.
 */
#ifndef XF_COORDINATOR_OPERATORS_H
#define XF_COORDINATOR_OPERATORS_H

#include "coordinator/core.h"

/** Of struct xf_hub_events. */
void xf_operators_on_request(void *arg, enum xf_kind kind, const void *m, struct xf_hub_req *r);

#endif
