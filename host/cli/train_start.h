// SPDX-License-Identifier: Apache-2.0
// Directories that a training begins with: weights from scratch, and states that are made to be
// looked at and removed again.
#ifndef MILLRACE_CLI_TRAIN_START_H
#define MILLRACE_CLI_TRAIN_START_H

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
// Steps of the checkpoints of `dir`, rising; the caller frees *steps.
int train_checkpoints(const char *dir, uint64_t **steps, size_t *count, struct mr_error *err);

#endif
