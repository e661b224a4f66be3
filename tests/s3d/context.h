/*
 * context.h - the options of a server and the state that its requests share.
 */
#ifndef XF_TESTS_S3D_CONTEXT_H
#define XF_TESTS_S3D_CONTEXT_H

#include "tests/s3d/auth.h"
#include "tests/s3d/counters.h"
#include "tests/s3d/fault.h"
#include "tests/s3d/limits.h"
#include "tests/s3d/store.h"

enum { S3D_THREADS_MAX = 64, S3D_TEXTS_MAX = 64 };

struct s3d_opts {
    const char *listen; /* ADDR:PORT */
    const char *domain; /* NULL: path style only */
    const char *region; /* NULL: any */
    unsigned threads;
    int ready_fd; /* -1: none */
    bool no_auth;
    bool discard;
    bool complete_idempotent;
    bool quiet;
    uint64_t seed;
    uint64_t true_etag_max;
    uint64_t max_object; /* larger ones are refused */
    int64_t clock_offset_ms;
    uint64_t log_requests;
    const char *latency;
    const char *prefix_rps;
    const char *copy_rate;
    const char *fault_rate;
    /* repeated ones, in order; borrowed */
    const char *keys[S3D_TEXTS_MAX];
    size_t n_keys;
    const char *buckets[S3D_TEXTS_MAX];
    size_t n_buckets;
    const char *synths[S3D_TEXTS_MAX];
    size_t n_synths;
    const char *objects[S3D_TEXTS_MAX];
    size_t n_objects;
};

/* What requests share; every member may be used by any thread. */
struct s3d_server {
    struct s3d_opts opts;
    struct s3d_store *store;
    struct s3d_keys *keys;
    struct s3d_faults *faults;
    struct s3d_limits *limits;
    struct s3d_counters *counters;
    struct s3d_reqlog *reqlog; /* NULL: off */
    struct s3d_threads *threads;
    pthread_mutex_t jobs_lock; /* of comparisons under way, see admin_diff.c */
    pthread_cond_t jobs_done;
    size_t jobs;
    uint16_t port;
    char address[64];
};

/** The server's wall clock. */
static inline int64_t s3d_server_wall_ms(const struct s3d_server *s, int64_t wall_ms)
{
    return wall_ms + s->opts.clock_offset_ms;
}

#endif
