/*
 * server.h - the server as a whole: options, shared state, threads. Tests may embed it.
 *
 *     struct s3d_opts o;
 *     s3d_opts_init(&o);
 *     ... s3d_server_new(&o, &server, &err); server->port; ... s3d_server_free(server);
 */
#ifndef XF_TESTS_S3D_SERVER_H
#define XF_TESTS_S3D_SERVER_H

#include "tests/s3d/context.h"

/** The defaults of --help. */
void s3d_opts_init(struct s3d_opts *o);
/** Load, listen, start the threads. XF_E_CONFIG or XF_E_INVAL with what is wrong. */
XF_MUST_CHECK enum xf_code
s3d_server_new(const struct s3d_opts *o, struct s3d_server **out, struct xf_err *err);
/** Stops the threads and closes every connection. */
void s3d_server_free(struct s3d_server *s);
XF_AUTO_DEFINE(s3d_server, s3d_server_free)
/** "http://127.0.0.1:12345" */
void s3d_server_url(const struct s3d_server *s, char *out, size_t cap);

#endif
