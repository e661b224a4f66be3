/* server.c - the server as a whole: start, listeners, threads, stop. */
#include "tests/s3d/server.h"

#include "common/base/clock.h"
#include "tests/s3d/admin.h"
#include "tests/s3d/conn.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

struct s3d_threads {
    size_t n;
    struct s3d_thread *thread[S3D_THREADS_MAX];
};

void s3d_opts_init(struct s3d_opts *o)
{
    memset(o, 0, sizeof(*o));
    o->listen = "127.0.0.1:0";
    o->threads = 2;
    o->ready_fd = -1;
    o->seed = 1;
    o->true_etag_max = (uint64_t)1 << 30;
    o->max_object = S3D_PARTS_MAX * S3D_SINGLE_MAX;
}

void s3d_server_url(const struct s3d_server *s, char *out, size_t cap)
{
    (void)snprintf(out, cap, "http://%s", s->address);
}

static void on_accept(struct xf_watch *w, unsigned events)
{
    struct s3d_thread *t = w->arg;

    (void)events; /* only readiness is watched */
    for (int i = 0; i < 64; i++) {
        int fd = accept4(w->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            return; /* nothing more, or a client that left; out of descriptors shows as clients
                       waiting */
        }
        s3d_conn_open(t, fd);
    }
}

static void on_finished(void *arg)
{
    struct s3d_thread *t = arg;
    struct s3d_conn *c;

    while ((c = xf_queue_pop(t->finished)) != NULL) {
        c->state = S3D_CONN_WAIT;
        if (c->closed) {
            s3d_conn_close(c, false);
        } else {
            s3d_dispatch_answer(c);
        }
    }
}

static void run_thread(void *arg)
{
    struct s3d_thread *t = arg;

    xf_loop_run(t->loop);
}

static enum xf_code parse_listen(const char *text, struct sockaddr_in *a, struct xf_err *err)
{
    struct xf_str s = xf_str_c(text);
    size_t colon = xf_str_find(s, ':', 0);
    uint64_t port;

    memset(a, 0, sizeof(*a));
    a->sin_family = AF_INET;
    XF_AUTO_FREE char *host = xf_str_dup(xf_str_sub(s, 0, colon));
    if (colon == SIZE_MAX || !xf_str_u64(xf_str_sub(s, colon + 1, s.len), &port) || port > 65535 ||
        inet_pton(AF_INET, host, &a->sin_addr) != 1) {
        return XF_FAIL(
            err, XF_E_INVAL, "--listen '%s' is not ADDR:PORT with an IPv4 address", text);
    }
    a->sin_port = htons((uint16_t)port);
    return XF_OK;
}

static enum xf_code listen_on(struct sockaddr_in *a, int *out, struct xf_err *err)
{
    XF_AUTO_FD int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t len = sizeof(*a);
    int one = 1;

    if (fd < 0) {
        return XF_FAIL_SUB(err, XF_E_IO, errno, "cannot make a socket: %s", xf_errno_text(errno));
    }
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) != 0) {
        return XF_FAIL_SUB(err, XF_E_IO, errno, "cannot set up a socket: %s", xf_errno_text(errno));
    }
    if (bind(fd, (const struct sockaddr *)a, sizeof(*a)) != 0 || listen(fd, 4096) != 0 ||
        getsockname(fd, (struct sockaddr *)a, &len) != 0) {
        return XF_FAIL_SUB(err,
                           XF_E_CONFIG,
                           errno,
                           "cannot listen on port %u: %s",
                           (unsigned)ntohs(a->sin_port),
                           xf_errno_text(errno));
    }
    *out = fd;
    fd = -1;
    return XF_OK;
}

/* A port that someone else listens on with SO_REUSEPORT would be shared silently: look first. */
static enum xf_code port_is_free(struct sockaddr_in a, struct xf_err *err)
{
    XF_AUTO_FD int fd = -1;
    int one = 1;

    if (a.sin_port == 0) {
        return XF_OK;
    }
    fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
        bind(fd, (const struct sockaddr *)&a, sizeof(a)) != 0) {
        return XF_FAIL_SUB(err,
                           XF_E_CONFIG,
                           errno,
                           "cannot listen on port %u: %s",
                           (unsigned)ntohs(a.sin_port),
                           xf_errno_text(errno));
    }
    return XF_OK;
}

