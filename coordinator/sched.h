/*
 * sched.h - who gets what: one agent's request for work against the jobs that have some. Pure.
 *
 * A job's share follows its priority: the next slot goes to the job with the least work leased per
 * unit of weight. A job is passed over when it has nothing ready of a kind that the agent takes,
 * when the agent is unfit for it, or when the ready work of a retry pass waits for another agent.
 */
#ifndef XF_COORDINATOR_SCHED_H
#define XF_COORDINATOR_SCHED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xf_sched_job {
    int64_t id;
    int priority;          /* 1 low to 9 high */
    uint32_t kinds;        /* XF_TASK_BIT()s that may be leased now; 0: none */
    uint32_t tasks_ready;  /* an estimate; at least 1 when something may be ready */
    uint32_t tasks_leased; /* over all agents */
    bool is_fit;           /* this agent can work on it */
    bool prefers_other;    /* this agent failed the work that waits, and others are there */
};

struct xf_sched_ask {
    uint32_t free_tasks;
    uint64_t free_objects;
    uint64_t free_bytes;
    uint32_t kinds; /* that the agent takes */
};

struct xf_sched_grant {
    int64_t job;
    uint32_t kinds;
    uint32_t max_tasks;
};

/** Weight of a priority: 1, 2, 3, 5, 8, 12, 18, 27, 40 for 1..9; out of range counts as the
 * nearest. */
uint32_t xf_sched_weight(int priority);

/**
 * Share out ask->free_tasks slots.
 *
 * out   room for n_jobs grants, in the order in which the work is to be leased
 * Gives the number of grants; 0 when the agent can do nothing now.
 */
size_t xf_sched_assign(const struct xf_sched_job *jobs,
                       size_t n_jobs,
                       const struct xf_sched_ask *ask,
                       struct xf_sched_grant *out);

#endif
