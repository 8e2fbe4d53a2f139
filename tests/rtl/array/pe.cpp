// SPDX-License-Identifier: Apache-2.0
// mr_pe against the C model's accumulator step: random gaps, sums of one to many terms, sums that
// follow each other without a gap. No handshake: fixed latency, so there are gaps but no stalls.
// Variants: the portable form, the one for DSP48E2, and both side by side, where dot products,
// terms and sums must agree in every cycle once the registers hold known values.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/num.h"
}

#include <deque>
#include <vector>

namespace
{

constexpr int kColumns = 2;
constexpr uint64_t kMask48 = (1ull << 48) - 1;

// The elements have no reset; the bench's clocking wants one.
struct Pe : Vdut {
    using Vdut::Vdut;
    uint8_t rst_ni = 1;
};

struct Step {
    bool valid = false, first = false, last = false, grad = false;
    int8_t a[32] = {}, w[kColumns * 32] = {};
    int dr = 0, dc[kColumns] = {};
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

// Signed differences for a gradient: sums around both ends of the shift.
int signed_diff(bench::Rng &rng)
{
    return static_cast<int>(rng.chance(80) ? rng.range(-4, 22) : rng.range(-1024, 1023));
}

class Bench
{
  public:
    Bench(bench::Dut<Pe> &dut, bench::Rng &rng, bench::Tap &tap) : dut_(dut), rng_(rng), tap_(tap)
    {
    }

    // Runs sums of 1..max_terms terms; uniform: every lane of an operand has the same extreme
    // value.
    bool run(int sums, int max_terms, Data da, Data dw, bool uniform, int gap, bool grad = false)
    {
        std::deque<Step> pipe(7); // pipe[s]: the step that is in stage s
        bool good = true;
        int left = 0, done = 0;
        bool first = true;
        int64_t acc[kColumns] = {};
        std::deque<std::pair<uint64_t, uint64_t>> want;
        int idle = 0;
        while (done < sums || idle < 12) {
            Step s;
            if (done < sums && !rng_.chance(gap)) {
                if (left == 0) {
                    left = static_cast<int>(rng_.range(1, max_terms));
                    first = true;
                }
                s.valid = true;
                s.first = first;
                s.last = --left == 0;
                first = false;
                int8_t aa = element(rng_, da, false);
                int8_t ww[kColumns] = {element(rng_, dw, true), element(rng_, dw, true)};
                for (int i = 0; i < 32; i++) {
                    s.a[i] = uniform ? aa : element(rng_, da, false);
                    for (int c = 0; c < kColumns; c++)
                        s.w[32 * c + i] = uniform ? ww[c] : element(rng_, dw, true);
                }
                s.grad = grad && rng_.chance(90);
                s.dr = s.grad ? signed_diff(rng_) : uniform ? 0 : diff(rng_);
                for (int c = 0; c < kColumns; c++) {
                    s.dc[c] = s.grad ? signed_diff(rng_) : uniform ? 0 : diff(rng_);
                    int64_t d = 0;
                    for (int i = 0; i < 32; i++)
                        d += s.a[i] * s.w[32 * c + i];
                    int shift = s.dr + s.dc[c];
                    acc[c] = (s.first ? 0 : acc[c]) +
                             (s.grad ? mr_align_grad(d, shift) : mr_align(d, shift));
                }
                if (s.last) {
                    want.push_back({static_cast<uint64_t>(acc[0]) & kMask48,
                                    static_cast<uint64_t>(acc[1]) & kMask48});
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
        for (unsigned i = 0; i < 6; i++)
            v |= static_cast<unsigned>(pipe[i].valid) << i;
        const Step &s0 = pipe[0], &s3 = pipe[3], &s5 = pipe[5], &s6 = pipe[6];
        dut_->v_i = static_cast<uint8_t>(v);
        dut_->first_i = s5.valid ? s5.first : rng_.chance(50);
        bench::put_bytes(dut_->a_i, s0.a, 32);
        bench::put_bytes(dut_->w_i, s0.w, 64);
#ifdef VARIANT_both
        dut_->grad_i = s3.grad;
        dut_->dr_i = static_cast<uint16_t>(s3.dr & 2047);
        dut_->dc_i = static_cast<uint32_t>((s3.dc[0] & 2047) | (s3.dc[1] & 2047) << 11);
#else
        dut_->dr_i = static_cast<uint8_t>(s3.dr);
        dut_->dc_i = static_cast<uint16_t>(s3.dc[0] | s3.dc[1] << 6);
#endif
        dut_.settle();
        bool good = true;
        if (s6.valid && s6.last) {
            last_ = want.front();
            want.pop_front();
            known_ = true;
        } else if (s6.valid) {
            known_ = false;
        }
        // A finished sum stays until the next step arrives.
        if (known_) {
            good &= check(column(0), last_.first, "even column");
            good &= check(column(1), last_.second, "odd column");
        }
        const Step &s4 = pipe[4];
        for (int c = 0; c < kColumns; c++)
            if (s4.valid && (dut_->below_o >> c & 1) != (s4.grad && s4.dr + s4.dc[c] < 0)) {
                tap_.note("column %d: below_o is %d", c, dut_->below_o >> c & 1);
                good = false;
            }
#ifdef VARIANT_both
        started_ |= known_;
        if (started_ && dut_->differ_o) {
            tap_.note("the forms differ");
            good = false;
        }
#endif
        dut_.edge();
        return good;
    }

    uint64_t column(int c)
    {
        uint64_t low = dut_->acc_o[0] | static_cast<uint64_t>(dut_->acc_o[1]) << 32;
        uint64_t high = dut_->acc_o[1] | static_cast<uint64_t>(dut_->acc_o[2]) << 32;
        return (c == 0 ? low : high >> 16) & kMask48;
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
    [[maybe_unused]] bool started_ = false; // a first sum is there
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
#ifdef VARIANT_both
    tap.ok(b.run(n, 8, RANDOM, RANDOM, false, 10, true), "pe: gradients, random terms");
    tap.ok(b.run(n, 8, EXTREME, EXTREME, true, 10, true), "pe: gradients, extremes");
    tap.ok(b.run(n, 4, MIXED, MIXED, false, 10, true), "pe: gradients, zeros and extremes");
#endif
    tap.note("stalls: no handshake, fixed latency");
    return tap.done();
}
