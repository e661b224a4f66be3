/*
 * store_work.h - what the operations of the store share; inside the store only.
 *
 * Every function here runs on the writer thread inside a savepoint of the group's transaction. On
 * an error the writer rolls back to the savepoint, so half of an operation is never seen; `keep`
 * tells it to commit what was written although the operation ends with an error.
 */
#ifndef XF_COORDINATOR_STORE_WORK_H
#define XF_COORDINATOR_STORE_WORK_H

#include "coordinator/store.h"
#include "coordinator/store_blob.h"
#include "coordinator/store_schema.h"
#include "coordinator/store_sql.h"

enum {
    XF_TASK_DEATHS_MAX = 5,
    XF_TASK_WEAK_DEATHS = 5, /* so many weak deaths weigh as one */
    XF_PARTS_A_TASK = 8      /* parts of one task */
};

struct xf_work {
    struct xf_sql sql;
    struct xf_zip *zip;
    struct xf_buf raw;  /* a decompressed manifest, or bytes to compress */
    struct xf_buf raw2; /* a decompressed result */
    int64_t now_ms;
    uint64_t max_bytes; /* 0: no limit */
    uint64_t wal_bytes;
    bool keep;
};

/* ---- operations, one an entry of XF_STORE_WRITES ---- */
#define XF_DO_DECL(name, member) \
    enum xf_code xf_do_##member(struct xf_work *w, struct xf_store_op *op, struct xf_err *err);
XF_STORE_WRITES(XF_DO_DECL)
#undef XF_DO_DECL

/* ---- jobs: store_job.c ---- */
struct xf_job_brief {
    int64_t id;
    enum xf_job_state state;
    enum xf_job_state stop;
};
XF_MUST_CHECK enum xf_code
xf_job_brief(struct xf_work *w, int64_t job, struct xf_job_brief *out, struct xf_err *err);
/* Signed changes of the counters. */
struct xf_job_delta {
    int64_t listed, copied, skipped, failed, vanished, archived;
    int64_t bytes_listed, bytes_copied, bytes_through, retries, throttled, dropped;
    int64_t keys_returned, list_requests;
};
XF_MUST_CHECK enum xf_code
xf_job_add(struct xf_work *w, int64_t job, const struct xf_job_delta *d, struct xf_err *err);
/** Add or take away (sign -1) one object with that outcome. */
void xf_job_delta_outcome(struct xf_job_delta *d, enum xf_outcome outcome, int sign);
XF_MUST_CHECK enum xf_code xf_notice_add(
    struct xf_work *w, int64_t job, const char *code, struct xf_str text, struct xf_err *err);
XF_MUST_CHECK enum xf_code xf_pass_add(
    struct xf_work *w, int64_t job, enum xf_pass_kind kind, int64_t *pass, struct xf_err *err);

/* ---- tasks: store_task.c ---- */
struct xf_task {
    int64_t id, job, pass, shard, upload, origin;
    enum xf_task_kind kind;
    enum xf_task_state state;
    uint32_t generation, source_no, attempt, deaths, progress;
    uint32_t n_objects, n_reported;
    uint64_t bytes;
    uint32_t first_part, last_part, parts_done;
    bool recheck;
    bool is_owner; /* set by the fence: attempt and instance are the row's */
};
XF_MUST_CHECK enum xf_code
xf_task_load(struct xf_work *w, int64_t id, struct xf_task *t, struct xf_err *err);
/** Load and compare with the fence: t->is_owner. XF_E_NOT_FOUND. */
XF_MUST_CHECK enum xf_code xf_task_fence(struct xf_work *w,
                                         const struct xf_store_fence *f,
                                         struct xf_task *t,
                                         struct xf_err *err);
enum xf_code xf_task_stale(const struct xf_store_fence *f, struct xf_err *err);
/** Insert a ready task of t's kind, job, pass, ...; sets t->id. */
XF_MUST_CHECK enum xf_code xf_task_insert(struct xf_work *w, struct xf_task *t, struct xf_err *err);
/** Move a leased task by compare-and-set and end its attempt. not_before_ms: of READY. */
XF_MUST_CHECK enum xf_code xf_task_end(struct xf_work *w,
                                       struct xf_task *t,
                                       enum xf_task_state to,
                                       enum xf_how how,
                                       int64_t not_before_ms,
                                       struct xf_err *err);
/** Add the outcomes `added` to the task's row. */
XF_MUST_CHECK enum xf_code xf_task_count(struct xf_work *w,
                                         struct xf_task *t,
                                         const struct xf_result_counts *added,
                                         struct xf_err *err);
XF_MUST_CHECK enum xf_code
xf_manifest_put(struct xf_work *w, int64_t task, struct xf_str raw, struct xf_err *err);
/** The manifest of a task, or of its origin when it is a recheck; decompressed into w->raw. */
XF_MUST_CHECK enum xf_code
xf_manifest_raw(struct xf_work *w, const struct xf_task *t, struct xf_err *err);
XF_MUST_CHECK enum xf_code xf_manifest_load(struct xf_work *w,
                                            const struct xf_task *t,
                                            struct xf_manifest *out,
                                            struct xf_err *err);
