/*
 * opt_help.c - --help and the man page, from the same table as the parser.
 */
#include "common/base/mem.h"
#include "common/base/opt.h"
#include "common/base/opt_int.h"

#include <string.h>

enum { WIDTH = 80, COLUMN_MAX = 30 };

static void put_blanks(struct xf_buf *out, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        xf_buf_put_byte(out, ' ');
    }
}

void xf_opt_put_wrapped(struct xf_buf *out, size_t indent, size_t col, const char *text)
{
    struct xf_str rest = xf_str_c(text);
    struct xf_str word;
    bool is_first = true;
    while (xf_str_cut(&rest, ' ', &word)) {
        if (!is_first && col + 1 + word.len > WIDTH) {
            xf_buf_put_byte(out, '\n');
            col = 0;
            is_first = true;
        }
        if (is_first && col < indent) {
            put_blanks(out, indent - col);
            col = indent;
        } else if (!is_first) {
            xf_buf_put_byte(out, ' ');
            col++;
        }
        xf_buf_put(out, word);
        col += word.len;
        is_first = false;
    }
    xf_buf_put_byte(out, '\n');
}

/* Paragraphs are lines; an empty line separates them. */
static void put_paragraphs(struct xf_buf *out, const char *text)
{
    struct xf_str rest = xf_str_c(text);
    struct xf_str line;
    while (xf_str_cut(&rest, '\n', &line)) {
        XF_AUTO_FREE char *copy = xf_str_dup(line);
        xf_opt_put_wrapped(out, 0, 0, copy);
    }
}

/* Lines as they are, indented. */
static void put_lines(struct xf_buf *out, const char *text)
{
    struct xf_str rest = xf_str_c(text);
    struct xf_str line;
    while (xf_str_cut(&rest, '\n', &line)) {
        xf_buf_put_c(out, line.len > 0 ? "  " : "");
        xf_buf_put(out, line);
        xf_buf_put_byte(out, '\n');
    }
}

/* Help, and behind it in parentheses: choices, default, variable. */
static void put_option_text(const struct xf_opt *o, struct xf_buf *out)
{
    const char *mark = " (";
    xf_buf_put_c(out, o->help);
    if (o->choices != NULL) {
        for (size_t i = 0; o->choices[i] != NULL; i++) {
            xf_buf_putf(out, "%s%s", i == 0 ? " (one of " : ", ", o->choices[i]);
        }
        mark = "; ";
    }
    if (o->def != NULL) {
        xf_buf_putf(out, "%sdefault %s", mark, o->def);
        mark = "; ";
    }
    if (o->env != NULL) {
        xf_buf_putf(out, "%senvironment %s", mark, o->env);
        mark = "; ";
    }
    xf_buf_put_c(out, mark[0] == ';' ? ")" : "");
}

static size_t option_width(const struct xf_opt *o)
{
    return 2 + strlen(o->name) + (o->value != NULL ? 1 + strlen(o->value) : 0);
}

static void put_option(const struct xf_opt *o, size_t column, struct xf_buf *out)
{
    XF_AUTO_BUF text = {0};
    xf_buf_init(&text, 0);
    put_option_text(o, &text);
    xf_buf_putf(
        out, "  --%s%s%s", o->name, o->value != NULL ? " " : "", o->value != NULL ? o->value : "");
    size_t col = 2 + option_width(o);
    if (col + 2 > column) {
        xf_buf_put_byte(out, '\n');
        col = 0;
    }
    xf_opt_put_wrapped(out, column, col, text.ptr);
}

static size_t column_of(const struct xf_opt *opts, size_t n)
{
    size_t column = 0;
    for (size_t i = 0; i < n; i++) {
        size_t need = 2 + option_width(&opts[i]) + 2;
        if (need > column && need <= COLUMN_MAX) {
            column = need;
        }
    }
    return column > 0 ? column : (size_t)COLUMN_MAX;
}

static bool is_same_group(const char *a, const char *b)
{
    return (a == NULL) == (b == NULL) && (a == NULL || strcmp(a, b) == 0);
}

