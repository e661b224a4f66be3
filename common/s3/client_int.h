/*
 * client_int.h - one S3 operation inside the client. Private to common/s3.
 *
 * client_ops.c fills a request (path, query, headers, body, what to expect); client.c signs and
 * sends it; client_again.c repeats it when it may; client_reply.c reads the answer and decides what
 * it means; client_body.c feeds the request's body.
 */
#ifndef XF_S3_CLIENT_INT_H
#define XF_S3_CLIENT_INT_H

#include "common/base/arena.h"
#include "common/base/list.h"
#include "common/rt/loop.h"
#include "common/s3/client.h"
#include "common/s3/creds.h"
#include "common/s3/customer.h"
#include "common/s3/s3err.h"
#include "common/s3/sigv4.h"

#define XF_CLIENT_HEADERS_MAX 200
#define XF_CLIENT_QUERY_MAX   12
#define XF_CLIENT_XML_MAX     8             /* parsers kept for the next answers */
#define XF_CLIENT_CHUNK       (64U * 1024U) /* bytes of a signed chunk */

/* Where a bucket is, when that is not where the client was told. */
struct xf_client_place {
    struct xf_list node;
    char *bucket;
    char region[XF_URI_REGION_MAX + 1];
    struct xf_uri_endpoint endpoint;
    int64_t until_ms; /* mono; 0: for good */
};

struct xf_s3 {
    struct xf_s3_opts opts;
    char *region;
    char *ca_file; /* NULL: the back end's */
    struct xf_customer_key customer_key;
    struct xf_sigv4 *signer;
    struct xf_creds *creds; /* NULL: anonymous */
    int64_t creds_read_ms;  /* mono; when the source was last read */
    int64_t clock_offset_ms;
    struct xf_list active;
    struct xf_list idle;
    struct xf_list failed; /* refused before they were sent; their done waits for the timer */
    struct xf_timer timer;
    struct xf_list waiting; /* for newer keys */
    struct xf_timer look;   /* are they there? */
    struct xf_list places;  /* learnt ones */
    struct xf_xml *xml[XF_CLIENT_XML_MAX];
    size_t n_xml;
    size_t n_active;
    size_t n_idle;
};

/* What a request's answer must be like. */
struct xf_client_want {
    bool is_write;  /* an unclear end leaves open whether it was done */
    bool is_ranged; /* get */
    uint64_t offset;
    uint64_t len;         /* get: bytes of the range */
    uint64_t object_size; /* get: XF_HTTP_SIZE_UNKNOWN */
    struct xf_str if_match;
    bool if_absent;        /* copy: a condition on the destination */
    bool is_pinned;        /* copy: a condition on the source */
    uint64_t copy_bytes;   /* what a copy moves inside the service; XF_HTTP_SIZE_UNKNOWN */
    enum xf_xml_root root; /* of a good answer's body; XF_XML_NONE: it has none that matters */
};

struct xf_s3_req {
    struct xf_list node;
    struct xf_s3 *s3;
    enum xf_s3_op op;
    enum xf_s3err_kind kind;
    const char *method;
    xf_s3_done_fn *done;
    void *arg;
    struct xf_http_req *http; /* NULL: not sent (yet) */

    /* the request, as client_ops.c made it; strings live in the arena */
    struct xf_arena arena;
    struct xf_buf name; /* bucket/key, for texts */
    struct xf_buf path;
    struct xf_buf host;
    struct xf_str bucket;
    const struct xf_client_place *place; /* NULL: as the client was told */
    struct xf_sigv4_pair query[XF_CLIENT_QUERY_MAX];
    size_t n_query;
    struct xf_sigv4_pair *headers; /* signed */
    size_t n_headers;
    size_t cap_headers;
    struct xf_s3_body body;
    struct xf_buf body_text; /* of our own bodies */
    bool own_body;
    struct xf_s3_sink sink;
    struct xf_client_want want;
    struct xf_err refused; /* an option was wrong */

