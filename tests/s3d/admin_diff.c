/*
 * admin_diff.c - dumps of a bucket, and the comparison of two, here or on another server.
 *
 * Both sides are walked in key order, a page at a time; a comparison runs in a thread of its own,
 * since it may read bodies and waits for the other server.
 */
#include "tests/s3d/admin.h"
#include "tests/s3d/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

enum { PAGE = 256, SHOWN = 20, REMOTE_TIMEOUT_S = 60 };

/* ---- a walk over one bucket ---- */

struct walk {
    struct s3d_bucket *b;
    struct xf_buf prefix;
    struct xf_buf last; /* key to go on behind */
    bool begun;
    bool ended;
    size_t n;
    size_t at;
    struct s3d_obj obj[PAGE];
    struct xf_buf key[PAGE];
};

static void walk_init(struct walk *w, struct s3d_bucket *b, struct xf_str prefix)
{
    memset(w, 0, sizeof(*w));
    w->b = b;
    xf_buf_init(&w->prefix, 0);
    xf_buf_init(&w->last, 0);
    xf_buf_put(&w->prefix, prefix);
    for (size_t i = 0; i < PAGE; i++) {
        xf_buf_init(&w->key[i], 0);
    }
}

static void walk_drop_page(struct walk *w)
{
    for (size_t i = 0; i < w->n; i++) {
        s3d_obj_fini(&w->obj[i]);
    }
    w->n = 0;
    w->at = 0;
}

static void walk_fini(struct walk *w)
{
    walk_drop_page(w);
    for (size_t i = 0; i < PAGE; i++) {
        xf_buf_fini(&w->key[i]);
    }
    xf_buf_fini(&w->prefix);
    xf_buf_fini(&w->last);
    s3d_bucket_unref(w->b);
}

static void walk_page(struct walk *w)
{
    struct s3d_cursor c;

    walk_drop_page(w);
    XF_ASSERT(pthread_mutex_lock(&w->b->lock) == 0);
    s3d_index_seek(&w->b->index, xf_buf_view(w->begun ? &w->last : &w->prefix), w->begun, &c);
    while (w->n < PAGE) {
        struct s3d_rec *rec = s3d_cursor_next(&c);
        if (rec == NULL || !xf_str_starts(s3d_rec_key(rec), xf_buf_view(&w->prefix))) {
            w->ended = true;
            break;
        }
        s3d_obj_fix_md5(&rec->obj);
        s3d_obj_copy(&rec->obj, &w->obj[w->n]);
        xf_buf_reset(&w->key[w->n]);
        xf_buf_put(&w->key[w->n], s3d_rec_key(rec));
        w->n++;
    }
    XF_ASSERT(pthread_mutex_unlock(&w->b->lock) == 0);
    w->begun = true;
    if (w->n > 0) {
        xf_buf_reset(&w->last);
        xf_buf_put(&w->last, xf_buf_view(&w->key[w->n - 1]));
    }
}

/* Is there an object at the walk's place? */
static bool walk_here(struct walk *w)
{
    while (w->at == w->n) {
        if (w->ended) {
            return false;
        }
        walk_page(w);
    }
    return true;
}

/* ---- one object as text ---- */

static void content_text(const struct s3d_obj *o, bool crc, struct xf_buf *out)
{
    struct s3d_body *b = s3d_obj_body(o);
    uint8_t md5[S3D_MD5_LEN];

    if (crc || s3d_body_is_dropped(b)) {
        xf_buf_putf(out, "crc32c:%08x", (unsigned)s3d_body_crc32c(b));
    } else if ((o->flags & S3D_OBJ_GEN) != 0) {
        xf_buf_put_hex(out, o->md5, S3D_MD5_LEN); /* made up: its MD5 is that of its bytes */
    } else {
        s3d_body_md5(b, md5);
        xf_buf_put_hex(out, md5, sizeof(md5));
    }
    s3d_body_unref(b);
}

