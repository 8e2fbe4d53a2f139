// SPDX-License-Identifier: Apache-2.0
// How a conversation is put to a model of plain text: `millrace chat` and /v1/chat/completions.
// With the template "User: {}\nAssistant:" a turn is "User: ", the message, "\nAssistant:", and the
// reply ends where the next turn would begin, at "\nUser:".
#pragma once

#include <stdbool.h>

#include "common/buf.h"

#define MR_TURNS_DEFAULT "User: {}\nAssistant:"

struct mr_turns {
    char *before, *after; // of the message; in one block, freed by mr_turns_close()
    char *stop;           // what ends a reply; "" where the template begins with {}
};

// Divides a template at its {}, which it must have once. Zero on failure.
int mr_turns_open(struct mr_turns *turns, const char *text, struct mr_error *err);
void mr_turns_close(struct mr_turns *turns);

// Appends a turn: a line end unless it is the first, then the message in its template.
int mr_turns_add(const struct mr_turns *turns, bool first, const char *message, size_t size,
                 struct mr_buf *text, struct mr_error *err);
