// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel.h"

#include <stddef.h>

#include "cmodel/kernel_plain.h"
#include "common/simd.h"

// The dot products of AVX-512 need VNNI as well; NULL without it.
static const struct mr_kernels *kernels_of(enum mr_simd set)
{
#if defined(__x86_64__)
    if (set == MR_SIMD_AVX2)
        return &mr_kernels_avx2;
    if (set == MR_SIMD_AVX512)
        return __builtin_cpu_supports("avx512vnni") ? &mr_kernels_avx512 : NULL;
#endif
    (void)set;
    return &mr_kernels_portable;
}

const struct mr_kernels *mr_kernels_named(const char *name)
{
    int set = mr_simd_named(name);
    return set < 0 ? NULL : kernels_of((enum mr_simd)set);
}

const struct mr_kernels *mr_kernels(void)
{
    const struct mr_kernels *k = kernels_of(mr_simd_best());
    return k ? k : kernels_of(MR_SIMD_AVX2);
}
