/* rate.c - the balance grows with time up to a second's worth, and may be negative. */
#include "agent/rate.h"

#include "common/base/err.h"

struct xf_rate {
    struct xf_loop *loop;
    double bytes_ms; /* 0: no limit */
    double balance;
    int64_t at_ms;
    struct xf_list line;
    struct xf_timer timer;
};

static void refill(struct xf_rate *r)
{
    int64_t now = xf_loop_mono_ms(r->loop);
    double most = r->bytes_ms * 1000.0;

    r->balance += (double)(now - r->at_ms) * r->bytes_ms;
    r->at_ms = now;
    if (r->balance > most) {
        r->balance = most;
    }
}

static bool is_open(const struct xf_rate *r)
{
    return r->bytes_ms <= 0.0 || r->balance >= 0.0;
}

static void set_timer(struct xf_rate *r)
{
    if (xf_list_is_empty(&r->line)) {
        xf_timer_stop(r->loop, &r->timer);
        return;
    }
    double wait = is_open(r) ? 0.0 : -r->balance / r->bytes_ms;
    xf_timer_in(r->loop, &r->timer, wait > 1000.0 ? 1000 : (int64_t)wait + 1);
}

static void on_timer(struct xf_timer *t)
{
    struct xf_rate *r = t->arg;

    refill(r);
    while (is_open(r) && !xf_list_is_empty(&r->line)) {
        struct xf_rate_want *w =
            XF_CONTAINER_OF(xf_list_pop_front(&r->line), struct xf_rate_want, node);
        r->balance -= (double)w->bytes;
        w->go(w);
    }
    set_timer(r);
}

struct xf_rate *xf_rate_new(struct xf_loop *loop)
{
    struct xf_rate *r = xf_xcalloc(1, sizeof(*r));

    r->loop = loop;
    r->at_ms = xf_loop_mono_ms(loop);
    r->timer = (struct xf_timer){.cb = on_timer, .arg = r};
    xf_list_init(&r->line);
    return r;
}

void xf_rate_free(struct xf_rate *r)
{
    if (r == NULL) {
        return;
    }
    XF_ASSERT(xf_list_is_empty(&r->line));
    xf_timer_stop(r->loop, &r->timer);
    xf_xfree(r);
}

void xf_rate_set(struct xf_rate *r, uint64_t bytes_s)
{
    double bytes_ms = (double)bytes_s / 1000.0;

    if (bytes_ms < r->bytes_ms || bytes_ms > r->bytes_ms) {
        refill(r);
        r->balance = r->bytes_ms > 0.0 ? r->balance : 0.0; /* without a limit no debt was made */
        r->bytes_ms = bytes_ms;
        set_timer(r);
    }
}

bool xf_rate_take(struct xf_rate *r, uint64_t bytes)
{
    if (r->bytes_ms <= 0.0) {
        return xf_list_is_empty(&r->line);
    }
    refill(r);
    if (!is_open(r) || !xf_list_is_empty(&r->line)) {
        return false;
    }
    r->balance -= (double)bytes;
    return true;
}

void xf_rate_wait(struct xf_rate *r, struct xf_rate_want *want)
{
    xf_list_push_back(&r->line, &want->node);
    set_timer(r);
}

void xf_rate_forget(struct xf_rate *r, struct xf_rate_want *want)
{
    if (xf_list_is_linked(&want->node)) {
        xf_list_remove(&want->node);
        set_timer(r);
    }
}
