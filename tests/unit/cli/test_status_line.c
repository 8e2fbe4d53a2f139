// SPDX-License-Identifier: Apache-2.0
// What a terminal gets of the line of progress, and of colours.
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include <cmocka.h>

#include "cli/base/cli.h"
#include "cli/base/status_line.h"

#define COLUMNS 10
#define END     "<end>"
#define BELOW   "\033D\033M\0337\033[B\rabc\033[K\0338" // room is made, and "abc" stands beneath
#define TAKEN   "\0337\033[B\r\033[K\0338"              // off again

static int terminal = -1, out = -1, err = -1; // its other end; what 1 and 2 were
static char got[4096];

// From here to ends() standard output and error are a terminal. Nothing may be asserted between.
static void begins(void)
{
    terminal = posix_openpt(O_RDWR | O_NOCTTY);
    assert_true(terminal >= 0);
    assert_int_equal(grantpt(terminal) | unlockpt(terminal), 0);
    int side = open(ptsname(terminal), O_RDWR | O_NOCTTY);
    assert_true(side >= 0);
    struct termios t;
    assert_int_equal(tcgetattr(side, &t), 0);
    cfmakeraw(&t);
    assert_int_equal(tcsetattr(side, TCSANOW, &t), 0);
    struct winsize size = {.ws_row = 5, .ws_col = COLUMNS};
    assert_int_equal(ioctl(side, TIOCSWINSZ, &size), 0);
    (void)fflush(NULL);
    out = dup(STDOUT_FILENO);
    err = dup(STDERR_FILENO);
    assert_true(out >= 0 && err >= 0);
    (void)dup2(side, STDOUT_FILENO);
    (void)dup2(side, STDERR_FILENO);
    (void)close(side);
}

// What it has got since.
static const char *ends(void)
{
    size_t n = 0;
    fputs(END, stderr);
    (void)fflush(NULL);
    for (ssize_t more; n + 1 < sizeof got && !strstr(got, END); n += (size_t)more) {
        more = read(terminal, got + n, sizeof got - 1 - n);
        got[n + (size_t)(more > 0 ? more : 0)] = 0;
        if (more <= 0)
            break;
    }
    (void)dup2(out, STDOUT_FILENO);
    (void)dup2(err, STDERR_FILENO);
    (void)close(out);
    (void)close(err);
    (void)close(terminal);
    char *end = strstr(got, END);
    assert_non_null(end);
    *end = 0;
    return got;
}

static void set(const char *name, const char *value)
{
    assert_int_equal(value ? setenv(name, value, 1) : unsetenv(name), 0);
}

static void terminals_that_get_a_line(void **state)
{
    (void)state;
    static const struct {
        const char *term;
        bool quiet;
        const char *text;
    } cases[] = {{"xterm", false, "\rabc\033[K\r\033[K"},
                 {NULL, false, "\rabc\033[K\r\033[K"}, // nothing is known of it
                 {"dumb", false, ""},
                 {"xterm", true, ""}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli_line l;
        set("TERM", cases[i].term);
        begins();
        cli_line_open(&l, cases[i].quiet, false);
        cli_line_show(&l, "abc");
        cli_line_wipe(&l);
        assert_string_equal(ends(), cases[i].text);
    }
}

static void terminals_that_get_colours(void **state)
{
    (void)state;
    static const struct {
        const char *term, *no_color;
        bool colours;
    } cases[] = {{"xterm", NULL, true},
                 {"xterm", "", true},
                 {"xterm", "1", false},
                 {"dumb", NULL, false},
                 {NULL, NULL, false}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        set("TERM", cases[i].term);
        set("NO_COLOR", cases[i].no_color);
        begins();
        fputs(cli_style(stderr, STYLE_BOLD), stderr);
        assert_string_equal(ends(), cases[i].colours ? "\033[1m" : "");
    }
}

// Behind a full line of text a terminal's cursor is nowhere: no line is shown until it moves.
static void text_that_fills_its_line(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool shown;
    } cases[] = {{"", true},
                 {"123456789", true},
                 {"1234567890", false},
                 {"12345678901", true},
                 {"12345678901234567890", false},
                 {"1234567890\n", true},
                 {"1234567890\r", true},
                 {"ab\tcd", false}, // to column 8, and two more
                 {"ab\tc", true},
                 {"\xc3\xa4"
                  "234567890",
                  false}, // one character of two bytes
                 {"\xc3\xa4"
                  "23456789",
                  true},
                 {"123456789\a", true}}; // a bell takes no room
    set("TERM", "xterm");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli_line l;
        char want[128];
        (void)snprintf(want, sizeof want, "%s%s", cases[i].text, cases[i].shown ? BELOW : "");
        begins();
        cli_line_open(&l, false, true);
        cli_line_text(&l, cases[i].text, strlen(cases[i].text));
        fputs(cases[i].text, stdout);
        (void)fflush(stdout);
        cli_line_show(&l, "abc");
        assert_string_equal(ends(), want);
        l.shown = false; // that terminal is gone
        cli_line_wipe(&l);
    }
}

// A second Ctrl-C ends the program at once: nothing of the line may stay.
static void line_that_is_left_in_a_hurry(void **state)
{
    (void)state;
    static const struct {
        bool shown, text;
        const char *want;
    } cases[] = {{false, false, ""},
                 {false, true, ""},
                 {true, false, "\rabc\033[K\r\033[K"},
                 {true, true, BELOW TAKEN}};
    set("TERM", "xterm");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cli_line l;
        begins();
        cli_line_open(&l, false, cases[i].text);
        if (cases[i].shown)
            cli_line_show(&l, "abc");
        cli_line_abandon();
        assert_string_equal(ends(), cases[i].want);
        l.shown = false; // that terminal is gone
        cli_line_wipe(&l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terminals_that_get_a_line), cmocka_unit_test(terminals_that_get_colours),
        cmocka_unit_test(text_that_fills_its_line), cmocka_unit_test(line_that_is_left_in_a_hurry)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
