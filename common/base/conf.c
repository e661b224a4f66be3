/*
 * conf.c - values into a struct by the option table: defaults, a TOML document, single texts.
 *
 * Each value goes through one setter for its type, whatever it came from, so the checks are the
 * same for a file, a default and a command line. A default that fails its own check is a bug and
 * asserts.
 */
#include "common/base/conf.h"

#include "common/base/arena.h"
#include "common/base/conf_int.h"
#include "common/base/file.h"
#include "common/base/mem.h"
#include "common/base/toml.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { NEAR_MAX = 256, SHOWN_MAX = 80 };

/* Where an option was set; line 0: not in a document. */
struct place {
    struct xf_toml_pos pos;
    bool is_set;
};

struct xf_conf {
    const struct xf_conf_table *table;
    void *values;
    struct xf_arena arena; /* the strings and lists of the values */
    struct xf_str file;    /* empty without a document */
    struct place *places;
};

/* What is being set: the option, and where from. */
struct target {
    struct xf_conf *c;
    const struct xf_conf_opt *o;
    const struct xf_toml_pos *pos; /* NULL: no document */
    struct xf_err *err;
};

/* ---- memory -------------------------------------------------------------------------------------
 */

struct xf_str xf_conf_keep(struct xf_conf *c, struct xf_str s)
{
    return xf_arena_dup(&c->arena, s);
}

void xf_conf_free(struct xf_conf *c)
{
    if (c == NULL) {
        return;
    }
    xf_arena_fini(&c->arena);
    xf_xfree(c->places);
    xf_xfree(c);
}

/* ---- errors -------------------------------------------------------------------------------------
 */

__attribute__((format(printf, 4, 0))) static enum xf_code
fail_v(const struct target *t, enum xf_code code, const char *name, const char *fmt, va_list ap)
{
    char text[384];
    if (vsnprintf(text, sizeof(text), fmt, ap) < 0) {
        text[0] = '\0';
    }
    if (t->pos != NULL) {
        return XF_FAIL(t->err,
                       code,
                       "%.*s:%u:%u: '%s' %s",
                       XF_STR_ARG(t->c->file),
                       t->pos->line,
                       t->pos->col,
                       name,
                       text);
    }
    return XF_FAIL(t->err, code, "'%s' %s", name, text);
}

/* "FILE:LINE:COL: 'name' text". */
__attribute__((format(printf, 2, 3))) static enum xf_code
fail(const struct target *t, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum xf_code code = fail_v(t, XF_E_CONFIG, t->o->name, fmt, ap);
    va_end(ap);
    return code;
}

static size_t index_of(const struct xf_conf *c, const char *name)
{
    for (size_t i = 0; i < c->table->n; i++) {
        if (c->table->opts[i].type != XF_CONF_SECTION &&
            strcmp(c->table->opts[i].name, name) == 0) {
            return i;
        }
    }
    XF_ASSERT(!"an option's name is in its table");
    return 0;
}

enum xf_code
xf_conf_fail(const struct xf_conf *c, struct xf_err *err, const char *name, const char *fmt, ...)
{
    const struct place *p = &c->places[index_of(c, name)];
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    if (n < 0) {
        text[0] = '\0';
    }
    if (p->pos.line > 0) {
        return XF_FAIL(
            err, XF_E_CONFIG, "%.*s:%u:%u: %s", XF_STR_ARG(c->file), p->pos.line, p->pos.col, text);
    }
    if (c->file.len > 0) {
        return XF_FAIL(err, XF_E_CONFIG, "%.*s: %s", XF_STR_ARG(c->file), text);
    }
    return XF_FAIL(err, XF_E_CONFIG, "%s", text);
}

bool xf_conf_is_set(const struct xf_conf *c, const char *name)
{
    return c->places[index_of(c, name)].is_set;
}

/* ---- setters, one a type ------------------------------------------------------------------------
 */

