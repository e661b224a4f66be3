/*
 * provider_chain.c - the source made of variables, shared files, and whom they name: AWS's own
 * chain.
 *
 * Order: the named variables; else, without a profile in the options, AWS_ACCESS_KEY_ID; then of
 * the profile: role_arn, web identity (variables too), keys in the credentials file,
 * credential_process, keys in the config file; then, without a profile in the options, the
 * container's service and the instance's metadata. A way that is configured and does not work is an
 * error: falling to another identity would copy with the wrong rights. SSO is not supported.
 *
 * Keys in variables and files are read at each resolve; all other ways are asked by a keeper.
 */
#include "common/s3/ini.h"
#include "common/s3/provider_int.h"

#include <stdlib.h>

enum { DEPTH_MAX = 5 }; /* profiles that name each other */

/* The recipe of xf_creds_source_new(). */
struct recipe {
    char *access_env; /* NULL: the usual chain */
    char *secret_env;
    char *token_env;
    char *profile;  /* as given in the options; NULL: none */
    char *role_arn; /* to assume with what the chain gives; NULL: none */
    char *external_id;
    struct xf_creds_env env;
    struct xf_creds_keeper *keeper; /* NULL: none needed so far */
};

static const char *process_env(void *arg, const char *name)
{
    (void)arg; /* the process has one environment */
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment after the start */
    return getenv(name);
}

struct xf_str xf_creds_env_get(const struct xf_creds_env *env, const char *name)
{
    const char *value = name != NULL ? env->getenv(env->arg, name) : NULL;

    return value != NULL ? xf_str_c(value) : XF_STR_EMPTY;
}

static const char *profile_name(const struct xf_creds_env *env, const char *given)
{
    const char *name = given;

    if (name == NULL) {
        name = env->getenv(env->arg, "AWS_PROFILE");
    }
    if (name == NULL || name[0] == '\0') {
        name = env->getenv(env->arg, "AWS_DEFAULT_PROFILE");
    }
    return name != NULL && name[0] != '\0' ? name : "default";
}

