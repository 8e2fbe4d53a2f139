// SPDX-License-Identifier: Apache-2.0
// One multiplier of mr_dot in its DSP48E2 form, over every activation and every two weights: both
// products come out, 2^18 apart, added to what comes up the cascade or to the constant that begins
// it. Together with the proof of mr_dot_halves (tests/formal) that is every sum. --cases:
// activations.
#include "Vdut.h"
#include "bench.h"

#include <cstdint>

namespace
{

#ifdef VARIANT_first
constexpr uint64_t kBias = 0x400010000;
#endif
constexpr uint64_t kMask = (1ull << 48) - 1;
constexpr int kLatency = 3; // operands, product, sum

struct Lane : Vdut {
    using Vdut::Vdut;
    uint8_t rst_ni = 1; // there is no reset; the bench's clocking wants one
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Dut<Lane> dut(args);
    bench::Rng rng(args.seed);
    const uint32_t all = static_cast<uint32_t>(args.cases_or(256)) << 16;
    uint64_t want[kLatency] = {}; // by step, the product until the sum is due
    uint64_t wrong = 0;
    dut->v_i = 7;
    for (uint32_t n = 0; n < all + kLatency; n++) {
        auto a = static_cast<int8_t>(n >> 16), hi = static_cast<int8_t>(n >> 8),
             lo = static_cast<int8_t>(n);
        dut->a_i = static_cast<uint8_t>(a);
        dut->hi_i = static_cast<uint8_t>(hi);
        dut->lo_i = static_cast<uint8_t>(lo);
        uint64_t down = (static_cast<uint64_t>(rng.u32()) << 32 | rng.u32()) & kMask;
        dut->down_i = down;
        // The product of two steps before gets its sum now.
#ifdef VARIANT_first
        down = kBias;
#endif
        uint64_t due = (want[1] + down) & kMask;
        want[1] = want[0];
        want[0] = static_cast<uint64_t>(static_cast<int64_t>(hi) * a * (1 << 18) +
                                        static_cast<int64_t>(lo) * a);
        dut.edge();
        dut.settle();
        if (n >= kLatency - 1 && dut->up_o != due && wrong++ == 0)
            tap.note("step %u: got %012llx want %012llx", n,
                     static_cast<unsigned long long>(dut->up_o),
                     static_cast<unsigned long long>(due));
    }
    tap.ok(wrong == 0 && all > 0, "dot_lane: both products of every activation and two weights");
    return tap.done();
}
