// SPDX-License-Identifier: Apache-2.0
// mr_array against the C model's accumulator: rings, tile entries and activation memory are modelled here.
//
//   - random commands of all shapes, back to back, with random arrival of k-rows and tile entries in each
//     channel, random command gaps and random drain stalls; also aborted by a reset in the middle
//   - freed k-rows and popped tile entries are overwritten with garbage at once
//   - variants with GRAD: every other command is one of GRAD; sums, and flags beside each token's
//   - counters: exactly one of the four states a cycle, steps and live blocks as computed
//   - exact cycle counts: no bubble when nothing stalls, the drain's rate with few k-blocks, latencies
#include "Vdut.h"

#include "bench.h"

extern "C" {
#include "cmodel/backward.h"
}

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <vector>

namespace
{

#if defined(VARIANT_n1r1) || defined(VARIANT_n1r1fold)
constexpr int N = 1, R = 1, T = 8, W = 2048, RING = 1024;
#elif defined(VARIANT_n1r2) || defined(VARIANT_n1r2grad) || defined(VARIANT_n1r2fold)
constexpr int N = 1, R = 2, T = 8, W = 256, RING = 128;
#elif defined(VARIANT_n1r4)
constexpr int N = 1, R = 4, T = 16, W = 2048, RING = 1024;
#elif defined(VARIANT_n8r4)
constexpr int N = 8, R = 4, T = 16, W = 256, RING = 128;
#else // n2r4, n2r4pair, n2r4grad
constexpr int N = 2, R = 4, T = 16, W = 256, RING = 128;
#endif
#if defined(VARIANT_n1r2grad) || defined(VARIANT_n2r4grad)
constexpr bool kGrad = true;
#else
constexpr bool kGrad = false;
#endif
#if defined(VARIANT_n1r1fold) || defined(VARIANT_n1r2fold)
constexpr int kFold = 4; // cycles of a step
#else
constexpr int kFold = 1;
#endif
constexpr int C = 4 * N;
constexpr int kMax = W / 4 < RING / 2 ? W / 4 : RING / 2; // k-blocks of the longest command
constexpr uint64_t kMask48 = (1ull << 48) - 1;

struct Block {
    uint8_t b[33]; // 32 elements, code
    int8_t at(int i) const { return static_cast<int8_t>(b[i]); }
};

struct KRow {
    uint8_t w[4][32];
    uint8_t code[4];
};

struct Tile {
    uint8_t max[4];
    uint32_t bias[4];
};

struct Command {
    int base, kblocks, groups, slot, rows;
    bool fp4, two_pass;
    bool grad = false;
    int g = 0;
    int slots() const { return two_pass ? 2 * rows : rows; }
};

struct Beat {
    uint64_t acc[C];
    unsigned base[C];
    bool nan[C];
    uint32_t bias[C];
    int token, group;
    bool fp4, last, grad;
    unsigned flags;
};

enum Data { RANDOM, EXTREME, ZEROS };
enum Codes { NEAR, WIDE, EDGE, EQUAL };

struct Options {
    Data data = RANDOM;
    Codes codes = NEAR;
    bool stalls = true; // random arrival, gaps and drain stalls
    int drain = -1;     // percent of cycles in which the drain is ready, if not random
    long abort_after = -1; // cycles; then the caller resets
};

struct Result {
    bool good = true;
    long steps = 0, first_step = -1, last_step = -1, accepted = -1, first_beat = -1;
    long n_weights = 0, n_drain = 0, n_idle = 0, cycles = 0;
};

class Bench
{
  public:
    Bench(bench::Dut<Vdut> &dut, bench::Rng &rng, bench::Tap &tap)
        : dut_(dut), rng_(rng), tap_(tap), mem_(static_cast<size_t>(T) * W),
          cmd_stall_(rng, "cmd_valid"), drain_stall_(rng, "dr_ready")
    {
        for (int n = 0; n < N; n++) {
            row_stall_.emplace_back(rng, "ring");
            tile_stall_.emplace_back(rng, "tile");
        }
    }

