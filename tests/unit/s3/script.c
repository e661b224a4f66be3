/*
 * script.c - the scripted server: one buffer in and one out a connection.
 */
#include "tests/unit/s3/script.h"

#include "common/base/list.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define REQUESTS_MAX 256

struct conn {
    struct xf_list node;
    struct script *script;
    struct xf_watch watch;
    struct xf_timer drip;
    struct xf_buf in;
    struct xf_buf out;
    uint64_t fill;
    struct script_reply reply;
    bool replying;
    bool closing;
    size_t drip_from;
};

struct request {
    char *head;
    char *body;
    size_t body_len;
};

struct script {
    struct xf_loop *loop;
    struct xf_watch listener;
    unsigned port;
    struct xf_list conns;
    size_t n_conns;
    struct script_reply replies[REQUESTS_MAX];
    size_t n_replies;
    struct request requests[REQUESTS_MAX];
    size_t n_requests;
};

static void conn_close(struct conn *c, bool reset)
{
    if (reset) {
        struct linger hard = {.l_onoff = 1, .l_linger = 0};

        assert_int_equal(setsockopt(c->watch.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard)), 0);
    }
    xf_timer_stop(c->script->loop, &c->drip);
    xf_watch_stop(c->script->loop, &c->watch);
    xf_list_remove(&c->node);
    (void)close(c->watch.fd); /* nothing can be done about a failure */
    xf_buf_fini(&c->in);
    xf_buf_fini(&c->out);
    xf_xfree(c);
}

static void watch_for(struct conn *c, unsigned events)
{
    struct xf_err err;

    assert_int_equal(xf_watch_change(c->script->loop, &c->watch, events, &err), XF_OK);
}

static void conn_read(struct conn *c);

/* The reply is out: do what the script says then. */
static void after_reply(struct conn *c)
{
    watch_for(c, XF_LOOP_IN);
    switch (c->reply.after) {
    case SCRIPT_KEEP:
        c->replying = false;
        if (c->in.len > 0) {
            conn_read(c);
        }
        break;
    case SCRIPT_CLOSE:
        if (c->reply.before_body) {
            c->closing = true; /* swallow the body, or the kernel would reset */
            assert_int_equal(shutdown(c->watch.fd, SHUT_WR), 0);
        } else {
            conn_close(c, false);
        }
        break;
    case SCRIPT_RESET: conn_close(c, true); break;
    case SCRIPT_STALL: watch_for(c, 0); break;
    }
}

/* What to send next: the head at once, then all, or byte by byte. */
static struct xf_str next_piece(const struct conn *c)
{
    static char filler[65536];
    size_t len = c->out.len;

    if (len == 0) {
        memset(filler, 'x', sizeof(filler));
        return (struct xf_str){filler, c->fill < sizeof(filler) ? (size_t)c->fill : sizeof(filler)};
    }
    if (c->drip_from > 0) {
        len = len > c->drip_from ? c->drip_from : len;
    } else if (c->reply.drip_ms > 0) {
        len = 1;
    }
    return (struct xf_str){c->out.ptr, len};
}

/* n bytes are out. True when the next byte waits for the timer. */
static bool sent(struct conn *c, size_t n)
{
    if (c->out.len == 0) {
        c->fill -= n;
        return false;
    }
    c->drip_from = c->drip_from > n ? c->drip_from - n : 0;
    xf_buf_consume(&c->out, n);
    if (c->reply.drip_ms == 0 || c->out.len == 0 || c->drip_from > 0) {
        return false;
    }
    watch_for(c, XF_LOOP_IN);
    xf_timer_in(c->script->loop, &c->drip, c->reply.drip_ms);
    return true;
}

static void conn_write(struct conn *c)
{
    while (c->out.len > 0 || c->fill > 0) {
        struct xf_str piece = next_piece(c);
        ssize_t n = send(c->watch.fd, piece.ptr, piece.len, MSG_NOSIGNAL);

        if (n < 0 && errno == EAGAIN) {
            watch_for(c, XF_LOOP_IN | XF_LOOP_OUT);
            return;
        }
        if (n < 0) {
            conn_close(c, false);
            return;
        }
        if (sent(c, (size_t)n)) {
            return;
        }
    }
    after_reply(c);
}

static void on_drip(struct xf_timer *t)
{
    conn_write(t->arg);
}

static size_t header_number(const char *head, const char *name)
{
    for (const char *line = head; line != NULL; line = strstr(line, "\r\n")) {
        line += line == head ? 0 : 2;
        if (strncasecmp(line, name, strlen(name)) == 0) {
            return (size_t)strtoull(line + strlen(name), NULL, 10);
        }
        if (line[0] == '\0') {
            break;
        }
    }
    return 0;
}

