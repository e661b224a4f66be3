/*
 * creds.c - sets of keys, and the source made of environment variables and shared files.
 */
#include "common/s3/creds.h"

#include "common/base/clock.h"
#include "common/s3/ini.h"

#include <stdatomic.h>
#include <stdlib.h>

#define KEY_MAX 512U /* bytes of an access or secret key */

struct xf_creds {
    atomic_uint refs;
    int64_t expires_ms;
    struct xf_str access;
    struct xf_str secret;
    struct xf_str token;
    size_t len; /* of bytes */
    char bytes[];
};

/* Printable ASCII only: anything else would break the header it is put into. */
static enum xf_code check_text(struct xf_str text, const char *what, size_t max, struct xf_err *err)
{
    if (text.len > max) {
        return XF_FAIL(err, XF_E_INVAL, "%s is longer than %zu bytes", what, max);
    }
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] <= ' ' || text.ptr[i] >= 0x7f) {
            return XF_FAIL(
                err, XF_E_INVAL, "%s holds a blank or a character that no key has", what);
        }
    }
    return XF_OK;
}

static struct xf_str put_bytes(char **at, struct xf_str text)
{
    struct xf_str copy = {*at, text.len};

    if (text.len > 0) {
        memcpy(*at, text.ptr, text.len);
    }
    *at += text.len;
    return copy;
}

enum xf_code xf_creds_new(struct xf_str access_key,
                          struct xf_str secret_key,
                          struct xf_str session_token,
                          int64_t expires_ms,
                          struct xf_creds **out,
                          struct xf_err *err)
{
    struct xf_creds *c;
    size_t len;
    char *at;

    if (access_key.len == 0) {
        return XF_FAIL(err, XF_E_INVAL, "access key is empty");
    }
    if (secret_key.len == 0) {
        return XF_FAIL(err, XF_E_INVAL, "secret key is empty");
    }
    XF_TRY(check_text(access_key, "access key", KEY_MAX, err));
    XF_TRY(check_text(secret_key, "secret key", KEY_MAX, err));
    XF_TRY(check_text(session_token, "session token", XF_CREDS_TOKEN_MAX, err));
    len = access_key.len + secret_key.len + session_token.len;
    c = xf_xcalloc(1, sizeof(*c) + len);
    atomic_init(&c->refs, 1U);
    c->expires_ms = expires_ms;
    c->len = len;
    at = c->bytes;
    c->access = put_bytes(&at, access_key);
    c->secret = put_bytes(&at, secret_key);
    c->token = put_bytes(&at, session_token);
    *out = c;
    return XF_OK;
}

struct xf_creds *xf_creds_ref(const struct xf_creds *creds)
{
    /* The count is the one field that changes; a reader may take a reference. */
    union {
        const struct xf_creds *shared;
        struct xf_creds *owned;
    } c = {.shared = creds};

    atomic_fetch_add_explicit(&c.owned->refs, 1U, memory_order_relaxed);
    return c.owned;
}

void xf_creds_unref(struct xf_creds *c)
{
    if (c != NULL && atomic_fetch_sub_explicit(&c->refs, 1U, memory_order_acq_rel) == 1U) {
        xf_wipe(c->bytes, c->len);
        xf_xfree(c);
    }
}

struct xf_str xf_creds_access_key(const struct xf_creds *creds)
{
    return creds->access;
}

struct xf_str xf_creds_secret_key(const struct xf_creds *creds)
{
    return creds->secret;
}

struct xf_str xf_creds_session_token(const struct xf_creds *creds)
{
    return creds->token;
}

int64_t xf_creds_expires_ms(const struct xf_creds *creds)
{
    return creds->expires_ms;
}

bool xf_creds_is_same(const struct xf_creds *a, const struct xf_creds *b)
{
    return a == b || (xf_str_eq(a->access, b->access) && xf_str_eq(a->secret, b->secret) &&
                      xf_str_eq(a->token, b->token));
}

void xf_creds_masked_key(const struct xf_creds *creds, struct xf_buf *out)
{
    struct xf_str key = creds->access;

    if (key.len < 12) {
        xf_buf_put_c(out, "****");
        return;
    }
    xf_buf_put_mem(out, key.ptr, 4);
    xf_buf_put_c(out, "****");
    xf_buf_put_mem(out, key.ptr + key.len - 4, 4);
}

/* ---- sources ---- */

