// SPDX-License-Identifier: Apache-2.0
// The messages of /v1/chat/completions as the text that the model continues.
#pragma once

#include <jansson.h>

#include "text/turns.h"

// Appends system messages, each on lines of its own, and the turns of user and assistant as `turns`
// says, up to where the reply begins. Neighbours of one role are one message. Other orders, roles
// and contents are refused.
int mr_messages_text(const json_t *messages, const struct mr_turns *turns, struct mr_buf *text,
                     struct mr_error *err);
