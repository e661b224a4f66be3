/*
 * toml.c - TOML documents: lines, keys, tables and arrays; single values are in toml_scan.c.
 *
 * The parse walks the text once. How a table came to be decides who may add to it:
 *
 *   ORIGIN_PATH    passed through by a header ([a.b] makes a): one [a] may still define it
 *   ORIGIN_HEADER  defined by [a] or an element of [[a]]: only its own section adds keys
 *   ORIGIN_DOTTED  made by a dotted key: dotted keys of the same section add to it; headers may
 * only pass through ORIGIN_INLINE  written as {...}: closed
 *
 * An array is open when [[a]] made it: only [[a]] adds to it; one written as [...] is closed. That
 * is kept as cap > 0 or cap == 0: closed arrays are cut to their length when they end.
 *
 * Invariants
 * 1. r->off <= text.len; every step forward is checked against the end through xf_toml_peek().
 * 2. The text is valid UTF-8 before the first byte is read.
 * 3. Nesting is bounded by XF_TOML_DEPTH_MAX, so recursion is.
 */
#include "common/base/toml.h"

#include "common/base/mem.h"
#include "common/base/toml_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_SIZE = 16 * 1024, NAME_MAX_SHOWN = 120 };

enum table_origin { ORIGIN_PATH, ORIGIN_HEADER, ORIGIN_DOTTED, ORIGIN_INLINE };

/* A key as it is written: parts between dots. */
struct key_path {
    struct xf_str parts[XF_TOML_DEPTH_MAX];
    struct xf_toml_pos pos[XF_TOML_DEPTH_MAX];
    size_t n;
};

/* ---- memory -------------------------------------------------------------------------------------
 */

/* Room for one more item of `size`; the old array stays in the document's memory. */
static void *grow(struct xf_toml *doc, void *items, size_t len, size_t *cap, size_t size)
{
    if (len < *cap) {
        return items;
    }
    *cap = *cap == 0 ? 4 : *cap * 2;
    void *more = xf_arena_calloc(&doc->arena, *cap, size);
    if (len > 0) {
        memcpy(more, items, len * size);
    }
    return more;
}

void xf_toml_free(struct xf_toml *doc)
{
    if (doc == NULL) {
        return;
    }
    xf_arena_fini(&doc->arena);
    xf_xfree(doc);
}

/* ---- the reader ---------------------------------------------------------------------------------
 */

int xf_toml_peek(const struct xf_toml_reader *r, size_t ahead)
{
    if (ahead >= r->text.len - r->off) {
        return -1;
    }
    return (unsigned char)r->text.ptr[r->off + ahead];
}

bool xf_toml_starts(const struct xf_toml_reader *r, const char *word)
{
    for (size_t i = 0; word[i] != '\0'; i++) {
        if (xf_toml_peek(r, i) != (unsigned char)word[i]) {
            return false;
        }
    }
    return true;
}

bool xf_toml_newline(struct xf_toml_reader *r)
{
    size_t n = 0;
    if (xf_toml_peek(r, 0) == '\n') {
        n = 1;
    } else if (xf_toml_starts(r, "\r\n")) {
        n = 2;
    } else {
        return false;
    }
    r->off += n;
    r->line++;
    r->line_off = r->off;
    return true;
}

struct xf_toml_pos xf_toml_pos_here(struct xf_toml_reader *r)
{
    if (r->col_off < r->line_off || r->col_off > r->off) {
        r->col_off = r->line_off;
        r->col = 1;
    }
    for (; r->col_off < r->off; r->col_off++) {
        r->col += ((unsigned char)r->text.ptr[r->col_off] & 0xC0) != 0x80 ? 1U : 0U;
    }
    return (struct xf_toml_pos){.line = r->line, .col = r->col};
}

