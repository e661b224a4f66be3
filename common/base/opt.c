/*
 * opt.c - reading a command line by its table.
 *
 * Options may stand before the command, and then which options there are is not known yet. So the
 * line is read twice: the first walk finds the command, with the options of all commands known
 * (only whether one takes a value matters); the second sets fields, with the options of this
 * command only.
 */
#include "common/base/opt.h"

#include "common/base/conf.h"
#include "common/base/mem.h"
#include "common/base/opt_int.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTS_MAX = 128, SHOWN_MAX = 60 };

const struct xf_opt xf_opt_own[2] = {
    {.name = "help", .help = "show this help"},
    {.name = "version", .help = "show the version"},
};

struct line {
    const struct xf_opt_prog *prog;
    const struct xf_opt_cmd *cmd;
    int argc;
    char **argv;
    void *values;
    struct xf_opt_parsed *out;
    struct xf_err *err;
    const struct xf_opt *seen[OPTS_MAX];
    size_t n_seen;
};

/* One "--name" or "--name=value". */
struct word {
    struct xf_str name;
    const char *value; /* after '=', or NULL */
};

static bool is_option(const char *arg)
{
    return arg[0] == '-' && arg[1] != '\0';
}

static struct word split(const char *arg)
{
    const char *eq = strchr(arg, '=');
    struct word w = {.name = xf_str_c(arg + 2), .value = NULL};
    if (eq != NULL) {
        w.name.len = (size_t)(eq - arg) - 2;
        w.value = eq + 1;
    }
    return w;
}

static const struct xf_opt *find_in(const struct xf_opt *opts, size_t n, struct xf_str name)
{
    for (size_t i = 0; i < n; i++) {
        if (xf_str_eq_c(name, opts[i].name)) {
            return &opts[i];
        }
    }
    return NULL;
}

static const struct xf_opt *find_global(const struct xf_opt_prog *p, struct xf_str name)
{
    const struct xf_opt *o = find_in(xf_opt_own, XF_ARRAY_LEN(xf_opt_own), name);
    return o != NULL ? o : find_in(p->opts, p->n_opts, name);
}

static const struct xf_opt *find_anywhere(const struct xf_opt_prog *p, struct xf_str name)
{
    const struct xf_opt *o = find_global(p, name);
    for (size_t i = 0; o == NULL && i < p->n_cmds; i++) {
        o = find_in(p->cmds[i].opts, p->cmds[i].n_opts, name);
    }
    return o;
}

/* ---- errors
 * -------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static enum xf_code
fail(const struct line *l, const char *fmt, ...)
{
    char text[320];
    va_list ap;
    va_start(ap, fmt);
    int n = vsnprintf(text, sizeof(text), fmt, ap);
    va_end(ap);
    return XF_FAIL(l->err,
                   XF_E_INVAL,
                   "%s; see '%s%s%s --help'",
                   n < 0 ? "" : text,
                   l->prog->name,
                   l->cmd != NULL ? " " : "",
                   l->cmd != NULL ? l->cmd->name : "");
}

static size_t add_names(const struct xf_opt *opts, size_t n, const char **names, size_t at)
{
    for (size_t i = 0; i < n && at < OPTS_MAX - 1; i++) {
        names[at++] = opts[i].name;
    }
    return at;
}

static enum xf_code unknown_option(const struct line *l, const char *arg)
{
    const char *names[OPTS_MAX];
    if (arg[1] != '-') {
        return fail(l, "unknown option '%.*s': options are long, such as --help", SHOWN_MAX, arg);
    }
    struct word w = split(arg);
    size_t n = add_names(xf_opt_own, XF_ARRAY_LEN(xf_opt_own), names, 0);
    n = add_names(l->prog->opts, l->prog->n_opts, names, n);
    for (size_t i = 0; i < l->prog->n_cmds; i++) {
        const struct xf_opt_cmd *c = &l->prog->cmds[i];
        if ((l->cmd == NULL || l->cmd == c) && !c->is_later) {
            n = add_names(c->opts, c->n_opts, names, n);
        }
    }
    names[n] = NULL;
    const char *near = xf_conf_nearest(w.name, names);
    struct xf_str shown = xf_str_sub(w.name, 0, SHOWN_MAX);
    if (near != NULL) {
        return fail(l, "unknown option '--%.*s'; did you mean '--%s'?", XF_STR_ARG(shown), near);
    }
    return fail(l, "unknown option '--%.*s'", XF_STR_ARG(shown));
}

static enum xf_code unknown_command(const struct line *l, const char *arg)
{
    const char *names[OPTS_MAX];
    size_t n = 0;
    for (size_t i = 0; i < l->prog->n_cmds && n < OPTS_MAX - 1; i++) {
        if (!l->prog->cmds[i].is_later) {
            names[n++] = l->prog->cmds[i].name;
        }
    }
    names[n] = NULL;
    const char *near = xf_conf_nearest(xf_str_c(arg), names);
    if (near != NULL) {
        return fail(l, "unknown command '%.*s'; did you mean '%s'?", SHOWN_MAX, arg, near);
    }
    return fail(l, "unknown command '%.*s'", SHOWN_MAX, arg);
}

/* ---- the first walk: the command
 * ------------------------------------------------------------------ */

