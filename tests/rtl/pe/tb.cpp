// SPDX-License-Identifier: Apache-2.0
// mr_pe and mr_pe_pair against the C model's accumulator step: random gaps, sums of one to many terms,
// sums that follow each other without a gap, an odd row that is not live. No handshake: fixed latency,
// so there are gaps but no stalls.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/num.h"
}

#include <deque>
#include <vector>

namespace
{

#ifdef VARIANT_pair
constexpr int kRows = 2;
#else
constexpr int kRows = 1;
#endif
constexpr uint64_t kMask48 = (1ull << 48) - 1;

// The elements have no reset; the bench's clocking wants one.
struct Pe : Vdut {
    using Vdut::Vdut;
    uint8_t rst_ni = 1;
};

struct Step {
    bool valid = false, first = false, last = false, live_hi = false;
    int8_t a[2][32] = {}, w[32] = {};
    int dr[2] = {}, dc = 0;
};

enum Data { RANDOM, EXTREME, ZERO, MIXED };

int8_t element(bench::Rng &rng, Data d, bool weight)
{
    int low = weight ? -128 : -127;
    switch (d) {
    case RANDOM:
        return static_cast<int8_t>(rng.range(low, 127));
    case EXTREME:
        return static_cast<int8_t>(rng.chance(50) ? low : 127);
    case ZERO:
        return 0;
    default:
        return static_cast<int8_t>(rng.chance(50) ? 0 : rng.chance(50) ? low : 127);
    }
}

int diff(bench::Rng &rng)
{
    static const int edge[] = {0, 1, 18, 19, 20, 37, 38};
    return static_cast<int>(rng.chance(40) ? edge[rng.range(0, 6)] : rng.range(0, 38));
}

class Bench
{
  public:
    Bench(bench::Dut<Pe> &dut, bench::Rng &rng, bench::Tap &tap) : dut_(dut), rng_(rng), tap_(tap)
    {
    }

    // Runs sums of 1..max_terms terms; uniform: every lane of an operand has the same extreme value.
    bool run(int sums, int max_terms, Data da, Data dw, bool uniform, int gap)
    {
        std::deque<Step> pipe(7); // pipe[s]: the step that is in stage s
        bool good = true;
        int left = 0, done = 0;
        bool first = true, live_hi = true;
        int64_t acc[2] = {};
        std::deque<std::pair<uint64_t, uint64_t>> want;
        int idle = 0;
        while (done < sums || idle < 12) {
            Step s;
            if (done < sums && !rng_.chance(gap)) {
                if (left == 0) {
                    left = static_cast<int>(rng_.range(1, max_terms));
                    first = true;
                    live_hi = rng_.chance(70);
                }
                s.valid = true;
                s.first = first;
                s.live_hi = live_hi;
                s.last = --left == 0;
                first = false;
                int8_t wa = element(rng_, dw, true), aa[2] = {element(rng_, da, false),
                                                              element(rng_, da, false)};
                for (int i = 0; i < 32; i++) {
                    s.w[i] = uniform ? wa : element(rng_, dw, true);
                    for (int r = 0; r < 2; r++)
                        s.a[r][i] = uniform ? aa[r] : element(rng_, da, false);
                }
                s.dr[0] = uniform ? 0 : diff(rng_);
                s.dr[1] = uniform ? 0 : diff(rng_);
                s.dc = uniform ? 0 : diff(rng_);
                for (int r = 0; r < 2; r++) {
                    int64_t d = 0;
                    for (int i = 0; i < 32; i++)
                        d += s.a[r][i] * s.w[i];
                    acc[r] = (s.first ? 0 : acc[r]) + mr_align(d, s.dr[r] + s.dc);
                }
                if (s.last) {
                    uint64_t hi = live_hi && kRows == 2 ? static_cast<uint64_t>(acc[1]) & kMask48
                                                        : ~0ull;
                    want.push_back({static_cast<uint64_t>(acc[0]) & kMask48, hi});
                    done++;
                }
            } else if (done >= sums) {
                idle++;
            }
            pipe.push_front(s);
            pipe.pop_back();
            good &= cycle(pipe, want);
            if (!good)
                break;
        }
        return good && (want.empty() || !good);
    }

