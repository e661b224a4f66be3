/*
 * engine_read.h - the last word on a copy: what the job's [verify] mode wants beside etags.
 *
 * "size" looks at the destination once more. "checksum" compares what both services tell, as
 * checksums or as etags that are MD5s; where that cannot be compared the destination is read, and
 * the source as well when nothing says what its bytes sum to. "full" reads both, the source perhaps
 * only when it was relayed. Only engine*.c include it.
 */
#ifndef XF_AGENT_ENGINE_READ_H
#define XF_AGENT_ENGINE_READ_H

#include "agent/engine_int.h"

/* What still has to be asked before an op may say "copied". */
enum xf_proof {
    XF_PROOF_DONE,
    XF_PROOF_HEAD_DST,
    XF_PROOF_READ_SRC, /* into op->sum, which is not known */
    XF_PROOF_READ_DST
};

/**
 * level: what is proved so far; raised to what the job's mode counts it for.
 *
 * op->sum is of the source's bytes, when it is known; afterwards it is when READ_DST is wanted.
 */
enum xf_proof xf_read_want(struct xf_op *op, enum xf_level *level);

/** Start to read the whole object of a side, pinned to the etag known of it. */
struct xf_s3_req *xf_read_start(struct xf_op *op, enum xf_side side);
/** The read ended well: what its bytes sum to; XF_E_TRUNCATED when some lack. */
XF_MUST_CHECK enum xf_code xf_read_end(struct xf_op *op, struct xf_sum *sum, struct xf_err *err);

/** A small object is proved to this level: end it, or go on with what the mode wants. */
void xf_small_proved(struct xf_op *op, enum xf_level level);
/** Nothing tells whether the destination is a copy: compare the bytes, then copy when they differ.
 */
void xf_small_compare(struct xf_op *op);
struct xf_s3_req *xf_small_read_src(struct xf_op *op);
void xf_small_read_src_done(struct xf_op *op, const struct xf_s3_result *res);
struct xf_s3_req *xf_small_read_dst(struct xf_op *op);
void xf_small_read_dst_done(struct xf_op *op, const struct xf_s3_result *res);

#endif
