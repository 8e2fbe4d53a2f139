// SPDX-License-Identifier: Apache-2.0
// "millrace man [COMMAND]": the man pages, written from the tables of options. For `make install`;
// not listed among the commands.
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/base/help.h"
#include "cli/base/parse.h"

static const char *const statuses[][2] = {
    {"0", "success"},
    {"2", "usage: an unknown command, option or device, a value out of range"},
    {"3", "input or output: a file is missing, damaged or not supported, a disk is full, memory "
          "has run out; of a batch or a list, any of its lines"},
    {"4", "the device reported an error or is not there"},
    {"5", "results differ, or a bar is missed"},
    {"130", "interrupted; serve ends with 0"},
    {"141", "whoever read the output has closed it"},
};

static const char *const environment[][2] = {
    {"MILLRACE_THREADS", "threads of the C model, of packing and of checks; all processors if not "
                         "set"},
    {"MILLRACE_SIM_DIR", "where the simulators of sim: are, before the places beside the program"},
    {"MILLRACE_XCLBIN", "the engine's xclbin for xrt:"},
    {"NO_COLOR", "if not empty: no colours on a terminal"},
};

// In roff a hyphen is "\-", a backslash "\e", and a line must not begin with a control character.
static void roff(const char *text, size_t size)
{
    if (size > 0 && (*text == '.' || *text == '\''))
        fputs("\\&", stdout);
    for (size_t i = 0; i < size; i++) {
        if (text[i] == '-')
            fputs("\\-", stdout);
        else if (text[i] == '\\')
            fputs("\\e", stdout);
        else
            putchar(text[i]);
    }
}

static void roff_line(const char *text)
{
    roff(text, strlen(text));
    putchar('\n');
}

// The day of SOURCE_DATE_EPOCH, so that the same sources make the same page; without it today.
static void title(const char *name)
{
    const char *epoch = getenv("SOURCE_DATE_EPOCH");
    time_t t = epoch ? (time_t)strtoll(epoch, NULL, 10) : time(NULL);
    struct tm day;
    char date[32] = "1970-01-01", upper[64];
    if (gmtime_r(&t, &day))
        (void)strftime(date, sizeof date, "%Y-%m-%d", &day);
    size_t i = 0;
    for (; name[i] && i + 1 < sizeof upper; i++)
        upper[i] = (char)(name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
    upper[i] = 0;
    printf(".TH ");
    roff(upper, i);
    printf(" 1 \"%s\" \"millrace %s\" \"Millrace\"\n.SH NAME\n", date, MR_VERSION_STRING);
    roff(name, strlen(name));
}

static void entry(const struct cli_option *o)
{
    printf(".TP\n");
    if (o->argument) {
        printf("\\fI");
        roff(o->value, strlen(o->value));
        printf("\\fR\n");
    } else {
        if (o->letter)
            printf("\\fB\\-%c\\fR, ", o->letter);
        printf("\\fB\\-\\-");
        roff(o->name, strlen(o->name));
        printf("\\fR");
        if (o->value) {
            printf(" \\fI");
            roff(o->value, strlen(o->value));
            printf("\\fR");
        }
        putchar('\n');
    }
    roff_line(help_of(o));
}

// Line by line, what separates them between.
static void lines(const char *text, const char *between)
{
    for (const char *first = text; *text;) {
        size_t n = strcspn(text, "\n");
        if (text != first && n > 0)
            printf("%s", between);
        roff(text, n);
        if (n > 0)
            putchar('\n');
        text += n;
        text += *text == '\n';
    }
}

static void synopsis(const struct cli_command *cmd)
{
    const char *second = strchr(cmd->synopsis, '\n');
    printf(".SH SYNOPSIS\n\\fBmillrace %s\\fR ", cmd->name);
    roff(cmd->synopsis, strcspn(cmd->synopsis, "\n"));
    putchar('\n');
    if (second) {
        printf(".br\n\\fBmillrace\\fR ");
        roff_line(second + 1);
    }
}

static void body(const struct cli_command *cmd)
{
    synopsis(cmd);
    if (cmd->about) {
        printf(".SH DESCRIPTION\n");
        lines(cmd->about, ".PP\n");
    }
    printf(".SH OPTIONS\n");
    for (const struct cli_option *o = cmd->options; o->name; o++)
        entry(o);
    if (cmd->notes) {
        printf(".SH NOTES\n");
        lines(cmd->notes, ".PP\n");
    }
    printf(".SH EXAMPLES\n.EX\n");
    lines(cmd->examples, "");
    printf(".EE\n");
}

static void command_page(const struct cli_command *cmd)
{
    char name[64];
    (void)snprintf(name, sizeof name, "millrace-%s", cmd->name);
    title(name);
    printf(" \\- ");
    roff_line(cmd->summary);
    body(cmd);
    printf(".SH EXIT STATUS\nSee\n.BR millrace (1).\n.SH SEE ALSO\n.BR millrace (1)\n");
}

static void table(const char *heading, const char *const (*rows)[2], size_t count)
{
    printf(".SH %s\n", heading);
    for (size_t i = 0; i < count; i++) {
        printf(".TP\n\\fB%s\\fR\n", rows[i][0]);
        roff_line(rows[i][1]);
    }
}

static void main_page(void)
{
    title("millrace");
    printf(" \\- GPT\\-J, GPT\\-2 and BERT by weight streaming\n.SH SYNOPSIS\n"
           "\\fBmillrace\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR]\n"
           ".br\n\\fBmillrace\\fR \\fB\\-\\-help\\fR | \\fB\\-\\-version\\fR\n"
           ".SH DESCRIPTION\n");
    roff_line(cli_summary);
    printf("Errors are one line on standard error that says what failed, where, and what to do.\n"
           ".SH COMMANDS\n");
    for (int i = 0; cli_commands[i]; i++) {
        printf(".TP\n\\fBmillrace\\-%s\\fR(1)\n", cli_commands[i]->name);
        roff_line(cli_commands[i]->summary);
    }
    table("EXIT STATUS", statuses, sizeof statuses / sizeof *statuses);
    table("ENVIRONMENT", environment, sizeof environment / sizeof *environment);
    printf(".SH SEE ALSO\n");
    for (int i = 0; cli_commands[i]; i++)
        printf(".BR millrace\\-%s (1)%s\n", cli_commands[i]->name, cli_commands[i + 1] ? "," : "");
}

struct args {
    const char *command;
};

static int run(void *args)
{
    const struct args *a = args;
    if (!a->command) {
        main_page();
        return EXIT_OK;
    }
    for (int i = 0; cli_commands[i]; i++)
        if (strcmp(a->command, cli_commands[i]->name) == 0) {
            command_page(cli_commands[i]);
            return EXIT_OK;
        }
    return cli_usage(&cmd_man, "there is no command '%s'", a->command);
}

#define ARGS struct args

static const struct cli_option options[] = {
    CLI_ROW(CLI_TEXT, "command", "COMMAND", command, "the command's page; else that of the program",
            .argument = true),
    {0},
};

const struct cli_command cmd_man = {
    .name = "man",
    .summary = "a man page on standard output",
    .synopsis = "[COMMAND]",
    .arguments = "command",
    .options = options,
    .size = sizeof(ARGS),
    .examples = "millrace man generate | man -l -",
    .run = run,
};
