/*
 * lease.c - a map by task and a list by deadline.
 *
 * Invariants:
 * 1. A task has at most one lease here.
 * 2. The list is ordered by deadline: all leases get the same TTL and time does not go back, so a
 *    renewed lease goes to the end.
 */
#include "coordinator/lease.h"

#include "common/base/err.h"

void xf_leases_init(struct xf_leases *l, int64_t ttl_ms, int64_t margin_ms)
{
    l->ttl_ms = ttl_ms;
    l->margin_ms = margin_ms;
    xf_map_init(&l->by_task);
    xf_list_init(&l->all);
}

static void drop(struct xf_leases *l, struct xf_lease *lease)
{
    (void)xf_map_take(&l->by_task, xf_map_key_u64(&lease->task)); /* gives `lease` itself */
    xf_list_remove(&lease->link);
    xf_xfree(lease);
}

void xf_leases_fini(struct xf_leases *l)
{
    XF_LIST_FOREACH (node, &l->all) {
        drop(l, XF_CONTAINER_OF(node, struct xf_lease, link));
    }
    xf_map_fini(&l->by_task);
}

void xf_leases_add(struct xf_leases *l, const struct xf_lease *lease, int64_t now_ms)
{
    struct xf_lease *old = xf_leases_get(l, (int64_t)lease->task);
    struct xf_lease *mine = xf_xcalloc(1, sizeof(*mine));

    if (old != NULL) {
        XF_ASSERT(old->attempt <= lease->attempt);
        drop(l, old);
    }
    *mine = *lease;
    mine->link = (struct xf_list){NULL, NULL};
    mine->is_ending = false;
    mine->began_ms = now_ms;
    mine->deadline_ms = now_ms + l->ttl_ms;
    (void)xf_map_put(&l->by_task, xf_map_key_u64(&mine->task), mine); /* no old one is left */
    xf_list_push_back(&l->all, &mine->link);
}

struct xf_lease *xf_leases_get(const struct xf_leases *l, int64_t task)
{
    uint64_t key = (uint64_t)task;

    return xf_map_get(&l->by_task, xf_map_key_u64(&key));
}

bool xf_leases_renew(
    struct xf_leases *l, int64_t task, uint32_t attempt, uint64_t holder, int64_t now_ms)
{
    struct xf_lease *lease = xf_leases_get(l, task);

    if (lease == NULL || lease->attempt != attempt || lease->holder != holder || lease->is_ending) {
        return false;
    }
    lease->deadline_ms = now_ms + l->ttl_ms;
    xf_list_remove(&lease->link);
    xf_list_push_back(&l->all, &lease->link);
    return true;
}

bool xf_leases_end(struct xf_leases *l, int64_t task, uint32_t attempt)
{
    struct xf_lease *lease = xf_leases_get(l, task);

    if (lease == NULL || lease->attempt != attempt) {
        return false;
    }
    drop(l, lease);
    return true;
}

struct xf_lease *xf_leases_expired(struct xf_leases *l, int64_t now_ms)
{
    XF_LIST_FOREACH (node, &l->all) {
        struct xf_lease *lease = XF_CONTAINER_OF(node, struct xf_lease, link);
        if (lease->deadline_ms + l->margin_ms > now_ms) {
            return NULL;
        }
        if (!lease->is_ending) {
            return lease;
        }
    }
    return NULL;
}

int64_t xf_leases_next_ms(const struct xf_leases *l)
{
    XF_LIST_FOREACH (node, &l->all) {
        const struct xf_lease *lease = XF_CONTAINER_OF(node, struct xf_lease, link);
        if (!lease->is_ending) {
            return lease->deadline_ms + l->margin_ms;
        }
    }
    return INT64_MAX;
}

void xf_leases_each(struct xf_leases *l,
                    uint64_t holder,
                    void (*each)(void *arg, struct xf_lease *lease),
                    void *arg)
{
    XF_LIST_FOREACH (node, &l->all) {
        struct xf_lease *lease = XF_CONTAINER_OF(node, struct xf_lease, link);
        if (holder == 0 || lease->holder == holder) {
            each(arg, lease);
        }
    }
}

bool xf_leases_is_weak_death(const struct xf_leases *l,
                             const struct xf_lease *lease,
                             int64_t now_ms)
{
    if (now_ms - lease->began_ms < l->ttl_ms) {
        return true;
    }
    XF_LIST_FOREACH (node, &l->all) {
        const struct xf_lease *other = XF_CONTAINER_OF(node, struct xf_lease, link);
        if (other != lease && other->holder == lease->holder) {
            return true;
        }
    }
    return false;
}

size_t xf_leases_count(const struct xf_leases *l, uint64_t holder, uint64_t *objects)
{
    size_t n = 0;

    *objects = 0;
    XF_LIST_FOREACH (node, &l->all) {
        const struct xf_lease *lease = XF_CONTAINER_OF(node, struct xf_lease, link);
        if (holder == 0 || lease->holder == holder) {
            n++;
            *objects += lease->objects;
        }
    }
    return n;
}
