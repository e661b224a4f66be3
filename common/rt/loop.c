/*
 * loop.c - epoll, a binary heap of timers, signalfd and an eventfd to stop.
 *
 * Invariants:
 * 1. A watch's slot holds its pointer and a generation; an event of an older generation is dropped,
 *    so a watch stopped in the same turn never gets a late callback.
 * 2. timers[1..n] is a min-heap by at_ms; t->heap_idx is its place, 0 when it is not in.
 * 3. "now" changes only at the start of a turn.
 */
#include "common/rt/loop.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

enum { EVENTS_A_TURN = 256 };

struct slot {
    struct xf_watch *watch; /* NULL: free */
    uint32_t generation;
    uint32_t next_free;
};

struct xf_loop {
    const struct xf_clock *clock;
    int epoll_fd;
    int stop_fd;
    int signal_fd;
    _Atomic bool stopping;
    int64_t mono_ms;
    int64_t wall_ms;
    bool rearmed;       /* a callback started a timer that is due already */
    struct slot *slots; /* slot 0 is never used */
    uint32_t n_slots;
    uint32_t free_slot;
    struct xf_timer **timers;
    size_t n_timers;
    size_t cap_timers;
    void (*turn_cb)(void *arg, int64_t mono_ms);
    void *turn_arg;
    void (*signal_cb)(void *arg, int signo);
    void *signal_arg;
    struct xf_watch signal_watch;
    struct xf_watch stop_watch;
};

static void read_clock(struct xf_loop *l)
{
    l->mono_ms = xf_clock_mono_ms(l->clock);
    l->wall_ms = xf_clock_wall_ms(l->clock);
}

static uint32_t to_epoll(unsigned events)
{
    return ((events & XF_LOOP_IN) != 0 ? (uint32_t)EPOLLIN : 0) |
           ((events & XF_LOOP_OUT) != 0 ? (uint32_t)EPOLLOUT : 0);
}

static uint32_t take_slot(struct xf_loop *l, struct xf_watch *w)
{
    if (l->free_slot == 0) {
        uint32_t old = l->n_slots;
        l->n_slots = old == 0 ? 16 : old * 2;
        l->slots = xf_xrealloc(l->slots, l->n_slots, sizeof(*l->slots));
        for (uint32_t i = old == 0 ? 1 : old; i < l->n_slots; i++) {
            l->slots[i] = (struct slot){NULL, 0, i + 1 < l->n_slots ? i + 1 : 0};
        }
        l->free_slot = old == 0 ? 1 : old;
    }
    uint32_t s = l->free_slot;
    l->free_slot = l->slots[s].next_free;
    l->slots[s].watch = w;
    l->slots[s].generation++;
    return s;
}

static enum xf_code control(struct xf_loop *l, int op, const struct xf_watch *w, struct xf_err *err)
{
    struct epoll_event ev = {.events = to_epoll(w->events)};

    ev.data.u64 = (uint64_t)l->slots[w->slot].generation << 32 | w->slot;
    if (epoll_ctl(l->epoll_fd, op, w->fd, &ev) != 0) {
        return XF_FAIL_SUB(
            err, XF_E_IO, errno, "cannot watch descriptor %d: %s", w->fd, xf_errno_text(errno));
    }
    return XF_OK;
}

static void give_slot(struct xf_loop *l, struct xf_watch *w)
{
    struct slot *s = &l->slots[w->slot];

    s->watch = NULL;
    s->generation++;
    s->next_free = l->free_slot;
    l->free_slot = w->slot;
    w->slot = 0;
}

enum xf_code
xf_watch_start(struct xf_loop *l, struct xf_watch *w, unsigned events, struct xf_err *err)
{
    w->events = events;
    w->slot = take_slot(l, w);
    enum xf_code rc = control(l, EPOLL_CTL_ADD, w, err);
    if (rc != XF_OK) {
        give_slot(l, w);
    }
    return rc;
}

enum xf_code
xf_watch_change(struct xf_loop *l, struct xf_watch *w, unsigned events, struct xf_err *err)
{
    if (w->events == events) {
        return XF_OK;
    }
    w->events = events;
    return control(l, EPOLL_CTL_MOD, w, err);
}

