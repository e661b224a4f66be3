/*
 * uri.c - endpoints, addressing style, paths, Host values and copy sources.
 *
 * AWS's naming rules are tables here: partitions by region prefix with their DNS suffix.
 */
#include "common/s3/uri.h"

#include "common/base/mem.h"

#include <arpa/inet.h>

struct partition {
    const char *prefix; /* of the region's name */
    const char *name;
    const char *suffix; /* of host names */
};

/* Longer prefixes first; the first match counts. */
static const struct partition partitions[] = {
    {"cn-", "aws-cn", "amazonaws.com.cn"},
    {"us-gov-", "aws-us-gov", "amazonaws.com"},
    {"eusc-", "aws-eusc", "amazonaws.eu"},
    {"us-iso-", "aws-iso", "c2s.ic.gov"},
    {"us-isob-", "aws-iso-b", "sc2s.sgov.gov"},
    {"eu-isoe-", "aws-iso-e", "cloud.adc-e.uk"},
    {"us-isof-", "aws-iso-f", "csp.hci.ic.gov"},
};

static const char *const aws_areas[] = {
    "us-", "eu-", "ap-", "sa-", "ca-", "me-", "af-", "il-", "mx-"};
static const struct partition aws_partition = {"", "aws", "amazonaws.com"};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* letters-letters-digits with any number of middle labels; what may stand in a host name. */
static bool is_region_label(struct xf_str region)
{
    size_t dashes = 0;

    if (region.len < 5 || region.len > XF_URI_REGION_MAX || !is_lower(region.ptr[0]) ||
        !is_digit(region.ptr[region.len - 1])) {
        return false;
    }
    for (size_t i = 0; i < region.len; i++) {
        char c = region.ptr[i];

        if (c == '-') {
            dashes++;
        } else if (!is_lower(c) && !is_digit(c)) {
            return false;
        }
    }
    return dashes >= 2;
}

static const struct partition *partition_of(struct xf_str region)
{
    if (!is_region_label(region)) {
        return NULL;
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(partitions); i++) {
        if (xf_str_starts(region, xf_str_c(partitions[i].prefix))) {
            return &partitions[i];
        }
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(aws_areas); i++) {
        if (xf_str_starts(region, xf_str_c(aws_areas[i]))) {
            return &aws_partition;
        }
    }
    return NULL;
}

const char *xf_uri_partition(struct xf_str region)
{
    const struct partition *p = partition_of(region);

    return p != NULL ? p->name : NULL;
}

const char *xf_uri_aws_suffix(struct xf_str region)
{
    const struct partition *p = partition_of(region);

    return p != NULL ? p->suffix : aws_partition.suffix;
}

static bool is_s3_label(struct xf_str host)
{
    return xf_str_starts(host, XF_STR_LIT("s3.")) || xf_str_starts(host, XF_STR_LIT("s3-"));
}

/* The partition of an S3 host, without a bucket in front; NULL: not AWS's. */
static const struct partition *partition_of_host(struct xf_str host)
{
    const struct partition *found = NULL;
    const struct partition *by_label;
    struct xf_str label;

    if (!is_s3_label(host)) {
        return NULL;
    }
    for (size_t i = 0; i <= XF_ARRAY_LEN(partitions) && found == NULL; i++) {
        const struct partition *p = i < XF_ARRAY_LEN(partitions) ? &partitions[i] : &aws_partition;
        struct xf_str suffix = xf_str_c(p->suffix);

        if (xf_str_ends(host, suffix) && host.len > suffix.len &&
            host.ptr[host.len - suffix.len - 1] == '.') {
            found = p;
        }
    }
    if (found == NULL) {
        return NULL;
    }
    /* Some share a suffix: the region's label tells, s3.REGION.suffix or s3-REGION.suffix. */
    label = xf_str_sub(host, 0, host.len - strlen(found->suffix) - 1);
    for (size_t dot = 0; (dot = xf_str_find(label, '.', 0)) != SIZE_MAX;) {
        label = xf_str_sub(label, dot + 1, label.len);
    }
    if (xf_str_starts(label, XF_STR_LIT("s3-"))) {
        label = xf_str_sub(label, 3, label.len);
    }
    by_label = partition_of(label);
    if (by_label != NULL && strcmp(by_label->suffix, found->suffix) == 0) {
        return by_label;
    }
    return strcmp(found->suffix, aws_partition.suffix) == 0 ? &aws_partition : found;
}

