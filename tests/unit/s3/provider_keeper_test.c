/* provider_keeper_test.c - one refresh a process, before its time when the service says so. */
#include "common/base/clock.h"
#include "common/rt/thread.h"
#include "common/s3/provider_int.h"
#include "tests/lib/test.h"
#include "tests/lib/wait.h"

enum { SOON_MS = 20 * 1000, ASKERS = 16 };

/* A provider whose keys have a number, one higher at each fetch. */
struct provider {
    atomic_uint fetches;
    unsigned busy; /* so many first fetches are refused as too many */
    atomic_bool is_dead;
};

static enum xf_code fetch(void *self, xf_creds_stop stop, struct xf_creds **out, struct xf_err *err)
{
    struct provider *p = self;
    unsigned n = atomic_fetch_add(&p->fetches, 1U) + 1;
    char key[] = "AKIA0";

    (void)stop; /* it never takes long */
    key[4] = (char)('0' + n);
    if (n <= p->busy) {
        return XF_FAIL_SUB(err, XF_E_CREDS, 429, "too many");
    }
    if (atomic_load(&p->is_dead)) {
        return XF_FAIL(err, XF_E_CREDS, "nobody there");
    }
    return xf_creds_new(xf_str_c(key), XF_STR_LIT("s"), XF_STR_LIT("t"), 0, out, err);
}

static void keep(void *self)
{
    (void)self; /* the test's */
}

static const struct xf_creds_keeper_ops ops = {.fetch = fetch, .free = keep};

static struct xf_creds_keeper *open_keeper(struct provider *p)
{
    struct xf_creds_keeper *k = NULL;
    struct xf_err err;

    assert_int_equal(xf_creds_keeper_get("test", &ops, p, &k, &err), XF_OK);
    return k;
}

static struct xf_creds *take(struct xf_creds_keeper *k)
{
    struct xf_creds *c = NULL;
    struct xf_err err;

    if (xf_creds_keeper_take(k, &c, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    return c;
}

struct asker {
    struct xf_creds_keeper *k;
    const struct xf_creds *old;
    struct xf_thread thread;
    bool has_newer;
};

static bool is_newer(void *arg)
{
    struct asker *a = arg;
    XF_AUTO(xf_creds) c = NULL;

    (void)xf_creds_keeper_renew(a->k, a->old); /* the keys tell */
    c = take(a->k);
    return !xf_creds_is_same(c, a->old);
}

static void ask(void *arg)
{
    struct asker *a = arg;

    a->has_newer = xf_wait_for(is_newer, a, SOON_MS);
}

static void c059_refused_keys_are_fetched_once_for_all_who_ask(void **state)
{
    struct provider p = {0};
    struct asker askers[ASKERS];
    struct xf_err err;

    (void)state;
    struct xf_creds_keeper *k = open_keeper(&p);
    XF_AUTO(xf_creds) old = take(k);
    for (int i = 0; i < ASKERS; i++) {
        askers[i] = (struct asker){.k = k, .old = old};
        assert_int_equal(xf_thread_start(&askers[i].thread, "ask", ask, &askers[i], &err), XF_OK);
    }
    for (int i = 0; i < ASKERS; i++) {
        xf_thread_join(&askers[i].thread);
        assert_true(askers[i].has_newer);
    }
    assert_int_equal(atomic_load(&p.fetches), 2);

    /* The new ones are refused as well: not asked for again at once. */
    XF_AUTO(xf_creds) newer = take(k);
    assert_false(xf_creds_keeper_renew(k, newer));
    /* Who still has the old ones gets the newer without a fetch. */
    assert_false(xf_creds_keeper_renew(k, old));
    assert_int_equal(atomic_load(&p.fetches), 2);
    xf_creds_keeper_put(k);
}

static bool has_failed(void *arg)
{
    struct asker *a = arg;

    return !xf_creds_keeper_renew(a->k, a->old);
}

static void c059_what_is_held_stays_when_nobody_gives_newer(void **state)
{
    struct provider p = {0};

    (void)state;
    struct xf_creds_keeper *k = open_keeper(&p);
    XF_AUTO(xf_creds) old = take(k);
    struct asker a = {.k = k, .old = old};
    atomic_store(&p.is_dead, true);
    assert_true(xf_creds_keeper_renew(k, old));
    xf_wait_must(has_failed, &a, SOON_MS, "the end of a fetch that fails");
    XF_AUTO(xf_creds) still = take(k);
    assert_true(xf_creds_is_same(still, old));
    xf_creds_keeper_put(k);
}

static void c063_a_busy_provider_is_waited_for(void **state)
{
    struct provider p = {.busy = 1};

    (void)state;
    struct xf_creds_keeper *k = open_keeper(&p);
    XF_AUTO(xf_creds) c = take(k); /* not its refusal */
    assert_int_equal(atomic_load(&p.fetches), 2);
    xf_creds_keeper_put(k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c059_refused_keys_are_fetched_once_for_all_who_ask),
        cmocka_unit_test(c059_what_is_held_stays_when_nobody_gives_newer),
        cmocka_unit_test(c063_a_busy_provider_is_waited_for),
    };

    return xf_test_run("s3/provider_keeper", tests, NULL, NULL);
}
