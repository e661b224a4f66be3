/* store_vfs.c - a shim over SQLite's default VFS; see the header. */
#include "tests/fault/coordinator/store_vfs.h"

#include "common/base/file.h"

#include <sqlite3.h>

#include <pthread.h>
#include <stdio.h>
#include <string.h>

struct shim_file {
    sqlite3_file base;
    sqlite3_file *real; /* lies behind this struct */
    const char *name;   /* SQLite's, as long as the file is open; NULL: a temporary one */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct vfs_plan now;
static unsigned seen;
static bool fired;
static uint64_t grown;
static bool durable;

void vfs_set(const struct vfs_plan *plan)
{
    XF_ASSERT(pthread_mutex_lock(&lock) == 0);
    memset(&now, 0, sizeof(now));
    if (plan != NULL) {
        now = *plan;
    }
    seen = 0;
    fired = false;
    grown = 0;
    XF_ASSERT(pthread_mutex_unlock(&lock) == 0);
}

bool vfs_fired(void)
{
    XF_ASSERT(pthread_mutex_lock(&lock) == 0);
    bool yes = fired;
    XF_ASSERT(pthread_mutex_unlock(&lock) == 0);
    return yes;
}

/* SQLITE_OK, or the code that this call is to fail with. */
static int decide(enum vfs_call call, int code, bool *is_short)
{
    int rc = SQLITE_OK;

    XF_ASSERT(pthread_mutex_lock(&lock) == 0);
    if ((now.calls & call) != 0 && now.nth != 0) {
        seen++;
        if (seen == now.nth || (now.is_sticky && seen > now.nth)) {
            fired = true;
            rc = now.is_full ? SQLITE_FULL : code;
        }
    }
    *is_short = now.is_short;
    XF_ASSERT(pthread_mutex_unlock(&lock) == 0);
    return rc;
}

/* May a file grow by that much? */
static bool has_room(uint64_t bytes)
{
    bool yes = true;

    XF_ASSERT(pthread_mutex_lock(&lock) == 0);
    if (now.room_bytes != 0) {
        yes = grown + bytes <= now.room_bytes;
        grown += yes ? bytes : 0;
        fired = fired || !yes;
    }
    XF_ASSERT(pthread_mutex_unlock(&lock) == 0);
    return yes;
}

static sqlite3_file *real_of(sqlite3_file *f)
{
    return ((struct shim_file *)f)->real;
}

static int shim_close(sqlite3_file *f)
{
    return real_of(f)->pMethods->xClose(real_of(f));
}

static int shim_read(sqlite3_file *f, void *p, int n, sqlite3_int64 at)
{
    bool is_short;
    int rc = decide(VFS_READ, SQLITE_IOERR_READ, &is_short);

    return rc != SQLITE_OK ? rc : real_of(f)->pMethods->xRead(real_of(f), p, n, at);
}

static int shim_write(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    sqlite3_file *real = real_of(f);
    sqlite3_int64 size = 0;
    bool is_short;
    int rc = decide(VFS_WRITE, SQLITE_IOERR_WRITE, &is_short);

    if (rc != SQLITE_OK) {
        if (is_short && n > 1) {
            (void)real->pMethods->xWrite(real, p, n / 2, at); /* it fails either way */
        }
        return rc;
    }
    rc = real->pMethods->xFileSize(real, &size);
    if (rc != SQLITE_OK) {
        return rc;
    }
    if (at + n > size && !has_room((uint64_t)(at + n - size))) {
        return SQLITE_FULL;
    }
    return real->pMethods->xWrite(real, p, n, at);
}

static int shim_truncate(sqlite3_file *f, sqlite3_int64 size)
{
    bool is_short;
    int rc = decide(VFS_TRUNCATE, SQLITE_IOERR_TRUNCATE, &is_short);

    return rc != SQLITE_OK ? rc : real_of(f)->pMethods->xTruncate(real_of(f), size);
}

void vfs_keep_durable(void)
{
    durable = true;
}

static void copy_durable(const char *name)
{
    char to[512];
    struct xf_err err;
    struct xf_buf all;

    xf_buf_init(&all, 0);
    XF_ASSERT(snprintf(to, sizeof(to), "%s.durable", name) < (int)sizeof(to));
    XF_ASSERT(xf_file_read(name, 64 * 1024 * 1024, &all, &err) == XF_OK);
    XF_ASSERT(xf_file_replace(to, xf_buf_view(&all), 0600, &err) == XF_OK);
    xf_buf_fini(&all);
}

static int shim_sync(sqlite3_file *f, int flags)
{
    bool is_short;
    int rc = decide(VFS_SYNC, SQLITE_IOERR_FSYNC, &is_short);

    rc = rc != SQLITE_OK ? rc : real_of(f)->pMethods->xSync(real_of(f), flags);
    if (rc == SQLITE_OK && durable && ((struct shim_file *)f)->name != NULL) {
        copy_durable(((struct shim_file *)f)->name);
    }
    return rc;
}

static int shim_file_size(sqlite3_file *f, sqlite3_int64 *size)
{
    return real_of(f)->pMethods->xFileSize(real_of(f), size);
}

static int shim_lock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xLock(real_of(f), level);
}

