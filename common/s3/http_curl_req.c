/*
 * http_curl_req.c - one request on libcurl: options, callbacks, stall detection, outcome.
 */
#include "common/s3/http_curl.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <strings.h>
#include <sys/socket.h>

#define BULK_BUFFER  (128L * 1024L)
#define PLAIN_BUFFER (16L * 1024L)

/* A peer that acknowledges nothing is given up this much after the stall window, also where an
 * answer may take long: a stall is told better by its own name. */
enum { UNHEARD_MORE_MS = 2000 };

enum { ELSEWHERE_MAX = 4 }; /* further addresses that a request tries, one after the other */

enum { WANT_AGAIN_MS = 1000 }; /* between two looks at how old a name's addresses are */

/* ---- head ---- */

/* A line of the head has come; keep it with a NUL in place of the line end. */
static bool keep_line(struct xf_http_req *req, struct xf_str line)
{
    if (req->n_lines == XF_HTTP_HEADERS_MAX) {
        (void)XF_FAIL(
            &req->err, XF_E_XML, "answer has more than %d header lines", XF_HTTP_HEADERS_MAX);
        return false;
    }
    if (req->n_lines == req->cap_headers) {
        req->cap_headers = req->cap_headers == 0 ? 16 : req->cap_headers * 2;
        req->headers = xf_xrealloc(req->headers, req->cap_headers, sizeof(req->headers[0]));
    }
    req->headers[req->n_lines++].value.len = req->head.len;
    xf_buf_put(&req->head, line);
    xf_buf_put_byte(&req->head, '\0');
    if (req->head.full) {
        (void)XF_FAIL(
            &req->err, XF_E_XML, "answer's head is larger than %u bytes", XF_HTTP_HEAD_MAX_BYTES);
        return false;
    }
    return true;
}

/* "HTTP/1.1 200 OK" */
static int parse_status(struct xf_str line)
{
    size_t space = xf_str_find(line, ' ', 0);
    struct xf_str rest = xf_str_sub(line, space == SIZE_MAX ? line.len : space + 1, line.len);
    int status = 0;

    if (rest.len < 3) {
        return 0;
    }
    for (size_t i = 0; i < 3; i++) {
        if (rest.ptr[i] < '0' || rest.ptr[i] > '9') {
            return 0;
        }
        status = status * 10 + (rest.ptr[i] - '0');
    }
    return status;
}

static void parse_header(struct xf_http_req *req, size_t i)
{
    char *text = req->head.ptr + req->headers[i].value.len;
    struct xf_str line = xf_str_c(text);
    size_t colon = xf_str_find(line, ':', 0);
    struct xf_http_header *h = &req->headers[i];

    if (colon == SIZE_MAX) {
        colon = line.len;
    }
    for (size_t k = 0; k < colon; k++) {
        if (text[k] >= 'A' && text[k] <= 'Z') {
            text[k] = (char)(text[k] - 'A' + 'a');
        }
    }
    h->name = xf_str_sub(line, 0, colon);
    h->value = xf_str_trim(xf_str_sub(line, colon + 1, line.len));
}

/* The head is whole: hand it over. */
static bool end_head(struct xf_http_req *req)
{
    struct xf_str value;

    req->head_done = true;
    for (size_t i = 0; i < req->n_lines; i++) {
        parse_header(req, i);
    }
    req->parsed.headers = req->headers;
    req->parsed.n_headers = req->n_lines;
    req->parsed.content_length = XF_HTTP_SIZE_UNKNOWN;
    if (xf_http_head_get(&req->parsed, "content-length", &value) &&
        !xf_str_u64(value, &req->parsed.content_length)) {
        (void)XF_FAIL(&req->err, XF_E_XML, "answer's Content-Length is not a number");
        return false;
    }
    if ((xf_http_head_get(&req->parsed, "connection", &value) ||
         xf_http_head_get(&req->parsed, "proxy-connection", &value)) &&
        xf_str_eq_nocase(value, XF_STR_LIT("close"))) {
        req->says_close = true;
    }
    if (req->cancelled) {
        return false;
    }
    switch (req->call.on_head != NULL ? req->call.on_head(req->call.arg, &req->parsed)
                                      : XF_HTTP_GO) {
    case XF_HTTP_GO: return true;
    case XF_HTTP_PAUSE: req->pause_data = true; return true;
    case XF_HTTP_STOP: req->stopped = true; return false;
    }
    return false;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl chose the signature */
static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    struct xf_http_req *req = arg;
    size_t len = size * n;
    struct xf_str line = xf_str_trim((struct xf_str){data, len});

    if (req->head_done) {
        return len; /* trailers say nothing we need */
    }
    if (xf_str_starts(line, XF_STR_LIT("HTTP/"))) {
        xf_buf_reset(&req->head);
        req->n_lines = 0;
        req->parsed.status = parse_status(line);
        req->says_close = xf_str_starts(line, XF_STR_LIT("HTTP/1.0"));
        return len;
    }
    if (line.len > 0) {
        return keep_line(req, line) ? len : 0;
    }
    if (req->parsed.status < 200) {
        return len; /* 100 Continue: the real head follows */
    }
    return end_head(req) ? len : 0;
}

