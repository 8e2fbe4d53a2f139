// SPDX-License-Identifier: Apache-2.0
#include "cli/base/status_line.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "common/clock.h"

enum { TAB = 8, EVERY = 30 };

// What cli_line_abandon() has to write.
enum { NOTHING, OWN_LINE, LINE_BELOW };
static volatile sig_atomic_t on_screen;

static double ended = -1e9, silent_since; // a line that nothing was printed behind

void cli_line_open(struct cli_line *l, bool quiet, bool text)
{
    const char *term = getenv("TERM");
    *l = (struct cli_line){.on = !quiet && isatty(STDERR_FILENO) &&
                                 !(term && strcmp(term, "dumb") == 0),
                           .every = quiet ? 0 : EVERY};
    double now = mr_seconds();
    l->last = now - ended < 1 ? silent_since : now;
    l->below = l->on && text && isatty(STDOUT_FILENO);
}

static size_t width(void)
{
    struct winsize w;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &w) == 0 && w.ws_col > 0 ? w.ws_col : 80;
}

// Beneath the text: there must be a line (IND and RI: down and up again, which scrolls where the
// text is in the last one), then to its beginning and back to where the text goes on.
#define MAKE_ROOM "\033D\033M"
#define GO_BELOW  "\0337\033[B\r"
#define GO_BACK   "\0338"

// What of the line has room: whole words, for a number that is cut is another number.
static int room(const char *line, size_t most)
{
    size_t n = strlen(line);
    if (n > most)
        for (n = most; n > 0 && line[n] != ' ';)
            n--;
    return (int)n;
}

void cli_line_show(struct cli_line *l, const char *line)
{
    size_t most = width() - 1; // in the last column a terminal may begin the next line
    if (!l->on) {
        if (l->every > 0 && mr_seconds() - l->last >= l->every) {
            fprintf(stderr, "millrace: %s\n", line);
            l->last = mr_seconds();
        }
        return;
    }
    // Behind a full line the cursor is neither here nor there; the next token takes it away.
    if (l->below && l->column > 0 && l->column % (most + 1) == 0)
        return;
    on_screen = l->below ? LINE_BELOW : OWN_LINE;
    (void)cli_flush();
    if (l->below)
        fprintf(stderr, MAKE_ROOM GO_BELOW "%.*s\033[K" GO_BACK, room(line, most), line);
    else
        fprintf(stderr, "\r%.*s\033[K", room(line, most), line);
    (void)fflush(stderr);
    l->shown = true;
}

void cli_line_wipe(struct cli_line *l)
{
    if (l->shown)
        fputs(l->below ? GO_BELOW "\033[K" GO_BACK : "\r\033[K", stderr);
    (void)fflush(stderr);
    l->last = mr_seconds();
    l->shown = false;
    on_screen = NOTHING;
}

void cli_line_end(struct cli_line *l)
{
    silent_since = l->last;
    if (l->shown)
        cli_line_wipe(l);
    ended = mr_seconds();
}

void cli_line_text(struct cli_line *l, const char *text, size_t size)
{
    cli_line_wipe(l);
    for (size_t i = 0; l->below && i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '\n' || c == '\r')
            l->column = 0;
        else if (c == '\t')
            l->column = (l->column / TAB + 1) * TAB;
        else if (c >= ' ' && (c & 0xC0) != 0x80) // a character of UTF-8 has one such byte
            l->column++;
    }
}

void cli_line_abandon(void)
{
    static const char wipe[] = "\r\033[K", below[] = GO_BELOW "\033[K" GO_BACK;
    ssize_t n = on_screen == OWN_LINE     ? write(STDERR_FILENO, wipe, sizeof wipe - 1)
                : on_screen == LINE_BELOW ? write(STDERR_FILENO, below, sizeof below - 1)
                                          : 0;
    (void)n; // there is nobody to tell
}

int cli_flush(void)
{
    static int first;
    if ((fflush(stdout) != 0 || ferror(stdout)) && first == 0)
        first = errno != 0 ? errno : EIO;
    return first;
}
