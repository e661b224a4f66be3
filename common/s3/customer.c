/*
 * customer.c - reading and wiping a customer's encryption key.
 */
#include "common/s3/customer.h"

#include "common/base/hash.h"
#include "common/base/mem.h"

#include <stdlib.h>

enum xf_code xf_customer_key_parse(struct xf_str text,
                                   struct xf_str where,
                                   struct xf_customer_key *out,
                                   struct xf_err *err)
{
    unsigned char md5[XF_MD5_LEN];
    XF_AUTO_BUF raw = {0};
    bool is_key = xf_buf_put_unbase64(&raw, text) && raw.len == XF_CUSTOMER_KEY_LEN;

    if (is_key) {
        xf_md5(raw.ptr, raw.len, md5);
        xf_buf_put_base64(&out->key, raw.ptr, raw.len);
        xf_buf_put_base64(&out->md5, md5, sizeof(md5));
    }
    if (raw.len > 0) {
        xf_wipe(raw.ptr, raw.len);
    }
    if (!is_key) {
        return XF_FAIL(err,
                       XF_E_CREDS,
                       "environment variable %.*s does not hold a customer key: %d bytes in base64",
                       XF_STR_ARG(where),
                       XF_CUSTOMER_KEY_LEN);
    }
    return XF_OK;
}

enum xf_code
xf_customer_key_read(struct xf_str variable, struct xf_customer_key *out, struct xf_err *err)
{
    if (variable.len == 0) {
        return XF_OK;
    }
    XF_AUTO_FREE char *name = xf_str_dup(variable);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing changes the environment after the start */
    const char *text = getenv(name);

    if (text == NULL) {
        return XF_FAIL(err, XF_E_CREDS, "environment variable %s is not set", name);
    }
    return xf_customer_key_parse(xf_str_c(text), variable, out, err);
}

void xf_customer_key_copy(const struct xf_customer_key *key, struct xf_customer_key *out)
{
    xf_buf_put(&out->key, xf_buf_view(&key->key));
    xf_buf_put(&out->md5, xf_buf_view(&key->md5));
}

void xf_customer_key_fini(struct xf_customer_key *key)
{
    if (key->key.len > 0) {
        xf_wipe(key->key.ptr, key->key.len);
    }
    xf_buf_fini(&key->key);
    xf_buf_fini(&key->md5);
}
