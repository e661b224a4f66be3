/*
 * opt_shell.c - completion for bash, zsh and fish, from the same table as the parser.
 *
 * Each script knows the commands, the options of the present command and of all, the choices of a
 * value, and whether a value or argument is a file or a folder.
 */
#include "common/base/mem.h"
#include "common/base/opt.h"
#include "common/base/opt_int.h"

#include <string.h>

static void put_identifier(struct xf_buf *out, const char *name)
{
    for (; *name != '\0'; name++) {
        xf_buf_put_byte(out, *name == '-' ? '_' : *name);
    }
}

/* Inside single quotes of bash, zsh or fish: without the characters that mean something there. */
static void put_plain(struct xf_buf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (strchr("'\\[]:`$", *text) == NULL) {
            xf_buf_put_byte(out, *text);
        }
    }
}

static void put_option_names(struct xf_buf *out, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        xf_buf_putf(out, " --%s", opts[i].name);
    }
}

static void put_choices(struct xf_buf *out, const struct xf_opt *o)
{
    for (size_t i = 0; o->choices[i] != NULL; i++) {
        xf_buf_putf(out, "%s%s", i > 0 ? " " : "", o->choices[i]);
    }
}

/* ---- bash
 * ----------------------------------------------------------------------------------------- */

static void put_bash_values(struct xf_buf *out, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct xf_opt *o = &opts[i];
        if (o->value == NULL) {
            continue;
        }
        xf_buf_putf(out, "    --%s) ", o->name);
        if (o->choices != NULL) {
            xf_buf_put_c(out, "mapfile -t COMPREPLY < <(compgen -W '");
            put_choices(out, o);
            xf_buf_put_c(out, "' -- \"$cur\"); return ;;\n");
        } else if (o->hint == XF_OPT_ANY) {
            xf_buf_put_c(out, "return ;;\n");
        } else {
            xf_buf_putf(out,
                        "mapfile -t COMPREPLY < <(compgen -%c -- \"$cur\"); return ;;\n",
                        o->hint == XF_OPT_DIR ? 'd' : 'f');
        }
    }
}

/* Words that take the next word, for finding the command. */
static void put_value_pattern(struct xf_buf *out, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (opts[i].value != NULL) {
            xf_buf_putf(out, "|--%s", opts[i].name);
        }
    }
}

static void put_bash_commands(const struct xf_opt_prog *p, struct xf_buf *out)
{
    for (size_t i = 0; i < p->n_cmds; i++) {
        const struct xf_opt_cmd *c = &p->cmds[i];
        if (c->is_later) {
            continue;
        }
        xf_buf_putf(out, "    %s) opts=\"$opts", c->name);
        put_option_names(out, c->opts, c->n_opts);
        xf_buf_putf(out,
                    "\"; args=%c ;;\n",
                    c->args_hint == XF_OPT_FILE ? 'f' : (c->args_hint == XF_OPT_DIR ? 'd' : '-'));
    }
}

static void put_bash(const struct xf_opt_prog *p, struct xf_buf *out)
{
    xf_buf_putf(out, "# bash completion of %s, made from its option table\n_", p->name);
    put_identifier(out, p->name);
    xf_buf_put_c(out,
                 "()\n{\n    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}\n"
                 "    local cmd='' args=- i opts=\"");
    put_option_names(out, xf_opt_own, XF_ARRAY_LEN(xf_opt_own));
    put_option_names(out, p->opts, p->n_opts);
    xf_buf_put_c(out, "\"\n    COMPREPLY=()\n    case $prev in\n");
    put_bash_values(out, p->opts, p->n_opts);
    for (size_t i = 0; i < p->n_cmds; i++) {
        put_bash_values(out, p->cmds[i].opts, p->cmds[i].n_opts);
    }
    xf_buf_put_c(out,
                 "    esac\n    for ((i = 1; i < COMP_CWORD; i++)); do\n"
                 "        case ${COMP_WORDS[i]} in\n        ''");
    put_value_pattern(out, p->opts, p->n_opts);
    for (size_t i = 0; i < p->n_cmds; i++) {
        put_value_pattern(out, p->cmds[i].opts, p->cmds[i].n_opts);
    }
    xf_buf_put_c(out,
                 ") ((i++)) ;;\n        -*) ;;\n        *) cmd=${COMP_WORDS[i]}; break ;;\n"
                 "        esac\n    done\n    case $cmd in\n    '') args=c ;;\n");
    put_bash_commands(p, out);
    xf_buf_put_c(out,
                 "    esac\n    if [[ $cur == -* ]]; then\n"
                 "        mapfile -t COMPREPLY < <(compgen -W \"$opts\" -- \"$cur\")\n"
                 "    elif [[ $args == c ]]; then\n        mapfile -t COMPREPLY < <(compgen -W '");
    for (size_t i = 0; i < p->n_cmds; i++) {
        if (!p->cmds[i].is_later) {
            xf_buf_putf(out, "%s ", p->cmds[i].name);
        }
    }
    xf_buf_put_c(out,
                 "' -- \"$cur\")\n    elif [[ $args != - ]]; then\n"
                 "        mapfile -t COMPREPLY < <(compgen -$args -- \"$cur\")\n    fi\n}\n");
    xf_buf_put_c(out, "complete -o filenames -F _");
    put_identifier(out, p->name);
    xf_buf_putf(out, " %s\n", p->name);
}

/* ---- zsh
 * ------------------------------------------------------------------------------------------ */

