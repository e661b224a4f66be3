/* tui.c - text for people, made from the status objects that scripts get as well. */
#include "ctl/tui.h"

#include "common/base/clock.h"

#include <math.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum {
    WIDTH_DEFAULT = 80,
    WIDTH_MIN = 20,
    HEIGHT_DEFAULT = 24,
    HEIGHT_MIN = 4,
    BAR_MAX = 40,
    INDENT = 3,
    ID_MIN = 5,
    ID_MAX = 40
};

void xf_tui_init(struct xf_tui *t, int fd)
{
    const char *term = getenv("TERM");         /* NOLINT(concurrency-mt-unsafe): at start */
    const char *no_color = getenv("NO_COLOR"); /* NOLINT(concurrency-mt-unsafe): at start */
    struct winsize size;

    t->terminal = isatty(fd) == 1 && term != NULL && strcmp(term, "dumb") != 0 && term[0] != '\0';
    t->color = t->terminal && (no_color == NULL || no_color[0] == '\0');
    t->width = WIDTH_DEFAULT;
    t->height = HEIGHT_DEFAULT;
    if (t->terminal && ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0) {
        t->width = size.ws_col < WIDTH_MIN ? WIDTH_MIN : size.ws_col;
        t->height = size.ws_row < HEIGHT_MIN ? HEIGHT_MIN : size.ws_row;
    }
}

void xf_tui_put_bytes(struct xf_buf *b, double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t u = 0;

    while (bytes >= 1000 && u + 1 < XF_ARRAY_LEN(units)) {
        bytes /= 1024;
        u++;
    }
    xf_buf_putf(b, u == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[u]);
}

void xf_tui_put_count(struct xf_buf *b, uint64_t n)
{
    char text[32];
    size_t len = 0;

    do {
        if (len % 4 == 3) {
            text[len++] = ',';
        }
        text[len++] = (char)('0' + n % 10);
        n /= 10;
    } while (n > 0);
    while (len > 0) {
        xf_buf_put_byte(b, text[--len]);
    }
}

void xf_tui_put_seconds(struct xf_buf *b, double s)
{
    if (!isfinite(s) || s < 0) {
        xf_buf_put_byte(b, '-');
        return;
    }
    uint64_t all = (uint64_t)s;
    unsigned sec = (unsigned)(all % 60);
    unsigned min = (unsigned)(all / 60 % 60);
    unsigned hour = (unsigned)(all / 3600 % 24);
    unsigned day = (unsigned)(all / 86400);
    if (day > 0) {
        xf_buf_putf(b, "%u d ", day);
    }
    if (day > 0 || hour > 0) {
        xf_buf_putf(b, "%02u:", hour);
    }
    xf_buf_putf(b, "%02u:%02u", min, sec);
}

void xf_tui_put_bar(struct xf_buf *b, double part, size_t width)
{
    size_t cells = width > 3 ? width - 2 : 1;
    size_t full = part <= 0 ? 0 : part >= 1 ? cells : (size_t)(part * (double)cells);

    xf_buf_put_byte(b, '[');
    for (size_t i = 0; i < cells; i++) {
        xf_buf_put_byte(b, i < full ? '#' : '.');
    }
    xf_buf_put_byte(b, ']');
}

struct figures {
    uint64_t listed, copied, skipped, failed, vanished, archived, in_flight, pending;
    uint64_t bytes_listed, bytes_copied;
    double objects_s, bytes_s;
};

