/*
 * coordinator.h - the coordinator as a whole: store, lister, sessions, jobs, status.
 *
 * One thread makes, runs and frees it (the core thread; it owns scheduler, sessions and numbers);
 * xf_coordinator_stop() may come from any. The same object serves the daemon and `xferctl run`,
 * which gives an inproc:// URL and no HTTP address.
 *
 * Crash: everything that matters is in the store. A new one on the same directory goes on: listings
 * from their cursors, leases with a full TTL.
 */
#ifndef XF_COORDINATOR_COORDINATOR_H
#define XF_COORDINATOR_COORDINATOR_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "coordinator/coord_conf.h"

struct xf_coordinator; /* opaque */
struct xf_loop;

struct xf_coordinator_opts {
    const struct xf_coord_conf *conf; /* borrowed; listen, data_dir and http are read from it */
    const struct xf_clock *clock;     /* NULL: the real one */
    const char *version;
    /* On the core thread, when the store is open, jobs are loaded and the bus accepts. */
    void (*on_ready)(void *arg);
    void *arg;
};

/**
 * Open everything. Errors: with place and remedy; XF_E_LOCKED when another coordinator has the
 * directory or a port is in use.
 */
XF_MUST_CHECK enum xf_code xf_coordinator_new(const struct xf_coordinator_opts *opts,
                                              struct xf_coordinator **out,
                                              struct xf_err *err);
/** Serve until stopped. XF_OK after a stop in good order. */
XF_MUST_CHECK enum xf_code xf_coordinator_run(struct xf_coordinator *c, struct xf_err *err);
/** Any thread: refuse new work, commit what is queued, fold the log, return from run. */
void xf_coordinator_stop(struct xf_coordinator *c);
void xf_coordinator_free(struct xf_coordinator *c);
XF_AUTO_DEFINE(xf_coordinator, xf_coordinator_free)

/** Where the bus listens, with the port that was chosen. */
const char *xf_coordinator_url(const struct xf_coordinator *c);
/** Where HTTP listens ("127.0.0.1:7680"); NULL: nowhere. */
const char *xf_coordinator_http(const struct xf_coordinator *c);
struct xf_loop *xf_coordinator_loop(struct xf_coordinator *c);

#endif
