// SPDX-License-Identifier: Apache-2.0
// An adapter as PEFT has it: a directory with adapter_config.json and adapter_model.safetensors (or
// adapter_model.bin).
#pragma once

#include "checkpoint/directory.h"
#include "checkpoint/lora.h"

#define MR_PEFT_CONFIG "adapter_config.json"

// Reads the adapter of a model of this configuration. Refuses kinds that are more than pairs beside
// matrices (DoRA, biases, whole modules, ranks of single modules), names that the model lacks and
// numbers that are none. On success the caller owns *lora; on failure there is nothing to free.
int mr_peft_read(struct mr_lora *lora, const struct mr_config *config, const char *dir,
                 struct mr_error *err);

// The same of two files that are named: adapter_config.json, and the weights in safetensors' form
// or PyTorch's; NULL: they are missing.
int mr_peft_read_files(struct mr_lora *lora, const struct mr_config *config, const char *settings,
                       const char *weights, bool torch, struct mr_error *err);

// The same without its numbers, which are zeros: of adapter_config.json alone, whose matrices are
// those of its targets. *base is its model's name in new memory, or NULL where it has none.
int mr_peft_read_config(struct mr_lora *lora, const struct mr_config *config, const char *path,
                        char **base, struct mr_error *err);

// adapter_config.json, in new memory; `base`: the model's name, or NULL. NULL: no memory.
char *mr_peft_config(const struct mr_lora *lora, const struct mr_config *config, const char *base);

// Both files into a directory, in fp32.
int mr_peft_write(const struct mr_lora *lora, const struct mr_config *config, const char *base,
                  const struct mr_directory *d, struct mr_error *err);
