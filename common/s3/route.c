/*
 * route.c - a daemon's config of proxies and CAs, in the environment.
 */
#include "common/s3/route.h"

#include "common/base/mem.h"
#include "common/s3/uri.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* No proxy can reach this host's own addresses, and none may see what metadata services say. */
#define NEVER_PROXIED                                                              \
    "localhost,127.0.0.0/8,::1,169.254.169.254,169.254.170.2,169.254.170.23,fd00:" \
    "ec2::254,fd00:ec2::23"

static const char *variable(const char *name)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment after the start */
    const char *value = getenv(name);

    return value != NULL && value[0] != '\0' ? value : NULL;
}

static enum xf_code put(const char *name, struct xf_str value, struct xf_err *err)
{
    XF_AUTO_FREE char *text = xf_str_dup(value);

    /* NOLINTNEXTLINE(concurrency-mt-unsafe): before any other thread is started */
    if (value.len > 0 && setenv(name, text, 1) != 0) {
        return XF_FAIL_SUB(err, XF_E_IO, errno, "cannot set %s", name);
    }
    return XF_OK;
}

enum xf_code xf_route_apply(const struct xf_route *r, struct xf_err *err)
{
    struct xf_uri_endpoint at;
    struct xf_err why;

    if (r->proxy.len > 0 && xf_uri_endpoint_parse(r->proxy, &at, &why) != XF_OK) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "s3.proxy must be like http://HOST:PORT; one that wants a user name and "
                       "password is given as https_proxy and http_proxy in the environment");
    }
    XF_TRY(put("https_proxy", r->proxy, err));
    XF_TRY(put("http_proxy", r->proxy, err));
    XF_TRY(put("no_proxy", r->no_proxy, err));
    return put("AWS_CA_BUNDLE", r->ca_file, err);
}

void xf_route_no_proxy(struct xf_buf *out)
{
    const char *given = variable("no_proxy");

    given = given != NULL ? given : variable("NO_PROXY");
    xf_buf_reset(out);
    if (given != NULL && strcmp(given, "*") == 0) {
        xf_buf_put_c(out, "*");
        return;
    }
    if (given != NULL) {
        xf_buf_put_c(out, given);
        xf_buf_put_byte(out, ',');
    }
    xf_buf_put_c(out, NEVER_PROXIED);
}

const char *xf_route_ca_file(void)
{
    return variable("AWS_CA_BUNDLE");
}
