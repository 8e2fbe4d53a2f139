// SPDX-License-Identifier: Apache-2.0
// mr_tiles: commands back to back, of random rows, blocks and places in matrices one behind the other,
// with windows of random bytes. Where a block lies is the C model's mr_tile_place; a token's maximum in
// a matrix begins anew where block 0 is written, and grows otherwise. Blocks come late, and no more than
// there is room for. Done comes in order and after the last acknowledgement; matrices that do not end
// inside are an error and change nothing.
#include "Vdut.h"

#include "bench.h"
#include "windows.h"

extern "C" {
#include "cmodel/command.h"
#include "cmodel/tiles.h"
}

#include <algorithm>
#include <array>
#include <deque>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1;
#else
constexpr int N = 4;
#endif
constexpr int kBeats = 6000; // of a window

struct Block {
    std::array<uint8_t, 33> q; // elements, code
};

struct Command {
    int off, kblocks, first, blocks, cols, row, rows;
    bool bad;
    std::vector<Block> all; // block by block, of each all tokens
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : windows(dut, rng, N, kBeats), dut_(dut), rng_(rng), tap_(tap), cmd_(rng, "cmd_valid"), in_(rng, "take")
    {
        dut_->take_i = dut_->b_valid_i = dut_->cmd_valid_i = 0;
    }

    Command random_command()
    {
        Command c{};
        c.kblocks = static_cast<int>(rng_.chance(50) ? rng_.range(1, 3) : rng_.range(1, 40));
        c.cols = 64 * N * static_cast<int>(rng_.range(1, 2)) + 64 * static_cast<int>(rng_.range(0, 1));
        c.rows = static_cast<int>(rng_.range(1, 40));
        c.row = static_cast<int>(rng_.range(0, c.cols - c.rows));
        c.blocks = 2 * static_cast<int>(rng_.range(1, 4));
        const struct mr_tiles_shape t = {N, c.kblocks};
        const int64_t beats = static_cast<int64_t>(mr_tiles_beats(&t, c.cols));
        const int matrices = static_cast<int>(kBeats / beats);
        c.first = static_cast<int>(rng_.range(0, std::max(0, std::min(matrices, 9) * c.kblocks - c.blocks)));
        const int64_t all = (c.first + c.blocks - 1) / c.kblocks + 1;
        c.bad = all * beats > kBeats || rng_.chance(10);
        c.off = c.bad ? static_cast<int>(std::max<int64_t>(0, kBeats - all * beats) + rng_.range(1, 9))
                      : static_cast<int>(rng_.range(0, kBeats - all * beats));
        for (int i = 0; i < c.blocks * c.rows; i++) {
            Block b;
            for (auto &e : b.q)
                e = static_cast<uint8_t>(rng_.u32());
            c.all.push_back(b);
        }
        return c;
    }

    bool run(const std::vector<Command> &commands)
    {
        std::vector<std::vector<uint8_t>> want = windows.memory;
        for (const Command &c : commands)
            if (!c.bad)
                expect(c, want);
        dut_->s_limit_i = kBeats;
        std::deque<std::pair<int, const Block *>> coming; // cycles, and the block
        size_t given = 0, taken = 0, at = 0, done = 0;
        cmd_.random();
        in_.random();
        for (long cycle = 0; done < commands.size(); cycle++) {
            if (cycle == 2000000)
                return fail("hangs");
            const bool give = cmd_.want() && given < commands.size() && given - done < 8;
            dut_->cmd_valid_i = give;
            if (give)
                command(commands[given]);
            const bool may = in_.want() && taken < given;
            windows.drive();
            dut_->take_i = 0;
            dut_->b_valid_i = !coming.empty() && coming.front().first <= 0;
            for (int i = 0; i < 33; i++)
                bench::set(dut_->b_data_i, 8 * i, 8,
                           dut_->b_valid_i ? coming.front().second->q[static_cast<size_t>(i)] : rng_.u32() & 255);
            dut_.settle();
            in_.saw(dut_->room_o && taken < given);
            full_ += !dut_->room_o;
            if (may && dut_->room_o) {
                dut_->take_i = 1;
                dut_.settle();
            }
            if (const char *wrong = windows.see())
                return fail(wrong);
            if (dut_->b_valid_i)
                coming.pop_front();
            for (auto &b : coming)
                b.first--;
            if (dut_->take_i) {
                coming.push_back({static_cast<int>(rng_.range(8, 40)), &commands[taken].all[at]});
                if (++at == commands[taken].all.size()) {
                    at = 0;
                    taken++;
                }
            }
            given += give;
            if (given != done && !dut_->busy_o)
                return fail("not busy");
            if (dut_->done_o) {
                const Command &c = commands[done++];
                if (!windows.idle() || taken < done)
                    return fail("done before the acknowledgements");
                if (dut_->err_valid_o != c.bad ||
                    (c.bad && dut_->err_addr_o != windows.base_of(0) + 64ull * static_cast<uint64_t>(c.off)))
                    return fail("an error too many or too few, or another address");
            }
            dut_.edge();
        }
        return windows.compare(tap_, want);
    }

