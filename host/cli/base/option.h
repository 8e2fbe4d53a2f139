// SPDX-License-Identifier: Apache-2.0
// The table of a command's options. From it come parsing and its errors (parse.h), --help (help.h),
// the man page (manual.c) and the shells' completions (completion.c): an option stands nowhere
// else.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// What the value is, and what stands at its destination.
enum cli_kind {
    CLI_FLAG,    // no value; bool
    CLI_TEXT,    // const char *
    CLI_ESCAPED, // the same, with \n, \t and \\ replaced
    CLI_PATH,    // const char *: a file or directory to read, or "-" where the command says so
    CLI_OUTPUT,  // const char *: a file to write; not "-", standard output is for results
    CLI_DEVICE,  // const char *: a device URI
    CLI_WORD,    // const char *: one of `choices`
    CLI_CHOICE,  // int: the place of the word among `choices`
    CLI_INT,     // whole number from low to high; int, long or 64 bits, by its size
    CLI_SIZE,    // bytes, as mr_size_of() reads them, from low to high; size_t
    CLI_NUMBER,  // number from low to high; float or double, by its size
    CLI_LIST, // whole numbers with commas between, each from low to high; long[most], and int count
    CLI_TEXTS, // may be given again and again, each as CLI_ESCAPED; const char *[most], int count
};

struct cli_option {
    const char *name; // without "--"; NULL ends the table
    char letter;      // "-m"; 0: none
    bool argument;    // not an option, but an argument (struct cli_command.arguments); VALUE is its
                      // name
    enum cli_kind kind;
    const char *value;   // its name in help texts, one word; NULL of flags
    const char *help;    // what it does; the names stand where it has "%s"
    const char *choices; // "mxint8|mxfp4"
    // The names of a list that stands elsewhere, NULL behind the last: of CLI_TEXT what a shell may
    // offer, of CLI_DEVICE the configurations.
    const char *(*names)(int index);
    double low, high;     // of numbers; both are given, as numbers that a double holds exactly
    const char *unit;     // of CLI_NUMBER: in which it is, for the message; NULL: it has none
    const char *def;      // the value without the option, in words of the command line; NULL: zero
    size_t at, size;      // destination in the command's structure (CLI_AT)
    size_t count;         // of lists: where the int is that counts them
    int most;             // of lists
    size_t given;         // 1 + where the bool is that the option sets; 0: nowhere (CLI_GIVEN)
    const char *excludes; // names of options that it cannot stand with: "save-kv load-kv"
    const char *because;  // why, for the message; NULL: it explains itself
    const char *needs;    // name of the option without which it means nothing
    const char *missing;  // it must be given: what is said if it is not
    const char *onto;     // of CLI_OUTPUT: name of the option whose file it may replace
};

// Rows of a table whose file defines ARGS, the command's structure. Behind HELP may stand what else
// the row has.
#define CLI_ROW(KIND, NAME, VALUE, MEMBER, HELP, ...)                                              \
    {.name = NAME, .kind = KIND, .value = VALUE, .help = HELP, CLI_AT(MEMBER), __VA_ARGS__}
#define CLI_ROW_NUMBER(KIND, NAME, VALUE, MEMBER, LOW, HIGH, HELP, ...)                            \
    CLI_ROW(KIND, NAME, VALUE, MEMBER, HELP, .low = LOW, .high = HIGH, __VA_ARGS__)
#define CLI_ROW_FLAG(NAME, MEMBER, HELP, ...)                                                      \
    CLI_ROW(CLI_FLAG, NAME, NULL, MEMBER, HELP, __VA_ARGS__)
// MEMBER is the array of CLI_LIST and CLI_TEXTS, COUNT says how many it has.
#define CLI_ROW_LIST(KIND, NAME, VALUE, MEMBER, COUNT, HELP, ...)                                  \
    {.name = NAME,                                                                                 \
     .kind = KIND,                                                                                 \
     .value = VALUE,                                                                               \
     .help = HELP,                                                                                 \
     CLI_LIST_AT(MEMBER, COUNT),                                                                   \
     __VA_ARGS__}
#define CLI_LIST_AT(MEMBER, COUNT)                                                                 \
    .at = offsetof(ARGS, MEMBER), .size = sizeof(((ARGS *)NULL)->MEMBER[0]),                       \
    .most = (int)(sizeof(((ARGS *)NULL)->MEMBER) / sizeof(((ARGS *)NULL)->MEMBER[0])),             \
    .count = offsetof(ARGS, COUNT)
#define CLI_AT(MEMBER)    .at = offsetof(ARGS, MEMBER), .size = sizeof(((ARGS *)NULL)->MEMBER)
#define CLI_GIVEN(MEMBER) .given = 1 + offsetof(ARGS, MEMBER)
// Whole numbers beyond 2^53 do not fit low and high: this stands for 2^63 - 1.
#define CLI_LONG_MAX 0x1p63

struct cli_command {
    const char *name;
    const char *summary;   // one line
    const char *synopsis;  // behind the name; a second line is a second form
    const char *about;     // paragraphs, an empty line between; NULL: none
    const char *arguments; // names of options whose values may also stand alone, in this order
    const char *too_many;  // told to who gives one argument more than these; NULL: nothing
    const struct cli_option *options;
    size_t size;          // of the structure that they go into
    const char *notes;    // as `about`, behind the options
    const char *examples; // a command a line
    // What is parsed in the place of the command line's words; NULL: they are. One block that the
    // caller frees, or NULL without memory.
    char **(*words)(void *args, char **argv);
    int (*run)(void *args); // the structure, filled; an exit status
};