static enum xf_code out_of_range(const struct target *t, int64_t v)
{
    XF_AUTO_BUF shown = {0};
    XF_AUTO_BUF range = {0};
    xf_buf_init(&shown, 0);
    xf_buf_init(&range, 0);
    xf_conf_put_number(t->o, v, &shown);
    xf_conf_put_range(t->o, &range);
    return fail(t, "is %s, outside its range: %s", shown.ptr, range.ptr);
}

static enum xf_code check_number(const struct target *t, int64_t v)
{
    if (v < t->o->min || (t->o->max != 0 && v > t->o->max)) {
        return out_of_range(t, v);
    }
    return XF_OK;
}

static enum xf_code set_int(const struct target *t, int64_t v)
{
    XF_TRY(check_number(t, v));
    *(int64_t *)xf_conf_field(t->c->values, t->o) = v;
    return XF_OK;
}

static enum xf_code set_u64(const struct target *t, uint64_t v)
{
    if (v > (uint64_t)INT64_MAX) {
        return fail(t, "is too large");
    }
    XF_TRY(check_number(t, (int64_t)v));
    *(uint64_t *)xf_conf_field(t->c->values, t->o) = v;
    return XF_OK;
}

static enum xf_code wrong_text(const struct target *t, struct xf_str text)
{
    if ((t->o->flags & XF_CONF_SECRET) != 0) {
        return fail(t, "must be %s", xf_conf_type_text(t->o->type));
    }
    XF_AUTO_BUF shown = {0};
    xf_buf_init(&shown, 0);
    xf_buf_put_escaped(&shown, xf_str_sub(text, 0, SHOWN_MAX));
    return fail(t,
                "must be %s, not \"%s\"",
                xf_conf_type_text(t->o->type),
                shown.ptr != NULL ? shown.ptr : "");
}

static enum xf_code check_string(const struct target *t, struct xf_str s, int64_t min, int64_t max)
{
    if (xf_str_find(s, '\0', 0) != SIZE_MAX) {
        return fail(t, "holds a NUL character");
    }
    if ((int64_t)s.len < min) {
        return s.len == 0 ? fail(t, "is empty")
                          : fail(t, "is shorter than %lld bytes", (long long)min);
    }
    if ((int64_t)s.len > max) {
        return fail(t, "is longer than %lld bytes", (long long)max);
    }
    return XF_OK;
}

static enum xf_code set_string(const struct target *t, struct xf_str s)
{
    XF_TRY(check_string(t, s, t->o->min, t->o->max != 0 ? t->o->max : XF_CONF_STRING_MAX));
    *(struct xf_str *)xf_conf_field(t->c->values, t->o) = xf_conf_keep(t->c, s);
    return XF_OK;
}

static enum xf_code set_enum(const struct target *t, struct xf_str s)
{
    for (int i = 0; t->o->names[i] != NULL; i++) {
        if (xf_str_eq_c(s, t->o->names[i])) {
            *(int *)xf_conf_field(t->c->values, t->o) = i;
            return XF_OK;
        }
    }
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_buf_put_c(&b, "is \"");
    xf_buf_put_escaped(&b, xf_str_sub(s, 0, SHOWN_MAX));
    xf_buf_put_c(&b, "\"; it must be ");
    xf_conf_put_range(t->o, &b);
    const char *near = xf_conf_nearest(s, t->o->names);
    if (near != NULL) {
        xf_buf_putf(&b, "; did you mean \"%s\"?", near);
    }
    return fail(t, "%s", b.ptr);
}

/* One string more in a list. */
static enum xf_code add_item(const struct target *t, struct xf_str s)
{
    struct xf_conf_list *list = xf_conf_field(t->c->values, t->o);
    size_t max = t->o->max != 0 ? (size_t)t->o->max : (size_t)XF_CONF_LIST_MAX;
    if (list->len >= max) {
        return fail(t, "has more than %zu items", max);
    }
    XF_TRY(check_string(t, s, 1, XF_CONF_STRING_MAX));
    struct xf_str *items = xf_arena_calloc(&t->c->arena, list->len + 1, sizeof(*items));
    if (list->len > 0) {
        memcpy(items, list->items, list->len * sizeof(*items));
    }
    items[list->len] = xf_conf_keep(t->c, s);
    *list = (struct xf_conf_list){.items = items, .len = list->len + 1};
    return XF_OK;
}

