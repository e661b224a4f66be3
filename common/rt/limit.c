/*
 * limit.c - AIMD with a gate.
 *
 * Growth by 1 for each answer while below `slow_until`, then by 1 for each `limit` answers; at most
 * to the double within a window (or by WINDOW_N), since what growth gave is known only at its end.
 * A window lasts WINDOW_MS, WINDOW_N answers and two mean latencies, whichever is longest. A
 * quarter more requests that gave less than GAIN more answers, and whose answers took longer by
 * SLOWER, only stood in a queue: they are taken back, and growth rests for HOLD_WINDOWS windows,
 * the last of which is what further growth is compared with. Without the longer answers a lower
 * rate is noise, or there was too little to do.
 *
 * Invariants:
 * 1. 1 <= limit <= max.
 * 2. in_flight grows only through grant(), which checks limit and gate.
 * 3. The gate is closed exactly while its timer runs.
 */
#include "common/rt/limit.h"

#include "common/base/err.h"
#include "common/base/log.h"
#include "common/base/retry.h"

enum {
    START = 16,
    WINDOW_MS = 250,
    WINDOW_N = 16,
    HOLD_WINDOWS = 20,
    DOWN_MIN_MS = 500,
    DOWN_STREAK_MAX = 6 /* 500 ms << 6 = 32 s at most between two looks at a dead endpoint */
};
static const double gain = 1.05;
static const double step_up = 1.25;
static const double slower = 1.15;

struct xf_limit {
    struct xf_loop *loop;
    struct xf_rng *rng;
    const char *name;
    double limit;
    double slow_until;
    unsigned max;
    unsigned in_flight;
    bool was_full; /* the limit was reached in this window */
    int64_t cut_ms;
    uint32_t streak; /* cuts without a good answer between */
    uint32_t down_streak;
    uint64_t throttled;
    int64_t window_ms;   /* its start */
    double window_limit; /* the limit then */
    uint64_t window_n;
    int64_t window_latency_ms; /* sum over the window's answers */
    double base_rate;          /* best answers a ms, at base_limit */
    double base_latency_ms;    /* mean of that window */
    double base_limit;
    unsigned hold;
    struct xf_timer gate;
    struct xf_list begun; /* served first: what has begun is to end */
    struct xf_list line;
    size_t n_line;
    bool granting;
};

static bool has_room(const struct xf_limit *l)
{
    return !xf_timer_is_started(&l->gate) && (double)l->in_flight + 1.0 <= l->limit;
}

static void grant(struct xf_limit *l)
{
    if (l->granting) {
        return; /* a go() gave its permit back at once: the outer loop goes on */
    }
    l->granting = true;
    while (has_room(l) && l->n_line > 0) {
        struct xf_list *from = xf_list_is_empty(&l->begun) ? &l->line : &l->begun;
        struct xf_limit_want *w =
            XF_CONTAINER_OF(xf_list_pop_front(from), struct xf_limit_want, node);
        l->n_line--;
        l->in_flight++;
        w->go(w);
    }
    l->granting = false;
}

static void on_gate(struct xf_timer *t)
{
    grant(t->arg);
}

static void changed(const struct xf_limit *l, double from, const char *reason)
{
    XF_DEBUG("limit.changed",
             xf_f_c("side", l->name),
             xf_f_u64("from", (uint64_t)from),
             xf_f_u64("to", (uint64_t)l->limit),
             xf_f_c("reason", reason));
}

static void set_limit(struct xf_limit *l, double to, const char *reason)
{
    double from = l->limit;

    l->limit = to < 1.0 ? 1.0 : to > (double)l->max ? (double)l->max : to;
    if (reason != NULL && (unsigned)from != (unsigned)l->limit) {
        changed(l, from, reason);
    }
}

struct xf_limit *xf_limit_new(const struct xf_limit_opts *o)
{
    struct xf_limit *l = xf_xcalloc(1, sizeof(*l));

    XF_ASSERT(o->max >= 1);
    l->loop = o->loop;
    l->rng = o->rng;
    l->name = o->name;
    l->max = o->max;
    l->slow_until = (double)o->max;
    l->cut_ms = INT64_MIN;
    l->window_ms = xf_loop_mono_ms(o->loop);
    l->gate = (struct xf_timer){.cb = on_gate, .arg = l};
    xf_list_init(&l->begun);
    xf_list_init(&l->line);
    set_limit(l, (double)(o->start != 0 ? o->start : START), NULL);
    l->window_limit = l->limit;
    return l;
}

void xf_limit_free(struct xf_limit *l)
{
    if (l == NULL) {
        return;
    }
    XF_ASSERT(l->in_flight == 0 && l->n_line == 0);
    xf_timer_stop(l->loop, &l->gate);
    xf_xfree(l);
}

bool xf_limit_take(struct xf_limit *l)
{
    if (l->n_line > 0 || !has_room(l)) {
        l->was_full = true;
        return false;
    }
    l->in_flight++;
    return true;
}

void xf_limit_wait(struct xf_limit *l, struct xf_limit_want *want)
{
    xf_list_push_back(want->has_begun ? &l->begun : &l->line, &want->node);
    l->n_line++;
}

void xf_limit_forget(struct xf_limit *l, struct xf_limit_want *want)
{
    if (xf_list_is_linked(&want->node)) {
        xf_list_remove(&want->node);
        l->n_line--;
    }
}

