/*
 * engine_sum.h - which requests carry checksums, and what an endpoint that wants none is asked.
 *
 * Many services refuse or ignore x-amz-checksum-*, and an endpoint's name does not tell. So the
 * first requests of a job try: one that is refused with such a header and accepted without it, or a
 * write whose answer does not repeat the checksum, settles it for the job, with one notice, and
 * Content-MD5 and etags prove what they can, as everywhere else. Only headers are sent that are
 * known before the body, never trailers: a service that does not know those stores the framing as
 * if it were the object. Only engine*.c include it.
 */
#ifndef XF_AGENT_ENGINE_SUM_H
#define XF_AGENT_ENGINE_SUM_H

#include "agent/engine_int.h"

/* What a request may carry; bits of xf_op's asked_sums, refused_sums, doubted_sums. */
enum xf_sums {
    XF_SUMS_READ_SRC = 1, /* the wish to be told the source's checksum */
    XF_SUMS_READ_DST = 2,
    XF_SUMS_WRITE = 4 /* that of the bytes, or the algorithm of an upload */
};

/** Something else was refused, and goes now: what was thought of the checksums does not hold. */
void xf_sums_forgive(struct xf_op *op);
/** May the op's next request carry it? */
bool xf_sums_may(const struct xf_op *op, enum xf_sums what);
/** The same, noting that the request does: for the start of a step. */
bool xf_sums_ask(struct xf_op *op, enum xf_sums what);
/** What to send beside the op's bytes; NULL: nothing. */
const struct xf_sum *xf_sums_send(struct xf_op *op, const struct xf_sum *sum);

/** The request was refused, perhaps for what it carried: start the step again without. */
bool xf_sums_refused(struct xf_op *op, const struct xf_s3_result *res);
/** It went well: what had to be left out for that is not asked of this endpoint again. */
void xf_sums_accepted(struct xf_op *op);

/**
 * A write with op->sum was answered: does the service have the same bytes?
 *
 * XF_VERIFY_UNKNOWN when none was sent, or the answer does not tell.
 */
enum xf_verify xf_sums_echo(struct xf_op *op, const struct xf_s3_result *res);

/** An upload was made: how does the service sum it? */
enum xf_sum_alg xf_sums_created(struct xf_op *op, const struct xf_s3_result *res);
/** Nothing proves a stream: those after it get an MD5 as well, and it has to be sent again. */
enum xf_code xf_sums_unsaid(struct xf_op *op, uint64_t size, struct xf_err *err);

/** The algorithm for the bytes of a whole object that go through here; XF_SUM_NONE: none. */
enum xf_sum_alg xf_sums_alg(const struct xf_op *op);
/** The algorithm of an upload that is to be made. */
enum xf_sum_alg xf_sums_upload_alg(const struct xf_op *op);

#endif