static void set_when(const struct target *t, bool is_age, int64_t ms)
{
    *(struct xf_conf_when *)xf_conf_field(t->c->values, t->o) =
        (struct xf_conf_when){.is_set = true, .is_age = is_age, .ms = ms};
}

static enum xf_code set_bool(const struct target *t, bool b)
{
    if (t->o->type == XF_CONF_SWITCH) {
        *(int *)xf_conf_field(t->c->values, t->o) = b ? XF_CONF_ON : XF_CONF_OFF;
    } else {
        *(bool *)xf_conf_field(t->c->values, t->o) = b;
    }
    return XF_OK;
}

static enum xf_code set_bool_text(const struct target *t, struct xf_str s)
{
    bool is_true = xf_str_eq_c(s, "true");
    return is_true || xf_str_eq_c(s, "false") ? set_bool(t, is_true) : wrong_text(t, s);
}

/* A value as a text: from a TOML string (quoted types), a default or a command line (all types). */
static enum xf_code set_text(const struct target *t, struct xf_str s)
{
    uint64_t u = 0;
    int64_t i = 0;
    switch (t->o->type) {
    case XF_CONF_SWITCH:
    case XF_CONF_BOOL: return set_bool_text(t, s);
    case XF_CONF_INT: return xf_str_i64(s, &i) ? set_int(t, i) : wrong_text(t, s);
    case XF_CONF_SIZE: return xf_conf_parse_size(s, &u) ? set_u64(t, u) : wrong_text(t, s);
    case XF_CONF_RATE: return xf_conf_parse_rate(s, &u) ? set_u64(t, u) : wrong_text(t, s);
    case XF_CONF_DURATION: return xf_conf_parse_duration(s, &i) ? set_int(t, i) : wrong_text(t, s);
    case XF_CONF_STRING: return set_string(t, s);
    case XF_CONF_ENUM: return set_enum(t, s);
    case XF_CONF_LIST: return add_item(t, s);
    case XF_CONF_WHEN:
        if (!xf_conf_parse_duration(s, &i)) {
            return wrong_text(t, s);
        }
        set_when(t, true, i);
        return XF_OK;
    case XF_CONF_SECTION:
    case XF_CONF_TYPE_N: break;
    }
    XF_ASSERT(!"a section has no value");
    return XF_E_INVAL;
}

static enum xf_code wrong_type(const struct target *t, const struct xf_toml_value *v)
{
    return fail(t,
                "must be %s, not %s %s",
                xf_conf_type_text(t->o->type),
                strchr("aeiou", xf_toml_type_name(v->type)[0]) != NULL ? "an" : "a",
                xf_toml_type_name(v->type));
}

static enum xf_code set_list(const struct target *t, const struct xf_toml_value *v)
{
    for (size_t i = 0; i < v->array.len; i++) {
        const struct xf_toml_value *item = v->array.items[i];
        struct target at = *t;
        at.pos = &item->pos;
        if (item->type != XF_TOML_STRING) {
            return wrong_type(&at, item);
        }
        XF_TRY(add_item(&at, item->str));
    }
    return (int64_t)v->array.len < t->o->min
               ? fail(t, "needs at least %lld item(s)", (long long)t->o->min)
               : XF_OK;
}

