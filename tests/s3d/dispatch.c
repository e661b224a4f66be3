/* dispatch.c - from a request's head to its answer: route, signature, rules, limits, work. */
#include "tests/s3d/conn.h"
#include "tests/s3d/copy.h"
#include "tests/s3d/guards.h"
#include "tests/s3d/gzip.h"
#include "tests/s3d/handlers.h"
#include "tests/s3d/xml.h"

#include <errno.h>
#include <sys/socket.h>

enum { KEY_MAX = 1024, HASH_STEP = 2 << 20 };

/* Bucket of a virtual-host style request; empty for path style. */
static struct xf_str vhost_bucket(const struct s3d_req *r)
{
    const char *domain = r->server->opts.domain;
    struct xf_str host = s3d_http_value(&r->http, "host");

    if (domain == NULL) {
        return XF_STR_EMPTY;
    }
    host = xf_str_sub(host, 0, xf_str_find(host, ':', 0));
    struct xf_str d = xf_str_c(domain);
    if (host.len < d.len + 2 || host.ptr[host.len - d.len - 1] != '.' ||
        !xf_str_eq_nocase(xf_str_sub(host, host.len - d.len, host.len), d)) {
        return XF_STR_EMPTY;
    }
    return xf_str_sub(host, 0, host.len - d.len - 1);
}

/* Bucket, key and query, decoded into r->dec. False: too many parameters. */
static bool find_names(struct s3d_req *r)
{
    struct xf_str path = xf_str_sub(r->http.path, 1, r->http.path.len);
    struct xf_str bucket = vhost_bucket(r);

    xf_buf_reset(&r->dec);
    size_t need =
        r->http.target.len * 2 + s3d_http_value(&r->http, "x-amz-copy-source").len * 2 + 16;
    XF_ASSERT(xf_buf_reserve(&r->dec, need) != NULL); /* bounded by the head's size */
    if (bucket.len == 0) {
        size_t slash = xf_str_find(path, '/', 0);
        bucket = s3d_decode(&r->dec, xf_str_sub(path, 0, slash), false);
        path = slash == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(path, slash + 1, path.len);
    }
    r->bucket = bucket;
    r->key = s3d_decode(&r->dec, path, true);
    return s3d_query_parse(r->http.query, &r->dec, r->params, &r->n_params);
}

static void start_req(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;
    struct s3d_thread *t = c->thread;

    r->start_ms = xf_loop_mono_ms(t->loop);
    r->wall_ms = s3d_server_wall_ms(t->server, xf_loop_wall_ms(t->loop));
    r->id = s3d_mix(t->server->opts.seed, ++t->ids) ^ (uint64_t)(uintptr_t)t;
    r->admin = false;
    r->intake_on = r->aws_on = r->has_decoded_length = false;
    r->hashing = r->obj_on = r->part_on = false;
    r->part_attrs = NULL;
    r->resume = NULL;
    r->rule = NULL;
    r->b = NULL;
    r->n_params = 0;
    r->fault_epoch = s3d_faults_epoch(t->server->faults);
    s3d_action_init(&r->act);
    xf_buf_reset(&r->small);
    r->resp.status = 0;
    r->resp.data = NULL;
    r->resp.has_length = false;
    r->resp.content_type = NULL;
    r->resp.close = false;
    r->resp.more = NULL;
    r->resp.more_free = NULL;
    xf_buf_reset(&r->resp.headers);
    xf_buf_reset(&r->resp.body);
    c->due_ms = r->start_ms;
    c->te_on = r->http.chunked;
    c->body_left = r->http.content_length;
    if (c->te_on) {
        s3d_chunked_init(&c->te, NULL, false);
    }
}

static bool check_auth(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;
    struct s3d_fail fail;
    struct s3d_auth_opts o = {.region = r->server->opts.region,
                              .wall_ms = r->wall_ms,
                              .off = r->server->opts.no_auth,
                              .scratch = &c->thread->auth_scratch};
    XF_AUTO_BUF extra = {0};

    xf_buf_init(&extra, 0);
    if (!s3d_auth_check(r->server->keys, &o, &r->http, &r->auth, &extra, &fail)) {
        s3d_count_auth_failure(r->server->counters);
        s3d_fail_extra(r, fail.code, fail.message, xf_buf_view(&extra));
        return false;
    }
    if (r->auth.read_only && s3d_op_info(r->op)->writes) {
        s3d_fail(r, "AccessDenied", "Access Denied: this key may only read");
        return false;
    }
    return true;
}

