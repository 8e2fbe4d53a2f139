// SPDX-License-Identifier: Apache-2.0
// A checkpoint of a given architecture and shape with reproducible random weights: for selftest,
// tests and measurements where the values do not matter but must be of the usual size.
#pragma once

#include <stdint.h>

#include "checkpoint/config.h"

enum { MR_SYNTHETIC_BYTES = 257 }; // tokens: one for each byte, then "<|endoftext|>"

// Writes config.json, tokenizer.json (only if the vocabulary has room for these tokens) and
// model.safetensors (bf16) into the existing directory `dir`. Of `c` the sizes count; eos_token_id
// is written as it is, -1 as null, and as a list if there are more_eos_ids.
int mr_synthetic_write(const char *dir, const struct mr_config *c, uint64_t seed,
                       struct mr_error *err);

// How the weights of a training from scratch are drawn: about normally, and again where a draw is
// not within low..high (both 0: all are good).
enum { MR_DRAW_TABLE, MR_DRAW_MATRIX, MR_DRAW_OUTPUT, MR_DRAWS }; // OUTPUT adds to the residual
struct mr_synthetic_draw {
    float deviation, low, high;
};

// The same with weights from which a training from scratch begins: gains of 1, biases of 0, the
// others drawn. NULL: as transformers makes them, with a standard deviation of 0.02. All tokens are
// about equally likely then.
int mr_synthetic_start(const char *dir, const struct mr_config *c, uint64_t seed,
                       const struct mr_synthetic_draw draw[MR_DRAWS], struct mr_error *err);

// A number that is about normally distributed, with a mean of 0 and a variance of 1. *state is not
// 0.
float mr_synthetic_normal(uint64_t *state);
