// SPDX-License-Identifier: Apache-2.0
// mr_width against a queue of 32-bit words: order, handshakes as its header says, clear now and then, and
// full rate without stalls.
#include "Vdut.h"
#include "bench.h"

#include <deque>

namespace {

#if defined(VARIANT_join4)
constexpr std::size_t kIn = 4, kOut = 16;
#elif defined(VARIANT_join2)
constexpr std::size_t kIn = 8, kOut = 16;
#elif defined(VARIANT_same)
constexpr std::size_t kIn = 16, kOut = 16;
#else
constexpr std::size_t kIn = 64, kOut = 16;
#endif

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Rng rng(args.seed);
    bench::Stall in(rng, "in"), out(rng, "out");
    std::deque<uint32_t> inside; // words that have gone in and not come out
    bool offer = false;
    uint64_t bad = 0, moved = 0, cleared = 0;
    dut->clear_i = dut->in_valid_i = dut->out_ready_i = 0;
    dut.reset();
    auto cycle = [&](bool clear) {
        if (!offer) {
            for (std::size_t i = 0; i < kIn; i++)
                dut->in_data_i[i] = rng.u32();
            offer = in.want();
        }
        bool ready = out.want();
        dut->in_valid_i = offer;
        dut->out_ready_i = ready;
        dut->clear_i = clear;
        dut.settle();
        std::deque<uint32_t> all = inside;
        if (offer && (kIn <= kOut || inside.empty()))
            for (std::size_t i = 0; i < kIn; i++)
                all.push_back(dut->in_data_i[i]);
        bool valid = all.size() >= kOut;
        bool accepts = kIn < kOut ? inside.size() + kIn < kOut || ready : ready && inside.empty();
        bad += dut->out_valid_o != valid || dut->in_ready_o != accepts;
        for (std::size_t i = 0; valid && i < kOut; i++)
            bad += dut->out_data_o[i] != all[i];
        in.saw(accepts && !offer);
        out.saw(valid);
        bool took = offer && accepts, gave = valid && ready;
        if (took || gave) {
            inside = all;
            if (gave)
                inside.erase(inside.begin(), inside.begin() + kOut);
            moved += gave;
        }
        offer = offer && !took;
        if (clear) {
            cleared += !inside.empty();
            inside.clear();
        }
        dut.edge();
    };
    for (int i = 0; i < args.cases_or(30000); i++)
        cycle(false);
    tap.ok(!bad && moved > 1000, "width: words and handshakes under stalls");
    bool covered = in.covered(tap);
    tap.ok(out.covered(tap) && covered, "width: every handshake was stalled");
    for (int i = 0; i < 5000; i++)
        cycle(rng.chance(3));
    tap.ok(!bad && (cleared || kIn == kOut), "width: clear");
    in.density(100);
    out.density(100);
    for (int i = 0; i < 10; i++)
        cycle(false);
    moved = 0;
    for (int i = 0; i < 1000; i++)
        cycle(false);
    tap.ok(!bad && moved == (kIn < kOut ? 1000 * kIn / kOut : 1000), "width: full rate");
    return tap.done();
}
