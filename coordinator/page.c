/*
 * page.c - select each object of a page, and queue it as its size wants.
 *
 * Invariant: listed = sum of n_objects over batches + n_uploads.
 */
#include "coordinator/page.h"

#include "common/job/spec.h"
#include "common/s3/xml.h"

struct build {
    const struct xf_page_in *in;
    struct xf_page *out;
    struct xf_manifest_enc enc;
    size_t cap_batches;
    size_t cap_uploads;
};

static struct xf_object to_object(struct xf_arena *a, const struct xf_xml_object *x)
{
    return (struct xf_object){
        .key = xf_arena_dup(a, x->key),
        .size = x->size,
        .etag = xf_arena_dup(a, x->etag),
        .mtime_ms = x->modified_ms,
        .storage_class = xf_arena_dup(a, x->storage_class),
    };
}

/* Room for one more entry in a growing array of the page. */
static void *grow(void *array, size_t n, size_t *cap, size_t size)
{
    if (n < *cap) {
        return array;
    }
    *cap = *cap == 0 ? 4 : *cap * 2;
    return xf_xrealloc(array, *cap, size);
}

static void close_batch(struct build *b)
{
    struct xf_page *p = b->out;

    if (b->enc.n_objects == 0) {
        return;
    }
    p->batches = grow(p->batches, p->n_batches, &b->cap_batches, sizeof(*p->batches));
    struct xf_page_batch *batch = &p->batches[p->n_batches++];
    xf_buf_init(&batch->manifest, XF_MANIFEST_BYTES_MAX);
    xf_manifest_finish(&b->enc, &batch->manifest);
    XF_ASSERT(!batch->manifest.full); /* xf_manifest_add() keeps below the cap */
    batch->n_objects = b->enc.n_objects;
    batch->size_bytes = b->enc.size_bytes;
    xf_manifest_enc_reset(&b->enc, b->in->source_no);
}

static enum xf_code add_small(struct build *b, const struct xf_xml_object *x, struct xf_err *err)
{
    const struct xf_object o = {.key = x->key,
                                .size = x->size,
                                .etag = x->etag,
                                .mtime_ms = x->modified_ms,
                                .storage_class = x->storage_class};
    enum xf_code rc = xf_manifest_add(&b->enc, &o, err);

    if (rc == XF_E_LIMIT && b->enc.n_objects > 0) {
        close_batch(b);
        rc = xf_manifest_add(&b->enc, &o, err);
    }
    XF_TRY(rc);
    if (b->enc.n_objects >= b->in->batch_objects || b->enc.size_bytes >= b->in->batch_bytes) {
        close_batch(b);
    }
    return XF_OK;
}

/* The store takes what the manifest takes; an upload is held to the same caps. */
static enum xf_code check_caps(const struct xf_xml_object *x, struct xf_err *err)
{
    if (x->key.len > XF_OBJECT_KEY_MAX || x->storage_class.len > XF_OBJECT_CLASS_MAX) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "its key has %zu bytes (at most %d), its storage class %zu (at most %d)",
                       x->key.len,
                       XF_OBJECT_KEY_MAX,
                       x->storage_class.len,
                       XF_OBJECT_CLASS_MAX);
    }
    return XF_OK;
}

static enum xf_code add_object(struct build *b, const struct xf_xml_object *x, struct xf_err *err)
{
    const struct xf_page_in *in = b->in;
    struct xf_page *p = b->out;
    struct xf_str prefix = in->spec->source.urls[in->source_no].prefix;

    if (!xf_str_starts(x->key, prefix)) {
        p->dropped++; /* a server that ignores `prefix`: outside of what was asked for */
        return XF_OK;
    }
    if (!xf_job_spec_selects(in->spec,
                             xf_str_sub(x->key, prefix.len, x->key.len),
                             x->size,
                             x->modified_ms,
                             in->start_ms)) {
        return XF_OK;
    }
    p->listed++;
    p->listed_bytes += x->size;
    XF_TRY(check_caps(x, err));
    if (x->size > 0 && x->size >= in->spec->multipart_threshold) {
        p->uploads = grow(p->uploads, p->n_uploads, &b->cap_uploads, sizeof(*p->uploads));
        p->uploads[p->n_uploads++] = to_object(&p->arena, x);
        return XF_OK;
    }
    return add_small(b, x, err);
}

static enum xf_code build_all(struct build *b, struct xf_err *err)
{
    const struct xf_page_in *in = b->in;
    struct xf_page *out = b->out;
    struct xf_str cursor = in->cursor;

    for (size_t i = 0; i < in->n_objects; i++) {
        const struct xf_xml_object *x = &in->objects[i];
        if (x->key.len == 0 || (cursor.len > 0 && xf_str_cmp(x->key, cursor) <= 0)) {
            out->dropped++;
            continue;
        }
        if (add_object(b, x, err) != XF_OK) {
            XF_AUTO_BUF name = {0};
            xf_buf_init(&name, 0);
            xf_buf_put_escaped(&name, xf_str_sub(x->key, 0, 100));
            err->code = XF_E_LISTING;
            return XF_WRAP(err, "object '%.*s' cannot be queued", XF_STR_ARG(xf_buf_view(&name)));
        }
        cursor = x->key;
    }
    close_batch(b);
    out->cursor = xf_arena_dup(&out->arena, cursor);
    return XF_OK;
}

enum xf_code xf_page_build(const struct xf_page_in *in, struct xf_page *out, struct xf_err *err)
{
    struct build b = {.in = in, .out = out};

    memset(out, 0, sizeof(*out));
    xf_arena_init(&out->arena);
    xf_manifest_enc_init(&b.enc, in->source_no);
    enum xf_code rc = build_all(&b, err);
    xf_manifest_enc_fini(&b.enc);
    return rc;
}

void xf_page_fini(struct xf_page *p)
{
    for (size_t i = 0; i < p->n_batches; i++) {
        xf_buf_fini(&p->batches[i].manifest);
    }
    xf_xfree(p->batches);
    xf_xfree(p->uploads);
    xf_arena_fini(&p->arena);
    memset(p, 0, sizeof(*p));
}
