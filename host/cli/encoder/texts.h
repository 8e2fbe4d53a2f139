// SPDX-License-Identifier: Apache-2.0
// Commands that an encoder answers: their texts, from the command line or line by line.
#ifndef MILLRACE_CLI_ENCODER_TEXTS_H
#define MILLRACE_CLI_ENCODER_TEXTS_H

#include "cli/base/shared_options.h"

struct cli_texts {
    struct cli_common c;
    const char *text, *file;
    const char *pair, *pair_file; // a second text: of all of them, or one a line of a file
    bool truncate;
};

// Opens the model, then calls `answer` with the texts, in their order, at most CLI_TEXTS_AT_ONCE at
// a time, and with `args`, which begin with struct cli_texts. It prints, and returns 0 or the
// error. An exit status.
enum { CLI_TEXTS_AT_ONCE = 64 };
int cli_answer_texts(const struct cli_command *cmd, void *args,
                     int (*answer)(void *arg, struct mr_encoder *encoder,
                                   const struct mr_encoder_text *texts, int count,
                                   struct mr_error *err));

// Prints and frees a JSON object, on a line of its own.
int cli_json_line(json_t *object);

// An array of numbers as JSON.
json_t *cli_json_floats(const float *x, int count);

#define CLI_ENCODER(TYPE)                                                                          \
    {.name = "model",                                                                              \
     .letter = 'm',                                                                                \
     .kind = CLI_PATH,                                                                             \
     .value = "PATH",                                                                              \
     .help = "Hugging Face directory of an encoder; the same as the first argument",               \
     .missing = CLI_NO_MODEL,                                                                      \
     CLI_AT(TYPE, t.c.model)},                                                                     \
        {.name = "text",                                                                           \
         .letter = 't',                                                                            \
         .kind = CLI_TEXT,                                                                         \
         .value = "TEXT",                                                                          \
         .help = "the text, the same as the argument behind the model; without it --file, or "     \
                 "standard input",                                                                 \
         .excludes = "file",                                                                       \
         CLI_AT(TYPE, t.text)},                                                                    \
        {.name = "file",                                                                           \
         .letter = 'f',                                                                            \
         .kind = CLI_PATH,                                                                         \
         .value = "PATH",                                                                          \
         .help = "a text in each line of a file, '-' for standard input",                          \
         CLI_AT(TYPE, t.file)},                                                                    \
        {.name = "device",                                                                         \
         .letter = 'd',                                                                            \
         .kind = CLI_DEVICE,                                                                       \
         .value = "URI",                                                                           \
         .help = "cpu: (fp32), or an engine, in MXINT8: model:, sim:, xrt:, pci:",                 \
         .def = "cpu:",                                                                            \
         CLI_AT(TYPE, t.c.device)},                                                                \
        {.name = "two-pass",                                                                       \
         .kind = CLI_FLAG,                                                                         \
         .help = "on an engine: second activation pass, more exact; half the rows a run",          \
         CLI_AT(TYPE, t.c.session.two_pass)},                                                      \
        {.name = "calibrate",                                                                      \
         .kind = CLI_PATH,                                                                         \
         .value = "FILE",                                                                          \
         .help = "on an engine: make up for rounding errors, by texts like those to come, one a "  \
                 "line",                                                                           \
         CLI_AT(TYPE, t.c.load.calibrate)},                                                        \
    {                                                                                              \
        .name = "truncate", .kind = CLI_FLAG,                                                      \
        .help = "cut texts that are too long for the model, which are refused otherwise",          \
        CLI_AT(TYPE, t.truncate)                                                                   \
    }

#define CLI_TEXTS_JSON(TYPE)                                                                       \
    {.name = "json", .kind = CLI_FLAG, .help = "results as JSON", CLI_AT(TYPE, t.c.json)}

#endif
