/*
 * names.c - the table of names in use, and their lookups.
 *
 *   unknown --want--> looking (a thread) --> known --want after AGAIN_MS--> looking ...
 *
 * Invariant: a lookup's thread holds a reference, so that nobody waits for a resolver at the end.
 */
#include "common/s3/names.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/rt/thread.h"

#include <netdb.h>

enum {
    NAMES_MAX = 64, /* names known at a time; more are left to libcurl */
    NAME_BYTES = 254,
    AGAIN_MS = 30 * 1000,
    BAD_MS = 30 * 1000
};

struct address {
    struct xf_names_addr at;
    int64_t bad_until_ms; /* mono; 0: good */
};

struct name {
    struct xf_list node;
    char host[NAME_BYTES];
    struct address addrs[XF_NAMES_ADDRS_MAX];
    size_t n;
    size_t next;
    int64_t asked_ms; /* mono; 0: never */
    bool is_looking;
};

struct xf_names {
    unsigned refs; /* under the lock */
    struct xf_names_opts opts;
    pthread_mutex_t lock;
    struct xf_list names;
    size_t n;
};

struct lookup {
    struct xf_names *names;
    char host[NAME_BYTES];
};

static pthread_mutex_t process_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xf_names *process_names; /* while somebody uses it; holds no reference */

static void lock(pthread_mutex_t *m)
{
    XF_ASSERT(pthread_mutex_lock(m) == 0);
}

static void unlock(pthread_mutex_t *m)
{
    XF_ASSERT(pthread_mutex_unlock(m) == 0);
}

static bool is_same(const struct xf_names_addr *a, const struct xf_names_addr *b)
{
    if (a->u.any.sa_family != b->u.any.sa_family) {
        return false;
    }
    return a->u.any.sa_family == AF_INET
               ? a->u.ip4.sin_addr.s_addr == b->u.ip4.sin_addr.s_addr
               : memcmp(&a->u.ip6.sin6_addr, &b->u.ip6.sin6_addr, sizeof(a->u.ip6.sin6_addr)) == 0;
}

static struct name *find(struct xf_names *names, struct xf_str host)
{
    XF_LIST_FOREACH (node, &names->names) {
        struct name *n = XF_CONTAINER_OF(node, struct name, node);

        if (xf_str_eq_c(host, n->host)) {
            return n;
        }
    }
    return NULL;
}

static struct address *address_of(struct name *n, const struct xf_names_addr *at)
{
    for (size_t i = 0; i < n->n; i++) {
        if (is_same(&n->addrs[i].at, at)) {
            return &n->addrs[i];
        }
    }
    return NULL;
}

/* ---- life ---- */

struct xf_names *xf_names_new(const struct xf_names_opts *o)
{
    struct xf_names *names = xf_xcalloc(1, sizeof(*names));

    names->refs = 1;
    names->opts = *o;
    names->opts.clock = o->clock != NULL ? o->clock : xf_clock_real();
    xf_list_init(&names->names);
    XF_ASSERT(pthread_mutex_init(&names->lock, NULL) == 0);
    return names;
}

struct xf_names *xf_names_get(void)
{
    static const struct xf_names_opts none = {0};
    struct xf_names *names;

    lock(&process_lock);
    if (process_names == NULL) {
        process_names = xf_names_new(&none);
    } else {
        process_names->refs++;
    }
    names = process_names;
    unlock(&process_lock);
    return names;
}

/* The count is under the process's lock: a set may be the process's. */
void xf_names_put(struct xf_names *names)
{
    struct xf_list *node;

    if (names == NULL) {
        return;
    }
    lock(&process_lock);
    bool is_last = --names->refs == 0;
    if (is_last && names == process_names) {
        process_names = NULL;
    }
    unlock(&process_lock);
    if (!is_last) {
        return;
    }
    while ((node = xf_list_pop_front(&names->names)) != NULL) {
        xf_xfree(XF_CONTAINER_OF(node, struct name, node));
    }
    XF_ASSERT(pthread_mutex_destroy(&names->lock) == 0);
    xf_xfree(names);
}

/* ---- lookups ---- */

static size_t ask_resolver(void *arg, const char *host, struct xf_names_addr *out, size_t max)
{
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    size_t n = 0;

    (void)arg; /* there is one resolver */
    if (getaddrinfo(host, NULL, &hints, &list) != 0) {
        return 0; /* whoever connects is told why by libcurl */
    }
    for (const struct addrinfo *a = list; a != NULL && n < max; a = a->ai_next) {
        if ((a->ai_family == AF_INET || a->ai_family == AF_INET6) &&
            a->ai_addrlen <= sizeof(out[n].u)) {
            out[n].len = a->ai_addrlen;
            memcpy(&out[n].u, a->ai_addr, a->ai_addrlen);
            n++;
        }
    }
    freeaddrinfo(list);
    return n;
}

/* What is known of addresses that stay, stays. */
static void take_answer(struct name *n, const struct xf_names_addr *addrs, size_t count)
{
    struct name was = *n;

    n->n = count;
    for (size_t i = 0; i < count; i++) {
        const struct address *known = address_of(&was, &addrs[i]);

        n->addrs[i] = (struct address){.at = addrs[i],
                                       .bad_until_ms = known != NULL ? known->bad_until_ms : 0};
    }
}

