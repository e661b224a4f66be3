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
#define S_TASK_READY     "1"
#define S_TASK_LEASED    "2"
#define S_TASK_DONE      "3"
#define S_TASK_FAILED    "4"
#define S_TASK_WITHDRAWN "5"
#define S_KIND_BATCH     "1"
#define S_KIND_RECHECK   "2"
#define S_KIND_OPEN      "3"
#define S_KIND_PARTS     "4"
#define S_KIND_CLOSE     "5"
#define S_KIND_ABORT     "6"
#define S_UP_PLANNED     "1"
#define S_UP_CREATING    "2"
#define S_UP_OPEN        "3"
#define S_UP_CLOSING     "4"
#define S_UP_ABORTING    "5"
#define S_UP_DONE        "6"
#define S_UP_GONE        "7"
#define S_SHARD_OPEN     "1"
#define S_SHARD_DONE     "2"
#define S_FAIL_OPEN      "1"
#define S_FAIL_REQUEUED  "2"
#define S_JOB_RUNNING    "2"
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
