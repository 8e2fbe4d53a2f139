// SPDX-License-Identifier: Apache-2.0
// The header of a safetensors file, tensor by tensor in the order of their data; and the
// config.json beside it.
#pragma once

#include "common/json.h"
#include "model/arch.h"

struct mr_safetensors_header {
    json_t *json;
    size_t at; // bytes of data so far
    int bad;   // out of memory on the way
};

void mr_safetensors_begin(struct mr_safetensors_header *h);
// cols = 0: a vector.
void mr_safetensors_add(struct mr_safetensors_header *h, const char *name, const char *dtype,
                        int rows, int cols, size_t bytes);
// What stands before the data: the length, the header, spaces so that the data begins at a multiple
// of 8. New memory; NULL: out of memory. Releases the header.
char *mr_safetensors_end(struct mr_safetensors_header *h, size_t *size);

// A config.json, but with this type ("float32"): transformers loads everything in the type of the
// configuration. *out is new memory. `where` names the text in messages.
int mr_config_with_dtype(char **out, const char *text, size_t size, const char *dtype,
                         const char *where, struct mr_error *err);

// The same of weights that have been trained here: without dropout, whatever the text says of it.
int mr_config_as_trained(char **out, const char *text, size_t size, const char *dtype,
                         const struct mr_arch *arch, const char *where, struct mr_error *err);

// A config.json, but with this integer.
int mr_config_with_integer(char **out, const char *text, size_t size, const char *key, int value,
                           const char *where, struct mr_error *err);

// A config.json, but of a classifier of texts with these labels.
int mr_config_with_labels(char **out, const char *text, size_t size, const char *const *labels,
                          int count, const char *where, struct mr_error *err);
