// SPDX-License-Identifier: Apache-2.0
// mr_rows: LOAD_ROWS of random tables, rotary rows and residual rows. The bench is the host read port:
// it answers requests in order with random pauses. Checks both memories, the exponents, the row
// table ports and bits, and every error. With TRAIN a FETCH_ROWS behind each command, with and
// without ADD: residual rows alone, and the row table stays.
#include "Vdut.h"
#include "bench.h"
#include "cmodel/num.h"
#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <vector>

using namespace bench;

#if defined(VARIANT_v4train)
constexpr unsigned T = 8, V = 4, D_MAX = 128, ROT_MAX = 64;
#define TRAIN 1
#elif defined(VARIANT_v64train)
constexpr unsigned T = 16, V = 64, D_MAX = 1024, ROT_MAX = 128;
#define TRAIN 1
#elif defined(VARIANT_v4)
constexpr unsigned T = 8, V = 4, D_MAX = 128, ROT_MAX = 64;
#elif defined(VARIANT_v8)
constexpr unsigned T = 8, V = 8, D_MAX = 192, ROT_MAX = 64;
#elif defined(VARIANT_v16)
constexpr unsigned T = 8, V = 16, D_MAX = 192, ROT_MAX = 128;
#else
constexpr unsigned T = 16, V = 64, D_MAX = 1024, ROT_MAX = 128;
#endif
constexpr unsigned CTX_MAX = 100;

struct Env {
    Tap &tap;
    Rng rng;
    Dut<Vdut> dut;
    Stall req_ready, data;
    std::vector<uint32_t> window; // words of the input window
    uint64_t base = 0x7F00000000ull;
    std::deque<unsigned> queue; // beats to deliver
    std::map<unsigned, uint32_t> rot, res;
    std::vector<uint32_t> memory; // residual words as they are read for sums
    uint64_t sums = 0, overflows = 0;
    std::map<unsigned, unsigned> rexp;
    unsigned errs = 0, code = 0, outstanding = 0, most = 0;
    uint64_t addr = 0;
    bool outside = false, done = false, read_now = false;
    unsigned read_at = 0;

    Env(Args &a, Tap &t)
        : tap(t), rng(a.seed), dut(a), req_ready(rng, "hr_ready"), data(rng, "hr_data_valid"),
          memory(T * D_MAX)
    {
        dut->cmd_valid_i = 0;
        dut->cmd_fetch_i = dut->cmd_add_i = 0;
        dut->hr_data_valid_i = 0;
        dut->row_a_ren_i = dut->row_b_ren_i = 0;
        dut->back_we_i = 0;
        dut.reset();
    }
    void cycle()
    {
        dut->hr_ready_i = req_ready.want();
        bool go = data.want();
        data.saw(!queue.empty());
        dut->hr_data_valid_i = go && !queue.empty();
        for (size_t i = 0; i < 16; i++)
            dut->hr_data_i[i] = dut->hr_data_valid_i ? window[queue.front() * 16 + i] : rng.u32();
        for (unsigned i = 0; i < V; i++)
            set(dut->res_rdata_i, int(32 * i), 32, read_now ? memory[read_at * V + i] : rng.u32());
        dut.settle();
        read_now = dut->res_ren_o;
        read_at = dut->res_raddr_o;
        sums += read_now;
        overflows += dut->ovf_o;
        if (dut->hr_data_valid_i) {
            queue.pop_front();
        }
        req_ready.saw(dut->hr_valid_o);
        if (dut->hr_valid_o && dut->hr_ready_i) {
            uint64_t off = (dut->hr_addr_o - base) / 64;
            if (off + dut->hr_beats_o > window.size() / 16 || dut->hr_beats_o == 0)
                outside = true;
            else
                for (unsigned i = 0; i < dut->hr_beats_o; i++)
                    queue.push_back(static_cast<unsigned>(off) + i);
        }
        if (dut->rot_we_o)
            for (unsigned i = 0; i < V; i++)
                rot[dut->rot_waddr_o * V + i] = static_cast<uint32_t>(get(dut->rot_wdata_o, int(32 * i), 32));
        if (dut->res_we_o)
            for (unsigned i = 0; i < V; i++)
                res[dut->res_waddr_o * V + i] = static_cast<uint32_t>(get(dut->res_wdata_o, int(32 * i), 32));
        if (dut->rexp_we_o)
            rexp[dut->rexp_waddr_o] = dut->rexp_wdata_o;
        if (dut->err_valid_o) {
            errs++;
            code = dut->err_code_o;
            addr = dut->err_addr_o;
            if (dut->done_o)
                outside = true;
        }
        done |= dut->done_o;
        dut.edge();
    }
    struct Cmd {
        unsigned table, rot, res, res_beats, rot_beats, rows;
        bool fetch = false, add = false;
    };
    bool run(const Cmd &c)
    {
        rot.clear();
        res.clear();
        rexp.clear();
        errs = 0;
        done = false;
        dut->base_i = base;
        dut->cmd_table_off_i = c.table;
        dut->cmd_rot_off_i = c.rot;
        dut->cmd_res_off_i = c.res;
        dut->cmd_res_beats_i = static_cast<uint16_t>(c.res_beats);
        dut->cmd_rot_beats_i = static_cast<uint16_t>(c.rot_beats);
        dut->cmd_rows_i = static_cast<uint16_t>(c.rows);
        dut->cmd_fetch_i = c.fetch;
        dut->cmd_add_i = c.add;
        dut->cmd_valid_i = 1;
        bool taken = false;
        for (int i = 0; i < 100000 && !done; i++) {
            dut.settle();
            bool r = dut->cmd_ready_o && dut->cmd_valid_i;
            cycle();
            if (r)
                dut->cmd_valid_i = 0, taken = true;
        }
        return done && taken;
    }
};

