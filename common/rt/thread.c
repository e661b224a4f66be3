/* thread.c - pthreads with a name; signals stay with the threads that read them by signalfd. */
#include "common/rt/thread.h"

#include "common/base/mem.h"

#include <signal.h>
#include <stdio.h>

struct start {
    void (*run)(void *arg);
    void *arg;
    char name[16];
};

static void *entry(void *p)
{
    struct start s = *(struct start *)p;

    xf_xfree(p);
    (void)pthread_setname_np(pthread_self(), s.name); /* only a label for people */
    s.run(s.arg);
    return NULL;
}

enum xf_code xf_thread_start(
    struct xf_thread *t, const char *name, void (*run)(void *arg), void *arg, struct xf_err *err)
{
    sigset_t all;
    sigset_t old;
    struct start *s = xf_xcalloc(1, sizeof(*s));

    s->run = run;
    s->arg = arg;
    (void)snprintf(s->name, sizeof(s->name), "%s", name); /* cut on purpose */
    sigfillset(&all);
    XF_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &old) == 0);
    int rc = pthread_create(&t->id, NULL, entry, s);
    XF_ASSERT(pthread_sigmask(SIG_SETMASK, &old, NULL) == 0);
    if (rc != 0) {
        xf_xfree(s);
        return XF_FAIL_SUB(
            err, XF_E_IO, rc, "cannot start thread '%s': %s", name, xf_errno_text(rc));
    }
    t->started = true;
    return XF_OK;
}

void xf_thread_join(struct xf_thread *t)
{
    if (t->started) {
        XF_ASSERT(pthread_join(t->id, NULL) == 0);
        t->started = false;
    }
}

void xf_owner_take(struct xf_owner *o)
{
    o->id = pthread_self();
    o->set = true;
}

bool xf_owner_is_me(const struct xf_owner *o)
{
    return o->set && pthread_equal(o->id, pthread_self()) != 0;
}
