// SPDX-License-Identifier: Apache-2.0
// Files that people take for a checkpoint and that cannot be packed: refused by name.
#pragma once

#include "common/error.h"
#include "common/file.h"

// Looks at the first bytes: MR_ERR_UNSUPPORTED and what to do for GGUF and its forerunners,
// PyTorch's format from before 1.6, HDF5, a Git LFS pointer; 0 for everything else.
int mr_refuse_foreign_file(const struct mr_file *file, const char *path, struct mr_error *err);

// The same for a directory without a readable checkpoint: adapters, GGUF, TensorFlow, Flax.
int mr_refuse_foreign_directory(const char *dir, struct mr_error *err);

// Parts of names that quantised and adapted checkpoints add to tensors; what it is, or NULL.
const char *mr_foreign_tensor(const char *name);
