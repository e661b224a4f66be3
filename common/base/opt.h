/*
 * opt.h - command lines as tables: options, commands, their help, completion and man page.
 *
 * Long options only: --name VALUE, --name=VALUE, or a flag; -h is --help. Options may stand before
 * and after the command and between the arguments; "--" ends them. What an option sets is a field
 * of the caller's struct: bool for a flag, const char * for a value (borrowed from argv or the
 * environment). One table makes the parser, --help, shell completion and the man page, so they
 * cannot disagree.
 */
#ifndef XF_BASE_OPT_H
#define XF_BASE_OPT_H

#include "common/base/err.h"
#include "common/base/str.h"

#include <stdbool.h>
#include <stddef.h>

enum xf_opt_hint { /* what a value is, for completion */
                   XF_OPT_ANY,
                   XF_OPT_FILE,
                   XF_OPT_DIR
};

struct xf_opt {
    const char *name;  /* without the dashes */
    const char *value; /* "URL"; NULL: a flag */
    size_t offset;     /* of the bool or const char * */
    const char *help;
    const char *def;            /* default; set when the option is absent, and shown. NULL: none */
    const char *env;            /* variable read when the option is absent; NULL: none */
    const char *const *choices; /* allowed values, ended by NULL; NULL: any */
    enum xf_opt_hint hint;
    const char *group; /* heading in --help; NULL: "Options" */
};

struct xf_opt_parsed;
typedef int(xf_opt_run_fn)(void *ctx, const struct xf_opt_parsed *parsed);

struct xf_opt_cmd {
    const char *name;
    const char *args; /* as shown: "FILE", "[JOB]"; NULL: none */
    size_t min_args;
    size_t max_args;
    const char *summary;       /* one line */
    const char *text;          /* paragraphs for its --help; NULL: none */
    const char *examples;      /* lines; NULL: none */
    const struct xf_opt *opts; /* its own options, n_opts of them */
    size_t n_opts;
    const char *group;  /* heading in --help; NULL: "Commands" */
    xf_opt_run_fn *run; /* the caller's; not called here */
    enum xf_opt_hint args_hint;
    bool is_later; /* reserved: refused as not supported yet, not shown */
};

struct xf_opt_prog {
    const char *name;
    const char *summary; /* one line */
    const char *text;    /* paragraphs; NULL: none */
    const char *examples;
    const char *exit_codes; /* lines; NULL: none */
    const char *version;
    const struct xf_opt *opts; /* for every command */
    size_t n_opts;
    const struct xf_opt_cmd *cmds; /* none: a program without commands and arguments */
    size_t n_cmds;
};

struct xf_opt_parsed {
    const struct xf_opt_cmd *cmd; /* NULL: the program has none, or help was asked without one */
    char **args;                  /* positional, after the command; n_args of them, inside argv */
    size_t n_args;
    bool is_help;    /* --help was given: print xf_opt_put_help(prog, cmd, ...) and exit 0 */
    bool is_version; /* --version was given */
};

/**
 * Read a command line.
 *
 * argv    reordered: positional arguments are gathered at its front.
 * values  the struct of the offsets; fields of absent options get environment, default or
 * NULL/false.
 *
 * --help and --version are known by themselves; with either, nothing else is checked.
 * Errors: XF_E_INVAL        unknown option or command (with the nearest known), missing or surplus
 * value or argument, an option given twice. XF_E_UNSUPPORTED  a reserved command.
 */
XF_MUST_CHECK enum xf_code xf_opt_parse(const struct xf_opt_prog *prog,
                                        int argc,
                                        char **argv,
                                        void *values,
                                        struct xf_opt_parsed *out,
                                        struct xf_err *err);

/** The --help text; cmd NULL: of the program. At most 80 columns. */
void xf_opt_put_help(const struct xf_opt_prog *prog,
                     const struct xf_opt_cmd *cmd,
                     struct xf_buf *out);

enum xf_opt_shell { XF_OPT_BASH, XF_OPT_ZSH, XF_OPT_FISH };
void xf_opt_put_completion(const struct xf_opt_prog *prog,
                           enum xf_opt_shell shell,
                           struct xf_buf *out);

/** The man page (section 1 or 8), groff man macros. `date` is YYYY-MM-DD. */
void xf_opt_put_man(const struct xf_opt_prog *prog,
                    int section,
                    const char *date,
                    struct xf_buf *out);

#endif
