// SPDX-License-Identifier: Apache-2.0
// Blocks of 32 floats for what quantises: of all sizes, ties and what is beside them, subnormals,
// infinities and NaN.
#ifndef MILLRACE_TESTS_RTL_COMMON_BLOCKS_H
#define MILLRACE_TESTS_RTL_COMMON_BLOCKS_H

#include "bench.h"

extern "C" {
#include "cmodel/num.h"
}

namespace bench {

struct Block {
    float v[32];
};

inline Block random_block(bench::Rng &r)
{
    Block b;
    int kind = static_cast<int>(r.range(0, 11));
    int top = static_cast<int>(kind == 0 ? r.range(0, 12) : kind == 1 ? r.range(248, 254)
                                                                        : r.range(1, 254));
    for (int i = 0; i < 32; i++) {
        int e = top - static_cast<int>(kind == 2 ? r.range(0, 30) : r.range(0, 9));
        if (r.chance(20))
            e = top;
        e = e < 0 ? 0 : e;
        uint32_t m = r.u32() & 0x7FFFFF;
        if (kind >= 3 && kind <= 5) { // ties: a whole number of half steps
            int keep = 7 - (top - e);
            m = keep > 0 ? m & ~((1u << (23 - keep)) - 1) : 0;
        }
        if (kind == 6) // just beside a tie
            m = (m & ~0xFFFFu) + static_cast<uint32_t>(r.range(-1, 1));
        if (kind == 7 && r.chance(50)) // clamped at 127
            m = 0x7FFFFF - static_cast<uint32_t>(r.range(0, 0x1FFFF));
        b.v[i] = mr_float((r.u32() & 0x80000000u) | static_cast<uint32_t>(e) << 23 | (m & 0x7FFFFF));
        if (kind == 8) // zeros and subnormals
            b.v[i] = mr_float(r.chance(50) ? r.u32() & 0x80000000u : r.u32() & 0x807FFFFFu);
        if (kind == 9) // exact: the residue is zero
            b.v[i] = mr_float((mr_bits(b.v[i]) & 0x80000000u) | static_cast<uint32_t>(top) << 23 |
                              (r.u32() & 0x3F) << 17);
    }
    if (kind == 10 || kind == 0) {
        static const uint32_t kBad[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001};
        if (r.chance(50))
            b.v[r.range(0, 31)] = mr_float(kBad[r.range(0, 3)]);
    }
    if (kind == 11) { // a single element
        for (int i = 0; i < 32; i++)
            b.v[i] = r.chance(90) ? 0.0f : b.v[i];
    }
    return b;
}

} // namespace bench

#endif
