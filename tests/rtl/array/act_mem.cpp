// SPDX-License-Identifier: Apache-2.0
// mr_act_mem against a plain model: random writes of both ports (first and later blocks of rows,
// maxima that are given, second pass blocks behind their first pass), reads of both read ports at the
// same time, held read data. Port b is the only one that can be stalled: a_ready_o is constantly 1
// (checked in every cycle), the read ports have no handshake: fixed latency.
#include "Vdut.h"

#include "bench.h"

#include <array>
#include <deque>
#include <map>
#include <vector>

namespace
{

#if defined(VARIANT_r1)
constexpr int R = 1, T = 8, W = 16;
#elif defined(VARIANT_r4)
constexpr int R = 4, T = 16, W = 16;
#else
constexpr int R = 8, T = 8, W = 32;
#endif

struct Block {
    std::array<uint8_t, 33> b{}; // 32 elements, code
};

struct Write {
    int slot, word, region;
    bool first, lo;
    Block data;
    int set = -1; // the maximum, whatever the codes
};

// What a writer sends: rows in turn, so that the blocks of several rows mix, each with its second pass.
class Writer
{
  public:
    Writer(bench::Rng &rng, int region0, int word0) : rng_(rng), region0_(region0), word0_(word0) {}

    Write next()
    {
        if (has_lo_) {
            has_lo_ = false;
            return lo_;
        }
        int row = static_cast<int>(rng_.range(0, T / 2 - 1));
        bool two = rng_.chance(40) || hot_ > 0;
        if (hot_ > 0) { // the same row again and again: forwarding
            hot_--;
            row = hot_row_;
        } else if (rng_.chance(5)) {
            hot_ = static_cast<int>(rng_.range(1, 10));
            hot_row_ = row;
        }
        Write w;
        w.slot = two ? 2 * row : static_cast<int>(rng_.range(0, T - 1));
        w.region = region0_ + static_cast<int>(rng_.range(0, 1));
        w.word = word0_ + static_cast<int>(rng_.range(0, W / 2 - 1));
        w.first = !started_[w.region][w.slot] || rng_.chance(15);
        w.lo = false;
        w.data = block();
        if (region0_ == 2 && rng_.chance(20))
            w.set = static_cast<int>(rng_.range(0, 255));
        started_[w.region][w.slot] = true;
        if (two) {
            lo_ = w;
            lo_.slot++;
            lo_.lo = true;
            lo_.set = -1;
            lo_.data = block();
            has_lo_ = true;
            started_[w.region][w.slot + 1] = true;
        }
        return w;
    }

  private:
    Block block()
    {
        Block k;
        for (auto &x : k.b)
            x = static_cast<uint8_t>(rng_.u32());
        static const uint8_t edge[] = {0, 1, 127, 254, 255};
        if (rng_.chance(20))
            k.b[32] = edge[rng_.range(0, 4)];
        else if (rng_.chance(70))
            k.b[32] = static_cast<uint8_t>(rng_.range(100, 140));
        return k;
    }

    bench::Rng &rng_;
    int region0_, word0_;
    bool started_[4][T] = {};
    Write lo_{};
    bool has_lo_ = false;
    int hot_ = 0, hot_row_ = 0;
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap) : dut_(dut), rng_(rng), tap_(tap)
    {
    }

