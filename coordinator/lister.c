/*
 * lister.c - the lister's thread: commands in by one queue, events out by another.
 *
 * Core loop --commands--> lister loop: start, pause, stop, probe, quit.
 * Lister loop --events--> core loop: what listings and probes tell.
 *
 * Invariants:
 * 1. Spreads, clients and the store's port are touched by the lister's thread only.
 * 2. A command or event owns its strings; whoever takes it frees it.
 * 3. The thread ends when it was told to and no listing or probe is left.
 */
#include "coordinator/lister.h"

#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"
#include "coordinator/spread.h"

enum {
    QUEUE_CAP = 4096,
    PORT_CAP = 256,
    CONNECT_MS = 5000,
    FIRST_BYTE_MS = 60000,
    PROBE_CONNECT_MS = 3000,
    PROBE_FIRST_BYTE_MS = 6000
};

enum command_kind { CMD_START, CMD_PAUSE, CMD_RESUME, CMD_STOP, CMD_PROBE, CMD_QUIT };

struct command {
    enum command_kind kind;
    int64_t job;
    struct xf_shard_row shard; /* strings in the arena */
    struct xf_str spec;
    int64_t start_ms;
    void *cookie;
    struct xf_arena arena;
};

enum event_kind { EV_PAGE, EV_DONE, EV_FAILED, EV_WAIT, EV_PROBE };

struct event {
    enum event_kind kind;
    int64_t job;
    int64_t shard;
    size_t n_tasks;
    struct xf_err err;
    void *cookie;
    struct xf_probe_result probe; /* strings in the arena */
    struct xf_arena arena;
};

struct probing {
    struct xf_lister *lister;
    struct xf_job_spec *spec;
    void *cookie;
};

struct xf_lister {
    struct xf_lister_opts opts;
    struct xf_queue *commands;
    struct xf_queue *events;
    struct xf_queue *started; /* one struct xf_err: how the thread's own start went */
    struct xf_thread thread;

    /* The lister's thread. */
    struct xf_loop *loop;
    struct xf_http *http;
    struct xf_http *probe_http;
    struct xf_store_port *port;
    struct xf_list spreads;
    struct xf_list finished; /* to be freed by the reaper */
    struct xf_timer reaper;
    size_t n_probes;
    bool is_quitting;
};

/* ---- events to the core -------------------------------------------------------------------------
 */

static struct event *event_new(enum event_kind kind, int64_t job)
{
    struct event *e = xf_xcalloc(1, sizeof(*e));

    e->kind = kind;
    e->job = job;
    xf_arena_init(&e->arena);
    return e;
}

static void event_free(struct event *e)
{
    xf_arena_fini(&e->arena);
    xf_xfree(e);
}

/* Waits while the core is behind; at the end of the program the queue is closed. */
static void send_event(struct xf_lister *l, struct event *e)
{
    if (!xf_queue_push_wait(l->events, e)) {
        event_free(e);
    }
}

static void on_events(void *arg)
{
    struct xf_lister *l = arg;
    const struct xf_lister_events *ev = l->opts.events;
    struct event *e = NULL;

    while ((e = xf_queue_pop(l->events)) != NULL) {
        switch (e->kind) {
        case EV_PAGE: ev->on_page(l->opts.arg, e->job, e->n_tasks); break;
        case EV_DONE: ev->on_done(l->opts.arg, e->job, e->shard); break;
        case EV_FAILED: ev->on_failed(l->opts.arg, e->job, e->shard, &e->err); break;
        case EV_WAIT: ev->on_wait(l->opts.arg, e->job, &e->err); break;
        case EV_PROBE: ev->on_probe(l->opts.arg, e->cookie, &e->probe); break;
        }
        event_free(e);
    }
}

/* ---- listings -----------------------------------------------------------------------------------
 */

static void quit_if_idle(struct xf_lister *l)
{
    if (l->is_quitting && l->n_probes == 0 && xf_list_is_empty(&l->spreads) &&
        xf_list_is_empty(&l->finished)) {
        xf_loop_stop(l->loop);
    }
}

static void on_reap(struct xf_timer *t)
{
    struct xf_lister *l = t->arg;
    struct xf_list *node = NULL;

    while ((node = xf_list_pop_front(&l->finished)) != NULL) {
        xf_spread_free(xf_spread_of_link(node));
    }
    quit_if_idle(l);
}

static void on_page(void *arg, int64_t job, size_t n_tasks)
{
    struct event *e = event_new(EV_PAGE, job);

    e->n_tasks = n_tasks;
    send_event(arg, e);
}

static void on_done(void *arg, int64_t job, int64_t shard)
{
    struct event *e = event_new(EV_DONE, job);

    e->shard = shard;
    send_event(arg, e);
}

static void on_failed(void *arg, int64_t job, int64_t shard, const struct xf_err *err)
{
    struct event *e = event_new(EV_FAILED, job);

    e->shard = shard;
    e->err = *err;
    send_event(arg, e);
}

