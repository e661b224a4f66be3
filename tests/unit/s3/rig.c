/*
 * rig.c - the common ground of the client's tests.
 */
#include "tests/unit/s3/rig.h"

#include "tests/lib/test.h"

static enum xf_code give_creds(void *self, struct xf_creds **out, struct xf_err *err)
{
    struct rig *r = self;
    XF_AUTO_BUF key = {0};

    r->resolves++;
    r->generation += r->rotates ? 1 : 0;
    xf_buf_putf(&key, "AKIAKEYNUMBER%u", r->generation);
    return xf_creds_new(xf_buf_view(&key),
                        XF_STR_LIT(RIG_SECRET),
                        r->with_token ? XF_STR_LIT(RIG_TOKEN) : XF_STR_EMPTY,
                        0,
                        out,
                        err);
}

static bool renew_creds(void *self, const struct xf_creds *used)
{
    struct rig *r = self;

    (void)used; /* the client compares */
    r->renews++;
    if (r->coming == 0) {
        return false;
    }
    r->generation += --r->coming == 0 ? 1 : 0;
    return r->coming > 0;
}

static void keep_creds(void *self)
{
    (void)self; /* the rig is the test's */
}

static const struct xf_creds_source_ops creds_ops = {
    .resolve = give_creds, .renew = renew_creds, .free = keep_creds};

void rig_open(struct rig *r, const struct rig_opts *o)
{
    static const struct rig_opts none = {0};
    struct xf_err err;
    XF_AUTO_BUF url = {0};
    struct xf_s3_opts so = {.region = XF_STR_LIT("us-east-1")};

    o = o != NULL ? o : &none;
    memset(r, 0, sizeof(*r));
    r->with_token = o->with_token;
    assert_int_equal(xf_loop_new(NULL, &r->loop, &err), XF_OK);
    r->script = script_new(r->loop);
    assert_int_equal(xf_http_curl_new(r->loop, &o->http, &r->http, &err), XF_OK);
    xf_buf_putf(&url, "http://127.0.0.1:%u", o->port != 0 ? o->port : script_port(r->script));
    assert_int_equal(xf_uri_endpoint_parse(xf_buf_view(&url), &so.endpoint, &err), XF_OK);
    so.endpoint.is_aws = o->as_aws;
    so.is_region_fixed = o->is_region_fixed;
    so.customer_key = o->customer_key;
    so.loop = r->loop;
    so.http = r->http;
    so.creds = o->no_creds ? NULL : xf_creds_source_of(&creds_ops, r, "test");
    assert_int_equal(xf_s3_new(&so, &r->s3, &err), XF_OK);
}

void rig_close(struct rig *r)
{
    struct xf_buf *bufs[] = {&r->msg,
                             &r->etag,
                             &r->region,
                             &r->upload_id,
                             &r->s3_code,
                             &r->keys,
                             &r->content_encoding,
                             &r->tags,
                             &r->meta,
                             &r->sunk};

    xf_s3_free(r->s3);
    xf_http_free(r->http);
    script_free(r->script);
    xf_loop_free(r->loop);
    for (size_t i = 0; i < XF_ARRAY_LEN(bufs); i++) {
        xf_buf_fini(bufs[i]);
    }
}

static void keep(struct xf_buf *to, struct xf_str text)
{
    xf_buf_reset(to);
    xf_buf_put(to, text);
    xf_buf_put_c(to, "");
}

void rig_done(void *arg, const struct xf_s3_result *res)
{
    struct rig *r = arg;

    r->n_done++;
    r->code = res->err.code;
    r->status = res->status;
    r->maybe_done = res->maybe_done;
    r->copy_ignored = res->copy_ignored;
    r->size = res->size;
    r->retry_after_ms = res->retry_after_ms;
    r->modified_ms = res->modified_ms;
    r->sum = res->sum;
    keep(&r->msg, xf_str_c(res->err.code != XF_OK ? res->err.msg : ""));
    keep(&r->etag, res->etag);
    keep(&r->region, res->region);
    keep(&r->upload_id, res->upload_id);
    keep(&r->s3_code, res->s3_code);
    xf_buf_reset(&r->keys);
    r->n_objects = 0;
    if (res->doc != NULL) {
        r->is_truncated = res->doc->is_truncated;
        r->n_objects = res->doc->n_objects;
        for (size_t i = 0; i < res->doc->n_objects; i++) {
            xf_buf_put(&r->keys, res->doc->objects[i].key);
            xf_buf_put_byte(&r->keys, '|');
        }
        xf_buf_reset(&r->tags);
        xf_s3_tags_encode(&r->tags, res->doc->tags, res->doc->n_tags);
    }
    xf_buf_reset(&r->meta);
    if (res->attrs != NULL) {
        keep(&r->content_encoding, res->attrs->content_encoding);
        for (size_t i = 0; i < res->attrs->n_meta; i++) {
            xf_buf_put(&r->meta, res->attrs->meta[i].name);
            xf_buf_put_byte(&r->meta, '=');
            xf_buf_put(&r->meta, res->attrs->meta[i].value);
            xf_buf_put_byte(&r->meta, ';');
        }
    }
    /* Case: a secret is in no text, whatever failed. */
    assert_null(strstr(res->err.msg, RIG_SECRET));
    assert_null(strstr(res->err.msg, RIG_TOKEN));
}

