// SPDX-License-Identifier: Apache-2.0
// "millrace completion SHELL": completions for bash, zsh and fish, written from the tables of
// options. For `make install`; not listed among the commands.
#include <string.h>

#include "cli/base/help.h"
#include "cli/base/cli.h"
#include "device/open.h"

static bool is_file(const struct cli_option *o)
{
    return o->kind == CLI_PATH || o->kind == CLI_OUTPUT;
}

// The words that the value may be, with spaces between; NULL if they are not known.
static const char *values_of(const struct cli_option *o)
{
    static char words[256];
    const char *(*names)(int) = o->kind == CLI_DEVICE ? mr_device_kind : o->names;
    if (names) {
        (void)snprintf(words, sizeof words, "%s", mr_names_of(names, " ", " ").text);
        return words;
    }
    if (!o->choices)
        return NULL;
    (void)snprintf(words, sizeof words, "%s", o->choices);
    for (char *p = words; *p; p++)
        *p = *p == '|' ? ' ' : *p;
    return words;
}

// Calls `print` for every option of the command.
static void each_option(const struct cli_command *cmd,
                        void (*print)(const struct cli_command *, const struct cli_option *))
{
    for (const struct cli_option *o = cmd->options; o->name; o++)
        if (!o->argument)
            print(cmd, o);
}

// A text inside single quotes of any of the shells, without what zsh would take apart.
static void quoted(const char *text, size_t size)
{
    for (size_t i = 0; i < size; i++)
        putchar(strchr("'[]\\:", text[i]) ? ' ' : text[i]);
}

static void bash_option(const struct cli_command *cmd, const struct cli_option *o)
{
    (void)cmd;
    printf(" --%s", o->name);
}

static void bash_value(const struct cli_command *cmd, const struct cli_option *o)
{
    const char *values = values_of(o);
    if (!o->value)
        return;
    printf("        %s:--%s", cmd->name, o->name);
    if (o->letter)
        printf(" | %s:-%c", cmd->name, o->letter);
    if (values)
        printf(") COMPREPLY=($(compgen -W '%s' -- \"$cur\")) ;;\n", values);
    else
        printf(") %s ;;\n", is_file(o) ? "COMPREPLY=($(compgen -f -- \"$cur\"))" : ":");
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

static void zsh_option(const struct cli_command *cmd, const struct cli_option *o)
{
    (void)cmd;
    const char *values = values_of(o);
    for (int is_short = 0; is_short < 2; is_short++) {
        if (is_short && !o->letter)
            continue;
        printf(" \\\n                '");
        if (is_short)
            printf("-%c", o->letter);
        else
            printf("--%s", o->name);
        printf("[");
        quoted(help_of(o), strlen(help_of(o)));
        printf("]");
        if (o->value)
            printf(":%s:", o->value);
        if (o->value && values) {
            printf("(");
            for (const char *p = values; *p; p++)
                printf(*p == ':' ? "\\:" : "%c", *p);
            printf(")");
        } else if (o->value && is_file(o)) {
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

static void fish_option(const struct cli_command *cmd, const struct cli_option *o)
{
    const char *values = values_of(o);
    printf("complete -c millrace -n '__fish_seen_subcommand_from %s' -l %s", cmd->name, o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    if (o->value)
        printf(" -r");
    if (o->value && values)
        printf(" -f -a '%s'", values);
    else if (o->value && !is_file(o))
        printf(" -f");
    printf(" -d '");
    quoted(help_of(o), strlen(help_of(o)));
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

struct args {
    int shell;
};

static int run(void *args)
{
    static void (*const shells[])(void) = {bash, zsh, fish};
    shells[((const struct args *)args)->shell]();
    return EXIT_OK;
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ROW(CLI_CHOICE, "shell", "SHELL", shell, "whose", .argument = true,
            .choices = "bash|zsh|fish", .missing = "give one shell: bash, zsh or fish"),
    {0},
};

const struct cli_command cmd_completion = {
    .name = "completion",
    .summary = "completions for a shell on standard output",
    .synopsis = "bash|zsh|fish",
    .arguments = "shell",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "source <(millrace completion bash)",
    .run = run,
};
