// SPDX-License-Identifier: Apache-2.0
// mr_kvstore: the bench holds the memories that the unit reads and is the write port: it takes jobs
// and data with random stalls and acknowledges late. Every byte at every address is compared with
// the layout of docs/inside/commands.md.
#include "Vdut.h"
#include "bench.h"
#include <array>
#include <deque>
#include <map>
#include <vector>

using namespace bench;

#if defined(VARIANT_n1)
constexpr unsigned N = 1, T = 8, V = 4, D_MAX = 128;
#elif defined(VARIANT_n2)
constexpr unsigned N = 2, T = 8, V = 8, D_MAX = 192;
#elif defined(VARIANT_n4)
constexpr unsigned N = 4, T = 8, V = 16, D_MAX = 192;
#else
constexpr unsigned N = 16, T = 16, V = 64, D_MAX = 256;
#endif
constexpr unsigned QKV_WORDS = 128, PM_WORDS = 64, SLOTS = T;
using Beat = std::array<uint8_t, 64>;
using Mem = std::map<uint64_t, Beat>;

struct Block {
    uint8_t code;
    std::array<uint8_t, 32> q;
};

int main(int argc, char **argv)
{
    Args args(argc, argv);
    Tap tap;
    Rng rng(args.seed);
    Dut<Vdut> dut(args);
    Stall jr(rng, "job_ready"), dr(rng, "data_ready");

    std::vector<Block> qkv(SLOTS * QKV_WORDS * 2);
    std::vector<uint8_t> pm(T * PM_WORDS * 2);
    std::vector<uint32_t> res(T * D_MAX);
    uint32_t kv_off[T], pos[T];

    dut->cmd_valid_i = 0;
    dut->job_done_i = 0;
    dut.reset();

    bool data_ok = true, err_ok = true, done_ok = true, strb_ok = true;
    uint64_t records = 0;
    unsigned wrong = 0;
    int n = args.cases_or(80);
    for (int k = 0; k < n; k++) {
        for (auto &b : qkv) {
            b.code = static_cast<uint8_t>(rng.u32());
            for (auto &x : b.q)
                x = static_cast<uint8_t>(rng.u32());
        }
        for (auto &x : pm)
            x = static_cast<uint8_t>(rng.u32());
        for (auto &x : res)
            x = rng.u32();
        unsigned wb = static_cast<unsigned>(k % 5 == 0 ? 64 : rng.chance(20) ? 33 : rng.range(1, 64));
        unsigned sb = (wb + 31) / 32, rb = sb + wb;
        bool two_pass = rng.chance(40), is_res = rng.chance(25), is_v = rng.chance(50);
        unsigned rows = static_cast<unsigned>(rng.range(1, two_pass ? T / 2 : T));
        unsigned layer = static_cast<unsigned>(rng.range(0, 40));
        unsigned src = static_cast<unsigned>(rng.range(0, QKV_WORDS - wb));
        unsigned per_chan = 100; // positions of a channel's region
        uint32_t v_beats = per_chan * rb, pm_beats = 2 * v_beats,
                 layer_beats = pm_beats + per_chan * sb + static_cast<uint32_t>(rng.range(0, 9));
        if (rng.chance(10))
            layer_beats += 70000; // both halves of the product
        uint64_t region = 50ull * layer_beats;
        uint32_t limit = static_cast<uint32_t>(region * T);
        uint64_t base[N];
        for (unsigned c = 0; c < N; c++) {
            base[c] = (static_cast<uint64_t>(c + 1) << 40) + (64 * rng.u32());
            set(dut->kv_base_i, static_cast<int>(c * 64), 64, base[c]);
            set(dut->kv_limit_i, static_cast<int>(c * 32), 32, limit);
        }
        uint64_t res_base = (77ull << 40) + 4096;
        for (unsigned t = 0; t < T; t++) {
            kv_off[t] = static_cast<uint32_t>(region * t);
            pos[t] = static_cast<uint32_t>(rng.range(0, per_chan * N - 1));
        }
        unsigned res_beats = 4 * static_cast<unsigned>(rng.range(1, D_MAX / 64));
        uint32_t out_off = static_cast<uint32_t>(rng.range(0, 1000));

        // Errors now and then.
        unsigned want_code = 0, good_rows = rows;
        unsigned bt = static_cast<unsigned>(rng.range(0, rows - 1));
        if (rng.chance(12) && !is_res)
            want_code = 3, good_rows = bt, kv_off[bt] = 0xFFFFFF00u;
        wrong += want_code != 0;

        // What must be written.
        Mem want, got;
        uint64_t want_jobs = 0;
        auto put = [&](uint64_t addr, size_t i, uint8_t x) {
            auto it = want.find(addr / 64);
            if (it == want.end())
                it = want.emplace(addr / 64, Beat{}).first;
            it->second[i] = x;
        };
        for (unsigned t = 0; t < good_rows; t++) {
            if (is_res) {
                want_jobs++;
                for (unsigned i = 0; i < res_beats * 64; i++)
                    put(res_base + 64ull * (out_off + t * res_beats + i / 64), i % 64,
                        static_cast<uint8_t>(res[t * D_MAX + i / 4] >> (8 * (i % 4))));
                continue;
            }
            want_jobs += is_v ? 2 : 1;
            unsigned c = pos[t] % N, local = pos[t] / N, slot = two_pass ? 2 * t : t;
            uint64_t rec = base[c] + 64ull * (kv_off[t] + static_cast<uint64_t>(layer) * layer_beats +
                                              (is_v ? v_beats : 0) + local * rb);
            uint64_t pma = base[c] + 64ull * (kv_off[t] + static_cast<uint64_t>(layer) * layer_beats +
                                              pm_beats + local * sb);
            for (unsigned b = 0; b < 2 * wb; b++) {
                const Block &blk = qkv[(slot * QKV_WORDS + src) * 2 + b];
                put(rec + 64 * (b / 64), b % 64, blk.code);
                for (size_t i = 0; i < 32; i++)
                    put(rec + 64 * (sb + b / 2), 32 * (b % 2) + i, blk.q[i]);
                if (is_v)
                    put(pma + 64 * (b / 64), b % 64, pm[t * PM_WORDS * 2 + b]);
            }
            if (is_v)
                for (unsigned b = 2 * wb; b < 64 * sb; b++)
                    put(pma + 64 * (b / 64), b % 64, 0);
        }

        dut->cmd_res_i = is_res;
        dut->cmd_layer_i = static_cast<uint16_t>(layer);
        dut->cmd_src_base_i = static_cast<uint16_t>(src);
        dut->cmd_wbeats_i = static_cast<uint16_t>(wb);
        dut->cmd_is_v_i = is_v;
        dut->cmd_out_off_i = out_off;
        dut->cmd_res_beats_i = static_cast<uint16_t>(res_beats);
        dut->cmd_rows_i = static_cast<uint16_t>(rows);
        dut->cmd_two_pass_i = two_pass;
        dut->res_base_i = res_base;
        dut->kv_layer_beats_i = layer_beats;
        dut->kv_v_beats_i = v_beats;
        dut->kv_pm_beats_i = pm_beats;

        struct Job {
            uint64_t addr;
            unsigned left;
        };
        std::deque<Job> open;
        uint64_t jobs = 0, acks = 0, ready_acks = 0;
        unsigned errs = 0, code = 0;
        bool done = false;
        dut->cmd_valid_i = 1;
        uint64_t row_d = 0, pm_d = 0, qkv_at = 0, res_at = 0;
        bool qkv_r = false, row_r = false, pm_r = false, res_r = false;
        for (int cyc = 0; cyc < 200000 && !done; cyc++) {
            // RAM outputs of last cycle's reads.
            if (row_r)
                set(dut->row_rdata_i, 0, 48, row_d);
            if (pm_r)
                dut->pm_rdata_i = static_cast<uint16_t>(pm_d);
            if (qkv_r)
                for (int h = 0; h < 2; h++) {
                    const Block &b = qkv[qkv_at * 2 + static_cast<uint64_t>(h)];
                    for (int i = 0; i < 32; i++)
                        set(dut->qkv_rdata_i, 264 * h + 8 * i, 8, b.q[static_cast<size_t>(i)]);
                    set(dut->qkv_rdata_i, 264 * h + 256, 8, b.code);
                }
            if (res_r)
                for (unsigned i = 0; i < V; i++)
                    set(dut->res_m_rdata_i, static_cast<int>(32 * i), 32, res[res_at * V + i]);
            dut->job_ready_i = jr.want() && open.empty();
            dut->data_ready_i = dr.want() && !open.empty();
            dut->job_done_i = ready_acks > 0 && rng.chance(10);
            dut.settle();
            jr.saw(dut->job_valid_o && open.empty());
            dr.saw(dut->data_valid_o && !open.empty());
            bool taken = dut->cmd_valid_i && dut->cmd_ready_o;
            row_r = dut->row_ren_o;
            if (row_r)
                row_d = kv_off[dut->row_raddr_o] | static_cast<uint64_t>(pos[dut->row_raddr_o]) << 32;
            pm_r = dut->pm_ren_o;
            if (pm_r)
                pm_d = pm[dut->pm_raddr_o * 2u] | pm[dut->pm_raddr_o * 2u + 1u] << 8;
            qkv_r = dut->qkv_ren_o;
            qkv_at = dut->qkv_raddr_o;
            res_r = dut->res_m_ren_o;
            res_at = dut->res_m_raddr_o;
            if (dut->job_done_i) {
                acks++;
                ready_acks--;
            }
            if (dut->data_valid_o && dut->data_ready_i) {
                Beat b;
                take_bytes(dut->data_o, b.data(), 64);
                Job &j = open.front();
                got[j.addr / 64] = b;
                j.addr += 64;
                if (--j.left == 0) {
                    open.pop_front();
                    ready_acks++;
                }
            }
            if (dut->job_valid_o && dut->job_ready_i) {
                open.push_back({dut->job_addr_o, dut->job_beats_o});
                strb_ok &= dut->job_strb_o == ~0ull && dut->job_addr_o % 64 == 0;
                jobs++;
            }
            if (dut->err_valid_o) {
                errs++;
                code = dut->err_code_o;
            }
            done = dut->done_o;
            dut.edge();
            if (taken)
                dut->cmd_valid_i = 0;
        }
        records += jobs;
        done_ok &= done && acks == jobs && open.empty();
        err_ok &= want_code ? errs == 1 && code == want_code : errs == 0;
        if (got != want || jobs != want_jobs) {
            tap.note("case %d: res %d v %d wb %u rows %u: %llu jobs, want %llu", k, is_res, is_v, wb, rows,
                     static_cast<unsigned long long>(jobs), static_cast<unsigned long long>(want_jobs));
            data_ok = false;
        }
    }
    tap.note("%llu jobs, %u commands outside", static_cast<unsigned long long>(records), wrong);
    tap.ok(done_ok, "kvstore: done after the last acknowledgement");
    tap.ok(data_ok, "kvstore: records, prefix maxima and rows at their places");
    tap.ok(err_ok, "kvstore: errors");
    tap.ok(strb_ok, "kvstore: whole beats, aligned");
    tap.ok(jr.covered(tap) & dr.covered(tap), "kvstore: every port stalled");
    return tap.done();
}
