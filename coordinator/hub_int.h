/*
 * hub_int.h - what hub.c (requests) and hub_session.c (sessions) share.
 */
#ifndef XF_COORDINATOR_HUB_INT_H
#define XF_COORDINATOR_HUB_INT_H

#include "common/base/list.h"
#include "common/base/map.h"
#include "common/base/rng.h"
#include "common/rt/thread.h"
#include "coordinator/hub.h"

enum {
    XF_HUB_TOKENS_MAX = 8, /* copies of one request that wait for its answer; the oldest goes */
    XF_HUB_SESSIONS = 1000,
    XF_HUB_SESSION_MS = 20000,
    XF_HUB_POLL_MS = 20000,
    XF_HUB_SWEEP_MS = 1000
};

struct session;

/* The numbers of one channel. Hello has a channel of its own here, with a nonce as its number. */
struct chan {
    uint64_t last_seq;
    struct xf_hub_req *open; /* the request last_seq, not answered yet */
    struct xf_buf kept;      /* its answer */
    bool has_kept;
};

enum { CHAN_HELLO = XF_CHANNEL_N, CHAN_N };

struct session {
    struct xf_hub_session pub;
    struct xf_hub *hub;
    struct xf_arena arena; /* backs the strings */
    struct chan chans[CHAN_N];
    struct xf_msg_order *orders; /* wait for a poll; their job ids are owned */
    size_t n_orders;
    struct xf_timer poll_timer;
    size_t at; /* in hub->sessions */
};

struct xf_hub_req {
    struct xf_list link; /* of hub->open */
    struct xf_hub *hub;
    struct session *session; /* NULL: an operator's, or its session or turn is over */
    struct chan *chan;       /* NULL when session is */
    const struct xf_kind_info *kind;
    uint64_t tokens[XF_HUB_TOKENS_MAX];
    size_t n_tokens;
    struct xf_arena arena;
};

struct xf_hub {
    struct xf_owner owner;
    struct xf_hub_opts o;
    struct xf_rng rng;
    struct session **sessions;
    size_t n_sessions;
    struct xf_map by_id;
    struct xf_map by_agent;
    struct xf_list open; /* requests handed over, not answered */
    size_t n_open;
    struct xf_timer sweep;
    int64_t sweep_at_ms;
    struct xf_hub_stats stats;
};

/** The bytes of a reply: an error, or OK with a body. */
void xf_hub_encode(
    uint32_t kind, enum xf_code code, struct xf_str text, struct xf_str body, struct xf_buf *out);
void xf_hub_refuse(
    struct xf_hub *h, uint64_t token, uint32_t kind, enum xf_code code, const char *text);
/** Nobody waits for it any more: with code XF_OK its tokens are dropped, else told the code. */
void xf_hub_orphan(struct xf_hub_req *r, enum xf_code code);

struct session *
xf_session_new(struct xf_hub *h, const struct xf_msg_hello *m, struct xf_str instance);
/** on_gone, then freed. */
void xf_session_end(struct session *s, enum xf_hub_gone why);
struct session *xf_session_of_instance(struct xf_hub *h, struct xf_str instance);
/** Answer the parked poll when there are orders, or in any case. */
void xf_session_answer_poll(struct session *s, bool in_any_case);
void xf_hub_sweep(struct xf_timer *t);
/** Frees what an order owns here. */
void xf_hub_order_fini(struct xf_msg_order *o);

#endif
