/*
 * creds.c - sets of keys, and the seam behind which their sources are.
 */
#include "common/s3/creds.h"

#include "common/base/clock.h"

#include <stdatomic.h>

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

enum xf_code xf_creds_make(const struct xf_creds_found *f,
                           const char *where,
                           struct xf_creds **out,
                           struct xf_err *err)
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

bool xf_creds_renew(struct xf_creds_source *source, const struct xf_creds *used)
{
    return source->ops->renew != NULL && source->ops->renew(source->self, used);
}

const char *xf_creds_source_name(const struct xf_creds_source *source)
{
    return source->name;
}
