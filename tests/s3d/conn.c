/* conn.c - one client connection: input, its end, and the way from one request to the next. */
#include "tests/s3d/conn.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

enum { READ_FIRST = 4096 };

static void on_event(struct xf_watch *w, unsigned events);
static void on_timer(struct xf_timer *t);
static void read_head(struct s3d_conn *c);
static void read_body(struct s3d_conn *c);

static int64_t now_ms(const struct s3d_conn *c)
{
    return xf_loop_mono_ms(c->thread->loop);
}

void s3d_conn_open(struct s3d_thread *t, int fd)
{
    struct s3d_conn *c = xf_xcalloc(1, sizeof(*c));
    struct xf_err err;
    int one = 1;

    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)); /* only slower without */
    c->thread = t;
    c->watch = (struct xf_watch){.fd = fd, .cb = on_event, .arg = c};
    c->timer = (struct xf_timer){.cb = on_timer, .arg = c};
    xf_buf_init(&c->rbuf, (size_t)S3D_HTTP_HEAD_MAX * 2);
    xf_buf_init(&c->carry, 0);
    xf_buf_init(&c->obuf, 0);
    xf_buf_init(&c->req.dec, 0);
    xf_buf_init(&c->req.small, S3D_SMALL_MAX);
    xf_buf_init(&c->req.resp.headers, 0);
    xf_buf_init(&c->req.resp.body, 0);
    c->req.server = t->server;
    xf_list_push_back(&t->conns, &c->in_thread);
    s3d_count_connection(t->server->counters, true);
    if (xf_watch_start(t->loop, &c->watch, XF_LOOP_IN, &err) != XF_OK) {
        s3d_conn_close(c, true);
    }
}

bool s3d_conn_watch(struct s3d_conn *c, unsigned events)
{
    struct xf_err err;

    if (xf_watch_change(c->thread->loop, &c->watch, events, &err) == XF_OK) {
        return true;
    }
    s3d_conn_close(c, true);
    return false;
}

static void count_end(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;
    int status = c->answered ? r->resp.status : 0;

    if (!c->counted) {
        return;
    }
    c->counted = false;
    s3d_count_end(c->thread->server->counters, r->op, status, c->body_in, c->bytes_out);
    if (c->thread->server->reqlog != NULL && !r->admin) {
        struct s3d_logged e = {r->op, &r->http, r->bucket, r->key, status, now_ms(c) - r->start_ms};
        s3d_reqlog_add(c->thread->server->reqlog, &e);
    }
}

static void conn_free(struct s3d_conn *c)
{
    s3d_req_release(&c->req);
    xf_buf_fini(&c->rbuf);
    xf_buf_fini(&c->carry);
    xf_buf_fini(&c->obuf);
    xf_buf_fini(&c->req.dec);
    xf_buf_fini(&c->req.small);
    xf_buf_fini(&c->req.resp.headers);
    xf_buf_fini(&c->req.resp.body);
    xf_xfree(c);
}

void s3d_conn_close(struct s3d_conn *c, bool reset)
{
    struct linger l = {1, 0};

    if (!c->closed) {
        c->closed = true;
        count_end(c);
        xf_timer_stop(c->thread->loop, &c->timer);
        xf_watch_stop(c->thread->loop, &c->watch);
        if (reset) {
            (void)setsockopt(
                c->watch.fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)); /* else an orderly end */
        } else {
            (void)shutdown(c->watch.fd, SHUT_WR); /* the peer may be gone already */
        }
        (void)close(c->watch.fd);
        s3d_count_connection(c->thread->server->counters, false);
    }
    if (c->state != S3D_CONN_AWAY) {
        xf_list_remove(&c->in_thread);
        conn_free(c);
    }
}

void s3d_conn_next(struct s3d_conn *c)
{
    bool keep = c->req.http.keep_alive && !c->req.resp.close;

    count_end(c);
    s3d_req_release(&c->req);
    if (!keep) {
        s3d_conn_close(c, false);
        return;
    }
    xf_buf_consume(&c->rbuf, c->head_len + c->taken);
    if (c->carry.len > 0) {
        xf_buf_put(&c->rbuf, xf_buf_view(&c->carry));
        xf_buf_reset(&c->carry);
    }
    c->state = S3D_CONN_HEAD;
    if (!s3d_conn_watch(c, XF_LOOP_IN)) {
        return;
    }
    if (c->rbuf.len > 0) {
        /* the next request is here already: on the next turn, so that one client cannot keep the
         * loop */
        xf_timer_at(c->thread->loop, &c->timer, now_ms(c));
    }
}

