/*
 * tmpdir.c - mkdtemp, and a removal that does not follow symbolic links.
 */
#include "tests/lib/tmpdir.h"

#include "common/base/err.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FILES_MAX = 256, WALK_FDS = 16 };

struct xf_tmpdir {
    char *path;
    char *files[FILES_MAX]; /* what xf_tmpdir_file gave out */
    size_t n_files;
};

struct xf_tmpdir *xf_tmpdir_new(void)
{
    const char *base = getenv("TMPDIR");
    XF_AUTO_BUF path = {0};
    xf_buf_init(&path, 0);
    xf_buf_putf(&path, "%s/xfer-test-XXXXXX", base != NULL && base[0] == '/' ? base : "/tmp");
    if (mkdtemp(path.ptr) == NULL) {
        fail_msg("cannot make a folder '%s': %s", path.ptr, xf_errno_text(errno));
    }
    struct xf_tmpdir *d = xf_xcalloc(1, sizeof(*d));
    d->path = xf_buf_take(&path);
    return d;
}

void xf_tmpdir_free(struct xf_tmpdir *d)
{
    if (d == NULL) {
        return;
    }
    if (getenv("XF_KEEP_TMP") != NULL) {
        printf("kept '%s'\n", d->path);
    } else {
        xf_tmpdir_remove(d->path);
    }
    for (size_t i = 0; i < d->n_files; i++) {
        xf_xfree(d->files[i]);
    }
    xf_xfree(d->path);
    xf_xfree(d);
}

const char *xf_tmpdir_path(const struct xf_tmpdir *d)
{
    return d->path;
}

const char *xf_tmpdir_file(struct xf_tmpdir *d, const char *name)
{
    XF_AUTO_BUF path = {0};
    xf_buf_init(&path, 0);
    xf_buf_putf(&path, "%s/%s", d->path, name);
    for (size_t i = 0; i < d->n_files; i++) {
        if (strcmp(d->files[i], path.ptr) == 0) {
            return d->files[i];
        }
    }
    if (d->n_files == FILES_MAX) {
        fail_msg("more than %d files asked of one test folder", (int)FILES_MAX);
    }
    d->files[d->n_files] = xf_buf_take(&path);
    return d->files[d->n_files++];
}

const char *xf_tmpdir_write(struct xf_tmpdir *d, const char *name, struct xf_str content)
{
    const char *path = xf_tmpdir_file(d, name);
    FILE *f = fopen(path, "we");
    if (f == NULL) {
        fail_msg("cannot write '%s': %s", path, xf_errno_text(errno));
        return path;
    }
    size_t n = content.len == 0 ? 0 : fwrite(content.ptr, 1, content.len, f);
    if (fclose(f) != 0 || n != content.len) {
        fail_msg("cannot write '%s': %s", path, xf_errno_text(errno));
    }
    return path;
}

bool xf_tmpdir_read(const char *path, struct xf_buf *out)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) {
        if (errno != ENOENT) {
            fail_msg("cannot read '%s': %s", path, xf_errno_text(errno));
        }
        return false;
    }
    char chunk[8192];
    size_t n = 0;
    while ((n = fread(chunk, 1, sizeof(chunk), f)) > 0) {
        xf_buf_put_mem(out, chunk, n);
    }
    bool bad = ferror(f) != 0;
    if (fclose(f) != 0 || bad) {
        fail_msg("cannot read '%s'", path);
    }
    return true;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *where)
{
    (void)st;
    (void)type;
    (void)where; /* the callback's type is nftw's */
    return remove(path) == 0 || errno == ENOENT ? 0 : -1;
}

void xf_tmpdir_remove(const char *path)
{
    if (nftw(path, remove_one, WALK_FDS, FTW_DEPTH | FTW_PHYS) != 0 && errno != ENOENT) {
        fail_msg("cannot remove '%s': %s", path, xf_errno_text(errno));
    }
}