void xf_watch_stop(struct xf_loop *l, struct xf_watch *w)
{
    if (w->slot == 0) {
        return;
    }
    /* A descriptor that is already closed has left the set by itself. */
    (void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, w->fd, NULL);
    give_slot(l, w);
}

/* ---- timers ---- */

static void place(struct xf_loop *l, size_t i, struct xf_timer *t)
{
    l->timers[i] = t;
    t->heap_idx = i;
}

static void sift_up(struct xf_loop *l, size_t i)
{
    struct xf_timer *t = l->timers[i];

    while (i > 1 && l->timers[i / 2]->at_ms > t->at_ms) {
        place(l, i, l->timers[i / 2]);
        i /= 2;
    }
    place(l, i, t);
}

static void sift_down(struct xf_loop *l, size_t i)
{
    struct xf_timer *t = l->timers[i];

    for (;;) {
        size_t child = i * 2;
        if (child > l->n_timers) {
            break;
        }
        if (child < l->n_timers && l->timers[child + 1]->at_ms < l->timers[child]->at_ms) {
            child++;
        }
        if (l->timers[child]->at_ms >= t->at_ms) {
            break;
        }
        place(l, i, l->timers[child]);
        i = child;
    }
    place(l, i, t);
}

void xf_timer_at(struct xf_loop *l, struct xf_timer *t, int64_t mono_ms)
{
    if (mono_ms <= l->mono_ms) {
        l->rearmed = true; /* due at once: waits for the next turn, so that a turn ends */
    }
    if (t->heap_idx != 0) {
        t->at_ms = mono_ms;
        size_t i = t->heap_idx;
        sift_up(l, i);
        sift_down(l, t->heap_idx);
        return;
    }
    if (l->n_timers + 2 > l->cap_timers) {
        l->cap_timers = l->cap_timers == 0 ? 64 : l->cap_timers * 2;
        l->timers = xf_xrealloc(l->timers, l->cap_timers, sizeof(struct xf_timer *));
    }
    t->at_ms = mono_ms;
    l->n_timers++;
    place(l, l->n_timers, t);
    sift_up(l, l->n_timers);
}

void xf_timer_in(struct xf_loop *l, struct xf_timer *t, int64_t ms)
{
    xf_timer_at(l, t, l->mono_ms + ms);
}

void xf_timer_stop(struct xf_loop *l, struct xf_timer *t)
{
    size_t i = t->heap_idx;

    if (i == 0) {
        return;
    }
    struct xf_timer *last = l->timers[l->n_timers];
    l->n_timers--;
    t->heap_idx = 0;
    if (last != t) {
        place(l, i, last);
        sift_up(l, i);
        sift_down(l, last->heap_idx);
    }
}

static void run_timers(struct xf_loop *l)
{
    l->rearmed = false;
    while (!l->rearmed && l->n_timers > 0 && l->timers[1]->at_ms <= l->mono_ms) {
        struct xf_timer *t = l->timers[1];
        xf_timer_stop(l, t);
        t->cb(t); /* may free t */
    }
}

/* ---- turns ---- */

static int wait_for(const struct xf_loop *l, int wait_ms)
{
    if (l->n_timers == 0) {
        return wait_ms;
    }
    int64_t left = l->timers[1]->at_ms - xf_clock_mono_ms(l->clock);
    if (left < 0) {
        left = 0;
    }
    if (wait_ms >= 0 && left > wait_ms) {
        return wait_ms;
    }
    return left > 60000 ? 60000 : (int)left;
}

static void deliver(struct xf_loop *l, const struct epoll_event *ev)
{
    uint32_t slot = (uint32_t)(ev->data.u64 & UINT32_MAX);
    uint32_t generation = (uint32_t)(ev->data.u64 >> 32);
    const struct slot *s = &l->slots[slot];

    if (s->watch == NULL || s->generation != generation) {
        return;
    }
    unsigned events = 0;
    events |= (ev->events & (uint32_t)EPOLLIN) != 0 ? (unsigned)XF_LOOP_IN : 0U;
    events |= (ev->events & (uint32_t)EPOLLOUT) != 0 ? (unsigned)XF_LOOP_OUT : 0U;
    events |=
        (ev->events & ((uint32_t)EPOLLERR | (uint32_t)EPOLLHUP)) != 0 ? (unsigned)XF_LOOP_ERR : 0U;
    s->watch->cb(s->watch, events);
}

