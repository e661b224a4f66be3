/*
 * prune.h - the operator's request `prune`: ended jobs are forgotten.
 *
 * The answer comes when they are marked in the store: they are gone for everybody then, also after
 * a restart. Their rows go afterwards, a step at a time between the other writes.
 */
#ifndef XF_COORDINATOR_PRUNE_H
#define XF_COORDINATOR_PRUNE_H

#include "coordinator/core.h"

struct xf_hub_req;

/** Answers with {"jobs": [id, ...], "dry_run": bool}. XF_E_INVAL: the named job has not ended. */
void xf_prune(struct xf_coordinator *c, const struct xf_msg_prune *m, struct xf_hub_req *r);

/** Goes on with what is marked; each tick, as a step may have failed on a full disk. */
void xf_prune_tick(struct xf_coordinator *c);

#endif