static const char *zsh_action(enum xf_opt_hint hint)
{
    switch (hint) {
    case XF_OPT_FILE: return "_files";
    case XF_OPT_DIR: return "_files -/";
    case XF_OPT_ANY: break;
    }
    return " ";
}

static void put_zsh_options(struct xf_buf *out, const struct xf_opt *opts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct xf_opt *o = &opts[i];
        xf_buf_putf(out, " \\\n        '--%s%s[", o->name, o->value != NULL ? "=" : "");
        put_plain(out, o->help);
        xf_buf_put_byte(out, ']');
        if (o->value != NULL && o->choices != NULL) {
            xf_buf_putf(out, ":%s:(", o->value);
            put_choices(out, o);
            xf_buf_put_byte(out, ')');
        } else if (o->value != NULL) {
            xf_buf_put_byte(out, ':');
            put_plain(out, o->value);
            xf_buf_putf(out, ":%s", zsh_action(o->hint));
        }
        xf_buf_put_byte(out, '\'');
    }
}

static void put_zsh_commands(const struct xf_opt_prog *p, struct xf_buf *out)
{
    for (size_t i = 0; i < p->n_cmds; i++) {
        const struct xf_opt_cmd *c = &p->cmds[i];
        if (c->is_later) {
            continue;
        }
        xf_buf_putf(out, "    %s)\n        _arguments -S $common", c->name);
        put_zsh_options(out, c->opts, c->n_opts);
        if (c->max_args > 0) {
            xf_buf_put_c(out, " \\\n        '*:");
            put_plain(out, c->args != NULL ? c->args : "argument");
            xf_buf_putf(out, ":%s'", zsh_action(c->args_hint));
        }
        xf_buf_put_c(out, "\n        ;;\n");
    }
}

static void put_zsh(const struct xf_opt_prog *p, struct xf_buf *out)
{
    xf_buf_putf(
        out, "#compdef %s\n# zsh completion of %s, made from its option table\n", p->name, p->name);
    xf_buf_put_c(out, "local -a common commands\nlocal state line\ncommon=(");
    put_zsh_options(out, xf_opt_own, XF_ARRAY_LEN(xf_opt_own));
    put_zsh_options(out, p->opts, p->n_opts);
    xf_buf_put_c(out, ")\n");
    if (p->n_cmds == 0) {
        xf_buf_put_c(out, "_arguments -S $common\n");
        return;
    }
    xf_buf_put_c(out, "commands=(\n");
    for (size_t i = 0; i < p->n_cmds; i++) {
        if (!p->cmds[i].is_later) {
            xf_buf_putf(out, "    '%s:", p->cmds[i].name);
            put_plain(out, p->cmds[i].summary);
            xf_buf_put_c(out, "'\n");
        }
    }
    xf_buf_put_c(out,
                 ")\n_arguments -C -S $common '1:command:->command' '*::argument:->argument'\n"
                 "case $state in\ncommand) _describe command commands ;;\nargument)\n"
                 "    case $line[1] in\n");
    put_zsh_commands(p, out);
    xf_buf_put_c(out, "    esac\n    ;;\nesac\n");
}

/* ---- fish
 * ----------------------------------------------------------------------------------------- */

static void put_fish_options(struct xf_buf *out,
                             const struct xf_opt_prog *p,
                             const char *condition,
                             const struct xf_opt *opts,
                             size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct xf_opt *o = &opts[i];
        xf_buf_putf(out, "complete -c %s%s -l %s", p->name, condition, o->name);
        if (o->value != NULL && o->choices != NULL) {
            xf_buf_put_c(out, " -x -a '");
            put_choices(out, o);
            xf_buf_put_byte(out, '\'');
        } else if (o->value != NULL) {
            xf_buf_put_c(out, o->hint == XF_OPT_ANY ? " -x" : " -r -F");
        }
        xf_buf_put_c(out, " -d '");
        put_plain(out, o->help);
        xf_buf_put_c(out, "'\n");
    }
}

static void put_fish(const struct xf_opt_prog *p, struct xf_buf *out)
{
    xf_buf_putf(out,
                "# fish completion of %s, made from its option table\ncomplete -c %s -f\n",
                p->name,
                p->name);
    put_fish_options(out, p, "", xf_opt_own, XF_ARRAY_LEN(xf_opt_own));
    put_fish_options(out, p, "", p->opts, p->n_opts);
    for (size_t i = 0; i < p->n_cmds; i++) {
        const struct xf_opt_cmd *c = &p->cmds[i];
        if (c->is_later) {
            continue;
        }
        XF_AUTO_BUF condition = {0};
        xf_buf_init(&condition, 0);
        xf_buf_putf(&condition, " -n '__fish_seen_subcommand_from %s'", c->name);
        xf_buf_putf(out, "complete -c %s -n __fish_use_subcommand -a %s -d '", p->name, c->name);
        put_plain(out, c->summary);
        xf_buf_put_c(out, "'\n");
        put_fish_options(out, p, condition.ptr, c->opts, c->n_opts);
        if (c->args_hint != XF_OPT_ANY) {
            xf_buf_putf(out, "complete -c %s%s -F\n", p->name, condition.ptr);
        }
    }
}

void xf_opt_put_completion(const struct xf_opt_prog *prog,
                           enum xf_opt_shell shell,
                           struct xf_buf *out)
{
    switch (shell) {
    case XF_OPT_BASH: put_bash(prog, out); break;
    case XF_OPT_ZSH: put_zsh(prog, out); break;
    case XF_OPT_FISH: put_fish(prog, out); break;
    }
}
