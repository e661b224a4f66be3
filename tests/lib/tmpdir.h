/*
 * tmpdir.h - a folder of a test's own, gone with everything in it when the test ends.
 *
 * Every function fails the running test when the file system refuses. One thread.
 */
#ifndef XF_TESTS_LIB_TMPDIR_H
#define XF_TESTS_LIB_TMPDIR_H

#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdbool.h>

struct xf_tmpdir;

/* A new empty folder below TMPDIR, or /tmp. XF_KEEP_TMP in the environment keeps it after the test.
 */
struct xf_tmpdir *xf_tmpdir_new(void);
void xf_tmpdir_free(struct xf_tmpdir *d);
XF_AUTO_DEFINE(xf_tmpdir, xf_tmpdir_free)

/* The folder's absolute path; valid until free. */
const char *xf_tmpdir_path(const struct xf_tmpdir *d);

/* Absolute path of `name` in it, which need not exist; owned by the folder, valid until free. */
const char *xf_tmpdir_file(struct xf_tmpdir *d, const char *name);

/* Write or replace a file; gives its path as above. */
const char *xf_tmpdir_write(struct xf_tmpdir *d, const char *name, struct xf_str content);

/* Append the whole of a file anywhere to `out`; false when it does not exist. */
bool xf_tmpdir_read(const char *path, struct xf_buf *out);

/* Remove a file or a folder with everything in it; absent is fine. */
void xf_tmpdir_remove(const char *path);

#endif