static void on_wait(void *arg, int64_t job, const struct xf_err *err)
{
    struct event *e = event_new(EV_WAIT, job);

    e->err = *err;
    send_event(arg, e);
}

static void on_over(void *arg, struct xf_spread *s)
{
    struct xf_lister *l = arg;

    xf_list_remove(xf_spread_link(s));
    xf_list_push_back(&l->finished, xf_spread_link(s));
    xf_timer_in(l->loop, &l->reaper, 0);
}

static const struct xf_spread_events spread_events = {
    .on_page = on_page,
    .on_done = on_done,
    .on_failed = on_failed,
    .on_wait = on_wait,
    .on_over = on_over,
};

static struct xf_side_env side_env(struct xf_lister *l, struct xf_http *http)
{
    return (struct xf_side_env){.loop = l->loop,
                                .http = http,
                                .clock = l->opts.clock,
                                .on_done = l->opts.on_request,
                                .on_done_arg = l->opts.on_request_arg};
}

static struct xf_spread *find_spread(struct xf_lister *l, int64_t job, uint32_t source_no)
{
    XF_LIST_FOREACH (node, &l->spreads) {
        struct xf_spread *s = xf_spread_of_link(node);
        if (xf_spread_is(s, job, source_no)) {
            return s;
        }
    }
    return NULL;
}

static void start_listing(struct xf_lister *l, const struct command *c)
{
    struct xf_err err;
    struct xf_spread *s = find_spread(l, c->shard.job, c->shard.source_no);
    const struct xf_spread_opts o = {
        .limits = l->opts.limits,
        .side = side_env(l, l->http),
        .port = l->port,
        .events = &spread_events,
        .arg = l,
        .job = c->shard.job,
        .source_no = c->shard.source_no,
        .spec = c->spec,
        .start_ms = c->start_ms,
    };

    if (s == NULL) {
        if (xf_spread_new(&o, &s, &err) != XF_OK) {
            on_failed(l, c->shard.job, c->shard.id, &err);
            return;
        }
        xf_list_push_back(&l->spreads, xf_spread_link(s));
    }
    xf_spread_add(s, &c->shard);
}

/* ---- probes -------------------------------------------------------------------------------------
 */

static void on_probed(void *arg, const struct xf_probe_result *res)
{
    struct probing *p = arg;
    struct xf_lister *l = p->lister;
    struct event *e = event_new(EV_PROBE, 0);

    e->cookie = p->cookie;
    e->probe = *res;
    for (size_t i = 0; i < res->n_examples; i++) {
        e->probe.example_from[i] = xf_arena_dup(&e->arena, res->example_from[i]);
        e->probe.example_to[i] = xf_arena_dup(&e->arena, res->example_to[i]);
    }
    send_event(l, e);
    xf_job_spec_free(p->spec);
    xf_xfree(p);
    l->n_probes--;
    xf_timer_in(l->loop, &l->reaper, 0);
}

static void start_probe(struct xf_lister *l, const struct command *c)
{
    struct probing *p = xf_xcalloc(1, sizeof(*p));
    struct xf_err err;
    const struct xf_side_env env = side_env(l, l->probe_http);

    p->lister = l;
    p->cookie = c->cookie;
    if (xf_job_spec_parse(c->spec, XF_STR_LIT("job"), &p->spec, &err) != XF_OK) {
        struct event *e = event_new(EV_PROBE, 0);
        e->cookie = c->cookie;
        e->probe.err = err;
        send_event(l, e);
        xf_xfree(p);
        return;
    }
    l->n_probes++;
    xf_probe_start(&env, p->spec, l->opts.probe_timeout_ms, on_probed, p);
}

/* ---- commands -----------------------------------------------------------------------------------
 */

static void each_of_job(struct xf_lister *l, int64_t job, void (*act)(struct xf_spread *s))
{
    XF_LIST_FOREACH (node, &l->spreads) {
        struct xf_spread *s = xf_spread_of_link(node);
        if (job == 0 || xf_spread_is(s, job, XF_SPREAD_ANY)) {
            act(s);
        }
    }
}

static void pause_one(struct xf_spread *s)
{
    xf_spread_pause(s, true);
}

static void resume_one(struct xf_spread *s)
{
    xf_spread_pause(s, false);
}

static void do_command(struct xf_lister *l, const struct command *c)
{
    switch (c->kind) {
    case CMD_START: start_listing(l, c); break;
    case CMD_PAUSE: each_of_job(l, c->job, pause_one); break;
    case CMD_RESUME: each_of_job(l, c->job, resume_one); break;
    case CMD_STOP: each_of_job(l, c->job, xf_spread_stop); break;
    case CMD_PROBE: start_probe(l, c); break;
    case CMD_QUIT:
        l->is_quitting = true;
        each_of_job(l, 0, xf_spread_stop);
        quit_if_idle(l);
        break;
    }
}

static void on_commands(void *arg)
{
    struct xf_lister *l = arg;
    struct command *c = NULL;

    while ((c = xf_queue_pop(l->commands)) != NULL) {
        do_command(l, c);
        xf_arena_fini(&c->arena);
        xf_xfree(c);
    }
}