    void reset()
    {
        dut_->cmd_valid_i = 0;
        dut_->dr_ready_i = 0;
        bench::set(dut_->tile_valid_i, 0, N, 0);
        bench::set(dut_->ring_count_i, 0, 64, 0);
        for (int n = 0; n < N; n++) {
            bench::set(dut_->ring_count_i, 16 * n, 16, 0);
            written_[n] = 0;
        }
        freed_ = 0;
        dut_.reset();
    }

    // New contents of the activation memory; slot ids 0, 1 for one pass, 2, 3 for two.
    void fill(Data data, Codes codes)
    {
        for (auto &m : mem_)
            element_block(m, data, codes);
        for (int s = 0; s < 4; s++) {
            for (int r = 0; r < T; r++) {
                // NaN in some rows only, so that NaN of the columns is seen too.
                for (int k = 0; codes == EDGE && k < W / 4; k++) {
                    uint8_t &c = block(r, s * (W / 4) + k).b[32];
                    c = c == 255 ? 254 : c;
                }
                if (codes == EDGE && rng_.chance(20))
                    block(r, s * (W / 4) + static_cast<int>(rng_.range(0, W / 4 - 1))).b[32] = 255;
                uint8_t top = 0;
                for (int k = 0; k < W / 4; k++)
                    top = std::max(top, block(r, s * (W / 4) + k).b[32]);
                rmax_[s][r] = top;
            }
            for (int r = 0; s >= 2 && r < T; r += 2)
                rmax_[s][r] = rmax_[s][r + 1] = std::max(rmax_[s][r], rmax_[s][r + 1]);
        }
    }

    Command random_command(int kblocks, int groups)
    {
        Command c;
        c.two_pass = rng_.chance(40);
        c.slot = static_cast<int>(rng_.range(0, 1)) + (c.two_pass ? 2 : 0);
        c.kblocks = kblocks;
        c.base = c.slot * (W / 4) + static_cast<int>(rng_.range(0, W / 4 - kblocks));
        c.groups = groups;
        c.rows = static_cast<int>(rng_.range(1, c.two_pass ? T / 2 : T));
        if (rng_.chance(30))
            c.rows = 1;
        c.fp4 = rng_.chance(40);
        if (kGrad && rng_.chance(50)) {
            c.slot &= 1;
            c.base = c.slot * (W / 4) + static_cast<int>(rng_.range(0, W / 4 - kblocks));
            c.rows = static_cast<int>(rng_.range(1, T));
            c.two_pass = c.fp4 = false;
            c.grad = true;
            // Shifts about 0 to 38 for codes of NEAR; else anything.
            c.g = static_cast<int>(rng_.chance(70)   ? rng_.range(-60, 0)
                                   : rng_.chance(80) ? rng_.range(-300, 300)
                                                     : rng_.range(-32768, 32767));
        }
        return c;
    }

