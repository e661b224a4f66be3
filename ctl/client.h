/*
 * client.h - an operator's connection to a coordinator: one request at a time, each with a
 * deadline.
 *
 * For programs without a loop of their own: xfer's command line. A request that gets no reply in
 * time is XF_E_UNREACHABLE; what it did is then unknown, so every request is safe to repeat
 * (PROTOCOL.md). Threads: one owner.
 */
#ifndef XF_CTL_CLIENT_H
#define XF_CTL_CLIENT_H

#include "common/base/arena.h"
#include "common/base/mem.h"
#include "proto/msg.h"

struct xf_client; /* opaque */

struct xf_client_opts {
    const char *url;    /* the coordinator's --listen URL; also inproc:// */
    const char *token;  /* operator's token, NULL: none */
    const char *tls_ca; /* files for tls+tcp://, NULL: none */
    const char *tls_cert;
    const char *tls_key;
};

enum {
    XF_CLIENT_DEADLINE_MS = 10 * 1000,        /* a coordinator that is there answers at once */
    XF_CLIENT_SUBMIT_DEADLINE_MS = 90 * 1000, /* submit waits for probes of both sides */
};

/** Errors: XF_E_INVAL (URL), XF_E_TLS, XF_E_IO. The connection itself is made by the first call. */
XF_MUST_CHECK enum xf_code
xf_client_open(const struct xf_client_opts *opts, struct xf_client **out, struct xf_err *err);
void xf_client_close(struct xf_client *c);
XF_AUTO_DEFINE(xf_client, xf_client_close)

struct xf_client_ask {
    enum xf_kind kind;
    const void *msg; /* the kind's struct (proto/msg.h) */
    int64_t deadline_ms;
};

/**
 * Send a request and wait for its reply.
 *
 * reply  the kind's struct; its strings live in the arena.
 * Errors: XF_E_UNREACHABLE  no reply in time.  XF_E_PROTO, XF_E_VERSION.
 *         Any other         what the coordinator answered, with its text.
 */
XF_MUST_CHECK enum xf_code xf_client_call(struct xf_client *c,
                                          const struct xf_client_ask *ask,
                                          struct xf_arena *arena,
                                          void *reply,
                                          struct xf_err *err);

#endif
