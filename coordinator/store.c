/*
 * store.c - operations, ports, and the life of the store.
 *
 *   loop --submit--> writes (bounded) --> writer thread: BEGIN, a savepoint each, COMMIT --+
 *     ^                                                                                   |
 *     +--- callback <--- port's done queue <----------------------------------------------+
 *                                         <--- reader thread <--- reads (bounded) <--- loop
 *
 * Invariants:
 * 1. A callback runs on its port's loop, after the COMMIT of its operation, exactly once.
 * 2. What waits is bounded: by the queue's cap, and by each port's.
 */
#include "coordinator/store.h"

#include "coordinator/store_int.h"

enum { QUEUE_CAP = 1024, READ_CAP = 256 };

static const struct {
    const char *name;
    enum xf_code (*run)(struct xf_work *w, struct xf_store_op *op, struct xf_err *err);
} table[XF_OP_N] = {
#define ROW(name_, member_) [XF_OP_##name_] = {#member_, xf_do_##member_},
    XF_STORE_WRITES(ROW) XF_STORE_READS(ROW)
#undef ROW
};

const char *xf_op_name(enum xf_op_kind kind)
{
    return kind < XF_OP_N ? table[kind].name : "unknown";
}

/* ---- operations ---- */

struct xf_store_op *xf_store_op_new(enum xf_op_kind kind, xf_store_done_fn *cb, void *arg)
{
    struct xf_store_op *op = xf_xcalloc(1, sizeof(*op));

    XF_ASSERT(kind < XF_OP_N && cb != NULL);
    op->kind = kind;
    op->cb = cb;
    op->arg = arg;
    return op;
}

void xf_store_op_free(struct xf_store_op *op)
{
    if (op == NULL) {
        return;
    }
    xf_arena_fini(&op->in_arena);
    xf_arena_fini(&op->out_arena);
    xf_xfree(op);
}

struct xf_str xf_store_op_dup(struct xf_store_op *op, struct xf_str s)
{
    return s.len == 0 ? XF_STR_EMPTY : xf_arena_dup(&op->in_arena, s);
}

void *xf_store_op_calloc(struct xf_store_op *op, size_t n, size_t size)
{
    return xf_arena_calloc(&op->in_arena, n, size);
}

void xf_store_run(struct xf_work *w, struct xf_store_op *op)
{
    xf_arena_fini(&op->out_arena);
    memset(&op->out, 0, sizeof(op->out));
    xf_err_clear(&op->err);
    w->now_ms = op->now_ms;
    w->keep = false;
    op->rc = table[op->kind].run(w, op, &op->err);
}

void xf_store_ended(struct xf_store *s, struct xf_store_op *op)
{
    if (op->rc == XF_E_STALE) {
        atomic_fetch_add(&s->stale, 1);
    }
    xf_queue_push_reserved(op->port->done, op); /* bounded by the port's cap */
}

/* ---- ports ---- */

static void call_back(struct xf_store_port *p, struct xf_store_op *op)
{
    p->under_way--;
    op->cb(op);
    xf_store_op_free(op);
}

static void on_done(void *arg)
{
    struct xf_store_port *p = arg;
    struct xf_store_op *op;

    XF_ASSERT_OWNER(p);
    while ((op = xf_queue_pop(p->done)) != NULL) {
        call_back(p, op);
    }
}

enum xf_code xf_store_port_open(struct xf_store *s,
                                struct xf_loop *loop,
                                size_t cap,
                                struct xf_store_port **out,
                                struct xf_err *err)
{
    struct xf_store_port *p = xf_xcalloc(1, sizeof(*p));

    p->store = s;
    p->cap = cap == 0 ? QUEUE_CAP : cap;
    xf_owner_take(&p->owner);
    enum xf_code rc = xf_queue_new(p->cap, &p->done, err);
    if (rc == XF_OK) {
        rc = xf_queue_attach(p->done, loop, on_done, p, err);
    }
    if (rc != XF_OK) {
        xf_queue_free(p->done);
        xf_xfree(p);
        return rc;
    }
    atomic_fetch_add(&s->n_ports, 1);
    *out = p;
    return XF_OK;
}

