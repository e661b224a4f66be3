/*
 * link.h - the agent's session with the coordinator, on the core loop.
 *
 * Says hello and again after a loss (with jitter), beats, keeps a long poll open, and carries
 * lease, job and fit requests. A request is repeated with the same bytes until it is answered or
 * the session ends, so the coordinator does it once. Each callback below runs exactly once, later.
 *
 * While the coordinator is away the link keeps trying and the session stays; leases end by the
 * runner's own deadline: xf_link_renewed_ms() + lease_ttl_ms - margin_ms.
 * Threads: one owner, the loop's.
 */
#ifndef XF_AGENT_LINK_H
#define XF_AGENT_LINK_H

#include "common/base/rng.h"
#include "common/net/bus.h"
#include "common/rt/loop.h"
#include "proto/msg.h"

struct xf_link; /* opaque */

/* What the runner does. Messages are borrowed for the call. */
struct xf_link_events {
    /** The leases worked on now, for hello: at most max into out; gives how many. */
    size_t (*get_held)(void *arg, struct xf_msg_held *out, size_t max);
    /** A session began. Leases held but not among r->kept are not ours any more. */
    void (*on_up)(void *arg, const struct xf_msg_hello_reply *r);
    /** The session ended (coordinator restarted, or it was too long away). hello is on its way. */
    void (*on_down)(void *arg);
    /** Refused for good (id in use, token, version): the process ends with the code's status. */
    void (*on_refused)(void *arg, const struct xf_err *err);
    /** Time to beat: fill m (all zero now); strings and lists come from the arena. */
    void (*fill_beat)(void *arg, struct xf_msg_beat *m, struct xf_arena *a);
    /** The answer to the last filled beat; sent_ms: monotonic time of its first sending. */
    void (*on_beat)(void *arg, const struct xf_msg_beat_reply *r, int64_t sent_ms);
    /** The last filled beat was not answered in this session: what it reported is to be reported
     * again. Before on_down. Also when the coordinator answered with an error (then no on_down). */
    void (*on_beat_lost)(void *arg);
    /** From a poll; those of beats are in on_beat. */
    void (*on_orders)(void *arg, const struct xf_msg_order *orders, size_t n);
};

struct xf_link_opts {
    struct xf_loop *loop;
    struct xf_bus_caller bus;
    const struct xf_link_events *events;
    void *arg;
    struct xf_str agent_id; /* this and the following strings are copied */
    struct xf_str instance; /* XF_INSTANCE_LEN bytes */
    struct xf_str version;
    struct xf_str host;
    struct xf_str token; /* empty: none */
    uint32_t lanes;
    uint64_t memory_bytes;
    int64_t try_ms; /* one try of a request; 0: 10,000 */
    uint64_t seed;  /* jitter and nonces; 0: from the system */
};

/** Begins with hello at the loop's next turn. */
struct xf_link *xf_link_new(const struct xf_link_opts *opts);
/** Without bye; no callback runs after this. */
void xf_link_free(struct xf_link *l);
XF_AUTO_DEFINE(xf_link, xf_link_free)

bool xf_link_is_up(const struct xf_link *l);
/** Monotonic time at which the last answered beat (or hello) was first sent; 0: none yet. */
int64_t xf_link_renewed_ms(const struct xf_link *l);

/** Beat as soon as the last beat is answered, not at the next tick: something is worth telling. */
void xf_link_beat_soon(struct xf_link *l);
/** Likewise, but more may gather for up to wait_ms (a duration). */
void xf_link_beat_within(struct xf_link *l, int64_t wait_ms);

/**
 * code: XF_OK with the reply; XF_E_STALE: the session ended first; else what the coordinator said.
 * err->msg has its text.
 */
typedef void(xf_link_lease_fn)(void *arg,
                               const struct xf_msg_lease_reply *r,
                               const struct xf_err *err);
typedef void(xf_link_job_fn)(void *arg, const struct xf_msg_job_reply *r, const struct xf_err *err);
typedef void(xf_link_done_fn)(void *arg, const struct xf_err *err);

/** One at a time; err->code is XF_OK when r is valid. Without a session: XF_E_STALE. */
void xf_link_lease(struct xf_link *l,
                   const struct xf_msg_lease *m,
                   xf_link_lease_fn *done,
                   void *arg);
/** These go one after another, in order; any number may wait. */
void xf_link_job(struct xf_link *l, struct xf_str job, xf_link_job_fn *done, void *arg);
void xf_link_fit(struct xf_link *l, const struct xf_msg_fit *m, xf_link_done_fn *done, void *arg);
/** The last thing said; no hello follows. done comes within deadline_ms (a duration) in any case.
 */
void xf_link_bye(
    struct xf_link *l, struct xf_str reason, int64_t deadline_ms, xf_link_done_fn *done, void *arg);

#endif
