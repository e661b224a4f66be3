/* admin.c - the interface under /-/: a table of requests. Comparison and dumps are in admin_diff.c.
 */
#include "tests/s3d/admin.h"

#include "common/base/clock.h"
#include "tests/s3d/conn.h"
#include "tests/s3d/xml.h"

static void answer_json(struct s3d_req *r, int status)
{
    r->resp.status = status;
    r->resp.content_type = "application/json";
}

void s3d_admin_bad(struct s3d_req *r, const char *why)
{
    XF_AUTO(xf_json) j = xf_json_object();

    xf_json_set_c(j, "error", why);
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    xf_buf_reset(&r->resp.body);
    xf_buf_put_c(&r->resp.body, text);
    answer_json(r, 400);
}

void s3d_admin_json(struct s3d_req *r, const struct xf_json *j)
{
    XF_AUTO_FREE char *text = xf_json_dump(j, false);

    xf_buf_put_c(&r->resp.body, text);
    xf_buf_put_c(&r->resp.body, "\n");
    answer_json(r, 200);
}

struct s3d_bucket *s3d_admin_bucket(struct s3d_req *r, struct xf_str name)
{
    struct s3d_bucket *b = s3d_store_bucket(r->server->store, name);

    if (b == NULL) {
        s3d_admin_bad(r, "no such bucket");
    }
    return b;
}

static void ok(struct s3d_req *r)
{
    xf_buf_put_c(&r->resp.body, "{\"ok\":true}\n");
    answer_json(r, 200);
}

static void get_counters(struct s3d_req *r)
{
    s3d_counters_report(r->server->counters, &r->resp.body);
    answer_json(r, 200);
}

static void reset_counters(struct s3d_req *r)
{
    s3d_counters_reset(r->server->counters);
    ok(r);
}

static void add_faults(struct s3d_req *r)
{
    struct xf_err err;
    size_t n;
    XF_AUTO(xf_json) j = xf_json_object();

    if (s3d_faults_add(r->server->faults, xf_buf_view(&r->small), &n, &err) != XF_OK) {
        s3d_admin_bad(r, err.msg);
        return;
    }
    xf_json_set_u64(j, "added", n);
    s3d_admin_json(r, j);
}

static void drop_faults(struct s3d_req *r)
{
    struct xf_str id = XF_STR_EMPTY;
    XF_AUTO(xf_json) j = xf_json_object();

    (void)s3d_req_query(r, "id", &id); /* absent: all */
    xf_json_set_u64(j, "dropped", s3d_faults_drop(r->server->faults, id));
    s3d_admin_json(r, j);
}

static void get_faults(struct s3d_req *r)
{
    s3d_faults_report(r->server->faults, &r->resp.body);
    answer_json(r, 200);
}

/* ---- uploads, writes ---- */

struct uploads {
    struct xf_json *list;
    uint64_t n;
};

static void put_upload(const struct s3d_bucket *b, const struct s3d_upload *u, struct uploads *all)
{
    struct xf_json *j = xf_json_object();
    uint64_t parts = 0;
    uint64_t bytes = 0;

    for (size_t i = 0; i < u->cap_parts; i++) {
        if (u->parts[i].body != NULL) {
            parts++;
            bytes += u->parts[i].size;
        }
    }
    xf_json_set_c(j, "bucket", b->name);
    xf_json_set_bytes(j, "key", xf_str_n(u->key, u->key_len));
    xf_json_set_c(j, "upload_id", u->id);
    xf_json_set_time(j, "initiated", u->initiated_ms);
    xf_json_set_u64(j, "parts", parts);
    xf_json_set_u64(j, "bytes", bytes);
    xf_json_append(all->list, j);
    all->n++;
}

static void put_uploads(struct s3d_bucket *b, void *arg)
{
    XF_ASSERT(pthread_mutex_lock(&b->lock) == 0);
    XF_LIST_FOREACH (node, &b->uploads) {
        const struct s3d_upload *u = XF_CONTAINER_OF(node, struct s3d_upload, in_bucket);
        if (!u->done) {
            put_upload(b, u, arg);
        }
    }
    XF_ASSERT(pthread_mutex_unlock(&b->lock) == 0);
}

