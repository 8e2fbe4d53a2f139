// SPDX-License-Identifier: Apache-2.0
// A tensor inside a mapped file, and reading its elements.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/error.h"

#define MR_MAX_RANK 8

enum mr_dtype {
    MR_DTYPE_OTHER, // known to safetensors, not readable here (masks are bool, for example)
    MR_DTYPE_F32,
    MR_DTYPE_F16,
    MR_DTYPE_BF16,
    MR_DTYPE_I32,
    MR_DTYPE_I64,
};

// A view: it owns nothing and lives as long as the file that it came from.
struct mr_tensor {
    const char *name;
    enum mr_dtype dtype;
    int rank;                   // 0..MR_MAX_RANK; 0 is a scalar
    int64_t shape[MR_MAX_RANK]; // >= 0, outermost first
    size_t count;               // elements: the product of the shape
    // The first element; little endian, at any alignment: read it with the functions below.
    const unsigned char *data;
    size_t bytes; // of all elements
    // Not row-major without gaps, as the views in PyTorch files may be: then dimension i has the
    // distance stride[i] between elements.
    bool strided;
    int64_t stride[MR_MAX_RANK];
};

// Those of a file, in order of their names.
struct mr_tensors {
    struct mr_tensor *at;
    size_t count;
};

// The tensor of that exact name, or NULL.
const struct mr_tensor *mr_tensors_find(const struct mr_tensors *list, const char *name);
// Puts a list into that order. MR_ERR_FORMAT if a name occurs twice in the file at `path`.
int mr_tensors_sort(struct mr_tensors *list, const char *path, struct mr_error *err);

// Tells the kernel that the mapped pages of the elements [first, first + count) are not needed
// again soon, so that they do not count as this process's memory. Later reads stay right. The range
// is in the tensor and has elements.
void mr_tensor_release(const struct mr_tensor *tensor, size_t first, size_t count);

// "F32", "BF16", ...
const char *mr_dtype_name(enum mr_dtype dtype);

// Converts elements [first, first + count) of the flattened tensor to fp32, exactly: row r of a
// matrix is first = r * shape[1], count = shape[1]. `out` holds count floats. F32, F16 and BF16
// only, which all tensors of a checkpoint are. Returns MR_ERR_USAGE, and writes nothing, for
// another type or a range outside the tensor.
int mr_tensor_read_f32(const struct mr_tensor *tensor, size_t first, size_t count, float *out);

// The same elements where they are, if they lie there as aligned floats in a row; else NULL.
const float *mr_tensor_view_f32(const struct mr_tensor *tensor, size_t first, size_t count);

// Copies the same elements as they are in the file, in row-major order, without gaps.
int mr_tensor_copy(const struct mr_tensor *tensor, size_t first, size_t count, void *out);

// Changes a view of a matrix: [outputs][inputs] of what the file has as [inputs][outputs]; and part
// `share` of its rows.
void mr_tensor_turn(struct mr_tensor *tensor);
void mr_tensor_cut(struct mr_tensor *tensor, int share, int shares);

// fp32 into the types of checkpoints.

// Rounds to nearest, ties to even; MR_DTYPE_F32, F16 and BF16. Returns how many of the n are done:
// less than n if the next one is finite and beyond the type.
size_t mr_narrow(enum mr_dtype dtype, const float *in, size_t n, void *out);
