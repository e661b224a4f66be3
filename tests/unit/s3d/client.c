/* client.c - a blocking HTTP client for the tests of s3d. */
#include "tests/unit/s3d/client.h"

#include "tests/lib/test.h"
#include "tests/s3d/chunked.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

void server_opts(struct s3d_opts *o)
{
    s3d_opts_init(o);
    o->no_auth = true;
    o->buckets[o->n_buckets++] = "bkt";
    o->buckets[o->n_buckets++] = "dst";
}

struct s3d_server *server_start(const struct s3d_opts *o)
{
    struct s3d_server *s;
    struct xf_err err;

    if (s3d_server_new(o, &s, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    return s;
}

static int dial(const struct s3d_server *s)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(s->port)};
    struct timeval limit = {10, 0};

    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &a.sin_addr), 1);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
    return fd;
}

static void send_all(int fd, struct xf_str s)
{
    size_t done = 0;

    while (done < s.len) {
        ssize_t n = send(fd, s.ptr + done, s.len - done, MSG_NOSIGNAL);
        if (n <= 0) {
            return; /* the server hung up: what it said is still to be read */
        }
        done += (size_t)n;
    }
}

static void receive_all(int fd, struct xf_buf *all, struct reply *r)
{
    for (;;) {
        char *p = xf_buf_reserve(all, 65536);
        assert_non_null(p);
        ssize_t n = recv(fd, p, 65536, 0);
        if (n <= 0) {
            r->reset = n < 0 && errno == ECONNRESET;
            assert_false(n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)); /* the server hangs */
            return;
        }
        all->len += (size_t)n;
    }
}

char *header(const struct reply *r, const char *name)
{
    struct xf_str rest = xf_buf_view(&r->head);
    struct xf_str line;

    while (xf_str_cut(&rest, '\n', &line)) {
        size_t colon = xf_str_find(line, ':', 0);
        if (colon != SIZE_MAX && xf_str_eq_nocase(xf_str_sub(line, 0, colon), xf_str_c(name))) {
            return xf_str_dup(xf_str_trim(xf_str_sub(line, colon + 1, line.len)));
        }
    }
    return xf_xstrdup("");
}

static void sink(void *arg, const char *p, size_t len)
{
    xf_buf_put_mem(arg, p, len);
}

static void split_reply(const char *method, struct xf_buf *all, struct reply *r)
{
    while (xf_str_starts(xf_buf_view(all), XF_STR_LIT("HTTP/1.1 100"))) {
        const char *end = strstr(all->ptr, "\r\n\r\n");
        assert_non_null(end);
        xf_buf_consume(all, (size_t)(end - all->ptr) + 4);
    }
    const char *end = all->len == 0 ? NULL : strstr(all->ptr, "\r\n\r\n");
    if (end == NULL) {
        return;
    }
    size_t head = (size_t)(end - all->ptr) + 4;
    xf_buf_put_mem(&r->head, all->ptr, head);
    xf_buf_consume(all, head);
    r->status = (r->head.ptr[9] - '0') * 100 + (r->head.ptr[10] - '0') * 10 + r->head.ptr[11] - '0';
    XF_AUTO_FREE char *length = header(r, "content-length");
    XF_AUTO_FREE char *te = header(r, "transfer-encoding");
    if (strcmp(te, "chunked") == 0) {
        struct s3d_chunked c;
        struct s3d_fail f;
        size_t used;
        s3d_chunked_init(&c, NULL, false);
        assert_true(s3d_chunked_feed(&c, xf_buf_view(all), &used, sink, &r->body, &f));
        r->complete = c.state == S3D_CHUNK_DONE;
        return;
    }
    xf_buf_put(&r->body, xf_buf_view(all));
    uint64_t want = 0;
    (void)xf_str_u64(xf_str_c(length), &want); /* absent: 204, 304 */
    r->complete = strcmp(method, "HEAD") == 0 || r->body.len == want;
}

void ask(struct s3d_server *s,
         const char *method,
         const char *target,
         const char *headers,
         struct xf_str body,
         struct reply *r)
{
    struct xf_buf req = {0};
    struct xf_buf all = {0};
    int fd = dial(s);

    memset(r, 0, sizeof(*r));
    xf_buf_putf(&req,
                "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s",
                method,
                target,
                s->address,
                headers);
    if (strstr(headers, "Content-Length") == NULL && strstr(headers, "Transfer-Encoding") == NULL) {
        xf_buf_putf(&req, "Content-Length: %zu\r\n", body.len);
    }
    xf_buf_put_c(&req, "\r\n");
    xf_buf_put(&req, body);
    send_all(fd, xf_buf_view(&req));
    receive_all(fd, &all, r);
    assert_int_equal(close(fd), 0);
    split_reply(method, &all, r);
    xf_buf_fini(&req);
    xf_buf_fini(&all);
}

void reply_fini(struct reply *r)
{
    xf_buf_fini(&r->head);
    xf_buf_fini(&r->body);
}

char *must(struct s3d_server *s,
           const char *method,
           const char *target,
           const char *headers,
           const char *body,
           int want)
{
    struct reply r;

    ask(s, method, target, headers, xf_str_c(body), &r);
    if (r.status != want) {
        fail_msg("%s %s: status %d, not %d: %s",
                 method,
                 target,
                 r.status,
                 want,
                 r.body.ptr == NULL ? "" : r.body.ptr);
    }
    char *text = xf_str_dup(xf_buf_view(&r.body));
    reply_fini(&r);
    return text;
}

void does(struct s3d_server *s,
          const char *method,
          const char *target,
          const char *headers,
          const char *body,
          int want)
{
    xf_xfree(must(s, method, target, headers, body, want));
}

char *tag(const char *xml, const char *name)
{
    char open[64];
    char close_tag[64];

    (void)snprintf(open, sizeof(open), "<%s>", name);
    (void)snprintf(close_tag, sizeof(close_tag), "</%s>", name);
    const char *a = strstr(xml, open);
    const char *b = a == NULL ? NULL : strstr(a, close_tag);
    if (b == NULL) {
        return xf_xstrdup("");
    }
    a += strlen(open);
    return xf_xmemdup0(a, (size_t)(b - a));
}

char *fill(char c, size_t n)
{
    char *p = xf_xmalloc(n + 1);

    memset(p, c, n);
    p[n] = '\0';
    return p;
}
