/*
 * store_kill_test.c - SIGKILL at commit points, at any moment, and power cuts.
 *
 * The test starts itself as another program ("life"), which works on a job through the store and
 * writes a line for everything that the store acknowledged. It is killed; then the store must hold
 * every invariant and everything that was acknowledged. The next life goes on, until the job ends.
 */
#include "common/base/rng.h"
#include "tests/fault/coordinator/store_vfs.h"
#include "tests/lib/proc.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PAGES = 24, PAGE_OBJECTS = 30, THIRD = 10, HELD_MAX = 6, OPS_MAX = 32, LIVES_MAX = 300 };

/* ---- a life: the other program ---- */

struct life {
    struct kit k;
    int64_t job;
    int64_t shard; /* 0: listed */
    unsigned page; /* pages that are in */
    struct held held[HELD_MAX];
    uint32_t reported[HELD_MAX]; /* objects */
    size_t n_held;
    unsigned waiting;
    unsigned kill_at; /* the n-th commit; 0: never */
    bool kill_before;
    unsigned commits;
};

static void tell(const char *word, unsigned long long n)
{
    char line[64];
    int len = snprintf(line, sizeof(line), "%s %llu\n", word, n);

    if (write(STDOUT_FILENO, line, (size_t)len) != len) {
        abort();
    }
}

static void before_commit(void *arg, size_t n_ops)
{
    struct life *l = arg;

    (void)n_ops; /* however many */
    l->commits++;
    if (l->commits == l->kill_at && l->kill_before) {
        (void)kill(getpid(), SIGKILL); /* does not return */
    }
}

static void after_commit(void *arg, size_t n_ops, int64_t took_ns)
{
    struct life *l = arg;

    (void)n_ops;   /* however many */
    (void)took_ns; /* however long */
    if (l->commits == l->kill_at && !l->kill_before) {
        (void)kill(getpid(), SIGKILL); /* does not return */
    }
}

static void on_page(struct life *l, const struct xf_store_op *op)
{
    l->page++;
    if (!op->out.page_commit.repeated) {
        tell("listed", op->out.page_commit.listed);
    }
    if (op->in.page_commit.is_last) {
        l->shard = 0;
    }
}

static void on_lease(struct life *l, const struct xf_store_op *op)
{
    for (size_t i = 0; i < op->out.lease.n_tasks; i++) {
        const struct xf_lease_task *t = &op->out.lease.tasks[i];
        struct xf_result_set set;
        struct xf_err err;
        uint32_t done = 0;
        assert_int_equal(xf_result_set_decode(t->result, t->n_objects, &set, &err), XF_OK);
        while (done < set.n && set.at[done].outcome != XF_OUTCOME_PENDING) {
            done++;
        }
        xf_result_set_fini(&set);
        assert_true(l->n_held < HELD_MAX);
        struct held *h = &l->held[l->n_held];
        *h = (struct held){.task = t->task, .attempt = t->attempt, .n_objects = t->n_objects};
        memcpy(h->instance, op->in.lease.instance, XF_STORE_INSTANCE_LEN);
        l->reported[l->n_held++] = done;
        tell("leased", (unsigned long long)t->task);
    }
}

static void on_checkpoint(struct life *l, const struct xf_store_op *op)
{
    tell("copied", op->out.checkpoint.added.by_outcome[XF_OUTCOME_COPIED]);
    for (size_t i = 0; i < l->n_held; i++) {
        if (l->held[i].task == op->in.checkpoint.fence.task) {
            l->reported[i] += THIRD;
            if (op->out.checkpoint.ended) {
                l->n_held--;
                l->held[i] = l->held[l->n_held];
                l->reported[i] = l->reported[l->n_held];
            }
            return;
        }
    }
}

static void on_done(struct xf_store_op *op)
{
    struct life *l = op->arg;

    if (op->rc != XF_OK) {
        fprintf(stderr, "%s: %s\n", xf_op_name(op->kind), op->err.msg);
        exit(3);
    }
    l->waiting--;
    if (op->kind == XF_OP_PAGE_COMMIT) {
        on_page(l, op);
    } else if (op->kind == XF_OP_LEASE) {
        on_lease(l, op);
    } else if (op->kind == XF_OP_CHECKPOINT) {
        on_checkpoint(l, op);
    }
}