    Result run(const std::vector<Command> &cmds, const Options &opt)
    {
        Result res;
        stream(cmds, opt);
        expect(cmds);
        for (int n = 0; n < N; n++) {
            row_stall_[n].density(100);
            tile_stall_[n].density(100);
            if (opt.stalls) {
                row_stall_[n].random();
                tile_stall_[n].random();
            }
        }
        cmd_stall_.density(100);
        drain_stall_.density(100);
        if (opt.stalls) {
            cmd_stall_.random();
            drain_stall_.random();
        }
        if (opt.drain >= 0)
            drain_stall_.density(opt.drain);
        size_t next_cmd = 0, next_beat = 0;
        size_t pushed[N] = {}, tiles[N] = {}; // k-rows and tile entries that have arrived
        long start[N] = {};
        for (int n = 0; n < N; n++)
            start[n] = written_[n];
        long freed0 = freed_, popped = 0, blocks = 0, want_blocks = 0, want_steps = 0;
        for (const auto &c : cmds) {
            long rg = std::max(1, (c.slots() + R - 1) / R);
            want_steps += rg * c.kblocks * c.groups;
            want_blocks += static_cast<long>(c.slots()) * c.kblocks * c.groups * C;
        }
        bool offered = false, held = false;
        std::vector<uint8_t> held_payload;
        // RAM ports: data of the previous cycle's read.
        long idle = 0, busy = 0;
        for (long cycle = 0;; cycle++) {
            if (opt.abort_after >= 0 && cycle >= opt.abort_after)
                return res;
            if (cycle > 4000000) {
                tap_.note("hangs: command %zu, beat %zu of %zu, steps %ld of %ld", next_cmd, next_beat,
                          want_.size(), res.steps, want_steps);
                res.good = false;
                return res;
            }
            // Commands.
            if (!offered && next_cmd < cmds.size())
                offered = cmd_stall_.want();
            dut_->cmd_valid_i = offered;
            if (offered) {
                const Command &c = cmds[next_cmd];
                dut_->cmd_src_base_i = static_cast<uint16_t>(c.base);
                dut_->cmd_kblocks_i = static_cast<uint16_t>(c.kblocks);
                dut_->cmd_groups_i = static_cast<uint32_t>(c.groups);
                dut_->cmd_src_slot_i = static_cast<uint8_t>(c.slot);
                dut_->cmd_fp4_i = c.fp4;
                dut_->cmd_rows_i = static_cast<uint16_t>(c.rows);
                dut_->cmd_two_pass_i = c.two_pass;
                dut_->cmd_grad_i = c.grad;
                dut_->cmd_g_i = static_cast<uint16_t>(c.grad ? c.g : static_cast<int>(rng_.u32()));
            } else {
                dut_->cmd_src_base_i = static_cast<uint16_t>(rng_.u32());
                dut_->cmd_rows_i = static_cast<uint16_t>(rng_.u32());
                dut_->cmd_grad_i = kGrad && rng_.chance(50);
            }
            // Tile heads.
            for (int n = 0; n < N; n++) {
                bool valid = tiles[n] > static_cast<size_t>(popped);
                bench::set(dut_->tile_valid_i, n, 1, valid);
                for (int c = 0; c < 4; c++) {
                    const Tile &t = tile_[n][valid ? static_cast<size_t>(popped) : 0];
                    bench::set(dut_->tile_max_i, 32 * n + 8 * c, 8, valid ? t.max[c] : rng_.u32());
                    bench::set(dut_->tile_bias_i, 128 * n + 32 * c, 32,
                               valid ? t.bias[c] : rng_.u32());
                }
                bench::set(dut_->ring_count_i, 16 * n, 16, static_cast<uint64_t>(written_[n]));
            }
            bool ready = drain_stall_.want();
            dut_->dr_ready_i = ready;
            dut_.settle();

            // Drain.
            bool valid = dut_->dr_valid_o;
            drain_stall_.saw(valid);
            if (valid) {
                if (res.first_beat < 0)
                    res.first_beat = cycle;
                std::vector<uint8_t> now = payload();
                if (held && now != held_payload) {
                    tap_.note("payload changed while it was not taken");
                    res.good = false;
                }
                held_payload = now;
                if (ready) {
                    if (next_beat >= want_.size() || !check(want_[next_beat], next_beat)) {
                        res.good = false;
                        return res;
                    }
                    next_beat++;
                }
            } else if (held) {
                tap_.note("dr_valid_o dropped");
                res.good = false;
            }
            held = valid && !ready;

            // Counters.
            int states = dut_->cnt_busy_o + dut_->cnt_weights_o + dut_->cnt_drain_o + dut_->cnt_idle_o;
            if (states != 1) {
                tap_.note("%d counter states in cycle %ld", states, cycle);
                res.good = false;
                return res;
            }
            if (dut_->cnt_busy_o && busy++ % kFold == 0) {
                if (res.steps++ == 0)
                    res.first_step = cycle - 1;
                res.last_step = cycle - 1;
            }
            res.n_weights += dut_->cnt_weights_o;
            res.n_drain += dut_->cnt_drain_o;
            res.n_idle += dut_->cnt_idle_o;
            blocks += dut_->cnt_blocks_o;

            // Handshakes and memory reads of this cycle.
            bool took = offered && dut_->cmd_ready_o;
            cmd_stalls_ += offered && !dut_->cmd_ready_o;
            bool pop = dut_->tile_pop_o, ring_ren = dut_->ring_ren_o, freeing = dut_->ring_free_o;
            bool rmax_ren = dut_->rmax_ren_o;
            unsigned act_ren = static_cast<unsigned>(bench::get(dut_->act_ren_o, 0, R));
            unsigned ring_addr = dut_->ring_raddr_o;
            unsigned act_addr = dut_->act_raddr_o, rmax_addr = dut_->rmax_raddr_o;
            dut_.edge();

            if (took) {
                if (res.accepted < 0)
                    res.accepted = cycle;
                offered = false;
                next_cmd++;
            }
            if (pop) {
                for (int n = 0; n < N; n++) {
                    if (tiles[n] <= static_cast<size_t>(popped)) {
                        tap_.note("pop of an empty tile FIFO");
                        res.good = false;
                        return res;
                    }
                }
                popped++;
            }
            if (ring_ren) {
                for (int n = 0; n < N; n++) {
                    const KRow &k = ring_[n][ring_addr];
                    for (int c = 0; c < 4; c++) {
                        for (int i = 0; i < 32; i += 4) {
                            uint32_t x;
                            memcpy(&x, &k.w[c][i], 4);
                            bench::set(dut_->ring_rdata_i, 1024 * n + 256 * c + 8 * i, 32, x);
                        }
                        bench::set(dut_->ring_rcode_i, 32 * n + 8 * c, 8, k.code[c]);
                    }
                }
            }
            for (int r = 0; r < R; r++) {
                if ((act_ren >> r) & 1u) {
                    const Block &k = mem_[static_cast<size_t>((act_addr / W * R + static_cast<unsigned>(r)) *
                                                                  W +
                                                              act_addr % W)];
                    for (int i = 0; i < 32; i++)
                        bench::set(dut_->act_rdata_i, 256 * r + 8 * i, 8, k.b[i]);
                    bench::set(dut_->act_rcode_i, 8 * r, 8, k.b[32]);
                }
                if (rmax_ren)
                    bench::set(dut_->rmax_rdata_i, 8 * r, 8,
                               rmax_[rmax_addr / (T / R)][rmax_addr % (T / R) * R + static_cast<unsigned>(r)]);
            }
            if (freeing) {
                for (int n = 0; n < N; n++) {
                    if (freed_ >= written_[n]) {
                        tap_.note("free of an empty ring");
                        res.good = false;
                        return res;
                    }
                    memset(&ring_[n][freed_ % RING], static_cast<int>(rng_.u32() & 255u), sizeof(KRow));
                }
                freed_++;
            }
            // Arrivals: tile entry no later than its first k-row, a k-row a cycle at most.
            for (int n = 0; n < N; n++) {
                if (tiles[n] < tile_[n].size() && tiles[n] < static_cast<size_t>(popped) + 20 &&
                    tile_stall_[n].want())
                    tiles[n]++;
                if (pushed[n] < row_[n].size() && written_[n] - freed_ < RING &&
                    (row_tile_[pushed[n]] < tiles[n]) && row_stall_[n].want()) {
                    ring_[n][written_[n] % RING] = row_[n][pushed[n]++];
                    written_[n]++;
                }
            }
            if (next_beat == want_.size() && next_cmd == cmds.size() && res.steps == want_steps)
                idle++;
            if (idle > 20) {
                res.cycles = cycle + 1;
                break;
            }
        }
        if (blocks != want_blocks || res.steps != want_steps) {
            tap_.note("steps %ld want %ld, blocks %ld want %ld", res.steps, want_steps, blocks, want_blocks);
            res.good = false;
        }
        for (int n = 0; n < N; n++) {
            if (freed_ - freed0 != static_cast<long>(row_[n].size()) || written_[n] - start[n] != freed_ - freed0 ||
                popped != static_cast<long>(tile_[n].size())) {
                tap_.note("channel %d: %ld k-rows freed of %zu, %ld tiles of %zu", n, freed_ - freed0,
                          row_[n].size(), popped, tile_[n].size());
                res.good = false;
            }
        }
        return res;
    }


