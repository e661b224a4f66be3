/*
 * bulk.c - a width that climbs while it pays.
 *
 * A window lasts WINDOW_MS. The one after a change only fills the new bodies and is not judged.
 * A growth that gave less than GAIN more bytes a second is taken back, and HOLD_WINDOWS later the
 * climb begins anew from there: networks change.
 *
 * Invariants:
 * 1. 1 <= width <= WIDTH_MAX; at most `width` turns are out.
 * 2. The turns that are out hold at most `mem_max` bytes, or there is only one.
 */
#include "agent/bulk.h"

#include "common/base/err.h"
#include "common/base/log.h"

enum { WIDTH_START = 4, WIDTH_MAX = 64, WINDOW_MS = 500, HOLD_WINDOWS = 20 };
static const double gain = 1.1;

struct xf_bulk {
    struct xf_loop *loop;
    size_t mem_max;
    size_t mem;
    unsigned width;
    unsigned n_out;
    struct xf_list line;
    bool was_full; /* somebody waited for the width in this window */
    bool is_filling;
    unsigned hold;
    int64_t window_ms; /* its start */
    uint64_t bytes;    /* in this window */
    double base_rate;  /* bytes a ms at base_width; 0: not known */
    unsigned base_width;
};

struct xf_bulk *xf_bulk_new(struct xf_loop *loop, size_t mem)
{
    struct xf_bulk *b = xf_xcalloc(1, sizeof(*b));

    b->loop = loop;
    b->mem_max = mem;
    b->width = WIDTH_START;
    b->base_width = WIDTH_START;
    b->window_ms = xf_loop_mono_ms(loop);
    xf_list_init(&b->line);
    return b;
}

void xf_bulk_free(struct xf_bulk *b)
{
    if (b == NULL) {
        return;
    }
    XF_ASSERT(b->n_out == 0 && xf_list_is_empty(&b->line));
    xf_xfree(b);
}

static bool has_turn(struct xf_bulk *b, size_t mem)
{
    if (b->n_out >= b->width) {
        b->was_full = true;
        return false;
    }
    return b->n_out == 0 || mem <= b->mem_max - (b->mem < b->mem_max ? b->mem : b->mem_max);
}

static void take(struct xf_bulk *b, size_t mem)
{
    b->n_out++;
    b->mem += mem;
}

bool xf_bulk_take(struct xf_bulk *b, size_t mem)
{
    if (!xf_list_is_empty(&b->line) || !has_turn(b, mem)) {
        return false;
    }
    take(b, mem);
    return true;
}

void xf_bulk_wait(struct xf_bulk *b, struct xf_bulk_want *want)
{
    xf_list_push_back(&b->line, &want->node);
}

void xf_bulk_forget(struct xf_bulk *b, struct xf_bulk_want *want)
{
    (void)b;
    if (xf_list_is_linked(&want->node)) {
        xf_list_remove(&want->node);
    }
}

static void grant(struct xf_bulk *b)
{
    while (!xf_list_is_empty(&b->line)) {
        struct xf_bulk_want *w = XF_CONTAINER_OF(b->line.next, struct xf_bulk_want, node);
        if (!has_turn(b, w->mem)) {
            return;
        }
        (void)xf_list_pop_front(&b->line); /* w */
        take(b, w->mem);
        w->go(w);
    }
}

void xf_bulk_give(struct xf_bulk *b, size_t mem)
{
    XF_ASSERT(b->n_out > 0 && b->mem >= mem);
    b->n_out--;
    b->mem -= mem;
    grant(b);
}

static void set_width(struct xf_bulk *b, unsigned width, const char *reason)
{
    unsigned to = width < WIDTH_MAX ? width : WIDTH_MAX;

    if (to != b->width) {
        XF_DEBUG("bulk.changed",
                 xf_f_u64("from", b->width),
                 xf_f_u64("to", to),
                 xf_f_c("reason", reason));
        b->width = to;
        b->is_filling = true;
    }
}

static void judge(struct xf_bulk *b, double rate)
{
    if (b->hold > 0) {
        b->hold--;
        b->base_rate = 0.0; /* measured anew by the window that ends the hold */
    } else if (b->base_rate <= 0.0 || rate >= b->base_rate * gain) {
        b->base_rate = rate;
        b->base_width = b->width;
        set_width(b, b->width + (b->width + 1) / 2, "more bytes");
    } else {
        set_width(b, b->base_width, "no gain");
        b->hold = HOLD_WINDOWS;
    }
}

void xf_bulk_moved(struct xf_bulk *b, uint64_t bytes)
{
    int64_t span = xf_loop_mono_ms(b->loop) - b->window_ms;

    b->bytes += bytes;
    if (span < WINDOW_MS) {
        return;
    }
    double rate = (double)b->bytes / (double)span;
    bool is_judged = b->was_full && !b->is_filling;

    b->window_ms += span;
    b->bytes = 0;
    b->is_filling = false;
    b->was_full = !xf_list_is_empty(&b->line);
    if (is_judged) {
        judge(b, rate);
        grant(b);
    }
}

unsigned xf_bulk_width(const struct xf_bulk *b)
{
    return b->width;
}
