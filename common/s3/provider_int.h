/* provider_int.h - what the files of the credential chain share. Only provider*.c and their tests
 * include it. */
#ifndef XF_S3_PROVIDER_INT_H
#define XF_S3_PROVIDER_INT_H

#include "common/s3/provider.h"

#include <stdatomic.h>

/* Where variables come from. */
struct xf_creds_env {
    const char *(*getenv)(void *arg, const char *name);
    void *arg;
};
/** A variable's value; empty when unset. Borrowed. */
struct xf_str xf_creds_env_get(const struct xf_creds_env *env, const char *name);

/* A buffer with a secret: wiped when it goes out of scope. */
void xf_creds_secret_fini(struct xf_buf *b);
#define XF_AUTO_SECRET __attribute__((cleanup(xf_creds_secret_fini))) struct xf_buf

/* ---- provider_process.c ---- */

/**
 * Keys of a JSON answer: AccessKeyId, SecretAccessKey, Expiration, and the session token under the
 * name that the provider gives it.
 */
XF_MUST_CHECK enum xf_code xf_creds_from_json(struct xf_str text,
                                              const char *token,
                                              const char *where,
                                              struct xf_creds **out,
                                              struct xf_err *err);

/* ---- provider_fetch.c: providers that are asked; each blocks for seconds at most ---- */

/* True ends a fetch early; NULL: never. */
typedef const atomic_bool *xf_creds_stop;

/** The instance's role, by IMDSv2. */
XF_MUST_CHECK enum xf_code xf_creds_fetch_imds(const struct xf_creds_env *env,
                                               xf_creds_stop stop,
                                               struct xf_creds **out,
                                               struct xf_err *err);
/** AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI is set. */
bool xf_creds_has_container(const struct xf_creds_env *env);
XF_MUST_CHECK enum xf_code xf_creds_fetch_container(const struct xf_creds_env *env,
                                                    xf_creds_stop stop,
                                                    struct xf_creds **out,
                                                    struct xf_err *err);
/** Run a profile's credential_process; `where` names file, line and profile. */
XF_MUST_CHECK enum xf_code xf_creds_fetch_process(struct xf_str command,
                                                  const char *where,
                                                  xf_creds_stop stop,
                                                  struct xf_creds **out,
                                                  struct xf_err *err);

struct xf_creds_role {
    struct xf_str arn;
    struct xf_str session_name; /* empty: "xfer" */
    struct xf_str external_id;  /* empty: none */
    struct xf_str duration_s;   /* digits; empty: the service's default */
    struct xf_str token_file;   /* web identity: read at each fetch; empty: signed by `base` */
    struct xf_str region;       /* of the STS endpoint; empty: us-east-1 */
    const struct xf_creds *base;
};
/** AssumeRole, or AssumeRoleWithWebIdentity when there is a token file. */
XF_MUST_CHECK enum xf_code xf_creds_fetch_role(const struct xf_creds_env *env,
                                               const struct xf_creds_role *role,
                                               const char *where,
                                               xf_creds_stop stop,
                                               struct xf_creds **out,
                                               struct xf_err *err);

/* ---- provider_keeper.c: one refresh a process ---- */

struct xf_creds_keeper;

struct xf_creds_keeper_ops {
    /* On the keeper's thread. */
    enum xf_code (*fetch)(void *self,
                          xf_creds_stop stop,
                          struct xf_creds **out,
                          struct xf_err *err);
    void (*free)(void *self);
};
/**
 * The process's keeper of that name; made, with its thread, when there is none. Takes over `self`
 * (freed at once when the keeper is there already).
 */
XF_MUST_CHECK enum xf_code xf_creds_keeper_get(const char *name,
                                               const struct xf_creds_keeper_ops *ops,
                                               void *self,
                                               struct xf_creds_keeper **out,
                                               struct xf_err *err);
/**
 * Give it back; the last one ends its thread, which may take as long as one request (5 s). NULL is
 * fine.
 */
void xf_creds_keeper_put(struct xf_creds_keeper *k);
/**
 * What it holds; the caller owns one reference. Waits only while the first fetch goes on (or the
 * provider is too busy for it: 429, 5xx in err.sub), up to 15 s. Keys that have ended, after
 * refreshes that failed, are not given: the error is that of the last refresh.
 */
XF_MUST_CHECK enum xf_code
xf_creds_keeper_take(struct xf_creds_keeper *k, struct xf_creds **out, struct xf_err *err);
/** As xf_creds_renew(); one fetch for all that ask, and no second one within 10 s. */
bool xf_creds_keeper_renew(struct xf_creds_keeper *k, const struct xf_creds *used);

#endif
