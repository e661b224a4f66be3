/* engine_int.h - what the engine's files do for each other. Only engine*.c include it. */
#ifndef XF_AGENT_ENGINE_INT_H
#define XF_AGENT_ENGINE_INT_H

#include "agent/engine_types.h"

/* ---- engine_op.c ---- */

/** A new op of the run, in no state yet. */
struct xf_op *xf_op_new(struct xf_run *run, const struct xf_step *steps, unsigned n_steps);
/** Go to a step: wait for permits, then start it. The table must allow it. */
void xf_op_go(struct xf_op *op, unsigned state);
/** The answer of the step's request; for the `done` of xf_s3_*(). `arg` is the op. */
void xf_op_reply(void *arg, const struct xf_s3_result *res);
/** Spend a try and go to `state` after a wait; false when none is left (the op is untouched). */
bool xf_op_retry(struct xf_op *op, unsigned state, int64_t retry_after_ms);
/** The wait is over; what op->timer calls. */
void xf_op_on_timer(struct xf_timer *t);
/** Reserve `size` bytes of the pool in op->buf, then go to `state`. */
void xf_op_go_with_buf(struct xf_op *op, size_t size, unsigned state);
/** The op is over; frees it. */
void xf_op_end(struct xf_op *op);
/** What an answer says about load. */
enum xf_limit_how xf_op_how(const struct xf_s3_result *res);
/** Give the op's permit of that side back early. */
void xf_op_give(struct xf_op *op, enum xf_side side, enum xf_limit_how how, int64_t retry_after_ms);
/** Go on where it stands: from a hold, a timer, a line. */
void xf_op_begin(struct xf_op *op);
/** End the ops of a run that its stop or failure asks to end now. */
void xf_run_cancel_ops(struct xf_run *run);
bool xf_engine_is_past_fence(const struct xf_engine *e);

/* ---- engine_down.c ---- */
enum xf_downness {
    XF_UP,
    XF_DOWN,      /* ask again later; no try is spent */
    XF_DOWN_LONG, /* the work is better given back */
    XF_DOUBTFUL,  /* the signature is refused: the keys', or this request's? try it again */
    XF_KEYS_BAD   /* nobody's signature is taken: the work is given back until a probe's is */
};
/** What an answer, or none, says of the endpoint; counts it. */
enum xf_downness xf_op_downness(struct xf_op *op, const struct xf_s3_result *res);

/* ---- engine.c ---- */
bool xf_run_is_stopped(const struct xf_run *run); /* no new request */
/** The whole run ends like this (once): the first call wins, everything else of it is cancelled. */
void xf_run_fail(struct xf_run *run, enum xf_work_how how, const struct xf_err *err);
/** Uploads: keep the object's outcome for the end. Strings are copied. */
void xf_run_set_result(struct xf_run *run, const struct xf_result *r);
/** Something may begin now. */
void xf_engine_pump(struct xf_engine *e);
/** Told once a job and fact. */
void xf_engine_note(struct xf_run *run, enum xf_work_fact fact, const char *code, const char *text);