static enum xf_code set_value(const struct target *t, const struct xf_toml_value *v)
{
    enum xf_conf_type type = t->o->type;
    if (v->type == XF_TOML_BOOL && (type == XF_CONF_BOOL || type == XF_CONF_SWITCH)) {
        return set_bool(t, v->b);
    }
    if (v->type == XF_TOML_INT && type == XF_CONF_INT) {
        return set_int(t, v->i);
    }
    if (v->type == XF_TOML_INT && type == XF_CONF_SIZE) { /* bytes */
        return v->i < 0 ? out_of_range(t, v->i) : set_u64(t, (uint64_t)v->i);
    }
    if (v->type == XF_TOML_ARRAY && type == XF_CONF_LIST) {
        return set_list(t, v);
    }
    if ((v->type == XF_TOML_DATETIME || v->type == XF_TOML_LOCAL_DATE) && type == XF_CONF_WHEN) {
        set_when(t, false, xf_toml_time_ms(&v->time));
        return XF_OK;
    }
    if (v->type == XF_TOML_STRING && type != XF_CONF_BOOL && type != XF_CONF_SWITCH &&
        type != XF_CONF_INT && type != XF_CONF_LIST) {
        return set_text(t, v->str);
    }
    return wrong_type(t, v);
}

/* ---- documents ----------------------------------------------------------------------------------
 */

/* A key of the document and the names around it. */
struct doc_key {
    struct xf_conf *c;
    struct xf_str section; /* empty at the top */
    const struct xf_toml_entry *entry;
    struct xf_err *err;
};

static bool is_named(const struct xf_conf_opt *o, struct xf_str section, struct xf_str key)
{
    struct xf_str name = xf_str_c(o->name);
    if (xf_str_starts(name, XF_STR_LIT("*."))) { /* the key in any section */
        return xf_str_eq_c(key, o->name + 2);
    }
    if (section.len == 0) {
        return xf_str_eq(name, key);
    }
    return name.len == section.len + 1 + key.len && xf_str_starts(name, section) &&
           name.ptr[section.len] == '.' && xf_str_ends(name, key);
}

static const struct xf_conf_opt *find_opt(const struct doc_key *k)
{
    for (size_t i = 0; i < k->c->table->n; i++) {
        const struct xf_conf_opt *o = &k->c->table->opts[i];
        if (o->type != XF_CONF_SECTION && is_named(o, k->section, k->entry->key)) {
            return o;
        }
    }
    return NULL;
}

static const struct xf_conf_opt *find_section(const struct xf_conf_table *table, struct xf_str name)
{
    for (size_t i = 0; i < table->n; i++) {
        if (table->opts[i].type == XF_CONF_SECTION && xf_str_eq_c(name, table->opts[i].name)) {
            return &table->opts[i];
        }
    }
    return NULL;
}

/* The key part of an option's name, when it belongs to the section. */
static const char *key_in(const struct xf_conf_opt *o, struct xf_str section)
{
    const char *dot = strchr(o->name, '.');
    if (o->type == XF_CONF_SECTION || !xf_conf_is_live(o)) {
        return NULL;
    }
    if (section.len == 0) {
        return dot == NULL ? o->name : NULL;
    }
    return dot != NULL && xf_str_eq(xf_str_n(o->name, (size_t)(dot - o->name)), section) ? dot + 1
                                                                                         : NULL;
}

/* The section that has a key of this name, when `section` does not. */
static struct xf_str home_of(const struct xf_conf_table *table, struct xf_str key)
{
    for (size_t i = 0; i < table->n; i++) {
        const char *dot = strchr(table->opts[i].name, '.');
        if (dot != NULL && xf_str_eq_c(key, dot + 1) && xf_conf_is_live(&table->opts[i])) {
            return xf_str_n(table->opts[i].name, (size_t)(dot - table->opts[i].name));
        }
    }
    return XF_STR_EMPTY;
}

static void put_full_name(struct xf_buf *b, const struct doc_key *k)
{
    if (k->section.len > 0) {
        xf_buf_put_escaped(b, xf_str_sub(k->section, 0, SHOWN_MAX));
        xf_buf_put_byte(b, '.');
    }
    xf_buf_put_escaped(b, xf_str_sub(k->entry->key, 0, SHOWN_MAX));
}

