/* engine_upload.h - what the steps of an upload share. Only engine*.c include it. */
#ifndef XF_AGENT_ENGINE_UPLOAD_H
#define XF_AGENT_ENGINE_UPLOAD_H

#include "agent/engine_int.h"

/** An op for the work's one object; NULL when it cannot be: told. */
struct xf_op *xf_upload_op(struct xf_run *run, const struct xf_step *steps, unsigned n_steps);
/** End the run with this outcome of the object. */
void xf_upload_outcome(struct xf_op *op, struct xf_result *r);
void xf_upload_ended(struct xf_op *op, enum xf_outcome outcome); /* vanished, archived */
void xf_upload_changed(struct xf_op *op);
/** End it as failed. res may be NULL. */
void xf_upload_fail(struct xf_op *op,
                    const struct xf_err *err,
                    const struct xf_s3_result *res,
                    bool retryable);
void xf_upload_fail_res(struct xf_op *op, const struct xf_s3_result *res);
/** Spend a try on `state`, or fail with this error. */
void xf_upload_retry(struct xf_op *op, unsigned state, const struct xf_err *err);
struct xf_s3_req *xf_upload_head_source(struct xf_op *op);
struct xf_s3_req *xf_upload_head_dest(struct xf_op *op);
/** One page of uploads of the op's key. */
struct xf_s3_req *xf_upload_find(struct xf_op *op);

enum xf_found {
    XF_FOUND_ONE,  /* look at the parts of op->upload_id */
    XF_FOUND_MORE, /* another page may hold some */
    XF_FOUND_OURS, /* abort op->upload_id, then look again */
    XF_FOUND_NONE
};
/** What follows from a page; what is left as possibly ours has been told. */
enum xf_found xf_upload_found(struct xf_op *op, const struct xf_s3_result *res);
/** The parts of what was found. */
struct xf_s3_req *xf_upload_found_parts(struct xf_op *op);
/** Judge what was found by the listing of its parts; then look for the next one. */
void xf_upload_judge_found(struct xf_op *op, const struct xf_s3_result *res);
struct xf_s3_req *xf_upload_abort_found(struct xf_op *op);

#endif
