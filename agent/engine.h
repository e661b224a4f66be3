/*
 * engine.h - does leased works on one loop: many objects in flight, each a small state table.
 *
 * An engine lives on one lane. It takes works (work.h), asks both sides of their job through
 * common/s3, and tells what became of every object, part and upload. Each request waits for a
 * permit of its side's limit, each relayed byte for room in the pool. Inside a work an object has
 * XF_ENGINE_TRIES tries; being throttled and an endpoint that is down spend none.
 *
 * Crash: nothing is kept here. What `events` told is the caller's to report; everything else is
 * done again by the next lease. Threads: one owner, the loop's thread.
 */
#ifndef XF_AGENT_ENGINE_H
#define XF_AGENT_ENGINE_H

#include "agent/work.h"
#include "common/base/rng.h"
#include "common/rt/loop.h"

struct xf_creds_source;
struct xf_engine;
struct xf_http;
struct xf_job_side;
struct xf_metrics;

enum { XF_ENGINE_TRIES = 4, XF_ENGINE_REPLANS = 3 };

/* Called from the loop, never inside xf_engine_start(). Strings are valid during the call. */
struct xf_engine_events {
    /* One object of a batch or recheck has its outcome (never pending). */
    void (*object)(void *arg, struct xf_work *w, uint32_t idx, const struct xf_result *r);
    void (*opened)(void *arg, struct xf_work *w, const struct xf_work_opened *o);
    void (*part)(void *arg, struct xf_work *w, const struct xf_work_part *part);
    /* The last word on a work; it is the caller's again. */
    void (*ended)(void *arg, struct xf_work *w, const struct xf_work_end *end);
    /* Once a job and word. */
    void (*notice)(void *arg, struct xf_work_job *job, const char *code, const char *text);
    /* A probe's answer. */
    void (*probed)(void *arg, struct xf_work_job *job, const struct xf_err *err);
    void *arg;
};

struct xf_engine_opts {
    struct xf_loop *loop;
    struct xf_http *http;         /* borrowed */
    const struct xf_clock *clock; /* NULL: real; asked before each write, beside the loop's now */
    size_t pool_bytes;            /* at least XF_POOL_BUF_MAX */
    unsigned max_objects;         /* objects and parts begun at a time; 0: 1,024 */
    unsigned max_in_flight;       /* requests a side and job; 0: 512 */
    uint64_t seed;                /* of jitter */
    struct xf_engine_events events;
    /* A side's credentials; NULL: as the spec names them. Owned by the receiver of *out. */
    enum xf_code (*creds)(void *arg,
                          const struct xf_job_side *side,
                          struct xf_creds_source **out,
                          struct xf_err *err);
    void *creds_arg;
    struct xf_metrics *metrics; /* NULL: none; rows as in metrics.h */
};

XF_MUST_CHECK enum xf_code
xf_engine_new(const struct xf_engine_opts *o, struct xf_engine **out, struct xf_err *err);
/** Every work must have ended: stop them all and turn the loop until xf_engine_is_idle(). */
void xf_engine_free(struct xf_engine *e);
XF_AUTO_DEFINE(xf_engine, xf_engine_free)

/** Begin a work; `ended` gives it back. */
void xf_engine_start(struct xf_engine *e, struct xf_work *w);
/** Ask both sides of a job whether this host can work for it; `probed` answers. */
void xf_engine_probe(struct xf_engine *e, struct xf_work_job *job);

enum xf_engine_stop {
    XF_STOP_SOFT, /* begin nothing new; what has begun is finished */
    XF_STOP_FIRM, /* no new request; those in flight may end */
    XF_STOP_HARD  /* cancel what is in flight */
};
/** Stop one work (by task and attempt); it ends as XF_WORK_STOPPED unless it ends by itself. */
void xf_engine_stop(struct xf_engine *e, uint64_t task, uint32_t attempt, enum xf_engine_stop how);
void xf_engine_stop_all(struct xf_engine *e, enum xf_engine_stop how);

/** While held, a job's works start no request; those in flight end by themselves. */
void xf_engine_hold(struct xf_engine *e, struct xf_work_job *job, bool on);
/** Requests at a time a side of a job, as an order says; 0: the engine's own maximum. */
void xf_engine_set_in_flight(struct xf_engine *e, struct xf_work_job *job, unsigned max);

/** No write starts at or after this monotonic time; INT64_MAX: no bound. Any thread. */
void xf_engine_set_fence(struct xf_engine *e, int64_t mono_ms);

/** At the start of every turn of the loop: past the fence everything is cancelled. */
void xf_engine_on_turn(struct xf_engine *e);

/** Nothing is being worked on. */
bool xf_engine_is_idle(const struct xf_engine *e);
/** Forget a job whose works have all ended. */
void xf_engine_drop_job(struct xf_engine *e, struct xf_work_job *job);

/* Numbers for the beat; any thread. */
struct xf_engine_stats {
    uint64_t objects; /* ended */
    uint64_t bytes;   /* of copied objects and parts */
    uint64_t through; /* bytes relayed */
    uint64_t throttled;
    uint64_t retries;
    uint32_t in_flight; /* requests */
};
void xf_engine_stats(const struct xf_engine *e, struct xf_engine_stats *out);

#endif
