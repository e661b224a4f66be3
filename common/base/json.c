/* json.c - the only file that knows jansson. struct xf_json is never defined: it is a json_t. */
#include "common/base/json.h"

#include "common/base/clock.h"

#include <jansson.h>

static json_t *j_of(const struct xf_json *j)
{
    return (json_t *)(uintptr_t)j;
}

static struct xf_json *x_of(json_t *j)
{
    XF_ASSERT(j !=
              NULL); /* jansson gives NULL only when memory is gone or the input is not UTF-8 */
    return (struct xf_json *)(void *)j;
}

struct xf_json *xf_json_object(void)
{
    return x_of(json_object());
}

struct xf_json *xf_json_array(void)
{
    return x_of(json_array());
}

void xf_json_free(struct xf_json *j)
{
    json_decref(j_of(j));
}

static void set_new(struct xf_json *obj, const char *name, json_t *v)
{
    XF_ASSERT(v != NULL && json_object_set_new(j_of(obj), name, v) == 0);
}

/* Text that is not valid UTF-8 is shown escaped: jansson refuses it. */
static json_t *text_node(struct xf_str s)
{
    json_t *v = json_stringn(s.ptr != NULL ? s.ptr : "", s.len);

    if (v != NULL) {
        return v;
    }
    struct xf_buf b;
    xf_buf_init(&b, 0);
    xf_buf_put_percent(&b, s, true);
    v = json_stringn(xf_buf_view(&b).ptr, b.len);
    xf_buf_fini(&b);
    return v;
}

void xf_json_set_c(struct xf_json *obj, const char *name, const char *text)
{
    set_new(obj, name, text == NULL ? json_null() : text_node(xf_str_c(text)));
}

void xf_json_set_bytes(struct xf_json *obj, const char *name, struct xf_str bytes)
{
    set_new(obj, name, text_node(bytes));
    if (!xf_str_is_utf8(bytes)) {
        struct xf_buf b;
        xf_buf_init(&b, 0);
        xf_buf_put_c(&b, name);
        xf_buf_put_c(&b, "_encoding");
        set_new(obj, b.ptr, json_string("percent"));
        xf_buf_fini(&b);
    }
}

void xf_json_set_u64(struct xf_json *obj, const char *name, uint64_t v)
{
    set_new(obj, name, json_integer(v > (uint64_t)INT64_MAX ? INT64_MAX : (json_int_t)v));
}

void xf_json_set_i64(struct xf_json *obj, const char *name, int64_t v)
{
    set_new(obj, name, json_integer(v));
}

void xf_json_set_f64(struct xf_json *obj, const char *name, double v)
{
    json_t *n = json_real(v);

    set_new(obj, name, n != NULL ? n : json_null()); /* JSON has no NaN */
}

void xf_json_set_bool(struct xf_json *obj, const char *name, bool v)
{
    set_new(obj, name, json_boolean(v));
}

void xf_json_set_null(struct xf_json *obj, const char *name)
{
    set_new(obj, name, json_null());
}

void xf_json_set_time(struct xf_json *obj, const char *name, int64_t wall_ms)
{
    char text[XF_TIME_TEXT_MAX];

    if (wall_ms == 0) {
        xf_json_set_null(obj, name);
        return;
    }
    xf_time_rfc3339(wall_ms, false, text);
    xf_json_set_c(obj, name, text);
}

void xf_json_put(struct xf_json *obj, const char *name, struct xf_json *child)
{
    set_new(obj, name, j_of(child));
}

void xf_json_append(struct xf_json *array, struct xf_json *child)
{
    XF_ASSERT(json_array_append_new(j_of(array), j_of(child)) == 0);
}

void xf_json_append_all(struct xf_json *array, const struct xf_json *from)
{
    XF_ASSERT(json_array_extend(j_of(array), j_of(from)) == 0);
}

void xf_json_append_c(struct xf_json *array, const char *text)
{
    XF_ASSERT(json_array_append_new(j_of(array), text_node(xf_str_c(text))) == 0);
}

const struct xf_json *xf_json_get(const struct xf_json *obj, const char *name)
{
    return (const struct xf_json *)(const void *)json_object_get(j_of(obj), name);
}

