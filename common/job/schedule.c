/* schedule.c - limits by the time of day. */
#include "common/job/schedule.h"

#include "common/base/conf.h"

#include <time.h>

enum { MINUTES_OF_DAY = 24 * 60, SHOWN_MAX = 80 };
static const uint64_t bytes_s_min = 1000;
static const uint64_t requests_s_max = 10000000;

static bool parse_requests(struct xf_str s, uint64_t *out)
{
    struct xf_str unit = XF_STR_LIT("/s");

    if (xf_str_ends(s, unit)) {
        s = xf_str_sub(s, 0, s.len - unit.len);
    }
    return xf_str_u64(s, out) && *out >= 1 && *out <= requests_s_max;
}

static bool parse_limit(struct xf_str s, enum xf_schedule_unit unit, uint64_t *out)
{
    if (xf_str_eq_c(s, "off")) {
        *out = 0;
        return true;
    }
    return unit == XF_SCHEDULE_BYTES_S ? xf_conf_parse_rate(s, out) && *out >= bytes_s_min
                                       : parse_requests(s, out);
}

static bool parse_time(struct xf_str s, uint16_t *minute)
{
    uint64_t h;
    uint64_t m;

    if (s.len != 5 || s.ptr[2] != ':' || !xf_str_u64(xf_str_sub(s, 0, 2), &h) ||
        !xf_str_u64(xf_str_sub(s, 3, 5), &m) || h > 23 || m > 59) {
        return false;
    }
    *minute = (uint16_t)(h * 60 + m);
    return true;
}

static enum xf_code fail(struct xf_str what, enum xf_schedule_unit unit, struct xf_err *err)
{
    return XF_FAIL(err,
                   XF_E_INVAL,
                   "'%.*s' is no limit: write %s, \"off\", or times as in \"08:00,%s 20:00,off\"",
                   XF_STR_ARG(xf_str_sub(what, 0, SHOWN_MAX)),
                   unit == XF_SCHEDULE_BYTES_S ? "a rate such as \"10Gbit/s\"" : "\"500/s\"",
                   unit == XF_SCHEDULE_BYTES_S ? "2Gbit/s" : "500/s");
}

/* The next word; empty at the end. */
static struct xf_str next_word(struct xf_str *rest)
{
    size_t at = 0;
    size_t end;

    while (at < rest->len && rest->ptr[at] == ' ') {
        at++;
    }
    end = at;
    while (end < rest->len && rest->ptr[end] != ' ') {
        end++;
    }
    struct xf_str word = xf_str_sub(*rest, at, end);
    *rest = xf_str_sub(*rest, end, rest->len);
    return word;
}

static enum xf_code
add_entry(struct xf_schedule *s, struct xf_str word, enum xf_schedule_unit unit, struct xf_err *err)
{
    size_t comma = xf_str_find(word, ',', 0);
    struct xf_schedule_entry e;

    if (comma == SIZE_MAX || !parse_time(xf_str_sub(word, 0, comma), &e.minute) ||
        !parse_limit(xf_str_sub(word, comma + 1, word.len), unit, &e.limit)) {
        return fail(word, unit, err);
    }
    if (s->n > 0 && e.minute <= s->at[s->n - 1].minute) {
        return XF_FAIL(
            err, XF_E_INVAL, "'%.*s' comes at or before the time ahead of it", XF_STR_ARG(word));
    }
    if (s->n == XF_SCHEDULE_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "more than %d times of day", XF_SCHEDULE_MAX);
    }
    s->at[s->n++] = e;
    return XF_OK;
}

enum xf_code xf_schedule_parse(struct xf_str text,
                               enum xf_schedule_unit unit,
                               struct xf_schedule *out,
                               struct xf_err *err)
{
    struct xf_schedule s = {.n = 0};
    struct xf_str rest = text;
    struct xf_str word = next_word(&rest);
    uint64_t limit;

    if (text.len > XF_SCHEDULE_TEXT_MAX) {
        return XF_FAIL(err, XF_E_INVAL, "a limit of more than %d characters", XF_SCHEDULE_TEXT_MAX);
    }
    if (parse_limit(word, unit, &limit)) {
        if (next_word(&rest).len > 0) {
            return fail(text, unit, err);
        }
        s = (struct xf_schedule){.at = {{.limit = limit}}, .n = limit > 0 ? 1 : 0};
        *out = s;
        return XF_OK;
    }
    for (; word.len > 0; word = next_word(&rest)) {
        XF_TRY(add_entry(&s, word, unit, err));
    }
    *out = s;
    return XF_OK;
}

uint64_t xf_schedule_at(const struct xf_schedule *s, unsigned minute)
{
    size_t i = s->n;

    while (i > 0 && s->at[i - 1].minute > minute) {
        i--;
    }
    /* before the first: what the day before ended with */
    return s->n == 0 ? 0 : s->at[i > 0 ? i - 1 : s->n - 1].limit;
}

unsigned xf_schedule_minute(int64_t wall_ms)
{
    time_t seconds = (time_t)(wall_ms / 1000);
    struct tm tm;

    if (localtime_r(&seconds, &tm) == NULL) {
        return 0; /* a year beyond an int's: nobody's clock */
    }
    return (unsigned)(tm.tm_hour * 60 + tm.tm_min) % MINUTES_OF_DAY;
}
