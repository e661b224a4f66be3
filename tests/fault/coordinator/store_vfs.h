/*
 * store_vfs.h - a file system layer for SQLite that fails when told: the n-th call, or a full disk.
 *
 * It passes everything on to the system's own layer until then. One plan a process; any thread may
 * call through it.
 */
#ifndef XF_TESTS_FAULT_COORDINATOR_STORE_VFS_H
#define XF_TESTS_FAULT_COORDINATOR_STORE_VFS_H

#include <stdbool.h>
#include <stdint.h>

#define STORE_VFS_NAME "xf-fault"

enum vfs_call { VFS_OPEN = 1, VFS_WRITE = 2, VFS_SYNC = 4, VFS_TRUNCATE = 8, VFS_READ = 16 };

struct vfs_plan {
    unsigned calls;      /* VFS_* that count */
    unsigned nth;        /* fails at the nth of them, from 1; 0: never */
    bool is_sticky;      /* and at every one after it */
    bool is_short;       /* a write does half of its work first */
    bool is_full;        /* says SQLITE_FULL instead of an input/output error */
    uint64_t room_bytes; /* files may grow by so much in all, then the disk is full; 0: no limit */
};

/* Make it known to SQLite under STORE_VFS_NAME. */
void vfs_register(void);
/* Start a plan; NULL: everything works again. */
void vfs_set(const struct vfs_plan *plan);
/* From now on every sync copies the file to "<file>.durable": what a power cut would leave. */
void vfs_keep_durable(void);
/* Did a call fail since then? */
bool vfs_fired(void);

#endif
