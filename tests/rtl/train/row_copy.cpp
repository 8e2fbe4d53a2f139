// SPDX-License-Identifier: Apache-2.0
// mr_row_copy: random rows to activation memory, to the stash, to both. What the quantiser gets is each
// word of the rows with its tag, what the stash gets is mr_mxint8_quantise of columns where
// mr_tile_place says, with maxima that grow or begin anew from some column on. Other readers take the
// row memory's port at random, the quantiser stalls and acknowledges later; done comes behind all of
// it. A matrix that does not end inside is an error.
#include "Vdut.h"

#include "bench.h"
#include "blocks.h"
#include "windows.h"

extern "C" {
#include "cmodel/command.h"
#include "cmodel/num.h"
#include "cmodel/tiles.h"
}

#include <algorithm>
#include <deque>
#include <vector>

namespace
{

#if defined(VARIANT_n1)
constexpr int N = 1, D = 256;
#else
constexpr int N = 8, D = 512;
#endif
constexpr int V = 4 * N, T = 64;
constexpr int kBeats = 8400 / N + 800; // of a window

struct Command {
    bool second, act, turned, bad;
    int rows, cols, base, slot, off, kblocks, at, first;
    int64_t beats;
    uint32_t begin;
};

struct Beat {
    uint32_t word[V];
    uint64_t tag;
    bool block_end;
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : windows(dut, rng, N, kBeats), dut_(dut), rng_(rng), tap_(tap), grant_(rng, "grant"), q_(rng, "q_ready")
    {
        dut_->cmd_valid_i = dut_->q_ack_i = dut_->res_grant_i = dut_->q_ready_i = 0;
        for (auto &m : rows_)
            m.resize(static_cast<size_t>(T) * D);
    }

    Command random_command(bool bad)
    {
        Command c{};
        const int to = bad ? static_cast<int>(rng_.range(2, 3)) : static_cast<int>(rng_.range(1, 3));
        c.second = rng_.chance(50);
        c.act = to & 1;
        c.turned = to & 2;
        c.bad = bad;
        c.rows = static_cast<int>(rng_.range(1, T));
        c.cols = 64 * static_cast<int>(rng_.range(1, 4));
        c.base = static_cast<int>(rng_.range(0, 1000));
        c.slot = static_cast<int>(rng_.range(0, 3));
        c.kblocks = static_cast<int>(rng_.range(2, 20));
        c.at = static_cast<int>(rng_.range(0, c.kblocks - 2));
        c.first = 64 * static_cast<int>(rng_.range(0, 8));
        c.begin = rng_.chance(30)   ? 0
                  : rng_.chance(10) ? 0x80000000u | rng_.u32()
                  : rng_.chance(60) ? static_cast<uint32_t>(c.first + rng_.range(0, c.cols - 1)) // in the midst of a group
                                    : static_cast<uint32_t>(rng_.range(0, c.first + c.cols + 10));
        const struct mr_tiles_shape t = {N, c.kblocks};
        c.beats = static_cast<int64_t>(mr_tiles_beats(&t, c.first + c.cols));
        c.off = static_cast<int>(rng_.range(0, kBeats - c.beats));
        fill(c);
        return c;
    }

    // The cycles, or 0.
    uint64_t run(const Command &c, bool stalls)
    {
        std::vector<std::vector<uint8_t>> want = windows.memory;
        if (c.turned && !c.bad)
            expect(c, want);
        expect_beats(c);
        stalls ? grant_.random() : grant_.density(100);
        stalls ? q_.random() : q_.density(100);
        dut_->s_limit_i = static_cast<uint32_t>(c.off + c.beats - c.bad);
        bool started = false, done = false, error = false;
        const uint64_t start = dut_.cycles();
        while (!done && dut_.cycles() - start < 1000000) {
            bench::put_bytes(dut_->cmd_i, command(c), 64);
            dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
            dut_->cmd_valid_i = !started;
            for (int l = 0; l < V; l++) // a word is there for a cycle
                bench::set(dut_->res_rdata_i, 32 * l, 32,
                           read_ < 0 ? rng_.u32() : rows_[c.second][static_cast<size_t>(read_ * V + l)]);
            dut_->res_grant_i = grant_.want();
            dut_->q_ready_i = q_.want();
            dut_->q_ack_i = !acks_.empty() && acks_.front() <= 0;
            windows.drive();
            dut_.settle();
            if (const char *wrong = windows.see())
                return fail(wrong);
            grant_.saw(dut_->res_ren_o);
            q_.saw(dut_->q_valid_o);
            read_ = dut_->res_ren_o && dut_->res_grant_i ? static_cast<int>(dut_->res_raddr_o) : -1;
            if (read_ >= 0 && dut_->res_second_o != c.second)
                return fail("the other row memory is read");
            for (auto &a : acks_)
                a--;
            if (dut_->q_ack_i)
                acks_.pop_front();
            if (dut_->q_valid_o && !beat(dut_->q_ready_i, stalls))
                return fail("a wrong beat for the quantiser");
            started |= dut_->cmd_ready_o;
            error |= dut_->err_valid_o;
            if (dut_->err_valid_o && dut_->err_addr_o != windows.base_of(0) + 64ull * static_cast<uint64_t>(c.off))
                return fail("the error has another address");
            done = dut_->done_o;
            if (done && (!beats_.empty() || !acks_.empty() || !windows.idle()))
                return fail("done too early");
            dut_.edge();
        }
        if (!done || error != c.bad)
            return fail(done ? "an error too many or too few" : "hangs");
        const uint64_t took = dut_.cycles() - start;
        return windows.compare(tap_, want) ? took : 0;
    }

