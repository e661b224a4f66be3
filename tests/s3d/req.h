/*
 * req.h - one request on its way: what was asked, what arrives with it, and the answer being made.
 *
 * Belongs to its connection. A handler (handlers.h) reads the request and fills the answer; one
 * that needs a long hash starts it with s3d_req_hash() and is called again at its resume function.
 */
#ifndef XF_TESTS_S3D_REQ_H
#define XF_TESTS_S3D_REQ_H

#include "tests/s3d/chunked.h"
#include "tests/s3d/fault.h"
#include "tests/s3d/intake.h"
#include "tests/s3d/store.h"

#define S3D_SMALL_MAX ((size_t)8 << 20)

struct s3d_server;

struct s3d_resp {
    int status;
    struct xf_buf headers; /* further header lines */
    struct xf_buf body;    /* XML or JSON */
    struct s3d_body *data; /* instead of body */
    uint64_t data_off;
    uint64_t data_len;
    bool has_length; /* HEAD: announce `length`, send nothing */
    uint64_t length;
    const char *content_type; /* NULL: none, or among headers */
    bool close;               /* end the connection afterwards */
    /* Long answers of the admin interface: called for more until it gives false; then chunked. */
    bool (*more)(void *arg, struct xf_buf *out);
    void (*more_free)(void *arg);
    void *more_arg;
};

struct s3d_req {
    struct s3d_server *server;
    struct s3d_http http;
    enum s3d_op op;
    bool admin;
    bool intake_on; /* which of the members below are in use */
    bool aws_on;
    bool has_decoded_length;
    bool hashing;
    bool obj_on;
    bool part_on;
    struct xf_buf dec; /* decoded texts */
    struct s3d_param params[S3D_QUERY_MAX];
    size_t n_params;
    struct xf_str bucket;
    struct xf_str key;
    int64_t start_ms; /* monotonic */
    int64_t wall_ms;  /* the server's clock */
    uint64_t id;
    struct s3d_auth auth;
    struct s3d_action act;
    struct s3d_rule *rule;
    uint64_t fault_epoch;

    struct s3d_intake intake; /* object data */
    struct xf_buf small;      /* an XML body */
    struct s3d_chunked aws;   /* aws-chunked decoder */
    uint64_t decoded_length;

    /* in the middle of a copy or a Complete */
    struct s3d_hash hash;
    void (*resume)(struct s3d_req *r);
    struct s3d_bucket *b;
    struct s3d_obj obj; /* being made */
    struct s3d_part part;
    struct s3d_attrs *part_attrs; /* of its upload */

    struct s3d_resp resp;
};

/** Value of a query parameter. */
bool s3d_req_query(const struct s3d_req *r, const char *name, struct xf_str *value);
/** A header that carries a condition: absent when the rule says to ignore conditions. */
bool s3d_req_cond(const struct s3d_req *r, const char *name, struct xf_str *value);
/** Hash `b` (and a checksum), then call `done` with r->hash finished. */
void s3d_req_hash(struct s3d_req *r,
                  struct s3d_body *b,
                  enum s3d_sum_alg sum,
                  void (*done)(struct s3d_req *r));
/** Take what a handler left behind. */
void s3d_req_release(struct s3d_req *r);

/** An Error document as the answer (no body for HEAD). */
void s3d_fail(struct s3d_req *r, const char *code, const char *message);
/** With further elements, as XML. */
void s3d_fail_extra(struct s3d_req *r, const char *code, const char *message, struct xf_str extra);
void s3d_fail_status(
    struct s3d_req *r, int status, const char *code, const char *message, struct xf_str extra);
/** Answer begins: status, XML type and XML head when `xml`. */
void s3d_ok(struct s3d_req *r, int status, bool xml);

#endif
