/*
 * listing.c - the life of one shard's listing.
 *
 *   SPLITTING (its shard is made) --ok--> COMMITTING or QUEUED
 *   QUEUED --permit--> ASKING --page--> COMMITTING --ok--> QUEUED ...  --last page--> OVER (done)
 *      ^                  |              |  ^
 *      +--timer-- WAITING <--error--+    +--timer-- WAITING (store full: the same page again)
 *                             too many errors, disorder, no progress --> OVER (failed)
 *
 * Invariants:
 * 1. At most one request or one operation of the store is under way.
 * 2. `cursor` is what the store has: it moves only after a commit.
 * 3. Only a fully parsed page with IsTruncated=false, or one that reached the shard's end, is
 *    committed as the last one (CASES C019). The store knows the end: a split may have moved it.
 */
#include "coordinator/listing.h"

#include "common/base/log.h"
#include "common/base/retry.h"
#include "common/job/spec.h"
#include "common/s3/s3err.h"

enum {
    FATAL_TRIES = 3,   /* a refusal is asked again a few times: policies take time to spread */
    WAIT_MIN_MS = 500, /* endpoint down: between two tries */
    WAIT_MAX_MS = 10000,
    STORE_WAIT_MS = 1000, /* store full */
    QUEUE_WAIT_MS = 20    /* store's queue full */
};

static void ask(struct xf_listing *g);
static void commit(struct xf_listing *g);

/* ---- ends ---------------------------------------------------------------------------------------
 */

static void give_permit(struct xf_listing *g, enum xf_limit_how how, int64_t retry_after_ms)
{
    if (g->has_permit) {
        g->has_permit = false;
        xf_limit_give(g->env->limit, how, g->asked_ms, retry_after_ms);
    }
}

static void drop_page(struct xf_listing *g)
{
    if (g->has_page) {
        xf_page_fini(&g->page);
        g->has_page = false;
    }
}

static void over(struct xf_listing *g)
{
    XF_ASSERT(g->state != XF_LISTING_OVER && g->req == NULL);
    drop_page(g);
    give_permit(g, XF_LIMIT_NEUTRAL, -1);
    xf_limit_forget(g->env->limit, &g->want);
    xf_timer_stop(g->env->side.loop, &g->timer);
    g->state = XF_LISTING_OVER;
}

static void fail(struct xf_listing *g, struct xf_err *err)
{
    XF_AUTO_BUF key = {0};

    if (g->shard == 0) { /* never made: whose keys they are meets it too */
        over(g);
        g->env->events->on_split(g->env->arg, g);
        g->env->events->on_ended(g->env->arg, g);
        return;
    }
    xf_buf_init(&key, 0);
    xf_buf_put_escaped(&key, xf_str_sub(xf_buf_view(&g->cursor), 0, 150));
    (void)XF_WRAP(err,
                  "cannot list '%.*s' to its end (last key '%.*s')",
                  XF_STR_ARG(g->env->spec->source.urls[g->env->source_no].text),
                  XF_STR_ARG(xf_buf_view(&key)));
    over(g);
    g->env->events->on_failed(g->env->arg, g, err);
}

static bool end_if_stopped(struct xf_listing *g)
{
    if (g->is_stopped) {
        over(g);
        g->env->events->on_ended(g->env->arg, g);
    }
    return g->is_stopped;
}

static void tell_waiting(struct xf_listing *g, const struct xf_err *err)
{
    bool is_waiting = err->code != XF_OK;

    if (is_waiting || g->is_told_waiting) {
        g->env->events->on_wait(g->env->arg, g, err);
        g->is_told_waiting = is_waiting;
    }
}

static void wait_ms(struct xf_listing *g, int64_t ms)
{
    g->state = XF_LISTING_WAITING;
    xf_timer_in(g->env->side.loop, &g->timer, ms);
}

/* ---- commit -------------------------------------------------------------------------------------
 */

static void on_committed_ok(struct xf_listing *g, bool is_last)
{
    struct xf_err ok = {.code = XF_OK};
    size_t n_tasks = g->page.n_batches + g->page.n_uploads;

    xf_buf_reset(&g->cursor);
    xf_buf_put(&g->cursor, g->page.cursor);
    g->n_keys = 0;
    g->n_requests = 0;
    drop_page(g);
    tell_waiting(g, &ok);
    g->env->events->on_page(g->env->arg, g, n_tasks);
    if (is_last) {
        over(g);
        g->env->events->on_done(g->env->arg, g);
    } else if (!end_if_stopped(g)) {
        ask(g);
    }
}

