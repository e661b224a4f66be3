/*
 * spec.h - a job as its migrate.toml says it: parsed, checked, complete with defaults.
 *
 * The TOML text is what is sent and stored; every program parses it with this module, so all mean
 * the same. A spec is immutable after the parse: threads may share it. Buckets, prefixes and keys
 * are bytes; nothing here normalises a path. No secret is in a spec: it names profiles and
 * environment variables.
 *
 * Every error names "FILE:LINE:COL". Unknown keys are errors; keys of later versions are refused as
 * not supported yet.
 */
#ifndef XF_JOB_SPEC_H
#define XF_JOB_SPEC_H

#include "common/base/conf.h"
#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"
#include "common/job/schedule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XF_JOB_URLS_MAX     100
#define XF_JOB_PART_MIN     (5ULL * 1024 * 1024)
#define XF_JOB_PART_MAX     (5ULL * 1024 * 1024 * 1024)
#define XF_JOB_KEY_MAX      1024 /* bytes of an S3 key */
#define XF_JOB_ATTEMPTS_MAX 1000

enum xf_job_mode { XF_JOB_MODE_AUTO, XF_JOB_MODE_SERVER, XF_JOB_MODE_RELAY };

enum xf_job_exists {
    XF_JOB_EXISTS_SKIP_SAME,
    XF_JOB_EXISTS_OVERWRITE,
    XF_JOB_EXISTS_SKIP,
    XF_JOB_EXISTS_FAIL
};

enum xf_job_tags { XF_JOB_TAGS_BEST_EFFORT, XF_JOB_TAGS_REQUIRED, XF_JOB_TAGS_NONE };

enum xf_job_verify {
    XF_JOB_VERIFY_ETAG,
    XF_JOB_VERIFY_NONE,
    XF_JOB_VERIFY_SIZE,
    XF_JOB_VERIFY_CHECKSUM,
    XF_JOB_VERIFY_FULL
};

enum xf_job_sse { XF_JOB_SSE_BUCKET, XF_JOB_SSE_S3, XF_JOB_SSE_KMS, XF_JOB_SSE_DSSE, XF_JOB_SSE_N };

enum xf_job_vanished { /* what an object gone since the listing does to the job's end */
                       XF_JOB_VANISHED_OK,
                       XF_JOB_VANISHED_FAIL
};

struct xf_json;

struct xf_job_url {
    struct xf_str text;   /* as written */
    struct xf_str bucket; /* 1 to 255 bytes, no '/' */
    struct xf_str prefix; /* all bytes after the bucket's '/'; may be empty or begin with '/' */
};

struct xf_job_side {
    const struct xf_job_url *urls;
    size_t n_urls; /* at least 1; the destination has as many as the source */
    struct xf_str
        region; /* empty: from the environment or profile (AWS), or us-east-1 (endpoint) */
    struct xf_str
        endpoint; /* empty: AWS; else scheme://host[:port][/base], lower case, no final '/' */
    bool is_path_style;
    int fips;              /* enum xf_conf_switch; unset: by each host's AWS_USE_FIPS_ENDPOINT */
    int dualstack;         /* likewise, AWS_USE_DUALSTACK_ENDPOINT */
    struct xf_str ca_file; /* on each host, beside its own CAs; empty: none */
    bool requester_pays;
    struct xf_str profile;        /* empty: the default chain */
    struct xf_str role_arn;       /* empty, or assumed with what profile or chain gives */
    struct xf_str external_id;    /* optional beside role_arn */
    struct xf_str access_key_env; /* empty or a variable's name; both or none */
    struct xf_str secret_key_env;
    struct xf_str session_token_env; /* optional beside the two */
    struct xf_str customer_key_env;  /* SSE-C: empty or the name of the variable with the key */

    /* of the destination only */
    struct xf_str storage_class;     /* empty keeps the source's */
    struct xf_conf_list storage_map; /* "FROM=TO" each; before storage_class */
    int acl;                         /* 0: none; else see xf_job_spec_acl() */
    int sse;                         /* enum xf_job_sse; the first: as the bucket is set */
    struct xf_str kms_key;           /* empty: the account's own */
};

struct xf_job_select {
    struct xf_conf_list include; /* none: everything */
    struct xf_conf_list exclude;
    uint64_t min_size; /* bytes, inclusive */
    uint64_t max_size; /* bytes, inclusive; INT64_MAX: no limit */
    struct xf_conf_when newer_than;
    struct xf_conf_when older_than;
};

