/*
 * store_page.c - one page of a listing: batches, uploads, cursor and counters, all or nothing.
 *
 * Invariants:
 * 1. Listing is exactly once. The cursor moves in the transaction that stores what the page
 * brought, by compare-and-set on generation and cursor.
 * 2. Keys at or beyond the shard's present end are dropped: they are another shard's. The end may
 *    have come nearer since the page was asked for. Such a page is the shard's last.
 */
#include "coordinator/store_work.h"

enum { BATCHES_MAX = 1000, UPLOADS_MAX = 1000, CURSOR_MAX = 16 * 1024 };

struct shard {
    struct xf_task like; /* what every task of the page shares */
    struct xf_job_delta add;
    struct xf_str hi; /* empty: no end */
    bool reached_end; /* something was dropped */
};

static enum xf_code check_room(struct xf_work *w, struct xf_err *err)
{
    int64_t pages;
    int64_t page_size;
    int64_t free_pages;

    if (w->max_bytes == 0) {
        return XF_OK;
    }
    XF_TRY(xf_sql_number(&w->sql, &pages, err, "PRAGMA page_count", ""));
    XF_TRY(xf_sql_number(&w->sql, &page_size, err, "PRAGMA page_size", ""));
    XF_TRY(xf_sql_number(&w->sql, &free_pages, err, "PRAGMA freelist_count", ""));
    uint64_t used = (uint64_t)(pages - free_pages) * (uint64_t)page_size + w->wal_bytes;
    if (used > w->max_bytes) {
        return XF_FAIL(err,
                       XF_E_LIMIT,
                       "the store '%s' holds %llu bytes, its limit is %llu: listing waits; raise "
                       "store.max_bytes or make room",
                       w->sql.path,
                       (unsigned long long)used,
                       (unsigned long long)w->max_bytes);
    }
    return XF_OK;
}

static enum xf_code check_input(const struct xf_in_page_commit *in, struct xf_err *err)
{
    if (in->n_batches > BATCHES_MAX || in->n_uploads > UPLOADS_MAX ||
        in->cursor_new.len > CURSOR_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "a page of too many batches, uploads or cursor bytes");
    }
    if (!in->is_last && xf_str_eq(in->cursor_old, in->cursor_new)) {
        return XF_FAIL(err, XF_E_INVAL, "a page must move the cursor or be the last");
    }
    return XF_OK;
}

/* Is it this shard's next page? *repeated: it is the one that is in already. */
static enum xf_code
find_shard(struct xf_work *w, struct xf_store_op *op, struct shard *s, struct xf_err *err)
{
    const struct xf_in_page_commit *in = &op->in.page_commit;
    bool *repeated = &op->out.page_commit.repeated;
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT job, pass, source_no, generation, state, cursor, hi FROM shard"
                        " WHERE id = ?",
                        "i",
                        in->shard));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_NOT_FOUND, "no shard %lld", (long long)in->shard);
    }
    s->like = (struct xf_task){.job = xf_sql_i64(st, 0),
                               .pass = xf_sql_i64(st, 1),
                               .source_no = xf_sql_u32(st, 2),
                               .generation = xf_sql_u32(st, 3),
                               .shard = in->shard,
                               .kind = XF_TASK_BATCH};
    s->hi = xf_sql_dup(st, 6, &op->out_arena);
    bool is_open = xf_sql_i64(st, 4) == XF_SHARD_OPEN;
    bool same_generation = s->like.generation == in->generation;
    *repeated = same_generation && !(in->is_last && is_open) &&
                xf_str_eq(xf_sql_str(st, 5), in->cursor_new);
    op->out.page_commit.is_done = *repeated && !is_open;
    if (!*repeated &&
        (!same_generation || !is_open || !xf_str_eq(xf_sql_str(st, 5), in->cursor_old))) {
        return XF_FAIL(
            err, XF_E_STALE, "shard %lld has gone on from this page's start", (long long)in->shard);
    }
    return XF_OK;
}

static bool is_beyond(struct shard *s, struct xf_str key)
{
    bool beyond = s->hi.len > 0 && xf_str_cmp(key, s->hi) >= 0;

    s->reached_end = s->reached_end || beyond;
    return beyond;
}

