/*
 * provider_fetch.c - credentials from those that are asked: metadata services and STS.
 *
 * Everything here blocks, within TIMEOUT_MS for each request, and runs on a keeper's thread. What
 * is answered is bounded by REPLY_MAX; of it only a refusal's code and message go into an error.
 * Link-local services are asked past any proxy. Sources: "AWS SDKs and Tools Reference Guide",
 * standardized credential providers; "Amazon EC2 User Guide", IMDSv2; "STS API Reference".
 */
#include "common/base/clock.h"
#include "common/base/file.h"
#include "common/s3/provider_int.h"
#include "common/s3/route.h"
#include "common/s3/sigv4.h"
#include "common/s3/uri.h"

#include <curl/curl.h>
#include <libxml/parser.h>
#include <libxml/tree.h>

enum {
    TIMEOUT_MS = 5000,
    METADATA_MS = 1000, /* where there is no such service, nobody answers */
    METADATA_TRIES = 3,
    REPLY_MAX = 64 * 1024,
    SKEW_MS = 5 * 60 * 1000,
    TOKEN_FILE_MAX = 20000 /* bytes of a web identity token, as STS takes it */
};

#define IMDS_TTL "21600"

/* ---- HTTP ---- */

struct call {
    const char *method;
    struct xf_str url;
    const char *lines[8]; /* headers; NULL at the end */
    struct xf_str body;
    bool is_local; /* link-local: past any proxy */
};

struct reply {
    long status;
    int64_t date_ms; /* the server's clock; 0: it told none */
    struct xf_buf body;
};

void xf_creds_secret_fini(struct xf_buf *b)
{
    if (b->ptr != NULL) {
        xf_wipe(b->ptr, b->cap);
    }
    xf_buf_fini(b);
}

static void reply_fini(struct reply *r)
{
    xf_creds_secret_fini(&r->body);
}

static size_t on_body(char *data, size_t size, size_t n, void *arg)
{
    struct reply *r = arg;

    xf_buf_put_mem(&r->body, data, size * n);
    return r->body.full ? 0 : size * n;
}

/* NOLINTNEXTLINE(readability-non-const-parameter): libcurl chose the signature */
static size_t on_header(char *data, size_t size, size_t n, void *arg)
{
    struct reply *r = arg;
    struct xf_str value = {data, size * n};
    struct xf_str name;

    if (xf_str_cut(&value, ':', &name) && xf_str_eq_nocase(name, XF_STR_LIT("date"))) {
        (void)xf_time_parse_http(xf_str_trim(value), &r->date_ms); /* stays 0 */
    }
    return size * n;
}

static int on_progress(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    xf_creds_stop stop = arg;

    (void)a; /* only asked whether to go on */
    (void)b;
    (void)c;
    (void)d;
    return stop != NULL && atomic_load(stop) ? 1 : 0;
}

/* What curl is given. */
struct asked {
    const struct call *c;
    const char *url;
    struct curl_slist *list;
    struct reply *r;
    xf_creds_stop stop;
    const char *ca_file; /* NULL: the system's alone */
    const char *no_proxy;
};

static CURLcode setup(CURL *easy, const struct asked *a)
{
    CURLcode rc = curl_easy_setopt(easy, CURLOPT_URL, a->url);
    const struct {
        CURLoption option;
        long value;
    } longs[] = {
        {CURLOPT_NOSIGNAL, 1L},
        {CURLOPT_TIMEOUT_MS, a->c->is_local ? (long)METADATA_MS : (long)TIMEOUT_MS},
        {CURLOPT_FOLLOWLOCATION, 0L},
        {CURLOPT_NOPROGRESS, 0L},
        {CURLOPT_NETRC, (long)CURL_NETRC_IGNORED},
    };
    const struct {
        CURLoption option;
        const void *value;
    } pointers[] = {
        {CURLOPT_PROTOCOLS_STR, "http,https"},
        {CURLOPT_CUSTOMREQUEST, a->c->method},
        {CURLOPT_HTTPHEADER, a->list},
        {CURLOPT_WRITEDATA, a->r},
        {CURLOPT_HEADERDATA, a->r},
        {CURLOPT_XFERINFODATA, a->stop},
        {CURLOPT_PROXY, a->c->is_local ? "" : NULL},
        {CURLOPT_NOPROXY, a->no_proxy},
        {CURLOPT_CAINFO, a->ca_file},
    };

    for (size_t i = 0; i < XF_ARRAY_LEN(longs) && rc == CURLE_OK; i++) {
        rc = curl_easy_setopt(easy, longs[i].option, longs[i].value);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(pointers) && rc == CURLE_OK; i++) {
        if (pointers[i].value != NULL) {
            rc = curl_easy_setopt(easy, pointers[i].option, pointers[i].value);
        }
    }
    rc = rc == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_body) : rc;
    rc = rc == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_HEADERFUNCTION, on_header) : rc;
    rc = rc == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_XFERINFOFUNCTION, on_progress) : rc;
    if (rc == CURLE_OK && a->c->body.len > 0) {
        rc = curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, (long)a->c->body.len);
        rc = rc == CURLE_OK ? curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, a->c->body.ptr) : rc;
    }
    return rc;
}