void xf_store_port_close(struct xf_store_port *p)
{
    if (p == NULL) {
        return;
    }
    XF_ASSERT_OWNER(p);
    xf_queue_detach(p->done);
    while (p->under_way > 0) {
        call_back(p, xf_queue_pop_wait(p->done, -1));
    }
    atomic_fetch_sub(&p->store->n_ports, 1);
    xf_queue_free(p->done);
    xf_xfree(p);
}

bool xf_store_submit(struct xf_store_port *p, struct xf_store_op *op)
{
    struct xf_store *s = p->store;

    XF_ASSERT_OWNER(p);
    if (p->under_way >= p->cap) {
        return false;
    }
    op->port = p;
    op->now_ms = xf_clock_wall_ms(s->clock);
    if (!xf_queue_push(op->kind < XF_OP_READS ? s->writes : s->reads, op)) {
        return false;
    }
    p->under_way++;
    return true;
}

/* ---- reader ---- */

/* The transaction only makes several statements see one commit; it never waits for the writer. */
static void read_one(struct xf_store *s, struct xf_store_op *op)
{
    struct xf_work *w = &s->read_work;
    struct xf_err ignored;

    op->rc = xf_sql_exec(&w->sql, "BEGIN", &op->err);
    if (op->rc == XF_OK) {
        xf_store_run(w, op);
        if (xf_sql_exec(&w->sql, "COMMIT", &ignored) != XF_OK && op->rc == XF_OK) {
            op->rc = ignored.code;
            op->err = ignored;
        }
    }
    xf_store_ended(s, op);
}

static void reader_run(void *arg)
{
    struct xf_store *s = arg;
    struct xf_store_op *op;

    while ((op = xf_queue_pop_wait(s->reads, -1)) != NULL) {
        read_one(s, op);
    }
}

/* ---- life ---- */

void xf_store_stats(struct xf_store *s, struct xf_store_stats *out)
{
    *out = (struct xf_store_stats){.commits = atomic_load(&s->commits),
                                   .ops = atomic_load(&s->ops),
                                   .stale = atomic_load(&s->stale),
                                   .bytes = atomic_load(&s->db_bytes) + atomic_load(&s->wal_bytes),
                                   .max_bytes = atomic_load(&s->max_bytes),
                                   .wal_bytes = atomic_load(&s->wal_bytes),
                                   .wal_is_long = atomic_load(&s->wal_is_long),
                                   .is_disk_failing = atomic_load(&s->is_disk_failing),
                                   .queued = xf_queue_len(s->writes)};
}

static enum xf_code start(struct xf_store *s, const struct xf_store_opts *opts, struct xf_err *err)
{
    XF_TRY(xf_store_open_files(s, opts, err));
    XF_TRY(xf_queue_new(opts->queue_cap == 0 ? QUEUE_CAP : opts->queue_cap, &s->writes, err));
    XF_TRY(xf_queue_new(READ_CAP, &s->reads, err));
    XF_TRY(xf_thread_start(&s->writer, "store-writer", xf_store_writer_run, s, err));
    return xf_thread_start(&s->reader, "store-reader", reader_run, s, err);
}

enum xf_code
xf_store_open(const struct xf_store_opts *opts, struct xf_store **out, struct xf_err *err)
{
    struct xf_store *s = xf_xcalloc(1, sizeof(*s));

    s->clock = opts->clock != NULL ? opts->clock : xf_clock_real();
    s->before_commit = opts->before_commit;
    s->after_commit = opts->after_commit;
    s->arg = opts->arg;
    s->lock_fd = -1;
    enum xf_code rc = start(s, opts, err);
    if (rc != XF_OK) {
        xf_store_close(s);
        return rc;
    }
    *out = s;
    return XF_OK;
}

void xf_store_close(struct xf_store *s)
{
    if (s == NULL) {
        return;
    }
    XF_ASSERT(atomic_load(&s->n_ports) == 0);
    atomic_store(&s->closing, true);
    if (s->writes != NULL) {
        xf_queue_close(s->writes);
    }
    if (s->reads != NULL) {
        xf_queue_close(s->reads);
    }
    xf_thread_join(&s->writer);
    xf_thread_join(&s->reader);
    xf_queue_free(s->writes);
    xf_queue_free(s->reads);
    xf_store_close_files(s);
    xf_xfree(s);
}