static void thread_free(struct s3d_thread *t)
{
    if (t == NULL) {
        return;
    }
    while (!xf_list_is_empty(&t->conns)) {
        struct s3d_conn *c = XF_CONTAINER_OF(t->conns.next, struct s3d_conn, in_thread);
        c->state = S3D_CONN_WAIT; /* the threads that worked for it have ended */
        s3d_conn_close(c, true);
    }
    if (t->finished != NULL) {
        while (xf_queue_pop(t->finished) != NULL) { /* connections, closed above */
        }
        xf_queue_detach(t->finished);
    }
    if (t->loop != NULL) {
        xf_watch_stop(t->loop, &t->listener);
    }
    if (t->listener.fd >= 0) {
        (void)close(t->listener.fd);
    }
    xf_queue_free(t->finished);
    xf_loop_free(t->loop);
    xf_buf_fini(&t->auth_scratch);
    xf_xfree(t);
}

static enum xf_code thread_new(struct s3d_server *s, struct sockaddr_in *a, struct xf_err *err)
{
    struct s3d_thread *t = xf_xcalloc(1, sizeof(*t));

    s->threads->thread[s->threads->n++] = t; /* freed with the server from here on */
    t->server = s;
    t->listener = (struct xf_watch){.fd = -1, .cb = on_accept, .arg = t};
    t->date_s = -1;
    xf_list_init(&t->conns);
    xf_buf_init(&t->auth_scratch, 0);
    XF_TRY(xf_loop_new(NULL, &t->loop, err));
    XF_TRY(xf_queue_new(1024, &t->finished, err));
    XF_TRY(xf_queue_attach(t->finished, t->loop, on_finished, t, err));
    XF_TRY(listen_on(a, &t->listener.fd, err));
    return xf_watch_start(t->loop, &t->listener, XF_LOOP_IN, err);
}

/* ---- what is there at the start ---- */

static enum xf_code make_buckets(struct s3d_server *s, int64_t now_ms, struct xf_err *err)
{
    for (size_t i = 0; i < s->opts.n_buckets; i++) {
        struct xf_str name = xf_str_c(s->opts.buckets[i]);
        if (!s3d_bucket_name_is_valid(name)) {
            return XF_FAIL(
                err, XF_E_INVAL, "--bucket '%s' is no valid bucket name", s->opts.buckets[i]);
        }
        (void)s3d_store_make_bucket(s->store, name, now_ms); /* twice is fine */
    }
    return XF_OK;
}

static enum xf_code bucket_for(struct s3d_server *s,
                               struct xf_str name,
                               int64_t now_ms,
                               struct s3d_bucket **out,
                               struct xf_err *err)
{
    if (!s3d_bucket_name_is_valid(name)) {
        return XF_FAIL(err, XF_E_INVAL, "'%.*s' is no valid bucket name", XF_STR_ARG(name));
    }
    (void)s3d_store_make_bucket(s->store, name, now_ms); /* it may be there */
    *out = s3d_store_bucket(s->store, name);
    return XF_OK;
}

static enum xf_code load_synths(struct s3d_server *s, int64_t now_ms, struct xf_err *err)
{
    for (size_t i = 0; i < s->opts.n_synths; i++) {
        struct s3d_synth synth;
        struct s3d_bucket *b = NULL;
        if (s3d_synth_parse(xf_str_c(s->opts.synths[i]), &synth, err) != XF_OK) {
            return XF_WRAP(err, "--synth '%s'", s->opts.synths[i]);
        }
        XF_TRY(bucket_for(s, synth.bucket, now_ms, &b, err));
        s3d_bucket_load(b, &synth, s->opts.true_etag_max, now_ms);
        s3d_bucket_unref(b);
    }
    return XF_OK;
}

/* BUCKET/KEY:SIZE[:part=SIZE]; the key may hold ':'. */
static enum xf_code
load_object(struct s3d_server *s, struct xf_str text, int64_t now_ms, struct xf_err *err)
{
    struct s3d_synth shape = {0};
    struct s3d_bucket *b = NULL;
    size_t slash = xf_str_find(text, '/', 0);
    size_t colon = text.len;

    while (colon > 0 && text.ptr[colon - 1] != ':') {
        colon--;
    }
    struct xf_str last = xf_str_sub(text, colon, text.len);
    if (xf_str_starts(last, XF_STR_LIT("part=")) && colon > 0) {
        if (!s3d_size_parse(xf_str_sub(last, 5, last.len), &shape.part_size) ||
            shape.part_size == 0) {
            return XF_FAIL(err, XF_E_INVAL, "bad part size");
        }
        text = xf_str_sub(text, 0, colon - 1);
        for (colon = text.len; colon > 0 && text.ptr[colon - 1] != ':';) {
            colon--;
        }
        last = xf_str_sub(text, colon, text.len);
    }
    if (slash == SIZE_MAX || slash == 0 || colon < slash + 3 ||
        !s3d_size_parse(last, &shape.sizes.min)) {
        return XF_FAIL(err, XF_E_INVAL, "not of the form BUCKET/KEY:SIZE[:part=SIZE]");
    }
    struct xf_str key = xf_str_sub(text, slash + 1, colon - 1);
    shape.sizes.max = shape.sizes.min;
    XF_TRY(bucket_for(s, xf_str_sub(text, 0, slash), now_ms, &b, err));
    s3d_bucket_load_one(b, key, xf_str_hash(text, 3), &shape, s->opts.true_etag_max, now_ms);
    s3d_bucket_unref(b);
    return XF_OK;
}

