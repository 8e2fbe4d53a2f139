// SPDX-License-Identifier: Apache-2.0
// A model of any shape with weights made from a seed, for measurements: timing does not depend on
// the values.
#pragma once

#include "pack/packed.h"

// Small random weights in the packed form; no tokenizer. GPT-J's layer is c = {vocab_size 50400,
// n_positions 2048, n_embd 4096, n_layer 28, n_head 16, head_dim 256, rotary_dim 64, n_inner
// 16384}. Of opt: the format, and progress, which is told often and ends the work when it says so.
int mr_packed_synthetic(struct mr_packed *packed, const struct mr_config *c,
                        const struct mr_pack_options *opt, uint64_t seed, struct mr_error *err);

// The shape and seed that "gptj-6b[,layers=N][,vocab=N][,seed=N]" names, the part behind
// "synthetic:".
int mr_synthetic_parse(const char *text, struct mr_config *config, uint64_t *seed,
                       struct mr_error *err);