static void attrs_text(const struct s3d_obj *o, struct xf_buf *out)
{
    uint8_t sha[S3D_SHA256_LEN];

    s3d_attrs_digest(o->attrs, sha);
    xf_buf_put_hex(out, sha, sizeof(sha));
}

/* ---- dump ---- */

struct dump {
    struct walk walk;
    bool crc;
};

static bool dump_more(void *arg, struct xf_buf *out)
{
    struct dump *d = arg;
    char etag[S3D_ETAG_MAX];

    if (!walk_here(&d->walk)) {
        return false;
    }
    for (; d->walk.at < d->walk.n; d->walk.at++) {
        const struct s3d_obj *o = &d->walk.obj[d->walk.at];
        xf_buf_put_percent(out, xf_buf_view(&d->walk.key[d->walk.at]), true);
        xf_buf_putf(out, " %llu ", (unsigned long long)o->size);
        content_text(o, d->crc, out);
        xf_buf_put_byte(out, ' ');
        attrs_text(o, out);
        s3d_obj_etag(o, etag);
        xf_buf_putf(out, " %s\n", etag);
    }
    return true;
}

static void dump_free(void *arg)
{
    struct dump *d = arg;

    walk_fini(&d->walk);
    xf_xfree(d);
}

void s3d_admin_dump(struct s3d_req *r)
{
    struct xf_str name = XF_STR_EMPTY;
    struct xf_str prefix = XF_STR_EMPTY;
    struct xf_str sum = XF_STR_EMPTY;

    (void)s3d_req_query(r, "bucket", &name); /* absent: no such bucket */
    (void)s3d_req_query(r, "prefix", &prefix);
    (void)s3d_req_query(r, "sum", &sum);
    struct s3d_bucket *b = s3d_admin_bucket(r, name);
    if (b == NULL) {
        return;
    }
    struct dump *d = xf_xcalloc(1, sizeof(*d));
    walk_init(&d->walk, b, prefix);
    d->crc = xf_str_eq_c(sum, "crc32c");
    r->resp.status = 200;
    r->resp.content_type = "text/plain";
    r->resp.more = dump_more;
    r->resp.more_free = dump_free;
    r->resp.more_arg = d;
}

/* ---- the other server's dump, a line at a time ---- */

struct remote {
    int fd;
    bool head_done;
    struct s3d_chunked chunks;
    struct xf_buf in;   /* received, not decoded */
    struct xf_buf text; /* decoded lines */
    size_t at;
    struct xf_buf key; /* of the present line */
    struct xf_str size;
    struct xf_str content;
    struct xf_str attrs;
};

static void remote_fini(struct remote *m)
{
    if (m->fd >= 0) {
        (void)close(m->fd);
    }
    xf_buf_fini(&m->in);
    xf_buf_fini(&m->text);
    xf_buf_fini(&m->key);
}

static enum xf_code remote_connect(struct remote *m, struct xf_str url, struct xf_err *err)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    struct timeval limit = {REMOTE_TIMEOUT_S, 0};

    if (!xf_str_starts(url, XF_STR_LIT("http://"))) {
        return XF_FAIL(err, XF_E_INVAL, "other '%.*s' is not http://HOST:PORT", XF_STR_ARG(url));
    }
    struct xf_str rest = xf_str_sub(url, 7, url.len);
    size_t colon = xf_str_find(rest, ':', 0);
    XF_AUTO_FREE char *host = xf_str_dup(xf_str_sub(rest, 0, colon));
    struct xf_str p = colon == SIZE_MAX ? XF_STR_LIT("80") : xf_str_sub(rest, colon + 1, rest.len);
    XF_AUTO_FREE char *port = xf_str_dup(xf_str_sub(p, 0, xf_str_find(p, '/', 0)));
    if (getaddrinfo(host, port, &hints, &list) != 0) {
        return XF_FAIL(err, XF_E_INVAL, "cannot resolve '%s'", host);
    }
    for (const struct addrinfo *a = list; a != NULL && m->fd < 0; a = a->ai_next) {
        int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) == 0 &&
            connect(fd, a->ai_addr, a->ai_addrlen) == 0) {
            m->fd = fd;
        } else if (fd >= 0) {
            (void)close(fd);
        }
    }
    freeaddrinfo(list);
    return m->fd >= 0 ? XF_OK
                      : XF_FAIL(err, XF_E_UNREACHABLE, "cannot connect to '%.*s'", XF_STR_ARG(url));
}

