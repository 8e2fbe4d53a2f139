// SPDX-License-Identifier: Apache-2.0
// What somebody sees who looks at a terminal: reads what a program wrote to one (script(1)) and
// prints its lines, those that have scrolled away too, as they stand at the end. Lines that the
// terminal itself has broken are printed as one, so that text comes out as it went in.
//
//     screen COLUMNS ROWS <typescript
//
// Knows what Millrace writes and nothing else: another control sequence is an error (status 1).
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS = 400, LINES = 20000 };

static char cell[LINES][COLUMNS + 1];
static bool goes_on[LINES]; // in the next line, broken by the terminal
static int columns, rows;
static int top, last; // first line of the screen; last one that has been used
static int line, column, kept_row, kept_column;
static bool pending; // behind the last column: the next character begins a line

static int stop(const char *why)
{
    fprintf(stderr, "screen: line %d, column %d: %s\n", line, column, why);
    exit(1);
}

static void down(void)
{
    if (line + 1 == LINES)
        stop("too many lines");
    line++;
    if (line >= top + rows)
        top = line - rows + 1;
    last = line > last ? line : last;
}

static void put(int c)
{
    if (pending) {
        goes_on[line] = true;
        down();
        column = 0;
    }
    cell[line][column] = (char)c;
    pending = column + 1 == columns;
    column += !pending;
}

static void erase_to_the_end(void)
{
    memset(cell[line] + column, 0, (size_t)(columns - column));
    goes_on[line] = false;
}

// ESC [ ...: those of colours and styles change nothing here.
static void sequence(void)
{
    int c = getchar(), n = 0;
    bool given = false;
    for (; (c >= '0' && c <= '9') || c == ';' || c == '?'; c = getchar()) {
        given = true;
        n = c == ';' || c == '?' ? 0 : 10 * n + c - '0';
    }
    pending = pending && (c == 'm' || c == 'h' || c == 'l');
    if (c == 'K' && n == 0)
        erase_to_the_end();
    else if (c == 'B' && line + (given ? n : 1) < top + rows)
        line += given ? n : 1;
    else if (c != 'm' && c != 'h' && c != 'l')
        stop("an unknown control sequence");
    last = line > last ? line : last;
}

static void escape(void)
{
    int c = getchar();
    switch (c) {
    case '[':
        sequence();
        return;
    case 'D':
        down();
        break;
    case 'M':
        if (line == top)
            stop("the cursor leaves the screen");
        line--;
        break;
    case '7':
        kept_row = line - top;
        kept_column = column;
        return;
    case '8':
        line = top + kept_row;
        column = kept_column;
        break;
    default:
        stop("an unknown escape");
    }
    pending = false;
}

static void print(void)
{
    while (last > 0 && cell[last][0] == 0) // where a line stood that was taken off
        last--;
    for (int i = 0; i <= last; i++) {
        int n = columns;
        while (n > 0 && cell[i][n - 1] == 0)
            n--;
        for (int k = 0; k < n; k++)
            putchar(cell[i][k] ? cell[i][k] : ' ');
        if (!goes_on[i])
            putchar('\n');
    }
}

int main(int n, char **v)
{
    columns = n == 3 ? atoi(v[1]) : 0;
    rows = n == 3 ? atoi(v[2]) : 0;
    if (columns < 2 || columns > COLUMNS || rows < 2 || rows > LINES)
        return fprintf(stderr, "usage: screen COLUMNS ROWS <typescript\n"), 2;
    for (int c; (c = getchar()) != EOF;) {
        if (c == 27) {
            escape();
        } else if (c == '\r') {
            column = 0;
            pending = false;
        } else if (c == '\n') {
            down();
            pending = false;
        } else if (c == '\b' && column > 0) {
            column--;
        } else if (c >= ' ' && c < 127) {
            put(c);
        } else if (c != 7) {
            stop("a character that is not of ASCII");
        }
    }
    print();
    return 0;
}
