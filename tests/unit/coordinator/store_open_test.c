/*
 * store_open_test.c - what a store refuses to open and says then, its limits, its log, its states'
 * tables, and its queue.
 */
#include "coordinator/store_sql.h"
#include "tests/lib/test.h"
#include "tests/unit/coordinator/store_kit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_up(void **state)
{
    struct kit *k = xf_xcalloc(1, sizeof(*k));

    kit_init(k, NULL);
    *state = k;
    return 0;
}

static int tear_down(void **state)
{
    struct kit *k = *state;

    kit_fini(k);
    xf_xfree(k);
    return 0;
}

static const char *db_path(struct kit *k)
{
    return xf_tmpdir_file(k->tmp, "data/xfer.db");
}

/* The open is refused with that code, and the text holds all the words. */
static void refused(struct kit *k, enum xf_code code, const char *const *words, size_t n)
{
    struct xf_err err;

    if (kit_try_open(k, &err) != code) {
        fail_msg("not refused as %s: %s", xf_code_name(code), err.msg);
    }
    for (size_t i = 0; i < n; i++) {
        if (strstr(err.msg, words[i]) == NULL) {
            fail_msg("'%s' is not in: %s", words[i], err.msg);
        }
    }
}
#define REFUSED(k, code, ...)                                          \
    do {                                                               \
        const char *const words_[] = {__VA_ARGS__};                    \
        refused((k), (code), words_, sizeof(words_) / sizeof(char *)); \
    } while (0)

static void run_sql(struct kit *k, const char *sql)
{
    struct xf_sql c;
    struct xf_err err;

    assert_int_equal(xf_sql_open(&c, db_path(k), NULL, SQLITE_OPEN_READWRITE, &err), XF_OK);
    assert_int_equal(xf_sql_exec(&c, sql, &err), XF_OK);
    xf_sql_close(&c);
}

/* Many rows, so that pages of every table are in the file. */
static int64_t fill(struct kit *k, uint32_t pages)
{
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    char last[16] = "";

    for (uint32_t i = 0; i < pages; i++) {
        char next[16];
        (void)snprintf(next, sizeof(next), "p%06u", i); /* fits */
        assert_int_equal(kit_page(k, shard, last, next, 500, 1), XF_OK);
        memcpy(last, next, sizeof(last));
    }
    return job;
}