static enum xf_code unknown_key(const struct doc_key *k)
{
    const struct xf_conf_table *table = k->c->table;
    const char *near[NEAR_MAX];
    size_t n = 0;
    for (size_t i = 0; i < table->n && n < NEAR_MAX - 1; i++) {
        const char *key = key_in(&table->opts[i], k->section);
        if (key != NULL) {
            near[n++] = key;
        }
    }
    near[n] = NULL;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_buf_put_c(&b, "unknown key '");
    put_full_name(&b, k);
    xf_buf_put_byte(&b, '\'');
    struct xf_str home = home_of(table, k->entry->key);
    const char *word = xf_conf_nearest(k->entry->key, near);
    if (home.len > 0) {
        xf_buf_putf(&b, "; it belongs in [%.*s]", XF_STR_ARG(home));
    } else if (word != NULL) {
        xf_buf_putf(&b, "; did you mean '%s'?", word);
    }
    return XF_FAIL(k->err,
                   XF_E_CONFIG,
                   "%.*s:%u:%u: %s",
                   XF_STR_ARG(k->c->file),
                   k->entry->pos.line,
                   k->entry->pos.col,
                   b.ptr);
}

static enum xf_code unknown_section(const struct doc_key *k)
{
    const char *near[NEAR_MAX];
    size_t n = 0;
    for (size_t i = 0; i < k->c->table->n && n < NEAR_MAX - 1; i++) {
        const struct xf_conf_opt *o = &k->c->table->opts[i];
        if (o->type == XF_CONF_SECTION && xf_conf_is_live(o)) {
            near[n++] = o->name;
        }
    }
    near[n] = NULL;
    XF_AUTO_BUF shown = {0};
    xf_buf_init(&shown, 0);
    xf_buf_put_escaped(&shown, xf_str_sub(k->entry->key, 0, SHOWN_MAX));
    const char *word = xf_conf_nearest(k->entry->key, near);
    return XF_FAIL(k->err,
                   XF_E_CONFIG,
                   "%.*s:%u:%u: unknown section '%s'%s%s%s",
                   XF_STR_ARG(k->c->file),
                   k->entry->pos.line,
                   k->entry->pos.col,
                   shown.ptr != NULL ? shown.ptr : "",
                   word != NULL ? "; did you mean '" : "",
                   word != NULL ? word : "",
                   word != NULL ? "'?" : "");
}

/* Known, but refused: with the reason. */
static enum xf_code refuse(const struct doc_key *k, const struct xf_conf_opt *o)
{
    bool later = (o->flags & XF_CONF_LATER) != 0;
    XF_AUTO_BUF name = {0};
    xf_buf_init(&name, 0);
    put_full_name(&name, k);
    return XF_FAIL(k->err,
                   later ? XF_E_UNSUPPORTED : XF_E_CONFIG,
                   "%.*s:%u:%u: '%s' is not %s%s%s",
                   XF_STR_ARG(k->c->file),
                   k->entry->pos.line,
                   k->entry->pos.col,
                   name.ptr,
                   later ? "supported yet" : "accepted",
                   o->help != NULL ? ": " : "",
                   o->help != NULL ? o->help : "");
}

static enum xf_code load_key(const struct doc_key *k)
{
    const struct xf_conf_opt *o = find_opt(k);
    if (o == NULL) {
        return unknown_key(k);
    }
    if (!xf_conf_is_live(o)) {
        return refuse(k, o);
    }
    struct place *p = &k->c->places[o - k->c->table->opts];
    p->pos = k->entry->value->pos;
    p->is_set = true;
    struct target t = {.c = k->c, .o = o, .pos = &p->pos, .err = k->err};
    return set_value(&t, k->entry->value);
}