/* ---- engine_job.c ---- */
/** The job on this engine: *out is always set; on an error it has no clients. */
XF_MUST_CHECK enum xf_code
xf_ejob_get(struct xf_engine *e, struct xf_work_job *job, struct xf_ejob **out, struct xf_err *err);
struct xf_ejob *xf_ejob_find(struct xf_engine *e, const struct xf_work_job *job);
void xf_ejob_free(struct xf_engine *e, struct xf_ejob *ej);
struct xf_s3 *xf_op_s3(const struct xf_op *op, enum xf_side side);
struct xf_str xf_op_bucket(const struct xf_op *op, enum xf_side side);
struct xf_str xf_op_dst_key(const struct xf_op *op);
const struct xf_job_spec *xf_op_spec(const struct xf_op *op);
/** Storage class to write: the job's, or the listed one when it is not STANDARD; may be empty. */
struct xf_str xf_op_class(const struct xf_op *op);
/** May bytes go from side to side without us, for objects (or parts)? */
bool xf_op_may_copy(const struct xf_op *op, bool part);
/** May an op of the job fall back from server copy to relay? */
bool xf_op_may_relay(const struct xf_op *op);
/** Fill the fields of an op for an object as listed, and map its key. */
XF_MUST_CHECK enum xf_code
xf_op_set_object(struct xf_op *op, const struct xf_object *obj, struct xf_err *err);
void xf_op_keep_etag(char to[XF_WORK_ETAG_MAX], struct xf_str etag);
/** What the source has now, from a HEAD or GET. */
void xf_op_renew(struct xf_op *op, const struct xf_s3_result *head);
bool xf_op_is_changed(const struct xf_op *op, const struct xf_s3_result *head);
bool xf_op_is_unclear(const struct xf_op *op, const struct xf_s3_result *res);
/** The op's source as the option of a copy. */
struct xf_s3_source xf_op_source(const struct xf_op *op);
/** Keep the attributes that the source's answer tells. */
void xf_op_keep_attrs(struct xf_op *op, const struct xf_s3_result *res);
/** Attributes to write with a request; NULL: none. */
const struct xf_s3_attrs *xf_op_attrs(const struct xf_op *op);
/** What the job asks of a new object; a lock from the kept attributes. */
struct xf_s3_guards xf_op_guards(const struct xf_op *op);
/** Has a server copy to be told what only the source's attributes say? */
bool xf_op_needs_attrs(const struct xf_op *op);
/** Was this write refused for a storage class that the job only keeps? Then it goes without. */
bool xf_op_may_drop_class(struct xf_op *op, const struct xf_s3_result *res);
/** The job asks for encryption, and a new object has none? */
bool xf_op_is_plain(const struct xf_op *op, bool is_encrypted);
/** What is said of that. */
void xf_op_say_plain(struct xf_err *err);
/** It was taken without: tell, if so. */
void xf_op_note_class(struct xf_op *op);
/** Is every ETag that the job writes no MD5, as far as the job says? */
bool xf_op_writes_opaque(const struct xf_op *op);

/* ---- engine_object.c: one small object ---- */
enum xf_small {
    XF_SMALL_RECHECK, /* HEAD source: what should be there */
    XF_SMALL_LOOK,    /* HEAD destination: what is there */
    XF_SMALL_ASK,     /* HEAD source: archived? attributes? the etag when the listing had none */
    XF_SMALL_COPY,
    XF_SMALL_COPY_DST, /* HEAD destination after a copy */
    XF_SMALL_COPY_SRC, /* HEAD source after a copy */
    XF_SMALL_GONE,     /* HEAD source after a 404 */
    XF_SMALL_RENEW,    /* HEAD source after a 412 */
    XF_SMALL_GET,
    XF_SMALL_TAGS,
    XF_SMALL_PUT,
    XF_SMALL_STREAM,
    XF_SMALL_PUT_DST, /* HEAD destination after a put */
    XF_SMALL_PUT_SRC, /* HEAD source after a put, when etags cannot tell a later change */
    XF_SMALL_READ_SRC,
    XF_SMALL_READ_DST,
    XF_SMALL_N
};
extern const struct xf_step xf_small_steps[XF_SMALL_N];
void xf_small_begin(struct xf_run *run, uint32_t idx);
/** The destination's state is known (absent: NULL): skip, or go on to the transfer. */
void xf_small_decide(struct xf_op *op, const struct xf_verify_side *dest);
/** Copy or relay, as the job and the facts allow. */
void xf_small_transfer(struct xf_op *op);
void xf_small_copied(struct xf_op *op, enum xf_level level);
/** The destination is a copy already: ours, or to be skipped. */
void xf_small_is_there(struct xf_op *op, enum xf_level level);
void xf_small_fail(struct xf_op *op, const struct xf_s3_result *res);
void xf_small_fail_err(struct xf_op *op, const struct xf_err *err, bool retryable);
void xf_small_outcome(struct xf_op *op, struct xf_result *r);
unsigned xf_op_left(const struct xf_op *op);     /* XF_RESULT_LEFT: something unproved; or 0 */
int xf_op_if_exists(const struct xf_op *op);     /* of enum xf_job_exists, for this object */
bool xf_op_is_if_absent(const struct xf_op *op); /* does a write ask for If-None-Match? */
/** If-None-Match was refused: perhaps by our own write, which libcurl sent twice. */
void xf_small_exists(struct xf_op *op, const struct xf_s3_result *res);
/** The source is another than planned: look again, a bounded number of times. */
void xf_small_replan(struct xf_op *op);
/** Spend a try on `state`, or fail with this error. */
void xf_small_retry(struct xf_op *op, unsigned state, const struct xf_err *err);