static void read_figures(const struct xf_json *st, struct figures *f)
{
    const struct xf_json *o = xf_json_get(st, "objects");
    const struct xf_json *by = xf_json_get(st, "bytes");
    const struct xf_json *rate = xf_json_get(st, "rate");

    *f = (struct figures){
        .listed = xf_json_get_u64(o, "listed", 0),
        .copied = xf_json_get_u64(o, "copied", 0),
        .skipped = xf_json_get_u64(o, "skipped", 0),
        .failed = xf_json_get_u64(o, "failed", 0),
        .vanished = xf_json_get_u64(o, "vanished", 0),
        .archived = xf_json_get_u64(o, "archived", 0),
        .in_flight = xf_json_get_u64(o, "in_flight", 0),
        .pending = xf_json_get_u64(o, "pending", 0),
        .bytes_listed = xf_json_get_u64(by, "listed", 0),
        .bytes_copied = xf_json_get_u64(by, "copied", 0),
        .objects_s = xf_json_get_f64(rate, "objects_s", 0),
        .bytes_s = xf_json_get_f64(rate, "bytes_s", 0),
    };
}

static uint64_t ended(const struct figures *f)
{
    return f->copied + f->skipped + f->failed + f->vanished + f->archived;
}

/* Bytes of `s` that fill a line of `width`: up to the last gap between figures, else between words,
 * else as many as fit, never a part of a character. */
static size_t fit(struct xf_str s, size_t width)
{
    size_t at = 0;

    if (s.len <= width) {
        return s.len;
    }
    for (size_t i = 1; i <= width; i++) {
        if (s.ptr[i] == ' ' && s.ptr[i - 1] != ' ') {
            bool gap = i + 1 < s.len && s.ptr[i + 1] == ' ';
            bool had_gap = at > 0 && s.ptr[at + 1] == ' ';
            at = gap || !had_gap ? i : at;
        }
    }
    if (at > 0) {
        return at;
    }
    at = width;
    while (at > 1 && ((unsigned char)s.ptr[at] & 0xc0U) == 0x80U) {
        at--;
    }
    return at;
}

/* Appends what was gathered: lines of at most `width` bytes, the later ones indented as `indent`.
 */
static void put_line(struct xf_buf *b, struct xf_buf *line, size_t indent, size_t width)
{
    struct xf_str s = xf_buf_view(line);
    size_t lead = 0;

    while (lead < s.len && s.ptr[lead] == ' ') {
        lead++;
    }
    s = (struct xf_str){.ptr = s.ptr + lead, .len = s.len - lead};
    while (s.len > 0 && s.ptr[s.len - 1] == ' ') {
        s.len--;
    }
    do {
        for (size_t i = 0; i < lead; i++) {
            xf_buf_put_byte(b, ' ');
        }
        size_t n = fit(s, width - lead);
        xf_buf_put(b, (struct xf_str){.ptr = s.ptr, .len = n});
        xf_buf_put_byte(b, '\n');
        while (n < s.len && s.ptr[n] == ' ') {
            n++;
        }
        s = (struct xf_str){.ptr = s.ptr + n, .len = s.len - n};
        lead = indent;
    } while (s.len > 0);
    xf_buf_reset(line);
}

static void put_named(struct xf_buf *line, const char *name, uint64_t n)
{
    xf_buf_putf(line, "  %s ", name);
    xf_tui_put_count(line, n);
}

static void put_optional(struct xf_buf *line, const char *name, uint64_t n)
{
    if (n > 0) {
        put_named(line, name, n);
    }
}

static void put_escaped_c(struct xf_buf *b, const char *text)
{
    xf_buf_put_escaped(b, xf_str_c(text));
}

/* What an agent says, while none can do the work. */
static void put_detail(struct xf_buf *b, const struct xf_json *st)
{
    const char *detail = xf_json_get_c(st, "detail", NULL);

    if (detail != NULL) {
        xf_buf_put_c(b, ": ");
        put_escaped_c(b, detail);
    }
}

static int64_t time_of(const struct xf_json *st, const char *name)
{
    int64_t ms = 0;

    return xf_time_parse_rfc3339(xf_str_c(xf_json_get_c(st, name, "")), &ms) ? ms : 0;
}

