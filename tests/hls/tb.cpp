// SPDX-License-Identifier: Apache-2.0
// The pipelines that clang and XLS made of hls/datapath.h against that file as gcc compiles it: new
// operands for each core in every cycle; a result must be there as many cycles later as mr_hls_pkg
// says. That datapath.h has the bits of the store is shown by tests/unit/hls/test_hls_update.c.
#include "Vdut.h"
#include "bench.h"

#include "hls/datapath.h"
#include "tests/hls/xls/cores.cpp"

#include <algorithm>
#include <deque>

namespace {

const uint32_t kSpecial[] = {0x00000000, 0x80000000, 0x00000001, 0x807FFFFF, 0x00800000, 0x80800001,
                             0x01000000, 0x3F800000, 0xBF800001, 0x3F7FFFFF, 0x7F7FFFFF, 0xFF7FFFFF,
                             0x7F800000, 0xFF800000, 0x7FC00000, 0xFFBFFFFF, 0x7F800001, 0x1F800000,
                             0x20000001, 0x5F800000, 0x33800000, 0x4B7FFFFF};

uint32_t special(bench::Rng &r)
{
    return kSpecial[r.range(0, sizeof kSpecial / sizeof kSpecial[0] - 1)];
}

// Any bits, special numbers, numbers of nearly one size, those around the flush to zero.
uint32_t number(bench::Rng &r)
{
    uint32_t u = r.u32();
    switch (r.range(0, 7)) {
    case 0: return special(r);
    case 1:
    case 2: return (u & 0x80FFFFFF) + 0x3E800000;
    case 3: return u & 0x83FFFFFF;
    case 4: return u & 0xFFF00007; // few bits: exact results and ties
    default: return u;
    }
}

// Near `a` in size, where sums cancel and quotients are close to 1.
uint32_t near(bench::Rng &r, uint32_t a)
{
    uint32_t e = (a >> 23) + static_cast<uint32_t>(r.range(-27, 27));
    return (r.u32() & 0x807FFFFF) | (e & 255U) << 23;
}

int16_t any_unit(bench::Rng &r)
{
    return static_cast<int16_t>(r.chance(70) ? r.range(-200, 60) : r.range(-400, 400));
}

struct Result {
    uint64_t cycle;
    uint32_t is;
};

// What a core's output must be, and when.
struct Output {
    const char *name;
    uint64_t latency;
    std::deque<Result> want = {};
    long seen = 0, bad = 0;

    void sent(uint64_t cycle, uint32_t result) { want.push_back({cycle + latency, result}); }
    // After each edge.
    void see(bench::Tap &tap, uint64_t cycle, uint32_t is)
    {
        if (want.empty() || want.front().cycle != cycle)
            return;
        if (is != want.front().is && bad++ < 5)
            tap.note("%s: result %ld is %08x, want %08x", name, seen, is, want.front().is);
        want.pop_front();
        seen++;
    }
};

class Bench {
  public:
    Bench(bench::Args &args, bench::Tap &tap) : dut_(args), tap_(tap), rng_(args.seed)
    {
        dut_.reset();
        dut_.settle();
        outputs_[0] = {"add", dut_->add_lat_o};
        outputs_[1] = {"multiply", dut_->multiply_lat_o};
        outputs_[2] = {"divide", dut_->divide_lat_o};
        outputs_[3] = {"root", dut_->root_lat_o};
        outputs_[4] = {"widen", dut_->widen_lat_o};
        outputs_[5] = {"quantise", dut_->quantise_lat_o};
    }

    // So many vectors, one a cycle; then until the last results have come.
    void run(long cases)
    {
        uint64_t longest = 0;
        for (const Output &o : outputs_)
            longest = std::max(longest, o.latency);
        for (long sent = 0; sent < cases; sent++) {
            send();
            cycle();
        }
        for (uint64_t i = 0; i < longest; i++)
            cycle();
    }

    void verdict(long cases)
    {
        for (const Output &o : outputs_) {
            std::string all = std::to_string(o.seen);
            tap_.ok(o.bad == 0 && o.seen == cases,
                    std::string(o.name) + ": II = 1, results after " + std::to_string(o.latency) +
                        " cycles, " + all + " vectors, " + std::to_string(o.bad) + " differ");
        }
    }

  private:
    void send()
    {
        uint64_t now = dut_.cycles();
        uint32_t a = number(rng_), b = rng_.chance(40) ? near(rng_, a) : number(rng_);
        int16_t unit = any_unit(rng_);
        uint8_t code = static_cast<uint8_t>(rng_.chance(80) ? (a >> 23) + rng_.range(0, 12) : b);
        dut_->a_i = a;
        dut_->b_i = b;
        dut_->unit_i = static_cast<uint16_t>(unit);
        dut_->code_i = code;
        outputs_[0].sent(now, core_add(a, b));
        outputs_[1].sent(now, core_multiply(a, b));
        outputs_[2].sent(now, core_divide(a, b));
        outputs_[3].sent(now, core_root(a));
        outputs_[4].sent(now, core_widen(static_cast<int32_t>(a), unit));
        outputs_[5].sent(now, core_quantise(a, code));
    }

    void cycle()
    {
        dut_.tick();
        dut_.settle();
        const uint32_t is[] = {dut_->sum_o,  dut_->product_o, dut_->quotient_o,
                               dut_->root_o, dut_->number_o,  dut_->element_o};
        for (int i = 0; i < 6; i++)
            outputs_[i].see(tap_, dut_.cycles(), is[i]);
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    Output outputs_[6] = {};
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench bench(args, tap);
    long cases = args.cases_or(1000000);
    bench.run(cases);
    bench.verdict(cases);
    return tap.done();
}
