/*
 * customer.h - a customer's own encryption key (SSE-C): from the environment to the headers' forms.
 *
 * The service keeps no such key: each request for an object's bytes or attributes brings it. It is
 * a secret like any other: jobs name the variable that holds it.
 */
#ifndef XF_S3_CUSTOMER_H
#define XF_S3_CUSTOMER_H

#include "common/base/err.h"
#include "common/base/str.h"

enum { XF_CUSTOMER_KEY_LEN = 32 };

struct xf_customer_key { /* all empty: none */
    struct xf_buf key;   /* base64 of the key */
    struct xf_buf md5;   /* base64 of its MD5 */
};

/**
 * Read the variable of that name: XF_CUSTOMER_KEY_LEN bytes in base64. An empty name gives no key.
 * `out` is empty before; xf_customer_key_fini() it, also after an error.
 *
 * Errors: XF_E_CREDS  it is not set, or not such a key. The text names the variable, no value.
 */
XF_MUST_CHECK enum xf_code
xf_customer_key_read(struct xf_str variable, struct xf_customer_key *out, struct xf_err *err);
/** `text` as in the variable; `where` names it. Errors as above. */
XF_MUST_CHECK enum xf_code xf_customer_key_parse(struct xf_str text,
                                                 struct xf_str where,
                                                 struct xf_customer_key *out,
                                                 struct xf_err *err);
void xf_customer_key_copy(const struct xf_customer_key *key, struct xf_customer_key *out);
/** Wipes it. */
void xf_customer_key_fini(struct xf_customer_key *key);

#endif
