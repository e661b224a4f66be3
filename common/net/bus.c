/*
 * bus.c - what server and client of the bus share: URLs, TLS files, nng's errors.
 */
#include "common/net/bus.h"

#include "common/base/file.h"
#include "common/base/log.h"
#include "common/net/bus_int.h"
#include "common/rt/queue.h"
#include "common/rt/thread.h"

enum { PEM_MAX = 1024 * 1024, CLOSE_MS = 3000 };

static bool is_loopback(struct xf_str host)
{
    return xf_str_starts(host, XF_STR_LIT("127.")) || xf_str_eq_c(host, "localhost") ||
           xf_str_eq_c(host, "[::1]");
}

enum xf_code xf_bus_url_parse(const char *url, struct xf_bus_url *out, struct xf_err *err)
{
    static const char *const known[] = {"tcp://", "tls+tcp://", "ipc://", "inproc://"};
    struct xf_str rest = xf_str_c(url);
    size_t scheme = 0;
    size_t colon = SIZE_MAX;

    memset(out, 0, sizeof(*out));
    while (scheme < XF_ARRAY_LEN(known) && !xf_str_starts(rest, xf_str_c(known[scheme]))) {
        scheme++;
    }
    if (scheme == XF_ARRAY_LEN(known) || rest.len >= NNG_MAXADDRLEN) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "bad URL '%s': write tcp://127.0.0.1:PORT or tls+tcp://HOST:PORT",
                       url);
    }
    out->is_tls = scheme == 1;
    out->is_tcp = scheme <= 1;
    if (!out->is_tcp) {
        return XF_OK;
    }
    rest = xf_str_sub(rest, strlen(known[scheme]), rest.len);
    for (size_t i = 0; i < rest.len; i++) {
        colon = rest.ptr[i] == ':' ? i : colon;
    }
    if (colon == SIZE_MAX || colon + 1 == rest.len) {
        return XF_FAIL(err, XF_E_CONFIG, "bad URL '%s': the port is missing", url);
    }
    out->host = xf_str_sub(rest, 0, colon);
    if (!out->is_tls && !is_loopback(out->host)) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "plain tcp is for loopback only, not '%s': use tls+tcp:// with "
                       "certificates for other hosts",
                       url);
    }
    return XF_OK;
}

enum xf_code
xf_bus_fail(struct xf_err *err, enum xf_code code, int rv, const char *what, const char *url)
{
    if (rv == NNG_EADDRINUSE) {
        return XF_FAIL_SUB(err,
                           XF_E_LOCKED,
                           rv,
                           "%s '%s': the address is in use; stop the other program or choose "
                           "another port",
                           what,
                           url);
    }
    return XF_FAIL_SUB(err, code, rv, "%s '%s': %s", what, url, nng_strerror(rv));
}

static enum xf_code
read_pem(const char *path, const char *option, struct xf_buf *out, struct xf_err *err)
{
    if (path == NULL || path[0] == '\0') {
        return XF_FAIL(
            err, XF_E_CONFIG, "tls+tcp needs a CA, a certificate and a key: %s is missing", option);
    }
    if (xf_file_read(path, PEM_MAX, out, err) != XF_OK) {
        err->code = XF_E_CONFIG;
        return XF_WRAP(err, "%s", option);
    }
    if (memchr(out->ptr != NULL ? out->ptr : "", '\0', out->len) != NULL || out->len == 0) {
        return XF_FAIL(err, XF_E_CONFIG, "%s '%s' is not a PEM file", option, path);
    }
    return XF_OK;
}

static enum xf_code tls_fail(struct xf_err *err, int rv, const char *option, const char *path)
{
    return XF_FAIL_SUB(
        err, XF_E_CONFIG, rv, "%s '%s' cannot be used: %s", option, path, nng_strerror(rv));
}

static enum xf_code load_tls(nng_tls_config *cfg, const struct xf_bus_tls *tls, struct xf_err *err)
{
    XF_AUTO_BUF ca = {0};
    XF_AUTO_BUF cert = {0};
    XF_AUTO_BUF key = {0};
    enum xf_code rc;
    int rv;