/* One heading for each run of options of a group. */
static void
put_options(const struct xf_opt *opts, size_t n, const char *heading, struct xf_buf *out)
{
    size_t column = column_of(opts, n);
    for (size_t i = 0; i < n; i++) {
        if (i == 0 || !is_same_group(opts[i].group, opts[i - 1].group)) {
            xf_buf_putf(out, "\n%s:\n", opts[i].group != NULL ? opts[i].group : heading);
        }
        put_option(&opts[i], column, out);
    }
}

static void put_usage(const struct xf_opt_prog *p, const struct xf_opt_cmd *c, struct xf_buf *out)
{
    xf_buf_putf(out, "%s [OPTIONS]", p->name);
    if (c != NULL) {
        xf_buf_putf(
            out, " %s%s%s", c->name, c->args != NULL ? " " : "", c->args != NULL ? c->args : "");
    } else if (p->n_cmds > 0) {
        xf_buf_put_c(out, " COMMAND");
    }
    xf_buf_put_byte(out, '\n');
}

static void put_commands(const struct xf_opt_prog *p, struct xf_buf *out)
{
    size_t column = 0;
    for (size_t i = 0; i < p->n_cmds; i++) {
        const struct xf_opt_cmd *c = &p->cmds[i];
        size_t need = 4 + strlen(c->name) + (c->args != NULL ? 1 + strlen(c->args) : 0);
        column = !c->is_later && need > column && need <= COLUMN_MAX ? need : column;
    }
    const char *group = "";
    for (size_t i = 0; i < p->n_cmds; i++) {
        const struct xf_opt_cmd *c = &p->cmds[i];
        if (c->is_later) {
            continue;
        }
        if (!is_same_group(group, c->group)) {
            xf_buf_putf(out, "\n%s:\n", c->group != NULL ? c->group : "Commands");
            group = c->group;
        }
        xf_buf_putf(
            out, "  %s%s%s", c->name, c->args != NULL ? " " : "", c->args != NULL ? c->args : "");
        size_t col = 2 + strlen(c->name) + (c->args != NULL ? 1 + strlen(c->args) : 0);
        if (col + 2 > column) {
            xf_buf_put_byte(out, '\n');
            col = 0;
        }
        xf_opt_put_wrapped(out, column, col, c->summary);
    }
}

void xf_opt_put_help(const struct xf_opt_prog *prog,
                     const struct xf_opt_cmd *cmd,
                     struct xf_buf *out)
{
    const char *text = cmd != NULL ? cmd->text : prog->text;
    const char *examples = cmd != NULL ? cmd->examples : prog->examples;
    xf_buf_putf(out,
                "%s%s%s - %s\n\nUsage: ",
                prog->name,
                cmd != NULL ? " " : "",
                cmd != NULL ? cmd->name : "",
                cmd != NULL ? cmd->summary : prog->summary);
    put_usage(prog, cmd, out);
    if (text != NULL) {
        xf_buf_put_byte(out, '\n');
        put_paragraphs(out, text);
    }
    if (cmd == NULL) {
        put_commands(prog, out);
    } else {
        put_options(cmd->opts, cmd->n_opts, "Options", out);
    }
    put_options(
        prog->opts, prog->n_opts, cmd != NULL ? "Options of every command" : "Options", out);
    put_options(xf_opt_own, XF_ARRAY_LEN(xf_opt_own), "Help", out);
    if (examples != NULL) {
        xf_buf_put_c(out, "\nExamples:\n");
        put_lines(out, examples);
    }
    if (cmd == NULL && prog->exit_codes != NULL) {
        xf_buf_put_c(out, "\nExit status:\n");
        put_lines(out, prog->exit_codes);
    }
    if (cmd == NULL && prog->n_cmds > 0) {
        xf_buf_putf(out, "\n'%s COMMAND --help' tells more about a command.\n", prog->name);
    }
}

/* ---- the man page
 * --------------------------------------------------------------------------------- */

/* Text of a line: backslashes and hyphens escaped, and a control character at its start. */
static void put_roff(struct xf_buf *out, struct xf_str s)
{
    if (s.len > 0 && (s.ptr[0] == '.' || s.ptr[0] == '\'')) {
        xf_buf_put_c(out, "\\&");
    }
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] == '\\') {
            xf_buf_put_c(out, "\\e");
        } else if (s.ptr[i] == '-') {
            xf_buf_put_c(out, "\\-");
        } else {
            xf_buf_put_byte(out, s.ptr[i]);
        }
    }
}

