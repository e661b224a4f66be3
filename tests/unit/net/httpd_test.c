/*
 * httpd_test.c - routes, late answers, refusals and bounds of the HTTP server.
 */
#include "common/net/httpd.h"
#include "common/rt/loop.h"
#include "common/rt/thread.h"
#include "tests/lib/httpget.h"
#include "tests/lib/test.h"

#include <stdio.h>

struct fx {
    struct xf_loop *loop;
    struct xf_httpd *httpd;
    struct xf_httpd_req *late;
    struct xf_timer timer;
    struct xf_thread client;
    const char *method;
    char url[200];
    const char *long_url;
    int status;
    struct xf_buf body;
};

static void hello(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    (void)arg;
    (void)rest;
    xf_httpd_reply(req, 200, "text/plain", XF_STR_LIT("hello"));
}

static void echo(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    (void)arg;
    xf_httpd_reply(req, 200, "text/plain", rest);
}

static void answer_late(struct xf_timer *t)
{
    struct fx *fx = t->arg;
    xf_httpd_reply(fx->late, 202, "text/plain", XF_STR_LIT("late"));
}

static void late(void *arg, struct xf_httpd_req *req, struct xf_str rest)
{
    struct fx *fx = arg;
    (void)rest;
    fx->late = req;
    xf_timer_in(fx->loop, &fx->timer, 20);
}

static const struct xf_httpd_route routes[] = {
    {"/", hello},
    {"/late", late},
    {"/jobs/*", echo},
};

static void open_server(struct fx *fx, const char *listen)
{
    struct xf_err err;
    memset(fx, 0, sizeof(*fx));
    xf_buf_init(&fx->body, 0);
    assert_int_equal(xf_loop_new(NULL, &fx->loop, &err), XF_OK);
    fx->timer = (struct xf_timer){.cb = answer_late, .arg = fx};
    const struct xf_httpd_opts o = {.loop = fx->loop,
                                    .listen = listen,
                                    .routes = routes,
                                    .n_routes = XF_ARRAY_LEN(routes),
                                    .arg = fx};
    assert_int_equal(xf_httpd_new(&o, &fx->httpd, &err), XF_OK);
}

static void close_server(struct fx *fx)
{
    xf_httpd_free(fx->httpd);
    xf_loop_free(fx->loop);
    xf_buf_fini(&fx->body);
}

static void client(void *arg)
{
    struct fx *fx = arg;
    if (fx->method == NULL) {
        fx->status = xf_httpget(fx->long_url != NULL ? fx->long_url : fx->url, &fx->body);
    } else {
        fx->status = xf_httpget_send(fx->method, fx->url, XF_STR_LIT("some body"), &fx->body);
    }
    xf_loop_stop(fx->loop);
}

static int ask(struct fx *fx, const char *method, const char *path)
{
    struct xf_err err;
    xf_buf_reset(&fx->body);
    fx->method = method;
    (void)snprintf(fx->url, sizeof(fx->url), "http://%s%s", xf_httpd_address(fx->httpd), path);
    assert_int_equal(xf_thread_start(&fx->client, "client", client, fx, &err), XF_OK);
    xf_loop_run(fx->loop);
    xf_thread_join(&fx->client);
    return fx->status;
}

static void a_route_answers_and_others_are_404(void **state)
{
    struct fx fx;
    (void)state;
    open_server(&fx, "127.0.0.1:0");
    assert_int_equal(ask(&fx, NULL, "/"), 200);
    assert_true(xf_str_eq_c(xf_buf_view(&fx.body), "hello"));
    assert_int_equal(ask(&fx, NULL, "/jobs/j-12/x"), 200);
    assert_true(xf_str_eq_c(xf_buf_view(&fx.body), "j-12/x"));
    assert_int_equal(ask(&fx, NULL, "/other"), 404);
    assert_int_equal(ask(&fx, NULL, "/late/x"), 404);
    assert_true(xf_httpd_is_loopback(fx.httpd));
    close_server(&fx);
}

