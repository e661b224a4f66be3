/*
 * agents.h - the sessions of agents: hello, leasing, fitness, expiry.
 */
#ifndef XF_COORDINATOR_AGENTS_H
#define XF_COORDINATOR_AGENTS_H

#include "coordinator/core.h"

void xf_agents_tick(struct xf_coordinator *c);
/** Work may be ready: serve lease requests that wait. */
void xf_agents_kick(struct xf_coordinator *c);

/* Of struct xf_hub_events; arg: the coordinator. */
void xf_agents_on_hello(void *arg,
                        struct xf_hub_session *s,
                        const struct xf_msg_hello *m,
                        struct xf_hub_req *r);
void xf_agents_on_lease(void *arg,
                        struct xf_hub_session *s,
                        const struct xf_msg_lease *m,
                        struct xf_hub_req *r);
void xf_agents_on_job(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_job *m,
                      struct xf_hub_req *r);
void xf_agents_on_fit(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_fit *m,
                      struct xf_hub_req *r);
void xf_agents_on_bye(void *arg,
                      struct xf_hub_session *s,
                      const struct xf_msg_bye *m,
                      struct xf_hub_req *r);
void xf_agents_on_gone(void *arg, struct xf_hub_session *s, enum xf_hub_gone why);

#endif
