/*
 * store_rows.h - the rows of the store, in plain C. No SQLite here.
 *
 * Ids are positive and never reused. Times are wall clock in milliseconds; 0 means not yet. Strings
 * of a row belong to the operation that returned it.
 */
#ifndef XF_COORDINATOR_STORE_ROWS_H
#define XF_COORDINATOR_STORE_ROWS_H

#include "common/base/str.h"
#include "coordinator/store_types.h"
#include "proto/result.h"

struct xf_job_counters {
    uint64_t keys_returned; /* by the source's listing, before select */
    uint64_t list_requests;
    uint64_t listed; /* after select; = the next five + pending + in_flight, at every commit */
    uint64_t copied;
    uint64_t skipped;
    uint64_t failed;
    uint64_t vanished;
    uint64_t archived;
    uint64_t in_flight; /* read only: in leased tasks and not reported */
    uint64_t pending;   /* read only: the rest */
    uint64_t bytes_listed;
    uint64_t bytes_copied;
    uint64_t bytes_through;
    uint64_t retries;
    uint64_t throttled;
    uint64_t dropped; /* copied without one of their attributes */
};

struct xf_job_row {
    int64_t id;
    struct xf_str public_id; /* "j-..." */
    struct xf_str name;
    struct xf_str spec; /* migrate.toml; empty when not asked for */
    int priority;       /* 1 low to 9 high */
    enum xf_job_state state;
    enum xf_job_state stop; /* CANCELLED or FAILED while it is being stopped, else 0 */
    struct xf_str phase;
    struct xf_str reason; /* empty: none */
    int exit_code;        /* -1: none yet */
    int pass_no;          /* of the latest pass, from 1 */
    struct xf_job_counters n;
    uint32_t shards_open;
    uint32_t tasks_leased;
    uint32_t tasks_ready;
    uint32_t uploads_live; /* not ended, or to be aborted */
    uint64_t retryable;    /* open failures that are marked retryable */
    int64_t created_ms;
    int64_t started_ms;
    int64_t finished_ms;
};

struct xf_setting_row {
    int64_t job; /* 0: the fleet's */
    struct xf_str name;
    struct xf_str value;
};

struct xf_shard_row {
    int64_t id;
    int64_t job;
    int64_t pass;
    uint32_t source_no;
    struct xf_str lo;     /* first key of the range; empty: no bound */
    struct xf_str hi;     /* first key beyond it; empty: no bound */
    struct xf_str cursor; /* the lister's; empty: at the start */
    uint32_t generation;
};

/* A finished part. A part is kept once: a second report of the same number is dropped. */
struct xf_store_part {
    uint32_t part_no;       /* 1 to n_parts */
    struct xf_str etag;     /* as the service answered, without quotes */
    struct xf_str checksum; /* what Complete must repeat; may be empty */
    uint64_t through_bytes; /* moved through the agent for it */
};

struct xf_upload_row {
    int64_t id;
    int64_t job;
    int64_t pass;
    uint32_t source_no;
    struct xf_object object;
    enum xf_upload_state state;
    enum xf_outcome outcome;
    struct xf_str upload_id; /* empty: not known */
    struct xf_str digest;    /* of the source's attributes at the open; the engine's */
    uint32_t sum;            /* the algorithm of its checksum, likewise; 0: none */
    uint64_t part_size;
    uint32_t n_parts;
    uint32_t parts_done;
    int64_t intent_ms; /* when the first open task was leased; no upload of ours is older */
};

struct xf_leased_row {
    int64_t task;
    int64_t job;
    int64_t upload; /* 0: none */
    enum xf_task_kind kind;
    uint32_t attempt;
    uint32_t objects; /* not reported yet */
    struct xf_str agent;
    unsigned char instance[XF_STORE_INSTANCE_LEN];
};

struct xf_failure_row {
    int64_t id;
    int64_t job;
    int64_t pass;
    uint32_t source_no;
    struct xf_object object; /* attempts: all that were spent */
    struct xf_result result; /* code, http_status, s3_code, message, flags */
    enum xf_failure_state state;
    int64_t first_ms;
    int64_t last_ms;
};

struct xf_result_row {
    uint32_t source_no;
    struct xf_object object;
    struct xf_result result; /* pending when not ended */
};

struct xf_agent_row {
    struct xf_str id;
    struct xf_str version;
    struct xf_str host;
    struct xf_str reason;
    unsigned char instance[XF_STORE_INSTANCE_LEN];
    int64_t first_ms;
    int64_t last_ms;
};

struct xf_notice_row {
    int64_t id;
    int64_t job; /* 0: of no job */
    int64_t at_ms;
    struct xf_str code; /* a word */
    struct xf_str text;
};

struct xf_attempt_row {
    int64_t task;
    enum xf_task_kind kind;
    uint32_t attempt;
    struct xf_str agent;
    int64_t leased_ms;
    int64_t ended_ms; /* 0: still running */
    enum xf_how how;
};

#endif