__attribute__((format(printf, 3, 0))) static enum xf_code
fail_v(struct xf_toml_reader *r, struct xf_toml_pos pos, const char *fmt, va_list ap)
{
    char text[256];
    if (vsnprintf(text, sizeof(text), fmt, ap) < 0) {
        text[0] = '\0';
    }
    return XF_FAIL(
        r->err, XF_E_CONFIG, "%.*s:%u:%u: %s", XF_STR_ARG(r->doc->name), pos.line, pos.col, text);
}

enum xf_code xf_toml_fail(struct xf_toml_reader *r, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum xf_code code = fail_v(r, xf_toml_pos_here(r), fmt, ap);
    va_end(ap);
    return code;
}

enum xf_code xf_toml_fail_at(struct xf_toml_reader *r, struct xf_toml_pos pos, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    enum xf_code code = fail_v(r, pos, fmt, ap);
    va_end(ap);
    return code;
}

static void skip_blanks(struct xf_toml_reader *r)
{
    while (xf_toml_peek(r, 0) == ' ' || xf_toml_peek(r, 0) == '\t') {
        r->off++;
    }
}

/* A comment up to, not including, the line end. */
static enum xf_code skip_comment(struct xf_toml_reader *r)
{
    if (xf_toml_peek(r, 0) != '#') {
        return XF_OK;
    }
    for (;;) {
        int c = xf_toml_peek(r, 0);
        if (c < 0 || c == '\n' || xf_toml_starts(r, "\r\n")) {
            return XF_OK;
        }
        if ((c < 0x20 && c != '\t') || c == 0x7F) {
            return xf_toml_fail(r, "control character 0x%02X in a comment", (unsigned)c);
        }
        r->off++;
    }
}

/* Blanks, comments and line ends, as between the items of an array. */
static enum xf_code skip_space(struct xf_toml_reader *r)
{
    do {
        skip_blanks(r);
        XF_TRY(skip_comment(r));
    } while (xf_toml_newline(r));
    return XF_OK;
}

static enum xf_code unexpected(struct xf_toml_reader *r, const char *wanted)
{
    int c = xf_toml_peek(r, 0);
    if (c < 0) {
        return xf_toml_fail(r, "the text ends where %s was expected", wanted);
    }
    if (c == '\n' || xf_toml_starts(r, "\r\n")) {
        return xf_toml_fail(r, "the line ends where %s was expected", wanted);
    }
    if (c < 0x20 || c == 0x7F) {
        return xf_toml_fail(
            r, "control character 0x%02X where %s was expected", (unsigned)c, wanted);
    }
    if (c >= 0x80) {
        return xf_toml_fail(
            r, "a character outside quotes that is not ASCII, where %s was expected", wanted);
    }
    return xf_toml_fail(r, "'%c' where %s was expected", c, wanted);
}

static enum xf_code end_line(struct xf_toml_reader *r)
{
    skip_blanks(r);
    XF_TRY(skip_comment(r));
    if (xf_toml_peek(r, 0) >= 0 && !xf_toml_newline(r)) {
        return unexpected(r, "the end of the line");
    }
    return XF_OK;
}

/* ---- tables -------------------------------------------------------------------------------------
 */

static struct xf_toml_value *
new_table(struct xf_toml_reader *r, struct xf_toml_pos pos, size_t depth, enum table_origin origin)
{
    struct xf_toml_value *v = xf_arena_calloc(&r->doc->arena, 1, sizeof(*v));
    v->type = XF_TOML_TABLE;
    v->pos = pos;
    v->table.depth = (uint8_t)depth;
    v->table.origin = (uint8_t)origin;
    return v;
}

static enum xf_code check_depth(struct xf_toml_reader *r, size_t depth)
{
    if (depth > XF_TOML_DEPTH_MAX) {
        return xf_toml_fail(
            r, "more than %d tables and arrays inside each other", XF_TOML_DEPTH_MAX);
    }
    return XF_OK;
}

static struct xf_toml_entry *find(const struct xf_toml_value *table, struct xf_str key)
{
    for (size_t i = 0; i < table->table.len; i++) {
        if (xf_str_eq(table->table.entries[i].key, key)) {
            return &table->table.entries[i];
        }
    }
    return NULL;
}

