// SPDX-License-Identifier: Apache-2.0
// What an HDF5 file of texts with labels has beside its rows (docs/train/data.md).
#pragma once

#include "data/labels.h"

// Those of an open file with `rows` texts, `path` in messages: *names, and *labels[rows] as their
// numbers. On success the caller frees both.
int mr_examples_labels(int64_t file, const char *path, uint64_t rows, struct mr_labels *names,
                       int32_t **labels, struct mr_error *err);
