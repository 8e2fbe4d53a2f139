// SPDX-License-Identifier: Apache-2.0
// mr_load_act against the C model's places in a matrix of tiles: random parts of random matrices, from
// any column and block on, with a memory and an activation memory that stall. A read of what the part
// does not need, or of more than the buffer holds, is an error; so is a block that comes twice. Then the
// window, and the rate.
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/tiles.h"
}

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1;
#elif defined(VARIANT_n2)
constexpr int N = 2;
#else
constexpr int N = 16;
#endif
constexpr uint64_t kWindow = 1ull << 34; // bytes from one channel's stash to the next one's

struct Command {
    int kblocks, all, base, slot, first, rows, col;
    uint32_t off;
};

struct Block {
    uint8_t b[33], max;
    int region;
    bool operator==(const Block &o) const
    {
        return !memcmp(b, o.b, sizeof b) && max == o.max && region == o.region;
    }
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : dut_(dut), rng_(rng), tap_(tap), read_(rng, "rd_ready"), data_(rng, "rd_data"), act_(rng, "b_ready")
    {
        for (int c = 0; c < N; c++)
            bench::set(dut_->base_i, 64 * c, 64, address(c));
    }

    // limit: size of the windows in beats; the command's own end if 0.
    bool run(const Command &c, bool stalls, uint64_t limit = 0)
    {
        const struct mr_tiles_shape t = {N, c.all};
        uint64_t end = c.off + mr_tiles_beats(&t, (c.col + c.rows + 63) / 64 * 64);
        limit = limit ? limit : end;
        bool bad = end > limit, started = false, done = false, failed = false;
        if (!bad)
            fill(c, t);
        for (auto *s : {&read_, &data_, &act_})
            stalls ? s->random() : s->density(100);
        std::map<std::pair<int, int>, Block> got;
        std::deque<uint64_t> queue; // addresses of beats to come
        int held = 0;               // asked for and not used: at most what the buffer holds
        dut_->limit_i = static_cast<uint32_t>(limit);
        cycles_ = 0;
        for (long cycle = 0; !done && cycle < 200000; cycle++) {
            dut_->cmd_valid_i = !started;
            dut_->cmd_kblocks_i = static_cast<uint16_t>(c.kblocks);
            dut_->cmd_all_kblocks_i = static_cast<uint16_t>(c.all);
            dut_->cmd_dst_base_i = static_cast<uint16_t>(c.base);
            dut_->cmd_dst_slot_i = static_cast<uint8_t>(c.slot);
            dut_->cmd_off_i = c.off;
            dut_->cmd_first_kblock_i = static_cast<uint16_t>(c.first);
            dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
            dut_->cmd_first_col_i = static_cast<uint32_t>(c.col);
            dut_->rd_ready_i = read_.want();
            bool beat = !queue.empty() && data_.want();
            dut_->rd_data_valid_i = beat;
            for (size_t i = 0; i < 16; i++) {
                uint32_t x = rng_.u32();
                if (beat && mem_.count(queue.front() / 64))
                    memcpy(&x, &mem_[queue.front() / 64][4 * i], 4);
                dut_->rd_data_i[i] = x;
            }
            dut_->b_ready_i = act_.want();
            dut_.settle();
            read_.saw(dut_->rd_valid_o);
            act_.saw(dut_->b_valid_o);
            if (dut_->rd_valid_o && dut_->rd_ready_i)
                for (unsigned i = 0; i < dut_->rd_beats_o; i++, held++) {
                    queue.push_back(dut_->rd_addr_o + 64 * i);
                    if (!wanted_.count(queue.back() / 64))
                        return fail("reads beats that it does not need");
                }
            if (held > 64)
                return fail("asks for more than its buffer holds");
            if (beat) {
                queue.pop_front();
                held--; // at the earliest: it may be in the buffer for long
            }
            if (dut_->b_valid_o && dut_->b_ready_i) {
                Block b;
                for (int i = 0; i < 33; i++)
                    b.b[i] = static_cast<uint8_t>(bench::get(dut_->b_data_o, 8 * i, 8));
                b.max = dut_->b_max_o;
                b.region = dut_->b_region_o;
                if (!got.emplace(std::make_pair<int, int>(dut_->b_slot_o, dut_->b_word_o), b).second)
                    return fail("a block comes twice");
            }
            failed |= dut_->err_valid_o != 0;
            if (dut_->err_valid_o && (dut_->err_code_o != 3 || dut_->err_addr_o != address(0) + 64ull * c.off))
                return fail("a wrong error");
            done = dut_->done_o;
            if (dut_->cmd_valid_i && dut_->cmd_ready_o)
                started = true;
            cycles_++;
            dut_.edge();
        }
        if (!done || failed != bad)
            return fail(!done ? "hangs" : bad ? "no error" : "an error");
        return bad ? got.empty() : compare(c, got);
    }

