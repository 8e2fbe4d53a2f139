// SPDX-License-Identifier: Apache-2.0
// A text as what `millrace train` learns from: documents in windows, a part of them held out.
#ifndef MILLRACE_CLI_TRAIN_DATA_H
#define MILLRACE_CLI_TRAIN_DATA_H

#include "millrace.h"

// Tokens `at` .. at + count - 1; the target of each is the token behind it.
struct train_window {
    size_t at;
    int count;
};

struct train_data {
    int32_t *ids;
    size_t count;
    uint64_t hash; // of the tokens
    struct train_window *windows;
    size_t learnt, held_out; // windows: the last ones are held out
    // The order of an epoch, which follows from seed and number.
    uint64_t seed, epoch;
    size_t *order; // [learnt]
};

// Tokenises a text. A document ends behind a token that ends texts, or with the text. Longer ones
// than `sequence` become several windows without overlap. `share` of the windows is held out, at
// least one unless share is 0.
int train_data_make(struct train_data *d, struct mr_model *model, const char *text, size_t size,
                    int sequence, double share, uint64_t seed, struct mr_error *err);
void train_data_free(struct train_data *d);

// A micro-batch of windows. Memory is the caller's.
struct train_batch {
    int most;        // windows
    int32_t *memory; // lengths, tokens, targets
    struct mr_micro_batch batch;
};
int train_batch_new(struct train_batch *b, int windows, int sequence, struct mr_error *err);
void train_batch_free(struct train_batch *b);

// Windows number .. of the training, which goes through the text again and again.
void train_batch_learn(struct train_batch *b, struct train_data *d, uint64_t number);
// Held-out windows from `first` on; returns how many.
int train_batch_hold(struct train_batch *b, const struct train_data *d, size_t first);

#endif
