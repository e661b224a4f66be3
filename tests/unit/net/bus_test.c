/*
 * bus_test.c - the message bus over inproc, loopback tcp and TLS: answers, deadlines, cancels,
 * reconnects, refusals, and closing at any moment.
 */
#include "common/net/bus.h"
#include "common/rt/queue.h"
#include "tests/lib/proc.h"
#include "tests/lib/test.h"
#include "tests/lib/tmpdir.h"

#include <string.h>

enum { SOON_MS = 10000, OPEN_MAX = 64 };

/* One loop with both ends on it; the server keeps requests until the test answers them. */
struct fx {
    struct xf_loop *loop;
    struct xf_bus_server *server;
    struct xf_bus_client *client;
    bool echo;
    uint64_t tokens[OPEN_MAX];
    size_t n_tokens;
    size_t n_requests;
    size_t n_done;
    size_t ups;
    size_t downs;
    enum xf_code last;
    struct xf_buf answer;
    bool (*until)(const struct fx *f);
};

static void on_request(void *arg, uint64_t token, struct xf_str bytes)
{
    struct fx *f = arg;

    f->n_requests++;
    if (f->echo) {
        xf_bus_reply(f->server, token, bytes);
        return;
    }
    assert_true(f->n_tokens < OPEN_MAX);
    f->tokens[f->n_tokens++] = token;
}

static void on_done(void *arg, enum xf_code code, struct xf_str bytes)
{
    struct fx *f = arg;

    f->n_done++;
    f->last = code;
    xf_buf_reset(&f->answer);
    xf_buf_put(&f->answer, bytes);
}

static void on_link(void *arg, bool up)
{
    struct fx *f = arg;

    f->ups += up ? 1 : 0;
    f->downs += up ? 0 : 1;
}