/* ---- engine_copy.c ---- */
struct xf_s3_req *xf_copy_start(struct xf_op *op);
void xf_copy_done(struct xf_op *op, const struct xf_s3_result *res);
void xf_copy_dst_done(struct xf_op *op, const struct xf_s3_result *res);
void xf_copy_src_done(struct xf_op *op, const struct xf_s3_result *res);

/* ---- engine_relay.c ---- */
void xf_relay_begin(struct xf_op *op);
struct xf_s3_req *xf_relay_get(struct xf_op *op);
void xf_relay_get_done(struct xf_op *op, const struct xf_s3_result *res);
struct xf_s3_req *xf_relay_tags(struct xf_op *op);
void xf_relay_tags_done(struct xf_op *op, const struct xf_s3_result *res);
struct xf_s3_req *xf_relay_put(struct xf_op *op);
void xf_relay_put_done(struct xf_op *op, const struct xf_s3_result *res);
struct xf_s3_req *xf_relay_stream(struct xf_op *op);
void xf_relay_put_dst_done(struct xf_op *op, const struct xf_s3_result *res);
void xf_relay_put_src_done(struct xf_op *op, const struct xf_s3_result *res);
/** After attributes are known: tags when wanted, else straight on. */
void xf_relay_after_attrs(struct xf_op *op, unsigned next);
/** Whether tags have to be asked for, by what a head or get said. */
bool xf_op_wants_tags(const struct xf_op *op, const struct xf_s3_attrs *attrs);
/** Take an answer of GetObjectTagging: false when the op has to fail with res. */
bool xf_op_take_tags(struct xf_op *op, const struct xf_s3_result *res);
void xf_op_drop_tags(struct xf_op *op);
/** Is this refusal of a write one that may go away without its tags? */
bool xf_op_may_drop_tags(const struct xf_op *op, enum xf_code code);
/** All of a PUT but its body. */
void xf_relay_put_opts(const struct xf_op *op, struct xf_s3_put_opts *o);
/** Start a GET of the op's range into op->buf, hashing. */
struct xf_s3_req *xf_relay_get_range(struct xf_op *op, uint64_t offset, uint64_t len);
/** What to send of op->buf, with what proves it. */
struct xf_s3_body xf_relay_body(struct xf_op *op, uint64_t size);
/** Compute op->md5 of the bytes in op->buf, unless it is known. */
void xf_relay_need_md5(struct xf_op *op, uint64_t size);
/** Check the buffer that a GET filled; XF_OK, or what is wrong. Sets op->sum, perhaps op->md5. */
XF_MUST_CHECK enum xf_code
xf_relay_check(struct xf_op *op, uint64_t want, bool whole, struct xf_err *err);

/* ---- engine_stream.c: GET into PUT through a ring ---- */
struct xf_stream_opts {
    struct xf_op *op;
    uint64_t offset;
    uint64_t len;
    bool is_part; /* UploadPart of op->part_no, else PutObject */
};
/** Both requests; the op's reply comes when both ended. */
struct xf_s3_req *xf_stream_start(const struct xf_stream_opts *o);
void xf_stream_cancel(struct xf_stream *s);
void xf_stream_free(struct xf_stream *s);
#define XF_STREAM_RING ((size_t)1 << 20)

/* ---- engine_parts.c, engine_open.c, engine_close.c, engine_probe.c ---- */
void xf_parts_begin(struct xf_run *run, uint32_t part_no);
void xf_open_begin(struct xf_run *run);
void xf_close_begin(struct xf_run *run);
void xf_abort_begin(struct xf_run *run);
void xf_probe_begin(struct xf_run *run);

#endif
