/*
 * opt_int.h - what the files of opt share; private to them.
 */
#ifndef XF_BASE_OPT_INT_H
#define XF_BASE_OPT_INT_H

#include "common/base/opt.h"

/* --help and --version, which every program has. */
extern const struct xf_opt xf_opt_own[2];

/* Words of `text`, broken before column 80, each line after `indent` blanks; `col` is where the
 * line stands. Ends with a line end. */
void xf_opt_put_wrapped(struct xf_buf *out, size_t indent, size_t col, const char *text);

#endif
