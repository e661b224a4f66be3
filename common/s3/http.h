/*
 * http.h - the HTTP seam: finished requests in, heads and bytes out, on one loop.
 *
 * A call carries a finished URL, finished header lines and a body; nothing here signs, retries,
 * follows or decodes. The production back end is xf_http_curl_new() (libcurl multi on the loop);
 * tests may pass their own. Promises: no callback runs before xf_http_start() returned; on_done
 * runs exactly once for each started call, also after a cancel; after on_done the call is gone. A
 * body that is shorter or longer than its Content-Length never ends with XF_OK. Threads: everything
 * happens on the loop's thread.
 */
#ifndef XF_S3_HTTP_H
#define XF_S3_HTTP_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stddef.h>
#include <stdint.h>

struct xf_loop;
struct xf_names;
struct xf_http;
struct xf_http_req; /* a started call */

#define XF_HTTP_HEADERS_MAX    256           /* response header lines */
#define XF_HTTP_HEAD_MAX_BYTES (64U * 1024U) /* of all response header lines */
#define XF_HTTP_SIZE_UNKNOWN   UINT64_MAX

struct xf_http_header {
    struct xf_str name;  /* lower case */
    struct xf_str value; /* blanks trimmed; bytes as they came */
};

struct xf_http_head {
    int status;
    const struct xf_http_header *headers;
    size_t n_headers;
    uint64_t content_length; /* XF_HTTP_SIZE_UNKNOWN when not announced */
};

/* The first header of that lower-case name; false (and *value empty) when there is none. */
bool xf_http_head_get(const struct xf_http_head *head, const char *name, struct xf_str *value);

/* What the callbacks of a call may answer. */
enum xf_http_flow {
    XF_HTTP_GO,
    XF_HTTP_PAUSE, /* data: not taken, comes again after resume. pull: nothing yet; see resume */
    XF_HTTP_STOP, /* end the call; on_done gets XF_E_CANCELLED unless the owner set its own error */
};

struct xf_http_timing {
    int64_t connect_us;    /* 0 on a reused connection */
    int64_t first_byte_us; /* since the start; 0 when none came */
    int64_t total_us;
};

struct xf_http_done {
    struct xf_err err;  /* code XF_OK: a whole response came, whatever its status */
    int status;         /* 0: no head came */
    bool sent;          /* some of the request may have reached the server */
    uint64_t bytes_out; /* body bytes handed to the connection */
    uint64_t bytes_in;  /* body bytes received */
    struct xf_http_timing timing;
    char peer[64]; /* of failures: address and port, "" when never connected */
};

struct xf_http_call {
    const char *method; /* "GET", "PUT", "HEAD", ... static */
    const char *url;    /* NUL-terminated; copied */
    const char *const
        *lines; /* "Name: value" header lines, `Name;` for an empty value; borrowed until on_done */
    size_t n_lines;

    /* Request body: size 0 is none. Either bytes (borrowed until on_done) or pull. */
    uint64_t body_size;
    const char *body;
    /* Write at most cap bytes to buf and set *n (GO with *n == 0 is an error). Not called past
     * body_size. */
    enum xf_http_flow (*pull)(void *arg, char *buf, size_t cap, size_t *n);

    /* Response. The head is valid until on_done returns. Not called for 1xx. */
    enum xf_http_flow (*on_head)(void *arg, const struct xf_http_head *head);
    enum xf_http_flow (*on_data)(void *arg, const char *data, size_t len);
    void (*on_done)(void *arg, const struct xf_http_done *done);
    void *arg;

    /* 0: the back end's first_byte_ms and stall limits. Else a server that works long: so much to
     * the first byte, and between any two bytes of the answer, however few come. */
    int64_t patience_ms;
    const char
        *ca_file; /* PEM file in place of the back end's; borrowed until on_done; NULL: none */
    bool is_bulk; /* long bodies: larger buffers */
    /* Doing it twice is not the same as once. On a connection of its own: libcurl repeats a request
     * by itself when a reused connection closes without an answer. */
    bool is_once;
};

/* Limits of a back end. Zero fields take the default in brackets. */
struct xf_http_opts {
    int64_t connect_ms; /* [10,000] */
    int64_t
        first_byte_ms; /* [60,000] from the last body byte sent to the first byte of the answer */
    int64_t stall_window_ms; /* [60,000] fewer than stall_bytes in this window, either direction:
                                XF_E_STALLED */
    uint64_t stall_bytes;    /* [1,024] */
    int64_t conn_idle_ms;    /* [20,000] idle connections older than this are not used again */
    int64_t
        conn_age_ms; /* [300,000] nor those older than this: new connections see new addresses */
    int64_t dns_ms; /* [5,000] names are looked up again after this, and their addresses shuffled */
    unsigned max_conns;       /* [4,096] open connections of this back end; further calls wait */
    unsigned max_conns_host;  /* [0: no limit of its own] */
    struct xf_str ca_file;    /* [AWS_CA_BUNDLE] PEM; the system's folder of CAs stays trusted */
    struct xf_str user_agent; /* ["xfer"] */
    struct xf_names *names;   /* [the process's] borrowed */
    bool no_proxy;            /* ignore *_proxy of the environment */
};

/* The seam. */
struct xf_http_ops {
    struct xf_http_req *(*start)(void *self, const struct xf_http_call *call);
    void (*cancel)(void *self, struct xf_http_req *req);
    void (*resume)(void *self, struct xf_http_req *req);
    void (*free)(void *self);
};
struct xf_http {
    const struct xf_http_ops *ops;
    void *self;
};

/**
 * The libcurl back end on this loop (borrowed; must live longer).
 *
 * Errors: XF_E_INVAL  ca_file cannot be read.
 */
enum xf_code xf_http_curl_new(struct xf_loop *loop,
                              const struct xf_http_opts *o,
                              struct xf_http **out,
                              struct xf_err *err);
/* Every call must have ended (cancel, then let the loop run until the last on_done). */
void xf_http_free(struct xf_http *http);
XF_AUTO_DEFINE(xf_http, xf_http_free)

/* Never fails by itself: what is wrong comes to on_done. Fields of `call` are copied but for what
 * is said above. */
struct xf_http_req *xf_http_start(struct xf_http *http, const struct xf_http_call *call);
/* on_done comes with XF_E_CANCELLED from the loop, unless the call ends by itself before. No other
 * callback runs. */
void xf_http_cancel(struct xf_http *http, struct xf_http_req *req);
/* Go on after XF_HTTP_PAUSE, whichever side paused. May be called from anywhere on the loop's
 * thread. */
void xf_http_resume(struct xf_http *http, struct xf_http_req *req);

#endif
