/*
 * httpd.c - libmicrohttpd in its external epoll mode: its descriptor is one watch of our loop.
 *
 * MHD_run() does what is ready and returns; MHD_get_timeout() tells when to call it again without
 * an event. A handler that does not answer at once suspends its connection; the late answer is kept
 * in the request and the connection resumed, upon which MHD asks again and the answer is queued.
 *
 * Invariants:
 * 1. A request is in `waiting` from its handler until it is replied to or the server is freed.
 * 2. MHD's response is queued only from inside the access handler.
 */
#include "common/net/httpd.h"

#include "common/base/list.h"
#include "common/base/log.h"
#include "common/rt/loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    CONNS_DEFAULT = 256,
    IDLE_S = 5,              /* a connection without a whole request keeps others out */
    CONN_MEMORY = 32 * 1024, /* a request's head, bounded */
    BACKLOG = 64,
    ADDRESS_MAX = 80
};

enum req_state { REQ_NEW, REQ_ASKED, REQ_SUSPENDED, REQ_ANSWERED, REQ_QUEUED };

struct xf_httpd_req {
    struct xf_list link; /* waiting */
    struct xf_httpd *server;
    struct MHD_Connection *conn;
    enum req_state state;
    int status;
    struct MHD_Response *response;
};

struct xf_httpd {
    struct xf_loop *loop;
    struct MHD_Daemon *daemon;
    struct xf_watch watch;
    struct xf_timer timer;
    const struct xf_httpd_route *routes;
    size_t n_routes;
    void *arg;
    struct xf_list waiting;
    bool is_loopback;
    char address[ADDRESS_MAX];
};

/* ---- address ------------------------------------------------------------------------------------
 */

struct address {
    struct sockaddr_storage addr;
    socklen_t len;
    bool is_loopback;
};

static bool parse_host(struct xf_str host, uint16_t port, struct address *out)
{
    char text[INET6_ADDRSTRLEN];
    struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&out->addr;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&out->addr;

    if (xf_str_eq_c(host, "localhost")) {
        host = XF_STR_LIT("127.0.0.1");
    }
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']') {
        host = xf_str_sub(host, 1, host.len - 1);
    }
    if (host.len == 0 || host.len >= sizeof(text)) {
        return false;
    }
    memcpy(text, host.ptr, host.len);
    text[host.len] = '\0';
    if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(port);
        out->len = sizeof(*v4);
        out->is_loopback = (ntohl(v4->sin_addr.s_addr) >> 24) == 127;
        return true;
    }
    if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(port);
        out->len = sizeof(*v6);
        out->is_loopback = IN6_IS_ADDR_LOOPBACK(&v6->sin6_addr);
        return true;
    }
    return false;
}

static enum xf_code parse_address(const char *listen, struct address *out, struct xf_err *err)
{
    struct xf_str s = xf_str_c(listen);
    size_t colon = s.len;
    uint64_t port = 0;

    memset(out, 0, sizeof(*out));
    while (colon > 0 && s.ptr[colon - 1] != ':') {
        colon--;
    }
    if (colon == 0 || !xf_str_u64(xf_str_sub(s, colon, s.len), &port) || port > UINT16_MAX ||
        !parse_host(xf_str_sub(s, 0, colon - 1), (uint16_t)port, out)) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "'%s' is not an address to listen on; write ADDR:PORT, as 127.0.0.1:7680",
                       listen);
    }
    return XF_OK;
}

static enum xf_code
open_socket(const char *listen_text, const struct address *a, int *out, struct xf_err *err)
{
    const int on = 1;
    XF_AUTO_FD int fd =
        socket(a->addr.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);

    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0) {
        return XF_FAIL_SUB(err, XF_E_IO, errno, "cannot make a socket: %s", xf_errno_text(errno));
    }
    if (bind(fd, (const struct sockaddr *)(const void *)&a->addr, a->len) != 0 ||
        listen(fd, BACKLOG) != 0) {
        int e = errno;
        return XF_FAIL_SUB(err,
                           XF_E_IO,
                           e,
                           "cannot listen on '%s': %s; choose another address with --http, or stop "
                           "the program that holds it",
                           listen_text,
                           xf_errno_text(e));
    }
    *out = fd;
    fd = -1;
    return XF_OK;
}

static void format_address(struct xf_httpd *h, int fd)
{
    union {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    } a = {.v6 = {0}};
    socklen_t len = sizeof(a);
    char host[INET6_ADDRSTRLEN] = "";

    if (getsockname(fd, &a.any, &len) != 0) {
        return;
    }
    /* inet_ntop() cannot fail: room is there. */
    if (a.any.sa_family == AF_INET) {
        (void)inet_ntop(AF_INET, &a.v4.sin_addr, host, sizeof(host));
        (void)snprintf(h->address, sizeof(h->address), "%s:%u", host, ntohs(a.v4.sin_port));
    } else {
        (void)inet_ntop(AF_INET6, &a.v6.sin6_addr, host, sizeof(host));
        (void)snprintf(h->address, sizeof(h->address), "[%s]:%u", host, ntohs(a.v6.sin6_port));
    }
}