void xf_loop_turn(struct xf_loop *l, int wait_ms)
{
    struct epoll_event evs[EVENTS_A_TURN];
    int n = epoll_wait(l->epoll_fd, evs, EVENTS_A_TURN, wait_for(l, wait_ms));

    read_clock(l);
    if (l->turn_cb != NULL) {
        l->turn_cb(l->turn_arg, l->mono_ms);
    }
    run_timers(l);
    for (int i = 0; i < n; i++) {
        deliver(l, &evs[i]);
    }
}

void xf_loop_run(struct xf_loop *l)
{
    while (!atomic_load(&l->stopping)) {
        xf_loop_turn(l, -1);
    }
    atomic_store(&l->stopping, false);
}

void xf_loop_stop(struct xf_loop *l)
{
    uint64_t one = 1;

    atomic_store(&l->stopping, true);
    (void)!write(l->stop_fd, &one, sizeof(one)); /* a full counter wakes it as well */
}

int64_t xf_loop_mono_ms(const struct xf_loop *l)
{
    return l->mono_ms;
}

int64_t xf_loop_wall_ms(const struct xf_loop *l)
{
    return l->wall_ms;
}

void xf_loop_on_turn(struct xf_loop *l, void (*cb)(void *arg, int64_t mono_ms), void *arg)
{
    l->turn_cb = cb;
    l->turn_arg = arg;
}

static void on_stop(struct xf_watch *w, unsigned events)
{
    uint64_t count;

    (void)events;                              /* only readability is asked for */
    (void)!read(w->fd, &count, sizeof(count)); /* the flag is what counts */
}

static void on_signal(struct xf_watch *w, unsigned events)
{
    struct xf_loop *l = w->arg;
    struct signalfd_siginfo info;

    (void)events; /* only readability is asked for */
    while (read(w->fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        l->signal_cb(l->signal_arg, (int)info.ssi_signo);
    }
}

enum xf_code xf_loop_signals(struct xf_loop *l,
                             const int *signos,
                             void (*cb)(void *arg, int signo),
                             void *arg,
                             struct xf_err *err)
{
    sigset_t set;

    XF_ASSERT(l->signal_fd < 0);
    sigemptyset(&set);
    for (; *signos != 0; signos++) {
        sigaddset(&set, *signos);
    }
    XF_ASSERT(pthread_sigmask(SIG_BLOCK, &set, NULL) == 0);
    l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (l->signal_fd < 0) {
        return XF_FAIL_SUB(err, XF_E_IO, errno, "cannot receive signals: %s", xf_errno_text(errno));
    }
    l->signal_cb = cb;
    l->signal_arg = arg;
    l->signal_watch = (struct xf_watch){.fd = l->signal_fd, .cb = on_signal, .arg = l};
    return xf_watch_start(l, &l->signal_watch, XF_LOOP_IN, err);
}

enum xf_code xf_loop_new(const struct xf_clock *clock, struct xf_loop **out, struct xf_err *err)
{
    XF_AUTO(xf_loop) l = xf_xcalloc(1, sizeof(*l));

    l->clock = clock != NULL ? clock : xf_clock_real();
    l->signal_fd = -1;
    l->stop_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (l->epoll_fd < 0 || l->stop_fd < 0) {
        return XF_FAIL_SUB(
            err, XF_E_IO, errno, "cannot make an event loop: %s", xf_errno_text(errno));
    }
    read_clock(l);
    l->stop_watch = (struct xf_watch){.fd = l->stop_fd, .cb = on_stop};
    XF_TRY(xf_watch_start(l, &l->stop_watch, XF_LOOP_IN, err));
    *out = XF_STEAL(l);
    return XF_OK;
}

void xf_loop_free(struct xf_loop *l)
{
    if (l == NULL) {
        return;
    }
    int fds[] = {l->epoll_fd, l->stop_fd, l->signal_fd};
    for (size_t i = 0; i < XF_ARRAY_LEN(fds); i++) {
        xf_auto_close(&fds[i]);
    }
    xf_xfree(l->slots);
    xf_xfree(l->timers);
    xf_xfree(l);
}
