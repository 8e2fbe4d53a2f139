// SPDX-License-Identifier: Apache-2.0
// "millrace completion SHELL": completions for bash, zsh and fish, written from the help texts. For
// `make install`; not listed among the commands.
#include <string.h>

#include "cli/cli.h"
#include "cli/help_text.h"

static const char devices[] = "cpu: model: sim: xrt:";
static const char formats[] = "mxint8 mxfp4";

// What the value of an option is, by the name that the help text gives it.
static bool is_file(const struct help_line *l)
{
    static const char *const names[] = {"PATH", "FILE", "DIR", "MODEL", "DIRECTORY"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(l->value, names[i]) == 0)
            return true;
    return strcmp(l->name, "calibrate") == 0; // self, or a file
}

static const char *values_of(const struct help_line *l)
{
    return strcmp(l->name, "device") == 0   ? devices
           : strcmp(l->name, "format") == 0 ? formats
                                            : NULL;
}

// Calls `print` for every option of the command.
static void each_option(const struct cli_command *cmd,
                        void (*print)(const struct cli_command *, const struct help_line *))
{
    struct help_reader r = {.at = cmd->usage};
    struct help_line l;
    while (help_next(&r, &l))
        if (l.kind == HELP_OPTION)
            print(cmd, &l);
}

// A text inside single quotes of any of the shells, without what zsh would take apart.
static void quoted(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        putchar(strchr("'[]\\:", text[i]) ? ' ' : text[i]);
}

static void bash_option(const struct cli_command *cmd, const struct help_line *l)
{
    (void)cmd;
    printf(" --%s", l->name);
}

static void bash_value(const struct cli_command *cmd, const struct help_line *l)
{
    const char *values = values_of(l);
    if (!*l->value)
        return;
    printf("        %s:--%s", cmd->name, l->name);
    if (l->short_name)
        printf(" | %s:-%c", cmd->name, l->short_name);
    if (values)
        printf(") COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", values);
    else
        printf(") %s ;;\n", is_file(l) ? "COMPREPLY=($(compgen -f -- \"$cur\"))" : ":");
}

static void bash(void)
{
    printf("# bash completion for millrace, made by 'millrace completion bash'\n"
           "_millrace() {\n"
           "    local cur=$2 prev=$3 command=${COMP_WORDS[1]-} options=\n"
           "    COMPREPLY=()\n"
           "    # a device has a colon, at which bash takes words apart\n"
           "    [ \"$cur\" != : ] || return\n"
           "    if [ \"$COMP_CWORD\" -le 1 ]; then\n"
           "        COMPREPLY=($(compgen -W '--help --version");
    for (int i = 0; cli_commands[i]; i++)
        printf(" %s", cli_commands[i]->name);
    printf("' -- \"$cur\"))\n        return\n    fi\n    case $command in\n");
    for (int i = 0; cli_commands[i]; i++) {
        printf("        %s) options='", cli_commands[i]->name);
        each_option(cli_commands[i], bash_option);
        printf(" --help' ;;\n");
    }
    printf("        *) return ;;\n    esac\n    case $command:$prev in\n");
    for (int i = 0; cli_commands[i]; i++)
        each_option(cli_commands[i], bash_value);
    printf("        *)\n"
           "            case $cur in\n"
           "                -*) COMPREPLY=($(compgen -W \"$options\" -- \"$cur\")) ;;\n"
           "                *) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
           "            esac\n"
           "            ;;\n"
           "    esac\n"
           "}\n"
           "complete -o filenames -o bashdefault -F _millrace millrace\n");
}

static void zsh_option(const struct cli_command *cmd, const struct help_line *l)
{
    (void)cmd;
    const char *values = values_of(l);
    for (int is_short = 0; is_short < 2; is_short++) {
        if (is_short && !l->short_name)
            continue;
        printf(" \\\n                '");
        if (is_short)
            printf("-%c", l->short_name);
        else
            printf("--%s", l->name);
        printf("[");
        quoted(l->text, l->size);
        printf("]");
        if (*l->value)
            printf(":%s:", l->value);
        if (*l->value && values) {
            printf("(");
            for (const char *p = values; *p; p++)
                printf(*p == ':' ? "\\:" : "%c", *p);
            printf(")");
        } else if (*l->value && is_file(l)) {
            printf("_files");
        }
        printf("'");
    }
}

static void zsh(void)
{
    printf("#compdef millrace\n"
           "# zsh completion for millrace, made by 'millrace completion zsh'\n"
           "_millrace() {\n"
           "    local -a commands=(");
    for (int i = 0; cli_commands[i]; i++) {
        printf("\n        '%s:", cli_commands[i]->name);
        quoted(cli_commands[i]->summary, strlen(cli_commands[i]->summary));
        printf("'");
    }
    printf("\n    )\n"
           "    if ((CURRENT == 2)); then\n"
           "        _describe command commands\n"
           "        return\n"
           "    fi\n"
           "    local command=$words[2]\n"
           "    shift words\n"
           "    ((CURRENT--))\n"
           "    case $command in\n");
    for (int i = 0; cli_commands[i]; i++) {
        printf("        %s)\n            _arguments -s", cli_commands[i]->name);
        each_option(cli_commands[i], zsh_option);
        printf(" \\\n                '--help[this help]' '*:file:_files'\n            ;;\n");
    }
    printf("    esac\n}\n_millrace \"$@\"\n");
}

static void fish_option(const struct cli_command *cmd, const struct help_line *l)
{
    const char *values = values_of(l);
    printf("complete -c millrace -n '__fish_seen_subcommand_from %s' -l %s", cmd->name, l->name);
    if (l->short_name)
        printf(" -s %c", l->short_name);
    if (*l->value)
        printf(" -r");
    if (*l->value && values)
        printf(" -f -a '%s'", values);
    else if (*l->value && !is_file(l))
        printf(" -f");
    printf(" -d '");
    quoted(l->text, l->size);
    printf("'\n");
}

static void fish(void)
{
    printf("# fish completion for millrace, made by 'millrace completion fish'\n");
    for (int i = 0; cli_commands[i]; i++) {
        printf("complete -c millrace -n __fish_use_subcommand -f -a %s -d '",
               cli_commands[i]->name);
        quoted(cli_commands[i]->summary, strlen(cli_commands[i]->summary));
        printf("'\n");
        each_option(cli_commands[i], fish_option);
    }
}

static int run(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    if (argc != 2)
        return cli_usage(&cmd_completion, "give one shell: bash, zsh or fish");
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        cli_help(&cmd_completion);
        return EXIT_OK;
    }
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
        if (strcmp(argv[1], shells[i].name) == 0) {
            shells[i].print();
            return EXIT_OK;
        }
    return cli_usage(&cmd_completion, "'%s' is not bash, zsh or fish", argv[1]);
}

const struct cli_command cmd_completion = {
    "completion",
    "completions for a shell on standard output",
    "bash|zsh|fish\n\nexample:\n  source <(millrace completion bash)\n",
    run,
};
