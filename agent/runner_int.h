/*
 * runner_int.h - inside the runner: jobs and tasks. Only runner*.c include it.
 *
 *   task:  waiting -> running -> ended -> (acknowledged) gone
 *             ^          |
 *             +- parked <+   interrupted by the fence; goes on when the lease proves to be ours
 */
#ifndef XF_AGENT_RUNNER_INT_H
#define XF_AGENT_RUNNER_INT_H

#include "agent/runner.h"
#include "common/base/fsm.h"
#include "common/base/list.h"

enum xf_rjob_state {
    XF_RJOB_FETCHING, /* its spec is asked for */
    XF_RJOB_PROBING,
    XF_RJOB_FIT,
    XF_RJOB_UNFIT, /* asked for and probed again after a while */
    XF_RJOB_STATE_N
};

struct xf_rjob {
    struct xf_list node;
    char *id;
    struct xf_runner *r;
    enum xf_rjob_state state;
    struct xf_work_job *job; /* NULL while fetching */
    unsigned probes_open;
    struct xf_err probe_err;
    struct xf_timer again; /* asked for and probed again; or forget it */
    size_t n_tasks;
    bool is_asked; /* its spec is on the way */
    bool is_paused;
    uint32_t in_flight; /* as ordered; 0: none */
};

enum xf_rtask_state {
    XF_RTASK_WAITING, /* for its job */
    XF_RTASK_RUNNING, /* on a lane */
    XF_RTASK_PARKED,  /* off its lane, not ended */
    XF_RTASK_ENDED,   /* its last item waits for the acknowledgement */
    XF_RTASK_STATE_N
};

/* What of a record or part was told. */
enum xf_told { XF_TOLD_NOTHING, XF_TOLD_FRESH, XF_TOLD_SENT, XF_TOLD_ACKED };

struct xf_rtask {
    struct xf_list node; /* of the runner's; not linked once dropped */
    struct xf_runner *r;
    uint64_t id;
    uint32_t attempt;
    enum xf_task_kind kind;
    enum xf_rtask_state state;
    struct xf_rjob *job;
    struct xf_work *work;         /* always ours; the lane borrows it while running */
    struct xf_lane *lane;         /* while running */
    uint32_t n_left;              /* objects without an outcome, for balance */
    struct xf_result_set results; /* of this lease */
    uint8_t *told;                /* enum xf_told, an entry a record */
    uint32_t n_fresh;
    struct xf_work_part *parts; /* finished in this lease; etags in `arena` */
    uint8_t *part_told;
    uint32_t n_parts;
    uint32_t cap_parts;
    bool has_begun;       /* a lane had it: requests may have been sent */
    bool is_dropped;      /* not ours any more: goes when the lane is done with it */
    bool is_stopping;     /* asked to stop: with `how` */
    enum xf_code refused; /* why a report of it was: it goes back, with nothing told; XF_OK: none */
    enum xf_how how;      /* of the give-back */
    enum xf_item_kind last; /* when ended: its item */
    bool last_sent;         /* in the beat that is under way */
    struct xf_err err;      /* of the give-back or failure */
    struct xf_work_opened opened;
    bool has_opened;
    bool has_result; /* of an upload: results.at[0] */
    uint32_t tries;
    struct xf_arena arena;
};

struct xf_runner {
    struct xf_runner_opts o;
    struct xf_link *link;
    struct xf_lane **lanes;
    unsigned n_lanes;
    struct xf_queue *msgs;
    struct xf_list jobs;
    struct xf_list tasks;
    size_t n_tasks;
    struct xf_rng rng;
    struct xf_timer lease_timer;
    struct xf_timer drain_timer;
    bool lease_open; /* a lease request is under way */
    bool is_up;
    bool is_drained; /* ordered: take nothing */
    bool is_closing; /* xf_runner_drain() */
    bool is_closed;  /* bye is under way, or said */
    bool hard;
    int64_t close_by_ms;
    int64_t ttl_ms;
    int64_t margin_ms;
    int64_t fence_ms;
    int64_t checkpoint_ms;
    uint32_t checkpoint_max;
    uint32_t n_fresh; /* of all tasks */
    /* rates between beats */
    struct xf_engine_stats last;
    int64_t last_ms;
    double pace; /* objects a second, smoothed */
    /* notices not sent yet */
    struct xf_notice {
        char *job;
        char *code;
        char *text;
        bool sent;
    } notices[XF_NOTICES_MAX];
    size_t n_notices;
    /* Batches whose lease went to somebody else after work had begun: told until acknowledged, so
     * that the coordinator looks again at what our late writes may have touched. */
    struct xf_late {
        uint64_t task;
        uint32_t attempt;
        bool sent;
    } * late;
    size_t n_late;
};

/* ---- runner.c ---- */
void xf_runner_want(struct xf_runner *r); /* more work, when there is room */
void xf_runner_note(struct xf_runner *r, const char *job, const char *code, struct xf_str text);
void xf_runner_set_fence(struct xf_runner *r, int64_t sent_ms);
/** A task that is not ours any more has stopped. At most XF_HELD_MAX are kept. */
void xf_runner_add_late(struct xf_runner *r, uint64_t task, uint32_t attempt);
/** The drain may be over. */
void xf_runner_check_drain(struct xf_runner *r);

/* ---- runner_job.c ---- */
struct xf_rjob *xf_rjob_get(struct xf_runner *r, struct xf_str id);
struct xf_rjob *xf_rjob_find(struct xf_runner *r, struct xf_str id);
void xf_rjob_free(struct xf_rjob *j);
void xf_rjob_probed(struct xf_runner *r, struct xf_work_job *job, const struct xf_err *err);
/** This host cannot work for it: give everything back, probe again later. */
void xf_rjob_unfit(struct xf_rjob *j, const struct xf_err *err);
void xf_rjob_order(struct xf_rjob *j, const struct xf_msg_order *o);
/** A new session: ask again for what was asked in the old one, tell again how fit we are. */
void xf_rjob_on_up(struct xf_rjob *j);
void xf_rjob_task_gone(struct xf_rjob *j);

/* ---- runner_task.c ---- */
struct xf_rtask *xf_rtask_find(struct xf_runner *r, uint64_t id, uint32_t attempt);
/** Take a task of a lease reply; a broken one is given back. */
void xf_rtask_accept(struct xf_runner *r, const struct xf_msg_task *m);
/** Start what waits for the job, or is parked and still ours. */
void xf_rtask_start_all(struct xf_runner *r, struct xf_rjob *j);
void xf_rtask_stop(struct xf_rtask *t,
                   enum xf_engine_stop stop,
                   enum xf_how how,
                   const struct xf_err *err);
void xf_rtask_drop(struct xf_rtask *t);
void xf_rtask_on_object(struct xf_rtask *t, const struct xf_lane_object *o);
void xf_rtask_on_msg(struct xf_rtask *t, struct xf_lane_msg *m);
void xf_rtask_free(struct xf_rtask *t);
/** Is there something to tell? */
bool xf_rtask_is_fresh(const struct xf_rtask *t);
/** Fill an item; marks what it says as sent. Gives about how many bytes it takes. */
size_t xf_rtask_fill(struct xf_rtask *t, struct xf_msg_item *item, struct xf_arena *a);
void xf_rtask_acked(struct xf_rtask *t, enum xf_code code);
/** The beat was lost: what was sent is fresh again. */
void xf_rtask_lost(struct xf_rtask *t);

#endif