    xf_buf_init(&ca, 0);
    xf_buf_init(&cert, 0);
    xf_buf_init(&key, 0);
    XF_TRY(read_pem(tls->ca_file, "--tls-ca", &ca, err));
    XF_TRY(read_pem(tls->cert_file, "--tls-cert", &cert, err));
    rc = read_pem(tls->key_file, "--tls-key", &key, err);
    if (rc == XF_OK) {
        rv = nng_tls_config_ca_chain(cfg, ca.ptr, NULL);
        if (rv != 0) {
            rc = tls_fail(err, rv, "--tls-ca", tls->ca_file);
        } else {
            rv = nng_tls_config_own_cert(cfg, cert.ptr, key.ptr, NULL);
            rc = rv != 0 ? tls_fail(err, rv, "--tls-cert or --tls-key", tls->cert_file) : XF_OK;
        }
    }
    if (key.ptr != NULL) {
        xf_wipe(key.ptr, key.len);
    }
    return rc;
}

enum xf_code xf_bus_tls_new(const struct xf_bus_url *url,
                            const struct xf_bus_tls *tls,
                            bool is_server,
                            nng_tls_config **out,
                            struct xf_err *err)
{
    XF_AUTO_FREE char *host = NULL;
    nng_tls_config *cfg;
    enum xf_code rc;
    int rv;

    *out = NULL;
    if (!url->is_tls) {
        return XF_OK;
    }
    rv = nng_tls_config_alloc(&cfg, is_server ? NNG_TLS_MODE_SERVER : NNG_TLS_MODE_CLIENT);
    if (rv != 0) {
        return XF_FAIL_SUB(err, XF_E_IO, rv, "cannot set up TLS: %s", nng_strerror(rv));
    }
    rc = load_tls(cfg, tls, err);
    if (rc == XF_OK) {
        rv = nng_tls_config_auth_mode(cfg, NNG_TLS_AUTH_MODE_REQUIRED);
        if (rv == 0 && !is_server) {
            host = tls->server_name != NULL ? xf_xstrdup(tls->server_name) : xf_str_dup(url->host);
            rv = nng_tls_config_server_name(cfg, host);
        }
        if (rv != 0) {
            rc = XF_FAIL_SUB(err, XF_E_CONFIG, rv, "cannot set up TLS: %s", nng_strerror(rv));
        }
    }
    if (rc != XF_OK) {
        nng_tls_config_free(cfg);
        return rc;
    }
    *out = cfg;
    return XF_OK;
}

nng_msg *xf_bus_msg(struct xf_str bytes)
{
    nng_msg *msg = NULL;

    if (nng_msg_alloc(&msg, 0) != 0) {
        return NULL;
    }
    if (nng_msg_append(msg, bytes.ptr, bytes.len) != 0) {
        nng_msg_free(msg);
        return NULL;
    }
    return msg;
}

struct closer {
    nng_socket sock;
    struct xf_queue *done;
    struct xf_thread thread;
};

static void run_close(void *arg)
{
    struct closer *c = arg;

    (void)nng_close(c->sock); /* only fails when it was closed before */
    xf_queue_push_reserved(c->done, c);
}

bool xf_bus_close_socket(nng_socket sock, bool is_busy)
{
    struct closer *c = xf_xcalloc(1, sizeof(*c));
    struct xf_err err = {0};

    c->sock = sock;
    if (xf_queue_new(1, &c->done, &err) != XF_OK) {
        (void)nng_close(sock); /* no descriptors left: close without the watch */
        xf_xfree(c);
        return true;
    }
    if (is_busy) {
        (void)xf_queue_pop_wait(c->done, XF_BUS_CALM_MS); /* nothing comes: it is a bounded wait */
    }
    if (xf_thread_start(&c->thread, "xf-bus-close", run_close, c, &err) != XF_OK) {
        run_close(c);
    }
    if (xf_queue_pop_wait(c->done, CLOSE_MS) == NULL) {
        XF_WARN("bus.close_stuck", xf_f_ms("waited_ms", CLOSE_MS));
        return false;
    }
    xf_thread_join(&c->thread);
    xf_queue_free(c->done);
    xf_xfree(c);
    return true;
}

static void run_discard(void *arg)
{
    nng_socket *sock = arg;

    (void)nng_close(*sock); /* only fails when it was closed before */
    xf_xfree(sock);
}

void xf_bus_discard_socket(nng_socket sock)
{
    nng_socket *copy = xf_xcalloc(1, sizeof(*copy));
    struct xf_thread thread = {0};
    struct xf_err err = {0};

    *copy = sock;
    if (xf_thread_start(&thread, "xf-bus-discard", run_discard, copy, &err) != XF_OK) {
        xf_xfree(copy); /* no thread to be had: the socket stays */
        XF_WARN("bus.discard_failed", xf_f_err(&err));
        return;
    }
    XF_ASSERT(pthread_detach(thread.id) == 0);
}