static void get_uploads(struct s3d_req *r)
{
    struct uploads all = {xf_json_array(), 0};
    XF_AUTO(xf_json) j = xf_json_object();

    s3d_store_each(r->server->store, put_uploads, &all);
    xf_json_set_u64(j, "count", all.n);
    xf_json_put(j, "uploads", all.list);
    s3d_admin_json(r, j);
}

static void writes_locked(struct s3d_bucket *b, struct xf_str prefix, struct xf_json *j)
{
    struct s3d_cursor c;
    struct xf_json *worst = xf_json_array();
    uint64_t keys = 0;
    uint64_t writes = 0;
    uint64_t rewritten = 0;

    s3d_index_seek(&b->index, prefix, false, &c);
    for (const struct s3d_rec *rec = s3d_cursor_next(&c);
         rec != NULL && xf_str_starts(s3d_rec_key(rec), prefix);
         rec = s3d_cursor_next(&c)) {
        keys++;
        writes += rec->writes;
        if (rec->writes > 1) {
            rewritten++;
            if (rewritten <= 20) {
                struct xf_json *w = xf_json_object();
                xf_json_set_bytes(w, "key", s3d_rec_key(rec));
                xf_json_set_u64(w, "writes", rec->writes);
                xf_json_append(worst, w);
            }
        }
    }
    xf_json_set_u64(j, "keys", keys);
    xf_json_set_u64(j, "writes", writes);
    xf_json_set_u64(j, "rewritten", rewritten);
    xf_json_set_u64(j, "extra_writes", writes > keys ? writes - keys : 0);
    xf_json_put(j, "worst", worst);
}

static void get_writes(struct s3d_req *r)
{
    struct xf_str name = XF_STR_EMPTY;
    struct xf_str prefix = XF_STR_EMPTY;
    XF_AUTO(xf_json) j = xf_json_object();

    (void)s3d_req_query(r, "bucket", &name); /* absent: no such bucket */
    (void)s3d_req_query(r, "prefix", &prefix);
    struct s3d_bucket *b = s3d_admin_bucket(r, name);
    if (b == NULL) {
        return;
    }
    XF_ASSERT(pthread_mutex_lock(&b->lock) == 0);
    writes_locked(b, prefix, j);
    XF_ASSERT(pthread_mutex_unlock(&b->lock) == 0);
    s3d_bucket_unref(b);
    s3d_admin_json(r, j);
}

/* ---- changes ---- */

static enum xf_code load_spec(const struct xf_json *j, struct s3d_synth *s, struct xf_err *err)
{
    static const char *const members[] = {
        "bucket", "count", "size", "pattern", "seed", "prefix", "part"};
    const struct xf_json *value;

    for (const char *name = xf_json_next(j, NULL, &value); name != NULL;
         name = xf_json_next(j, name, &value)) {
        bool known = false;
        for (size_t i = 0; i < XF_ARRAY_LEN(members); i++) {
            known = known || strcmp(name, members[i]) == 0;
        }
        if (!known) {
            return XF_FAIL(err, XF_E_INVAL, "unknown member '%s'", name);
        }
    }
    memset(s, 0, sizeof(*s));
    s->bucket = xf_str_c(xf_json_get_c(j, "bucket", ""));
    s->count = xf_json_get_u64(j, "count", 0);
    s->seed = xf_json_get_u64(j, "seed", 0);
    s->prefix = xf_str_c(xf_json_get_c(j, "prefix", ""));
    if (!s3d_sizes_parse(xf_str_c(xf_json_get_c(j, "size", "1KiB")), &s->sizes)) {
        return XF_FAIL(err, XF_E_INVAL, "'size' is no size as \"1KiB\"");
    }
    if (!s3d_pattern_parse(xf_str_c(xf_json_get_c(j, "pattern", "flat")), &s->pattern)) {
        return XF_FAIL(err, XF_E_INVAL, "unknown 'pattern'");
    }
    if (!xf_json_is_null(j, "part") &&
        !s3d_size_parse(xf_str_c(xf_json_get_c(j, "part", "")), &s->part_size)) {
        return XF_FAIL(err, XF_E_INVAL, "'part' is no size as \"8MiB\"");
    }
    if (s->count == 0 || s->count > 100000000) {
        return XF_FAIL(err, XF_E_INVAL, "'count' has to be 1 to 100000000");
    }
    return XF_OK;
}

