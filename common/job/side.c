/*
 * side.c - what a side says, put into a client's options.
 */
#include "common/job/side.h"

#include "common/job/spec.h"
#include "common/s3/creds.h"
#include "common/s3/customer.h"
#include "common/s3/provider.h"
#include "common/s3/uri.h"

#include <stdlib.h>

static enum xf_code
make_creds(const struct xf_job_side *side, struct xf_creds_source **out, struct xf_err *err)
{
    const struct xf_creds_opts o = {.profile = side->profile,
                                    .access_key_env = side->access_key_env,
                                    .secret_key_env = side->secret_key_env,
                                    .session_token_env = side->session_token_env,
                                    .role_arn = side->role_arn,
                                    .external_id = side->external_id};

    return xf_creds_source_new(&o, out, err);
}

static enum xf_code find_region(const struct xf_job_side *side,
                                struct xf_creds_source *creds,
                                struct xf_buf *out,
                                struct xf_err *err)
{
    if (side->region.len > 0) {
        xf_buf_put(out, side->region);
        return XF_OK;
    }
    XF_TRY(xf_creds_region(creds, out, err));
    if (out->len == 0) {
        xf_buf_put_c(out, "us-east-1");
    }
    return XF_OK;
}

/* The job's word, else the AWS tools' variable of this host. */
static bool is_on(int given, const char *variable)
{
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment after the start */
    const char *value = getenv(variable);

    return given == XF_CONF_UNSET
               ? value != NULL && xf_str_eq_nocase(xf_str_c(value), XF_STR_LIT("true"))
               : given == XF_CONF_ON;
}

static enum xf_code find_endpoint(const struct xf_job_side *side,
                                  struct xf_str region,
                                  struct xf_s3_opts *o,
                                  struct xf_err *err)
{
    unsigned flags = 0;

    o->style = side->is_path_style ? XF_URI_STYLE_PATH : XF_URI_STYLE_AUTO;
    if (side->endpoint.len > 0) {
        o->style = side->is_path_style ? XF_URI_STYLE_PATH : XF_URI_STYLE_VIRTUAL;
        return xf_uri_endpoint_parse(side->endpoint, &o->endpoint, err);
    }
    flags |= is_on(side->fips, "AWS_USE_FIPS_ENDPOINT") ? (unsigned)XF_URI_AWS_FIPS : 0U;
    flags |=
        is_on(side->dualstack, "AWS_USE_DUALSTACK_ENDPOINT") ? (unsigned)XF_URI_AWS_DUALSTACK : 0U;
    return xf_uri_endpoint_aws(region, flags, &o->endpoint, err);
}

enum xf_code xf_side_client(const struct xf_side_env *env,
                            const struct xf_job_side *side,
                            struct xf_s3 **out,
                            struct xf_err *err)
{
    XF_AUTO(xf_creds_source) creds = NULL;
    struct xf_s3_opts o = {
        .loop = env->loop,
        .http = env->http,
        .clock = env->clock,
        .requester_pays = side->requester_pays,
        .is_region_fixed = side->region.len > 0,
        .ca_file = side->ca_file,
        .on_done = env->on_done,
        .on_done_arg = env->on_done_arg,
    };
    __attribute__((cleanup(xf_customer_key_fini))) struct xf_customer_key key = {0};
    XF_AUTO_BUF region = {0};

    xf_buf_init(&region, XF_URI_REGION_MAX);
    if (env->reads_objects) {
        XF_TRY(xf_customer_key_read(side->customer_key_env, &key, err));
        o.customer_key = &key;
    }
    XF_TRY(env->creds != NULL ? env->creds(env->creds_arg, side, &creds, err)
                              : make_creds(side, &creds, err));
    XF_TRY(find_region(side, creds, &region, err));
    if (find_endpoint(side, xf_buf_view(&region), &o, err) != XF_OK) {
        err->code = XF_E_CONFIG; /* what an environment or profile gave, too */
        return err->code;
    }
    o.region = xf_buf_view(&region);
    o.creds = XF_STEAL(creds); /* the client's, also when it cannot be made */
    return xf_s3_new(&o, out, err);
}