struct xf_creds_source {
    const struct xf_creds_source_ops *ops;
    void *self;
    char *name;
};

struct xf_creds_source *
xf_creds_source_of(const struct xf_creds_source_ops *ops, void *self, const char *name)
{
    struct xf_creds_source *source = xf_xcalloc(1, sizeof(*source));

    source->ops = ops;
    source->self = self;
    source->name = xf_xstrdup(name);
    return source;
}

void xf_creds_source_free(struct xf_creds_source *source)
{
    if (source != NULL) {
        source->ops->free(source->self);
        xf_xfree(source->name);
        xf_xfree(source);
    }
}

enum xf_code
xf_creds_resolve(struct xf_creds_source *source, struct xf_creds **out, struct xf_err *err)
{
    return source->ops->resolve(source->self, out, err);
}

enum xf_code xf_creds_region(struct xf_creds_source *source, struct xf_buf *out, struct xf_err *err)
{
    xf_buf_reset(out);
    return source->ops->region != NULL ? source->ops->region(source->self, out, err) : XF_OK;
}

const char *xf_creds_source_name(const struct xf_creds_source *source)
{
    return source->name;
}

/* The recipe of xf_creds_source_new(). */
struct recipe {
    char *access_env; /* NULL: the usual chain */
    char *secret_env;
    char *token_env;
    char *profile; /* as given in the options; NULL: none */
    const char *(*getenv)(void *arg, const char *name);
    void *getenv_arg;
};

static const char *process_env(void *arg, const char *name)
{
    (void)arg; /* the process has one environment */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment after the start */
    return getenv(name);
}

/* A variable's value; empty when unset. */
static struct xf_str env(const struct recipe *r, const char *name)
{
    const char *value = name != NULL ? r->getenv(r->getenv_arg, name) : NULL;

    return value != NULL ? xf_str_c(value) : XF_STR_EMPTY;
}

static const char *profile_name(const struct recipe *r)
{
    const char *name = r->profile;

    if (name == NULL) {
        name = r->getenv(r->getenv_arg, "AWS_PROFILE");
    }
    if (name == NULL || name[0] == '\0') {
        name = r->getenv(r->getenv_arg, "AWS_DEFAULT_PROFILE");
    }
    return name != NULL && name[0] != '\0' ? name : "default";
}

/* What was found, as text. */
struct found {
    struct xf_str access;
    struct xf_str secret;
    struct xf_str token;
    struct xf_str expires;
};

/* Make a set, or say what is wrong where; a value is never shown. */
static enum xf_code
make(const struct found *f, const char *where, struct xf_creds **out, struct xf_err *err)
{
    int64_t expires_ms = 0;

    if (f->expires.len > 0 && !xf_time_parse_rfc3339(f->expires, &expires_ms)) {
        return XF_FAIL(err, XF_E_CREDS, "%s: the expiration is not an RFC 3339 time", where);
    }
    if (xf_creds_new(f->access, f->secret, f->token, expires_ms, out, err) != XF_OK) {
        err->code = XF_E_CREDS;
        return XF_WRAP(err, "%s", where);
    }
    return XF_OK;
}

static enum xf_code
from_named_env(const struct recipe *r, struct xf_creds **out, struct xf_err *err)
{
    struct found f = {
        .access = env(r, r->access_env),
        .secret = env(r, r->secret_env),
        .token = env(r, r->token_env),
    };

    if (f.access.len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "environment variable %s is not set", r->access_env);
    }
    if (f.secret.len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "environment variable %s is not set", r->secret_env);
    }
    if (r->token_env != NULL && f.token.len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "environment variable %s is not set", r->token_env);
    }
    return make(&f, "named environment variables", out, err);
}

/* True when the usual variables decide, whether or not they are right. */
static bool from_usual_env(const struct recipe *r,
                           struct xf_creds **out,
                           enum xf_code *code,
                           struct xf_err *err)
{
    struct found f = {
        .access = env(r, "AWS_ACCESS_KEY_ID"),
        .secret = env(r, "AWS_SECRET_ACCESS_KEY"),
        .token = env(r, "AWS_SESSION_TOKEN"),
        .expires = env(r, "AWS_CREDENTIAL_EXPIRATION"),
    };

