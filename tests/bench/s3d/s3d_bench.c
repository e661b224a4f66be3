/*
 * s3d_bench.c - requests a second of tests/s3d with one thread: PUT, GET and COPY of 1 KiB, signed,
 * and listing pages.
 *
 * The server is embedded; the client is one thread with a number of connections that each have one
 * request under way.
 */
#include "common/base/clock.h"
#include "tests/lib/test.h"
#include "tests/s3d/auth.h"
#include "tests/s3d/gen.h"
#include "tests/s3d/server.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { CONNS = 64, KEYS = 20000, MEASURE_MS = 2000, BODY = 1024 };

#define SECRET "SK"
#define HASH   "UNSIGNED-PAYLOAD"

struct client {
    int fd;
    char in[65536];
    size_t in_len;
    uint64_t want; /* bytes of the answer still to come; 0: the head is not in */
};

struct bench {
    struct s3d_server *server;
    int epoll;
    struct client client[CONNS];
    struct xf_buf req;
    uint8_t signing_key[S3D_SHA256_LEN];
    char date[XF_TIME_TEXT_MAX];
    char host[64];
    uint64_t n; /* requests begun */
    char body[BODY];
};

static void derive(struct bench *b)
{
    uint8_t k[S3D_SHA256_LEN];
    struct xf_str key = {(const char *)k, sizeof(k)};

    s3d_hmac_sha256(XF_STR_LIT("AWS4" SECRET), xf_str_n(b->date, 8), k);
    s3d_hmac_sha256(key, XF_STR_LIT("us-east-1"), k);
    s3d_hmac_sha256(key, XF_STR_LIT("s3"), k);
    s3d_hmac_sha256(key, XF_STR_LIT("aws4_request"), b->signing_key);
}

/* Canonical request, signature, request text. `extra` is one more x-amz header or NULL. */
static void make_request(struct bench *b,
                         const char *method,
                         const char *path,
                         const char *query,
                         const char *extra,
                         const char *value)
{
    uint8_t d[S3D_SHA256_LEN];
    const char *names = extra == NULL ? "host;x-amz-content-sha256;x-amz-date"
                                      : "host;x-amz-content-sha256;x-amz-copy-source;x-amz-date";
    struct xf_buf c = {0};

    xf_buf_putf(
        &c, "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:" HASH "\n", method, path, query, b->host);
    if (extra != NULL) {
        xf_buf_putf(&c, "%s:%s\n", extra, value);
    }
    xf_buf_putf(&c, "x-amz-date:%s\n\n%s\n" HASH, b->date, names);
    s3d_sha256(c.ptr, c.len, d);
    xf_buf_reset(&c);
    xf_buf_putf(&c, "AWS4-HMAC-SHA256\n%s\n%.8s/us-east-1/s3/aws4_request\n", b->date, b->date);
    xf_buf_put_hex(&c, d, sizeof(d));
    s3d_hmac_sha256(xf_str_n(b->signing_key, sizeof(b->signing_key)), xf_buf_view(&c), d);
    bool put = extra == NULL && strcmp(method, "PUT") == 0;
    xf_buf_reset(&b->req);
    xf_buf_putf(&b->req,
                "%s %s%s%s HTTP/1.1\r\nHost: %s\r\n",
                method,
                path,
                query[0] != '\0' ? "?" : "",
                query,
                b->host);
    xf_buf_putf(&b->req, "x-amz-date: %s\r\nx-amz-content-sha256: " HASH "\r\n", b->date);
    if (extra != NULL) {
        xf_buf_putf(&b->req, "%s: %s\r\n", extra, value);
    }
    if (strcmp(method, "PUT") == 0) {
        xf_buf_putf(&b->req, "Content-Length: %d\r\n", put ? BODY : 0);
    }
    xf_buf_putf(&b->req,
                "Authorization: AWS4-HMAC-SHA256 Credential=AK/%.8s/us-east-1/s3/aws4_request, ",
                b->date);
    xf_buf_putf(&b->req, "SignedHeaders=%s, Signature=", names);
    xf_buf_put_hex(&b->req, d, sizeof(d));
    xf_buf_put_c(&b->req, "\r\n\r\n");
    if (put) {
        xf_buf_put_mem(&b->req, b->body, BODY);
    }
    xf_buf_fini(&c);
}

static void make_put(struct bench *b)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/dst/put-%012llu", (unsigned long long)(b->n % KEYS));
    memcpy(b->body, &b->n, sizeof(b->n)); /* not one of the server's own streams */
    make_request(b, "PUT", path, "", NULL, NULL);
}

static void make_get(struct bench *b)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "/src/obj-%012llu", (unsigned long long)(b->n % KEYS));
    make_request(b, "GET", path, "", NULL, NULL);
}

