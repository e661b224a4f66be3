/*
 * conf_int.h - what conf.c (values in) and conf_doc.c (values and tables out) share; private to
 * both.
 */
#ifndef XF_BASE_CONF_INT_H
#define XF_BASE_CONF_INT_H

#include "common/base/conf.h"

/* The typed field of an option inside the caller's struct. */
static inline void *xf_conf_field(void *values, const struct xf_conf_opt *o)
{
    return (char *)values + o->offset;
}

static inline const void *xf_conf_field_const(const void *values, const struct xf_conf_opt *o)
{
    return (const char *)values + o->offset;
}

/* Is it shown in help and templates, and does it have a field? */
static inline bool xf_conf_is_live(const struct xf_conf_opt *o)
{
    return (o->flags & (XF_CONF_LATER | XF_CONF_REFUSED)) == 0;
}

/* "5MiB to 5GiB", "auto, server or relay"; nothing when there is no bound. */
void xf_conf_put_range(const struct xf_conf_opt *o, struct xf_buf *out);

/* A number of an option's unit as people write it. */
void xf_conf_put_number(const struct xf_conf_opt *o, int64_t v, struct xf_buf *out);

/* "a size such as \"64MiB\"", for messages and help. */
const char *xf_conf_type_text(enum xf_conf_type type);

#endif