    if (f.access.len == 0 && f.secret.len == 0) {
        return false;
    }
    if (f.access.len == 0 || f.secret.len == 0) {
        *code = XF_FAIL(err,
                        XF_E_CREDS,
                        "environment variable %s is set without %s",
                        f.access.len > 0 ? "AWS_ACCESS_KEY_ID" : "AWS_SECRET_ACCESS_KEY",
                        f.access.len > 0 ? "AWS_SECRET_ACCESS_KEY" : "AWS_ACCESS_KEY_ID");
        return true;
    }
    if (f.token.len == 0) {
        f.token = env(r, "AWS_SECURITY_TOKEN");
    }
    *code = make(&f, "environment variables AWS_*", out, err);
    return true;
}

/* ---- shared files ---- */

/* The path of a shared file: the variable, else below HOME; empty when there is neither. */
static void
file_path(const struct recipe *r, const char *variable, const char *below, struct xf_buf *path)
{
    struct xf_str given = env(r, variable);
    struct xf_str home = env(r, "HOME");

    xf_buf_reset(path);
    if (given.len > 0 && !xf_str_starts(given, XF_STR_LIT("~/"))) {
        xf_buf_put(path, given);
    } else if (home.len > 0) {
        xf_buf_put(path, home);
        if (given.len > 0) {
            xf_buf_put(path, xf_str_sub(given, 1, given.len));
        } else {
            xf_buf_put_c(path, below);
        }
    }
}

/* One profile's options in one file. */
static enum xf_code read_profile(const struct recipe *r,
                                 bool is_config,
                                 const char *profile,
                                 struct xf_ini_section *section,
                                 struct xf_buf *path,
                                 struct xf_err *err)
{
    file_path(r,
              is_config ? "AWS_CONFIG_FILE" : "AWS_SHARED_CREDENTIALS_FILE",
              is_config ? "/.aws/config" : "/.aws/credentials",
              path);
    if (path->len == 0) {
        return XF_OK;
    }
    return xf_ini_read(path->ptr, xf_str_c(profile), is_config, section, err);
}

/* Ways of a profile that this program does not go. */
static const char *const other_ways[] = {"role_arn",
                                         "credential_process",
                                         "sso_session",
                                         "sso_start_url",
                                         "web_identity_token_file",
                                         "login_session"};

static enum xf_code refuse_other_ways(const struct xf_ini_section *section,
                                      const char *path,
                                      const char *profile,
                                      struct xf_err *err)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(other_ways); i++) {
        const struct xf_ini_option *o = xf_ini_get(section, other_ways[i]);

        if (o != NULL) {
            return XF_FAIL(err,
                           XF_E_CREDS,
                           "%s:%u: profile '%s' uses %s, which is not supported",
                           path,
                           o->line,
                           profile,
                           other_ways[i]);
        }
    }
    return XF_OK;
}

/* Keys of one file's profile; *out stays NULL when it has none. */
static enum xf_code keys_of(const struct xf_ini_section *section,
                            const char *path,
                            const char *profile,
                            struct xf_creds **out,
                            struct xf_err *err)
{
    const struct xf_ini_option *access = xf_ini_get(section, "aws_access_key_id");
    const struct xf_ini_option *secret = xf_ini_get(section, "aws_secret_access_key");
    const struct xf_ini_option *token = xf_ini_get(section, "aws_session_token");
    XF_AUTO_BUF where = {0};

    if (access == NULL && secret == NULL) {
        return XF_OK;
    }
    if (access == NULL || secret == NULL) {
        return XF_FAIL(err,
                       XF_E_CREDS,
                       "%s:%u: profile '%s' has %s but no %s",
                       path,
                       access != NULL ? access->line : secret->line,
                       profile,
                       access != NULL ? "aws_access_key_id" : "aws_secret_access_key",
                       access != NULL ? "aws_secret_access_key" : "aws_access_key_id");
    }
    struct found f = {
        .access = access->value,
        .secret = secret->value,
        .token = token != NULL ? token->value : XF_STR_EMPTY,
    };
    xf_buf_putf(&where, "%s:%u: profile '%s'", path, access->line, profile);
    return make(&f, where.ptr, out, err);
}

static enum xf_code from_files(const struct recipe *r, struct xf_creds **out, struct xf_err *err)
{
    const char *profile = profile_name(r);
    XF_AUTO_BUF first = {0};
    XF_AUTO_BUF second = {0};
    struct xf_buf *paths[2] = {&first, &second};
    bool found = false;