static void start_reply(struct conn *c)
{
    struct script *s = c->script;

    if (s->n_requests > s->n_replies) {
        fail_msg(
            "request %zu has no reply:\n%s", s->n_requests, s->requests[s->n_requests - 1].head);
    }
    c->reply = s->replies[s->n_requests - 1];
    c->replying = true;
    if (c->reply.text != NULL) {
        size_t len = c->reply.text_len > 0 ? c->reply.text_len : strlen(c->reply.text);
        const char *body = strstr(c->reply.text, "\r\n\r\n");

        xf_buf_put_mem(&c->out, c->reply.text, len);
        c->drip_from = body != NULL ? (size_t)(body - c->reply.text) + 4 : 0;
    }
    c->fill = c->reply.fill;
    conn_write(c);
}

static void conn_read(struct conn *c)
{
    struct script *s = c->script;
    const char *end = c->in.len > 0 ? strstr(c->in.ptr, "\r\n\r\n") : NULL;
    size_t head_len;
    size_t body_len;
    bool early;

    if (c->replying || end == NULL) {
        return;
    }
    head_len = (size_t)(end - c->in.ptr) + 4;
    body_len = header_number(c->in.ptr, "content-length:");
    early = s->n_requests < s->n_replies && s->replies[s->n_requests].before_body;
    if (!early && c->in.len < head_len + body_len) {
        return;
    }
    assert_true(s->n_requests < REQUESTS_MAX);
    s->requests[s->n_requests].head = xf_xmemdup0(c->in.ptr, head_len);
    if (!early) {
        s->requests[s->n_requests].body = xf_xmemdup0(c->in.ptr + head_len, body_len);
        s->requests[s->n_requests].body_len = body_len;
    }
    s->n_requests++;
    xf_buf_consume(&c->in, early ? c->in.len : head_len + body_len);
    start_reply(c);
}

static void on_conn(struct xf_watch *w, unsigned events)
{
    struct conn *c = w->arg;
    char data[65536];
    ssize_t n;

    if ((events & XF_LOOP_OUT) != 0) {
        conn_write(c);
        return;
    }
    n = recv(w->fd, data, sizeof(data), 0);
    if (n < 0 && errno == EAGAIN) {
        return;
    }
    if (n <= 0) {
        conn_close(c, false);
        return;
    }
    if (!c->closing) {
        xf_buf_put_mem(&c->in, data, (size_t)n);
        conn_read(c);
    }
}

static void on_listener(struct xf_watch *w, unsigned events)
{
    struct script *s = w->arg;
    struct conn *c;
    struct xf_err err;
    int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

    (void)events; /* only readability is asked for */
    if (fd < 0) {
        return;
    }
    c = xf_xcalloc(1, sizeof(*c));
    c->script = s;
    c->watch = (struct xf_watch){.fd = fd, .cb = on_conn, .arg = c};
    c->drip = (struct xf_timer){.cb = on_drip, .arg = c};
    xf_list_push_back(&s->conns, &c->node);
    s->n_conns++;
    assert_int_equal(xf_watch_start(s->loop, &c->watch, XF_LOOP_IN, &err), XF_OK);
}

struct script *script_new(struct xf_loop *loop)
{
    struct script *s = xf_xcalloc(1, sizeof(*s));
    struct sockaddr_in addr = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(addr);
    struct xf_err err;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)(void *)&addr, sizeof(addr)), 0);
    assert_int_equal(listen(fd, 128), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)(void *)&addr, &len), 0);
    s->loop = loop;
    s->port = ntohs(addr.sin_port);
    s->listener = (struct xf_watch){.fd = fd, .cb = on_listener, .arg = s};
    xf_list_init(&s->conns);
    assert_int_equal(xf_watch_start(loop, &s->listener, XF_LOOP_IN, &err), XF_OK);
    return s;
}

void script_free(struct script *s)
{
    if (s == NULL) {
        return;
    }
    while (!xf_list_is_empty(&s->conns)) {
        conn_close(XF_CONTAINER_OF(s->conns.next, struct conn, node), false);
    }
    xf_watch_stop(s->loop, &s->listener);
    (void)close(s->listener.fd); /* nothing can be done about a failure */
    for (size_t i = 0; i < s->n_requests; i++) {
        xf_xfree(s->requests[i].head);
        xf_xfree(s->requests[i].body);
    }
    xf_xfree(s);
}

unsigned script_port(const struct script *s)
{
    return s->port;
}

void script_add(struct script *s, struct script_reply reply)
{
    assert_true(s->n_replies < REQUESTS_MAX);
    s->replies[s->n_replies++] = reply;
}

void script_say(struct script *s, const char *text)
{
    script_add(s, (struct script_reply){.text = text});
}

size_t script_requests(const struct script *s)
{
    return s->n_requests;
}

size_t script_connections(const struct script *s)
{
    return s->n_conns;
}

const char *script_head(const struct script *s, size_t n)
{
    assert_true(n < s->n_requests);
    return s->requests[n].head;
}

struct xf_str script_body(const struct script *s, size_t n)
{
    assert_true(n < s->n_requests);
    return (struct xf_str){s->requests[n].body, s->requests[n].body_len};
}
