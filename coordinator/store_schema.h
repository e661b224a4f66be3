/*
 * store_schema.h - the tables, by numbered migrations; inside the store only.
 *
 * The file's user_version is the number of the last migration that ran. Each runs in a transaction
 * of its own together with its number, so a crash leaves a whole schema of some version.
 */
#ifndef XF_COORDINATOR_STORE_SCHEMA_H
#define XF_COORDINATOR_STORE_SCHEMA_H

#include "coordinator/store_sql.h"

/* "xfer" as four bytes; says that a database is ours. */
#define XF_SCHEMA_APPLICATION_ID INT64_C(0x78666572)

/* States as SQL literals, so that partial indexes apply; equal to the enums (asserted in the .c).
 */
#define N_TASK_READY     1
#define N_TASK_LEASED    2
#define N_TASK_DONE      3
#define N_TASK_FAILED    4
#define N_TASK_WITHDRAWN 5
#define N_KIND_BATCH     1
#define N_KIND_RECHECK   2
#define N_KIND_OPEN      3
#define N_KIND_PARTS     4
#define N_KIND_CLOSE     5
#define N_KIND_ABORT     6
#define N_UP_PLANNED     1
#define N_UP_CREATING    2
#define N_UP_OPEN        3
#define N_UP_CLOSING     4
#define N_UP_ABORTING    5
#define N_UP_DONE        6
#define N_UP_GONE        7
#define N_SHARD_OPEN     1
#define N_SHARD_DONE     2
#define N_FAIL_OPEN      1
#define N_FAIL_REQUEUED  2
#define N_JOB_RUNNING    2
#define S_TASK_READY     XF_STR2(N_TASK_READY)
#define S_TASK_LEASED    XF_STR2(N_TASK_LEASED)
#define S_TASK_DONE      XF_STR2(N_TASK_DONE)
#define S_TASK_FAILED    XF_STR2(N_TASK_FAILED)
#define S_TASK_WITHDRAWN XF_STR2(N_TASK_WITHDRAWN)
#define S_KIND_BATCH     XF_STR2(N_KIND_BATCH)
#define S_KIND_RECHECK   XF_STR2(N_KIND_RECHECK)
#define S_KIND_OPEN      XF_STR2(N_KIND_OPEN)
#define S_KIND_PARTS     XF_STR2(N_KIND_PARTS)
#define S_KIND_CLOSE     XF_STR2(N_KIND_CLOSE)
#define S_KIND_ABORT     XF_STR2(N_KIND_ABORT)
#define S_UP_PLANNED     XF_STR2(N_UP_PLANNED)
#define S_UP_CREATING    XF_STR2(N_UP_CREATING)
#define S_UP_OPEN        XF_STR2(N_UP_OPEN)
#define S_UP_CLOSING     XF_STR2(N_UP_CLOSING)
#define S_UP_ABORTING    XF_STR2(N_UP_ABORTING)
#define S_UP_DONE        XF_STR2(N_UP_DONE)
#define S_UP_GONE        XF_STR2(N_UP_GONE)
#define S_SHARD_OPEN     XF_STR2(N_SHARD_OPEN)
#define S_SHARD_DONE     XF_STR2(N_SHARD_DONE)
#define S_FAIL_OPEN      XF_STR2(N_FAIL_OPEN)
#define S_FAIL_REQUEUED  XF_STR2(N_FAIL_REQUEUED)
#define S_JOB_RUNNING    XF_STR2(N_JOB_RUNNING)
#define S_JOB_LIVE       "(1,2,3)"

/** Version that this program writes. */
int xf_schema_version(void);

/**
 * Is the file ours and of a version we know? Bring it up to date.
 * Errors: XF_E_VERSION (newer), XF_E_CORRUPT (another program's), XF_E_DISK, XF_E_BUSY.
 */
XF_MUST_CHECK enum xf_code xf_schema_migrate(struct xf_sql *c, struct xf_err *err);
/** The same without writing; *version may be 0: nothing was made yet. */
XF_MUST_CHECK enum xf_code xf_schema_check(struct xf_sql *c, int *version, struct xf_err *err);

#endif
