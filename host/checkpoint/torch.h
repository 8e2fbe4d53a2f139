// SPDX-License-Identifier: Apache-2.0
// PyTorch's checkpoint files (pytorch_model.bin): a zip archive of a pickle that describes the
// tensors and of the storages that they are views of. Read as data, in place;
// docs/use/checkpoints.md.
#pragma once

#include "checkpoint/tensor.h"
#include "checkpoint/torch_pickle.h"
#include "common/file.h"

// Checks the mapped file and makes views of its tensors, of which several may share a storage.
// Every tensor lies inside its storage and every storage inside the file. `path` names it in
// messages. The caller frees list->at and *pickle, which owns the names, also after a failure.
int mr_torch_read(struct mr_tensors *list, struct mr_pickle *pickle, const struct mr_file *file,
                  const char *path, struct mr_error *err);
