/*
 * s3_uri_fuzz.c - any text as an endpoint (as a redirect names it, too), any bytes as a key.
 */
#include "common/s3/uri.h"
#include "tests/lib/fuzz.h"

/* Where keys for one AWS region may be sent on to: nowhere but to AWS, in the same partition. */
static void check_move(struct xf_uri_endpoint ep, struct xf_str region)
{
    struct xf_str host = xf_str_c(ep.host);
    struct xf_uri_endpoint mine;
    struct xf_err err;

    XF_ASSERT(xf_uri_endpoint_aws(XF_STR_LIT("us-east-1"), 0, &mine, &err) == XF_OK);
    if (xf_uri_is_aws_sibling(&mine, &ep)) {
        XF_ASSERT(xf_str_ends(host, XF_STR_LIT(".amazonaws.com")));
        XF_ASSERT(!ep.is_aws || xf_uri_endpoint_move(&ep, XF_STR_LIT("eu-west-1"), &err) == XF_OK);
    }
    if (xf_uri_endpoint_move(&mine, region, &err) == XF_OK) {
        XF_ASSERT(strcmp(xf_uri_partition(region), "aws") == 0 &&
                  xf_str_ends(xf_str_c(mine.host), XF_STR_LIT(".amazonaws.com")));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct xf_str text = xf_str_n(data, size);
    struct xf_uri_endpoint ep;
    struct xf_err err;
    XF_AUTO_BUF host = {0};
    XF_AUTO_BUF path = {0};
    XF_AUTO_BUF encoded = {0};
    XF_AUTO_BUF decoded = {0};

    if (xf_uri_endpoint_parse(text, &ep, &err) == XF_OK) {
        XF_ASSERT(ep.host[0] != '\0' && ep.port != 0);
        xf_uri_host(&host, &ep, true, XF_STR_LIT("b"));
        xf_uri_path(&path, &ep, true, XF_STR_LIT("b"), text);
        XF_ASSERT(path.ptr[0] == '/');
        check_move(ep, text);
    } else {
        XF_ASSERT(err.code == XF_E_INVAL);
    }
    xf_buf_put_percent(&encoded, text, true);
    xf_uri_decode(&decoded, xf_buf_view(&encoded), true);
    XF_ASSERT(xf_str_eq(xf_buf_view(&decoded), text));
    xf_buf_reset(&decoded);
    xf_uri_decode(&decoded, text, true);
    XF_ASSERT(decoded.len <= size);
    (void)xf_uri_partition(text); /* only that it ends */
    return 0;
}
