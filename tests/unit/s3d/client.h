/*
 * client.h - a blocking HTTP client for the tests of s3d, and an embedded server to talk to.
 */
#ifndef XF_TESTS_UNIT_S3D_CLIENT_H
#define XF_TESTS_UNIT_S3D_CLIENT_H

#include "tests/s3d/server.h"

struct reply {
    int status; /* 0: no answer came */
    struct xf_buf head;
    struct xf_buf body;
    bool complete; /* the body had the length announced, or ended with its last chunk */
    bool reset;    /* the connection ended by a reset */
};

/** A server without signatures and with these options on top; the test fails when it does not
 * start. */
struct s3d_server *server_start(const struct s3d_opts *o);
/** Options of such a server, with an empty bucket "bkt" and "dst". */
void server_opts(struct s3d_opts *o);

/** One request on a connection of its own. headers: lines with CR LF, or "". The reply is for
 * reply_fini. */
void ask(struct s3d_server *s,
         const char *method,
         const char *target,
         const char *headers,
         struct xf_str body,
         struct reply *r);
void reply_fini(struct reply *r);
/** Ask, check the status, give the body's text (to be freed), or NULL when `want` is 0 and none
 * came. */
char *must(struct s3d_server *s,
           const char *method,
           const char *target,
           const char *headers,
           const char *body,
           int want);
/** must() without the text. */
void does(struct s3d_server *s,
          const char *method,
          const char *target,
          const char *headers,
          const char *body,
          int want);
/** Text between <name> and </name>, first one; "" when absent. Freed by the caller. */
char *tag(const char *xml, const char *name);
/** Value of a header of the reply; "" when absent. Freed by the caller. */
char *header(const struct reply *r, const char *name);
/** n bytes of c. */
char *fill(char c, size_t n);

#endif