const char *xf_json_get_c(const struct xf_json *obj, const char *name, const char *dflt)
{
    const char *v = json_string_value(json_object_get(j_of(obj), name));

    return v != NULL ? v : dflt;
}

uint64_t xf_json_get_u64(const struct xf_json *obj, const char *name, uint64_t dflt)
{
    const json_t *v = json_object_get(j_of(obj), name);

    return json_is_integer(v) && json_integer_value(v) >= 0 ? (uint64_t)json_integer_value(v)
                                                            : dflt;
}

int64_t xf_json_get_i64(const struct xf_json *obj, const char *name, int64_t dflt)
{
    const json_t *v = json_object_get(j_of(obj), name);

    return json_is_integer(v) ? json_integer_value(v) : dflt;
}

double xf_json_get_f64(const struct xf_json *obj, const char *name, double dflt)
{
    const json_t *v = json_object_get(j_of(obj), name);

    return json_is_number(v) ? json_number_value(v) : dflt;
}

bool xf_json_get_bool(const struct xf_json *obj, const char *name, bool dflt)
{
    const json_t *v = json_object_get(j_of(obj), name);

    return json_is_boolean(v) ? json_is_true(v) : dflt;
}

bool xf_json_is_null(const struct xf_json *obj, const char *name)
{
    const json_t *v = json_object_get(j_of(obj), name);

    return v == NULL || json_is_null(v);
}

bool xf_json_is_object(const struct xf_json *j)
{
    return json_is_object(j_of(j));
}

bool xf_json_is_array(const struct xf_json *j)
{
    return json_is_array(j_of(j));
}

size_t xf_json_len(const struct xf_json *array)
{
    return json_array_size(j_of(array));
}

const struct xf_json *xf_json_at(const struct xf_json *array, size_t i)
{
    return (const struct xf_json *)(const void *)json_array_get(j_of(array), i);
}

const char *xf_json_text(const struct xf_json *j)
{
    return json_string_value(j_of(j));
}

const char *xf_json_next(const struct xf_json *obj, const char *at, const struct xf_json **value)
{
    json_t *o = j_of(obj);
    void *it =
        at == NULL ? json_object_iter(o) : json_object_iter_next(o, json_object_key_to_iter(at));

    if (it == NULL) {
        return NULL;
    }
    *value = (const struct xf_json *)(const void *)json_object_iter_value(it);
    return json_object_iter_key(it);
}

char *xf_json_dump(const struct xf_json *j, bool pretty)
{
    /* 15 digits: 0.1 stays 0.1, and every number that people measure is told whole. */
    size_t flags = JSON_ENCODE_ANY | JSON_REAL_PRECISION(15);
    char *text = json_dumps(j_of(j), flags | (pretty ? JSON_INDENT(2) : JSON_COMPACT));

    XF_ASSERT(text != NULL);
    if (strchr(text, 0x7f) == NULL) {
        return text; /* jansson allocates by malloc, as xf_xfree expects */
    }
    /* DEL is legal in JSON and moves a terminal's cursor: it stands only inside strings. */
    XF_AUTO_BUF safe = {0};
    xf_buf_init(&safe, 0);
    for (const char *p = text; *p != '\0'; p++) {
        if (*p == 0x7f) {
            xf_buf_put_c(&safe, "\\u007f");
        } else {
            xf_buf_put_byte(&safe, *p);
        }
    }
    xf_xfree(text);
    return xf_buf_take(&safe);
}

enum xf_code xf_json_parse(struct xf_str text, struct xf_json **out, struct xf_err *err)
{
    json_error_t where;
    json_t *j = json_loadb(text.ptr != NULL ? text.ptr : "",
                           text.len,
                           JSON_REJECT_DUPLICATES | JSON_DECODE_ANY,
                           &where);

    if (j == NULL) {
        return XF_FAIL(err,
                       XF_E_INVAL,
                       "bad JSON at line %d column %d: %s",
                       where.line,
                       where.column,
                       where.text);
    }
    *out = x_of(j);
    return XF_OK;
}
