/*
 * httpget.h - a small blocking HTTP client over plain sockets, independent of the code under test.
 */
#ifndef XF_TESTS_LIB_HTTPGET_H
#define XF_TESTS_LIB_HTTPGET_H

#include "common/base/str.h"

/*
 * GET http://<IPv4 address>:<port>/path. Gives the status and appends the body to `body` (NULL: not
 * wanted); -1 when there is no connection or no complete answer within 10 s. HTTP/1.0, no
 * redirects.
 */
int xf_httpget(const char *url, struct xf_buf *body);

/* Any method with a request body, which may be empty. */
int xf_httpget_send(const char *method,
                    const char *url,
                    struct xf_str request,
                    struct xf_buf *body);

#endif