static bool is_aws_host(struct xf_str host)
{
    return partition_of_host(host) != NULL;
}

bool xf_uri_is_aws_sibling(const struct xf_uri_endpoint *a, const struct xf_uri_endpoint *b)
{
    const struct partition *mine = partition_of_host(xf_str_c(a->host));
    struct xf_str host = xf_str_c(b->host);
    size_t dot = 0;

    /* A bucket may stand in front, with dots of its own. */
    while (partition_of_host(host) == NULL && (dot = xf_str_find(host, '.', 0)) != SIZE_MAX) {
        host = xf_str_sub(host, dot + 1, host.len);
    }
    return mine != NULL && partition_of_host(host) == mine;
}

static enum xf_code parse_host(struct xf_str host, struct xf_uri_endpoint *out, struct xf_err *err)
{
    unsigned char addr[16];

    if (host.len == 0 || host.len > XF_URI_HOST_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "endpoint has no usable host name");
    }
    for (size_t i = 0; i < host.len; i++) {
        char c = host.ptr[i];

        if (c >= 'A' && c <= 'Z') {
            c = (char)(c - 'A' + 'a');
        }
        if (!is_lower(c) && !is_digit(c) && c != '-' && c != '.' && c != '_' &&
            !(out->is_ip6 && c == ':')) {
            return XF_FAIL(err,
                           XF_E_INVAL,
                           "endpoint host '%.*s' has a character that no host has",
                           XF_STR_ARG(host));
        }
        out->host[i] = c;
    }
    out->host[host.len] = '\0';
    if (out->is_ip6 && inet_pton(AF_INET6, out->host, addr) != 1) {
        return XF_FAIL(err, XF_E_INVAL, "endpoint host '[%s]' is not an IPv6 address", out->host);
    }
    out->is_ip = out->is_ip6 || inet_pton(AF_INET, out->host, addr) == 1;
    out->is_aws = !out->is_ip && is_aws_host(xf_str_c(out->host));
    return XF_OK;
}

static enum xf_code parse_port(struct xf_str port, struct xf_uri_endpoint *out, struct xf_err *err)
{
    uint64_t n = 0;

    if (!xf_str_u64(port, &n) || n == 0 || n > UINT16_MAX) {
        return XF_FAIL(
            err, XF_E_INVAL, "endpoint port '%.*s' is not in 1..65535", XF_STR_ARG(port));
    }
    out->port = (uint16_t)n;
    return XF_OK;
}

/* host, host:port or [v6]:port */
static enum xf_code
parse_authority(struct xf_str auth, struct xf_uri_endpoint *out, struct xf_err *err)
{
    struct xf_str host = auth;
    struct xf_str rest = XF_STR_EMPTY;

    if (auth.len > 0 && auth.ptr[0] == '[') {
        size_t end = xf_str_find(auth, ']', 0);

        if (end == SIZE_MAX) {
            return XF_FAIL(err, XF_E_INVAL, "endpoint has '[' without ']'");
        }
        out->is_ip6 = true;
        host = xf_str_sub(auth, 1, end);
        rest = xf_str_sub(auth, end + 1, auth.len);
    } else {
        size_t colon = xf_str_find(auth, ':', 0);

        if (colon != SIZE_MAX) {
            host = xf_str_sub(auth, 0, colon);
            rest = xf_str_sub(auth, colon, auth.len);
        }
    }
    XF_TRY(parse_host(host, out, err));
    if (rest.len == 0) {
        return XF_OK;
    }
    if (rest.ptr[0] != ':') {
        return XF_FAIL(err, XF_E_INVAL, "endpoint has text after its host");
    }
    return parse_port(xf_str_sub(rest, 1, rest.len), out, err);
}

static enum xf_code
parse_base_path(struct xf_str path, struct xf_uri_endpoint *out, struct xf_err *err)
{
    while (path.len > 0 && path.ptr[path.len - 1] == '/') {
        path.len--;
    }
    if (path.len > XF_URI_BASE_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "endpoint path is longer than %d bytes", XF_URI_BASE_MAX);
    }
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.ptr[i];

        if (c <= ' ' || c >= 0x7f) {
            return XF_FAIL(err, XF_E_INVAL, "endpoint path has a character that must be encoded");
        }
    }
    if (path.len > 0) {
        memcpy(out->base_path, path.ptr, path.len);
    }
    out->base_path[path.len] = '\0';
    return XF_OK;
}

