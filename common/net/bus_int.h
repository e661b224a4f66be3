/*
 * bus_int.h - what bus_server.c and bus_client.c share: URLs, TLS, errors of nng.
 */
#ifndef XF_NET_BUS_INT_H
#define XF_NET_BUS_INT_H

#include "common/net/bus.h"

#include <nng/nng.h>
#include <nng/supplemental/tls/tls.h>

struct xf_bus_url {
    bool is_tls;
    bool is_tcp; /* with or without TLS */
    struct xf_str host;
};

/** Scheme and host; refuses plain tcp beyond loopback. XF_E_CONFIG. */
XF_MUST_CHECK enum xf_code
xf_bus_url_parse(const char *url, struct xf_bus_url *out, struct xf_err *err);

/** An error of nng as ours; what: "cannot listen on 'tcp://...'". */
enum xf_code
xf_bus_fail(struct xf_err *err, enum xf_code code, int rv, const char *what, const char *url);

/** NULL and XF_OK when the URL needs none. The caller frees with nng_tls_config_free(). */
XF_MUST_CHECK enum xf_code xf_bus_tls_new(const struct xf_bus_url *url,
                                          const struct xf_bus_tls *tls,
                                          bool is_server,
                                          nng_tls_config **out,
                                          struct xf_err *err);

/** A message with these bytes, or NULL when there is no memory for it. */
nng_msg *xf_bus_msg(struct xf_str bytes);

/* A transfer that goes on in the instant its connection is closed is lost inside nng 1.5.2, which
 * then waits for it for ever. So what is in motion gets this long to end first. */
enum { XF_BUS_CALM_MS = 30 };

/**
 * Close a socket whose contexts are stopped. is_busy: messages may be in motion.
 *
 * Runs on a thread of its own under a deadline, after XF_BUS_CALM_MS when busy. False: it is stuck,
 * nothing of it may be freed.
 */
bool xf_bus_close_socket(nng_socket sock, bool is_busy);

/** Close it on a thread that nobody waits for. */
void xf_bus_discard_socket(nng_socket sock);

#endif
