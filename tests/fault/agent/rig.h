/*
 * rig.h - an engine of our own between two sides of an s3d, and what it told.
 *
 * Every function fails the running test when something is not as it must be. One thread.
 */
#ifndef XF_TESTS_FAULT_AGENT_RIG_H
#define XF_TESTS_FAULT_AGENT_RIG_H

#include "agent/engine.h"
#include "common/base/clock.h"
#include "common/base/json.h"
#include "tests/lib/proc.h"

enum { RIG_OBJECTS_MAX = 200, RIG_PARTS_MAX = 64, RIG_NOTICES_MAX = 8 };

struct rig_told { /* an outcome, strings copied */
    struct xf_result r;
    unsigned times;
    char etag[64];
    char source_etag[64];
    char message[XF_RESULT_MSG_MAX + 1];
};

struct rig {
    struct xf_proc *s3d;
    struct xf_proc *s3d2; /* the destination's own server; NULL: the same */
    char url[2][64];      /* http://127.0.0.1:PORT of source and destination */
    struct xf_loop *loop;
    struct xf_http *http;
    struct xf_engine *engine;
    struct xf_work_job *job;

    struct rig_told told[RIG_OBJECTS_MAX];
    struct rig_told upload; /* the outcome of an upload's step */
    struct xf_work_part parts[RIG_PARTS_MAX];
    uint32_t n_parts;
    struct xf_work_opened opened;
    char upload_id[256];
    char src_etag[64]; /* of the source as the open saw it */
    bool has_opened;
    struct xf_work_end end;
    bool has_ended;
    char notices[RIG_NOTICES_MAX][64];
    size_t n_notices;
    struct xf_err probe_err;
    bool has_probed;
    bool keep_work;        /* the work is not freed when it ended */
    struct xf_clock clock; /* the engine's: real, but for its wall time */
    int64_t wall_ahead_ms;
    struct xf_arena arena;
};

/*
 * Buckets src and dst at one s3d, or (two) at two. copy: lines of the [copy] and further sections
 * of migrate.toml. args: further arguments of the source's s3d, NULL at the end, or NULL.
 */
void rig_open(struct rig *rig, bool two, const char *copy, const char *const *args);
void rig_close(struct rig *rig);

/** POST /-/put with this JSON, to the source (0) or destination (1). */
void rig_put(struct rig *rig, int side, const char *json);
/** POST /-/faults, to both. */
void rig_faults(struct rig *rig, const char *json);
void rig_no_faults(struct rig *rig);
/** GET an admin page as JSON; the caller's. */
struct xf_json *rig_get(struct rig *rig, int side, const char *path);
/** How many requests of an operation the destination's server saw ("CopyObject"). */
uint64_t rig_count(struct rig *rig, int side, const char *op);
/** Requests of it that were answered with this status. */
uint64_t rig_count_status(struct rig *rig, int side, const char *op, const char *status);
/** Fails unless source and destination hold the same bytes (and attributes). */
void rig_must_be_equal(struct rig *rig, bool attributes);
/** Size of an object at the destination; UINT64_MAX when it is not there. */
uint64_t rig_dst_size(struct rig *rig, const char *key);
uint64_t rig_open_uploads(struct rig *rig);

/** A batch (or recheck) of every object of the source as it is now. */
struct xf_work *rig_batch(struct rig *rig, enum xf_task_kind kind, uint32_t attempt);
/** A step of the upload of the source's first object whose key starts with this. */
struct xf_work *
rig_step(struct rig *rig, enum xf_task_kind kind, const char *key, uint32_t attempt);
/** Start it and turn the loop until it ended; how it ended. */
enum xf_work_how rig_run(struct rig *rig, struct xf_work *w);
/** Turn the loop until cond says yes. */
void rig_turn_until(struct rig *rig, bool (*cond)(struct rig *rig));
/** Open, parts and close of a large object; how the last step ended. */
enum xf_work_how rig_upload(struct rig *rig, const char *key);
/** Index in the last batch of a key. */
const struct rig_told *rig_told_of(struct rig *rig, const struct xf_work *w, const char *key);

bool rig_has_notice(const struct rig *rig, const char *code);
/** How many of the first n objects have this outcome. */
unsigned rig_outcomes(const struct rig *rig, unsigned n, enum xf_outcome outcome);

#endif
