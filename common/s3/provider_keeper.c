/*
 * provider_keeper.c - credentials that end, kept fresh by one thread for the whole process.
 *
 *   fetch -> hold -> (AHEAD_MS before the end, with jitter; or at once, when the service takes what
 *    ^        |       is held for ended) fetch -> ...
 *    +- pause +-- failed: what is held stays until it ends
 *
 * Every source of the process that wants the same keys shares a keeper, so that a metadata service
 * is asked once and not by each lane. Threads: any; the registry's lock goes before a
 * keeper's, and none is held while fetching.
 */
#include "common/base/clock.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/base/retry.h"
#include "common/base/rng.h"
#include "common/rt/thread.h"
#include "common/s3/provider_int.h"

#include <errno.h>
#include <time.h>

enum {
    FIRST_WAIT_MS = 15 * 1000, /* creds.h tells it */
    AHEAD_MS = 15 * 60 * 1000, /* new keys appear at least 5 minutes before the old ones end */
    LEAST_MS = 10 * 1000,      /* between two refreshes, whatever their times say */
    PAUSE_MIN_MS = 1000,       /* after a failure, before the growing wait of retry.h exceeds it */
    EARLY_MAX_MS = 500,        /* refused keys: hosts whose keys were withdrawn ask spread so far */
    STATIC_MS = 3600 * 1000    /* keys without an end are asked for again as well */
};

struct xf_creds_keeper {
    struct xf_list node; /* registry */
    unsigned refs;       /* under the registry's lock */
    char *name;
    const struct xf_creds_keeper_ops *ops;
    void *self;
    struct xf_thread thread;
    struct xf_rng rng;
    atomic_bool stop;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct xf_creds *held; /* NULL: none */
    struct xf_err err;     /* of the last fetch */
    bool has_tried;
    bool is_fetching;
    bool is_wanted;   /* what is held was refused */
    int64_t early_ms; /* mono; when it was last wanted so; 0: never */
    uint32_t fails;   /* fetches in a row */
};

static pthread_mutex_t registry_lock = PTHREAD_MUTEX_INITIALIZER;
static struct xf_list registry = {.next = &registry, .prev = &registry};

static void lock(pthread_mutex_t *m)
{
    XF_ASSERT(pthread_mutex_lock(m) == 0);
}

static void unlock(pthread_mutex_t *m)
{
    XF_ASSERT(pthread_mutex_unlock(m) == 0);
}

