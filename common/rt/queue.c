/*
 * queue.c - a ring under a mutex, two condition variables and an eventfd.
 *
 * The eventfd is written only when the queue turns from empty to not empty and a loop is attached,
 * so a busy queue costs no system call an item.
 */
#include "common/rt/queue.h"

#include <errno.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

struct xf_queue {
    pthread_mutex_t lock;
    pthread_cond_t not_full;
    pthread_cond_t not_empty;
    void **ring;
    size_t ring_cap;
    size_t head;
    size_t len;
    size_t cap;
    bool closed;
    int event_fd;
    struct xf_loop *loop;
    struct xf_watch watch;
    void (*cb)(void *arg);
    void *arg;
};

static void lock(struct xf_queue *q)
{
    XF_ASSERT(pthread_mutex_lock(&q->lock) == 0);
}

static void unlock(struct xf_queue *q)
{
    XF_ASSERT(pthread_mutex_unlock(&q->lock) == 0);
}

enum xf_code xf_queue_new(size_t cap, struct xf_queue **out, struct xf_err *err)
{
    struct xf_queue *q = xf_xcalloc(1, sizeof(*q));
    pthread_condattr_t attr;

    q->cap = cap;
    q->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (q->event_fd < 0) {
        enum xf_code rc =
            XF_FAIL_SUB(err, XF_E_IO, errno, "cannot make a queue: %s", xf_errno_text(errno));
        xf_xfree(q);
        return rc;
    }
    XF_ASSERT(pthread_mutex_init(&q->lock, NULL) == 0);
    XF_ASSERT(pthread_condattr_init(&attr) == 0);
    XF_ASSERT(pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    XF_ASSERT(pthread_cond_init(&q->not_full, &attr) == 0);
    XF_ASSERT(pthread_cond_init(&q->not_empty, &attr) == 0);
    XF_ASSERT(pthread_condattr_destroy(&attr) == 0);
    *out = q;
    return XF_OK;
}

void xf_queue_free(struct xf_queue *q)
{
    if (q == NULL) {
        return;
    }
    xf_queue_detach(q);
    xf_auto_close(&q->event_fd);
    XF_ASSERT(pthread_mutex_destroy(&q->lock) == 0);
    XF_ASSERT(pthread_cond_destroy(&q->not_full) == 0);
    XF_ASSERT(pthread_cond_destroy(&q->not_empty) == 0);
    xf_xfree(q->ring);
    xf_xfree(q);
}

static void put_locked(struct xf_queue *q, void *item)
{
    if (q->len == q->ring_cap) {
        size_t cap = q->ring_cap == 0 ? 64 : q->ring_cap * 2;
        void **ring = xf_xcalloc(cap, sizeof(void *));
        for (size_t i = 0; i < q->len; i++) {
            ring[i] = q->ring[(q->head + i) % q->ring_cap];
        }
        xf_xfree(q->ring);
        q->ring = ring;
        q->ring_cap = cap;
        q->head = 0;
    }
    q->ring[(q->head + q->len) % q->ring_cap] = item;
    q->len++;
    if (q->len == 1) {
        if (q->loop != NULL) {
            uint64_t one = 1;
            (void)!write(q->event_fd, &one, sizeof(one)); /* a full counter wakes it as well */
        }
        XF_ASSERT(pthread_cond_signal(&q->not_empty) == 0);
    }
}

bool xf_queue_push(struct xf_queue *q, void *item)
{
    lock(q);
    bool ok = !q->closed && q->len < q->cap;
    if (ok) {
        put_locked(q, item);
    }
    unlock(q);
    return ok;
}

bool xf_queue_push_wait(struct xf_queue *q, void *item)
{
    lock(q);
    while (!q->closed && q->len >= q->cap) {
        XF_ASSERT(pthread_cond_wait(&q->not_full, &q->lock) == 0);
    }
    bool ok = !q->closed;
    if (ok) {
        put_locked(q, item);
    }
    unlock(q);
    return ok;
}

void xf_queue_push_reserved(struct xf_queue *q, void *item)
{
    lock(q);
    put_locked(q, item);
    unlock(q);
}

static void *take_locked(struct xf_queue *q)
{
    if (q->len == 0) {
        return NULL;
    }
    void *item = q->ring[q->head];
    q->head = (q->head + 1) % q->ring_cap;
    q->len--;
    if (q->len + 1 >= q->cap) {
        XF_ASSERT(pthread_cond_broadcast(&q->not_full) == 0);
    }
    return item;
}

void *xf_queue_pop(struct xf_queue *q)
{
    lock(q);
    void *item = take_locked(q);
    unlock(q);
    return item;
}

void *xf_queue_pop_wait(struct xf_queue *q, int64_t ms)
{
    struct timespec until;

    XF_ASSERT(clock_gettime(CLOCK_MONOTONIC, &until) == 0);
    if (ms > 0) {
        until.tv_sec += (time_t)(ms / 1000);
        until.tv_nsec += (long)(ms % 1000) * 1000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_sec++;
            until.tv_nsec -= 1000000000;
        }
    }
    lock(q);
    while (q->len == 0 && !q->closed) {
        int rc = ms < 0 ? pthread_cond_wait(&q->not_empty, &q->lock)
                        : pthread_cond_timedwait(&q->not_empty, &q->lock, &until);
        if (rc == ETIMEDOUT) {
            break;
        }
        XF_ASSERT(rc == 0);
    }
    void *item = take_locked(q);
    unlock(q);
    return item;
}

void xf_queue_close(struct xf_queue *q)
{
    lock(q);
    q->closed = true;
    XF_ASSERT(pthread_cond_broadcast(&q->not_empty) == 0);
    XF_ASSERT(pthread_cond_broadcast(&q->not_full) == 0);
    unlock(q);
}

size_t xf_queue_len(struct xf_queue *q)
{
    lock(q);
    size_t n = q->len;
    unlock(q);
    return n;
}

static void on_readable(struct xf_watch *w, unsigned events)
{
    struct xf_queue *q = w->arg;
    uint64_t count;

    (void)events;                              /* only readability is asked for */
    (void)!read(w->fd, &count, sizeof(count)); /* the ring tells what is there */
    q->cb(q->arg);
    /* What the callback left, or what came while it ran, must wake the loop again: a push is told
     * only when the queue turns from empty to not empty. */
    if (q->loop != NULL && xf_queue_len(q) > 0) {
        uint64_t one = 1;
        (void)!write(q->event_fd, &one, sizeof(one)); /* a full counter wakes it as well */
    }
}

enum xf_code xf_queue_attach(
    struct xf_queue *q, struct xf_loop *l, void (*cb)(void *arg), void *arg, struct xf_err *err)
{
    q->cb = cb;
    q->arg = arg;
    q->watch = (struct xf_watch){.fd = q->event_fd, .cb = on_readable, .arg = q};
    XF_TRY(xf_watch_start(l, &q->watch, XF_LOOP_IN, err));
    lock(q);
    q->loop = l;
    if (q->len > 0) {
        uint64_t one = 1;
        (void)!write(q->event_fd, &one, sizeof(one)); /* a full counter wakes it as well */
    }
    unlock(q);
    return XF_OK;
}

void xf_queue_detach(struct xf_queue *q)
{
    lock(q);
    struct xf_loop *l = q->loop;
    q->loop = NULL;
    unlock(q);
    if (l != NULL) {
        xf_watch_stop(l, &q->watch);
    }
}