static enum xf_code insert_batch(
    struct xf_work *w, struct shard *s, struct xf_task *t, struct xf_str raw, struct xf_err *err)
{
    s->add.listed += t->n_objects;
    s->add.bytes_listed += (int64_t)t->bytes;
    XF_TRY(xf_task_insert(w, t, err));
    return xf_manifest_put(w, t->id, raw, err);
}

/* The objects of m before the shard's end, as a batch of their own. */
static enum xf_code
add_rest(struct xf_work *w, struct shard *s, const struct xf_manifest *m, struct xf_err *err)
{
    struct xf_manifest_enc e;
    struct xf_task t = s->like;
    enum xf_code rc = XF_OK;

    xf_manifest_enc_init(&e, m->source_no);
    for (uint32_t i = 0; i < m->n && rc == XF_OK; i++) {
        if (!is_beyond(s, m->objects[i].key)) {
            rc = xf_manifest_add(&e, &m->objects[i], err);
        }
    }
    t.n_objects = e.n_objects;
    t.bytes = e.size_bytes < INT64_MAX ? e.size_bytes : INT64_MAX;
    xf_buf_reset(&w->raw);
    xf_manifest_finish(&e, &w->raw);
    xf_manifest_enc_fini(&e);
    XF_TRY(rc);
    return t.n_objects == 0 ? XF_OK : insert_batch(w, s, &t, xf_buf_view(&w->raw), err);
}

static enum xf_code
add_batch(struct xf_work *w, struct shard *s, struct xf_str raw, struct xf_err *err)
{
    XF_AUTO_MANIFEST m = {0};
    struct xf_task t = s->like;

    if (xf_manifest_decode(raw, &m, err) != XF_OK) {
        return XF_FAIL(err, XF_E_INVAL, "a page with a damaged manifest");
    }
    if (m.n == 0 || m.source_no != t.source_no) {
        return XF_FAIL(err, XF_E_INVAL, "a page with an empty or a foreign manifest");
    }
    for (uint32_t i = 0; i < m.n; i++) {
        if (is_beyond(s, m.objects[i].key)) {
            return add_rest(w, s, &m, err);
        }
    }
    t.n_objects = m.n;
    t.bytes = m.size_bytes < INT64_MAX ? m.size_bytes : INT64_MAX;
    return insert_batch(w, s, &t, raw, err);
}

static enum xf_code
add_upload(struct xf_work *w, struct shard *s, const struct xf_object *o, struct xf_err *err)
{
    if (is_beyond(s, o->key)) {
        return XF_OK;
    }
    s->add.listed++;
    s->add.bytes_listed += (int64_t)o->size;
    return xf_upload_insert(w, &s->like, o, err);
}

enum xf_code xf_do_page_commit(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    const struct xf_in_page_commit *in = &op->in.page_commit;
    struct xf_job_brief job = {.id = 0};
    struct shard s = {.add = {.keys_returned = (int64_t)in->keys_returned,
                              .list_requests = (int64_t)in->list_requests}};

    XF_TRY(check_input(in, err));
    XF_TRY(find_shard(w, op, &s, err));
    if (op->out.page_commit.repeated) {
        return XF_OK;
    }
    XF_TRY(xf_job_brief(w, s.like.job, &job, err));
    if (job.stop != 0 || xf_job_state_is_end(job.state)) {
        return XF_FAIL(err, XF_E_CANCELLED, "the job is being stopped");
    }
    XF_TRY(check_room(w, err));
    for (size_t i = 0; i < in->n_batches; i++) {
        XF_TRY(add_batch(w, &s, in->batches[i].manifest, err));
    }
    for (size_t i = 0; i < in->n_uploads; i++) {
        XF_TRY(add_upload(w, &s, &in->uploads[i], err));
    }
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "UPDATE shard SET cursor = ?, state = ? WHERE id = ? AND generation = ?"
                      " AND cursor = ? AND state = " S_SHARD_OPEN,
                      "biiib",
                      in->cursor_new,
                      (int64_t)(in->is_last || s.reached_end ? XF_SHARD_DONE : XF_SHARD_OPEN),
                      in->shard,
                      (int64_t)in->generation,
                      in->cursor_old));
    XF_ASSERT(xf_sql_changed(&w->sql) == 1); /* read in this savepoint */
    op->out.page_commit.listed = (uint64_t)s.add.listed;
    op->out.page_commit.is_done = in->is_last || s.reached_end;
    return xf_job_add(w, s.like.job, &s.add, err);
}
