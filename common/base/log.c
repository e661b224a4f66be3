/*
 * log.c - formats one line in memory and writes it with one write(2).
 *
 * Level, format and descriptor are process-wide atomics: they are set at start and by a reload,
 * and read by every thread.
 */
#include "common/base/log.h"

#include "common/base/clock.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

enum { LINE_MAX_BYTES = 16 * 1024 };

static _Atomic int log_level = XF_LOG_INFO;
static _Atomic bool log_json;
static _Atomic int log_fd = STDERR_FILENO;

static const char *const level_names[] = {"debug", "info", "warn", "error"};

void xf_log_set_level(enum xf_log_level level)
{
    atomic_store(&log_level, (int)level);
}

void xf_log_set_json(bool json)
{
    atomic_store(&log_json, json);
}

void xf_log_set_fd(int fd)
{
    atomic_store(&log_fd, fd);
}

bool xf_log_wants(enum xf_log_level level)
{
    return (int)level >= atomic_load_explicit(&log_level, memory_order_relaxed);
}

enum xf_code xf_log_init_env(struct xf_err *err)
{
    const char *level = getenv("XFER_LOG");         /* NOLINT(concurrency-mt-unsafe): at start */
    const char *format = getenv("XFER_LOG_FORMAT"); /* NOLINT(concurrency-mt-unsafe): at start */

    if (level != NULL && level[0] != '\0') {
        size_t i = 0;
        while (i < 4 && strcmp(level, level_names[i]) != 0) {
            i++;
        }
        if (i == 4) {
            return XF_FAIL(
                err, XF_E_CONFIG, "XFER_LOG is '%s': use debug, info, warn or error", level);
        }
        xf_log_set_level((enum xf_log_level)i);
    }
    if (format != NULL && format[0] != '\0') {
        bool json = strcmp(format, "json") == 0;
        if (!json && strcmp(format, "logfmt") != 0) {
            return XF_FAIL(err, XF_E_CONFIG, "XFER_LOG_FORMAT is '%s': use logfmt or json", format);
        }
        xf_log_set_json(json);
    }
    return XF_OK;
}

static void put_json_string(struct xf_buf *b, struct xf_str s)
{
    struct xf_buf shown;

    xf_buf_init(&shown, LINE_MAX_BYTES);
    xf_buf_put_escaped(&shown, s);
    xf_buf_put_byte(b, '"');
    for (size_t i = 0; i < shown.len; i++) {
        char c = shown.ptr[i];
        if (c == '"' || c == '\\') {
            xf_buf_put_byte(b, '\\');
        }
        xf_buf_put_byte(b, c);
    }
    xf_buf_put_byte(b, '"');
    xf_buf_fini(&shown);
}

static bool plain_word(struct xf_str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char c = (unsigned char)s.ptr[i];
        if (c <= 0x20 || c >= 0x7f || c == '"' || c == '=' || c == '\\') {
            return false;
        }
    }
    return s.len > 0;
}

static void put_value(struct xf_buf *b, const struct xf_field *f, bool json)
{
    switch (f->type) {
    case XF_FIELD_STR:
        if (!json && plain_word(f->v.str)) {
            xf_buf_put(b, f->v.str);
        } else {
            put_json_string(b, f->v.str);
        }
        break;
    case XF_FIELD_U64: xf_buf_putf(b, "%llu", (unsigned long long)f->v.u64); break;
    case XF_FIELD_I64: xf_buf_putf(b, "%lld", (long long)f->v.i64); break;
    case XF_FIELD_F64:
        if (isfinite(f->v.f64)) {
            xf_buf_putf(b, "%.6g", f->v.f64);
        } else {
            xf_buf_put_c(b, "null");
        }
        break;
    case XF_FIELD_BOOL: xf_buf_put_c(b, f->v.flag ? "true" : "false"); break;
    case XF_FIELD_SECRET: xf_buf_put_c(b, json ? "\"***\"" : "***"); break;
    }
}

static void put_field(struct xf_buf *b, const struct xf_field *f, bool json)
{
    if (json) {
        xf_buf_putf(b, ",\"%s\":", f->key);
    } else {
        xf_buf_putf(b, " %s=", f->key);
    }
    put_value(b, f, json);
}

void xf_log_event(enum xf_log_level level,
                  const char *event,
                  const struct xf_field *fields,
                  size_t n)
{
    bool json = atomic_load(&log_json);
    struct xf_buf line;
    char ts[XF_TIME_TEXT_MAX];

    xf_buf_init(&line, LINE_MAX_BYTES);
    xf_time_rfc3339(xf_clock_wall_ms(xf_clock_real()), true, ts);
    xf_buf_put_c(&line, json ? "{\"ts\":\"" : "ts=");
    xf_buf_put_c(&line, ts);
    xf_buf_put_c(&line, json ? "\",\"level\":\"" : " level=");
    xf_buf_put_c(&line, level_names[level]);
    xf_buf_put_c(&line, json ? "\",\"event\":\"" : " event=");
    xf_buf_put_c(&line, event);
    xf_buf_put_c(&line, json ? "\"" : "");
    for (size_t i = 0; i < n; i++) {
        put_field(&line, &fields[i], json);
    }
    if (json) {
        xf_buf_put_byte(&line, '}');
    }
    if (line.full) {
        /* The values did not fit: keep the line well-formed by telling only that. */
        xf_buf_reset(&line);
        const char *fmt_cut = json ? "{\"event\":\"log.cut\",\"of\":\"" : "event=log.cut of=";
        xf_buf_put_c(&line, fmt_cut);
        xf_buf_put_c(&line, event);
        xf_buf_put_c(&line, json ? "\"}" : "");
    }
    xf_buf_put_byte(&line, '\n');
    ssize_t done;
    do {
        done = write(atomic_load(&log_fd), line.ptr, line.len);
    } while (done < 0 && errno == EINTR);
    xf_buf_fini(&line); /* a log line that cannot be written has nowhere to complain */
}
