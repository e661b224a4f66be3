/*
 * probe.c - one small listing a url and bucket, all at once, then perhaps one HEAD; the first
 * refusal found decides, else the first endpoint that did not answer.
 *
 * Invariants:
 * 1. `pending` counts the asks that have not ended; `finish` runs when it is 0, from a timer, so
 *    that no client is freed inside its own callback.
 * 2. After the deadline every request in flight is cancelled and nothing is tried again.
 */
#include "coordinator/probe.h"

#include "common/base/log.h"
#include "common/base/retry.h"
#include "common/job/spec.h"
#include "common/rt/loop.h"
#include "common/s3/plan.h"

enum { TRIES_MAX = 4, WAIT_MAX_MS = 1000 };

enum ask_kind {
    ASK_SOURCE,
    ASK_DESTINATION,
    ASK_ACLS, /* does the destination's bucket take them? when the job gives one */
    ASK_LOCK, /* likewise locks */
    ASK_ALIAS
};

struct probe;

struct ask {
    struct probe *probe;
    enum ask_kind kind;
    size_t url_no;
    uint32_t tries;
    struct xf_s3_req *req; /* NULL: none in flight */
    struct xf_timer again;
    bool is_done;
    struct xf_err err;
    struct xf_str key; /* sources: the first key found; in the arena */
    struct xf_str etag;
    int64_t modified_ms;
    struct xf_str region; /* of a redirect */
};

struct probe {
    const struct xf_job_spec *spec;
    struct xf_loop *loop;
    struct xf_s3 *source;
    struct xf_s3 *destination;
    struct ask *asks;
    size_t n_asks;
    size_t pending;
    bool is_late;
    struct xf_timer deadline;
    struct xf_timer finish;
    struct xf_rng rng;
    struct xf_arena arena;
    struct xf_probe_result res;
    void (*done)(void *arg, const struct xf_probe_result *res);
    void *arg;
};

static void ask_start(struct ask *a);

/* ---- overlap ------------------------------------------------------------------------------------
 */

static enum xf_code
check_pair(const struct xf_job_url *s, const struct xf_job_url *d, struct xf_err *err)
{
    if (!xf_str_eq(s->bucket, d->bucket)) {
        return XF_OK;
    }
    if (xf_str_eq(s->prefix, d->prefix)) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "source '%.*s' and destination '%.*s' overlap: they are the same place, "
                       "and nothing was copied; name another destination",
                       XF_STR_ARG(s->text),
                       XF_STR_ARG(d->text));
    }
    if (xf_str_starts(s->prefix, d->prefix) || xf_str_starts(d->prefix, s->prefix)) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "source '%.*s' and destination '%.*s' overlap in one bucket: the copies "
                       "would be listed again or replace the source; choose a prefix outside",
                       XF_STR_ARG(s->text),
                       XF_STR_ARG(d->text));
    }
    return XF_OK;
}

enum xf_code xf_probe_overlap(const struct xf_job_spec *spec, bool is_alias, struct xf_err *err)
{
    if (!is_alias && !xf_job_spec_is_same_service(spec)) {
        return XF_OK;
    }
    for (size_t i = 0; i < spec->source.n_urls; i++) {
        for (size_t k = 0; k < spec->destination.n_urls; k++) {
            XF_TRY(check_pair(&spec->source.urls[i], &spec->destination.urls[k], err));
        }
    }
    return XF_OK;
}

/* ---- end ----------------------------------------------------------------------------------------
 */

static bool is_unreachable(enum xf_code code)
{
    return code == XF_E_UNREACHABLE || code == XF_E_DNS || code == XF_E_NET ||
           code == XF_E_TIMEOUT || code == XF_E_STALLED || code == XF_E_TRUNCATED ||
           code == XF_E_SERVER || code == XF_E_THROTTLED || code == XF_E_BUSY;
}

