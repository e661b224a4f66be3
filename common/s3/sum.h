/*
 * sum.h - checksums as S3 keeps them: x-amz-checksum-*, of a whole object or over its parts.
 *
 * A full-object checksum is that of all bytes, whatever the parts; a composite one (`-N` in its
 * text) is a digest over the parts' digests and says something only to the same layout. Values are
 * plain data; a running sum belongs to one owner.
 */
#ifndef XF_S3_SUM_H
#define XF_S3_SUM_H

#include "common/base/hash.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stdint.h>

/* The numbers are stored and sent: append only. */
enum xf_sum_alg {
    XF_SUM_NONE = 0,
    XF_SUM_CRC64NVME,
    XF_SUM_CRC32C,
    XF_SUM_CRC32,
    XF_SUM_SHA256,
    XF_SUM_MD5, /* of etags; no x-amz-checksum of ours */
    XF_SUM_ALG_N
};

enum { XF_SUM_LEN_MAX = 32 };

struct xf_sum { /* all zero: not known */
    enum xf_sum_alg alg;
    bool is_composite;
    unsigned char raw[XF_SUM_LEN_MAX]; /* big endian, xf_sum_len() bytes */
};

size_t xf_sum_len(enum xf_sum_alg alg);
/** "CRC64NVME", as in x-amz-checksum-algorithm. */
const char *xf_sum_name(enum xf_sum_alg alg);
/** "x-amz-checksum-crc64nvme"; NULL for those without one. */
const char *xf_sum_header(enum xf_sum_alg alg);
/** By its name in either case; XF_SUM_NONE for what is not known. */
enum xf_sum_alg xf_sum_by_name(struct xf_str name);
/** Do sums of pieces combine to that of the whole? Only such are full-object ones of uploads. */
bool xf_sum_is_crc(enum xf_sum_alg alg);

/** Of a header's value: base64, `-N` behind it for a composite one. False: *out is not known. */
bool xf_sum_parse(enum xf_sum_alg alg, struct xf_str text, struct xf_sum *out);
/** Append the base64. */
void xf_sum_text(const struct xf_sum *sum, struct xf_buf *out);
/** From raw bytes of the right length; false: *out is not known. */
bool xf_sum_load(enum xf_sum_alg alg, struct xf_str raw, struct xf_sum *out);

/** Are both full-object sums by one algorithm? Then equal content has equal sums. */
bool xf_sum_is_comparable(const struct xf_sum *a, const struct xf_sum *b);
/** Comparable and the same. */
bool xf_sum_eq(const struct xf_sum *a, const struct xf_sum *b);

/** The sum of these bytes. */
void xf_sum_of(enum xf_sum_alg alg, const void *p, size_t len, struct xf_sum *out);
/** sum becomes that of its own bytes followed by `next_len` bytes with sum `next`; CRCs only. */
void xf_sum_append(struct xf_sum *sum, const struct xf_sum *next, uint64_t next_len);

/* A sum in the making; all zero is one by XF_SUM_NONE, which takes bytes and gives nothing. */
struct xf_summing {
    enum xf_sum_alg alg;
    uint64_t crc;
    struct xf_hash *hash;
};

/** Begin (again) by this algorithm. */
void xf_summing_begin(struct xf_summing *s, enum xf_sum_alg alg);
void xf_summing_add(struct xf_summing *s, const void *p, size_t len);
/** Begin anew before it is used further. */
void xf_summing_end(struct xf_summing *s, struct xf_sum *out);
void xf_summing_fini(struct xf_summing *s);

#endif
