/*
 * bus.h - requests and replies between processes: bytes in, bytes out, on the owner's loop.
 *
 * The only module that knows nng. URLs: tcp://HOST:PORT (loopback only), tls+tcp://HOST:PORT,
 * ipc://PATH, inproc://NAME. Port 0 lets the kernel choose.
 *
 * Delivery: a request may arrive more than once (its connection broke and it was sent again, or the
 * caller repeats it); what it means is the receiver's matter. A reply reaches the call it answers
 * or nobody. Both sides bound the size of a message; a larger one ends the connection.
 * Threads: a server or client belongs to its loop's thread. Block signals before the first one is
 * made, since nng starts threads of its own.
 */
#ifndef XF_NET_BUS_H
#define XF_NET_BUS_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/rt/loop.h"

#include <stdint.h>

enum {
    XF_BUS_CONTEXTS = 2200,             /* default: open requests at a time at a server */
    XF_BUS_BYTES_MAX = 16 * 1024 * 1024 /* default: of one message */
};

/* Files in PEM. All three are needed for tls+tcp; ignored for the others. */
struct xf_bus_tls {
    const char *ca_file;     /* who signs the peers' certificates */
    const char *cert_file;   /* our certificate, and what is between it and the CA */
    const char *key_file;    /* its key, not encrypted */
    const char *server_name; /* client: name in the server's certificate; NULL: the URL's host */
};

/* ---- server ---- */

struct xf_bus_server; /* opaque */

/** bytes: borrowed for the call. Each token is answered or dropped exactly once. */
typedef void(xf_bus_request_fn)(void *arg, uint64_t token, struct xf_str bytes);

struct xf_bus_server_opts {
    struct xf_loop *loop;
    const char *url;
    struct xf_bus_tls tls;
    size_t contexts;  /* 0: XF_BUS_CONTEXTS. More open requests wait in their connections. */
    size_t bytes_max; /* 0: XF_BUS_BYTES_MAX */
    xf_bus_request_fn *on_request;
    void *arg;
};

/**
 * Listen; requests are taken from the next turn of the loop on.
 *
 * Errors, with the remedy in the text: XF_E_LOCKED  the address is in use.
 *         XF_E_CONFIG  bad URL, plain tcp beyond loopback, TLS files missing or not good.
 *         XF_E_IO      the system refuses.
 */
XF_MUST_CHECK enum xf_code xf_bus_listen(const struct xf_bus_server_opts *opts,
                                         struct xf_bus_server **out,
                                         struct xf_err *err);
/** Requests still open are forgotten; no callback runs after this. Not inside a callback of it. */
void xf_bus_server_close(struct xf_bus_server *b);
XF_AUTO_DEFINE(xf_bus_server, xf_bus_server_close)
/** The URL with the port that was chosen. */
const char *xf_bus_server_url(const struct xf_bus_server *b);
/** Answer; bytes are copied. Above bytes_max nothing is sent, and the caller's deadline ends it. */
void xf_bus_reply(struct xf_bus_server *b, uint64_t token, struct xf_str bytes);
/** Never answer it. */
void xf_bus_drop(struct xf_bus_server *b, uint64_t token);

/* ---- client ---- */

struct xf_bus_client; /* opaque */

/**
 * code   XF_OK with the reply's bytes (borrowed for the call); XF_E_TIMEOUT: no answer before the
 *        deadline, and it is unknown whether the request arrived; XF_E_LIMIT: larger than
 *        bytes_max, never sent; XF_E_NET: the bus gave it up.
 */
typedef void(xf_bus_done_fn)(void *arg, enum xf_code code, struct xf_str bytes);

struct xf_bus_client_opts {
    struct xf_loop *loop;
    const char *url;
    struct xf_bus_tls tls;
    size_t bytes_max;     /* 0: XF_BUS_BYTES_MAX */
    int64_t resend_ms;    /* a request is sent again on the same connection after; 0: 10 minutes */
    int64_t redial_ms;    /* not connected for so long: begin anew, see below; 0: 2 minutes */
    int64_t reconnect_ms; /* longest time between two tries to connect; 0: 2 s */
    void (*on_link)(void *arg, bool up); /* NULL, or called when the connection came or went */
    void *arg;
};

/**
 * Begin to connect; an absent server is not an error, the bus keeps trying.
 *
 * nng 1.5.2 can lose track of a connection that breaks while data arrives, and then never makes
 * another. So after redial_ms without one the client drops its socket and opens a new one; calls
 * that are open then end with XF_E_NET.
 *
 * Errors: XF_E_CONFIG, XF_E_IO as in xf_bus_listen().
 */
XF_MUST_CHECK enum xf_code
xf_bus_dial(const struct xf_bus_client_opts *opts, struct xf_bus_client **out, struct xf_err *err);
/** Calls still open are forgotten; no callback runs after this. Not inside a callback of it. */
void xf_bus_client_close(struct xf_bus_client *c);
XF_AUTO_DEFINE(xf_bus_client, xf_bus_client_close)

/**
 * Send a request; bytes are copied. Waits for a connection when there is none.
 * deadline_ms: monotonic. Gives an id for xf_bus_cancel(), never 0. `done` runs exactly once,
 * later.
 */
uint64_t xf_bus_call(struct xf_bus_client *c,
                     struct xf_str bytes,
                     int64_t deadline_ms,
                     xf_bus_done_fn *done,
                     void *arg);
/** Its `done` will not run. Harmless after `done` ran. */
void xf_bus_cancel(struct xf_bus_client *c, uint64_t id);
/** Close the connection, soon, and make a new one: for a peer that does not answer. */
void xf_bus_hang_up(struct xf_bus_client *c);
bool xf_bus_is_up(const struct xf_bus_client *c);

/* The seams that hub and link use, so that tests can put a bus of their own between them. */
struct xf_bus_caller {
    uint64_t (*call)(
        void *bus, struct xf_str bytes, int64_t deadline_ms, xf_bus_done_fn *done, void *arg);
    void (*cancel)(void *bus, uint64_t id);
    void (*hang_up)(void *bus);
    void *bus;
};
struct xf_bus_answerer {
    void (*reply)(void *bus, uint64_t token, struct xf_str bytes);
    void (*drop)(void *bus, uint64_t token);
    void *bus;
};
struct xf_bus_caller xf_bus_client_caller(struct xf_bus_client *c);
struct xf_bus_answerer xf_bus_server_answerer(struct xf_bus_server *b);

#endif