static void submit(struct life *l, struct xf_store_op *op)
{
    op->cb = on_done;
    op->arg = l;
    l->waiting++;
    if (!xf_store_submit(l->k.port, op)) {
        exit(4);
    }
}

/* The cursor after that many pages. */
static void cursor_of(unsigned pages, char *out, size_t size)
{
    out[0] = '\0';
    if (pages > 0) {
        (void)snprintf(out, size, "p%06u", pages); /* fits */
    }
}

static void submit_page(struct life *l)
{
    char old[16];
    char next[16];
    struct xf_store_op *op;

    cursor_of(l->page, old, sizeof(old));
    cursor_of(l->page + 1, next, sizeof(next));
    op = kit_page_op(l->shard, old, next, PAGE_OBJECTS, 0);
    op->in.page_commit.is_last = l->page + 1 == PAGES;
    submit(l, op);
}

/* A page, a checkpoint of everything held, and a lease, all under way together. */
static void turn(struct life *l, char instance)
{
    if (l->shard != 0) {
        submit_page(l);
    }
    for (size_t i = 0; i < l->n_held; i++) {
        uint32_t from = l->reported[i];
        uint32_t to = from + THIRD < l->held[i].n_objects ? from + THIRD : l->held[i].n_objects;
        submit(l,
               kit_checkpoint_op(
                   &l->held[i], from, to, XF_OUTCOME_COPIED, to == l->held[i].n_objects));
    }
    if (l->n_held + 2 <= HELD_MAX) {
        submit(l, kit_lease_op(l->job, instance, XF_TASK_ALL, 2));
    }
    while (l->waiting > 0) {
        xf_loop_turn(l->k.loop, 1000);
    }
}

/* The leases of the life before were somebody else's. */
static void take_over(struct life *l)
{
    struct xf_leased_row rows[HELD_MAX];
    size_t n;

    kit_must(&l->k, kit_op(XF_OP_READ_RECOVER));
    const struct xf_out_read_recover *r = &l->k.last.out.read_recover;
    assert_true(r->n_leased <= HELD_MAX);
    n = r->n_leased;
    if (n > 0) {
        memcpy(rows, r->leased, n * sizeof(*rows));
    }
    l->shard = 0;
    if (r->n_shards == 1) {
        l->shard = r->shards[0].id;
        l->page = r->shards[0].cursor.len == 0
                      ? 0
                      : (unsigned)strtoul(r->shards[0].cursor.ptr + 1, NULL, 10);
    }
    for (size_t i = 0; i < n; i++) {
        struct held h = {.task = rows[i].task, .attempt = rows[i].attempt};
        memcpy(h.instance, rows[i].instance, XF_STORE_INSTANCE_LEN);
        assert_int_equal(kit_give_back(&l->k, &h, XF_HOW_DRAINED), XF_OK);
    }
}

/* life DIR INSTANCE KILL_AT before|after real|shim */
static int life_main(char **argv)
{
    struct life *l = xf_xcalloc(1, sizeof(*l));

    kit_init(&l->k, argv[1]);
    l->kill_at = (unsigned)strtoul(argv[3], NULL, 10);
    l->kill_before = strcmp(argv[4], "before") == 0;
    l->k.opts.before_commit = before_commit;
    l->k.opts.after_commit = after_commit;
    l->k.opts.arg = l;
    if (strcmp(argv[5], "shim") == 0) {
        vfs_register();
        vfs_keep_durable();
        l->k.opts.vfs = STORE_VFS_NAME;
    }
    kit_open(&l->k);
    l->job = kit_job(&l->k, "one", 1);
    take_over(l);
    for (;;) {
        turn(l, argv[2][0]);
        if (l->shard == 0 && l->n_held == 0 && kit_row(&l->k, l->job).n.pending == 0) {
            break;
        }
    }
    kit_must(&l->k, kit_op(XF_OP_READ_RECOVER));
    if (kit_finish(&l->k, l->job, XF_JOB_COMPLETED) != XF_OK) {
        exit(5);
    }
    tell("ended", 1);
    kit_fini(&l->k);
    return 0;
}

