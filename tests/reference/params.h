// SPDX-License-Identifier: Apache-2.0
// One fp32 value for each parameter of a model: the weights of training in fp32, and of the same
// shape their gradients and moments. Tensors are those of store/params.h.
#ifndef MILLRACE_REFERENCE_PARAMS_H
#define MILLRACE_REFERENCE_PARAMS_H

#include "store/params.h"

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

// Takes the values of a checkpoint of the same configuration.
int mr_params_read(struct mr_params *p, const struct mr_checkpoint *checkpoint,
                   struct mr_error *err);
// Tensor i as a checkpoint has it, out[mr_params_size()].
void mr_params_export(const struct mr_params *p, size_t i, float *out);

#endif
