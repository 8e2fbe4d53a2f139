// SPDX-License-Identifier: Apache-2.0
// One fp32 value for each parameter of a model: the master weights of training, and of the same
// shape their gradients and moments.
//
// Tensors stand in order of mr_tensor_spec(). A matrix is [outputs][inputs] here, however a
// checkpoint has it, and a matrix that is tied to a table is that table.
#ifndef MILLRACE_STORE_PARAMS_H
#define MILLRACE_STORE_PARAMS_H

#include "checkpoint/checkpoint.h"

struct mr_params {
    const struct mr_config *config; // borrowed
    size_t count;                   // tensors
    size_t *first;                  // [count + 1]: where each begins in `data`
    float *data;
};

// All zeros. On failure there is nothing to free.
int mr_params_new(struct mr_params *p, const struct mr_config *config, struct mr_error *err);
void mr_params_free(struct mr_params *p); // once or more often; of zeros too

float *mr_params_at(const struct mr_params *p, size_t i);
size_t mr_params_size(const struct mr_params *p, size_t i); // elements of tensor i
// Of layer 0..n_layer - 1 or, for n_layer and -1, of the model. The item has such a tensor.
size_t mr_params_index(const struct mr_config *config, int layer, const struct mr_item *item,
                       enum mr_part part);
// Rows and columns of tensor i in `data`; a vector has one column.
void mr_params_shape(const struct mr_config *config, size_t i, int *rows, int *cols);

// Takes the values of a checkpoint of the same configuration.
int mr_params_read(struct mr_params *p, const struct mr_checkpoint *checkpoint,
                   struct mr_error *err);
// Tensor i, [outputs][inputs], as a checkpoint has it.
void mr_params_turn(const struct mr_config *config, size_t i, const float *in, float *out);
// The same of p's, out[mr_params_size()].
void mr_params_export(const struct mr_params *p, size_t i, float *out);

#endif
