/*
 * walk.c - order, repeats and progress of a listing's pages.
 *
 * Invariant: a page that is given out as PAGE or LAST rises strictly, from above the last page of
 * the walk; so dropping keys at or below the cursor drops only keys that were queued.
 */
#include "coordinator/walk.h"

#include "common/s3/xml.h"

enum { EMPTY_PAGES_MAX = 1000 };

void xf_walk_init(struct xf_walk *w, uint64_t seed)
{
    memset(w, 0, sizeof(*w));
    w->seed = seed;
    xf_buf_init(&w->token, 0);
    xf_buf_init(&w->last_key, 0);
}

void xf_walk_fini(struct xf_walk *w)
{
    xf_buf_fini(&w->token);
    xf_buf_fini(&w->last_key);
    xf_xfree(w->seen);
    memset(w, 0, sizeof(*w));
}

void xf_walk_rewind(struct xf_walk *w)
{
    xf_buf_reset(&w->token);
    xf_buf_reset(&w->last_key);
}

static bool was_seen(const struct xf_walk *w, struct xf_str key)
{
    uint64_t h = xf_str_hash(key, w->seed);

    for (size_t i = 0; i < w->n_seen; i++) {
        if (w->seen[i] == h) {
            return true;
        }
    }
    return false;
}

/* Keep the hashes of this page's keys in place of the last page's. */
static void remember(struct xf_walk *w, const struct xf_xml_doc *doc)
{
    size_t keep = w->n_first;

    if (w->cap_seen < keep + doc->n_objects) {
        w->cap_seen = keep + doc->n_objects;
        w->seen = xf_xrealloc(w->seen, w->cap_seen, sizeof(*w->seen));
    }
    for (size_t i = 0; i < doc->n_objects; i++) {
        w->seen[keep + i] = xf_str_hash(doc->objects[i].key, w->seed);
    }
    w->n_seen = keep + doc->n_objects;
    if (keep == 0) {
        w->n_first = w->n_seen;
    }
}

static void put_key(struct xf_buf *out, struct xf_str key)
{
    xf_buf_put_escaped(out, xf_str_sub(key, 0, 120));
}

static enum xf_walk_next fail_order(struct xf_str before, struct xf_str after, struct xf_err *err)
{
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    xf_buf_put_c(&text, "'");
    put_key(&text, after);
    xf_buf_put_c(&text, "' came after '");
    put_key(&text, before);
    (void)XF_FAIL(err,
                  XF_E_LISTING,
                  "the source does not list in byte order: %s'; such a listing cannot be resumed",
                  text.ptr);
    return XF_WALK_FAIL;
}

static enum xf_walk_next fail_progress(struct xf_str cursor, struct xf_err *err)
{
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    put_key(&text, cursor);
    (void)XF_FAIL(err,
                  XF_E_LISTING,
                  "no progress after key '%s': the source sends the same page again",
                  text.ptr != NULL ? text.ptr : "");
    return XF_WALK_FAIL;
}

/* Index of the first key that does not rise within the page, or n_objects. */
static size_t first_disorder(const struct xf_xml_doc *doc)
{
    for (size_t i = 1; i < doc->n_objects; i++) {
        if (xf_str_cmp(doc->objects[i].key, doc->objects[i - 1].key) <= 0) {
            return i;
        }
    }
    return doc->n_objects;
}

/* Where the next page comes from, after a good page that is not the last one. */
static enum xf_walk_next
go_on(struct xf_walk *w, const struct xf_xml_doc *doc, struct xf_str cursor, struct xf_err *err)
{
    bool has_progress =
        doc->n_objects > 0 &&
        (cursor.len == 0 || xf_str_cmp(doc->objects[doc->n_objects - 1].key, cursor) > 0);

    w->n_empty = doc->n_objects > 0 ? 0 : w->n_empty + 1;
    remember(w, doc);
    if (w->no_tokens || doc->next_token.len == 0 ||
        xf_str_eq(doc->next_token, xf_buf_view(&w->token))) {
        xf_walk_rewind(w);
        return has_progress ? XF_WALK_PAGE : fail_progress(cursor, err);
    }
    if (w->n_empty > EMPTY_PAGES_MAX) {
        return fail_progress(cursor, err);
    }
    xf_buf_reset(&w->token);
    xf_buf_put(&w->token, doc->next_token);
    if (doc->n_objects > 0) {
        xf_buf_reset(&w->last_key);
        xf_buf_put(&w->last_key, doc->objects[doc->n_objects - 1].key);
    }
    return XF_WALK_PAGE;
}

enum xf_walk_next xf_walk_page(struct xf_walk *w,
                               const struct xf_xml_doc *doc,
                               struct xf_str cursor,
                               struct xf_err *err)
{
    struct xf_str last = xf_buf_view(&w->last_key);
    size_t bad = first_disorder(doc);

    if (bad < doc->n_objects) {
        return fail_order(doc->objects[bad - 1].key, doc->objects[bad].key, err);
    }
    if (doc->n_objects > 0 && last.len > 0 && xf_str_cmp(doc->objects[0].key, last) <= 0) {
        if (!was_seen(w, doc->objects[0].key)) {
            return fail_order(last, doc->objects[0].key, err);
        }
        w->no_tokens = true;
        xf_walk_rewind(w);
        return XF_WALK_RESTART;
    }
    return doc->is_truncated ? go_on(w, doc, cursor, err) : XF_WALK_LAST;
}
