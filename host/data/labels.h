// SPDX-License-Identifier: Apache-2.0
// The labels that texts have: names, numbered from 0.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

enum { MR_LABEL = 64 }; // bytes of a name with its end

// Zero-initialise; mr_labels_free() releases it. MR_MAX_LABELS names at most.
struct mr_labels {
    char (*names)[MR_LABEL];
    int count;
    bool closed; // there are no others
};

// Names one more. It has 1 to 63 bytes of UTF-8, no control characters, and is not there
// yet.
int mr_labels_add(struct mr_labels *labels, const char *name, size_t size, struct mr_error *err);

// "negative,positive": these, in their order, and no others.
int mr_labels_list(struct mr_labels *labels, const char *list, struct mr_error *err);

// The number of a label. One that is not there is added; of a closed list it may be the number
// itself, and is an error otherwise.
int mr_labels_find(struct mr_labels *labels, const char *name, size_t size, struct mr_error *err);

// Sorts them, whole numbers by their value, else by their bytes; to[old number] = new number.
void mr_labels_sort(struct mr_labels *labels, int32_t *to);

void mr_labels_free(struct mr_labels *labels);

// What an HDF5 file of texts with labels has beside its rows (docs/train/data.md).

// Those of an open file with `rows` texts, `path` in messages: *names, and *labels[rows] as their
// numbers. On success the caller frees both.
int mr_examples_labels(int64_t file, const char *path, uint64_t rows, struct mr_labels *names,
                       int32_t **labels, struct mr_error *err);
