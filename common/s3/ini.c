/*
 * ini.c - the shared files' lines.
 */
#include "common/s3/ini.h"

#include "common/base/file.h"
#include "common/base/mem.h"

struct parser {
    const char *path;
    struct xf_str name;
    bool is_config;
    bool inside; /* of the wanted section */
    bool any_section;
    bool after_key; /* an indented line may follow */
    unsigned line;
    struct xf_ini_section *out;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* `[name]`, in a config file `[profile name]` or `[default]`; other kinds of sections are passed
 * over. */
static enum xf_code parse_section(struct parser *p, struct xf_str text, struct xf_err *err)
{
    size_t end = xf_str_find(text, ']', 0);
    struct xf_str name;
    struct xf_str rest;

    if (end == SIZE_MAX) {
        return XF_FAIL(err, XF_E_CREDS, "%s:%u: section without ']'", p->path, p->line);
    }
    rest = xf_str_trim(xf_str_sub(text, end + 1, text.len));
    if (rest.len > 0 && rest.ptr[0] != '#' && rest.ptr[0] != ';') {
        return XF_FAIL(err, XF_E_CREDS, "%s:%u: text after ']'", p->path, p->line);
    }
    name = xf_str_trim(xf_str_sub(text, 1, end));
    if (name.len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "%s:%u: section without a name", p->path, p->line);
    }
    p->any_section = true;
    p->after_key = false;
    p->inside = false;
    if (p->is_config && !xf_str_eq_c(name, "default")) {
        if (!xf_str_starts(name, XF_STR_LIT("profile")) || name.len < 9 || !is_blank(name.ptr[7])) {
            return XF_OK;
        }
        name = xf_str_trim(xf_str_sub(name, 8, name.len));
    }
    if (name.len >= 2 && (name.ptr[0] == '"' || name.ptr[0] == '\'') &&
        name.ptr[name.len - 1] == name.ptr[0]) {
        name = xf_str_sub(name, 1, name.len - 1);
    }
    p->inside = xf_str_eq(name, p->name);
    p->out->found = p->out->found || p->inside;
    return XF_OK;
}

static enum xf_code parse_option(struct parser *p, struct xf_str text, struct xf_err *err)
{
    struct xf_ini_section *out = p->out;
    size_t eq = xf_str_find(text, '=', 0);
    struct xf_str key;

    if (eq == SIZE_MAX) {
        return XF_FAIL(
            err, XF_E_CREDS, "%s:%u: neither a section nor 'key = value'", p->path, p->line);
    }
    if (!p->any_section) {
        return XF_FAIL(err, XF_E_CREDS, "%s:%u: option before the first section", p->path, p->line);
    }
    key = xf_str_trim(xf_str_sub(text, 0, eq));
    if (key.len == 0) {
        return XF_FAIL(err, XF_E_CREDS, "%s:%u: '=' without a key", p->path, p->line);
    }
    p->after_key = true;
    if (!p->inside) {
        return XF_OK;
    }
    if (out->n == XF_INI_OPTIONS_MAX) {
        return XF_FAIL(err,
                       XF_E_CREDS,
                       "%s:%u: more than %d options in a section",
                       p->path,
                       p->line,
                       XF_INI_OPTIONS_MAX);
    }
    out->options[out->n++] = (struct xf_ini_option){
        .key = key,
        .value = xf_str_trim(xf_str_sub(text, eq + 1, text.len)),
        .line = p->line,
    };
    return XF_OK;
}

static enum xf_code parse_line(struct parser *p, struct xf_str line, struct xf_err *err)
{
    struct xf_str text = xf_str_trim(line);

    if (text.len == 0 || text.ptr[0] == '#' || text.ptr[0] == ';') {
        return XF_OK;
    }
    if (is_blank(line.ptr[0])) {
        if (!p->after_key) {
            return XF_FAIL(
                err, XF_E_CREDS, "%s:%u: indented line that belongs to no key", p->path, p->line);
        }
        return XF_OK; /* a sub-key, such as those below `s3 =` */
    }
    return text.ptr[0] == '[' ? parse_section(p, text, err) : parse_option(p, text, err);
}

static enum xf_code parse_all(struct parser *p, struct xf_err *err)
{
    struct xf_str rest = xf_buf_view(&p->out->text);
    struct xf_str line;

    if (xf_str_starts(rest, XF_STR_LIT("\xef\xbb\xbf"))) {
        rest = xf_str_sub(rest, 3, rest.len);
    }
    while (xf_str_cut(&rest, '\n', &line)) {
        p->line++;
        XF_TRY(parse_line(p, line, err));
    }
    return XF_OK;
}

enum xf_code xf_ini_parse(const char *path,
                          struct xf_str text,
                          struct xf_str name,
                          bool is_config,
                          struct xf_ini_section *out,
                          struct xf_err *err)
{
    struct parser p = {.path = path, .name = name, .is_config = is_config, .out = out};

    xf_buf_put(&out->text, text);
    return parse_all(&p, err);
}

enum xf_code xf_ini_read(const char *path,
                         struct xf_str name,
                         bool is_config,
                         struct xf_ini_section *out,
                         struct xf_err *err)
{
    struct parser p = {.path = path, .name = name, .is_config = is_config, .out = out};
    enum xf_code code;

    xf_buf_init(&out->text, XF_INI_FILE_MAX_BYTES);
    code = xf_file_read(path, XF_INI_FILE_MAX_BYTES, &out->text, err);
    if (code == XF_E_NOT_FOUND) {
        xf_err_clear(err);
        return XF_OK;
    }
    if (code != XF_OK) {
        err->code = XF_E_CREDS;
        return XF_E_CREDS;
    }
    return parse_all(&p, err);
}

const struct xf_ini_option *xf_ini_get(const struct xf_ini_section *section, const char *key)
{
    for (size_t i = section->n; i > 0; i--) {
        if (xf_str_eq_nocase(section->options[i - 1].key, xf_str_c(key))) {
            return &section->options[i - 1];
        }
    }
    return NULL;
}

void xf_ini_fini(struct xf_ini_section *section)
{
    if (section->text.ptr != NULL) {
        xf_wipe(section->text.ptr, section->text.cap);
    }
    xf_buf_fini(&section->text);
    section->n = 0;
}
