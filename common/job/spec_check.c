/*
 * spec_check.c - what no single row of the table can check, and the completion of a spec.
 *
 * Order: each side by itself (urls, endpoint, credentials), then the two against each other
 * (overlap, mode), then the small rules. Each check has its own message with the place of the key
 * it concerns. A text that may hold a secret by mistake (user info in a URL, a key in place of a
 * variable's name) is never shown.
 */
#include "common/base/conf.h"
#include "common/job/glob.h"
#include "common/job/spec_int.h"
#include "common/s3/uri.h"

#include <stdio.h>

enum { BUCKET_MAX = 255, SHOWN_MAX = 100, KEY_NAME_MAX = 40, NAME_LEN_MAX = 128 };

/* One side under check. */
struct side {
    struct xf_job_raw *raw;
    const char *name; /* "source" or "destination" */
    struct xf_job_raw_side *text;
    struct xf_job_side *out;
    struct xf_uri_endpoint endpoint; /* when out->endpoint is not empty */
    struct xf_err *err;
};

/* "source.profile" in `buf`, for xf_conf_fail(). */
static const char *key_of(const struct side *s, const char *key, char buf[static KEY_NAME_MAX])
{
    int n = snprintf(buf, KEY_NAME_MAX, "%s.%s", s->name, key);
    XF_ASSERT(n > 0 && n < KEY_NAME_MAX);
    return buf;
}

#define SIDE_FAIL(s, key, ...) \
    xf_conf_fail((s)->raw->conf, (s)->err, key_of((s), (key), (char[KEY_NAME_MAX]){0}), __VA_ARGS__)

/* ---- urls
 * ---------------------------------------------------------------------------------------- */

