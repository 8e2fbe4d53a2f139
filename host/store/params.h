// SPDX-License-Identifier: Apache-2.0
// Tensors as training has them: in order of mr_tensor_spec(), a matrix [outputs][inputs] however a
// checkpoint has it; a matrix that is tied to a table is that table.
#pragma once

#include "checkpoint/checkpoint.h"

// Of layer 0..n_layer - 1 or, for n_layer and -1, of the model. The item has such a tensor.
size_t mr_params_index(const struct mr_config *config, int layer, const struct mr_item *item,
                       enum mr_part part);
// Rows and columns of tensor i; a vector has one column.
void mr_params_shape(const struct mr_config *config, size_t i, int *rows, int *cols);
// Tensor i, [outputs][inputs], as a checkpoint has it.
void mr_params_turn(const struct mr_config *config, size_t i, const float *in, float *out);