static void c095_a_damaged_page_is_refused_and_the_file_left_alone(void **state)
{
    struct kit *k = *state;
    struct xf_buf before;
    struct xf_buf after;

    kit_open(k);
    (void)fill(k, 40); /* not looked at */
    kit_close(k);
    int fd = open(db_path(k), O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    char junk[4096];
    memset(junk, 0x5a, sizeof(junk));
    assert_int_equal(pwrite(fd, junk, sizeof(junk), (off_t)4096 * 20), sizeof(junk));
    assert_int_equal(close(fd), 0);
    xf_buf_init(&before, 0);
    xf_buf_init(&after, 0);
    assert_true(xf_tmpdir_read(db_path(k), &before));
    REFUSED(k, XF_E_CORRUPT, "xfer.db", "damaged", "backup", "--data-dir");
    assert_true(xf_tmpdir_read(db_path(k), &after));
    assert_true(xf_str_eq(xf_buf_view(&before), xf_buf_view(&after)));
    xf_buf_fini(&before);
    xf_buf_fini(&after);
}

static void c095_a_file_that_is_no_database_is_refused(void **state)
{
    struct kit *k = *state;
    struct xf_buf text;

    assert_int_equal(mkdir(k->dir, 0700), 0);
    xf_buf_init(&text, 0);
    for (int i = 0; i < 1000; i++) {
        xf_buf_put_c(&text, "this is not a database at all\n");
    }
    (void)xf_tmpdir_write(k->tmp, "data/xfer.db", xf_buf_view(&text)); /* its path is known */
    xf_buf_fini(&text);
    REFUSED(k, XF_E_CORRUPT, "xfer.db", "damaged", "--data-dir");
}

static void c095_a_lost_database_is_not_begun_anew(void **state)
{
    struct kit *k = *state;

    assert_int_equal(mkdir(k->dir, 0700), 0);
    (void)xf_tmpdir_write(k->tmp, "data/xfer.db-wal", XF_STR_LIT("log")); /* its path is known */
    REFUSED(k, XF_E_CORRUPT, "xfer.db", "missing", "restore");
}

static void a_database_of_another_program_is_refused(void **state)
{
    struct kit *k = *state;

    kit_open(k);
    kit_close(k);
    run_sql(k, "PRAGMA application_id = 1");
    REFUSED(k, XF_E_CORRUPT, "xfer.db", "not a store of xfer");
}

static void notices_and_agents_are_kept(void **state)
{
    struct kit *k = *state;
    struct xf_store_op *op;
    static const unsigned char instance[XF_STORE_INSTANCE_LEN] = {1, 2, 3};

    kit_open(k);
    op = kit_op(XF_OP_NOTE);
    op->in.note = (struct xf_in_note){0, XF_STR_LIT("mode_changed"), XF_STR_LIT("relay now")};
    kit_must(k, op);
    for (int i = 0; i < 2; i++) {
        op = kit_op(XF_OP_AGENT_SEEN);
        op->in.agent_seen = (struct xf_in_agent_seen){.id = XF_STR_LIT("host-1"),
                                                      .instance = instance,
                                                      .version = XF_STR_LIT("0.1.0"),
                                                      .host = XF_STR_LIT("host-1")};
        kit_must(k, op);
        assert_true(k->last.out.agent_seen.is_draining == (i == 1));
        xf_fakeclock_advance(&k->clock, 1000);
        op = kit_op(XF_OP_AGENT_DRAIN);
        op->in.agent_drain = (struct xf_in_agent_drain){XF_STR_LIT("host-1"), i == 0};
        kit_must(k, op);
    }
    op = kit_op(XF_OP_AGENT_DRAIN);
    op->in.agent_drain = (struct xf_in_agent_drain){XF_STR_LIT("nobody"), true};
    assert_int_equal(kit_do(k, op), XF_E_NOT_FOUND);
    kit_reopen(k);
    kit_must(k, kit_op(XF_OP_READ_AGENTS));
    assert_int_equal(k->last.out.read_agents.n, 1);
    const struct xf_agent_row *a = &k->last.out.read_agents.rows[0];
    assert_int_equal(a->last_ms - a->first_ms, 1000);
    assert_memory_equal(a->instance, instance, sizeof(instance));
    kit_must(k, kit_op(XF_OP_READ_NOTICES));
    assert_int_equal(k->last.out.read_notices.n, 1);
    assert_true(xf_str_eq_c(k->last.out.read_notices.rows[0].code, "mode_changed"));
}

static void c095_an_older_schema_is_brought_up_to_date(void **state)
{
    struct kit *k = *state;

    kit_open(k);
    (void)kit_job(k, "one", 1);
    kit_close(k);
    run_sql(k, "ALTER TABLE agent DROP COLUMN draining"); /* schema 1 had none */
    run_sql(k, "ALTER TABLE upload DROP COLUMN sum");
    run_sql(k, "ALTER TABLE upload DROP COLUMN is_left");
    run_sql(k, "ALTER TABLE job DROP COLUMN dropped");
    run_sql(k, "DROP TABLE setting");
    run_sql(k, "DROP INDEX job_pruned");
    run_sql(k, "ALTER TABLE job DROP COLUMN pruned");
    run_sql(k, "PRAGMA user_version = 1");
    kit_open(k);
    (void)kit_job(k, "two", 1);
    kit_check(k);
}

static void c095_a_newer_schema_is_refused(void **state)
{
    struct kit *k = *state;

    kit_open(k);
    kit_close(k);
    run_sql(k, "PRAGMA user_version = 999");
    REFUSED(k, XF_E_VERSION, "xfer.db", "newer xfer", "999", "install");
}

static void c095_a_second_opener_is_refused(void **state)
{
    struct kit *k = *state;
    struct kit second;

    kit_open(k);
    kit_init(&second, k->dir);
    REFUSED(&second, XF_E_LOCKED, k->dir, "in use", "stop");
    xf_xfree(second.dir);
    (void)kit_job(k, "one", 1); /* the first is not disturbed */
    kit_check(k);
}

static bool yes(const char *dir)
{
    (void)dir; /* whatever it is */
    return true;
}

static void c095_a_network_file_system_is_refused(void **state)
{
    struct kit *k = *state;

    k->opts.is_network_fs = yes;
    REFUSED(k, XF_E_UNSUPPORTED, k->dir, "network", "local disk");
}

static void an_unwritable_directory_is_refused(void **state)
{
    struct kit *k = *state;

    if (geteuid() == 0) { /* root may write anywhere: a file in the way does the same */
        (void)xf_tmpdir_write(k->tmp, "data", XF_STR_LIT("a file")); /* its path is known */
        REFUSED(k, XF_E_IO, k->dir, "--data-dir");
        return;
    }
    assert_int_equal(mkdir(k->dir, 0500), 0);
    REFUSED(k, XF_E_IO, k->dir, "cannot be written", "chown");
}

/* Another process, forked before the store is opened: SQLite's locks do not survive a fork. */
struct other {
    pid_t pid;
    int to[2];
    int from[2];
};

/* Runs work(o, k) in the child, which ends with 0 when it says true. */
static void start_other(struct other *o, struct kit *k, bool (*work)(struct other *, struct kit *))
{
    assert_int_equal(pipe2(o->to, O_CLOEXEC), 0);
    assert_int_equal(pipe2(o->from, O_CLOEXEC), 0);
    o->pid = fork();
    assert_true(o->pid >= 0);
    if (o->pid == 0) {
        char byte;
        bool ok = read(o->to[0], &byte, 1) == 1 && work(o, k);
        _exit(ok ? 0 : 1);
    }
}

static void tell_other(struct other *o)
{
    assert_int_equal(write(o->to[1], "x", 1), 1);
}

static void hear_other(struct other *o)
{
    char byte;

    assert_int_equal(read(o->from[0], &byte, 1), 1);
}

static void end_other(struct other *o)
{
    int status = -1;

    assert_int_equal(waitpid(o->pid, &status, 0), o->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(close(o->to[i]), 0);
        assert_int_equal(close(o->from[i]), 0);
    }
}

static bool check_elsewhere(struct other *o, struct kit *k)
{
    struct xf_err err;
    struct xf_buf report;
    uint64_t n_wrong = 99;

    (void)o; /* nothing to say before the end */
    xf_buf_init(&report, 0);
    enum xf_code rc = xf_store_check(k->dir, true, &report, &n_wrong, &err);
    xf_buf_fini(&report);
    return rc == XF_OK && n_wrong == 0;
}

static void a_check_reads_a_store_in_use(void **state)
{
    struct kit *k = *state;
    struct other o;

    start_other(&o, k, check_elsewhere);
    kit_open(k);
    (void)fill(k, 3); /* not looked at */
    tell_other(&o);
    end_other(&o);
    assert_int_equal(kit_row(k, 1).n.listed, 1503);
}

static const char insert_failure[] =
    "INSERT INTO failure(job, pass, task, idx, upload, source_no, key, size, etag, mtime_ms,"
    " storage_class, version_id, attempts, code, flags, http_status, s3_code, message, retryable,"
    " first_ms, last_ms, state) VALUES(1,1,1,0,0,0,'',0,'',0,'','',0,1,0,0,'','',0,0,0,1)";

static void a_check_finds_what_is_wrong(void **state)
{
    static const char *const faults[] = {
        "UPDATE job SET listed = listed + 1",
        "UPDATE job SET copied = copied + 1, listed = listed + 1",
        "UPDATE job SET failed = failed + 1, listed = listed + 1",
        "UPDATE task SET attempt = attempt + 1 WHERE state = 2",
        "UPDATE task SET state = 2 WHERE id = (SELECT min(id) FROM task WHERE state = 1)",
        "UPDATE task SET n_objects = n_objects + 1 WHERE id = (SELECT min(id) FROM task)",
        "DELETE FROM manifest WHERE task = (SELECT min(task) FROM manifest)",
        "DELETE FROM task WHERE upload > 0",
        "UPDATE job SET state = 4",
        "UPDATE upload SET state = 3",
        "UPDATE upload SET outcome = 1",
        "UPDATE task SET n_copied = 1 WHERE kind = 1 AND state = 1",
        "UPDATE result SET body = zeroblob(20)",
        insert_failure,
    };
    struct kit *k = *state;
    struct xf_buf clean;

    kit_open(k);
    int64_t job = fill(k, 3);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &h, 0, 5, XF_OUTCOME_COPIED, false), XF_OK);
    kit_check(k);
    kit_close(k);
    xf_buf_init(&clean, 0);
    assert_true(xf_tmpdir_read(db_path(k), &clean));
    for (size_t i = 0; i < XF_ARRAY_LEN(faults); i++) {
        struct xf_err err;
        struct xf_buf report;
        uint64_t n_wrong = 0;
        (void)xf_tmpdir_write(k->tmp, "data/xfer.db", xf_buf_view(&clean)); /* as it was */
        run_sql(k, faults[i]);
        xf_buf_init(&report, 0);
        assert_int_equal(xf_store_check(k->dir, true, &report, &n_wrong, &err), XF_OK);
        if (n_wrong == 0) {
            fail_msg("not found: %s", faults[i]);
        }
        xf_buf_fini(&report);
    }
    (void)xf_tmpdir_write(k->tmp, "data/xfer.db", xf_buf_view(&clean)); /* as it was */
    xf_buf_fini(&clean);
    kit_check(k);
}