static bool is_bucket_byte(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

static enum xf_code
check_bucket(const struct side *s, const char *key, struct xf_str text, struct xf_str bucket)
{
    if (bucket.len == 0) {
        return SIDE_FAIL(s, key, "the url names no bucket; write s3://BUCKET/PREFIX");
    }
    if (xf_str_find(bucket, '@', 0) != SIZE_MAX) {
        return SIDE_FAIL(s, key, "a url takes no user or password; name a profile instead");
    }
    if (xf_str_starts(bucket, XF_STR_LIT("arn:"))) {
        return SIDE_FAIL(s, key, "ARNs are not supported yet; write s3://BUCKET/PREFIX");
    }
    if (bucket.len > BUCKET_MAX) {
        return SIDE_FAIL(s, key, "the bucket's name is longer than %d bytes", BUCKET_MAX);
    }
    for (size_t i = 0; i < bucket.len; i++) {
        if (!is_bucket_byte(bucket.ptr[i])) {
            return SIDE_FAIL(s,
                             key,
                             "the bucket's name in '%.*s' holds a character that none has "
                             "(letters, digits, '.', '-', '_')",
                             XF_STR_ARG(xf_str_sub(text, 0, SHOWN_MAX)));
        }
    }
    return XF_OK;
}

/* s3://BUCKET[/PREFIX]; the prefix is every byte after the slash. */
static enum xf_code
parse_url(const struct side *s, const char *key, struct xf_str text, struct xf_job_url *out)
{
    struct xf_str scheme = XF_STR_LIT("s3://");
    if (xf_str_starts(text, XF_STR_LIT("file:"))) {
        (void)SIDE_FAIL(s, key, "file:// urls are not supported yet; write s3://BUCKET/PREFIX");
        s->err->code = XF_E_UNSUPPORTED;
        return XF_E_UNSUPPORTED;
    }
    if (!xf_str_starts(text, scheme)) {
        return SIDE_FAIL(s,
                         key,
                         "a url is written s3://BUCKET/PREFIX; a server's address belongs in "
                         "%s.endpoint",
                         s->name);
    }
    struct xf_str rest = xf_str_sub(text, scheme.len, text.len);
    size_t slash = xf_str_find(rest, '/', 0);
    out->text = text;
    out->bucket = xf_str_sub(rest, 0, slash);
    out->prefix = slash == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(rest, slash + 1, rest.len);
    XF_TRY(check_bucket(s, key, text, out->bucket));
    if (out->prefix.len > XF_JOB_KEY_MAX) {
        return SIDE_FAIL(s, key, "the prefix is longer than the %d bytes of a key", XF_JOB_KEY_MAX);
    }
    return XF_OK;
}

/* The key that holds the side's urls. */
static const char *url_key(const struct side *s)
{
    return s->text->urls.len > 0 ? "urls" : "url";
}

static size_t count_urls(const struct xf_job_raw_side *text)
{
    return text->urls.len > 0 ? text->urls.len : 1;
}

static bool overlap(const struct xf_job_url *a, const struct xf_job_url *b)
{
    return xf_str_eq(a->bucket, b->bucket) &&
           (xf_str_starts(a->prefix, b->prefix) || xf_str_starts(b->prefix, a->prefix));
}

static enum xf_code check_side_overlap(const struct side *s)
{
    for (size_t i = 0; i < s->out->n_urls; i++) {
        for (size_t j = 0; j < i; j++) {
            const struct xf_job_url *a = &s->out->urls[j];
            const struct xf_job_url *b = &s->out->urls[i];
            if (overlap(a, b)) {
                return SIDE_FAIL(s,
                                 url_key(s),
                                 "'%.*s' and '%.*s' overlap: one prefix begins the other",
                                 XF_STR_ARG(xf_str_sub(a->text, 0, SHOWN_MAX)),
                                 XF_STR_ARG(xf_str_sub(b->text, 0, SHOWN_MAX)));
            }
        }
    }
    return XF_OK;
}

/* Fills `urls`, which has room for count_urls(). */
static enum xf_code check_urls(const struct side *s, struct xf_job_url *urls)
{
    if (s->text->url.len > 0 && s->text->urls.len > 0) {
        return SIDE_FAIL(s, "urls", "give url or urls in [%s], not both", s->name);
    }
    if (s->text->url.len == 0 && s->text->urls.len == 0) {
        return SIDE_FAIL(
            s, "url", "[%s] needs a url, such as url = \"s3://BUCKET/PREFIX\"", s->name);
    }
    s->out->urls = urls;
    s->out->n_urls = count_urls(s->text);
    for (size_t i = 0; i < s->out->n_urls; i++) {
        struct xf_str text = s->text->urls.len > 0 ? s->text->urls.items[i] : s->text->url;
        XF_TRY(parse_url(s, url_key(s), text, &urls[i]));
    }
    XF_TRY(check_side_overlap(s));
    if (s->text->urls.len == 1) { /* one way to say it, for the canonical text */
        s->text->url = s->text->urls.items[0];
        s->text->urls = (struct xf_conf_list){0};
    }
    return XF_OK;
}

/* ---- endpoint, region, credentials
 * ---------------------------------------------------------------- */

static void put_endpoint(const struct xf_uri_endpoint *ep, struct xf_buf *out)
{
    bool is_default_port = ep->port == (ep->https ? 443 : 80);
    xf_buf_putf(out,
                "%s://%s%s%s",
                ep->https ? "https" : "http",
                ep->is_ip6 ? "[" : "",
                ep->host,
                ep->is_ip6 ? "]" : "");
    if (!is_default_port) {
        xf_buf_putf(out, ":%u", (unsigned)ep->port);
    }
    xf_buf_put_c(out, ep->base_path);
}

/* The endpoint in its one shortest form, and the style that goes with it. */
static enum xf_code check_endpoint(struct side *s)
{
    struct xf_str text = s->out->endpoint;
    if (text.len > 0) {
        struct xf_err why;
        if (xf_uri_endpoint_parse(text, &s->endpoint, &why) != XF_OK) {
            return SIDE_FAIL(s, "endpoint", "%s; write http://HOST:PORT or https://HOST", why.msg);
        }
        XF_AUTO_BUF b = {0};
        xf_buf_init(&b, 0);
        put_endpoint(&s->endpoint, &b);
        s->out->endpoint = xf_conf_keep(s->raw->conf, xf_buf_view(&b));
    }
    bool by_default = text.len > 0 && !s->endpoint.is_aws;
    s->out->is_path_style =
        s->text->path_style == XF_CONF_UNSET ? by_default : s->text->path_style == XF_CONF_ON;
    if (s->out->is_path_style == by_default) {
        s->text->path_style = XF_CONF_UNSET;
    }
    return XF_OK;
}

/* Both choose among AWS's own hosts. */
static enum xf_code check_variants(const struct side *s)
{
    const struct {
        const char *key;
        int value;
    } rows[] = {{"fips", s->out->fips}, {"dualstack", s->out->dualstack}};

    for (size_t i = 0; i < XF_ARRAY_LEN(rows); i++) {
        if (rows[i].value == XF_CONF_ON && s->out->endpoint.len > 0) {
            return SIDE_FAIL(
                s,
                rows[i].key,
                "[%s] has %s and an endpoint; give the endpoint that is meant, or none",
                s->name,
                rows[i].key);
        }
    }
    if (s->out->ca_file.len > 0 && s->out->ca_file.ptr[0] != '/') {
        return SIDE_FAIL(
            s, "ca_file", "'%s.ca_file' must be a whole path: other hosts read it", s->name);
    }
    return XF_OK;
}

static enum xf_code check_region(const struct side *s)
{
    for (size_t i = 0; i < s->out->region.len; i++) {
        char c = s->out->region.ptr[i];
        if (!is_bucket_byte(c) || c == '.') {
            return SIDE_FAIL(s, "region", "a region's name has letters, digits, '-' and '_' only");
        }
    }
    return XF_OK;
}

/* Access key ids and secrets have telling shapes: a name of a variable was meant. */
static bool looks_like_a_key(struct xf_str v)
{
    bool has_lower = false;
    bool has_upper = false;
    bool has_digit = false;
    for (size_t i = 0; i < v.len; i++) {
        has_lower = has_lower || (v.ptr[i] >= 'a' && v.ptr[i] <= 'z');
        has_upper = has_upper || (v.ptr[i] >= 'A' && v.ptr[i] <= 'Z');
        has_digit = has_digit || (v.ptr[i] >= '0' && v.ptr[i] <= '9');
    }
    bool is_id = v.len == 20 && !has_lower &&
                 (xf_str_starts(v, XF_STR_LIT("AKIA")) || xf_str_starts(v, XF_STR_LIT("ASIA")));
    return is_id || (v.len >= 40 && has_lower && has_upper && has_digit);
}

static enum xf_code check_variable(const struct side *s, const char *key, struct xf_str v)
{
    bool ok = v.len == 0 || !(v.ptr[0] >= '0' && v.ptr[0] <= '9');
    for (size_t i = 0; i < v.len; i++) {
        ok = ok && is_bucket_byte(v.ptr[i]) && v.ptr[i] != '.' && v.ptr[i] != '-';
    }
    if (!ok || looks_like_a_key(v)) {
        return SIDE_FAIL(s,
                         key,
                         "'%s.%s' names an environment variable (letters, digits, '_'); a job "
                         "holds no secrets",
                         s->name,
                         key);
    }
    return XF_OK;
}

static bool is_loopback(const struct xf_uri_endpoint *ep)
{
    return strcmp(ep->host, "localhost") == 0 || strcmp(ep->host, "::1") == 0 ||
           strncmp(ep->host, "127.", 4) == 0;
}

static enum xf_code check_role(const struct side *s, bool has_pair)
{
    const struct xf_job_side *o = s->out;

    if (o->role_arn.len == 0 && o->external_id.len > 0) {
        return SIDE_FAIL(s, "external_id", "'%s.external_id' needs role_arn beside it", s->name);
    }
    if (o->role_arn.len == 0) {
        return XF_OK;
    }
    if (has_pair) {
        return SIDE_FAIL(s,
                         "role_arn",
                         "[%s] has role_arn and access_key_env; the role is assumed with a profile "
                         "or the provider chain",
                         s->name);
    }
    if (!xf_str_starts(o->role_arn, XF_STR_LIT("arn:"))) {
        return SIDE_FAIL(s,
                         "role_arn",
                         "'%s.role_arn' must be like arn:aws:iam::123456789012:role/name",
                         s->name);
    }
    return XF_OK;
}

static enum xf_code check_credentials(const struct side *s)
{
    const struct xf_job_side *o = s->out;
    XF_TRY(check_variable(s, "access_key_env", o->access_key_env));
    XF_TRY(check_variable(s, "secret_key_env", o->secret_key_env));
    XF_TRY(check_variable(s, "session_token_env", o->session_token_env));
    XF_TRY(check_variable(s, "customer_key_env", o->customer_key_env));
    if (o->customer_key_env.len > 0 && o->endpoint.len > 0 && !s->endpoint.https &&
        !is_loopback(&s->endpoint)) {
        return SIDE_FAIL(s,
                         "customer_key_env",
                         "'%s.customer_key_env' would be sent in clear: give a https:// endpoint",
                         s->name);
    }
    bool has_pair = o->access_key_env.len > 0 && o->secret_key_env.len > 0;
    if (!has_pair && (o->access_key_env.len > 0 || o->secret_key_env.len > 0)) {
        return SIDE_FAIL(s,
                         o->access_key_env.len > 0 ? "access_key_env" : "secret_key_env",
                         "[%s] needs access_key_env and secret_key_env together",
                         s->name);
    }
    if (!has_pair && o->session_token_env.len > 0) {
        return SIDE_FAIL(s,
                         "session_token_env",
                         "'%s.session_token_env' needs access_key_env and secret_key_env beside it",
                         s->name);
    }
    if (has_pair && o->profile.len > 0) {
        return SIDE_FAIL(
            s, "profile", "[%s] has a profile and access_key_env; give one of them", s->name);
    }
    return check_role(s, has_pair);
}

static enum xf_code check_side(struct side *s, struct xf_job_url *urls)
{
    XF_TRY(check_urls(s, urls));
    XF_TRY(check_endpoint(s));
    XF_TRY(check_variants(s));
    XF_TRY(check_region(s));
    return check_credentials(s);
}

/* ---- the two sides against each other
 * ------------------------------------------------------------- */

static bool is_aws(const struct xf_job_side *side)
{
    struct xf_uri_endpoint ep;
    struct xf_err err;
    return side->endpoint.len == 0 ||
           (xf_uri_endpoint_parse(side->endpoint, &ep, &err) == XF_OK && ep.is_aws);
}

static const char *partition_of(const struct xf_job_side *side)
{
    const char *name = xf_uri_partition(side->region);
    return name != NULL ? name : "aws";
}

bool xf_job_spec_is_same_service(const struct xf_job_spec *s)
{
    bool from_aws = is_aws(&s->source);
    bool to_aws = is_aws(&s->destination);
    if (from_aws != to_aws) {
        return false;
    }
    return from_aws ? strcmp(partition_of(&s->source), partition_of(&s->destination)) == 0
                    : xf_str_eq(s->source.endpoint, s->destination.endpoint);
}

/*
 * May the two be one store under two names? Asked for overlap only, where a false yes refuses a job
 * and a false no would copy a prefix into itself: so scheme and base path do not count, nor does
 * the name of this host.
 */
static bool may_be_same_store(const struct side *a, const struct side *b)
{
    if (a->out->endpoint.len == 0 || b->out->endpoint.len == 0) {
        return xf_job_spec_is_same_service(&a->raw->spec);
    }
    if (a->endpoint.is_aws && b->endpoint.is_aws) {
        return xf_job_spec_is_same_service(&a->raw->spec);
    }
    return a->endpoint.port == b->endpoint.port &&
           (strcmp(a->endpoint.host, b->endpoint.host) == 0 ||
            (is_loopback(&a->endpoint) && is_loopback(&b->endpoint)));
}

static enum xf_code check_sides_overlap(const struct side *from, const struct side *to)
{
    if (!may_be_same_store(from, to)) {
        return XF_OK;
    }
    for (size_t i = 0; i < from->out->n_urls; i++) {
        for (size_t j = 0; j < to->out->n_urls; j++) {
            const struct xf_job_url *a = &from->out->urls[i];
            const struct xf_job_url *b = &to->out->urls[j];
            if (overlap(a, b)) {
                return SIDE_FAIL(
                    to,
                    url_key(to),
                    "source '%.*s' and destination '%.*s' overlap in one bucket: the job "
                    "would read what it wrote",
                    XF_STR_ARG(xf_str_sub(a->text, 0, SHOWN_MAX)),
                    XF_STR_ARG(xf_str_sub(b->text, 0, SHOWN_MAX)));
            }
        }
    }
    return XF_OK;
}

/* One destination url for each source url, so that no two objects get one key. */
static enum xf_code check_pairs(const struct side *from, const struct side *to)
{
    if (from->out->n_urls == to->out->n_urls) {
        return XF_OK;
    }
    return SIDE_FAIL(
        to,
        url_key(to),
        "%zu source urls and %zu destination url(s): give [destination] urls with one url "
        "for each of the source's, so that no two objects get the same key",
        from->out->n_urls,
        to->out->n_urls);
}

static void put_service(const struct xf_job_side *side, struct xf_buf *out)
{
    if (is_aws(side)) {
        xf_buf_putf(out, "AWS (partition %s)", partition_of(side));
    } else {
        xf_buf_put(out, side->endpoint);
    }
}

static enum xf_code check_mode(const struct xf_job_raw *raw, struct xf_err *err)
{
    if (raw->spec.mode != XF_JOB_MODE_SERVER || xf_job_spec_is_same_service(&raw->spec)) {
        return XF_OK;
    }
    XF_AUTO_BUF from = {0};
    XF_AUTO_BUF to = {0};
    xf_buf_init(&from, 0);
    xf_buf_init(&to, 0);
    put_service(&raw->spec.source, &from);
    put_service(&raw->spec.destination, &to);
    return xf_conf_fail(
        raw->conf,
        err,
        "copy.mode",
        "mode = \"server\" needs one service on both sides, but the source is %s and the "
        "destination is %s; use \"auto\" or \"relay\"",
        from.ptr,
        to.ptr);
}

/* ---- the rest
 * ------------------------------------------------------------------------------------- */

static enum xf_code check_globs(const struct xf_job_raw *raw,
                                const char *key,
                                const struct xf_conf_list *globs,
                                struct xf_err *err)
{
    for (size_t i = 0; i < globs->len; i++) {
        const char *why = xf_glob_check(globs->items[i]);
        if (why != NULL) {
            return xf_conf_fail(raw->conf,
                                err,
                                key,
                                "pattern '%.*s': %s",
                                XF_STR_ARG(xf_str_sub(globs->items[i], 0, SHOWN_MAX)),
                                why);
        }
    }
    return XF_OK;
}

static enum xf_code check_select(const struct xf_job_raw *raw, struct xf_err *err)
{
    const struct xf_job_select *sel = &raw->spec.select;
    XF_TRY(check_globs(raw, "select.include", &sel->include, err));
    XF_TRY(check_globs(raw, "select.exclude", &sel->exclude, err));
    if (sel->min_size > sel->max_size) {
        return xf_conf_fail(raw->conf,
                            err,
                            "select.max_size",
                            "select.max_size is below select.min_size: nothing would match");
    }
    if (sel->newer_than.is_set && sel->older_than.is_set &&
        sel->newer_than.is_age == sel->older_than.is_age) {
        bool ok = sel->newer_than.is_age ? sel->newer_than.ms > sel->older_than.ms
                                         : sel->newer_than.ms < sel->older_than.ms;
        if (!ok) {
            return xf_conf_fail(
                raw->conf,
                err,
                "select.older_than",
                "select.newer_than begins after select.older_than ends: nothing would match");
        }
    }
    return XF_OK;
}

static bool is_class(struct xf_str v)
{
    for (size_t i = 0; i < v.len; i++) {
        char c = v.ptr[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_')) {
            return false;
        }
    }
    return true;
}

static enum xf_code parse_limit(const struct xf_job_raw *raw,
                                const char *key,
                                struct xf_str text,
                                enum xf_schedule_unit unit,
                                struct xf_schedule *out,
                                struct xf_err *err)
{
    struct xf_err why;

    if (xf_schedule_parse(text, unit, out, &why) != XF_OK) {
        return xf_conf_fail(raw->conf, err, key, "%s", why.msg);
    }
    return XF_OK;
}

static enum xf_code complete_limits(struct xf_job_raw *raw, struct xf_err *err)
{
    XF_TRY(parse_limit(
        raw, "limits.bandwidth", raw->bandwidth, XF_SCHEDULE_BYTES_S, &raw->spec.bandwidth, err));
    return parse_limit(raw,
                       "limits.request_rate",
                       raw->request_rate,
                       XF_SCHEDULE_REQUESTS_S,
                       &raw->spec.request_rate,
                       err);
}

static enum xf_code check_storage_class(struct xf_job_raw *raw, struct xf_err *err)
{
    struct xf_str *v = &raw->spec.destination.storage_class;
    const struct xf_conf_list *map = &raw->spec.destination.storage_map;
    if (xf_str_eq_c(*v, "keep")) {
        *v = XF_STR_EMPTY;
    }
    if (!is_class(*v)) {
        return xf_conf_fail(
            raw->conf,
            err,
            "destination.storage_class",
            "a storage class has capital letters, digits and '_', such as STANDARD_IA");
    }
    for (size_t i = 0; i < map->len; i++) {
        size_t eq = xf_str_find(map->items[i], '=', 0);
        struct xf_str from = xf_str_sub(map->items[i], 0, eq);
        struct xf_str to =
            eq == SIZE_MAX ? XF_STR_EMPTY : xf_str_sub(map->items[i], eq + 1, map->items[i].len);
        if (from.len == 0 || to.len == 0 || !is_class(from) || !is_class(to)) {
            return xf_conf_fail(raw->conf,
                                err,
                                "destination.storage_class_map",
                                "'%.*s' must be two storage classes with '=' between, such as "
                                "GLACIER_IR=STANDARD_IA",
                                XF_STR_ARG(xf_str_sub(map->items[i], 0, SHOWN_MAX)));
        }
    }
    return XF_OK;
}

/* Encryption of either side, and what goes together. */
static enum xf_code check_encryption(const struct xf_job_raw *raw, struct xf_err *err)
{
    const struct xf_job_spec *spec = &raw->spec;
    bool has_own =
        spec->source.customer_key_env.len > 0 || spec->destination.customer_key_env.len > 0;

    if (spec->destination.kms_key.len > 0 && spec->destination.sse != XF_JOB_SSE_KMS &&
        spec->destination.sse != XF_JOB_SSE_DSSE) {
        return xf_conf_fail(raw->conf,
                            err,
                            "destination.kms_key",
                            "'destination.kms_key' needs sse = \"aws:kms\" beside it");
    }
    if (spec->destination.customer_key_env.len > 0 && spec->destination.sse != XF_JOB_SSE_BUCKET) {
        return xf_conf_fail(raw->conf,
                            err,
                            "destination.sse",
                            "[destination] has sse and customer_key_env; give one of them");
    }
    if (has_own && spec->mode == XF_JOB_MODE_SERVER) {
        return xf_conf_fail(
            raw->conf,
            err,
            "copy.mode",
            "objects with a customer_key_env go by relay; use \"auto\" or \"relay\"");
    }
    if (spec->source_mtime && !spec->metadata) {
        return xf_conf_fail(
            raw->conf, err, "copy.source_mtime", "source_mtime is metadata, but metadata = false");
    }
    return XF_OK;
}

/* A job without a name is called by its buckets. */
static enum xf_code complete_name(struct xf_job_raw *raw, struct xf_err *err)
{
    struct xf_str *name = &raw->spec.name;
    for (size_t i = 0; i < name->len; i++) {
        if ((unsigned char)name->ptr[i] < 0x20 || name->ptr[i] == 0x7F) {
            return xf_conf_fail(
                raw->conf, err, "job.name", "a job's name has no control characters");
        }
    }
    if (name->len == 0) {
        XF_AUTO_BUF b = {0};
        xf_buf_init(&b, 0);
        xf_buf_put(&b, raw->spec.source.urls[0].bucket);
        xf_buf_put_c(&b, " to ");
        xf_buf_put(&b, raw->spec.destination.urls[0].bucket);
        *name = xf_conf_keep(raw->conf, xf_str_sub(xf_buf_view(&b), 0, NAME_LEN_MAX));
    }
    return XF_OK;
}

enum xf_code xf_job_spec_complete(struct xf_job_raw *raw, struct xf_err *err)
{
    struct xf_job_spec *spec = &raw->spec;
    struct side from = {
        .raw = raw, .name = "source", .text = &raw->source, .out = &spec->source, .err = err};
    struct side to = {.raw = raw,
                      .name = "destination",
                      .text = &raw->destination,
                      .out = &spec->destination,
                      .err = err};
    size_t n_from = count_urls(&raw->source);
    raw->urls = xf_xcalloc(n_from + count_urls(&raw->destination), sizeof(*raw->urls));
    XF_TRY(check_side(&from, raw->urls));
    XF_TRY(check_side(&to, raw->urls + n_from));
    XF_TRY(check_pairs(&from, &to));
    XF_TRY(check_sides_overlap(&from, &to));
    XF_TRY(check_mode(raw, err));
    XF_TRY(check_select(raw, err));
    XF_TRY(check_storage_class(raw, err));
    XF_TRY(check_encryption(raw, err));
    XF_TRY(complete_limits(raw, err));
    XF_TRY(complete_name(raw, err));
    if (raw->multipart_threshold == spec->part_size) {
        raw->multipart_threshold = 0;
    }
    spec->multipart_threshold =
        raw->multipart_threshold != 0 ? raw->multipart_threshold : spec->part_size;
    return XF_OK;
}
