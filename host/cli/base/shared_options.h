// SPDX-License-Identifier: Apache-2.0
// Rows of the tables (option.h) that several commands have; ARGS has `struct cli_common c` in it.
#pragma once

#include "cli/base/cli.h"
#include "device/configs.h"
#include "device/open.h"
#include "model/config.h"

// Every kind of device, for the help texts of rows with the names of the configurations.
#define CLI_KIND(scheme, rest, what, open) scheme rest " (" what ")"
#define CLI_CONFIGS                        "config is %s"
#define CLI_ENGINES                        MR_DEVICE_ENGINES(CLI_KIND, ", ", " or ") "; " CLI_CONFIGS
#define CLI_DEVICES                        MR_DEVICE_CPU(CLI_KIND) ", " CLI_ENGINES

#define CLI_MODEL_OR(HELP, MISSING)                                                                \
    CLI_ROW(CLI_PATH, "model", "PATH", c.model, HELP, .letter = 'm', .missing = MISSING)
#define CLI_MODEL(HELP) CLI_MODEL_OR(HELP, CLI_NO_MODEL)
#define CLI_ON_DEVICE(HELP, DEFAULT)                                                               \
    CLI_ROW(CLI_DEVICE, "device", "URI", c.device, HELP, .letter = 'd', .def = DEFAULT,            \
            .names = mr_config_name)

#define CLI_FORMAT(HELP)                                                                           \
    CLI_ROW(CLI_CHOICE, "format", "F", c.load.format, HELP, .choices = "mxint8|mxfp4",             \
            .def = "mxint8", CLI_GIVEN(c.format_given))
// How a directory is packed.
#define CLI_PACKING                                                                                \
    CLI_FORMAT("mxint8 or mxfp4, for directories"),                                                \
        CLI_ROW_FLAG("no-smoothing", c.load.no_smoothing,                                          \
                     "leave out the exact power-of-two channel smoothing, for directories"),       \
        CLI_ROW(CLI_PATH, "calibrate", "T", c.load.calibrate,                                      \
                "make up for rounding errors, for directories; T is self or a text file"),         \
        CLI_ROW(CLI_PATH, "adapter", "DIR", c.load.adapter,                                        \
                "with this LoRA adapter of the model, as PEFT has it, for directories")
#define CLI_VERIFY                                                                                 \
    CLI_ROW_FLAG("verify", c.load.verify, "check a packed file's checksums, however large it is")

#define CLI_TWO_PASS                                                                               \
    CLI_ROW_FLAG("two-pass", c.session.two_pass,                                                   \
                 "second activation pass: more exact, same weight traffic")
#define CLI_RUNS                                                                                   \
    CLI_TWO_PASS,                                                                                  \
        CLI_ROW_NUMBER(CLI_INT, "chunk", "N", c.session.chunk, 1, 512,                             \
                       "most tokens a device run; the results are the same"),                      \
        CLI_ROW_FLAG("check", c.session.check,                                                     \
                     "sim: only: the C model runs beside the RTL; stops at the first command "     \
                     "whose result differs (exit status 5)")

// Commands that time tokens, with `prefill`, `at` and `no_head`.
enum { CLI_POSITION_MOST = 1 << 20 };
#define CLI_PREFILL                                                                                \
    CLI_ROW_NUMBER(CLI_INT, "prefill", "N", prefill, 1, CLI_POSITION_MOST,                         \
                   "tokens, from position --at on"),                                               \
        CLI_ROW_NUMBER(CLI_INT, "at", "P", at, 0, CLI_POSITION_MOST, "where the prefill begins",   \
                       .def = "0", .needs = "prefill")
#define CLI_NO_HEAD CLI_ROW_FLAG("no-head", no_head, "without what follows the last layer")

// Behind MEMBER may stand what else the row has.
#define CLI_N_POSITIONS(MEMBER, ...)                                                               \
    CLI_ROW_NUMBER(                                                                                \
        CLI_INT, "n-positions", "N", MEMBER, 0, MR_MAX_POSITIONS,                                  \
        "more positions than the model's config.json says, where they rotate (GPT-J); 0: those",   \
        .def = "0", __VA_ARGS__)

#define CLI_JSON CLI_ROW_FLAG("json", c.json, "result as JSON")
#define CLI_VERBOSE                                                                                \
    CLI_ROW_FLAG("verbose", c.verbose, "what is done, on standard error", .letter = 'v')
#define CLI_QUIET(HELP) CLI_ROW_FLAG("quiet", c.quiet, HELP, .letter = 'q')

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

#define CLI_TEXTS_OF(DEFAULT_TOKENS)                                                               \
    CLI_ROW_NUMBER(CLI_INT, "max-tokens", "N", text.max_tokens, 1, 1000000, "new tokens at most",  \
                   .letter = 'n', .def = DEFAULT_TOKENS),                                          \
        CLI_ROW_NUMBER(CLI_NUMBER, "temperature", "T", text.sampling.temperature, 0, 1e6,          \
                       "0 is greedy: always the most probable token", .def = "0"),                 \
        CLI_ROW_NUMBER(CLI_INT, "top-k", "K", text.sampling.top_k, 0, 1 << 20,                     \
                       "sample among the K most probable; 0: all", .def = "0"),                    \
        CLI_ROW_NUMBER(CLI_NUMBER, "top-p", "P", text.sampling.top_p, 0, 1,                        \
                       "sample among the most probable that hold P together; 0 or 1: all",         \
                       .def = "0"),                                                                \
        CLI_ROW_NUMBER(CLI_NUMBER, "repetition-penalty", "R", text.sampling.repetition_penalty,    \
                       0.01, 100, "logits of tokens that were there are divided by R",             \
                       .def = "1"),                                                                \
        CLI_ROW_NUMBER(CLI_NUMBER, "frequency-penalty", "F", text.sampling.frequency_penalty, -2,  \
                       2, "logits of new tokens lose F each time they come", .def = "0"),          \
        CLI_ROW_NUMBER(CLI_NUMBER, "presence-penalty", "F", text.sampling.presence_penalty, -2, 2, \
                       "logits of new tokens lose F once", .def = "0"),                            \
        CLI_ROW_NUMBER(CLI_INT, "seed", "N", text.sampling.seed, 0, CLI_LONG_MAX,                  \
                       "the same seed gives the same text; without one it is drawn and printed",   \
                       CLI_GIVEN(text.seed_given)),                                                \
        CLI_ROW_LIST(                                                                              \
            CLI_TEXTS, "stop", "TEXT", text.stop, text.n_stop,                                     \
            "the text ends before TEXT, which may have \\n, \\t and \\\\; up to 16 times"),        \
        CLI_ROW_FLAG("ignore-eos", text.ignore_eos, "go on after the end-of-text token")

// Where tokens are sampled and no --seed was given: draws one, so that two runs differ, and says
// which on standard error (not with -q), so that the run can be repeated. EXIT_OK, or another
// status with a line.
int cli_draw_seed(struct cli_text_options *text, const struct cli_common *c);