static enum xf_code add_entry(struct xf_toml_reader *r,
                              struct xf_toml_value *table,
                              struct xf_str key,
                              struct xf_toml_pos pos,
                              struct xf_toml_value *value)
{
    struct xf_toml_table *t = &table->table;
    if (t->len == XF_TOML_KEYS_MAX) {
        return xf_toml_fail_at(r, pos, "more than %d keys in one table", XF_TOML_KEYS_MAX);
    }
    t->entries = grow(r->doc, t->entries, t->len, &t->cap, sizeof(*t->entries));
    t->entries[t->len++] = (struct xf_toml_entry){.key = key, .pos = pos, .value = value};
    return XF_OK;
}

static enum xf_code add_table(struct xf_toml_reader *r,
                              struct xf_toml_value *parent,
                              const struct key_path *key,
                              size_t part,
                              enum table_origin origin,
                              struct xf_toml_value **out)
{
    size_t depth = (size_t)parent->table.depth + 1;
    XF_TRY(check_depth(r, depth));
    *out = new_table(r, key->pos[part], depth, origin);
    return add_entry(r, parent, key->parts[part], key->pos[part], *out);
}

static void
add_item(struct xf_toml_reader *r, struct xf_toml_value *array, struct xf_toml_value *item)
{
    struct xf_toml_array *a = &array->array;
    a->items = grow(r->doc, (void *)a->items, a->len, &a->cap, sizeof(*a->items));
    a->items[a->len++] = item;
}

static bool is_open_array(const struct xf_toml_value *v)
{
    return v->type == XF_TOML_ARRAY && v->array.cap > 0;
}

static enum xf_code already(struct xf_toml_reader *r,
                            const struct key_path *key,
                            size_t part,
                            const struct xf_toml_entry *first)
{
    return xf_toml_fail_at(r,
                           key->pos[part],
                           "'%.*s' is already defined, at line %u",
                           XF_STR_ARG(xf_str_sub(key->parts[part], 0, 64)),
                           first->pos.line);
}

/* ---- keys ---------------------------------------------------------------------------------------
 */

