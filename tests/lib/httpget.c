/*
 * httpget.c - one connection a request, read to the end of the stream.
 */
#include "tests/lib/httpget.h"

#include "common/base/err.h"
#include "common/base/mem.h"
#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

enum { TIMEOUT_S = 10 };

struct target {
    struct sockaddr_in addr;
    struct xf_str authority;
    struct xf_str path;
};

static void parse_url(const char *url, struct target *t)
{
    struct xf_str s = xf_str_c(url);
    struct xf_str scheme = XF_STR_LIT("http://");
    if (!xf_str_starts(s, scheme)) {
        fail_msg("not an http URL: '%s'", url);
    }
    s = xf_str_sub(s, scheme.len, s.len);
    size_t slash = xf_str_find(s, '/', 0);
    t->authority = xf_str_sub(s, 0, slash);
    t->path = slash == SIZE_MAX ? XF_STR_LIT("/") : xf_str_sub(s, slash, s.len);
    struct xf_str port_text = t->authority;
    struct xf_str host;
    uint64_t port = 0;
    bool good = xf_str_cut(&port_text, ':', &host) && xf_str_u64(port_text, &port);
    XF_AUTO_FREE char *host_text = xf_str_dup(good ? host : XF_STR_EMPTY);
    t->addr = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    if (!good || port > UINT16_MAX || inet_pton(AF_INET, host_text, &t->addr.sin_addr) != 1) {
        fail_msg("not an address and a port: '%s'", url);
    }
}

static bool send_all(int fd, struct xf_str s)
{
    while (s.len > 0) {
        ssize_t n = send(fd, s.ptr, s.len, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n <= 0) {
            return false;
        }
        s = xf_str_sub(s, (size_t)n, s.len);
    }
    return true;
}

static bool receive_all(int fd, struct xf_buf *in)
{
    char chunk[16384];
    for (;;) {
        ssize_t n = recv(fd, chunk, sizeof(chunk), 0);
        if (n == 0) {
            return true;
        }
        if (n < 0 && errno != EINTR) {
            return false;
        }
        if (n > 0) {
            xf_buf_put_mem(in, chunk, (size_t)n);
        }
    }
}

/* Status of the answer, with the body's place; -1 when the answer is not whole. */
static int parse_answer(struct xf_str in, struct xf_str *body)
{
    struct xf_str blank = XF_STR_LIT("\r\n\r\n");
    size_t end = 0;
    while (end + blank.len <= in.len && memcmp(in.ptr + end, blank.ptr, blank.len) != 0) {
        end++;
    }
    uint64_t status = 0;
    if (end + blank.len > in.len || !xf_str_starts(in, XF_STR_LIT("HTTP/1.")) ||
        !xf_str_u64(xf_str_sub(in, 9, 12), &status)) {
        return -1;
    }
    *body = xf_str_sub(in, end + blank.len, in.len);
    struct xf_str lines = xf_str_sub(in, 0, end);
    struct xf_str line;
    while (xf_str_cut(&lines, '\n', &line)) {
        struct xf_str name;
        uint64_t length = 0;
        if (xf_str_cut(&line, ':', &name) && xf_str_eq_nocase(name, XF_STR_LIT("content-length")) &&
            xf_str_u64(xf_str_trim(line), &length)) {
            if (body->len < length) {
                return -1;
            }
            *body = xf_str_sub(*body, 0, (size_t)length);
        }
    }
    return (int)status;
}

int xf_httpget_send(const char *method, const char *url, struct xf_str request, struct xf_buf *body)
{
    struct target t;
    parse_url(url, &t);
    XF_AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    struct timeval limit = {.tv_sec = TIMEOUT_S};
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)), 0);
    if (connect(fd, (const struct sockaddr *)&t.addr, sizeof(t.addr)) != 0) {
        return -1;
    }
    XF_AUTO_BUF head = {0};
    xf_buf_init(&head, 0);
    xf_buf_putf(
        &head,
        "%s %.*s HTTP/1.0\r\nHost: %.*s\r\nContent-Length: %zu\r\nConnection: close\r\n\r\n",
        method,
        XF_STR_ARG(t.path),
        XF_STR_ARG(t.authority),
        request.len);
    XF_AUTO_BUF in = {0};
    xf_buf_init(&in, 0);
    if (!send_all(fd, xf_buf_view(&head)) || !send_all(fd, request) || !receive_all(fd, &in)) {
        return -1;
    }
    struct xf_str content;
    int status = parse_answer(xf_buf_view(&in), &content);
    if (status > 0 && body != NULL) {
        xf_buf_put(body, content);
    }
    return status;
}

int xf_httpget(const char *url, struct xf_buf *body)
{
    return xf_httpget_send("GET", url, XF_STR_EMPTY, body);
}
