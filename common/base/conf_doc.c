/*
 * conf_doc.c - what an option table gives besides the parser: help, template, TOML and JSON of a
 * struct.
 */
#include "common/base/conf.h"
#include "common/base/conf_int.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/toml.h"

#include <stdio.h>
#include <time.h>

enum {
    HELP_WIDTH = 80,
    DEFAULTS_MAX = 64 * 1024 /* bytes of a struct that a table describes */
};

/* ---- ranges and types
 * ---------------------------------------------------------------------------- */

const char *xf_conf_type_text(enum xf_conf_type type)
{
    static const char *const texts[XF_CONF_TYPE_N] = {
        [XF_CONF_SECTION] = "a section",
        [XF_CONF_BOOL] = "true or false",
        [XF_CONF_INT] = "an integer",
        [XF_CONF_SIZE] = "a size such as \"64MiB\"",
        [XF_CONF_RATE] = "a rate such as \"10Gbit/s\" or \"100MiB/s\"",
        [XF_CONF_DURATION] = "a duration such as \"30s\", \"5m\" or \"12h\"",
        [XF_CONF_STRING] = "a string",
        [XF_CONF_ENUM] = "one of a set of strings",
        [XF_CONF_LIST] = "a list of strings",
        [XF_CONF_WHEN] = "an age such as \"30d\" or a date-time such as 2024-01-31T00:00:00Z",
        [XF_CONF_SWITCH] = "true or false",
    };
    return texts[type];
}

/* The type's name in help; the values of an enum stand in its range. */
static const char *type_name(enum xf_conf_type type)
{
    static const char *const names[XF_CONF_TYPE_N] = {
        [XF_CONF_SECTION] = "section",
        [XF_CONF_BOOL] = "true or false",
        [XF_CONF_INT] = "integer",
        [XF_CONF_SIZE] = "size",
        [XF_CONF_RATE] = "rate",
        [XF_CONF_DURATION] = "duration",
        [XF_CONF_STRING] = "string",
        [XF_CONF_ENUM] = NULL,
        [XF_CONF_LIST] = "strings",
        [XF_CONF_WHEN] = "age or date-time",
        [XF_CONF_SWITCH] = "true or false",
    };
    return names[type];
}

void xf_conf_put_number(const struct xf_conf_opt *o, int64_t v, struct xf_buf *out)
{
    if (o->type == XF_CONF_SIZE && v >= 0) {
        xf_conf_put_size(out, (uint64_t)v);
    } else if (o->type == XF_CONF_RATE && v >= 0) {
        xf_conf_put_rate(out, (uint64_t)v);
    } else if (o->type == XF_CONF_DURATION && v >= 0) {
        xf_conf_put_duration(out, v);
    } else {
        xf_buf_putf(out, "%lld", (long long)v);
    }
}

static void put_names(const struct xf_conf_opt *o, struct xf_buf *out)
{
    for (size_t i = 0; o->names[i] != NULL; i++) {
        if (i > 0) {
            xf_buf_put_c(out, o->names[i + 1] == NULL ? " or " : ", ");
        }
        xf_buf_putf(out, "\"%s\"", o->names[i]);
    }
}

void xf_conf_put_range(const struct xf_conf_opt *o, struct xf_buf *out)
{
    bool is_number = o->type == XF_CONF_INT || o->type == XF_CONF_SIZE || o->type == XF_CONF_RATE ||
                     o->type == XF_CONF_DURATION;
    if (o->type == XF_CONF_ENUM) {
        put_names(o, out);
        return;
    }
    if (!is_number || (o->max == 0 && o->min == 0)) {
        return;
    }
    if (o->max == 0) {
        xf_buf_put_c(out, "at least ");
    }
    xf_conf_put_number(o, o->min, out);
    if (o->max != 0) {
        xf_buf_put_c(out, " to ");
        xf_conf_put_number(o, o->max, out);
    }
    if (o->unit != NULL) {
        xf_buf_putf(out, " %s", o->unit);
    }
}

/* ---- values as TOML
 * ------------------------------------------------------------------------------ */

static void put_quoted_number(const struct xf_conf_opt *o, int64_t v, struct xf_buf *out)
{
    xf_buf_put_byte(out, '"');
    xf_conf_put_number(o, v, out);
    xf_buf_put_byte(out, '"');
}

