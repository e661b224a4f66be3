/*
 * json.h - the door to jansson: object building and file/bytes in and out.
 *
 * The tree uses jansson's json_t through the names below, so that keys which are bytes get one
 * treatment: a string that is not valid UTF-8 is percent-encoded and `<name>_encoding` is added.
 */
#ifndef XF_BASE_JSON_H
#define XF_BASE_JSON_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

struct xf_json; /* jansson's json_t under our name; reference counted */

struct xf_json *xf_json_object(void);
struct xf_json *xf_json_array(void);
void xf_json_free(struct xf_json *j); /* drops one reference */
XF_AUTO_DEFINE(xf_json, xf_json_free)

void xf_json_set_c(struct xf_json *obj, const char *name, const char *text); /* NULL: null */
/** Bytes: valid UTF-8 as it is, else percent-encoded with `<name>_encoding`: "percent" beside it.
 */
void xf_json_set_bytes(struct xf_json *obj, const char *name, struct xf_str bytes);
void xf_json_set_u64(struct xf_json *obj, const char *name, uint64_t v);
void xf_json_set_i64(struct xf_json *obj, const char *name, int64_t v);
void xf_json_set_f64(struct xf_json *obj, const char *name, double v);
void xf_json_set_bool(struct xf_json *obj, const char *name, bool v);
void xf_json_set_null(struct xf_json *obj, const char *name);
/** RFC 3339 UTC with seconds; 0 gives null. */
void xf_json_set_time(struct xf_json *obj, const char *name, int64_t wall_ms);
/** Takes over `child`. */
void xf_json_put(struct xf_json *obj, const char *name, struct xf_json *child);
void xf_json_append(struct xf_json *array, struct xf_json *child);
/** Also appends the elements of another array, which keeps them. */
void xf_json_append_all(struct xf_json *array, const struct xf_json *from);
void xf_json_append_c(struct xf_json *array, const char *text);

/** Reading; all borrow. A missing or mistyped member gives the default. */
const struct xf_json *xf_json_get(const struct xf_json *obj, const char *name);
const char *xf_json_get_c(const struct xf_json *obj, const char *name, const char *dflt);
uint64_t xf_json_get_u64(const struct xf_json *obj, const char *name, uint64_t dflt);
int64_t xf_json_get_i64(const struct xf_json *obj, const char *name, int64_t dflt);
double xf_json_get_f64(const struct xf_json *obj, const char *name, double dflt);
bool xf_json_get_bool(const struct xf_json *obj, const char *name, bool dflt);
bool xf_json_is_null(const struct xf_json *obj, const char *name); /* also when missing */
bool xf_json_is_object(const struct xf_json *j);
bool xf_json_is_array(const struct xf_json *j);
size_t xf_json_len(const struct xf_json *array);
const struct xf_json *xf_json_at(const struct xf_json *array, size_t i);
/** Text of a string node, NULL for others. */
const char *xf_json_text(const struct xf_json *j);
/** Member names of an object: *at starts NULL; gives NULL at the end. */
const char *xf_json_next(const struct xf_json *obj, const char *at, const struct xf_json **value);

/** One line, or indented by two. Caller frees with xf_xfree. */
char *xf_json_dump(const struct xf_json *j, bool pretty);
/** XF_E_INVAL with line and column. Duplicate names are refused. */
XF_MUST_CHECK enum xf_code
xf_json_parse(struct xf_str text, struct xf_json **out, struct xf_err *err);

#endif
