/*
 * route.h - how requests leave this host: the proxy, who needs none, and the CAs that are trusted.
 *
 * The environment is where libcurl, the AWS chain and the programs of credential_process look, so
 * what a daemon's config says is put there, and one rule holds for every request of the process.
 * https_proxy, http_proxy and no_proxy (lower case first; HTTP_PROXY in capitals is not looked at,
 * since a web server's request could set it), AWS_CA_BUNDLE. Threads: xf_route_apply() before any
 * other is started.
 */
#ifndef XF_S3_ROUTE_H
#define XF_S3_ROUTE_H

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/str.h"

#include <stddef.h>

struct xf_route {
    struct xf_str proxy;
    struct xf_str no_proxy;
    struct xf_str ca_file;
};

/* The rows of a daemon's table, whose section [s3] they stand in; `at`: of its struct xf_route. */
#define XF_ROUTE_ROWS(at)                                                                          \
    {.name = "s3.ca_file",                                                                         \
     .type = XF_CONF_STRING,                                                                       \
     .offset = (at) + offsetof(struct xf_route, ca_file),                                          \
     .max = 4096,                                                                                  \
     .def_note = "AWS_CA_BUNDLE, else none",                                                       \
     .example = "\"/etc/ssl/private-ca.pem\"",                                                     \
     .help = "PEM file of CAs that are trusted beside the system's."},                             \
        {.name = "s3.proxy",                                                                       \
         .type = XF_CONF_STRING,                                                                   \
         .offset = (at) + offsetof(struct xf_route, proxy),                                        \
         .max = 1024,                                                                              \
         .def_note = "https_proxy and http_proxy of the environment",                              \
         .example = "\"http://proxy.example:3128\"",                                               \
         .help = "Proxy of all requests to S3 and STS. One that wants a password is given in the " \
                 "environment instead."},                                                          \
    {                                                                                              \
        .name = "s3.no_proxy", .type = XF_CONF_STRING,                                             \
        .offset = (at) + offsetof(struct xf_route, no_proxy), .max = 4096,                         \
        .def_note = "no_proxy of the environment", .example = "\"10.0.0.0/8,.example\"",           \
        .help = "Hosts, domains and networks that are reached without a proxy; this host and "     \
                "metadata services always are."                                                    \
    }

/**
 * Put it into the environment; what is empty stays as it is there.
 *
 * Errors: XF_E_CONFIG  the proxy is no URL of a proxy, or holds a user name.
 */
XF_MUST_CHECK enum xf_code xf_route_apply(const struct xf_route *r, struct xf_err *err);

/* Who is reached without a proxy, as libcurl wants it: the user's list and ours. */
void xf_route_no_proxy(struct xf_buf *out);

/* The environment's CA bundle; NULL: none. */
const char *xf_route_ca_file(void);

#endif
