/* side.c - objects that the test puts into the store. */
#include "tests/s3d/side.h"

#include "common/base/err.h"

static struct xf_str copy_in(struct s3d_side_put *p, struct xf_str s)
{
    size_t start = p->text.len;

    xf_buf_put(&p->text, s); /* the room was reserved */
    return s.len == 0 ? XF_STR_EMPTY : (struct xf_str){p->text.ptr + start, s.len};
}

static size_t text_size(const struct xf_json *j)
{
    XF_AUTO_FREE char *all = xf_json_dump(j, false);

    return strlen(all) * 2 + 1024; /* more than all texts in it, with ": " and CR LF a header */
}

static enum xf_code
parse_headers(const struct xf_json *headers, struct s3d_side_put *p, struct xf_err *err)
{
    const struct xf_json *value;
    XF_AUTO_BUF lines = {0};
    bool typed = false;

    xf_buf_init(&lines, 0);
    for (const char *name = xf_json_next(headers, NULL, &value); name != NULL;
         name = xf_json_next(headers, name, &value)) {
        const char *text = xf_json_text(value);
        if (text == NULL) {
            return XF_FAIL(err, XF_E_INVAL, "header '%s' is no string", name);
        }
        typed = typed || xf_str_eq_nocase(xf_str_c(name), XF_STR_LIT("content-type"));
        xf_buf_putf(&lines, "%s: %s\r\n", name, text);
    }
    if (!typed && lines.len > 0) {
        xf_buf_put_c(&lines, "Content-Type: binary/octet-stream\r\n");
    }
    p->headers = copy_in(p, xf_buf_view(&lines));
    return XF_OK;
}

static enum xf_code check_names(const struct xf_json *j, bool key_only, struct xf_err *err)
{
    static const char *const all[] = {"bucket",
                                      "key",
                                      "body",
                                      "size",
                                      "seed",
                                      "headers",
                                      "tags",
                                      "etag",
                                      "last_modified",
                                      "checksum",
                                      "storage_class",
                                      "restored",
                                      "redirect"};
    const struct xf_json *value;

    for (const char *name = xf_json_next(j, NULL, &value); name != NULL;
         name = xf_json_next(j, name, &value)) {
        bool known = false;
        for (size_t i = 0; i < (key_only ? 2 : XF_ARRAY_LEN(all)); i++) {
            known = known || strcmp(all[i], name) == 0;
        }
        if (!known) {
            return XF_FAIL(err, XF_E_INVAL, "unknown member '%s'", name);
        }
    }
    return XF_OK;
}

/* "crc32c", or "crc32c:BASE64" for one that is not true. */
static enum xf_code parse_sum(struct xf_str text, struct s3d_side_put *p, struct xf_err *err)
{
    size_t colon = xf_str_find(text, ':', 0);

    p->sum_alg = s3d_sum_by_name(xf_str_sub(text, 0, colon));
    if (text.len > 0 && p->sum_alg == S3D_SUM_NONE) {
        return XF_FAIL(err, XF_E_INVAL, "no such checksum");
    }
    p->sum = colon == SIZE_MAX ? XF_STR_EMPTY : copy_in(p, xf_str_sub(text, colon + 1, text.len));
    return XF_OK;
}

static enum xf_code
parse(const struct xf_json *j, bool key_only, struct s3d_side_put *p, struct xf_err *err)
{
    XF_TRY(check_names(j, key_only, err));
    p->bucket = copy_in(p, xf_str_c(xf_json_get_c(j, "bucket", "")));
    p->key = copy_in(p, xf_str_c(xf_json_get_c(j, "key", "")));
    if (p->bucket.len == 0 || p->key.len == 0) {
        return XF_FAIL(err, XF_E_INVAL, "bucket and key are required");
    }
    if (key_only) {
        return XF_OK;
    }
    p->made_up = !xf_json_is_null(j, "size");
    if (p->made_up != xf_json_is_null(j, "body")) {
        return XF_FAIL(err, XF_E_INVAL, "one of body and size is required");
    }
    p->body = copy_in(p, xf_str_c(xf_json_get_c(j, "body", "")));
    p->size = xf_json_get_u64(j, "size", 0);
    p->seed = xf_json_get_u64(j, "seed", 1);
    p->tags = copy_in(p, xf_str_c(xf_json_get_c(j, "tags", "")));
    p->etag = copy_in(p, xf_str_c(xf_json_get_c(j, "etag", "")));
    p->storage_class = copy_in(p, xf_str_c(xf_json_get_c(j, "storage_class", "")));
    p->restored = xf_json_get_bool(j, "restored", false);
    p->redirect = copy_in(p, xf_str_c(xf_json_get_c(j, "redirect", "")));
    p->last_modified_s = xf_json_get_i64(j, "last_modified", S3D_UNSET);
    if (p->etag.len > 0 && p->etag.len != (size_t)S3D_MD5_LEN * 2) {
        return XF_FAIL(err, XF_E_INVAL, "etag has to be 32 hex digits");
    }
    XF_TRY(parse_sum(xf_str_c(xf_json_get_c(j, "checksum", "")), p, err));
    const struct xf_json *headers = xf_json_get(j, "headers");
    return headers == NULL ? XF_OK : parse_headers(headers, p, err);
}