    // Whether GRAD has given each pair of flags.
    bool flags_seen() const { return flags_[0] && flags_[1] && flags_[2] && flags_[3]; }

    bool covered()
    {
        bool good = drain_stall_.covered(tap_);
        tap_.note("stalls cmd_ready %llu", static_cast<unsigned long long>(cmd_stalls_));
        tap_.note("stalls ring_or_tile %llu", static_cast<unsigned long long>(weights_));
        tap_.note("stalls result_fifo %llu", static_cast<unsigned long long>(drains_));
        for (int f = 0; kGrad && f < 4; f++)
            tap_.note("results of GRAD with flags %d: %llu", f, static_cast<unsigned long long>(flags_[f]));
        return good && (!kGrad || flags_seen()) && cmd_stalls_ && weights_ && drains_;
    }
    void count(const Result &r)
    {
        weights_ += static_cast<uint64_t>(r.n_weights);
        drains_ += static_cast<uint64_t>(r.n_drain);
    }

  private:
    Block &block(int slot, int word) { return mem_[static_cast<size_t>(slot * W + word)]; }

    uint8_t code(Codes kind)
    {
        static const uint8_t edge[] = {0, 1, 127, 253, 254, 255};
        switch (kind) {
        case NEAR:
            return static_cast<uint8_t>(rng_.chance(10) ? 0 : rng_.range(110, 130));
        case WIDE:
            return static_cast<uint8_t>(rng_.range(0, 254));
        case EDGE:
            return edge[rng_.chance(2) ? 5 : rng_.range(0, 4)];
        default:
            return 127;
        }
    }
    void element_block(Block &k, Data data, Codes codes)
    {
        for (int i = 0; i < 32; i++) {
            int x = data == RANDOM ? static_cast<int>(rng_.range(-127, 127))
                    : data == EXTREME ? (extreme_same_ || rng_.chance(50) ? 127 : -127)
                                      : (rng_.chance(80) ? 0 : static_cast<int>(rng_.range(-2, 2)));
            k.b[i] = static_cast<uint8_t>(x);
        }
        k.b[32] = code(codes);
    }

