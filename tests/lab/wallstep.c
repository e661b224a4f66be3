/*
 * wallstep.c - preloaded into a program of a lab: its wall clock can be set while it runs.
 *
 * XF_WALLSTEP names a file of one signed 64-bit number, the seconds that are added to the wall
 * clock. The file is mapped, so what a test writes holds from the next look on. Monotonic clocks go
 * on as they are, as they do when an operator sets a clock.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define WALL_MIN_S 1000000000 /* monotonic clocks begin when the machine does */

typedef int(timedwait_fn)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);

static const _Atomic int64_t *step_s;
static timedwait_fn *real_timedwait;

__attribute__((constructor)) static void map_step(void)
{
    const char *path = getenv("XF_WALLSTEP"); /* NOLINT(concurrency-mt-unsafe): before main */
    int fd = path != NULL ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    const void *at =
        fd >= 0 ? mmap(NULL, sizeof(*step_s), PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;

    if (at == MAP_FAILED) {
        abort(); /* a test that steps no clock proves nothing */
    }
    step_s = at;
    *(void **)&real_timedwait = dlsym(RTLD_NEXT, "pthread_cond_timedwait");
    (void)close(fd); /* the map stays */
}

/* NOLINTBEGIN(readability-inconsistent-declaration-parameter-name): libc's have reserved names */

int clock_gettime(clockid_t id, struct timespec *ts)
{
    int rc = (int)syscall(SYS_clock_gettime, id, ts);

    if (rc == 0 && id == CLOCK_REALTIME && step_s != NULL) {
        ts->tv_sec += *step_s;
    }
    return rc;
}

time_t time(time_t *out)
{
    struct timespec ts = {0, 0};

    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    if (out != NULL) {
        *out = ts.tv_sec;
    }
    return ts.tv_sec;
}

int gettimeofday(struct timeval *restrict tv, void *restrict zone)
{
    struct timespec ts = {0, 0};

    (void)zone;                               /* obsolete */
    (void)clock_gettime(CLOCK_REALTIME, &ts); /* cannot fail for this clock */
    tv->tv_sec = ts.tv_sec;
    tv->tv_usec = ts.tv_nsec / 1000;
    return 0;
}

/* Deadlines by the wall clock are made from the time above, but the kernel waits by the true one.
 */
int pthread_cond_timedwait(pthread_cond_t *restrict cond,
                           pthread_mutex_t *restrict mutex,
                           const struct timespec *restrict until)
{
    struct timespec true_until = *until;

    if (until->tv_sec > WALL_MIN_S) {
        true_until.tv_sec -= *step_s;
    }
    return real_timedwait(cond, mutex, &true_until);
}

/* NOLINTEND(readability-inconsistent-declaration-parameter-name) */
