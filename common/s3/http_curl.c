/*
 * http_curl.c - libcurl's multi interface on our loop.
 *
 *   start -> active, in the multi --(libcurl done | stall | cancel)--> on_done -> idle, for the
 * next start
 *
 * libcurl calls back while it reads and writes. Inside such a call its handles must not be touched,
 * so starts, cancels and resumes that arrive meanwhile, and all cancels, wait for the kick timer.
 * on_done runs only from the loop, never inside libcurl.
 */
#include "common/s3/http_curl.h"

#include "common/s3/route.h"

#include <pthread.h>
#include <unistd.h>

#define IDLE_MAX 512U /* easy handles kept; one is some 10 KiB */

struct sock {
    struct xf_list node;
    struct xf_watch watch;
};

static pthread_once_t global_once = PTHREAD_ONCE_INIT;

static void global_init(void)
{
    XF_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
}

bool xf_http_head_get(const struct xf_http_head *head, const char *name, struct xf_str *value)
{
    for (size_t i = 0; i < head->n_headers; i++) {
        if (xf_str_eq_c(head->headers[i].name, name)) {
            *value = head->headers[i].value;
            return true;
        }
    }
    *value = XF_STR_EMPTY;
    return false;
}

/* ---- ends ---- */

static void take_out(struct xf_http_req *req)
{
    struct xf_curl *c = req->owner;

    if (req->in_multi) {
        c->in_curl = true; /* closing a connection calls the socket callback */
        XF_ASSERT(curl_multi_remove_handle(c->multi, req->easy) == CURLM_OK);
        c->in_curl = false;
        req->in_multi = false;
    }
}

/* Out of libcurl and of the lists, tell the owner, keep the handle. */
static void finish(struct xf_http_req *req, CURLcode code)
{
    struct xf_curl *c = req->owner;
    struct xf_http_done done;

    xf_list_remove(&req->node);
    xf_list_remove(&req->kick_node);
    c->n_active--;
    xf_curl_req_outcome(req, code, &done);
    take_out(req);
    req->call.on_done(req->call.arg, &done);
    if (c->n_idle < IDLE_MAX) {
        xf_list_push_front(&c->idle, &req->node);
        c->n_idle++;
    } else {
        xf_curl_req_free(req);
    }
}

static void kick(struct xf_http_req *req)
{
    struct xf_curl *c = req->owner;

    if (!xf_list_is_linked(&req->kick_node)) {
        xf_list_push_back(&c->kicked, &req->kick_node);
    }
    if (!xf_timer_is_started(&c->kick)) {
        xf_timer_in(c->loop, &c->kick, 0);
    }
}

static void add(struct xf_http_req *req)
{
    struct xf_curl *c = req->owner;
    CURLMcode rc = curl_multi_add_handle(c->multi, req->easy);

    req->want_start = false;
    if (rc != CURLM_OK) {
        (void)XF_FAIL_SUB(
            &req->err, XF_E_IO, (int)rc, "cannot start the request: %s", curl_multi_strerror(rc));
        kick(req);
        return;
    }
    req->in_multi = true;
}

static void reap(struct xf_curl *c)
{
    CURLMsg *msg;
    int left = 0;

    while ((msg = curl_multi_info_read(c->multi, &left)) != NULL) {
        struct xf_http_req *req = NULL;
        CURLcode code = msg->data.result;

        if (msg->msg == CURLMSG_DONE) {
            XF_ASSERT(curl_easy_getinfo(msg->easy_handle, CURLINFO_PRIVATE, &req) == CURLE_OK);
            if (xf_curl_req_goes_elsewhere(req, code)) {
                take_out(req);
                add(req);
            } else {
                finish(req, code);
            }
        }
    }
}

static void drive(struct xf_curl *c, curl_socket_t fd, int events)
{
    int running = 0;

    c->in_curl = true;
    XF_ASSERT(curl_multi_socket_action(c->multi, fd, events, &running) == CURLM_OK);
    c->in_curl = false;
    reap(c);
}

