/*
 * engine_down.c - is it the endpoint that is out of reach, or one object?
 *
 * No connection is the endpoint's. Connections that end without an answer (reset, stalled), and
 * answers of a gateway that has nobody behind it (502, 504), may be an object's own: MUTE_N of them
 * with no other answer of that side between are taken for the endpoint's. While it is down the
 * limit lets one request at a time through, with growing pauses, and no op spends a try. After
 * DOWN_UNFIT_MS the work is given back, the job waits, and a probe of the buckets tells when it can
 * go on. Where the probe is answered and the objects still are not, it is the objects: from then on
 * tries are spent, until a write or read of one is answered.
 *
 * A 500 is the service's own answer, most often to one request, and spends a try. FAILING_N of them
 * with nothing else between are more than one object's: the service is out of order, and down.
 *
 * A refused signature may mean that the secret key has changed, or one request that the service
 * signs otherwise. It is tried again, and SIGN_N in a row are taken for the key's: the host is
 * unfit until a probe's signature is taken; where objects' are refused even then they fail.
 */
#include "agent/engine_int.h"
#include "common/s3/s3err.h"

enum {
    MUTE_N = 8,
    FAILING_N = 64, /* more than all tries of one object */
    SIGN_N = 8,
    DOWN_UNFIT_MS = 60 * 1000 /* another host may reach it by then */
};

static bool is_mute(const struct xf_s3_result *res)
{
    if (xf_code_class(res->err.code) != XF_CLASS_RETRY) {
        return false;
    }
    return res->status == 0 || res->status == 502 || res->status == 504;
}

static bool is_failing(const struct xf_s3_result *res)
{
    return res->err.code == XF_E_SERVER && res->status == 500;
}

/* Looks, listings and probes are answered by a service that answers no copies, too. Of a key only a
 * probe tells: other answers may be to requests signed before it changed. */
static void answered(struct xf_down *d, unsigned step_flags, bool is_good_probe)
{
    if (d->is_key_bad && is_good_probe) {
        d->is_doubted = true;
        d->is_key_bad = false;
    }
    d->since_ms = 0;
    d->n_mute = 0;
    d->n_failing = 0;
    d->n_sign = 0;
    if ((step_flags & (XF_STEP_WRITE | XF_STEP_BULK)) != 0) {
        d->is_doubted = false;
    }
}

static enum xf_downness refused_signature(struct xf_down *d)
{
    if (d->is_doubted) {
        return XF_UP;
    }
    d->is_key_bad = d->is_key_bad || ++d->n_sign >= SIGN_N;
    return d->is_key_bad ? XF_KEYS_BAD : XF_DOUBTFUL;
}

enum xf_downness xf_op_downness(struct xf_op *op, const struct xf_s3_result *res)
{
    const struct xf_step *step = &op->steps[op->state];
    struct xf_down *d = &op->run->ej->down[step->side];
    int64_t now = xf_loop_mono_ms(op->run->e->loop);
    bool is_refused = res->err.code == XF_E_UNREACHABLE;

    if (xf_s3err_is_signature(res->s3_code)) {
        return op->run->w != NULL ? refused_signature(d) : XF_UP;
    }
    if (is_failing(res)) {
        if (++d->n_failing < FAILING_N || d->is_doubted) {
            return XF_UP;
        }
    } else if (!is_refused && !is_mute(res)) {
        if (res->status != 0) {
            answered(d, step->flags, op->run->w == NULL && res->err.code == XF_OK);
        }
        return XF_UP;
    }
    if (is_mute(res)) {
        d->n_mute++;
        if (d->is_doubted || d->n_mute < MUTE_N || (step->flags & XF_STEP_OWN_RETRY) != 0) {
            return XF_UP;
        }
    }
    d->since_ms = d->since_ms == 0 ? now : d->since_ms;
    if (now - d->since_ms < DOWN_UNFIT_MS) {
        return XF_DOWN;
    }
    d->is_doubted = !is_refused;
    return XF_DOWN_LONG;
}
