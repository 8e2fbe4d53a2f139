// SPDX-License-Identifier: Apache-2.0
// PyTorch's checkpoint files (pytorch_model.bin): a zip archive of a pickle that describes the
// tensors and of the storages that they are views of. Read as data, in place;
// docs/use/checkpoints.md.
#pragma once

#include "checkpoint/tensor.h"

struct mr_torch;

// Maps and checks the file. Every tensor lies inside its storage and every storage inside the file.
// On success the caller owns *file until mr_torch_close(); on failure *file is NULL. The file must
// not change while it is open.
int mr_torch_open(struct mr_torch **file, const char *path, struct mr_error *err);

// Invalidates all views of the file. NULL is allowed.
void mr_torch_close(struct mr_torch *file);

// The tensors in order of their names: index 0..count - 1. Several may share a storage.
size_t mr_torch_count(const struct mr_torch *file);
const struct mr_tensor *mr_torch_at(const struct mr_torch *file, size_t index);

// The tensor of that exact name, or NULL.
const struct mr_tensor *mr_torch_find(const struct mr_torch *file, const char *name);
