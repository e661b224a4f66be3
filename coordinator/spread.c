/*
 * spread.c - where to look for a range's other half, and what a look finds.
 *
 * A range is estimated in pages: how much of its key space the last page took, against what is left
 * of it. That holds where keys lie evenly and is wild elsewhere, so looks correct it: one that
 * finds nothing brings the range's end (`top`) to its point. Where the end is a guess (`is_loose`),
 * halving the key space would take a look for each character on the way to where the keys branch;
 * instead the level of the branch is searched: is there a key behind all those that begin as the
 * last one does, to its n-th character?
 *
 * Invariants:
 * 1. A look's page becomes a listing only when its keys rise and lie above the point.
 * 2. What is known here of a shard's end is a hint. The store alone decides which keys are whose.
 */
#include "coordinator/spread.h"

#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/xml.h"
#include "coordinator/keyspace.h"

#include <stdlib.h>

enum {
    MIN_PAGES = 4,    /* a range of fewer is not split: its halves would cost more than they win */
    LIMIT_START = 16, /* pages asked for at a time, at first */
    EMPTY_FIRST = 12, /* looks that may find nothing before the first page, */
    EMPTY_EARLY = 2,  /* then one more for so many pages, */
    EMPTY_FREE = 40,  /* and from this number on */
    EMPTY_PART = 10,  /* one for so many */
    HOLD_MS = 1000,   /* no look after one that failed */
    TRUST_MAX = 64,   /* looks at a time into a range whose looks found keys; one after another
                         where one found none */
    LOOSE_LOOKS = 3,  /* at a time into a range whose end is a guess */
    POINTS_MAX = 256, /* cuts of one range that are thought about */
    LEARN_EVERY = 100 /* keys of a page, one of which teaches its characters */
};
static const double endless = 1e12; /* pages of a range without a known end */

struct look {
    struct xf_list link;
    struct xf_spread *s;
    struct xf_buf point;
    struct xf_s3_req *req;
    int64_t asked_ms;
};

struct xf_spread {
    struct xf_list link; /* the owner's */
    struct xf_spread_opts o;
    struct xf_listing_env env;
    struct xf_rng rng;
    struct xf_keyspace keys;
    struct xf_list listings;
    struct xf_list finished; /* to be freed by the timer */
    struct xf_list looks;
    struct xf_timer timer; /* free what is over, look for more */
    int64_t hold_until_ms;
    uint64_t n_pages;
    uint64_t n_empty; /* looks that found nothing */
    unsigned n_listings;
    unsigned n_looks;
    unsigned n_waiting; /* listings that told they wait */
    bool is_serial;     /* the service does not heed start-after */
    bool is_paused;
    bool is_stopped;
    bool is_over;
};

/* A stretch of key space that a point may cut. */
struct gap {
    struct xf_listing *g;
    struct xf_str lo;
    struct xf_str hi; /* empty: none */
    double pages;
    bool is_first; /* it begins where the listing is */
};

static struct xf_listing *listing_of(struct xf_list *node)
{
    return XF_CONTAINER_OF(node, struct xf_listing, link);
}

static void wake(struct xf_spread *s)
{
    if (!xf_timer_is_started(&s->timer)) {
        xf_timer_in(s->o.side.loop, &s->timer, 0);
    }
}

/* ---- where to look ------------------------------------------------------------------------------
 */

/* The lower of two ends; empty: none. */
static struct xf_str lower(struct xf_str a, struct xf_str b)
{
    if (a.len == 0 || b.len == 0) {
        return a.len == 0 ? b : a;
    }
    return xf_str_cmp(a, b) < 0 ? a : b;
}

/* The point before which the listing's range ends, as far as is known; empty: not known. */
static struct xf_str end_of(const struct xf_spread *s, const struct xf_listing *g)
{
    struct xf_str last = xf_buf_view(&g->last_key);
    struct xf_str hi = xf_buf_view(&g->hi);
    struct xf_str end = lower(xf_str_sub(hi, 0, hi.len > 0 ? hi.len - 1 : 0), xf_buf_view(&g->top));

