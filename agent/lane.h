/*
 * lane.h - one thread with its own loop, connections and engine; nothing is shared between lanes.
 *
 * The core thread gives works and orders; the lane answers with messages on the core's queue. Both
 * directions are bounded by the works the core has given out. Threads: every function here is the
 * core's; messages are made by the lane and freed by the core.
 */
#ifndef XF_AGENT_LANE_H
#define XF_AGENT_LANE_H

#include "agent/engine.h"
#include "common/rt/queue.h"

struct xf_lane;

enum xf_lane_msg_kind {
    XF_LANE_OBJECTS, /* outcomes of objects, of any of the lane's works */
    XF_LANE_OPENED,
    XF_LANE_PART,
    XF_LANE_ENDED, /* the work is the core's again */
    XF_LANE_NOTICE,
    XF_LANE_PROBED,
    XF_LANE_MSG_N
};

struct xf_lane_object {
    struct xf_work *work;
    uint32_t idx;
    struct xf_result result; /* strings in the message's arena */
};

struct xf_lane_msg {
    enum xf_lane_msg_kind kind;
    struct xf_lane *lane;
    struct xf_work *work;    /* all but objects, notice and probed */
    struct xf_work_job *job; /* notice, probed: a reference */
    struct xf_lane_object *objects;
    size_t n_objects;
    struct xf_result result; /* ended; strings in the arena */
    struct xf_work_part part;
    struct xf_work_opened opened;
    struct xf_work_end end; /* end.result points to `result` */
    struct xf_err err;      /* probed */
    struct xf_str code;     /* notice */
    struct xf_str text;
    struct xf_arena arena;
};
void xf_lane_msg_free(struct xf_lane_msg *m);
XF_AUTO_DEFINE(xf_lane_msg, xf_lane_msg_free)

struct xf_lane_opts {
    unsigned no;          /* from 0; for the thread's name */
    struct xf_queue *out; /* of struct xf_lane_msg; borrowed, lives longer */
    size_t pool_bytes;
    unsigned max_objects;   /* 0: the engine's */
    unsigned max_in_flight; /* 0: the engine's */
    unsigned max_conns;     /* 0: the back end's */
    uint64_t seed;
    const struct xf_http_opts *http; /* limits of requests; NULL: defaults */
    enum xf_code (*creds)(void *arg,
                          const struct xf_job_side *side,
                          struct xf_creds_source **out,
                          struct xf_err *err); /* NULL: as the spec says */
    void *creds_arg;
    struct xf_metrics *metrics;
};

/** Start the thread. */
XF_MUST_CHECK enum xf_code
xf_lane_new(const struct xf_lane_opts *o, struct xf_lane **out, struct xf_err *err);
/**
 * Cancel everything, end the thread, free. Works still inside come out as ENDED messages first: the
 * caller pops its queue afterwards.
 */
void xf_lane_free(struct xf_lane *lane);
XF_AUTO_DEFINE(xf_lane, xf_lane_free)

/** The work is the lane's until its ENDED message. */
void xf_lane_start(struct xf_lane *lane, struct xf_work *w);
void xf_lane_probe(struct xf_lane *lane, struct xf_work_job *job);
void xf_lane_stop(struct xf_lane *lane, uint64_t task, uint32_t attempt, enum xf_engine_stop how);
void xf_lane_stop_all(struct xf_lane *lane, enum xf_engine_stop how);
void xf_lane_hold(struct xf_lane *lane, struct xf_work_job *job, bool on);
void xf_lane_set_in_flight(struct xf_lane *lane, struct xf_work_job *job, unsigned max);
void xf_lane_drop_job(struct xf_lane *lane, struct xf_work_job *job);
/** See xf_engine_set_fence(); takes effect at once. */
void xf_lane_set_fence(struct xf_lane *lane, int64_t mono_ms);
void xf_lane_stats(const struct xf_lane *lane, struct xf_engine_stats *out);

#endif
