// SPDX-License-Identifier: Apache-2.0
// The bodies of POST /v1/completions and /v1/chat/completions: read strictly, because they come
// from anybody.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"
#include "common/str.h"
#include "millrace.h"
#include "text/turns.h"

enum { MR_COMPLETION_STOPS = 16, MR_COMPLETION_CHOICES = 4096, MR_CHAT_MAX_TOKENS = 200 };

struct mr_completion_prompt {
    char *text; // NUL-terminated; NULL: ids
    size_t size;
    int32_t *ids;
    size_t count;
};

struct mr_completion {
    char *model; // NULL: the request names none
    struct mr_completion_prompt *prompts;
    int n_prompts, n; // n texts from each
    int max_tokens;
    struct mr_sampling sampling;
    bool has_seed, stream, include_usage, echo, ignore_eos;
    int logprobs; // -1: none
    // A conversation: one prompt, made of its messages, in which no special token is read, since
    // who writes a message is not always who asks. The template's stop string is in `stop`.
    bool chat;
    char *stop[MR_COMPLETION_STOPS + 1];
    int n_stop;
};

// On failure *param is the name of the argument that is wrong, or empty, and nothing is left to
// free.
int mr_completion_parse(struct mr_completion *c, const void *body, size_t size,
                        struct mr_shown *param, struct mr_error *err);
// The same for a conversation, put to the model as `turns` says.
int mr_chat_parse(struct mr_completion *c, const struct mr_turns *turns, const void *body,
                  size_t size, struct mr_shown *param, struct mr_error *err);
void mr_completion_free(struct mr_completion *c);