static void put_list(const struct xf_conf_list *list, struct xf_buf *out)
{
    xf_buf_put_byte(out, '[');
    for (size_t i = 0; i < list->len; i++) {
        xf_buf_put_c(out, i > 0 ? ", " : "");
        xf_conf_put_quoted(out, list->items[i]);
    }
    xf_buf_put_byte(out, ']');
}

static void put_time(int64_t wall_ms, struct xf_buf *out)
{
    time_t s = (time_t)(wall_ms / 1000);
    int64_t ms = wall_ms % 1000;
    if (ms < 0) {
        ms += 1000;
        s--;
    }
    struct tm tm = {0};
    XF_ASSERT(gmtime_r(&s, &tm) != NULL);
    xf_buf_putf(out,
                "%04d-%02d-%02dT%02d:%02d:%02d",
                tm.tm_year + 1900,
                tm.tm_mon + 1,
                tm.tm_mday,
                tm.tm_hour,
                tm.tm_min,
                tm.tm_sec);
    if (ms != 0) {
        xf_buf_putf(out, ".%03d", (int)ms);
    }
    xf_buf_put_byte(out, 'Z');
}

static void put_when(const struct xf_conf_when *w, struct xf_buf *out)
{
    if (w->is_age) {
        xf_buf_put_byte(out, '"');
        xf_conf_put_duration(out, w->ms);
        xf_buf_put_byte(out, '"');
    } else {
        put_time(w->ms, out);
    }
}

static void put_value(const struct xf_conf_opt *o, const void *field, struct xf_buf *out)
{
    switch (o->type) {
    case XF_CONF_BOOL: xf_buf_put_c(out, *(const bool *)field ? "true" : "false"); break;
    case XF_CONF_SWITCH:
        xf_buf_put_c(out, *(const int *)field == XF_CONF_ON ? "true" : "false");
        break;
    case XF_CONF_INT: xf_buf_putf(out, "%lld", (long long)*(const int64_t *)field); break;
    case XF_CONF_SIZE:
    case XF_CONF_RATE: put_quoted_number(o, (int64_t) * (const uint64_t *)field, out); break;
    case XF_CONF_DURATION: put_quoted_number(o, *(const int64_t *)field, out); break;
    case XF_CONF_STRING: xf_conf_put_quoted(out, *(const struct xf_str *)field); break;
    case XF_CONF_ENUM: xf_buf_putf(out, "\"%s\"", o->names[*(const int *)field]); break;
    case XF_CONF_LIST: put_list(field, out); break;
    case XF_CONF_WHEN: put_when(field, out); break;
    case XF_CONF_SECTION:
    case XF_CONF_TYPE_N: break;
    }
}

static bool is_same_list(const struct xf_conf_list *a, const struct xf_conf_list *b)
{
    if (a->len != b->len) {
        return false;
    }
    for (size_t i = 0; i < a->len; i++) {
        if (!xf_str_eq(a->items[i], b->items[i])) {
            return false;
        }
    }
    return true;
}

static bool is_same(const struct xf_conf_opt *o, const void *a, const void *b)
{
    switch (o->type) {
    case XF_CONF_BOOL: return *(const bool *)a == *(const bool *)b;
    case XF_CONF_ENUM:
    case XF_CONF_SWITCH: return *(const int *)a == *(const int *)b;
    case XF_CONF_INT:
    case XF_CONF_DURATION: return *(const int64_t *)a == *(const int64_t *)b;
    case XF_CONF_SIZE:
    case XF_CONF_RATE: return *(const uint64_t *)a == *(const uint64_t *)b;
    case XF_CONF_STRING: return xf_str_eq(*(const struct xf_str *)a, *(const struct xf_str *)b);
    case XF_CONF_LIST: return is_same_list(a, b);
    case XF_CONF_WHEN: {
        const struct xf_conf_when *x = a;
        const struct xf_conf_when *y = b;
        return x->is_set == y->is_set && x->is_age == y->is_age && x->ms == y->ms;
    }
    case XF_CONF_SECTION:
    case XF_CONF_TYPE_N: break;
    }
    return true;
}

/* The part after the dot; *section is the part before it, empty at the top. */
static const char *split_name(const struct xf_conf_opt *o, struct xf_str *section)
{
    const char *dot = strchr(o->name, '.');
    *section = dot != NULL ? xf_str_n(o->name, (size_t)(dot - o->name)) : XF_STR_EMPTY;
    return dot != NULL ? dot + 1 : o->name;
}