/* ---- bodies ---- */

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct xf_http_req *req = arg;
    size_t len = size * n;
    enum xf_http_flow flow = XF_HTTP_GO;

    if (req->cancelled) {
        return 0;
    }
    if (req->pause_data) {
        req->pause_data = false;
        flow = XF_HTTP_PAUSE;
    } else if (req->call.on_data != NULL) {
        flow = req->call.on_data(req->call.arg, data, len);
    }
    switch (flow) {
    case XF_HTTP_GO: req->bytes_in += len; return len;
    case XF_HTTP_PAUSE: req->recv_paused = true; return CURL_WRITEFUNC_PAUSE;
    case XF_HTTP_STOP: break;
    }
    req->stopped = true;
    return 0;
}

static size_t pull(struct xf_http_req *req, char *buf, size_t cap)
{
    size_t n = 0;

    switch (req->call.pull(req->call.arg, buf, cap, &n)) {
    case XF_HTTP_GO:
        if (n > 0 && n <= cap) {
            req->bytes_out += n;
            return n;
        }
        (void)XF_FAIL(&req->err,
                      XF_E_TRUNCATED,
                      "request body ended after %llu of %llu bytes",
                      (unsigned long long)req->bytes_out,
                      (unsigned long long)req->call.body_size);
        return CURL_READFUNC_ABORT;
    case XF_HTTP_PAUSE: req->send_paused = true; return CURL_READFUNC_PAUSE;
    case XF_HTTP_STOP: break;
    }
    req->stopped = true;
    return CURL_READFUNC_ABORT;
}

static size_t on_read(char *buf, size_t size, size_t n, void *arg)
{
    struct xf_http_req *req = arg;
    size_t cap = size * n;
    uint64_t left = req->call.body_size - req->bytes_out;

    if (req->cancelled) {
        return CURL_READFUNC_ABORT;
    }
    cap = left < cap ? (size_t)left : cap;
    if (cap == 0) {
        return 0;
    }
    if (req->call.pull != NULL) {
        return pull(req, buf, cap);
    }
    memcpy(buf, req->call.body + req->bytes_out, cap);
    req->bytes_out += cap;
    return cap;
}

/* libcurl sends the body again after a kept connection turned out to be closed. */
static int on_seek(void *arg, curl_off_t offset, int origin)
{
    struct xf_http_req *req = arg;

    if (origin != SEEK_SET || offset != 0 || (req->call.pull != NULL && req->bytes_out > 0)) {
        return CURL_SEEKFUNC_CANTSEEK;
    }
    req->bytes_out = 0;
    return CURL_SEEKFUNC_OK;
}

/* The name in a URL; empty for an address. */
static struct xf_str name_of(const char *url)
{
    const char *from = strstr(url, "://");
    size_t len;
    bool is_name = false;

    if (from == NULL || from[3] == '[') {
        return XF_STR_EMPTY;
    }
    from += 3;
    len = strcspn(from, ":/?");
    for (size_t i = 0; i < len; i++) {
        is_name = is_name || (from[i] != '.' && (from[i] < '0' || from[i] > '9'));
    }
    return is_name && len <= XF_URI_HOST_MAX ? xf_str_n(from, len) : XF_STR_EMPTY;
}

