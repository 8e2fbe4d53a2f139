// SPDX-License-Identifier: Apache-2.0
// mr_cut_4k against arithmetic: every piece of random runs, at random pace, with clear now and then, and
// the latencies of its header.
#include "Vdut.h"
#include "bench.h"

#include <algorithm>

namespace {

#if defined(VARIANT_beats)
constexpr int kPageLog2 = 6, kAddr = 58, kLeft = 16, kMost = 64, kStage = 0;
#elif defined(VARIANT_short)
constexpr int kPageLog2 = 6, kAddr = 58, kLeft = 32, kMost = 16, kStage = 1;
#else
constexpr int kPageLog2 = 12, kAddr = 64, kLeft = 32, kMost = 4096, kStage = 0;
#endif
constexpr uint64_t kPage = 1ull << kPageLog2;
constexpr uint64_t kMask = kAddr == 64 ? ~0ull : (1ull << kAddr) - 1;

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Rng rng(args.seed);
    bench::Stall load(rng, "load"), next(rng, "next");
    uint64_t addr = 0, left = 0;     // of the run inside
    uint64_t new_addr = 0, new_left = 0;
    int age = 0;                     // cycles since the load or the piece before
    uint64_t bad = 0, pieces = 0, runs = 0, back_to_back = 0, at_page = 0, exact = 0;
    dut->clear_i = dut->load_i = dut->next_i = 0;
    dut.reset();
    for (int i = 0; i < args.cases_or(60000); i++) {
        dut->clear_i = rng.chance(1) && rng.chance(30);
        if (!new_left) {
            static const uint64_t edge[] = {1, 2, kPage - 1, kPage, kPage + 1, 2 * kPage, kMost};
            new_left = rng.chance(40) ? edge[rng.range(0, 6)]
                       : rng.chance(2) ? (1ull << kLeft) - 1
                                       : static_cast<uint64_t>(rng.range(1, 5 * static_cast<int64_t>(kPage)));
            new_addr = rng.u64() & kMask;
            if (rng.chance(30))
                new_addr &= ~(kPage - 1);
        }
        dut->addr_i = new_addr;
        bench::set(dut->left_i, 0, kLeft, new_left);
        dut->load_i = dut->next_i = 0;
        dut.settle();
        // What must stand now.
        bool valid = left && age > kStage;
        uint64_t n = std::min({left, kPage - (addr & (kPage - 1)), static_cast<uint64_t>(kMost)});
        bad += dut->busy_o != (left != 0) || dut->valid_o != valid;
        if (valid)
            bad += bench::get(dut->addr_o) != addr || dut->n_o != n || dut->last_o != (n == left);
        bool take = next.want() && valid && !dut->clear_i;
        next.saw(valid);
        bool room = !left || (take && n == left);
        bool put = load.want() && room && !dut->clear_i;
        load.saw(room);
        dut->next_i = take;
        dut->load_i = put;
        dut.settle();
        age++;
        if (take) {
            pieces++;
            at_page += ((addr + n) & (kPage - 1)) == 0 && n != left;
            exact += n == left && n == kPage;
            addr = (addr + n) & kMask;
            left -= n;
            age = 1;
        }
        if (put) {
            back_to_back += take;
            addr = new_addr;
            left = new_left;
            new_left = 0;
            age = 1;
            runs++;
        }
        if (dut->clear_i)
            left = 0;
        dut.edge();
    }
    tap.ok(!bad, "cut: every piece, when it is promised");
    tap.ok(pieces > 2000 && runs > 300 && back_to_back && at_page && (kMost < static_cast<int>(kPage) || exact),
           "cut: pages, whole pages and runs without a gap came up");
    tap.note("%llu pieces of %llu runs", static_cast<unsigned long long>(pieces), static_cast<unsigned long long>(runs));
    bool covered = next.covered(tap);
    tap.ok(load.covered(tap) && covered, "cut: every handshake was stalled");
    return tap.done();
}