/* How fast it is; of a job that has ended how long it took, and how fast it was. */
static void put_pace(struct xf_buf *line, const struct xf_json *st, const struct figures *f)
{
    int64_t started_ms = time_of(st, "started_at");
    int64_t finished_ms = time_of(st, "finished_at");
    double s = (double)(finished_ms - started_ms) / 1000.0;

    if (finished_ms == 0) {
        xf_buf_putf(line, "  %.0f objects/s  ", f->objects_s);
        xf_tui_put_bytes(line, f->bytes_s);
        xf_buf_put_c(line, "/s  eta ");
        xf_tui_put_seconds(line, xf_json_get_f64(st, "eta_s", -1));
    } else if (started_ms != 0) {
        xf_buf_put_c(line, "  took ");
        xf_tui_put_seconds(line, s);
        s = s < 1 ? 1 : s; /* times are whole seconds */
        xf_buf_putf(line, "  %.0f objects/s  ", (double)ended(f) / s);
        xf_tui_put_bytes(line, (double)f->bytes_copied / s);
        xf_buf_put_c(line, "/s");
    }
}

void xf_tui_put_job(struct xf_buf *b, const struct xf_json *st, const struct xf_tui *t)
{
    struct figures f;
    XF_AUTO_BUF line = {0};
    const struct xf_json *listing = xf_json_get(st, "listing");
    const char *reason = xf_json_get_c(st, "reason", NULL);
    bool complete = xf_json_get_bool(listing, "complete", false);

    xf_buf_init(&line, 0);
    read_figures(st, &f);
    put_escaped_c(&line, xf_json_get_c(st, "id", "?"));
    xf_buf_put_byte(&line, ' ');
    put_escaped_c(&line, xf_json_get_c(st, "name", ""));
    const char *state = xf_json_get_c(st, "state", "?");
    xf_buf_putf(&line, "  %s", state);
    if (strcmp(state, "running") == 0) {
        xf_buf_putf(&line, " (%s)", xf_json_get_c(st, "phase", "?"));
    }
    if (reason != NULL && strcmp(reason, state) != 0) {
        xf_buf_put_c(&line, ": ");
        put_escaped_c(&line, reason);
    }
    put_detail(&line, st);
    put_line(b, &line, INDENT, t->width);

    double part = f.listed == 0 ? 0 : (double)ended(&f) / (double)f.listed;
    size_t bar = t->width / 2 > BAR_MAX ? BAR_MAX : t->width / 2;
    xf_buf_put_c(&line, "  ");
    xf_tui_put_bar(&line, part, bar);
    xf_buf_putf(&line, " %5.1f%% of ", part * 100);
    xf_tui_put_count(&line, f.listed);
    xf_buf_put_c(&line, complete ? " listed" : " listed so far");
    put_line(b, &line, INDENT, t->width);

    xf_buf_put_c(&line, " ");
    put_named(&line, "copied", f.copied);
    put_optional(&line, "skipped", f.skipped);
    put_optional(&line, "vanished", f.vanished);
    put_optional(&line, "archived", f.archived);
    put_named(&line, "failed", f.failed);
    put_named(&line, "in flight", f.in_flight);
    put_named(&line, "pending", f.pending);
    put_line(b, &line, INDENT, t->width);

    xf_buf_put_c(&line, "   ");
    xf_tui_put_bytes(&line, (double)f.bytes_copied);
    xf_buf_put_c(&line, " of ");
    xf_tui_put_bytes(&line, (double)f.bytes_listed);
    put_pace(&line, st, &f);
    put_optional(&line, "retries", xf_json_get_u64(st, "retries", 0));
    put_optional(&line, "throttled", xf_json_get_u64(st, "throttled", 0));
    put_optional(&line, "attributes dropped", xf_json_get_u64(st, "attributes_dropped", 0));
    put_line(b, &line, INDENT, t->width);
}

