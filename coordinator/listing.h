/*
 * listing.h - one shard being listed: request, judge, commit, next. On the lister's loop.
 */
#ifndef XF_COORDINATOR_LISTING_H
#define XF_COORDINATOR_LISTING_H

#include "common/base/list.h"
#include "common/base/rng.h"
#include "common/job/side.h"
#include "coordinator/encoding.h"
#include "coordinator/page.h"
#include "coordinator/store.h"
#include "coordinator/walk.h"

struct xf_job_spec;
struct xf_listing;

struct xf_listing_start {
    const struct xf_shard_row *shard;
    struct xf_str spec; /* migrate.toml */
    int64_t start_ms;   /* the job's start, wall clock; ages in [select] count from it */
};

struct xf_listing_limits {
    uint32_t batch_objects; /* 1 to XF_MANIFEST_MAX */
    uint64_t batch_bytes;
    uint32_t tries; /* errors in a row after which a listing fails */
};

/* What a listing tells; on the lister's loop. After on_done, on_failed or on_ended the listing is
 * over: the owner frees it later, from a timer. */
struct xf_listing_events {
    void (*on_page)(void *arg, struct xf_listing *g, size_t n_tasks);
    void (*on_done)(void *arg, struct xf_listing *g);
    void (*on_failed)(void *arg, struct xf_listing *g, const struct xf_err *err);
    void (*on_wait)(void *arg, struct xf_listing *g, const struct xf_err *err);
    void (*on_ended)(void *arg, struct xf_listing *g); /* stopped, nothing under way */
};

enum xf_listing_state {
    XF_LISTING_IDLE, /* paused, between pages */
    XF_LISTING_ASKING,
    XF_LISTING_WAITING, /* for a timer: to ask or to commit again */
    XF_LISTING_COMMITTING,
    XF_LISTING_OVER
};

struct xf_listing {
    struct xf_list link; /* the owner's */
    int64_t shard;
    int64_t job;
    uint32_t generation;
    uint32_t source_no;
    int64_t start_ms;
    struct xf_job_spec *spec;
    struct xf_buf cursor; /* committed */
    struct xf_buf hi;
    struct xf_walk walk;
    struct xf_encoding encoding;
    enum xf_listing_state state;
    bool is_paused;
    bool is_stopped;
    bool is_told_waiting;
    bool is_key_asked;   /* a signature was refused: is it the key? */
    bool is_key_good;    /* it is not, as of the last page */
    uint32_t tries;      /* errors in a row that count */
    uint32_t waits;      /* in a row, of those that do not */
    uint64_t n_keys;     /* returned, not committed yet */
    uint64_t n_requests; /* likewise */
    struct xf_page page; /* being committed */
    bool has_page;
    bool page_is_last;
    struct xf_s3 *s3;
    struct xf_s3_req *req;
    struct xf_timer timer;
    struct xf_rng rng;
    struct xf_listing_limits limits;
    struct xf_side_env side;
    struct xf_loop *loop;
    struct xf_store_port *port;
    const struct xf_listing_events *events;
    void *arg;
};

struct xf_listing_env {
    struct xf_listing_limits limits;
    struct xf_side_env side;
    struct xf_store_port *port;
    const struct xf_listing_events *events;
    void *arg;
};

/**
 * Begins at the loop's next turn; from then on whatever is wrong comes as on_failed or on_wait.
 *
 * Errors: XF_E_CONFIG, XF_E_UNSUPPORTED  the spec does not parse (a newer xfer's store).
 */
XF_MUST_CHECK enum xf_code xf_listing_new(const struct xf_listing_env *env,
                                          const struct xf_listing_start *s,
                                          struct xf_listing **out,
                                          struct xf_err *err);
/** Only when it is over. */
void xf_listing_free(struct xf_listing *g);
void xf_listing_pause(struct xf_listing *g, bool on);
/** on_ended follows, from the loop, unless it was over. */
void xf_listing_stop(struct xf_listing *g);

#endif