struct xf_job_spec {
    int64_t format; /* 1 */
    struct xf_str name;
    int64_t priority; /* 1 low to 9 high */
    bool allow_empty; /* an empty source is not an error */
    int vanished;     /* enum xf_job_vanished */
    struct xf_job_side source;
    struct xf_job_side destination;
    struct xf_job_select select;
    int mode;                     /* enum xf_job_mode */
    uint64_t part_size;           /* XF_JOB_PART_MIN to XF_JOB_PART_MAX */
    uint64_t multipart_threshold; /* objects of this size or more go in parts */
    int if_exists;                /* enum xf_job_exists */
    bool metadata;
    int tags;                        /* enum xf_job_tags */
    bool object_lock;                /* retention and legal hold too */
    bool source_mtime;               /* when the source was written, as user metadata */
    int verify;                      /* enum xf_job_verify */
    struct xf_schedule bandwidth;    /* through all agents together */
    struct xf_schedule request_rate; /* likewise */
    int64_t in_flight;               /* requests per agent; 0: found by itself */
    int64_t attempts;                /* per object over all passes */
    struct xf_str report_path;       /* empty: none */
};

/**
 * Parse and check a job. `name` is the file's name for errors.
 * Errors: XF_E_CONFIG, XF_E_UNSUPPORTED; both end a program with exit 2.
 */
XF_MUST_CHECK enum xf_code xf_job_spec_parse(struct xf_str text,
                                             struct xf_str name,
                                             struct xf_job_spec **out,
                                             struct xf_err *err);
void xf_job_spec_free(struct xf_job_spec *s);
XF_AUTO_DEFINE(xf_job_spec, xf_job_spec_free)

/**
 * Can the destination's service read the source's bucket itself? One endpoint URL, or AWS in one
 * partition; an AWS side without a region counts as partition "aws".
 */
bool xf_job_spec_is_same_service(const struct xf_job_spec *s);

/**
 * Destination key of a source key: url's source prefix cut off, its destination prefix put before.
 * `url_idx` counts in source.urls; `key` starts with that url's prefix (asserted). `out` is emptied
 * first.
 *
 * Errors: XF_E_LIMIT  the destination key is empty or above XF_JOB_KEY_MAX bytes: this object
 * fails.
 */
XF_MUST_CHECK enum xf_code xf_job_spec_map_key(const struct xf_job_spec *s,
                                               size_t url_idx,
                                               struct xf_str key,
                                               struct xf_buf *out,
                                               struct xf_err *err);

/**
 * Does [select] want this object? `rel` is the key after its url's prefix.
 * start_ms: the job's start (Unix time), from which ages count back; the same in every pass.
 *
 * Globs are those of glob.h over the whole of `rel`. An exclude wins over an include. Sizes are
 * inclusive; newer_than takes mtime >= its moment, older_than mtime < its moment, so the two never
 * lose an object.
 */
bool xf_job_spec_selects(const struct xf_job_spec *s,
                         struct xf_str rel,
                         uint64_t size,
                         int64_t mtime_ms,
                         int64_t start_ms);

/** Values of x-amz-acl (empty: none), x-amz-server-side-encryption (empty: the bucket's). */
struct xf_str xf_job_spec_acl(const struct xf_job_spec *s);
struct xf_str xf_job_spec_sse(const struct xf_job_spec *s);

/** The class to write an object with whose own is `from` (empty: STANDARD); empty: send none. */
struct xf_str xf_job_spec_class(const struct xf_job_spec *s, struct xf_str from);

/** The canonical text: TOML of all that differs from the defaults. Parses to an equal spec. */
void xf_job_spec_put_canonical(const struct xf_job_spec *s, struct xf_buf *out);

/** Hexadecimal SHA-256 of the canonical text: equal jobs, equal hash. NUL-ended. */
void xf_job_spec_hash(const struct xf_job_spec *s, char out[65]);

/** One JSON object with every effective value, sections as objects. The caller's. */
struct xf_json *xf_job_spec_to_json(const struct xf_job_spec *s);

/** The commented migrate.toml of `xferctl generate`. It parses. */
void xf_job_spec_put_template(struct xf_buf *out);

/** Every key with its type, range, default and text. */
void xf_job_spec_put_help(struct xf_buf *out);

/** For people before a start, from `submit --dry-run`: what each url matches and how keys map, one
 * line each. */
void xf_job_spec_put_notes(const struct xf_job_spec *s, struct xf_buf *out);

#endif