static void timed_wait(struct xf_creds_keeper *k, int64_t ms)
{
    struct timespec until;

    XF_ASSERT(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    until.tv_sec += (time_t)(ms / 1000);
    until.tv_nsec += (long)(ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    int rc = pthread_cond_timedwait(&k->changed, &k->lock, &until);
    XF_ASSERT(rc == 0 || rc == ETIMEDOUT);
}

/* How long what was fetched is left alone: up to a tenth less, so that a fleet does not ask at
 * once.
 */
static int64_t rest_ms(struct xf_creds_keeper *k)
{
    int64_t ends_ms = xf_creds_expires_ms(k->held);
    int64_t left =
        ends_ms == 0 ? STATIC_MS + AHEAD_MS : ends_ms - xf_clock_wall_ms(xf_clock_real());
    int64_t rest = left > 2 * (int64_t)AHEAD_MS ? left - AHEAD_MS : left / 2;

    rest -= (int64_t)xf_rng_below(&k->rng, (uint64_t)(rest > 10 ? rest / 10 : 1));
    return rest < LEAST_MS ? LEAST_MS : rest;
}

/* Take what a fetch gave; until the next one, in ms. */
static int64_t
note(struct xf_creds_keeper *k, enum xf_code rc, struct xf_creds *fresh, const struct xf_err *err)
{
    k->has_tried = true;
    k->is_fetching = false;
    k->err = *err;
    if (rc == XF_OK) {
        xf_creds_unref(k->held);
        k->held = fresh;
        k->fails = 0;
        return rest_ms(k);
    }
    if (!atomic_load(&k->stop)) {
        XF_WARN("credentials.not_refreshed", xf_f_c("of", k->name), xf_f_err(err));
    }
    return xf_retry_wait_ms(XF_CLASS_SLOW_DOWN, k->fails++, PAUSE_MIN_MS, &k->rng);
}

static void wait_out(struct xf_creds_keeper *k, int64_t ms)
{
    int64_t now = xf_clock_mono_ms(xf_clock_real());
    int64_t until = now + ms;
    bool is_early = false;

    while (!atomic_load(&k->stop) && now < until) {
        if (k->is_wanted && !is_early) {
            int64_t soon = now + (int64_t)xf_rng_below(&k->rng, EARLY_MAX_MS);

            is_early = true;
            until = soon < until ? soon : until;
        } else {
            timed_wait(k, until - now);
        }
        now = xf_clock_mono_ms(xf_clock_real());
    }
}

static void run(void *arg)
{
    struct xf_creds_keeper *k = arg;

    while (!atomic_load(&k->stop)) {
        struct xf_creds *fresh = NULL;
        struct xf_err err = {0};

        lock(&k->lock);
        k->is_fetching = true;
        k->is_wanted = false;
        unlock(&k->lock);
        enum xf_code rc = k->ops->fetch(k->self, &k->stop, &fresh, &err);
        lock(&k->lock);
        int64_t wait_ms = note(k, rc, fresh, &err);
        XF_ASSERT(pthread_cond_broadcast(&k->changed) == 0);
        wait_out(k, wait_ms);
        unlock(&k->lock);
    }
}

static void keeper_free(struct xf_creds_keeper *k)
{
    lock(&k->lock);
    atomic_store(&k->stop, true);
    XF_ASSERT(pthread_cond_broadcast(&k->changed) == 0);
    unlock(&k->lock);
    xf_thread_join(&k->thread);
    xf_creds_unref(k->held);
    k->ops->free(k->self);
    XF_ASSERT(pthread_mutex_destroy(&k->lock) == 0);
    XF_ASSERT(pthread_cond_destroy(&k->changed) == 0);
    xf_xfree(k->name);
    xf_xfree(k);
}

static enum xf_code keeper_new(const char *name,
                               const struct xf_creds_keeper_ops *ops,
                               void *self,
                               struct xf_creds_keeper **out,
                               struct xf_err *err)
{
    struct xf_creds_keeper *k = xf_xcalloc(1, sizeof(*k));
    pthread_condattr_t attr;

    k->refs = 1;
    k->name = xf_xstrdup(name);
    k->ops = ops;
    k->self = self;
    xf_rng_init_os(&k->rng);
    atomic_init(&k->stop, false);
    XF_ASSERT(pthread_mutex_init(&k->lock, NULL) == 0);
    XF_ASSERT(pthread_condattr_init(&attr) == 0);
    XF_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    XF_ASSERT(pthread_cond_init(&k->changed, &attr) == 0);
    XF_ASSERT(pthread_condattr_destroy(&attr) == 0);
    if (xf_thread_start(&k->thread, "xf-creds", run, k, err) != XF_OK) {
        keeper_free(k);
        return err->code;
    }
    *out = k;
    return XF_OK;
}

enum xf_code xf_creds_keeper_get(const char *name,
                                 const struct xf_creds_keeper_ops *ops,
                                 void *self,
                                 struct xf_creds_keeper **out,
                                 struct xf_err *err)
{
    enum xf_code rc = XF_OK;

    lock(&registry_lock);
    *out = NULL;
    XF_LIST_FOREACH (node, &registry) {
        struct xf_creds_keeper *k = XF_CONTAINER_OF(node, struct xf_creds_keeper, node);
        if (strcmp(k->name, name) == 0) {
            *out = k;
            k->refs++;
            break;
        }
    }
    if (*out != NULL) {
        ops->free(self);
    } else {
        rc = keeper_new(name, ops, self, out, err);
        if (rc == XF_OK && *out != NULL) {
            xf_list_push_back(&registry, &(*out)->node);
        }
    }
    unlock(&registry_lock);
    return rc;
}

void xf_creds_keeper_put(struct xf_creds_keeper *k)
{
    if (k == NULL) {
        return;
    }
    lock(&registry_lock);
    bool is_last = --k->refs == 0;
    if (is_last) {
        xf_list_remove(&k->node);
    }
    unlock(&registry_lock);
    if (is_last) {
        keeper_free(k);
    }
}

/* The provider was there, and will answer in a moment. */
static bool is_passing(const struct xf_err *err)
{
    return err->sub == 429 || (err->sub >= 500 && err->sub <= 599);
}

enum xf_code
xf_creds_keeper_take(struct xf_creds_keeper *k, struct xf_creds **out, struct xf_err *err)
{
    int64_t until = xf_clock_mono_ms(xf_clock_real()) + FIRST_WAIT_MS;
    enum xf_code rc = XF_OK;

    lock(&k->lock);
    while (k->held == NULL && (!k->has_tried || is_passing(&k->err)) &&
           xf_clock_mono_ms(xf_clock_real()) < until) {
        timed_wait(k, until - xf_clock_mono_ms(xf_clock_real()));
    }
    int64_t ends_ms = k->held != NULL ? xf_creds_expires_ms(k->held) : 0;
    bool is_over = ends_ms != 0 && ends_ms <= xf_clock_wall_ms(xf_clock_real());
    if (k->held != NULL && !(is_over && k->err.code != XF_OK)) {
        *out = xf_creds_ref(k->held);
    } else if (k->err.code != XF_OK) {
        *err = k->err;
        rc = err->code;
    } else {
        rc = XF_FAIL(err, XF_E_CREDS, "%s: no answer in %d s", k->name, FIRST_WAIT_MS / 1000);
    }
    unlock(&k->lock);
    return rc;
}

bool xf_creds_keeper_renew(struct xf_creds_keeper *k, const struct xf_creds *used)
{
    int64_t now = xf_clock_mono_ms(xf_clock_real());
    bool is_coming = false;

    lock(&k->lock);
    if (k->held == NULL || xf_creds_is_same(k->held, used)) {
        if (!k->is_fetching && !k->is_wanted && k->fails == 0 &&
            (k->early_ms == 0 || now - k->early_ms >= LEAST_MS)) {
            k->is_wanted = true;
            k->early_ms = now;
            XF_ASSERT(pthread_cond_broadcast(&k->changed) == 0);
        }
        is_coming = k->is_wanted || k->is_fetching;
    }
    unlock(&k->lock);
    return is_coming;
}
