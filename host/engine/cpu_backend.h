// SPDX-License-Identifier: Apache-2.0
// "cpu:" as a backend: the fp32 reference on the checkpoint itself.
#ifndef MILLRACE_ENGINE_CPU_BACKEND_H
#define MILLRACE_ENGINE_CPU_BACKEND_H

#include "checkpoint/checkpoint.h"
#include "engine/backend.h"

// The checkpoint must outlive the backend.
int mr_cpu_backend_open(struct mr_backend **backend, const struct mr_checkpoint *checkpoint,
                        struct mr_error *err);

#endif