/* The parsed body, an object; NULL: answered. */
static struct xf_json *body_object(struct s3d_req *r)
{
    struct xf_json *j;
    struct xf_err err;

    if (xf_json_parse(xf_buf_view(&r->small), &j, &err) != XF_OK) {
        s3d_admin_bad(r, err.msg);
        return NULL;
    }
    if (!xf_json_is_object(j)) {
        xf_json_free(j);
        s3d_admin_bad(r, "the body has to be a JSON object");
        return NULL;
    }
    return j;
}

static void post_load(struct s3d_req *r)
{
    struct s3d_synth s;
    struct xf_err err;
    XF_AUTO(xf_json) j = body_object(r);

    if (j == NULL) {
        return;
    }
    if (load_spec(j, &s, &err) != XF_OK) {
        s3d_admin_bad(r, err.msg);
        return;
    }
    if (!s3d_bucket_name_is_valid(s.bucket)) {
        s3d_admin_bad(r, "'bucket' is no valid name");
        return;
    }
    (void)s3d_store_make_bucket(r->server->store, s.bucket, r->wall_ms); /* it may be there */
    struct s3d_bucket *b = s3d_store_bucket(r->server->store, s.bucket);
    s3d_bucket_load(b, &s, r->server->opts.true_etag_max, r->wall_ms);
    s3d_bucket_unref(b);
    ok(r);
}

static void post_put(struct s3d_req *r)
{
    struct s3d_side_put *p;
    struct xf_err err;
    XF_AUTO(xf_json) j = body_object(r);

    if (j == NULL) {
        return;
    }
    if (s3d_side_put_parse(j, false, &p, &err) != XF_OK) {
        s3d_admin_bad(r, err.msg);
        return;
    }
    struct s3d_bucket *b = s3d_admin_bucket(r, p->bucket);
    if (b != NULL) {
        s3d_side_put_store(b, p, r->wall_ms);
        ok(r);
    }
    s3d_bucket_unref(b);
    s3d_side_put_free(p);
}

static enum xf_code
set_limit(struct s3d_req *r, const char *name, struct xf_str v, struct xf_err *err)
{
    if (strcmp(name, "latency") == 0) {
        return s3d_limits_latency(r->server->limits, v, err);
    }
    if (strcmp(name, "prefix_rps") == 0) {
        return s3d_limits_rps(r->server->limits, v, err);
    }
    if (strcmp(name, "copy_rate") == 0) {
        return s3d_limits_copy_rate(r->server->limits, v, err);
    }
    if (strcmp(name, "fault_rate") == 0) {
        return s3d_faults_rate(r->server->faults, v, err);
    }
    return XF_FAIL(err, XF_E_INVAL, "unknown member '%s'", name);
}

static void post_limits(struct s3d_req *r)
{
    const struct xf_json *value;
    struct xf_err err;
    XF_AUTO(xf_json) j = body_object(r);

    if (j == NULL) {
        return;
    }
    for (const char *name = xf_json_next(j, NULL, &value); name != NULL;
         name = xf_json_next(j, name, &value)) {
        if (xf_json_text(value) == NULL) {
            s3d_admin_bad(r, "limits have to be strings");
            return;
        }
        if (set_limit(r, name, xf_str_c(xf_json_text(value)), &err) != XF_OK) {
            s3d_admin_bad(r, err.msg);
            return;
        }
    }
    ok(r);
}

