/*
 * metrics.h - what the agent counts, for /metrics.
 */
#ifndef XF_AGENT_METRICS_H
#define XF_AGENT_METRICS_H

#include "common/base/metric.h"
#include "common/s3/client.h"

enum xf_am {
    XF_AM_S3_REQUESTS, /* op, code */
    XF_AM_S3_SECONDS,  /* op */
    XF_AM_OBJECTS,
    XF_AM_BYTES,
    XF_AM_THROUGH,
    XF_AM_THROTTLED,
    XF_AM_RETRIES,
    XF_AM_IN_FLIGHT,
    XF_AM_TASKS,
    XF_AM_UP,
    XF_AM_N
};

struct xf_metrics *xf_agent_metrics_new(void);
/** One S3 request ended; any thread. metrics may be NULL. */
void xf_agent_metrics_request(struct xf_metrics *m,
                              enum xf_s3_op op,
                              enum xf_code code,
                              int64_t took_us);
/** Set one that is read from elsewhere, just before the text is written; it has no labels. */
void xf_agent_metrics_set(struct xf_metrics *m, enum xf_am row, double v);

#endif
