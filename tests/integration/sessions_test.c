/*
 * sessions_test.c - many agents' links against one hub over loopback tcp, with a slow commit.
 *
 * The hub runs on a thread of its own. Its coordinator answers leases and beats only when a commit
 * has ended, COMMIT_MS after the first request of it came. A share of all requests is sent twice.
 */
#include "agent/link.h"
#include "common/base/list.h"
#include "common/base/log.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "coordinator/hub.h"
#include "tests/lib/test.h"

#include <stdatomic.h>
#include <stdio.h>
#include <sys/resource.h>

enum {
    COMMIT_MS = 100,
    LINKS_MAX = 500,
    BEAT_MS = 1000,
    BEATS_WANTED = 4,
    LEASES_WANTED = 4,
    TWICE_PERCENT = 10,
    END_MS = 100000,
    WAITING_MAX = 4 * LINKS_MAX
};

/* ---- the coordinator's side ---- */

struct waiting {
    struct xf_hub_req *req;
    bool is_beat;
};

struct side {
    struct xf_thread thread;
    struct xf_queue *ready; /* told once when it listens */
    struct xf_loop *loop;
    struct xf_bus_server *bus;
    struct xf_hub *hub;
    char *url; /* asked for, then chosen */
    struct waiting waiting[WAITING_MAX];
    size_t n_waiting;
    struct xf_timer commit;
    uint32_t number; /* no two answers are alike */
    size_t lost;     /* sessions that ended without the test's will */
    bool stopping;
    _Atomic bool stop;
    struct xf_timer poll_stop;
    struct xf_hub_stats stats;
};

static void on_commit(struct xf_timer *t)
{
    struct side *s = t->arg;
    size_t n = s->n_waiting;

    s->n_waiting = 0;
    for (size_t i = 0; i < n; i++) {
        struct xf_msg_beat_reply beat = {.checkpoint_ms = ++s->number};
        struct xf_msg_lease_reply lease = {.wait_ms = ++s->number};

        xf_hub_reply(s->waiting[i].req, s->waiting[i].is_beat ? (void *)&beat : (void *)&lease);
    }
}

static void wait_for_commit(struct side *s, struct xf_hub_req *r, bool is_beat)
{
    XF_ASSERT(s->n_waiting < WAITING_MAX);
    s->waiting[s->n_waiting++] = (struct waiting){r, is_beat};
    if (!xf_timer_is_started(&s->commit)) {
        xf_timer_in(s->loop, &s->commit, COMMIT_MS);
    }
}

static void on_hello(void *arg,
                     struct xf_hub_session *session,
                     const struct xf_msg_hello *m,
                     struct xf_hub_req *r)
{
    const struct xf_msg_hello_reply reply = {.lease_ttl_ms = 15000,
                                             .beat_ms = BEAT_MS,
                                             .margin_ms = 3000,
                                             .checkpoint_ms = 2000,
                                             .checkpoint_max = 500,
                                             .kept = m->held,
                                             .n_kept = m->n_held};

    (void)arg;
    (void)session;
    xf_hub_reply(r, &reply);
}

static void on_lease(void *arg,
                     struct xf_hub_session *session,
                     const struct xf_msg_lease *m,
                     struct xf_hub_req *r)
{
    (void)session;
    (void)m;
    wait_for_commit(arg, r, false);
}

static void on_beat_request(void *arg,
                            struct xf_hub_session *s,
                            const struct xf_msg_beat *m,
                            struct xf_hub_req *r)
{
    (void)s;
    (void)m;
    wait_for_commit(arg, r, true);
}

static void
on_job(void *arg, struct xf_hub_session *s, const struct xf_msg_job *m, struct xf_hub_req *r)
{
    (void)arg;
    (void)s;
    (void)m;
    xf_hub_fail(r, XF_E_NOT_FOUND, XF_STR_LIT("no jobs here"));
}

static void
on_fit(void *arg, struct xf_hub_session *s, const struct xf_msg_fit *m, struct xf_hub_req *r)
{
    (void)arg;
    (void)s;
    (void)m;
    xf_hub_fail(r, XF_E_NOT_FOUND, XF_STR_LIT("no jobs here"));
}

