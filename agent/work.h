/*
 * work.h - what the core thread and the lanes hand to each other: jobs and leased tasks.
 *
 * A job is immutable but for its atomics, counted, and shared by all threads. A work is one lease
 * of one task: the core thread makes it, gives it to one lane, and gets it back when it ended.
 */
#ifndef XF_AGENT_WORK_H
#define XF_AGENT_WORK_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/list.h"
#include "common/base/mem.h"
#include "common/s3/sum.h"
#include "proto/limits.h"
#include "proto/manifest.h"
#include "proto/result.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct xf_job_spec;

enum { XF_WORK_ETAG_MAX = 128 }; /* of a part or an object; longer ones are cut off as unknown */

/* What was found out about the service while working; each is told once. */
enum xf_work_fact {
    XF_FACT_NO_COPY = 1 << 0,      /* CopyObject does not work between these sides */
    XF_FACT_NO_PART_COPY = 1 << 1, /* nor does UploadPartCopy */
    XF_FACT_COPY_WORKED = 1 << 2,
    XF_FACT_TAGS_DENIED = 1 << 3,
    XF_FACT_KEY_FALLBACK = 1 << 4,  /* a copy source was not found although the object is there */
    XF_FACT_WEBSITE = 1 << 5,       /* a source bucket may have objects with a redirect */
    XF_FACT_UPLOAD_UNSURE = 1 << 6, /* an open upload could not be looked into */
    XF_FACT_NO_SUM_SRC = 1 << 7,    /* the source is not to be asked for checksums */
    XF_FACT_NO_SUM_DST = 1 << 8,    /* nor the destination */
    XF_FACT_NO_SUM_WRITE = 1 << 9,  /* the destination does not take them, or does not say so */
    XF_FACT_SUM_UNSAID = 1 << 10,   /* it sums what comes without a checksum, but does not say so */
    XF_FACT_CLASS_UNKNOWN = 1 << 11, /* the destination refused an object's storage class */
    XF_FACT_TAGS_NONE = 1 << 12,     /* an object of which no number of tags is told had none */
    XF_FACT_TAGS_UNTOLD = 1 << 13    /* such an object had some: each has to be asked for */
};

struct xf_work_job {
    char *id; /* public id */
    struct xf_job_spec *spec;
    bool is_same_service;   /* a server-side copy may work */
    int64_t started_ms;     /* wall clock; a destination object older than this is not ours; 0:
                               unknown */
    atomic_uint facts;      /* of enum xf_work_fact */
    atomic_uint order_mode; /* enum xf_mode that an order asked for; XF_MODE_NONE: as the spec says
                             */
    atomic_bool is_held;    /* paused, for lanes that have not met the job yet */
    _Atomic uint64_t lane_bandwidth; /* bytes a second through one lane, by order; 0: no limit */
    _Atomic uint64_t lane_requests;  /* of one lane in 1,000 s, by order; 0: no limit */
    atomic_uint lane_in_flight; /* requests a side of one lane, by order; 0: as the spec says */
    atomic_uint refs;
};

/**
 * Parse the text of a job's spec. The caller has one reference.
 *
 * Errors: those of xf_job_spec_parse().
 */
XF_MUST_CHECK enum xf_code
xf_work_job_new(struct xf_str id, struct xf_str toml, struct xf_work_job **out, struct xf_err *err);
struct xf_work_job *xf_work_job_ref(struct xf_work_job *job);
void xf_work_job_unref(struct xf_work_job *job);
XF_AUTO_DEFINE(xf_work_job, xf_work_job_unref)

/** Set a fact; true for whoever was first (and tells it). */
bool xf_work_job_learn(struct xf_work_job *job, enum xf_work_fact fact);
bool xf_work_job_knows(const struct xf_work_job *job, enum xf_work_fact fact);

/* A finished part. */
struct xf_work_part {
    uint32_t part_no;
    struct xf_str etag; /* unquoted */
    uint64_t size;
    bool has_md5;
    unsigned char md5[16]; /* of the bytes, when they went through an agent */
    struct xf_sum sum;     /* likewise, by the upload's algorithm: the service has the same */
    uint64_t through;      /* bytes that did */
};

struct xf_work {
    struct xf_list node; /* of whoever holds it */
    void *owner;         /* the core's */
    uint64_t task;
    uint32_t attempt;
    enum xf_task_kind kind;
    struct xf_work_job *job;     /* a reference of its own */
    struct xf_manifest manifest; /* uploads: one object */
    struct xf_result_set done;   /* what earlier leases reported; n as the manifest's */

    /* uploads */
    struct xf_str upload_id; /* empty: not known */
    uint64_t part_size;
    uint32_t n_parts;
    uint32_t first_part; /* parts: both included */
    uint32_t last_part;
    enum xf_sum_alg sum;    /* a CRC, by which the service sums the whole object; or NONE */
    int64_t intent_mono_ms; /* when the intent was stored, by this host's monotonic clock */
    const struct xf_work_part *parts; /* finished ones */
    uint32_t n_done_parts;
    struct xf_arena arena; /* of the strings above */
};

/** All zero but the job's reference. */
struct xf_work *xf_work_new(struct xf_work_job *job);
void xf_work_free(struct xf_work *w);
XF_AUTO_DEFINE(xf_work, xf_work_free)

/* How a lease's work ended. */
enum xf_work_how {
    XF_WORK_DONE,    /* every object has an outcome; the step of the upload is done */
    XF_WORK_STOPPED, /* told to stop: the rest is still to do */
    XF_WORK_UNFIT,   /* this host cannot: credentials, DNS, disk; nothing is spent */
    XF_WORK_FAILED,  /* uploads: the object did not make it, see result */
    XF_WORK_RETRY    /* uploads: this step gave up; another lease may do better */
};

struct xf_work_end {
    enum xf_work_how how;
    struct xf_err err;              /* UNFIT, FAILED, RETRY */
    bool has_result;                /* uploads: the object's outcome */
    const struct xf_result *result; /* valid during the call */
    uint32_t tries;                 /* uploads: spent in this lease */
};

/* The open task made an upload. */
struct xf_work_opened {
    struct xf_str upload_id;
    uint64_t part_size;
    uint32_t n_parts;
    bool is_changed;    /* the source is not as listed: etag and size say how it is */
    struct xf_str etag; /* of the source now */
    uint64_t size;
    uint32_t flags; /* of enum xf_result_flag */
    enum xf_sum_alg sum;
};

#endif
