/*
 * core.h - the inside of the coordinator: what the modules of the core thread share.
 *
 * Only coordinator/ includes it. Everything here is the core thread's.
 */
#ifndef XF_COORDINATOR_CORE_H
#define XF_COORDINATOR_CORE_H

#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/metric.h"
#include "common/base/rng.h"
#include "common/job/schedule.h"
#include "common/net/bus.h"
#include "common/net/httpd.h"
#include "common/rt/loop.h"
#include "coordinator/coord_conf.h"
#include "coordinator/hub.h"
#include "coordinator/lease.h"
#include "coordinator/lister.h"
#include "coordinator/store.h"

struct xf_job_spec;

enum {
    XF_CORE_TICK_MS = 250,    /* live jobs are looked at, parked requests answered */
    XF_CORE_RATE_SAMPLES = 40 /* of the rate's window: 10 s */
};

struct xf_cjob_sample {
    int64_t at_ms;
    uint64_t objects;
    uint64_t bytes;
};

/* An open shard that waits for its job's spec. */
struct xf_cshard {
    struct xf_list link;
    struct xf_shard_row row;
    char *lo; /* the row's strings */
    char *hi;
    char *cursor;
};

enum xf_tune { XF_TUNE_BANDWIDTH, XF_TUNE_REQUEST_RATE, XF_TUNE_IN_FLIGHT, XF_TUNE_N };

/* What `tune` set (tuning.h). */
struct xf_tuning {
    char *text[XF_TUNE_N]; /* NULL: nothing */
    struct xf_schedule limit[XF_TUNE_N];
};

/* A job that has not ended. */
struct xf_cjob {
    uint64_t id; /* key of the map */
    struct xf_list link;
    char *public_id;
    char *name;
    struct xf_job_spec *spec; /* NULL: not loaded yet */
    struct xf_buf toml;
    struct xf_tuning tuning;
    struct xf_job_row row; /* as last read; its strings are ours or empty */
    struct xf_list shards; /* struct xf_cshard */
    bool has_shards;       /* those it had when it was found */
    uint32_t listings_failed;
    bool is_loading;  /* its spec is being read */
    bool is_unusable; /* it could not be read */
    bool is_reading;
    bool is_acting; /* a step of its life is on the way to the store */
    bool is_retry_exhausted;
    int64_t retry_at_ms; /* 0: no retry pass is waited for */
    uint64_t progress;   /* a sum that moves with the job */
    int64_t progress_ms; /* when it last did */
    int64_t asked_ms;    /* when the endpoints were last asked whether they are there */
    bool is_asking;
    int64_t hold_until_ms; /* endpoint down at an agent: no lease before */
    int64_t no_fit_since_ms;
    bool is_listing_waiting;
    struct xf_buf wait_reason; /* "endpoint_unreachable", ...; empty: none */
    struct xf_buf unfit_why;   /* why nobody works for it; empty: somebody does, or it wants none */
    struct xf_buf noticed;     /* codes of notices kept, each with a NUL */
    uint64_t failed_by;        /* number of the agent that last reported a failed object */
    int64_t retry_began_ms;    /* of the latest retry pass; 0: none */
    uint32_t ready;            /* estimate of what can be leased now */
    struct xf_cjob_sample samples[XF_CORE_RATE_SAMPLES];
    size_t n_samples; /* ever taken */
};

struct xf_cfit {
    struct xf_list link;
    int64_t job;
    bool ok;
    int64_t until_ms; /* a refusal is asked again after */
    char *text;
};

/* An agent that was heard of since the start. */
struct xf_cagent {
    uint64_t number; /* holder of leases; never 0 */
    struct xf_list link;
    char *id;
    char *version;
    char *host;
    unsigned char instance[XF_INSTANCE_LEN];
    struct xf_hub_session *session; /* NULL: lost */
    bool is_draining;
    char *unwell; /* why it takes no work; NULL: it is well */
    struct xf_list fits;
    struct xf_hub_req *parked; /* a lease request that waits for work */
    struct xf_msg_lease ask;   /* of parked */
    int64_t parked_until_ms;
    uint64_t in_flight;
    double objects_s;
    double bytes_s;
    uint64_t throttled; /* not told to the store yet */
    uint64_t retries;
    int64_t seen_ms; /* monotonic */
};

/* The last tasks that ended, so that a repeated report finds what it is about. */
struct xf_cended {
    uint64_t task;
    uint32_t attempt;
    uint32_t kind;
    struct xf_list link;
};

/* What a probe of the lister belongs to; first member of the owner's struct. */
struct xf_cprobe {
    struct xf_list link; /* the coordinator's probes */
    void (*done)(struct xf_cprobe *p, const struct xf_probe_result *res);
};

enum xf_core_state { XF_CORE_OPENING, XF_CORE_READY, XF_CORE_STOPPING };

struct xf_coordinator {
    const struct xf_coord_conf *conf;
    const struct xf_clock *clock;
    const char *version;
    void (*on_ready)(void *arg);
    void *arg;
    struct xf_loop *loop;
    struct xf_store *store;
    struct xf_store_port *port;
    struct xf_lister *lister;
    struct xf_bus_server *bus;
    struct xf_hub *hub;
    struct xf_httpd *httpd;
    struct xf_metrics *metrics;
    struct xf_leases leases;
    struct xf_list jobs; /* in the order in which they are looked at */
    struct xf_map jobs_by_id;
    struct xf_list agents;
    struct xf_map agents_by_id;
    uint64_t last_agent_number;
    struct xf_list ended; /* oldest first */
    struct xf_map ended_by_task;
    size_t n_ended;
    struct xf_timer tick;
    struct xf_timer kick; /* agents that wait for work are served when it fires */
    size_t n_agents_up;
    struct xf_tuning tuning; /* the fleet's */
    bool prune_wanted;       /* jobs are marked to be forgotten, or may be */
    bool is_pruning;         /* a step of it is on the way to the store */
    struct xf_rng rng;
    enum xf_core_state state;
    size_t n_loading; /* jobs whose spec is being read */
    size_t n_reading; /* jobs whose row is */
    bool is_sync_due; /* the store had no room to be asked for new jobs */
    bool is_recovered;
    struct xf_err failed;   /* why it stops by itself; XF_OK: it was asked to */
    struct xf_list submits; /* struct submit of submit.c */
    struct xf_list watches; /* struct watch of jobs.c: probes of jobs that stand still */
    struct xf_str *agent_tokens;
    size_t n_agent_tokens;
    struct xf_str *operator_tokens;
    size_t n_operator_tokens;
    struct xf_buf token_text[2];
};

/** Fill a text and give it to a request as an error. */
void xf_core_refuse(struct xf_hub_req *r, enum xf_code code, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/**
 * Submit an operation whose caller has nothing to wait with: when the store's queue is full it is
 * freed and false is given.
 */
bool xf_core_submit(struct xf_coordinator *c, struct xf_store_op *op);
/** Work may be ready: serve who waits, at the loop's next turn. */
void xf_core_kick(struct xf_coordinator *c);
/** Stop by itself: why. */
void xf_core_fail(struct xf_coordinator *c, const struct xf_err *err);
/** Callback of an operation whose outcome nobody waits for: a failure is logged. */
void xf_core_on_done(struct xf_store_op *op);

#endif
