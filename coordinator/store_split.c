/*
 * store_split.c - one open shard becomes two, in one transaction.
 *
 * The point is the last key of the first one's range: it gets the end `point` + NUL (nothing lies
 * between), the new shard begins there with the point as its cursor. So the ranges stay half-open,
 * cover what they covered, and a listing by start-after = cursor asks for exactly the rest.
 */
#include "coordinator/store_work.h"

enum { POINT_MAX = 1024 }; /* as a key: what start-after may be */

#define SHARDS_LIKE                                                                      \
    " FROM shard a JOIN shard b ON b.job = a.job AND b.pass = a.pass AND b.source_no = " \
    "a.source_no"                                                                        \
    " AND b.side = a.side AND b.generation = a.generation WHERE a.id = ? AND a.generation = ?"

struct split {
    const struct xf_in_shard_split *in;
    struct xf_str end; /* of the first half: the first key beyond it */
    struct xf_out_shard_split *out;
    struct xf_arena *arena;
};

/* out->shard is 0 when it was not made yet. */
static enum xf_code find_made(struct xf_work *w, const struct split *s, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(
        xf_sql_start(&w->sql,
                     &st,
                     err,
                     "SELECT b.id, b.hi, (SELECT c.id FROM shard c WHERE c.job = b.job AND"
                     " c.pass = b.pass AND c.source_no = b.source_no AND c.hi = b.lo)" SHARDS_LIKE
                     " AND b.lo = ?",
                     "iib",
                     s->in->like,
                     (int64_t)s->in->generation,
                     s->end));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (found) {
        s->out->shard = xf_sql_i64(st, 0);
        s->out->hi = xf_sql_dup(st, 1, s->arena);
        s->out->whole = xf_sql_i64(st, 2);
    }
    return XF_OK;
}

static enum xf_code find_whole(struct xf_work *w, const struct split *s, struct xf_err *err)
{
    XF_AUTO_STMT *st = NULL;
    bool found;

    XF_TRY(xf_sql_start(&w->sql,
                        &st,
                        err,
                        "SELECT b.id, b.hi" SHARDS_LIKE " AND b.state = " S_SHARD_OPEN
                        " AND b.cursor < ? AND b.lo < ? AND (b.hi > ? OR length(b.hi) = 0)",
                        "iibbb",
                        s->in->like,
                        (int64_t)s->in->generation,
                        s->in->point,
                        s->end,
                        s->end));
    XF_TRY(xf_sql_next(&w->sql, st, &found, err));
    if (!found) {
        return XF_FAIL(err, XF_E_STALE, "no open shard has what is to be split off any more");
    }
    s->out->whole = xf_sql_i64(st, 0);
    s->out->hi = xf_sql_dup(st, 1, s->arena);
    return XF_OK;
}

/* A stopped job lists no more. */
static enum xf_code check_job(struct xf_work *w, int64_t shard, struct xf_err *err)
{
    struct xf_job_brief job = {.id = 0};
    int64_t id;

    XF_TRY(xf_sql_number(
        &w->sql, &id, err, "SELECT coalesce((SELECT job FROM shard WHERE id = ?), 0)", "i", shard));
    if (id == 0) {
        return XF_FAIL(err, XF_E_NOT_FOUND, "no shard %lld", (long long)shard);
    }
    XF_TRY(xf_job_brief(w, id, &job, err));
    if (job.stop != 0 || xf_job_state_is_end(job.state)) {
        return XF_FAIL(err, XF_E_CANCELLED, "the job is being stopped");
    }
    return XF_OK;
}

static enum xf_code make(struct xf_work *w, const struct split *s, struct xf_err *err)
{
    XF_TRY(xf_sql_run(&w->sql,
                      err,
                      "INSERT INTO shard(job, pass, source_no, side, lo, hi, cursor, generation,"
                      " state) SELECT job, pass, source_no, side, ?, hi, ?, generation, state"
                      " FROM shard WHERE id = ?",
                      "bbi",
                      s->end,
                      s->in->point,
                      s->out->whole));
    s->out->shard = sqlite3_last_insert_rowid(w->sql.db);
    return xf_sql_run(
        &w->sql, err, "UPDATE shard SET hi = ? WHERE id = ?", "bi", s->end, s->out->whole);
}

enum xf_code xf_do_shard_split(struct xf_work *w, struct xf_store_op *op, struct xf_err *err)
{
    XF_AUTO_BUF end = {0};
    struct split s = {
        .in = &op->in.shard_split, .out = &op->out.shard_split, .arena = &op->out_arena};

    xf_buf_init(&end, 0);
    if (s.in->point.len == 0 || s.in->point.len > POINT_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "a split at a point of %zu bytes", s.in->point.len);
    }
    xf_buf_put(&end, s.in->point);
    xf_buf_put_byte(&end, '\0');
    s.end = xf_buf_view(&end);
    XF_TRY(check_job(w, s.in->like, err));
    XF_TRY(find_made(w, &s, err));
    if (s.out->shard != 0) {
        return XF_OK;
    }
    XF_TRY(find_whole(w, &s, err));
    return make(w, &s, err);
}