static void
on_bye(void *arg, struct xf_hub_session *s, const struct xf_msg_bye *m, struct xf_hub_req *r)
{
    const struct xf_msg_empty nothing = {0};

    (void)arg;
    (void)s;
    (void)m;
    xf_hub_reply(r, &nothing);
}

static void on_operator(void *arg, enum xf_kind kind, const void *m, struct xf_hub_req *r)
{
    (void)arg;
    (void)kind;
    (void)m;
    xf_hub_fail(r, XF_E_UNSUPPORTED, XF_STR_LIT("no operators here"));
}

static void on_gone(void *arg, struct xf_hub_session *session, enum xf_hub_gone why)
{
    struct side *s = arg;

    (void)session;
    s->lost += why == XF_HUB_CLOSED && s->stopping ? 0 : 1;
}

static const struct xf_hub_events hub_events = {
    on_hello, on_lease, on_job, on_beat_request, on_fit, on_bye, on_operator, on_gone};

static void on_request(void *arg, uint64_t token, struct xf_str bytes)
{
    struct side *s = arg;

    xf_hub_on_request(s->hub, token, bytes);
}

static void ask_to_stop(struct xf_timer *t)
{
    struct side *s = t->arg;

    if (atomic_load(&s->stop)) {
        xf_loop_stop(s->loop);
    } else {
        xf_timer_in(s->loop, t, 20);
    }
}

static void side_run(void *arg)
{
    struct side *s = arg;
    struct xf_err err = {0};
    struct xf_bus_server_opts bo = {
        .url = s->url, .contexts = 1200, .on_request = on_request, .arg = s};
    struct xf_hub_opts ho = {.events = &hub_events, .arg = s, .version = "test"};

    XF_ASSERT(xf_loop_new(NULL, &s->loop, &err) == XF_OK);
    bo.loop = s->loop;
    ho.loop = s->loop;
    XF_ASSERT(xf_bus_listen(&bo, &s->bus, &err) == XF_OK);
    ho.bus = xf_bus_server_answerer(s->bus);
    s->hub = xf_hub_new(&ho);
    s->commit = (struct xf_timer){.cb = on_commit, .arg = s};
    s->poll_stop = (struct xf_timer){.cb = ask_to_stop, .arg = s};
    xf_timer_in(s->loop, &s->poll_stop, 20);
    xf_xfree(s->url);
    s->url = xf_xstrdup(xf_bus_server_url(s->bus));
    xf_queue_push_reserved(s->ready, s);
    xf_loop_run(s->loop);
    s->stopping = true;
    xf_hub_stats(s->hub, &s->stats);
    xf_hub_free(s->hub);
    xf_bus_server_close(s->bus);
    xf_loop_free(s->loop);
}

static struct side *side_start(const char *url)
{
    struct side *s = xf_xcalloc(1, sizeof(*s));
    struct xf_err err = {0};

    s->url = xf_xstrdup(url);
    assert_int_equal(xf_queue_new(1, &s->ready, &err), XF_OK);
    assert_int_equal(xf_thread_start(&s->thread, "side", side_run, s, &err), XF_OK);
    assert_non_null(xf_queue_pop_wait(s->ready, 10000));
    return s;
}

static void side_stop(struct side *s)
{
    atomic_store(&s->stop, true);
    xf_thread_join(&s->thread);
}

static void side_free(struct side *s)
{
    xf_queue_free(s->ready);
    xf_xfree(s->url);
    xf_xfree(s);
}

/* ---- the agents' side ---- */

struct agent {
    struct fleet *fleet;
    struct xf_list pairs;
    struct xf_bus_client *bus;
    struct xf_link *link;
    size_t ups, downs, refused, beats, beats_lost, leases;
    uint32_t last_number; /* answers of later requests have higher ones */
    char id[16];
    unsigned char instance[XF_INSTANCE_LEN];
};