/* One request; XF_OK whenever there was an answer. */
static enum xf_code ask(const struct xf_creds_env *env,
                        const struct call *c,
                        xf_creds_stop stop,
                        struct reply *r,
                        struct xf_err *err)
{
    XF_AUTO_FREE char *url = xf_str_dup(c->url);
    struct xf_str ca = xf_creds_env_get(env, "AWS_CA_BUNDLE");
    XF_AUTO_BUF no_proxy = {0};
    CURL *easy = curl_easy_init();
    struct curl_slist *list = NULL;

    XF_ASSERT(easy != NULL);
    reply_fini(r);
    *r = (struct reply){.body = {.max = REPLY_MAX}};
    for (size_t i = 0; i < XF_ARRAY_LEN(c->lines) && c->lines[i] != NULL; i++) {
        struct curl_slist *more = curl_slist_append(list, c->lines[i]);
        XF_ASSERT(more != NULL);
        list = more;
    }
    xf_route_no_proxy(&no_proxy);
    const struct asked a = {c, url, list, r, stop, ca.len > 0 ? ca.ptr : NULL, no_proxy.ptr};
    CURLcode rc = setup(easy, &a);
    rc = rc == CURLE_OK ? curl_easy_perform(easy) : rc;
    rc = rc == CURLE_OK ? curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &r->status) : rc;
    curl_easy_cleanup(easy);
    curl_slist_free_all(list);
    if (rc != CURLE_OK) {
        return XF_FAIL_SUB(
            err, XF_E_CREDS, (int)rc, "cannot ask '%s': %s", url, curl_easy_strerror(rc));
    }
    return XF_OK;
}

static bool is_header_text(struct xf_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        if ((unsigned char)s.ptr[i] < ' ' || s.ptr[i] == 0x7f) {
            return false;
        }
    }
    return true;
}

/* ---- instance metadata ---- */

