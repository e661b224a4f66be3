/*
 * toml.h - a strict TOML 1.0 reader: a text in, a tree of values with their places out.
 *
 * Everything the standard forbids is refused: bare carriage returns, bytes that are not UTF-8,
 * leading zeros, a key or table defined twice, numbers that do not fit. Errors read "FILE:LINE:COL:
 * what is wrong"; lines and columns count from 1, columns in characters.
 *
 * Bounded: input size, keys in one table and nesting, by the limits below. A parse reads no file,
 * clock or locale. A document is immutable after the parse, so several threads may read it.
 */
#ifndef XF_BASE_TOML_H
#define XF_BASE_TOML_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define XF_TOML_INPUT_MAX (1024 * 1024) /* bytes of text */
#define XF_TOML_DEPTH_MAX 64   /* tables and arrays inside each other, dotted keys included */
#define XF_TOML_KEYS_MAX  4096 /* keys in one table */

enum xf_toml_type {
    XF_TOML_STRING,
    XF_TOML_INT,
    XF_TOML_FLOAT,
    XF_TOML_BOOL,
    XF_TOML_DATETIME,       /* date, time and offset from UTC */
    XF_TOML_LOCAL_DATETIME, /* date and time */
    XF_TOML_LOCAL_DATE,
    XF_TOML_LOCAL_TIME,
    XF_TOML_ARRAY,
    XF_TOML_TABLE,
    XF_TOML_TYPE_N
};

struct xf_toml_pos {
    uint32_t line; /* from 1 */
    uint32_t col;  /* characters, from 1 */
};

/* Fields that the value's type does not have are 0. */
struct xf_toml_time {
    int year;       /* 0 to 9999 */
    int month;      /* 1 to 12 */
    int day;        /* 1 to 31, right for the month */
    int hour;       /* 0 to 23 */
    int minute;     /* 0 to 59 */
    int second;     /* 0 to 60 */
    int nanosecond; /* further digits are cut off */
    int offset_min; /* minutes east of UTC */
};

struct xf_toml_value;

/* One key of a table, in the order of the text. */
struct xf_toml_entry {
    struct xf_str key;      /* decoded: the text between quotes, escapes resolved */
    struct xf_toml_pos pos; /* of the key */
    struct xf_toml_value *value;
};

struct xf_toml_array {
    struct xf_toml_value **items;
    size_t len;
    size_t cap; /* the parser's own */
};

struct xf_toml_table {
    struct xf_toml_entry *entries;
    size_t len;
    size_t cap;     /* the parser's own, as the next two */
    uint8_t origin; /* how the text defined it; see toml.c */
    uint8_t depth;
};

struct xf_toml_value {
    enum xf_toml_type type;
    struct xf_toml_pos pos; /* of the value; of the header for [table] and [[table]] */
    union {
        struct xf_str str; /* UTF-8; may hold NUL characters */
        int64_t i;
        double f;
        bool b;
        struct xf_toml_time time;
        struct xf_toml_array array;
        struct xf_toml_table table;
    };
};

struct xf_toml; /* opaque: a parsed document */

/**
 * Parse a whole document.
 *
 * text  the bytes; may be freed after the call. At most XF_TOML_INPUT_MAX.
 * name  what errors call the text (a file name); shortened from the left when long.
 * out   the document; the caller owns it: xf_toml_free().
 *
 * Errors: XF_E_CONFIG  the text is not TOML 1.0 or is above a limit; err->msg says where.
 */
XF_MUST_CHECK enum xf_code
xf_toml_parse(struct xf_str text, struct xf_str name, struct xf_toml **out, struct xf_err *err);

void xf_toml_free(struct xf_toml *doc);
XF_AUTO_DEFINE(xf_toml, xf_toml_free)

/* The table that holds the document; always of type XF_TOML_TABLE. Borrowed. */
const struct xf_toml_value *xf_toml_root(const struct xf_toml *doc);

/* The name given to the parse, shortened as errors show it. Borrowed. */
struct xf_str xf_toml_name(const struct xf_toml *doc);

/* The entry of a key in a table, or NULL. `table` must be of type XF_TOML_TABLE. */
const struct xf_toml_entry *xf_toml_get(const struct xf_toml_value *table, struct xf_str key);

/* "string", "integer", "array": the type's name for messages. */
const char *xf_toml_type_name(enum xf_toml_type type);

/**
 * Milliseconds since 1970-01-01T00:00:00Z of an XF_TOML_DATETIME (offset applied); the other types
 * with a date are read as UTC. Leap seconds count as the second after.
 */
int64_t xf_toml_time_ms(const struct xf_toml_time *t);

#endif