void xf_conf_put_toml(const struct xf_conf_table *table, const void *values, struct xf_buf *out)
{
    struct xf_err err;
    struct xf_conf *loaded = NULL;
    XF_ASSERT(table->size <= DEFAULTS_MAX);
    XF_AUTO_FREE void *defaults = xf_xcalloc(1, table->size);
    XF_ASSERT(xf_conf_load(table, NULL, defaults, &loaded, &err) == XF_OK);
    XF_AUTO(xf_conf) c = loaded;
    struct xf_str present = XF_STR_EMPTY;
    for (size_t i = 0; i < table->n; i++) {
        const struct xf_conf_opt *o = &table->opts[i];
        const void *field = xf_conf_field_const(values, o);
        if (o->type == XF_CONF_SECTION || !xf_conf_is_live(o) || (o->flags & XF_CONF_SECRET) != 0 ||
            is_same(o, field, xf_conf_field_const(defaults, o))) {
            continue;
        }
        struct xf_str section;
        const char *key = split_name(o, &section);
        if (!xf_str_eq(section, present)) {
            xf_buf_putf(out, "[%.*s]\n", XF_STR_ARG(section));
            present = section;
        }
        xf_buf_putf(out, "%s = ", key);
        put_value(o, field, out);
        xf_buf_put_byte(out, '\n');
    }
}

/* ---- values as JSON
 * ------------------------------------------------------------------------------ */

static void set_json_list(struct xf_json *obj, const char *key, const struct xf_conf_list *list)
{
    struct xf_json *array = xf_json_array();
    for (size_t i = 0; i < list->len; i++) {
        xf_json_append_c(array, list->items[i].ptr); /* kept strings end with NUL */
    }
    xf_json_put(obj, key, array);
}

static void set_json_when(struct xf_json *obj, const char *key, const struct xf_conf_when *w)
{
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    if (!w->is_set) {
        xf_json_set_null(obj, key);
        return;
    }
    if (w->is_age) {
        xf_conf_put_duration(&b, w->ms);
    } else {
        put_time(w->ms, &b);
    }
    xf_json_set_bytes(obj, key, xf_buf_view(&b));
}

static void
set_json(struct xf_json *obj, const char *key, const struct xf_conf_opt *o, const void *field)
{
    switch (o->type) {
    case XF_CONF_BOOL: xf_json_set_bool(obj, key, *(const bool *)field); break;
    case XF_CONF_SWITCH:
        if (*(const int *)field == XF_CONF_UNSET) {
            xf_json_set_null(obj, key);
        } else {
            xf_json_set_bool(obj, key, *(const int *)field == XF_CONF_ON);
        }
        break;
    case XF_CONF_INT:
    case XF_CONF_DURATION: xf_json_set_i64(obj, key, *(const int64_t *)field); break;
    case XF_CONF_SIZE:
    case XF_CONF_RATE: xf_json_set_u64(obj, key, *(const uint64_t *)field); break;
    case XF_CONF_STRING: xf_json_set_bytes(obj, key, *(const struct xf_str *)field); break;
    case XF_CONF_ENUM: xf_json_set_c(obj, key, o->names[*(const int *)field]); break;
    case XF_CONF_LIST: set_json_list(obj, key, field); break;
    case XF_CONF_WHEN: set_json_when(obj, key, field); break;
    case XF_CONF_SECTION:
    case XF_CONF_TYPE_N: break;
    }
}

struct xf_json *xf_conf_to_json(const struct xf_conf_table *table, const void *values)
{
    struct xf_json *root = xf_json_object();
    struct xf_json *obj = root;
    for (size_t i = 0; i < table->n; i++) {
        const struct xf_conf_opt *o = &table->opts[i];
        if (!xf_conf_is_live(o) || (o->flags & XF_CONF_SECRET) != 0) {
            continue;
        }
        if (o->type == XF_CONF_SECTION) {
            obj = xf_json_object();
            xf_json_put(root, o->name, obj);
            continue;
        }
        struct xf_str section;
        const char *key = split_name(o, &section);
        set_json(section.len > 0 ? obj : root, key, o, xf_conf_field_const(values, o));
    }
    return root;
}

