/*
 * listing.h - one shard being listed: request, judge, commit, next. On the lister's loop.
 *
 * Each page needs a permit of the source's limit, which all its shards share.
 */
#ifndef XF_COORDINATOR_LISTING_H
#define XF_COORDINATOR_LISTING_H

#include "common/base/list.h"
#include "common/base/rng.h"
#include "common/job/side.h"
#include "common/rt/limit.h"
#include "coordinator/encoding.h"
#include "coordinator/page.h"
#include "coordinator/store.h"
#include "coordinator/walk.h"

struct xf_job_spec;
struct xf_listing;

struct xf_listing_limits {
    uint32_t batch_objects; /* 1 to XF_MANIFEST_MAX */
    uint64_t batch_bytes;
    uint32_t tries;    /* errors in a row after which a listing fails */
    uint32_t requests; /* pages asked for at a time, of one source */
};

/* What a listing tells; on the lister's loop. After on_done, on_failed or on_ended the listing is
 * over: the owner frees it later, from a timer. */
struct xf_listing_events {
    /* A page came, rose, and is about to be committed: `g->first_key` and `g->last_key`. */
    void (*on_received)(void *arg, struct xf_listing *g, const struct xf_xml_doc *doc);
    /* The shard of xf_listing_split() was made, or not (g->shard is 0; on_ended follows). */
    void (*on_split)(void *arg, struct xf_listing *g);
    void (*on_page)(void *arg, struct xf_listing *g, size_t n_tasks);
    void (*on_done)(void *arg, struct xf_listing *g);
    void (*on_failed)(void *arg, struct xf_listing *g, const struct xf_err *err);
    void (*on_wait)(void *arg, struct xf_listing *g, const struct xf_err *err);
    void (*on_ended)(void *arg, struct xf_listing *g); /* stopped, nothing under way */
};

/* What the shards of one source of a job share; the owner's. */
struct xf_listing_env {
    struct xf_listing_limits limits;
    struct xf_side_env side;
    struct xf_store_port *port;
    const struct xf_listing_events *events;
    void *arg;
    int64_t job;
    uint32_t source_no;
    int64_t start_ms; /* the job's start, wall clock; ages in [select] count from it */
    struct xf_job_spec *spec;
    struct xf_s3 *s3; /* made by the first listing that can */
    bool is_v1;       /* the service answers list-type=2 as if it were not there */
    struct xf_limit *limit;
    struct xf_rng *rng;
};

enum xf_listing_state {
    XF_LISTING_IDLE,   /* paused, between pages */
    XF_LISTING_QUEUED, /* for a permit */
    XF_LISTING_ASKING,
    XF_LISTING_WAITING,   /* for a timer: to ask or to commit again */
    XF_LISTING_SPLITTING, /* its shard is being made */
    XF_LISTING_COMMITTING,
    XF_LISTING_OVER
};

struct xf_listing {
    struct xf_list link; /* the owner's */
    struct xf_listing_env *env;
    int64_t shard;    /* 0: it is being made */
    int64_t split_of; /* the shard that it is made from; 0: none */
    uint32_t generation;
    struct xf_buf cursor;    /* committed */
    struct xf_buf hi;        /* the shard's end as last heard: a hint, the store knows it */
    struct xf_buf first_key; /* of the last page that came, with the next; empty: none yet */
    struct xf_buf last_key;
    struct xf_walk walk;
    struct xf_encoding encoding;
    enum xf_listing_state state;
    bool is_paused;
    bool is_stopped;
    bool is_told_waiting;
    bool is_key_asked; /* a signature was refused: is it the key? */
    bool is_key_good;  /* it is not, as of the last page */
    bool has_permit;
    uint32_t tries;      /* errors in a row that count */
    uint32_t waits;      /* in a row, of those that do not */
    uint64_t n_keys;     /* returned, not committed yet */
    uint64_t n_requests; /* likewise */
    struct xf_page page; /* being committed */
    bool has_page;
    bool page_is_last;
    struct xf_limit_want want;
    int64_t asked_ms;
    struct xf_s3_req *req;
    struct xf_timer timer;
    /* the owner's: what it knows of the keys to come */
    struct xf_buf top; /* nothing lies behind it in this shard; empty: not known */
    unsigned trust;    /* looks at a time that its range is worth */
    bool is_loose;     /* where the keys end is a guess */
    bool is_exhausted; /* no point was found to split it at, for this page */
};

/**
 * Begins at the loop's next turn; from then on whatever is wrong comes as on_failed or on_wait.
 * `shard`'s strings are copied.
 */
struct xf_listing *xf_listing_new(struct xf_listing_env *env, const struct xf_shard_row *shard);
/**
 * The rest of `whole` behind `point`, whose first page is `doc`: rising keys above the point. Makes
 * the shard, then goes on as any other. Its cursor is the point until then, its hi what whole's is.
 */
struct xf_listing *
xf_listing_split(const struct xf_listing *whole, struct xf_str point, const struct xf_xml_doc *doc);
/** Only when it is over. */
void xf_listing_free(struct xf_listing *g);
void xf_listing_pause(struct xf_listing *g, bool on);
/** on_ended follows, from the loop, unless it was over. */
void xf_listing_stop(struct xf_listing *g);

#endif