    XF_LIST_FOREACH (node, &s->listings) { /* those whose shard is being split off */
        const struct xf_listing *r = listing_of(node);
        if (r->shard == 0 && xf_str_cmp(xf_buf_view(&r->cursor), last) > 0) {
            end = lower(end, xf_buf_view(&r->cursor));
        }
    }
    return end;
}

static size_t common(const struct xf_spread *s, struct xf_str key, struct xf_str end)
{
    return end.len > 0 ? xf_keyspace_common(key, end) : s->keys.fixed;
}

/* Pages from a to b, by the last page of g. */
static double pages_between(const struct xf_spread *s,
                            const struct xf_listing *g,
                            struct xf_str a,
                            struct xf_str b)
{
    size_t from = common(s, xf_buf_view(&g->first_key), b);
    double took = xf_keyspace_place(&s->keys, xf_buf_view(&g->last_key), from) -
                  xf_keyspace_place(&s->keys, xf_buf_view(&g->first_key), from);
    double left = (b.len > 0 ? xf_keyspace_place(&s->keys, b, from) : 1.0) -
                  xf_keyspace_place(&s->keys, a, from);

    return took > 0.0 ? left / took : left > 0.0 ? endless : 0.0;
}

static int by_bytes(const void *a, const void *b)
{
    return xf_str_cmp(*(const struct xf_str *)a, *(const struct xf_str *)b);
}

static void offer(struct gap *best, const struct gap *x)
{
    if (x->pages >= MIN_PAGES && x->pages > best->pages) {
        *best = *x;
    }
}

/* The largest gap of a listing's range between the points that are being looked at. */
static void offer_gaps(const struct xf_spread *s, struct xf_listing *g, struct gap *best)
{
    struct xf_str points[POINTS_MAX + 1];
    struct xf_str end = end_of(s, g);
    struct gap x = {.g = g, .lo = xf_buf_view(&g->last_key), .is_first = true};
    size_t n = 0;

    XF_LIST_FOREACH (node, &s->looks) {
        struct xf_str p = xf_buf_view(&XF_CONTAINER_OF(node, struct look, link)->point);
        if (xf_str_cmp(p, x.lo) > 0 && (end.len == 0 || xf_str_cmp(p, end) < 0) && n < POINTS_MAX) {
            points[n++] = p;
        }
    }
    if (n >= (g->is_loose && g->trust > LOOSE_LOOKS ? LOOSE_LOOKS : g->trust)) {
        return;
    }
    qsort(points, n, sizeof(points[0]), by_bytes);
    points[n++] = end;
    if (end.len > 0 && xf_str_cmp(x.lo, end) >= 0) {
        return; /* it goes past its end with this page */
    }
    for (size_t i = 0; i < (g->is_loose ? 1 : n); i++) {
        x.hi = points[i];
        x.pages = x.hi.len > 0 ? pages_between(s, g, x.lo, x.hi) : endless;
        offer(best, &x);
        x.lo = x.hi;
        x.is_first = false;
    }
}

/* The highest level at which enough keys are expected before the point behind it. */
static size_t highest_level(const struct xf_spread *s, const struct gap *x, size_t lo)
{
    size_t hi = x->lo.len;
    XF_AUTO_BUF p = {0};

    xf_buf_init(&p, 0);
    while (lo < hi) { /* fewer pages the higher the level */
        size_t mid = lo + (hi - lo + 1) / 2;
        xf_keyspace_behind(x->lo, xf_keyspace_border(x->lo, mid), &p);
        if (pages_between(s, x->g, x->lo, xf_buf_view(&p)) >= MIN_PAGES) {
            lo = mid;
        } else {
            hi = mid - 1;
        }
    }
    return lo;
}