struct fleet {
    struct xf_loop *loop;
    struct agent *agents;
    size_t n;
    struct xf_rng rng;
    size_t twice;     /* requests sent twice of which both answers came */
    size_t different; /* of these, how many differ */
    size_t late;      /* the second came too late and was refused */
};

/* A request that was sent twice. */
struct pair {
    struct xf_list link; /* of its agent */
    uint64_t id;         /* the link's call */
    struct agent *agent;
    xf_bus_done_fn *done; /* the link's */
    void *arg;
    struct xf_buf first;
    struct xf_buf second;
    int open;
    bool failed;
};

static enum xf_code reply_code(struct xf_str bytes)
{
    XF_AUTO_ARENA arena = {0};
    struct xf_msg_reply r;
    struct xf_err err;

    return xf_msg_reply_decode(bytes, &arena, &r, &err) == XF_OK ? (enum xf_code)r.code
                                                                 : XF_E_PROTO;
}

static void pair_free(struct pair *p)
{
    xf_list_remove(&p->link);
    xf_buf_fini(&p->first);
    xf_buf_fini(&p->second);
    xf_xfree(p);
}

static void pair_end(struct pair *p)
{
    struct fleet *f = p->agent->fleet;

    if (--p->open > 0) {
        return;
    }
    if (!p->failed) {
        f->twice++;
        if (!xf_str_eq(xf_buf_view(&p->first), xf_buf_view(&p->second))) {
            bool is_late = reply_code(xf_buf_view(&p->first)) == XF_E_INVAL ||
                           reply_code(xf_buf_view(&p->second)) == XF_E_INVAL;

            f->late += is_late ? 1 : 0;
            f->different += is_late ? 0 : 1;
        }
    }
    pair_free(p);
}

static void first_done(void *arg, enum xf_code code, struct xf_str bytes)
{
    struct pair *p = arg;

    p->failed = p->failed || code != XF_OK;
    p->id = 0;
    xf_buf_put(&p->first, bytes);
    p->done(p->arg, code, bytes);
    pair_end(p);
}

static void second_done(void *arg, enum xf_code code, struct xf_str bytes)
{
    struct pair *p = arg;

    p->failed = p->failed || code != XF_OK;
    xf_buf_put(&p->second, bytes);
    pair_end(p);
}

/* The link's bus: sends some requests twice. A poll is not, so that nothing of a pair is cancelled.
 */
static uint64_t
call(void *bus, struct xf_str bytes, int64_t deadline_ms, xf_bus_done_fn *done, void *arg)
{
    struct agent *a = bus;
    int64_t now = xf_loop_mono_ms(a->fleet->loop);
    struct pair *p;

    if (xf_rng_below(&a->fleet->rng, 100) >= TWICE_PERCENT || deadline_ms - now > 15000) {
        return xf_bus_call(a->bus, bytes, deadline_ms, done, arg);
    }
    p = xf_xcalloc(1, sizeof(*p));
    xf_buf_init(&p->first, 0);
    xf_buf_init(&p->second, 0);
    p->agent = a;
    p->done = done;
    p->arg = arg;
    p->open = 2;
    xf_list_push_back(&a->pairs, &p->link);
    p->id = xf_bus_call(a->bus, bytes, deadline_ms, first_done, p);
    (void)xf_bus_call(a->bus, bytes, deadline_ms, second_done, p); /* never cancelled */
    return p->id;
}

static void cancel(void *bus, uint64_t id)
{
    struct agent *a = bus;

    xf_bus_cancel(a->bus, id);
    XF_LIST_FOREACH (node, &a->pairs) {
        struct pair *p = XF_CONTAINER_OF(node, struct pair, link);

        if (p->id == id) {
            p->failed = true;
            p->id = 0;
            pair_end(p);
        }
    }
}

static void hang_up(void *bus)
{
    struct agent *a = bus;

    xf_bus_hang_up(a->bus);
}

static size_t get_held(void *arg, struct xf_msg_held *out, size_t max)
{
    (void)arg;
    (void)max;
    out[0] = (struct xf_msg_held){.task = 11, .attempt = 2};
    return 1;
}

static void ask_lease(struct agent *a);

