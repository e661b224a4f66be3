/*
 * plan.h - parts of a large object: sizes, counts, ranges. Pure arithmetic; any thread.
 *
 * Laws: parts cover an object once and in order; 1 to max_parts parts; each is min_part or more but
 * the last; all but the last are equal.
 */
#ifndef XF_S3_PLAN_H
#define XF_S3_PLAN_H

#include "common/base/err.h"
#include "common/base/str.h"

#include <stdint.h>

#define XF_PLAN_PARTS_MAX ((uint32_t)10000)
#define XF_PLAN_PART_MIN  ((uint64_t)5 << 20) /* 5 MiB */
#define XF_PLAN_PART_MAX  ((uint64_t)5 << 30) /* 5 GiB */
#define XF_PLAN_COPY_MAX  ((uint64_t)5 << 30) /* CopyObject and a single PUT, inclusive */

/* A service's limits; settings of an endpoint, since providers differ. */
struct xf_plan_limits {
    uint32_t max_parts;
    uint64_t min_part;
    uint64_t max_part;
    uint64_t max_copy; /* of one CopyObject, inclusive */
    uint64_t max_put;  /* of one PutObject, inclusive */
    uint64_t max_object;
};
extern const struct xf_plan_limits xf_plan_limits_s3;

struct xf_plan {
    uint64_t size;      /* of the object */
    uint64_t part_size; /* of all parts but the last */
    uint32_t n_parts;
    bool keeps_layout;   /* the source's multipart layout is kept: etags will be comparable */
    bool layout_guessed; /* ... its part size is a guess: unequal etags then prove nothing */
};

struct xf_plan_opts {
    uint64_t size;
    uint64_t part_size;       /* wanted; raised by doubling and clamped */
    struct xf_str etag;       /* of the source, quotes or not; may be empty */
    uint64_t first_part_size; /* of the source, by HEAD ?partNumber=1; 0 when unknown: usual sizes
                                 are tried */
    const struct xf_plan_limits *limits; /* NULL: S3's */
};

/**
 * Cut an object into parts.
 *
 * Errors: XF_E_TOO_LARGE  no legal plan exists; size, limit and rule are named.
 *         XF_E_INVAL      size 0 (an empty object is a plain PUT or copy).
 */
enum xf_code xf_plan_parts(const struct xf_plan_opts *o, struct xf_plan *out, struct xf_err *err);

/* Offset and length of part_no (from 1). */
void xf_plan_range(const struct xf_plan *plan, uint32_t part_no, uint64_t *offset, uint64_t *len);

/* One CopyObject (or one PUT) when the size allows it and is below the threshold; otherwise parts.
 */
bool xf_plan_is_single(uint64_t size, uint64_t threshold, uint64_t max_single);

/* N of an etag `...-N`, 0 for a plain one. Quotes and W/ do not matter. */
uint32_t xf_plan_etag_parts(struct xf_str etag);

/* Whether the unquoted etag has the form of an MD5: 32 hex digits, perhaps -N. */
bool xf_plan_etag_is_md5(struct xf_str etag);

/* Strip W/ and quotes (also &quot;). Gives a part of its argument. */
struct xf_str xf_plan_etag_bare(struct xf_str etag);

/* Equal after stripping, without regard to case. Empty ones are equal to nothing. */
bool xf_plan_etag_eq(struct xf_str a, struct xf_str b);

#define XF_PLAN_ETAG_LEN 48
/* The etag that S3 gives to n parts with these MD5s, without quotes. md5 holds 16 bytes a part. */
enum xf_code xf_plan_etag_of_parts(const unsigned char *md5,
                                   uint32_t n,
                                   char out[XF_PLAN_ETAG_LEN],
                                   struct xf_err *err);

#endif
