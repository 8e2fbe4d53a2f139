// SPDX-License-Identifier: Apache-2.0
// Rows of the tables (option.h) that several commands have. TYPE is the command's structure, with
// `struct cli_common c` in it.
#ifndef MILLRACE_CLI_BASE_SHARED_OPTIONS_H
#define MILLRACE_CLI_BASE_SHARED_OPTIONS_H

#include "cli/base/cli.h"
#include "mr_config_names.h"
#include "model/config.h"

// Every device and configuration, for the help texts.
#define CLI_CONFIGS MR_CONFIG_NAMES(", ", " or ")
#define CLI_DEVICES                                                                                \
    "sim:[config][,options] (the RTL, simulated), model:[config] (the C model: the same bits, "    \
    "faster), xrt:[index][,options] (Alveo cards), pci:[number] (boards with the driver) or cpu: " \
    "(fp32); config is " CLI_CONFIGS

#define CLI_MODEL_OR(TYPE, HELP, MISSING)                                                          \
    {.name = "model",                                                                              \
     .letter = 'm',                                                                                \
     .kind = CLI_PATH,                                                                             \
     .value = "PATH",                                                                              \
     .help = HELP,                                                                                 \
     .missing = MISSING,                                                                           \
     CLI_AT(TYPE, c.model)}
#define CLI_MODEL(TYPE, HELP) CLI_MODEL_OR(TYPE, HELP, CLI_NO_MODEL)
#define CLI_ON_DEVICE(TYPE, HELP, DEFAULT)                                                         \
    {.name = "device",                                                                             \
     .letter = 'd',                                                                                \
     .kind = CLI_DEVICE,                                                                           \
     .value = "URI",                                                                               \
     .help = HELP,                                                                                 \
     .def = DEFAULT,                                                                               \
     CLI_AT(TYPE, c.device)}

#define CLI_FORMAT(TYPE, HELP)                                                                     \
    {.name = "format",                                                                             \
     .kind = CLI_CHOICE,                                                                           \
     .value = "F",                                                                                 \
     .help = HELP,                                                                                 \
     .choices = "mxint8|mxfp4",                                                                    \
     .def = "mxint8",                                                                              \
     CLI_AT(TYPE, c.load.format),                                                                  \
     CLI_GIVEN(TYPE, c.format_given)}
// How a directory is packed.
#define CLI_PACKING(TYPE)                                                                          \
    CLI_FORMAT(TYPE, "mxint8 or mxfp4, for directories"),                                          \
        {.name = "no-smoothing",                                                                   \
         .kind = CLI_FLAG,                                                                         \
         .help = "leave out the exact power-of-two channel smoothing, for directories",            \
         CLI_AT(TYPE, c.load.no_smoothing)},                                                       \
        {.name = "calibrate",                                                                      \
         .kind = CLI_PATH,                                                                         \
         .value = "T",                                                                             \
         .help = "make up for rounding errors, for directories; T is self or a text file",         \
         CLI_AT(TYPE, c.load.calibrate)},                                                          \
    {                                                                                              \
        .name = "adapter", .kind = CLI_PATH, .value = "DIR",                                       \
        .help = "with this LoRA adapter of the model, as PEFT has it, for directories",            \
        CLI_AT(TYPE, c.load.adapter)                                                               \
    }
#define CLI_VERIFY(TYPE)                                                                           \
    {.name = "verify",                                                                             \
     .kind = CLI_FLAG,                                                                             \
     .help = "check a packed file's checksums, however large it is",                               \
     CLI_AT(TYPE, c.load.verify)}

#define CLI_TWO_PASS(TYPE)                                                                         \
    {.name = "two-pass",                                                                           \
     .kind = CLI_FLAG,                                                                             \
     .help = "second activation pass: more exact, same weight traffic",                            \
     CLI_AT(TYPE, c.session.two_pass)}
#define CLI_RUNS(TYPE)                                                                             \
    CLI_TWO_PASS(TYPE),                                                                            \
        {.name = "chunk",                                                                          \
         .kind = CLI_INT,                                                                          \
         .value = "N",                                                                             \
         .help = "most tokens a device run; the results are the same",                             \
         .low = 1,                                                                                 \
         .high = 512,                                                                              \
         CLI_AT(TYPE, c.session.chunk)},                                                           \
    {                                                                                              \
        .name = "check", .kind = CLI_FLAG,                                                         \
        .help = "sim: only: the C model runs beside the RTL; stops at the first command whose "    \
                "result differs (exit status 5)",                                                  \
        CLI_AT(TYPE, c.session.check)                                                              \
    }

// Commands that time tokens, with `prefill`, `at` and `no_head`.
enum { CLI_POSITION_MOST = 1 << 20 };
#define CLI_PREFILL(TYPE)                                                                          \
    {.name = "prefill",                                                                            \
     .kind = CLI_INT,                                                                              \
     .value = "N",                                                                                 \
     .help = "tokens, from position --at on",                                                      \
     .low = 1,                                                                                     \
     .high = CLI_POSITION_MOST,                                                                    \
     CLI_AT(TYPE, prefill)},                                                                       \
    {                                                                                              \
        .name = "at", .kind = CLI_INT, .value = "P", .help = "where the prefill begins", .low = 0, \
        .high = CLI_POSITION_MOST, .def = "0", .needs = "prefill", CLI_AT(TYPE, at)                \
    }
#define CLI_NO_HEAD(TYPE)                                                                          \
    {.name = "no-head",                                                                            \
     .kind = CLI_FLAG,                                                                             \
     .help = "without what follows the last layer",                                                \
     CLI_AT(TYPE, no_head)}