/* ---- libcurl's wishes ---- */

static void on_socket_event(struct xf_watch *w, unsigned events)
{
    struct xf_curl *c = w->arg;
    int what = ((events & XF_LOOP_IN) != 0 ? CURL_CSELECT_IN : 0) |
               ((events & XF_LOOP_OUT) != 0 ? CURL_CSELECT_OUT : 0) |
               ((events & XF_LOOP_ERR) != 0 ? CURL_CSELECT_ERR : 0);

    drive(c, w->fd, what);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *sock_arg)
{
    struct xf_curl *c = arg;
    struct sock *sock = sock_arg;
    struct xf_err err;
    unsigned events = ((what & CURL_POLL_IN) != 0 ? (unsigned)XF_LOOP_IN : 0U) |
                      ((what & CURL_POLL_OUT) != 0 ? (unsigned)XF_LOOP_OUT : 0U);

    (void)easy; /* the socket may outlive the request */
    if (what == CURL_POLL_REMOVE) {
        if (sock != NULL) {
            xf_watch_stop(c->loop, &sock->watch);
            XF_ASSERT(curl_multi_assign(c->multi, fd, NULL) == CURLM_OK);
            xf_list_push_front(&c->idle_watches, &sock->node);
        }
        return 0;
    }
    if (sock != NULL) {
        return xf_watch_change(c->loop, &sock->watch, events, &err) == XF_OK ? 0 : -1;
    }
    if (xf_list_is_empty(&c->idle_watches)) {
        sock = xf_xcalloc(1, sizeof(*sock));
    } else {
        sock = XF_CONTAINER_OF(xf_list_pop_front(&c->idle_watches), struct sock, node);
    }
    sock->watch = (struct xf_watch){.fd = fd, .cb = on_socket_event, .arg = c};
    if (xf_watch_start(c->loop, &sock->watch, events, &err) != XF_OK) {
        xf_list_push_front(&c->idle_watches, &sock->node);
        return -1;
    }
    XF_ASSERT(curl_multi_assign(c->multi, fd, sock) == CURLM_OK);
    return 0;
}

static int on_timer_wish(CURLM *multi, long ms, void *arg)
{
    struct xf_curl *c = arg;

    (void)multi; /* there is one */
    if (ms < 0) {
        xf_timer_stop(c->loop, &c->timer);
    } else {
        xf_timer_in(c->loop, &c->timer, ms);
    }
    return 0;
}

static void on_timer(struct xf_timer *t)
{
    drive(t->arg, CURL_SOCKET_TIMEOUT, 0);
}

/* ---- deferred work ---- */

static void resume_now(struct xf_http_req *req)
{
    struct xf_curl *c = req->owner;

    req->want_resume = false;
    if (!req->in_multi || (!req->recv_paused && !req->send_paused)) {
        return;
    }
    req->recv_paused = false;
    req->send_paused = false;
    c->in_curl = true; /* may deliver what was held back */
    if (curl_easy_pause(req->easy, CURLPAUSE_CONT) != CURLE_OK && req->err.code == XF_OK &&
        !req->stopped) {
        (void)XF_FAIL(&req->err, XF_E_NET, "cannot go on with a paused request");
    }
    c->in_curl = false;
    if (req->err.code != XF_OK || req->stopped) {
        finish(req, CURLE_WRITE_ERROR);
    }
}

static void on_kick(struct xf_timer *t)
{
    struct xf_curl *c = t->arg;
    struct xf_list todo;
    struct xf_list *node;

    /* What is kicked from here on waits for the next turn. */
    xf_list_init(&todo);
    while ((node = xf_list_pop_front(&c->kicked)) != NULL) {
        xf_list_push_back(&todo, node);
    }
    while ((node = xf_list_pop_front(&todo)) != NULL) {
        struct xf_http_req *req = XF_CONTAINER_OF(node, struct xf_http_req, kick_node);

        if (req->cancelled || req->err.code != XF_OK) {
            finish(req, CURLE_ABORTED_BY_CALLBACK);
        } else if (req->want_start) {
            add(req);
        } else if (req->want_resume) {
            resume_now(req);
        }
    }
    reap(c);
}

