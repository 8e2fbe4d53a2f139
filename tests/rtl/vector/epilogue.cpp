// SPDX-License-Identifier: Apache-2.0
// mr_epilogue with the shared quantiser and the prefix maxima, against a reference of one function per
// step on host/cmodel/num. Batches of commands run back to back, with random flags, values from
// ordinary to NaN, and random stalls everywhere; LayerNorm's blocks cut in. Compared: the sequence
// of blocks with addresses and flags, every residual word, exponent and prefix maximum, every byte of the
// result window, and that done comes in order and not early. With TRAIN residual commands are for one
// of two row memories, and some of them set its words; the results of some commands leave for mr_turn
// as well, which has room for a beat or not, and done waits for what comes of them. What enters GELU
// leaves for mr_slopes, or factors come from it.
#include "Vdut.h"
#include "bench.h"
extern "C" {
extern "C" {
#include "cmodel/command.h"
}
#include "cmodel/num.h"
}
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

using namespace bench;

#if defined(VARIANT_n2train)
constexpr unsigned N = 2, T = 40;
constexpr bool TRAIN = true;
#else
constexpr bool TRAIN = false;
#endif
#if defined(VARIANT_n2train)
#elif defined(VARIANT_n1)
constexpr unsigned N = 1, T = 8;
#elif defined(VARIANT_n2)
constexpr unsigned N = 2, T = 40; // more units than the reader's queue holds
#elif defined(VARIANT_n8)
constexpr unsigned N = 8, T = 16;
#else
constexpr unsigned N = 16, T = 32;
#endif
constexpr unsigned V = 4 * N, D_MAX = 256, ROT_MAX = 128, QKV_WORDS = 32, PM_WORDS = 8;
enum { ACT, QKV, RES, RESULT };

struct Cmd {
    unsigned cols, rows, dst, base, slot, rotary_dim, head_lanes, out_cols, out_off, stride;
    unsigned function;
    bool bias, rotary, pmax, track, fp4, second, set, turned, turn_bad, tiles, tile_bad, keep, slope;
    // Counted since the start of the test when the command is stored.
    uint64_t blocks_end = 0, words_end = 0, jobs_end = 0, turns_end = 0, tiles_end = 0, keeps_end = 0;
};
struct TurnBeat {
    std::array<uint32_t, V> v;
    unsigned token, group;
    bool last, bad; // bad: what comes of the command cannot be stored
};
struct DrBeat {
    std::array<int64_t, V> acc;
    std::array<unsigned, V> base;
    std::array<bool, V> nan;
    std::array<uint32_t, V> bias;
    unsigned token, group;
    bool fp4, last;
};
struct Block {
    uint64_t addr; // slot << 16 | word; QKV: word address << 1 | half
    bool qkv, first, lo, ln;
    unsigned region;
    std::array<uint8_t, 33> q;
    bool operator==(const Block &) const = default;
};
using Beat = std::array<uint8_t, 64>;

static Rng *g_rng;

// Floats of every kind, mostly ordinary.
static uint32_t odd_float(int weird)
{
    Rng &r = *g_rng;
    if (r.chance(weird)) {
        static const uint32_t k[] = {0,          0x80000000, 0x7F800000, 0xFF800000, 0x7FC00000,
                                     0x00000001, 0x807FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800001};
        return k[r.range(0, 9)];
    }
    return (r.u32() & 0x807FFFFF) | static_cast<uint32_t>(r.range(115, 135)) << 23;
}

struct Env {
    Tap &tap;
    Rng rng;
    Dut<Vdut> dut;
    Stall cfg, dr, act, ln, jr, data, room, tile_room, slope_room, slope_has;
    // device state
    std::vector<uint32_t> rot, res, res_model; // the second row memory behind the first one
    std::map<unsigned, unsigned> rexp_model;
    std::vector<uint8_t> pm_model;
    std::map<uint64_t, uint8_t> out, out_model; // result window by byte
    uint64_t out_base = 0x123456000ull;
    uint32_t out_limit = 0;
    bool two_pass = false;
    uint64_t continues = 0;
    // streams
    std::deque<Cmd> cfgs, running;
    std::deque<DrBeat> beats;
    std::deque<Block> want_epi, want_ln;
    std::deque<std::pair<std::array<uint32_t, 32>, Block>> ln_in;
    unsigned ln_beat = 0;
    struct Job {
        uint64_t addr, strb;
        unsigned left;
    };
    std::deque<Job> jobs;
    unsigned acks = 0;
    std::deque<TurnBeat> want_turn;
    std::deque<uint64_t> turn_at;              // when beats that were taken come
    std::deque<std::pair<int, bool>> turn_ends; // commands whose beats came: cycles to done, bad
    uint64_t turns = 0, want_turns = 0, bad_turn = 0;
    // Where what cannot be stored would end; whether it is told while no other one waits to be reported, whose address
    // would be kept.
    using Where = std::deque<std::pair<uint64_t, bool>>;
    Where turn_addrs, tile_addrs;
    uint64_t reported = 0, addresses = 0;
    std::deque<std::pair<unsigned, bool>> want_tiles; // of each command the blocks that have not begun
    std::deque<std::pair<int, bool>> tile_ends;
    uint64_t tiles = 0, want_tile_cmds = 0;
    using Word = std::array<uint32_t, V>;
    struct Entry {
        Word x;
        unsigned function;
        bool last;
    };
    std::deque<Entry> want_x; // what enters functions of beats whose slopes are kept; the last one
    std::deque<Word> factors;
    std::deque<uint64_t> x_at, pop_at;
    std::deque<int> keep_ends;
    Word factor1{}, factor2{}; // popped a cycle and two cycles ago
    bool popped1 = false, popped2 = false;
    uint64_t keeps = 0, want_keeps = 0, pops = 0, bad_slope = 0;
    bool cfg_on = false, dr_on = false, ln_on = false;
    uint64_t blocks = 0, words = 0, acked = 0, want_blocks = 0, want_words = 0, want_jobs = 0, minus_zeros = 0;
    uint64_t ln_acks = 0, ln_blocks = 0, errs = 0, sticky_nan = 0, sticky_ovf = 0;
    unsigned bad_block = 0, bad_done = 0, done = 0, longest_job = 0;
    bool rot_r = false, res_r = false;
    unsigned rot_a = 0, res_a = 0;