static void put_roff_c(struct xf_buf *out, const char *text)
{
    put_roff(out, xf_str_c(text));
}

static void put_roff_paragraphs(struct xf_buf *out, const char *text)
{
    struct xf_str rest = xf_str_c(text);
    struct xf_str line;
    while (xf_str_cut(&rest, '\n', &line)) {
        if (line.len == 0) {
            xf_buf_put_c(out, ".PP\n");
        } else {
            put_roff(out, line);
            xf_buf_put_byte(out, '\n');
        }
    }
}

static void put_roff_lines(struct xf_buf *out, const char *text)
{
    struct xf_str rest = xf_str_c(text);
    struct xf_str line;
    xf_buf_put_c(out, ".nf\n");
    while (xf_str_cut(&rest, '\n', &line)) {
        put_roff(out, line);
        xf_buf_put_byte(out, '\n');
    }
    xf_buf_put_c(out, ".fi\n");
}

static void put_roff_options(struct xf_buf *out, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        XF_AUTO_BUF text = {0};
        xf_buf_init(&text, 0);
        put_option_text(&opts[i], &text);
        xf_buf_put_c(out, ".TP\n\\fB\\-\\-");
        put_roff_c(out, opts[i].name);
        xf_buf_put_c(out, "\\fR");
        if (opts[i].value != NULL) {
            xf_buf_put_c(out, " \\fI");
            put_roff_c(out, opts[i].value);
            xf_buf_put_c(out, "\\fR");
        }
        xf_buf_put_byte(out, '\n');
        put_roff_c(out, text.ptr);
        xf_buf_put_byte(out, '\n');
    }
}

static void put_roff_command(struct xf_buf *out, const struct xf_opt_cmd *c)
{
    xf_buf_put_c(out, ".SS \"");
    put_roff_c(out, c->name);
    if (c->args != NULL) {
        xf_buf_put_byte(out, ' ');
        put_roff_c(out, c->args);
    }
    xf_buf_put_c(out, "\"\n");
    put_roff_c(out, c->summary);
    xf_buf_put_c(out, ".\n");
    if (c->text != NULL) {
        xf_buf_put_c(out, ".PP\n");
        put_roff_paragraphs(out, c->text);
    }
    put_roff_options(out, c->opts, c->n_opts);
    if (c->examples != NULL) {
        xf_buf_put_c(out, ".PP\n");
        put_roff_lines(out, c->examples);
    }
}

void xf_opt_put_man(const struct xf_opt_prog *prog,
                    int section,
                    const char *date,
                    struct xf_buf *out)
{
    XF_AUTO_BUF usage = {0};
    xf_buf_init(&usage, 0);
    put_usage(prog, NULL, &usage);
    xf_buf_putf(out,
                ".TH %s %d \"%s\" \"xfer %s\" \"xfer\"\n.SH NAME\n",
                prog->name,
                section,
                date,
                prog->version);
    put_roff_c(out, prog->name);
    xf_buf_put_c(out, " \\- ");
    put_roff_c(out, prog->summary);
    xf_buf_put_c(out, "\n.SH SYNOPSIS\n");
    put_roff(out, xf_buf_view(&usage));
    if (prog->text != NULL) {
        xf_buf_put_c(out, ".SH DESCRIPTION\n");
        put_roff_paragraphs(out, prog->text);
    }
    xf_buf_put_c(out, ".SH OPTIONS\n");
    put_roff_options(out, prog->opts, prog->n_opts);
    put_roff_options(out, xf_opt_own, XF_ARRAY_LEN(xf_opt_own));
    if (prog->n_cmds > 0) {
        xf_buf_put_c(out, ".SH COMMANDS\n");
    }
    for (size_t i = 0; i < prog->n_cmds; i++) {
        if (!prog->cmds[i].is_later) {
            put_roff_command(out, &prog->cmds[i]);
        }
    }
    if (prog->exit_codes != NULL) {
        xf_buf_put_c(out, ".SH \"EXIT STATUS\"\n");
        put_roff_lines(out, prog->exit_codes);
    }
    if (prog->examples != NULL) {
        xf_buf_put_c(out, ".SH EXAMPLES\n");
        put_roff_lines(out, prog->examples);
    }
}