static void add_advice(struct xf_err *err, const struct ask *a)
{
    const char *side = a->kind == ASK_SOURCE ? "source" : "destination";
    const struct xf_job_side *s =
        a->kind == ASK_SOURCE ? &a->probe->spec->source : &a->probe->spec->destination;
    struct xf_err was = *err;
    size_t len = strlen(was.msg);

    if (len > 0 && was.msg[len - 1] == '.') {
        was.msg[len - 1] = '\0'; /* a server's sentence; ours goes on */
    }
    switch ((int)was.code) {
    case XF_E_NO_BUCKET:
        (void)XF_FAIL(err, was.code, "%.380s; make the bucket, or correct the url", was.msg);
        break;
    case XF_E_REDIRECT:
        (void)XF_FAIL(err,
                      was.code,
                      "%.300s; set region = \"%.*s\" below [%s]",
                      was.msg,
                      XF_STR_ARG(a->region.len > 0 ? a->region : XF_STR_LIT("...")),
                      side);
        break;
    case XF_E_TLS:
        (void)XF_FAIL(
            err, was.code, "%.300s; check endpoint and ca_file below [%s]", was.msg, side);
        break;
    case XF_E_PROXY:
        (void)XF_FAIL(err,
                      was.code,
                      "%.300s; check s3.proxy and s3.no_proxy of the coordinator, or https_proxy, "
                      "http_proxy and no_proxy of its environment",
                      was.msg);
        break;
    case XF_E_DENIED:
    case XF_E_CREDS:
        (void)XF_FAIL(err,
                      was.code,
                      "%.300s; check the credentials below [%s] and what they may do",
                      was.msg,
                      side);
        break;
    default:
        if (is_unreachable(was.code)) {
            (void)XF_FAIL(err,
                          was.code,
                          "%.280s; check endpoint '%.*s' below [%s], or try again later",
                          was.msg,
                          XF_STR_ARG(s->endpoint.len > 0 ? s->endpoint : XF_STR_LIT("AWS")),
                          side);
        }
        break;
    }
}

/* The worst of what the asks found: a refusal before an endpoint that is down. */
static const struct ask *find_failed(const struct probe *p)
{
    const struct ask *down = NULL;

    for (size_t i = 0; i < p->n_asks; i++) {
        const struct ask *a = &p->asks[i];
        if (a->err.code == XF_OK || a->kind == ASK_ALIAS) {
            continue;
        }
        if (!is_unreachable(a->err.code)) {
            return a;
        }
        down = down == NULL ? a : down;
    }
    return down;
}

static void add_examples(struct probe *p)
{
    XF_AUTO_BUF to = {0};

    xf_buf_init(&to, 0);
    for (size_t i = 0; i < p->n_asks && p->res.n_examples < XF_PROBE_EXAMPLES_MAX; i++) {
        const struct ask *a = &p->asks[i];
        struct xf_err err;
        if (a->kind != ASK_SOURCE || a->key.len == 0 ||
            xf_job_spec_map_key(p->spec, a->url_no, a->key, &to, &err) != XF_OK) {
            continue;
        }
        p->res.example_from[p->res.n_examples] = a->key;
        p->res.example_to[p->res.n_examples++] = xf_arena_dup(&p->arena, xf_buf_view(&to));
    }
}

static void probe_free(struct probe *p)
{
    xf_timer_stop(p->loop, &p->deadline);
    xf_timer_stop(p->loop, &p->finish);
    xf_s3_free(p->source);
    xf_s3_free(p->destination);
    xf_xfree(p->asks);
    xf_arena_fini(&p->arena);
    xf_xfree(p);
}

static void judge_sources(struct probe *p)
{
    for (size_t i = 0; i < p->n_asks; i++) {
        const struct ask *a = &p->asks[i];
        if (a->kind != ASK_SOURCE) {
            continue;
        }
        p->res.has_keys = p->res.has_keys || a->key.len > 0;
        if (a->key.len == 0 && !p->spec->allow_empty && p->res.err.code == XF_OK) {
            (void)XF_FAIL(&p->res.err,
                          XF_E_EMPTY,
                          "source '%.*s' holds no object; correct the url, or set [job] "
                          "allow_empty = true",
                          XF_STR_ARG(p->spec->source.urls[a->url_no].text));
        }
    }
}

static void judge(struct probe *p)
{
    const struct ask *failed = find_failed(p);

    if (p->res.err.code != XF_OK) {
        return; /* no client, or an overlap found by the alias ask */
    }
    if (failed != NULL) {
        p->res.err = failed->err;
        p->res.is_unreachable = is_unreachable(failed->err.code);
        add_advice(&p->res.err, failed);
        return;
    }
    judge_sources(p);
    add_examples(p);
}

static void on_finish(struct xf_timer *t)
{
    struct probe *p = t->arg;

    judge(p);
    p->done(p->arg, &p->res);
    probe_free(p);
}

/* ---- the bucket under another name --------------------------------------------------------------
 */

