// SPDX-License-Identifier: Apache-2.0
// Commands that an encoder answers: their texts, from the command line or line by line.
#pragma once

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

// An array of numbers as JSON.
json_t *cli_json_floats(const float *x, int count);

#define CLI_ENCODER                                                                                \
    CLI_ROW(CLI_PATH, "model", "PATH", t.c.model,                                                  \
            "Hugging Face directory of an encoder; the same as the first argument", .letter = 'm', \
            .missing = CLI_NO_MODEL),                                                              \
        CLI_ROW(CLI_TEXT, "text", "TEXT", t.text,                                                  \
                "the text, the same as the argument after the model; without it --file, or "       \
                "standard input",                                                                  \
                .letter = 't', .excludes = "file"),                                                \
        CLI_ROW(CLI_PATH, "file", "PATH", t.file,                                                  \
                "a text in each line of a file, '-' for standard input", .letter = 'f'),           \
        CLI_ROW(CLI_DEVICE, "device", "URI", t.c.device,                                           \
                CLI_DEVICES "; an engine works in MXINT8", .letter = 'd',                          \
                .def = "cpu:", .names = mr_config_name),                                           \
        CLI_ROW_FLAG("two-pass", t.c.session.two_pass,                                             \
                     "on an engine: second activation pass, more exact; half the rows a run"),     \
        CLI_ROW(                                                                                   \
            CLI_PATH, "calibrate", "FILE", t.c.load.calibrate,                                     \
            "on an engine: make up for rounding errors, by texts like those to come, one a line"), \
        CLI_ROW_FLAG("truncate", t.truncate,                                                       \
                     "cut texts that are too long for the model, which are refused otherwise")

#define CLI_TEXTS_JSON CLI_ROW_FLAG("json", t.c.json, "results as JSON")
