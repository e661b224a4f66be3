/* write.c - sends an answer, also in the broken ways that rules ask for. */
#include "common/base/clock.h"
#include "tests/s3d/conn.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/uio.h>

enum { CHUNK = 16 * 1024 };

static const char *reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {{200, "OK"},
                   {204, "No Content"},
                   {206, "Partial Content"},
                   {304, "Not Modified"},
                   {400, "Bad Request"},
                   {403, "Forbidden"},
                   {404, "Not Found"},
                   {412, "Precondition Failed"},
                   {416, "Range Not Satisfiable"},
                   {500, "Internal Server Error"},
                   {501, "Not Implemented"},
                   {503, "Slow Down"}};

    for (size_t i = 0; i < XF_ARRAY_LEN(reasons); i++) {
        if (reasons[i].status == status) {
            return reasons[i].text;
        }
    }
    return "Status";
}

static const char *date_now(struct s3d_thread *t, int64_t wall_ms)
{
    if (wall_ms / 1000 != t->date_s) {
        t->date_s = wall_ms / 1000;
        xf_time_http(wall_ms, t->date);
    }
    return t->date;
}

/* Remove the lines of that name from the head. */
static void remove_header(struct xf_buf *head, const char *name)
{
    size_t n = strlen(name);
    size_t at = 0;

    while (at < head->len) {
        char *line = head->ptr + at;
        char *nl = memchr(line, '\n', head->len - at);
        size_t len = nl == NULL ? head->len - at : (size_t)(nl - line) + 1;
        bool hit =
            len > n && line[n] == ':' && xf_str_eq_nocase(xf_str_n(line, n), xf_str_n(name, n));
        if (hit) {
            memmove(line, line + len, head->len - at - len);
            head->len -= len;
        } else {
            at += len;
        }
    }
}

static void edit_head(struct xf_buf *head, const struct s3d_action *a)
{
    for (size_t i = 0; i < a->n_edits; i++) {
        remove_header(head, a->edits[i].name);
        if (a->edits[i].value != NULL) {
            xf_buf_putf(head, "%s: %s\r\n", a->edits[i].name, a->edits[i].value);
        }
    }
}

static uint64_t body_total(const struct s3d_resp *p)
{
    return p->data != NULL ? p->data_len : p->body.len;
}

static void put_head(struct s3d_conn *c)
{
    struct s3d_req *r = &c->req;
    struct s3d_resp *p = &r->resp;
    struct xf_buf *h = &c->obuf;
    bool bodyless = p->status == 204 || p->status == 304;
    uint64_t length = p->has_length ? p->length : c->out.total - (r->act.any ? r->act.extra : 0);

    if (r->act.content_length != S3D_UNSET) {
        length = (uint64_t)r->act.content_length;
    }
    xf_buf_put_c(h, "HTTP/1.1 ");
    xf_buf_put_u64(h, (uint64_t)p->status);
    xf_buf_put_byte(h, ' ');
    xf_buf_put_c(h, reason(p->status));
    xf_buf_put_c(h, "\r\nServer: s3d\r\nDate: ");
    xf_buf_put_c(h, date_now(c->thread, r->wall_ms));
    xf_buf_put_c(h, "\r\nx-amz-request-id: ");
    xf_buf_putf(h, "%016llX", (unsigned long long)r->id);
    xf_buf_put_c(h, "\r\n");
    xf_buf_put(h, xf_buf_view(&p->headers));
    if (p->content_type != NULL) {
        xf_buf_put_c(h, "Content-Type: ");
        xf_buf_put_c(h, p->content_type);
        xf_buf_put_c(h, "\r\n");
    }
    if (c->out.chunked) {
        xf_buf_put_c(h, "Transfer-Encoding: chunked\r\n");
    } else if (!bodyless) {
        xf_buf_put_c(h, "Content-Length: ");
        xf_buf_put_u64(h, length);
        xf_buf_put_c(h, "\r\n");
    }
    if (!r->http.keep_alive || p->close) {
        xf_buf_put_c(h, "Connection: close\r\n");
    }
    if (r->act.n_edits > 0) {
        edit_head(h, &r->act);
    }
    xf_buf_put_c(h, "\r\n");
}

