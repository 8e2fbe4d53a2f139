// SPDX-License-Identifier: Apache-2.0
// mr_layernorm against mr_layernorm of the C model: rows of every kind, all lengths, logit rows, two
// passes, what is kept; stalls of the quantiser and of the acknowledgements; then cycles without stalls. RAM data
// are garbage in every cycle but the promised one.
#include "Vdut.h"
#include "bench.h"
#include "rows.h"

#include <cmath>
#include <deque>
#include <vector>

extern "C" {
#include "cmodel/num.h"
}

namespace {

#if defined(VARIANT_v4)
constexpr int kV = 4, kT = 8, kDMax = 256, kVecWords = 64, kCases = 1000;
#elif defined(VARIANT_v16)
constexpr int kV = 16, kT = 5, kDMax = 320, kVecWords = 20, kCases = 1000;
#elif defined(VARIANT_v64)
constexpr int kV = 64, kT = 4, kDMax = 512, kVecWords = 16, kCases = 1000;
#else
constexpr int kV = 8, kT = 2, kDMax = 16384, kVecWords = 2048, kCases = 150;
#endif
constexpr int kRow = kDMax / kV;
constexpr int kSubs = kV > 32 ? kV / 32 : 1;

struct Beat {
    uint32_t word[kV];
    uint64_t tag;
    bool block_end;
};

struct Command {
    int d = 64, n = 64, rows = 1, dst_base = 0, dst_slot = 0;
    bool logit_rows = false, two_pass = false, keep = false;
    bool foreign = false; // not zeros behind the n floats that count
    float eps = 1e-5f;
    uint64_t logit = 0;
};

class Bench {
  public:
    Bench(bench::Args &args, bench::Tap &tap)
        : dut_(args), tap_(tap), rng_(args.seed), q_(rng_, "q_ready"), ack_(rng_, "wr_ack")
    {
        x_.resize(kT * kDMax);
        gain_.resize(kDMax);
        bias_.resize(kDMax);
        rexp_.resize(kT);
        dut_->cmd_valid_i = 0;
        dut_->q_ready_i = 0;
        dut_->wr_ack_i = 0;
        dut_.reset();
    }

    // Fills the memories and the list of beats to come.
    void prepare(const Command &c, int kind = -1)
    {
        for (int i = 0; i < kDMax; i++) {
            bool live = i < c.n || c.foreign;
            gain_[i] = live ? static_cast<float>(rng_.unit() * 4 - 2) : 0.0f;
            bias_[i] = live ? static_cast<float>(rng_.unit() * 2 - 1) : 0.0f;
        }
        int slot = 0;
        struct mr_ln_const lc = mr_ln_consts(c.n, c.eps);
        std::vector<float> y(kDMax);
        for (int t = 0; t < kT; t++) {
            int k = kind >= 0 ? kind : static_cast<int>(rng_.range(0, 9));
            int base = static_cast<int>(rng_.chance(60)   ? rng_.range(110, 140)
                                        : rng_.chance(50) ? rng_.range(1, 254)
                                        : rng_.chance(50) ? rng_.range(1, 30)
                                                          : rng_.range(230, 254));
            float *x = &x_[t * kDMax];
            for (int i = 0; i < kDMax; i++)
                x[i] = i < c.n || c.foreign ? bench::random_value(rng_, k, base) : 0.0f;
            if (k == 9 && (kind == 9 || rng_.chance(50))) {
                static const uint32_t kBad[] = {0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001};
                x[rng_.range(0, c.n - 1)] = mr_float(kBad[rng_.range(0, 3)]);
            }
            unsigned top = 0;
            for (int i = 0; i < c.d; i++)
                top = mr_expo(x[i]) > top ? mr_expo(x[i]) : top;
            rexp_[t] = static_cast<uint8_t>(top);
            if (t >= c.rows || (c.logit_rows && !((c.logit >> t) & 1)))
                continue;
            nan_rows_ += top == 255;
            zero_rows_ += top == 0;
            rows_++;
            mr_layernorm(&lc, x, gain_.data(), bias_.data(), c.d, y.data());
            for (int i = 0; i < c.d; i += kV) {
                Beat b;
                for (int l = 0; l < kV; l++)
                    b.word[l] = mr_bits(y[i + l]);
                uint64_t block = static_cast<uint64_t>(i) / 32;
                uint64_t row = static_cast<uint64_t>(c.two_pass ? 2 * slot : slot);
                b.tag = row << 19 | ((static_cast<uint64_t>(c.dst_base) + block) & 0xFFFF) << 3 |
                        static_cast<uint64_t>(c.dst_slot) << 1 | (block == 0);
                b.block_end = (i + kV) % 32 == 0;
                want_.push_back(b);
                if (c.keep)
                    kept_.emplace_back(t * kRow + i / kV, b);
            }
            slot++;
        }
    }

