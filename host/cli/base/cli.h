// SPDX-License-Identifier: Apache-2.0
// Shared by the commands of the `millrace` program.
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "cli/base/option.h"
#include "cli/base/status_line.h"
#include "millrace.h"

// Exit statuses (docs/use/cli.md).
enum {
    EXIT_OK = 0,
    EXIT_USAGE = 2,
    EXIT_INPUT = 3,
    EXIT_DEVICE = 4,
    EXIT_DIFFERS = 5,
    EXIT_INTERRUPTED = 130,
    EXIT_CLOSED_PIPE = 141, // whoever read our output has gone: as if SIGPIPE had ended us
};

extern const struct cli_command cmd_info, cmd_pack, cmd_unpack, cmd_generate, cmd_compare,
    cmd_bench, cmd_plan, cmd_trace, cmd_selftest, cmd_devices, cmd_chat, cmd_eval, cmd_serve,
    cmd_train, cmd_data, cmd_export, cmd_embed, cmd_fill_mask, cmd_classify, cmd_man,
    cmd_completion;

extern const struct cli_command *const cli_commands[]; // those that --help lists; then NULL
extern const char cli_summary[];                       // of the program, one line

// What several commands are told (shared_options.h).
struct cli_common {
    const char *model, *device;
    struct mr_load_options load;
    struct mr_session_options session;
    bool json, quiet, verbose;
    bool format_given; // load.format was asked for
};

// Prints "millrace: text" to stderr and returns the exit status that belongs to it.
int cli_fail(const struct mr_error *err);
// From here on such messages begin with "rank 1 on HOST: ".
void cli_fail_as(int rank, const char *host);
void cli_fail_as_one(void); // what all ranks have agreed on
int cli_usage(const struct cli_command *cmd, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Bytes with the unit that suits them: "3.92 MB".
struct cli_size {
    char text[32];
};
struct cli_size cli_size(double bytes);
// What waiting for links of 12 and 24 GB/s would add to `cycles`, a line each; nothing where they
// are 0.
void cli_print_waiting(FILE *out, const char *indent, const double waited[2], double cycles);

// The load options with progress: share, rate and the time left, on a terminal after half a second,
// otherwise each 30 seconds.
struct cli_progress {
    const char *what;   // "packing"
    double start, last; // last: when it was shown, 0 for never
    struct cli_line line;
};
struct mr_load_options cli_with_progress(const struct cli_common *c, struct cli_progress *p,
                                         const char *what);
// The same for the session's options.
struct mr_session_options cli_session_progress(const struct cli_common *c, struct cli_progress *p,
                                               const char *what);
void cli_end_progress(struct cli_progress *p); // takes it off the screen

bool cli_is_encoder(const char *path);    // a directory or packed file of one
bool cli_is_synthetic(const char *model); // weights from a seed
// Loads the model with progress on a terminal. 0 or an exit status: options for directories that a
// packed file contradicts are refused.
int cli_load(const struct cli_common *c, struct mr_model **model);
// 0, or the exit status where the model is a file: some commands need the directory.
bool cli_is_packed(const char *path); // a packed file
int cli_need_directory(const struct cli_command *cmd, const char *model);
#define CLI_NO_MODEL                                                                               \
    "the model is missing; give a Hugging Face directory or a packed file, such as models/demo"

// Whole file or standard input ("-") as NUL-terminated text that the caller frees; more than `most`
// bytes are refused.
int cli_read_file(const char *path, size_t most, char **text, size_t *size, struct mr_error *err);
// The same of a text that is learnt or measured: nothing else is taken (text/look.h).
int cli_read_text(const char *path, char **text, size_t *size, struct mr_error *err);

// Prints and frees a JSON object.
int cli_print_json(json_t *object);
// Prints and frees a JSON object, on a line of its own.
int cli_json_line(json_t *object);

// Counters of a session as a JSON object; those of generation, in its two parts, as a table.
json_t *cli_stats_json(const struct mr_stats *s);
void cli_stats_table(FILE *out, const struct mr_stats *prefill, const struct mr_stats *decode,
                     double seconds);

// What was counted after `before`, in its place.
void cli_stats_subtract(struct mr_stats *s, const struct mr_stats *before);

// A counter by its name (mr_stats_name).
uint64_t cli_counter(const struct mr_stats *s, const char *name);

// What `pack --report` says about the matrices.
json_t *cli_report_json(const struct mr_quality *list, size_t count);
int cli_report_print(const struct mr_quality *list, size_t count);

// ---- signals ----

void cli_catch_signals(void);
void cli_catch_hangup(void);       // SIGHUP is an interrupt for commands that have files to remove
void cli_catch_as_rank(int rank);  // of several: SIGUSR1 is rank 0's Ctrl-C, SIGTERM ends at once
void cli_interrupt_waits(bool on); // the first interrupt is only noted, the second one tells the
                                   // library
bool cli_pipe_closed(void);        // whoever read our output has gone
int cli_interrupted(void);         // SIGINT, SIGTERM or that; the library has been told, too
void cli_interrupt_taken(void);    // it has been dealt with: the next one is the first again

// ---- what somebody sees who looks at a terminal ----

enum cli_style { STYLE_PLAIN, STYLE_BOLD, STYLE_ERROR, STYLE_FAINT };

// What switches to a style; empty without colours.
const char *cli_style(FILE *out, enum cli_style style);

// One line on standard error with -v.
void cli_note(const struct cli_common *c, const char *fmt, ...)
    __attribute__((format(printf, 2, 3)));

// Any bytes as a JSON string: what is no UTF-8 becomes U+FFFD.
json_t *cli_json_text(const char *text, size_t size);

// "length", "eos", ...: why a text has ended.
const char *cli_finish_name(enum mr_finish finish);
