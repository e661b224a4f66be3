/*
 * log.h - structured log, one event a line on stderr, as logfmt or JSON.
 *
 *   XF_INFO("part.copied", xf_f_u64("job", id), xf_f_u64("part_no", n));
 *
 * The event is a constant `noun.past_verb`. Fields are typed, so no line can be broken by a value:
 * strings are escaped, secrets print as ***. Level and format come from XFER_LOG and
 * XFER_LOG_FORMAT. Threads: any; a line is one write(2).
 */
#ifndef XF_BASE_LOG_H
#define XF_BASE_LOG_H

#include "common/base/err.h"
#include "common/base/str.h"

enum xf_log_level { XF_LOG_DEBUG, XF_LOG_INFO, XF_LOG_WARN, XF_LOG_ERROR, XF_LOG_OFF };

enum xf_field_type {
    XF_FIELD_STR,
    XF_FIELD_U64,
    XF_FIELD_I64,
    XF_FIELD_F64,
    XF_FIELD_BOOL,
    XF_FIELD_SECRET
};

struct xf_field {
    const char *key; /* [a-z0-9_]+ */
    enum xf_field_type type;
    union {
        struct xf_str str;
        uint64_t u64;
        int64_t i64;
        double f64;
        bool flag;
    } v;
};

static inline struct xf_field xf_f_str(const char *key, struct xf_str v)
{
    return (struct xf_field){key, XF_FIELD_STR, {.str = v}};
}
static inline struct xf_field xf_f_c(const char *key, const char *v)
{
    return (struct xf_field){key, XF_FIELD_STR, {.str = xf_str_c(v)}};
}
static inline struct xf_field xf_f_u64(const char *key, uint64_t v)
{
    return (struct xf_field){key, XF_FIELD_U64, {.u64 = v}};
}
static inline struct xf_field xf_f_i64(const char *key, int64_t v)
{
    return (struct xf_field){key, XF_FIELD_I64, {.i64 = v}};
}
static inline struct xf_field xf_f_ms(const char *key, int64_t v)
{
    return xf_f_i64(key, v);
}
static inline struct xf_field xf_f_f64(const char *key, double v)
{
    return (struct xf_field){key, XF_FIELD_F64, {.f64 = v}};
}
static inline struct xf_field xf_f_bool(const char *key, bool v)
{
    return (struct xf_field){key, XF_FIELD_BOOL, {.flag = v}};
}
static inline struct xf_field xf_f_code(enum xf_code code)
{
    return xf_f_c("code", xf_code_name(code));
}
/** The error's text; its code goes beside it by xf_f_code(). */
static inline struct xf_field xf_f_err(const struct xf_err *err)
{
    return xf_f_c("error", err->msg);
}
/** Prints ***, whatever it is. */
static inline struct xf_field xf_f_secret(const char *key)
{
    return (struct xf_field){key, XF_FIELD_SECRET, {.u64 = 0}};
}

/** Read XFER_LOG (debug|info|warn|error) and XFER_LOG_FORMAT (logfmt|json); a bad value is told. */
XF_MUST_CHECK enum xf_code xf_log_init_env(struct xf_err *err);
void xf_log_set_level(enum xf_log_level level);
void xf_log_set_json(bool json);
/** Another descriptor than 2; tests. */
void xf_log_set_fd(int fd);
bool xf_log_wants(enum xf_log_level level);
void xf_log_event(enum xf_log_level level,
                  const char *event,
                  const struct xf_field *fields,
                  size_t n);

#define XF_LOG_(level, event, ...)                                                         \
    do {                                                                                   \
        if (xf_log_wants(level)) {                                                         \
            const struct xf_field xf_fields_[] = {__VA_ARGS__};                            \
            xf_log_event(                                                                  \
                (level), (event), xf_fields_, sizeof(xf_fields_) / sizeof(xf_fields_[0])); \
        }                                                                                  \
    } while (0)
#define XF_DEBUG(event, ...) XF_LOG_(XF_LOG_DEBUG, event, __VA_ARGS__)
#define XF_INFO(event, ...)  XF_LOG_(XF_LOG_INFO, event, __VA_ARGS__)
#define XF_WARN(event, ...)  XF_LOG_(XF_LOG_WARN, event, __VA_ARGS__)
#define XF_ERROR(event, ...) XF_LOG_(XF_LOG_ERROR, event, __VA_ARGS__)

#endif