enum xf_code s3d_side_put_parse(const struct xf_json *j,
                                bool key_only,
                                struct s3d_side_put **out,
                                struct xf_err *err)
{
    if (!xf_json_is_object(j)) {
        return XF_FAIL(err, XF_E_INVAL, "not an object");
    }
    XF_AUTO(s3d_side_put) p = xf_xcalloc(1, sizeof(*p));
    xf_buf_init(&p->text, 0);
    if (xf_buf_reserve(&p->text, text_size(j)) == NULL) {
        return XF_FAIL(err, XF_E_INVAL, "too large");
    }
    XF_TRY(parse(j, key_only, p, err));
    *out = XF_STEAL(p);
    return XF_OK;
}

void s3d_side_put_free(struct s3d_side_put *p)
{
    if (p != NULL) {
        xf_buf_fini(&p->text);
        xf_xfree(p);
    }
}

static void true_sum(const struct s3d_body *b, enum s3d_sum_alg alg, struct xf_buf *b64)
{
    struct s3d_sum sum;
    uint8_t digest[S3D_SUM_MAX];
    char scratch[16384];
    const char *p;

    s3d_sum_init(&sum, alg);
    for (uint64_t at = 0; at < s3d_body_size(b);) {
        size_t n = s3d_body_peek(b, at, scratch, sizeof(scratch), &p);
        s3d_sum_update(&sum, p, n);
        at += n;
    }
    size_t len = s3d_sum_final(&sum, digest);
    xf_buf_put_base64(b64, digest, len);
}

void s3d_side_put_store(struct s3d_bucket *b, const struct s3d_side_put *p, int64_t now_ms)
{
    struct s3d_obj o = {0};
    struct s3d_attrs_src src = {.headers = p->headers,
                                .storage_class = p->storage_class,
                                .restored = p->restored,
                                .redirect = p->redirect,
                                .tags = p->tags,
                                .sum_alg = p->sum_alg,
                                .sum = p->sum};
    XF_AUTO_BUF b64 = {0};
    struct xf_str rest = p->tags;
    struct xf_str tag;

    while (xf_str_cut(&rest, '&', &tag)) {
        src.n_tags++;
    }
    o.u.body = p->made_up ? s3d_body_new_gen(p->seed, 0, p->size, p->size > S3D_SINGLE_MAX)
                          : s3d_body_new_mem(p->body.ptr, p->body.len);
    o.size = s3d_body_size(o.u.body);
    if (p->etag.len == 0 || !xf_hex_decode(p->etag, o.md5)) {
        s3d_body_md5(o.u.body, o.md5);
    }
    o.mtime_s = (uint32_t)(p->last_modified_s != S3D_UNSET ? p->last_modified_s : now_ms / 1000);
    if (src.headers.len == 0) {
        struct s3d_attrs_src dflt;
        s3d_attrs_get(NULL, &dflt);
        src.headers = dflt.headers;
    }
    if (src.sum_alg != S3D_SUM_NONE && src.sum.len == 0) {
        true_sum(o.u.body, src.sum_alg, &b64);
        src.sum = xf_buf_view(&b64);
    }
    o.attrs = s3d_attrs_new(&src);
    (void)s3d_bucket_put(b, p->key, &o, NULL, false); /* no condition that could fail */
}
