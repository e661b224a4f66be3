/* work.c - life of jobs and works. */
#include "agent/work.h"

#include "common/job/spec.h"

enum xf_code
xf_work_job_new(struct xf_str id, struct xf_str toml, struct xf_work_job **out, struct xf_err *err)
{
    XF_AUTO(xf_job_spec) spec = NULL;

    XF_TRY(xf_job_spec_parse(toml, XF_STR_LIT("migrate.toml"), &spec, err));
    struct xf_work_job *job = xf_xcalloc(1, sizeof(*job));
    job->id = xf_str_dup(id);
    job->is_same_service = xf_job_spec_is_same_service(spec);
    job->spec = XF_STEAL(spec);
    atomic_init(&job->facts, 0);
    atomic_init(&job->order_mode, XF_MODE_NONE);
    atomic_init(&job->is_held, false);
    atomic_init(&job->lane_bandwidth, 0);
    atomic_init(&job->lane_requests, 0);
    atomic_init(&job->refs, 1);
    *out = job;
    return XF_OK;
}

struct xf_work_job *xf_work_job_ref(struct xf_work_job *job)
{
    (void)atomic_fetch_add(&job->refs, 1); /* the old count tells nothing */
    return job;
}

void xf_work_job_unref(struct xf_work_job *job)
{
    if (job == NULL || atomic_fetch_sub(&job->refs, 1) != 1) {
        return;
    }
    xf_job_spec_free(job->spec);
    xf_xfree(job->id);
    xf_xfree(job);
}

bool xf_work_job_learn(struct xf_work_job *job, enum xf_work_fact fact)
{
    return (atomic_fetch_or(&job->facts, (unsigned)fact) & (unsigned)fact) == 0;
}

bool xf_work_job_knows(const struct xf_work_job *job, enum xf_work_fact fact)
{
    return (atomic_load(&job->facts) & (unsigned)fact) != 0;
}

struct xf_work *xf_work_new(struct xf_work_job *job)
{
    struct xf_work *w = xf_xcalloc(1, sizeof(*w));

    w->job = xf_work_job_ref(job);
    return w;
}

void xf_work_free(struct xf_work *w)
{
    if (w == NULL) {
        return;
    }
    xf_manifest_fini(&w->manifest);
    xf_result_set_fini(&w->done);
    xf_arena_fini(&w->arena);
    xf_work_job_unref(w->job);
    xf_xfree(w);
}
