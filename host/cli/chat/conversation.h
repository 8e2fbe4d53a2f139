// SPDX-License-Identifier: Apache-2.0
// A conversation on a session: its tokens, how many of them the KV store has, and text that waits
// to become tokens together with what comes next.
#pragma once

#include <stdbool.h>

#include "cli/base/complete.h"
#include "cli/base/lines.h"
#include "cli/base/shared_options.h"
#include "common/buf.h"

struct conversation {
    struct mr_model *model;
    struct mr_session *session;
    const struct cli_text_options *options;
    int seq;
    int32_t *tokens;
    size_t count;
    struct mr_buf waiting;
    struct cli_watch *watch;
    size_t run; // tokens that the last turn has run on the device
};

// Zero but for model, session, options and watch; makes the sequence.
int conversation_open(struct conversation *c, struct mr_error *err);
void conversation_close(struct conversation *c);

// Empties it; the KV store is used again.
int conversation_reset(struct conversation *c, struct mr_error *err);

// Appends text without running it.
int conversation_add(struct conversation *c, const char *text, size_t size, struct mr_error *err);

// Runs what is new and continues the text, up to a stop string, which does not become a part of it.
// When it is interrupted the tokens that were there stay, after another failure none.
int conversation_continue(struct conversation *c,
                          int (*piece)(void *arg, const char *text, size_t size), void *arg,
                          enum mr_finish *finish, struct mr_error *err);

// The KV store with all of the text.
int conversation_save(struct conversation *c, const char *path, struct mr_error *err);
int conversation_load(struct conversation *c, const char *path, struct mr_error *err);

// The next line of `input`, in new memory and without its end. 1: there is one, 0: the end, or a
// failure. On a terminal it can be edited, earlier lines are there, and Ctrl-C ends the program.
int chat_line(struct cli_lines *input, const char *prompt, bool terminal, char **line,
              struct mr_error *err);
