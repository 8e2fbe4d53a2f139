// SPDX-License-Identifier: Apache-2.0
// Floats of a row for the units that work on rows.
#ifndef MILLRACE_TESTS_RTL_COMMON_ROWS_H
#define MILLRACE_TESTS_RTL_COMMON_ROWS_H

#include "bench.h"

extern "C" {
#include "cmodel/num.h"
}

namespace bench {

// One of a row of this kind, whose largest exponent field is about `base`.
inline float random_value(Rng &r, int kind, int base)
{
    uint32_t sign = r.u32() & 0x80000000u, m = r.u32() & 0x7FFFFF;
    int e = base - static_cast<int>(r.range(0, 4));
    switch (kind) {
    case 0: // all zeros of either sign, and subnormals
        return mr_float(sign | (r.chance(30) ? m : 0));
    case 1: // one value throughout
        return mr_float(static_cast<uint32_t>(base) << 23 | 0x7FFFFF);
    case 2: // wide range
        e = base - static_cast<int>(r.range(0, 40));
        break;
    case 3: // an outlier now and then
        e = r.chance(2) ? base + 8 : e;
        break;
    case 4: // few bits: ties of the rounding
        m &= r.chance(50) ? 0x700000u : 0x7FFFFFu;
        e = base - static_cast<int>(r.range(0, 26));
        m |= r.chance(50) ? 1u : 0u;
        break;
    case 5: // all of one sign, large sums
        sign = 0;
        e = base;
        m |= 0x7F0000;
        break;
    default:
        break;
    }
    e = e < 0 ? 0 : e > 254 ? 254 : e;
    return mr_float(sign | static_cast<uint32_t>(e) << 23 | m);
}

} // namespace bench

#endif
