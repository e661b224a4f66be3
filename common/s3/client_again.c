/*
 * client_again.c - the repeats that the client makes by itself: a clock that is off, keys that have
 * ended, a bucket that is elsewhere.
 *
 *   end of a request --+-- clock off: keep the offset ----------------------------> send again
 *                      +-- keys refused: newer ones are there --------------------> send again
 *                      |      `-- or are being asked for: WAITING, looks every LOOK_MS
 *                      +-- redirect: the region is told, or another host ---------> send again
 *                             `-- or not told: another question to the bucket tells the region
 *
 * A redirect is followed only to where the keys may go: another region of the endpoint's own
 * partition, or the endpoint's own host and names below it, never from https to http. What was
 * learnt of a bucket's region stays for the client's life, a host without a region for a minute.
 * Source: "Amazon S3 User Guide", request redirection; HeadBucket of the API reference for
 * x-amz-bucket-region, which comes with refusals, too.
 */
#include "common/base/log.h"
#include "common/s3/client_int.h"

enum {
    RENEW_AHEAD_MS = 60000, /* keys that end sooner are read again before use */
    RENEW_PAUSE_MS = 5000,  /* but not more often than this */
    LOOK_MS = 50,
    KEYS_WAIT_MS = 20000, /* for keys that are being asked for */
    SKEW_SUSPICIOUS_MS = 300000,
    FOLLOW_MS = 60000, /* a redirect by Location alone holds so long */
    MOVES_MAX = 3      /* redirects of one request */
};

/* ---- keys ---- */

enum xf_code xf_client_read_creds(struct xf_s3 *s3, struct xf_err *err)
{
    struct xf_creds *fresh = NULL;

    if (s3->opts.creds == NULL) {
        return XF_OK;
    }
    s3->creds_read_ms = xf_loop_mono_ms(s3->opts.loop);
    XF_TRY(xf_creds_resolve(s3->opts.creds, &fresh, err));
    xf_creds_unref(s3->creds);
    s3->creds = fresh;
    return XF_OK;
}

/* What we hold stays in use when that fails. */
void xf_client_renew_ahead(struct xf_s3 *s3)
{
    int64_t now_ms = xf_loop_mono_ms(s3->opts.loop);
    int64_t ends_ms = s3->creds != NULL ? xf_creds_expires_ms(s3->creds) : 0;
    struct xf_err err;

    if (ends_ms != 0 && xf_client_wall_ms(s3) > ends_ms - RENEW_AHEAD_MS &&
        now_ms - s3->creds_read_ms >= RENEW_PAUSE_MS) {
        (void)xf_client_read_creds(s3, &err); /* the request itself will tell */
    }
}

/* Keys other than the request's, or the news that they come. */
static enum xf_client_again newer_keys(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;
    struct xf_err err;

    if (!xf_creds_is_same(req->creds, s3->creds)) {
        return XF_CLIENT_AGAIN;
    }
    bool is_coming = xf_creds_renew(s3->opts.creds, req->creds);
    if (xf_client_read_creds(s3, &err) == XF_OK && !xf_creds_is_same(req->creds, s3->creds)) {
        return XF_CLIENT_AGAIN;
    }
    return is_coming ? XF_CLIENT_WAIT : XF_CLIENT_END;
}

static bool are_keys_refused(const struct xf_s3_req *req)
{
    const struct xf_s3_result *res = &req->res;
    bool is_bare = res->status == 400 && req->op == XF_S3_HEAD && req->header_code.len == 0 &&
                   xf_creds_session_token(req->creds).len > 0 && res->err.code == XF_E_BAD_REQUEST;

    return is_bare || xf_s3err_is_expired(res->s3_code);
}

/* The answer's head goes now: what of it an error may still need is kept. */
static void keep_result(struct xf_s3_req *req)
{
    struct xf_s3_result *res = &req->res;

    res->s3_code = xf_arena_dup(&req->arena, res->s3_code);
    res->request_id = xf_arena_dup(&req->arena, res->request_id);
    res->region = xf_arena_dup(&req->arena, res->region);
    res->etag = XF_STR_EMPTY;
    res->etag_raw = XF_STR_EMPTY;
    res->version_id = XF_STR_EMPTY;
    req->location = XF_STR_EMPTY;
}

