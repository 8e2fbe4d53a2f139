// SPDX-License-Identifier: Apache-2.0
// mr_sems against arithmetic: adds of all queues in one cycle, takes of the one queue that waits for a semaphore, counts
// up to the 62 of the header, clear.
#include "Vdut.h"
#include "bench.h"

#include <algorithm>

namespace {

#if defined(VARIANT_q2)
constexpr int kQueues = 2;
#else
constexpr int kQueues = 5;
#endif
constexpr int kSems = 16, kMost = 15 + 47;

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    bench::Rng rng(args.seed);
    int count[kSems] = {};         // what was added and taken in earlier cycles
    bool taken[kSems] = {};        // in the cycle before: not seen in nonzero_o yet
    int taker[kSems], most[kSems]; // the queue that waits for it; where its adds stop in this stretch
    uint64_t bad = 0, takes = 0, together = 0, all_at_once = 0, full = 0, emptied = 0, clears = 0;
    for (int s = 0; s < kSems; s++)
        taker[s] = s % kQueues, most[s] = kMost;
    dut->clear_i = 0;
    bench::set(dut->take_i, 0, 64, 0);
    bench::set(dut->signal_i, 0, 64, 0);
    dut.reset();
    int adds = 50, draws = 50; // percent of cycles
    for (int i = 0; i < args.cases_or(100000); i++) {
        if (i % 50 == 0) {
            adds = static_cast<int>(rng.range(0, 100));
            draws = static_cast<int>(rng.range(0, 100));
            for (int &m : most)
                m = rng.chance(50) ? kMost : static_cast<int>(rng.range(1, 3));
        }
        dut.settle();
        for (int s = 0; s < kSems; s++)
            bad += bench::get(dut->nonzero_o, s, 1) != (count[s] + taken[s] > 0);
        bool clear = rng.chance(1) && rng.chance(20);
        dut->clear_i = clear;
        for (int s = 0; s < kSems; s++) {
            int up = 0;
            bool quiet = taken[s];
            // A queue issues in no two cycles in a row.
            bool take = !quiet && count[s] > 0 && rng.chance(draws);
            for (int q = 0; q < kQueues; q++) {
                bool add = count[s] + up < most[s] && rng.chance(adds);
                up += add;
                bench::set(dut->signal_i, 16 * q + s, 1, add);
                bench::set(dut->take_i, 16 * q + s, 1, take && q == taker[s]);
            }
            takes += take;
            together += take && up;
            all_at_once += up == kQueues;
            taken[s] = take;
            count[s] += up - take;
            full += count[s] == kMost;
            emptied += take && !count[s];
        }
        if (clear) {
            clears++;
            for (int s = 0; s < kSems; s++) {
                count[s] = taken[s] = 0;
                taker[s] = static_cast<int>(rng.range(0, kQueues - 1));
            }
        }
        dut.edge();
    }
    tap.ok(!bad, "sems: above zero in the cycle that is promised");
    tap.ok(takes > 1000 && together && all_at_once && full && emptied && clears,
           "sems: takes beside adds, adds of all queues, the most, the last one and clear came up");
    tap.note("%llu takes, %llu of the last one", static_cast<unsigned long long>(takes),
             static_cast<unsigned long long>(emptied));
    return tap.done();
}