/* So that it is looked up when connections are opened. */
static void want_name(struct xf_curl *c, const char *url)
{
    struct xf_str name = name_of(url);
    int64_t now_ms = xf_loop_mono_ms(c->loop);

    if (name.len == 0 || (xf_str_eq_c(name, c->wanted) && now_ms < c->want_again_ms)) {
        return;
    }
    memcpy(c->wanted, name.ptr, name.len);
    c->wanted[name.len] = '\0';
    c->want_again_ms = now_ms + WANT_AGAIN_MS;
    xf_names_want(c->names, name);
}

/* Which address this connection goes to. One that libcurl opens because the request's first did not
 * come about tells of that; of further ones it tells nothing: libcurl 7.88 gives them up at once
 * when the first ran out of time. */
static void choose_address(struct xf_http_req *req, struct curl_sockaddr *address)
{
    struct xf_names *names = req->owner->names;
    struct xf_names_addr at = {.len = address->addrlen};
    const char *url = NULL;

    if ((address->family != AF_INET && address->family != AF_INET6) || at.len > sizeof(at.u) ||
        curl_easy_getinfo(req->easy, CURLINFO_EFFECTIVE_URL, &url) != CURLE_OK || url == NULL) {
        return;
    }
    memcpy(&at.u, &address->addr, at.len);
    if (req->tried.len > 0 && req->tried.u.any.sa_family == at.u.any.sa_family) {
        (void)xf_names_bad(names, &req->tried); /* libcurl goes on anyway */
    }
    xf_names_turn(names, name_of(url), &at);
    memcpy(&address->addr, &at.u, at.len); /* libcurl's has room for any family */
    if (req->tried.len == 0) {
        req->tried = at;
    }
}

/* Our own, to choose the address, and to learn why there is none: without descriptors it is this
 * host that is unwell, not the endpoint. */
static curl_socket_t on_open(void *arg, curlsocktype purpose, struct curl_sockaddr *address)
{
    struct xf_http_req *req = arg;

    choose_address(req, address);
    int fd = socket(address->family, address->socktype | SOCK_CLOEXEC, address->protocol);
    unsigned unheard_ms = (unsigned)(req->owner->opts.stall_window_ms + UNHEARD_MORE_MS);

    (void)purpose; /* there is one: a connection */
    if (fd < 0) {
        req->os_errno = errno;
        return CURL_SOCKET_BAD;
    }
    if (address->family != AF_UNIX) {
        /* Without it the kernel sends again to a peer that has vanished for a quarter of an hour.
         */
        (void)setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &unheard_ms, sizeof(unheard_ms));
    }
    return fd;
}

/* ---- options ---- */

struct setter {
    struct xf_http_req *req;
    CURLcode code;
};

static void set_long(struct setter *s, CURLoption option, long value)
{
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(s->req->easy, option, value);
    }
}

/* libcurl refuses a size while the handle has its buffers, as after a host that was not found; then
 * it goes on with those. */
static void set_hint(struct setter *s, CURLoption option, long value)
{
    CURLcode code = curl_easy_setopt(s->req->easy, option, value);

    if (s->code == CURLE_OK && code != CURLE_BAD_FUNCTION_ARGUMENT) {
        s->code = code;
    }
}

static void set_ptr(struct setter *s, CURLoption option, const void *value)
{
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(s->req->easy, option, value);
    }
}