static enum xf_client_again renew_keys(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;
    enum xf_client_again again;

    if (req->creds_renewed || req->creds == NULL || !are_keys_refused(req)) {
        return XF_CLIENT_END;
    }
    req->creds_renewed = true;
    again = newer_keys(req);
    if (again == XF_CLIENT_WAIT) {
        req->wait_until_ms = xf_loop_mono_ms(s3->opts.loop) + KEYS_WAIT_MS;
        xf_list_remove(&req->node);
        xf_list_push_back(&s3->waiting, &req->node);
        if (!xf_timer_is_started(&s3->look)) {
            xf_timer_in(s3->opts.loop, &s3->look, LOOK_MS);
        }
    }
    return again;
}

void xf_client_on_look(struct xf_timer *t)
{
    struct xf_s3 *s3 = t->arg;
    int64_t now_ms = xf_loop_mono_ms(s3->opts.loop);
    struct xf_list todo;
    struct xf_list *node;

    xf_list_init(&todo);
    while ((node = xf_list_pop_front(&s3->waiting)) != NULL) {
        xf_list_push_back(&todo, node);
    }
    while ((node = xf_list_pop_front(&todo)) != NULL) {
        struct xf_s3_req *req = XF_CONTAINER_OF(node, struct xf_s3_req, node);
        enum xf_client_again again = req->cancelled ? XF_CLIENT_END : newer_keys(req);

        if (again == XF_CLIENT_WAIT && now_ms < req->wait_until_ms) {
            xf_list_push_back(&s3->waiting, node);
            continue;
        }
        xf_list_push_back(&s3->active, node);
        xf_client_go_on(req, again == XF_CLIENT_AGAIN);
    }
    if (!xf_list_is_empty(&s3->waiting)) {
        xf_timer_in(s3->opts.loop, &s3->look, LOOK_MS);
    }
}

/* ---- the clock ---- */

static bool fix_clock(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;
    const struct xf_s3_result *res = &req->res;
    int64_t server_ms = res->server_date_ms;
    int64_t off_ms;

    if (res->doc != NULL && res->doc->error.server_time.len > 0) {
        (void)xf_time_parse_rfc3339(res->doc->error.server_time, &server_ms); /* else the header */
    }
    off_ms = server_ms - req->signed_wall_ms;
    if (req->clock_fixed || server_ms == 0 || req->creds == NULL) {
        return false;
    }
    if (res->err.code != XF_E_CLOCK) {
        /* HEAD has no body to say so: a refusal with a clock that is far off is taken for it. */
        bool is_bare = res->status == 403 && res->doc == NULL && req->header_code.len == 0;

        if (!is_bare || (off_ms < SKEW_SUSPICIOUS_MS && off_ms > -SKEW_SUSPICIOUS_MS)) {
            return false;
        }
    }
    req->clock_fixed = true;
    s3->clock_offset_ms = server_ms - xf_clock_wall_ms(s3->opts.clock);
    return true;
}

/* ---- places ---- */

static struct xf_client_place *find_place(struct xf_s3 *s3, struct xf_str bucket)
{
    XF_LIST_FOREACH (node, &s3->places) {
        struct xf_client_place *p = XF_CONTAINER_OF(node, struct xf_client_place, node);

        if (xf_str_eq_c(bucket, p->bucket)) {
            return p;
        }
    }
    return NULL;
}

const struct xf_client_place *xf_client_place_of(struct xf_s3 *s3, struct xf_str bucket)
{
    const struct xf_client_place *p = find_place(s3, bucket);

    return p == NULL || (p->until_ms != 0 && xf_loop_mono_ms(s3->opts.loop) >= p->until_ms) ? NULL
                                                                                            : p;
}