/* ---- the test ---- */

struct world {
    struct xf_tmpdir *tmp;
    const char *dir;
    const char *acks;
    const char *errors;
    char self[512];
    uint64_t listed; /* what must be there */
    uint64_t copied;
};

static void world_init(struct world *w)
{
    memset(w, 0, sizeof(*w));
    w->tmp = xf_tmpdir_new();
    w->dir = xf_tmpdir_file(w->tmp, "data");
    w->acks = xf_tmpdir_file(w->tmp, "acks");
    w->errors = xf_tmpdir_file(w->tmp, "errors");
    assert_true(readlink("/proc/self/exe", w->self, sizeof(w->self) - 1) > 0);
}

static struct xf_proc *
begin_life(struct world *w, char instance, unsigned kill_at, bool before, bool shim)
{
    char who[] = {instance, '\0'};
    char at[16];

    (void)snprintf(at, sizeof(at), "%u", kill_at); /* fits */
    xf_tmpdir_remove(w->acks);
    const char *const argv[] = {w->self,
                                "life",
                                w->dir,
                                who,
                                at,
                                before ? "before" : "after",
                                shim ? "shim" : "real",
                                NULL};
    const struct xf_proc_opts opts = {.argv = argv, .out_path = w->acks, .err_path = w->errors};
    return xf_proc_spawn(&opts);
}

/* Adds the acknowledged numbers of this life; true when it said that the job ended. */
static bool read_acks(struct world *w)
{
    struct xf_buf all;
    struct xf_str rest;
    struct xf_str line;
    bool ended = false;

    xf_buf_init(&all, 0);
    (void)xf_tmpdir_read(w->acks, &all); /* none: it died before */
    rest = xf_buf_view(&all);
    while (xf_str_cut(&rest, '\n', &line)) {
        struct xf_str word;
        uint64_t n = 0;
        assert_true(xf_str_cut(&line, ' ', &word));
        assert_true(xf_str_u64(line, &n));
        w->listed += xf_str_eq_c(word, "listed") ? n : 0;
        w->copied += xf_str_eq_c(word, "copied") ? n : 0;
        ended = ended || xf_str_eq_c(word, "ended");
    }
    xf_buf_fini(&all);
    return ended;
}

/* After a life: sound, and all that was acknowledged is there, with at most what was under way. */
static bool check_life(struct world *w)
{
    struct kit k;
    bool ended = read_acks(w);
    struct stat st;

    if (stat(w->dir, &st) != 0) {
        return false; /* it died before it made anything */
    }
    kit_init(&k, w->dir);
    kit_open(&k);
    kit_check(&k);
    kit_must(&k, kit_op(XF_OP_READ_JOBS));
    if (k.last.out.read_jobs.n == 0) {
        assert_int_equal(w->listed, 0);
    } else {
        struct xf_job_row row = k.last.out.read_jobs.rows[0];
        assert_in_range(row.n.listed, w->listed, w->listed + PAGE_OBJECTS);
        assert_in_range(row.n.copied, w->copied, w->copied + HELD_MAX * THIRD);
        assert_true(!ended || row.state == XF_JOB_COMPLETED);
        w->listed = row.n.listed;
        w->copied = row.n.copied;
        ended = row.state == XF_JOB_COMPLETED;
    }
    kit_fini(&k);
    return ended;
}

static void end_world(struct world *w)
{
    assert_int_equal(w->listed, PAGES * PAGE_OBJECTS);
    assert_int_equal(w->copied, PAGES * PAGE_OBJECTS);
    xf_tmpdir_free(w->tmp);
}

