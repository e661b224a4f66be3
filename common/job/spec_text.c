/*
 * spec_text.c - a spec as text: canonical TOML and its hash, JSON, the template, notes for people.
 */
#include "common/base/hash.h"
#include "common/base/json.h"
#include "common/job/spec_int.h"

#include <stdio.h>

enum { NOTES_URLS_MAX = 5 };

static const struct xf_job_raw *raw_of(const struct xf_job_spec *s)
{
    return (const struct xf_job_raw *)(const void *)s; /* the first member */
}

void xf_job_spec_put_canonical(const struct xf_job_spec *s, struct xf_buf *out)
{
    xf_conf_put_toml(&xf_job_spec_table, raw_of(s), out);
}

void xf_job_spec_hash(const struct xf_job_spec *s, char out[65])
{
    XF_AUTO_BUF text = {0};
    XF_AUTO_BUF hex = {0};
    unsigned char digest[XF_SHA256_LEN];
    xf_buf_init(&text, 0);
    xf_buf_init(&hex, 0);
    xf_job_spec_put_canonical(s, &text);
    xf_sha256(text.ptr, text.len, digest);
    xf_buf_put_hex(&hex, digest, sizeof(digest));
    memcpy(out, hex.ptr, 65);
}

/* Shows what is in force instead of what was left out. `items` has room for all urls. */
static void
show_side(struct xf_job_raw_side *text, const struct xf_job_side *side, struct xf_str *items)
{
    for (size_t i = 0; i < side->n_urls; i++) {
        items[i] = side->urls[i].text;
    }
    text->url = side->n_urls == 1 ? side->urls[0].text : XF_STR_EMPTY;
    text->urls = (struct xf_conf_list){.items = items, .len = side->n_urls};
    text->path_style = side->is_path_style ? XF_CONF_ON : XF_CONF_OFF;
}

struct xf_json *xf_job_spec_to_json(const struct xf_job_spec *s)
{
    struct xf_job_raw shown = *raw_of(s);
    size_t n = s->source.n_urls + s->destination.n_urls;
    XF_AUTO_FREE struct xf_str *items = xf_xcalloc(n, sizeof(*items));
    show_side(&shown.source, &s->source, items);
    show_side(&shown.destination, &s->destination, items + s->source.n_urls);
    shown.multipart_threshold = s->multipart_threshold;
    return xf_conf_to_json(&xf_job_spec_table, &shown);
}

void xf_job_spec_put_template(struct xf_buf *out)
{
    xf_conf_put_template(&xf_job_spec_table, out);
}

void xf_job_spec_put_help(struct xf_buf *out)
{
    xf_conf_put_help(&xf_job_spec_table, out);
}

/* ---- notes
 * --------------------------------------------------------------------------------------- */

/* "  s3://a/x/<key> -> s3://b/y/<key>" for a key that may follow the prefix. */
static void put_example(const struct xf_job_spec *s, size_t i, const char *rest, struct xf_buf *out)
{
    const struct xf_job_url *from = &s->source.urls[i];
    const struct xf_job_url *to = &s->destination.urls[i];
    xf_buf_put_c(out, "  for example s3://");
    xf_buf_put(out, from->bucket);
    xf_buf_put_byte(out, '/');
    xf_buf_put_escaped(out, from->prefix);
    xf_buf_putf(out, "%s -> s3://", rest);
    xf_buf_put(out, to->bucket);
    xf_buf_put_byte(out, '/');
    xf_buf_put_escaped(out, to->prefix);
    xf_buf_putf(out, "%s\n", rest);
}

void xf_job_spec_put_notes(const struct xf_job_spec *s, struct xf_buf *out)
{
    size_t shown = s->source.n_urls < NOTES_URLS_MAX ? s->source.n_urls : NOTES_URLS_MAX;
    for (size_t i = 0; i < shown; i++) {
        struct xf_str prefix = s->source.urls[i].prefix;
        bool is_open = prefix.len > 0 && prefix.ptr[prefix.len - 1] != '/';
        xf_buf_put_c(out, "takes every key of bucket '");
        xf_buf_put(out, s->source.urls[i].bucket);
        xf_buf_put_c(out, prefix.len > 0 ? "' that begins with '" : "'");
        xf_buf_put_escaped(out, prefix);
        xf_buf_put_c(out, prefix.len > 0 ? "'\n" : "\n");
        if (is_open) {
            xf_buf_put_c(
                out, "  warning: the prefix does not end with '/', so it takes longer names too\n");
        }
        put_example(s, i, is_open ? "/dir/file" : "dir/file", out);
        put_example(s, i, is_open ? "2/file" : "file", out);
    }
    if (shown < s->source.n_urls) {
        xf_buf_putf(out, "and %zu more urls\n", s->source.n_urls - shown);
    }
}