static void a_late_answer_arrives_and_the_loop_goes_on(void **state)
{
    struct fx fx;
    (void)state;
    open_server(&fx, "localhost:0");
    assert_int_equal(ask(&fx, NULL, "/late"), 202);
    assert_true(xf_str_eq_c(xf_buf_view(&fx.body), "late"));
    assert_int_equal(ask(&fx, NULL, "/"), 200);
    close_server(&fx);
}

static void writes_are_refused(void **state)
{
    struct fx fx;
    (void)state;
    open_server(&fx, "127.0.0.1:0");
    assert_int_equal(ask(&fx, "POST", "/"), 405);
    assert_int_equal(ask(&fx, "DELETE", "/jobs/j-1"), 405);
    close_server(&fx);
}

static void a_head_beyond_the_bound_is_refused(void **state)
{
    enum { LONG = 40000 };
    struct fx fx;
    struct xf_err err;
    XF_AUTO_FREE char *path = xf_xmalloc(LONG + 1);
    XF_AUTO_FREE char *url = xf_xmalloc(LONG + 100);
    (void)state;
    memset(path, 'a', LONG);
    path[LONG] = '\0';
    open_server(&fx, "127.0.0.1:0");
    (void)snprintf(url, LONG + 100, "http://%s/jobs/%s", xf_httpd_address(fx.httpd), path);
    fx.long_url = url;
    assert_int_equal(xf_thread_start(&fx.client, "client", client, &fx, &err), XF_OK);
    xf_loop_run(fx.loop);
    xf_thread_join(&fx.client);
    assert_true(fx.status == 414 || fx.status == 431 || fx.status == 413 || fx.status == -1);
    fx.long_url = NULL;
    assert_int_equal(ask(&fx, NULL, "/jobs/ok"), 200);
    close_server(&fx);
}

static void a_port_in_use_is_told_with_the_remedy(void **state)
{
    struct fx fx;
    struct xf_err err;
    struct xf_httpd *second = NULL;
    (void)state;
    open_server(&fx, "127.0.0.1:0");
    const struct xf_httpd_opts o = {.loop = fx.loop, .listen = xf_httpd_address(fx.httpd)};
    assert_int_equal(xf_httpd_new(&o, &second, &err), XF_E_IO);
    assert_non_null(strstr(err.msg, "--http"));
    assert_null(second);
    close_server(&fx);
}

static void a_malformed_address_is_refused(void **state)
{
    static const char *const bad[] = {
        "", "7680", ":7680", "host:99999", "example.org:80", "1.2.3.4:", "[::1]"};
    struct xf_err err;
    struct xf_loop *loop = NULL;
    (void)state;
    assert_int_equal(xf_loop_new(NULL, &loop, &err), XF_OK);
    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        struct xf_httpd *h = NULL;
        const struct xf_httpd_opts o = {.loop = loop, .listen = bad[i]};
        assert_int_equal(xf_httpd_new(&o, &h, &err), XF_E_CONFIG);
    }
    xf_loop_free(loop);
}

static void freeing_answers_those_that_wait(void **state)
{
    struct fx fx;
    struct xf_err err;
    (void)state;
    open_server(&fx, "127.0.0.1:0");
    (void)snprintf(fx.url, sizeof(fx.url), "http://%s/late", xf_httpd_address(fx.httpd));
    assert_int_equal(xf_thread_start(&fx.client, "client", client, &fx, &err), XF_OK);
    while (fx.late == NULL) {
        xf_loop_turn(fx.loop, 1000);
    }
    xf_timer_stop(fx.loop, &fx.timer);
    xf_httpd_free(fx.httpd);
    fx.httpd = NULL;
    xf_thread_join(&fx.client);
    assert_true(fx.status == 503 || fx.status == -1);
    close_server(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_route_answers_and_others_are_404),
        cmocka_unit_test(a_late_answer_arrives_and_the_loop_goes_on),
        cmocka_unit_test(writes_are_refused),
        cmocka_unit_test(a_head_beyond_the_bound_is_refused),
        cmocka_unit_test(a_port_in_use_is_told_with_the_remedy),
        cmocka_unit_test(a_malformed_address_is_refused),
        cmocka_unit_test(freeing_answers_those_that_wait),
    };
    return xf_test_run("httpd", tests, NULL, NULL);
}