static enum xf_code remote_ask(
    struct remote *m, struct xf_str bucket, struct xf_str prefix, bool crc, struct xf_err *err)
{
    XF_AUTO_BUF b = {0};
    size_t done = 0;

    xf_buf_init(&b, 0);
    xf_buf_put_c(&b, "GET /-/dump?bucket=");
    xf_buf_put_percent(&b, bucket, false);
    xf_buf_put_c(&b, "&prefix=");
    xf_buf_put_percent(&b, prefix, false);
    xf_buf_put_c(&b, crc ? "&sum=crc32c" : "");
    xf_buf_put_c(&b, " HTTP/1.1\r\nHost: s3d\r\nConnection: close\r\n\r\n");
    while (done < b.len) {
        ssize_t n = send(m->fd, b.ptr + done, b.len - done, MSG_NOSIGNAL);
        if (n <= 0) {
            return XF_FAIL_SUB(
                err, XF_E_NET, errno, "cannot ask the other server: %s", xf_errno_text(errno));
        }
        done += (size_t)n;
    }
    return XF_OK;
}

static void sink_text(void *arg, const char *p, size_t len)
{
    xf_buf_put_mem(arg, p, len);
}

static enum xf_code remote_head(struct remote *m, struct xf_err *err)
{
    const char *end = m->in.len < 4 ? NULL : memmem(m->in.ptr, m->in.len, "\r\n\r\n", 4);

    if (end == NULL) {
        return XF_OK;
    }
    size_t head = (size_t)(end - m->in.ptr) + 4;
    if (!xf_str_starts(xf_buf_view(&m->in), XF_STR_LIT("HTTP/1.1 200 "))) {
        struct xf_str body = xf_str_sub(xf_buf_view(&m->in), head, m->in.len);
        return XF_FAIL(
            err, XF_E_INVAL, "the other server refused the dump: %.*s", XF_STR_ARG(body));
    }
    xf_buf_consume(&m->in, head);
    m->head_done = true;
    return XF_OK;
}

/* Receive more of the dump. */
static enum xf_code remote_receive(struct remote *m, struct xf_err *err)
{
    struct s3d_fail fail;
    size_t used = 0;
    char *p = xf_buf_reserve(&m->in, 65536);

    if (p == NULL) {
        return XF_FAIL(err, XF_E_LIMIT, "the other server's answer has no end");
    }
    ssize_t n = recv(m->fd, p, 65536, 0);
    if (n <= 0) {
        return XF_FAIL(err, XF_E_TRUNCATED, "the other server's dump ended early");
    }
    m->in.len += (size_t)n;
    if (!m->head_done) {
        XF_TRY(remote_head(m, err));
    }
    if (m->head_done) {
        xf_buf_consume(&m->text, m->at);
        m->at = 0;
        if (!s3d_chunked_feed(&m->chunks, xf_buf_view(&m->in), &used, sink_text, &m->text, &fail)) {
            return XF_FAIL(err, XF_E_PROTO, "the other server's dump: %s", fail.message);
        }
        xf_buf_consume(&m->in, used);
    }
    return XF_OK;
}

/* The next line; *here false at the end. */
static enum xf_code remote_next(struct remote *m, bool *here, struct xf_err *err)
{
    const char *nl;

