// SPDX-License-Identifier: Apache-2.0
// mr_quant against mr_mxint8_quantise and mr_mxint8_residue: blocks of every kind, one and two passes
// mixed, random stalls on both sides; then the promised rate without stalls.
#include "Vdut.h"
#include "bench.h"
#include "blocks.h"

#include <deque>
#include <vector>

extern "C" {
#include "cmodel/num.h"
}

namespace {

#if defined(VARIANT_v4)
constexpr int kV = 4;
constexpr bool kTwoPass = true;
#elif defined(VARIANT_v8single)
constexpr int kV = 8;
constexpr bool kTwoPass = false;
#elif defined(VARIANT_v32)
constexpr int kV = 32;
constexpr bool kTwoPass = true;
#else
constexpr int kV = 64;
constexpr bool kTwoPass = true;
#endif
constexpr int kSubs = kV > 32 ? kV / 32 : 1; // blocks of one beat
constexpr int kBeats = kV < 32 ? 32 / kV : 1;

struct Beat {
    uint32_t word[kV];
    bool two_pass;
    uint64_t tag;
};

struct Out {
    uint8_t bytes[33];
    uint64_t tag;
    int sub;
    bool lo;
};

using bench::Block;
using bench::random_block;

class Bench {
  public:
    Bench(bench::Args &args, bench::Tap &tap)
        : dut_(args), tap_(tap), rng_(args.seed), in_(rng_, "in_valid"),
          out_(rng_, "out_ready")
    {
        dut_->in_valid_i = 0;
        dut_->out_ready_i = 0;
        dut_.reset();
    }

    // One beat's worth of blocks, or one block's worth of beats.
    void queue(bool two_pass)
    {
        Block b[kSubs];
        uint64_t tag = rng_.u64() & ((1ull << 37) - 1);
        for (int s = 0; s < kSubs; s++) {
            b[s] = random_block(rng_);
            Out o{};
            int8_t q[32], ql[32];
            float lo[32];
            o.bytes[32] = mr_mxint8_quantise(b[s].v, q);
            memcpy(o.bytes, q, 32);
            o.tag = tag;
            o.sub = s;
            want_.push_back(o);
            nan_ += o.bytes[32] == 255;
            zero_ += o.bytes[32] == 0;
            if (two_pass) {
                mr_mxint8_residue(b[s].v, o.bytes[32], q, lo);
                o.bytes[32] = mr_mxint8_quantise(lo, ql);
                memcpy(o.bytes, ql, 32);
                o.lo = true;
                want_.push_back(o);
            }
        }
        for (int k = 0; k < kBeats; k++) {
            Beat t;
            for (int i = 0; i < kV; i++)
                t.word[i] = mr_bits(b[i / 32].v[(k * kV + i) % 32]);
            t.two_pass = two_pass;
            t.tag = tag;
            beats_.push_back(t);
        }
    }

    // Runs until everything has come out; the cycles that took.
    uint64_t run(bool stalls)
    {
        if (stalls) {
            in_.random();
            out_.random();
        } else {
            in_.density(100);
            out_.density(100);
        }
        uint64_t start = dut_.cycles(), limit = start + 2000 + 400 * (beats_.size() + want_.size());
        while (!want_.empty() && dut_.cycles() < limit)
            cycle();
        uint64_t took = dut_.cycles() - start;
        for (int i = 0; i < 30; i++)
            cycle();
        if (!want_.empty() || !beats_.empty()) {
            tap_.note("%zu blocks missing, %zu beats not taken", want_.size(), beats_.size());
            bad_++;
        }
        want_.clear();
        beats_.clear();
        offered_ = false;
        return took;
    }

    long bad_ = 0, seen_ = 0, nan_ = 0, zero_ = 0;

    bool covered()
    {
        tap_.note("stalls in_valid %ld, in_ready %ld", gaps_, in_ready_low_);
        return out_.covered(tap_) && gaps_ != 0 && in_ready_low_ != 0;
    }