static void fx_listen(struct fx *f, const char *url)
{
    struct xf_bus_server_opts so = {
        .loop = f->loop, .url = url, .contexts = 32, .on_request = on_request, .arg = f};
    struct xf_err err = {0};

    if (xf_bus_listen(&so, &f->server, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
}

static void fx_dial(struct fx *f, const char *url)
{
    struct xf_bus_client_opts co = {.loop = f->loop, .url = url, .on_link = on_link, .arg = f};
    struct xf_err err = {0};

    if (xf_bus_dial(&co, &f->client, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
}

static void fx_open(struct fx *f, const char *url)
{
    struct xf_err err = {0};

    memset(f, 0, sizeof(*f));
    xf_buf_init(&f->answer, 0);
    assert_int_equal(xf_loop_new(NULL, &f->loop, &err), XF_OK);
    if (url != NULL) {
        fx_listen(f, url);
        fx_dial(f, xf_bus_server_url(f->server));
    }
}

static void fx_close(struct fx *f)
{
    xf_bus_client_close(f->client);
    xf_bus_server_close(f->server);
    xf_loop_free(f->loop);
    xf_buf_fini(&f->answer);
}

/* Turns the loop until *count reaches n. */
static void turn_until(struct fx *f, const size_t *count, size_t n)
{
    int64_t end = xf_clock_mono_ms(xf_clock_real()) + SOON_MS;

    while (*count < n) {
        assert_true(xf_clock_mono_ms(xf_clock_real()) < end);
        xf_loop_turn(f->loop, 20);
    }
}

static uint64_t call(struct fx *f, struct xf_str bytes, int64_t ms)
{
    return xf_bus_call(f->client, bytes, xf_clock_mono_ms(xf_clock_real()) + ms, on_done, f);
}

static void check_echo(const char *url)
{
    struct fx f;
    XF_AUTO_FREE char *big = xf_xcalloc(1, 4U * 1024 * 1024);

    fx_open(&f, url);
    f.echo = true;
    for (size_t i = 0; i < 20; i++) {
        (void)call(&f, XF_STR_LIT("hello"), SOON_MS);
    }
    turn_until(&f, &f.n_done, 20);
    assert_int_equal(f.last, XF_OK);
    assert_true(xf_str_eq_c(xf_buf_view(&f.answer), "hello"));
    (void)call(&f, xf_str_n(big, 4U * 1024 * 1024), SOON_MS);
    turn_until(&f, &f.n_done, 21);
    assert_int_equal(f.last, XF_OK);
    assert_int_equal(f.answer.len, 4 * 1024 * 1024);
    assert_true(xf_bus_is_up(f.client));
    fx_close(&f);
}

static void call_is_answered_within_one_process(void **state)
{
    (void)state;
    check_echo("inproc://bus_test_echo");
}

static void call_is_answered_over_loopback(void **state)
{
    (void)state;
    check_echo("tcp://127.0.0.1:0");
    check_echo("tcp://[::1]:0");
}

static void answers_may_come_in_any_order(void **state)
{
    struct fx f;

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    for (size_t i = 0; i < 10; i++) {
        (void)call(&f, XF_STR_LIT("?"), SOON_MS);
    }
    turn_until(&f, &f.n_requests, 10);
    for (size_t i = 10; i-- > 0;) {
        xf_bus_reply(f.server, f.tokens[i], XF_STR_LIT("!"));
    }
    turn_until(&f, &f.n_done, 10);
    assert_int_equal(f.last, XF_OK);
    fx_close(&f);
}

static void call_without_an_answer_ends_at_its_deadline(void **state)
{
    struct fx f;

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    (void)call(&f, XF_STR_LIT("?"), 50);
    turn_until(&f, &f.n_done, 1);
    assert_int_equal(f.last, XF_E_TIMEOUT);
    turn_until(&f, &f.n_requests, 1);
    xf_bus_reply(f.server, f.tokens[0], XF_STR_LIT("late")); /* answers nobody */
    f.echo = true;
    (void)call(&f, XF_STR_LIT("next"), SOON_MS);
    turn_until(&f, &f.n_done, 2);
    assert_true(xf_str_eq_c(xf_buf_view(&f.answer), "next"));
    fx_close(&f);
}

static void call_without_a_server_ends_at_its_deadline_and_dialing_goes_on(void **state)
{
    struct fx f;
    XF_AUTO_FREE char *url = NULL;

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    url = xf_xstrdup(xf_bus_server_url(f.server));
    fx_close(&f);
    fx_open(&f, NULL);
    fx_dial(&f, url);
    (void)call(&f, XF_STR_LIT("?"), 50);
    turn_until(&f, &f.n_done, 1);
    assert_int_equal(f.last, XF_E_TIMEOUT);
    fx_listen(&f, url);
    f.echo = true;
    (void)call(&f, XF_STR_LIT("?"), SOON_MS);
    turn_until(&f, &f.n_done, 2);
    assert_int_equal(f.last, XF_OK);
    assert_int_equal(f.n_requests, 1); /* the one that timed out was never sent after all */
    fx_close(&f);
}

static void cancelled_call_is_never_told(void **state)
{
    struct fx f;
    uint64_t id;

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    id = call(&f, XF_STR_LIT("?"), SOON_MS);
    turn_until(&f, &f.n_requests, 1);
    xf_bus_cancel(f.client, id);
    xf_bus_cancel(f.client, id); /* harmless */
    xf_bus_reply(f.server, f.tokens[0], XF_STR_LIT("late"));
    f.echo = true;
    (void)call(&f, XF_STR_LIT("next"), SOON_MS);
    turn_until(&f, &f.n_done, 1);
    assert_true(xf_str_eq_c(xf_buf_view(&f.answer), "next"));
    xf_bus_cancel(f.client, id); /* harmless, its slot has another call's round */
    assert_int_equal(f.n_done, 1);
    fx_close(&f);
}

static void request_too_large_is_refused_before_it_is_sent(void **state)
{
    struct fx f;
    size_t len = (size_t)XF_BUS_BYTES_MAX + 1;
    XF_AUTO_FREE char *big = xf_xcalloc(1, len);

    (void)state;
    fx_open(&f, "inproc://bus_test_large");
    (void)call(&f, xf_str_n(big, len), SOON_MS);
    assert_int_equal(f.n_done, 0); /* never inside the call */
    turn_until(&f, &f.n_done, 1);
    assert_int_equal(f.last, XF_E_LIMIT);
    assert_int_equal(f.n_requests, 0);
    fx_close(&f);
}

static void request_larger_than_the_server_takes_never_arrives(void **state)
{
    struct fx f;
    struct xf_bus_server_opts so = {.url = "tcp://127.0.0.1:0", .contexts = 4, .bytes_max = 1000};
    XF_AUTO_FREE char *big = xf_xcalloc(1, 2000);
    struct xf_err err = {0};

    (void)state;
    fx_open(&f, NULL);
    so.loop = f.loop;
    so.on_request = on_request;
    so.arg = &f;
    assert_int_equal(xf_bus_listen(&so, &f.server, &err), XF_OK);
    f.echo = true;
    fx_dial(&f, xf_bus_server_url(f.server));
    (void)call(&f, xf_str_n(big, 2000), 300);
    turn_until(&f, &f.n_done, 1);
    assert_int_equal(f.last, XF_E_TIMEOUT);
    assert_int_equal(f.n_requests, 0);
    (void)call(&f, XF_STR_LIT("small"), SOON_MS); /* over a new connection */
    turn_until(&f, &f.n_done, 2);
    assert_int_equal(f.last, XF_OK);
    fx_close(&f);
}

static void request_is_sent_again_over_a_new_connection(void **state)
{
    struct fx f;

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    (void)call(&f, XF_STR_LIT("?"), SOON_MS);
    turn_until(&f, &f.n_requests, 1);
    xf_bus_hang_up(f.client);
    turn_until(&f, &f.n_requests, 2);
    xf_bus_reply(f.server, f.tokens[0], XF_STR_LIT("to the broken connection"));
    xf_bus_reply(f.server, f.tokens[1], XF_STR_LIT("second"));
    turn_until(&f, &f.n_done, 1);
    assert_int_equal(f.last, XF_OK);
    assert_true(xf_str_eq_c(xf_buf_view(&f.answer), "second"));
    turn_until(&f, &f.ups, 2);
    assert_int_equal(f.downs, 1);
    fx_close(&f);
}

static void client_without_a_connection_begins_anew_until_it_has_one(void **state)
{
    struct fx f;
    XF_AUTO_FREE char *url = NULL;
    struct xf_bus_client_opts co = {.redial_ms = 60, .on_link = on_link};
    struct xf_err err = {0};

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    url = xf_xstrdup(xf_bus_server_url(f.server));
    fx_close(&f);
    fx_open(&f, NULL);
    co.loop = f.loop;
    co.url = url;
    co.arg = &f;
    assert_int_equal(xf_bus_dial(&co, &f.client, &err), XF_OK);
    for (size_t i = 0; i < 5; i++) {
        uint64_t cancelled = call(&f, XF_STR_LIT("never told"), SOON_MS);

        (void)call(&f, XF_STR_LIT("?"), SOON_MS);
        xf_bus_cancel(f.client, cancelled);
        turn_until(&f, &f.n_done, i + 1);
        assert_int_equal(f.last, XF_E_NET);
    }
    fx_listen(&f, url);
    f.echo = true;
    turn_until(&f, &f.ups, 1);
    (void)call(&f, XF_STR_LIT("?"), SOON_MS);
    turn_until(&f, &f.n_done, 6);
    assert_int_equal(f.last, XF_OK);
    (void)call(&f, XF_STR_LIT("?"), 150); /* long enough for redials, which do not come now */
    f.echo = false;
    turn_until(&f, &f.n_requests, 2);
    (void)call(&f, XF_STR_LIT("?"), 150);
    turn_until(&f, &f.n_done, 8);
    assert_int_equal(f.last, XF_E_TIMEOUT);
    assert_int_equal(f.ups, 1);
    fx_close(&f);
}

static void dropped_request_frees_its_context(void **state)
{
    struct fx f;

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    for (size_t round = 0; round < 5; round++) {
        f.n_tokens = 0;
        for (size_t i = 0; i < 20; i++) {
            (void)call(&f, XF_STR_LIT("?"), 100);
        }
        turn_until(&f, &f.n_requests, (round + 1) * 20);
        for (size_t i = 0; i < 20; i++) {
            xf_bus_drop(f.server, f.tokens[i]);
        }
        turn_until(&f, &f.n_done, (round + 1) * 20);
        assert_int_equal(f.last, XF_E_TIMEOUT);
    }
    fx_close(&f);
}

static void closing_with_everything_under_way_leaks_nothing(void **state)
{
    (void)state;
    for (int turns = 0; turns < 6; turns++) {
        struct fx f;

        fx_open(&f, turns % 2 == 0 ? "tcp://127.0.0.1:0" : "inproc://bus_test_closing");
        for (size_t i = 0; i < 10; i++) {
            (void)call(&f, XF_STR_LIT("?"), SOON_MS);
        }
        for (int i = 0; i < turns * 3; i++) {
            xf_loop_turn(f.loop, 1);
        }
        for (size_t i = 0; i < f.n_tokens; i += 2) {
            xf_bus_reply(f.server, f.tokens[i], XF_STR_LIT("!"));
        }
        if (turns >= 3) {
            xf_bus_server_close(f.server);
            f.server = NULL;
        }
        fx_close(&f);
    }
}

static void address_in_use_is_told_with_the_remedy(void **state)
{
    struct fx f;
    struct xf_bus_server_opts so = {.contexts = 1, .on_request = on_request};
    struct xf_bus_server *second = NULL;
    struct xf_err err = {0};

    (void)state;
    fx_open(&f, "tcp://127.0.0.1:0");
    so.loop = f.loop;
    so.url = xf_bus_server_url(f.server);
    assert_int_equal(xf_bus_listen(&so, &second, &err), XF_E_LOCKED);
    assert_non_null(strstr(err.msg, "in use"));
    assert_non_null(strstr(err.msg, "another port"));
    assert_non_null(strstr(err.msg, so.url));
    assert_null(second);
    fx_close(&f);
}

static void plain_tcp_beyond_loopback_is_refused(void **state)
{
    static const char *const bad[] = {
        "tcp://0.0.0.0:7600",
        "tcp://*:7600",
        "tcp://10.1.2.3:7600",
        "tcp://[::]:7600",
        "tcp://:7600",
        "tcp://example.com:80",
        "tcp://127.0.0.1",
        "tcp://127.0.0.1:",
        "http://127.0.0.1:1",
        "127.0.0.1:7600",
        "",
    };
    struct fx f;

    (void)state;
    fx_open(&f, NULL);
    for (size_t i = 0; i < XF_ARRAY_LEN(bad); i++) {
        struct xf_bus_server_opts so = {.loop = f.loop, .url = bad[i], .on_request = on_request};
        struct xf_bus_client_opts co = {.loop = f.loop, .url = bad[i]};
        struct xf_bus_server *server = NULL;
        struct xf_bus_client *client = NULL;
        struct xf_err err = {0};

        assert_int_equal(xf_bus_listen(&so, &server, &err), XF_E_CONFIG);
        assert_int_equal(xf_bus_dial(&co, &client, &err), XF_E_CONFIG);
        assert_non_null(strstr(err.msg, bad[i]));
    }
    fx_close(&f);
}

/* ---- TLS ---- */

struct pki {
    struct xf_tmpdir *dir;
    struct xf_bus_tls server;
    struct xf_bus_tls client;
    struct xf_bus_tls stranger; /* signed by another CA */
};

static void run_openssl(const char *const *argv)
{
    XF_AUTO_BUF err = {0};

    xf_buf_init(&err, 0);
    if (xf_proc_run(argv, NULL, SOON_MS, NULL, &err) != 0) {
        fail_msg("openssl: %s", err.ptr);
    }
}

static char *pki_file(struct pki *p, const char *name, const char *ext)
{
    XF_AUTO_BUF b = {0};

    xf_buf_init(&b, 0);
    xf_buf_putf(&b, "%s/%s.%s", xf_tmpdir_path(p->dir), name, ext);
    return xf_buf_take(&b);
}

static void make_ca(struct pki *p, const char *name)
{
    XF_AUTO_FREE char *key = pki_file(p, name, "key");
    XF_AUTO_FREE char *pem = pki_file(p, name, "pem");
    const char *const argv[] = {"/usr/bin/openssl",
                                "req",
                                "-x509",
                                "-newkey",
                                "ec",
                                "-pkeyopt",
                                "ec_paramgen_curve:prime256v1",
                                "-nodes",
                                "-days",
                                "2",
                                "-subj",
                                "/CN=test CA",
                                "-keyout",
                                key,
                                "-out",
                                pem,
                                NULL};

    run_openssl(argv);
}

static void make_cert(struct pki *p, const char *name, const char *ca)
{
    XF_AUTO_FREE char *key = pki_file(p, name, "key");
    XF_AUTO_FREE char *pem = pki_file(p, name, "pem");
    XF_AUTO_FREE char *csr = pki_file(p, name, "csr");
    XF_AUTO_FREE char *ca_key = pki_file(p, ca, "key");
    XF_AUTO_FREE char *ca_pem = pki_file(p, ca, "pem");
    const char *const ask[] = {"/usr/bin/openssl",
                               "req",
                               "-newkey",
                               "ec",
                               "-pkeyopt",
                               "ec_paramgen_curve:prime256v1",
                               "-nodes",
                               "-subj",
                               "/CN=localhost",
                               "-keyout",
                               key,
                               "-out",
                               csr,
                               NULL};
    const char *const sign[] = {"/usr/bin/openssl",
                                "x509",
                                "-req",
                                "-in",
                                csr,
                                "-CA",
                                ca_pem,
                                "-CAkey",
                                ca_key,
                                "-CAcreateserial",
                                "-days",
                                "2",
                                "-out",
                                pem,
                                NULL};

    run_openssl(ask);
    run_openssl(sign);
}

static int pki_setup(void **state)
{
    struct pki *p = xf_xcalloc(1, sizeof(*p));

    p->dir = xf_tmpdir_new();
    make_ca(p, "ca");
    make_ca(p, "other");
    make_cert(p, "server", "ca");
    make_cert(p, "agent", "ca");
    make_cert(p, "stranger", "other");
    p->server.ca_file = pki_file(p, "ca", "pem");
    p->server.cert_file = pki_file(p, "server", "pem");
    p->server.key_file = pki_file(p, "server", "key");
    p->client.ca_file = p->server.ca_file;
    p->client.cert_file = pki_file(p, "agent", "pem");
    p->client.key_file = pki_file(p, "agent", "key");
    p->stranger.ca_file = p->server.ca_file;
    p->stranger.cert_file = pki_file(p, "stranger", "pem");
    p->stranger.key_file = pki_file(p, "stranger", "key");
    *state = p;
    return 0;
}

static void free_const(const char *s)
{
    union {
        const char *c;
        void *p;
    } u = {.c = s};

    xf_xfree(u.p);
}

static int pki_teardown(void **state)
{
    struct pki *p = *state;

    free_const(p->server.ca_file);
    free_const(p->server.cert_file);
    free_const(p->server.key_file);
    free_const(p->client.cert_file);
    free_const(p->client.key_file);
    free_const(p->stranger.cert_file);
    free_const(p->stranger.key_file);
    xf_tmpdir_free(p->dir);
    xf_xfree(p);
    return 0;
}

/* The last code of a call through TLS with these files; XF_E_TIMEOUT when they do not shake hands.
 */
static enum xf_code
try_tls(const struct xf_bus_tls *server, const struct xf_bus_tls *client, int64_t ms)
{
    struct fx f;
    XF_AUTO_FREE char *big = xf_xcalloc(1, 1024U * 1024);
    struct xf_err err = {0};
    struct xf_bus_server_opts so = {
        .url = "tls+tcp://localhost:0", .tls = *server, .contexts = 8, .on_request = on_request};
    struct xf_bus_client_opts co = {.tls = *client};
    enum xf_code code;

    fx_open(&f, NULL);
    f.echo = true;
    so.loop = f.loop;
    so.arg = &f;
    if (xf_bus_listen(&so, &f.server, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    co.loop = f.loop;
    co.url = xf_bus_server_url(f.server);
    if (xf_bus_dial(&co, &f.client, &err) != XF_OK) {
        fail_msg("%s", err.msg);
    }
    (void)call(&f, xf_str_n(big, 1024U * 1024), ms);
    turn_until(&f, &f.n_done, 1);
    code = f.last;
    assert_true(code != XF_OK || f.answer.len == 1024U * 1024);
    fx_close(&f);
    return code;
}

static void tls_needs_both_sides_certificates(void **state)
{
    struct pki *p = *state;
    struct xf_bus_tls wrong_name = p->client;

    wrong_name.server_name = "elsewhere.example";
    assert_int_equal(try_tls(&p->server, &p->client, SOON_MS), XF_OK);
    assert_int_equal(try_tls(&p->server, &p->stranger, 700), XF_E_TIMEOUT);
    assert_int_equal(try_tls(&p->stranger, &p->client, 700), XF_E_TIMEOUT);
    assert_int_equal(try_tls(&p->server, &wrong_name, 700), XF_E_TIMEOUT);
}

static void tls_files_that_are_not_good_are_named(void **state)
{
    struct pki *p = *state;
    const char *text = xf_tmpdir_write(p->dir, "notes.txt", XF_STR_LIT("not a certificate"));
    const struct {
        struct xf_bus_tls tls;
        const char *says;
    } cases[] = {
        {{NULL, p->server.cert_file, p->server.key_file, NULL}, "--tls-ca"},
        {{p->server.ca_file, NULL, p->server.key_file, NULL}, "--tls-cert"},
        {{p->server.ca_file, p->server.cert_file, NULL, NULL}, "--tls-key"},
        {{"/nowhere/ca.pem", p->server.cert_file, p->server.key_file, NULL}, "/nowhere/ca.pem"},
        {{text, p->server.cert_file, p->server.key_file, NULL}, "notes.txt"},
        {{p->server.ca_file, text, p->server.key_file, NULL}, "notes.txt"},
        {{p->server.ca_file, p->server.cert_file, text, NULL}, "--tls-key"},
    };
    struct fx f;

    fx_open(&f, NULL);
    for (size_t i = 0; i < XF_ARRAY_LEN(cases); i++) {
        struct xf_bus_server_opts so = {.loop = f.loop,
                                        .url = "tls+tcp://localhost:0",
                                        .tls = cases[i].tls,
                                        .contexts = 1,
                                        .on_request = on_request};
        struct xf_bus_server *server = NULL;
        struct xf_err err = {0};

        assert_int_equal(xf_bus_listen(&so, &server, &err), XF_E_CONFIG);
        if (strstr(err.msg, cases[i].says) == NULL) {
            fail_msg("'%s' does not name %s", err.msg, cases[i].says);
        }
    }
    fx_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(call_is_answered_within_one_process),
        cmocka_unit_test(call_is_answered_over_loopback),
        cmocka_unit_test(answers_may_come_in_any_order),
        cmocka_unit_test(call_without_an_answer_ends_at_its_deadline),
        cmocka_unit_test(call_without_a_server_ends_at_its_deadline_and_dialing_goes_on),
        cmocka_unit_test(cancelled_call_is_never_told),
        cmocka_unit_test(request_too_large_is_refused_before_it_is_sent),
        cmocka_unit_test(request_larger_than_the_server_takes_never_arrives),
        cmocka_unit_test(request_is_sent_again_over_a_new_connection),
        cmocka_unit_test(client_without_a_connection_begins_anew_until_it_has_one),
        cmocka_unit_test(dropped_request_frees_its_context),
        cmocka_unit_test(closing_with_everything_under_way_leaks_nothing),
        cmocka_unit_test(address_in_use_is_told_with_the_remedy),
        cmocka_unit_test(plain_tcp_beyond_loopback_is_refused),
        cmocka_unit_test_setup_teardown(tls_needs_both_sides_certificates, pki_setup, pki_teardown),
        cmocka_unit_test_setup_teardown(
            tls_files_that_are_not_good_are_named, pki_setup, pki_teardown),
    };

    return xf_test_run("bus", tests, NULL, NULL);
}
