// SPDX-License-Identifier: Apache-2.0
#include "common/simd.h"

#include <stdlib.h>
#include <string.h>

int mr_simd_named(const char *name)
{
    if (strcmp(name, "portable") == 0)
        return MR_SIMD_PORTABLE;
#if defined(__x86_64__)
    if (strcmp(name, "avx2") == 0 && __builtin_cpu_supports("avx2"))
        return MR_SIMD_AVX2;
    if (strcmp(name, "avx512") == 0 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return MR_SIMD_AVX512;
#endif
    return -1;
}

enum mr_simd mr_simd_best(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    int set = wish ? mr_simd_named(wish) : -1;
    if (set < 0)
        set = mr_simd_named("avx512");
    if (set < 0)
        set = mr_simd_named("avx2");
    return set < 0 ? MR_SIMD_PORTABLE : (enum mr_simd)set;
}
