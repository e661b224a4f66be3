/*
 * page.c - select, map and plan each object of a page.
 *
 * Invariant: listed = sum of n_objects over batches + n_uploads + n_failures.
 */
#include "coordinator/page.h"

#include "common/base/log.h"
#include "common/job/spec.h"
#include "common/s3/plan.h"
#include "common/s3/xml.h"

struct build {
    const struct xf_page_in *in;
    struct xf_page *out;
    struct xf_manifest_enc enc;
    struct xf_buf mapped; /* destination key of the object at hand */
    size_t cap_batches;
    size_t cap_uploads;
    size_t cap_failures;
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

static void add_failure(struct build *b, const struct xf_xml_object *x, const struct xf_err *err)
{
    struct xf_page *p = b->out;

    p->failures = grow(p->failures, p->n_failures, &b->cap_failures, sizeof(*p->failures));
    p->failures[p->n_failures++] = (struct xf_page_failure){
        .object = to_object(&p->arena, x),
        .code = err->code,
        .message = xf_arena_dup(&p->arena, xf_str_c(err->msg)),
    };
}

static void add_upload(struct build *b, const struct xf_xml_object *x)
{
    struct xf_page *p = b->out;
    struct xf_err err;
    struct xf_plan plan;
    const struct xf_plan_opts o = {
        .size = x->size, .part_size = b->in->spec->part_size, .etag = x->etag};

    if (xf_plan_parts(&o, &plan, &err) != XF_OK) {
        add_failure(b, x, &err);
        return;
    }
    p->uploads = grow(p->uploads, p->n_uploads, &b->cap_uploads, sizeof(*p->uploads));
    p->uploads[p->n_uploads++] = (struct xf_page_upload){
        .object = to_object(&p->arena, x),
        .part_size = plan.part_size,
        .n_parts = plan.n_parts,
    };
}

static void add_small(struct build *b, const struct xf_xml_object *x)
{
    struct xf_err err;
    const struct xf_object o = {.key = x->key,
                                .size = x->size,
                                .etag = x->etag,
                                .mtime_ms = x->modified_ms,
                                .storage_class = x->storage_class};
    enum xf_code rc = xf_manifest_add(&b->enc, &o, &err);

    if (rc == XF_E_LIMIT && b->enc.n_objects > 0) {
        close_batch(b);
        rc = xf_manifest_add(&b->enc, &o, &err);
    }
    if (rc != XF_OK) {
        add_failure(b, x, &err);
        return;
    }
    if (b->enc.n_objects >= b->in->batch_objects || b->enc.size_bytes >= b->in->batch_bytes) {
        close_batch(b);
    }
}

static void add_object(struct build *b, const struct xf_xml_object *x)
{
    const struct xf_page_in *in = b->in;
    struct xf_page *p = b->out;
    struct xf_str prefix = in->spec->source.urls[in->source_no].prefix;
    struct xf_err err;

    if (!xf_str_starts(x->key, prefix)) {
        /* A server that ignores `prefix`: the key is outside of what was asked for. */
        p->dropped++;
        return;
    }
    if (!xf_job_spec_selects(in->spec,
                             xf_str_sub(x->key, prefix.len, x->key.len),
                             x->size,
                             x->modified_ms,
                             in->start_ms)) {
        return;
    }
    p->listed++;
    p->listed_bytes += x->size;
    if (xf_job_spec_map_key(in->spec, in->source_no, x->key, &b->mapped, &err) != XF_OK) {
        add_failure(b, x, &err);
    } else if (x->size > 0 && x->size >= in->spec->multipart_threshold) {
        add_upload(b, x);
    } else {
        add_small(b, x);
    }
}

void xf_page_build(const struct xf_page_in *in, struct xf_page *out)
{
    struct build b = {.in = in, .out = out};
    struct xf_str cursor = in->cursor;

    memset(out, 0, sizeof(*out));
    xf_arena_init(&out->arena);
    xf_manifest_enc_init(&b.enc, in->source_no);
    xf_buf_init(&b.mapped, 0);
    for (size_t i = 0; i < in->n_objects; i++) {
        const struct xf_xml_object *x = &in->objects[i];
        if (in->hi.len > 0 && xf_str_cmp(x->key, in->hi) >= 0) {
            out->is_past_end = true;
            break;
        }
        if (x->key.len == 0 || (cursor.len > 0 && xf_str_cmp(x->key, cursor) <= 0)) {
            out->dropped++;
            continue;
        }
        add_object(&b, x);
        cursor = x->key;
    }
    close_batch(&b);
    out->cursor = xf_arena_dup(&out->arena, cursor);
    xf_manifest_enc_fini(&b.enc);
    xf_buf_fini(&b.mapped);
}

void xf_page_fini(struct xf_page *p)
{
    for (size_t i = 0; i < p->n_batches; i++) {
        xf_buf_fini(&p->batches[i].manifest);
    }
    xf_xfree(p->batches);
    xf_xfree(p->uploads);
    xf_xfree(p->failures);
    xf_arena_fini(&p->arena);
    memset(p, 0, sizeof(*p));
}
