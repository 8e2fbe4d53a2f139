// SPDX-License-Identifier: Apache-2.0
// Values for the tests of the C model's inner loops, and comparisons of their results.
#ifndef MILLRACE_TESTS_UNIT_KERNEL_VALUES_H
#define MILLRACE_TESTS_UNIT_KERNEL_VALUES_H

#include "cmodel/kernel.h"
#include "cmodel/num.h"

static uint64_t state = 1;

static inline unsigned draw(unsigned n)
{
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(state >> 33) % n;
}

// Any bits, magnitudes near each other, or values at the borders of the rules.
static inline float value(int kind)
{
    static const uint32_t edges[] = {0,          0x80000000, 0x00000001, 0x807FFFFF, 0x00800000,
                                     0x7F800000, 0xFF800000, 0x7FC00001, 0x3F800000, 0x40A00000,
                                     0x409FFFFF, 0xC0A00000, 0x7F7FFFFF, 0x3FFFFFFF};
    uint32_t bits = (uint32_t)draw(1u << 16) << 16 | draw(1u << 16);
    if (kind == 0)
        return mr_float(bits);
    if (kind == 1) // 2^-4 to 2^4
        return mr_float((bits & 0x807FFFFF) | (123 + draw(9)) << 23);
    if (kind == 2) // halfway between two results of the quantiser
        return mr_float((bits & 0x80000000) | 0x3F800000 | (draw(128) << 16) | 1u << draw(17));
    return mr_float(edges[draw(14)]);
}

static inline void fill(float *x, int n, int kind)
{
    for (int j = 0; j < n; j++)
        x[j] = value(kind == 4 ? (int)draw(4) : kind);
}

static inline void same(const char *what, const struct mr_kernels *kernels, const float *want,
                        const float *got, int n)
{
    for (int j = 0; j < n; j++)
        if (mr_bits(want[j]) != mr_bits(got[j]))
            fail_msg("%s: %s: %08x, expected %08x", kernels->name, what, mr_bits(got[j]),
                     mr_bits(want[j]));
}

#endif
