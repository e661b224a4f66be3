/*
 * life.h - what a job's next step is, from its stored row. Pure.
 *
 *   queued -> running -> (copy pass, retry passes) -> completed | completed_with_failures | failed
 *   running <-> paused;  any -> stopping -> cancelled | failed
 *
 * The step follows from what is stored and from little memory, so a restart decides the same again.
 */
#ifndef XF_COORDINATOR_LIFE_H
#define XF_COORDINATOR_LIFE_H

#include "coordinator/store_rows.h"

enum xf_life_step {
    XF_LIFE_WAIT,
    XF_LIFE_START,  /* queued to running */
    XF_LIFE_RETRY,  /* a retry pass from the retryable failures */
    XF_LIFE_STOP,   /* stop it: it cannot complete (end: failed) */
    XF_LIFE_FINISH, /* end it */
    XF_LIFE_STEP_N
};

struct xf_life_in {
    const struct xf_job_row *row;
    uint32_t listings_failed; /* of row->shards_open: those that are given up */
    bool is_retry_exhausted;  /* the last retry found nothing with attempts left */
    bool vanished_fails;      /* [job] vanished = "fail" */
};

struct xf_life {
    enum xf_life_step step;
    enum xf_job_state end; /* STOP, FINISH */
    int exit_code;         /* FINISH */
    const char *reason;    /* STOP, FINISH; "" none */
};

struct xf_life xf_life_decide(const struct xf_life_in *in);

/* How long retry pass `pass_no` (2 is the first) waits after the pass before ended, in ms. */
int64_t xf_life_retry_wait_ms(int pass_no);

#endif