static void on_leased(void *arg, const struct xf_msg_lease_reply *r, const struct xf_err *err)
{
    struct agent *a = arg;

    if (err->code == XF_OK) {
        assert_true(r->wait_ms > 0);
        a->leases++;
    }
    if (a->leases < LEASES_WANTED && xf_link_is_up(a->link)) {
        ask_lease(a);
    }
}

static void ask_lease(struct agent *a)
{
    const struct xf_msg_lease m = {.free_tasks = 1, .free_objects = 1000, .kinds = XF_TASK_ALL};

    xf_link_lease(a->link, &m, on_leased, a);
}

static void on_up(void *arg, const struct xf_msg_hello_reply *r)
{
    struct agent *a = arg;

    a->ups++;
    assert_int_equal(r->n_kept, 1);
    assert_int_equal(r->kept[0].task, 11);
    ask_lease(a);
}

static void on_down(void *arg)
{
    struct agent *a = arg;

    a->downs++;
}

static void on_refused(void *arg, const struct xf_err *err)
{
    struct agent *a = arg;

    (void)err;
    a->refused++;
}

static void fill_beat(void *arg, struct xf_msg_beat *m, struct xf_arena *arena)
{
    (void)arg;
    (void)arena;
    m->in_flight = 1;
}

static void on_beat(void *arg, const struct xf_msg_beat_reply *r, int64_t sent_ms)
{
    struct agent *a = arg;

    (void)sent_ms;
    assert_true(r->checkpoint_ms > a->last_number);
    a->last_number = r->checkpoint_ms;
    a->beats++;
}

static void on_beat_lost(void *arg)
{
    struct agent *a = arg;

    a->beats_lost++;
}

static void on_orders(void *arg, const struct xf_msg_order *orders, size_t n)
{
    (void)arg;
    (void)orders;
    (void)n;
}

static const struct xf_link_events link_events = {
    get_held, on_up, on_down, on_refused, fill_beat, on_beat, on_beat_lost, on_orders};

static void agent_start(struct fleet *f, struct agent *a, size_t no, const char *url)
{
    struct xf_bus_client_opts bo = {.loop = f->loop, .url = url, .reconnect_ms = 200};
    struct xf_link_opts lo = {.loop = f->loop,
                              .bus = {call, cancel, hang_up, a},
                              .events = &link_events,
                              .arg = a,
                              .version = XF_STR_LIT("test"),
                              .seed = xf_test_seed() + no + 1};
    struct xf_err err = {0};
    XF_AUTO_BUF id = {0};

    a->fleet = f;
    xf_list_init(&a->pairs);
    xf_buf_init(&id, sizeof(a->id) - 1);
    xf_buf_putf(&id, "agent-%zu", no);
    memcpy(a->id, id.ptr, id.len);
    memcpy(a->instance, &no, sizeof(no));
    a->instance[XF_INSTANCE_LEN - 1] = 1;
    assert_int_equal(xf_bus_dial(&bo, &a->bus, &err), XF_OK);
    lo.agent_id = xf_str_c(a->id);
    lo.instance = xf_str_n(a->instance, XF_INSTANCE_LEN);
    a->link = xf_link_new(&lo);
}

static void fleet_start(struct fleet *f, size_t n, const char *url)
{
    struct xf_err err = {0};

    memset(f, 0, sizeof(*f));
    xf_rng_init(&f->rng, xf_test_seed());
    assert_int_equal(xf_loop_new(NULL, &f->loop, &err), XF_OK);
    f->agents = xf_xcalloc(n, sizeof(*f->agents));
    f->n = n;
    for (size_t i = 0; i < n; i++) {
        agent_start(f, &f->agents[i], i, url);
    }
}

static size_t count_if(const struct fleet *f, bool (*is)(const struct agent *a))
{
    size_t n = 0;

    for (size_t i = 0; i < f->n; i++) {
        n += is(&f->agents[i]) ? 1 : 0;
    }
    return n;
}