// LayerNorm's words of some rows, with pauses: into the memory, and the exponents.
static bool back_rows(Env &e)
{
    Rng &rng = e.rng;
    unsigned rows = static_cast<unsigned>(rng.range(1, T)), words = static_cast<unsigned>(rng.range(1, D_MAX / V));
    e.res.clear();
    e.rexp.clear();
    std::vector<uint32_t> want(rows * words * V);
    for (auto &w : want)
        w = rng.u32() & (rng.chance(50) ? 0x9FFFFFFFu : ~0u);
    for (unsigned i = 0; i < rows * words;) {
        unsigned t = i / words, w = i % words;
        bool go = rng.chance(60);
        e.dut->back_we_i = go;
        e.dut->back_waddr_i = static_cast<uint16_t>(t * (D_MAX / V) + w);
        e.dut->back_tok_i = static_cast<uint8_t>(t);
        e.dut->back_first_i = w == 0;
        e.dut->back_last_i = w + 1 == words;
        for (unsigned l = 0; l < V; l++)
            set(e.dut->back_data_i, int(32 * l), 32, go ? want[i * V + l] : rng.u32());
        e.cycle();
        i += go;
    }
    e.dut->back_we_i = 0;
    for (int i = 0; i < 8; i++)
        e.cycle();
    bool ok = e.res.size() == want.size() && e.rexp.size() == rows;
    for (unsigned i = 0; i < want.size() && ok; i++)
        ok = e.res[i / (words * V) * D_MAX + i % (words * V)] == want[i];
    for (unsigned t = 0; t < rows && ok; t++) {
        unsigned top = 0;
        for (unsigned i = 0; i < words * V; i++)
            top = std::max(top, static_cast<unsigned>(mr_expo(mr_float(want[t * words * V + i]))));
        ok = e.rexp[t] == top;
    }
    return ok;
}

#ifdef TRAIN
// A word of any kind: the memory's and the window's are near each other in size, so that sums cancel,
// or of all sizes, with infinities, NaN, subnormals and the largest among them.
static uint32_t word(Rng &rng, bool odd)
{
    uint32_t w = rng.u32();
    if (odd && !rng.chance(10))
        return w;
    return (w & 0x807FFFFF) | static_cast<uint32_t>(odd ? 254 : rng.range(120, 130)) << 23;
}

