// SPDX-License-Identifier: Apache-2.0
// Which of the inner loops this processor runs.
#pragma once

#include "cmodel/kernel.h"

// The fastest that this processor has; MILLRACE_SIMD=portable|avx2|avx512 asks for one by name.
const struct mr_kernels *mr_kernels(void);

// By name, NULL if the processor lacks it.
const struct mr_kernels *mr_kernels_named(const char *name);
