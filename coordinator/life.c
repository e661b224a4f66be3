/*
 * life.c - the end of a job is decided here and nowhere else.
 *
 * Invariant 6 of the design: an incomplete listing, or a failed or archived object, never ends in
 * completed.
 */
#include "coordinator/life.h"

enum { EXIT_OK = 0, EXIT_ERROR = 1, EXIT_FAILURES = 3, RETRY_MIN_MS = 1000, RETRY_MAX_MS = 60000 };

static struct xf_life wait_more(void)
{
    return (struct xf_life){.step = XF_LIFE_WAIT, .reason = ""};
}

static struct xf_life finish(enum xf_job_state end, int exit_code, const char *reason)
{
    return (struct xf_life){
        .step = XF_LIFE_FINISH, .end = end, .exit_code = exit_code, .reason = reason};
}

static bool has_work(const struct xf_job_row *r)
{
    return r->tasks_ready > 0 || r->tasks_leased > 0 || r->uploads_live > 0;
}

static struct xf_life decide_stopping(const struct xf_job_row *r)
{
    /* Also abort tasks are work: nothing may stay open at the destination. */
    return has_work(r) ? wait_more() : finish(r->stop, EXIT_ERROR, "");
}

static struct xf_life decide_running(const struct xf_life_in *in)
{
    const struct xf_job_row *r = in->row;

    if (r->shards_open > in->listings_failed || has_work(r)) {
        return wait_more();
    }
    if (r->retryable > 0 && !in->is_retry_exhausted) {
        return (struct xf_life){.step = XF_LIFE_RETRY, .reason = ""};
    }
    if (r->shards_open > 0) {
        return (struct xf_life){
            .step = XF_LIFE_STOP, .end = XF_JOB_FAILED, .reason = "listing_incomplete"};
    }
    if (r->n.pending + r->n.in_flight > 0) {
        return wait_more(); /* not seen with sound rows; never an end */
    }
    if (r->n.failed > 0) {
        return finish(XF_JOB_COMPLETED_WITH_FAILURES, EXIT_FAILURES, "objects_failed");
    }
    if (r->n.archived > 0) {
        return finish(XF_JOB_COMPLETED_WITH_FAILURES, EXIT_FAILURES, "objects_archived");
    }
    if (r->n.vanished > 0 && in->vanished_fails) {
        return finish(XF_JOB_COMPLETED_WITH_FAILURES, EXIT_FAILURES, "objects_vanished");
    }
    return finish(XF_JOB_COMPLETED, EXIT_OK, "");
}

struct xf_life xf_life_decide(const struct xf_life_in *in)
{
    const struct xf_job_row *r = in->row;

    if (xf_job_state_is_end(r->state)) {
        return wait_more();
    }
    if (r->stop != 0) {
        return decide_stopping(r);
    }
    if (r->state == XF_JOB_QUEUED) {
        return (struct xf_life){.step = XF_LIFE_START, .reason = ""};
    }
    return r->state == XF_JOB_RUNNING ? decide_running(in) : wait_more();
}

int64_t xf_life_retry_wait_ms(int pass_no)
{
    int64_t ms = RETRY_MIN_MS;

    for (int i = 2; i < pass_no && ms < RETRY_MAX_MS; i++) {
        ms *= 2;
    }
    return ms < RETRY_MAX_MS ? ms : RETRY_MAX_MS;
}