// FETCH_ROWS of random rows into random ones: words and exponents, and nothing else.
static bool fetch_rows(Env &e, bool add)
{
    Rng &rng = e.rng;
    Env::Cmd c{};
    c.rows = static_cast<unsigned>(rng.range(1, T));
    c.res_beats = 4 * static_cast<unsigned>(rng.range(1, D_MAX / 64));
    c.table = static_cast<unsigned>(rng.range(0, 1 << 20)); // without a meaning
    c.rot = static_cast<unsigned>(rng.range(0, 1 << 20));
    c.res = static_cast<unsigned>(rng.range(0, 5));
    c.fetch = true;
    c.add = add;
    bool odd = rng.chance(40);
    e.window.assign((c.res + c.rows * c.res_beats) * 16u, 0);
    for (auto &w : e.window)
        w = word(rng, odd);
    for (auto &w : e.memory)
        w = word(rng, odd);
    uint64_t before = e.sums;
    bool ok = e.run(c) && e.errs == 0 && e.rot.empty() && e.rexp.size() == c.rows &&
              e.res.size() == c.rows * c.res_beats * 16 &&
              e.sums - before == (add ? c.rows * c.res_beats * 16 / V : 0);
    for (unsigned t = 0; t < c.rows && ok; t++) {
        unsigned top = 0;
        for (unsigned i = 0; i < c.res_beats * 16; i++) {
            uint32_t w = e.window[(c.res + t * c.res_beats) * 16 + i];
            if (add)
                w = mr_bits(mr_fadd(mr_float(e.memory[t * D_MAX + i]), mr_float(w)));
            top = std::max(top, static_cast<unsigned>(mr_expo(mr_float(w))));
            ok &= e.res[t * D_MAX + i] == w;
        }
        ok &= e.rexp[t] == top;
    }
    return ok;
}
#endif

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Env e(args, tap);
    Rng &rng = e.rng;
    bool back_ok = true, mem_ok = true, exp_ok = true, table_ok = true, err_ok = true, finished = true;
    [[maybe_unused]] bool fetch_ok = true, sum_ok = true;
    unsigned kinds = 0;
    int n = args.cases_or(40);
    for (int k = 0; k < n; k++) {
        Env::Cmd c;
        c.rows = k == 0 ? T : k == 1 ? 1 : static_cast<unsigned>(rng.range(1, T));
        c.res_beats = 4 * static_cast<unsigned>(k == 0 ? D_MAX / 64 : k == 2 ? 0 : rng.range(0, D_MAX / 64));
        c.rot_beats = 4 * static_cast<unsigned>(rng.range(0, ROT_MAX / 64));
        unsigned tb = (c.rows + 3) / 4;
        c.table = static_cast<unsigned>(rng.range(0, 5));
        c.rot = c.table + tb + static_cast<unsigned>(rng.range(0, 3));
        c.res = c.rot + c.rows * c.rot_beats + static_cast<unsigned>(rng.range(0, 3));
        unsigned size = c.res + c.rows * c.res_beats;
        e.window.assign(size * 16u, 0);
        for (auto &w : e.window)
            w = rng.u32();
        unsigned logits = 0;
        for (unsigned t = 0; t < tb * 4; t++) {
            uint32_t *row = &e.window[c.table * 16 + t * 4];
            row[1] = static_cast<uint32_t>(rng.range(0, CTX_MAX - 1));
            row[2] = static_cast<uint32_t>(rng.range(0, t ? 3 : 1));
            row[3] = rng.chance(50) ? 0 : static_cast<uint32_t>(rng.range(row[1] + 1, CTX_MAX));
            if (row[2] & 2 && row[-3] + 1 < (row[-1] ? row[-1] : CTX_MAX)) { // of the row before, and one on
                row[0] = row[-4];
                row[1] = row[-3] + 1;
                row[3] = row[-1];
            } else {
                row[2] &= 1;
            }
            logits += t < c.rows && (row[2] & 1);
        }
        for (unsigned t = 0; t < c.rows; t++) { // rows of all sorts: zeros, subnormal, small range
            uint32_t *row = e.window.data() + (c.res + t * c.res_beats) * 16;
            int sort = static_cast<int>(rng.range(0, 3));
            for (unsigned i = 0; i < c.res_beats * 16; i++)
                if (sort == 0)
                    row[i] = rng.chance(99) ? 0 : rng.u32() & 0x807FFFFF;
                else if (sort == 1)
                    row[i] = (rng.u32() & 0x807FFFFF) | static_cast<uint32_t>(rng.range(0, 120)) << 23;
        }
        // One error now and then.
        unsigned want_code = 0;
        uint64_t want_addr = 0;
        int bad = k < 3 ? 0 : static_cast<int>(rng.range(0, 12));
        unsigned bt = static_cast<unsigned>(rng.range(0, c.rows - 1));
        uint32_t *brow = &e.window[c.table * 16 + bt * 4];
        want_addr = e.base + 64ull * (c.table + bt / 4);
        if (bad == 1)
            want_code = 2, brow[1] = CTX_MAX;
        else if (bad == 2)
            want_code = 2, brow[2] |= 1u << rng.range(2, 31);
        else if (bad == 3)
            want_code = 2, brow[3] = rng.chance(50) && brow[1] ? static_cast<uint32_t>(rng.range(1, brow[1]))
                                                        : CTX_MAX + (1u << rng.range(0, 31));
        else if (bad == 4)
            want_code = 2, e.window[c.table * 16 + 2] |= 2, want_addr = e.base + 64ull * c.table;
        else if (bad >= 5 && bad <= 8 && bt > 0) { // beside the row before, but for one thing
            want_code = 2;
            brow[0] = brow[-4];
            brow[1] = brow[-3] + 1;
            brow[2] |= 2;
            brow[3] = brow[-1];
            if (bad == 8)
                brow[3] = brow[-1] ? 0 : CTX_MAX;
            else if (bad == 7)
                brow[0] ^= 1u << rng.range(0, 31);
            else
                brow[1] += bad == 5 ? 1 : -1;
            if (brow[1] >= CTX_MAX)
                brow[1] = 0;
        }
        // What a row is changed to may be wrong for the one behind it; the address is the first's.
        kinds |= bad < 9 ? 1u << bad : 1;

        const std::vector<uint32_t> table(e.window.begin() + c.table * 16, e.window.begin() + (c.table + tb) * 16);
        finished &= e.run(c);
        if (want_code == 0)
            err_ok &= e.errs == 0;
        else if (e.errs != 1 || e.code != want_code || (want_addr && e.addr != want_addr)) {
            tap.note("case %d bad %d: %u errors, code %u addr %llx", k, bad, e.errs, e.code,
                     static_cast<unsigned long long>(e.addr));
            err_ok = false;
        }
        mem_ok &= e.res.size() == c.rows * c.res_beats * 16 && e.rot.size() == c.rows * c.rot_beats * 16;
        exp_ok &= e.rexp.size() == (c.res_beats ? c.rows : 0);
        for (unsigned t = 0; t < c.rows; t++) {
            unsigned top = 0;
            for (unsigned i = 0; i < c.res_beats * 16; i++) {
                uint32_t w = e.window[(c.res + t * c.res_beats) * 16 + i];
                unsigned x = mr_expo(mr_float(w));
                top = x > top ? x : top;
                mem_ok &= e.res[t * D_MAX + i] == w;
            }
            exp_ok &= !c.res_beats || e.rexp[t] == top;
            for (unsigned i = 0; i < c.rot_beats * 16; i++)
                mem_ok &= e.rot[t * ROT_MAX + i] == e.window[(c.rot + t * c.rot_beats) * 16 + i];
        }
#ifdef TRAIN
        fetch_ok &= fetch_rows(e, false);
        sum_ok &= fetch_rows(e, true);
#endif
        back_ok &= back_rows(e);
        if (want_code)
            continue;
        for (unsigned t = 0; t < T; t++) {
            static const uint32_t none[4] = {};
            const uint32_t *row = t < tb * 4 ? &table[t * 4] : none;
            bool in = t < c.rows;
            table_ok &= get(e.dut->row_logit_o, int(t), 1) == (in ? row[2] & 1 : 0);
            table_ok &= get(e.dut->row_continues_o, int(t), 1) == (in ? row[2] >> 1 : 0);
            if (!in)
                continue;
            e.dut->row_a_ren_i = 1;
            e.dut->row_a_raddr_i = static_cast<uint8_t>(t);
            e.dut->row_b_ren_i = 1;
            e.dut->row_b_raddr_i = static_cast<uint8_t>(t);
            e.cycle();
            e.dut->row_a_ren_i = e.dut->row_b_ren_i = 0;
            e.cycle();
            uint64_t want = row[0] | static_cast<uint64_t>(row[1]) << 32;
            uint32_t last = row[3] ? row[3] - 1 : row[1];
            table_ok &= get(e.dut->row_a_rdata_o, 0, 48) == want && e.dut->row_b_rdata_o == want &&
                        get(e.dut->row_a_rdata_o, 48, 16) == last && get(e.dut->row_a_rdata_o, 64, 1) == (row[3] != 0);
        }
        table_ok &= e.dut->n_logit_rows_o == logits;
    }
    tap.ok(finished, "rows: done for every command");
    tap.ok(mem_ok, "rows: rotary and residual memory");
    tap.ok(exp_ok, "rows: largest exponents");
    tap.ok(back_ok, "rows: LayerNorm's words go back");
    tap.ok(table_ok, "rows: row table, logit and continues bits");
    tap.ok(err_ok && !e.outside, "rows: errors, and no request outside the window");
#ifdef TRAIN
    tap.ok(fetch_ok, "rows: FETCH_ROWS");
    tap.ok(sum_ok && e.overflows > 0, "rows: FETCH_ROWS with ADD");
    tap.note("%llu sums of words, %llu overflow", static_cast<unsigned long long>(e.sums),
             static_cast<unsigned long long>(e.overflows));
#endif
    tap.note("error kinds seen %03x", kinds);
    tap.ok(e.req_ready.covered(tap) & e.data.covered(tap), "rows: every port stalled");
    return tap.done();
}
