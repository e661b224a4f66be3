/*
 * metrics.h - the coordinator's metrics: one table, and the few calls that fill it.
 *
 * Names are the design's (section 7). Threads: any may count; the texts are written on the core.
 */
#ifndef XF_COORDINATOR_METRICS_H
#define XF_COORDINATOR_METRICS_H

#include "common/base/metric.h"
#include "common/s3/client.h"
#include "coordinator/store.h"

enum xf_cmetric {
    XF_CM_OBJECTS,
    XF_CM_BYTES,
    XF_CM_LISTED_KEYS,
    XF_CM_BATCHES,
    XF_CM_LEASE_EXPIRED,
    XF_CM_STALE_REPORTS,
    XF_CM_RETRIES,
    XF_CM_S3_REQUESTS,
    XF_CM_S3_SECONDS,
    XF_CM_THROTTLED,
    XF_CM_IN_FLIGHT,
    XF_CM_AGENTS,
    XF_CM_COMMIT_SECONDS,
    XF_CM_STORE_BYTES,
    XF_CM_WAL_BYTES,
    XF_CM_REPLAYED,
    XF_CM_N
};

struct xf_metrics *xf_cmetrics_new(void);
/** What a job's row says, under its public id. */
void xf_cmetrics_job(struct xf_metrics *m, const struct xf_job_row *row);
void xf_cmetrics_add(struct xf_metrics *m, enum xf_cmetric which, const char *label, double v);
void xf_cmetrics_set(struct xf_metrics *m, enum xf_cmetric which, const char *label, double v);
/* Hooks for struct xf_lister_opts and struct xf_store_opts; arg is the set. */
void xf_cmetrics_on_request(
    void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us);
void xf_cmetrics_on_commit(void *arg, size_t n_ops, int64_t took_ns);

#endif