    for (;;) {
        nl = m->text.len == m->at ? NULL : memchr(m->text.ptr + m->at, '\n', m->text.len - m->at);
        if (nl != NULL) {
            break;
        }
        if (m->chunks.state == S3D_CHUNK_DONE) {
            *here = false;
            return XF_OK;
        }
        XF_TRY(remote_receive(m, err));
    }
    struct xf_str line = {m->text.ptr + m->at, (size_t)(nl - (m->text.ptr + m->at))};
    struct xf_str key;
    m->at += line.len + 1;
    xf_buf_reset(&m->key);
    *here = true;
    if (!xf_str_cut(&line, ' ', &key) || !xf_str_cut(&line, ' ', &m->size) ||
        !xf_str_cut(&line, ' ', &m->content) || !xf_str_cut(&line, ' ', &m->attrs) ||
        !xf_buf_put_unpercent(&m->key, key, false)) {
        return XF_FAIL(err, XF_E_PROTO, "the other server's dump has an unknown form");
    }
    return XF_OK;
}

/* ---- comparison ---- */

struct found {
    uint64_t count;
    struct xf_json *keys;
};

struct diff {
    struct s3d_conn *conn;
    struct s3d_server *server;
    struct walk a;
    struct walk b;
    bool has_remote;
    struct remote other;
    bool crc;
    struct xf_buf url;
    struct xf_buf b_bucket;
    struct xf_buf b_prefix;
    uint64_t a_count;
    uint64_t b_count;
    struct found missing;
    struct found extra;
    struct found different;
    struct found attributes;
};

static void note(struct found *f, struct xf_str key)
{
    XF_AUTO_BUF enc = {0};

    if (f->keys == NULL) {
        f->keys = xf_json_array();
    }
    f->count++;
    if (f->count <= SHOWN) {
        xf_buf_init(&enc, 0);
        xf_buf_put_percent(&enc, key, true);
        xf_json_append_c(f->keys, enc.ptr == NULL ? "" : enc.ptr);
    }
}

static struct xf_str tail(struct xf_str key, const struct xf_buf *prefix)
{
    return xf_str_sub(key, prefix->len, key.len);
}

static void compare_local(struct diff *d, struct xf_str key)
{
    const struct s3d_obj *x = &d->a.obj[d->a.at];
    const struct s3d_obj *y = &d->b.obj[d->b.at];
    struct s3d_body *bx = s3d_obj_body(x);
    struct s3d_body *by = s3d_obj_body(y);
    uint8_t sx[S3D_SHA256_LEN];
    uint8_t sy[S3D_SHA256_LEN];

    if (x->size != y->size || !s3d_body_equal(bx, by)) {
        note(&d->different, key);
    }
    s3d_body_unref(bx);
    s3d_body_unref(by);
    if (x->attrs == y->attrs) {
        return;
    }
    s3d_attrs_digest(x->attrs, sx);
    s3d_attrs_digest(y->attrs, sy);
    if (memcmp(sx, sy, sizeof(sx)) != 0) {
        note(&d->attributes, key);
    }
}

static void compare_remote(struct diff *d, struct xf_str key)
{
    const struct s3d_obj *x = &d->a.obj[d->a.at];
    uint64_t size;
    XF_AUTO_BUF content = {0};
    XF_AUTO_BUF attrs = {0};

    xf_buf_init(&content, 0);
    xf_buf_init(&attrs, 0);
    content_text(x, d->crc, &content);
    attrs_text(x, &attrs);
    if (!xf_str_u64(d->other.size, &size) || size != x->size ||
        !xf_str_eq(xf_buf_view(&content), d->other.content)) {
        note(&d->different, key);
    }
    if (!xf_str_eq(xf_buf_view(&attrs), d->other.attrs)) {
        note(&d->attributes, key);
    }
}

/* Is there an object at b's place? Remote lines are fetched by advance_b. */
struct place {
    bool here;
    struct xf_str key; /* without the prefix */
};