static void on_committed(struct xf_store_op *op)
{
    struct xf_listing *g = op->arg;

    if (op->rc == XF_OK) {
        on_committed_ok(g, op->out.page_commit.is_done);
    } else if (op->rc == XF_E_CANCELLED || g->is_stopped) {
        g->is_stopped = true;
        (void)end_if_stopped(g);
    } else if (op->rc == XF_E_LIMIT || op->rc == XF_E_DISK || op->rc == XF_E_BUSY) {
        tell_waiting(g, &op->err); /* the page stays, and is committed again */
        wait_ms(g, STORE_WAIT_MS);
    } else {
        struct xf_err err = op->err;
        err.code = XF_E_LISTING;
        fail(g, &err);
    }
}

static void fill_commit(struct xf_listing *g, struct xf_store_op *op)
{
    struct xf_in_page_commit *in = &op->in.page_commit;
    struct xf_store_batch *batches =
        xf_store_op_calloc(op, g->page.n_batches + 1, sizeof(*batches));

    for (size_t i = 0; i < g->page.n_batches; i++) {
        batches[i].manifest = xf_buf_view(&g->page.batches[i].manifest);
    }
    *in = (struct xf_in_page_commit){
        .shard = g->shard,
        .generation = g->generation,
        .cursor_old = xf_buf_view(&g->cursor),
        .cursor_new = g->page.cursor,
        .is_last = g->page_is_last,
        .keys_returned = g->n_keys,
        .list_requests = g->n_requests,
        .batches = batches,
        .n_batches = g->page.n_batches,
        .uploads = g->page.uploads,
        .n_uploads = g->page.n_uploads,
    };
}

static void on_split(struct xf_store_op *op)
{
    struct xf_listing *g = op->arg;

    if (op->rc == XF_E_DISK || op->rc == XF_E_BUSY) {
        wait_ms(g, STORE_WAIT_MS);
        return;
    }
    if (op->rc == XF_OK) {
        g->shard = op->out.shard_split.shard;
        g->split_of = op->out.shard_split.whole;
        xf_buf_reset(&g->hi);
        xf_buf_put(&g->hi, op->out.shard_split.hi);
    }
    g->env->events->on_split(g->env->arg, g);
    if (g->shard == 0) { /* the whole has gone on, or the job is stopped: its keys are not ours */
        g->is_stopped = true;
    }
    if (end_if_stopped(g)) {
        return;
    }
    if (g->has_page) {
        commit(g);
    } else {
        ask(g);
    }
}

/* Make the shard; what the listing has waits until it is there. */
static void split(struct xf_listing *g)
{
    XF_AUTO(xf_store_op) op = xf_store_op_new(XF_OP_SHARD_SPLIT, on_split, g);

    op->in.shard_split = (struct xf_in_shard_split){
        .like = g->split_of,
        .generation = g->generation,
        .point = xf_buf_view(&g->cursor),
    };
    g->state = XF_LISTING_SPLITTING;
    if (xf_store_submit(g->env->port, op)) {
        op = NULL; /* the store's until on_split */
    } else {
        wait_ms(g, QUEUE_WAIT_MS);
    }
}

static void commit(struct xf_listing *g)
{
    if (g->shard == 0) {
        split(g);
        return;
    }
    XF_AUTO(xf_store_op) op = xf_store_op_new(XF_OP_PAGE_COMMIT, on_committed, g);

    fill_commit(g, op);
    g->state = XF_LISTING_COMMITTING;
    if (xf_store_submit(g->env->port, op)) {
        op = NULL; /* the store's until on_committed */
    } else {
        wait_ms(g, QUEUE_WAIT_MS);
    }
}

/* ---- pages --------------------------------------------------------------------------------------
 */

static void take_page(struct xf_listing *g, const struct xf_xml_doc *doc, bool is_last)
{
    struct xf_err err;
    const struct xf_page_in in = {
        .spec = g->env->spec,
        .source_no = g->env->source_no,
        .start_ms = g->env->start_ms,
        .cursor = xf_buf_view(&g->cursor),
        .objects = doc->objects,
        .n_objects = doc->n_objects,
        .batch_objects = g->env->limits.batch_objects,
        .batch_bytes = g->env->limits.batch_bytes,
    };

    enum xf_code rc = xf_page_build(&in, &g->page, &err);
    g->has_page = true;
    if (rc != XF_OK) {
        fail(g, &err);
        return;
    }
    g->page_is_last = is_last;
    if (!g->page_is_last && xf_str_eq(g->page.cursor, xf_buf_view(&g->cursor))) {
        drop_page(g); /* nothing new in it */
        ask(g);
        return;
    }
    commit(g);
}

