/*
 * xml_filter.c - the rewriting described in xml_filter.h, one byte at a time with a fast way for
 * plain text.
 *
 *            '<'             letter            '>'
 *   TEXT ---------> LT ------------> START ----------> TEXT (depth + 1)
 *    |  ^            | '/'  END  '>' ------------------> TEXT (depth - 1)
 *    |  '& ... ;'    | '?'  PI  '?>'
 *    +-> REF         | '!'  BANG -> COMMENT '-->' or CDATA ']]>'
 */
#include "common/s3/xml_filter.h"

enum state { TEXT, LT, START, QUOTED, END, PI, BANG, COMMENT, CDATA, REF };

void xf_xml_filter_init(struct xf_xml_filter *f)
{
    *f = (struct xf_xml_filter){.state = TEXT};
}

/* One byte of character data. */
static void put_text(struct xf_buf *out, unsigned char c)
{
    static const char digits[] = "0123456789abcdef";
    bool is_control = c < 0x20 && c != '\t' && c != '\n';

    if (!is_control && c != '<' && c != '>' && c != '&') {
        xf_buf_put_byte(out, (char)c);
        return;
    }
    xf_buf_put_c(out, is_control ? "&#x1" : "&#x");
    xf_buf_put_byte(out, digits[c >> 4]);
    xf_buf_put_byte(out, digits[c & 15]);
    xf_buf_put_byte(out, ';');
}

static void put_utf8(struct xf_buf *out, uint32_t cp)
{
    if (cp < 0x80) {
        put_text(out, (unsigned char)cp);
        return;
    }
    if (cp < 0x800) {
        put_text(out, (unsigned char)(0xc0 | (cp >> 6)));
    } else if (cp < 0x10000) {
        put_text(out, (unsigned char)(0xe0 | (cp >> 12)));
        put_text(out, (unsigned char)(0x80 | ((cp >> 6) & 0x3f)));
    } else {
        put_text(out, (unsigned char)(0xf0 | (cp >> 18)));
        put_text(out, (unsigned char)(0x80 | ((cp >> 12) & 0x3f)));
        put_text(out, (unsigned char)(0x80 | ((cp >> 6) & 0x3f)));
    }
    put_text(out, (unsigned char)(0x80 | (cp & 0x3f)));
}

static int digit_value(char c, unsigned base)
{
    int value = -1;

    if (c >= '0' && c <= '9') {
        value = c - '0';
    } else if (c >= 'a' && c <= 'f') {
        value = c - 'a' + 10;
    } else if (c >= 'A' && c <= 'F') {
        value = c - 'A' + 10;
    }
    return value >= 0 && (unsigned)value < base ? value : -1;
}

/* `#...` of a numeric reference. */
static bool put_number(struct xf_buf *out, struct xf_str ref)
{
    unsigned base = ref.len > 1 && ref.ptr[1] == 'x' ? 16 : 10;
    size_t from = base == 16 ? 2 : 1;
    uint32_t cp = 0;

    if (ref.len == from) {
        return false;
    }
    for (size_t i = from; i < ref.len; i++) {
        int value = digit_value(ref.ptr[i], base);

        if (value < 0 || cp > 0x10ffff) {
            return false;
        }
        cp = cp * base + (uint32_t)value;
    }
    if (cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff)) {
        return false;
    }
    put_utf8(out, cp);
    return true;
}

