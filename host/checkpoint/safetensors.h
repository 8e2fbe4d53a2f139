// SPDX-License-Identifier: Apache-2.0
// The safetensors file format: an 8-byte little-endian header length, a JSON header, the data.
//
// A file is refused as a whole unless every byte is accounted for: each tensor's shape and type
// agree with its size, the tensors lie inside the file, do not overlap and leave no holes. After
// that no read through a view can leave the mapping.
#pragma once

#include "checkpoint/tensor.h"

struct mr_safetensors;

// Maps and checks the file. On success the caller owns *file until mr_safetensors_close(); on
// failure *file is NULL. The file must not change while it is open.
int mr_safetensors_open(struct mr_safetensors **file, const char *path, struct mr_error *err);

// Invalidates all views of the file. NULL is allowed.
void mr_safetensors_close(struct mr_safetensors *file);

// The tensors in order of their names: index 0..count - 1.
size_t mr_safetensors_count(const struct mr_safetensors *file);
const struct mr_tensor *mr_safetensors_at(const struct mr_safetensors *file, size_t index);

// The tensor of that exact name, or NULL.
const struct mr_tensor *mr_safetensors_find(const struct mr_safetensors *file, const char *name);