// Behind MEMBER may stand what else the row has.
#define CLI_N_POSITIONS(TYPE, MEMBER, ...)                                                         \
    {.name = "n-positions",                                                                        \
     .kind = CLI_INT,                                                                              \
     .value = "N",                                                                                 \
     .help = "more positions than the model's config.json says, where they rotate (GPT-J); 0: "    \
             "those",                                                                              \
     .low = 0,                                                                                     \
     .high = MR_MAX_POSITIONS,                                                                     \
     .def = "0",                                                                                   \
     CLI_AT(TYPE, MEMBER),                                                                         \
     __VA_ARGS__}

#define CLI_JSON(TYPE)                                                                             \
    {.name = "json", .kind = CLI_FLAG, .help = "result as JSON", CLI_AT(TYPE, c.json)}
#define CLI_VERBOSE(TYPE)                                                                          \
    {.name = "verbose",                                                                            \
     .letter = 'v',                                                                                \
     .kind = CLI_FLAG,                                                                             \
     .help = "what is done, on standard error",                                                    \
     CLI_AT(TYPE, c.verbose)}
#define CLI_QUIET(TYPE, HELP)                                                                      \
    {.name = "quiet", .letter = 'q', .kind = CLI_FLAG, .help = HELP, CLI_AT(TYPE, c.quiet)}

// Commands that write text, with `struct cli_text_options text`: how tokens are chosen, and what
// ends it.
enum { CLI_STOPS = 16 };

struct cli_text_options {
    int max_tokens;
    struct mr_sampling sampling;
    bool seed_given;
    bool ignore_eos;
    const char *stop[CLI_STOPS];
    int n_stop;
};

#define CLI_TEXTS_OF(TYPE, DEFAULT_TOKENS)                                                         \
    {.name = "max-tokens",                                                                         \
     .letter = 'n',                                                                                \
     .kind = CLI_INT,                                                                              \
     .value = "N",                                                                                 \
     .help = "new tokens at most",                                                                 \
     .low = 1,                                                                                     \
     .high = 1000000,                                                                              \
     .def = DEFAULT_TOKENS,                                                                        \
     CLI_AT(TYPE, text.max_tokens)},                                                               \
        {.name = "temperature",                                                                    \
         .kind = CLI_NUMBER,                                                                       \
         .value = "T",                                                                             \
         .help = "0 is greedy: always the most probable token",                                    \
         .low = 0,                                                                                 \
         .high = 1e6,                                                                              \
         .def = "0",                                                                               \
         CLI_AT(TYPE, text.sampling.temperature)},                                                 \
        {.name = "top-k",                                                                          \
         .kind = CLI_INT,                                                                          \
         .value = "K",                                                                             \
         .help = "sample among the K most probable; 0: all",                                       \
         .low = 0,                                                                                 \
         .high = 1 << 20,                                                                          \
         .def = "0",                                                                               \
         CLI_AT(TYPE, text.sampling.top_k)},                                                       \
        {.name = "top-p",                                                                          \
         .kind = CLI_NUMBER,                                                                       \
         .value = "P",                                                                             \
         .help = "sample among the most probable that hold P together; 0 or 1: all",               \
         .low = 0,                                                                                 \
         .high = 1,                                                                                \
         .def = "0",                                                                               \
         CLI_AT(TYPE, text.sampling.top_p)},                                                       \
        {.name = "repetition-penalty",                                                             \
         .kind = CLI_NUMBER,                                                                       \
         .value = "R",                                                                             \
         .help = "logits of tokens that were there are divided by R",                              \
         .low = 0.01,                                                                              \
         .high = 100,                                                                              \
         .def = "1",                                                                               \
         CLI_AT(TYPE, text.sampling.repetition_penalty)},                                          \
        {.name = "frequency-penalty",                                                              \
         .kind = CLI_NUMBER,                                                                       \
         .value = "F",                                                                             \
         .help = "logits of new tokens lose F each time they come",                                \
         .low = -2,                                                                                \
         .high = 2,                                                                                \
         .def = "0",                                                                               \
         CLI_AT(TYPE, text.sampling.frequency_penalty)},                                           \
        {.name = "presence-penalty",                                                               \
         .kind = CLI_NUMBER,                                                                       \
         .value = "F",                                                                             \
         .help = "logits of new tokens lose F once",                                               \
         .low = -2,                                                                                \
         .high = 2,                                                                                \
         .def = "0",                                                                               \
         CLI_AT(TYPE, text.sampling.presence_penalty)},                                            \
        {.name = "seed",                                                                           \
         .kind = CLI_INT,                                                                          \
         .value = "N",                                                                             \
         .help = "the same seed gives the same text; without one it is drawn and printed",         \
         .low = 0,                                                                                 \
         .high = CLI_LONG_MAX,                                                                     \
         CLI_AT(TYPE, text.sampling.seed),                                                         \
         CLI_GIVEN(TYPE, text.seed_given)},                                                        \
        {.name = "stop",                                                                           \
         .kind = CLI_TEXTS,                                                                        \
         .value = "TEXT",                                                                          \
         .help = "the text ends before TEXT, which may have \\n, \\t and \\\\; up to 16 times",    \
         CLI_LIST_AT(TYPE, text.stop, text.n_stop)},                                               \
    {                                                                                              \
        .name = "ignore-eos", .kind = CLI_FLAG, .help = "go on after the end-of-text token",       \
        CLI_AT(TYPE, text.ignore_eos)                                                              \
    }

#endif
