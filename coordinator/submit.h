/*
 * submit.h - a job on its way in: parse, probe both sides, make it, answer.
 */
#ifndef XF_COORDINATOR_SUBMIT_H
#define XF_COORDINATOR_SUBMIT_H

#include "coordinator/core.h"

/** Answers the request now or after the probes. */
void xf_submit(struct xf_coordinator *c, const struct xf_msg_submit *m, struct xf_hub_req *r);
/** At the stop: what is under way is refused. */
void xf_submit_fini(struct xf_coordinator *c);

#endif