static enum xf_code set_command(struct line *l, const char *arg)
{
    for (size_t i = 0; i < l->prog->n_cmds; i++) {
        if (strcmp(l->prog->cmds[i].name, arg) == 0) {
            l->cmd = &l->prog->cmds[i];
            l->out->cmd = l->cmd;
            break;
        }
    }
    if (l->cmd == NULL) {
        return unknown_command(l, arg);
    }
    if (l->cmd->is_later) {
        l->out->cmd = NULL;
        return XF_FAIL(l->err, XF_E_UNSUPPORTED, "command '%s' is not supported yet", arg);
    }
    return XF_OK;
}

static bool takes_next(const struct xf_opt *o, const struct word *w)
{
    return o->value != NULL && w->value == NULL;
}

static void look_for_help(struct line *l)
{
    for (int i = 1; i < l->argc && strcmp(l->argv[i], "--") != 0; i++) {
        const char *arg = l->argv[i];
        l->out->is_help = l->out->is_help || strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
        l->out->is_version = l->out->is_version || strcmp(arg, "--version") == 0;
    }
}

static enum xf_code find_command(struct line *l)
{
    for (int i = 1; i < l->argc; i++) {
        const char *arg = l->argv[i];
        if (strcmp(arg, "--") == 0) {
            return i + 1 < l->argc ? set_command(l, l->argv[i + 1]) : XF_OK;
        }
        if (!is_option(arg)) {
            return set_command(l, arg);
        }
        if (strcmp(arg, "-h") == 0) {
            continue;
        }
        struct word w = split(arg);
        const struct xf_opt *o = arg[1] == '-' ? find_anywhere(l->prog, w.name) : NULL;
        if (o == NULL) {
            return unknown_option(l, arg);
        }
        i += takes_next(o, &w) ? 1 : 0;
    }
    return XF_OK;
}

/* ---- the second walk: fields and arguments
 * --------------------------------------------------------- */

static enum xf_code check_choice(const struct line *l, const struct xf_opt *o, const char *value)
{
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    for (size_t i = 0; o->choices != NULL && o->choices[i] != NULL; i++) {
        if (strcmp(o->choices[i], value) == 0) {
            return XF_OK;
        }
        xf_buf_putf(&b, "%s%s", i > 0 ? ", " : "", o->choices[i]);
    }
    return o->choices == NULL
               ? XF_OK
               : fail(l, "'--%s' takes one of %s, not '%.*s'", o->name, b.ptr, SHOWN_MAX, value);
}

static enum xf_code set_option(struct line *l, const struct xf_opt *o, const char *value)
{
    for (size_t i = 0; i < l->n_seen; i++) {
        if (l->seen[i] == o) {
            return fail(l, "option '--%s' is given twice", o->name);
        }
    }
    XF_ASSERT(l->n_seen < OPTS_MAX);
    l->seen[l->n_seen++] = o;
    void *field = (char *)l->values + o->offset;
    if (o->value == NULL) {
        *(bool *)field = true;
        return XF_OK;
    }
    XF_TRY(check_choice(l, o, value));
    *(const char **)field = value;
    return XF_OK;
}

