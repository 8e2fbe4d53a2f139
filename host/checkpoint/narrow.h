// SPDX-License-Identifier: Apache-2.0
// fp32 into the types of checkpoints.
#pragma once

#include "checkpoint/tensor.h"

// Rounds to nearest, ties to even; MR_DTYPE_F32, F16 and BF16. Returns how many of the n are done:
// less than n if the next one is finite and beyond the type.
size_t mr_narrow(enum mr_dtype dtype, const float *in, size_t n, void *out);