/* A point behind the keys that share a part of the last one, half way to where it gets too few. */
static bool branch(const struct xf_spread *s, const struct gap *x, struct xf_buf *out)
{
    size_t lo = xf_keyspace_choice(&s->keys, x->lo, common(s, x->lo, x->hi));
    size_t hi = highest_level(s, x, lo);
    size_t level = xf_keyspace_border(x->lo, lo + (hi - lo + 1) / 2);

    level = xf_keyspace_choice(&s->keys, x->lo, level);
    if (level <= lo || level > hi || level > XF_KEYSPACE_POINT_MAX) {
        return false;
    }
    xf_keyspace_behind(x->lo, level, out);
    return xf_str_cmp(xf_buf_view(out), x->lo) > 0 &&
           (x->hi.len == 0 || xf_str_cmp(xf_buf_view(out), x->hi) < 0);
}

static bool has_budget(const struct xf_spread *s)
{
    uint64_t early = EMPTY_FIRST + s->n_pages / EMPTY_EARLY;
    uint64_t late = EMPTY_FREE + s->n_pages / EMPTY_PART;

    return s->n_empty < (early < late ? early : late);
}

/* A point in the gap; false: none can be made. */
static bool cut(const struct xf_spread *s, const struct gap *x, struct xf_buf *out)
{
    if (x->is_first && x->g->is_loose) {
        if (branch(s, x, out)) {
            return true;
        }
        x->g->is_loose = false; /* the search has ended: what is left is about even */
    }
    return xf_keyspace_between(&s->keys, x->lo, x->hi, 0.5, out);
}

/* The next point to look behind; false: there is none worth a look. */
static bool pick(struct xf_spread *s, struct xf_buf *out)
{
    for (;;) {
        struct gap best = {.g = NULL};
        XF_LIST_FOREACH (node, &s->listings) {
            struct xf_listing *g = listing_of(node);
            if (g->shard != 0 && g->last_key.len > 0 && !g->is_exhausted) {
                offer_gaps(s, g, &best);
            }
        }
        if (best.g == NULL) {
            return false;
        }
        if (cut(s, &best, out)) {
            return true;
        }
        best.g->is_exhausted = true; /* until its next page */
    }
}

/* ---- looks --------------------------------------------------------------------------------------
 */

static void look_free(struct look *l)
{
    xf_list_remove(&l->link);
    l->s->n_looks--;
    xf_buf_fini(&l->point);
    xf_xfree(l);
}

/* The listing in whose range the point lies; NULL: it has gone past, or ended. */
static struct xf_listing *cover_of(const struct xf_spread *s, struct xf_str point)
{
    XF_LIST_FOREACH (node, &s->listings) {
        struct xf_listing *g = listing_of(node);
        struct xf_str hi = xf_buf_view(&g->hi);
        if (g->shard != 0 && g->last_key.len > 0 &&
            xf_str_cmp(xf_buf_view(&g->last_key), point) < 0 &&
            xf_str_cmp(xf_buf_view(&g->cursor), point) < 0 &&
            (hi.len == 0 || xf_str_cmp(point, hi) < 0)) {
            return g;
        }
    }
    return NULL;
}

static bool rises_above(const struct xf_xml_doc *doc, struct xf_str point)
{
    for (size_t i = 0; i < doc->n_objects; i++) {
        if (xf_str_cmp(doc->objects[i].key, point) <= 0) {
            return false;
        }
        point = doc->objects[i].key;
    }
    return true;
}

static void go_serial(struct xf_spread *s, struct xf_str point)
{
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    xf_buf_put_escaped(&text, xf_str_sub(point, 0, 150));
    XF_WARN("listing.serial",
            xf_f_i64("job", s->env.job),
            xf_f_str("after", xf_buf_view(&text)),
            xf_f_c("why", "a listing by start-after brought keys that are not behind it"));
    s->is_serial = true;
}

