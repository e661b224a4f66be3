/*
 * client.h - S3 operations on a loop, for the lister and the agents' lanes.
 *
 * A struct xf_s3 is one side of a job on one loop: endpoint, region, addressing, credentials. Each
 * operation copies its options (bodies excepted, see struct xf_s3_body), starts, and calls `done`
 * exactly once, never before it returned, also for options that are wrong and after a cancel.
 * Retries are the caller's; the client repeats a request by itself only once each for a clock that
 * is off (the offset is kept) and for keys that have ended (newer ones are asked for), and up to
 * three times for a bucket that is in another region or host (see client_again.c), which it
 * remembers. Where a body cannot begin anew, such a request ends with XF_E_BUSY instead. Threads:
 * one owner, the loop's thread.
 */
#ifndef XF_S3_CLIENT_H
#define XF_S3_CLIENT_H

#include "common/base/clock.h"
#include "common/base/err.h"
#include "common/s3/client_ops.h"
#include "common/s3/http.h"
#include "common/s3/result.h"
#include "common/s3/uri.h"

struct xf_creds_source;
struct xf_customer_key;
struct xf_loop;

struct xf_s3_opts {
    struct xf_loop *loop;
    struct xf_http *http;         /* borrowed; several clients of a loop share one */
    const struct xf_clock *clock; /* NULL: real */
    struct xf_uri_endpoint endpoint;
    struct xf_str region; /* signed for */
    enum xf_uri_style style;
    struct xf_creds_source *creds; /* owned from here on, also when new fails; NULL: anonymous */
    bool requester_pays;
    bool is_region_fixed;  /* a bucket in another region is an error, not looked for */
    struct xf_str ca_file; /* of the endpoint's certificate; copied; empty: the back end's */
    const struct xf_customer_key *customer_key; /* SSE-C, for all objects; copied; NULL: none */
    bool unsigned_payload_http; /* UNSIGNED-PAYLOAD over plain HTTP too (loopback and trusted
                                   networks) */
    int64_t slow_first_byte_ms; /* longest for Copy, UploadPartCopy, Complete: the server works; 0:
                                   600,000 */
    uint64_t expect_bytes; /* bodies from this size on ask first (Expect: 100-continue); 0: never */
    void (*on_done)(void *arg, enum xf_s3_op op, enum xf_code code, int status, int64_t took_us);
    void *on_done_arg; /* for metrics; once per operation, before its done */
};

/**
 * Errors: XF_E_INVAL  an option is missing or out of range.
 *         XF_E_CREDS  the source has nothing; the text says where it looked.
 */
enum xf_code xf_s3_new(const struct xf_s3_opts *o, struct xf_s3 **out, struct xf_err *err);
/* Every operation must have ended. */
void xf_s3_free(struct xf_s3 *s3);
XF_AUTO_DEFINE(xf_s3, xf_s3_free)

/* done comes with XF_E_CANCELLED from the loop; the sink and the body are not touched again. */
void xf_s3_cancel(struct xf_s3_req *req);
/* Go on after a sink or pull answered XF_HTTP_PAUSE. */
void xf_s3_resume(struct xf_s3_req *req);
/* Operations whose done has not run. */
size_t xf_s3_in_flight(const struct xf_s3 *s3);
int64_t
xf_s3_clock_offset_ms(const struct xf_s3 *s3); /* server minus local, learnt from skew errors */
const struct xf_uri_endpoint *xf_s3_endpoint(const struct xf_s3 *s3);
struct xf_str xf_s3_region(const struct xf_s3 *s3);

#endif