    // Runs the command; cycles from its handshake to done.
    uint64_t run(const Command &c, bool stalls)
    {
        cmd_ = c;
        if (stalls) {
            q_.random();
            ack_.random();
        } else {
            q_.density(100);
            ack_.density(100);
        }
        struct mr_ln_const lc = mr_ln_consts(c.n, c.eps);
        while (stalls && rng_.chance(70))
            cycle();
        dut_->cmd_valid_i = 1;
        dut_->cmd_dst_base_i = static_cast<uint16_t>(c.dst_base);
        dut_->cmd_dblocks_i = static_cast<uint16_t>(c.d / 32);
        dut_->cmd_n_i = static_cast<uint16_t>(c.n);
        dut_->cmd_dst_slot_i = static_cast<uint8_t>(c.dst_slot);
        dut_->cmd_logit_rows_i = c.logit_rows;
        dut_->cmd_keep_i = c.keep;
        dut_->cmd_inv_n_i = mr_bits(lc.inv_n);
        dut_->cmd_inv_n2_i = mr_bits(lc.inv_n2);
        dut_->cmd_eps_i = mr_bits(lc.eps);
        dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
        dut_->cmd_two_pass_i = c.two_pass;
        bench::set(dut_->row_logit_i, 0, kT, c.logit);
        cycle();
        dut_->cmd_valid_i = 0;
        dut_->cmd_n_i = 0;
        dut_->cmd_eps_i = rng_.u32();
        dut_->cmd_inv_n_i = rng_.u32();
        dut_->cmd_inv_n2_i = rng_.u32();
        dut_->cmd_dblocks_i = static_cast<uint16_t>(rng_.u32());
        dut_->cmd_rows_i = static_cast<uint16_t>(rng_.u32());
        dut_->cmd_two_pass_i = !c.two_pass;
        dut_->cmd_logit_rows_i = !c.logit_rows;
        dut_->cmd_keep_i = !c.keep;
        uint64_t start = dut_.cycles(), limit = start + 40000 + 100 * want_.size();
        done_ = 0;
        while (!done_ && dut_.cycles() < limit)
            cycle();
        uint64_t took = dut_.cycles() - start;
        if (done_ != 1 || !want_.empty() || !kept_.empty() || acks_ != 0) {
            if (bad_++ < 5)
                tap_.note("done %d, %zu beats, %zu to keep and %d acknowledgements left", done_,
                          want_.size(), kept_.size(), acks_);
        }
        want_.clear();
        kept_.clear();
        acks_ = 0;
        return took;
    }

    long bad_ = 0, nan_rows_ = 0, zero_rows_ = 0, rows_ = 0, beats_ = 0, nans_ = 0, kept_beats_ = 0;
    bool covered() { return q_.covered(tap_) & ack_.covered(tap_); }

  private:
    void cycle()
    {
        dut_->q_ready_i = q_.want();
        dut_->phase_i = dut_.cycles() & 1;
        bool ack = ack_.want() && acks_ > 0;
        dut_->wr_ack_i = ack;
        ack_.saw(acks_ > 0);
        dut_.settle();
        q_.saw(dut_->q_valid_o);
        if (ack)
            acks_--;
        if (dut_->keep_we_o)
            check_kept();
        if (dut_->q_valid_o && check(dut_->q_ready_i))
            acks_ += kSubs * (cmd_.two_pass ? 2 : 1);
        if (dut_->done_o) {
            done_++;
            if ((acks_ != 0 || !kept_.empty()) && bad_++ < 5)
                tap_.note("done before the last acknowledgement, or the last beat to keep");
        }
        nans_ += dut_->nan_o;
        if (dut_->cmd_valid_i && !dut_->cmd_ready_o && bad_++ < 5)
            tap_.note("not ready for a command");

        // RAM ports.
        bool rexp = dut_->rexp_ren_o, res = dut_->res_ren_o, vec = dut_->vec_ren_o;
        uint64_t rexp_a = dut_->rexp_raddr_o, res_a = dut_->res_raddr_o, vec_a = dut_->vec_raddr_o;
        dut_.edge();
        dut_->rexp_rdata_i =
            rexp ? rexp_[rexp_a % kT] : static_cast<uint8_t>(rng_.u32());
        for (int l = 0; l < kV; l++) {
            bench::set(dut_->res_rdata_i, 32 * l, 32,
                       res ? mr_bits(x_[res_a % (kT * kRow) * kV + static_cast<uint64_t>(l)])
                           : rng_.u32());
            uint32_t v = rng_.u32();
            if (vec1_) {
                std::size_t w = vec1_a_ % kVecWords * kV + static_cast<std::size_t>(l);
                v = mr_bits(vec1_a_ >= kVecWords ? bias_[w] : gain_[w]);
            }
            bench::set(dut_->vec_rdata_i, 32 * l, 32, v);
        }
        vec1_ = vec;
        vec1_a_ = vec_a;
    }

    void check_kept()
    {
        int at = static_cast<int>(dut_->keep_waddr_o), word = at % kRow;
        bool good = !kept_.empty() && at == kept_.front().first && dut_->keep_tok_o == at / kRow &&
                    dut_->keep_first_o == (word == 0) && dut_->keep_last_o == (word + 1 == cmd_.d / kV);
        for (int l = 0; good && l < kV; l++)
            good = bench::get(dut_->q_data_o, 32 * l, 32) == kept_.front().second.word[l];
        if (!good && bad_++ < 5)
            tap_.note("kept at %d: not what was wanted", static_cast<int>(dut_->keep_waddr_o));
        if (!kept_.empty())
            kept_.pop_front();
        kept_beats_++;
    }