    // The weight stream of all channels in command order.
    void stream(const std::vector<Command> &cmds, const Options &opt)
    {
        row_tile_.clear();
        for (int n = 0; n < N; n++) {
            row_[n].clear();
            tile_[n].clear();
        }
        size_t t = 0;
        for (const auto &c : cmds) {
            for (int g = 0; g < c.groups; g++, t++) {
                for (int k = 0; k < c.kblocks; k++)
                    row_tile_.push_back(t);
                for (int n = 0; n < N; n++) {
                    Tile tile{};
                    for (int k = 0; k < c.kblocks; k++) {
                        KRow row;
                        for (int col = 0; col < 4; col++) {
                            for (int i = 0; i < 32; i++) {
                                int low = c.fp4 ? -12 : -128, high = c.fp4 ? 12 : 127;
                                int x = opt.data == RANDOM ? static_cast<int>(rng_.range(low, high))
                                        : opt.data == EXTREME
                                            ? (extreme_same_ || rng_.chance(50) ? low : high)
                                            : (rng_.chance(80) ? 0 : static_cast<int>(rng_.range(-2, 2)));
                                row.w[col][i] = static_cast<uint8_t>(x);
                            }
                            row.code[col] = code(opt.codes);
                            tile.max[col] = std::max(tile.max[col], row.code[col]);
                        }
                        row_[n].push_back(row);
                    }
                    for (auto &b : tile.bias)
                        b = rng_.u32();
                    tile_[n].push_back(tile);
                }
            }
        }
    }

