// SPDX-License-Identifier: Apache-2.0
// "cpu:" as a backend: the fp32 reference on the checkpoint itself, or on packed weights.
#pragma once

#include "engine/backend.h"
#include "pack/packed.h"

// On the checkpoint that `packed` was made from; where there is none, on the packed weights turned
// back into fp32. `packed` must outlive the backend.
int mr_cpu_backend_open(struct mr_backend **backend, const struct mr_packed *packed,
                        struct mr_error *err);

// mr_cpu_seq_set_length() of a backend that mr_cpu_backend_open() opened.
int mr_cpu_backend_seq_set_length(struct mr_backend *backend, int seq, int length,
                                  struct mr_error *err);

// mr_cpu_seq_length() of one.
int mr_cpu_backend_seq_length(const struct mr_backend *backend, int seq);
