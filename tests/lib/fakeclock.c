/*
 * fakeclock.c - the clock seam over two atomics.
 */
#include "tests/lib/fakeclock.h"

#include "common/base/err.h"

static const int64_t start_mono_ms = 1000000;
static const int64_t start_wall_ms = 1772360100000; /* 2026-03-01T10:15:00Z */

static int64_t read_mono(void *arg)
{
    struct xf_fakeclock *f = arg;
    return atomic_load(&f->mono_ms);
}

static int64_t read_wall(void *arg)
{
    struct xf_fakeclock *f = arg;
    return atomic_load(&f->wall_ms);
}

void xf_fakeclock_init(struct xf_fakeclock *f)
{
    atomic_init(&f->mono_ms, start_mono_ms);
    atomic_init(&f->wall_ms, start_wall_ms);
    f->clock = (struct xf_clock){.mono_ms = read_mono, .wall_ms = read_wall, .arg = f};
}

void xf_fakeclock_advance(struct xf_fakeclock *f, int64_t ms)
{
    XF_ASSERT(ms >= 0);
    atomic_fetch_add(&f->mono_ms, ms);
    atomic_fetch_add(&f->wall_ms, ms);
}

void xf_fakeclock_set_wall(struct xf_fakeclock *f, int64_t wall_ms)
{
    atomic_store(&f->wall_ms, wall_ms);
}