  private:
    bool cycle(const std::deque<Step> &pipe, std::deque<std::pair<uint64_t, uint64_t>> &want)
    {
        unsigned v = 0;
        for (unsigned i = 0; i < 5; i++)
            v |= static_cast<unsigned>(pipe[i].valid) << i;
        const Step &s0 = pipe[0], &s2 = pipe[2], &s4 = pipe[4], &s5 = pipe[5];
        dut_->first_i = s4.valid ? s4.first : rng_.chance(50);
        bench::put_bytes(dut_->w_i, s0.w, 32);
        dut_->dc_i = static_cast<uint8_t>(s2.dc);
#ifdef VARIANT_pair
        dut_->v_i = v & 15u;
        dut_->v_lo_i = (v >> 4) & 1u;
        dut_->v_hi_i = s4.valid && s4.live_hi;
        bench::put_bytes(dut_->a_lo_i, s0.a[0], 32);
        bench::put_bytes(dut_->a_hi_i, s0.a[1], 32);
        dut_->dr_lo_i = static_cast<uint8_t>(s2.dr[0]);
        dut_->dr_hi_i = static_cast<uint8_t>(s2.dr[1]);
#else
        dut_->v_i = static_cast<uint8_t>(v);
        bench::put_bytes(dut_->a_i, s0.a[0], 32);
        dut_->dr_i = static_cast<uint8_t>(s2.dr[0]);
#endif
        dut_.settle();
        bool good = true;
        if (s5.valid && s5.last) {
            last_ = want.front();
            want.pop_front();
            known_ = true;
        } else if (s5.valid) {
            known_ = false;
        }
        // A finished sum stays until the next step arrives; an odd row that is not live keeps its own.
#ifdef VARIANT_pair
        if (s5.valid && s5.live_hi)
            hi_ = last_.second;
        if (known_) {
            good &= check(dut_->acc_lo_o, last_.first, "even row");
            if (hi_ != ~0ull && (!s5.valid || s5.last))
                good &= check(dut_->acc_hi_o, hi_, "odd row");
        }
        if (s5.valid && !s5.last && s5.live_hi)
            hi_ = ~0ull;
#else
        if (known_)
            good &= check(dut_->acc_o, last_.first, "sum");
#endif
        dut_.edge();
        return good;
    }

    bool check(uint64_t got, uint64_t want, const char *what)
    {
        if (got == want)
            return true;
        tap_.note("%s: got %012llx want %012llx", what, static_cast<unsigned long long>(got),
                  static_cast<unsigned long long>(want));
        return false;
    }

    bench::Dut<Pe> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    std::pair<uint64_t, uint64_t> last_{};
    bool known_ = false;
    [[maybe_unused]] uint64_t hi_ = ~0ull; // what the odd row's accumulator holds, if known
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Rng rng(args.seed);
    bench::Tap tap;
    bench::Dut<Pe> dut(args);
    Bench b(dut, rng, tap);
    int n = args.cases_or(2000);
    tap.ok(b.run(n, 8, RANDOM, RANDOM, false, 0), "pe: random terms, no gaps");
    tap.ok(b.run(n, 8, RANDOM, RANDOM, false, 40), "pe: random terms, random gaps");
    tap.ok(b.run(n, 1, MIXED, MIXED, false, 20), "pe: sums of one term, zeros and extremes");
    tap.ok(b.run(n, 4, EXTREME, EXTREME, false, 10), "pe: extreme lanes of both signs");
    tap.ok(b.run(n, 4, EXTREME, EXTREME, true, 10), "pe: all lanes extreme, -128 weights");
    tap.ok(b.run(n / 10, 4, ZERO, RANDOM, false, 10), "pe: zero activations");
    tap.ok(b.run(6, 1024, EXTREME, EXTREME, true, 0), "pe: long sums of extremes");
    tap.note("stalls: no handshake, fixed latency");
    return tap.done();
}
