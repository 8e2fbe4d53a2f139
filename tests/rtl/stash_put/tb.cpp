// SPDX-License-Identifier: Apache-2.0
// mr_stash_put: random parts of matrices, written into windows of random bytes. Where a block lies is
// the C model's mr_tile_place; maxima begin anew from a random column on, before it they grow. Nothing
// else in the windows changes, and done comes after the last acknowledgement. A matrix that does not end
// inside is an error and changes nothing. Reader and writer are
// modelled here and stall at random.
#include "Vdut.h"

#include "bench.h"

#include "cmodel/tiles.h" // built as C++ with the bench

#include <algorithm>
#include <deque>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1;
#else
constexpr int N = 4;
#endif
constexpr int V = 4 * N;
constexpr int kBeats = 6000; // of a window
uint64_t base_of(int c) { return 0x1FFFFF000ull + 0x100000000ull * static_cast<uint64_t>(c); }

struct Set {
    int group, kblock;
    uint8_t code[V];
    uint8_t q[V][32];
    bool end, last;
};

struct Command {
    int off, kblocks, begin, groups; // groups a channel
    std::vector<Set> sets;
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : dut_(dut), rng_(rng), tap_(tap), in_(rng, "in_valid"), data_(rng, "data_ready"),
          memory_(N, std::vector<uint8_t>(64 * kBeats))
    {
        for (auto &w : memory_)
            for (auto &b : w)
                b = static_cast<uint8_t>(rng.u32());
        for (int c = 0; c < N; c++)
            bench::set(dut_->s_base_i, 64 * c, 64, base_of(c));
        dut_->in_valid_i = dut_->cmd_valid_i = dut_->job_done_i = dut_->rd_data_valid_i = 0;
    }

    // Groups first.. of a matrix, from a k-block on, as many as a chunk of rows has.
    Command random_command()
    {
        Command c{};
        c.kblocks = static_cast<int>(rng_.range(1, 40));
        int groups = 16 * static_cast<int>(rng_.range(1, 3)); // of the matrix, a channel
        const struct mr_tiles_shape t = {N, c.kblocks, false};
        c.groups = groups;
        beats_ = static_cast<int64_t>(mr_tiles_beats(&t, V * groups));
        c.off = static_cast<int>(rng_.range(0, kBeats - beats_));
        int first = static_cast<int>(rng_.range(0, groups - 1));
        int count = static_cast<int>(rng_.range(1, groups - first));
        int k = static_cast<int>(rng_.range(0, c.kblocks - 1));
        int blocks = std::min<int>(c.kblocks - k, static_cast<int>(rng_.range(1, 5)));
        static const int kinds[] = {0, 1 << 30};
        c.begin = rng_.chance(50) ? kinds[rng_.range(0, 1)] : static_cast<int>(rng_.range(V * first, V * (first + count)));
        for (int j = first; j < first + count; j++)
            for (int b = k; b < k + blocks; b++) {
                Set s{};
                s.group = j;
                s.kblock = b;
                s.end = b + 1 == k + blocks;
                s.last = s.end && j + 1 == first + count;
                for (int l = 0; l < V; l++) {
                    s.code[l] = static_cast<uint8_t>(rng_.u32());
                    for (auto &e : s.q[l])
                        e = static_cast<uint8_t>(rng_.u32());
                }
                c.sets.push_back(s);
            }
        return c;
    }

    // short_by: beats that the windows lack.
    bool run(const Command &c, int short_by)
    {
        std::vector<std::vector<uint8_t>> want = short_by > 0 ? memory_ : expect(c);
        dut_->s_limit_i = static_cast<uint32_t>(c.off + beats_ - short_by);
        in_.random();
        data_.random();
        size_t next = 0;
        bool offered = false, started = false, done = false;
        int answer = -1, left = 0, at_channel = 0, read_channel = 0;
        size_t at = 0, read_at = 0;
        uint64_t strb = 0;
        std::deque<int> acks;
        for (long cycle = 0; !done && cycle < 1000000; cycle++) {
            dut_->cmd_valid_i = !started;
            dut_->cmd_off_i = static_cast<uint32_t>(c.off);
            dut_->cmd_kblocks_i = static_cast<uint16_t>(c.kblocks);
            dut_->cmd_begin_i = static_cast<uint32_t>(c.begin);
            dut_->cmd_groups_i = static_cast<uint32_t>(c.groups);
            if (!offered && next < c.sets.size())
                offered = started && in_.want();
            offer(offered ? &c.sets[next] : nullptr);
            dut_->rd_ready_i = rng_.chance(50);
            dut_->rd_data_valid_i = answer == 0;
            for (int i = 0; i < 16; i++) {
                uint32_t w = rng_.u32();
                if (answer == 0)
                    memcpy(&w, &memory_[static_cast<size_t>(read_channel)][read_at + 4 * static_cast<size_t>(i)], 4);
                bench::set(dut_->rd_data_i, 32 * i, 32, w);
            }
            dut_->job_ready_i = left == 0 && rng_.chance(50);
            dut_->data_ready_i = left != 0 && data_.want();
            dut_->job_done_i = !acks.empty() && acks.front() <= 0;
            dut_.settle();
            in_.saw(started && dut_->in_ready_o);
            if (answer >= 0)
                answer--;
            if (dut_->rd_valid_o && dut_->rd_ready_i) {
                if (!place(dut_->rd_addr_o, &read_channel, &read_at) || dut_->rd_beats_o != 1 || answer >= 0)
                    return fail("a wrong read");
                reads_++;
                answer = static_cast<int>(rng_.range(0, 20));
            }
            for (auto &a : acks)
                a--;
            if (dut_->job_done_i)
                acks.pop_front();
            if (left && dut_->data_valid_o)
                data_.saw(true);
            if (left && dut_->data_valid_o && dut_->data_ready_i) {
                write(at_channel, at, left == 1 ? strb : ~0ull);
                at += 64;
                if (--left == 0)
                    acks.push_back(static_cast<int>(rng_.range(0, 100)));
            }
            if (dut_->job_valid_o && dut_->job_ready_i) {
                if (!place(dut_->job_addr_o, &at_channel, &at))
                    return fail("a write outside");
                left = dut_->job_beats_o;
                strb = dut_->job_strb_o;
            }
            if (dut_->cmd_valid_i && dut_->cmd_ready_o)
                started = true;
            if (offered && dut_->in_ready_o) {
                offered = false;
                next++;
            }
            if (dut_->done_o) {
                done = true;
                if (!acks.empty() || left || next != c.sets.size())
                    return fail("done before the acknowledgements");
                if (dut_->err_valid_o != (short_by > 0) ||
                    (short_by > 0 && dut_->err_addr_o != base_of(0) + 64ull * static_cast<uint64_t>(c.off)))
                    return fail("an error too many or too few, or another address");
            }
            dut_.edge();
        }
        return done ? compare(want) : fail("hangs");
    }

