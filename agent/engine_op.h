/*
 * engine_op.h - inside the engine: operations and their step tables.
 *
 * An op is one thing of a work that has a life of its own: an object, a part, a step of an upload,
 * the look over the destination. An op's life is a table of steps; a step is one request (or a
 * streamed pair), with the function that starts it, the one that takes its answer, and the steps
 * that may follow. engine_op.c turns it.
 */
#ifndef XF_AGENT_ENGINE_OP_H
#define XF_AGENT_ENGINE_OP_H

#include "agent/bulk.h"
#include "agent/pool.h"
#include "agent/rate.h"
#include "agent/verify.h"
#include "agent/work.h"
#include "common/base/fsm.h"
#include "common/rt/limit.h"
#include "common/s3/client.h"
#include "common/s3/sum.h"

struct xf_op;
struct xf_run;
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
    struct xf_rate_want request_want;
    struct xf_list parked;
    struct xf_bulk_want bulk_want;
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
    bool has_turn;        /* of a large body: bulk.h */
    bool has_rate;        /* the bytes of the present step are taken */
    bool has_request;     /* and its requests */
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
    bool no_class;   /* nor does it know the object's storage class */
    bool is_changed; /* etag and size are not the listed ones */
    bool was_denied; /* a server-side copy of it was */
    bool has_tags;   /* were read */
    bool wants_tags; /* a close: the source has some to carry */
    bool wants_lock; /* likewise a retention, and the destination none */
    bool wants_hold;

    /* parts */
    uint32_t part_no;
    uint64_t offset;
    uint64_t len;
    /* uploads */
    struct xf_buf upload_id;
    struct xf_buf empty_id; /* of an upload found that may be ours */
    unsigned n_empty;       /* such uploads */
    int64_t lost_mono_ms;   /* no Create of ours was sent later, but by the present try */
    struct xf_buf spared;   /* ids of uploads found that are not ours, a line each */
    struct xf_buf marker;   /* of a listing of uploads */
    struct xf_buf marker_id;
    unsigned rounds;
    enum xf_code lost_code; /* of a Complete that may have been done before */
};

#endif
