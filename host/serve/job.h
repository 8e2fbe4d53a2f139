// SPDX-License-Identifier: Apache-2.0
// An accepted request: the engine's thread fills in tokens and text, the HTTP thread turns them
// into JSON when the client can take it. What a client has not read is bounded by its max_tokens.
// All fields are under the server's lock.
#pragma once

#include <jansson.h>
#include <time.h>

#include "api/objects.h"
#include "serve/completion.h"
#include "serve/embedding.h"
#include "text/tokenizer.h"

// A token, for logprobs. Places are in the text before it is cut at a stop string.
struct mr_job_token {
    int32_t id;
    bool has_logprob;
    double logprob;
    size_t begin, end;
    int top, n_top; // in choice.tops
};

struct mr_job;
struct mr_serve;
struct mr_unit;
struct exchange;

// One text.
struct mr_choice {
    struct mr_job *job;
    int index;
    const struct mr_completion_prompt *prompt;
    uint64_t id;                   // the scheduler's
    struct mr_unit *unit;          // NULL: waits for one
    bool cancelled;                // the unit's scheduler knows
    struct mr_buf text;            // what may be shown
    struct mr_text_stream decoder; // places of tokens
    size_t decoded;
    struct mr_job_token *tokens;
    size_t n_tokens;
    struct mr_logprob *tops;
    size_t n_tops;
    size_t n_prompt, n_new;
    bool done;
    enum mr_finish finish;
    double first_token, last_token; // seconds, 0: none
    size_t sent_text, sent_tokens;  // streamed
    size_t sent_chars;              // begun in what sent tokens stand for
    bool sent_role, sent_end;
};

enum mr_abort { MR_ABORT_NONE, MR_ABORT_ABANDONED, MR_ABORT_TIMEOUT, MR_ABORT_DEVICE };

struct mr_job {
    struct mr_job *next, *prev; // of the engine's list
    struct mr_completion spec;
    struct mr_embedding embedding; // of an encoder's server: in place of texts that are generated
    struct mr_buf response;        // then: the whole one, by the encoder's thread
    const struct mr_tokenizer *tokenizer; // the model's, may be NULL
    struct mr_choice *choices;
    int n_choices, unfinished;
    char id[40];
    time_t created;
    double accepted;   // seconds
    bool engine, http; // who still needs it
    enum mr_abort abort;
    struct mr_error error;
    struct mr_serve *serve;
    struct exchange *exchange; // NULL without `http`
};

// Takes spec over, also on failure. Prompts that are text become tokens; the lengths are checked
// against the model.
int mr_job_open(struct mr_job **job, struct mr_completion *spec, struct mr_model *model,
                struct mr_error *err);
// The same of embeddings. It has one choice, which stands for all of its inputs.
int mr_job_open_embedding(struct mr_job **job, struct mr_embedding *embedding,
                          struct mr_error *err);
void mr_job_close(struct mr_job *job);

// The scheduler's request for a choice, without its callbacks.
struct mr_request mr_choice_request(const struct mr_choice *choice);

int mr_choice_add_token(struct mr_choice *c, const struct mr_token *t, struct mr_error *err);