static bool is_bare_key(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

static enum xf_code parse_key_part(struct xf_toml_reader *r, struct xf_str *out)
{
    int c = xf_toml_peek(r, 0);
    if (c == '"' || c == '\'') {
        return xf_toml_scan_string(r, false, out);
    }
    size_t n = 0;
    while (is_bare_key(xf_toml_peek(r, n))) {
        n++;
    }
    if (n == 0) {
        return unexpected(r, "a key");
    }
    *out = xf_arena_dup(&r->doc->arena, xf_str_n(r->text.ptr + r->off, n));
    r->off += n;
    return XF_OK;
}

static enum xf_code parse_key(struct xf_toml_reader *r, struct key_path *key)
{
    key->n = 0;
    for (;;) {
        skip_blanks(r);
        if (key->n == XF_TOML_DEPTH_MAX) {
            return xf_toml_fail(r, "more than %d parts in one key", XF_TOML_DEPTH_MAX);
        }
        key->pos[key->n] = xf_toml_pos_here(r);
        XF_TRY(parse_key_part(r, &key->parts[key->n]));
        key->n++;
        skip_blanks(r);
        if (xf_toml_peek(r, 0) != '.') {
            return XF_OK;
        }
        r->off++;
    }
}

/* ---- values -------------------------------------------------------------------------------------
 */

static enum xf_code parse_value(struct xf_toml_reader *r, size_t depth, struct xf_toml_value **out);

static enum xf_code parse_array(struct xf_toml_reader *r, size_t depth, struct xf_toml_value *v)
{
    v->type = XF_TOML_ARRAY;
    r->off++;
    for (;;) {
        XF_TRY(skip_space(r));
        if (xf_toml_peek(r, 0) == ']') {
            break;
        }
        struct xf_toml_value *item = NULL;
        XF_TRY(parse_value(r, depth + 1, &item));
        add_item(r, v, item);
        XF_TRY(skip_space(r));
        if (xf_toml_peek(r, 0) == ']') {
            break;
        }
        if (xf_toml_peek(r, 0) != ',') {
            return unexpected(r, "',' or ']'");
        }
        r->off++;
    }
    r->off++;
    v->array.cap = 0; /* closed */
    return XF_OK;
}

/* key = value, into `table` or the tables that a dotted key names below it. */
static enum xf_code parse_pair(struct xf_toml_reader *r, struct xf_toml_value *table)
{
    struct key_path key = {.n = 0};
    XF_TRY(parse_key(r, &key));
    if (xf_toml_peek(r, 0) != '=') {
        return unexpected(r, "'='");
    }
    r->off++;
    skip_blanks(r);
    for (size_t i = 0; i + 1 < key.n; i++) {
        struct xf_toml_entry *e = find(table, key.parts[i]);
        if (e == NULL) {
            XF_TRY(add_table(r, table, &key, i, ORIGIN_DOTTED, &table));
        } else if (e->value->type == XF_TOML_TABLE && e->value->table.origin == ORIGIN_DOTTED) {
            table = e->value;
        } else {
            return already(r, &key, i, e);
        }
    }
    const struct xf_toml_entry *first = find(table, key.parts[key.n - 1]);
    if (first != NULL) {
        return already(r, &key, key.n - 1, first);
    }
    struct xf_toml_value *value = NULL;
    XF_TRY(parse_value(r, (size_t)table->table.depth + 1, &value));
    return add_entry(r, table, key.parts[key.n - 1], key.pos[key.n - 1], value);
}

static enum xf_code parse_inline_table(struct xf_toml_reader *r, struct xf_toml_value *v)
{
    r->off++;
    skip_blanks(r);
    if (xf_toml_peek(r, 0) == '}') {
        r->off++;
        return XF_OK;
    }
    for (;;) {
        skip_blanks(r);
        XF_TRY(parse_pair(r, v));
        skip_blanks(r);
        if (xf_toml_peek(r, 0) == '}') {
            r->off++;
            return XF_OK;
        }
        if (xf_toml_peek(r, 0) != ',') {
            return unexpected(r, "',' or '}' (an inline table stands on one line)");
        }
        r->off++;
    }
}

static enum xf_code parse_value(struct xf_toml_reader *r, size_t depth, struct xf_toml_value **out)
{
    struct xf_toml_pos pos = xf_toml_pos_here(r);
    int c = xf_toml_peek(r, 0);
    if (c == '{') {
        XF_TRY(check_depth(r, depth));
        *out = new_table(r, pos, depth, ORIGIN_INLINE);
        return parse_inline_table(r, *out);
    }
    struct xf_toml_value *v = xf_arena_calloc(&r->doc->arena, 1, sizeof(*v));
    v->pos = pos;
    *out = v;
    if (c == '[') {
        XF_TRY(check_depth(r, depth));
        return parse_array(r, depth, v);
    }
    if (c == '"' || c == '\'') {
        v->type = XF_TOML_STRING;
        return xf_toml_scan_string(r, true, &v->str);
    }
    return xf_toml_scan_plain(r, v);
}

/* ---- headers ------------------------------------------------------------------------------------
 */

/* The table that holds a header's last part. */
static enum xf_code
walk_header(struct xf_toml_reader *r, const struct key_path *key, struct xf_toml_value **table)
{
    for (size_t i = 0; i + 1 < key->n; i++) {
        const struct xf_toml_entry *e = find(*table, key->parts[i]);
        if (e == NULL) {
            XF_TRY(add_table(r, *table, key, i, ORIGIN_PATH, table));
        } else if (e->value->type == XF_TOML_TABLE && e->value->table.origin != ORIGIN_INLINE) {
            *table = e->value;
        } else if (is_open_array(e->value)) {
            *table = e->value->array.items[e->value->array.len - 1];
        } else {
            return already(r, key, i, e);
        }
    }
    return XF_OK;
}

static enum xf_code
open_table(struct xf_toml_reader *r, const struct key_path *key, struct xf_toml_value **table)
{
    XF_TRY(walk_header(r, key, table));
    size_t last = key->n - 1;
    const struct xf_toml_entry *e = find(*table, key->parts[last]);
    if (e == NULL) {
        return add_table(r, *table, key, last, ORIGIN_HEADER, table);
    }
    if (e->value->type != XF_TOML_TABLE || e->value->table.origin != ORIGIN_PATH) {
        return already(r, key, last, e);
    }
    *table = e->value;
    (*table)->table.origin = ORIGIN_HEADER;
    (*table)->pos = key->pos[last];
    return XF_OK;
}

static enum xf_code
open_array_item(struct xf_toml_reader *r, const struct key_path *key, struct xf_toml_value **table)
{
    XF_TRY(walk_header(r, key, table));
    size_t last = key->n - 1;
    size_t depth = (size_t)(*table)->table.depth + 1;
    const struct xf_toml_entry *e = find(*table, key->parts[last]);
    struct xf_toml_value *array = NULL;
    if (e == NULL) {
        array = xf_arena_calloc(&r->doc->arena, 1, sizeof(*array));
        array->type = XF_TOML_ARRAY;
        array->pos = key->pos[last];
        XF_TRY(add_entry(r, *table, key->parts[last], key->pos[last], array));
    } else if (is_open_array(e->value)) {
        array = e->value;
    } else {
        return already(r, key, last, e);
    }
    XF_TRY(check_depth(r, depth + 1));
    *table = new_table(r, key->pos[last], depth + 1, ORIGIN_HEADER);
    add_item(r, array, *table);
    return XF_OK;
}

/* The reader is at '['. *table becomes the table that the following pairs go to. */
static enum xf_code parse_header(struct xf_toml_reader *r, struct xf_toml_value **table)
{
    bool array = xf_toml_starts(r, "[[");
    struct key_path key = {.n = 0};
    r->off += array ? 2 : 1;
    XF_TRY(parse_key(r, &key));
    if (!xf_toml_starts(r, array ? "]]" : "]")) {
        return unexpected(r, array ? "']]'" : "']'");
    }
    r->off += array ? 2 : 1;
    *table = r->doc->root;
    return array ? open_array_item(r, &key, table) : open_table(r, &key, table);
}

/* ---- the document -------------------------------------------------------------------------------
 */

/* Length of the well-formed UTF-8 sequence at p, 0 if it is not one. */
static size_t utf8_len(const char *p, size_t len)
{
    unsigned char c = (unsigned char)p[0];
    size_t n = 1;
    if (c >= 0xF0) {
        n = 4;
    } else if (c >= 0xE0) {
        n = 3;
    } else if (c >= 0x80) {
        n = 2;
    }
    return n <= len && xf_str_is_utf8(xf_str_n(p, n)) ? n : 0;
}

/* Stops at the first bad byte, with its place. */
static enum xf_code check_utf8(struct xf_toml_reader *r)
{
    if (xf_str_is_utf8(r->text)) {
        return XF_OK;
    }
    while (r->off < r->text.len) {
        size_t n = utf8_len(r->text.ptr + r->off, r->text.len - r->off);
        if (n == 0) {
            return xf_toml_fail(
                r, "byte 0x%02X: the text is not UTF-8", (unsigned)xf_toml_peek(r, 0));
        }
        if (!xf_toml_newline(r)) {
            r->off += n;
        }
    }
    return xf_toml_fail(r, "the text is not UTF-8");
}

static enum xf_code parse_document(struct xf_toml_reader *r)
{
    struct xf_toml_value *table = r->doc->root;
    XF_TRY(check_utf8(r));
    if (xf_toml_starts(r, "\xEF\xBB\xBF")) {
        r->off += 3;
        r->line_off = 3;
    }
    for (;;) {
        XF_TRY(skip_space(r));
        int c = xf_toml_peek(r, 0);
        if (c < 0) {
            return XF_OK;
        }
        if (c == '[') {
            XF_TRY(parse_header(r, &table));
        } else {
            XF_TRY(parse_pair(r, table));
        }
        XF_TRY(end_line(r));
    }
}

/* Long names keep their end, which tells more. */
static struct xf_str copy_name(struct xf_toml *doc, struct xf_str name)
{
    bool cut = name.len > NAME_MAX_SHOWN;
    struct xf_str tail = cut ? xf_str_sub(name, name.len - NAME_MAX_SHOWN, name.len) : name;
    char *p = xf_arena_calloc(&doc->arena, tail.len + 3, 1);
    size_t n = 0;
    if (cut) {
        memcpy(p, "...", 3);
        n = 3;
    }
    if (tail.len > 0) {
        memcpy(p + n, tail.ptr, tail.len);
    }
    return xf_str_n(p, n + tail.len);
}

enum xf_code
xf_toml_parse(struct xf_str text, struct xf_str name, struct xf_toml **out, struct xf_err *err)
{
    XF_AUTO(xf_toml) doc = xf_xcalloc(1, sizeof(*doc));
    doc->name = copy_name(doc, name);
    struct xf_toml_reader r = {.text = text, .line = 1, .col = 1, .doc = doc, .err = err};
    *out = NULL;
    if (text.len > XF_TOML_INPUT_MAX) {
        return XF_FAIL(err,
                       XF_E_CONFIG,
                       "%.*s: %zu bytes; at most %d are read",
                       XF_STR_ARG(doc->name),
                       text.len,
                       XF_TOML_INPUT_MAX);
    }
    doc->root = new_table(&r, (struct xf_toml_pos){1, 1}, 0, ORIGIN_HEADER);
    r.c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (r.c_locale == (locale_t)0) {
        return XF_FAIL(err, XF_E_IO, "cannot make the C locale");
    }
    enum xf_code code = parse_document(&r);
    freelocale(r.c_locale);
    XF_TRY(code);
    *out = XF_STEAL(doc);
    return XF_OK;
}

const struct xf_toml_value *xf_toml_root(const struct xf_toml *doc)
{
    return doc->root;
}

struct xf_str xf_toml_name(const struct xf_toml *doc)
{
    return doc->name;
}

const struct xf_toml_entry *xf_toml_get(const struct xf_toml_value *table, struct xf_str key)
{
    XF_ASSERT(table->type == XF_TOML_TABLE);
    return find(table, key);
}

const char *xf_toml_type_name(enum xf_toml_type type)
{
    static const char *const names[XF_TOML_TYPE_N] = {
        [XF_TOML_STRING] = "string",
        [XF_TOML_INT] = "integer",
        [XF_TOML_FLOAT] = "float",
        [XF_TOML_BOOL] = "boolean",
        [XF_TOML_DATETIME] = "date-time",
        [XF_TOML_LOCAL_DATETIME] = "local date-time",
        [XF_TOML_LOCAL_DATE] = "local date",
        [XF_TOML_LOCAL_TIME] = "local time",
        [XF_TOML_ARRAY] = "array",
        [XF_TOML_TABLE] = "table",
    };
    return (unsigned)type < XF_TOML_TYPE_N ? names[type] : "value";
}

/* Days since 1970-01-01 of a date of the Gregorian calendar; years are counted from March. */
static int64_t days_of(int year, int month, int day)
{
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t of_era = y - era * 400;
    int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

int64_t xf_toml_time_ms(const struct xf_toml_time *t)
{
    int64_t minutes =
        days_of(t->year, t->month, t->day) * 1440 + t->hour * 60 + t->minute - t->offset_min;
    return (minutes * 60 + t->second) * 1000 + t->nanosecond / 1000000;
}
