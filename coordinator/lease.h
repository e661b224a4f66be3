/*
 * lease.h - deadlines of what is leased, in memory, by the monotonic clock.
 *
 * The store holds who owns a task and its attempt; this table holds until when. A heartbeat renews
 * without a row written. Crash: after a restart every lease of the store is added again with a full
 * TTL. A lease is over for others only at TTL plus margin, since its holder stops writing at TTL
 * minus margin by its own clock. Threads: one owner.
 */
#ifndef XF_COORDINATOR_LEASE_H
#define XF_COORDINATOR_LEASE_H

#include "common/base/list.h"
#include "common/base/map.h"

#include <stdint.h>

struct xf_lease {
    uint64_t task; /* key of the map */
    int64_t job;
    int64_t upload; /* 0: none */
    uint32_t attempt;
    uint32_t kind;              /* enum xf_task_kind */
    uint64_t bytes;             /* of its objects, or of the upload's */
    uint32_t objects;           /* not reported yet */
    uint64_t holder;            /* the caller's number for an agent's process */
    unsigned char instance[16]; /* of that process, the store's fence */
    int64_t began_ms;           /* set by xf_leases_add() */
    int64_t deadline_ms;
    bool is_ending;      /* its give-back or end is on the way to the store: it does not expire */
    struct xf_list link; /* all leases, oldest deadline first */
};

struct xf_leases {
    int64_t ttl_ms;
    int64_t margin_ms;
    struct xf_map by_task;
    struct xf_list all;
};

void xf_leases_init(struct xf_leases *l, int64_t ttl_ms, int64_t margin_ms);
void xf_leases_fini(struct xf_leases *l);

/** Add, or replace an older attempt of the same task. `lease->task` etc. are copied. */
void xf_leases_add(struct xf_leases *l, const struct xf_lease *lease, int64_t now_ms);

/** The lease of a task, whatever its attempt; NULL when nobody holds it. Borrowed. */
struct xf_lease *xf_leases_get(const struct xf_leases *l, int64_t task);

/** A full TTL from now. False (stale) when this holder has no lease with this attempt. */
bool xf_leases_renew(
    struct xf_leases *l, int64_t task, uint32_t attempt, uint64_t holder, int64_t now_ms);

/** The lease ended (done, given back). False when it is not there with this attempt. */
bool xf_leases_end(struct xf_leases *l, int64_t task, uint32_t attempt);

/**
 * A lease whose deadline plus margin has passed and which is not ending, or NULL. The caller marks
 * it is_ending or ends it, and asks again.
 */
struct xf_lease *xf_leases_expired(struct xf_leases *l, int64_t now_ms);

/** When the next one expires; INT64_MAX when there is none. */
int64_t xf_leases_next_ms(const struct xf_leases *l);

/** Call `each` for every lease of a holder (0: of all); it may end the one it is given. */
void xf_leases_each(struct xf_leases *l,
                    uint64_t holder,
                    void (*each)(void *arg, struct xf_lease *lease),
                    void *arg);

/**
 * Is there little reason to blame the task for its holder's death? The holder had other tasks too,
 * or died sooner than one TTL, as a process does that somebody stops and starts.
 */
bool xf_leases_is_weak_death(const struct xf_leases *l,
                             const struct xf_lease *lease,
                             int64_t now_ms);

size_t xf_leases_count(const struct xf_leases *l, uint64_t holder, uint64_t *objects);

#endif
