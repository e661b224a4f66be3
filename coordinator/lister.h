/*
 * lister.h - lists the sources of jobs into the store, on a thread of its own.
 *
 * A source is listed by as many requests at a time as its service takes (spread.h). Each shard of
 * it is walked by one listing: a page, its commit, the next page. The commit stores the
 * page's batches and moves the cursor in one transaction, so a crash repeats at most the page in
 * hand and loses none. A page that cannot be had is asked for again from the last good key; an
 * endpoint that is down, or trouble of this host's own, is waited for without end and told; after
 * too many other errors the listing fails: then its shard stays open in the store, and the job
 * cannot complete. The thread also runs the probes of submit.
 *
 * Threads: the functions and the events belong to the core loop.
 */
#ifndef XF_COORDINATOR_LISTER_H
#define XF_COORDINATOR_LISTER_H

#include "common/base/clock.h"
#include "common/s3/client.h"
#include "coordinator/listing.h"
#include "coordinator/probe.h"
#include "coordinator/store.h"

struct xf_lister; /* opaque */

struct xf_listing_start {
    const struct xf_shard_row *shard; /* open */
    struct xf_str spec;               /* migrate.toml */
    int64_t start_ms; /* the job's start, wall clock; ages in [select] count from it */
};

/* On the core loop. */
struct xf_lister_events {
    /** A page is committed; n_tasks of its batches and uploads are ready. */
    void (*on_page)(void *arg, int64_t job, size_t n_tasks);
    /** The shard is listed to its end, and closed. */
    void (*on_done)(void *arg, int64_t job, int64_t shard);
    /** It cannot be listed to its end. err: what, and after which key. */
    void (*on_failed)(void *arg, int64_t job, int64_t shard, const struct xf_err *err);
    /** It waits (code: why) or goes on again (XF_OK). */
    void (*on_wait)(void *arg, int64_t job, const struct xf_err *err);
    /** cookie: of xf_lister_probe(). */
    void (*on_probe)(void *arg, void *cookie, const struct xf_probe_result *res);
};

struct xf_lister_opts {
    struct xf_loop *loop; /* the core's */
    struct xf_store *store;
    const struct xf_clock *clock; /* NULL: the real one */
    const struct xf_lister_events *events;
    void *arg;
    struct xf_listing_limits limits;
    int64_t probe_timeout_ms;
    /* Called on the lister's thread after each request; may be NULL. */
    void (*on_request)(void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us);
    void *on_request_arg;
};

XF_MUST_CHECK enum xf_code
xf_lister_new(const struct xf_lister_opts *opts, struct xf_lister **out, struct xf_err *err);
/** Cancels what is in flight and ends the thread; no event comes after. Before the store closes. */
void xf_lister_free(struct xf_lister *l);
XF_AUTO_DEFINE(xf_lister, xf_lister_free)

void xf_lister_start(struct xf_lister *l, const struct xf_listing_start *s);
/** No new page for this job until it is let go on. */
void xf_lister_pause(struct xf_lister *l, int64_t job, bool on);
/** Forget the job's listings; a page whose commit is on the way may still arrive. */
void xf_lister_stop(struct xf_lister *l, int64_t job);
/** Probe a job that passed xf_job_spec_parse(); on_probe follows, exactly once. */
void xf_lister_probe(struct xf_lister *l, struct xf_str spec, void *cookie);

#endif
