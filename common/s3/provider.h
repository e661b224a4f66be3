/*
 * provider.h - where credentials come from on a host: what the AWS tools look at, in their order.
 *
 * Threads: as of any source, see creds.h.
 */
#ifndef XF_S3_PROVIDER_H
#define XF_S3_PROVIDER_H

#include "common/s3/creds.h"

struct xf_creds_opts {
    struct xf_str profile;        /* empty: AWS_PROFILE, AWS_DEFAULT_PROFILE, then "default" */
    struct xf_str access_key_env; /* with secret_key_env: these variables and nothing else */
    struct xf_str secret_key_env;
    struct xf_str session_token_env; /* optional, with the two above */
    struct xf_str role_arn;          /* assumed with what the chain gives; empty: none */
    struct xf_str external_id;       /* with role_arn */
    const char *(*getenv)(void *arg, const char *name); /* NULL: the process's environment */
    void *getenv_arg;
};

/**
 * The source that the options describe. Precedence: named variables; else AWS's own chain (see
 * provider_chain.c): variables, shared files with profiles, assumed roles, web identity,
 * credential_process, the container's service, instance metadata (IMDSv2). SSO is refused as not
 * supported. Nothing is read before the first resolve. What has to be asked for is kept fresh by
 * one thread for the whole process.
 *
 * The options are copied. *out is the caller's, for xf_creds_source_free(). Errors: XF_E_INVAL
 * options that do not go together (a profile or role_arn with named variables, one of a pair).
 */
XF_MUST_CHECK enum xf_code xf_creds_source_new(const struct xf_creds_opts *o,
                                               struct xf_creds_source **out,
                                               struct xf_err *err);

#endif
