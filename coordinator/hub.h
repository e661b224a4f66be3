/*
 * hub.h - sessions of agents and requests of operators, on the core loop.
 *
 * The hub decodes requests, checks version, role, session and sequence number, and hands each
 * request to the coordinator exactly once; the coordinator answers it then or later. A request that
 * arrives again gets the same bytes, also while the first is still being worked on. Long polls are
 * parked here.
 *
 * Crash: sessions live in memory. After a restart an agent's next request is refused as stale, it
 *        says hello again with the leases it holds, and goes on.
 * Threads: one owner, the loop's.
 */
#ifndef XF_COORDINATOR_HUB_H
#define XF_COORDINATOR_HUB_H

#include "common/net/bus.h"
#include "common/rt/loop.h"
#include "proto/msg.h"

struct xf_hub;     /* opaque */
struct xf_hub_req; /* opaque: one request that waits for its answer */

/* One agent process's connection life. Strings live as long as the session. */
struct xf_hub_session {
    uint64_t id;
    struct xf_str agent_id;
    unsigned char instance[XF_INSTANCE_LEN];
    struct xf_str version;
    struct xf_str host;
    uint32_t lanes;
    uint64_t memory_bytes;
    int64_t began_ms;     /* monotonic */
    int64_t last_seen_ms; /* monotonic; of its last request */
    void *user;           /* the coordinator's */
};

enum xf_hub_gone {
    XF_HUB_TIMED_OUT,  /* nothing heard for session_ms */
    XF_HUB_SUPERSEDED, /* its own instance said hello again: the old process or connection is dead;
                          on_hello of the new session follows */
    XF_HUB_BYE,        /* it said so; on_bye was answered before */
    XF_HUB_CLOSED      /* the hub is being freed, or its hello was answered with an error */
};
const char *xf_hub_gone_name(enum xf_hub_gone why); /* "timed_out" */

/*
 * What the coordinator does. Messages are borrowed until the request is answered. Each request is
 * answered exactly once by xf_hub_reply() or xf_hub_fail(), inside the call or later; it stays
 * valid until then, also when its session ends meanwhile (the answer then goes nowhere).
 */
struct xf_hub_events {
    void (*on_hello)(void *arg,
                     struct xf_hub_session *s,
                     const struct xf_msg_hello *m,
                     struct xf_hub_req *r);
    void (*on_lease)(void *arg,
                     struct xf_hub_session *s,
                     const struct xf_msg_lease *m,
                     struct xf_hub_req *r);
    void (*on_job)(void *arg,
                   struct xf_hub_session *s,
                   const struct xf_msg_job *m,
                   struct xf_hub_req *r);
    void (*on_beat)(void *arg,
                    struct xf_hub_session *s,
                    const struct xf_msg_beat *m,
                    struct xf_hub_req *r);
    void (*on_fit)(void *arg,
                   struct xf_hub_session *s,
                   const struct xf_msg_fit *m,
                   struct xf_hub_req *r);
    void (*on_bye)(void *arg,
                   struct xf_hub_session *s,
                   const struct xf_msg_bye *m,
                   struct xf_hub_req *r);
    /** kind: XF_KIND_SUBMIT and following; m is the struct of that kind's request. */
    void (*on_operator)(void *arg, enum xf_kind kind, const void *m, struct xf_hub_req *r);
    /** The session is freed when this returns. */
    void (*on_gone)(void *arg, struct xf_hub_session *s, enum xf_hub_gone why);
};

struct xf_hub_opts {
    struct xf_loop *loop;
    struct xf_bus_answerer bus;
    const struct xf_hub_events *events;
    void *arg;
    const char *version;               /* of the program */
    size_t sessions_max;               /* 0: 1000; one more hello is refused as busy */
    int64_t session_ms;                /* 0: 20,000 */
    int64_t poll_ms;                   /* 0: 20,000; longest time that a poll is parked */
    const struct xf_str *agent_tokens; /* borrowed; with any token set, roles are checked */
    size_t n_agent_tokens;
    const struct xf_str *operator_tokens;
    size_t n_operator_tokens;
    bool require_token; /* refuse every request of a role that has no token set */
    uint64_t seed;      /* of session ids; 0: from the system */
};

/** opts is copied, but for what it borrows. */
struct xf_hub *xf_hub_new(const struct xf_hub_opts *opts);
/** Parked polls are answered, other open requests dropped; on_gone for each session. */
void xf_hub_free(struct xf_hub *h);
XF_AUTO_DEFINE(xf_hub, xf_hub_free)

/** A request came in; give this to xf_bus_listen() with the hub as arg. */
void xf_hub_on_request(void *hub, uint64_t token, struct xf_str bytes);

/**
 * Answer with the struct of the kind's reply (schema.h, XF_KINDS). In hello's the hub itself fills
 * session, poll_ms and version. A reply that cannot be encoded becomes its error.
 */
void xf_hub_reply(struct xf_hub_req *r, const void *m);
/** Answer with an error; code is not XF_OK. text: at most XF_TEXT_MAX is sent. */
void xf_hub_fail(struct xf_hub_req *r, enum xf_code code, struct xf_str text);
/** NULL for an operator's, or when the session has ended. */
struct xf_hub_session *xf_hub_req_session(const struct xf_hub_req *r);
/** Memory that lives until the request is answered. */
struct xf_arena *xf_hub_req_arena(struct xf_hub_req *r);

/**
 * Tell a session something by its long poll, at once when one is parked, else by its next. The
 * order is copied. A newer order about the same job, task or drain replaces one that waits.
 */
void xf_hub_order(struct xf_hub *h, struct xf_hub_session *s, const struct xf_msg_order *o);

struct xf_hub_session *xf_hub_find(struct xf_hub *h, uint64_t id);
struct xf_hub_session *xf_hub_find_agent(struct xf_hub *h, struct xf_str agent_id);
/** Walk: *at starts at 0; NULL at the end. Sessions must not come or go meanwhile. */
struct xf_hub_session *xf_hub_next(struct xf_hub *h, size_t *at);

struct xf_hub_stats {
    size_t sessions;
    size_t open_requests; /* handed over, not answered */
    size_t parked_polls;
    uint64_t requests;
    uint64_t replayed;      /* arrived again and got the kept bytes, or waits for them */
    uint64_t old_refused;   /* a sequence number that was passed already */
    uint64_t stale_refused; /* of a session that is not here */
    uint64_t denied;
    uint64_t malformed;
};
void xf_hub_stats(const struct xf_hub *h, struct xf_hub_stats *out);

#endif
