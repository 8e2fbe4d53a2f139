// SPDX-License-Identifier: Apache-2.0
// mr_fifo and mr_ram_1r1w against models; one variant of the bench for each.
#include "Vdut.h"

#if defined(VARIANT_ram) || defined(VARIANT_ram_we)
#define RAM 1
#endif

#ifdef RAM
// The RAM has no reset: the bench's helper wants one.
struct RamDut : Vdut {
    using Vdut::Vdut;
    uint8_t rst_ni = 0;
};
#endif
#include "bench.h"

#include <deque>
#include <vector>

namespace {

#ifdef VARIANT_ram_we
constexpr int kLanes = 4;
#else
constexpr int kLanes = 1;
#endif
#if defined(VARIANT_fifo16)
constexpr std::size_t kDepth = 16;
#elif defined(VARIANT_fifo5)
constexpr std::size_t kDepth = 5;
#else
constexpr std::size_t kDepth = 2; // fifo2, and the slice's two entries
#endif

#ifdef RAM
void ram(const bench::Args &args, bench::Tap &tap)
{
    bench::Dut<RamDut> dut(args);
    bench::Rng rng(args.seed);
    uint64_t mem[24], out = 0, bad = 0, same = 0;
    bool known[24] = {}, out_known = false;
    for (int i = 0; i < args.cases_or(20000); i++) {
        unsigned wa = static_cast<unsigned>(rng.range(0, 23)), ra = static_cast<unsigned>(rng.range(0, 23));
        if (rng.chance(30))
            ra = wa;
        unsigned wen = rng.u32() & ((1u << kLanes) - 1);
        if (i < 24) { // fill once
            wa = static_cast<unsigned>(i);
            wen = (1u << kLanes) - 1;
        }
        bool ren = rng.chance(60);
        uint64_t x = rng.u64();
        dut->wen_i = static_cast<uint8_t>(wen);
        dut->waddr_i = static_cast<uint8_t>(wa);
        dut->wdata_i = x;
        dut->ren_i = ren;
        dut->raddr_i = static_cast<uint8_t>(ra);
        dut.settle();
        bad += out_known && dut->rdata_o != out;
        if (ren) { // the old word
            out = mem[ra];
            out_known = known[ra];
            same += wen && ra == wa;
        }
        uint64_t m = 0;
        for (int l = 0; l < kLanes; l++)
            if (wen >> l & 1)
                m |= (~0ull >> (64 - 64 / kLanes)) << (64 / kLanes * l);
        mem[wa] = (mem[wa] & ~m) | (x & m);
        known[wa] = known[wa] || wen == (1u << kLanes) - 1;
        dut.edge();
    }
    tap.note("%llu reads of the word being written", (unsigned long long)same);
    tap.ok(!bad && same, "common: RAM reads, holds and returns the old word");
}
#else
void queue(const bench::Args &args, bench::Tap &tap)
{
    bench::Dut<Vdut> dut(args);
    bench::Rng rng(args.seed);
    bench::Stall in(rng, "in"), out(rng, "out");
    std::deque<uint64_t> model;
    uint64_t bad = 0, moved = 0, full = 0, next = 0;
    bool offer = false, was_valid = false;
    dut->in_valid_i = dut->out_ready_i = 0;
    dut->clear_i = 0;
    dut.reset();
    auto cycle = [&](bool clear) {
        bool want = in.want();
        offer = offer || want;
        bool ready = out.want();
        dut->in_valid_i = offer;
        dut->in_data_i = offer ? next : rng.u64();
        dut->out_ready_i = ready;
        dut->clear_i = clear;
        dut.settle();
        in.saw(dut->in_ready_o && !offer);
        out.saw(dut->out_valid_o);
        full += model.size() == kDepth;
        bad += dut->count_o != model.size();
        bad += dut->in_ready_o != (model.size() < kDepth);
        bad += was_valid && !dut->out_valid_o; // valid never falls by itself
        if (dut->out_valid_o) {
            bad += model.empty() || dut->out_data_o != model.front();
            if (ready && !model.empty())
                model.pop_front();
        }
        was_valid = dut->out_valid_o && !ready && !clear;
        if (offer && dut->in_ready_o) {
            model.push_back(next);
            next = rng.u64();
            offer = false;
            moved++;
        }
        bad += model.size() > kDepth;
        if (clear)
            model.clear();
        dut.edge();
    };
    for (int i = 0; i < args.cases_or(30000); i++)
        cycle(false);
    tap.ok(!bad && moved > 1000 && full, "common: order, count and stability under stalls");
    bool cover = in.covered(tap);
    tap.ok(out.covered(tap) && cover, "common: every handshake was stalled");
    in.density(100);
    out.density(100);
    for (int i = 0; i < 10; i++)
        cycle(false);
    moved = 0;
    for (int i = 0; i < 1000; i++)
        cycle(false);
    // A two-entry FIFO has its RAM's latency of two and no look-ahead at a pop: 2 of 3 cycles.
    tap.ok(moved >= (kDepth > 2 ? 1000u : 600u) && !bad, "common: one entry a cycle");
    in.random();
    out.random();
    for (int i = 0; i < 5000; i++)
        cycle(rng.chance(3));
    tap.ok(!bad, "common: clear");
}
#endif

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
#ifdef RAM
    ram(args, tap);
#else
    queue(args, tap);
#endif
    return tap.done();
}
