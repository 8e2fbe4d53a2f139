// SPDX-License-Identifier: Apache-2.0
#include "store/tile_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "cmodel/num.h"

#define INLINE static inline __attribute__((always_inline))

INLINE uint32_t size_of(int32_t x)
{
    return x < 0 ? 0U - (uint32_t)x : (uint32_t)x;
}

INLINE uint32_t add(int32_t *restrict sums, const int32_t *restrict in, size_t n, bool more)
{
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = size_of(in[i]);
        top = size > top ? size : top;
        sums[i] = (int32_t)((more ? (uint32_t)sums[i] : 0U) + (uint32_t)in[i]);
    }
    return top;
}

INLINE uint32_t squares(const int32_t *in, size_t n, uint64_t *low, uint64_t *high)
{
    uint64_t lo = 0, hi = 0;
    uint32_t top = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t size = size_of(in[i]);
        uint64_t square = (uint64_t)size * size;
        top = size > top ? size : top;
        lo += (uint32_t)square;
        hi += square >> 32;
    }
    *low += lo;
    *high += hi;
    return top;
}

INLINE float power(int e)
{
    return mr_float((uint32_t)(e + 127) << 23);
}

// Numbers below 1 pass 2^64 higher, where they are not subnormal yet, to see which become zero.
INLINE void widen(const int32_t *restrict in, size_t n, int unit, float *restrict out)
{
    int low = unit < -190 ? -190 : unit, high = unit > 127 ? 127 : unit;
    float first = unit > 0 ? power(high) : power(low + 64);
    float second = unit > 0 ? 1.0F : 0x1p-64F, least = unit > 0 ? 0.0F : 0x1p-62F;
    for (size_t i = 0; i < n; i++) {
        float x = (float)in[i] * first, size = x < 0 ? -x : x;
        uint32_t keep = size < least ? 0x80000000U : 0xFFFFFFFFU;
        out[i] = mr_float(mr_bits(x) & keep) * second;
    }
}

// The Makefile compiles this file with what gcc needs to put loops into vectors.
#define KERNELS(name, attributes)                                                                  \
    attributes static uint32_t add_##name(int32_t *sums, const int32_t *in, size_t n, bool more)   \
    {                                                                                              \
        return more ? add(sums, in, n, true) : add(sums, in, n, false);                            \
    }                                                                                              \
    attributes static uint32_t squares_##name(const int32_t *in, size_t n, uint64_t *low,          \
                                              uint64_t *high)                                      \
    {                                                                                              \
        return squares(in, n, low, high);                                                          \
    }                                                                                              \
    attributes static void widen_##name(const int32_t *in, size_t n, int unit, float *out)         \
    {                                                                                              \
        widen(in, n, unit, out);                                                                   \
    }                                                                                              \
    static const struct mr_tile_kernels kernels_##name = {add_##name, squares_##name, widen_##name};

KERNELS(portable, )
#if defined(__x86_64__)
KERNELS(avx2, __attribute__((target("avx2"))))
KERNELS(avx512, __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))))
#endif

const struct mr_tile_kernels *mr_tile_kernels_named(const char *name)
{
    if (strcmp(name, "portable") == 0)
        return &kernels_portable;
#if defined(__x86_64__)
    if (strcmp(name, "avx2") == 0 && __builtin_cpu_supports("avx2"))
        return &kernels_avx2;
    if (strcmp(name, "avx512") == 0 && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
        return &kernels_avx512;
#endif
    return NULL;
}

const struct mr_tile_kernels *mr_tile_kernels(void)
{
    const char *wish = getenv("MILLRACE_SIMD");
    const struct mr_tile_kernels *k = wish ? mr_tile_kernels_named(wish) : NULL;
    if (!k)
        k = mr_tile_kernels_named("avx512");
    if (!k)
        k = mr_tile_kernels_named("avx2");
    return k ? k : &kernels_portable;
}
