/*
 * store_states.c - the tables of states: names, and what may follow what.
 *
 *   job        queued -> running <-> paused          any of them -> one of the ends:
 *                                                    completed, completed_with_failures, failed,
 *                                                    cancelled
 *              completed_with_failures -> running    an operator's retry
 *
 *   task       ready --lease--> leased --all reported--> done
 *                ^                | |
 *                +---give back----+ +--its upload failed--> failed
 *              ready, leased --job stopped, upload given up--> withdrawn
 *
 *   upload     planned --open leased--> creating --id committed--> open --all parts--> closing
 *                 |                        |                         |                    |
 *                 |                        +----------+--------------+---given up---------+
 *                 |                        |          v              |                    |
 *                 +--job stopped--> gone <-|------ aborting -> done  |                    v
 *                                          +------------------------------------------> done
 *
 *   shard      open --last page--> done
 *
 * Every stored move is an UPDATE that names the state it leaves; the moves made there are those of
 * these tables, which xf_store_check() and the tests hold against each other.
 */
#include "coordinator/store_types.h"

/* clang-format off */
#define TO(state) XF_TO(XF_JOB_##state)
#define ENDS      (TO(COMPLETED) | TO(COMPLETED_WITH_FAILURES) | TO(FAILED) | TO(CANCELLED))
const struct xf_fsm_state xf_job_fsm[XF_JOB_STATE_N] = {
    [XF_JOB_QUEUED]    = {"queued",    TO(RUNNING) | TO(PAUSED) | ENDS, XF_FSM_INITIAL},
    [XF_JOB_RUNNING]   = {"running",   TO(PAUSED) | ENDS,               0},
    [XF_JOB_PAUSED]    = {"paused",    TO(RUNNING) | TO(QUEUED) | ENDS, 0},
    [XF_JOB_COMPLETED] = {"completed", 0,                               XF_FSM_FINAL},
    [XF_JOB_COMPLETED_WITH_FAILURES] = {"completed_with_failures", TO(RUNNING), XF_FSM_FINAL},
    [XF_JOB_FAILED]    = {"failed",    0,                               XF_FSM_FINAL},
    [XF_JOB_CANCELLED] = {"cancelled", 0,                               XF_FSM_FINAL},
};
#undef ENDS
#undef TO

#define TO(state) XF_TO(XF_TASK_##state)
const struct xf_fsm_state xf_task_fsm[XF_TASK_STATE_N] = {
    [XF_TASK_READY]     = {"ready",     TO(LEASED) | TO(WITHDRAWN),                          XF_FSM_INITIAL},
    [XF_TASK_LEASED]    = {"leased",    TO(READY) | TO(DONE) | TO(FAILED) | TO(WITHDRAWN),   0},
    [XF_TASK_DONE]      = {"done",      0,                                                   XF_FSM_FINAL},
    [XF_TASK_FAILED]    = {"failed",    0,                                                   XF_FSM_FINAL},
    [XF_TASK_WITHDRAWN] = {"withdrawn", 0,                                                   XF_FSM_FINAL},
};
#undef TO

#define TO(state) XF_TO(XF_UPLOAD_##state)
const struct xf_fsm_state xf_upload_fsm[XF_UPLOAD_STATE_N] = {
    [XF_UPLOAD_PLANNED]  = {"planned",  TO(CREATING) | TO(GONE),                           XF_FSM_INITIAL},
    [XF_UPLOAD_CREATING] = {"creating", TO(OPEN) | TO(ABORTING) | TO(DONE) | TO(GONE),     0},
    [XF_UPLOAD_OPEN]     = {"open",     TO(CLOSING) | TO(ABORTING),                        0},
    [XF_UPLOAD_CLOSING]  = {"closing",  TO(DONE) | TO(ABORTING),                           0},
    [XF_UPLOAD_ABORTING] = {"aborting", TO(DONE) | TO(GONE),                               0},
    [XF_UPLOAD_DONE]     = {"done",     0,                                                 XF_FSM_FINAL},
    [XF_UPLOAD_GONE]     = {"gone",     0,                                                 XF_FSM_FINAL},
};
#undef TO

const struct xf_fsm_state xf_shard_fsm[XF_SHARD_STATE_N] = {
    [XF_SHARD_OPEN] = {"open", XF_TO(XF_SHARD_DONE), XF_FSM_INITIAL},
    [XF_SHARD_DONE] = {"done", 0,                    XF_FSM_FINAL},
};
/* clang-format on */

const char *xf_task_kind_name(enum xf_task_kind kind)
{
    static const char *const names[XF_TASK_KIND_N] = {
        "unknown", "batch", "recheck", "open", "parts", "close", "abort"};

    return names[kind < XF_TASK_KIND_N ? kind : 0];
}

const char *xf_how_name(enum xf_how how)
{
    static const char *const names[XF_HOW_N] = {
        "running", "done", "drained", "lost", "expired", "unfit", "failed", "ended", "stopped"};

    return names[how < XF_HOW_N ? how : 0];
}

bool xf_job_state_is_end(enum xf_job_state s)
{
    return s < XF_JOB_STATE_N && (xf_job_fsm[s].flags & XF_FSM_FINAL) != 0;
}
