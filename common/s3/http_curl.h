/*
 * http_curl.h - what the two halves of the libcurl back end share: http_curl.c drives the multi
 * handle on the loop, http_curl_req.c is one request's callbacks. Private to common/s3.
 */
#ifndef XF_S3_HTTP_CURL_H
#define XF_S3_HTTP_CURL_H

#include "common/base/list.h"
#include "common/rt/loop.h"
#include "common/s3/http.h"
#include "common/s3/names.h"
#include "common/s3/uri.h"

#include <curl/curl.h>

struct xf_curl {
    struct xf_http http;
    struct xf_loop *loop;
    CURLM *multi;
    struct xf_timer timer; /* libcurl's next time-out */
    struct xf_timer sweep; /* looks for stalled requests */
    struct xf_timer kick;  /* deferred starts, cancels, resumes */
    struct xf_list active; /* requests whose on_done has not run */
    struct xf_list kicked; /* of them, those with something deferred */
    struct xf_list idle;   /* finished requests, kept with their easy handles */
    struct xf_list idle_watches;
    size_t n_active;
    size_t n_idle;
    bool in_curl; /* inside a libcurl call that may call back */
    struct xf_http_opts opts;
    int64_t sweep_ms;
    struct xf_names *names;
    struct xf_names *own_names; /* the process's, to be put back; NULL: the owner's are used */
    char wanted[XF_URI_HOST_MAX + 1]; /* the name that was told to be in use last */
    int64_t want_again_ms;
    char *ca_file;
    char *user_agent;
    char *noproxy;
};

struct xf_http_req {
    struct xf_list node;
    struct xf_list kick_node;
    struct xf_curl *owner;
    CURL *easy;
    const char *ca_default; /* without a file of the back end's or call's */
    bool has_own_ca;        /* the handle has a call's file */
    struct xf_http_call call;
    struct curl_slist *lines; /* nodes, an array; they point into the caller's lines */
    size_t cap_lines;

    bool in_multi;
    bool want_start;
    bool want_resume;
    bool cancelled;
    bool stopped;               /* a callback of the owner said so */
    int os_errno;               /* why no socket could be made; 0 */
    struct xf_names_addr tried; /* where its first connection went; len 0: it made none */
    unsigned n_elsewhere;       /* further addresses that were tried */

    struct xf_buf head;
    struct xf_http_header *headers; /* while the head comes only value.len: where a line starts */
    size_t cap_headers;
    size_t n_lines;
    struct xf_http_head parsed;
    bool head_done;
    bool says_close; /* the server closes the connection itself */
    bool pause_data; /* on_head asked for a pause */
    bool recv_paused;
    bool send_paused;

    uint64_t bytes_out;
    uint64_t bytes_in;
    uint64_t window_bytes; /* of both at the window's start */
    int64_t window_at_ms;
    bool is_waiting; /* the request is out, nothing came yet */
    struct xf_err err;
    char text[CURL_ERROR_SIZE];
};

/* A new request with an easy handle that has all lasting options. */
struct xf_http_req *xf_curl_req_new(struct xf_curl *owner);
void xf_curl_req_free(struct xf_http_req *req);

/* Make it ready for a call. False when libcurl refused an option; req->err says so. */
bool xf_curl_req_setup(struct xf_http_req *req, const struct xf_http_call *call);

/* libcurl has ended with an address that does not answer, and the name has another one: the
 * request, of which nothing was sent, is to be added again. */
bool xf_curl_req_goes_elsewhere(struct xf_http_req *req, CURLcode code);

/* What became of it, once libcurl has ended. */
void xf_curl_req_outcome(struct xf_http_req *req, CURLcode code, struct xf_http_done *done);

/* Look for a stall; true when there is one, with req->err set. */
bool xf_curl_req_is_stalled(struct xf_http_req *req, int64_t now_ms);

#endif
