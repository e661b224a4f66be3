/*
 * s3_err_fuzz.c - any status, kind and error document: never a success, never a crash.
 */
#include "common/s3/plan.h"
#include "common/s3/s3err.h"
#include "common/s3/xml.h"
#include "tests/lib/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct xf_xml *x;
    struct xf_err err;
    struct xf_s3err_in in = {0};

    if (size < 4) {
        return 0;
    }
    if (x == NULL) {
        x = xf_xml_new();
    }
    in.kind = (enum xf_s3err_kind)(data[0] % XF_S3ERR_KIND_N);
    in.status = data[1] * 4;
    in.has_bucket_region = (data[2] & 1) != 0;
    in.is_delete_marker = (data[2] & 2) != 0;
    in.header_code = xf_str_n(data + 4, (size - 4) % 32);
    xf_xml_reset(x);
    if (xf_xml_feed(x, (const char *)data + 4, size - 4, &err) == XF_OK &&
        xf_xml_finish(x, &err) == XF_OK) {
        in.body = &xf_xml_doc(x)->error;
        in.header_code = XF_STR_EMPTY;
    }
    XF_ASSERT(xf_s3err_code(&in) != XF_OK);
    (void)xf_s3err_is_expired(in.header_code); /* only that it ends */
    struct xf_str etag = xf_str_n(data + 4, size - 4);

    (void)xf_plan_etag_is_md5(etag); /* likewise */
    XF_ASSERT(xf_plan_etag_bare(etag).len <= etag.len);
    return 0;
}