static struct command *command_new(enum command_kind kind, int64_t job)
{
    struct command *c = xf_xcalloc(1, sizeof(*c));

    c->kind = kind;
    c->job = job;
    xf_arena_init(&c->arena);
    return c;
}

/* Commands are few: a handful a job and one a submit, so the bound is the jobs'. */
static void send_command(struct xf_lister *l, struct command *c)
{
    xf_queue_push_reserved(l->commands, c);
}

/* ---- the thread ---------------------------------------------------------------------------------
 */

static enum xf_code thread_init(struct xf_lister *l, struct xf_err *err)
{
    const struct xf_http_opts ho = {.connect_ms = CONNECT_MS, .first_byte_ms = FIRST_BYTE_MS};
    const struct xf_http_opts po = {.connect_ms = PROBE_CONNECT_MS,
                                    .first_byte_ms = PROBE_FIRST_BYTE_MS};

    XF_TRY(xf_loop_new(l->opts.clock, &l->loop, err));
    XF_TRY(xf_http_curl_new(l->loop, &ho, &l->http, err));
    XF_TRY(xf_http_curl_new(l->loop, &po, &l->probe_http, err));
    XF_TRY(xf_store_port_open(l->opts.store, l->loop, PORT_CAP, &l->port, err));
    l->reaper = (struct xf_timer){.cb = on_reap, .arg = l};
    return xf_queue_attach(l->commands, l->loop, on_commands, l, err);
}

static void thread_fini(struct xf_lister *l)
{
    xf_queue_detach(l->commands);
    xf_store_port_close(l->port);
    xf_http_free(l->probe_http);
    xf_http_free(l->http);
    xf_loop_free(l->loop);
}

static void thread_main(void *arg)
{
    struct xf_lister *l = arg;
    struct xf_err *outcome = xf_xcalloc(1, sizeof(*outcome));
    bool ok = thread_init(l, outcome) == XF_OK;

    xf_queue_push_reserved(l->started, outcome);
    if (ok) {
        xf_loop_run(l->loop);
    }
    thread_fini(l);
}

enum xf_code
xf_lister_new(const struct xf_lister_opts *opts, struct xf_lister **out, struct xf_err *err)
{
    XF_AUTO(xf_lister) l = xf_xcalloc(1, sizeof(*l));

    l->opts = *opts;
    xf_list_init(&l->spreads);
    xf_list_init(&l->finished);
    XF_TRY(xf_queue_new(QUEUE_CAP, &l->commands, err));
    XF_TRY(xf_queue_new(QUEUE_CAP, &l->events, err));
    XF_TRY(xf_queue_new(1, &l->started, err));
    XF_TRY(xf_queue_attach(l->events, opts->loop, on_events, l, err));
    XF_TRY(xf_thread_start(&l->thread, "xfer-lister", thread_main, l, err));
    XF_AUTO_FREE struct xf_err *outcome = xf_queue_pop_wait(l->started, -1);
    if (outcome->code != XF_OK) {
        xf_thread_join(&l->thread);
        *err = *outcome;
        return err->code;
    }
    *out = XF_STEAL(l);
    return XF_OK;
}

void xf_lister_free(struct xf_lister *l)
{
    if (l == NULL) {
        return;
    }
    if (l->events != NULL) {
        xf_queue_close(l->events); /* a waiting send gives up */
    }
    if (l->thread.started) {
        send_command(l, command_new(CMD_QUIT, 0));
        xf_thread_join(&l->thread);
    }
    if (l->events != NULL) {
        struct event *e = NULL;
        while ((e = xf_queue_pop(l->events)) != NULL) {
            event_free(e);
        }
        xf_queue_detach(l->events);
    }
    xf_queue_free(l->commands);
    xf_queue_free(l->events);
    xf_queue_free(l->started);
    xf_xfree(l);
}

/* ---- for the core -------------------------------------------------------------------------------
 */

void xf_lister_start(struct xf_lister *l, const struct xf_listing_start *s)
{
    struct command *c = command_new(CMD_START, s->shard->job);

    c->shard = *s->shard;
    c->shard.lo = xf_arena_dup(&c->arena, s->shard->lo);
    c->shard.hi = xf_arena_dup(&c->arena, s->shard->hi);
    c->shard.cursor = xf_arena_dup(&c->arena, s->shard->cursor);
    c->spec = xf_arena_dup(&c->arena, s->spec);
    c->start_ms = s->start_ms;
    send_command(l, c);
}

void xf_lister_pause(struct xf_lister *l, int64_t job, bool on)
{
    send_command(l, command_new(on ? CMD_PAUSE : CMD_RESUME, job));
}

void xf_lister_stop(struct xf_lister *l, int64_t job)
{
    send_command(l, command_new(CMD_STOP, job));
}

void xf_lister_probe(struct xf_lister *l, struct xf_str spec, void *cookie)
{
    struct command *c = command_new(CMD_PROBE, 0);

    c->spec = xf_arena_dup(&c->arena, spec);
    c->cookie = cookie;
    send_command(l, c);
}