void xf_tui_put_window(struct xf_buf *b, struct xf_str text, const struct xf_tui *t)
{
    struct xf_str rest = text;
    struct xf_str line;
    size_t n = 0;

    for (size_t i = 0; i < text.len; i++) {
        n += text.ptr[i] == '\n';
    }
    /* The cursor stands on a row of its own behind the last line. */
    size_t shown = n < t->height ? n : t->height - 2;
    for (size_t i = 0; i < shown && xf_str_cut(&rest, '\n', &line); i++) {
        xf_buf_put(b, line);
        xf_buf_put_byte(b, '\n');
    }
    if (shown < n) {
        xf_buf_putf(b, "... no room for %zu more lines\n", n - shown);
    }
}

void xf_tui_put_job_line(struct xf_buf *b, const struct xf_json *st)
{
    struct figures f;
    const char *reason = xf_json_get_c(st, "reason", NULL);

    read_figures(st, &f);
    put_escaped_c(b, xf_json_get_c(st, "id", "?"));
    xf_buf_putf(b, " %s", xf_json_get_c(st, "state", "?"));
    if (reason != NULL) {
        xf_buf_put_c(b, " (");
        put_escaped_c(b, reason);
        xf_buf_put_c(b, ")");
    }
    put_detail(b, st);
    xf_buf_putf(b,
                " listed=%llu%s copied=%llu failed=%llu in_flight=%llu pending=%llu objects_s=%.0f "
                "bytes_s=%.0f",
                (unsigned long long)f.listed,
                xf_json_get_bool(xf_json_get(st, "listing"), "complete", false) ? "" : "+",
                (unsigned long long)f.copied,
                (unsigned long long)f.failed,
                (unsigned long long)f.in_flight,
                (unsigned long long)f.pending,
                f.objects_s,
                f.bytes_s);
}

static int id_width(const struct xf_json *agents)
{
    size_t width = ID_MIN;

    for (size_t i = 0; i < xf_json_len(agents); i++) {
        size_t len = strlen(xf_json_get_c(xf_json_at(agents, i), "id", "?"));
        width = len > width ? len : width;
    }
    return (int)(width < ID_MAX ? width : ID_MAX);
}

static void put_agent(struct xf_buf *line, const struct xf_json *a, int id_cells)
{
    XF_AUTO_BUF id = {0};
    XF_AUTO_BUF rate = {0};

    xf_buf_init(&id, 0);
    xf_buf_init(&rate, 0);
    put_escaped_c(&id, xf_json_get_c(a, "id", "?"));
    xf_tui_put_bytes(&rate, xf_json_get_f64(a, "bytes_s", 0));
    xf_buf_putf(line,
                "%-*s  %-8s  %9llu  %6llu  %9.0f  %10s/s  %4.0f s",
                id_cells,
                id.ptr,
                xf_json_get_c(a, "state", "?"),
                (unsigned long long)xf_json_get_u64(a, "in_flight", 0),
                (unsigned long long)xf_json_get_u64(a, "leases", 0),
                xf_json_get_f64(a, "objects_s", 0),
                rate.ptr,
                xf_json_get_f64(a, "last_seen_s", 0));
}

void xf_tui_put_agents(struct xf_buf *b, const struct xf_json *agents, const struct xf_tui *t)
{
    XF_AUTO_BUF line = {0};
    int id_cells = id_width(agents);

    if (xf_json_len(agents) == 0) {
        xf_buf_put_c(b, "no agents\n");
        return;
    }
    xf_buf_init(&line, 0);
    xf_buf_putf(&line,
                "%-*s  %-8s  %9s  %6s  %9s  %12s  %6s",
                id_cells,
                "agent",
                "state",
                "in flight",
                "leases",
                "objects/s",
                "rate",
                "seen");
    put_line(b, &line, INDENT, t->width);
    for (size_t i = 0; i < xf_json_len(agents); i++) {
        const struct xf_json *a = xf_json_at(agents, i);
        const char *reason = xf_json_get_c(a, "reason", "");
        put_agent(&line, a, id_cells);
        put_line(b, &line, INDENT, t->width);
        if (reason[0] != '\0') {
            xf_buf_put_c(&line, "   ");
            put_escaped_c(&line, reason);
            put_line(b, &line, INDENT, t->width);
        }
    }
}
