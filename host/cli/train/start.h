// SPDX-License-Identifier: Apache-2.0
// Directories that a training begins with: weights from scratch, and states that are made to be
// looked at and removed again.
#pragma once

#include "config/training.h"
#include "millrace.h"

// Removes a directory and all that is in it, and frees the path. NULL is allowed.
void train_remove(char *path);

// Weights as a configuration draws them, as a Hugging Face directory in the empty `dir`.
int train_start(const struct mr_training *t, const char *dir, struct mr_error *err);

// "dir/checkpoint-N", which the caller frees.
char *train_checkpoint(const char *dir, uint64_t step, struct mr_error *err);
// N of such a path; 0 of another one.
uint64_t train_checkpoint_step(const char *path);
// The checkpoint whose held-out loss is the least so far, as a file of `dir` keeps it.
struct train_best {
    uint64_t step; // 0: none yet
    double loss;
};
int train_best_read(const char *dir, struct train_best *best, struct mr_error *err);
int train_best_write(const char *dir, const struct train_best *best, struct mr_error *err);
// Removes all checkpoints but the first one of all, `best`, and the `most` last ones.
int train_prune(const char *dir, int most, const struct train_best *best, struct mr_error *err);

// Steps of the checkpoints of `dir`, rising; the caller frees *steps.
int train_checkpoints(const char *dir, uint64_t **steps, size_t *count, struct mr_error *err);