    bool covered() { return in_.covered(tap_) & windows.covered(tap_) & (full_ != 0); }
    bench::Windows<Vdut> windows;

  private:
    bool fail(const char *what)
    {
        tap_.note("%s", what);
        return false;
    }

    void command(const Command &c)
    {
        struct mr_command cmd = {};
        mr_command_set(&cmd, MR_F_MATMUL_TILES_OFF, static_cast<uint32_t>(c.off));
        mr_command_set(&cmd, MR_F_MATMUL_TILES_KBLOCKS, static_cast<uint32_t>(c.kblocks));
        mr_command_set(&cmd, MR_F_MATMUL_FIRST_KBLOCK, static_cast<uint32_t>(c.first));
        mr_command_set(&cmd, MR_F_MATMUL_COLS, static_cast<uint32_t>(32 * c.blocks));
        mr_command_set(&cmd, MR_F_MATMUL_ALL_COLS, static_cast<uint32_t>(c.cols));
        mr_command_set(&cmd, MR_F_MATMUL_AT_ROW, static_cast<uint32_t>(c.row));
        for (int i = 0; i < 16; i++)
            bench::set(dut_->cmd_i, 32 * i, 32, cmd.word[i]);
        dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
    }

    static void expect(const Command &c, std::vector<std::vector<uint8_t>> &m)
    {
        const struct mr_tiles_shape t = {N, c.kblocks};
        const size_t beats = static_cast<size_t>(mr_tiles_beats(&t, c.cols));
        for (int b = 0; b < c.blocks; b++)
            for (int i = 0; i < c.rows; i++) {
                const int k = c.first + b;
                const struct mr_tile_place p = mr_tile_place(&t, c.row + i, k % c.kblocks);
                uint8_t *to = &m[static_cast<size_t>(p.channel)]
                                [64 * (static_cast<size_t>(c.off) + beats * static_cast<size_t>(k / c.kblocks))];
                const Block &from = c.all[static_cast<size_t>(b * c.rows + i)];
                std::copy_n(from.q.begin(), 32, to + p.elements);
                to[p.code] = from.q[32];
                to[p.largest] = k % c.kblocks == 0 ? from.q[32] : std::max(to[p.largest], from.q[32]);
            }
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    bench::Stall cmd_, in_;
    long full_ = 0;
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
    int n = args.cases_or(30), bad = 0;
    for (int i = 0; i < n && good; i++) {
        std::vector<Command> commands;
        for (int j = 0; j < 4; j++) {
            commands.push_back(b.random_command());
            bad += commands.back().bad;
        }
        good = b.run(commands);
    }
    tap.ok(good, "tiles: blocks, codes and maxima, and nothing else");
    tap.note("%d commands, %d outside, %ld headers read", 4 * n, bad, b.windows.reads);
    tap.ok(b.covered() && bad != 0, "tiles: ports stalled, headers read, no room for a block");
    return tap.done();
}
