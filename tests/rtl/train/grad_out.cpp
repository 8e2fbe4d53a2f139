// SPDX-License-Identifier: Apache-2.0
// mr_grad_out against the C model's end of a sum (mr_grad_end): random commands, sums around the limit
// and both ends of 32 bits, flags, records begun and added to. The array, the reader and the writer are
// modelled here and stall at random. Each beat of the window is written once, done comes after the last
// acknowledgement, and an array that gives a beat every other cycle hardly waits.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/backward.h"
}

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1, T = 96;
#elif defined(VARIANT_n8)
constexpr int N = 8, T = 32;
#else
constexpr int N = 16, T = 64;
#endif
constexpr int V = 4 * N;
constexpr uint64_t kBase = 0x7FFFFFC000ull; // crosses 32 bits inside the window

using Beat = std::array<uint32_t, 16>;

struct Command {
    int rows, cols;
    uint32_t limit, off, record;
    bool begin;
};

struct Job {
    uint64_t beat;
    int beats;
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : dut_(dut), rng_(rng), tap_(tap), dr_(rng, "dr_valid"), data_(rng, "data_ready")
    {
    }

    // Every `pace` cycles a beat, without stalls elsewhere; 0: random.
    bool run(const Command &c, int pace)
    {
        expect(c);
        pace ? dr_.density(100) : dr_.random();
        pace ? data_.density(100) : data_.random();
        written_.clear();
        waits_ = 0;
        size_t next = 0;
        bool offered = false, started = false, done = false, asked = false;
        int since = 0, answer = -1, left = 0;
        uint64_t at = 0;
        std::deque<int> acks;
        dut_->base_i = kBase;
        for (long cycle = 0; !done && cycle < 2000000; cycle++) {
            dut_->cmd_valid_i = !started;
            dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
            dut_->cmd_cols_i = static_cast<uint32_t>(c.cols);
            dut_->cmd_limit_i = c.limit;
            dut_->cmd_off_i = c.off;
            dut_->cmd_record_i = c.record;
            dut_->cmd_begin_i = c.begin;
            since++;
            if (!offered && next < sums_.size() / V)
                offered = started && since >= pace && dr_.want();
            offer(next, offered);
            dut_->rd_ready_i = rng_.chance(50);
            dut_->rd_data_valid_i = answer == 0;
            for (int i = 0; i < 16; i++)
                dut_->rd_data_i[static_cast<size_t>(i)] = answer == 0 ? old_[static_cast<size_t>(i)] : rng_.u32();
            dut_->job_ready_i = left == 0 && (pace || rng_.chance(50));
            dut_->data_ready_i = left != 0 && data_.want();
            dut_->job_done_i = !acks.empty() && acks.front() <= 0;
            dut_.settle();

            if (answer >= 0)
                answer--;
            if (dut_->rd_valid_o && dut_->rd_ready_i) {
                if (asked || c.begin || dut_->rd_addr_o != kBase + 64ull * c.record || dut_->rd_beats_o != 1)
                    return fail("a wrong read");
                asked = true;
                answer = static_cast<int>(rng_.range(0, 20));
            }
            for (auto &a : acks)
                a--;
            if (dut_->job_done_i)
                acks.pop_front();
            if (left && dut_->data_valid_o)
                data_.saw(true);
            if (left && dut_->data_valid_o && dut_->data_ready_i) {
                Beat b;
                for (size_t i = 0; i < 16; i++)
                    b[i] = dut_->data_o[i];
                if (!written_.emplace(at++, b).second)
                    return fail("a beat is written twice");
                if (--left == 0)
                    acks.push_back(static_cast<int>(rng_.range(0, pace ? 30 : 400)));
            }
            if (dut_->job_valid_o && dut_->job_ready_i) {
                at = (dut_->job_addr_o - kBase) / 64;
                left = dut_->job_beats_o;
                if (dut_->job_strb_o != ~0ull || dut_->job_addr_o % 64)
                    return fail("a job of parts of beats");
            }
            if (dut_->cmd_valid_i && dut_->cmd_ready_o)
                started = true;
            if (offered && dut_->dr_ready_o) {
                offered = false;
                next++;
                since = 0;
            } else if (offered) {
                waits_++;
            }
            if (dut_->done_o) {
                done = true;
                if (!acks.empty() || left)
                    return fail("done before the acknowledgements");
            }
            dut_.edge();
        }
        if (!done)
            return fail("hangs");
        stalled_ += waits_;
        if (written_ != want_) {
            for (auto &w : want_) {
                auto it = written_.find(w.first);
                for (size_t i = 0; i < 16; i++)
                    if (it == written_.end() || it->second[i] != w.second[i]) {
                        tap_.note("rows %d cols %d: beat %llu word %zu is %08x, want %08x", c.rows, c.cols,
                                  static_cast<unsigned long long>(w.first), i,
                                  it == written_.end() ? 0 : it->second[i], w.second[i]);
                        return false;
                    }
            }
            return fail("more is written than there is");
        }
        return true;
    }