/* A position given as N bytes, or negative: N bytes before the end. */
static uint64_t position(int64_t n, uint64_t pad, uint64_t total)
{
    if (n >= 0) {
        return pad + (uint64_t)n;
    }
    uint64_t back = (uint64_t)-n;
    return back > total ? 0 : total - back;
}

static void plan(struct s3d_conn *c)
{
    const struct s3d_action *a = &c->req.act;
    struct s3d_out *o = &c->out;

    memset(o, 0, sizeof(*o));
    o->total = c->req.http.method == S3D_HEAD ? 0 : body_total(&c->req.resp);
    o->cut = o->stall = o->drip_end = UINT64_MAX;
    o->chunked = c->req.resp.more != NULL;
    if (!a->any) {
        return;
    }
    uint64_t body = o->total;
    o->total += a->pad + a->extra;
    o->chunked = o->chunked || a->chunked;
    if (a->cut_after != S3D_UNSET) {
        o->cut = position(a->cut_after, a->pad, a->pad + body);
    }
    if (a->stall_after != S3D_UNSET) {
        o->stall = a->stall_after == -1 ? 0 : position(a->stall_after, a->pad, a->pad + body);
    }
    if (a->pad_ms > 0 && a->pad > 0) {
        o->drip_end = 1;
    } else if (a->drip > 0) {
        o->drip_end = a->drip;
    }
}

static void pause_for(struct s3d_conn *c, int64_t ms)
{
    int64_t now = xf_loop_mono_ms(c->thread->loop);

    c->state = S3D_CONN_STALL;
    c->due_ms = ms < 0 ? INT64_MAX : now + ms;
    if (s3d_conn_watch(c, XF_LOOP_IN)) {
        xf_timer_in(c->thread->loop, &c->timer, ms < 0 || ms > 50 ? 50 : ms);
    }
}

void s3d_write_begin(struct s3d_conn *c)
{
    const struct s3d_action *a = &c->req.act;

    plan(c);
    xf_buf_reset(&c->obuf);
    c->opos = 0;
    put_head(c);
    c->state = S3D_CONN_WRITE;
    if (a->any && a->stall_after == -1) {
        c->out.stall = UINT64_MAX;
        pause_for(c, a->stall_ms);
        return;
    }
    s3d_write_more(c);
}

/* Bytes of the body at the present position; at most `cap`. */
static size_t piece(struct s3d_conn *c, uint64_t cap, const char **p)
{
    struct s3d_resp *resp = &c->req.resp;
    uint64_t pad = c->req.act.any ? c->req.act.pad : 0;
    uint64_t pos = c->out.pos;
    uint64_t body = body_total(resp);
    size_t n;

    if (pos < pad || pos >= pad + body) { /* blanks in front, or bytes too many behind */
        uint64_t left = pos < pad ? pad - pos : c->out.total - pos;
        n = left < S3D_SCRATCH ? (size_t)left : S3D_SCRATCH;
        memset(c->thread->scratch, pos < pad ? ' ' : 'x', n);
        *p = c->thread->scratch;
    } else if (resp->data != NULL) {
        uint64_t left = pad + body - pos;
        n = s3d_body_peek(
            resp->data, resp->data_off + (pos - pad), c->thread->scratch, S3D_SCRATCH, p);
        n = n < left ? n : (size_t)left;
    } else {
        *p = resp->body.ptr + (pos - pad);
        n = (size_t)(pad + body - pos);
    }
    return n < cap ? n : (size_t)cap;
}

/* More of a long answer into the body buffer; false at its end. */
static bool refill(struct s3d_conn *c)
{
    struct s3d_resp *p = &c->req.resp;

    if (p->more == NULL || c->out.pos < c->out.total) {
        return p->more != NULL;
    }
    xf_buf_reset(&p->body);
    c->out.pos = 0;
    c->out.total = 0;
    while (p->body.len == 0) {
        if (!p->more(p->more_arg, &p->body)) {
            p->more = NULL;
            break;
        }
    }
    c->out.total = p->body.len;
    return p->body.len > 0;
}

/* Where sending has to stop for now. */
static uint64_t limit(const struct s3d_out *o)
{
    uint64_t end = o->total;

    end = o->cut < end ? o->cut : end;
    end = o->stall < end ? o->stall : end;
    return o->drip_end < end ? o->drip_end : end;
}