    Env(Args &a, Tap &t)
        : tap(t), rng(a.seed), dut(a), cfg(rng, "cfg_valid"), dr(rng, "dr_valid"),
          act(rng, "act_ready"), ln(rng, "ln_valid"), jr(rng, "job_ready"), data(rng, "data_ready"), room(rng, "tn_room"), tile_room(rng, "tl_room"),
          slope_room(rng, "sl_room"), slope_has(rng, "sl_has"),
          rot(T * ROT_MAX), res(2 * T * D_MAX), res_model(2 * T * D_MAX), pm_model(T * PM_WORDS * 2)
    {
        dut->cfg_valid_i = dut->dr_valid_i = dut->ln_valid_i = 0;
        dut->ld_we_i = dut->rexp_we_i = dut->rexp_ren_i = dut->pm_a_ren_i = dut->pm_b_ren_i = 0;
        dut->job_done_i = 0;
        dut.reset();
    }
    template <class P> void put_words(P &p, const uint32_t *w)
    {
        for (unsigned i = 0; i < V; i++)
            set(p, static_cast<int>(32 * i), 32, w[i]);
    }
    void cycle()
    {
        if (rot_r)
            put_words(dut->rot_rdata_i, &rot[rot_a * V]);
        if (res_r)
            put_words(dut->res_rdata_i, &res[res_a * V]);
        dut->act_ready_i = act.want();
        dut->job_ready_i = jr.want() && jobs.empty();
        dut->data_ready_i = data.want() && !jobs.empty();
        dut->job_done_i = acks > 0 && rng.chance(20);
        dut->tn_room_i = room.want();
        dut->tn_done_i = !turn_ends.empty() && turn_ends.front().first <= 0;
        dut->tn_bad_i = dut->tn_done_i && turn_ends.front().second;
        dut->tn_bad_addr_i = rng.u64();
        dut->tl_room_i = tile_room.want();
        dut->tl_done_i = !tile_ends.empty() && tile_ends.front().first <= 0;
        dut->tl_bad_i = dut->tl_done_i && tile_ends.front().second;
        dut->tl_bad_addr_i = rng.u64();
        bool alone = turn_addrs.empty() && tile_addrs.empty() && dut.cycles() > reported + 4;
        if (dut->tn_bad_i)
            turn_addrs.push_back({dut->tn_bad_addr_i, alone});
        if (dut->tl_bad_i)
            tile_addrs.push_back({dut->tl_bad_addr_i, alone});
        dut->sl_room_i = slope_room.want();
        dut->sl_has_i = slope_has.want();
        dut->sl_done_i = !keep_ends.empty() && keep_ends.front() <= 0;
        for (unsigned i = 0; i < V; i++)
            set(dut->sl_f_i, static_cast<int>(32 * i), 32, popped2 ? factor2[i] : rng.u32());
        bool go = cfg.want();
        if (!cfg_on && go && !cfgs.empty()) {
            cfg_on = true;
            const Cmd &c = cfgs.front();
            struct mr_command cmd = {};
            const std::pair<unsigned, uint32_t> fields[] = {
                {MR_F_MATMUL_COLS, c.cols}, {MR_F_MATMUL_DST, c.dst}, {MR_F_MATMUL_DST_BASE, c.base},
                {MR_F_MATMUL_DST_SLOT, c.slot}, {MR_F_MATMUL_BIAS, c.bias}, {MR_F_MATMUL_ROTARY, c.rotary},
                {MR_F_MATMUL_FUNCTION, c.function}, {MR_F_MATMUL_PREFIX_MAX, c.pmax}, {MR_F_MATMUL_TRACK_EXP, c.track},
                {MR_F_MATMUL_ROTARY_DIM, c.rotary_dim}, {MR_F_MATMUL_HEAD_LANES, c.head_lanes},
                {MR_F_MATMUL_OUT_COLS, c.out_cols}, {MR_F_MATMUL_OUT_OFF, c.out_off},
                {MR_F_MATMUL_OUT_STRIDE, c.stride}, {MR_F_MATMUL_ROW, c.second}, {MR_F_MATMUL_SET, c.set},
                {MR_F_MATMUL_TURNED, c.turned}, {MR_F_MATMUL_TILES, c.tiles}, {MR_F_MATMUL_KEEP_SLOPE, c.keep},
                {MR_F_MATMUL_SLOPE, c.slope}};
            for (auto [field, value] : fields)
                mr_command_set(&cmd, field, value);
            for (int i = 0; i < 16; i++)
                set(dut->cmd_i, 32 * i, 32, cmd.word[i]);
            dut->cfg_rows_i = static_cast<uint16_t>(c.rows);
            dut->two_pass_i = two_pass;
        }
        dut->cfg_valid_i = cfg_on;
        go = dr.want();
        if (!dr_on && go && !beats.empty()) {
            dr_on = true;
            const DrBeat &b = beats.front();
            for (unsigned i = 0; i < V; i++) {
                set(dut->dr_acc_i, static_cast<int>(48 * i), 48, static_cast<uint64_t>(b.acc[i]));
                set(dut->dr_base_i, static_cast<int>(9 * i), 9, b.base[i]);
                set(dut->dr_nan_i, static_cast<int>(i), 1, b.nan[i]);
                set(dut->dr_bias_i, static_cast<int>(32 * i), 32, b.bias[i]);
            }
            dut->dr_token_i = static_cast<uint16_t>(b.token);
            dut->dr_group_i = static_cast<uint16_t>(b.group);
            dut->dr_fp4_i = b.fp4;
            dut->dr_last_i = b.last;
        }
        dut->dr_valid_i = dr_on;
        go = ln.want();
        if (!ln_on && go && !ln_in.empty()) {
            ln_on = true;
            const auto &[f, b] = ln_in.front();
            for (unsigned i = 0; i < V; i++)
                set(dut->ln_data_i, static_cast<int>(32 * i), 32, f[(ln_beat * V + i) % 32]);
            uint64_t tag = (b.addr >> 16) << 19 | (b.addr & 0xFFFF) << 3 | b.region << 1 | b.first;
            dut->ln_tag_i = tag;
        }
        dut->ln_valid_i = ln_on;
        dut.settle();

        cfg.saw(!cfgs.empty() && dut->cfg_ready_o);
        dr.saw(!beats.empty() && dut->dr_ready_o);
        act.saw(dut->act_valid_o);
        ln.saw(!ln_in.empty() && dut->ln_ready_o);
        jr.saw(dut->job_valid_o && jobs.empty());
        data.saw(dut->data_valid_o && !jobs.empty());
        rot_r = dut->rot_ren_o;
        rot_a = dut->rot_raddr_o;
        res_r = dut->res_ren_o;
        const unsigned memory = dut->res_second_o ? T * D_MAX / V : 0;
        res_a = memory + dut->res_raddr_o;
        if (res_r && dut->res_we_o && memory + dut->res_waddr_o == res_a)
            bad_done++; // a hazard that the unit must exclude
        if (cfg_on && dut->cfg_ready_o) {
            cfg_on = false;
            running.push_back(cfgs.front());
            cfgs.pop_front();
        }
        if (dr_on && dut->dr_ready_o) {
            dr_on = false;
            beats.pop_front();
        }
        if (ln_on && dut->ln_ready_o) {
            ln_on = false;
            if (++ln_beat >= std::max(1u, 32 / V)) {
                ln_beat = 0;
                want_ln.push_back(ln_in.front().second);
                if (V > 32) { // the same block twice in a beat
                    Block second = ln_in.front().second;
                    second.addr++;
                    second.first = false;
                    want_ln.push_back(second);
                }
                ln_in.pop_front();
            }
        }
        ln_acks += dut->ln_ack_o;
        turned();
        slopes();
        errs += dut->err_valid_o;
        sticky_nan += dut->sticky_nan_o;
        sticky_ovf += dut->sticky_ovf_o;
        // A q/k/v write is one cycle behind its block, an activation write is not: see it first.
        if (dut->qkv_we_o) {
            Block b{static_cast<uint64_t>(dut->qkv_waddr_o) << 1 | (dut->qkv_we_o == 2), true,
                    false,  false, false, 0, {}};
            for (size_t i = 0; i < 33; i++)
                b.q[i] = static_cast<uint8_t>(
                    get(dut->qkv_wdata_o, static_cast<int>((dut->qkv_we_o == 2 ? 264 : 0) + 8 * i), 8));
            if (dut->qkv_we_o == 3)
                bad_block++;
            see(b, false);
        }
        if (dut->act_valid_o && dut->act_ready_i) {
            Block b{static_cast<uint64_t>(dut->act_slot_o) << 16 | dut->act_word_o, false,
                    static_cast<bool>(dut->act_first_o), static_cast<bool>(dut->act_lo_o), false,
                    dut->act_region_o, {}};
            take_bytes(dut->act_data_o, b.q.data(), 33);
            see(b, dut->act_slot_o >= 0x4000);
        }
        if (dut->res_we_o) {
            words++;
            for (unsigned i = 0; i < V; i++)
                res[(memory + dut->res_waddr_o) * V + i] =
                    static_cast<uint32_t>(get(dut->res_wdata_o, static_cast<int>(32 * i), 32));
        }
        if (dut->job_done_i) {
            acks--;
            acked++;
        }
        if (dut->data_valid_o && dut->data_ready_i) {
            Beat b;
            take_bytes(dut->data_o, b.data(), 64);
            Job &j = jobs.front();
            for (size_t i = 0; i < 64; i++)
                if (j.left > 1 || (j.strb >> i) & 1)
                    out[j.addr + i] = b[i];
            j.addr += 64;
            if (--j.left == 0) {
                jobs.pop_front();
                acks++;
            }
        }
        if (dut->job_valid_o && dut->job_ready_i) {
            jobs.push_back({dut->job_addr_o, dut->job_strb_o, dut->job_beats_o});
            longest_job = std::max<unsigned>(longest_job, dut->job_beats_o);
        }
        if (dut->done_o) {
            done++;
            if (running.empty()) {
                bad_done++;
            } else {
                const Cmd &c = running.front();
                if (blocks < c.blocks_end || words < c.words_end || acked < c.jobs_end || turns < c.turns_end ||
                    tiles < c.tiles_end || keeps < c.keeps_end)
                    bad_done++;
                if (c.turn_bad || c.tile_bad)
                    bad_done += !reports(c);
                running.pop_front();
            }
        }
        dut.edge();
    }
    // Whether the error of a command that could not be stored is there, and says where: of tiles first.
    bool reports(const Cmd &c)
    {
        bool right = dut->err_valid_o;
        for (Where *w : {c.tile_bad ? &tile_addrs : nullptr, c.turn_bad ? &turn_addrs : nullptr}) {
            if (!w)
                continue;
            if (w->empty())
                return false;
            if ((w == &tile_addrs || !c.tile_bad) && w->front().second) {
                right = right && dut->err_addr_o == w->front().first;
                addresses++;
            }
            w->pop_front();
        }
        reported = dut.cycles();
        return right;
    }
    // Beats for mr_turn: where there is room, 26 cycles after they are taken.
    void turned()
    {
        for (auto &t : turn_ends)
            t.first--;
        if (dut->tn_done_i) {
            turn_ends.pop_front();
            turns++;
        }
        for (auto &t : tile_ends)
            t.first--;
        if (dut->tl_done_i) {
            tile_ends.pop_front();
            tiles++;
        }
        tile_room.saw(!want_tiles.empty());
        if (dut->tl_take_o) {
            bad_turn += !dut->tl_room_i || !TRAIN || want_tiles.empty();
            if (!want_tiles.empty() && --want_tiles.front().first == 0) {
                tile_ends.push_back({static_cast<int>(rng.range(0, rng.chance(50) ? 10 : 1000)), want_tiles.front().second});
                want_tiles.pop_front();
            }
        }
        room.saw(!want_turn.empty());
        if (dut->tn_take_o) {
            bad_turn += !dut->tn_room_i || !TRAIN;
            turn_at.push_back(dut.cycles() + 26);
        }
        if (!dut->tn_valid_o)
            return;
        bool same = !want_turn.empty() && !turn_at.empty() && turn_at.front() == dut.cycles() &&
                    want_turn.front().token == dut->tn_token_o && want_turn.front().group == dut->tn_group_o &&
                    want_turn.front().last == dut->tn_last_o;
        for (unsigned i = 0; i < V && same; i++)
            same = get(dut->tn_data_o, static_cast<int>(32 * i), 32) == want_turn.front().v[i];
        bad_turn += !same;
        if (!same && bad_turn < 3)
            tap.note("beat for mr_turn: token %u group %u last %u, %zu wanted, %zu taken", dut->tn_token_o,
                     dut->tn_group_o, dut->tn_last_o, want_turn.size(), turn_at.size());
        if (dut->tn_last_o && !want_turn.empty())
            turn_ends.push_back({static_cast<int>(rng.range(0, rng.chance(50) ? 10 : 1000)), want_turn.front().bad});
        if (!want_turn.empty())
            want_turn.pop_front();
        if (!turn_at.empty())
            turn_at.pop_front();
    }
    // Slopes: where there is room, 15 cycles after a beat is taken; factors where there are some, asked
    // for five cycles after.
    void slopes()
    {
        for (auto &k : keep_ends)
            k--;
        if (dut->sl_done_i) {
            keep_ends.pop_front();
            keeps++;
        }
        slope_room.saw(!want_x.empty());
        slope_has.saw(!factors.empty());
        if (dut->sl_take_o) {
            bad_slope += !dut->sl_room_i || !TRAIN;
            x_at.push_back(dut.cycles() + 15);
        }
        if (dut->sl_use_o) {
            bad_slope += !dut->sl_has_i || !TRAIN;
            pop_at.push_back(dut.cycles() + 5);
        }
        popped2 = popped1;
        factor2 = factor1;
        popped1 = dut->sl_pop_o;
        if (popped1) {
            bool same = !factors.empty() && !pop_at.empty() && pop_at.front() == dut.cycles();
            bad_slope += !same;
            pops++;
            if (same) {
                factor1 = factors.front();
                factors.pop_front();
                pop_at.pop_front();
            }
        }
        if (!dut->sl_x_valid_o)
            return;
        bool same = !want_x.empty() && !x_at.empty() && x_at.front() == dut.cycles();
        for (unsigned i = 0; i < V && same; i++)
            same = get(dut->sl_x_o, static_cast<int>(32 * i), 32) == want_x.front().x[i];
        same = same && dut->sl_x_fn_o == want_x.front().function;
        bad_slope += !same;
        if (same) {
            if (want_x.front().last)
                keep_ends.push_back(static_cast<int>(rng.range(0, rng.chance(50) ? 10 : 1000)));
            want_x.pop_front();
            x_at.pop_front();
        }
    }
    void see(Block b, bool is_ln)
    {
        auto &q = is_ln ? want_ln : want_epi;
        if (!is_ln)
            blocks++;
        else
            ln_blocks++;
        if (q.empty() || !(q.front() == b)) {
            if (bad_block++ < 3) {
                tap.note("block: addr %llx first %d lo %d region %u code %u q0 %d, want",
                         static_cast<unsigned long long>(b.addr), b.first, b.lo, b.region, b.q[32],
                         b.q[0]);
                if (!q.empty())
                    tap.note("       addr %llx first %d lo %d region %u code %u q0 %d",
                             static_cast<unsigned long long>(q.front().addr), q.front().first,
                             q.front().lo, q.front().region, q.front().q[32], q.front().q[0]);
            }
        }
        if (!q.empty())
            q.pop_front();
    }

