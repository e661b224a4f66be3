/* names_test.c - connections go to all addresses of a name, and to none that does not answer. */
#include "common/s3/names.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/test.h"
#include "tests/lib/wait.h"

#include <arpa/inet.h>
#include <stdatomic.h>

#define HOST XF_STR_LIT("s3.example")

enum { SOON_MS = 20 * 1000 };

/* A resolver of one name. */
struct zone {
    struct xf_fakeclock clock;
    const char *addrs[8];
    size_t n;
    atomic_uint asked;
    struct xf_names *names;
};

static struct xf_names_addr address(const char *text)
{
    struct xf_names_addr a = {.len = sizeof(a.u.ip4)};

    if (strchr(text, ':') != NULL) {
        a.len = sizeof(a.u.ip6);
        a.u.ip6.sin6_family = AF_INET6;
        a.u.ip6.sin6_port = htons(443);
        assert_int_equal(inet_pton(AF_INET6, text, &a.u.ip6.sin6_addr), 1);
    } else {
        a.u.ip4.sin_family = AF_INET;
        a.u.ip4.sin_port = htons(443);
        assert_int_equal(inet_pton(AF_INET, text, &a.u.ip4.sin_addr), 1);
    }
    return a;
}

static size_t lookup(void *arg, const char *host, struct xf_names_addr *out, size_t max)
{
    struct zone *z = arg;

    assert_string_equal(host, "s3.example");
    assert_true(z->n <= max);
    for (size_t i = 0; i < z->n; i++) {
        out[i] = address(z->addrs[i]);
    }
    atomic_fetch_add(&z->asked, 1U);
    return z->n;
}

/* The turn's address, when `offered` is what a resolver gave. */
static const char *turn(struct zone *z, const char *offered)
{
    static char text[INET6_ADDRSTRLEN];
    struct xf_names_addr a = address(offered);

    xf_names_turn(z->names, HOST, &a);
    assert_int_equal(ntohs(a.u.any.sa_family == AF_INET ? a.u.ip4.sin_port : a.u.ip6.sin6_port),
                     443);
    assert_non_null(a.u.any.sa_family == AF_INET
                        ? inet_ntop(AF_INET, &a.u.ip4.sin_addr, text, sizeof(text))
                        : inet_ntop(AF_INET6, &a.u.ip6.sin6_addr, text, sizeof(text)));
    return text;
}

static bool is_spread(void *arg)
{
    return strcmp(turn(arg, "127.0.0.2"), "127.0.0.2") != 0;
}

static int setup(void **state)
{
    struct zone *z = xf_xcalloc(1, sizeof(*z));

    *z = (struct zone){.addrs = {"127.0.0.2", "127.0.0.3", "127.0.0.4", "127.0.0.5", "::1", "::2"},
                       .n = 6};
    xf_fakeclock_init(&z->clock);
    const struct xf_names_opts o = {.lookup = lookup, .arg = z, .clock = &z->clock.clock};
    z->names = xf_names_new(&o);
    assert_string_equal(turn(z, "127.0.0.2"), "127.0.0.2"); /* not known yet */
    xf_names_want(z->names, HOST);
    xf_wait_must(is_spread, z, SOON_MS, "the answer of the resolver");
    *state = z;
    return 0;
}

static int teardown(void **state)
{
    struct zone *z = *state;

    xf_names_put(z->names);
    xf_xfree(z);
    return 0;
}

/* How often each of z's addresses has its turn. */
static void count(struct zone *z, const char *offered, unsigned turns, unsigned got[8])
{
    memset(got, 0, 8 * sizeof(got[0]));
    for (unsigned i = 0; i < turns; i++) {
        const char *at = turn(z, offered);

        for (size_t k = 0; k < z->n; k++) {
            got[k] += strcmp(at, z->addrs[k]) == 0 ? 1U : 0U;
        }
    }
}

static void c068_all_addresses_have_their_turn(void **state)
{
    struct zone *z = *state;
    unsigned got[8];

    count(z, "127.0.0.5", 400, got);
    for (size_t i = 0; i < 4; i++) {
        assert_in_range(got[i], 99, 101);
    }
    count(z, "::2", 10, got); /* a family of its own */
    assert_int_equal(got[4] + got[5], 10);
    assert_int_equal(got[4], 5);
}

static void c068_what_is_no_address_of_the_name_is_left_alone(void **state)
{
    struct zone *z = *state;
    struct xf_names_addr proxy = address("192.0.2.7");

    assert_string_equal(turn(z, "192.0.2.7"), "192.0.2.7");
    xf_names_bad(z->names, &proxy); /* nobody's */
    xf_names_turn(z->names, XF_STR_LIT("other.example"), &proxy);
    assert_true(proxy.u.ip4.sin_addr.s_addr == address("192.0.2.7").u.ip4.sin_addr.s_addr);
}

static void c068_one_that_does_not_answer_is_avoided_for_a_while(void **state)
{
    struct zone *z = *state;
    struct xf_names_addr bad = address("127.0.0.4");
    unsigned got[8];

    xf_names_bad(z->names, &bad);
    count(z, "127.0.0.4", 300, got);
    assert_int_equal(got[2], 0);
    assert_int_equal(got[0] + got[1] + got[3], 300);
    xf_fakeclock_advance(&z->clock, 31000);
    count(z, "127.0.0.4", 400, got);
    assert_in_range(got[2], 99, 101);
    for (size_t i = 0; i < 4; i++) { /* all of them: then all are tried all the same */
        bad = address(z->addrs[i]);
        xf_names_bad(z->names, &bad);
    }
    assert_true(strncmp(turn(z, "127.0.0.2"), "127.0.0.", 8) == 0);
}

static bool is_moved(void *arg)
{
    return strcmp(turn(arg, "127.0.0.9"), "127.0.0.8") == 0;
}

static void c068_a_name_in_use_is_looked_up_again(void **state)
{
    struct zone *z = *state;

    for (int i = 0; i < 100; i++) {
        xf_names_want(z->names, HOST);
    }
    assert_int_equal(atomic_load(&z->asked), 1);
    z->addrs[0] = "127.0.0.8";
    z->addrs[1] = "127.0.0.9";
    z->n = 2;
    xf_fakeclock_advance(&z->clock, 31000);
    xf_names_want(z->names, HOST);
    xf_wait_must(is_moved, z, SOON_MS, "the new addresses");
    assert_string_equal(turn(z, "127.0.0.3"), "127.0.0.3"); /* no longer one of the name's */

    z->n = 0; /* a resolver that fails takes nothing away */
    xf_fakeclock_advance(&z->clock, 31000);
    xf_names_want(z->names, HOST);
    xf_wait_must(is_moved, z, SOON_MS, "the old addresses");
}

int main(void)
{
#define T(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(c068_all_addresses_have_their_turn),
        T(c068_what_is_no_address_of_the_name_is_left_alone),
        T(c068_one_that_does_not_answer_is_avoided_for_a_while),
        T(c068_a_name_in_use_is_looked_up_again),
    };

    return xf_test_run("s3/names", tests, NULL, NULL);
}
