/*
 * opt_test.c - command lines: what is read, what is refused, and the texts from the table.
 */
#include "common/base/mem.h"
#include "common/base/opt.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

struct values {
    const char *server;
    const char *format;
    const char *state;
    bool json;
    bool wait;
    bool dry_run;
};

#define AT(m) offsetof(struct values, m)

static const char *const formats[] = {"csv", "json", NULL};
static const struct xf_opt globals[] = {
    {.name = "server",
     .value = "URL",
     .offset = AT(server),
     .help = "Where the server is.",
     .def = "tcp://127.0.0.1:1",
     .env = "XF_OPT_TEST_SERVER"},
    {.name = "json", .offset = AT(json), .help = "Print JSON."},
};
static const struct xf_opt submit_opts[] = {
    {.name = "wait", .offset = AT(wait), .help = "Wait for the end."},
    {.name = "dry-run", .offset = AT(dry_run), .help = "Change nothing."},
};
static const struct xf_opt report_opts[] = {
    {.name = "format",
     .value = "FORMAT",
     .offset = AT(format),
     .help = "Form.",
     .def = "csv",
     .choices = formats},
    {.name = "state", .value = "DIR", .offset = AT(state), .help = "Where.", .hint = XF_OPT_DIR},
};
static const struct xf_opt_cmd cmds[] = {
    {.name = "submit",
     .args = "FILE",
     .min_args = 1,
     .max_args = 1,
     .args_hint = XF_OPT_FILE,
     .summary = "hand a job over",
     .text =
         "A paragraph that is long enough to be broken before it reaches the eightieth column of "
         "the terminal.\n\nAnother one.",
     .examples = "demo submit job.toml",
     .opts = submit_opts,
     .n_opts = XF_ARRAY_LEN(submit_opts)},
    {.name = "report",
     .args = "[JOB]",
     .max_args = 1,
     .summary = "list what was done",
     .opts = report_opts,
     .n_opts = XF_ARRAY_LEN(report_opts)},
    {.name = "agents", .args = "[drain|undrain ID]", .max_args = 2, .summary = "show agents"},
    {.name = "bench", .is_later = true},
};
static const struct xf_opt_prog prog = {
    .name = "demo",
    .summary = "show options",
    .text = "Does nothing.",
    .examples = "demo submit job.toml --wait",
    .exit_codes = "0  fine\n2  wrong usage",
    .version = "1.2.3",
    .opts = globals,
    .n_opts = XF_ARRAY_LEN(globals),
    .cmds = cmds,
    .n_cmds = XF_ARRAY_LEN(cmds),
};
static const struct xf_opt_prog daemon_prog = {.name = "daemon",
                                               .summary = "run",
                                               .version = "1",
                                               .opts = globals,
                                               .n_opts = XF_ARRAY_LEN(globals)};

static struct values v;
static struct xf_opt_parsed parsed;
static struct xf_err err;
static char *argv_of[16];

/* Splits at blanks; gives the code. */
static enum xf_code parse_with(const struct xf_opt_prog *p, const char *line)
{
    static char text[256];
    int argc = 1;
    static char name[] = "demo";
    argv_of[0] = name;
    (void)snprintf(text, sizeof(text), "%s", line);
    for (char *w = text; *w != '\0';) {
        char *end = strchrnul(w, ' ');
        argv_of[argc++] = w;
        w = *end == '\0' ? end : end + 1;
        *end = '\0';
    }
    argv_of[argc] = NULL;
    return xf_opt_parse(p, argc, argv_of, &v, &parsed, &err);
}

static void check_ok(const char *line)
{
    if (parse_with(&prog, line) != XF_OK) {
        fail_msg("%s: %s", line, err.msg);
    }
}

static void check_refused(const char *line, const char *message)
{
    if (parse_with(&prog, line) == XF_OK) {
        fail_msg("accepted: %s", line);
    }
    assert_int_equal(xf_code_exit(err.code), 2);
    assert_string_equal(err.msg, message);
}

static void options_stand_before_and_after_the_command(void **state)
{
    (void)state;
    static const char *const lines[] = {
        "--json --wait submit j.toml --server=x",
        "submit --json j.toml --wait --server x",
        "--server x submit --wait --json j.toml",
        "--server x --json submit --wait -- j.toml",
    };
    for (size_t i = 0; i < XF_ARRAY_LEN(lines); i++) {
        check_ok(lines[i]);
        assert_string_equal(parsed.cmd->name, "submit");
        assert_int_equal(parsed.n_args, 1);
        assert_string_equal(parsed.args[0], "j.toml");
        assert_true(v.json && v.wait && !v.dry_run);
        assert_string_equal(v.server, "x");
    }
}

static void a_value_before_the_command_is_not_the_command(void **state)
{
    (void)state;
    check_ok("--state submit report j-1");
    assert_string_equal(parsed.cmd->name, "report");
    assert_string_equal(v.state, "submit");
    assert_string_equal(parsed.args[0], "j-1");
}