static bool put_ref(struct xf_buf *out, struct xf_str ref)
{
    static const struct {
        const char *name;
        char c;
    } names[] = {{"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};

    if (ref.len > 0 && ref.ptr[0] == '#') {
        return put_number(out, ref);
    }
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (xf_str_eq_c(ref, names[i].name)) {
            put_text(out, (unsigned char)names[i].c);
            return true;
        }
    }
    return false;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static const char *on_text(struct xf_xml_filter *f, char c, struct xf_buf *out)
{
    if (c == '<') {
        f->state = LT;
    } else if (f->depth == 0) {
        if (!is_blank(c)) {
            return "text outside of the root element";
        }
    } else if (c == '&') {
        f->state = REF;
        f->n = 0;
    } else {
        put_text(out, (unsigned char)c);
    }
    return NULL;
}

static const char *on_lt(struct xf_xml_filter *f, char c, struct xf_buf *out)
{
    f->prev = '\0';
    f->n = 0;
    if (c == '?') {
        f->state = PI;
        return NULL;
    }
    if (c == '!') {
        f->state = BANG;
        return NULL;
    }
    if (!f->started) {
        f->started = true;
        xf_buf_put_c(out, "<?xml version=\"1.0\" encoding=\"ISO-8859-1\"?>");
    }
    xf_buf_put_byte(out, '<');
    xf_buf_put_byte(out, c);
    f->state = c == '/' ? END : START;
    return c == '>' ? "empty tag" : NULL;
}

/* Inside a tag; its end moves the depth. */
static const char *on_tag(struct xf_xml_filter *f, char c, struct xf_buf *out)
{
    xf_buf_put_byte(out, c);
    if (f->state == QUOTED) {
        f->state = c == f->quote ? START : QUOTED;
    } else if (c == '<') {
        return "'<' inside a tag";
    } else if (f->state == START && (c == '"' || c == '\'')) {
        f->state = QUOTED;
        f->quote = c;
    } else if (c == '>') {
        if (f->state == START && f->prev != '/') {
            f->depth++;
        } else if (f->state == END) {
            if (f->depth == 0) {
                return "end tag without a start";
            }
            f->depth--;
        }
        f->state = TEXT;
    }
    f->prev = c;
    return NULL;
}

static const char *on_bang(struct xf_xml_filter *f, char c)
{
    f->held[f->n++] = c;
    if (f->n == 2 && memcmp(f->held, "--", 2) == 0) {
        f->state = COMMENT;
        f->n = 0;
    } else if (f->n == 7) {
        if (memcmp(f->held, "[CDATA[", 7) != 0 || f->depth == 0) {
            return "DOCTYPE or declaration";
        }
        f->state = CDATA;
        f->n = 0;
    } else if (c == '>') {
        return "DOCTYPE or declaration";
    }
    return NULL;
}

/* f->n counts how much of the end mark was seen. */
static void on_comment(struct xf_xml_filter *f, char c)
{
    if (c == '-') {
        f->n = f->n < 2 ? f->n + 1 : 2;
    } else {
        f->state = c == '>' && f->n == 2 ? TEXT : COMMENT;
        f->n = 0;
    }
}

static void on_cdata(struct xf_xml_filter *f, char c, struct xf_buf *out)
{
    if (c == ']') {
        if (f->n == 2) {
            put_text(out, ']');
        } else {
            f->n++;
        }
        return;
    }
    if (c == '>' && f->n == 2) {
        f->state = TEXT;
        return;
    }
    for (; f->n > 0; f->n--) {
        put_text(out, ']');
    }
    put_text(out, (unsigned char)c);
}

static const char *on_ref(struct xf_xml_filter *f, char c, struct xf_buf *out)
{
    if (c == ';') {
        f->state = TEXT;
        return put_ref(out, (struct xf_str){f->held, f->n}) ? NULL : "unknown reference";
    }
    if (f->n == XF_XML_REF_MAX) {
        return "reference without end";
    }
    f->held[f->n++] = c;
    return NULL;
}

static const char *on_byte(struct xf_xml_filter *f, char c, struct xf_buf *out)
{
    switch ((enum state)f->state) {
    case TEXT: return on_text(f, c, out);
    case LT: return on_lt(f, c, out);
    case START:
    case QUOTED:
    case END: return on_tag(f, c, out);
    case PI:
        f->state = c == '>' && f->prev == '?' ? TEXT : PI;
        f->prev = c;
        return NULL;
    case BANG: return on_bang(f, c);
    case COMMENT: on_comment(f, c); return NULL;
    case CDATA: on_cdata(f, c, out); return NULL;
    case REF: return on_ref(f, c, out);
    }
    return "impossible state";
}

static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c != '<' && c != '>' && c != '&';
}

/* A byte order mark may stand before everything. */
static bool is_bom(const struct xf_xml_filter *f, unsigned char c)
{
    static const unsigned char bom[] = {0xef, 0xbb, 0xbf};

    return !f->started && f->state == TEXT && f->seen < sizeof(bom) && c == bom[f->seen];
}

static bool is_plain_in_tag(unsigned char c)
{
    return c != '>' && c != '<' && c != '"' && c != '\'';
}

/* Copy what needs no look from `at` on; gives where it ends. */
static size_t
run_plain(struct xf_xml_filter *f, const char *data, size_t at, size_t len, struct xf_buf *out)
{
    bool in_tag = f->state == START || f->state == END;
    size_t from = at;

    if (!in_tag && (f->state != TEXT || f->depth == 0)) {
        return at;
    }
    while (at < len && (in_tag ? is_plain_in_tag((unsigned char)data[at])
                               : is_plain((unsigned char)data[at]))) {
        at++;
    }
    if (at > from) {
        xf_buf_put_mem(out, data + from, at - from);
        f->prev = data[at - 1];
    }
    return at;
}

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

/* A whole tag without attributes, from its '<' at `at`: most of a listing is made of them. Gives
 * where it ends, or `at` when it is anything else, or not all here. */
static size_t
run_tag(struct xf_xml_filter *f, const char *data, size_t at, size_t len, struct xf_buf *out)
{
    bool is_end = len - at > 1 && data[at + 1] == '/';
    size_t to = at + (is_end ? 2 : 1);

    if (f->state != TEXT || f->depth == 0 || data[at] != '<' || to >= len ||
        !is_name_start(data[to])) {
        return at;
    }
    while (to < len && is_plain_in_tag((unsigned char)data[to])) {
        to++;
    }
    if (to == len || data[to] != '>') {
        return at;
    }
    if (is_end) {
        f->depth--;
    } else if (data[to - 1] != '/') {
        f->depth++;
    }
    f->prev = '>';
    xf_buf_put_mem(out, data + at, to + 1 - at);
    return to + 1;
}

const char *
xf_xml_filter_run(struct xf_xml_filter *f, const char *data, size_t len, struct xf_buf *out)
{
    for (size_t i = 0; i < len; i++) {
        const char *wrong;
        size_t from;

        do {
            from = i;
            i = run_plain(f, data, i, len, out);
            i = i < len ? run_tag(f, data, i, len, out) : i;
        } while (i > from && i < len);
        if (i == len) {
            break;
        }
        if (f->depth == 0 && f->state == TEXT && !is_blank(data[i])) {
            bool skip = is_bom(f, (unsigned char)data[i]);

            f->seen++;
            if (skip) {
                continue;
            }
        }
        wrong = on_byte(f, data[i], out);
        if (wrong != NULL) {
            return wrong;
        }
    }
    return NULL;
}

/* The first byte from 0x80 on at or after `at`, or len. */
static size_t skip_ascii(const unsigned char *text, size_t at, size_t len)
{
    uint64_t eight;

    for (; len - at >= sizeof(eight); at += sizeof(eight)) {
        memcpy(&eight, text + at, sizeof(eight));
        if ((eight & UINT64_C(0x8080808080808080)) != 0) {
            break;
        }
    }
    while (at < len && text[at] < 0x80) {
        at++;
    }
    return at;
}

void xf_xml_unfilter(struct xf_buf *out, const unsigned char *text, size_t len)
{
    size_t from = 0;

    for (size_t i = 0; i < len; i++) {
        i = skip_ascii(text, i, len);
        if (i == len) {
            break;
        }
        xf_buf_put_mem(out, text + from, i - from);
        if (i + 1 < len) { /* two bytes: U+0080 to U+011F, whose low eight bits are the byte */
            xf_buf_put_byte(out,
                            (char)(unsigned char)(((text[i] & 3U) << 6) | (text[i + 1] & 0x3fU)));
        }
        i++;
        from = i + 1;
    }
    if (from < len) {
        xf_buf_put_mem(out, text + from, len - from);
    }
}