/* The end of a shard may come nearer while a page is under way: what is beyond is another's. */
static void listing_pauses_at_the_limit_and_the_rest_goes_on(void **state)
{
    struct kit *k = *state;
    char last[16] = "";
    unsigned i = 0;

    k->opts.max_bytes = 1024 * 1024;
    kit_open(k);
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    for (;; i++) {
        char next[16];
        (void)snprintf(next, sizeof(next), "p%06u", i); /* fits */
        enum xf_code rc = kit_page(k, shard, last, next, 1000, 0);
        if (rc != XF_OK) {
            assert_int_equal(rc, XF_E_LIMIT);
            assert_non_null(strstr(k->last.err.msg, "max_bytes"));
            break;
        }
        memcpy(last, next, sizeof(last));
        assert_true(i < 1000);
    }
    assert_true(i > 1);
    struct held h = kit_lease_one(k, job, 'a', XF_TASK_BATCH);
    assert_int_equal(kit_checkpoint(k, &h, 0, 1000, XF_OUTCOME_COPIED, true), XF_OK);
    kit_check(k);
    kit_close(k);
    k->opts.max_bytes = 100 * 1024 * 1024;
    kit_open(k);
    assert_int_equal(kit_page(k, shard, last, "z", 1000, 0), XF_OK);
}

