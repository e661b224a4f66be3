/*
 * wait.h - waiting for a condition with a deadline, instead of sleeping.
 */
#ifndef XF_TESTS_LIB_WAIT_H
#define XF_TESTS_LIB_WAIT_H

#include <stdbool.h>
#include <stdint.h>

typedef bool(xf_wait_fn)(void *arg);

/* Asks `cond` every few milliseconds until it says true, at most timeout_ms; false at the deadline.
 */
bool xf_wait_for(xf_wait_fn *cond, void *arg, int64_t timeout_ms);

/* Like it, and fails the running test at the deadline with `what` in the message. */
void xf_wait_must(xf_wait_fn *cond, void *arg, int64_t timeout_ms, const char *what);

#endif