static void on_encoding(void *arg, const struct xf_s3_result *res);

static void ask_encoding(struct xf_listing *g)
{
    struct xf_str bucket = g->env->spec->source.urls[g->env->source_no].bucket;

    g->req = xf_encoding_ask(&g->encoding, g->env->s3, bucket, on_encoding, g);
}

/* The keys that the page has shown, for those who look where others may lie. */
static void keep_ends(struct xf_listing *g, const struct xf_xml_doc *doc)
{
    if (doc->n_objects == 0) {
        return;
    }
    xf_buf_reset(&g->first_key);
    xf_buf_reset(&g->last_key);
    xf_buf_put(&g->first_key, doc->objects[0].key);
    xf_buf_put(&g->last_key, doc->objects[doc->n_objects - 1].key);
    g->is_exhausted = false;
    g->env->events->on_received(g->env->arg, g, doc);
}

static void on_page(struct xf_listing *g, const struct xf_xml_doc *listed)
{
    struct xf_err err = {.code = XF_OK};
    struct xf_xml_doc decoded;
    XF_AUTO_ARENA a = {0};

    if (xf_encoding_must_ask(&g->encoding, listed)) {
        ask_encoding(g);
        return;
    }
    const struct xf_xml_doc *doc = xf_encoding_page(&g->encoding, listed, &a, &decoded);

    g->tries = 0;
    g->waits = 0;
    g->is_key_good = false; /* of what comes later it says nothing */
    g->n_keys += doc->n_objects;
    g->env->is_v1 = g->env->is_v1 || doc->is_v1; /* from now on its markers are used */
    switch (xf_walk_page(&g->walk, doc, xf_buf_view(&g->cursor), &err)) {
    case XF_WALK_PAGE:
        keep_ends(g, doc);
        take_page(g, doc, false);
        break;
    case XF_WALK_LAST: take_page(g, doc, true); break;
    case XF_WALK_RESTART:
        XF_WARN("listing.repeated",
                xf_f_i64("job", g->env->job),
                xf_f_i64("shard", g->shard),
                xf_f_str("last_key", xf_buf_view(&g->cursor)));
        ask(g);
        break;
    case XF_WALK_FAIL: fail(g, &err); break;
    }
}

/* Trouble that is not the listing's: the endpoint is down, or this host is not well. */
static bool is_outage(enum xf_code code)
{
    return code == XF_E_UNREACHABLE || xf_code_class(code) == XF_CLASS_LOCAL;
}

/* A refused signature: the secret key has changed, which passes when this host gets the new one, or
 * the service signs this one request otherwise. A small listing that is taken tells which. */
static bool is_key_doubted(struct xf_listing *g, const struct xf_s3_result *res)
{
    g->is_key_asked = xf_s3err_is_signature(res->s3_code) && !g->is_key_good;
    return g->is_key_asked;
}

static void wait_out(struct xf_listing *g, const struct xf_err *err)
{
    int64_t ms = (int64_t)WAIT_MIN_MS << (g->waits < 5 ? g->waits : 5);

    g->waits++;
    tell_waiting(g, err);
    wait_ms(g, ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS);
}

static void on_error(struct xf_listing *g, const struct xf_s3_result *res)
{
    struct xf_err err = res->err;

    if (is_key_doubted(g, res)) {
        (void)XF_FAIL_SUB(&err, XF_E_CREDS, res->status, "%s", res->err.msg);
    }
    enum xf_class cls = xf_code_class(err.code);
    uint32_t max =
        cls == XF_CLASS_RETRY || cls == XF_CLASS_SLOW_DOWN ? g->env->limits.tries : FATAL_TRIES;

    XF_WARN("listing.failed_try",
            xf_f_i64("job", g->env->job),
            xf_f_i64("shard", g->shard),
            xf_f_u64("tries", g->tries),
            xf_f_code(err.code),
            xf_f_err(&err));
    xf_walk_rewind(&g->walk); /* from the last good key, not by a token that may be gone */
    if (is_outage(err.code)) {
        wait_out(g, &err);
        return;
    }
    g->tries++;
    if (g->tries >= max) {
        fail(g, &err);
        return;
    }
    wait_ms(g,
            xf_retry_wait_ms(cls == XF_CLASS_SLOW_DOWN ? cls : XF_CLASS_RETRY,
                             g->tries - 1,
                             res->retry_after_ms > 0 ? res->retry_after_ms : 0,
                             g->env->rng));
}

