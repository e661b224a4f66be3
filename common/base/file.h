/*
 * file.h - small local files: capped read, atomic replace, lock, directories.
 */
#ifndef XF_BASE_FILE_H
#define XF_BASE_FILE_H

#include "common/base/err.h"
#include "common/base/str.h"

/** Whole file into `out`. XF_E_LIMIT above max bytes; XF_E_NOT_FOUND; XF_E_IO. */
XF_MUST_CHECK enum xf_code
xf_file_read(const char *path, size_t max, struct xf_buf *out, struct xf_err *err);
/** Temporary file beside it, fsync, rename, fsync of the directory. */
XF_MUST_CHECK enum xf_code
xf_file_replace(const char *path, struct xf_str data, unsigned mode, struct xf_err *err);
/** mkdir -p. */
XF_MUST_CHECK enum xf_code xf_file_mkdirs(const char *path, unsigned mode, struct xf_err *err);
/** rm -rf, within one file system, following no link; what cannot be removed stays. */
void xf_file_remove_tree(const char *path);
/**
 * Create or open `path` and lock it exclusively without waiting (open file description lock: dies
 * with the process). XF_E_LOCKED when somebody holds it. The caller closes *fd to unlock.
 */
XF_MUST_CHECK enum xf_code xf_file_lock(const char *path, int *fd, struct xf_err *err);
/** Bytes free for us on the file system of `path`. */
XF_MUST_CHECK enum xf_code xf_file_free_bytes(const char *path, uint64_t *out, struct xf_err *err);
/** Write all of it, whatever write(2) takes at a time. */
XF_MUST_CHECK enum xf_code
xf_file_write_all(int fd, struct xf_str data, const char *what, struct xf_err *err);

/** As many open descriptors as the system lets this process have; it goes on with what it gets. */
void xf_file_raise_descriptors(void);

#endif