/* Holds a read transaction until told, then ends as a killed shell does. */
static bool hold_view(struct other *o, struct kit *k)
{
    struct xf_sql c;
    struct xf_err err;
    int64_t n = -1;
    int64_t again = -2;
    char byte = 'x';
    static const char count[] = "SELECT count(*) FROM task";

    return xf_sql_open(&c, db_path(k), NULL, SQLITE_OPEN_READWRITE, &err) == XF_OK &&
           xf_sql_exec(&c, "BEGIN", &err) == XF_OK &&
           xf_sql_number(&c, &n, &err, count, "") == XF_OK && write(o->from[1], &byte, 1) == 1 &&
           read(o->to[0], &byte, 1) == 1 && xf_sql_number(&c, &again, &err, count, "") == XF_OK &&
           n == again;
}

/* CASE C093: a reader in another process holds its view while updates run. */
static void c093_a_long_reader_loses_no_update_and_the_log_shrinks_after_it(void **state)
{
    struct kit *k = *state;
    struct xf_store_stats stats;
    struct other o;
    char last[16] = "";

    k->opts.wal_warn_bytes = 1024 * 1024;
    start_other(&o, k, hold_view);
    kit_open(k);
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    tell_other(&o);
    hear_other(&o);
    for (unsigned i = 0; i < 200; i++) {
        char next[16];
        (void)snprintf(next, sizeof(next), "p%06u", i); /* fits */
        assert_int_equal(kit_page(k, shard, last, next, 1000, 0), XF_OK);
        memcpy(last, next, sizeof(last));
    }
    xf_store_stats(k->store, &stats);
    assert_true(stats.wal_is_long);
    assert_true(stats.wal_bytes > 1024 * 1024);
    tell_other(&o);
    end_other(&o);
    const struct xf_clock *real = xf_clock_real();
    int64_t until = xf_clock_mono_ms(real) + 20000;
    do { /* nothing more is written: the store looks after its log by itself */
        xf_store_stats(k->store, &stats);
        xf_loop_turn(k->loop, 20);
    } while (stats.wal_is_long && xf_clock_mono_ms(real) < until);
    assert_false(stats.wal_is_long);
    assert_true(stats.wal_bytes < 1024 * 1024);
    assert_int_equal(kit_row(k, job).n.listed, 200000);
    kit_check(k);
}