/* ---- help and template
 * --------------------------------------------------------------------------- */

/* Words of `text`, broken before HELP_WIDTH, each line after `indent`. */
static void put_wrapped(struct xf_buf *out, const char *indent, const char *text)
{
    struct xf_str rest = xf_str_c(text);
    struct xf_str word;
    size_t col = 0;
    while (xf_str_cut(&rest, ' ', &word)) {
        if (col > 0 && col + 1 + word.len > HELP_WIDTH) {
            xf_buf_put_byte(out, '\n');
            col = 0;
        }
        xf_buf_put_c(out, col == 0 ? indent : " ");
        col += (col == 0 ? strlen(indent) : 1) + word.len;
        xf_buf_put(out, word);
    }
    xf_buf_put_byte(out, '\n');
}

/* "size, 5MiB to 5GiB, default 64MiB" */
static void put_facts(const struct xf_conf_opt *o, struct xf_buf *out)
{
    XF_AUTO_BUF range = {0};
    xf_buf_init(&range, 0);
    xf_conf_put_range(o, &range);
    xf_buf_put_c(out, type_name(o->type) != NULL ? type_name(o->type) : "");
    if (range.len > 0) {
        xf_buf_putf(out, "%s%s", type_name(o->type) != NULL ? ", " : "", range.ptr);
    }
    if (o->def_note != NULL) {
        xf_buf_putf(out, ", default: %s", o->def_note);
    } else if (o->def != NULL) {
        xf_buf_putf(out, ", default %s", o->def);
    }
    if ((o->flags & XF_CONF_RELOAD) != 0) {
        xf_buf_put_c(out, ", may be reloaded");
    }
}

void xf_conf_put_help(const struct xf_conf_table *table, struct xf_buf *out)
{
    put_wrapped(out, "", table->what);
    for (size_t i = 0; i < table->n; i++) {
        const struct xf_conf_opt *o = &table->opts[i];
        if (!xf_conf_is_live(o)) {
            continue;
        }
        if (o->type == XF_CONF_SECTION) {
            xf_buf_putf(out, "\n[%s]\n", o->name);
            put_wrapped(out, "", o->help);
            continue;
        }
        XF_AUTO_BUF facts = {0};
        xf_buf_init(&facts, 0);
        put_facts(o, &facts);
        xf_buf_putf(out, "  %s\n", o->name);
        put_wrapped(out, "      ", facts.ptr);
        put_wrapped(out, "      ", o->help);
    }
}

/* The value that the template shows: the example, or the default as TOML. */
static void put_sample(const struct xf_conf_opt *o, struct xf_buf *out)
{
    bool bare = o->type == XF_CONF_BOOL || o->type == XF_CONF_SWITCH || o->type == XF_CONF_INT;
    if (o->example != NULL) {
        xf_buf_put_c(out, o->example);
    } else if (o->type == XF_CONF_LIST) {
        xf_buf_put_c(out, "[]");
    } else if (bare) {
        xf_buf_put_c(out, o->def != NULL ? o->def : (o->type == XF_CONF_INT ? "0" : "false"));
    } else {
        xf_conf_put_quoted(out, xf_str_c(o->def != NULL ? o->def : ""));
    }
}

void xf_conf_put_template(const struct xf_conf_table *table, struct xf_buf *out)
{
    put_wrapped(out, "# ", table->what);
    for (size_t i = 0; i < table->n; i++) {
        const struct xf_conf_opt *o = &table->opts[i];
        if (!xf_conf_is_live(o)) {
            continue;
        }
        if (o->type == XF_CONF_SECTION) {
            xf_buf_putf(out, "\n[%s]\n", o->name);
            put_wrapped(out, "# ", o->help);
            continue;
        }
        XF_AUTO_BUF facts = {0};
        struct xf_str section;
        xf_buf_init(&facts, 0);
        xf_buf_putf(&facts, "%s (", o->help);
        put_facts(o, &facts);
        xf_buf_put_c(&facts, ")");
        xf_buf_put_byte(out, '\n');
        put_wrapped(out, "# ", facts.ptr);
        xf_buf_putf(
            out, "%s%s = ", (o->flags & XF_CONF_SHOWN) != 0 ? "" : "#", split_name(o, &section));
        put_sample(o, out);
        xf_buf_put_byte(out, '\n');
    }
}
