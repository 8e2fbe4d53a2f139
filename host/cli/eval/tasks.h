// SPDX-License-Identifier: Apache-2.0
// Multiple-choice and cloze questions from a file of JSON lines, counted as EleutherAI's
// lm-evaluation-harness does it (docs/use/eval.md).
#pragma once

#include <jansson.h>

#include "cli/eval/score.h"
#include "cli/eval/split.h"

struct eval_question {
    size_t line;  // of the file, from 1
    bool cloze;   // one continuation; else choices
    size_t first; // of the items
    size_t count; // choices, or 1
    size_t gold;  // the right choice
};

// What an item was made from.
struct eval_source {
    struct eval_pair pair;
    size_t characters, bytes; // of the choice, without the delimiter
};

struct eval_tasks {
    struct eval_question *questions;
    size_t count;
    struct eval_item *items;     // [n_items]
    struct eval_source *sources; // one an item
    size_t n_items;
};

// Reads and divides all of it. Zero-initialise *tasks; eval_tasks_free() releases it.
int eval_tasks_read(struct eval_tasks *tasks, struct mr_model *model, const char *path,
                    struct mr_error *err);
void eval_tasks_free(struct eval_tasks *tasks);

// Which choice wins by log-likelihood, by that per character, and per byte. The first of equals.
struct eval_choice {
    size_t plain, per_character, per_byte;
};
struct eval_choice eval_choose(const struct eval_tasks *tasks, const struct eval_question *q);

// A mean of 0 and 1 with its standard error (sample standard deviation / sqrt(n)), as the harness
// reports it.
struct eval_mean {
    double sum;
    size_t n;
};
double eval_mean(const struct eval_mean *m);
double eval_stderr(const struct eval_mean *m);

struct eval_summary {
    struct eval_mean acc, acc_norm, acc_bytes; // of multiple-choice questions
    struct eval_mean cloze_acc;
    double cloze_loglik; // sum
};
struct eval_summary eval_summarise(const struct eval_tasks *tasks);

// What was found for a question, as an object.
json_t *eval_question_json(const struct eval_tasks *tasks, const struct eval_question *q);