void xf_client_places_free(struct xf_s3 *s3)
{
    struct xf_list *node;

    while ((node = xf_list_pop_front(&s3->places)) != NULL) {
        struct xf_client_place *p = XF_CONTAINER_OF(node, struct xf_client_place, node);

        xf_xfree(p->bucket);
        xf_xfree(p);
    }
}

/* What may stand in a signature's scope, and in a host's name. */
static bool is_region_name(struct xf_str region)
{
    for (size_t i = 0; i < region.len; i++) {
        char c = region.ptr[i];

        if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9') &&
            c != '-' && c != '_') {
            return false;
        }
    }
    return region.len > 0 && region.len <= XF_URI_REGION_MAX;
}

static struct xf_client_place *remember(struct xf_s3_req *req, struct xf_str region)
{
    struct xf_client_place *p = find_place(req->s3, req->bucket);

    if (p == NULL) {
        p = xf_xcalloc(1, sizeof(*p));
        p->bucket = xf_str_dup(req->bucket);
        xf_list_push_back(&req->s3->places, &p->node);
    }
    p->endpoint = req->s3->opts.endpoint;
    p->until_ms = 0;
    memcpy(p->region, region.ptr, region.len);
    p->region[region.len] = '\0';
    return p;
}

/* The bucket is in that region: for all requests from now on. False: the keys may not go there. */
static bool learn_place(struct xf_s3_req *req, struct xf_str region)
{
    struct xf_uri_endpoint there = req->s3->opts.endpoint;
    const struct xf_client_place *p = xf_client_place_of(req->s3, req->bucket);
    struct xf_err err;

    if (p != NULL && xf_str_eq_c(region, p->region)) {
        return true; /* by another request meanwhile */
    }
    if (!is_region_name(region) ||
        (there.is_aws && xf_uri_endpoint_move(&there, region, &err) != XF_OK)) {
        return false;
    }
    remember(req, region)->endpoint = there;
    XF_INFO("region.learnt", xf_f_str("bucket", req->bucket), xf_f_str("region", region));
    return true;
}

static bool is_region_news(const struct xf_s3_req *req)
{
    return req->res.region.len > 0 && !xf_str_eq_c(req->res.region, xf_client_region(req));
}

static bool is_below(struct xf_str host, const char *parent)
{
    struct xf_str p = xf_str_c(parent);

    return xf_str_eq(host, p) || (xf_str_ends(host, p) && host.ptr[host.len - p.len - 1] == '.');
}

/* An endpoint's host has no bucket in front: that is put there for each request. */
static void cut_bucket(struct xf_uri_endpoint *ep, struct xf_str bucket)
{
    struct xf_str host = xf_str_c(ep->host);

    if (xf_str_starts(host, bucket) && host.len > bucket.len + 1 && host.ptr[bucket.len] == '.') {
        memmove(ep->host, ep->host + bucket.len + 1, host.len - bucket.len);
    }
}

/* The host of the redirect's Location, when it is this very request and a place for our keys. It
 * holds for a while: a body that cannot begin anew must not be sent into another redirect. */
static bool follow_location(struct xf_s3_req *req)
{
    const struct xf_uri_endpoint *mine = &req->s3->opts.endpoint;
    struct xf_str rest = req->location;
    size_t slash = xf_str_find(rest, '/', 8); /* behind https:// */
    struct xf_uri_endpoint there;
    struct xf_client_place *p;
    struct xf_err err;
    XF_AUTO_BUF host = {0};

    if (slash == SIZE_MAX ||
        xf_uri_endpoint_parse(xf_str_sub(rest, 0, slash), &there, &err) != XF_OK ||
        (mine->https && !there.https)) {
        return false;
    }
    rest = xf_str_sub(rest, slash, rest.len);
    if (!xf_str_eq(xf_str_sub(rest, 0, xf_str_find(rest, '?', 0)), xf_buf_view(&req->path))) {
        return false;
    }
    xf_uri_host(&host, &there, true, XF_STR_EMPTY);
    if ((xf_str_eq(xf_buf_view(&host), xf_buf_view(&req->host)) && req->is_https == there.https) ||
        !(is_below(xf_str_c(there.host), mine->host) ||
          (mine->is_aws && xf_uri_is_aws_sibling(mine, &there)))) {
        return false;
    }
    if (!xf_uri_is_path_style(mine, req->s3->opts.style, req->bucket)) {
        cut_bucket(&there, req->bucket);
    }
    there.is_aws = mine->is_aws; /* and so addressed in the same style */
    p = remember(req, xf_str_c(xf_client_region(req)));
    p->endpoint = there;
    p->until_ms = xf_loop_mono_ms(req->s3->opts.loop) + FOLLOW_MS;
    xf_client_aim(req);
    return true;
}

