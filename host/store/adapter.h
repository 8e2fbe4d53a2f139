// SPDX-License-Identifier: Apache-2.0
// The state of an adapter (LoRA): it has A and B of each pair with their moments, as tensors of its
// own. The model's weights are the checkpoint's, which stays as it is, plus the pairs; the streams
// are made of them, and the gradients of A and B follow from those of the weights. Internal to
// host/store.
#pragma once

#include "checkpoint/checkpoint.h"
#include "checkpoint/lora.h"
#include "store/layout.h"

// Of a tensor of the model.
struct mr_adapted {
    const struct mr_lora_pair *pair; // NULL: none
    int share;
    const struct mr_tensor *from; // the checkpoint's, [outputs][inputs]
    size_t sums;                  // where its sums begin, in elements; of those with a pair
};

struct mr_adapter {
    struct mr_lora lora;           // its numbers are those of the state
    struct mr_store_layout layout; // of the model
    struct mr_checkpoint *base;    // NULL: not open, so there are no weights
    char *base_name;               // as adapter_config.json has it
    struct mr_adapted *tensor;     // [the model's tensors]
    int32_t *sums;                 // of the model's weights that have a pair
    size_t sums_bytes;
};

// Takes over *lora and base_name, also on failure, when *adapter is NULL.
int mr_adapter_new(struct mr_adapter **adapter, const struct mr_config *config,
                   struct mr_lora *lora, char *base_name, struct mr_error *err);
void mr_adapter_free(struct mr_adapter *adapter); // NULL is allowed

// Opens the model's directory. MR_ERR_FIT if it is not of this configuration or has not these
// weights (mr_store_origin()).
int mr_adapter_open_base(struct mr_adapter *adapter, const struct mr_config *config,
                         const char *dir, uint32_t origin, struct mr_error *err);

// Tile k of a patch of the model: the checkpoint's weights and their pairs'; and a row of a table.
void mr_adapter_tile(const struct mr_adapter *adapter, const struct mr_store_patch *p, size_t k,
                     float *out);
void mr_adapter_row(const struct mr_adapter *adapter, size_t i, int row, float *out);

// NULL: tensor i has no pair.
int32_t *mr_adapter_sums(const struct mr_adapter *adapter, size_t i);
// Everything is frozen but the model's tensors that have a pair.
void mr_adapter_choose(const struct mr_adapter *adapter, uint8_t *choice);