/* Modelled time of the copy that r asks for. */
static int64_t copy_time(struct s3d_req *r)
{
    struct xf_str bucket;
    struct xf_str key;
    struct s3d_obj o;
    uint64_t off;
    uint64_t len = 0;

    if (!s3d_limits_has_copy_rate(r->server->limits) || !s3d_copy_source(r, &bucket, &key)) {
        return 0; /* a refusal comes again when the work is done */
    }
    struct s3d_bucket *b = s3d_store_bucket(r->server->store, bucket);
    if (b != NULL && s3d_bucket_get(b, key, &o)) {
        (void)s3d_copy_range(r, o.size, &off, &len); /* as above */
        s3d_obj_fini(&o);
    }
    s3d_bucket_unref(b);
    return s3d_limits_copy_ms(r->server->limits, len);
}

static void ask_rules(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;
    struct s3d_fault_view v = {r->op, &r->http, r->bucket, r->key};

    s3d_faults_ask(r->server->faults, &v, &r->act, &r->rule);
    c->due_ms += s3d_limits_delay_ms(r->server->limits, r->op);
    if (r->op == S3D_OP_COPY || r->op == S3D_OP_COPY_PART) {
        c->due_ms += copy_time(r);
    }
    if (r->act.any) {
        c->due_ms += r->act.delay_ms;
    }
}

static bool check_names(struct s3d_req *r)
{
    if (r->key.len > KEY_MAX) {
        s3d_fail(r, "KeyTooLongError", "Your key is too long");
        return false;
    }
    if (r->op == S3D_OP_LIST_BUCKETS || r->op == S3D_OP_CREATE_BUCKET || r->op == S3D_OP_OTHER) {
        return true;
    }
    r->b = s3d_store_bucket(r->server->store, r->bucket);
    if (r->b == NULL) {
        s3d_fail(r, "NoSuchBucket", "The specified bucket does not exist");
        return false;
    }
    return s3d_guards_paid(r, r->b);
}

static bool admit(struct s3d_req *r)
{
    struct xf_str key = r->key;

    if (r->op == S3D_OP_LIST_V1 || r->op == S3D_OP_LIST_V2) {
        (void)s3d_req_query(r, "prefix", &key); /* no prefix: the bucket's own budget */
    }
    if (!s3d_limits_admit(r->server->limits, r->op, r->bucket, key, r->start_ms)) {
        s3d_count_slowdown(r->server->counters);
        s3d_fail(r, "SlowDown", "Please reduce your request rate.");
        return false;
    }
    return true;
}

/* Does the rule keep the work from being done? */
static bool work_is_off(const struct s3d_action *a)
{
    if (!a->any) {
        return false;
    }
    if (a->work >= 0) {
        return a->work == 0;
    }
    return a->status != 0 || a->code != NULL || a->body != NULL;
}

/* Everything that can be said before the body; false: refused, or nothing to do with the body. */
static bool prepare(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;

    if (!check_auth(c) || !admit(r)) {
        return false;
    }
    ask_rules(c);
    if (work_is_off(&r->act)) {
        return false;
    }
    if (!check_names(r)) {
        return false;
    }
    return s3d_op_info(r->op)->body != S3D_BODY_D || s3d_data_begin(r);
}

static bool send_continue(struct s3d_conn *c)
{
    static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

    if (send(c->watch.fd, text, sizeof(text) - 1, MSG_NOSIGNAL) == (ssize_t)sizeof(text) - 1) {
        return true;
    }
    s3d_conn_close(c, true);
    return false;
}

void s3d_dispatch_begin(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;

    start_req(c);
    if (!find_names(r)) {
        r->op = S3D_OP_OTHER;
        s3d_fail(r, "InvalidArgument", "Too many query parameters");
        c->discard = true;
    } else if (xf_str_starts(r->http.path, XF_STR_LIT("/-/")) && vhost_bucket(r).len == 0) {
        r->admin = true;
        r->op = S3D_OP_OTHER;
    } else {
        r->op = s3d_op_route(&r->http, r->bucket.len > 0, r->key.len > 0, r->params, r->n_params);
        c->discard = !prepare(c) || s3d_op_info(r->op)->body == S3D_BODY_N;
    }
    bool refused = c->discard && r->resp.status != 0;
    bool has_body = c->te_on || c->body_left > 0;
    if (has_body && r->http.expect_continue) {
        if (refused && !r->act.any) { /* the client need not send it */
            r->resp.close = true;
            has_body = false;
            c->body_left = 0;
            c->te_on = false;
        } else if (!send_continue(c)) {
            return;
        }
    }
    c->state = S3D_CONN_BODY;
    if (!has_body) {
        s3d_dispatch_body_done(c);
        return;
    }
    /* what came with the head is used on the next turn; more input wakes the connection anyway */
    xf_timer_at(c->thread->loop, &c->timer, r->start_ms);
}