static void on_sweep(struct xf_timer *t)
{
    struct xf_curl *c = t->arg;
    int64_t now_ms = xf_loop_mono_ms(c->loop);

    XF_LIST_FOREACH (node, &c->active) {
        struct xf_http_req *req = XF_CONTAINER_OF(node, struct xf_http_req, node);

        if (req->err.code == XF_OK && xf_curl_req_is_stalled(req, now_ms)) {
            kick(req); /* ended by the kick: its on_done may change this list */
        }
    }
    if (!xf_list_is_empty(&c->active)) {
        xf_timer_in(c->loop, &c->sweep, c->sweep_ms);
    }
}

/* ---- the seam ---- */

static struct xf_http_req *back_start(void *self, const struct xf_http_call *call)
{
    struct xf_curl *c = self;
    struct xf_http_req *req;

    if (xf_list_is_empty(&c->idle)) {
        req = xf_curl_req_new(c);
    } else {
        req = XF_CONTAINER_OF(xf_list_pop_front(&c->idle), struct xf_http_req, node);
        c->n_idle--;
    }
    xf_list_push_back(&c->active, &req->node);
    c->n_active++;
    if (!xf_timer_is_started(&c->sweep)) {
        xf_timer_in(c->loop, &c->sweep, c->sweep_ms);
    }
    if (!xf_curl_req_setup(req, call)) {
        kick(req);
    } else if (c->in_curl) {
        req->want_start = true;
        kick(req);
    } else {
        add(req);
    }
    return req;
}

static void back_cancel(void *self, struct xf_http_req *req)
{
    (void)self; /* the request knows its owner */
    req->cancelled = true;
    kick(req);
}

static void back_resume(void *self, struct xf_http_req *req)
{
    (void)self; /* the request knows its owner */
    req->want_resume = true;
    kick(req);
}

static void back_free(void *self)
{
    struct xf_curl *c = self;
    struct xf_list *node;

    XF_ASSERT(c->n_active == 0);
    while ((node = xf_list_pop_front(&c->idle)) != NULL) {
        xf_curl_req_free(XF_CONTAINER_OF(node, struct xf_http_req, node));
    }
    if (c->multi != NULL) {
        XF_ASSERT(curl_multi_cleanup(c->multi) == CURLM_OK);
    }
    while ((node = xf_list_pop_front(&c->idle_watches)) != NULL) {
        xf_xfree(XF_CONTAINER_OF(node, struct sock, node));
    }
    xf_timer_stop(c->loop, &c->timer);
    xf_timer_stop(c->loop, &c->sweep);
    xf_timer_stop(c->loop, &c->kick);
    xf_xfree(c->ca_file);
    xf_xfree(c->user_agent);
    xf_xfree(c->noproxy);
    xf_names_put(c->own_names);
    xf_xfree(c);
}

static const struct xf_http_ops back_ops = {
    .start = back_start,
    .cancel = back_cancel,
    .resume = back_resume,
    .free = back_free,
};

static int64_t or_default(int64_t value, int64_t otherwise)
{
    return value > 0 ? value : otherwise;
}