    // Cycles with the two writers at the given densities (-1: random runs).
    bool run(int cycles, int da, int db)
    {
        Writer wa(rng_, 0, 0), wb(rng_, 2, W / 2);
        bench::Stall va(rng_, "a_valid"), vb(rng_, "b_valid");
        if (da >= 0)
            va.density(da);
        if (db >= 0)
            vb.density(db);
        Write a{}, b{};
        bool has_a = false, has_b = false;
        for (int i = 0; i < cycles; i++) {
            if (!has_a && va.want()) {
                a = wa.next();
                has_a = true;
            }
            if (!has_b && vb.want()) {
                b = wb.next();
                has_b = true;
            }
            dut_->a_valid_i = has_a;
            dut_->b_valid_i = has_b;
            if (has_a) {
                dut_->a_slot_i = static_cast<uint16_t>(a.slot);
                dut_->a_word_i = static_cast<uint16_t>(a.word);
                dut_->a_region_i = static_cast<uint8_t>(a.region);
                dut_->a_first_i = a.first;
                dut_->a_lo_i = a.lo;
                put(dut_->a_data_i, a.data);
            }
            if (has_b) {
                dut_->b_slot_i = static_cast<uint16_t>(b.slot);
                dut_->b_word_i = static_cast<uint16_t>(b.word);
                dut_->b_region_i = static_cast<uint8_t>(b.region);
                dut_->b_first_i = b.first;
                dut_->b_lo_i = b.lo;
                put(dut_->b_data_i, b.data);
                dut_->b_set_i = b.set >= 0;
                dut_->b_max_i = static_cast<uint8_t>(b.set >= 0 ? b.set : static_cast<int>(rng_.u32() & 255));
            }
            // Reads.
            unsigned ren = rng_.chance(70) ? rng_.u32() & ((1u << R) - 1) : 0;
            int group = static_cast<int>(rng_.range(0, T / R - 1));
            int word = static_cast<int>(rng_.range(0, W - 1));
            for (int r = 0; r < R; r++) // a semaphore stands between who writes and who reads
                ren &= ~(pending(group * R + r, word, -1) ? 1u << r : 0u);
            int mgroup = static_cast<int>(rng_.range(0, T / R - 1));
            int mregion = static_cast<int>(rng_.range(0, 3));
            bool mren = rng_.chance(70);
            bench::set(dut_->act_ren_i, 0, R, ren);
            bench::set(dut_->act_raddr_i, 0, 32, static_cast<uint64_t>(group * W + word));
            dut_->rmax_ren_i = mren;
            bench::set(dut_->rmax_raddr_i, 0, 32, static_cast<uint64_t>(mregion * (T / R) + mgroup));
            dut_.settle();
            bool took_a = has_a && dut_->a_ready_o, took_b = has_b && dut_->b_ready_o;
            if (!dut_->a_ready_o || dut_->b_ready_o == dut_->a_valid_i) {
                tap_.note("ready: a must always be, b unless a writes");
                return false;
            }
            b_stalls_ += has_b && !took_b;
            dut_.edge();
            cycle_++;
            // Model: a write accepted in cycle t is certain from t+3 on, uncertain before.
            apply();
            for (int r = 0; r < R; r++) {
                if ((ren >> r) & 1u) {
                    int slot = group * R + r;
                    act_known_[r] = valid_[slot][word] && !pending(slot, word, -1);
                    act_[r] = mem_[slot][word];
                }
                if (mren) {
                    int slot = mgroup * R + r;
                    max_known_[r] = max_valid_[mregion][slot] && !pending(slot, -1, mregion);
                    max_[r] = rmax_[mregion][slot];
                }
            }
            if (took_a)
                flight_.push_back({cycle_, a});
            if (took_b)
                flight_.push_back({cycle_, b});
            has_a &= !took_a;
            has_b &= !took_b;
            dut_.settle();
            if (!compare())
                return false;
        }
        dut_->a_valid_i = dut_->b_valid_i = 0;
        for (int i = 0; i < 4; i++) {
            dut_->act_ren_i = 0;
            dut_->rmax_ren_i = 0;
            dut_.tick();
            cycle_++;
            apply();
        }
        return true;
    }

    // Every word and every maximum that was ever written.
    bool read_all()
    {
        for (int g = 0; g < T / R; g++) {
            for (int w = 0; w < W; w++) {
                bench::set(dut_->act_ren_i, 0, R, (1u << R) - 1);
                bench::set(dut_->act_raddr_i, 0, 32, static_cast<uint64_t>(g * W + w));
                dut_->rmax_ren_i = w < 4;
                bench::set(dut_->rmax_raddr_i, 0, 32, static_cast<uint64_t>((w & 3) * (T / R) + g));
                dut_.tick();
                for (int r = 0; r < R; r++) {
                    act_known_[r] = valid_[g * R + r][w];
                    act_[r] = mem_[g * R + r][w];
                    if (w < 4) {
                        max_known_[r] = max_valid_[w][g * R + r];
                        max_[r] = rmax_[w][g * R + r];
                    }
                }
                dut_.settle();
                if (!compare())
                    return false;
            }
        }
        return true;
    }