void s3d_dispatch_body_done(struct s3d_conn *c)
{
    xf_timer_stop(c->thread->loop, &c->timer);
    c->state = S3D_CONN_WAIT;
    if (c->due_ms > xf_loop_mono_ms(c->thread->loop)) {
        xf_timer_at(c->thread->loop, &c->timer, c->due_ms);
        return;
    }
    s3d_dispatch_run(c);
}

/* The hash of a small body, or of none, against the signed one. */
static bool check_small_hash(struct s3d_req *r)
{
    uint8_t sha[S3D_SHA256_LEN];
    bool dropped = s3d_op_info(r->op)->body == S3D_BODY_N && r->http.content_length > 0;

    if (r->intake_on || r->auth.payload != S3D_PAYLOAD_HASH || dropped) {
        return true;
    }
    s3d_sha256(r->small.ptr == NULL ? "" : r->small.ptr, r->small.len, sha);
    if (memcmp(sha, r->auth.sha256, sizeof(sha)) == 0) {
        return true;
    }
    s3d_fail(r,
             "XAmzContentSHA256Mismatch",
             "The provided 'x-amz-content-sha256' header does not match what was computed.");
    return false;
}

static void side_effects(struct s3d_req *r)
{
    if (r->act.put != NULL || r->act.del != NULL) {
        const struct s3d_side_put *p = r->act.put != NULL ? r->act.put : r->act.del;
        struct s3d_bucket *b = s3d_store_bucket(r->server->store, p->bucket);
        if (b != NULL && r->act.put != NULL) {
            s3d_side_put_store(b, p, r->wall_ms);
        }
        if (b != NULL && r->act.del != NULL) {
            (void)s3d_bucket_delete(b, r->act.del->key); /* absent is as good */
        }
        s3d_bucket_unref(b);
    }
    struct xf_str id;
    if (r->act.abort_upload && r->b != NULL && s3d_req_query(r, "uploadId", &id)) {
        XF_ASSERT(pthread_mutex_lock(&r->b->lock) == 0);
        struct s3d_upload *u = s3d_upload_find_locked(r->b, r->key, id, true);
        if (u != NULL) {
            s3d_upload_free_locked(u);
        }
        XF_ASSERT(pthread_mutex_unlock(&r->b->lock) == 0);
    }
}

/* The answer that the rule gives instead of the real one. */
static void replace_answer(struct s3d_req *r)
{
    const struct s3d_action *a = &r->act;

    if (a->code != NULL || (a->status >= 300 && a->body == NULL)) {
        const char *code = a->code != NULL ? a->code : s3d_error_code(a->status);
        int status = a->status != 0 ? a->status : s3d_error_status(code);
        s3d_fail_status(r,
                        status,
                        code,
                        a->message != NULL ? a->message : "scripted",
                        a->extra_xml != NULL ? xf_str_c(a->extra_xml) : XF_STR_EMPTY);
    } else if (a->body != NULL || a->status != 0) {
        s3d_body_unref(r->resp.data);
        r->resp.data = NULL;
        r->resp.has_length = false;
        s3d_ok(r, a->status != 0 ? a->status : 200, true);
        xf_buf_reset(&r->resp.body);
        if (a->body != NULL) {
            xf_buf_put(&r->resp.body, *a->body);
        }
    }
}

void s3d_dispatch_answer(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;

    if (r->act.any) {
        replace_answer(r);
        if (r->resp.status == 0) { /* the work was left out, and no answer given */
            s3d_ok(r, 200, false);
        }
        if (r->act.gzip) {
            s3d_gzip_answer(&r->resp);
        }
        if (r->act.reply_lost) {
            s3d_conn_close(c, r->act.rst);
            return;
        }
    }
    s3d_write_begin(c);
}

static void hash_more(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;

    if (s3d_hash_step(&r->hash, HASH_STEP)) {
        void (*done)(struct s3d_req *) = r->resume;
        r->resume = NULL;
        done(r);
    }
}

void s3d_dispatch_run(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;

    if (r->resume != NULL) {
        hash_more(c);
    } else if (r->admin) {
        if (r->resp.status == 0 && !s3d_admin_handle(r, c)) {
            return; /* another thread has it */
        }
    } else {
        side_effects(r);
        if (r->resp.status == 0 && !work_is_off(&r->act) && check_small_hash(r)) {
            s3d_handle(r);
        }
    }
    if (r->resume != NULL) {
        c->state = S3D_CONN_HASH;
        xf_timer_at(c->thread->loop, &c->timer, xf_loop_mono_ms(c->thread->loop));
        return;
    }
    s3d_dispatch_answer(c);
}
