/*
 * floor.c - the least that signed CopyObject requests cost with libcurl: one thread, one multi
 * handle, epoll, our signatures, nothing else. Replies are read and dropped.
 *
 *   floor HOST:PORT COUNT IN_FLIGHT
 *
 * Copies src/obj-%012d to floor/obj-%012d with the key AK:SK; prints microseconds of CPU for each.
 */
#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/s3/creds.h"
#include "common/s3/sigv4.h"

#include <curl/curl.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/resource.h>

struct slot {
    CURL *easy;
    struct curl_slist list[7];
    struct xf_buf text[7];
};

struct floor {
    const char *host;
    unsigned count;
    unsigned started;
    unsigned ended;
    unsigned refused;
    int epoll;
    long timeout_ms;
    CURLM *multi;
    struct xf_sigv4 *signer;
    struct xf_creds *creds;
};

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *arg, void *known)
{
    struct floor *f = arg;
    struct epoll_event ev = {.data.fd = fd};

    (void)easy;
    if (what == CURL_POLL_REMOVE) {
        return epoll_ctl(f->epoll, EPOLL_CTL_DEL, fd, &ev) == 0 ? 0 : -1;
    }
    ev.events = ((what & CURL_POLL_IN) != 0 ? (uint32_t)EPOLLIN : 0U) |
                ((what & CURL_POLL_OUT) != 0 ? (uint32_t)EPOLLOUT : 0U);
    if (known == NULL) {
        XF_ASSERT(curl_multi_assign(f->multi, fd, f) == CURLM_OK);
    }
    return epoll_ctl(f->epoll, known == NULL ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, fd, &ev);
}

static int on_timer(CURLM *multi, long ms, void *arg)
{
    struct floor *f = arg;

    (void)multi;
    f->timeout_ms = ms;
    return 0;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): the type is libcurl's */
static size_t drop(char *data, size_t size, size_t n, void *arg)
{
    (void)data;
    (void)arg;
    return size * n;
}

static void start(struct floor *f, struct slot *s)
{
    struct xf_err err;
    XF_AUTO_BUF path = {0};
    XF_AUTO_BUF url = {0};
    XF_AUTO_BUF source = {0};
    XF_AUTO_BUF auth = {0};
    char date[XF_TIME_TEXT_MAX];
    struct xf_sigv4_req req = {.method = XF_STR_LIT("PUT"),
                               .payload = XF_STR_LIT(XF_SIGV4_EMPTY_SHA256),
                               .region = XF_STR_LIT("us-east-1"),
                               .service = XF_STR_LIT("s3")};

    xf_buf_putf(&path, "/floor/obj-%012u", f->started);
    xf_buf_putf(&url, "http://%s%s", f->host, path.ptr);
    xf_buf_putf(&source, "/src/obj-%012u", f->started);
    f->started++;
    xf_time_amz(xf_clock_wall_ms(xf_clock_real()), date);
    memcpy(req.date, date, XF_SIGV4_DATE_LEN);
    const struct xf_sigv4_pair headers[] = {
        {XF_STR_LIT("host"), xf_str_c(f->host)},
        {XF_STR_LIT("x-amz-content-sha256"), req.payload},
        {XF_STR_LIT("x-amz-copy-source"), xf_buf_view(&source)},
        {XF_STR_LIT("x-amz-date"), xf_str_c(req.date)},
    };
    req.path = xf_buf_view(&path);
    req.headers = headers;
    req.n_headers = XF_ARRAY_LEN(headers);
    XF_ASSERT(xf_sigv4_sign(f->signer, f->creds, &req, &auth, NULL, &err) == XF_OK);
    for (size_t i = 0; i < XF_ARRAY_LEN(s->list); i++) {
        xf_buf_reset(&s->text[i]);
    }
    xf_buf_putf(&s->text[0], "Authorization: %s", auth.ptr);
    for (size_t i = 1; i < XF_ARRAY_LEN(headers); i++) {
        xf_buf_putf(
            &s->text[i], "%.*s: %.*s", XF_STR_ARG(headers[i].name), XF_STR_ARG(headers[i].value));
    }
    xf_buf_put_c(&s->text[4], "Expect:");
    xf_buf_put_c(&s->text[5], "Accept:");
    xf_buf_put_c(&s->text[6], "Content-Type:");
    for (size_t i = 0; i < XF_ARRAY_LEN(s->list); i++) {
        s->list[i].data = s->text[i].ptr;
        s->list[i].next = i + 1 < XF_ARRAY_LEN(s->list) ? &s->list[i + 1] : NULL;
    }
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_URL, url.ptr) == CURLE_OK);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_HTTPHEADER, s->list) == CURLE_OK);
    XF_ASSERT(curl_multi_add_handle(f->multi, s->easy) == CURLM_OK);
}