/* Options that stay for all requests of a handle. */
static void set_lasting(struct setter *s)
{
    struct xf_http_req *req = s->req;
    const struct xf_http_opts *o = &req->owner->opts;

    set_ptr(s, CURLOPT_PRIVATE, req);
    set_ptr(s, CURLOPT_ERRORBUFFER, req->text);
    set_ptr(s, CURLOPT_HEADERDATA, req);
    set_ptr(s, CURLOPT_WRITEDATA, req);
    set_ptr(s, CURLOPT_READDATA, req);
    set_ptr(s, CURLOPT_SEEKDATA, req);
    set_ptr(s, CURLOPT_OPENSOCKETDATA, req);
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(req->easy, CURLOPT_OPENSOCKETFUNCTION, on_open);
    }
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(req->easy, CURLOPT_HEADERFUNCTION, on_header);
    }
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(req->easy, CURLOPT_WRITEFUNCTION, on_body);
    }
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(req->easy, CURLOPT_READFUNCTION, on_read);
    }
    if (s->code == CURLE_OK) {
        s->code = curl_easy_setopt(req->easy, CURLOPT_SEEKFUNCTION, on_seek);
    }
    set_ptr(s, CURLOPT_PROTOCOLS_STR, "http,https");
    set_ptr(s, CURLOPT_USERAGENT, req->owner->user_agent);
    set_long(s, CURLOPT_PATH_AS_IS, 1L);
    set_long(s, CURLOPT_FOLLOWLOCATION, 0L);
    set_long(s, CURLOPT_HTTP_CONTENT_DECODING, 0L);
    set_long(s, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
    set_long(s, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
    set_long(s, CURLOPT_NOSIGNAL, 1L);
    set_long(s, CURLOPT_NETRC, (long)CURL_NETRC_IGNORED);
    set_long(s, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
    set_long(s, CURLOPT_DNS_SHUFFLE_ADDRESSES, 1L);
    set_long(s, CURLOPT_TCP_KEEPALIVE, 1L);
    set_long(s, CURLOPT_TCP_KEEPIDLE, 30L);
    set_long(s, CURLOPT_TCP_KEEPINTVL, 10L);
    set_long(s, CURLOPT_CONNECTTIMEOUT_MS, (long)o->connect_ms);
    set_long(s, CURLOPT_DNS_CACHE_TIMEOUT, (long)((o->dns_ms + 999) / 1000));
    set_long(s, CURLOPT_MAXAGE_CONN, (long)((o->conn_idle_ms + 999) / 1000));
    set_long(s, CURLOPT_MAXLIFETIME_CONN, (long)((o->conn_age_ms + 999) / 1000));
    if (req->owner->ca_file != NULL) {
        set_ptr(s, CURLOPT_CAINFO, req->owner->ca_file);
    }
    if (o->no_proxy) {
        set_ptr(s, CURLOPT_PROXY, "");
    } else {
        set_ptr(s, CURLOPT_NOPROXY, req->owner->noproxy);
    }
}

struct xf_http_req *xf_curl_req_new(struct xf_curl *owner)
{
    struct xf_http_req *req = xf_xcalloc(1, sizeof(*req));
    struct setter s = {.req = req, .code = CURLE_OK};

    req->owner = owner;
    req->easy = curl_easy_init();
    XF_ASSERT(req->easy != NULL);
    xf_buf_init(&req->head, XF_HTTP_HEAD_MAX_BYTES);
    xf_list_init(&req->node);
    xf_list_init(&req->kick_node);
    XF_ASSERT(curl_easy_getinfo(req->easy, CURLINFO_CAINFO, &req->ca_default) == CURLE_OK);
    set_lasting(&s);
    XF_ASSERT(s.code == CURLE_OK); /* none depends on what a request says */
    return req;
}

void xf_curl_req_free(struct xf_http_req *req)
{
    curl_easy_cleanup(req->easy);
    xf_buf_fini(&req->head);
    xf_xfree(req->lines);
    xf_xfree(req->headers);
    xf_xfree(req);
}

/* libcurl borrows the list: our own nodes, no copies. */
static void link_lines(struct xf_http_req *req)
{
    static const char *const own[] = {"Expect:", "Accept:"};
    const struct xf_http_call *call = &req->call;
    size_t n = 0;

    if (req->cap_lines < call->n_lines + XF_ARRAY_LEN(own)) {
        req->cap_lines = call->n_lines + XF_ARRAY_LEN(own) + 8;
        req->lines = xf_xrealloc(req->lines, req->cap_lines, sizeof(req->lines[0]));
    }
    for (size_t i = 0; i < call->n_lines; i++) {
        req->lines[n++].data = (char *)(uintptr_t)call->lines[i]; /* libcurl only reads it */
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(own); i++) {
        bool given = false;

        for (size_t k = 0; k < call->n_lines; k++) {
            given = given || strncasecmp(call->lines[k], own[i], strlen(own[i])) == 0;
        }
        if (!given) {
            req->lines[n++].data = (char *)(uintptr_t)own[i];
        }
    }
    for (size_t i = 0; i < n; i++) {
        req->lines[i].next = i + 1 < n ? &req->lines[i + 1] : NULL;
    }
}

static void set_ca(struct setter *s)
{
    struct xf_http_req *req = s->req;
    const struct xf_curl *c = req->owner;

    if (req->call.ca_file != NULL) {
        set_ptr(s, CURLOPT_CAINFO, req->call.ca_file);
    } else if (req->has_own_ca) { /* an earlier request's */
        set_ptr(s, CURLOPT_CAINFO, c->ca_file != NULL ? c->ca_file : req->ca_default);
    }
    req->has_own_ca = req->call.ca_file != NULL;
}

static void set_method(struct setter *s)
{
    const struct xf_http_call *call = &s->req->call;
    bool has_body = call->body_size > 0 || strcmp(call->method, "PUT") == 0 ||
                    strcmp(call->method, "POST") == 0;

    set_long(s, CURLOPT_HTTPGET, 1L); /* takes off what an earlier request set */
    set_ptr(s, CURLOPT_CUSTOMREQUEST, NULL);
    if (strcmp(call->method, "HEAD") == 0) {
        set_long(s, CURLOPT_NOBODY, 1L);
    } else if (has_body) {
        set_long(s, CURLOPT_UPLOAD, 1L);
        if (s->code == CURLE_OK) {
            s->code = curl_easy_setopt(
                s->req->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)call->body_size);
        }
        set_ptr(s, CURLOPT_CUSTOMREQUEST, call->method);
    } else if (strcmp(call->method, "GET") != 0) {
        set_ptr(s, CURLOPT_CUSTOMREQUEST, call->method);
    }
}

bool xf_curl_req_setup(struct xf_http_req *req, const struct xf_http_call *call)
{
    struct setter s = {.req = req, .code = CURLE_OK};
    long buffer = call->is_bulk ? BULK_BUFFER : PLAIN_BUFFER;

    req->call = *call;
    req->in_multi = false;
    req->want_start = false;
    req->want_resume = false;
    req->cancelled = false;
    req->stopped = false;
    req->os_errno = 0;
    req->tried.len = 0;
    req->n_elsewhere = 0;
    want_name(req->owner, call->url);
    xf_buf_reset(&req->head);
    req->n_lines = 0;
    req->parsed = (struct xf_http_head){.content_length = XF_HTTP_SIZE_UNKNOWN};
    req->head_done = false;
    req->says_close = false;
    req->pause_data = false;
    req->recv_paused = false;
    req->send_paused = false;
    req->bytes_out = 0;
    req->bytes_in = 0;
    req->window_bytes = 0;
    req->window_at_ms = xf_loop_mono_ms(req->owner->loop);
    req->is_waiting = false;
    xf_err_clear(&req->err);
    req->text[0] = '\0';
    link_lines(req);
    set_ptr(&s, CURLOPT_URL, call->url);
    set_ptr(&s, CURLOPT_HTTPHEADER, req->lines);
    set_hint(&s, CURLOPT_BUFFERSIZE, buffer);
    set_hint(&s, CURLOPT_UPLOAD_BUFFERSIZE, buffer);
    set_long(&s, CURLOPT_FRESH_CONNECT, call->is_once ? 1L : 0L);
    set_method(&s);
    set_ca(&s);
    req->call.url = NULL; /* libcurl has its copy */
    if (s.code != CURLE_OK) {
        (void)XF_FAIL_SUB(&req->err,
                          XF_E_INVAL,
                          (int)s.code,
                          "cannot prepare the request: %s",
                          curl_easy_strerror(s.code));
        return false;
    }
    return true;
}

/* ---- outcome ---- */

/* No socket for want of descriptors, memory or ports. */
static bool is_local(const struct xf_http_req *req)
{
    long os_errno = req->os_errno;

    if (os_errno == 0 && curl_easy_getinfo(req->easy, CURLINFO_OS_ERRNO, &os_errno) != CURLE_OK) {
        return false;
    }
    return os_errno == EMFILE || os_errno == ENFILE || os_errno == ENOBUFS || os_errno == ENOMEM ||
           os_errno == EADDRNOTAVAIL;
}

/* What a proxy answered instead of letting us through; XF_OK: it did, or there is none. */
static enum xf_code proxy_code(const struct xf_http_req *req)
{
    long status = 0;

    if (curl_easy_getinfo(req->easy, CURLINFO_HTTP_CONNECTCODE, &status) != CURLE_OK ||
        status < 400) {
        return XF_OK;
    }
    return status >= 500 ? XF_E_UNREACHABLE : XF_E_PROXY; /* a gateway's: nobody behind it */
}

static enum xf_code code_of(const struct xf_http_req *req, CURLcode code)
{
    if (proxy_code(req) != XF_OK) {
        return proxy_code(req);
    }
    /* clang-format off */
    switch ((int)code) {
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
        return XF_E_DNS;
    case CURLE_COULDNT_CONNECT:
        return is_local(req) ? XF_E_IO : XF_E_UNREACHABLE;
    case CURLE_OPERATION_TIMEDOUT: /* only connecting has a time-out of libcurl's */
        return req->head_done ? XF_E_TIMEOUT : XF_E_UNREACHABLE;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_ISSUER_ERROR:
        return XF_E_TLS;
    case CURLE_PARTIAL_FILE:
        return XF_E_TRUNCATED;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_UNSUPPORTED_PROTOCOL:
        return XF_E_XML;
    case CURLE_URL_MALFORMAT:
        return XF_E_INVAL;
    case CURLE_OUT_OF_MEMORY:
        return XF_E_IO;
    default:
        return XF_E_NET;
    }
    /* clang-format on */
}

/* A whole body came, but libcurl closed the connection although nobody asked for it: bytes beyond
 * the announced length were in the way. */
static bool has_excess(const struct xf_http_req *req)
{
    curl_socket_t fd = CURL_SOCKET_BAD;

    return !req->says_close && req->parsed.content_length != XF_HTTP_SIZE_UNKNOWN &&
           req->bytes_in == req->parsed.content_length && req->bytes_in > 0 &&
           req->bytes_out == req->call.body_size &&
           curl_easy_getinfo(req->easy, CURLINFO_ACTIVESOCKET, &fd) == CURLE_OK &&
           fd == CURL_SOCKET_BAD;
}

static void set_failure(struct xf_http_req *req, CURLcode code, struct xf_http_done *done)
{
    const char *text = req->text[0] != '\0' ? req->text : curl_easy_strerror(code);

    if (req->err.code == XF_OK && (req->stopped || req->cancelled)) {
        (void)XF_FAIL(&req->err, XF_E_CANCELLED, "request cancelled");
    } else if (req->err.code == XF_OK && code_of(req, code) == XF_E_TRUNCATED) {
        (void)XF_FAIL_SUB(&req->err,
                          XF_E_TRUNCATED,
                          (int)code,
                          "got %llu of %llu bytes",
                          (unsigned long long)req->bytes_in,
                          (unsigned long long)req->parsed.content_length);
    } else if (req->err.code == XF_OK && code_of(req, code) == XF_E_TLS) {
        const char *ca = req->call.ca_file != NULL ? req->call.ca_file : req->owner->ca_file;
        (void)XF_FAIL_SUB(&req->err,
                          XF_E_TLS,
                          (int)code,
                          "%s; trusted are the system's CAs%s%s",
                          text,
                          ca != NULL ? " and " : "",
                          ca != NULL ? ca : "");
    } else if (req->err.code == XF_OK) {
        text = req->os_errno != 0 ? xf_errno_text(req->os_errno) : text;
        (void)XF_FAIL_SUB(&req->err, code_of(req, code), (int)code, "%s", text);
    }
    done->err = req->err;
}

static int64_t info_us(CURL *easy, CURLINFO info)
{
    curl_off_t us = 0;

    return curl_easy_getinfo(easy, info, &us) == CURLE_OK ? (int64_t)us : 0;
}

static void set_peer(CURL *easy, struct xf_http_done *done)
{
    XF_AUTO_BUF text = {.max = sizeof(done->peer) - 1};
    const char *ip = NULL;
    long port = 0;

    if (curl_easy_getinfo(easy, CURLINFO_PRIMARY_IP, &ip) == CURLE_OK && ip != NULL &&
        ip[0] != '\0' && curl_easy_getinfo(easy, CURLINFO_PRIMARY_PORT, &port) == CURLE_OK) {
        xf_buf_putf(&text, "%s:%ld", ip, port);
        memcpy(done->peer, text.ptr, text.len + 1);
    }
}

static void open_window(struct xf_http_req *req, int64_t now_ms)
{
    req->window_at_ms = now_ms;
    req->window_bytes = req->bytes_in + req->bytes_out;
}

bool xf_curl_req_goes_elsewhere(struct xf_http_req *req, CURLcode code)
{
    long sent = 0;

    if (code == CURLE_OK || req->err.code != XF_OK || req->cancelled || req->tried.len == 0 ||
        code_of(req, code) != XF_E_UNREACHABLE ||
        curl_easy_getinfo(req->easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK || sent > 0 ||
        !xf_names_bad(req->owner->names, &req->tried) || req->n_elsewhere == ELSEWHERE_MAX) {
        return false;
    }
    req->n_elsewhere++;
    req->tried.len = 0;
    req->text[0] = '\0';
    open_window(req, xf_loop_mono_ms(req->owner->loop));
    return true;
}

void xf_curl_req_outcome(struct xf_http_req *req, CURLcode code, struct xf_http_done *done)
{
    long new_connections = 0;
    long sent = 0;

    *done = (struct xf_http_done){
        .status = req->head_done ? req->parsed.status : 0,
        .bytes_out = req->bytes_out,
        .bytes_in = req->bytes_in,
    };
    if (req->in_multi) {
        done->timing.first_byte_us = info_us(req->easy, CURLINFO_STARTTRANSFER_TIME_T);
        done->timing.total_us = info_us(req->easy, CURLINFO_TOTAL_TIME_T);
        if (curl_easy_getinfo(req->easy, CURLINFO_NUM_CONNECTS, &new_connections) == CURLE_OK &&
            new_connections > 0) {
            done->timing.connect_us = info_us(req->easy, CURLINFO_PRETRANSFER_TIME_T);
        }
        done->sent =
            curl_easy_getinfo(req->easy, CURLINFO_REQUEST_SIZE, &sent) != CURLE_OK || sent > 0;
    }
    if (code == CURLE_OK && req->err.code == XF_OK && !req->cancelled) {
        if (!has_excess(req)) {
            return;
        }
        (void)XF_FAIL(&req->err,
                      XF_E_TRUNCATED,
                      "got more than the announced %llu bytes",
                      (unsigned long long)req->parsed.content_length);
    }
    set_failure(req, code, done);
    if (req->tried.len > 0 && (done->err.code == XF_E_UNREACHABLE ||
                               done->err.code == XF_E_TIMEOUT || done->err.code == XF_E_STALLED)) {
        xf_names_bad(req->owner->names, &req->tried);
    }
    set_peer(req->easy, done);
}

/* ---- stalls ---- */

/* Has the whole request gone out? Known only once the connection stands. */
static bool is_sent(struct xf_http_req *req)
{
    return info_us(req->easy, CURLINFO_PRETRANSFER_TIME_T) > 0 &&
           req->bytes_out == req->call.body_size;
}

bool xf_curl_req_is_stalled(struct xf_http_req *req, int64_t now_ms)
{
    const struct xf_http_opts *o = &req->owner->opts;
    int64_t patience = req->call.patience_ms;
    uint64_t moved = req->bytes_in + req->bytes_out - req->window_bytes;
    int64_t limit_ms = o->stall_window_ms;
    uint64_t limit_bytes = o->stall_bytes;

    if (!req->in_multi || req->recv_paused || req->send_paused ||
        info_us(req->easy, CURLINFO_PRETRANSFER_TIME_T) == 0) {
        open_window(req, now_ms); /* waits for its owner or for a connection */
        return false;
    }
    if (!req->head_done && is_sent(req)) {
        if (!req->is_waiting) {
            req->is_waiting = true;
            open_window(req, now_ms);
            return false;
        }
        limit_ms = patience > 0 ? patience : o->first_byte_ms;
        limit_bytes = 1;
    } else if (req->head_done && patience > 0) {
        limit_ms = patience > limit_ms ? patience : limit_ms;
        limit_bytes = 1;
    }
    if (req->head_done && req->is_waiting) {
        req->is_waiting = false;
        open_window(req, now_ms);
        return false;
    }
    if (limit_bytes == 1 && moved > 0) {
        open_window(req, now_ms);
        return false;
    }
    if (now_ms - req->window_at_ms < limit_ms) {
        return false;
    }
    if (moved >= limit_bytes) {
        open_window(req, now_ms);
        return false;
    }
    if (req->is_waiting) {
        (void)XF_FAIL(&req->err, XF_E_TIMEOUT, "no answer for %lld ms", (long long)limit_ms);
    } else {
        (void)XF_FAIL(&req->err,
                      XF_E_STALLED,
                      "stalled at byte %llu after %lld ms",
                      (unsigned long long)(req->bytes_in + req->bytes_out),
                      (long long)limit_ms);
    }
    return true;
}