/** The result so far, decompressed into w->raw2; empty when there is none. */
XF_MUST_CHECK enum xf_code xf_result_raw(struct xf_work *w, int64_t task, struct xf_err *err);
XF_MUST_CHECK enum xf_code xf_result_load(
    struct xf_work *w, int64_t task, uint32_t n, struct xf_result_set *out, struct xf_err *err);
XF_MUST_CHECK enum xf_code
xf_result_put(struct xf_work *w, int64_t task, const struct xf_result_set *set, struct xf_err *err);
/** Encoded bytes as the task's result, in place of what there was. */
XF_MUST_CHECK enum xf_code
xf_result_put_raw(struct xf_work *w, int64_t task, struct xf_str raw, struct xf_err *err);
/** Finished parts of a parts task, appended. */
XF_MUST_CHECK enum xf_code
xf_task_parts(struct xf_work *w, int64_t task, struct xf_part_list *out, struct xf_err *err);

/* ---- failures: store_failure.c ---- */
/** A failed object becomes a row. task and idx, or upload. */
XF_MUST_CHECK enum xf_code xf_failure_add(struct xf_work *w,
                                          const struct xf_failure_row *row,
                                          int64_t task,
                                          uint32_t idx,
                                          int64_t upload,
                                          struct xf_err *err);
/** Rows for every index that is failed in `set` and marked in `is_new`. */
XF_MUST_CHECK enum xf_code xf_failure_add_new(struct xf_work *w,
                                              const struct xf_task *t,
                                              const struct xf_result_set *set,
                                              const bool *is_new,
                                              struct xf_err *err);

/* ---- uploads: store_upload.c ---- */
struct xf_upload {
    int64_t id, job, pass;
    enum xf_upload_state state;
    enum xf_outcome outcome;
    bool has_upload_id;
    uint64_t size;
    uint32_t n_parts;
};
XF_MUST_CHECK enum xf_code
xf_upload_load(struct xf_work *w, int64_t id, struct xf_upload *out, struct xf_err *err);
/** The whole row, strings in the arena. */
XF_MUST_CHECK enum xf_code xf_upload_row_load(struct xf_sql *c,
                                              int64_t id,
                                              struct xf_arena *arena,
                                              struct xf_upload_row *out,
                                              struct xf_err *err);
/** Insert a planned upload and its ready open task. */
XF_MUST_CHECK enum xf_code xf_upload_insert(struct xf_work *w,
                                            const struct xf_task *like,
                                            const struct xf_object *o,
                                            struct xf_err *err);
/** Move by the table and compare-and-set. */
XF_MUST_CHECK enum xf_code
xf_upload_move(struct xf_work *w, struct xf_upload *u, enum xf_upload_state to, struct xf_err *err);
/** When it is being aborted, none of its tasks is leased and no abort task waits: make one. */
XF_MUST_CHECK enum xf_code xf_upload_settle(struct xf_work *w, int64_t upload, struct xf_err *err);
/** End an upload that its leased task t reports on. */
XF_MUST_CHECK enum xf_code xf_upload_finish(struct xf_work *w,
                                            struct xf_task *t,
                                            const struct xf_result *r,
                                            bool left_open,
                                            bool *to_abort,
                                            struct xf_err *err);

/* ---- rechecks: store_recheck.c ---- */
/** A late report touched task t: mark it, or make the recheck task when it has ended. */
XF_MUST_CHECK enum xf_code
xf_recheck_mark(struct xf_work *w, const struct xf_task *t, bool *made, struct xf_err *err);
/** t is ending well: make its recheck when it is marked. */
XF_MUST_CHECK enum xf_code
xf_recheck_after(struct xf_work *w, const struct xf_task *t, bool *made, struct xf_err *err);
/** Fold what a recheck reported anew into the result of its origin and the job's counters. */
XF_MUST_CHECK enum xf_code xf_recheck_fold(struct xf_work *w,
                                           const struct xf_task *t,
                                           const struct xf_result_set *set,
                                           const bool *is_new,
                                           struct xf_err *err);

/* ---- reports: store_report.c ---- */
/** Merge a delta into a batch or recheck: result, failures, counters. */
XF_MUST_CHECK enum xf_code xf_report_merge(struct xf_work *w,
                                           struct xf_task *t,
                                           const struct xf_result_set *delta,
                                           struct xf_result_counts *added,
                                           struct xf_err *err);

/* ---- reads: store_read.c, store_read_rows.c; on the reader thread ---- */
#define XF_DO_DECL(name, member) \
    enum xf_code xf_do_##member(struct xf_work *w, struct xf_store_op *op, struct xf_err *err);
XF_STORE_READS(XF_DO_DECL)
#undef XF_DO_DECL

#endif