/* Two endpoints at one port may be one service; then one HEAD tells. */
static bool wants_alias_check(const struct probe *p)
{
    struct xf_err err;

    return !xf_job_spec_is_same_service(p->spec) &&
           xf_s3_endpoint(p->source)->port == xf_s3_endpoint(p->destination)->port &&
           xf_probe_overlap(p->spec, true, &err) != XF_OK;
}

static void start_alias(struct probe *p)
{
    for (size_t i = 0; i < p->n_asks; i++) {
        struct ask *a = &p->asks[i];
        if (a->kind == ASK_ALIAS && !a->is_done) {
            a->key = p->asks[0].key;
            a->etag = p->asks[0].etag;
            a->modified_ms = p->asks[0].modified_ms;
            a->url_no = 0;
            ask_start(a);
            return;
        }
    }
    xf_timer_in(p->loop, &p->finish, 0);
}

static void on_alias(void *arg, const struct xf_s3_result *res)
{
    struct ask *a = arg;
    struct probe *p = a->probe;

    a->req = NULL;
    a->is_done = true;
    /* Another error is no proof of an alias: the buckets then count as two. */
    if (res->err.code == XF_OK && xf_plan_etag_eq(res->etag, a->etag) &&
        res->modified_ms / 1000 == a->modified_ms / 1000) {
        if (xf_probe_overlap(p->spec, true, &p->res.err) != XF_OK) {
            XF_INFO("probe.alias_found", xf_f_str("key", a->key));
        }
    }
    p->pending--;
    xf_timer_in(p->loop, &p->finish, 0);
}

/* ---- asks ---------------------------------------------------------------------------------------
 */

static void ask_end(struct ask *a)
{
    struct probe *p = a->probe;

    a->is_done = true;
    p->pending--;
    if (p->pending > 0) {
        return;
    }
    if (find_failed(p) == NULL && !p->is_late && p->asks[0].key.len > 0 && wants_alias_check(p)) {
        start_alias(p);
    } else {
        xf_timer_in(p->loop, &p->finish, 0);
    }
}

static void keep_first_key(struct ask *a, const struct xf_xml_doc *doc)
{
    struct xf_arena *arena = &a->probe->arena;

    if (a->kind == ASK_SOURCE && doc != NULL && doc->n_objects > 0) {
        a->key = xf_arena_dup(arena, doc->objects[0].key);
        a->etag = xf_arena_dup(arena, doc->objects[0].etag);
        a->modified_ms = doc->objects[0].modified_ms;
    }
}

static void on_listed(void *arg, const struct xf_s3_result *res)
{
    struct ask *a = arg;
    struct probe *p = a->probe;
    enum xf_class cls = xf_code_class(res->err.code);

    a->req = NULL;
    a->err = res->err;
    if (res->err.code == XF_OK) {
        keep_first_key(a, res->doc);
        ask_end(a);
        return;
    }
    a->region = xf_arena_dup(&p->arena, res->region);
    if (!p->is_late && ++a->tries < TRIES_MAX &&
        (cls == XF_CLASS_RETRY || cls == XF_CLASS_SLOW_DOWN)) {
        int64_t wait_ms = xf_retry_wait_ms(cls, a->tries, 0, &p->rng);
        xf_timer_in(p->loop, &a->again, wait_ms < WAIT_MAX_MS ? wait_ms : WAIT_MAX_MS);
        return;
    }
    if (p->is_late && res->err.code == XF_E_CANCELLED) {
        (void)XF_FAIL(&a->err, XF_E_UNREACHABLE, "no answer in time");
    }
    (void)XF_WRAP(&a->err, "[%s]", a->kind == ASK_SOURCE ? "source" : "destination");
    ask_end(a);
}

/*
 * Only a clear no refuses the job: who may not ask, or meets a service that does not know the
 * question, finds out by the first object.
 */
static void on_conf(void *arg, const struct xf_s3_result *res)
{
    struct ask *a = arg;
    struct xf_str bucket = a->probe->spec->destination.urls[a->url_no].bucket;

    a->req = NULL;
    if (a->kind == ASK_ACLS && res->err.code == XF_OK &&
        xf_str_eq_c(res->doc->text, "BucketOwnerEnforced") &&
        !xf_str_eq_c(xf_job_spec_acl(a->probe->spec), "bucket-owner-full-control")) {
        (void)XF_FAIL(&a->err,
                      XF_E_CONFIG,
                      "destination bucket '%.*s' has no ACLs (BucketOwnerEnforced): leave acl out, "
                      "its owner has all rights",
                      XF_STR_ARG(bucket));
    }
    if (a->kind == ASK_LOCK && xf_str_eq_c(res->s3_code, "ObjectLockConfigurationNotFoundError")) {
        (void)XF_FAIL(&a->err,
                      XF_E_CONFIG,
                      "destination bucket '%.*s' has no object lock: enable it there, or leave "
                      "object_lock out",
                      XF_STR_ARG(bucket));
    }
    ask_end(a);
}

