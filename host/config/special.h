// SPDX-License-Identifier: Apache-2.0
// Keys whose values are more than a number or a word. Internal to host/config.
#pragma once

#include "config/key.h"

// --------------------------------------------------------------------

typedef int mr_key_take(struct mr_reader *r, const struct mr_key *key, void *to,
                        const struct mr_yaml *value);
mr_key_take mr_take_paths;       // a path, or a list of one
mr_key_take mr_take_betas;       // [beta1, beta2]
mr_key_take mr_take_rates;       // a number, a schedule, or a list of them
mr_key_take mr_take_optimizer;   // {AdamW: {...}}, {SGD: {...}}
mr_key_take mr_take_events;      // TensorBoardLogger, with a summary_dir or without
mr_key_take mr_take_patterns;    // of tensors' names: one, or a list
mr_key_take mr_take_type;        // of the optimizer
mr_key_take mr_take_name;        // of the model
mr_key_take mr_take_processor;   // windows, or texts with labels
mr_key_take mr_take_labels;      // how many
mr_key_take mr_take_positions;   // rotary or learned
mr_key_take mr_take_initialiser; // normal, or {name: normal, std: 0.02}
mr_key_take mr_take_micro;       // windows, or a word that leaves it to us
mr_key_take mr_take_size;        // of the model
mr_key_take mr_take_loss;        // num_tokens or batch_size
mr_key_take mr_take_epsilon;     // of its LayerNorm
mr_key_take mr_take_function;    // of the model's feed-forward
mr_key_take mr_take_dropout;     // 0
mr_key_take mr_take_flag;        // MR_FLAG_*, key->at
mr_key_take mr_take_mode;        // train, eval, ...
mr_key_take mr_take_autoload;    // whether a state is gone on with
mr_key_take mr_take_list;        // [Name: {...}]
mr_key_take mr_take_lora;        // {r: 8, alpha: 16, target_modules: [...]}