static void turn_until_all(struct fleet *f, bool (*is)(const struct agent *a), const char *what)
{
    int64_t end = xf_clock_mono_ms(xf_clock_real()) + END_MS;

    while (count_if(f, is) < f->n) {
        if (xf_clock_mono_ms(xf_clock_real()) > end) {
            fail_msg("%zu of %zu agents %s", count_if(f, is), f->n, what);
        }
        for (int i = 0; i < 50; i++) {
            xf_loop_turn(f->loop, 10);
        }
    }
}

static void fleet_free(struct fleet *f)
{
    for (size_t i = 0; i < f->n; i++) {
        xf_link_free(f->agents[i].link);
    }
    for (size_t i = 0; i < f->n; i++) {
        struct agent *a = &f->agents[i];

        xf_bus_client_close(a->bus);
        XF_LIST_FOREACH (node, &a->pairs) {
            pair_free(XF_CONTAINER_OF(node, struct pair, link)); /* a second copy unanswered */
        }
    }
    xf_xfree(f->agents);
    xf_loop_free(f->loop);
}

static bool has_enough(const struct agent *a)
{
    return a->beats >= BEATS_WANTED && a->leases >= LEASES_WANTED;
}

static bool was_never_down(const struct agent *a)
{
    return a->ups == 1 && a->downs == 0 && a->refused == 0 && a->beats_lost == 0;
}

static void c089_500_sessions_outlive_a_slow_commit_and_every_answer_is_one(void **state)
{
    struct side *s = side_start("tcp://127.0.0.1:0");
    struct fleet f;

    (void)state;
    fleet_start(&f, LINKS_MAX, s->url);
    turn_until_all(&f, has_enough, "got their answers");
    assert_int_equal(count_if(&f, was_never_down), LINKS_MAX);
    assert_int_equal(f.different, 0);
    assert_true(f.twice > LINKS_MAX / 4);
    side_stop(s);
    assert_int_equal(s->lost, 0);
    assert_int_equal(s->stats.sessions, LINKS_MAX);
    assert_true(s->stats.replayed > 0);
    printf("%zu requests sent twice, %zu second copies came too late; hub: %llu requests, "
           "%llu replayed\n",
           f.twice,
           f.late,
           (unsigned long long)s->stats.requests,
           (unsigned long long)s->stats.replayed);
    fleet_free(&f);
    side_free(s);
}

static bool came_back(const struct agent *a)
{
    return a->ups >= 2 && a->beats >= 1 && xf_link_is_up(a->link);
}

static bool is_up(const struct agent *a)
{
    return xf_link_is_up(a->link) && a->beats >= 1;
}

static void restarted_coordinator_gets_its_sessions_back(void **state)
{
    struct side *s = side_start("tcp://127.0.0.1:0");
    XF_AUTO_FREE char *url = xf_xstrdup(s->url);
    struct fleet f;

    (void)state;
    fleet_start(&f, 40, url);
    turn_until_all(&f, is_up, "came up");
    side_stop(s);
    side_free(s);
    for (size_t i = 0; i < f.n; i++) {
        f.agents[i].beats = 0;
        f.agents[i].last_number = 0;
    }
    s = side_start(url);
    turn_until_all(&f, came_back, "came back");
    for (size_t i = 0; i < f.n; i++) {
        assert_int_equal(f.agents[i].refused, 0);
        assert_int_equal(f.agents[i].ups, f.agents[i].downs + 1);
    }
    assert_int_equal(f.different, 0);
    fleet_free(&f);
    side_stop(s);
    side_free(s);
}

/* 500 connections have both ends in this process. */
static int allow_descriptors(void **state)
{
    struct rlimit r;

    (void)state;
    if (getrlimit(RLIMIT_NOFILE, &r) != 0 || r.rlim_max < 4096) {
        return -1;
    }
    r.rlim_cur = 4096;
    return setrlimit(RLIMIT_NOFILE, &r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c089_500_sessions_outlive_a_slow_commit_and_every_answer_is_one),
        cmocka_unit_test(restarted_coordinator_gets_its_sessions_back),
    };

    xf_log_set_level(XF_LOG_WARN);
    return xf_test_run("sessions", tests, allow_descriptors, NULL);
}