  private:
    void cycle()
    {
        bool go = !beats_.empty() && (offered_ || in_.want());
        if (go && !offered_) {
            for (int i = 0; i < kV; i++)
                bench::set(dut_->in_data_i, 32 * i, 32, beats_.front().word[i]);
            bench::set(dut_->in_tag_i, 0, 37, beats_.front().tag);
            dut_->in_two_pass_i = beats_.front().two_pass;
        } else if (!go) { // nothing may depend on these
            for (int i = 0; i < kV; i++)
                bench::set(dut_->in_data_i, 32 * i, 32, rng_.u32());
            bench::set(dut_->in_tag_i, 0, 37, rng_.u64());
            dut_->in_two_pass_i = rng_.chance(50);
        }
        dut_->in_valid_i = go;
        dut_->out_ready_i = out_.want();
        dut_.settle();
        gaps_ += !go && !beats_.empty();
        out_.saw(dut_->out_valid_o);
        in_ready_low_ += go && !dut_->in_ready_o;
        if (go && dut_->in_ready_o) {
            beats_.pop_front();
            offered_ = false;
        } else {
            offered_ = go;
        }
        if (dut_->out_valid_o)
            check(dut_->out_ready_i);
        dut_.edge();
    }

    void check(bool taken)
    {
        Out got{};
        bench::take_bytes(dut_->out_data_o, got.bytes, 33);
        got.tag = bench::get(dut_->out_tag_o, 0, 37);
        got.sub = static_cast<int>(dut_->out_sub_o);
        got.lo = dut_->out_lo_o;
        if (want_.empty()) {
            if (bad_++ < 5)
                tap_.note("a block too many");
            return;
        }
        const Out &w = want_.front();
        bool good = !memcmp(got.bytes, w.bytes, 33) && got.tag == w.tag && got.sub == w.sub &&
                    got.lo == w.lo;
        if (!good && bad_++ < 5) {
            int i = 0;
            while (i < 32 && got.bytes[i] == w.bytes[i])
                i++;
            tap_.note("lo %d/%d sub %d/%d tag %d: byte %d is %02x, want %02x; code %u, want %u", got.lo,
                      w.lo, got.sub, w.sub, got.tag == w.tag, i, got.bytes[i], w.bytes[i],
                      got.bytes[32], w.bytes[32]);
        }
        if (taken) {
            want_.pop_front();
            seen_++;
        }
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    bench::Stall in_, out_;
    std::deque<Beat> beats_;
    std::deque<Out> want_;
    bool offered_ = false;
    long in_ready_low_ = 0, gaps_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench b(args, tap);
    bench::Rng r(args.seed + 1);
    int cases = args.cases_or(20000);

    for (int k = 0; k < cases; k += 100) {
        int mode = kTwoPass ? static_cast<int>(r.range(0, 2)) : 0; // single, mixed, two passes
        for (int i = 0; i < 100; i++)
            b.queue(mode == 2 || (mode == 1 && r.chance(50)));
        b.run(true);
    }
    tap.ok(b.bad_ == 0 && b.seen_ >= cases, std::to_string(b.seen_) + " blocks as the C model");
    tap.ok(b.nan_ != 0 && b.zero_ != 0, "NaN blocks and zero blocks among them");
    tap.ok(b.covered(), "both sides stalled each other");

    // Rate, no stalls: a beat a cycle (V > 32: a block a cycle), half of that with two passes.
    for (int two = 0; two <= (kTwoPass ? 1 : 0); two++) {
        for (int i = 0; i < 1000; i++)
            b.queue(two != 0);
        uint64_t took = b.run(false);
        uint64_t ideal = 1000u * kBeats * kSubs * (two ? 2 : 1);
        tap.note("%s pass: %llu cycles for %llu", two ? "two" : "one",
                 static_cast<unsigned long long>(took), static_cast<unsigned long long>(ideal));
        tap.ok(took <= ideal + 40 && b.bad_ == 0, two ? "rate with two passes" : "rate with one pass");
    }
    b.queue(false);
    uint64_t took = b.run(false);
    tap.ok(took <= 2 * kBeats + 7 + kSubs, "latency of one block: " + std::to_string(took));
    return tap.done();
}
