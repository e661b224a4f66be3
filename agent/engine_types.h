/*
 * engine_types.h - inside the engine: jobs, runs, the engine; engine_int.h works on them. A run is
 * a work being done, by ops (engine_op.h).
 */
#ifndef XF_AGENT_ENGINE_TYPES_H
#define XF_AGENT_ENGINE_TYPES_H

#include "agent/engine.h"
#include "agent/engine_op.h"

#include <stdatomic.h>

struct xf_scan;

/* What tells that a side's endpoint is out of reach; see engine_down.c. */
struct xf_down {
    int64_t since_ms;   /* monotonic; 0: it is not */
    unsigned n_mute;    /* requests without an answer since the last one that had one */
    unsigned n_failing; /* answers 500 in a row */
    unsigned n_sign;    /* refused signatures since the last other answer */
    bool is_key_bad;    /* nobody's signature was taken; a probe's may be again */
    bool is_doubted;    /* a probe is answered where objects are not */
};

/* A job on this engine. */
struct xf_ejob {
    struct xf_list node;
    struct xf_work_job *job;
    struct xf_s3 *s3[XF_SIDE_N];
    struct xf_limit *limit[XF_SIDE_N];
    struct xf_rate *rate;     /* of bytes */
    struct xf_rate *requests; /* of thousandths of a request */
    struct xf_bulk *bulk;
    struct xf_down down[XF_SIDE_N];
    struct xf_list parked; /* ops that wait while the job is held */
    unsigned n_runs;
    bool is_held;
};

struct xf_run {
    struct xf_list node;
    struct xf_engine *e;
    struct xf_ejob *ej;
    struct xf_work *w; /* NULL: a probe */
    struct xf_list ops;
    unsigned n_ops;
    uint32_t n_open;  /* objects or parts without an outcome; of an upload's step 1 */
    uint32_t next;    /* of what is to begin */
    bool has_more;    /* something is to begin */
    bool is_stopping; /* with `stop` */
    enum xf_engine_stop stop;
    bool is_failed;       /* `end` is set: stop the others and end */
    struct xf_scan *scan; /* NULL: none */
    struct xf_work_end end;
    struct xf_result result; /* uploads: the object's; strings in the work's arena */
    uint32_t tries;          /* uploads: most tries of one op */
};

struct xf_engine {
    struct xf_loop *loop;
    struct xf_http *http;
    const struct xf_clock *clock;
    struct xf_pool *pool;
    struct xf_rng rng;
    struct xf_engine_events ev;
    enum xf_code (*creds)(void *arg,
                          const struct xf_job_side *side,
                          struct xf_creds_source **out,
                          struct xf_err *err);
    void *creds_arg;
    struct xf_metrics *metrics;
    size_t pool_bytes;
    unsigned max_objects;
    unsigned max_in_flight;
    struct xf_list jobs;
    struct xf_list runs;
    unsigned n_ops;
    struct xf_timer pump;
    _Atomic int64_t fence_ms;
    _Atomic uint64_t n_objects;
    _Atomic uint64_t n_bytes;
    _Atomic uint64_t n_through;
    _Atomic uint64_t n_throttled;
    _Atomic uint64_t n_retries;
    _Atomic uint32_t n_in_flight;
};

#endif