    *out = NULL;
    for (int i = 0; i < 2 && *out == NULL; i++) {
        XF_AUTO_INI section = {0};

        XF_TRY(read_profile(r, i == 1, profile, &section, paths[i], err));
        found = found || section.found;
        XF_TRY(keys_of(&section, paths[i]->ptr, profile, out, err));
        if (*out == NULL) {
            XF_TRY(refuse_other_ways(&section, paths[i]->ptr, profile, err));
        }
    }
    if (*out != NULL) {
        return XF_OK;
    }
    return XF_FAIL(err,
                   XF_E_CREDS,
                   "no credentials: %s'%s' %s in '%s' or '%s'",
                   r->profile == NULL ? "AWS_ACCESS_KEY_ID is not set and profile " : "profile ",
                   profile,
                   found ? "has no keys" : "does not exist",
                   first.ptr != NULL ? first.ptr : "",
                   second.ptr != NULL ? second.ptr : "");
}

static enum xf_code recipe_resolve(void *self, struct xf_creds **out, struct xf_err *err)
{
    const struct recipe *r = self;
    enum xf_code code = XF_OK;

    if (r->access_env != NULL) {
        return from_named_env(r, out, err);
    }
    if (r->profile == NULL && from_usual_env(r, out, &code, err)) {
        return code;
    }
    return from_files(r, out, err);
}

static enum xf_code recipe_region(void *self, struct xf_buf *out, struct xf_err *err)
{
    const struct recipe *r = self;
    const char *profile = profile_name(r);
    struct xf_str from_env = env(r, "AWS_REGION");

    from_env = from_env.len > 0 ? from_env : env(r, "AWS_DEFAULT_REGION");
    /* A profile that was named in the job goes before the environment. */
    if (r->profile == NULL && from_env.len > 0) {
        xf_buf_put(out, from_env);
        return XF_OK;
    }
    for (int i = 1; i >= 0 && out->len == 0; i--) {
        XF_AUTO_INI section = {0};
        XF_AUTO_BUF path = {0};
        const struct xf_ini_option *region;

        XF_TRY(read_profile(r, i == 1, profile, &section, &path, err));
        region = xf_ini_get(&section, "region");
        if (region != NULL) {
            xf_buf_put(out, region->value);
        }
    }
    if (out->len == 0) {
        xf_buf_put(out, from_env);
    }
    return XF_OK;
}

static void recipe_free(void *self)
{
    struct recipe *r = self;

    xf_xfree(r->access_env);
    xf_xfree(r->secret_env);
    xf_xfree(r->token_env);
    xf_xfree(r->profile);
    xf_xfree(r);
}

static const struct xf_creds_source_ops recipe_ops = {
    .resolve = recipe_resolve,
    .region = recipe_region,
    .free = recipe_free,
};

static char *dup_or_null(struct xf_str text)
{
    return text.len > 0 ? xf_str_dup(text) : NULL;
}

enum xf_code
xf_creds_source_new(const struct xf_creds_opts *o, struct xf_creds_source **out, struct xf_err *err)
{
    bool is_named = o->access_key_env.len > 0 || o->secret_key_env.len > 0;
    struct recipe *r;
    XF_AUTO_BUF name = {0};

    if (is_named && (o->access_key_env.len == 0 || o->secret_key_env.len == 0)) {
        return XF_FAIL(err, XF_E_INVAL, "access_key_env and secret_key_env belong together");
    }
    if (is_named && o->profile.len > 0) {
        return XF_FAIL(err, XF_E_INVAL, "give either a profile or names of variables");
    }
    if (!is_named && o->session_token_env.len > 0) {
        return XF_FAIL(err, XF_E_INVAL, "session_token_env needs access_key_env");
    }
    r = xf_xcalloc(1, sizeof(*r));
    r->access_env = dup_or_null(o->access_key_env);
    r->secret_env = dup_or_null(o->secret_key_env);
    r->token_env = dup_or_null(o->session_token_env);
    r->profile = dup_or_null(o->profile);
    r->getenv = o->getenv != NULL ? o->getenv : process_env;
    r->getenv_arg = o->getenv_arg;
    if (is_named) {
        xf_buf_putf(&name, "variables %s and %s", r->access_env, r->secret_env);
    } else if (r->profile != NULL) {
        xf_buf_putf(&name, "profile '%s'", r->profile);
    } else {
        xf_buf_put_c(&name, "environment and default profile");
    }
    *out = xf_creds_source_of(&recipe_ops, r, name.ptr);
    return XF_OK;
}
