// SPDX-License-Identifier: Apache-2.0
// The architectures that are known.
#pragma once

#include "common/error.h"
#include "model/model.h"

#include "mr_device.h"

// Adds an architecture to those that the library comes with, for the rest of the process, before
// other threads use it. MR_ERR_USAGE, with what is wrong, if its lists contradict what is said
// in model.h, if its type is known already, or if the registry is full.
int mr_arch_register(const struct mr_arch *arch, struct mr_error *err);

// By model_type, or NULL.
const struct mr_arch *mr_arch_find(const char *type);
const struct mr_arch *mr_arch_at(int index); // NULL beyond the last
const struct mr_arch *mr_arch_of(const struct mr_config *config);

// What config.json calls an integer of struct mr_config (MR_KEY), for example "n_positions".
const char *mr_arch_key(const struct mr_arch *arch, size_t member);

// Gives a model more positions than its checkpoint's config.json says, unless `positions` is 0.
// MR_ERR_USAGE for fewer, for more than MR_MAX_POSITIONS, and where positions are learned.
int mr_config_set_positions(struct mr_config *c, int positions, struct mr_error *err);

// The model as training has it: an encoder classifies whole texts, and pooler and classifier are
// tensors as others.
struct mr_config mr_config_to_train(const struct mr_config *c);

// The function of the feed-forward, MR_FUNCTION_*, and the names that configurations have for it;
// mr_function_named() gives MR_FUNCTION_NONE for others.
unsigned mr_function_of(const struct mr_config *c);
const char *mr_function_name(unsigned function);
unsigned mr_function_named(const char *name);
void mr_config_set_function(struct mr_config *c, unsigned function);

// The items of layer 0..n_layer - 1, or, for n_layer, those behind the last block, for -1 those in
// front of the first.
const struct mr_list *mr_items_of(const struct mr_config *c, int layer);