    void expect(const std::vector<Command> &cmds)
    {
        want_.clear();
        size_t row0 = 0, tile0 = 0;
        for (const auto &c : cmds) {
            int passes = c.two_pass ? 2 : 1;
            for (int g = 0; g < c.groups; g++, tile0++, row0 += static_cast<size_t>(c.kblocks)) {
                for (int t = 0; t < c.rows; t++) {
                    Beat b{};
                    b.token = t;
                    b.group = g;
                    b.fp4 = c.fp4;
                    b.last = t == c.rows - 1 && g == c.groups - 1;
                    b.grad = c.grad;
                    for (int col = 0; col < C; col++) {
                        int n = col / 4, cc = col % 4;
                        const Tile &tile = tile_[n][tile0];
                        struct mr_grad_sum sum = {0, 0};
                        int64_t acc = 0;
                        for (int p = 0; p < passes; p++) {
                            int slot = t * passes + p;
                            for (int k = 0; k < c.kblocks; k++) {
                                const Block &a = block(slot, c.base + k);
                                const KRow &w = row_[n][row0 + static_cast<size_t>(k)];
                                int d = 0;
                                for (int i = 0; i < 32; i++)
                                    d += a.at(i) * static_cast<int8_t>(w.w[cc][i]);
                                int s = rmax_[c.slot][slot] - a.b[32] + tile.max[cc] - w.code[cc];
                                if (c.grad)
                                    mr_grad_add(&sum, d, c.g, a.b[32], w.code[cc]);
                                else
                                    acc += mr_align(d, s);
                            }
                        }
                        acc = c.grad ? sum.acc : acc;
                        b.flags |= sum.flags;
                        unsigned top = rmax_[c.slot][t * passes];
                        b.acc[col] = static_cast<uint64_t>(acc) & kMask48;
                        overflow_ |= acc >= (1ll << 47) || acc < -(1ll << 47);
                        b.base[col] = top + tile.max[cc];
                        b.nan[col] = top == 255 || tile.max[cc] == 255;
                        b.bias[col] = tile.bias[cc];
                    }
                    want_.push_back(b);
                    flags_[b.flags] += c.grad;
                }
            }
        }
    }

    std::vector<uint8_t> payload()
    {
        std::vector<uint8_t> p;
        for (int c = 0; c < C; c++) {
            for (int i = 0; i < 48; i += 8)
                p.push_back(static_cast<uint8_t>(bench::get(dut_->dr_acc_o, 48 * c + i, 8)));
            for (int i = 0; i < 32; i += 8)
                p.push_back(static_cast<uint8_t>(bench::get(dut_->dr_bias_o, 32 * c + i, 8)));
            p.push_back(static_cast<uint8_t>(bench::get(dut_->dr_base_o, 9 * c, 8)));
            p.push_back(static_cast<uint8_t>(bench::get(dut_->dr_base_o, 9 * c + 8, 1)));
            p.push_back(static_cast<uint8_t>(bench::get(dut_->dr_nan_o, c, 1)));
        }
        p.push_back(static_cast<uint8_t>(dut_->dr_token_o));
        p.push_back(static_cast<uint8_t>(dut_->dr_group_o));
        p.push_back(static_cast<uint8_t>(dut_->dr_fp4_o * 2 + dut_->dr_last_o));
        p.push_back(static_cast<uint8_t>(dut_->dr_flags_o * 2 + dut_->dr_grad_o));
        return p;
    }

