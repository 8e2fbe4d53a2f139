// SPDX-License-Identifier: Apache-2.0
// Progress on a terminal while a device computes: tokens, layer, cycles and the time that is left.
#pragma once

#include "cli/base/cli.h"
#include "cli/base/status_line.h"

// Nothing is shown before a run, or work without text, has taken as long as this.
#define CLI_WATCH_AFTER 0.5 // seconds

struct cli_watch {
    struct cli_line line;
    const struct cli_common *common;
    struct mr_session *session; // that is watched
    const char *name;           // of the device in front of the line, or NULL
    double start;
    uint64_t before; // tokens that the session had computed at the start
    // A text: tokens of its prompt that are to be run, new ones at most, new ones that are there.
    size_t prompt, most, count;
    double first;                   // when the first new one came
    double plan_prompt, plan_token; // seconds of the prompt and of a token, by plan; 0: not known
    // Or tokens in all.
    size_t total;
};

// text: new tokens are printed on standard output.
void cli_watch_open(struct cli_watch *w, const struct cli_common *c, bool text);

// A session begins with a text, or with `total` tokens.
void cli_watch_text(struct cli_watch *w, struct mr_session *session, size_t prompt, size_t most);
void cli_watch_total(struct cli_watch *w, struct mr_session *session, size_t total);

void cli_watch_token(struct cli_watch *w); // a new token is there
void cli_watch_end(struct cli_watch *w);   // of the text or of the tokens in all

// "12 of 64 tokens", or "41 % of a token", appended to a line.
void cli_watch_done(char *line, size_t size, double done, size_t total);
// "layer 3 of 28, 1.23 billion cycles", behind a comma, appended to a line; cycles: of earlier
// runs.
void cli_watch_where(char *line, size_t size, const struct mr_progress *p, uint64_t cycles);
// ", 12 min left"; negative: not known.
void cli_watch_left(char *line, size_t size, double seconds);
void cli_watch_since(char *line, size_t size, double start); // ", 12 s"
