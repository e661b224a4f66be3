/*
 * conf.h - options as a table: one row makes the parser, the checks, the help and the template.
 *
 * A table describes the fields of a caller's struct. xf_conf_load() fills the struct with defaults,
 * then with what a TOML document says. Anything else than a known option in its range stops the
 * load: "FILE:LINE:COL: what is wrong", with the range, or the nearest known name. The struct's
 * strings are owned by the struct xf_conf that comes with it. One owner; no global state.
 *
 * The C type of a field, by the option's type:
 *   BOOL bool                       STRING struct xf_str, NUL behind the bytes (never NULL, maybe
 * empty) INT int64_t                     ENUM   int: the index in `names` SIZE uint64_t, bytes LIST
 * struct xf_conf_list RATE uint64_t, bytes a second   WHEN   struct xf_conf_when DURATION int64_t,
 * milliseconds
 */
#ifndef XF_BASE_CONF_H
#define XF_BASE_CONF_H

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xf_toml;
struct xf_json;
struct xf_conf; /* opaque: the strings and places behind a filled struct */

#define XF_CONF_LIST_MAX   1000 /* strings in one list */
#define XF_CONF_STRING_MAX 4096 /* bytes in one string, when the row sets no smaller max */

enum xf_conf_type {
    XF_CONF_SECTION, /* not an option: names [section] and gives its help */
    XF_CONF_BOOL,
    XF_CONF_INT,
    XF_CONF_SIZE,
    XF_CONF_RATE,
    XF_CONF_DURATION,
    XF_CONF_STRING,
    XF_CONF_ENUM,
    XF_CONF_LIST,
    XF_CONF_WHEN,
    XF_CONF_SWITCH,
    XF_CONF_TYPE_N
};

/* A boolean whose default depends on other options. */
enum xf_conf_switch { XF_CONF_UNSET, XF_CONF_OFF, XF_CONF_ON };

struct xf_conf_list {
    const struct xf_str *items;
    size_t len;
};

/* A moment: a duration back from a start the caller knows, or a time. */
struct xf_conf_when {
    bool is_set;
    bool is_age; /* ms counts back from the start; else ms is Unix time */
    int64_t ms;
};

enum xf_conf_flags {
    XF_CONF_RELOAD = 1, /* may change while the program runs */
    XF_CONF_SECRET = 2, /* the value is shown by nobody */
    XF_CONF_LATER =
        4, /* known but not built: refused as not supported yet; not in help or template */
    XF_CONF_REFUSED =
        8, /* known only to be refused with `help` as the reason; not in help or template */
    XF_CONF_SHOWN = 16 /* the template has it as a setting, not as a comment */
};

struct xf_conf_opt {
    const char *name; /* "store.max_bytes"; without a dot: at the top of the file; LATER and REFUSED
                       * keys may be "*.key": in any section */
    enum xf_conf_type type;
    unsigned flags; /* enum xf_conf_flags */
    size_t offset;  /* of the field */
    int64_t min;    /* INT, SIZE, RATE, DURATION: in the field's unit; STRING: bytes; LIST: items */
    int64_t max;    /* as min; 0: no bound but the type's */
    const char *const *names; /* ENUM: the values, ended by NULL */
    const char *unit;         /* INT: what it counts; else NULL */
    const char *def;          /* default as xf_conf_set() takes it; NULL: zero or empty */
    const char *def_note;     /* what an absent option means, when def does not say it */
    const char *example;      /* TOML text for the template; NULL: the default */
    const char *help;         /* one or two sentences; for LATER and REFUSED: advice, or NULL */
};

struct xf_conf_table {
    const struct xf_conf_opt *opts; /* an option stands after its section's row */
    size_t n;
    size_t size;      /* of the struct that the offsets point into */
    const char *what; /* one line, opens help and template */
};

/**
 * Set every field: default, then what `doc` says (NULL: defaults only).
 *
 * values  table->size bytes; zeroed first. Its strings live until xf_conf_free(*out).
 *
 * Errors: XF_E_CONFIG       unknown option, wrong type, out of range; says where.
 *         XF_E_UNSUPPORTED  an option that is known but not built yet.
 */
XF_MUST_CHECK enum xf_code xf_conf_load(const struct xf_conf_table *table,
                                        const struct xf_toml *doc,
                                        void *values,
                                        struct xf_conf **out,
                                        struct xf_err *err);

/** The same from a file; XF_E_CONFIG also when it cannot be read. */
XF_MUST_CHECK enum xf_code xf_conf_load_file(const struct xf_conf_table *table,
                                             const char *path,
                                             void *values,
                                             struct xf_conf **out,
                                             struct xf_err *err);

/**
 * Set one option from a text, as a command line gives it ("64MiB", "true"; a list is one item
 * more). `name` must be in the table. Errors as above, without a place.
 */
XF_MUST_CHECK enum xf_code
xf_conf_set(struct xf_conf *c, const char *name, struct xf_str text, struct xf_err *err);

/** Was the option in the document, or set? */
bool xf_conf_is_set(const struct xf_conf *c, const char *name);

/** Make the error "FILE:LINE:COL: text" at an option's value (or without a place), code
 * XF_E_CONFIG. */
enum xf_code
xf_conf_fail(const struct xf_conf *c, struct xf_err *err, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

/** Copy bytes into the conf's memory, with a NUL behind them. */
struct xf_str xf_conf_keep(struct xf_conf *c, struct xf_str s);

void xf_conf_free(struct xf_conf *c);
XF_AUTO_DEFINE(xf_conf, xf_conf_free)

/* ---- what else a table gives; none shows a SECRET value -----------------------------------------
 */

/** --help-config: every option with type, range, unit, default and text. */
void xf_conf_put_help(const struct xf_conf_table *table, struct xf_buf *out);

/** A commented TOML file: options with an example or default; LATER options are left out. */
void xf_conf_put_template(const struct xf_conf_table *table, struct xf_buf *out);

/** TOML with the options that differ from their default, in table order: equal structs, equal text.
 */
void xf_conf_put_toml(const struct xf_conf_table *table, const void *values, struct xf_buf *out);

/** One JSON object, sections as objects; sizes, rates and durations as numbers. The caller's. */
struct xf_json *xf_conf_to_json(const struct xf_conf_table *table, const void *values);

/* ---- values as text -----------------------------------------------------------------------------
 */

/*
 * Strict: digits, at most three decimals, then a unit, nothing else ("1.5GiB" is exact; "0.1B" is
 * refused). Sizes: B kB MB GB TB PB KiB MiB GiB TiB PiB. Rates: a size unit with "/s", or bit/s
 * kbit/s Mbit/s Gbit/s Tbit/s. Durations: ms s m h d w. False when not of the form or too large for
 * int64_t.
 */
bool xf_conf_parse_size(struct xf_str s, uint64_t *bytes);
bool xf_conf_parse_rate(struct xf_str s, uint64_t *bytes_s);
bool xf_conf_parse_duration(struct xf_str s, int64_t *ms);

/* The shortest exact form, which parses back to the same. */
void xf_conf_put_size(struct xf_buf *out, uint64_t bytes);
void xf_conf_put_rate(struct xf_buf *out, uint64_t bytes_s);
void xf_conf_put_duration(struct xf_buf *out, int64_t ms);

/** A TOML basic string with its quotes. `s` is UTF-8. */
void xf_conf_put_quoted(struct xf_buf *out, struct xf_str s);

/**
 * The word of `words` (ended by NULL) nearest to a mistyped one, or NULL when none is near.
 */
const char *xf_conf_nearest(struct xf_str typed, const char *const *words);

#endif