static void take_look(struct xf_spread *s, const struct look *l, const struct xf_xml_doc *doc)
{
    struct xf_str point = xf_buf_view(&l->point);
    struct xf_listing *g = cover_of(s, point);

    XF_DEBUG("listing.looked",
             xf_f_i64("job", s->env.job),
             xf_f_str("behind", point),
             xf_f_str("found", doc->n_objects > 0 ? doc->objects[0].key : XF_STR_EMPTY),
             xf_f_str("end", g != NULL ? end_of(s, g) : XF_STR_EMPTY),
             xf_f_u64("listings", s->n_listings),
             xf_f_u64("looks", s->n_looks),
             xf_f_u64("limit", xf_limit_now(s->env.limit)));

    if (!rises_above(doc, point)) {
        go_serial(s, point);
        return;
    }
    if (g == NULL) {
        s->n_empty++;
        return;
    }
    struct xf_str end = end_of(s, g);
    bool is_inside =
        doc->n_objects > 0 && (end.len == 0 || xf_str_cmp(doc->objects[0].key, end) <= 0);
    if (is_inside && (end.len == 0 || xf_str_cmp(point, end) < 0)) {
        g->trust = g->trust < TRUST_MAX ? g->trust * 2 : TRUST_MAX;
        struct xf_listing *rest = xf_listing_split(g, point, doc);
        if (rest->state == XF_LISTING_OVER) {
            xf_list_push_back(&s->finished, &rest->link);
        } else {
            xf_list_push_back(&s->listings, &rest->link);
            s->n_listings++;
        }
        return;
    }
    s->n_empty++;
    g->n_requests++;
    g->trust = 1;
    if ((doc->n_objects > 0 || !doc->is_truncated) &&
        (end.len == 0 || xf_str_cmp(point, end) < 0)) {
        xf_buf_reset(&g->top);
        xf_buf_put(&g->top, point);
        g->is_loose = true;
    }
}

static void end_if_over(struct xf_spread *s);

static void on_looked(void *arg, const struct xf_s3_result *res)
{
    struct look *l = arg;
    struct xf_spread *s = l->s;
    bool is_slow_down = xf_code_class(res->err.code) == XF_CLASS_SLOW_DOWN;
    bool is_page = res->err.code == XF_OK && res->doc != NULL && res->doc->root == XF_XML_LIST;

    xf_limit_give(s->env.limit,
                  is_slow_down             ? XF_LIMIT_THROTTLED
                  : res->err.code == XF_OK ? XF_LIMIT_OK
                                           : XF_LIMIT_NEUTRAL,
                  l->asked_ms,
                  res->retry_after_ms);
    xf_list_remove(&l->link); /* its point cuts nothing any more */
    if (is_page && !s->is_stopped && !s->is_paused) {
        take_look(s, l, res->doc);
    } else if (res->err.code != XF_E_CANCELLED) {
        s->hold_until_ms = xf_loop_mono_ms(s->o.side.loop) + HOLD_MS;
    }
    look_free(l);
    end_if_over(s);
    wake(s);
}

static void look(struct xf_spread *s, struct xf_str point)
{
    const struct xf_job_url *url = &s->env.spec->source.urls[s->env.source_no];
    struct look *l = xf_xcalloc(1, sizeof(*l));
    const struct xf_s3_list_opts o = {
        .bucket = url->bucket, .prefix = url->prefix, .start_after = point, .is_v1 = s->env.is_v1};

    l->s = s;
    l->asked_ms = xf_loop_mono_ms(s->o.side.loop);
    xf_buf_init(&l->point, 0);
    xf_buf_put(&l->point, point);
    xf_list_push_back(&s->looks, &l->link);
    s->n_looks++;
    l->req = xf_s3_list(s->env.s3, &o, on_looked, l);
}

/* A quarter more than may be asked at a time: some are with the store. */
static bool has_room(const struct xf_spread *s)
{
    unsigned now = xf_limit_now(s->env.limit);

    return s->n_listings + s->n_looks < now + (now + 3) / 4;
}

static void look_for_more(struct xf_spread *s)
{
    XF_AUTO_BUF point = {0};

    xf_buf_init(&point, 0);
    while (has_room(s) && has_budget(s) && pick(s, &point) && xf_limit_take(s->env.limit)) {
        look(s, xf_buf_view(&point));
    }
}

