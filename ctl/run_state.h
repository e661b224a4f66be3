/*
 * run_state.h - the state directory of `xferctl run`: which job it belongs to, and whose it is now.
 *
 * It holds `queue` (the coordinator's data), `agent` (the agent's state), `lock`, and `run.json`
 * ({"hash", "run", "file", "ended"}): the job's hash, how often it was begun, the file it came
 * from, whether the latest run ended. Hash and count make the submit key, so a run that was killed
 * finds its own job again, and one that ended begins a new job.
 */
#ifndef XF_CTL_RUN_STATE_H
#define XF_CTL_RUN_STATE_H

#include "common/base/err.h"
#include "common/base/str.h"

struct xf_job_spec;

struct xf_run_state {
    char *dir;
    char *file; /* migrate.toml, absolute */
    char hash[65];
    uint64_t count; /* runs of this job in this directory, with the present one */
    int lock_fd;    /* -1: none */
    bool is_default_dir;
    bool made_dir;  /* by this process */
    bool made_file; /* run.json, likewise */
};

/**
 * Find, make and lock the directory of a job, and read what it is at.
 *
 * state  --state; NULL: one directory a job below $XDG_STATE_HOME or ~/.local/state
 * file   the job's file, as typed
 *
 * Errors: XF_E_LOCKED  another process runs this job; XF_E_CONFIG  the directory is another job's,
 * or damaged, or there is no place for one. Close it in every case.
 */
XF_MUST_CHECK enum xf_code xf_run_state_open(struct xf_run_state *s,
                                             const char *state,
                                             const char *file,
                                             const struct xf_job_spec *spec,
                                             struct xf_err *err);
/** Below the directory; the caller frees it. */
char *xf_run_state_path(const struct xf_run_state *s, const char *name);
/** The directory of an unfinished run of the same file with other contents, or NULL; caller's. */
char *xf_run_state_older(const struct xf_run_state *s);
/** The job has ended: the next run of the same file is a new job. */
XF_MUST_CHECK enum xf_code xf_run_state_ended(struct xf_run_state *s, struct xf_err *err);
/** No job was made: take away what this process made, so that the directory is nobody's. */
void xf_run_state_refused(struct xf_run_state *s);
/** Unlock and free. */
void xf_run_state_close(struct xf_run_state *s);

#endif
