// SPDX-License-Identifier: Apache-2.0
#include "cli/help_text.h"

#include <stdio.h>
#include <string.h>

enum { CONTINUED = 20 }; // spaces in front of a line that goes on

// "--model PATH", "-m, --model PATH" or "MODEL".
static void read_term(struct help_line *l, const char *term, size_t size)
{
    if (*term != '-') {
        l->kind = HELP_ARGUMENT;
        (void)snprintf(l->name, sizeof l->name, "%.*s", (int)size, term);
        return;
    }
    l->kind = HELP_OPTION;
    if (size > 4 && term[1] != '-') { // "-m, "
        l->short_name = term[1];
        term += 4;
        size -= 4;
    }
    const char *space = memchr(term, ' ', size);
    size_t name = space ? (size_t)(space - term) : size;
    (void)snprintf(l->name, sizeof l->name, "%.*s", (int)name - 2, term + 2);
    if (space)
        (void)snprintf(l->value, sizeof l->value, "%.*s", (int)(size - name - 1), space + 1);
}

static void read_entry(struct help_line *l, const char *p, const char *end)
{
    const char *gap = p;
    while (gap < end && !(gap[0] == ' ' && gap + 1 < end && gap[1] == ' '))
        gap++;
    read_term(l, p, (size_t)(gap - p));
    while (gap < end && *gap == ' ')
        gap++;
    l->text = gap;
    l->size = (size_t)(end - gap);
}

int help_next(struct help_reader *r, struct help_line *l)
{
    if (!*r->at)
        return 0;
    const char *p = r->at, *end = strchr(p, '\n');
    if (!end)
        end = p + strlen(p);
    r->at = *end ? end + 1 : end;
    *l = (struct help_line){0};
    size_t indent = strspn(p, " ");
    p += indent < (size_t)(end - p) ? indent : (size_t)(end - p);
    l->text = p;
    l->size = (size_t)(end - p);
    if (l->size == 0) {
        l->kind = HELP_BLANK;
        if (r->part == HELP_SYNOPSIS)
            r->part = HELP_TEXT;
    } else if (r->part == HELP_TEXT && indent == 0 && strncmp(p, "example", 7) == 0 &&
               end[-1] == ':') {
        r->part = HELP_EXAMPLE;
        l->kind = HELP_BLANK;
    } else if (r->part != HELP_TEXT || indent == 0) {
        l->kind = r->part;
    } else if (indent >= CONTINUED) {
        l->kind = HELP_MORE;
    } else {
        read_entry(l, p, end);
    }
    return 1;
}
