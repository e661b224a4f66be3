/*
 * toml_int.h - what toml.c (document, keys, tables) and toml_scan.c (single values) share; private
 * to both.
 */
#ifndef XF_BASE_TOML_INT_H
#define XF_BASE_TOML_INT_H

#include "common/base/arena.h"
#include "common/base/toml.h"

#include <locale.h>

struct xf_toml {
    struct xf_arena arena; /* everything in the tree */
    struct xf_toml_value *root;
    struct xf_str name;
};

/* The reader's place in the text. `off` never passes text.len. */
struct xf_toml_reader {
    struct xf_str text;
    size_t off;
    uint32_t line;
    size_t line_off; /* where the line begins */
    size_t col_off;  /* columns are counted on from the last place asked for */
    uint32_t col;
    locale_t c_locale; /* for strtod, whatever the program's locale is */
    struct xf_toml *doc;
    struct xf_err *err;
};

/* The byte at the reader's place plus `ahead`, or -1 at the end. */
int xf_toml_peek(const struct xf_toml_reader *r, size_t ahead);

bool xf_toml_starts(const struct xf_toml_reader *r, const char *word);

/* Consume a line end (LF or CRLF) at the reader's place; false if there is none. */
bool xf_toml_newline(struct xf_toml_reader *r);

struct xf_toml_pos xf_toml_pos_here(struct xf_toml_reader *r);

/* Make the error "NAME:LINE:COL: text" at the reader's place. */
__attribute__((format(printf, 2, 3))) enum xf_code
xf_toml_fail(struct xf_toml_reader *r, const char *fmt, ...);

/* As xf_toml_fail(), at a place seen before. */
__attribute__((format(printf, 3, 4))) enum xf_code
xf_toml_fail_at(struct xf_toml_reader *r, struct xf_toml_pos pos, const char *fmt, ...);

/* Read one string at an opening quote; `multiline` allows the triple-quoted forms (keys do not have
 * them). */
enum xf_code xf_toml_scan_string(struct xf_toml_reader *r, bool multiline, struct xf_str *out);

/* Read a boolean, number, date or time into `v`; stops after its last character. */
enum xf_code xf_toml_scan_plain(struct xf_toml_reader *r, struct xf_toml_value *v);

#endif