static void absent_options_take_environment_then_default(void **state)
{
    (void)state;
    check_ok("report");
    assert_string_equal(v.server, "tcp://127.0.0.1:1");
    assert_string_equal(v.format, "csv");
    assert_null(v.state);
    assert_int_equal(parsed.n_args, 0);
    assert_int_equal(setenv("XF_OPT_TEST_SERVER", "from-env", 1),
                     0); /* NOLINT(concurrency-mt-unsafe): one thread */
    check_ok("report");
    assert_string_equal(v.server, "from-env");
    check_ok("report --server line");
    assert_string_equal(v.server, "line");
    assert_int_equal(unsetenv("XF_OPT_TEST_SERVER"),
                     0); /* NOLINT(concurrency-mt-unsafe): one thread */
}

static void wrong_lines_are_refused_with_advice(void **state)
{
    (void)state;
    check_refused("submit j --wiat",
                  "unknown option '--wiat'; did you mean '--wait'?; see 'demo submit --help'");
    check_refused("--jsno submit j",
                  "unknown option '--jsno'; did you mean '--json'?; see 'demo --help'");
    check_refused("submit j --zzzzzzz=SECRET",
                  "unknown option '--zzzzzzz'; see 'demo submit --help'");
    check_refused("report --wait", "option '--wait' is not for 'report'; see 'demo report --help'");
    check_refused(
        "submit -w j",
        "unknown option '-w': options are long, such as --help; see 'demo submit --help'");
    check_refused("sumbit j",
                  "unknown command 'sumbit'; did you mean 'submit'?; see 'demo --help'");
    check_refused("frobnicate", "unknown command 'frobnicate'; see 'demo --help'");
    check_refused("bench", "command 'bench' is not supported yet");
    check_refused("", "a command is missing; see 'demo --help'");
    check_refused("submit", "'submit' needs FILE; see 'demo submit --help'");
    check_refused("submit a b",
                  "'submit' does not take the argument 'b'; see 'demo submit --help'");
    check_refused("submit a --json=1", "option '--json' takes no value; see 'demo submit --help'");
    check_refused("submit a --server",
                  "option '--server' needs a value: --server URL; see 'demo submit --help'");
    check_refused("submit a --server --json",
                  "option '--server' needs a value: --server URL; see 'demo submit --help'");
    check_refused("submit a --server=",
                  "option '--server' needs a value: --server URL; see 'demo submit --help'");
    check_refused("submit a --json --json",
                  "option '--json' is given twice; see 'demo submit --help'");
    check_refused("report --format xml",
                  "'--format' takes one of csv, json, not 'xml'; see 'demo report --help'");
}

static void arguments_after_two_dashes_are_not_options(void **state)
{
    (void)state;
    check_ok("agents -- --json -x");
    assert_int_equal(parsed.n_args, 2);
    assert_string_equal(parsed.args[0], "--json");
    assert_string_equal(parsed.args[1], "-x");
    assert_false(v.json);
    check_ok("submit -");
    assert_string_equal(parsed.args[0], "-");
}

static void help_and_version_win_over_everything(void **state)
{
    (void)state;
    check_ok("--help");
    assert_true(parsed.is_help && parsed.cmd == NULL);
    check_ok("submit --nonsense --help");
    assert_true(parsed.is_help);
    check_ok("-h submit");
    assert_true(parsed.is_help);
    assert_string_equal(parsed.cmd->name, "submit");
    check_ok("bench --help");
    assert_true(parsed.is_help && parsed.cmd == NULL);
    check_ok("--version");
    assert_true(parsed.is_version && !parsed.is_help);
}

static void a_program_without_commands_takes_no_arguments(void **state)
{
    (void)state;
    assert_int_equal(parse_with(&daemon_prog, "--json"), XF_OK);
    assert_true(v.json && parsed.cmd == NULL);
    assert_int_equal(parse_with(&daemon_prog, "x"), XF_E_INVAL);
    assert_string_equal(err.msg, "'x' is not an option; see 'daemon --help'");
    assert_int_equal(parse_with(&daemon_prog, "--data-dir x"), XF_E_INVAL);
    assert_string_equal(err.msg, "unknown option '--data-dir'; see 'daemon --help'");
}

/* ---- texts
 * --------------------------------------------------------------------------------------- */

static void help_of_a_command_comes_from_the_table(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_opt_put_help(&prog, &cmds[0], &b);
    assert_string_equal(
        b.ptr,
        "demo submit - hand a job over\n"
        "\n"
        "Usage: demo [OPTIONS] submit FILE\n"
        "\n"
        "A paragraph that is long enough to be broken before it reaches the eightieth\n"
        "column of the terminal.\n"
        "\n"
        "Another one.\n"
        "\n"
        "Options:\n"
        "  --wait     Wait for the end.\n"
        "  --dry-run  Change nothing.\n"
        "\n"
        "Options of every command:\n"
        "  --server URL  Where the server is. (default tcp://127.0.0.1:1; environment\n"
        "                XF_OPT_TEST_SERVER)\n"
        "  --json        Print JSON.\n"
        "\n"
        "Help:\n"
        "  --help     show this help\n"
        "  --version  show the version\n"
        "\n"
        "Examples:\n"
        "  demo submit job.toml\n");
}