    /* as sent */
    struct xf_creds *creds;
    struct xf_buf url;
    struct xf_buf lines_text;
    const char **lines;
    size_t cap_lines;
    struct xf_buf auth;
    int64_t signed_wall_ms;
    bool is_chunked;
    struct xf_sigv4_chunks chunks;
    struct xf_buf chunk; /* raw bytes of the present chunk */
    struct xf_buf framed;
    size_t framed_at;
    uint64_t pulled; /* bytes taken from the caller's pull */

    /* the answer */
    struct xf_xml *xml;
    bool xml_bad;  /* the body is no document */
    bool is_error; /* the status says so */
    uint64_t body_bytes;
    uint64_t expect_bytes; /* get: so many will come */
    struct xf_str header_code;
    struct xf_str location; /* of a redirect; empty: none */
    bool is_composite;      /* the answer's x-amz-checksum-type */
    struct xf_s3_attrs attrs;
    struct xf_s3_result res;
    struct xf_err own; /* found by us while the answer came */

    /* repeats */
    int64_t wait_until_ms;
    struct xf_s3_req *lookup; /* of the bucket, for its region; NULL: none in flight */
    unsigned n_moves;         /* redirects followed */
    bool is_https;
    bool clock_fixed;
    bool creds_renewed;
    bool has_looked;
    bool is_lookup;
    bool cancelled;
};

/* client.c */
struct xf_s3_req *xf_client_req(struct xf_s3 *s3,
                                enum xf_s3_op op,
                                const char *method,
                                enum xf_s3err_kind kind,
                                xf_s3_done_fn *done,
                                void *arg);
void xf_client_target(struct xf_s3_req *req, struct xf_str bucket, struct xf_str key);
void xf_client_query(struct xf_s3_req *req, const char *name, struct xf_str value);
void xf_client_query_u64(struct xf_s3_req *req, const char *name, uint64_t value);
/* The name is static, lower case. */
void xf_client_header(struct xf_s3_req *req, const char *name, struct xf_str value);
void xf_client_refuse(struct xf_s3_req *req, const char *what);
struct xf_s3_req *xf_client_launch(struct xf_s3_req *req);

/* The server's clock, as far as it is known. */
int64_t xf_client_wall_ms(const struct xf_s3 *s3);
/* What the request is signed for. */
const char *xf_client_region(const struct xf_s3_req *req);
/* Host and scheme of the request, by what is known of its bucket. */
void xf_client_aim(struct xf_s3_req *req);
/* After a wait: send it again, or end it with its result. */
void xf_client_go_on(struct xf_s3_req *req, bool again);

/* client_again.c */
enum xf_client_again {
    XF_CLIENT_END,
    XF_CLIENT_AGAIN, /* send it again now */
    XF_CLIENT_WAIT   /* xf_client_go_on() comes from the loop */
};
/* What to do with a request that has its answer. */
enum xf_client_again xf_client_again(struct xf_s3_req *req);
enum xf_code xf_client_read_creds(struct xf_s3 *s3, struct xf_err *err);
/* Keys that end soon are read again. */
void xf_client_renew_ahead(struct xf_s3 *s3);
void xf_client_on_look(struct xf_timer *t);
/* What was learnt of a bucket; NULL: nothing. */
const struct xf_client_place *xf_client_place_of(struct xf_s3 *s3, struct xf_str bucket);
void xf_client_places_free(struct xf_s3 *s3);

/* client_body.c */
bool xf_client_body_is_chunked(const struct xf_s3_req *req);
uint64_t xf_client_body_size(const struct xf_s3_req *req);
bool xf_client_body_rewind(struct xf_s3_req *req);
enum xf_http_flow xf_client_body_pull(void *arg, char *buf, size_t cap, size_t *n);

/* client_reply.c */
void xf_client_reply_reset(struct xf_s3_req *req);
/* Give the parser back; the result is no longer looked at. */
void xf_client_reply_drop(struct xf_s3_req *req);
enum xf_http_flow xf_client_reply_head(void *arg, const struct xf_http_head *head);
enum xf_http_flow xf_client_reply_data(void *arg, const char *data, size_t len);
/* Decide what the end means; fills req->res. */
void xf_client_reply_end(struct xf_s3_req *req, const struct xf_http_done *done);

#endif
