/* file.c - local files; every write is checked, every rename is made durable. */
#include "common/base/file.h"

#include "common/base/mem.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ENOSPC, EDQUOT and EIO mean the disk; everything else is told as it is. */
static enum xf_code io_code(int errnum)
{
    return errnum == ENOSPC || errnum == EDQUOT || errnum == EIO || errnum == EROFS ? XF_E_DISK
                                                                                    : XF_E_IO;
}

static enum xf_code fail(struct xf_err *err, const char *what, const char *path, int errnum)
{
    return XF_FAIL_SUB(
        err, io_code(errnum), errnum, "cannot %s '%s': %s", what, path, xf_errno_text(errnum));
}

enum xf_code xf_file_read(const char *path, size_t max, struct xf_buf *out, struct xf_err *err)
{
    XF_AUTO_FD int fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        if (errno == ENOENT) {
            return XF_FAIL_SUB(err, XF_E_NOT_FOUND, ENOENT, "cannot read '%s': no such file", path);
        }
        return fail(err, "read", path, errno);
    }
    for (;;) {
        char *to = xf_buf_reserve(out, 64UL * 1024);
        if (to == NULL || out->len > max) {
            return XF_FAIL(err, XF_E_LIMIT, "cannot read '%s': larger than %zu bytes", path, max);
        }
        ssize_t n = read(fd, to, 64UL * 1024);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail(err, "read", path, errno);
        }
        if (n == 0) {
            break;
        }
        out->len += (size_t)n;
        out->ptr[out->len] = '\0';
    }
    if (out->len > max) {
        return XF_FAIL(err, XF_E_LIMIT, "cannot read '%s': larger than %zu bytes", path, max);
    }
    return XF_OK;
}

enum xf_code xf_file_write_all(int fd, struct xf_str data, const char *what, struct xf_err *err)
{
    while (data.len > 0) {
        ssize_t n = write(fd, data.ptr, data.len);
        if (n < 0 && errno == EINTR) {
            continue;
        }
        if (n < 0) {
            return fail(err, "write", what, errno);
        }
        data = xf_str_sub(data, (size_t)n, data.len);
    }
    return XF_OK;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st;
    (void)kind;
    (void)at;
    (void)remove(path); /* the caller lives with what stays */
    return 0;
}

void xf_file_remove_tree(const char *path)
{
    enum { DESCRIPTORS = 16 };

    /* likewise. NOLINTNEXTLINE(concurrency-mt-unsafe): only FTW_CHDIR would make it so */
    (void)nftw(path, remove_one, DESCRIPTORS, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static enum xf_code sync_dir_of(const char *path, struct xf_err *err)
{
    const char *slash = strrchr(path, '/');
    XF_AUTO_FREE char *dir = slash == NULL   ? xf_xstrdup(".")
                             : slash == path ? xf_xstrdup("/")
                                             : xf_xmemdup0(path, (size_t)(slash - path));
    XF_AUTO_FD int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    if (fd < 0 || fsync(fd) != 0) {
        return fail(err, "sync", dir, errno);
    }
    return XF_OK;
}

static enum xf_code
write_new(const char *path, struct xf_str data, unsigned mode, struct xf_err *err)
{
    XF_AUTO_FD int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

    if (fd < 0) {
        return fail(err, "create", path, errno);
    }
    XF_TRY(xf_file_write_all(fd, data, path, err));
    if (fsync(fd) != 0) {
        return fail(err, "sync", path, errno);
    }
    return XF_OK;
}

enum xf_code
xf_file_replace(const char *path, struct xf_str data, unsigned mode, struct xf_err *err)
{
    struct xf_buf tmp;

    xf_buf_init(&tmp, 0);
    xf_buf_put_c(&tmp, path);
    xf_buf_put_c(&tmp, ".new");
    XF_AUTO_FREE char *tmp_path = xf_buf_take(&tmp);
    enum xf_code rc = write_new(tmp_path, data, mode, err);
    if (rc == XF_OK && rename(tmp_path, path) != 0) {
        rc = fail(err, "replace", path, errno);
    }
    if (rc != XF_OK) {
        (void)unlink(tmp_path); /* the first error is the one to tell */
        return rc;
    }
    return sync_dir_of(path, err);
}

enum xf_code xf_file_mkdirs(const char *path, unsigned mode, struct xf_err *err)
{
    XF_AUTO_FREE char *p = xf_xstrdup(path);

    for (char *at = p + 1; p[0] != '\0'; at++) {
        if (*at != '/' && *at != '\0') {
            continue;
        }
        bool end = *at == '\0';
        *at = '\0';
        if (mkdir(p, mode) != 0 && errno != EEXIST) {
            return fail(err, "make directory", p, errno);
        }
        if (end) {
            break;
        }
        *at = '/';
    }
    struct stat st;
    if (stat(path, &st) != 0) {
        return fail(err, "look at", path, errno);
    }
    if (!S_ISDIR(st.st_mode)) {
        return XF_FAIL_SUB(err, XF_E_IO, ENOTDIR, "'%s' is not a directory", path);
    }
    return XF_OK;
}

enum xf_code xf_file_lock(const char *path, int *fd, struct xf_err *err)
{
    XF_AUTO_FD int lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0640);

    if (lock < 0) {
        return fail(err, "open", path, errno);
    }
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(lock, F_OFD_SETLK, &whole) != 0) {
        if (errno == EAGAIN || errno == EACCES) {
            return XF_FAIL_SUB(err, XF_E_LOCKED, errno, "'%s' is locked by another process", path);
        }
        return fail(err, "lock", path, errno);
    }
    *fd = lock;
    lock = -1;
    return XF_OK;
}

enum xf_code xf_file_free_bytes(const char *path, uint64_t *out, struct xf_err *err)
{
    struct statvfs vfs;

    if (statvfs(path, &vfs) != 0) {
        return fail(err, "look at", path, errno);
    }
    *out = (uint64_t)vfs.f_bavail * (uint64_t)vfs.f_frsize;
    return XF_OK;
}

void xf_file_raise_descriptors(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit); /* the old limit stays */
    }
}
