// SPDX-License-Identifier: Apache-2.0
// Instruction sets that inner loops are compiled for, and the one that this processor runs.
#pragma once

enum mr_simd { MR_SIMD_PORTABLE, MR_SIMD_AVX2, MR_SIMD_AVX512, MR_SIMD_SETS };

// "portable", "avx2" or "avx512" (F, BW, VL and DQ); -1 for another name, and where the processor
// lacks it.
int mr_simd_named(const char *name);

// The fastest that this processor has; MILLRACE_SIMD asks for one by name.
enum mr_simd mr_simd_best(void);