    bool covered() { return in_.covered(tap_) & data_.covered(tap_) & (reads_ != 0); }
    long reads_ = 0;
    int64_t beats_ = 0; // of the last command's matrix

  private:
    bool fail(const char *what)
    {
        tap_.note("%s", what);
        return false;
    }

    void offer(const Set *s)
    {
        dut_->in_valid_i = s != nullptr;
        dut_->in_group_i = s ? static_cast<uint32_t>(s->group) : rng_.u32() & 0xFFFFF;
        dut_->in_kblock_i = s ? static_cast<uint16_t>(s->kblock) : static_cast<uint16_t>(rng_.u32());
        dut_->in_end_i = s ? s->end : rng_.chance(50);
        dut_->in_last_i = s ? s->last : rng_.chance(50);
        for (int l = 0; l < V; l++) {
            bench::set(dut_->in_code_i, 8 * l, 8, s ? s->code[l] : rng_.u32() & 255);
            for (int e = 0; e < 32; e++)
                bench::set(dut_->in_data_i, 256 * l + 8 * e, 8, s ? s->q[l][e] : rng_.u32() & 255);
        }
    }

    // The window and the byte in it of an address.
    static bool place(uint64_t addr, int *channel, size_t *at)
    {
        for (int c = 0; c < N; c++)
            if (addr >= base_of(c) && addr < base_of(c) + 64ull * kBeats && addr % 64 == 0) {
                *channel = c;
                *at = addr - base_of(c);
                return true;
            }
        return false;
    }

    void write(int channel, size_t at, uint64_t strb)
    {
        for (int b = 0; b < 64 && at < 64ull * kBeats; b++)
            if (strb >> b & 1)
                memory_[static_cast<size_t>(channel)][at + static_cast<size_t>(b)] =
                    static_cast<uint8_t>(bench::get(dut_->data_o, 8 * b, 8));
    }

    std::vector<std::vector<uint8_t>> expect(const Command &c)
    {
        std::vector<std::vector<uint8_t>> m = memory_;
        const struct mr_tiles_shape t = {N, c.kblocks, false};
        auto byte = [&](const struct mr_tile_place &p, size_t in) -> uint8_t & {
            return m[static_cast<size_t>(p.channel)][64 * static_cast<size_t>(c.off) + in];
        };
        for (const Set &s : c.sets)
            for (int l = 0; l < V; l++)
                if (V * s.group + l >= c.begin) {
                    struct mr_tile_place p = mr_tile_place(&t, V * s.group + l, 0);
                    byte(p, p.largest) = 0;
                }
        for (const Set &s : c.sets)
            for (int l = 0; l < V; l++) {
                struct mr_tile_place p = mr_tile_place(&t, V * s.group + l, s.kblock);
                byte(p, p.largest) = std::max(byte(p, p.largest), s.code[l]);
                byte(p, p.code) = s.code[l];
                for (size_t e = 0; e < 32; e++)
                    byte(p, p.elements + e) = s.q[l][e];
            }
        return m;
    }

    bool compare(const std::vector<std::vector<uint8_t>> &want)
    {
        for (size_t c = 0; c < N; c++)
            for (size_t i = 0; i < 64 * kBeats; i++)
                if (memory_[c][i] != want[c][i]) {
                    tap_.note("channel %zu beat %zu byte %zu: %02x, want %02x", c, i / 64, i % 64, memory_[c][i],
                              want[c][i]);
                    return false;
                }
        return true;
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    bench::Stall in_, data_;
    std::vector<std::vector<uint8_t>> memory_;
};

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Tap tap;
    bench::Rng rng(args.seed);
    bench::Dut<Vdut> dut(args);
    Bench b(dut, rng, tap);
    dut.reset();
    bool good = true;
    int n = args.cases_or(60);
    for (int i = 0; i < n && good; i++) {
        Command c = b.random_command();
        good = b.run(c, i % 5 == 4 ? 1 : -static_cast<int>(rng.range(0, 1)));
    }
    tap.ok(good, "stash_put: blocks, codes and maxima, and nothing else; a beat too few is an error");
    tap.note("%d commands, %ld headers read", n, b.reads_);
    tap.ok(b.covered(), "stash_put: ports stalled, headers read");
    return tap.done();
}