void rig_wait(struct rig *r)
{
    unsigned before = r->n_done;
    int64_t until_ms = xf_clock_mono_ms(xf_clock_real()) + 10000;

    while (r->n_done == before) {
        if (xf_clock_mono_ms(xf_clock_real()) > until_ms) {
            fail_msg("no operation ended within 10 s");
        }
        xf_loop_turn(r->loop, 20);
    }
}

static enum xf_http_flow on_sunk(void *arg, const char *data, size_t len)
{
    struct rig *r = arg;

    if (r->pause_sink) {
        r->pauses++;
        return XF_HTTP_PAUSE;
    }
    xf_buf_put_mem(&r->sunk, data, len);
    return XF_HTTP_GO;
}

struct xf_s3_sink rig_sink(struct rig *r)
{
    return (struct xf_s3_sink){.on_data = on_sunk, .arg = r};
}

/* ---- operations on one bucket ---- */

int rig_setup(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));

    rig_open(r, NULL);
    *state = r;
    return 0;
}

int rig_teardown(void **state)
{
    rig_close(*state);
    xf_xfree(*state);
    return 0;
}

int rig_setup_impatient(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));
    struct rig_opts o = {.http = {.first_byte_ms = 150, .stall_window_ms = 150}};

    rig_open(r, &o);
    *state = r;
    return 0;
}

int rig_setup_token(void **state)
{
    struct rig *r = xf_xcalloc(1, sizeof(*r));
    struct rig_opts o = {.with_token = true};

    rig_open(r, &o);
    *state = r;
    return 0;
}

/* A reply with a body and its length. */
const char *rig_reply(struct xf_buf *out, const char *status, const char *headers, const char *body)
{
    xf_buf_reset(out);
    xf_buf_putf(
        out, "HTTP/1.1 %s\r\n%sContent-Length: %zu\r\n\r\n%s", status, headers, strlen(body), body);
    return out->ptr;
}

void rig_head(struct rig *r, const char *key)
{
    struct xf_s3_head_opts o = {.bucket = XF_STR_LIT("bkt"), .key = xf_str_c(key)};

    assert_non_null(xf_s3_head(r->s3, &o, rig_done, r));
    rig_wait(r);
}

void rig_get(struct rig *r, uint64_t size, uint64_t offset, uint64_t len)
{
    struct xf_s3_get_opts o = {KEY("k"),
                               .object_size = size,
                               .offset = offset,
                               .len = len,
                               .if_match = XF_STR_LIT("\"abc\""),
                               .sink = rig_sink(r)};

    xf_buf_reset(&r->sunk);
    assert_non_null(xf_s3_get(r->s3, &o, rig_done, r));
    rig_wait(r);
}

void rig_copy(struct rig *r)
{
    struct xf_s3_copy_opts o = {
        KEY("dst"),
        .source = {.bucket = XF_STR_LIT("src"),
                   .key = XF_STR_LIT("a b+c"),
                   .if_match = XF_STR_LIT("abc")},
        .size = 3,
        .storage_class = XF_STR_LIT("STANDARD_IA"),
    };

    assert_non_null(xf_s3_copy(r->s3, &o, rig_done, r));
    rig_wait(r);
}

void rig_put(struct rig *r, const char *body)
{
    struct xf_s3_put_opts o = {KEY("k"), .body = {.bytes = xf_str_c(body)}};

    assert_non_null(xf_s3_put(r->s3, &o, rig_done, r));
    rig_wait(r);
}

void rig_list(struct rig *r)
{
    struct xf_s3_list_opts o = {.bucket = XF_STR_LIT("bkt"), .prefix = XF_STR_LIT("p/")};

    assert_non_null(xf_s3_list(r->s3, &o, rig_done, r));
    rig_wait(r);
}