    // One command: its beats, and what it must do.
    void add(Cmd c)
    {
        unsigned groups = c.cols / V;
        std::vector<std::vector<float>> y(c.rows, std::vector<float>(c.cols));
        int weird = rng.chance(30) ? 5 : 0;
        std::vector<uint32_t> bias(c.cols);
        for (auto &b : bias)
            b = odd_float(weird);
        for (unsigned j = 0; j < groups; j++)
            for (unsigned t = 0; t < c.rows; t++) {
                DrBeat b;
                b.token = t;
                b.group = j;
                b.fp4 = c.fp4;
                b.last = j + 1 == groups && t + 1 == c.rows;
                for (unsigned i = 0; i < V; i++) {
                    int64_t a = static_cast<int64_t>(rng.u64()) >> rng.range(17, 63);
                    b.acc[i] = rng.chance(4) ? 0 : a;
                    b.base[i] = static_cast<unsigned>(weird && rng.chance(5) ? rng.range(0, 510)
                                                                             : rng.range(245, 275));
                    if (c.set && rng.chance(5)) // some become -0
                        b.base[i] = static_cast<unsigned>(rng.range(0, 40));
                    b.nan[i] = weird && rng.chance(1);
                    b.bias[i] = c.bias ? bias[j * V + i] : rng.u32();
                    float x = b.nan[i] ? mr_qnan()
                                       : mr_acc_to_f32(b.acc[i],
                                                       c.fp4 ? MR_ACC_EXP_FP4(static_cast<int>(b.base[i]))
                                                             : MR_ACC_EXP_INT8(static_cast<int>(b.base[i])));
                    y[t][j * V + i] = c.bias ? mr_fadd(x, mr_float(b.bias[i])) : x;
                }
                beats.push_back(b);
            }
        for (unsigned t = 0; t < c.rows; t++) {
            if (c.rotary)
                for (unsigned k = 0; k < c.cols; k += 2) {
                    unsigned h = k % c.head_lanes;
                    if (h >= c.rotary_dim)
                        continue;
                    float co = mr_float(rot[t * ROT_MAX + h]), si = mr_float(rot[t * ROT_MAX + h + 1]);
                    float x0 = y[t][k], x1 = y[t][k + 1];
                    y[t][k] = mr_fsub(mr_fmul(x0, co), mr_fmul(x1, si));
                    y[t][k + 1] = mr_fadd(mr_fmul(x1, co), mr_fmul(x0, si));
                }
        }
        for (unsigned j = 0; j < groups; j++)
            for (unsigned t = 0; t < c.rows; t++) {
                Word w;
                for (unsigned i = 0; i < V; i++) {
                    float &x = y[t][j * V + i];
                    w[i] = c.slope ? odd_float(weird) : mr_bits(x);
                    if (c.slope)
                        x = mr_fmul(x, mr_float(w[i]));
                    if (c.function != MR_FUNCTION_NONE)
                        x = mr_function(c.function, x);
                }
                if (c.keep)
                    want_x.push_back({w, c.function, j + 1 == groups && t + 1 == c.rows});
                if (c.slope)
                    factors.push_back(w);
            }
        want_keeps += c.keep;
        for (unsigned j = 0; j < groups && c.turned; j++)
            for (unsigned t = 0; t < c.rows; t++) {
                TurnBeat b{{}, t, j, j + 1 == groups && t + 1 == c.rows, c.turn_bad};
                for (unsigned i = 0; i < V; i++)
                    b.v[i] = mr_bits(y[t][j * V + i]);
                want_turn.push_back(b);
            }
        want_turns += c.turned;
        want_tile_cmds += c.tiles;
        if (c.tiles)
            want_tiles.push_back({c.rows * c.cols / 32, c.tile_bad});
        if (c.dst == ACT || c.dst == QKV) {
            for (unsigned g = 0; g < c.cols / std::max(32u, V); g++)
                for (unsigned t = 0; t < c.rows; t++)
                    for (unsigned s = 0; s < std::max(1u, V / 32); s++) {
                        unsigned b = g * std::max(1u, V / 32) + s;
                        block(c, t, b, &y[t][32 * b]);
                    }
        } else if (c.dst == RES) {
            for (unsigned t = 0; t < c.rows; t++)
                for (unsigned k = 0; k < c.cols; k++) {
                    uint32_t &r = res_model[(c.second ? T * D_MAX : 0) + t * D_MAX + k];
                    minus_zeros += c.set && mr_bits(y[t][k]) == 0x80000000u;
                    r = mr_bits(c.set ? y[t][k] : mr_fadd(mr_float(r), y[t][k]));
                    if (c.track) {
                        unsigned e = mr_expo(mr_float(r));
                        if (k == 0)
                            rexp_model[t] = 0;
                        rexp_model[t] = std::max(rexp_model[t], e);
                    }
                }
            want_words += c.rows * groups;
        } else {
            unsigned span = c.rows * 4 <= T ? 256 : c.rows * 2 <= T ? 128 : 64;
            for (unsigned t = 0; t < c.rows; t++)
                for (unsigned k = 0; k < c.out_cols; k += span) {
                    unsigned n = std::min(span, c.out_cols - k);
                    uint64_t off = c.out_off + static_cast<uint64_t>(t) * c.stride + k / 16;
                    if (off + (n + 15) / 16 > out_limit)
                        continue;
                    want_jobs++;
                    for (unsigned i = 0; i < n; i++)
                        for (unsigned b = 0; b < 4; b++)
                            out_model[out_base + 64 * off + 4 * i + b] =
                                static_cast<uint8_t>(mr_bits(y[t][k + i]) >> (8 * b));
                }
        }
        c.blocks_end = want_blocks;
        c.words_end = want_words;
        c.jobs_end = want_jobs;
        c.turns_end = want_turns;
        c.tiles_end = want_tile_cmds;
        c.keeps_end = want_keeps;
        cfgs.push_back(c);
    }
    void block(const Cmd &c, unsigned t, unsigned b, const float *x)
    {
        float v[32];
        memcpy(v, x, sizeof v);
        for (unsigned p = 0; p < (two_pass ? 2u : 1u); p++) {
            int8_t q[32];
            uint8_t code = mr_mxint8_quantise(v, q);
            unsigned slot = two_pass ? 2 * t + p : t;
            Block e{};
            e.qkv = c.dst == QKV;
            if (e.qkv) {
                e.addr = static_cast<uint64_t>(slot * QKV_WORDS + c.base + b / 2) << 1 | (b & 1);
            } else {
                e.addr = static_cast<uint64_t>(slot) << 16 | (c.base + b);
                e.first = b == 0;
                e.lo = p == 1;
                e.region = c.slot;
            }
            memcpy(e.q.data(), q, 32);
            e.q[32] = code;
            want_epi.push_back(e);
            want_blocks++;
            if (p == 0 && c.pmax && e.qkv) {
                uint8_t *pm = &pm_model[t * PM_WORDS * 2 + b];
                uint8_t prior = (continues >> t) & 1 ? pm[-static_cast<int>(PM_WORDS) * 2] : *pm;
                *pm = std::max(code, prior);
            }
            float lo[32];
            mr_mxint8_residue(v, code, q, lo);
            memcpy(v, lo, sizeof v);
        }
    }
    bool idle() const
    {
        return cfgs.empty() && running.empty() && beats.empty() && ln_in.empty() && want_ln.empty() &&
               want_epi.empty() && want_turn.empty() && turn_ends.empty() &&
               want_tiles.empty() && tile_ends.empty() && want_x.empty() && keep_ends.empty() &&
               factors.empty();
    }
};

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Env e(args, tap);
    Rng &rng = e.rng;
    g_rng = &rng;
    e.ln.density(60); // its blocks are few
    bool res_ok = true, rexp_ok = true, pm_ok = true, out_ok = true, finished = true;
    unsigned total = 0, dsts = 0, spans = 0, two = 0, zero = 0, kinds = 0;
    int n = args.cases_or(N == 1 ? 60 : 30);
    uint64_t err_jobs = 0;
    for (int k = 0; k < n && finished; k++) {
        e.two_pass = rng.chance(40);
        unsigned rows = k == 0   ? 1
                        : k % 5 == 1 ? (e.two_pass ? T / 2 : T)
                                 : static_cast<unsigned>(rng.range(1, e.two_pass ? T / 2 : T));
        two += e.two_pass;
        // Every fifth batch: the shortest residual commands, beat on beat, for the hazards of the
        // read-modify-writes.
        bool tight = k % 5 == 4;
        for (Stall *s : {&e.cfg, &e.dr}) {
            if (tight)
                s->density(100);
            else
                s->random();
        }
        if (tight)
            rows = 2 - static_cast<unsigned>(k / 5 % 2);
        e.continues = rng.u64() & ((1ull << T) - 2);
        if (rng.chance(20))
            e.continues = (1ull << T) - 2;
        set(e.dut->row_continues_i, 0, T, e.continues);
        e.dut->two_pass_i = e.two_pass;
        for (auto &x : e.rot)
            x = rng.chance(1) ? odd_float(50)
                              : mr_bits(static_cast<float>(rng.unit() * 2 - 1));
        int weird = rng.chance(20) ? 3 : 0;
        for (size_t i = 0; i < e.res.size(); i++)
            e.res[i] = e.res_model[i] = odd_float(weird);
        for (unsigned t = 0; t < T; t++) // as mr_rows does
        {
            e.dut->rexp_we_i = 1;
            e.dut->rexp_waddr_i = static_cast<uint8_t>(t);
            e.dut->rexp_wdata_i = static_cast<uint8_t>(e.rexp_model[t] = rng.u32() & 255);
            for (unsigned w = 0; w < PM_WORDS; w++) { // as PM_LOAD does
                e.dut->ld_we_i = 1;
                e.dut->ld_waddr_i = static_cast<uint16_t>(t * PM_WORDS + w);
                e.dut->ld_wdata_i = static_cast<uint16_t>(rng.u32() & rng.u32());
                memcpy(&e.pm_model[(t * PM_WORDS + w) * 2], &e.dut->ld_wdata_i, 2);
                e.cycle();
                e.dut->rexp_we_i = 0;
            }
            e.dut->ld_we_i = 0;
        }
        e.out.clear();
        e.out_model.clear();
        e.out_limit = 100000;
        e.dut->out_base_i = e.out_base;
        bool window = rng.chance(10);
        int cmds = tight ? 8 : static_cast<int>(rng.range(1, 6));
        if (tight)
            window = false;
        for (int i = 0; i < cmds; i++) {
            Cmd c{};
            c.dst = static_cast<unsigned>(rng.range(0, 3));
            c.cols = 64 * static_cast<unsigned>(rng.range(1, 4));
            c.rows = rows;
            c.base = static_cast<unsigned>(rng.range(0, c.dst == QKV ? QKV_WORDS - 4 : 900));
            c.slot = static_cast<unsigned>(rng.range(0, 3));
            c.bias = rng.chance(50);
            c.rotary = rng.chance(40);
            c.function = rng.chance(30) ? static_cast<unsigned>(rng.range(MR_FUNCTION_GELU_NEW, MR_FUNCTION_RELU)) : MR_FUNCTION_NONE;
            c.pmax = rng.chance(50);
            c.track = rng.chance(60);
            c.fp4 = rng.chance(30);
            c.second = TRAIN && rng.chance(50);
            c.set = TRAIN && rng.chance(50);
            c.head_lanes = 64 * static_cast<unsigned>(rng.range(1, 4));
            c.rotary_dim = 2 * static_cast<unsigned>(rng.range(1, std::min(ROT_MAX, c.head_lanes) / 2));
            if (rng.chance(20))
                c.rotary_dim = std::min(ROT_MAX, c.head_lanes);
            if (c.dst == RESULT) {
                if (rng.chance(30))
                    c.cols = 64 * static_cast<unsigned>(rng.range(1, 11));
                if (rng.chance(40)) // logit rows: fewer than the run's
                    c.rows = static_cast<unsigned>(rng.range(0, rows));
                c.out_cols = static_cast<unsigned>(
                    rng.chance(30) ? c.cols : rng.range(std::max(1, int(c.cols) - 130), c.cols));
                c.stride = (c.out_cols + 15) / 16 + static_cast<unsigned>(rng.range(0, 3));
                c.out_off = static_cast<unsigned>(i) * 2000 + static_cast<unsigned>(rng.range(0, 40));
                if (window && c.rows > 1)
                    e.out_limit = c.out_off + c.stride; // its second row is outside
                spans |= c.rows * 4 <= T ? 1 : c.rows * 2 <= T ? 2 : 4;
                zero += c.rows == 0;
            }
            if (tight) {
                c.dst = RES;
                c.cols = 64;
                c.rows = rows;
                c.track = true;
                c.function = MR_FUNCTION_NONE;
            }
            c.track &= !c.second; // a rule of MATMUL
            c.turned = TRAIN && c.rows == rows && rng.chance(50);
            c.turn_bad = c.turned && e.out_limit == 100000 && rng.chance(25);
            c.tiles = TRAIN && (c.dst == ACT || c.dst == QKV) && rng.chance(50);
            c.tile_bad = c.tiles && e.out_limit == 100000 && rng.chance(25);
            err_jobs += c.turn_bad || c.tile_bad;
            c.keep = TRAIN && c.rows == rows && c.function != MR_FUNCTION_NONE && rng.chance(60);
            c.slope = TRAIN && c.rows == rows && c.function == MR_FUNCTION_NONE && rng.chance(30);
            c.rotary &= !c.slope; // a rule of MATMUL
            dsts |= 1u << c.dst;
            if (c.dst == RES)
                kinds |= 1u << (2 * c.second + c.set);
            e.dut->out_limit_i = e.out_limit;
            e.add(c);
            if (e.out_limit != 100000 && c.dst == RESULT) {
                err_jobs++;
                cmds = 0; // the limit holds for the whole run
            }
            total++;
        }
        if (rng.chance(40))
            for (int i = 0; i < (V < 32 ? 40 : 120); i++) {
                std::pair<std::array<uint32_t, 32>, Block> p;
                for (auto &x : p.first)
                    x = odd_float(0);
                p.second = Block{};
                p.second.addr = static_cast<uint64_t>(0x4000 + 2 * rng.range(0, 50)) << 16 |
                                static_cast<uint64_t>(rng.range(0, 1000));
                p.second.first = rng.chance(30);
                p.second.region = static_cast<unsigned>(rng.range(0, 3));
                float v[32];
                memcpy(v, p.first.data(), sizeof v);
                int8_t q[32];
                p.second.q[32] = mr_mxint8_quantise(v, q);
                memcpy(p.second.q.data(), q, 32);
                if (!e.two_pass)
                    e.ln_in.push_back(p);
            }
        // Sometimes nothing leaves the quantiser until all that can fill up has.
        bool hold = k % 5 == 1;
        if (hold)
            e.act.density(0);
        for (int i = 0; i < 300000 && !e.idle(); i++) {
            if (hold && i == 2000)
                e.act.random();
            e.cycle();
        }
        if (hold)
            e.act.random();
        finished = e.idle();
        if (!finished) {
            tap.note("case %d hangs: cfg %zu running %zu beats %zu blocks %zu ln %zu", k,
                     e.cfgs.size(), e.running.size(), e.beats.size(), e.want_epi.size(),
                     e.ln_in.size());
            if (!e.running.empty())
                tap.note("dst %u rows %u cols %u", e.running.front().dst, e.running.front().rows,
                         e.running.front().cols);
        }
        for (int i = 0; i < 10; i++)
            e.cycle();
        res_ok &= e.res == e.res_model;
        out_ok &= e.out == e.out_model;
        for (unsigned t = 0; t < rows; t++) {
            e.dut->rexp_ren_i = 1;
            e.dut->rexp_raddr_i = static_cast<uint8_t>(t);
            e.cycle();
            e.dut->rexp_ren_i = 0;
            e.dut.settle();
            rexp_ok &= e.dut->rexp_rdata_o == e.rexp_model[t];
            for (unsigned w = 0; w < PM_WORDS; w++) {
                e.dut->pm_a_ren_i = e.dut->pm_b_ren_i = 1;
                e.dut->pm_a_raddr_i = e.dut->pm_b_raddr_i = static_cast<uint16_t>(t * PM_WORDS + w);
                e.cycle();
                e.dut->pm_a_ren_i = e.dut->pm_b_ren_i = 0;
                e.dut.settle();
                uint16_t want;
                memcpy(&want, &e.pm_model[(t * PM_WORDS + w) * 2], 2);
                if (e.dut->pm_a_rdata_o != want || e.dut->pm_b_rdata_o != want) {
                    if (pm_ok)
                        tap.note("case %d token %u word %u: %04x %04x, want %04x", k, t, w,
                                 e.dut->pm_a_rdata_o, e.dut->pm_b_rdata_o, want);
                    pm_ok = false;
                }
            }
        }
    }
    tap.note("%u commands (%u without rows), %llu blocks, %llu residual words, %llu jobs, longest %u; %u "
             "two-pass batches, %llu addresses reported",
             total, zero, static_cast<unsigned long long>(e.blocks),
             static_cast<unsigned long long>(e.words), static_cast<unsigned long long>(e.acked),
             e.longest_job, two, static_cast<unsigned long long>(e.addresses));
    tap.ok(finished && e.done == total, "epilogue: one done per command");
    tap.ok(e.bad_done == 0, "epilogue: done in order, not before its data");
    tap.ok(e.bad_block == 0 && e.blocks == e.want_blocks, "epilogue: quantised blocks, in order");
    tap.ok(e.ln_acks == e.ln_blocks && e.ln_blocks > 0, "epilogue: LayerNorm shares the quantiser");
    tap.ok(res_ok && e.words == e.want_words, "epilogue: residual");
    tap.ok(kinds == (TRAIN ? 15 : 1) && (e.minus_zeros != 0) == TRAIN,
           "epilogue: both row memories, sums and words that are set, -0 among them");
    tap.ok(rexp_ok, "epilogue: row exponents");
    tap.ok(pm_ok, "epilogue: prefix maxima");
    tap.ok(out_ok && e.acked == e.want_jobs, "epilogue: results, pads unwritten");
    tap.ok(e.errs == err_jobs && (e.addresses > 2) == TRAIN, "epilogue: a window error for each command with one");
    tap.ok(e.bad_turn == 0 && e.turns == e.want_turns && (e.turns != 0) == TRAIN,
           "epilogue: beats for mr_turn, in order and where there is room");
    tap.ok(e.tiles == e.want_tile_cmds && (e.tiles != 0) == TRAIN, "epilogue: blocks for mr_tiles");
    tap.ok(e.bad_slope == 0 && e.keeps == e.want_keeps && (e.keeps != 0) == TRAIN && (e.pops != 0) == TRAIN,
           "epilogue: values for mr_slopes and factors from it, in order and where there is room");
    tap.ok(dsts == 15 && spans == 7, "epilogue: all destinations and spans");
    tap.ok(e.sticky_nan > 0 && e.sticky_ovf > 0, "epilogue: sticky flags");

    // Rate: one command without stalls takes a beat a cycle, the next one follows without a gap.
    for (Stall *s : {&e.cfg, &e.dr, &e.act, &e.jr, &e.data, &e.room, &e.tile_room, &e.slope_room, &e.slope_has})
        s->density(100);
    e.two_pass = false;
    e.dut->two_pass_i = 0;
    for (int i = 0; i < 2; i++) {
        Cmd c{};
        c.dst = ACT;
        c.cols = 512;
        c.rows = T;
        c.head_lanes = 64;
        e.add(c);
    }
    size_t beats = e.beats.size();
    uint64_t t0 = e.dut.cycles();
    for (int i = 0; i < 100000 && !e.beats.empty(); i++)
        e.cycle();
    uint64_t took = e.dut.cycles() - t0;
    for (int i = 0; i < 10000 && !e.idle(); i++)
        e.cycle();
    tap.note("%zu beats in %llu cycles", beats, static_cast<unsigned long long>(took));
    // The quantiser takes two cycles for a beat of 64 lanes.
    tap.ok(e.idle() && took <= beats * (V > 32 ? 2 : 1) + beats / 8 + 80, "epilogue: rate");
    bool cov = e.cfg.covered(tap) & e.dr.covered(tap) & e.act.covered(tap) & e.ln.covered(tap) &
               e.jr.covered(tap) & e.data.covered(tap) & (!TRAIN || (e.room.covered(tap) & e.tile_room.covered(tap) & e.slope_room.covered(tap) & e.slope_has.covered(tap)));
    tap.ok(cov, "epilogue: every port stalled");
    return tap.done();
}
