/*
 * manifest.h - the objects of one batch, as stored and as sent.
 *
 * Up to XF_MANIFEST_MAX objects of one source, in the order they were added. Keys are any bytes and
 * share prefixes with their neighbour; etags take 16 bytes. The bytes are a format of their own,
 * version 1, the same in the store (compressed there) and in messages. The decoder trusts nothing:
 * every count and length has a cap below.
 * Threads: no state outside the caller's structures.
 */
#ifndef XF_PROTO_MANIFEST_H
#define XF_PROTO_MANIFEST_H

#include "common/base/arena.h"
#include "common/base/err.h"
#include "common/base/str.h"

enum {
    XF_MANIFEST_MAX = 1000,                  /* objects */
    XF_MANIFEST_BYTES_MAX = 4 * 1024 * 1024, /* encoded */
    XF_OBJECT_KEY_MAX = 2048,                /* S3 says 1024; some servers take more */
    XF_OBJECT_CLASS_MAX = 64,
    XF_OBJECT_VERSION_MAX = 1024,
    XF_OBJECT_ATTEMPTS_MAX = 1000000,
    XF_SOURCE_NO_MAX = 65535
};

struct xf_object {
    struct xf_str key; /* bytes; at least 1 */
    uint64_t size;
    struct xf_str etag;          /* as listed, without quotes; may be empty */
    int64_t mtime_ms;            /* wall clock of the server; 0: unknown */
    struct xf_str storage_class; /* as listed; may be empty */
    struct xf_str version_id;    /* empty: the current one */
    uint32_t attempts;           /* spent on it so far, over all passes */
    bool is_left; /* a failed try of this job stored what the destination has: no proof of it */
};

/* ---- writing ---- */

struct xf_manifest_enc {
    struct xf_buf body;
    struct xf_buf last_key;
    struct xf_buf classes; /* the storage classes met so far, packed */
    uint32_t source_no;
    uint32_t n_objects;
    int64_t last_mtime_ms;
    uint64_t size_bytes; /* of the objects added */
};

/** source_no: which url of the job, from 0. */
void xf_manifest_enc_init(struct xf_manifest_enc *e, uint32_t source_no);
void xf_manifest_enc_fini(struct xf_manifest_enc *e);
/** Empty again, for the next batch; keeps memory. */
void xf_manifest_enc_reset(struct xf_manifest_enc *e, uint32_t source_no);

/**
 * Add one object; the strings are copied.
 *
 * Errors: XF_E_LIMIT  full: finish this one and begin another; nothing was added.
 *         XF_E_INVAL  a field is above its cap or the key is empty; nothing was added.
 */
XF_MUST_CHECK enum xf_code
xf_manifest_add(struct xf_manifest_enc *e, const struct xf_object *o, struct xf_err *err);

/** Append the finished bytes to `out` (whose cap is at least XF_MANIFEST_BYTES_MAX). */
void xf_manifest_finish(const struct xf_manifest_enc *e, struct xf_buf *out);

/* ---- reading ---- */

struct xf_manifest {
    uint32_t source_no;
    uint32_t n;
    struct xf_object *objects; /* n of them; every string lives in the arena */
    uint64_t size_bytes;       /* sum of the sizes; stops at UINT64_MAX */
    struct xf_arena arena;
};

/**
 * Decode all of `bytes`. The caller frees with xf_manifest_fini(); on an error `out` is empty.
 *
 * Errors: XF_E_PROTO  truncated, trailing bytes, above a cap, or another version.
 */
XF_MUST_CHECK enum xf_code
xf_manifest_decode(struct xf_str bytes, struct xf_manifest *out, struct xf_err *err);
void xf_manifest_fini(struct xf_manifest *m);
#define XF_AUTO_MANIFEST __attribute__((cleanup(xf_manifest_fini))) struct xf_manifest

#endif
