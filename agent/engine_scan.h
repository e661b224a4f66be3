/*
 * engine_scan.h - what the destination has already, over a batch's key range. Only engine*.c
 * include it.
 */
#ifndef XF_AGENT_ENGINE_SCAN_H
#define XF_AGENT_ENGINE_SCAN_H

#include "agent/engine_types.h"

void xf_scan_begin(struct xf_run *run); /* sets run->scan when the job wants it */
void xf_scan_free(struct xf_scan *s);
/** Is the answer for this object known? The run is pumped when more are. */
bool xf_scan_is_ready(const struct xf_scan *s, uint32_t idx);
enum xf_scan_answer {
    XF_SCAN_ABSENT,
    XF_SCAN_THERE, /* *out is set; its etag lives until the scan is freed */
    XF_SCAN_ASK    /* HEAD it */
};
enum xf_scan_answer xf_scan_ask(const struct xf_scan *s, uint32_t idx, struct xf_verify_side *out);

#endif