    uint64_t b_stalls() const { return b_stalls_; }
    uint64_t compared() const { return compared_; }

  private:
    template <class P> static void put(P &port, const Block &k)
    {
        for (int i = 0; i < 33; i++)
            bench::set(port, 8 * i, 8, k.b[static_cast<size_t>(i)]);
    }
    bool pending(int slot, int word, int region) const
    {
        for (const auto &f : flight_) {
            if (f.second.slot == slot && (word < 0 || f.second.word == word) &&
                (region < 0 || f.second.region == region))
                return true;
        }
        return false;
    }
    void apply()
    {
        while (!flight_.empty() && flight_.front().first + 3 <= cycle_) {
            const Write &w = flight_.front().second;
            mem_[w.slot][w.word] = w.data;
            valid_[w.slot][w.word] = true;
            uint8_t code = w.data.b[32], &m = rmax_[w.region][w.slot];
            if (w.lo)
                m = rmax_[w.region][w.slot - 1];
            else if (w.set >= 0)
                m = static_cast<uint8_t>(w.set);
            else if (w.first || code > m)
                m = code;
            max_valid_[w.region][w.slot] = true;
            flight_.pop_front();
        }
    }
    bool compare()
    {
        for (int r = 0; r < R; r++) {
            for (int i = 0; act_known_[r] && i < 33; i++) {
                auto got = static_cast<uint8_t>(i < 32 ? bench::get(dut_->act_rdata_o, 256 * r + 8 * i, 8)
                                                       : bench::get(dut_->act_rcode_o, 8 * r, 8));
                if (got != act_[r].b[static_cast<size_t>(i)]) {
                    tap_.note("cycle %llu bank %d byte %d: got %02x want %02x",
                              static_cast<unsigned long long>(cycle_), r, i, got,
                              act_[r].b[static_cast<size_t>(i)]);
                    return false;
                }
            }
            if (max_known_[r]) {
                auto got = static_cast<uint8_t>(bench::get(dut_->rmax_rdata_o, 8 * r, 8));
                if (got != max_[r]) {
                    tap_.note("cycle %llu bank %d maximum: got %u want %u",
                              static_cast<unsigned long long>(cycle_), r, got, max_[r]);
                    return false;
                }
            }
            compared_ += act_known_[r];
        }
        return true;
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    uint64_t cycle_ = 0, b_stalls_ = 0, compared_ = 0;
    std::deque<std::pair<uint64_t, Write>> flight_;
    Block mem_[T][W];
    bool valid_[T][W] = {};
    uint8_t rmax_[4][T] = {};
    bool max_valid_[4][T] = {};
    // Last read of each port and whether its result is certain.
    Block act_[R];
    uint8_t max_[R] = {};
    bool act_known_[R] = {}, max_known_[R] = {};
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Rng rng(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    dut->a_valid_i = dut->b_valid_i = 0;
    dut->rmax_ren_i = 0;
    bench::set(dut->act_ren_i, 0, R, 0);
    dut.reset();
    Bench b(dut, rng, tap);
    int n = args.cases_or(8000);
    tap.ok(b.run(n, 100, 0), "act_mem: port a alone, every cycle");
    tap.ok(b.run(n, 0, 100), "act_mem: port b alone, every cycle");
    tap.ok(b.run(n, 50, 100), "act_mem: both ports");
    tap.ok(b.run(n, -1, -1), "act_mem: both ports, random runs");
    tap.ok(b.read_all(), "act_mem: everything read back");
    tap.note("stalls a_ready: none, always ready; read ports: no handshake, fixed latency");
    tap.note("stalls b_ready %llu", static_cast<unsigned long long>(b.b_stalls()));
    tap.ok(b.b_stalls() > 0 && b.compared() > 0, "act_mem: port b was held up and data compared");
    return tap.done();
}