/* A HEAD that tells what a key of the page means; then the page is asked for again. */
static void on_encoding(void *arg, const struct xf_s3_result *res)
{
    struct xf_listing *g = arg;
    enum xf_class cls = xf_code_class(res->err.code);

    g->req = NULL;
    if (end_if_stopped(g)) {
        return;
    }
    if (cls != XF_CLASS_NONE && cls != XF_CLASS_FATAL) {
        on_error(g, res);
    } else if (!xf_encoding_answer(&g->encoding, res)) {
        ask_encoding(g);
    } else {
        if (g->encoding.state == XF_ENCODING_HIDDEN) {
            XF_WARN("listing.encoding_not_announced",
                    xf_f_i64("job", g->env->job),
                    xf_f_i64("shard", g->shard));
        }
        ask(g);
    }
}

/* What an answer says about load. */
static enum xf_limit_how how_of(const struct xf_s3_result *res)
{
    if (xf_code_class(res->err.code) == XF_CLASS_SLOW_DOWN) {
        return XF_LIMIT_THROTTLED;
    }
    return res->err.code == XF_OK ? XF_LIMIT_OK : XF_LIMIT_NEUTRAL;
}

static void on_listed(void *arg, const struct xf_s3_result *res)
{
    struct xf_listing *g = arg;

    g->req = NULL;
    g->n_requests++;
    give_permit(g, how_of(res), res->retry_after_ms);
    if (end_if_stopped(g)) {
        return;
    }
    if (res->err.code != XF_OK) {
        on_error(g, res);
    } else if (res->doc == NULL || res->doc->root != XF_XML_LIST) {
        struct xf_s3_result bad = *res;
        (void)XF_FAIL(&bad.err, XF_E_XML, "the answer is not a listing");
        on_error(g, &bad);
    } else {
        on_page(g, res->doc);
    }
}

static void on_key(void *arg, const struct xf_s3_result *res)
{
    struct xf_listing *g = arg;

    g->req = NULL;
    if (end_if_stopped(g)) {
        return;
    }
    if (res->err.code != XF_OK) {
        on_error(g, res);
        return;
    }
    g->is_key_asked = false;
    g->is_key_good = true;
    ask(g);
}

static void ask_key(struct xf_listing *g)
{
    const struct xf_job_url *url = &g->env->spec->source.urls[g->env->source_no];
    const struct xf_s3_list_opts o = {.bucket = url->bucket, .prefix = url->prefix, .max_keys = 1};

    g->state = XF_LISTING_ASKING;
    g->req = xf_s3_list(g->env->s3, &o, on_key, g);
}

static void ask_page(struct xf_listing *g)
{
    const struct xf_job_url *url = &g->env->spec->source.urls[g->env->source_no];
    const struct xf_s3_list_opts o = {
        .bucket = url->bucket,
        .prefix = url->prefix,
        .start_after = xf_buf_view(&g->cursor),
        .token = xf_buf_view(&g->walk.token),
        .is_v1 = g->env->is_v1,
    };

    g->state = XF_LISTING_ASKING;
    g->asked_ms = xf_loop_mono_ms(g->env->side.loop);
    g->req = xf_s3_list(g->env->s3, &o, on_listed, g);
}

static void on_permit(struct xf_limit_want *want)
{
    struct xf_listing *g = want->arg;

    g->has_permit = true;
    if (g->is_paused) {
        give_permit(g, XF_LIMIT_NEUTRAL, -1);
        g->state = XF_LISTING_IDLE;
        return;
    }
    ask_page(g);
}

static void ask(struct xf_listing *g)
{
    if (g->is_paused) {
        g->state = XF_LISTING_IDLE;
    } else if (g->is_key_asked) {
        ask_key(g);
    } else if (xf_limit_take(g->env->limit)) {
        g->has_permit = true;
        ask_page(g);
    } else {
        g->state = XF_LISTING_QUEUED;
        g->want.has_begun = true; /* goes before a look for more shards */
        xf_limit_wait(g->env->limit, &g->want);
    }
}

static void on_timer(struct xf_timer *t)
{
    struct xf_listing *g = t->arg;

    if (end_if_stopped(g)) {
        return;
    }
    if (g->shard == 0) {
        split(g);
    } else if (g->has_page) {
        commit(g);
    } else {
        ask(g);
    }
}