static enum xf_code load_section(const struct doc_key *k)
{
    const struct xf_conf_opt *section = find_section(k->c->table, k->entry->key);
    const struct xf_toml_value *v = k->entry->value;
    if (section == NULL) {
        return v->type == XF_TOML_TABLE ? unknown_section(k) : unknown_key(k);
    }
    if (!xf_conf_is_live(section)) {
        return refuse(k, section);
    }
    if (v->type != XF_TOML_TABLE) {
        return XF_FAIL(k->err,
                       XF_E_CONFIG,
                       "%.*s:%u:%u: '%s' is a section, written once as [%s]",
                       XF_STR_ARG(k->c->file),
                       k->entry->pos.line,
                       k->entry->pos.col,
                       section->name,
                       section->name);
    }
    for (size_t i = 0; i < v->table.len; i++) {
        struct doc_key key = {k->c, k->entry->key, &v->table.entries[i], k->err};
        XF_TRY(load_key(&key));
    }
    return XF_OK;
}

static enum xf_code load_document(struct xf_conf *c, const struct xf_toml *doc, struct xf_err *err)
{
    const struct xf_toml_table *root = &xf_toml_root(doc)->table;
    for (size_t i = 0; i < root->len; i++) {
        struct doc_key key = {c, XF_STR_EMPTY, &root->entries[i], err};
        XF_TRY(find_opt(&key) != NULL ? load_key(&key) : load_section(&key));
    }
    return XF_OK;
}

static void load_defaults(struct xf_conf *c)
{
    struct xf_err err;
    for (size_t i = 0; i < c->table->n; i++) {
        const struct xf_conf_opt *o = &c->table->opts[i];
        if (o->type == XF_CONF_SECTION || !xf_conf_is_live(o)) {
            continue;
        }
        if (o->type == XF_CONF_STRING) {
            *(struct xf_str *)xf_conf_field(c->values, o) = xf_conf_keep(c, XF_STR_EMPTY);
        }
        struct target t = {.c = c, .o = o, .err = &err};
        XF_ASSERT(o->def == NULL || set_text(&t, xf_str_c(o->def)) == XF_OK);
    }
}

enum xf_code xf_conf_load(const struct xf_conf_table *table,
                          const struct xf_toml *doc,
                          void *values,
                          struct xf_conf **out,
                          struct xf_err *err)
{
    XF_AUTO(xf_conf) c = xf_xcalloc(1, sizeof(*c));
    *out = NULL;
    c->table = table;
    c->values = values;
    c->places = xf_xcalloc(table->n, sizeof(*c->places));
    memset(values, 0, table->size);
    load_defaults(c);
    if (doc != NULL) {
        c->file = xf_conf_keep(c, xf_toml_name(doc));
        XF_TRY(load_document(c, doc, err));
    }
    *out = XF_STEAL(c);
    return XF_OK;
}

enum xf_code xf_conf_load_file(const struct xf_conf_table *table,
                               const char *path,
                               void *values,
                               struct xf_conf **out,
                               struct xf_err *err)
{
    XF_AUTO_BUF text = {0};
    xf_buf_init(&text, XF_TOML_INPUT_MAX);
    *out = NULL;
    if (xf_file_read(path, XF_TOML_INPUT_MAX, &text, err) != XF_OK) {
        err->code = XF_E_CONFIG;
        return XF_WRAP(err, "reading the configuration");
    }
    struct xf_toml *parsed = NULL;
    XF_TRY(xf_toml_parse(xf_buf_view(&text), xf_str_c(path), &parsed, err));
    XF_AUTO(xf_toml) doc = parsed;
    return xf_conf_load(table, doc, values, out, err);
}

enum xf_code
xf_conf_set(struct xf_conf *c, const char *name, struct xf_str text, struct xf_err *err)
{
    size_t i = index_of(c, name);
    struct target t = {.c = c, .o = &c->table->opts[i], .err = err};
    XF_TRY(set_text(&t, text));
    c->places[i] = (struct place){.is_set = true};
    return XF_OK;
}