static enum xf_code
imds_base(const struct xf_creds_env *env, struct xf_buf *out, struct xf_err *err)
{
    struct xf_str given = xf_creds_env_get(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT");
    struct xf_str mode = xf_creds_env_get(env, "AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE");

    if (xf_str_eq_c(xf_creds_env_get(env, "AWS_EC2_METADATA_DISABLED"), "true")) {
        return XF_FAIL(err, XF_E_CREDS, "instance metadata: AWS_EC2_METADATA_DISABLED is set");
    }
    if (given.len > 0) {
        while (given.len > 0 && given.ptr[given.len - 1] == '/') {
            given.len--;
        }
        xf_buf_put(out, given);
    } else if (xf_str_eq_c(mode, "IPv6") || xf_str_eq_c(mode, "ipv6")) {
        xf_buf_put_c(out, "http://[fd00:ec2::254]");
    } else {
        xf_buf_put_c(out, "http://169.254.169.254");
    }
    return XF_OK;
}

/* A refusal that asking again does not change: no such role, no right, no such service. An
 * unauthorised one may be a session token that has ended; 429 is the keeper's to wait for. */
static bool is_final(long status)
{
    return status >= 400 && status < 500 && status != 401 && status != 408;
}

struct imds {
    const struct xf_creds_env *env;
    const char *base; /* of its URLs */
    xf_creds_stop stop;
    const char *token_line;
};

static enum xf_code
imds_get(const struct imds *m, struct xf_str path, struct reply *r, struct xf_err *err)
{
    XF_AUTO_BUF url = {0};

    xf_buf_putf(
        &url, "%s/latest/meta-data/iam/security-credentials/%.*s", m->base, XF_STR_ARG(path));
    const struct call get = {
        .method = "GET", .url = xf_buf_view(&url), .lines = {m->token_line}, .is_local = true};
    return ask(m->env, &get, m->stop, r, err);
}

/* A session token, as a header line. IMDSv1, which needs none, is never asked: who can make this
 * host fetch a URL could read it. */
static enum xf_code
imds_begin(const struct imds *m, struct reply *r, struct xf_buf *line, struct xf_err *err)
{
    XF_AUTO_BUF url = {0};

    xf_buf_putf(&url, "%s/latest/api/token", m->base);
    const struct call put = {.method = "PUT",
                             .url = xf_buf_view(&url),
                             .lines = {"X-aws-ec2-metadata-token-ttl-seconds: " IMDS_TTL},
                             .is_local = true};
    XF_TRY(ask(m->env, &put, m->stop, r, err));
    struct xf_str token = xf_str_trim(xf_buf_view(&r->body));
    if (r->status != 200 || token.len == 0 || !is_header_text(token)) {
        return XF_FAIL_SUB(
            err,
            XF_E_CREDS,
            (int)r->status,
            "instance metadata: no session token (status %ld); in a container the hop "
            "limit must be 2",
            r->status);
    }
    xf_buf_reset(line);
    xf_buf_putf(line, "X-aws-ec2-metadata-token: %.*s", XF_STR_ARG(token));
    return XF_OK;
}

/* The role's name, then its keys. */
static enum xf_code
imds_keys(const struct imds *m, struct reply *r, struct xf_creds **out, struct xf_err *err)
{
    XF_AUTO_BUF role = {0};

    XF_TRY(imds_get(m, XF_STR_EMPTY, r, err));
    struct xf_str names = xf_buf_view(&r->body);
    struct xf_str first = XF_STR_EMPTY;
    if (r->status != 200 || !xf_str_cut(&names, '\n', &first) || xf_str_trim(first).len == 0) {
        return XF_FAIL_SUB(err,
                           XF_E_CREDS,
                           (int)r->status,
                           "instance metadata: this instance has no role (status %ld): attach an "
                           "instance profile, or name a profile in the job",
                           r->status);
    }
    xf_buf_put_percent(&role, xf_str_trim(first), false);
    XF_TRY(imds_get(m, xf_buf_view(&role), r, err));
    if (r->status != 200) {
        return XF_FAIL_SUB(err,
                           XF_E_CREDS,
                           (int)r->status,
                           "instance metadata: no keys of the role (status %ld)",
                           r->status);
    }
    return xf_creds_from_json(xf_buf_view(&r->body), "Token", "instance metadata", out, err);
}

enum xf_code xf_creds_fetch_imds(const struct xf_creds_env *env,
                                 xf_creds_stop stop,
                                 struct xf_creds **out,
                                 struct xf_err *err)
{
    XF_AUTO_BUF base = {0};
    XF_AUTO_SECRET line = {0};
    struct reply r = {0};
    enum xf_code rc = XF_E_CREDS;
    bool is_there = false;

    XF_TRY(imds_base(env, &base, err));
    struct imds m = {.env = env, .base = base.ptr, .stop = stop};
    for (int i = 0; i < METADATA_TRIES && rc != XF_OK; i++) {
        rc = imds_begin(&m, &r, &line, err);
        if (rc == XF_OK) {
            is_there = true;
            m.token_line = line.ptr;
            rc = imds_keys(&m, &r, out, err);
        }
        if (is_final(r.status) || (stop != NULL && atomic_load(stop))) {
            break;
        }
    }
    if (rc != XF_OK && is_there && !is_final(r.status)) {
        err->sub = 503; /* it stumbles: a hang, half an answer; for the keeper worth a wait */
    }
    reply_fini(&r);
    return rc;
}

/* ---- container ---- */

bool xf_creds_has_container(const struct xf_creds_env *env)
{
    return xf_creds_env_get(env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").len > 0 ||
           xf_creds_env_get(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI").len > 0;
}

/* Plain HTTP is for this host and the link-local services only: the answer is a secret. Those are
 * also what is asked past a proxy. */
static enum xf_code check_full_uri(const char *uri, bool *is_local, struct xf_err *err)
{
    static const char *const allowed[] = {
        "localhost", "127.0.0.1", "[::1]", "169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"};
    CURLU *u = curl_url();
    char *scheme = NULL;
    char *host = NULL;
    bool ok = u != NULL && curl_url_set(u, CURLUPART_URL, uri, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_SCHEME, &scheme, 0) == CURLUE_OK &&
              curl_url_get(u, CURLUPART_HOST, &host, 0) == CURLUE_OK;

    *is_local = false;
    for (size_t i = 0; ok && i < XF_ARRAY_LEN(allowed); i++) {
        *is_local = *is_local || strcmp(host, allowed[i]) == 0;
    }
    ok = ok && (strcmp(scheme, "https") == 0 || (strcmp(scheme, "http") == 0 && *is_local));
    curl_free(scheme);
    curl_free(host);
    curl_url_cleanup(u);
    return ok ? XF_OK
              : XF_FAIL(err,
                        XF_E_CREDS,
                        "AWS_CONTAINER_CREDENTIALS_FULL_URI must be https, or http to this host or "
                        "a container metadata address");
}

static enum xf_code
container_line(const struct xf_creds_env *env, struct xf_buf *line, struct xf_err *err)
{
    struct xf_str path = xf_creds_env_get(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    struct xf_str token = xf_creds_env_get(env, "AWS_CONTAINER_AUTHORIZATION_TOKEN");
    XF_AUTO_SECRET text = {0};

    if (path.len > 0) { /* read each time: it is rotated */
        XF_TRY(xf_file_read(path.ptr, TOKEN_FILE_MAX, &text, err));
        token = xf_str_trim(xf_buf_view(&text));
    }
    if (!is_header_text(token)) {
        return XF_FAIL(err, XF_E_CREDS, "the container's authorization token holds a line end");
    }
    if (token.len > 0) {
        xf_buf_putf(line, "Authorization: %.*s", XF_STR_ARG(token));
    }
    return XF_OK;
}

enum xf_code xf_creds_fetch_container(const struct xf_creds_env *env,
                                      xf_creds_stop stop,
                                      struct xf_creds **out,
                                      struct xf_err *err)
{
    struct xf_str relative = xf_creds_env_get(env, "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI");
    XF_AUTO_BUF url = {0};
    XF_AUTO_SECRET line = {0};
    struct reply r = {0};
    enum xf_code rc = XF_E_CREDS;
    bool is_local = true;

    if (relative.len > 0) {
        xf_buf_putf(&url, "http://169.254.170.2%.*s", XF_STR_ARG(relative));
    } else {
        xf_buf_put(&url, xf_creds_env_get(env, "AWS_CONTAINER_CREDENTIALS_FULL_URI"));
        XF_TRY(check_full_uri(url.ptr, &is_local, err));
    }
    XF_TRY(container_line(env, &line, err));
    const struct call get = {.method = "GET",
                             .url = xf_buf_view(&url),
                             .lines = {line.len > 0 ? line.ptr : NULL},
                             .is_local = is_local};
    for (int i = 0; i < METADATA_TRIES && (rc != XF_OK || r.status >= 500); i++) {
        rc = ask(env, &get, stop, &r, err);
    }
    if (rc == XF_OK && r.status != 200) {
        rc = XF_FAIL_SUB(
            err, XF_E_CREDS, (int)r.status, "container credentials: status %ld", r.status);
    } else if (rc == XF_OK) {
        rc = xf_creds_from_json(xf_buf_view(&r.body), "Token", "container credentials", out, err);
    }
    reply_fini(&r);
    return rc;
}

/* ---- STS ---- */

static struct xf_str text_of(xmlDocPtr doc, const char *name, xmlNodePtr from, char **keep)
{
    for (xmlNodePtr n = from; n != NULL; n = n->next) {
        if (n->type == XML_ELEMENT_NODE && strcmp((const char *)n->name, name) == 0 &&
            (n->children == NULL || n->children->type == XML_TEXT_NODE)) {
            *keep = (char *)xmlNodeListGetString(doc, n->children, 1);
            return *keep != NULL ? xf_str_c(*keep) : XF_STR_EMPTY;
        }
        struct xf_str below = text_of(doc, name, n->children, keep);
        if (below.len > 0) {
            return below;
        }
    }
    return XF_STR_EMPTY;
}

/* Elements are found by name at any depth: the result's nesting differs between the two actions. */
static enum xf_code
sts_result(const struct reply *r, const char *where, struct xf_creds **out, struct xf_err *err)
{
    static const char *const names[] = {
        "AccessKeyId", "SecretAccessKey", "SessionToken", "Expiration", "Code", "Message"};
    char *keep[XF_ARRAY_LEN(names)] = {NULL};
    struct xf_str text[XF_ARRAY_LEN(names)];
    xmlDocPtr doc = xmlReadMemory(r->body.ptr != NULL ? r->body.ptr : "",
                                  (int)r->body.len,
                                  NULL,
                                  NULL,
                                  XML_PARSE_NONET | XML_PARSE_NOERROR | XML_PARSE_NOWARNING);
    enum xf_code rc;

    for (size_t i = 0; i < XF_ARRAY_LEN(names); i++) {
        text[i] = doc != NULL ? text_of(doc, names[i], xmlDocGetRootElement(doc), &keep[i])
                              : XF_STR_EMPTY;
    }
    if (r->status != 200) {
        rc = XF_FAIL_SUB(err,
                         XF_E_CREDS,
                         (int)r->status,
                         "%s: STS refused (%ld %.*s): %.*s",
                         where,
                         r->status,
                         XF_STR_ARG(text[4]),
                         XF_STR_ARG(xf_str_sub(text[5], 0, 300)));
    } else {
        const struct xf_creds_found f = {text[0], text[1], text[2], text[3]};
        rc = xf_creds_make(&f, where, out, err);
    }
    for (size_t i = 0; i < XF_ARRAY_LEN(names); i++) {
        if (keep[i] != NULL) {
            xf_wipe(keep[i], strlen(keep[i]));
            xmlFree(keep[i]);
        }
    }
    xmlFreeDoc(doc);
    return rc;
}

static void sts_url(const struct xf_creds_env *env, struct xf_str region, struct xf_buf *out)
{
    struct xf_str given = xf_creds_env_get(env, "AWS_ENDPOINT_URL_STS");
    bool is_fips =
        xf_str_eq_nocase(xf_creds_env_get(env, "AWS_USE_FIPS_ENDPOINT"), XF_STR_LIT("true"));

    if (given.len > 0) {
        xf_buf_put(out, given);
        if (given.ptr[given.len - 1] != '/') {
            xf_buf_put_byte(out, '/');
        }
    } else {
        xf_buf_putf(out,
                    "https://sts%s.%.*s.%s/",
                    is_fips ? "-fips" : "",
                    XF_STR_ARG(region),
                    xf_uri_aws_suffix(region));
    }
}

static void sts_form(const struct xf_creds_role *role, struct xf_str token, struct xf_buf *out)
{
    struct xf_str session = role->session_name.len > 0 ? role->session_name : XF_STR_LIT("xfer");
    struct xf_sigv4_pair form[8] = {
        {XF_STR_LIT("Action"),
         role->token_file.len > 0 ? XF_STR_LIT("AssumeRoleWithWebIdentity")
                                  : XF_STR_LIT("AssumeRole")},
        {XF_STR_LIT("Version"), XF_STR_LIT("2011-06-15")},
        {XF_STR_LIT("RoleArn"), role->arn},
        {XF_STR_LIT("RoleSessionName"), session},
    };
    size_t n = 4;

    if (role->external_id.len > 0) {
        form[n++] = (struct xf_sigv4_pair){XF_STR_LIT("ExternalId"), role->external_id};
    }
    if (role->duration_s.len > 0) {
        form[n++] = (struct xf_sigv4_pair){XF_STR_LIT("DurationSeconds"), role->duration_s};
    }
    if (token.len > 0) {
        form[n++] = (struct xf_sigv4_pair){XF_STR_LIT("WebIdentityToken"), token};
    }
    xf_sigv4_query(out, form, n);
}

struct sts_call {
    struct xf_str region;
    const char *url;
    struct xf_str body;
    int64_t wall_ms; /* to sign with */
};

/* Headers of the signed request, as lines. */
static enum xf_code sts_sign(const struct xf_creds_role *role,
                             const struct sts_call *c,
                             struct xf_buf lines[4],
                             struct xf_err *err)
{
    XF_AUTO(xf_sigv4) signer = xf_sigv4_new();
    XF_AUTO_BUF auth = {0};
    char hash[XF_SIGV4_HEX_LEN + 1];
    char date[XF_TIME_TEXT_MAX];
    struct xf_str rest = xf_str_c(c->url);
    struct xf_str host = XF_STR_EMPTY;
    struct xf_str token = xf_creds_session_token(role->base);

    rest = xf_str_sub(rest, xf_str_find(rest, '/', 0) + 2, rest.len); /* behind scheme:// */
    (void)xf_str_cut(&rest, '/', &host); /* sts_url() always ends the host so */
    xf_time_amz(c->wall_ms, date);
    XF_TRY(xf_sigv4_sha256(signer, c->body, hash, err));
    const struct xf_sigv4_pair headers[] = {
        {XF_STR_LIT("content-type"), XF_STR_LIT("application/x-www-form-urlencoded")},
        {XF_STR_LIT("host"), host},
        {XF_STR_LIT("x-amz-date"), xf_str_c(date)},
        {XF_STR_LIT("x-amz-security-token"), token},
    };
    struct xf_sigv4_req req = {.method = XF_STR_LIT("POST"),
                               .path = XF_STR_LIT("/"),
                               .headers = headers,
                               .n_headers = token.len > 0 ? 4 : 3,
                               .payload = xf_str_c(hash),
                               .region = c->region,
                               .service = XF_STR_LIT("sts")};
    memcpy(req.date, date, XF_SIGV4_DATE_LEN);
    XF_TRY(xf_sigv4_sign(signer, role->base, &req, &auth, NULL, err));
    xf_buf_putf(&lines[0], "Authorization: %s", auth.ptr);
    xf_buf_putf(&lines[1], "x-amz-date: %s", date);
    if (token.len > 0) {
        xf_buf_putf(&lines[2], "x-amz-security-token: %.*s", XF_STR_ARG(token));
    }
    return XF_OK;
}

static enum xf_code read_token(const struct xf_creds_role *role,
                               const char *where,
                               struct xf_buf *out,
                               struct xf_err *err)
{
    XF_AUTO_FREE char *path = xf_str_dup(role->token_file);

    if (xf_file_read(path, TOKEN_FILE_MAX, out, err) != XF_OK) {
        err->code = XF_E_CREDS; /* a missing file is no missing object */
        return XF_WRAP(err, "%s", where);
    }
    if (xf_str_trim(xf_buf_view(out)).len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "%s: the token file '%s' is empty", where, path);
    }
    return XF_OK;
}

/* Signed when there are keys to sign with. */
static enum xf_code sts_ask(const struct xf_creds_env *env,
                            const struct xf_creds_role *role,
                            const struct sts_call *c,
                            xf_creds_stop stop,
                            struct reply *r,
                            struct xf_err *err)
{
    struct xf_buf lines[4] = {{0}, {0}, {0}, {0}};
    struct call post = {.method = "POST",
                        .url = xf_str_c(c->url),
                        .lines = {"Content-Type: application/x-www-form-urlencoded"},
                        .body = c->body};
    enum xf_code rc = role->token_file.len == 0 ? sts_sign(role, c, lines, err) : XF_OK;
    size_t n = 1;

    for (size_t i = 0; i < XF_ARRAY_LEN(lines); i++) {
        if (lines[i].len > 0) {
            post.lines[n++] = lines[i].ptr;
        }
    }
    rc = rc == XF_OK ? ask(env, &post, stop, r, err) : rc;
    for (size_t i = 0; i < XF_ARRAY_LEN(lines); i++) {
        xf_creds_secret_fini(&lines[i]);
    }
    return rc;
}

/* STS calls a signature of a clock that is off wrong, or expired; its own clock tells. */
static bool is_clock_off(const struct reply *r, int64_t wall_ms)
{
    return r->status == 403 && r->date_ms != 0 &&
           (r->date_ms > wall_ms + SKEW_MS || r->date_ms < wall_ms - SKEW_MS);
}

enum xf_code xf_creds_fetch_role(const struct xf_creds_env *env,
                                 const struct xf_creds_role *role,
                                 const char *where,
                                 xf_creds_stop stop,
                                 struct xf_creds **out,
                                 struct xf_err *err)
{
    XF_AUTO_BUF url = {0};
    XF_AUTO_SECRET token = {0};
    XF_AUTO_SECRET body = {0};
    struct reply r = {0};
    struct sts_call c = {
        .region = role->region.len > 0 ? role->region : XF_STR_LIT("us-east-1"),
        .wall_ms = xf_clock_wall_ms(xf_clock_real()),
    };

    sts_url(env, c.region, &url);
    if (role->token_file.len > 0) {
        XF_TRY(read_token(role, where, &token, err));
    }
    sts_form(role, xf_str_trim(xf_buf_view(&token)), &body);
    c.url = url.ptr;
    c.body = xf_buf_view(&body);
    enum xf_code rc = sts_ask(env, role, &c, stop, &r, err);
    if (rc == XF_OK && is_clock_off(&r, c.wall_ms)) {
        c.wall_ms = r.date_ms;
        rc = sts_ask(env, role, &c, stop, &r, err);
    }
    rc = rc == XF_OK ? sts_result(&r, where, out, err) : rc;
    reply_fini(&r);
    return rc;
}
