/* clock.c - real clocks and the date formats of S3. No time zone but UTC is known here. */
#include "common/base/clock.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static int64_t read_ms(clockid_t id)
{
    struct timespec ts;

    if (clock_gettime(id, &ts) != 0) {
        return 0; /* cannot happen for these two ids on Linux */
    }
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static int64_t real_mono(void *arg)
{
    (void)arg; /* the real clock has no state */
    return read_ms(CLOCK_MONOTONIC);
}

static int64_t real_wall(void *arg)
{
    (void)arg; /* the real clock has no state */
    return read_ms(CLOCK_REALTIME);
}

const struct xf_clock *xf_clock_real(void)
{
    static const struct xf_clock real = {real_mono, real_wall, NULL};

    return &real;
}

int64_t xf_clock_mono_ms(const struct xf_clock *c)
{
    return c->mono_ms(c->arg);
}

int64_t xf_clock_wall_ms(const struct xf_clock *c)
{
    return c->wall_ms(c->arg);
}

int64_t xf_clock_mono_ns(void)
{
    struct timespec ts;

    if (clock_gettime(CLOCK_MONOTONIC, &ts) != 0) {
        return 0; /* cannot happen on Linux */
    }
    return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static const char *const months[] = {
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
static const char *const week_days[] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};

int64_t xf_time_days(int64_t year, int month, int day)
{
    /* Counts from March so that the leap day is the last of the year. */
    int64_t y = month <= 2 ? year - 1 : year;
    int64_t era = (y >= 0 ? y : y - 399) / 400;
    int64_t yoe = y - era * 400;
    int64_t doy = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int64_t doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;

    return era * 146097 + doe - 719468;
}

static void split(int64_t wall_ms, struct tm *tm, int *ms)
{
    int64_t sec = wall_ms / 1000;
    int64_t rest = wall_ms % 1000;

    if (rest < 0) {
        rest += 1000;
        sec--;
    }
    time_t t = (time_t)sec;
    memset(tm, 0, sizeof(*tm));
    (void)gmtime_r(&t, tm); /* fails only beyond year 2^31; the zero date is printed then */
    *ms = (int)rest;
}

static void put(char out[XF_TIME_TEXT_MAX], int n)
{
    if (n < 0 || n >= XF_TIME_TEXT_MAX) {
        out[0] = '\0';
    }
}

void xf_time_rfc3339(int64_t wall_ms, bool with_ms, char out[XF_TIME_TEXT_MAX])
{
    struct tm tm;
    int ms;

    split(wall_ms, &tm, &ms);
    char frac[8] = "";
    if (with_ms) {
        (void)snprintf(frac, sizeof(frac), ".%03d", ms); /* 0..999 always fits */
    }
    put(out,
        snprintf(out,
                 XF_TIME_TEXT_MAX,
                 "%04d-%02d-%02dT%02d:%02d:%02d%sZ",
                 tm.tm_year + 1900,
                 tm.tm_mon + 1,
                 tm.tm_mday,
                 tm.tm_hour,
                 tm.tm_min,
                 tm.tm_sec,
                 frac));
}

void xf_time_amz(int64_t wall_ms, char out[XF_TIME_TEXT_MAX])
{
    struct tm tm;
    int ms;

    split(wall_ms, &tm, &ms);
    put(out,
        snprintf(out,
                 XF_TIME_TEXT_MAX,
                 "%04d%02d%02dT%02d%02d%02dZ",
                 tm.tm_year + 1900,
                 tm.tm_mon + 1,
                 tm.tm_mday,
                 tm.tm_hour,
                 tm.tm_min,
                 tm.tm_sec));
}

void xf_time_http(int64_t wall_ms, char out[XF_TIME_TEXT_MAX])
{
    struct tm tm;
    int ms;

    split(wall_ms, &tm, &ms);
    put(out,
        snprintf(out,
                 XF_TIME_TEXT_MAX,
                 "%s, %02d %s %04d %02d:%02d:%02d GMT",
                 week_days[tm.tm_wday],
                 tm.tm_mday,
                 months[tm.tm_mon],
                 tm.tm_year + 1900,
                 tm.tm_hour,
                 tm.tm_min,
                 tm.tm_sec));
}

/* Exactly n digits at s[*at]. */
static bool digits(struct xf_str s, size_t *at, size_t n, int *out)
{
    int v = 0;

    if (*at + n > s.len) {
        return false;
    }
    for (size_t i = 0; i < n; i++) {
        char c = s.ptr[*at + i];
        if (c < '0' || c > '9') {
            return false;
        }
        v = v * 10 + (c - '0');
    }
    *at += n;
    *out = v;
    return true;
}

static bool lit(struct xf_str s, size_t *at, char c)
{
    if (*at >= s.len || s.ptr[*at] != c) {
        return false;
    }
    (*at)++;
    return true;
}

static bool date_ok(int y, int mo, int d)
{
    static const int len[] = {31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};

    if (mo < 1 || mo > 12 || d < 1 || d > len[mo - 1]) {
        return false;
    }
    bool leap = (y % 4 == 0 && y % 100 != 0) || y % 400 == 0;
    return mo != 2 || d < 29 || leap;
}

static bool time_ok(int h, int mi, int sec)
{
    return h <= 23 && mi <= 59 && sec <= 60;
}

static bool parse_zone(struct xf_str s, size_t *at, int *offset_min)
{
    int h;
    int m;

    *offset_min = 0;
    if (lit(s, at, 'Z')) {
        return true;
    }
    bool minus = *at < s.len && s.ptr[*at] == '-';
    if (!lit(s, at, '+') && !lit(s, at, '-')) {
        return false;
    }
    if (!digits(s, at, 2, &h) || !lit(s, at, ':') || !digits(s, at, 2, &m) || h > 23 || m > 59) {
        return false;
    }
    *offset_min = (minus ? -1 : 1) * (h * 60 + m);
    return true;
}

bool xf_time_parse_rfc3339(struct xf_str s, int64_t *wall_ms)
{
    size_t at = 0;
    int y;
    int mo;
    int d;
    int h;
    int mi;
    int sec;
    int ms = 0;
    int offset_min;

    if (!digits(s, &at, 4, &y) || !lit(s, &at, '-') || !digits(s, &at, 2, &mo) ||
        !lit(s, &at, '-') || !digits(s, &at, 2, &d) || !lit(s, &at, 'T')) {
        return false;
    }
    if (!digits(s, &at, 2, &h) || !lit(s, &at, ':') || !digits(s, &at, 2, &mi) ||
        !lit(s, &at, ':') || !digits(s, &at, 2, &sec)) {
        return false;
    }
    if (lit(s, &at, '.')) {
        int digit;
        int scale = 100;
        size_t start = at;
        while (digits(s, &at, 1, &digit)) {
            ms += digit * scale;
            scale /= 10;
        }
        if (at == start) {
            return false;
        }
    }
    if (!parse_zone(s, &at, &offset_min) || at != s.len || !date_ok(y, mo, d) ||
        !time_ok(h, mi, sec)) {
        return false;
    }
    int64_t seconds =
        xf_time_days(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec - (int64_t)offset_min * 60;
    *wall_ms = seconds * 1000 + ms;
    return true;
}

static bool month_of(struct xf_str s, size_t *at, int *month)
{
    for (int i = 0; i < 12; i++) {
        if (xf_str_eq_c(xf_str_sub(s, *at, *at + 3), months[i])) {
            *at += 3;
            *month = i + 1;
            return true;
        }
    }
    return false;
}

bool xf_time_parse_http(struct xf_str s, int64_t *wall_ms)
{
    size_t at = 5; /* the day's name is redundant and not checked */
    int y;
    int mo;
    int d;
    int h;
    int mi;
    int sec;

    if (s.len != 29 || s.ptr[3] != ',' || s.ptr[4] != ' ') {
        return false;
    }
    if (!digits(s, &at, 2, &d) || !lit(s, &at, ' ') || !month_of(s, &at, &mo) ||
        !lit(s, &at, ' ') || !digits(s, &at, 4, &y) || !lit(s, &at, ' ')) {
        return false;
    }
    if (!digits(s, &at, 2, &h) || !lit(s, &at, ':') || !digits(s, &at, 2, &mi) ||
        !lit(s, &at, ':') || !digits(s, &at, 2, &sec) ||
        !xf_str_eq_c(xf_str_sub(s, at, s.len), " GMT")) {
        return false;
    }
    if (!date_ok(y, mo, d) || !time_ok(h, mi, sec)) {
        return false;
    }
    *wall_ms = (xf_time_days(y, mo, d) * 86400 + h * 3600 + mi * 60 + sec) * 1000;
    return true;
}
