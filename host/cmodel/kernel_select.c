// SPDX-License-Identifier: Apache-2.0
#include "cmodel/kernel_select.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/kernel_plain.h"

const struct mr_kernels *mr_kernels_named(const char *name)
{
    if (strcmp(name, mr_kernels_portable.name) == 0)
        return &mr_kernels_portable;
#if defined(__x86_64__)
    if (strcmp(name, mr_kernels_avx2.name) == 0 && __builtin_cpu_supports("avx2"))
        return &mr_kernels_avx2;
    if (strcmp(name, mr_kernels_avx512.name) == 0 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vnni"))
        return &mr_kernels_avx512;
#endif
    return NULL;
}

const struct mr_kernels *mr_kernels(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    const struct mr_kernels *k = wish ? mr_kernels_named(wish) : NULL;
    if (!k)
        k = mr_kernels_named("avx512");
    if (!k)
        k = mr_kernels_named("avx2");
    return k ? k : &mr_kernels_portable;
}
