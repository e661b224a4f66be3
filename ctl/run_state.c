/* run_state.c - where `xferctl run` keeps its queue. */
#include "ctl/run_state.h"

#include "common/base/file.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/job/spec.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { RUN_FILE_MAX = 64 * 1024 };

static char *below(const char *dir, const char *name)
{
    struct xf_buf b;

    xf_buf_init(&b, 0);
    xf_buf_putf(&b, "%s/%s", dir, name);
    return xf_buf_take(&b);
}

char *xf_run_state_path(const struct xf_run_state *s, const char *name)
{
    return below(s->dir, name);
}

/* Where directories of jobs lie when --state is not given; NULL: nowhere. */
static char *default_base(void)
{
    const char *base = getenv("XDG_STATE_HOME"); /* NOLINT(concurrency-mt-unsafe): at start */
    const char *home = getenv("HOME");           /* NOLINT(concurrency-mt-unsafe): at start */

    if (base != NULL && base[0] != '\0') {
        return below(base, "xfer/run");
    }
    return home != NULL && home[0] != '\0' ? below(home, ".local/state/xfer/run") : NULL;
}

static enum xf_code find_dir(struct xf_run_state *s, const char *state, struct xf_err *err)
{
    if (state != NULL) {
        s->dir = xf_xstrdup(state);
        return XF_OK;
    }
    XF_AUTO_FREE char *base = default_base();
    if (base == NULL) {
        return XF_FAIL(
            err, XF_E_CONFIG, "neither XDG_STATE_HOME nor HOME is set: give --state DIR");
    }
    s->is_default_dir = true;
    s->dir = below(base, s->hash);
    return XF_OK;
}

/* Before anything in it is read or written: two of the same command may start at once. */
static enum xf_code lock_dir(struct xf_run_state *s, struct xf_err *err)
{
    XF_AUTO_FREE char *path = below(s->dir, "lock");
    enum xf_code rc = xf_file_lock(path, &s->lock_fd, err);

    if (rc == XF_E_LOCKED) {
        return XF_FAIL(err,
                       XF_E_LOCKED,
                       "this job runs already in '%s': wait for that xferctl, or stop it",
                       s->dir);
    }
    return rc;
}

static enum xf_code write_file(const struct xf_run_state *s, bool ended, struct xf_err *err)
{
    XF_AUTO(xf_json) j = xf_json_object();
    XF_AUTO_FREE char *path = below(s->dir, "run.json");

    xf_json_set_c(j, "hash", s->hash);
    xf_json_set_u64(j, "run", s->count);
    xf_json_set_bytes(j, "file", xf_str_c(s->file));
    xf_json_set_bool(j, "ended", ended);
    XF_AUTO_FREE char *text = xf_json_dump(j, false);
    return xf_file_replace(path, xf_str_c(text), 0640, err);
}

static enum xf_code read_json(const char *path, struct xf_json **j, struct xf_err *err)
{
    XF_AUTO_BUF text = {0};

    xf_buf_init(&text, 0);
    XF_TRY(xf_file_read(path, RUN_FILE_MAX, &text, err));
    if (xf_json_parse(xf_buf_view(&text), j, err) != XF_OK) {
        err->code = XF_E_CONFIG;
        return XF_WRAP(
            err, "'%s' is damaged: give another --state DIR, or remove it to begin anew", path);
    }
    return XF_OK;
}

/* Which run of which job this directory is at; a directory of another job is refused. */
static enum xf_code read_file(struct xf_run_state *s, struct xf_err *err)
{
    XF_AUTO_FREE char *path = below(s->dir, "run.json");
    XF_AUTO(xf_json) j = NULL;

    s->count = 1;
    enum xf_code rc = read_json(path, &j, err);
    if (rc == XF_E_NOT_FOUND) {
        s->made_file = true;
        return write_file(s, false, err);
    }
    XF_TRY(rc);
    if (strcmp(xf_json_get_c(j, "hash", ""), s->hash) != 0) {
        return XF_FAIL(
            err,
            XF_E_CONFIG,
            "'%s' holds the queue of another job: finish that one, or give another --state DIR",
            s->dir);
    }
    s->count = xf_json_get_u64(j, "run", 1);
    return write_file(s, false, err); /* the file may have moved */
}

enum xf_code xf_run_state_open(struct xf_run_state *s,
                               const char *state,
                               const char *file,
                               const struct xf_job_spec *spec,
                               struct xf_err *err)
{
    XF_AUTO_FREE char *absolute = realpath(file, NULL);
    struct stat st;

    *s = (struct xf_run_state){.lock_fd = -1};
    s->file = xf_xstrdup(absolute != NULL ? absolute : file);
    xf_job_spec_hash(spec, s->hash);
    XF_TRY(find_dir(s, state, err));
    s->made_dir = stat(s->dir, &st) != 0 && errno == ENOENT;
    XF_TRY(xf_file_mkdirs(s->dir, 0700, err));
    XF_TRY(lock_dir(s, err));
    return read_file(s, err);
}

/* Is `name` below `base` an unfinished run of the same file? */
static bool is_older(const struct xf_run_state *s, const char *base, const char *name)
{
    XF_AUTO_FREE char *dir = below(base, name);
    XF_AUTO_FREE char *path = below(dir, "run.json");
    XF_AUTO(xf_json) j = NULL;
    struct xf_err err;

    return name[0] != '.' && strcmp(name, s->hash) != 0 && read_json(path, &j, &err) == XF_OK &&
           strcmp(xf_json_get_c(j, "file", ""), s->file) == 0 &&
           !xf_json_get_bool(j, "ended", true);
}

char *xf_run_state_older(const struct xf_run_state *s)
{
    XF_AUTO_FREE char *base = s->is_default_dir ? default_base() : NULL;
    DIR *d = base != NULL ? opendir(base) : NULL;
    char *found = NULL;

    if (d == NULL) {
        return NULL;
    }
    const struct dirent *e = NULL;
    while (found == NULL &&
           (e = readdir(d)) != NULL) { /* NOLINT(concurrency-mt-unsafe): d is ours alone */
        if (is_older(s, base, e->d_name)) {
            found = below(base, e->d_name);
        }
    }
    (void)closedir(d); /* was only read */
    return found;
}

enum xf_code xf_run_state_ended(struct xf_run_state *s, struct xf_err *err)
{
    s->count++;
    return write_file(s, true, err);
}

void xf_run_state_refused(struct xf_run_state *s)
{
    if (s->made_file) {
        XF_AUTO_FREE char *path = below(s->dir, "run.json");
        (void)unlink(path); /* a directory that stays is told by the next run */
    }
    if (s->made_dir && s->lock_fd >= 0) {
        xf_file_remove_tree(s->dir);
    }
}

void xf_run_state_close(struct xf_run_state *s)
{
    xf_auto_close(&s->lock_fd);
    xf_xfree(s->dir);
    xf_xfree(s->file);
}