static enum xf_code place_b(struct diff *d, bool advance, struct place *p, struct xf_err *err)
{
    if (d->has_remote) {
        if (advance) {
            XF_TRY(remote_next(&d->other, &p->here, err));
        }
        p->key = p->here ? tail(xf_buf_view(&d->other.key), &d->b_prefix) : XF_STR_EMPTY;
        return XF_OK;
    }
    if (advance && p->here) {
        d->b.at++;
    }
    p->here = walk_here(&d->b);
    p->key = p->here ? tail(xf_buf_view(&d->b.key[d->b.at]), &d->b_prefix) : XF_STR_EMPTY;
    return XF_OK;
}

static enum xf_code compare(struct diff *d, struct xf_err *err)
{
    struct place b = {false, XF_STR_EMPTY};

    if (d->has_remote) {
        XF_TRY(remote_connect(&d->other, xf_buf_view(&d->url), err));
        XF_TRY(remote_ask(
            &d->other, xf_buf_view(&d->b_bucket), xf_buf_view(&d->b_prefix), d->crc, err));
    }
    XF_TRY(place_b(d, true, &b, err));
    for (;;) {
        bool a_here = walk_here(&d->a);
        if (!a_here && !b.here) {
            return XF_OK;
        }
        struct xf_str a_key =
            a_here ? tail(xf_buf_view(&d->a.key[d->a.at]), &d->a.prefix) : XF_STR_EMPTY;
        int order = !a_here ? 1 : !b.here ? -1 : xf_str_cmp(a_key, b.key);
        if (order < 0) {
            note(&d->missing, a_key);
        } else if (order > 0) {
            note(&d->extra, b.key);
        } else if (d->has_remote) {
            compare_remote(d, a_key);
        } else {
            compare_local(d, a_key);
        }
        if (order <= 0) {
            d->a.at++;
            d->a_count++;
        }
        if (order >= 0) {
            d->b_count++;
            XF_TRY(place_b(d, true, &b, err));
        }
    }
}

static void put_found(struct xf_json *j, const char *name, struct found *f)
{
    struct xf_json *o = xf_json_object();

    xf_json_set_u64(o, "count", f->count);
    xf_json_put(o, "keys", f->keys != NULL ? f->keys : xf_json_array());
    f->keys = NULL;
    xf_json_put(j, name, o);
}

static void diff_answer(struct diff *d)
{
    XF_AUTO(xf_json) j = xf_json_object();

    xf_json_set_bool(j,
                     "equal",
                     d->missing.count == 0 && d->extra.count == 0 && d->different.count == 0 &&
                         d->attributes.count == 0);
    xf_json_set_u64(j, "a_count", d->a_count);
    xf_json_set_u64(j, "b_count", d->b_count);
    put_found(j, "missing", &d->missing);
    put_found(j, "extra", &d->extra);
    put_found(j, "different", &d->different);
    put_found(j, "attributes", &d->attributes);
    s3d_admin_json(&d->conn->req, j);
}

static void diff_free(struct diff *d)
{
    walk_fini(&d->a);
    if (d->has_remote) {
        remote_fini(&d->other);
    } else {
        walk_fini(&d->b);
    }
    xf_json_free(d->missing.keys);
    xf_json_free(d->extra.keys);
    xf_json_free(d->different.keys);
    xf_json_free(d->attributes.keys);
    xf_buf_fini(&d->url);
    xf_buf_fini(&d->b_bucket);
    xf_buf_fini(&d->b_prefix);
    xf_xfree(d);
}

