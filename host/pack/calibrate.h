// SPDX-License-Identifier: Apache-2.0
// Second moments of what goes into each matrix, from runs of the fp32 reference over some text
// (docs/inside/numerics.md, rule 12). host/pack/compensate.h uses them.
#pragma once

#include "checkpoint/checkpoint.h"
#include "pack/layout.h"
#include "text/tokenizer.h"

// Of one input, in checkpoint indices and without smoothing.
struct mr_moments {
    int n;
    int64_t rows; // that were summed over
    float *sum;   // [n]
    float *outer; // [n][n], sum of x x^T; the lower triangle (row >= column) is valid
};

struct mr_calibration;

// `text`: "self" for tokens that the model samples from itself with a fixed seed, starting at its
// bos token, or a file (at most MR_CALIBRATE_MOST tokens of it are used; needs the tokenizer). Of
// an encoder it is a file whose lines are texts; what of one is longer than the model's positions
// is cut off. Borrows the checkpoint. `stop` may be NULL; non-zero ends the work with
// MR_ERR_INTERRUPTED.
#define MR_CALIBRATE_MOST 16384
int mr_calibration_open(struct mr_calibration **cal, const struct mr_checkpoint *ck,
                        struct mr_tokenizer *tokenizer, const char *text, int (*stop)(void *arg),
                        void *arg, struct mr_error *err);
void mr_calibration_close(struct mr_calibration *cal);
const struct mr_config *mr_calibration_config(const struct mr_calibration *cal);

// The moments of a matrix's input; *m is valid until the next call. Layers come cheapest in order:
// as many as fit into 4 GiB are collected in one run over the tokens.
int mr_calibration_moments(struct mr_calibration *cal, const struct mr_stream_item *item,
                           const struct mr_moments **m, struct mr_error *err);
