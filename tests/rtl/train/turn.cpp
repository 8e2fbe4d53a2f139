// SPDX-License-Identifier: Apache-2.0
// mr_turn against mr_mxint8_quantise of each column: sets of 1 to 32 rows, random stalls on both
// sides; then the promised rate and latency.
#include "Vdut.h"

#include "bench.h"
#include "blocks.h"

#include <deque>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int V = 4;
#else
constexpr int V = 32;
#endif
constexpr int kRows = 32;

struct Row {
    uint32_t word[V];
    bool last;
    uint32_t tag;
};

struct Set {
    int8_t q[V][kRows];
    uint8_t code[V];
    uint32_t tag;
};

class Bench
{
  public:
    Bench(bench::Args &args, bench::Tap &tap)
        : dut_(args), tap_(tap), rng_(args.seed), in_(rng_, "in_valid"), out_(rng_, "out_ready")
    {
        dut_->in_valid_i = 0;
        dut_->out_ready_i = 0;
        dut_.reset();
    }

    // in_last_i stands with the last row of a short set, and may stand with the 32nd.
    void queue(int rows)
    {
        Set set{};
        bench::Block column[V];
        for (int c = 0; c < V; c++) {
            column[c] = bench::random_block(rng_);
            for (int i = rows; i < kRows; i++)
                column[c].v[i] = 0;
            set.code[c] = mr_mxint8_quantise(column[c].v, set.q[c]);
            nan_ += set.code[c] == 255;
        }
        for (int i = 0; i < rows; i++) {
            Row r{};
            for (int c = 0; c < V; c++)
                r.word[c] = mr_bits(column[c].v[i]);
            r.last = i + 1 == rows && (rows < kRows || rng_.chance(50));
            r.tag = rng_.u32() & 0xFFFFF;
            set.tag = r.tag;
            rows_.push_back(r);
        }
        want_.push_back(set);
    }

    // Until all has come out; the cycles that took, from the first row that is taken on.
    uint64_t run(bool stalls)
    {
        stalls ? in_.random() : in_.density(100);
        stalls ? out_.random() : out_.density(100);
        uint64_t start = dut_.cycles(), limit = start + 4000 + 200 * want_.size();
        while (!want_.empty() && dut_.cycles() < limit)
            cycle();
        uint64_t took = dut_.cycles() - start;
        for (int i = 0; i < 100; i++)
            cycle();
        if (!want_.empty() || !rows_.empty()) {
            tap_.note("%zu sets missing, %zu rows not taken", want_.size(), rows_.size());
            bad_++;
        }
        return took;
    }

    bool covered() { return in_.covered(tap_) & out_.covered(tap_); }
    long bad_ = 0, sets_ = 0, nan_ = 0, held_ = 0;

  private:
    void cycle()
    {
        bool go = !rows_.empty() && (offered_ || in_.want());
        for (int c = 0; c < V; c++) // nothing may depend on a row that is not there
            bench::set(dut_->in_data_i, 32 * c, 32, go ? rows_.front().word[c] : rng_.u32());
        dut_->in_valid_i = go;
        dut_->in_last_i = go ? rows_.front().last : rng_.chance(50);
        dut_->in_tag_i = go ? rows_.front().tag : rng_.u32() & 0xFFFFF;
        dut_->out_ready_i = out_.want();
        dut_.settle();
        in_.saw(dut_->in_ready_o);
        out_.saw(dut_->out_valid_o);
        held_ += go && !dut_->in_ready_o;
        if (go && dut_->in_ready_o)
            rows_.pop_front();
        offered_ = go && !dut_->in_ready_o;
        if (dut_->out_valid_o)
            check(dut_->out_ready_i);
        dut_.edge();
    }

    void check(bool taken)
    {
        if (want_.empty()) {
            bad_++;
            return;
        }
        const Set &w = want_.front();
        bool good = dut_->out_tag_o == w.tag;
        for (int c = 0; c < V; c++) {
            good &= bench::get(dut_->out_code_o, 8 * c, 8) == w.code[c];
            for (int i = 0; i < kRows; i++)
                good &= static_cast<int8_t>(bench::get(dut_->out_data_o, 256 * c + 8 * i, 8)) == w.q[c][i];
        }
        if (!good && bad_++ < 5)
            tap_.note("set %ld is wrong", sets_);
        if (taken) {
            want_.pop_front();
            sets_++;
        }
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    bench::Stall in_, out_;
    std::deque<Row> rows_;
    std::deque<Set> want_;
    bool offered_ = false;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Rng rng(args.seed ^ 0x7472);
    Bench b(args, tap);
    for (int k = 0, n = args.cases_or(30); k < n; k++) {
        for (int i = 0; i < 20; i++)
            b.queue(rng.chance(60) ? kRows : static_cast<int>(rng.range(1, kRows)));
        b.run(true);
    }
    tap.ok(b.bad_ == 0 && b.sets_ > 0 && b.nan_ > 0, "turn: blocks, codes and tags");
    tap.note("%ld sets of %d columns, %ld with a code of 255", b.sets_, V, b.nan_);
    tap.ok(b.covered(), "turn: both ports stalled");

    constexpr int kSets = 50;
    for (int i = 0; i < kSets; i++)
        b.queue(kRows);
    b.held_ = 0;
    uint64_t took = b.run(false);
    tap.note("%d sets of 32 rows in %llu cycles, %ld rows held up", kSets, static_cast<unsigned long long>(took), b.held_);
    tap.ok(took == kRows * kSets + 36 && b.held_ == 0 && b.bad_ == 0, "turn: a row a cycle");
    for (int i = 0; i < kSets; i++)
        b.queue(1);
    took = b.run(false);
    tap.note("%d sets of one row in %llu cycles", kSets, static_cast<unsigned long long>(took));
    tap.ok(took == kRows * kSets + 5 && b.bad_ == 0, "turn: a short set takes as long as a whole one");
    return tap.done();
}