    bool check(const Beat &b, size_t index)
    {
        if (dut_->dr_token_o != b.token || dut_->dr_group_o != b.group || dut_->dr_fp4_o != b.fp4 ||
            dut_->dr_last_o != b.last) {
            tap_.note("beat %zu: token %u group %u fp4 %u last %u, want %d %d %d %d", index, dut_->dr_token_o,
                      dut_->dr_group_o, dut_->dr_fp4_o, dut_->dr_last_o, b.token, b.group, b.fp4, b.last);
            return false;
        }
        if (dut_->dr_grad_o != b.grad || dut_->dr_flags_o != b.flags) {
            tap_.note("beat %zu (token %d group %d): grad %u flags %u, want %d %u", index, b.token, b.group,
                      dut_->dr_grad_o, dut_->dr_flags_o, b.grad, b.flags);
            return false;
        }
        for (int c = 0; c < C; c++) {
            uint64_t acc = bench::get(dut_->dr_acc_o, 48 * c, 48);
            auto base = static_cast<unsigned>(bench::get(dut_->dr_base_o, 9 * c, 9));
            bool nan = bench::get(dut_->dr_nan_o, c, 1);
            auto bias = static_cast<uint32_t>(bench::get(dut_->dr_bias_o, 32 * c, 32));
            if (acc != b.acc[c] || base != b.base[c] || nan != b.nan[c] || bias != b.bias[c]) {
                tap_.note("beat %zu (token %d group %d) column %d: acc %012llx base %u nan %d bias %08x, want "
                          "%012llx %u %d %08x",
                          index, b.token, b.group, c, static_cast<unsigned long long>(acc), base, nan, bias,
                          static_cast<unsigned long long>(b.acc[c]), b.base[c], b.nan[c], b.bias[c]);
                return false;
            }
        }
        return true;
    }

  public:
    bool overflow_ = false;
    bool extreme_same_ = false;

  private:
    bench::Dut<Vdut> &dut_;
    bench::Rng &rng_;
    bench::Tap &tap_;
    std::vector<Block> mem_;
    uint8_t rmax_[4][T] = {};
    KRow ring_[N][RING] = {};
    long written_[N] = {}, freed_ = 0;
    std::vector<KRow> row_[N];
    std::vector<Tile> tile_[N];
    std::vector<size_t> row_tile_;
    std::vector<Beat> want_;
    bench::Stall cmd_stall_, drain_stall_;
    std::vector<bench::Stall> row_stall_, tile_stall_;
    uint64_t cmd_stalls_ = 0, weights_ = 0, drains_ = 0;
    uint64_t flags_[4] = {}; // results of GRAD, by their flags
};

Command fixed(int kblocks, int groups, int rows, bool two_pass)
{
    Command c;
    c.two_pass = two_pass;
    c.slot = two_pass ? 2 : 0;
    c.base = c.slot * (W / 4);
    c.kblocks = kblocks;
    c.groups = groups;
    c.rows = rows;
    c.fp4 = false;
    return c;
}

} // namespace

