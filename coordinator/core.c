/*
 * core.c - small things that the modules of the core thread need from it.
 */
#include "coordinator/core.h"

#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>

void xf_core_refuse(struct xf_hub_req *r, enum xf_code code, const char *fmt, ...)
{
    char text[XF_TEXT_MAX];
    va_list ap;

    va_start(ap, fmt);
    (void)vsnprintf(text, sizeof(text), fmt, ap); /* cut at the end: it is for people */
    va_end(ap);
    xf_hub_fail(r, code, xf_str_c(text));
}

bool xf_core_submit(struct xf_coordinator *c, struct xf_store_op *op)
{
    if (c->state != XF_CORE_STOPPING && xf_store_submit(c->port, op)) {
        return true;
    }
    xf_store_op_free(op);
    return false;
}

void xf_core_on_done(struct xf_store_op *op)
{
    if (op->rc != XF_OK) {
        XF_WARN("store.failed_op",
                xf_f_c("op", xf_op_name(op->kind)),
                xf_f_code(op->rc),
                xf_f_err(&op->err));
    }
}

void xf_core_kick(struct xf_coordinator *c)
{
    if (!xf_timer_is_started(&c->kick)) {
        xf_timer_in(c->loop, &c->kick, 0);
    }
}

void xf_core_fail(struct xf_coordinator *c, const struct xf_err *err)
{
    c->failed = *err;
    xf_loop_stop(c->loop);
}
