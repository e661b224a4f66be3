/*
 * glob.h - patterns of [select]: matched over bytes that are mostly UTF-8, in bounded time.
 *
 *   *        any bytes, '/' too, also none
 *   ?        one character
 *   [a-z]    one character of a set; [!a-z] one that is not; ']' first in a set is itself
 *   \x       the character x, whatever it means otherwise
 *
 * The whole text must match. A byte that is no UTF-8 counts as one character.
 */
#ifndef XF_JOB_GLOB_H
#define XF_JOB_GLOB_H

#include "common/base/str.h"

#include <stdbool.h>

#define XF_GLOB_MAX 1024 /* bytes of a pattern */

/** NULL when the pattern is right, else what is wrong with it (static). */
const char *xf_glob_check(struct xf_str pattern);

/** Time is at most the product of both lengths. A pattern that xf_glob_check() refuses never
 * matches. */
bool xf_glob_match(struct xf_str pattern, struct xf_str text);

#endif
