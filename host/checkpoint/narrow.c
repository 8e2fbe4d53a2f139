// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/tensor.h"

#include <math.h>
#include <string.h>

static uint32_t bits_of(float f)
{
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return u;
}

// u without its `drop` low bits.
static uint32_t rounded(uint32_t u, unsigned drop)
{
    uint32_t kept = u >> drop, rest = u & ((1U << drop) - 1), half = 1U << (drop - 1);
    return kept + (rest > half || (rest == half && (kept & 1)));
}

static uint16_t bf16_of(float f)
{
    uint32_t u = bits_of(f);
    return (uint16_t)(f != f ? u >> 16 | 0x40 : rounded(u, 16));
}

static uint16_t fp16_of(float f)
{
    uint32_t u = bits_of(f), sign = u >> 16 & 0x8000, size = u & 0x7FFFFFFF;
    if (size > 0x7F800000)
        return (uint16_t)(sign | 0x7E00);
    if (size >= 0x47800000) // from 65536 on
        return (uint16_t)(sign | 0x7C00);
    if (size >= 0x38800000) // normal from 2^-14 on; rounding may carry into an infinity
        return (uint16_t)(sign | rounded(size - 0x38000000, 13));
    unsigned e = size >> 23;
    if (e < 102) // below 2^-25
        return (uint16_t)sign;
    return (uint16_t)(sign | rounded((size & 0x7FFFFF) | 0x800000, 126 - e));
}

size_t mr_narrow(enum mr_dtype dtype, const float *in, size_t n, void *out)
{
    uint16_t *to = out;
    if (dtype == MR_DTYPE_F32) {
        memcpy(out, in, n * sizeof *in);
        return n;
    }
    uint16_t infinity = dtype == MR_DTYPE_F16 ? 0x7C00 : 0x7F80;
    for (size_t i = 0; i < n; i++) {
        to[i] = dtype == MR_DTYPE_F16 ? fp16_of(in[i]) : bf16_of(in[i]);
        if ((to[i] & 0x7FFF) == infinity && isfinite(in[i]))
            return i;
    }
    return n;
}