/* What is left in obuf, and a piece of the body behind it. False: no more can be sent now (or
 * gone). */
static bool send_some(struct s3d_conn *c, const char *p, size_t n)
{
    struct iovec v[2] = {{c->obuf.ptr + c->opos, c->obuf.len - c->opos}, {NULL, n}};
    struct msghdr m = {.msg_iov = v, .msg_iovlen = n > 0 ? 2 : 1};

    memcpy(&v[1].iov_base, &p, sizeof(p)); /* sendmsg does not write to it */
    ssize_t sent = sendmsg(c->watch.fd, &m, MSG_NOSIGNAL);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            s3d_conn_close(c, true);
            return false;
        }
        sent = 0;
    }
    c->answered = c->answered || sent > 0;
    c->bytes_out += (uint64_t)sent;
    size_t head = v[0].iov_len < (size_t)sent ? v[0].iov_len : (size_t)sent;
    c->opos += head;
    c->out.pos += (uint64_t)sent - head;
    if ((size_t)sent < v[0].iov_len + n) {
        (void)s3d_conn_watch(
            c, XF_LOOP_OUT); /* when it fails the connection is gone, which is as good */
        return false;
    }
    return true;
}

/* A chunk of the body into obuf. */
static void put_chunk(struct s3d_conn *c, uint64_t end)
{
    const char *p;
    size_t n = piece(c, end - c->out.pos < CHUNK ? end - c->out.pos : CHUNK, &p);

    xf_buf_putf(&c->obuf, "%zx\r\n", n);
    xf_buf_put_mem(&c->obuf, p, n);
    xf_buf_put_c(&c->obuf, "\r\n");
    c->out.pos += n;
}

/* Can the client not tell where the body ends? */
static bool length_is_a_lie(const struct s3d_action *a)
{
    bool lie = a->content_length != S3D_UNSET || a->extra > 0;

    for (size_t i = 0; i < a->n_edits; i++) {
        lie = lie || xf_str_eq_nocase(xf_str_c(a->edits[i].name), XF_STR_LIT("content-length"));
    }
    return lie;
}

/* At the end of what may be sent now: true when the answer goes on at once. */
static bool at_limit(struct s3d_conn *c)
{
    struct s3d_out *o = &c->out;
    const struct s3d_action *a = &c->req.act;

    if (o->pos == o->cut && !o->chunked) {
        s3d_conn_close(c, a->rst);
        return false;
    }
    if (o->pos == o->stall) {
        o->stall = UINT64_MAX;
        pause_for(c, a->stall_ms);
        return false;
    }
    if (o->pos == o->drip_end && o->pos < o->total) {
        bool pads = a->pad_ms > 0 && o->pos < a->pad;
        o->drip_end = pads ? o->pos + 1 : a->drip > 0 ? o->pos + a->drip : UINT64_MAX;
        pause_for(c, pads ? a->pad_ms : a->drip > 0 ? a->drip_ms : 0);
        return false;
    }
    if (o->chunked && refill(c)) {
        return true;
    }
    if (o->chunked && !o->last_chunk) {
        o->last_chunk = true;
        xf_buf_put_c(&c->obuf, "0\r\n\r\n");
        return true;
    }
    if (a->any && length_is_a_lie(a)) {
        c->req.resp.close = true; /* the stream cannot go on */
    }
    s3d_conn_next(c);
    return false;
}

void s3d_write_more(struct s3d_conn *c)
{
    struct s3d_out *o = &c->out;

    for (;;) {
        uint64_t end = limit(o);
        const char *p = NULL;
        size_t n = 0;
        if (c->opos == c->obuf.len) {
            xf_buf_reset(&c->obuf);
            c->opos = 0;
        }
        if (o->chunked && o->pos < end && c->obuf.len - c->opos < CHUNK) {
            put_chunk(c, end);
        } else if (!o->chunked && o->pos < end) {
            n = piece(c, end - o->pos, &p);
        }
        if (c->obuf.len > c->opos || n > 0) {
            if (!send_some(c, p, n)) {
                return;
            }
            continue;
        }
        if (o->pos >= end && !at_limit(c)) {
            return;
        }
    }
}