static void open_slot(struct floor *f, struct slot *s)
{
    s->easy = curl_easy_init();
    XF_ASSERT(s->easy != NULL);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_PRIVATE, s) == CURLE_OK);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_WRITEFUNCTION, drop) == CURLE_OK);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_UPLOAD, 1L) == CURLE_OK);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_INFILESIZE_LARGE, (curl_off_t)0) == CURLE_OK);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_NOSIGNAL, 1L) == CURLE_OK);
    XF_ASSERT(curl_easy_setopt(s->easy, CURLOPT_PROXY, "") == CURLE_OK);
    start(f, s);
}

static void reap(struct floor *f)
{
    CURLMsg *msg;
    int left = 0;

    while ((msg = curl_multi_info_read(f->multi, &left)) != NULL) {
        struct slot *s = NULL;
        long status = 0;
        CURL *easy = msg->easy_handle;

        XF_ASSERT(msg->data.result == CURLE_OK);
        XF_ASSERT(curl_easy_getinfo(easy, CURLINFO_PRIVATE, &s) == CURLE_OK);
        XF_ASSERT(curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status) == CURLE_OK);
        f->refused += status == 200 ? 0 : 1;
        XF_ASSERT(curl_multi_remove_handle(f->multi, easy) == CURLM_OK);
        f->ended++;
        if (f->started < f->count) {
            start(f, s);
        }
    }
}

static void run(struct floor *f)
{
    struct epoll_event events[256];
    int running = 0;

    while (f->ended < f->count) {
        int n = epoll_wait(f->epoll, events, (int)XF_ARRAY_LEN(events), (int)f->timeout_ms);

        XF_ASSERT(n >= 0);
        if (n == 0) {
            XF_ASSERT(curl_multi_socket_action(f->multi, CURL_SOCKET_TIMEOUT, 0, &running) ==
                      CURLM_OK);
        }
        for (int i = 0; i < n; i++) {
            int what = ((events[i].events & (uint32_t)EPOLLIN) != 0 ? CURL_CSELECT_IN : 0) |
                       ((events[i].events & (uint32_t)EPOLLOUT) != 0 ? CURL_CSELECT_OUT : 0);
            XF_ASSERT(curl_multi_socket_action(f->multi, events[i].data.fd, what, &running) ==
                      CURLM_OK);
            reap(f);
        }
        reap(f);
    }
}

static double cpu_us(void)
{
    struct rusage u;

    XF_ASSERT(getrusage(RUSAGE_SELF, &u) == 0);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e6 +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

int main(int argc, char **argv)
{
    struct floor f = {.timeout_ms = 0};
    struct xf_err err;
    unsigned in_flight;
    int64_t start_ns;

    if (argc != 4) {
        (void)fprintf(stderr, "usage: floor HOST:PORT COUNT IN_FLIGHT\n");
        return 2;
    }
    f.host = argv[1];
    f.count = (unsigned)strtoul(argv[2], NULL, 10);
    in_flight = (unsigned)strtoul(argv[3], NULL, 10);
    XF_ASSERT(curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK);
    f.signer = xf_sigv4_new();
    XF_ASSERT(xf_creds_new(XF_STR_LIT("AK"), XF_STR_LIT("SK"), XF_STR_EMPTY, 0, &f.creds, &err) ==
              XF_OK);
    f.epoll = epoll_create1(EPOLL_CLOEXEC);
    f.multi = curl_multi_init();
    XF_ASSERT(f.epoll >= 0 && f.multi != NULL);
    XF_ASSERT(curl_multi_setopt(f.multi, CURLMOPT_SOCKETFUNCTION, on_socket) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(f.multi, CURLMOPT_SOCKETDATA, &f) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(f.multi, CURLMOPT_TIMERFUNCTION, on_timer) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(f.multi, CURLMOPT_TIMERDATA, &f) == CURLM_OK);
    XF_ASSERT(curl_multi_setopt(f.multi, CURLMOPT_MAXCONNECTS, (long)in_flight) == CURLM_OK);
    start_ns = xf_clock_mono_ns();
    struct slot *slots = xf_xcalloc(in_flight, sizeof(*slots));
    for (unsigned i = 0; i < in_flight && f.started < f.count; i++) {
        open_slot(&f, &slots[i]);
    }
    run(&f);
    printf("{\"count\":%u,\"refused\":%u,\"wall_s\":%.3f,\"cpu_us_each\":%.1f}\n",
           f.count,
           f.refused,
           (double)(xf_clock_mono_ns() - start_ns) / 1e9,
           cpu_us() / f.count);
    for (unsigned i = 0; i < in_flight; i++) {
        curl_easy_cleanup(slots[i].easy);
        for (size_t k = 0; k < XF_ARRAY_LEN(slots[i].text); k++) {
            xf_buf_fini(&slots[i].text[k]);
        }
    }
    xf_xfree(slots);
    XF_ASSERT(curl_multi_cleanup(f.multi) == CURLM_OK);
    xf_creds_unref(f.creds);
    xf_sigv4_free(f.signer);
    return f.refused == 0 ? 0 : 1;
}
