/*
 * agent.h - the agent as a whole: state directory, bus, session, lanes, metrics.
 *
 * One thread makes, runs and frees it (the core thread); xf_agent_stop() may come from any. The
 * same object serves the daemon and `xferctl run`, which gives the inproc:// URL of its
 * coordinator.
 *
 * The state directory holds a random instance id and a lock. The lock proves to the coordinator
 * that an earlier process of this instance is dead, so its leases are ours at once.
 */
#ifndef XF_AGENT_AGENT_H
#define XF_AGENT_AGENT_H

#include "agent/agent_conf.h"
#include "common/base/err.h"
#include "common/base/mem.h"

struct xf_agent; /* opaque */
struct xf_loop;

struct xf_agent_opts {
    const struct xf_agent_conf *conf; /* borrowed */
    const char *version;
    /* On the core thread, when the agent works (its coordinator may still be away). */
    void (*on_ready)(void *arg);
    void *arg;
};

/**
 * Lock the state directory, start the lanes, begin to connect. An absent coordinator is no error.
 *
 * Errors: with place and remedy; XF_E_LOCKED when another process has the state directory.
 */
XF_MUST_CHECK enum xf_code
xf_agent_new(const struct xf_agent_opts *opts, struct xf_agent **out, struct xf_err *err);
/** Work until stopped. XF_OK after a stop; else why the coordinator refused this agent. */
XF_MUST_CHECK enum xf_code xf_agent_run(struct xf_agent *a, struct xf_err *err);
/** Any thread: drain and return from run within drain.grace and some seconds; again: at once. */
void xf_agent_stop(struct xf_agent *a);
void xf_agent_free(struct xf_agent *a);
XF_AUTO_DEFINE(xf_agent, xf_agent_free)

/** Where HTTP listens; NULL: nowhere. */
const char *xf_agent_http(const struct xf_agent *a);
const char *xf_agent_id(const struct xf_agent *a);
struct xf_loop *xf_agent_loop(struct xf_agent *a);

#endif
