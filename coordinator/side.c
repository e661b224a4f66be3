/*
 * side.c - endpoint, region, addressing and credentials of a side, put into a client.
 *
 * The region is the job's; else the environment's or the profile's; else us-east-1 for an endpoint
 * of its own, where most servers do not care.
 */
#include "coordinator/side.h"

#include "common/job/spec.h"
#include "common/s3/creds.h"
#include "common/s3/provider.h"
#include "common/s3/uri.h"

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
    if (out->len == 0 && side->endpoint.len > 0) {
        xf_buf_put_c(out, "us-east-1");
    }
    if (out->len == 0) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "no region: set `region` of this side, or AWS_REGION on the coordinator");
    }
    return XF_OK;
}

enum xf_code xf_side_client(const struct xf_side_env *env,
                            const struct xf_job_side *side,
                            struct xf_s3 **out,
                            struct xf_err *err)
{
    const struct xf_creds_opts co = {.profile = side->profile,
                                     .access_key_env = side->access_key_env,
                                     .secret_key_env = side->secret_key_env,
                                     .session_token_env = side->session_token_env,
                                     .role_arn = side->role_arn,
                                     .external_id = side->external_id};
    XF_AUTO(xf_creds_source) creds = NULL;
    struct xf_s3_opts o = {
        .loop = env->loop,
        .http = env->http,
        .clock = env->clock,
        .style = side->is_path_style ? XF_URI_STYLE_PATH : XF_URI_STYLE_AUTO,
        .requester_pays = side->requester_pays,
        .on_done = env->on_done,
        .on_done_arg = env->on_done_arg,
    };
    XF_AUTO_BUF region;

    xf_buf_init(&region, XF_URI_REGION_MAX);
    XF_TRY(xf_creds_source_new(&co, &creds, err));
    XF_TRY(find_region(side, creds, &region, err));
    if (side->endpoint.len > 0) {
        XF_TRY(xf_uri_endpoint_parse(side->endpoint, &o.endpoint, err));
        if (!side->is_path_style) {
            o.style = XF_URI_STYLE_VIRTUAL;
        }
    } else {
        XF_TRY(xf_uri_endpoint_aws(xf_buf_view(&region), &o.endpoint, err));
    }
    o.region = xf_buf_view(&region);
    o.creds = XF_STEAL(creds); /* the client's, also when it cannot be made */
    return xf_s3_new(&o, out, err);
}