static void look(void *arg)
{
    struct lookup *l = arg;
    struct xf_names *names = l->names;
    struct xf_names_addr addrs[XF_NAMES_ADDRS_MAX];
    size_t count = names->opts.lookup != NULL
                       ? names->opts.lookup(names->opts.arg, l->host, addrs, XF_NAMES_ADDRS_MAX)
                       : ask_resolver(NULL, l->host, addrs, XF_NAMES_ADDRS_MAX);

    lock(&names->lock);
    struct name *n = find(names, xf_str_c(l->host));
    n->is_looking = false; /* names are not forgotten while a reference is held */
    if (count > 0) {       /* else the old ones are better than none */
        take_answer(n, addrs, count);
    }
    unlock(&names->lock);
    XF_DEBUG("name.looked_up", xf_f_c("host", l->host), xf_f_u64("addresses", count));
    xf_xfree(l);
    xf_names_put(names);
}

/* With the lock. */
static void start_lookup_locked(struct xf_names *names, struct name *n)
{
    struct lookup *l = xf_xcalloc(1, sizeof(*l));
    struct xf_thread thread = {0};
    struct xf_err err;

    n->asked_ms = xf_clock_mono_ms(names->opts.clock);
    memcpy(l->host, n->host, sizeof(l->host));
    l->names = names;
    lock(&process_lock);
    names->refs++;
    unlock(&process_lock);
    n->is_looking = true;
    if (xf_thread_start(&thread, "xf-name", look, l, &err) == XF_OK) {
        XF_ASSERT(pthread_detach(thread.id) == 0);
        return;
    }
    n->is_looking = false; /* libcurl's own lookups have to do */
    xf_xfree(l);
    lock(&process_lock);
    names->refs--; /* the caller has one */
    unlock(&process_lock);
}

void xf_names_want(struct xf_names *names, struct xf_str host)
{
    if (host.len == 0 || host.len >= NAME_BYTES) {
        return;
    }
    lock(&names->lock);
    struct name *n = find(names, host);
    if (n == NULL && names->n < NAMES_MAX) {
        n = xf_xcalloc(1, sizeof(*n));
        memcpy(n->host, host.ptr, host.len);
        xf_list_push_back(&names->names, &n->node);
        names->n++;
    }
    if (n != NULL && !n->is_looking &&
        (n->asked_ms == 0 || xf_clock_mono_ms(names->opts.clock) - n->asked_ms >= AGAIN_MS)) {
        start_lookup_locked(names, n);
    }
    unlock(&names->lock);
}

/* ---- turns ---- */

/* The next good one of that family; with none good, the one that was bad longest ago. */
static const struct address *choose(struct name *n, sa_family_t family, int64_t now_ms)
{
    const struct address *best = NULL;

    for (size_t i = 0; i < n->n; i++) {
        const struct address *a = &n->addrs[(n->next + i) % n->n];

        if (a->at.u.any.sa_family != family) {
            continue;
        }
        if (a->bad_until_ms <= now_ms) {
            n->next = (n->next + i + 1) % n->n;
            return a;
        }
        if (best == NULL || a->bad_until_ms < best->bad_until_ms) {
            best = a;
        }
    }
    return best;
}

void xf_names_turn(struct xf_names *names, struct xf_str host, struct xf_names_addr *addr)
{
    const struct address *a = NULL;

    lock(&names->lock);
    struct name *n = find(names, host);
    if (n != NULL && address_of(n, addr) != NULL) {
        a = choose(n, addr->u.any.sa_family, xf_clock_mono_ms(names->opts.clock));
    }
    if (a != NULL && a->at.u.any.sa_family == AF_INET) {
        addr->u.ip4.sin_addr = a->at.u.ip4.sin_addr; /* the port is the caller's */
    } else if (a != NULL) {
        addr->u.ip6.sin6_addr = a->at.u.ip6.sin6_addr;
        addr->u.ip6.sin6_scope_id = a->at.u.ip6.sin6_scope_id;
    }
    unlock(&names->lock);
}

static bool has_good(const struct name *n, sa_family_t family, int64_t now_ms)
{
    for (size_t i = 0; i < n->n; i++) {
        if (n->addrs[i].at.u.any.sa_family == family && n->addrs[i].bad_until_ms <= now_ms) {
            return true;
        }
    }
    return false;
}

bool xf_names_bad(struct xf_names *names, const struct xf_names_addr *addr)
{
    int64_t now_ms = xf_clock_mono_ms(names->opts.clock);
    bool has_other = false;

    lock(&names->lock);
    XF_LIST_FOREACH (node, &names->names) {
        struct name *n = XF_CONTAINER_OF(node, struct name, node);
        struct address *a = address_of(n, addr);

        if (a != NULL) {
            a->bad_until_ms = now_ms + BAD_MS;
            has_other = has_other || has_good(n, addr->u.any.sa_family, now_ms);
        }
    }
    unlock(&names->lock);
    return has_other;
}
