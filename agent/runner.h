/*
 * runner.h - the agent's core: takes leases, gives them to lanes, reports what became of them.
 *
 * A lease is taken when there is room for it, waits until its job's spec is here and this host has
 * proved that it can reach both sides, then goes to the lane with the least to do. Outcomes collect
 * per task and go out with each beat (after 2 s, or at once when 500 wait or a task ended); they
 * are kept until the coordinator has acknowledged them, and sent again when a beat was lost.
 *
 * Crash: nothing is kept here. What was not acknowledged is done again by another lease.
 * Fencing: no write starts after (time the last answered beat was sent) + ttl - margin; the lanes
 * then cancel what is in flight. When the session is renewed, leases that are still ours go on.
 * Threads: one owner, the core loop's.
 */
#ifndef XF_AGENT_RUNNER_H
#define XF_AGENT_RUNNER_H

#include "agent/lane.h"
#include "agent/link.h"

struct xf_runner;

struct xf_runner_opts {
    struct xf_loop *loop;
    struct xf_bus_caller bus;
    struct xf_str agent_id;
    struct xf_str instance; /* XF_INSTANCE_LEN bytes */
    struct xf_str version;
    struct xf_str host;
    struct xf_str token;
    unsigned lanes;                  /* 1 or more */
    size_t pool_bytes;               /* of all lanes; at least XF_POOL_BUF_MAX each */
    unsigned max_objects;            /* begun at a time, all lanes */
    unsigned max_in_flight;          /* requests a side and job, all lanes */
    unsigned max_tasks;              /* leases held; 0: 64 */
    uint64_t seed;                   /* 0: from the system */
    const struct xf_http_opts *http; /* limits of requests; NULL: defaults */
    enum xf_code (*creds)(void *arg,
                          const struct xf_job_side *side,
                          struct xf_creds_source **out,
                          struct xf_err *err);
    void *creds_arg;
    struct xf_metrics *metrics;
    /** The coordinator refused this agent for good. */
    void (*on_refused)(void *arg, const struct xf_err *err);
    /** xf_runner_drain() is over. */
    void (*on_drained)(void *arg);
    void *arg;
};

XF_MUST_CHECK enum xf_code
xf_runner_new(const struct xf_runner_opts *o, struct xf_runner **out, struct xf_err *err);
/** Cancels everything; what was not reported is lost to this lease. */
void xf_runner_free(struct xf_runner *r);
XF_AUTO_DEFINE(xf_runner, xf_runner_free)

/**
 * Take no more work, finish what has begun for at most grace_ms, report, say bye; then on_drained,
 * in any case within grace_ms plus a few seconds. Once.
 */
void xf_runner_drain(struct xf_runner *r, int64_t grace_ms);

struct xf_runner_stats {
    size_t tasks;
    size_t jobs;
    bool is_up; /* a session is there */
    bool is_draining;
    struct xf_engine_stats sum; /* of the lanes */
};
void xf_runner_stats(const struct xf_runner *r, struct xf_runner_stats *out);

#endif
