/*
 * thread.h - named threads and the ownership assertion.
 */
#ifndef XF_RT_THREAD_H
#define XF_RT_THREAD_H

#include "common/base/err.h"

#include <pthread.h>

struct xf_thread {
    pthread_t id;
    bool started;
};

/** Start a thread with that name (15 bytes shown by the kernel) and all signals blocked in it. */
XF_MUST_CHECK enum xf_code xf_thread_start(
    struct xf_thread *t, const char *name, void (*run)(void *arg), void *arg, struct xf_err *err);
/** Wait for its end. Harmless when it was never started. */
void xf_thread_join(struct xf_thread *t);

/* The thread that may touch a structure: set once by its owner. */
struct xf_owner {
    pthread_t id;
    bool set;
};
void xf_owner_take(struct xf_owner *o); /* the calling thread owns it from now on */
bool xf_owner_is_me(const struct xf_owner *o);
#define XF_ASSERT_OWNER(x) XF_ASSERT(xf_owner_is_me(&(x)->owner))

#endif