    // True if a block has now been handed over.
    bool check(bool taken)
    {
        if (want_.empty()) {
            if (bad_++ < 5)
                tap_.note("a beat too many");
            return false;
        }
        const Beat &w = want_.front();
        uint64_t tag = bench::get(dut_->q_tag_o, 0, 35);
        bool good = tag == w.tag && dut_->q_two_pass_o == cmd_.two_pass;
        for (int l = 0; l < kV; l++) {
            uint32_t got = static_cast<uint32_t>(bench::get(dut_->q_data_o, 32 * l, 32));
            if (got != w.word[l] && good) {
                good = false;
                if (bad_ < 5)
                    tap_.note("lane %d: got %08x, want %08x (D %d, n %d)", l, got, w.word[l], cmd_.d,
                              cmd_.n);
            }
        }
        if (!good && bad_++ < 5)
            tap_.note("beat %ld: tag %09llx, want %09llx", beats_,
                      static_cast<unsigned long long>(tag), static_cast<unsigned long long>(w.tag));
        bool end = w.block_end;
        if (taken) {
            want_.pop_front();
            beats_++;
        }
        return taken && end;
    }

    bench::Dut<Vdut> dut_;
    bench::Tap &tap_;
    bench::Rng rng_;
    bench::Stall q_, ack_;
    std::vector<float> x_, gain_, bias_;
    std::vector<uint8_t> rexp_;
    std::deque<Beat> want_;
    std::deque<std::pair<int, Beat>> kept_; // by place
    Command cmd_;
    bool vec1_ = false;
    uint64_t vec1_a_ = 0;
    int acks_ = 0, done_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    Bench b(args, tap);
    bench::Rng r(args.seed + 1);
    int cases = args.cases_or(kCases);

    for (int k = 0; k < cases; k++) {
        Command c;
        c.d = 64 * static_cast<int>(r.range(1, kDMax / 64));
        if (kDMax > 1024 && r.chance(50))
            c.d = kDMax;
        c.n = c.d - (r.chance(50) ? 0 : static_cast<int>(r.range(0, 63)));
        c.foreign = r.chance(20);
        c.rows = static_cast<int>(r.range(1, kT));
        c.dst_base = static_cast<int>(r.range(0, 4095));
        c.dst_slot = static_cast<int>(r.range(0, 3));
        c.logit_rows = r.chance(40);
        c.two_pass = r.chance(40);
        c.logit = r.chance(15) ? 0 : r.u64() & ((1u << kT) - 1);
        c.eps = r.chance(10) ? 0.0f : r.chance(50) ? 1e-5f : 1e-12f;
        // However few the cases are (a netlist simulates some thousand times slower).
        if (k < 2)
            c.logit_rows = false;
        c.keep = !c.logit_rows && (k == 0 || r.chance(50));
        b.prepare(c, k == 0 ? 0 : k == 1 ? 9 : -1);
        b.run(c, true);
    }
    tap.ok(b.bad_ == 0 && b.beats_ > 0, std::to_string(b.rows_) + " rows, " +
                                            std::to_string(b.beats_) + " beats as the C model");
    tap.ok(b.zero_rows_ != 0 && b.nan_rows_ != 0 && b.nans_ == b.nan_rows_,
           "zero rows and NaN rows among them, NaN reported");
    tap.ok(b.kept_beats_ != 0, std::to_string(b.kept_beats_) + " beats kept");
    tap.ok(b.covered(), "quantiser and acknowledgements held it up");

    // Largest sums.
    Command c;
    c.d = c.n = kDMax;
    c.rows = kT;
    long bad = b.bad_;
    for (int kind : {5, 1, 5}) {
        b.prepare(c, kind);
        b.run(c, true);
    }
    tap.ok(b.bad_ == bad, "longest rows of one sign");

    // The variance's sign, with something behind the floats that count.
    Command foreign = c;
    foreign.foreign = true;
    bad = b.bad_;
    for (int n : {1, 16, kDMax / 2}) {
        foreign.n = n;
        for (int kind : {5, 1, 6}) {
            b.prepare(foreign, kind);
            b.run(foreign, true);
        }
    }
    tap.ok(b.bad_ == bad, "padding that is not zero");

    // Cycles without stalls.
    c.rows = 1;
    b.prepare(c, 6);
    uint64_t one = b.run(c, false);
    c.rows = kT;
    b.prepare(c, 6);
    uint64_t all = b.run(c, false);
    tap.note("D/V %d: one token %llu cycles, %d tokens %llu", kRow,
             static_cast<unsigned long long>(one), kT, static_cast<unsigned long long>(all));
    tap.ok(one <= 3 * kRow + 75 && all <= one + static_cast<uint64_t>(kT - 1) * (2 * kRow + 80) &&
               b.bad_ == bad,
           "cycles");
    return tap.done();
}