static int64_t lesser(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void fill_opts(struct xf_curl *c, const struct xf_http_opts *o, struct xf_str ca_file)
{
    struct xf_http_opts *d = &c->opts;

    *d = *o;
    d->connect_ms = or_default(o->connect_ms, 10000);
    d->first_byte_ms = or_default(o->first_byte_ms, 60000);
    d->stall_window_ms = or_default(o->stall_window_ms, 60000);
    d->stall_bytes = o->stall_bytes > 0 ? o->stall_bytes : 1024;
    d->conn_idle_ms = or_default(o->conn_idle_ms, 20000);
    d->conn_age_ms = or_default(o->conn_age_ms, 300000);
    d->dns_ms = or_default(o->dns_ms, 5000);
    d->max_conns = o->max_conns > 0 ? o->max_conns : 4096;
    c->ca_file = ca_file.len > 0 ? xf_str_dup(ca_file) : NULL;
    c->user_agent = xf_str_dup(o->user_agent.len > 0 ? o->user_agent : XF_STR_LIT("xfer"));
    d->ca_file = XF_STR_EMPTY;
    d->user_agent = XF_STR_EMPTY;
    c->sweep_ms = lesser(d->first_byte_ms, d->stall_window_ms) / 8;
    c->sweep_ms = c->sweep_ms < 5 ? 5 : lesser(c->sweep_ms, 1000);
}

/* Setting the option hides the variables from libcurl. */
static void fill_noproxy(struct xf_curl *c)
{
    XF_AUTO_BUF text = {0};

    xf_route_no_proxy(&text);
    c->noproxy = xf_buf_take(&text);
}

static void set_multi(struct xf_curl *c)
{
    long max = (long)c->opts.max_conns;

    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer_wish) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_PIPELINING, (long)CURLPIPE_NOTHING) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_MAX_TOTAL_CONNECTIONS, max) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, max) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(c->multi,
                                CURLMOPT_MAX_HOST_CONNECTIONS,
                                (long)c->opts.max_conns_host) == CURLM_OK);
}

enum xf_code xf_http_curl_new(struct xf_loop *loop,
                              const struct xf_http_opts *o,
                              struct xf_http **out,
                              struct xf_err *err)
{
    static const struct xf_http_opts defaults = {0};
    struct xf_curl *c;
    struct xf_str ca_file;

    o = o != NULL ? o : &defaults;
    ca_file = o->ca_file.len > 0 ? o->ca_file : xf_str_c(xf_route_ca_file());
    if (ca_file.len > 0) {
        XF_AUTO_FREE char *path = xf_str_dup(ca_file);

        if (access(path, R_OK) != 0) {
            return XF_FAIL(err, XF_E_INVAL, "cannot read the CA file '%s'", path);
        }
    }
    XF_ASSERT(pthread_once(&global_once, global_init) == 0);
    c = xf_xcalloc(1, sizeof(*c));
    c->http.ops = &back_ops;
    c->http.self = c;
    c->loop = loop;
    c->timer = (struct xf_timer){.cb = on_timer, .arg = c};
    c->sweep = (struct xf_timer){.cb = on_sweep, .arg = c};
    c->kick = (struct xf_timer){.cb = on_kick, .arg = c};
    xf_list_init(&c->active);
    xf_list_init(&c->kicked);
    xf_list_init(&c->idle);
    xf_list_init(&c->idle_watches);
    fill_opts(c, o, ca_file);
    fill_noproxy(c);
    c->own_names = o->names == NULL ? xf_names_get() : NULL;
    c->names = o->names != NULL ? o->names : c->own_names;
    c->multi = curl_multi_init();
    XF_ASSERT(c->multi != NULL);
    set_multi(c);
    *out = &c->http;
    return XF_OK;
}

void xf_http_free(struct xf_http *http)
{
    if (http != NULL) {
        http->ops->free(http->self);
    }
}

struct xf_http_req *xf_http_start(struct xf_http *http, const struct xf_http_call *call)
{
    return http->ops->start(http->self, call);
}

void xf_http_cancel(struct xf_http *http, struct xf_http_req *req)
{
    http->ops->cancel(http->self, req);
}

void xf_http_resume(struct xf_http *http, struct xf_http_req *req)
{
    http->ops->resume(http->self, req);
}
