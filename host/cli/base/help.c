// SPDX-License-Identifier: Apache-2.0
#include "cli/base/help.h"

#include <stdio.h>
#include <string.h>

#include "common/error.h"

enum { INDENT = 24, WIDTH = 96 };

const char *help_of(const struct cli_option *o)
{
    static char text[1024];
    const char *rest = o->help, *at = o->names ? strstr(rest, "%s") : NULL;
    size_t n = 0;
    if (at) {
        n = (size_t)snprintf(text, sizeof text, "%.*s%s", (int)(at - rest), rest,
                             mr_names_of(o->names, ", ", " or ").text);
        rest = at + 2;
    }
    if (!at && !o->def)
        return o->help;
    (void)snprintf(text + n, sizeof text - n, o->def ? "%s (default %s)" : "%s", rest, o->def);
    return text;
}

// Words up to the width, `indent` spaces in front of each line but the first.
static void wrap(const char *text, int column, int indent)
{
    bool first = true;
    while (*text) {
        int n = (int)strcspn(text, " ");
        if (!first && column + 1 + n > WIDTH) {
            printf("\n%*s", indent, "");
            column = indent;
        } else if (!first) {
            putchar(' ');
            column++;
        }
        printf("%.*s", n, text);
        column += n;
        text += n;
        text += *text == ' ';
        first = false;
    }
    putchar('\n');
}

static void print_option(const struct cli_option *o)
{
    char term[64];
    int n;
    const char *space = o->value ? " " : "", *value = o->value ? o->value : "";
    if (o->argument)
        n = snprintf(term, sizeof term, "  %s", value);
    else if (o->letter)
        n = snprintf(term, sizeof term, "  -%c, --%s%s%s", o->letter, o->name, space, value);
    else
        n = snprintf(term, sizeof term, "      --%s%s%s", o->name, space, value);
    int gap = n + 2 <= INDENT ? INDENT - n : 2;
    printf("%s%*s", term, gap, "");
    wrap(help_of(o), n + gap, INDENT);
}

// Paragraphs, with an empty line between two.
static void print_text(const char *text)
{
    while (*text) {
        char paragraph[2048];
        const char *end = strstr(text, "\n\n");
        size_t n = end ? (size_t)(end - text) : strlen(text);
        n = n < sizeof paragraph ? n : sizeof paragraph - 1;
        memcpy(paragraph, text, n);
        paragraph[n] = 0;
        wrap(paragraph, 0, 0);
        putchar('\n');
        text = end ? end + 2 : text + strlen(text);
    }
}

static void print_lines(const char *text, const char *before)
{
    while (*text) {
        int n = (int)strcspn(text, "\n");
        printf("%s%.*s\n", before, n, text);
        text += n;
        text += *text == '\n';
    }
}

void help_print(const struct cli_command *cmd)
{
    const char *second = strchr(cmd->synopsis, '\n');
    printf("usage: millrace %s %.*s\n", cmd->name, (int)strcspn(cmd->synopsis, "\n"),
           cmd->synopsis);
    if (second)
        print_lines(second + 1, "       millrace ");
    putchar('\n');
    if (cmd->about)
        print_text(cmd->about);
    for (const struct cli_option *o = cmd->options; o->name; o++)
        print_option(o);
    putchar('\n');
    if (cmd->notes)
        print_text(cmd->notes);
    printf("example%s:\n", strchr(cmd->examples, '\n') ? "s" : "");
    print_lines(cmd->examples, "  ");
}
