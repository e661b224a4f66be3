/*
 * store_kit.h - a store in a folder of its own, and operations that wait for their end.
 *
 * Every function fails the running test when something is wrong that the test does not look at.
 * What the last operation returned stays in kit->last until the next one.
 */
#ifndef XF_TESTS_UNIT_COORDINATOR_STORE_KIT_H
#define XF_TESTS_UNIT_COORDINATOR_STORE_KIT_H

#include "coordinator/store.h"
#include "tests/lib/fakeclock.h"
#include "tests/lib/tmpdir.h"

struct kit {
    struct xf_tmpdir *tmp; /* NULL: the folder is somebody else's */
    char *dir;
    struct xf_fakeclock clock;
    struct xf_store_opts opts;
    struct xf_loop *loop;
    struct xf_store *store;
    struct xf_store_port *port;
    struct xf_store_op last;
    bool is_done;
};

/* A lease as the tests hold it: what a report needs. */
struct held {
    int64_t task;
    int64_t upload;
    enum xf_task_kind kind;
    uint32_t attempt;
    uint32_t n_objects;
    uint32_t first_part;
    uint32_t last_part;
    uint32_t n_parts; /* finished already */
    unsigned char instance[XF_STORE_INSTANCE_LEN];
};

void kit_init(struct kit *k, const char *dir /* NULL: a new one */);
enum xf_code kit_try_open(struct kit *k, struct xf_err *err);
void kit_open(struct kit *k);
/* Closes the store; the folder stays. */
void kit_close(struct kit *k);
void kit_reopen(struct kit *k);
void kit_fini(struct kit *k);

/* A test's store, opened before it and checked after it: cmocka's fixture functions. */
int kit_set_up(void **state);
int kit_tear_down(void **state);

/* A new operation; kit_do submits it and waits, at most 60 s. */
struct xf_store_op *kit_op(enum xf_op_kind kind);
enum xf_code kit_do(struct kit *k, struct xf_store_op *op);
/* Lets go of what kit->last holds. */
void kit_forget(struct kit *k);
/* kit_do that must give XF_OK. */
void kit_must(struct kit *k, struct xf_store_op *op);

/* A running job with n shards, whose first has the id kit_shard(). */
int64_t kit_job(struct kit *k, const char *key, uint32_t n_sources);
int64_t kit_shard(struct kit *k, int64_t job);
struct xf_store_op *kit_page_op(int64_t shard,
                                const char *cursor_old,
                                const char *cursor_new,
                                uint32_t n_small,
                                uint32_t n_large);
/* One page: a batch of n_small objects "<cursor_new>-<i>" of 10 bytes (none: no batch) and uploads.
 * Uploads are 100 bytes, to be cut in parts of 10. */
enum xf_code kit_page(struct kit *k,
                      int64_t shard,
                      const char *cursor_old,
                      const char *cursor_new,
                      uint32_t n_small,
                      uint32_t n_large);
/* Closes the shard's listing. */
void kit_last_page(struct kit *k, int64_t shard, const char *cursor);

struct xf_store_op *kit_lease_op(int64_t job, char instance, uint32_t kinds, uint32_t max);
/* Leases up to max tasks for agent "a-<instance>"; gives how many, their data in out. */
size_t kit_lease(
    struct kit *k, int64_t job, char instance, uint32_t kinds, uint32_t max, struct held *out);
/* Exactly one task of that kind. */
struct held kit_lease_one(struct kit *k, int64_t job, char instance, enum xf_task_kind kind);

struct xf_store_fence kit_fence(const struct held *h);
/* Report objects from..to (excluded) with that outcome. */
struct xf_store_op *kit_checkpoint_op(
    const struct held *h, uint32_t from, uint32_t to, enum xf_outcome outcome, bool is_done);
enum xf_code kit_checkpoint(struct kit *k,
                            const struct held *h,
                            uint32_t from,
                            uint32_t to,
                            enum xf_outcome outcome,
                            bool is_done);
struct xf_store_op *kit_parts_op(const struct held *h, uint32_t from, uint32_t to, bool is_done);
enum xf_code
kit_parts(struct kit *k, const struct held *h, uint32_t from, uint32_t to, bool is_done);
struct xf_store_op *kit_give_back_op(const struct held *h, enum xf_how how);
enum xf_code kit_give_back(struct kit *k, const struct held *h, enum xf_how how);
struct xf_store_op *kit_opened_op(const struct held *h, const char *upload_id, uint32_t n_parts);
enum xf_code
kit_opened(struct kit *k, const struct held *h, const char *upload_id, uint32_t n_parts);
struct xf_store_op *kit_end_op(const struct held *h, enum xf_outcome outcome, bool left_open);
enum xf_code kit_end(struct kit *k, const struct held *h, enum xf_outcome outcome, bool left_open);
enum xf_code kit_abort_done(struct kit *k, const struct held *h);
enum xf_code kit_stop(struct kit *k, int64_t job);
enum xf_code kit_finish(struct kit *k, int64_t job, enum xf_job_state end);
/* Requeues everything retryable below max attempts; gives the objects. */
uint64_t kit_retry(struct kit *k, int64_t job, uint32_t max_attempts);

struct xf_job_row kit_row(struct kit *k, int64_t job);
/* Every invariant, deeply; fails the test with the findings. */
void kit_check(struct kit *k);

#endif
