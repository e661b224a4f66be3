/* engine_sum.c - see engine_sum.h. */
#include "agent/engine_sum.h"

#include "common/job/spec.h"

static const struct {
    enum xf_sums what;
    enum xf_work_fact fact;
    const char *code;
    const char *text;
} habits[] = {
    {XF_SUMS_READ_SRC,
     XF_FACT_NO_SUM_SRC,
     "no_source_checksums",
     "the source answers only when it is not asked for its checksums: etags and sizes tell what "
     "was "
     "read"},
    {XF_SUMS_READ_DST,
     XF_FACT_NO_SUM_DST,
     "no_destination_checksums",
     "the destination answers only when it is not asked for its checksums"},
    {XF_SUMS_WRITE,
     XF_FACT_NO_SUM_WRITE,
     "no_checksums",
     "the destination refuses or ignores x-amz-checksum headers: Content-MD5 and etags prove what "
     "is stored"},
};

bool xf_sums_may(const struct xf_op *op, enum xf_sums what)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(habits); i++) {
        if (habits[i].what == what && xf_work_job_knows(op->run->ej->job, habits[i].fact)) {
            return false;
        }
    }
    return (op->refused_sums & what) == 0;
}

bool xf_sums_ask(struct xf_op *op, enum xf_sums what)
{
    bool may = xf_sums_may(op, what);

    op->asked_sums |= may ? what : 0U;
    return may;
}

const struct xf_sum *xf_sums_send(struct xf_op *op, const struct xf_sum *sum)
{
    return xf_sum_header(sum->alg) != NULL && xf_sums_ask(op, XF_SUMS_WRITE) ? sum : NULL;
}

static void learn(struct xf_op *op, unsigned what)
{
    for (size_t i = 0; i < XF_ARRAY_LEN(habits); i++) {
        if ((what & habits[i].what) != 0) {
            xf_engine_note(op->run, habits[i].fact, habits[i].code, habits[i].text);
        }
    }
}

bool xf_sums_refused(struct xf_op *op, const struct xf_s3_result *res)
{
    bool is_read = res->op == XF_S3_GET || res->op == XF_S3_HEAD;
    unsigned mine = is_read ? XF_SUMS_READ_SRC | XF_SUMS_READ_DST : XF_SUMS_WRITE;
    unsigned carried = op->asked_sums & mine;
    enum xf_code code = res->err.code;
    /* Who may not decrypt is refused the checksum of an encrypted object, not its HEAD. */
    bool is_refusal = code == XF_E_BAD_REQUEST || code == XF_E_UNSUPPORTED ||
                      (code == XF_E_DENIED && res->op == XF_S3_HEAD);

    if (!is_refusal || carried == 0) {
        return false;
    }
    op->refused_sums |= carried;
    op->doubted_sums |= carried;
    return true;
}

void xf_sums_accepted(struct xf_op *op)
{
    learn(op, op->doubted_sums);
    op->doubted_sums = 0;
}

void xf_sums_forgive(struct xf_op *op)
{
    op->refused_sums &= ~op->doubted_sums;
    op->doubted_sums = 0;
}

enum xf_verify xf_sums_echo(struct xf_op *op, const struct xf_s3_result *res)
{
    if (op->sum.alg == XF_SUM_NONE) {
        return XF_VERIFY_UNKNOWN;
    }
    enum xf_verify verdict = xf_verify_sums(&op->sum, &res->sum);

    if (verdict != XF_VERIFY_UNKNOWN) {
        op->dst_sum = res->sum;
        return verdict;
    }
    learn(op, op->asked_sums & XF_SUMS_WRITE);
    return XF_VERIFY_UNKNOWN;
}

enum xf_sum_alg xf_sums_created(struct xf_op *op, const struct xf_s3_result *res)
{
    if (xf_sum_is_crc(res->sum.alg) && !res->sum.is_composite) {
        return res->sum.alg;
    }
    learn(op, op->asked_sums & XF_SUMS_WRITE);
    return XF_SUM_NONE;
}

enum xf_code xf_sums_unsaid(struct xf_op *op, uint64_t size, struct xf_err *err)
{
    (void)xf_work_job_learn(op->run->ej->job, XF_FACT_SUM_UNSAID); /* known is fine */
    return XF_FAIL(err,
                   XF_E_CHECKSUM,
                   "the service does not say what it has of the %ju bytes sent",
                   (uintmax_t)size);
}

/* The source's own algorithm makes its checksum the proof of what was read, and both sides can be
 * compared ever after. */
enum xf_sum_alg xf_sums_alg(const struct xf_op *op)
{
    if (xf_op_spec(op)->verify == XF_JOB_VERIFY_FULL) {
        return XF_SUM_SHA256;
    }
    if (op->src_sum.alg != XF_SUM_NONE && !op->src_sum.is_composite) {
        return op->src_sum.alg;
    }
    return xf_sums_may(op, XF_SUMS_WRITE) ? XF_SUM_CRC64NVME : XF_SUM_NONE;
}

enum xf_sum_alg xf_sums_upload_alg(const struct xf_op *op)
{
    bool is_relay = !xf_op_may_copy(op, true);
    bool is_known = xf_sum_is_crc(op->src_sum.alg) && !op->src_sum.is_composite;

    if (!xf_sums_may(op, XF_SUMS_WRITE)) {
        return XF_SUM_NONE;
    }
    if (is_known) {
        return op->src_sum.alg;
    }
    return is_relay ? XF_SUM_CRC64NVME : XF_SUM_NONE; /* a copying service sums as it likes */
}