static void post_keys(struct s3d_req *r)
{
    struct xf_err err;
    XF_AUTO(xf_json) j = body_object(r);

    if (j == NULL) {
        return;
    }
    const struct xf_json *add = xf_json_get(j, "add");
    const struct xf_json *remove = xf_json_get(j, "remove");
    for (size_t i = 0; add != NULL && i < xf_json_len(add); i++) {
        const char *text = xf_json_text(xf_json_at(add, i));
        if (s3d_keys_add(r->server->keys, xf_str_c(text == NULL ? "" : text), &err) != XF_OK) {
            s3d_admin_bad(r, err.msg);
            return;
        }
    }
    for (size_t i = 0; remove != NULL && i < xf_json_len(remove); i++) {
        const char *text = xf_json_text(xf_json_at(remove, i));
        if (text == NULL || !s3d_keys_remove(r->server->keys, xf_str_c(text))) {
            s3d_admin_bad(r, "no such key to remove");
            return;
        }
    }
    ok(r);
}

static void post_bucket(struct s3d_req *r)
{
    XF_AUTO(xf_json) j = body_object(r);

    if (j == NULL) {
        return;
    }
    struct s3d_bucket *b = s3d_admin_bucket(r, xf_str_c(xf_json_get_c(j, "bucket", "")));
    if (b == NULL) {
        return;
    }
    atomic_store(&b->object_lock, xf_json_get_bool(j, "object_lock", false));
    atomic_store(&b->requester_pays, xf_json_get_bool(j, "requester_pays", false));
    atomic_store(&b->no_acls, xf_json_get_bool(j, "no_acls", false));
    s3d_bucket_unref(b);
    ok(r);
}

static void get_requests(struct s3d_req *r)
{
    struct xf_str v;
    uint64_t since = 0;
    enum s3d_op op = S3D_OP_N;

    if (r->server->reqlog == NULL) {
        s3d_admin_bad(r, "the log of requests is off: start with --log-requests N");
        return;
    }
    if (s3d_req_query(r, "since", &v) && !xf_str_u64(v, &since)) {
        s3d_admin_bad(r, "'since' is no number");
        return;
    }
    if (s3d_req_query(r, "op", &v) && !s3d_op_parse(v, &op)) {
        s3d_admin_bad(r, "unknown 'op'");
        return;
    }
    s3d_reqlog_report(r->server->reqlog, since, op, &r->resp.body);
    answer_json(r, 200);
}

static const struct {
    enum s3d_method method;
    const char *path;
    void (*handle)(struct s3d_req *r);
} table[] = {
    {S3D_GET, "/-/healthz", ok},
    {S3D_GET, "/-/counters", get_counters},
    {S3D_POST, "/-/counters/reset", reset_counters},
    {S3D_POST, "/-/faults", add_faults},
    {S3D_DELETE, "/-/faults", drop_faults},
    {S3D_GET, "/-/faults", get_faults},
    {S3D_GET, "/-/uploads", get_uploads},
    {S3D_GET, "/-/writes", get_writes},
    {S3D_POST, "/-/load", post_load},
    {S3D_POST, "/-/put", post_put},
    {S3D_POST, "/-/limits", post_limits},
    {S3D_POST, "/-/bucket", post_bucket},
    {S3D_POST, "/-/keys", post_keys},
    {S3D_GET, "/-/requests", get_requests},
    {S3D_GET, "/-/dump", s3d_admin_dump},
};

bool s3d_admin_handle(struct s3d_req *r, struct s3d_conn *c)
{
    if (r->http.method == S3D_GET && xf_str_eq_c(r->http.path, "/-/diff")) {
        return s3d_admin_diff(r, c);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(table); i++) {
        if (table[i].method == r->http.method && xf_str_eq_c(r->http.path, table[i].path)) {
            table[i].handle(r);
            return true;
        }
    }
    s3d_admin_bad(r, "unknown admin request: see README.md");
    return true;
}
