// SPDX-License-Identifier: Apache-2.0
// One request on a session, until it has ended.
#pragma once

#include <stddef.h>

#include "cli/base/watch.h"

struct cli_completion {
    enum mr_finish finish;
    int32_t *ids; // new tokens
    size_t count, prompt_count;
    char *text; // whole characters, NUL-terminated
    size_t text_size;
    struct mr_stats prefill; // of the session when the first new token was there
};

// request: its callbacks are set here. piece(arg, text, size), which may be NULL, is called with
// text as it comes and ends it with a non-zero return; the first call, without text, says that the
// request has been found to be right, and its return has no meaning. watch shows how far it is.
// Also after a failure *c has the tokens that came before it. Released by cli_completion_free().
int cli_complete(struct mr_session *session, struct mr_request *request,
                 int (*piece)(void *arg, const char *text, size_t size), void *arg,
                 struct cli_watch *watch, struct cli_completion *c, struct mr_error *err);
void cli_completion_free(struct cli_completion *c);