static void ask_start(struct ask *a)
{
    struct probe *p = a->probe;
    struct xf_s3 *s3 = a->kind == ASK_SOURCE ? p->source : p->destination;
    const struct xf_job_side *side =
        a->kind == ASK_SOURCE ? &p->spec->source : &p->spec->destination;
    const struct xf_job_url *url = &side->urls[a->url_no];

    if (a->kind == ASK_ALIAS) {
        const struct xf_s3_head_opts o = {.bucket = url->bucket, .key = a->key};
        p->pending++;
        a->req = xf_s3_head(s3, &o, on_alias, a);
        return;
    }
    if (a->kind == ASK_ACLS || a->kind == ASK_LOCK) {
        enum xf_s3_conf what = a->kind == ASK_ACLS ? XF_S3_CONF_OWNERSHIP : XF_S3_CONF_LOCK;
        a->req = xf_s3_bucket_conf(s3, url->bucket, what, on_conf, a);
        return;
    }
    const struct xf_s3_list_opts o = {.bucket = url->bucket, .prefix = url->prefix, .max_keys = 1};
    a->req = xf_s3_list(s3, &o, on_listed, a);
}

static void on_again(struct xf_timer *t)
{
    ask_start(t->arg);
}

static void on_deadline(struct xf_timer *t)
{
    struct probe *p = t->arg;

    p->is_late = true;
    for (size_t i = 0; i < p->n_asks; i++) {
        struct ask *a = &p->asks[i];
        if (a->req != NULL) {
            xf_s3_cancel(a->req);
        } else if (xf_timer_is_started(&a->again)) {
            xf_timer_stop(p->loop, &a->again);
            ask_end(a);
        }
    }
}

static void add_ask(struct probe *p, enum ask_kind kind, size_t url_no)
{
    struct ask *a = &p->asks[p->n_asks++];

    *a = (struct ask){.probe = p,
                      .kind = kind,
                      .url_no = url_no,
                      .again = {.cb = on_again, .arg = a},
                      .key = XF_STR_EMPTY};
}

/* ---- start --------------------------------------------------------------------------------------
 */

static enum xf_code make_clients(struct probe *p, const struct xf_side_env *env, struct xf_err *err)
{
    if (xf_side_client(env, &p->spec->source, &p->source, err) != XF_OK) {
        return XF_WRAP(err, "[source]");
    }
    if (xf_side_client(env, &p->spec->destination, &p->destination, err) != XF_OK) {
        return XF_WRAP(err, "[destination]");
    }
    return XF_OK;
}

void xf_probe_start(const struct xf_side_env *env,
                    const struct xf_job_spec *spec,
                    int64_t timeout_ms,
                    void (*done)(void *arg, const struct xf_probe_result *res),
                    void *arg)
{
    struct probe *p = xf_xcalloc(1, sizeof(*p));

    p->spec = spec;
    p->loop = env->loop;
    p->done = done;
    p->arg = arg;
    p->deadline = (struct xf_timer){.cb = on_deadline, .arg = p};
    p->finish = (struct xf_timer){.cb = on_finish, .arg = p};
    xf_rng_init_os(&p->rng);
    p->asks = xf_xcalloc(spec->source.n_urls + 3 * spec->destination.n_urls + 1, sizeof(*p->asks));
    if (make_clients(p, env, &p->res.err) != XF_OK) {
        xf_timer_in(p->loop, &p->finish, 0);
        return;
    }
    for (size_t i = 0; i < spec->source.n_urls; i++) {
        add_ask(p, ASK_SOURCE, i);
    }
    for (size_t i = 0; i < spec->destination.n_urls; i++) {
        add_ask(p, ASK_DESTINATION, i);
        if (xf_job_spec_acl(spec).len > 0) {
            add_ask(p, ASK_ACLS, i);
        }
        if (spec->object_lock) {
            add_ask(p, ASK_LOCK, i);
        }
    }
    p->pending = p->n_asks;
    for (size_t i = 0; i < p->n_asks; i++) {
        ask_start(&p->asks[i]);
    }
    add_ask(p, ASK_ALIAS, 0);
    xf_timer_in(p->loop, &p->deadline, timeout_ms);
}
