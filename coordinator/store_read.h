/*
 * store_read.h - reads: pages of rows from a second connection, each in one short transaction.
 *
 * A page sees one commit and never holds the log back. The next page starts after `next`; `more`
 * says whether there may be one. Limits of 0 mean the read's default, and each has a cap.
 */
#ifndef XF_COORDINATOR_STORE_READ_H
#define XF_COORDINATOR_STORE_READ_H

#include "coordinator/store_rows.h"

enum { XF_STORE_PAGE_DEFAULT = 200, XF_STORE_PAGE_MAX = 1000 };

#define XF_STORE_READS(X)           \
    X(READ_JOBS, read_jobs)         \
    X(READ_JOB, read_job)           \
    X(READ_FAILURES, read_failures) \
    X(READ_RESULTS, read_results)   \
    X(READ_UPLOADS, read_uploads)   \
    X(READ_AGENTS, read_agents)     \
    X(READ_NOTICES, read_notices)   \
    X(READ_ATTEMPTS, read_attempts) \
    X(READ_RECOVER, read_recover)

enum xf_jobs_which { XF_JOBS_ALL = 0, XF_JOBS_LIVE /* queued, running, paused */, XF_JOBS_ENDED };

/* By id, newest first; after: 0 or the last id seen. Ended ones by their end, and no second page.
 */
struct xf_in_read_jobs {
    int64_t after;
    uint32_t limit;
    enum xf_jobs_which which;
};
struct xf_out_read_jobs {
    struct xf_job_row *rows;
    size_t n;
    bool more;
};

/* One job by either id; XF_E_NOT_FOUND. */
struct xf_in_read_job {
    int64_t job;             /* 0: by public_id */
    struct xf_str public_id; /* all of it, or a beginning that is the only one of its kind */
    bool with_spec;
};
struct xf_out_read_job {
    struct xf_job_row row;
};

/* Pages of a job's rows, by id ascending. */
struct xf_in_read_page {
    int64_t job;   /* notices: 0 for those of no job */
    int64_t after; /* 0, or the last page's `next` */
    uint32_t limit;
};
struct xf_out_read_failures { /* those of state open */
    struct xf_failure_row *rows;
    size_t n;
    int64_t next;
    bool more;
};
struct xf_out_read_uploads { /* not ended, or being aborted */
    struct xf_upload_row *rows;
    size_t n;
    int64_t next;
    bool more;
};
struct xf_out_read_notices {
    struct xf_notice_row *rows;
    size_t n;
    int64_t next;
    bool more;
};
/* The history of leases, of tasks that were leased more than once; the last 100 of each. */
struct xf_out_read_attempts {
    struct xf_attempt_row *rows;
    size_t n;
    int64_t next; /* whole tasks only */
    bool more;
};

/* Every object of a job with what became of it: first batches, then uploads, a page a batch. An
 * object that was tried again in a later pass is given once, by that pass. */
struct xf_in_read_results {
    int64_t job;
    bool uploads;  /* from the last page */
    int64_t after; /* likewise */
};
struct xf_out_read_results {
    struct xf_result_row *rows; /* at most XF_MANIFEST_MAX; may be none though `more` */
    size_t n;
    bool next_uploads;
    int64_t next;
    bool more;
};

struct xf_out_read_agents {
    struct xf_agent_row *rows;
    size_t n;
};

/* What a coordinator needs at its start: shards to list on with, and who holds what. */
struct xf_out_read_recover {
    struct xf_job_row *jobs; /* not ended */
    size_t n_jobs;
    struct xf_shard_row *shards; /* open */
    size_t n_shards;
    struct xf_leased_row *leased;
    size_t n_leased;
    struct xf_setting_row *settings; /* of those jobs, and the fleet's */
    size_t n_settings;
};

#endif