/* CASE C093: another process holds the write lock for a moment: waited for, not reported. */
static void c093_a_busy_database_is_waited_for(void **state)
{
    struct kit *k = *state;
    struct xf_sql c;
    struct xf_err err;
    struct xf_store_op *op;

    kit_open(k);
    int64_t job = kit_job(k, "one", 1);
    int64_t shard = kit_shard(k, job);
    assert_int_equal(xf_sql_open(&c, db_path(k), NULL, SQLITE_OPEN_READWRITE, &err), XF_OK);
    assert_int_equal(xf_sql_exec(&c, "BEGIN IMMEDIATE", &err), XF_OK);
    op = kit_page_op(shard, "", "c1", 5, 0);
    op->arg = k;
    k->is_done = false;
    assert_true(xf_store_submit(k->port, op));
    for (int i = 0; i < 20; i++) {
        xf_loop_turn(k->loop, 10);
        assert_false(k->is_done);
    }
    assert_int_equal(xf_sql_exec(&c, "COMMIT", &err), XF_OK);
    while (!k->is_done) {
        xf_loop_turn(k->loop, 1000);
    }
    assert_int_equal(k->last.rc, XF_OK);
    xf_sql_close(&c);
    assert_int_equal(kit_row(k, job).n.listed, 5);
}

static void closing_folds_the_log_into_the_file(void **state)
{
    struct kit *k = *state;
    struct stat st;

    kit_open(k);
    (void)fill(k, 5); /* not looked at */
    assert_int_equal(stat(xf_tmpdir_file(k->tmp, "data/xfer.db-wal"), &st), 0);
    assert_true(st.st_size > 0);
    kit_close(k);
    assert_true(stat(xf_tmpdir_file(k->tmp, "data/xfer.db-wal"), &st) != 0 || st.st_size == 0);
    kit_check(k);
}

static void count_done(struct xf_store_op *op)
{
    unsigned *n = op->arg;

    (*n)++;
}

/* The queue is bounded: a caller hears `full`, and every operation taken is called back once. */
static void a_full_port_says_so_and_closing_it_calls_back(void **state)
{
    struct kit *k = *state;
    struct xf_store_port *port;
    struct xf_err err;
    unsigned n = 0;

    kit_open(k);
    assert_int_equal(xf_store_port_open(k->store, k->loop, 10, &port, &err), XF_OK);
    for (int i = 0; i < 11; i++) {
        struct xf_store_op *op = xf_store_op_new(XF_OP_NOTE, count_done, &n);
        op->in.note = (struct xf_in_note){0, XF_STR_LIT("test"), XF_STR_LIT("text")};
        bool taken = xf_store_submit(port, op);
        assert_int_equal(taken, i < 10);
        if (!taken) {
            xf_store_op_free(op);
        }
    }
    assert_int_equal(n, 0); /* never inside the submit */
    xf_store_port_close(port);
    assert_int_equal(n, 10);
    kit_must(k, kit_op(XF_OP_READ_NOTICES));
    assert_int_equal(k->last.out.read_notices.n, 10);
}