    bool covered() { return grant_.covered(tap_) & q_.covered(tap_) & windows.covered(tap_); }
    bench::Windows<Vdut> windows;

  private:
    uint64_t fail(const char *what)
    {
        tap_.note("%s", what);
        return 0;
    }

    // Columns of blocks; in the other memory something else.
    void fill(const Command &c)
    {
        for (auto &m : rows_)
            for (auto &w : m)
                w = rng_.u32();
        for (int col = 0; col < c.cols; col++)
            for (int first = 0; first < T; first += 32) {
                bench::Block b = bench::random_block(rng_);
                for (int i = 0; i < 32; i++)
                    at(c, first + i, col) = mr_bits(b.v[i]);
            }
    }
    uint32_t &at(const Command &c, int row, int col)
    {
        return rows_[c.second][static_cast<size_t>(row) * D + static_cast<size_t>(col)];
    }

    const struct mr_command *command(const Command &c)
    {
        m_ = {};
        mr_command_set(&m_, MR_F_MOVE_ROWS_SRC, c.second);
        mr_command_set(&m_, MR_F_MOVE_ROWS_TO_ACT, c.act);
        mr_command_set(&m_, MR_F_MOVE_ROWS_TURNED, c.turned);
        mr_command_set(&m_, MR_F_MOVE_ROWS_COLS, static_cast<uint32_t>(c.cols));
        mr_command_set(&m_, MR_F_MOVE_ROWS_DST_BASE, static_cast<uint32_t>(c.base));
        mr_command_set(&m_, MR_F_MOVE_ROWS_DST_SLOT, static_cast<uint32_t>(c.slot));
        mr_command_set(&m_, MR_F_MOVE_ROWS_TURNED_OFF, static_cast<uint32_t>(c.off));
        mr_command_set(&m_, MR_F_MOVE_ROWS_ALL_KBLOCKS, static_cast<uint32_t>(c.kblocks));
        mr_command_set(&m_, MR_F_MOVE_ROWS_AT_ROW, static_cast<uint32_t>(32 * c.at));
        mr_command_set(&m_, MR_F_MOVE_ROWS_FIRST_COL, static_cast<uint32_t>(c.first));
        mr_command_set(&m_, MR_F_MOVE_ROWS_BEGIN_COL, c.begin);
        return &m_;
    }

    void expect_beats(const Command &c)
    {
        for (int i = 0; c.act && i < c.rows; i++)
            for (int w = 0; w < c.cols / V; w++) {
                Beat b{};
                const uint64_t block = static_cast<uint64_t>(w * V / 32);
                for (int l = 0; l < V; l++)
                    b.word[l] = at(c, i, w * V + l);
                b.tag = static_cast<uint64_t>(i) << 19 | (static_cast<uint64_t>(c.base) + block) << 3 |
                        static_cast<uint64_t>(c.slot) << 1 | (block == 0);
                b.block_end = (w + 1) * V % 32 == 0;
                beats_.push_back(b);
            }
    }

    bool beat(bool taken, bool stalls)
    {
        if (beats_.empty())
            return false;
        const Beat &b = beats_.front();
        bool good = dut_->q_tag_o == b.tag;
        for (int l = 0; l < V; l++)
            good &= bench::get(dut_->q_data_o, 32 * l, 32) == b.word[l];
        if (taken) {
            if (b.block_end)
                acks_.push_back(stalls ? static_cast<int>(rng_.range(1, 40)) : 5);
            beats_.pop_front();
        }
        return good;
    }

    void expect(const Command &c, std::vector<std::vector<uint8_t>> &m)
    {
        const struct mr_tiles_shape t = {N, c.kblocks};
        for (int col = 0; col < c.cols; col++)
            for (int first = 0; first < c.rows; first += 32) {
                const struct mr_tile_place p = mr_tile_place(&t, c.first + col, c.at + first / 32);
                uint8_t *w = &m[static_cast<size_t>(p.channel)][64 * static_cast<size_t>(c.off)];
                float v[32] = {};
                int8_t q[32];
                for (int i = 0; i < 32 && first + i < c.rows; i++)
                    v[i] = mr_float(at(c, first + i, col));
                const uint8_t code = mr_mxint8_quantise(v, q);
                w[p.code] = code;
                memcpy(w + p.elements, q, 32);
                if (first == 0 && static_cast<uint32_t>(c.first + col) >= c.begin)
                    w[p.largest] = 0;
                w[p.largest] = std::max(w[p.largest], code);
            }
    }

    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    bench::Stall grant_, q_;
    std::vector<uint32_t> rows_[2];
    std::deque<Beat> beats_;
    std::deque<int> acks_;
    struct mr_command m_ = {};
    int read_ = -1; // the word that was read
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
    int n = args.cases_or(40);
    for (int i = 0; i < n && good; i++)
        good = b.run(b.random_command(i % 8 == 7), true) != 0;
    tap.ok(good, "row_copy: words and tags, blocks, codes and maxima, and nothing else");
    tap.ok(b.covered(), "row_copy: ports stalled, headers read");
    // To activation memory a word a cycle, and 5 for the quantiser's acknowledgement here.
    Command c = b.random_command(false);
    c.act = true;
    c.turned = false;
    const uint64_t took = b.run(c, false), words = static_cast<uint64_t>(c.rows * c.cols / V);
    tap.note("%llu words in %llu cycles", static_cast<unsigned long long>(words), static_cast<unsigned long long>(took));
    tap.ok(took > words && took <= words + 16, "row_copy: a word a cycle");
    return tap.done();
}