static bool may_look(const struct xf_spread *s)
{
    return !s->is_serial && !s->is_paused && !s->is_stopped && s->env.s3 != NULL &&
           xf_loop_mono_ms(s->o.side.loop) >= s->hold_until_ms;
}

/* ---- what listings tell -------------------------------------------------------------------------
 */

static void cancel_looks(struct xf_spread *s)
{
    XF_LIST_FOREACH (node, &s->looks) {
        xf_s3_cancel(XF_CONTAINER_OF(node, struct look, link)->req); /* on_looked comes later */
    }
}

static void end_if_over(struct xf_spread *s)
{
    if (s->n_listings == 0 && s->n_looks == 0 && !s->is_over) {
        s->is_over = true;
        s->o.events->on_over(s->o.arg, s);
    }
}

static void retire(struct xf_spread *s, struct xf_listing *g)
{
    if (g->is_told_waiting) {
        s->n_waiting--;
    }
    if (!xf_list_is_linked(&g->link)) {
        return; /* it ended inside xf_listing_split() */
    }
    xf_list_remove(&g->link);
    xf_list_push_back(&s->finished, &g->link);
    s->n_listings--;
    if (s->n_listings == 0) {
        cancel_looks(s);
    }
    wake(s);
}

static void on_received(void *arg, struct xf_listing *g, const struct xf_xml_doc *doc)
{
    struct xf_spread *s = arg;

    s->n_pages++;
    for (size_t i = 0; i < doc->n_objects; i += LEARN_EVERY) {
        xf_keyspace_learn(&s->keys, doc->objects[i].key);
    }
    xf_keyspace_learn(&s->keys, xf_buf_view(&g->last_key));
    s->is_serial = s->is_serial || g->encoding.state == XF_ENCODING_HIDDEN;
    wake(s);
}

/* The whole ends at the point now. */
static void on_split(void *arg, struct xf_listing *rest)
{
    struct xf_spread *s = arg;

    if (rest->shard == 0) {
        s->n_empty++;
        return;
    }
    XF_LIST_FOREACH (node, &s->listings) {
        struct xf_listing *g = listing_of(node);
        if (g->shard == rest->split_of) {
            xf_buf_reset(&g->hi);
            xf_buf_put(&g->hi, xf_buf_view(&rest->cursor));
            xf_buf_put_byte(&g->hi, '\0');
        }
    }
}

static void on_page(void *arg, struct xf_listing *g, size_t n_tasks)
{
    struct xf_spread *s = arg;

    (void)g;
    s->o.events->on_page(s->o.arg, s->env.job, n_tasks);
}

static void on_done(void *arg, struct xf_listing *g)
{
    struct xf_spread *s = arg;

    s->o.events->on_done(s->o.arg, s->env.job, g->shard);
    retire(s, g);
    end_if_over(s);
}

static void on_failed(void *arg, struct xf_listing *g, const struct xf_err *err)
{
    struct xf_spread *s = arg;

    s->o.events->on_failed(s->o.arg, s->env.job, g->shard, err);
    retire(s, g);
    end_if_over(s);
}

/* It is over when none waits any more. */
static void on_wait(void *arg, struct xf_listing *g, const struct xf_err *err)
{
    struct xf_spread *s = arg;
    bool is_waiting = err->code != XF_OK;

    s->n_waiting += is_waiting && !g->is_told_waiting ? 1 : 0;
    s->n_waiting -= !is_waiting && g->is_told_waiting ? 1 : 0;
    if (is_waiting || s->n_waiting == 0) {
        s->o.events->on_wait(s->o.arg, s->env.job, err);
    }
}

static void on_ended(void *arg, struct xf_listing *g)
{
    struct xf_spread *s = arg;

    retire(s, g);
    end_if_over(s);
}