static void many_operations_are_one_transaction(void **state)
{
    struct kit *k = *state;
    struct xf_store_stats before;
    struct xf_store_stats after;
    struct xf_store_port *port;
    struct xf_err err;
    unsigned n = 0;

    kit_open(k);
    assert_int_equal(xf_store_port_open(k->store, k->loop, 1000, &port, &err), XF_OK);
    xf_store_stats(k->store, &before);
    for (int i = 0; i < 1000; i++) {
        struct xf_store_op *op = xf_store_op_new(XF_OP_NOTE, count_done, &n);
        op->in.note = (struct xf_in_note){0, XF_STR_LIT("test"), XF_STR_LIT("text")};
        assert_true(xf_store_submit(port, op));
    }
    xf_store_port_close(port);
    xf_store_stats(k->store, &after);
    assert_int_equal(after.ops - before.ops, 1000);
    assert_true(after.commits - before.commits < 500);
}

/* STYLE: every pair of states. What is final leads nowhere, and every state can be reached. */
static void check_table(const struct xf_fsm_state *table, size_t n, size_t first)
{
    uint32_t reached = 0;

    for (size_t from = first; from < n; from++) {
        assert_non_null(table[from].name);
        reached |= table[from].to;
        if ((table[from].flags & XF_FSM_INITIAL) != 0) {
            reached |= XF_TO(from);
        }
        for (size_t to = 0; to < n; to++) {
            bool may = xf_fsm_may(table, n, (unsigned)from, (unsigned)to);
            assert_false(may && to == 0);
            assert_false(may && from == to);
        }
        assert_int_equal(xf_fsm_find(table, n, table[from].name), from);
    }
    for (size_t s = first; s < n; s++) {
        assert_true((reached & XF_TO(s)) != 0);
    }
}

static void the_tables_of_states_are_sound(void **state)
{
    (void)state; /* no store */
    check_table(xf_task_fsm, XF_TASK_STATE_N, 1);
    check_table(xf_upload_fsm, XF_UPLOAD_STATE_N, 1);
    check_table(xf_shard_fsm, XF_SHARD_STATE_N, 1);
    check_table(xf_job_fsm, XF_JOB_STATE_N, 1);
    for (unsigned s = 1; s < XF_TASK_STATE_N; s++) {
        bool ended = s >= XF_TASK_DONE;
        assert_int_equal(xf_task_fsm[s].to == 0, ended);
        assert_int_equal((xf_task_fsm[s].flags & XF_FSM_FINAL) != 0, ended);
    }
    assert_true(xf_job_state_is_end(XF_JOB_CANCELLED));
    assert_false(xf_job_state_is_end(XF_JOB_PAUSED));
    assert_string_equal(xf_task_kind_name(XF_TASK_ABORT), "abort");
    assert_string_equal(xf_how_name(XF_HOW_STOPPED), "stopped");
    assert_string_equal(xf_op_name(XF_OP_READ_RECOVER), "read_recover");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        T(c095_a_damaged_page_is_refused_and_the_file_left_alone),
        T(c095_a_file_that_is_no_database_is_refused),
        T(c095_a_lost_database_is_not_begun_anew),
        T(a_database_of_another_program_is_refused),
        T(notices_and_agents_are_kept),
        T(c095_an_older_schema_is_brought_up_to_date),
        T(c095_a_newer_schema_is_refused),
        T(c095_a_second_opener_is_refused),
        T(c095_a_network_file_system_is_refused),
        T(an_unwritable_directory_is_refused),
        T(a_check_reads_a_store_in_use),
        T(a_check_finds_what_is_wrong),
        T(listing_pauses_at_the_limit_and_the_rest_goes_on),
        T(c093_a_long_reader_loses_no_update_and_the_log_shrinks_after_it),
        T(c093_a_busy_database_is_waited_for),
        T(closing_folds_the_log_into_the_file),
        T(a_full_port_says_so_and_closing_it_calls_back),
        T(many_operations_are_one_transaction),
        cmocka_unit_test(the_tables_of_states_are_sound),
    };
    return xf_test_run("store_open", tests, NULL, NULL);
}