/* ---- life ---------------------------------------------------------------------------------------
 */

/* Make the client; trouble of this host (credentials not there yet) is waited for. */
static void on_start(struct xf_timer *t)
{
    struct xf_listing *g = t->arg;
    struct xf_err err;
    enum xf_code rc = XF_OK;

    if (end_if_stopped(g)) {
        return;
    }
    if (g->env->s3 == NULL) {
        rc = xf_side_client(&g->env->side, &g->env->spec->source, &g->env->s3, &err);
    }
    if (rc == XF_OK) {
        g->timer.cb = on_timer;
        ask(g);
    } else if (is_outage(rc)) {
        tell_waiting(g, &err);
        wait_ms(g, WAIT_MAX_MS);
    } else {
        fail(g, &err);
    }
}

static struct xf_listing *listing_new(struct xf_listing_env *env)
{
    struct xf_listing *g = xf_xcalloc(1, sizeof(*g));

    g->env = env;
    xf_buf_init(&g->cursor, 0);
    xf_buf_init(&g->hi, 0);
    xf_buf_init(&g->first_key, 0);
    xf_buf_init(&g->last_key, 0);
    xf_buf_init(&g->top, 0);
    g->trust = 2;
    xf_walk_init(&g->walk, xf_rng_u64(env->rng));
    xf_encoding_init(&g->encoding);
    g->want = (struct xf_limit_want){.go = on_permit, .arg = g};
    g->timer = (struct xf_timer){.cb = on_start, .arg = g};
    return g;
}

struct xf_listing *xf_listing_new(struct xf_listing_env *env, const struct xf_shard_row *shard)
{
    struct xf_listing *g = listing_new(env);

    XF_ASSERT(shard->source_no == env->source_no && shard->job == env->job);
    g->shard = shard->id;
    g->generation = shard->generation;
    xf_buf_put(&g->cursor, shard->cursor);
    xf_buf_put(&g->hi, shard->hi);
    g->is_loose = shard->hi.len == 0;
    wait_ms(g, 0);
    return g;
}

/* ---- split --------------------------------------------------------------------------------------
 */

struct xf_listing *
xf_listing_split(const struct xf_listing *whole, struct xf_str point, const struct xf_xml_doc *doc)
{
    struct xf_listing *g = listing_new(whole->env);
    bool has_top = xf_str_cmp(xf_buf_view(&whole->top), point) > 0;

    g->split_of = whole->shard;
    g->generation = whole->generation;
    g->encoding.state = whole->encoding.state;
    g->is_loose = whole->hi.len == 0 && !has_top;
    g->trust = whole->trust;
    g->timer.cb = on_timer;
    xf_buf_put(&g->cursor, point);
    xf_buf_put(&g->hi, xf_buf_view(&whole->hi));
    xf_buf_put(&g->top, has_top ? xf_buf_view(&whole->top) : XF_STR_EMPTY);
    g->n_requests = 1;
    if (xf_encoding_must_ask(&g->encoding, doc)) {
        split(g); /* then it asks for itself, and for what its keys mean */
    } else {
        on_page(g, doc);
    }
    return g;
}

void xf_listing_free(struct xf_listing *g)
{
    if (g == NULL) {
        return;
    }
    XF_ASSERT(g->state == XF_LISTING_OVER);
    xf_walk_fini(&g->walk);
    xf_encoding_fini(&g->encoding);
    xf_buf_fini(&g->cursor);
    xf_buf_fini(&g->hi);
    xf_buf_fini(&g->first_key);
    xf_buf_fini(&g->last_key);
    xf_buf_fini(&g->top);
    xf_xfree(g);
}

void xf_listing_pause(struct xf_listing *g, bool on)
{
    g->is_paused = on;
    if (!on && g->state == XF_LISTING_IDLE) {
        ask(g);
    }
}

void xf_listing_stop(struct xf_listing *g)
{
    if (g->state == XF_LISTING_OVER || g->is_stopped) {
        return;
    }
    g->is_stopped = true;
    if (g->req != NULL) {
        xf_s3_cancel(g->req); /* on_listed ends it */
    } else if (g->state != XF_LISTING_COMMITTING && g->state != XF_LISTING_SPLITTING) {
        g->state = XF_LISTING_WAITING;
        xf_timer_in(g->env->side.loop, &g->timer, 0);
    }
}