enum xf_code
xf_uri_endpoint_parse(struct xf_str text, struct xf_uri_endpoint *out, struct xf_err *err)
{
    struct xf_uri_endpoint ep = {0};
    struct xf_str rest;
    size_t slash;

    if (xf_str_starts(text, XF_STR_LIT("https://"))) {
        ep.https = true;
        ep.port = 443;
        rest = xf_str_sub(text, 8, text.len);
    } else if (xf_str_starts(text, XF_STR_LIT("http://"))) {
        ep.port = 80;
        rest = xf_str_sub(text, 7, text.len);
    } else {
        return XF_FAIL(err, XF_E_INVAL, "endpoint must start with http:// or https://");
    }
    /* User info may be a password: this text is not shown. */
    if (xf_str_find(rest, '@', 0) != SIZE_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "endpoint must not hold a user name");
    }
    if (xf_str_find(rest, '?', 0) != SIZE_MAX || xf_str_find(rest, '#', 0) != SIZE_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "endpoint must not have a query or fragment");
    }
    slash = xf_str_find(rest, '/', 0);
    if (slash == SIZE_MAX) {
        slash = rest.len;
    }
    XF_TRY(parse_authority(xf_str_sub(rest, 0, slash), &ep, err));
    XF_TRY(parse_base_path(xf_str_sub(rest, slash, rest.len), &ep, err));
    *out = ep;
    return XF_OK;
}

enum xf_code xf_uri_endpoint_aws(struct xf_str region,
                                 unsigned flags,
                                 struct xf_uri_endpoint *out,
                                 struct xf_err *err)
{
    const struct partition *p = partition_of(region);
    XF_AUTO_BUF text = {0};

    if (p == NULL) {
        return XF_FAIL(
            err, XF_E_INVAL, "'%.*s' is not the name of an AWS region", XF_STR_ARG(region));
    }
    if ((flags & XF_URI_AWS_FIPS) != 0 && strcmp(p->name, "aws-cn") == 0) {
        return XF_FAIL(err, XF_E_INVAL, "partition aws-cn has no FIPS endpoints");
    }
    xf_buf_putf(&text,
                "https://s3%s.%s%.*s.%s",
                (flags & XF_URI_AWS_FIPS) != 0 ? "-fips" : "",
                (flags & XF_URI_AWS_DUALSTACK) != 0 ? "dualstack." : "",
                XF_STR_ARG(region),
                p->suffix);
    return xf_uri_endpoint_parse(xf_buf_view(&text), out, err);
}

enum xf_code
xf_uri_endpoint_move(struct xf_uri_endpoint *ep, struct xf_str region, struct xf_err *err)
{
    struct xf_str host = xf_str_c(ep->host);
    const struct partition *p = partition_of_host(host);
    bool is_fips = xf_str_starts(host, XF_STR_LIT("s3-fips."));
    bool is_dual = xf_str_starts(host, XF_STR_LIT("s3.dualstack.")) ||
                   xf_str_starts(host, XF_STR_LIT("s3-fips.dualstack."));
    unsigned flags = (is_fips ? (unsigned)XF_URI_AWS_FIPS : 0U) |
                     (is_dual ? (unsigned)XF_URI_AWS_DUALSTACK : 0U);
    struct xf_uri_endpoint there;

    if (p == NULL || partition_of(region) != p) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "region '%.*s' is not in the partition of '%s'",
                       XF_STR_ARG(region),
                       ep->host);
    }
    XF_TRY(xf_uri_endpoint_aws(region, flags, &there, err));
    there.https = ep->https;
    there.port = ep->port;
    *ep = there; /* AWS has no base paths */
    return XF_OK;
}

