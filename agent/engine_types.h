/*
 * engine_types.h - inside the engine: runs, operations, step tables; engine_int.h works on them.
 * A run is a work being done. An op is one thing of it that has a life of its own: an object, a
 * part, a step of an upload, the look over the destination. An op's life is a table of steps; a
 * step is one request (or a streamed pair), with the function that starts it, the one that takes
 * its answer, and the steps that may follow.
 */
#ifndef XF_AGENT_ENGINE_TYPES_H
#define XF_AGENT_ENGINE_TYPES_H

#include "agent/engine.h"
#include "agent/limit.h"
#include "agent/pool.h"
#include "agent/rate.h"
#include "agent/verify.h"
#include "common/base/fsm.h"
#include "common/s3/client.h"
#include "common/s3/sum.h"

#include <stdatomic.h>

struct xf_op;
struct xf_scan;
struct xf_stream;

enum xf_side { XF_SRC, XF_DST, XF_SIDE_N };

enum xf_step_flags {
    XF_STEP_WRITE = 1,      /* not started after the fence */
    XF_STEP_BOTH = 2,       /* needs a permit of either side */
    XF_STEP_OWN_RETRY = 4,  /* `done` sees errors of class RETRY too */
    XF_STEP_IS_SCAN = 8,    /* tells nothing about an object: failing it fails nothing */
    XF_STEP_COPY = 16,      /* CopyObject: pointless once the service is known not to do it */
    XF_STEP_PART_COPY = 32, /* UploadPartCopy: likewise */
    XF_STEP_BULK = 64,      /* bytes of the object come through here: the job's bandwidth */
    XF_STEP_BUFFERED = 128  /* sends what an earlier step read: `done` sees XF_E_CHECKSUM */
};

struct xf_step {
    const char *name;
    enum xf_side side;
    unsigned flags;
    uint32_t to; /* XF_TO() of the steps that may follow; itself always may */
    /* Start the request; its answer goes to xf_op_reply(). NULL: the op is passive here. */
    struct xf_s3_req *(*start)(struct xf_op *op);
    void (*done)(struct xf_op *op, const struct xf_s3_result *res);
};

/* What tells that a side's endpoint is out of reach; see engine_down.c. */
struct xf_down {
    int64_t since_ms; /* monotonic; 0: it is not */
    unsigned n_mute;  /* requests without an answer since the last one that had one */
    unsigned n_sign;  /* refused signatures since the last other answer */
    bool is_key_bad;  /* nobody's signature was taken; a probe's may be again */
    bool is_doubted;  /* a probe is answered where objects are not */
};

/* A job on this engine. */
struct xf_ejob {
    struct xf_list node;
    struct xf_work_job *job;
    struct xf_s3 *s3[XF_SIDE_N];
    struct xf_limit *limit[XF_SIDE_N];
    struct xf_rate *rate;
    char *region[XF_SIDE_N]; /* learnt from a redirect; NULL: as the spec says */
    struct xf_down down[XF_SIDE_N];
    struct xf_list parked; /* ops that wait while the job is held */
    unsigned n_runs;
    bool is_held;
};

struct xf_run {
    struct xf_list node;
    struct xf_engine *e;
    struct xf_ejob *ej;
    struct xf_work *w; /* NULL: a probe */
    struct xf_list ops;
    unsigned n_ops;
    uint32_t n_open;  /* objects or parts without an outcome; of an upload's step 1 */
    uint32_t next;    /* of what is to begin */
    bool has_more;    /* something is to begin */
    bool is_stopping; /* with `stop` */
    enum xf_engine_stop stop;
    bool is_failed;       /* `end` is set: stop the others and end */
    struct xf_scan *scan; /* NULL: none */
    struct xf_work_end end;
    struct xf_result result; /* uploads: the object's; strings in the work's arena */
    uint32_t tries;          /* uploads: most tries of one op */
};

struct xf_op {
    struct xf_list node;
    struct xf_run *run;
    const struct xf_step *steps;
    unsigned n_steps;
    unsigned state;
    uint32_t idx; /* of the object, or of the part in its range */

