/*
 * spread.h - one source of a job listed by as many requests at a time as its service takes.
 *
 * The source's keys are a set of shards, each walked by a listing (listing.h). While the limit has
 * room, the largest range that is left is looked into: a page is asked for behind a point about its
 * middle (keyspace.h). With keys in it, the page is the first one of a new shard; without, the
 * range is known to end at the point. So a look costs a request only where nothing was, and there
 * are few of those: a range is not split for less than some pages, and points come from the
 * characters that the keys have shown. No hint, no delimiter, any order of digits.
 *
 * A server that does not heed start-after is found by a look that brings earlier keys: then nothing
 * is split any more. Threads: the lister's loop.
 */
#ifndef XF_COORDINATOR_SPREAD_H
#define XF_COORDINATOR_SPREAD_H

#include "coordinator/listing.h"

struct xf_spread;

/* On the lister's loop. */
struct xf_spread_events {
    void (*on_page)(void *arg, int64_t job, size_t n_tasks);
    void (*on_done)(void *arg, int64_t job, int64_t shard);
    void (*on_failed)(void *arg, int64_t job, int64_t shard, const struct xf_err *err);
    void (*on_wait)(void *arg, int64_t job, const struct xf_err *err);
    /* Nothing is under way and no listing is left: the owner may free it, not at once. */
    void (*on_over)(void *arg, struct xf_spread *s);
};

struct xf_spread_opts {
    struct xf_listing_limits limits;
    struct xf_side_env side;
    struct xf_store_port *port;
    const struct xf_spread_events *events;
    void *arg;
    int64_t job;
    uint32_t source_no;
    struct xf_str spec; /* migrate.toml */
    int64_t start_ms;   /* the job's start, wall clock; ages in [select] count from it */
};

/** Errors: XF_E_CONFIG, XF_E_UNSUPPORTED  the spec does not parse (a newer xfer's store). */
XF_MUST_CHECK enum xf_code
xf_spread_new(const struct xf_spread_opts *o, struct xf_spread **out, struct xf_err *err);
/** Only after on_over. */
void xf_spread_free(struct xf_spread *s);
/** List this open shard; what is wrong comes as on_failed or on_wait. */
void xf_spread_add(struct xf_spread *s, const struct xf_shard_row *shard);
void xf_spread_pause(struct xf_spread *s, bool on);
/** on_over follows, from the loop. */
void xf_spread_stop(struct xf_spread *s);

/** Does it list that source of the job (XF_SPREAD_ANY: any), and may it be given more? */
#define XF_SPREAD_ANY UINT32_MAX
bool xf_spread_is(const struct xf_spread *s, int64_t job, uint32_t source_no);
struct xf_list *xf_spread_link(struct xf_spread *s); /* for the owner's list */
struct xf_spread *xf_spread_of_link(struct xf_list *link);

#endif