static int shim_unlock(sqlite3_file *f, int level)
{
    return real_of(f)->pMethods->xUnlock(real_of(f), level);
}

static int shim_reserved(sqlite3_file *f, int *out)
{
    return real_of(f)->pMethods->xCheckReservedLock(real_of(f), out);
}

static int shim_control(sqlite3_file *f, int op, void *arg)
{
    if (op == SQLITE_FCNTL_SIZE_HINT || op == SQLITE_FCNTL_CHUNK_SIZE) {
        return SQLITE_NOTFOUND; /* growth is counted in xWrite */
    }
    return real_of(f)->pMethods->xFileControl(real_of(f), op, arg);
}

static int shim_sector(sqlite3_file *f)
{
    return real_of(f)->pMethods->xSectorSize(real_of(f));
}

static int shim_traits(sqlite3_file *f)
{
    return real_of(f)->pMethods->xDeviceCharacteristics(real_of(f));
}

static int shim_shm_map(sqlite3_file *f, int no, int size, int extend, void volatile **out)
{
    return real_of(f)->pMethods->xShmMap(real_of(f), no, size, extend, out);
}

static int shim_shm_lock(sqlite3_file *f, int at, int n, int flags)
{
    return real_of(f)->pMethods->xShmLock(real_of(f), at, n, flags);
}

static void shim_shm_barrier(sqlite3_file *f)
{
    real_of(f)->pMethods->xShmBarrier(real_of(f));
}

static int shim_shm_unmap(sqlite3_file *f, int remove)
{
    return real_of(f)->pMethods->xShmUnmap(real_of(f), remove);
}

static const sqlite3_io_methods methods = {
    .iVersion = 2, /* no memory-mapped pages */
    .xClose = shim_close,
    .xRead = shim_read,
    .xWrite = shim_write,
    .xTruncate = shim_truncate,
    .xSync = shim_sync,
    .xFileSize = shim_file_size,
    .xLock = shim_lock,
    .xUnlock = shim_unlock,
    .xCheckReservedLock = shim_reserved,
    .xFileControl = shim_control,
    .xSectorSize = shim_sector,
    .xDeviceCharacteristics = shim_traits,
    .xShmMap = shim_shm_map,
    .xShmLock = shim_shm_lock,
    .xShmBarrier = shim_shm_barrier,
    .xShmUnmap = shim_shm_unmap,
};

static int shim_open(sqlite3_vfs *v, sqlite3_filename name, sqlite3_file *f, int flags, int *out)
{
    struct shim_file *s = (struct shim_file *)f;
    sqlite3_vfs *real = v->pAppData;
    bool is_short;
    int rc = decide(VFS_OPEN, SQLITE_CANTOPEN, &is_short);

    memset(s, 0, sizeof(*s));
    if (rc != SQLITE_OK) {
        return rc;
    }
    s->real = (sqlite3_file *)(s + 1);
    s->name = name;
    rc = real->xOpen(real, name, s->real, flags, out);
    s->base.pMethods = rc == SQLITE_OK ? &methods : NULL;
    return rc;
}

void vfs_register(void)
{
    static sqlite3_vfs shim;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);

    XF_ASSERT(real != NULL);
    shim = *real;
    shim.pNext = NULL;
    shim.zName = STORE_VFS_NAME;
    shim.szOsFile = (int)sizeof(struct shim_file) + real->szOsFile;
    shim.pAppData = real;
    shim.xOpen = shim_open;
    XF_ASSERT(sqlite3_vfs_register(&shim, 0) == SQLITE_OK);
}