static const struct xf_listing_events listing_events = {
    .on_received = on_received,
    .on_split = on_split,
    .on_page = on_page,
    .on_done = on_done,
    .on_failed = on_failed,
    .on_wait = on_wait,
    .on_ended = on_ended,
};

static void free_finished(struct xf_spread *s)
{
    struct xf_list *node = NULL;

    while ((node = xf_list_pop_front(&s->finished)) != NULL) {
        xf_listing_free(listing_of(node));
    }
}

static void on_timer(struct xf_timer *t)
{
    struct xf_spread *s = t->arg;

    free_finished(s);
    if (may_look(s)) {
        look_for_more(s);
    }
}

/* ---- life ---------------------------------------------------------------------------------------
 */

enum xf_code
xf_spread_new(const struct xf_spread_opts *o, struct xf_spread **out, struct xf_err *err)
{
    XF_AUTO(xf_job_spec) spec = NULL;

    XF_TRY(xf_job_spec_parse(o->spec, XF_STR_LIT("job"), &spec, err));
    XF_ASSERT(o->source_no < spec->source.n_urls);
    struct xf_spread *s = xf_xcalloc(1, sizeof(*s));
    s->o = *o;
    s->o.spec = XF_STR_EMPTY;
    xf_rng_init_os(&s->rng);
    xf_keyspace_init(&s->keys, spec->source.urls[o->source_no].prefix.len);
    xf_list_init(&s->listings);
    xf_list_init(&s->finished);
    xf_list_init(&s->looks);
    s->timer = (struct xf_timer){.cb = on_timer, .arg = s};
    s->env = (struct xf_listing_env){
        .limits = o->limits,
        .side = o->side,
        .port = o->port,
        .events = &listing_events,
        .arg = s,
        .job = o->job,
        .source_no = o->source_no,
        .start_ms = o->start_ms,
        .spec = XF_STEAL(spec),
        .rng = &s->rng,
    };
    s->env.limit = xf_limit_new(&(struct xf_limit_opts){
        .loop = o->side.loop,
        .rng = &s->rng,
        .name = "listing",
        .start = o->limits.requests < LIMIT_START ? o->limits.requests : LIMIT_START,
        .max = o->limits.requests,
    });
    s->is_serial = o->limits.requests <= 1;
    *out = s;
    return XF_OK;
}

void xf_spread_free(struct xf_spread *s)
{
    if (s == NULL) {
        return;
    }
    XF_ASSERT(s->n_listings == 0 && s->n_looks == 0);
    free_finished(s);
    xf_timer_stop(s->o.side.loop, &s->timer);
    xf_limit_free(s->env.limit);
    xf_s3_free(s->env.s3);
    xf_job_spec_free(s->env.spec);
    xf_keyspace_fini(&s->keys);
    xf_xfree(s);
}

void xf_spread_add(struct xf_spread *s, const struct xf_shard_row *shard)
{
    struct xf_listing *g = xf_listing_new(&s->env, shard);

    xf_list_push_back(&s->listings, &g->link);
    s->n_listings++;
    xf_listing_pause(g, s->is_paused);
}

void xf_spread_pause(struct xf_spread *s, bool on)
{
    s->is_paused = on;
    XF_LIST_FOREACH (node, &s->listings) {
        xf_listing_pause(listing_of(node), on);
    }
    if (!on) {
        wake(s);
    }
}

void xf_spread_stop(struct xf_spread *s)
{
    s->is_stopped = true;
    cancel_looks(s);
    XF_LIST_FOREACH (node, &s->listings) {
        xf_listing_stop(listing_of(node));
    }
}

bool xf_spread_is(const struct xf_spread *s, int64_t job, uint32_t source_no)
{
    return s->env.job == job && (source_no == XF_SPREAD_ANY || s->env.source_no == source_no) &&
           !s->is_over && !s->is_stopped;
}

struct xf_list *xf_spread_link(struct xf_spread *s)
{
    return &s->link;
}

struct xf_spread *xf_spread_of_link(struct xf_list *link)
{
    return XF_CONTAINER_OF(link, struct xf_spread, link);
}
