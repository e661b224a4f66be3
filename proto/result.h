/*
 * result.h - what became of the objects of one batch, as reported and as stored.
 *
 * A result is a set of records by the object's index in the manifest; objects without a record are
 * pending. A delta (what a checkpoint carries) has the same form, with fewer records. Merging is
 * safe to repeat: the first final outcome of an object stays, and attempts and through_bytes only
 * grow, so a delta merged twice changes nothing the second time. Threads: no state outside the
 * caller's structures.
 */
#ifndef XF_PROTO_RESULT_H
#define XF_PROTO_RESULT_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/str.h"
#include "proto/manifest.h"

/* The numbers are stored and sent: append only. */
enum xf_outcome {
    XF_OUTCOME_PENDING = 0, /* not ended; a record of it only carries attempts */
    XF_OUTCOME_COPIED,
    XF_OUTCOME_SKIPPED,
    XF_OUTCOME_FAILED,
    XF_OUTCOME_VANISHED, /* gone from the source since it was listed */
    XF_OUTCOME_ARCHIVED, /* cannot be read without a restore */
    XF_OUTCOME_N
};

enum xf_skip { /* why skipped */
               XF_SKIP_NONE = 0,
               XF_SKIP_SAME,   /* the destination has the same object */
               XF_SKIP_EXISTS, /* the destination has one, and the job says keep */
               XF_SKIP_SELF,   /* source and destination are the same object */
               XF_SKIP_N
};

enum xf_level { /* how well the destination was compared */
                XF_LEVEL_NONE = 0,
                XF_LEVEL_SIZE,
                XF_LEVEL_ETAG,
                XF_LEVEL_CHECKSUM,
                XF_LEVEL_FULL, /* every byte read back */
                XF_LEVEL_N
};

enum xf_mode { XF_MODE_NONE = 0, XF_MODE_SERVER, XF_MODE_RELAY, XF_MODE_N };

enum xf_result_flag {
    XF_RESULT_RETRYABLE = 1 << 0,    /* failed, and a later pass may succeed */
    XF_RESULT_TAGS_DROPPED = 1 << 1, /* copied without its tags (best-effort) */
    XF_RESULT_META_DROPPED = 1 << 2, /* without an attribute that one of the sides does not tell */
    XF_RESULT_OWN = 1 << 3,          /* found as this job had written it before */
    XF_RESULT_CHANGED = 1 << 4, /* the source changed since listed; its newer form was copied */
    XF_RESULT_CLASS_DROPPED = 1 << 5, /* the destination does not know its storage class */
    XF_RESULT_LEFT = 1 << 6, /* failed after a write: what the destination has may be that */
    XF_RESULT_FLAGS_ALL = (1 << 7) - 1,
    XF_RESULT_DROPPED = XF_RESULT_TAGS_DROPPED | XF_RESULT_META_DROPPED | XF_RESULT_CLASS_DROPPED
};

enum { XF_S3_CODE_MAX = 64, XF_RESULT_MSG_MAX = 256, XF_RESULT_BYTES_MAX = 4 * 1024 * 1024 };

struct xf_result {
    enum xf_outcome outcome;
    enum xf_skip skip;   /* when skipped */
    enum xf_level level; /* when copied, or skipped as the same */
    enum xf_mode mode;   /* when copied */
    enum xf_code code;   /* when failed, else XF_OK */
    uint32_t flags;      /* of enum xf_result_flag */
    uint32_t http_status;
    uint32_t attempts;         /* spent in this task so far, over its leases; merge keeps the max */
    uint64_t size_bytes;       /* when copied: of what was copied */
    uint64_t through_bytes;    /* moved through the agent for it */
    struct xf_str etag;        /* at the destination, unquoted */
    struct xf_str version_id;  /* at the destination */
    struct xf_str source_etag; /* of what was copied, when it is not the manifest's */
    struct xf_str s3_code;     /* when failed: "AccessDenied"; cut at XF_S3_CODE_MAX */
    struct xf_str message;     /* when failed; no secret; cut at XF_RESULT_MSG_MAX */
};

struct xf_result_set {
    uint32_t n;           /* objects in the manifest */
    struct xf_result *at; /* n of them; all zero is pending */
    struct xf_arena arena;
};

struct xf_result_counts {
    uint32_t by_outcome[XF_OUTCOME_N]; /* pending included: they add up to n */
    uint64_t copied_bytes;
    uint64_t through_bytes;
    uint64_t attempts;
    uint32_t retries; /* attempts beyond the first of each object */
    uint32_t dropped; /* copied without one of its attributes */
};

/** Was it copied without one of its attributes? */
bool xf_result_is_dropped(const struct xf_result *r);

/** n: 0 to XF_MANIFEST_MAX, all pending. */
void xf_result_set_init(struct xf_result_set *s, uint32_t n);
void xf_result_set_fini(struct xf_result_set *s);
/** All pending again; keeps n. */
void xf_result_set_reset(struct xf_result_set *s);
#define XF_AUTO_RESULT_SET __attribute__((cleanup(xf_result_set_fini))) struct xf_result_set

/**
 * Set one record; strings are copied (s3_code and message are cut to their caps).
 * idx below s->n. A final outcome that is already there stays, and false is returned.
 */
bool xf_result_set_put(struct xf_result_set *s, uint32_t idx, const struct xf_result *r);

/** Merge `delta` (same n) into s; *added counts the outcomes that were new (pending is 0 there). */
void xf_result_set_merge(struct xf_result_set *s,
                         const struct xf_result_set *delta,
                         struct xf_result_counts *added);

void xf_result_set_count(const struct xf_result_set *s, struct xf_result_counts *out);

/** Append the bytes of every record that is not all zero. Empty result: a few bytes. */
void xf_result_set_encode(const struct xf_result_set *s, struct xf_buf *out);

/**
 * Decode into a set of n objects; an empty input is an empty result. The caller frees with
 * xf_result_set_fini(), also after an error (then all are pending).
 *
 * Errors: XF_E_PROTO  truncated, trailing bytes, an index at or above n, above a cap.
 */
XF_MUST_CHECK enum xf_code xf_result_set_decode(struct xf_str bytes,
                                                uint32_t n,
                                                struct xf_result_set *out,
                                                struct xf_err *err);

const char *xf_outcome_name(enum xf_outcome o); /* "copied" */
const char *xf_skip_name(enum xf_skip s);       /* "same"; "" for none */
const char *xf_level_name(enum xf_level l);     /* "etag"; "none" */
const char *xf_mode_name(enum xf_mode m);       /* "server"; "" for none */

#endif
