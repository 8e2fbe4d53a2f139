// SPDX-License-Identifier: Apache-2.0
// The safetensors file format: an 8-byte little-endian header length, a JSON header, the data.
//
// A file is refused as a whole unless every byte is accounted for: each tensor's shape and type
// agree with its size, the tensors lie inside the file, do not overlap and leave no holes. After
// that no read through a view can leave the mapping.
#pragma once

#include <jansson.h>

#include "checkpoint/tensor.h"
#include "common/file.h"

// Checks the mapped file and makes views of its tensors. `path` names it in messages. The caller
// frees list->at and *header, which owns the names, also after a failure.
int mr_safetensors_read(struct mr_tensors *list, json_t **header, const struct mr_file *file,
                        const char *path, struct mr_error *err);