static void close_gate(struct xf_limit *l, int64_t wait_ms)
{
    int64_t at = xf_loop_mono_ms(l->loop) + wait_ms;

    if (!xf_timer_is_started(&l->gate) || l->gate.at_ms < at) {
        xf_timer_at(l->loop, &l->gate, at);
    }
}

static void cut(struct xf_limit *l, int64_t started_ms, int64_t retry_after_ms)
{
    int64_t now = xf_loop_mono_ms(l->loop);

    l->throttled++;
    if (started_ms >= l->cut_ms) {
        set_limit(l, l->limit / 2.0, "throttled");
        l->slow_until = l->limit;
        l->cut_ms = now + 1; /* what began in this very turn was sent at the old rate */
        l->base_rate = 0.0;
        int64_t wait = xf_retry_wait_ms(XF_CLASS_SLOW_DOWN, l->streak, 0, l->rng);
        l->streak += l->streak < 16 ? 1 : 0;
        close_gate(l, wait);
    }
    if (retry_after_ms > 0) {
        close_gate(
            l, xf_retry_wait_ms(XF_CLASS_NONE, 0, retry_after_ms, l->rng)); /* a floor, capped */
    }
}

static void down(struct xf_limit *l, int64_t started_ms)
{
    if (started_ms < l->cut_ms) {
        return;
    }
    int64_t wait = (int64_t)DOWN_MIN_MS << l->down_streak;

    if (l->down_streak == 0) {
        l->slow_until = l->limit / 2.0 < 1.0 ? 1.0 : l->limit / 2.0;
    }
    l->down_streak += l->down_streak < DOWN_STREAK_MAX ? 1 : 0;
    set_limit(l, 1.0, "unreachable");
    l->cut_ms = xf_loop_mono_ms(l->loop) + 1;
    close_gate(l, wait / 2 + (int64_t)xf_rng_below(l->rng, (uint64_t)(wait / 2) + 1));
}

static void set_base(struct xf_limit *l, double rate, double latency_ms)
{
    l->base_rate = rate;
    l->base_latency_ms = latency_ms;
    l->base_limit = l->limit;
}

/* Did the last growth pay? */
static void judge(struct xf_limit *l, double rate, double latency_ms, bool was_full)
{
    if (l->hold > 0) {
        l->hold--;
        if (l->hold == 0) {
            set_base(l, was_full ? rate : 0.0, latency_ms);
        }
        return;
    }
    if (!was_full) {
        return;
    }
    if (l->base_rate <= 0.0 || rate >= l->base_rate * gain) {
        set_base(l, rate, latency_ms);
    } else if (l->limit >= l->base_limit * step_up && latency_ms > l->base_latency_ms * slower) {
        set_limit(l, l->base_limit, "no gain");
        l->slow_until = l->limit;
        l->hold = HOLD_WINDOWS;
    }
}

static void look_at_window(struct xf_limit *l)
{
    int64_t now = xf_loop_mono_ms(l->loop);
    int64_t span = now - l->window_ms;

    if (span < WINDOW_MS || l->window_n < WINDOW_N) {
        return;
    }
    double latency_ms = (double)l->window_latency_ms / (double)l->window_n;
    if ((double)span < 2.0 * latency_ms) {
        return;
    }
    double rate = (double)l->window_n / (double)span;
    bool was_full = l->was_full;

    l->window_ms = now;
    l->window_n = 0;
    l->window_latency_ms = 0;
    l->was_full = false;
    judge(l, rate, latency_ms, was_full);
    l->window_limit = l->limit;
}

/* What the limit may reach within this window. */
static double window_top(const struct xf_limit *l)
{
    return l->window_limit + (l->window_limit > WINDOW_N ? l->window_limit : WINDOW_N);
}

static void good(struct xf_limit *l, int64_t started_ms)
{
    l->streak = 0;
    l->down_streak = 0;
    l->window_n++;
    l->window_latency_ms += xf_loop_mono_ms(l->loop) - started_ms;
    look_at_window(l);
    if (l->hold == 0 && l->limit < window_top(l) &&
        (l->was_full || (double)l->in_flight + 2.0 >= l->limit)) {
        set_limit(l, l->limit + (l->limit < l->slow_until ? 1.0 : 1.0 / l->limit), NULL);
    }
}

void xf_limit_give(struct xf_limit *l,
                   enum xf_limit_how how,
                   int64_t started_ms,
                   int64_t retry_after_ms)
{
    XF_ASSERT(l->in_flight > 0);
    l->in_flight--;
    switch (how) {
    case XF_LIMIT_OK: good(l, started_ms); break;
    case XF_LIMIT_THROTTLED: cut(l, started_ms, retry_after_ms); break;
    case XF_LIMIT_DOWN: down(l, started_ms); break;
    case XF_LIMIT_NEUTRAL: break;
    }
    grant(l);
}

void xf_limit_set_max(struct xf_limit *l, unsigned max)
{
    XF_ASSERT(max >= 1);
    l->max = max;
    if (l->slow_until > (double)max) {
        l->slow_until = (double)max;
    }
    set_limit(l, l->limit, "setting");
    grant(l);
}

unsigned xf_limit_now(const struct xf_limit *l)
{
    return (unsigned)l->limit;
}

unsigned xf_limit_in_flight(const struct xf_limit *l)
{
    return l->in_flight;
}

bool xf_limit_is_closed(const struct xf_limit *l)
{
    return xf_timer_is_started(&l->gate);
}

uint64_t xf_limit_throttled(const struct xf_limit *l)
{
    return l->throttled;
}
