// SPDX-License-Identifier: Apache-2.0
// The pipelines that clang and XLS made of hls/datapath.h against that file as gcc compiles it: new
// operands for each core in every cycle, and for a whole lane in most; a result must be there as
// many cycles later as mr_hls_pkg says. That datapath.h has the bits of the store is shown by
// tests/unit/test_hls_update.c.
#include "Vdut.h"
#include "bench.h"

#include "hls/datapath.h"
#include "hls/xls/cores.cpp"

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

uint32_t any_gradient(bench::Rng &r)
{
    uint32_t g = r.u32() >> r.range(0, 31);
    return r.chance(2) ? 0x80000000U : r.chance(50) ? 0U - g : g;
}

// What a core's output must be, with the cycle in which it must be there.
struct Output {
    const char *name;
    uint64_t latency;
    std::deque<uint32_t> want = {};
    long seen = 0, bad = 0;

    void sent(uint32_t result) { want.push_back(result); }
    // After each edge: one result for each cycle, the first one after `latency`.
    void see(bench::Tap &tap, uint32_t is)
    {
        if (want.size() < latency)
            return;
        if (is != want.front() && bad++ < 5)
            tap.note("%s: result %ld is %08x, want %08x", name, seen, is, want.front());
        want.pop_front();
        seen++;
    }
};

struct Result {
    uint64_t cycle;
    millrace::element is;
};

class Bench {
  public:
    Bench(bench::Args &args, bench::Tap &tap) : dut_(args), tap_(tap), rng_(args.seed)
    {
        dut_->valid_i = 0;
        dut_.reset();
        dut_.settle();
        outputs_[0] = {"add", dut_->add_lat_o};
        outputs_[1] = {"multiply", dut_->multiply_lat_o};
        outputs_[2] = {"divide", dut_->divide_lat_o};
        outputs_[3] = {"root", dut_->root_lat_o};
        outputs_[4] = {"widen", dut_->widen_lat_o};
        outputs_[5] = {"quantise", dut_->quantise_lat_o};
    }

    // `cases` elements through the lane, with factors as steps have them or any.
    void step(long cases, bool any)
    {
        set_factors(any);
        for (long sent = 0; sent < cases;) {
            send_cores();
            bool valid = rng_.chance(95);
            if (valid) {
                send_lane(any);
                sent++;
            }
            dut_->valid_i = valid;
            cycle();
        }
        dut_->valid_i = 0;
        for (uint64_t i = 0; i < dut_->update_lat_o; i++) { // the factors may change behind the last
            send_cores();
            cycle();
        }
    }

    void verdict()
    {
        for (Output &o : outputs_)
            tap_.ok(o.bad == 0 && o.seen > 0, std::string(o.name) + ": " + std::to_string(o.seen) +
                                                  " results, one a cycle, " +
                                                  std::to_string(o.latency) + " later");
        tap_.ok(bad_ == 0 && seen_ > 0 && lane_.empty(),
                "update: " + std::to_string(seen_) + " elements, " +
                    std::to_string(dut_->update_lat_o) + " cycles later");
    }

  private:
    void set_factors(bool any)
    {
        static const uint32_t kUsual[9] = {0x3C23D70A, 0x3F666666, 0x3DCCCCCD,
                                           0x3F7FBE77, 0x3A83126F, 0x41FCD9D4,
                                           0x322BCC77, 0x3C23D70A, 0x38D1B717};
        uint32_t f[9];
        for (int i = 0; i < 9; i++)
            f[i] = any ? number(rng_) : kUsual[i];
        for (int i = 0; i < 8; i++)
            bench::set(dut_->factors_i, 32 * i, 32, f[i]);
        factors_ = {f[0], f[1], f[2], f[3], f[4], f[5], f[6], f[7], f[8]};
    }

    void send_cores()
    {
        uint32_t a = number(rng_), b = rng_.chance(40) ? near(rng_, a) : number(rng_);
        int16_t unit = any_unit(rng_);
        uint8_t code = static_cast<uint8_t>(rng_.chance(80) ? (a >> 23) + rng_.range(0, 12) : b);
        dut_->a_i = a;
        dut_->b_i = b;
        dut_->core_unit_i = static_cast<uint16_t>(unit);
        dut_->code_i = code;
        outputs_[0].sent(core_add(a, b));
        outputs_[1].sent(core_multiply(a, b));
        outputs_[2].sent(core_divide(a, b));
        outputs_[3].sent(core_root(a));
        outputs_[4].sent(core_widen(static_cast<int32_t>(a), unit));
        outputs_[5].sent(core_quantise(a, code));
    }

    void send_lane(bool any)
    {
        bool odd = rng_.chance(any ? 50 : 10);
        millrace::element e = {number(rng_), number(rng_), number(rng_)};
        if (!odd) { // as weights and moments are
            e.w = (e.w & 0x807FFFFF) | static_cast<uint32_t>(rng_.range(100, 128)) << 23;
            e.m = (e.m & 0x807FFFFF) | static_cast<uint32_t>(rng_.range(80, 120)) << 23;
            e.v = (e.v & 0x007FFFFF) | static_cast<uint32_t>(rng_.range(50, 110)) << 23;
        }
        uint32_t gradient = any_gradient(rng_);
        int16_t unit = odd ? any_unit(rng_) : static_cast<int16_t>(rng_.range(-40, -20));
        millrace::factors f = factors_;
        f.decay = rng_.chance(30) ? 0U : f.decay;
        dut_->w_i = e.w;
        dut_->m_i = e.m;
        dut_->v_i = e.v;
        dut_->gradient_i = gradient;
        dut_->unit_i = static_cast<uint16_t>(unit);
        dut_->decay_i = f.decay;
        lane_.push_back({dut_.cycles() + dut_->update_lat_o,
                         millrace::update(f, e, static_cast<int32_t>(gradient), unit)});
    }

    void cycle()
    {
        dut_.tick();
        dut_.settle();
        const uint32_t is[] = {dut_->sum_o,  dut_->product_o, dut_->quotient_o,
                               dut_->root_o, dut_->number_o,  dut_->element_o};
        for (int i = 0; i < 6; i++)
            outputs_[i].see(tap_, is[i]);
        bool due = !lane_.empty() && lane_.front().cycle == dut_.cycles();
        if (due != (dut_->valid_o != 0) && bad_++ < 5)
            tap_.note("update: valid_o is %d in cycle %llu", dut_->valid_o,
                      static_cast<unsigned long long>(dut_.cycles()));
        if (!due)
            return;
        const millrace::element &want = lane_.front().is;
        if ((dut_->w_o != want.w || dut_->m_o != want.m || dut_->v_o != want.v) && bad_++ < 5)
            tap_.note("update: element %ld is %08x %08x %08x, want %08x %08x %08x", seen_, dut_->w_o,
                      dut_->m_o, dut_->v_o, want.w, want.m, want.v);
        lane_.pop_front();
        seen_++;
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    Output outputs_[6] = {};
    millrace::factors factors_ = {};
    std::deque<Result> lane_;
    long seen_ = 0, bad_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench bench(args, tap);
    long cases = args.cases_or(1000000);
    for (long k = 0; k < 100; k++) // a hundred steps, a third of them with any factors
        bench.step(cases / 100, k % 3 == 2);
    bench.verdict();
    return tap.done();
}