static void make_copy(struct bench *b)
{
    char path[64];
    char source[64];

    (void)snprintf(path, sizeof(path), "/dst/copy-%012llu", (unsigned long long)(b->n % KEYS));
    (void)snprintf(source, sizeof(source), "/src/obj-%012llu", (unsigned long long)(b->n % KEYS));
    make_request(b, "PUT", path, "", "x-amz-copy-source", source);
}

static void make_list(struct bench *b)
{
    char query[96];

    (void)snprintf(query,
                   sizeof(query),
                   "encoding-type=url&list-type=2&start-after=obj-%012llu",
                   (unsigned long long)(b->n * 997 % (KEYS - 1000)));
    make_request(b, "GET", "/src", query, NULL, NULL);
}

static void begin(struct bench *b, struct client *c, void (*make)(struct bench *))
{
    make(b);
    b->n++;
    c->in_len = 0;
    c->want = 0;
    assert_int_equal(send(c->fd, b->req.ptr, b->req.len, MSG_NOSIGNAL), (int)b->req.len);
}

/* True when the whole answer is in. */
static bool take(struct client *c)
{
    ssize_t n = recv(c->fd, c->in + c->in_len, sizeof(c->in) - 1 - c->in_len, MSG_DONTWAIT);

    if (n <= 0) {
        assert_true(n < 0);
        return false;
    }
    if (c->want > 0) {
        c->want -= (uint64_t)n;
        return c->want == 0;
    }
    c->in_len += (size_t)n;
    c->in[c->in_len] = '\0';
    const char *end = strstr(c->in, "\r\n\r\n");
    if (end == NULL) {
        return false;
    }
    assert_memory_equal(c->in, "HTTP/1.1 200", 12);
    const char *length = strstr(c->in, "Content-Length: ");
    uint64_t body = 0;
    for (length += 16; *length >= '0' && *length <= '9'; length++) {
        body = body * 10 + (uint64_t)(*length - '0');
    }
    size_t have = c->in_len - (size_t)(end + 4 - c->in);
    c->want = body - have;
    c->in_len = 0;
    return c->want == 0;
}

static double measure(struct bench *b, const char *what, void (*make)(struct bench *))
{
    struct epoll_event ev[CONNS];
    uint64_t done = 0;

    for (int i = 0; i < CONNS; i++) {
        begin(b, &b->client[i], make);
    }
    int64_t start = xf_clock_mono_ns();
    int64_t end = start + (int64_t)MEASURE_MS * 1000000;
    int open = CONNS;
    while (open > 0) {
        int n = epoll_wait(b->epoll, ev, CONNS, 10000);
        assert_true(n > 0);
        bool more = xf_clock_mono_ns() < end;
        for (int i = 0; i < n; i++) {
            struct client *c = ev[i].data.ptr;
            if (!take(c)) {
                continue;
            }
            done++;
            if (more) {
                begin(b, c, make);
            } else {
                open--;
            }
        }
    }
    double s = (double)(xf_clock_mono_ns() - start) / 1e9;
    (void)printf("s3d %-16s %9.0f requests/s\n", what, (double)done / s);
    (void)fflush(stdout);
    return (double)done / s;
}

static void open_clients(struct bench *b)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(b->server->port)};

    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &a.sin_addr), 1);
    b->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (int i = 0; i < CONNS; i++) {
        struct epoll_event ev = {.events = EPOLLIN, .data.ptr = &b->client[i]};
        b->client[i].fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        assert_int_equal(connect(b->client[i].fd, (struct sockaddr *)&a, sizeof(a)), 0);
        assert_int_equal(epoll_ctl(b->epoll, EPOLL_CTL_ADD, b->client[i].fd, &ev), 0);
    }
}

static void one_thread_serves_fast(void **state)
{
    struct s3d_opts o;
    struct xf_err err;
    static struct bench b;

    (void)state;
    s3d_opts_init(&o);
    o.threads = 1;
    o.keys[o.n_keys++] = "AK:" SECRET;
    o.synths[o.n_synths++] = "src:20000:1KiB:flat";
    o.buckets[o.n_buckets++] = "dst";
    assert_int_equal(s3d_server_new(&o, &b.server, &err), XF_OK);
    xf_time_amz(xf_clock_wall_ms(xf_clock_real()), b.date);
    (void)snprintf(b.host, sizeof(b.host), "%s", b.server->address);
    derive(&b);
    open_clients(&b);
    /* the client shares the machine: a bound for disasters only, the figures are compared by hand
     */
    assert_true(measure(&b, "GET 1 KiB", make_get) > 1000);
    assert_true(measure(&b, "PUT 1 KiB", make_put) > 1000);
    assert_true(measure(&b, "COPY 1 KiB", make_copy) > 1000);
    assert_true(measure(&b, "LIST 1000 keys", make_list) > 50);
    for (int i = 0; i < CONNS; i++) {
        (void)close(b.client[i].fd);
    }
    (void)close(b.epoll);
    xf_buf_fini(&b.req);
    s3d_server_free(b.server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_thread_serves_fast)};

    return xf_test_run("s3d_bench", tests, NULL, NULL);
}
