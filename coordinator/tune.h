/*
 * tune.h - the operator's request `tune`: set or show a limit of a job or of the fleet.
 */
#ifndef XF_COORDINATOR_TUNE_H
#define XF_COORDINATOR_TUNE_H

#include "coordinator/core.h"

struct xf_hub_req;

/**
 * Answers with {"id": ..., "tuned": {...}, "now": {...}}; id is null for the fleet. Told and obeyed
 * after the commit; agents hear of it at once.
 */
void xf_tune(struct xf_coordinator *c, const struct xf_msg_tune *m, struct xf_hub_req *r);

#endif