/* ---- input ---- */

/* Receive at most cap bytes; 0: nothing now, -1: the connection is gone (and freed). */
static ssize_t receive(struct s3d_conn *c, char *p, size_t cap)
{
    ssize_t n = recv(c->watch.fd, p, cap, 0);

    if (n > 0) {
        return n;
    }
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return 0;
    }
    s3d_conn_close(c, false);
    return -1;
}

static void try_head(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;
    const char *why = NULL;

    c->taken = 0;
    c->body_in = 0;
    c->bytes_out = 0;
    c->answered = false;
    c->discard = false;
    switch (s3d_http_parse(&r->http, c->rbuf.ptr, c->rbuf.len, &c->head_len, &why)) {
    case S3D_HTTP_MORE: return;
    case S3D_HTTP_BAD:
        r->start_ms = now_ms(c);
        memset(&r->http, 0, sizeof(r->http)); /* what was parsed of it is of no use */
        r->http.method = S3D_OTHER;
        r->op = S3D_OP_OTHER;
        r->bucket = r->key = XF_STR_EMPTY;
        s3d_action_init(&r->act);
        s3d_count_begin(c->thread->server->counters);
        c->counted = true;
        c->head_len = c->rbuf.len;
        s3d_fail(r, "BadRequest", why);
        s3d_dispatch_answer(c);
        return;
    case S3D_HTTP_OK: break;
    }
    c->counted = true;
    s3d_count_begin(c->thread->server->counters);
    s3d_dispatch_begin(c);
}

static void read_head(struct s3d_conn *c)
{
    size_t room = c->rbuf.cap > c->rbuf.len + 1 ? c->rbuf.cap - c->rbuf.len - 1 : 0;

    if (room < 256) {
        room = c->rbuf.cap < READ_FIRST ? READ_FIRST : c->rbuf.cap;
    }
    char *p = xf_buf_reserve(&c->rbuf, room);
    if (p == NULL) {
        s3d_conn_close(c, true);
        return;
    }
    ssize_t n = receive(c, p, room);
    if (n > 0) {
        c->rbuf.len += (size_t)n;
        try_head(c);
    }
}

static void sink_object(void *arg, const char *p, size_t len)
{
    struct s3d_req *r = arg;

    s3d_intake_feed(&r->intake, p, len);
}

/* Decoded body bytes: to the aws-chunked decoder, the intake, or the XML buffer. False: refused. */
static bool body_bytes(struct s3d_conn *c, const char *p, size_t len)
{
    struct s3d_req *r = &c->req;
    struct s3d_fail fail;
    size_t used;

    if (c->discard) {
        return true;
    }
    if (r->intake_on && r->aws_on) {
        if (!s3d_chunked_feed(&r->aws, xf_str_n(p, len), &used, sink_object, r, &fail)) {
            s3d_fail(r, fail.code, fail.message);
            return false;
        }
    } else if (r->intake_on) {
        s3d_intake_feed(&r->intake, p, len);
    } else {
        xf_buf_put_mem(&r->small, p, len);
        if (r->small.full) {
            s3d_fail(r, "MalformedXML", "The XML document is larger than 8 MiB");
            return false;
        }
    }
    return true;
}

struct te_sink {
    struct s3d_conn *conn;
    bool ok;
};

static void sink_te(void *arg, const char *p, size_t len)
{
    struct te_sink *s = arg;

    if (s->ok && !body_bytes(s->conn, p, len)) {
        s->ok = false;
        s->conn->discard = true;
    }
}

/* Raw body bytes; gives how many were the body's. */
static size_t feed(struct s3d_conn *c, const char *p, size_t len)
{
    size_t used = len;

    if (c->te_on) {
        struct te_sink s = {c, true};
        struct s3d_fail fail;
        if (!s3d_chunked_feed(&c->te, xf_str_n(p, len), &used, sink_te, &s, &fail)) {
            s3d_fail(&c->req, fail.code, fail.message);
            c->discard = true;
            c->req.resp.close = true;
            c->te.state = S3D_CHUNK_DONE;
            return len;
        }
    } else {
        if (used > c->body_left) {
            used = (size_t)c->body_left;
        }
        c->body_left -= used;
        if (!body_bytes(c, p, used)) {
            c->discard = true;
        }
    }
    c->body_in += used;
    return used;
}

static bool body_is_done(const struct s3d_conn *c)
{
    return c->te_on ? c->te.state == S3D_CHUNK_DONE : c->body_left == 0;
}

