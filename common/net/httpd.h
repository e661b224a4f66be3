/*
 * httpd.h - a small read-only HTTP server on a loop: metrics, status, health, one page.
 *
 * Routes are a table. Only GET and HEAD without a body are served; heads, connections and idle time
 * are bounded. A handler answers at once or later (a status that the store reads first), exactly
 * once; the server never blocks the loop's thread. Threads: one owner, the loop's thread.
 */
#ifndef XF_NET_HTTPD_H
#define XF_NET_HTTPD_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdint.h>

struct xf_loop;
struct xf_httpd;
struct xf_httpd_req; /* a request that waits for its answer */

struct xf_httpd_route {
    const char *path; /* "/metrics"; with '*' at the end: any rest, which is handed over */
    void (*handle)(void *arg, struct xf_httpd_req *req, struct xf_str rest);
};

struct xf_httpd_opts {
    struct xf_loop *loop;
    const char *listen;                  /* "127.0.0.1:7680", "[::1]:0", "localhost:7680" */
    const struct xf_httpd_route *routes; /* borrowed for the server's life */
    size_t n_routes;
    void *arg;          /* of the handlers */
    unsigned max_conns; /* 0: 256 */
};

/**
 * Listen and serve.
 *
 * Errors: XF_E_CONFIG  the address is not of the form ADDR:PORT.
 *         XF_E_IO      it cannot be bound; the text says what to do.
 */
XF_MUST_CHECK enum xf_code
xf_httpd_new(const struct xf_httpd_opts *o, struct xf_httpd **out, struct xf_err *err);

/* Requests that still wait are answered with 503 and must not be replied to afterwards. */
void xf_httpd_free(struct xf_httpd *h);
XF_AUTO_DEFINE(xf_httpd, xf_httpd_free)

/* "127.0.0.1:40001": the address with the port that the kernel chose. Valid until free. */
const char *xf_httpd_address(const struct xf_httpd *h);
bool xf_httpd_is_loopback(const struct xf_httpd *h);

/* Answer. `body` is copied; `type` is static, as "application/json". */
void xf_httpd_reply(struct xf_httpd_req *req, int status, const char *type, struct xf_str body);

#endif
