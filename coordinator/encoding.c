/* encoding.c - one key in question, two forms of it, and what the server has. */
#include "coordinator/encoding.h"

#include "common/s3/plan.h"

enum { UNDECIDED_MAX = 8 };

void xf_encoding_init(struct xf_encoding *e)
{
    memset(e, 0, sizeof(*e));
    xf_buf_init(&e->raw, 0);
    xf_buf_init(&e->decoded, 0);
    xf_buf_init(&e->etag, 0);
}

void xf_encoding_fini(struct xf_encoding *e)
{
    xf_buf_fini(&e->raw);
    xf_buf_fini(&e->decoded);
    xf_buf_fini(&e->etag);
}

bool xf_encoding_must_ask(struct xf_encoding *e, const struct xf_xml_doc *doc)
{
    uint32_t skip = e->undecided;

    if (doc->is_url_encoded || e->state != XF_ENCODING_UNKNOWN) {
        return false;
    }
    for (size_t i = 0; i < doc->n_objects; i++) {
        const struct xf_xml_object *o = &doc->objects[i];
        xf_buf_reset(&e->decoded);
        xf_uri_decode(&e->decoded, o->key, true);
        if (xf_str_eq(xf_buf_view(&e->decoded), o->key) || skip-- > 0) {
            continue;
        }
        xf_buf_reset(&e->raw);
        xf_buf_put(&e->raw, o->key);
        xf_buf_reset(&e->etag);
        xf_buf_put(&e->etag, o->etag);
        e->size = o->size;
        e->is_raw_asked = false;
        return true;
    }
    return false;
}

struct xf_s3_req *xf_encoding_ask(
    struct xf_encoding *e, struct xf_s3 *s3, struct xf_str bucket, xf_s3_done_fn *done, void *arg)
{
    const struct xf_s3_head_opts o = {
        .bucket = bucket,
        .key = xf_buf_view(e->is_raw_asked ? &e->decoded : &e->raw),
    };
    return xf_s3_head(s3, &o, done, arg);
}

bool xf_encoding_answer(struct xf_encoding *e, const struct xf_s3_result *res)
{
    bool is_it = res->err.code == XF_OK && res->size == e->size &&
                 (e->etag.len == 0 || xf_plan_etag_eq(res->etag, xf_buf_view(&e->etag)));

    if (is_it) {
        e->state = e->is_raw_asked ? XF_ENCODING_HIDDEN : XF_ENCODING_RAW;
        return true;
    }
    if (!e->is_raw_asked) {
        e->is_raw_asked = true;
        return false;
    }
    e->undecided++;
    if (e->undecided >= UNDECIDED_MAX) {
        e->state = XF_ENCODING_RAW;
    }
    return true;
}

const struct xf_xml_doc *xf_encoding_page(const struct xf_encoding *e,
                                          const struct xf_xml_doc *doc,
                                          struct xf_arena *a,
                                          struct xf_xml_doc *out)
{
    if (doc->is_url_encoded || e->state != XF_ENCODING_HIDDEN) {
        return doc;
    }
    struct xf_xml_object *objects = xf_arena_calloc(a, doc->n_objects + 1, sizeof(*objects));
    XF_AUTO_BUF key = {0};

    xf_buf_init(&key, 0);
    for (size_t i = 0; i < doc->n_objects; i++) {
        objects[i] = doc->objects[i];
        xf_buf_reset(&key);
        xf_uri_decode(&key, doc->objects[i].key, true);
        objects[i].key = xf_arena_dup(a, xf_buf_view(&key));
    }
    *out = *doc;
    out->objects = objects;
    return out;
}
