/*
 * sched.c - weighted fair sharing of slots.
 *
 * Each slot goes to the job with the least (leased + granted) / weight among those that still have
 * ready work; on a tie the older job (smaller id) is first. With few jobs and few slots the plain
 * loop is cheap: slots x jobs.
 */
#include "coordinator/sched.h"

#include "common/base/mem.h"

uint32_t xf_sched_weight(int priority)
{
    static const uint32_t weights[] = {1, 2, 3, 5, 8, 12, 18, 27, 40};
    int i = priority < 1 ? 1 : priority;

    return weights[(i > 9 ? 9 : i) - 1];
}

static bool is_eligible(const struct xf_sched_job *j, const struct xf_sched_ask *ask)
{
    return j->is_fit && !j->prefers_other && (j->kinds & ask->kinds) != 0 && j->tasks_ready > 0;
}

/* a / weight of a before b / weight of b, without division. */
static bool is_behind(const struct xf_sched_job *a,
                      uint32_t a_granted,
                      const struct xf_sched_job *b,
                      uint32_t b_granted)
{
    uint64_t left = ((uint64_t)a->tasks_leased + a_granted) * xf_sched_weight(b->priority);
    uint64_t right = ((uint64_t)b->tasks_leased + b_granted) * xf_sched_weight(a->priority);

    if (left != right) {
        return left < right;
    }
    return a->priority != b->priority ? a->priority > b->priority : a->id < b->id;
}

static size_t pick(const struct xf_sched_job *jobs,
                   size_t n,
                   const struct xf_sched_ask *ask,
                   const uint32_t *granted)
{
    size_t best = n;

    for (size_t i = 0; i < n; i++) {
        if (!is_eligible(&jobs[i], ask) || granted[i] >= jobs[i].tasks_ready) {
            continue;
        }
        if (best == n || is_behind(&jobs[i], granted[i], &jobs[best], granted[best])) {
            best = i;
        }
    }
    return best;
}

size_t xf_sched_assign(const struct xf_sched_job *jobs,
                       size_t n_jobs,
                       const struct xf_sched_ask *ask,
                       struct xf_sched_grant *out)
{
    XF_AUTO_FREE uint32_t *granted = xf_xcalloc(n_jobs + 1, sizeof(*granted));
    XF_AUTO_FREE size_t *order = xf_xcalloc(n_jobs + 1, sizeof(*order));
    size_t n = 0;

    if (ask->free_objects == 0 || ask->free_bytes == 0) {
        return 0;
    }
    for (uint32_t slot = 0; slot < ask->free_tasks; slot++) {
        size_t i = pick(jobs, n_jobs, ask, granted);
        if (i == n_jobs) {
            break;
        }
        if (granted[i]++ == 0) {
            order[n++] = i;
        }
    }
    for (size_t k = 0; k < n; k++) {
        size_t i = order[k];
        out[k] = (struct xf_sched_grant){
            .job = jobs[i].id, .kinds = jobs[i].kinds & ask->kinds, .max_tasks = granted[i]};
    }
    return n;
}