    Command random_command()
    {
        static const int edge[] = {1, 31, 32, 33, T};
        Command c;
        c.rows = static_cast<int>(rng_.chance(50) ? std::min(T, edge[rng_.range(0, 4)]) : rng_.range(1, T));
        c.cols = 64 * static_cast<int>(rng_.range(1, 4));
        c.limit = rng_.chance(70) ? static_cast<uint32_t>(rng_.range(1, INT32_MAX)) : INT32_MAX;
        c.off = static_cast<uint32_t>(rng_.range(1, 1000));
        c.record = rng_.chance(50) ? 0 : c.off + 128 * 4 * T; // before or behind
        c.begin = rng_.chance(50);
        kind_ = static_cast<int>(rng_.range(0, 3));
        return c;
    }
    void kind(int k) { kind_ = k; }
    long waits() const { return waits_; }
    bool covered()
    {
        tap_.note("stalls dr_ready %ld", stalled_);
        for (int f = 0; f < 4; f++)
            tap_.note("records with flags %d: %d", f, flags_[f]);
        return data_.covered(tap_) && stalled_ && flags_[0] && flags_[1] && flags_[2] && flags_[3];
    }

  private:
    bool fail(const char *why)
    {
        tap_.note("%s", why);
        return false;
    }

    int64_t sum(uint32_t limit)
    {
        static const int64_t edge[] = {0, 1, INT32_MAX, 1ll << 31, UINT32_MAX, 1ll << 32, (1ll << 47) - 1};
        int64_t x;
        if (kind_ == 0) // never above the limit, which is not too large itself
            x = rng_.chance(10) ? limit : rng_.range(0, limit);
        else if (kind_ == 1)
            x = limit + rng_.range(-1, 1);
        else if (kind_ == 2)
            x = edge[rng_.range(0, 6)];
        else
            x = static_cast<int64_t>(rng_.u64() >> rng_.range(17, 63));
        return rng_.chance(50) ? -x : x;
    }

    void expect(const Command &c)
    {
        size_t count = static_cast<size_t>(c.rows) * static_cast<size_t>(c.cols);
        int bands = (c.rows + 31) / 32, tiles = c.cols / 64;
        unsigned noted = 0, flags = kind_ != 0 ? 3 : rng_.chance(50) ? 2 : 0;
        uint32_t peak = 0;
        sums_.assign(count, 0);
        flags_of_.assign(count / V, 0);
        want_.clear();
        for (int b = 0; b < bands * tiles * 128; b++)
            want_[c.off + static_cast<uint64_t>(b)] = Beat{};
        for (int g = 0; g < c.cols / V; g++)
            for (int r = 0; r < c.rows; r++) {
                size_t at = static_cast<size_t>(g * c.rows + r);
                unsigned f = rng_.chance(1) ? static_cast<unsigned>(rng_.range(0, 3)) & flags : 0;
                if (flags == 2 && g == 0 && r == 0) // NaN alone is not left to luck
                    f = 2;
                flags_of_[at] = f;
                noted |= f;
                for (int l = 0; l < V; l++) {
                    struct mr_grad_sum s = {sum(c.limit), 0};
                    sums_[at * V + static_cast<size_t>(l)] = s.acc;
                    int32_t x = mr_grad_end(&s, c.limit, &peak);
                    noted |= s.flags;
                    int col = g * V + l;
                    uint64_t beat = c.off + static_cast<uint64_t>((r / 32 * tiles + col / 64) * 128 +
                                                                  r % 32 * 4 + col % 64 / 16);
                    want_[beat][static_cast<size_t>(col % 16)] = static_cast<uint32_t>(x);
                }
            }
        for (auto &w : old_)
            w = rng_.u32();
        old_[1] >>= rng_.range(0, 31);
        if (kind_ == 0)
            old_[0] &= ~3u;
        Beat record{};
        if (!c.begin) {
            noted |= old_[0] & 3;
            peak = std::max(peak, old_[1]);
        }
        record[0] = noted;
        record[1] = peak;
        flags_[noted]++;
        want_[c.record] = record;
    }

    void offer(size_t next, bool offered)
    {
        dut_->dr_valid_i = offered;
        size_t at = offered ? next : 0;
        for (int l = 0; l < V; l++)
            bench::set(dut_->dr_acc_i, 48 * l, 48,
                       offered ? static_cast<uint64_t>(sums_[at * V + static_cast<size_t>(l)]) : rng_.u64());
        dut_->dr_flags_i = static_cast<uint8_t>(offered ? flags_of_[at] : rng_.range(0, 3));
        dut_->dr_last_i = offered ? at + 1 == flags_of_.size() : rng_.chance(50);
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    bench::Stall dr_, data_;
    std::vector<int64_t> sums_;      // by group, row, lane
    std::vector<unsigned> flags_of_; // by group, row
    std::map<uint64_t, Beat> want_, written_;
    Beat old_{};
    int kind_ = 0, flags_[4] = {};
    long waits_ = 0, stalled_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Rng rng(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    Bench b(dut, rng, tap);
    dut->cmd_valid_i = dut->dr_valid_i = dut->rd_data_valid_i = dut->job_done_i = 0;
    dut.reset();
    bool good = true;
    int n = args.cases_or(60);
    for (int i = 0; i < n && good; i++)
        good = b.run(b.random_command(), 0);
    tap.ok(good, "grad_out: random commands");
    tap.ok(b.covered(), "grad_out: every stall and every record");

    // A beat every other cycle, as from eight k-blocks and four rows. A row is read in four cycles, and
    // the first bands while the last one is made: what remains is waited for.
    Command c{T, 256, INT32_MAX, 16, 0, true};
    b.kind(3);
    good = b.run(c, V < 64 ? 2 : 8);
    tap.note("%ld cycles waited in %d beats", b.waits(), T * 256 / V);
    tap.ok(good && b.waits() <= (256 / 64 - 1) * (V < 64 ? 4 * T - 2 * (T - 32) - 2 * T + 20 : 0),
           "grad_out: rate");
    return tap.done();
}