static enum xf_code load_all(struct s3d_server *s, struct xf_err *err)
{
    int64_t now_ms = s3d_server_wall_ms(s, xf_clock_wall_ms(xf_clock_real()));

    for (size_t i = 0; i < s->opts.n_keys; i++) {
        XF_TRY(s3d_keys_add(s->keys, xf_str_c(s->opts.keys[i]), err));
    }
    XF_TRY(s3d_limits_latency(s->limits, xf_str_c(s->opts.latency), err));
    XF_TRY(s3d_limits_rps(s->limits, xf_str_c(s->opts.prefix_rps), err));
    XF_TRY(s3d_limits_copy_rate(s->limits, xf_str_c(s->opts.copy_rate), err));
    XF_TRY(s3d_faults_rate(s->faults, xf_str_c(s->opts.fault_rate), err));
    XF_TRY(make_buckets(s, now_ms, err));
    XF_TRY(load_synths(s, now_ms, err));
    for (size_t i = 0; i < s->opts.n_objects; i++) {
        if (load_object(s, xf_str_c(s->opts.objects[i]), now_ms, err) != XF_OK) {
            return XF_WRAP(err, "--object '%s'", s->opts.objects[i]);
        }
    }
    return XF_OK;
}

static enum xf_code start_threads(struct s3d_server *s, struct xf_err *err)
{
    struct sockaddr_in a;
    char host[INET_ADDRSTRLEN];

    XF_TRY(parse_listen(s->opts.listen, &a, err));
    XF_TRY(port_is_free(a, err));
    for (unsigned i = 0; i < s->opts.threads; i++) {
        XF_TRY(thread_new(s, &a, err));
    }
    s->port = ntohs(a.sin_port);
    (void)snprintf(s->address,
                   sizeof(s->address),
                   "%s:%u",
                   inet_ntop(AF_INET, &a.sin_addr, host, sizeof(host)),
                   (unsigned)s->port);
    for (size_t i = 0; i < s->threads->n; i++) {
        char name[16];
        (void)snprintf(name, sizeof(name), "s3d-%u", (unsigned)i);
        XF_TRY(xf_thread_start(
            &s->threads->thread[i]->thread, name, run_thread, s->threads->thread[i], err));
    }
    return XF_OK;
}

enum xf_code s3d_server_new(const struct s3d_opts *o, struct s3d_server **out, struct xf_err *err)
{
    if (o->threads < 1 || o->threads > S3D_THREADS_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "--threads has to be 1 to %d", S3D_THREADS_MAX);
    }
    XF_AUTO(s3d_server) s = xf_xcalloc(1, sizeof(*s));
    s->opts = *o;
    XF_ASSERT(pthread_mutex_init(&s->jobs_lock, NULL) == 0);
    XF_ASSERT(pthread_cond_init(&s->jobs_done, NULL) == 0);
    s->store = s3d_store_new(o->seed);
    s->keys = s3d_keys_new();
    s->faults = s3d_faults_new(o->seed);
    s->limits = s3d_limits_new();
    s->counters = s3d_counters_new();
    s->reqlog = o->log_requests > 0 ? s3d_reqlog_new(o->log_requests) : NULL;
    s->threads = xf_xcalloc(1, sizeof(*s->threads));
    XF_TRY(load_all(s, err));
    XF_TRY(start_threads(s, err));
    *out = XF_STEAL(s);
    return XF_OK;
}

void s3d_server_free(struct s3d_server *s)
{
    if (s == NULL) {
        return;
    }
    for (size_t i = 0; i < s->threads->n; i++) {
        struct s3d_thread *t = s->threads->thread[i];
        if (t->thread.started) {
            xf_loop_stop(t->loop);
            xf_thread_join(&t->thread);
        }
    }
    s3d_admin_join(s);
    for (size_t i = 0; i < s->threads->n; i++) {
        thread_free(s->threads->thread[i]);
    }
    xf_xfree(s->threads);
    (void)pthread_mutex_destroy(&s->jobs_lock); /* nobody else has them */
    (void)pthread_cond_destroy(&s->jobs_done);
    s3d_reqlog_free(s->reqlog);
    s3d_counters_free(s->counters);
    s3d_limits_free(s->limits);
    s3d_faults_free(s->faults);
    s3d_keys_free(s->keys);
    s3d_store_free(s->store);
    xf_xfree(s);
}