static void help_of_a_program_lists_its_commands(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_opt_put_help(&prog, NULL, &b);
    assert_non_null(strstr(b.ptr, "Usage: demo [OPTIONS] COMMAND\n"));
    assert_non_null(strstr(b.ptr,
                           "\nCommands:\n"
                           "  submit FILE                hand a job over\n"
                           "  report [JOB]               list what was done\n"
                           "  agents [drain|undrain ID]  show agents\n"));
    assert_null(strstr(b.ptr, "bench"));
    assert_non_null(strstr(b.ptr, "\nExit status:\n  0  fine\n  2  wrong usage\n"));
}

static void the_man_page_is_roff(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_opt_put_man(&prog, 1, "2026-01-31", &b);
    assert_non_null(strstr(b.ptr, ".TH demo 1 \"2026-01-31\" \"xfer 1.2.3\" \"xfer\"\n"));
    assert_non_null(strstr(b.ptr, ".TP\n\\fB\\-\\-server\\fR \\fIURL\\fR\nWhere the server is."));
    assert_non_null(strstr(b.ptr, ".SS \"submit FILE\"\n"));
    assert_null(strstr(b.ptr, "bench"));
}

/* Asks the script what `line` completes to, in the shell itself. */
static void check_bash(const char *script, const char *line, int cword, const char *want)
{
    char path[] = "/tmp/xf_opt_test_XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    assert_non_null(f);
    fprintf(f,
            "%s\nCOMP_WORDS=(%s)\nCOMP_CWORD=%d\n_demo\nprintf '%%s ' \"${COMPREPLY[@]}\" | tr -s "
            "' ' > %s.out\n",
            script,
            line,
            cword,
            path);
    assert_int_equal(fclose(f), 0);
    pid_t pid = fork();
    if (pid == 0) {
        (void)execlp("bash", "bash", "--norc", path, (char *)NULL);
        _exit(127);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    char out_path[64];
    char got[512] = {0};
    (void)snprintf(out_path, sizeof(out_path), "%s.out", path);
    f = fopen(out_path, "r");
    assert_non_null(f);
    assert_true(fread(got, 1, sizeof(got) - 1, f) < sizeof(got));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(unlink(out_path), 0);
    assert_int_equal(unlink(path), 0);
    assert_string_equal(got, want);
}

static void bash_completes_commands_options_and_choices(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_opt_put_completion(&prog, XF_OPT_BASH, &b);
    check_bash(b.ptr, "demo ''", 1, "submit report agents ");
    check_bash(b.ptr, "demo s", 1, "submit ");
    check_bash(b.ptr, "demo --server x re", 3, "report ");
    check_bash(b.ptr, "demo submit --", 2, "--help --version --server --json --wait --dry-run ");
    check_bash(b.ptr, "demo --json report --f", 3, "--format ");
    check_bash(b.ptr, "demo report --format j", 3, "json ");
    check_bash(b.ptr, "demo --server ''", 2, " ");
}

static void zsh_and_fish_scripts_name_commands_and_options(void **state)
{
    (void)state;
    XF_AUTO_BUF b = {0};
    xf_buf_init(&b, 0);
    xf_opt_put_completion(&prog, XF_OPT_ZSH, &b);
    assert_non_null(strstr(b.ptr, "#compdef demo\n"));
    assert_non_null(strstr(b.ptr, "'--format=[Form.]:FORMAT:(csv json)'"));
    assert_null(strstr(b.ptr, "bench"));
    xf_buf_reset(&b);
    xf_opt_put_completion(&prog, XF_OPT_FISH, &b);
    assert_non_null(strstr(
        b.ptr, "complete -c demo -n __fish_use_subcommand -a submit -d 'hand a job over'\n"));
    assert_non_null(strstr(
        b.ptr,
        "complete -c demo -n '__fish_seen_subcommand_from report' -l format -x -a 'csv json'"));
    assert_null(strstr(b.ptr, "bench"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(options_stand_before_and_after_the_command),
        cmocka_unit_test(a_value_before_the_command_is_not_the_command),
        cmocka_unit_test(absent_options_take_environment_then_default),
        cmocka_unit_test(wrong_lines_are_refused_with_advice),
        cmocka_unit_test(arguments_after_two_dashes_are_not_options),
        cmocka_unit_test(help_and_version_win_over_everything),
        cmocka_unit_test(a_program_without_commands_takes_no_arguments),
        cmocka_unit_test(help_of_a_command_comes_from_the_table),
        cmocka_unit_test(help_of_a_program_lists_its_commands),
        cmocka_unit_test(the_man_page_is_roff),
        cmocka_unit_test(bash_completes_commands_options_and_choices),
        cmocka_unit_test(zsh_and_fish_scripts_name_commands_and_options),
    };
    return xf_test_run("opt", tests, NULL, NULL);
}