static void *diff_thread(void *arg)
{
    struct diff *d = arg;
    struct s3d_conn *c = d->conn;
    struct s3d_server *s = d->server;
    struct xf_err err;

    if (compare(d, &err) == XF_OK) {
        diff_answer(d);
    } else {
        s3d_admin_bad(&c->req, err.msg);
    }
    diff_free(d);
    xf_queue_push_reserved(c->thread->finished, c);
    XF_ASSERT(pthread_mutex_lock(&s->jobs_lock) == 0);
    s->jobs--;
    XF_ASSERT(pthread_cond_broadcast(&s->jobs_done) == 0);
    XF_ASSERT(pthread_mutex_unlock(&s->jobs_lock) == 0);
    return NULL;
}

void s3d_admin_join(struct s3d_server *s)
{
    XF_ASSERT(pthread_mutex_lock(&s->jobs_lock) == 0);
    while (s->jobs > 0) {
        XF_ASSERT(pthread_cond_wait(&s->jobs_done, &s->jobs_lock) == 0);
    }
    XF_ASSERT(pthread_mutex_unlock(&s->jobs_lock) == 0);
}

/* "BUCKET/PREFIX" */
static void split(struct xf_str text, struct xf_str *bucket, struct xf_str *prefix)
{
    size_t slash = xf_str_find(text, '/', 0);

    *bucket = xf_str_sub(text, 0, slash);
    *prefix = slash == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(text, slash + 1, text.len);
}

static bool start(struct diff *d)
{
    pthread_t id;
    struct s3d_server *s = d->server;

    XF_ASSERT(pthread_mutex_lock(&s->jobs_lock) == 0);
    s->jobs++;
    bool ok = pthread_create(&id, NULL, diff_thread, d) == 0;
    if (ok) {
        XF_ASSERT(pthread_detach(id) == 0);
    } else {
        s->jobs--;
    }
    XF_ASSERT(pthread_mutex_unlock(&s->jobs_lock) == 0);
    return ok;
}

bool s3d_admin_diff(struct s3d_req *r, struct s3d_conn *c)
{
    struct xf_str a = XF_STR_EMPTY;
    struct xf_str b = XF_STR_EMPTY;
    struct xf_str other = XF_STR_EMPTY;
    struct xf_str sum = XF_STR_EMPTY;
    struct xf_str bucket;
    struct xf_str prefix;

    (void)s3d_req_query(r, "a", &a); /* absent: no such bucket */
    (void)s3d_req_query(r, "b", &b);
    (void)s3d_req_query(r, "sum", &sum);
    bool remote = s3d_req_query(r, "other", &other);
    split(a, &bucket, &prefix);
    struct s3d_bucket *ba = s3d_admin_bucket(r, bucket);
    if (ba == NULL) {
        return true;
    }
    split(b, &bucket, &b);
    struct s3d_bucket *bb = remote ? NULL : s3d_admin_bucket(r, bucket);
    if (bb == NULL && !remote) {
        s3d_bucket_unref(ba);
        return true;
    }
    struct diff *d = xf_xcalloc(1, sizeof(*d));
    d->conn = c;
    d->server = r->server;
    d->has_remote = remote;
    d->crc = xf_str_eq_c(sum, "crc32c");
    xf_buf_init(&d->url, 0);
    xf_buf_init(&d->b_bucket, 0);
    xf_buf_init(&d->b_prefix, 0);
    xf_buf_put(&d->url, other);
    xf_buf_put(&d->b_bucket, bucket);
    xf_buf_put(&d->b_prefix, b);
    walk_init(&d->a, ba, prefix);
    if (remote) {
        d->other.fd = -1;
        xf_buf_init(&d->other.in, 0);
        xf_buf_init(&d->other.text, 0);
        xf_buf_init(&d->other.key, 0);
        s3d_chunked_init(&d->other.chunks, NULL, false);
    } else {
        walk_init(&d->b, bb, b);
    }
    c->state = S3D_CONN_AWAY;
    if (start(d)) {
        return false;
    }
    c->state = S3D_CONN_WAIT;
    diff_free(d);
    s3d_admin_bad(r, "cannot start a thread");
    return true;
}