static enum xf_code
from_named_env(const struct recipe *r, struct xf_creds **out, struct xf_err *err)
{
    struct xf_creds_found f = {
        .access = xf_creds_env_get(&r->env, r->access_env),
        .secret = xf_creds_env_get(&r->env, r->secret_env),
        .token = xf_creds_env_get(&r->env, r->token_env),
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
    return xf_creds_make(&f, "named environment variables", out, err);
}

/* True when the usual variables decide, whether or not they are right. */
static bool from_usual_env(const struct xf_creds_env *env,
                           struct xf_creds **out,
                           enum xf_code *code,
                           struct xf_err *err)
{
    struct xf_creds_found f = {
        .access = xf_creds_env_get(env, "AWS_ACCESS_KEY_ID"),
        .secret = xf_creds_env_get(env, "AWS_SECRET_ACCESS_KEY"),
        .token = xf_creds_env_get(env, "AWS_SESSION_TOKEN"),
        .expires = xf_creds_env_get(env, "AWS_CREDENTIAL_EXPIRATION"),
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
        f.token = xf_creds_env_get(env, "AWS_SECURITY_TOKEN");
    }
    *code = xf_creds_make(&f, "environment variables AWS_*", out, err);
    return true;
}

/* ---- shared files ---- */

/* The path of a shared file: the variable, else below HOME; empty when there is neither. */
static void file_path(const struct xf_creds_env *env,
                      const char *variable,
                      const char *below,
                      struct xf_buf *path)
{
    struct xf_str given = xf_creds_env_get(env, variable);
    struct xf_str home = xf_creds_env_get(env, "HOME");

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

/* A profile in both files: the credentials file, then the config file. */
struct profile {
    const char *name;
    struct xf_ini_section in[2];
    struct xf_buf path[2];
};

static void profile_fini(struct profile *p)
{
    for (int i = 0; i < 2; i++) {
        xf_ini_fini(&p->in[i]);
        xf_buf_fini(&p->path[i]);
    }
}
#define AUTO_PROFILE __attribute__((cleanup(profile_fini))) struct profile

static enum xf_code read_profile(const struct xf_creds_env *env,
                                 const char *name,
                                 struct profile *p,
                                 struct xf_err *err)
{
    static const char *const variables[] = {"AWS_SHARED_CREDENTIALS_FILE", "AWS_CONFIG_FILE"};
    static const char *const below[] = {"/.aws/credentials", "/.aws/config"};

    p->name = name;
    for (int i = 0; i < 2; i++) {
        file_path(env, variables[i], below[i], &p->path[i]);
        if (p->path[i].len > 0) {
            XF_TRY(xf_ini_read(p->path[i].ptr, xf_str_c(name), i == 1, &p->in[i], err));
        }
    }
    return XF_OK;
}

/* An option of either file, the config file's first; NULL: none. `where` is set: file:line. */
static const struct xf_ini_option *
option(const struct profile *p, const char *name, struct xf_buf *where)
{
    for (int i = 1; i >= 0; i--) {
        const struct xf_ini_option *o = xf_ini_get(&p->in[i], name);
        if (o != NULL) {
            xf_buf_reset(where);
            xf_buf_putf(where, "%s:%u: profile '%s'", p->path[i].ptr, o->line, p->name);
            return o;
        }
    }
    return NULL;
}

static struct xf_str value(const struct profile *p, const char *name)
{
    XF_AUTO_BUF where = {0};
    const struct xf_ini_option *o = option(p, name, &where);

    return o != NULL ? o->value : XF_STR_EMPTY;
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
    struct xf_creds_found f = {
        .access = access->value,
        .secret = secret->value,
        .token = token != NULL ? token->value : XF_STR_EMPTY,
    };
    xf_buf_putf(&where, "%s:%u: profile '%s'", path, access->line, profile);
    return xf_creds_make(&f, where.ptr, out, err);
}

/* ---- which way ---- */

enum way {
    WAY_NONE,
    WAY_KEYS,
    WAY_ROLE,
    WAY_WEB,
    WAY_WEB_ENV,
    WAY_PROCESS,
    WAY_CONTAINER,
    WAY_IMDS
};

/* Ways of a profile that this program does not go. */
static enum xf_code refuse_other_ways(const struct profile *p, struct xf_err *err)
{
    static const char *const others[] = {"sso_session", "sso_start_url", "login_session"};
    XF_AUTO_BUF where = {0};

    for (size_t i = 0; i < XF_ARRAY_LEN(others); i++) {
        if (option(p, others[i], &where) != NULL) {
            return XF_FAIL(err,
                           XF_E_CREDS,
                           "%s uses %s, which is not supported: give keys, a role, or a "
                           "credential_process",
                           where.ptr,
                           others[i]);
        }
    }
    return XF_OK;
}

static bool has_keys(const struct profile *p, int file)
{
    return xf_ini_get(&p->in[file], "aws_access_key_id") != NULL ||
           xf_ini_get(&p->in[file], "aws_secret_access_key") != NULL;
}

/* is_default: no profile was asked for by name. */
static enum xf_code choose(const struct xf_creds_env *env,
                           const struct profile *p,
                           bool is_default,
                           enum way *out,
                           struct xf_err *err)
{
    bool has_role = value(p, "role_arn").len > 0;

    if (has_role && value(p, "web_identity_token_file").len > 0) {
        *out = WAY_WEB;
    } else if (has_role) {
        *out = WAY_ROLE;
    } else if (is_default && xf_creds_env_get(env, "AWS_WEB_IDENTITY_TOKEN_FILE").len > 0) {
        *out = WAY_WEB_ENV;
    } else if (has_keys(p, 0)) {
        *out = WAY_KEYS;
    } else if (value(p, "credential_process").len > 0) {
        *out = WAY_PROCESS;
    } else if (has_keys(p, 1)) {
        *out = WAY_KEYS;
    } else {
        *out = WAY_NONE;
        XF_TRY(refuse_other_ways(p, err));
        if (is_default && xf_creds_has_container(env)) {
            *out = WAY_CONTAINER;
        } else if (is_default &&
                   !xf_str_eq_c(xf_creds_env_get(env, "AWS_EC2_METADATA_DISABLED"), "true")) {
            *out = WAY_IMDS;
        }
    }
    return XF_OK;
}

static enum xf_code profile_keys(const struct profile *p, struct xf_creds **out, struct xf_err *err)
{
    int file = has_keys(p, 0) ? 0 : 1;

    return keys_of(&p->in[file], p->path[file].ptr, p->name, out, err);
}

static enum xf_code no_keys(const struct profile *p, bool is_default, struct xf_err *err)
{
    bool found = p->in[0].found || p->in[1].found;

    return XF_FAIL(err,
                   XF_E_CREDS,
                   "no credentials: %s'%s' %s in '%s' or '%s'",
                   is_default ? "AWS_ACCESS_KEY_ID is not set and profile " : "profile ",
                   p->name,
                   found ? "has no keys" : "does not exist",
                   p->path[0].ptr != NULL ? p->path[0].ptr : "",
                   p->path[1].ptr != NULL ? p->path[1].ptr : "");
}

static void find_region(const struct xf_creds_env *env,
                        const struct profile *p,
                        bool is_default,
                        struct xf_buf *out)
{
    struct xf_str from_env = xf_creds_env_get(env, "AWS_REGION");
    struct xf_str from_file = value(p, "region");

    from_env = from_env.len > 0 ? from_env : xf_creds_env_get(env, "AWS_DEFAULT_REGION");
    /* A profile that was named in the job goes before the environment. */
    xf_buf_reset(out);
    xf_buf_put(out, (is_default || from_file.len == 0) && from_env.len > 0 ? from_env : from_file);
}

/* ---- asking, on a keeper's thread ---- */

struct asking {
    const struct xf_creds_env *env;
    xf_creds_stop stop;
    unsigned depth;
};

static enum xf_code ask_profile(
    struct asking *a, const char *name, bool is_default, struct xf_creds **out, struct xf_err *err);

/* Whose keys sign AssumeRole: exactly one of source_profile and credential_source says. */
static enum xf_code
ask_base(struct asking *a, const struct profile *p, struct xf_creds **out, struct xf_err *err)
{
    XF_AUTO_BUF where = {0};
    struct xf_str profile = value(p, "source_profile");
    struct xf_str source = value(p, "credential_source");
    enum xf_code rc = XF_OK;

    (void)option(p, "role_arn", &where); /* only for the place */
    if ((profile.len > 0) == (source.len > 0)) {
        return XF_FAIL(err,
                       XF_E_CREDS,
                       "%s: role_arn needs exactly one of source_profile and credential_source",
                       where.ptr);
    }
    if (xf_str_eq_c(profile, p->name)) {
        return profile_keys(p, out, err);
    }
    if (profile.len > 0) {
        XF_AUTO_FREE char *name = xf_str_dup(profile);
        return ask_profile(a, name, false, out, err);
    }
    if (xf_str_eq_c(source, "Environment")) {
        return from_usual_env(a->env, out, &rc, err)
                   ? rc
                   : XF_FAIL(err, XF_E_CREDS, "%s: AWS_ACCESS_KEY_ID is not set", where.ptr);
    }
    if (xf_str_eq_c(source, "EcsContainer")) {
        return xf_creds_fetch_container(a->env, a->stop, out, err);
    }
    if (xf_str_eq_c(source, "Ec2InstanceMetadata")) {
        return xf_creds_fetch_imds(a->env, a->stop, out, err);
    }
    return XF_FAIL(err,
                   XF_E_CREDS,
                   "%s: credential_source must be Environment, Ec2InstanceMetadata or EcsContainer",
                   where.ptr);
}

static enum xf_code ask_role(struct asking *a,
                             const struct profile *p,
                             bool is_web,
                             struct xf_creds **out,
                             struct xf_err *err)
{
    XF_AUTO(xf_creds) base = NULL;
    XF_AUTO_BUF where = {0};
    XF_AUTO_BUF region = {0};
    struct xf_creds_role role = {
        .arn = value(p, "role_arn"),
        .session_name = value(p, "role_session_name"),
        .external_id = value(p, "external_id"),
        .duration_s = value(p, "duration_seconds"),
        .token_file = is_web ? value(p, "web_identity_token_file") : XF_STR_EMPTY,
    };

    if (option(p, "mfa_serial", &where) != NULL) {
        return XF_FAIL(err, XF_E_CREDS, "%s: mfa_serial needs a person at each refresh", where.ptr);
    }
    (void)option(p, "role_arn", &where); /* only for the place */
    if (!is_web) {
        XF_TRY(ask_base(a, p, &base, err));
        role.base = base;
    }
    find_region(a->env, p, false, &region);
    role.region = xf_buf_view(&region);
    return xf_creds_fetch_role(a->env, &role, where.ptr, a->stop, out, err);
}

static enum xf_code
ask_web_env(struct asking *a, const struct profile *p, struct xf_creds **out, struct xf_err *err)
{
    XF_AUTO_BUF region = {0};

    find_region(a->env, p, true, &region);
    const struct xf_creds_role role = {
        .arn = xf_creds_env_get(a->env, "AWS_ROLE_ARN"),
        .session_name = xf_creds_env_get(a->env, "AWS_ROLE_SESSION_NAME"),
        .token_file = xf_creds_env_get(a->env, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        .region = xf_buf_view(&region),
    };
    if (role.arn.len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "AWS_WEB_IDENTITY_TOKEN_FILE is set without AWS_ROLE_ARN");
    }
    return xf_creds_fetch_role(a->env, &role, "AWS_WEB_IDENTITY_TOKEN_FILE", a->stop, out, err);
}

static enum xf_code ask_profile(
    struct asking *a, const char *name, bool is_default, struct xf_creds **out, struct xf_err *err)
{
    AUTO_PROFILE p = {0};
    XF_AUTO_BUF where = {0};
    enum way way = WAY_NONE;
    enum xf_code rc = XF_OK;

    if (a->depth++ >= DEPTH_MAX) {
        return XF_FAIL(err, XF_E_CREDS, "profile '%s': source_profile goes round", name);
    }
    if (is_default && from_usual_env(a->env, out, &rc, err)) {
        return rc;
    }
    XF_TRY(read_profile(a->env, name, &p, err));
    XF_TRY(choose(a->env, &p, is_default, &way, err));
    switch (way) {
    case WAY_KEYS: return profile_keys(&p, out, err);
    case WAY_ROLE: return ask_role(a, &p, false, out, err);
    case WAY_WEB: return ask_role(a, &p, true, out, err);
    case WAY_WEB_ENV: return ask_web_env(a, &p, out, err);
    case WAY_PROCESS: {
        const struct xf_ini_option *o = option(&p, "credential_process", &where);
        return xf_creds_fetch_process(o->value, where.ptr, a->stop, out, err);
    }
    case WAY_CONTAINER: return xf_creds_fetch_container(a->env, a->stop, out, err);
    case WAY_IMDS:
        if (xf_creds_fetch_imds(a->env, a->stop, out, err) != XF_OK) {
            struct xf_err asked = *err;
            struct xf_err read;
            (void)no_keys(&p, is_default, &read);
            return XF_FAIL_SUB(err, XF_E_CREDS, asked.sub, "%s; %s", read.msg, asked.msg);
        }
        return XF_OK;
    case WAY_NONE: break;
    }
    return no_keys(&p, is_default, err);
}

/* ---- the keeper's side of a recipe ---- */

struct kept {
    struct xf_creds_env env;
    char *profile; /* NULL: the default chain */
    char *role_arn;
    char *external_id;
};

static enum xf_code
kept_fetch(void *self, xf_creds_stop stop, struct xf_creds **out, struct xf_err *err)
{
    const struct kept *k = self;
    struct asking a = {.env = &k->env, .stop = stop};
    XF_AUTO(xf_creds) base = NULL;
    XF_AUTO_BUF region = {0};
    AUTO_PROFILE p = {0};
    const char *name = profile_name(&k->env, k->profile);

    XF_TRY(ask_profile(&a, name, k->profile == NULL, &base, err));
    if (k->role_arn == NULL) {
        *out = XF_STEAL(base);
        return XF_OK;
    }
    XF_TRY(read_profile(&k->env, name, &p, err));
    find_region(&k->env, &p, k->profile == NULL, &region);
    const struct xf_creds_role role = {
        .arn = xf_str_c(k->role_arn),
        .external_id = k->external_id != NULL ? xf_str_c(k->external_id) : XF_STR_EMPTY,
        .region = xf_buf_view(&region),
        .base = base,
    };
    return xf_creds_fetch_role(&k->env, &role, "role_arn", stop, out, err);
}

static void kept_free(void *self)
{
    struct kept *k = self;

    xf_xfree(k->profile);
    xf_xfree(k->role_arn);
    xf_xfree(k->external_id);
    xf_xfree(k);
}

static char *dup_c(const char *text)
{
    return text != NULL ? xf_xstrdup(text) : NULL;
}

static enum xf_code
from_keeper(struct recipe *r, const struct profile *p, struct xf_creds **out, struct xf_err *err)
{
    static const struct xf_creds_keeper_ops ops = {.fetch = kept_fetch, .free = kept_free};

    if (r->keeper == NULL) {
        XF_AUTO_BUF name = {0};
        struct kept *k = xf_xcalloc(1, sizeof(*k));

        k->env = r->env;
        k->profile = dup_c(r->profile);
        k->role_arn = dup_c(r->role_arn);
        k->external_id = dup_c(r->external_id);
        xf_buf_putf(&name,
                    "%s'%s' of '%s' and '%s'",
                    r->profile == NULL ? "default chain, profile " : "profile ",
                    p->name,
                    p->path[0].ptr != NULL ? p->path[0].ptr : "",
                    p->path[1].ptr != NULL ? p->path[1].ptr : "");
        if (r->role_arn != NULL) { /* the name is what tells keepers apart: all of it */
            xf_buf_putf(&name,
                        ", role %s, external id '%s'",
                        r->role_arn,
                        r->external_id != NULL ? r->external_id : "");
        }
        XF_TRY(xf_creds_keeper_get(name.ptr, &ops, k, &r->keeper, err));
    }
    return xf_creds_keeper_take(r->keeper, out, err);
}

/* ---- the source ---- */

static enum xf_code recipe_resolve(void *self, struct xf_creds **out, struct xf_err *err)
{
    struct recipe *r = self;
    bool is_default = r->profile == NULL;
    AUTO_PROFILE p = {0};
    enum way way = WAY_NONE;
    enum xf_code rc = XF_OK;

    if (r->access_env != NULL) {
        return from_named_env(r, out, err);
    }
    if (is_default && r->role_arn == NULL && from_usual_env(&r->env, out, &rc, err)) {
        return rc;
    }
    XF_TRY(read_profile(&r->env, profile_name(&r->env, r->profile), &p, err));
    if (r->role_arn != NULL) {
        return from_keeper(r, &p, out, err); /* the base's way is chosen when it is asked for */
    }
    XF_TRY(choose(&r->env, &p, is_default, &way, err));
    if (way == WAY_KEYS) {
        return profile_keys(&p, out, err);
    }
    return way == WAY_NONE ? no_keys(&p, is_default, err) : from_keeper(r, &p, out, err);
}

static enum xf_code recipe_region(void *self, struct xf_buf *out, struct xf_err *err)
{
    const struct recipe *r = self;
    AUTO_PROFILE p = {0};

    XF_TRY(read_profile(&r->env, profile_name(&r->env, r->profile), &p, err));
    find_region(&r->env, &p, r->profile == NULL, out);
    return XF_OK;
}

static bool recipe_renew(void *self, const struct xf_creds *used)
{
    const struct recipe *r = self;

    return r->keeper != NULL && xf_creds_keeper_renew(r->keeper, used);
}

static void recipe_free(void *self)
{
    struct recipe *r = self;

    xf_creds_keeper_put(r->keeper);
    xf_xfree(r->access_env);
    xf_xfree(r->secret_env);
    xf_xfree(r->token_env);
    xf_xfree(r->profile);
    xf_xfree(r->role_arn);
    xf_xfree(r->external_id);
    xf_xfree(r);
}

static const struct xf_creds_source_ops recipe_ops = {
    .resolve = recipe_resolve,
    .region = recipe_region,
    .renew = recipe_renew,
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
    if (is_named && o->role_arn.len > 0) {
        return XF_FAIL(err, XF_E_INVAL, "give either role_arn or names of variables");
    }
    if (o->external_id.len > 0 && o->role_arn.len == 0) {
        return XF_FAIL(err, XF_E_INVAL, "external_id needs role_arn");
    }
    r = xf_xcalloc(1, sizeof(*r));
    r->access_env = dup_or_null(o->access_key_env);
    r->secret_env = dup_or_null(o->secret_key_env);
    r->token_env = dup_or_null(o->session_token_env);
    r->profile = dup_or_null(o->profile);
    r->role_arn = dup_or_null(o->role_arn);
    r->external_id = dup_or_null(o->external_id);
    r->env.getenv = o->getenv != NULL ? o->getenv : process_env;
    r->env.arg = o->getenv_arg;
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