/* CASE C082: whatever a kill interrupts is done later, nothing twice, nothing never. */
static void c082_a_kill_at_each_commit_loses_nothing(void **state)
{
    struct world w;
    bool ended = false;
    unsigned life = 0;

    (void)state; /* it makes its own */
    world_init(&w);
    /* Every life is killed at its n-th commit, n going round: so each kind of commit is met. */
    for (; !ended; life++) {
        assert_true(life < LIVES_MAX);
        struct xf_proc *p =
            begin_life(&w, (char)('a' + life % 26), 1 + (life / 2) % 9, life % 2 == 0, false);
        int status = xf_proc_wait(p, 60000);
        xf_proc_free(p);
        assert_true(status == 0 || status == 128 + SIGKILL);
        ended = check_life(&w);
    }
    assert_true(life > 10);
    end_world(&w);
}

static void a_kill_at_any_moment_loses_nothing(void **state)
{
    struct xf_rng rng;
    struct world w;
    bool ended = false;

    (void)state; /* it makes its own */
    xf_rng_init(&rng, xf_test_seed());
    world_init(&w);
    for (unsigned life = 0; !ended; life++) {
        assert_true(life < LIVES_MAX);
        struct xf_proc *p = begin_life(&w, (char)('a' + life % 26), 0, false, false);
        /* A random amount of acknowledgements, then at once. */
        off_t until = (off_t)xf_rng_below(&rng, 400);
        struct stat st;
        while (xf_proc_is_alive(p) && (stat(w.acks, &st) != 0 || st.st_size < until)) {
            (void)sched_yield(); /* always 0 */
        }
        xf_proc_signal(p, SIGKILL);
        int status = xf_proc_wait(p, 60000);
        xf_proc_free(p);
        assert_true(status == 0 || status == 128 + SIGKILL);
        ended = check_life(&w);
    }
    end_world(&w);
}

/* What a power cut leaves of a file: its bytes at its last sync. The directory was synced. */
static void cut_power_of(struct world *w, const char *file, const char *durable)
{
    struct xf_buf bytes;

    xf_buf_init(&bytes, 0);
    (void)xf_tmpdir_read(xf_tmpdir_file(w->tmp, durable), &bytes); /* never synced: empty */
    (void)xf_tmpdir_write(w->tmp, file, xf_buf_view(&bytes));      /* its path is known */
    xf_tmpdir_remove(xf_tmpdir_file(w->tmp, durable));
    xf_buf_fini(&bytes);
}

/* A store that was closed in good order is on the disk as it is, without a log. */
static void was_closed(struct world *w)
{
    struct xf_buf bytes;

    xf_buf_init(&bytes, 0);
    if (xf_tmpdir_read(xf_tmpdir_file(w->tmp, "data/xfer.db"), &bytes)) {
        (void)xf_tmpdir_write(w->tmp, "data/xfer.db.durable", xf_buf_view(&bytes)); /* likewise */
    }
    xf_buf_fini(&bytes);
}

/* CASE C095 b: writes that were not synced are gone; what was acknowledged is not. */
static void c095_an_acknowledged_commit_survives_a_power_cut(void **state)
{
    struct world w;
    bool ended = false;
    unsigned life = 0;

    (void)state; /* it makes its own */
    world_init(&w);
    for (; !ended; life++) {
        assert_true(life < LIVES_MAX);
        struct xf_proc *p =
            begin_life(&w, (char)('a' + life % 26), 3 + (life / 2) % 9, life % 2 == 0, true);
        int status = xf_proc_wait(p, 60000);
        xf_proc_free(p);
        assert_true(status == 0 || status == 128 + SIGKILL);
        if (status != 0) {
            cut_power_of(&w, "data/xfer.db", "data/xfer.db.durable");
            cut_power_of(&w, "data/xfer.db-wal", "data/xfer.db-wal.durable");
            xf_tmpdir_remove(xf_tmpdir_file(w.tmp, "data/xfer.db-shm"));
        }
        ended = check_life(&w);
        was_closed(&w);
    }
    assert_true(life > 5);
    end_world(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(c082_a_kill_at_each_commit_loses_nothing),
        cmocka_unit_test(a_kill_at_any_moment_loses_nothing),
        cmocka_unit_test(c095_an_acknowledged_commit_survives_a_power_cut),
    };
    if (argc == 7 && strcmp(argv[1], "life") == 0) {
        return life_main(argv + 1);
    }
    return xf_test_run("store_kill", tests, NULL, NULL);
}
