/*
 * verify.h - what etags prove. Pure; any thread.
 *
 * An etag is an MD5 of the bytes only for objects in one part without SSE-KMS or SSE-C; with `-N`
 * it is an MD5 over the parts' MD5s and depends on the layout. So equal ones prove equal content,
 * and different ones prove a difference only when both are plain MD5s. Weak marks, quotes and the
 * case of hex digits do not matter.
 */
#ifndef XF_AGENT_VERIFY_H
#define XF_AGENT_VERIFY_H

#include "common/base/str.h"

#include <stdbool.h>
#include <stdint.h>

struct xf_s3_attrs;
struct xf_sum;

enum xf_verify {
    XF_VERIFY_SAME,
    XF_VERIFY_DIFFERENT,
    XF_VERIFY_UNKNOWN /* cannot be compared */
};

struct xf_verify_etag {
    struct xf_str etag; /* with or without quotes */
    bool is_opaque;     /* known not to be an MD5 (SSE-KMS, SSE-C) */
};

/** Is it 32 hex digits without -N? `raw`, when not NULL, gets the 16 bytes. */
bool xf_verify_plain_md5(struct xf_str etag, unsigned char *raw);

/** Compare two etags of objects of the same size. */
enum xf_verify xf_verify_etags(struct xf_verify_etag a, struct xf_verify_etag b);

/** The etag that a server gave for bytes with this MD5 (16 bytes). */
enum xf_verify xf_verify_md5(const unsigned char *md5, struct xf_verify_etag got);

/** The checksum that a service tells, beside another of the same bytes. */
enum xf_verify xf_verify_sums(const struct xf_sum *a, const struct xf_sum *b);

/** Is an etag of an object with these attributes (NULL: not known) no MD5 for sure? */
bool xf_verify_is_opaque(const struct xf_s3_attrs *attrs);

/** The etag of an upload whose parts had these etags, in order; false when one is no MD5. */
struct xf_verify_parts; /* opaque: a running MD5 over the parts' */
struct xf_verify_parts *xf_verify_parts_new(void);
void xf_verify_parts_free(struct xf_verify_parts *v);
void xf_verify_parts_add(struct xf_verify_parts *v, struct xf_str part_etag);
/** Up to 64 bytes with a NUL. False when it cannot be told: a part's etag was no MD5, or none came.
 */
bool xf_verify_parts_etag(struct xf_verify_parts *v, char out[64]);

/* What a job remembers of a destination object beside the one to be copied. */
struct xf_verify_side {
    struct xf_verify_etag etag;
    uint64_t size;
    int64_t mtime_ms; /* 0: unknown */
};

/**
 * For `if_exists = "skip-same"`: may the destination be taken for a copy of the source?
 *
 * Equal sizes and etags that prove it; or equal sizes, etags that cannot be compared, and a
 * destination written after the source (*by_size is set then).
 */
bool xf_verify_is_copy(const struct xf_verify_side *source,
                       const struct xf_verify_side *dest,
                       bool *by_size);

#endif