/* Also a refusal of the bucket names its region. */
static void on_bucket(void *arg, const struct xf_s3_result *res)
{
    struct xf_s3_req *req = arg;
    bool is_known = xf_client_place_of(req->s3, req->bucket) != NULL; /* the HEAD was sent on */

    req->lookup = NULL;
    if (!is_known && res->region.len > 0 && !xf_str_eq_c(res->region, xf_client_region(req))) {
        is_known = learn_place(req, res->region);
    } else if (!is_known && res->err.code == XF_OK) {
        (void)remember(req,
                       xf_str_c(req->s3->region)); /* it is where we thought: not asked again */
    }
    if (is_known) {
        xf_client_aim(req);
    }
    xf_client_go_on(req, is_known);
}

/* AWS tells it in a header, others in an error's body, which a HEAD does not have. */
static enum xf_client_again look_up(struct xf_s3_req *req)
{
    struct xf_s3 *s3 = req->s3;
    const struct xf_s3_object_opts head = {.bucket = req->bucket};
    const struct xf_s3_list_opts list = {.bucket = req->bucket, .max_keys = 1};

    if (req->has_looked || req->is_lookup) {
        return XF_CLIENT_END;
    }
    req->has_looked = true;
    req->lookup = s3->opts.endpoint.is_aws ? xf_s3_head_bucket(s3, &head, on_bucket, req)
                                           : xf_s3_list(s3, &list, on_bucket, req);
    req->lookup->is_lookup = true;
    return XF_CLIENT_WAIT;
}

/* A refusal that may be for the region, and has no room to say so. */
static bool is_bare(const struct xf_s3_req *req)
{
    return req->place == NULL && req->res.status == 400 &&
           (req->op == XF_S3_HEAD || req->op == XF_S3_HEAD_BUCKET) && req->header_code.len == 0 &&
           req->res.err.code == XF_E_BAD_REQUEST;
}

static enum xf_client_again move(struct xf_s3_req *req)
{
    const struct xf_s3_opts *o = &req->s3->opts;
    const struct xf_s3_result *res = &req->res;

    if ((res->err.code != XF_E_REDIRECT && !is_bare(req)) || req->n_moves == MOVES_MAX) {
        return XF_CLIENT_END;
    }
    req->n_moves++;
    if (is_region_news(req) && !o->is_region_fixed && learn_place(req, res->region)) {
        xf_client_aim(req);
        return XF_CLIENT_AGAIN;
    }
    if (follow_location(req)) {
        return XF_CLIENT_AGAIN;
    }
    return res->region.len == 0 && !o->is_region_fixed ? look_up(req) : XF_CLIENT_END;
}

enum xf_client_again xf_client_again(struct xf_s3_req *req)
{
    enum xf_client_again again;

    if (req->cancelled || req->res.err.code == XF_OK || req->res.status == 0) {
        return XF_CLIENT_END;
    }
    if (fix_clock(req)) {
        return XF_CLIENT_AGAIN;
    }
    again = renew_keys(req);
    again = again == XF_CLIENT_END ? move(req) : again;
    if (again == XF_CLIENT_WAIT) {
        keep_result(req);
    }
    return again;
}