int main(int argc, char **argv)
{
    bench::Args args(argc, argv);
    bench::Rng rng(args.seed);
    bench::Tap tap;
    bench::Dut<Vdut> dut(args);
    auto bp = std::make_unique<Bench>(dut, rng, tap);
    Bench &b = *bp;
    b.reset();

    // Random shapes.
    static const struct {
        const char *name;
        Data data;
        Codes codes;
    } kinds[] = {{"near codes", RANDOM, NEAR},
                 {"wide codes", RANDOM, WIDE},
                 {"edge codes", RANDOM, EDGE},
                 {"extreme elements", EXTREME, WIDE},
                 {"zeros", ZEROS, NEAR}};
    int cases = args.cases_or(6);
    for (const auto &k : kinds) {
        bool good = true;
        for (int i = 0; i < cases && good; i++) {
            b.fill(k.data, k.codes);
            std::vector<Command> cmds;
            for (int j = 0; j < 8; j++) {
                int most = rng.chance(40) ? 3 : rng.chance(80) ? 16 : std::min(kMax, 64);
                cmds.push_back(b.random_command(static_cast<int>(rng.range(2, most)),
                                                static_cast<int>(rng.range(1, 4))));
            }
            if (rng.chance(50)) // no token at all: the weights are consumed
                cmds[static_cast<size_t>(rng.range(0, 7))].rows = 0;
            Options opt;
            opt.data = k.data;
            opt.codes = k.codes;
            if (rng.chance(50)) {
                opt.abort_after = rng.range(0, 300);
                b.run(cmds, opt);
                b.reset();
                opt.abort_after = -1;
            }
            Result r = b.run(cmds, opt);
            b.count(r);
            good &= r.good;
        }
        tap.ok(good, std::string("array: random commands, ") + k.name);
    }

    // Until each pair of flags has been seen: a NaN alone is rare.
    bool flagged = true;
    for (int i = 0; kGrad && flagged && i < 200 && !b.flags_seen(); i++) {
        b.fill(RANDOM, EDGE);
        Options opt;
        opt.codes = EDGE;
        flagged = b.run({b.random_command(2, 2), b.random_command(3, 1)}, opt).good;
    }
    if (kGrad)
        tap.ok(flagged, "array: every pair of flags");

    // A slow drain and few k-blocks: the result FIFO is full most of the time.
    {
        b.fill(RANDOM, NEAR);
        std::vector<Command> cmds;
        for (int j = 0; j < 6; j++)
            cmds.push_back(b.random_command(static_cast<int>(rng.range(2, 4)), static_cast<int>(rng.range(2, 6))));
        cmds[0].rows = T / 2;
        cmds[0].groups = 40;
        Options opt;
        opt.drain = 20 / kFold;
        Result r = b.run(cmds, opt);
        b.count(r);
        tap.ok(r.good, "array: slow drain");
    }

    // Longest contraction, every product extreme and every exponent equal: the largest sums there are.
    {
        Options opt;
        opt.data = EXTREME;
        opt.codes = EQUAL;
        b.extreme_same_ = true;
        b.fill(EXTREME, EQUAL);
        Result r = b.run({fixed(kMax, 1, std::min(T / 2, R + 1), true), fixed(kMax, 2, 1, false)}, opt);
        b.extreme_same_ = false;
        tap.note("%d k-blocks", kMax);
        tap.ok(r.good && !b.overflow_, "array: longest contraction of extremes");
    }

    // Cycle counts without stalls.
    b.fill(RANDOM, NEAR);
    Options fast;
    fast.stalls = false;
    {
        Result r = b.run({fixed(8, 1, 1, false)}, fast);
        tap.note("accept to first step %ld, last step to result %ld", r.first_step - r.accepted,
                 r.first_beat - r.last_step);
        tap.ok(r.good && r.first_step - r.accepted == 2 && r.first_beat - r.last_step == 12 + kFold,
               "array: latency 2 to the first step, 13 from the last step to the result, 16 with FOLD");
    }
    {
        // Weights arrive a k-row a cycle, commands of several shapes, row groups no shorter than the drain.
        int k = std::max(R + 1, 4);
        std::vector<Command> cmds = {fixed(k, 3, T, false), fixed(k + 3, 2, 1, false), fixed(k, 4, T / 2, true),
                                     fixed(k, 1, 1, true), fixed(k, 1, R, false), fixed(kMax, 1, R, false),
                                     fixed(k, 1, R + 1, false)};
        Result r = b.run(cmds, fast);
        long span = r.last_step - r.first_step + 1;
        tap.note("%ld steps in %ld cycles", r.steps, span);
        tap.ok(r.good && span == (r.steps - 1) * kFold + 1 && r.n_weights <= 4 && r.n_drain == 0,
               "array: no bubble between row groups, tiles and commands");
    }
    {
        // Two k-blocks, one live row: a tile every two cycles.
        Result r = b.run({fixed(2, 30, 1, false), fixed(2, 30, 1, false)}, fast);
        tap.ok(r.good && r.last_step - r.first_step == 119 * kFold, "array: two k-blocks and one row, no bubble");
    }
    {
        // Two k-blocks, R live rows: the drain takes R cycles a row group.
        int groups = 40;
        Result r = b.run({fixed(2, groups, R, false)}, fast);
        long want = kFold + 1 + (groups - 1) * std::max(2 * kFold, R);
        tap.note("%ld cycles, want %ld", r.last_step - r.first_step + 1, want);
        tap.ok(r.good && r.last_step - r.first_step + 1 == want && (R < 4 || r.n_drain > 0),
               "array: two k-blocks and all rows, at the drain's rate");
    }
    tap.ok(b.covered(), "array: every stall seen");
    return tap.done();
}