    Command random_command()
    {
        Command c;
        c.all = static_cast<int>(rng_.chance(60) ? rng_.range(1, 20) : rng_.range(1, 70));
        c.kblocks = static_cast<int>(rng_.chance(30) ? c.all : rng_.range(1, c.all));
        c.first = static_cast<int>(rng_.range(0, c.all - c.kblocks));
        c.rows = static_cast<int>(rng_.range(1, rng_.chance(50) ? 8 : 64));
        c.col = static_cast<int>(rng_.chance(50) ? 32 * rng_.range(0, 30) : rng_.range(0, 2000));
        c.base = static_cast<int>(rng_.range(0, 500));
        c.slot = static_cast<int>(rng_.range(0, 3));
        c.off = static_cast<uint32_t>(rng_.chance(20) ? rng_.range(0xF0000000, 0xFFF00000) : rng_.range(0, 9999));
        return c;
    }
    long cycles() const { return cycles_; }
    bool covered() { return read_.covered(tap_) & act_.covered(tap_); }

  private:
    bool fail(const char *why)
    {
        tap_.note("%s", why);
        return false;
    }
    static uint64_t address(int c) { return 0x4000000000ull + kWindow * 64 * static_cast<uint64_t>(c); }

    // What the command reads, with random contents, and what must come of it.
    void fill(const Command &c, const struct mr_tiles_shape &t)
    {
        mem_.clear();
        wanted_.clear();
        want_.clear();
        for (int i = 0; i < c.rows; i++) {
            for (int k = 0; k < c.kblocks; k++) {
                struct mr_tile_place at = mr_tile_place(&t, c.col + i, c.first + k);
                uint64_t from = address(at.channel) + 64ull * c.off;
                Block b;
                for (size_t e = 0; e < 32; e++)
                    b.b[e] = byte(from + at.elements + e);
                b.b[32] = byte(from + at.code);
                b.max = byte(from + at.largest);
                b.region = c.slot;
                want_[{i, c.base + k}] = b;
                // The group's other columns come along, and a section's blocks before the first one.
                uint64_t row = (from + at.elements) / 64 - static_cast<uint64_t>((c.col + i) % 4 / 2);
                wanted_.insert({{row, true}, {row + 1, true}});
                for (uint64_t x = (from + at.code) / 64; k == 0 && x < row; x++)
                    wanted_.insert({x, true});
            }
        }
        for (auto &m : mem_)
            wanted_.insert({m.first, true});
    }
    uint8_t byte(uint64_t at)
    {
        auto it = mem_.find(at / 64);
        if (it == mem_.end()) {
            it = mem_.emplace(at / 64, std::array<uint8_t, 64>{}).first;
            for (auto &x : it->second)
                x = static_cast<uint8_t>(rng_.u32());
        }
        return it->second[at % 64];
    }
    bool compare(const Command &c, const std::map<std::pair<int, int>, Block> &got)
    {
        if (got == want_)
            return true;
        tap_.note("%d rows from column %d, blocks %d to %d of %d: %zu blocks, want %zu", c.rows, c.col, c.first,
                  c.first + c.kblocks - 1, c.all, got.size(), want_.size());
        for (auto &w : want_) {
            auto it = got.find(w.first);
            if (it == got.end() || !(it->second == w.second)) {
                tap_.note("row %d word %d is wrong", w.first.first, w.first.second);
                break;
            }
        }
        return false;
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    bench::Stall read_, data_, act_;
    std::map<uint64_t, std::array<uint8_t, 64>> mem_; // by address / 64
    std::map<uint64_t, bool> wanted_;
    std::map<std::pair<int, int>, Block> want_; // by row and word
    long cycles_ = 0;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Rng rng(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    dut->cmd_valid_i = dut->rd_data_valid_i = 0;
    dut.reset();
    Bench b(dut, rng, tap);
    bool good = true;
    for (int i = args.cases_or(150); i > 0 && good; i--)
        good = b.run(b.random_command(), rng.chance(80));
    tap.ok(good, "load_act: random parts of matrices");
    tap.ok(b.covered(), "load_act: every stall");

    for (int i = 0; i < 20 && good; i++) {
        Command c = b.random_command();
        const struct mr_tiles_shape t = {N, c.all};
        c.off &= 0xFFFF;
        good = b.run(c, true, c.off + mr_tiles_beats(&t, (c.col + c.rows + 63) / 64 * 64) - 1);
    }
    // The longest there is ends behind 2^32 beats.
    good = good && b.run({1, 65535, 0, 0, 0, 1, 262144, 0}, false, UINT32_MAX);
    tap.ok(good, "load_act: a matrix that ends one beat behind the window");

    good = b.run({24, 24, 0, 0, 0, 64, 64, 0}, false);
    tap.note("64 rows of 24 blocks in %ld cycles", b.cycles());
    tap.ok(good && b.cycles() <= 64 * 24 + 30, "load_act: a block a cycle");
    return tap.done();
}
