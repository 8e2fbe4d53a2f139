// SPDX-License-Identifier: Apache-2.0
// What `millrace train` learns from: a text, cut into windows, or a file of them; a part is held
// out.
#pragma once

#include "data/examples.h"
#include "millrace.h"

struct train_data {
    int32_t *ids; // of a text
    size_t count;
    uint64_t hash; // of the tokens
    struct mr_window *windows;
    struct mr_examples examples; // or a file of `millrace data`, whose windows are read when needed
    size_t learnt, held_out;     // windows: the last ones are held out
    size_t spread;               // held-out windows that are looked at; 0: all
    // The order of an epoch, which follows from seed and number.
    uint64_t seed, epoch;
    bool full;     // each window that is learnt has as many targets as the longest may have
    bool in_order; // that of the data, in every epoch: may be set behind train_data_make()
    size_t *order; // [learnt]
};

// Gives the model that `info` describes the positions of --n-positions.
int train_data_positions(struct mr_model_info *info, const char *model, int positions,
                         struct mr_error *err);

// Tokens of a window if nobody says.
static inline int train_data_sequence(const struct mr_model_info *model)
{
    return model->n_positions < 128 ? model->n_positions : 128;
}

// Tokenises a text. A document ends behind a token that ends texts, or with the text. Longer ones
// than `sequence` become several windows without overlap. `share` of the windows is held out, at
// least one unless share is 0; with 1 all of them are.
int train_data_make(struct train_data *d, struct mr_model *model, const char *text, size_t size,
                    int sequence, double share, uint64_t seed, struct mr_error *err);
// Opens files of `millrace data`, or what the Model Zoo writes, one behind the other.
int train_data_open(struct train_data *d, const struct mr_model *model, const char *const *paths,
                    int count, double share, uint64_t seed, struct mr_error *err);
// The same of texts with labels, for an encoder's classifier.
int train_data_open_texts(struct train_data *d, const struct mr_encoder *encoder, int types,
                          const char *const *paths, int count, double share, uint64_t seed,
                          struct mr_error *err);
void train_data_free(struct train_data *d); // also after a failure

// A micro-batch of windows, or of texts with labels. Memory is the caller's.
struct train_batch {
    int most;                                     // windows
    int32_t *lengths, *labels, *tokens, *targets; // targets: of texts, types
    struct mr_micro_batch batch;
};
int train_batch_new(struct train_batch *b, int windows, int sequence, bool texts,
                    struct mr_error *err);
void train_batch_free(struct train_batch *b);

// Windows number .. of the training, which goes through the text again and again.
int train_batch_learn(struct train_batch *b, struct train_data *d, uint64_t number,
                      struct mr_error *err);
// Held-out windows from `first` on and before `last`; returns how many. Of d->spread, if that is
// not 0, which lie evenly among all.
int train_batch_hold(struct train_batch *b, struct train_data *d, size_t first, size_t last,
                     struct mr_error *err);
