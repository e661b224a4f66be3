/*
 * names.h - all addresses of an endpoint's name, and whose turn it is.
 *
 * libcurl asks a resolver again every few seconds and then opens all connections to the first
 * address of the answer, so hundreds of lanes that begin together meet at one. Here a name's
 * addresses are known to the whole process: new connections take them in turn, one that does not
 * answer is avoided for a while, and the name is looked up again while it is in use. Lookups block
 * on short threads of their own. Threads: any.
 */
#ifndef XF_S3_NAMES_H
#define XF_S3_NAMES_H

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <netinet/in.h>

#define XF_NAMES_ADDRS_MAX 64 /* of a name; more are not used */

struct xf_names;

struct xf_names_addr {
    socklen_t len;
    union {
        struct sockaddr any; /* its family tells */
        struct sockaddr_in ip4;
        struct sockaddr_in6 ip6;
    } u;
};

struct xf_names_opts {
    /* Addresses of a name, of at most `max`; their number, 0: none. Blocks. NULL: getaddrinfo(). */
    size_t (*lookup)(void *arg, const char *host, struct xf_names_addr *out, size_t max);
    void *arg;
    const struct xf_clock *clock; /* NULL: real */
};

/* A set of names of its own; counted like the process's. */
struct xf_names *xf_names_new(const struct xf_names_opts *o);
/* The process's, for xf_names_put(). */
struct xf_names *xf_names_get(void);
void xf_names_put(struct xf_names *names); /* NULL is fine */
XF_AUTO_DEFINE(xf_names, xf_names_put)

/* The name is in use: have it looked up, when that was not done lately. */
void xf_names_want(struct xf_names *names, struct xf_str host);

/**
 * Whose turn is it? `addr` is what a resolver offers (with its port), and is replaced by the next
 * good address of the name and family. It stays when it is none of the name's, such as a proxy's,
 * or when the name has no other.
 */
void xf_names_turn(struct xf_names *names, struct xf_str host, struct xf_names_addr *addr);

/* It did not answer: avoided for half a minute, where the name has others. True when another one of
 * its name and family is good. */
bool xf_names_bad(struct xf_names *names, const struct xf_names_addr *addr);

#endif