/* ---- requests -----------------------------------------------------------------------------------
 */

static struct MHD_Response *make_response(const char *type, struct xf_str body)
{
    union {
        const char *in;
        void *out;
    } bytes = {.in = body.len > 0 ? body.ptr : ""};
    struct MHD_Response *r =
        MHD_create_response_from_buffer(body.len, bytes.out, MHD_RESPMEM_MUST_COPY);
    XF_ASSERT(r != NULL); /* small control memory, as xf_xmalloc */
    const char *const headers[][2] = {
        {MHD_HTTP_HEADER_CONTENT_TYPE, type},
        {MHD_HTTP_HEADER_CACHE_CONTROL, "no-store"},
        {"X-Content-Type-Options", "nosniff"},
        {"X-Frame-Options", "DENY"},
        {"Content-Security-Policy",
         "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src "
         "'unsafe-inline'; img-src data:"},
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(headers); i++) {
        XF_ASSERT(MHD_add_response_header(r, headers[i][0], headers[i][1]) == MHD_YES);
    }
    return r;
}

void xf_httpd_reply(struct xf_httpd_req *req, int status, const char *type, struct xf_str body)
{
    XF_ASSERT(req->state == REQ_ASKED || req->state == REQ_SUSPENDED);
    bool was_suspended = req->state == REQ_SUSPENDED;

    req->status = status;
    req->response = make_response(type, body);
    req->state = REQ_ANSWERED;
    xf_list_remove(&req->link);
    if (was_suspended) {
        MHD_resume_connection(req->conn);
        xf_timer_in(req->server->loop, &req->server->timer, 0);
    }
}

static void reply_text(struct xf_httpd_req *req, int status, const char *text)
{
    xf_httpd_reply(req, status, "text/plain; charset=utf-8", xf_str_c(text));
}

static const struct xf_httpd_route *
find_route(const struct xf_httpd *h, struct xf_str path, struct xf_str *rest)
{
    for (size_t i = 0; i < h->n_routes; i++) {
        struct xf_str want = xf_str_c(h->routes[i].path);
        if (want.len > 0 && want.ptr[want.len - 1] == '*') {
            want.len--;
            if (xf_str_starts(path, want)) {
                *rest = xf_str_sub(path, want.len, path.len);
                return &h->routes[i];
            }
        } else if (xf_str_eq(path, want)) {
            *rest = XF_STR_EMPTY;
            return &h->routes[i];
        }
    }
    return NULL;
}

static void dispatch(struct xf_httpd *h, struct xf_httpd_req *req, const char *url, bool is_get)
{
    struct xf_str rest = XF_STR_EMPTY;
    const struct xf_httpd_route *route = find_route(h, xf_str_c(url), &rest);

    req->state = REQ_ASKED;
    xf_list_push_back(&h->waiting, &req->link);
    if (!is_get) {
        reply_text(req, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET and HEAD are served here\n");
    } else if (route == NULL) {
        reply_text(req, MHD_HTTP_NOT_FOUND, "no such page\n");
    } else {
        route->handle(h->arg, req, rest);
    }
}

static enum MHD_Result queue_answer(struct xf_httpd_req *req)
{
    enum MHD_Result rc = MHD_queue_response(req->conn, (unsigned)req->status, req->response);

    req->state = REQ_QUEUED;
    return rc;
}

/* NOLINTNEXTLINE(readability-function-size): the parameters are MHD's */
static enum MHD_Result on_request(void *cls,
                                  struct MHD_Connection *conn,
                                  const char *url,
                                  const char *method,
                                  const char *version,
                                  const char *upload_data,
                                  size_t *upload_data_size,
                                  void **con_cls)
{
    struct xf_httpd *h = cls;
    struct xf_httpd_req *req = *con_cls;

    (void)version; /* MHD's signature: 1.0 and 1.1 are served alike */
    (void)upload_data;
    if (req == NULL) {
        req = xf_xcalloc(1, sizeof(*req));
        req->server = h;
        req->conn = conn;
        *con_cls = req;
        return MHD_YES;
    }
    if (*upload_data_size > 0) {
        *upload_data_size = 0; /* a body is read and dropped: bounded by the idle time */
        return MHD_YES;
    }
    if (req->state == REQ_NEW) {
        dispatch(h, req, url, strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0);
    }
    if (req->state == REQ_ANSWERED) {
        return queue_answer(req);
    }
    if (req->state == REQ_ASKED) {
        req->state = REQ_SUSPENDED;
        MHD_suspend_connection(conn);
    }
    return MHD_YES;
}

static void on_completed(void *cls,
                         struct MHD_Connection *conn,
                         void **con_cls,
                         enum MHD_RequestTerminationCode why)
{
    struct xf_httpd_req *req = *con_cls;

    (void)cls; /* MHD's signature */
    (void)conn;
    (void)why;
    if (req == NULL) {
        return;
    }
    xf_list_remove(&req->link);
    if (req->response != NULL) {
        MHD_destroy_response(req->response);
    }
    xf_xfree(req);
    *con_cls = NULL;
}

/* ---- the loop -----------------------------------------------------------------------------------
 */

static void run(struct xf_httpd *h)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;

    if (MHD_run(h->daemon) != MHD_YES) {
        XF_ERROR("httpd.failed", xf_f_c("address", h->address));
    }
    if (MHD_get_timeout(h->daemon, &wait_ms) == MHD_YES) {
        xf_timer_in(h->loop, &h->timer, wait_ms > 60000 ? 60000 : (int64_t)wait_ms);
    } else {
        xf_timer_stop(h->loop, &h->timer);
    }
}