/* The rule's wishes about reading. True: the connection is gone or stopped reading. */
static bool body_fault(struct s3d_conn *c)
{
    struct s3d_action *a = &c->req.act;

    if (a->read_cut != S3D_UNSET && c->body_in >= (uint64_t)a->read_cut) {
        s3d_conn_close(c, a->rst);
        return true;
    }
    if (a->read_stop != S3D_UNSET && c->body_in >= (uint64_t)a->read_stop) {
        a->read_stop = S3D_UNSET;
        c->state = S3D_CONN_DEAF;
        c->due_ms = a->stall_ms < 0 ? INT64_MAX : now_ms(c) + a->stall_ms;
        if (s3d_conn_watch(c, 0)) {
            xf_timer_in(
                c->thread->loop, &c->timer, a->stall_ms < 0 || a->stall_ms > 50 ? 50 : a->stall_ms);
        }
        return true;
    }
    return false;
}

static void take_buffered(struct s3d_conn *c)
{
    size_t have = c->rbuf.len - c->head_len - c->taken;

    if (have > 0 && !body_is_done(c)) {
        c->taken += feed(c, c->rbuf.ptr + c->head_len + c->taken, have);
    }
}

static void read_body(struct s3d_conn *c)
{
    take_buffered(c);
    for (int i = 0; i < 8; i++) {
        if (body_fault(c)) {
            return;
        }
        if (body_is_done(c)) {
            s3d_dispatch_body_done(c);
            return;
        }
        size_t cap = S3D_SCRATCH;
        if (!c->te_on && cap > c->body_left) {
            cap = (size_t)c->body_left;
        }
        ssize_t n = receive(c, c->thread->scratch, cap);
        if (n <= 0) {
            return;
        }
        size_t used = feed(c, c->thread->scratch, (size_t)n);
        if (used < (size_t)n) {
            xf_buf_put_mem(&c->carry, c->thread->scratch + used, (size_t)n - used);
        }
        if (body_is_done(c)) {
            s3d_dispatch_body_done(c);
            return;
        }
        if ((size_t)n < cap) {
            return; /* nothing more for now */
        }
    }
}

/* Input while a request is being served: the client's end, or its next request. */
static void peek(struct s3d_conn *c)
{
    char byte;
    ssize_t n = recv(c->watch.fd, &byte, 1, MSG_PEEK);

    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        s3d_conn_close(c, false);
        return;
    }
    (void)s3d_conn_watch(c, c->watch.events & ~(unsigned)XF_LOOP_IN); /* gone is fine, too */
}

static void on_event(struct xf_watch *w, unsigned events)
{
    struct s3d_conn *c = w->arg;

    if (c->state == S3D_CONN_WRITE && (events & XF_LOOP_OUT) != 0) {
        s3d_write_more(c);
        return;
    }
    if ((events & (XF_LOOP_IN | XF_LOOP_ERR)) == 0) {
        return;
    }
    switch (c->state) {
    case S3D_CONN_HEAD:
        if (!xf_timer_is_started(&c->timer)) {
            read_head(c);
        }
        break;
    case S3D_CONN_BODY: read_body(c); break;
    case S3D_CONN_WAIT:
    case S3D_CONN_HASH:
    case S3D_CONN_AWAY:
    case S3D_CONN_WRITE:
    case S3D_CONN_STALL:
    case S3D_CONN_DEAF: peek(c); break;
    }
}

/* A stall that lasts until its time, or until the rules were dropped. */
static bool stall_is_over(const struct s3d_conn *c)
{
    return now_ms(c) >= c->due_ms ||
           s3d_faults_epoch(c->thread->server->faults) != c->req.fault_epoch;
}

static void on_timer(struct xf_timer *t)
{
    struct s3d_conn *c = t->arg;

    switch (c->state) {
    case S3D_CONN_HEAD: try_head(c); break;
    case S3D_CONN_WAIT:
    case S3D_CONN_HASH: s3d_dispatch_run(c); break;
    case S3D_CONN_STALL:
        if (!stall_is_over(c)) {
            xf_timer_in(c->thread->loop, t, 50);
            break;
        }
        c->state = S3D_CONN_WRITE;
        s3d_write_more(c);
        break;
    case S3D_CONN_DEAF:
        if (!stall_is_over(c)) {
            xf_timer_in(c->thread->loop, t, 50);
            break;
        }
        c->state = S3D_CONN_BODY;
        if (s3d_conn_watch(c, XF_LOOP_IN)) {
            read_body(c);
        }
        break;
    case S3D_CONN_BODY: read_body(c); break;
    case S3D_CONN_AWAY:
    case S3D_CONN_WRITE: break;
    }
}