    /* Chooses anew for a server copy that waited its turn and is known not to work by then. */
    void (*choose)(struct xf_op *op);
    struct xf_s3_req *req;
    struct xf_timer timer; /* wait before another try */
    struct xf_limit_want want;
    enum xf_side want_side;
    struct xf_rate_want rate_want;
    struct xf_list parked;
    struct xf_pool_want pool_want;
    struct xf_pool_buf buf;
    struct xf_stream *stream;
    int64_t asked_ms;
    int64_t first_write_ms; /* monotonic; 0: none yet */
    int64_t ours_since_ms;  /* server's clock: what is there since then may be our write; 0: no */

    /* what it knows */
    const struct xf_object *obj; /* as listed */
    struct xf_buf dst_key;
    char etag[XF_WORK_ETAG_MAX]; /* of the source as it is now */
    uint64_t size;
    int64_t mtime_ms;
    char dst_etag[XF_WORK_ETAG_MAX];
    uint64_t dst_size;
    unsigned char md5[16];
    struct xf_s3_attrs *attrs;
    struct xf_buf tags;
    uint64_t through;
    uint64_t got; /* bytes of the present GET */
    unsigned after_tags;
    struct xf_summing summing; /* of the present GET */
    struct xf_sum sum;         /* of the source's bytes, when they went through or were read */
    struct xf_sum src_sum;     /* the source's checksum, as the service says */
    struct xf_sum dst_sum;     /* the destination's, likewise */
    unsigned asked_sums, refused_sums, doubted_sums; /* of enum xf_sums: engine_sum.c */
    uint32_t tries;                                  /* spent beyond the first */
    uint32_t replans;
    uint32_t flags; /* of enum xf_result_flag */
    enum xf_mode mode;
    enum xf_level level; /* of the proof that what was put is stored */
    bool has_permit[XF_SIDE_N];
    bool is_cancelled;
    bool has_rate;        /* the bytes of the present step are taken */
    bool has_stored;      /* a write of this op was answered with success */
    bool has_looked;      /* a HEAD found the destination as it should be */
    bool has_asked_again; /* the source, after Complete */
    bool is_comparing;    /* before a copy, not after it */
    bool is_ours;         /* what is there may have been written by this job */
    bool as_expected;     /* an upload's etag is the one that follows from its parts */
    bool has_md5;         /* md5 is of the source's bytes: computed, or what the etag promises */
    bool maybe_done;      /* a write of this op may have been done without an answer */
    bool copy_unknown;    /* a copy gave an answer that proves nothing */
    bool src_is_opaque;   /* etags of that side are no MD5s */
    bool dst_is_opaque;
    bool no_copy;    /* this one goes by relay */
    bool no_tags;    /* the service does not let us write or read them */
    bool is_changed; /* etag and size are not the listed ones */
    bool was_denied; /* a server-side copy of it was */
    bool has_tags;   /* were read */
    bool wants_tags; /* a close: the source has some to carry */

    /* parts */
    uint32_t part_no;
    uint64_t offset;
    uint64_t len;
    /* uploads */
    struct xf_buf upload_id;
    struct xf_buf spared; /* ids of uploads found that are not ours, a line each */
    struct xf_buf marker; /* of a listing of uploads */
    struct xf_buf marker_id;
    unsigned rounds;
    enum xf_code lost_code; /* of a Complete that may have been done before */
};

struct xf_engine {
    struct xf_loop *loop;
    struct xf_http *http;
    const struct xf_clock *clock;
    struct xf_pool *pool;
    struct xf_rng rng;
    struct xf_engine_events ev;
    enum xf_code (*creds)(void *arg,
                          const struct xf_job_side *side,
                          struct xf_creds_source **out,
                          struct xf_err *err);
    void *creds_arg;
    struct xf_metrics *metrics;
    unsigned max_objects;
    unsigned max_in_flight;
    struct xf_list jobs;
    struct xf_list runs;
    unsigned n_ops;
    struct xf_timer pump;
    _Atomic int64_t fence_ms;
    _Atomic uint64_t n_objects;
    _Atomic uint64_t n_bytes;
    _Atomic uint64_t n_through;
    _Atomic uint64_t n_throttled;
    _Atomic uint64_t n_retries;
    _Atomic uint32_t n_in_flight;
};

#endif