static void on_event(struct xf_watch *w, unsigned events)
{
    (void)events; /* MHD finds out by itself */
    run(w->arg);
}

static void on_timer(struct xf_timer *t)
{
    run(t->arg);
}

static enum xf_code start_daemon(struct xf_httpd *h, int fd, unsigned max_conns, struct xf_err *err)
{
    h->daemon = MHD_start_daemon(MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME,
                                 0,
                                 NULL,
                                 NULL,
                                 on_request,
                                 h,
                                 MHD_OPTION_LISTEN_SOCKET,
                                 fd,
                                 MHD_OPTION_CONNECTION_LIMIT,
                                 max_conns,
                                 MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)CONN_MEMORY,
                                 MHD_OPTION_CONNECTION_TIMEOUT,
                                 (unsigned)IDLE_S,
                                 MHD_OPTION_NOTIFY_COMPLETED,
                                 on_completed,
                                 h,
                                 MHD_OPTION_END);
    if (h->daemon == NULL) {
        return XF_FAIL(err, XF_E_IO, "cannot start the HTTP server on '%s'", h->address);
    }
    const union MHD_DaemonInfo *info = MHD_get_daemon_info(h->daemon, MHD_DAEMON_INFO_EPOLL_FD);
    if (info == NULL) {
        return XF_FAIL(err, XF_E_UNSUPPORTED, "this libmicrohttpd has no epoll mode");
    }
    h->watch = (struct xf_watch){.fd = info->epoll_fd, .cb = on_event, .arg = h};
    return xf_watch_start(h->loop, &h->watch, XF_LOOP_IN, err);
}

enum xf_code xf_httpd_new(const struct xf_httpd_opts *o, struct xf_httpd **out, struct xf_err *err)
{
    struct address address;
    XF_AUTO(xf_httpd) h = xf_xcalloc(1, sizeof(*h));
    XF_AUTO_FD int fd = -1;

    *out = NULL;
    h->loop = o->loop;
    h->routes = o->routes;
    h->n_routes = o->n_routes;
    h->arg = o->arg;
    h->timer = (struct xf_timer){.cb = on_timer, .arg = h};
    xf_list_init(&h->waiting);
    XF_TRY(parse_address(o->listen, &address, err));
    XF_TRY(open_socket(o->listen, &address, &fd, err));
    h->is_loopback = address.is_loopback;
    format_address(h, fd);
    enum xf_code rc = start_daemon(h, fd, o->max_conns > 0 ? o->max_conns : CONNS_DEFAULT, err);
    if (h->daemon != NULL) {
        fd = -1; /* the daemon's from now on */
    }
    XF_TRY(rc);
    *out = XF_STEAL(h);
    return XF_OK;
}

void xf_httpd_free(struct xf_httpd *h)
{
    if (h == NULL) {
        return;
    }
    if (h->daemon != NULL) {
        XF_LIST_FOREACH (node, &h->waiting) {
            struct xf_httpd_req *req = XF_CONTAINER_OF(node, struct xf_httpd_req, link);
            reply_text(req, MHD_HTTP_SERVICE_UNAVAILABLE, "stopping\n");
        }
        (void)MHD_run(h->daemon); /* lets late answers go; what fails here ends with the daemon */
        if (h->watch.slot != 0) {
            xf_watch_stop(h->loop, &h->watch);
        }
        xf_timer_stop(h->loop, &h->timer);
        MHD_stop_daemon(h->daemon);
    }
    xf_xfree(h);
}

const char *xf_httpd_address(const struct xf_httpd *h)
{
    return h->address;
}

bool xf_httpd_is_loopback(const struct xf_httpd *h)
{
    return h->is_loopback;
}