bool xf_uri_same_service(const struct xf_uri_endpoint *a,
                         struct xf_str a_region,
                         const struct xf_uri_endpoint *b,
                         struct xf_str b_region)
{
    if (a->is_aws && b->is_aws) {
        const char *pa = xf_uri_partition(a_region);
        const char *pb = xf_uri_partition(b_region);

        return pa != NULL && pb != NULL && strcmp(pa, pb) == 0;
    }
    return a->https == b->https && a->port == b->port && strcmp(a->host, b->host) == 0 &&
           strcmp(a->base_path, b->base_path) == 0;
}

/* May the bucket's name be a label (or labels) of a host name? */
static bool is_host_name(struct xf_str bucket, bool *has_dot)
{
    *has_dot = false;
    if (bucket.len < 3 || bucket.len > 63) {
        return false;
    }
    for (size_t i = 0; i < bucket.len; i++) {
        char c = bucket.ptr[i];

        if (c == '.') {
            *has_dot = true;
        } else if (!is_lower(c) && !is_digit(c) && c != '-') {
            return false;
        }
    }
    return true;
}

bool xf_uri_is_path_style(const struct xf_uri_endpoint *ep,
                          enum xf_uri_style style,
                          struct xf_str bucket)
{
    bool has_dot = false;

    if (style == XF_URI_STYLE_PATH || ep->is_ip || !is_host_name(bucket, &has_dot)) {
        return true;
    }
    if (style == XF_URI_STYLE_VIRTUAL) {
        return has_dot && ep->https; /* a wildcard certificate covers one label */
    }
    return !ep->is_aws || has_dot;
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    if (c >= 'a' && c <= 'f') {
        return c - 'a' + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return c - 'A' + 10;
    }
    return -1;
}

void xf_uri_decode(struct xf_buf *out, struct xf_str text, bool plus_is_space)
{
    size_t from = 0;

    for (size_t i = 0; i < text.len; i++) {
        int value = -1;
        size_t used = 1;

        if (text.ptr[i] == '+' && plus_is_space) {
            value = ' ';
        } else if (text.ptr[i] == '%' && i + 2 < text.len) {
            int hi = hex_value(text.ptr[i + 1]);
            int lo = hex_value(text.ptr[i + 2]);

            value = hi >= 0 && lo >= 0 ? hi * 16 + lo : -1;
            used = 3;
        }
        if (value >= 0) {
            xf_buf_put_mem(out, text.ptr + from, i - from);
            xf_buf_put_byte(out, (char)(unsigned char)value);
            i += used - 1;
            from = i + 1;
        }
    }
    if (from < text.len) {
        xf_buf_put_mem(out, text.ptr + from, text.len - from);
    }
}

void xf_uri_path(struct xf_buf *out,
                 const struct xf_uri_endpoint *ep,
                 bool path_style,
                 struct xf_str bucket,
                 struct xf_str key)
{
    size_t before = out->len;

    xf_buf_put_c(out, ep->base_path);
    if (path_style && bucket.len > 0) {
        xf_buf_put_byte(out, '/');
        xf_buf_put_percent(out, bucket, false);
    }
    if (key.len > 0 || out->len == before || !path_style) {
        xf_buf_put_byte(out, '/');
        xf_buf_put_percent(out, key, true);
    }
}

void xf_uri_host(struct xf_buf *out,
                 const struct xf_uri_endpoint *ep,
                 bool path_style,
                 struct xf_str bucket)
{
    if (!path_style && bucket.len > 0) {
        xf_buf_put(out, bucket);
        xf_buf_put_byte(out, '.');
    }
    if (ep->is_ip6) {
        xf_buf_put_byte(out, '[');
    }
    xf_buf_put_c(out, ep->host);
    if (ep->is_ip6) {
        xf_buf_put_byte(out, ']');
    }
    if (ep->port != (ep->https ? 443 : 80)) {
        xf_buf_put_byte(out, ':');
        xf_buf_put_u64(out, ep->port);
    }
}

void xf_uri_copy_source(struct xf_buf *out,
                        struct xf_str bucket,
                        struct xf_str key,
                        struct xf_str version_id)
{
    xf_buf_put_byte(out, '/');
    xf_buf_put_percent(out, bucket, false);
    xf_buf_put_byte(out, '/');
    xf_buf_put_percent(out, key, true);
    if (version_id.len > 0) {
        xf_buf_put_c(out, "?versionId=");
        xf_buf_put_percent(out, version_id, false);
    }
}