/* Reads the option at argv[*i], and its value. */
static enum xf_code read_option(struct line *l, int *i)
{
    const char *arg = l->argv[*i];
    struct word w = split(arg);
    const struct xf_opt *o = arg[1] == '-' ? find_global(l->prog, w.name) : NULL;
    if (o == NULL && arg[1] == '-' && l->cmd != NULL) {
        o = find_in(l->cmd->opts, l->cmd->n_opts, w.name);
    }
    if (o == NULL) {
        if (l->cmd != NULL && arg[1] == '-' && find_anywhere(l->prog, w.name) != NULL) {
            return fail(l,
                        "option '--%.*s' is not for '%s'",
                        XF_STR_ARG(xf_str_sub(w.name, 0, SHOWN_MAX)),
                        l->cmd->name);
        }
        return unknown_option(l, arg);
    }
    if (o->value == NULL) {
        return w.value == NULL ? set_option(l, o, NULL)
                               : fail(l, "option '--%s' takes no value", o->name);
    }
    if (w.value == NULL && *i + 1 < l->argc && strncmp(l->argv[*i + 1], "--", 2) != 0) {
        w.value = l->argv[++*i];
    }
    if (w.value == NULL || w.value[0] == '\0') {
        return fail(l, "option '--%s' needs a value: --%s %s", o->name, o->name, o->value);
    }
    return set_option(l, o, w.value);
}

static enum xf_code read_line(struct line *l)
{
    bool options_ended = false;
    bool command_read = l->cmd == NULL;
    for (int i = 1; i < l->argc; i++) {
        char *arg = l->argv[i];
        if (!options_ended && strcmp(arg, "--") == 0) {
            options_ended = true;
        } else if (!options_ended && is_option(arg)) {
            XF_TRY(read_option(l, &i));
        } else if (!command_read) {
            command_read = true;
        } else {
            l->argv[1 + l->out->n_args++] = arg; /* always at or before i */
        }
    }
    l->out->args = l->argv + 1;
    return XF_OK;
}

static enum xf_code check_args(const struct line *l)
{
    size_t n = l->out->n_args;
    if (l->cmd == NULL) {
        if (l->prog->n_cmds > 0) {
            return fail(l, "a command is missing");
        }
        return n == 0 ? XF_OK : fail(l, "'%.*s' is not an option", SHOWN_MAX, l->out->args[0]);
    }
    if (n < l->cmd->min_args) {
        return fail(l, "'%s' needs %s", l->cmd->name, l->cmd->args);
    }
    if (n > l->cmd->max_args) {
        return fail(l,
                    "'%s' does not take the argument '%.*s'",
                    l->cmd->name,
                    SHOWN_MAX,
                    l->out->args[l->cmd->max_args]);
    }
    return XF_OK;
}

/* Environment or default for what the line did not say. */
static enum xf_code fill_absent(const struct line *l, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char **field = (const char **)(void *)((char *)l->values + opts[i].offset);
        if (opts[i].value == NULL || *field != NULL) {
            continue;
        }
        const char *env = NULL;
        if (opts[i].env != NULL) {
            env = getenv(opts[i].env); /* NOLINT(concurrency-mt-unsafe): before any thread */
        }
        if (env != NULL && env[0] != '\0') {
            XF_TRY(check_choice(l, &opts[i], env));
            *field = env;
        } else {
            *field = opts[i].def;
        }
    }
    return XF_OK;
}

static void clear(void *values, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        void *field = (char *)values + opts[i].offset;
        if (opts[i].value == NULL) {
            *(bool *)field = false;
        } else {
            *(const char **)field = NULL;
        }
    }
}

enum xf_code xf_opt_parse(const struct xf_opt_prog *prog,
                          int argc,
                          char **argv,
                          void *values,
                          struct xf_opt_parsed *out,
                          struct xf_err *err)
{
    struct line l = {
        .prog = prog, .argc = argc, .argv = argv, .values = values, .out = out, .err = err};
    *out = (struct xf_opt_parsed){0};
    clear(values, prog->opts, prog->n_opts);
    for (size_t i = 0; i < prog->n_cmds; i++) {
        clear(values, prog->cmds[i].opts, prog->cmds[i].n_opts);
    }
    look_for_help(&l);
    if (prog->n_cmds > 0) {
        enum xf_code code = find_command(&l);
        if (code != XF_OK && !out->is_help && !out->is_version) {
            return code;
        }
    }
    if (out->is_help || out->is_version) {
        return XF_OK;
    }
    XF_TRY(read_line(&l));
    XF_TRY(check_args(&l));
    XF_TRY(fill_absent(&l, prog->opts, prog->n_opts));
    return l.cmd != NULL ? fill_absent(&l, l.cmd->opts, l.cmd->n_opts) : XF_OK;
}
